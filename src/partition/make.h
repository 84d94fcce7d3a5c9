/* Making a partition directory from a graph. */
#ifndef RUDDER_PARTITION_MAKE_H
#define RUDDER_PARTITION_MAKE_H

#include <stdint.h>

#include "graph/graph.h"
#include "rudder/status.h"

typedef enum make_method { MAKE_METIS, MAKE_RANDOM } make_method_t;

typedef struct make_options {
    make_method_t method;
    int32_t n_parts;
    uint64_t seed;
} make_options_t;

/* One part. Edges are in-edges of owned nodes. */
typedef struct make_part {
    int64_t nodes, edges, train, halo;
    int64_t cut;         /* edges from another part */
    double remote_share; /* of the input nodes of a sampled minibatch: 1000 seeds, fan-out 10,10 */
} make_part_t;

/* What was done, and how good it is. */
typedef struct make_report {
    const char *method;        /* "metis", "random" */
    char fallback[512];        /* why METIS was given up, "" where it was not */
    int64_t undirected;        /* edges of the cleaned graph that is cut */
    int64_t duplicates, loops; /* edges of the graph that cleaning left out */
    int32_t n_parts;
    make_part_t *part;                      /* [n_parts] */
    double node_imbalance, train_imbalance; /* largest part over mean */
} make_report_t;

/* Whether the options fit the graph. Errors: USAGE (more parts than nodes). */
rudder_status_t make_check(const graph_t *graph, const make_options_t *options, rudder_error_t *error);

/* Bytes of memory at the peak and of disk, both at most; nothing is allocated. */
void make_needs(int64_t n_nodes, int64_t n_edges, int32_t n_feat, const make_options_t *options, int64_t *memory,
                int64_t *disk);

/*
 * Partitions a graph and writes the files of a partition directory into `directory`. When METIS fails, `random` does the
 * work and the report says why. Errors: USAGE (more parts than nodes), UNSUPPORTED (too large for METIS), MEMORY, IO.
 */
rudder_status_t make_parts(const graph_t *graph, const char *directory, const make_options_t *options,
                           make_report_t *report, rudder_error_t *error);
void make_report_free(make_report_t *report);

#endif
