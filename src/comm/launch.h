/*
 * "rudder train PARTS --ranks N" on one machine: the same program again, N times, under the mpiexec of the MPI library it
 * was built with. The caller stays: it forwards signals, tells how the job ended, and leaves nothing behind, no process
 * and no file, whatever kills the job.
 */
#ifndef RUDDER_COMM_LAUNCH_H
#define RUDDER_COMM_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "rudder/status.h"

/* 1 when a launcher of an MPI library started this process, so that it is a rank and must not launch. */
int launch_is_rank(void);

/*
 * Runs this program with the arguments argv[0 .. argc) as `ranks` ranks and waits for them. They do not see our
 * standard input. Returns the exit code: that of the ranks (0 to 4), 5 when a rank was killed or crashed, 128 + number after
 * SIGINT, SIGTERM or SIGHUP, 4 when mpiexec cannot be started (the reason was told). Ends every descendant of the caller;
 * to be called by a process that has no other children.
 */
int launch_ranks(int32_t ranks, int argc, char **argv);

/* The mpiexec in use: RUDDER_MPIEXEC of the environment, or what the program was built with. */
const char *launch_mpiexec(void);

/*
 * Whether mpiexec is there and belongs to the MPI library in use; `version` gets the first line of its own version text.
 * Errors: ENVIRONMENT, with what to do.
 */
rudder_status_t launch_check(char *version, size_t version_size, rudder_error_t *error);

#endif
