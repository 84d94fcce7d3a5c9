/* A whole trace in memory, read by its reader. Arrays grow by half and are cut to what they hold at the end. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "trace/reader.h"
#include "trace/trace.h"

static rudder_status_t trace_no_memory(const char *path, int64_t n, const char *what, rudder_error_t *error)
{
    return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for %lld %s", path, (long long)n, what);
}

static rudder_status_t trace_take_halo(const char *path, const trace_info_t *info, trace_t *trace,
                                       rudder_error_t *error)
{
    const size_t n = (size_t)info->n_halo;
    trace->n_halo = info->n_halo;
    trace->halo = malloc((n + 1) * sizeof *trace->halo);
    trace->halo_degree = info->halo_degree != NULL ? malloc((n + 1) * sizeof *trace->halo_degree) : NULL;
    if (trace->halo == NULL || (info->halo_degree != NULL && trace->halo_degree == NULL)) {
        return trace_no_memory(path, info->n_halo, "ids of a halo", error);
    }
    if (n > 0) {
        memcpy(trace->halo, info->halo, n * sizeof *trace->halo);
    }
    if (n > 0 && info->halo_degree != NULL) {
        memcpy(trace->halo_degree, info->halo_degree, n * sizeof *trace->halo_degree);
    }
    return RUDDER_OK;
}

static rudder_status_t trace_take_ids(const char *path, trace_reader_t *reader, trace_t *trace, rudder_error_t *error)
{
    int64_t ids_size = 0, offsets_size = 0;
    for (;;) {
        trace_minibatch_t minibatch;
        int end;
        RUDDER_TRY(trace_reader_next(reader, &minibatch, &end, error));
        if (grow_array(&trace->offsets, &offsets_size, trace->n_minibatches + 2, sizeof *trace->offsets) != RUDDER_OK ||
            grow_array(&trace->ids, &ids_size, trace->n_ids + minibatch.n + 1, sizeof *trace->ids) != RUDDER_OK) {
            return trace_no_memory(path, trace->n_ids + minibatch.n, "ids", error);
        }
        trace->offsets[trace->n_minibatches] = trace->n_ids;
        if (end) {
            break;
        }
        if (minibatch.n > 0) {
            memcpy(trace->ids + trace->n_ids, minibatch.ids, (size_t)minibatch.n * sizeof *trace->ids);
        }
        trace->n_ids += minibatch.n;
        trace->n_minibatches++;
        trace->most_ids = minibatch.n > trace->most_ids ? minibatch.n : trace->most_ids;
    }
    int64_t *ids = realloc(trace->ids, (size_t)(trace->n_ids + 1) * sizeof *ids);
    int64_t *offsets = realloc(trace->offsets, (size_t)(trace->n_minibatches + 1) * sizeof *offsets);
    trace->ids = ids != NULL ? ids : trace->ids;
    trace->offsets = offsets != NULL ? offsets : trace->offsets;
    return RUDDER_OK;
}

rudder_status_t trace_load(const char *path, trace_t *out, rudder_error_t *error)
{
    trace_reader_t *reader;
    const trace_info_t *info;
    trace_t trace = {0};
    RUDDER_TRY(trace_reader_open(path, &reader, &info, error));
    rudder_status_t status = trace_take_halo(path, info, &trace, error);
    if (status == RUDDER_OK) {
        status = trace_take_ids(path, reader, &trace, error);
    }
    trace_reader_close(reader);
    if (status != RUDDER_OK) {
        trace_free(&trace);
        return status;
    }
    *out = trace;
    return RUDDER_OK;
}

void trace_free(trace_t *trace)
{
    free(trace->ids);
    free(trace->offsets);
    free(trace->halo);
    free(trace->halo_degree);
    *trace = (trace_t){0};
}
