/* What must hold of every trace, whoever reads or writes it. */
#ifndef RUDDER_TRACE_VALID_H
#define RUDDER_TRACE_VALID_H

#include "trace/reader.h"

/* Which ids may come in a minibatch: [first, last] without the rank's own ones. */
typedef struct valid_range {
    int64_t first, last, own, n_own;
} valid_range_t;

/* Owners that are not known own all ids from 0 on, and the rank none. */
valid_range_t valid_range_of(const trace_info_t *info);
/* The place of an id that may not come, -1: there is none. */
int64_t valid_ids(const valid_range_t *range, const int64_t *ids, int64_t n);

/* Ids of a halo are distinct: whoever keeps tables of them relies on it. Errors: DATA, MEMORY. */
rudder_status_t valid_halo(const char *path, const int64_t *halo, int64_t n, rudder_error_t *error);

#endif
