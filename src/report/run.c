/* A run from its folder: configuration and summary, then the steps and decisions of every rank, summed as they are read. */
#include "report/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/text.h"

enum { RUN_MAX_CONFIG = 1 << 20, RUN_MAX_SUMMARY = 16 << 20, RUN_PROGRESS = 4096 };

int64_t run_fetched(const run_rows_t *rows)
{
    return rows->miss + rows->fill;
}

double run_saved_percent(int64_t fetched, int64_t remote)
{
    return remote > 0 ? 100 * (1 - (double)fetched / (double)remote) : NAN;
}

/* Sums of hostile numbers stay where two of them can be added. */
static void run_add(int64_t *sum, int64_t n)
{
    const int64_t most = (int64_t)1 << 61;
    *sum = n > most - *sum ? most : *sum + n;
}

static void run_add_rows(run_rows_t *sum, const run_rows_t *rows)
{
    run_add(&sum->minibatches, rows->minibatches);
    run_add(&sum->remote, rows->remote);
    run_add(&sum->hit, rows->hit);
    run_add(&sum->miss, rows->miss);
    run_add(&sum->fill, rows->fill);
    run_add(&sum->bytes, rows->bytes);
}

void run_note(run_t *run, const char *format, ...)
{
    const size_t used = strlen(run->note);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->note + used, sizeof run->note - used, format, arguments);
    va_end(arguments);
    text_clean(run->note);
}

/* ---- config.json and summary.json ---- */

static rudder_status_t run_load_config(run_t *run, rudder_error_t *error)
{
    char path[FILES_MAX_PATH];
    int64_t ranks;
    if (!files_exist(run->path, "config.json")) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: expected the folder of a run with a config.json, found none",
                           run->path);
    }
    RUDDER_TRY(files_join(run->path, "config.json", path, error));
    RUDDER_TRY(read_json(path, RUN_MAX_CONFIG, &run->config, error));
    const cJSON *options = cJSON_GetObjectItemCaseSensitive(run->config, "options");
    const cJSON *effective = cJSON_GetObjectItemCaseSensitive(run->config, "effective");
    RUDDER_TRY(read_count(effective, "ranks", path, &ranks, error));
    if (ranks < 1 || ranks > RUN_MAX_RANKS) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected 1 to %d \"ranks\", found %" PRId64, path, RUN_MAX_RANKS,
                           ranks);
    }
    run->n_ranks = (int32_t)ranks;
    RUDDER_TRY(read_text(options, "name", path, run->label, sizeof run->label, error));
    RUDDER_TRY(read_text(options, "policy", path, run->policy, sizeof run->policy, error));
    RUDDER_TRY(read_text(options, "start", path, run->start, sizeof run->start, error));
    RUDDER_TRY(read_text(options, "decider", path, run->decider, sizeof run->decider, error));
    RUDDER_TRY(read_text(options, "mode", path, run->mode, sizeof run->mode, error));
    RUDDER_TRY(read_text(options, "link", path, run->link, sizeof run->link, error));
    run->emulated = run->link[0] != '\0' && strcmp(run->link, "off") != 0;
    return RUDDER_OK;
}

/* Counts that an early version or a failed run does not have are 0. */
static rudder_status_t run_count(const cJSON *object, const char *key, const char *where, int64_t *value,
                                 rudder_error_t *error)
{
    *value = 0;
    return cJSON_HasObjectItem(object, key) ? read_count(object, key, where, value, error) : RUDDER_OK;
}

static rudder_status_t run_read_rows(const cJSON *object, const char *where, run_rows_t *rows, rudder_error_t *error)
{
    RUDDER_TRY(run_count(object, "minibatches", where, &rows->minibatches, error));
    RUDDER_TRY(run_count(object, "remote_rows", where, &rows->remote, error));
    RUDDER_TRY(run_count(object, "hit_rows", where, &rows->hit, error));
    RUDDER_TRY(run_count(object, "miss_rows", where, &rows->miss, error));
    RUDDER_TRY(run_count(object, "fill_rows", where, &rows->fill, error));
    return run_count(object, "fetched_bytes", where, &rows->bytes, error);
}

static rudder_status_t run_read_times(const cJSON *object, const char *where, double *loader, double *compute,
                                      double *wall, rudder_error_t *error)
{
    const cJSON *time = cJSON_GetObjectItemCaseSensitive(object, "time");
    const cJSON *loader_parts = cJSON_GetObjectItemCaseSensitive(time, "loader");
    const cJSON *compute_parts = cJSON_GetObjectItemCaseSensitive(time, "compute");
    for (int p = 0; p < READ_PARTS; p++) {
        RUDDER_TRY(read_number(loader_parts, read_loader_parts[p], where, &loader[p], error));
        RUDDER_TRY(read_number(compute_parts, read_compute_parts[p], where, &compute[p], error));
    }
    return read_number(time, "wall", where, wall, error);
}

/* Numbers of a rank that may be missing. */
static rudder_status_t run_read_rank_numbers(const cJSON *object, const char *where, run_rank_t *rank,
                                             rudder_error_t *error)
{
    const struct {
        const char *key;
        double *value;
    } numbers[] = {{"threads", &rank->threads},
                   {"owned_nodes", &rank->owned},
                   {"halo_nodes", &rank->halo},
                   {"capacity_rows", &rank->capacity},
                   {"start_rows", &rank->start_rows},
                   {"entered_rows", &rank->entered},
                   {"untracked_rows", &rank->untracked},
                   {"window_mean", &rank->window_mean},
                   {"window_max", &rank->window_max},
                   {"traffic_in_bytes", &rank->traffic_in},
                   {"traffic_out_bytes", &rank->traffic_out},
                   {"library_bytes", &rank->library_bytes},
                   {"loader_bytes", &rank->loader_bytes},
                   {"peak_rss_bytes", &rank->peak_rss_bytes}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        RUDDER_TRY(read_number(object, numbers[i].key, where, numbers[i].value, error));
    }
    return RUDDER_OK;
}

/* An array of n numbers, NAN for null, into a new array; *values NULL: there is none. */
static rudder_status_t run_read_array(const cJSON *object, const char *key, const char *where, int64_t n,
                                      double **values, rudder_error_t *error)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(object, key), *item;
    int64_t i = 0;
    if (array == NULL || cJSON_IsNull(array)) {
        return RUDDER_OK;
    }
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != n) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected \"%s\" of %" PRId64 " numbers, found %s", where, key, n,
                           cJSON_IsArray(array) ? "another length" : "something else");
    }
    double *copy = malloc((size_t)(n + 1) * sizeof *copy);
    if (copy == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for \"%s\"", where, key);
    }
    *values = copy;
    cJSON_ArrayForEach(item, array)
    {
        if (!cJSON_IsNull(item) && !(cJSON_IsNumber(item) && isfinite(item->valuedouble))) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s: expected a number as \"%s\"[%" PRId64 "], found something else", where, key, i);
        }
        copy[i++] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    }
    return RUDDER_OK;
}

static rudder_status_t run_read_detail(run_t *run, const cJSON *detail, const char *path, rudder_error_t *error)
{
    char where[FILES_MAX_PATH + 64];
    int64_t number;
    RUDDER_TRY(read_count(detail, "rank", path, &number, error));
    if (number >= run->n_ranks || run->rank[number].has_detail) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected each rank below %" PRId32 " once, found %" PRId64, path,
                           run->n_ranks, number);
    }
    snprintf(where, sizeof where, "%s: rank %" PRId64, path, number);
    run_rank_t *rank = &run->rank[number];
    rank->has_detail = 1;
    RUDDER_TRY(read_text(detail, "host", where, rank->host, sizeof rank->host, error));
    RUDDER_TRY(run_read_rows(detail, where, &rank->rows, error));
    RUDDER_TRY(run_read_times(detail, where, rank->loader, rank->compute, &rank->wall, error));
    RUDDER_TRY(run_read_rank_numbers(detail, where, rank, error));
    return run_read_array(detail, "traffic_in_by_rank", where, run->n_ranks, &rank->traffic_in_by_rank, error);
}

static rudder_status_t run_read_verdicts(const cJSON *summary, const char *path, run_verdicts_t *verdicts,
                                         rudder_error_t *error)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(summary, "decisions");
    const cJSON *latency = cJSON_GetObjectItemCaseSensitive(object, "latency_ms");
    const cJSON *predictions = cJSON_GetObjectItemCaseSensitive(object, "predictions");
    const struct {
        const cJSON *object;
        const char *key;
        int64_t *value;
    } counts[] = {{object, "asked", &verdicts->asked},
                  {object, "answered", &verdicts->answered},
                  {object, "applied", &verdicts->applied},
                  {object, "replaced", &verdicts->replaced},
                  {object, "kept", &verdicts->kept},
                  {object, "nothing_stale", &verdicts->nothing_stale},
                  {object, "late", &verdicts->late},
                  {object, "invalid", &verdicts->invalid},
                  {object, "failed", &verdicts->failed},
                  {object, "fallback", &verdicts->fallback},
                  {predictions, "made", &verdicts->predictions},
                  {predictions, "hits_true", &verdicts->predictions_hits_true},
                  {predictions, "rows_true", &verdicts->predictions_rows_true}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        RUDDER_TRY(run_count(counts[i].object, counts[i].key, path, counts[i].value, error));
    }
    RUDDER_TRY(read_number(object, "age_minibatches", path, &verdicts->age, error));
    RUDDER_TRY(read_number(object, "agent_cpu_seconds", path, &verdicts->agent_cpu_seconds, error));
    RUDDER_TRY(read_number(latency, "mean", path, &verdicts->latency_mean, error));
    RUDDER_TRY(read_number(latency, "p50", path, &verdicts->latency_p50, error));
    return read_number(latency, "p99", path, &verdicts->latency_p99, error);
}

static rudder_status_t run_read_epochs(run_t *run, const char *path, rudder_error_t *error)
{
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(run->summary, "epoch_seconds");
    run->n_epochs = cJSON_IsArray(seconds) ? cJSON_GetArraySize(seconds) : 0;
    RUDDER_TRY(run_read_array(run->summary, "epoch_seconds", path, run->n_epochs, &run->epoch_seconds, error));
    RUDDER_TRY(run_read_array(run->summary, "loss", path, run->n_epochs, &run->loss, error));
    return run_read_array(run->summary, "valid", path, run->n_epochs, &run->valid, error);
}

static rudder_status_t run_load_summary(run_t *run, rudder_error_t *error)
{
    char path[FILES_MAX_PATH];
    const cJSON *detail;
    RUDDER_TRY(files_join(run->path, "summary.json", path, error));
    if (!files_exist(run->path, "summary.json")) {
        snprintf(run->status, sizeof run->status, "killed");
        run_note(run, "There is no summary.json: the run was killed or is still going on. Sums are those of the "
                      "steps, without the start content. ");
        return RUDDER_OK;
    }
    RUDDER_TRY(read_json(path, RUN_MAX_SUMMARY, &run->summary, error));
    const cJSON *summary = run->summary, *details = cJSON_GetObjectItemCaseSensitive(summary, "ranks_detail");
    RUDDER_TRY(read_text(summary, "status", path, run->status, sizeof run->status, error));
    RUDDER_TRY(read_text(summary, "error_text", path, run->error_text, sizeof run->error_text, error));
    RUDDER_TRY(read_text(summary, "graph", path, run->graph, sizeof run->graph, error));
    RUDDER_TRY(read_text(summary, "partition", path, run->partition, sizeof run->partition, error));
    RUDDER_TRY(run_read_rows(summary, path, &run->rows, error));
    RUDDER_TRY(run_read_times(summary, path, run->loader, run->compute, &run->wall, error));
    RUDDER_TRY(run_read_verdicts(summary, path, &run->verdicts, error));
    RUDDER_TRY(run_count(summary, "steps_per_epoch", path, &run->steps_per_epoch, error));
    RUDDER_TRY(read_number(summary, "capacity_rows", path, &run->capacity, error));
    RUDDER_TRY(read_number(summary, "row_bytes", path, &run->row_bytes, error));
    RUDDER_TRY(read_number(summary, "start_rows", path, &run->start_rows, error));
    RUDDER_TRY(read_number(summary, "test", path, &run->test, error));
    RUDDER_TRY(read_number(summary, "seconds", path, &run->seconds, error));
    RUDDER_TRY(run_read_epochs(run, path, error));
    cJSON_ArrayForEach(detail, details)
    {
        RUDDER_TRY(run_read_detail(run, detail, path, error));
    }
    return RUDDER_OK;
}

/* ---- steps and decisions ---- */

static void run_add_step(run_rank_t *rank, const read_step_t *step, double *loader, double *compute)
{
    const double value[SERIES_FIELDS] = {[SERIES_REMOTE] = (double)step->remote,
                                         [SERIES_HIT] = (double)step->hit,
                                         [SERIES_MISS] = (double)step->miss,
                                         [SERIES_FILL] = (double)step->fill,
                                         [SERIES_BOUND] = NAN,
                                         [SERIES_LOSS] = step->loss,
                                         [SERIES_WINDOW] = step->window};
    for (int f = 0; f < SERIES_FIELDS; f++) {
        series_add(rank->series, step->step, (series_field_t)f, value[f]);
    }
    run_add_rows(&rank->steps, &(run_rows_t){1, step->remote, step->hit, step->miss, step->fill, step->bytes});
    for (int p = 0; p < READ_PARTS; p++) {
        loader[p] += step->loader[p];
        compute[p] += step->compute[p];
    }
}

static rudder_status_t run_sum_steps(run_t *run, int32_t r, read_lines_t *lines, rudder_error_t *error)
{
    run_rank_t *rank = &run->rank[r];
    double loader[READ_PARTS] = {0}, compute[READ_PARTS] = {0};
    int64_t last = -1;
    read_step_t step;
    int end = 0;
    rank->series = malloc(sizeof *rank->series);
    if (rank->series == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for the steps of rank %" PRId32, run->path, r);
    }
    series_init(rank->series);
    rank->has_steps = 1;
    for (;;) {
        RUDDER_TRY(read_next_step(lines, &step, &end, error));
        if (end) {
            break;
        }
        if (step.step <= last) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a \"step\" after %" PRId64 ", found %" PRId64,
                               lines->path, last, step.step);
        }
        last = step.step;
        run_add_step(rank, &step, loader, compute);
        if (rank->steps.minibatches % RUN_PROGRESS == 0) {
            log_progress(r, run->n_ranks, "reading %s: rank %" PRId32 ", minibatch %" PRId64, run->label, r, last);
        }
    }
    if (!rank->has_detail) {
        rank->rows = rank->steps;
        memcpy(rank->loader, loader, sizeof loader);
        memcpy(rank->compute, compute, sizeof compute);
    }
    return RUDDER_OK;
}

static rudder_status_t run_load_steps(run_t *run, rudder_error_t *error)
{
    int32_t missing = 0;
    for (int32_t r = 0; r < run->n_ranks; r++) {
        read_lines_t lines;
        int found;
        RUDDER_TRY(read_lines_open(run->path, "steps", r, &lines, &found, error));
        missing += !found;
        const rudder_status_t status = found ? run_sum_steps(run, r, &lines, error) : RUDDER_OK;
        read_lines_close(&lines);
        RUDDER_TRY(status);
    }
    if (missing > 0) {
        run_note(run, "The steps of %" PRId32 " of %" PRId32 " ranks are not in the folder. ", missing, run->n_ranks);
    }
    return RUDDER_OK;
}

static rudder_status_t run_add_decisions(run_t *run, int32_t r, read_lines_t *lines, rudder_error_t *error)
{
    read_decision_t decision;
    int end = 0;
    for (;;) {
        RUDDER_TRY(read_next_decision(lines, &decision, &end, error));
        if (end) {
            return RUDDER_OK;
        }
        if (run->n_decisions == RUN_MAX_DECISIONS) {
            run->decisions_left_out++;
            continue;
        }
        if (grow_array(&run->decision, &run->decisions_capacity, run->n_decisions + 1, sizeof *run->decision) !=
            RUDDER_OK) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for decisions", run->path);
        }
        decision.rank = r;
        run->decision[run->n_decisions++] = decision;
    }
}

/* When it happened, or what is nearest to it: a question that was never asked is one of the fall-back rule. */
static int64_t run_decision_time(const read_decision_t *decision)
{
    return decision->asked >= 0 ? decision->asked : decision->applied;
}

static int run_compare_decisions(const void *a, const void *b)
{
    const read_decision_t *x = a, *y = b;
    const int64_t s = run_decision_time(x), t = run_decision_time(y);
    if (s != t) {
        return s < t ? -1 : 1;
    }
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return (x->number > y->number) - (x->number < y->number);
}

static rudder_status_t run_load_decisions(run_t *run, rudder_error_t *error)
{
    for (int32_t r = 0; r < run->n_ranks; r++) {
        read_lines_t lines;
        int found;
        RUDDER_TRY(read_lines_open(run->path, "decisions", r, &lines, &found, error));
        const rudder_status_t status = found ? run_add_decisions(run, r, &lines, error) : RUDDER_OK;
        read_lines_close(&lines);
        RUDDER_TRY(status);
    }
    if (run->n_decisions > 0) {
        qsort(run->decision, (size_t)run->n_decisions, sizeof *run->decision, run_compare_decisions);
    }
    return RUDDER_OK;
}

/* ---- totals ---- */

/* A failed run tells only the epochs that were done; then the steps know more. */
static void run_total(run_t *run)
{
    run_rows_t sum = {0};
    int32_t n = 0;
    double loader[READ_PARTS] = {0}, compute[READ_PARTS] = {0};
    for (int32_t r = 0; r < run->n_ranks; r++) {
        const run_rank_t *rank = &run->rank[r];
        if (!rank->has_steps && !rank->has_detail) {
            continue;
        }
        n++;
        run_add_rows(&sum, &rank->rows);
        for (int p = 0; p < READ_PARTS; p++) {
            loader[p] += rank->loader[p];
            compute[p] += rank->compute[p];
        }
    }
    if (run->summary == NULL || sum.remote > run->rows.remote) {
        run->rows = sum;
    }
    run->rows.minibatches = sum.minibatches;
    for (int p = 0; p < READ_PARTS && run->summary == NULL && n > 0; p++) {
        run->loader[p] = loader[p] / n;
        run->compute[p] = compute[p] / n;
    }
}

/* The mean over ranks; bins of all ranks become equally wide. */
static rudder_status_t run_merge_series(run_t *run, rudder_error_t *error)
{
    run->mean = malloc(sizeof *run->mean);
    if (run->mean == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for its steps", run->path);
    }
    series_init(run->mean);
    for (int32_t r = 0; r < run->n_ranks; r++) {
        if (run->rank[r].series != NULL) {
            series_merge(run->mean, run->rank[r].series);
        }
    }
    for (int32_t r = 0; r < run->n_ranks; r++) {
        if (run->rank[r].series != NULL) {
            series_coarsen(run->rank[r].series, run->mean->width);
        }
    }
    return RUDDER_OK;
}

static void run_check_lengths(run_t *run)
{
    for (int32_t r = 0; r < run->n_ranks; r++) {
        const run_rank_t *rank = &run->rank[r];
        if (rank->has_detail && rank->has_steps && rank->rows.minibatches != rank->steps.minibatches) {
            run_note(run,
                     "Rank %" PRId32 ": the summary counts %" PRId64 " minibatches, its steps file holds %" PRId64 ". ",
                     r, rank->rows.minibatches, rank->steps.minibatches);
            return;
        }
    }
}

/* Everything that is not known yet. */
static rudder_status_t run_clear(const char *directory, run_t *run, rudder_error_t *error)
{
    *run = (run_t){
        .bound = -1, .capacity = NAN, .row_bytes = NAN, .start_rows = NAN, .test = NAN, .seconds = NAN, .wall = NAN};
    const int n = snprintf(run->path, sizeof run->path, "%s", directory);
    if (n >= (int)sizeof run->path) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "expected a path of less than %d bytes, found %d", FILES_MAX_PATH, n);
    }
    for (int p = 0; p < READ_PARTS; p++) {
        run->loader[p] = run->compute[p] = NAN;
    }
    return RUDDER_OK;
}

static rudder_status_t run_make_ranks(run_t *run, rudder_error_t *error)
{
    run->rank = calloc((size_t)run->n_ranks, sizeof *run->rank);
    if (run->rank == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for %" PRId32 " ranks", run->path, run->n_ranks);
    }
    for (int32_t r = 0; r < run->n_ranks; r++) {
        run_rank_t *rank = &run->rank[r];
        rank->bound = -1;
        rank->wall = rank->threads = rank->owned = rank->halo = rank->capacity = rank->start_rows = rank->entered =
            rank->untracked = rank->window_mean = rank->window_max = rank->traffic_in = rank->traffic_out =
                rank->library_bytes = rank->loader_bytes = rank->peak_rss_bytes = NAN;
        for (int p = 0; p < READ_PARTS; p++) {
            rank->loader[p] = rank->compute[p] = NAN;
        }
    }
    return RUDDER_OK;
}

/* The run's name, else its folder's. */
static void run_find_label(run_t *run)
{
    if (run->label[0] == '\0') {
        char *full = realpath(run->path, NULL);
        const char *path = full != NULL ? full : run->path, *slash = strrchr(path, '/');
        snprintf(run->label, sizeof run->label, "%.63s", slash != NULL && slash[1] != '\0' ? slash + 1 : path);
        free(full);
    }
    text_clean(run->label);
}

static rudder_status_t run_load_all(const char *directory, run_t *run, rudder_error_t *error)
{
    RUDDER_TRY(run_clear(directory, run, error));
    RUDDER_TRY(run_load_config(run, error));
    RUDDER_TRY(run_make_ranks(run, error));
    run_find_label(run);
    RUDDER_TRY(run_load_summary(run, error));
    RUDDER_TRY(run_load_steps(run, error));
    RUDDER_TRY(run_load_decisions(run, error));
    run_total(run);
    run_check_lengths(run);
    RUDDER_TRY(run_find_bound(run, run, error));
    return run_merge_series(run, error);
}

rudder_status_t run_load(const char *directory, run_t *run, rudder_error_t *error)
{
    const rudder_status_t status = run_load_all(directory, run, error);
    log_progress_end();
    if (status != RUDDER_OK) {
        run_free(run);
    }
    return status;
}

void run_free(run_t *run)
{
    for (int32_t r = 0; run->rank != NULL && r < run->n_ranks; r++) {
        free(run->rank[r].series);
        free(run->rank[r].traffic_in_by_rank);
    }
    cJSON_Delete(run->config);
    cJSON_Delete(run->summary);
    free(run->rank);
    free(run->epoch_seconds);
    free(run->loss);
    free(run->valid);
    free(run->mean);
    free(run->decision);
    *run = (run_t){0};
}
