/*
 * Orders of seeds: every seed as often as it should be, the same order for whoever asks, and each with the property that it
 * is there for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "sample/seeds.h"

/* n training nodes with 7 labels (-1 among them); their ranks are scattered and have gaps. */
static seeds_config_t make(seeds_order_t order, int64_t n)
{
    int32_t *label = malloc(((size_t)n + 1) * sizeof *label), *rank = malloc(((size_t)n + 1) * sizeof *rank);
    for (int64_t i = 0; i < n; i++) {
        label[i] = (int32_t)(rng_mix((uint64_t)i) % 7) - 1;
        rank[i] = (int32_t)(3 * ((i * 7919 + 13) % n)); /* distinct: 7919 is a prime that divides no n below */
    }
    return (seeds_config_t){.order = order, .seed = 5, .n = n, .epochs = 3, .step = 64, .label = label, .rank = rank};
}

static void release(seeds_config_t *config)
{
    free((void *)config->label);
    free((void *)config->rank);
}

static int64_t *epoch_of(const seeds_config_t *config, int64_t epoch)
{
    int64_t *order = malloc(((size_t)config->n + 1) * sizeof *order);
    uint64_t *scratch = malloc(((size_t)config->n + 1) * sizeof *scratch);
    order[config->n] = -77;
    scratch[config->n] = 77;
    seeds_epoch(config, epoch, order, scratch);
    assert_true(order[config->n] == -77 && scratch[config->n] == 77);
    free(scratch);
    return order;
}

static int same(const int64_t *a, const int64_t *b, int64_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void test_every_epoch_is_a_permutation(void **state)
{
    (void)state;
    const int64_t sizes[] = {0, 1, 2, 3, 5, 63, 64, 65, 127, 129, 1000, 40007};
    for (int order = SEEDS_SHUFFLED; order < SEEDS_DRIFT; order++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            seeds_config_t config = make((seeds_order_t)order, sizes[s]);
            char *seen = calloc((size_t)sizes[s] + 1, 1);
            for (int epoch = 0; epoch < 3; epoch++) {
                int64_t *list = epoch_of(&config, epoch);
                for (int64_t i = 0; i < sizes[s]; i++) {
                    assert_true(list[i] >= 0 && list[i] < sizes[s]);
                    assert_int_equal(seen[list[i]], epoch);
                    seen[list[i]]++;
                }
                free(list);
            }
            free(seen);
            release(&config);
        }
    }
}

static void test_order_depends_on_seed_and_epoch_only(void **state)
{
    (void)state;
    for (int order = SEEDS_SHUFFLED; order <= SEEDS_DRIFT; order++) {
        seeds_config_t config = make((seeds_order_t)order, 5000), other = config;
        other.seed = 6;
        int64_t *a = epoch_of(&config, 0), *b = epoch_of(&config, 0), *next = epoch_of(&config, 1);
        int64_t *reseeded = epoch_of(&other, 0);
        assert_true(same(a, b, 5000));
        assert_false(same(a, next, 5000));
        assert_false(same(a, reseeded, 5000));
        free(a);
        free(b);
        free(next);
        free(reseeded);
        release(&config);
    }
}

/* All 24 orders of 4 seeds come equally often: chi-square with 23 degrees of freedom, 49.7 is passed once in 1000. */
static void test_shuffled_is_uniform(void **state)
{
    (void)state;
    enum { EPOCHS = 24000 };
    seeds_config_t config = make(SEEDS_SHUFFLED, 4);
    int64_t count[256] = {0};
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t *list = epoch_of(&config, epoch);
        count[list[0] * 64 + list[1] * 16 + list[2] * 4 + list[3]]++;
        free(list);
    }
    double chi2 = 0;
    int orders = 0;
    for (int i = 0; i < 256; i++) {
        if (count[i] > 0) {
            const double off = (double)count[i] - EPOCHS / 24.0;
            chi2 += off * off / (EPOCHS / 24.0);
            orders++;
        }
    }
    assert_int_equal(orders, 24);
    assert_true(chi2 < 49.7);
    release(&config);
}

static void test_class_goes_by_label(void **state)
{
    (void)state;
    seeds_config_t config = make(SEEDS_CLASS, 7000);
    int64_t *list = epoch_of(&config, 0);
    int64_t ascending = 0;
    for (int64_t i = 1; i < config.n; i++) {
        assert_true(config.label[list[i - 1]] <= config.label[list[i]]);
        ascending += list[i - 1] < list[i];
    }
    assert_int_equal(config.label[list[0]], -1);
    assert_true(ascending > 3200 && ascending < 3800); /* shuffled within a class */
    free(list);
    release(&config);
}

/* Neighbours in the breadth-first order stand one round of the 64 streams apart. */
static void test_community_walks_through_the_graph(void **state)
{
    (void)state;
    seeds_config_t config = make(SEEDS_COMMUNITY, 6400);
    int64_t *list = epoch_of(&config, 2);
    int64_t next = 0, far = 0;
    for (int64_t i = 0; i + 64 < config.n; i++) {
        next += config.rank[list[i + 64]] == config.rank[list[i]] + 3;
    }
    for (int64_t i = 0; i + 1 < 64; i++) {
        far += abs(config.rank[list[i + 1]] - config.rank[list[i]]) >= 3 * 100;
    }
    assert_true(next >= 6400 - 64 - 1); /* but where the order wraps round */
    assert_int_equal(far, 63);
    free(list);
    release(&config);
}

/* Every seed comes as often as the run has epochs and once at most in a step, also where an epoch has few steps. */
static void test_drift_uses_every_seed_as_often(void **state)
{
    (void)state;
    const int64_t sizes[] = {0, 1, 2, 3, 5, 64, 127, 1000, 40007}, steps[] = {1, 2, 7, 64, 500, 100000},
                  runs[] = {1, 2, 3, 7};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes * 6 * 4; k++) {
        const int64_t n = sizes[k / 24];
        seeds_config_t config = make(SEEDS_DRIFT, n);
        config.step = steps[k / 4 % 6];
        config.epochs = runs[k % 4];
        int64_t *uses = calloc((size_t)n + 1, sizeof *uses), *last = calloc((size_t)n + 1, sizeof *last), step = 0;
        for (int64_t epoch = -1; epoch < config.epochs; epoch++) { /* and one before the run, as samples are taken in */
            int64_t *list = epoch_of(&config, epoch);
            for (int64_t i = 0; i < n; i++) {
                step += i % config.step == 0;
                assert_true(list[i] >= 0 && list[i] < n);
                assert_true(last[list[i]] < step);
                last[list[i]] = step;
                uses[list[i]] += epoch >= 0;
            }
            free(list);
        }
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(uses[i], config.epochs);
        }
        free(uses);
        free(last);
        release(&config);
    }
}

/* In a fourteenth of the run few of the seven classes take part, in an epoch not all, in the run all. */
static void test_drift_goes_round_the_classes_once_in_a_run(void **state)
{
    (void)state;
    enum { N = 40000, PIECES = 14 };
    seeds_config_t config = make(SEEDS_DRIFT, N);
    int64_t *list[3];
    unsigned all = 0;
    for (int epoch = 0; epoch < 3; epoch++) {
        unsigned classes = 0;
        list[epoch] = epoch_of(&config, epoch);
        for (int64_t i = 0; i < N; i++) {
            classes |= 1u << (config.label[list[epoch][i]] + 1);
        }
        assert_true(classes != 0x7F);
        all |= classes;
    }
    assert_int_equal(all, 0x7F);
    for (int64_t piece = 0; piece < PIECES; piece++) {
        int64_t n = 0, count[7] = {0};
        for (int64_t i = piece * 3 * N / PIECES; i < (piece + 1) * 3 * N / PIECES; i++) {
            n += count[config.label[list[i / N][i % N]] + 1]++ == 0;
        }
        assert_true(n <= 3);
    }
    for (int epoch = 0; epoch < 3; epoch++) {
        free(list[epoch]);
    }
    release(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_epoch_is_a_permutation),
        cmocka_unit_test(test_order_depends_on_seed_and_epoch_only),
        cmocka_unit_test(test_shuffled_is_uniform),
        cmocka_unit_test(test_class_goes_by_label),
        cmocka_unit_test(test_community_walks_through_the_graph),
        cmocka_unit_test(test_drift_uses_every_seed_as_often),
        cmocka_unit_test(test_drift_goes_round_the_classes_once_in_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
