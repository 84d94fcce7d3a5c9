/*
 * The loader. Ranks fetch rows together (the exchange is collective): each round moves a bounded number of rows and
 * ranks go on until none has more, so that a rank with a large fill does not hold up the others' misses.
 */
#include "train/loader.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "train/lap.h"
#include "train/ring.h"

/* Rows of one round: large enough that a usual minibatch takes one, small enough that buffers stay small. */
enum { LOADER_ROUND_BYTES = 16 << 20, LOADER_ALIGNMENT = 64 };

/* Memory that grows and stays. */
typedef struct space {
    void *data;
    size_t bytes;
} space_t;

struct loader {
    loader_config_t config;
    ring_t ring;
    loaded_t *slot;
    pthread_t thread;
    rudder_status_t status; /* of the thread; read after the ring has ended */
    rudder_error_t error;

    ahead_t *ahead;
    int64_t next; /* the minibatch that is loaded next, over all epochs */
    space_t remote_rows, miss_rows, fill_rows;
    size_t row_bytes;
    int64_t round_rows, start_rows;
    int64_t *owner_rows;   /* [ranks] of the minibatch under way, and what they took, if that is measured */
    double *owner_seconds; /* [ranks] */
    int64_t timed;         /* minibatches whose times were recorded */
    double mark;
    train_times_t now, total; /* since the last hand-over; since the start */
};

int64_t loader_most_inputs(const parts_t *parts, int64_t seeds, int32_t n_layers, const int32_t *fanout)
{
    int64_t most = seeds;
    for (int32_t l = n_layers - 1; l >= 0; l--) {
        if (most > parts->n_nodes / (1 + (int64_t)fanout[l])) {
            return parts->n_nodes;
        }
        most *= 1 + (int64_t)fanout[l];
    }
    return most;
}

int32_t loader_slots(const loader_config_t *config)
{
    return config->threaded ? config->depth + 1 : 1;
}

/* Rows of one round of the exchange. */
static int64_t loader_round_rows(int64_t row_bytes)
{
    return LOADER_ROUND_BYTES / row_bytes + 1;
}

/* A little more than needed, so that it is made anew a few times only. */
static int64_t loader_room(int64_t inputs)
{
    return inputs + inputs / 16;
}

int64_t loader_most_memory(int32_t slots, int64_t inputs, int64_t capacity_rows, int64_t row_bytes)
{
    const int64_t round = loader_round_rows(row_bytes), fill = capacity_rows < round ? capacity_rows : round;
    return (slots * loader_room(inputs) + 2 * inputs + fill) * row_bytes; /* minibatches, remote and missed rows */
}

/* At least `bytes`, contents lost. Aligned for vector loads. */
static rudder_status_t loader_space(space_t *space, size_t bytes, rudder_error_t *error)
{
    if (bytes <= space->bytes) {
        return RUDDER_OK;
    }
    free(space->data);
    *space = (space_t){0};
    if (posix_memalign(&space->data, LOADER_ALIGNMENT, bytes) != 0) {
        space->data = NULL;
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "the loader needs %zu bytes more", bytes);
    }
    space->bytes = bytes;
    return RUDDER_OK;
}

rudder_status_t loader_open(const loader_config_t *config, loader_t **out, rudder_error_t *error)
{
    loader_t *loader = calloc(1, sizeof *loader);
    if (loader == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the loader");
    }
    loader->config = *config;
    rudder_status_t status = ring_open(loader_slots(config), &loader->ring, error);
    if (status != RUDDER_OK) {
        free(loader);
        return status;
    }
    loader->row_bytes = (size_t)config->ahead.parts->n_feat * sizeof(float);
    loader->round_rows = loader_round_rows((int64_t)loader->row_bytes);
    loader->slot = calloc((size_t)loader_slots(config), sizeof *loader->slot);
    const size_t ranks = (size_t)config->ahead.parts->n_parts;
    loader->owner_rows = calloc(ranks, sizeof *loader->owner_rows);
    loader->owner_seconds = calloc(ranks, sizeof *loader->owner_seconds);
    status = loader->slot == NULL || loader->owner_rows == NULL || loader->owner_seconds == NULL
                 ? RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the loader")
                 : ahead_open(&config->ahead, &loader->ahead, error);
    if (status != RUDDER_OK) {
        loader_close(loader);
        return status;
    }
    *out = loader;
    return RUDDER_OK;
}

void loader_close(loader_t *loader)
{
    if (loader == NULL) {
        return;
    }
    for (int32_t i = 0; loader->slot != NULL && i < loader_slots(&loader->config); i++) {
        sampled_free(&loader->slot[i].sampled);
        free(loader->slot[i].x);
    }
    free(loader->slot);
    free(loader->owner_rows);
    free(loader->owner_seconds);
    ahead_close(loader->ahead);
    space_t *spaces[] = {&loader->remote_rows, &loader->miss_rows, &loader->fill_rows};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        free(spaces[i]->data);
    }
    ring_close(&loader->ring);
    free(loader);
}

/* The owner's side of an exchange: rows of owned features. */
static void loader_serve(void *context, const int64_t *ids, int64_t n, void *rows)
{
    const loader_t *loader = context;
    const char *feat = (const char *)loader->config.ahead.part->feat;
    const int64_t begin = loader->config.ahead.part->begin;
    for (int64_t i = 0; i < n; i++) {
        memcpy((char *)rows + (size_t)i * loader->row_bytes, feat + (size_t)(ids[i] - begin) * loader->row_bytes,
               loader->row_bytes);
    }
}

/* Memory for the minibatch's rows. */
static rudder_status_t loader_grow_x(loader_t *loader, loaded_t *loaded, rudder_error_t *error)
{
    const int64_t inputs = loaded->sampled.minibatch.n_input, width = loader->config.ahead.parts->n_feat;
    if (inputs * width > loaded->x_capacity) {
        space_t space = {0};
        free(loaded->x);
        loaded->x = NULL;
        loaded->x_capacity = 0;
        const int64_t room = loader_room(inputs) * width;
        RUDDER_TRY(loader_space(&space, (size_t)room * sizeof(float), error));
        loaded->x = space.data;
        loaded->x_capacity = room;
    }
    return RUDDER_OK;
}

/* All rows of the minibatch into x: owned ones from the mapped features, remote ones from where the buffer put them. */
static rudder_status_t loader_gather(loader_t *loader, loaded_t *loaded, rudder_error_t *error)
{
    const size_t row = loader->row_bytes;
    const minibatch_t *minibatch = &loaded->sampled.minibatch;
    const int64_t *input = minibatch->input, n = minibatch->n_input;
    const part_t *part = loader->config.ahead.part;
    const char *feat = (const char *)part->feat, *remote = loader->remote_rows.data;
    RUDDER_TRY(loader_grow_x(loader, loaded, error));
    char *x = (char *)loaded->x;
    int64_t r = 0;
    for (int64_t i = 0; i < n; i++) {
        if (part_owns(part, input[i])) {
            memcpy(x + (size_t)i * row, feat + (size_t)(input[i] - part->begin) * row, row);
        } else {
            memcpy(x + (size_t)i * row, remote + (size_t)r++ * row, row);
        }
    }
    return RUDDER_OK;
}

/* The misses are here: completes the plan and, for a minibatch, hands it over. */
static rudder_status_t loader_complete(loader_t *loader, rudder_plan_t *plan, loaded_t *loaded, rudder_error_t *error)
{
    const int64_t n_remote = loaded != NULL ? loaded->sampled.n_remote : 0;
    RUDDER_TRY(loader_space(&loader->remote_rows, (size_t)n_remote * loader->row_bytes, error));
    RUDDER_TRY(rudder_complete(loader->config.ahead.handle, plan, loader->miss_rows.data, loader->row_bytes,
                               loader->remote_rows.data, error));
    lap(&loader->mark, &loader->now.complete);
    if (loaded != NULL) {
        RUDDER_TRY(loader_gather(loader, loaded, error));
        lap(&loader->mark, &loader->now.gather);
        loaded->times = loader->now;
        train_times_add(&loader->total, &loader->now, 1);
        loader->now = (train_times_t){0};
        ring_fill(&loader->ring);
    }
    return RUDDER_OK;
}

static void loader_count(const loader_t *loader, loaded_t *loaded, int64_t n_miss, int64_t n_fill)
{
    const sampled_t *sampled = &loaded->sampled;
    loaded->counts = (train_counts_t){.minibatches = 1,
                                      .seeds = sampled->minibatch.n_seeds,
                                      .input = sampled->minibatch.n_input,
                                      .remote = sampled->n_remote,
                                      .hit = sampled->n_remote - n_miss,
                                      .miss = n_miss,
                                      .fill = n_fill,
                                      .bytes = (n_miss + n_fill) * (int64_t)loader->row_bytes,
                                      .window = sampled->window,
                                      .most_window = sampled->window,
                                      .cut = sampled->cut};
}

/* Before a fetch: whose rows it brings. The time of what was exchanged before does not count. */
static void loader_count_owners(loader_t *loader, const int64_t *ids, int64_t n)
{
    const parts_t *parts = loader->config.ahead.parts;
    exchange_seconds(loader->config.exchange, loader->owner_seconds);
    memset(loader->owner_rows, 0, (size_t)parts->n_parts * sizeof *loader->owner_rows);
    for (int64_t i = 0; i < n; i++) {
        loader->owner_rows[parts_owner(parts, ids[i])]++;
    }
}

/* After it: what they took. */
static rudder_status_t loader_report_owners(loader_t *loader)
{
    exchange_seconds(loader->config.exchange, loader->owner_seconds);
    for (int32_t p = 0; p < loader->config.ahead.parts->n_parts; p++) {
        if (loader->owner_rows[p] > 0) {
            RUDDER_TRY(
                rudder_report_fetch(loader->config.ahead.handle, p, loader->owner_rows[p], loader->owner_seconds[p]));
        }
    }
    return RUDDER_OK;
}

/* Fetches what a plan asks for: misses in as many rounds as they need, then fill rows while the trainer goes on. */
static rudder_status_t loader_fetch(loader_t *loader, rudder_plan_t *plan, loaded_t *loaded, rudder_error_t *error)
{
    const int64_t *ids;
    int64_t n_miss, n_fill, done = 0;
    rudder_plan_fetch(plan, &ids, &n_miss, &n_fill);
    const int64_t n = n_miss + n_fill;
    const int64_t fill_round = n_fill < loader->round_rows ? n_fill : loader->round_rows;
    RUDDER_TRY(loader_space(&loader->miss_rows, (size_t)n_miss * loader->row_bytes, error));
    RUDDER_TRY(loader_space(&loader->fill_rows, (size_t)fill_round * loader->row_bytes, error));
    if (loaded != NULL) {
        loader_count(loader, loaded, n_miss, n_fill);
    } else {
        loader->start_rows += n;
    }
    if (loader->config.measure) {
        loader_count_owners(loader, ids, n);
    }
    int again = 1, completed = 0;
    while (again) {
        const int missing = done < n_miss;
        const int64_t left = (missing ? n_miss : n) - done;
        const int64_t count = left < loader->round_rows ? left : loader->round_rows;
        char *rows = missing ? (char *)loader->miss_rows.data + (size_t)done * loader->row_bytes
                             : (char *)loader->fill_rows.data;
        RUDDER_TRY(exchange_rows_more(loader->config.exchange, count > 0 ? ids + done : NULL, count, loader->row_bytes,
                                      loader_serve, loader, rows, done + count < n, &again, error));
        lap(&loader->mark, &loader->now.exchange);
        done += count;
        if (!completed && done >= n_miss) {
            RUDDER_TRY(loader_complete(loader, plan, loaded, error));
            completed = 1;
        }
        if (!missing && count > 0) {
            RUDDER_TRY(rudder_fill(loader->config.ahead.handle, plan, rows, loader->row_bytes, count, error));
            lap(&loader->mark, &loader->now.complete);
        }
    }
    return loader->config.measure ? loader_report_owners(loader) : RUDDER_OK;
}

/* The times of the minibatch that a slot holds, or held last: known when the compute thread has released it. */
static rudder_status_t loader_record_times(loader_t *loader, const loaded_t *loaded, rudder_error_t *error)
{
    const train_times_t *loading = &loaded->times;
    const trace_times_t times = {.sample = (float)loaded->sampled.seconds,
                                 .plan = (float)loading->plan,
                                 .exchange = (float)loading->exchange,
                                 .complete = (float)loading->complete,
                                 .gather = (float)loading->gather,
                                 .wait = (float)loaded->wait,
                                 .compute = (float)loaded->compute};
    return record_times(loader->config.record, loader->timed++, &times, error);
}

/* Records what was planned. */
static rudder_status_t loader_record(loader_t *loader, const rudder_plan_t *plan, const loaded_t *loaded,
                                     rudder_error_t *error)
{
    const int64_t *ids;
    trace_minibatch_t minibatch = {.ids = loaded->sampled.remote,
                                   .n = loaded->sampled.n_remote,
                                   .announced = (int32_t)loaded->sampled.window,
                                   .times = {NAN, NAN, NAN, NAN, NAN, NAN, NAN}};
    rudder_plan_fetch(plan, &ids, &minibatch.miss, &minibatch.fill);
    return record_add(loader->config.record, &minibatch, error);
}

/* Loads the next minibatch into a free slot of the ring. */
static rudder_status_t loader_step(loader_t *loader, rudder_error_t *error)
{
    loaded_t *loaded = &loader->slot[ring_free_slot(&loader->ring)];
    lap(&loader->mark, &loader->now.idle);
    if (loader->next >= loader_slots(&loader->config)) {
        RUDDER_TRY(loader_record_times(loader, loaded, error));
    }
    rudder_times_t told = {.wait = loaded->wait, .compute = loaded->compute};
    RUDDER_TRY(ahead_next(loader->ahead, &loaded->sampled, &loader->mark, &loader->now, error));
    told.sample = loaded->sampled.seconds;

    rudder_plan_t *plan;
    RUDDER_TRY(rudder_plan_begin(loader->config.ahead.handle, 0, loaded->sampled.remote, loaded->sampled.n_remote,
                                 &plan, error));
    lap(&loader->mark, &loader->now.plan);
    RUDDER_TRY(loader_record(loader, plan, loaded, error));
    lap(&loader->mark, &loader->now.gather);
    const double fetch_begin = loader->mark;
    loader->next++;
    RUDDER_TRY(loader_fetch(loader, plan, loaded, error));
    told.fetch = loader->mark - fetch_begin;
    return rudder_report_times(loader->config.ahead.handle, &told);
}

static void *loader_run(void *context)
{
    loader_t *loader = context;
    while (loader->next < loader->config.ahead.minibatches && loader->status == RUDDER_OK) {
        loader->status = loader_step(loader, &loader->error);
    }
    ring_end(&loader->ring);
    return NULL;
}

rudder_status_t loader_start(loader_t *loader, rudder_error_t *error)
{
    rudder_plan_t *plan;
    loader->mark = clock_seconds();
    RUDDER_TRY(rudder_plan_start(loader->config.ahead.handle, 0, &plan, error));
    lap(&loader->mark, &loader->now.plan);
    RUDDER_TRY(loader_fetch(loader, plan, NULL, error));
    if (loader->config.threaded) {
        const int status = pthread_create(&loader->thread, NULL, loader_run, loader);
        if (status != 0) {
            return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "the loader thread: %s", strerror(status));
        }
    }
    return RUDDER_OK;
}

rudder_status_t loader_next(loader_t *loader, loaded_t **loaded, rudder_error_t *error)
{
    *loaded = NULL;
    if (!loader->config.threaded) {
        loader->mark = clock_seconds();
        if (loader->next == loader->config.ahead.minibatches) {
            return RUDDER_OK;
        }
        RUDDER_TRY(loader_step(loader, error));
    }
    const int32_t slot = ring_take(&loader->ring);
    if (slot >= 0) {
        *loaded = &loader->slot[slot];
        return RUDDER_OK;
    }
    if (loader->status != RUDDER_OK && error != NULL) {
        *error = loader->error;
    }
    return loader->status;
}

void loader_release(loader_t *loader)
{
    ring_release(&loader->ring);
}

rudder_status_t loader_finish(loader_t *loader, train_times_t *times, loader_sums_t *sums, rudder_error_t *error)
{
    const int32_t slots = loader_slots(&loader->config);
    if (loader->config.threaded) {
        pthread_join(loader->thread, NULL);
    }
    while (loader->timed < loader->next) {
        RUDDER_TRY(loader_record_times(loader, &loader->slot[loader->timed % slots], error));
    }
    train_times_add(&loader->total, &loader->now, 1);
    loader->now = (train_times_t){0};
    *times = loader->total;
    times->wall = times->sample + times->plan + times->exchange + times->complete + times->gather + times->idle;
    sums->window_bytes = ahead_most_bytes(loader->ahead);
    sums->bytes =
        (int64_t)(loader->remote_rows.bytes + loader->miss_rows.bytes + loader->fill_rows.bytes) + sums->window_bytes;
    for (int32_t i = 0; i < slots; i++) {
        sums->bytes += loader->slot[i].x_capacity * (int64_t)sizeof(float);
    }
    sums->start_rows = loader->start_rows;
    return RUDDER_OK;
}
