/* Keeping decisions until what followed is known, and comparing what was foretold with what happened. */
#include "control/history.h"

#include <string.h>

/* Smaller changes than these are no change: a point of the hit rate, three percent of the fetched rows. */
static const double history_hit_rate_band = .01;
static const double history_fetched_band = .03;

enum { HISTORY_MAX_OPEN = 64 };

const char *rudder_outcome_name(rudder_outcome_status_t status)
{
    switch (status) {
    case RUDDER_REPLACED:
        return "replaced";
    case RUDDER_KEPT:
        return "kept";
    case RUDDER_NOTHING_STALE:
        return "nothing-stale";
    case RUDDER_INVALID:
        return "invalid";
    case RUDDER_LATE:
        return "late";
    case RUDDER_FAILED:
        return "failed";
    }
    return "unknown";
}

int64_t history_capacity(int64_t period, int64_t interval)
{
    const int64_t open = 2 * (period / interval + 1); /* made in a window, while the window after it is filled */
    return RUDDER_HISTORY + 1 + (open < HISTORY_MAX_OPEN ? open : HISTORY_MAX_OPEN);
}

static history_entry_t *history_entry(const history_t *history, int64_t number)
{
    return &history->entries[number % history->capacity];
}

static void history_report(history_t *history)
{
    const rudder_decision_t *decision = &history_entry(history, history->reported++)->decision;
    if (history->on_decision != NULL) {
        history->on_decision(history->callback_context, decision);
    }
}

rudder_decision_t *history_begin(history_t *history)
{
    if (history->finished - history->reported == history->capacity) {
        history_report(history);
    }
    rudder_decision_t *decision = history_current(history);
    memset(decision, 0, sizeof *decision);
    decision->size = sizeof *decision;
    decision->number = history->finished;
    decision->asked_minibatch = decision->answered_minibatch = decision->applied_minibatch = -1;
    decision->prediction_hits_true = decision->prediction_rows_true = -1;
    decision->answer.size = sizeof decision->answer;
    decision->answer.verdict = RUDDER_NO_VERDICT;
    decision->answer.predict_hits = decision->answer.predict_rows = RUDDER_NO_PREDICTION;
    return decision;
}

rudder_decision_t *history_current(const history_t *history)
{
    return &history_entry(history, history->finished)->decision;
}

void history_finish(history_t *history, const metrics_t *metrics, int replaces)
{
    history_entry_t *entry = history_entry(history, history->finished++);
    entry->replaces = replaces;
    entry->before = metrics->past[0];
    entry->after = metrics->windows + (metrics->current.minibatches > 0);
}

rudder_decision_t *history_replaces_at(const history_t *history, int64_t minibatch)
{
    for (int64_t number = history->finished - 1; number >= history->reported; number--) {
        history_entry_t *entry = history_entry(history, number);
        if (entry->replaces && entry->decision.applied_minibatch == minibatch) {
            return &entry->decision;
        }
    }
    return NULL;
}

static int32_t history_direction(double change, double band)
{
    return change > band ? RUDDER_UP : change < -band ? RUDDER_DOWN : RUDDER_SAME;
}

static int32_t history_score(int32_t predicted, int32_t happened)
{
    return predicted == RUDDER_NO_PREDICTION ? -1 : predicted == happened;
}

static void history_effect(history_entry_t *entry, const metrics_window_t *after)
{
    rudder_decision_t *decision = &entry->decision;
    rudder_outcome_t *outcome = &decision->outcome;
    if (entry->before.minibatches == 0) {
        return; /* made before the first window was complete: nothing to compare with */
    }
    const double fetched = metrics_fetched(&entry->before);
    outcome->known = 1;
    outcome->hit_rate_change = metrics_hit_rate(after) - metrics_hit_rate(&entry->before);
    outcome->fetched_change = metrics_fetched(after) - fetched;
    if (!decision->from_fallback) {
        const double relative = fetched > 0 ? outcome->fetched_change / fetched : outcome->fetched_change;
        decision->prediction_hits_true = history_score(
            decision->answer.predict_hits, history_direction(outcome->hit_rate_change, history_hit_rate_band));
        decision->prediction_rows_true =
            history_score(decision->answer.predict_rows, history_direction(relative, history_fetched_band));
    }
}

void history_window(history_t *history, const metrics_t *metrics)
{
    while (history->reported < history->finished) {
        history_entry_t *entry = history_entry(history, history->reported);
        if (entry->after >= metrics->windows) {
            break;
        }
        history_effect(entry, &metrics->past[0]);
        history_report(history);
    }
}

void history_flush(history_t *history)
{
    while (history->reported < history->finished) {
        history_report(history);
    }
}

void history_describe(const history_t *history, rudder_context_t *context)
{
    int32_t n = 0;
    while (n < RUDDER_HISTORY && n < history->finished) {
        context->history[n] = history_entry(history, history->finished - 1 - n)->decision.outcome;
        n++;
    }
    context->n_history = n;
}
