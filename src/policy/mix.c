/*
 * Policy `mix`: the rows of the highest learned use rate (policy/rates.h) stay. Missed rows take free slots; then those of
 * them that are used more than the coldest of some slots take these. A few slots are looked at for each miss, next to each
 * other, somewhere else in each minibatch: of so many together the coldest are nearly the coldest of all.
 *
 * Where to look follows from the number of the minibatch alone, so that nothing must be put back when a plan is aborted.
 */
#include "buffer/arena.h"
#include "buffer/nodes.h"
#include "policy/bins.h"
#include "policy/policy.h"
#include "policy/rates.h"

enum {
    MIX_LOOKS = 2, /* slots a miss */
    MIX_LOOKS_PER_SWAP = 8,
    MIX_LEAST_LOOKS = 64,
    MIX_AHEAD = 12
};

typedef struct mix {
    rates_t *rates;
    int weigh; /* rows of some owners are dearer now */
    float cost[COSTS_CLASSES];
    bins_t inside, outside; /* slots looked at, misses */
} mix_t;

static inline int64_t mix_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Slots to look at when `pairs` of them may change, each `looks` times. */
static int64_t mix_looks(int64_t pairs, int64_t looks, int64_t capacity)
{
    return mix_least(pairs * looks > MIX_LEAST_LOOKS ? pairs * looks : MIX_LEAST_LOOKS, capacity);
}

/* Lays the arrays behind `self`; returns all bytes. self: NULL while measuring. */
static size_t mix_layout(unsigned char *self, const rudder_policy_setup_t *setup)
{
    arena_t arena = {.base = self};
    const size_t looks = (size_t)mix_looks(setup->max_ids, MIX_LOOKS_PER_SWAP, setup->capacity),
                 ids = (size_t)setup->max_ids;
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
    for (int32_t class = 0; class < COSTS_CLASSES; class ++) {
        mix->cost[class] = (float)costs_of_class(class);
    }
    return RUDDER_OK;
}

static void mix_known(void *self, rudder_nodes_t *nodes, const int32_t *node, const uint32_t *degree, int64_t n)
{
    rates_known(((mix_t *)self)->rates, nodes, node, degree, n);
}

static int mix_costs_differ(const costs_t *costs)
{
    int differ = 0;
    for (int32_t owner = 0; costs != NULL && owner < costs->n_owners; owner++) {
        differ |= costs->owners[owner].class != 0;
    }
    return differ;
}

/* A row is worth what fetching it would cost in a minibatch to come. */
static inline void mix_add(const mix_t *mix, const rudder_nodes_t *nodes, bins_t *bins, int32_t node)
{
    const float rate = rates_of(mix->rates, nodes_state(nodes, node));
    bins_add(bins, node, mix->weigh ? rate * mix->cost[nodes_cost_class(nodes, node)] : rate);
}

/* Looks on, until so many slots were looked at. */
static void mix_look(mix_t *mix, const rudder_nodes_t *nodes, int64_t looks)
{
    const uint64_t turn = (uint64_t)nodes->minibatch * 0x9E3779B97F4A7C15u; /* golden section: even over time */
    const int64_t last = nodes->capacity - 1;
    int64_t slot = (int64_t)rng_below((uint32_t)(turn >> 32), (uint32_t)nodes->capacity) + mix->inside.n;
    slot -= slot > last ? nodes->capacity : 0;
    for (int64_t i = mix->inside.n; i < looks; i++) {
        const int64_t ahead = slot + MIX_AHEAD < last ? slot + MIX_AHEAD : last;
        __builtin_prefetch(nodes_state(nodes, nodes->slot_node[ahead]));
        mix_add(mix, nodes, &mix->inside, nodes->slot_node[slot]);
        slot = slot == last ? 0 : slot + 1;
    }
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
    mix->weigh = mix_costs_differ(nodes->costs);
    bins_clear(&mix->inside);
    bins_clear(&mix->outside);
    int64_t looks = mix_looks(n - i, MIX_LOOKS, nodes->capacity);
    for (; i < n; i++) {
        mix_add(mix, nodes, &mix->outside, node[i]);
    }
    while (mix->inside.n < looks) { /* where much changes, a closer look */
        mix_look(mix, nodes, looks);
        looks = mix_looks(bins_count_swaps(&mix->inside, &mix->outside), MIX_LOOKS_PER_SWAP, nodes->capacity);
    }
    const int64_t swaps = bins_choose(&mix->inside, &mix->outside);
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
