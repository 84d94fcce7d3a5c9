/* k of n without replacement: what must hold of every draw, and that every subset is equally likely. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "sample/draw.h"

static void test_bounds(void **state)
{
    (void)state;
    const uint64_t bounds[] = {1,         2, 3, 1000, (uint64_t)1 << 31, ((uint64_t)1 << 32) + 1, (uint64_t)1 << 40,
                               UINT64_MAX};
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        assert_int_equal(draw_below(0, bounds[b]), 0);
        assert_int_equal(draw_below(UINT64_MAX, bounds[b]), bounds[b] - 1);
        assert_int_equal(draw_below((uint64_t)1 << 63, bounds[b]), bounds[b] / 2);
    }
}

static void test_positions_are_distinct_and_ascending(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 2, 3, 10, 11, 100, 65537, ((int64_t)1 << 32) + 7, (int64_t)1 << 40};
    int64_t *position = malloc(1001 * sizeof *position);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int64_t k = 0; k <= 1000 && k <= sizes[s]; k = k < 12 ? k + 1 : k * 3) {
            for (uint64_t who = 0; who < 20; who++) {
                position[k] = -5;
                draw_positions(99, who << 33, sizes[s], k, position);
                assert_int_equal(position[k], -5);
                for (int64_t i = 0; i < k; i++) {
                    assert_true(position[i] >= 0 && position[i] < sizes[s] &&
                                (i == 0 || position[i] > position[i - 1]));
                }
            }
        }
    }
    free(position);
}

static void test_draws_depend_on_key_and_node(void **state)
{
    (void)state;
    int64_t a[8], b[8];
    draw_positions(1, (uint64_t)1 << 35, 1 << 20, 8, a);
    draw_positions(1, (uint64_t)1 << 35, 1 << 20, 8, b);
    assert_memory_equal(a, b, sizeof a);
    draw_positions(1, 0, 1 << 20, 8, b);
    assert_memory_not_equal(a, b, sizeof a);
    draw_positions(2, (uint64_t)1 << 35, 1 << 20, 8, b);
    assert_memory_not_equal(a, b, sizeof a);
}

/* All k-subsets of n, as bit masks: chi-square below the value that chance passes once in 1000. */
static void check_subsets(int64_t n, int64_t k, int subsets, double limit)
{
    const int64_t draws = (int64_t)subsets * 2000;
    int64_t count[256] = {0}, position[8];
    for (int64_t i = 0; i < draws; i++) {
        unsigned mask = 0;
        draw_positions(7, (uint64_t)i, n, k, position);
        for (int64_t j = 0; j < k; j++) {
            mask |= 1u << position[j];
        }
        count[mask]++;
    }
    double chi2 = 0;
    int seen = 0;
    for (int mask = 0; mask < 256; mask++) {
        if (count[mask]) {
            chi2 += ((double)count[mask] - 2000) * ((double)count[mask] - 2000) / 2000;
            seen++;
        }
    }
    assert_int_equal(seen, subsets);
    assert_true(chi2 < limit);
}

static void test_every_subset_is_equally_likely(void **state)
{
    (void)state;
    check_subsets(5, 2, 10, 27.88);
    check_subsets(6, 3, 20, 43.82);
    check_subsets(7, 1, 7, 22.46);
    check_subsets(8, 7, 8, 24.32);
    check_subsets(8, 4, 70, 111.06);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_positions_are_distinct_and_ascending),
        cmocka_unit_test(test_draws_depend_on_key_and_node),
        cmocka_unit_test(test_every_subset_is_equally_likely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
