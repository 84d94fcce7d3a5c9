/*
 * The trace of a rank (trace.rankN.rtr) while it trains: written by the thread that loads minibatches, and closed by
 * whoever ends the run, which may be another thread.
 */
#ifndef RUDDER_TRAIN_RECORD_H
#define RUDDER_TRAIN_RECORD_H

#include <pthread.h>

#include "trace/recorder.h"

typedef struct record {
    pthread_mutex_t lock;
    recorder_t *recorder; /* NULL: nothing is recorded */
} record_t;

/* A record without a file: what is told it is dropped. */
void record_init(record_t *record);
/* Creates DIRECTORY/trace.rankN.rtr for the rank of *info. Errors: IO, MEMORY. */
rudder_status_t record_open(const char *directory, const trace_info_t *info, record_t *record, rudder_error_t *error);
/* As recorder_add() and recorder_times(). */
rudder_status_t record_add(record_t *record, const trace_minibatch_t *minibatch, rudder_error_t *error);
rudder_status_t record_times(record_t *record, int64_t number, const trace_times_t *times, rudder_error_t *error);
/* Writes what is held and closes the file; what is told later is dropped. Any thread. Errors: IO. */
rudder_status_t record_stop(record_t *record, rudder_error_t *error);
void record_close(record_t *record);

#endif
