/* Building a context: the last window, what a replacement would do now, and the last decisions with what followed. */
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
