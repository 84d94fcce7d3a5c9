/* The run directory: made once, never overwritten. */
#include "train/run_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "control/context.h"

/* mkdir -p. *made: the last folder was not there before. */
static rudder_status_t run_make(const char *path, int *made, rudder_error_t *error)
{
    char partial[4096];
    if (snprintf(partial, sizeof partial, "%s", path) >= (int)sizeof partial || path[0] == '\0') {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "the run directory: expected a path of 1 to %zu bytes, found %zu",
                           sizeof partial - 1, strlen(path));
    }
    for (char *c = partial + 1;; c++) {
        if (*c != '/' && *c != '\0') {
            continue;
        }
        const char end = *c;
        *c = '\0';
        *made = mkdir(partial, 0777) == 0;
        if (!*made && errno != EEXIST) {
            return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be made: %s", partial, strerror(errno));
        }
        *c = end;
        if (end == '\0') {
            return RUDDER_OK;
        }
    }
}

static rudder_status_t run_check_empty(const char *path, rudder_error_t *error)
{
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return RUDDER_FAIL(error, errno == ENOTDIR ? RUDDER_E_USAGE : RUDDER_E_IO,
                           "%s: expected a folder for the run: %s", path, strerror(errno));
    }
    int entries = 0;
    while (readdir(directory) != NULL) {
        entries++;
    }
    closedir(directory);
    if (entries > 2) {
        return RUDDER_FAIL(
            error, RUDDER_E_USAGE,
            "%s: expected a new or empty folder for the run, found %d entries; runs are never overwritten", path,
            entries - 2);
    }
    return RUDDER_OK;
}

rudder_status_t run_directory(const char *wanted, const char *name, char *path, size_t size, rudder_error_t *error)
{
    int made;
    if (wanted != NULL) {
        RUDDER_TRY(run_make(wanted, &made, error));
        snprintf(path, size, "%s", wanted);
        return run_check_empty(path, error);
    }
    char stamp[32];
    struct tm local;
    const time_t now = time(NULL);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    snprintf(path, size, "runs/%s-%s", stamp, name);
    for (int number = 2;; number++) {
        RUDDER_TRY(run_make(path, &made, error));
        if (made) {
            return RUDDER_OK;
        }
        snprintf(path, size, "runs/%s-%s-%d", stamp, name, number);
    }
}

static void run_file_init(run_file_t *file)
{
    pthread_mutex_init(&file->lock, NULL);
    file->fd = -1;
}

void run_log_init(run_log_t *log)
{
    run_file_init(&log->steps);
    run_file_init(&log->decisions);
}

static rudder_status_t run_file_open(const char *directory, const char *what, int32_t rank, run_file_t *file,
                                     rudder_error_t *error)
{
    char path[4096 + 64];
    snprintf(path, sizeof path, "%s/%s.rank%d.jsonl", directory, what, rank);
    file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->fd < 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be made: %s", path, strerror(errno));
    }
    return RUDDER_OK;
}

rudder_status_t run_log_open(const char *directory, int32_t rank, run_log_t *log, rudder_error_t *error)
{
    int made;
    RUDDER_TRY(run_make(directory, &made, error));
    RUDDER_TRY(run_file_open(directory, "steps", rank, &log->steps, error));
    return run_file_open(directory, "decisions", rank, &log->decisions, error);
}

/* Writes bytes; remembers what went wrong. */
static void run_file_put(run_file_t *file, const char *bytes, size_t n)
{
    while (n > 0 && file->fd >= 0 && file->failed == 0) {
        const ssize_t written = write(file->fd, bytes, n);
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        } else if (errno != EINTR) {
            file->failed = errno;
        }
    }
}

static void run_file_flush(run_file_t *file)
{
    run_file_put(file, file->pending, file->n_pending);
    file->n_pending = 0;
}

/* The line that was built in file->line. */
static void run_file_line(run_file_t *file)
{
    json_t *line = &file->line;
    pthread_mutex_lock(&file->lock);
    if (!line->failed) {
        if (file->n_pending + line->length + 1 > sizeof file->pending) {
            run_file_flush(file);
        }
        if (line->length + 1 > sizeof file->pending) {
            run_file_put(file, line->text, line->length);
        } else {
            memcpy(file->pending + file->n_pending, line->text, line->length);
            file->n_pending += line->length;
        }
        file->pending[file->n_pending++] = '\n';
    }
    pthread_mutex_unlock(&file->lock);
    json_reset(line);
}

void run_counts_json(json_t *json, const train_counts_t *counts)
{
    json_int(json, "seeds", counts->seeds);
    json_int(json, "input", counts->input);
    json_int(json, "remote", counts->remote);
    json_int(json, "hit", counts->hit);
    json_int(json, "miss", counts->miss);
    json_int(json, "fill", counts->fill);
    json_int(json, "bytes", counts->bytes);
}

void run_loader_times_json(json_t *json, const char *key, const train_times_t *times)
{
    json_object(json, key);
    json_seconds(json, "sample", times->sample);
    json_seconds(json, "plan", times->plan);
    json_seconds(json, "exchange", times->exchange);
    json_seconds(json, "complete", times->complete);
    json_seconds(json, "gather", times->gather);
    json_seconds(json, "idle", times->idle);
    json_end_object(json);
}

void run_compute_times_json(json_t *json, const char *key, const train_times_t *times)
{
    json_object(json, key);
    json_seconds(json, "wait", times->wait);
    json_seconds(json, "forward", times->forward);
    json_seconds(json, "backward", times->backward);
    json_seconds(json, "allreduce", times->allreduce);
    json_seconds(json, "step", times->step);
    json_seconds(json, "evaluate", times->evaluate);
    json_end_object(json);
}

void run_log_step(run_log_t *log, int64_t epoch, int64_t step, double loss, const train_counts_t *counts,
                  const train_times_t *times)
{
    json_t *json = &log->steps.line;
    json_object(json, NULL);
    json_int(json, "epoch", epoch);
    json_int(json, "step", step);
    json_double(json, "loss", loss);
    run_counts_json(json, counts);
    json_int(json, "window", counts->window);
    run_loader_times_json(json, "loader", times);
    run_compute_times_json(json, "compute", times);
    json_end_object(json);
    run_file_line(&log->steps);
}

static const char *run_verdict(rudder_verdict_t verdict)
{
    return verdict == RUDDER_REPLACE ? "replace" : verdict == RUDDER_KEEP ? "keep" : "none";
}

/* "up", "same", "down" and whether that came true; null for what is not known. */
static void run_prediction_json(json_t *json, const char *key, int32_t predicted, int32_t came_true)
{
    json_object(json, key);
    json_string(json, "said",
                predicted == RUDDER_UP     ? "up"
                : predicted == RUDDER_SAME ? "same"
                : predicted == RUDDER_DOWN ? "down"
                                           : NULL);
    if (came_true < 0) {
        json_null(json, "true");
    } else {
        json_bool(json, "true", came_true);
    }
    json_end_object(json);
}

void run_log_decision(run_log_t *log, const rudder_decision_t *decision)
{
    json_t *json = &log->decisions.line;
    const rudder_answer_t *answer = &decision->answer;
    const rudder_outcome_t *outcome = &decision->outcome;
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)answer->prompt_hash);
    json_object(json, NULL);
    json_int(json, "number", decision->number);
    json_int(json, "asked", decision->asked_minibatch);
    json_int(json, "answered", decision->answered_minibatch);
    json_int(json, "applied", decision->applied_minibatch);
    json_string(json, "status", rudder_outcome_name(outcome->status));
    json_bool(json, "from_fallback", decision->from_fallback);
    json_string(json, "verdict", run_verdict(answer->verdict));
    json_double(json, "margin", answer->margin);
    json_double(json, "latency_ms", answer->latency_ms);
    json_int(json, "tokens", answer->tokens);
    json_string(json, "prompt", answer->prompt);
    json_string(json, "prompt_hash", hash);
    json_string(json, "explanation", answer->explanation);
    json_object(json, "prediction");
    run_prediction_json(json, "hits", answer->predict_hits, decision->prediction_hits_true);
    run_prediction_json(json, "rows", answer->predict_rows, decision->prediction_rows_true);
    json_end_object(json);
    json_int(json, "replaced_rows", outcome->replaced_rows);
    json_double(json, "replaced_share", outcome->replaced_share);
    if (outcome->known) {
        json_object(json, "effect");
        json_double(json, "hit_rate_change", outcome->hit_rate_change);
        json_double(json, "fetched_change", outcome->fetched_change);
        json_end_object(json);
    } else {
        json_null(json, "effect");
    }
    json_object(json, "context");
    context_json(json, &decision->context);
    json_end_object(json);
    json_end_object(json);
    run_file_line(&log->decisions);
}

rudder_status_t run_log_flush(run_log_t *log, rudder_error_t *error)
{
    run_file_t *files[] = {&log->steps, &log->decisions};
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&files[i]->lock);
        run_file_flush(files[i]);
        failed = files[i]->failed != 0 ? files[i]->failed : failed;
        pthread_mutex_unlock(&files[i]->lock);
    }
    if (failed != 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "the run directory cannot be written: %s", strerror(failed));
    }
    return RUDDER_OK;
}

static void run_file_stop(run_file_t *file)
{
    pthread_mutex_lock(&file->lock);
    run_file_flush(file);
    if (file->fd >= 0) {
        close(file->fd);
        file->fd = -1;
    }
    pthread_mutex_unlock(&file->lock);
}

void run_log_stop(run_log_t *log)
{
    run_file_stop(&log->steps);
    run_file_stop(&log->decisions);
}

void run_log_close(run_log_t *log)
{
    run_log_stop(log);
    json_free(&log->steps.line);
    json_free(&log->decisions.line);
    pthread_mutex_destroy(&log->steps.lock);
    pthread_mutex_destroy(&log->decisions.lock);
}

rudder_status_t run_write(const char *directory, const char *name, const char *text, rudder_error_t *error)
{
    char path[4096 + 64], temporary[4096 + 80];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    snprintf(temporary, sizeof temporary, "%s.part", path);
    FILE *file = fopen(temporary, "we");
    if (file == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be made: %s", temporary, strerror(errno));
    }
    const int written = fputs(text, file) >= 0 && fputc('\n', file) != EOF;
    if (fclose(file) != 0 || !written || rename(temporary, path) != 0) {
        const int why = errno;
        unlink(temporary);
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", path, strerror(why));
    }
    return RUDDER_OK;
}
