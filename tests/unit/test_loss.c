/* Cross-entropy against the textbook formula in double, its gradient against differences, and odd rows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nn/loss.h"
#include "numerics/random_minibatch.h"

/* -log softmax, in long double and without a shift: small logits only. */
static long double plain_loss(const double *logits, int32_t classes, int32_t label)
{
    long double sum = 0;
    for (int32_t c = 0; c < classes; c++) {
        sum += expl((long double)logits[c]);
    }
    return logl(sum) - (long double)logits[label];
}

static void formula_and_gradient(void **state)
{
    static const int32_t classes_of[] = {1, 2, 3, 45, 100};
    random_stream_t stream = {.key = 1};
    (void)state;
    for (int k = 0; k < 5; k++) {
        enum { ROWS = 50 };
        const int32_t classes = classes_of[k];
        float logits[ROWS * 100], d[ROWS * 100];
        int32_t label[ROWS];
        int64_t counted, right, expected_counted = 0, expected_right = 0;
        double expected = 0;
        for (int i = 0; i < ROWS * classes; i++) {
            logits[i] = 6 * random_float(&stream);
        }
        for (int i = 0; i < ROWS; i++) {
            label[i] = random_below(&stream, classes + 1) - 1;
        }
        const double loss = loss_cross_entropy(logits, label, ROWS, classes, 0.25f, d, &counted, &right);
        assert_true(loss == loss_cross_entropy(logits, label, ROWS, classes, 1, NULL, NULL, NULL));
        for (int i = 0; i < ROWS; i++) {
            double row[100];
            int32_t best = 0;
            for (int32_t c = 0; c < classes; c++) {
                row[c] = (double)logits[i * classes + c];
                best = row[c] > row[best] ? c : best;
            }
            for (int32_t c = 0; c < classes; c++) {
                double slope = 0;
                if (label[i] >= 0) {
                    const double x = row[c], step = 1e-5;
                    row[c] = x + step;
                    const long double up = plain_loss(row, classes, label[i]);
                    row[c] = x - step;
                    const long double down = plain_loss(row, classes, label[i]);
                    row[c] = x;
                    slope = (double)((up - down) / (long double)(2 * step));
                }
                assert_true(fabs((double)d[i * classes + c] - 0.25 * slope) < 1e-6);
            }
            if (label[i] >= 0) {
                expected += (double)plain_loss(row, classes, label[i]);
                expected_counted++;
                expected_right += best == label[i];
            }
        }
        assert_int_equal(counted, expected_counted);
        assert_int_equal(right, expected_right);
        assert_true(fabs(loss - expected) <= 1e-5 * (1 + expected));
    }
}

static void no_rows(void **state)
{
    int64_t counted = 9, right = 9;
    (void)state;
    assert_true(loss_cross_entropy(NULL, NULL, 0, 5, 1, NULL, &counted, &right) == 0);
    assert_int_equal(counted, 0);
    assert_int_equal(right, 0);
}

static void unlabelled_rows_are_ignored(void **state)
{
    const float logits[2][3] = {{1, NAN, 3}, {INFINITY, 0, 1}};
    const int32_t label[2] = {-1, -1};
    float d[2][3] = {{7, 7, 7}, {7, 7, 7}};
    int64_t counted, right;
    (void)state;
    assert_true(loss_cross_entropy(&logits[0][0], label, 2, 3, 1, &d[0][0], &counted, &right) == 0);
    assert_int_equal(counted + right, 0);
    for (int i = 0; i < 6; i++) {
        assert_true((&d[0][0])[i] == 0);
    }
}

static void the_first_of_equal_logits_counts(void **state)
{
    const float logits[3][3] = {{2, 2, 1}, {2, 2, 1}, {0, 5, 5}};
    const int32_t label[3] = {0, 1, 1};
    int64_t right;
    (void)state;
    loss_cross_entropy(&logits[0][0], label, 3, 3, 1, NULL, NULL, &right);
    assert_int_equal(right, 2);
}

static void large_logits_do_not_overflow(void **state)
{
    const float logits[3][2] = {{1e30f, 0}, {-1e4f, -1e4f}, {-300, 1000}};
    const int32_t label[3] = {0, 1, 0};
    float d[3][2];
    (void)state;
    const double loss = loss_cross_entropy(&logits[0][0], label, 3, 2, 1, &d[0][0], NULL, NULL);
    assert_true(fabs(loss - (0 + log(2) + 1300)) < 1e-6);
    assert_true(d[0][0] == 0 && d[0][1] == 0 && d[1][0] == 0.5f && d[1][1] == -0.5f && d[2][0] == -1 && d[2][1] == 1);
}

static void nan_shows_and_is_never_right(void **state)
{
    float logits[4][3] = {{NAN, NAN, NAN}, {NAN, 1, 2}, {1, NAN, 0}, {INFINITY, 0, 0}};
    const int32_t label[4] = {0, 2, 0, 0};
    (void)state;
    for (int i = 0; i < 4; i++) {
        float d[3];
        int64_t counted, right;
        assert_true(isnan(loss_cross_entropy(logits[i], &label[i], 1, 3, 1, d, &counted, &right)));
        assert_int_equal(counted, 1);
        assert_int_equal(right, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formula_and_gradient),         cmocka_unit_test(no_rows),
        cmocka_unit_test(unlabelled_rows_are_ignored),  cmocka_unit_test(the_first_of_equal_logits_counts),
        cmocka_unit_test(large_logits_do_not_overflow), cmocka_unit_test(nan_shows_and_is_never_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
