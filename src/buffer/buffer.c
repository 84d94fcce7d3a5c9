/* Plans on one row type. The look-up is the part that every minibatch pays: it goes over the ids once, in batches, so that
 * the memory for all ids of a batch is on its way before the first is needed. */
#include <assert.h>
#include <string.h>

#include "buffer/buffer.h"
#include "buffer/rank.h"

enum { BUFFER_AHEAD = 32, BUFFER_RING = 4 * BUFFER_AHEAD };

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

static uint32_t buffer_record_shift(size_t state_bytes)
{
    uint32_t shift = 4;
    while (((size_t)1 << shift) < sizeof(nodes_record_t) + state_bytes) {
        shift++;
    }
    return shift;
}

/* The policy hears of every node of a minibatch, so its state is saved. */
static int buffer_touches(const rudder_policy_t *policy)
{
    return policy->state_bytes > 0 && (policy->hits != NULL || policy->misses != NULL);
}

static int64_t buffer_undo_size(const buffer_config_t *config)
{
    const unsigned flags = config->policy->flags;
    int64_t per_plan = flags & RUDDER_POLICY_ADMITS ? 2 * config->max_ids : 0;
    per_plan += flags & RUDDER_POLICY_REPLACES ? 2 * config->capacity : 0;
    return per_plan * config->max_plans;
}

rudder_policy_setup_t buffer_setup(const buffer_config_t *config, rudder_nodes_t *nodes)
{
    return (rudder_policy_setup_t){.size = sizeof(rudder_policy_setup_t),
                                   .nodes = nodes,
                                   .capacity = config->capacity,
                                   .max_nodes = config->capacity + config->max_tracked,
                                   .max_ids = config->max_ids,
                                   .period = config->period,
                                   .alpha = config->alpha,
                                   .max_plans = config->max_plans,
                                   .max_announced = config->policy->announced == NULL ? 0 : config->max_announced,
                                   .window = config->window,
                                   .cost_classes = config->costs ? COSTS_CLASSES : 1};
}

void buffer_layout(arena_t *arena, const buffer_config_t *config, rudder_nodes_t *nodes)
{
    const rudder_policy_t *policy = config->policy;
    const rudder_policy_setup_t setup = buffer_setup(config, nodes);
    rudder_nodes_t n = {.capacity = config->capacity,
                        .max_nodes = (int32_t)setup.max_nodes,
                        .max_ids = config->max_ids,
                        .id_end = config->id_end,
                        .row_bytes = config->row_bytes,
                        .policy = policy,
                        .state_bytes = policy->state_bytes,
                        .record_shift = buffer_record_shift(policy->state_bytes),
                        .undo_bytes = sizeof(nodes_undo_t) + policy->state_bytes,
                        .undo_size = buffer_undo_size(config)};
    const size_t records = (size_t)(setup.max_nodes + config->max_ids), slots = (size_t)config->capacity;
    n.index_size = 2 * records;
    n.index =
        arena_take(arena, n.index_size, sizeof *n.index); /* index and records adjoin: see buffer_choose_start() */
    n.records = arena_take(arena, records, (size_t)1 << n.record_shift);
    n.slot_node = arena_take(arena, slots, sizeof *n.slot_node);
    n.brought = arena_take(arena, slots, sizeof *n.brought);
    n.row_sequence = arena_take(arena, slots, sizeof *n.row_sequence);
    n.undo = arena_take(arena, (size_t)n.undo_size, n.undo_bytes);
    n.hits = arena_take(arena, (size_t)config->max_ids, sizeof *n.hits);
    n.misses = arena_take(arena, (size_t)config->max_ids, sizeof *n.misses);
    announced_layout(arena, setup.max_announced, config->max_ids, config->max_plans, &n.announced);
    const size_t self_bytes = policy->memory == NULL ? 0 : policy->memory(&setup);
    n.policy_self = arena_take(arena, self_bytes, 1);
    if (nodes != NULL) {
        *nodes = n;
        nodes_choose_index(nodes);
        memset(n.policy_self, 0, self_bytes);
    }
}

void buffer_plan_layout(arena_t *arena, const rudder_policy_t *policy, int64_t max_ids, int64_t max_capacity,
                        buffer_plan_t *plan)
{
    const size_t ids = (size_t)max_ids, slots = (size_t)max_capacity;
    buffer_plan_t p = {0};
    p.source = arena_take(arena, ids, sizeof *p.source);
    p.fetch = arena_take(arena, ids + slots, sizeof *p.fetch);
    p.fills = arena_take(arena, slots, sizeof *p.fills);
    p.joined = arena_take(arena, ids < slots ? ids : slots, sizeof *p.joined);
    p.admitted = arena_take(arena, slots == 0 ? 0 : ids, sizeof *p.admitted);
    if (buffer_touches(policy)) {
        p.touched.node = arena_take(arena, ids, sizeof *p.touched.node);
        p.touched.state = arena_take(arena, ids, policy->state_bytes);
    }
    if (plan != NULL) {
        *plan = p;
    }
}

size_t buffer_row_bytes(const buffer_config_t *config)
{
    return (size_t)config->capacity * config->row_bytes;
}

void buffer_open(rudder_nodes_t *nodes, unsigned char *rows)
{
    nodes->rows = rows;
    nodes->free = nodes->capacity;
    nodes_empty_index(nodes);
    for (int64_t slot = 0; slot < nodes->capacity; slot++) {
        nodes->slot_node[slot] = (int32_t)(-2 - slot); /* the next free one is slot + 1 */
        nodes->row_sequence[slot] = 0;
    }
}

/* ---- Start content ---------------------------------------------------------------------------------------------- */

static uint64_t buffer_start_key(const buffer_halo_t *halo, int64_t i, buffer_start_t start, uint64_t seed)
{
    uint64_t key = 0;
    if (start == BUFFER_START_RANDOM) {
        key = rng_mix(seed ^ (uint64_t)halo->id[i]);
    } else if (start == BUFFER_START_WEIGHTS) {
        const double weight = halo->weight[i] + 0.0; /* no -0 */
        memcpy(&key, &weight, sizeof key);           /* of numbers >= 0 the bits are ordered as the numbers are */
    } else if (halo->degree != NULL) {
        key = halo->degree[i];
    }
    return key;
}

/*
 * Runs while the table is empty: index and records lend their memory to the selection, which takes 24 of their at least 32
 * bytes a node. The chosen ids then wait in the records until buffer_start() or the first minibatch.
 */
void buffer_choose_start(rudder_nodes_t *nodes, const buffer_halo_t *halo, buffer_start_t start, uint64_t seed)
{
    const int64_t records = nodes->max_nodes + nodes->max_ids;
    const unsigned char *end = nodes->records + ((size_t)records << nodes->record_shift);
    rank_top_t top = {.items = (rank_item_t *)(void *)nodes->index,
                      .capacity = (end - (unsigned char *)nodes->index) / (int64_t)sizeof(rank_item_t),
                      .k = nodes->capacity};
    assert(top.capacity > top.k);
    for (int64_t i = 0; i < halo->n; i++) {
        const uint64_t key = buffer_start_key(halo, i, start, seed);
        if (key > 0 || start != BUFFER_START_WEIGHTS) {
            rank_top_add(&top, (rank_item_t){.key = key, .id = halo->id[i]});
        }
    }
    nodes->n_start = rank_top_end(&top);
    rank_sort(top.items, nodes->n_start);
    int64_t *ids = (int64_t *)(void *)nodes->index; /* 8 bytes an id behind 24 bytes an item, all inside the index */
    for (int64_t i = 0; i < nodes->n_start; i++) {
        ids[i] = top.items[i].id;
    }
    for (int64_t i = 0; i < nodes->n_start; i++) {
        nodes_record(nodes, (int32_t)i)->id = ids[i];
    }
    nodes_empty_index(nodes);
}

static void buffer_plan_reset(buffer_plan_t *plan, rudder_nodes_t *nodes, int64_t n_ids)
{
    if ((uint32_t)++nodes->sequence == 0) { /* once in 2^32 plans: no old mark may look new */
        nodes->sequence++;
        for (int32_t node = 0; node < nodes->count; node++) {
            nodes_record(nodes, node)->seen = 0;
        }
    }
    if (nodes->n_incomplete++ == 0) { /* the ring is empty: from its start again, which is in the cache */
        nodes->undo_head = nodes->undo_tail = 0;
    }
    buffer_plan_t fresh = {.nodes = nodes,
                           .sequence = nodes->sequence,
                           .n_ids = n_ids,
                           .source = plan->source,
                           .fetch = plan->fetch,
                           .fills = plan->fills,
                           .joined = plan->joined,
                           .admitted = plan->admitted,
                           .touched = {.node = plan->touched.node, .state = plan->touched.state},
                           .undo_begin = nodes->undo_head,
                           .undo_end = nodes->undo_head,
                           .minibatch = nodes->minibatch,
                           .count_before = nodes->count,
                           .count_after = nodes->count};
    *plan = fresh;
    nodes->admitted = plan->admitted;
    nodes->n_admitted = 0;
}

static void buffer_add_fill(buffer_plan_t *plan, int32_t node, int32_t slot)
{
    nodes_record_t *record = nodes_record(plan->nodes, node);
    record->place = slot | NODES_PENDING;
    plan->fetch[plan->n_miss + plan->n_fill] = record->id;
    plan->fills[plan->n_fill++] = (buffer_place_t){.node = node, .slot = slot};
}

/* A node without a past. */
static void buffer_new_record(rudder_nodes_t *nodes, int32_t node, int64_t id)
{
    nodes_record_t *record = nodes_record(nodes, node);
    *record = (nodes_record_t){.id = id, .place = NODES_OUTSIDE};
    memset(record + 1, 0, nodes->state_bytes);
}

/* Tells the policy of the nodes of the start content, in portions that fit the scratch list. */
static void buffer_tell_fills(const buffer_plan_t *plan,
                              void (*tell)(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n))
{
    rudder_nodes_t *nodes = plan->nodes;
    for (int64_t done = 0, n; done < plan->n_fill; done += n) {
        n = plan->n_fill - done < nodes->max_ids ? plan->n_fill - done : nodes->max_ids;
        for (int64_t i = 0; i < n; i++) {
            nodes->hits[i] = plan->fills[done + i].node;
        }
        tell(nodes->policy_self, nodes, nodes->hits, n);
    }
}

void buffer_plan_start(rudder_nodes_t *nodes, buffer_plan_t *plan)
{
    buffer_plan_reset(plan, nodes, 0);
    plan->start = nodes->started = 1;
    plan->minibatch = -1;
    for (int32_t i = 0; i < nodes->n_start; i++) {
        int32_t node = i;
        if (nodes->known) {
            node = (int32_t)nodes->brought[i]; /* all slots are free: this is the i-th to be taken */
        } else {
            buffer_new_record(nodes, node, nodes_record(nodes, node)->id);
            nodes_insert(nodes, node);
            nodes->count++;
        }
        buffer_add_fill(plan, node, nodes_occupy(nodes, node));
    }
    plan->count_after = nodes->count;
    if (nodes->policy->started != NULL) {
        buffer_tell_fills(plan, nodes->policy->started);
    }
}

/* ---- A minibatch ------------------------------------------------------------------------------------------------ */

/* An id whose memory is on its way. */
typedef struct buffer_flight {
    uint64_t hash, at;
} buffer_flight_t;

/* The state of a look-up: what the loop needs, out of reach of what it writes to. */
typedef struct buffer_search {
    rudder_nodes_t *nodes;
    buffer_plan_t *plan;
    const int64_t *ids;
    uint64_t *index, index_size;
    int32_t *by_id;
    uint32_t now;
    int32_t known;                    /* nodes before this one have a state to save */
    int lends;                        /* ids that cannot be tracked get a lent record */
    int32_t *node;                    /* [n] found, or else: of each id */
    int64_t n_hit, n_miss, n_tracked; /* n_tracked: of the misses */
    buffer_flight_t flight[BUFFER_RING];
} buffer_search_t;

/* Moves `at` to the first entry that may be the one with this hash, or to the empty one that ends its chain. */
static inline uint64_t buffer_probe(const buffer_search_t *s, uint64_t hash, uint64_t at)
{
    while (s->index[at] != 0 && (uint32_t)(s->index[at] >> 32) != (uint32_t)hash) {
        at = at + 1 == s->index_size ? 0 : at + 1;
    }
    return at;
}

/* An id that is not in the index, where its place is `at`: a new node, or a record lent for this minibatch; or -1. */
static int32_t buffer_new_node(const buffer_search_t *s, int64_t id, uint64_t at)
{
    rudder_nodes_t *nodes = s->nodes;
    int32_t node;
    if (nodes->count < nodes->max_nodes) {
        node = nodes->count++;
    } else if (!s->lends) {
        return -1;
    } else {
        node = nodes->max_nodes + (int32_t)nodes->n_lent;
        nodes->misses[nodes->max_ids - ++nodes->n_lent] = (int32_t)(uint32_t)at; /* to be emptied again */
    }
    buffer_new_record(nodes, node, id);
    return node;
}

static inline int32_t buffer_hashed_node(const buffer_search_t *s, int64_t id, const buffer_flight_t *flight)
{
    for (uint64_t at = flight->at;; at = at + 1 == s->index_size ? 0 : at + 1) {
        at = buffer_probe(s, flight->hash, at);
        if (s->index[at] == 0) {
            const int32_t node = buffer_new_node(s, id, at);
            s->index[at] = node < 0 ? 0 : nodes_entry(flight->hash, node);
            return node;
        }
        const int32_t node = nodes_entry_node(s->index[at]);
        if (nodes_record(s->nodes, node)->id == id) {
            return node;
        }
    }
}

static inline int32_t buffer_node_by_id(const buffer_search_t *s, int64_t id)
{
    if (s->by_id[id] == 0) {
        s->by_id[id] = buffer_new_node(s, id, (uint64_t)id) + 1;
    }
    return s->by_id[id] - 1;
}

/* The three stations of an id: its place in the index is called for; ... */
static inline void buffer_call_index(buffer_search_t *s, int64_t i, int by_id)
{
    if (by_id) {
        __builtin_prefetch(&s->by_id[s->ids[i]]);
        return;
    }
    const uint64_t hash = rng_mix((uint64_t)s->ids[i]);
    const uint64_t at = nodes_home(s->nodes, hash);
    s->flight[(uint64_t)i % BUFFER_RING] = (buffer_flight_t){.hash = hash, .at = at};
    __builtin_prefetch(&s->index[at]);
}

/* ... the index names a node, whose record is called for; ... */
static inline void buffer_call_record(buffer_search_t *s, int64_t i, int by_id)
{
    int32_t node;
    if (by_id) {
        node = s->by_id[s->ids[i]] - 1;
    } else {
        buffer_flight_t *flight = &s->flight[(uint64_t)i % BUFFER_RING];
        flight->at = buffer_probe(s, flight->hash, flight->at);
        node = nodes_entry_node(s->index[flight->at]);
    }
    __builtin_prefetch(nodes_record(s->nodes, node & ~(node >> 31)),
                       1); /* an empty entry names -1: any record will do */
}

/* ... the record is read. */
static inline int32_t buffer_called_node(const buffer_search_t *s, int64_t i, int by_id)
{
    return by_id ? buffer_node_by_id(s, s->ids[i])
                 : buffer_hashed_node(s, s->ids[i], &s->flight[(uint64_t)i % BUFFER_RING]);
}

/* The node of id i is looked at: a hit, a miss, or a duplicate. */
static inline void buffer_serve_node(buffer_search_t *s, int64_t i, int32_t node)
{
    rudder_nodes_t *nodes = s->nodes;
    buffer_plan_t *plan = s->plan;
    nodes_record_t *record = nodes_record(nodes, node);
    const int32_t place = record->place;
    if (record->seen == s->now) { /* a duplicate */
        plan->source[i] = place & (~NODES_PENDING | place >> 31);
        return;
    }
    record->seen = s->now;
    if (node < s->known) {
        nodes_touch(nodes, &plan->touched, node);
    }
    if (place >= NODES_PENDING) {
        const int32_t slot = place & ~NODES_PENDING;
        plan->joined[plan->n_joined++] = (buffer_joined_t){.slot = slot, .brought = nodes->brought[slot]};
    }
    /* Hit or miss is a coin toss, so no branch: both lists are written, one of them keeps it. */
    const int32_t miss = place >> 31; /* all ones, or zero */
    const int32_t miss_place = (int32_t)(NODES_MISS - s->n_miss);
    nodes->hits[s->n_hit] = node;
    nodes->misses[s->n_tracked] = node;
    plan->fetch[s->n_miss] = s->ids[i];
    plan->source[i] = (place & ~NODES_PENDING & ~miss) | (miss_place & miss);
    record->place = (place & ~miss) | (miss_place & miss);
    s->n_hit += 1 + miss;
    s->n_miss -= miss;
    s->n_tracked += -miss & (node < nodes->max_nodes);
}

/* What is done with an id once its record is there. */
typedef void (*buffer_serve_t)(buffer_search_t *s, int64_t i, int32_t node);

static inline void buffer_serve_name(buffer_search_t *s, int64_t i, int32_t node)
{
    s->node[i] = node;
}

/*
 * One pass in which the stations are BUFFER_AHEAD ids apart: memory is fetched while other ids are served. `serve` and
 * `by_id` are constants where it is called, so that each pass is a loop of its own.
 */
static inline __attribute__((always_inline)) void buffer_pass(buffer_search_t *s, int64_t n, buffer_serve_t serve,
                                                              int by_id)
{
    int64_t called = 0, named = 0, served = 0;
    while (called < n && called < 2 * BUFFER_AHEAD) {
        buffer_call_index(s, called++, by_id);
    }
    while (named < n && named < BUFFER_AHEAD) {
        buffer_call_record(s, named++, by_id);
    }
    while (served < n) {
        if (called < n) {
            buffer_call_index(s, called++, by_id);
        }
        if (named < n) {
            buffer_call_record(s, named++, by_id);
        }
        serve(s, served, buffer_called_node(s, served, by_id));
        served++;
    }
}

/* As a pass, with the nodes that an announcement named: only where it named others is an id looked for. */
static void buffer_pass_named(buffer_search_t *s, int64_t n, const int32_t *named)
{
    for (int64_t i = 0; i < n && i < 2 * BUFFER_AHEAD; i++) {
        __builtin_prefetch(nodes_record(s->nodes, named[i] & ~(named[i] >> 31)), 1);
    }
    for (int64_t i = 0; i < n; i++) {
        if (i + 2 * BUFFER_AHEAD < n) {
            const int32_t ahead = named[i + 2 * BUFFER_AHEAD];
            __builtin_prefetch(nodes_record(s->nodes, ahead & ~(ahead >> 31)), 1);
        }
        int32_t node = named[i];
        if (node < 0 || nodes_record(s->nodes, node)->id != s->ids[i]) {
            buffer_call_index(s, i, s->by_id != NULL);
            node = buffer_called_node(s, i, s->by_id != NULL);
        }
        buffer_serve_node(s, i, node);
    }
}

static void buffer_look_up(rudder_nodes_t *nodes, buffer_plan_t *plan, const int64_t *ids, int64_t n)
{
    const announced_minibatch_t *announced = announced_plan(&nodes->announced, nodes->minibatch);
    buffer_search_t s = {.nodes = nodes,
                         .plan = plan,
                         .ids = ids,
                         .index = nodes->index,
                         .index_size = nodes->index_size,
                         .by_id = nodes->by_id,
                         .now = (uint32_t)nodes->sequence,
                         .known = buffer_touches(nodes->policy) ? nodes->count : 0,
                         .lends = 1};
    if (announced != NULL && announced->n == n) {
        buffer_pass_named(&s, n, announced_nodes(&nodes->announced, announced));
    } else if (s.by_id != NULL) {
        buffer_pass(&s, n, buffer_serve_node, 1);
    } else {
        buffer_pass(&s, n, buffer_serve_node, 0);
    }
    plan->n_untracked = nodes->n_lent;
    for (; nodes->n_lent > 0; nodes->n_lent--) {
        const uint32_t at = (uint32_t)nodes->misses[nodes->max_ids - nodes->n_lent];
        if (s.by_id != NULL) {
            s.by_id[at] = 0;
        } else {
            s.index[at] = 0;
        }
    }
    plan->n_hit = s.n_hit;
    plan->n_miss = s.n_miss;
}

/* The nodes of ids: those that are tracked, or can be; -1: no room. */
static void buffer_name(rudder_nodes_t *nodes, const int64_t *ids, int64_t n, int32_t *node)
{
    buffer_search_t s = {.nodes = nodes,
                         .ids = ids,
                         .index = nodes->index,
                         .index_size = nodes->index_size,
                         .by_id = nodes->by_id,
                         .node = node};
    if (s.by_id != NULL) {
        buffer_pass(&s, n, buffer_serve_name, 1);
    } else {
        buffer_pass(&s, n, buffer_serve_name, 0);
    }
}

/*
 * The chosen start content is tracked too, since its ids waited where the records of the nodes go now: ids wait in
 * row_sequence meanwhile, and their nodes in `brought`, until their slots are taken.
 */
void buffer_know(rudder_nodes_t *nodes, const buffer_halo_t *halo, int64_t max_tracked)
{
    const rudder_policy_t *policy = nodes->policy;
    const int64_t n_known = policy->known == NULL || halo->id == NULL ? 0
                            : halo->n < max_tracked                   ? halo->n
                                                                      : max_tracked;
    if (policy->known == NULL && policy->announced == NULL) {
        return;
    }
    nodes->known = 1;
    for (int64_t i = 0; i < nodes->n_start; i++) {
        nodes->row_sequence[i] = nodes_record(nodes, (int32_t)i)->id;
    }
    for (int64_t done = 0, n; done < n_known; done += n) {
        n = n_known - done < nodes->max_ids ? n_known - done : nodes->max_ids;
        buffer_name(nodes, halo->id + done, n, nodes->hits);
        policy->known(nodes->policy_self, nodes, nodes->hits, halo->degree == NULL ? NULL : halo->degree + done, n);
    }
    for (int64_t done = 0, n; done < nodes->n_start; done += n) {
        n = nodes->n_start - done < nodes->max_ids ? nodes->n_start - done : nodes->max_ids;
        buffer_name(nodes, nodes->row_sequence + done, n, (int32_t *)nodes->brought + done);
    }
    memset(nodes->row_sequence, 0, (size_t)nodes->n_start * sizeof *nodes->row_sequence);
    nodes->settled = nodes->count;
}

void buffer_announce(rudder_nodes_t *nodes, int64_t minibatch, const int64_t *ids, int64_t n)
{
    int32_t *node = announced_add(&nodes->announced, minibatch, n);
    buffer_name(nodes, ids, n, node);
    nodes->settled = nodes->count;
    nodes->policy->announced(nodes->policy_self, nodes, minibatch, node, n);
}

int buffer_announce_wanted(const rudder_nodes_t *nodes)
{
    const rudder_policy_t *policy = nodes->policy;
    return policy->announced != NULL && policy->wants != NULL &&
           announced_has_room(&nodes->announced, nodes->announced.largest) && policy->wants(nodes->policy_self, nodes);
}

void buffer_begin(rudder_nodes_t *nodes, buffer_plan_t *plan, const int64_t *ids, int64_t n)
{
    const rudder_policy_t *policy = nodes->policy;
    buffer_plan_reset(plan, nodes, n);
    nodes->started = 1;
    buffer_look_up(nodes, plan, ids, n);
    if (policy->hits != NULL) {
        policy->hits(nodes->policy_self, nodes, nodes->hits, plan->n_hit);
    }
    if (policy->misses != NULL) {
        nodes->phase = NODES_MISSES;
        nodes->admits_left = policy->flags & RUDDER_POLICY_ADMITS ? nodes->max_ids : 0;
        policy->misses(nodes->policy_self, nodes, nodes->misses, plan->n_miss - plan->n_untracked);
        nodes->phase = NODES_IDLE;
    }
    nodes->admits_left = 0;
}

void buffer_replace(rudder_nodes_t *nodes)
{
    nodes->phase = NODES_REPLACE;
    nodes->admits_left = nodes->capacity;
    nodes->policy->replace(nodes->policy_self, nodes);
    nodes->admits_left = 0;
    nodes->phase = NODES_IDLE;
}

int64_t buffer_finish(rudder_nodes_t *nodes, buffer_plan_t *plan)
{
    for (int64_t i = 0; i < nodes->n_admitted; i++) { /* those that have not left again */
        if (nodes_record(nodes, plan->admitted[i].node)->place == plan->admitted[i].slot) {
            plan->admitted[plan->n_admitted++] = plan->admitted[i];
        }
    }
    for (int64_t i = plan->undo_begin; i < nodes->undo_head; i++) {
        const nodes_undo_t *undo = nodes_undo_at(nodes, i);
        const int32_t slot = nodes_undo_slot(undo);
        if (nodes_undo_change(undo) == NODES_FILLED && nodes_record(nodes, undo->node)->place == slot) {
            buffer_add_fill(plan, undo->node, slot);
        }
    }
    plan->undo_end = nodes->undo_head;
    plan->count_after = nodes->count;
    assert(nodes->undo_head - nodes->undo_tail <= nodes->undo_size);
    nodes->minibatch++;
    return plan->n_admitted + plan->n_fill;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

int buffer_ready(const buffer_plan_t *plan)
{
    for (int64_t i = 0; i < plan->n_joined; i++) {
        const buffer_joined_t *joined = &plan->joined[i];
        if ((uint32_t)plan->nodes->row_sequence[joined->slot] != joined->brought) {
            return 0;
        }
    }
    return 1;
}

/* Where rows come from: [0] the slots, [1] the misses. */
typedef struct buffer_origin {
    const unsigned char *rows[2];
    size_t stride[2];
} buffer_origin_t;

/* The row of a source. Without a branch: hit or miss is a coin toss. */
static inline const unsigned char *buffer_row(const buffer_origin_t *origin, int32_t source)
{
    const uint32_t miss = (uint32_t)source >> 31;
    const uint32_t row = ((uint32_t)source ^ -miss) - miss; /* source, or NODES_MISS - source */
    return origin->rows[miss] + (size_t)row * origin->stride[miss];
}

/* The rows of a minibatch in the order of its ids: out[n_ids][row_bytes]. Inlined for row sizes that are constants. */
static inline void buffer_gather(const buffer_plan_t *plan, const buffer_origin_t *origin, unsigned char *out,
                                 size_t row_bytes)
{
    const int32_t *source = plan->source;
    const int64_t n = plan->n_ids, far = n > BUFFER_AHEAD ? n - BUFFER_AHEAD : 0;
    for (int64_t i = 0; i < far; i++) {
        __builtin_prefetch(buffer_row(origin, source[i + BUFFER_AHEAD]));
        memcpy(out + (size_t)i * row_bytes, buffer_row(origin, source[i]), row_bytes);
    }
    for (int64_t i = far; i < n; i++) {
        memcpy(out + (size_t)i * row_bytes, buffer_row(origin, source[i]), row_bytes);
    }
}

/* The plan can no longer be taken back. */
static void buffer_end(buffer_plan_t *plan)
{
    plan->nodes->undo_tail = plan->undo_end;
    announced_forget(&plan->nodes->announced, plan->minibatch);
    plan->nodes->n_incomplete--;
    plan->complete = 1;
}

void buffer_complete(buffer_plan_t *plan, const void *miss_rows, size_t stride, void *out)
{
    rudder_nodes_t *nodes = plan->nodes;
    const buffer_origin_t origin = {.rows = {nodes->rows, miss_rows}, .stride = {nodes->row_bytes, stride}};
    switch (nodes->row_bytes) {
    case 4:
        buffer_gather(plan, &origin, out, 4);
        break;
    case 8:
        buffer_gather(plan, &origin, out, 8);
        break;
    default:
        buffer_gather(plan, &origin, out, nodes->row_bytes);
    }
    for (int64_t i = 0; i < plan->n_admitted; i++) {
        const nodes_admitted_t *a = &plan->admitted[i];
        memcpy(nodes->rows + (size_t)a->slot * nodes->row_bytes,
               (const unsigned char *)miss_rows + (size_t)a->miss * stride, nodes->row_bytes);
        nodes->row_sequence[a->slot] = plan->sequence;
    }
    buffer_end(plan);
}

void buffer_fill(buffer_plan_t *plan, const void *fill_rows, size_t stride, int64_t n)
{
    rudder_nodes_t *nodes = plan->nodes;
    if (!plan->complete) { /* start content: it has nothing but fill rows */
        buffer_end(plan);
    }
    for (int64_t i = 0; i < n; i++) {
        const buffer_place_t fill = plan->fills[plan->n_filled++];
        nodes_record_t *record = nodes_record(nodes, fill.node);
        if (nodes->row_sequence[fill.slot] < plan->sequence) { /* no row of a later plan lies there already */
            memcpy(nodes->rows + (size_t)fill.slot * nodes->row_bytes,
                   (const unsigned char *)fill_rows + (size_t)i * stride, nodes->row_bytes);
            nodes->row_sequence[fill.slot] = plan->sequence;
            if (record->place == (fill.slot | NODES_PENDING) && nodes->brought[fill.slot] == (uint32_t)plan->sequence) {
                record->place = fill.slot;
            }
        }
    }
}

/* ---- Taking back ------------------------------------------------------------------------------------------------ */

static void buffer_abort_start(buffer_plan_t *plan)
{
    rudder_nodes_t *nodes = plan->nodes;
    for (int64_t i = plan->n_fill; i > 0; i--) {
        const int32_t node = plan->fills[i - 1].node;
        nodes_leave(nodes, node);
        nodes->brought[i - 1] = (uint32_t)node; /* where it waits, if it is known */
    }
    nodes_undo(nodes, plan->undo_begin, &plan->touched, plan->count_before, plan->count_after);
    if (nodes->known && nodes->policy->restored != NULL) {
        buffer_tell_fills(plan, nodes->policy->restored);
    }
    nodes->started = 0;
}

void buffer_abort(buffer_plan_t *plan)
{
    plan->nodes->n_incomplete--;
    if (plan->start) {
        buffer_abort_start(plan);
    } else {
        plan->nodes->minibatch--; /* before the policy is told */
        announced_take_back(&plan->nodes->announced, plan->nodes->minibatch);
        nodes_undo(plan->nodes, plan->undo_begin, &plan->touched, plan->count_before, plan->count_after);
    }
}

void buffer_give_up(buffer_plan_t *plan)
{
    rudder_nodes_t *nodes = plan->nodes;
    for (int64_t i = plan->n_filled; i < plan->n_fill; i++) {
        const buffer_place_t fill = plan->fills[i];
        if (nodes_slot(nodes_record(nodes, fill.node)) == fill.slot &&
            nodes->brought[fill.slot] == (uint32_t)plan->sequence) {
            nodes_drop(nodes, fill.node);
        }
    }
}

void buffer_invalidate(rudder_nodes_t *nodes, const int64_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t node = nodes_find(nodes, ids[i]);
        if (node >= 0 && nodes_record(nodes, node)->place >= 0) {
            nodes_drop(nodes, node);
        }
    }
}
