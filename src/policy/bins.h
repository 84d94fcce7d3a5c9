/*
 * Nodes by rate, in bins of equal ratio: which of many candidates inside the buffer are the coldest, and which of those
 * outside are hotter than they, without sorting. Shared by `mix` and `lookahead`.
 */
#ifndef RUDDER_POLICY_BINS_H
#define RUDDER_POLICY_BINS_H

#include <stdint.h>
#include <string.h>

enum {
    BINS_SHIFT = 18,      /* of a float's bits: 32 bins to a factor of two */
    BINS_RATES = 32 << 5, /* bins that rates fall into */
    BINS_FIRST = (127 - 26) << 5,
    BINS_SURE = BINS_RATES, /* hotter than any rate */
    BINS = BINS_RATES + 1
};

typedef struct bins {
    int32_t *node;
    uint16_t *bin;
    int64_t n;
    int32_t count[BINS]; /* nodes in each bin */
} bins_t;

static inline void bins_clear(bins_t *bins)
{
    bins->n = 0;
    memset(bins->count, 0, sizeof bins->count);
}

static inline void bins_put(bins_t *bins, int32_t node, int32_t bin)
{
    bins->node[bins->n] = node;
    bins->bin[bins->n++] = (uint16_t)bin;
    bins->count[bin]++;
}

static inline void bins_add(bins_t *bins, int32_t node, float rate)
{
    uint32_t bits;
    memcpy(&bits, &rate, sizeof bits);
    const int32_t bin = (int32_t)(bits >> BINS_SHIFT) - BINS_FIRST;
    bins_put(bins, node, bin < 0 ? 0 : bin >= BINS_RATES ? BINS_RATES - 1 : bin);
}

/* As many of the coldest inside and of the hottest outside as make pairs in which the one outside is hotter by a bin. */
int64_t bins_count_swaps(const bins_t *inside, const bins_t *outside);
/* These are then the first nodes of the two lists. Returns their number. */
int64_t bins_choose(bins_t *inside, bins_t *outside);

#endif
