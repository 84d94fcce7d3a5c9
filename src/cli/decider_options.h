/* The options of `rudder train` and `rudder replay` that say how a decider is asked. FIELD(name): offset in the command's struct. */
#ifndef RUDDER_CLI_DECIDER_OPTIONS_H
#define RUDDER_CLI_DECIDER_OPTIONS_H

#include "base/options.h"

#define CLI_DECIDER_OPTIONS                                                                                            \
    {                                                                                                                  \
        "fallback",                                                                                                    \
        0,                                                                                                             \
        OPTION_STRING,                                                                                                 \
        FIELD(fallback),                                                                                               \
        "gain",                                                                                                        \
        "NAME",                                                                                                        \
        "Rule that decides when the decider cannot.",                                                                  \
        0,                                                                                                             \
        0,                                                                                                             \
        NULL,                                                                                                          \
        NULL},                                                                                                         \
        {"deadline-ms", 0,    OPTION_INT, FIELD(deadline_ms), "30000", "MS", "How long one decision may take.", 1,     \
         1e9,           NULL, NULL},                                                                                   \
        {"late-after",                                                                                                 \
         0,                                                                                                            \
         OPTION_INT,                                                                                                   \
         FIELD(late_after),                                                                                            \
         "0",                                                                                                          \
         "N",                                                                                                          \
         "Minibatches after which an answer is too old to be applied. 0: four periods.",                               \
         0,                                                                                                            \
         1e9,                                                                                                          \
         NULL,                                                                                                         \
         NULL},                                                                                                        \
        {"model",                                                                                                      \
         'm',                                                                                                          \
         OPTION_STRING,                                                                                                \
         FIELD(model),                                                                                                 \
         NULL,                                                                                                         \
         "FILE",                                                                                                       \
         "The LLM: a GGUF file, or default, small, tiny. Unset: the one that \"rudder agent --fetch\" brings.",        \
         0,                                                                                                            \
         0,                                                                                                            \
         NULL,                                                                                                         \
         "decision-model"},                                                                                            \
        {"answer",                                                                                                     \
         0,                                                                                                            \
         OPTION_CHOICE,                                                                                                \
         FIELD(answer),                                                                                                \
         "score",                                                                                                      \
         NULL,                                                                                                         \
         "How the LLM answers: by comparing two answers, or in JSON with a prediction and an explanation.",            \
         0,                                                                                                            \
         0,                                                                                                            \
         "score|json",                                                                                                 \
         NULL},                                                                                                        \
        {"agent-memory",                                                                                               \
         0,                                                                                                            \
         OPTION_BYTES,                                                                                                 \
         FIELD(agent_memory),                                                                                          \
         "0",                                                                                                          \
         "BYTES",                                                                                                      \
         "Limit of the agent's address space. 0: none.",                                                               \
         0,                                                                                                            \
         0,                                                                                                            \
         NULL,                                                                                                         \
         NULL},                                                                                                        \
    {                                                                                                                  \
        "agent-nice", 0, OPTION_INT, FIELD(agent_nice), "0", "N", "Added to the agent's niceness.", 0, 19, NULL, NULL  \
    }

#endif
