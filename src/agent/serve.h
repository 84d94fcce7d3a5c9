/*
 * The agent process: one per host and job, shared by the ranks there, so that one model is in memory and training survives
 * whatever happens to it. It listens on the job's abstract socket (decide/agent_protocol.h) and is gone with its last
 * client.
 */
#ifndef RUDDER_AGENT_SERVE_H
#define RUDDER_AGENT_SERVE_H

#include "rudder/rudder.h"

typedef struct serve_config {
    const char *job;
    const char *model;                /* as for backend_find() */
    const char *facts;                /* run facts for the prompt; NULL: none */
    rudder_answer_mode_t answer_mode; /* the costliest mode that will be asked for */
    int64_t memory_bytes;             /* limit of the address space; 0: none */
    int32_t nice;                     /* added to the caller's */
    int debug;
} serve_config_t;

/*
 * Serves until the last client has gone, or 30 s without a first one. Returns at once with RUDDER_OK when another agent
 * has the job. A model that cannot be loaded does not end the process: every question is then answered with AGENT and the
 * reason, so that nobody starts the same failure over and over. Never returns while the model is in use: the process ends
 * by _exit(0). Signals keep their default action; there is nothing to tidy up. Errors: ENVIRONMENT.
 */
rudder_status_t serve_run(const serve_config_t *config, rudder_error_t *error);

#endif
