/* What is told of a trace: by `rudder inspect` and by `rudder import-trace`, in the same words. */
#ifndef RUDDER_CLI_TRACE_FACTS_H
#define RUDDER_CLI_TRACE_FACTS_H

#include <stdint.h>

#include "trace/reader.h"

/* What adds up over the minibatches. Zeroed: none yet. */
typedef struct trace_facts {
    int64_t minibatches, ids, most_ids, empty;
    int64_t known, miss, fill;          /* minibatches whose fetched rows are known, and those rows */
    int64_t windows, announced;         /* minibatches whose window is known, and the sum of the windows */
    int64_t timed[2];                   /* minibatches whose loader and trainer times are known */
    double loader, trainer;             /* seconds */
    int64_t *seen, seen_size, distinct; /* hash table of ids: at most 24 bytes for each distinct one; -1: empty */
} trace_facts_t;

/* Errors: MEMORY. */
rudder_status_t trace_facts_add(trace_facts_t *facts, const trace_minibatch_t *minibatch, rudder_error_t *error);
/* Errors: MEMORY, IO. */
rudder_status_t trace_facts_print(const trace_facts_t *facts, const trace_info_t *info, rudder_error_t *error);
void trace_facts_free(trace_facts_t *facts);

#endif
