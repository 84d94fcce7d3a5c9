/*
 * Draws for sampling: whole numbers below a bound from 64 random bits, and k of n without replacement. All are pure
 * functions of a key and of whom they are for.
 */
#ifndef RUDDER_SAMPLE_DRAW_H
#define RUDDER_SAMPLE_DRAW_H

#include <stdint.h>

#include "base/rng.h"

/* 64 random bits: number i of the stream of `who` under a key. */
static inline uint64_t draw_bits(uint64_t key, uint64_t who, uint64_t i)
{
    const rng_block_t block = rng_philox(key, who, i / 2);
    const int half = (int)(i % 2) * 2;
    return (uint64_t)block.v[half] << 32 | block.v[half + 1];
}

/* A number in [0, bound): the high half of the product, bias below bound / 2^64. */
static inline uint64_t draw_below(uint64_t random, uint64_t bound)
{
    __extension__ typedef unsigned __int128 draw_wide_t;
    return (uint64_t)((draw_wide_t)random * bound >> 64);
}

/*
 * Writes `k` distinct positions of 0 .. n-1, ascending, each subset equally likely (k <= n): Floyd's algorithm, which
 * keeps nothing but the positions and draws k numbers however large n is. Its set is the sorted array itself: O(k^2),
 * which is little for the k of a fan-out.
 */
static inline void draw_positions(uint64_t key, uint64_t who, int64_t n, int64_t k, int64_t *position)
{
    rng_block_t block = {{0}};
    for (int64_t i = 0; i < k; i++) {
        if (i % 2 == 0) {
            block = rng_philox(key, who, (uint64_t)i / 2);
        }
        const uint64_t random = (uint64_t)block.v[i % 2 * 2] << 32 | block.v[i % 2 * 2 + 1];
        const int64_t last = n - k + i;
        int64_t drawn = (int64_t)draw_below(random, (uint64_t)last + 1);
        int64_t low = i; /* of the positions so far, the first that is not below `drawn` */
        while (low > 0 && position[low - 1] >= drawn) {
            low--;
        }
        if (low < i && position[low] == drawn) {
            drawn = last; /* taken: `last`, which is above all so far */
            low = i;
        }
        for (int64_t j = i; j > low; j--) {
            position[j] = position[j - 1];
        }
        position[low] = drawn;
    }
}

#endif
