/*
 * A random order of 0 .. n-1 that takes no memory: a Feistel network over the bits of n, walked again where it leaves the
 * range. Generated graphs use it so that ids tell nothing of what is behind them.
 */
#ifndef RUDDER_GRAPH_PERMUTE_H
#define RUDDER_GRAPH_PERMUTE_H

#include <stdint.h>

#include "base/rng.h"

enum { PERMUTE_ROUNDS = 6 };

typedef struct permute {
    uint64_t n;
    int low_bits;
    uint64_t low, high; /* masks of the two halves, shifted down */
    uint64_t key[PERMUTE_ROUNDS];
} permute_t;

static inline permute_t permute_make(uint64_t n, uint64_t key)
{
    int bits = 0;
    while (bits < 62 && (uint64_t)1 << bits < n) {
        bits++;
    }
    permute_t p = {.n = n, .low_bits = bits / 2};
    p.low = ((uint64_t)1 << p.low_bits) - 1;
    p.high = ((uint64_t)1 << (bits - p.low_bits)) - 1;
    for (int i = 0; i < PERMUTE_ROUNDS; i++) {
        p.key[i] = rng_mix(key + (uint64_t)i);
    }
    return p;
}

/* One round: a half of x is changed by the other; doing it again takes it back. */
static inline uint64_t permute_round(const permute_t *p, uint64_t x, int i)
{
    return i & 1 ? x ^ (rng_mix((x >> p->low_bits) ^ p->key[i]) & p->low)
                 : x ^ (rng_mix((x & p->low) ^ p->key[i]) & p->high) << p->low_bits;
}

/* The place of x, below n, in the order. */
static inline uint64_t permute_forth(const permute_t *p, uint64_t x)
{
    do {
        for (int i = 0; i < PERMUTE_ROUNDS; i++) {
            x = permute_round(p, x, i);
        }
    } while (x >= p->n);
    return x;
}

/* What is at a place: permute_forth() of it is `place`. */
static inline uint64_t permute_back(const permute_t *p, uint64_t place)
{
    do {
        for (int i = PERMUTE_ROUNDS - 1; i >= 0; i--) {
            place = permute_round(p, place, i);
        }
    } while (place >= p->n);
    return place;
}

#endif
