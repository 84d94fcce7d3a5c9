/*
 * Inclusion probabilities: the distributed computation against one on the whole graph by the formula as it stands (products,
 * no logarithms), and against how often nodes really are in sampled minibatches.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "mpi/mpi_test.h"
#include "sample/sampler.h"
#include "sample/vip.h"

/* A graph whose nodes are spread over ranks in order of their ids. */
typedef struct world {
    comm_t comm;
    int64_t n;
    int64_t *indptr, *indices; /* of the whole */
    int64_t *part_indptr, *train_id, *orig_id, *halo;
    int32_t *label;
    parts_t parts;
    part_t part;
} world_t;

/* Degrees from 0 to about 40, loops and repeated edges; a rank without nodes when there are more ranks than nodes. */
static void make_graph(int64_t n, world_t *w)
{
    w->n = n;
    w->indptr = calloc((size_t)n + 1, sizeof *w->indptr);
    w->indices = malloc((size_t)n * 48 * sizeof *w->indices);
    for (int64_t v = 0; v < n; v++) {
        const rng_block_t r = rng_philox(21, (uint64_t)v, 0);
        const int64_t degree = r.v[0] % 9 == 0 ? 0 : r.v[1] % (r.v[2] % 6 == 0 ? 40 : 6);
        w->indptr[v + 1] = w->indptr[v];
        for (int64_t i = 0; i < degree; i++) {
            const rng_block_t u = rng_philox(22, (uint64_t)v, (uint64_t)i);
            const uint32_t near = rng_below(u.v[0], 8), far = rng_below(u.v[0], (uint32_t)n);
            w->indices[w->indptr[v + 1]++] = u.v[1] % 4 == 0 ? far : (v + near) % n;
        }
    }
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void make_halo(world_t *w)
{
    part_t *part = &w->part;
    int64_t n = 0;
    w->halo = malloc((size_t)(part->n_edges + 1) * sizeof *w->halo);
    for (int64_t e = 0; e < part->n_edges; e++) {
        if (part->indices[e] < part->begin || part->indices[e] >= part->end) {
            w->halo[n++] = part->indices[e];
        }
    }
    qsort(w->halo, (size_t)n, sizeof *w->halo, compare_ids);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || w->halo[i] != w->halo[i - 1]) {
            w->halo[part->n_halo++] = w->halo[i];
        }
    }
    part->halo = w->halo;
}

/* Every `every`-th node is a training node. */
static void open_world(int64_t n, int64_t every, world_t *w)
{
    rudder_error_t error;
    memset(w, 0, sizeof *w);
    CHECK_OK(comm_open(60, &w->comm, &error), &error);
    make_graph(n, w);
    const int32_t size = w->comm.size, rank = w->comm.rank;
    w->parts = (parts_t){.n_parts = size, .n_nodes = n, .offset = calloc((size_t)size + 1, sizeof(int64_t))};
    for (int32_t p = 0; p <= size; p++) {
        w->parts.offset[p] = n * p / size;
    }
    w->train_id = malloc((size_t)n * sizeof *w->train_id);
    for (int64_t v = 0; v < n; v += every) {
        w->train_id[w->parts.n_train++] = v;
    }
    w->parts.train_id = w->train_id;
    const int64_t begin = w->parts.offset[rank], end = w->parts.offset[rank + 1];
    w->part_indptr = malloc((size_t)(end - begin + 1) * sizeof *w->part_indptr);
    w->orig_id = malloc((size_t)(end - begin + 1) * sizeof *w->orig_id);
    w->label = calloc((size_t)(end - begin + 1), sizeof *w->label);
    for (int64_t v = begin; v <= end; v++) {
        w->part_indptr[v - begin] = w->indptr[v] - w->indptr[begin];
        w->orig_id[v - begin] = v;
    }
    w->part = (part_t){.number = rank,
                       .begin = begin,
                       .end = end,
                       .n_owned = end - begin,
                       .n_edges = w->indptr[end] - w->indptr[begin],
                       .indptr = w->part_indptr,
                       .indices = w->indices + w->indptr[begin],
                       .label = w->label,
                       .orig_id = w->orig_id};
    make_halo(w);
}

static void close_world(world_t *w)
{
    free(w->indptr);
    free(w->indices);
    free(w->part_indptr);
    free(w->train_id);
    free(w->orig_id);
    free(w->halo);
    free(w->label);
    free(w->parts.offset);
    comm_close(&w->comm);
}

/* The formula over the whole graph: p[n] of being in a minibatch of this rank. */
static void plain_chances(const world_t *w, const int32_t *fanout, int32_t n_layers, int64_t seeds, double *p)
{
    double *last = calloc((size_t)w->n, sizeof *last), *hop = malloc((size_t)w->n * sizeof *hop);
    for (int64_t i = 0; i < w->parts.n_train; i++) {
        const int64_t v = w->train_id[i];
        if (v >= w->part.begin && v < w->part.end) {
            last[v] = fmin(1, (double)seeds / (double)w->parts.n_train);
        }
    }
    for (int64_t u = 0; u < w->n; u++) {
        p[u] = 1;
    }
    for (int32_t h = 1; h <= n_layers; h++) {
        for (int64_t u = 0; u < w->n; u++) {
            hop[u] = 1;
        }
        for (int64_t v = 0; v < w->n; v++) {
            const int64_t degree = w->indptr[v + 1] - w->indptr[v];
            for (int64_t e = w->indptr[v]; e < w->indptr[v + 1]; e++) {
                hop[w->indices[e]] *= 1 - fmin(1, (double)fanout[n_layers - h] / (double)degree) * last[v];
            }
        }
        for (int64_t u = 0; u < w->n; u++) {
            p[u] *= hop[u];
            last[u] = 1 - hop[u];
        }
    }
    for (int64_t u = 0; u < w->n; u++) {
        p[u] = 1 - p[u];
    }
    free(last);
    free(hop);
}

static void check_formula(int64_t n, int64_t every, const int32_t *fanout, int32_t n_layers, int64_t seeds)
{
    rudder_error_t error;
    world_t w;
    open_world(n, every, &w);
    double *expected = malloc((size_t)n * sizeof *expected);
    double *weight = malloc((size_t)(w.part.n_halo + 1) * sizeof *weight);
    plain_chances(&w, fanout, n_layers, seeds, expected);
    const vip_config_t config = {.parts = &w.parts,
                                 .part = &w.part,
                                 .comm = &w.comm,
                                 .n_layers = n_layers,
                                 .fanout = fanout,
                                 .seeds_per_step = seeds};
    if (CHECK_OK(vip_halo(&config, weight, &error), &error)) {
        for (int64_t i = 0; i < w.part.n_halo; i++) {
            CHECK(fabs(weight[i] - expected[w.part.halo[i]]) < 1e-12);
        }
    }
    free(expected);
    free(weight);
    close_world(&w);
}

static void test_formula(void)
{
    check_formula(7, 1, (const int32_t[]){2}, 1, 3);
    check_formula(16, 2, (const int32_t[]){3, 2}, 2, 100); /* more seeds than there are */
    check_formula(500, 3, (const int32_t[]){2, 5}, 2, 20);
    check_formula(500, 5, (const int32_t[]){3, 0, 4}, 3, 20); /* a layer without neighbours */
    check_formula(2000, 2, (const int32_t[]){100, 3, 2, 1}, 4, 64);
}

/* Of the pairs that both lists order: the share ordered alike less the share ordered differently. */
static double order_agreement(const double *a, const double *b, int64_t n)
{
    double sum = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            const double x = (a[i] > a[j]) - (a[i] < a[j]), y = (b[i] > b[j]) - (b[i] < b[j]);
            sum += x * y;
            all += fabs(x) * fabs(y);
        }
    }
    return all > 0 ? sum / all : 1;
}

/* Sampled minibatches of this rank use the halo about as often as the probabilities say. */
static void test_sampled(void)
{
    enum { STEPS = 1500, SEEDS = 30 };
    static const sampler_config_t sampling = {.seed = 5, .n_layers = 2, .fanout = {3, 2}};
    rudder_error_t error;
    world_t w;
    exchange_t *exchange;
    sampler_t *sampler;
    minibatch_t minibatch = {0};
    open_world(600, 2, &w);
    double *count = calloc((size_t)w.n, sizeof *count);
    double *weight = calloc((size_t)(w.part.n_halo + 1), sizeof *weight);
    CHECK_OK(exchange_open(&w.comm, w.parts.offset, 0, NULL, &exchange, &error), &error);
    CHECK_OK(sampler_open(&sampling, &w.parts, &w.part, exchange, &sampler, &error), &error);
    for (int64_t step = 0; step < STEPS; step++) {
        int64_t order[300], seeds[SEEDS], n = 0;
        for (int64_t i = 0; i < w.parts.n_train; i++) {
            order[i] = w.train_id[i];
        }
        for (int64_t i = 0; i < SEEDS; i++) {
            const int64_t v = rng_shuffle_step((uint64_t)step + 77, order, i, w.parts.n_train);
            if (v >= w.part.begin && v < w.part.end) {
                seeds[n++] = v;
            }
        }
        CHECK_OK(sampler_sample(sampler, 0, step, seeds, n, &minibatch, &error), &error);
        for (int64_t i = 0; i < minibatch.n_input; i++) {
            count[minibatch.input[i]]++;
        }
    }
    const vip_config_t config = {.parts = &w.parts,
                                 .part = &w.part,
                                 .comm = &w.comm,
                                 .n_layers = sampling.n_layers,
                                 .fanout = sampling.fanout,
                                 .seeds_per_step = SEEDS};
    CHECK_OK(vip_halo(&config, weight, &error), &error);
    double *of_halo = malloc((size_t)(w.part.n_halo + 1) * sizeof *of_halo);
    double uses = 0, expected = 0;
    for (int64_t i = 0; i < w.part.n_halo; i++) {
        of_halo[i] = count[w.part.halo[i]];
        uses += of_halo[i];
        expected += weight[i] * STEPS;
    }
    if (w.part.n_halo > 20) {
        CHECK(order_agreement(of_halo, weight, w.part.n_halo) > 0.75);
        CHECK(fabs(uses - expected) < 0.25 * uses);
    }
    minibatch_free(&minibatch);
    sampler_close(sampler);
    exchange_close(exchange);
    free(count);
    free(weight);
    free(of_halo);
    close_world(&w);
}

int main(void)
{
    mpi_test_start();
    MPI_TEST(test_formula);
    MPI_TEST(test_sampled);
    return mpi_test_finish();
}
