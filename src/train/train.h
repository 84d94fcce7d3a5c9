/*
 * The native trainer: one rank of a distributed training run. A loader thread samples minibatches and fetches their
 * rows through the buffer, some minibatches ahead of the compute thread that trains on them.
 *
 * Training is bit-identical whatever the buffer does: minibatches depend on the seed alone, rows on the graph alone.
 */
#ifndef RUDDER_TRAIN_TRAIN_H
#define RUDDER_TRAIN_TRAIN_H

#include <stdint.h>

#include "base/json.h"
#include "comm/link.h"
#include "rudder/rudder.h"
#include "sample/sampler.h"
#include "sample/seeds.h"

typedef enum train_eval {
    TRAIN_EVAL_EPOCH, /* validation after every epoch, test at the end */
    TRAIN_EVAL_END,   /* both at the end */
    TRAIN_EVAL_NONE
} train_eval_t;

/* How large the buffer is: exactly one of these is not negative. */
typedef struct train_capacity {
    double share; /* of the part's halo */
    int64_t rows, bytes;
} train_capacity_t;

/* Seconds by thread. Each thread's parts sum to `wall`, the time of the training loop. */
typedef struct train_times {
    double sample, plan, exchange, complete, gather, idle;     /* loader */
    double wait, forward, backward, allreduce, step, evaluate; /* compute */
    double wall;
} train_times_t;

/* Rows are distinct remote ids of minibatches: remote = hit + miss, fetched = miss + fill. */
typedef struct train_counts {
    int64_t minibatches, seeds, input, remote, hit, miss, fill, bytes; /* bytes: fetched rows x row bytes */
    int64_t window, most_window; /* later minibatches that were announced when one was planned: summed, most */
    int64_t cut;                 /* minibatches whose window was cut short for want of memory */
} train_counts_t;

enum { TRAIN_LATENCIES = 1024, TRAIN_MESSAGES = 4 };

/* What one rank reports at the end. Plain data: ranks send it to rank 0. */
typedef struct train_rank {
    int32_t rank, threads;
    char host[64];
    int64_t owned, halo, train, capacity_rows, capacity_bytes;
    int64_t library_bytes, loader_bytes, window_bytes, peak_rss_bytes; /* window: of loader, what was sampled ahead */
    train_counts_t counts; /* of minibatches; the start content is in `start_rows` */
    int64_t start_rows;
    train_times_t times;
    rudder_stats_t stats;
    int64_t predictions, predictions_hits_true, predictions_rows_true;
    double agent_cpu_seconds;
    int64_t answers;
    float latency_ms[TRAIN_LATENCIES]; /* of the last answers, as many as there were */
    int32_t n_messages;
    char message[TRAIN_MESSAGES][256];
} train_rank_t;

typedef struct train_epoch {
    double seconds, loss, valid; /* valid: accuracy, NaN when not evaluated */
    train_counts_t counts;       /* over all ranks */
} train_epoch_t;

/* Of a run, on rank 0. On failure as far as it got; rank details are there (n_details = ranks) after success only. */
typedef struct train_result {
    const char *status; /* "running", "ok", "failed", "interrupted" */
    rudder_error_t error;
    int signal;
    char graph[64], method[16], run_dir[4096], mpi[128], start_time[32];
    int32_t ranks, threads_multiple;
    int64_t nodes, edges, row_bytes, steps_per_epoch;
    int32_t epochs, n_epochs; /* asked for, done */
    train_epoch_t *epoch;     /* [epochs] */
    double valid, test;       /* accuracies at the end, NaN when not evaluated */
    double seconds;           /* the whole run, loading included */
    int32_t n_details;
    train_rank_t *detail; /* [ranks] */
    int64_t *traffic;     /* [ranks][2][ranks] bytes of the loader's exchange that a rank got from, and sent to, each */
} train_result_t;

typedef struct train_config {
    const char *parts;   /* partition directory */
    const char *run_dir; /* NULL: runs/<date-time>-<name>, with a number added when it is taken */
    const char *name;    /* NULL: the graph's */
    int32_t ranks;       /* asked for; 0: as many as there are parts */
    int32_t epochs, batch, n_layers, hidden, threads, depth;
    int32_t fanout[SAMPLER_MAX_LAYERS];
    double rate, dropout;
    uint64_t seed;
    seeds_order_t order;
    train_eval_t eval;
    train_capacity_t capacity;
    const char *policy, *start, *decider, *fallback, *model; /* NULL: the library's defaults */
    rudder_mode_t mode;
    int32_t period, deadline_ms, late_after;
    double alpha;
    rudder_answer_mode_t answer;
    int64_t agent_memory;
    int32_t agent_nice;
    links_t links;
    double deadline;     /* seconds a wait for peers may take, 0: no limit */
    int64_t max_message; /* bytes, 0: the exchange's default */
    int record;          /* traces are written */
    rudder_owner_cost_t owner_cost;
    const double *owner_row_cost; /* [n_owner_row_cost], if they are given */
    int64_t n_owner_row_cost;
    int64_t window;        /* minibatches that "lookahead" looks ahead; 0: as many as help */
    int64_t window_memory; /* bytes that minibatches sampled ahead may hold */

    void (*echo)(void *context, json_t *json); /* writes the options into an open object of config.json */
    /*
     * Rank 0: the result is complete, or the run has failed or is stopped by a signal. Called once, from whichever
     * thread finds that out.
     */
    void (*finished)(void *context, const train_result_t *result);
    /* A signal asks this rank to stop; called from a thread of its own after `finished`, must end the process. */
    void (*stopped)(void *context, int signal);
    void *context;
} train_config_t;

/* Whether the policy looks ahead, so that it is worth while to sample ahead. */
int train_looks_ahead(const train_config_t *config);

void train_counts_add(train_counts_t *sum, const train_counts_t *counts);
void train_times_add(train_times_t *sum, const train_times_t *times, double weight);

/*
 * Runs one rank; comm_start() has been called. Collective. *agreed is 1 when all ranks return the same status (success,
 * and failures while loading); otherwise this rank alone failed during training: the others still wait for it, threads
 * are alive, and the caller must end the job with comm_abort().
 */
rudder_status_t train_run(const train_config_t *config, int threads_multiple, int *agreed, rudder_error_t *error);

#endif
