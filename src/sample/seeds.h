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
    SEEDS_DRIFT      /* the mix of classes moves over the run: a seed has its uses near each other */
} seeds_order_t;

typedef struct seeds_config {
    seeds_order_t order;
    uint64_t seed;
    int64_t n;            /* training nodes */
    int64_t epochs, step; /* of the run; seeds of a step, all ranks together */
    const int32_t *label; /* [n] */
    const int32_t *rank;  /* [n] position in a breadth-first order */
} seeds_config_t;

/*
 * Fills order[n] with positions in the list of training nodes, 0 .. n-1: a permutation of them, but for SEEDS_DRIFT, where
 * each comes once in an epoch only in the mean of the run, and at most once in a step. epoch: 0 .. `epochs` - 1, or -1
 * for one before the run. scratch: n uint64. Cost: O(n log n). Thread-safe.
 */
void seeds_epoch(const seeds_config_t *config, int64_t epoch, int64_t *order, uint64_t *scratch);

#endif
