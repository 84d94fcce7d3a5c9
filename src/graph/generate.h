/*
 * Generated graphs of any size, for traces of known shape and for scale. A node's in-edges, label and features are a
 * function of the seed and the node alone, so nodes are made in any order by any number of threads, nothing is held but the
 * blocks of nodes being written, and the same options give the same bytes on every machine.
 *
 * A model works on *places*: 0 .. n-1, in an order of its own (by class, by degree, by hierarchy). Ids are places in random
 * order, so that an id tells nothing.
 */
#ifndef RUDDER_GRAPH_GENERATE_H
#define RUDDER_GRAPH_GENERATE_H

#include <stdint.h>

#include "base/json.h"
#include "rudder/status.h"

#define GENERATE_MAX_NODES (INT64_C(1) << 40)
enum { GENERATE_MAX_DEGREE = 1 << 24, GENERATE_MAX_MEANS = 1 << 26 };

typedef struct generate_options {
    const char *name;
    uint64_t seed;
    int64_t n_nodes, n_edges; /* edges: expected, in all */
    int32_t n_feat, n_classes;
    double
        homophily; /* sbm: share of edges inside a class; rmat: of those that are drawn into the class of their node */
    double noise;  /* standard deviation of features, where the means of two classes are 1 apart */
    double train, valid, test; /* shares of the nodes */
    int32_t threads;

    double exponent;       /* sbm: of the distribution of degrees */
    double probability[4]; /* rmat: of the quarters, a b c d: rows are sources, columns destinations */
    int scramble;          /* rmat: 0: ids are places */
} generate_options_t;

typedef struct generate_report {
    int64_t n_edges;
    int64_t
        missing; /* in-edges that were wanted and not found: a node has no more neighbours, or always the same were drawn */
    int64_t checked;  /* edges looked at, all of small graphs, and ... */
    int64_t inside;   /* of them between nodes of one class */
    int64_t isolated; /* nodes without in-edges */
    int64_t most;     /* in-edges of a node */
    int64_t train, valid, test;
} generate_report_t;

/*
 * Degree-corrected stochastic block model (Karrer, Newman, "Stochastic blockmodels and community structure in networks",
 * Phys. Rev. E 83, 2011). Classes are of equal size and take place k, k + K, k + 2K ...; the r-th node of a class has the
 * weight r^(-1 / (exponent - 1)), so that degrees follow a power law with that exponent; it has in-edges in proportion to its
 * weight, and is drawn as a neighbour in proportion to it, too. The check is of the options: USAGE.
 */
rudder_status_t generate_sbm_check(const generate_options_t *options, rudder_error_t *error);
rudder_status_t generate_sbm(const char *directory, const generate_options_t *options, generate_report_t *report,
                             rudder_error_t *error);

/*
 * R-MAT (Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004): an edge falls into a quarter of
 * the adjacency matrix, then into a quarter of that, ... A node has a Poisson number of in-edges, with the mean that its
 * column has; their sources are drawn level by level, given the column. The lowest levels are the class: a share `homophily`
 * of the edges copies them from the destination.
 */
rudder_status_t generate_rmat_check(const generate_options_t *options, rudder_error_t *error);
rudder_status_t generate_rmat(const char *directory, const generate_options_t *options, generate_report_t *report,
                              rudder_error_t *error);

/* What a run takes, told before it: memory at the peak, and the size of the directory. Bytes. */
void generate_needs(const generate_options_t *options, int64_t *memory, int64_t *disk);

/* ---- for models ------------------------------------------------------------------------------------------------- */

typedef struct generate_model {
    const void *self;
    int scramble;                                                      /* ids are places in random order */
    void (*describe)(const generate_options_t *options, json_t *json); /* for graph.json */
    int64_t (*degree)(const void *self, int64_t place);                /* in-edges wanted */
    int64_t (*draw)(const void *self, int64_t place, uint64_t i);      /* place of a neighbour, the i-th drawn */
    int32_t (*label)(const void *self, int64_t place);
} generate_model_t;

/* Independent streams of random numbers of a seed. */
enum { GENERATE_ORDER, GENERATE_SPLIT, GENERATE_FEATURES, GENERATE_MEANS, GENERATE_DEGREE, GENERATE_EDGES };
uint64_t generate_key(const generate_options_t *options, int stream);

/* Errors: USAGE (what is impossible for every model). */
rudder_status_t generate_check(const generate_options_t *options, rudder_error_t *error);
/* Writes the directory. Errors: IO, MEMORY. */
rudder_status_t generate_write(const char *directory, const generate_options_t *options, const generate_model_t *model,
                               generate_report_t *report, rudder_error_t *error);

#endif
