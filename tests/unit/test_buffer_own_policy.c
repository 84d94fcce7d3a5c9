/*
 * Policies of a user. A puppet lets rows in and out exactly as a test says, which drives the buffer through orders of
 * arrival that random runs seldom meet. A wild one admits whatever it likes, asks for what has no meaning, and scribbles
 * its state: rows must be right all the same, and an abort must leave no trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rudder/rudder.h"

enum { MAX_IDS = 64, ROW = 8 };

static rudder_t *open_with(const rudder_policy_t *policy, int64_t capacity, const rudder_decider_t *decider)
{
    rudder_t *handle = NULL;
    rudder_error_t error = {0};
    rudder_config_t config;
    const rudder_type_config_t type = {
        .row_bytes = ROW, .capacity_rows = capacity, .max_ids = MAX_IDS, .max_tracked = 200};
    rudder_config_init(&config, sizeof config);
    config.types = &type;
    config.policy_table = policy;
    config.decider_table = decider;
    config.max_plans = 8;
    if (rudder_open(&config, &handle, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    return handle;
}

/* The row of an id is the id. */
static rudder_status_t complete(rudder_t *handle, rudder_plan_t *plan, const int64_t *ids, int64_t n)
{
    const int64_t *fetch;
    int64_t n_miss, n_fill, out[MAX_IDS];
    rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
    const rudder_status_t status = rudder_complete(handle, plan, fetch, ROW, out, NULL);
    if (status == RUDDER_OK) {
        assert_memory_equal(out, ids, (size_t)n * ROW);
    }
    return status;
}

static void fill(rudder_t *handle, rudder_plan_t *plan, int64_t from, int64_t n)
{
    const int64_t *fetch;
    int64_t n_miss, n_fill;
    rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
    assert_true(from + n <= n_fill);
    assert_int_equal(rudder_fill(handle, plan, fetch + n_miss + from, ROW, n, NULL), RUDDER_OK);
}

static int64_t count_misses(rudder_t *handle, const int64_t *ids, int64_t n)
{
    rudder_plan_t *plan;
    const int64_t *fetch;
    int64_t n_miss, n_fill;
    assert_int_equal(rudder_plan_begin(handle, 0, ids, n, &plan, NULL), RUDDER_OK);
    rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
    assert_int_equal(rudder_abort(handle, plan, NULL), RUDDER_OK);
    return n_miss;
}

/* ---- The puppet ------------------------------------------------------------------------------------------------- */

static struct {
    int64_t enter, leave; /* ids; -1: nobody */
    int32_t slot;         /* what the last admission said */
    int in_misses;        /* admit within `misses` */
} puppet;

static int32_t node_of(const rudder_nodes_t *nodes, int64_t id)
{
    for (int32_t node = 0; node < rudder_nodes_count(nodes); node++) {
        if (rudder_node_id(nodes, node) == id) {
            return node;
        }
    }
    return -1;
}

static int64_t puppet_move(rudder_nodes_t *nodes)
{
    if (puppet.enter < 0) {
        return 0;
    }
    puppet.slot =
        rudder_nodes_admit(nodes, node_of(nodes, puppet.enter), puppet.leave < 0 ? -1 : node_of(nodes, puppet.leave));
    return puppet.slot >= 0;
}

static int64_t puppet_replace(void *self, rudder_nodes_t *nodes)
{
    (void)self;
    return puppet.in_misses ? 0 : puppet_move(nodes);
}

static void puppet_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)self, (void)node, (void)n;
    if (puppet.in_misses) {
        puppet_move(nodes);
    }
}

static rudder_status_t always(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    (void)self, (void)context;
    answer->verdict = RUDDER_REPLACE;
    return RUDDER_OK;
}

static const rudder_decider_t always_decider = {.size = sizeof(rudder_decider_t),
                                                .name = "always",
                                                .flags = RUDDER_DECIDER_INLINE,
                                                .interval = 1,
                                                .decide = always};

static const rudder_policy_t puppet_policy = {.size = sizeof(rudder_policy_t),
                                              .name = "puppet",
                                              .flags = RUDDER_POLICY_REPLACES | RUDDER_POLICY_ADMITS,
                                              .misses = puppet_misses,
                                              .replace = puppet_replace};

/* Plans ids and lets `enter` in for `leave`. */
static rudder_plan_t *plan_move(rudder_t *handle, const int64_t *ids, int64_t n, int64_t enter, int64_t leave)
{
    rudder_plan_t *plan = NULL;
    puppet.enter = enter;
    puppet.leave = leave;
    puppet.slot = -2;
    puppet.in_misses = 0;
    assert_int_equal(rudder_plan_begin(handle, 0, ids, n, &plan, NULL), RUDDER_OK);
    puppet.enter = -1;
    return plan;
}

/* Minibatches in which 1 and 2 become known. */
static rudder_t *open_puppet(int64_t capacity)
{
    const int64_t both[] = {1, 2};
    rudder_t *handle = open_with(&puppet_policy, capacity, &always_decider);
    rudder_plan_t *plan = plan_move(handle, both, 2, -1, -1);
    assert_int_equal(complete(handle, plan, both, 2), RUDDER_OK);
    return handle;
}

/* 1 enters, leaves for 2, and enters again, in one slot and before any of the three rows has come. */
static void test_row_of_an_earlier_stay(void **state)
{
    const int64_t one[] = {1};
    (void)state;
    rudder_t *handle = open_puppet(1);
    rudder_plan_t *first = plan_move(handle, NULL, 0, 1, -1), *second = plan_move(handle, NULL, 0, 2, 1);
    rudder_plan_t *third = plan_move(handle, NULL, 0, 1, 2);
    assert_int_equal(puppet.slot, 0);
    assert_int_equal(complete(handle, first, NULL, 0), RUDDER_OK);
    assert_int_equal(complete(handle, second, NULL, 0), RUDDER_OK);
    assert_int_equal(complete(handle, third, NULL, 0), RUDDER_OK);
    fill(handle, first, 0, 1);
    rudder_plan_t *reader = plan_move(handle, one, 1, -1, -1);
    assert_int_equal(complete(handle, reader, one, 1), RUDDER_E_AGAIN);
    fill(handle, second, 0, 1); /* overwrites the row of the first stay */
    assert_int_equal(complete(handle, reader, one, 1), RUDDER_E_AGAIN);
    fill(handle, third, 0, 1);
    assert_int_equal(complete(handle, reader, one, 1), RUDDER_OK);
    rudder_close(handle, 0);
}

/* The rows come in the reverse order: what is there already is newer and stays. */
static void test_old_row_does_not_overwrite(void **state)
{
    const int64_t one[] = {1};
    (void)state;
    rudder_t *handle = open_puppet(1);
    rudder_plan_t *first = plan_move(handle, NULL, 0, 2, -1), *second = plan_move(handle, NULL, 0, 1, 2);
    assert_int_equal(complete(handle, first, NULL, 0), RUDDER_OK);
    assert_int_equal(complete(handle, second, NULL, 0), RUDDER_OK);
    fill(handle, second, 0, 1);
    fill(handle, first, 0, 1);
    rudder_plan_t *reader = plan_move(handle, one, 1, -1, -1);
    assert_int_equal(complete(handle, reader, one, 1), RUDDER_OK);
    rudder_close(handle, 0);
}

/* A plan whose row never came is given up after the same node came back by another plan: that one stays. */
static void test_giving_up_an_earlier_stay(void **state)
{
    const int64_t one[] = {1};
    (void)state;
    rudder_t *handle = open_puppet(1);
    rudder_plan_t *first = plan_move(handle, NULL, 0, 1, -1);
    assert_int_equal(complete(handle, first, NULL, 0), RUDDER_OK);
    rudder_plan_t *second = plan_move(handle, NULL, 0, 2, 1);
    assert_int_equal(complete(handle, second, NULL, 0), RUDDER_OK);
    fill(handle, second, 0, 1);
    rudder_plan_t *third = plan_move(handle, NULL, 0, 1, 2);
    assert_int_equal(complete(handle, third, NULL, 0), RUDDER_OK);
    fill(handle, third, 0, 1);
    assert_int_equal(rudder_abort(handle, first, NULL), RUDDER_OK);
    assert_int_equal(count_misses(handle, one, 1), 0);
    rudder_plan_t *reader = plan_move(handle, one, 1, -1, -1);
    assert_int_equal(complete(handle, reader, one, 1), RUDDER_OK);
    rudder_close(handle, 0);
}

/* A row is on its way when a plan that lets it go is made and aborted; it arrives in between, or later. */
static void test_abort_brings_back_a_row_on_its_way(void **state)
{
    const int64_t one[] = {1};
    (void)state;
    for (int arrives = 0; arrives < 2; arrives++) {
        rudder_t *handle = open_puppet(1);
        rudder_plan_t *first = plan_move(handle, NULL, 0, 1, -1);
        assert_int_equal(complete(handle, first, NULL, 0), RUDDER_OK);
        rudder_plan_t *second = plan_move(handle, NULL, 0, 2, 1);
        if (arrives) {
            fill(handle, first, 0, 1);
        }
        assert_int_equal(rudder_abort(handle, second, NULL), RUDDER_OK);
        rudder_plan_t *reader = plan_move(handle, one, 1, -1, -1);
        if (!arrives) {
            assert_int_equal(complete(handle, reader, one, 1), RUDDER_E_AGAIN);
            fill(handle, first, 0, 1);
        }
        assert_int_equal(complete(handle, reader, one, 1), RUDDER_OK);
        rudder_close(handle, 0);
    }
}

/* What rudder_nodes_admit() refuses, without changing anything. */
static void test_refusals(void **state)
{
    const int64_t ids[] = {3}, known[] = {1, 2, 3};
    (void)state;
    rudder_t *handle = open_puppet(1);
    rudder_plan_t *plan = plan_move(handle, NULL, 0, 1, 2); /* the victim is outside */
    assert_int_equal(puppet.slot, -1);
    assert_int_equal(complete(handle, plan, NULL, 0), RUDDER_OK);
    plan = plan_move(handle, NULL, 0, 77, -1); /* not tracked */
    assert_int_equal(puppet.slot, -1);
    assert_int_equal(complete(handle, plan, NULL, 0), RUDDER_OK);
    plan = plan_move(handle, NULL, 0, 1, -1);
    assert_int_equal(puppet.slot, 0);
    assert_int_equal(complete(handle, plan, NULL, 0), RUDDER_OK);
    fill(handle, plan, 0, 1);
    plan = plan_move(handle, NULL, 0, 1, -1); /* inside already */
    assert_int_equal(puppet.slot, -1);
    assert_int_equal(complete(handle, plan, NULL, 0), RUDDER_OK);
    plan = plan_move(handle, NULL, 0, 2, -1); /* no slot is free */
    assert_int_equal(puppet.slot, -1);
    assert_int_equal(complete(handle, plan, NULL, 0), RUDDER_OK);
    puppet.in_misses = 1; /* 2 was not missed in this minibatch */
    puppet.enter = 2;
    puppet.leave = 1;
    assert_int_equal(rudder_plan_begin(handle, 0, ids, 1, &plan, NULL), RUDDER_OK);
    assert_int_equal(puppet.slot, -1);
    assert_int_equal(complete(handle, plan, ids, 1), RUDDER_OK);
    puppet.in_misses = 0;
    puppet.enter = -1;
    assert_int_equal(count_misses(handle, known, 3), 2);
    rudder_close(handle, 0);
}

/* ---- The wild one ----------------------------------------------------------------------------------------------- */

static uint64_t wild_random = 1;

static int64_t wild_below(int64_t n)
{
    wild_random = wild_random * 6364136223846793005u + 1442695040888963407u;
    return n <= 0 ? -1 : (int64_t)((wild_random >> 33) % (uint64_t)n);
}

static void wild_moves(rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    for (int64_t i = 0; i < 12; i++) {
        const int32_t enter =
            (int32_t)(n > 0 && wild_below(2) ? node[wild_below(n)] : wild_below(rudder_nodes_count(nodes) + 3) - 1);
        const int32_t victim =
            wild_below(3) ? rudder_slot_node(nodes, (int32_t)wild_below(rudder_nodes_capacity(nodes))) : -1;
        const int32_t slot = rudder_nodes_admit(nodes, enter, victim);
        if (slot >= 0) {
            assert_int_equal(rudder_slot_node(nodes, slot), enter);
            assert_int_equal(rudder_node_slot(nodes, enter), slot);
            *(uint64_t *)rudder_node_state(nodes, enter) += 1000;
            if (victim >= 0) {
                assert_int_equal(rudder_node_slot(nodes, victim), -1);
                *(uint64_t *)rudder_node_state(nodes, victim) ^= 0x5555;
                assert_int_equal(rudder_nodes_admit(nodes, victim, enter), -1); /* not back in the same minibatch */
            }
        }
    }
}

static void wild_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        assert_true(rudder_node_slot(nodes, node[i]) >= 0);
        *(uint64_t *)rudder_node_state(nodes, node[i]) += 1;
    }
}

static void wild_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(rudder_node_slot(nodes, node[i]), -1);
        assert_true(rudder_node_missed(nodes, node[i]));
        *(uint64_t *)rudder_node_state(nodes, node[i]) += 1;
    }
    wild_moves(nodes, node, n);
}

static int64_t wild_replace(void *self, rudder_nodes_t *nodes)
{
    (void)self;
    wild_moves(nodes, NULL, 0);
    return 0;
}

static const rudder_nodes_t *wild_nodes; /* to look at states from outside */

static rudder_status_t wild_open(void *self, const rudder_policy_setup_t *setup)
{
    (void)self;
    wild_nodes = setup->nodes;
    return RUDDER_OK;
}

static const rudder_policy_t wild_policy = {.size = sizeof(rudder_policy_t),
                                            .name = "wild",
                                            .flags = RUDDER_POLICY_REPLACES | RUDDER_POLICY_ADMITS,
                                            .state_bytes = 24,
                                            .open = wild_open,
                                            .hits = wild_hits,
                                            .misses = wild_misses,
                                            .replace = wild_replace};

/* Everything that a policy can see, folded into one number. */
static uint64_t fingerprint(int64_t capacity)
{
    uint64_t sum = (uint64_t)rudder_nodes_count(wild_nodes) + 31 * (uint64_t)rudder_nodes_free(wild_nodes) +
                   17 * (uint64_t)rudder_nodes_minibatch(wild_nodes);
    for (int32_t node = 0; node < rudder_nodes_count(wild_nodes); node++) {
        const uint64_t *state = rudder_node_state(wild_nodes, node);
        sum = sum * 1099511628211u + (uint64_t)rudder_node_id(wild_nodes, node);
        sum = sum * 1099511628211u + (uint64_t)rudder_node_slot(wild_nodes, node) + state[0] + 3 * state[1] +
              5 * state[2];
    }
    for (int32_t slot = 0; slot < capacity; slot++) {
        sum = sum * 1099511628211u + (uint64_t)rudder_slot_node(wild_nodes, slot);
    }
    return sum;
}

static void test_wild(void **state)
{
    static const int64_t capacities[] = {0, 1, 7, 40};
    int64_t ids[8][MAX_IDS], n[8];
    uint64_t before[8];
    rudder_plan_t *plans[8];
    (void)state;
    for (int round = 0; round < 400; round++) {
        const int64_t capacity = capacities[round % 4];
        rudder_t *handle = open_with(&wild_policy, capacity, &always_decider);
        for (int step = 0; step < 30; step++) {
            const int depth = 1 + (int)wild_below(8), aborted = (int)wild_below(depth + 1);
            for (int i = 0; i < depth; i++) {
                n[i] = wild_below(20);
                for (int64_t j = 0; j < n[i]; j++) {
                    ids[i][j] = ((int64_t)1 << 40) + wild_below(300); /* some beyond max_tracked */
                }
                before[i] = fingerprint(capacity);
                assert_int_equal(rudder_plan_begin(handle, 0, ids[i], n[i], &plans[i], NULL), RUDDER_OK);
            }
            for (int i = depth; i > aborted; i--) {
                assert_int_equal(rudder_abort(handle, plans[i - 1], NULL), RUDDER_OK);
                assert_true(fingerprint(capacity) == before[i - 1]);
            }
            for (int i = 0; i < aborted; i++) {
                const int64_t *fetch;
                int64_t n_miss, n_fill;
                rudder_plan_fetch(plans[i], &fetch, &n_miss, &n_fill);
                assert_int_equal(complete(handle, plans[i], ids[i], n[i]), RUDDER_OK);
                if (n_fill > 0) {
                    fill(handle, plans[i], 0, n_fill);
                }
            }
        }
        rudder_close(handle, 0);
    }
}

/* ---- One that looks ahead ---------------------------------------------------------------------------------------- */

static struct {
    int64_t minibatch, n;
    int32_t node[MAX_IDS];
    const rudder_nodes_t *nodes;
} watcher;

static rudder_status_t watcher_open(void *self, const rudder_policy_setup_t *setup)
{
    (void)self;
    watcher.nodes = setup->nodes;
    assert_int_equal(setup->max_announced, 16 * 2 + 2 * MAX_IDS); /* of two slots */
    assert_int_equal(setup->max_plans, 8);
    assert_int_equal(setup->cost_classes, 1);
    return RUDDER_OK;
}

static void watcher_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        ++*(int64_t *)rudder_node_state(nodes, node[i]);
        assert_true(rudder_node_cost(nodes, node[i]) == 1);
    }
}

static void watcher_announced(void *self, rudder_nodes_t *nodes, int64_t minibatch, const int32_t *node, int64_t n)
{
    (void)self, (void)nodes;
    watcher.minibatch = minibatch;
    watcher.n = n;
    memcpy(watcher.node, node, (size_t)n * sizeof *node);
}

static int watcher_wants(void *self, const rudder_nodes_t *nodes)
{
    (void)self;
    return rudder_nodes_minibatch(nodes) == 1;
}

static const rudder_policy_t watcher_policy = {.size = sizeof(rudder_policy_t),
                                               .name = "watcher",
                                               .state_bytes = 8,
                                               .open = watcher_open,
                                               .misses = watcher_misses,
                                               .announced = watcher_announced,
                                               .wants = watcher_wants};

static void check_watched(int64_t first_state)
{
    for (int32_t node = 0; node < 4; node++) {
        assert_int_equal(rudder_node_id(watcher.nodes, node), 1 + node);
        assert_int_equal(*(int64_t *)rudder_node_state(watcher.nodes, node), node < 2 ? first_state : 0);
    }
}

/* A plan tracks 1 and 2, an announcement 3 and 4; the plan is taken back: all four stay, as if never asked for. */
static void test_announcement_outlives_an_abort(void **state)
{
    const int64_t ids[] = {1, 2}, ahead[] = {3, 2, 4, 3}, later[] = {5, 6};
    (void)state;
    rudder_t *handle = open_with(&watcher_policy, 2, NULL);
    rudder_plan_t *plan, *second;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(rudder_plan_begin(handle, 0, ids, 2, &plan, NULL), RUDDER_OK);
        assert_int_equal(rudder_announce_wanted(handle, 0), 1);
        if (again == 0) {
            assert_int_equal(rudder_announce(handle, 1, 0, ahead, 4, NULL), RUDDER_OK);
        }
        assert_int_equal(rudder_nodes_count(watcher.nodes), 4);
        check_watched(1);
        assert_int_equal(rudder_plan_begin(handle, 0, later, 2, &second, NULL), RUDDER_OK);
        assert_int_equal(rudder_nodes_count(watcher.nodes), 6);
        assert_int_equal(rudder_abort(handle, second, NULL), RUDDER_OK);
        assert_int_equal(rudder_abort(handle, plan, NULL), RUDDER_OK);
        assert_int_equal(rudder_nodes_count(watcher.nodes), 4);
        check_watched(0);
        assert_int_equal(rudder_announce_wanted(handle, 0), 0);
    }
    assert_int_equal(watcher.minibatch, 1);
    assert_int_equal(watcher.n, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rudder_node_id(watcher.nodes, watcher.node[i]), ahead[i]);
    }
    rudder_close(handle, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_row_of_an_earlier_stay),
                                       cmocka_unit_test(test_old_row_does_not_overwrite),
                                       cmocka_unit_test(test_giving_up_an_earlier_stay),
                                       cmocka_unit_test(test_abort_brings_back_a_row_on_its_way),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_wild),
                                       cmocka_unit_test(test_announcement_outlives_an_abort)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
