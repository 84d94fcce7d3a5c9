/* Reads situations. The frozen set is part of the program, so that the self-test works wherever the program is. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/embed.h"
#include "agent/situations.h"
#include "base/error.h"

EMBED(situations_frozen, "../tests/agent/situations.jsonl")

typedef struct situations_field {
    const char *name;
    size_t offset;
    char type; /* 'l' int64, 'i' int32, 'd' double */
} situations_field_t;

#define FIELD(type, name)                                                                                              \
    {                                                                                                                  \
#name, offsetof(rudder_context_t, name), type                                                                  \
    }
static const situations_field_t situations_context[] = {
    FIELD('l', minibatch),
    FIELD('l', minibatches_left),
    FIELD('i', period),
    FIELD('l', window_minibatches),
    FIELD('l', remote_rows),
    FIELD('l', hit_rows),
    FIELD('l', miss_rows),
    FIELD('l', fill_rows),
    FIELD('d', hit_rate),
    FIELD('d', hit_rate_total),
    FIELD('d', hit_rate_trend),
    FIELD('d', fetched_per_minibatch),
    FIELD('d', fetched_trend),
    FIELD('l', row_bytes),
    FIELD('l', capacity),
    FIELD('d', stale_share),
    FIELD('l', stale),
    FIELD('l', candidates),
    FIELD('l', swaps),
    FIELD('d', saving_per_minibatch),
    FIELD('d', saving_rows),
    FIELD('d', cost_rows),
    FIELD('d', t_sample),
    FIELD('d', t_fetch),
    FIELD('d', t_wait),
    FIELD('d', t_compute),
    {NULL, 0, 0},
};
#undef FIELD
#define FIELD(type, name)                                                                                              \
    {                                                                                                                  \
#name, offsetof(rudder_outcome_t, name), type                                                                  \
    }
static const situations_field_t situations_outcome[] = {
    FIELD('l', minibatch),
    FIELD('l', replaced_rows),
    FIELD('d', replaced_share),
    FIELD('d', hit_rate_change),
    FIELD('d', fetched_change),
    FIELD('i', known),
    {NULL, 0, 0},
};
#undef FIELD

/* Every field must be there: a situation with a hole would be a different one. */
static const char *situations_fields(const cJSON *object, const situations_field_t *fields, void *to)
{
    for (; fields->name != NULL; fields++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, fields->name);
        char *at = (char *)to + fields->offset;
        if (!cJSON_IsNumber(item)) {
            return fields->name;
        }
        if (fields->type == 'l') {
            *(int64_t *)(void *)at = (int64_t)item->valuedouble;
        } else if (fields->type == 'i') {
            *(int32_t *)(void *)at = (int32_t)item->valuedouble;
        } else {
            *(double *)(void *)at = item->valuedouble;
        }
    }
    return NULL;
}

static int situations_word(const cJSON *object, const char *name, const char *const *words, int n)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    for (int i = 0; text != NULL && i < n; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

/* NULL, or the name of what is missing. */
static const char *situations_line(const cJSON *line, situation_t *situation)
{
    static const char *const kinds[] = {"clear", "conflicting", "close"};
    static const char *const verdicts[] = {"keep", "replace"};
    static const char *const statuses[] = {"replaced", "kept", "nothing-stale", "invalid", "late", "failed"};
    rudder_context_t *context = &situation->context;
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "name"));
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(line, "context");
    const cJSON *object = inner != NULL ? inner : line; /* flat, as `rudder replay --oracle` writes them */
    const cJSON *history = cJSON_GetObjectItemCaseSensitive(object, "history");
    const int kind = situations_word(line, "kind", kinds, SITUATION_KINDS);
    const int expect = situations_word(line, "expect", verdicts, 2);
    const cJSON *item;
    memset(situation, 0, sizeof *situation);
    if (name == NULL || kind < 0 || expect < 0) {
        return "name, kind or expect";
    }
    snprintf(situation->name, sizeof situation->name, "%s", name);
    situation->kind = (situation_kind_t)kind;
    situation->expect = (rudder_verdict_t)expect;
    context->size = sizeof *context;
    const char *missing = situations_fields(object, situations_context, context);
    if (missing != NULL || !cJSON_IsArray(history)) {
        return missing != NULL ? missing : "history";
    }
    cJSON_ArrayForEach(item, history)
    {
        const int status = situations_word(item, "status", statuses, 6);
        if (status < 0 || context->n_history == RUDDER_HISTORY) {
            return "status";
        }
        rudder_outcome_t *outcome = &context->history[context->n_history++];
        outcome->status = (rudder_outcome_status_t)status;
        missing = situations_fields(item, situations_outcome, outcome);
        if (missing != NULL) {
            return missing;
        }
    }
    return NULL;
}

static rudder_status_t situations_parse(const char *text, size_t bytes, const char *name, situation_t **situations,
                                        int32_t *n, rudder_error_t *error)
{
    const char *end = text + bytes;
    int32_t line = 0;
    *n = 0;
    *situations = NULL;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const size_t length = (size_t)((newline != NULL ? newline : end) - text);
        line++;
        if (length > 0) {
            situation_t *more = realloc(*situations, (size_t)(*n + 1) * sizeof **situations);
            if (more == NULL) {
                free(*situations);
                *situations = NULL;
                return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the situations");
            }
            *situations = more;
            cJSON *root = cJSON_ParseWithLength(text, length);
            const char *missing = root == NULL ? "valid JSON" : situations_line(root, &more[*n]);
            cJSON_Delete(root);
            if (missing != NULL) {
                free(*situations);
                *situations = NULL;
                return RUDDER_FAIL(error, RUDDER_E_DATA, "%s, line %d: expected %s", name, (int)line, missing);
            }
            (*n)++;
        }
        text += length + 1;
    }
    return RUDDER_OK;
}

static rudder_status_t situations_load(const char *path, char **text, size_t *bytes, rudder_error_t *error)
{
    FILE *file = fopen(path, "rb");
    long size = -1;
    *text = NULL;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
        rewind(file);
    }
    if (size >= 0) {
        *text = malloc((size_t)size + 1);
    }
    if (*text == NULL || fread(*text, 1, (size_t)size, file) != (size_t)size) {
        const int code = errno;
        free(*text);
        *text = NULL;
        if (file != NULL) {
            fclose(file);
        }
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s cannot be read: %s", path, strerror(code));
    }
    fclose(file);
    *bytes = (size_t)size;
    return RUDDER_OK;
}

rudder_status_t situations_read(const char *path, situation_t **situations, int32_t *n, rudder_error_t *error)
{
    char *text;
    size_t bytes = 0;
    if (path == NULL) {
        return situations_parse((const char *)situations_frozen, EMBED_BYTES(situations_frozen), "the frozen set",
                                situations, n, error);
    }
    RUDDER_TRY(situations_load(path, &text, &bytes, error));
    const rudder_status_t status = situations_parse(text, bytes, path, situations, n, error);
    free(text);
    return status;
}
