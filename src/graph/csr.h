/*
 * Adjacency in rows (CSR), owned memory, and the three steps that every import and every clean-up is made of: count edges
 * into rows, transpose, merge. Each is linear in nodes + edges.
 */
#ifndef RUDDER_GRAPH_CSR_H
#define RUDDER_GRAPH_CSR_H

#include <stdint.h>

#include "rudder/status.h"

typedef struct csr {
    int64_t n, m;    /* rows, entries */
    int64_t *indptr; /* [n + 1] */
    int64_t *indices;
} csr_t;

/* Rows from m pairs (row, column), both in [0, n); entries of a row stay in the order of the pairs. Errors: MEMORY. */
rudder_status_t csr_from_pairs(int64_t n, int64_t m, const int64_t *row, const int64_t *column, csr_t *csr,
                               rudder_error_t *error);

/* The transpose of n rows; entries of its rows ascend. Errors: MEMORY. */
rudder_status_t csr_transpose(int64_t n, const int64_t *indptr, const int64_t *indices, csr_t *csr,
                              rudder_error_t *error);

enum { CSR_DROP_DUPLICATES = 1, CSR_DROP_LOOPS = 2 };

/*
 * Rows of `a` and, where it is not NULL, of `b` together; entries must ascend in both and do so in the result. Errors:
 * MEMORY.
 */
rudder_status_t csr_merge(const csr_t *a, const csr_t *b, unsigned drop, csr_t *csr, rudder_error_t *error);

/* Entries that repeat the one before them, and entries (v, v); rows must ascend. */
void csr_count(const csr_t *csr, int64_t *duplicates, int64_t *loops);

/*
 * The simple undirected graph of a directed one: every edge both ways, none twice, no loops. For partitioners and walks.
 * m is 2 x undirected edges. *duplicates and *loops: csr_count() of what was given. Errors: MEMORY.
 */
rudder_status_t csr_undirected(int64_t n, const int64_t *indptr, const int64_t *indices, csr_t *csr,
                               int64_t *duplicates, int64_t *loops, rudder_error_t *error);

/* A growing list of edges, for readers. Zeroed: empty. */
typedef struct csr_pairs {
    int64_t n, capacity;
    int64_t *from, *to;
} csr_pairs_t;

rudder_status_t csr_pairs_add(csr_pairs_t *pairs, int64_t from, int64_t to, rudder_error_t *error);
void csr_pairs_free(csr_pairs_t *pairs);

/* Frees; a zeroed one is fine. */
void csr_free(csr_t *csr);

#endif
