/*
 * An answer in JSON: {"decision": "yes"|"no", "predict": {"hits": "up"|"same"|"down", "rows": ...}, "explanation": "..."}.
 * Models wrap, cut and embroider what they say; what this parser accepts is one JSON object, read as JSON and never by
 * substring.
 */
#ifndef RUDDER_AGENT_ANSWER_H
#define RUDDER_AGENT_ANSWER_H

#include <stddef.h>

#include "rudder/decider.h"

/*
 * Reads an answer of n bytes (no NUL needed). Around the one object are allowed: a byte order mark, white space, a closed
 * <think> block in front, and one code fence. "decision" must be there once, a string, yes or no in any case. A missing or
 * odd prediction is RUDDER_NO_PREDICTION, a missing explanation "". Sets verdict, predict_hits, predict_rows, explanation;
 * the verdict is RUDDER_NO_VERDICT for everything else, and then nothing of the text is used. Thread-safe.
 */
void answer_parse(const char *text, size_t n, rudder_answer_t *answer);

/* Copies at most size - 1 bytes, never half a UTF-8 character; control characters become spaces. Returns the length. */
size_t answer_copy_text(char *to, size_t size, const char *from, size_t n);

#endif
