/* Files of numbers, a line each: what rows of each owner cost. */
#ifndef RUDDER_CLI_NUMBERS_H
#define RUDDER_CLI_NUMBERS_H

#include <stdint.h>

#include "rudder/status.h"

/*
 * *numbers[*n], >= 0; the caller's to free. Blank lines and what stands behind a # are passed over. Errors: IO, DATA (with
 * the line), MEMORY.
 */
rudder_status_t numbers_read(const char *path, double **numbers, int64_t *n, rudder_error_t *error);

#endif
