/*
 * The library allocates what it needs in rudder_open() and nowhere else, so a copy of that memory is a state: put back, the
 * handle goes on from there, content, counts, windows and past decisions alike. Both ways of a decision are gone through
 * the public API on one handle; its decider is a table that says what it is told to and shows the context it was asked with.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/config.h"
#include "base/clock.h"
#include "base/error.h"
#include "decide/decide.h"
#include "trace/oracle.h"

enum {
    ORACLE_BLOCKS = 4,
    ORACLE_CLEAR = 100 /* ways are clearly apart when their difference is more than one in so many rows */
};

typedef struct oracle_block {
    void *memory;
    size_t bytes;
} oracle_block_t;

/* A handle that can be put back. */
typedef struct oracle_world {
    const oracle_setup_t *setup;
    rudder_t *handle;
    rudder_decider_t decider;
    rudder_answer_t answer;    /* what the decider says next; NO_VERDICT: what the rule says */
    rudder_decider_t rule;     /* `gain` */
    rudder_context_t *context; /* where it shows what it was asked with; NULL: nowhere */
    oracle_block_t block[ORACLE_BLOCKS];
    int n_blocks;
    size_t bytes;              /* of a state */
    unsigned char *rows, *out; /* rows of one byte: to hand over, [max_ids or capacity], and to take, [max_ids] */
} oracle_world_t;

/* ---- A handle that can be put back ------------------------------------------------------------------------------ */

static void *oracle_alloc(void *context, size_t bytes, size_t alignment)
{
    oracle_world_t *world = context;
    void *memory = NULL;
    if (world->n_blocks == ORACLE_BLOCKS || posix_memalign(&memory, alignment, bytes) != 0) {
        return NULL;
    }
    world->block[world->n_blocks++] = (oracle_block_t){.memory = memory, .bytes = bytes};
    world->bytes += bytes;
    return memory;
}

/* Rows are no part of a state: nobody reads them. */
static void *oracle_alloc_rows(void *context, size_t bytes, size_t alignment)
{
    void *memory = NULL;
    (void)context;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void oracle_free(void *context, void *memory, size_t bytes)
{
    (void)context, (void)bytes;
    free(memory);
}

static void *oracle_new_state(const oracle_world_t *world, rudder_error_t *error)
{
    void *state = malloc(world->bytes);
    if (state == NULL) {
        (void)RUDDER_FAIL(error, RUDDER_E_MEMORY, "a copy of the buffer: no %zu bytes", world->bytes);
    }
    return state;
}

static void oracle_save(const oracle_world_t *world, void *state)
{
    unsigned char *to = state;
    for (int i = 0; i < world->n_blocks; i++) {
        memcpy(to, world->block[i].memory, world->block[i].bytes);
        to += world->block[i].bytes;
    }
}

static void oracle_restore(oracle_world_t *world, const void *state)
{
    const unsigned char *from = state;
    for (int i = 0; i < world->n_blocks; i++) {
        memcpy(world->block[i].memory, from, world->block[i].bytes);
        from += world->block[i].bytes;
    }
}

static rudder_answer_t oracle_no_answer(void)
{
    return (rudder_answer_t){.size = sizeof(rudder_answer_t),
                             .verdict = RUDDER_NO_VERDICT,
                             .predict_hits = RUDDER_NO_PREDICTION,
                             .predict_rows = RUDDER_NO_PREDICTION};
}

static rudder_status_t oracle_say(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    oracle_world_t *world = self;
    if (world->context != NULL) {
        *world->context = *context;
        world->context->row_bytes = (int64_t)world->setup->config->types[0].row_bytes;
        world->context = NULL;
    }
    *answer = world->answer;
    return answer->verdict != RUDDER_NO_VERDICT ? RUDDER_OK : world->rule.decide(world->rule.self, context, answer);
}

/* The configuration of the handle: the given one with rows of one byte and the decider of this world. */
static void oracle_configure(oracle_world_t *world, const config_t *given, rudder_type_config_t *type,
                             rudder_config_t *config)
{
    *type = given->types[0];
    type->row_bytes = 1;
    *config = given->given;
    config->types = type;
    config->max_plans = 1;
    config->decider_table = &world->decider;
    config->clock = NULL;
    config->on_decision = NULL;
    config->on_message = NULL;
    config->memory = (rudder_allocator_t){.alloc = oracle_alloc, .free = oracle_free, .context = world};
    config->row_memory = (rudder_allocator_t){.alloc = oracle_alloc_rows, .free = oracle_free};
}

static rudder_status_t oracle_read(const oracle_setup_t *setup, config_t *given, rudder_error_t *error)
{
    rudder_config_t config = *setup->config;
    config.decider = NULL; /* what it is told by does not matter here */
    config.decider_table = NULL;
    RUDDER_TRY(config_read(&config, given, error));
    if (given->given.n_types != 1) {
        return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED, "oracle: expected rows of one type, found %d",
                           (int)given->given.n_types);
    }
    if (!(given->policy->flags & RUDDER_POLICY_REPLACES)) {
        return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED,
                           "oracle: expected a policy with replacements to decide, found %s", given->policy->name);
    }
    return RUDDER_OK;
}

static void oracle_add(const oracle_world_t *world, int64_t miss, int64_t fill, oracle_way_t *way)
{
    const oracle_clock_t *clock = &world->setup->clock;
    const int64_t rows = miss + fill;
    const double fetch = rows > 0 ? clock->latency + clock->row * (double)rows : 0;
    const double load = clock->sample + fetch;
    const rudder_times_t times = {
        .sample = clock->sample, .fetch = fetch, .wait = fmax(load - clock->compute, 0), .compute = clock->compute};
    (void)rudder_report_times(world->handle, &times);
    way->rows += rows;
    way->fill += fill;
    way->seconds += fmax(load, clock->compute);
}

/* Plans minibatch t and hands over its rows. verdict: what is decided in it, if anything is; NO_VERDICT: by the rule. */
static rudder_status_t oracle_step(oracle_world_t *world, int64_t t, rudder_verdict_t verdict, oracle_way_t *way,
                                   rudder_error_t *error)
{
    const trace_t *trace = world->setup->trace;
    const int64_t *fetch;
    int64_t miss, fill;
    rudder_plan_t *plan;
    world->answer.verdict = verdict;
    RUDDER_TRY(rudder_plan_begin(world->handle, 0, trace->ids + trace->offsets[t],
                                 trace->offsets[t + 1] - trace->offsets[t], &plan, error));
    rudder_plan_fetch(plan, &fetch, &miss, &fill);
    RUDDER_TRY(rudder_complete(world->handle, plan, world->rows, 1, world->out, error));
    if (fill > 0) {
        RUDDER_TRY(rudder_fill(world->handle, plan, world->rows, 1, fill, error));
    }
    oracle_add(world, miss, fill, way);
    return RUDDER_OK;
}

static void oracle_close(oracle_world_t *world)
{
    rudder_close(world->handle, 0);
    free(world->rows);
    free(world->out);
}

/* Opens the handle, with its start content. interval: minibatches between decisions. */
static rudder_status_t oracle_open(const oracle_setup_t *setup, int64_t interval, oracle_world_t *world,
                                   oracle_way_t *way, rudder_error_t *error)
{
    config_t given;
    rudder_config_t config;
    rudder_type_config_t type;
    rudder_plan_t *plan;
    const int64_t *fetch;
    int64_t miss, fill;
    memset(world, 0, sizeof *world);
    world->setup = setup;
    world->decider = (rudder_decider_t){.size = sizeof world->decider,
                                        .name = "oracle",
                                        .flags = RUDDER_DECIDER_INLINE,
                                        .self = world,
                                        .interval = interval,
                                        .decide = oracle_say};
    world->answer = oracle_no_answer();
    RUDDER_TRY(oracle_read(setup, &given, error));
    RUDDER_TRY(decide_open("gain", &given.given, NULL, &world->rule, error));
    oracle_configure(world, &given, &type, &config);
    const int64_t most = type.max_ids > type.capacity_rows ? type.max_ids : type.capacity_rows;
    world->rows = calloc((size_t)most, 1);
    world->out = malloc((size_t)type.max_ids);
    if (world->rows == NULL || world->out == NULL) {
        oracle_close(world);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "oracle: no %lld bytes", (long long)most);
    }
    rudder_status_t status = rudder_open(&config, &world->handle, error);
    if (status == RUDDER_OK) {
        status = rudder_plan_start(world->handle, 0, &plan, error);
    }
    if (status == RUDDER_OK) {
        rudder_plan_fetch(plan, &fetch, &miss, &fill);
        status = rudder_fill(world->handle, plan, world->rows, 1, fill, error);
        way->rows += fill;
        way->fill += fill;
        way->seconds += fill > 0 ? setup->clock.latency + setup->clock.row * (double)fill : 0;
    }
    if (status != RUDDER_OK) {
        oracle_close(world);
    }
    return status;
}

/* ---- A run ------------------------------------------------------------------------------------------------------ */

/* Who decides in a run. */
typedef struct oracle_who {
    int sign; /* 1: the better way, -1: the worse, 0: the decider */
    rudder_decider_t decider, fallback;
    void *memory;
    int64_t interval;
} oracle_who_t;

static void oracle_close_who(oracle_who_t *who)
{
    if (who->decider.close != NULL) {
        who->decider.close(who->decider.self);
    }
    free(who->memory);
}

static rudder_status_t oracle_open_who(const oracle_setup_t *setup, const char *name, oracle_who_t *who,
                                       rudder_error_t *error)
{
    config_t given;
    RUDDER_TRY(oracle_read(setup, &given, error));
    *who = (oracle_who_t){.sign = strcmp(name, "better") == 0  ? 1
                                  : strcmp(name, "worse") == 0 ? -1
                                                               : 0,
                          .interval = given.given.period};
    if (who->sign != 0) {
        return RUDDER_OK;
    }
    RUDDER_TRY(decide_open(given.given.fallback, &given.given, NULL, &who->fallback, error));
    who->memory = calloc(1, (size_t)decide_memory(name) + 1);
    if (who->memory == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "decider %s: no %lld bytes", name, (long long)decide_memory(name));
    }
    const rudder_status_t status = decide_open(name, &given.given, who->memory, &who->decider, error);
    if (status != RUDDER_OK) {
        oracle_close_who(who);
        return status;
    }
    who->interval = who->decider.interval > 0 ? who->decider.interval : who->interval;
    if (who->decider.prepare != NULL) {
        who->decider.prepare(who->decider.self);
    }
    return RUDDER_OK;
}

/* Fills answer and taken of a point whose ways are known. first: no question was answered yet. */
static rudder_status_t oracle_take(oracle_who_t *who, int first, oracle_point_t *point, rudder_error_t *error)
{
    point->answer = oracle_no_answer();
    if (who->sign != 0) {
        point->answer.verdict = who->sign > 0                 ? point->label
                                : point->label == RUDDER_KEEP ? RUDDER_REPLACE
                                                              : RUDDER_KEEP;
        point->taken = point->answer.verdict;
        return RUDDER_OK;
    }
    const double asked = clock_seconds();
    const rudder_status_t status = who->decider.decide(who->decider.self, &point->context, &point->answer);
    point->answer.latency_ms = 1e3 * (clock_seconds() - asked);
    if (status != RUDDER_OK && first) {
        return RUDDER_FAIL(error, status, "decider %s: no answer at minibatch %lld: %s", who->decider.name,
                           (long long)point->context.minibatch,
                           point->answer.explanation[0] != '\0' ? point->answer.explanation
                                                                : rudder_status_text(status));
    }
    if (status != RUDDER_OK) {
        point->answer.verdict = RUDDER_NO_VERDICT;
    }
    point->taken = point->answer.verdict;
    if (point->taken != RUDDER_KEEP && point->taken != RUDDER_REPLACE) {
        rudder_answer_t answer = oracle_no_answer();
        (void)who->fallback.decide(who->fallback.self, &point->context, &answer);
        point->taken = answer.verdict;
    }
    return RUDDER_OK;
}

/* One way from a state in which minibatch t, in which it is decided, comes next. */
static rudder_status_t oracle_go(oracle_world_t *world, const void *state, int64_t t, rudder_verdict_t verdict,
                                 int64_t horizon, oracle_way_t *way, rudder_error_t *error)
{
    *way = (oracle_way_t){0};
    oracle_restore(world, state);
    for (int64_t i = 0; i <= horizon; i++) {
        RUDDER_TRY(oracle_step(world, t + i, i == 0 ? verdict : RUDDER_NO_VERDICT, way, error));
    }
    return RUDDER_OK;
}

static int64_t oracle_horizon(const oracle_setup_t *setup, int64_t t)
{
    const int64_t wanted = setup->horizon > 0 ? setup->horizon : ORACLE_PERIODS * (int64_t)setup->config->period;
    const int64_t left = setup->trace->n_minibatches - 1 - t;
    return wanted < left ? wanted : left;
}

static int64_t oracle_fewest(const oracle_point_t *point)
{
    return point->keep.rows < point->replace.rows ? point->keep.rows : point->replace.rows;
}

static int64_t oracle_apart(const oracle_point_t *point)
{
    return llabs(point->keep.rows - point->replace.rows);
}

int oracle_is_clear(const oracle_point_t *point)
{
    return oracle_apart(point) * ORACLE_CLEAR > oracle_fewest(point);
}

static void oracle_count(const oracle_point_t *point, oracle_result_t *result)
{
    const oracle_way_t *taken = point->taken == RUDDER_REPLACE ? &point->replace : &point->keep;
    const int clear = oracle_is_clear(point);
    result->points++;
    result->replaced += point->taken == RUDDER_REPLACE;
    result->agreed += point->taken == point->label;
    result->agreed_seconds += point->taken == point->label_seconds;
    result->clear += clear;
    result->agreed_clear += clear && point->taken == point->label;
    result->unanswered += point->answer.verdict != point->taken;
    result->stake_rows += oracle_apart(point);
    result->regret_rows += taken->rows - oracle_fewest(point);
    result->regret_seconds += taken->seconds - fmin(point->keep.seconds, point->replace.seconds);
}

/* Minibatch t, in which something is decided. */
static rudder_status_t oracle_decide(oracle_world_t *world, void *state, int64_t t, oracle_who_t *who,
                                     oracle_point_t *point, oracle_result_t *result, rudder_error_t *error)
{
    *point = (oracle_point_t){.horizon = oracle_horizon(world->setup, t)};
    oracle_save(world, state);
    world->context = &point->context;
    RUDDER_TRY(oracle_go(world, state, t, RUDDER_KEEP, point->horizon, &point->keep, error));
    RUDDER_TRY(oracle_go(world, state, t, RUDDER_REPLACE, point->horizon, &point->replace, error));
    oracle_restore(world, state);
    point->label = point->replace.rows < point->keep.rows ? RUDDER_REPLACE : RUDDER_KEEP;
    point->label_seconds = point->replace.seconds < point->keep.seconds ? RUDDER_REPLACE : RUDDER_KEEP;
    RUDDER_TRY(oracle_take(who, result->points == result->unanswered, point, error));
    oracle_count(point, result);
    return RUDDER_OK;
}

rudder_status_t oracle_run(const oracle_setup_t *setup, const char *name,
                           void (*told)(void *context, const oracle_point_t *point), void *context,
                           oracle_result_t *out, rudder_error_t *error)
{
    oracle_world_t world;
    oracle_who_t who;
    oracle_point_t point;
    oracle_way_t way = {0};
    rudder_stats_t stats;
    oracle_result_t result = {0};
    RUDDER_TRY(oracle_open_who(setup, name, &who, error));
    rudder_status_t status = oracle_open(setup, who.interval, &world, &way, error);
    if (status != RUDDER_OK) {
        oracle_close_who(&who);
        return status;
    }
    void *state = oracle_new_state(&world, error);
    status = state == NULL ? RUDDER_E_MEMORY : RUDDER_OK;
    for (int64_t t = 0; t < setup->trace->n_minibatches && status == RUDDER_OK; t++) {
        point.taken = RUDDER_KEEP;
        if ((t + 1) % who.interval == 0) {
            status = oracle_decide(&world, state, t, &who, &point, &result, error);
            if (status == RUDDER_OK && told != NULL) {
                told(context, &point);
            }
        }
        if (status == RUDDER_OK) {
            status = oracle_step(&world, t, point.taken, &way, error);
        }
    }
    if (status == RUDDER_OK) {
        (void)rudder_stats_get(world.handle, &stats, sizeof stats);
        result.remote_rows = stats.remote_rows;
        result.hit_rows = stats.hit_rows;
        result.fetched_rows = stats.fetched_rows;
        result.fill_rows = stats.fill_rows;
        result.seconds = way.seconds;
        *out = result;
    }
    free(state);
    oracle_close(&world);
    oracle_close_who(&who);
    return status;
}

/* ---- Search ----------------------------------------------------------------------------------------------------- */

/* Decisions up to here: the state they lead to, its rows, and the rows up to the end of the horizon beyond. */
typedef struct oracle_path {
    unsigned char *state;
    int64_t rows, worth;
} oracle_path_t;

static int oracle_by_worth(const void *a, const void *b)
{
    const oracle_path_t *x = a, *y = b;
    return (x->worth > y->worth) - (x->worth < y->worth);
}

/* Goes on from a path with a decision in minibatch t: to the one in which the next is due, and on to see what it is worth. */
static rudder_status_t oracle_extend(oracle_world_t *world, const oracle_path_t *from, int64_t t,
                                     rudder_verdict_t verdict, oracle_path_t *to, rudder_error_t *error)
{
    const int64_t n = world->setup->trace->n_minibatches, next = t + world->decider.interval;
    const int64_t end = t + 1 + oracle_horizon(world->setup, t), stop = next < n ? next : n;
    oracle_way_t way = {.rows = from->rows};
    oracle_restore(world, from->state);
    for (int64_t i = t; i < stop; i++) {
        RUDDER_TRY(oracle_step(world, i, i == t ? verdict : RUDDER_NO_VERDICT, &way, error));
    }
    to->rows = way.rows;
    oracle_save(world, to->state);
    for (int64_t i = stop; i < end; i++) {
        RUDDER_TRY(oracle_step(world, i, RUDDER_NO_VERDICT, &way, error));
    }
    to->worth = way.rows;
    return RUDDER_OK;
}

/* paths[3 width]: the first n are gone on with, both ways; the best of what comes of them take their places. */
static rudder_status_t oracle_widen(oracle_world_t *world, int64_t t, int sign, int32_t width, oracle_path_t *paths,
                                    int32_t *n, rudder_error_t *error)
{
    oracle_path_t *children = paths + width;
    int32_t made = 0;
    for (int32_t i = 0; i < *n; i++) {
        oracle_path_t *keep = &children[made], *replace = &children[made + 1];
        RUDDER_TRY(oracle_extend(world, &paths[i], t, RUDDER_KEEP, keep, error));
        RUDDER_TRY(oracle_extend(world, &paths[i], t, RUDDER_REPLACE, replace, error));
        made +=
            replace->rows == keep->rows && replace->worth == keep->worth ? 1 : 2; /* most likely nothing was stale */
        keep->worth *= sign;
        replace->worth *= sign;
    }
    qsort(children, (size_t)made, sizeof *children, oracle_by_worth);
    *n = made < width ? made : width;
    for (int32_t i = 0; i < *n; i++) {
        const oracle_path_t parent = paths[i];
        paths[i] = children[i];
        children[i] = parent;
    }
    return RUDDER_OK;
}

rudder_status_t oracle_search(const oracle_setup_t *setup, int sign, int32_t width, int64_t *fetched,
                              rudder_error_t *error)
{
    oracle_world_t world;
    oracle_way_t way = {0};
    int32_t n = 1;
    int64_t t = 0;
    RUDDER_TRY(oracle_open(setup, setup->config->period, &world, &way, error));
    const int64_t n_minibatches = setup->trace->n_minibatches, period = setup->config->period;
    oracle_path_t *paths = calloc(3 * (size_t)width, sizeof *paths);
    rudder_status_t status = paths == NULL ? RUDDER_FAIL(error, RUDDER_E_MEMORY, "oracle: no memory") : RUDDER_OK;
    for (int32_t i = 0; i < 3 * width && status == RUDDER_OK; i++) {
        paths[i].state = oracle_new_state(&world, error);
        status = paths[i].state == NULL ? RUDDER_E_MEMORY : RUDDER_OK;
    }
    for (; t < n_minibatches && t < period - 1 && status == RUDDER_OK; t++) {
        status = oracle_step(&world, t, RUDDER_KEEP, &way, error);
    }
    if (status == RUDDER_OK) {
        oracle_save(&world, paths[0].state);
        paths[0].rows = way.rows;
    }
    for (; t < n_minibatches && status == RUDDER_OK; t += period) {
        status = oracle_widen(&world, t, sign, width, paths, &n, error);
    }
    if (status == RUDDER_OK) {
        *fetched = paths[0].rows;
    }
    for (int32_t i = 0; paths != NULL && i < 3 * width; i++) {
        free(paths[i].state);
    }
    free(paths);
    oracle_close(&world);
    return status;
}

rudder_status_t oracle_memory(const oracle_setup_t *setup, int32_t width, int64_t *bytes, rudder_error_t *error)
{
    config_t given;
    rudder_config_t config;
    rudder_type_config_t type;
    oracle_world_t world = {.decider = {.size = sizeof world.decider, .name = "oracle", .decide = oracle_say}};
    RUDDER_TRY(oracle_read(setup, &given, error));
    oracle_configure(&world, &given, &type, &config);
    RUDDER_TRY(rudder_memory_needed(&config, bytes, error));
    *bytes *= 2 + (width > 0 ? 3 * width - 1 : 0);
    return RUDDER_OK;
}
