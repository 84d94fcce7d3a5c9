/*
 * rudder train: options, the launch under MPI, and what a rank says at its end. The command that a user types is
 * either the launcher's parent (it starts mpirun and passes the exit code on) or, under mpirun and srun, a rank.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/models.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/capacity.h"
#include "cli/cli.h"
#include "cli/decider_options.h"
#include "cli/owner_cost.h"
#include "comm/comm.h"
#include "comm/launch.h"
#include "nn/kernels.h"
#include "report/summary.h"
#include "train/start.h"
#include "train/train.h"

typedef struct train_options {
    int64_t ranks, epochs, batch, hidden, threads, depth, seed, period, deadline_ms, late_after, agent_memory,
        agent_nice, max_message, window_memory;
    double rate, dropout, alpha, deadline;
    const char *fanout, *capacity, *policy, *start, *decider, *fallback, *model, *link, *run_dir, *name, *window,
        *owner_cost;
    int order, mode, answer, eval, record;
} train_options_t;

#define FIELD(name) offsetof(train_options_t, name)

static const option_spec_t train_specs[] = {
    {"Ranks and time", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"ranks", 'n', OPTION_INT, FIELD(ranks), "0", "N", "Trainer processes, as many as there are parts. 0: that number.",
     0, 65536, NULL, "num-trainers"},
    {"threads", 't', OPTION_INT, FIELD(threads), "0", "N",
     "Threads that compute in each rank. 0: the cores of this host shared among its ranks.", 0, 1024, NULL,
     "num-omp-threads"},
    {"depth", 0, OPTION_INT, FIELD(depth), "2", "N", "Minibatches that the loader is ahead of the training.", 1, 64,
     NULL, NULL},
    {"deadline", 0, OPTION_SECONDS, FIELD(deadline), "0s", "TIME",
     "How long a rank waits for others before it gives up. 0: as long as it takes.", 0, 0, NULL, NULL},
    {"link", 0, OPTION_STRING, FIELD(link), "off", "RATE[,LATENCY][;RANK=...]",
     "Delays rows as a network would: 1Gbit,50us. \"1Gbit;2=100Mbit\": rows of rank 2 are slower. Figures are then "
     "emulated.",
     0, 0, NULL, NULL},
    {"max-message", 0, OPTION_BYTES, FIELD(max_message), "0", "BYTES",
     "Most bytes from one rank to another in one message. 0: 256MiB.", 0, 0, NULL, NULL},

    {"Model and training", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"epochs", 'e', OPTION_INT, FIELD(epochs), "5", "N", "Passes over the training nodes.", 1, 1e6, NULL, "num-epochs"},
    {"batch", 'b', OPTION_INT, FIELD(batch), "1000", "N", "Training nodes of a minibatch, for each rank.", 1, 1e9, NULL,
     "batch-size"},
    {"fanout", 'f', OPTION_STRING, FIELD(fanout), "10,10", "N,N...",
     "Neighbours sampled a node, one number a layer, the first next to the input. 0,0 is an MLP on the features.", 0, 0,
     NULL, "fan-out"},
    {"hidden", 0, OPTION_INT, FIELD(hidden), "64", "N", "Width of the hidden layers.", 1, 65536, NULL, "num-hidden"},
    {"lr", 0, OPTION_FLOAT, FIELD(rate), "0.01", "RATE", "Learning rate of Adam.", 0, 1e3, NULL, "learning-rate"},
    {"dropout", 0, OPTION_FLOAT, FIELD(dropout), "0.2", "P", "Share of hidden values dropped in training.", 0, 0.99,
     NULL, NULL},
    {"seed", 's', OPTION_INT, FIELD(seed), "1", "N",
     "Of all random numbers: the same seed gives the same minibatches for any number of ranks and threads.", 0, 9.2e18,
     NULL, NULL},
    {"seed-order", 0, OPTION_CHOICE, FIELD(order), "shuffled", NULL,
     "Order of the training nodes in an epoch. drift: the mix of classes moves over the run.", 0, 0,
     "shuffled|community|class|drift", NULL},
    {"eval", 0, OPTION_CHOICE, FIELD(eval), "epoch", NULL,
     "When accuracy is measured; with all neighbours, apart from the times of epochs.", 0, 0, "epoch|end|none", NULL},

    {"Buffer", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"policy", 'p', OPTION_STRING, FIELD(policy), "lookahead", "NAME",
     "Which rows leave and enter: lookahead (knows the next minibatches), mix, lfu, lru, sieve, score, static, none "
     "(no "
     "buffer).",
     0, 0, NULL, NULL},
    {"capacity", 'c', OPTION_STRING, FIELD(capacity), "25%", "25%|ROWS|64MiB",
     "Size of the buffer: a share of the part's halo (25% or 0.25), rows, or bytes.", 0, 0, NULL, "prefetch-fraction"},
    {"start", 0, OPTION_STRING, FIELD(start), NULL, "NAME",
     "What is in the buffer at the start: empty, degree, random, presample (used most in sampled minibatches), vip "
     "(used "
     "most by a computed probability), file:PATH (lines \"id weight\", ids of the graph). Unset: what suits the "
     "policy.",
     0, 0, NULL, "prefetcher-init"},
    {"window", 'w', OPTION_STRING, FIELD(window), "auto", "auto|N",
     "Minibatches that lookahead looks ahead: as many as help it, or a number.", 0, 0, NULL, NULL},
    {"window-memory", 0, OPTION_BYTES, FIELD(window_memory), "512MiB", "BYTES",
     "Most memory that minibatches sampled ahead may hold, in each rank; the window shrinks to fit.", 0, 0, NULL, NULL},
    {"owner-cost", 0, OPTION_STRING, FIELD(owner_cost), "off", "off|measured|FILE",
     "Whether lookahead and mix keep rows of slow ranks rather: by what fetching from each takes, or by a file with a "
     "number "
     "for each rank.",
     0, 0, NULL, NULL},
    {"alpha", 0, OPTION_FLOAT, FIELD(alpha), "0.005", "RATE", "Decay of the score policy, a minibatch without a hit.",
     1e-6, 0.999, NULL, NULL},
    {"period", 0, OPTION_INT, FIELD(period), "16", "N", "Minibatches in a window, after which the decider is asked.", 1,
     1e6, NULL, "eviction-period"},

    {"Decider", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"decider", 'd', OPTION_STRING, FIELD(decider), NULL, "NAME",
     "When rows are replaced: never, once, fixed:N, gain, llm. For policies that replace (score). Unset: never.", 0, 0,
     NULL, NULL},
    {"mode", 0, OPTION_CHOICE, FIELD(mode), "async", NULL,
     "Whether training goes on while the decider thinks, or waits for it.", 0, 0, "async|sync", NULL},
    CLI_DECIDER_OPTIONS,

    {"Output", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"run-dir", 'o', OPTION_STRING, FIELD(run_dir), NULL, "DIR",
     "Folder for the run's files, new or empty. Unset: runs/<date-time>-<name>.", 0, 0, NULL, NULL},
    {"record", 0, OPTION_FLAG, FIELD(record), NULL, NULL,
     "Writes the remote ids and times of every minibatch to trace.rankN.rtr, for \"rudder replay\".", 0, 0, NULL, NULL},
    {"name", 0, OPTION_STRING, FIELD(name), NULL, "NAME", "Name of the run. Unset: the graph's.", 0, 0, NULL, NULL},
    {0}};

static const option_command_t train_command = {
    .name = "train",
    .arguments = "PARTS",
    .summary = "train a GNN over MPI with a steered buffer of remote features",
    .text =
        "Trains GraphSAGE (mean aggregation) on a partition directory made by \"rudder partition\". Rows of features "
        "that "
        "another rank owns pass through a buffer; the policy says which of them it keeps, the decider when they are "
        "replaced. Training is the same to the last bit whatever the buffer does.\n"
        "\n"
        "Examples:\n"
        "  rudder train parts/                                one rank a part, default policy\n"
        "  rudder train parts/ --policy score --decider llm   the paper's policy, steered by an LLM\n"
        "  mpirun -n 4 rudder train parts/                    under a launcher of your own\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = train_specs,
};

/* What the callbacks of a run need. */
typedef struct train_command_run {
    const train_options_t *options;
    summary_choice_t choice;
} train_command_run_t;

/* ---- values that have a grammar of their own ---- */

static rudder_status_t train_read_fanout(const char *text, train_config_t *config, rudder_error_t *error)
{
    char copy[256], *rest = copy, *item;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--fanout: expected at most %d numbers, found \"%s\"",
                           SAMPLER_MAX_LAYERS, text);
    }
    while ((item = strsep(&rest, ",")) != NULL) {
        int64_t value;
        if (config->n_layers == SAMPLER_MAX_LAYERS) {
            return RUDDER_FAIL(error, RUDDER_E_USAGE, "--fanout: expected at most %d numbers, found \"%s\"",
                               SAMPLER_MAX_LAYERS, text);
        }
        RUDDER_TRY(text_int(item, "--fanout", 0, 1000000, &value, error));
        config->fanout[config->n_layers++] = (int32_t)value;
    }
    return RUDDER_OK;
}

/* "auto" or a number, which is part of the policy's name in the library: lookahead:N. policy[size]: memory for that. */
static rudder_status_t train_read_window(const train_options_t *options, train_config_t *config, char *policy,
                                         size_t size, rudder_error_t *error)
{
    static const char prefix[] = "lookahead:";
    if (strncmp(options->policy, prefix, sizeof prefix - 1) == 0) {
        RUDDER_TRY(
            text_int(options->policy + sizeof prefix - 1, "--policy lookahead:N", 1, 1000000, &config->window, error));
    }
    if (strcmp(options->window, "auto") == 0) {
        return RUDDER_OK;
    }
    if (text_int(options->window, "--window", 1, 1000000, &config->window, error) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--window: expected auto or a number from 1 to 1000000, found \"%s\"",
                           options->window);
    }
    if (strcmp(options->policy, "lookahead") != 0) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--window %s: expected --policy lookahead, found %s", options->window,
                           options->policy);
    }
    snprintf(policy, size, "%s%lld", prefix, (long long)config->window);
    config->policy = policy;
    return RUDDER_OK;
}

/* Memory for what options are made into. */
typedef struct train_texts {
    char model[4096], policy[32];
    double *owner_cost;
} train_texts_t;

static rudder_status_t train_read_options(const train_options_t *options, const char *parts, train_texts_t *texts,
                                          train_config_t *config, rudder_error_t *error)
{
    *config = (train_config_t){
        .parts = parts,
        .run_dir = options->run_dir,
        .name = options->name,
        .ranks = (int32_t)options->ranks,
        .epochs = (int32_t)options->epochs,
        .batch = (int32_t)options->batch,
        .hidden = (int32_t)options->hidden,
        .threads = (int32_t)options->threads,
        .depth = (int32_t)options->depth,
        .rate = options->rate,
        .dropout = options->dropout,
        .seed = (uint64_t)options->seed,
        .order = (seeds_order_t)options->order,
        .eval = (train_eval_t)options->eval,
        .policy = options->policy,
        .start = options->start,
        .decider = options->decider,
        .fallback = options->fallback,
        .model = options->model,
        .mode = options->mode == 0 ? RUDDER_ASYNC : RUDDER_SYNC,
        .period = (int32_t)options->period,
        .deadline_ms = (int32_t)options->deadline_ms,
        .late_after = (int32_t)(options->late_after > 0 ? options->late_after : 4 * options->period),
        .alpha = options->alpha,
        .answer = options->answer == 0 ? RUDDER_ANSWER_SCORE : RUDDER_ANSWER_JSON,
        .agent_memory = options->agent_memory,
        .agent_nice = (int32_t)options->agent_nice,
        .deadline = options->deadline,
        .max_message = options->max_message,
        .record = options->record,
        .window_memory = options->window_memory,
    };
    RUDDER_TRY(train_read_fanout(options->fanout, config, error));
    RUDDER_TRY(capacity_read(options->capacity, "--capacity", &config->capacity, error));
    if (config->start != NULL) {
        RUDDER_TRY(start_check(config->start, error));
    }
    RUDDER_TRY(owner_cost_read(options->owner_cost, &config->owner_cost, &texts->owner_cost, &config->n_owner_row_cost,
                               error));
    config->owner_row_cost = texts->owner_cost;
    RUDDER_TRY(train_read_window(options, config, texts->policy, sizeof texts->policy, error));
    RUDDER_TRY(links_parse(options->link, &config->links, error));
    if (config->decider != NULL && strcmp(config->decider, "llm") == 0) {
        /* A model by name that was never fetched; a path is looked at later, and no reason to end the training. */
        if (models_path(config->model, texts->model, sizeof texts->model, error) != RUDDER_OK) {
            return error->status = RUDDER_E_USAGE;
        }
        config->model = texts->model;
    }
    return RUDDER_OK;
}

/* ---- a rank ---- */

static void train_echo(void *context, json_t *json)
{
    const train_command_run_t *run = context;
    options_echo(&train_command, run->options, json);
}

static void train_finished(void *context, const train_result_t *result)
{
    const train_command_run_t *run = context;
    rudder_error_t error;
    if (summary_write(result, &run->choice, &error) != RUDDER_OK) {
        log_error(&error);
    }
    if (strcmp(result->status, "ok") == 0) {
        log_progress_end();
        if (summary_print(result, stdout, &error) != RUDDER_OK) {
            log_error(&error);
        }
        fflush(stdout);
    }
}

/* The launcher has told all ranks, or ends the others when it sees this one gone. */
static void train_stopped(void *context, int signal)
{
    (void)context;
    comm_abort(128 + signal);
}

static int train_rank(const train_options_t *options, train_config_t *config, char **argv)
{
    train_command_run_t run = {.options = options,
                               .choice = {.policy = options->policy,
                                          .start = options->start,
                                          .decider = options->decider,
                                          .mode = config->mode == RUDDER_ASYNC ? "async" : "sync",
                                          .link = options->link,
                                          .name = options->name}};
    rudder_error_t error;
    const char *note;
    int threads_multiple, agreed;
    if (kernel_check_blas(argv, &note, &error) != RUDDER_OK || comm_start(&threads_multiple, &error) != RUDDER_OK) {
        return cli_fail(&error);
    }
    config->echo = train_echo;
    config->finished = train_finished;
    config->stopped = train_stopped;
    config->context = &run;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (note[0] != '\0' && rank == 0) {
        log_line(LOG_WARN, "%s", note);
    }
    const rudder_status_t status = train_run(config, threads_multiple, &agreed, &error);
    if (status != RUDDER_OK && (rank == 0 || !agreed)) {
        log_error(&error);
    }
    if (!agreed) {
        comm_abort(cli_exit_code(status));
    }
    comm_stop();
    return cli_exit_code(status);
}

/* How many ranks to start: as many as there are parts, and nothing else. */
static rudder_status_t train_ranks(const train_options_t *options, const char *directory, int *ranks,
                                   rudder_error_t *error)
{
    parts_t parts;
    RUDDER_TRY(parts_open(directory, &parts, error));
    *ranks = parts.n_parts;
    parts_close(&parts);
    if (options->ranks != 0 && options->ranks != *ranks) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--ranks %lld: expected as many ranks as parts, found %d parts in %s",
                           (long long)options->ranks, *ranks, directory);
    }
    return RUDDER_OK;
}

int cli_train(int argc, char **argv)
{
    train_options_t options;
    train_config_t config;
    rudder_error_t error;
    const char *parts;
    train_texts_t texts = {.owner_cost = NULL};
    int32_t n_arguments;
    int exit_code, ranks;
    if (!cli_options(&train_command, argc, argv, &options, &parts, &n_arguments, &exit_code)) {
        return exit_code;
    }
    if (train_read_options(&options, parts, &texts, &config, &error) != RUDDER_OK) {
        exit_code = cli_fail(&error);
    } else if (launch_is_rank()) {
        exit_code = train_rank(&options, &config, argv);
    } else if (train_ranks(&options, parts, &ranks, &error) != RUDDER_OK) {
        exit_code = cli_fail(&error);
    } else {
        exit_code = launch_ranks(ranks, argc, argv);
    }
    free(texts.owner_cost);
    return exit_code;
}
