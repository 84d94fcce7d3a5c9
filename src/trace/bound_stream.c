/*
 * The bound without knowing what comes. A row that is kept from one use to the next is an interval of time; which intervals
 * fit, no more than `capacity` at once, can be chosen in the order of their ends, each accepted if there is still room all
 * along it: that is the most that can fit. So a hit is decided when it happens, looking back: between the minibatches since
 * the id was last used there must have been a slot to spare. Of intervals with one end the shorter come first.
 *
 * A gap is the time between a minibatch and the next. No interval that spans a full gap is accepted any more, so only gaps
 * since the last full one are looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/rng.h"
#include "trace/bound.h"

enum { BOUND_FIRST_SIZE = 1 << 10 };

/* When an id was last used. Open addressing, at most half full. */
typedef struct bound_last {
    int64_t id; /* -1: empty */
    int64_t minibatch;
} bound_last_t;

/* One capacity. */
typedef struct bound_buffer {
    int64_t capacity, hits;
    int64_t open;           /* first gap after the last full one */
    int64_t *kept, *accept; /* [gap]: rows kept over it; intervals accepted now that begin there */
    int64_t kept_size, accept_size;
} bound_buffer_t;

struct bound {
    bound_last_t *last;
    uint64_t size;
    int64_t distinct, remote, minibatches;
    int64_t *reused; /* [gap]: ids of the minibatch that were last used before it; zeroed between minibatches */
    int64_t reused_size;
    int32_t n;
    bound_buffer_t buffer[];
};

static bound_last_t *bound_last_of(const bound_t *bound, int64_t id)
{
    uint64_t at = rng_mix((uint64_t)id) & (bound->size - 1);
    while (bound->last[at].id != id && bound->last[at].id != -1) {
        at = (at + 1) & (bound->size - 1);
    }
    return &bound->last[at];
}

static rudder_status_t bound_no_memory(const bound_t *bound, rudder_error_t *error)
{
    return RUDDER_FAIL(error, RUDDER_E_MEMORY, "bound of a trace of %lld distinct ids, %lld minibatches: no memory",
                       (long long)bound->distinct, (long long)bound->minibatches);
}

static rudder_status_t bound_resize(bound_t *bound, uint64_t size, rudder_error_t *error)
{
    bound_last_t *before = bound->last, *last = malloc(size * sizeof *last);
    const uint64_t size_before = bound->size;
    if (last == NULL) {
        return bound_no_memory(bound, error);
    }
    for (uint64_t i = 0; i < size; i++) {
        last[i].id = -1;
    }
    bound->last = last;
    bound->size = size;
    for (uint64_t i = 0; i < size_before; i++) {
        if (before[i].id != -1) {
            *bound_last_of(bound, before[i].id) = before[i];
        }
    }
    free(before);
    return RUDDER_OK;
}

rudder_status_t bound_open(const int64_t *capacities, int32_t n_capacities, bound_t **out, rudder_error_t *error)
{
    bound_t *bound = calloc(1, sizeof *bound + (size_t)n_capacities * sizeof *bound->buffer);
    if (bound == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the bound");
    }
    bound->n = n_capacities;
    for (int32_t i = 0; i < n_capacities; i++) {
        bound->buffer[i].capacity = capacities[i];
    }
    const rudder_status_t status = bound_resize(bound, BOUND_FIRST_SIZE, error);
    if (status != RUDDER_OK) {
        bound_close(bound);
        return status;
    }
    *out = bound;
    return RUDDER_OK;
}

/* Accepts what fits of the intervals that end in minibatch `now`. */
static void bound_accept(const int64_t *reused, int64_t now, bound_buffer_t *buffer)
{
    int64_t *kept = buffer->kept, *accept = buffer->accept;
    int64_t most = 0, first = now; /* rows kept over the fullest gap from here to now; the first gap that changes */
    for (int64_t gap = now - 1; gap >= buffer->open; gap--) {
        most = kept[gap] > most ? kept[gap] : most;
        if (reused[gap] > 0) {
            const int64_t room = buffer->capacity - most;
            accept[gap] = reused[gap] < room ? reused[gap] : room;
            most += accept[gap];
            buffer->hits += accept[gap];
            first = gap;
        }
    }
    int64_t sum = 0, full = buffer->open - 1;
    for (int64_t gap = first; gap < now; gap++) {
        sum += accept[gap];
        accept[gap] = 0;
        kept[gap] += sum;
        full = kept[gap] == buffer->capacity ? gap : full;
    }
    buffer->open = full + 1;
}

rudder_status_t bound_add(bound_t *bound, const int64_t *ids, int64_t n, rudder_error_t *error)
{
    const int64_t now = bound->minibatches;
    if (grow_array(&bound->reused, &bound->reused_size, now + 1, sizeof *bound->reused) != RUDDER_OK) {
        return bound_no_memory(bound, error);
    }
    for (int32_t i = 0; i < bound->n; i++) {
        bound_buffer_t *buffer = &bound->buffer[i];
        if (grow_array(&buffer->kept, &buffer->kept_size, now + 1, sizeof *buffer->kept) != RUDDER_OK ||
            grow_array(&buffer->accept, &buffer->accept_size, now + 1, sizeof *buffer->accept) != RUDDER_OK) {
            return bound_no_memory(bound, error);
        }
        buffer->kept[now] = buffer->accept[now] = 0;
    }
    bound->reused[now] = 0;
    int64_t open = now; /* no buffer has room over earlier gaps */
    for (int32_t i = 0; i < bound->n; i++) {
        if (bound->buffer[i].capacity > 0 && bound->buffer[i].open < open) {
            open = bound->buffer[i].open;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        bound_last_t *last = bound_last_of(bound, ids[i]);
        if (last->id == -1) {
            *last = (bound_last_t){.id = ids[i], .minibatch = now};
            bound->remote++;
            if (2 * (uint64_t)++bound->distinct > bound->size) {
                RUDDER_TRY(bound_resize(bound, 2 * bound->size, error));
            }
        } else if (last->minibatch < now) {
            bound->reused[last->minibatch] += last->minibatch >= open;
            last->minibatch = now;
            bound->remote++;
        }
    }
    for (int32_t i = 0; i < bound->n; i++) {
        if (bound->buffer[i].capacity > 0) {
            bound_accept(bound->reused, now, &bound->buffer[i]);
        }
    }
    memset(bound->reused + open, 0, (size_t)(now - open) * sizeof *bound->reused);
    bound->minibatches++;
    return RUDDER_OK;
}

int64_t bound_rows(const bound_t *bound, int32_t i)
{
    return bound->remote - bound->buffer[i].hits;
}

int64_t bound_remote(const bound_t *bound)
{
    return bound->remote;
}

int64_t bound_distinct(const bound_t *bound)
{
    return bound->distinct;
}

int bound_knows(const bound_t *bound, int64_t id)
{
    return bound_last_of(bound, id)->id == id;
}

int64_t bound_memory(const bound_t *bound)
{
    int64_t words = bound->reused_size;
    for (int32_t i = 0; i < bound->n; i++) {
        words += bound->buffer[i].kept_size + bound->buffer[i].accept_size;
    }
    return (int64_t)(sizeof *bound + bound->size * sizeof *bound->last) + words * (int64_t)sizeof(int64_t);
}

int64_t bound_memory_for(int64_t distinct, int64_t minibatches, int32_t n_capacities)
{
    uint64_t size = BOUND_FIRST_SIZE;
    while (size < 2 * (uint64_t)distinct) {
        size *= 2;
    }
    const int64_t gaps = minibatches + minibatches / 2 + 1;
    return (int64_t)(sizeof(bound_t) + (size + size / 2) * sizeof(bound_last_t)) +
           n_capacities * (int64_t)sizeof(bound_buffer_t) + (1 + 2 * n_capacities) * gaps * (int64_t)sizeof(int64_t);
}

void bound_close(bound_t *bound)
{
    if (bound == NULL) {
        return;
    }
    for (int32_t i = 0; i < bound->n; i++) {
        free(bound->buffer[i].kept);
        free(bound->buffer[i].accept);
    }
    free(bound->last);
    free(bound->reused);
    free(bound);
}
