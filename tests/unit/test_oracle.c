/*
 * The oracle against brute force: on small random traces every way of every decision is gone again from the beginning,
 * through the public API with a scripted decider, and must cost the same rows after the same context. What it says of a
 * run follows from what it says of its points; searches find the optimum where they can look at everything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/oracle.h"

enum { UNIVERSE = 40, MAX_MINIBATCHES = 40, MAX_IDS = 16, MAX_POINTS = MAX_MINIBATCHES };

static uint64_t random_state;

static int64_t below(int64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((random_state >> 33) % (uint64_t)n);
}

/* ---- A policy of one's own: takes in what was missed last, lets go what was used longest ago -------------------- */

typedef struct own_state {
    int64_t used; /* minibatch + 1 */
} own_state_t;

static void own_use(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        ((own_state_t *)rudder_node_state(nodes, node[i]))->used = rudder_nodes_minibatch(nodes) + 1;
    }
}

static int32_t own_find(const rudder_nodes_t *nodes, int inside)
{
    int32_t best = -1;
    int64_t best_used = 0;
    for (int32_t i = 0; i < rudder_nodes_count(nodes); i++) {
        const int64_t used = ((own_state_t *)rudder_node_state(nodes, i))->used;
        if ((rudder_node_slot(nodes, i) >= 0) == inside &&
            (best < 0 || (inside ? used < best_used : used > best_used))) {
            best = i;
            best_used = used;
        }
    }
    return best;
}

static int64_t own_replace(void *self, rudder_nodes_t *nodes)
{
    int64_t entered = 0;
    (void)self;
    for (int i = 0; i < 3; i++) {
        const int32_t enters = own_find(nodes, 0);
        const int32_t leaves = rudder_nodes_free(nodes) > 0 ? -1 : own_find(nodes, 1);
        entered += enters >= 0 && rudder_nodes_admit(nodes, enters, leaves) >= 0;
    }
    return entered;
}

/* Made up, so that `gain` says yes now and then. */
static void own_outlook(void *self, rudder_nodes_t *nodes, rudder_outlook_t *outlook)
{
    (void)self;
    *outlook = (rudder_outlook_t){.stale = 3,
                                  .candidates = 3,
                                  .swaps = 3,
                                  .cost = 3,
                                  .saving_per_minibatch = (double)(rudder_nodes_count(nodes) % 3)};
}

static const rudder_policy_t own_policy = {.size = sizeof(rudder_policy_t),
                                           .name = "own",
                                           .flags = RUDDER_POLICY_REPLACES,
                                           .state_bytes = sizeof(own_state_t),
                                           .hits = own_use,
                                           .misses = own_use,
                                           .replace = own_replace,
                                           .outlook = own_outlook};

/* ---- Random runs ------------------------------------------------------------------------------------------------ */

typedef struct run {
    int64_t ids[MAX_MINIBATCHES * MAX_IDS], offsets[MAX_MINIBATCHES + 1], halo[UNIVERSE];
    uint32_t degree[UNIVERSE];
    trace_t trace;
    rudder_type_config_t type;
    rudder_config_t config;
    oracle_setup_t setup;
} run_t;

/* Ids from 2^33 on, whose popularity moves, so that both answers are right now and then. */
static void make_run(run_t *run, int64_t most_minibatches)
{
    static const int64_t capacities[] = {0, 1, 5, 12, UNIVERSE};
    static const char *const starts[] = {"empty", "degree", "random"};
    memset(run, 0, sizeof *run);
    const int64_t n = below(most_minibatches + 1), drift = below(3);
    for (int64_t t = 0; t < n; t++) {
        const int64_t m = below(MAX_IDS + 1);
        for (int64_t i = 0; i < m; i++) {
            const int64_t hot = below(3) ? below(10) : below(UNIVERSE);
            run->ids[run->offsets[t] + i] = ((int64_t)1 << 33) + (hot + drift * t / 2) % UNIVERSE;
        }
        run->offsets[t + 1] = run->offsets[t] + m;
    }
    for (int64_t i = 0; i < UNIVERSE; i++) {
        run->halo[i] = ((int64_t)1 << 33) + i;
        run->degree[i] = (uint32_t)below(9);
    }
    run->trace = (trace_t){.ids = run->ids,
                           .offsets = run->offsets,
                           .n_ids = run->offsets[n],
                           .n_minibatches = n,
                           .most_ids = MAX_IDS,
                           .halo = run->halo,
                           .halo_degree = run->degree,
                           .n_halo = UNIVERSE};
    run->type = (rudder_type_config_t){.row_bytes = 1 + (size_t)below(500),
                                       .capacity_rows = capacities[below(5)],
                                       .max_ids = MAX_IDS,
                                       .max_tracked = below(2) ? 0 : 1 + below(UNIVERSE),
                                       .halo = run->halo,
                                       .halo_degree = run->degree,
                                       .n_halo = UNIVERSE};
    rudder_config_init(&run->config, sizeof run->config);
    run->config.types = &run->type;
    run->config.policy = "score";
    run->config.policy_table = below(3) ? NULL : &own_policy;
    run->config.start = starts[below(3)];
    run->config.period = 1 + (int32_t)below(6);
    run->config.alpha = below(2) ? .005 : .2;
    run->config.minibatches = n;
    run->setup = (oracle_setup_t){.trace = &run->trace,
                                  .config = &run->config,
                                  .horizon = below(3)   ? 1 + below(12)
                                             : below(2) ? 0
                                                        : MAX_MINIBATCHES,
                                  .clock = {.compute = .01, .sample = .002, .latency = .001, .row = .001}};
}

/* ---- Brute force: the public API alone -------------------------------------------------------------------------- */

/* A decider that reads its answers from a list, as long as it is, then does what `gain` does, and keeps what it was told. */
typedef struct script {
    rudder_verdict_t verdict[MAX_POINTS];
    int64_t n_verdicts;
    rudder_context_t context[MAX_POINTS];
    int64_t asked;
    int64_t rows[MAX_MINIBATCHES], start_rows; /* fetched in each minibatch */
    rudder_stats_t stats;
} script_t;

static rudder_status_t script_decide(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    script_t *script = self;
    script->context[script->asked] = *context;
    answer->verdict = script->asked < script->n_verdicts          ? script->verdict[script->asked]
                      : context->saving_rows > context->cost_rows ? RUDDER_REPLACE
                                                                  : RUDDER_KEEP;
    script->asked++;
    return RUDDER_OK;
}

/* decider NULL: the script decides, every `interval` minibatches. */
static void play(const run_t *run, const char *decider, int64_t interval, script_t *script)
{
    rudder_decider_t table = {.size = sizeof table,
                              .name = "script",
                              .flags = RUDDER_DECIDER_INLINE,
                              .self = script,
                              .interval = interval,
                              .decide = script_decide};
    rudder_config_t config = run->config;
    rudder_error_t error = {0};
    rudder_t *handle;
    rudder_plan_t *plan;
    const int64_t *fetch;
    int64_t miss, fill;
    unsigned char *rows = calloc(UNIVERSE + MAX_IDS, run->type.row_bytes), *out = malloc(MAX_IDS * run->type.row_bytes);
    assert_true(rows != NULL && out != NULL);
    config.decider = decider;
    config.decider_table = decider == NULL ? &table : NULL;
    script->asked = 0;
    if (rudder_open(&config, &handle, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(rudder_plan_start(handle, 0, &plan, NULL), RUDDER_OK);
    rudder_plan_fetch(plan, &fetch, &miss, &fill);
    assert_int_equal(rudder_fill(handle, plan, rows, run->type.row_bytes, fill, NULL), RUDDER_OK);
    script->start_rows = fill;
    for (int64_t t = 0; t < run->trace.n_minibatches; t++) {
        assert_int_equal(rudder_plan_begin(handle, 0, run->ids + run->offsets[t], run->offsets[t + 1] - run->offsets[t],
                                           &plan, NULL),
                         RUDDER_OK);
        rudder_plan_fetch(plan, &fetch, &miss, &fill);
        assert_int_equal(rudder_complete(handle, plan, rows, run->type.row_bytes, out, NULL), RUDDER_OK);
        if (fill > 0) {
            assert_int_equal(rudder_fill(handle, plan, rows, run->type.row_bytes, fill, NULL), RUDDER_OK);
        }
        script->rows[t] = miss + fill;
    }
    rudder_stats_get(handle, &script->stats, sizeof script->stats);
    rudder_close(handle, 0);
    free(rows);
    free(out);
}

static int64_t rows_of(const script_t *script, int64_t from, int64_t n)
{
    int64_t rows = 0;
    for (int64_t t = from; t < from + n; t++) {
        rows += script->rows[t];
    }
    return rows;
}

/* ---- The oracle's points ---------------------------------------------------------------------------------------- */

typedef struct told {
    oracle_point_t point[MAX_POINTS];
    int64_t n;
} told_t;

static void tell(void *context, const oracle_point_t *point)
{
    told_t *told = context;
    told->point[told->n++] = *point;
}

static oracle_result_t ask(const run_t *run, const char *who, told_t *told)
{
    oracle_result_t result;
    rudder_error_t error = {0};
    told->n = 0;
    if (oracle_run(&run->setup, who, tell, told, &result, &error) != RUDDER_OK) {
        fail_msg("%s: %s", who, error.text);
    }
    return result;
}

/* What the library tells a decider, apart from times: the oracle's are those of its clock. */
static void assert_same_context(const rudder_context_t *a, const rudder_context_t *b)
{
    rudder_context_t x = *a, y = *b;
    x.t_sample = x.t_fetch = x.t_wait = x.t_compute = 0;
    y.t_sample = y.t_fetch = y.t_wait = y.t_compute = 0;
    assert_memory_equal(&x, &y, sizeof x);
}

static void check_point(const run_t *run, const told_t *told, int64_t i, int64_t interval)
{
    static script_t script;
    const oracle_point_t *point = &told->point[i];
    const int64_t t = (i + 1) * interval - 1, left = run->trace.n_minibatches - 1 - t;
    const int64_t wanted = run->setup.horizon > 0 ? run->setup.horizon : ORACLE_PERIODS * (int64_t)run->config.period;
    assert_int_equal(point->context.minibatch, t + 1);
    assert_int_equal(point->horizon, wanted < left ? wanted : left);
    memset(&script, 0, sizeof script);
    for (int64_t j = 0; j < i; j++) {
        script.verdict[j] = told->point[j].taken;
    }
    script.n_verdicts = i + 1;
    play(run, NULL, interval, &script);
    assert_int_equal(point->keep.rows, rows_of(&script, t, point->horizon + 1));
    assert_same_context(&point->context, &script.context[i]);
    script.verdict[i] = RUDDER_REPLACE;
    play(run, NULL, interval, &script);
    assert_int_equal(point->replace.rows, rows_of(&script, t, point->horizon + 1));
    assert_int_equal(point->label, point->replace.rows < point->keep.rows ? RUDDER_REPLACE : RUDDER_KEEP);
}

/* The result says what its points say, and what a run through the public API with the same decisions fetches. */
static void check_result(const run_t *run, const told_t *told, const oracle_result_t *result, int64_t interval)
{
    static script_t script;
    int64_t agreed = 0, replaced = 0, regret = 0, stake = 0;
    memset(&script, 0, sizeof script);
    for (int64_t i = 0; i < told->n; i++) {
        const oracle_point_t *p = &told->point[i];
        const int64_t fewest = p->keep.rows < p->replace.rows ? p->keep.rows : p->replace.rows;
        script.verdict[i] = p->taken;
        agreed += p->taken == p->label;
        replaced += p->taken == RUDDER_REPLACE;
        regret += (p->taken == RUDDER_REPLACE ? p->replace.rows : p->keep.rows) - fewest;
        stake += p->keep.rows + p->replace.rows - 2 * fewest;
    }
    script.n_verdicts = told->n;
    play(run, NULL, interval, &script);
    assert_int_equal(result->points, run->trace.n_minibatches / interval);
    assert_int_equal(told->n, result->points);
    assert_int_equal(script.asked, result->points);
    assert_int_equal(result->agreed, agreed);
    assert_int_equal(result->replaced, replaced);
    assert_int_equal(result->regret_rows, regret);
    assert_int_equal(result->stake_rows, stake);
    assert_int_equal(result->unanswered, 0);
    assert_int_equal(result->fetched_rows, script.stats.fetched_rows);
    assert_int_equal(result->fill_rows, script.stats.fill_rows);
    assert_int_equal(result->remote_rows, script.stats.remote_rows);
    assert_int_equal(result->fetched_rows, script.start_rows + rows_of(&script, 0, run->trace.n_minibatches));
}

static void test_ways_equal_brute_force(void **state)
{
    static run_t run;
    static told_t told;
    static const char *const names[] = {"never", "once", "gain", "fixed:3", "fixed:1", "better", "worse"};
    int64_t labels[2] = {0};
    (void)state;
    for (int i = 0; i < 150; i++) {
        random_state = (uint64_t)i;
        make_run(&run, MAX_MINIBATCHES);
        const char *who = names[i % 7];
        const int64_t interval = strncmp(who, "fixed:", 6) == 0 ? who[6] - '0' : run.config.period;
        const oracle_result_t result = ask(&run, who, &told);
        for (int64_t p = 0; p < told.n; p++) {
            check_point(&run, &told, p, interval);
            labels[told.point[p].label]++;
        }
        check_result(&run, &told, &result, interval);
    }
    assert_true(labels[RUDDER_KEEP] > 100 && labels[RUDDER_REPLACE] > 100); /* the runs are not one-sided */
}

/* Each rule fetches what it does in the library, and says there what it says here. */
static void test_rules_as_in_the_library(void **state)
{
    static run_t run;
    static told_t told;
    static script_t script;
    static const char *const names[] = {"never", "once", "gain", "fixed:2", "fixed:16"};
    (void)state;
    for (int i = 0; i < 200; i++) {
        random_state = 1000 + (uint64_t)i;
        make_run(&run, MAX_MINIBATCHES);
        const oracle_result_t result = ask(&run, names[i % 5], &told);
        play(&run, names[i % 5], 0, &script);
        assert_int_equal(result.fetched_rows, script.stats.fetched_rows);
        assert_int_equal(result.fill_rows, script.stats.fill_rows);
        assert_int_equal(result.hit_rows, script.stats.hit_rows);
        assert_int_equal(result.points, script.stats.asked);
        assert_int_equal(result.replaced, script.stats.replaced + script.stats.nothing_stale);
    }
}

/* The better way is never regretted, the worse one always; and at each point the decision has no other outcomes. */
static void test_own_answers(void **state)
{
    static run_t run;
    static told_t told;
    (void)state;
    for (int i = 0; i < 100; i++) {
        random_state = 2000 + (uint64_t)i;
        make_run(&run, MAX_MINIBATCHES);
        oracle_result_t result = ask(&run, "better", &told);
        assert_int_equal(result.regret_rows, 0);
        assert_int_equal(result.agreed, result.points);
        assert_int_equal(result.agreed_clear, result.clear);
        result = ask(&run, "worse", &told);
        assert_int_equal(result.regret_rows, result.stake_rows);
        assert_int_equal(result.agreed, 0);
    }
}

/*
 * What is guaranteed: with a horizon to the end each decision is measured against going on as `gain` would, so following the
 * better way never fetches more than `gain`, and following the worse never less. With a shorter one that may fail.
 */
static void test_guarantee(void **state)
{
    static run_t run;
    static told_t told;
    int64_t gained = 0;
    (void)state;
    for (int i = 0; i < 200; i++) {
        random_state = 3000 + (uint64_t)i;
        make_run(&run, MAX_MINIBATCHES);
        run.setup.horizon = INT64_MAX;
        const int64_t gain = ask(&run, "gain", &told).fetched_rows;
        const int64_t better = ask(&run, "better", &told).fetched_rows;
        const int64_t worse = ask(&run, "worse", &told).fetched_rows;
        assert_true(better <= gain && gain <= worse);
        gained += gain - better;
    }
    assert_true(gained > 0);
}

/* ---- Search ----------------------------------------------------------------------------------------------------- */

static int64_t search(const run_t *run, int sign, int32_t width)
{
    int64_t fetched = -1;
    rudder_error_t error = {0};
    if (oracle_search(&run->setup, sign, width, &fetched, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    return fetched;
}

/* As wide as there are sequences, the search is exhaustive. As narrow as one, it follows the oracle's answer. */
static void test_search(void **state)
{
    static run_t run;
    static told_t told;
    static script_t script;
    (void)state;
    for (int i = 0; i < 60; i++) {
        random_state = 4000 + (uint64_t)i;
        make_run(&run, 24);
        run.config.period = 5;
        const int64_t points = run.trace.n_minibatches / 5;
        int64_t best = INT64_MAX, worst = 0;
        for (int64_t sequence = 0; sequence < (int64_t)1 << points; sequence++) {
            for (int64_t p = 0; p < points; p++) {
                script.verdict[p] = sequence >> p & 1 ? RUDDER_REPLACE : RUDDER_KEEP;
            }
            script.n_verdicts = points;
            play(&run, NULL, 0, &script);
            best = script.stats.fetched_rows < best ? script.stats.fetched_rows : best;
            worst = script.stats.fetched_rows > worst ? script.stats.fetched_rows : worst;
        }
        assert_int_equal(search(&run, 1, 1 << points), best);
        assert_int_equal(search(&run, -1, 1 << points), worst);
        const int64_t narrow = search(&run, 1, 1);
        assert_true(best <= narrow);
        run.setup.horizon = INT64_MAX;
        assert_true(search(&run, 1, 1) <= ask(&run, "gain", &told).fetched_rows);
        assert_true(search(&run, -1, 1) >= ask(&run, "gain", &told).fetched_rows);
    }
}

/* ---- Edges ------------------------------------------------------------------------------------------------------ */

static void test_edges(void **state)
{
    static run_t run;
    static told_t told;
    rudder_error_t error = {0};
    oracle_result_t result;
    int64_t bytes = 0, wide = 0, fetched;
    (void)state;
    random_state = 5000;
    do {
        make_run(&run, MAX_MINIBATCHES);
    } while (run.trace.n_minibatches < 8);
    run.config.policy_table = NULL;
    run.config.period = 100; /* longer than the trace: nothing is ever decided */
    result = ask(&run, "better", &told);
    assert_int_equal(result.points, 0);
    assert_int_equal(result.fetched_rows, ask(&run, "never", &told).fetched_rows);
    assert_int_equal(search(&run, -1, 2), result.fetched_rows);

    run.config.period =
        (int32_t)run.trace.n_minibatches; /* one point, in the last minibatch: a replacement only costs */
    result = ask(&run, "better", &told);
    assert_int_equal(result.points, 1);
    assert_int_equal(told.point[0].horizon, 0);
    assert_int_equal(told.point[0].label, RUDDER_KEEP);
    assert_true(told.point[0].replace.rows >= told.point[0].keep.rows);

    run.config.period = 2;
    run.type.capacity_rows = 0;
    result = ask(&run, "fixed:2", &told);
    assert_int_equal(result.fetched_rows, result.remote_rows);
    assert_int_equal(result.stake_rows, 0);
    assert_int_equal(result.clear, 0);

    run.trace.n_minibatches = 0;
    assert_int_equal(ask(&run, "gain", &told).points, 0);

    assert_int_equal(oracle_memory(&run.setup, 0, &bytes, &error), RUDDER_OK);
    assert_int_equal(oracle_memory(&run.setup, 2, &wide, &error), RUDDER_OK);
    assert_true(bytes > 0 && wide > 3 * bytes);

    assert_int_equal(oracle_run(&run.setup, "fixed:0", NULL, NULL, &result, &error), RUDDER_E_ARGUMENT);
    assert_int_equal(oracle_run(&run.setup, "sometimes", NULL, NULL, &result, &error), RUDDER_E_NAME);
    run.config.policy = "static";
    assert_int_equal(oracle_run(&run.setup, "better", NULL, NULL, &result, &error), RUDDER_E_UNSUPPORTED);
    assert_int_equal(oracle_search(&run.setup, 1, 1, &fetched, &error), RUDDER_E_UNSUPPORTED);
    assert_non_null(strstr(error.text, "static"));
    run.config.policy = "scroe";
    assert_int_equal(oracle_run(&run.setup, "better", NULL, NULL, &result, &error), RUDDER_E_NAME);
}

/* A decider that cannot be asked at all is an error, not a run that the fall-back rule decided. */
static void test_dead_decider(void **state)
{
    static run_t run;
    rudder_error_t error = {0};
    oracle_result_t result;
    (void)state;
    random_state = 6000;
    do {
        make_run(&run, MAX_MINIBATCHES);
    } while (run.trace.n_minibatches < 8);
    run.config.agent.program = "/nonexistent/rudder";
    run.config.agent.model = "/nonexistent/model.gguf";
    run.config.deadline_ms = 200;
    const rudder_status_t status = oracle_run(&run.setup, "llm", NULL, NULL, &result, &error);
    assert_true(status == RUDDER_E_AGENT || status == RUDDER_E_DEADLINE);
    assert_non_null(strstr(error.text, "llm"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways_equal_brute_force),
        cmocka_unit_test(test_rules_as_in_the_library),
        cmocka_unit_test(test_own_answers),
        cmocka_unit_test(test_guarantee),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_dead_decider),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
