/*
 * Policy `mix`: the rows of the highest learned use rate (policy/rates.h) stay. Missed rows take free slots; then those of
 * them that are used more than the coldest of some slots take these. A few slots are looked at for each miss, next to each
 * other, somewhere else in each minibatch: of so many together the coldest are nearly the coldest of all.
 *
 * Where to look follows from the number of the minibatch alone, so that nothing must be put back when a plan is aborted.
 */
#include <string.h>

#include "buffer/arena.h"
#include "buffer/nodes.h"
#include "policy/policy.h"
#include "policy/rates.h"

enum {
    MIX_LOOKS = 4, /* slots a miss */
    MIX_LEAST_LOOKS = 64,
    MIX_AHEAD = 12,
    MIX_BIN_SHIFT = 18, /* of a float's bits: 32 bins to a factor of two */
    MIX_BINS = 32 << 5,
    MIX_BIN_FIRST = (127 - 26) << 5
};

/* Nodes with their rates in bins. */
typedef struct mix_list {
    int32_t *node;
    uint16_t *bin;
    int64_t n;
    int32_t count[MIX_BINS + 1]; /* nodes in each bin */
} mix_list_t;

typedef struct mix {
    rates_t *rates;
    mix_list_t inside, outside; /* slots looked at, misses */
} mix_t;

static int64_t mix_looks(int64_t n_misses, int64_t capacity)
{
    const int64_t looks = MIX_LOOKS * n_misses > MIX_LEAST_LOOKS ? MIX_LOOKS * n_misses : MIX_LEAST_LOOKS;
    return looks < capacity ? looks : capacity;
}

/* Lays the arrays behind `self`; returns all bytes. self: NULL while measuring. */
static size_t mix_layout(unsigned char *self, const rudder_policy_setup_t *setup)
{
    arena_t arena = {.base = self};
    const size_t looks = (size_t)mix_looks(setup->max_ids, setup->capacity), ids = (size_t)setup->max_ids;
    mix_t *mix = arena_take(&arena, 1, sizeof *mix);
    void *piece[] = {arena_take(&arena, looks, sizeof(int32_t)), arena_take(&arena, looks, sizeof(uint16_t)),
                     arena_take(&arena, ids, sizeof(int32_t)), arena_take(&arena, ids, sizeof(uint16_t)),
                     arena_take(&arena, 1, rates_memory(setup))};
    if (self != NULL) {
        mix->inside.node = piece[0];
        mix->inside.bin = piece[1];
        mix->outside.node = piece[2];
        mix->outside.bin = piece[3];
        mix->rates = piece[4];
    }
    return arena.used;
}

static size_t mix_memory(const rudder_policy_setup_t *setup)
{
    return mix_layout(NULL, setup);
}

static rudder_status_t mix_open(void *self, const rudder_policy_setup_t *setup)
{
    mix_t *mix = self;
    mix_layout(self, setup);
    rates_open(mix->rates, setup);
    return RUDDER_OK;
}

static void mix_known(void *self, rudder_nodes_t *nodes, const int32_t *node, const uint32_t *degree, int64_t n)
{
    rates_known(((mix_t *)self)->rates, nodes, node, degree, n);
}

static void mix_clear(mix_list_t *list)
{
    list->n = 0;
    memset(list->count, 0, sizeof list->count);
}

static inline void mix_add(const mix_t *mix, const rudder_nodes_t *nodes, mix_list_t *list, int32_t node)
{
    const float rate = rates_of(mix->rates, nodes_state(nodes, node));
    uint32_t bits;
    memcpy(&bits, &rate, sizeof bits);
    int32_t bin = (int32_t)(bits >> MIX_BIN_SHIFT) - MIX_BIN_FIRST;
    bin = bin < 0 ? 0 : bin >= MIX_BINS ? MIX_BINS - 1 : bin;
    list->node[list->n] = node;
    list->bin[list->n++] = (uint16_t)bin;
    list->count[bin]++;
}

/* Looks at slots for n misses. */
static void mix_look(mix_t *mix, const rudder_nodes_t *nodes, int64_t n)
{
    const uint64_t turn = (uint64_t)nodes->minibatch * 0x9E3779B97F4A7C15u; /* golden section: even over time */
    const int64_t looks = mix_looks(n, nodes->capacity), last = nodes->capacity - 1;
    int64_t slot = (int64_t)rng_below((uint32_t)(turn >> 32), (uint32_t)nodes->capacity);
    mix_clear(&mix->inside);
    for (int64_t i = 0; i < looks; i++) {
        const int64_t ahead = slot + MIX_AHEAD < last ? slot + MIX_AHEAD : last;
        __builtin_prefetch(nodes_state(nodes, nodes->slot_node[ahead]));
        mix_add(mix, nodes, &mix->inside, nodes->slot_node[slot]);
        slot = slot == last ? 0 : slot + 1;
    }
}

/* How many of the coldest inside make room for as many of the hottest outside, each one hotter by a bin at least. */
static int64_t mix_count_swaps(const mix_list_t *inside, const mix_list_t *outside)
{
    int64_t below = 0, above = outside->n, most = 0;
    for (int32_t bin = 0; bin < MIX_BINS && below < above; bin++) {
        above -= outside->count[bin];
        below += inside->count[bin];
        const int64_t swaps = below < above ? below : above;
        most = swaps > most ? swaps : most;
    }
    return most;
}

/* Keeps the first `wanted` by bins from `bin` on in steps of `step`, in the order of the list. */
static void mix_keep(mix_list_t *list, int64_t wanted, int32_t bin, int32_t step)
{
    int64_t left = wanted, kept = 0;
    while (left > list->count[bin]) {
        left -= list->count[bin];
        bin += step;
    }
    for (int64_t i = 0; i < list->n; i++) { /* without a branch */
        const int32_t before = (bin - list->bin[i]) * step;
        const int ties = (before == 0) & (left > 0);
        list->node[kept] = list->node[i];
        kept += (before > 0) | ties;
        left -= ties;
    }
    list->n = kept;
}

static void mix_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    rates_hits(((mix_t *)self)->rates, nodes, node, n);
}

static void mix_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    mix_t *mix = self;
    int64_t i = 0;
    rates_misses(mix->rates, nodes, node, n);
    for (; i < n && nodes->free > 0; i++) {
        rudder_nodes_admit(nodes, node[i], -1);
    }
    if (i == n || nodes->capacity == 0) {
        return;
    }
    mix_look(mix, nodes, n - i);
    mix_clear(&mix->outside);
    for (; i < n; i++) {
        mix_add(mix, nodes, &mix->outside, node[i]);
    }
    const int64_t swaps = mix_count_swaps(&mix->inside, &mix->outside);
    mix_keep(&mix->inside, swaps, 0, 1);
    mix_keep(&mix->outside, swaps, MIX_BINS - 1, -1);
    for (i = 0; i < swaps; i++) {
        rudder_nodes_admit(nodes, mix->outside.node[i], mix->inside.node[i]);
    }
}

static void mix_restored(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)node, (void)n;
    rates_restored(((mix_t *)self)->rates, nodes);
}

const rudder_policy_t policy_mix = {.size = sizeof(rudder_policy_t),
                                    .name = "mix",
                                    .flags = RUDDER_POLICY_ADMITS,
                                    .state_bytes = sizeof(rates_state_t),
                                    .memory = mix_memory,
                                    .open = mix_open,
                                    .hits = mix_hits,
                                    .misses = mix_misses,
                                    .restored = mix_restored,
                                    .known = mix_known};
