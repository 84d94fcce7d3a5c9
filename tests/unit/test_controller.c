/*
 * The controller against brute force: what deciders are told, when they are asked, what becomes of their answers. The slow
 * decider of these tests answers when the test says so, never after a time.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "control/controller.h"
#include "decide/decide.h"

enum { MOST = 4096 /* minibatches in one run */ };

/* What one minibatch did. */
typedef struct minibatch {
    int64_t remote, hit, miss, fill;
} minibatch_t;

/* One run: the controller, everything that was fed to it, everything that came out. */
typedef struct run {
    controller_config_t config;
    rudder_decider_t decider, fallback;
    void *memory;
    controller_t *controller;
    minibatch_t fed[MOST];
    int64_t t; /* minibatches so far */
    int64_t fill_before_start;
    rudder_decision_t log[MOST];
    int64_t logged;
    char messages[4][512];
    int n_messages;
    uint64_t random;
    double now; /* of simulated time */
} run_t;

static uint64_t next_random(run_t *run, uint64_t below)
{
    run->random = run->random * 6364136223846793005u + 1442695040888963407u;
    return (run->random >> 33) % below;
}

static void log_decision(void *context, const rudder_decision_t *decision)
{
    run_t *run = context;
    assert_int_equal(decision->number, run->logged);
    assert_int_equal(decision->size, sizeof *decision);
    run->log[run->logged++] = *decision;
}

static void log_message(void *context, const char *text)
{
    run_t *run = context;
    assert_true(run->n_messages < 4);
    snprintf(run->messages[run->n_messages++], sizeof run->messages[0], "%s", text);
}

/* Depends on the minibatch alone, so that a test can work it out again. */
static rudder_outlook_t outlook_at(int64_t minibatch)
{
    return (rudder_outlook_t){.stale = minibatch % 50,
                              .candidates = minibatch % 70,
                              .swaps = minibatch % 40,
                              .cost = minibatch % 30,
                              .saving_per_minibatch = (double)(minibatch % 7) / 2};
}

static void tell_outlook(void *context, rudder_outlook_t *outlook)
{
    *outlook = outlook_at(((const run_t *)context)->t);
}

static rudder_status_t always_replace(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    (void)self;
    (void)context;
    answer->verdict = RUDDER_REPLACE;
    return RUDDER_OK;
}

static run_t *new_run(const rudder_decider_t *decider)
{
    run_t *run = calloc(1, sizeof *run);
    assert_non_null(run);
    run->random = 1;
    run->decider = *decider;
    run->fallback = (rudder_decider_t){
        .size = sizeof run->fallback, .name = "rule", .flags = RUDDER_DECIDER_INLINE, .decide = always_replace};
    run->config = (controller_config_t){.mode = RUDDER_ASYNC,
                                        .period = 4,
                                        .deadline_ms = 60000,
                                        .late_after = 1000,
                                        .replaces = 1,
                                        .decider = &run->decider,
                                        .fallback = &run->fallback,
                                        .row_bytes = 400,
                                        .capacity = 100,
                                        .facts = {.graph = "test", .nodes = 5000000000, .ranks = 4, .rank = 2},
                                        .on_decision = log_decision,
                                        .on_message = log_message,
                                        .callback_context = run};
    return run;
}

static void open_run(run_t *run)
{
    rudder_error_t error = {0};
    const size_t bytes = (size_t)controller_memory(&run->config);
    assert_true(bytes % 64 == 0);
    run->memory = aligned_alloc(64, bytes);
    assert_non_null(run->memory);
    memset(run->memory, 0, bytes);
    assert_int_equal(controller_open(&run->config, run->memory, &run->controller, &error), RUDDER_OK);
}

static void close_run(run_t *run, int32_t timeout_ms)
{
    controller_close(run->controller, timeout_ms);
    free(run->memory);
}

static rudder_stats_t stats_of(const run_t *run)
{
    rudder_stats_t stats = {0};
    controller_stats(run->controller, &stats);
    return stats;
}

/* Every question has exactly one end, apart from one in flight. */
static void check_sums(const run_t *run, int in_flight)
{
    const rudder_stats_t stats = stats_of(run);
    assert_int_equal(stats.applied, stats.replaced + stats.kept + stats.nothing_stale);
    assert_int_equal(stats.asked, stats.applied + stats.invalid + stats.late + stats.failed + in_flight);
}

/* A minibatch of `remote` rows with `hit` hits; `entered` rows enter if a replacement is due. Returns 1 if it was. */
static int feed(run_t *run, int64_t remote, int64_t hit, int64_t entered, int64_t fill)
{
    minibatch_t *minibatch = &run->fed[run->t];
    *minibatch = (minibatch_t){.remote = remote, .hit = hit, .miss = remote - hit};
    const int replace = controller_minibatch(run->controller, remote, hit, minibatch->miss, tell_outlook, run);
    if (replace) {
        minibatch->fill = fill;
        controller_replaced(run->controller, entered, fill);
    }
    run->t++;
    return replace;
}

static int feed_random(run_t *run)
{
    /* Windows without any remote row, and steady ones, are in the mix. */
    const int64_t remote = run->t / 12 % 5 == 0 ? 0 : run->t / 12 % 5 == 1 ? 100 : (int64_t)next_random(run, 1000);
    const int64_t hit = remote == 100 ? 50 : remote > 0 ? (int64_t)next_random(run, (uint64_t)remote + 1) : 0;
    const int64_t entered = (int64_t)next_random(run, 20);
    return feed(run, remote, hit, entered, entered > 0 ? (int64_t)next_random(run, (uint64_t)entered) : 0);
}

/* ---- what deciders are told, and what is found to have followed: from sums over all that was fed ---- */

/* Window w, counted anew. Fill rows of minibatch t are fetched after its counts were taken: they belong to t + 1. */
static minibatch_t window_of(const run_t *run, int64_t w)
{
    minibatch_t sum = {.fill = w == 0 ? run->fill_before_start : 0};
    for (int64_t t = w * run->config.period; t < (w + 1) * run->config.period; t++) {
        sum.remote += run->fed[t].remote;
        sum.hit += run->fed[t].hit;
        sum.miss += run->fed[t].miss;
        sum.fill += t > 0 ? run->fed[t - 1].fill : 0;
    }
    return sum;
}

static double rate_of(const run_t *run, int64_t w)
{
    const minibatch_t window = window_of(run, w);
    return window.remote > 0 ? (double)window.hit / (double)window.remote : 0;
}

static double fetched_of(const run_t *run, int64_t w)
{
    const minibatch_t window = window_of(run, w);
    return (double)(window.miss + window.fill) / (double)run->config.period;
}

static void check_double(double found, double expected)
{
    assert_true(fabs(found - expected) <= 1e-12 * (1 + fabs(expected)));
}

static void check_trends(const run_t *run, const rudder_context_t *context, int64_t last)
{
    double rates = 0, fetched = 0;
    int n_rates = 0, n_fetched = 0;
    for (int64_t w = last - 4; w < last; w++) {
        if (w >= 0) {
            n_fetched++;
            fetched += fetched_of(run, w);
            if (window_of(run, w).remote > 0) {
                n_rates++;
                rates += rate_of(run, w);
            }
        }
    }
    const int has_rate = n_rates > 0 && window_of(run, last).remote > 0;
    check_double(context->hit_rate_trend, has_rate ? rate_of(run, last) - rates / n_rates : 0);
    if (n_fetched == 0 || fetched == 0) {
        assert_true(context->fetched_trend == (n_fetched > 0 && fetched_of(run, last) > 0 ? 1 : 0));
    } else {
        check_double(context->fetched_trend, (fetched_of(run, last) - fetched / n_fetched) / (fetched / n_fetched));
    }
}

/* context was built when `asked` minibatches had been fed. */
static void check_context(const run_t *run, const rudder_context_t *context)
{
    const int64_t asked = context->minibatch, last = asked / run->config.period - 1;
    const minibatch_t window = last >= 0 ? window_of(run, last) : (minibatch_t){0};
    const rudder_outlook_t outlook = outlook_at(asked - 1);
    int64_t remote = 0, hit = 0;
    for (int64_t t = 0; t < asked; t++) {
        remote += run->fed[t].remote;
        hit += run->fed[t].hit;
    }
    assert_int_equal(context->size, sizeof *context);
    assert_int_equal(context->period, run->config.period);
    assert_int_equal(context->window_minibatches, last >= 0 ? run->config.period : 0);
    assert_int_equal(context->remote_rows, window.remote);
    assert_int_equal(context->hit_rows, window.hit);
    assert_int_equal(context->miss_rows, window.miss);
    assert_int_equal(context->fill_rows, window.fill);
    check_double(context->hit_rate_total, remote > 0 ? (double)hit / (double)remote : 0);
    if (last >= 0) {
        check_double(context->hit_rate, rate_of(run, last));
        check_double(context->fetched_per_minibatch, fetched_of(run, last));
        check_trends(run, context, last);
    }
    const int64_t length = run->config.minibatches;
    assert_int_equal(context->minibatches_left, length == 0 ? -1 : length > asked ? length - asked : 0);
    const int64_t horizon = context->minibatches_left < 0 ? run->config.period : context->minibatches_left;
    assert_int_equal(context->stale, outlook.stale);
    assert_int_equal(context->candidates, outlook.candidates);
    assert_int_equal(context->swaps, outlook.swaps);
    check_double(context->stale_share, (double)outlook.stale / (double)run->config.capacity);
    check_double(context->saving_per_minibatch, outlook.saving_per_minibatch);
    check_double(context->saving_rows, outlook.saving_per_minibatch * (double)horizon);
    check_double(context->cost_rows, (double)outlook.cost);
    assert_int_equal(context->capacity, run->config.capacity);
    assert_int_equal(context->row_bytes, run->config.row_bytes);
    assert_memory_equal(&context->facts, &run->config.facts, sizeof context->facts);
}

/* The last decisions before number `before`, as the context told them, against the log. */
static void check_history(const run_t *run, const rudder_context_t *context, int64_t before)
{
    assert_int_equal(context->n_history, before < RUDDER_HISTORY ? before : RUDDER_HISTORY);
    for (int64_t i = 0; i < context->n_history; i++) {
        const rudder_outcome_t *told = &context->history[i], *found = &run->log[before - 1 - i].outcome;
        assert_int_equal(told->status, found->status);
        assert_int_equal(told->minibatch, found->minibatch);
        assert_int_equal(told->replaced_rows, found->replaced_rows);
        /* What followed was told exactly when the window after it was over. */
        const int64_t period = run->config.period;
        const int64_t after = (told->minibatch + period - 1) / period;
        const int known = told->minibatch >= period && context->minibatch >= (after + 1) * period;
        assert_int_equal(told->known, known);
        if (known) {
            check_double(told->hit_rate_change, found->hit_rate_change);
            check_double(told->fetched_change, found->fetched_change);
        }
    }
}

static int direction(double change, double band)
{
    return change > band ? RUDDER_UP : change < -band ? RUDDER_DOWN : RUDDER_SAME;
}

static void check_effect(const run_t *run, const rudder_decision_t *decision)
{
    const int64_t period = run->config.period, applied = decision->applied_minibatch;
    const int64_t before = applied / period - 1, after = (applied + period - 1) / period;
    const int known = before >= 0 && (after + 1) * period <= run->t;
    assert_int_equal(decision->outcome.known, known);
    assert_int_equal(decision->outcome.minibatch, applied);
    if (!known) {
        assert_int_equal(decision->prediction_hits_true, -1);
        assert_int_equal(decision->prediction_rows_true, -1);
        return;
    }
    const double rows = fetched_of(run, after) - fetched_of(run, before);
    const double rate = rate_of(run, after) - rate_of(run, before);
    const double share = fetched_of(run, before) > 0 ? rows / fetched_of(run, before) : rows;
    check_double(decision->outcome.hit_rate_change, rate);
    check_double(decision->outcome.fetched_change, rows);
    if (decision->answer.predict_hits == RUDDER_NO_PREDICTION) {
        assert_int_equal(decision->prediction_hits_true, -1);
    } else {
        assert_int_equal(decision->prediction_hits_true, decision->answer.predict_hits == direction(rate, .01));
    }
    if (decision->answer.predict_rows == RUDDER_NO_PREDICTION) {
        assert_int_equal(decision->prediction_rows_true, -1);
    } else {
        assert_int_equal(decision->prediction_rows_true, decision->answer.predict_rows == direction(share, .03));
    }
}

/* An inline decider that answers and predicts something else each time. */
static rudder_status_t vary(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    uint64_t *random = self;
    assert_int_equal(answer->size, sizeof *answer);
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    answer->verdict = *random >> 40 & 1 ? RUDDER_REPLACE : RUDDER_KEEP;
    answer->predict_hits = (int32_t)(*random >> 45 & 7) - 2; /* out of range: none made */
    answer->predict_rows = (int32_t)(*random >> 50 & 3) - 1;
    answer->tokens = (int32_t)context->minibatch;
    return RUDDER_OK;
}

static void check_against_brute_force(int32_t period, int64_t interval, int64_t minibatches)
{
    uint64_t random = (uint64_t)period * 77 + 5;
    const rudder_decider_t decider = {.size = sizeof decider,
                                      .name = "vary",
                                      .flags = RUDDER_DECIDER_INLINE,
                                      .self = &random,
                                      .interval = interval,
                                      .decide = vary};
    run_t *run = new_run(&decider);
    run->config.period = period;
    run->config.minibatches = minibatches;
    open_run(run);
    run->fill_before_start = 33;
    controller_started(run->controller, 33);
    for (int64_t t = 0; t < 600; t++) {
        feed_random(run);
    }
    check_sums(run, 0);
    const rudder_stats_t stats = stats_of(run);
    const int64_t windows = 600 / period;
    assert_int_equal(stats.asked, 600 / (interval > 0 ? interval : period));
    assert_int_equal(stats.window_remote_rows, windows > 0 ? window_of(run, windows - 1).remote : 0);
    assert_int_equal(stats.window_hit_rows, windows > 0 ? window_of(run, windows - 1).hit : 0);
    close_run(run, 0);
    assert_int_equal(run->logged, stats.asked);
    int64_t count[6] = {0};
    for (int64_t k = 0; k < run->logged; k++) {
        const rudder_decision_t *decision = &run->log[k];
        assert_int_equal(decision->asked_minibatch, (k + 1) * (interval > 0 ? interval : period));
        assert_int_equal(decision->answered_minibatch, decision->asked_minibatch);
        assert_int_equal(decision->applied_minibatch, decision->asked_minibatch);
        assert_int_equal(decision->context.minibatch, decision->asked_minibatch);
        check_context(run, &decision->context);
        if (interval == 0) {
            check_history(run, &decision->context, k);
            check_effect(run, decision);
        }
        count[decision->outcome.status]++;
    }
    assert_int_equal(count[RUDDER_REPLACED], stats.replaced);
    assert_int_equal(count[RUDDER_KEPT], stats.kept);
    assert_int_equal(count[RUDDER_NOTHING_STALE], stats.nothing_stale);
    free(run);
}

static void test_brute_force(void **state)
{
    (void)state;
    static const int32_t periods[] = {1, 2, 3, 16, 299, 300, 601};
    for (size_t p = 0; p < sizeof periods / sizeof periods[0]; p++) {
        check_against_brute_force(periods[p], 0, 0);
        check_against_brute_force(periods[p], 0, 600);
        check_against_brute_force(periods[p], 0, 250); /* the run is longer than was said */
        check_against_brute_force(periods[p], 5, 600);
        check_against_brute_force(periods[p], 1, 5000000000);
    }
}

static void test_times(void **state)
{
    (void)state;
    uint64_t random = 3;
    const rudder_decider_t decider = {
        .size = sizeof decider, .name = "vary", .flags = RUDDER_DECIDER_INLINE, .self = &random, .decide = vary};
    run_t *run = new_run(&decider);
    open_run(run);
    for (int64_t t = 0; t < 12; t++) {
        const rudder_times_t times = {.sample = (double)t, .fetch = 2, .wait = 4 + (double)t, .compute = .5};
        if (t != 5) { /* one report is missing */
            controller_times(run->controller, &times);
        }
        feed(run, 10, 5, 0, 0);
    }
    close_run(run, 0);
    assert_int_equal(run->logged, 3);
    check_double(run->log[0].context.t_sample, (0 + 1 + 2 + 3) / 4.);
    check_double(run->log[1].context.t_sample, (4 + 6 + 7) / 3.);
    check_double(run->log[1].context.t_wait, 4 + (4 + 6 + 7) / 3.);
    check_double(run->log[2].context.t_fetch, 2);
    check_double(run->log[2].context.t_compute, .5);
    free(run);
}

/* A policy without replacements: windows are counted, nobody is asked, no thread is needed. */
static void test_policy_without_replacements(void **state)
{
    (void)state;
    const rudder_decider_t none = {0};
    run_t *run = new_run(&none);
    run->config.replaces = 0;
    run->config.decider = run->config.fallback = NULL;
    open_run(run);
    for (int64_t t = 0; t < 9; t++) {
        assert_false(feed(run, 100, t, 1, 1));
    }
    const rudder_stats_t stats = stats_of(run);
    assert_int_equal(stats.window_remote_rows, 400);
    assert_int_equal(stats.window_hit_rows, 4 + 5 + 6 + 7);
    assert_int_equal(stats.asked + stats.fallback, 0);
    close_run(run, 0);
    assert_int_equal(run->logged, 0);
    free(run);
}

/* ---- aborted plans ---- */

static void test_abort(void **state)
{
    (void)state;
    uint64_t random = 11;
    const rudder_decider_t decider = {
        .size = sizeof decider, .name = "vary", .flags = RUDDER_DECIDER_INLINE, .self = &random, .decide = vary};
    run_t *straight = new_run(&decider), *crooked = new_run(&decider);
    uint64_t random_again = 11;
    crooked->decider.self = &random_again;
    open_run(straight);
    open_run(crooked);
    for (int64_t t = 0; t < 400; t++) {
        const int replaced = feed(straight, 100, t % 100, t % 3, t % 2);
        for (uint64_t aborts = next_random(crooked, 3); aborts > 0; aborts--) {
            controller_mark_t mark;
            controller_mark(crooked->controller, &mark);
            /* The plan that is undone may have found other rows: only what stays counts. */
            assert_int_equal(feed(crooked, 55, 44, 7, 7), replaced);
            controller_rewind(crooked->controller, &mark, replaced);
            crooked->t--;
        }
        assert_int_equal(feed(crooked, 100, t % 100, t % 3, t % 2), replaced);
    }
    const rudder_stats_t a = stats_of(straight), b = stats_of(crooked);
    check_sums(crooked, 0);
    assert_int_equal(b.asked, a.asked);
    assert_int_equal(b.replaced, a.replaced);
    assert_int_equal(b.nothing_stale, a.nothing_stale);
    assert_int_equal(b.kept, a.kept);
    assert_int_equal(b.window_hit_rows, a.window_hit_rows);
    close_run(straight, 0);
    close_run(crooked, 0);
    assert_int_equal(crooked->logged, straight->logged);
    for (int64_t k = 0; k < straight->logged; k++) {
        assert_int_equal(crooked->log[k].outcome.status, straight->log[k].outcome.status);
        assert_int_equal(crooked->log[k].outcome.replaced_rows, straight->log[k].outcome.replaced_rows);
        assert_int_equal(crooked->log[k].applied_minibatch, straight->log[k].applied_minibatch);
    }
    free(straight);
    free(crooked);
}

/* ---- a decider that answers as a script says ---- */

typedef struct script {
    const char *steps; /* one letter an answer; the last one is repeated */
    int64_t asked;
    int64_t asked_at[MOST];
} script_t;

static rudder_status_t follow(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    script_t *script = self;
    const size_t n = strlen(script->steps), at = (size_t)script->asked;
    const char step = script->steps[at < n ? at : n - 1];
    script->asked_at[script->asked++] = context->minibatch;
    answer->verdict = step == 'y' ? RUDDER_REPLACE : step == 'n' ? RUDDER_KEEP : RUDDER_NO_VERDICT;
    if (step == '7') {
        answer->verdict = (rudder_verdict_t)7;
    }
    memset(answer->prompt, 'p', sizeof answer->prompt); /* not terminated */
    memset(answer->explanation, 'e', sizeof answer->explanation);
    return step == 'f' ? RUDDER_E_AGENT : step == 'd' ? RUDDER_E_DEADLINE : RUDDER_OK;
}

static rudder_decider_t scripted(script_t *script, const char *steps, int is_inline)
{
    *script = (script_t){.steps = steps};
    return (rudder_decider_t){.size = sizeof(rudder_decider_t),
                              .name = "script",
                              .flags = is_inline ? RUDDER_DECIDER_INLINE : 0,
                              .self = script,
                              .decide = follow};
}

static void test_answers_and_their_counts(void **state)
{
    (void)state;
    /* Inline in both modes, and by the worker in sync mode: the same course. */
    for (int way = 0; way < 3; way++) {
        static const char steps[] = "yn7yf?nd";
        static const rudder_outcome_status_t expected[] = {RUDDER_REPLACED, RUDDER_KEPT,   RUDDER_INVALID,
                                                           RUDDER_REPLACED, RUDDER_FAILED, RUDDER_INVALID,
                                                           RUDDER_REPLACED, RUDDER_KEPT,   RUDDER_LATE};
        /* After two failures in a row one question is left out: decision 6 is the fall-back's, nobody was asked. */
        script_t script;
        const rudder_decider_t decider = scripted(&script, steps, way < 2);
        run_t *run = new_run(&decider);
        run->config.mode = way == 0 ? RUDDER_ASYNC : RUDDER_SYNC;
        open_run(run);
        for (int64_t t = 0; t < 36; t++) {
            feed(run, 10, 5, 3, 1);
        }
        check_sums(run, 0);
        const rudder_stats_t stats = stats_of(run);
        assert_int_equal(stats.asked, 8);
        assert_int_equal(stats.answered, 6);
        assert_int_equal(stats.replaced, 2);
        assert_int_equal(stats.kept, 2);
        assert_int_equal(stats.invalid, 2);
        assert_int_equal(stats.failed, 1);
        assert_int_equal(stats.late, 1);
        assert_int_equal(stats.fallback, 5);
        assert_true(stats.latency_p50_ms >= 0 && stats.latency_p99_ms >= stats.latency_p50_ms);
        close_run(run, 0);
        assert_int_equal(run->logged, 9);
        for (int64_t k = 0; k < 9; k++) {
            const rudder_decision_t *decision = &run->log[k];
            const int from_rule = expected[k] >= RUDDER_INVALID || k == 6;
            assert_int_equal(decision->outcome.status, expected[k]);
            assert_int_equal(decision->from_fallback, from_rule);
            assert_int_equal(decision->applied_minibatch, 4 * (k + 1));
            assert_int_equal(decision->asked_minibatch, k == 6 ? -1 : 4 * (k + 1));
            /* The rule of these tests always replaces. */
            assert_int_equal(decision->outcome.replaced_rows, expected[k] == RUDDER_KEPT ? 0 : 3);
            assert_true(memchr(decision->answer.prompt, '\0', sizeof decision->answer.prompt) != NULL);
            assert_true(memchr(decision->answer.explanation, '\0', sizeof decision->answer.explanation) != NULL);
        }
        /* Told once when it failed first and once when it was back, however often it fails. */
        assert_int_equal(run->n_messages, 2);
        assert_non_null(strstr(run->messages[0], "script"));
        assert_non_null(strstr(run->messages[0], "rule"));
        assert_non_null(strstr(run->messages[1], "again"));
        free(run);
    }
}

/* A dead decider is asked ever more rarely, at the end after 64 windows; one answer brings it back. */
static void test_back_off(void **state)
{
    (void)state;
    script_t script;
    const rudder_decider_t decider = scripted(&script, "ffffffffffny", 1);
    run_t *run = new_run(&decider);
    run->config.period = 1;
    open_run(run);
    for (int64_t t = 0; t < 600; t++) {
        feed(run, 10, 5, 3, 1);
    }
    int64_t at = 1;
    for (int64_t k = 0; k < 11; k++) {
        assert_int_equal(script.asked_at[k], at);
        at += k < 6 ? 1 << k : 64;
    }
    assert_int_equal(script.asked_at[11], script.asked_at[10] + 1);
    const rudder_stats_t stats = stats_of(run);
    assert_int_equal(stats.failed, 10);
    assert_int_equal(stats.fallback, 600 - stats.applied);
    check_sums(run, 0);
    close_run(run, 0);
    assert_int_equal(run->logged, 600);
    assert_int_equal(run->n_messages, 2);
    free(run);
}

/* A fall-back rule that fails itself keeps the buffer. */
static rudder_status_t never_works(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    (void)self;
    (void)context;
    answer->verdict = RUDDER_REPLACE;
    return RUDDER_E_ARGUMENT;
}

static void test_fallback_fails(void **state)
{
    (void)state;
    script_t script;
    const rudder_decider_t decider = scripted(&script, "f", 1);
    run_t *run = new_run(&decider);
    run->fallback.decide = never_works;
    open_run(run);
    for (int64_t t = 0; t < 40; t++) {
        assert_false(feed(run, 10, 5, 3, 1));
    }
    check_sums(run, 0);
    assert_int_equal(stats_of(run).fallback, 10);
    close_run(run, 0);
    free(run);
}

/* ---- a slow decider: it answers when the test opens the gate ---- */

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int preparing, prepared;  /* it has begun to; it may end to */
    int64_t entered, allowed; /* questions that reached it; questions that may be answered */
    int cancelled;
    rudder_verdict_t verdict;
    int64_t seen[MOST]; /* context.minibatch of each question */
} gate_t;

static rudder_status_t pass_gate(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    gate_t *gate = self;
    pthread_mutex_lock(&gate->lock);
    gate->seen[gate->entered++] = context->minibatch;
    pthread_cond_broadcast(&gate->changed);
    while (gate->allowed < gate->entered && !gate->cancelled) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    answer->verdict = gate->verdict;
    answer->tokens = (int32_t)context->minibatch;
    const rudder_status_t status = gate->allowed < gate->entered ? RUDDER_E_AGENT : RUDDER_OK;
    pthread_mutex_unlock(&gate->lock);
    return status;
}

static void cancel_gate(void *self)
{
    gate_t *gate = self;
    pthread_mutex_lock(&gate->lock);
    gate->cancelled = 1;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static gate_t *new_gate(void)
{
    gate_t *gate = calloc(1, sizeof *gate);
    assert_non_null(gate);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
    gate->verdict = RUDDER_REPLACE;
    return gate;
}

static rudder_decider_t gated(gate_t *gate)
{
    return (rudder_decider_t){
        .size = sizeof(rudder_decider_t), .name = "gate", .self = gate, .decide = pass_gate, .cancel = cancel_gate};
}

/* Waits until question number n (from 1) has reached the decider. */
static void await_question(gate_t *gate, int64_t n)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->entered < n) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

static void allow(gate_t *gate, int64_t n)
{
    pthread_mutex_lock(&gate->lock);
    gate->allowed = n;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static int64_t entered(gate_t *gate)
{
    pthread_mutex_lock(&gate->lock);
    const int64_t n = gate->entered;
    pthread_mutex_unlock(&gate->lock);
    return n;
}

/*
 * Plans the next minibatch again and again, aborting it, until an answer has arrived in it; so the test knows the
 * minibatch in which it arrives. The minibatch is no end of a window. Returns 1 when it replaces.
 */
static int feed_until_answered(run_t *run)
{
    const int64_t before = stats_of(run).answered;
    assert_int_not_equal((run->t + 1) % run->config.period, 0);
    for (;;) {
        controller_mark_t mark;
        controller_mark(run->controller, &mark);
        const int replaced = feed(run, 10, 5, 3, 1);
        if (stats_of(run).answered > before) {
            return replaced;
        }
        controller_rewind(run->controller, &mark, replaced);
        run->t--;
        sched_yield();
    }
}

static void feed_quiet(run_t *run, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        assert_false(feed(run, 10, 5, 3, 1));
    }
}

static void test_async(void **state)
{
    (void)state;
    gate_t *gate = new_gate();
    const rudder_decider_t decider = gated(gate);
    run_t *run = new_run(&decider);
    open_run(run);
    feed_quiet(run, 4); /* the first window: asked */
    await_question(gate, 1);
    feed_quiet(run, 13); /* three more windows end while it thinks: one question in flight, no more */
    assert_int_equal(entered(gate), 1);
    check_sums(run, 1);
    assert_int_equal(stats_of(run).asked, 1);
    allow(gate, 1);
    assert_true(feed_until_answered(run)); /* minibatch 18 */
    check_sums(run, 0);
    feed_quiet(run, 1);
    assert_int_equal(stats_of(run).asked, 1); /* it rests until a window is complete */
    gate->verdict = RUDDER_KEEP;
    feed_quiet(run, 1); /* minibatch 20 ends a window */
    await_question(gate, 2);
    assert_int_equal(gate->seen[0], 4);
    assert_int_equal(gate->seen[1], 20);
    allow(gate, 2);
    assert_false(feed_until_answered(run)); /* minibatch 21 */
    check_sums(run, 0);
    const rudder_stats_t stats = stats_of(run);
    assert_int_equal(stats.replaced, 1);
    assert_int_equal(stats.kept, 1);
    check_double(stats.age_mean_minibatches, (14 + 1) / 2.);
    feed_quiet(run, 8);
    close_run(run, 0);
    assert_int_equal(run->log[0].asked_minibatch, 4);
    assert_int_equal(run->log[0].answered_minibatch, 18);
    assert_int_equal(run->log[0].applied_minibatch, 18);
    /* Applied within window 4 (minibatches 17 to 20): compared are windows 3 and 5. */
    assert_int_equal(run->log[0].outcome.known, 1);
    check_double(run->log[0].outcome.fetched_change, fetched_of(run, 5) - fetched_of(run, 3));
    assert_int_equal(run->n_messages, 0);
    free(run);
    free(gate);
}

static void prepare_gate(void *self)
{
    gate_t *gate = self;
    pthread_mutex_lock(&gate->lock);
    gate->preparing = 1;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->prepared && !gate->cancelled) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

/* While the decider prepares itself its question waits, and each window that ends makes it a newer one. */
static void test_newest_context_wins(void **state)
{
    (void)state;
    gate_t *gate = new_gate();
    rudder_decider_t decider = gated(gate);
    decider.prepare = prepare_gate;
    run_t *run = new_run(&decider);
    open_run(run);
    for (int t = 0; t < 18; t++) {
        assert_false(feed(run, 10, t % 10, 3, 1));
        check_sums(run, run->t >= 4);
    }
    assert_int_equal(stats_of(run).asked, 1);
    pthread_mutex_lock(&gate->lock);
    gate->prepared = 1;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
    await_question(gate, 1);
    assert_int_equal(gate->seen[0], 16);
    allow(gate, 1);
    assert_true(feed_until_answered(run)); /* minibatch 19 */
    check_sums(run, 0);
    close_run(run, 0);
    assert_int_equal(run->logged, 1);
    assert_int_equal(run->log[0].asked_minibatch, 16);
    assert_int_equal(run->log[0].applied_minibatch, 19);
    check_context(run, &run->log[0].context);
    free(run);
    free(gate);
}

/* Closing ends a preparation, with or without a question that waits for it. */
static void test_close_while_preparing(void **state)
{
    (void)state;
    for (int minibatches = 0; minibatches <= 4; minibatches += 4) {
        gate_t *gate = new_gate();
        rudder_decider_t decider = gated(gate);
        decider.prepare = prepare_gate;
        run_t *run = new_run(&decider);
        open_run(run);
        feed_quiet(run, minibatches);
        close_run(run, 60000);
        assert_true(gate->preparing);
        assert_int_equal(gate->entered, 0);
        assert_int_equal(run->logged, minibatches / 4);
        free(run);
        free(gate);
    }
}

/* An answer that is too many minibatches old is dropped, and the rule has decided by then. */
static void test_late_by_minibatches(void **state)
{
    (void)state;
    gate_t *gate = new_gate();
    const rudder_decider_t decider = gated(gate);
    run_t *run = new_run(&decider);
    run->config.late_after = 6;
    open_run(run);
    feed_quiet(run, 4);
    await_question(gate, 1);
    feed_quiet(run, 6); /* minibatch 10: six minibatches old, still welcome */
    assert_int_equal(stats_of(run).late, 0);
    assert_true(feed(run, 10, 5, 3, 1)); /* minibatch 11: late, the rule replaces */
    check_sums(run, 0);
    assert_int_equal(stats_of(run).late, 1);
    assert_int_equal(stats_of(run).fallback, 1);
    assert_true(feed(run, 10, 5, 3, 1)); /* minibatch 12 ends a window; the decider is still busy: the rule again */
    assert_int_equal(stats_of(run).asked, 1);
    assert_int_equal(stats_of(run).fallback, 2);
    allow(gate, 1);
    assert_false(feed_until_answered(run)); /* it arrives, and is dropped */
    check_sums(run, 0);
    assert_int_equal(stats_of(run).applied, 0);
    feed_quiet(run, 2);
    assert_false(feed(run, 10, 5, 3, 1)); /* minibatch 16 ends a window: asked anew */
    await_question(gate, 2);
    assert_int_equal(gate->seen[1], 16);
    allow(gate, 2);
    assert_true(feed_until_answered(run));
    check_sums(run, 0);
    assert_int_equal(stats_of(run).replaced, 1);
    close_run(run, 0);
    assert_int_equal(run->log[0].outcome.status, RUDDER_LATE);
    assert_int_equal(run->log[0].applied_minibatch, 11);
    assert_int_equal(run->log[0].answered_minibatch, -1);
    assert_true(run->log[0].from_fallback);
    assert_int_equal(run->log[1].asked_minibatch, -1);
    assert_true(run->log[1].from_fallback);
    assert_int_equal(run->log[2].asked_minibatch, 16);
    assert_int_equal(run->n_messages, 2);
    free(run);
    free(gate);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* In sync mode the trainer sleeps until the deadline, not longer; then the rule decides in the same minibatch. */
static void test_sync_deadline(void **state)
{
    (void)state;
    gate_t *gate = new_gate();
    const rudder_decider_t decider = gated(gate);
    run_t *run = new_run(&decider);
    run->config.mode = RUDDER_SYNC;
    run->config.deadline_ms = 500;
    open_run(run);
    feed_quiet(run, 3);
    const double start = clock_seconds(), cpu = cpu_seconds();
    assert_true(feed(run, 10, 5, 3, 1));
    assert_true(clock_seconds() - start >= .5);
    assert_true(clock_seconds() - start < 5);
    assert_true(cpu_seconds() - cpu < .1);
    check_sums(run, 0);
    assert_int_equal(stats_of(run).late, 1);
    feed_quiet(run, 3);
    const double busy = clock_seconds();
    assert_true(feed(run, 10, 5, 3, 1)); /* it is still busy with the first question: no second wait */
    assert_true(clock_seconds() - busy < .45);
    assert_int_equal(stats_of(run).asked, 1);
    allow(gate, 1000);
    assert_false(feed_until_answered(run)); /* the answer of minibatch 4: dropped */
    check_sums(run, 0);
    feed_quiet(run, 2);
    assert_true(feed(run, 10, 5, 3, 1)); /* answered within its own minibatch */
    assert_int_equal(stats_of(run).replaced, 1);
    check_double(stats_of(run).age_mean_minibatches, 0);
    close_run(run, 0);
    assert_int_equal(run->log[2].asked_minibatch, 12);
    assert_int_equal(run->log[2].applied_minibatch, 12);
    free(run);
    free(gate);
}

/* In async mode too the deadline counts, whatever the number of minibatches. */
static void test_async_deadline(void **state)
{
    (void)state;
    gate_t *gate = new_gate();
    const rudder_decider_t decider = gated(gate);
    run_t *run = new_run(&decider);
    run->config.deadline_ms = 50;
    open_run(run);
    feed_quiet(run, 4);
    await_question(gate, 1);
    const double start = clock_seconds();
    while (clock_seconds() - start < .1) {
        clock_sleep(.01);
    }
    assert_true(feed(run, 10, 5, 3, 1));
    assert_int_equal(stats_of(run).late, 1);
    check_sums(run, 0);
    close_run(run, 0);
    assert_true(gate->cancelled);
    free(run);
    free(gate);
}

/* Closing while the decider thinks: it is given the time that was said, cancelled, and its decision is in the log. */
static void test_close_in_flight(void **state)
{
    (void)state;
    for (int answers = 0; answers <= 1; answers++) {
        gate_t *gate = new_gate();
        const rudder_decider_t decider = gated(gate);
        run_t *run = new_run(&decider);
        open_run(run);
        feed_quiet(run, 6);
        await_question(gate, 1);
        check_sums(run, 1);
        if (answers) {
            allow(gate, 1);
        }
        const double start = clock_seconds();
        close_run(run, answers ? 60000 : 50);
        assert_true(clock_seconds() - start < 30);
        assert_int_equal(run->logged, 1);
        assert_int_equal(run->log[0].outcome.status, RUDDER_LATE);
        assert_int_equal(run->log[0].asked_minibatch, 4);
        assert_int_equal(run->log[0].applied_minibatch, -1);
        assert_int_equal(run->log[0].outcome.known, 0);
        assert_int_equal(run->log[0].answer.tokens, 4);
        free(run);
        free(gate);
    }
}

static void test_close_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        gate_t *gate = new_gate();
        const rudder_decider_t decider = gated(gate);
        run_t *run = new_run(&decider);
        open_run(run);
        feed_quiet(run, i % 6); /* the question may still wait for the worker */
        close_run(run, 0);
        assert_int_equal(run->logged, i % 6 >= 4);
        free(run);
        free(gate);
    }
}

/* ---- at full speed ---- */

static rudder_status_t echo(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    _Atomic int64_t *last = self;
    const int64_t before = atomic_exchange(last, context->minibatch);
    answer->tokens = (int32_t)context->minibatch;
    answer->verdict = before >= context->minibatch ? RUDDER_NO_VERDICT /* never older than one before */
                      : context->minibatch % 3     ? RUDDER_REPLACE
                                                   : RUDDER_KEEP;
    return RUDDER_OK;
}

typedef struct reader {
    const run_t *run;
    _Atomic int stop;
    int64_t reads, wrong;
} reader_t;

static void *read_stats(void *argument)
{
    reader_t *reader = argument;
    int64_t asked = 0;
    while (!atomic_load(&reader->stop)) {
        const rudder_stats_t stats = stats_of(reader->run);
        const int64_t ended = stats.applied + stats.invalid + stats.late + stats.failed;
        reader->wrong += stats.asked < asked || stats.asked - ended < 0 || stats.asked - ended > 1 ||
                         stats.applied != stats.replaced + stats.kept + stats.nothing_stale ||
                         (stats.window_remote_rows != 0 && stats.window_remote_rows != 4 * 10);
        asked = stats.asked;
        reader->reads++;
        sched_yield();
    }
    return NULL;
}

/* No question is mixed up with another, nothing is torn, whatever the threads' timing. */
static void test_full_speed(void **state)
{
    (void)state;
    _Atomic int64_t last = -1;
    const rudder_decider_t decider = {.size = sizeof decider, .name = "echo", .self = &last, .decide = echo};
    run_t *run = new_run(&decider);
    reader_t reader = {.run = run};
    pthread_t thread;
    int64_t replacements = 0;
    open_run(run);
    assert_int_equal(pthread_create(&thread, NULL, read_stats, &reader), 0);
    while (run->t < MOST - 1) {
        replacements += feed(run, 10, 5, 3, 1);
        if (run->t % 64 == 0) {
            sched_yield();
        }
    }
    atomic_store(&reader.stop, 1);
    pthread_join(thread, NULL);
    assert_true(reader.reads > 0);
    assert_int_equal(reader.wrong, 0);
    const rudder_stats_t stats = stats_of(run);
    assert_true(stats.asked - stats.applied <= 1);
    assert_int_equal(stats.invalid + stats.late + stats.failed, 0);
    assert_int_equal(stats.replaced, replacements);
    close_run(run, 1000);
    assert_int_equal(run->logged, stats.asked);
    for (int64_t k = 0; k < run->logged; k++) {
        const rudder_decision_t *decision = &run->log[k];
        if (decision->outcome.status != RUDDER_LATE) { /* the last one, in flight at the end */
            assert_int_equal(decision->answer.tokens, decision->context.minibatch);
            assert_int_equal(decision->asked_minibatch, decision->context.minibatch);
            assert_true(decision->applied_minibatch > decision->asked_minibatch);
        }
        if (k > 0) {
            assert_true(decision->asked_minibatch >= run->log[k - 1].applied_minibatch);
        }
        check_context(run, &decision->context);
    }
    free(run);
}

/* ---- simulated time: one second a minibatch ---- */

/* Tells a latency and replaces; notes who asked and how far the run was. */
typedef struct simulated {
    double latency_ms; /* 0: does not tell it */
    pthread_t asker;
    int64_t asked[64], n_asked;
    int prepared;
} simulated_t;

static rudder_status_t simulated_decide(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    simulated_t *simulated = self;
    simulated->asker = pthread_self();
    simulated->asked[simulated->n_asked++] = context->minibatch;
    answer->verdict = RUDDER_REPLACE;
    answer->latency_ms = simulated->latency_ms;
    return RUDDER_OK;
}

static void simulated_prepare(void *self)
{
    ((simulated_t *)self)->prepared++;
}

static double simulated_clock(void *context)
{
    return ((run_t *)context)->now;
}

static run_t *open_simulated(simulated_t *simulated, rudder_mode_t mode, int32_t deadline_ms, int32_t late_after)
{
    const rudder_decider_t decider = {.size = sizeof decider,
                                      .name = "simulated",
                                      .self = simulated,
                                      .decide = simulated_decide,
                                      .prepare = simulated_prepare};
    run_t *run = new_run(&decider);
    run->config.clock = simulated_clock;
    run->config.mode = mode;
    run->config.deadline_ms = deadline_ms;
    run->config.late_after = late_after;
    open_run(run);
    return run;
}

static int feed_second(run_t *run)
{
    run->now += 1;
    return feed(run, 10, 5, 3, 1);
}

/* Feeds up to minibatch `last`; that one replaces, and none before. */
static void feed_until_replaced(run_t *run, int64_t last)
{
    while (run->t < last - 1) {
        assert_false(feed_second(run));
    }
    assert_true(feed_second(run));
}

/* An answer arrives when the clock has gone on by its latency, in whatever real time. */
static void test_simulated_latency(void **state)
{
    (void)state;
    simulated_t simulated = {.latency_ms = 2500};
    run_t *run = open_simulated(&simulated, RUDDER_ASYNC, 60000, 1000);
    feed_until_replaced(run, 7); /* asked at 4 s, arrived at 6.5 s */
    assert_true(pthread_equal(simulated.asker, pthread_self()));
    assert_int_equal(simulated.prepared, 1);
    check_sums(run, 0);
    simulated.latency_ms = 9500; /* over two windows: no second question meanwhile */
    feed_until_replaced(run, 18);
    simulated.latency_ms = 1000; /* the clock says exactly that */
    feed_until_replaced(run, 21);
    assert_int_equal(simulated.n_asked, 3);
    const rudder_stats_t stats = stats_of(run);
    assert_int_equal(stats.replaced, 3);
    check_double(stats.age_mean_minibatches, (3 + 10 + 1) / 3.);
    check_double(stats.latency_mean_ms, 13000 / 3.);
    close_run(run, 0);
    assert_int_equal(run->log[0].asked_minibatch, 4);
    assert_int_equal(run->log[0].answered_minibatch, 7);
    assert_int_equal(run->log[1].asked_minibatch, 8);
    assert_int_equal(run->log[1].applied_minibatch, 18);
    check_double(run->log[1].answer.latency_ms, 9500);
    assert_int_equal(simulated.prepared, 1);
    free(run);
}

/* Without a latency of its own the time that the decider really took counts: far less than a second here. */
static void test_simulated_measured(void **state)
{
    (void)state;
    simulated_t simulated = {0};
    run_t *run = open_simulated(&simulated, RUDDER_ASYNC, 60000, 1000);
    feed_until_replaced(run, 5);
    close_run(run, 0);
    assert_true(run->log[0].answer.latency_ms > 0 && run->log[0].answer.latency_ms < 1000);
    free(run);
}

/* Late by minibatches, and by the deadline: the rule decides, and until the answer arrives nobody else is asked. */
static void test_simulated_late(void **state)
{
    (void)state;
    for (int by_deadline = 0; by_deadline < 2; by_deadline++) {
        simulated_t simulated = {.latency_ms = 10500};
        run_t *run = open_simulated(&simulated, RUDDER_ASYNC, by_deadline ? 6000 : 60000, by_deadline ? 1000 : 6);
        feed_until_replaced(run, 11); /* asked at minibatch 4 and 4 s */
        assert_int_equal(stats_of(run).late, 1);
        assert_int_equal(stats_of(run).fallback, 1);
        feed_until_replaced(run, 12); /* a window ends, the decider is busy: the rule again */
        assert_int_equal(stats_of(run).answered, 0);
        simulated.latency_ms = 500;
        while (run->t < 15) { /* it arrives at 14.5 s, and is dropped */
            assert_false(feed_second(run));
        }
        assert_int_equal(stats_of(run).answered, 1);
        feed_until_replaced(run, 17); /* asked at 16 */
        check_sums(run, 0);
        assert_int_equal(simulated.n_asked, 2);
        assert_int_equal(stats_of(run).replaced, 1);
        close_run(run, 0);
        assert_int_equal(run->log[0].outcome.status, RUDDER_LATE);
        free(run);
    }
}

/* In sync mode the answer counts at once, and its latency is told: the host lets the time pass. */
static void test_simulated_sync(void **state)
{
    (void)state;
    simulated_t simulated = {.latency_ms = 3000};
    run_t *run = open_simulated(&simulated, RUDDER_SYNC, 5000, 1000);
    feed_until_replaced(run, 4);
    assert_int_equal(stats_of(run).replaced, 1);
    simulated.latency_ms = 6500; /* beyond the deadline */
    feed_until_replaced(run, 8);
    assert_int_equal(stats_of(run).late, 1);
    feed_until_replaced(run, 12); /* still busy, until 14.5 s */
    assert_int_equal(simulated.n_asked, 2);
    assert_int_equal(stats_of(run).fallback, 2);
    simulated.latency_ms = 1;
    feed_until_replaced(run, 16);
    check_sums(run, 0);
    assert_int_equal(simulated.n_asked, 3);
    close_run(run, 0);
    assert_int_equal(run->log[0].applied_minibatch, 4);
    check_double(run->log[0].answer.latency_ms, 3000);
    free(run);
}

/* Rules answer at once in simulated time too; a run that ends before an answer arrives reports it as late. */
static void test_simulated_ends(void **state)
{
    (void)state;
    simulated_t simulated = {.latency_ms = 3000};
    run_t *run = open_simulated(&simulated, RUDDER_ASYNC, 60000, 1000);
    while (run->t < 5) {
        assert_false(feed_second(run));
    }
    close_run(run, 0);
    assert_int_equal(run->logged, 1);
    assert_int_equal(run->log[0].outcome.status, RUDDER_LATE);
    assert_int_equal(run->log[0].applied_minibatch, -1);
    check_double(run->log[0].answer.latency_ms, 3000);
    free(run);

    const rudder_decider_t rule = {
        .size = sizeof rule, .name = "rule", .flags = RUDDER_DECIDER_INLINE, .decide = always_replace};
    run = new_run(&rule);
    run->config.clock = simulated_clock;
    open_run(run);
    feed_until_replaced(run, 4);
    feed_until_replaced(run, 8);
    close_run(run, 0);
    free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_policy_without_replacements),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_answers_and_their_counts),
        cmocka_unit_test(test_back_off),
        cmocka_unit_test(test_fallback_fails),
        cmocka_unit_test(test_async),
        cmocka_unit_test(test_newest_context_wins),
        cmocka_unit_test(test_close_while_preparing),
        cmocka_unit_test(test_late_by_minibatches),
        cmocka_unit_test(test_sync_deadline),
        cmocka_unit_test(test_async_deadline),
        cmocka_unit_test(test_simulated_latency),
        cmocka_unit_test(test_simulated_measured),
        cmocka_unit_test(test_simulated_late),
        cmocka_unit_test(test_simulated_sync),
        cmocka_unit_test(test_simulated_ends),
        cmocka_unit_test(test_close_in_flight),
        cmocka_unit_test(test_close_at_once),
        cmocka_unit_test(test_full_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
