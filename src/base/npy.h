/*
 * NumPy's .npy files, read by mapping them: little-endian, C order, numbers only. Versions 1, 2 and 3 of the format.
 * Anything else (objects, Fortran order, big endian, a file that is too short) is an error that names the file, what was
 * expected and what was found.
 */
#ifndef RUDDER_BASE_NPY_H
#define RUDDER_BASE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "rudder/status.h"

enum { NPY_MAX_DIMENSIONS = 8 };

/* A mapped array. Zeroed: no array. */
typedef struct npy {
    char dtype[8]; /* as in the file: "<f4", "<i8", "|u1" */
    int32_t n_dimensions;
    int64_t shape[NPY_MAX_DIMENSIONS];
    int64_t count; /* elements */
    size_t item_bytes;
    const void *data; /* NULL when count is 0 */
    void *map;        /* what npy_close() unmaps */
    size_t map_bytes;
} npy_t;

/*
 * Reads a header from memory: the first `n` bytes of a file of `file_bytes` bytes. Fills *npy but data and map;
 * *data_offset is where the data starts. `name` is for messages. Errors: DATA.
 */
rudder_status_t npy_parse_header(const void *bytes, size_t n, int64_t file_bytes, const char *name, npy_t *npy,
                                 size_t *data_offset, rudder_error_t *error);

/* Maps a file read-only. Errors: IO (no such file), DATA, MEMORY. The file must not shrink while it is mapped. */
rudder_status_t npy_open(const char *path, npy_t *npy, rudder_error_t *error);
void npy_close(npy_t *npy);

/*
 * npy_open() and a check: dtype equal, n_dimensions equal, and each shape[i] equal where it is not -1.
 * Messages: "PATH: expected <f4 [117659][256], found <f8 [117659][64]".
 */
rudder_status_t npy_open_as(const char *path, const char *dtype, int32_t n_dimensions, const int64_t *shape, npy_t *npy,
                            rudder_error_t *error);

/* Writes an array (to a temporary name, then renamed). Errors: IO. */
rudder_status_t npy_write(const char *path, const char *dtype, int32_t n_dimensions, const int64_t *shape,
                          const void *data, rudder_error_t *error);

/* A writer for arrays that are produced row by row: the shape is known, the data is appended in order. */
typedef struct npy_writer npy_writer_t;
rudder_status_t npy_writer_open(const char *path, const char *dtype, int32_t n_dimensions, const int64_t *shape,
                                npy_writer_t **writer, rudder_error_t *error);
rudder_status_t npy_writer_append(npy_writer_t *writer, const void *data, int64_t elements, rudder_error_t *error);
/* What came is all there is: an array of one dimension ends here, shorter than it was opened. Errors: IO, INTERNAL. */
rudder_status_t npy_writer_end(npy_writer_t *writer, rudder_error_t *error);
/* Checks that everything came, renames the file into place, frees the writer. NULL is allowed. */
rudder_status_t npy_writer_close(npy_writer_t *writer, rudder_error_t *error);
/* Drops the file and frees the writer. NULL is allowed. */
void npy_writer_abandon(npy_writer_t *writer);

#endif
