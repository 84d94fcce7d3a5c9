/* Parts of the buffer by themselves: selection against sorting, and plan numbers that run out of 32 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "buffer/buffer.h"
#include "buffer/rank.h"
#include "policy/policy.h"

enum { MOST_ITEMS = 3000 };

static rank_item_t items[MOST_ITEMS], sorted[MOST_ITEMS], memory[MOST_ITEMS];

static int compare(const void *a, const void *b)
{
    const rank_item_t *x = a, *y = b;
    if (x->key != y->key) {
        return x->key > y->key ? -1 : 1;
    }
    return (x->id > y->id) - (x->id < y->id);
}

/* Few different keys, many, all equal, ascending, descending. */
static void make_items(int64_t n, int shape, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t random = rng_mix(seed * MOST_ITEMS + (uint64_t)i);
        const uint64_t keys[] = {random % 4, random, 7, (uint64_t)i, (uint64_t)(n - i)};
        items[i] = (rank_item_t){.key = keys[shape], .id = i * 1000003 % MOST_ITEMS, .node = i};
    }
    memcpy(sorted, items, sizeof items);
    qsort(sorted, (size_t)n, sizeof sorted[0], compare);
}

static void check_first(const rank_item_t *found, int64_t k)
{
    static rank_item_t first[MOST_ITEMS];
    memcpy(first, found, (size_t)k * sizeof first[0]);
    qsort(first, (size_t)k, sizeof first[0], compare);
    assert_memory_equal(first, sorted, (size_t)k * sizeof first[0]);
}

static void test_ranks(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 16, 17, 18, 100, MOST_ITEMS};
    (void)state;
    for (int s = 0; s < 9; s++) {
        const int64_t n = sizes[s];
        for (int shape = 0; shape < 5; shape++) {
            const int64_t ks[] = {1, 2, n / 3, n - 1, n};
            make_items(n, shape, 5);
            memcpy(memory, items, sizeof items);
            rank_sort(memory, n);
            assert_memory_equal(memory, sorted, (size_t)n * sizeof memory[0]);
            for (int i = 0; i < 5; i++) {
                const int64_t k = ks[i];
                if (k < 1 || k > n) {
                    continue;
                }
                memcpy(memory, items, sizeof items);
                rank_select(memory, n, k);
                check_first(memory, k);
                assert_memory_equal(&memory[k - 1], &sorted[k - 1], sizeof memory[0]);
            }
        }
    }
}

static void test_first_of_a_stream(void **state)
{
    static const int64_t ks[] = {0, 1, 2, 7, 100, MOST_ITEMS};
    (void)state;
    for (int shape = 0; shape < 5; shape++) {
        make_items(MOST_ITEMS - 1, shape, 9);
        for (int i = 0; i < 6; i++) {
            const int64_t rooms[] = {ks[i] + 1, ks[i] + ks[i] / 2 + 1};
            for (int r = 0; r < 2; r++) {
                rank_item_t *room = malloc((size_t)rooms[r] * sizeof *room); /* its end is guarded by the sanitizer */
                rank_top_t top = {.items = room, .capacity = rooms[r], .k = ks[i]};
                assert_non_null(room);
                for (int64_t j = 0; j < MOST_ITEMS - 1; j++) {
                    rank_top_add(&top, items[j]);
                }
                const int64_t n = rank_top_end(&top);
                assert_int_equal(n, ks[i] < MOST_ITEMS - 1 ? ks[i] : MOST_ITEMS - 1);
                check_first(room, n);
                free(room);
            }
        }
    }
}

/* One minibatch by hand; the row of an id is the id. Returns its misses. */
static int64_t minibatch(rudder_nodes_t *nodes, buffer_plan_t *plan, const int64_t *ids, int64_t n)
{
    int64_t out[8];
    buffer_begin(nodes, plan, ids, n);
    buffer_finish(nodes, plan);
    assert_true(buffer_ready(plan));
    buffer_complete(plan, plan->fetch, sizeof(int64_t), out);
    assert_memory_equal(out, ids, (size_t)n * sizeof out[0]);
    return plan->n_miss;
}

/* Marks hold the low 32 bits of a plan's number: around the wrap duplicates, hits and misses must be what they are. */
static void test_plan_numbers_wrap(void **state)
{
    buffer_config_t config = {.row_bytes = 8,
                              .capacity = 2,
                              .max_ids = 8,
                              .max_tracked = 4,
                              .max_plans = 1,
                              .period = 4,
                              .alpha = .005,
                              .policy = &policy_lfu};
    const int64_t ids[] = {11, 12, 11, 13, 12};
    (void)state;
    for (int64_t before = 0; before < 6; before++) {
        rudder_nodes_t nodes;
        buffer_plan_t plan;
        arena_t measure = {0};
        config.id_end = before % 2 == 0 ? INT64_MAX : 14; /* found by hashing, found by an array */
        buffer_layout(&measure, &config, NULL);
        buffer_plan_layout(&measure, config.policy, config.max_ids, config.capacity, NULL);
        unsigned char *block = aligned_alloc(ARENA_ALIGNMENT, measure.used);
        arena_t arena = {.base = block};
        assert_non_null(block);
        memset(block, 0xa5, measure.used);
        buffer_layout(&arena, &config, &nodes);
        assert_true((nodes.by_id == NULL) == (before % 2 == 0));
        buffer_plan_layout(&arena, config.policy, config.max_ids, config.capacity, &plan);
        assert_int_equal(arena.used, measure.used);
        unsigned char rows[16];
        buffer_open(&nodes, rows);
        const rudder_policy_setup_t setup = buffer_setup(&config, &nodes);
        policy_lfu.open(nodes.policy_self, &setup);
        assert_int_equal(minibatch(&nodes, &plan, ids, 5), 3); /* plan 1: 11 and 12 stay */
        for (int64_t i = 2; i < 5; i++) {
            assert_int_equal(minibatch(&nodes, &plan, &i, 1), 1); /* plan i: too cold to enter */
        }
        for (int i = 0; i < 20; i++) {
            assert_int_equal(minibatch(&nodes, &plan, ids, 3), 0);
        }
        nodes.sequence = (int64_t)UINT32_MAX - before;
        for (int i = 0; i < 12; i++) {
            const int64_t again = (int64_t)(uint32_t)(nodes.sequence + 1); /* what the plan of this number asked for */
            if (again >= 2 && again < 5) {
                assert_int_equal(minibatch(&nodes, &plan, &again, 1), 1);
            } else {
                assert_int_equal(minibatch(&nodes, &plan, ids, again == 0 ? 0 : 3), 0);
            }
        }
        assert_true(nodes.sequence > UINT32_MAX);
        free(block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks), cmocka_unit_test(test_first_of_a_stream),
                                       cmocka_unit_test(test_plan_numbers_wrap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
