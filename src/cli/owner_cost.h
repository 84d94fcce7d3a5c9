/* What rows of each owner cost, as people say it: the same for `rudder train` and `rudder replay`. */
#ifndef RUDDER_CLI_OWNER_COST_H
#define RUDDER_CLI_OWNER_COST_H

#include <stdint.h>

#include "rudder/rudder.h"

/*
 * "off", "measured", or a file with a number >= 0 for each owner, one a line; blank lines and what stands behind a # are
 * passed over. costs[*n]: the numbers of the file, the caller's to free; NULL without. Errors: IO, DATA (with the line),
 * MEMORY.
 */
rudder_status_t owner_cost_read(const char *text, rudder_owner_cost_t *mode, double **costs, int64_t *n,
                                rudder_error_t *error);

#endif
