/*
 * NumPy's .npz archives: zip files of .npy members, stored or deflated, with or without the zip64 fields. Members are read
 * whole into memory, checked against size and CRC that the archive states, and never larger than the caller allows.
 */
#ifndef RUDDER_TRACE_NPZ_H
#define RUDDER_TRACE_NPZ_H

#include <stdint.h>

#include "base/npy.h"

typedef struct npz npz_t;

/* Maps an archive and finds its directory. Errors: IO (no such file), DATA (not a zip file, truncated, split). */
rudder_status_t npz_open(const char *path, npz_t **npz, rudder_error_t *error);
/* NULL is allowed. Arrays that were read stay. */
void npz_close(npz_t *npz);

/* *found: whether there is an array `name`. Errors: DATA (the directory is damaged). */
rudder_status_t npz_has(npz_t *npz, const char *name, int *found, rudder_error_t *error);

/*
 * Reads the array `name` ("ids": the member "ids.npy") of dtype `dtype` (or NULL: any) with `n_dimensions` dimensions. Its
 * .npy text may have at most max_bytes bytes. The array is the caller's, until npy_close(). Errors: DATA (no such member,
 * encrypted, another compression, larger than allowed, damaged, another dtype), MEMORY.
 */
rudder_status_t npz_read(npz_t *npz, const char *name, const char *dtype, int32_t n_dimensions, int64_t max_bytes,
                         npy_t *array, rudder_error_t *error);

#endif
