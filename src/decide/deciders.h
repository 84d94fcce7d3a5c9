/* The built-in deciders, one file each; decide.c lists them. */
#ifndef RUDDER_DECIDE_DECIDERS_H
#define RUDDER_DECIDE_DECIDERS_H

#include <stddef.h>
#include <stdint.h>

#include "rudder/rudder.h"

/* What a decider is made from. */
typedef struct decide_request {
    const rudder_config_t *config;
    int64_t number; /* N of "fixed:N" */
    void *memory;   /* the decider's own, zeroed, as many bytes as its *_memory() says */
} decide_request_t;

/* Each fills *decider but its name. */
rudder_status_t never_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error);
size_t once_memory(void);
rudder_status_t once_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error);
rudder_status_t fixed_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error);
rudder_status_t gain_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error);
size_t llm_memory(void);
rudder_status_t llm_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error);

#endif
