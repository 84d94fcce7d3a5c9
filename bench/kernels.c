/*
 * The numerics beside what the machine can do, in one run: products beside the bare call of OpenBLAS, aggregation beside a
 * copy of the same rows and beside memcpy, and the passes of a minibatch as the quick start trains them.
 *
 *     bench_kernels [THREADS]
 */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/numerics/random_minibatch.h"
#include "base/clock.h"
#include "nn/adam.h"
#include "nn/kernels.h"
#include "nn/loss.h"
#include "nn/sage.h"

enum { ROUNDS = 15 };

static float *bench_rows(uint64_t key, int64_t n)
{
    random_stream_t stream = {.key = key};
    float *x = aligned_alloc(64, ((size_t)n * sizeof *x + 127) & ~(size_t)63);
    random_floats(&stream, x, n);
    return x;
}

static double bench_least(double best, double seconds)
{
    return seconds < best ? seconds : best;
}

/* One form of product over all rows in tiles of `tile`, and in one bare call. */
static void bench_product(const char *form, int32_t m, int32_t n, int32_t k, int32_t tile)
{
    float *a = bench_rows(1, (int64_t)m * k), *b = bench_rows(2, (int64_t)n * (m > k ? m : k)),
          *c = bench_rows(3, (int64_t)m * n);
    double tiles = 1e9, bare = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = clock_seconds();
        for (int32_t i = 0; i < m; i += tile) {
            const int32_t rows = i + tile < m ? tile : m - i;
            if (form[0] == 't') {
                kernel_gemm_tn(k, n, rows, a + (int64_t)i * k, b + (int64_t)i * n, 0, c);
            } else if (form[1] == 't') {
                kernel_gemm_nt(rows, n, k, a + (int64_t)i * k, b, 0, c + (int64_t)i * n);
            } else {
                kernel_gemm_nn(rows, n, k, a + (int64_t)i * k, b, 0, c + (int64_t)i * n);
            }
        }
        tiles = bench_least(tiles, clock_seconds() - start);
        start = clock_seconds();
        if (form[0] == 't') {
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, n, m, 1, a, k, b, n, 0, c, n);
        } else {
            cblas_sgemm(CblasRowMajor, CblasNoTrans, form[1] == 't' ? CblasTrans : CblasNoTrans, m, n, k, 1, a, k, b,
                        form[1] == 't' ? k : n, 0, c, n);
        }
        bare = bench_least(bare, clock_seconds() - start);
    }
    const double work = 2e-9 * m * n * k;
    printf("product %s  %6d x %3d x %3d, tiles of %4d   %7.1f GFLOP/s   bare call %7.1f GFLOP/s\n", form, m, n, k, tile,
           work / tiles, work / bare);
    free(c);
    free(b);
    free(a);
}

static void bench_aggregation(const minibatch_t *minibatch, int32_t width)
{
    const block_t *block = &minibatch->block[0];
    float *x = bench_rows(1, block->n_src * width), *mean = bench_rows(2, block->n_dst * width);
    float *copy = bench_rows(3, block->n_edges * width);
    double means = 1e9, gather = 1e9, plain = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = clock_seconds();
        kernel_mean_rows(block->indptr, block->index, 0, block->n_dst, x, width, mean);
        means = bench_least(means, clock_seconds() - start);
        start = clock_seconds();
        for (int64_t e = 0; e < block->n_edges; e++) {
            memcpy(copy + e * width, x + (int64_t)block->index[e] * width, (size_t)width * sizeof *x);
        }
        gather = bench_least(gather, clock_seconds() - start);
        start = clock_seconds();
        memcpy(copy, x, (size_t)(block->n_src * width) * sizeof *x);
        plain = bench_least(plain, clock_seconds() - start);
    }
    const double edge_bytes = 4e-9 * (double)(block->n_edges * width);
    printf("mean of neighbours, width %3d   %6.1f GB/s read   copying the same rows %6.1f GB/s   memcpy %6.1f GB/s\n",
           width, edge_bytes / means, edge_bytes / gather, 4e-9 * (double)(block->n_src * width) / plain);
    free(copy);
    free(mean);
    free(x);
}

static void bench_passes(team_t *team, const minibatch_t *minibatch, const sage_config_t *config)
{
    sage_t *sage = NULL;
    adam_t adam;
    int64_t n, counted, right;
    double least[4] = {1e9, 1e9, 1e9, 1e9}, sum = 0;
    if (sage_open(config, team, &sage, NULL) != RUDDER_OK) {
        return;
    }
    float *parameters = sage_parameters(sage, &n);
    float *x = bench_rows(1, minibatch->n_input * config->n_in);
    float *d_logits = bench_rows(2, minibatch->n_seeds * config->n_out);
    if (adam_open(n, 0.01f, &adam, NULL) != RUDDER_OK) {
        return;
    }
    for (int round = 0; round < ROUNDS; round++) {
        const float *logits;
        double at[5] = {clock_seconds()};
        sage_forward(sage, minibatch, x, 1, &logits, NULL);
        at[1] = clock_seconds();
        loss_cross_entropy(logits, minibatch->label, minibatch->n_seeds, config->n_out, 1e-3f, d_logits, &counted,
                           &right);
        at[2] = clock_seconds();
        sage_backward(sage, minibatch, x, d_logits, NULL);
        at[3] = clock_seconds();
        adam_step(&adam, parameters, sage_gradients(sage));
        at[4] = clock_seconds();
        for (int i = 0; i < 4; i++) {
            least[i] = bench_least(least[i], at[i + 1] - at[i]);
        }
    }
    for (int i = 0; i < 4; i++) {
        sum += least[i];
    }
    printf("%d layers, %d-%d-%d, dropout %.1f: forward %.2f ms, loss %.2f, backward %.2f, Adam %.2f; together %.2f\n",
           config->n_layers, config->n_in, config->n_hidden, config->n_out, (double)config->dropout, 1e3 * least[0],
           1e3 * least[1], 1e3 * least[2], 1e3 * least[3], 1e3 * sum);
    adam_close(&adam);
    free(d_logits);
    free(x);
    sage_close(sage);
}

int main(int argc, char **argv)
{
    static const int32_t fanout[3] = {18, 10, 10}; /* degrees are 1 .. fanout: about WordNet's at 10,10 */
    static const int32_t fanout_deep[3] = {10, 10, 10};
    const char *note;
    rudder_error_t error;
    team_t *team = NULL;
    minibatch_t two, three;
    const double start = clock_seconds();
    if (kernel_check_blas(argv, &note, &error) != RUDDER_OK ||
        team_open(argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 1, &team, &error) != RUDDER_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%s, checked in %.1f ms; %d threads; least of %d rounds%s%s\n", kernel_blas_name(),
           1e3 * (clock_seconds() - start), team_threads(team), ROUNDS, note[0] == '\0' ? "" : "\n", note);
    random_minibatch(1, 2, fanout, 1000, 117659, 20, 45, &two);
    random_minibatch(1, 3, fanout_deep, 250, 117659, 20, 45, &three);
    bench_product("nt", 10000, 64, 256, 256);
    bench_product("nt", 1000, 45, 64, 256);
    bench_product("nn", 1000, 64, 45, 512);
    bench_product("tn", 10000, 256, 64, 512);
    bench_product("tn", 1000, 64, 45, 512);
    for (int k = 0; k < 2; k++) {
        const minibatch_t *minibatch = k == 0 ? &two : &three;
        printf("minibatch of %lld seeds: %lld input nodes, %lld edges next to them from %lld nodes\n",
               (long long)minibatch->n_seeds, (long long)minibatch->n_input, (long long)minibatch->block[0].n_edges,
               (long long)minibatch->block[0].n_dst);
    }
    bench_aggregation(&two, 256);
    bench_aggregation(&two, 64);
    const sage_config_t config = {.n_layers = 2, .n_in = 256, .n_hidden = 64, .n_out = 45, .dropout = 0.2f};
    bench_passes(team, &two, &config);
    const sage_config_t deep = {.n_layers = 3, .n_in = 256, .n_hidden = 64, .n_out = 45, .dropout = 0.5f};
    bench_passes(team, &three, &deep);
    random_minibatch_free(&three);
    random_minibatch_free(&two);
    team_close(team);
    return 0;
}
