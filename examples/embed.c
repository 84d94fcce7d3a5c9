/* The library in a trainer of one's own: say what is needed, fetch what is asked for, get the rows. */
#include <stdio.h>
#include <string.h>

#include "rudder/rudder.h"

enum { NODES = 5000, WIDTH = 8, CAPACITY = 500, BATCH = 400, STEPS = 100 };

static float owner[NODES][WIDTH]; /* the rows, where their owner keeps them */
static float out[BATCH][WIDTH], fetched[BATCH + CAPACITY][WIDTH];

/* Your transport goes here: MPI, a key-value store, anything that brings rows by id. */
static void fetch(const int64_t *ids, int64_t n, float (*rows)[WIDTH])
{
    for (int64_t i = 0; i < n; i++) {
        memcpy(rows[i], owner[ids[i]], sizeof rows[i]);
    }
}

/* The remote ids that a minibatch needs; small ids are hot. */
static void sample(uint32_t *state, int64_t *ids)
{
    for (int i = 0; i < BATCH; i++) {
        *state = *state * 1664525u + 1013904223u;
        const int64_t r = *state >> 8;
        ids[i] = r % (1 + r % NODES);
    }
}

int main(void)
{
    for (int i = 0; i < NODES * WIDTH; i++) {
        owner[i / WIDTH][i % WIDTH] = (float)i;
    }
    uint32_t state = 1;
    int wrong = 0;
    /* README: from here */
    rudder_type_config_t type = {
        .row_bytes = sizeof owner[0], .capacity_rows = CAPACITY, .max_ids = BATCH, .max_tracked = NODES};
    rudder_config_t config;
    rudder_config_init(&config, sizeof config);
    config.n_types = 1;
    config.types = &type;
    config.policy = "mix";
    rudder_t *r;
    rudder_error_t error;
    if (rudder_open(&config, &r, &error) != RUDDER_OK) {
        return fprintf(stderr, "%s\n", error.text), 1;
    }
    for (int step = 0; step < STEPS; step++) {
        int64_t ids[BATCH], misses, fills;
        const int64_t *needed;
        rudder_plan_t *plan;
        sample(&state, ids);
        if (rudder_plan_begin(r, 0, ids, BATCH, &plan, &error) != RUDDER_OK) {
            return fprintf(stderr, "%s\n", error.text), 1;
        }
        rudder_plan_fetch(plan, &needed, &misses, &fills);
        fetch(needed, misses + fills, fetched);
        rudder_complete(r, plan, fetched, sizeof fetched[0], out, &error);
        if (fills > 0) { /* may also be done later */
            rudder_fill(r, plan, fetched[misses], sizeof fetched[0], fills, &error);
        }
        /* out[i] is now the row of ids[i]: train on it */
        /* README: to here */
        for (int i = 0; i < BATCH; i++) {
            wrong += memcmp(out[i], owner[ids[i]], sizeof out[i]) != 0;
        }
    }
    rudder_stats_t stats;
    rudder_stats_get(r, &stats, sizeof stats);
    rudder_close(r, 0);
    printf("%lld of %lld remote rows came from the buffer, %d rows were wrong\n", (long long)stats.hit_rows,
           (long long)stats.remote_rows, wrong);
    return wrong != 0 || stats.hit_rows == 0;
}
