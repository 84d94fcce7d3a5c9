/*
 * Back ends of the agent: what can answer questions. One small table each, so that a server over HTTP or another library
 * can be added without touching the agent process.
 */
#ifndef RUDDER_AGENT_BACKEND_H
#define RUDDER_AGENT_BACKEND_H

#include <stdint.h>

#include "rudder/rudder.h"

enum {
    BACKEND_MAX_QUESTIONS = 8, /* answered together */
    BACKEND_PREDICTIONS = 3    /* down, same, up */
};

typedef struct backend_config {
    const char *model;                /* what follows the back end's name: for llama, the path of a GGUF file */
    const char *facts;                /* run facts for the constant head; "" when none are known */
    rudder_answer_mode_t answer_mode; /* the costliest that will be asked for: JSON needs more memory than SCORE */
    int debug;                        /* the back end's own messages go to standard error */
} backend_config_t;

typedef struct backend_question {
    rudder_answer_mode_t answer_mode;
    const char *text; /* the changing part of the prompt; no final NUL */
    int32_t text_bytes;
} backend_question_t;

typedef struct backend {
    const char *name; /* "llama" */
    /* Loads the model; may take seconds. Errors: DATA, IO (the file), MEMORY, ENVIRONMENT, UNSUPPORTED. */
    rudder_status_t (*open)(const backend_config_t *config, void **self, rudder_error_t *error);
    /*
     * Answers questions[n] at once, n <= BACKEND_MAX_QUESTIONS; they share the reads of the weights. Fills answers[n] but
     * latency_ms. statuses[n]: RUDDER_OK or why that one has no answer. One thread at a time.
     */
    void (*ask)(void *self, const backend_question_t *questions, int32_t n, rudder_answer_t *answers,
                rudder_status_t *statuses);
    /* Tokens of a text, as the back end counts them; for tests and the self-test. */
    int32_t (*tokens)(void *self, const char *text, int32_t text_bytes);
    void (*close)(void *self);
} backend_t;

/*
 * The back end of a model's name: "llama:FILE.gguf" or just a path. *rest is what follows the back end's name.
 * Errors: NAME.
 */
rudder_status_t backend_find(const char *model, const backend_t **backend, const char **rest, rudder_error_t *error);

#endif
