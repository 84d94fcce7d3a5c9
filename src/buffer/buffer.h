/*
 * The life of one plan on one row type: look the ids up, let the policy answer, hand over rows, or take everything back.
 * Order between plans (completion, abort), windows and deciders are the caller's (src/api).
 */
#ifndef RUDDER_BUFFER_BUFFER_H
#define RUDDER_BUFFER_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "buffer/arena.h"
#include "buffer/nodes.h"
#include "rudder/status.h"

typedef struct buffer_config {
    size_t row_bytes;
    int64_t capacity, max_ids, max_tracked, max_announced;
    int64_t id_end; /* ids are below it */
    int32_t max_plans;
    int32_t period;
    double alpha;
    const rudder_policy_t *policy;
    int64_t window; /* of the policy's name, 0: none */
    int costs;      /* rows of different owners cost differently */
} buffer_config_t;

/* Remote nodes known beforehand; degree, weight: NULL when not known. */
typedef struct buffer_halo {
    const int64_t *id;
    const uint32_t *degree;
    const double *weight;
    int64_t n;
} buffer_halo_t;

typedef enum buffer_start {
    BUFFER_START_EMPTY,
    BUFFER_START_DEGREE,
    BUFFER_START_RANDOM,
    BUFFER_START_WEIGHTS
} buffer_start_t;

/* A row in a slot, or on its way there. */
typedef struct buffer_place {
    int32_t node, slot;
} buffer_place_t;

/* A hit whose row had not come when its plan was made. */
typedef struct buffer_joined {
    int32_t slot;
    uint32_t brought; /* low bits of the plan that brings it */
} buffer_joined_t;

/* Arrays are for the largest type, so that a plan can serve any. */
typedef struct buffer_plan {
    rudder_nodes_t *nodes;
    int64_t sequence;
    int64_t n_ids, n_miss, n_fill, n_filled, n_hit, n_untracked, n_joined, n_admitted;
    int32_t *source;            /* [n_ids]: slot of a hit, NODES_MISS - k for miss k */
    int64_t *fetch;             /* [n_miss + n_fill] */
    buffer_place_t *fills;      /* [n_fill] */
    buffer_joined_t *joined;    /* [n_joined] */
    nodes_admitted_t *admitted; /* [n_admitted] */
    nodes_touched_t touched;
    int64_t undo_begin, undo_end;
    int64_t minibatch; /* -1: the start content */
    int32_t count_before, count_after;
    int start, complete;
} buffer_plan_t;

/* Cuts the memory of one row type out of the arena (not its rows) and ties it together. nodes: NULL while measuring. */
void buffer_layout(arena_t *arena, const buffer_config_t *config, rudder_nodes_t *nodes);
/* Likewise the arrays of one plan. */
void buffer_plan_layout(arena_t *arena, const rudder_policy_t *policy, int64_t max_ids, int64_t max_capacity,
                        buffer_plan_t *plan);
/* What the policy is told. */
rudder_policy_setup_t buffer_setup(const buffer_config_t *config, rudder_nodes_t *nodes);
/* Bytes of the rows. */
size_t buffer_row_bytes(const buffer_config_t *config);

/* Empties everything. `rows` may be NULL when capacity is 0. */
void buffer_open(rudder_nodes_t *nodes, unsigned char *rows);

/*
 * Chooses the start content: of the halo the `capacity` nodes of the highest key, lower ids first among equals. The key is
 * the degree, the weight, or a random number made from `seed`.
 */
void buffer_choose_start(rudder_nodes_t *nodes, const buffer_halo_t *halo, buffer_start_t start, uint64_t seed);
/* Tracks the halo, for policies that want to know it: after the choice of the start content, once the policy is open. */
void buffer_know(rudder_nodes_t *nodes, const buffer_halo_t *halo, int64_t max_tracked);

/* A plan of the start content. */
void buffer_plan_start(rudder_nodes_t *nodes, buffer_plan_t *plan);

/* A minibatch to come, checked by the caller: tracks its nodes while there is room, tells the policy, which looks ahead. */
void buffer_announce(rudder_nodes_t *nodes, int64_t minibatch, const int64_t *ids, int64_t n);
/* 1 when the policy wants to know one more and there is room for one as large as any before. */
int buffer_announce_wanted(const rudder_nodes_t *nodes);

/* Looks up ids (checked by the caller) and lets the policy see hits and misses. */
void buffer_begin(rudder_nodes_t *nodes, buffer_plan_t *plan, const int64_t *ids, int64_t n);
/* Between buffer_begin() and buffer_finish(), at most once. */
void buffer_replace(rudder_nodes_t *nodes);
/* Draws up what is to be fetched; returns the rows that entered. */
int64_t buffer_finish(rudder_nodes_t *nodes, buffer_plan_t *plan);

/* 0 when a row that the plan hits has not come yet. */
int buffer_ready(const buffer_plan_t *plan);
void buffer_complete(buffer_plan_t *plan, const void *miss_rows, size_t stride, void *out);
void buffer_fill(buffer_plan_t *plan, const void *fill_rows, size_t stride, int64_t n);

/* Takes back a plan that is not complete; it must be the newest of its nodes. */
void buffer_abort(buffer_plan_t *plan);
/* Gives up the fill rows of a complete plan that have not come. */
void buffer_give_up(buffer_plan_t *plan);
/* The rows of these ids leave the buffer. */
void buffer_invalidate(rudder_nodes_t *nodes, const int64_t *ids, int64_t n);

#endif
