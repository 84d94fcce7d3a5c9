/*
 * Counting sorts instead of comparison sorts: a transpose visits its rows in ascending order, so transposing sorts, and a
 * merge of sorted rows finds duplicates as neighbours.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/csr.h"

static rudder_status_t csr_allocate(int64_t n, int64_t m, csr_t *csr, rudder_error_t *error)
{
    csr->n = n;
    csr->m = m;
    csr->indptr = calloc((size_t)n + 2, sizeof *csr->indptr);
    csr->indices = malloc(((size_t)m + 1) * sizeof *csr->indices);
    if (csr->indptr == NULL || csr->indices == NULL) {
        csr_free(csr);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the edges: %" PRId64 " bytes", (n + m) * 8);
    }
    return RUDDER_OK;
}

void csr_free(csr_t *csr)
{
    free(csr->indptr);
    free(csr->indices);
    *csr = (csr_t){0};
}

/* From the size of row v in indptr[v + 2] to its start in indptr[v + 1], which moves to its end as the row fills. */
static void csr_starts(csr_t *csr)
{
    for (int64_t i = 2; i < csr->n + 2; i++) {
        csr->indptr[i] += csr->indptr[i - 1];
    }
}

rudder_status_t csr_from_pairs(int64_t n, int64_t m, const int64_t *row, const int64_t *column, csr_t *csr,
                               rudder_error_t *error)
{
    RUDDER_TRY(csr_allocate(n, m, csr, error));
    for (int64_t e = 0; e < m; e++) {
        csr->indptr[row[e] + 2]++;
    }
    csr_starts(csr);
    for (int64_t e = 0; e < m; e++) {
        csr->indices[csr->indptr[row[e] + 1]++] = column[e];
    }
    return RUDDER_OK;
}

rudder_status_t csr_transpose(int64_t n, const int64_t *indptr, const int64_t *indices, csr_t *csr,
                              rudder_error_t *error)
{
    const int64_t m = indptr[n];
    RUDDER_TRY(csr_allocate(n, m, csr, error));
    for (int64_t e = 0; e < m; e++) {
        csr->indptr[indices[e] + 2]++;
    }
    csr_starts(csr);
    for (int64_t v = 0; v < n; v++) {
        for (int64_t e = indptr[v]; e < indptr[v + 1]; e++) {
            csr->indices[csr->indptr[indices[e] + 1]++] = v;
        }
    }
    return RUDDER_OK;
}

rudder_status_t csr_merge(const csr_t *a, const csr_t *b, unsigned drop, csr_t *csr, rudder_error_t *error)
{
    int64_t m = 0;
    RUDDER_TRY(csr_allocate(a->n, a->m + (b != NULL ? b->m : 0), csr, error));
    for (int64_t v = 0; v < a->n; v++) {
        int64_t i = a->indptr[v], j = b != NULL ? b->indptr[v] : 0;
        const int64_t i_end = a->indptr[v + 1], j_end = b != NULL ? b->indptr[v + 1] : 0, start = m;
        while (i < i_end || j < j_end) {
            const int from_a = j == j_end || (i < i_end && a->indices[i] <= b->indices[j]);
            const int64_t u = from_a ? a->indices[i++] : b->indices[j++];
            const int loop = (drop & CSR_DROP_LOOPS) != 0 && u == v;
            const int duplicate = (drop & CSR_DROP_DUPLICATES) != 0 && m > start && csr->indices[m - 1] == u;
            if (!loop && !duplicate) {
                csr->indices[m++] = u;
            }
        }
        csr->indptr[v + 1] = m;
    }
    int64_t *fitting = realloc(csr->indices, ((size_t)m + 1) * sizeof *fitting);
    csr->indices = fitting != NULL ? fitting : csr->indices;
    csr->m = m;
    return RUDDER_OK;
}

void csr_count(const csr_t *csr, int64_t *duplicates, int64_t *loops)
{
    *duplicates = *loops = 0;
    for (int64_t v = 0; v < csr->n; v++) {
        for (int64_t e = csr->indptr[v]; e < csr->indptr[v + 1]; e++) {
            *loops += csr->indices[e] == v;
            *duplicates += e > csr->indptr[v] && csr->indices[e] == csr->indices[e - 1];
        }
    }
}

rudder_status_t csr_undirected(int64_t n, const int64_t *indptr, const int64_t *indices, csr_t *csr,
                               int64_t *duplicates, int64_t *loops, rudder_error_t *error)
{
    csr_t out = {0}, in = {0};
    rudder_status_t status = csr_transpose(n, indptr, indices, &out, error);
    if (status == RUDDER_OK) {
        status = csr_transpose(n, out.indptr, out.indices, &in, error);
    }
    if (status == RUDDER_OK) {
        csr_count(&in, duplicates, loops);
        status = csr_merge(&in, &out, CSR_DROP_DUPLICATES | CSR_DROP_LOOPS, csr, error);
    }
    csr_free(&out);
    csr_free(&in);
    return status;
}

rudder_status_t csr_pairs_add(csr_pairs_t *pairs, int64_t from, int64_t to, rudder_error_t *error)
{
    if (pairs->n == pairs->capacity) {
        const int64_t capacity = pairs->capacity > 0 ? pairs->capacity + pairs->capacity / 2 : 4096;
        int64_t *froms = realloc(pairs->from, (size_t)capacity * sizeof *froms);
        pairs->from = froms != NULL ? froms : pairs->from;
        int64_t *tos = realloc(pairs->to, (size_t)capacity * sizeof *tos);
        pairs->to = tos != NULL ? tos : pairs->to;
        if (froms == NULL || tos == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId64 " edges", capacity);
        }
        pairs->capacity = capacity;
    }
    pairs->from[pairs->n] = from;
    pairs->to[pairs->n++] = to;
    return RUDDER_OK;
}

void csr_pairs_free(csr_pairs_t *pairs)
{
    free(pairs->from);
    free(pairs->to);
    *pairs = (csr_pairs_t){0};
}
