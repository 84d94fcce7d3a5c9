/*
 * Reading traces from NumPy archives: `ids` (<u4, <i4, <i8 or <u8, all minibatches one behind the other), `offsets` (where
 * each begins, and the end), and, if they are there, `halo`, `halo_degree` and `minibatches_per_epoch`. The arrays stay as
 * they are in the file; ids are widened one minibatch at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "trace/format.h"
#include "trace/npz.h"

static const int64_t format_most_bytes = (int64_t)1 << 38;

typedef struct format_npz {
    const char *path;
    npy_t ids, offsets;
    int64_t *halo;
    uint32_t *halo_degree;
    int64_t n_minibatches, next;
    int64_t *buffer, buffer_size; /* ids of a minibatch */
} format_npz_t;

/* Element i of a vector of whole numbers, 32 or 64 bits; those of <u8 above 2^63 come out negative. */
static int64_t format_at(const npy_t *array, int64_t i)
{
    if (array->item_bytes == 8) {
        return ((const int64_t *)array->data)[i];
    }
    return array->dtype[1] == 'u' ? (int64_t)((const uint32_t *)array->data)[i] : ((const int32_t *)array->data)[i];
}

static rudder_status_t format_vector(const char *path, npz_t *npz, const char *name, npy_t *array,
                                     rudder_error_t *error)
{
    static const char *const dtypes[] = {"<u4", "<i4", "<i8", "<u8"};
    RUDDER_TRY(npz_read(npz, name, NULL, 1, format_most_bytes, array, error));
    for (int i = 0; i < 4; i++) {
        if (strcmp(array->dtype, dtypes[i]) == 0) {
            return RUDDER_OK;
        }
    }
    const rudder_status_t status =
        RUDDER_FAIL(error, RUDDER_E_DATA, "%s: %s: expected <u4, <i4, <i8 or <u8, found %s", path, name, array->dtype);
    npy_close(array);
    return status;
}

/* Checks all elements against [0, most]. */
static rudder_status_t format_range(const char *path, const char *name, const npy_t *array, int64_t most,
                                    rudder_error_t *error)
{
    for (int64_t i = 0; i < array->count; i++) {
        const int64_t value = format_at(array, i);
        if (value < 0 || value > most) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: %s[%lld]: expected a number from 0 to %lld, found %lld", path,
                               name, (long long)i, (long long)most, (long long)value);
        }
    }
    return RUDDER_OK;
}

/* *array stays zeroed when there is none. */
static rudder_status_t format_optional(const char *path, npz_t *npz, const char *name, int64_t most, npy_t *array,
                                       rudder_error_t *error)
{
    int found;
    RUDDER_TRY(npz_has(npz, name, &found, error));
    if (found) {
        RUDDER_TRY(format_vector(path, npz, name, array, error));
        RUDDER_TRY(format_range(path, name, array, most, error));
    }
    return RUDDER_OK;
}

static rudder_status_t format_minibatches(format_npz_t *f, npz_t *npz, trace_info_t *info, rudder_error_t *error)
{
    RUDDER_TRY(format_vector(f->path, npz, "ids", &f->ids, error));
    RUDDER_TRY(format_range(f->path, "ids", &f->ids, INT64_MAX, error));
    RUDDER_TRY(format_vector(f->path, npz, "offsets", &f->offsets, error));
    const int64_t n = f->offsets.count;
    int64_t before = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t offset = format_at(&f->offsets, i);
        if (offset < before || offset > f->ids.count || (i == 0 && offset != 0)) {
            return RUDDER_FAIL(
                error, RUDDER_E_DATA,
                "%s: offsets[%lld]: expected numbers that never fall, from 0 to the %lld ids, found %lld", f->path,
                (long long)i, (long long)f->ids.count, (long long)offset);
        }
        before = offset;
    }
    if (n == 0 || before != f->ids.count) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: offsets: expected the last to be the number of ids, %lld, found %lld", f->path,
                           (long long)f->ids.count, (long long)before);
    }
    info->n_minibatches = f->n_minibatches = n - 1;
    info->n_ids = f->ids.count;
    return RUDDER_OK;
}

static rudder_status_t format_halo(format_npz_t *f, npz_t *npz, trace_info_t *info, rudder_error_t *error)
{
    npy_t halo = {0}, degree = {0};
    rudder_status_t status = format_optional(f->path, npz, "halo", INT64_MAX, &halo, error);
    if (status == RUDDER_OK) {
        status = format_optional(f->path, npz, "halo_degree", UINT32_MAX, &degree, error);
    }
    if (status == RUDDER_OK && degree.map != NULL && degree.count != halo.count) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA,
                             "%s: halo_degree: expected an entry for each of the %lld of halo, found %lld", f->path,
                             (long long)halo.count, (long long)degree.count);
    }
    if (status == RUDDER_OK && halo.count > 0) {
        f->halo = malloc((size_t)halo.count * sizeof *f->halo);
        f->halo_degree = degree.map != NULL ? malloc((size_t)halo.count * sizeof *f->halo_degree) : NULL;
        if (f->halo == NULL || (degree.map != NULL && f->halo_degree == NULL)) {
            status =
                RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for a halo of %lld", f->path, (long long)halo.count);
        }
    }
    for (int64_t i = 0; i < halo.count && status == RUDDER_OK; i++) {
        f->halo[i] = format_at(&halo, i);
        if (f->halo_degree != NULL) {
            f->halo_degree[i] = (uint32_t)format_at(&degree, i);
        }
    }
    info->n_halo = halo.count;
    info->halo = f->halo;
    info->halo_degree = f->halo_degree;
    npy_close(&halo);
    npy_close(&degree);
    return status;
}

/* Epochs of one length are worth telling. */
static rudder_status_t format_epochs(format_npz_t *f, npz_t *npz, trace_info_t *info, rudder_error_t *error)
{
    npy_t epochs = {0};
    rudder_status_t status = format_optional(f->path, npz, "minibatches_per_epoch", f->n_minibatches, &epochs, error);
    if (status == RUDDER_OK && epochs.count > 0) {
        info->epochs = epochs.count;
        info->steps_per_epoch = format_at(&epochs, 0);
        for (int64_t i = 1; i < epochs.count; i++) {
            info->steps_per_epoch = format_at(&epochs, i) == info->steps_per_epoch ? info->steps_per_epoch : 0;
        }
    }
    npy_close(&epochs);
    return status;
}

static void format_close(void *self)
{
    format_npz_t *f = self;
    npy_close(&f->ids);
    npy_close(&f->offsets);
    free(f->halo);
    free(f->halo_degree);
    free(f->buffer);
    free(f);
}

static rudder_status_t format_open(source_t *source, trace_info_t *info, void **self, rudder_error_t *error)
{
    npz_t *npz = NULL;
    format_npz_t *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory to open it", source->path);
    }
    f->path = source->path;
    rudder_status_t status = npz_open(source->path, &npz, error);
    status = status == RUDDER_OK ? format_minibatches(f, npz, info, error) : status;
    status = status == RUDDER_OK ? format_halo(f, npz, info, error) : status;
    status = status == RUDDER_OK ? format_epochs(f, npz, info, error) : status;
    npz_close(npz);
    if (status != RUDDER_OK) {
        format_close(f);
        return status;
    }
    *self = f;
    return RUDDER_OK;
}

static rudder_status_t format_next(void *self, trace_minibatch_t *minibatch, int *end, rudder_error_t *error)
{
    format_npz_t *f = self;
    *end = f->next == f->n_minibatches;
    if (*end) {
        return RUDDER_OK;
    }
    const int64_t begin = format_at(&f->offsets, f->next), n = format_at(&f->offsets, f->next + 1) - begin;
    if (grow_array(&f->buffer, &f->buffer_size, n + 1, sizeof *f->buffer) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for %lld ids", f->path, (long long)n);
    }
    for (int64_t i = 0; i < n; i++) {
        f->buffer[i] = format_at(&f->ids, begin + i);
    }
    minibatch->ids = f->buffer;
    minibatch->n = n;
    f->next++;
    return RUDDER_OK;
}

static int64_t format_memory(const void *self)
{
    const format_npz_t *f = self;
    return (int64_t)(sizeof *f + f->ids.map_bytes + f->offsets.map_bytes) +
           (f->buffer_size + f->n_minibatches + 1) * (int64_t)sizeof(int64_t);
}

const trace_format_t trace_format_npz = {
    .kind = "npz", .open = format_open, .next = format_next, .memory = format_memory, .close = format_close};
