/*
 * Learned use rates: decayed counts kept lazily with the time of the last use, the sums of the fit, its solution.
 *
 * A plan can be taken back while later ones are not made yet, and the buffer puts back only the states of nodes. What else
 * a minibatch changes (the sums of the fit, the weights, the prior's scale) is therefore one record a minibatch, in a ring
 * as long as plans can be open: what was known before each.
 */
#include "policy/rates.h"

#include <math.h>
#include <string.h>

#include "buffer/arena.h"
#include "buffer/nodes.h"

enum {
    RATES_TERMS = 4,   /* half-life 4, half-life 64, all uses, prior */
    RATES_HORIZON = 8, /* minibatches that the fit's rates are compared with, and after which it is solved anew */
    RATES_AHEAD = 8,
    RATES_LEAST_SAMPLE = 2048, /* fewer nodes than this are all in the sample */
    RATES_MOST_SHIFT = 6       /* of many, one in 64 */
};

static const double rates_half_life[2] = {4, 64};
static const double rates_fit_half_life = 32;
static const double rates_prior_weight = 16; /* minibatches of history that the prior counts for */
static const double rates_least_rate = .01;  /* rows of the fit weigh 1 / (rate + this) */
static const double rates_ridge = 1;         /* "all uses alone" counts as if about one use had shown it */

typedef double rates_square_t[RATES_TERMS][RATES_TERMS]; /* symmetric: the upper triangle */

/*
 * What is known before a minibatch. Time is counted in minibatches that use any nodes: a rank that has no part in a phase of
 * training forgets nothing in it.
 */
typedef struct rates_fit {
    int64_t time;
    rates_square_t square;    /* sum of x x' over the sample and the minibatches */
    double with[RATES_TERMS]; /* sum of x y */
    rates_square_t now;       /* what a minibatch adds to `square` */
    double weight[RATES_TERMS];
    double uses;  /* of nodes with a known degree, since the start */
    double scale; /* prior = 1 - exp(-scale x degree) */
} rates_fit_t;

/* Rates of the sample when the horizon began. */
typedef struct rates_sample {
    uint32_t shift;
    int32_t count; /* of the nodes then */
    float (*x)[RATES_TERMS];
} rates_sample_t;

struct rates {
    rates_now_t now;
    int64_t capacity;
    double norm[2];     /* one through the sum of the decays of all minibatches before this one */
    double prior_scale; /* that `prior` was made with */
    int64_t n_known;
    int32_t known[RATES_DEGREES]; /* nodes, by class of degree */
    rates_fit_t *fit;             /* of the minibatch under way */
    rates_sample_t *sample;       /* likewise */
    int64_t n_fits, n_samples;    /* rings */
    rates_fit_t *fits;
    rates_sample_t *samples;
};

_Static_assert(offsetof(struct rates, now) == 0, "rates_now() relies on it");

/* ---- Degrees ---------------------------------------------------------------------------------------------------- */

/* A float's exponent and the first six bits of its fraction. */
static uint16_t rates_degree_class(uint32_t degree)
{
    const float value = (float)degree;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t class = (bits >> 17) - (127u << 6) + 1;
    return degree == 0 ? 0 : (uint16_t)(class < RATES_DEGREES ? class : RATES_DEGREES - 1);
}

static double rates_class_degree(int32_t class)
{
    return class == 0 ? 0 : ldexp(1 + ((class - 1) & 63) / 64., (class - 1) >> 6);
}

static double rates_prior(double scale, int32_t class)
{
    return -expm1(-scale * rates_class_degree(class));
}

/* The scale at which the priors of all known nodes sum up to `uses`. */
static double rates_find_scale(const rates_t *rates, double uses)
{
    double low = 0, high = 1;
    const double most = .9 * (double)(rates->n_known - rates->known[0]);
    const double wanted = uses < most ? uses : most;
    for (int step = 0; step < 60; step++) {
        const double middle = step == 0 ? high : .5 * (low + high);
        double sum = 0;
        for (int32_t c = 1; c < RATES_DEGREES; c++) {
            sum += rates->known[c] > 0 ? rates->known[c] * rates_prior(middle, c) : 0;
        }
        if (sum >= wanted) {
            high = middle;
        } else if (step == 0) {
            return high; /* no prior is that weak */
        } else {
            low = middle;
        }
    }
    return high;
}

static void rates_make_priors(rates_t *rates, double scale)
{
    for (int32_t c = 0; c < RATES_DEGREES; c++) {
        rates->now.prior[c] = (float)rates_prior(scale, c);
    }
    rates->prior_scale = scale;
}

void rates_known(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, const uint32_t *degree, int64_t n)
{
    for (int64_t i = 0; i < n && degree != NULL; i++) {
        rates_state_t *state = nodes_state(nodes, node[i]);
        state->degree = rates_degree_class(degree[i]);
        rates->known[state->degree]++;
        rates->n_known++;
    }
}

/* ---- When ------------------------------------------------------------------------------------------------------- */

/* The sample is taken before the minibatches 1, 2, 4, 8, 16, 24, ...: how many times up to t. */
static int64_t rates_number(int64_t t)
{
    int64_t early = 0;
    for (int64_t at = 1; at < RATES_HORIZON && at <= t; at *= 2) {
        early++;
    }
    return early + t / RATES_HORIZON;
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

/* Most nodes in a sample: of more than RATES_LEAST_SAMPLE one in a power of two, so that hardly more than that are left. */
static size_t rates_most_sampled(int64_t max_nodes)
{
    const int64_t least = RATES_LEAST_SAMPLE + 1, share = (max_nodes >> RATES_MOST_SHIFT) + 1;
    const int64_t most = share > least ? share : least;
    return (size_t)(most < max_nodes ? most : max_nodes);
}

/* Cuts the memory; returns all bytes. memory: NULL while measuring. */
static size_t rates_layout(void *memory, const rudder_policy_setup_t *setup)
{
    arena_t arena = {.base = memory};
    const int64_t plans = setup->max_plans > 1 ? setup->max_plans : 1;
    const int64_t n_fits = plans + 1, n_samples = rates_number(plans) + 1;
    rates_t *rates = arena_take(&arena, 1, sizeof *rates);
    rates_fit_t *fits = arena_take(&arena, (size_t)n_fits, sizeof *fits);
    rates_sample_t *samples = arena_take(&arena, (size_t)n_samples, sizeof *samples);
    for (int64_t i = 0; i < n_samples; i++) {
        void *x = arena_take(&arena, rates_most_sampled(setup->max_nodes), sizeof *samples->x);
        if (memory != NULL) {
            samples[i].x = x;
        }
    }
    if (memory != NULL) {
        rates->n_fits = n_fits;
        rates->n_samples = n_samples;
        rates->fit = rates->fits = fits;
        rates->sample = rates->samples = samples;
    }
    return arena.used;
}

size_t rates_memory(const rudder_policy_setup_t *setup)
{
    return rates_layout(NULL, setup);
}

rates_t *rates_open(void *memory, const rudder_policy_setup_t *setup)
{
    rates_t *rates = memory;
    rates_layout(memory, setup);
    rates->capacity = setup->capacity;
    rates->fit->weight[2] = 1;
    for (int age = 0; age < RATES_AGES; age++) {
        rates->now.decay[age] = (rates_decay_t){.of_4 = (float)(exp2(-age / rates_half_life[0]) / RATES_UNIT_4),
                                                .of_64 = (float)(exp2(-age / rates_half_life[1]) / RATES_UNIT_64)};
    }
    return rates;
}

/* ---- The fit ---------------------------------------------------------------------------------------------------- */

/*
 * The sample: one node of every 2^shift consecutive ones, which of them is a hash's choice. Numbers are given in order of
 * appearance, so this is as good as drawing, needs no list, and changes by itself as nodes come and go.
 */
static inline int32_t rates_sampled(uint32_t block, uint32_t shift)
{
    return (int32_t)(block << shift | (uint32_t)((uint64_t)(block * 0x9E3779B1u) >> (32 - shift)));
}

/* What the rates were before minibatch t. */
static void rates_row(const rates_t *rates, const rates_state_t *state, int64_t t, float x[RATES_TERMS])
{
    const uint32_t age = (uint32_t)t - state->last;
    const rates_decay_t decay = rates->now.decay[age < RATES_AGES ? age : RATES_AGES - 1];
    const double prior = (double)rates->now.prior[state->degree];
    x[0] = (float)((double)state->count[0] * (double)decay.of_4 * rates->norm[0]);
    x[1] = (float)((double)state->count[1] * (double)decay.of_64 * rates->norm[1]);
    x[2] = (float)((state->uses + rates_prior_weight * prior) / ((double)t + rates_prior_weight));
    x[3] = (float)prior;
}

static inline double rates_row_weight(const float x[RATES_TERMS])
{
    return 1 / ((double)x[2] + rates_least_rate);
}

/* Takes the sample anew, before minibatch t. */
static void rates_take_sample(rates_t *rates, const rudder_nodes_t *nodes, int64_t t)
{
    rates_sample_t *sample = rates->sample;
    uint32_t shift = 0;
    while (shift < RATES_MOST_SHIFT && nodes->count >> shift > RATES_LEAST_SAMPLE) {
        shift++;
    }
    sample->shift = shift;
    sample->count = nodes->count;
    memset(rates->fit->now, 0, sizeof rates->fit->now);
    for (uint32_t block = 0; (int64_t)block << shift < nodes->count; block++) {
        const int32_t node = rates_sampled(block, shift), ahead = rates_sampled(block + RATES_AHEAD, shift);
        float *x = sample->x[block];
        if (ahead < nodes->count) {
            __builtin_prefetch(nodes_state(nodes, ahead));
        }
        if (node >= nodes->count) {
            break; /* of the last block, or not there */
        }
        rates_row(rates, nodes_state(nodes, node), t, x);
        const double weight = rates_row_weight(x);
        for (int i = 0; i < RATES_TERMS; i++) {
            for (int j = i; j < RATES_TERMS; j++) {
                rates->fit->now[i][j] += weight * (double)x[i] * (double)x[j];
            }
        }
    }
}

/* A node is used: if it was in the sample, the fit hears of it. */
static inline void rates_tell(const rates_sample_t *sample, rates_fit_t *fit, int32_t node)
{
    const uint32_t block = (uint32_t)node >> sample->shift;
    if (node < sample->count && node == rates_sampled(block, sample->shift)) {
        const float *x = sample->x[block];
        const double weight = rates_row_weight(x);
        for (int i = 0; i < RATES_TERMS; i++) {
            fit->with[i] += weight * (double)x[i];
        }
    }
}

/* Solves for the terms in `set` alone, the others are 0. Returns 0 when a weight would be negative or there is none. */
static int rates_solve_set(const rates_fit_t *fit, unsigned set, double weight[RATES_TERMS])
{
    double l[RATES_TERMS][RATES_TERMS], y[RATES_TERMS];
    int term[RATES_TERMS], n = 0;
    for (int i = 0; i < RATES_TERMS; i++) {
        weight[i] = 0;
        if (set >> i & 1) {
            term[n++] = i;
        }
    }
    for (int i = 0; i < n; i++) { /* Cholesky, and the lower system on the way */
        for (int j = 0; j <= i; j++) {
            double sum = fit->square[term[j]][term[i]];
            for (int k = 0; k < j; k++) {
                sum -= l[i][k] * l[j][k];
            }
            if (i != j) {
                l[i][j] = sum / l[j][j];
            } else if (sum > 1e-12 * fit->square[term[i]][term[i]]) {
                l[i][i] = sqrt(sum);
            } else {
                return 0;
            }
        }
        y[i] = fit->with[term[i]];
        for (int k = 0; k < i; k++) {
            y[i] -= l[i][k] * y[k];
        }
        y[i] /= l[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) {
            y[i] -= l[k][i] * y[k];
        }
        y[i] /= l[i][i];
        weight[term[i]] = y[i];
        if (!(y[i] >= 0)) {
            return 0;
        }
    }
    return 1;
}

/* Nonnegative least squares: the best of the sets of terms whose own solution is nonnegative. */
static void rates_solve(rates_fit_t *fit)
{
    rates_fit_t ridged = *fit;
    double best = INFINITY;
    for (int i = 0; i < RATES_TERMS; i++) {
        ridged.square[i][i] += rates_ridge;
    }
    ridged.with[2] += rates_ridge;
    for (unsigned set = 1; set < 1u << RATES_TERMS; set++) {
        double weight[RATES_TERMS], error = 0;
        if (rates_solve_set(&ridged, set, weight)) {
            for (int i = 0; i < RATES_TERMS; i++) { /* at a solution the error is a constant - w . x y */
                error -= weight[i] * ridged.with[i];
            }
            if (error < best) {
                best = error;
                memcpy(fit->weight, weight, sizeof weight);
            }
        }
    }
}

/* ---- A minibatch ------------------------------------------------------------------------------------------------ */

/* One through the sum of the decays of the minibatches before t. */
static double rates_norm(double half_life, int64_t t)
{
    const double q = exp2(-1 / half_life);
    return t == 0 ? 0 : (1 - q) / (q * -expm1(-(double)t * M_LN2 / half_life));
}

/* What rates_of() needs. */
static void rates_look(rates_t *rates)
{
    const rates_fit_t *fit = rates->fit;
    const int64_t t = fit->time;
    const double per_use = fit->weight[2] / ((double)t + rates_prior_weight);
    rates->now.time = (uint32_t)t;
    rates->now.per_4 = (float)(fit->weight[0] * rates_norm(rates_half_life[0], t));
    rates->now.per_64 = (float)(fit->weight[1] * rates_norm(rates_half_life[1], t));
    rates->now.per_use = (float)per_use;
    rates->now.per_prior = (float)(per_use * rates_prior_weight + fit->weight[3]);
}

/* The records before a minibatch become those under way. */
static void rates_go_to(rates_t *rates, int64_t minibatch)
{
    rates->fit = &rates->fits[minibatch % rates->n_fits];
    const int64_t t = rates->fit->time;
    rates->sample = &rates->samples[rates_number(t) % rates->n_samples];
    if (rates->fit->scale != rates->prior_scale) {
        rates_make_priors(rates, rates->fit->scale);
    }
    for (int i = 0; i < 2; i++) {
        rates->norm[i] = rates_norm(rates_half_life[i], t);
    }
}

/* The minibatch under way uses nodes: time goes on. */
static void rates_advance(rates_t *rates, const rudder_nodes_t *nodes)
{
    rates_fit_t *fit = rates->fit;
    const int64_t t = fit->time++;
    const double fading = exp2(-1 / rates_fit_half_life);
    if (rates->n_known > 0 && (t & (t - 1)) == 0) { /* 0, 1, 2, 4, 8: the prior soon settles */
        fit->scale = rates_find_scale(rates, t == 0 ? (double)rates->capacity : fit->uses / (double)t);
        rates_make_priors(rates, fit->scale);
    }
    if (t > 0 && rates_number(t) > rates_number(t - 1)) {
        rates_solve(fit);
        rates_take_sample(rates, nodes, t);
    }
    for (int i = 0; i < RATES_TERMS; i++) {
        fit->with[i] *= fading;
        for (int j = i; j < RATES_TERMS; j++) {
            fit->square[i][j] = fit->square[i][j] * fading + fit->now[i][j];
        }
    }
}

static uint16_t rates_add(uint16_t count, float decay, int unit)
{
    const float sum = (float)count * decay * (float)unit + (float)unit + .5f;
    return (uint16_t)(sum < (float)UINT16_MAX ? sum : (float)UINT16_MAX);
}

/* The nodes are used in the minibatch under way, whose number in time is t. */
static void rates_use(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    rates_fit_t *fit = rates->fit;
    if (n > 0 && fit->time == rates->fits[nodes->minibatch % rates->n_fits].time) {
        rates_advance(rates, nodes);
    }
    const int64_t t = fit->time - 1;
    int64_t uses = 0;
    for (int64_t i = 0; i < n; i++) {
        rates_state_t *state = nodes_state(nodes, node[i]);
        rates_tell(rates->sample, fit, node[i]);
        const uint32_t age = (uint32_t)t - state->last;
        const rates_decay_t decay = rates->now.decay[age < RATES_AGES ? age : RATES_AGES - 1];
        state->count[0] = rates_add(state->count[0], decay.of_4, RATES_UNIT_4);
        state->count[1] = rates_add(state->count[1], decay.of_64, RATES_UNIT_64);
        state->last = (uint32_t)t;
        state->uses += state->uses != UINT32_MAX;
        uses += state->degree != 0;
    }
    fit->uses += (double)uses;
}

void rates_hits(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    rates_go_to(rates, nodes->minibatch);
    rates_fit_t *after = &rates->fits[(nodes->minibatch + 1) % rates->n_fits];
    *after = *rates->fit;
    rates->fit = after;
    rates_use(rates, nodes, node, n);
}

void rates_misses(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    rates_use(rates, nodes, node, n);
    rates_look(rates);
}

void rates_restored(rates_t *rates, const rudder_nodes_t *nodes)
{
    rates_go_to(rates, nodes->minibatch);
    rates_look(rates);
}
