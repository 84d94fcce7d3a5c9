/* Opening a rank: its part, the buffer, the model, the loader, the run directory. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "nn/kernels.h"
#include "policy/policy.h"
#include "train/state.h"

/* ---- callbacks of the library, in the thread that calls it ---- */

static void train_on_decision(void *context, const rudder_decision_t *decision)
{
    train_t *train = context;
    train_rank_t *mine = &train->mine;
    run_log_decision(&train->log, decision);
    if (decision->answered_minibatch >= 0) {
        mine->latency_ms[mine->answers++ % TRAIN_LATENCIES] = (float)decision->answer.latency_ms;
    }
    mine->predictions += decision->prediction_hits_true >= 0;
    mine->predictions_hits_true += decision->prediction_hits_true == 1;
    mine->predictions_rows_true += decision->prediction_rows_true == 1;
}

static void train_on_message(void *context, const char *text)
{
    train_t *train = context;
    train_rank_t *mine = &train->mine;
    if (mine->n_messages < TRAIN_MESSAGES) {
        snprintf(mine->message[mine->n_messages++], sizeof mine->message[0], "%s", text);
    }
    if (train->speaks) {
        log_line(LOG_WARN, "%s", text);
    }
}

static rudder_status_t train_open_parts(train_t *train, rudder_error_t *error)
{
    const train_config_t *config = train->config;
    const int32_t size = train->compute.size;
    RUDDER_TRY(parts_open(config->parts, &train->parts, error));
    if (train->parts.n_parts != size) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected as many ranks as parts, found %d rank%s for %d part%s",
                           config->parts, (int)size, size == 1 ? "" : "s", (int)train->parts.n_parts,
                           train->parts.n_parts == 1 ? "" : "s");
    }
    if (config->ranks != 0 && config->ranks != size) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--ranks %d: found %d ranks started by the launcher",
                           (int)config->ranks, (int)size);
    }
    return part_open(config->parts, &train->parts, train->compute.rank, &train->part, error);
}

/* Threads that compute: what was asked for, or this host's cores shared among its ranks. */
static void train_threads(train_t *train)
{
    MPI_Comm host;
    int ranks = 1, rank = 0;
    cpu_set_t cores;
    MPI_Comm_split_type(train->compute.mpi, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &ranks);
    MPI_Comm_rank(host, &rank);
    MPI_Comm_free(&host);
    train->speaks = rank == 0;
    train->mine.threads = train->config->threads;
    if (train->mine.threads == 0) {
        const int n = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
        train->mine.threads = n / ranks > 1 ? n / ranks : 1;
    }
}

/* What ranks of a job have in common so that they find the same agent; nobody else's. */
static rudder_status_t train_job(train_t *train, rudder_error_t *error)
{
    uint64_t random = 0;
    if (train->compute.rank == 0 && getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        random = (uint64_t)getpid() << 32 ^ (uint64_t)time(NULL);
    }
    RUDDER_TRY(comm_broadcast(&train->compute, &random, sizeof random, error));
    snprintf(train->job, sizeof train->job, "%016llx", (unsigned long long)random);
    const ssize_t n = readlink("/proc/self/exe", train->program, sizeof train->program - 1);
    train->program[n > 0 ? n : 0] = '\0';
    return RUDDER_OK;
}

static int64_t train_capacity_rows(const train_t *train)
{
    const train_capacity_t *capacity = &train->config->capacity;
    const int64_t remote = train->parts.n_nodes - train->part.n_owned;
    int64_t rows = capacity->rows;
    if (train->config->policy != NULL && strcmp(train->config->policy, "none") == 0) {
        return 0;
    }
    if (capacity->share >= 0) {
        rows = (int64_t)(capacity->share * (double)train->part.n_halo);
    } else if (capacity->bytes >= 0) {
        rows = capacity->bytes / train->result.row_bytes;
    }
    return rows < remote ? rows : remote;
}

int train_looks_ahead(const train_config_t *config)
{
    return config->policy != NULL && policy_looks_ahead(config->policy);
}

/*
 * Ids that the policy remembers ahead, for minibatches of at most `ids`: what usually lets it know when every row that it
 * keeps is used next, no more than what is sampled ahead can hold (an id and a node for each, and an edge or two that
 * lead there), and always two minibatches.
 */
static int64_t train_most_announced(const train_t *train, int64_t ids)
{
    enum { BYTES_OF_AN_ID = 24 };
    const train_config_t *config = train->config;
    const int64_t run = config->epochs * train->result.steps_per_epoch;
    int64_t most = 16 * train->mine.capacity_rows + 2 * ids;
    most = (config->window + 1) * ids > most ? (config->window + 1) * ids : most;
    most = most > config->window_memory / BYTES_OF_AN_ID ? config->window_memory / BYTES_OF_AN_ID : most;
    most = most > run * ids ? run * ids : most;
    return most > 2 * ids ? most : 2 * ids;
}

enum { TRAIN_TRACKED = 1 << 20 }; /* remote nodes that the library remembers in any case */

/* Seeds of a step, all ranks together. */
static int64_t train_step_seeds(const train_t *train)
{
    return (int64_t)train->compute.size * train->config->batch;
}

/* The library's configuration. *type is what it points to. */
/* Sampling reaches past the halo; twice the halo covers most of what is used more than once. */
static int64_t train_max_tracked(const train_t *train)
{
    const int64_t remote = train->parts.n_nodes - train->part.n_owned, halo = 2 * train->part.n_halo;
    const int64_t tracked = halo > TRAIN_TRACKED ? halo : TRAIN_TRACKED;
    return tracked < remote ? tracked : remote;
}

static void train_library(train_t *train, rudder_type_config_t *type, rudder_config_t *library)
{
    const train_config_t *config = train->config;
    const parts_t *parts = &train->parts;
    const part_t *part = &train->part;
    const int64_t remote = parts->n_nodes - part->n_owned;
    const int64_t step_seeds = train_step_seeds(train);
    const int64_t seeds = step_seeds < train->mine.train ? step_seeds : train->mine.train;
    const int64_t inputs = loader_most_inputs(parts, seeds, config->n_layers, config->fanout);
    const int64_t ids = inputs < remote ? inputs : remote;
    *type = (rudder_type_config_t){
        .row_bytes = (size_t)train->result.row_bytes,
        .capacity_rows = train->mine.capacity_rows,
        .max_ids = ids > 0 ? ids : 1,
        .max_tracked = train_max_tracked(train),
        .owned_begin = part->begin,
        .owned_end = part->end,
        .halo = part->halo,
        .halo_degree = part->halo_degree,
        .n_halo = part->n_halo,
        .start_weight = train->start_weight,
        .owner_offset = parts->offset,
        .max_announced = train_looks_ahead(config) ? train_most_announced(train, ids > 0 ? ids : 1) : 0,
    };
    rudder_config_init(library, sizeof *library);
    library->n_types = 1;
    library->types = type;
    library->policy = config->policy;
    library->start = start_has_weights(config->start) ? "weights" : config->start;
    library->decider = config->decider;
    library->mode = config->mode;
    library->period = config->period;
    library->alpha = config->alpha;
    library->minibatches = config->epochs * train->result.steps_per_epoch;
    library->seed = config->seed;
    library->deadline_ms = config->deadline_ms;
    library->late_after = config->late_after;
    if (config->fallback != NULL) {
        library->fallback = config->fallback;
    }
    library->agent = (rudder_agent_config_t){.program = train->program,
                                             .model = config->model,
                                             .job = train->job,
                                             .answer_mode = config->answer,
                                             .memory_bytes = config->agent_memory,
                                             .nice = config->agent_nice};
    library->facts = (rudder_facts_t){.nodes = parts->n_nodes,
                                      .edges = parts->n_edges,
                                      .owned = part->n_owned,
                                      .halo = part->n_halo,
                                      .ranks = train->compute.size,
                                      .rank = train->compute.rank};
    snprintf(library->facts.graph, sizeof library->facts.graph, "%s", parts->name);
    snprintf(library->facts.model, sizeof library->facts.model, "GraphSAGE, %d layers", (int)config->n_layers);
    library->n_owners = train->compute.size;
    library->owner_cost = config->owner_cost;
    library->owner_row_cost = config->owner_row_cost;
    library->on_decision = train_on_decision;
    library->on_message = train_on_message;
    library->callback_context = train;
}

/* The buffer: memory is known before it is allocated. */
static rudder_status_t train_open_library(train_t *train, rudder_error_t *error)
{
    rudder_type_config_t type;
    rudder_config_t library;
    if (train->config->owner_cost == RUDDER_OWNER_COST_GIVEN &&
        train->config->n_owner_row_cost != train->compute.size) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--owner-cost: expected a number for each of %d ranks, found %lld",
                           (int)train->compute.size, (long long)train->config->n_owner_row_cost);
    }
    train->mine.capacity_rows = train_capacity_rows(train);
    train->mine.capacity_bytes = train->mine.capacity_rows * train->result.row_bytes;
    train_library(train, &type, &library);
    RUDDER_TRY(rudder_memory_needed(&library, &train->mine.library_bytes, error));
    const rudder_status_t status = rudder_open(&library, &train->handle, error);
    free(train->start_weight);
    train->start_weight = NULL;
    return status;
}

static rudder_status_t train_open_model(train_t *train, rudder_error_t *error)
{
    const train_config_t *config = train->config;
    const sage_config_t sage = {.n_layers = config->n_layers,
                                .n_in = train->parts.n_feat,
                                .n_hidden = config->hidden,
                                .n_out = train->parts.n_classes,
                                .dropout = (float)config->dropout,
                                .seed = config->seed};
    int64_t n;
    RUDDER_TRY(team_open(train->mine.threads, &train->team, error));
    RUDDER_TRY(sage_open(&sage, train->team, &train->sage, error));
    sage_parameters(train->sage, &n);
    RUDDER_TRY(adam_open(n, (float)config->rate, &train->adam, error));
    train->scratch = malloc((size_t)comm_sum_scratch(&train->compute, n) * sizeof *train->scratch);
    if (train->scratch == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to sum %lld gradients", (long long)n);
    }
    const evaluate_config_t evaluate = {.parts = &train->parts,
                                        .part = &train->part,
                                        .comm = &train->compute,
                                        .exchange = train->evaluate_exchange,
                                        .sage = train->sage,
                                        .team = train->team,
                                        .n_layers = config->n_layers,
                                        .fanout = config->fanout};
    return config->eval == TRAIN_EVAL_NONE ? RUDDER_OK : evaluate_open(&evaluate, &train->evaluate, error);
}

static rudder_status_t train_open_sampler(train_t *train, rudder_error_t *error)
{
    sampler_config_t sampler = {.seed = train->config->seed, .n_layers = train->config->n_layers};
    memcpy(sampler.fanout, train->config->fanout, sizeof sampler.fanout);
    return sampler_open(&sampler, &train->parts, &train->part, train->exchange, &train->sampler, error);
}

/* What is sampled, in which order, and how far ahead. */
static ahead_config_t train_ahead(train_t *train)
{
    const train_config_t *config = train->config;
    const parts_t *parts = &train->parts;
    return (ahead_config_t){.parts = parts,
                            .part = &train->part,
                            .comm = &train->loading,
                            .sampler = train->sampler,
                            .handle = train->handle,
                            .seeds = {.order = config->order,
                                      .seed = config->seed,
                                      .n = parts->n_train,
                                      .epochs = config->epochs,
                                      .step = train_step_seeds(train),
                                      .label = parts->train_label,
                                      .rank = parts->train_rank},
                            .stride = 1,
                            .minibatches = config->epochs * train->result.steps_per_epoch,
                            .looks = train_looks_ahead(config),
                            .memory = config->window_memory};
}

static rudder_status_t train_open_loader(train_t *train, rudder_error_t *error)
{
    const loader_config_t loader = {.ahead = train_ahead(train),
                                    .exchange = train->exchange,
                                    .record = &train->record,
                                    .measure = train->config->owner_cost == RUDDER_OWNER_COST_MEASURED,
                                    .depth = train->config->depth,
                                    .threaded = train->threads_multiple};
    return loader_open(&loader, &train->loader, error);
}

static void train_facts(train_t *train)
{
    const parts_t *parts = &train->parts;
    train_result_t *result = &train->result;
    train_rank_t *mine = &train->mine;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;
    const time_t now = time(NULL);
    struct tm utc;
    snprintf(result->graph, sizeof result->graph, "%s", parts->name);
    snprintf(result->method, sizeof result->method, "%s", parts->method);
    MPI_Get_library_version(version, &n);
    version[strcspn(version, ",\n")] = '\0';
    for (char *c = version; *c != '\0'; c++) {
        *c = *c == '\t' ? ' ' : *c;
    }
    snprintf(result->mpi, sizeof result->mpi, "%.*s", (int)sizeof result->mpi - 1, version);
    strftime(result->start_time, sizeof result->start_time, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    result->ranks = train->compute.size;
    result->threads_multiple = train->threads_multiple;
    result->nodes = parts->n_nodes;
    result->edges = parts->n_edges;
    result->row_bytes = parts->n_feat * (int64_t)sizeof(float);
    const int64_t step_seeds = train_step_seeds(train);
    result->steps_per_epoch = (parts->n_train + step_seeds - 1) / step_seeds;
    result->epochs = train->config->epochs;
    mine->rank = train->compute.rank;
    gethostname(mine->host, sizeof mine->host - 1);
    mine->owned = train->part.n_owned;
    mine->halo = train->part.n_halo;
    for (int64_t i = 0; i < parts->n_train; i++) {
        mine->train += parts->train_id[i] >= train->part.begin && parts->train_id[i] < train->part.end;
    }
}

/* Opens what computes and communicates. */
static rudder_status_t train_open_basis(train_t *train, rudder_error_t *error)
{
    const train_config_t *config = train->config;
    train_facts(train);
    train->result.epoch = calloc((size_t)config->epochs, sizeof *train->result.epoch);
    const size_t size = (size_t)train->compute.size;
    train->result.detail = calloc(size, sizeof *train->result.detail);
    if (train->compute.rank == 0) {
        train->result.traffic = calloc(2 * size * size, sizeof *train->result.traffic);
    }
    if (train->result.epoch == NULL || train->result.detail == NULL ||
        (train->compute.rank == 0 && train->result.traffic == NULL)) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the summary of %d epochs", (int)config->epochs);
    }
    train->links = config->links;
    if (links_last_owner(&train->links) >= train->loading.size) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--link: expected owners from 0 to %d, found %d",
                           train->loading.size - 1, links_last_owner(&train->links));
    }
    links_t *links = links_delay(&train->links) ? &train->links : NULL;
    RUDDER_TRY(
        exchange_open(&train->loading, train->parts.offset, config->max_message, links, &train->exchange, error));
    RUDDER_TRY(exchange_open(&train->evaluating, train->parts.offset, config->max_message, NULL,
                             &train->evaluate_exchange, error));
    RUDDER_TRY(train_open_model(train, error));
    return train_open_sampler(train, error);
}

/* The weights of a start that the library does not know. Collective. */
static rudder_status_t train_open_start(train_t *train, int *agreed, rudder_error_t *error)
{
    const start_config_t start = {.start = train->config->start,
                                  .ahead = train_ahead(train),
                                  .exchange = train->exchange,
                                  .n_layers = train->config->n_layers,
                                  .fanout = train->config->fanout};
    if (!start_has_weights(start.start)) {
        return RUDDER_OK;
    }
    train->start_weight = malloc((size_t)(train->part.n_halo + 1) * sizeof *train->start_weight);
    RUDDER_TRY(comm_agree(&train->compute,
                          train->start_weight != NULL
                              ? RUDDER_OK
                              : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the weights of %lld nodes",
                                            (long long)train->part.n_halo),
                          error));
    return start_weights(&start, train->start_weight, agreed, error);
}

/* Opens the buffer and what feeds it. */
static rudder_status_t train_open_buffer(train_t *train, rudder_error_t *error)
{
    RUDDER_TRY(train_open_library(train, error));
    return train_open_loader(train, error);
}

static int64_t train_loader_estimate(const train_t *train)
{
    const train_config_t *config = train->config;
    const int64_t step_seeds = train_step_seeds(train);
    const int64_t seeds = step_seeds < train->mine.train ? step_seeds : train->mine.train;
    const int64_t inputs = loader_most_inputs(&train->parts, seeds, config->n_layers, config->fanout);
    const int32_t slots = train->threads_multiple ? config->depth + 1 : 1;
    return loader_most_memory(slots, inputs, train->mine.capacity_rows, train->result.row_bytes);
}

static rudder_status_t train_write_config(const train_t *train, rudder_error_t *error)
{
    json_t json = {.pretty = 1};
    struct utsname host;
    cpu_set_t cores;
    uname(&host);
    json_object(&json, NULL);
    json_object(&json, "options");
    train->config->echo(train->config->context, &json);
    json_end_object(&json);
    json_object(&json, "versions");
    json_string(&json, "rudder", rudder_version());
    json_string(&json, "mpi", train->result.mpi);
    json_string(&json, "blas", kernel_blas_name());
    json_string(&json, "compiler", __VERSION__);
    json_end_object(&json);
    json_object(&json, "host");
    json_string(&json, "name", host.nodename);
    json_string(&json, "system", host.sysname);
    json_string(&json, "release", host.release);
    json_string(&json, "machine", host.machine);
    json_int(&json, "cores", sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0);
    json_end_object(&json);
    json_object(&json, "effective");
    json_string(&json, "job", train->job);
    json_int(&json, "ranks", train->compute.size);
    json_int(&json, "threads", train->mine.threads);
    json_bool(&json, "loader_thread", train->threads_multiple);
    json_int(&json, "steps_per_epoch", train->result.steps_per_epoch);
    json_int(&json, "capacity_rows", train->mine.capacity_rows);
    json_int(&json, "library_bytes", train->mine.library_bytes);
    json_int(&json, "loader_bytes_at_most", train_loader_estimate(train));
    json_end_object(&json);
    json_end_object(&json);
    const rudder_status_t status = json.failed ? RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for config.json")
                                               : run_write(train->result.run_dir, "config.json", json.text, error);
    json_free(&json);
    return status;
}

/* The trace says what a replay needs to be like this run. */
static rudder_status_t train_open_record(train_t *train, rudder_error_t *error)
{
    static const char *const orders[] = {"shuffled", "community", "class", "drift"};
    const train_config_t *config = train->config;
    const part_t *part = &train->part;
    trace_info_t info = {.rank = train->compute.rank,
                         .ranks = train->compute.size,
                         .seed = config->seed,
                         .batch = config->batch,
                         .steps_per_epoch = train->result.steps_per_epoch,
                         .epochs = config->epochs,
                         .n_nodes = train->parts.n_nodes,
                         .row_bytes = train->result.row_bytes,
                         .capacity_rows = train->mine.capacity_rows,
                         .max_tracked = train_max_tracked(train),
                         .depth = train->threads_multiple ? config->depth : 0,
                         .n_layers = config->n_layers,
                         .links = config->links,
                         .n_halo = part->n_halo,
                         .halo = part->halo,
                         .halo_degree = part->halo_degree,
                         .owner_offset = train->parts.offset};
    memcpy(info.fanout, config->fanout, sizeof info.fanout);
    snprintf(info.graph, sizeof info.graph, "%s", train->parts.name);
    snprintf(info.partition, sizeof info.partition, "%s", train->parts.method);
    snprintf(info.order, sizeof info.order, "%s", orders[config->order]);
    snprintf(info.policy, sizeof info.policy, "%s", config->policy != NULL ? config->policy : "");
    snprintf(info.run, sizeof info.run, "%s", train->job);
    return record_open(train->result.run_dir, &info, &train->record, error);
}

/* The run directory, made by rank 0 when all else is well. Collective. */
static rudder_status_t train_open_run(train_t *train, rudder_error_t *error)
{
    const train_config_t *config = train->config;
    const char *name = config->name != NULL ? config->name : train->parts.name;
    char path[sizeof train->result.run_dir] = "";
    rudder_status_t status = RUDDER_OK;
    if (train->compute.rank == 0) {
        status = run_directory(config->run_dir, name, path, sizeof path, error);
    }
    RUDDER_TRY(comm_agree(&train->compute, status, error));
    RUDDER_TRY(comm_broadcast(&train->compute, path, sizeof path, error));
    pthread_mutex_lock(&train->lock);
    memcpy(train->result.run_dir, path, sizeof path);
    pthread_mutex_unlock(&train->lock);
    status = run_log_open(path, train->compute.rank, &train->log, error);
    if (status == RUDDER_OK && train->compute.rank == 0) {
        status = train_write_config(train, error);
    }
    if (status == RUDDER_OK && config->record) {
        status = train_open_record(train, error);
    }
    return comm_agree(&train->compute, status, error);
}

rudder_status_t train_open(train_t *train, int *agreed, rudder_error_t *error)
{
    *agreed = 1;
    train->compute.phase = "loading";
    RUDDER_TRY(comm_agree(&train->compute, train_open_parts(train, error), error));
    train_threads(train);
    RUDDER_TRY(train_job(train, error));
    RUDDER_TRY(comm_agree(&train->compute, train_open_basis(train, error), error));
    RUDDER_TRY(train_open_start(train, agreed, error));
    RUDDER_TRY(comm_agree(&train->compute, train_open_buffer(train, error), error));
    return train_open_run(train, error);
}

void train_tell(const train_t *train)
{
    const train_config_t *config = train->config;
    const train_result_t *result = &train->result;
    char nodes[32], edges[32], rows[32], buffer[32], library[32], loader[32], evaluate[32];
    const evaluate_config_t sizes = {.parts = &train->parts,
                                     .part = &train->part,
                                     .sage = train->sage,
                                     .n_layers = config->n_layers,
                                     .fanout = config->fanout};
    log_line(LOG_INFO, "%s: %s nodes, %s edges, %d features, %d classes, %lld training nodes; %d parts (%s)",
             result->graph, text_of_count(result->nodes, nodes, sizeof nodes),
             text_of_count(result->edges, edges, sizeof edges), (int)train->parts.n_feat, (int)train->parts.n_classes,
             (long long)train->parts.n_train, (int)train->parts.n_parts, result->method);
    log_line(LOG_INFO, "%d rank%s x %d thread%s%s; %s, %s; %s", (int)result->ranks, result->ranks == 1 ? "" : "s",
             (int)train->mine.threads, train->mine.threads == 1 ? "" : "s",
             train->threads_multiple ? " and a loader" : "", result->mpi,
             train->threads_multiple ? "MPI_THREAD_MULTIPLE" : "one thread communicates: loading does not overlap",
             kernel_blas_name());
    log_line(LOG_INFO,
             "rank 0: buffer %s rows (%s) for a halo of %lld nodes; memory: library %s, loader at most %s, "
             "evaluation %s",
             text_of_count(train->mine.capacity_rows, rows, sizeof rows),
             text_of_bytes(train->mine.capacity_bytes, buffer, sizeof buffer), (long long)train->mine.halo,
             text_of_bytes(train->mine.library_bytes, library, sizeof library),
             text_of_bytes(train_loader_estimate(train), loader, sizeof loader),
             text_of_bytes(config->eval == TRAIN_EVAL_NONE ? 0 : evaluate_memory(&sizes), evaluate, sizeof evaluate));
    if (train_looks_ahead(config)) {
        char window[32] = "as many minibatches as help";
        if (config->window > 0) {
            snprintf(window, sizeof window, "%lld minibatches", (long long)config->window);
        }
        log_line(LOG_INFO, "samples ahead: %s, in at most %s of memory a rank", window,
                 text_of_bytes(config->window_memory, loader, sizeof loader));
    }
    if (links_delay(&train->links)) {
        const links_t *links = &train->links;
        log_line(LOG_INFO, "emulated link: %.6g Mbit/s, %.6g us", links->common.bytes_per_second * 8e-6,
                 links->common.latency * 1e6);
        for (int32_t i = 0; i < links->n_own; i++) {
            log_line(LOG_INFO, "emulated link of rank %d: %.6g Mbit/s, %.6g us", links->own[i].owner,
                     links->own[i].link.bytes_per_second * 8e-6, links->own[i].link.latency * 1e6);
        }
    }
    log_line(LOG_INFO, "run directory: %s", result->run_dir);
}
