/*
 * rudder replay: the laboratory. Reads the traces once, lists every replay that was asked for, states the memory, runs them
 * over a few threads beside the bound, and tells the rows.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/models.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/capacity.h"
#include "cli/cli.h"
#include "cli/decider_options.h"
#include "cli/owner_cost.h"
#include "cli/replay_choices.h"
#include "cli/replay_oracle.h"
#include "cli/replay_rows.h"
#include "policy/policy.h"
#include "trace/bound.h"
#include "trace/jobs.h"
#include "trace/replay.h"

enum { REPLAY_MOST_TRACES = 4096, REPLAY_PATH = 4096 };

typedef struct replay_options {
    const char *policy, *decider, *capacity, *start, *max_tracked, *link, *link_schedule, *owner_cost, *fallback,
        *latencies, *model, *oracle, *json, *csv;
    int64_t horizon, period, seed, window_memory, depth, row_bytes, deadline_ms, late_after, agent_memory, agent_nice,
        threads;
    double alpha, sample, compute, decision_latency;
    int overlap, mode, answer, per_rank;
} replay_options_t;

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
    .max_arguments = REPLAY_MOST_TRACES,
    .options = replay_specs,
};

/* Everything of one call. Zeroed: nothing. */
typedef struct laboratory {
    replay_options_t options;
    policy_choice_t policy[CHOICES_MOST];
    decider_choice_t decider[CHOICES_MOST];
    capacity_choice_t capacity[CHOICES_MOST];
    int32_t n_policies, n_deciders, n_capacities;
    train_capacity_t max_tracked; /* all below 0: all */
    replay_settings_t settings;
    clock_change_t *changes;
    double *owner_cost, *latency;
    int64_t n_latency;
    char model[REPLAY_PATH], program[REPLAY_PATH], job[32];

    char **path; /* [n_traces] */
    int32_t n_traces, n_groups;
    scan_t *scan;
    const scan_t **by;   /* [n_traces], groups together */
    scan_group_t *group; /* [n_groups] */
    _Atomic int64_t progress;

    int64_t *rows;    /* [n_traces][n_capacities], traces as in `by` */
    int64_t *tracked; /* likewise */
    int64_t *bound;   /* likewise: rows fetched */
    int32_t n_jobs;
    struct laboratory_job *jobs;
    replay_result_t *results;
    int32_t threads;

    FILE *oracle_lines;
    oracle_case_t *cases;
    char (*case_name)[REPLAY_PATH];
    oracle_report_t *oracle;
} laboratory_t;

/* A replay and where it stands in the lists. */
typedef struct laboratory_job {
    replay_job_t replay;
    int32_t group, policy, decider, capacity; /* decider -1: none */
} laboratory_job_t;

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

/* ---- Traces ----------------------------------------------------------------------------------------------------- */

static rudder_status_t replay_add_path(laboratory_t *lab, const char *path, rudder_error_t *error)
{
    if (lab->n_traces == REPLAY_MOST_TRACES) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "expected at most %d traces, found more", REPLAY_MOST_TRACES);
    }
    lab->path[lab->n_traces] = strdup(path);
    return lab->path[lab->n_traces++] != NULL ? RUDDER_OK : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a path");
}

/* A file, or the traces in a run's folder. */
static rudder_status_t replay_add(laboratory_t *lab, const char *argument, rudder_error_t *error)
{
    char path[REPLAY_PATH];
    struct stat about;
    if (stat(argument, &about) != 0 || !S_ISDIR(about.st_mode)) {
        return replay_add_path(lab, argument, error);
    }
    for (int32_t rank = 0;; rank++) {
        if (snprintf(path, sizeof path, "%s/trace.rank%" PRId32 ".rtr", argument, rank) >= (int)sizeof path) {
            return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected a path shorter than %d bytes", argument,
                               REPLAY_PATH);
        }
        if (access(path, F_OK) == 0) {
            RUDDER_TRY(replay_add_path(lab, path, error));
        } else if (rank == 0) {
            return RUDDER_FAIL(error, RUDDER_E_IO,
                               "%s: expected trace.rank0.rtr in it (\"rudder train --record\" "
                               "writes it), found none",
                               argument);
        } else {
            return RUDDER_OK;
        }
    }
}

static rudder_status_t replay_scan(void *context, int32_t i, const atomic_int *stop, rudder_error_t *error)
{
    laboratory_t *lab = context;
    (void)stop;
    return scan_trace(lab->path[i], &lab->scan[i], &lab->progress, error);
}

static void replay_warn(const scan_t *scan)
{
    if (scan->torn) {
        log_line(LOG_WARN, "%s was cut off; what it has up to there is replayed", scan->path);
    }
    if (scan->info.n_halo == 0) {
        log_line(LOG_WARN,
                 "%s has no halo: capacities in %% are of its %" PRId64 " ids, and a start by degree is empty",
                 scan->path, scan->distinct);
    }
}

static rudder_status_t replay_open_traces(laboratory_t *lab, const char **arguments, int32_t n, rudder_error_t *error)
{
    lab->path = calloc(REPLAY_MOST_TRACES, sizeof *lab->path);
    if (lab->path == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the names of traces");
    }
    for (int32_t i = 0; i < n; i++) {
        RUDDER_TRY(replay_add(lab, arguments[i], error));
    }
    const size_t traces = (size_t)lab->n_traces, cells = traces * (size_t)lab->n_capacities;
    lab->scan = calloc(traces, sizeof *lab->scan);
    lab->by = calloc(traces, sizeof *lab->by);
    lab->group = calloc(traces, sizeof *lab->group);
    lab->rows = calloc(cells, sizeof *lab->rows);
    lab->tracked = calloc(cells, sizeof *lab->tracked);
    lab->bound = calloc(cells, sizeof *lab->bound);
    if (lab->scan == NULL || lab->by == NULL || lab->group == NULL || lab->rows == NULL || lab->tracked == NULL ||
        lab->bound == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId32 " traces", lab->n_traces);
    }
    const jobs_t scans = {.n = lab->n_traces,
                          .threads = lab->threads,
                          .run = replay_scan,
                          .context = lab,
                          .done = &lab->progress,
                          .what = "reading"};
    RUDDER_TRY(jobs_run(&scans, error));
    for (int32_t i = 0; i < lab->n_traces; i++) {
        replay_warn(&lab->scan[i]);
    }
    return scan_groups(lab->scan, lab->n_traces, lab->by, lab->group, &lab->n_groups, error);
}

/* ---- Sizes and jobs --------------------------------------------------------------------------------------------- */

static rudder_status_t replay_rows_of(const laboratory_t *lab, const train_capacity_t *size, const char *what,
                                      const scan_t *scan, int64_t *rows, rudder_error_t *error)
{
    const int64_t whole = scan->info.n_halo > 0 ? scan->info.n_halo : scan->distinct;
    const int64_t row_bytes = replay_row_bytes(&lab->settings, scan);
    if (size->bytes >= 0 && row_bytes == 0) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected --row-bytes to make rows of bytes; %s does not tell",
                           what, scan->path);
    }
    *rows = size->share >= 0  ? (int64_t)(size->share * (double)whole)
            : size->rows >= 0 ? size->rows
                              : size->bytes / (row_bytes > 0 ? row_bytes : 1);
    return RUDDER_OK;
}

/* Slots beyond all ids that there are would stay empty: they are left out. */
static rudder_status_t replay_sizes(laboratory_t *lab, rudder_error_t *error)
{
    for (int32_t i = 0; i < lab->n_traces; i++) {
        for (int32_t c = 0; c < lab->n_capacities; c++) {
            const scan_t *scan = lab->by[i];
            const int64_t cell = (int64_t)c * lab->n_traces + i;
            RUDDER_TRY(replay_rows_of(lab, &lab->capacity[c].size, "--capacity", scan, &lab->rows[cell], error));
            lab->rows[cell] = lab->rows[cell] < scan->known ? lab->rows[cell] : scan->known;
            lab->tracked[cell] = scan->known;
            if (lab->options.max_tracked == NULL && scan->info.max_tracked > 0) {
                lab->tracked[cell] = scan->info.max_tracked < scan->known ? scan->info.max_tracked : scan->known;
            } else if (lab->max_tracked.share >= 0 || lab->max_tracked.rows >= 0 || lab->max_tracked.bytes >= 0) {
                RUDDER_TRY(replay_rows_of(lab, &lab->max_tracked, "--max-tracked", scan, &lab->tracked[cell], error));
            }
        }
    }
    return RUDDER_OK;
}

static replay_latency_t replay_latency(const laboratory_t *lab, const decider_choice_t *decider)
{
    replay_latency_t latency = {.given = decider->latency};
    if (latency.given < 0 && strcmp(decider->name, "llm") == 0) {
        latency.given = lab->options.decision_latency;
        latency.recorded = lab->latency;
        latency.n_recorded = lab->n_latency;
    }
    return latency;
}

/* decider: -1, none. */
static void replay_add_job(laboratory_t *lab, int32_t group, int32_t policy, int32_t decider, int32_t capacity)
{
    const policy_choice_t *p = &lab->policy[policy];
    laboratory_job_t *job = &lab->jobs[lab->n_jobs++];
    const int64_t cell = (int64_t)capacity * lab->n_traces + (lab->group[group].trace - lab->by);
    *job = (laboratory_job_t){.replay = {.settings = &lab->settings,
                                         .group = &lab->group[group],
                                         .policy = p->name,
                                         .start = p->start,
                                         .ahead = p->ahead,
                                         .latency = {.given = -1},
                                         .capacity = lab->rows + cell,
                                         .max_tracked = lab->tracked + cell,
                                         .progress = &lab->progress},
                              .group = group,
                              .policy = policy,
                              .decider = decider,
                              .capacity = capacity};
    if (decider >= 0) {
        job->replay.decider = lab->decider[decider].name;
        job->replay.latency = replay_latency(lab, &lab->decider[decider]);
    }
}

static rudder_status_t replay_list_jobs(laboratory_t *lab, rudder_error_t *error)
{
    const size_t most = (size_t)lab->n_groups * (size_t)(lab->n_policies * lab->n_deciders * lab->n_capacities);
    lab->jobs = calloc(most, sizeof *lab->jobs);
    lab->results = calloc((size_t)lab->n_traces * most, sizeof *lab->results);
    if (lab->jobs == NULL || lab->results == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %zu replays", most);
    }
    for (int32_t g = 0; g < lab->n_groups; g++) {
        for (int32_t c = 0; c < lab->n_capacities; c++) {
            for (int32_t p = 0; p < lab->n_policies; p++) {
                for (int32_t d = 0; d < (lab->policy[p].replaces ? lab->n_deciders : 1); d++) {
                    replay_add_job(lab, g, p, lab->policy[p].replaces ? d : -1, c);
                }
            }
        }
    }
    replay_result_t *result = lab->results;
    for (int32_t i = 0; i < lab->n_jobs; i++) {
        lab->jobs[i].replay.result = result;
        result += lab->jobs[i].replay.group->n;
        RUDDER_TRY(replay_prepare(&lab->jobs[i].replay, error));
    }
    return RUDDER_OK;
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* The bound of a trace with every capacity, over the minibatches that its group replays. */
static rudder_status_t replay_bound(laboratory_t *lab, int32_t trace, const atomic_int *stop, rudder_error_t *error)
{
    const scan_t *scan = lab->by[trace];
    const scan_group_t *group = lab->group;
    int64_t capacity[CHOICES_MOST];
    trace_reader_t *reader = NULL;
    const trace_info_t *info;
    bound_t *bound = NULL;
    while (group->trace + group->n <= lab->by + trace) {
        group++;
    }
    for (int32_t c = 0; c < lab->n_capacities; c++) {
        capacity[c] = lab->rows[(int64_t)c * lab->n_traces + trace];
    }
    rudder_status_t status = trace_reader_open(scan->path, &reader, &info, error);
    status = status == RUDDER_OK ? bound_open(capacity, lab->n_capacities, &bound, error) : status;
    for (int64_t t = 0; t < group->minibatches && status == RUDDER_OK; t++) {
        trace_minibatch_t minibatch;
        int end;
        status = trace_reader_next(reader, &minibatch, &end, error);
        if (status == RUDDER_OK) {
            status = bound_add(bound, minibatch.ids, end ? 0 : minibatch.n, error);
        }
        if (status == RUDDER_OK) {
            atomic_fetch_add_explicit(&lab->progress, minibatch.n, memory_order_relaxed);
            status = atomic_load_explicit(stop, memory_order_relaxed) ? RUDDER_E_INTERRUPTED : RUDDER_OK;
        }
    }
    for (int32_t c = 0; c < lab->n_capacities && status == RUDDER_OK; c++) {
        lab->bound[(int64_t)c * lab->n_traces + trace] = bound_rows(bound, c);
    }
    bound_close(bound);
    trace_reader_close(reader);
    return status;
}

/* Replays first, then the bounds. */
static rudder_status_t replay_work(void *context, int32_t i, const atomic_int *stop, rudder_error_t *error)
{
    laboratory_t *lab = context;
    return i < lab->n_jobs ? replay_run(&lab->jobs[i].replay, stop, error)
                           : replay_bound(lab, i - lab->n_jobs, stop, error);
}

static int replay_descending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* At most: of the jobs that can run at once, the largest. */
static rudder_status_t replay_state_memory(const laboratory_t *lab, int64_t *ids, rudder_error_t *error)
{
    char a[32], b[32];
    const int32_t n = lab->n_jobs + lab->n_traces;
    int64_t *bytes = calloc((size_t)n, sizeof *bytes), sum = 0;
    if (bytes == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId32 " replays", n);
    }
    *ids = 0;
    for (int32_t i = 0; i < lab->n_jobs; i++) {
        bytes[i] = lab->jobs[i].replay.memory;
        for (int32_t r = 0; r < lab->jobs[i].replay.group->n; r++) {
            *ids += lab->jobs[i].replay.group->trace[r]->ids;
        }
    }
    for (int32_t i = 0; i < lab->n_traces; i++) {
        bytes[lab->n_jobs + i] = bound_memory_for(lab->by[i]->distinct, lab->by[i]->minibatches, lab->n_capacities) +
                                 lab->by[i]->reader_bytes;
        *ids += lab->by[i]->ids;
    }
    qsort(bytes, (size_t)n, sizeof *bytes, replay_descending);
    for (int32_t i = 0; i < n && i < lab->threads; i++) {
        sum += bytes[i];
    }
    free(bytes);
    log_line(LOG_INFO, "%" PRId32 " replay%s and the bound of %s ids; memory of %" PRId32 " at once: at most %s",
             lab->n_jobs, lab->n_jobs == 1 ? "" : "s", text_of_count(*ids, a, sizeof a),
             lab->threads < n ? lab->threads : n, text_of_bytes(sum, b, sizeof b));
    return RUDDER_OK;
}

static rudder_status_t replay_run_all(laboratory_t *lab, rudder_error_t *error)
{
    int64_t ids = 0;
    RUDDER_TRY(replay_state_memory(lab, &ids, error));
    atomic_store(&lab->progress, 0);
    const jobs_t jobs = {.n = lab->n_jobs + lab->n_traces,
                         .threads = lab->threads,
                         .run = replay_work,
                         .context = lab,
                         .done = &lab->progress,
                         .total = ids > 0 ? ids : 1,
                         .what = "replaying"};
    return jobs_run(&jobs, error);
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

static const char *replay_trace_name(const scan_group_t *group, char *text, size_t size)
{
    snprintf(text, size, "%s", group->trace[0]->path);
    char *slash = strrchr(text, '/');
    if (group->n > 1 && slash != NULL) {
        *slash = '\0';
    } else if (group->n > 1) {
        snprintf(text, size, ".");
    }
    return text;
}

/* Adds a rank's figures to a row; times are means over the ranks, of an epoch. */
static void replay_row_add(const laboratory_t *lab, const laboratory_job_t *job, int32_t r, replay_row_t *row)
{
    const scan_group_t *group = job->replay.group;
    const scan_t *scan = group->trace[r];
    const replay_result_t *result = &job->replay.result[r];
    const int64_t steps = scan->info.steps_per_epoch, cell = (group->trace - lab->by) + r;
    const double epochs = steps > 0 && steps < group->minibatches ? (double)group->minibatches / (double)steps : 1;
    const double share = row->rank < 0 ? 1.0 / group->n : 1;
    row->capacity_rows += job->replay.capacity[r];
    row->minibatches = group->minibatches;
    row->remote += result->remote;
    row->hit += result->hit;
    row->fetched += result->fetched;
    row->fill += result->fill;
    row->bytes = replay_row_bytes(&lab->settings, scan) > 0 ? row->bytes + result->bytes : -1;
    row->bound += lab->bound[(int64_t)job->capacity * lab->n_traces + cell];
    row->asked += result->asked;
    row->replaced += result->replaced;
    row->late += result->late;
    if (replay_has_clock(&lab->settings, group)) {
        row->epoch_seconds += share * result->seconds / epochs;
        row->fetch_seconds += share * result->fetch_seconds / epochs;
        row->wait_seconds += share * result->wait_seconds / epochs;
    } else {
        row->epoch_seconds = row->fetch_seconds = row->wait_seconds = NAN;
    }
    const double planned = group->minibatches > 0 ? (double)group->minibatches : 1;
    row->window_mean +=
        policy_looks_ahead(job->replay.policy) ? share * (double)result->window_sum / planned : (double)NAN;
}

/* rank: -1, all. */
static replay_row_t replay_row(const laboratory_t *lab, int32_t number, int32_t rank, const char *trace)
{
    const laboratory_job_t *job = &lab->jobs[number];
    const policy_choice_t *policy = &lab->policy[job->policy];
    const scan_group_t *group = job->replay.group;
    replay_row_t row = {.group = job->group,
                        .capacity = job->capacity,
                        .number = number,
                        .trace = rank < 0 ? trace : group->trace[rank]->path,
                        .policy = policy->label,
                        .start = strcmp(policy->name, "none") == 0 ? NULL : policy->start,
                        .decider = job->decider >= 0 ? lab->decider[job->decider].label : NULL,
                        .capacity_text = lab->capacity[job->capacity].label,
                        .rank = rank < 0 ? -1 : group->trace[rank]->info.rank,
                        .memory = job->replay.memory};
    for (int32_t r = rank < 0 ? 0 : rank; r < (rank < 0 ? group->n : rank + 1); r++) {
        replay_row_add(lab, job, r, &row);
    }
    return row;
}

/* The bound beside the first replay with that trace and capacity. */
static replay_row_t replay_bound_row(const replay_row_t *of)
{
    replay_row_t row = *of;
    row.number = -1;
    row.policy = "bound";
    row.start = row.decider = NULL;
    row.fetched = row.bound;
    row.hit = row.remote - row.bound;
    row.fill = 0;
    row.bytes = of->bytes < 0 || of->fetched == 0 ? of->bytes : of->bytes / of->fetched * of->bound;
    row.asked = row.replaced = row.late = row.memory = -1;
    row.epoch_seconds = row.fetch_seconds = row.wait_seconds = row.window_mean = NAN;
    return row;
}

/* *rows: to be freed. names[n_groups]: what traces are called. */
static rudder_status_t replay_make_rows(const laboratory_t *lab, char (*names)[REPLAY_PATH], replay_row_t **rows,
                                        int64_t *n, rudder_error_t *error)
{
    const int64_t most = 2 * (int64_t)lab->n_jobs * (1 + lab->n_traces);
    replay_row_t *row = calloc((size_t)most, sizeof *row);
    if (row == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId64 " rows", most);
    }
    *n = 0;
    for (int32_t i = 0; i < lab->n_jobs; i++) {
        const laboratory_job_t *job = &lab->jobs[i];
        const int first = i == 0 || job->capacity != job[-1].capacity || job->group != job[-1].group;
        const int32_t ranks = lab->options.per_rank && job->replay.group->n > 1 ? job->replay.group->n : 0;
        const char *name = replay_trace_name(job->replay.group, names[job->group], REPLAY_PATH);
        for (int bound = first; bound >= 0; bound--) {
            for (int32_t r = -1; r < ranks; r++) {
                row[*n] = replay_row(lab, i, r, name);
                if (bound) {
                    row[*n] = replay_bound_row(&row[*n]);
                }
                ++*n;
            }
        }
    }
    *rows = row;
    return replay_rows_sort(row, *n, error);
}

static void replay_print_group(const laboratory_t *lab, int32_t g, const char *name)
{
    char a[32], b[32], c[32], d[32];
    const scan_group_t *group = &lab->group[g];
    int64_t remote = 0, halo = 0, distinct = 0;
    for (int32_t r = 0; r < group->n; r++) {
        remote += group->trace[r]->remote;
        halo += group->trace[r]->info.n_halo;
        distinct += group->trace[r]->distinct;
    }
    printf("%s%s", g > 0 ? "\n" : "", name);
    if (group->n > 1) {
        printf(", %" PRId32 " ranks", group->n);
    }
    printf(": %s minibatches, %s remote rows, %s ids, halo %s\n", text_of_count(group->minibatches, a, sizeof a),
           text_of_count(remote, b, sizeof b), text_of_count(distinct, c, sizeof c), text_of_count(halo, d, sizeof d));
}

static void replay_json(const laboratory_t *lab, int argc, char **argv, const replay_row_t *rows, int64_t n,
                        json_t *json)
{
    json_object(json, NULL);
    json_string(json, "format", "rudder-replay");
    json_int(json, "version", 1);
    json_string(json, "rudder", rudder_version());
    json_array(json, "command");
    json_string(json, NULL, "rudder");
    for (int i = 0; i < argc; i++) {
        json_string(json, NULL, argv[i]);
    }
    json_end_array(json);
    json_object(json, "settings");
    options_echo(&replay_command, &lab->options, json);
    json_end_object(json);
    json_array(json, "traces");
    for (int32_t i = 0; i < lab->n_traces; i++) {
        const scan_t *scan = lab->by[i];
        json_object(json, NULL);
        json_string(json, "path", scan->path);
        json_string(json, "kind", scan->info.kind);
        json_string(json, "graph", scan->info.graph);
        json_string(json, "run", scan->info.run);
        json_int(json, "rank", scan->info.rank);
        json_int(json, "ranks", scan->info.ranks);
        json_int(json, "minibatches", scan->minibatches);
        json_int(json, "ids", scan->ids);
        json_int(json, "remote_rows", scan->remote);
        json_int(json, "distinct", scan->distinct);
        json_int(json, "halo", scan->info.n_halo);
        json_int(json, "row_bytes", replay_row_bytes(&lab->settings, scan));
        json_end_object(json);
    }
    json_end_array(json);
    replay_rows_json(json, rows, n);
    if (lab->oracle != NULL) {
        oracle_report_json(lab->oracle, json);
    }
    json_end_object(json);
}

static rudder_status_t replay_write_json(const laboratory_t *lab, int argc, char **argv, const replay_row_t *rows,
                                         int64_t n, rudder_error_t *error)
{
    const char *path = lab->options.json;
    json_t json = {.pretty = 1};
    replay_json(lab, argc, argv, rows, n, &json);
    FILE *file = json.failed ? NULL : fopen(path, "w");
    int failed = file == NULL || fputs(json.text, file) < 0 || putc('\n', file) == EOF;
    failed |= file != NULL && fclose(file) != 0;
    const int no_memory = json.failed;
    json_free(&json);
    if (no_memory) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory", path);
    }
    return failed ? RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", path, strerror(errno)) : RUDDER_OK;
}

static rudder_status_t replay_tell(const laboratory_t *lab, int argc, char **argv, rudder_error_t *error)
{
    replay_row_t *rows = NULL;
    int64_t n = 0;
    char(*names)[REPLAY_PATH] = calloc((size_t)lab->n_groups, sizeof *names);
    rudder_status_t status = names != NULL ? replay_make_rows(lab, names, &rows, &n, error)
                                           : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for names");
    for (int64_t begin = 0, end; begin < n && status == RUDDER_OK; begin = end) {
        for (end = begin; end < n && rows[end].group == rows[begin].group;) {
            end++;
        }
        replay_print_group(lab, rows[begin].group, rows[begin].trace);
        status = replay_rows_print(rows + begin, end - begin, stdout, error);
    }
    if (status == RUDDER_OK && lab->oracle != NULL) {
        status = oracle_report_print(lab->oracle, stdout, error);
    }
    if (status == RUDDER_OK && lab->options.json != NULL) {
        status = replay_write_json(lab, argc, argv, rows, n, error);
    }
    if (status == RUDDER_OK && lab->options.csv != NULL) {
        status = replay_rows_csv(lab->options.csv, rows, n, error);
    }
    free(rows);
    free(names);
    return status;
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
            lab->cases[n++] =
                (oracle_case_t){.job = &job->replay,
                                .trace = replay_trace_name(job->replay.group, lab->case_name[job->group], REPLAY_PATH),
                                .policy = lab->policy[job->policy].label,
                                .start = lab->policy[job->policy].start,
                                .capacity = lab->capacity[job->capacity].label};
        }
    }
    return oracle_report_make(lab->cases, n, names, lab->n_deciders, lab->options.horizon, lab->threads,
                              lab->oracle_lines, &lab->oracle, error);
}

static void replay_close(laboratory_t *lab)
{
    oracle_report_close(lab->oracle);
    if (lab->oracle_lines != NULL) {
        fclose(lab->oracle_lines);
    }
    free(lab->cases);
    free(lab->case_name);
    for (int32_t i = 0; i < lab->n_traces; i++) {
        free(lab->path[i]);
        if (lab->scan != NULL) {
            scan_free(&lab->scan[i]);
        }
    }
    free(lab->path);
    free(lab->changes);
    free(lab->owner_cost);
    free(lab->latency);
    free(lab->scan);
    free(lab->by);
    free(lab->group);
    free(lab->rows);
    free(lab->tracked);
    free(lab->bound);
    free(lab->jobs);
    free(lab->results);
    free(lab);
}

int cli_replay(int argc, char **argv)
{
    rudder_error_t error = {0};
    const char **arguments = calloc(REPLAY_MOST_TRACES, sizeof *arguments);
    laboratory_t *lab = calloc(1, sizeof *lab);
    int32_t n = 0;
    int exit_code = 1;
    if (arguments == NULL || lab == NULL) {
        log_line(LOG_ERROR, "no memory");
        goto end;
    }
    lab->options.sample = lab->options.compute = lab->options.decision_latency = -1;
    if (!cli_options(&replay_command, argc, argv, &lab->options, arguments, &n, &exit_code)) {
        goto end;
    }
    log_setup(LOG_INFO, -1, 1);
    rudder_status_t status = replay_read_options(lab, &error);
    status = status == RUDDER_OK ? replay_open_oracle(lab, &error) : status;
    status = status == RUDDER_OK ? replay_open_traces(lab, arguments, n, &error) : status;
    status = status == RUDDER_OK ? replay_sizes(lab, &error) : status;
    status = status == RUDDER_OK ? replay_list_jobs(lab, &error) : status;
    status = status == RUDDER_OK ? replay_run_all(lab, &error) : status;
    status = status == RUDDER_OK ? replay_ask_oracle(lab, &error) : status;
    status = status == RUDDER_OK ? replay_tell(lab, argc, argv, &error) : status;
    exit_code = status == RUDDER_OK ? 0 : cli_fail(&error);
end:
    free(arguments);
    if (lab != NULL) {
        replay_close(lab);
    }
    return exit_code;
}
