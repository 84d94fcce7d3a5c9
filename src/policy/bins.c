/* Two passes over the counts, and one over each list without a branch. */
#include "policy/bins.h"

int64_t bins_count_swaps(const bins_t *inside, const bins_t *outside)
{
    int64_t below = 0, above = outside->n, most = 0;
    for (int32_t bin = 0; bin < BINS && below < above; bin++) {
        above -= outside->count[bin];
        below += inside->count[bin];
        const int64_t swaps = below < above ? below : above;
        most = swaps > most ? swaps : most;
    }
    return most;
}

/* Keeps the first `wanted` by bins from `bin` on in steps of `step`, in the order of the list. */
static void bins_keep(bins_t *bins, int64_t wanted, int32_t bin, int32_t step)
{
    int64_t left = wanted, kept = 0;
    while (left > bins->count[bin]) {
        left -= bins->count[bin];
        bin += step;
    }
    for (int64_t i = 0; i < bins->n; i++) {
        const int32_t before = (bin - bins->bin[i]) * step;
        const int ties = (before == 0) & (left > 0);
        bins->node[kept] = bins->node[i];
        kept += (before > 0) | ties;
        left -= ties;
    }
    bins->n = kept;
}

int64_t bins_choose(bins_t *inside, bins_t *outside)
{
    const int64_t swaps = bins_count_swaps(inside, outside);
    bins_keep(inside, swaps, 0, 1);
    bins_keep(outside, swaps, BINS - 1, -1);
    return swaps;
}
