/*
 * Policy `sieve`: SIEVE of Zhang, Yang, Yue, Vigfusson, Rashmi, "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction
 * Algorithm for Web Caches", NSDI 2024. Rows stand in the order in which they entered and never move; a hit marks its row.
 * A hand goes from the oldest to the newest and round again: it takes marks away until it finds a row without one, which
 * makes room. A missed row always enters, as the newest, unmarked. O(1) an id: each step of the hand takes a mark that a hit
 * has set.
 *
 * The hand takes marks of rows that the minibatch did not ask for, which the buffer does not put back when a plan is aborted.
 * So a mark that is taken leaves the number of the minibatch behind: those of aborted minibatches had been there before. And
 * where the hand stood before each minibatch is kept for as many as can be aborted.
 */
#include "policy/policy.h"
#include "policy/queue.h"

typedef struct sieve_state {
    uint64_t entered; /* the order of the queue */
    uint32_t taken;   /* minibatch, from 1, in which the hand took the mark; 0: in none */
    uint32_t marked;
} sieve_state_t;

typedef struct sieve {
    queue_t queue;
    int32_t hand;    /* the slot to look at next, or the end: the oldest */
    uint64_t *hands; /* ring [n_hands]: `entered` under the hand before a minibatch, 0: at the end */
    int64_t n_hands;
} sieve_t;

static size_t sieve_layout(unsigned char *self, const rudder_policy_setup_t *setup)
{
    arena_t arena = {.base = self};
    const int64_t n_hands = setup->max_plans + 1;
    sieve_t *sieve = arena_take(&arena, 1, sizeof *sieve);
    uint64_t *hands = arena_take(&arena, (size_t)n_hands, sizeof *hands);
    queue_layout(&arena, setup, self == NULL ? NULL : &sieve->queue);
    if (self != NULL) {
        sieve->hand = sieve->queue.end;
        sieve->hands = hands;
        sieve->n_hands = n_hands;
        hands[0] = 0;
    }
    return arena.used;
}

static size_t sieve_memory(const rudder_policy_setup_t *setup)
{
    return sieve_layout(NULL, setup);
}

static rudder_status_t sieve_open(void *self, const rudder_policy_setup_t *setup)
{
    sieve_layout(self, setup);
    return RUDDER_OK;
}

static inline sieve_state_t *sieve_state(const rudder_nodes_t *nodes, int32_t node)
{
    return nodes_state(nodes, node);
}

static inline sieve_state_t *sieve_slot_state(const rudder_nodes_t *nodes, int32_t slot)
{
    return sieve_state(nodes, nodes->slot_node[slot]);
}

/* Slots and states were put back: brings the hand and the marks that it took where they were. */
static void sieve_repair(sieve_t *sieve, const rudder_nodes_t *nodes)
{
    const uint32_t now = (uint32_t)(nodes->minibatch + 1);
    const uint64_t hand = sieve->hands[nodes->minibatch % sieve->n_hands];
    const int32_t end = sieve->queue.end;
    sieve->hand = end;
    for (int32_t slot = queue_oldest(&sieve->queue); slot != end; slot = sieve->queue.links[slot].newer) {
        sieve_state_t *state = sieve_slot_state(nodes, slot);
        if (state->taken >= now) {
            state->marked = 1;
            state->taken = 0;
        }
        if (sieve->hand == end && hand != 0 && state->entered >= hand) {
            sieve->hand = slot;
        }
    }
}

static void sieve_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    sieve_t *sieve = self;
    if (queue_begin(&sieve->queue, nodes)) {
        sieve_repair(sieve, nodes);
    }
    sieve->hands[nodes->minibatch % sieve->n_hands] =
        sieve->hand == sieve->queue.end ? 0 : sieve_slot_state(nodes, sieve->hand)->entered;
    for (int64_t i = 0; i < n; i++) {
        sieve_state(nodes, node[i])->marked = 1;
    }
}

/* The slot that makes room. The buffer is full. */
static int32_t sieve_evict(sieve_t *sieve, const rudder_nodes_t *nodes)
{
    const queue_link_t *links = sieve->queue.links;
    for (int32_t slot = sieve->hand;; slot = links[slot].newer) {
        if (slot == sieve->queue.end) {
            slot = queue_oldest(&sieve->queue);
        }
        sieve_state_t *state = sieve_slot_state(nodes, slot);
        if (!state->marked) {
            sieve->hand = links[slot].newer;
            return slot;
        }
        state->marked = 0;
        state->taken = (uint32_t)(nodes->minibatch + 1);
    }
}

static void sieve_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    sieve_t *sieve = self;
    for (int64_t i = 0; i < n && nodes->capacity > 0; i++) {
        int32_t victim = -1;
        if (nodes->free == 0) {
            const int32_t slot = sieve_evict(sieve, nodes);
            victim = nodes->slot_node[slot];
            queue_remove(&sieve->queue, slot);
        }
        const int32_t slot = rudder_nodes_admit(nodes, node[i], victim);
        *sieve_state(nodes, node[i]) = (sieve_state_t){0};
        queue_enter(&sieve->queue, nodes, node[i], slot);
    }
}

/* The start content entered before all others. */
static void sieve_started(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    sieve_t *sieve = self;
    for (int64_t i = 0; i < n; i++) {
        sieve_state(nodes, node[i])->entered = ++sieve->queue.stamp;
    }
    sieve->queue.stale = 1;
}

static void sieve_restored(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)nodes, (void)node, (void)n;
    ((sieve_t *)self)->queue.stale = 1;
}

static void sieve_dropped(void *self, rudder_nodes_t *nodes, int32_t node, int32_t slot)
{
    sieve_t *sieve = self;
    (void)nodes, (void)node;
    if (!sieve->queue.stale) {
        sieve->hand = sieve->hand == slot ? sieve->queue.links[slot].newer : sieve->hand;
        queue_remove(&sieve->queue, slot);
    }
}

const rudder_policy_t policy_sieve = {.size = sizeof(rudder_policy_t),
                                      .name = "sieve",
                                      .flags = RUDDER_POLICY_ADMITS,
                                      .state_bytes = sizeof(sieve_state_t),
                                      .memory = sieve_memory,
                                      .open = sieve_open,
                                      .hits = sieve_hits,
                                      .misses = sieve_misses,
                                      .restored = sieve_restored,
                                      .dropped = sieve_dropped,
                                      .started = sieve_started};
