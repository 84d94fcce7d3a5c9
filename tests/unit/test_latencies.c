/* Mean and quantiles of the last latencies, against sorting them anew. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/latencies.h"

enum { ADDED = 3 * LATENCIES + 17 };

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest value that at least percent of 100 values do not exceed, found by counting. */
static double quantile(const double *sorted, int64_t n, int64_t percent)
{
    for (int64_t i = 0; i < n; i++) {
        if (100 * (i + 1) >= percent * n) {
            return sorted[i];
        }
    }
    return sorted[n - 1];
}

static void test_against_sorting(void **state)
{
    (void)state;
    static latencies_t latencies;
    static double all[ADDED], last[LATENCIES];
    assert_true(latencies_quantile(&latencies, 50) == 0);
    assert_true(latencies.mean == 0);
    uint64_t random = 9;
    for (int64_t k = 0; k < ADDED; k++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        all[k] = k / 500 % 2 ? (double)(random >> 60) : (double)(random >> 40) * 1e-3; /* many equal ones, and few */
        latencies_add(&latencies, all[k]);
        const int64_t n = k + 1 < LATENCIES ? k + 1 : LATENCIES;
        if (k < 120 || k % 37 == 0) {
            double sum = 0;
            memcpy(last, all + k + 1 - n, (size_t)n * sizeof *last);
            qsort(last, (size_t)n, sizeof *last, compare);
            for (int64_t i = 0; i < n; i++) {
                sum += last[i];
            }
            assert_true(latencies_quantile(&latencies, 50) == quantile(last, n, 50));
            assert_true(latencies_quantile(&latencies, 99) == quantile(last, n, 99));
            assert_true(latencies_quantile(&latencies, 1) == quantile(last, n, 1));
            assert_true(fabs(latencies.mean - sum / (double)n) <= 1e-9 * (1 + sum));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_sorting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
