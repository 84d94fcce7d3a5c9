/* Kernels against plain loops: bit for bit where the order of sums is fixed, in double where OpenBLAS adds up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nn/kernels.h"
#include "numerics/random_minibatch.h"

static const int32_t widths[] = {1, 2, 3, 4, 15, 16, 17, 63, 64, 65, 100, 256, 257, 1100};
enum { WIDTHS = sizeof widths / sizeof widths[0] };

/* A random block: n rows of 0 .. 6 edges to n_src sources. The caller frees. */
static void random_edges(random_stream_t *stream, int64_t n, int32_t n_src, int64_t **indptr, int32_t **index)
{
    *indptr = calloc((size_t)n + 1, sizeof **indptr);
    *index = calloc((size_t)n * 6 + 1, sizeof **index);
    for (int64_t i = 0; i < n; i++) {
        const int32_t degree = n_src == 0 ? 0 : random_below(stream, 7);
        (*indptr)[i + 1] = (*indptr)[i] + degree;
        for (int64_t e = (*indptr)[i]; e < (*indptr)[i + 1]; e++) {
            (*index)[e] = random_below(stream, n_src);
        }
    }
}

static void mean_is_the_sum_in_order(void **state)
{
    static const int32_t rows[] = {0, 1, 2, 127, 128, 129, 300};
    random_stream_t stream = {.key = 1};
    (void)state;
    for (int32_t tiles = 1; tiles <= 3; tiles++) {
        for (int k = 0; k < 7 * WIDTHS; k++) {
            const int32_t n = rows[k % 7], width = widths[k / 7], n_src = 50;
            int64_t *indptr;
            int32_t *index;
            random_edges(&stream, n, n_src, &indptr, &index);
            float *x = malloc((size_t)(n_src * width) * sizeof *x);
            float *mean = malloc((size_t)(n * width + 1) * sizeof *mean);
            random_floats(&stream, x, (int64_t)n_src * width);
            mean[n * width] = 42;
            for (int32_t t = 0; t < tiles; t++) {
                kernel_mean_rows(indptr, index, n * t / tiles, n * (t + 1) / tiles, x, width, mean);
            }
            for (int32_t i = 0; i < n; i++) {
                for (int32_t c = 0; c < width; c++) {
                    float sum = 0;
                    for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
                        sum += x[index[e] * width + c];
                    }
                    if (indptr[i + 1] > indptr[i]) {
                        sum *= 1.0f / (float)(indptr[i + 1] - indptr[i]);
                    }
                    assert_true(mean[i * width + c] == sum);
                }
            }
            assert_true(mean[n * width] == 42);
            free(mean);
            free(x);
            free(index);
            free(indptr);
        }
    }
}

static void transposed_edges_are_the_same_edges(void **state)
{
    random_stream_t stream = {.key = 2};
    (void)state;
    for (int k = 0; k < 40; k++) {
        const int32_t n = k, n_src = k == 1 ? 0 : 1 + random_below(&stream, 30);
        int64_t *indptr, indptr_t[32];
        int32_t *index;
        random_edges(&stream, n, n_src, &indptr, &index);
        int32_t *row = malloc((size_t)(indptr[n] + 1) * sizeof *row);
        kernel_transpose(indptr, index, n, n_src, indptr_t, row);
        int64_t at = 0;
        for (int32_t j = 0; j < n_src; j++) {
            assert_int_equal(indptr_t[j], at);
            for (int32_t i = 0; i < n; i++) {
                for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
                    if (index[e] == j) {
                        assert_int_equal(row[at], i);
                        at++;
                    }
                }
            }
        }
        assert_int_equal(indptr_t[n_src], at);
        free(row);
        free(index);
        free(indptr);
    }
}

static void added_rows_come_in_order(void **state)
{
    random_stream_t stream = {.key = 3};
    const int32_t n = 40, n_src = 9;
    int64_t *indptr;
    int32_t *index;
    (void)state;
    random_edges(&stream, n, n_src, &indptr, &index);
    for (int k = 0; k < WIDTHS; k++) {
        const int32_t width = widths[k];
        float *x = malloc((size_t)(n_src * width) * sizeof *x);
        float *sum = malloc((size_t)(n * width) * sizeof *sum);
        float *before = malloc((size_t)(n * width) * sizeof *before);
        random_floats(&stream, x, (int64_t)n_src * width);
        random_floats(&stream, sum, (int64_t)n * width);
        memcpy(before, sum, (size_t)(n * width) * sizeof *sum);
        kernel_add_rows(indptr, index, 5, n - 5, x, width, sum);
        for (int32_t i = 0; i < n; i++) {
            for (int32_t c = 0; c < width; c++) {
                float expected = before[i * width + c];
                for (int64_t e = indptr[i]; i >= 5 && i < n - 5 && e < indptr[i + 1]; e++) {
                    expected += x[index[e] * width + c];
                }
                assert_true(sum[i * width + c] == expected);
            }
        }
        free(before);
        free(sum);
        free(x);
    }
    free(index);
    free(indptr);
}

static void bias_and_relu(void **state)
{
    float z[2][5] = {{-1, 0, 2, NAN, -INFINITY}, {1, -0.5f, INFINITY, 3, -2}};
    const float bias[5] = {0.5f, 0.25f, -3, 1, 1};
    float plain[2][5];
    (void)state;
    memcpy(plain, z, sizeof z);
    kernel_bias(&plain[0][0], 2, 5, bias, 0);
    kernel_bias(&z[0][0], 2, 5, bias, 1);
    for (int i = 0; i < 2; i++) {
        for (int c = 0; c < 5; c++) {
            if (isnan(plain[i][c])) {
                assert_true(isnan(z[i][c])); /* a run that diverges must show it */
            } else {
                assert_true(z[i][c] == fmaxf(plain[i][c], 0));
            }
        }
    }
    assert_true(plain[0][0] == -0.5f && plain[1][3] == 4 && plain[0][2] == -1);
    kernel_bias(NULL, 0, 5, bias, 1);
}

static void back_through_relu(void **state)
{
    const float h[6] = {0, 1, 2, -0.0f, 1e-30f, 0};
    float d[6] = {1, 2, -3, 4, 5, NAN};
    const float expected[6] = {0, 4, -6, 0, 10, 0};
    (void)state;
    kernel_back_relu(d, h, 2, 3, 2);
    assert_memory_equal(d, expected, sizeof d);
}

/* The mask is the stream of rng.h, column by column, for any width. */
static void dropout_is_a_function_of_id_and_column(void **state)
{
    const uint64_t id[4] = {0, 1, ((uint64_t)1 << 32) + 5, UINT64_MAX};
    const uint64_t key = rng_key(RNG_DROPOUT, 3, 1, 9, 0);
    const float p = 0.3f;
    (void)state;
    for (int k = 0; k < WIDTHS; k++) {
        const int32_t width = widths[k];
        float *h = malloc((size_t)(4 * width) * sizeof *h);
        for (int32_t i = 0; i < 4 * width; i++) {
            h[i] = (float)(i + 1);
        }
        kernel_dropout(h, 4, width, id, key, p);
        for (int32_t i = 0; i < 4; i++) {
            for (int32_t c = 0; c < width; c++) {
                const uint32_t random = rng_philox(key, id[i], (uint64_t)(c / 4)).v[c % 4];
                const int kept = (double)random >= (double)p * 4294967296.0 - 1;
                const float expected = kept ? (float)(i * width + c + 1) * (1 / (1 - p)) : 0;
                assert_true(fabsf(h[i * width + c] - expected) <= 1e-6f * expected);
            }
        }
        free(h);
    }
}

static void dropout_keeps_the_mean(void **state)
{
    static const float rates[] = {0.1f, 0.5f, 0.9f};
    enum { ROWS = 2000, WIDTH = 64 };
    float *h = malloc(sizeof(float) * ROWS * WIDTH), *other = malloc(sizeof(float) * ROWS * WIDTH);
    uint64_t id[ROWS];
    (void)state;
    for (int32_t i = 0; i < ROWS; i++) {
        id[i] = (uint64_t)i * 977;
    }
    for (int k = 0; k < 3; k++) {
        const double p = (double)rates[k], n = ROWS * WIDTH;
        int64_t dropped = 0, both = 0, column[WIDTH] = {0};
        double sum = 0;
        for (int32_t i = 0; i < ROWS * WIDTH; i++) {
            h[i] = other[i] = 1;
        }
        kernel_dropout(h, ROWS, WIDTH, id, rng_key(RNG_DROPOUT, 1, 0, 5, 0), rates[k]);
        kernel_dropout(other, ROWS, WIDTH, id, rng_key(RNG_DROPOUT, 1, 0, 6, 0), rates[k]);
        for (int32_t i = 0; i < ROWS * WIDTH; i++) {
            dropped += h[i] == 0;
            both += h[i] == 0 && other[i] == 0;
            column[i % WIDTH] += h[i] == 0;
            sum += (double)h[i];
        }
        assert_true(fabs((double)dropped - p * n) < 5 * sqrt(p * (1 - p) * n));
        assert_true(fabs((double)both - p * p * n) < 5 * sqrt(p * p * (1 - p * p) * n)); /* steps are independent */
        assert_true(fabs(sum / n - 1) < 5 * sqrt(p / (1 - p) / n));
        for (int32_t c = 0; c < WIDTH; c++) {
            assert_true(fabs((double)column[c] - p * ROWS) < 5 * sqrt(p * (1 - p) * ROWS));
        }
    }
    free(other);
    free(h);
}

static void products_are_right(void **state)
{
    static const int32_t sizes[] = {0, 1, 2, 3, 16, 45, 64, 65, 300};
    enum { SIZES = sizeof sizes / sizeof sizes[0], MOST = 300 * 300 };
    random_stream_t stream = {.key = 4};
    float *a = malloc(sizeof(float) * MOST), *b = malloc(sizeof(float) * MOST), *c = malloc(sizeof(float) * (MOST + 1));
    (void)state;
    kernel_blas_single();
    random_floats(&stream, a, MOST);
    random_floats(&stream, b, MOST);
    for (int s = 0; s < SIZES * SIZES * SIZES * 3; s++) {
        const int32_t m = sizes[s % SIZES], n = sizes[s / SIZES % SIZES], k = sizes[s / SIZES / SIZES % SIZES];
        const int form = s / SIZES / SIZES / SIZES, add = s % 2;
        if (m * n * k > 300000) {
            continue;
        }
        for (int32_t i = 0; i <= m * n; i++) {
            c[i] = add ? 2 : NAN;
        }
        (form == 0 ? kernel_gemm_nt(m, n, k, a, b, add, c)
                   : (form == 1 ? kernel_gemm_nn(m, n, k, a, b, add, c) : kernel_gemm_tn(m, n, k, a, b, add, c)));
        for (int32_t i = 0; i < m; i++) {
            for (int32_t j = 0; j < n; j++) {
                double sum = add ? 2 : 0;
                for (int32_t l = 0; l < k; l++) {
                    sum += (double)a[form == 2 ? l * m + i : i * k + l] * (double)b[form == 0 ? j * k + l : l * n + j];
                }
                assert_true(fabs((double)c[i * n + j] - sum) <= 1e-6 * (k + 3));
            }
        }
        assert_true(add ? c[m * n] == 2 : isnan(c[m * n]));
    }
    free(c);
    free(b);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_is_the_sum_in_order), cmocka_unit_test(transposed_edges_are_the_same_edges),
        cmocka_unit_test(added_rows_come_in_order), cmocka_unit_test(bias_and_relu),
        cmocka_unit_test(back_through_relu),        cmocka_unit_test(dropout_is_a_function_of_id_and_column),
        cmocka_unit_test(dropout_keeps_the_mean),   cmocka_unit_test(products_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
