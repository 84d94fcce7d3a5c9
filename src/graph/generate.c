/*
 * What all generated graphs share: ids, features, splits, and the writing. Nodes are made in tiles by a team of threads and
 * written in the order of ids; nothing else is held.
 */
#include "graph/generate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/npy.h"
#include "base/rng.h"
#include "base/team.h"
#include "graph/files.h"
#include "graph/graph.h"
#include "graph/permute.h"
#include "graph/write.h"

enum {
    GENERATE_TILE_BYTES = 1 << 21, /* of features in a tile */
    GENERATE_TILE_NODES = 4096,
    GENERATE_TILES_A_THREAD = 4,
    GENERATE_REDRAWS = 8 /* rounds in which repeated neighbours are drawn anew */
};

/* Nodes made by one thread. */
typedef struct generate_tile {
    int64_t first, n;
    int64_t *indices;
    int64_t capacity, n_edges;
    int64_t *end; /* [n] edges of the tile up to and with the node's */
    float *feat;
    int32_t *label;
    uint8_t *split;
    generate_report_t report;
    rudder_status_t status;
} generate_tile_t;

typedef struct generate {
    const generate_options_t *options;
    const generate_model_t *model;
    permute_t order, split_order;
    int64_t train, valid, test; /* nodes */
    uint64_t feature_key;
    int32_t scale;       /* of a feature's random part: 24 fractional bits */
    int32_t *mean;       /* [n_classes][n_feat], 24 fractional bits */
    int64_t check_every; /* nodes: so often it is counted how many edges are inside a class */
    int64_t tile_nodes;
    int32_t n_tiles;
    generate_tile_t *tile;
    npy_writer_t *indptr, *indices, *feat, *label, *split;
} generate_t;

uint64_t generate_key(const generate_options_t *options, int stream)
{
    return rng_key(RNG_GENERATE, options->seed, (uint64_t)stream, 0, 0);
}

/* ---- options ---------------------------------------------------------------------------------------------------- */

rudder_status_t generate_check(const generate_options_t *o, rudder_error_t *error)
{
    if (o->n_nodes < 1 || o->n_nodes > GENERATE_MAX_NODES) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "nodes: expected a number from 1 to %" PRId64 ", found %" PRId64,
                           (int64_t)GENERATE_MAX_NODES, o->n_nodes);
    }
    if (o->n_edges < 0 || o->n_edges / o->n_nodes > GENERATE_MAX_DEGREE) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "edges: expected at most %d a node, found %" PRId64 " for %" PRId64 " nodes",
                           GENERATE_MAX_DEGREE, o->n_edges, o->n_nodes);
    }
    if (o->n_classes < 1 || o->n_classes > o->n_nodes) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "classes: expected from 1 to as many as nodes, %" PRId64 ", found %" PRId32, o->n_nodes,
                           o->n_classes);
    }
    if (o->n_feat < 1 || (int64_t)o->n_feat * o->n_classes > GENERATE_MAX_MEANS) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "features: expected 1 or more, and at most %d for all classes together, found %" PRId32
                           " for %" PRId32 " classes",
                           GENERATE_MAX_MEANS, o->n_feat, o->n_classes);
    }
    if (!(o->homophily >= 0 && o->homophily <= 1)) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "homophily: expected a share from 0 to 1, found %g", o->homophily);
    }
    if (!(o->noise >= 0 && o->noise <= 1000)) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "noise: expected a number from 0 to 1000, found %g", o->noise);
    }
    if (!(o->train > 0 && o->valid >= 0 && o->test >= 0 && o->train + o->valid + o->test <= 1 + 1e-9)) {
        return RUDDER_FAIL(
            error, RUDDER_E_USAGE,
            "train, valid, test: expected shares that sum to at most 1, the first above 0, found %g, %g, %g", o->train,
            o->valid, o->test);
    }
    return RUDDER_OK;
}

static int64_t generate_tile_nodes(const generate_options_t *o)
{
    const int64_t nodes = GENERATE_TILE_BYTES / (4 * (int64_t)o->n_feat);
    return nodes < 1 ? 1 : nodes < GENERATE_TILE_NODES ? nodes : GENERATE_TILE_NODES;
}

static int32_t generate_n_tiles(const generate_options_t *o)
{
    const int64_t tiles = (o->n_nodes + generate_tile_nodes(o) - 1) / generate_tile_nodes(o);
    const int64_t most = GENERATE_TILES_A_THREAD * (int64_t)o->threads;
    return (int32_t)(tiles < most ? tiles : most);
}

void generate_needs(const generate_options_t *o, int64_t *memory, int64_t *disk)
{
    /* Twice the edges of a mean tile: degrees differ; a node of very many alone may need more. */
    const int64_t nodes = generate_tile_nodes(o),
                  node = 4 * (int64_t)o->n_feat + 13 + 16 * (o->n_edges / o->n_nodes + 1);
    *memory = nodes * node * generate_n_tiles(o) + 4 * (int64_t)o->n_feat * o->n_classes + ((int64_t)4 << 20);
    *disk = o->n_nodes * (4 * (int64_t)o->n_feat + 13) + 8 * o->n_edges + 4096;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static int64_t generate_place(const generate_t *g, int64_t id)
{
    return g->model->scramble ? (int64_t)permute_forth(&g->order, (uint64_t)id) : id;
}

static int64_t generate_id(const generate_t *g, int64_t place)
{
    return g->model->scramble ? (int64_t)permute_back(&g->order, (uint64_t)place) : place;
}

static int generate_compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void generate_sort(int64_t *ids, int64_t n)
{
    if (n > 32) {
        qsort(ids, (size_t)n, sizeof *ids, generate_compare);
        return;
    }
    for (int64_t i = 1; i < n; i++) {
        const int64_t id = ids[i];
        int64_t j = i;
        for (; j > 0 && ids[j - 1] > id; j--) {
            ids[j] = ids[j - 1];
        }
        ids[j] = id;
    }
}

/* Ascending, none twice, and not `self`. Returns how many are left. */
static int64_t generate_clean(int64_t *ids, int64_t n, int64_t self)
{
    int64_t kept = 0;
    generate_sort(ids, n);
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] != self && (kept == 0 || ids[i] != ids[kept - 1])) {
            ids[kept++] = ids[i];
        }
    }
    return kept;
}

/* In-neighbours of a node, behind those that the tile has. */
static rudder_status_t generate_neighbours(const generate_t *g, generate_tile_t *tile, int64_t id, int64_t place)
{
    const int64_t others = g->options->n_nodes - 1, asked = g->model->degree(g->model->self, place),
                  wanted = asked < others ? asked : others;
    int64_t n = 0;
    uint64_t drawn = 0;
    RUDDER_TRY(grow_array(&tile->indices, &tile->capacity, tile->n_edges + wanted + 1, sizeof *tile->indices));
    int64_t *ids = tile->indices + tile->n_edges;
    for (int round = 0; round <= GENERATE_REDRAWS && n < wanted; round++) {
        while (n < wanted) {
            ids[n++] = generate_id(g, g->model->draw(g->model->self, place, drawn++));
        }
        n = generate_clean(ids, n, id);
    }
    const int32_t label = g->model->label(g->model->self, place);
    const int checked = id % g->check_every == 0;
    tile->report.checked += checked ? n : 0;
    for (int64_t i = 0; checked && i < n; i++) {
        tile->report.inside += g->model->label(g->model->self, generate_place(g, ids[i])) == label;
    }
    tile->n_edges += n;
    tile->report.n_edges += n;
    tile->report.missing += asked - n;
    tile->report.isolated += n == 0;
    tile->report.most = n > tile->report.most ? n : tile->report.most;
    return RUDDER_OK;
}

/*
 * The mean of the class plus noise: the sum of the four bytes of a random word, which is all but normal and the same
 * everywhere, in integers.
 */
static void generate_features(const generate_t *g, int64_t id, int32_t label, float *feat)
{
    const int32_t n_feat = g->options->n_feat;
    const int32_t *mean = g->mean + (size_t)label * (size_t)n_feat;
    for (int32_t f = 0; f < n_feat; f += 4) {
        const rng_block_t random = rng_philox(g->feature_key, (uint64_t)id, (uint64_t)f);
        for (int32_t i = 0; i < 4 && f + i < n_feat; i++) {
            const uint32_t w = random.v[i], pairs = (w & 0x00FF00FF) + (w >> 8 & 0x00FF00FF);
            const int32_t sum = (int32_t)((pairs & 0xFFFF) + (pairs >> 16)) - 510;
            feat[f + i] = (float)(mean[f + i] + sum * g->scale) * 0x1p-24f;
        }
    }
}

static uint8_t generate_split(const generate_t *g, int64_t id, generate_report_t *report)
{
    const int64_t turn = (int64_t)permute_forth(&g->split_order, (uint64_t)id);
    if (turn < g->train) {
        report->train++;
        return SPLIT_TRAIN;
    }
    if (turn < g->train + g->valid) {
        report->valid++;
        return SPLIT_VALID;
    }
    if (turn < g->train + g->valid + g->test) {
        report->test++;
        return SPLIT_TEST;
    }
    return SPLIT_NONE;
}

static void generate_make_tile(void *context, int64_t number, int32_t thread)
{
    const generate_t *g = context;
    generate_tile_t *tile = &g->tile[number];
    (void)thread;
    tile->report = (generate_report_t){0};
    tile->n_edges = 0;
    tile->status = RUDDER_OK;
    for (int64_t i = 0; i < tile->n && tile->status == RUDDER_OK; i++) {
        const int64_t id = tile->first + i, place = generate_place(g, id);
        tile->status = generate_neighbours(g, tile, id, place);
        tile->end[i] = tile->n_edges;
        tile->label[i] = g->model->label(g->model->self, place);
        tile->split[i] = generate_split(g, id, &tile->report);
        generate_features(g, id, tile->label[i], tile->feat + (size_t)i * (size_t)g->options->n_feat);
    }
}

/* ---- set-up ----------------------------------------------------------------------------------------------------- */

/*
 * Means of classes are random signs of one size, so that two are 1 apart (they differ in half the columns); everything is
 * scaled so that columns have variance 1.
 */
static rudder_status_t generate_means(generate_t *g, rudder_error_t *error)
{
    static const double byte_sum = 147.8; /* standard deviation of the sum of four bytes */
    const generate_options_t *o = g->options;
    const size_t n_feat = (size_t)o->n_feat;
    const uint64_t key = generate_key(o, GENERATE_MEANS);
    volatile double signal = 1 / (2.0 * o->n_feat), variance = o->noise * o->noise; /* volatile: never fused */
    variance = variance + signal;
    const double size = sqrt(signal / variance), deviation = o->noise / sqrt(variance);
    g->mean = malloc((size_t)o->n_classes * n_feat * sizeof *g->mean);
    if (g->mean == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the means of %" PRId32 " classes", o->n_classes);
    }
    g->feature_key = generate_key(o, GENERATE_FEATURES);
    g->scale = (int32_t)(deviation * 0x1p24 / byte_sum);
    for (int32_t k = 0; k < o->n_classes; k++) {
        for (size_t f = 0; f < n_feat; f++) {
            const rng_block_t random = rng_philox(key, f / 128, (uint64_t)k);
            const int32_t plus = random.v[f / 32 % 4] >> f % 32 & 1;
            g->mean[(size_t)k * n_feat + f] = (plus ? 1 : -1) * (int32_t)(size * 0x1p24);
        }
    }
    return RUDDER_OK;
}

static rudder_status_t generate_tiles(generate_t *g, rudder_error_t *error)
{
    const size_t nodes = (size_t)g->tile_nodes;
    g->tile = calloc((size_t)g->n_tiles, sizeof *g->tile);
    for (int32_t t = 0; g->tile != NULL && t < g->n_tiles; t++) {
        generate_tile_t *tile = &g->tile[t];
        tile->end = malloc(nodes * sizeof *tile->end);
        tile->feat = malloc(nodes * (size_t)g->options->n_feat * sizeof *tile->feat);
        tile->label = malloc(nodes * sizeof *tile->label);
        tile->split = malloc(nodes * sizeof *tile->split);
        if (tile->end == NULL || tile->feat == NULL || tile->label == NULL || tile->split == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for tiles of %zu nodes", nodes);
        }
    }
    return g->tile != NULL ? RUDDER_OK : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for tiles");
}

static rudder_status_t generate_open(generate_t *g, const char *directory, rudder_error_t *error)
{
    const generate_options_t *o = g->options;
    const int64_t n = o->n_nodes, nodes_feat[2] = {n, o->n_feat}, n_indptr = n + 1, most_edges = INT64_MAX / 16;
    const struct {
        const char *name, *dtype;
        int32_t dimensions;
        const int64_t *shape;
        npy_writer_t **writer;
    } files[] = {{"indptr.npy", "<i8", 1, &n_indptr, &g->indptr},
                 {"indices.npy", "<i8", 1, &most_edges, &g->indices},
                 {"feat.npy", "<f4", 2, nodes_feat, &g->feat},
                 {"label.npy", "<i4", 1, &n, &g->label},
                 {"split.npy", "|u1", 1, &n, &g->split}};
    char path[FILES_MAX_PATH];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        RUDDER_TRY(files_join(directory, files[i].name, path, error));
        RUDDER_TRY(npy_writer_open(path, files[i].dtype, files[i].dimensions, files[i].shape, files[i].writer, error));
    }
    return npy_writer_append(g->indptr, &(int64_t){0}, 1, error);
}

static void generate_free(generate_t *g)
{
    for (int32_t t = 0; g->tile != NULL && t < g->n_tiles; t++) {
        free(g->tile[t].indices);
        free(g->tile[t].end);
        free(g->tile[t].feat);
        free(g->tile[t].label);
        free(g->tile[t].split);
    }
    free(g->tile);
    free(g->mean);
    npy_writer_abandon(g->indptr);
    npy_writer_abandon(g->indices);
    npy_writer_abandon(g->feat);
    npy_writer_abandon(g->label);
    npy_writer_abandon(g->split);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static rudder_status_t generate_write_tile(generate_t *g, generate_tile_t *tile, generate_report_t *report,
                                           rudder_error_t *error)
{
    if (tile->status != RUDDER_OK) {
        return RUDDER_FAIL(error, tile->status, "no memory for the in-edges of nodes from %" PRId64 " on", tile->first);
    }
    for (int64_t i = 0; i < tile->n; i++) {
        tile->end[i] += report->n_edges;
    }
    RUDDER_TRY(npy_writer_append(g->indptr, tile->end, tile->n, error));
    RUDDER_TRY(npy_writer_append(g->indices, tile->indices, tile->n_edges, error));
    RUDDER_TRY(npy_writer_append(g->feat, tile->feat, tile->n * g->options->n_feat, error));
    RUDDER_TRY(npy_writer_append(g->label, tile->label, tile->n, error));
    RUDDER_TRY(npy_writer_append(g->split, tile->split, tile->n, error));
    report->n_edges += tile->report.n_edges;
    report->missing += tile->report.missing;
    report->checked += tile->report.checked;
    report->inside += tile->report.inside;
    report->isolated += tile->report.isolated;
    report->most = tile->report.most > report->most ? tile->report.most : report->most;
    report->train += tile->report.train;
    report->valid += tile->report.valid;
    report->test += tile->report.test;
    return RUDDER_OK;
}

static rudder_status_t generate_write_nodes(generate_t *g, generate_report_t *report, rudder_error_t *error)
{
    const int64_t n = g->options->n_nodes;
    team_t *team = NULL;
    rudder_status_t status = team_open(g->options->threads, &team, error);
    for (int64_t done = 0; status == RUDDER_OK && done < n;) {
        int32_t tiles = 0;
        for (int64_t first = done; tiles < g->n_tiles && first < n; tiles++, first += g->tile_nodes) {
            g->tile[tiles].first = first;
            g->tile[tiles].n = n - first < g->tile_nodes ? n - first : g->tile_nodes;
        }
        team_run(team, tiles, generate_make_tile, g);
        for (int32_t t = 0; t < tiles && status == RUDDER_OK; t++) {
            status = generate_write_tile(g, &g->tile[t], report, error);
            done += g->tile[t].n;
        }
        log_progress(done, n, "%" PRId64 " edges", report->n_edges);
    }
    log_progress_end();
    team_close(team);
    return status;
}

static rudder_status_t generate_close(generate_t *g, rudder_error_t *error)
{
    npy_writer_t **writers[] = {&g->indptr, &g->indices, &g->feat, &g->label, &g->split};
    RUDDER_TRY(npy_writer_end(g->indices, error));
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        npy_writer_t *writer = *writers[i];
        *writers[i] = NULL;
        RUDDER_TRY(npy_writer_close(writer, error));
    }
    return RUDDER_OK;
}

static rudder_status_t generate_write_json(const char *directory, const generate_t *g, const generate_report_t *report,
                                           rudder_error_t *error)
{
    const generate_options_t *o = g->options;
    json_t json;
    const write_facts_t facts = {.name = o->name,
                                 .n_nodes = o->n_nodes,
                                 .n_edges = report->n_edges,
                                 .n_feat = o->n_feat,
                                 .n_classes = o->n_classes};
    write_json_begin(&facts, &json);
    g->model->describe(o, &json);
    json_int(&json, "seed", (int64_t)o->seed);
    json_int(&json, "edges_wanted", o->n_edges);
    json_int(&json, "edges_missing", report->missing);
    json_double(&json, "homophily", o->homophily);
    json_double(&json, "noise", o->noise);
    return write_json_end(directory, &json, error);
}

rudder_status_t generate_write(const char *directory, const generate_options_t *options, const generate_model_t *model,
                               generate_report_t *report, rudder_error_t *error)
{
    const int64_t n = options->n_nodes;
    generate_t g = {.options = options,
                    .model = model,
                    .order = permute_make((uint64_t)n, generate_key(options, GENERATE_ORDER)),
                    .split_order = permute_make((uint64_t)n, generate_key(options, GENERATE_SPLIT)),
                    .check_every = options->n_edges / (1 << 20) + 1,
                    .tile_nodes = generate_tile_nodes(options),
                    .n_tiles = generate_n_tiles(options)};
    *report = (generate_report_t){0};
    g.train = (int64_t)(options->train * (double)n);
    g.train = g.train > 0 ? g.train : 1; /* a graph without training nodes is of no use */
    g.valid = (int64_t)(options->valid * (double)n);
    g.test = (int64_t)(options->test * (double)n);
    rudder_status_t status = generate_means(&g, error);
    status = status == RUDDER_OK ? generate_tiles(&g, error) : status;
    status = status == RUDDER_OK ? generate_open(&g, directory, error) : status;
    status = status == RUDDER_OK ? generate_write_nodes(&g, report, error) : status;
    status = status == RUDDER_OK ? generate_close(&g, error) : status;
    status = status == RUDDER_OK ? generate_write_json(directory, &g, report, error) : status;
    generate_free(&g);
    return status;
}
