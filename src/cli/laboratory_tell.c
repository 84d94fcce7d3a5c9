/* What the laboratory found: tables, JSON and CSV. */
#include "cli/laboratory.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/replay_rows.h"
#include "policy/policy.h"

/* Adds a rank's figures to a row; times are means over the ranks, of an epoch. */
static void tell_row_add(const laboratory_t *lab, const laboratory_job_t *job, int32_t r, replay_row_t *row)
{
    const scan_group_t *group = job->replay.group;
    const scan_t *scan = group->trace[r];
    const replay_result_t *result = &job->replay.result[r];
    const int64_t steps = scan->info.steps_per_epoch, cell = (group->trace - lab->by) + r;
    const double epochs = steps > 0 && steps < group->minibatches ? (double)group->minibatches / (double)steps : 1;
    const double share = row->rank < 0 ? 1.0 / group->n : 1;
    row->capacity_rows += job->replay.capacity[r];
    row->minibatches = group->minibatches;
    row->remote += result->remote;
    row->hit += result->hit;
    row->fetched += result->fetched;
    row->fill += result->fill;
    row->bytes = replay_row_bytes(&lab->settings, scan) > 0 ? row->bytes + result->bytes : -1;
    row->bound += lab->bound[(int64_t)job->capacity * lab->n_traces + cell];
    row->asked += result->asked;
    row->replaced += result->replaced;
    row->late += result->late;
    if (replay_has_clock(&lab->settings, group)) {
        row->epoch_seconds += share * result->seconds / epochs;
        row->fetch_seconds += share * result->fetch_seconds / epochs;
        row->wait_seconds += share * result->wait_seconds / epochs;
    } else {
        row->epoch_seconds = row->fetch_seconds = row->wait_seconds = NAN;
    }
    const double planned = group->minibatches > 0 ? (double)group->minibatches : 1;
    row->window_mean +=
        policy_looks_ahead(job->replay.policy) ? share * (double)result->window_sum / planned : (double)NAN;
}

/* rank: -1, all. */
static replay_row_t tell_row(const laboratory_t *lab, int32_t number, int32_t rank, const char *trace)
{
    const laboratory_job_t *job = &lab->jobs[number];
    const policy_choice_t *policy = &lab->policy[job->policy];
    const scan_group_t *group = job->replay.group;
    replay_row_t row = {.group = job->group,
                        .capacity = job->capacity,
                        .number = number,
                        .trace = rank < 0 ? trace : group->trace[rank]->path,
                        .policy = policy->label,
                        .start = strcmp(policy->name, "none") == 0 ? NULL : policy->start,
                        .decider = job->decider >= 0 ? lab->decider[job->decider].label : NULL,
                        .capacity_text = lab->capacity[job->capacity].label,
                        .rank = rank < 0 ? -1 : group->trace[rank]->info.rank,
                        .memory = job->replay.memory};
    for (int32_t r = rank < 0 ? 0 : rank; r < (rank < 0 ? group->n : rank + 1); r++) {
        tell_row_add(lab, job, r, &row);
    }
    return row;
}

/* The bound beside the first replay with that trace and capacity. */
static replay_row_t tell_bound_row(const replay_row_t *of)
{
    replay_row_t row = *of;
    row.number = -1;
    row.policy = "bound";
    row.start = row.decider = NULL;
    row.fetched = row.bound;
    row.hit = row.remote - row.bound;
    row.fill = 0;
    row.bytes = of->bytes < 0 || of->fetched == 0 ? of->bytes : of->bytes / of->fetched * of->bound;
    row.asked = row.replaced = row.late = row.memory = -1;
    row.epoch_seconds = row.fetch_seconds = row.wait_seconds = row.window_mean = NAN;
    return row;
}

/* *rows: to be freed. names[n_groups]: what traces are called. */
static rudder_status_t tell_rows(const laboratory_t *lab, char (*names)[LABORATORY_PATH], replay_row_t **rows,
                                 int64_t *n, rudder_error_t *error)
{
    const int64_t most = 2 * (int64_t)lab->n_jobs * (1 + lab->n_traces);
    replay_row_t *row = calloc((size_t)most, sizeof *row);
    if (row == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId64 " rows", most);
    }
    *n = 0;
    for (int32_t i = 0; i < lab->n_jobs; i++) {
        const laboratory_job_t *job = &lab->jobs[i];
        const int first = i == 0 || job->capacity != job[-1].capacity || job->group != job[-1].group;
        const int32_t ranks = lab->options.per_rank && job->replay.group->n > 1 ? job->replay.group->n : 0;
        const char *name = laboratory_name(job->replay.group, names[job->group], LABORATORY_PATH);
        for (int bound = first; bound >= 0; bound--) {
            for (int32_t r = -1; r < ranks; r++) {
                row[*n] = tell_row(lab, i, r, name);
                if (bound) {
                    row[*n] = tell_bound_row(&row[*n]);
                }
                ++*n;
            }
        }
    }
    *rows = row;
    return replay_rows_sort(row, *n, error);
}

static void tell_group(const laboratory_t *lab, int32_t g, const char *name)
{
    char a[32], b[32], c[32], d[32];
    const scan_group_t *group = &lab->group[g];
    int64_t remote = 0, halo = 0, distinct = 0;
    for (int32_t r = 0; r < group->n; r++) {
        remote += group->trace[r]->remote;
        halo += group->trace[r]->info.n_halo;
        distinct += group->trace[r]->distinct;
    }
    printf("%s%s", g > 0 ? "\n" : "", name);
    if (group->n > 1) {
        printf(", %" PRId32 " ranks", group->n);
    }
    printf(": %s minibatches, %s remote rows, %s ids, halo %s\n", text_of_count(group->minibatches, a, sizeof a),
           text_of_count(remote, b, sizeof b), text_of_count(distinct, c, sizeof c), text_of_count(halo, d, sizeof d));
}

static void tell_json(const laboratory_t *lab, int argc, char **argv, const replay_row_t *rows, int64_t n, json_t *json)
{
    json_object(json, NULL);
    json_string(json, "format", "rudder-replay");
    json_int(json, "version", 1);
    json_string(json, "rudder", rudder_version());
    json_array(json, "command");
    json_string(json, NULL, "rudder");
    for (int i = 0; i < argc; i++) {
        json_string(json, NULL, argv[i]);
    }
    json_end_array(json);
    json_object(json, "settings");
    options_echo(lab->command, &lab->options, json);
    json_end_object(json);
    json_array(json, "traces");
    for (int32_t i = 0; i < lab->n_traces; i++) {
        const scan_t *scan = lab->by[i];
        json_object(json, NULL);
        json_string(json, "path", scan->path);
        json_string(json, "kind", scan->info.kind);
        json_string(json, "graph", scan->info.graph);
        json_string(json, "run", scan->info.run);
        json_int(json, "rank", scan->info.rank);
        json_int(json, "ranks", scan->info.ranks);
        json_int(json, "minibatches", scan->minibatches);
        json_int(json, "ids", scan->ids);
        json_int(json, "remote_rows", scan->remote);
        json_int(json, "distinct", scan->distinct);
        json_int(json, "halo", scan->info.n_halo);
        json_int(json, "row_bytes", replay_row_bytes(&lab->settings, scan));
        json_end_object(json);
    }
    json_end_array(json);
    replay_rows_json(json, rows, n);
    if (lab->oracle != NULL) {
        oracle_report_json(lab->oracle, json);
    }
    json_end_object(json);
}

static rudder_status_t tell_write_json(const laboratory_t *lab, int argc, char **argv, const replay_row_t *rows,
                                       int64_t n, rudder_error_t *error)
{
    const char *path = lab->options.json;
    json_t json = {.pretty = 1};
    tell_json(lab, argc, argv, rows, n, &json);
    FILE *file = json.failed ? NULL : fopen(path, "w");
    int failed = file == NULL || fputs(json.text, file) < 0 || putc('\n', file) == EOF;
    failed |= file != NULL && fclose(file) != 0;
    const int no_memory = json.failed;
    json_free(&json);
    if (no_memory) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory", path);
    }
    return failed ? RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", path, strerror(errno)) : RUDDER_OK;
}

rudder_status_t laboratory_tell(const laboratory_t *lab, int argc, char **argv, rudder_error_t *error)
{
    replay_row_t *rows = NULL;
    int64_t n = 0;
    char(*names)[LABORATORY_PATH] = calloc((size_t)lab->n_groups, sizeof *names);
    rudder_status_t status = names != NULL ? tell_rows(lab, names, &rows, &n, error)
                                           : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for names");
    for (int64_t begin = 0, end; begin < n && status == RUDDER_OK; begin = end) {
        for (end = begin; end < n && rows[end].group == rows[begin].group;) {
            end++;
        }
        tell_group(lab, rows[begin].group, rows[begin].trace);
        status = replay_rows_print(rows + begin, end - begin, stdout, error);
    }
    if (status == RUDDER_OK && lab->oracle != NULL) {
        status = oracle_report_print(lab->oracle, stdout, error);
    }
    if (status == RUDDER_OK && lab->options.json != NULL) {
        status = tell_write_json(lab, argc, argv, rows, n, error);
    }
    if (status == RUDDER_OK && lab->options.csv != NULL) {
        status = replay_rows_csv(lab->options.csv, rows, n, error);
    }
    free(rows);
    free(names);
    return status;
}
