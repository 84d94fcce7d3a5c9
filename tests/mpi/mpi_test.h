/*
 * Tests under mpiexec: every rank runs every test and checks what it sees; a test has passed when no check failed on any
 * rank. Rank 0 prints the result, every rank ends with the same exit code.
 */
#ifndef RUDDER_TESTS_MPI_TEST_H
#define RUDDER_TESTS_MPI_TEST_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "comm/comm.h"

typedef struct mpi_test {
    int rank, size;
    int failed_checks; /* of the test under way, on this rank */
    int passed, failed;
} mpi_test_t;

static mpi_test_t mpi_test;

/* Counts and tells a failure; goes on, so that ranks stay in step. */
#define CHECK(condition) mpi_test_check((condition) ? 1 : 0, #condition, __FILE__, __LINE__)

/* CHECK for a call that returns a status; tells the text of *error. */
#define CHECK_OK(call, error) mpi_test_check_ok((call), (error), #call, __FILE__, __LINE__)

static inline int mpi_test_check(int condition, const char *text, const char *file, int line)
{
    if (!condition && mpi_test.failed_checks++ < 5) {
        fprintf(stderr, "%s:%d: rank %d: not true: %s\n", file, line, mpi_test.rank, text);
    }
    return condition;
}

static inline int mpi_test_check_ok(rudder_status_t status, const rudder_error_t *error, const char *text,
                                    const char *file, int line)
{
    if (status != RUDDER_OK && mpi_test.failed_checks++ < 5) {
        fprintf(stderr, "%s:%d: rank %d: %s: %s: %s\n", file, line, mpi_test.rank, text, rudder_status_name(status),
                error->text);
    }
    return status == RUDDER_OK;
}

static inline void mpi_test_start(void)
{
    rudder_error_t error;
    int threads_multiple;
    if (comm_start(&threads_multiple, &error) != RUDDER_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_test.size);
}

/* Runs one test on all ranks. */
static inline void mpi_test_run(const char *name, void (*test)(void))
{
    mpi_test.failed_checks = 0;
    test();
    int failed = mpi_test.failed_checks, all_failed = 0, done = 0;
    MPI_Request request;
    clock_backoff_t backoff = {0};
    for (MPI_Iallreduce(&failed, &all_failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request); !done;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        clock_back_off(&backoff);
    }
    mpi_test.passed += !all_failed;
    mpi_test.failed += !!all_failed;
    if (mpi_test.rank == 0) {
        printf("%-6s %s\n", all_failed ? "FAILED" : "ok", name);
        fflush(stdout);
    }
}

#define MPI_TEST(function) mpi_test_run(#function, function)

/* Prints the sum, ends MPI; returns the exit code. */
static inline int mpi_test_finish(void)
{
    if (mpi_test.rank == 0) {
        printf("%d passed, %d failed, %d rank%s\n", mpi_test.passed, mpi_test.failed, mpi_test.size,
               mpi_test.size == 1 ? "" : "s");
    }
    comm_stop();
    return mpi_test.failed ? 1 : 0;
}

#endif
