/*
 * Graph directories: rows against brute force, what is broken is named with file, expected and found, folders appear whole
 * and never take the place of something else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "graph/files.h"
#include "small_graph.h"

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

/* Number of pairs (row, column) among m, one by one. */
static int64_t count_pairs(int64_t m, const int64_t *row, const int64_t *column, int64_t r, int64_t c)
{
    int64_t count = 0;
    for (int64_t e = 0; e < m; e++) {
        count += row[e] == r && column[e] == c;
    }
    return count;
}

static int64_t count_in_row(const csr_t *csr, int64_t r, int64_t c)
{
    int64_t count = 0;
    for (int64_t e = csr->indptr[r]; e < csr->indptr[r + 1]; e++) {
        assert_in_range(csr->indices[e], 0, csr->n - 1);
        count += csr->indices[e] == c;
    }
    return count;
}

static void check_rows(int64_t n, int64_t m, uint64_t seed)
{
    int64_t row[64], column[64], duplicates, loops, true_duplicates = 0, true_loops = 0;
    csr_t csr, transposed, sorted, all, simple;
    for (int64_t e = 0; e < m; e++) {
        row[e] = (int64_t)(small_random(seed, 2 * (uint64_t)e) % (uint64_t)n);
        column[e] = (int64_t)(small_random(seed, 2 * (uint64_t)e + 1) % (uint64_t)n);
    }
    assert_int_equal(RUDDER_OK, csr_from_pairs(n, m, row, column, &csr, NULL));
    assert_int_equal(RUDDER_OK, csr_transpose(n, csr.indptr, csr.indices, &transposed, NULL));
    assert_int_equal(RUDDER_OK, csr_transpose(n, transposed.indptr, transposed.indices, &sorted, NULL));
    assert_int_equal(RUDDER_OK, csr_merge(&sorted, &transposed, 0, &all, NULL));
    assert_int_equal(RUDDER_OK, csr_undirected(n, csr.indptr, csr.indices, &simple, &duplicates, &loops, NULL));
    assert_int_equal(m, csr.m);
    assert_int_equal(2 * m, all.m);
    assert_int_equal(0, csr.indptr[0]);
    assert_int_equal(m, csr.indptr[n]);
    assert_int_equal(simple.m, simple.indptr[n]);
    for (int64_t r = 0; r < n; r++) {
        for (int64_t c = 0; c < n; c++) {
            const int64_t there = count_pairs(m, row, column, r, c), back = count_pairs(m, row, column, c, r);
            assert_int_equal(there, count_in_row(&csr, r, c));
            assert_int_equal(there, count_in_row(&transposed, c, r));
            assert_int_equal(there + back, count_in_row(&all, r, c));
            assert_int_equal(r != c && there + back > 0, count_in_row(&simple, r, c));
            true_duplicates += there > 1 ? there - 1 : 0;
            true_loops += r == c ? there : 0;
        }
        for (int64_t e = simple.indptr[r]; e + 1 < simple.indptr[r + 1]; e++) {
            assert_true(simple.indices[e] < simple.indices[e + 1]);
        }
    }
    assert_int_equal(true_duplicates, duplicates);
    assert_int_equal(true_loops, loops);
    int64_t next = 0; /* entries of a row keep the order of the pairs */
    for (int64_t r = 0; r < n; r++) {
        for (int64_t e = 0; e < m; e++) {
            if (row[e] == r) {
                assert_int_equal(column[e], csr.indices[next++]);
            }
        }
    }
    csr_free(&csr);
    csr_free(&transposed);
    csr_free(&sorted);
    csr_free(&all);
    csr_free(&simple);
}

static void test_rows(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 9; n++) {
        for (int64_t m = 0; m <= 64; m += m < 4 ? 1 : 12) {
            check_rows(n, m, (uint64_t)(100 * n + m));
        }
    }
    csr_t none = {0};
    assert_int_equal(RUDDER_OK, csr_from_pairs(0, 0, NULL, NULL, &none, NULL));
    assert_int_equal(0, none.m);
    csr_free(&none);
    csr_free(&none);
}

/* ---- a graph directory --------------------------------------------------------------------------------------------- */

static const int64_t ring_from[] = {0, 1, 2, 3, 0, 2}, ring_to[] = {1, 2, 3, 0, 0, 1};

static void test_opens(void **state)
{
    (void)state;
    graph_t g;
    rudder_error_t error;
    assert_int_equal(0, small_write(small_path("ring"), 4, 6, ring_from, ring_to, 5));
    assert_int_equal(RUDDER_OK, graph_open(small_path("ring"), &g, &error));
    assert_string_equal("small", g.name);
    assert_int_equal(4, g.n_nodes);
    assert_int_equal(6, g.n_edges);
    assert_int_equal(SMALL_FEAT, g.n_feat);
    assert_int_equal(SMALL_CLASSES, g.n_classes);
    assert_memory_equal(((const int64_t[]){0, 2, 4, 5, 6}), g.indptr, 5 * sizeof(int64_t));
    assert_memory_equal(((const int64_t[]){3, 0, 0, 2, 1, 2}), g.indices, 6 * sizeof(int64_t));
    assert_true(g.feat[3 * SMALL_FEAT + 1] == 10.0f);
    assert_int_equal(3, g.label[3]);
    assert_int_equal(SPLIT_TRAIN, g.split[3]);
    graph_close(&g);
    graph_close(&g);

    assert_int_equal(0, small_write(small_path("one"), 1, 0, NULL, NULL, 5)); /* one node, no edge */
    assert_int_equal(RUDDER_OK, graph_open(small_path("one"), &g, &error));
    assert_int_equal(0, g.n_edges);
    graph_close(&g);
}

/* Each case replaces one file of a good graph. */
static const struct {
    const char *file, *dtype;
    int32_t n_dimensions;
    int64_t shape[2];
    const void *data;
    const char *expected, *found;
} broken[] = {
    {"indptr.npy", "<i8", 1, {5, 0}, (const int64_t[]){1, 2, 4, 5, 6}, "from 0", "found 1 at [0]"},
    {"indptr.npy", "<i8", 1, {5, 0}, (const int64_t[]){0, 4, 2, 5, 6}, "never fall", "found 2 at [2] after 4"},
    {"indptr.npy", "<i8", 1, {5, 0}, (const int64_t[]){0, 2, 4, 5, 5}, "6 (the edges)", "found 5"},
    {"indptr.npy", "<i8", 1, {5, 0}, (const int64_t[]){0, 2, 4, 5, INT64_MAX}, "6 (the edges)", "9223372036854775807"},
    {"indptr.npy", "<i8", 1, {4, 0}, (const int64_t[]){0, 2, 4, 6}, "<i8 [5]", "<i8 [4]"},
    {"indices.npy", "<i8", 1, {6, 0}, (const int64_t[]){3, 0, 0, 2, 4, 2}, "in 0..3", "found 4 at [4]"},
    {"indices.npy", "<i8", 1, {6, 0}, (const int64_t[]){-1, 0, 0, 2, 1, 2}, "in 0..3", "found -1 at [0]"},
    {"indices.npy",
     "<i8",
     1,
     {6, 0},
     (const int64_t[]){3, 0, 0, 2, 1, (int64_t)1 << 40},
     "in 0..3",
     "found 1099511627776"},
    {"indices.npy", "<i4", 1, {6, 0}, (const int32_t[]){3, 0, 0, 2, 1, 2}, "<i8 [6]", "<i4 [6]"},
    {"indices.npy", "<i8", 1, {5, 0}, (const int64_t[]){3, 0, 0, 2, 1}, "<i8 [6]", "<i8 [5]"},
    {"feat.npy", "<f4", 2, {4, 3}, (const float[12]){[7] = __builtin_nanf("")}, "finite", "nan at [2][1]"},
    {"feat.npy", "<f4", 2, {4, 3}, (const float[12]){[11] = -__builtin_inff()}, "finite", "-inf at [3][2]"},
    {"feat.npy", "<f8", 2, {4, 3}, (const double[12]){0}, "<f4 [4][3]", "<f8 [4][3]"},
    {"feat.npy", "<f4", 2, {3, 4}, (const float[12]){0}, "<f4 [4][3]", "<f4 [3][4]"},
    {"label.npy", "<i4", 1, {4, 0}, (const int32_t[]){0, 1, 5, 3}, "in -1..4", "found 5 at [2]"},
    {"label.npy", "<i4", 1, {4, 0}, (const int32_t[]){0, 1, -2, 3}, "in -1..4", "found -2 at [2]"},
    {"split.npy", "|u1", 1, {4, 0}, (const uint8_t[]){1, 1, 4, 1}, "3 (test)", "found 4 at [2]"},
    {"split.npy", "|u1", 1, {4, 0}, (const uint8_t[]){0, 2, 3, 2}, "training node", "found none"},
};

static void test_broken_arrays(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        graph_t g = {0};
        rudder_error_t error;
        char path[512];
        assert_int_equal(0, small_write(small_path("broken"), 4, 6, ring_from, ring_to, 5));
        snprintf(path, sizeof path, "%s/%s", small_path("broken"), broken[i].file);
        assert_int_equal(RUDDER_OK, npy_write(path, broken[i].dtype, broken[i].n_dimensions, broken[i].shape,
                                              broken[i].data, &error));
        assert_int_equal(RUDDER_E_DATA, graph_open(small_path("broken"), &g, &error));
        if (strncmp(error.text, path, strlen(path)) != 0 || strstr(error.text, broken[i].expected) == NULL ||
            strstr(error.text, broken[i].found) == NULL || strstr(error.text, "expected") == NULL) {
            fail_msg("%s: should name \"%s\" and \"%s\", says: %s", path, broken[i].expected, broken[i].found,
                     error.text);
        }
        assert_null(g.indptr);
    }
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(0, fclose(file));
}

static void test_broken_json(void **state)
{
    (void)state;
    static const struct {
        const char *text, *found;
    } cases[] = {
        {"", "byte 0"},
        {"{\"format\": \"rudder-graph\", ", "something else at byte"},
        {"[1]", "something else"},
        {"{\"format\": \"rudder-parts\", \"version\": 1}", "found \"rudder-parts\""},
        {"{\"format\": \"rudder-graph\", \"version\": 2}", "found 2"},
        {"{\"format\": \"rudder-graph\", \"version\": 1, \"name\": 3}", "found something else"},
        {"{\"format\": \"rudder-graph\", \"version\": 1, \"name\": \"x\"}", "\"nodes\", found none"},
        {"{\"format\": \"rudder-graph\", \"version\": 1, \"name\": \"x\", \"nodes\": 0, \"edges\": 0}", "found 0"},
        {"{\"format\": \"rudder-graph\", \"version\": 1, \"name\": \"x\", \"nodes\": 1.5}", "found 1.5"},
        {"{\"format\": \"rudder-graph\", \"version\": 1, \"name\": \"x\", \"nodes\": 1e300}", "found 1"},
        {"{\"format\": \"rudder-graph\", \"version\": 1, \"name\": \"x\", \"nodes\": 4, \"edges\": -1}", "found -1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graph_t g;
        rudder_error_t error;
        assert_int_equal(0, small_write(small_path("json"), 4, 6, ring_from, ring_to, 5));
        write_text(small_path("json/graph.json"), cases[i].text);
        assert_int_equal(RUDDER_E_DATA, graph_open(small_path("json"), &g, &error));
        if (strstr(error.text, "graph.json: expected") == NULL || strstr(error.text, cases[i].found) == NULL) {
            fail_msg("%s: should name \"%s\", says: %s", cases[i].text, cases[i].found, error.text);
        }
    }
    graph_t g;
    rudder_error_t error;
    assert_int_equal(RUDDER_E_IO, graph_open(small_path("nowhere"), &g, &error));
    assert_non_null(strstr(error.text, "nowhere/graph.json"));
    assert_int_equal(0, small_write(small_path("missing"), 4, 6, ring_from, ring_to, 5));
    assert_int_equal(0, unlink(small_path("missing/label.npy")));
    assert_int_equal(RUDDER_E_IO, graph_open(small_path("missing"), &g, &error));
    assert_non_null(strstr(error.text, "missing/label.npy"));
}

/* ---- folders ------------------------------------------------------------------------------------------------------- */

static rudder_status_t make_folder(const char *path, int force, const char *content, char *aside, rudder_error_t *error)
{
    files_folder_t folder;
    json_t json = {0};
    const rudder_status_t status = files_folder_open(path, "graph.json", force, &folder, error);
    if (status != RUDDER_OK) {
        return status;
    }
    json_string(&json, NULL, content);
    assert_int_equal(RUDDER_OK, files_json_write(folder.work, "graph.json", &json, error));
    json_free(&json);
    return files_folder_close(&folder, aside, error);
}

static void assert_content(const char *path, const char *content)
{
    char *text;
    int64_t n;
    assert_int_equal(RUDDER_OK, files_read(path, 4096, &text, &n, NULL));
    assert_non_null(strstr(text, content));
    free(text);
}

static void test_folders(void **state)
{
    (void)state;
    char aside[FILES_MAX_PATH];
    rudder_error_t error;
    files_folder_t folder;
    char path[512];
    snprintf(path, sizeof path, "%s", small_path("out"));
    assert_int_equal(RUDDER_OK, make_folder(small_path("out/"), 0, "first", aside, &error)); /* nothing there */
    assert_int_equal(RUDDER_OK, make_folder(path, 0, "second", aside, &error)); /* of this kind: replaced */
    assert_string_equal("", aside);
    assert_content(small_path("out/graph.json"), "second");

    write_text(small_path("out/notes.txt"), "mine"); /* something of the user's in it */
    assert_int_equal(RUDDER_E_ARGUMENT, make_folder(path, 0, "third", aside, &error));
    assert_non_null(strstr(error.text, "--force"));
    assert_content(small_path("out/graph.json"), "second");
    assert_int_equal(RUDDER_OK, make_folder(path, 1, "third", aside, &error));
    assert_content(small_path("out/graph.json"), "third");
    assert_string_equal(small_path("out.old1"), aside);
    assert_content(small_path("out.old1/notes.txt"), "mine");

    assert_int_equal(0, mkdir(small_path("other"), 0777)); /* empty: taken; of another kind: refused */
    assert_int_equal(RUDDER_OK, files_folder_open(small_path("other"), "parts.json", 0, &folder, &error));
    assert_int_equal(RUDDER_OK, files_folder_close(&folder, aside, &error));
    assert_int_equal(RUDDER_E_ARGUMENT, files_folder_open(path, "parts.json", 0, &folder, &error));
    write_text(small_path("file"), "a file");
    assert_int_equal(RUDDER_E_ARGUMENT, make_folder(small_path("file"), 0, "x", aside, &error));
    assert_int_equal(RUDDER_E_IO, make_folder(small_path("no/such/parent"), 0, "x", aside, &error));
    assert_int_equal(RUDDER_E_ARGUMENT, make_folder("", 0, "x", aside, &error));

    assert_int_equal(RUDDER_OK, files_folder_open(path, "graph.json", 0, &folder, &error)); /* given up: as before */
    files_folder_abandon(&folder);
    files_folder_abandon(&folder);
    assert_content(small_path("out/graph.json"), "third");

    files_folder_t second; /* two at once: the later one is told; what is left of a killed one is cleared */
    assert_int_equal(RUDDER_OK, files_folder_open(path, "graph.json", 0, &folder, &error));
    write_text(small_path("out.tmp/feat.npy.123.tmp"), "half");
    assert_int_equal(RUDDER_E_IO, files_folder_open(path, "graph.json", 0, &second, &error));
    assert_non_null(strstr(error.text, "another process"));
    close(folder.lock);
    assert_int_equal(RUDDER_OK, make_folder(path, 0, "fourth", aside, &error));
    assert_content(small_path("out/graph.json"), "fourth");
    assert_int_equal(-1, access(small_path("out/feat.npy.123.tmp"), F_OK));
    assert_int_equal(0, mkdir(small_path("out.tmp"), 0777)); /* a name that the user has given to something else */
    write_text(small_path("out.tmp/notes.txt"), "mine");
    assert_int_equal(RUDDER_E_ARGUMENT, make_folder(path, 1, "fifth", aside, &error));
    assert_content(small_path("out.tmp/notes.txt"), "mine");
    assert_int_equal(0, unlink(small_path("out.tmp/notes.txt")));
    assert_int_equal(0, rmdir(small_path("out.tmp")));
    char command[400];
    snprintf(command, sizeof command, "test -z \"$(ls %s | grep tmp)\"", small_folder);
    assert_int_equal(0, system(command));
}

/* ---- splits -------------------------------------------------------------------------------------------------------- */

static void test_split(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= 1000; n += n < 12 ? 1 : 494) {
        int32_t label[1001] = {0};
        uint8_t a[1001], b[1001], c[1001];
        int64_t count[4] = {0}, labelled = 0, differ = 0;
        for (int64_t v = 0; v < n; v++) {
            label[v] = v % 7 == 3 ? -1 : 0;
            labelled += label[v] >= 0;
        }
        assert_int_equal(RUDDER_OK, write_draw_split(label, n, 5, a, NULL));
        assert_int_equal(RUDDER_OK, write_draw_split(label, n, 5, b, NULL));
        assert_int_equal(RUDDER_OK, write_draw_split(label, n, 6, c, NULL));
        assert_memory_equal(a, b, (size_t)n);
        for (int64_t v = 0; v < n; v++) {
            assert_int_equal(label[v] < 0, a[v] == SPLIT_NONE);
            count[a[v]]++;
            differ += a[v] != c[v];
        }
        assert_int_equal(labelled / 5, count[SPLIT_VALID]);
        assert_int_equal(labelled / 5, count[SPLIT_TEST]);
        assert_int_equal(labelled - 2 * (labelled / 5), count[SPLIT_TRAIN]);
        assert_true(n < 100 || differ > n / 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),        cmocka_unit_test(test_opens),   cmocka_unit_test(test_broken_arrays),
        cmocka_unit_test(test_broken_json), cmocka_unit_test(test_folders), cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests(tests, small_make_folder, small_remove_folder);
}
