/* A halo as text, for traces that come without one: "ID" or "ID DEGREE" a line. */
#ifndef RUDDER_TRACE_HALO_H
#define RUDDER_TRACE_HALO_H

#include <stdint.h>

#include "rudder/status.h"

/*
 * Reads halo[n] and degree[n] (NULL when the file has none); both to be freed. Empty lines and what stands behind "#" are
 * passed over. Errors: IO, DATA (not a number, some lines with a degree and some without, an id twice), MEMORY.
 */
rudder_status_t halo_read(const char *path, int64_t **halo, uint32_t **degree, int64_t *n, rudder_error_t *error);

#endif
