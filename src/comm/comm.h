/*
 * MPI as Rudder uses it: non-blocking calls and one wait that polls with back-off, since blocking waits spin and steal
 * the cores that compute when ranks outnumber them.
 */
#ifndef RUDDER_COMM_COMM_H
#define RUDDER_COMM_COMM_H

#include <mpi.h>
#include <stdint.h>

#include "rudder/status.h"

typedef struct comm {
    MPI_Comm mpi;
    int32_t rank, size;
    double deadline;   /* seconds a wait for peers may take, 0: no limit */
    const char *phase; /* what is going on, for the message when a peer is lost ("sampling", "allreduce", ...) */
} comm_t;

/*
 * Initialises MPI (THREAD_MULTIPLE asked for) unless the program has done so already. *threads_multiple tells whether a
 * loader thread may communicate beside the trainer. Fails with ENVIRONMENT when a launcher of another MPI started us as
 * N singletons (its environment says N ranks, MPI says 1).
 */
rudder_status_t comm_start(int *threads_multiple, rudder_error_t *error);
/* Finalises MPI if comm_start() initialised it. Collective. */
void comm_stop(void);
/* Ends all ranks at once with this exit code; does not return. */
_Noreturn void comm_abort(int exit_code);

/* A communicator of its own over all ranks. Collective. */
rudder_status_t comm_open(double deadline, comm_t *comm, rudder_error_t *error);
void comm_close(comm_t *comm);

/* Waits for all requests: MPI_Testall with back-off. Errors: PEER after the deadline, with rank and phase. */
rudder_status_t comm_wait(comm_t *comm, MPI_Request *requests, int32_t n, rudder_error_t *error);

/*
 * x[i] = sum over ranks of x[i], in the order of ranks, so that a setting always gives the same bits: each rank sums one
 * slice (all-to-all), then slices are gathered. scratch: comm_sum_scratch(comm, n) floats. Collective. Chunked below INT_MAX.
 */
int64_t comm_sum_scratch(const comm_t *comm, int64_t n);
rudder_status_t comm_sum(comm_t *comm, float *x, int64_t n, float *scratch, rudder_error_t *error);
/* The same for a few doubles and integers (loss, counts); n <= 64. Collective. */
rudder_status_t comm_sum_f64(comm_t *comm, double *x, int32_t n, rudder_error_t *error);
rudder_status_t comm_max_i64(comm_t *comm, int64_t *x, int32_t n, rudder_error_t *error);
rudder_status_t comm_barrier(comm_t *comm, rudder_error_t *error);

/*
 * All ranks learn whether all succeeded: returns the status of the lowest rank that failed, or RUDDER_OK; on the other
 * ranks *error says which rank failed and its text. Collective; *error is in/out.
 */
rudder_status_t comm_agree(comm_t *comm, rudder_status_t status, rudder_error_t *error);

/* Gathers n bytes of each rank at rank 0 (all[size * n]; NULL elsewhere). Collective. */
rudder_status_t comm_gather(comm_t *comm, const void *mine, int64_t n, void *all, rudder_error_t *error);
/* Broadcasts n bytes from rank 0. Collective. */
rudder_status_t comm_broadcast(comm_t *comm, void *data, int64_t n, rudder_error_t *error);

#endif
