/* Counting windows, and what their counts say: rates, and trends against the windows before. */
#include "control/metrics.h"

#include <string.h>

void metrics_open(metrics_t *metrics, int64_t period)
{
    memset(metrics, 0, sizeof *metrics);
    metrics->period = period;
}

int metrics_minibatch(metrics_t *metrics, int64_t remote, int64_t hit, int64_t miss)
{
    metrics_window_t *window = &metrics->current;
    window->minibatches++;
    window->remote += remote;
    window->hit += hit;
    window->miss += miss;
    metrics->minibatches++;
    metrics->total_remote += remote;
    metrics->total_hit += hit;
    if (window->minibatches < metrics->period) {
        return 0;
    }
    memmove(metrics->past + 1, metrics->past, (METRICS_WINDOWS - 1) * sizeof metrics->past[0]);
    metrics->past[0] = *window;
    memset(window, 0, sizeof *window);
    metrics->windows++;
    return 1;
}

void metrics_fill(metrics_t *metrics, int64_t fill)
{
    metrics->current.fill += fill;
}

void metrics_times(metrics_t *metrics, const rudder_times_t *times)
{
    metrics_window_t *window = &metrics->current;
    window->timed++;
    window->times.sample += times->sample;
    window->times.fetch += times->fetch;
    window->times.wait += times->wait;
    window->times.compute += times->compute;
}

double metrics_hit_rate(const metrics_window_t *window)
{
    return window->remote > 0 ? (double)window->hit / (double)window->remote : 0;
}

double metrics_fetched(const metrics_window_t *window)
{
    return window->minibatches > 0 ? (double)(window->miss + window->fill) / (double)window->minibatches : 0;
}

/* A window without remote rows has no hit rate: it neither has a trend nor takes part in one. */
static double metrics_hit_rate_trend(const metrics_t *metrics)
{
    double sum = 0;
    int n = 0;
    for (int w = 1; w < METRICS_WINDOWS; w++) {
        if (metrics->past[w].remote > 0) {
            sum += metrics_hit_rate(&metrics->past[w]);
            n++;
        }
    }
    return n > 0 && metrics->past[0].remote > 0 ? metrics_hit_rate(&metrics->past[0]) - sum / n : 0;
}

static double metrics_fetched_trend(const metrics_t *metrics)
{
    double sum = 0;
    int n = 0;
    for (int w = 1; w < METRICS_WINDOWS && metrics->past[w].minibatches > 0; w++) {
        sum += metrics_fetched(&metrics->past[w]);
        n++;
    }
    const double now = metrics_fetched(&metrics->past[0]);
    if (n == 0 || now == sum / n) {
        return 0;
    }
    return sum > 0 ? now / (sum / n) - 1 : 1; /* from nothing to something: told as twice as much */
}

void metrics_describe(const metrics_t *metrics, rudder_context_t *context)
{
    const metrics_window_t *window = &metrics->past[0];
    context->minibatch = metrics->minibatches;
    context->period = (int32_t)metrics->period;
    context->window_minibatches = window->minibatches;
    context->remote_rows = window->remote;
    context->hit_rows = window->hit;
    context->miss_rows = window->miss;
    context->fill_rows = window->fill;
    context->hit_rate = metrics_hit_rate(window);
    context->hit_rate_total =
        metrics->total_remote > 0 ? (double)metrics->total_hit / (double)metrics->total_remote : 0;
    context->hit_rate_trend = metrics_hit_rate_trend(metrics);
    context->fetched_per_minibatch = metrics_fetched(window);
    context->fetched_trend = metrics_fetched_trend(metrics);
    if (window->timed > 0) {
        context->t_sample = window->times.sample / (double)window->timed;
        context->t_fetch = window->times.fetch / (double)window->timed;
        context->t_wait = window->times.wait / (double)window->timed;
        context->t_compute = window->times.compute / (double)window->timed;
    }
}
