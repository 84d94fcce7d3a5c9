/* Start, collectives and the loss of a peer. Sums are compared with sums made in the same order in one place. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "mpi/mpi_test.h"

static float value(uint64_t rank, uint64_t i)
{
    const rng_block_t block = rng_philox(42, i, rank);
    return (rng_float(block.v[0]) - 0.5f) *
           ldexpf(1, (int)(block.v[1] % 40) - 20); /* magnitudes for which order matters */
}

static void check_sum(comm_t *comm, int64_t n)
{
    rudder_error_t error;
    float *x = malloc(((size_t)n + 1) * sizeof *x);
    float *scratch = malloc(((size_t)comm_sum_scratch(comm, n) + 1) * sizeof *scratch);
    const float guard = 1234.5f;
    x[n] = guard;
    scratch[comm_sum_scratch(comm, n)] = guard;
    for (int64_t i = 0; i < n; i++) {
        x[i] = value((uint64_t)comm->rank, (uint64_t)i);
    }
    CHECK_OK(comm_sum(comm, x, n, scratch, &error), &error);
    int wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        float sum = value(0, (uint64_t)i);
        for (int32_t p = 1; p < comm->size; p++) {
            sum += value((uint64_t)p, (uint64_t)i);
        }
        wrong += memcmp(&sum, &x[i], sizeof sum) != 0;
    }
    CHECK(wrong == 0);
    CHECK(x[n] == guard && scratch[comm_sum_scratch(comm, n)] == guard);
    free(x);
    free(scratch);
}

static void sum_has_the_bits_of_a_sum_in_rank_order(void)
{
    rudder_error_t error;
    comm_t comm;
    CHECK_OK(comm_open(0, &comm, &error), &error);
    const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 1000, 100003};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_sum(&comm, sizes[i]);
    }
    const int64_t limits[] = {1, 4, 1000, 4096};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        comm.message_limit = limits[i];
        check_sum(&comm, 5);
        check_sum(&comm, 2503);
    }
    comm_close(&comm);
}

static void small_sums_and_maxima(void)
{
    rudder_error_t error;
    comm_t comm;
    CHECK_OK(comm_open(30, &comm, &error), &error);
    for (int32_t n = 0; n <= COMM_SMALL; n += n < 3 ? 1 : 61) {
        double x[COMM_SMALL];
        int64_t m[COMM_SMALL];
        for (int32_t i = 0; i < n; i++) {
            x[i] = value((uint64_t)comm.rank, (uint64_t)i);
            m[i] = -((int64_t)1 << 40) - (i % comm.size == comm.rank ? 0 : 1);
        }
        CHECK_OK(comm_sum_f64(&comm, x, n, &error), &error);
        CHECK_OK(comm_max_i64(&comm, m, n, &error), &error);
        for (int32_t i = 0; i < n; i++) {
            double sum = value(0, (uint64_t)i);
            for (int32_t p = 1; p < comm.size; p++) {
                sum += value((uint64_t)p, (uint64_t)i);
            }
            CHECK(sum == x[i]);
            CHECK(m[i] == -((int64_t)1 << 40));
        }
    }
    comm_close(&comm);
}

static void gather_and_broadcast_move_every_byte(void)
{
    rudder_error_t error;
    comm_t comm;
    CHECK_OK(comm_open(30, &comm, &error), &error);
    comm.message_limit = 1000;
    const int64_t sizes[] = {0, 1, 999, 1000, 1001, 54321};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s];
        unsigned char *mine = malloc((size_t)n + 1), *all = comm.rank ? NULL : malloc((size_t)(comm.size * n) + 1);
        for (int64_t i = 0; i < n; i++) {
            mine[i] = (unsigned char)(i * 7 + comm.rank);
        }
        CHECK_OK(comm_gather(&comm, mine, n, all, &error), &error);
        int wrong = 0;
        for (int64_t i = 0; i < comm.size * n && all; i++) {
            wrong += all[i] != (unsigned char)(i % n * 7 + i / n);
        }
        CHECK_OK(comm_broadcast(&comm, mine, n, &error), &error);
        for (int64_t i = 0; i < n; i++) {
            wrong += mine[i] != (unsigned char)(i * 7);
        }
        CHECK(wrong == 0);
        free(mine);
        free(all);
    }
    comm_close(&comm);
}

static void all_ranks_agree_on_the_first_failure(void)
{
    rudder_error_t error;
    comm_t comm;
    CHECK_OK(comm_open(30, &comm, &error), &error);
    CHECK(comm_agree(&comm, RUDDER_OK, &error) == RUDDER_OK);
    for (int32_t first = 0; first < comm.size; first++) {
        error = (rudder_error_t){0};
        rudder_status_t mine = RUDDER_OK;
        if (comm.rank == first) {
            mine = RUDDER_FAIL(&error, RUDDER_E_DATA, "feat.npy: broken %d", first);
        } else if (comm.rank > first) {
            mine = RUDDER_FAIL(&error, RUDDER_E_IO, "another fault");
        }
        CHECK(comm_agree(&comm, mine, &error) == RUDDER_E_DATA);
        char expected[64];
        snprintf(expected, sizeof expected, comm.rank == first ? "feat.npy: broken %d" : "rank %d: feat.npy: broken %d",
                 first, first);
        CHECK(strcmp(error.text, expected) == 0);
        CHECK(error.status == RUDDER_E_DATA);
        CHECK(comm_agree(&comm, comm.rank == first ? RUDDER_E_MEMORY : RUDDER_OK, NULL) == RUDDER_E_MEMORY);
    }
    CHECK(comm_agree(&comm, RUDDER_OK, &error) == RUDDER_OK);
    comm_close(&comm);
}

static void communicators_do_not_mix(void)
{
    rudder_error_t error;
    comm_t a, b;
    CHECK_OK(comm_open(30, &a, &error), &error);
    CHECK_OK(comm_open(30, &b, &error), &error);
    /* Rank r enters b's sum late: messages of a must not be taken for it. */
    for (int round = 0; round < 20; round++) {
        double x = 1, y = 100;
        CHECK_OK(comm_sum_f64(&a, &x, 1, &error), &error);
        CHECK_OK(comm_sum_f64(&b, &y, 1, &error), &error);
        CHECK(x == a.size && y == 100 * b.size);
        CHECK_OK(comm_barrier(&a, &error), &error);
    }
    comm_close(&b);
    comm_close(&a);
}

/* The last rank comes late; the others name it and their phase, and then refuse to go on. */
static void a_missing_peer_is_named_after_the_deadline(void)
{
    rudder_error_t error;
    comm_t comm;
    if (mpi_test.size == 1) {
        return; /* there is no peer */
    }
    CHECK_OK(comm_open(30, &comm, &error), &error);
    comm.phase = "allreduce";
    const int32_t late = comm.size - 1;
    double x = 1;
    if (comm.rank == late) {
        clock_sleep(2.5);
        CHECK_OK(comm_sum_f64(&comm, &x, 1, &error), &error); /* the others had sent before they gave up */
        CHECK(x == comm.size);
    } else {
        comm.deadline = 1;
        const double start = clock_seconds();
        CHECK(comm_sum_f64(&comm, &x, 1, &error) == RUDDER_E_PEER);
        CHECK(clock_seconds() - start >= 1);
        char missing[32];
        snprintf(missing, sizeof missing, "none from rank %d", late);
        const char *found = strstr(error.text, "none from ");
        CHECK(found && strcmp(found, missing) == 0 && strstr(error.text, "allreduce"));
        CHECK(comm_sum_f64(&comm, &x, 1, &error) == RUDDER_E_PEER);
        clock_sleep(2); /* the late rank's answers arrive */
    }
    comm_close(&comm);
}

static void a_late_peer_within_the_deadline_is_fine(void)
{
    rudder_error_t error;
    comm_t comm;
    CHECK_OK(comm_open(30, &comm, &error), &error);
    clock_sleep(comm.rank == 0 ? 0.3 : 0);
    CHECK_OK(comm_barrier(&comm, &error), &error);
    comm_close(&comm);
}

static void an_error_of_mpi_becomes_a_status(void)
{
    rudder_error_t error = {0};
    comm_t comm;
    CHECK_OK(comm_open(30, &comm, &error), &error);
    if (comm.size > 1) {
        /* A message that is longer than what its receiver expects. */
        char byte[64] = {0};
        const int32_t right = (comm.rank + 1) % comm.size, left = (comm.rank + comm.size - 1) % comm.size;
        MPI_Request requests[2];
        MPI_Irecv(byte, 1, MPI_BYTE, left, 9, comm.mpi, &requests[0]);
        MPI_Isend(byte + 32, 32, MPI_BYTE, right, 9, comm.mpi, &requests[1]);
        CHECK(comm_wait(&comm, requests, 2, &error) == RUDDER_E_PEER);
        CHECK(strlen(error.text) > 20);
        CHECK(comm_barrier(&comm, &error) == RUDDER_E_PEER);
    }
    comm_close(&comm);
}

int main(void)
{
    mpi_test_start();
    MPI_TEST(sum_has_the_bits_of_a_sum_in_rank_order);
    MPI_TEST(small_sums_and_maxima);
    MPI_TEST(gather_and_broadcast_move_every_byte);
    MPI_TEST(all_ranks_agree_on_the_first_failure);
    MPI_TEST(communicators_do_not_mix);
    MPI_TEST(a_late_peer_within_the_deadline_is_fine);
    MPI_TEST(an_error_of_mpi_becomes_a_status);
    MPI_TEST(a_missing_peer_is_named_after_the_deadline);
    return mpi_test_finish();
}
