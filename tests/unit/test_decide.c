/* Deciders by name, and when each of them replaces: against what its one-sentence rule says, minibatch by minibatch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/controller.h"
#include "decide/decide.h"

enum { MINIBATCHES = 240 };

/* What the buffer would say at each minibatch: pseudo-random, but the same whenever it is asked. */
static rudder_outlook_t outlook_at(int64_t minibatch)
{
    const uint64_t mixed = ((uint64_t)minibatch + 1) * 0x9E3779B97F4A7C15u;
    return (rudder_outlook_t){.stale = (int64_t)(mixed >> 58),
                              .candidates = (int64_t)(mixed >> 56 & 31),
                              .swaps = (int64_t)(mixed >> 40 & 15),
                              .cost = (int64_t)(mixed >> 30 & 1023),
                              .saving_per_minibatch = (double)(mixed >> 20 & 63) / 4};
}

typedef struct run {
    controller_config_t config;
    rudder_decider_t decider, fallback;
    void *decider_memory, *memory;
    controller_t *controller;
    int64_t minibatch; /* under way, from 0 */
    rudder_stats_t stats;
    int64_t reported;
} run_t;

static void count_decision(void *context, const rudder_decision_t *decision)
{
    run_t *run = context;
    assert_int_equal(decision->number, run->reported); /* in order, none left out */
    run->reported++;
}

static void tell_outlook(void *context, rudder_outlook_t *outlook)
{
    *outlook = outlook_at(((const run_t *)context)->minibatch);
}

static void *zeroed(int64_t bytes)
{
    const size_t rounded = ((size_t)bytes + 64) / 64 * 64;
    void *memory = aligned_alloc(64, rounded);
    assert_non_null(memory);
    memset(memory, 0, rounded);
    return memory;
}

static void open_run(run_t *run, const char *decider, int32_t period, int64_t minibatches, rudder_mode_t mode)
{
    const rudder_config_t config = {.period = period};
    rudder_error_t error = {0};
    memset(run, 0, sizeof *run);
    run->decider_memory = zeroed(decide_memory(decider));
    assert_int_equal(decide_open(decider, &config, run->decider_memory, &run->decider, &error), RUDDER_OK);
    assert_int_equal(decide_open("gain", &config, NULL, &run->fallback, &error), RUDDER_OK);
    run->config = (controller_config_t){.mode = mode,
                                        .period = period,
                                        .minibatches = minibatches,
                                        .deadline_ms = 1000,
                                        .late_after = 4 * period,
                                        .replaces = 1,
                                        .decider = &run->decider,
                                        .fallback = &run->fallback,
                                        .capacity = 64,
                                        .on_decision = count_decision,
                                        .callback_context = run};
    run->memory = zeroed(controller_memory(&run->config));
    assert_int_equal(controller_open(&run->config, run->memory, &run->controller, &error), RUDDER_OK);
}

static int step(run_t *run)
{
    const int replace = controller_minibatch(run->controller, 100, 40, 60, tell_outlook, run);
    if (replace) {
        const rudder_outlook_t outlook = outlook_at(run->minibatch);
        controller_replaced(run->controller, outlook.swaps, outlook.swaps > 2 ? 2 : outlook.swaps);
    }
    run->minibatch++;
    return replace;
}

static void close_run(run_t *run)
{
    controller_stats(run->controller, &run->stats);
    controller_close(run->controller, 0);
    free(run->memory);
    free(run->decider_memory);
}

/* What the rule's sentence says about minibatch t of `period` minibatches a window. */
static int expected(const char *name, int64_t t, int64_t period, int64_t minibatches)
{
    const int window_ends = (t + 1) % period == 0;
    if (strncmp(name, "fixed:", 6) == 0) {
        return (t + 1) % atoll(name + 6) == 0;
    }
    if (strcmp(name, "once") == 0) {
        return t == period - 1;
    }
    if (strcmp(name, "gain") == 0 && window_ends) {
        const rudder_outlook_t outlook = outlook_at(t);
        const int64_t left = minibatches == 0 ? period : minibatches > t + 1 ? minibatches - (t + 1) : 0;
        return outlook.saving_per_minibatch * (double)left > (double)outlook.cost;
    }
    return 0;
}

static void test_timing(void **state)
{
    (void)state;
    static const char *const names[] = {"never",    "once",     "fixed:1",   "fixed:2", "fixed:7",
                                        "fixed:16", "fixed:23", "fixed:999", "gain"};
    static const int32_t periods[] = {1, 2, 5, 16, 300};
    static const int64_t lengths[] = {0, MINIBATCHES, MINIBATCHES / 2}; /* unknown, right, and longer than was said */
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        for (size_t p = 0; p < sizeof periods / sizeof periods[0]; p++) {
            for (size_t l = 0; l < 3; l++) {
                for (int mode = RUDDER_ASYNC; mode <= RUDDER_SYNC; mode++) {
                    const int64_t interval = strncmp(names[n], "fixed:", 6) == 0 ? atoll(names[n] + 6) : periods[p];
                    int64_t replacements = 0;
                    run_t run;
                    open_run(&run, names[n], periods[p], lengths[l], (rudder_mode_t)mode);
                    for (int64_t t = 0; t < MINIBATCHES; t++) {
                        const int replace = expected(names[n], t, periods[p], lengths[l]);
                        assert_int_equal(step(&run), replace);
                        replacements += replace;
                    }
                    close_run(&run);
                    assert_int_equal(run.stats.asked, MINIBATCHES / interval);
                    assert_int_equal(run.stats.answered, run.stats.asked);
                    assert_int_equal(run.stats.applied, run.stats.asked);
                    assert_int_equal(run.stats.replaced + run.stats.nothing_stale, replacements);
                    assert_int_equal(run.stats.kept, run.stats.asked - replacements);
                    assert_int_equal(run.stats.invalid + run.stats.late + run.stats.failed + run.stats.fallback, 0);
                    assert_int_equal(run.reported, run.stats.asked);
                    assert_true(run.stats.age_mean_minibatches == 0);
                }
            }
        }
    }
}

/* Plans are begun, up to four are open, and the newest are aborted now and then: the same minibatches replace. */
static void test_timing_with_aborts(void **state)
{
    (void)state;
    static const char *const names[] = {"once", "fixed:1", "fixed:2", "fixed:7", "gain"};
    static const int32_t periods[] = {1, 2, 16};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        for (size_t p = 0; p < sizeof periods / sizeof periods[0]; p++) {
            controller_mark_t mark[4];
            int replaced[4];
            int open = 0;
            uint64_t random = 12345 + n + 10 * p;
            run_t run;
            open_run(&run, names[n], periods[p], MINIBATCHES, RUDDER_ASYNC);
            while (run.minibatch < MINIBATCHES) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                const int choice = (int)(random >> 33) % 10;
                if (open > 0 && choice < 4) { /* abort the newest */
                    open--;
                    run.minibatch--;
                    controller_rewind(run.controller, &mark[open], replaced[open]);
                } else if (open == 4) { /* the oldest completes */
                    memmove(mark, mark + 1, sizeof mark - sizeof mark[0]);
                    memmove(replaced, replaced + 1, sizeof replaced - sizeof replaced[0]);
                    open--;
                } else {
                    const int64_t t = run.minibatch;
                    controller_mark(run.controller, &mark[open]);
                    replaced[open] = step(&run);
                    assert_int_equal(replaced[open], expected(names[n], t, periods[p], MINIBATCHES));
                    open++;
                }
            }
            close_run(&run);
            const int64_t interval = strncmp(names[n], "fixed:", 6) == 0 ? atoll(names[n] + 6) : periods[p];
            assert_int_equal(run.stats.asked, MINIBATCHES / interval); /* nothing was asked twice */
            assert_int_equal(run.stats.applied, run.stats.asked);
            assert_int_equal(run.reported, run.stats.asked);
        }
    }
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        rudder_status_t status;
        const char *part; /* of the message */
    } cases[] = {
        {"never", RUDDER_OK, ""},
        {"once", RUDDER_OK, ""},
        {"fixed:1", RUDDER_OK, ""},
        {"fixed:9007199254740993", RUDDER_OK, ""},
        {"gain", RUDDER_OK, ""},
        {"", RUDDER_E_NAME, "\"\""},
        {"gian", RUDDER_E_NAME, "gain"},
        {"nevr", RUDDER_E_NAME, "never"},
        {"fixed", RUDDER_E_NAME, "fixed:16"},
        {"gain:3", RUDDER_E_NAME, "gain:3"},
        {"GAIN", RUDDER_E_NAME, "GAIN"},
        {"fixed:", RUDDER_E_ARGUMENT, "1 or more"},
        {"fixed:0", RUDDER_E_ARGUMENT, "\"0\""},
        {"fixed:-4", RUDDER_E_ARGUMENT, "\"-4\""},
        {"fixed: 4", RUDDER_E_ARGUMENT, "\" 4\""},
        {"fixed:4x", RUDDER_E_ARGUMENT, "\"4x\""},
        {"fixed:16:2", RUDDER_E_ARGUMENT, "16:2"},
        {"fixed:99999999999999999999", RUDDER_E_ARGUMENT, "99999999999999999999"},
    };
    const rudder_config_t config = {.period = 16};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rudder_error_t error = {0};
        rudder_decider_t decider = {0};
        void *memory = zeroed(decide_memory(cases[i].name));
        assert_int_equal(decide_open(cases[i].name, &config, memory, &decider, &error), cases[i].status);
        assert_int_equal(error.status, cases[i].status);
        assert_non_null(strstr(error.text, cases[i].part));
        if (cases[i].status == RUDDER_OK) {
            assert_int_equal(strncmp(decider.name, cases[i].name, strlen(decider.name)), 0);
            assert_int_equal(decider.size, sizeof decider);
            assert_true(decider.flags & RUDDER_DECIDER_INLINE);
        } else {
            assert_null(decider.decide); /* outputs are set on success only */
        }
        free(memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_timing),
        cmocka_unit_test(test_timing_with_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
