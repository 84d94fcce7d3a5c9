/*
 * The agent as a child process: started from a thread that may live beside MPI, BLAS and a big heap, tied to that thread's
 * life, and always reaped.
 */
#ifndef RUDDER_DECIDE_AGENT_PROCESS_H
#define RUDDER_DECIDE_AGENT_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rudder/status.h"

typedef struct agent_process {
    pid_t pid;  /* 0: none */
    int status; /* of the last one that ended, as waitpid() gives it */
} agent_process_t;

typedef struct agent_process_setup {
    char *const *argv;    /* [0]: path of the program; ends with NULL */
    int64_t memory_bytes; /* limit of the address space; 0: none */
    int32_t nice;         /* added to the caller's */
    int quiet;            /* standard error goes to /dev/null, otherwise it is the caller's */
} agent_process_setup_t;

/*
 * Starts the program: standard input and output at /dev/null, no other open file, no blocked or ignored signal. It is
 * killed when the calling thread ends, however that comes. Errors: AGENT (it cannot be run).
 */
rudder_status_t agent_process_start(agent_process_t *process, const agent_process_setup_t *setup,
                                    rudder_error_t *error);
/* Reaps a child that has ended. 1 when there is none (any more). */
int agent_process_gone(agent_process_t *process);
/* Sleeps until the child has gone (1) or the time is over (0). */
int agent_process_wait(agent_process_t *process, double seconds);
/* 1 when the child is stopped by a signal, so that it cannot answer. */
int agent_process_stopped(const agent_process_t *process);
void agent_process_kill(agent_process_t *process);
/* Lets the child end by itself, then asks, then kills it. */
void agent_process_end(agent_process_t *process);
/* "exit code 3", "signal 9": how the last child ended. Returns text. */
char *agent_process_epitaph(const agent_process_t *process, char *text, size_t text_size);

#endif
