/* The files of a graph directory, and the one rule by which importers draw a split where the source has none. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/npy.h"
#include "base/rng.h"
#include "graph/files.h"
#include "graph/graph.h"
#include "graph/import.h"
#include "graph/write.h"

static rudder_status_t write_array(const char *directory, const char *file, const char *dtype, int64_t n,
                                   const void *data, rudder_error_t *error)
{
    char path[FILES_MAX_PATH];
    RUDDER_TRY(files_join(directory, file, path, error));
    return npy_write(path, dtype, 1, &n, data, error);
}

rudder_status_t write_structure(const char *directory, const csr_t *csr, rudder_error_t *error)
{
    RUDDER_TRY(write_array(directory, "indptr.npy", "<i8", csr->n + 1, csr->indptr, error));
    return write_array(directory, "indices.npy", "<i8", csr->m, csr->indices, error);
}

rudder_status_t write_label(const char *directory, const int32_t *label, int64_t n, rudder_error_t *error)
{
    return write_array(directory, "label.npy", "<i4", n, label, error);
}

rudder_status_t write_split(const char *directory, const uint8_t *split, int64_t n, rudder_error_t *error)
{
    return write_array(directory, "split.npy", "|u1", n, split, error);
}

void write_json_begin(const write_facts_t *facts, json_t *json)
{
    *json = (json_t){.pretty = 1};
    json_object(json, NULL);
    json_string(json, "format", "rudder-graph");
    json_int(json, "version", 1);
    json_string(json, "name", facts->name);
    json_int(json, "nodes", facts->n_nodes);
    json_int(json, "edges", facts->n_edges);
    json_int(json, "features", facts->n_feat);
    json_int(json, "classes", facts->n_classes);
    json_object(json, "source");
}

rudder_status_t write_json_end(const char *directory, json_t *json, rudder_error_t *error)
{
    json_end_object(json);
    json_end_object(json);
    const rudder_status_t status = files_json_write(directory, "graph.json", json, error);
    json_free(json);
    return status;
}

rudder_status_t write_draw_split(const int32_t *label, int64_t n, uint64_t seed, uint8_t *split, rudder_error_t *error)
{
    int64_t *node = malloc(((size_t)n + 1) * sizeof *node), m = 0;
    if (node == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to draw a split of %" PRId64 " nodes", n);
    }
    memset(split, SPLIT_NONE, (size_t)n);
    for (int64_t v = 0; v < n; v++) {
        if (label[v] >= 0) {
            node[m++] = v;
        }
    }
    const uint64_t key = rng_key(RNG_PARTITION, seed, 0, 0, 1);
    const int64_t fifth = m / 5;
    for (int64_t i = 0; i < m; i++) { /* the first two fifths of a shuffle */
        if (i < 2 * fifth) {
            rng_shuffle_step(key, node, i, m);
        }
        split[node[i]] = i < fifth ? SPLIT_VALID : i < 2 * fifth ? SPLIT_TEST : SPLIT_TRAIN;
    }
    free(node);
    return RUDDER_OK;
}

void import_count(const int32_t *label, const uint8_t *split, int64_t n, import_report_t *report)
{
    for (int64_t v = 0; v < n; v++) {
        report->unlabelled += label[v] < 0;
        report->train += split[v] == SPLIT_TRAIN;
        report->valid += split[v] == SPLIT_VALID;
        report->test += split[v] == SPLIT_TEST;
    }
}
