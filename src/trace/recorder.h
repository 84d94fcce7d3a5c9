/*
 * Writing a trace (.rtr, docs/formats.md) while training runs: streamed in blocks of delta and varint coded ids under zstd,
 * each with its checksum, so that a killed run leaves all whole blocks readable. Used by one thread.
 */
#ifndef RUDDER_TRACE_RECORDER_H
#define RUDDER_TRACE_RECORDER_H

#include "trace/reader.h"

typedef struct recorder recorder_t;

/*
 * Creates the file, which must not exist, and writes the header, halo and owners included. info is not kept. The recorder
 * holds at most 16 MiB and 50 bytes for each id of the largest minibatch. Errors: IO, MEMORY.
 */
rudder_status_t recorder_open(const char *path, const trace_info_t *info, recorder_t **recorder, rudder_error_t *error);
/*
 * Minibatches come in order. What minibatch->times lacks (NAN) may be told later. Errors: IO (no room on the disk; all that
 * follows fails with the same words, what was written stays readable), ARGUMENT (ids below 0 or, where owners are known, not
 * of another rank; more misses than ids), UNSUPPORTED (more than TRACE_MAX_IDS ids), MEMORY.
 */
rudder_status_t recorder_add(recorder_t *recorder, const trace_minibatch_t *minibatch, rudder_error_t *error);
/*
 * The times of minibatch `number` (from 0), once they are known, in order; what is NAN stays as it was. A block is written
 * when it is long enough and the times of all its minibatches are known, or when 4 MiB wait: then they are written without,
 * and what comes later of them is dropped. Errors: STATE (no such minibatch yet), IO, MEMORY.
 */
rudder_status_t recorder_times(recorder_t *recorder, int64_t number, const trace_times_t *times, rudder_error_t *error);
/* Writes what is held. The recorder stays open. */
rudder_status_t recorder_flush(recorder_t *recorder, rudder_error_t *error);
/* Flushes and closes; NULL is allowed. */
rudder_status_t recorder_close(recorder_t *recorder, rudder_error_t *error);

#endif
