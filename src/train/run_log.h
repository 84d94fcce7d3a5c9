/*
 * The run directory (docs/formats.md) as one rank writes it: steps.rankN.jsonl from the compute thread,
 * decisions.rankN.jsonl from the thread that calls the library. Only whole lines are handed to the system, so that a
 * killed run leaves files that can be read.
 */
#ifndef RUDDER_TRAIN_RUN_LOG_H
#define RUDDER_TRAIN_RUN_LOG_H

#include <pthread.h>

#include "base/json.h"
#include "rudder/rudder.h"
#include "train/train.h"

enum { RUN_PENDING_BYTES = 1 << 16 };

/* A file of lines. The lock is for the one who stops the run from another thread. */
typedef struct run_file {
    pthread_mutex_t lock;
    int fd;     /* -1: closed */
    int failed; /* errno of a write that failed, 0: none */
    size_t n_pending;
    json_t line; /* of the thread that writes */
    char pending[RUN_PENDING_BYTES];
} run_file_t;

typedef struct run_log {
    run_file_t steps, decisions;
} run_log_t;

/*
 * Makes the run directory: `wanted`, or when that is NULL runs/<date-time>-<name>, with a number added if it is taken.
 * path[size]: the result. Errors: USAGE when `wanted` is there and not empty, IO. For rank 0.
 */
rudder_status_t run_directory(const char *wanted, const char *name, char *path, size_t size, rudder_error_t *error);

/* A log without files: what is told it is dropped. */
void run_log_init(run_log_t *log);
/* Makes `directory` if it is not there (another host) and opens the two files of a rank. Errors: IO. */
rudder_status_t run_log_open(const char *directory, int32_t rank, run_log_t *log, rudder_error_t *error);
void run_log_step(run_log_t *log, int64_t epoch, int64_t step, double loss, const train_counts_t *counts,
                  const train_times_t *times);
void run_log_decision(run_log_t *log, const rudder_decision_t *decision);
/* To be called once an epoch: lines reach the disk. Errors: IO (the disk is full). */
rudder_status_t run_log_flush(run_log_t *log, rudder_error_t *error);
/* Closes the files after a flush: later lines are dropped. Any thread. */
void run_log_stop(run_log_t *log);
void run_log_close(run_log_t *log);

/* Writes text to a temporary name, then renames it. Errors: IO. */
rudder_status_t run_write(const char *directory, const char *name, const char *text, rudder_error_t *error);

/* {"remote": ..., ...} and the times of either thread as members of open objects. */
void run_counts_json(json_t *json, const train_counts_t *counts);
void run_loader_times_json(json_t *json, const char *key, const train_times_t *times);
void run_compute_times_json(json_t *json, const char *key, const train_times_t *times);

#endif
