/*
 * A decider of one's own, and a buffer that it steers: the rows that are needed move on, and it replaces as long as the
 * hit rate is well below the best that was seen. Only the public headers are used; rudder_open() gets it as a table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rudder/rudder.h"

enum { HALO = 10000, CAPACITY = 2500, BATCH = 800, STEPS = 480, WIDTH = 16 };

/* ---- the decider: all of it ---- */

typedef struct patience {
    double best; /* hit rate of the best window */
} patience_t;

static rudder_status_t patience_decide(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    patience_t *patience = self;
    if (context->hit_rate > patience->best) {
        patience->best = context->hit_rate;
    }
    const int well = patience->best > 0 && context->hit_rate >= .9 * patience->best;
    answer->verdict = well ? RUDDER_KEEP : RUDDER_REPLACE;
    snprintf(answer->explanation, sizeof answer->explanation, "hit rate %.2f, best %.2f", context->hit_rate,
             patience->best);
    return RUDDER_OK;
}

static patience_t patience;
static const rudder_decider_t decider = {.size = sizeof decider,
                                         .name = "patience",
                                         .flags = RUDDER_DECIDER_INLINE, /* takes no time: asked in our own thread */
                                         .self = &patience,
                                         .decide = patience_decide};

/* ---- a host: its remote rows stand in an array, where a trainer would fetch them from their owners ---- */

static float remote[HALO][WIDTH];

static void fetch(const int64_t *ids, int64_t n, float (*rows)[WIDTH])
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(rows[i], remote[ids[i]], sizeof rows[i]);
    }
}

/* The ids of a minibatch: from a window over the halo that moves on. */
static void choose(int step, int64_t *ids)
{
    for (int i = 0; i < BATCH; i++) {
        ids[i] = (rand() % 3000 + step / 160 * 3000) % HALO;
    }
}

static void tell(void *context, const rudder_decision_t *decision)
{
    (void)context;
    if (decision->outcome.status != RUDDER_KEPT) {
        printf("minibatch %4lld: %-13s %5lld rows   (%s)\n", (long long)decision->applied_minibatch,
               rudder_outcome_name(decision->outcome.status), (long long)decision->outcome.replaced_rows,
               decision->answer.explanation);
    }
}

static int train(rudder_t *handle, rudder_error_t *error)
{
    static float rows[BATCH + CAPACITY][WIDTH], out[BATCH][WIDTH];
    for (int step = 0; step < STEPS; step++) {
        int64_t ids[BATCH], n_miss, n_fill;
        const int64_t *needed;
        rudder_plan_t *plan;
        choose(step, ids);
        if (rudder_plan_begin(handle, 0, ids, BATCH, &plan, error) != RUDDER_OK) {
            return 0;
        }
        rudder_plan_fetch(plan, &needed, &n_miss, &n_fill);
        fetch(needed, n_miss + n_fill, rows);
        if (rudder_complete(handle, plan, rows, sizeof rows[0], out, error) != RUDDER_OK ||
            (n_fill > 0 && rudder_fill(handle, plan, rows[n_miss], sizeof rows[0], n_fill, error) != RUDDER_OK)) {
            return 0;
        }
        for (int i = 0; i < BATCH; i++) {
            if (memcmp(out[i], remote[ids[i]], sizeof out[i]) != 0) {
                snprintf(error->text, sizeof error->text, "minibatch %d: wrong row for id %lld", step,
                         (long long)ids[i]);
                return 0;
            }
        }
    }
    return 1;
}

int main(void)
{
    const rudder_type_config_t type = {
        .row_bytes = sizeof remote[0], .capacity_rows = CAPACITY, .max_ids = BATCH, .max_tracked = HALO};
    rudder_config_t config;
    rudder_stats_t stats = {0};
    rudder_error_t error = {0};
    rudder_t *handle = NULL;
    for (int i = 0; i < HALO * WIDTH; i++) {
        remote[i / WIDTH][i % WIDTH] = (float)i;
    }
    rudder_config_init(&config, sizeof config);
    config.n_types = 1;
    config.types = &type;
    config.policy = "score";
    config.start = "empty";
    config.alpha = .1; /* rows that are not hit grow stale fast */
    config.minibatches = STEPS;
    config.decider_table = &decider;
    config.on_decision = tell;
    if (rudder_open(&config, &handle, &error) != RUDDER_OK || !train(handle, &error)) {
        fprintf(stderr, "own_decider: %s\n", error.text);
        rudder_close(handle, 0);
        return 1;
    }
    rudder_stats_get(handle, &stats, sizeof stats);
    rudder_close(handle, 0);
    printf("asked %lld times, replaced %lld times; hit rate %.1f %%\n", (long long)stats.asked,
           (long long)stats.replaced, 100 * (double)stats.hit_rows / (double)stats.remote_rows);
    return stats.replaced > 0 && stats.hit_rows > 0 ? 0 : 1;
}
