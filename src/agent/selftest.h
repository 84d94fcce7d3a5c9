/* The self-test: how well and how fast a model answers situations whose answer is known. */
#ifndef RUDDER_AGENT_SELFTEST_H
#define RUDDER_AGENT_SELFTEST_H

#include <stdio.h>

#include "rudder/rudder.h"

typedef struct selftest_config {
    const char *model;      /* as for backend_find() */
    const char *situations; /* a file; NULL: the frozen set */
    int verbose;            /* every situation with its words and margin */
    int debug;
} selftest_config_t;

/*
 * Prints the tables to `file`. *passed: at least 95 % of the situations were answered right in score mode and every answer
 * in json mode could be read. Errors: as the back end's open(), situations_read().
 */
rudder_status_t selftest_run(const selftest_config_t *config, FILE *file, int *passed, rudder_error_t *error);

#endif
