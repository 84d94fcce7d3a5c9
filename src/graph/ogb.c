/*
 * OGB's raw layout: raw/{num-node-list,num-edge-list,edge,node-feat,node-label}.csv.gz and split/NAME/{train,valid,test}
 * .csv.gz. Features go through row by row, so memory holds the edges only.
 */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/npy.h"
#include "graph/csr.h"
#include "graph/csv.h"
#include "graph/files.h"
#include "graph/graph.h"
#include "graph/import.h"
#include "graph/write.h"

enum { OGB_PROGRESS = 4096 /* lines between looks at the clock */ };

typedef struct ogb {
    char source[FILES_MAX_PATH];
    const char *directory;
    const import_ogb_t *options;
    import_report_t *report;
    int64_t n, given; /* nodes and edges that the source says it has */
    csr_pairs_t edges;
    int32_t *label; /* [n] */
    uint8_t *split; /* [n] */
    char split_name[64];
} ogb_t;

/* ---- helpers ------------------------------------------------------------------------------------------------------- */

static void ogb_progress(const csv_t *csv, int64_t line, const char *what)
{
    if (line % OGB_PROGRESS == 0) {
        int64_t done, total;
        csv_progress(csv, &done, &total);
        log_progress(done, total, "%s", what);
    }
}

static rudder_status_t ogb_open(const ogb_t *o, const char *file, csv_t **csv, rudder_error_t *error)
{
    char path[FILES_MAX_PATH];
    RUDDER_TRY(files_join(o->source, file, path, error));
    return csv_open(path, csv, error);
}

static int ogb_has(const ogb_t *o, const char *file)
{
    char zipped[64];
    snprintf(zipped, sizeof zipped, "%s.gz", file);
    return files_exist(o->source, file) || files_exist(o->source, zipped);
}

/* What OGB has and this importer does not read, by its marks. */
static rudder_status_t ogb_check_layout(const ogb_t *o, rudder_error_t *error)
{
    static const struct {
        const char *file, *what;
    } others[] = {
        {"raw/num-node-dict.csv", "a graph with several node types (heterogeneous)"},
        {"raw/triplet-type-list.csv", "a graph with several node types (heterogeneous)"},
        {"raw/relations", "a graph with several node types (heterogeneous)"},
        {"raw/data.npz", "the binary layout (data.npz)"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (ogb_has(o, others[i].file)) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected one node type in raw/*.csv.gz, found %s", o->source,
                               others[i].what);
        }
    }
    if (!ogb_has(o, "raw/edge.csv")) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: expected a folder with raw/edge.csv.gz, found none", o->source);
    }
    if (!ogb_has(o, "raw/node-feat.csv")) {
        return RUDDER_FAIL(
            error, RUDDER_E_DATA,
            "%s/raw/node-feat.csv.gz: expected node features, found no such file (sets with edge features "
            "only cannot be trained on)",
            o->source);
    }
    return RUDDER_OK;
}

/* A file with one number: the count of nodes or edges of the one graph. */
static rudder_status_t ogb_read_count(const ogb_t *o, const char *file, int64_t low, int64_t *count,
                                      rudder_error_t *error)
{
    csv_t *csv = NULL;
    int more = 0, last = 0;
    RUDDER_TRY(ogb_open(o, file, &csv, error));
    rudder_status_t status = csv_more(csv, &more, error);
    if (status == RUDDER_OK) {
        status = more ? csv_int(csv, count, &last, error)
                      : RUDDER_FAIL(error, RUDDER_E_DATA, "%s/%s.gz: expected a count, found an empty file", o->source,
                                    file);
    }
    if (status == RUDDER_OK && (*count < low || *count > INT64_MAX / 64)) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a count of at least %" PRId64 ", found %" PRId64,
                             csv_where(csv), low, *count);
    }
    if (status == RUDDER_OK) {
        status = csv_more(csv, &more, error);
    }
    if (status == RUDDER_OK && (more || !last)) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected one graph, found several", csv_where(csv));
    }
    csv_close(csv);
    return status;
}

/* A column of numbers that must be node ids or the like: one a line. */
static rudder_status_t ogb_expect_last(csv_t *csv, int last, const char *expected, rudder_error_t *error)
{
    return last ? RUDDER_OK
                : RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected %s, found more fields", csv_where(csv), expected);
}

static rudder_status_t ogb_expect_lines(const ogb_t *o, const char *file, int64_t expected, int64_t found,
                                        rudder_error_t *error)
{
    return expected == found
               ? RUDDER_OK
               : RUDDER_FAIL(error, RUDDER_E_DATA, "%s/%s.gz: expected %" PRId64 " lines, found %s%" PRId64, o->source,
                             file, expected, found > expected ? "more than " : "", found > expected ? expected : found);
}

/* ---- edges --------------------------------------------------------------------------------------------------------- */

static rudder_status_t ogb_read_edge(const ogb_t *o, csv_t *csv, int64_t end[2], rudder_error_t *error)
{
    int last = 0;
    for (int i = 0; i < 2; i++) {
        if (i == 1 && last) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected two node ids, found one", csv_where(csv));
        }
        RUDDER_TRY(csv_int(csv, &end[i], &last, error));
        if (end[i] < 0 || end[i] >= o->n) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected node ids in 0..%" PRId64 ", found %" PRId64,
                               csv_where(csv), o->n - 1, end[i]);
        }
    }
    return ogb_expect_last(csv, last, "two node ids", error);
}

static rudder_status_t ogb_read_edges(ogb_t *o, rudder_error_t *error)
{
    csv_t *csv = NULL;
    int64_t end[2];
    int more = 0;
    RUDDER_TRY(ogb_open(o, "raw/edge.csv", &csv, error));
    rudder_status_t status = csv_more(csv, &more, error);
    while (status == RUDDER_OK && more && o->edges.n <= o->given) {
        status = ogb_read_edge(o, csv, end, error);
        status = status == RUDDER_OK ? csr_pairs_add(&o->edges, end[0], end[1], error) : status;
        ogb_progress(csv, o->edges.n, "edges");
        status = status == RUDDER_OK ? csv_more(csv, &more, error) : status;
    }
    csv_close(csv);
    return status == RUDDER_OK ? ogb_expect_lines(o, "raw/edge.csv", o->given, o->edges.n, error) : status;
}

/* Rows are destinations: an edge "source,destination" makes the source an in-neighbour of the destination. */
static rudder_status_t ogb_write_edges(ogb_t *o, rudder_error_t *error)
{
    import_report_t *report = o->report;
    csr_t out = {0}, in = {0}, reverse = {0}, stored = {0};
    const unsigned drop =
        (o->options->keep_duplicates ? 0 : CSR_DROP_DUPLICATES) | (o->options->keep_loops ? 0 : CSR_DROP_LOOPS);
    rudder_status_t status = csr_from_pairs(o->n, o->edges.n, o->edges.from, o->edges.to, &out, error);
    csr_pairs_free(&o->edges);
    status = status == RUDDER_OK ? csr_transpose(o->n, out.indptr, out.indices, &in, error) : status;
    csr_free(&out);
    if (status == RUDDER_OK && o->options->both) {
        status = csr_transpose(o->n, in.indptr, in.indices, &reverse, error);
    }
    if (status == RUDDER_OK) {
        csr_count(&in, &report->duplicates, &report->loops);
        status = csr_merge(&in, o->options->both ? &reverse : NULL, drop, &stored, error);
    }
    report->given = o->given;
    report->n_edges = stored.m;
    status = status == RUDDER_OK ? write_structure(o->directory, &stored, error) : status;
    csr_free(&in);
    csr_free(&reverse);
    csr_free(&stored);
    return status;
}

/* ---- nodes --------------------------------------------------------------------------------------------------------- */

/* One line of features into row[], which grows with the first line and is fixed from then on. */
static rudder_status_t ogb_read_row(csv_t *csv, int first, float **row, int64_t *width, rudder_error_t *error)
{
    int64_t n = 0;
    for (int last = 0; !last; n++) {
        if (n == *width) {
            float *grown = first ? realloc(*row, (size_t)(2 * *width + 64) * sizeof *grown) : NULL;
            if (grown == NULL) {
                return first ? RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for a row", csv_where(csv))
                             : RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected %" PRId64 " features, found more",
                                           csv_where(csv), *width);
            }
            *row = grown;
            *width = 2 * *width + 64;
        }
        RUDDER_TRY(csv_float(csv, &(*row)[n], &last, error));
        if (!isfinite((*row)[n])) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected finite features, found %g in field %" PRId64,
                               csv_where(csv), (double)(*row)[n], n + 1);
        }
    }
    if (!first && n != *width) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected %" PRId64 " features, found %" PRId64, csv_where(csv),
                           *width, n);
    }
    *width = n;
    return RUDDER_OK;
}

static rudder_status_t ogb_copy_features(ogb_t *o, rudder_error_t *error)
{
    csv_t *csv = NULL;
    npy_writer_t *writer = NULL;
    float *row = NULL;
    char path[FILES_MAX_PATH];
    int64_t width = 0, lines = 0;
    int more = 0;
    RUDDER_TRY(files_join(o->directory, "feat.npy", path, error));
    RUDDER_TRY(ogb_open(o, "raw/node-feat.csv", &csv, error));
    rudder_status_t status = csv_more(csv, &more, error);
    while (status == RUDDER_OK && more && lines < o->n) {
        status = ogb_read_row(csv, lines == 0, &row, &width, error);
        if (status == RUDDER_OK && lines == 0) {
            status = npy_writer_open(path, "<f4", 2, (const int64_t[]){o->n, width}, &writer, error);
        }
        status = status == RUDDER_OK ? npy_writer_append(writer, row, width, error) : status;
        ogb_progress(csv, lines++, "features");
        status = status == RUDDER_OK ? csv_more(csv, &more, error) : status;
    }
    if (status == RUDDER_OK) {
        status = ogb_expect_lines(o, "raw/node-feat.csv", o->n, lines + more, error);
    }
    if (status == RUDDER_OK) {
        status = npy_writer_close(writer, error);
    } else {
        npy_writer_abandon(writer);
    }
    o->report->n_feat = width;
    free(row);
    csv_close(csv);
    return status;
}

/* Labels may be written as floats; NaN and nothing mean that there is none. */
static rudder_status_t ogb_read_labels(ogb_t *o, rudder_error_t *error)
{
    csv_t *csv = NULL;
    int64_t lines = 0;
    int more = 0, last = 0;
    RUDDER_TRY(ogb_open(o, "raw/node-label.csv", &csv, error));
    rudder_status_t status = csv_more(csv, &more, error);
    while (status == RUDDER_OK && more && lines < o->n) {
        float value;
        status = csv_float(csv, &value, &last, error);
        status = status == RUDDER_OK ? ogb_expect_last(csv, last, "one label a node", error) : status;
        if (status != RUDDER_OK) {
            break;
        }
        const int none = isnan(value) || value == -1.0f;
        if (!none && !(value >= 0 && value < 0x1p24f && value == floorf(value))) {
            status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a label in 0..16777215, or none, found %g",
                                 csv_where(csv), (double)value);
            break;
        }
        o->label[lines] = none ? -1 : (int32_t)value;
        o->report->n_classes = o->label[lines] >= o->report->n_classes ? o->label[lines] + 1 : o->report->n_classes;
        ogb_progress(csv, lines++, "labels");
        status = csv_more(csv, &more, error);
    }
    csv_close(csv);
    status = status == RUDDER_OK ? ogb_expect_lines(o, "raw/node-label.csv", o->n, lines + more, error) : status;
    if (status == RUDDER_OK && o->report->n_classes == 0) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s/raw/node-label.csv.gz: expected labels, found none", o->source);
    }
    return status;
}

/* ---- split --------------------------------------------------------------------------------------------------------- */

/* The split's folder: the one that was asked for, else the only one. "" : to be drawn. */
static rudder_status_t ogb_find_split(ogb_t *o, rudder_error_t *error)
{
    char path[FILES_MAX_PATH], found[256] = "";
    const char *asked = o->options->split;
    int64_t count = 0;
    int there = 0;
    RUDDER_TRY(files_join(o->source, "split", path, error));
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        char sub[FILES_MAX_PATH];
        if (entry->d_name[0] == '.' || files_join(path, entry->d_name, sub, NULL) != RUDDER_OK ||
            !(files_exist(sub, "train.csv.gz") || files_exist(sub, "train.csv"))) {
            continue;
        }
        const size_t n = strlen(found);
        snprintf(found + n, sizeof found - n, "%s%.60s", n > 0 ? ", " : "", entry->d_name);
        there |= asked != NULL && strcmp(asked, entry->d_name) == 0;
        count++;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    if (asked == NULL && count == 1) {
        snprintf(o->split_name, sizeof o->split_name, "%.63s", found);
    } else if (asked != NULL && there) {
        snprintf(o->split_name, sizeof o->split_name, "%s", asked);
    } else if (asked == NULL || strcmp(asked, "random") != 0) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected %s with train.csv.gz, found %s; --split %s", path,
                           asked != NULL ? asked : "one folder", count > 0 ? found : "none",
                           count > 1 ? "tells which" : "random draws one");
    }
    return RUDDER_OK;
}

static rudder_status_t ogb_read_split_file(ogb_t *o, const char *file, uint8_t which, rudder_error_t *error)
{
    csv_t *csv = NULL;
    int64_t node;
    int more = 0, last = 0;
    RUDDER_TRY(ogb_open(o, file, &csv, error));
    rudder_status_t status = csv_more(csv, &more, error);
    while (status == RUDDER_OK && more) {
        status = csv_int(csv, &node, &last, error);
        status = status == RUDDER_OK ? ogb_expect_last(csv, last, "one node id", error) : status;
        if (status == RUDDER_OK && (node < 0 || node >= o->n)) {
            status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected node ids in 0..%" PRId64 ", found %" PRId64,
                                 csv_where(csv), o->n - 1, node);
        } else if (status == RUDDER_OK && o->split[node] != SPLIT_NONE && o->split[node] != which) {
            status = RUDDER_FAIL(error, RUDDER_E_DATA,
                                 "%s: expected a node in one of train, valid and test, found %" PRId64 " in two",
                                 csv_where(csv), node);
        } else if (status == RUDDER_OK) {
            o->split[node] = which;
            status = csv_more(csv, &more, error);
        }
    }
    csv_close(csv);
    return status;
}

static rudder_status_t ogb_read_split(ogb_t *o, rudder_error_t *error)
{
    const char *const names[] = {"train", "valid", "test"};
    RUDDER_TRY(ogb_find_split(o, error));
    if (o->split_name[0] == '\0') {
        snprintf(o->split_name, sizeof o->split_name, "drawn");
        return write_draw_split(o->label, o->n, o->options->seed, o->split, error);
    }
    for (int i = 0; i < 3; i++) {
        char file[128];
        snprintf(file, sizeof file, "split/%s/%s.csv", o->split_name, names[i]);
        RUDDER_TRY(ogb_read_split_file(o, file, (uint8_t)(SPLIT_TRAIN + i), error));
    }
    return RUDDER_OK;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------- */

static rudder_status_t ogb_write_json(const ogb_t *o, rudder_error_t *error)
{
    const import_report_t *r = o->report;
    json_t json;
    write_json_begin(
        &(write_facts_t){o->options->name, r->n_nodes, r->n_edges, (int32_t)r->n_feat, (int32_t)r->n_classes}, &json);
    json_string(&json, "importer", "ogb");
    json_string(&json, "direction", o->options->both ? "both" : "forward");
    json_string(&json, "duplicates", o->options->keep_duplicates ? "keep" : "drop");
    json_string(&json, "loops", o->options->keep_loops ? "keep" : "drop");
    json_string(&json, "split", o->split_name);
    json_int(&json, "seed", (int64_t)o->options->seed);
    json_int(&json, "given", r->given);
    json_int(&json, "given_duplicates", r->duplicates);
    json_int(&json, "given_loops", r->loops);
    return write_json_end(o->directory, &json, error);
}

static rudder_status_t ogb_import(ogb_t *o, rudder_error_t *error)
{
    RUDDER_TRY(ogb_check_layout(o, error));
    RUDDER_TRY(ogb_read_count(o, "raw/num-node-list.csv", 1, &o->n, error));
    RUDDER_TRY(ogb_read_count(o, "raw/num-edge-list.csv", 0, &o->given, error));
    o->report->n_nodes = o->n;
    o->label = malloc((size_t)o->n * sizeof *o->label);
    o->split = calloc((size_t)o->n, 1);
    if (o->label == NULL || o->split == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId64 " nodes", o->n);
    }
    RUDDER_TRY(ogb_read_labels(o, error));
    RUDDER_TRY(ogb_read_split(o, error));
    RUDDER_TRY(ogb_read_edges(o, error));
    RUDDER_TRY(ogb_write_edges(o, error));
    RUDDER_TRY(ogb_copy_features(o, error));
    RUDDER_TRY(write_label(o->directory, o->label, o->n, error));
    RUDDER_TRY(write_split(o->directory, o->split, o->n, error));
    import_count(o->label, o->split, o->n, o->report);
    return ogb_write_json(o, error);
}

rudder_status_t import_ogb(const char *source, const char *directory, const import_ogb_t *options,
                           import_report_t *report, rudder_error_t *error)
{
    ogb_t o = {.directory = directory, .options = options, .report = report};
    *report = (import_report_t){0};
    snprintf(o.source, sizeof o.source, "%s", source);
    const rudder_status_t status = ogb_import(&o, error);
    log_progress_end();
    csr_pairs_free(&o.edges);
    free(o.label);
    free(o.split);
    return status;
}
