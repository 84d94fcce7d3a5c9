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

rudder_status_t run_find_bound(run_t *run, rudder_error_t *error)
{
    int64_t sum = 0;
    int32_t n = 0;
    for (int32_t r = 0; r < run->n_ranks; r++) {
        run_rank_t *rank = &run->rank[r];
        char name[64], path[FILES_MAX_PATH];
        snprintf(name, sizeof name, "trace.rank%" PRId32 ".rtr", r);
        if (!rank->has_steps || !rank->has_detail || !(rank->capacity >= 0 && rank->capacity < 0x1p53) ||
            !files_exist(run->path, name)) {
            continue;
        }
        RUDDER_TRY(files_join(run->path, name, path, error));
        log_progress(r, run->n_ranks, "%s: bound of rank %" PRId32, run->label, r);
        if (!bound_fits(rank->steps.remote)) {
            run_note(run,
                     "The bound of rank %" PRId32 " is left out: it takes more than half of this machine's memory. ",
                     r);
            continue;
        }
        RUDDER_TRY(bound_of_rank(run, rank, path, error));
        sum += rank->bound;
        n += rank->bound >= 0;
    }
    run->bound = n == run->n_ranks ? sum : -1;
    return RUDDER_OK;
}
