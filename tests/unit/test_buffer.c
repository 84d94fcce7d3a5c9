/*
 * The buffer against a model of it: thousands of random sequences of begin, complete, fill, abort, announce and invalidate,
 * over policies, capacities, decider intervals, numbers of types and of open plans. The model is written from the semantics
 * alone, keeps everything in plain arrays over a small universe of ids, searches linearly, and undoes by copying itself.
 * After every call the fetch list, the statistics and the rows must be those of the model; content is compared by planning
 * the whole universe and aborting that plan.
 *
 * Policies that learn (mix, lookahead) choose freely where their semantics leave it open: the model then takes over the
 * content that it finds, after a check of all that is laid down.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policy.h"
#include "rudder/rudder.h"

enum { UNIVERSE = 48, MAX_TYPES = 3, MAX_PLANS = 6, MAX_IDS = 64, MAX_ROW = 40, MAX_AHEAD = 400 };

typedef enum which { NONE, STATIC, SCORE, LFU, LRU, SIEVE, MIX, LOOKAHEAD, POLICIES } which_t;
static const char *const policy_names[] = {"none", "static", "score", "lfu", "lru", "sieve", "mix", "lookahead"};

/* ---- Random numbers --------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545F4914F6CDD1Du >> 16;
}

static int64_t below(int64_t n)
{
    return (int64_t)(draw() % (uint64_t)n);
}

/* ---- The model -------------------------------------------------------------------------------------------------- */

/* What is known of id `u` of the universe. */
typedef struct known {
    int tracked, inside;
    float s0, sa;       /* score */
    int64_t entered;    /* minibatches before it entered */
    int64_t hits;       /* since then */
    int64_t threshold;  /* idle minibatches from which it is stale */
    int64_t count;      /* lfu */
    int64_t touched;    /* lru, sieve: when it was touched last, when it entered */
    int marked;         /* sieve */
    int64_t brought_by; /* number of the plan that brought it in by a fill row; 0: no fill row */
} known_t;

typedef struct type_model {
    known_t of[UNIVERSE];
    int64_t minibatch;
    int64_t clock; /* lru, sieve */
    int64_t hand;  /* sieve: all that entered before this was passed */
} type_model_t;

/* A minibatch as it was announced. */
typedef struct ahead {
    int64_t seq;
    int ids[MAX_IDS], tracked[MAX_IDS];
    int64_t n;
} ahead_t;

/* What an abort takes back: all of it. */
typedef struct model {
    type_model_t type[MAX_TYPES];
    int64_t minibatches; /* that are over */
    int planned[MAX_TYPES], due[MAX_TYPES];
    rudder_stats_t stats;
} model_t;

/* A plan as the model sees it. */
typedef struct planned {
    rudder_plan_t *plan;
    int64_t number;
    int type, start, complete;
    int ids[MAX_IDS];
    int64_t n;
    int fetch[MAX_IDS + UNIVERSE];
    int64_t n_miss, n_fill, n_filled;
    int needs[UNIVERSE]; /* hits whose fill row had not come: the position in the fill list of that plan */
    int64_t needs_plan[UNIVERSE];
    int64_t n_needs;
    model_t before;
} planned_t;

typedef struct world {
    which_t policy;
    int types, max_plans, interval; /* interval 0: never */
    int period;
    double alpha;
    int64_t capacity[MAX_TYPES], limit[MAX_TYPES]; /* limit: ids that can be tracked */
    int64_t base[MAX_TYPES];
    size_t row_bytes[MAX_TYPES];
    int64_t version[MAX_TYPES][UNIVERSE];
    int64_t degree[MAX_TYPES][UNIVERSE];
    int64_t n_halo[MAX_TYPES];
    rudder_t *handle;
    model_t now;
    planned_t open[MAX_PLANS];
    int n_open;
    int64_t plans, aborted;
    int started[MAX_TYPES];
    /* what no abort takes back */
    ahead_t ahead[MAX_TYPES][MAX_AHEAD];
    int64_t n_ahead[MAX_TYPES], max_announced[MAX_TYPES];
    int settled[MAX_TYPES][UNIVERSE]; /* tracked for good */
    int64_t announced;
    int64_t window;           /* of lookahead */
    int owners;               /* whose rows have different costs; 0: all rows cost the same */
    int hottest;              /* ids that minibatches ask for */
    int64_t most_minibatches; /* that were ever over, aborted ones included */
} world_t;

/* A policy of the library, opened so that its nodes can be looked at. */
static struct {
    rudder_policy_t table;
    rudder_status_t (*open)(void *self, const rudder_policy_setup_t *setup);
    int64_t window;
    const rudder_nodes_t *nodes[MAX_TYPES]; /* of the open handle */
    int n;
} watched;

static rudder_status_t watched_open(void *self, const rudder_policy_setup_t *setup)
{
    rudder_policy_setup_t with_window = *setup;
    with_window.window = watched.window;
    watched.nodes[watched.n++] = setup->nodes;
    return watched.open(self, &with_window);
}

static int64_t id_of(const world_t *w, int type, int u)
{
    return w->base[type] + 7 * (int64_t)u;
}

static int inside_count(const world_t *w, const type_model_t *m)
{
    int n = 0;
    (void)w;
    for (int u = 0; u < UNIVERSE; u++) {
        n += m->of[u].inside;
    }
    return n;
}

static int tracked_count(const type_model_t *m)
{
    int n = 0;
    for (int u = 0; u < UNIVERSE; u++) {
        n += m->of[u].tracked;
    }
    return n;
}

/* Minibatches since entry in which u was not hit, when `done` minibatches are over. */
static int64_t idle_of(const known_t *k, int64_t done)
{
    return done - k->entered - k->hits;
}

static float eviction_score(const world_t *w, const known_t *k, int64_t done)
{
    return (float)(k->s0 * pow(1 - w->alpha, (double)idle_of(k, done)));
}

static void enter(const world_t *w, known_t *k, float s0, int64_t done)
{
    const double threshold = w->period + ceil(log((double)s0) / -log(1 - w->alpha));
    k->inside = 1;
    k->s0 = s0;
    k->entered = done;
    k->hits = 0;
    k->threshold = threshold > 0 ? (int64_t)threshold : 0;
}

static void leave(const world_t *w, known_t *k, int64_t done)
{
    if (w->policy == SCORE) {
        k->sa = eviction_score(w, k, done);
    }
    k->inside = 0;
}

/* lfu: the coldest row inside, -1: none. */
static int coldest(const type_model_t *m)
{
    int c = -1;
    for (int u = 0; u < UNIVERSE; u++) {
        if (m->of[u].inside && (c < 0 || m->of[u].count < m->of[c].count)) {
            c = u; /* ids ascend with u: the lower id is found first */
        }
    }
    return c;
}

static void lfu_minibatch(const world_t *w, planned_t *p, type_model_t *m, const int *missed)
{
    const int64_t capacity = w->capacity[p->type];
    int seen[UNIVERSE] = {0};
    for (int64_t i = 0; i < p->n; i++) {
        known_t *k = &m->of[p->ids[i]];
        k->count += k->tracked && !seen[p->ids[i]];
        seen[p->ids[i]] = 1;
    }
    for (int64_t i = 0; i < p->n_miss; i++) {
        known_t *k = &m->of[p->fetch[i]];
        if (!k->tracked || !missed[p->fetch[i]] || capacity == 0) {
            continue;
        }
        const int cold = coldest(m);
        if (inside_count(w, m) < capacity) {
            enter(w, k, 1, 0);
        } else if (k->count > m->of[cold].count) {
            leave(w, &m->of[cold], 0);
            enter(w, k, 1, 0);
        }
        k->brought_by = 0;
    }
}

/* sieve: after the newest row the hand goes to the oldest. */
static void turn_hand(type_model_t *m)
{
    int ahead = 0;
    for (int u = 0; u < UNIVERSE; u++) {
        ahead |= m->of[u].inside && m->of[u].touched >= m->hand;
    }
    m->hand = ahead ? m->hand : 0;
}

/* lru: what was not touched for longest; sieve: the first without a mark under the hand, which goes round. */
static int queue_victim(which_t policy, type_model_t *m)
{
    for (;;) {
        int first = -1;
        for (int u = 0; u < UNIVERSE; u++) {
            const known_t *k = &m->of[u];
            const int ahead = policy == LRU || k->touched >= m->hand;
            if (k->inside && ahead && (first < 0 || k->touched < m->of[first].touched)) {
                first = u;
            }
        }
        m->hand = m->of[first].touched + 1;
        turn_hand(m);
        if (policy == LRU || !m->of[first].marked) {
            return first;
        }
        m->of[first].marked = 0;
    }
}

static void queue_minibatch(const world_t *w, planned_t *p, type_model_t *m)
{
    int seen[UNIVERSE] = {0};
    for (int64_t i = 0; i < p->n; i++) {
        known_t *k = &m->of[p->ids[i]];
        if (k->inside && !seen[p->ids[i]]) {
            k->touched = w->policy == LRU ? ++m->clock : k->touched;
            k->marked = 1;
        }
        seen[p->ids[i]] = 1;
    }
    for (int64_t i = 0; i < p->n_miss; i++) {
        known_t *k = &m->of[p->fetch[i]];
        if (k->tracked && w->capacity[p->type] > 0) {
            if (inside_count(w, m) == w->capacity[p->type]) {
                leave(w, &m->of[queue_victim(w->policy, m)], 0);
            }
            enter(w, k, 1, 0);
            k->touched = ++m->clock;
            k->marked = 0;
            k->brought_by = 0;
        }
    }
}

/* lookahead: the next minibatch after m's that was announced with u, INT64_MAX: none. */
static int64_t next_use(const world_t *w, int type, int64_t minibatch, int u)
{
    for (int64_t a = 0; a < w->n_ahead[type]; a++) { /* in ascending order */
        for (int64_t i = 0; w->ahead[type][a].seq > minibatch && i < w->ahead[type][a].n; i++) {
            if (w->ahead[type][a].ids[i] == u && w->ahead[type][a].tracked[i]) {
                return w->ahead[type][a].seq;
            }
        }
    }
    return INT64_MAX;
}

static int compare_uses(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of the rows that could be kept those with the soonest next use were, as far as one is known. */
static void check_soonest(const world_t *w, const planned_t *p, const type_model_t *before, const type_model_t *after,
                          const int *missed)
{
    int64_t could[UNIVERSE], kept[UNIVERSE], n_could = 0, n_kept = 0;
    for (int u = 0; u < UNIVERSE; u++) {
        const int64_t use = next_use(w, p->type, before->minibatch, u);
        if (before->of[u].inside || (missed[u] && before->of[u].tracked)) {
            could[n_could++] = use;
        }
        if (after->of[u].inside) {
            kept[n_kept++] = use;
        }
    }
    qsort(could, (size_t)n_could, sizeof could[0], compare_uses);
    qsort(kept, (size_t)n_kept, sizeof kept[0], compare_uses);
    for (int64_t i = 0; i < n_kept; i++) {
        assert_int_equal(kept[i], could[i]);
    }
}

/* Takes over the content after a minibatch of a policy that learns. */
static void adopt_minibatch(const world_t *w, const planned_t *p, type_model_t *m, const int *missed)
{
    const type_model_t before = *m;
    int64_t n_could = 0;
    int inside[UNIVERSE] = {0};
    for (int32_t slot = 0; slot < w->capacity[p->type]; slot++) {
        const rudder_nodes_t *nodes = watched.nodes[p->type];
        const int32_t node = rudder_slot_node(nodes, slot);
        if (node >= 0) {
            inside[(rudder_node_id(nodes, node) - w->base[p->type]) / 7]++;
        }
    }
    for (int u = 0; u < UNIVERSE; u++) {
        known_t *k = &m->of[u];
        const int could = k->inside || (missed[u] && k->tracked);
        n_could += could;
        assert_in_range(inside[u], 0, could);
        if (k->inside && !inside[u]) {
            leave(w, k, 0);
        } else if (!k->inside && inside[u]) {
            enter(w, k, 1, 0);
            k->brought_by = 0;
        }
    }
    assert_int_equal(inside_count(w, m), n_could < w->capacity[p->type] ? n_could : w->capacity[p->type]);
    if (w->policy == LOOKAHEAD && w->owners == 0) {
        check_soonest(w, p, &before, m, missed);
    }
}

/* score: 1 when candidate a comes before b; `right` and `left` tell the order of victims. */
static int candidate_before(const type_model_t *m, const int *missed, int a, int b)
{
    if (m->of[a].sa != m->of[b].sa) {
        return m->of[a].sa > m->of[b].sa;
    }
    return missed[a] != missed[b] ? missed[a] > missed[b] : a < b;
}

static int victim_before(const world_t *w, const type_model_t *m, int64_t done, int a, int b)
{
    const float x = eviction_score(w, &m->of[a], done), y = eviction_score(w, &m->of[b], done);
    if (x != y) {
        return x < y;
    }
    const int64_t i = idle_of(&m->of[a], done), j = idle_of(&m->of[b], done);
    return i != j ? i > j : a < b;
}

static void score_replacement(const world_t *w, planned_t *p, type_model_t *m, const int *missed)
{
    const int64_t done = m->minibatch + 1;
    int victims[UNIVERSE], candidates[UNIVERSE], n_victims = 0, n_candidates = 0;
    for (int u = 0; u < UNIVERSE; u++) {
        if (m->of[u].inside && idle_of(&m->of[u], done) >= m->of[u].threshold) {
            int i = n_victims++;
            for (; i > 0 && victim_before(w, m, done, u, victims[i - 1]); i--) {
                victims[i] = victims[i - 1];
            }
            victims[i] = u;
        } else if (!m->of[u].inside && m->of[u].tracked && m->of[u].sa > 0) {
            int i = n_candidates++;
            for (; i > 0 && candidate_before(m, missed, u, candidates[i - 1]); i--) {
                candidates[i] = candidates[i - 1];
            }
            candidates[i] = u;
        }
    }
    int free = (int)w->capacity[p->type] - inside_count(w, m), next_victim = 0;
    for (int i = 0; i < n_candidates && (free > 0 || next_victim < n_victims); i++) {
        known_t *k = &m->of[candidates[i]];
        if (free > 0) {
            free--;
        } else {
            leave(w, &m->of[victims[next_victim++]], done);
        }
        enter(w, k, k->sa, done);
        k->brought_by = 0;
        if (!missed[candidates[i]]) {
            k->brought_by = p->number;
            p->fetch[p->n_miss + p->n_fill++] = candidates[i];
        }
    }
}

/* Looks up p->ids: misses in the order of first appearance, hits that wait for a row. Tracks what is new. */
static void model_look_up(world_t *w, planned_t *p, type_model_t *m, int *missed, int64_t *n_hit, int64_t *untracked)
{
    int seen[UNIVERSE] = {0};
    for (int64_t i = 0; i < p->n; i++) {
        const int u = p->ids[i];
        known_t *k = &m->of[u];
        if (seen[u]) {
            continue;
        }
        seen[u] = 1;
        if (!k->tracked && tracked_count(m) < w->limit[p->type]) {
            k->tracked = 1;
        }
        if (k->inside) {
            ++*n_hit;
            k->hits++;
            if (k->brought_by != 0) {
                p->needs[p->n_needs] = u;
                p->needs_plan[p->n_needs++] = k->brought_by;
            }
        } else {
            missed[u] = 1;
            *untracked += !k->tracked;
            k->sa += k->tracked ? 1.0f : 0.0f;
            p->fetch[p->n_miss++] = u;
        }
    }
}

static void model_begin(world_t *w, planned_t *p)
{
    type_model_t *m = &w->now.type[p->type];
    rudder_stats_t *stats = &w->now.stats;
    int missed[UNIVERSE] = {0}, was_inside[UNIVERSE], n_planned = 0;
    int64_t n_hit = 0, untracked = 0;
    for (int u = 0; u < UNIVERSE; u++) {
        was_inside[u] = m->of[u].inside;
    }
    model_look_up(w, p, m, missed, &n_hit, &untracked);
    if (w->policy == LFU) {
        lfu_minibatch(w, p, m, missed);
    } else if (w->policy == LRU || w->policy == SIEVE) {
        queue_minibatch(w, p, m);
    } else if (w->policy == MIX || w->policy == LOOKAHEAD) {
        adopt_minibatch(w, p, m, missed);
    }
    for (int t = 0; t < w->types; t++) {
        n_planned += w->now.planned[t];
    }
    stats->minibatches += n_planned == 0;
    w->now.planned[p->type] = 1;
    if (n_planned + 1 == w->types) { /* the minibatch of the handle is over */
        w->now.minibatches++;
        memset(w->now.planned, 0, sizeof w->now.planned);
        w->most_minibatches = w->now.minibatches > w->most_minibatches ? w->now.minibatches : w->most_minibatches;
        if (w->interval > 0 && w->now.minibatches % w->interval == 0) {
            for (int t = 0; t < w->types; t++) {
                w->now.due[t] = 1;
            }
        }
    }
    if (w->now.due[p->type]) {
        w->now.due[p->type] = 0;
        score_replacement(w, p, m, missed);
    }
    m->minibatch++;
    for (int u = 0; u < UNIVERSE; u++) {
        stats->entered_rows += m->of[u].inside && !was_inside[u];
    }
    stats->remote_rows += n_hit + p->n_miss;
    stats->hit_rows += n_hit;
    stats->miss_rows += p->n_miss;
    stats->fill_rows += p->n_fill;
    stats->fetched_rows += p->n_miss + p->n_fill;
    stats->fetched_bytes += (p->n_miss + p->n_fill) * (int64_t)w->row_bytes[p->type];
    stats->untracked_rows += untracked;
}

/* ---- Comparison ------------------------------------------------------------------------------------------------- */

static void make_row(const world_t *w, int type, int u, unsigned char *row)
{
    const uint64_t seed = (uint64_t)id_of(w, type, u) * 31 + (uint64_t)w->version[type][u] * 7919 + (uint64_t)type;
    for (size_t b = 0; b < w->row_bytes[type]; b++) {
        row[b] = (unsigned char)((seed * 0x9E3779B97F4A7C15u + b * 0xD1B54A32D192ED03u) >> 40);
    }
}

static int64_t minibatches_to_come(const world_t *w, int type)
{
    int64_t n = 0;
    for (int64_t a = 0; a < w->n_ahead[type]; a++) {
        n += w->ahead[type][a].seq >= w->now.type[type].minibatch;
    }
    return n;
}

static void check_stats(const world_t *w)
{
    rudder_stats_t stats;
    const rudder_stats_t *m = &w->now.stats;
    int64_t inside = 0;
    assert_int_equal(rudder_stats_get(w->handle, &stats, sizeof stats), RUDDER_OK);
    for (int t = 0; t < w->types; t++) {
        inside += inside_count(w, &w->now.type[t]);
    }
    assert_int_equal(stats.minibatches, m->minibatches);
    assert_int_equal(stats.remote_rows, m->remote_rows);
    assert_int_equal(stats.hit_rows, m->hit_rows);
    assert_int_equal(stats.miss_rows, m->miss_rows);
    assert_int_equal(stats.fill_rows, m->fill_rows);
    assert_int_equal(stats.fetched_rows, m->fetched_rows);
    assert_int_equal(stats.fetched_bytes, m->fetched_bytes);
    assert_int_equal(stats.untracked_rows, m->untracked_rows);
    assert_int_equal(stats.entered_rows, m->entered_rows);
    assert_int_equal(stats.aborted, w->aborted);
    assert_int_equal(stats.rows_in_buffer, inside);
    assert_int_equal(stats.announced_minibatches, w->announced);
    assert_int_equal(stats.window, w->policy == LOOKAHEAD ? minibatches_to_come(w, 0) : 0);
}

/* The misses come in order, the fill rows in any: the model takes over the order of those. */
static void check_fetch(const world_t *w, planned_t *p)
{
    const int64_t *ids;
    int64_t n_miss, n_fill;
    rudder_plan_fetch(p->plan, &ids, &n_miss, &n_fill);
    assert_int_equal(n_miss, p->n_miss);
    assert_int_equal(n_fill, p->n_fill);
    for (int64_t i = 0; i < n_miss; i++) {
        assert_int_equal(ids[i], id_of(w, p->type, p->fetch[i]));
    }
    for (int64_t i = n_miss; i < n_miss + n_fill; i++) {
        int64_t j = i;
        while (j < n_miss + n_fill && id_of(w, p->type, p->fetch[j]) != ids[i]) {
            j++;
        }
        assert_true(j < n_miss + n_fill);
        const int u = p->fetch[j];
        p->fetch[j] = p->fetch[i];
        p->fetch[i] = u;
    }
}

/* ---- Operations ------------------------------------------------------------------------------------------------- */

static planned_t *open_plan(world_t *w, int type)
{
    planned_t *p = &w->open[w->n_open++];
    *p = (planned_t){.type = type, .number = ++w->plans, .before = w->now};
    return p;
}

static void close_plan(world_t *w, planned_t *p)
{
    const int i = (int)(p - w->open);
    w->n_open--;
    memmove(&w->open[i], &w->open[i + 1], (size_t)(w->n_open - i) * sizeof *p);
}

static void begin_ids(world_t *w, planned_t *p)
{
    rudder_error_t error;
    int64_t ids[MAX_IDS];
    for (int64_t i = 0; i < p->n; i++) {
        ids[i] = id_of(w, p->type, p->ids[i]);
    }
    assert_int_equal(rudder_plan_begin(w->handle, p->type, ids, p->n, &p->plan, &error), RUDDER_OK);
    model_begin(w, p);
    memset(ids, 0xff, sizeof ids); /* they were copied */
    check_fetch(w, p);
    check_stats(w);
}

static int next_type(const world_t *w)
{
    int t = 0;
    while (w->now.planned[t]) {
        t++;
    }
    return t;
}

static void do_begin(world_t *w)
{
    if (w->n_open == w->max_plans) {
        rudder_plan_t *none = NULL;
        assert_int_equal(rudder_plan_begin(w->handle, 0, NULL, 0, &none, NULL), RUDDER_E_PLANS);
        return;
    }
    planned_t *p = open_plan(w, next_type(w));
    p->n = below(4) == 0 ? below(MAX_IDS + 1) : below(12);
    const int64_t hot = 1 + below(w->hottest);
    for (int64_t i = 0; i < p->n; i++) {
        p->ids[i] = (int)below(below(3) ? hot : w->hottest);
    }
    for (int64_t a = 0; a < w->n_ahead[p->type] && below(8); a++) { /* mostly what was announced */
        const ahead_t *ahead = &w->ahead[p->type][a];
        if (ahead->seq == w->now.type[p->type].minibatch) {
            p->n = ahead->n;
            memcpy(p->ids, ahead->ids, sizeof p->ids);
            if (below(8) == 0 && p->n > 0) { /* all but one */
                p->ids[below(p->n)] = (int)below(UNIVERSE);
            }
        }
    }
    w->started[p->type] = 1;
    begin_ids(w, p);
}

/* A minibatch to come, of any ids; the last one that was announced, or a later one. */
static void do_announce(world_t *w)
{
    const int type = (int)below(w->types);
    type_model_t *m = &w->now.type[type];
    int64_t ids[MAX_IDS], to_come = 0;
    const int64_t n_ahead = w->n_ahead[type], last = n_ahead > 0 ? w->ahead[type][n_ahead - 1].seq : -1;
    const int64_t least = last + 1 > m->minibatch ? last + 1 : m->minibatch;
    ahead_t *ahead = &w->ahead[type][n_ahead];
    if (n_ahead == MAX_AHEAD) {
        return;
    }
    ahead->n = below(6) == 0 ? below(MAX_IDS + 1) : below(12);
    ahead->seq = least + (below(6) == 0 ? below(3) : 0);
    for (int64_t i = 0; i < ahead->n; i++) {
        ahead->ids[i] = (int)below(below(2) ? 9 : w->hottest);
        ids[i] = id_of(w, type, ahead->ids[i]);
    }
    for (int64_t a = 0; a < n_ahead; a++) {
        to_come += w->ahead[type][a].seq >= m->minibatch ? w->ahead[type][a].n : 0;
    }
    const rudder_status_t status = rudder_announce(w->handle, ahead->seq, type, ids, ahead->n, NULL);
    if (w->policy == LOOKAHEAD && to_come + ahead->n > w->max_announced[type]) {
        assert_int_equal(status, RUDDER_E_AGAIN);
    } else {
        assert_int_equal(status, RUDDER_OK);
        w->n_ahead[type]++;
        w->announced++;
        for (int64_t i = 0; w->policy == LOOKAHEAD && i < ahead->n; i++) {
            known_t *k = &m->of[ahead->ids[i]];
            k->tracked |= tracked_count(m) < w->limit[type];
            ahead->tracked[i] = k->tracked;
        }
        for (int u = 0; w->policy == LOOKAHEAD && u < UNIVERSE; u++) {
            w->settled[type][u] = m->of[u].tracked;
        }
    }
    assert_int_equal(rudder_announce(w->handle, least - 1, type, ids, 0, NULL), RUDDER_E_ARGUMENT);
    check_stats(w);
}

static void check_wanted(const world_t *w)
{
    const int type = (int)below(w->types), wanted = rudder_announce_wanted(w->handle, type);
    const int64_t next = w->now.type[type].minibatch;
    int64_t ahead = 0, ids = 0, most = 0;
    for (int64_t a = 0; a < w->n_ahead[type]; a++) {
        const ahead_t *one = &w->ahead[type][a];
        ahead += one->seq > next;
        ids += one->seq >= next ? one->n : 0;
        most = one->n > most ? one->n : most;
    }
    if (w->policy != LOOKAHEAD || ids + most > w->max_announced[type]) {
        assert_false(wanted);
    } else if (w->window > 0) {
        assert_int_equal(wanted, ahead < w->window);
    } else if (w->capacity[type] == 0) {
        assert_false(wanted);
    }
}

static void abort_newest(world_t *w)
{
    planned_t *p = &w->open[w->n_open - 1];
    rudder_error_t error;
    if (w->n_open > 1) {
        assert_int_equal(rudder_abort(w->handle, w->open[0].plan, &error), RUDDER_E_STATE);
    }
    assert_int_equal(rudder_abort(w->handle, p->plan, &error), RUDDER_OK);
    w->aborted++;
    if (!p->complete) {
        w->now = p->before;
        w->started[p->type] &= !p->start;
        for (int t = 0; t < w->types; t++) {
            for (int u = 0; u < UNIVERSE; u++) {
                w->now.type[t].of[u].tracked |= w->settled[t][u];
            }
        }
    } else {
        for (int64_t i = p->n_filled; i < p->n_fill; i++) {
            known_t *k = &w->now.type[p->type].of[p->fetch[p->n_miss + i]];
            if (k->inside && k->brought_by == p->number) {
                leave(w, k, w->now.type[p->type].minibatch);
                turn_hand(&w->now.type[p->type]);
            }
        }
    }
    close_plan(w, p);
    check_stats(w);
}

/* The content, by asking for everything. The plan leaves no trace. */
static void check_content(world_t *w)
{
    if (w->n_open < w->max_plans) {
        planned_t *p = open_plan(w, next_type(w));
        const int started = w->started[p->type];
        for (int u = 0; u < UNIVERSE; u++) {
            p->ids[p->n++] = u;
        }
        if (started) {
            begin_ids(w, p);
            abort_newest(w);
        } else {
            close_plan(w, p);
        }
    }
}

static int rows_missing(const world_t *w, const planned_t *p)
{
    for (int64_t i = 0; i < p->n_needs; i++) {
        for (int j = 0; j < w->n_open; j++) {
            const planned_t *q = &w->open[j];
            for (int64_t f = q->n_filled; q->number == p->needs_plan[i] && f < q->n_fill; f++) {
                if (q->fetch[q->n_miss + f] == p->needs[i]) {
                    return 1;
                }
            }
        }
    }
    return 0;
}

static int oldest_incomplete(const world_t *w)
{
    int oldest = 0;
    while (oldest < w->n_open && w->open[oldest].complete) {
        oldest++;
    }
    return oldest;
}

static void do_complete(world_t *w, int from)
{
    static unsigned char misses[MAX_IDS * (MAX_ROW + 9)], out[(MAX_IDS + 1) * MAX_ROW];
    unsigned char row[MAX_ROW];
    planned_t *p = &w->open[from];
    const size_t bytes = w->row_bytes[p->type], stride = bytes + (size_t)below(9);
    for (int64_t i = 0; i < p->n_miss; i++) {
        make_row(w, p->type, p->fetch[i], misses + (size_t)i * stride);
    }
    memset(out, 0x5a, sizeof out);
    const rudder_status_t status = rudder_complete(w->handle, p->plan, misses, stride, out, NULL);
    if (from != oldest_incomplete(w)) {
        assert_int_equal(status, RUDDER_E_STATE);
        return;
    }
    if (rows_missing(w, p)) {
        assert_int_equal(status, RUDDER_E_AGAIN);
        return;
    }
    assert_int_equal(status, RUDDER_OK);
    for (int64_t i = 0; i < p->n; i++) {
        make_row(w, p->type, p->ids[i], row);
        assert_memory_equal(out + (size_t)i * bytes, row, bytes);
    }
    assert_int_equal(out[(size_t)p->n * bytes], 0x5a);
    p->complete = 1;
    if (p->n_fill == 0) {
        close_plan(w, p);
    }
}

static void do_fill(world_t *w, int from)
{
    static unsigned char rows[UNIVERSE * (MAX_ROW + 9)];
    planned_t *p = &w->open[from];
    const int64_t left = p->n_fill - p->n_filled;
    const int64_t n = below(2) ? left : below(left + 1);
    const size_t stride = w->row_bytes[p->type] + (size_t)below(9);
    for (int64_t i = 0; i < n; i++) {
        make_row(w, p->type, p->fetch[p->n_miss + p->n_filled + i], rows + (size_t)i * stride);
    }
    const rudder_status_t status = rudder_fill(w->handle, p->plan, rows, stride, n, NULL);
    if (!p->complete && (!p->start || from != oldest_incomplete(w))) {
        assert_int_equal(status, RUDDER_E_STATE);
        return;
    }
    assert_int_equal(status, RUDDER_OK);
    type_model_t *m = &w->now.type[p->type];
    for (int64_t i = 0; i < n; i++) {
        known_t *k = &m->of[p->fetch[p->n_miss + p->n_filled + i]];
        if (k->brought_by == p->number) {
            k->brought_by = 0; /* hits do not wait for it any more */
        }
    }
    p->complete = 1;
    p->n_filled += n;
    if (p->n_filled == p->n_fill) {
        close_plan(w, p);
    }
}

static void do_invalidate(world_t *w)
{
    const int type = (int)below(w->types);
    int64_t ids[8];
    for (int i = 0; i < 8; i++) {
        const int u = (int)below(UNIVERSE + 4);
        /* Unknown ones are ignored, those beyond the last id too. */
        ids[i] = id_of(w, type, u) + (u < UNIVERSE ? 0 : 1 - (int64_t)below(2) * 7 * UNIVERSE);
        known_t *k = u < UNIVERSE ? &w->now.type[type].of[u] : NULL;
        if (w->n_open == 0 && k != NULL) {
            if (k->inside) {
                leave(w, k, w->now.type[type].minibatch);
                turn_hand(&w->now.type[type]);
            }
            w->version[type][u]++;
        }
    }
    assert_int_equal(rudder_invalidate(w->handle, type, ids, 8, NULL), w->n_open == 0 ? RUDDER_OK : RUDDER_E_STATE);
    check_stats(w);
}

/* The start content: the ids of the highest degree, or whatever the library drew when it is random. */
static void do_start(world_t *w, int type, const char *start)
{
    const int64_t *ids;
    int64_t n_miss, n_fill;
    if (w->n_open == w->max_plans) {
        return;
    }
    planned_t *p = open_plan(w, type);
    const int64_t expected = strcmp(start, "empty") == 0           ? 0
                             : w->n_halo[type] < w->capacity[type] ? w->n_halo[type]
                                                                   : w->capacity[type];
    p->start = 1;
    assert_int_equal(rudder_plan_start(w->handle, type, &p->plan, NULL), RUDDER_OK);
    rudder_plan_fetch(p->plan, &ids, &n_miss, &n_fill);
    assert_int_equal(n_miss, 0);
    assert_int_equal(n_fill, expected);
    for (int64_t i = 0; i < n_fill; i++) {
        int best = -1;
        for (int u = 0; u < w->n_halo[type]; u++) {
            const known_t *k = &w->now.type[type].of[u];
            if (strcmp(start, "random") == 0 ? id_of(w, type, u) == ids[i]
                                             : !k->inside && (best < 0 || w->degree[type][u] > w->degree[type][best])) {
                best = u;
            }
        }
        assert_in_range(best, 0, UNIVERSE - 1);
        known_t *k = &w->now.type[type].of[best];
        assert_false(k->inside);
        k->tracked = 1;
        enter(w, k, 1, 0);
        k->touched = ++w->now.type[type].clock;
        k->brought_by = p->number;
        p->fetch[p->n_fill++] = best;
    }
    w->now.stats.fill_rows += n_fill;
    w->now.stats.fetched_rows += n_fill;
    w->now.stats.entered_rows += n_fill;
    w->now.stats.fetched_bytes += n_fill * (int64_t)w->row_bytes[type];
    w->started[type] = 1;
    check_fetch(w, p);
    check_stats(w);
    assert_int_equal(rudder_plan_start(w->handle, type, &p->plan, NULL), RUDDER_E_STATE);
}

/* The halo is tracked from the start, in its order and as far as there is room; the start content too. */
static void know_halo(world_t *w, int type, int64_t max_tracked)
{
    const rudder_nodes_t *nodes = watched.nodes[type];
    const int64_t known = w->n_halo[type] < max_tracked ? w->n_halo[type] : max_tracked;
    assert_in_range(rudder_nodes_count(nodes), known, known + w->capacity[type]);
    for (int32_t node = 0; node < rudder_nodes_count(nodes); node++) {
        const int64_t u = (rudder_node_id(nodes, node) - w->base[type]) / 7;
        assert_true(node < known ? u == node : u >= known && u < w->n_halo[type]);
        assert_false(w->now.type[type].of[u].tracked);
        w->now.type[type].of[u].tracked = w->settled[type][u] = 1;
    }
}

static const char *open_world(world_t *w)
{
    static const char *const starts[] = {"empty", "degree", "random"};
    static const int64_t capacities[] = {0, 1, 7, UNIVERSE, UNIVERSE + 9, 20};
    rudder_config_t config;
    rudder_error_t error = {0};
    rudder_type_config_t types[MAX_TYPES];
    int64_t halo[MAX_TYPES][UNIVERSE], offset[MAX_TYPES][4];
    uint32_t degree[MAX_TYPES][UNIVERSE];
    char decider[32];
    memset(w, 0, sizeof *w);
    w->policy = (which_t)below(POLICIES);
    w->types = below(3) ? 1 : 1 + (int)below(MAX_TYPES);
    w->max_plans = 1 + (int)below(MAX_PLANS);
    w->period = 1 + (int)below(6);
    w->alpha = below(2) ? .005 : .3;
    w->interval = w->policy == SCORE && below(5) ? 1 + (int)below(7) : 0;
    w->hottest = UNIVERSE;
    const int churn = below(4) == 0; /* few ids fight for one slot while rows arrive late */
    if (churn) {
        w->policy = SCORE;
        w->hottest = 4;
        w->max_plans = MAX_PLANS;
        w->period = w->interval = 1;
    }
    for (int t = 0; t < w->types; t++) {
        w->capacity[t] = w->policy == NONE ? 0 : capacities[churn ? 1 : below(6)];
        /* Small ids are found by an array where it is small enough, the others by hashing. */
        w->base[t] = below(3) == 0 ? ((int64_t)1 << 33) + below(1000) : below(2) ? 1000 : 1 + below(9);
        w->row_bytes[t] = below(3) ? 1 + (size_t)below(MAX_ROW) : below(2) ? 4 : 8;
        w->n_halo[t] = below(3) ? UNIVERSE - below(20) : 0;
        types[t] = (rudder_type_config_t){.row_bytes = w->row_bytes[t],
                                          .capacity_rows = w->policy == NONE && below(2) ? 9 : w->capacity[t],
                                          .max_ids = MAX_IDS,
                                          .max_tracked = below(2) ? 0 : 1 + below(UNIVERSE),
                                          .owned_begin = 0,
                                          .owned_end = w->base[t] < 1000 ? w->base[t] : 1000,
                                          .halo = halo[t],
                                          .halo_degree = degree[t],
                                          .n_halo = w->n_halo[t],
                                          .max_announced = below(2) ? 0 : 1 + below(4 * MAX_IDS),
                                          .id_end = below(3) ? id_of(w, t, UNIVERSE - 1) + 1 : 0};
        w->max_announced[t] = types[t].max_announced != 0 ? types[t].max_announced : 16 * w->capacity[t] + 2 * MAX_IDS;
        w->limit[t] =
            w->policy == NONE ? 0 : w->capacity[t] + (types[t].max_tracked ? types[t].max_tracked : w->n_halo[t]);
        for (int u = 0; u < UNIVERSE; u++) {
            halo[t][u] = id_of(w, t, u);
            degree[t][u] = (uint32_t)below(9);
            w->degree[t][u] = degree[t][u];
        }
    }
    snprintf(decider, sizeof decider, "fixed:%d", w->interval);
    rudder_config_init(&config, sizeof config);
    config.n_types = w->types;
    config.types = types;
    w->window = w->policy == LOOKAHEAD && below(2) ? 1 + below(5) : 0;
    w->owners = below(3) == 0 ? 3 : 0;
    for (int t = 0; t < w->types; t++) {
        for (int o = 0; o < 4; o++) {
            offset[t][o] = id_of(w, t, o * UNIVERSE / 3);
        }
        types[t].owner_offset = offset[t];
    }
    config.n_owners = w->owners;
    config.owner_cost = w->owners > 0 ? RUDDER_OWNER_COST_MEASURED : RUDDER_OWNER_COST_OFF;
    config.policy = policy_names[w->policy];
    if (w->policy == MIX || w->policy == LOOKAHEAD) {
        watched.table = w->policy == MIX ? policy_mix : policy_lookahead;
        watched.open = watched.table.open;
        watched.table.open = watched_open;
        watched.window = w->window;
        watched.n = 0;
        config.policy_table = &watched.table;
    }
    config.start = starts[below(3)];
    config.max_plans = w->max_plans;
    config.period = w->period;
    config.alpha = w->alpha;
    config.decider = w->interval > 0 ? decider : below(2) ? "never" : NULL;
    config.seed = draw();
    if (rudder_open(&config, &w->handle, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    for (int t = 0; t < w->types && (w->policy == MIX || w->policy == LOOKAHEAD); t++) {
        know_halo(w, t, types[t].max_tracked != 0 ? types[t].max_tracked : w->n_halo[t]);
    }
    memset(halo, 0, sizeof halo); /* read by rudder_open() only */
    memset(degree, 0, sizeof degree);
    return config.start;
}

/* Every decision was asked for once, however often its minibatch was planned, and came to a replacement. */
static void check_decisions(const world_t *w)
{
    rudder_stats_t stats;
    assert_int_equal(rudder_stats_get(w->handle, &stats, sizeof stats), RUDDER_OK);
    assert_int_equal(stats.asked, w->most_minibatches / w->interval);
    if (w->types == 1 && w->now.minibatches == w->most_minibatches) {
        assert_int_equal(stats.replaced + stats.nothing_stale, stats.asked);
    }
}

static void run_sequence(world_t *w)
{
    const char *start = open_world(w);
    for (int t = 0; t < w->types; t++) {
        if (below(4)) {
            do_start(w, t, start);
        }
    }
    const int eager = (int)below(4); /* how much plans overlap */
    const int newest_first = below(2) == 0;
    const int64_t announces = 1 + below(3); /* one in so many steps is without */
    for (int step = 0; step < 120; step++) {
        const int64_t what = below(12 + 4 * eager);
        check_wanted(w);
        for (int32_t owner = 0; owner < w->owners; owner++) { /* each in turn is dear */
            const int64_t rows = 1 + below(100);
            const double seconds = (double)rows * (owner == step / 20 % 3 ? 3 << step / 20 : 1);
            assert_int_equal(rudder_report_fetch(w->handle, owner, rows, seconds), RUDDER_OK);
        }
        if (below(announces) != 0) {
            do_announce(w);
        }
        if (what < 5) {
            do_begin(w);
        } else if (what == 5 && w->n_open > 0) {
            abort_newest(w);
        } else if (what == 6) {
            check_content(w);
        } else if (what == 7) {
            do_invalidate(w);
        } else if (what < 10 && w->n_open > 0) {
            do_complete(w, (int)below(w->n_open));
        } else if (w->n_open > 0) {
            /* mostly the oldest plan, or in some sequences the newest, so that old rows come very late */
            const int64_t usual = newest_first && w->open[w->n_open - 1].complete ? w->n_open - 1 : 0;
            planned_t *p = &w->open[below(6) ? usual : below(w->n_open)];
            if (p->complete || p->start) {
                do_fill(w, (int)(p - w->open));
            } else {
                do_complete(w, (int)(p - w->open));
            }
        }
    }
    if (w->interval > 0) {
        check_decisions(w);
    }
    rudder_close(w->handle, 0);
}

static void test_against_model(void **state)
{
    static world_t world;
    const char *sequences = getenv("RUDDER_TEST_SEQUENCES");
    const int n = sequences != NULL ? atoi(sequences) : 20000;
    (void)state;
    for (int i = 0; i < n; i++) {
        random_state = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1);
        if (getenv("RUDDER_TEST_TRACE") != NULL) {
            print_message("sequence %d\n", i);
        }
        run_sequence(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
