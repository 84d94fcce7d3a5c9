/*
 * The sub-commands of the rudder program: one file each. argv[0] is the sub-command's name, and argv - 1 is main()'s own
 * argv; what is returned is the exit code: 0 done, 1 the run failed, 2 usage, 3 input data, 4 environment, 5 a peer is lost, 130/143 signals.
 */
#ifndef RUDDER_CLI_CLI_H
#define RUDDER_CLI_CLI_H

#include <stdint.h>

#include "base/options.h"
#include "rudder/status.h"

int cli_import(int argc, char **argv);
int cli_generate(int argc, char **argv);
int cli_import_trace(int argc, char **argv);
int cli_partition(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_train(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_replay(int argc, char **argv);
int cli_diff(int argc, char **argv);
int cli_agent(int argc, char **argv);
int cli_doctor(int argc, char **argv);

int cli_exit_code(rudder_status_t status);
/* Tells the error and returns its exit code. */
int cli_fail(const rudder_error_t *error);

/*
 * options_parse() with what every sub-command does about it: returns 1 to go on; 0 when the work ends here with *exit_code
 * (help was printed, or the error told).
 */
int cli_options(const option_command_t *command, int argc, char **argv, void *values, const char **arguments,
                int32_t *n_arguments, int *exit_code);

/*
 * The first word of a sub-command that has several kinds, "import wordnet": the position of argv[1] in names[n], whose
 * commands are commands[n]; -1 when the work ends here with *exit_code (help was printed, or the error told). noun: what
 * the word is, "format".
 */
int cli_word(const option_command_t *commands, const char *const *names, int n, const char *noun, int argc, char **argv,
             int *exit_code);

/* "Open MPI v4.1.4": the MPI library in use. Returns text. */
char *cli_mpi_version(char *text, size_t text_size);
/* Whether this program carries llama.cpp, so that the agent can run a model itself. */
int cli_has_llama(void);

#endif
