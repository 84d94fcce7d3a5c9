/*
 * Building a context: the last window, what a replacement would do now, and the last decisions with what followed. And
 * writing one down, so that every log of contexts has the same members.
 */
#include "control/context.h"

#include <string.h>

void context_build(const controller_config_t *config, const metrics_t *metrics, const history_t *history,
                   const rudder_outlook_t *outlook, rudder_context_t *context)
{
    memset(context, 0, sizeof *context);
    context->size = sizeof *context;
    metrics_describe(metrics, context);
    const int64_t left = config->minibatches - metrics->minibatches;
    context->minibatches_left = config->minibatches == 0 ? -1 : left > 0 ? left : 0;

    context->row_bytes = config->row_bytes;
    context->capacity = config->capacity;
    context->stale = outlook->stale;
    context->candidates = outlook->candidates;
    context->swaps = outlook->swaps;
    context->stale_share = config->capacity > 0 ? (double)outlook->stale / (double)config->capacity : 0;
    context->saving_per_minibatch = outlook->saving_per_minibatch;
    /* Without an end in sight a replacement must pay within one window. */
    const int64_t horizon = context->minibatches_left >= 0 ? context->minibatches_left : config->period;
    context->saving_rows = outlook->saving_per_minibatch * (double)horizon;
    context->cost_rows = (double)outlook->cost;

    history_describe(history, context);
    context->facts = config->facts;
}

static void context_history_json(json_t *json, const rudder_context_t *context)
{
    json_array(json, "history");
    for (int32_t i = 0; i < context->n_history && i < RUDDER_HISTORY; i++) {
        const rudder_outcome_t *outcome = &context->history[i];
        json_object(json, NULL);
        json_int(json, "minibatch", outcome->minibatch);
        json_string(json, "status", rudder_outcome_name(outcome->status));
        json_int(json, "replaced_rows", outcome->replaced_rows);
        json_double(json, "replaced_share", outcome->replaced_share);
        json_double(json, "hit_rate_change", outcome->hit_rate_change);
        json_double(json, "fetched_change", outcome->fetched_change);
        json_int(json, "known", outcome->known);
        json_end_object(json);
    }
    json_end_array(json);
}

void context_json(json_t *json, const rudder_context_t *context)
{
    json_int(json, "minibatch", context->minibatch);
    json_int(json, "minibatches_left", context->minibatches_left);
    json_int(json, "period", context->period);
    json_int(json, "window_minibatches", context->window_minibatches);
    json_int(json, "remote_rows", context->remote_rows);
    json_int(json, "hit_rows", context->hit_rows);
    json_int(json, "miss_rows", context->miss_rows);
    json_int(json, "fill_rows", context->fill_rows);
    json_double(json, "hit_rate", context->hit_rate);
    json_double(json, "hit_rate_total", context->hit_rate_total);
    json_double(json, "hit_rate_trend", context->hit_rate_trend);
    json_double(json, "fetched_per_minibatch", context->fetched_per_minibatch);
    json_double(json, "fetched_trend", context->fetched_trend);
    json_int(json, "row_bytes", context->row_bytes);
    json_int(json, "capacity", context->capacity);
    json_double(json, "stale_share", context->stale_share);
    json_int(json, "stale", context->stale);
    json_int(json, "candidates", context->candidates);
    json_int(json, "swaps", context->swaps);
    json_double(json, "saving_per_minibatch", context->saving_per_minibatch);
    json_double(json, "saving_rows", context->saving_rows);
    json_double(json, "cost_rows", context->cost_rows);
    json_seconds(json, "t_sample", context->t_sample);
    json_seconds(json, "t_fetch", context->t_fetch);
    json_seconds(json, "t_wait", context->t_wait);
    json_seconds(json, "t_compute", context->t_compute);
    context_history_json(json, context);
}
