/* How large a buffer is, as people write it: the same for `rudder train` and `rudder replay`. */
#ifndef RUDDER_CLI_CAPACITY_H
#define RUDDER_CLI_CAPACITY_H

#include "train/train.h"

/* "25%" and "0.25": of the halo; "1000": rows; "64MiB": bytes. what: the option's name. Errors: USAGE. */
rudder_status_t capacity_read(const char *text, const char *what, train_capacity_t *capacity, rudder_error_t *error);

#endif
