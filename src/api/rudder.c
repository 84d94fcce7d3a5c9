/*
 * The public functions: buffers of all row types, the policy of each, one controller and its decider, behind one handle.
 * Here live the rules between plans: they complete oldest first and are aborted newest first, and a minibatch of the
 * handle ends when every type was planned once (or one comes again), which is when the controller counts it.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/config.h"
#include "base/board.h"
#include "base/error.h"
#include "buffer/buffer.h"
#include "control/controller.h"
#include "decide/decide.h"

/* The minibatch under way and the replacement under way, over all types. Saved by each plan, for rudder_abort(). */
typedef struct rudder_progress {
    uint32_t planned; /* types planned in this minibatch */
    uint32_t due;     /* types that replace at their next plan */
    int64_t minibatches;
    int64_t remote, hit, miss; /* of this minibatch */
    int64_t replaced, filled;  /* rows that entered by the replacement under way */
} rudder_progress_t;

/* What other threads may read: fields of 8 bytes only. */
typedef struct rudder_sums {
    int64_t minibatches, aborted, remote, hit, miss, fill, fetched_bytes, untracked, entered, announced, in_buffer,
        window;
} rudder_sums_t;

enum { RUDDER_SUMS_WORDS = sizeof(rudder_sums_t) / sizeof(uint64_t) };

struct rudder_plan {
    buffer_plan_t buffer;
    rudder_t *handle;
    int32_t type;
    int open, verdict; /* verdict: the controller ordered a replacement in this plan */
    int64_t entered;
    rudder_progress_t before;
    controller_mark_t mark;
};

struct rudder {
    pid_t process;
    int32_t n_types, max_plans;
    uint32_t all_types;
    rudder_nodes_t nodes[RUDDER_MAX_TYPES];
    int64_t owned_begin[RUDDER_MAX_TYPES], owned_end[RUDDER_MAX_TYPES];
    int policy_open[RUDDER_MAX_TYPES];
    costs_t costs; /* of rows, by owner; no owners: off */

    rudder_plan_t *plans; /* [max_plans] */
    rudder_plan_t **open; /* [max_plans]: the open ones, oldest first */
    int32_t n_open;

    controller_t *controller;
    rudder_decider_t decider, fallback;
    int decider_open;
    rudder_progress_t progress;
    int unreported; /* a replacement was ordered and the controller has not heard what came of it */

    rudder_sums_t sums;
    _Atomic uint64_t published, published_sums[RUDDER_SUMS_WORDS];

    rudder_allocator_t memory, row_memory;
    size_t bytes, row_bytes[RUDDER_MAX_TYPES];
    int64_t all_bytes, capacity;
};

const char *rudder_version(void)
{
    return RUDDER_VERSION;
}

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

/* Large pieces lie on huge pages where the system has them: look-ups are random reads all over. */
static void *rudder_default_alloc(void *context, size_t bytes, size_t alignment)
{
    enum { HUGE = 2 << 20 };
    void *memory = NULL;
    (void)context;
    const int large = bytes >= 2 * (size_t)HUGE;
    if (posix_memalign(&memory, large ? HUGE : alignment, bytes) != 0) {
        return NULL;
    }
    if (large) {
        (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a wish, not a need */
    }
    return memory;
}

static void rudder_default_free(void *context, void *memory, size_t bytes)
{
    (void)context, (void)bytes;
    free(memory);
}

static buffer_config_t rudder_buffer_config(const config_t *config, int32_t type)
{
    const rudder_type_config_t *t = &config->types[type];
    return (buffer_config_t){.row_bytes = t->row_bytes,
                             .capacity = t->capacity_rows,
                             .max_ids = t->max_ids,
                             .max_tracked = t->max_tracked,
                             .max_announced = t->max_announced,
                             .id_end = t->id_end,
                             .max_plans = config->given.max_plans,
                             .period = config->given.period,
                             .alpha = config->given.alpha,
                             .policy = config->policy,
                             .window = config->window,
                             .costs = config->given.owner_cost != RUDDER_OWNER_COST_OFF};
}

static controller_config_t rudder_controller_config(const config_t *config)
{
    const rudder_config_t *given = &config->given;
    controller_config_t c = {.mode = given->mode,
                             .period = given->period,
                             .minibatches = given->minibatches,
                             .deadline_ms = given->deadline_ms,
                             .late_after = given->late_after,
                             .replaces = (config->policy->flags & RUDDER_POLICY_REPLACES) != 0,
                             .decider = &config->decider,
                             .row_bytes = (int64_t)config->types[0].row_bytes,
                             .facts = given->facts,
                             .on_decision = given->on_decision,
                             .on_message = given->on_message,
                             .clock = given->clock,
                             .callback_context = given->callback_context};
    for (int32_t i = 0; i < given->n_types; i++) {
        c.capacity += config->types[i].capacity_rows;
    }
    return c;
}

/* The pieces of the block that are only needed while opening. */
typedef struct rudder_pieces {
    void *controller, *decider;
    size_t controller_bytes, decider_bytes;
    int64_t *owner_offset[RUDDER_MAX_TYPES]; /* [n_owners + 1] */
} rudder_pieces_t;

static void *rudder_take(arena_t *arena, size_t bytes, size_t *taken)
{
    *taken = bytes;
    return arena_take(arena, bytes, 1);
}

/* Cuts the block: the handle first. handle: NULL while measuring. */
static void rudder_layout(arena_t *arena, const config_t *config, rudder_t *handle, rudder_pieces_t *pieces)
{
    const controller_config_t controller = rudder_controller_config(config);
    int64_t max_ids = 0, max_capacity = 0;
    arena_take(arena, 1, sizeof *handle);
    for (int32_t i = 0; i < config->given.n_types; i++) {
        const buffer_config_t buffer = rudder_buffer_config(config, i);
        buffer_layout(arena, &buffer, handle == NULL ? NULL : &handle->nodes[i]);
        max_ids = buffer.max_ids > max_ids ? buffer.max_ids : max_ids;
        max_capacity = buffer.capacity > max_capacity ? buffer.capacity : max_capacity;
        const size_t offsets = config->given.n_owners > 0 ? (size_t)config->given.n_owners + 1 : 0;
        pieces->owner_offset[i] = arena_take(arena, offsets, sizeof(int64_t));
    }
    costs_layout(arena, config->given.n_owners, handle == NULL ? NULL : &handle->costs);
    rudder_plan_t *plans = arena_take(arena, (size_t)config->given.max_plans, sizeof *plans);
    rudder_plan_t **open = arena_take(arena, (size_t)config->given.max_plans, sizeof(rudder_plan_t *));
    for (int32_t i = 0; i < config->given.max_plans; i++) {
        if (handle != NULL) {
            plans[i] = (rudder_plan_t){.handle = handle};
        }
        buffer_plan_layout(arena, config->policy, max_ids, max_capacity, handle == NULL ? NULL : &plans[i].buffer);
    }
    pieces->controller = rudder_take(arena, (size_t)controller_memory(&controller), &pieces->controller_bytes);
    const int64_t decider_bytes = config->decider_name == NULL ? 0 : decide_memory(config->decider_name);
    pieces->decider = rudder_take(arena, (size_t)decider_bytes, &pieces->decider_bytes);
    if (handle != NULL) {
        handle->plans = plans;
        handle->open = open;
    }
}

/* All bytes: one block, and one of rows for each type that has any. */
static rudder_status_t rudder_measure(const config_t *config, size_t *bytes, int64_t *all_bytes, rudder_error_t *error)
{
    arena_t arena = {0};
    rudder_pieces_t pieces;
    rudder_layout(&arena, config, NULL, &pieces);
    int64_t all = 0;
    int overflow = arena.overflow || __builtin_add_overflow(all, arena.used, &all);
    for (int32_t i = 0; i < config->given.n_types; i++) {
        const buffer_config_t buffer = rudder_buffer_config(config, i);
        overflow |= __builtin_add_overflow(all, buffer_row_bytes(&buffer), &all);
    }
    if (overflow) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "memory: expected less than 2^63 bytes, found more");
    }
    *bytes = arena.used;
    *all_bytes = all;
    return RUDDER_OK;
}

rudder_status_t rudder_memory_needed(const rudder_config_t *given, int64_t *bytes, rudder_error_t *error)
{
    config_t config;
    size_t block;
    if (given == NULL || bytes == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "expected a configuration and where to put the bytes, found NULL");
    }
    RUDDER_TRY(config_read(given, &config, error));
    return rudder_measure(&config, &block, bytes, error);
}

/* ---- Opening and closing ---------------------------------------------------------------------------------------- */

static void rudder_publish(rudder_t *handle)
{
    handle->sums.in_buffer = 0;
    for (int32_t i = 0; i < handle->n_types; i++) {
        handle->sums.in_buffer += handle->nodes[i].capacity - handle->nodes[i].free;
    }
    handle->sums.window = announced_to_come(&handle->nodes[0].announced);
    board_publish(&handle->published, handle->published_sums, &handle->sums, sizeof handle->sums);
}

static rudder_status_t rudder_check_halo(const rudder_type_config_t *type, rudder_error_t *error)
{
    const int64_t last = config_last_id(type->id_end);
    for (int64_t i = 0; i < type->n_halo; i++) {
        const int64_t id = type->halo[i];
        if (id < 0 || id > last) {
            return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "halo[%lld]: expected an id of 0 to %lld, found %lld",
                               (long long)i, (long long)last, (long long)id);
        }
        if (id >= type->owned_begin && id < type->owned_end) {
            return RUDDER_FAIL(error, RUDDER_E_OWNED,
                               "halo[%lld]: expected a remote id, found %lld, owned are %lld to %lld", (long long)i,
                               (long long)id, (long long)type->owned_begin, (long long)type->owned_end - 1);
        }
    }
    return RUDDER_OK;
}

static rudder_status_t rudder_check_weights(const rudder_type_config_t *type, rudder_error_t *error)
{
    for (int64_t i = 0; i < type->n_halo; i++) {
        if (!(type->start_weight[i] >= 0)) {
            return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "start_weight[%lld]: expected 0 or more, found %g",
                               (long long)i, type->start_weight[i]);
        }
    }
    return RUDDER_OK;
}

static rudder_status_t rudder_open_policy(rudder_t *handle, const config_t *config, int32_t i, rudder_error_t *error)
{
    const buffer_config_t buffer = rudder_buffer_config(config, i);
    rudder_nodes_t *nodes = &handle->nodes[i];
    if (config->policy->open != NULL) {
        const rudder_policy_setup_t setup = buffer_setup(&buffer, nodes);
        const rudder_status_t status = config->policy->open(nodes->policy_self, &setup);
        if (status != RUDDER_OK) {
            return RUDDER_FAIL(error, status, "policy %s: cannot be opened: %s", config->policy->name,
                               rudder_status_text(status));
        }
    }
    handle->policy_open[i] = 1;
    return RUDDER_OK;
}

static rudder_status_t rudder_open_type(rudder_t *handle, const config_t *config, const rudder_pieces_t *pieces,
                                        int32_t i, rudder_error_t *error)
{
    const rudder_type_config_t *type = &config->types[i];
    const buffer_halo_t halo = {
        .id = type->halo, .degree = type->halo_degree, .weight = type->start_weight, .n = type->n_halo};
    const buffer_config_t buffer = rudder_buffer_config(config, i);
    rudder_nodes_t *nodes = &handle->nodes[i];
    unsigned char *rows = NULL;
    const size_t row_bytes = buffer_row_bytes(&buffer);
    if (row_bytes > 0) {
        rows = handle->row_memory.alloc(handle->row_memory.context, row_bytes, ARENA_ALIGNMENT);
        if (rows == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "rows of type %d: no %zu bytes", i, row_bytes);
        }
    }
    handle->row_bytes[i] = row_bytes;
    handle->owned_begin[i] = type->owned_begin;
    handle->owned_end[i] = type->owned_end;
    handle->capacity += type->capacity_rows;
    buffer_open(nodes, rows);
    if (config->given.n_owners > 0) {
        memcpy(pieces->owner_offset[i], type->owner_offset,
               ((size_t)config->given.n_owners + 1) * sizeof *type->owner_offset);
        nodes->costs = buffer.costs ? &handle->costs : NULL;
        nodes->owner_offset = pieces->owner_offset[i];
    }
    if (halo.id != NULL && (config->start != BUFFER_START_EMPTY || config->policy->known != NULL)) {
        RUDDER_TRY(rudder_check_halo(type, error));
    }
    if (config->start == BUFFER_START_WEIGHTS) {
        RUDDER_TRY(rudder_check_weights(type, error));
    }
    if (config->start != BUFFER_START_EMPTY && halo.n > 0) {
        buffer_choose_start(nodes, &halo, config->start, rng_key(RNG_START, config->given.seed, 0, 0, (uint64_t)i) | 1);
    }
    RUDDER_TRY(rudder_open_policy(handle, config, i, error));
    buffer_know(nodes, &halo, type->max_tracked);
    return RUDDER_OK;
}

static rudder_status_t rudder_open_control(rudder_t *handle, const config_t *config, const rudder_pieces_t *pieces,
                                           rudder_error_t *error)
{
    controller_config_t controller = rudder_controller_config(config);
    memset(pieces->controller, 0, pieces->controller_bytes);
    memset(pieces->decider, 0, pieces->decider_bytes);
    handle->decider = config->decider;
    if (config->decider_name != NULL) {
        RUDDER_TRY(decide_open(config->decider_name, &config->given, pieces->decider, &handle->decider, error));
        handle->decider_open = 1;
    }
    RUDDER_TRY(decide_open(config->given.fallback, &config->given, NULL, &handle->fallback, error));
    controller.decider = &handle->decider;
    controller.fallback = &handle->fallback;
    assert((size_t)controller_memory(&controller) <= pieces->controller_bytes);
    return controller_open(&controller, pieces->controller, &handle->controller, error);
}

/* Ends everything that was opened so far, and gives the memory back. */
static void rudder_free(rudder_t *handle, int32_t timeout_ms)
{
    if (handle->controller != NULL) {
        controller_close(handle->controller, timeout_ms);
    }
    if (handle->decider_open && handle->decider.close != NULL) {
        handle->decider.close(handle->decider.self);
    }
    for (int32_t i = 0; i < handle->n_types; i++) {
        rudder_nodes_t *nodes = &handle->nodes[i];
        if (handle->policy_open[i] && nodes->policy->close != NULL) {
            nodes->policy->close(nodes->policy_self);
        }
        if (nodes->rows != NULL) {
            handle->row_memory.free(handle->row_memory.context, nodes->rows, handle->row_bytes[i]);
        }
    }
    const rudder_allocator_t memory = handle->memory;
    memory.free(memory.context, handle, handle->bytes);
}

rudder_status_t rudder_open(const rudder_config_t *given, rudder_t **out, rudder_error_t *error)
{
    const rudder_allocator_t standard = {.alloc = rudder_default_alloc, .free = rudder_default_free};
    config_t config;
    rudder_pieces_t pieces;
    size_t bytes;
    int64_t all_bytes;
    if (given == NULL || out == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                           "expected a configuration and where to put the handle, found NULL");
    }
    RUDDER_TRY(config_read(given, &config, error));
    RUDDER_TRY(rudder_measure(&config, &bytes, &all_bytes, error));
    const rudder_allocator_t memory = config.given.memory.alloc != NULL ? config.given.memory : standard;
    rudder_t *handle = memory.alloc(memory.context, bytes, ARENA_ALIGNMENT);
    if (handle == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "the buffer beside its rows: no %zu bytes", bytes);
    }
    arena_t arena = {.base = (unsigned char *)handle};
    memset(handle, 0, sizeof *handle);
    rudder_layout(&arena, &config, handle, &pieces);
    handle->process = getpid();
    handle->n_types = config.given.n_types;
    handle->max_plans = config.given.max_plans;
    handle->all_types = (1u << handle->n_types) - 1;
    handle->memory = memory;
    handle->row_memory = config.given.row_memory.alloc != NULL ? config.given.row_memory : memory;
    handle->bytes = bytes;
    handle->all_bytes = all_bytes;
    costs_open(&handle->costs, config.given.owner_cost, config.given.owner_row_cost);
    rudder_status_t status = RUDDER_OK;
    for (int32_t i = 0; i < handle->n_types && status == RUDDER_OK; i++) {
        status = rudder_open_type(handle, &config, &pieces, i, error);
    }
    if (status == RUDDER_OK) {
        status = rudder_open_control(handle, &config, &pieces, error);
    }
    if (status != RUDDER_OK) {
        rudder_free(handle, 0);
        return status;
    }
    rudder_publish(handle);
    *out = handle;
    return RUDDER_OK;
}

void rudder_close(rudder_t *handle, int32_t timeout_ms)
{
    if (handle != NULL &&
        handle->process == getpid()) { /* a forked child has neither the worker nor a right to the agent */
        rudder_free(handle, timeout_ms);
    }
}

/* ---- Checks ----------------------------------------------------------------------------------------------------- */

static rudder_status_t rudder_check_handle(const rudder_t *handle, rudder_error_t *error)
{
    if (handle == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "handle: expected one from rudder_open(), found NULL");
    }
    if (handle->process != getpid()) {
        return RUDDER_FAIL(error, RUDDER_E_FORKED, "handle: opened by process %d, used in its child %d",
                           (int)handle->process, (int)getpid());
    }
    return RUDDER_OK;
}

static rudder_status_t rudder_check_type(const rudder_t *handle, int32_t type, rudder_error_t *error)
{
    RUDDER_TRY(rudder_check_handle(handle, error));
    if (type < 0 || type >= handle->n_types) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "type: expected 0 to %d, found %d", handle->n_types - 1, type);
    }
    return RUDDER_OK;
}

/* Remote ids of a type: below its end, not owned, at most `most`. */
static rudder_status_t rudder_check_ids(const rudder_t *handle, int32_t type, const int64_t *ids, int64_t n,
                                        int64_t most, rudder_error_t *error)
{
    const int64_t begin = handle->owned_begin[type], end = handle->owned_end[type];
    const int64_t last = config_last_id(handle->nodes[type].id_end);
    const uint64_t owned = (uint64_t)end - (uint64_t)begin;
    if (n < 0 || n > most || (n > 0 && ids == NULL)) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "ids of type %d: expected 0 to %lld of them, found %lld%s", type,
                           (long long)most, (long long)n, n > 0 && ids == NULL ? " at NULL" : "");
    }
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        wrong |= (int64_t)((uint64_t)ids[i] > (uint64_t)last) | (int64_t)((uint64_t)ids[i] - (uint64_t)begin < owned);
    }
    for (int64_t i = 0; wrong != 0 && i < n; i++) {
        if (ids[i] < 0 || ids[i] > last) {
            return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                               "ids[%lld] of type %d: expected an id of 0 to %lld, found %lld", (long long)i, type,
                               (long long)last, (long long)ids[i]);
        }
        if (ids[i] >= begin && ids[i] < end) {
            return RUDDER_FAIL(error, RUDDER_E_OWNED,
                               "ids[%lld] of type %d: expected a remote id, found %lld, owned are %lld to %lld",
                               (long long)i, type, (long long)ids[i], (long long)begin, (long long)end - 1);
        }
    }
    return RUDDER_OK;
}

static rudder_status_t rudder_check_plan(const rudder_t *handle, const rudder_plan_t *plan, rudder_error_t *error)
{
    RUDDER_TRY(rudder_check_handle(handle, error));
    if (plan == NULL || plan->handle != handle || !plan->open) {
        return RUDDER_FAIL(error, RUDDER_E_STATE, "plan: expected an open one of this handle, found %s",
                           plan == NULL             ? "NULL"
                           : plan->handle != handle ? "another's"
                                                    : "a closed one");
    }
    return RUDDER_OK;
}

/* ---- Plans ------------------------------------------------------------------------------------------------------ */

static rudder_status_t rudder_new_plan(rudder_t *handle, int32_t type, rudder_plan_t **out, rudder_error_t *error)
{
    if (handle->n_open == handle->max_plans) {
        return RUDDER_FAIL(error, RUDDER_E_PLANS, "expected fewer than max_plans = %d open plans, found that many",
                           handle->max_plans);
    }
    rudder_plan_t *plan = handle->plans;
    while (plan->open) {
        plan++;
    }
    plan->type = type;
    plan->open = 1;
    plan->verdict = 0;
    plan->entered = 0;
    plan->before = handle->progress;
    controller_mark(handle->controller, &plan->mark);
    handle->open[handle->n_open++] = plan;
    *out = plan;
    return RUDDER_OK;
}

static void rudder_close_plan(rudder_t *handle, rudder_plan_t *plan)
{
    int32_t i = 0;
    while (handle->open[i] != plan) {
        i++;
    }
    handle->n_open--;
    memmove(&handle->open[i], &handle->open[i + 1], (size_t)(handle->n_open - i) * sizeof(rudder_plan_t *));
    plan->open = 0;
}

/* Adds a plan to the sums, or takes it out again. */
static void rudder_count(rudder_t *handle, const rudder_plan_t *plan, int64_t sign)
{
    const buffer_plan_t *buffer = &plan->buffer;
    rudder_sums_t *sums = &handle->sums;
    sums->minibatches = handle->progress.minibatches;
    sums->remote += sign * (buffer->n_hit + buffer->n_miss);
    sums->hit += sign * buffer->n_hit;
    sums->miss += sign * buffer->n_miss;
    sums->fill += sign * buffer->n_fill;
    sums->fetched_bytes += sign * (buffer->n_miss + buffer->n_fill) * (int64_t)buffer->nodes->row_bytes;
    sums->untracked += sign * buffer->n_untracked;
    sums->entered += sign * plan->entered;
    rudder_publish(handle);
}

rudder_status_t rudder_plan_start(rudder_t *handle, int32_t type, rudder_plan_t **out, rudder_error_t *error)
{
    rudder_plan_t *plan = NULL;
    RUDDER_TRY(rudder_check_type(handle, type, error));
    rudder_nodes_t *nodes = &handle->nodes[type];
    if (nodes->started) {
        return RUDDER_FAIL(error, RUDDER_E_STATE, "start of type %d: expected once and before its first plan, found %s",
                           type, nodes->minibatch > 0 ? "planned minibatches" : "a second one");
    }
    RUDDER_TRY(rudder_new_plan(handle, type, &plan, error));
    buffer_plan_start(nodes, &plan->buffer);
    plan->entered = plan->buffer.n_fill;
    controller_started(handle->controller, plan->buffer.n_fill);
    rudder_count(handle, plan, 1);
    *out = plan;
    return RUDDER_OK;
}

static void rudder_outlook(void *context, rudder_outlook_t *sum)
{
    rudder_t *handle = context;
    *sum = (rudder_outlook_t){0};
    for (int32_t i = 0; i < handle->n_types; i++) {
        rudder_nodes_t *nodes = &handle->nodes[i];
        rudder_outlook_t one = {0};
        if (nodes->policy->outlook != NULL) {
            nodes->policy->outlook(nodes->policy_self, nodes, &one);
        }
        sum->stale += one.stale;
        sum->candidates += one.candidates;
        sum->swaps += one.swaps;
        sum->cost += one.cost;
        sum->saving_per_minibatch += one.saving_per_minibatch;
    }
}

static void rudder_report_replaced(rudder_t *handle)
{
    if (handle->unreported) {
        controller_replaced(handle->controller, handle->progress.replaced, handle->progress.filled);
        handle->unreported = 0;
    }
}

/* All types of a minibatch were planned: the controller counts it and says whether they replace. */
static void rudder_end_minibatch(rudder_t *handle, rudder_plan_t *plan)
{
    rudder_progress_t *p = &handle->progress;
    rudder_report_replaced(handle); /* types that were left out have not replaced yet */
    if (controller_minibatch(handle->controller, p->remote, p->hit, p->miss, rudder_outlook, handle)) {
        plan->verdict = 1;
        p->due = handle->all_types;
        p->replaced = p->filled = 0;
        handle->unreported = 1;
    }
    p->planned = 0;
    p->remote = p->hit = p->miss = 0;
}

/* Where a plan stands in the minibatches of the handle. */
static void rudder_advance(rudder_t *handle, rudder_plan_t *plan)
{
    rudder_progress_t *p = &handle->progress;
    const uint32_t type = 1u << plan->type;
    if (p->planned & type) {
        rudder_end_minibatch(handle, plan);
    }
    p->minibatches += p->planned == 0;
    p->planned |= type;
    p->remote += plan->buffer.n_hit + plan->buffer.n_miss;
    p->hit += plan->buffer.n_hit;
    p->miss += plan->buffer.n_miss;
    if (p->planned == handle->all_types) {
        rudder_end_minibatch(handle, plan);
    }
}

rudder_status_t rudder_plan_begin(rudder_t *handle, int32_t type, const int64_t *ids, int64_t n, rudder_plan_t **out,
                                  rudder_error_t *error)
{
    rudder_plan_t *plan = NULL;
    RUDDER_TRY(rudder_check_type(handle, type, error));
    RUDDER_TRY(rudder_check_ids(handle, type, ids, n, handle->nodes[type].max_ids, error));
    RUDDER_TRY(rudder_new_plan(handle, type, &plan, error));
    rudder_nodes_t *nodes = &handle->nodes[type];
    rudder_progress_t *progress = &handle->progress;
    if (progress->planned == 0 || progress->planned & 1u << type) { /* a new minibatch */
        costs_update(&handle->costs);
    }
    buffer_begin(nodes, &plan->buffer, ids, n);
    rudder_advance(handle, plan);
    const int replaces = (progress->due & 1u << type) != 0;
    if (replaces) {
        progress->due &= ~(1u << type);
        buffer_replace(nodes);
    }
    plan->entered = buffer_finish(nodes, &plan->buffer);
    if (replaces) {
        progress->replaced += plan->entered;
        progress->filled += plan->buffer.n_fill;
        if (progress->due == 0) {
            rudder_report_replaced(handle);
        }
    }
    rudder_count(handle, plan, 1);
    *out = plan;
    return RUDDER_OK;
}

void rudder_plan_fetch(const rudder_plan_t *plan, const int64_t **ids, int64_t *n_miss, int64_t *n_fill)
{
    *ids = plan->buffer.fetch;
    *n_miss = plan->buffer.n_miss;
    *n_fill = plan->buffer.n_fill;
}

/* Plans complete in the order in which they were begun. */
static rudder_status_t rudder_check_oldest(const rudder_t *handle, const rudder_plan_t *plan, rudder_error_t *error)
{
    for (int32_t i = 0; handle->open[i] != plan; i++) {
        if (!handle->open[i]->buffer.complete) {
            return RUDDER_FAIL(error, RUDDER_E_STATE,
                               "plan: expected the oldest incomplete one, found one begun later");
        }
    }
    return RUDDER_OK;
}

rudder_status_t rudder_complete(rudder_t *handle, rudder_plan_t *plan, const void *miss_rows, size_t stride, void *out,
                                rudder_error_t *error)
{
    RUDDER_TRY(rudder_check_plan(handle, plan, error));
    const buffer_plan_t *buffer = &plan->buffer;
    if (buffer->complete) {
        return RUDDER_FAIL(error, RUDDER_E_STATE, "plan: expected one that is not complete, found a complete one");
    }
    RUDDER_TRY(rudder_check_oldest(handle, plan, error));
    if ((buffer->n_miss > 0 && (miss_rows == NULL || stride < buffer->nodes->row_bytes)) ||
        (buffer->n_ids > 0 && out == NULL)) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                           "expected %lld miss rows at least %zu bytes apart and room for %lld rows, found %s",
                           (long long)buffer->n_miss, buffer->nodes->row_bytes, (long long)buffer->n_ids,
                           miss_rows == NULL || out == NULL ? "NULL" : "a smaller stride");
    }
    if (!buffer_ready(buffer)) {
        return RUDDER_FAIL(error, RUDDER_E_AGAIN, "plan: expected the fill rows of earlier plans that it needs first");
    }
    buffer_complete(&plan->buffer, miss_rows, stride, out);
    if (buffer->n_filled == buffer->n_fill) {
        rudder_close_plan(handle, plan);
    }
    return RUDDER_OK;
}

rudder_status_t rudder_fill(rudder_t *handle, rudder_plan_t *plan, const void *fill_rows, size_t stride, int64_t n,
                            rudder_error_t *error)
{
    RUDDER_TRY(rudder_check_plan(handle, plan, error));
    buffer_plan_t *buffer = &plan->buffer;
    if (!buffer->complete && !buffer->start) {
        return RUDDER_FAIL(error, RUDDER_E_STATE, "plan: expected one that is complete, found one that is not");
    }
    if (!buffer->complete) { /* the start content has no misses to wait for: its first rows complete it */
        RUDDER_TRY(rudder_check_oldest(handle, plan, error));
    }
    const int64_t left = buffer->n_fill - buffer->n_filled;
    if (n < 0 || n > left || (n > 0 && (fill_rows == NULL || stride < buffer->nodes->row_bytes))) {
        return RUDDER_FAIL(
            error, RUDDER_E_ARGUMENT,
            "expected at most %lld fill rows at least %zu bytes apart, found %lld rows, %zu bytes apart%s",
            (long long)left, buffer->nodes->row_bytes, (long long)n, stride, fill_rows == NULL ? ", at NULL" : "");
    }
    buffer_fill(buffer, fill_rows, stride, n);
    if (n == left) {
        rudder_close_plan(handle, plan);
    }
    return RUDDER_OK;
}

rudder_status_t rudder_abort(rudder_t *handle, rudder_plan_t *plan, rudder_error_t *error)
{
    RUDDER_TRY(rudder_check_plan(handle, plan, error));
    if (handle->open[handle->n_open - 1] != plan) {
        return RUDDER_FAIL(error, RUDDER_E_STATE, "plan: expected the newest open one, found one begun earlier");
    }
    if (plan->buffer.complete) {
        buffer_give_up(&plan->buffer);
    } else {
        buffer_abort(&plan->buffer);
        handle->progress = plan->before;
        controller_rewind(handle->controller, &plan->mark, plan->verdict);
        handle->unreported &= !plan->verdict; /* what was ordered in this plan will be ordered again */
        rudder_count(handle, plan, -1);
    }
    handle->sums.aborted++;
    rudder_publish(handle);
    rudder_close_plan(handle, plan);
    return RUDDER_OK;
}

/* ---- Beside the minibatches ------------------------------------------------------------------------------------- */

rudder_status_t rudder_announce(rudder_t *handle, int64_t seq, int32_t type, const int64_t *ids, int64_t n,
                                rudder_error_t *error)
{
    RUDDER_TRY(rudder_check_type(handle, type, error));
    RUDDER_TRY(rudder_check_ids(handle, type, ids, n, INT64_MAX, error));
    rudder_nodes_t *nodes = &handle->nodes[type];
    announced_t *announced = &nodes->announced;
    const int64_t least = announced->last >= nodes->minibatch ? announced->last + 1 : nodes->minibatch;
    if (seq < least) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "seq of type %d: expected %lld or later, found %lld", type,
                           (long long)least, (long long)seq);
    }
    if (nodes->policy->announced != NULL && !announced_has_room(announced, n)) {
        return RUDDER_FAIL(error, RUDDER_E_AGAIN,
                           "announced ids of type %d: expected room for %lld more, found %lld in %lld minibatches to "
                           "come, max_announced is %lld",
                           type, (long long)n, (long long)announced->n_ids, (long long)announced_to_come(announced),
                           (long long)announced->limit);
    }
    announced->last = seq;
    if (nodes->policy->announced != NULL) {
        buffer_announce(nodes, seq, ids, n);
    }
    handle->sums.announced++;
    rudder_publish(handle);
    return RUDDER_OK;
}

int rudder_announce_wanted(const rudder_t *handle, int32_t type)
{
    return rudder_check_type(handle, type, NULL) == RUDDER_OK && buffer_announce_wanted(&handle->nodes[type]);
}

rudder_status_t rudder_report_fetch(rudder_t *handle, int32_t owner, int64_t rows, double seconds)
{
    RUDDER_TRY(rudder_check_handle(handle, NULL));
    if (owner < 0 || owner >= handle->costs.n_owners || rows < 0 || !(seconds >= 0) || isinf(seconds)) {
        return RUDDER_E_ARGUMENT;
    }
    costs_report(&handle->costs, owner, rows, seconds);
    return RUDDER_OK;
}

rudder_status_t rudder_invalidate(rudder_t *handle, int32_t type, const int64_t *ids, int64_t n, rudder_error_t *error)
{
    RUDDER_TRY(rudder_check_type(handle, type, error));
    if (n < 0 || (n > 0 && ids == NULL)) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "ids: expected 0 or more, found %lld%s", (long long)n,
                           ids == NULL ? " at NULL" : "");
    }
    if (handle->n_open > 0) {
        return RUDDER_FAIL(error, RUDDER_E_STATE, "expected no open plan, found %d", handle->n_open);
    }
    buffer_invalidate(&handle->nodes[type], ids, n);
    rudder_publish(handle);
    return RUDDER_OK;
}

rudder_status_t rudder_report_times(rudder_t *handle, const rudder_times_t *times)
{
    RUDDER_TRY(rudder_check_handle(handle, NULL));
    if (times == NULL) {
        return RUDDER_E_ARGUMENT;
    }
    controller_times(handle->controller, times);
    return RUDDER_OK;
}

rudder_status_t rudder_stats_get(rudder_t *handle, rudder_stats_t *out, size_t size)
{
    rudder_sums_t sums;
    RUDDER_TRY(rudder_check_handle(handle, NULL));
    if (out == NULL || size < sizeof(size_t)) {
        return RUDDER_E_ARGUMENT;
    }
    board_read(&handle->published, handle->published_sums, &sums, sizeof sums);
    rudder_stats_t stats = {.size = size < sizeof stats ? size : sizeof stats,
                            .minibatches = sums.minibatches,
                            .aborted = sums.aborted,
                            .remote_rows = sums.remote,
                            .hit_rows = sums.hit,
                            .miss_rows = sums.miss,
                            .fill_rows = sums.fill,
                            .fetched_rows = sums.miss + sums.fill,
                            .fetched_bytes = sums.fetched_bytes,
                            .untracked_rows = sums.untracked,
                            .entered_rows = sums.entered,
                            .announced_minibatches = sums.announced,
                            .rows_in_buffer = sums.in_buffer,
                            .capacity_rows = handle->capacity,
                            .memory_bytes = handle->all_bytes,
                            .window = sums.window};
    controller_stats(handle->controller, &stats);
    memset(out, 0, size);
    memcpy(out, &stats, stats.size);
    return RUDDER_OK;
}
