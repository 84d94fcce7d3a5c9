/* Frozen situations for the self-test: a context each, and whether a replacement pays. See tests/agent/README.md. */
#ifndef RUDDER_AGENT_SITUATIONS_H
#define RUDDER_AGENT_SITUATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "rudder/decider.h"

typedef enum situation_kind {
    SITUATION_CLEAR,
    SITUATION_CONFLICTING,
    SITUATION_CLOSE,
    SITUATION_KINDS
} situation_kind_t;

typedef struct situation {
    char name[48];
    situation_kind_t kind;
    rudder_verdict_t expect;
    rudder_context_t context;
} situation_t;

/*
 * Reads a file of JSON lines; path NULL: the set that is built into the program. *situations is the caller's, free() it.
 * Errors: IO, DATA (with the line), MEMORY.
 */
rudder_status_t situations_read(const char *path, situation_t **situations, int32_t *n, rudder_error_t *error);

#endif
