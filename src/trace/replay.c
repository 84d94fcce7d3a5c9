/*
 * One job, minibatch by minibatch: all ranks announce, plan, exchange, complete and fill as the trainer's loaders do
 * (src/train/loader.c), with rows of a few bytes that nobody looks at.
 */
#include "trace/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "buffer/costs.h"
#include "decide/decide.h"
#include "policy/policy.h"

enum {
    REPLAY_ROW_BYTES = 4,
    REPLAY_ROUND_BYTES = 16 << 20, /* most bytes of rows in a round of the trainer's exchange */
    REPLAY_RANK_BYTES = 1 << 14    /* what a rank takes beside what is counted: the handle's agent, clock */
};

/* A decider that takes time: the library's, and a word on how long. */
typedef struct replay_decider {
    rudder_decider_t inner, outer;
    void *memory;
    const replay_latency_t *latency;
    int64_t questions;
    double spent; /* seconds of the answers of this minibatch */
} replay_decider_t;

typedef struct replay_rank {
    const struct replay *replay;
    int32_t number; /* in the group */
    const scan_t *scan;
    trace_reader_t *reader, *ahead; /* ahead: NULL unless minibatches are announced */
    const trace_info_t *info;
    trace_minibatch_t now, next; /* next: read ahead and not yet announced */
    int has_next;
    int64_t announced, sampled; /* minibatches; sampled: with REPLAY_RECORDED */
    int64_t held;               /* ids announced and not planned */
    replay_decider_t decider;
    rudder_t *handle;
    rudder_plan_t *plan;
    const int64_t *fetch;
    int64_t n_miss, n_fill, done;
    int complete;
    rudder_times_t told;
} replay_rank_t;

typedef struct replay {
    const replay_job_t *job;
    clock_setup_t clock_setup;
    clock_model_t *clock;
    int32_t n_owners;
    int64_t t, round_rows;
    int64_t sampled;         /* minibatches, with REPLAY_WANTED */
    unsigned char *in, *out; /* rows that come, and that the minibatch gets */
    int64_t most_rows;
    size_t row_bytes;
    int32_t *owner;           /* [n]: which owner each rank is */
    int64_t *rows, *all_rows; /* [n][n_owners]: asked for in a round, and in a minibatch */
    double *seconds, *compute;
    replay_rank_t rank[];
} replay_t;

/* ---- Deciders --------------------------------------------------------------------------------------------------- */

static rudder_status_t replay_decide(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    replay_decider_t *decider = self;
    const replay_latency_t *latency = decider->latency;
    const double asked = clock_seconds();
    const rudder_status_t status = decider->inner.decide(decider->inner.self, context, answer);
    double seconds = clock_seconds() - asked;
    if (latency->given >= 0) {
        seconds = latency->given;
    } else if (latency->recorded != NULL) {
        seconds = latency->recorded[decider->questions % latency->n_recorded];
    }
    decider->questions++;
    decider->spent += seconds;
    answer->latency_ms = fmax(1e3 * seconds, 1e-6); /* 0 would mean that it is not told */
    return status;
}

static void replay_prepare_decider(void *self)
{
    replay_decider_t *decider = self;
    if (decider->inner.prepare != NULL) {
        decider->inner.prepare(decider->inner.self);
    }
}

static void replay_cancel_decider(void *self)
{
    replay_decider_t *decider = self;
    if (decider->inner.cancel != NULL) {
        decider->inner.cancel(decider->inner.self);
    }
}

static void replay_close_decider(replay_decider_t *decider)
{
    if (decider->memory != NULL && decider->inner.close != NULL) {
        decider->inner.close(decider->inner.self);
    }
    free(decider->memory);
    decider->memory = NULL;
}

static int replay_is_slow(const char *decider)
{
    return decider != NULL && strcmp(decider, "llm") == 0;
}

static rudder_status_t replay_open_decider(const replay_job_t *job, replay_rank_t *rank, rudder_config_t *library,
                                           rudder_error_t *error)
{
    replay_decider_t *decider = &rank->decider;
    const int64_t bytes = decide_memory(job->decider);
    decider->latency = &job->latency;
    decider->memory = calloc(1, (size_t)bytes + 1);
    if (decider->memory == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the decider %s", job->decider);
    }
    const rudder_status_t status = decide_open(job->decider, library, decider->memory, &decider->inner, error);
    if (status != RUDDER_OK) {
        free(decider->memory);
        decider->memory = NULL;
        return status;
    }
    decider->outer = (rudder_decider_t){.size = sizeof decider->outer,
                                        .name = job->decider,
                                        .self = decider,
                                        .interval = decider->inner.interval,
                                        .decide = replay_decide,
                                        .cancel = replay_cancel_decider,
                                        .prepare = replay_prepare_decider};
    library->decider = NULL;
    library->decider_table = &decider->outer;
    return RUDDER_OK;
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

static double replay_clock(void *context)
{
    const replay_rank_t *rank = context;
    return clock_model_now(rank->replay->clock, rank->number);
}

static void replay_message(void *context, const char *text)
{
    (void)context;
    log_line(LOG_WARN, "%s", text);
}

int64_t replay_row_bytes(const replay_settings_t *settings, const scan_t *scan)
{
    return settings->row_bytes > 0 ? settings->row_bytes : scan->info.row_bytes;
}

const links_t *replay_links(const replay_settings_t *settings, const scan_t *scan)
{
    return settings->use_links ? &settings->links : &scan->info.links;
}

int replay_has_clock(const replay_settings_t *settings, const scan_group_t *group)
{
    return group->timed || settings->sample >= 0 || settings->compute >= 0 || settings->use_links ||
           links_delay(&group->trace[0]->info.links);
}

/*
 * Ids to come that the library remembers: all that a window can hold, or what lets the policy know when every row that it
 * keeps is used next, also where that is far: in class order a rank's turn comes once an epoch. The trainer allows as much.
 */
static int64_t replay_max_announced(const replay_job_t *job, int32_t r)
{
    const scan_t *scan = job->group->trace[r];
    const int64_t most = scan->most_ids > 0 ? scan->most_ids : 1;
    const int64_t held = job->settings->window_ids;
    const char *colon = strchr(job->policy, ':');
    const int64_t window = job->ahead == REPLAY_RECORDED ? scan->most_announced : colon != NULL ? atoll(colon + 1) : 0;
    int64_t ids = 16 * job->capacity[r] + 8 * (scan->distinct > most ? scan->distinct : most);
    if (window > 0) {
        ids = window < scan->ids / most ? (window + 1) * most : scan->ids;
    } else if (job->ahead == REPLAY_WANTED && held > 0 && held < ids) {
        ids = held > 2 * most ? held : 2 * most;
    }
    /* Of all ids, with room for another of the largest: that is what the library wants before it asks for more. */
    return job->ahead == REPLAY_ALL || ids >= scan->ids ? scan->ids + most : ids;
}

void replay_library(const replay_job_t *job, int32_t r, rudder_type_config_t *type, rudder_config_t *library)
{
    const replay_settings_t *settings = job->settings;
    const scan_t *scan = job->group->trace[r];
    const trace_info_t *info = &scan->info;
    const int64_t row_bytes = replay_row_bytes(settings, scan);
    /* An agent is told the bytes of a row. */
    const int told = replay_is_slow(job->decider) && row_bytes > 0;
    *type = (rudder_type_config_t){.row_bytes = told ? (size_t)row_bytes : REPLAY_ROW_BYTES,
                                   .capacity_rows = job->capacity[r],
                                   .max_ids = scan->most_ids > 0 ? scan->most_ids : 1,
                                   .max_tracked = job->max_tracked[r],
                                   .n_halo = info->n_halo,
                                   .id_end = scan->largest < INT64_MAX ? scan->largest + 1 : INT64_MAX,
                                   .max_announced = policy_looks_ahead(job->policy) ? replay_max_announced(job, r) : 0};
    *library = settings->library;
    library->n_types = 1;
    library->max_plans = 1;
    library->types = type;
    library->policy = job->policy;
    library->start = job->start;
    library->decider = job->decider;
    library->minibatches = job->group->minibatches;
    library->on_message = replay_message;
    library->clock = replay_clock;
    library->n_owners = scan->has_owners ? info->ranks : 0;
    library->owner_cost = scan->has_owners ? settings->owner_cost : RUDDER_OWNER_COST_OFF;
    library->owner_row_cost = settings->owner_row_cost;
    library->facts = (rudder_facts_t){
        .nodes = info->n_nodes, .halo = info->n_halo, .ranks = info->ranks > 0 ? info->ranks : 1, .rank = info->rank};
    snprintf(library->facts.graph, sizeof library->facts.graph, "%s", info->graph);
}

static rudder_status_t replay_check(const replay_job_t *job, const scan_t *scan, rudder_error_t *error)
{
    const replay_settings_t *settings = job->settings;
    const links_t *links = replay_links(settings, scan);
    if ((links_delay(links) || settings->n_changes > 0) && replay_row_bytes(settings, scan) == 0) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "%s: expected --row-bytes for the time that rows take on the link; the trace does not tell",
                           scan->path);
    }
    int32_t last = links_last_owner(links);
    for (int64_t i = 0; i < settings->n_changes; i++) {
        last = settings->changes[i].owner > last ? settings->changes[i].owner : last;
    }
    if (last >= 0 && (!scan->has_owners || last >= scan->info.ranks)) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "%s: a link of owner %d: expected a trace that knows at least %d owners, found %d (\"rudder "
                           "import-trace --owners\" adds them)",
                           scan->path, (int)last, (int)last + 1, scan->has_owners ? (int)scan->info.ranks : 0);
    }
    if (job->ahead == REPLAY_RECORDED && scan->most_announced < 0) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: lookahead:recorded: expected what was announced for each "
                           "minibatch, found minibatches without",
                           scan->path);
    }
    if (scan->has_owners && settings->owner_cost == RUDDER_OWNER_COST_GIVEN &&
        settings->n_owner_row_cost != scan->info.ranks) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--owner-cost: expected a cost for each of %d owners, found %lld",
                           (int)scan->info.ranks, (long long)settings->n_owner_row_cost);
    }
    return RUDDER_OK;
}

rudder_status_t replay_prepare(replay_job_t *job, rudder_error_t *error)
{
    static const int64_t nothing[1] = {0};
    int64_t most = 0;
    job->memory = 0;
    for (int32_t r = 0; r < job->group->n; r++) {
        const scan_t *scan = job->group->trace[r];
        rudder_type_config_t type;
        rudder_config_t library;
        int64_t bytes;
        RUDDER_TRY(replay_check(job, scan, error));
        replay_library(job, r, &type, &library);
        /* Only sizes matter here: the arrays are in the trace. */
        type.halo = nothing;
        int64_t *offset = calloc((size_t)library.n_owners + 1, sizeof *offset);
        if (offset == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %d owners", (int)library.n_owners);
        }
        type.owner_offset = offset;
        const rudder_status_t status = rudder_memory_needed(&library, &bytes, error);
        free(offset);
        RUDDER_TRY(status);
        job->memory += bytes + (policy_looks_ahead(job->policy) ? 2 : 1) * scan->reader_bytes + REPLAY_RANK_BYTES;
        most = scan->most_ids > most ? scan->most_ids : most;
    }
    job->memory += 2 * most * REPLAY_ROW_BYTES;
    return RUDDER_OK;
}

static rudder_status_t replay_open_rank(replay_t *replay, int32_t r, rudder_error_t *error)
{
    const replay_job_t *job = replay->job;
    replay_rank_t *rank = &replay->rank[r];
    rudder_type_config_t type;
    rudder_config_t library;
    const trace_info_t *same;
    rank->replay = replay;
    rank->number = r;
    rank->scan = job->group->trace[r];
    RUDDER_TRY(trace_reader_open(rank->scan->path, &rank->reader, &rank->info, error));
    if (policy_looks_ahead(job->policy)) {
        RUDDER_TRY(trace_reader_open(rank->scan->path, &rank->ahead, &same, error));
    }
    replay_library(job, r, &type, &library);
    type.halo = rank->info->halo;
    type.halo_degree = rank->info->halo_degree;
    type.n_halo = rank->info->n_halo;
    type.owner_offset = rank->info->owner_offset;
    library.callback_context = rank;
    /* Rules answer at once, as in training, unless a latency is given for them. */
    if (replay_is_slow(job->decider) || (job->decider != NULL && job->latency.given >= 0)) {
        RUDDER_TRY(replay_open_decider(job, rank, &library, error));
    }
    replay->row_bytes = type.row_bytes;
    return rudder_open(&library, &rank->handle, error);
}

static rudder_status_t replay_open_clock(replay_t *replay, rudder_error_t *error)
{
    const replay_job_t *job = replay->job;
    const replay_settings_t *settings = job->settings;
    const scan_t *first = job->group->trace[0];
    clock_setup_t *setup = &replay->clock_setup;
    *setup = (clock_setup_t){.n_ranks = job->group->n,
                             .n_owners = replay->n_owners,
                             .owner = replay->owner,
                             .depth = settings->depth,
                             .row_bytes = replay_row_bytes(settings, first),
                             .links = *replay_links(settings, first),
                             .changes = settings->changes,
                             .n_changes = settings->n_changes};
    if (settings->depth < 0) {
        setup->depth = first->info.depth > 0 ? first->info.depth : 2;
    }
    replay->round_rows = setup->row_bytes > 0 ? REPLAY_ROUND_BYTES / setup->row_bytes + 1 : INT64_MAX;
    return clock_model_open(setup, &replay->clock, error);
}

static rudder_status_t replay_open(const replay_job_t *job, replay_t **out, rudder_error_t *error)
{
    const size_t n = (size_t)job->group->n;
    replay_t *replay = calloc(1, sizeof *replay + n * sizeof *replay->rank);
    if (replay == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a replay of %d ranks", (int)n);
    }
    *out = replay;
    replay->job = job;
    replay->n_owners = 1;
    replay->most_rows = 1;
    for (size_t r = 0; r < n; r++) {
        const scan_t *scan = job->group->trace[r];
        const int32_t owners = scan->has_owners ? scan->info.ranks : scan->info.rank + 1;
        replay->n_owners = owners > replay->n_owners ? owners : replay->n_owners;
        replay->most_rows = scan->most_ids > replay->most_rows ? scan->most_ids : replay->most_rows;
    }
    const size_t cells = n * (size_t)replay->n_owners;
    replay->owner = calloc(n, sizeof *replay->owner);
    replay->rows = calloc(cells, sizeof *replay->rows);
    replay->all_rows = calloc(cells, sizeof *replay->all_rows);
    replay->seconds = calloc(cells, sizeof *replay->seconds);
    replay->compute = calloc(n, sizeof *replay->compute);
    if (replay->owner == NULL || replay->rows == NULL || replay->all_rows == NULL || replay->seconds == NULL ||
        replay->compute == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a replay of %d ranks", (int)n);
    }
    for (size_t r = 0; r < n; r++) {
        replay->owner[r] = job->group->trace[r]->info.rank;
    }
    RUDDER_TRY(replay_open_clock(replay, error));
    for (int32_t r = 0; r < job->group->n; r++) {
        RUDDER_TRY(replay_open_rank(replay, r, error));
    }
    replay->in = calloc((size_t)replay->most_rows, replay->row_bytes);
    replay->out = calloc((size_t)replay->most_rows, replay->row_bytes);
    return replay->in != NULL && replay->out != NULL
               ? RUDDER_OK
               : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %lld rows", (long long)replay->most_rows);
}

static void replay_close(replay_t *replay)
{
    if (replay == NULL) {
        return;
    }
    for (int32_t r = 0; r < replay->job->group->n; r++) {
        replay_rank_t *rank = &replay->rank[r];
        rudder_close(rank->handle, 0);
        replay_close_decider(&rank->decider);
        trace_reader_close(rank->reader);
        trace_reader_close(rank->ahead);
    }
    clock_model_close(replay->clock);
    free(replay->owner);
    free(replay->rows);
    free(replay->all_rows);
    free(replay->seconds);
    free(replay->compute);
    free(replay->in);
    free(replay->out);
    free(replay);
}

/* ---- Announcements ---------------------------------------------------------------------------------------------- */

/* rank->next: the minibatch that is announced next; has_next 0: there is none. */
static rudder_status_t replay_peek(replay_rank_t *rank, rudder_error_t *error)
{
    int end = 0;
    if (rank->has_next || rank->announced == rank->replay->job->group->minibatches) {
        return RUDDER_OK;
    }
    RUDDER_TRY(trace_reader_next(rank->ahead, &rank->next, &end, error));
    rank->has_next = !end;
    return RUDDER_OK;
}

/* The loader samples minibatch t. */
static void replay_sample(replay_rank_t *rank, int64_t t)
{
    const replay_job_t *job = rank->replay->job;
    const double given = job->settings->sample, seconds = given >= 0 ? given : scan_sample(job->group, t);
    clock_model_spend(rank->replay->clock, rank->number, seconds);
    rank->told.sample += seconds;
}

/* Announces minibatches before `end`, as many as the library has room for. */
static rudder_status_t replay_announce(replay_rank_t *rank, int64_t end, rudder_error_t *error)
{
    while (rank->announced < end) {
        RUDDER_TRY(replay_peek(rank, error));
        if (!rank->has_next) {
            return RUDDER_OK;
        }
        const trace_minibatch_t *next = &rank->next;
        const rudder_status_t status = rudder_announce(rank->handle, rank->announced, 0, next->ids, next->n, error);
        if (status != RUDDER_OK) {
            return status == RUDDER_E_AGAIN ? RUDDER_OK : status;
        }
        rank->held += next->n;
        rank->announced++;
        rank->has_next = 0;
    }
    return RUDDER_OK;
}

/* As the trainer does (src/train/ahead.c): all ranks sample one more while any wants that, and none is full. */
static rudder_status_t replay_announce_wanted(replay_t *replay, rudder_error_t *error)
{
    const replay_job_t *job = replay->job;
    const int64_t limit = job->settings->window_ids;
    for (int more = replay->sampled == replay->t;;) {
        int wanted = 0, full = 0;
        for (int32_t r = 0; more && r < job->group->n; r++) {
            replay_sample(&replay->rank[r], replay->sampled);
        }
        replay->sampled += more;
        for (int32_t r = 0; r < job->group->n; r++) {
            replay_rank_t *rank = &replay->rank[r];
            RUDDER_TRY(replay_announce(rank, replay->sampled, error));
            wanted |= rudder_announce_wanted(rank->handle, 0);
            full |= rank->announced < replay->sampled || (limit > 0 && rank->held + rank->scan->most_ids > limit);
        }
        more = wanted && !full;
        if (!more || replay->sampled == job->group->minibatches) {
            return RUDDER_OK;
        }
    }
}

static rudder_status_t replay_look_ahead(replay_t *replay, rudder_error_t *error)
{
    const replay_job_t *job = replay->job;
    if (!policy_looks_ahead(job->policy) || job->ahead == REPLAY_ALL) {
        for (int32_t r = 0; r < job->group->n; r++) {
            replay_sample(&replay->rank[r], replay->t);
        }
    }
    if (!policy_looks_ahead(job->policy)) {
        return RUDDER_OK;
    }
    if (job->ahead == REPLAY_WANTED) {
        return replay_announce_wanted(replay, error);
    }
    for (int32_t r = 0; r < job->group->n; r++) {
        replay_rank_t *rank = &replay->rank[r];
        const int64_t all = job->group->minibatches, end = replay->t + 1 + rank->now.announced;
        for (; job->ahead == REPLAY_RECORDED && rank->sampled < end; rank->sampled++) {
            replay_sample(rank, rank->sampled);
        }
        RUDDER_TRY(replay_announce(rank, job->ahead == REPLAY_ALL || end > all ? all : end, error));
    }
    return RUDDER_OK;
}

/* ---- A minibatch ------------------------------------------------------------------------------------------------ */

static rudder_status_t replay_read(replay_t *replay, rudder_error_t *error)
{
    const replay_job_t *job = replay->job;
    const double given = job->settings->compute, compute = given >= 0 ? given : scan_compute(job->group, replay->t);
    for (int32_t r = 0; r < job->group->n; r++) {
        replay_rank_t *rank = &replay->rank[r];
        int end;
        RUDDER_TRY(trace_reader_next(rank->reader, &rank->now, &end, error));
        if (end) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected %lld minibatches, as at first, found %lld",
                               rank->scan->path, (long long)job->group->minibatches, (long long)replay->t);
        }
        replay->compute[r] = compute;
    }
    return RUDDER_OK;
}

/* A time that may not be known. */
static double replay_seconds(float measured)
{
    return isnan(measured) ? 0 : (double)measured;
}

static void replay_note_fetch(replay_rank_t *rank)
{
    rudder_plan_fetch(rank->plan, &rank->fetch, &rank->n_miss, &rank->n_fill);
    rank->done = 0;
    rank->complete = 0;
}

static rudder_status_t replay_plan(replay_t *replay, replay_rank_t *rank, rudder_error_t *error)
{
    const trace_minibatch_t *now = &rank->now;
    const replay_job_t *job = replay->job;
    replay_result_t *result = &job->result[rank->number];
    clock_model_t *clock = replay->clock;
    if (rank->announced > replay->t) {
        rank->held -= now->n;
        result->window_sum += rank->announced - replay->t - 1;
    } else if (rank->ahead != NULL) { /* it can no longer be announced */
        RUDDER_TRY(replay_peek(rank, error));
        rank->has_next = 0;
        rank->announced++;
    }
    rank->decider.spent = 0;
    RUDDER_TRY(rudder_plan_begin(rank->handle, 0, now->ids, now->n, &rank->plan, error));
    if (job->settings->library.mode == RUDDER_SYNC) {
        clock_model_spend(clock, rank->number,
                          fmin(rank->decider.spent, 1e-3 * (double)job->settings->library.deadline_ms));
    }
    clock_model_spend(clock, rank->number, replay_seconds(now->times.plan));
    replay_note_fetch(rank);
    return RUDDER_OK;
}

/* Counts the owners of n ids that are fetched. */
static void replay_count_owners(const replay_t *replay, const replay_rank_t *rank, const int64_t *ids, int64_t n,
                                int64_t *rows)
{
    memset(rows, 0, (size_t)replay->n_owners * sizeof *rows);
    if (rank->info->owner_offset == NULL) {
        rows[0] = n;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        rows[costs_find_owner(rank->info->owner_offset, rank->info->ranks, ids[i])]++;
    }
}

static int64_t replay_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows of a round are here. */
static rudder_status_t replay_deliver(replay_t *replay, replay_rank_t *rank, int64_t count, int started,
                                      rudder_error_t *error)
{
    const int missing = rank->done < rank->n_miss;
    const trace_times_t *times = &rank->now.times;
    rank->done += count;
    if (!rank->complete && rank->done >= rank->n_miss) {
        RUDDER_TRY(rudder_complete(rank->handle, rank->plan, replay->in, replay->row_bytes, replay->out, error));
        rank->complete = 1;
        if (started) {
            clock_model_spend(replay->clock, rank->number,
                              replay_seconds(times->complete) + replay_seconds(times->gather));
            clock_model_hand_over(replay->clock, rank->number);
        }
    }
    for (int64_t left = missing ? 0 : count; left > 0;) {
        const int64_t n = replay_least(left, replay->most_rows);
        RUDDER_TRY(rudder_fill(rank->handle, rank->plan, replay->in, replay->row_bytes, n, error));
        left -= n;
    }
    return RUDDER_OK;
}

/* What the plans of all ranks ask for: misses first, then fill rows, in rounds. started: 0 for the start content. */
static rudder_status_t replay_fetch(replay_t *replay, int started, rudder_error_t *error)
{
    const int32_t n = replay->job->group->n, owners = replay->n_owners;
    const size_t cells = (size_t)n * (size_t)owners;
    memset(replay->all_rows, 0, cells * sizeof *replay->all_rows);
    memset(replay->seconds, 0, cells * sizeof *replay->seconds);
    for (int again = 1; again;) {
        again = 0;
        for (int32_t r = 0; r < n; r++) {
            replay_rank_t *rank = &replay->rank[r];
            const int64_t all = rank->n_miss + rank->n_fill, end = rank->done < rank->n_miss ? rank->n_miss : all;
            const int64_t count = replay_least(end - rank->done, replay->round_rows);
            replay_count_owners(replay, rank, rank->fetch + rank->done, count, replay->rows + (int64_t)r * owners);
            again |= rank->done + count < all;
        }
        clock_model_exchange(replay->clock, replay->rows, replay->seconds);
        for (int32_t r = 0; r < n; r++) {
            int64_t count = 0;
            for (int32_t o = 0; o < owners; o++) {
                const int64_t cell = (int64_t)r * owners + o;
                count += replay->rows[cell];
                replay->all_rows[cell] += replay->rows[cell];
            }
            RUDDER_TRY(replay_deliver(replay, &replay->rank[r], count, started, error));
        }
    }
    return RUDDER_OK;
}

static rudder_status_t replay_report(replay_t *replay, replay_rank_t *rank, rudder_error_t *error)
{
    const int64_t first = (int64_t)rank->number * replay->n_owners;
    rudder_status_t status = rudder_report_times(rank->handle, &rank->told);
    for (int32_t o = 0; o < replay->n_owners && status == RUDDER_OK && rank->scan->has_owners; o++) {
        if (replay->all_rows[first + o] > 0) {
            status = rudder_report_fetch(rank->handle, o, replay->all_rows[first + o], replay->seconds[first + o]);
        }
    }
    return status == RUDDER_OK ? status : RUDDER_FAIL(error, status, "%s: times were refused", rank->scan->path);
}

static rudder_status_t replay_minibatch(replay_t *replay, rudder_error_t *error)
{
    const int32_t n = replay->job->group->n;
    int64_t ids = 0;
    clock_model_begin(replay->clock, replay->t);
    RUDDER_TRY(replay_read(replay, error));
    for (int32_t r = 0; r < n; r++) {
        replay_rank_t *rank = &replay->rank[r];
        rank->told = (rudder_times_t){0};
        clock_model_before(replay->clock, r, &rank->told.wait, &rank->told.compute);
    }
    RUDDER_TRY(replay_look_ahead(replay, error));
    for (int32_t r = 0; r < n; r++) {
        RUDDER_TRY(replay_plan(replay, &replay->rank[r], error));
        replay->rank[r].told.fetch = -clock_model_now(replay->clock, r);
        ids += replay->rank[r].now.n;
    }
    RUDDER_TRY(replay_fetch(replay, 1, error));
    for (int32_t r = 0; r < n; r++) {
        replay->rank[r].told.fetch += clock_model_now(replay->clock, r);
        RUDDER_TRY(replay_report(replay, &replay->rank[r], error));
    }
    clock_model_compute(replay->clock, replay->compute);
    atomic_fetch_add_explicit(replay->job->progress, ids, memory_order_relaxed);
    return RUDDER_OK;
}

static rudder_status_t replay_start(replay_t *replay, rudder_error_t *error)
{
    for (int32_t r = 0; r < replay->job->group->n; r++) {
        replay_rank_t *rank = &replay->rank[r];
        RUDDER_TRY(rudder_plan_start(rank->handle, 0, &rank->plan, error));
        replay_note_fetch(rank);
    }
    return replay_fetch(replay, 0, error);
}

static rudder_status_t replay_results(replay_t *replay, rudder_error_t *error)
{
    const replay_job_t *job = replay->job;
    for (int32_t r = 0; r < job->group->n; r++) {
        replay_result_t *result = &job->result[r];
        const clock_sums_t sums = clock_model_sums(replay->clock, r);
        rudder_stats_t stats;
        const rudder_status_t status = rudder_stats_get(replay->rank[r].handle, &stats, sizeof stats);
        if (status != RUDDER_OK) {
            return RUDDER_FAIL(error, status, "%s: no statistics", job->group->trace[r]->path);
        }
        result->minibatches = replay->t;
        result->remote = stats.remote_rows;
        result->hit = stats.hit_rows;
        result->miss = stats.miss_rows;
        result->fill = stats.fill_rows;
        result->fetched = stats.fetched_rows;
        result->bytes = stats.fetched_rows * replay_row_bytes(job->settings, job->group->trace[r]);
        result->asked = stats.asked;
        result->answered = stats.answered;
        result->replaced = stats.replaced;
        result->kept = stats.kept;
        result->nothing_stale = stats.nothing_stale;
        result->late = stats.late;
        result->fetch_seconds = sums.fetch;
        result->wait_seconds = sums.wait;
        result->seconds = clock_model_end(replay->clock);
    }
    return RUDDER_OK;
}

rudder_status_t replay_run(replay_job_t *job, const atomic_int *stop, rudder_error_t *error)
{
    replay_t *replay = NULL;
    memset(job->result, 0, (size_t)job->group->n * sizeof *job->result);
    rudder_status_t status = replay_open(job, &replay, error);
    if (status == RUDDER_OK) {
        status = replay_start(replay, error);
    }
    while (status == RUDDER_OK && replay->t < job->group->minibatches) {
        status =
            atomic_load_explicit(stop, memory_order_relaxed) ? RUDDER_E_INTERRUPTED : replay_minibatch(replay, error);
        replay->t += status == RUDDER_OK;
    }
    if (status == RUDDER_OK) {
        status = replay_results(replay, error);
    }
    replay_close(replay);
    return status;
}
