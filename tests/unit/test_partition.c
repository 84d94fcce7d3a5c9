/*
 * Partitions: whatever the graph, method and number of parts, the directory holds exactly the graph again (every edge, in
 * its order, every feature), its halo is what brute force finds, and METIS can do nothing that is not caught.
 *
 * This program has its own METIS_PartGraphKway in front of the library's, so that it can fail in every way seen in the wild.
 */
#include <dlfcn.h>
#include <metis.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "graph/files.h"
#include "partition/child.h"
#include "partition/make.h"
#include "partition/metis.h"
#include "partition/partition.h"
#include "small_graph.h"

static enum {
    HEALTHY,
    CRASHES,
    ABORTS,
    KILLED,
    RETURNS_ERROR,
    OUT_OF_MEMORY,
    OUT_OF_RANGE,
    EMPTY_PART,
    UNFINISHED
} metis;

METIS_API(int)
METIS_PartGraphKway(idx_t *nvtxs, idx_t *ncon, idx_t *xadj, idx_t *adjncy, idx_t *vwgt, idx_t *vsize, idx_t *adjwgt,
                    idx_t *nparts, real_t *tpwgts, real_t *ubvec, idx_t *options, idx_t *edgecut, idx_t *part)
{
    int (*real)(idx_t *, idx_t *, idx_t *, idx_t *, idx_t *, idx_t *, idx_t *, idx_t *, real_t *, real_t *, idx_t *,
                idx_t *, idx_t *) = NULL;
    void *found = dlsym(RTLD_NEXT, "METIS_PartGraphKway");
    memcpy(&real, &found, sizeof real);
    switch (metis) {
    case CRASHES:
        raise(SIGSEGV);
        break;
    case ABORTS:
        raise(SIGABRT);
        break;
    case KILLED:
        raise(SIGKILL);
        break;
    case RETURNS_ERROR:
        return METIS_ERROR;
    case OUT_OF_MEMORY:
        return METIS_ERROR_MEMORY;
    case UNFINISHED:
        return METIS_OK;
    case OUT_OF_RANGE:
    case EMPTY_PART:
        for (idx_t v = 0; v < *nvtxs; v++) {
            part[v] = metis == OUT_OF_RANGE ? v % (*nparts + 1) : v % (*nparts - 1);
        }
        return METIS_OK;
    case HEALTHY:
        break;
    }
    return real(nvtxs, ncon, xadj, adjncy, vwgt, vsize, adjwgt, nparts, tpwgts, ubvec, options, edgecut, part);
}

/* ---- what must be true of any partition ---------------------------------------------------------------------------- */

/* Positions of training nodes in a breadth-first walk, the slow way: edges are looked at in both directions. */
static void walk(const graph_t *g, int64_t *position)
{
    int64_t *queue = malloc((size_t)g->n_nodes * sizeof *queue), head = 0, tail = 0, met = 0;
    uint8_t *seen = calloc((size_t)g->n_nodes, 1), *near = malloc((size_t)g->n_nodes);
    assert_true(queue != NULL && seen != NULL && near != NULL);
    for (int64_t root = 0; root < g->n_nodes; root++) {
        if (!seen[root]) {
            seen[root] = 1;
            queue[tail++] = root;
        }
        for (; head < tail; head++) {
            const int64_t v = queue[head];
            position[v] = g->split[v] == SPLIT_TRAIN ? met++ : -1;
            memset(near, 0, (size_t)g->n_nodes);
            for (int64_t u = 0; u < g->n_nodes; u++) {
                for (int64_t e = g->indptr[u]; e < g->indptr[u + 1]; e++) {
                    if (u == v) {
                        near[g->indices[e]] = 1;
                    } else if (g->indices[e] == v) {
                        near[u] = 1;
                    }
                }
            }
            for (int64_t u = 0; u < g->n_nodes; u++) {
                if (near[u] && !seen[u]) {
                    seen[u] = 1;
                    queue[tail++] = u;
                }
            }
        }
    }
    free(queue);
    free(seen);
    free(near);
}

static void check_part(const graph_t *g, const parts_t *parts, const part_t *part, const int64_t *global,
                       uint8_t *found)
{
    int64_t remote = 0, h = 0;
    uint8_t *is_halo = calloc((size_t)g->n_nodes, 1);
    assert_non_null(is_halo);
    assert_int_equal(part->begin, parts->offset[part->number]);
    assert_int_equal(part->end, parts->offset[part->number + 1]);
    assert_true(part->n_owned > 0);
    for (int64_t i = 0; i < part->n_owned; i++) {
        const int64_t v = part->orig_id[i];
        assert_int_equal(part->begin + i, global[v]);
        assert_int_equal(0, found[v]++);
        assert_true(i == 0 || part->orig_id[i - 1] < v); /* original order within a part */
        assert_int_equal(part->number, parts_owner(parts, part->begin + i));
        assert_int_equal(g->label[v], part->label[i]);
        assert_int_equal(g->split[v], part->split[i]);
        assert_memory_equal(g->feat + v * g->n_feat, part->feat + i * g->n_feat, (size_t)g->n_feat * sizeof(float));
        assert_int_equal(g->indptr[v + 1] - g->indptr[v], part->indptr[i + 1] - part->indptr[i]);
        for (int64_t k = 0; k < part->indptr[i + 1] - part->indptr[i]; k++) {
            const int64_t u = g->indices[g->indptr[v] + k], id = part->indices[part->indptr[i] + k];
            assert_int_equal(global[u], id);
            if (id < part->begin || id >= part->end) {
                remote += !is_halo[id];
                is_halo[id] = 1;
            }
        }
    }
    assert_int_equal(remote, part->n_halo);
    for (int64_t id = 0; id < g->n_nodes; id++) {
        if (is_halo[id]) {
            assert_int_equal(id, part->halo[h]);
            for (int64_t v = 0; v < g->n_nodes; v++) {
                if (global[v] == id) {
                    assert_int_equal(g->indptr[v + 1] - g->indptr[v], part->halo_degree[h]);
                }
            }
            h++;
        }
    }
    free(is_halo);
}

/* Opens graph and parts and compares all of it. */
static void check_directory(const char *graph_path, const char *parts_path, int32_t n_parts)
{
    graph_t g;
    parts_t parts;
    rudder_error_t error = {0};
    int64_t edges = 0, t = 0;
    assert_int_equal(RUDDER_OK, graph_open(graph_path, &g, &error));
    if (parts_open(parts_path, &parts, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(n_parts, parts.n_parts);
    assert_int_equal(g.n_nodes, parts.n_nodes);
    assert_int_equal(g.n_edges, parts.n_edges);
    assert_int_equal(g.n_feat, parts.n_feat);
    assert_int_equal(g.n_classes, parts.n_classes);
    int64_t *global = malloc((size_t)g.n_nodes * sizeof *global),
            *position = malloc((size_t)g.n_nodes * sizeof *position);
    uint8_t *found = calloc((size_t)g.n_nodes, 1);
    part_t *part = calloc((size_t)n_parts, sizeof *part);
    assert_true(global != NULL && position != NULL && found != NULL && part != NULL);
    for (int32_t p = 0; p < n_parts; p++) {
        if (part_open(parts_path, &parts, p, &part[p], &error) != RUDDER_OK) {
            fail_msg("%s", error.text);
        }
        for (int64_t i = 0; i < part[p].n_owned; i++) {
            global[part[p].orig_id[i]] = part[p].begin + i;
        }
    }
    for (int32_t p = 0; p < n_parts; p++) {
        check_part(&g, &parts, &part[p], global, found);
        edges += part[p].n_edges;
        part_close(&part[p]);
    }
    assert_int_equal(g.n_edges, edges);
    walk(&g, position);
    for (int64_t v = 0; v < g.n_nodes; v++) {
        assert_int_equal(1, found[v]);
        if (g.split[v] == SPLIT_TRAIN) {
            assert_true(t < parts.n_train);
            assert_int_equal(global[v], parts.train_id[t]);
            assert_int_equal(g.label[v], parts.train_label[t]);
            assert_int_equal(position[v], parts.train_rank[t]);
            t++;
        }
    }
    assert_int_equal(t, parts.n_train);
    free(global);
    free(position);
    free(found);
    free(part);
    parts_close(&parts);
    graph_close(&g);
}

static rudder_status_t make(const char *graph_path, const char *parts_path, make_method_t method, int32_t n_parts,
                            uint64_t seed, make_report_t *report, rudder_error_t *error)
{
    graph_t g;
    files_folder_t folder;
    char aside[FILES_MAX_PATH];
    assert_int_equal(RUDDER_OK, graph_open(graph_path, &g, error));
    assert_int_equal(RUDDER_OK, files_folder_open(parts_path, "parts.json", 0, &folder, error));
    const rudder_status_t status = make_parts(
        &g, folder.work, &(make_options_t){.method = method, .n_parts = n_parts, .seed = seed}, report, error);
    if (status == RUDDER_OK) {
        assert_int_equal(RUDDER_OK, files_folder_close(&folder, aside, error));
    } else {
        files_folder_abandon(&folder);
    }
    graph_close(&g);
    return status;
}

/* ---- graphs -------------------------------------------------------------------------------------------------------- */

enum { MOST_NODES = 300, MOST_EDGES = 4000 };
static int64_t from[MOST_EDGES], to[MOST_EDGES], n_nodes, n_edges;

static void edge(int64_t u, int64_t v)
{
    assert_true(n_edges < MOST_EDGES);
    from[n_edges] = u;
    to[n_edges++] = v;
}

/* Graphs that partitioners are known to stumble over. */
static const char *build(int which)
{
    static const char *const names[] = {"one node",   "one node with a loop", "two nodes", "isolated nodes",
                                        "self-loops", "duplicate edges",      "star",      "path",
                                        "two rings",  "sparse DAG of 288",    "directed",  "all of it"};
    n_edges = 0;
    n_nodes = which == 0 || which == 1 ? 1 : which == 2 ? 2 : which == 9 ? 288 : 60;
    for (int64_t v = 0; v < n_nodes; v++) {
        switch (which) {
        case 1:
            edge(0, 0);
            break;
        case 2:
            edge(v, 1 - v);
            break;
        case 4:
            edge(v, v);
            edge(v, (v + 1) % n_nodes);
            break;
        case 5:
            for (int i = 0; i < 5; i++) {
                edge(v, (v + 1 + i / 3) % n_nodes);
            }
            break;
        case 6:
            if (v > 0) {
                edge(0, v);
                edge(v, 0);
            }
            break;
        case 7:
            if (v > 0) {
                edge(v - 1, v);
            }
            break;
        case 8:
            edge(v, v / 30 * 30 + (v + 1) % 30);
            break;
        case 9:
            if (v > 0 && v % 3 != 0) {
                edge((int64_t)(small_random(3, (uint64_t)v) % (uint64_t)v), v);
            }
            break;
        case 10:
        case 11:
            for (uint64_t i = 0; i < 8 && v < 50; i++) { /* the last ten stay alone */
                const int64_t u = (int64_t)(small_random((uint64_t)v, i) % 50);
                edge(u, v);
                if (which == 11) {
                    edge(u, v);
                    edge(v, v);
                }
            }
            break;
        default:
            break;
        }
    }
    return which < 12 ? names[which] : NULL;
}

static void test_every_graph(void **state)
{
    (void)state;
    metis = HEALTHY;
    for (int which = 0; build(which) != NULL; which++) {
        const int32_t counts[] = {1, 2, 3, 8, which == 6 ? (int32_t)n_nodes : 7}; /* a part a node of the star */
        assert_int_equal(0, small_write(small_path("graph"), n_nodes, n_edges, from, to, 3));
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            for (make_method_t method = MAKE_METIS; method <= MAKE_RANDOM; method++) {
                make_report_t report;
                rudder_error_t error = {0};
                if (counts[i] > n_nodes) {
                    assert_int_equal(RUDDER_E_USAGE, make(small_path("graph"), small_path("parts"), method, counts[i],
                                                          1, &report, &error));
                    assert_non_null(strstr(error.text, "--parts: expected 1.."));
                    continue;
                }
                if (make(small_path("graph"), small_path("parts"), method, counts[i], 1, &report, &error) !=
                    RUDDER_OK) {
                    fail_msg("%s, %d parts: %s", build(which), counts[i], error.text);
                }
                check_directory(small_path("graph"), small_path("parts"), counts[i]);
                make_report_free(&report);
            }
        }
    }
}

/* Counts of what cleaning leaves out, and of what the report says of each part. */
static void test_report(void **state)
{
    (void)state;
    make_report_t report;
    rudder_error_t error;
    int64_t duplicates = 0, loops = 0, nodes = 0, edges = 0, cut = 0;
    metis = HEALTHY;
    build(11);
    for (int64_t e = 0; e < n_edges; e++) {
        int repeated = 0;
        for (int64_t f = 0; f < e; f++) {
            repeated |= from[e] == from[f] && to[e] == to[f];
        }
        duplicates += repeated;
        loops += from[e] == to[e];
    }
    assert_int_equal(0, small_write(small_path("graph"), n_nodes, n_edges, from, to, 3));
    assert_int_equal(RUDDER_OK, make(small_path("graph"), small_path("parts"), MAKE_METIS, 4, 1, &report, &error));
    assert_int_equal(duplicates, report.duplicates);
    assert_int_equal(loops, report.loops);
    assert_string_equal("metis", report.method);
    assert_string_equal("", report.fallback);
    parts_t parts;
    assert_int_equal(RUDDER_OK, parts_open(small_path("parts"), &parts, &error));
    for (int32_t p = 0; p < 4; p++) {
        part_t part;
        int64_t remote = 0;
        assert_int_equal(RUDDER_OK, part_open(small_path("parts"), &parts, p, &part, &error));
        for (int64_t e = 0; e < part.n_edges; e++) {
            remote += parts_owner(&parts, part.indices[e]) != p;
        }
        assert_int_equal(part.n_owned, report.part[p].nodes);
        assert_int_equal(part.n_edges, report.part[p].edges);
        assert_int_equal(part.n_halo, report.part[p].halo);
        assert_int_equal(remote, report.part[p].cut);
        assert_true(report.part[p].remote_share >= 0 && report.part[p].remote_share < 1);
        nodes += report.part[p].nodes;
        edges += report.part[p].edges;
        cut += remote;
        part_close(&part);
    }
    parts_close(&parts);
    assert_int_equal(n_nodes, nodes);
    assert_int_equal(n_edges, edges);
    assert_true(cut < edges / 2); /* random parts would cut three quarters of all edges but loops */
    make_report_free(&report);
}

/* ---- METIS fails --------------------------------------------------------------------------------------------------- */

static void test_metis_fails(void **state)
{
    (void)state;
    static const struct {
        int how;
        const char *told;
    } cases[] = {{CRASHES, "signal 11"},
                 {ABORTS, "signal 6"},
                 {KILLED, "memory runs out"},
                 {RETURNS_ERROR, "an error"},
                 {OUT_OF_MEMORY, "memory ran out"},
                 {OUT_OF_RANGE, "found 3"},
                 {EMPTY_PART, "none in part 2"},
                 {UNFINISHED, "found -1"}};
    build(10);
    assert_int_equal(0, small_write(small_path("graph"), n_nodes, n_edges, from, to, 3));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_report_t report;
        rudder_error_t error = {0};
        metis = cases[i].how;
        assert_int_equal(RUDDER_OK, make(small_path("graph"), small_path("parts"), MAKE_METIS, 3, 1, &report, &error));
        assert_string_equal("random", report.method);
        if (strstr(report.fallback, "METIS") == NULL || strstr(report.fallback, cases[i].told) == NULL) {
            fail_msg("should tell \"%s\", says: %s", cases[i].told, report.fallback);
        }
        make_report_free(&report);
        check_directory(small_path("graph"), small_path("parts"), 3);

        assert_int_equal(RUDDER_OK, make(small_path("graph"), small_path("parts"), MAKE_METIS, 1, 1, &report, &error));
        assert_string_equal("metis", report.method); /* one part: METIS was not asked, so nothing failed */
        assert_string_equal("", report.fallback);
        make_report_free(&report);
    }
    metis = HEALTHY;
}

static int exits_with(void *context, void *shared)
{
    *(int64_t *)shared += 5;
    return *(int *)context;
}

static void test_child(void **state)
{
    (void)state;
    void *shared = NULL;
    rudder_error_t error;
    int code = -1;
    assert_int_equal(RUDDER_OK, child_memory(sizeof(int64_t), &shared, &error));
    for (int want = 0; want < 128; want += 42) {
        assert_int_equal(RUDDER_OK, child_run("work", exits_with, &want, shared, &code, &error));
        assert_int_equal(want, code);
    }
    assert_int_equal(20, *(int64_t *)shared);
    child_memory_free(shared, sizeof(int64_t));
    child_memory_free(NULL, 0);
}

static void test_too_large_for_metis(void **state)
{
    (void)state;
    rudder_error_t error;
    if (IDXTYPEWIDTH != 32) {
        assert_int_equal(RUDDER_OK, metis_fits((int64_t)1 << 33, (int64_t)1 << 35, &error));
        return;
    }
    assert_int_equal(RUDDER_OK, metis_fits(1000, INT32_MAX, &error));
    assert_int_equal(RUDDER_E_UNSUPPORTED, metis_fits(1000, (int64_t)INT32_MAX + 1, &error));
    assert_non_null(strstr(error.text, "2147483648"));
    assert_non_null(strstr(error.text, "--method random"));
    assert_int_equal(RUDDER_E_UNSUPPORTED, metis_fits((int64_t)1 << 40, 0, &error));
    assert_int_equal(RUDDER_E_ARGUMENT, metis_partition(&(csr_t){.n = 5}, NULL, 1, 0, NULL, &error));
    assert_int_equal(RUDDER_E_ARGUMENT, metis_partition(&(csr_t){.n = 5}, NULL, 6, 0, NULL, &error));
}

/* ---- balance, seeds, needs ----------------------------------------------------------------------------------------- */

/* A ring of cliques whose training nodes all lie in one half: METIS must still give every part its share of them. */
static void test_balance(void **state)
{
    (void)state;
    enum { CLIQUES = 400, SIZE = 10, N = CLIQUES * SIZE };
    csr_pairs_t pairs = {0};
    csr_t out, csr;
    int64_t duplicates, loops, nodes[4] = {0}, train[4] = {0}, cut = 0;
    static uint8_t weight[N];
    static int32_t part[N], again[N];
    metis = HEALTHY;
    for (int64_t v = 0; v < N; v++) {
        for (int64_t u = v / SIZE * SIZE; u < v; u++) {
            assert_int_equal(RUDDER_OK, csr_pairs_add(&pairs, v, u, NULL));
        }
        if (v % SIZE == 0) {
            assert_int_equal(RUDDER_OK, csr_pairs_add(&pairs, v, (v + SIZE) % N, NULL));
        }
        weight[v] = v < N / 2 && v % 2 == 0;
    }
    assert_int_equal(RUDDER_OK, csr_from_pairs(N, pairs.n, pairs.from, pairs.to, &out, NULL));
    assert_int_equal(RUDDER_OK, csr_undirected(N, out.indptr, out.indices, &csr, &duplicates, &loops, NULL));
    assert_int_equal(2 * pairs.n, csr.m);
    assert_int_equal(RUDDER_OK, metis_partition(&csr, weight, 4, 1, part, NULL));
    assert_int_equal(RUDDER_OK, metis_partition(&csr, weight, 4, 1, again, NULL));
    assert_memory_equal(part, again, sizeof part);
    for (int64_t v = 0; v < N; v++) {
        nodes[part[v]]++;
        train[part[v]] += weight[v];
        for (int64_t e = csr.indptr[v]; e < csr.indptr[v + 1]; e++) {
            cut += part[csr.indices[e]] != part[v];
        }
    }
    for (int p = 0; p < 4; p++) {
        assert_true(nodes[p] * 4 <= N * 11 / 10);
        assert_true(train[p] * 4 <= N / 4 * 11 / 10);
    }
    assert_true(cut < csr.m / 10);
    csr_pairs_free(&pairs);
    csr_free(&out);
    csr_free(&csr);
}

static void test_random_is_balanced(void **state)
{
    (void)state;
    make_report_t report;
    rudder_error_t error;
    build(10);
    assert_int_equal(0, small_write(small_path("graph"), n_nodes, n_edges, from, to, 2));
    for (int32_t k = 2; k <= 60; k += 9) {
        assert_int_equal(RUDDER_OK, make(small_path("graph"), small_path("parts"), MAKE_RANDOM, k, 3, &report, &error));
        int64_t low[2] = {INT64_MAX, INT64_MAX}, high[2] = {0, 0};
        for (int32_t p = 0; p < k; p++) {
            const int64_t count[2] = {report.part[p].nodes, report.part[p].train};
            for (int i = 0; i < 2; i++) {
                low[i] = count[i] < low[i] ? count[i] : low[i];
                high[i] = count[i] > high[i] ? count[i] : high[i];
            }
        }
        assert_true(high[0] - low[0] <= 1 && high[1] - low[1] <= 1);
        make_report_free(&report);
    }
}

static int same_files(const char *a, const char *b)
{
    char command[1200];
    snprintf(command, sizeof command, "diff -r '%s' '%s' > /dev/null", a, b);
    return system(command) == 0;
}

static void test_seeds(void **state)
{
    (void)state;
    make_report_t report;
    rudder_error_t error;
    metis = HEALTHY;
    build(10);
    assert_int_equal(0, small_write(small_path("graph"), n_nodes, n_edges, from, to, 3));
    for (make_method_t method = MAKE_METIS; method <= MAKE_RANDOM; method++) {
        const char *const names[] = {"a", "b", "c"};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(
                RUDDER_OK, make(small_path("graph"), small_path(names[i]), method, 4, i < 2 ? 9 : 10, &report, &error));
            make_report_free(&report);
        }
        assert_true(same_files(small_path("a"), small_path("b")));
        assert_false(same_files(small_path("a"), small_path("c")));
    }
}

/* What is said to be needed is enough, and not absurdly much. */
static void test_needs(void **state)
{
    (void)state;
    make_report_t report;
    rudder_error_t error;
    metis = HEALTHY;
    for (int which = 2; which < 12; which++) {
        for (int32_t k = 1; k <= 8; k += 7) {
            int64_t memory = 0, disk = 0, bytes = 0;
            build(which);
            if (k > n_nodes) {
                continue;
            }
            const make_options_t options = {.method = MAKE_METIS, .n_parts = k, .seed = 1};
            assert_int_equal(0, small_write(small_path("graph"), n_nodes, n_edges, from, to, 3));
            assert_int_equal(RUDDER_OK,
                             make(small_path("graph"), small_path("parts"), MAKE_METIS, k, 1, &report, &error));
            make_report_free(&report);
            char command[600];
            snprintf(command, sizeof command, "find '%s' -name '*.npy' -printf '%%s\\n'", small_path("parts"));
            FILE *pipe = popen(command, "r");
            assert_non_null(pipe);
            for (long size; fscanf(pipe, "%ld", &size) == 1;) {
                bytes += size;
            }
            assert_int_equal(0, pclose(pipe));
            make_needs(n_nodes, n_edges, SMALL_FEAT, &options, &memory, &disk);
            assert_true(memory > 8 * (n_nodes + n_edges));
            assert_true(bytes <= disk);
            assert_true(disk <= 2 * bytes + 8 * 12 * n_nodes);
        }
    }
}

/* ---- looking things up, broken directories ------------------------------------------------------------------------- */

static void test_owner(void **state)
{
    (void)state;
    int64_t offset[] = {0, 1, 5, (int64_t)1 << 33, ((int64_t)1 << 33) + 2};
    const parts_t parts = {.n_parts = 4, .n_nodes = offset[4], .offset = offset};
    const int64_t outside[] = {-1, offset[4], INT64_MIN, INT64_MAX, (int64_t)1 << 40};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        assert_int_equal(-1, parts_owner(&parts, outside[i]));
    }
    for (int32_t p = 0; p < 4; p++) {
        assert_int_equal(p, parts_owner(&parts, offset[p]));
        assert_int_equal(p, parts_owner(&parts, offset[p + 1] - 1));
    }
    assert_int_equal(2, parts_owner(&parts, INT32_MAX));
    assert_int_equal(2, parts_owner(&parts, (int64_t)1 << 32));
}

static const struct {
    const char *file, *dtype;
    int64_t n;
    const void *data;
    const char *found;
} broken[] = {
    {"train_id.npy", "<i8", -1, NULL, "dtype"}, /* replaced by a text below */
    {"part1/indices.npy", "<i8", 2, (const int64_t[]){0, 4}, "found"},
    {"part1/indptr.npy", "<i8", 3, (const int64_t[]){0, 2, 1}, "found 1 at [2] after 2"},
    {"part1/orig_id.npy", "<i8", 2, (const int64_t[]){0, (int64_t)1 << 40}, "found 1099511627776 at [1]"},
    {"part1/halo.npy", "<i8", 2, (const int64_t[]){1, 0}, "found 0 at [1] after 1"},
    {"part1/halo.npy", "<i8", 2, (const int64_t[]){0, 2}, "found 2 at [1]"},
    {"part1/halo.npy", "<i8", 2, (const int64_t[]){-1, 0}, "found -1 at [0]"},
    {"part1/halo_degree.npy", "<u4", 3, (const uint32_t[]){1, 1, 1}, "<u4 [3]"},
    {"part1/label.npy", "<i4", 2, (const int32_t[]){0, 9}, "found 9 at [1]"},
    {"train_label.npy", "<i4", 4, (const int32_t[]){0, 1, 2, -7}, "found -7 at [3]"},
    {"train_rank.npy", "<i4", 4, (const int32_t[]){0, 1, 2, 4}, "found 4 at [3]"},
    {"train_id.npy", "<i8", 4, (const int64_t[]){0, 1, 2, 4}, "found 4 at [3]"},
    {"train_id.npy", "<i8", 3, (const int64_t[]){0, 1, 2}, "<i8 [3]"},
};

static void test_broken(void **state)
{
    (void)state;
    const int64_t ring_from[] = {0, 1, 2, 3}, ring_to[] = {1, 2, 3, 0};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        make_report_t report;
        rudder_error_t error = {0};
        parts_t parts = {0};
        part_t part = {0};
        char path[600];
        assert_int_equal(0, small_write(small_path("graph"), 4, 4, ring_from, ring_to, 5));
        assert_int_equal(RUDDER_OK, make(small_path("graph"), small_path("parts"), MAKE_RANDOM, 2, 1, &report, &error));
        make_report_free(&report);
        snprintf(path, sizeof path, "%s/%s", small_path("parts"), broken[i].file);
        if (broken[i].n < 0) {
            FILE *file = fopen(path, "w");
            assert_non_null(file);
            fputs("\x93NUMPY\x01", file);
            fclose(file);
        } else {
            assert_int_equal(RUDDER_OK, npy_write(path, broken[i].dtype, 1, &broken[i].n, broken[i].data, &error));
        }
        if (strcmp(broken[i].file, "part1/halo.npy") == 0) { /* of the same length, so that only the ids are wrong */
            assert_int_equal(RUDDER_OK, npy_write(small_path("parts/part1/halo_degree.npy"), "<u4", 1, &broken[i].n,
                                                  (const uint32_t[]){1, 1}, &error));
        }
        rudder_status_t status = parts_open(small_path("parts"), &parts, &error);
        status = status == RUDDER_OK ? part_open(small_path("parts"), &parts, 1, &part, &error) : status;
        assert_int_equal(RUDDER_E_DATA, status);
        if (strncmp(error.text, path, strlen(path)) != 0 || strstr(error.text, "expected") == NULL ||
            (broken[i].n >= 0 && strstr(error.text, broken[i].found) == NULL)) {
            fail_msg("%s: should name \"%s\", says: %s", path, broken[i].found, error.text);
        }
        part_close(&part);
        parts_close(&parts);
    }
    parts_t parts;
    part_t part;
    rudder_error_t error;
    make_report_t report;
    assert_int_equal(RUDDER_E_IO, parts_open(small_path("nowhere"), &parts, &error));
    assert_int_equal(RUDDER_OK, make(small_path("graph"), small_path("parts"), MAKE_RANDOM, 2, 1, &report, &error));
    make_report_free(&report);
    assert_int_equal(RUDDER_OK, parts_open(small_path("parts"), &parts, &error));
    assert_int_equal(RUDDER_E_ARGUMENT, part_open(small_path("parts"), &parts, 2, &part, &error));
    assert_int_equal(RUDDER_E_ARGUMENT, part_open(small_path("parts"), &parts, -1, &part, &error));
    parts_close(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_graph),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_metis_fails),
        cmocka_unit_test(test_child),
        cmocka_unit_test(test_too_large_for_metis),
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_random_is_balanced),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_needs),
        cmocka_unit_test(test_owner),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, small_make_folder, small_remove_folder);
}
