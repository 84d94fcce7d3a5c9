/* Checks that readers and writers of traces share; those of ids are in the way of every replay and cost little. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/valid.h"

valid_range_t valid_range_of(const trace_info_t *info)
{
    const int64_t *offset = info->owner_offset;
    if (offset == NULL) {
        return (valid_range_t){.last = INT64_MAX};
    }
    return (valid_range_t){.first = offset[0],
                           .last = offset[info->ranks] - 1,
                           .own = offset[info->rank],
                           .n_own = offset[info->rank + 1] - offset[info->rank]};
}

static int valid_is_bad(const valid_range_t *range, int64_t id)
{
    return (id < range->first) | (id > range->last) | ((uint64_t)id - (uint64_t)range->own < (uint64_t)range->n_own);
}

int64_t valid_ids(const valid_range_t *range, const int64_t *ids, int64_t n)
{
    const valid_range_t here = *range;
    int bad = 0;
    for (int64_t i = 0; i < n; i++) { /* no way out, so that it is done by vectors */
        bad |= valid_is_bad(&here, ids[i]);
    }
    for (int64_t i = 0; i < n && bad; i++) {
        if (valid_is_bad(&here, ids[i])) {
            return i;
        }
    }
    return -1;
}

static int valid_compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

rudder_status_t valid_halo(const char *path, const int64_t *halo, int64_t n, rudder_error_t *error)
{
    int64_t i = 1, *sorted;
    while (i < n && halo[i] > halo[i - 1]) {
        i++;
    }
    if (i >= n) {
        return RUDDER_OK;
    }
    if ((sorted = malloc((size_t)n * sizeof *sorted)) == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory to check a halo of %lld", path, (long long)n);
    }
    memcpy(sorted, halo, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, valid_compare);
    for (i = 1; i < n && sorted[i] != sorted[i - 1]; i++) {
    }
    const int64_t twice = i < n ? sorted[i] : -1;
    free(sorted);
    return twice < 0 ? RUDDER_OK
                     : RUDDER_FAIL(error, RUDDER_E_DATA, "%s: halo: expected distinct ids, found %lld twice", path,
                                   (long long)twice);
}
