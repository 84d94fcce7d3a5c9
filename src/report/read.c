/* Files of unknown origin. cJSON bounds the depth of what it reads; here sizes are bounded and numbers must be finite. */
#include "report/read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum { READ_MAX_LINE = 1 << 16 };

const char *const read_loader_parts[READ_PARTS] = {"sample", "plan", "exchange", "complete", "gather", "idle"};
const char *const read_compute_parts[READ_PARTS] = {"wait", "forward", "backward", "allreduce", "step", "evaluate"};

/* ---- JSON ---- */

static void read_clean(cJSON *item)
{
    for (; item != NULL; item = item->next) {
        if (item->string != NULL) {
            text_clean(item->string);
        }
        if (cJSON_IsString(item)) {
            text_clean(item->valuestring);
        }
        read_clean(item->child);
    }
}

static rudder_status_t read_parse(const char *text, const char *where, cJSON **object, rudder_error_t *error)
{
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithOpts(text, &end, 1);
    if (!cJSON_IsObject(json)) {
        const long at = json == NULL && end != NULL ? end - text : 0;
        cJSON_Delete(json);
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a JSON object, found something else at byte %ld", where,
                           at);
    }
    read_clean(json);
    *object = json;
    return RUDDER_OK;
}

rudder_status_t read_json(const char *path, int64_t most, cJSON **object, rudder_error_t *error)
{
    char *text = NULL;
    int64_t n;
    RUDDER_TRY(files_read(path, most, &text, &n, error));
    const rudder_status_t status = read_parse(text, path, object, error);
    free(text);
    return status;
}

rudder_status_t read_number(const cJSON *object, const char *key, const char *where, double *value,
                            rudder_error_t *error)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (item == NULL || cJSON_IsNull(item)) {
        *value = NAN;
        return RUDDER_OK;
    }
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a number \"%s\", found something else", where, key);
    }
    *value = item->valuedouble;
    return RUDDER_OK;
}

rudder_status_t read_text(const cJSON *object, const char *key, const char *where, char *text, size_t size,
                          rudder_error_t *error)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (item != NULL && !cJSON_IsNull(item) && !cJSON_IsString(item)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a text \"%s\", found something else", where, key);
    }
    snprintf(text, size, "%s", cJSON_IsString(item) ? item->valuestring : "");
    text_clean(text); /* the cut may have gone through a character */
    return RUDDER_OK;
}

char *read_value_text(const cJSON *item)
{
    if (item == NULL || cJSON_IsNull(item)) {
        return strdup("-");
    }
    return cJSON_IsString(item) ? strdup(item->valuestring) : cJSON_PrintUnformatted(item);
}

rudder_status_t read_count(const cJSON *object, const char *key, const char *where, int64_t *value,
                           rudder_error_t *error)
{
    double number = NAN;
    RUDDER_TRY(read_number(object, key, where, &number, error));
    if (!(number >= 0 && number <= 0x1p53) || number != floor(number)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a count \"%s\", found %.17g", where, key, number);
    }
    *value = (int64_t)number;
    return RUDDER_OK;
}

/* ---- lines ---- */

void read_lines_attach(FILE *file, const char *name, read_lines_t *lines)
{
    *lines = (read_lines_t){.file = file};
    snprintf(lines->path, FILES_MAX_PATH, "%s", name);
    lines->path_length = strlen(lines->path);
}

rudder_status_t read_lines_open(const char *directory, const char *kind, int32_t rank, read_lines_t *lines, int *found,
                                rudder_error_t *error)
{
    char name[64], path[FILES_MAX_PATH];
    snprintf(name, sizeof name, "%s.rank%" PRId32 ".jsonl", kind, rank);
    RUDDER_TRY(files_join(directory, name, path, error));
    FILE *file = fopen(path, "re");
    *found = file != NULL;
    if (file == NULL && errno != ENOENT) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    read_lines_attach(file, path, lines);
    return RUDDER_OK;
}

void read_lines_close(read_lines_t *lines)
{
    if (lines->file != NULL) {
        fclose(lines->file);
    }
    free(lines->text);
    *lines = (read_lines_t){0};
}

/* The next line as an object, NULL at the end. A last line without a line feed was being written when the run died. */
static rudder_status_t read_line(read_lines_t *lines, cJSON **object, rudder_error_t *error)
{
    *object = NULL;
    if (lines->text == NULL && (lines->text = malloc(READ_MAX_LINE)) == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for a line", lines->path);
    }
    lines->path[lines->path_length] = '\0';
    errno = 0;
    if (fgets(lines->text, READ_MAX_LINE, lines->file) == NULL) {
        return ferror(lines->file)
                   ? RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be read: %s", lines->path, strerror(errno))
                   : RUDDER_OK;
    }
    snprintf(lines->path + lines->path_length, sizeof lines->path - lines->path_length, ":%" PRId64, ++lines->line);
    const size_t n = strlen(lines->text);
    if (n > 0 && lines->text[n - 1] == '\n') {
        return read_parse(lines->text, lines->path, object, error);
    }
    if (feof(lines->file)) {
        return RUDDER_OK;
    }
    return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a line of less than %d bytes without NUL, found another",
                       lines->path, READ_MAX_LINE);
}

static rudder_status_t read_parts(const cJSON *line, const char *thread, const char *const *names, const char *where,
                                  double *seconds, rudder_error_t *error)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(line, thread);
    for (int p = 0; p < READ_PARTS; p++) {
        RUDDER_TRY(read_number(object, names[p], where, &seconds[p], error));
    }
    return RUDDER_OK;
}

static rudder_status_t read_step(const cJSON *line, const char *where, read_step_t *step, rudder_error_t *error)
{
    RUDDER_TRY(read_count(line, "epoch", where, &step->epoch, error));
    RUDDER_TRY(read_count(line, "step", where, &step->step, error));
    RUDDER_TRY(read_count(line, "remote", where, &step->remote, error));
    RUDDER_TRY(read_count(line, "hit", where, &step->hit, error));
    RUDDER_TRY(read_count(line, "miss", where, &step->miss, error));
    RUDDER_TRY(read_count(line, "fill", where, &step->fill, error));
    RUDDER_TRY(read_count(line, "bytes", where, &step->bytes, error));
    RUDDER_TRY(read_number(line, "loss", where, &step->loss, error));
    RUDDER_TRY(read_number(line, "window", where, &step->window, error));
    if (step->remote != step->hit + step->miss) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: expected remote = hit + miss, found %" PRId64 " = %" PRId64 " + %" PRId64, where,
                           step->remote, step->hit, step->miss);
    }
    RUDDER_TRY(read_parts(line, "loader", read_loader_parts, where, step->loader, error));
    return read_parts(line, "compute", read_compute_parts, where, step->compute, error);
}

rudder_status_t read_next_step(read_lines_t *lines, read_step_t *step, int *end, rudder_error_t *error)
{
    cJSON *line;
    RUDDER_TRY(read_line(lines, &line, error));
    *end = line == NULL;
    const rudder_status_t status = *end ? RUDDER_OK : read_step(line, lines->path, step, error);
    cJSON_Delete(line);
    return status;
}

/* -1: it did not happen. */
static rudder_status_t read_minibatch(const cJSON *line, const char *key, const char *where, int64_t *value,
                                      rudder_error_t *error)
{
    double number = NAN;
    RUDDER_TRY(read_number(line, key, where, &number, error));
    if (!(number >= -1 && number <= 0x1p53) || number != floor(number)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a minibatch or -1 as \"%s\", found %.17g", where, key,
                           number);
    }
    *value = (int64_t)number;
    return RUDDER_OK;
}

static rudder_status_t read_outcome(const cJSON *line, const char *where, rudder_outcome_status_t *status,
                                    rudder_error_t *error)
{
    char name[32];
    RUDDER_TRY(read_text(line, "status", where, name, sizeof name, error));
    for (int s = RUDDER_REPLACED; s <= RUDDER_FAILED; s++) {
        if (strcmp(name, rudder_outcome_name((rudder_outcome_status_t)s)) == 0) {
            *status = (rudder_outcome_status_t)s;
            return RUDDER_OK;
        }
    }
    return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected the \"status\" of a decision, found \"%s\"", where, name);
}

static rudder_status_t read_prediction(const cJSON *line, const char *where, read_decision_t *decision,
                                       rudder_error_t *error)
{
    static const char *const names[2] = {"hits", "rows"};
    const cJSON *prediction = cJSON_GetObjectItemCaseSensitive(line, "prediction");
    for (int i = 0; i < 2; i++) {
        const cJSON *one = cJSON_GetObjectItemCaseSensitive(prediction, names[i]);
        const cJSON *came_true = cJSON_GetObjectItemCaseSensitive(one, "true");
        RUDDER_TRY(read_text(one, "said", where, decision->said[i], sizeof decision->said[i], error));
        decision->came_true[i] = cJSON_IsBool(came_true) ? cJSON_IsTrue(came_true) : -1;
    }
    return RUDDER_OK;
}

static rudder_status_t read_decision(const cJSON *line, const char *where, read_decision_t *decision,
                                     rudder_error_t *error)
{
    const cJSON *effect = cJSON_GetObjectItemCaseSensitive(line, "effect");
    const cJSON *context = cJSON_GetObjectItemCaseSensitive(line, "context");
    *decision = (read_decision_t){0};
    RUDDER_TRY(read_count(line, "number", where, &decision->number, error));
    RUDDER_TRY(read_minibatch(line, "asked", where, &decision->asked, error));
    RUDDER_TRY(read_minibatch(line, "answered", where, &decision->answered, error));
    RUDDER_TRY(read_minibatch(line, "applied", where, &decision->applied, error));
    RUDDER_TRY(read_count(line, "replaced_rows", where, &decision->replaced_rows, error));
    RUDDER_TRY(read_outcome(line, where, &decision->status, error));
    decision->from_fallback = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(line, "from_fallback"));
    RUDDER_TRY(read_text(line, "verdict", where, decision->verdict, sizeof decision->verdict, error));
    RUDDER_TRY(read_number(line, "margin", where, &decision->margin, error));
    RUDDER_TRY(read_number(line, "latency_ms", where, &decision->latency_ms, error));
    RUDDER_TRY(read_number(line, "tokens", where, &decision->tokens, error));
    RUDDER_TRY(read_text(line, "prompt", where, decision->prompt, sizeof decision->prompt, error));
    RUDDER_TRY(read_text(line, "explanation", where, decision->explanation, sizeof decision->explanation, error));
    RUDDER_TRY(read_prediction(line, where, decision, error));
    RUDDER_TRY(read_number(effect, "hit_rate_change", where, &decision->hit_rate_change, error));
    RUDDER_TRY(read_number(effect, "fetched_change", where, &decision->fetched_change, error));
    RUDDER_TRY(read_number(context, "hit_rate", where, &decision->hit_rate, error));
    RUDDER_TRY(read_number(context, "saving_rows", where, &decision->saving_rows, error));
    return read_number(context, "cost_rows", where, &decision->cost_rows, error);
}

rudder_status_t read_next_decision(read_lines_t *lines, read_decision_t *decision, int *end, rudder_error_t *error)
{
    cJSON *line;
    RUDDER_TRY(read_line(lines, &line, error));
    *end = line == NULL;
    const rudder_status_t status = *end ? RUDDER_OK : read_decision(line, lines->path, decision, error);
    cJSON_Delete(line);
    return status;
}
