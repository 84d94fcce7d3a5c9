/*
 * MPI as Rudder uses it: non-blocking calls and one wait that polls with back-off, since blocking waits spin and steal
 * the cores that compute when ranks outnumber them.
 */
#ifndef RUDDER_COMM_COMM_H
#define RUDDER_COMM_COMM_H

#include <mpi.h>
#include <stdint.h>

#include "rudder/status.h"

/* Bytes for, or from, one rank. */
typedef struct comm_span {
    void *data;
    int64_t bytes;
} comm_span_t;

/* One communicator is used by one thread at a time. Zeroed: closed. */
typedef struct comm {
    MPI_Comm mpi;
    int32_t rank, size;
    double deadline;   /* seconds a wait for peers may take, 0: no limit */
    const char *phase; /* what is going on, for the message when a peer is lost ("sampling", "allreduce", ...) */

    /* Internal. */
    int64_t message_limit; /* longest single message in bytes, below INT_MAX; tests lower it */
    int lost;              /* a peer was lost or MPI failed: messages may be under way, every further call fails */
    MPI_Request *requests; /* [2 * size] of comm_swap() */
    int32_t *peers;        /* [2 * size] the rank that each request waits for */
    comm_span_t *span;     /* [2 * size] outgoing and incoming of the collectives below */
    void *small;           /* [size][COMM_SMALL] doubles or integers of all ranks */
} comm_t;

/*
 * Initialises MPI (THREAD_MULTIPLE asked for) unless the program has done so already. *threads_multiple tells whether a
 * loader thread may communicate beside the trainer. Fails with ENVIRONMENT when a launcher of another MPI started us as
 * N singletons (its environment says N ranks, MPI says 1).
 */
rudder_status_t comm_start(int *threads_multiple, rudder_error_t *error);
/* Finalises MPI if comm_start() initialised it. Collective. */
void comm_stop(void);
/* Ends all ranks at once with this exit code; does not return. What is left to do after PEER. */
_Noreturn void comm_abort(int exit_code);

/*
 * A communicator of its own over all ranks. Collective. MPI's errors on it become PEER with MPI's text. After PEER (or
 * MEMORY inside a collective) it is of no use: messages may still be under way, so their memory must stay until
 * comm_abort().
 */
rudder_status_t comm_open(double deadline, comm_t *comm, rudder_error_t *error);
/* Collective. A zeroed comm_t is allowed. */
void comm_close(comm_t *comm);

/*
 * Waits for all requests: tests them with back-off. Errors: PEER after the deadline, with phase and, in the collectives
 * below, the ranks that are missing.
 */
rudder_status_t comm_wait(comm_t *comm, MPI_Request *requests, int32_t n, rudder_error_t *error);

/*
 * Every rank sends out[p] to rank p and receives in[p] from it; both sides know the sizes, and the one to oneself is
 * copied. Longer spans travel as several messages. The base of everything below. Collective.
 */
rudder_status_t comm_swap(comm_t *comm, const comm_span_t *out, const comm_span_t *in, rudder_error_t *error);
/* As comm_swap(); arrived[p] becomes the clock_seconds() when all of in[p] was seen to be here, if it has any bytes. */
rudder_status_t comm_swap_timed(comm_t *comm, const comm_span_t *out, const comm_span_t *in, double *arrived,
                                rudder_error_t *error);

/*
 * x[i] = sum over ranks of x[i], in the order of ranks, so that a setting always gives the same bits: each rank sums one
 * slice (all-to-all), then slices are gathered. scratch: comm_sum_scratch(comm, n) floats. Collective.
 */
int64_t comm_sum_scratch(const comm_t *comm, int64_t n);
rudder_status_t comm_sum(comm_t *comm, float *x, int64_t n, float *scratch, rudder_error_t *error);
enum { COMM_SMALL = 64 };
/* The same for a few doubles and integers (loss, counts); n <= COMM_SMALL. Collective. */
rudder_status_t comm_sum_f64(comm_t *comm, double *x, int32_t n, rudder_error_t *error);
rudder_status_t comm_max_i64(comm_t *comm, int64_t *x, int32_t n, rudder_error_t *error);
rudder_status_t comm_barrier(comm_t *comm, rudder_error_t *error);

/*
 * All ranks learn whether all succeeded: returns the status of the lowest rank that failed, or RUDDER_OK; on the other
 * ranks *error says which rank failed and its text. Collective; *error is in/out. Where the ranks cannot agree because a
 * peer is lost, a failure of one's own is returned rather than PEER.
 */
rudder_status_t comm_agree(comm_t *comm, rudder_status_t status, rudder_error_t *error);

/* Gathers n bytes of each rank at rank 0 (all[size * n]; NULL elsewhere). Collective. */
rudder_status_t comm_gather(comm_t *comm, const void *mine, int64_t n, void *all, rudder_error_t *error);
/* Broadcasts n bytes from rank 0. Collective. */
rudder_status_t comm_broadcast(comm_t *comm, void *data, int64_t n, rudder_error_t *error);

#endif
