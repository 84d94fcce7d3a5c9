/*
 * Archives of arrays: stored and deflated members, wide fields, comments; archives cut at every byte and with every byte
 * changed are refused or read right, and never larger than allowed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "trace/npz.h"
#include "trace/trace.h"

static char path[] = "/tmp/rudder-npz-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    const int file = mkstemp(path);
    return file < 0 || close(file) != 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

/* ---- Writing archives ------------------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char data[8192];
    size_t n;
} bytes_t;

static void put(bytes_t *b, uint64_t value, int width)
{
    for (int i = 0; i < width; i++) {
        b->data[b->n++] = (unsigned char)(value >> 8 * i);
    }
}

static void put_bytes(bytes_t *b, const void *data, size_t n)
{
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

/* A .npy text of a vector. */
static void npy_of(bytes_t *b, const char *dtype, const void *data, size_t item, int64_t count)
{
    char header[118];
    memset(header, ' ', sizeof header);
    header[snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%lld,), }", dtype,
                    (long long)count)] = ' ';
    header[sizeof header - 1] = '\n';
    put_bytes(b, "\x93NUMPY\x01\x00", 8);
    put(b, sizeof header, 2);
    put_bytes(b, header, sizeof header);
    put_bytes(b, data, item * (size_t)count);
}

typedef struct member {
    const char *name;
    const bytes_t *content;
    int deflated, wide;
    size_t packed, local; /* filled by archive() */
    uint32_t crc;
} member_t;

static void put_header(bytes_t *zip, const member_t *m, int directory)
{
    const size_t name = strlen(m->name), extra = m->wide ? (directory ? 28 : 20) : 0;
    put(zip, directory ? 0x02014b50 : 0x04034b50, 4);
    put(zip, 45, directory ? 4 : 2);
    put(zip, 0, 2);
    put(zip, m->deflated ? 8 : 0, 2);
    put(zip, 0, 4);
    put(zip, m->crc, 4);
    put(zip, m->wide ? UINT32_MAX : m->packed, 4);
    put(zip, m->wide ? UINT32_MAX : m->content->n, 4);
    put(zip, name, 2);
    put(zip, extra, 2);
    if (directory) {
        put(zip, 0, 8); /* comment, disk, attributes */
        put(zip, 0, 2);
        put(zip, m->wide ? UINT32_MAX : m->local, 4);
    }
    put_bytes(zip, m->name, name);
    if (m->wide) {
        put(zip, 1, 2);
        put(zip, extra - 4, 2);
        put(zip, m->content->n, 8);
        put(zip, m->packed, 8);
        if (directory) {
            put(zip, m->local, 8);
        }
    }
}

static void archive(bytes_t *zip, member_t *members, int n, int wide_end, size_t comment)
{
    zip->n = 0;
    for (int i = 0; i < n; i++) {
        member_t *m = &members[i];
        unsigned char packed[4096];
        m->packed = m->content->n;
        m->crc = (uint32_t)crc32(0, m->content->data, (uInt)m->content->n);
        memcpy(packed, m->content->data, m->content->n);
        if (m->deflated) {
            z_stream stream = {.next_in = (unsigned char *)m->content->data,
                               .avail_in = (uInt)m->content->n,
                               .next_out = packed,
                               .avail_out = sizeof packed};
            assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
            assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
            m->packed = stream.total_out;
            deflateEnd(&stream);
        }
        m->local = zip->n;
        put_header(zip, m, 0);
        put_bytes(zip, packed, m->packed);
    }
    const size_t directory = zip->n;
    for (int i = 0; i < n; i++) {
        put_header(zip, &members[i], 1);
    }
    const size_t directory_bytes = zip->n - directory;
    if (wide_end) {
        const size_t at = zip->n;
        put(zip, 0x06064b50, 4);
        put(zip, 44, 8);
        put(zip, 45, 4);
        put(zip, 0, 8);
        put(zip, (uint64_t)n, 8);
        put(zip, (uint64_t)n, 8);
        put(zip, directory_bytes, 8);
        put(zip, directory, 8);
        put(zip, 0x07064b50, 4);
        put(zip, 0, 4);
        put(zip, at, 8);
        put(zip, 1, 4);
    }
    put(zip, 0x06054b50, 4);
    put(zip, 0, 4);
    put(zip, wide_end ? 0xffff : (uint64_t)n, 2);
    put(zip, wide_end ? 0xffff : (uint64_t)n, 2);
    put(zip, wide_end ? UINT32_MAX : directory_bytes, 4);
    put(zip, wide_end ? UINT32_MAX : directory, 4);
    put(zip, comment, 2);
    for (size_t i = 0; i < comment; i++) {
        put(zip, 'P', 1); /* as in the mark of a header */
    }
}

static void write_file(const unsigned char *data, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static rudder_status_t read_member(const char *name, const char *dtype, int64_t max_bytes, npy_t *array,
                                   rudder_error_t *error)
{
    npz_t *npz = NULL;
    rudder_status_t status = npz_open(path, &npz, error);
    if (status == RUDDER_OK) {
        status = npz_read(npz, name, dtype, 1, max_bytes, array, error);
    }
    npz_close(npz);
    return status;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------ */

enum { COUNT = 100 };
static int64_t wide_values[COUNT];
static uint32_t narrow_values[COUNT];
static bytes_t wide_npy, narrow_npy, empty_npy, zip;

static void make_members(member_t members[3])
{
    for (int i = 0; i < COUNT; i++) {
        wide_values[i] = ((int64_t)i << 33) + 7 * i;
        narrow_values[i] = (uint32_t)i * 2654435761u;
    }
    wide_npy.n = narrow_npy.n = empty_npy.n = 0;
    npy_of(&wide_npy, "<i8", wide_values, 8, COUNT);
    npy_of(&narrow_npy, "<u4", narrow_values, 4, COUNT);
    npy_of(&empty_npy, "<u4", narrow_values, 4, 0);
    members[0] = (member_t){.name = "wide.npy", .content = &wide_npy};
    members[1] = (member_t){.name = "narrow.npy", .content = &narrow_npy};
    members[2] = (member_t){.name = "empty.npy", .content = &empty_npy};
}

static void test_all_kinds(void **state)
{
    (void)state;
    for (int kind = 0; kind < 16; kind++) {
        member_t members[3];
        npy_t array = {0};
        rudder_error_t error = {0};
        make_members(members);
        for (int i = 0; i < 3; i++) {
            members[i].deflated = kind & 1;
            members[i].wide = kind >> 1 & 1;
        }
        archive(&zip, members, 3, kind >> 2 & 1, kind >> 3 & 1 ? 500 : 0);
        write_file(zip.data, zip.n);
        assert_int_equal(read_member("wide", "<i8", 4096, &array, &error), RUDDER_OK);
        assert_int_equal(array.count, COUNT);
        assert_memory_equal(array.data, wide_values, sizeof wide_values);
        npy_close(&array);
        assert_int_equal(read_member("narrow", "<u4", 4096, &array, &error), RUDDER_OK);
        assert_memory_equal(array.data, narrow_values, sizeof narrow_values);
        npy_close(&array);
        assert_int_equal(read_member("empty", "<u4", 4096, &array, &error), RUDDER_OK);
        assert_int_equal(array.count, 0);
        assert_null(array.data);
        npy_close(&array);
    }
}

static void test_refusals_name_the_thing(void **state)
{
    member_t members[3];
    npy_t array = {0};
    rudder_error_t error = {0};
    (void)state;
    make_members(members);
    archive(&zip, members, 3, 0, 0);
    write_file(zip.data, zip.n);
    assert_int_equal(read_member("absent", "<i8", 4096, &array, &error), RUDDER_E_DATA);
    assert_non_null(strstr(error.text, "absent.npy"));
    assert_non_null(strstr(error.text, path));
    assert_int_equal(read_member("wide", "<f4", 4096, &array, &error), RUDDER_E_DATA);
    assert_non_null(strstr(error.text, "expected <f4"));
    assert_int_equal(read_member("wide", "<i8", (int64_t)wide_npy.n - 1, &array, &error), RUDDER_E_DATA);
    assert_non_null(strstr(error.text, "found 928"));
    assert_null(array.map);
    npz_t *npz = NULL;
    assert_int_equal(npz_open("/nowhere/x.npz", &npz, &error), RUDDER_E_IO);
    assert_int_equal(npz_open("/tmp", &npz, &error), RUDDER_E_DATA);
    write_file((const unsigned char *)"", 0);
    assert_int_equal(npz_open(path, &npz, &error), RUDDER_E_DATA);
    assert_null(npz);
}

/* Says that it unpacks to more, or to less, than it does. */
static void test_wrong_sizes(void **state)
{
    (void)state;
    for (int change = -1; change <= 1; change += 2) {
        member_t members[3];
        npy_t array = {0};
        make_members(members);
        members[0].deflated = 1;
        archive(&zip, members, 1, 0, 0);
        const size_t entry = zip.n - 22 - 46 - strlen("wide.npy");
        zip.data[entry + 24] = (unsigned char)(zip.data[entry + 24] + change);
        write_file(zip.data, zip.n);
        assert_int_equal(read_member("wide", "<i8", 4096, &array, NULL), RUDDER_E_DATA);
    }
}

/* Reads right or not at all. */
static void check_damaged(const unsigned char *data, size_t n)
{
    npy_t array = {0};
    write_file(data, n);
    if (read_member("wide", "<i8", 4096, &array, NULL) == RUDDER_OK) {
        assert_int_equal(array.count, COUNT);
        assert_memory_equal(array.data, wide_values, sizeof wide_values);
        npy_close(&array);
    }
}

static void test_cut_and_changed(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        member_t members[3];
        make_members(members);
        members[0].deflated = members[1].deflated = kind & 1;
        members[0].wide = kind >> 1;
        archive(&zip, members, 2, kind >> 1, 0);
        for (size_t n = 0; n < zip.n; n++) {
            check_damaged(zip.data, n);
        }
        for (size_t i = 0; i < zip.n; i++) {
            static const unsigned char flips[] = {0x01, 0x80, 0xff};
            for (int f = 0; f < 3; f++) {
                zip.data[i] ^= flips[f];
                check_damaged(zip.data, zip.n);
                zip.data[i] ^= flips[f];
            }
        }
    }
}

/* A file that NumPy wrote. */
static void test_recorded_trace(void **state)
{
    char name[512];
    trace_t trace;
    rudder_error_t error = {0};
    (void)state;
    const char *shared = getenv("RUDDER_SHARED_DIR");
    snprintf(name, sizeof name, "%s/data/traces/rmat_b100.rank0.npz", shared != NULL ? shared : "../shared");
    if (trace_load(name, &trace, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(trace.n_ids, 1101330);
    assert_int_equal(trace.n_minibatches, 600);
    assert_int_equal(trace.n_halo, 66398);
    for (int64_t i = 1; i < trace.n_halo; i++) {
        assert_true(trace.halo[i] > trace.halo[i - 1]);
    }
    trace_free(&trace);
    assert_int_equal(trace_load("/nowhere/x.npz", &trace, &error), RUDDER_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_kinds), cmocka_unit_test(test_refusals_name_the_thing),
                                       cmocka_unit_test(test_wrong_sizes), cmocka_unit_test(test_cut_and_changed),
                                       cmocka_unit_test(test_recorded_trace)};
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
