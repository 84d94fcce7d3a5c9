/*
 * From a graph to parts: assign nodes to parts, renumber so that a part's nodes are a range (in their original order), write
 * each part's arrays and look at what came out. Neighbours keep their order, so that sampling does not see the partition.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/npy.h"
#include "base/rng.h"
#include "graph/csr.h"
#include "graph/files.h"
#include "partition/make.h"
#include "partition/metis.h"

enum { MAKE_SEEDS = 1000, MAKE_FANOUT = 10, MAKE_LAYERS = 2 };

typedef struct make {
    const graph_t *graph;
    const char *directory;
    const make_options_t *options;
    make_report_t *report;
    csr_t undirected;
    int32_t *part;   /* [n] of each node, by original id */
    int64_t *new_id; /* [n] by original id */
    int64_t *orig;   /* [n] by new id */
    int64_t *offset; /* [n_parts + 1] */
    uint64_t *bits;  /* [n / 64] scratch, zero between uses */
    int64_t *queue;  /* [n] scratch */
} make_t;

/* ---- assignment ---------------------------------------------------------------------------------------------------- */

/* Deals shuffled training nodes, then the shuffled others, to the parts in turn: both are balanced to one node. */
static void make_random(make_t *m)
{
    const int64_t n = m->graph->n_nodes;
    int64_t *node = m->queue, count = 0, dealt = 0;
    for (int train = 1; train >= 0; train--) {
        const uint64_t key = rng_key(RNG_PARTITION, m->options->seed, (uint64_t)train, 0, 0);
        count = 0;
        for (int64_t v = 0; v < n; v++) {
            if ((m->graph->split[v] == SPLIT_TRAIN) == train) {
                node[count++] = v;
            }
        }
        for (int64_t i = 0; i < count; i++) {
            m->part[rng_shuffle_step(key, node, i, count)] = (int32_t)(dealt++ % m->options->n_parts);
        }
    }
}

static rudder_status_t make_assign(make_t *m, rudder_error_t *error)
{
    make_report_t *report = m->report;
    const int64_t n = m->graph->n_nodes;
    report->method = m->options->method == MAKE_METIS ? "metis" : "random";
    if (m->options->n_parts == 1) {
        memset(m->part, 0, (size_t)n * sizeof *m->part);
        return RUDDER_OK;
    }
    if (m->options->method == MAKE_METIS) {
        rudder_error_t why;
        uint8_t *weight = malloc((size_t)n);
        if (weight == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId64 " weights", n);
        }
        for (int64_t v = 0; v < n; v++) {
            weight[v] = m->graph->split[v] == SPLIT_TRAIN;
        }
        const rudder_status_t status =
            metis_partition(&m->undirected, weight, m->options->n_parts, m->options->seed, m->part, &why);
        free(weight);
        if (status == RUDDER_E_UNSUPPORTED) {
            return RUDDER_FAIL(error, status, "%s", why.text);
        }
        if (status == RUDDER_OK) {
            return RUDDER_OK;
        }
        snprintf(report->fallback, sizeof report->fallback, "%s", why.text);
        report->method = "random";
    }
    make_random(m);
    return RUDDER_OK;
}

static void make_renumber(make_t *m)
{
    const int64_t n = m->graph->n_nodes;
    const int32_t n_parts = m->options->n_parts;
    memset(m->offset, 0, ((size_t)n_parts + 1) * sizeof *m->offset);
    for (int64_t v = 0; v < n; v++) {
        m->offset[m->part[v] + 1]++;
    }
    for (int32_t p = 0; p < n_parts; p++) {
        m->offset[p + 1] += m->offset[p];
    }
    int64_t *next = m->queue; /* n_parts <= n */
    memcpy(next, m->offset, (size_t)n_parts * sizeof *next);
    for (int64_t v = 0; v < n; v++) {
        const int64_t id = next[m->part[v]]++;
        m->new_id[v] = id;
        m->orig[id] = v;
    }
}

/* ---- one part ------------------------------------------------------------------------------------------------------ */

/* What the small arrays of one part need; rows are owned nodes in order of their new ids. */
typedef struct make_out {
    char folder[FILES_MAX_PATH];
    int64_t begin, end, edges, halo_count;
    int64_t *indptr, *indices, *halo;
    uint32_t *halo_degree;
    int32_t *label;
    uint8_t *split;
} make_out_t;

static void make_out_free(make_out_t *out)
{
    free(out->indptr);
    free(out->indices);
    free(out->halo);
    free(out->halo_degree);
    free(out->label);
    free(out->split);
}

static int64_t make_degree(const graph_t *g, int64_t v)
{
    return g->indptr[v + 1] - g->indptr[v];
}

/* Structure, labels and halo of a part, from the graph. */
static rudder_status_t make_gather(make_t *m, make_out_t *out, make_part_t *stats, rudder_error_t *error)
{
    const graph_t *g = m->graph;
    const size_t rows = (size_t)(out->end - out->begin);
    for (int64_t id = out->begin; id < out->end; id++) {
        out->edges += make_degree(g, m->orig[id]);
    }
    out->indptr = malloc((rows + 1) * sizeof *out->indptr);
    out->indices = malloc(((size_t)out->edges + 1) * sizeof *out->indices);
    out->label = malloc((rows + 1) * sizeof *out->label);
    out->split = malloc(rows + 1);
    if (out->indptr == NULL || out->indices == NULL || out->label == NULL || out->split == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a part of %zu nodes and %" PRId64 " edges", rows,
                           out->edges);
    }
    int64_t at = 0;
    *stats = (make_part_t){.nodes = out->end - out->begin, .edges = out->edges};
    for (int64_t id = out->begin; id < out->end; id++) {
        const int64_t v = m->orig[id], row = id - out->begin;
        out->indptr[row] = at;
        out->label[row] = g->label[v];
        out->split[row] = g->split[v];
        stats->train += g->split[v] == SPLIT_TRAIN;
        for (int64_t e = g->indptr[v]; e < g->indptr[v + 1]; e++) {
            const int64_t u = m->new_id[g->indices[e]];
            out->indices[at++] = u;
            if (u < out->begin || u >= out->end) {
                const uint64_t bit = (uint64_t)1 << (u % 64);
                stats->cut++;
                out->halo_count += (m->bits[u / 64] & bit) == 0;
                m->bits[u / 64] |= bit;
            }
        }
    }
    out->indptr[rows] = at;
    stats->halo = out->halo_count;
    out->halo = malloc(((size_t)out->halo_count + 1) * sizeof *out->halo);
    out->halo_degree = malloc(((size_t)out->halo_count + 1) * sizeof *out->halo_degree);
    if (out->halo == NULL || out->halo_degree == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a halo of %" PRId64 " nodes", out->halo_count);
    }
    int64_t h = 0;
    for (int64_t word = 0; word < (g->n_nodes + 63) / 64; word++) {
        for (; m->bits[word] != 0; m->bits[word] &= m->bits[word] - 1) {
            const int64_t id = 64 * word + __builtin_ctzll(m->bits[word]), degree = make_degree(g, m->orig[id]);
            out->halo[h] = id;
            out->halo_degree[h++] = degree < UINT32_MAX ? (uint32_t)degree : UINT32_MAX;
        }
    }
    return RUDDER_OK;
}

static rudder_status_t make_write_features(const make_t *m, const make_out_t *out, rudder_error_t *error)
{
    char path[FILES_MAX_PATH];
    npy_writer_t *writer = NULL;
    rudder_status_t status = RUDDER_OK;
    RUDDER_TRY(files_join(out->folder, "feat.npy", path, error));
    RUDDER_TRY(
        npy_writer_open(path, "<f4", 2, (const int64_t[]){out->end - out->begin, m->graph->n_feat}, &writer, error));
    for (int64_t id = out->begin; id < out->end && status == RUDDER_OK; id++) {
        status = npy_writer_append(writer, m->graph->feat + m->orig[id] * m->graph->n_feat, m->graph->n_feat, error);
    }
    if (status != RUDDER_OK) {
        npy_writer_abandon(writer);
        return status;
    }
    return npy_writer_close(writer, error);
}

static rudder_status_t make_write_part(const make_t *m, const make_out_t *out, rudder_error_t *error)
{
    const int64_t rows = out->end - out->begin;
    const struct {
        const char *file, *dtype;
        int64_t n;
        const void *data;
    } arrays[] = {
        {"indptr.npy", "<i8", rows + 1, out->indptr},
        {"indices.npy", "<i8", out->edges, out->indices},
        {"label.npy", "<i4", rows, out->label},
        {"split.npy", "|u1", rows, out->split},
        {"orig_id.npy", "<i8", rows, m->orig + out->begin},
        {"halo.npy", "<i8", out->halo_count, out->halo},
        {"halo_degree.npy", "<u4", out->halo_count, out->halo_degree},
    };
    if (mkdir(out->folder, 0777) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be made", out->folder);
    }
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        char path[FILES_MAX_PATH];
        RUDDER_TRY(files_join(out->folder, arrays[i].file, path, error));
        RUDDER_TRY(npy_write(path, arrays[i].dtype, 1, &arrays[i].n, arrays[i].data, error));
    }
    return make_write_features(m, out, error);
}

/*
 * The share of remote nodes among the input nodes of one sampled minibatch of the part, as an estimate of what training
 * will fetch. Draws with replacement: close enough, and short.
 */
static double make_remote_share(make_t *m, int32_t p, const make_part_t *stats)
{
    const graph_t *g = m->graph;
    const uint64_t key = rng_key(RNG_PARTITION, m->options->seed, 2, (uint64_t)p, 0);
    const int64_t stride = stats->train > MAKE_SEEDS ? stats->train / MAKE_SEEDS : 1;
    int64_t n = 0, seen = 0, remote = 0;
    uint64_t draws = 0;
    for (int64_t id = m->offset[p]; id < m->offset[p + 1] && n < MAKE_SEEDS; id++) {
        if (g->split[m->orig[id]] == SPLIT_TRAIN && seen++ % stride == 0) {
            m->bits[id / 64] |= (uint64_t)1 << (id % 64);
            m->queue[n++] = id;
        }
    }
    for (int layer = 0; layer < MAKE_LAYERS; layer++) {
        const int64_t frontier = n;
        for (int64_t i = 0; i < frontier; i++) {
            const int64_t v = m->orig[m->queue[i]], degree = make_degree(g, v);
            for (int64_t k = 0; k < (degree < MAKE_FANOUT ? degree : MAKE_FANOUT); k++) {
                const rng_block_t random = rng_philox(key, draws++, 0);
                const uint64_t wide = (uint64_t)random.v[0] << 32 | random.v[1];
                const int64_t e = degree <= MAKE_FANOUT ? k : (int64_t)(wide % (uint64_t)degree);
                const int64_t u = m->new_id[g->indices[g->indptr[v] + e]];
                const uint64_t bit = (uint64_t)1 << (u % 64);
                if ((m->bits[u / 64] & bit) == 0) {
                    m->bits[u / 64] |= bit;
                    m->queue[n++] = u;
                }
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        remote += m->queue[i] < m->offset[p] || m->queue[i] >= m->offset[p + 1];
        m->bits[m->queue[i] / 64] = 0;
    }
    return n > 0 ? (double)remote / (double)n : 0;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------- */

/* train_rank: training nodes in the order in which a breadth-first walk from the lowest id of each component meets them. */
static rudder_status_t make_write_train(make_t *m, int64_t n_train, rudder_error_t *error)
{
    const graph_t *g = m->graph;
    char path[3][FILES_MAX_PATH];
    rudder_status_t status = RUDDER_OK;
    int64_t *id = malloc((size_t)n_train * sizeof *id), i = 0, head = 0, tail = 0;
    int32_t *label = malloc((size_t)n_train * sizeof *label), *rank = malloc((size_t)n_train * sizeof *rank), met = 0;
    int32_t *position = m->part; /* by original id; the parts are written and no longer needed */
    if (id == NULL || label == NULL || rank == NULL) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId64 " training nodes", n_train);
        goto end;
    }
    for (int64_t root = 0; root < g->n_nodes; root++) {
        if ((m->bits[root / 64] >> (root % 64) & 1) == 0) {
            m->bits[root / 64] |= (uint64_t)1 << (root % 64);
            m->queue[tail++] = root;
        }
        while (head < tail) {
            const int64_t v = m->queue[head++];
            position[v] = g->split[v] == SPLIT_TRAIN ? met++ : -1;
            for (int64_t e = m->undirected.indptr[v]; e < m->undirected.indptr[v + 1]; e++) {
                const int64_t u = m->undirected.indices[e];
                if ((m->bits[u / 64] >> (u % 64) & 1) == 0) {
                    m->bits[u / 64] |= (uint64_t)1 << (u % 64);
                    m->queue[tail++] = u;
                }
            }
        }
    }
    for (int64_t v = 0; v < g->n_nodes; v++) {
        if (g->split[v] == SPLIT_TRAIN) {
            id[i] = m->new_id[v];
            label[i] = g->label[v];
            rank[i++] = position[v];
        }
    }
    status = files_join(m->directory, "train_id.npy", path[0], error);
    status = status == RUDDER_OK ? files_join(m->directory, "train_label.npy", path[1], error) : status;
    status = status == RUDDER_OK ? files_join(m->directory, "train_rank.npy", path[2], error) : status;
    status = status == RUDDER_OK ? npy_write(path[0], "<i8", 1, &n_train, id, error) : status;
    status = status == RUDDER_OK ? npy_write(path[1], "<i4", 1, &n_train, label, error) : status;
    status = status == RUDDER_OK ? npy_write(path[2], "<i4", 1, &n_train, rank, error) : status;
end:
    free(id);
    free(label);
    free(rank);
    return status;
}

static rudder_status_t make_write_json(const make_t *m, int64_t n_train, rudder_error_t *error)
{
    const graph_t *g = m->graph;
    const make_report_t *r = m->report;
    json_t json = {.pretty = 1};
    json_object(&json, NULL);
    json_string(&json, "format", "rudder-parts");
    json_int(&json, "version", 1);
    json_string(&json, "graph", g->name);
    json_string(&json, "method", r->method);
    if (r->fallback[0] != '\0') {
        json_string(&json, "fallback", r->fallback);
    }
    json_int(&json, "seed", (int64_t)m->options->seed);
    json_int(&json, "parts", r->n_parts);
    json_int(&json, "nodes", g->n_nodes);
    json_int(&json, "edges", g->n_edges);
    json_int(&json, "features", g->n_feat);
    json_int(&json, "classes", g->n_classes);
    json_int(&json, "train", n_train);
    json_array(&json, "offset");
    for (int32_t p = 0; p <= r->n_parts; p++) {
        json_int(&json, NULL, m->offset[p]);
    }
    json_end_array(&json);
    json_object(&json, "cleaned");
    json_int(&json, "undirected", r->undirected);
    json_int(&json, "duplicates", r->duplicates);
    json_int(&json, "loops", r->loops);
    json_end_object(&json);
    json_array(&json, "part");
    for (int32_t p = 0; p < r->n_parts; p++) {
        json_object(&json, NULL);
        json_int(&json, "nodes", r->part[p].nodes);
        json_int(&json, "edges", r->part[p].edges);
        json_int(&json, "train", r->part[p].train);
        json_int(&json, "halo", r->part[p].halo);
        json_int(&json, "cut", r->part[p].cut);
        json_double(&json, "remote_share", r->part[p].remote_share);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    const rudder_status_t status = files_json_write(m->directory, "parts.json", &json, error);
    json_free(&json);
    return status;
}

static rudder_status_t make_write_parts(make_t *m, int64_t *n_train, rudder_error_t *error)
{
    make_report_t *report = m->report;
    rudder_status_t status = RUDDER_OK;
    int64_t most_nodes = 0, most_train = 0;
    for (int32_t p = 0; p < report->n_parts && status == RUDDER_OK; p++) {
        char name[32];
        make_out_t out = {.begin = m->offset[p], .end = m->offset[p + 1]};
        make_part_t *stats = &report->part[p];
        log_progress(p, report->n_parts, "writing parts");
        snprintf(name, sizeof name, "part%" PRId32, p);
        status = files_join(m->directory, name, out.folder, error);
        status = status == RUDDER_OK ? make_gather(m, &out, stats, error) : status;
        status = status == RUDDER_OK ? make_write_part(m, &out, error) : status;
        make_out_free(&out);
        if (status == RUDDER_OK) {
            stats->remote_share = make_remote_share(m, p, stats);
            *n_train += stats->train;
            most_nodes = stats->nodes > most_nodes ? stats->nodes : most_nodes;
            most_train = stats->train > most_train ? stats->train : most_train;
        }
    }
    log_progress_end();
    report->node_imbalance = (double)most_nodes * report->n_parts / (double)m->graph->n_nodes;
    report->train_imbalance = *n_train > 0 ? (double)most_train * report->n_parts / (double)*n_train : 0;
    return status;
}

void make_needs(int64_t n_nodes, int64_t n_edges, int32_t n_feat, const make_options_t *options, int64_t *memory,
                int64_t *disk)
{
    const int64_t n = n_nodes, e = n_edges, parts = options->n_parts;
    /* The undirected copy while it is made: two transposes and their merge. */
    const int64_t cleaning = 8 * (3 * n + 4 * e);
    /* METIS: its copy of the undirected graph, 4 bytes an arc, and about 4 times that for coarser graphs; 100 a node. */
    const int64_t metis = 8 * (n + 2 * e) + (options->method == MAKE_METIS && parts > 1 ? 5 * 4 * 2 * e + 100 * n : 0);
    *memory = (cleaning > metis ? cleaning : metis) + 32 * n;
    /* A node of the halo takes 12 bytes and needs an edge that is cut. */
    const int64_t halo = parts > 1 ? (e < n * (parts - 1) ? e : n * (parts - 1)) : 0;
    *disk = n * (4 * (int64_t)n_feat + 8 + 4 + 1 + 8 + 16) + 8 * e + 12 * halo + 8 * parts + 128 * (8 * parts + 3);
}

rudder_status_t make_check(const graph_t *graph, const make_options_t *options, rudder_error_t *error)
{
    if (options->n_parts < 1 || options->n_parts > graph->n_nodes) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "--parts: expected 1..%" PRId64 ", at most the nodes of %s, found %" PRId32, graph->n_nodes,
                           graph->name, options->n_parts);
    }
    return RUDDER_OK;
}

static void make_free(make_t *m)
{
    csr_free(&m->undirected);
    free(m->part);
    free(m->new_id);
    free(m->orig);
    free(m->offset);
    free(m->bits);
    free(m->queue);
}

rudder_status_t make_parts(const graph_t *graph, const char *directory, const make_options_t *options,
                           make_report_t *report, rudder_error_t *error)
{
    const size_t n = (size_t)graph->n_nodes;
    int64_t n_train = 0;
    make_t m = {.graph = graph, .directory = directory, .options = options, .report = report};
    *report = (make_report_t){.n_parts = options->n_parts};
    RUDDER_TRY(make_check(graph, options, error));
    rudder_status_t status = RUDDER_OK;
    m.part = malloc(n * sizeof *m.part);
    m.new_id = malloc(n * sizeof *m.new_id);
    m.orig = malloc(n * sizeof *m.orig);
    m.offset = malloc(((size_t)options->n_parts + 1) * sizeof *m.offset);
    m.bits = calloc(n / 64 + 1, sizeof *m.bits);
    m.queue = malloc(n * sizeof *m.queue);
    report->part = calloc((size_t)options->n_parts, sizeof *report->part);
    if (m.part == NULL || m.new_id == NULL || m.orig == NULL || m.offset == NULL || m.bits == NULL || m.queue == NULL ||
        report->part == NULL) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to partition %zu nodes", n);
        goto end;
    }
    status = csr_undirected(graph->n_nodes, graph->indptr, graph->indices, &m.undirected, &report->duplicates,
                            &report->loops, error);
    report->undirected = m.undirected.m / 2;
    status = status == RUDDER_OK ? make_assign(&m, error) : status;
    if (status == RUDDER_OK) {
        make_renumber(&m);
        status = make_write_parts(&m, &n_train, error);
    }
    status = status == RUDDER_OK ? make_write_train(&m, n_train, error) : status;
    status = status == RUDDER_OK ? make_write_json(&m, n_train, error) : status;
end:
    make_free(&m);
    if (status != RUDDER_OK) {
        make_report_free(report);
    }
    return status;
}

void make_report_free(make_report_t *report)
{
    free(report->part);
    report->part = NULL;
}
