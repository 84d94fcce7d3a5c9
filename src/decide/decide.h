/* Deciders by name. */
#ifndef RUDDER_DECIDE_DECIDE_H
#define RUDDER_DECIDE_DECIDE_H

#include "rudder/rudder.h"

/*
 * Makes the decider that `name` means ("never", "once", "fixed:N", "gain", "llm"). Not for two handles. Errors: NAME with
 * the nearest name, ARGUMENT (fixed:0), MEMORY. memory: decide_memory(name) bytes, zeroed, owned by the caller and in use
 * until decider->close(). `config` gives types, period, agent, facts, deadline; nothing of it is kept. Without memory
 * (NULL) a decider whose decide_memory() is 0 can be made. decider->name is the name without its number.
 */
int64_t decide_memory(const char *name);
rudder_status_t decide_open(const char *name, const rudder_config_t *config, void *memory, rudder_decider_t *decider,
                            rudder_error_t *error);

#endif
