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
 *
 * A replacement would go over all tracked nodes for its candidates; it passes over blocks of nodes of which none can be
 * among the first k, by an upper bound of their S_A. The sums over all nodes are kept as nodes are used, since m = now - clock
 * makes them polynomials in `now`; what an abort takes back is counted anew. Both give what going over all nodes would.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "buffer/arena.h"
#include "buffer/nodes.h"
#include "buffer/rank.h"
#include "policy/policy.h"

enum { SCORE_DECAYS = 4096, SCORE_PRIOR_MOST = 1 << 16, SCORE_BLOCK = 64, SCORE_AHEAD = 32 };

typedef struct score_state {
    float score;     /* S0 inside, S_A outside; > 0 once the node was used or started with */
    uint32_t anchor; /* inside: minibatch of entry + hits since, so that idle = now - anchor */
    uint32_t uses;
    uint32_t clock;
} score_state_t;

/* What many nodes tell about the rates of their kind: how many they are, and sums over them. Modulo 2^64, as all sums of them. */
typedef struct score_evidence {
    uint64_t n, uses, uses_squared, clock, clock_squared;
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
    float *most;        /* of SCORE_BLOCK nodes each: no S_A of theirs is above it */

    score_evidence_t kind[2]; /* of nodes that were first seen in a minibatch, of the start content */
    int miscounted;           /* `kind` is not that of the nodes as they are now */

    /* What a replacement would do in this minibatch, once it was asked for. */
    int selected;
    rank_item_t *victims; /* [capacity] */
    rank_item_t *chosen;  /* [n_chosen_max] */
    int64_t n_chosen_max, n_victims, n_candidates, n_swaps;
    score_prior_t prior[2]; /* of the kinds */
} score_t;

static void score_layout(arena_t *arena, const rudder_policy_setup_t *setup, score_t *score)
{
    const size_t slots = (size_t)setup->capacity;
    arena_take(arena, 1, sizeof *score);
    double *decay = arena_take(arena, SCORE_DECAYS, sizeof *decay);
    int32_t *threshold = arena_take(arena, slots, sizeof *threshold);
    float *most = arena_take(arena, (size_t)setup->max_nodes / SCORE_BLOCK + 1, sizeof *most);
    rank_item_t *victims = arena_take(arena, slots, sizeof *victims);
    const size_t n_chosen_max = slots + slots / 2 + 1;
    rank_item_t *chosen = arena_take(arena, n_chosen_max, sizeof *chosen);
    if (score != NULL) {
        *score = (score_t){.decay = decay,
                           .threshold = threshold,
                           .most = most,
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

/* Never 0, so that a node that left is a candidate and keeps its kind. */
static float score_eviction(const score_t *score, float s0, uint32_t idle)
{
    const double left = s0 * (idle < SCORE_DECAYS ? score->decay[idle] : pow(1.0 - score->alpha, idle));
    return left > (double)FLT_MIN ? (float)left : FLT_MIN;
}

static inline int score_from_start(const score_state_t *state)
{
    return state->clock == 0;
}

/* One more use of a node of this kind. */
static inline void score_use(score_evidence_t *kind, score_state_t *state)
{
    kind->uses++;
    kind->uses_squared += 2 * (uint64_t)state->uses + 1;
    state->uses++;
}

static inline void score_add_node(score_evidence_t *kind, const score_state_t *state)
{
    const uint64_t uses = state->uses, clock = state->clock;
    kind->n++;
    kind->uses += uses;
    kind->uses_squared += uses * uses;
    kind->clock += clock;
    kind->clock_squared += clock * clock;
}

/* The node is outside with this S_A. */
static inline void score_raise(score_t *score, int32_t node, float access)
{
    float *most = &score->most[node / SCORE_BLOCK];
    *most = access > *most ? access : *most;
}

static void score_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    score_t *score = self;
    uint64_t squared = 0, started = 0, started_squared = 0; /* which kind a node is of is hard to foretell: no branch */
    score->selected = 0;
    for (int64_t i = 0; i < n; i++) {
        score_state_t *state = score_state(nodes, node[i]);
        const uint64_t start = -(uint64_t)score_from_start(state), more = 2 * (uint64_t)state->uses + 1;
        squared += more;
        started -= start;
        started_squared += more & start;
        state->anchor++;
        state->uses++;
    }
    score->kind[0].uses += (uint64_t)n - started;
    score->kind[0].uses_squared += squared - started_squared;
    score->kind[1].uses += started;
    score->kind[1].uses_squared += started_squared;
}

static void score_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    score_t *score = self;
    const uint32_t now = score_now(nodes);
    for (int64_t i = 0; i < n; i++) {
        score_state_t *state = score_state(nodes, node[i]);
        if (state->score == 0) {
            state->clock = now;
            score_add_node(&score->kind[0], state);
        } else {
            score_use(&score->kind[score_from_start(state)], state);
        }
        state->score += 1;
        score_raise(score, node[i], state->score);
    }
}

static void score_started(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    score_t *score = self;
    for (int64_t i = 0; i < n; i++) {
        score_state_t *state = score_state(nodes, node[i]);
        state->score = 1;
        score_add_node(&score->kind[1], state);
        score->threshold[nodes_slot(nodes_record(nodes, node[i]))] = score_threshold(score, 1);
    }
}

static void score_restored(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    score_t *score = self;
    score->miscounted = 1;
    for (int64_t i = 0; i < n; i++) {
        const int32_t slot = nodes_slot(nodes_record(nodes, node[i]));
        const float s = score_state(nodes, node[i])->score;
        if (slot >= 0) {
            score->threshold[slot] = score_threshold(score, s);
        } else {
            score_raise(score, node[i], s);
        }
    }
}

static void score_dropped(void *self, rudder_nodes_t *nodes, int32_t node, int32_t slot)
{
    score_t *score = self;
    (void)slot;
    score_state_t *state = score_state(nodes, node);
    state->score = score_eviction(score, state->score, (uint32_t)nodes->minibatch - state->anchor);
    score_raise(score, node, state->score);
}

/* ---- Replacement ------------------------------------------------------------------------------------------------ */

static uint32_t score_bits(float score) /* of a score >= 0: ordered as the score is */
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits;
}

static void score_find_victims(score_t *score, const rudder_nodes_t *nodes)
{
    const uint32_t now = score_now(nodes);
    score->n_victims = 0;
    for (int64_t slot = 0; slot < nodes->capacity; slot++) {
        const int32_t node = nodes->slot_node[slot];
        if (slot + SCORE_AHEAD < nodes->capacity && nodes->slot_node[slot + SCORE_AHEAD] >= 0) {
            __builtin_prefetch(nodes_record(nodes, nodes->slot_node[slot + SCORE_AHEAD]));
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

static void score_count(score_t *score, const rudder_nodes_t *nodes)
{
    memset(score->kind, 0, sizeof score->kind);
    for (int32_t node = 0; node < nodes->count; node++) {
        const score_state_t *state = score_state(nodes, node);
        score_add_node(&score->kind[score_from_start(state)], state);
    }
    score->miscounted = 0;
}

static score_prior_t score_prior(const score_evidence_t *kind, uint64_t now)
{
    /* sums of m and m^2, m = now - clock */
    const uint64_t minibatches = kind->n * now - kind->clock;
    const uint64_t squared = (kind->n * now - 2 * kind->clock) * now + kind->clock_squared;
    const double pairs = (double)(squared - minibatches); /* sum of m (m - 1) */
    if (kind->uses == 0 || !(pairs > 0)) {
        return (score_prior_t){.mean = 0, .minibatches = 1};
    }
    const double mean = (double)kind->uses / (double)minibatches;
    const double variance = (double)(kind->uses_squared - kind->uses) / pairs - mean * mean;
    const double most = SCORE_PRIOR_MOST;
    return (score_prior_t){.mean = mean, .minibatches = variance * most > mean ? mean / variance : most};
}

static inline uint64_t score_key(float access, int missed)
{
    return (uint64_t)score_bits(access) << 1 | (uint64_t)missed;
}

/* The candidates of a block of nodes; finds anew what none of them is above. */
static void score_offer_block(score_t *score, const rudder_nodes_t *nodes, int32_t block, rank_top_t *top)
{
    const int32_t begin = block * SCORE_BLOCK;
    const int32_t end = nodes->count - begin < SCORE_BLOCK ? nodes->count : begin + SCORE_BLOCK;
    float most = 0;
    for (int32_t node = begin; node < end; node++) {
        const nodes_record_t *record = nodes_record(nodes, node);
        if (record->place < 0) {
            const float access = ((const score_state_t *)(record + 1))->score;
            const uint64_t key = score_key(access, nodes_missed(nodes, record));
            rank_top_add(top, (rank_item_t){.key = key, .id = record->id, .node = node});
            most = access > most ? access : most;
        }
    }
    score->most[block] = most;
}

/* Every tracked node outside is a candidate. */
static void score_find_candidates(score_t *score, const rudder_nodes_t *nodes, int64_t room)
{
    rank_top_t top = {.items = score->chosen, .capacity = score->n_chosen_max, .k = room};
    const int32_t blocks = (nodes->count + SCORE_BLOCK - 1) / SCORE_BLOCK;
    for (int32_t block = 0; room > 0 && block < blocks; block++) {
        if (!top.limited || score_key(score->most[block], 1) >= top.limit.key) {
            score_offer_block(score, nodes, block, &top);
        }
    }
    score->n_candidates = nodes->count - (nodes->capacity - nodes->free);
    score->n_swaps = rank_top_end(&top);
}

static void score_select(score_t *score, const rudder_nodes_t *nodes)
{
    if (score->selected) {
        return;
    }
    score_find_victims(score, nodes);
    score_find_candidates(score, nodes, nodes->free + score->n_victims);
    if (score->miscounted) {
        score_count(score, nodes);
    }
    for (int i = 0; i < 2; i++) {
        score->prior[i] = score_prior(&score->kind[i], score_now(nodes));
    }
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
            score_raise(score, leaving, left->score);
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
