/* The JSON writer: read back by an independent reader, and numbers that are the shortest which read back equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"

static void an_object_with_everything(void **state)
{
    json_t json = {0};
    (void)state;
    json_object(&json, NULL);
    json_string(&json, "text", "a\"b\\c\n\t\x01/\x7f");
    json_string(&json, "none", NULL);
    json_int(&json, "low", INT64_MIN);
    json_int(&json, "high", INT64_MAX);
    json_bool(&json, "yes", 7);
    json_bool(&json, "no", 0);
    json_null(&json, "null");
    json_array(&json, "list");
    json_int(&json, NULL, 1);
    json_object(&json, NULL);
    json_end_object(&json);
    json_array(&json, NULL);
    json_end_array(&json);
    json_double(&json, NULL, 0.5);
    json_end_array(&json);
    json_string(&json, "key \"quoted\"", "");
    json_end_object(&json);
    assert_false(json.failed);
    assert_int_equal(json.depth, 0);
    assert_int_equal(json.length, strlen(json.text));
    assert_string_equal(json.text,
                        "{\"text\":\"a\\\"b\\\\c\\n\\t\\u0001/\x7f\",\"none\":null,\"low\":-9223372036854775808,"
                        "\"high\":9223372036854775807,\"yes\":true,\"no\":false,\"null\":null,"
                        "\"list\":[1,{},[],0.5],\"key \\\"quoted\\\"\":\"\"}");
    cJSON *read = cJSON_Parse(json.text);
    assert_non_null(read);
    assert_string_equal(cJSON_GetObjectItem(read, "text")->valuestring, "a\"b\\c\n\t\x01/\x7f");
    cJSON_Delete(read);
    json_free(&json);
    assert_null(json.text);
}

static void pretty_is_the_same_content(void **state)
{
    json_t json = {.pretty = 1};
    (void)state;
    json_object(&json, NULL);
    json_int(&json, "a", 1);
    json_array(&json, "b");
    json_int(&json, NULL, 2);
    json_end_array(&json);
    json_object(&json, "c");
    json_end_object(&json);
    json_end_object(&json);
    assert_string_equal(json.text, "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ],\n  \"c\": {}\n}");
    json_free(&json);
}

/* What a number is written as. */
static const char *written(json_t *json, double value)
{
    json_reset(json);
    json_double(json, NULL, value);
    return json->text;
}

static void numbers_are_short(void **state)
{
    json_t json = {0};
    (void)state;
    assert_string_equal(written(&json, 0), "0");
    assert_string_equal(written(&json, -0.0), "-0");
    assert_string_equal(written(&json, 0.1), "0.1");
    assert_string_equal(written(&json, 1.0 / 3), "0.3333333333333333");
    assert_string_equal(written(&json, 5e-324), "4.94065645841247e-324");
    assert_string_equal(written(&json, (double)INFINITY), "null");
    assert_string_equal(written(&json, (double)-INFINITY), "null");
    assert_string_equal(written(&json, (double)NAN), "null");
    json_free(&json);
}

static void numbers_read_back_equal(void **state)
{
    json_t json = {0};
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        const uint64_t bits = rng_mix(i);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) {
            const double back = strtod(written(&json, value), NULL);
            assert_memory_equal(&back, &value, sizeof value);
        }
    }
    json_free(&json);
}

static void every_byte_string_becomes_valid_text(void **state)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"é€\xF0\x9F\x98\x80", "\"é€\xF0\x9F\x98\x80\""}, /* 2, 3 and 4 bytes stay */
        {"a\x80z", "\"a\uFFFDz\""},                       /* a lone continuation */
        {"\xC3", "\"\uFFFD\""},                           /* cut off */
        {"\xE2\x82", "\"\uFFFD\uFFFD\""},
        {"\xC0\xAF", "\"\uFFFD\uFFFD\""},                     /* overlong '/' */
        {"\xED\xA0\x80", "\"\uFFFD\uFFFD\uFFFD\""},           /* a surrogate */
        {"\xF4\x90\x80\x80", "\"\uFFFD\uFFFD\uFFFD\uFFFD\""}, /* beyond U+10FFFF */
        {"\xFFok", "\"\uFFFDok\""},
    };
    json_t json = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_reset(&json);
        json_string(&json, NULL, cases[i].bytes);
        assert_string_equal(json.text, cases[i].text);
    }
    for (uint64_t i = 0; i < 3000; i++) {
        char bytes[17];
        const uint64_t low = rng_mix(2 * i), high = rng_mix(2 * i + 1);
        memcpy(bytes, &low, 8);
        memcpy(bytes + 8, &high, 8);
        bytes[16] = '\0';
        json_reset(&json);
        json_string(&json, NULL, bytes);
        cJSON *read = cJSON_Parse(json.text);
        assert_non_null(read);
        cJSON_Delete(read);
    }
    json_free(&json);
}

static void nesting_is_bounded_and_slips_are_seen(void **state)
{
    json_t json = {0};
    (void)state;
    json_end_object(&json);
    assert_true(json.failed);
    json_reset(&json);
    assert_false(json.failed);
    for (int i = 0; i < 100000; i++) {
        json_array(&json, NULL);
    }
    assert_true(json.failed);
    assert_true(json.length < 1000);
    json_free(&json);
}

static void memory_is_kept_by_reset(void **state)
{
    json_t json = {0};
    (void)state;
    for (int i = 0; i < 1000; i++) {
        json_int(&json, NULL, i);
    }
    const char *text = json.text;
    const size_t capacity = json.capacity;
    json_reset(&json);
    assert_string_equal(json.text, "");
    for (int i = 0; i < 1000; i++) {
        json_int(&json, NULL, i);
    }
    assert_ptr_equal(json.text, text);
    assert_int_equal(json.capacity, capacity);
    json_free(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_with_everything),
        cmocka_unit_test(pretty_is_the_same_content),
        cmocka_unit_test(numbers_are_short),
        cmocka_unit_test(numbers_read_back_equal),
        cmocka_unit_test(every_byte_string_becomes_valid_text),
        cmocka_unit_test(nesting_is_bounded_and_slips_are_seen),
        cmocka_unit_test(memory_is_kept_by_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
