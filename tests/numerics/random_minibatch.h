/*
 * Random minibatches for tests and benches of the numerics, made without the sampler: seeds, then neighbours layer by
 * layer, in local numbers in order of first appearance. Some nodes have no neighbours; few nodes are neighbours of many.
 */
#ifndef RUDDER_TESTS_RANDOM_MINIBATCH_H
#define RUDDER_TESTS_RANDOM_MINIBATCH_H

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "sample/sampler.h"

typedef struct random_stream {
    uint64_t key, count;
} random_stream_t;

static inline uint32_t random_word(random_stream_t *stream)
{
    return rng_philox(stream->key, stream->count++, 0).v[0];
}

static inline int32_t random_below(random_stream_t *stream, int32_t bound)
{
    return (int32_t)rng_below(random_word(stream), (uint32_t)bound);
}

/* In [-1, 1). */
static inline float random_float(random_stream_t *stream)
{
    return 2 * rng_float(random_word(stream)) - 1;
}

static inline void random_floats(random_stream_t *stream, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = random_float(stream);
    }
}

/* Local number of a node, a new one if it has none. */
static inline int32_t random_local(int32_t *local, int64_t *input, int64_t *n_src, int32_t node)
{
    if (local[node] < 0) {
        local[node] = (int32_t)*n_src;
        input[(*n_src)++] = node;
    }
    return local[node];
}

/* isolated: one node in so many has no neighbours, 0: none. Original ids are above 2^33. */
static inline void random_minibatch(uint64_t key, int32_t n_layers, const int32_t *fanout, int32_t n_seeds,
                                    int32_t n_nodes, int32_t isolated, int32_t classes, minibatch_t *minibatch)
{
    random_stream_t stream = {.key = key};
    int32_t *local = malloc((size_t)n_nodes * sizeof *local);
    int64_t *input = malloc((size_t)n_nodes * sizeof *input);
    int64_t n_src = 0;
    memset(local, 0xff, (size_t)n_nodes * sizeof *local);
    *minibatch = (minibatch_t){.epoch = 1, .step = 7, .n_layers = n_layers, .n_seeds = n_seeds};
    minibatch->label = malloc((size_t)(n_seeds + 1) * sizeof *minibatch->label);
    while (n_src < n_seeds) {
        random_local(local, input, &n_src, random_below(&stream, n_nodes));
    }
    for (int32_t i = 0; i < n_seeds; i++) {
        minibatch->label[i] = random_below(&stream, classes + 1) - 1;
    }
    for (int32_t l = n_layers - 1; l >= 0; l--) {
        block_t *block = &minibatch->block[l];
        block->n_dst = n_src;
        block->indptr = calloc((size_t)n_src + 1, sizeof *block->indptr);
        block->index = malloc(((size_t)(n_src * fanout[l]) + 1) * sizeof *block->index);
        block->dst_orig = malloc(((size_t)n_src + 1) * sizeof *block->dst_orig);
        for (int64_t i = 0; i < block->n_dst; i++) {
            const int alone = isolated > 0 && input[i] % isolated == 0;
            const int32_t degree = alone || fanout[l] == 0 ? 0 : 1 + random_below(&stream, fanout[l]);
            block->dst_orig[i] = ((uint64_t)1 << 33) + 3 * (uint64_t)input[i];
            for (int32_t e = 0; e < degree; e++) {
                const float u = rng_float(random_word(&stream));
                const int32_t node = (int32_t)(u * u * (float)(n_nodes - 1));
                block->index[block->n_edges++] = random_local(local, input, &n_src, node);
            }
            block->indptr[i + 1] = block->n_edges;
        }
        block->n_src = n_src;
    }
    minibatch->n_input = n_src;
    minibatch->input = input;
    minibatch->n_seeds_total = n_seeds;
    free(local);
}

static inline void random_minibatch_free(minibatch_t *minibatch)
{
    for (int32_t l = 0; l < minibatch->n_layers; l++) {
        free(minibatch->block[l].indptr);
        free(minibatch->block[l].index);
        free(minibatch->block[l].dst_orig);
    }
    free(minibatch->input);
    free(minibatch->label);
    memset(minibatch, 0, sizeof *minibatch);
}

#endif
