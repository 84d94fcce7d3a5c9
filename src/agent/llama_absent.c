/* The embedded back end of a program that was built without llama.cpp: it says so. */
#include <stddef.h>

#include "agent/llama.h"
#include "base/error.h"

static rudder_status_t llama_open(const backend_config_t *config, void **self, rudder_error_t *error)
{
    (void)config;
    *self = NULL;
    return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED,
                       "this program was built without an embedded model; build llama.cpp with "
                       "scripts/build_llama.sh and configure with -DRUDDER_LLAMA_DIR=DIR");
}

static void llama_ask(void *self, const backend_question_t *questions, int32_t n, rudder_answer_t *answers,
                      rudder_status_t *statuses)
{
    (void)self, (void)questions, (void)answers;
    for (int32_t i = 0; i < n; i++) {
        statuses[i] = RUDDER_E_UNSUPPORTED;
    }
}

static int32_t llama_tokens(void *self, const char *text, int32_t text_bytes)
{
    (void)self, (void)text, (void)text_bytes;
    return 0;
}

static void llama_close(void *self)
{
    (void)self;
}

const backend_t llama_backend = {"llama", llama_open, llama_ask, llama_tokens, llama_close};
