/* Reading answers. The outside is stripped by hand, the inside is cJSON's. */
#include <cjson/cJSON.h>
#include <string.h>
#include <strings.h>

#include "agent/answer.h"

enum { ANSWER_MAX_BYTES = 64 * 1024 };

/* What is left of the text. */
typedef struct answer_span {
    const char *at, *end;
} answer_span_t;

static int answer_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void answer_trim(answer_span_t *span)
{
    while (span->at < span->end && answer_is_space(*span->at)) {
        span->at++;
    }
    while (span->end > span->at && answer_is_space(span->end[-1])) {
        span->end--;
    }
}

static int answer_starts(const answer_span_t *span, const char *with)
{
    const size_t n = strlen(with);
    return (size_t)(span->end - span->at) >= n && memcmp(span->at, with, n) == 0;
}

static int answer_ends(const answer_span_t *span, const char *with)
{
    const size_t n = strlen(with);
    return (size_t)(span->end - span->at) >= n && memcmp(span->end - n, with, n) == 0;
}

/* <think> ... </think> in front; one that is never closed leaves nothing. */
static void answer_skip_thoughts(answer_span_t *span)
{
    static const char open[] = "<think>", close[] = "</think>";
    if (answer_starts(span, open)) {
        const char *found = memmem(span->at, (size_t)(span->end - span->at), close, sizeof close - 1);
        span->at = found != NULL ? found + sizeof close - 1 : span->end;
        answer_trim(span);
    }
}

/* ```json ... ``` or ``` ... ``` around everything. The word after the opening fence is letters only. */
static void answer_skip_fence(answer_span_t *span)
{
    if (span->end - span->at >= 6 && answer_starts(span, "```") && answer_ends(span, "```")) {
        span->at += 3;
        span->end -= 3;
        while (span->at < span->end && ((*span->at | 32) >= 'a' && (*span->at | 32) <= 'z')) {
            span->at++;
        }
        answer_trim(span);
    }
}

size_t answer_copy_text(char *to, size_t size, const char *from, size_t n)
{
    size_t used = n < size - 1 ? n : size - 1;
    if (used < n) {
        while (used > 0 && ((unsigned char)from[used] & 0xC0) == 0x80) {
            used--;
        }
    }
    for (size_t i = 0; i < used; i++) {
        to[i] = (unsigned char)from[i] < 0x20 || from[i] == 0x7F ? ' ' : from[i];
    }
    to[used] = '\0';
    return used;
}

/* The member `name` if it is there exactly once. A second one would make the answer ambiguous. */
static const cJSON *answer_member(const cJSON *object, const char *name)
{
    const cJSON *found = NULL;
    const cJSON *item;
    cJSON_ArrayForEach(item, object)
    {
        if (item->string != NULL && strcmp(item->string, name) == 0) {
            if (found != NULL) {
                return NULL;
            }
            found = item;
        }
    }
    return found;
}

static int32_t answer_prediction(const cJSON *predict, const char *name)
{
    const cJSON *item = cJSON_IsObject(predict) ? answer_member(predict, name) : NULL;
    const char *word = cJSON_GetStringValue(item);
    if (word == NULL) {
        return RUDDER_NO_PREDICTION;
    }
    return strcasecmp(word, "up") == 0     ? RUDDER_UP
           : strcasecmp(word, "same") == 0 ? RUDDER_SAME
           : strcasecmp(word, "down") == 0 ? RUDDER_DOWN
                                           : RUDDER_NO_PREDICTION;
}

static rudder_verdict_t answer_verdict(const cJSON *root)
{
    const char *word = cJSON_IsObject(root) ? cJSON_GetStringValue(answer_member(root, "decision")) : NULL;
    if (word == NULL) {
        return RUDDER_NO_VERDICT;
    }
    return strcasecmp(word, "yes") == 0  ? RUDDER_REPLACE
           : strcasecmp(word, "no") == 0 ? RUDDER_KEEP
                                         : RUDDER_NO_VERDICT;
}

void answer_parse(const char *text, size_t n, rudder_answer_t *answer)
{
    answer->verdict = RUDDER_NO_VERDICT;
    answer->predict_hits = answer->predict_rows = RUDDER_NO_PREDICTION;
    answer->explanation[0] = '\0';
    if (n == 0 || n > ANSWER_MAX_BYTES || memchr(text, '\0', n) != NULL) {
        return;
    }
    answer_span_t span = {text, text + n};
    if (answer_starts(&span, "\xEF\xBB\xBF")) {
        span.at += 3;
    }
    answer_trim(&span);
    answer_skip_thoughts(&span);
    answer_skip_fence(&span);
    if (span.at == span.end || *span.at != '{') {
        return;
    }
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(span.at, (size_t)(span.end - span.at), &end, 0);
    if (root != NULL && end == span.end) {
        answer->verdict = answer_verdict(root);
    }
    if (answer->verdict != RUDDER_NO_VERDICT) {
        const cJSON *predict = answer_member(root, "predict");
        const char *explanation = cJSON_GetStringValue(answer_member(root, "explanation"));
        answer->predict_hits = answer_prediction(predict, "hits");
        answer->predict_rows = answer_prediction(predict, "rows");
        if (explanation != NULL) {
            answer_copy_text(answer->explanation, sizeof answer->explanation, explanation, strlen(explanation));
        }
    }
    cJSON_Delete(root);
}
