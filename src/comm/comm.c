/*
 * Start and end of MPI, the wait that polls, and collectives made of point-to-point messages. Point-to-point, because a
 * rank that waits then knows for whom, and because messages without bytes need not be sent.
 */
#include "comm/comm.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

enum { COMM_TAG = 1, COMM_MESSAGE_LIMIT = 1 << 30 };
_Static_assert(sizeof(double) == sizeof(int64_t), "comm_t.small serves both");

/* ---- Start and end ---------------------------------------------------------------------------------------------- */

static int comm_finalises; /* comm_start() has initialised MPI, so comm_stop() ends it */

/* What launchers tell the processes they start. SLURM_NTASKS is no sign: a batch script has it, too. */
static const struct comm_launcher {
    const char *variable, *name;
} comm_launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "Open MPI's launcher"},
    {"PMI_SIZE", "a launcher that speaks PMI (MPICH, Intel MPI, Slurm)"},
    {"MV2_COMM_WORLD_SIZE", "MVAPICH's launcher"},
    {"SLURM_STEP_NUM_TASKS", "Slurm's srun"},
};

/* N ranks that a launcher of another MPI has started are N singletons: each would train alone, all writing one folder. */
static rudder_status_t comm_check_launcher(rudder_error_t *error)
{
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 1) {
        return RUDDER_OK;
    }
    for (size_t i = 0; i < sizeof comm_launchers / sizeof *comm_launchers; i++) {
        const struct comm_launcher *launcher = &comm_launchers[i];
        const char *text = getenv(launcher->variable);
        if (text && strtol(text, NULL, 10) > 1) {
            char library[MPI_MAX_LIBRARY_VERSION_STRING];
            int length;
            MPI_Get_library_version(library, &length);
            library[strcspn(library, ",\n")] = 0;
            for (char *tab; (tab = strchr(library, '\t'));) {
                *tab = ' ';
            }
            return RUDDER_FAIL(
                error, RUDDER_E_ENVIRONMENT,
                "started by %s (%s is %s), but this program's MPI is %s, which sees 1 rank: expected its "
                "own launcher, or srun with a --mpi that it speaks",
                launcher->name, launcher->variable, text, library);
        }
    }
    return RUDDER_OK;
}

rudder_status_t comm_start(int *threads_multiple, rudder_error_t *error)
{
    int initialised, finalised, provided;
    MPI_Finalized(&finalised);
    MPI_Initialized(&initialised);
    if (finalised) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT,
                           "MPI has been finalised in this process and cannot start again");
    }
    if (initialised) {
        MPI_Query_thread(&provided);
    } else if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "MPI_Init_thread failed");
    } else {
        comm_finalises = 1;
        /* MPICH raises the errors of requests here, not on their communicator. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    *threads_multiple = provided == MPI_THREAD_MULTIPLE;
    const rudder_status_t status = comm_check_launcher(error);
    if (status != RUDDER_OK) {
        comm_stop();
    }
    return status;
}

void comm_stop(void)
{
    if (comm_finalises) {
        comm_finalises = 0;
        MPI_Finalize();
    }
}

_Noreturn void comm_abort(int exit_code)
{
    int initialised, finalised;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (initialised && !finalised) {
        MPI_Abort(MPI_COMM_WORLD, exit_code);
    }
    _exit(exit_code);
}

static void comm_release(comm_t *comm)
{
    free(comm->requests);
    free(comm->peers);
    free(comm->span);
    free(comm->small);
    memset(comm, 0, sizeof *comm);
}

rudder_status_t comm_open(double deadline, comm_t *comm, rudder_error_t *error)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    *comm = (comm_t){.mpi = MPI_COMM_NULL,
                     .rank = rank,
                     .size = size,
                     .deadline = deadline,
                     .phase = "start",
                     .message_limit = COMM_MESSAGE_LIMIT};
    comm->requests = malloc(2 * (size_t)size * sizeof *comm->requests);
    comm->peers = malloc(2 * (size_t)size * sizeof *comm->peers);
    comm->span = malloc(2 * (size_t)size * sizeof *comm->span);
    comm->small = malloc((size_t)size * COMM_SMALL * sizeof(double));
    if (!comm->requests || !comm->peers || !comm->span || !comm->small) {
        comm_release(comm);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to open a communicator of %d ranks", size);
    }
    /* Not MPI_Comm_dup: ranks may come here minutes apart, and it would spin. */
    MPI_Request request;
    MPI_Comm_idup(MPI_COMM_WORLD, &comm->mpi, &request);
    const rudder_status_t status = comm_wait(comm, &request, 1, error);
    if (status != RUDDER_OK) {
        return status; /* MPI may still write comm->mpi */
    }
    MPI_Comm_set_errhandler(comm->mpi, MPI_ERRORS_RETURN);
    return RUDDER_OK;
}

void comm_close(comm_t *comm)
{
    if (comm->size == 0 || comm->lost) {
        return; /* lost: MPI may still write what the requests point to */
    }
    MPI_Comm_free(&comm->mpi);
    comm_release(comm);
}

/* ---- The wait --------------------------------------------------------------------------------------------------- */

static rudder_status_t comm_fail_mpi(comm_t *comm, int code, rudder_error_t *error)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    comm->lost = 1;
    return RUDDER_FAIL(error, RUDDER_E_PEER, "%s: MPI failed on rank %d: %.300s", comm->phase, comm->rank, text);
}

/* Which of the ranks have not answered, as "rank 1, rank 3"; at most eight are named. */
static void comm_missing(const comm_t *comm, MPI_Request *requests, const int32_t *peers, int32_t n, char *text,
                         size_t text_size)
{
    size_t length = 0;
    int32_t named = 0, more = 0;
    snprintf(text, text_size, "the other ranks");
    for (int32_t p = 0; p < comm->size && peers; p++) {
        int missing = 0;
        for (int32_t i = 0; i < n && !missing; i++) {
            int done = 1;
            if (peers[i] == p && requests[i] != MPI_REQUEST_NULL) {
                MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
            }
            missing = !done;
        }
        if (missing && named < 8) {
            length += (size_t)snprintf(text + length, text_size - length, "%srank %d", named ? ", " : "", p);
            named++;
        } else if (missing) {
            more++;
        }
    }
    if (more) {
        snprintf(text + length, text_size - length, " and %d more", more);
    }
}

/* Notes when those of the first n requests that are done now, and were not before, came. */
static int comm_note_arrivals(MPI_Request *requests, const int32_t *peers, int32_t n, double *arrived)
{
    for (int32_t i = 0; i < n; i++) {
        int done = 0;
        const int code =
            requests[i] == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (done) {
            arrived[peers[i]] = clock_seconds();
        }
    }
    return MPI_SUCCESS;
}

/*
 * peers[i]: the rank that request i waits for; NULL: not known. Testing one request moves all of them on, and its error
 * is told at once. The first n_timed ones are all tested at every turn, to note when they came.
 */
static rudder_status_t comm_wait_for(comm_t *comm, MPI_Request *requests, const int32_t *peers, int32_t n,
                                     int32_t n_timed, double *arrived, rudder_error_t *error)
{
    clock_backoff_t backoff = {0};
    double start = 0;
    for (int32_t i = 0; i < n;) {
        int done = 0;
        int code;
        if (i < n_timed) {
            code = comm_note_arrivals(requests + i, peers + i, n_timed - i, arrived);
            done = requests[i] == MPI_REQUEST_NULL;
        } else {
            code = MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
        }
        if (code != MPI_SUCCESS) {
            return comm_fail_mpi(comm, code, error);
        }
        if (done) {
            i++;
            continue;
        }
        if (comm->deadline > 0) {
            const double now = clock_seconds();
            start = start > 0 ? start : now;
            if (now - start > comm->deadline) {
                char missing[160];
                comm_missing(comm, requests, peers, n, missing, sizeof missing);
                comm->lost = 1;
                return RUDDER_FAIL(error, RUDDER_E_PEER, "%s: rank %d expected an answer within %g s, none from %s",
                                   comm->phase, comm->rank, comm->deadline, missing);
            }
        }
        clock_back_off(&backoff);
    }
    return RUDDER_OK;
}

rudder_status_t comm_wait(comm_t *comm, MPI_Request *requests, int32_t n, rudder_error_t *error)
{
    return comm_wait_for(comm, requests, NULL, n, 0, NULL, error);
}

/* ---- All to all ------------------------------------------------------------------------------------------------- */

/* Posts the messages that start at byte `done` of each span; *n is how many requests there are now. */
static int comm_post(comm_t *comm, const comm_span_t *span, int receive, int64_t done, int32_t *n)
{
    /* Each rank begins with its right-hand neighbour, so that not all knock at rank 0 first. */
    for (int32_t i = 1; i < comm->size; i++) {
        const int32_t p = receive ? (comm->rank + comm->size - i) % comm->size : (comm->rank + i) % comm->size;
        const int64_t left = span[p].bytes - done;
        if (left <= 0) {
            continue;
        }
        const int bytes = (int)(left < comm->message_limit ? left : comm->message_limit);
        char *data = (char *)span[p].data + done;
        MPI_Request *request = &comm->requests[*n];
        const int code = receive ? MPI_Irecv(data, bytes, MPI_BYTE, p, COMM_TAG, comm->mpi, request)
                                 : MPI_Isend(data, bytes, MPI_BYTE, p, COMM_TAG, comm->mpi, request);
        if (code != MPI_SUCCESS) {
            return code;
        }
        comm->peers[(*n)++] = p;
    }
    return MPI_SUCCESS;
}

rudder_status_t comm_swap_timed(comm_t *comm, const comm_span_t *out, const comm_span_t *in, double *arrived,
                                rudder_error_t *error)
{
    assert(comm->message_limit > 0 && comm->message_limit <= INT_MAX);
    if (comm->lost) {
        return RUDDER_FAIL(error, RUDDER_E_PEER, "%s: rank %d lost a peer before", comm->phase, comm->rank);
    }
    assert(out[comm->rank].bytes == in[comm->rank].bytes);
    if (in[comm->rank].bytes > 0 && in[comm->rank].data != out[comm->rank].data) {
        memcpy(in[comm->rank].data, out[comm->rank].data, (size_t)in[comm->rank].bytes);
    }
    /* Two ranks exchange as many messages as their spans need; messages of a pair match in the order they are posted. */
    for (int64_t done = 0;; done += comm->message_limit) {
        int32_t n = 0;
        int code = comm_post(comm, in, 1, done, &n);
        const int32_t n_in = n;
        if (code == MPI_SUCCESS) {
            code = comm_post(comm, out, 0, done, &n);
        }
        if (code != MPI_SUCCESS) {
            return comm_fail_mpi(comm, code, error);
        }
        if (n == 0) {
            return RUDDER_OK;
        }
        RUDDER_TRY(comm_wait_for(comm, comm->requests, comm->peers, n, arrived != NULL ? n_in : 0, arrived, error));
    }
}

rudder_status_t comm_swap(comm_t *comm, const comm_span_t *out, const comm_span_t *in, rudder_error_t *error)
{
    return comm_swap_timed(comm, out, in, NULL, error);
}

/* all[size][bytes] = what each rank has in mine[bytes]. */
static rudder_status_t comm_gather_all(comm_t *comm, void *mine, int64_t bytes, void *all, rudder_error_t *error)
{
    comm_span_t *out = comm->span, *in = comm->span + comm->size;
    for (int32_t p = 0; p < comm->size; p++) {
        out[p] = (comm_span_t){mine, bytes};
        in[p] = (comm_span_t){(char *)all + p * bytes, bytes};
    }
    return comm_swap(comm, out, in, error);
}

/* ---- Collectives ------------------------------------------------------------------------------------------------ */

static int64_t comm_slice(const comm_t *comm, int64_t n)
{
    return (n + comm->size - 1) / comm->size;
}

int64_t comm_sum_scratch(const comm_t *comm, int64_t n)
{
    return comm->size * comm_slice(comm, n);
}

rudder_status_t comm_sum(comm_t *comm, float *x, int64_t n, float *scratch, rudder_error_t *error)
{
    const int64_t slice = comm_slice(comm, n), begin = comm->rank * slice < n ? comm->rank * slice : n,
                  mine = n - begin < slice ? n - begin : slice, bytes = (int64_t)sizeof(float);
    comm_span_t *out = comm->span, *in = comm->span + comm->size;
    if (n == 0) {
        return RUDDER_OK;
    }
    for (int32_t p = 0; p < comm->size; p++) {
        const int64_t first = p * slice < n ? p * slice : n, count = n - first < slice ? n - first : slice;
        out[p] = (comm_span_t){x + first, count * bytes};
        in[p] = (comm_span_t){scratch + p * slice, mine * bytes};
    }
    RUDDER_TRY(comm_swap(comm, out, in, error));
    memcpy(x + begin, scratch, (size_t)(mine * bytes));
    for (int32_t p = 1; p < comm->size; p++) {
        for (int64_t i = 0; i < mine; i++) {
            x[begin + i] += scratch[p * slice + i];
        }
    }
    for (int32_t p = 0; p < comm->size; p++) {
        const comm_span_t theirs = out[p];
        out[p] = (comm_span_t){x + begin, mine * bytes};
        in[p] = theirs;
    }
    return comm_swap(comm, out, in, error);
}

rudder_status_t comm_sum_f64(comm_t *comm, double *x, int32_t n, rudder_error_t *error)
{
    assert(n <= COMM_SMALL);
    const double *all = comm->small;
    RUDDER_TRY(comm_gather_all(comm, x, n * (int64_t)sizeof *x, comm->small, error));
    for (int32_t i = 0; i < n; i++) {
        x[i] = all[i];
        for (int32_t p = 1; p < comm->size; p++) {
            x[i] += all[p * n + i];
        }
    }
    return RUDDER_OK;
}

rudder_status_t comm_max_i64(comm_t *comm, int64_t *x, int32_t n, rudder_error_t *error)
{
    assert(n <= COMM_SMALL);
    const int64_t *all = comm->small;
    RUDDER_TRY(comm_gather_all(comm, x, n * (int64_t)sizeof *x, comm->small, error));
    for (int32_t i = 0; i < comm->size * n; i++) {
        x[i % n] = all[i] > x[i % n] ? all[i] : x[i % n];
    }
    return RUDDER_OK;
}

rudder_status_t comm_barrier(comm_t *comm, rudder_error_t *error)
{
    char here = 1;
    return comm_gather_all(comm, &here, 1, comm->small, error);
}

rudder_status_t comm_agree(comm_t *comm, rudder_status_t status, rudder_error_t *error)
{
    int64_t mine = status;
    const int64_t *all = comm->small;
    rudder_error_t lost = {0};
    rudder_status_t swapped = comm_gather_all(comm, &mine, sizeof mine, comm->small, &lost);
    int32_t first = 0;
    while (swapped == RUDDER_OK && first < comm->size && all[first] == RUDDER_OK) {
        first++;
    }
    if (swapped == RUDDER_OK && first == comm->size) {
        return RUDDER_OK;
    }
    rudder_error_t told = {0};
    if (swapped == RUDDER_OK) {
        told.status = (rudder_status_t)all[first];
        if (comm->rank == first && error) {
            told = *error;
        }
        for (int32_t p = 0; p < comm->size; p++) {
            comm->span[p] = (comm_span_t){&told, comm->rank == first ? (int64_t)sizeof told : 0};
            comm->span[comm->size + p] = (comm_span_t){&told, p == first ? (int64_t)sizeof told : 0};
        }
        swapped = comm_swap(comm, comm->span, comm->span + comm->size, &lost);
    }
    if (swapped != RUDDER_OK) {
        if (status == RUDDER_OK && error) {
            *error = lost;
        }
        return status == RUDDER_OK ? swapped : status;
    }
    const rudder_status_t agreed = (rudder_status_t)all[first];
    if (comm->rank != first) {
        const char *text = told.text[0] ? told.text : rudder_status_text(agreed);
        error_set(error, agreed, told.where[0] ? told.where : __func__, "rank %d: %.480s", first, text);
    }
    return agreed;
}

rudder_status_t comm_gather(comm_t *comm, const void *mine, int64_t n, void *all, rudder_error_t *error)
{
    for (int32_t p = 0; p < comm->size; p++) {
        comm->span[p] = (comm_span_t){(void *)mine, p == 0 ? n : 0};
        comm->span[comm->size + p] = comm->rank ? (comm_span_t){NULL, 0} : (comm_span_t){(char *)all + p * n, n};
    }
    return comm_swap(comm, comm->span, comm->span + comm->size, error);
}

rudder_status_t comm_broadcast(comm_t *comm, void *data, int64_t n, rudder_error_t *error)
{
    for (int32_t p = 0; p < comm->size; p++) {
        comm->span[p] = (comm_span_t){data, comm->rank == 0 ? n : 0};
        comm->span[comm->size + p] = (comm_span_t){data, p == 0 ? n : 0};
    }
    return comm_swap(comm, comm->span, comm->span + comm->size, error);
}
