/*
 * The bound of a run: the fewest rows that a buffer of its size can fetch on what it recorded. It needs the whole of a
 * rank's trace in memory; where that is too much the report does without and says so.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "report/run.h"
#include "trace/bound.h"
#include "trace/trace.h"

enum { BOUND_BYTES_AN_ID = 72 }; /* ids while they grow, next uses, and the table of ids seen, at worst */

static int bound_fits(int64_t ids)
{
    const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return ids < pages * page / 2 / BOUND_BYTES_AN_ID;
}

/* Sets the bound of a rank, and of its minibatches in its series. */
static rudder_status_t bound_of_rank(run_t *run, run_rank_t *rank, const char *path, rudder_error_t *error)
{
    trace_t trace;
    int64_t fetched, remote;
    RUDDER_TRY(trace_load(path, &trace, error));
    int32_t *each = malloc((size_t)(trace.n_minibatches + 1) * sizeof *each);
    rudder_status_t status = each == NULL ? RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for its bound", path)
                                          : bound_fetched(trace.ids, trace.offsets, trace.n_minibatches,
                                                          (int64_t)rank->capacity, &fetched, &remote, each, error);
    if (status == RUDDER_OK && trace.n_minibatches == rank->steps.minibatches && remote == rank->steps.remote) {
        rank->bound = fetched;
        for (int64_t t = 0; t < trace.n_minibatches; t++) {
            series_add(rank->series, t, SERIES_BOUND, each[t]);
            if (run->mean != NULL) { /* else it is summed up later */
                series_add(run->mean, t, SERIES_BOUND, each[t]);
            }
        }
    } else if (status == RUDDER_OK) {
        run_note(run,
                 "%s: %" PRId64 " minibatches of %" PRId64 " remote rows, but %" PRId64 " of %" PRId64
                 " in the steps: no bound. ",
                 path, trace.n_minibatches, remote, rank->steps.minibatches, rank->steps.remote);
    }
    free(each);
    trace_free(&trace);
    return status;
}

/* Whether both asked for as many remote rows in every bin of every rank: then they trained on the same minibatches. */
static int bound_same_minibatches(const run_t *a, const run_t *b)
{
    if (a->n_ranks != b->n_ranks) {
        return 0;
    }
    for (int32_t r = 0; r < a->n_ranks; r++) {
        const series_t *x = a->rank[r].series, *y = b->rank[r].series;
        if (x == NULL || y == NULL || x->end != y->end || x->width != y->width ||
            memcmp(x->sum[SERIES_REMOTE], y->sum[SERIES_REMOTE], sizeof x->sum[SERIES_REMOTE]) != 0) {
            return 0;
        }
    }
    return 1;
}

rudder_status_t run_find_bound(run_t *run, const run_t *recorded, rudder_error_t *error)
{
    int64_t sum = 0;
    int32_t n = 0;
    if (run->bound >= 0 || run->capacity == 0 || !bound_same_minibatches(run, recorded)) {
        return RUDDER_OK;
    }
    for (int32_t r = 0; r < run->n_ranks; r++) {
        run_rank_t *rank = &run->rank[r];
        char name[64], path[FILES_MAX_PATH];
        snprintf(name, sizeof name, "trace.rank%" PRId32 ".rtr", r);
        if (rank->bound >= 0 || !(rank->capacity >= 0 && rank->capacity < 0x1p53) ||
            !files_exist(recorded->path, name)) {
            continue;
        }
        RUDDER_TRY(files_join(recorded->path, name, path, error));
        log_progress(r, run->n_ranks, "%s: bound of rank %" PRId32, run->label, r);
        if (!bound_fits(rank->steps.remote) && run != recorded) {
            continue; /* it is told of the recorded one */
        }
        if (!bound_fits(rank->steps.remote)) {
            run_note(run,
                     "The bound of rank %" PRId32 " is left out: it takes more than half of this machine's memory. ",
                     r);
            continue;
        }
        RUDDER_TRY(bound_of_rank(run, rank, path, error));
    }
    for (int32_t r = 0; r < run->n_ranks; r++) {
        n += run->rank[r].bound >= 0;
        sum += run->rank[r].bound;
    }
    run->bound = n == run->n_ranks ? sum : -1;
    log_progress_end();
    return RUDDER_OK;
}
