/* How MPI starts: by us, by a host program, under the launcher of another MPI. A process starts MPI once: one child a case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/comm.h"

/* Runs a case in a child, which returns the number of the first thing that is not as it must be, 0 if all is well. */
static int in_child(int (*body)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        _exit(body());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

#define EXPECT(number, condition)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            return number;                                                                                             \
        }                                                                                                              \
    } while (0)

static int body_alone(void)
{
    int threads_multiple = -1, finalised = 0;
    comm_t comm;
    EXPECT(1, comm_start(&threads_multiple, NULL) == RUDDER_OK);
    EXPECT(2, threads_multiple == 1);
    EXPECT(3, comm_open(0, &comm, NULL) == RUDDER_OK && comm.size == 1 && comm.rank == 0);
    EXPECT(4, comm_barrier(&comm, NULL) == RUDDER_OK);
    comm_close(&comm);
    comm_close(&comm);
    comm_stop();
    MPI_Finalized(&finalised);
    EXPECT(5, finalised);
    EXPECT(6, comm_start(&threads_multiple, NULL) == RUDDER_E_ENVIRONMENT);
    comm_stop();
    return 0;
}

static int body_host(void)
{
    int provided, threads_multiple = -1, finalised = 1;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    for (int time = 0; time < 2; time++) {
        EXPECT(1, comm_start(&threads_multiple, NULL) == RUDDER_OK);
        EXPECT(2, threads_multiple == (provided == MPI_THREAD_MULTIPLE));
        comm_stop();
        MPI_Finalized(&finalised);
        EXPECT(3, !finalised);
    }
    MPI_Finalize();
    return 0;
}

static int body_other_launcher(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, threads_multiple, finalised = 0;
    MPI_Get_library_version(library, &length);
    const int open_mpi = strstr(library, "Open MPI") != NULL;
    setenv(open_mpi ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE", "4", 1);
    rudder_error_t error = {0};
    EXPECT(1, comm_start(&threads_multiple, &error) == RUDDER_E_ENVIRONMENT);
    EXPECT(2, strstr(error.text, open_mpi ? "Open MPI" : "MPICH"));
    EXPECT(3, strstr(error.text, open_mpi ? "PMI_SIZE is 4" : "OMPI_COMM_WORLD_SIZE is 4"));
    EXPECT(4, strstr(error.text, open_mpi ? "PMI (MPICH" : "Open MPI's launcher"));
    MPI_Finalized(&finalised);
    EXPECT(5, finalised);
    return 0;
}

static int body_one_rank_of_a_job(void)
{
    int threads_multiple;
    setenv("SLURM_NTASKS", "8", 1); /* as in a batch script, where one process alone is no mistake */
    setenv("PMI_SIZE", "1", 1);
    EXPECT(1, comm_start(&threads_multiple, NULL) == RUDDER_OK);
    comm_stop();
    return 0;
}

static void test_alone(void **state)
{
    (void)state;
    assert_int_equal(in_child(body_alone), 0);
}

static void test_in_a_host_program(void **state)
{
    (void)state;
    assert_int_equal(in_child(body_host), 0);
}

static void test_launcher_of_another_mpi(void **state)
{
    (void)state;
    assert_int_equal(in_child(body_other_launcher), 0);
}

static void test_one_process_inside_a_batch_job(void **state)
{
    (void)state;
    assert_int_equal(in_child(body_one_rank_of_a_job), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_in_a_host_program),
        cmocka_unit_test(test_launcher_of_another_mpi),
        cmocka_unit_test(test_one_process_inside_a_batch_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
