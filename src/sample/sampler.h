/*
 * Neighbour sampling: uniform, without replacement, `fanout` in-neighbours per node and layer; all of them where a node
 * has no more. The draw of a node depends on (seed, epoch, step, layer, original id) only, over its neighbours in the
 * graph's order: any number of ranks, any partition and any number of threads give the same minibatch.
 * Neighbours of remote nodes come from their owners by exchange, one exchange a layer (the seeds' layer needs none).
 */
#ifndef RUDDER_SAMPLE_SAMPLER_H
#define RUDDER_SAMPLE_SAMPLER_H

#include <stdint.h>

#include "comm/exchange.h"
#include "partition/partition.h"
#include "rudder/status.h"

enum { SAMPLER_MAX_LAYERS = 8, SAMPLER_MAX_FANOUT = 4096 };

/*
 * One layer of a minibatch, a bipartite graph from n_src to n_dst nodes in local numbers. The destinations are the first
 * n_dst sources. In-neighbours of destination i: index[indptr[i] .. indptr[i + 1]), local source numbers.
 */
typedef struct block {
    int64_t n_dst, n_src, n_edges;
    int64_t *indptr;    /* [n_dst + 1] */
    int32_t *index;     /* [n_edges] */
    uint64_t *dst_orig; /* [n_dst] original ids, the keys of dropout */
} block_t;

/* A minibatch. block[0] is the layer next to the input, block[n_layers - 1] the seeds' layer. */
typedef struct minibatch {
    int64_t epoch, step; /* step: since the start of the run, over epochs */
    int32_t n_layers;
    block_t block[SAMPLER_MAX_LAYERS];
    int64_t n_seeds;                         /* of this rank; may be 0 */
    int64_t n_seeds_total;                   /* of all ranks */
    int64_t n_input;                         /* block[0].n_src */
    int64_t *input;                          /* [n_input] global ids, distinct, in order of first appearance */
    int32_t *label;                          /* [n_seeds] */
    int64_t capacity[SAMPLER_MAX_LAYERS][3]; /* allocated nodes, edges, dst; grown as needed */
    int64_t input_capacity, label_capacity;
} minibatch_t;

typedef struct sampler_config {
    uint64_t seed;
    int32_t n_layers;
    int32_t fanout[SAMPLER_MAX_LAYERS]; /* [0]: next to the input, as DGL; 0: no neighbours */
} sampler_config_t;

typedef struct sampler sampler_t;

/* parts, part and exchange outlive the sampler. Errors: ARGUMENT (layers or fan-out out of bounds), MEMORY. */
rudder_status_t sampler_open(const sampler_config_t *config, const parts_t *parts, const part_t *part,
                             exchange_t *exchange, sampler_t **sampler, rudder_error_t *error);
void sampler_close(sampler_t *sampler);

/*
 * Samples one minibatch for seeds[n] (owned global ids, distinct; n may be 0). Fills all of *minibatch but n_seeds_total.
 * Collective. Errors: PEER, MEMORY.
 */
rudder_status_t sampler_sample(sampler_t *sampler, int64_t epoch, int64_t step, const int64_t *seeds, int64_t n,
                               minibatch_t *minibatch, rudder_error_t *error);

/* Frees the arrays of a minibatch (a zeroed one is fine). */
void minibatch_free(minibatch_t *minibatch);

#endif
