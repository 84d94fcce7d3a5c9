/*
 * A policy of one's own, up to `usage_policy`: rows that are used often stay. Uses are counted in the 8 bytes that the buffer
 * keeps for each node, and puts back when a plan is aborted. A missed row takes a free slot; in a full buffer it looks at
 * two slots, other ones each time, and takes that of the row which is used less, if that is less than its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rudder/rudder.h"

static void usage_count(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        ++*(int64_t *)rudder_node_state(nodes, node[i]);
    }
}

static void usage_enter(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    const int64_t capacity = rudder_nodes_capacity(nodes);
    usage_count(self, nodes, node, n);
    for (int64_t i = 0; i < n && capacity > 0; i++) {
        int64_t least = *(int64_t *)rudder_node_state(nodes, node[i]), slot = rudder_nodes_minibatch(nodes) + 7919 * i;
        int32_t victim = -1;
        for (int look = 0; look < 2 && rudder_nodes_free(nodes) == 0; look++, slot += 104729) {
            const int32_t other = rudder_slot_node(nodes, (int32_t)(slot % capacity));
            const int64_t uses = *(int64_t *)rudder_node_state(nodes, other);
            victim = uses < least ? other : victim;
            least = uses < least ? uses : least;
        }
        if (victim >= 0 || rudder_nodes_free(nodes) > 0) {
            rudder_nodes_admit(nodes, node[i], victim);
        }
    }
}

static const rudder_policy_t usage_policy = {.size = sizeof usage_policy,
                                             .name = "usage",
                                             .flags = RUDDER_POLICY_ADMITS,
                                             .state_bytes = sizeof(int64_t),
                                             .hits = usage_count,
                                             .misses = usage_enter};

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
    config.policy_table = &usage_policy;
    if (rudder_open(&config, &handle, &error) != RUDDER_OK || !run(handle, &error)) {
        fprintf(stderr, "own_policy: %s\n", error.text);
        rudder_close(handle, 0);
        return 1;
    }
    rudder_stats_get(handle, &stats, sizeof stats);
    rudder_close(handle, 0);
    printf("usage: hit rate %.1f %%\n", 100 * (double)stats.hit_rows / (double)stats.remote_rows);
    return stats.hit_rows > 0 ? 0 : 1;
}
