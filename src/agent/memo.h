/*
 * Answers that have been given, by the words of the question. The model answers at temperature zero, so equal words get
 * equal answers; and since facts are told in words, ranks and windows often ask the same. What is remembered costs no
 * evaluation (tokens 0), and the same facts are never judged in two ways because of how a batch was put together.
 */
#ifndef RUDDER_AGENT_MEMO_H
#define RUDDER_AGENT_MEMO_H

#include "agent/backend.h"

enum { MEMO_ANSWERS = 256, MEMO_MAX_TEXT = 512 };

/* Zeroed: nothing is remembered. The newest of two questions that meet in one place stays. */
typedef struct memo {
    struct {
        int32_t text_bytes; /* 0: empty */
        rudder_answer_mode_t answer_mode;
        char text[MEMO_MAX_TEXT];
        rudder_answer_t answer;
    } kept[MEMO_ANSWERS];
} memo_t;

/*
 * As backend->ask(): answers from memory what it can, and asks for each of the others once. One thread at a time.
 */
void memo_ask(memo_t *memo, const backend_t *backend, void *self, const backend_question_t *questions, int32_t n,
              rudder_answer_t *answers, rudder_status_t *statuses);

#endif
