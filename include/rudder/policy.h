/*
 * rudder/policy.h - how to write a policy: which rows leave the buffer and which enter.
 *
 * A policy is a table of functions. The buffer keeps, for every remote node it has heard of (a *tracked* node), a record
 * with the node's id, its slot (or -1) and `state_bytes` bytes that belong to the policy. Once per minibatch the buffer
 * hands the policy the nodes that were hit and those that were missed, each node once, in the order in which they first
 * appeared in the minibatch. A policy changes the content of the buffer by rudder_nodes_admit() only.
 *
 * Two kinds of change, and a policy may make both:
 *   - inside `misses`, a row that was just missed enters: the host fetches it anyway, so this costs no traffic;
 *   - inside `replace`, called when the decider says so, any tracked node enters; those not missed in this minibatch
 *     cost one fetched row each (a *fill row*).
 *
 * All functions of one policy instance are called by the thread that calls the handle; none may call the handle.
 * examples/own_policy.c is a complete policy in 30 lines.
 */
#ifndef RUDDER_POLICY_H
#define RUDDER_POLICY_H

#include <stdint.h>
#include <stddef.h>
#include "rudder/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tracked nodes and the slots of one row type. Node numbers are 0 .. count-1, slots 0 .. capacity-1. */
typedef struct rudder_nodes rudder_nodes_t;

/* What a policy is told when it is opened. Pointers are valid during `open` only, `nodes` until `close`. */
typedef struct rudder_policy_setup {
    size_t size;
    rudder_nodes_t *nodes;
    int64_t capacity;      /* slots */
    int64_t max_nodes;     /* most nodes that can be tracked, those in the buffer included */
    int64_t max_ids;       /* most ids in one minibatch */
    int32_t period;        /* minibatches in a metrics window */
    double alpha;          /* decay of the paper's eviction score per minibatch without a hit */
    int32_t max_plans;     /* plans that can be taken back at once */
    int64_t max_announced; /* most ids of announced minibatches to come; 0: the policy does not look ahead */
    int64_t window;        /* N of the policy name "lookahead:N": minibatches to look ahead; 0: as many as help */
    int32_t cost_classes;  /* different costs that rows may have; 1: all cost the same */
} rudder_policy_setup_t;

/* What a replacement now would do; all counts are rows. */
typedef struct rudder_outlook {
    int64_t stale;               /* slots that the policy would let go */
    int64_t candidates;          /* tracked nodes outside that it would let in */
    int64_t swaps;               /* rows that would enter */
    int64_t cost;                /* fill rows among them */
    double saving_per_minibatch; /* rows that the new content is expected to save in each coming minibatch */
} rudder_outlook_t;

enum {
    RUDDER_POLICY_REPLACES = 1u, /* `replace` has a meaning: a decider says when */
    RUDDER_POLICY_ADMITS = 2u    /* rows enter when they are missed */
};

typedef struct rudder_policy {
    size_t size; /* sizeof(rudder_policy_t) */
    const char *name;
    unsigned flags;
    size_t state_bytes; /* per tracked node, zeroed when a node is first seen; a multiple of 8 */

    /* Bytes of private memory for one instance; NULL for none. Handed to `open` zeroed and 64-byte aligned. */
    size_t (*memory)(const rudder_policy_setup_t *setup);
    rudder_status_t (*open)(void *self, const rudder_policy_setup_t *setup);

    /* A minibatch: nodes found in the buffer, then nodes not found. Either may be NULL: nothing is done. */
    void (*hits)(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n);
    void (*misses)(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n);

    /* A replacement, at most once a minibatch, after `misses` and `outlook`. Returns the number of rows that entered. */
    int64_t (*replace)(void *self, rudder_nodes_t *nodes);

    /* What `replace` would do now. NULL if the policy has no replacement. May cost O(capacity + tracked nodes). */
    void (*outlook)(void *self, rudder_nodes_t *nodes, rudder_outlook_t *outlook);

    /*
     * The plan was aborted: the states of these nodes and the slots were put back as they were before it. Repair what the
     * instance derives from them. NULL if it derives nothing. May come several times for one abort; a node may repeat.
     */
    void (*restored)(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n);

    /* The node left its slot by rudder_invalidate() or because its fill was given up. NULL if nothing is to be done. */
    void (*dropped)(void *self, rudder_nodes_t *nodes, int32_t node, int32_t slot);

    /* The start content enters (before the first minibatch): the policy sets its state for a node in a slot. NULL: left zero. */
    void (*started)(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n);

    /*
     * The nodes of a minibatch to come; minibatches are announced in ascending order, and not before they are known. Nodes
     * may repeat; -1: an id that is not tracked for want of room. NULL: the policy does not look ahead. An announcement
     * outlives the abort of a plan that was begun before it, and so do the nodes that it tracked; but what `announced`
     * wrote to the state of a node that this plan asks for is gone then, unless `restored` repairs it.
     */
    void (*announced)(void *self, rudder_nodes_t *nodes, int64_t minibatch, const int32_t *node, int64_t n);
    /* 1 when it would help to know one more minibatch before the next is planned. NULL: never. O(ids of that one). */
    int (*wants)(void *self, const rudder_nodes_t *nodes);

    /*
     * The remote nodes known beforehand (the halo) in the host's order and their degrees (NULL: not known), in portions,
     * after `open` and before anything else; with this function they are tracked from the start, as many as max_tracked
     * allows. NULL: nodes are tracked when first seen.
     */
    void (*known)(void *self, rudder_nodes_t *nodes, const int32_t *node, const uint32_t *degree, int64_t n);

    void (*close)(void *self);
} rudder_policy_t;

/* Number of tracked nodes; node numbers are dense and keep their node until the handle is closed. */
RUDDER_API int32_t rudder_nodes_count(const rudder_nodes_t *nodes);
/* Minibatches planned before this one, for this row type. */
RUDDER_API int64_t rudder_nodes_minibatch(const rudder_nodes_t *nodes);
RUDDER_API int64_t rudder_nodes_capacity(const rudder_nodes_t *nodes);
/* Slots without a row. */
RUDDER_API int64_t rudder_nodes_free(const rudder_nodes_t *nodes);
RUDDER_API int64_t rudder_node_id(const rudder_nodes_t *nodes, int32_t node);
/* The node's slot, -1 outside the buffer. */
RUDDER_API int32_t rudder_node_slot(const rudder_nodes_t *nodes, int32_t node);
/* 1 when the node was missed in the current minibatch, so that letting it in costs no fill. */
RUDDER_API int rudder_node_missed(const rudder_nodes_t *nodes, int32_t node);
/*
 * The policy's bytes for the node. Valid until the next minibatch. For rudder_abort() the buffer saves them before `hits` and
 * `misses` for the nodes of the minibatch, and in rudder_nodes_admit() for the two nodes concerned. What a policy changes
 * elsewhere (other nodes, its own memory) stays changed when a plan is aborted, unless `restored` repairs it.
 */
RUDDER_API void *rudder_node_state(const rudder_nodes_t *nodes, int32_t node);
/*
 * What fetching the node's row costs, relative to the cheapest owner: 1 where costs are off or equal. Costs come in steps
 * of sqrt(2) and change between minibatches only; rudder_nodes_cost_version() grows when any has changed. O(log owners).
 */
RUDDER_API double rudder_node_cost(const rudder_nodes_t *nodes, int32_t node);
RUDDER_API uint32_t rudder_nodes_cost_version(const rudder_nodes_t *nodes);
/* The node in a slot, -1 when the slot is free. */
RUDDER_API int32_t rudder_slot_node(const rudder_nodes_t *nodes, int32_t slot);

/*
 * Lets `node` (outside the buffer) enter. `victim` is the node that leaves for it, or -1 to take a free slot. Returns the
 * slot, or -1 and changes nothing when the request has no meaning: node inside, victim outside, no free slot, node not
 * missed now and the call does not come from `replace`; a node that left in this minibatch (it cannot come back in it); from
 * `misses` without RUDDER_POLICY_ADMITS; more often than there are slots in one `replace`. The states of both nodes are
 * saved before the call returns, so change them afterwards. Cost: O(1).
 */
RUDDER_API int32_t rudder_nodes_admit(rudder_nodes_t *nodes, int32_t node, int32_t victim);

#ifdef __cplusplus
}
#endif
#endif
