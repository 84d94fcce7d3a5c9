/*
 * METIS is known to crash on legal input and to return partitions with parts missing (one part, more parts than nodes,
 * long paths, memory). So nothing it does is trusted: see child.h for crashes, metis_check() for answers.
 */
#include <inttypes.h>
#include <metis.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "partition/child.h"
#include "partition/metis.h"

enum {
    METIS_CHILD_MEMORY = 2,  /* exit code: no memory for its input */
    METIS_CHILD_ERROR = 3,   /* METIS returned an error */
    METIS_TRAIN_PER_PART = 4 /* fewer training nodes than this a part cannot be balanced */
};

/* METIS aims at a largest part of at most this many times the mean. Tighter limits cost cut. */
static const real_t metis_balance[2] = {1.03f, 1.05f};

typedef struct metis_job {
    const csr_t *csr;
    const uint8_t *weight;
    int32_t n_parts, n_constraints;
    uint64_t seed;
} metis_job_t;

rudder_status_t metis_fits(int64_t n, int64_t arcs, rudder_error_t *error)
{
    const int64_t most = IDXTYPEWIDTH == 32 ? INT32_MAX : INT64_MAX / 16;
    if (n >= most / 2 || arcs > most) {
        return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED,
                           "METIS: expected at most %" PRId64 " arcs and %" PRId64
                           " nodes (it counts in %d bits), found %" PRId64 " and %" PRId64
                           "; use --method random, or build with a METIS of 64-bit idx_t",
                           most, most / 2, IDXTYPEWIDTH, arcs, n);
    }
    return RUDDER_OK;
}

/* In the child. */
static int metis_child(void *context, void *shared)
{
    const metis_job_t *job = context;
    const csr_t *csr = job->csr;
    const size_t n = (size_t)csr->n, n_constraints = (size_t)job->n_constraints;
    idx_t *xadj = malloc((n + 1) * sizeof *xadj), *adjncy = malloc(((size_t)csr->m + 1) * sizeof *adjncy);
    idx_t *vwgt = malloc(n * n_constraints * sizeof *vwgt);
    if (xadj == NULL || adjncy == NULL || vwgt == NULL) {
        return METIS_CHILD_MEMORY;
    }
    for (size_t v = 0; v <= n; v++) {
        xadj[v] = (idx_t)csr->indptr[v];
    }
    for (int64_t e = 0; e < csr->m; e++) {
        adjncy[e] = (idx_t)csr->indices[e];
    }
    for (size_t v = 0; v < n; v++) {
        vwgt[v * n_constraints] = 1;
        if (n_constraints > 1) {
            vwgt[v * n_constraints + 1] = job->weight[v] != 0;
        }
    }
    idx_t options[METIS_NOPTIONS], nvtxs = (idx_t)csr->n, ncon = job->n_constraints, nparts = job->n_parts, cut;
    real_t balance[2] = {metis_balance[0], metis_balance[1]};
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = (idx_t)(job->seed & 0x7fffffff);
    options[METIS_OPTION_NUMBERING] = 0;
    const int result = METIS_PartGraphKway(&nvtxs, &ncon, xadj, adjncy, vwgt, NULL, NULL, &nparts, NULL, balance,
                                           options, &cut, shared);
    return result == METIS_OK ? 0 : result == METIS_ERROR_MEMORY ? METIS_CHILD_MEMORY : METIS_CHILD_ERROR;
}

/* Copies the answer if every part is in range and none is empty. */
static rudder_status_t metis_check(const idx_t *answer, int64_t n, int32_t n_parts, int32_t *part,
                                   rudder_error_t *error)
{
    int64_t *count = calloc((size_t)n_parts, sizeof *count);
    if (count == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId32 " counts", n_parts);
    }
    rudder_status_t status = RUDDER_OK;
    for (int64_t v = 0; v < n && status == RUDDER_OK; v++) {
        if (answer[v] < 0 || answer[v] >= n_parts) {
            status = RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT,
                                 "METIS: expected parts in 0..%" PRId32 ", found %" PRIDX " for node %" PRId64,
                                 n_parts - 1, answer[v], v);
        } else {
            part[v] = (int32_t)answer[v];
            count[part[v]]++;
        }
    }
    for (int32_t p = 0; p < n_parts && status == RUDDER_OK; p++) {
        if (count[p] == 0) {
            status = RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT,
                                 "METIS: expected nodes in every part, found none in part %" PRId32, p);
        }
    }
    free(count);
    return status;
}

rudder_status_t metis_partition(const csr_t *csr, const uint8_t *weight, int32_t n_parts, uint64_t seed, int32_t *part,
                                rudder_error_t *error)
{
    void *answer = NULL;
    const size_t bytes = (size_t)csr->n * sizeof(idx_t);
    int64_t weighted = 0;
    int code = 0;
    if (n_parts < 2 || n_parts > csr->n) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "METIS: expected 2..%" PRId64 " parts, found %" PRId32, csr->n,
                           n_parts);
    }
    RUDDER_TRY(metis_fits(csr->n, csr->m, error));
    for (int64_t v = 0; v < csr->n; v++) {
        weighted += weight[v] != 0;
    }
    metis_job_t job = {.csr = csr,
                       .weight = weight,
                       .n_parts = n_parts,
                       .n_constraints = weighted >= METIS_TRAIN_PER_PART * (int64_t)n_parts ? 2 : 1,
                       .seed = seed};
    RUDDER_TRY(child_memory(bytes, &answer, error));
    memset(answer, 0xff, bytes); /* what METIS leaves out is out of range */
    rudder_status_t status = child_run("METIS", metis_child, &job, answer, &code, error);
    if (status == RUDDER_OK && code != 0) {
        status = RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "METIS: expected a partition, found %s",
                             code == METIS_CHILD_MEMORY ? "that memory ran out" : "an error in it");
    }
    if (status == RUDDER_OK) {
        status = metis_check(answer, csr->n, n_parts, part, error);
    }
    child_memory_free(answer, bytes);
    return status;
}
