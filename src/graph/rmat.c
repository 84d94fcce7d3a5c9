/*
 * R-MAT, drawn node by node: an edge's column is fixed first, so the number of edges in it is Poisson with the mean of the
 * column, and at each level the row's half is drawn given the column's.
 */
#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "graph/exact.h"
#include "graph/generate.h"

enum { RMAT_TRIES = 64, RMAT_WORDS = 4 };

static const double rmat_two_32 = 4294967296.0;

__extension__ typedef unsigned __int128 rmat_wide_t;

typedef struct rmat {
    int64_t n;
    int32_t classes;
    int levels, class_levels; /* the lowest ones are the class */
    double column[2];         /* probability that a level's bit of the destination is 0, 1 */
    uint64_t row[2];          /* of 2^32: that the source's bit is 0, given that the destination's is 0, 1 */
    uint64_t copied;          /* of 2^32: edges whose class is that of the destination */
    double mean;              /* edges / probability of the columns that exist */
    uint64_t degree_key, edge_key;
} rmat_t;

static int rmat_levels(int64_t n)
{
    int levels = 0;
    while ((int64_t)1 << levels < n) {
        levels++;
    }
    return levels;
}

static double rmat_column(const rmat_t *rmat, int64_t place)
{
    double p = 1;
    for (int level = 0; level < rmat->levels; level++) {
        p *= rmat->column[place >> level & 1];
    }
    return p;
}

/* The probability of columns 0 .. n-1: at each 1 of n, all columns that have a 0 there. */
static double rmat_existing(const rmat_t *rmat)
{
    volatile double sum = 0, part; /* volatile: rounded alike everywhere, never fused */
    double prefix = 1;
    if (rmat->n == (int64_t)1 << rmat->levels) {
        return 1;
    }
    for (int level = rmat->levels - 1; level >= 0; level--) {
        const int bit = (int)(rmat->n >> level & 1);
        if (bit) {
            part = prefix * rmat->column[0];
            sum = sum + part;
        }
        prefix *= rmat->column[bit];
    }
    return sum;
}

/* A Poisson number: as many uniform numbers as can be multiplied before the product falls below e^-mean. */
static int64_t rmat_poisson(uint64_t key, int64_t place, double mean)
{
    static const double log2_e = 1.4426950408889634, most = 16;
    int64_t count = 0;
    uint64_t counter = 0;
    while (mean > 0) {
        const double part = mean < most ? mean : most;
        const uint64_t end = (uint64_t)(exact_halved(part * log2_e) * (rmat_two_32 * rmat_two_32 / 2));
        uint64_t product = (uint64_t)1 << 63;
        for (;;) {
            const rng_block_t random = rng_philox(key, counter++, (uint64_t)place);
            const uint64_t wide = (uint64_t)random.v[0] << 32 | random.v[1];
            product = (uint64_t)(((rmat_wide_t)product * wide) >> 64);
            if (product < end) {
                break;
            }
            count++;
        }
        mean -= part;
    }
    return count;
}

static int64_t rmat_degree(const void *self, int64_t place)
{
    const rmat_t *rmat = self;
    return rmat_poisson(rmat->degree_key, place, rmat->mean * rmat_column(rmat, place));
}

static int64_t rmat_draw(const void *self, int64_t place, uint64_t i)
{
    const rmat_t *rmat = self;
    rng_block_t random = {{0}};
    for (uint64_t try = 0; try < RMAT_TRIES; try++) {
        const uint64_t blocks = 1 + (uint64_t)rmat->levels / RMAT_WORDS; /* of this try; the first word is the copy's */
        random = rng_philox(rmat->edge_key, i << 16 | try * blocks, (uint64_t)place);
        const int lowest = random.v[0] < rmat->copied ? rmat->class_levels : 0;
        int64_t drawn = 0;
        for (int level = rmat->levels - 1, word = 1; level >= lowest; level--, word++) {
            if (word % RMAT_WORDS == 0) {
                random =
                    rng_philox(rmat->edge_key, i << 16 | (try * blocks + (uint64_t)word / RMAT_WORDS), (uint64_t)place);
            }
            drawn |= (int64_t)(random.v[word % RMAT_WORDS] >= rmat->row[place >> level & 1]) << level;
        }
        drawn |= place & (((int64_t)1 << lowest) - 1);
        if (drawn < rmat->n) {
            return drawn;
        }
    }
    return place; /* rows that exist are all but impossible: no edge */
}

static int32_t rmat_label(const void *self, int64_t place)
{
    const rmat_t *rmat = self;
    const int64_t low = place & (((int64_t)1 << rmat->class_levels) - 1);
    return (int32_t)((low * rmat->classes) >> rmat->class_levels);
}

static void rmat_describe(const generate_options_t *options, json_t *json)
{
    json_string(json, "generator", "rmat");
    json_array(json, "probabilities");
    for (int i = 0; i < 4; i++) {
        json_double(json, NULL, options->probability[i]);
    }
    json_end_array(json);
    json_bool(json, "scrambled", options->scramble);
}

static rmat_t rmat_make(const generate_options_t *options)
{
    const double *p = options->probability;
    rmat_t rmat = {.n = options->n_nodes,
                   .classes = options->n_classes,
                   .levels = rmat_levels(options->n_nodes),
                   .class_levels = rmat_levels(options->n_classes),
                   .column = {p[0] + p[2], p[1] + p[3]},
                   .copied = (uint64_t)(options->homophily * rmat_two_32),
                   .degree_key = generate_key(options, GENERATE_DEGREE),
                   .edge_key = generate_key(options, GENERATE_EDGES)};
    for (int bit = 0; bit < 2; bit++) {
        rmat.row[bit] = rmat.column[bit] > 0 ? (uint64_t)(p[bit] / rmat.column[bit] * rmat_two_32) : 0;
    }
    rmat.mean = (double)options->n_edges / rmat_existing(&rmat);
    return rmat;
}

rudder_status_t generate_rmat_check(const generate_options_t *options, rudder_error_t *error)
{
    const double *p = options->probability;
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += p[i];
        if (!(p[i] >= 0)) {
            return RUDDER_FAIL(error, RUDDER_E_USAGE, "probabilities: expected four of 0 or more, found %g", p[i]);
        }
    }
    if (!(fabs(sum - 1) < 1e-6)) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "probabilities: expected four that sum to 1, found %g + %g + %g + %g = %g", p[0], p[1], p[2],
                           p[3], sum);
    }
    RUDDER_TRY(generate_check(options, error));
    const rmat_t rmat = rmat_make(options);
    if (!(rmat_existing(&rmat) > 0)) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "probabilities: expected some chance that an edge falls on one of %" PRId64
                           " nodes, found none: use a power of two of nodes, or a + c above 0",
                           options->n_nodes);
    }
    return RUDDER_OK;
}

rudder_status_t generate_rmat(const char *directory, const generate_options_t *options, generate_report_t *report,
                              rudder_error_t *error)
{
    const rmat_t rmat = rmat_make(options);
    const generate_model_t model = {.self = &rmat,
                                    .scramble = options->scramble,
                                    .describe = rmat_describe,
                                    .degree = rmat_degree,
                                    .draw = rmat_draw,
                                    .label = rmat_label};
    return generate_write(directory, options, &model, report, error);
}
