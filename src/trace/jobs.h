/* Jobs that do not depend on each other, over a few threads. */
#ifndef RUDDER_TRACE_JOBS_H
#define RUDDER_TRACE_JOBS_H

#include <stdatomic.h>
#include <stdint.h>

#include "rudder/status.h"

typedef struct jobs {
    int32_t n, threads;
    /* Job i; *stop becomes 1 when another has failed: a long one should look at it and end with any status. */
    rudder_status_t (*run)(void *context, int32_t i, const atomic_int *stop, rudder_error_t *error);
    void *context;
    /* What the progress line shows. `done` grows while jobs run; total 0: no bar. */
    const _Atomic int64_t *done;
    int64_t total;
    const char *what;
} jobs_t;

/* Runs all. The error is that of the first job, by number, that failed by itself. Errors: the jobs', ENVIRONMENT. */
rudder_status_t jobs_run(const jobs_t *jobs, rudder_error_t *error);

#endif
