/*
 * The order of the seeds (training nodes) in an epoch. One order over all training nodes of the graph, from seed and epoch
 * alone: step s takes the next ranks x batch seeds, and each rank trains on those of them that it owns. Minibatches, and
 * so the training, do not depend on the number of ranks or on the partition.
 */
#ifndef RUDDER_SAMPLE_SEEDS_H
#define RUDDER_SAMPLE_SEEDS_H

#include <stdint.h>

#include "rudder/status.h"

typedef enum seeds_order {
    SEEDS_SHUFFLED,  /* a permutation, uniform */
    SEEDS_COMMUNITY, /* 64 streams through a breadth-first order of the graph, side by side */
    SEEDS_CLASS,     /* by label, shuffled within */
    SEEDS_DRIFT      /* the mix of regions of the graph moves slowly over the epoch */
} seeds_order_t;

typedef struct seeds_config {
    seeds_order_t order;
    uint64_t seed;
    int64_t n;            /* training nodes */
    const int32_t *label; /* [n] */
    const int32_t *rank;  /* [n] position in a breadth-first order */
} seeds_config_t;

/*
 * Fills order[n] with a permutation of 0 .. n-1 (positions in the list of training nodes). scratch: n uint64. Cost:
 * O(n log n). Thread-safe.
 */
void seeds_epoch(const seeds_config_t *config, int64_t epoch, int64_t *order, uint64_t *scratch);

#endif
