/* The training loop of a rank: minibatches come from the loader, gradients are summed over ranks. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "nn/loss.h"
#include "train/lap.h"
#include "train/state.h"

static rudder_status_t train_grow_d_logits(train_t *train, int64_t rows, rudder_error_t *error)
{
    if (rows > train->d_logits_capacity) {
        free(train->d_logits);
        train->d_logits = malloc((size_t)rows * (size_t)train->parts.n_classes * sizeof *train->d_logits);
        train->d_logits_capacity = train->d_logits != NULL ? rows : 0;
        if (train->d_logits == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the gradients of %lld seeds", (long long)rows);
        }
    }
    return RUDDER_OK;
}

/* One minibatch: waits for it, trains on it. *loss: the sum over all ranks' seeds; *labelled: how many those are. */
static rudder_status_t train_step(train_t *train, int64_t epoch, train_counts_t *counts, double *loss,
                                  int64_t *labelled, rudder_error_t *error)
{
    train_times_t times = {0}; /* the loader's parts of this minibatch join them */
    loaded_t *loaded;
    const float *logits;
    int64_t n;
    float *parameters = sage_parameters(train->sage, &n), *gradients = sage_gradients(train->sage);
    RUDDER_TRY(loader_next(train->loader, &loaded, error));
    if (loaded == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_INTERNAL, "the loader ended before the training");
    }
    const minibatch_t *minibatch = &loaded->sampled.minibatch;
    lap(&train->mark, &times.wait);

    const float scale = loaded->sampled.labelled > 0 ? 1.0F / (float)loaded->sampled.labelled : 0;
    RUDDER_TRY(train_grow_d_logits(train, minibatch->n_seeds, error));
    RUDDER_TRY(sage_forward(train->sage, minibatch, loaded->x, 1, &logits, error));
    double sum = loss_cross_entropy(logits, minibatch->label, minibatch->n_seeds, train->parts.n_classes, scale,
                                    train->d_logits, NULL, NULL);
    lap(&train->mark, &times.forward);
    RUDDER_TRY(sage_backward(train->sage, minibatch, loaded->x, train->d_logits, error));
    lap(&train->mark, &times.backward);
    RUDDER_TRY(comm_sum(&train->compute, gradients, n, train->scratch, error));
    RUDDER_TRY(comm_sum_f64(&train->compute, &sum, 1, error));
    lap(&train->mark, &times.allreduce);
    adam_step(&train->adam, parameters, gradients);
    lap(&train->mark, &times.step);

    *loss = sum;
    *labelled = loaded->sampled.labelled;
    train_counts_add(counts, &loaded->counts);
    train_times_add(&times, &loaded->times, 1);
    run_log_step(&train->log, epoch, minibatch->step, *labelled > 0 ? sum / (double)*labelled : 0, &loaded->counts,
                 &times);
    lap(&train->mark, &times.step);
    loaded->wait = times.wait;
    loaded->compute = times.forward + times.backward + times.allreduce + times.step;
    loader_release(train->loader);
    train_times_add(&train->mine.times, &times, 1);
    return RUDDER_OK;
}

/* step: since the start, over epochs; counts: of this epoch, which began at `begin`. */
static void train_progress(const train_t *train, int64_t step, double loss, const train_counts_t *counts, double begin)
{
    const int64_t total = train->result.epochs * train->result.steps_per_epoch;
    const double seconds = train->mark - begin;
    const int64_t left = (int64_t)((train->mark - train->begin) / (double)step * (double)(total - step));
    log_progress(step, total, "epoch %lld/%d  loss %.4f  hits %.1f %%  %.1f MB/s  %lld:%02lld left",
                 (long long)((step - 1) / train->result.steps_per_epoch + 1), (int)train->result.epochs, loss,
                 counts->remote > 0 ? 100.0 * (double)counts->hit / (double)counts->remote : 0,
                 (double)counts->bytes * 1e-6 / (seconds > 0 ? seconds : 1), (long long)(left / 60),
                 (long long)(left % 60));
}

/* Counts of all ranks. Exact: sums stay far below 2^53. */
static rudder_status_t train_sum_counts(train_t *train, train_counts_t *counts, rudder_error_t *error)
{
    int64_t *field[] = {&counts->seeds, &counts->input, &counts->remote, &counts->hit,
                        &counts->miss,  &counts->fill,  &counts->bytes};
    enum { FIELDS = sizeof field / sizeof *field };
    double sums[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        sums[i] = (double)*field[i];
    }
    RUDDER_TRY(comm_sum_f64(&train->compute, sums, FIELDS, error));
    for (int i = 0; i < FIELDS; i++) {
        *field[i] = (int64_t)sums[i];
    }
    return RUDDER_OK;
}

static void train_tell_epoch(const train_t *train, const train_epoch_t *epoch)
{
    char valid[32] = "", fetched[32], fill[32];
    const train_counts_t *counts = &epoch->counts;
    if (!isnan(epoch->valid)) {
        snprintf(valid, sizeof valid, "  valid %.4f", epoch->valid);
    }
    log_line(LOG_INFO, "epoch %d/%d  loss %.4f%s  hits %.1f %%  fetched %s rows (%s fill)  %.2f s",
             (int)train->result.n_epochs, (int)train->result.epochs, epoch->loss, valid,
             counts->remote > 0 ? 100.0 * (double)counts->hit / (double)counts->remote : 0,
             text_of_count(counts->miss + counts->fill, fetched, sizeof fetched),
             text_of_count(counts->fill, fill, sizeof fill), epoch->seconds);
}

/* One epoch. It began at `begin`; for the first one that is before the start content was loaded. */
static rudder_status_t train_epoch(train_t *train, int32_t number, double begin, rudder_error_t *error)
{
    train_epoch_t epoch = {.valid = NAN};
    double valid = NAN, test = NAN, loss = 0;
    int64_t labelled = 0;
    for (int64_t s = 0; s < train->result.steps_per_epoch; s++) {
        double step_loss = 0;
        int64_t step_labelled = 0;
        RUDDER_TRY(train_step(train, number, &epoch.counts, &step_loss, &step_labelled, error));
        loss += step_loss;
        labelled += step_labelled;
        train_progress(train, number * train->result.steps_per_epoch + s + 1,
                       step_labelled > 0 ? step_loss / (double)step_labelled : 0, &epoch.counts, begin);
    }
    epoch.seconds = train->mark - begin;
    epoch.loss = labelled > 0 ? loss / (double)labelled : 0;
    train_counts_add(&train->mine.counts, &epoch.counts);
    RUDDER_TRY(train_sum_counts(train, &epoch.counts, error));
    const int last = number == train->config->epochs - 1;
    if (train->evaluate != NULL && (train->config->eval == TRAIN_EVAL_EPOCH || last)) {
        RUDDER_TRY(evaluate_run(train->evaluate, &valid, &test, error));
        epoch.valid = valid;
    }
    RUDDER_TRY(run_log_flush(&train->log, error));
    pthread_mutex_lock(&train->lock);
    train->result.epoch[number] = epoch;
    train->result.n_epochs = number + 1;
    train->result.valid = valid;
    train->result.test = last ? test : NAN;
    pthread_mutex_unlock(&train->lock);
    train_tell_epoch(train, &epoch);
    lap(&train->mark, &train->mine.times.evaluate);
    return RUDDER_OK;
}

rudder_status_t train_epochs(train_t *train, rudder_error_t *error)
{
    train->mark = clock_seconds();
    const double begin = train->mark;
    RUDDER_TRY(loader_start(train->loader, error));
    lap(&train->mark, &train->mine.times.wait);
    for (int32_t e = 0; e < train->config->epochs; e++) {
        RUDDER_TRY(train_epoch(train, e, e == 0 ? begin : train->mark, error));
    }
    log_progress_end();
    train_times_t loader, *times = &train->mine.times;
    loader_sums_t sums;
    RUDDER_TRY(loader_finish(train->loader, &loader, &sums, error));
    train->mine.loader_bytes = sums.bytes;
    train->mine.window_bytes = sums.window_bytes;
    train->mine.start_rows = sums.start_rows;
    times->wall = train->mark - begin;
    /* The loader's own sums: fill rows of the last minibatch are in no minibatch's times. */
    times->sample = loader.sample;
    times->plan = loader.plan;
    times->exchange = loader.exchange;
    times->complete = loader.complete;
    times->gather = loader.gather;
    times->idle = loader.idle + fmax(0, times->wall - loader.wall); /* it ends first */
    return RUDDER_OK;
}
