/*
 * The degree-corrected block model, drawn node by node. Weights of a class fall with the rank in it and stand in buckets of
 * nearly equal ones, 16 to a factor of two, so that drawing by weight takes a search in a short table, for any size.
 */
#include "base/error.h"
#include "base/rng.h"
#include "graph/exact.h"
#include "graph/generate.h"

enum { SBM_BUCKETS = 16 * 48, SBM_UNIT = 1 << 16 };

__extension__ typedef unsigned __int128 sbm_wide_t;

typedef struct sbm {
    int64_t n, edges;
    int32_t classes;
    uint64_t inside; /* of 2^32: share of edges inside a class */
    uint64_t degree_key, edge_key;
    int32_t n_buckets;
    uint64_t first[SBM_BUCKETS + 1];  /* rank of the first of a bucket; then the ranks of a class */
    uint64_t weight[SBM_BUCKETS];     /* of each of its nodes, SBM_UNIT: the lightest */
    uint64_t before[SBM_BUCKETS + 1]; /* weights of all buckets before it */
    sbm_wide_t total;                 /* weights of all nodes */
} sbm_t;

/* The first rank of the bucket behind that of `rank`; ranks count from 0, octaves from 1. */
static uint64_t sbm_bucket_end(uint64_t rank)
{
    int octave = 0;
    while ((rank + 1) >> (octave + 1) != 0) {
        octave++;
    }
    const uint64_t step = octave < 4 ? 1 : (uint64_t)1 << (octave - 4);
    return rank + step - (rank + 1) % step;
}

static void sbm_weigh(sbm_t *sbm, double exponent)
{
    const uint64_t ranks = (uint64_t)(sbm->n + sbm->classes - 1) / (uint64_t)sbm->classes;
    const double alpha = 1 / (exponent - 1);
    int32_t b = 0;
    for (uint64_t rank = 0; rank < ranks; b++) {
        uint64_t end = sbm_bucket_end(rank);
        end = end < ranks ? end : ranks;
        /* Relative to the last rank, at the middle of the bucket: (middle / ranks)^-alpha, at least 1. */
        const double octaves = exact_log2(2.0 * (double)ranks / (double)(rank + end + 1));
        sbm->first[b] = rank;
        sbm->weight[b] = (uint64_t)(SBM_UNIT / exact_halved(alpha * octaves));
        sbm->before[b + 1] = sbm->before[b] + sbm->weight[b] * (end - rank);
        rank = end;
    }
    sbm->n_buckets = b;
    sbm->first[b] = ranks;
}

static int32_t sbm_find(const uint64_t *from, int32_t n, uint64_t x)
{
    int32_t low = 0, high = n - 1;
    while (low < high) {
        const int32_t middle = (low + high + 1) / 2;
        if (x >= from[middle]) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

static uint64_t sbm_weight_of(const sbm_t *sbm, int64_t place)
{
    return sbm->weight[sbm_find(sbm->first, sbm->n_buckets, (uint64_t)(place / sbm->classes))];
}

/* All weights: those of whole classes, less what the classes that are shorter by one lack. */
static void sbm_sum(sbm_t *sbm)
{
    const int64_t ranks = (int64_t)sbm->first[sbm->n_buckets], lacking = ranks * sbm->classes - sbm->n;
    sbm->total = (sbm_wide_t)sbm->before[sbm->n_buckets] * (uint64_t)sbm->classes -
                 (sbm_wide_t)sbm->weight[sbm->n_buckets - 1] * (uint64_t)lacking;
}

/* edges x weight / total, rounded up or down at random so that the mean is kept. */
static int64_t sbm_degree(const void *self, int64_t place)
{
    const sbm_t *sbm = self;
    const sbm_wide_t wanted = (sbm_wide_t)(uint64_t)sbm->edges * sbm_weight_of(sbm, place);
    const rng_block_t random = rng_philox(sbm->degree_key, (uint64_t)place, 0);
    const uint64_t rest = (uint64_t)((wanted % sbm->total) * ((uint64_t)1 << 32) / sbm->total);
    return (int64_t)(wanted / sbm->total) + (random.v[0] < rest);
}

static int64_t sbm_draw(const void *self, int64_t place, uint64_t i)
{
    const sbm_t *sbm = self;
    const int32_t own = (int32_t)(place % sbm->classes);
    const rng_block_t random = rng_philox(sbm->edge_key, i, (uint64_t)place);
    int32_t class = own;
    if (random.v[0] >= sbm->inside && sbm->classes > 1) {
        class = (int32_t)rng_below(random.v[1], (uint32_t)sbm->classes - 1);
        class += class >= own;
    }
    const uint64_t wide = (uint64_t)random.v[2] << 32 | random.v[3];
    const uint64_t x = (uint64_t)(((sbm_wide_t)wide * sbm->before[sbm->n_buckets]) >> 64);
    const int32_t b = sbm_find(sbm->before, sbm->n_buckets, x);
    const uint64_t rank = sbm->first[b] + (x - sbm->before[b]) / sbm->weight[b];
    const int64_t drawn = (int64_t)rank * sbm->classes + class;
    return drawn < sbm->n ? drawn : place; /* the last of a shorter class: not there */
}

static int32_t sbm_label(const void *self, int64_t place)
{
    return (int32_t)(place % ((const sbm_t *)self)->classes);
}

static void sbm_describe(const generate_options_t *options, json_t *json)
{
    json_string(json, "generator", "sbm");
    json_double(json, "exponent", options->exponent);
}

rudder_status_t generate_sbm_check(const generate_options_t *options, rudder_error_t *error)
{
    if (!(options->exponent > 2)) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "exponent: expected more than 2, so that degrees have a mean, found %g", options->exponent);
    }
    return generate_check(options, error);
}

rudder_status_t generate_sbm(const char *directory, const generate_options_t *options, generate_report_t *report,
                             rudder_error_t *error)
{
    static const double two_32 = 4294967296.0;
    sbm_t sbm = {.n = options->n_nodes,
                 .edges = options->n_edges,
                 .classes = options->n_classes,
                 .inside = (uint64_t)(options->homophily * two_32),
                 .degree_key = generate_key(options, GENERATE_DEGREE),
                 .edge_key = generate_key(options, GENERATE_EDGES)};
    const generate_model_t model = {.self = &sbm,
                                    .scramble = 1,
                                    .describe = sbm_describe,
                                    .degree = sbm_degree,
                                    .draw = sbm_draw,
                                    .label = sbm_label};
    sbm_weigh(&sbm, options->exponent);
    sbm_sum(&sbm);
    return generate_write(directory, options, &model, report, error);
}
