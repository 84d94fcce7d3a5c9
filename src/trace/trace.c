/* Reading recorded traces; ids become 64-bit whatever the file has. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/npz.h"
#include "trace/trace.h"

static const int64_t trace_most_bytes = (int64_t)1 << 36;

/* A vector of ids, 32-bit or 64-bit in the file. */
static rudder_status_t trace_read_ids(npz_t *npz, const char *name, int64_t **ids, int64_t *n, rudder_error_t *error)
{
    npy_t array = {0};
    const int narrow = npz_read(npz, name, "<u4", 1, trace_most_bytes, &array, NULL) == RUDDER_OK;
    if (!narrow) {
        RUDDER_TRY(npz_read(npz, name, "<i8", 1, trace_most_bytes, &array, error));
    }
    int64_t *wide = malloc((size_t)(array.count + 1) * sizeof *wide);
    for (int64_t i = 0; wide != NULL && i < array.count; i++) {
        wide[i] = narrow ? (int64_t)((const uint32_t *)array.data)[i] : ((const int64_t *)array.data)[i];
    }
    *n = array.count;
    *ids = wide;
    npy_close(&array);
    return wide != NULL ? RUDDER_OK : RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no %lld ids", name, (long long)*n);
}

static rudder_status_t trace_read_degree(npz_t *npz, trace_t *trace, rudder_error_t *error)
{
    npy_t array = {0};
    RUDDER_TRY(npz_read(npz, "halo_degree", "<u4", 1, trace_most_bytes, &array, error));
    rudder_status_t status = RUDDER_OK;
    if (array.count != trace->n_halo) {
        status =
            RUDDER_FAIL(error, RUDDER_E_DATA, "halo_degree: expected %lld entries, one for each of halo, found %lld",
                        (long long)trace->n_halo, (long long)array.count);
    } else if ((trace->halo_degree = malloc((size_t)(array.count + 1) * sizeof(uint32_t))) == NULL) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "halo_degree: no %lld entries", (long long)array.count);
    } else if (array.count > 0) {
        memcpy(trace->halo_degree, array.data, (size_t)array.count * sizeof(uint32_t));
    }
    npy_close(&array);
    return status;
}

static rudder_status_t trace_read_offsets(npz_t *npz, trace_t *trace, rudder_error_t *error)
{
    RUDDER_TRY(trace_read_ids(npz, "offsets", &trace->offsets, &trace->n_minibatches, error));
    trace->n_minibatches--;
    int good =
        trace->n_minibatches >= 0 && trace->offsets[0] == 0 && trace->offsets[trace->n_minibatches] == trace->n_ids;
    for (int64_t t = 0; good && t < trace->n_minibatches; t++) {
        const int64_t n = trace->offsets[t + 1] - trace->offsets[t];
        good = n >= 0;
        trace->most_ids = n > trace->most_ids ? n : trace->most_ids;
    }
    return good ? RUDDER_OK
                : RUDDER_FAIL(error, RUDDER_E_DATA, "offsets: expected them to ascend from 0 to %lld, found others",
                              (long long)trace->n_ids);
}

static rudder_status_t trace_check_ids(const char *name, const int64_t *ids, int64_t n, rudder_error_t *error)
{
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s[%lld]: expected an id >= 0, found %lld", name, (long long)i,
                               (long long)ids[i]);
        }
    }
    return RUDDER_OK;
}

rudder_status_t trace_read_npz(const char *path, trace_t *out, rudder_error_t *error)
{
    npz_t *npz;
    trace_t trace = {0};
    RUDDER_TRY(npz_open(path, &npz, error));
    rudder_status_t status = trace_read_ids(npz, "ids", &trace.ids, &trace.n_ids, error);
    if (status == RUDDER_OK) {
        status = trace_read_offsets(npz, &trace, error);
    }
    if (status == RUDDER_OK) {
        status = trace_read_ids(npz, "halo", &trace.halo, &trace.n_halo, error);
    }
    if (status == RUDDER_OK) {
        status = trace_read_degree(npz, &trace, error);
    }
    if (status == RUDDER_OK) {
        status = trace_check_ids("ids", trace.ids, trace.n_ids, error);
    }
    if (status == RUDDER_OK) {
        status = trace_check_ids("halo", trace.halo, trace.n_halo, error);
    }
    npz_close(npz);
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
