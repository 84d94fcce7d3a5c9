/*
 * Reading traces as text: an id a line, blank lines between minibatches, "-" for a minibatch without ids, "#" before
 * comments. Read once from front to back, so pipes do.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "trace/format.h"

enum { TEXT_BUFFER = 1 << 16 };

typedef struct text {
    source_t *source;
    unsigned char *buffer;
    int64_t at, end;           /* in the buffer */
    int64_t before;            /* place in the file where the buffer begins */
    int64_t line;              /* from 1 */
    int64_t *ids, n, ids_size; /* of the minibatch under way */
    int begun, none;           /* it has lines; it is "-" */
} text_t;

/* What a line said. */
typedef enum text_line { TEXT_BLANK, TEXT_ONLY_COMMENT, TEXT_ID, TEXT_NONE, TEXT_END } text_line_t;

/* The next byte stays where it is; -1: the end of the file. */
static rudder_status_t text_peek(text_t *t, int *byte, rudder_error_t *error)
{
    if (t->at == t->end) {
        t->before = t->source->position;
        t->at = 0;
        RUDDER_TRY(source_read(t->source, t->buffer, TEXT_BUFFER, &t->end, error));
    }
    *byte = t->at < t->end ? t->buffer[t->at] : -1;
    return RUDDER_OK;
}

static rudder_status_t text_bad(const text_t *t, const char *expected, int found, rudder_error_t *error)
{
    char name[24];
    snprintf(name, sizeof name, found > 0x20 && found < 0x7f ? "\"%c\"" : "the byte %02x", (unsigned)found);
    return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: line %lld, byte %lld: expected %s, found %s", t->source->path,
                       (long long)t->line, (long long)(t->before + t->at), expected,
                       found < 0 ? "the end of the file" : name);
}

/* Digits up to 2^63 - 1. */
static rudder_status_t text_id(text_t *t, int64_t *id, rudder_error_t *error)
{
    uint64_t value = 0;
    int byte;
    RUDDER_TRY(text_peek(t, &byte, error));
    while (byte >= '0' && byte <= '9') {
        const uint64_t digit = (uint64_t)byte - '0';
        if (value > ((uint64_t)INT64_MAX - digit) / 10) {
            return text_bad(t, "an id of at most 9223372036854775807", byte, error);
        }
        value = value * 10 + digit;
        t->at++;
        RUDDER_TRY(text_peek(t, &byte, error));
    }
    *id = (int64_t)value;
    return RUDDER_OK;
}

static rudder_status_t text_read_line(text_t *t, text_line_t *line, int64_t *id, rudder_error_t *error)
{
    int byte, comment = 0;
    *line = TEXT_BLANK;
    RUDDER_TRY(text_peek(t, &byte, error));
    if (byte < 0) {
        *line = TEXT_END;
        return RUDDER_OK;
    }
    while (byte >= 0 && byte != '\n') {
        const int space = byte == ' ' || byte == '\t' || byte == '\r';
        if (comment || space || byte == '#') {
            comment |= byte == '#';
            t->at++;
        } else if (*line != TEXT_BLANK) {
            return text_bad(t, "nothing but one id in a line", byte, error);
        } else if (byte == '-') {
            *line = TEXT_NONE;
            t->at++;
        } else if (byte >= '0' && byte <= '9') {
            *line = TEXT_ID;
            RUDDER_TRY(text_id(t, id, error));
        } else {
            return text_bad(t, "an id, \"-\", or a comment", byte, error);
        }
        RUDDER_TRY(text_peek(t, &byte, error));
    }
    t->at += byte == '\n';
    t->line++;
    *line = *line == TEXT_BLANK && comment ? TEXT_ONLY_COMMENT : *line;
    return RUDDER_OK;
}

static rudder_status_t text_add(text_t *t, text_line_t line, int64_t id, rudder_error_t *error)
{
    if (t->none || (line == TEXT_NONE && t->begun)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: line %lld: expected \"-\" alone in a minibatch without ids, found it beside others",
                           t->source->path, (long long)t->line - 1);
    }
    t->begun = 1;
    t->none = line == TEXT_NONE;
    if (t->none) {
        return RUDDER_OK;
    }
    if (t->n == TRACE_MAX_IDS) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: line %lld: expected a blank line after at most %d ids of a minibatch, found more ids",
                           t->source->path, (long long)t->line - 1, TRACE_MAX_IDS);
    }
    if (grow_array(&t->ids, &t->ids_size, t->n + 1, sizeof *t->ids) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for %lld ids", t->source->path, (long long)t->n + 1);
    }
    t->ids[t->n++] = id;
    return RUDDER_OK;
}

static rudder_status_t text_next(void *self, trace_minibatch_t *minibatch, int *end, rudder_error_t *error)
{
    text_t *t = self;
    text_line_t line;
    int64_t id = 0;
    t->n = 0;
    t->begun = t->none = 0;
    for (;;) {
        RUDDER_TRY(text_read_line(t, &line, &id, error));
        if (line == TEXT_END || (line == TEXT_BLANK && t->begun)) {
            break;
        }
        if (line == TEXT_ID || line == TEXT_NONE) {
            RUDDER_TRY(text_add(t, line, id, error));
        }
    }
    *end = !t->begun;
    minibatch->ids = t->ids;
    minibatch->n = t->n;
    return RUDDER_OK;
}

static void text_close(void *self)
{
    text_t *t = self;
    free(t->buffer);
    free(t->ids);
    free(t);
}

static rudder_status_t text_open(source_t *source, trace_info_t *info, void **self, rudder_error_t *error)
{
    text_t *t = calloc(1, sizeof *t);
    (void)info; /* a text has no facts */
    if (t == NULL || (t->buffer = malloc(TEXT_BUFFER)) == NULL) {
        free(t);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory to open it", source->path);
    }
    t->source = source;
    t->line = 1;
    *self = t;
    return RUDDER_OK;
}

static int64_t text_memory(const void *self)
{
    const text_t *t = self;
    return (int64_t)sizeof *t + TEXT_BUFFER + t->ids_size * (int64_t)sizeof *t->ids;
}

const trace_format_t trace_format_text = {
    .kind = "text", .open = text_open, .next = text_next, .memory = text_memory, .close = text_close};
