/*
 * A rank's side of the talk with the agent of its host (agent_protocol.h): finds the job's agent or starts it, asks, and
 * takes nothing on trust. Every call ends by its deadline or when it is cancelled. Used by one thread, apart from
 * agent_client_cancel().
 */
#ifndef RUDDER_DECIDE_AGENT_CLIENT_H
#define RUDDER_DECIDE_AGENT_CLIENT_H

#include <limits.h>
#include <stdint.h>

#include "decide/agent_process.h"
#include "decide/agent_protocol.h"
#include "rudder/rudder.h"

typedef struct agent_client {
    rudder_agent_config_t
        config; /* its strings: the copies below. program NULL: an agent is looked for, never started */
    char program[PATH_MAX], model[PATH_MAX];
    char job[80];
    char facts[256];
    char *argv[16];
    int wake;             /* eventfd, readable once cancelled */
    int socket;           /* -1: not connected */
    uint64_t number;      /* of the last question */
    uint64_t next_answer; /* on this connection: answers up to here have come or are not expected */
    int misses;           /* deadlines passed in a row without a sign of life */
    agent_process_t process;
    double start_after; /* clock_seconds(): no new agent is started before */
    double start_delay; /* seconds; doubles with every start, back to 0 with an answer */
    struct {
        agent_question_t head;
        char text[AGENT_MAX_TEXT];
    } question;
} agent_client_t;

/*
 * Strings are copied; facts are cut at 255 bytes. Nothing is started yet.
 * Errors: ARGUMENT (a program without a model, a path that is too long), MEMORY (no file descriptor).
 */
rudder_status_t agent_client_open(const rudder_agent_config_t *config, const char *facts, agent_client_t *client,
                                  rudder_error_t *error);

/*
 * Looks for the agent and starts it if there is none, so that it is ready for the first question. Failing is no matter:
 * the question will tell. until: clock_seconds().
 */
void agent_client_prepare(agent_client_t *client, double until);

/*
 * Asks; text is cut at AGENT_MAX_TEXT bytes. Fills verdict, margin, tokens, predictions, prompt_hash and explanation of
 * *answer; a verdict that is no verdict becomes RUDDER_NO_VERDICT. until: clock_seconds().
 * Errors: DEADLINE, AGENT (no agent, it died, it said it cannot, it does not keep to the protocol, cancelled).
 */
rudder_status_t agent_client_ask(agent_client_t *client, const char *text, double until, rudder_answer_t *answer,
                                 rudder_error_t *error);

/* From any thread: ends a running agent_client_ask() and all later ones. */
void agent_client_cancel(agent_client_t *client);

/* Disconnects, and ends and reaps an agent that was started here. */
void agent_client_close(agent_client_t *client);

#endif
