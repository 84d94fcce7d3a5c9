/* Adam against stored iterates of an independent implementation, and against its known first step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nn/adam.h"
#include "numerics/references.h"

static void iterates_agree_with_the_reference(void **state)
{
    cJSON *root = references_read();
    const cJSON *reference = cJSON_GetObjectItem(root, "adam");
    int64_t n, n_gradients, n_iterates;
    float *parameters = references_floats(reference, "parameters", &n);
    float *gradients = references_floats(reference, "gradients", &n_gradients);
    double *iterates = references_doubles(reference, "iterates", &n_iterates);
    adam_t adam;
    (void)state;
    assert_true(n > 0 && n_gradients > n && n_gradients == n_iterates);
    assert_int_equal(adam_open(n, (float)references_number(reference, "rate"), &adam, NULL), 0);
    for (int64_t step = 0; step < n_gradients / n; step++) {
        adam_step(&adam, parameters, gradients + step * n);
        for (int64_t i = 0; i < n; i++) {
            assert_true(fabs((double)parameters[i] - iterates[step * n + i]) < 1e-6);
        }
    }
    assert_int_equal(adam.step, n_gradients / n);
    adam_close(&adam);
    free(iterates);
    free(gradients);
    free(parameters);
    cJSON_Delete(root);
}

/* Bias correction makes the first step the rate, whatever the size of the gradient. */
static void the_first_step_is_the_rate(void **state)
{
    float parameters[4] = {0, 0, 0, 0};
    const float gradients[4] = {1e-3f, -1e3f, 1, 0};
    adam_t adam;
    (void)state;
    assert_int_equal(adam_open(4, 0.01f, &adam, NULL), 0);
    adam_step(&adam, parameters, gradients);
    assert_true(fabsf(parameters[0] + 0.01f) < 1e-6f);
    assert_true(fabsf(parameters[1] - 0.01f) < 1e-6f);
    assert_true(fabsf(parameters[2] + 0.01f) < 1e-6f);
    assert_true(parameters[3] == 0);
    adam_close(&adam);
}

static void no_parameters(void **state)
{
    adam_t adam;
    (void)state;
    assert_int_equal(adam_open(0, 0.01f, &adam, NULL), 0);
    adam_step(&adam, NULL, NULL);
    assert_int_equal(adam.step, 1);
    adam_close(&adam);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iterates_agree_with_the_reference),
        cmocka_unit_test(the_first_step_is_the_rate),
        cmocka_unit_test(no_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
