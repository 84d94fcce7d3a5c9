/*
 * Policy `lfu`: the rows used most often so far stay. Counts are kept of every tracked node, inside and outside; a missed
 * row takes a free slot, or that of the coldest one when its own count, this minibatch included, is higher. The coldest
 * is the one with the lowest count, and of those the lowest id.
 *
 * The slots are a heap by count. A hit raises a count and leaves the heap alone: a count in the heap is then too low, never
 * too high, so the true minimum is found by correcting the top until it is right.
 */
#include "buffer/nodes.h"
#include "policy/policy.h"

enum {
    LFU_ARITY = 4,
    LFU_AHEAD = 8,
    LFU_HEAP_AT = 64 + 48 /* bytes: the four children of an entry then share a cache line */
};

typedef struct lfu_state {
    uint32_t count;
    uint32_t unused;
} lfu_state_t;

typedef struct lfu_entry {
    int64_t id;
    uint32_t count; /* at most that of the node */
    int32_t node;
} lfu_entry_t;

typedef struct lfu {
    int64_t n;
    int stale; /* slots or counts were put back: the heap is built anew before it is used */
    lfu_entry_t *heap;
} lfu_t;

static size_t lfu_memory(const rudder_policy_setup_t *setup)
{
    return LFU_HEAP_AT + (size_t)setup->capacity * sizeof(lfu_entry_t);
}

static rudder_status_t lfu_open(void *self, const rudder_policy_setup_t *setup)
{
    (void)setup;
    lfu_t *lfu = self;
    lfu->heap = (lfu_entry_t *)(void *)((unsigned char *)self + LFU_HEAP_AT);
    return RUDDER_OK;
}

static inline uint32_t *lfu_count(const rudder_nodes_t *nodes, int32_t node)
{
    return &((lfu_state_t *)nodes_state(nodes, node))->count;
}

static inline int lfu_colder(const lfu_entry_t *a, const lfu_entry_t *b)
{
    return a->count < b->count || (a->count == b->count && a->id < b->id);
}

/* Puts an entry where `i` is, or further down. */
static void lfu_sink(lfu_t *lfu, int64_t i, lfu_entry_t entry)
{
    for (;;) {
        int64_t child = i * LFU_ARITY + 1, coldest = child;
        if (child >= lfu->n) {
            break;
        }
        const int64_t end = child + LFU_ARITY < lfu->n ? child + LFU_ARITY : lfu->n;
        for (int64_t c = child; c < end; c++) { /* whichever child goes up, its children are on their way */
            __builtin_prefetch(&lfu->heap[c * LFU_ARITY + 1]);
        }
        while (++child < end) {
            coldest = lfu_colder(&lfu->heap[child], &lfu->heap[coldest]) ? child : coldest;
        }
        if (!lfu_colder(&lfu->heap[coldest], &entry)) {
            break;
        }
        lfu->heap[i] = lfu->heap[coldest];
        i = coldest;
    }
    lfu->heap[i] = entry;
}

static void lfu_push(lfu_t *lfu, lfu_entry_t entry)
{
    int64_t i = lfu->n++;
    while (i > 0 && lfu_colder(&entry, &lfu->heap[(i - 1) / LFU_ARITY])) {
        lfu->heap[i] = lfu->heap[(i - 1) / LFU_ARITY];
        i = (i - 1) / LFU_ARITY;
    }
    lfu->heap[i] = entry;
}

static lfu_entry_t lfu_entry(const rudder_nodes_t *nodes, int32_t node)
{
    return (lfu_entry_t){.id = nodes_record(nodes, node)->id, .count = *lfu_count(nodes, node), .node = node};
}

static void lfu_rebuild(lfu_t *lfu, const rudder_nodes_t *nodes)
{
    lfu->n = 0;
    for (int64_t slot = 0; slot < nodes->capacity; slot++) {
        if (nodes->slot_node[slot] >= 0) {
            lfu->heap[lfu->n++] = lfu_entry(nodes, nodes->slot_node[slot]);
        }
    }
    for (int64_t i = lfu->n / LFU_ARITY; i >= 0 && lfu->n > 0; i--) {
        lfu_sink(lfu, i, lfu->heap[i]);
    }
    lfu->stale = 0;
}

/* The coldest entry, with its true count. The heap is not empty. */
static const lfu_entry_t *lfu_coldest(lfu_t *lfu, const rudder_nodes_t *nodes)
{
    for (;;) {
        lfu_entry_t top = lfu->heap[0];
        const uint32_t count = *lfu_count(nodes, top.node);
        if (count == top.count) {
            return &lfu->heap[0];
        }
        for (int64_t c = 1; c <= LFU_ARITY && c < lfu->n; c++) { /* one of them is the next top */
            __builtin_prefetch(lfu_count(nodes, lfu->heap[c].node));
        }
        top.count = count;
        lfu_sink(lfu, 0, top);
    }
}

static void lfu_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        uint32_t *count = lfu_count(nodes, node[i]);
        *count += *count != UINT32_MAX;
    }
}

static void lfu_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    lfu_t *lfu = self;
    if (lfu->stale) {
        lfu_rebuild(lfu, nodes);
    }
    lfu_hits(self, nodes, node, n);
    for (int64_t i = 0; i < n && nodes->capacity > 0; i++) {
        if (i + LFU_AHEAD < n) {
            __builtin_prefetch(nodes_record(nodes, node[i + LFU_AHEAD]));
        }
        const lfu_entry_t entry = lfu_entry(nodes, node[i]);
        if (nodes->free > 0) {
            rudder_nodes_admit(nodes, entry.node, -1);
            lfu_push(lfu, entry);
        } else if (entry.count > lfu_coldest(lfu, nodes)->count) {
            rudder_nodes_admit(nodes, entry.node, lfu->heap[0].node);
            lfu_sink(lfu, 0, entry);
        }
    }
}

static void lfu_started(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)nodes, (void)node, (void)n;
    ((lfu_t *)self)->stale = 1;
}

static void lfu_restored(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    lfu_started(self, nodes, node, n);
}

static void lfu_dropped(void *self, rudder_nodes_t *nodes, int32_t node, int32_t slot)
{
    (void)nodes, (void)node, (void)slot;
    ((lfu_t *)self)->stale = 1;
}

const rudder_policy_t policy_lfu = {.size = sizeof(rudder_policy_t),
                                    .name = "lfu",
                                    .flags = RUDDER_POLICY_ADMITS,
                                    .state_bytes = sizeof(lfu_state_t),
                                    .memory = lfu_memory,
                                    .open = lfu_open,
                                    .hits = lfu_hits,
                                    .misses = lfu_misses,
                                    .restored = lfu_restored,
                                    .dropped = lfu_dropped,
                                    .started = lfu_started};
