/*
 * The slots in an order of time, from the oldest to the newest, for policies that keep one (lru, sieve). What orders them is
 * a number in the state of each node, its first 8 bytes: the buffer puts it back when a plan is aborted, and the queue is
 * then made anew before it is used.
 */
#ifndef RUDDER_POLICY_QUEUE_H
#define RUDDER_POLICY_QUEUE_H

#include <stdint.h>

#include "buffer/arena.h"
#include "buffer/nodes.h"
#include "buffer/rank.h"

enum { QUEUE_AHEAD = 8 };

typedef struct queue_link {
    int32_t older, newer; /* slots, or the end */
} queue_link_t;

typedef struct queue {
    queue_link_t *links; /* [capacity + 1]; the last one is the end: newer than the newest, older than the oldest */
    rank_item_t *items;  /* [capacity] */
    int32_t end;
    int stale;      /* slots or states were put back */
    uint64_t stamp; /* the last one given: the minibatch, from 1, and a number within it */
} queue_t;

void queue_layout(arena_t *arena, const rudder_policy_setup_t *setup, queue_t *queue);
/* A minibatch begins; makes the queue anew if it is stale: 1. */
int queue_begin(queue_t *queue, const rudder_nodes_t *nodes);

static inline int32_t queue_oldest(const queue_t *queue)
{
    return queue->links[queue->end].newer;
}

/*
 * The slot after `slot`, whose node's record is called for. A policy that goes over the slots in their order calls for them
 * QUEUE_AHEAD slots earlier.
 */
static inline int32_t queue_call_next(const queue_t *queue, const rudder_nodes_t *nodes, int32_t slot)
{
    const int32_t next = queue->links[slot].newer;
    if (next != queue->end) {
        __builtin_prefetch(nodes_record(nodes, nodes->slot_node[next]), 1);
    }
    return next;
}

static inline void queue_remove(queue_t *queue, int32_t slot)
{
    const queue_link_t link = queue->links[slot];
    queue->links[link.older].newer = link.newer;
    queue->links[link.newer].older = link.older;
}

/* The slot becomes the newest. */
static inline void queue_push(queue_t *queue, int32_t slot)
{
    const int32_t newest = queue->links[queue->end].older;
    queue->links[slot] = (queue_link_t){.older = newest, .newer = queue->end};
    queue->links[newest].newer = slot;
    queue->links[queue->end].older = slot;
}

/* The slot becomes the newest, by the number in its node's state. */
static inline void queue_enter(queue_t *queue, const rudder_nodes_t *nodes, int32_t node, int32_t slot)
{
    *(uint64_t *)nodes_state(nodes, node) = ++queue->stamp;
    queue_push(queue, slot);
}

#endif
