/*
 * A team of threads for loops over tiles. Members sleep between loops (no spinning). The tile a thread works on does not
 * influence the result as long as tiles write apart, so bits do not depend on the number of threads.
 */
#ifndef RUDDER_BASE_TEAM_H
#define RUDDER_BASE_TEAM_H

#include <stdint.h>

#include "rudder/status.h"

typedef struct team team_t;
typedef void (*team_fn_t)(void *context, int64_t tile, int32_t thread);

/* `threads` >= 1, the caller included; with 1 no thread is started. Errors: MEMORY, ENVIRONMENT. */
rudder_status_t team_open(int32_t threads, team_t **team, rudder_error_t *error);
int32_t team_threads(const team_t *team);
/*
 * Calls fn(context, tile, thread) for every tile in [0, tiles), thread in [0, threads); returns when all are done. One
 * caller at a time. Allocates nothing.
 */
void team_run(team_t *team, int64_t tiles, team_fn_t fn, void *context);
void team_close(team_t *team);

#endif
