/* Opening a partition directory: what all ranks know, and what the rank of one part owns. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/check.h"
#include "graph/files.h"
#include "partition/partition.h"

static rudder_status_t parts_read_offsets(const files_json_t *file, parts_t *p, rudder_error_t *error)
{
    const cJSON *array;
    RUDDER_TRY(files_json_array(file, file->object, "offset", (int64_t)p->n_parts + 1, &array, error));
    p->offset = malloc(((size_t)p->n_parts + 1) * sizeof *p->offset);
    if (p->offset == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for %" PRId32 " offsets", file->path, p->n_parts);
    }
    int32_t i = 0;
    for (const cJSON *item = array->child; item != NULL; item = item->next, i++) {
        const int64_t low = i == 0 ? 0 : p->offset[i - 1] + 1;
        const int64_t high = i == 0 ? 0 : p->n_nodes;
        const double v = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(v >= (double)low && v <= (double)high) || v != (double)(int64_t)v ||
            (i == p->n_parts && v != (double)high)) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s: expected \"offset\" to rise from 0 to %" PRId64 ", found %.17g at [%" PRId32 "]",
                               file->path, p->n_nodes, v, i);
        }
        p->offset[i] = (int64_t)v;
    }
    return RUDDER_OK;
}

static rudder_status_t parts_read_json(const char *directory, parts_t *p, rudder_error_t *error)
{
    files_json_t file;
    int64_t n_parts = 0, features = 0, classes = 0;
    RUDDER_TRY(files_json_open(directory, "parts.json", "rudder-parts", &file, error));
    rudder_status_t status = files_json_string(&file, file.object, "graph", p->name, sizeof p->name, error);
    if (status == RUDDER_OK) {
        status = files_json_string(&file, file.object, "method", p->method, sizeof p->method, error);
    }
    const struct {
        const char *key;
        int64_t low, high, *value;
    } numbers[] = {{"parts", 1, 1 << 20, &n_parts},           {"nodes", 1, INT64_MAX / 16, &p->n_nodes},
                   {"edges", 0, INT64_MAX / 16, &p->n_edges}, {"features", 1, INT32_MAX, &features},
                   {"classes", 1, INT32_MAX, &classes},       {"train", 1, INT32_MAX, &p->n_train}};
    for (size_t i = 0; status == RUDDER_OK && i < sizeof numbers / sizeof numbers[0]; i++) {
        status = files_json_int(&file, file.object, numbers[i].key, numbers[i].low, numbers[i].high, numbers[i].value,
                                error);
    }
    p->n_parts = (int32_t)n_parts;
    p->n_feat = (int32_t)features;
    p->n_classes = (int32_t)classes;
    if (status == RUDDER_OK) {
        status = parts_read_offsets(&file, p, error);
    }
    files_json_close(&file);
    return status;
}

static rudder_status_t parts_map(const char *directory, parts_t *p, rudder_error_t *error)
{
    const char *const files[3] = {"train_id.npy", "train_label.npy", "train_rank.npy"};
    for (int i = 0; i < 3; i++) {
        char path[FILES_MAX_PATH];
        RUDDER_TRY(files_join(directory, files[i], path, error));
        RUDDER_TRY(npy_open_as(path, i == 0 ? "<i8" : "<i4", 1, &p->n_train, &p->map[i], error));
    }
    p->train_id = p->map[0].data;
    p->train_label = p->map[1].data;
    p->train_rank = p->map[2].data;
    RUDDER_TRY(check_ids(directory, files[0], p->train_id, p->n_train, 0, p->n_nodes, error));
    RUDDER_TRY(check_labels(directory, files[1], p->train_label, p->n_train, p->n_classes, error));
    for (int64_t i = 0; i < p->n_train; i++) {
        if (p->train_rank[i] < 0 || p->train_rank[i] >= p->n_train) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s/%s: expected positions in 0..%" PRId64 ", found %" PRId32 " at [%" PRId64 "]",
                               directory, files[2], p->n_train - 1, p->train_rank[i], i);
        }
    }
    return RUDDER_OK;
}

rudder_status_t parts_open(const char *directory, parts_t *parts, rudder_error_t *error)
{
    parts_t p = {0};
    rudder_status_t status = parts_read_json(directory, &p, error);
    if (status == RUDDER_OK) {
        status = parts_map(directory, &p, error);
    }
    if (status != RUDDER_OK) {
        parts_close(&p);
        return status;
    }
    *parts = p;
    return RUDDER_OK;
}

void parts_close(parts_t *parts)
{
    for (int i = 0; i < 3; i++) {
        npy_close(&parts->map[i]);
    }
    free(parts->offset);
    *parts = (parts_t){0};
}

static rudder_status_t part_map(const char *directory, const parts_t *parts, part_t *p, rudder_error_t *error)
{
    enum { INDPTR, INDICES, FEAT, LABEL, SPLIT, ORIG_ID, HALO, HALO_DEGREE };
    const int64_t n = p->n_owned;
    const struct {
        const char *file, *dtype;
        int32_t n_dimensions;
        int64_t shape[2];
    } arrays[8] = {
        [INDPTR] = {"indptr.npy", "<i8", 1, {n + 1, 0}},
        [INDICES] = {"indices.npy", "<i8", 1, {-1, 0}},
        [FEAT] = {"feat.npy", "<f4", 2, {n, parts->n_feat}},
        [LABEL] = {"label.npy", "<i4", 1, {n, 0}},
        [SPLIT] = {"split.npy", "|u1", 1, {n, 0}},
        [ORIG_ID] = {"orig_id.npy", "<i8", 1, {n, 0}},
        [HALO] = {"halo.npy", "<i8", 1, {-1, 0}},
        [HALO_DEGREE] = {"halo_degree.npy", "<u4", 1, {-1, 0}},
    };
    for (int i = 0; i < 8; i++) {
        char path[FILES_MAX_PATH];
        const int64_t *shape = i == HALO_DEGREE ? &p->n_halo : arrays[i].shape;
        RUDDER_TRY(files_join(directory, arrays[i].file, path, error));
        RUDDER_TRY(npy_open_as(path, arrays[i].dtype, arrays[i].n_dimensions, shape, &p->map[i], error));
        if (i == INDICES) {
            p->n_edges = p->map[i].count;
        } else if (i == HALO) {
            p->n_halo = p->map[i].count;
        }
    }
    p->indptr = p->map[INDPTR].data;
    p->indices = p->map[INDICES].data;
    p->feat = p->map[FEAT].data;
    p->label = p->map[LABEL].data;
    p->split = p->map[SPLIT].data;
    p->orig_id = p->map[ORIG_ID].data;
    p->halo = p->map[HALO].data;
    p->halo_degree = p->map[HALO_DEGREE].data;
    return RUDDER_OK;
}

static rudder_status_t part_check(const char *directory, const parts_t *parts, const part_t *p, rudder_error_t *error)
{
    RUDDER_TRY(check_indptr(directory, p->indptr, p->n_owned, p->n_edges, error));
    RUDDER_TRY(check_ids(directory, "indices.npy", p->indices, p->n_edges, 0, parts->n_nodes, error));
    RUDDER_TRY(check_features(directory, p->feat, p->n_owned, parts->n_feat, error));
    RUDDER_TRY(check_labels(directory, "label.npy", p->label, p->n_owned, parts->n_classes, error));
    RUDDER_TRY(check_split(directory, p->split, p->n_owned, error));
    RUDDER_TRY(check_ids(directory, "orig_id.npy", p->orig_id, p->n_owned, 0, parts->n_nodes, error));
    RUDDER_TRY(check_ids(directory, "halo.npy", p->halo, p->n_halo, 0, parts->n_nodes, error));
    for (int64_t i = 0; i < p->n_halo; i++) {
        if (i > 0 && p->halo[i] <= p->halo[i - 1]) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s/halo.npy: expected ids that rise, found %" PRId64 " at [%" PRId64 "] after %" PRId64,
                               directory, p->halo[i], i, p->halo[i - 1]);
        }
        if (p->halo[i] >= p->begin && p->halo[i] < p->end) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s/halo.npy: expected ids outside of the part's own %" PRId64 "..%" PRId64
                               ", found %" PRId64 " at [%" PRId64 "]",
                               directory, p->begin, p->end - 1, p->halo[i], i);
        }
    }
    return RUDDER_OK;
}

rudder_status_t part_open(const char *directory, const parts_t *parts, int32_t number, part_t *part,
                          rudder_error_t *error)
{
    char folder[FILES_MAX_PATH], name[32];
    if (number < 0 || number >= parts->n_parts) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "%s: expected a part in 0..%" PRId32 ", found %" PRId32, directory,
                           parts->n_parts - 1, number);
    }
    snprintf(name, sizeof name, "part%" PRId32, number);
    RUDDER_TRY(files_join(directory, name, folder, error));
    part_t p = {.number = number, .begin = parts->offset[number], .end = parts->offset[number + 1]};
    p.n_owned = p.end - p.begin;
    rudder_status_t status = part_map(folder, parts, &p, error);
    if (status == RUDDER_OK) {
        status = part_check(folder, parts, &p, error);
    }
    if (status != RUDDER_OK) {
        part_close(&p);
        return status;
    }
    *part = p;
    return RUDDER_OK;
}

void part_close(part_t *part)
{
    for (int i = 0; i < 8; i++) {
        npy_close(&part->map[i]);
    }
    *part = (part_t){0};
}

int64_t part_halo_place(const part_t *part, int64_t id)
{
    int64_t low = 0, high = part->n_halo;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (part->halo[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int64_t part_halo_find(const part_t *part, int64_t id)
{
    const int64_t place = part_halo_place(part, id);
    return place < part->n_halo && part->halo[place] == id ? place : -1;
}

int32_t parts_owner(const parts_t *parts, int64_t id)
{
    int32_t low = 0, high = parts->n_parts; /* offset[low] <= id < offset[high] */
    if (id < 0 || id >= parts->n_nodes) {
        return -1;
    }
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (id >= parts->offset[middle]) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
