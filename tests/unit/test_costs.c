/* Cost classes of owners: what reports must move them, and what must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "buffer/costs.h"

enum { OWNERS = 4, SEEDS = 40 };

/* ---- a run whose policy reacts ---- */

typedef struct owner {
    double rows;    /* a minibatch asks for, before any is kept for its cost */
    double fixed;   /* seconds */
    double per_row; /* seconds */
} owner_t;

typedef struct world {
    int32_t n;
    owner_t owner[OWNERS];
    double noise;    /* standard deviation of the logarithm of seconds */
    double accident; /* share of reports that take 10 ms or more longer */
    double reaction; /* rows of an owner of cost c fall to c^-reaction of what they were */
    int begin, end;  /* minibatches in which the last owner's rows cost `factor` times as much */
    double factor;
} world_t;

typedef struct course {
    int32_t class[OWNERS], most[OWNERS];
    int32_t first; /* minibatch in which the last owner first became dear, -1: never */
    uint32_t changes;
} course_t;

typedef struct noise {
    uint64_t key, counter;
} noise_t;

static double noise_uniform(noise_t *noise)
{
    return (rng_philox(noise->key, noise->counter++, 0).v[0] + 0.5) * 0x1p-32;
}

static double noise_normal(noise_t *noise)
{
    const double a = noise_uniform(noise), b = noise_uniform(noise);
    return sqrt(-2 * log(a)) * cos(2 * 3.14159265358979 * b);
}

/* Rows fall as the buffer fills and as dear rows are kept; every 41st minibatch is a short one. */
static course_t world_run(const world_t *world, uint64_t seed, int minibatches)
{
    costs_owner_t owners[OWNERS];
    costs_t costs = {.n_owners = world->n, .owners = owners};
    course_t course = {.first = -1};
    noise_t noise = {seed, 0};
    double kept[OWNERS] = {1, 1, 1, 1};
    costs_open(&costs, RUDDER_OWNER_COST_MEASURED, NULL);
    for (int t = 0; t < minibatches; t++) {
        costs_update(&costs);
        for (int32_t o = 0; o < world->n; o++) {
            const owner_t *owner = &world->owner[o];
            const int congested = o == world->n - 1 && t >= world->begin && t < world->end;
            kept[o] += 0.05 * (pow(costs_of_class(owners[o].class), -world->reaction) - kept[o]);
            const double mean = owner->rows * kept[o] * (0.6 + 0.4 * exp(-t / 30.0)) * (t % 41 == 40 ? 0.3 : 1);
            const double rows = floor(fmax(0, mean + sqrt(mean) * noise_normal(&noise)) + 0.5);
            double seconds = owner->fixed + owner->per_row * (congested ? world->factor : 1) * rows;
            seconds *= exp(world->noise * noise_normal(&noise));
            if (noise_uniform(&noise) < world->accident) {
                seconds += -10e-3 * log(noise_uniform(&noise));
            }
            costs_report(&costs, o, (int64_t)rows, seconds);
            course.most[o] = owners[o].class > course.most[o] ? owners[o].class : course.most[o];
            course.class[o] = owners[o].class;
        }
        if (course.first < 0 && course.class[world->n - 1] > 0) {
            course.first = t;
        }
    }
    course.changes = costs.version;
    return course;
}

static const double gbit_row = 400 / 125e6; /* seconds of 400 bytes at 1 Gbit/s */

/* ---- what must not move ---- */

static void test_noise_on_equal_links_moves_nothing(void **state)
{
    (void)state;
    const world_t worlds[] = {
        {.n = 2, .owner = {{1000, 1e-4, gbit_row}, {1000, 1e-4, gbit_row}}, .noise = 0.1},
        {.n = 3, .owner = {{100, 1e-3, gbit_row}, {1000, 1e-3, gbit_row}, {3000, 1e-3, gbit_row}}, .noise = 0.3},
        {.n = 3, .owner = {{100, 1e-4, 3e-7}, {1000, 1e-4, 3e-7}, {3000, 1e-4, 3e-7}}, .noise = 0.3, .accident = 0.1},
        {.n = 2, .owner = {{30, 1e-3, gbit_row}, {60, 1e-3, gbit_row}}, .noise = 0.2},
        {.n = 4,
         .owner = {{50, 0, gbit_row}, {500, 0, gbit_row}, {500, 0, gbit_row}, {5000, 0, gbit_row}},
         .noise = 0.2},
    };
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            world_t world = worlds[w];
            world.reaction = 1;
            assert_int_equal(world_run(&world, seed, 1000).changes, 0);
        }
    }
}

/*
 * Few rows, and far away: seconds per row are a hundred times those of the others, but no row less would be felt. A class
 * that chance has made must not feed itself.
 */
static void test_latency_is_not_taken_for_dear_rows(void **state)
{
    (void)state;
    const world_t worlds[] = {
        {.n = 3, .owner = {{3000, 1e-3, gbit_row}, {30, 1e-3, gbit_row}, {3, 1e-3, gbit_row}}, .noise = 0.1},
        {.n = 2, .owner = {{1000, 1e-3, gbit_row}, {1000, 10e-3, gbit_row}}, .noise = 0.1},
    };
    int moved = 0;
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            world_t world = worlds[w];
            world.reaction = 1;
            const course_t course = world_run(&world, seed, 1500);
            moved += course.changes > 0;
            for (int32_t o = 0; o < world.n; o++) {
                assert_int_equal(course.class[o], 0);
            }
        }
    }
    assert_true(moved <= SEEDS / 10);
}

static void test_single_accidents_are_not_news(void **state)
{
    (void)state;
    costs_owner_t owners[2];
    costs_t costs = {.n_owners = 2, .owners = owners};
    costs_open(&costs, RUDDER_OWNER_COST_MEASURED, NULL);
    for (int t = 0; t < 500; t++) {
        costs_update(&costs);
        costs_report(&costs, 0, 100 + t % 7, 1e-3);
        costs_report(&costs, 1, 100 + t % 5, t % 10 < 2 ? 1.0 : 1e-3); /* a thousand times, twice in ten */
    }
    assert_int_equal(costs.version, 0);
}

/* ---- what must ---- */

static void test_a_slow_owner_becomes_dear_and_stays(void **state)
{
    (void)state;
    for (double reaction = 0; reaction <= 2; reaction += 1) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const world_t world = {
                .n = 3,
                .owner = {{1000, 1e-4, gbit_row}, {1000, 1e-4, gbit_row}, {1000, 1e-4, 10 * gbit_row}},
                .noise = 0.1,
                .accident = 0.02,
                .reaction = reaction};
            const course_t course = world_run(&world, seed, 600);
            assert_int_equal(course.most[0], 0);
            assert_int_equal(course.most[1], 0);
            assert_true(course.first >= 0 && course.first < 20);
            assert_true(course.class[2] >= 5 && course.most[2] <= 8); /* 10 is between 2^3 and 2^3.5 */
            assert_true(course.changes <= 8);
        }
    }
}

static void test_congestion_is_seen_when_it_comes_and_when_it_goes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        world_t world = {.n = 3,
                         .owner = {{1000, 1e-4, gbit_row}, {1000, 1e-4, gbit_row}, {1000, 1e-4, gbit_row}},
                         .noise = 0.1,
                         .reaction = 1,
                         .begin = 300,
                         .end = 600,
                         .factor = 10};
        const course_t during = world_run(&world, seed, 600), after = world_run(&world, seed, 700);
        assert_true(during.first >= 300 && during.first < 320);
        assert_true(during.class[2] >= 5);
        assert_int_equal(after.class[2], 0);
        assert_int_equal(after.most[0] + after.most[1], 0);
        assert_true(after.changes <= 4);
    }
}

/* A cost that swings about the edge of two classes is in one of them. */
static void test_classes_are_left_reluctantly(void **state)
{
    (void)state;
    costs_owner_t owners[2];
    costs_t costs = {.n_owners = 2, .owners = owners};
    costs_open(&costs, RUDDER_OWNER_COST_MEASURED, NULL);
    for (int t = 0; t < 2000; t++) {
        const int64_t rows = 1000 + t * 37 % 200;
        const double factor = pow(2, 3.25) * (1 + 0.1 * sin(t / 50.0)); /* class 6.5 */
        costs_update(&costs);
        costs_report(&costs, 0, rows, (double)rows * 1e-6);
        costs_report(&costs, 1, rows, (double)rows * 1e-6 * factor);
    }
    assert_int_equal(costs.version, 1);
    assert_true(owners[1].class == 6 || owners[1].class == 7);
}

/* An owner of which nothing is heard is as the cheapest, at first and again after a long time. */
static void test_silence(void **state)
{
    (void)state;
    costs_owner_t owners[3];
    costs_t costs = {.n_owners = 3, .owners = owners};
    costs_open(&costs, RUDDER_OWNER_COST_MEASURED, NULL);
    for (int t = 0; t < 60; t++) {
        costs_update(&costs);
        costs_report(&costs, 1, 1000 + t * 37 % 200, 1e-3 * (1000 + t * 37 % 200));
        costs_report(&costs, 2, 1000 + t * 37 % 200, 1e-2 * (1000 + t * 37 % 200));
        costs_report(&costs, 0, 0, 5.0); /* no rows: no report */
    }
    assert_int_equal(owners[0].class, 0);
    const int32_t class = owners[2].class;
    const uint32_t version = costs.version;
    assert_true(class == 6 || class == 7);
    for (int t = 0; t < 500; t++) {
        costs_update(&costs);
    }
    assert_int_equal(owners[2].class, class);
    assert_int_equal(costs.version, version);
    for (int t = 0; t < 1000; t++) {
        costs_update(&costs);
    }
    assert_int_equal(owners[2].class, 0);
    assert_true(costs.version > version);
}

/* ---- edges ---- */

static void test_odd_reports_do_no_harm(void **state)
{
    (void)state;
    costs_owner_t owners[3];
    costs_t costs = {.n_owners = 3, .owners = owners};
    costs_open(&costs, RUDDER_OWNER_COST_MEASURED, NULL);
    for (int t = 0; t < 100; t++) {
        costs_report(&costs, 0, 1, 0); /* a clock that stands */
        costs_report(&costs, 1, INT64_MAX, 1e300);
        costs_report(&costs, 2, 1, 1e-300);
        costs_update(&costs);
        for (int32_t o = 0; o < 3; o++) {
            assert_in_range(owners[o].class, 0, COSTS_CLASSES - 1);
        }
    }
    assert_int_equal(owners[0].class, 0);
    costs_t none = {0};
    costs_open(&none, RUDDER_OWNER_COST_OFF, NULL);
    costs_update(&none);
    assert_int_equal(costs_class(&none, NULL, 5), 0);
    assert_int_equal(costs_class(NULL, NULL, 5), 0);
}

static void test_off_stays_off(void **state)
{
    (void)state;
    costs_owner_t owners[2];
    costs_t costs = {.n_owners = 2, .owners = owners};
    costs_open(&costs, RUDDER_OWNER_COST_OFF, NULL);
    for (int t = 0; t < 100; t++) {
        costs_report(&costs, 0, 100 + t, 1);
        costs_report(&costs, 1, 100 + t, 100);
        costs_update(&costs);
    }
    assert_int_equal(costs.version + owners[0].class + owners[1].class, 0);
}

static void test_given_costs(void **state)
{
    (void)state;
    costs_owner_t owners[5];
    costs_t costs = {.n_owners = 5, .owners = owners};
    const double given[] = {3, 6, 3.1, 30, 3e9};
    costs_open(&costs, RUDDER_OWNER_COST_GIVEN, given);
    const int32_t expected[] = {0, 2, 0, 7, COSTS_CLASSES - 1};
    for (int32_t o = 0; o < 5; o++) {
        assert_int_equal(owners[o].class, expected[o]);
    }
    costs_report(&costs, 0, 100, 1000);
    costs_update(&costs);
    assert_int_equal(owners[0].class, 0);
    for (int32_t class = 0; class < COSTS_CLASSES; class ++) {
        assert_true(fabs(costs_of_class(class) - pow(2, class * 0.5)) < 1e-12 * costs_of_class(class));
    }
}

static void test_owners_of_ids(void **state)
{
    (void)state;
    costs_owner_t owners[4];
    memset(owners, 0, sizeof owners);
    for (int32_t o = 0; o < 4; o++) {
        owners[o].class = o;
    }
    const costs_t costs = {.n_owners = 4, .owners = owners};
    const int64_t big = (int64_t)1 << 40, offset[] = {10, 20, 20, big, big + 5}; /* the second owns nothing */
    const int64_t ids[] = {10, 19, 20, big - 1, big, big + 4, 9, big + 5};
    const int32_t expected[] = {0, 0, 2, 2, 3, 3, 0, 3};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        assert_int_equal(costs_class(&costs, offset, ids[i]), expected[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noise_on_equal_links_moves_nothing),
        cmocka_unit_test(test_latency_is_not_taken_for_dear_rows),
        cmocka_unit_test(test_single_accidents_are_not_news),
        cmocka_unit_test(test_a_slow_owner_becomes_dear_and_stays),
        cmocka_unit_test(test_congestion_is_seen_when_it_comes_and_when_it_goes),
        cmocka_unit_test(test_classes_are_left_reluctantly),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_odd_reports_do_no_harm),
        cmocka_unit_test(test_off_stays_off),
        cmocka_unit_test(test_given_costs),
        cmocka_unit_test(test_owners_of_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
