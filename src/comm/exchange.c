/*
 * Ids to owners, rows back. A call has three steps: every pair of ranks tells how many ids there are, then in rounds of
 * bounded messages ids travel one way and rows the other. Both ends of a pair know from the counts how many rounds they
 * have with each other, so a rank is done when its own pairs are.
 */
#include "comm/exchange.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"

enum { EXCHANGE_MESSAGE_BYTES = 256 << 20 };

/* What a rank tells each peer first. */
typedef struct exchange_head {
    int64_t ids; /* that the peer will be asked for */
    uint64_t row_bytes;
    int32_t more;
    int32_t unused;
} exchange_head_t;

struct exchange {
    comm_t *comm;
    links_t *links;
    int64_t *offset; /* [size + 1] */
    int64_t max_message_bytes;
    int emulate;

    /* Of the call under way; [size] each. */
    exchange_head_t *ask, *asked;
    int64_t *first; /* where a peer's ids start in `sorted` */
    comm_span_t *out, *in;
    int64_t *bytes_in, *bytes_out; /* since the start */
    int64_t *round_in, *round_out; /* bytes of a round */
    double *arrived, *took; /* when a peer's rows of a round came; seconds that its rows took, of the call under way */
    double *seconds;        /* the same, since exchange_seconds() */

    /* Kept between calls. Capacities in items. */
    int64_t *sorted, *place; /* remote ids by owner, and where each stands in the caller's list */
    int32_t *owner;          /* [n] of each of the caller's ids */
    int64_t *ids_in;         /* what peers ask in this round */
    char *rows_out, *rows_in;
    int64_t sorted_capacity, place_capacity, owner_capacity, ids_in_capacity, rows_out_capacity, rows_in_capacity;
};

rudder_status_t exchange_open(comm_t *comm, const int64_t *offset, int64_t max_message_bytes, links_t *links,
                              exchange_t **exchange, rudder_error_t *error)
{
    const size_t size = (size_t)comm->size;
    exchange_t *e = calloc(1, sizeof *e);
    *exchange = NULL;
    if (!e) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to open an exchange");
    }
    e->comm = comm;
    e->links = links;
    e->emulate = 1;
    e->max_message_bytes = max_message_bytes > 0 ? max_message_bytes : EXCHANGE_MESSAGE_BYTES;
    if (e->max_message_bytes > INT_MAX) {
        e->max_message_bytes = INT_MAX;
    }
    e->offset = malloc((size + 1) * sizeof *e->offset);
    e->ask = calloc(size, sizeof *e->ask);
    e->asked = calloc(size, sizeof *e->asked);
    e->first = calloc(size, sizeof *e->first);
    e->out = calloc(size, sizeof *e->out);
    e->in = calloc(size, sizeof *e->in);
    e->bytes_in = calloc(size, sizeof *e->bytes_in);
    e->bytes_out = calloc(size, sizeof *e->bytes_out);
    e->round_in = calloc(size, sizeof *e->round_in);
    e->round_out = calloc(size, sizeof *e->round_out);
    e->arrived = calloc(size, sizeof *e->arrived);
    e->took = calloc(size, sizeof *e->took);
    e->seconds = calloc(size, sizeof *e->seconds);
    if (!e->offset || !e->ask || !e->asked || !e->first || !e->out || !e->in || !e->bytes_in || !e->bytes_out ||
        !e->round_in || !e->round_out || !e->arrived || !e->took || !e->seconds) {
        exchange_close(e);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to open an exchange of %d ranks", comm->size);
    }
    memcpy(e->offset, offset, (size + 1) * sizeof *offset);
    *exchange = e;
    return RUDDER_OK;
}

void exchange_close(exchange_t *e)
{
    if (e) {
        free(e->offset);
        free(e->ask);
        free(e->asked);
        free(e->first);
        free(e->out);
        free(e->in);
        free(e->bytes_in);
        free(e->bytes_out);
        free(e->round_in);
        free(e->round_out);
        free(e->arrived);
        free(e->took);
        free(e->seconds);
        free(e->sorted);
        free(e->place);
        free(e->owner);
        free(e->ids_in);
        free(e->rows_out);
        free(e->rows_in);
        free(e);
    }
}

/* The last rank whose range starts at or before id, so that empty ranges own nothing. id is in range. */
static int32_t exchange_owner(const exchange_t *e, int64_t id)
{
    int32_t low = 0, high = e->comm->size; /* offset[low] <= id < offset[high] */
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (e->offset[middle] <= id) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Sorts the remote ids by owner, in the order given for each owner. Fills ask[].ids, first, sorted, place, owner. */
static rudder_status_t exchange_sort(exchange_t *e, const int64_t *ids, int64_t n, rudder_error_t *error)
{
    const int32_t size = e->comm->size, rank = e->comm->rank;
    if (grow_array(&e->owner, &e->owner_capacity, n, sizeof *e->owner) != RUDDER_OK ||
        grow_array(&e->sorted, &e->sorted_capacity, n, sizeof *e->sorted) != RUDDER_OK ||
        grow_array(&e->place, &e->place_capacity, n, sizeof *e->place) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to ask for %lld rows", (long long)n);
    }
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < e->offset[0] || ids[i] >= e->offset[size]) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "id %lld of rank %d: expected an id from %lld to %lld",
                               (long long)ids[i], rank, (long long)e->offset[0], (long long)e->offset[size] - 1);
        }
        e->owner[i] = exchange_owner(e, ids[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        e->ask[e->owner[i]].ids++;
    }
    e->ask[rank].ids = 0;
    int64_t sum = 0;
    for (int32_t p = 0; p < size; p++) {
        e->first[p] = sum;
        sum += e->ask[p].ids;
    }
    for (int64_t i = 0; i < n; i++) {
        if (e->owner[i] != rank) {
            const int64_t j = e->first[e->owner[i]]++;
            e->sorted[j] = ids[i];
            e->place[j] = i;
        }
    }
    for (int32_t p = 0; p < size; p++) {
        e->first[p] -= e->ask[p].ids;
    }
    return RUDDER_OK;
}

/* Owned ids: runs of them are served straight into the caller's rows. */
static void exchange_serve_owned(const exchange_t *e, const int64_t *ids, int64_t n, size_t row_bytes,
                                 exchange_serve_t serve, void *context, char *rows)
{
    for (int64_t i = 0; i < n;) {
        int64_t end = i;
        while (end < n && e->owner[end] == e->comm->rank) {
            end++;
        }
        if (end > i) {
            serve(context, ids + i, end - i, rows + (size_t)i * row_bytes);
        }
        i = end + 1;
    }
}

/* Tells every peer how many ids it will be asked, and learns the same. */
static rudder_status_t exchange_heads(exchange_t *e, size_t row_bytes, int more, int *again, rudder_error_t *error)
{
    const int64_t bytes = (int64_t)sizeof *e->ask;
    for (int32_t p = 0; p < e->comm->size; p++) {
        e->ask[p].row_bytes = row_bytes;
        e->ask[p].more = more;
        e->out[p] = (comm_span_t){&e->ask[p], bytes};
        e->in[p] = (comm_span_t){&e->asked[p], bytes};
    }
    RUDDER_TRY(comm_swap(e->comm, e->out, e->in, error));
    *again = 0;
    for (int32_t p = 0; p < e->comm->size; p++) {
        assert(e->asked[p].ids >= 0);
        if (e->asked[p].row_bytes != row_bytes) {
            return RUDDER_FAIL(error, RUDDER_E_INTERNAL, "rank %d expected rows of %zu bytes, rank %d of %llu",
                               e->comm->rank, row_bytes, p, (unsigned long long)e->asked[p].row_bytes);
        }
        *again |= e->asked[p].more;
    }
    return RUDDER_OK;
}

/* How many of a pair's ids travel in the round that starts with id `done`. */
static int64_t exchange_share(int64_t ids, int64_t done, int64_t limit)
{
    const int64_t left = ids - done;
    return left <= 0 ? 0 : left < limit ? left : limit;
}

/* When a call under way began. */
typedef struct exchange_clock {
    double met;    /* all ranks were there */
    double booked; /* the first round was, 0: none yet */
    double end;    /* emulated links have carried everything */
} exchange_clock_t;

/* What the rows of a round took: as booked behind an emulated link, else as seen. */
static void exchange_time(exchange_t *e, double start, exchange_clock_t *clock)
{
    const int32_t size = e->comm->size;
    const int emulated = e->links != NULL && e->emulate;
    for (int32_t p = 0; p < size; p++) {
        if (e->in[p].bytes > 0 && p != e->comm->rank) {
            e->took[p] = e->arrived[p] - clock->met;
        }
    }
    if (emulated) {
        clock->booked = clock->booked > 0 ? clock->booked : start;
        clock->end = links_arrival(e->links, start, e->round_in, e->round_out, size, e->arrived);
        for (int32_t p = 0; p < size; p++) {
            if (e->in[p].bytes > 0 && p != e->comm->rank && links_delay_owner(e->links, p)) {
                e->took[p] = e->arrived[p] - clock->booked;
            }
        }
    }
}

/* Ids `done` .. `done + limit` of each pair go out; rows come back. */
static rudder_status_t exchange_round(exchange_t *e, int64_t done, int64_t limit, size_t row_bytes,
                                      exchange_serve_t serve, void *context, char *rows, exchange_clock_t *clock,
                                      rudder_error_t *error)
{
    const int32_t size = e->comm->size;
    const int64_t id_bytes = (int64_t)sizeof(int64_t), row = (int64_t)row_bytes;
    int64_t n_out = 0, n_in = 0; /* ids */
    for (int32_t p = 0; p < size; p++) {
        n_out += exchange_share(e->ask[p].ids, done, limit);
        n_in += exchange_share(e->asked[p].ids, done, limit);
    }
    if (grow_array(&e->ids_in, &e->ids_in_capacity, n_in, sizeof *e->ids_in) != RUDDER_OK ||
        grow_array(&e->rows_out, &e->rows_out_capacity, n_in * row, 1) != RUDDER_OK ||
        grow_array(&e->rows_in, &e->rows_in_capacity, n_out * row, 1) != RUDDER_OK) {
        e->comm->lost = 1;
        return RUDDER_FAIL(error, RUDDER_E_MEMORY,
                           "rank %d: no memory to serve %lld rows of %zu bytes and receive %lld", e->comm->rank,
                           (long long)n_in, row_bytes, (long long)n_out);
    }
    int64_t to = 0;
    for (int32_t p = 0; p < size; p++) {
        const int64_t out = exchange_share(e->ask[p].ids, done, limit),
                      in = exchange_share(e->asked[p].ids, done, limit);
        e->out[p] = (comm_span_t){out ? e->sorted + e->first[p] + done : NULL, out * id_bytes};
        e->in[p] = (comm_span_t){in ? e->ids_in + to : NULL, in * id_bytes};
        to += in;
    }
    RUDDER_TRY(comm_swap(e->comm, e->out, e->in, error));
    if (n_in > 0) {
        serve(context, e->ids_in, n_in, e->rows_out);
    }
    const double start = clock_seconds();
    int64_t from = 0;
    to = 0;
    for (int32_t p = 0; p < size; p++) {
        const int64_t out = exchange_share(e->asked[p].ids, done, limit),
                      in = exchange_share(e->ask[p].ids, done, limit);
        e->out[p] = (comm_span_t){out ? e->rows_out + from * row : NULL, out * row};
        e->in[p] = (comm_span_t){in ? e->rows_in + to * row : NULL, in * row};
        e->round_in[p] = out * id_bytes + in * row;
        e->round_out[p] = in * id_bytes + out * row;
        e->bytes_in[p] += e->round_in[p];
        e->bytes_out[p] += e->round_out[p];
        from += out;
        to += in;
    }
    RUDDER_TRY(comm_swap_timed(e->comm, e->out, e->in, e->arrived, error));
    exchange_time(e, start, clock);
    const char *next = e->rows_in;
    for (int32_t p = 0; p < size; p++) {
        const int64_t in = exchange_share(e->ask[p].ids, done, limit);
        for (int64_t i = 0; i < in; i++, next += row_bytes) {
            memcpy(rows + (size_t)e->place[e->first[p] + done + i] * row_bytes, next, row_bytes);
        }
    }
    return RUDDER_OK;
}

rudder_status_t exchange_rows_more(exchange_t *e, const int64_t *ids, int64_t n, size_t row_bytes,
                                   exchange_serve_t serve, void *context, void *rows, int more, int *again,
                                   rudder_error_t *error)
{
    assert(n >= 0 && row_bytes > 0 && row_bytes <= INT_MAX);
    const int32_t size = e->comm->size;
    memset(e->ask, 0, (size_t)size * sizeof *e->ask);
    const rudder_status_t own = exchange_sort(e, ids, n, error);
    if (own != RUDDER_OK) {
        memset(e->ask, 0, (size_t)size * sizeof *e->ask);
        n = 0;
    }
    RUDDER_TRY(exchange_heads(e, row_bytes, more, again, error));
    const size_t widest = row_bytes > sizeof(int64_t) ? row_bytes : sizeof(int64_t);
    const int64_t limit = e->max_message_bytes > (int64_t)widest ? e->max_message_bytes / (int64_t)widest : 1;
    int64_t longest = 0;
    for (int32_t p = 0; p < size; p++) {
        longest = e->ask[p].ids > longest ? e->ask[p].ids : longest;
        longest = e->asked[p].ids > longest ? e->asked[p].ids : longest;
    }
    exchange_serve_owned(e, ids, n, row_bytes, serve, context, rows);
    exchange_clock_t clock = {.met = clock_seconds()};
    memset(e->took, 0, (size_t)size * sizeof *e->took);
    for (int64_t done = 0; done < longest; done += limit) {
        RUDDER_TRY(exchange_round(e, done, limit, row_bytes, serve, context, rows, &clock, error));
    }
    for (int32_t p = 0; p < size; p++) {
        e->seconds[p] += e->took[p];
    }
    for (double left; (left = clock.end - clock_seconds()) > 0;) {
        clock_sleep(left); /* again when a signal ended it early */
    }
    return own;
}

rudder_status_t exchange_rows(exchange_t *e, const int64_t *ids, int64_t n, size_t row_bytes, exchange_serve_t serve,
                              void *context, void *rows, rudder_error_t *error)
{
    int again;
    return exchange_rows_more(e, ids, n, row_bytes, serve, context, rows, 0, &again, error);
}

void exchange_emulate(exchange_t *e, int on)
{
    e->emulate = on;
}

void exchange_traffic(const exchange_t *e, int64_t *in, int64_t *out)
{
    memcpy(in, e->bytes_in, (size_t)e->comm->size * sizeof *in);
    memcpy(out, e->bytes_out, (size_t)e->comm->size * sizeof *out);
}

void exchange_seconds(exchange_t *e, double *seconds)
{
    memcpy(seconds, e->seconds, (size_t)e->comm->size * sizeof *seconds);
    memset(e->seconds, 0, (size_t)e->comm->size * sizeof *e->seconds);
}

int64_t exchange_memory(const exchange_t *e)
{
    return e->sorted_capacity * (int64_t)sizeof *e->sorted + e->place_capacity * (int64_t)sizeof *e->place +
           e->owner_capacity * (int64_t)sizeof *e->owner + e->ids_in_capacity * (int64_t)sizeof *e->ids_in +
           e->rows_out_capacity + e->rows_in_capacity;
}
