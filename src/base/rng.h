/*
 * Counter-based random numbers: a value is a pure function of a key and a counter, so that sampling and dropout give the
 * same bits for any number of threads, ranks and partitions. Philox4x32-10 of Salmon, Moraes, Dror, Shaw, "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011. Thread-safe, no state.
 */
#ifndef RUDDER_BASE_RNG_H
#define RUDDER_BASE_RNG_H

#include <stdint.h>

typedef struct rng_block {
    uint32_t v[4];
} rng_block_t;

/* The Philox4x32-10 block of (key, counter): counter words are (counter_low, counter_high), key is 64 bits. */
static inline rng_block_t rng_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high)
{
    uint32_t c0 = (uint32_t)counter_low, c1 = (uint32_t)(counter_low >> 32);
    uint32_t c2 = (uint32_t)counter_high, c3 = (uint32_t)(counter_high >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        const uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (rng_block_t){{c0, c1, c2, c3}};
}

/* SplitMix64 finaliser: turns any 64-bit value into a well-mixed one; used to fold several words into one key. */
static inline uint64_t rng_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* What a stream of random numbers is for: streams never overlap. */
enum {
    RNG_SAMPLE = 1,
    RNG_DROPOUT = 2,
    RNG_SEEDS = 3,
    RNG_INIT = 4,
    RNG_START = 5,
    RNG_PARTITION = 6,
    RNG_GENERATE = 7
};

/* The key of a stream: what it is for, the run's seed, epoch, step, layer. */
static inline uint64_t rng_key(uint64_t purpose, uint64_t seed, uint64_t epoch, uint64_t step, uint64_t layer)
{
    return rng_mix(rng_mix(rng_mix(rng_mix(purpose ^ rng_mix(seed)) ^ epoch) ^ step) ^ layer);
}

/* A number in [0, bound) from 32 random bits (multiply-shift; bias below bound / 2^32). */
static inline uint32_t rng_below(uint32_t random, uint32_t bound)
{
    return (uint32_t)(((uint64_t)random * bound) >> 32);
}

/*
 * Step i of a shuffle of items[n] (Fisher and Yates): a random one of those from i on takes place i and is returned. After
 * the steps 0 .. k-1 the first k items are a random choice in random order.
 */
static inline int64_t rng_shuffle_step(uint64_t key, int64_t *items, int64_t i, int64_t n)
{
    const rng_block_t random = rng_philox(key, (uint64_t)i, 0);
    const uint64_t wide = (uint64_t)random.v[0] << 32 | random.v[1];
    const int64_t j = i + (int64_t)(wide % (uint64_t)(n - i));
    const int64_t drawn = items[j];
    items[j] = items[i];
    items[i] = drawn;
    return drawn;
}

/* A float in [0, 1) with 24 random bits. */
static inline float rng_float(uint32_t random)
{
    return (float)(random >> 8) * 0x1p-24f;
}

#endif
