/*
 * rudder/rudder.h - a buffer of remote feature rows, steered while training runs. This header is the manual.
 *
 * The library never communicates. For each minibatch the host (a trainer) says which remote rows it needs; the library
 * says which of them must be fetched; the host fetches them with its own transport and hands them back:
 *
 *     rudder_plan_begin(r, 0, ids, n, &plan, &err);            remote ids of the minibatch, duplicates allowed
 *     rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);       ids to fetch: n_miss misses first, then n_fill fill rows
 *     ... fetch n_miss + n_fill rows ...
 *     rudder_complete(r, plan, miss_rows, stride, out, &err);  out[n] rows in the order of ids
 *     rudder_fill(r, plan, fill_rows, stride, n_fill, &err);   now or later: keeps fill rows off the critical path
 *
 * Words: an id is *remote* when this rank does not own it. A *hit* is a remote id of a minibatch found in the buffer, a
 * *miss* one not found; both count distinct ids of a minibatch. *Fill rows* are fetched only to fill the buffer. A
 * *policy* says which rows leave and enter, a *decider* when a replacement happens, the *controller* asks it at the end of
 * each *window* of `period` minibatches and applies its answer.
 *
 * The buffer only caches: what rudder_complete() writes never depends on policy, decider, capacity or timing. And what is
 * fetched depends only on the sequence of begin / abort / invalidate calls and on the answers of the decider, not on how
 * many plans are open or when rows arrive.
 *
 * Threads: a handle is used by one thread at a time (the "caller"); rudder_stats_get() may be called from any thread. The
 * library starts at most one thread of its own per handle, for deciders that take time. A handle used in a forked child
 * returns RUDDER_E_FORKED. No function is collective.
 *
 * Memory: rudder_memory_needed() states all bytes before anything is allocated; they are allocated by rudder_open() and
 * never exceeded (the stack of the worker thread, 256 KiB, apart).
 */
#ifndef RUDDER_RUDDER_H
#define RUDDER_RUDDER_H

#include <stdint.h>
#include <stddef.h>
#include "rudder/decider.h"
#include "rudder/policy.h"
#include "rudder/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RUDDER_VERSION_MAJOR 0
#define RUDDER_VERSION_MINOR 1
#define RUDDER_VERSION_PATCH 0
#define RUDDER_VERSION "0.1.0"

/* Version of the library that is linked, for comparison with RUDDER_VERSION. Static. */
RUDDER_API const char *rudder_version(void);

typedef struct rudder rudder_t;
typedef struct rudder_plan rudder_plan_t;

enum { RUDDER_MAX_TYPES = 16 };

/* ---- Configuration ---------------------------------------------------------------------------------------------- */

/* Where memory comes from. Both functions may be called from rudder_open() and rudder_close() only. */
typedef struct rudder_allocator {
    void *(*alloc)(void *context, size_t bytes, size_t alignment); /* NULL on failure */
    void (*free)(void *context, void *memory, size_t bytes);
    void *context;
} rudder_allocator_t;

/* One type of rows (a node type, a dtype). */
typedef struct rudder_type_config {
    size_t row_bytes;      /* > 0 */
    int64_t capacity_rows; /* slots; 0: nothing is kept */
    int64_t max_ids;       /* most ids in one plan, duplicates included; > 0 */
    int64_t
        max_tracked; /* nodes outside the buffer that are remembered; ids beyond are served, not tracked; 0: n_halo */
    int64_t owned_begin, owned_end; /* ids in [begin, end) are owned: an error in a plan. Equal: nothing is checked */
    const int64_t *halo;         /* remote nodes known beforehand, distinct (start content); may be NULL. Not copied: */
    const uint32_t *halo_degree; /*   read by rudder_open() only; NULL: all equal */
    int64_t n_halo;
    /* [n_halo], >= 0, for the start "weights": the highest first, none of 0. Read by rudder_open() only. */
    const double *start_weight;
    /* [n_owners + 1]: owner o has the ids [owner_offset[o], owner_offset[o + 1]). Copied. */
    const int64_t *owner_offset;
    /* Ids of minibatches to come that are remembered, if the policy looks ahead; 0: 16 capacity_rows + 2 max_ids. */
    int64_t max_announced;
    /*
     * Ids are below it, an error in a plan otherwise: the number of nodes of the type, say. 0: the end of owner_offset, or
     * INT64_MAX, which bounds nothing, when that is not given. The smaller, the faster: nodes are then found by an array and
     * not by hashing, where the array is no larger (4 bytes an id for it; 16 bytes for each of capacity_rows + max_tracked +
     * max_ids for hashing).
     */
    int64_t id_end;
} rudder_type_config_t;

/* What rows of different owners cost, for policies that weigh them (mix, lookahead). */
typedef enum rudder_owner_cost {
    RUDDER_OWNER_COST_OFF = 0,  /* all rows cost the same */
    RUDDER_OWNER_COST_MEASURED, /* by rudder_report_fetch() */
    RUDDER_OWNER_COST_GIVEN     /* by owner_row_cost */
} rudder_owner_cost_t;

typedef enum rudder_mode {
    RUDDER_ASYNC = 0, /* the trainer goes on and applies the answer when it arrives */
    RUDDER_SYNC = 1   /* the trainer waits for the answer, up to the deadline */
} rudder_mode_t;

typedef enum rudder_answer_mode {
    RUDDER_ANSWER_SCORE = 0, /* compare the logits of the two answers */
    RUDDER_ANSWER_JSON = 1   /* grammar-constrained JSON with prediction and explanation */
} rudder_answer_mode_t;

/* How the `llm` decider finds or starts its agent; strings are copied. */
typedef struct rudder_agent_config {
    const char *program; /* path of the `rudder` program that is run as `program agent --serve JOB ...` */
    const char *model;   /* path of a GGUF file */
    const char *job;     /* ranks of one host with the same job share one agent; NULL: of this process alone */
    rudder_answer_mode_t answer_mode;
    int64_t memory_bytes; /* limit of the agent's address space; 0: none */
    int32_t nice;         /* 0 .. 19, added to the caller's */
} rudder_agent_config_t;

/* Sizes first: fields are only ever added at the end. Start from rudder_config_init(). */
typedef struct rudder_config {
    size_t size;                       /* sizeof(rudder_config_t), set by rudder_config_init() */
    size_t type_size;                  /* sizeof(rudder_type_config_t), likewise */
    int32_t n_types;                   /* 1 .. RUDDER_MAX_TYPES */
    int32_t max_plans;                 /* plans open at once; default 4 */
    const rudder_type_config_t *types; /* [n_types] */

    const char
        *policy; /* "mix" (default), "lookahead", "lookahead:W", "lfu", "lru", "sieve", "score", "static", "none" */
    const rudder_policy_t *policy_table; /* own policy instead of a name; must outlive the handle */
    const char *start;                   /* "empty", "degree", "random", "weights"; NULL: what suits the policy */
    double alpha;                        /* default .005 */
    int32_t period;                      /* minibatches in a window; default 16 */
    int64_t minibatches;                 /* in the whole run; 0: unknown */
    uint64_t seed;                       /* of the start "random" */

    const char *decider; /* "never", "once", "fixed:N", "gain", "llm"; NULL: "never" where it matters */
    const rudder_decider_t *decider_table; /* own decider instead of a name; must outlive the handle */
    const char *fallback; /* rule that decides when the decider cannot: "gain" (default), "never", "fixed:N" */
    rudder_mode_t mode;   /* default async */
    int32_t deadline_ms;  /* of one decision; default 30000 */
    int32_t late_after;   /* async: drop answers older than so many minibatches; default 4 periods */
    rudder_agent_config_t agent;
    rudder_facts_t facts;

    rudder_allocator_t memory;     /* zeroed: the C library's */
    rudder_allocator_t row_memory; /* for the rows (pinned, device-mapped); zeroed: as `memory` */

    /* Called by the caller's thread, from plan_begin and close. May be NULL. */
    void (*on_decision)(void *context, const rudder_decision_t *decision);
    /* One line that a user should see once (the agent was lost, ...). From the caller's thread. May be NULL. */
    void (*on_message)(void *context, const char *text);
    void *callback_context;

    int32_t n_owners; /* of remote rows; 0: not known. With owners every type has owner_offset */
    rudder_owner_cost_t owner_cost;
    const double *owner_row_cost; /* [n_owners], any unit; copied */
    /*
     * Simulation: seconds of a clock that the host advances between calls. Deciders of any kind are then asked in the
     * caller's thread; in async mode the answer arrives when the clock has gone on by its latency (answer->latency_ms as
     * the decider set it, or else the time it really took). NULL: real time.
     */
    double (*clock)(void *callback_context);
} rudder_config_t;

/* Fills *config with defaults. config_size: sizeof(rudder_config_t) of the caller. */
RUDDER_API void rudder_config_init(rudder_config_t *config, size_t config_size);

/* All bytes that a handle with this configuration will allocate. Errors: as rudder_open(), no memory is needed. */
RUDDER_API rudder_status_t rudder_memory_needed(const rudder_config_t *config, int64_t *bytes, rudder_error_t *error);

/*
 * Opens a handle. Owner: the caller, until rudder_close(). A decider that takes time is started here but not waited for.
 * Errors: ARGUMENT, NAME (with the nearest name), UNSUPPORTED (a decider for a policy without replacements), MEMORY.
 */
RUDDER_API rudder_status_t rudder_open(const rudder_config_t *config, rudder_t **handle, rudder_error_t *error);

/*
 * Closes the handle: open plans are dropped, the decider is cancelled, the last decisions are reported, the worker joined,
 * an agent that this handle started and nobody else uses is gone when the call returns. timeout_ms bounds the wait for a
 * running decision before it is cancelled. NULL is allowed. In a forked child nothing is done: the handle is the parent's.
 */
RUDDER_API void rudder_close(rudder_t *handle, int32_t timeout_ms);

/* ---- Minibatches ------------------------------------------------------------------------------------------------ */

/*
 * The start content (see `start`): a plan without ids whose fill rows are the rows to load before the first minibatch.
 * To be called once per type, before its first plan; not calling it is the start "empty". n_fill may be 0. The plan has no
 * misses: rudder_complete() or, without it, the first rudder_fill() completes it.
 */
RUDDER_API rudder_status_t rudder_plan_start(rudder_t *handle, int32_t type, rudder_plan_t **plan,
                                             rudder_error_t *error);

/*
 * Plans one minibatch of a type: ids[n] are the remote ids it needs, 64-bit, in any order, duplicates allowed (fetched
 * once). They are copied. Counts, windows, decisions and replacements happen here. Every minibatch of a run is planned,
 * also one without ids (n = 0). A row that an earlier open plan is about to bring into the buffer is a hit (it is joined,
 * not fetched twice).
 * Errors: OWNED and ARGUMENT (negative id, n > max_ids): nothing has changed; PLANS: max_plans are open.
 * With several types a minibatch is over when every type was planned (or one comes again): windows count such minibatches,
 * and a replacement that is decided then is made for each type in its next plan, for the type just planned in this one.
 * Cost: O(n); O(capacity + tracked nodes) more, at most once a period, when a replacement is weighed.
 */
RUDDER_API rudder_status_t rudder_plan_begin(rudder_t *handle, int32_t type, const int64_t *ids, int64_t n,
                                             rudder_plan_t **plan, rudder_error_t *error);

/*
 * The ids to fetch: ids[*n_miss + *n_fill], distinct; first the misses in the order in which they appeared, then the fill
 * rows in no particular order. Valid while the plan is open.
 */
RUDDER_API void rudder_plan_fetch(const rudder_plan_t *plan, const int64_t **ids, int64_t *n_miss, int64_t *n_fill);

/*
 * Hands over the rows of the misses and writes all rows of the minibatch: out[n][row_bytes] in the order of the ids given
 * to rudder_plan_begin(), duplicates included. miss_rows[n_miss] lie `stride` bytes apart. Plans complete in the order in
 * which they were begun. Hits are copied before any row is overwritten. `out` and miss_rows may not overlap.
 * A plan without fill rows is closed by this call.
 * Errors: STATE (not the oldest incomplete plan, or complete already), AGAIN (an earlier plan's fill rows that this plan
 * hits have not been delivered); nothing has changed. Cost: O(n) rows copied.
 */
RUDDER_API rudder_status_t rudder_complete(rudder_t *handle, rudder_plan_t *plan, const void *miss_rows, size_t stride,
                                           void *out, rudder_error_t *error);

/*
 * Hands over the next n fill rows, in the order of the fetch list, after rudder_complete(). The call that brings the last
 * one closes the plan. Other plans may be begun and completed in between.
 */
RUDDER_API rudder_status_t rudder_fill(rudder_t *handle, rudder_plan_t *plan, const void *fill_rows, size_t stride,
                                       int64_t n, rudder_error_t *error);

/*
 * The fetch failed. Before rudder_complete(): everything (content, counts, statistics but `aborted`) is as before
 * rudder_plan_begin(); a decision that was applied stays counted, its replacement is made anew at the next plan. After
 * it: the fill rows not yet delivered are given up and their slots freed. Plans are aborted newest first.
 * Errors: STATE (a newer plan is open). The plan is closed.
 */
RUDDER_API rudder_status_t rudder_abort(rudder_t *handle, rudder_plan_t *plan, rudder_error_t *error);

/*
 * A minibatch to come: seq counts the minibatches of the type from 0, in ascending order, each at most once. Kept by
 * policies that look ahead, checked and counted otherwise. The minibatch itself is still planned, with the same ids, when
 * its turn comes; a plan with other ids is served rightly and only guessed worse. n > max_ids is allowed here.
 * Errors: ARGUMENT (seq already planned or not above the last one announced), OWNED, AGAIN (no room for n ids more, see
 * max_announced, or for one minibatch more, max_announced / 8 + 1024: plan and complete first); nothing has changed. Cost:
 * O(n), which the plan saves when it asks for the same ids in the same order.
 */
RUDDER_API rudder_status_t rudder_announce(rudder_t *handle, int64_t seq, int32_t type, const int64_t *ids, int64_t n,
                                           rudder_error_t *error);

/*
 * 1 when the policy looks ahead and would do better if it knew one more minibatch before the next one is planned, and there
 * is room for one as large as any before: the host announces until this is 0, or until it does not want to know more. O(ids
 * of the next minibatch) but after an abort.
 */
RUDDER_API int rudder_announce_wanted(const rudder_t *handle, int32_t type);

/* The rows of these ids changed at their owner: they leave the buffer. Unknown ids are ignored. Errors: STATE (a plan is open). */
RUDDER_API rudder_status_t rudder_invalidate(rudder_t *handle, int32_t type, const int64_t *ids, int64_t n,
                                             rudder_error_t *error);

/* Seconds that the last minibatch took, part by part; told to deciders. Optional. */
typedef struct rudder_times {
    double sample, fetch, wait, compute;
} rudder_times_t;
RUDDER_API rudder_status_t rudder_report_times(rudder_t *handle, const rudder_times_t *times);

/*
 * Fetching `rows` rows from an owner took so many seconds: call it for every owner after a minibatch was fetched. Kept as
 * seconds per row of each owner, older reports fading; has an effect with RUDDER_OWNER_COST_MEASURED, from the next plan on.
 * Errors: ARGUMENT (owner out of range, seconds not finite or negative). O(1).
 */
RUDDER_API rudder_status_t rudder_report_fetch(rudder_t *handle, int32_t owner, int64_t rows, double seconds);

/* ---- Statistics ------------------------------------------------------------------------------------------------- */

/* Sums since the start over all types. fetched_rows = miss_rows + fill_rows; remote_rows = hit_rows + miss_rows. */
typedef struct rudder_stats {
    size_t size;
    int64_t minibatches, aborted;
    int64_t remote_rows, hit_rows, miss_rows, fill_rows, fetched_rows, fetched_bytes;
    int64_t untracked_rows; /* misses of nodes beyond max_tracked */
    int64_t entered_rows;   /* rows that entered the buffer */
    int64_t announced_minibatches;
    int64_t rows_in_buffer, capacity_rows, memory_bytes;
    int64_t window_remote_rows, window_hit_rows; /* of the last complete window */
    int64_t asked, answered, applied;            /* decisions; applied: replaced + kept + nothing-stale */
    int64_t replaced, kept, nothing_stale, invalid, late, failed, fallback;
    double latency_mean_ms, latency_p50_ms, latency_p99_ms; /* of the last 1024 answers */
    double age_mean_minibatches;                            /* asked to applied */
    int64_t window; /* announced and to come, of type 0, if the policy looks ahead */
} rudder_stats_t;

/* Copies the statistics; size: sizeof(rudder_stats_t) of the caller. Any thread. Figures of one minibatch are consistent. */
RUDDER_API rudder_status_t rudder_stats_get(rudder_t *handle, rudder_stats_t *stats, size_t size);

#ifdef __cplusplus
}
#endif
#endif
