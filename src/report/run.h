/*
 * A run as its folder tells it (docs/formats.md, "Run directory"), for the report. When it was killed there is no
 * summary.json: the sums of its steps stand in.
 */
#ifndef RUDDER_REPORT_RUN_H
#define RUDDER_REPORT_RUN_H

#include "report/read.h"
#include "report/series.h"

enum { RUN_MAX_RANKS = 4096, RUN_MAX_DECISIONS = 20000 };

/* Sums over minibatches. */
typedef struct run_rows {
    int64_t minibatches, remote, hit, miss, fill, bytes;
} run_rows_t;

typedef struct run_rank {
    run_rows_t rows;  /* of the summary when there is one, with the start content; else of the steps */
    run_rows_t steps; /* of steps.rankN.jsonl */
    int has_steps, has_detail;
    series_t *series; /* NULL without steps */
    double loader[READ_PARTS], compute[READ_PARTS], wall;
    char host[64];
    /* Of the summary; NAN: not known. */
    double threads, owned, halo, capacity, start_rows, entered, untracked, window_mean, window_max;
    double traffic_in, traffic_out, library_bytes, loader_bytes, peak_rss_bytes;
    double *traffic_in_by_rank; /* [n_ranks], or NULL */
    int64_t bound;              /* fewest rows that a buffer of this capacity can fetch; -1: no trace */
} run_rank_t;

/* Counts of decisions, over all ranks. */
typedef struct run_verdicts {
    int64_t asked, answered, applied, replaced, kept, nothing_stale, late, invalid, failed, fallback;
    int64_t predictions, predictions_hits_true, predictions_rows_true;
    double age, agent_cpu_seconds, latency_mean, latency_p50, latency_p99;
} run_verdicts_t;

typedef struct run {
    char path[FILES_MAX_PATH];
    char label[64];          /* the run's name, or its folder's */
    cJSON *config, *summary; /* summary: NULL when the run was killed */
    char status[16];         /* "ok", "failed", "interrupted"; "killed": no summary */
    char error_text[512];
    char graph[64], partition[32], policy[64], start[64], decider[64], mode[16], link[64];
    int emulated; /* its links were */
    int32_t n_ranks;
    run_rank_t *rank;
    run_rows_t rows; /* over the ranks */
    double capacity, row_bytes, start_rows, test, seconds;
    int64_t bound, steps_per_epoch, n_epochs;
    double *epoch_seconds, *loss, *valid;                 /* [n_epochs]; NAN: not known */
    double loader[READ_PARTS], compute[READ_PARTS], wall; /* mean over the ranks */
    run_verdicts_t verdicts;
    series_t *mean; /* over ranks and the minibatches of a bin; all ranks have bins of this width */
    int64_t n_decisions, decisions_capacity;
    read_decision_t *decision;  /* by asked minibatch, then rank */
    int64_t decisions_left_out; /* beyond RUN_MAX_DECISIONS */
    char note[512];             /* what is missing, in words; "" */
} run_t;

/* Reads a run directory. Errors: IO (no run there), DATA (with file, line and reason), MEMORY. */
rudder_status_t run_load(const char *directory, run_t *run, rudder_error_t *error);
void run_free(run_t *run);

/*
 * The bound of a run of which it is not known, from the traces in the folder of `recorded`: the run itself, or another that
 * trained on the same minibatches; otherwise nothing is done. run_load() has looked into the run's own folder. Errors: DATA,
 * IO, MEMORY.
 */
rudder_status_t run_find_bound(run_t *run, const run_t *recorded, rudder_error_t *error);
/* Adds a sentence about what is missing; those that do not fit are left out. */
void run_note(run_t *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Rows fetched, start content included. */
int64_t run_fetched(const run_rows_t *rows);
/* 100 * (1 - fetched / remote): negative when the buffer cost rows; NAN without remote rows. */
double run_saved_percent(int64_t fetched, int64_t remote);

#endif
