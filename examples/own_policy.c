/*
 * A policy of one's own: CLOCK, the second chance. A hit marks the slot; a missed row takes the slot of the first node
 * under the hand that is not marked, and the hand clears the marks it passes. (An abort does not bring those marks back:
 * that costs a chance, never a wrong row.) The policy is the part up to `clock_policy`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rudder/rudder.h"

typedef struct clock_hand {
    int32_t slot;
} clock_hand_t;

static size_t clock_memory(const rudder_policy_setup_t *setup)
{
    (void)setup;
    return sizeof(clock_hand_t);
}

static void clock_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        *(int64_t *)rudder_node_state(nodes, node[i]) = 1; /* 8 bytes a node, kept by the buffer */
    }
}

static void clock_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    clock_hand_t *hand = self;
    const int32_t capacity = (int32_t)rudder_nodes_capacity(nodes);
    for (int64_t i = 0; i < n && capacity > 0; i++) {
        int32_t victim = -1;
        for (int32_t step = 0; rudder_nodes_free(nodes) == 0 && step < 2;
             step++) { /* two steps a miss bound the work */
            victim = rudder_slot_node(nodes, hand->slot);
            hand->slot = (hand->slot + 1) % capacity;
            int64_t *mark = rudder_node_state(nodes, victim);
            if (*mark == 0) {
                break;
            }
            *mark = 0;
            victim = -1;
        }
        if (victim >= 0 || rudder_nodes_free(nodes) > 0) {
            rudder_nodes_admit(nodes, node[i], victim);
        }
    }
}

static const rudder_policy_t clock_policy = {.size = sizeof clock_policy,
                                             .name = "clock",
                                             .flags = RUDDER_POLICY_ADMITS,
                                             .state_bytes = sizeof(int64_t),
                                             .memory = clock_memory,
                                             .hits = clock_hits,
                                             .misses = clock_misses};

/* ---- a host that checks every row ---- */

enum { NODES = 4000, CAPACITY = 400, BATCH = 300, STEPS = 200 };

static int64_t row_of(int64_t id)
{
    return id * 7 + 1;
}

static int run(rudder_t *handle, rudder_error_t *error)
{
    static int64_t out[BATCH], rows[BATCH];
    for (int step = 0; step < STEPS; step++) {
        int64_t ids[BATCH], n_miss, n_fill;
        const int64_t *needed;
        rudder_plan_t *plan;
        for (int i = 0; i < BATCH; i++) {
            ids[i] = rand() % (1 + rand() % NODES); /* small ids are hot */
        }
        if (rudder_plan_begin(handle, 0, ids, BATCH, &plan, error) != RUDDER_OK) {
            return 0;
        }
        rudder_plan_fetch(plan, &needed, &n_miss, &n_fill);
        for (int64_t i = 0; i < n_miss; i++) {
            rows[i] = row_of(needed[i]);
        }
        if (rudder_complete(handle, plan, rows, sizeof rows[0], out, error) != RUDDER_OK) {
            return 0;
        }
        for (int i = 0; i < BATCH; i++) {
            if (out[i] != row_of(ids[i])) {
                snprintf(error->text, sizeof error->text, "wrong row for id %lld", (long long)ids[i]);
                return 0;
            }
        }
    }
    return 1;
}

int main(void)
{
    const rudder_type_config_t type = {
        .row_bytes = sizeof(int64_t), .capacity_rows = CAPACITY, .max_ids = BATCH, .max_tracked = NODES};
    rudder_config_t config;
    rudder_stats_t stats = {0};
    rudder_error_t error = {0};
    rudder_t *handle = NULL;
    rudder_config_init(&config, sizeof config);
    config.n_types = 1;
    config.types = &type;
    config.policy_table = &clock_policy;
    if (rudder_open(&config, &handle, &error) != RUDDER_OK || !run(handle, &error)) {
        fprintf(stderr, "own_policy: %s\n", error.text);
        rudder_close(handle, 0);
        return 1;
    }
    rudder_stats_get(handle, &stats, sizeof stats);
    rudder_close(handle, 0);
    printf("clock: hit rate %.1f %%\n", 100 * (double)stats.hit_rows / (double)stats.remote_rows);
    return stats.hit_rows > 0 ? 0 : 1;
}
