/*
 * Policy `lru`: the rows used last stay. A minibatch touches its hits first, then its misses enter, both in the order in
 * which they appear; the row that was not touched for longest makes room. O(1) an id.
 */
#include "policy/policy.h"
#include "policy/queue.h"

static size_t lru_memory(const rudder_policy_setup_t *setup)
{
    arena_t arena = {0};
    arena_take(&arena, 1, sizeof(queue_t));
    queue_layout(&arena, setup, NULL);
    return arena.used;
}

static rudder_status_t lru_open(void *self, const rudder_policy_setup_t *setup)
{
    arena_t arena = {.base = self};
    arena_take(&arena, 1, sizeof(queue_t));
    queue_layout(&arena, setup, self);
    return RUDDER_OK;
}

static void lru_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    queue_begin(self, nodes);
    for (int64_t i = 0; i < n; i++) {
        const int32_t slot = nodes_slot(nodes_record(nodes, node[i]));
        __builtin_prefetch(nodes_record(nodes, node[i + QUEUE_AHEAD < n ? i + QUEUE_AHEAD : i]), 1);
        queue_remove(self, slot);
        queue_enter(self, nodes, node[i], slot);
    }
}

static void lru_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    queue_t *queue = self;
    int32_t called = queue->end; /* a slot that will soon make room */
    for (int i = 0; i < QUEUE_AHEAD && nodes->free == 0; i++) {
        called = queue_call_next(queue, nodes, called);
    }
    for (int64_t i = 0; i < n && nodes->capacity > 0; i++) {
        int32_t victim = -1;
        if (nodes->free == 0) {
            const int32_t oldest = queue_oldest(queue);
            called = queue_call_next(queue, nodes, called);
            victim = nodes->slot_node[oldest];
            queue_remove(queue, oldest);
        }
        queue_enter(queue, nodes, node[i], rudder_nodes_admit(nodes, node[i], victim));
    }
}

/* The start content counts as touched before all minibatches. */
static void lru_started(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    queue_t *queue = self;
    for (int64_t i = 0; i < n; i++) {
        *(uint64_t *)nodes_state(nodes, node[i]) = ++queue->stamp;
    }
    queue->stale = 1;
}

static void lru_restored(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)nodes, (void)node, (void)n;
    ((queue_t *)self)->stale = 1;
}

static void lru_dropped(void *self, rudder_nodes_t *nodes, int32_t node, int32_t slot)
{
    queue_t *queue = self;
    (void)nodes, (void)node;
    if (!queue->stale) {
        queue_remove(queue, slot);
    }
}

const rudder_policy_t policy_lru = {.size = sizeof(rudder_policy_t),
                                    .name = "lru",
                                    .flags = RUDDER_POLICY_ADMITS,
                                    .state_bytes = sizeof(uint64_t),
                                    .memory = lru_memory,
                                    .open = lru_open,
                                    .hits = lru_hits,
                                    .misses = lru_misses,
                                    .restored = lru_restored,
                                    .dropped = lru_dropped,
                                    .started = lru_started};
