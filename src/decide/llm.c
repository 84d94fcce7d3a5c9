/* `llm`: asks a language model, in words, through the agent of this host. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "decide/agent_client.h"
#include "decide/deciders.h"

typedef struct llm {
    agent_client_t client;
    double deadline; /* seconds */
    char text[AGENT_MAX_TEXT];
} llm_t;

/* Appends to text[size]; what does not fit is cut. */
__attribute__((format(printf, 3, 4))) static void llm_append(char *text, size_t size, const char *format, ...)
{
    const size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, size - length, format, arguments);
    va_end(arguments);
}

/* One line for a past decision, `age` 1 for the last one. */
static void llm_tell_outcome(const rudder_outcome_t *outcome, int age, char *text, size_t size)
{
    llm_append(text, size, "\n%d decision%s ago: %s", age, age == 1 ? "" : "s", rudder_outcome_name(outcome->status));
    if (outcome->replaced_rows > 0) {
        llm_append(text, size, ", %.0f%% of the buffer", 100 * outcome->replaced_share);
    }
    if (outcome->known) {
        llm_append(text, size, ", then hit rate %+.1f points, fetched rows %+.0f a minibatch",
                   100 * outcome->hit_rate_change, outcome->fetched_change);
    }
    llm_append(text, size, ".");
}

static rudder_status_t llm_decide(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    llm_t *llm = self;
    rudder_error_t error = {0};
    const double until = clock_seconds() + llm->deadline;
    answer->prompt[0] = '\0';
    rudder_context_words(context, llm->text, sizeof llm->text);
    if (llm->client.config.answer_mode == RUDDER_ANSWER_JSON) {
        for (int i = 0; i < context->n_history; i++) {
            llm_tell_outcome(&context->history[i], i + 1, llm->text, sizeof llm->text);
        }
    }
    llm_append(answer->prompt, sizeof answer->prompt, "%s", llm->text);
    const rudder_status_t status = agent_client_ask(&llm->client, llm->text, until, answer, &error);
    if (status != RUDDER_OK) {
        answer->explanation[0] = '\0';
        llm_append(answer->explanation, sizeof answer->explanation, "%s", error.text);
    }
    return status;
}

static void llm_prepare(void *self)
{
    llm_t *llm = self;
    agent_client_prepare(&llm->client, clock_seconds() + llm->deadline);
}

static void llm_cancel(void *self)
{
    agent_client_cancel(&((llm_t *)self)->client);
}

static void llm_close(void *self)
{
    agent_client_close(&((llm_t *)self)->client);
}

/* What never changes, for the head of the prompt. */
static void llm_tell_facts(const rudder_config_t *config, char *text, size_t size)
{
    const rudder_facts_t *facts = &config->facts;
    int64_t capacity = 0;
    for (int32_t t = 0; t < config->n_types; t++) {
        capacity += config->types[t].capacity_rows;
    }
    text[0] = '\0';
    if (facts->graph[0] != '\0') {
        llm_append(text, size, "graph %s, ", facts->graph);
    }
    if (facts->nodes > 0) {
        llm_append(text, size, "%lld nodes, ", (long long)facts->nodes);
    }
    if (facts->ranks > 0) {
        llm_append(text, size, "%d rank%s, ", (int)facts->ranks, facts->ranks == 1 ? "" : "s");
    }
    llm_append(text, size, "buffer %lld rows of %zu bytes", (long long)capacity,
               config->n_types > 0 ? config->types[0].row_bytes : 0);
}

size_t llm_memory(void)
{
    return sizeof(llm_t);
}

rudder_status_t llm_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error)
{
    llm_t *llm = request->memory;
    char facts[256];
    llm_tell_facts(request->config, facts, sizeof facts);
    llm->deadline = 1e-3 * request->config->deadline_ms;
    decider->self = llm;
    decider->decide = llm_decide;
    decider->prepare = llm_prepare;
    decider->cancel = llm_cancel;
    decider->close = llm_close;
    return agent_client_open(&request->config->agent, facts, &llm->client, error);
}
