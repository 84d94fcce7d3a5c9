/* Counting over a trace; the set of its ids is that of the bound, without a buffer. */
#include "trace/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/grow.h"
#include "trace/bound.h"

/* Appends a time, once there is one to tell. */
static rudder_status_t scan_time(float **times, int64_t *size, int64_t t, float seconds, rudder_error_t *error)
{
    if (*times == NULL && isnan(seconds)) {
        return RUDDER_OK;
    }
    const int64_t before = *times == NULL ? 0 : t;
    if (grow_array(times, size, t + 1, sizeof **times) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the times of %" PRId64 " minibatches", t);
    }
    for (int64_t i = before; i < t; i++) {
        (*times)[i] = NAN;
    }
    (*times)[t] = seconds;
    return RUDDER_OK;
}

static void scan_minibatch(scan_t *scan, const trace_minibatch_t *minibatch)
{
    scan->minibatches++;
    scan->ids += minibatch->n;
    scan->most_ids = minibatch->n > scan->most_ids ? minibatch->n : scan->most_ids;
    for (int64_t i = 0; i < minibatch->n; i++) {
        scan->largest = minibatch->ids[i] > scan->largest ? minibatch->ids[i] : scan->largest;
    }
    if (minibatch->announced < 0 || scan->most_announced < 0) {
        scan->most_announced = -1;
    } else if (minibatch->announced > scan->most_announced) {
        scan->most_announced = minibatch->announced;
    }
}

static rudder_status_t scan_all(trace_reader_t *reader, scan_t *scan, bound_t *set, _Atomic int64_t *progress,
                                rudder_error_t *error)
{
    int64_t sample_size = 0, compute_size = 0;
    for (;;) {
        trace_minibatch_t minibatch;
        int end;
        RUDDER_TRY(trace_reader_next(reader, &minibatch, &end, error));
        if (end) {
            return RUDDER_OK;
        }
        const trace_times_t *times = &minibatch.times;
        RUDDER_TRY(scan_time(&scan->sample, &sample_size, scan->minibatches, times->sample, error));
        RUDDER_TRY(scan_time(&scan->compute, &compute_size, scan->minibatches, times->compute, error));
        scan_minibatch(scan, &minibatch);
        RUDDER_TRY(bound_add(set, minibatch.ids, minibatch.n, error));
        atomic_fetch_add_explicit(progress, minibatch.n, memory_order_relaxed);
    }
}

rudder_status_t scan_trace(const char *path, scan_t *scan, _Atomic int64_t *progress, rudder_error_t *error)
{
    trace_reader_t *reader;
    const trace_info_t *info;
    bound_t *set = NULL;
    struct stat about;
    *scan = (scan_t){.path = path, .largest = -1};
    if (stat(path, &about) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    if (!S_ISREG(about.st_mode)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: expected a file, which can be read more than once; found none (\"rudder import-trace\" "
                           "makes a file of a pipe)",
                           path);
    }
    RUDDER_TRY(trace_reader_open(path, &reader, &info, error));
    rudder_status_t status = bound_open(NULL, 0, &set, error);
    if (status == RUDDER_OK) {
        status = scan_all(reader, scan, set, progress, error);
    }
    if (status == RUDDER_OK) {
        scan->info = *info;
        scan->has_owners = info->owner_offset != NULL && info->ranks > 0;
        scan->has_degrees = info->halo_degree != NULL;
        scan->torn = trace_reader_torn(reader);
        scan->remote = bound_remote(set);
        scan->known = scan->distinct = bound_distinct(set);
        for (int64_t i = 0; i < info->n_halo; i++) {
            scan->known += !bound_knows(set, info->halo[i]);
            scan->largest = info->halo[i] > scan->largest ? info->halo[i] : scan->largest;
        }
        scan->reader_bytes = trace_reader_memory(reader);
        scan->info.halo = scan->info.owner_offset = NULL;
        scan->info.halo_degree = NULL;
    }
    bound_close(set);
    trace_reader_close(reader);
    return status;
}

void scan_free(scan_t *scan)
{
    free(scan->sample);
    free(scan->compute);
    scan->sample = scan->compute = NULL;
}

static double scan_least(double least, const float *times, int64_t t)
{
    return times == NULL || isnan(times[t]) || (double)times[t] >= least ? least : (double)times[t];
}

double scan_sample(const scan_group_t *group, int64_t t)
{
    double least = INFINITY;
    for (int32_t r = 0; r < group->n; r++) {
        least = scan_least(least, group->trace[r]->sample, t);
    }
    return isinf(least) ? 0 : least;
}

double scan_compute(const scan_group_t *group, int64_t t)
{
    double least = INFINITY;
    for (int32_t r = 0; r < group->n; r++) {
        least = scan_least(least, group->trace[r]->compute, t);
    }
    return isinf(least) ? 0 : least;
}

static int scan_same_run(const scan_t *a, const scan_t *b)
{
    return a->info.run[0] != '\0' && strcmp(a->info.run, b->info.run) == 0;
}

/* Inserts a trace into its group, which ends at by[end]. */
static rudder_status_t scan_insert(const scan_t *scan, const scan_t **by, int32_t begin, int32_t end,
                                   rudder_error_t *error)
{
    int32_t at = end;
    for (; at > begin && by[at - 1]->info.rank >= scan->info.rank; at--) {
        if (by[at - 1]->info.rank == scan->info.rank) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s: expected one trace for each rank of a run, found rank %" PRId32 " of it in %s, too",
                               scan->path, scan->info.rank, by[at - 1]->path);
        }
        by[at] = by[at - 1];
    }
    by[at] = scan;
    return RUDDER_OK;
}

rudder_status_t scan_groups(const scan_t *scans, int32_t n, const scan_t **by, scan_group_t *groups, int32_t *n_groups,
                            rudder_error_t *error)
{
    int32_t placed = 0;
    *n_groups = 0;
    for (int32_t i = 0; i < n; i++) {
        int done = 0;
        for (int32_t j = 0; j < i; j++) {
            done |= scan_same_run(&scans[j], &scans[i]);
        }
        if (done) {
            continue;
        }
        scan_group_t *group = &groups[(*n_groups)++];
        *group = (scan_group_t){.trace = by + placed, .minibatches = scans[i].minibatches};
        for (int32_t j = i; j < n; j++) {
            if (j == i || scan_same_run(&scans[i], &scans[j])) {
                RUDDER_TRY(scan_insert(&scans[j], by, placed, placed + group->n, error));
                group->n++;
                group->timed |= scans[j].sample != NULL || scans[j].compute != NULL;
                if (scans[j].minibatches < group->minibatches) {
                    group->minibatches = scans[j].minibatches;
                }
            }
        }
        placed += group->n;
    }
    return RUDDER_OK;
}
