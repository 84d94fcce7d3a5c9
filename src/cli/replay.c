/* rudder replay: its options, and the laboratory at work. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/models.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/log.h"
#include "cli/capacity.h"
#include "cli/cli.h"
#include "cli/decider_options.h"
#include "cli/laboratory.h"
#include "cli/owner_cost.h"

#define FIELD(name) offsetof(replay_options_t, name)

static const option_spec_t replay_specs[] = {
    {"What is tried: every policy with every capacity", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"policy", 'p', OPTION_STRING, FIELD(policy), "static,lfu,mix,lookahead", "LIST",
     "none, static, lru, lfu, sieve, score, mix, lookahead, lookahead:W, lookahead:recorded (what the run had "
     "announced), "
     "belady (all is announced). POLICY/START tells what it starts from: score/empty.",
     0, 0, NULL, NULL},
    {"capacity", 'c', OPTION_STRING, FIELD(capacity), "25%", "LIST",
     "Sizes of the buffer: shares of the halo (5%; without a halo of all ids), rows (1000) or bytes (64MiB).", 0, 0,
     NULL, "prefetch-fraction"},
    {"decider", 'd', OPTION_STRING, FIELD(decider), "never", "LIST",
     "For policies with replacements (score): never, once, fixed:N, gain, llm. DECIDER@TIME answers that much later: "
     "gain@2s.",
     0, 0, NULL, NULL},
    {"start", 0, OPTION_STRING, FIELD(start), NULL, "LIST",
     "What is in the buffer at the start: empty, degree, random. Unset: what suits each policy.", 0, 0, NULL,
     "prefetcher-init"},
    {"threads", 't', OPTION_INT, FIELD(threads), "0", "N", "Replays that run at once. 0: as many as there are cores.",
     0, 256, NULL, NULL},

    {"Buffer", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"alpha", 0, OPTION_FLOAT, FIELD(alpha), "0.005", "RATE", "Decay of the score policy, a minibatch without a hit.",
     1e-6, 0.999, NULL, NULL},
    {"period", 0, OPTION_INT, FIELD(period), "16", "N", "Minibatches in a window, after which the decider is asked.", 1,
     1e6, NULL, "eviction-period"},
    {"seed", 's', OPTION_INT, FIELD(seed), "1", "N", "Of the start \"random\".", 0, 9.2e18, NULL, NULL},
    {"max-tracked", 0, OPTION_STRING, FIELD(max_tracked), NULL, "all|SIZE",
     "Ids outside the buffer that are remembered: all, or a size as for --capacity. Unset: as many as the run "
     "remembered, all where the trace does not tell.",
     0, 0, NULL, NULL},
    {"window-memory", 0, OPTION_BYTES, FIELD(window_memory), "0", "BYTES",
     "Most that lookahead holds of announced minibatches, 8 bytes an id. 0: what the library allows.", 0, 0, NULL,
     NULL},
    {"owner-cost", 0, OPTION_STRING, FIELD(owner_cost), "off", "off|measured|FILE",
     "What rows of different owners cost, for mix and lookahead: all the same, as fetching them takes on the clock, or "
     "a "
     "number for each owner in a file, one a line.",
     0, 0, NULL, NULL},

    {"Clock", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"link", 0, OPTION_STRING, FIELD(link), NULL, "RATE[,LATENCY][;OWNER=...]",
     "The network: \"1Gbit,50us\", or \"1Gbit,50us;2=100Mbit\" where owner 2 is behind a slower one; off: rows arrive "
     "at "
     "once. Unset: the link that the run was recorded with.",
     0, 0, NULL, NULL},
    {"link-schedule", 0, OPTION_STRING, FIELD(link_schedule), NULL, "FILE",
     "How it changes: lines \"FROM_MINIBATCH OWNER|* RATE[,LATENCY]\".", 0, 0, NULL, NULL},
    {"row-bytes", 0, OPTION_BYTES, FIELD(row_bytes), "0", "BYTES", "Bytes of a row. 0: as the trace says.", 0, 0, NULL,
     NULL},
    {"sample", 0, OPTION_SECONDS, FIELD(sample), NULL, "TIME",
     "What sampling a minibatch takes. Unset: as measured in the run.", 0, 0, NULL, NULL},
    {"compute", 0, OPTION_SECONDS, FIELD(compute), NULL, "TIME",
     "What training on a minibatch takes, allreduce included. Unset: as measured in the run.", 0, 0, NULL, NULL},
    {"depth", 0, OPTION_INT, FIELD(depth), "0", "N",
     "Minibatches that the loader is ahead of the training. 0: as in the run, or 2.", 0, 64, NULL, NULL},
    {"overlap", 0, OPTION_FLAG, FIELD(overlap), "1", NULL, "Loading goes on while the training computes.", 0, 0, NULL,
     NULL},

    {"Decisions", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"mode", 0, OPTION_CHOICE, FIELD(mode), "async", NULL,
     "Whether training goes on while a decider thinks, or waits for it.", 0, 0, "async|sync", NULL},
    {"decision-latency", 0, OPTION_SECONDS, FIELD(decision_latency), NULL, "TIME",
     "How long an answer of the LLM takes on the clock. Unset: as long as it really takes.", 0, 0, NULL, NULL},
    {"latencies", 0, OPTION_STRING, FIELD(latencies), NULL, "FILE",
     "The same from a run: its decisions.rankN.jsonl; the latencies there are taken in turn.", 0, 0, NULL, NULL},
    CLI_DECIDER_OPTIONS,
    {"oracle", 0, OPTION_STRING, FIELD(oracle), NULL, "FILE",
     "At every decision point go both ways and tell how often each decider takes the one that fetches fewer rows, and "
     "what its answers cost; every point with its context goes to FILE, a JSON object a line.",
     0, 0, NULL, NULL},
    {"horizon", 0, OPTION_INT, FIELD(horizon), "0", "N",
     "Minibatches over which the oracle compares the two ways. 0: four periods.", 0, 9.2e18, NULL, NULL},

    {"Output", 0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {"per-rank", 0, OPTION_FLAG, FIELD(per_rank), "0", NULL, "Rows for each rank of a run, below their sum.", 0, 0,
     NULL, NULL},
    {"json", 0, OPTION_STRING, FIELD(json), NULL, "FILE", "All rows and settings, for \"rudder report\".", 0, 0, NULL,
     NULL},
    {"csv", 0, OPTION_STRING, FIELD(csv), NULL, "FILE", "All rows.", 0, 0, NULL, NULL},
    {0}};

static const option_command_t replay_command = {
    .name = "replay",
    .arguments = "TRACE...",
    .summary = "what a run would have fetched with other policies, deciders, capacities, networks",
    .text =
        "Replays recorded minibatches through the same library that training uses, and tells what each policy would "
        "have fetched and how long an epoch would have taken. A TRACE is a file that \"rudder train --record\" wrote, "
        "a run's folder (all its ranks, which are then replayed together), or a trace of any system as text or .npz "
        "(see \"rudder import-trace\"). Everything counts: the first fill and every fill row.\n"
        "\n"
        "Read the table from its first row: \"bound\" is the fewest rows that any buffer of that size can fetch on "
        "this "
        "trace, knowing all of the future. \"of the bound\" is the share of what it saves. If lookahead is near it, "
        "more "
        "capacity is the only thing that helps further; if mix is near lookahead, looking ahead brings little.\n"
        "\n"
        "The clock follows the trainer: a loader ahead of the training, links that carry rows, all ranks meeting in "
        "every step. Times of sampling and computing are those of the run unless you tell others; so you can ask what "
        "another network would do.\n"
        "\n"
        "Examples:\n"
        "  rudder replay runs/first --capacity 5%,10%,25%,50%     which policy, which capacity\n"
        "  rudder replay runs/first --policy lookahead:4,lookahead:16,lookahead,belady\n"
        "                                                         how far to look ahead\n"
        "  rudder replay runs/first --policy score/degree,score/empty --decider never,once,fixed:16,gain,llm\n"
        "                                                         what the decider is worth\n"
        "  rudder replay runs/first --policy score --decider llm --oracle points.jsonl\n"
        "                                                         which of its answers were right\n"
        "  rudder replay runs/first --link \"10Gbit,20us;2=1Gbit\" --policy mix,lookahead --owner-cost measured\n"
        "                                                         one slow machine\n"
        "  rudder replay ids.txt --capacity 100,1000 --row-bytes 400 --link 1Gbit --compute 20ms --sample 5ms\n"
        "                                                         a trace of any system, times as told\n"
        "  rudder replay runs/first --json lab.json && rudder report lab.json -o lab.html\n",
    .min_arguments = 1,
    .max_arguments = LABORATORY_MOST_TRACES,
    .options = replay_specs,
};

/* ---- Options ---------------------------------------------------------------------------------------------------- */

/* "latency_ms" of every line that has one, in seconds. */
static rudder_status_t replay_read_latencies(laboratory_t *lab, rudder_error_t *error)
{
    static const char key[] = "\"latency_ms\":";
    const char *path = lab->options.latencies;
    char *line = NULL;
    size_t line_size = 0;
    int64_t size = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    rudder_status_t status = RUDDER_OK;
    while (status == RUDDER_OK && getline(&line, &line_size, file) >= 0) {
        const char *at = strstr(line, key);
        const double ms = at != NULL ? strtod(at + strlen(key), NULL) : 0;
        if (!(ms > 0) || !isfinite(ms)) {
            continue; /* a decision that nobody was asked for */
        }
        if (grow_array(&lab->latency, &size, lab->n_latency + 1, sizeof *lab->latency) != RUDDER_OK) {
            status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory", path);
        } else {
            lab->latency[lab->n_latency++] = 1e-3 * ms;
        }
    }
    free(line);
    fclose(file);
    if (status == RUDDER_OK && lab->n_latency == 0) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected lines with \"latency_ms\", found none", path);
    }
    return status;
}

static rudder_status_t replay_read_clock(laboratory_t *lab, rudder_error_t *error)
{
    const replay_options_t *options = &lab->options;
    replay_settings_t *settings = &lab->settings;
    settings->sample = options->sample;
    settings->compute = options->compute;
    settings->row_bytes = options->row_bytes;
    settings->depth = !options->overlap ? 0 : options->depth > 0 ? (int32_t)options->depth : -1;
    settings->window_ids = options->window_memory / (int64_t)sizeof(int64_t);
    if (options->window_memory > 0 && settings->window_ids == 0) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--window-memory: expected 8 bytes or more, found %" PRId64,
                           options->window_memory);
    }
    if (options->link != NULL) {
        settings->use_links = 1;
        RUDDER_TRY(links_parse(options->link, &settings->links, error));
    }
    if (options->link_schedule != NULL) {
        if (options->link == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_USAGE, "--link-schedule: expected --link, what the links are at first");
        }
        RUDDER_TRY(
            clock_read_schedule(options->link_schedule, &settings->links, &lab->changes, &settings->n_changes, error));
        settings->changes = lab->changes;
    }
    return RUDDER_OK;
}

/* An agent of this process alone, run by this program. */
static rudder_status_t replay_read_agent(laboratory_t *lab, rudder_config_t *library, rudder_error_t *error)
{
    const replay_options_t *options = &lab->options;
    int asked = 0;
    for (int32_t d = 0; d < lab->n_deciders; d++) {
        asked |= strcmp(lab->decider[d].name, "llm") == 0;
    }
    if (!asked) {
        return RUDDER_OK;
    }
    if (models_path(options->model, lab->model, sizeof lab->model, error) != RUDDER_OK) {
        return error->status = RUDDER_E_USAGE;
    }
    const ssize_t n = readlink("/proc/self/exe", lab->program, sizeof lab->program - 1);
    lab->program[n > 0 ? n : 0] = '\0';
    snprintf(lab->job, sizeof lab->job, "replay-%ld", (long)getpid());
    library->agent =
        (rudder_agent_config_t){.program = lab->program,
                                .model = lab->model,
                                .job = lab->job,
                                .answer_mode = options->answer == 0 ? RUDDER_ANSWER_SCORE : RUDDER_ANSWER_JSON,
                                .memory_bytes = options->agent_memory,
                                .nice = (int32_t)options->agent_nice};
    return RUDDER_OK;
}

static rudder_status_t replay_read_options(laboratory_t *lab, rudder_error_t *error)
{
    const replay_options_t *options = &lab->options;
    rudder_config_t *library = &lab->settings.library;
    RUDDER_TRY(choices_policies(options->policy, options->start, lab->policy, &lab->n_policies, error));
    RUDDER_TRY(choices_deciders(options->decider, lab->decider, &lab->n_deciders, error));
    RUDDER_TRY(choices_capacities(options->capacity, lab->capacity, &lab->n_capacities, error));
    lab->max_tracked = (train_capacity_t){.share = -1, .rows = -1, .bytes = -1};
    if (options->max_tracked != NULL && strcmp(options->max_tracked, "all") != 0) {
        RUDDER_TRY(capacity_read(options->max_tracked, "--max-tracked", &lab->max_tracked, error));
    }
    rudder_config_init(library, sizeof *library);
    library->alpha = options->alpha;
    library->period = (int32_t)options->period;
    library->seed = (uint64_t)options->seed;
    library->fallback = options->fallback;
    library->mode = options->mode == 0 ? RUDDER_ASYNC : RUDDER_SYNC;
    library->deadline_ms = (int32_t)options->deadline_ms;
    library->late_after = (int32_t)options->late_after;
    RUDDER_TRY(replay_read_agent(lab, library, error));
    RUDDER_TRY(replay_read_clock(lab, error));
    RUDDER_TRY(owner_cost_read(options->owner_cost, &lab->settings.owner_cost, &lab->owner_cost,
                               &lab->settings.n_owner_row_cost, error));
    lab->settings.owner_row_cost = lab->owner_cost;
    if (options->latencies != NULL) {
        RUDDER_TRY(replay_read_latencies(lab, error));
    }
    cpu_set_t cores;
    const int n = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    lab->threads = options->threads > 0 ? (int32_t)options->threads : n;
    return RUDDER_OK;
}

/* ---- The oracle ------------------------------------------------------------------------------------------------- */

/* Before anything long begins: is there something to decide, and can the file be made? */
static rudder_status_t replay_open_oracle(laboratory_t *lab, rudder_error_t *error)
{
    const char *path = lab->options.oracle;
    int replaces = 0;
    for (int32_t p = 0; p < lab->n_policies; p++) {
        replaces |= lab->policy[p].replaces;
    }
    if (path == NULL) {
        return RUDDER_OK;
    }
    if (!replaces) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "--oracle: expected a policy with replacements to decide, --policy score, found only %s",
                           lab->options.policy);
    }
    lab->oracle_lines = fopen(path, "w");
    return lab->oracle_lines != NULL
               ? RUDDER_OK
               : RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", path, strerror(errno));
}

/* A case for each policy with replacements and each capacity: its first replay stands for it. */
static rudder_status_t replay_ask_oracle(laboratory_t *lab, rudder_error_t *error)
{
    const char *names[CHOICES_MOST];
    int32_t n = 0;
    if (lab->oracle_lines == NULL) {
        return RUDDER_OK;
    }
    lab->cases = calloc((size_t)lab->n_jobs, sizeof *lab->cases);
    lab->case_name = calloc((size_t)lab->n_groups, sizeof *lab->case_name);
    if (lab->cases == NULL || lab->case_name == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the oracle");
    }
    for (int32_t d = 0; d < lab->n_deciders; d++) {
        names[d] = lab->decider[d].name;
    }
    for (int32_t i = 0; i < lab->n_jobs; i++) {
        const laboratory_job_t *job = &lab->jobs[i];
        if (job->decider == 0) {
            lab->cases[n++] = (oracle_case_t){
                .job = &job->replay,
                .trace = laboratory_name(job->replay.group, lab->case_name[job->group], LABORATORY_PATH),
                .policy = lab->policy[job->policy].label,
                .start = lab->policy[job->policy].start,
                .capacity = lab->capacity[job->capacity].label};
        }
    }
    return oracle_report_make(lab->cases, n, names, lab->n_deciders, lab->options.horizon, lab->threads,
                              lab->oracle_lines, &lab->oracle, error);
}

int cli_replay(int argc, char **argv)
{
    rudder_error_t error = {0};
    const char **arguments = calloc(LABORATORY_MOST_TRACES, sizeof *arguments);
    laboratory_t *lab = calloc(1, sizeof *lab);
    int32_t n = 0;
    int exit_code = 1;
    if (arguments == NULL || lab == NULL) {
        log_line(LOG_ERROR, "no memory");
        goto end;
    }
    lab->command = &replay_command;
    lab->options.sample = lab->options.compute = lab->options.decision_latency = -1;
    if (!cli_options(&replay_command, argc, argv, &lab->options, arguments, &n, &exit_code)) {
        goto end;
    }
    log_setup(LOG_INFO, -1, 1);
    rudder_status_t status = replay_read_options(lab, &error);
    status = status == RUDDER_OK ? replay_open_oracle(lab, &error) : status;
    status = status == RUDDER_OK ? laboratory_open(lab, arguments, n, &error) : status;
    status = status == RUDDER_OK ? laboratory_list(lab, &error) : status;
    status = status == RUDDER_OK ? laboratory_run(lab, &error) : status;
    status = status == RUDDER_OK ? replay_ask_oracle(lab, &error) : status;
    status = status == RUDDER_OK ? laboratory_tell(lab, argc, argv, &error) : status;
    exit_code = status == RUDDER_OK ? 0 : cli_fail(&error);
end:
    free(arguments);
    laboratory_close(lab);
    return exit_code;
}
