/*
 * The bound: the fewest rows that any buffer can fetch on a trace, from an empty buffer and with everything counted.
 * Belady's MIN with bypass: all ids of a minibatch are served first, then the rows kept are those of the buffer and of the
 * minibatch with the nearest next use. No policy may beat it.
 */
#ifndef RUDDER_TRACE_BOUND_H
#define RUDDER_TRACE_BOUND_H

#include <stdint.h>

#include "rudder/status.h"

/*
 * Rows fetched with `capacity` slots. Minibatch t asks for ids[offsets[t] .. offsets[t + 1]), remote and >= 0, duplicates
 * allowed. remote_rows: distinct ids of each minibatch, summed; may be NULL. per_minibatch[n_minibatches]: rows fetched in
 * each; may be NULL. O(ids). Errors: MEMORY.
 */
rudder_status_t bound_fetched(const int64_t *ids, const int64_t *offsets, int64_t n_minibatches, int64_t capacity,
                              int64_t *fetched, int64_t *remote_rows, int32_t *per_minibatch, rudder_error_t *error);

#endif
