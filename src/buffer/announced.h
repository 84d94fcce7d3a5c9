/*
 * The minibatches that the host has announced: their nodes in one ring, each minibatch in one piece. Those to come are kept
 * for policies that look ahead, and so that the look-up of a minibatch finds its nodes without hashing its ids again; those
 * that were planned, until their plan can no longer be taken back.
 */
#ifndef RUDDER_BUFFER_ANNOUNCED_H
#define RUDDER_BUFFER_ANNOUNCED_H

#include <stdint.h>

#include "buffer/arena.h"

enum { ANNOUNCED_MOST_IDS = 1 << 30 };

typedef struct announced_minibatch {
    int64_t minibatch;
    int64_t begin, n; /* its nodes are node[begin .. begin + n) of the ring */
} announced_minibatch_t;

typedef struct announced {
    int32_t *node; /* ring [size]; -1: an id that is not tracked */
    int64_t size;
    int64_t end;                 /* position behind the newest; positions only grow, the ring has them modulo `size` */
    announced_minibatch_t *list; /* ring [most] */
    int64_t most;
    int64_t tail, first, head; /* list: tail .. head - 1 are kept, first .. head - 1 are to come */
    int64_t n_ids, limit;      /* ids to come, most of them */
    int64_t last;              /* the newest minibatch ever announced, -1: none */
    int64_t largest;           /* most ids in one so far */
} announced_t;

/* max_announced 0: nothing is kept. Planned ones have room beside those to come. */
static inline int64_t announced_size(int64_t max_announced, int64_t max_ids, int64_t max_plans)
{
    const int64_t kept = (max_plans + 2) * max_ids;
    return max_announced == 0 ? 0 : max_announced + (kept < ANNOUNCED_MOST_IDS ? kept : ANNOUNCED_MOST_IDS - 1);
}

/* Minibatches that are kept at once, a multiple of 64. */
static inline int64_t announced_most(int64_t max_announced, int64_t max_plans)
{
    return max_announced == 0 ? 0 : (max_announced / 8 + 1024 + max_plans + 63) / 64 * 64;
}

void announced_layout(arena_t *arena, int64_t max_announced, int64_t max_ids, int64_t max_plans,
                      announced_t *announced);

static inline announced_minibatch_t *announced_at(const announced_t *announced, int64_t number)
{
    return &announced->list[number % announced->most];
}

/* Their ring positions as indices; consecutive ones follow each other. */
static inline int64_t announced_index(const announced_t *announced, const announced_minibatch_t *minibatch)
{
    return minibatch->begin % announced->size;
}

static inline int32_t *announced_nodes(const announced_t *announced, const announced_minibatch_t *minibatch)
{
    return announced->node + announced_index(announced, minibatch);
}

static inline int64_t announced_to_come(const announced_t *announced)
{
    return announced->head - announced->first;
}

/* 1 when a minibatch of n ids can be added. */
int announced_has_room(const announced_t *announced, int64_t n);
/* Adds one, to be checked for room by the caller; returns where its n nodes go. */
int32_t *announced_add(announced_t *announced, int64_t minibatch, int64_t n);

/* A minibatch is planned: returns it, NULL when it was not announced. */
const announced_minibatch_t *announced_plan(announced_t *announced, int64_t minibatch);
/* Its plan was taken back: it is to come again. */
void announced_take_back(announced_t *announced, int64_t minibatch);
/* Its plan can no longer be taken back: it is forgotten. */
void announced_forget(announced_t *announced, int64_t minibatch);

#endif
