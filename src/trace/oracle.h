/*
 * The oracle for decisions. At each decision point of a run over a trace it goes both ways, `replace` and `keep`, from the
 * very same state for a horizon, and calls the way that fetches fewer rows the better one. So a decider can be judged by
 * what its answers brought, and not by what it says of itself.
 *
 * Later decisions within the horizon are those of the rule `gain`, on both ways. Without any the labels are worse: keeping
 * now would mean keeping for the whole horizon, when replacing a window later is better still. With `always` they are worse,
 * too. Rows beyond the horizon count for neither way: a label is exact for its question, not for the whole run. What follows
 * for a run that follows the labels: with a horizon to the end it never fetches more than `gain` does (each decision is
 * measured against going on as `gain` would), and one that does the opposite never less. With a shorter one nothing is certain.
 */
#ifndef RUDDER_TRACE_ORACLE_H
#define RUDDER_TRACE_ORACLE_H

#include <stdint.h>

#include "rudder/rudder.h"
#include "trace/trace.h"

/*
 * The horizon unless told, in periods. With two, following the labels lost to `gain` on 3 of 12 traces and capacities from
 * an empty start (it cannot see that a first replacement is better made later); with four on none.
 */
enum { ORACLE_PERIODS = 4 };

/* What minibatches cost: sample and fetch of a minibatch go on while the one before computes, as in the trainer. */
typedef struct oracle_clock {
    double compute, sample; /* seconds a minibatch */
    double latency, row;    /* seconds a fetch, a row */
} oracle_clock_t;

typedef struct oracle_setup {
    const trace_t *trace;
    /*
     * As for rudder_open(), of one type, with a policy that has replacements; the decider in it is not used. The memory of an
     * own policy must be what its `memory` says: a state is a copy of that.
     */
    const rudder_config_t *config;
    int64_t horizon; /* minibatches after the decision; 0: ORACLE_PERIODS periods */
    oracle_clock_t clock;
} oracle_setup_t;

/* What one way costs: the minibatch of the decision and those of the horizon. */
typedef struct oracle_way {
    int64_t rows; /* misses and fill rows */
    int64_t fill;
    double seconds;
} oracle_way_t;

/* One decision point. */
typedef struct oracle_point {
    rudder_context_t context; /* what a decider is told there in training */
    int64_t horizon;          /* minibatches after it that were looked at: fewer near the end */
    oracle_way_t keep, replace;
    rudder_verdict_t label;         /* the way of fewer rows; keep when they are equal */
    rudder_verdict_t label_seconds; /* the faster one, likewise */
    rudder_answer_t answer;         /* of the decider; NO_VERDICT: it gave none */
    rudder_verdict_t taken;         /* the way that was gone */
} oracle_point_t;

/* 1 when the ways differ by more than 1 % of their rows: there is something to get right. */
int oracle_is_clear(const oracle_point_t *point);

/* A run over the trace that some rule decides. */
typedef struct oracle_result {
    int64_t remote_rows, hit_rows, fetched_rows, fill_rows; /* of the whole run, the start content included */
    double seconds;
    int64_t points, replaced;    /* replaced: `replace` was taken */
    int64_t agreed;              /* the label was taken */
    int64_t clear, agreed_clear; /* points that are clear */
    int64_t agreed_seconds;
    int64_t unanswered;  /* the fall-back rule of the configuration took the decision */
    int64_t stake_rows;  /* rows between the ways, summed over the points */
    int64_t regret_rows; /* rows between the way taken and the better one, likewise */
    double regret_seconds;
} oracle_result_t;

/*
 * Who decides: the name of a decider as rudder_open() takes it, or "better" and "worse" for the oracle's own answer and its
 * opposite. A decider with an interval of its own (fixed:N) has its points there, every other at the end of each period.
 * point: called at each of them; may be NULL. Errors: NAME and ARGUMENT as rudder_open(), UNSUPPORTED (a policy without
 * replacements), MEMORY, AGENT (a decider whose first question fails).
 */
rudder_status_t oracle_run(const oracle_setup_t *setup, const char *who,
                           void (*point)(void *context, const oracle_point_t *point), void *context,
                           oracle_result_t *result, rudder_error_t *error);

/*
 * Looks for the sequence of decisions that fetches the fewest (sign 1) or the most (sign -1) rows of the whole run: of all
 * ways from the `width` best states the best are kept, judged by the rows up to the end of the horizon. What it finds is a
 * way that exists, not the optimum. *fetched: its rows.
 */
rudder_status_t oracle_search(const oracle_setup_t *setup, int sign, int32_t width, int64_t *fetched,
                              rudder_error_t *error);

/* Bytes that oracle_run(), or with width > 0 oracle_search(), takes. Errors: as rudder_memory_needed(). */
rudder_status_t oracle_memory(const oracle_setup_t *setup, int32_t width, int64_t *bytes, rudder_error_t *error);

#endif
