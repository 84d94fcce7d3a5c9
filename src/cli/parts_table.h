/* The table of what each part of a partition holds, for `partition` and `inspect`. */
#ifndef RUDDER_CLI_PARTS_TABLE_H
#define RUDDER_CLI_PARTS_TABLE_H

#include <stdint.h>

#include "partition/make.h"
#include "rudder/status.h"

enum { PARTS_TABLE_IMBALANCE = 120 /* per cent of the mean, from where on a user is warned */ };

/* Prints the table and what the columns mean; warns of imbalance and of parts without training nodes. Errors: MEMORY, IO. */
rudder_status_t parts_table_print(const make_part_t *part, int32_t n_parts, rudder_error_t *error);

#endif
