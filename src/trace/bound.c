/*
 * Which rows are kept does not matter, only when each will be used next: the buffer is a count of rows for each minibatch
 * to come. The rows due now are the hits; what the minibatch asked for is counted where it is due next; what is too much
 * leaves from the farthest end.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/rng.h"
#include "trace/bound.h"

/* Minibatch in which an id was last seen, going backwards. Open addressing, half empty. */
typedef struct bound_seen {
    int64_t id; /* -1: empty */
    int64_t minibatch;
} bound_seen_t;

static bound_seen_t *bound_find(bound_seen_t *seen, uint64_t size, int64_t id)
{
    uint64_t at = rng_mix((uint64_t)id) & (size - 1);
    while (seen[at].id != id && seen[at].id != -1) {
        at = (at + 1) & (size - 1);
    }
    return &seen[at];
}

/* next[i]: the minibatch that asks for ids[i] again, n_minibatches: none; -1: a duplicate in its own minibatch. */
static void bound_next_uses(const int64_t *ids, const int64_t *offsets, int64_t n_minibatches, bound_seen_t *seen,
                            uint64_t size, int64_t *next)
{
    for (uint64_t i = 0; i < size; i++) {
        seen[i].id = -1;
    }
    for (int64_t t = n_minibatches - 1; t >= 0; t--) {
        for (int64_t i = offsets[t]; i < offsets[t + 1]; i++) {
            bound_seen_t *entry = bound_find(seen, size, ids[i]);
            const int64_t again = entry->id == -1 ? n_minibatches : entry->minibatch;
            next[i - offsets[0]] = again == t ? -1 : again;
            *entry = (bound_seen_t){.id = ids[i], .minibatch = t};
        }
    }
}

rudder_status_t bound_fetched(const int64_t *ids, const int64_t *offsets, int64_t n_minibatches, int64_t capacity,
                              int64_t *fetched, int64_t *remote_rows, int32_t *per_minibatch, rudder_error_t *error)
{
    const int64_t n = n_minibatches > 0 ? offsets[n_minibatches] - offsets[0] : 0;
    uint64_t size = 16;
    while (size < 2 * (uint64_t)n) {
        size *= 2;
    }
    rudder_status_t status = RUDDER_OK;
    bound_seen_t *seen = malloc(size * sizeof *seen);
    int64_t *next = malloc((size_t)(n + 1) * sizeof *next);
    int64_t *due = calloc((size_t)n_minibatches + 1, sizeof *due); /* [t]: rows kept whose next use is t */
    if (seen == NULL || next == NULL || due == NULL) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "bound of a trace of %lld ids: no memory", (long long)n);
        goto end;
    }
    bound_next_uses(ids, offsets, n_minibatches, seen, size, next);
    int64_t rows = 0, misses = 0, asked = 0, farthest = 0;
    for (int64_t t = 0; t < n_minibatches; t++) {
        const int64_t before = misses;
        misses -= due[t];
        rows -= due[t];
        for (int64_t i = offsets[t] - offsets[0]; i < offsets[t + 1] - offsets[0]; i++) {
            asked += next[i] >= 0;
            misses += next[i] >= 0;
            if (next[i] >= 0 && next[i] < n_minibatches) {
                due[next[i]]++;
                rows++;
                farthest = next[i] > farthest ? next[i] : farthest;
            }
        }
        if (per_minibatch != NULL) {
            per_minibatch[t] = (int32_t)(misses - before);
        }
        while (rows > capacity) {
            const int64_t excess = rows - capacity, leave = due[farthest] < excess ? due[farthest] : excess;
            due[farthest] -= leave;
            rows -= leave;
            farthest -= due[farthest] == 0;
        }
    }
    *fetched = misses;
    if (remote_rows != NULL) {
        *remote_rows = asked;
    }
end:
    free(seen);
    free(next);
    free(due);
    return status;
}
