/* Checks of mapped arrays, shared by graph and partition directories: each names the file, what was expected and what was found. */
#ifndef RUDDER_GRAPH_CHECK_H
#define RUDDER_GRAPH_CHECK_H

#include <stdint.h>

#include "rudder/status.h"

/* Row offsets: start at 0, never fall, end at n_edges. */
rudder_status_t check_indptr(const char *directory, const int64_t *indptr, int64_t n, int64_t n_edges,
                             rudder_error_t *error);
/* Every id in [low, high). */
rudder_status_t check_ids(const char *directory, const char *file, const int64_t *ids, int64_t n, int64_t low,
                          int64_t high, rudder_error_t *error);
/* Every label in [-1, n_classes). */
rudder_status_t check_labels(const char *directory, const char *file, const int32_t *label, int64_t n,
                             int32_t n_classes, rudder_error_t *error);
rudder_status_t check_split(const char *directory, const uint8_t *split, int64_t n, rudder_error_t *error);
/* No NaN, no infinity. */
rudder_status_t check_features(const char *directory, const float *feat, int64_t n, int32_t n_feat,
                               rudder_error_t *error);

#endif
