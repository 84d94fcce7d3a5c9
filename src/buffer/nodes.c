/* The node table as policies see it: reading nodes and slots, letting nodes in, taking changes back. */
#include <assert.h>
#include <string.h>

#include "buffer/nodes.h"

int32_t rudder_nodes_count(const rudder_nodes_t *nodes)
{
    return nodes->count;
}

int64_t rudder_nodes_minibatch(const rudder_nodes_t *nodes)
{
    return nodes->minibatch;
}

int64_t rudder_nodes_capacity(const rudder_nodes_t *nodes)
{
    return nodes->capacity;
}

int64_t rudder_nodes_free(const rudder_nodes_t *nodes)
{
    return nodes->free;
}

int64_t rudder_node_id(const rudder_nodes_t *nodes, int32_t node)
{
    return nodes_record(nodes, node)->id;
}

int32_t rudder_node_slot(const rudder_nodes_t *nodes, int32_t node)
{
    return nodes_slot(nodes_record(nodes, node));
}

int rudder_node_missed(const rudder_nodes_t *nodes, int32_t node)
{
    return nodes_missed(nodes, nodes_record(nodes, node));
}

void *rudder_node_state(const rudder_nodes_t *nodes, int32_t node)
{
    return nodes_state(nodes, node);
}

double rudder_node_cost(const rudder_nodes_t *nodes, int32_t node)
{
    return nodes->costs == NULL ? 1 : costs_of_class(nodes_cost_class(nodes, node));
}

uint32_t rudder_nodes_cost_version(const rudder_nodes_t *nodes)
{
    return nodes->costs == NULL ? 0 : nodes->costs->version;
}

int32_t rudder_slot_node(const rudder_nodes_t *nodes, int32_t slot)
{
    return nodes->slot_node[slot] < 0 ? -1 : nodes->slot_node[slot];
}

/* ---- Index ------------------------------------------------------------------------------------------------------ */

void nodes_choose_index(rudder_nodes_t *nodes)
{
    const int64_t places = (int64_t)(nodes->index_size * (sizeof *nodes->index / sizeof *nodes->by_id));
    nodes->by_id = nodes->id_end <= places ? (int32_t *)(void *)nodes->index : NULL;
}

void nodes_empty_index(rudder_nodes_t *nodes)
{
    if (nodes->by_id != NULL) {
        memset(nodes->by_id, 0, (size_t)nodes->id_end * sizeof *nodes->by_id);
    } else {
        memset(nodes->index, 0, nodes->index_size * sizeof *nodes->index);
    }
}

int32_t nodes_find(const rudder_nodes_t *nodes, int64_t id)
{
    if (nodes->by_id != NULL) {
        return (uint64_t)id < (uint64_t)nodes->id_end ? nodes->by_id[id] - 1 : -1;
    }
    const uint64_t hash = rng_mix((uint64_t)id);
    for (uint64_t at = nodes_home(nodes, hash); nodes->index[at] != 0; at = nodes_next(nodes, at)) {
        const int32_t node = nodes_entry_node(nodes->index[at]);
        if (nodes->index[at] == nodes_entry(hash, node) && nodes_record(nodes, node)->id == id) {
            return node;
        }
    }
    return -1;
}

void nodes_insert(rudder_nodes_t *nodes, int32_t node)
{
    if (nodes->by_id != NULL) {
        nodes->by_id[nodes_record(nodes, node)->id] = node + 1;
        return;
    }
    const uint64_t hash = rng_mix((uint64_t)nodes_record(nodes, node)->id);
    uint64_t at = nodes_home(nodes, hash);
    while (nodes->index[at] != 0) {
        at = nodes_next(nodes, at);
    }
    nodes->index[at] = nodes_entry(hash, node);
}

void nodes_remove(rudder_nodes_t *nodes, int32_t node)
{
    if (nodes->by_id != NULL) {
        nodes->by_id[nodes_record(nodes, node)->id] = 0;
        return;
    }
    const uint64_t hash = rng_mix((uint64_t)nodes_record(nodes, node)->id);
    uint64_t at = nodes_home(nodes, hash);
    while (nodes->index[at] != nodes_entry(hash, node)) {
        assert(nodes->index[at] != 0);
        at = nodes_next(nodes, at);
    }
    nodes->index[at] = 0;
}

/* ---- Changes ---------------------------------------------------------------------------------------------------- */

int32_t nodes_occupy(rudder_nodes_t *nodes, int32_t node)
{
    const int32_t slot = nodes->free_head;
    nodes->free_head = -1 - nodes->slot_node[slot];
    nodes->free--;
    nodes->slot_node[slot] = node;
    nodes->brought[slot] = (uint32_t)nodes->sequence;
    nodes_record(nodes, node)->place = slot;
    return slot;
}

void nodes_leave(rudder_nodes_t *nodes, int32_t node)
{
    nodes_record_t *record = nodes_record(nodes, node);
    const int32_t slot = nodes_slot(record);
    record->place = NODES_OUTSIDE;
    nodes->slot_node[slot] = -1 - nodes->free_head;
    nodes->free_head = slot;
    nodes->free++;
}

/* Writes a change and the state of the node as it is now. */
static void nodes_write_undo(rudder_nodes_t *nodes, nodes_undo_t change)
{
    nodes_undo_t *undo = nodes_undo_at(nodes, nodes->undo_head++);
    *undo = change;
    nodes_copy_state(nodes, undo + 1, nodes_state(nodes, change.node));
}

/* The policy may let `node` in now: it is outside, did not leave in this minibatch, and there is a reason. */
static int nodes_may_enter(const rudder_nodes_t *nodes, const nodes_record_t *record)
{
    if (record->place >= 0 || nodes->admits_left == 0) {
        return 0;
    }
    if (nodes_missed(nodes, record)) {
        return 1;
    }
    const int left_now = record->place == NODES_OUTSIDE && record->seen == (uint32_t)nodes->sequence;
    return nodes->phase == NODES_REPLACE && !left_now;
}

int32_t rudder_nodes_admit(rudder_nodes_t *nodes, int32_t node, int32_t victim)
{
    if (node < 0 || node >= nodes->count || victim < -1 || victim >= nodes->count ||
        !nodes_may_enter(nodes, nodes_record(nodes, node)) ||
        (victim == -1 ? nodes->free == 0 : nodes_record(nodes, victim)->place < 0)) {
        return -1;
    }
    nodes->admits_left--;
    if (victim != -1) {
        nodes_record_t *leaving = nodes_record(nodes, victim);
        const int32_t slot = nodes_slot(leaving);
        nodes_write_undo(
            nodes,
            (nodes_undo_t){.node = victim, .what = (uint32_t)slot << 2 | NODES_LEFT, .brought = nodes->brought[slot]});
        nodes_leave(nodes, victim);
        leaving->seen = (uint32_t)nodes->sequence;
    }
    nodes_record_t *entering = nodes_record(nodes, node);
    const int missed = nodes_missed(nodes, entering);
    const int32_t miss = NODES_MISS - entering->place;
    const int32_t slot = nodes_occupy(nodes, node);
    nodes_write_undo(
        nodes, (nodes_undo_t){.node = node, .what = (uint32_t)slot << 2 | (missed ? NODES_ENTERED : NODES_FILLED)});
    if (missed) {
        nodes->admitted[nodes->n_admitted++] = (nodes_admitted_t){.node = node, .slot = slot, .miss = miss};
    }
    return slot;
}

static void nodes_undo_one(rudder_nodes_t *nodes, const nodes_undo_t *undo)
{
    const int32_t slot = nodes_undo_slot(undo);
    nodes_record_t *record = nodes_record(nodes, undo->node);
    nodes_copy_state(nodes, record + 1, undo + 1);
    switch (nodes_undo_change(undo)) {
    case NODES_LEFT:
        assert(nodes->free_head == slot);
        nodes_occupy(nodes, undo->node);
        nodes->brought[slot] = undo->brought;
        if ((uint32_t)nodes->row_sequence[slot] != undo->brought) {
            record->place |= NODES_PENDING; /* its row has not come yet */
        }
        break;
    case NODES_ENTERED:
    case NODES_FILLED:
        nodes_leave(nodes, undo->node);
        break;
    }
}

/* Nodes that the policy is told of in portions that fit the scratch list. */
static void nodes_tell_one(rudder_nodes_t *nodes, int32_t node, int64_t *n)
{
    nodes->hits[(*n)++] = node;
    if (*n == nodes->max_ids) {
        nodes->policy->restored(nodes->policy_self, nodes, nodes->hits, *n);
        *n = 0;
    }
}

/* Which nodes were put back by the ring, and which became new again. */
static void nodes_tell_restored(rudder_nodes_t *nodes, int64_t begin, int64_t end, int32_t before, int32_t settled)
{
    int64_t n = 0;
    for (int64_t i = begin; i < end; i++) {
        const int32_t node = nodes_undo_at(nodes, i)->node;
        if (node < nodes->count) {
            nodes_tell_one(nodes, node, &n);
        }
    }
    for (int32_t node = before; node < settled; node++) {
        nodes_tell_one(nodes, node, &n);
    }
    nodes->policy->restored(nodes->policy_self, nodes, nodes->hits, n);
}

void nodes_undo(rudder_nodes_t *nodes, int64_t begin, const nodes_touched_t *touched, int32_t before, int32_t after)
{
    const int32_t stay =
        after < nodes->settled ? after : nodes->settled; /* of before..after-1, those before this one */
    const int64_t end = nodes->undo_head;
    for (int64_t i = end; i > begin; i--) {
        nodes_undo_one(nodes, nodes_undo_at(nodes, i - 1));
    }
    for (int64_t i = 0; i < touched->n; i++) {
        nodes_copy_state(nodes, nodes_state(nodes, touched->node[i]), touched->state + (size_t)i * nodes->state_bytes);
    }
    for (int32_t node = before; node < stay; node++) {
        memset(nodes_state(nodes, node), 0, nodes->state_bytes);
    }
    while (nodes->count > before && nodes->count > nodes->settled) {
        nodes_remove(nodes, nodes->count - 1);
        nodes->count--;
    }
    nodes->undo_head = begin;
    if (nodes->policy->restored != NULL) {
        nodes->policy->restored(nodes->policy_self, nodes, touched->node, touched->n);
        nodes_tell_restored(nodes, begin, end, before, stay);
    }
}

void nodes_drop(rudder_nodes_t *nodes, int32_t node)
{
    const int32_t slot = nodes_slot(nodes_record(nodes, node));
    nodes_leave(nodes, node);
    if (nodes->policy->dropped != NULL) {
        nodes->policy->dropped(nodes->policy_self, nodes, node, slot);
    }
}
