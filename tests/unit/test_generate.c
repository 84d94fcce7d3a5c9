/* Generated graphs: the same everywhere, of the shape that was asked for, and none so small that it breaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "graph/exact.h"
#include "graph/files.h"
#include "graph/generate.h"
#include "graph/permute.h"
#include "small_graph.h"

typedef rudder_status_t (*generate_fn_t)(const char *directory, const generate_options_t *options,
                                         generate_report_t *report, rudder_error_t *error);

static generate_options_t some_options(void)
{
    return (generate_options_t){.name = "g",
                                .seed = 1,
                                .n_nodes = 2000,
                                .n_edges = 20000,
                                .n_feat = 5,
                                .n_classes = 4,
                                .homophily = 0.6,
                                .noise = 1,
                                .train = 0.5,
                                .valid = 0.25,
                                .test = 0.125,
                                .threads = 2,
                                .exponent = 2.8,
                                .probability = {0.57, 0.19, 0.19, 0.05},
                                .scramble = 1};
}

/* Generates into a folder of that name; all that graph_open() checks holds, and the rest of the promise, too. */
static generate_report_t generate(generate_fn_t fn, const char *name, const generate_options_t *options, graph_t *graph)
{
    rudder_error_t error = {0};
    generate_report_t report;
    char path[512];
    snprintf(path, sizeof path, "%s", small_path(name));
    mkdir(path, 0777);
    if (fn(path, options, &report, &error) != RUDDER_OK || graph_open(path, graph, &error) != RUDDER_OK) {
        print_error("%s\n", error.text);
        fail();
    }
    assert_int_equal(graph->n_nodes, options->n_nodes);
    assert_int_equal(graph->n_edges, report.n_edges);
    for (int64_t v = 0; v < graph->n_nodes; v++) {
        for (int64_t e = graph->indptr[v]; e < graph->indptr[v + 1]; e++) {
            assert_true(graph->indices[e] != v);
            assert_true(e == graph->indptr[v] || graph->indices[e] > graph->indices[e - 1]);
        }
    }
    return report;
}

static const generate_fn_t models[] = {generate_sbm, generate_rmat};
enum { MODELS = 2 };

/* ---- the same everywhere ---- */

static const char *const files[] = {"indptr.npy", "indices.npy", "feat.npy", "label.npy", "split.npy", "graph.json"};
enum { FILES = 6 };

static uint64_t hash_file(const char *directory, const char *file)
{
    char path[600], *text;
    int64_t n;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    snprintf(path, sizeof path, "%s/%s", directory, file);
    assert_int_equal(files_read(path, 1 << 28, &text, &n, NULL), RUDDER_OK);
    for (int64_t i = 0; i < n; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    }
    free(text);
    return hash;
}

static void test_the_seed_alone_decides(void **state)
{
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        uint64_t first[FILES];
        for (int run = 0; run < 4; run++) {
            graph_t graph;
            generate_options_t options = some_options();
            options.n_feat = 400; /* several tiles */
            options.threads = 1 + run;
            options.seed = run < 3 ? 7 : 8;
            generate(models[m], "seed", &options, &graph);
            for (int f = 0; f < FILES; f++) {
                const uint64_t hash = hash_file(small_path("seed"), files[f]);
                first[f] = run == 0 ? hash : first[f];
                assert_int_equal(hash == first[f], run < 3);
            }
            graph_close(&graph);
        }
    }
}

/*
 * What one machine and compiler made, once: it must come out of all others. To be changed only together with the format of
 * generated graphs.
 */
static void test_bytes_are_those_of_other_machines(void **state)
{
    (void)state;
    static const uint64_t known[MODELS] = {0x9c5e5a9916c7fce, 0x63777eed0df5d92c};
    for (int m = 0; m < MODELS; m++) {
        graph_t graph;
        const generate_options_t options = some_options();
        uint64_t all = 0;
        generate(models[m], "known", &options, &graph);
        for (int f = 0; f < FILES - 1; f++) {
            all = rng_mix(all ^ hash_file(small_path("known"), files[f]));
        }
        graph_close(&graph);
        assert_int_equal(all, known[m]);
    }
}

static void test_powers_and_logarithms(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        const double x = i * 0.0137 * (i % 7), y = 1 + x * x * x;
        assert_true(fabs(exact_halved(x) / exp2(-x) - 1) < 1e-12);
        assert_true(fabs(exact_log2(y) - log2(y)) < 1e-12 * (1 + log2(y)));
    }
    assert_true(exact_halved(0) == 1 && exact_halved(1) == 0.5 && exact_halved(1e9) == 0);
    assert_true(exact_log2(1) == 0 && exact_log2(1024) == 10 && exact_log2(0x1p40) == 40);
}

static void test_orders_are_orders(void **state)
{
    (void)state;
    static char seen[5000];
    for (uint64_t n = 1; n < 5000; n += n < 70 ? 1 : 977) {
        const permute_t order = permute_make(n, n * 31);
        memset(seen, 0, sizeof seen);
        for (uint64_t x = 0; x < n; x++) {
            const uint64_t place = permute_forth(&order, x);
            assert_true(place < n && !seen[place]++);
            assert_int_equal(permute_back(&order, place), x);
        }
    }
    const permute_t large = permute_make(((uint64_t)1 << 40) - 3, 5);
    for (uint64_t x = 0; x < 1000; x++) {
        assert_int_equal(permute_back(&large, permute_forth(&large, x * 1000003)), x * 1000003);
    }
}

/* ---- small ones, and what is impossible ---- */

static void test_ladder_of_sizes(void **state)
{
    (void)state;
    const int64_t nodes[] = {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65};
    for (int m = 0; m < MODELS; m++) {
        for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
            for (int64_t edges = 0; edges <= 20 * nodes[i]; edges += 1 + edges * 3) {
                graph_t graph;
                generate_options_t options = some_options();
                options.n_nodes = nodes[i];
                options.n_edges = edges;
                options.n_classes = (int32_t)(nodes[i] < 3 ? nodes[i] : 3);
                const generate_report_t report = generate(models[m], "small", &options, &graph);
                assert_true(report.train >= 1);
                assert_true(edges > 0 || report.n_edges == 0);
                assert_true(report.most <= nodes[i] - 1);
                graph_close(&graph);
            }
        }
    }
}

static void test_a_full_graph(void **state)
{
    (void)state;
    graph_t graph;
    generate_options_t options = some_options();
    options.n_nodes = 12;
    options.n_edges = 12 * 12 * 100;
    options.n_classes = 1;
    options.exponent = 100; /* all alike */
    const generate_report_t report = generate(generate_sbm, "full", &options, &graph);
    assert_true(report.n_edges <= 12 * 11 && report.n_edges > 12 * 9);
    assert_in_range(report.missing + report.n_edges, 12 * 12 * 100 - 12, 12 * 12 * 100 + 12); /* each rounded */
    graph_close(&graph);
}

static void test_impossible_options(void **state)
{
    (void)state;
    generate_options_t bad[] = {some_options(), some_options(), some_options(), some_options(),
                                some_options(), some_options(), some_options(), some_options(),
                                some_options(), some_options(), some_options(), some_options()};
    enum { BAD = sizeof bad / sizeof *bad };
    bad[0].n_nodes = 0;
    bad[1].n_nodes = -5;
    bad[2].n_edges = -1;
    bad[3].n_classes = 0;
    bad[4].n_classes = 2001;
    bad[5].n_feat = 0;
    bad[6].homophily = 1.5;
    bad[7].noise = NAN;
    bad[8].train = 0;
    bad[9].valid = 0.6;
    bad[10].n_edges = INT64_MAX;
    bad[11].n_nodes = ((int64_t)1 << 40) + 1;
    for (int i = 0; i < BAD; i++) {
        rudder_error_t error = {0};
        assert_int_equal(generate_sbm_check(&bad[i], &error), RUDDER_E_USAGE);
        assert_non_null(strstr(error.text, "expected"));
        assert_int_equal(generate_rmat_check(&bad[i], &error), RUDDER_E_USAGE);
    }
    generate_options_t options = some_options();
    assert_int_equal(generate_sbm_check(&options, NULL), RUDDER_OK);
    assert_int_equal(generate_rmat_check(&options, NULL), RUDDER_OK);
    options.exponent = 2;
    assert_int_equal(generate_sbm_check(&options, NULL), RUDDER_E_USAGE);
    const double wrong[][4] = {{0.5, 0.5, 0.5, 0.5}, {0, 0, 0, 0}, {1.2, -0.2, 0, 0}, {NAN, 0.5, 0.5, 0}, {0, 0, 0, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong;
         i++) { /* the last: only node 2047 has edges, and there are 2000 */
        memcpy(options.probability, wrong[i], sizeof wrong[i]);
        assert_int_equal(generate_rmat_check(&options, NULL), RUDDER_E_USAGE);
    }
}

static void test_needs_and_a_full_disk(void **state)
{
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        generate_options_t options = some_options();
        graph_t graph;
        int64_t memory, disk, bytes = 0;
        generate_needs(&options, &memory, &disk);
        generate(models[m], "disk", &options, &graph);
        graph_close(&graph);
        for (int f = 0; f < FILES; f++) {
            struct stat info;
            char path[600];
            snprintf(path, sizeof path, "%s/%s", small_path("disk"), files[f]);
            assert_int_equal(stat(path, &info), 0);
            bytes += info.st_size;
        }
        assert_true(bytes <= disk && bytes > disk * 9 / 10);
        assert_true(memory < 32 << 20);
        options.n_nodes *= 1000; /* memory does not grow with the graph */
        options.n_edges *= 1000;
        generate_needs(&options, &memory, &disk);
        assert_true(memory < 32 << 20);

        rudder_error_t error = {0};
        generate_report_t report;
        struct rlimit before, limit;
        options = some_options();
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        limit = before;
        limit.rlim_cur = 30000; /* stands for a full disk */
        void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(models[m](small_path("disk"), &options, &report, &error), RUDDER_E_IO);
        assert_non_null(strstr(error.text, "cannot be written"));
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        signal(SIGXFSZ, handler);
    }
}

/* ---- the shape that was asked for ---- */

/* Of squared deviations, over what they are by chance: sums over k independent cells lie about k, +- 4 sqrt(2 k). */
static void assert_chance(double chi_square, int cells)
{
    if (chi_square > cells + 4 * sqrt(2.0 * cells) + 4) {
        print_error("chi-square %g over %d cells\n", chi_square, cells);
        fail();
    }
}

/*
 * In-degrees are what the power law says, rank by rank, and nodes are drawn in proportion to them. Ranks of a class are
 * summed by octaves; weights within a bucket are equal, which moves a sum by less than 2 %.
 */
static void test_sbm_degrees(void **state)
{
    (void)state;
    enum { OCTAVES = 12 };
    generate_options_t options = some_options();
    graph_t graph;
    double expected[OCTAVES] = {0}, in[OCTAVES] = {0}, out[OCTAVES] = {0}, sum = 0;
    options.n_nodes = 40000;
    options.n_edges = 200000;
    options.n_classes = 10;
    options.homophily = 0.1;
    generate(generate_sbm, "degrees", &options, &graph);
    const permute_t order = permute_make(40000, generate_key(&options, GENERATE_ORDER));
    for (int64_t v = 0; v < graph.n_nodes; v++) {
        const int64_t rank = (int64_t)permute_forth(&order, (uint64_t)v) / options.n_classes;
        const int octave = (int)floor(log2((double)rank + 1));
        const double weight = pow((double)rank + 1, -1 / (options.exponent - 1));
        expected[octave] += weight;
        sum += weight;
        in[octave] += (double)(graph.indptr[v + 1] - graph.indptr[v]);
        for (int64_t e = graph.indptr[v]; e < graph.indptr[v + 1]; e++) {
            const int64_t from = (int64_t)permute_forth(&order, (uint64_t)graph.indices[e]) / options.n_classes;
            out[(int)floor(log2((double)from + 1))] += 1;
        }
    }
    for (int o = 0; o < OCTAVES; o++) {
        const double edges = expected[o] / sum * (double)options.n_edges;
        assert_true(fabs(in[o] - edges) < 0.02 * edges + 4 * sqrt(edges) * 0.5);
        assert_true(fabs(out[o] - edges) < 0.03 * edges + 4 * sqrt(edges));
    }
    graph_close(&graph);
}

static double share_inside(const graph_t *graph)
{
    int64_t inside = 0;
    for (int64_t v = 0; v < graph->n_nodes; v++) {
        for (int64_t e = graph->indptr[v]; e < graph->indptr[v + 1]; e++) {
            inside += graph->label[v] == graph->label[graph->indices[e]];
        }
    }
    return (double)inside / (double)graph->n_edges;
}

static void test_sbm_homophily_and_classes(void **state)
{
    (void)state;
    const double shares[] = {0, 0.25, 0.72, 1};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        generate_options_t options = some_options();
        graph_t graph;
        options.n_nodes = 10001;
        options.n_edges = 50000;
        options.homophily = shares[i];
        options.exponent = 4; /* so light a tail that few edges are drawn twice */
        const generate_report_t report = generate(generate_sbm, "inside", &options, &graph);
        const double share = share_inside(&graph);
        assert_int_equal(report.checked, report.n_edges);
        assert_true(fabs(share - (double)report.inside / (double)report.n_edges) < 1e-12);
        assert_true(fabs(share - shares[i]) <= 4 * sqrt(shares[i] * (1 - shares[i]) / 50000) + 0.002);
        int64_t size[4] = {0}, split[4] = {0}, wanted[] = {1251, 5000, 2500, 1250};
        for (int64_t v = 0; v < graph.n_nodes; v++) {
            size[graph.label[v]]++;
            split[graph.split[v]]++;
        }
        for (int k = 0; k < 4; k++) {
            assert_in_range(size[k], 2500, 2501);
            assert_int_equal(split[k], wanted[k]);
        }
        graph_close(&graph);
    }
}

/* Ids tell neither class nor degree nor split: each quarter of the ids has a quarter of each, within chance. */
static void test_ids_tell_nothing(void **state)
{
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        generate_options_t options = some_options();
        graph_t graph;
        double cell[4][8] = {{0}};
        options.n_nodes = 16000;
        generate(models[m], "ids", &options, &graph);
        for (int64_t v = 0; v < graph.n_nodes; v++) {
            const int64_t degree = graph.indptr[v + 1] - graph.indptr[v];
            cell[v / 4000][graph.label[v]] += 1;
            cell[v / 4000][4 + (degree > 1) + (degree > 2) + (degree > 8)] += 1;
        }
        double chi_square = 0;
        for (int c = 0; c < 8; c++) {
            const double mean = (cell[0][c] + cell[1][c] + cell[2][c] + cell[3][c]) / 4;
            for (int q = 0; q < 4 && mean > 0; q++) {
                chi_square += (cell[q][c] - mean) * (cell[q][c] - mean) / mean;
            }
        }
        assert_chance(chi_square, 18);
        graph_close(&graph);
    }
}

/* Plain R-MAT, so sparse that hardly an edge is drawn twice: edges fall into the quarters as asked, at the two first levels. */
static void test_rmat_blocks(void **state)
{
    (void)state;
    const double p[][4] = {{0.57, 0.19, 0.19, 0.05}, {0.25, 0.25, 0.25, 0.25}, {0.4, 0.1, 0.3, 0.2}};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        generate_options_t options = some_options();
        graph_t graph;
        double cell[4][4] = {{0}}, chi_square = 0;
        options.n_nodes = 1 << 17;
        options.n_edges = 40000;
        options.homophily = 0;
        options.scramble = 0;
        memcpy(options.probability, p[i], sizeof p[i]);
        generate(generate_rmat, "blocks", &options, &graph);
        for (int64_t v = 0; v < graph.n_nodes; v++) {
            for (int64_t e = graph.indptr[v]; e < graph.indptr[v + 1]; e++) {
                const int64_t u = graph.indices[e];
                cell[u >> 16 << 1 | v >> 16][(u >> 15 & 1) << 1 | (v >> 15 & 1)] += 1;
            }
        }
        for (int a = 0; a < 16; a++) {
            const double mean = p[i][a / 4] * p[i][a % 4] * 40000;
            chi_square += (cell[a / 4][a % 4] - mean) * (cell[a / 4][a % 4] - mean) / mean;
        }
        assert_chance(chi_square, 16); /* the number of edges is Poisson: 16 free cells */
        graph_close(&graph);
    }
}

/* Of nodes that are not a power of two only those that exist have edges, as many as asked in all; a node's are Poisson. */
static void test_rmat_columns(void **state)
{
    (void)state;
    enum { SEEDS = 400 };
    double edges = 0, low = 0, first = 0, squares = 0;
    const double mean_first = 60 * pow(0.76, 7) / (0.76 + 0.24 * 0.76); /* 96 of 128: columns 0xxxxxx and 10xxxxx */
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        generate_options_t options = some_options();
        graph_t graph;
        options.n_nodes = 96;
        options.n_edges = 60;
        options.homophily = 0;
        options.scramble = 0;
        options.seed = seed;
        const generate_report_t report = generate(generate_rmat, "columns", &options, &graph);
        const double degree = (double)graph.indptr[1];
        edges += (double)(report.n_edges + report.missing);
        low += (double)graph.indptr[64];
        first += degree;
        squares += degree * degree;
        graph_close(&graph);
    }
    first /= SEEDS;
    assert_true(fabs(edges / SEEDS - 60) < 4 * sqrt(60.0 / SEEDS));
    assert_true(fabs(low / SEEDS / 60 - 0.76 / (0.76 + 0.24 * 0.76)) < 0.01);
    assert_true(fabs(first - mean_first) < 4 * sqrt(mean_first / SEEDS) + 0.02 * mean_first);
    assert_true(fabs(squares / SEEDS - first * first - mean_first) < 0.35 * mean_first);
}

static void test_rmat_neighbours_agree(void **state)
{
    (void)state;
    double before = -1;
    for (double homophily = 0; homophily <= 1; homophily += 0.25) {
        generate_options_t options = some_options();
        graph_t graph;
        options.n_nodes = 5000;
        options.n_classes = 6; /* no power of two */
        options.homophily = homophily;
        generate(generate_rmat, "agree", &options, &graph);
        const double share = share_inside(&graph);
        assert_true(share > before + 0.1 && share >= homophily * 0.95);
        before = share;
        graph_close(&graph);
    }
}

/* Columns have mean 0 over the classes' signs and variance 1; means of two classes are 1 / noise apart, in noises. */
static void test_features(void **state)
{
    (void)state;
    const double noises[] = {0.2, 1, 5};
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        generate_options_t options = some_options();
        graph_t graph;
        enum { FEAT = 200 };
        static double mean[2][FEAT], square;
        options.n_nodes = 8000;
        options.n_edges = 0;
        options.n_classes = 2;
        options.n_feat = FEAT;
        options.noise = noises[i];
        generate(generate_sbm, "features", &options, &graph);
        memset(mean, 0, sizeof mean);
        square = 0;
        for (int64_t x = 0; x < 8000 * FEAT; x++) {
            mean[graph.label[x / FEAT]][x % FEAT] += graph.feat[x] / 4000;
            square += (double)graph.feat[x] * graph.feat[x] / (8000.0 * FEAT);
        }
        double apart = 0;
        for (int f = 0; f < FEAT; f++) {
            apart += (mean[0][f] - mean[1][f]) * (mean[0][f] - mean[1][f]) - 2.0 / 4000;
        }
        assert_true(fabs(square - 1) < 0.01);
        /* Signs of two classes differ in 100 +- 3.5 x 7 of the 200 columns. */
        const double scale = sqrt(noises[i] * noises[i] + 1.0 / (2 * FEAT));
        assert_true(fabs(sqrt(fmax(0, apart)) * scale - 1) < 0.15);
        graph_close(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_seed_alone_decides),
        cmocka_unit_test(test_bytes_are_those_of_other_machines),
        cmocka_unit_test(test_powers_and_logarithms),
        cmocka_unit_test(test_orders_are_orders),
        cmocka_unit_test(test_ladder_of_sizes),
        cmocka_unit_test(test_a_full_graph),
        cmocka_unit_test(test_impossible_options),
        cmocka_unit_test(test_needs_and_a_full_disk),
        cmocka_unit_test(test_sbm_degrees),
        cmocka_unit_test(test_sbm_homophily_and_classes),
        cmocka_unit_test(test_ids_tell_nothing),
        cmocka_unit_test(test_rmat_blocks),
        cmocka_unit_test(test_rmat_columns),
        cmocka_unit_test(test_rmat_neighbours_agree),
        cmocka_unit_test(test_features),
    };
    return cmocka_run_group_tests(tests, small_make_folder, small_remove_folder);
}
