/* Work in a child process: whatever happens to it there, a crash or the end of memory, is an error here and no more. */
#ifndef RUDDER_PARTITION_CHILD_H
#define RUDDER_PARTITION_CHILD_H

#include <stddef.h>

#include "rudder/status.h"

/* Runs in the child. `shared` is memory that both see. Returns 0 for success, else a code in 1..127. */
typedef int (*child_fn_t)(void *context, void *shared);

/* Memory for what the child hands back, zeroed. Errors: MEMORY. */
rudder_status_t child_memory(size_t bytes, void **shared, rudder_error_t *error);
void child_memory_free(void *shared, size_t bytes);

/*
 * Runs fn(context, shared) in a child with its output silenced and waits; on a terminal a line tells that `what` goes on.
 * *code is what fn returned. Errors: ENVIRONMENT, with how the child ended (signal, by name) when it did not return.
 */
rudder_status_t child_run(const char *what, child_fn_t fn, void *context, void *shared, int *code,
                          rudder_error_t *error);

#endif
