/*
 * The decisions of a handle: the one being made, those whose effect is not known yet, and the last ones, which a decider
 * is told. A decision is handed to the host once the window after it is complete, with what followed.
 */
#ifndef RUDDER_CONTROL_HISTORY_H
#define RUDDER_CONTROL_HISTORY_H

#include <stdint.h>

#include "control/metrics.h"
#include "rudder/rudder.h"

typedef struct history_entry {
    rudder_decision_t decision;
    metrics_window_t before; /* the last complete window when it was applied */
    int64_t after;           /* number of the first window that begins after it */
    int replaces;            /* the verdict that was applied, by whomever given */
} history_entry_t;

typedef struct history {
    history_entry_t *entries; /* decision k is entries[k % capacity] */
    int64_t capacity;
    int64_t finished; /* decisions 0 .. finished-1 are made; entry `finished` is the one being made */
    int64_t reported; /* decisions 0 .. reported-1 were handed to the host */
    void (*on_decision)(void *context, const rudder_decision_t *decision);
    void *callback_context;
} history_t;

/*
 * Entries needed when a decision is made every `interval` minibatches: all whose effect is open, within reason. When more
 * are open than that, the oldest is handed out with its effect unknown.
 */
int64_t history_capacity(int64_t period, int64_t interval);

/* The decision being made, empty. */
rudder_decision_t *history_begin(history_t *history);
/* The decision being made. */
rudder_decision_t *history_current(const history_t *history);
/* The decision being made takes effect now: the buffer is replaced or kept. */
void history_finish(history_t *history, const metrics_t *metrics, int replaces);
/* The decision that replaces at `minibatch`, if it was not handed out yet; otherwise NULL. */
rudder_decision_t *history_replaces_at(const history_t *history, int64_t minibatch);

/* A window is complete: hands out the decisions whose effect is known now. */
void history_window(history_t *history, const metrics_t *metrics);
/* Hands out all finished decisions. */
void history_flush(history_t *history);

/* The last finished decisions, newest first. */
void history_describe(const history_t *history, rudder_context_t *context);

#endif
