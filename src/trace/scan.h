/*
 * The first reading of a trace: what must be known before it is replayed (how much memory, how large a buffer), and which
 * traces belong to one run.
 */
#ifndef RUDDER_TRACE_SCAN_H
#define RUDDER_TRACE_SCAN_H

#include <stdatomic.h>

#include "trace/reader.h"

typedef struct scan {
    const char *path;
    trace_info_t info; /* its arrays are gone: NULL */
    int has_owners, has_degrees, torn;
    int64_t minibatches, ids, remote; /* remote: distinct ids of each minibatch, summed */
    int64_t distinct;                 /* ids of the whole trace */
    int64_t known;                    /* those, and the halo's */
    int64_t largest;                  /* of both; -1: there is none */
    int64_t most_ids;                 /* of a minibatch */
    int64_t most_announced;           /* later minibatches that were announced; -1: some are not known */
    /* [minibatches] seconds, NAN where not known; NULL: of none. See scan_group_t. */
    float *sample, *compute;
    int64_t reader_bytes; /* that one reader of it takes */
} scan_t;

/*
 * Reads a file from front to back; it is read again later, so a pipe is an error. progress grows by the ids read.
 * scan->path is `path` itself. O(distinct ids) memory. Errors: IO, DATA, MEMORY.
 */
rudder_status_t scan_trace(const char *path, scan_t *scan, _Atomic int64_t *progress, rudder_error_t *error);
/* Zeroed: nothing is done. */
void scan_free(scan_t *scan);

/*
 * Traces of the ranks of one run, or a single one that stands alone. Sampling and the allreduce are collective: what a rank
 * measured there contains its wait for the last one to come, which measured the least.
 */
typedef struct scan_group {
    const scan_t *const *trace; /* [n], by rank */
    int32_t n;
    int64_t minibatches; /* that all of them have */
    int timed;           /* some time of some minibatch is known */
} scan_group_t;

/* Seconds of minibatch t: the least of the ranks; 0 where none is known. */
double scan_sample(const scan_group_t *group, int64_t t);
double scan_compute(const scan_group_t *group, int64_t t);

/*
 * Sorts by[n], pointers to the scans, so that each group lies together, groups in the order in which they first appear;
 * groups[n]: the *n_groups of them. Errors: DATA (one rank of a run twice).
 */
rudder_status_t scan_groups(const scan_t *scans, int32_t n, const scan_t **by, scan_group_t *groups, int32_t *n_groups,
                            rudder_error_t *error);

#endif
