/*
 * Replay: what would a run have fetched, and when, with another policy, decider, capacity or network? One job drives the
 * real library, through its public functions, over the traces of all ranks of a run in lockstep; the clock (clock.h) couples
 * them. Each job reads its traces by itself, so jobs run side by side and none holds a trace.
 */
#ifndef RUDDER_TRACE_REPLAY_H
#define RUDDER_TRACE_REPLAY_H

#include <stdatomic.h>
#include <stdint.h>

#include "rudder/rudder.h"
#include "trace/clock.h"
#include "trace/scan.h"

/* Which minibatches are announced before one is planned. */
typedef enum replay_ahead {
    REPLAY_WANTED,   /* as many as the policy wants, on all ranks equally many */
    REPLAY_RECORDED, /* those that were announced in the run */
    REPLAY_ALL       /* the whole trace, from the start */
} replay_ahead_t;

/* What all jobs have in common. */
typedef struct replay_settings {
    int64_t window_ids;     /* most ids announced and not planned that REPLAY_WANTED holds; 0: what the library does */
    int64_t row_bytes;      /* 0: the trace's */
    double sample, compute; /* seconds a minibatch; negative: the trace's */
    int32_t depth;          /* minibatches that the loader is ahead; -1: the trace's; 0: no overlap */
    int use_links;          /* 0: the trace's links, and no changes */
    links_t links;
    const clock_change_t *changes;
    int64_t n_changes;
    rudder_owner_cost_t owner_cost;
    const double *owner_row_cost; /* [n_owner_row_cost] */
    int64_t n_owner_row_cost;
    /*
     * Of the library: alpha, period, seed, fallback, mode, deadline_ms, late_after, agent. Everything else is set by the
     * job.
     */
    rudder_config_t library;
} replay_settings_t;

/* Seconds that the answers of a decider take. */
typedef struct replay_latency {
    double given;           /* negative: not given */
    const double *recorded; /* [n_recorded], taken in turn; NULL: none. Otherwise what they really take */
    int64_t n_recorded;
} replay_latency_t;

/* Of one rank. Rows are distinct remote ids: remote = hit + miss, fetched = miss + fill. */
typedef struct replay_result {
    int64_t minibatches, remote, hit, miss, fill, fetched, bytes;
    int64_t asked, answered, replaced, kept, nothing_stale, late;
    int64_t window_sum;                          /* minibatches announced when each was planned, summed */
    double fetch_seconds, wait_seconds, seconds; /* of the whole run */
} replay_result_t;

typedef struct replay_job {
    const replay_settings_t *settings;
    const scan_group_t *group;
    const char *policy, *start, *decider; /* as rudder_open() takes them; start, decider: NULL, what suits */
    replay_ahead_t ahead;
    replay_latency_t latency;              /* of deciders that take time; given: of any */
    const int64_t *capacity, *max_tracked; /* [group->n] rows */
    replay_result_t *result;               /* [group->n] */
    int64_t memory;                        /* bytes, stated by replay_prepare() */
    _Atomic int64_t *progress;             /* grows by the ids replayed */
} replay_job_t;

/*
 * Checks a job and states its memory. Errors: as rudder_memory_needed() (UNSUPPORTED: this policy has no replacements to
 * decide), USAGE (row bytes are needed and not known), DATA (what was announced is not known).
 */
rudder_status_t replay_prepare(replay_job_t *job, rudder_error_t *error);
/* Runs it; *stop ends it early, with INTERRUPTED. Errors: IO, DATA, MEMORY, and those of the library. */
rudder_status_t replay_run(replay_job_t *job, const atomic_int *stop, rudder_error_t *error);

/* The library as the job opens it on rank r, but for the trace's arrays (halo, owners). *library points to *type. */
void replay_library(const replay_job_t *job, int32_t r, rudder_type_config_t *type, rudder_config_t *library);

/* Bytes of a row; 0: not known. */
int64_t replay_row_bytes(const replay_settings_t *settings, const scan_t *scan);
/* The links at the start: those given, else those that the run had. */
const links_t *replay_links(const replay_settings_t *settings, const scan_t *scan);
/* Whether times are told or measured, so that the clock has something to tell. */
int replay_has_clock(const replay_settings_t *settings, const scan_group_t *group);

#endif
