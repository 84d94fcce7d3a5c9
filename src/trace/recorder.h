/*
 * Writing a trace (.rtr, docs/formats.md) while training runs: streamed in blocks of delta and varint coded ids under zstd,
 * each with its checksum, so that a killed run leaves all whole blocks readable. Used by one thread.
 */
#ifndef RUDDER_TRACE_RECORDER_H
#define RUDDER_TRACE_RECORDER_H

#include "trace/reader.h"

typedef struct recorder recorder_t;

/* Creates the file and writes the header, halo and owners included. info is not kept. Errors: IO, MEMORY. */
rudder_status_t recorder_open(const char *path, const trace_info_t *info, recorder_t **recorder, rudder_error_t *error);
/* Minibatches come in order. What minibatch->times lacks (NAN) may be told later. Errors: IO, MEMORY. */
rudder_status_t recorder_add(recorder_t *recorder, const trace_minibatch_t *minibatch, rudder_error_t *error);
/*
 * The times of minibatch `number` (from 0), once they are known; in order. A block is written when it is long enough and the
 * times of all its minibatches are known, so no more than a block and the minibatches in flight are held.
 */
rudder_status_t recorder_times(recorder_t *recorder, int64_t number, const trace_times_t *times, rudder_error_t *error);
/* Writes what is held. The recorder stays open. */
rudder_status_t recorder_flush(recorder_t *recorder, rudder_error_t *error);
/* Flushes and closes; NULL is allowed. */
rudder_status_t recorder_close(recorder_t *recorder, rudder_error_t *error);

#endif
