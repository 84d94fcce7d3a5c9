/*
 * The prompt's constant part: role, rule, worked examples, then the facts of the run. It is evaluated once; a decision adds
 * only the words of its context. The answer's skeleton is fixed too: what the model is free to say are the values.
 */
#ifndef RUDDER_AGENT_PROMPT_H
#define RUDDER_AGENT_PROMPT_H

#include <stddef.h>

/* The answer, piece by piece: the values stand between these. */
#define PROMPT_BEFORE_DECISION "{\"decision\": \""
#define PROMPT_BEFORE_HITS "\", \"predict\": {\"hits\": \""
#define PROMPT_BEFORE_ROWS "\", \"rows\": \""
#define PROMPT_BEFORE_EXPLANATION "\"}, \"explanation\": \""
#define PROMPT_END "\"}"

typedef struct prompt_example {
    const char *words;  /* as rudder_context_words() writes them */
    const char *answer; /* the whole JSON */
} prompt_example_t;

enum { PROMPT_EXAMPLES = 3 };
extern const prompt_example_t prompt_examples[PROMPT_EXAMPLES];

/* Role, rule and answer format. */
extern const char prompt_system[];

/*
 * What stands in front of the words of a question: the facts of the run, "" when none are known. They come after the
 * examples so that all before them is the same in every run. Returns the length as snprintf.
 */
int prompt_facts(const char *facts, char *text, size_t text_size);

#endif
