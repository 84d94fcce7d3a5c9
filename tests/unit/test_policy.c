/*
 * Policies by what they fetch. On recorded traces the share of remote rows that need not be fetched is the one that an
 * independent program of the same semantics found; nothing fetches less than the bound; and the bound is the optimum that
 * trying every content finds on tiny traces.
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

#include "rudder/rudder.h"
#include "trace/bound.h"
#include "trace/trace.h"

enum { ROW = 4 };

typedef struct run {
    const char *policy, *decider, *start;
    int64_t capacity;
    int everything; /* announced beforehand; otherwise as much as the policy wants */
} run_t;

/* Announces minibatches from `next` on while they are wanted, before minibatch t is planned. */
static int64_t announce(rudder_t *handle, const trace_t *trace, int64_t next, int64_t t, int everything)
{
    next = next > t ? next : t;
    while (next < trace->n_minibatches && (everything || rudder_announce_wanted(handle, 0))) {
        const int64_t n = trace->offsets[next + 1] - trace->offsets[next];
        if (rudder_announce(handle, next, 0, trace->ids + trace->offsets[next], n, NULL) != RUDDER_OK) {
            assert_false(everything); /* larger than any before, and no room */
            break;
        }
        next++;
    }
    return next;
}

/* Rows fetched by a run over a trace. */
static rudder_stats_t replay(const trace_t *trace, int64_t distinct, const run_t *run)
{
    rudder_t *handle = NULL;
    rudder_error_t error = {0};
    rudder_config_t config;
    rudder_stats_t stats;
    rudder_plan_t *plan;
    const int64_t *fetch;
    int64_t n_miss, n_fill;
    const rudder_type_config_t type = {.row_bytes = ROW,
                                       .capacity_rows = run->capacity,
                                       .max_ids = trace->most_ids > 0 ? trace->most_ids : 1,
                                       .max_tracked = distinct + trace->n_halo,
                                       .halo = trace->halo,
                                       .halo_degree = trace->halo_degree,
                                       .n_halo = trace->n_halo,
                                       .max_announced = run->everything ? trace->n_ids + 1 : 0};
    const int64_t most_rows = type.max_ids > run->capacity ? type.max_ids : run->capacity;
    char *rows = calloc((size_t)most_rows, ROW), *out = malloc((size_t)type.max_ids * ROW);
    rudder_config_init(&config, sizeof config);
    config.types = &type;
    config.policy = run->policy;
    config.decider = run->decider;
    config.start = run->start;
    config.minibatches = trace->n_minibatches;
    if (rows == NULL || out == NULL || rudder_open(&config, &handle, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(rudder_plan_start(handle, 0, &plan, NULL), RUDDER_OK);
    rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
    assert_int_equal(rudder_fill(handle, plan, rows, ROW, n_fill, NULL), RUDDER_OK);
    for (int64_t t = 0, next = 0; t < trace->n_minibatches; t++) {
        const int64_t *ids = trace->ids + trace->offsets[t];
        next = announce(handle, trace, next, t, run->everything);
        assert_int_equal(rudder_plan_begin(handle, 0, ids, trace->offsets[t + 1] - trace->offsets[t], &plan, NULL),
                         RUDDER_OK);
        rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
        assert_int_equal(rudder_complete(handle, plan, rows, ROW, out, NULL), RUDDER_OK);
        if (n_fill > 0) {
            assert_int_equal(rudder_fill(handle, plan, rows, ROW, n_fill, NULL), RUDDER_OK);
        }
    }
    rudder_stats_get(handle, &stats, sizeof stats);
    rudder_close(handle, 0);
    free(rows);
    free(out);
    return stats;
}

/* ---- Recorded traces -------------------------------------------------------------------------------------------- */

static const double fractions[] = {.05, .10, .25, .50};

typedef struct expected {
    const char *policy, *decider, *start; /* policy NULL: the bound */
    double saved[4];                      /* % of remote rows not fetched, by fraction of the halo; 0: not known */
    double off[2];                        /* how much less and more is as good */
} expected_t;

/* `lookahead` knows more beyond its window than the program that was compared with: its rows may be fewer. */
static const expected_t sbm[] = {
    {"static", NULL, NULL, {21.24, 30.60, 48.75, 68.95}, {.1, .1}},
    {"lru", NULL, NULL, {9.79, 17.41, 36.33, 60.31}, {.1, .1}},
    {"lfu", NULL, NULL, {21.23, 30.62, 49.14, 69.88}, {.1, .1}},
    {"score", "fixed:16", "degree", {17.52, 23.93, 39.26, 55.23}, {.1, .1}},
    {"mix", NULL, NULL, {0, 31.01, 49.75, 0}, {.3, .3}},
    {"lookahead:1", NULL, NULL, {24.06, 32.82, 50.44, 70.47}, {.1, 1}},
    {"lookahead:4", NULL, NULL, {30.77, 38.35, 53.91, 72.12}, {.1, 1}},
    {"lookahead:16", NULL, NULL, {35.49, 47.63, 63.13, 76.93}, {.1, 1}},
    {"lookahead:32", NULL, NULL, {0, 0, 67.26, 80.87}, {.1, 1}},
    {"lookahead:64", NULL, NULL, {0, 0, 67.26, 83.58}, {.1, 1}},
    {NULL, NULL, NULL, {35.49, 47.63, 67.26, 83.58}, {.01, .01}},
};
static const expected_t rmat[] = {
    {"static", NULL, NULL, {27.89, 46.15, 71.44, 86.31}, {.1, .1}},
    {"lru", NULL, NULL, {14.17, 27.32, 57.17, 81.19}, {.1, .1}},
    {"lfu", NULL, NULL, {27.20, 45.36, 69.94, 85.47}, {.1, .1}},
    {"score", "once", "empty", {21.61, 35.42, 55.19, 59.77}, {.1, .1}},
    {"score", "fixed:16", "degree", {21.04, 35.00, 53.82, 62.03}, {.1, .1}},
    {"score", "fixed:16", "empty", {23.13, 35.00, 54.36, 60.82}, {.1, .1}},
    {"mix", NULL, NULL, {0, 46.35, 71.77, 0}, {.3, .3}},
    {"lookahead:1", NULL, NULL, {30.72, 47.08, 70.44, 85.56}, {.1, 2}},
    {"lookahead:4", NULL, NULL, {38.12, 51.34, 71.75, 85.85}, {.1, 2}},
    {"lookahead:16", NULL, NULL, {44.78, 59.66, 75.46, 86.79}, {.1, 1}},
    {"lookahead:32", NULL, NULL, {0, 0, 78.39, 87.75}, {.1, 1}},
    {"lookahead:64", NULL, NULL, {0, 0, 79.58, 89.05}, {.1, 1}},
    {NULL, NULL, NULL, {44.78, 59.67, 79.58, 90.41}, {.01, .01}},
};

typedef struct recorded {
    const char *name;
    trace_t trace;
    int64_t distinct; /* ids */
} recorded_t;

static recorded_t recorded[] = {{.name = "rmat_b100.rank0"}, {.name = "sbm200k_b100.rank0"}};

static int read_traces(void **state)
{
    const char *shared = getenv("RUDDER_SHARED_DIR");
    (void)state;
    for (int i = 0; i < 2; i++) {
        char path[512];
        rudder_error_t error = {0};
        trace_t *trace = &recorded[i].trace;
        snprintf(path, sizeof path, "%s/data/traces/%s.npz", shared != NULL ? shared : "../shared", recorded[i].name);
        if (trace_load(path, trace, &error) != RUDDER_OK) {
            print_error("%s\n", error.text);
            return 1;
        }
        /* with room for all of them, each id is fetched once */
        bound_fetched(trace->ids, trace->offsets, trace->n_minibatches, trace->n_ids, &recorded[i].distinct, NULL, NULL,
                      NULL);
    }
    return 0;
}

static int free_traces(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        trace_free(&recorded[i].trace);
    }
    return 0;
}

static int64_t slots(const recorded_t *r, double fraction)
{
    return (int64_t)(fraction * (double)r->trace.n_halo);
}

static void check_table(const recorded_t *r, const expected_t *table, size_t n)
{
    const trace_t *trace = &r->trace;
    for (size_t f = 0; f < 4; f++) {
        const int64_t capacity = slots(r, fractions[f]);
        int64_t least = 0, remote = 0;
        bound_fetched(trace->ids, trace->offsets, trace->n_minibatches, capacity, &least, &remote, NULL, NULL);
        for (size_t i = 0; i < n; i++) {
            int64_t fetched = least;
            if (table[i].policy != NULL) {
                const run_t run = {table[i].policy, table[i].decider, table[i].start, capacity, 0};
                const rudder_stats_t stats = replay(trace, r->distinct, &run);
                assert_int_equal(stats.remote_rows, remote);
                fetched = stats.fetched_rows;
            }
            const double saved = 100 * (1 - (double)fetched / (double)remote);
            assert_true(fetched >= least);
            if (table[i].saved[f] > 0 &&
                (saved < table[i].saved[f] - table[i].off[0] || saved > table[i].saved[f] + table[i].off[1])) {
                fail_msg("%s, %s %s at %.0f %%: expected %.2f %% saved, found %.2f", r->name,
                         table[i].policy != NULL ? table[i].policy : "bound",
                         table[i].decider != NULL ? table[i].decider : "", 100 * fractions[f], table[i].saved[f],
                         saved);
            }
        }
    }
}

static void test_rows_saved_rmat(void **state)
{
    (void)state;
    check_table(&recorded[0], rmat, sizeof rmat / sizeof rmat[0]);
}

static void test_rows_saved_sbm(void **state)
{
    (void)state;
    check_table(&recorded[1], sbm, sizeof sbm / sizeof sbm[0]);
}

/* Looking as far as it wants to, lookahead saves nearly all that can be saved; knowing everything, exactly that. */
static void test_lookahead_reaches_the_bound(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const recorded_t *r = &recorded[i];
        for (int f = 0; f < 4; f++) {
            const int64_t capacity = slots(r, fractions[f]);
            const run_t wanted = {"lookahead", NULL, NULL, capacity, 0}, all = {"lookahead", NULL, NULL, capacity, 1};
            int64_t least = 0, remote = 0;
            bound_fetched(r->trace.ids, r->trace.offsets, r->trace.n_minibatches, capacity, &least, &remote, NULL,
                          NULL);
            const rudder_stats_t stats = replay(&r->trace, r->distinct, &wanted);
            assert_true(stats.announced_minibatches <= r->trace.n_minibatches);
            assert_true((double)(remote - stats.fetched_rows) >= .995 * (double)(remote - least));
            assert_int_equal(replay(&r->trace, r->distinct, &all).fetched_rows, least);
        }
    }
}

/* What is learned is never worse than what is simple. */
static void test_mix_saves_as_much_as_static_and_lfu(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const recorded_t *r = &recorded[i];
        for (size_t f = 0; f < 4; f++) {
            const run_t runs[] = {{.policy = "mix", .capacity = slots(r, fractions[f])},
                                  {.policy = "static", .capacity = slots(r, fractions[f])},
                                  {.policy = "lfu", .capacity = slots(r, fractions[f])}};
            const rudder_stats_t mix = replay(&r->trace, r->distinct, &runs[0]);
            for (int other = 1; other < 3; other++) {
                const int64_t more = mix.fetched_rows - replay(&r->trace, r->distinct, &runs[other]).fetched_rows;
                assert_true((double)more < .002 * (double)mix.remote_rows);
            }
        }
    }
}

/* The estimate behind `gain` is good enough not to be lured away from a good start content, nor to leave a bad one. */
static void test_gain_avoids_harm(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const recorded_t *r = &recorded[i];
        const int64_t capacity = slots(r, .25);
        const run_t never = {"score", "never", "degree", capacity, 0}, gain = {"score", "gain", "degree", capacity, 0};
        const run_t once = {"score", "once", "empty", capacity, 0}, filled = {"score", "gain", "empty", capacity, 0};
        const rudder_stats_t best = replay(&r->trace, r->distinct, &never);
        const int64_t more = replay(&r->trace, r->distinct, &gain).fetched_rows - best.fetched_rows;
        assert_true((double)more < .035 * (double)best.remote_rows);
        assert_true(replay(&r->trace, r->distinct, &filled).fetched_rows <
                    replay(&r->trace, r->distinct, &once).fetched_rows);
    }
}

/* ---- Small traces ----------------------------------------------------------------------------------------------- */

static uint64_t random_state = 88172645463325252u;

static int64_t below(int64_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int64_t)(random_state % (uint64_t)n);
}

enum { TINY_IDS = 6, TINY_MINIBATCHES = 7, SMALL_IDS = 400, SMALL_MINIBATCHES = 60 };

/* The optimum by trying everything: cost[s]: fewest rows fetched with the content s (a set of ids) after a minibatch. */
static int64_t brute_force(const uint32_t *asked, int n_minibatches, int capacity)
{
    enum { SETS = 1 << TINY_IDS };
    int cost[SETS], next[SETS];
    for (int s = 0; s < SETS; s++) {
        cost[s] = s == 0 ? 0 : 1000000;
    }
    for (int t = 0; t < n_minibatches; t++) {
        for (int s = 0; s < SETS; s++) {
            next[s] = 1000000;
        }
        for (int s = 0; s < SETS; s++) {
            const int missed = __builtin_popcount(asked[t] & ~(uint32_t)s);
            for (int kept = 0; kept < SETS; kept++) { /* rows that are neither there nor asked for cost a fill row */
                const int filled = __builtin_popcount((uint32_t)kept & ~((uint32_t)s | asked[t]));
                if (__builtin_popcount((uint32_t)kept) <= capacity && cost[s] + missed + filled < next[kept]) {
                    next[kept] = cost[s] + missed + filled;
                }
            }
        }
        memcpy(cost, next, sizeof cost);
    }
    int best = cost[0];
    for (int s = 0; s < SETS; s++) {
        best = cost[s] < best ? cost[s] : best;
    }
    return best;
}

static void test_bound_is_the_optimum(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t ids[TINY_MINIBATCHES * 2 * TINY_IDS], offsets[TINY_MINIBATCHES + 1] = {0}, n = 0, remote = 0,
                                                                                 asked_for = 0;
        uint32_t asked[TINY_MINIBATCHES] = {0};
        for (int t = 0; t < TINY_MINIBATCHES; t++) {
            for (int64_t i = below(2 * TINY_IDS); i > 0; i--) { /* duplicates too */
                const int64_t id = below(TINY_IDS);
                asked[t] |= 1u << id;
                ids[n++] = ((int64_t)5 << 33) + id;
            }
            offsets[t + 1] = n;
            asked_for += __builtin_popcount(asked[t]);
        }
        for (int capacity = 0; capacity <= TINY_IDS; capacity++) {
            int64_t fetched = -1;
            assert_int_equal(bound_fetched(ids, offsets, TINY_MINIBATCHES, capacity, &fetched, &remote, NULL, NULL),
                             RUDDER_OK);
            assert_int_equal(fetched, brute_force(asked, TINY_MINIBATCHES, capacity));
            assert_int_equal(remote, asked_for);
        }
    }
}

static void test_bound_of_nothing(void **state)
{
    const int64_t offsets[] = {0, 0, 0};
    int64_t fetched = -1, remote = -1;
    (void)state;
    assert_int_equal(bound_fetched(NULL, offsets, 0, 5, &fetched, &remote, NULL, NULL), RUDDER_OK);
    assert_int_equal(fetched, 0);
    assert_int_equal(bound_fetched(NULL, offsets, 2, 5, &fetched, &remote, NULL, NULL), RUDDER_OK);
    assert_int_equal(fetched, 0);
    assert_int_equal(remote, 0);
}

static int64_t small_ids[SMALL_MINIBATCHES * 64], small_offsets[SMALL_MINIBATCHES + 1], small_halo[SMALL_IDS];
static uint32_t small_degree[SMALL_IDS];

/* A random trace, skewed, in some rounds drifting, with duplicates. */
static trace_t small_trace(int round, int n_minibatches, int n_nodes)
{
    int64_t n = 0;
    for (int t = 0; t < n_minibatches; t++) {
        for (int64_t i = below(64); i > 0; i--) {
            const int64_t x = below(n_nodes), y = below(n_nodes);
            small_ids[n++] = 1 + ((x < y ? x : y) + (round % 2 ? 3 * t : 0)) % n_nodes;
        }
        small_offsets[t + 1] = n;
    }
    for (int i = 0; i < n_nodes; i++) {
        small_halo[i] = 1 + i;
        small_degree[i] = (uint32_t)(n_nodes - i);
    }
    return (trace_t){.ids = small_ids,
                     .offsets = small_offsets,
                     .n_ids = n,
                     .n_minibatches = n_minibatches,
                     .most_ids = 64,
                     .halo = small_halo,
                     .halo_degree = small_degree,
                     .n_halo = n_nodes / 2};
}

/* No policy, start, decider and capacity fetches less than the bound. */
static void test_nothing_beats_the_bound(void **state)
{
    static const run_t runs[] = {
        {"none", NULL, NULL, 0, 0},           {"static", NULL, "degree", 0, 0},  {"static", NULL, "random", 0, 0},
        {"lru", NULL, "empty", 0, 0},         {"sieve", NULL, "empty", 0, 0},    {"sieve", NULL, "degree", 0, 0},
        {"lfu", NULL, "empty", 0, 0},         {"lfu", NULL, "degree", 0, 0},     {"score", "fixed:1", "empty", 0, 0},
        {"score", "fixed:4", "degree", 0, 0}, {"score", "gain", "empty", 0, 0},  {"score", "once", "random", 0, 0},
        {"mix", NULL, "empty", 0, 0},         {"mix", NULL, "random", 0, 0},     {"lookahead", NULL, "empty", 0, 0},
        {"lookahead", NULL, "degree", 0, 0},  {"lookahead:1", NULL, NULL, 0, 0}, {"lookahead:5", NULL, NULL, 0, 0}};
    (void)state;
    for (int round = 0; round < 60; round++) {
        const trace_t trace = small_trace(round, SMALL_MINIBATCHES, SMALL_IDS);
        static const int64_t capacities[] = {0, 1, 7, 50, SMALL_IDS};
        for (int c = 0; c < 5; c++) {
            int64_t least = 0, remote = 0;
            bound_fetched(trace.ids, trace.offsets, SMALL_MINIBATCHES, capacities[c], &least, &remote, NULL, NULL);
            for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
                run_t run = runs[r];
                run.capacity = capacities[c];
                const rudder_stats_t stats = replay(&trace, SMALL_IDS, &run);
                assert_int_equal(stats.remote_rows, remote);
                assert_true(stats.fetched_rows >= least);
                assert_true(stats.fetched_rows == remote || capacities[c] > 0);
            }
        }
    }
}

/* With everything announced lookahead is the bound, to the row. */
static void test_lookahead_of_everything(void **state)
{
    static const int64_t capacities[] = {0, 1, 7, SMALL_IDS};
    (void)state;
    for (int round = 0; round < 1000; round++) {
        const int n_nodes = 2 + (int)below(SMALL_IDS - 1);
        const trace_t trace = small_trace(round, (int)below(SMALL_MINIBATCHES + 1), n_nodes);
        for (int c = 0; c < 4; c++) {
            const run_t run = {"lookahead", NULL, "empty", capacities[c], 1};
            int64_t least = 0;
            bound_fetched(trace.ids, trace.offsets, trace.n_minibatches, capacities[c], &least, NULL, NULL, NULL);
            assert_int_equal(replay(&trace, n_nodes, &run).fetched_rows, least);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound_is_the_optimum),
                                       cmocka_unit_test(test_bound_of_nothing),
                                       cmocka_unit_test(test_nothing_beats_the_bound),
                                       cmocka_unit_test(test_lookahead_of_everything),
                                       cmocka_unit_test(test_lookahead_reaches_the_bound),
                                       cmocka_unit_test(test_rows_saved_rmat),
                                       cmocka_unit_test(test_rows_saved_sbm),
                                       cmocka_unit_test(test_gain_avoids_harm),
                                       cmocka_unit_test(test_mix_saves_as_much_as_static_and_lfu)};
    return cmocka_run_group_tests(tests, read_traces, free_traces);
}
