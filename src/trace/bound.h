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

/*
 * The same, for a trace that is read once from front to back and never held: memory for each distinct id and, for each
 * capacity, for each minibatch. Ids need not be known beforehand.
 */
typedef struct bound bound_t;
rudder_status_t bound_open(const int64_t *capacities, int32_t n_capacities, bound_t **bound, rudder_error_t *error);
/* The next minibatch. O(n + minibatches since a buffer was last full), for each capacity. Errors: MEMORY. */
rudder_status_t bound_add(bound_t *bound, const int64_t *ids, int64_t n, rudder_error_t *error);
/* So far, with capacities[i]. Every prefix of a trace has its bound. */
int64_t bound_rows(const bound_t *bound, int32_t i);
/* So far: distinct ids of each minibatch, summed; distinct ids of all. */
int64_t bound_remote(const bound_t *bound);
int64_t bound_distinct(const bound_t *bound);
/* Whether any minibatch asked for this id. */
int bound_knows(const bound_t *bound, int64_t id);
int64_t bound_memory(const bound_t *bound);
/* Bytes that will do for a trace with so many distinct ids and minibatches. */
int64_t bound_memory_for(int64_t distinct, int64_t minibatches, int32_t n_capacities);
void bound_close(bound_t *bound); /* NULL is allowed */

#endif
