/*
 * The tracked nodes, the slots and the rows of one row type: what rudder/policy.h calls rudder_nodes_t. An index finds a node
 * by its id: an array by id where that takes no more memory than hashing would, an open-addressing table elsewhere. The node's
 * record (one cache line or less, with the policy's bytes) tells its slot and the last minibatch that asked for it, so that
 * one probe serves deduplication, hit test and tracking.
 *
 * Rows arrive later than plans are made, so a slot has two faces: the node that is in it by plan (slot_node, brought by the
 * plan `brought`) and the row that lies in its memory (delivered for the plan row_sequence). Plans change the first,
 * rudder_complete() and rudder_fill() the second.
 *
 * What a plan changes can be taken back: the plan keeps the states of the nodes that it asks for, and a ring shared by all
 * plans the rows that left and entered. Plans complete oldest first, which frees the tail of the ring, and are aborted
 * newest first, which takes from its head.
 */
#ifndef RUDDER_BUFFER_NODES_H
#define RUDDER_BUFFER_NODES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "buffer/announced.h"
#include "buffer/costs.h"
#include "rudder/policy.h"

enum {
    NODES_MAX_SLOTS = 1 << 29,
    NODES_MAX_NODES = 1 << 30,
    NODES_MAX_STATE = 4096,
    NODES_PENDING = 1 << 30, /* in a place: the row of this node has not come yet */
    NODES_OUTSIDE = -1,      /* a place: not in the buffer */
    NODES_MISS = -2          /* a place: -2 - k is miss k of the minibatch `seen` */
};

typedef struct nodes_record {
    int64_t id;
    int32_t place; /* slot, perhaps with NODES_PENDING; NODES_OUTSIDE; or NODES_MISS - k */
    uint32_t seen; /* low bits of the sequence number of the last plan that asked for it or let it leave */
    /* the policy's bytes follow */
} nodes_record_t;

typedef enum nodes_phase { NODES_IDLE, NODES_MISSES, NODES_REPLACE } nodes_phase_t;

/* What a record of the undo ring undoes. */
typedef enum nodes_change {
    NODES_LEFT,
    NODES_ENTERED, /* a row that was missed anyway */
    NODES_FILLED   /* a row fetched only to fill the buffer */
} nodes_change_t;

/* A record of the ring: this, then the state of the node before. */
typedef struct nodes_undo {
    int32_t node;
    uint32_t what;    /* slot << 2 | nodes_change_t */
    uint32_t brought; /* of that slot, before */
} nodes_undo_t;

/* The nodes of a minibatch and their states before it. */
typedef struct nodes_touched {
    int32_t *node;
    unsigned char *state; /* state_bytes each */
    int64_t n;
} nodes_touched_t;

/* A missed row that enters: miss `miss` of its plan goes to `slot`. */
typedef struct nodes_admitted {
    int32_t node, slot, miss;
} nodes_admitted_t;

struct rudder_nodes {
    /* nodes 0 .. count-1 are tracked; records from max_nodes on are lent to ids of one minibatch that are not */
    unsigned char *records;
    uint32_t record_shift; /* bytes of a record: 1 << record_shift */
    int32_t count, max_nodes;
    int32_t settled; /* nodes before this one are tracked whatever is aborted: they were known or announced */
    uint64_t *index; /* [index_size]: hash tag << 32 | node + 1; 0: empty */
    uint64_t index_size;
    int32_t *by_id; /* [id_end], in the memory of the index: node + 1; 0: not tracked. NULL: it does not fit */
    int64_t id_end; /* ids are below it */

    int64_t capacity, free;
    int32_t free_head;     /* first free slot, capacity: none */
    int32_t *slot_node;    /* [capacity]: node by plan; a free slot: -1 - next free slot */
    uint32_t *brought;     /* [capacity]: low bits of the plan that brought that node */
    int64_t *row_sequence; /* [capacity]: plan whose row lies there, 0: none */
    unsigned char *rows;   /* [capacity][row_bytes] */
    size_t row_bytes;

    int64_t sequence;  /* of the last plan begun; never goes back */
    int64_t minibatch; /* planned before the current one */
    int64_t max_ids;
    int64_t n_start;     /* rows of the start content that wait: ids in the records, or nodes in `brought` (known) */
    int known;           /* the nodes known beforehand are tracked from the start */
    int started;         /* the start content was planned, or the first minibatch came without it */
    int64_t admits_left; /* of this phase of this plan */
    nodes_phase_t phase;

    unsigned char *undo; /* ring of undo_size records of undo_bytes */
    size_t undo_bytes;
    int64_t undo_size, undo_tail, undo_head;
    int64_t n_incomplete; /* plans that can be taken back */

    /* the minibatch that is being planned */
    int32_t *hits, *misses; /* [max_ids] each; at the end of `misses`: index places of the lent records */
    int64_t n_lent;
    nodes_admitted_t *admitted; /* [max_ids] of its plan */
    int64_t n_admitted;

    announced_t announced;

    const costs_t *costs;        /* NULL: all rows cost the same */
    const int64_t *owner_offset; /* of this type */

    const rudder_policy_t *policy;
    void *policy_self;
    size_t state_bytes;
};

static inline nodes_record_t *nodes_record(const rudder_nodes_t *nodes, int32_t node)
{
    return (nodes_record_t *)(nodes->records + ((size_t)node << nodes->record_shift));
}

static inline void *nodes_state(const rudder_nodes_t *nodes, int32_t node)
{
    return nodes_record(nodes, node) + 1;
}

/* The slot of a record, -1 outside. */
static inline int32_t nodes_slot(const nodes_record_t *record)
{
    return record->place < 0 ? -1 : record->place & ~NODES_PENDING;
}

/* What the node's row costs, in classes. */
static inline int32_t nodes_cost_class(const rudder_nodes_t *nodes, int32_t node)
{
    return costs_class(nodes->costs, nodes->owner_offset, nodes_record(nodes, node)->id);
}

/* Missed in the current minibatch and not let in by it. */
static inline int nodes_missed(const rudder_nodes_t *nodes, const nodes_record_t *record)
{
    return record->place <= NODES_MISS && record->seen == (uint32_t)nodes->sequence;
}

/* ---- Index ------------------------------------------------------------------------------------------------------ */

/* Chooses by_id or index; for nodes whose memory is there. */
void nodes_choose_index(rudder_nodes_t *nodes);
void nodes_empty_index(rudder_nodes_t *nodes);

/* Where the search for a hash starts: the high half scaled to the table, the low half is the tag. */
static inline uint64_t nodes_home(const rudder_nodes_t *nodes, uint64_t hash)
{
    return ((hash >> 32) * nodes->index_size) >> 32;
}

static inline uint64_t nodes_next(const rudder_nodes_t *nodes, uint64_t position)
{
    return position + 1 == nodes->index_size ? 0 : position + 1;
}

static inline uint64_t nodes_entry(uint64_t hash, int32_t node)
{
    return hash << 32 | (uint32_t)(node + 1);
}

static inline int32_t nodes_entry_node(uint64_t entry)
{
    return (int32_t)(uint32_t)entry - 1;
}

/* The node with this id, -1: not tracked. */
int32_t nodes_find(const rudder_nodes_t *nodes, int64_t id);
void nodes_insert(rudder_nodes_t *nodes, int32_t node);
/* Takes a node out of the index. Only in the reverse order of insertion: then no chain of others runs through its place. */
void nodes_remove(rudder_nodes_t *nodes, int32_t node);

/* ---- Changes ---------------------------------------------------------------------------------------------------- */

static inline nodes_undo_t *nodes_undo_at(const rudder_nodes_t *nodes, int64_t i)
{
    const int64_t place = i < nodes->undo_size ? i : i % nodes->undo_size; /* mostly without a division */
    return (nodes_undo_t *)(nodes->undo + (size_t)place * nodes->undo_bytes);
}

static inline int32_t nodes_undo_slot(const nodes_undo_t *undo)
{
    return (int32_t)(undo->what >> 2);
}

static inline nodes_change_t nodes_undo_change(const nodes_undo_t *undo)
{
    return (nodes_change_t)(undo->what & 3);
}

static inline void nodes_copy_state(const rudder_nodes_t *nodes, void *to, const void *from)
{
    for (size_t i = 0; i < nodes->state_bytes; i += 8) { /* a few words: a loop beats a call */
        memcpy((unsigned char *)to + i, (const unsigned char *)from + i, 8);
    }
}

static inline void nodes_touch(const rudder_nodes_t *nodes, nodes_touched_t *touched, int32_t node)
{
    nodes_copy_state(nodes, touched->state + (size_t)touched->n * nodes->state_bytes, nodes_state(nodes, node));
    touched->node[touched->n++] = node;
}

/* A node takes the first free slot, or leaves its own, by plan. Not written to the ring. */
int32_t nodes_occupy(rudder_nodes_t *nodes, int32_t node);
void nodes_leave(rudder_nodes_t *nodes, int32_t node);
/*
 * Takes back everything down to ring position `begin`, what was touched, and the nodes before..after-1, which the plan saw
 * first; those of them that are settled stay tracked, as if never asked for.
 */
void nodes_undo(rudder_nodes_t *nodes, int64_t begin, const nodes_touched_t *touched, int32_t before, int32_t after);
/* The node leaves its slot and its memory, the policy is told. Not written to the ring. */
void nodes_drop(rudder_nodes_t *nodes, int32_t node);

#endif
