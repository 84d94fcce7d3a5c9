/*
 * A graph directory (docs/formats.md): graph.json and .npy arrays, mapped read-only.
 * In-edges in CSR: the in-neighbours of node v are indices[indptr[v] .. indptr[v+1]).
 */
#ifndef RUDDER_GRAPH_GRAPH_H
#define RUDDER_GRAPH_GRAPH_H

#include <stdint.h>

#include "base/npy.h"
#include "rudder/status.h"

enum { SPLIT_NONE = 0, SPLIT_TRAIN = 1, SPLIT_VALID = 2, SPLIT_TEST = 3 };

typedef struct graph {
    char name[64];
    int64_t n_nodes, n_edges;
    int32_t n_feat, n_classes;
    const int64_t *indptr;  /* [n_nodes + 1] */
    const int64_t *indices; /* [n_edges] */
    const float *feat;      /* [n_nodes][n_feat] */
    const int32_t *label;   /* [n_nodes], -1: none */
    const uint8_t *split;   /* [n_nodes], SPLIT_* */
    npy_t map[5];           /* owns the memory of the five arrays, in this order */
} graph_t;

/*
 * Maps a graph directory and checks it whole: shapes, dtypes, indptr ascending, ids in range, labels in range, features
 * finite, at least one node and one training node. Errors: IO, DATA with file, expected and found. Cost: one pass.
 */
rudder_status_t graph_open(const char *directory, graph_t *graph, rudder_error_t *error);
void graph_close(graph_t *graph);

#endif
