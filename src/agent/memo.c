#include "agent/memo.h"

#include <string.h>

#include "base/rng.h"

static uint64_t memo_place(const backend_question_t *question)
{
    uint64_t hash = (uint64_t)question->answer_mode;
    for (int32_t i = 0; i < question->text_bytes; i++) {
        hash = rng_mix(hash ^ (unsigned char)question->text[i]);
    }
    return hash % MEMO_ANSWERS;
}

static int memo_same(const backend_question_t *a, rudder_answer_mode_t mode, const char *text, int32_t text_bytes)
{
    return a->answer_mode == mode && a->text_bytes == text_bytes && memcmp(a->text, text, (size_t)text_bytes) == 0;
}

static int memo_recall(const memo_t *memo, const backend_question_t *question, rudder_answer_t *answer)
{
    const uint64_t place = memo_place(question);
    if (question->text_bytes == 0 ||
        !memo_same(question, memo->kept[place].answer_mode, memo->kept[place].text, memo->kept[place].text_bytes)) {
        return 0;
    }
    *answer = memo->kept[place].answer;
    answer->tokens = 0;
    return 1;
}

static void memo_keep(memo_t *memo, const backend_question_t *question, const rudder_answer_t *answer)
{
    const uint64_t place = memo_place(question);
    if (question->text_bytes > MEMO_MAX_TEXT) {
        return;
    }
    memo->kept[place].answer_mode = question->answer_mode;
    memo->kept[place].text_bytes = question->text_bytes;
    memcpy(memo->kept[place].text, question->text, (size_t)question->text_bytes);
    memo->kept[place].answer = *answer;
}

void memo_ask(memo_t *memo, const backend_t *backend, void *self, const backend_question_t *questions, int32_t n,
              rudder_answer_t *answers, rudder_status_t *statuses)
{
    backend_question_t fresh[BACKEND_MAX_QUESTIONS];
    rudder_answer_t given[BACKEND_MAX_QUESTIONS];
    rudder_status_t status[BACKEND_MAX_QUESTIONS];
    int32_t asked[BACKEND_MAX_QUESTIONS]; /* which of `fresh` question i is, -1: remembered */
    int32_t n_fresh = 0;
    for (int32_t i = 0; i < n; i++) {
        const backend_question_t *question = &questions[i];
        statuses[i] = RUDDER_OK;
        asked[i] = -1;
        if (memo_recall(memo, question, &answers[i])) {
            continue;
        }
        for (asked[i] = 0; asked[i] < n_fresh; asked[i]++) {
            const backend_question_t *other = &fresh[asked[i]];
            if (memo_same(question, other->answer_mode, other->text, other->text_bytes)) {
                break;
            }
        }
        if (asked[i] == n_fresh) {
            fresh[n_fresh++] = *question;
        }
    }
    if (n_fresh > 0) {
        backend->ask(self, fresh, n_fresh, given, status);
    }
    for (int32_t i = 0; i < n; i++) {
        if (asked[i] >= 0) {
            statuses[i] = status[asked[i]];
            answers[i] = given[asked[i]];
        }
    }
    for (int32_t j = 0; j < n_fresh; j++) {
        if (status[j] == RUDDER_OK && given[j].verdict != RUDDER_NO_VERDICT) {
            memo_keep(memo, &fresh[j], &given[j]);
        }
    }
}
