/*
 * The controller: metrics collector, context builder and decision maker of one handle. src/api calls it from the caller's
 * thread once per minibatch; it owns the worker thread that asks deciders which take time. Trainer and worker exchange
 * contexts and answers through two single-producer single-consumer mailboxes, without locks on the training path.
 */
#ifndef RUDDER_CONTROL_CONTROLLER_H
#define RUDDER_CONTROL_CONTROLLER_H

#include <stdint.h>

#include "control/metrics.h"
#include "rudder/rudder.h"

typedef struct controller controller_t;

typedef struct controller_config {
    rudder_mode_t mode;
    int32_t period;
    int64_t minibatches; /* of the run, 0: unknown */
    int32_t deadline_ms, late_after;
    int replaces;                     /* the policy has replacements; otherwise windows are counted, nothing is asked */
    const rudder_decider_t *decider;  /* outlives the controller; closed by its owner */
    const rudder_decider_t *fallback; /* inline; outlives the controller */
    int64_t row_bytes, capacity;      /* summed over types: capacity in rows, row_bytes of type 0 */
    rudder_facts_t facts;
    void (*on_decision)(void *context, const rudder_decision_t *decision);
    void (*on_message)(void *context, const char *text);
    void *callback_context;
    double (*clock)(void *callback_context); /* simulated time: see rudder_config_t; NULL: real time */
} controller_config_t;

/* What would a replacement do now? Asked at most once a minibatch, only when a context is built. */
typedef void (*controller_outlook_t)(void *context, rudder_outlook_t *outlook);

/* Where the controller stood before a minibatch, for rudder_abort(). Plain data. */
typedef struct controller_mark {
    metrics_t metrics;
} controller_mark_t;

int64_t controller_memory(const controller_config_t *config);
/*
 * memory: controller_memory() bytes, zeroed, 64-byte aligned. Starts the worker when the decider is not inline; in simulated
 * time there is none.
 */
rudder_status_t controller_open(const controller_config_t *config, void *memory, controller_t **controller,
                                rudder_error_t *error);
/*
 * Waits up to timeout_ms for a running decision, cancels it, joins the worker, and reports the decisions whose effect is
 * still open; one that came too late to be applied is reported as late, with applied_minibatch -1.
 */
void controller_close(controller_t *controller, int32_t timeout_ms);

void controller_mark(const controller_t *controller, controller_mark_t *mark);
/*
 * Back to the mark. Decisions stay made: nothing is asked twice for one minibatch. replaced: the plan that is undone had
 * applied a replacement, which is due again when that minibatch is planned anew.
 */
void controller_rewind(controller_t *controller, const controller_mark_t *mark, int replaced);

/*
 * One minibatch was looked up: counts its rows; at the end of a window builds the context and asks; takes an answer that
 * has arrived. Returns 1 when the policy must replace now; the caller then calls controller_replaced().
 */
int controller_minibatch(controller_t *controller, int64_t remote, int64_t hit, int64_t miss,
                         controller_outlook_t outlook, void *outlook_context);
/* The replacement was made: rows that entered and fill rows among them (both 0: nothing was stale). */
void controller_replaced(controller_t *controller, int64_t entered, int64_t fill);
/* Rows of the start content, fetched outside any minibatch. */
void controller_started(controller_t *controller, int64_t fill);
void controller_times(controller_t *controller, const rudder_times_t *times);
/* Fills the window and decision fields of *stats. Any thread. */
void controller_stats(const controller_t *controller, rudder_stats_t *stats);

#endif
