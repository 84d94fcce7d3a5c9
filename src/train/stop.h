/*
 * SIGINT and SIGTERM in a rank: a thread of its own is told, in any state of the run, also while all others wait for
 * peers that are gone. Handlers, not masks: a child that is started (the agent) gets the default behaviour back.
 */
#ifndef RUDDER_TRAIN_STOP_H
#define RUDDER_TRAIN_STOP_H

#include "rudder/status.h"

/* Calls fn(context, signal) once, in the watching thread, when a signal arrives. One watch a process. */
rudder_status_t stop_watch(void (*fn)(void *context, int signal), void *context, rudder_error_t *error);
/* Ends the thread and puts the former handlers back. Without a watch nothing happens. */
void stop_unwatch(void);

#endif
