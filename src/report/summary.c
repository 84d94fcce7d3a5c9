/* The summary of a run: totals over the ranks, and each rank by itself. */
#include "report/summary.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "report/table.h"
#include "train/run_log.h"

/* What is summed over ranks. Latencies: of the last answers of every rank, sorted. */
typedef struct summary_total {
    train_counts_t counts;
    train_times_t times; /* means over the ranks */
    int64_t capacity_rows, start_rows;
    int64_t asked, answered, applied, replaced, kept, nothing_stale, late, invalid, failed, fallback;
    int64_t predictions, predictions_hits_true, predictions_rows_true;
    double age, agent_cpu_seconds;
    int64_t n_latencies;
    float *latency_ms;
} summary_total_t;

static int summary_compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void summary_add_rank(summary_total_t *total, const train_rank_t *rank, double weight)
{
    const rudder_stats_t *stats = &rank->stats;
    train_counts_add(&total->counts, &rank->counts);
    train_times_add(&total->times, &rank->times, weight);
    total->capacity_rows += rank->capacity_rows;
    total->start_rows += rank->start_rows;
    total->asked += stats->asked;
    total->answered += stats->answered;
    total->applied += stats->applied;
    total->replaced += stats->replaced;
    total->kept += stats->kept;
    total->nothing_stale += stats->nothing_stale;
    total->late += stats->late;
    total->invalid += stats->invalid;
    total->failed += stats->failed;
    total->fallback += stats->fallback;
    total->predictions += rank->predictions;
    total->predictions_hits_true += rank->predictions_hits_true;
    total->predictions_rows_true += rank->predictions_rows_true;
    total->age += stats->age_mean_minibatches * (double)stats->applied;
    total->agent_cpu_seconds += rank->agent_cpu_seconds;
    const int64_t n = rank->answers < TRAIN_LATENCIES ? rank->answers : TRAIN_LATENCIES;
    for (int64_t i = 0; i < n; i++) {
        total->latency_ms[total->n_latencies++] = rank->latency_ms[i];
    }
}

/* Totals; before the ranks have reported (a failed run) the counts of the epochs that were done. */
static rudder_status_t summary_sum(const train_result_t *result, summary_total_t *total, rudder_error_t *error)
{
    *total = (summary_total_t){0};
    total->latency_ms = malloc((size_t)(result->n_details + 1) * TRAIN_LATENCIES * sizeof *total->latency_ms);
    if (total->latency_ms == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the summary");
    }
    for (int32_t r = 0; r < result->n_details; r++) {
        summary_add_rank(total, &result->detail[r], 1.0 / result->n_details);
    }
    for (int32_t e = 0; e < result->n_epochs && result->n_details == 0; e++) {
        train_counts_add(&total->counts, &result->epoch[e].counts);
    }
    /* The start content is fetched to fill the buffer as any other fill row is. */
    total->counts.fill += total->start_rows;
    total->counts.bytes += total->start_rows * result->row_bytes;
    qsort(total->latency_ms, (size_t)total->n_latencies, sizeof *total->latency_ms, summary_compare);
    return RUDDER_OK;
}

static double summary_share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static double summary_quantile(const summary_total_t *total, double share)
{
    return total->n_latencies > 0 ? (double)total->latency_ms[(int64_t)(share * (double)(total->n_latencies - 1))] : 0;
}

static double summary_mean_latency(const summary_total_t *total)
{
    double sum = 0;
    for (int64_t i = 0; i < total->n_latencies; i++) {
        sum += (double)total->latency_ms[i];
    }
    return total->n_latencies > 0 ? sum / (double)total->n_latencies : 0;
}

static void summary_rows_json(json_t *json, const train_counts_t *counts)
{
    json_int(json, "remote_rows", counts->remote);
    json_int(json, "hit_rows", counts->hit);
    json_int(json, "miss_rows", counts->miss);
    json_double(json, "hit_rate", summary_share(counts->hit, counts->remote));
    json_int(json, "fetched_rows", counts->miss + counts->fill);
    json_int(json, "fill_rows", counts->fill);
    json_int(json, "fetched_bytes", counts->bytes);
}

static void summary_times_json(json_t *json, const train_times_t *times)
{
    json_object(json, "time");
    json_double(json, "wall", times->wall);
    run_loader_times_json(json, "loader", times);
    run_compute_times_json(json, "compute", times);
    json_end_object(json);
}

static void summary_decisions_json(json_t *json, const summary_total_t *total)
{
    json_object(json, "decisions");
    json_int(json, "asked", total->asked);
    json_int(json, "answered", total->answered);
    json_int(json, "applied", total->applied);
    json_int(json, "replaced", total->replaced);
    json_int(json, "kept", total->kept);
    json_int(json, "nothing_stale", total->nothing_stale);
    json_int(json, "late", total->late);
    json_int(json, "invalid", total->invalid);
    json_int(json, "failed", total->failed);
    json_int(json, "fallback", total->fallback);
    json_double(json, "age_minibatches", total->applied > 0 ? total->age / (double)total->applied : 0);
    json_double(json, "agent_cpu_seconds", total->agent_cpu_seconds);
    json_object(json, "latency_ms");
    json_double(json, "mean", summary_mean_latency(total));
    json_double(json, "p50", summary_quantile(total, 0.50));
    json_double(json, "p99", summary_quantile(total, 0.99));
    json_end_object(json);
    json_object(json, "predictions");
    json_int(json, "made", total->predictions);
    json_int(json, "hits_true", total->predictions_hits_true);
    json_int(json, "rows_true", total->predictions_rows_true);
    json_end_object(json);
    json_end_object(json);
}

static void summary_epochs_json(json_t *json, const train_result_t *result)
{
    json_array(json, "epoch_seconds");
    for (int32_t e = 0; e < result->n_epochs; e++) {
        json_double(json, NULL, result->epoch[e].seconds);
    }
    json_end_array(json);
    json_array(json, "loss");
    for (int32_t e = 0; e < result->n_epochs; e++) {
        json_double(json, NULL, result->epoch[e].loss);
    }
    json_end_array(json);
    json_array(json, "valid");
    for (int32_t e = 0; e < result->n_epochs; e++) {
        json_double(json, NULL, result->epoch[e].valid);
    }
    json_end_array(json);
    json_double(json, "test", result->test);
}

/* What went between a rank and each other one, and in all. */
static void summary_traffic_json(json_t *json, const char *key_all, const char *key, const train_result_t *result,
                                 int32_t rank, int out)
{
    const int64_t *traffic = result->traffic + (2 * (int64_t)rank + out) * result->ranks;
    int64_t all = 0;
    json_array(json, key);
    for (int32_t r = 0; r < result->ranks; r++) {
        json_int(json, NULL, traffic[r]);
        all += traffic[r];
    }
    json_end_array(json);
    json_int(json, key_all, all);
}

/* Minibatches that were announced when one was planned, on average. */
static double summary_window(const train_counts_t *counts)
{
    return counts->minibatches > 0 ? (double)counts->window / (double)counts->minibatches : 0;
}

static rudder_status_t summary_rank_json(json_t *json, const train_result_t *result, const train_rank_t *rank,
                                         rudder_error_t *error)
{
    const train_result_t one = {.n_details = 1, .detail = (train_rank_t *)rank, .row_bytes = result->row_bytes};
    summary_total_t total;
    RUDDER_TRY(summary_sum(&one, &total, error));
    json_object(json, NULL);
    json_int(json, "rank", rank->rank);
    json_string(json, "host", rank->host);
    json_int(json, "threads", rank->threads);
    json_int(json, "owned_nodes", rank->owned);
    json_int(json, "halo_nodes", rank->halo);
    json_int(json, "train_nodes", rank->train);
    json_int(json, "capacity_rows", rank->capacity_rows);
    json_int(json, "minibatches", rank->counts.minibatches);
    json_int(json, "seeds", rank->counts.seeds);
    json_int(json, "input_rows", rank->counts.input);
    summary_rows_json(json, &total.counts);
    json_int(json, "start_rows", rank->start_rows);
    json_int(json, "entered_rows", rank->stats.entered_rows);
    json_int(json, "untracked_rows", rank->stats.untracked_rows);
    summary_traffic_json(json, "traffic_in_bytes", "traffic_in_by_rank", result, rank->rank, 0);
    summary_traffic_json(json, "traffic_out_bytes", "traffic_out_by_rank", result, rank->rank, 1);
    json_double(json, "window_mean", summary_window(&rank->counts));
    json_int(json, "window_max", rank->counts.most_window);
    json_int(json, "window_bytes", rank->window_bytes);
    json_int(json, "library_bytes", rank->library_bytes);
    json_int(json, "loader_bytes", rank->loader_bytes);
    json_int(json, "peak_rss_bytes", rank->peak_rss_bytes);
    summary_times_json(json, &rank->times);
    summary_decisions_json(json, &total);
    json_array(json, "messages");
    for (int32_t m = 0; m < rank->n_messages; m++) {
        json_string(json, NULL, rank->message[m]);
    }
    json_end_array(json);
    json_end_object(json);
    free(total.latency_ms);
    return RUDDER_OK;
}

static void summary_head_json(json_t *json, const train_result_t *result, const summary_choice_t *choice)
{
    json_string(json, "status", result->status);
    if (result->error.status != RUDDER_OK) {
        json_string(json, "error", rudder_status_name(result->error.status));
        json_string(json, "error_text", result->error.text);
    }
    json_string(json, "name", choice->name);
    json_string(json, "graph", result->graph);
    json_string(json, "partition", result->method);
    json_string(json, "started", result->start_time);
    json_int(json, "nodes", result->nodes);
    json_int(json, "edges", result->edges);
    json_int(json, "ranks", result->ranks);
    json_string(json, "mpi", result->mpi);
    json_bool(json, "loader_thread", result->threads_multiple);
    json_int(json, "epochs", result->epochs);
    json_int(json, "epochs_done", result->n_epochs);
    json_int(json, "steps_per_epoch", result->steps_per_epoch);
    json_string(json, "policy", choice->policy);
    json_string(json, "start", choice->start);
    json_string(json, "decider", choice->decider);
    json_string(json, "mode", choice->mode);
    json_string(json, "link", choice->link);
}

rudder_status_t summary_write(const train_result_t *result, const summary_choice_t *choice, rudder_error_t *error)
{
    json_t json = {.pretty = 1};
    summary_total_t total;
    RUDDER_TRY(summary_sum(result, &total, error));
    json_object(&json, NULL);
    summary_head_json(&json, result, choice);
    json_int(&json, "capacity_rows", total.capacity_rows);
    json_int(&json, "row_bytes", result->row_bytes);
    summary_rows_json(&json, &total.counts);
    json_int(&json, "start_rows", total.start_rows);
    json_double(&json, "window_mean", summary_window(&total.counts));
    json_int(&json, "window_max", total.counts.most_window);
    json_double(&json, "window_cut_share", summary_share(total.counts.cut, total.counts.minibatches));
    summary_epochs_json(&json, result);
    json_double(&json, "seconds", result->seconds);
    summary_times_json(&json, &total.times);
    summary_decisions_json(&json, &total);
    json_array(&json, "ranks_detail");
    rudder_status_t status = RUDDER_OK;
    for (int32_t r = 0; r < result->n_details && status == RUDDER_OK; r++) {
        status = summary_rank_json(&json, result, &result->detail[r], error);
    }
    json_end_array(&json);
    json_end_object(&json);
    if (status == RUDDER_OK && json.failed) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for summary.json");
    }
    if (status == RUDDER_OK) {
        status = run_write(result->run_dir, "summary.json", json.text, error);
    }
    json_free(&json);
    free(total.latency_ms);
    return status;
}

/* ---- for people ---- */

static void summary_count_cell(table_t *table, int64_t count)
{
    char text[32];
    table_cell(table, "%s", text_of_count(count, text, sizeof text));
}

static void summary_rows_row(table_t *table, const char *name, const summary_total_t *total)
{
    const train_counts_t *counts = &total->counts;
    table_cell(table, "%s", name);
    summary_count_cell(table, total->capacity_rows);
    summary_count_cell(table, counts->remote);
    summary_count_cell(table, counts->hit);
    summary_count_cell(table, counts->miss + counts->fill);
    summary_count_cell(table, counts->fill);
    table_cell(table, "%.1f", (double)counts->bytes * 1e-6);
    table_cell(table, "%.1f %%", 100 * summary_share(counts->hit, counts->remote));
    summary_count_cell(table, total->asked);
    summary_count_cell(table, total->applied);
    summary_count_cell(table, total->replaced);
    summary_count_cell(table, total->fallback);
    if (total->n_latencies > 0) {
        table_cell(table, "%.1f", summary_mean_latency(total));
    } else {
        table_cell(table, "-");
    }
}

static void summary_times_row(table_t *table, const char *name, const train_times_t *times)
{
    const double part[] = {times->wall,      times->sample, times->plan,    times->exchange, times->complete,
                           times->gather,    times->idle,   times->wait,    times->forward,  times->backward,
                           times->allreduce, times->step,   times->evaluate};
    table_cell(table, "%s", name);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        table_cell(table, times->wall < 10 ? "%.3f" : "%.2f", part[i]);
    }
}

static void summary_header(table_t *table, const char *const *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        table_cell(table, "%s", cells[i]);
    }
    table_line(table);
}

/* One row a rank, then the total; rows or times. */
static rudder_status_t summary_fill(const train_result_t *result, table_t *table, int times, rudder_error_t *error)
{
    summary_total_t total;
    for (int32_t r = 0; r < result->n_details; r++) {
        const train_result_t one = {.n_details = 1, .detail = &result->detail[r], .row_bytes = result->row_bytes};
        char name[16];
        snprintf(name, sizeof name, "rank %d", (int)r);
        RUDDER_TRY(summary_sum(&one, &total, error));
        if (times) {
            summary_times_row(table, name, &total.times);
        } else {
            summary_rows_row(table, name, &total);
        }
        free(total.latency_ms);
    }
    table_line(table);
    RUDDER_TRY(summary_sum(result, &total, error));
    if (times) {
        summary_times_row(table, "mean", &total.times);
    } else {
        summary_rows_row(table, "total", &total);
    }
    free(total.latency_ms);
    return RUDDER_OK;
}

static rudder_status_t summary_table(const train_result_t *result, int times, FILE *file, rudder_error_t *error)
{
    static const char *const rows_head[] = {"rows",  "buffer", "remote",  "hit",      "fetched",  "fill", "MB",
                                            "hit %", "asked",  "applied", "replaced", "fallback", "ms"};
    static const char *const times_head[] = {"seconds",  "wall",      "sample", "plan",    "exchange",
                                             "complete", "gather",    "idle",   "wait",    "forward",
                                             "backward", "allreduce", "step",   "evaluate"};
    table_t *table = table_open(times ? "lr|rrrrrr|rrrrrr" : "lr|rrrrrr|rrrrr");
    if (table == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a table");
    }
    if (times) {
        summary_header(table, times_head, sizeof times_head / sizeof *times_head);
    } else {
        summary_header(table, rows_head, sizeof rows_head / sizeof *rows_head);
    }
    rudder_status_t status = summary_fill(result, table, times, error);
    if (status == RUDDER_OK) {
        status = table_print(table, file, error);
    }
    table_close(table);
    return status;
}

/* How far was looked ahead, and what the limit of memory did to that. */
static rudder_status_t summary_print_window(const train_result_t *result, FILE *file, rudder_error_t *error)
{
    summary_total_t total;
    RUDDER_TRY(summary_sum(result, &total, error));
    const train_counts_t *counts = &total.counts;
    if (counts->most_window > 0 || counts->cut > 0) {
        fprintf(file, "\nwindow: %.1f minibatches ahead, at most %lld", summary_window(counts),
                (long long)counts->most_window);
        if (counts->cut > 0) {
            fprintf(file, "; cut short by --window-memory for %.0f %% of the minibatches",
                    100 * summary_share(counts->cut, counts->minibatches));
        }
        fputc('\n', file);
    }
    free(total.latency_ms);
    return RUDDER_OK;
}

rudder_status_t summary_print(const train_result_t *result, FILE *file, rudder_error_t *error)
{
    RUDDER_TRY(summary_table(result, 0, file, error));
    fputc('\n', file);
    RUDDER_TRY(summary_table(result, 1, file, error));
    RUDDER_TRY(summary_print_window(result, file, error));
    if (!isnan(result->test)) {
        fprintf(file, "\naccuracy: validation %.4f, test %.4f\n", result->valid, result->test);
    }
    fprintf(file, "run directory: %s\n", result->run_dir);
    return RUDDER_OK;
}
