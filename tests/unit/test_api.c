/*
 * The public functions from outside: what they refuse and how they say it, memory that is what was stated, every failure
 * of an allocation, forked children, statistics read while another thread plans.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "rudder/rudder.h"

enum { HALO = 60, MAX_IDS = 32, ROW = 16 };

static int64_t halo[HALO];
static uint32_t degree[HALO];
static rudder_type_config_t types[2];

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < HALO; i++) {
        halo[i] = 1000 + i;
        degree[i] = (uint32_t)(i * 13 % 29);
    }
    for (int t = 0; t < 2; t++) {
        types[t] = (rudder_type_config_t){.row_bytes = ROW,
                                          .capacity_rows = 10,
                                          .max_ids = MAX_IDS,
                                          .owned_begin = 0,
                                          .owned_end = 1000,
                                          .halo = halo,
                                          .halo_degree = degree,
                                          .n_halo = HALO};
    }
    return 0;
}

static rudder_config_t configure(const char *policy, const char *decider)
{
    rudder_config_t config;
    rudder_config_init(&config, sizeof config);
    config.types = types;
    config.policy = policy;
    config.decider = decider;
    return config;
}

static rudder_t *open_or_fail(const rudder_config_t *config)
{
    rudder_t *handle = NULL;
    rudder_error_t error = {0};
    if (rudder_open(config, &handle, &error) != RUDDER_OK) {
        fail_msg("%s: %s", error.where, error.text);
    }
    return handle;
}

/* Both rudder_open() and rudder_memory_needed() refuse, with this status and these words. */
static void refused(const rudder_config_t *config, rudder_status_t status, const char *words)
{
    rudder_t *handle = NULL;
    rudder_error_t error = {0};
    int64_t bytes = -1;
    assert_int_equal(rudder_open(config, &handle, &error), status);
    assert_null(handle);
    assert_int_equal(error.status, status);
    if (strstr(error.text, words) == NULL) {
        fail_msg("expected \"%s\" in \"%s\"", words, error.text);
    }
    memset(&error, 0, sizeof error);
    assert_int_equal(rudder_memory_needed(config, &bytes, &error), status);
    assert_non_null(strstr(error.text, words));
    assert_int_equal(bytes, -1);
}

static void test_names(void **state)
{
    (void)state;
    rudder_config_t config = configure("scoer", NULL);
    refused(&config, RUDDER_E_NAME, "did you mean \"score\"");
    config = configure("score", "gian");
    refused(&config, RUDDER_E_NAME, "did you mean \"gain\"");
    config = configure("score", "fixed:0");
    refused(&config, RUDDER_E_ARGUMENT, "fixed:0");
    config = configure("lookahed:4", NULL);
    refused(&config, RUDDER_E_NAME, "expected none, static, lru, lfu, sieve, score, mix or lookahead");
    config = configure("lookahead:0", NULL);
    refused(&config, RUDDER_E_ARGUMENT, "policy \"lookahead:0\": minibatches to look ahead: expected an integer");
    config = configure("lookahead:4x", NULL);
    refused(&config, RUDDER_E_ARGUMENT, "found \"4x\"");
    config = configure("lookahead:", NULL);
    refused(&config, RUDDER_E_ARGUMENT, "found \"\"");
    config = configure("lfu:4", NULL);
    refused(&config, RUDDER_E_NAME, "policy \"lfu:4\"");
    config = configure("lookahead:4", NULL);
    rudder_close(open_or_fail(&config), 0);
    config = configure("score", NULL);
    config.start = "degre";
    refused(&config, RUDDER_E_NAME, "did you mean \"degree\"");
    config = configure("score", NULL);
    config.fallback = "gane";
    refused(&config, RUDDER_E_NAME, "gain");
    config = configure("score", NULL);
    config.fallback = "llm";
    refused(&config, RUDDER_E_UNSUPPORTED, "fallback \"llm\"");
}

static void test_combinations(void **state)
{
    static const char *const policies[] = {"none", "static", "lru", "lfu", "sieve", "mix", "lookahead"};
    static const char *const deciders[] = {"once", "fixed:4", "gain", "llm"};
    (void)state;
    for (int p = 0; p < 7; p++) {
        for (int d = 0; d < 4; d++) {
            const rudder_config_t config = configure(policies[p], deciders[d]);
            refused(&config, RUDDER_E_UNSUPPORTED, "has no replacement to decide; --decider works with score");
        }
        const rudder_config_t never = configure(policies[p], "never"), unset = configure(policies[p], NULL);
        rudder_close(open_or_fail(&never), 0);
        rudder_close(open_or_fail(&unset), 0);
    }
    const rudder_config_t lfu = configure("lfu", "gain");
    refused(&lfu, RUDDER_E_UNSUPPORTED, "policy lfu admits rows when they are missed");
}

static void test_arguments(void **state)
{
    rudder_type_config_t type = types[0];
    rudder_config_t config = configure("score", NULL);
    rudder_policy_t odd = {.size = sizeof odd, .name = "odd", .state_bytes = 12};
    (void)state;
#define REFUSED_WITH(field, value, words)                                                                              \
    do {                                                                                                               \
        rudder_config_t wrong = config;                                                                                \
        wrong.field = (value);                                                                                         \
        refused(&wrong, RUDDER_E_ARGUMENT, (words));                                                                   \
    } while (0)
#define TYPE_REFUSED_WITH(field, value, words)                                                                         \
    do {                                                                                                               \
        rudder_config_t wrong = config;                                                                                \
        type = types[0];                                                                                               \
        type.field = (value);                                                                                          \
        wrong.types = &type;                                                                                           \
        refused(&wrong, RUDDER_E_ARGUMENT, (words));                                                                   \
    } while (0)
    REFUSED_WITH(size, 4, "rudder_config_init");
    REFUSED_WITH(type_size, 8, "types");
    REFUSED_WITH(types, NULL, "types");
    REFUSED_WITH(n_types, 0, "n_types");
    REFUSED_WITH(n_types, RUDDER_MAX_TYPES + 1, "n_types");
    REFUSED_WITH(max_plans, 0, "max_plans");
    REFUSED_WITH(period, 0, "period");
    REFUSED_WITH(alpha, 0, "alpha");
    REFUSED_WITH(alpha, 1, "alpha");
    REFUSED_WITH(minibatches, -1, "minibatches");
    REFUSED_WITH(deadline_ms, 0, "deadline_ms");
    REFUSED_WITH(policy_table, &odd, "multiple of 8");
    TYPE_REFUSED_WITH(row_bytes, 0, "row_bytes");
    TYPE_REFUSED_WITH(capacity_rows, -1, "capacity_rows");
    TYPE_REFUSED_WITH(capacity_rows, (int64_t)1 << 40, "capacity_rows");
    TYPE_REFUSED_WITH(max_ids, 0, "max_ids");
    TYPE_REFUSED_WITH(max_tracked, -1, "max_tracked");
    TYPE_REFUSED_WITH(owned_begin, 2000, "owned");
    TYPE_REFUSED_WITH(halo, NULL, "halo");
    TYPE_REFUSED_WITH(max_announced, -1, "max_announced");
    TYPE_REFUSED_WITH(id_end, -1, "id_end");
    TYPE_REFUSED_WITH(max_announced, (int64_t)1 << 40, "max_announced");
    REFUSED_WITH(n_owners, -1, "n_owners");
    REFUSED_WITH(n_owners, 3, "owner_offset of type 0: expected 4 ascending ids, found NULL");
    REFUSED_WITH(owner_cost, RUDDER_OWNER_COST_MEASURED, "owner_cost");
#undef REFUSED_WITH
#undef TYPE_REFUSED_WITH
    rudder_t *handle = NULL;
    rudder_error_t error;
    halo[3] = -5;
    assert_int_equal(rudder_open(&config, &handle, &error), RUDDER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "halo[3]"));
    halo[3] = 7; /* owned */
    assert_int_equal(rudder_open(&config, &handle, &error), RUDDER_E_OWNED);
    halo[3] = 1003;
    type = types[0];
    type.id_end = 1059;
    config.types = &type;
    assert_int_equal(rudder_open(&config, &handle, &error), RUDDER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "halo[59]: expected an id of 0 to 1058, found 1059"));
    assert_int_equal(rudder_open(NULL, &handle, &error), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_open(&config, NULL, NULL), RUDDER_E_ARGUMENT);
}

/* What owners are and what their rows cost. */
static void test_owners(void **state)
{
    const int64_t offset[] = {0, 1000, 1030, 1060}, descent[] = {0, 1000, 900, 1060};
    const double cost[] = {1, 10, 2}, zero[] = {1, 0, 2}, wrong[] = {1, NAN, 2}, endless[] = {1, 2, INFINITY};
    const double *const refused_costs[] = {NULL, zero, wrong, endless};
    rudder_type_config_t type = types[0];
    rudder_config_t config = configure("lookahead", NULL);
    (void)state;
    config.types = &type;
    config.n_owners = 3;
    type.owner_offset = descent;
    refused(&config, RUDDER_E_ARGUMENT, "owner_offset of type 0: expected 4 ascending ids, found a descent");
    type.owner_offset = offset;
    config.owner_cost = RUDDER_OWNER_COST_GIVEN;
    for (int i = 0; i < 4; i++) {
        config.owner_row_cost = refused_costs[i];
        refused(&config, RUDDER_E_ARGUMENT, "owner_row_cost[");
    }
    config.owner_row_cost = cost;
    rudder_t *handle = open_or_fail(&config);
    assert_int_equal(rudder_report_fetch(handle, 2, 10, .5), RUDDER_OK);
    assert_int_equal(rudder_report_fetch(handle, 2, 0, 0), RUDDER_OK);
    assert_int_equal(rudder_report_fetch(handle, -1, 10, .5), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_report_fetch(handle, 3, 10, .5), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_report_fetch(handle, 0, -1, .5), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_report_fetch(handle, 0, 1, -.5), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_report_fetch(handle, 0, 1, NAN), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_report_fetch(handle, 0, 1, INFINITY), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_report_fetch(NULL, 0, 1, 1), RUDDER_E_ARGUMENT);
    rudder_close(handle, 0);
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The ids of the start content, in ascending order; their number. */
static int64_t start_content(const rudder_config_t *config, int64_t *ids)
{
    const int64_t *fetch;
    int64_t n_miss, n_fill;
    rudder_plan_t *plan;
    rudder_t *handle = open_or_fail(config);
    assert_int_equal(rudder_plan_start(handle, 0, &plan, NULL), RUDDER_OK);
    rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
    memcpy(ids, fetch, (size_t)n_fill * sizeof *ids);
    qsort(ids, (size_t)n_fill, sizeof *ids, compare_ids);
    rudder_close(handle, 0);
    return n_fill;
}

/* The highest weights enter, lower ids first among equals; with every policy alike, whatever it tracks beforehand. */
static void test_start_by_weights(void **state)
{
    static const char *const policies[] = {"static", "lfu", "mix", "lookahead"};
    double weight[HALO];
    (void)state;
    for (int p = 0; p < 4; p++) {
        rudder_type_config_t type = types[0];
        rudder_config_t config = configure(policies[p], NULL);
        int64_t ids[HALO];
        config.types = &type;
        config.start = "weights";
        refused(&config, RUDDER_E_ARGUMENT, "start_weight: expected 60 weights");
        for (int i = 0; i < HALO; i++) {
            weight[i] = i % 7 == 3 ? 1e-300 * (1 + i) : i == 50 ? INFINITY : i == 51 ? 1e300 : 1e-310;
        }
        type.start_weight = weight;
        type.max_tracked = 5;
        assert_int_equal(start_content(&config, ids), 10);
        const int64_t expected[] = {1010, 1017, 1024, 1031, 1038, 1045, 1050, 1051, 1052, 1059};
        for (int i = 0; i < 10; i++) {
            assert_int_equal(ids[i], expected[i]);
        }
        for (int i = 0; i < HALO; i++) {
            weight[i] = i == 7 || i == 40 ? 1 : -0.0; /* without a weight nothing is loaded */
        }
        assert_int_equal(start_content(&config, ids), 2);
        assert_true(ids[0] == 1007 && ids[1] == 1040);
        weight[20] = -1;
        rudder_t *handle = NULL;
        rudder_error_t error;
        assert_int_equal(rudder_open(&config, &handle, &error), RUDDER_E_ARGUMENT);
        assert_non_null(strstr(error.text, "start_weight[20]"));
        weight[20] = NAN;
        assert_int_equal(rudder_open(&config, &handle, &error), RUDDER_E_ARGUMENT);
        assert_non_null(strstr(error.text, "start_weight[20]"));
    }
}

/* A configuration of a program that was compiled against an older or a newer header. */
static void test_sizes(void **state)
{
    (void)state;
    struct {
        rudder_config_t known;
        int64_t field_of_tomorrow;
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.known = configure("lfu", NULL);
    newer.known.size = sizeof newer;
    rudder_close(open_or_fail(&newer.known), 0);
    newer.field_of_tomorrow = 1;
    refused(&newer.known, RUDDER_E_ARGUMENT, "newer library");

    rudder_config_t older = configure("lfu", NULL);
    memset((unsigned char *)&older + offsetof(rudder_config_t, on_decision), 0xff,
           sizeof older - offsetof(rudder_config_t, on_decision)); /* behind its end */
    older.size = offsetof(rudder_config_t, on_decision);
    rudder_t *handle = open_or_fail(&older);

    rudder_stats_t stats;
    memset(&stats, 0xff, sizeof stats);
    assert_int_equal(rudder_stats_get(handle, &stats, offsetof(rudder_stats_t, capacity_rows)), RUDDER_OK);
    assert_int_equal(stats.minibatches, 0);
    assert_int_equal(stats.capacity_rows, -1); /* not written */
    rudder_close(handle, 0);
}

/* ---- Plans ------------------------------------------------------------------------------------------------------ */

static void test_wrong_ids(void **state)
{
    const int64_t owned[] = {1001, 999}, negative[] = {1001, -1}, good[] = {1001, 1001, (int64_t)1 << 62};
    rudder_plan_t *plan = NULL;
    rudder_error_t error;
    rudder_stats_t before, after;
    (void)state;
    const rudder_config_t config = configure("lfu", NULL);
    rudder_t *handle = open_or_fail(&config);
    rudder_stats_get(handle, &before, sizeof before);
    assert_int_equal(rudder_plan_begin(handle, 0, owned, 2, &plan, &error), RUDDER_E_OWNED);
    assert_non_null(strstr(error.text, "ids[1] of type 0: expected a remote id, found 999"));
    assert_int_equal(rudder_plan_begin(handle, 0, negative, 2, &plan, &error), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_plan_begin(handle, 0, NULL, 1, &plan, &error), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_plan_begin(handle, 0, good, MAX_IDS + 1, &plan, &error), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_plan_begin(handle, 0, good, -1, &plan, &error), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_plan_begin(handle, 1, good, 1, &plan, &error), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_plan_begin(NULL, 0, good, 1, &plan, &error), RUDDER_E_ARGUMENT);
    rudder_stats_get(handle, &after, sizeof after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(rudder_plan_begin(handle, 0, good, 3, &plan, &error), RUDDER_OK);
    rudder_close(handle, 0);
}

static void test_order(void **state)
{
    const int64_t ids[] = {1001, 1002};
    char rows[2 * ROW], out[2 * ROW];
    rudder_plan_t *first, *second, *start;
    (void)state;
    rudder_config_t config = configure("lfu", NULL);
    config.max_plans = 2;
    rudder_t *handle = open_or_fail(&config), *other = open_or_fail(&config);
    memset(rows, 1, sizeof rows);
    assert_int_equal(rudder_plan_start(handle, 0, &start, NULL), RUDDER_OK); /* empty: nothing to fill */
    assert_int_equal(rudder_complete(handle, start, NULL, 0, NULL, NULL), RUDDER_OK);
    assert_int_equal(rudder_plan_begin(handle, 0, ids, 2, &first, NULL), RUDDER_OK);
    assert_int_equal(rudder_plan_begin(handle, 0, ids, 1, &second, NULL), RUDDER_OK);
    assert_int_equal(rudder_plan_begin(handle, 0, ids, 1, &start, NULL), RUDDER_E_PLANS);
    assert_int_equal(rudder_plan_start(handle, 0, &start, NULL), RUDDER_E_STATE);
    assert_int_equal(rudder_complete(handle, second, rows, ROW, out, NULL), RUDDER_E_STATE);
    assert_int_equal(rudder_abort(handle, first, NULL), RUDDER_E_STATE);
    assert_int_equal(rudder_fill(handle, first, rows, ROW, 0, NULL), RUDDER_E_STATE);
    assert_int_equal(rudder_invalidate(handle, 0, ids, 1, NULL), RUDDER_E_STATE);
    assert_int_equal(rudder_complete(other, first, rows, ROW, out, NULL), RUDDER_E_STATE);
    assert_int_equal(rudder_complete(handle, NULL, rows, ROW, out, NULL), RUDDER_E_STATE);
    assert_int_equal(rudder_complete(handle, first, NULL, ROW, out, NULL), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_complete(handle, first, rows, ROW - 1, out, NULL), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_complete(handle, first, rows, ROW, NULL, NULL), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_complete(handle, first, rows, ROW, out, NULL), RUDDER_OK);
    assert_int_equal(rudder_complete(handle, first, rows, ROW, out, NULL), RUDDER_E_STATE); /* it is closed */
    assert_int_equal(rudder_complete(handle, second, rows, ROW, out, NULL), RUDDER_OK);
    rudder_close(handle, 0);
    rudder_close(other, 0);
}

/* What a policy that looks ahead keeps: in ascending order, as much as there is room for, whatever is planned. */
static void test_look_ahead(void **state)
{
    int64_t ids[40];
    rudder_plan_t *plan;
    rudder_stats_t stats;
    rudder_error_t error;
    rudder_type_config_t type = types[0];
    rudder_config_t config = configure("lookahead:3", NULL);
    char rows[40 * ROW], out[MAX_IDS * ROW];
    (void)state;
    memset(rows, 0, sizeof rows);
    for (int i = 0; i < 40; i++) {
        ids[i] = ((int64_t)1 << 40) + i;
    }
    type.max_announced = 100;
    config.types = &type;
    rudder_t *handle = open_or_fail(&config);
    assert_int_equal(rudder_announce_wanted(handle, 0), 1);
    assert_int_equal(rudder_announce_wanted(handle, 1), 0);
    assert_int_equal(rudder_announce_wanted(NULL, 0), 0);
    assert_int_equal(rudder_announce(handle, 0, 0, ids, 10, &error), RUDDER_OK);
    assert_int_equal(rudder_announce(handle, 0, 0, ids, 10, &error), RUDDER_E_ARGUMENT); /* twice */
    assert_int_equal(rudder_announce(handle, 3, 0, ids, 40, &error), RUDDER_OK);         /* more than max_ids */
    assert_int_equal(rudder_announce(handle, 2, 0, ids, 1, &error), RUDDER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "expected 4 or later, found 2"));
    assert_int_equal(rudder_announce_wanted(handle, 0), 1); /* 1 and 2 are missing, but it knows one of three */
    assert_int_equal(rudder_announce(handle, 4, 0, NULL, 0, &error), RUDDER_OK);
    assert_int_equal(rudder_announce(handle, 5, 0, ids, 40, &error), RUDDER_OK);
    assert_int_equal(rudder_announce_wanted(handle, 0), 0); /* three after the next one */
    assert_int_equal(rudder_announce(handle, 6, 0, ids, 11, &error), RUDDER_E_AGAIN);
    assert_non_null(strstr(error.text, "expected room for 11 more, found 90 in 4 minibatches to come"));
    assert_int_equal(rudder_announce(handle, 6, 0, ids, 10, &error), RUDDER_OK);
    rudder_stats_get(handle, &stats, sizeof stats);
    assert_int_equal(stats.window, 5);
    assert_int_equal(stats.announced_minibatches, 5);
    for (int t = 0; t < 7; t++) { /* 1 and 2 come unannounced, 3 with fewer ids, 5 with others */
        const int64_t n = t == 4 ? 0 : 10;
        assert_int_equal(rudder_plan_begin(handle, 0, ids + (t == 5 ? 20 : 0), n, &plan, &error), RUDDER_OK);
        assert_int_equal(rudder_complete(handle, plan, rows, ROW, out, &error), RUDDER_OK);
        rudder_stats_get(handle, &stats, sizeof stats);
        assert_int_equal(stats.window, t < 3 ? 4 : 6 - t);
    }
    assert_int_equal(rudder_announce(handle, 6, 0, ids, 1, &error), RUDDER_E_ARGUMENT); /* planned */
    assert_int_equal(rudder_announce(handle, 7, 0, ids, 40, &error), RUDDER_OK);
    rudder_close(handle, 0);
}

/* Minibatches without ids take no room for ids, but are not kept without end either. */
static void test_empty_announcements(void **state)
{
    rudder_config_t config = configure("lookahead", NULL);
    rudder_type_config_t type = types[0];
    (void)state;
    type.max_announced = 8;
    config.types = &type;
    rudder_t *handle = open_or_fail(&config);
    int64_t seq = 0;
    while (rudder_announce(handle, seq, 0, NULL, 0, NULL) == RUDDER_OK) {
        seq++;
        assert_true(seq < 2000);
    }
    assert_true(seq >= 1024);
    assert_int_equal(rudder_announce(handle, seq, 0, NULL, 0, NULL), RUDDER_E_AGAIN);
    rudder_close(handle, 0);
}

/* The first id beyond the last is refused, whether it is planned or announced; nothing is looked up, nothing is kept. */
static void test_beyond_the_last_id(void **state)
{
    const int64_t last[] = {1058, 1059}, beyond[] = {1058, 1060};
    rudder_plan_t *plan = NULL;
    rudder_error_t error;
    (void)state;
    rudder_type_config_t type = types[0];
    type.id_end = 1060;
    rudder_config_t config = configure("lfu", NULL);
    config.types = &type;
    rudder_t *handle = open_or_fail(&config);
    assert_int_equal(rudder_plan_begin(handle, 0, beyond, 2, &plan, &error), RUDDER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "ids[1] of type 0: expected an id of 0 to 1059, found 1060"));
    assert_int_equal(rudder_announce(handle, 0, 0, beyond, 2, &error), RUDDER_E_ARGUMENT);
    assert_int_equal(rudder_plan_begin(handle, 0, last, 2, &plan, &error), RUDDER_OK);
    assert_int_equal(rudder_abort(handle, plan, &error), RUDDER_OK);
    rudder_close(handle, 0);
}

static void test_announce(void **state)
{
    const int64_t ids[] = {1001, 1002}, owned[] = {5};
    rudder_plan_t *plan;
    rudder_stats_t stats;
    (void)state;
    const rudder_config_t config = configure("lfu", NULL);
    rudder_t *handle = open_or_fail(&config);
    assert_int_equal(rudder_announce(handle, 0, 0, ids, 2, NULL), RUDDER_OK);
    assert_int_equal(rudder_announce(handle, 3, 0, owned, 1, NULL), RUDDER_E_OWNED);
    assert_int_equal(rudder_plan_begin(handle, 0, ids, 2, &plan, NULL), RUDDER_OK);
    assert_int_equal(rudder_announce(handle, 0, 0, ids, 2, NULL), RUDDER_E_ARGUMENT); /* planned already */
    assert_int_equal(rudder_announce(handle, 1, 0, ids, 2, NULL), RUDDER_OK);
    rudder_stats_get(handle, &stats, sizeof stats);
    assert_int_equal(stats.announced_minibatches, 2);
    rudder_close(handle, 0);
}

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

typedef struct counted {
    int64_t live, ever, calls, fail_at; /* fail_at: the call that fails, -1: none */
} counted_t;

static void *counted_alloc(void *context, size_t bytes, size_t alignment)
{
    counted_t *counted = context;
    void *memory = NULL;
    if (counted->calls++ == counted->fail_at || posix_memalign(&memory, alignment, bytes) != 0) {
        return NULL;
    }
    memset(memory, 0xa5, bytes); /* nothing may rely on zeroes */
    counted->live += (int64_t)bytes;
    counted->ever += (int64_t)bytes;
    return memory;
}

static void counted_free(void *context, void *memory, size_t bytes)
{
    ((counted_t *)context)->live -= (int64_t)bytes;
    free(memory);
}

static void use(rudder_t *handle, int32_t n_types, int minibatches)
{
    static char rows[200 * ROW], out[MAX_IDS * ROW];
    uint64_t random = 7;
    for (int32_t t = 0; t < n_types; t++) {
        const int64_t *fetch;
        int64_t n_miss, n_fill;
        rudder_plan_t *plan;
        assert_int_equal(rudder_plan_start(handle, t, &plan, NULL), RUDDER_OK);
        rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
        assert_int_equal(rudder_fill(handle, plan, rows, ROW, n_fill, NULL), RUDDER_OK);
    }
    for (int m = 0; m < minibatches; m++) {
        for (int32_t t = 0; t < n_types; t++) {
            int64_t ids[MAX_IDS], n_miss, n_fill;
            const int64_t *fetch;
            rudder_plan_t *plan;
            for (int i = 0; i < MAX_IDS; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                ids[i] = 1000 + (int64_t)((random >> 33) % 100);
            }
            if (m % 5 != 0) {
                assert_int_equal(rudder_announce(handle, m, t, ids, MAX_IDS, NULL), RUDDER_OK);
            }
            assert_int_equal(rudder_plan_begin(handle, t, ids, MAX_IDS, &plan, NULL), RUDDER_OK);
            rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
            assert_int_equal(rudder_complete(handle, plan, rows, ROW, out, NULL), RUDDER_OK);
            if (n_fill > 0) {
                assert_int_equal(rudder_fill(handle, plan, rows, ROW, n_fill, NULL), RUDDER_OK);
            }
        }
    }
}

static void test_memory_is_what_was_stated(void **state)
{
    static const char *const policies[] = {"none",  "static", "score", "score", "score",    "lfu",
                                           "score", "lru",    "sieve", "mix",   "lookahead"};
    static const char *const deciders[] = {NULL,    NULL, "once", "fixed:3", "gain", NULL,
                                           "never", NULL, NULL,   NULL,      NULL};
    (void)state;
    for (int i = 0; i < 11; i++) {
        for (int32_t n_types = 1; n_types <= 2; n_types++) {
            for (int own_rows = 0; own_rows < 2; own_rows++) {
                counted_t counted = {.fail_at = -1}, rows = {.fail_at = -1};
                rudder_config_t config = configure(policies[i], deciders[i]);
                rudder_stats_t stats;
                int64_t needed = 0;
                config.n_types = n_types;
                config.memory = (rudder_allocator_t){counted_alloc, counted_free, &counted};
                if (own_rows) {
                    config.row_memory = (rudder_allocator_t){counted_alloc, counted_free, &rows};
                }
                assert_int_equal(rudder_memory_needed(&config, &needed, NULL), RUDDER_OK);
                rudder_t *handle = open_or_fail(&config);
                assert_int_equal(counted.live + rows.live, needed);
                assert_int_equal(rows.live, own_rows && i > 0 ? n_types * 10 * ROW : 0);
                use(handle, n_types, 100);
                assert_int_equal(counted.ever + rows.ever, needed);
                rudder_stats_get(handle, &stats, sizeof stats);
                assert_int_equal(stats.memory_bytes, needed);
                rudder_close(handle, 0);
                assert_int_equal(counted.live, 0);
                assert_int_equal(rows.live, 0);
            }
        }
    }
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    rudder_status_t status = RUDDER_E_MEMORY;
    int64_t failed = 0;
    for (int64_t n = 0; status != RUDDER_OK; n++) {
        counted_t counted = {.fail_at = n};
        rudder_config_t config = configure("score", "once");
        rudder_t *handle = NULL;
        rudder_error_t error = {0};
        config.n_types = 2;
        config.memory = (rudder_allocator_t){counted_alloc, counted_free, &counted};
        status = rudder_open(&config, &handle, &error);
        if (status == RUDDER_OK) {
            use(handle, 2, 20);
            rudder_close(handle, 0);
        } else {
            failed++;
            assert_int_equal(status, RUDDER_E_MEMORY);
            assert_non_null(strstr(error.text, "bytes"));
            assert_null(handle);
        }
        assert_int_equal(counted.live, 0);
    }
    assert_int_equal(failed, 3); /* the block, and the rows of each type */
}

/* More than any machine has is refused, not wrapped around. */
static void test_huge_sizes(void **state)
{
    rudder_type_config_t type = types[0];
    rudder_config_t config = configure("score", NULL);
    rudder_t *handle = NULL;
    counted_t counted = {.fail_at = 0};
    int64_t bytes = 0;
    (void)state;
    type.capacity_rows = (1 << 29) - 1;
    type.row_bytes = INT32_MAX;
    type.max_ids = (1 << 30) - 1;
    config.types = &type;
    config.max_plans = 1024;
    assert_int_equal(rudder_memory_needed(&config, &bytes, NULL), RUDDER_OK);
    assert_true(bytes > type.capacity_rows * INT32_MAX);
    config.memory = (rudder_allocator_t){counted_alloc, counted_free, &counted};
    assert_int_equal(rudder_open(&config, &handle, NULL), RUDDER_E_MEMORY);
}

/* ---- Processes and threads -------------------------------------------------------------------------------------- */

static void test_forked_child(void **state)
{
    const int64_t ids[] = {1001};
    rudder_plan_t *plan;
    (void)state;
    const rudder_config_t config = configure("score", "gain");
    rudder_t *handle = open_or_fail(&config);
    assert_int_equal(rudder_plan_begin(handle, 0, ids, 1, &plan, NULL), RUDDER_OK);
    const pid_t child = fork();
    if (child == 0) {
        rudder_stats_t stats;
        const rudder_times_t times = {0};
        rudder_plan_t *another;
        int wrong = rudder_plan_begin(handle, 0, ids, 1, &another, NULL) != RUDDER_E_FORKED;
        wrong |= rudder_plan_start(handle, 0, &another, NULL) != RUDDER_E_FORKED;
        wrong |= rudder_complete(handle, plan, ids, ROW, NULL, NULL) != RUDDER_E_FORKED;
        wrong |= rudder_fill(handle, plan, ids, ROW, 0, NULL) != RUDDER_E_FORKED;
        wrong |= rudder_abort(handle, plan, NULL) != RUDDER_E_FORKED;
        wrong |= rudder_announce(handle, 9, 0, ids, 1, NULL) != RUDDER_E_FORKED;
        wrong |= rudder_invalidate(handle, 0, ids, 1, NULL) != RUDDER_E_FORKED;
        wrong |= rudder_report_times(handle, &times) != RUDDER_E_FORKED;
        wrong |= rudder_stats_get(handle, &stats, sizeof stats) != RUDDER_E_FORKED;
        rudder_close(handle, 0);
        _exit(wrong);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(rudder_abort(handle, plan, NULL), RUDDER_OK); /* the parent's is untouched */
    rudder_close(handle, 0);
}

typedef struct reader {
    rudder_t *handle;
    atomic_int stop;
    int64_t read, torn;
} reader_t;

static void *read_stats(void *context)
{
    reader_t *reader = context;
    int64_t last = 0;
    while (!atomic_load(&reader->stop)) {
        rudder_stats_t s;
        rudder_stats_get(reader->handle, &s, sizeof s);
        reader->torn += s.remote_rows != s.hit_rows + s.miss_rows || s.fetched_rows != s.miss_rows + s.fill_rows ||
                        s.fetched_bytes != ROW * s.fetched_rows || s.minibatches < last || s.rows_in_buffer > 10;
        last = s.minibatches;
        reader->read++;
    }
    return NULL;
}

static void test_statistics_from_another_thread(void **state)
{
    (void)state;
    const rudder_config_t config = configure("score", "fixed:3");
    reader_t reader = {.handle = open_or_fail(&config)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_stats, &reader), 0);
    use(reader.handle, 1, 20000);
    atomic_store(&reader.stop, 1);
    pthread_join(thread, NULL);
    assert_true(reader.read > 0);
    assert_int_equal(reader.torn, 0);
    rudder_close(reader.handle, 0);
}

static void test_close_with_open_plans(void **state)
{
    const int64_t ids[] = {1001};
    rudder_plan_t *plan;
    (void)state;
    const rudder_config_t config = configure("lfu", NULL);
    rudder_t *handle = open_or_fail(&config);
    assert_int_equal(rudder_plan_begin(handle, 0, ids, 1, &plan, NULL), RUDDER_OK);
    rudder_close(handle, 0);
    rudder_close(NULL, 0);
    assert_string_equal(rudder_version(), RUDDER_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_combinations),
                                       cmocka_unit_test(test_arguments),
                                       cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_wrong_ids),
                                       cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_announce),
                                       cmocka_unit_test(test_beyond_the_last_id),
                                       cmocka_unit_test(test_look_ahead),
                                       cmocka_unit_test(test_empty_announcements),
                                       cmocka_unit_test(test_owners),
                                       cmocka_unit_test(test_start_by_weights),
                                       cmocka_unit_test(test_memory_is_what_was_stated),
                                       cmocka_unit_test(test_every_allocation_may_fail),
                                       cmocka_unit_test(test_huge_sizes),
                                       cmocka_unit_test(test_forked_child),
                                       cmocka_unit_test(test_statistics_from_another_thread),
                                       cmocka_unit_test(test_close_with_open_plans)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
