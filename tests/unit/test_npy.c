/* .npy files: what is written is read back, what is broken is named, and nothing is read past the end of a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/npy.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/rudder-npy-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* A file of this header text (version as given), padded to 64 when it has no line end, and `data` zero bytes. */
static size_t compose(unsigned char *bytes, int version, const char *text, size_t data)
{
    const size_t start = version == 1 ? 10 : 12;
    size_t n = strlen(text);
    memset(bytes, 0, start);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)version;
    memcpy(bytes + start, text, n);
    if (text[n - 1] != '\n') {
        while ((start + n + 1) % 64 != 0) {
            bytes[start + n++] = ' ';
        }
        bytes[start + n++] = '\n';
    }
    bytes[8] = (unsigned char)(n & 255);
    bytes[9] = (unsigned char)(n >> 8);
    memset(bytes + start + n, 0, data);
    return start + n + data;
}

static rudder_status_t parse(int version, const char *text, size_t data, npy_t *npy, rudder_error_t *error)
{
    /* On the heap and exactly as long as the file, so that a sanitizer sees any byte read beyond. */
    unsigned char buffer[2048];
    size_t offset = 0;
    const size_t n = compose(buffer, version, text, data);
    unsigned char *exact = malloc(n);
    assert_non_null(exact);
    memcpy(exact, buffer, n);
    const rudder_status_t status = npy_parse_header(exact, n, (int64_t)n, "x.npy", npy, &offset, error);
    if (status == RUDDER_OK) {
        assert_int_equal(n - data, offset);
    }
    free(exact);
    return status;
}

static void test_round_trip(void **state)
{
    (void)state;
    const struct {
        int32_t n_dimensions;
        int64_t shape[NPY_MAX_DIMENSIONS];
    } cases[] = {{1, {0}},    {1, {1}}, {1, {2}},       {2, {0, 5}},
                 {2, {3, 4}}, {0, {0}}, {3, {2, 3, 4}}, {8, {1, 2, 1, 2, 1, 2, 1, 2}}};
    double numbers[64];
    for (int i = 0; i < 64; i++) {
        numbers[i] = i * 1.25 - 7;
    }
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        npy_t npy;
        rudder_error_t error;
        int64_t count = 1;
        for (int32_t i = 0; i < cases[c].n_dimensions; i++) {
            count *= cases[c].shape[i];
        }
        const char *path = in_folder("a.npy");
        assert_int_equal(RUDDER_OK, npy_write(path, "<f8", cases[c].n_dimensions, cases[c].shape, numbers, &error));
        assert_int_equal(RUDDER_OK, npy_open_as(path, "<f8", cases[c].n_dimensions, cases[c].shape, &npy, &error));
        assert_int_equal(count, npy.count);
        assert_int_equal(8, npy.item_bytes);
        if (count > 0) {
            assert_memory_equal(numbers, npy.data, (size_t)count * 8);
            assert_int_equal(0, (uintptr_t)npy.data % 64);
        } else {
            assert_null(npy.data);
        }
        npy_close(&npy);
        npy_close(&npy); /* twice is fine */
    }
}

static void test_accepts(void **state)
{
    (void)state;
    const struct {
        int version;
        const char *text;
        size_t data;
        const char *dtype;
        int64_t count;
    } good[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 24, "<f4", 6},
        {2, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", 24, "<i8", 3},
        {3, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }", 1, "|u1", 1},
        {1, "{\"shape\": (2L,), \"descr\": \"<u4\", \"fortran_order\": False}", 8, "<u4", 2},
        {1, "{'descr': '>u1', 'fortran_order': False, 'shape': (4,)}", 4, "|u1", 4},
        {1, "{'descr':'|b1','fortran_order':False,'shape':(0,7)}", 0, "|b1", 0},
        {1, "{'descr': '<f2', 'fortran_order': False, 'shape': (4294967296, 0), }", 0, "<f2", 0},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        npy_t npy;
        rudder_error_t error;
        if (parse(good[i].version, good[i].text, good[i].data, &npy, &error) != RUDDER_OK) {
            fail_msg("%s: %s", good[i].text, error.text);
        }
        assert_string_equal(good[i].dtype, npy.dtype);
        assert_int_equal(good[i].count, npy.count);
    }
}

static const struct {
    const char *text;
    size_t data;
    const char *expected, *found;
} bad[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11, "12 bytes", "found 11"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 13, "12 bytes", "found 13"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }", 12, "C order", "Fortran order"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", 24, "number type", "pickled objects"},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }", 12, "little-endian", ">f4"},
    {"{'descr': '<U9', 'fortran_order': False, 'shape': (1,), }", 36, "number type", "<U9"},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, "number type", "<c8"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", 16, "number type", "<f16"},
    {"{'descr': '<i3', 'fortran_order': False, 'shape': (1,), }", 3, "number type", "<i3"},
    {"{'descr': '', 'fortran_order': False, 'shape': (1,), }", 3, "number type", "found "},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, "number type", "structured"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", 12, "negative", "-3"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }", 12, "2^63", "922337203685477"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99223372036854775807,), }", 12, "2^63", "992233720368547"},
    {"{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 12, "2^63", "[4294967296]"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, "8 dimensions", "more"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 3, }", 12, "parentheses", "3"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", 12, "end of the dictionary", "the end"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3", 12, "end of the shape", "the end"},
    {"{'descr': '<f4', 'fortran_order': False, }", 12, "shape", "no shape"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 12, "once", "again descr"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': 1}", 12, "once", "x"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} import os", 12, "nothing after", "import os"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", 12, "False or True", "0"},
    {"[1, 2]", 12, "dictionary", "[1, 2]"},
    {"{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}\n", 16, "multiple of 8", "found it at 6"},
};

static void test_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (int version = 1; version <= 3; version++) {
            npy_t npy = {0};
            rudder_error_t error = {0};
            assert_int_equal(RUDDER_E_DATA, parse(version, bad[i].text, bad[i].data, &npy, &error));
            if (strstr(error.text, bad[i].expected) == NULL || strstr(error.text, bad[i].found) == NULL ||
                strncmp(error.text, "x.npy: ", 7) != 0 || strstr(error.text, "expected") == NULL) {
                fail_msg("%s: should name \"%s\" and \"%s\", says: %s", bad[i].text, bad[i].expected, bad[i].found,
                         error.text);
            }
            assert_int_equal(0, npy.count);
        }
    }
    npy_t npy;
    rudder_error_t error;
    size_t offset;
    const unsigned char long_header[64] = "\x93NUMPY\x02\x00\xff\xff\xff\x7f";
    assert_int_equal(RUDDER_E_DATA, npy_parse_header(long_header, 64, INT64_MAX, "x.npy", &npy, &offset, &error));
    assert_non_null(strstr(error.text, "found 2147483647"));
    const unsigned char version_9[64] = "\x93NUMPY\x09\x00\x10\x00";
    assert_int_equal(RUDDER_E_DATA, npy_parse_header(version_9, 64, 64, "x.npy", &npy, &offset, &error));
    assert_non_null(strstr(error.text, "found 9"));
    assert_int_equal(RUDDER_E_DATA,
                     npy_parse_header("PK\x03\x04.............", 16, 16, "x.npy", &npy, &offset, &error));
    assert_non_null(strstr(error.text, "x.npy: expected an .npy file"));
}

/* Every prefix of a good file is refused: a short file is never mapped, so it cannot raise SIGBUS. */
static void test_truncated(void **state)
{
    (void)state;
    unsigned char bytes[512];
    rudder_error_t error;
    npy_t npy;
    size_t offset;
    const size_t n = compose(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (30,), }", 120);
    assert_int_equal(RUDDER_OK, npy_parse_header(bytes, n, (int64_t)n, "x.npy", &npy, &offset, &error));
    for (size_t length = 0; length < n; length++) {
        const char *path = in_folder("short.npy");
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(length, fwrite(bytes, 1, length, file));
        assert_int_equal(0, fclose(file));
        assert_int_equal(RUDDER_E_DATA, npy_open(path, &npy, &error));
        assert_non_null(strstr(error.text, "short.npy"));
        assert_non_null(strstr(error.text, "expected"));
        assert_non_null(strstr(error.text, "found"));
    }
}

static void test_files(void **state)
{
    (void)state;
    npy_t npy;
    rudder_error_t error;
    const float x[6] = {0};
    assert_int_equal(RUDDER_E_IO, npy_open(in_folder("none.npy"), &npy, &error));
    assert_non_null(strstr(error.text, "none.npy"));
    assert_int_equal(RUDDER_E_IO, npy_open(folder, &npy, &error));
    assert_int_equal(RUDDER_E_IO, npy_open("/dev/zero", &npy, &error));

    assert_int_equal(RUDDER_OK, npy_write(in_folder("f.npy"), "<f4", 2, (const int64_t[]){2, 3}, x, &error));
    assert_int_equal(RUDDER_OK, npy_open_as(in_folder("f.npy"), "<f4", 2, (const int64_t[]){-1, 3}, &npy, &error));
    npy_close(&npy);
    assert_int_equal(RUDDER_E_DATA, npy_open_as(in_folder("f.npy"), "<f8", 2, (const int64_t[]){-1, 4}, &npy, &error));
    assert_non_null(strstr(error.text, "f.npy: expected <f8 [any][4], found <f4 [2][3]"));
    assert_int_equal(RUDDER_E_DATA, npy_open_as(in_folder("f.npy"), "<f4", 1, (const int64_t[]){6}, &npy, &error));
    assert_int_equal(RUDDER_E_IO, npy_write("/no/such/folder/f.npy", "<f4", 2, (const int64_t[]){2, 3}, x, &error));
    assert_non_null(strstr(error.text, "/no/such/folder/f.npy"));
}

/* A file appears whole or not at all. */
static void test_writer(void **state)
{
    (void)state;
    npy_writer_t *writer = NULL;
    rudder_error_t error;
    npy_t npy;
    const int64_t shape[2] = {3, 2}, rows[6] = {1, 2, 3, 4, 5, INT64_MAX};
    char path[160];
    snprintf(path, sizeof path, "%s", in_folder("w.npy"));

    assert_int_equal(RUDDER_OK, npy_writer_open(path, "<i8", 2, shape, &writer, &error));
    assert_int_equal(RUDDER_OK, npy_writer_append(writer, rows, 4, &error));
    assert_int_equal(-1, access(path, F_OK));
    assert_int_equal(RUDDER_E_INTERNAL, npy_writer_append(writer, rows, 3, &error));
    assert_int_equal(RUDDER_OK, npy_writer_append(writer, rows + 4, 2, &error));
    assert_int_equal(RUDDER_OK, npy_writer_close(writer, &error));
    assert_int_equal(RUDDER_OK, npy_open_as(path, "<i8", 2, shape, &npy, &error));
    assert_memory_equal(rows, npy.data, sizeof rows);
    npy_close(&npy);

    assert_int_equal(RUDDER_OK, npy_writer_open(path, "<i8", 2, shape, &writer, &error));
    assert_int_equal(RUDDER_OK, npy_writer_append(writer, rows, 2, &error));
    assert_int_equal(RUDDER_E_INTERNAL, npy_writer_close(writer, &error));
    assert_int_equal(RUDDER_OK, npy_writer_open(path, "<i8", 2, shape, &writer, &error));
    npy_writer_abandon(writer);
    npy_writer_abandon(NULL);
    assert_int_equal(RUDDER_OK, npy_writer_close(NULL, &error));
    assert_int_equal(RUDDER_OK, npy_open_as(path, "<i8", 2, shape, &npy, &error)); /* the earlier file is still there */
    npy_close(&npy);
    char command[128];
    snprintf(command, sizeof command, "test -z \"$(ls %s | grep tmp)\"", folder);
    assert_int_equal(0, system(command));

    /* An array that turns out shorter than it was opened. */
    const int64_t most = INT64_MAX / 16, four = 4, none = 0;
    for (int64_t n = 4; n >= 0; n -= 4) {
        assert_int_equal(RUDDER_OK, npy_writer_open(path, "<i8", 1, &most, &writer, &error));
        assert_int_equal(RUDDER_OK, npy_writer_append(writer, rows, n, &error));
        assert_int_equal(RUDDER_OK, npy_writer_end(writer, &error));
        assert_int_equal(RUDDER_E_INTERNAL, npy_writer_append(writer, rows, 1, &error));
        assert_int_equal(RUDDER_OK, npy_writer_close(writer, &error));
        assert_int_equal(RUDDER_OK, npy_open_as(path, "<i8", 1, n == 4 ? &four : &none, &npy, &error));
        assert_true(n == 0 || memcmp(rows, npy.data, 4 * sizeof *rows) == 0);
        npy_close(&npy);
    }

    /* A full disk: the error is seen, no later than at the end. */
    snprintf(path, sizeof path, "%s/full.npy.%ld.tmp", folder, (long)getpid());
    assert_int_equal(0, symlink("/dev/full", path));
    assert_int_equal(RUDDER_E_IO, npy_write(in_folder("full.npy"), "<i8", 2, shape, rows, &error));
    assert_int_equal(-1, access(in_folder("full.npy"), F_OK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_accepts), cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_truncated),  cmocka_unit_test(test_files),   cmocka_unit_test(test_writer),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
