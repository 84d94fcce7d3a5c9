/*
 * Policy `mix`: the rows of the highest learned use rate (policy/rates.h) stay. A missed row takes a free slot, or that of
 * the coldest of 16 sampled slots when its own rate, this minibatch included, is higher.
 */
#include "buffer/nodes.h"
#include "policy/policy.h"
#include "policy/rates.h"

enum { MIX_SAMPLE = 16 };

static size_t mix_memory(const rudder_policy_setup_t *setup)
{
    return rates_memory(setup);
}

static rudder_status_t mix_open(void *self, const rudder_policy_setup_t *setup)
{
    rates_open(self, setup);
    return RUDDER_OK;
}

static void mix_known(void *self, rudder_nodes_t *nodes, const int32_t *node, const uint32_t *degree, int64_t n)
{
    rates_known(self, nodes, node, degree, n);
}

static void mix_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    rates_hits(self, nodes, node, n);
}

static float mix_score(const rates_t *rates, const rudder_nodes_t *nodes, int32_t node)
{
    return rates_of(rates, nodes_state(nodes, node));
}

static void mix_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    rates_misses(self, nodes, node, n);
    for (int64_t i = 0; i < n && nodes->capacity > 0; i++) {
        if (nodes->free > 0) {
            rudder_nodes_admit(nodes, node[i], -1);
            continue;
        }
        float least = mix_score(self, nodes, node[i]);
        int32_t victim = -1;
        for (uint64_t k = 0; k < MIX_SAMPLE; k++) {
            const uint64_t random = rng_mix((uint64_t)nodes->minibatch << 32 | (uint64_t)i << 4 | k);
            const int32_t other = nodes->slot_node[rng_below((uint32_t)random, (uint32_t)nodes->capacity)];
            const float score = mix_score(self, nodes, other);
            if (score < least) {
                least = score;
                victim = other;
            }
        }
        if (victim >= 0) {
            rudder_nodes_admit(nodes, node[i], victim);
        }
    }
}

static void mix_restored(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)node, (void)n;
    rates_restored(self, nodes);
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
