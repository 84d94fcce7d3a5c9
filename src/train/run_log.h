/*
 * The run directory (docs/formats.md) as one rank writes it: steps.rankN.jsonl from the compute thread, decisions.rankN.jsonl
 * from the thread that calls the library. Lines are written whole, so that a killed run leaves readable files.
 */
#ifndef RUDDER_TRAIN_RUN_LOG_H
#define RUDDER_TRAIN_RUN_LOG_H

#include <stdio.h>

#include "base/json.h"
#include "rudder/rudder.h"
#include "train/train.h"

/* Zeroed: not open. */
typedef struct run_log {
    FILE *steps, *decisions;
    json_t step, decision; /* line buffers of the two threads */
} run_log_t;

/*
 * Makes the run directory: `wanted`, or when that is NULL runs/<date-time>-<name>, with a number added if it is taken.
 * path[size]: the result. Errors: USAGE when `wanted` is there and not empty, IO. For rank 0.
 */
rudder_status_t run_directory(const char *wanted, const char *name, char *path, size_t size, rudder_error_t *error);

/* Makes `directory` if it is not there (another host) and opens the two files of a rank. Errors: IO. */
rudder_status_t run_log_open(const char *directory, int32_t rank, run_log_t *log, rudder_error_t *error);
void run_log_step(run_log_t *log, int64_t epoch, int64_t step, double loss, const train_counts_t *counts,
                  const train_times_t *times);
void run_log_decision(run_log_t *log, const rudder_decision_t *decision);
/* To be called once an epoch: lines reach the disk. Errors: IO (the disk is full). */
rudder_status_t run_log_flush(run_log_t *log, rudder_error_t *error);
void run_log_close(run_log_t *log);

/* Writes text to a temporary name, then renames it. Errors: IO. */
rudder_status_t run_write(const char *directory, const char *name, const char *text, rudder_error_t *error);

/* {"remote": ..., ...} and the times of either thread as members of open objects. */
void run_counts_json(json_t *json, const train_counts_t *counts);
void run_loader_times_json(json_t *json, const char *key, const train_times_t *times);
void run_compute_times_json(json_t *json, const char *key, const train_times_t *times);

#endif
