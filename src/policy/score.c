/*
 * Policy `score`, the paper's. A row in the buffer has an eviction score S_E = S0 (1 - alpha)^idle, idle = minibatches since
 * it entered in which it was not hit, all of them together. A tracked node outside has an access score S_A: its misses,
 * plus the S_E that it left with. A replacement lets stale rows go for the nodes of the highest S_A; the leaving node takes
 * its S_E as S_A, the entering one its S_A as S0. Rows of the start content have S0 = 1.
 *
 * Stale is idle >= period + ceil(ln S0 / -ln(1 - alpha)), which is S_E <= (1 - alpha)^period told in integers: the right
 * side is computed once, when the node enters. Victims: the lowest S_E first, then the longest idle, then the lowest id.
 * Candidates: S_A > 0, the highest first, then those missed in this minibatch (they cost no fill row), then the lowest id.
 * k = min(free slots + victims, candidates); free slots are taken first. Scores are kept as floats.
 *
 * What a replacement is worth is estimated from two more integers a node: `uses` u (minibatches that asked for it, hit or
 * missed, since it was first seen) over m minibatches since then (`clock`). The first sighting only starts the clock: it
 * says that the node was noticed, not how often it is used. Rates of nodes of one kind (the start content, all others) are
 * taken as drawn from one distribution, whose mean r and variance v follow from the sums of u, m, u (u - 1) and m (m - 1)
 * over all of them. The rate of a node is then (u + b r) / (m + b) with b = r / v: the less the kind differs among itself,
 * the more minibatches it takes to believe a node (a gamma prior, fitted by moments). That does not depend on why a node was
 * looked at, so choosing the luckiest does not make them look better. The saving is the sum of the rates of the entering
 * nodes minus that of the leaving ones.
 */
#include <math.h>
#include <string.h>

#include "buffer/arena.h"
#include "buffer/nodes.h"
#include "buffer/rank.h"
#include "policy/policy.h"

enum { SCORE_DECAYS = 4096, SCORE_PRIOR_MOST = 1 << 16 };

typedef struct score_state {
    float score;     /* S0 inside, S_A outside */
    uint32_t anchor; /* inside: minibatch of entry + hits since, so that idle = now - anchor */
    uint32_t uses;
    uint32_t clock;
} score_state_t;

/* What many nodes tell about the rates of their kind: sums of u, m, u^2 and m^2. */
typedef struct score_evidence {
    uint64_t uses, minibatches, uses_squared, minibatches_squared;
} score_evidence_t;

/* Rates of a kind before a node is looked at: `minibatches` minibatches of rate `mean`. */
typedef struct score_prior {
    double mean, minibatches;
} score_prior_t;

typedef struct score {
    int32_t period;
    double alpha;
    double fade;        /* -ln(1 - alpha) */
    double *decay;      /* [SCORE_DECAYS]: (1 - alpha)^i */
    int32_t *threshold; /* [capacity]: idle from which the row of the slot is stale */

    /* What a replacement would do in this minibatch, once it was asked for. */
    int selected;
    rank_item_t *victims; /* [capacity] */
    rank_item_t *chosen;  /* [n_chosen_max] */
    int64_t n_chosen_max, n_victims, n_candidates, n_swaps;
    score_prior_t prior[2]; /* of nodes that were first seen in a minibatch, of the start content */
} score_t;

static void score_layout(arena_t *arena, const rudder_policy_setup_t *setup, score_t *score)
{
    const size_t slots = (size_t)setup->capacity;
    arena_take(arena, 1, sizeof *score);
    double *decay = arena_take(arena, SCORE_DECAYS, sizeof *decay);
    int32_t *threshold = arena_take(arena, slots, sizeof *threshold);
    rank_item_t *victims = arena_take(arena, slots, sizeof *victims);
    const size_t n_chosen_max = slots + slots / 2 + 1;
    rank_item_t *chosen = arena_take(arena, n_chosen_max, sizeof *chosen);
    if (score != NULL) {
        *score = (score_t){.decay = decay,
                           .threshold = threshold,
                           .victims = victims,
                           .chosen = chosen,
                           .n_chosen_max = (int64_t)n_chosen_max};
    }
}

static size_t score_memory(const rudder_policy_setup_t *setup)
{
    arena_t arena = {0};
    score_layout(&arena, setup, NULL);
    return arena.overflow ? SIZE_MAX : arena.used;
}

static rudder_status_t score_open(void *self, const rudder_policy_setup_t *setup)
{
    score_t *score = self;
    arena_t arena = {.base = self};
    score_layout(&arena, setup, score);
    score->period = setup->period;
    score->alpha = setup->alpha;
    score->fade = -log(1.0 - setup->alpha);
    for (int i = 0; i < SCORE_DECAYS; i++) {
        score->decay[i] = pow(1.0 - setup->alpha, i);
    }
    return RUDDER_OK;
}

static inline score_state_t *score_state(const rudder_nodes_t *nodes, int32_t node)
{
    return nodes_state(nodes, node);
}

/* Minibatches planned, the current one included. */
static inline uint32_t score_now(const rudder_nodes_t *nodes)
{
    return (uint32_t)(nodes->minibatch + 1);
}

static int32_t score_threshold(const score_t *score, float s0)
{
    const double threshold = score->period + ceil(log((double)s0) / score->fade);
    return threshold > INT32_MAX ? INT32_MAX : threshold < 0 ? 0 : (int32_t)threshold;
}

static float score_eviction(const score_t *score, float s0, uint32_t idle)
{
    return (float)(s0 * (idle < SCORE_DECAYS ? score->decay[idle] : pow(1.0 - score->alpha, idle)));
}

static void score_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    ((score_t *)self)->selected = 0;
    for (int64_t i = 0; i < n; i++) {
        score_state_t *state = score_state(nodes, node[i]);
        state->anchor++;
        state->uses++;
    }
}

static void score_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)self;
    const uint32_t now = score_now(nodes);
    for (int64_t i = 0; i < n; i++) {
        score_state_t *state = score_state(nodes, node[i]);
        if (state->clock == 0 && state->score == 0) {
            state->clock = now;
        } else {
            state->uses++;
        }
        state->score += 1;
    }
}

static void score_started(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    score_t *score = self;
    for (int64_t i = 0; i < n; i++) {
        score_state(nodes, node[i])->score = 1;
        score->threshold[nodes_slot(nodes_record(nodes, node[i]))] = score_threshold(score, 1);
    }
}

static void score_restored(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    score_t *score = self;
    for (int64_t i = 0; i < n; i++) {
        const int32_t slot = nodes_slot(nodes_record(nodes, node[i]));
        if (slot >= 0) {
            score->threshold[slot] = score_threshold(score, score_state(nodes, node[i])->score);
        }
    }
}

static void score_dropped(void *self, rudder_nodes_t *nodes, int32_t node, int32_t slot)
{
    score_t *score = self;
    (void)slot;
    score_state_t *state = score_state(nodes, node);
    state->score = score_eviction(score, state->score, (uint32_t)nodes->minibatch - state->anchor);
}

/* ---- Replacement ------------------------------------------------------------------------------------------------ */

static uint32_t score_bits(float score) /* of a score >= 0: ordered as the score is */
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits;
}

static inline int score_from_start(const score_state_t *state)
{
    return state->clock == 0;
}

static inline void score_observe(score_evidence_t *evidence, const score_state_t *state, uint32_t now)
{
    const uint64_t uses = state->uses, minibatches = now - state->clock;
    evidence->uses += uses;
    evidence->minibatches += minibatches;
    evidence->uses_squared += uses * uses;
    evidence->minibatches_squared += minibatches * minibatches;
}

static void score_find_victims(score_t *score, const rudder_nodes_t *nodes)
{
    const uint32_t now = score_now(nodes);
    score->n_victims = 0;
    for (int64_t slot = 0; slot < nodes->capacity; slot++) {
        const int32_t node = nodes->slot_node[slot];
        if (slot + 16 < nodes->capacity && nodes->slot_node[slot + 16] >= 0) {
            __builtin_prefetch(nodes_record(nodes, nodes->slot_node[slot + 16]));
        }
        if (node < 0) {
            continue;
        }
        const score_state_t *state = score_state(nodes, node);
        const uint32_t idle = now - state->anchor;
        if (idle >= (uint32_t)score->threshold[slot]) {
            const uint32_t cold = ~score_bits(score_eviction(score, state->score, idle));
            score->victims[score->n_victims++] =
                (rank_item_t){.key = (uint64_t)cold << 32 | idle, .id = nodes_record(nodes, node)->id, .node = node};
        }
    }
}

static score_prior_t score_prior(const score_evidence_t *kind)
{
    const double pairs = (double)(kind->minibatches_squared - kind->minibatches); /* sum of m (m - 1) */
    if (kind->uses == 0 || !(pairs > 0)) {
        return (score_prior_t){.mean = 0, .minibatches = 1};
    }
    const double mean = (double)kind->uses / (double)kind->minibatches;
    const double variance = (double)(kind->uses_squared - kind->uses) / pairs - mean * mean;
    const double most = SCORE_PRIOR_MOST;
    return (score_prior_t){.mean = mean, .minibatches = variance * most > mean ? mean / variance : most};
}

/* Goes over all nodes: candidates, and evidence about rates. */
static void score_find_candidates(score_t *score, const rudder_nodes_t *nodes, int64_t room)
{
    const uint32_t now = score_now(nodes);
    rank_top_t top = {.items = score->chosen, .capacity = score->n_chosen_max, .k = room};
    score_evidence_t seen = {0}, start = {0};
    int64_t n_candidates = 0;
    for (int32_t node = 0; node < nodes->count; node++) {
        const nodes_record_t *record = nodes_record(nodes, node);
        const score_state_t *state = (const score_state_t *)(record + 1);
        score_observe(score_from_start(state) ? &start : &seen, state, now);
        if (record->place < 0 && state->score > 0) {
            const uint64_t key = (uint64_t)score_bits(state->score) << 1 | (uint64_t)nodes_missed(nodes, record);
            rank_top_add(&top, (rank_item_t){.key = key, .id = record->id, .node = node});
            n_candidates++;
        }
    }
    score->n_candidates = n_candidates;
    score->n_swaps = rank_top_end(&top);
    score->prior[0] = score_prior(&seen);
    score->prior[1] = score_prior(&start);
}

static void score_select(score_t *score, const rudder_nodes_t *nodes)
{
    if (score->selected) {
        return;
    }
    score_find_victims(score, nodes);
    score_find_candidates(score, nodes, nodes->free + score->n_victims);
    const int64_t leave = score->n_swaps - nodes->free;
    if (leave > 0 && leave < score->n_victims) {
        rank_select(score->victims, score->n_victims, leave);
    }
    score->selected = 1;
}

static int64_t score_replace(void *self, rudder_nodes_t *nodes)
{
    score_t *score = self;
    const uint32_t now = score_now(nodes);
    score_select(score, nodes);
    const rank_item_t *victim = score->victims;
    for (int64_t i = 0; i < score->n_swaps; i++) {
        const int32_t node = (int32_t)score->chosen[i].node;
        const int32_t leaving = nodes->free > 0 ? -1 : (int32_t)(victim++)->node;
        const int32_t slot = rudder_nodes_admit(nodes, node, leaving);
        if (leaving >= 0) {
            score_state_t *left = score_state(nodes, leaving);
            left->score = score_eviction(score, left->score, now - left->anchor);
        }
        score_state_t *entered = score_state(nodes, node);
        entered->anchor = now;
        score->threshold[slot] = score_threshold(score, entered->score);
    }
    return score->n_swaps;
}

static double score_rate(const score_prior_t priors[2], const score_state_t *state, uint32_t now)
{
    const score_prior_t *prior = &priors[score_from_start(state)];
    return (state->uses + prior->mean * prior->minibatches) / ((now - state->clock) + prior->minibatches);
}

static void score_outlook(void *self, rudder_nodes_t *nodes, rudder_outlook_t *outlook)
{
    score_t *score = self;
    const uint32_t now = score_now(nodes);
    score_select(score, nodes);
    *outlook =
        (rudder_outlook_t){.stale = score->n_victims, .candidates = score->n_candidates, .swaps = score->n_swaps};
    for (int64_t i = 0; i < score->n_swaps; i++) {
        const rank_item_t *item = &score->chosen[i];
        outlook->cost += !(item->key & 1);
        outlook->saving_per_minibatch += score_rate(score->prior, score_state(nodes, (int32_t)item->node), now);
    }
    for (int64_t i = 0; i < score->n_swaps - nodes->free; i++) {
        outlook->saving_per_minibatch -=
            score_rate(score->prior, score_state(nodes, (int32_t)score->victims[i].node), now);
    }
}

const rudder_policy_t policy_score = {.size = sizeof(rudder_policy_t),
                                      .name = "score",
                                      .flags = RUDDER_POLICY_REPLACES,
                                      .state_bytes = sizeof(score_state_t),
                                      .memory = score_memory,
                                      .open = score_open,
                                      .hits = score_hits,
                                      .misses = score_misses,
                                      .replace = score_replace,
                                      .outlook = score_outlook,
                                      .restored = score_restored,
                                      .dropped = score_dropped,
                                      .started = score_started};
