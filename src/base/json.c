/*
 * The JSON writer. Every number is written in the shortest form that reads back as the same bits, so that logs can be
 * compared and replayed; texts of unknown origin (file names, answers of models) always come out as valid UTF-8.
 */
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

enum { JSON_MAX_DEPTH = 64 };

static int json_reserve(json_t *json, size_t n)
{
    if (json->failed) {
        return 0;
    }
    if (json->capacity - json->length <= n) {
        const size_t capacity = (json->length + n + 1) * 2 > 256 ? (json->length + n + 1) * 2 : 256;
        char *text = realloc(json->text, capacity);
        if (text == NULL) {
            json->failed = 1;
            return 0;
        }
        json->text = text;
        json->capacity = capacity;
    }
    return 1;
}

static void json_append(json_t *json, const char *text, size_t n)
{
    if (json_reserve(json, n)) {
        memcpy(json->text + json->length, text, n);
        json->length += n;
        json->text[json->length] = '\0';
    }
}

static void json_append_text(json_t *json, const char *text)
{
    json_append(json, text, strlen(text));
}

static void json_new_line(json_t *json)
{
    if (json->pretty) {
        json_append(json, "\n", 1);
        for (int i = 0; i < json->depth; i++) {
            json_append(json, "  ", 2);
        }
    }
}

static void json_quote(json_t *json, const char *text)
{
    static const char short_escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    const unsigned char *c = (const unsigned char *)text;
    json_append(json, "\"", 1);
    while (*c != '\0') {
        const size_t n = text_sequence((const char *)c);
        if (n == 0) {
            json_append(json, "\xEF\xBF\xBD", 3);
            c++;
            continue;
        }
        if (*c < 0x20 || *c == '"' || *c == '\\') {
            char escape[8];
            const char *entry = short_escapes;
            while (*entry != '\0' && *entry != (char)*c) {
                entry += 2;
            }
            if (*entry != '\0') {
                snprintf(escape, sizeof escape, "\\%c", entry[1]);
            } else {
                snprintf(escape, sizeof escape, "\\u%04x", *c);
            }
            json_append_text(json, escape);
        } else {
            json_append(json, (const char *)c, n);
        }
        c += n;
    }
    json_append(json, "\"", 1);
}

/* What stands before any item: comma, line break, key. At the top there is none of them. */
static void json_begin(json_t *json, const char *key)
{
    if (json->depth > 0) {
        if (json->comma) {
            json_append(json, ",", 1);
        }
        json_new_line(json);
    }
    if (key != NULL) {
        json_quote(json, key);
        json_append_text(json, json->pretty ? ": " : ":");
    }
    json->comma = 1;
}

static void json_open(json_t *json, const char *key, const char *bracket)
{
    json_begin(json, key);
    json_append_text(json, bracket);
    if (json->depth == JSON_MAX_DEPTH) {
        json->failed = 1;
    } else {
        json->depth++;
    }
    json->comma = 0;
}

static void json_close(json_t *json, const char *bracket)
{
    if (json->depth == 0) {
        json->failed = 1;
        return;
    }
    json->depth--;
    if (json->comma) {
        json_new_line(json);
    }
    json_append_text(json, bracket);
    json->comma = 1;
}

void json_object(json_t *json, const char *key)
{
    json_open(json, key, "{");
}

void json_end_object(json_t *json)
{
    json_close(json, "}");
}

void json_array(json_t *json, const char *key)
{
    json_open(json, key, "[");
}

void json_end_array(json_t *json)
{
    json_close(json, "]");
}

void json_string(json_t *json, const char *key, const char *value)
{
    json_begin(json, key);
    if (value == NULL) {
        json_append_text(json, "null");
    } else {
        json_quote(json, value);
    }
}

void json_int(json_t *json, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    json_begin(json, key);
    json_append_text(json, text);
}

void json_double(json_t *json, const char *key, double value)
{
    char text[40] = "null";
    if (isfinite(value)) {
        /* The decimal point must be a point, whatever the host program's locale. */
        const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        const locale_t before = uselocale(c_locale);
        for (int digits = 15; digits <= 17; digits++) { /* the fewest that read back equal */
            snprintf(text, sizeof text, "%.*g", digits, value);
            if (strtod(text, NULL) == value) {
                break;
            }
        }
        uselocale(before);
        freelocale(c_locale);
    }
    json_begin(json, key);
    json_append_text(json, text);
}

void json_seconds(json_t *json, const char *key, double seconds)
{
    json_double(json, key, round(seconds * 1e6) / 1e6);
}

void json_bool(json_t *json, const char *key, int value)
{
    json_begin(json, key);
    json_append_text(json, value ? "true" : "false");
}

void json_null(json_t *json, const char *key)
{
    json_begin(json, key);
    json_append_text(json, "null");
}

void json_reset(json_t *json)
{
    json->length = 0;
    json->depth = 0;
    json->comma = 0;
    json->failed = 0;
    if (json->text != NULL) {
        json->text[0] = '\0';
    }
}

void json_free(json_t *json)
{
    free(json->text);
    *json = (json_t){0};
}
