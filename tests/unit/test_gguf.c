/* The check of GGUF files: a small one made here is good, and damaged in any way it is refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/gguf.h"
#include "agent/models.h"

typedef struct file {
    unsigned char bytes[4096];
    size_t n;
} file_t;

static void put(file_t *file, uint64_t value, size_t bytes)
{
    memcpy(file->bytes + file->n, &value, bytes);
    file->n += bytes;
}

static void put_text(file_t *file, const char *text)
{
    put(file, strlen(text), 8);
    memcpy(file->bytes + file->n, text, strlen(text));
    file->n += strlen(text);
}

/* Version 3, four pairs (one of them an array of strings), two tensors: 64 floats and 256 Q4_K. header: bytes before data. */
static void small_file(file_t *file, size_t *header)
{
    memset(file, 0, sizeof *file);
    memcpy(file->bytes, "GGUF", 4);
    file->n = 4;
    put(file, 3, 4);
    put(file, 2, 8);
    put(file, 4, 8);
    put_text(file, "general.architecture");
    put(file, 8, 4);
    put_text(file, "toy");
    put_text(file, "general.alignment");
    put(file, 4, 4);
    put(file, 64, 4);
    put_text(file, "tokens");
    put(file, 9, 4);
    put(file, 8, 4);
    put(file, 2, 8);
    put_text(file, "a");
    put_text(file, "bc");
    put_text(file, "general.name");
    put(file, 8, 4);
    put_text(file, "A toy");
    put_text(file, "first");
    put(file, 2, 4);
    put(file, 16, 8);
    put(file, 4, 8);
    put(file, 0, 4);
    put(file, 0, 8);
    put_text(file, "second");
    put(file, 1, 4);
    put(file, 256, 8);
    put(file, 12, 4);
    put(file, 256, 8);
    *header = file->n;
    file->n = (file->n + 63) / 64 * 64 + 256 + 144;
}

static rudder_status_t parse(const file_t *file, size_t n, gguf_info_t *info, rudder_error_t *error)
{
    unsigned char *bytes = malloc(n > 0 ? n : 1);
    assert_non_null(bytes);
    memcpy(bytes, file->bytes, n);
    const rudder_status_t status = gguf_parse(bytes, n, (int64_t)n, "toy.gguf", info, error);
    free(bytes);
    return status;
}

static void test_small(void **state)
{
    file_t file;
    size_t header;
    gguf_info_t info;
    rudder_error_t error;
    (void)state;
    small_file(&file, &header);
    assert_int_equal(parse(&file, file.n, &info, &error), RUDDER_OK);
    assert_string_equal(info.architecture, "toy");
    assert_string_equal(info.name, "A toy");
    assert_int_equal(info.tensors, 2);
    assert_int_equal(info.file_bytes, (int64_t)file.n);
}

static void test_every_cut(void **state)
{
    file_t file;
    size_t header;
    gguf_info_t info;
    rudder_error_t error;
    (void)state;
    small_file(&file, &header);
    for (size_t n = 0; n < file.n; n++) {
        assert_int_equal(parse(&file, n, &info, &error), RUDDER_E_DATA);
        assert_non_null(strstr(error.text, n < 4        ? "does not start with GGUF"
                                           : n < header ? "cut off or damaged"
                                                        : "truncated: expected at least"));
    }
}

/* One field at a time made absurd. */
static void test_damage(void **state)
{
    static const uint64_t absurd[] = {0xFFFFFFFFu, UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 40};
    file_t file, good;
    size_t header;
    gguf_info_t info;
    rudder_error_t error;
    (void)state;
    small_file(&good, &header);
    for (uint32_t version = 0; version < 300; version++) {
        file = good;
        memcpy(file.bytes + 4, &version, 4);
        assert_int_equal(parse(&file, file.n, &info, &error), version == 2 || version == 3 ? RUDDER_OK : RUDDER_E_DATA);
    }
    file = good;
    file.bytes[0] = 'g';
    assert_int_equal(parse(&file, file.n, &info, &error), RUDDER_E_DATA);
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
        for (size_t at = 8; at <= 24; at += 8) { /* tensors, pairs, length of the first key */
            file = good;
            memcpy(file.bytes + at, &absurd[i], 8);
            assert_int_equal(parse(&file, file.n, &info, &error), RUDDER_E_DATA);
        }
        file = good;
        memcpy(file.bytes + header - 8, &absurd[i], 8); /* offset of the last tensor */
        assert_int_equal(parse(&file, file.n, &info, &error), RUDDER_E_DATA);
        file = good;
        memcpy(file.bytes + header - 20, &absurd[i], 8); /* its size */
        assert_int_equal(parse(&file, file.n, &info, &error), RUDDER_E_DATA);
    }
}

static void test_files(void **state)
{
    char path[4096];
    gguf_info_t info;
    rudder_error_t error;
    (void)state;
    assert_int_equal(gguf_check("/nonexistent/model.gguf", &info, &error), RUDDER_E_IO);
    assert_non_null(strstr(error.text, "/nonexistent/model.gguf"));
    assert_int_equal(gguf_check("/tmp", &info, &error), RUDDER_E_DATA);
    assert_int_equal(gguf_check("/dev/null", &info, &error), RUDDER_E_DATA);
    static const char *const names[] = {"default", "small", "tiny"};
    for (size_t i = 0; i < 3; i++) {
        if (models_path(names[i], path, sizeof path, &error) != RUDDER_OK) {
            print_message("not run: check of the model %s (not in the cache)\n", names[i]);
            continue;
        }
        assert_int_equal(gguf_check(path, &info, &error), RUDDER_OK);
        print_message("%s: %s, %s, %lld tensors, %lld bytes\n", names[i], info.architecture, info.name,
                      (long long)info.tensors, (long long)info.file_bytes);
        /* One byte short is seen: the sizes of all tensors are counted, not only where they begin. */
        FILE *file = fopen(path, "rb");
        const size_t head = 64u << 20;
        char *bytes = malloc(head);
        assert_true(file != NULL && bytes != NULL);
        const size_t n = fread(bytes, 1, head, file);
        assert_int_equal(gguf_parse(bytes, n, info.file_bytes - 1, path, &info, &error), RUDDER_E_DATA);
        free(bytes);
        fclose(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
