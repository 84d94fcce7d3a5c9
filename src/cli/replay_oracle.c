/*
 * Every run of every rank is a job of its own: a decider, a rule, the oracle's own answer or a search. The LLM's come last
 * and one after another, since they share one model.
 */
#include "cli/replay_oracle.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "control/context.h"
#include "report/table.h"
#include "trace/jobs.h"
#include "trace/oracle.h"

enum { ORACLE_SEARCH_WIDTH = 4, ORACLE_WHO_TEXT = 80, ORACLE_OWN = 8 /* that are added to the deciders given */ };

/* A trace in memory, and what its minibatches took. */
typedef struct oracle_trace {
    const scan_t *scan;
    trace_t trace;
    double sample, compute; /* means, 0: not known */
} oracle_trace_t;

/* Who decides. */
typedef struct oracle_by {
    char name[ORACLE_WHO_TEXT];
    int sign; /* of a search, else 0 */
    int slow;
} oracle_by_t;

/* Case x rank x who. */
typedef struct oracle_job {
    const oracle_case_t *of;
    const oracle_by_t *by;
    int32_t rank;
    oracle_setup_t setup;
    rudder_type_config_t type;
    rudder_config_t library;
    oracle_result_t result; /* of a search: the rows alone */
    FILE *lines;            /* into memory: files get them run by run; NULL: not wanted */
    char *text;
    size_t text_size;
    json_t line;
    int64_t points; /* told so far */
    _Atomic int64_t *progress;
} oracle_job_t;

struct oracle_report {
    const oracle_case_t *cases;
    int32_t n_cases, n_by, n_traces, n_jobs, n_fast;
    int64_t horizon, period;
    oracle_by_t *by;
    oracle_trace_t *traces;
    oracle_job_t *jobs; /* by case, rank, who */
    int32_t *order;     /* [n_jobs]: in which they run; the slow ones last */
    _Atomic int64_t progress;
};

/* ---- Who is asked ----------------------------------------------------------------------------------------------- */

static void oracle_add_by(oracle_report_t *report, const char *name, int sign)
{
    for (int32_t i = 0; i < report->n_by; i++) {
        if (strcmp(report->by[i].name, name) == 0) {
            return;
        }
    }
    oracle_by_t *by = &report->by[report->n_by++];
    snprintf(by->name, sizeof by->name, "%s", name);
    by->sign = sign;
    by->slow = strcmp(name, "llm") == 0;
}

static rudder_status_t oracle_list_by(oracle_report_t *report, const char *const *deciders, int32_t n,
                                      rudder_error_t *error)
{
    char always[32];
    report->by = calloc((size_t)n + ORACLE_OWN, sizeof *report->by);
    if (report->by == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "oracle: no memory for %d deciders", (int)n);
    }
    snprintf(always, sizeof always, "fixed:%" PRId64, report->period);
    oracle_add_by(report, "never", 0);
    oracle_add_by(report, always, 0);
    oracle_add_by(report, "once", 0);
    oracle_add_by(report, "gain", 0);
    for (int32_t i = 0; i < n; i++) {
        oracle_add_by(report, deciders[i], 0);
    }
    oracle_add_by(report, "better", 0);
    oracle_add_by(report, "worse", 0);
    oracle_add_by(report, "search, fewest", 1);
    oracle_add_by(report, "search, most", -1);
    return RUDDER_OK;
}

/* ---- Traces ----------------------------------------------------------------------------------------------------- */

/* What a minibatch takes on average. */
static void oracle_mean_times(oracle_trace_t *trace, const scan_group_t *group)
{
    for (int64_t t = 0; t < group->minibatches; t++) {
        trace->sample += scan_sample(group, t) / (double)group->minibatches;
        trace->compute += scan_compute(group, t) / (double)group->minibatches;
    }
}

/* The trace of a rank in memory, as far as all ranks of its group go; loads it when it is not there. */
static rudder_status_t oracle_find_trace(oracle_report_t *report, const scan_group_t *group, int32_t rank,
                                         const oracle_trace_t **found, rudder_error_t *error)
{
    const scan_t *scan = group->trace[rank];
    for (int32_t i = 0; i < report->n_traces; i++) {
        if (report->traces[i].scan == scan) {
            *found = &report->traces[i];
            return RUDDER_OK;
        }
    }
    oracle_trace_t *trace = &report->traces[report->n_traces];
    trace->scan = scan;
    RUDDER_TRY(trace_load(scan->path, &trace->trace, error));
    report->n_traces++;
    if (trace->trace.n_minibatches > group->minibatches) {
        trace->trace.n_minibatches = group->minibatches;
    }
    oracle_mean_times(trace, group);
    *found = trace;
    return RUDDER_OK;
}

/* ---- Jobs ------------------------------------------------------------------------------------------------------- */

static oracle_clock_t oracle_job_clock(const oracle_job_t *job, const oracle_trace_t *trace)
{
    const replay_settings_t *settings = job->of->job->settings;
    const link_t *link = &replay_links(settings, trace->scan)->common;
    const double row_bytes = (double)replay_row_bytes(settings, trace->scan);
    return (oracle_clock_t){.sample = settings->sample >= 0 ? settings->sample : trace->sample,
                            .compute = settings->compute >= 0 ? settings->compute : trace->compute,
                            .latency = 2 * link->latency,
                            .row = link->bytes_per_second > 0 ? row_bytes / link->bytes_per_second : 0};
}

static void oracle_set_up(const oracle_report_t *report, oracle_job_t *job, const oracle_trace_t *trace)
{
    const replay_job_t *replay = job->of->job;
    const int64_t row_bytes = replay_row_bytes(replay->settings, trace->scan);
    replay_library(replay, job->rank, &job->type, &job->library);
    job->type.row_bytes = row_bytes > 0 ? (size_t)row_bytes : job->type.row_bytes;
    job->type.halo = trace->trace.halo;
    job->type.halo_degree = trace->trace.halo_degree;
    job->type.n_halo = trace->trace.n_halo;
    job->library.types = &job->type;
    job->library.decider = NULL;
    job->library.n_owners = 0; /* what rows cost is nothing to a policy with replacements */
    job->library.owner_cost = RUDDER_OWNER_COST_OFF;
    job->setup = (oracle_setup_t){.trace = &trace->trace,
                                  .config = &job->library,
                                  .horizon = report->horizon,
                                  .clock = oracle_job_clock(job, trace)};
}

static rudder_status_t oracle_list_jobs(oracle_report_t *report, FILE *lines, rudder_error_t *error)
{
    int32_t ranks = 0, slow;
    for (int32_t c = 0; c < report->n_cases; c++) {
        ranks += report->cases[c].job->group->n;
    }
    const size_t n = (size_t)ranks * (size_t)report->n_by;
    report->traces = calloc((size_t)ranks, sizeof *report->traces);
    report->jobs = calloc(n, sizeof *report->jobs);
    report->order = calloc(n, sizeof *report->order);
    if (report->traces == NULL || report->jobs == NULL || report->order == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "oracle: no memory for %zu runs", n);
    }
    for (int32_t c = 0; c < report->n_cases; c++) {
        const scan_group_t *group = report->cases[c].job->group;
        for (int32_t r = 0; r < group->n; r++) {
            const oracle_trace_t *trace;
            RUDDER_TRY(oracle_find_trace(report, group, r, &trace, error));
            for (int32_t b = 0; b < report->n_by; b++) {
                oracle_job_t *job = &report->jobs[report->n_jobs++];
                job->of = &report->cases[c];
                job->by = &report->by[b];
                job->rank = r;
                job->progress = &report->progress;
                oracle_set_up(report, job, trace);
                if (lines != NULL && (job->lines = open_memstream(&job->text, &job->text_size)) == NULL) {
                    return RUDDER_FAIL(error, RUDDER_E_MEMORY, "oracle: no memory for lines");
                }
            }
        }
    }
    for (int32_t i = 0; i < report->n_jobs; i++) {
        report->n_fast += !report->jobs[i].by->slow;
    }
    slow = report->n_fast;
    for (int32_t i = 0, fast = 0; i < report->n_jobs; i++) {
        report->order[report->jobs[i].by->slow ? slow++ : fast++] = i;
    }
    return RUDDER_OK;
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* Rows take time on the clock. */
static int oracle_is_timed(const oracle_job_t *job)
{
    return job->setup.clock.row > 0 || job->setup.clock.latency > 0;
}

static const char *oracle_verdict(rudder_verdict_t verdict)
{
    return verdict == RUDDER_REPLACE ? "replace" : verdict == RUDDER_KEEP ? "keep" : "none";
}

/* One line: what `rudder agent --selftest --situations` wants (name, kind, expect), the ways, the answer, the context. */
static void oracle_line(const oracle_job_t *job, const oracle_point_t *point, json_t *json)
{
    char text[512];
    const int timed = oracle_is_timed(job);
    snprintf(text, sizeof text, "%s@%" PRId64, job->by->name, point->context.minibatch);
    json_object(json, NULL);
    json_string(json, "name", text);
    json_string(json, "kind", oracle_is_clear(point) ? "clear" : "close");
    json_string(json, "expect", oracle_verdict(point->label));
    json_string(json, "expect_seconds", timed ? oracle_verdict(point->label_seconds) : NULL);
    json_string(json, "trace", job->of->job->group->trace[job->rank]->path);
    json_string(json, "policy", job->of->policy);
    json_string(json, "start", job->of->start);
    json_double(json, "alpha", job->library.alpha);
    json_string(json, "by", job->by->name);
    json_string(json, "said", oracle_verdict(point->answer.verdict));
    json_string(json, "taken", oracle_verdict(point->taken));
    json_double(json, "margin", point->answer.margin);
    json_double(json, "latency_ms", point->answer.latency_ms);
    json_int(json, "horizon", point->horizon);
    json_int(json, "keep_rows", point->keep.rows);
    json_int(json, "replace_rows", point->replace.rows);
    json_double(json, "keep_seconds", timed ? point->keep.seconds : NAN);
    json_double(json, "replace_seconds", timed ? point->replace.seconds : NAN);
    context_json(json, &point->context);
    rudder_context_words(&point->context, text, sizeof text);
    json_string(json, "words", text);
    json_end_object(json);
}

static void oracle_told(void *context, const oracle_point_t *point)
{
    oracle_job_t *job = context;
    if (job->lines != NULL) {
        json_reset(&job->line);
        oracle_line(job, point, &job->line);
        if (!job->line.failed) {
            fprintf(job->lines, "%s\n", job->line.text);
        }
    }
    job->points++;
    atomic_fetch_add_explicit(job->progress, 1, memory_order_relaxed);
}

/* Points as the progress line counts them: one a period, whatever the run does. */
static int64_t oracle_job_points(const oracle_job_t *job)
{
    return job->setup.trace->n_minibatches / job->library.period + 1;
}

static rudder_status_t oracle_run_job(oracle_job_t *job, rudder_error_t *error)
{
    const rudder_status_t status =
        job->by->sign == 0
            ? oracle_run(&job->setup, job->by->name, oracle_told, job, &job->result, error)
            : oracle_search(&job->setup, job->by->sign, ORACLE_SEARCH_WIDTH, &job->result.fetched_rows, error);
    atomic_fetch_add_explicit(job->progress, oracle_job_points(job) - job->points, memory_order_relaxed);
    return status;
}

/* Job i of the order; behind the fast ones, all slow ones. */
static rudder_status_t oracle_work(void *context, int32_t i, const atomic_int *stop, rudder_error_t *error)
{
    oracle_report_t *report = context;
    const int32_t end = i < report->n_fast ? i + 1 : report->n_jobs;
    for (; i < end; i++) {
        RUDDER_TRY(oracle_run_job(&report->jobs[report->order[i]], error));
        if (atomic_load_explicit(stop, memory_order_relaxed)) {
            return RUDDER_E_INTERRUPTED;
        }
    }
    return RUDDER_OK;
}

static rudder_status_t oracle_run_all(oracle_report_t *report, int32_t threads, rudder_error_t *error)
{
    char text[32];
    int64_t points = 0, most = 0, bytes, held = 0;
    for (int32_t i = 0; i < report->n_jobs; i++) {
        const oracle_job_t *job = &report->jobs[i];
        RUDDER_TRY(oracle_memory(&job->setup, job->by->sign != 0 ? ORACLE_SEARCH_WIDTH : 0, &bytes, error));
        most = bytes > most ? bytes : most;
        points += oracle_job_points(job);
    }
    for (int32_t i = 0; i < report->n_traces; i++) {
        held += (int64_t)sizeof(int64_t) * report->traces[i].trace.n_ids;
    }
    const jobs_t jobs = {.n = report->n_fast + (report->n_fast < report->n_jobs),
                         .threads = threads,
                         .run = oracle_work,
                         .context = report,
                         .done = &report->progress,
                         .total = points > 0 ? points : 1,
                         .what = "asking the oracle"};
    const int32_t at_once = jobs.n < threads ? jobs.n : threads;
    log_line(LOG_INFO, "oracle: %" PRId32 " runs; memory of %" PRId32 " at once and the traces: at most %s",
             report->n_jobs, at_once, text_of_bytes(most * at_once + held, text, sizeof text));
    return jobs_run(&jobs, error);
}

static rudder_status_t oracle_write_lines(oracle_report_t *report, FILE *lines, rudder_error_t *error)
{
    int written = 1;
    for (int32_t i = 0; i < report->n_jobs && lines != NULL; i++) {
        oracle_job_t *job = &report->jobs[i];
        const int whole = !job->line.failed && !ferror(job->lines);
        const int closed = fclose(job->lines) == 0;
        job->lines = NULL;
        if (!whole || !closed) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "oracle: no memory for the lines of a run");
        }
        written &= fwrite(job->text, 1, job->text_size, lines) == job->text_size;
    }
    if (lines != NULL && (fflush(lines) != 0 || !written)) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "oracle: the lines cannot be written: %s", strerror(errno));
    }
    return RUDDER_OK;
}

void oracle_report_close(oracle_report_t *report)
{
    if (report == NULL) {
        return;
    }
    for (int32_t i = 0; report->jobs != NULL && i < report->n_jobs; i++) {
        if (report->jobs[i].lines != NULL) {
            fclose(report->jobs[i].lines);
        }
        free(report->jobs[i].text);
        json_free(&report->jobs[i].line);
    }
    for (int32_t i = 0; report->traces != NULL && i < report->n_traces; i++) {
        trace_free(&report->traces[i].trace);
    }
    free(report->by);
    free(report->traces);
    free(report->jobs);
    free(report->order);
    free(report);
}

rudder_status_t oracle_report_make(const oracle_case_t *cases, int32_t n_cases, const char *const *deciders,
                                   int32_t n_deciders, int64_t horizon, int32_t threads, FILE *lines,
                                   oracle_report_t **out, rudder_error_t *error)
{
    oracle_report_t *report = calloc(1, sizeof *report);
    if (report == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "oracle: no memory");
    }
    report->cases = cases;
    report->n_cases = n_cases;
    report->period = cases[0].job->settings->library.period;
    report->horizon = horizon > 0 ? horizon : ORACLE_PERIODS * report->period;
    rudder_status_t status = oracle_list_by(report, deciders, n_deciders, error);
    status = status == RUDDER_OK ? oracle_list_jobs(report, lines, error) : status;
    status = status == RUDDER_OK ? oracle_run_all(report, threads, error) : status;
    status = status == RUDDER_OK ? oracle_write_lines(report, lines, error) : status;
    if (status != RUDDER_OK) {
        oracle_report_close(report);
        return status;
    }
    *out = report;
    return RUDDER_OK;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* The sums of a case over its ranks, by who. */
static void oracle_sum(const oracle_report_t *report, int32_t of, int32_t by, oracle_result_t *sum)
{
    *sum = (oracle_result_t){0};
    for (int32_t i = 0; i < report->n_jobs; i++) {
        const oracle_job_t *job = &report->jobs[i];
        const oracle_result_t *r = &job->result;
        if (job->of != &report->cases[of] || job->by != &report->by[by]) {
            continue;
        }
        sum->remote_rows += r->remote_rows;
        sum->hit_rows += r->hit_rows;
        sum->fetched_rows += r->fetched_rows;
        sum->fill_rows += r->fill_rows;
        sum->seconds += r->seconds;
        sum->points += r->points;
        sum->replaced += r->replaced;
        sum->agreed += r->agreed;
        sum->clear += r->clear;
        sum->agreed_clear += r->agreed_clear;
        sum->agreed_seconds += r->agreed_seconds;
        sum->unanswered += r->unanswered;
        sum->stake_rows += r->stake_rows;
        sum->regret_rows += r->regret_rows;
        sum->regret_seconds += r->regret_seconds;
    }
}

/* The fewest and the most rows that any run found. */
typedef struct oracle_leverage {
    int64_t remote;
    int64_t never, always, best, worst; /* rows fetched */
    int32_t best_by, worst_by;
} oracle_leverage_t;

static oracle_leverage_t oracle_leverage(const oracle_report_t *report, int32_t of)
{
    oracle_leverage_t l = {.best = INT64_MAX, .worst = -1};
    for (int32_t b = 0; b < report->n_by; b++) {
        oracle_result_t sum;
        oracle_sum(report, of, b, &sum);
        l.remote = b == 0 ? sum.remote_rows : l.remote; /* of all runs the same; a search does not count them */
        l.never = b == 0 ? sum.fetched_rows : l.never;
        l.always = b == 1 ? sum.fetched_rows : l.always;
        if (sum.fetched_rows < l.best) {
            l.best = sum.fetched_rows;
            l.best_by = b;
        }
        if (sum.fetched_rows > l.worst) {
            l.worst = sum.fetched_rows;
            l.worst_by = b;
        }
    }
    return l;
}

static double oracle_saved(int64_t fetched, int64_t remote)
{
    return remote > 0 ? 100 * (double)(remote - fetched) / (double)remote : 0;
}

static void oracle_share(table_t *table, int64_t part, int64_t whole)
{
    if (whole > 0) {
        table_cell(table, "%.1f %%", 100 * (double)part / (double)whole);
    } else {
        table_cell(table, "-");
    }
}

static void oracle_row(table_t *table, const oracle_by_t *by, const oracle_result_t *sum, int64_t remote, int timed)
{
    char text[32];
    table_cell(table, "%s%s", by->name,
               strcmp(by->name, "better") == 0 || strcmp(by->name, "worse") == 0 ? " (oracle)" : "");
    table_cell(table, "%s", text_of_count(sum->fetched_rows, text, sizeof text));
    table_cell(table, "%.2f %%", oracle_saved(sum->fetched_rows, remote));
    if (by->sign != 0) {
        for (int i = 0; i < 6 + timed; i++) {
            table_cell(table, "-");
        }
        return;
    }
    table_cell(table, "%" PRId64 " of %" PRId64, sum->replaced, sum->points);
    oracle_share(table, sum->agreed, sum->points);
    oracle_share(table, sum->agreed_clear, sum->clear);
    table_cell(table, "%" PRId64, sum->clear);
    table_cell(table, "%s", text_of_count(sum->regret_rows, text, sizeof text));
    oracle_share(table, sum->regret_rows, sum->stake_rows);
    if (timed) {
        oracle_share(table, sum->agreed_seconds, sum->points);
    }
}

static rudder_status_t oracle_print_case(const oracle_report_t *report, int32_t of, FILE *file, rudder_error_t *error)
{
    static const char *const header[] = {"decided by",   "rows fetched",  "saved",        "replaced",
                                         "agrees",       "where clear",   "clear points", "regret, rows",
                                         "of the stake", "agrees in time"};
    const oracle_case_t *c = &report->cases[of];
    const oracle_leverage_t l = oracle_leverage(report, of);
    int timed = 0;
    int64_t unanswered = 0;
    for (int32_t i = 0; i < report->n_jobs; i++) {
        timed |= report->jobs[i].of == c && oracle_is_timed(&report->jobs[i]);
    }
    fprintf(file, "\noracle, %s: policy %s, start %s, capacity %s, horizon ", c->trace, c->policy, c->start,
            c->capacity);
    if (report->horizon >= c->job->group->minibatches) {
        fprintf(file, "to the end\n");
    } else {
        fprintf(file, "%" PRId64 " minibatches\n", report->horizon);
    }
    table_t *table = table_open(timed ? "lrr|r|rrr|rr|r" : "lrr|r|rrr|rr");
    if (table == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "oracle: no memory for a table");
    }
    for (int i = 0; i < 9 + timed; i++) {
        table_cell(table, "%s", header[i]);
    }
    for (int32_t b = 0; b < report->n_by; b++) {
        oracle_result_t sum;
        oracle_sum(report, of, b, &sum);
        oracle_row(table, &report->by[b], &sum, l.remote, timed);
        unanswered += sum.unanswered;
    }
    const rudder_status_t status = table_print(table, file, error);
    table_close(table);
    fprintf(file, "best found %.2f %% saved (%s), worst found %.2f %% (%s): the answers are worth %.2f points\n",
            oracle_saved(l.best, l.remote), report->by[l.best_by].name, oracle_saved(l.worst, l.remote),
            report->by[l.worst_by].name, oracle_saved(l.best, l.remote) - oracle_saved(l.worst, l.remote));
    if (unanswered > 0) {
        fprintf(file, "%" PRId64 " questions had no answer; the fall-back rule took those decisions\n", unanswered);
    }
    return status;
}

rudder_status_t oracle_report_print(const oracle_report_t *report, FILE *file, rudder_error_t *error)
{
    for (int32_t c = 0; c < report->n_cases; c++) {
        RUDDER_TRY(oracle_print_case(report, c, file, error));
    }
    fprintf(file,
            "\n\"agrees\": the way was taken that fetches fewer rows up to the horizon; clear are points whose ways "
            "differ by more than 1 %%;\n\"regret\": rows lost against the better way, summed over the points.\n");
    return RUDDER_OK;
}

static void oracle_run_json(const oracle_by_t *by, const oracle_result_t *sum, int64_t remote, json_t *json)
{
    json_object(json, NULL);
    json_string(json, "by", by->name);
    json_int(json, "fetched_rows", sum->fetched_rows);
    json_double(json, "saved_percent", oracle_saved(sum->fetched_rows, remote));
    if (by->sign == 0) {
        json_int(json, "hit_rows", sum->hit_rows);
        json_int(json, "fill_rows", sum->fill_rows);
        json_double(json, "seconds", sum->seconds);
        json_int(json, "points", sum->points);
        json_int(json, "replaced", sum->replaced);
        json_int(json, "agreed", sum->agreed);
        json_int(json, "clear", sum->clear);
        json_int(json, "agreed_clear", sum->agreed_clear);
        json_int(json, "agreed_seconds", sum->agreed_seconds);
        json_int(json, "unanswered", sum->unanswered);
        json_int(json, "stake_rows", sum->stake_rows);
        json_int(json, "regret_rows", sum->regret_rows);
        json_double(json, "regret_seconds", sum->regret_seconds);
    }
    json_end_object(json);
}

void oracle_report_json(const oracle_report_t *report, json_t *json)
{
    json_array(json, "oracle");
    for (int32_t c = 0; c < report->n_cases; c++) {
        const oracle_case_t *of = &report->cases[c];
        const oracle_leverage_t l = oracle_leverage(report, c);
        int64_t rows = 0;
        for (int32_t r = 0; r < of->job->group->n; r++) {
            rows += of->job->capacity[r];
        }
        json_object(json, NULL);
        json_string(json, "trace", of->trace);
        json_string(json, "policy", of->policy);
        json_string(json, "start", of->start);
        json_string(json, "capacity", of->capacity);
        json_int(json, "capacity_rows", rows);
        json_int(json, "period", report->period);
        json_int(json, "horizon", report->horizon);
        json_int(json, "remote_rows", l.remote);
        json_int(json, "never_rows", l.never);
        json_int(json, "always_rows", l.always);
        json_int(json, "best_rows", l.best);
        json_string(json, "best_by", report->by[l.best_by].name);
        json_int(json, "worst_rows", l.worst);
        json_string(json, "worst_by", report->by[l.worst_by].name);
        json_array(json, "runs");
        for (int32_t b = 0; b < report->n_by; b++) {
            oracle_result_t sum;
            oracle_sum(report, c, b, &sum);
            oracle_run_json(&report->by[b], &sum, l.remote, json);
        }
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
}
