/* Traces, sizes and jobs; the replays and bounds run over a few threads. */
#include "cli/laboratory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "trace/bound.h"
#include "trace/jobs.h"

/* ---- Traces ----------------------------------------------------------------------------------------------------- */

static rudder_status_t laboratory_add_path(laboratory_t *lab, const char *path, rudder_error_t *error)
{
    if (lab->n_traces == LABORATORY_MOST_TRACES) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "expected at most %d traces, found more", LABORATORY_MOST_TRACES);
    }
    lab->path[lab->n_traces] = strdup(path);
    return lab->path[lab->n_traces++] != NULL ? RUDDER_OK : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a path");
}

/* A file, or the traces in a run's folder. */
static rudder_status_t laboratory_add(laboratory_t *lab, const char *argument, rudder_error_t *error)
{
    char path[LABORATORY_PATH];
    struct stat about;
    if (stat(argument, &about) != 0 || !S_ISDIR(about.st_mode)) {
        return laboratory_add_path(lab, argument, error);
    }
    for (int32_t rank = 0;; rank++) {
        if (snprintf(path, sizeof path, "%s/trace.rank%" PRId32 ".rtr", argument, rank) >= (int)sizeof path) {
            return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected a path shorter than %d bytes", argument,
                               LABORATORY_PATH);
        }
        if (access(path, F_OK) == 0) {
            RUDDER_TRY(laboratory_add_path(lab, path, error));
        } else if (rank == 0) {
            return RUDDER_FAIL(error, RUDDER_E_IO,
                               "%s: expected trace.rank0.rtr in it (\"rudder train --record\" "
                               "writes it), found none",
                               argument);
        } else {
            return RUDDER_OK;
        }
    }
}

static rudder_status_t laboratory_scan(void *context, int32_t i, const atomic_int *stop, rudder_error_t *error)
{
    laboratory_t *lab = context;
    (void)stop;
    return scan_trace(lab->path[i], &lab->scan[i], &lab->progress, error);
}

static void laboratory_warn(const scan_t *scan)
{
    if (scan->torn) {
        log_line(LOG_WARN, "%s was cut off; what it has up to there is replayed", scan->path);
    }
    if (scan->info.n_halo == 0) {
        log_line(LOG_WARN,
                 "%s has no halo: capacities in %% are of its %" PRId64 " ids, and a start by degree is empty",
                 scan->path, scan->distinct);
    }
}

rudder_status_t laboratory_open(laboratory_t *lab, const char **arguments, int32_t n, rudder_error_t *error)
{
    lab->path = calloc(LABORATORY_MOST_TRACES, sizeof *lab->path);
    if (lab->path == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the names of traces");
    }
    for (int32_t i = 0; i < n; i++) {
        RUDDER_TRY(laboratory_add(lab, arguments[i], error));
    }
    const size_t traces = (size_t)lab->n_traces, cells = traces * (size_t)lab->n_capacities;
    lab->scan = calloc(traces, sizeof *lab->scan);
    lab->by = calloc(traces, sizeof *lab->by);
    lab->group = calloc(traces, sizeof *lab->group);
    lab->rows = calloc(cells, sizeof *lab->rows);
    lab->tracked = calloc(cells, sizeof *lab->tracked);
    lab->bound = calloc(cells, sizeof *lab->bound);
    if (lab->scan == NULL || lab->by == NULL || lab->group == NULL || lab->rows == NULL || lab->tracked == NULL ||
        lab->bound == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId32 " traces", lab->n_traces);
    }
    const jobs_t scans = {.n = lab->n_traces,
                          .threads = lab->threads,
                          .run = laboratory_scan,
                          .context = lab,
                          .done = &lab->progress,
                          .what = "reading"};
    RUDDER_TRY(jobs_run(&scans, error));
    for (int32_t i = 0; i < lab->n_traces; i++) {
        laboratory_warn(&lab->scan[i]);
    }
    return scan_groups(lab->scan, lab->n_traces, lab->by, lab->group, &lab->n_groups, error);
}

/* ---- Sizes and jobs --------------------------------------------------------------------------------------------- */

static rudder_status_t laboratory_rows_of(const laboratory_t *lab, const train_capacity_t *size, const char *what,
                                          const scan_t *scan, int64_t *rows, rudder_error_t *error)
{
    const int64_t whole = scan->info.n_halo > 0 ? scan->info.n_halo : scan->distinct;
    const int64_t row_bytes = replay_row_bytes(&lab->settings, scan);
    if (size->bytes >= 0 && row_bytes == 0) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected --row-bytes to make rows of bytes; %s does not tell",
                           what, scan->path);
    }
    *rows = size->share >= 0  ? (int64_t)(size->share * (double)whole)
            : size->rows >= 0 ? size->rows
                              : size->bytes / (row_bytes > 0 ? row_bytes : 1);
    return RUDDER_OK;
}

/* Slots beyond all ids that there are would stay empty: they are left out. */
static rudder_status_t laboratory_sizes(laboratory_t *lab, rudder_error_t *error)
{
    for (int32_t i = 0; i < lab->n_traces; i++) {
        for (int32_t c = 0; c < lab->n_capacities; c++) {
            const scan_t *scan = lab->by[i];
            const int64_t cell = (int64_t)c * lab->n_traces + i;
            RUDDER_TRY(laboratory_rows_of(lab, &lab->capacity[c].size, "--capacity", scan, &lab->rows[cell], error));
            lab->rows[cell] = lab->rows[cell] < scan->known ? lab->rows[cell] : scan->known;
            lab->tracked[cell] = scan->known;
            if (lab->options.max_tracked == NULL && scan->info.max_tracked > 0) {
                lab->tracked[cell] = scan->info.max_tracked < scan->known ? scan->info.max_tracked : scan->known;
            } else if (lab->max_tracked.share >= 0 || lab->max_tracked.rows >= 0 || lab->max_tracked.bytes >= 0) {
                RUDDER_TRY(
                    laboratory_rows_of(lab, &lab->max_tracked, "--max-tracked", scan, &lab->tracked[cell], error));
            }
        }
    }
    return RUDDER_OK;
}

static replay_latency_t laboratory_latency(const laboratory_t *lab, const decider_choice_t *decider)
{
    replay_latency_t latency = {.given = decider->latency};
    if (latency.given < 0 && strcmp(decider->name, "llm") == 0) {
        latency.given = lab->options.decision_latency;
        latency.recorded = lab->latency;
        latency.n_recorded = lab->n_latency;
    }
    return latency;
}

/* decider: -1, none. */
static void laboratory_add_job(laboratory_t *lab, int32_t group, int32_t policy, int32_t decider, int32_t capacity)
{
    const policy_choice_t *p = &lab->policy[policy];
    laboratory_job_t *job = &lab->jobs[lab->n_jobs++];
    const int64_t cell = (int64_t)capacity * lab->n_traces + (lab->group[group].trace - lab->by);
    *job = (laboratory_job_t){.replay = {.settings = &lab->settings,
                                         .group = &lab->group[group],
                                         .policy = p->name,
                                         .start = p->start,
                                         .ahead = p->ahead,
                                         .latency = {.given = -1},
                                         .capacity = lab->rows + cell,
                                         .max_tracked = lab->tracked + cell,
                                         .progress = &lab->progress},
                              .group = group,
                              .policy = policy,
                              .decider = decider,
                              .capacity = capacity};
    if (decider >= 0) {
        job->replay.decider = lab->decider[decider].name;
        job->replay.latency = laboratory_latency(lab, &lab->decider[decider]);
    }
}

static rudder_status_t laboratory_list_jobs(laboratory_t *lab, rudder_error_t *error)
{
    const size_t most = (size_t)lab->n_groups * (size_t)(lab->n_policies * lab->n_deciders * lab->n_capacities);
    lab->jobs = calloc(most, sizeof *lab->jobs);
    lab->results = calloc((size_t)lab->n_traces * most, sizeof *lab->results);
    if (lab->jobs == NULL || lab->results == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %zu replays", most);
    }
    for (int32_t g = 0; g < lab->n_groups; g++) {
        for (int32_t c = 0; c < lab->n_capacities; c++) {
            for (int32_t p = 0; p < lab->n_policies; p++) {
                for (int32_t d = 0; d < (lab->policy[p].replaces ? lab->n_deciders : 1); d++) {
                    laboratory_add_job(lab, g, p, lab->policy[p].replaces ? d : -1, c);
                }
            }
        }
    }
    replay_result_t *result = lab->results;
    for (int32_t i = 0; i < lab->n_jobs; i++) {
        lab->jobs[i].replay.result = result;
        result += lab->jobs[i].replay.group->n;
        RUDDER_TRY(replay_prepare(&lab->jobs[i].replay, error));
    }
    return RUDDER_OK;
}

rudder_status_t laboratory_list(laboratory_t *lab, rudder_error_t *error)
{
    RUDDER_TRY(laboratory_sizes(lab, error));
    return laboratory_list_jobs(lab, error);
}

const char *laboratory_name(const scan_group_t *group, char *text, size_t size)
{
    snprintf(text, size, "%s", group->trace[0]->path);
    char *slash = strrchr(text, '/');
    if (group->n > 1 && slash != NULL) {
        *slash = '\0';
    } else if (group->n > 1) {
        snprintf(text, size, ".");
    }
    return text;
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* The bound of a trace with every capacity, over the minibatches that its group replays. */
static rudder_status_t laboratory_bound(laboratory_t *lab, int32_t trace, const atomic_int *stop, rudder_error_t *error)
{
    const scan_t *scan = lab->by[trace];
    const scan_group_t *group = lab->group;
    int64_t capacity[CHOICES_MOST];
    trace_reader_t *reader = NULL;
    const trace_info_t *info;
    bound_t *bound = NULL;
    while (group->trace + group->n <= lab->by + trace) {
        group++;
    }
    for (int32_t c = 0; c < lab->n_capacities; c++) {
        capacity[c] = lab->rows[(int64_t)c * lab->n_traces + trace];
    }
    rudder_status_t status = trace_reader_open(scan->path, &reader, &info, error);
    status = status == RUDDER_OK ? bound_open(capacity, lab->n_capacities, &bound, error) : status;
    for (int64_t t = 0; t < group->minibatches && status == RUDDER_OK; t++) {
        trace_minibatch_t minibatch;
        int end;
        status = trace_reader_next(reader, &minibatch, &end, error);
        if (status == RUDDER_OK) {
            status = bound_add(bound, minibatch.ids, end ? 0 : minibatch.n, error);
        }
        if (status == RUDDER_OK) {
            atomic_fetch_add_explicit(&lab->progress, minibatch.n, memory_order_relaxed);
            status = atomic_load_explicit(stop, memory_order_relaxed) ? RUDDER_E_INTERRUPTED : RUDDER_OK;
        }
    }
    for (int32_t c = 0; c < lab->n_capacities && status == RUDDER_OK; c++) {
        lab->bound[(int64_t)c * lab->n_traces + trace] = bound_rows(bound, c);
    }
    bound_close(bound);
    trace_reader_close(reader);
    return status;
}

/* Replays first, then the bounds. */
static rudder_status_t laboratory_work(void *context, int32_t i, const atomic_int *stop, rudder_error_t *error)
{
    laboratory_t *lab = context;
    return i < lab->n_jobs ? replay_run(&lab->jobs[i].replay, stop, error)
                           : laboratory_bound(lab, i - lab->n_jobs, stop, error);
}

static int laboratory_descending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* At most: of the jobs that can run at once, the largest. */
static rudder_status_t laboratory_state_memory(const laboratory_t *lab, int64_t *ids, rudder_error_t *error)
{
    char a[32], b[32];
    const int32_t n = lab->n_jobs + lab->n_traces;
    int64_t *bytes = calloc((size_t)n, sizeof *bytes), sum = 0;
    if (bytes == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId32 " replays", n);
    }
    *ids = 0;
    for (int32_t i = 0; i < lab->n_jobs; i++) {
        bytes[i] = lab->jobs[i].replay.memory;
        for (int32_t r = 0; r < lab->jobs[i].replay.group->n; r++) {
            *ids += lab->jobs[i].replay.group->trace[r]->ids;
        }
    }
    for (int32_t i = 0; i < lab->n_traces; i++) {
        bytes[lab->n_jobs + i] = bound_memory_for(lab->by[i]->distinct, lab->by[i]->minibatches, lab->n_capacities) +
                                 lab->by[i]->reader_bytes;
        *ids += lab->by[i]->ids;
    }
    qsort(bytes, (size_t)n, sizeof *bytes, laboratory_descending);
    for (int32_t i = 0; i < n && i < lab->threads; i++) {
        sum += bytes[i];
    }
    free(bytes);
    log_line(LOG_INFO, "%" PRId32 " replay%s and the bound of %s ids; memory of %" PRId32 " at once: at most %s",
             lab->n_jobs, lab->n_jobs == 1 ? "" : "s", text_of_count(*ids, a, sizeof a),
             lab->threads < n ? lab->threads : n, text_of_bytes(sum, b, sizeof b));
    return RUDDER_OK;
}

rudder_status_t laboratory_run(laboratory_t *lab, rudder_error_t *error)
{
    int64_t ids = 0;
    RUDDER_TRY(laboratory_state_memory(lab, &ids, error));
    atomic_store(&lab->progress, 0);
    const jobs_t jobs = {.n = lab->n_jobs + lab->n_traces,
                         .threads = lab->threads,
                         .run = laboratory_work,
                         .context = lab,
                         .done = &lab->progress,
                         .total = ids > 0 ? ids : 1,
                         .what = "replaying"};
    return jobs_run(&jobs, error);
}

void laboratory_close(laboratory_t *lab)
{
    if (lab == NULL) {
        return;
    }
    oracle_report_close(lab->oracle);
    if (lab->oracle_lines != NULL) {
        fclose(lab->oracle_lines);
    }
    free(lab->cases);
    free(lab->case_name);
    for (int32_t i = 0; i < lab->n_traces; i++) {
        free(lab->path[i]);
        if (lab->scan != NULL) {
            scan_free(&lab->scan[i]);
        }
    }
    free(lab->path);
    free(lab->changes);
    free(lab->owner_cost);
    free(lab->latency);
    free(lab->scan);
    free(lab->by);
    free(lab->group);
    free(lab->rows);
    free(lab->tracked);
    free(lab->bound);
    free(lab->jobs);
    free(lab->results);
    free(lab);
}
