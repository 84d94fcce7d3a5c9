/* The bound read from front to back is the bound that knows the whole trace, for every prefix and every capacity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "trace/bound.h"

enum { MINIBATCHES = 24, MOST_IDS = 16, CAPACITIES = 6, TRACES = 3000 };

static uint64_t state_of_random;

static int64_t below(int64_t n)
{
    return (int64_t)(rng_mix(state_of_random++) % (uint64_t)n);
}

/* A trace of some shape: few ids or many, hot ones or none, empty minibatches, duplicates, huge ids. */
static void make(int64_t *ids, int64_t *offsets)
{
    const int64_t range = 1 + below(60), most = below(MOST_IDS + 1), shift = below(2) * ((int64_t)1 << 40);
    const int64_t hot = below(3);
    offsets[0] = 0;
    for (int64_t t = 0; t < MINIBATCHES; t++) {
        const int64_t n = below(5) == 0 ? 0 : most;
        for (int64_t i = 0; i < n; i++) {
            const int64_t a = below(range), b = below(range);
            ids[offsets[t] + i] = shift + (hot > 0 && b < a ? b : a);
        }
        offsets[t + 1] = offsets[t] + n;
    }
}

static void prefixes_have_the_bound_of_the_whole(void **state)
{
    (void)state;
    static int64_t ids[MINIBATCHES * MOST_IDS];
    int64_t offsets[MINIBATCHES + 1];
    for (int trace = 0; trace < TRACES; trace++) {
        state_of_random = 1000003 * (uint64_t)trace;
        make(ids, offsets);
        const int64_t capacity[CAPACITIES] = {0, 1, 7, 1 + below(20), below(60), 1 << 20};
        bound_t *bound = NULL;
        assert_int_equal(bound_open(capacity, CAPACITIES, &bound, NULL), RUDDER_OK);
        for (int64_t t = 0; t < MINIBATCHES; t++) {
            assert_int_equal(bound_add(bound, ids + offsets[t], offsets[t + 1] - offsets[t], NULL), RUDDER_OK);
            for (int32_t c = 0; c < CAPACITIES; c++) {
                int64_t fetched, remote;
                assert_int_equal(bound_fetched(ids, offsets, t + 1, capacity[c], &fetched, &remote, NULL, NULL),
                                 RUDDER_OK);
                assert_int_equal(bound_rows(bound, c), fetched);
                assert_int_equal(bound_remote(bound), remote);
            }
        }
        assert_int_equal(bound_rows(bound, CAPACITIES - 1), bound_distinct(bound));
        assert_true(bound_memory(bound) <=
                    bound_memory_for(bound_distinct(bound), MINIBATCHES, CAPACITIES)); /* as stated */
        bound_close(bound);
    }
}

static void nothing_is_no_trouble(void **state)
{
    (void)state;
    bound_t *bound = NULL;
    assert_int_equal(bound_open(NULL, 0, &bound, NULL), RUDDER_OK);
    assert_int_equal(bound_add(bound, NULL, 0, NULL), RUDDER_OK);
    assert_int_equal(bound_add(bound, (int64_t[]){5, 5, INT64_MAX}, 3, NULL), RUDDER_OK);
    assert_int_equal(bound_add(bound, (int64_t[]){5}, 1, NULL), RUDDER_OK);
    assert_int_equal(bound_remote(bound), 3);
    assert_int_equal(bound_distinct(bound), 2);
    assert_true(bound_knows(bound, INT64_MAX));
    assert_false(bound_knows(bound, 4));
    bound_close(bound);
    bound_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prefixes_have_the_bound_of_the_whole),
                                       cmocka_unit_test(nothing_is_no_trouble)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
