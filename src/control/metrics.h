/*
 * The metrics collector: counts of each window of `period` minibatches, exact and in integers, and the trends against the
 * windows before. Plain data without pointers: a copy is a mark to which an aborted plan goes back.
 */
#ifndef RUDDER_CONTROL_METRICS_H
#define RUDDER_CONTROL_METRICS_H

#include <stdint.h>

#include "rudder/rudder.h"

enum { METRICS_WINDOWS = 5 /* the last complete one and those that its trends refer to */ };

typedef struct metrics_window {
    int64_t minibatches;
    int64_t remote, hit, miss, fill;
    int64_t timed;        /* minibatches whose times were reported */
    rudder_times_t times; /* sums, seconds */
} metrics_window_t;

typedef struct metrics {
    int64_t period;
    int64_t minibatches, windows; /* planned; complete */
    int64_t total_remote, total_hit;
    metrics_window_t current;
    metrics_window_t past[METRICS_WINDOWS]; /* newest first; zeroed where there was none */
} metrics_t;

void metrics_open(metrics_t *metrics, int64_t period);
/* One minibatch was looked up. Returns 1 when it is the last one of a window; that window is past[0] then. */
int metrics_minibatch(metrics_t *metrics, int64_t remote, int64_t hit, int64_t miss);
/* Fill rows belong to the window that is being filled: what a replacement costs is seen in the window after it. */
void metrics_fill(metrics_t *metrics, int64_t fill);
void metrics_times(metrics_t *metrics, const rudder_times_t *times);

/* 0..1; 0 when no remote row was needed. */
double metrics_hit_rate(const metrics_window_t *window);
/* Misses and fill rows a minibatch; 0 for a window without minibatches. */
double metrics_fetched(const metrics_window_t *window);

/* Fills the counts, rates, trends and times of *context from the last complete window (zero when there is none). */
void metrics_describe(const metrics_t *metrics, rudder_context_t *context);

#endif
