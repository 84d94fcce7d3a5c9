/*
 * One pass over each array. The common case, nothing wrong, is a plain loop that compilers vectorise; only when it finds
 * something is the place looked up.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "graph/check.h"

rudder_status_t check_indptr(const char *directory, const int64_t *indptr, int64_t n, int64_t n_edges,
                             rudder_error_t *error)
{
    if (indptr[0] != 0) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s/indptr.npy: expected row offsets from 0, found %" PRId64 " at [0]",
                           directory, indptr[0]);
    }
    for (int64_t v = 0; v < n; v++) {
        if (indptr[v + 1] < indptr[v]) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s/indptr.npy: expected row offsets that never fall, found %" PRId64 " at [%" PRId64
                               "] after %" PRId64,
                               directory, indptr[v + 1], v + 1, indptr[v]);
        }
    }
    if (indptr[n] != n_edges) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s/indptr.npy: expected a last row offset of %" PRId64 " (the edges), found %" PRId64,
                           directory, n_edges, indptr[n]);
    }
    return RUDDER_OK;
}

rudder_status_t check_ids(const char *directory, const char *file, const int64_t *ids, int64_t n, int64_t low,
                          int64_t high, rudder_error_t *error)
{
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    int bad = 0;
    for (int64_t i = 0; i < n; i++) {
        bad |= (uint64_t)ids[i] - (uint64_t)low >= range;
    }
    for (int64_t i = 0; bad && i < n; i++) {
        if (ids[i] < low || ids[i] >= high) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s/%s: expected node ids in %" PRId64 "..%" PRId64 ", found %" PRId64 " at [%" PRId64
                               "]",
                               directory, file, low, high - 1, ids[i], i);
        }
    }
    return RUDDER_OK;
}

rudder_status_t check_labels(const char *directory, const char *file, const int32_t *label, int64_t n,
                             int32_t n_classes, rudder_error_t *error)
{
    for (int64_t i = 0; i < n; i++) {
        if (label[i] < -1 || label[i] >= n_classes) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s/%s: expected labels in -1..%" PRId32 ", found %" PRId32 " at [%" PRId64 "]",
                               directory, file, n_classes - 1, label[i], i);
        }
    }
    return RUDDER_OK;
}

rudder_status_t check_split(const char *directory, const uint8_t *split, int64_t n, rudder_error_t *error)
{
    for (int64_t i = 0; i < n; i++) {
        if (split[i] > 3) {
            return RUDDER_FAIL(
                error, RUDDER_E_DATA,
                "%s/split.npy: expected 0 (none), 1 (train), 2 (valid) or 3 (test), found %u at [%" PRId64 "]",
                directory, split[i], i);
        }
    }
    return RUDDER_OK;
}

rudder_status_t check_features(const char *directory, const float *feat, int64_t n, int32_t n_feat,
                               rudder_error_t *error)
{
    for (int64_t v = 0; v < n; v++) {
        const float *row = feat + v * n_feat;
        int bad = 0;
        for (int32_t i = 0; i < n_feat; i++) {
            uint32_t bits;
            memcpy(&bits, row + i, sizeof bits);
            bad |= (bits & 0x7f800000u) == 0x7f800000u;
        }
        for (int32_t i = 0; bad && i < n_feat; i++) {
            if (row[i] - row[i] != 0) {
                return RUDDER_FAIL(error, RUDDER_E_DATA,
                                   "%s/feat.npy: expected finite features, found %g at [%" PRId64 "][%" PRId32 "]",
                                   directory, (double)row[i], v, i);
            }
        }
    }
    return RUDDER_OK;
}
