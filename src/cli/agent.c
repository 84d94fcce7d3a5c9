/* rudder agent: the agent process that ranks start for themselves, and what a person does with a model. */
#include <stdio.h>
#include <string.h>

#include "agent/models.h"
#include "agent/selftest.h"
#include "agent/serve.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/cli.h"

typedef struct agent_options {
    int selftest, fetch, verbose, debug;
    const char *situations;
    const char *serve, *model, *facts;
    int answer;
    int64_t memory, nice;
} agent_options_t;

#define AT(field) offsetof(agent_options_t, field)
static const option_spec_t agent_specs[] = {
    {.name = "What to do", .type = OPTION_HEADING},
    {.name = "selftest",
     .type = OPTION_FLAG,
     .offset = AT(selftest),
     .help = "Let the model answer situations whose answer is known; print how many were right and how long it took."},
    {.name = "fetch",
     .type = OPTION_FLAG,
     .offset = AT(fetch),
     .help = "Fetch the model named by --model (default, small or tiny) into the cache; prints its path."},
    {.name = "serve",
     .type = OPTION_STRING,
     .offset = AT(serve),
     .value = "JOB",
     .help = "Answer the ranks of JOB until the last one has gone. Ranks start this themselves."},
    {.name = "Model", .type = OPTION_HEADING},
    {.name = "model",
     .type = OPTION_STRING,
     .offset = AT(model),
     .fallback = "default",
     .value = "MODEL",
     .help = "A GGUF file, or the name of a fetched model: default (1.1 GB), small (0.5 GB, verdicts "
             "little better than chance), tiny (0.1 GB, chance; for tests of the mechanics)."},
    {.name = "situations",
     .type = OPTION_STRING,
     .offset = AT(situations),
     .value = "FILE",
     .help = "Situations for --selftest instead of the frozen set in the program."},
    {.name = "verbose",
     .type = OPTION_FLAG,
     .offset = AT(verbose),
     .help = "With --selftest: every situation in words with its margin."},
    {.name = "debug", .type = OPTION_FLAG, .offset = AT(debug), .help = "Show what llama.cpp says."},
    {.name = "Serving", .type = OPTION_HEADING},
    {.name = "answer",
     .type = OPTION_CHOICE,
     .offset = AT(answer),
     .fallback = "score",
     .choices = "score|json",
     .help = "The costliest answers that will be asked for."},
    {.name = "facts",
     .type = OPTION_STRING,
     .offset = AT(facts),
     .value = "TEXT",
     .help = "Facts of the run for the constant part of the prompt."},
    {.name = "memory",
     .type = OPTION_BYTES,
     .offset = AT(memory),
     .fallback = "0",
     .value = "BYTES",
     .help = "Limit of the agent's address space; 0: none."},
    {.name = "nice",
     .type = OPTION_INT,
     .offset = AT(nice),
     .fallback = "0",
     .low = 0,
     .high = 19,
     .help = "Added to the caller's niceness."},
    {.name = NULL},
};

static const option_command_t agent_command = {
    .name = "agent",
    .arguments = "",
    .summary = "The LLM agent: fetch its model, test it, run it.",
    .text =
        "Training with --decider llm starts the agent by itself. By hand it is used to bring a model and to see what "
        "it is worth:\n\n"
        "  rudder agent --fetch\n"
        "  rudder agent --selftest\n"
        "  rudder agent --selftest --model FILE.gguf --verbose",
    .min_arguments = 0,
    .max_arguments = 0,
    .options = agent_specs,
};

static int agent_selftest(const agent_options_t *options)
{
    char path[4096];
    int passed;
    rudder_error_t error;
    const selftest_config_t config = {path, options->situations, options->verbose, options->debug};
    log_setup(LOG_INFO, -1, 1);
    if (models_path(options->model, path, sizeof path, &error) != RUDDER_OK ||
        selftest_run(&config, stdout, &passed, &error) != RUDDER_OK) {
        return cli_fail(&error);
    }
    return passed ? 0 : 1;
}

static int agent_serve(const agent_options_t *options)
{
    char path[4096];
    rudder_error_t error;
    const serve_config_t config = {.job = options->serve,
                                   .model = path,
                                   .facts = options->facts,
                                   .answer_mode = (rudder_answer_mode_t)options->answer,
                                   .memory_bytes = options->memory,
                                   .nice = (int32_t)options->nice,
                                   .debug = options->debug};
    /* A named model that is not there is found out by the server, which tells those who ask. */
    if (models_path(options->model, path, sizeof path, &error) != RUDDER_OK && error.status != RUDDER_E_IO) {
        return cli_fail(&error);
    }
    return serve_run(&config, &error) == RUDDER_OK ? 0 : cli_fail(&error);
}

int cli_agent(int argc, char **argv)
{
    agent_options_t options;
    rudder_error_t error;
    int32_t n_arguments;
    int exit_code;
    if (!cli_options(&agent_command, argc, argv, &options, NULL, &n_arguments, &exit_code)) {
        return exit_code;
    }
    if (options.selftest + options.fetch + (options.serve != NULL) != 1) {
        RUDDER_FAIL(&error, RUDDER_E_USAGE, "expected one of --selftest, --fetch and --serve JOB");
        return cli_fail(&error);
    }
    if (options.fetch) {
        return models_fetch(options.model, &error) == RUDDER_OK ? 0 : cli_fail(&error);
    }
    return options.selftest ? agent_selftest(&options) : agent_serve(&options);
}
