/*
 * rudder/decider.h - how to write a decider: when a replacement happens.
 *
 * A decider is a table of functions. At the end of a metrics window the controller builds a context and asks `decide`.
 * Inline deciders answer at once in the caller's thread; the others are asked by the library's worker thread, so that
 * the trainer goes on (async) or waits with a deadline (sync). Whatever a decider does, training is not hurt: an answer
 * that is invalid, late or missing is counted, and the fall-back rule decides. examples/own_decider.c is complete.
 */
#ifndef RUDDER_DECIDER_H
#define RUDDER_DECIDER_H

#include <stdint.h>
#include <stddef.h>
#include "rudder/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rudder_verdict {
    RUDDER_KEEP = 0,
    RUDDER_REPLACE = 1,
    RUDDER_NO_VERDICT = 2 /* an answer came but says neither */
} rudder_verdict_t;

/* What became of a decision. */
typedef enum rudder_outcome_status {
    RUDDER_REPLACED = 0,
    RUDDER_KEPT,
    RUDDER_NOTHING_STALE, /* "replace", but there was no row to let go or none to let in */
    RUDDER_INVALID,       /* the answer said neither yes nor no */
    RUDDER_LATE,          /* the answer came after its deadline or too many minibatches later */
    RUDDER_FAILED         /* the decider could not be asked */
} rudder_outcome_status_t;

/* "replaced", "kept", "nothing-stale", "invalid", "late", "failed". Static. */
RUDDER_API const char *rudder_outcome_name(rudder_outcome_status_t status);

/* A past decision and what followed in the window after it. */
typedef struct rudder_outcome {
    rudder_outcome_status_t status;
    int64_t minibatch; /* when it was applied */
    int64_t replaced_rows;
    double replaced_share;  /* of the capacity */
    double hit_rate_change; /* window after minus window before, in points of 1.0; 0 while not known */
    double fetched_change;  /* fetched rows a minibatch, after minus before */
    int known;              /* 1 once the window after it is complete */
} rudder_outcome_t;

enum { RUDDER_HISTORY = 5 };

/* Graph and run facts that never change. Strings are copied by rudder_open(). Unknown: 0 or "". */
typedef struct rudder_facts {
    char graph[64];
    char model[64];
    int64_t nodes, edges, owned, halo;
    int32_t ranks, rank;
} rudder_facts_t;

/* Everything a decider is told. Rows are distinct remote ids; "window" is the last complete one. */
typedef struct rudder_context {
    size_t size;
    int64_t minibatch;        /* minibatches planned so far */
    int64_t minibatches_left; /* -1 when the host did not say how many there are */
    int32_t period;
    int64_t window_minibatches;
    int64_t remote_rows, hit_rows, miss_rows, fill_rows; /* of the window */
    double hit_rate;                                     /* of the window, 0..1 */
    double hit_rate_total;                               /* since the start */
    double hit_rate_trend;        /* window minus the mean of the (at most 4) windows before, in points of 1.0 */
    double fetched_per_minibatch; /* misses + fill rows, of the window */
    double fetched_trend;         /* relative to the mean of the (at most 4) windows before: +0.1 is 10 % more */
    int64_t row_bytes, capacity;
    double stale_share; /* of the slots */
    int64_t stale, candidates, swaps;
    double saving_per_minibatch; /* rows, see rudder_outlook_t */
    double saving_rows;          /* over the minibatches left (a window when unknown) */
    double cost_rows;
    double t_sample, t_fetch, t_wait, t_compute; /* seconds a minibatch in the window, from rudder_report_times() */
    int32_t n_history;
    rudder_outcome_t history[RUDDER_HISTORY]; /* newest first */
    rudder_facts_t facts;
} rudder_context_t;

enum { RUDDER_DOWN = -1, RUDDER_SAME = 0, RUDDER_UP = 1, RUDDER_NO_PREDICTION = 2 };

typedef struct rudder_answer {
    size_t size;
    rudder_verdict_t verdict;
    double margin;                      /* logit(yes) - logit(no) - threshold, or 0 */
    double latency_ms;                  /* filled by the controller: asked to answered */
    int32_t tokens;                     /* evaluated and generated for this answer */
    int32_t predict_hits, predict_rows; /* RUDDER_UP, _SAME, _DOWN or RUDDER_NO_PREDICTION */
    uint64_t prompt_hash;
    char prompt[512]; /* what the agent saw beside the constant head; "" for rules */
    char explanation[256];
} rudder_answer_t;

enum { RUDDER_DECIDER_INLINE = 1u /* answers in microseconds: asked in the caller's thread, in both modes */ };

typedef struct rudder_decider {
    size_t size; /* sizeof(rudder_decider_t) */
    const char *name;
    unsigned flags;
    void *self;
    /* Minibatches between questions; 0: one period. Asked at the end of minibatch t when (t + 1) mod interval = 0. */
    int64_t interval;
    /*
     * Fills *answer. RUDDER_E_DEADLINE counts as late, any other status but RUDDER_OK as failed; the explanation may say
     * why. Never called twice at once.
     */
    rudder_status_t (*decide)(void *self, const rudder_context_t *context, rudder_answer_t *answer);
    /*
     * Called once from another thread, when the handle is closed: a running `prepare` or `decide` should return soon, and
     * none begins after it but for a question that is on its way. NULL for inline deciders.
     */
    void (*cancel)(void *self);
    void (*close)(void *self); /* may be NULL */
    /*
     * Called once, as soon as the handle is open, by the thread that will call `decide`: time to load a model before the
     * first question. Ends soon after `cancel`. NULL: nothing to prepare, and for inline deciders.
     */
    void (*prepare)(void *self);
} rudder_decider_t;

/* One finished decision, handed to rudder_config_t.on_decision when its effect is known or the handle is closed. */
typedef struct rudder_decision {
    size_t size;
    int64_t number;                                                 /* 0, 1, 2, ... */
    int64_t asked_minibatch, answered_minibatch, applied_minibatch; /* minibatches planned at that time; -1: never */
    rudder_outcome_t outcome;
    int from_fallback; /* 1 when the fall-back rule gave the verdict that was applied */
    int32_t prediction_hits_true, prediction_rows_true; /* 1 true, 0 false, -1 none made or effect not known */
    rudder_context_t context;
    rudder_answer_t answer;
} rudder_decision_t;

/*
 * Tells the changing part of a context in words, at most about 60 tokens: one short sentence each on the comparison of
 * saving and cost (made here, not by the model), the minibatches left, the hit rate and what the last replacements
 * brought. Returns the length without the final NUL, as snprintf. Thread-safe, no allocation.
 */
RUDDER_API int rudder_context_words(const rudder_context_t *context, char *text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif
