/* rudder inspect: checks a graph or partition directory as training does, or a trace as replay does, and describes it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/parts_table.h"
#include "cli/trace_facts.h"
#include "graph/files.h"
#include "graph/graph.h"
#include "partition/partition.h"
#include "report/table.h"
#include "trace/reader.h"

enum { INSPECT_BARS = 40, INSPECT_TOP = 10, INSPECT_BINS = 65 };

static const option_spec_t cli_inspect_options[] = {{.name = NULL}};

static const option_command_t cli_inspect_command = {
    .name = "inspect",
    .arguments = "GRAPH|PARTS|TRACE",
    .summary = "describe a graph or partition directory, or a trace",
    .text = "Checks every file first, as training does: exit code 3 and a message with file, expected and found where "
            "something is wrong.\n\n"
            "  rudder inspect wordnet\n"
            "  rudder inspect wordnet-4\n"
            "  rudder inspect runs/first/trace.rank0.rtr",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = cli_inspect_options};

static const char *inspect_bar(int64_t count, int64_t most)
{
    static const char bar[] = "########################################";
    const int64_t n = most > 0 ? (count * INSPECT_BARS + most - 1) / most : 0;
    return bar + (INSPECT_BARS - n);
}

static rudder_status_t inspect_print(table_t *table, rudder_error_t *error)
{
    const rudder_status_t status = table != NULL ? table_print(table, stdout, error)
                                                 : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a table");
    table_close(table);
    return status;
}

/* ---- graph --------------------------------------------------------------------------------------------------------- */

/* In-degrees in bins 0, 1, 2-3, 4-7, ... */
static rudder_status_t inspect_degrees(const graph_t *g, rudder_error_t *error)
{
    int64_t bin[INSPECT_BINS] = {0}, most = 0, largest = 0;
    int last = 0;
    char text[32];
    for (int64_t v = 0; v < g->n_nodes; v++) {
        const int64_t degree = g->indptr[v + 1] - g->indptr[v];
        const int b = degree == 0 ? 0 : 64 - __builtin_clzll((unsigned long long)degree);
        bin[b]++;
        last = b > last ? b : last;
        most = bin[b] > most ? bin[b] : most;
        largest = degree > largest ? degree : largest;
    }
    printf("\nin-degree: mean %.2f, largest %s\n", (double)g->n_edges / (double)g->n_nodes,
           text_of_count(largest, text, sizeof text));
    table_t *table = table_open("rrl");
    for (int b = 0; table != NULL && b <= last; b++) {
        if (b < 2) {
            table_cell(table, "%d", b);
        } else {
            table_cell(table, "%" PRId64 "-%" PRId64, (int64_t)1 << (b - 1), ((int64_t)1 << (b - 1)) * 2 - 1);
        }
        table_cell(table, "%s", text_of_count(bin[b], text, sizeof text));
        table_cell(table, "%s", inspect_bar(bin[b], most));
    }
    return inspect_print(table, error);
}

/* The largest classes, and the rest in one line. */
static rudder_status_t inspect_labels(const graph_t *g, rudder_error_t *error)
{
    int64_t *count = calloc((size_t)g->n_classes + 1, sizeof *count), none = 0, shown = 0, most = 0;
    char text[32];
    if (count == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId32 " classes", g->n_classes);
    }
    for (int64_t v = 0; v < g->n_nodes; v++) {
        *(g->label[v] < 0 ? &none : &count[g->label[v]]) += 1;
    }
    printf("\nlabels: %" PRId32 " classes, %s nodes without\n", g->n_classes, text_of_count(none, text, sizeof text));
    table_t *table = table_open("rrl");
    const int32_t rows = g->n_classes < INSPECT_TOP ? g->n_classes : INSPECT_TOP;
    for (int32_t i = 0; table != NULL && i < rows; i++) {
        int32_t best = 0;
        for (int32_t c = 1; c < g->n_classes; c++) {
            best = count[c] > count[best] ? c : best;
        }
        most = i == 0 ? count[best] : most;
        table_cell(table, "%" PRId32, best);
        table_cell(table, "%s", text_of_count(count[best], text, sizeof text));
        table_cell(table, "%s", inspect_bar(count[best], most));
        shown += count[best];
        count[best] = -1;
    }
    free(count);
    RUDDER_TRY(inspect_print(table, error));
    if (g->n_classes > rows) {
        printf("%" PRId32 " other classes: %s nodes\n", g->n_classes - rows,
               text_of_count(g->n_nodes - none - shown, text, sizeof text));
    }
    return RUDDER_OK;
}

static void inspect_features(const float *feat, int64_t n, int32_t width)
{
    double sum = 0, square = 0;
    float low = INFINITY, high = -INFINITY;
    int64_t zeros = 0;
    const int64_t count = n * width;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)feat[i];
        square += (double)feat[i] * (double)feat[i];
        low = feat[i] < low ? feat[i] : low;
        high = feat[i] > high ? feat[i] : high;
        zeros += feat[i] == 0;
    }
    const double mean = sum / (double)count, variance = square / (double)count - mean * mean;
    printf("\nfeatures: %" PRId32 " a node, mean %.4g, standard deviation %.4g, range %.4g to %.4g, %.1f %% zero\n",
           width, mean, sqrt(variance > 0 ? variance : 0), (double)low, (double)high,
           100.0 * (double)zeros / (double)count);
}

static rudder_status_t inspect_graph(const char *directory, rudder_error_t *error)
{
    graph_t g;
    int64_t split[4] = {0}, loops = 0;
    char a[32], b[32], c[32], d[32];
    RUDDER_TRY(graph_open(directory, &g, error));
    for (int64_t v = 0; v < g.n_nodes; v++) {
        split[g.split[v]]++;
        for (int64_t e = g.indptr[v]; e < g.indptr[v + 1]; e++) {
            loops += g.indices[e] == v;
        }
    }
    printf("graph %s: %s nodes, %s in-edges (%s self-loops)\n", g.name, text_of_count(g.n_nodes, a, sizeof a),
           text_of_count(g.n_edges, b, sizeof b), text_of_count(loops, c, sizeof c));
    printf("split: %s train, %s valid, %s test, %s none\n", text_of_count(split[SPLIT_TRAIN], a, sizeof a),
           text_of_count(split[SPLIT_VALID], b, sizeof b), text_of_count(split[SPLIT_TEST], c, sizeof c),
           text_of_count(split[SPLIT_NONE], d, sizeof d));
    inspect_features(g.feat, g.n_nodes, g.n_feat);
    rudder_status_t status = inspect_degrees(&g, error);
    status = status == RUDDER_OK ? inspect_labels(&g, error) : status;
    graph_close(&g);
    return status;
}

/* ---- parts --------------------------------------------------------------------------------------------------------- */

/* What the table shows of one part; every original id must come up once over all parts. */
static rudder_status_t inspect_part(const char *directory, const parts_t *parts, const part_t *part, uint8_t *seen,
                                    make_part_t *stats, rudder_error_t *error)
{
    *stats = (make_part_t){.nodes = part->n_owned, .edges = part->n_edges, .halo = part->n_halo};
    for (int64_t i = 0; i < part->n_owned; i++) {
        stats->train += part->split[i] == SPLIT_TRAIN;
        if (seen[part->orig_id[i]]++ != 0) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s/part%" PRId32 "/orig_id.npy: expected every id once, found %" PRId64
                               " again at [%" PRId64 "]",
                               directory, part->number, part->orig_id[i], i);
        }
    }
    for (int64_t e = 0; e < part->n_edges; e++) {
        const int64_t u = part->indices[e];
        if (parts_owner(parts, u) != part->number) {
            stats->cut++;
            if (part_halo_find(part, u) < 0) {
                return RUDDER_FAIL(error, RUDDER_E_DATA,
                                   "%s/part%" PRId32 "/halo.npy: expected all remote neighbours, found no %" PRId64,
                                   directory, part->number, u);
            }
        }
    }
    return RUDDER_OK;
}

/* The share that was measured when the parts were made; other writers may not have put it there. */
static void inspect_remote_share(const char *directory, make_part_t *stats, int32_t n_parts)
{
    files_json_t file;
    const cJSON *array = NULL, *item;
    int32_t p = 0;
    if (files_json_open(directory, "parts.json", "rudder-parts", &file, NULL) != RUDDER_OK) {
        return;
    }
    if (files_json_array(&file, file.object, "part", n_parts, &array, NULL) == RUDDER_OK) {
        cJSON_ArrayForEach(item, array)
        {
            const cJSON *share = cJSON_GetObjectItemCaseSensitive(item, "remote_share");
            stats[p++].remote_share = cJSON_IsNumber(share) ? share->valuedouble : 0;
        }
    }
    files_json_close(&file);
}

static rudder_status_t inspect_all_parts(const char *directory, const parts_t *parts, make_part_t *stats,
                                         rudder_error_t *error)
{
    int64_t edges = 0, train = 0;
    uint8_t *seen = calloc((size_t)parts->n_nodes, 1);
    if (seen == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to check %" PRId64 " ids", parts->n_nodes);
    }
    rudder_status_t status = RUDDER_OK;
    for (int32_t p = 0; p < parts->n_parts && status == RUDDER_OK; p++) {
        part_t part;
        status = part_open(directory, parts, p, &part, error);
        if (status == RUDDER_OK) {
            status = inspect_part(directory, parts, &part, seen, &stats[p], error);
            edges += part.n_edges;
            train += stats[p].train;
            part_close(&part);
        }
    }
    free(seen);
    if (status == RUDDER_OK && (edges != parts->n_edges || train != parts->n_train)) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA,
                             "%s/parts.json: expected %" PRId64 " edges and %" PRId64
                             " training nodes as in the parts, found "
                             "%" PRId64 " and %" PRId64,
                             directory, edges, train, parts->n_edges, parts->n_train);
    }
    return status;
}

static rudder_status_t inspect_parts(const char *directory, rudder_error_t *error)
{
    parts_t parts;
    char a[32], b[32], c[32];
    RUDDER_TRY(parts_open(directory, &parts, error));
    rudder_status_t status = RUDDER_OK;
    make_part_t *stats = calloc((size_t)parts.n_parts, sizeof *stats);
    if (stats == NULL) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId32 " parts", parts.n_parts);
    }
    status = status == RUDDER_OK ? inspect_all_parts(directory, &parts, stats, error) : status;
    if (status == RUDDER_OK) {
        inspect_remote_share(directory, stats, parts.n_parts);
        printf("graph %s in %" PRId32 " parts (%s): %s nodes, %s in-edges, %s training nodes\n", parts.name,
               parts.n_parts, parts.method, text_of_count(parts.n_nodes, a, sizeof a),
               text_of_count(parts.n_edges, b, sizeof b), text_of_count(parts.n_train, c, sizeof c));
        printf("features: %" PRId32 " a node, %" PRId32 " classes\n\n", parts.n_feat, parts.n_classes);
        status = parts_table_print(stats, parts.n_parts, error);
    }
    free(stats);
    parts_close(&parts);
    return status;
}

/* ---- trace --------------------------------------------------------------------------------------------------------- */

static rudder_status_t inspect_trace(const char *path, rudder_error_t *error)
{
    trace_reader_t *reader;
    const trace_info_t *info;
    trace_facts_t facts = {0};
    int end = 0;
    RUDDER_TRY(trace_reader_open(path, &reader, &info, error));
    rudder_status_t status = RUDDER_OK;
    while (status == RUDDER_OK && !end) {
        trace_minibatch_t minibatch;
        status = trace_reader_next(reader, &minibatch, &end, error);
        if (status == RUDDER_OK && !end) {
            status = trace_facts_add(&facts, &minibatch, error);
        }
        if (facts.minibatches % 64 == 0) {
            log_progress(facts.minibatches, info->n_minibatches > 0 ? info->n_minibatches : 0, "minibatches");
        }
    }
    log_progress_end();
    if (status == RUDDER_OK) {
        printf("trace %s (%s)%s\n\n", path, info->kind,
               trace_reader_torn(reader) ? ": cut off, the writer did not end it" : "");
        status = trace_facts_print(&facts, info, error);
    }
    trace_facts_free(&facts);
    trace_reader_close(reader);
    return status;
}

int cli_inspect(int argc, char **argv)
{
    int values = 0; /* there are no options */
    const char *directory = NULL;
    int32_t n = 0;
    int exit_code = 0;
    rudder_error_t error;
    if (!cli_options(&cli_inspect_command, argc, argv, &values, &directory, &n, &exit_code)) {
        return exit_code;
    }
    struct stat about;
    if (stat(directory, &about) == 0 && !S_ISDIR(about.st_mode)) {
        log_setup(LOG_INFO, -1, 1);
        return inspect_trace(directory, &error) == RUDDER_OK ? 0 : cli_fail(&error);
    }
    const int is_parts = files_exist(directory, "parts.json");
    if (!is_parts && !files_exist(directory, "graph.json")) {
        log_line(LOG_ERROR, "%s: expected a directory with graph.json or parts.json, found neither", directory);
        return cli_exit_code(RUDDER_E_IO);
    }
    const rudder_status_t status = is_parts ? inspect_parts(directory, &error) : inspect_graph(directory, &error);
    return status == RUDDER_OK ? 0 : cli_fail(&error);
}
