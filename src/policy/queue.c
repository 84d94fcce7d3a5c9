/* Laying a queue out, and making it from numbers. */
#include "policy/queue.h"

void queue_layout(arena_t *arena, const rudder_policy_setup_t *setup, queue_t *queue)
{
    const size_t slots = (size_t)setup->capacity;
    queue_t q = {.end = (int32_t)setup->capacity, .stale = 1};
    q.links = arena_take(arena, slots + 1, sizeof *q.links);
    q.items = arena_take(arena, slots, sizeof *q.items);
    if (queue != NULL) {
        *queue = q;
    }
}

int queue_begin(queue_t *queue, const rudder_nodes_t *nodes)
{
    queue->stamp = (uint64_t)(nodes->minibatch + 1) << 32;
    if (!queue->stale) {
        return 0;
    }
    int64_t n = 0;
    for (int32_t slot = 0; slot < nodes->capacity; slot++) {
        const int32_t node = nodes->slot_node[slot];
        if (node >= 0) { /* lower keys last: the newest comes first */
            queue->items[n++] = (rank_item_t){.key = *(uint64_t *)nodes_state(nodes, node), .id = slot};
        }
    }
    rank_sort(queue->items, n);
    queue->links[queue->end] = (queue_link_t){.older = queue->end, .newer = queue->end};
    while (n > 0) {
        queue_push(queue, (int32_t)queue->items[--n].id);
    }
    queue->stale = 0;
    return 1;
}
