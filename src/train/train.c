/*
 * A rank of a training run: loads, trains, reports. Failures while loading are agreed on by all ranks, so that one
 * message is told; a failure later is this rank's own and ends the job.
 */
#include "train/train.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "train/state.h"
#include "train/stop.h"

enum { TRAIN_CLOSE_MS = 2000 }; /* how long a decision in flight may take before it is cancelled */

/* Completes the result and hands it over; on rank 0, once, when there is a run directory. */
static void train_finish(train_t *train, const char *status, const rudder_error_t *error, int signal)
{
    pthread_mutex_lock(&train->lock);
    if (!train->finished && train->compute.rank == 0 && train->result.run_dir[0] != '\0') {
        train->finished = 1;
        train->result.status = status;
        train->result.signal = signal;
        train->result.seconds = clock_seconds() - train->begin;
        if (error != NULL) {
            train->result.error = *error;
        }
        train->config->finished(train->config->context, &train->result);
    }
    pthread_mutex_unlock(&train->lock);
}

/* A signal came: leaves readable files behind and ends. */
static void train_stopped(void *context, int signal)
{
    train_t *train = context;
    rudder_error_t error;
    error_set(&error, RUDDER_E_INTERRUPTED, __func__, "stopped by %s", signal == SIGINT ? "SIGINT" : "SIGTERM");
    run_log_stop(&train->log);
    record_stop(&train->record, NULL);
    train_finish(train, "interrupted", &error, signal);
    train->config->stopped(train->config->context, signal);
}

/* What went between each two ranks. Collective. */
static rudder_status_t train_gather_traffic(train_t *train, rudder_error_t *error)
{
    const int32_t size = train->compute.size;
    int64_t *traffic = calloc(2 * (size_t)size, sizeof *traffic);
    if (traffic == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the summary");
    }
    exchange_traffic(train->exchange, traffic, traffic + size);
    const rudder_status_t status = comm_gather(&train->compute, traffic, 2 * (int64_t)size * (int64_t)sizeof *traffic,
                                               train->result.traffic, error);
    free(traffic);
    return status;
}

/* Closes the buffer when nobody asks the agent any more, and gathers what each rank has to tell. Collective. */
static rudder_status_t train_gather(train_t *train, rudder_error_t *error)
{
    train_rank_t *mine = &train->mine;
    struct rusage before, after, self;
    RUDDER_TRY(rudder_stats_get(train->handle, &mine->stats, sizeof mine->stats));
    RUDDER_TRY(comm_barrier(&train->compute, error));
    getrusage(RUSAGE_CHILDREN, &before);
    rudder_close(train->handle, TRAIN_CLOSE_MS);
    train->handle = NULL;
    getrusage(RUSAGE_CHILDREN, &after);
    getrusage(RUSAGE_SELF, &self);
    mine->agent_cpu_seconds = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                              (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                              1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                              1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    mine->peak_rss_bytes = self.ru_maxrss * INT64_C(1024);
    RUDDER_TRY(run_log_flush(&train->log, error));
    RUDDER_TRY(record_stop(&train->record, error));
    RUDDER_TRY(train_gather_traffic(train, error));
    RUDDER_TRY(comm_gather(&train->compute, mine, sizeof *mine, train->result.detail, error));
    train->result.n_details = train->compute.size;
    return RUDDER_OK;
}

static void train_close(train_t *train)
{
    loader_close(train->loader);
    rudder_close(train->handle, TRAIN_CLOSE_MS);
    sampler_close(train->sampler);
    evaluate_close(train->evaluate);
    free(train->start_weight);
    free(train->scratch);
    free(train->d_logits);
    adam_close(&train->adam);
    sage_close(train->sage);
    team_close(train->team);
    exchange_close(train->evaluate_exchange);
    exchange_close(train->exchange);
    part_close(&train->part);
    parts_close(&train->parts);
    record_close(&train->record);
    run_log_close(&train->log);
    comm_close(&train->evaluating);
    comm_close(&train->loading);
    comm_close(&train->compute);
    free(train->result.epoch);
    free(train->result.detail);
    free(train->result.traffic);
    pthread_mutex_destroy(&train->lock);
    free(train);
}

rudder_status_t train_run(const train_config_t *config, int threads_multiple, int *agreed, rudder_error_t *error)
{
    *agreed = 1;
    train_t *train = calloc(1, sizeof *train);
    if (train == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the trainer");
    }
    train->config = config;
    train->threads_multiple = threads_multiple;
    train->begin = clock_seconds();
    train->result.status = "running";
    train->result.valid = train->result.test = NAN;
    pthread_mutex_init(&train->lock, NULL);
    run_log_init(&train->log);
    record_init(&train->record);
    rudder_status_t status;
    if ((status = comm_open(config->deadline, &train->compute, error)) != RUDDER_OK ||
        (status = comm_open(config->deadline, &train->loading, error)) != RUDDER_OK ||
        (status = comm_open(config->deadline, &train->evaluating, error)) != RUDDER_OK) {
        train_close(train);
        return status;
    }
    log_setup(LOG_INFO, train->compute.rank, 1);
    status = comm_agree(&train->compute, stop_watch(train_stopped, train, error), error);
    if (status == RUDDER_OK) {
        status = train_open(train, agreed, error);
    }
    *agreed = *agreed && status != RUDDER_E_PEER;
    if (status == RUDDER_OK) {
        train_tell(train);
        train->compute.phase = "training";
        train->loading.phase = "loading a minibatch";
        train->evaluating.phase = "evaluation";
        status = train_epochs(train, error);
        if (status == RUDDER_OK) {
            status = train_gather(train, error);
        }
        *agreed = status == RUDDER_OK;
    }
    if (status != RUDDER_OK) {
        record_stop(&train->record, NULL);
    }
    train_finish(train, status == RUDDER_OK ? "ok" : "failed", status == RUDDER_OK ? NULL : error, 0);
    if (*agreed) {
        stop_unwatch();
        train_close(train);
    }
    return status;
}
