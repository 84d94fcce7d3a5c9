/*
 * A recorded trace as a whole in memory: the remote ids of every minibatch of a run on one rank, and its halo. For what needs
 * to see all of it (the bound, look-ahead of everything); reader.h streams.
 */
#ifndef RUDDER_TRACE_TRACE_H
#define RUDDER_TRACE_TRACE_H

#include <stdint.h>

#include "rudder/status.h"

typedef struct trace {
    int64_t *ids, *offsets; /* minibatch t: ids[offsets[t] .. offsets[t + 1]) */
    int64_t n_ids, n_minibatches;
    int64_t most_ids; /* of one minibatch */
    int64_t *halo;
    uint32_t *halo_degree; /* NULL: not known */
    int64_t n_halo;
} trace_t;

/* Reads a trace of any kind (reader.h) whole. Errors: IO, DATA, MEMORY. */
rudder_status_t trace_load(const char *path, trace_t *trace, rudder_error_t *error);
void trace_free(trace_t *trace);

#endif
