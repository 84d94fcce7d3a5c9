/*
 * OGB's csv.gz layout: numbers scanned as the C library does, gzip in every shape, directions and duplicates against brute
 * force, and each thing that can be wrong named with file and line.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "graph/csv.h"
#include "graph/import.h"
#include "small_graph.h"

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

static void check_float(const char *text)
{
    float found = 12345;
    char *end;
    const float expected = (float)strtod(text, &end);
    assert_int_equal('\0', *end);
    char *exact = malloc(strlen(text)); /* no NUL behind it */
    assert_true(exact != NULL);
    memcpy(exact, text, strlen(text));
    if (!csv_scan_float(exact, strlen(text), &found) || memcmp(&found, &expected, sizeof found) != 0) {
        fail_msg("%s: expected %.9g, found %.9g", text, (double)expected, (double)found);
    }
    free(exact);
}

static void test_floats(void **state)
{
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+1",
                                        "1.",
                                        ".5",
                                        "-.5",
                                        "00012",
                                        "0.1",
                                        "123456789",
                                        "1e3",
                                        "1E+3",
                                        "-2.5e-7",
                                        "9007199254740993",
                                        "0.12345678901234567890123",
                                        "3.4028235e38",
                                        "3.5e38",
                                        "-1e39",
                                        "1e-45",
                                        "1e-60",
                                        "1e22",
                                        "1e23",
                                        "1e400",
                                        "1e-400",
                                        "16777217",
                                        "0.000000000000000000000000000000000000000000001",
                                        "179769313486231570000000000000",
                                        "1e0",
                                        "1e-0",
                                        "4.9406564584124654e-324",
                                        "inf",
                                        "-inf",
                                        "infinity"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_float(texts[i]);
    }
    for (uint64_t i = 0; i < 200000; i++) {
        char text[64];
        const uint64_t r = small_random(1, i);
        float f;
        const uint32_t bits = (uint32_t)(r >> 32);
        memcpy(&f, &bits, sizeof f);
        if (isfinite(f)) {
            snprintf(text, sizeof text, i % 2 != 0 ? "%.*g" : "%.*e", (int)(r % 20) + 1, (double)f);
            check_float(text);
            snprintf(text, sizeof text, "%.*f", (int)(r % 18), (double)(int32_t)bits / 65536.0);
            check_float(text);
        }
    }
    static const char *const bad[] = {"-",   "+",   ".",     "e5",   "1e", "1e+", "1 2",  "0x10",
                                      "1,5", "--1", "1.2.3", "nanx", "na", "in",  "1e5x", "\x01"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        float value;
        if (csv_scan_float(bad[i], strlen(bad[i]), &value)) {
            fail_msg("%s: expected no number, found %g", bad[i], (double)value);
        }
    }
    static const char *const none[] = {"", "nan", "NaN", "-nan", "NAN"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        float value = 0;
        assert_true(csv_scan_float(none[i], strlen(none[i]), &value) && isnan(value));
    }
}

static void test_ints(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int good;
        int64_t value;
    } cases[] = {{"0", 1, 0},
                 {"-0", 1, 0},
                 {"+7", 1, 7},
                 {"0012", 1, 12},
                 {"4294967296", 1, (int64_t)1 << 32},
                 {"9223372036854775807", 1, INT64_MAX},
                 {"-9223372036854775807", 1, -INT64_MAX},
                 {"9223372036854775808", 0, 0},
                 {"99999999999999999999", 0, 0},
                 {"", 0, 0},
                 {"-", 0, 0},
                 {"1.0", 0, 0},
                 {"1 ", 0, 0},
                 {"a", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = 0;
        assert_int_equal(cases[i].good, csv_scan_int(cases[i].text, strlen(cases[i].text), &value));
        assert_int_equal(cases[i].value, value);
    }
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

static void write_gz(const char *name, const char *text, const char *mode)
{
    gzFile file = gzopen(small_path(name), mode);
    assert_non_null(file);
    assert_int_equal(strlen(text), gzwrite(file, text, (unsigned)strlen(text)));
    assert_int_equal(Z_OK, gzclose(file));
}

static void test_stream(void **state)
{
    (void)state;
    csv_t *csv = NULL;
    rudder_error_t error;
    int more = 0, last = 0;
    int64_t value = 0;
    float x;
    write_gz("a.csv.gz", "1,-2\r\n3 ,", "wb"); /* the second member begins in the middle of a line */
    write_gz("a.csv.gz", " 4\n\n5", "ab");
    assert_int_equal(RUDDER_OK, csv_open(small_path("a.csv"), &csv, &error));
    const int64_t expected[][2] = {{1, 0}, {-2, 1}, {3, 0}, {4, 1}};
    for (int i = 0; i < 4; i++) {
        if (i % 2 == 0) {
            assert_int_equal(RUDDER_OK, csv_more(csv, &more, &error));
            assert_int_equal(1, more);
        }
        assert_int_equal(RUDDER_OK, csv_int(csv, &value, &last, &error));
        assert_int_equal(expected[i][0], value);
        assert_int_equal(expected[i][1], last);
    }
    assert_int_equal(RUDDER_OK, csv_more(csv, &more, &error)); /* an empty line is an empty field */
    assert_int_equal(RUDDER_OK, csv_float(csv, &x, &last, &error));
    assert_true(isnan(x) && last == 1);
    assert_int_equal(RUDDER_OK, csv_more(csv, &more, &error));
    assert_int_equal(RUDDER_OK, csv_int(csv, &value, &last, &error));
    assert_true(value == 5 && last == 1); /* no line end */
    assert_non_null(strstr(csv_where(csv), "a.csv.gz:4"));
    assert_int_equal(RUDDER_OK, csv_more(csv, &more, &error));
    assert_int_equal(0, more);
    csv_close(csv);
    csv_close(NULL);

    FILE *plain = fopen(small_path("plain.csv"), "w"); /* not compressed */
    assert_non_null(plain);
    for (int i = 0; i < 200000; i++) {
        fprintf(plain, "%d,%d\n", i, i * 7);
    }
    fclose(plain);
    assert_int_equal(RUDDER_OK, csv_open(small_path("plain.csv"), &csv, &error));
    for (int64_t i = 0; i < 200000; i++) { /* over many refills */
        assert_int_equal(RUDDER_OK, csv_more(csv, &more, &error));
        assert_int_equal(RUDDER_OK, csv_int(csv, &value, &last, &error));
        assert_int_equal(i, value);
        assert_int_equal(RUDDER_OK, csv_int(csv, &value, &last, &error));
        assert_int_equal(7 * i, value);
        assert_int_equal(1, last);
    }
    assert_int_equal(RUDDER_OK, csv_more(csv, &more, &error));
    assert_int_equal(0, more);
    csv_close(csv);
    assert_int_equal(RUDDER_E_IO, csv_open(small_path("none.csv"), &csv, &error));
    assert_non_null(strstr(error.text, "none.csv"));
}

/* ---- a data set ---------------------------------------------------------------------------------------------------- */

static const char *const edges = "0,1\n1,0\n2,3\n2,3\n4,4\n0,5\n";

static void write_set(void)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf %s/set && mkdir -p %s/set/raw %s/set/split/time", small_folder,
             small_folder, small_folder);
    assert_int_equal(0, system(command));
    write_gz("set/raw/num-node-list.csv.gz", "6\n", "wb");
    write_gz("set/raw/num-edge-list.csv.gz", "6\n", "wb");
    write_gz("set/raw/edge.csv.gz", edges, "wb");
    write_gz("set/raw/node-feat.csv.gz", "0,1.5\n1,-2\n2,1e-3\n3,0\n4,.25\n5,7\n", "wb");
    write_gz("set/raw/node-label.csv.gz", "0\n2.0\nnan\n\n-1\n1\n", "wb");
    write_gz("set/split/time/train.csv.gz", "0\n1\n", "wb");
    write_gz("set/split/time/valid.csv.gz", "5\n", "wb");
    write_gz("set/split/time/test.csv.gz", "", "wb");
}

static rudder_status_t import(const import_ogb_t *options, import_report_t *report, rudder_error_t *error)
{
    mkdir(small_path("graph"), 0777);
    return import_ogb(small_path("set"), small_path("graph"), options, report, error);
}

/* Multiplicity of every edge that must be stored, told from the six edges of the set. */
static int64_t must_have(int64_t destination, int64_t source, const import_ogb_t *o)
{
    static const int64_t from[] = {0, 1, 2, 2, 4, 0}, to[] = {1, 0, 3, 3, 4, 5};
    int64_t count = 0;
    for (int e = 0; e < 6; e++) {
        count += from[e] == source && to[e] == destination;
        count += o->both && from[e] == destination && to[e] == source;
    }
    if (destination == source && !o->keep_loops) {
        return 0;
    }
    return o->keep_duplicates || count == 0 ? count : 1;
}

static void test_edges(void **state)
{
    (void)state;
    write_set();
    for (int which = 0; which < 8; which++) {
        const import_ogb_t options = {
            .name = "set", .both = which & 1, .keep_duplicates = which >> 1 & 1, .keep_loops = which >> 2};
        import_report_t report;
        rudder_error_t error = {0};
        graph_t g;
        int64_t total = 0;
        if (import(&options, &report, &error) != RUDDER_OK) {
            fail_msg("%s", error.text);
        }
        assert_int_equal(6, report.given);
        assert_int_equal(1, report.duplicates); /* 2,3 twice; 0,1 and 1,0 are two edges */
        assert_int_equal(1, report.loops);
        assert_int_equal(3, report.unlabelled);
        assert_int_equal(RUDDER_OK, graph_open(small_path("graph"), &g, &error));
        for (int64_t v = 0; v < 6; v++) {
            for (int64_t u = 0; u < 6; u++) {
                int64_t there = 0;
                for (int64_t e = g.indptr[v]; e < g.indptr[v + 1]; e++) {
                    there += g.indices[e] == u;
                }
                assert_int_equal(must_have(v, u, &options), there);
                total += there;
            }
        }
        assert_int_equal(total, g.n_edges);
        assert_int_equal(total, report.n_edges);
        assert_int_equal(3, g.n_classes);
        assert_memory_equal(((const int32_t[]){0, 2, -1, -1, -1, 1}), g.label, 6 * sizeof(int32_t));
        assert_memory_equal(((const uint8_t[]){1, 1, 0, 0, 0, 2}), g.split, 6);
        assert_memory_equal(((const float[]){0, 1.5f, 1, -2, 2, 1e-3f, 3, 0, 4, .25f, 5, 7}), g.feat,
                            12 * sizeof(float));
        graph_close(&g);
    }
}

static void test_split_names(void **state)
{
    (void)state;
    import_report_t report;
    rudder_error_t error;
    const import_ogb_t any = {.name = "set", .both = 1}, time = {.name = "set", .split = "time"},
                       drawn = {.name = "set", .split = "random", .seed = 3}, wrong = {.name = "set", .split = "sales"};
    write_set();
    assert_int_equal(RUDDER_OK, import(&time, &report, &error));
    assert_int_equal(2, report.train);
    assert_int_equal(RUDDER_OK,
                     import(&drawn, &report, &error)); /* no such folder: drawn from the three with a label */
    assert_int_equal(3, report.train + report.valid + report.test);
    assert_int_equal(RUDDER_E_DATA, import(&wrong, &report, &error));
    assert_non_null(strstr(error.text, "expected sales with train.csv.gz, found time"));
    mkdir(small_path("set/split/random"), 0777);
    write_gz("set/split/random/train.csv.gz", "5\n0\n1\n", "wb");
    write_gz("set/split/random/valid.csv.gz", "", "wb");
    write_gz("set/split/random/test.csv.gz", "", "wb");
    assert_int_equal(RUDDER_OK, import(&drawn, &report, &error)); /* now it is one */
    assert_int_equal(3, report.train);
    assert_int_equal(0, report.valid);
    assert_int_equal(RUDDER_E_DATA, import(&any, &report, &error));
    assert_non_null(strstr(error.text, "tells which"));
    write_set();
    char command[400];
    snprintf(command, sizeof command, "rm -r %s/set/split", small_folder);
    assert_int_equal(0, system(command));
    assert_int_equal(RUDDER_E_DATA, import(&any, &report, &error));
    assert_non_null(strstr(error.text, "--split random draws one"));
    assert_int_equal(RUDDER_OK, import(&drawn, &report, &error));
}

static void test_broken(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *told;
    } cases[] = {
        {"raw/num-node-list.csv", "", "expected a count, found an empty file"},
        {"raw/num-node-list.csv", "0\n", "expected a count of at least 1, found 0"},
        {"raw/num-node-list.csv", "6\n7\n", "expected one graph, found several"},
        {"raw/num-node-list.csv", "six\n", "expected a whole number, found \"six\""},
        {"raw/num-edge-list.csv", "5\n", "edge.csv.gz: expected 5 lines, found more than 5"},
        {"raw/num-edge-list.csv", "7\n", "edge.csv.gz: expected 7 lines, found 6"},
        {"raw/edge.csv", "0,1\n1,6\n2,3\n2,3\n4,4\n0,5\n", "edge.csv.gz:2: expected node ids in 0..5, found 6"},
        {"raw/edge.csv", "0,1\n1,0\n-2,3\n2,3\n4,4\n0,5\n", "edge.csv.gz:3: expected node ids in 0..5, found -2"},
        {"raw/edge.csv", "0,1\n1\n2,3\n2,3\n4,4\n0,5\n", "edge.csv.gz:2: expected two node ids, found one"},
        {"raw/edge.csv", "0,1\n1,0,3\n2,3\n2,3\n4,4\n0,5\n", "edge.csv.gz:2: expected two node ids, found more fields"},
        {"raw/edge.csv", "0,1\n1,x\n", "edge.csv.gz:2, field 2: expected a whole number, found \"x\""},
        {"raw/node-feat.csv", "0,1\n1,2\n2,3\n3,4\n4,5\n", "node-feat.csv.gz: expected 6 lines, found 5"},
        {"raw/node-feat.csv", "0,1\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n",
         "node-feat.csv.gz: expected 6 lines, found more than 6"},
        {"raw/node-feat.csv", "0,1\n1,2\n2\n3,4\n4,5\n5,6\n", "node-feat.csv.gz:3: expected 2 features, found 1"},
        {"raw/node-feat.csv", "0,1\n1,2\n2,3,4\n", "node-feat.csv.gz:3: expected 2 features, found more"},
        {"raw/node-feat.csv", "0,1\n1,nan\n", "node-feat.csv.gz:2: expected finite features, found nan in field 2"},
        {"raw/node-feat.csv", "0,1\n1,\n", "node-feat.csv.gz:2: expected finite features, found nan in field 2"},
        {"raw/node-feat.csv", "0,1\n1,1e39\n", "node-feat.csv.gz:2: expected finite features, found inf in field 2"},
        {"raw/node-feat.csv", "0,1\n1,0x2\n", "node-feat.csv.gz:2, field 2: expected a number, found \"0x2\""},
        {"raw/node-label.csv", "0\n1\n2\n", "node-label.csv.gz: expected 6 lines, found 3"},
        {"raw/node-label.csv", "0\n1.5\n", "node-label.csv.gz:2: expected a label in 0..16777215, or none, found 1.5"},
        {"raw/node-label.csv", "0\n-2\n", "node-label.csv.gz:2: expected a label in 0..16777215, or none, found -2"},
        {"raw/node-label.csv", "0\n1,1\n", "node-label.csv.gz:2: expected one label a node, found more fields"},
        {"raw/node-label.csv", "\n\n\n\n\n\n", "node-label.csv.gz: expected labels, found none"},
        {"split/time/train.csv", "0\n6\n", "train.csv.gz:2: expected node ids in 0..5, found 6"},
        {"split/time/valid.csv", "5\n1\n",
         "valid.csv.gz:2: expected a node in one of train, valid and test, found 1 in two"},
        {"raw/num-node-dict.csv", "1\n",
         "expected one node type in raw/*.csv.gz, found a graph with several node types"},
        {"raw/data.npz", "1\n", "expected one node type in raw/*.csv.gz, found the binary layout"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        import_report_t report;
        rudder_error_t error = {0};
        char name[128];
        write_set();
        snprintf(name, sizeof name, "set/%s.gz", cases[i].file);
        write_gz(name, cases[i].text, "wb");
        assert_int_equal(RUDDER_E_DATA, import(&(import_ogb_t){.name = "set", .both = 1}, &report, &error));
        if (strstr(error.text, cases[i].told) == NULL) {
            fail_msg("%s: should tell \"%s\", says: %s", cases[i].file, cases[i].told, error.text);
        }
    }
    static const char *const needed[] = {"raw/edge",          "raw/node-feat",     "raw/node-label",
                                         "raw/num-node-list", "raw/num-edge-list", "split/time/test"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        import_report_t report;
        rudder_error_t error = {0};
        char name[128];
        write_set();
        snprintf(name, sizeof name, "set/%s.csv.gz", needed[i]);
        assert_int_equal(0, unlink(small_path(name)));
        const rudder_status_t status = import(&(import_ogb_t){.name = "set"}, &report, &error);
        assert_true(status == RUDDER_E_IO || status == RUDDER_E_DATA);
        assert_non_null(strstr(error.text, strrchr(needed[i], '/')));
    }
}

/* Every prefix of a gzip file: damage is seen, never taken for a shorter file. */
static void test_cut_gzip(void **state)
{
    (void)state;
    char bytes[512];
    import_report_t report;
    rudder_error_t error;
    write_set();
    FILE *file = fopen(small_path("set/raw/edge.csv.gz"), "rb");
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t length = 1; length < n; length++) {
        file = fopen(small_path("set/raw/edge.csv.gz"), "wb");
        assert_non_null(file);
        assert_int_equal(length, fwrite(bytes, 1, length, file));
        fclose(file);
        assert_int_equal(RUDDER_E_DATA, import(&(import_ogb_t){.name = "set"}, &report, &error));
        assert_non_null(strstr(error.text, "edge.csv.gz"));
    }
}

static void test_real(void **state)
{
    (void)state;
    import_report_t report;
    rudder_error_t error = {0};
    graph_t g;
    int64_t most = 0;
    char source[512];
    snprintf(source, sizeof source, "%s/data/debian-bookworm-deps", small_env("RUDDER_SHARED_DIR", "../shared"));
    if (access(source, F_OK) != 0) {
        print_message("not run: import of a real OGB layout (needs shared/data/debian-bookworm-deps)\n");
        skip();
    }
    mkdir(small_path("deps"), 0777);
    if (import_ogb(source, small_path("deps"), &(import_ogb_t){.name = "deps", .keep_duplicates = 1, .keep_loops = 1},
                   &report, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(RUDDER_OK, graph_open(small_path("deps"), &g, &error));
    assert_int_equal(63436, g.n_nodes);
    assert_int_equal(339368, g.n_edges);
    assert_int_equal(64, g.n_feat);
    assert_int_equal(58, g.n_classes);
    for (int64_t v = 0; v < g.n_nodes; v++) {
        most = g.indptr[v + 1] - g.indptr[v] > most ? g.indptr[v + 1] - g.indptr[v] : most;
    }
    assert_int_equal(21813, most); /* packages that need libc6 */
    graph_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),   cmocka_unit_test(test_ints),        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_edges),    cmocka_unit_test(test_split_names), cmocka_unit_test(test_broken),
        cmocka_unit_test(test_cut_gzip), cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, small_make_folder, small_remove_folder);
}
