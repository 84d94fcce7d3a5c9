/*
 * Exchanges of random ids: every row is the one that its id stands for, whatever the rounds, the ranges and the repeats;
 * traffic is what a count by hand gives.
 */
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "comm/exchange.h"
#include "mpi/mpi_test.h"

enum { IDS = 3000 };
static const int64_t base = ((int64_t)1 << 40) + 5; /* of ids: beyond 32 bits */

typedef struct store {
    int64_t begin, end;
    size_t row_bytes;
    int64_t served, foreign; /* rows served, and of those the ones that this rank does not own */
} store_t;

/* Byte b of the row of an id. */
static unsigned char row_byte(int64_t id, size_t b)
{
    return (unsigned char)(rng_mix((uint64_t)id + (b >> 3)) >> (b & 7) * 8);
}

static void serve(void *context, const int64_t *ids, int64_t n, void *rows)
{
    store_t *store = context;
    unsigned char *row = rows;
    for (int64_t i = 0; i < n; i++, row += store->row_bytes) {
        store->foreign += ids[i] < store->begin || ids[i] >= store->end;
        for (size_t b = 0; b < store->row_bytes; b++) {
            row[b] = row_byte(ids[i], b);
        }
    }
    store->served += n;
}

static int rows_wrong(const int64_t *ids, int64_t n, size_t row_bytes, const unsigned char *rows)
{
    int wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        for (size_t b = 0; b < row_bytes; b++) {
            wrong += rows[(size_t)i * row_bytes + b] != row_byte(ids[i], b);
        }
    }
    return wrong;
}

/* Ways to split the ids among the ranks. */
typedef enum split { SPLIT_EVEN, SPLIT_FIRST_OWNS_ALL, SPLIT_LAST_OWNS_ALL, SPLIT_WITH_EMPTY_RANKS, SPLITS } split_t;

static void make_offset(split_t split, int size, int64_t *offset)
{
    for (int p = 0; p <= size; p++) {
        int64_t first = (int64_t)IDS * p / size;
        if (split == SPLIT_FIRST_OWNS_ALL) {
            first = p == 0 ? 0 : IDS;
        } else if (split == SPLIT_LAST_OWNS_ALL) {
            first = p == size ? IDS : 0;
        } else if (split == SPLIT_WITH_EMPTY_RANKS) {
            first = p == size ? IDS : (int64_t)IDS * (p / 2 * 2) / size; /* ranks 0, 2, ... own nothing */
        }
        offset[p] = base + first;
    }
}

static int owner_of(const int64_t *offset, int size, int64_t id)
{
    for (int p = 0; p < size; p++) {
        if (id >= offset[p] && id < offset[p + 1]) {
            return p;
        }
    }
    return -1;
}

/* The ids that rank `rank` asks for in call `call`: any rank can tell, so traffic can be counted by hand. */
static int64_t make_ids(int rank, int call, int64_t *ids)
{
    const rng_block_t size = rng_philox(1, (uint64_t)call, (uint64_t)rank);
    const int64_t n = call % 5 == rank ? 0 : call % 5 == 4 ? rank == 1 : size.v[0] % 700;
    const uint32_t among = call % 3 == 0 ? 40 : IDS; /* few: many repeats */
    for (int64_t i = 0; i < n; i++) {
        ids[i] = base + rng_below(rng_philox(2 + (uint64_t)call, (uint64_t)i, (uint64_t)rank).v[0], among);
    }
    return n;
}

/* Runs ten exchanges and checks rows and traffic. */
static void run(split_t split, size_t row_bytes, int64_t max_message_bytes, int64_t message_limit)
{
    rudder_error_t error;
    comm_t comm;
    exchange_t *exchange;
    CHECK_OK(comm_open(60, &comm, &error), &error);
    comm.message_limit = message_limit;
    const int size = comm.size;
    int64_t *offset = malloc((size_t)(size + 1) * sizeof *offset), *in = calloc(4 * (size_t)size, sizeof *in);
    int64_t *out = in + size, *in_expected = out + size, *out_expected = in_expected + size;
    int64_t *ids = malloc(IDS * sizeof *ids);
    unsigned char *rows = malloc(IDS * row_bytes);
    make_offset(split, size, offset);
    store_t store = {offset[comm.rank], offset[comm.rank + 1], row_bytes, 0, 0};
    int64_t served_expected = 0;
    CHECK_OK(exchange_open(&comm, offset, max_message_bytes, NULL, &exchange, &error), &error);
    memset(offset + 1, 0, (size_t)size * sizeof *offset); /* it was copied */
    for (int call = 0; call < 10; call++) {
        const int64_t n = make_ids(comm.rank, call, ids);
        memset(rows, 0xEE, IDS * row_bytes);
        CHECK_OK(exchange_rows(exchange, ids, n, row_bytes, serve, &store, rows, &error), &error);
        CHECK(rows_wrong(ids, n, row_bytes, rows) == 0);
        CHECK(rows[(size_t)n * row_bytes] == 0xEE);
    }
    make_offset(split, size, offset);
    const int64_t row = (int64_t)row_bytes, id = (int64_t)sizeof *ids;
    for (int call = 0; call < 10; call++) {
        for (int p = 0; p < size; p++) {
            const int64_t n = make_ids(p, call, ids);
            for (int64_t i = 0; i < n; i++) {
                const int owner = owner_of(offset, size, ids[i]);
                served_expected += owner == comm.rank;
                if (p == comm.rank && owner != comm.rank) {
                    in_expected[owner] += row;
                    out_expected[owner] += id;
                } else if (p != comm.rank && owner == comm.rank) {
                    in_expected[p] += id;
                    out_expected[p] += row;
                }
            }
        }
    }
    exchange_traffic(exchange, in, out);
    CHECK(memcmp(in, in_expected, (size_t)size * sizeof *in) == 0);
    CHECK(memcmp(out, out_expected, (size_t)size * sizeof *out) == 0);
    CHECK(store.foreign == 0);
    CHECK(store.served == served_expected);
    exchange_close(exchange);
    comm_close(&comm);
    free(offset);
    free(in);
    free(ids);
    free(rows);
}

static void rows_come_to_the_ids_that_asked(void)
{
    const size_t sizes[] = {1, 8, 1024};
    for (split_t split = SPLIT_EVEN; split < SPLITS; split++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            run(split, sizes[s], 0, 1 << 30);
        }
    }
}

static void many_rounds_bring_the_same(void)
{
    for (split_t split = SPLIT_EVEN; split < SPLITS; split++) {
        run(split, 1, 64, 1 << 30);
        run(split, 8, 1, 1 << 30); /* one row a round, the least there is */
        run(split, 1024, 5000, 1 << 30);
    }
}

static void messages_above_the_limit_of_mpi_are_split(void)
{
    run(SPLIT_EVEN, 24, 0, 1000);
    run(SPLIT_EVEN, 24, 0, 7);
}

/* Rank r has r + 1 batches; all go on until the last has none left. */
static void ranks_with_unequal_numbers_of_calls_end_together(void)
{
    rudder_error_t error;
    comm_t comm;
    exchange_t *exchange;
    CHECK_OK(comm_open(60, &comm, &error), &error);
    int64_t *offset = malloc((size_t)(comm.size + 1) * sizeof *offset), *ids = malloc(IDS * sizeof *ids);
    unsigned char *rows = malloc(IDS * 16);
    make_offset(SPLIT_EVEN, comm.size, offset);
    store_t store = {offset[comm.rank], offset[comm.rank + 1], 16, 0, 0};
    CHECK_OK(exchange_open(&comm, offset, 0, NULL, &exchange, &error), &error);
    int calls = 0, again = 1;
    while (again && calls < 100) {
        const int64_t n = calls <= comm.rank ? make_ids(comm.rank, calls, ids) : 0;
        const int more = calls < comm.rank;
        CHECK_OK(exchange_rows_more(exchange, ids, n, 16, serve, &store, rows, more, &again, &error), &error);
        CHECK(rows_wrong(ids, n, 16, rows) == 0);
        calls++;
    }
    CHECK(calls == comm.size);
    exchange_close(exchange);
    comm_close(&comm);
    free(offset);
    free(ids);
    free(rows);
}

/* One rank asks for an id that nobody owns: it fails, the others get their rows, and the next exchange is sound. */
static void an_id_out_of_range_fails_on_its_rank_only(void)
{
    rudder_error_t error;
    comm_t comm;
    exchange_t *exchange;
    CHECK_OK(comm_open(60, &comm, &error), &error);
    int64_t *offset = malloc((size_t)(comm.size + 1) * sizeof *offset);
    int64_t ids[100];
    unsigned char rows[100 * 8];
    make_offset(SPLIT_EVEN, comm.size, offset);
    store_t store = {offset[comm.rank], offset[comm.rank + 1], 8, 0, 0};
    CHECK_OK(exchange_open(&comm, offset, 0, NULL, &exchange, &error), &error);
    const int64_t bad[] = {base - 1, base + IDS, -1, 0, INT64_MIN, INT64_MAX, 40};
    for (int call = 0; call < (int)(sizeof bad / sizeof *bad); call++) {
        const int victim = call % comm.size;
        for (int i = 0; i < 100; i++) {
            ids[i] = base + (i * 31 + call * 7 + comm.rank) % IDS;
        }
        if (comm.rank == victim) {
            ids[call * 14] = bad[call];
            error = (rudder_error_t){0};
            CHECK(exchange_rows(exchange, ids, 100, 8, serve, &store, rows, &error) == RUDDER_E_DATA);
            char number[32];
            snprintf(number, sizeof number, "%lld", (long long)bad[call]);
            CHECK(strstr(error.text, number) != NULL);
        } else {
            CHECK_OK(exchange_rows(exchange, ids, 100, 8, serve, &store, rows, &error), &error);
            CHECK(rows_wrong(ids, 100, 8, rows) == 0);
        }
    }
    CHECK(store.foreign == 0);
    exchange_close(exchange);
    comm_close(&comm);
    free(offset);
}

static void buffers_are_kept(void)
{
    rudder_error_t error;
    comm_t comm;
    exchange_t *exchange;
    CHECK_OK(comm_open(60, &comm, &error), &error);
    int64_t *offset = malloc((size_t)(comm.size + 1) * sizeof *offset), *ids = malloc(IDS * sizeof *ids);
    unsigned char *rows = malloc(IDS * 8);
    make_offset(SPLIT_EVEN, comm.size, offset);
    store_t store = {offset[comm.rank], offset[comm.rank + 1], 8, 0, 0};
    CHECK_OK(exchange_open(&comm, offset, 0, NULL, &exchange, &error), &error);
    int64_t memory = 0;
    for (int round = 0; round < 3; round++) {
        for (int call = 0; call < 10; call++) {
            const int64_t n = make_ids(comm.rank, call, ids);
            CHECK_OK(exchange_rows(exchange, ids, n, 8, serve, &store, rows, &error), &error);
        }
        CHECK(round == 0 || exchange_memory(exchange) == memory);
        memory = exchange_memory(exchange);
    }
    CHECK(comm.size == 1 || memory > 0);
    exchange_close(exchange);
    comm_close(&comm);
    free(offset);
    free(ids);
    free(rows);
}

/* Rows arrive no sooner than the link allows; with emulation off nothing is booked. */
static void an_emulated_link_delays(void)
{
    rudder_error_t error;
    comm_t comm;
    exchange_t *exchange;
    CHECK_OK(comm_open(60, &comm, &error), &error);
    int64_t *offset = malloc((size_t)(comm.size + 1) * sizeof *offset);
    int64_t ids[200];
    unsigned char *rows = malloc(200 * 1000);
    make_offset(SPLIT_EVEN, comm.size, offset);
    store_t store = {offset[comm.rank], offset[comm.rank + 1], 1000, 0, 0};
    links_t links = {.common = {.bytes_per_second = 1e6, .latency = 0.01}};
    const int right = (comm.rank + 1) % comm.size; /* everyone asks its right-hand neighbour for 200 kB */
    for (int i = 0; i < 200; i++) {
        ids[i] = offset[right] + i % (offset[right + 1] - offset[right]);
    }
    for (int rounds = 0; rounds < 2; rounds++) {
        links.common.free_at = 0;
        CHECK_OK(exchange_open(&comm, offset, rounds ? 50000 : 0, &links, &exchange, &error), &error);
        for (int call = 0; call < 2; call++) {
            const double start = clock_seconds();
            CHECK_OK(exchange_rows(exchange, ids, 200, 1000, serve, &store, rows, &error), &error);
            const double seconds = clock_seconds() - start;
            /* Each way 200 rows and 200 ids, and the latency there and back. */
            CHECK(comm.size == 1 || seconds >= 200 * 1008 / 1e6 + 2 * 0.01);
            CHECK(rows_wrong(ids, 200, 1000, rows) == 0);
        }
        const double free_at = links.common.free_at;
        exchange_emulate(exchange, 0);
        CHECK_OK(exchange_rows(exchange, ids, 200, 1000, serve, &store, rows, &error), &error);
        CHECK(links.common.free_at == free_at && (comm.size > 1) == (free_at > 0));
        exchange_emulate(exchange, 1);
        CHECK_OK(exchange_rows(exchange, ids, 0, 1000, serve, &store, rows, &error), &error);
        CHECK(links.common.free_at == free_at);
        exchange_close(exchange);
    }
    comm_close(&comm);
    free(offset);
    free(rows);
}

static double latest(const double *seconds, int n)
{
    double most = 0;
    for (int p = 0; p < n; p++) {
        most = seconds[p] > most ? seconds[p] : most;
    }
    return most;
}

/* Everyone asks everyone else for as many rows; those of the last rank pass a slow link, and only they are late. */
static void seconds_of_each_owner_are_told(void)
{
    rudder_error_t error;
    comm_t comm;
    exchange_t *exchange;
    enum { ROWS = 20, ROW_BYTES = 1000 };
    CHECK_OK(comm_open(60, &comm, &error), &error);
    const int size = comm.size, slow = size - 1;
    int64_t *offset = malloc((size_t)(size + 1) * sizeof *offset), *ids = malloc(IDS * sizeof *ids);
    unsigned char *rows = malloc((size_t)IDS * ROW_BYTES);
    double *seconds = malloc((size_t)size * sizeof *seconds);
    make_offset(SPLIT_EVEN, size, offset);
    store_t store = {offset[comm.rank], offset[comm.rank + 1], ROW_BYTES, 0, 0};
    int64_t n = 0;
    for (int p = 0; p < size; p++) {
        for (int i = 0; i < ROWS && p != comm.rank; i++) {
            ids[n++] = offset[p] + i;
        }
    }
    for (int rounds = 0; rounds < 2; rounds++) {
        links_t links = {.common = {.bytes_per_second = 10e6, .latency = 0.001}, .n_own = 1};
        links.own[0].owner = slow;
        links.own[0].link = (link_t){.bytes_per_second = 1e6, .latency = 0.002};
        CHECK_OK(exchange_open(&comm, offset, rounds ? 5 * ROW_BYTES : 0, &links, &exchange, &error), &error);
        for (int calls = 1; calls <= 2; calls++) {
            for (int call = 0; call < calls; call++) {
                CHECK_OK(exchange_rows(exchange, ids, n, ROW_BYTES, serve, &store, rows, &error), &error);
                CHECK(rows_wrong(ids, n, ROW_BYTES, rows) == 0);
            }
            exchange_seconds(exchange, seconds); /* of both calls, the second time */
            const double slow_seconds = calls * (ROWS * (ROW_BYTES + 8) / 1e6 + 2 * 0.002);
            for (int p = 0; p < size; p++) {
                if (p == comm.rank) {
                    CHECK(seconds[p] == 0);
                } else if (p == slow) {
                    CHECK(seconds[p] >= slow_seconds * 0.999);
                    CHECK(rounds || seconds[p] <= slow_seconds * 1.001);
                } else {
                    const int sharing = comm.rank == slow ? size - 1 : size - 2;
                    const double most = calls * (sharing * ROWS * (ROW_BYTES + 8) / 10e6 + 2 * 0.001);
                    CHECK(seconds[p] >= calls * 2 * 0.001);
                    CHECK(rounds || (seconds[p] >= most * 0.999 && seconds[p] <= most * 1.001));
                }
            }
        }
        exchange_seconds(exchange, seconds);
        CHECK(latest(seconds, size) == 0);
        /* Not emulated: what was seen. Nobody is asked: nothing is told. */
        exchange_emulate(exchange, 0);
        const double start = clock_seconds();
        CHECK_OK(exchange_rows(exchange, ids, n, ROW_BYTES, serve, &store, rows, &error), &error);
        const double wall = clock_seconds() - start;
        exchange_seconds(exchange, seconds);
        for (int p = 0; p < size; p++) {
            CHECK(p == comm.rank ? seconds[p] == 0 : seconds[p] > 0 && seconds[p] <= wall);
        }
        CHECK_OK(exchange_rows(exchange, ids, 0, ROW_BYTES, serve, &store, rows, &error), &error);
        exchange_seconds(exchange, seconds);
        CHECK(latest(seconds, size) == 0);
        exchange_close(exchange);
    }
    comm_close(&comm);
    free(offset);
    free(ids);
    free(rows);
    free(seconds);
}

int main(void)
{
    mpi_test_start();
    MPI_TEST(rows_come_to_the_ids_that_asked);
    MPI_TEST(many_rounds_bring_the_same);
    MPI_TEST(messages_above_the_limit_of_mpi_are_split);
    MPI_TEST(ranks_with_unequal_numbers_of_calls_end_together);
    MPI_TEST(an_id_out_of_range_fails_on_its_rank_only);
    MPI_TEST(buffers_are_kept);
    MPI_TEST(an_emulated_link_delays);
    MPI_TEST(seconds_of_each_owner_are_told);
    return mpi_test_finish();
}
