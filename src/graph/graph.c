/* Opening a graph directory: five mapped arrays, and the promise that whoever reads them need not check them again. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "graph/check.h"
#include "graph/files.h"
#include "graph/graph.h"

static rudder_status_t graph_map(const char *directory, graph_t *g, rudder_error_t *error)
{
    const struct {
        const char *file, *dtype;
        int32_t n_dimensions;
        int64_t shape[2];
    } arrays[5] = {
        {"indptr.npy", "<i8", 1, {g->n_nodes + 1, 0}},   {"indices.npy", "<i8", 1, {g->n_edges, 0}},
        {"feat.npy", "<f4", 2, {g->n_nodes, g->n_feat}}, {"label.npy", "<i4", 1, {g->n_nodes, 0}},
        {"split.npy", "|u1", 1, {g->n_nodes, 0}},
    };
    for (int i = 0; i < 5; i++) {
        char path[FILES_MAX_PATH];
        RUDDER_TRY(files_join(directory, arrays[i].file, path, error));
        RUDDER_TRY(npy_open_as(path, arrays[i].dtype, arrays[i].n_dimensions, arrays[i].shape, &g->map[i], error));
    }
    g->indptr = g->map[0].data;
    g->indices = g->map[1].data;
    g->feat = g->map[2].data;
    g->label = g->map[3].data;
    g->split = g->map[4].data;
    return RUDDER_OK;
}

static rudder_status_t graph_check(const char *directory, const graph_t *g, rudder_error_t *error)
{
    RUDDER_TRY(check_indptr(directory, g->indptr, g->n_nodes, g->n_edges, error));
    RUDDER_TRY(check_ids(directory, "indices.npy", g->indices, g->n_edges, 0, g->n_nodes, error));
    RUDDER_TRY(check_features(directory, g->feat, g->n_nodes, g->n_feat, error));
    RUDDER_TRY(check_labels(directory, "label.npy", g->label, g->n_nodes, g->n_classes, error));
    RUDDER_TRY(check_split(directory, g->split, g->n_nodes, error));
    if (memchr(g->split, SPLIT_TRAIN, (size_t)g->n_nodes) == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s/split.npy: expected at least one training node (1), found none",
                           directory);
    }
    return RUDDER_OK;
}

rudder_status_t graph_open(const char *directory, graph_t *graph, rudder_error_t *error)
{
    graph_t g = {0};
    files_json_t file;
    int64_t features = 0, classes = 0;
    RUDDER_TRY(files_json_open(directory, "graph.json", "rudder-graph", &file, error));
    rudder_status_t status = files_json_string(&file, file.object, "name", g.name, sizeof g.name, error);
    const struct {
        const char *key;
        int64_t low, high, *value;
    } numbers[] = {{"nodes", 1, INT64_MAX / 16, &g.n_nodes},
                   {"edges", 0, INT64_MAX / 16, &g.n_edges},
                   {"features", 1, INT32_MAX, &features},
                   {"classes", 1, INT32_MAX, &classes}};
    for (size_t i = 0; status == RUDDER_OK && i < sizeof numbers / sizeof numbers[0]; i++) {
        status = files_json_int(&file, file.object, numbers[i].key, numbers[i].low, numbers[i].high, numbers[i].value,
                                error);
    }
    files_json_close(&file);
    RUDDER_TRY(status);
    g.n_feat = (int32_t)features;
    g.n_classes = (int32_t)classes;
    status = graph_map(directory, &g, error);
    if (status == RUDDER_OK) {
        status = graph_check(directory, &g, error);
    }
    if (status != RUDDER_OK) {
        graph_close(&g);
        return status;
    }
    *graph = g;
    return RUDDER_OK;
}

void graph_close(graph_t *graph)
{
    for (int i = 0; i < 5; i++) {
        npy_close(&graph->map[i]);
    }
    *graph = (graph_t){0};
}
