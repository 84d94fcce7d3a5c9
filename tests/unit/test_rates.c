/*
 * Learned use rates against a plain model of their definition: every count decays in every minibatch, everything is double,
 * the fit is descended to. And the properties that policies rely on: an abort leaves no trace, known weights are found
 * again, nothing wears out in a long run.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "policy/policy.h"
#include "policy/rates.h"
#include "rudder/rudder.h"

enum { ROW = 4, MOST_NODES = 2048, MOST_IDS = 512, TERMS = 4, FIRST_ID = 1000 };

static uint64_t random_state = 1;

static double uniform(void)
{
    return (double)(rng_mix(random_state++) >> 11) * 0x1p-53;
}

/* ---- A policy that keeps rates and nothing else ------------------------------------------------------------------ */

static struct {
    rates_t *rates;
    rudder_nodes_t *nodes;
} watched;

static rudder_status_t watch_open(void *self, const rudder_policy_setup_t *setup)
{
    watched.rates = rates_open(self, setup);
    watched.nodes = setup->nodes;
    return RUDDER_OK;
}

static void watch_hits(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    rates_hits(self, nodes, node, n);
}

static void watch_misses(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    rates_misses(self, nodes, node, n);
    for (int64_t i = 0; i < n && rudder_nodes_free(nodes) > 0; i++) { /* some rows are hit later */
        rudder_nodes_admit(nodes, node[i], -1);
    }
}

static void watch_known(void *self, rudder_nodes_t *nodes, const int32_t *node, const uint32_t *degree, int64_t n)
{
    rates_known(self, nodes, node, degree, n);
}

static void watch_restored(void *self, rudder_nodes_t *nodes, const int32_t *node, int64_t n)
{
    (void)node, (void)n;
    rates_restored(self, nodes);
}

static const rudder_policy_t watch = {.size = sizeof(rudder_policy_t),
                                      .name = "watch",
                                      .flags = RUDDER_POLICY_ADMITS,
                                      .state_bytes = sizeof(rates_state_t),
                                      .memory = rates_memory,
                                      .open = watch_open,
                                      .hits = watch_hits,
                                      .misses = watch_misses,
                                      .restored = watch_restored,
                                      .known = watch_known};

/* Ids FIRST_ID .. FIRST_ID + n_nodes - 1 are the halo, so node k is id FIRST_ID + k. */
static rudder_t *open_handle(const rudder_policy_t *policy, int64_t n_nodes, const uint32_t *degree, int64_t capacity,
                             int32_t max_plans)
{
    static int64_t halo[MOST_NODES];
    rudder_t *handle = NULL;
    rudder_error_t error = {0};
    rudder_config_t config;
    for (int64_t i = 0; i < n_nodes; i++) {
        halo[i] = FIRST_ID + i;
    }
    const rudder_type_config_t type = {.row_bytes = ROW,
                                       .capacity_rows = capacity,
                                       .max_ids = MOST_IDS,
                                       .max_tracked = MOST_NODES,
                                       .halo = halo,
                                       .halo_degree = degree,
                                       .n_halo = n_nodes};
    rudder_config_init(&config, sizeof config);
    config.types = &type;
    config.policy_table = policy;
    config.start = "empty";
    config.max_plans = max_plans;
    if (rudder_open(&config, &handle, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    return handle;
}

static rudder_plan_t *begin(rudder_t *handle, const int64_t *ids, int64_t n)
{
    rudder_plan_t *plan;
    rudder_error_t error = {0};
    if (rudder_plan_begin(handle, 0, ids, n, &plan, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    return plan;
}

static void complete(rudder_t *handle, rudder_plan_t *plan)
{
    static char rows[MOST_IDS * ROW], out[MOST_IDS * ROW];
    assert_int_equal(rudder_complete(handle, plan, rows, ROW, out, NULL), RUDDER_OK);
}

static double rate(int32_t node)
{
    return (double)rates_of(watched.rates, rudder_node_state(watched.nodes, node));
}

/* ---- The definition ---------------------------------------------------------------------------------------------- */

typedef struct model {
    int64_t n_nodes, capacity, minibatches;
    const uint32_t *degree;
    double count[MOST_NODES][2], norm[2];
    double uses[MOST_NODES], all_uses, scale;
    double sample[MOST_NODES][TERMS];
    double square[TERMS][TERMS], with[TERMS], weight[TERMS];
} model_t;

static double model_prior(const model_t *m, int64_t node)
{
    return m->degree == NULL ? 0 : 1 - exp(-m->scale * m->degree[node]);
}

static void model_row(const model_t *m, int64_t node, double x[TERMS])
{
    for (int i = 0; i < 2; i++) {
        x[i] = m->norm[i] > 0 ? m->count[node][i] / m->norm[i] : 0;
    }
    x[3] = model_prior(m, node);
    x[2] = (m->uses[node] + 16 * x[3]) / ((double)m->minibatches + 16);
}

static double model_rate(const model_t *m, int64_t node)
{
    double x[TERMS], sum = 0;
    model_row(m, node, x);
    for (int i = 0; i < TERMS; i++) {
        sum += m->weight[i] * x[i];
    }
    return sum;
}

/* The scale at which the priors sum up to `wanted`, at most to 0.9 a node. */
static void model_set_scale(model_t *m, double wanted)
{
    double low = 0, high = 1, sum;
    int64_t with_degree = 0;
    for (int64_t k = 0; k < m->n_nodes; k++) {
        with_degree += m->degree[k] > 0;
    }
    wanted = fmin(wanted, .9 * (double)with_degree);
    for (int step = 0; step < 100; step++) {
        m->scale = (low + high) / 2;
        sum = 0;
        for (int64_t k = 0; k < m->n_nodes; k++) {
            sum += model_prior(m, k);
        }
        *(sum < wanted ? &low : &high) = m->scale;
    }
}

/* One weight after the other to its best, until nothing moves. */
static void model_solve(model_t *m)
{
    double moved = 1;
    for (int sweep = 0; sweep < 20000 && moved > 1e-9; sweep++) {
        moved = 0;
        for (int i = 0; i < TERMS; i++) {
            double rest = m->with[i] + (i == 2);
            for (int j = 0; j < TERMS; j++) {
                rest -= j == i ? 0 : m->square[i][j] * m->weight[j];
            }
            const double weight = fmax(0, rest / (m->square[i][i] + 1));
            moved = fmax(moved, fabs(weight - m->weight[i]));
            m->weight[i] = weight;
        }
    }
}

static void model_minibatch(model_t *m, const int64_t *ids, int64_t n)
{
    if (n == 0) { /* time stands still */
        return;
    }
    const int64_t t = m->minibatches;
    const double fading = pow(2, -1 / 32.);
    if (m->degree != NULL && (t & (t - 1)) == 0) {
        model_set_scale(m, t == 0 ? (double)m->capacity : m->all_uses / (double)t);
    }
    if (t == 1 || t == 2 || t == 4 || (t > 0 && t % 8 == 0)) {
        model_solve(m);
        for (int64_t k = 0; k < m->n_nodes; k++) {
            model_row(m, k, m->sample[k]);
        }
    }
    for (int i = 0; i < TERMS; i++) {
        m->with[i] *= fading;
        for (int j = 0; j < TERMS; j++) {
            m->square[i][j] *= fading;
            for (int64_t k = 0; k < m->n_nodes; k++) {
                m->square[i][j] += m->sample[k][i] * m->sample[k][j] / (m->sample[k][2] + .01);
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const double *x = m->sample[ids[i] - FIRST_ID];
        for (int j = 0; j < TERMS; j++) {
            m->with[j] += x[j] / (x[2] + .01);
        }
        m->count[ids[i] - FIRST_ID][0]++;
        m->count[ids[i] - FIRST_ID][1]++;
        m->uses[ids[i] - FIRST_ID]++;
        m->all_uses += m->degree != NULL && m->degree[ids[i] - FIRST_ID] > 0;
    }
    for (int i = 0; i < 2; i++) {
        const double keep = pow(2, -1 / (i == 0 ? 4. : 64.));
        m->norm[i] = (m->norm[i] + 1) * keep;
        for (int64_t k = 0; k < m->n_nodes; k++) {
            m->count[k][i] *= keep;
        }
    }
    m->minibatches++;
}

/* ---- Minibatches ------------------------------------------------------------------------------------------------- */

/* Each node with its own probability; `hot` of them, another ten every `drift` minibatches, ten times as often. */
static int64_t draw(int64_t n_nodes, int64_t t, int64_t drift, double mean, int64_t *ids)
{
    int64_t n = 0;
    for (int64_t k = 0; k < n_nodes; k++) {
        const int hot = drift > 0 && (k + n_nodes - t / drift * 10 % n_nodes) % n_nodes < n_nodes / 10;
        const double p = mean * (hot ? 10 : 1) * 2 * (double)(k + 1) / (double)n_nodes;
        if (uniform() < fmin(p, .95) && n < MOST_IDS) {
            ids[n++] = FIRST_ID + k;
        }
    }
    return n;
}

static model_t model; /* large */

/* The greatest difference of a rate from the model's, by the mean rate. */
static double compare(void)
{
    double sum = 0, worst = 0;
    for (int64_t k = 0; k < model.n_nodes; k++) {
        sum += model_rate(&model, k);
        worst = fmax(worst, fabs(rate((int32_t)k) - model_rate(&model, k)));
    }
    return worst / (sum / (double)model.n_nodes + 1e-9);
}

typedef struct run {
    int64_t n_nodes, minibatches, drift;
    double mean;
    int degrees;
} run_t;

static void check_run(const run_t *run)
{
    static uint32_t degree[MOST_NODES];
    int64_t ids[MOST_IDS];
    for (int64_t k = 0; k < run->n_nodes; k++) {
        degree[k] = (uint32_t)(k * 100 / run->n_nodes); /* the first have none */
    }
    const uint32_t *given = run->degrees ? degree : NULL;
    memset(&model, 0, sizeof model);
    model.n_nodes = run->n_nodes;
    model.capacity = run->n_nodes / 2;
    model.degree = given;
    model.weight[2] = 1;
    rudder_t *handle = open_handle(&watch, run->n_nodes, given, model.capacity, 1);
    double worst = 0;
    for (int64_t t = 0; t < run->minibatches; t++) {
        const int64_t n = t % 50 < 9 ? 0 : draw(run->n_nodes, t, run->drift, run->mean, ids);
        complete(handle, begin(handle, ids, n));
        model_minibatch(&model, ids, n);
        if (t < 100 || t % 997 == 0) {
            worst = fmax(worst, compare());
        }
    }
    print_message("%lld nodes: at most %.4f of the mean rate away\n", (long long)run->n_nodes, worst);
    assert_true(worst < .02);
    rudder_close(handle, 0);
}

static void test_rates_are_as_defined(void **state)
{
    static const run_t runs[] = {{1, 60, 0, .4, 1},     {2, 60, 0, .4, 0},    {50, 400, 0, .1, 1},
                                 {50, 400, 7, .02, 1},  {300, 400, 0, .1, 0}, {300, 400, 3, .02, 1},
                                 {2000, 150, 5, .01, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        check_run(&runs[i]);
    }
}

static void test_long_run(void **state)
{
    const run_t run = {20, 100000, 100, .02, 1};
    (void)state;
    check_run(&run);
}

/* ---- The fit ----------------------------------------------------------------------------------------------------- */

/* Uses are drawn from a mixture that is kept for eight minibatches: the rates come to be that mixture. */
static void check_recovered(const double weight[TERMS], double tolerance)
{
    static double p[MOST_NODES];
    static uint32_t degree[MOST_NODES];
    const int64_t n_nodes = 2000;
    int64_t ids[MOST_IDS];
    double wrong = 0, sum = 0;
    for (int64_t k = 0; k < n_nodes; k++) {
        degree[k] = (uint32_t)(1 + k * 60 / n_nodes);
        p[k] = .05;
    }
    memset(&model, 0, sizeof model);
    model.n_nodes = n_nodes;
    model.capacity = n_nodes / 4;
    model.degree = degree;
    model.weight[2] = 1;
    rudder_t *handle = open_handle(&watch, n_nodes, degree, model.capacity, 1);
    for (int64_t t = 0; t < 1200; t++) {
        int64_t n = 0;
        for (int64_t k = 0; k < n_nodes; k++) {
            double x[TERMS];
            if (t >= 64 && t % 8 == 0) {
                model_row(&model, k, x);
                p[k] = 0;
                for (int i = 0; i < TERMS; i++) {
                    p[k] += weight[i] * x[i];
                }
                if (t > 600) {
                    wrong += fabs(rate((int32_t)k) - p[k]);
                    sum += p[k];
                }
            }
            if (uniform() < p[k] && n < MOST_IDS) {
                ids[n++] = FIRST_ID + k;
            }
        }
        complete(handle, begin(handle, ids, n));
        model_minibatch(&model, ids, n);
    }
    print_message("rates are wrong by %.3f of their mean\n", wrong / sum);
    assert_true(wrong / sum < tolerance);
    rudder_close(handle, 0);
}

static void test_known_weights_are_found(void **state)
{
    static const double weights[][TERMS] = {{.9, 0, .05, .05}, {0, .9, .05, .05}, {0, 0, .5, .5}, {.3, .3, .2, .2}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        check_recovered(weights[i], .1);
    }
}

/* ---- Aborts ------------------------------------------------------------------------------------------------------ */

enum { ABORT_NODES = 500, ABORT_MINIBATCHES = 300 };

/* Of all rates, to the bit; 0 for other policies. */
static uint64_t hash_rates(const rudder_policy_t *policy)
{
    uint64_t hash = 0;
    for (int32_t node = 0; policy == &watch && node < rudder_nodes_count(watched.nodes); node++) {
        const float now = rates_of(watched.rates, rudder_node_state(watched.nodes, node));
        uint32_t bits;
        memcpy(&bits, &now, sizeof bits);
        hash = rng_mix(hash ^ bits);
    }
    return hash;
}

/* Rates and fetched ids of every minibatch, with some plans begun and taken back in between, or not. */
static uint64_t run_with_aborts(const rudder_policy_t *policy, int32_t max_plans, int aborts)
{
    static uint32_t degree[ABORT_NODES];
    uint64_t hash = 0;
    for (int i = 0; i < ABORT_NODES; i++) {
        degree[i] = (uint32_t)(1 + i % 40);
    }
    rudder_t *handle = open_handle(policy, ABORT_NODES / 2, degree, ABORT_NODES / 5, max_plans);
    for (int64_t t = 0; t < ABORT_MINIBATCHES; t++) {
        rudder_plan_t *plan[16];
        int64_t ids[MOST_IDS], n_miss, n_fill;
        const int64_t *fetch;
        const uint64_t before = hash_rates(policy);
        for (int32_t i = 0; aborts && i < max_plans; i++) { /* ids that are not tracked yet too */
            random_state = rng_mix((uint64_t)(t * 100 + i + 50));
            plan[i] = begin(handle, ids, (t + i) % 5 == 0 ? 0 : draw(ABORT_NODES, 3 * t + i, 2, .03, ids));
        }
        for (int32_t i = max_plans - 1; aborts && i >= 0; i--) {
            assert_int_equal(rudder_abort(handle, plan[i], NULL), RUDDER_OK);
        }
        assert_true(hash_rates(policy) == before);
        random_state = rng_mix((uint64_t)(t * 100));
        plan[0] = begin(handle, ids, t % 7 == 0 ? 0 : draw(ABORT_NODES, t, 9, .03, ids));
        rudder_plan_fetch(plan[0], &fetch, &n_miss, &n_fill);
        for (int64_t i = 0; i < n_miss; i++) {
            hash = rng_mix(hash ^ (uint64_t)fetch[i]);
        }
        complete(handle, plan[0]);
        hash = rng_mix(hash ^ hash_rates(policy));
    }
    rudder_close(handle, 0);
    return hash;
}

static void test_abort_leaves_no_trace(void **state)
{
    static const int32_t max_plans[] = {1, 2, 3, 7, 8, 9, 16};
    (void)state;
    for (int i = 0; i < 7; i++) {
        assert_true(run_with_aborts(&watch, max_plans[i], 1) == run_with_aborts(&watch, max_plans[i], 0));
        assert_true(run_with_aborts(&policy_mix, max_plans[i], 1) == run_with_aborts(&policy_mix, max_plans[i], 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates_are_as_defined), cmocka_unit_test(test_long_run),
                                       cmocka_unit_test(test_known_weights_are_found),
                                       cmocka_unit_test(test_abort_leaves_no_trace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
