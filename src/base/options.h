/*
 * Options of the command line: one table per sub-command is the source of the parser, of --help, of the environment names
 * (RUDDER_<NAME>) and of the echo in config.json. Command line beats environment beats default.
 */
#ifndef RUDDER_BASE_OPTIONS_H
#define RUDDER_BASE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "rudder/status.h"

typedef enum option_type {
    OPTION_STRING,  /* const char * */
    OPTION_INT,     /* int64_t, with low and high */
    OPTION_FLOAT,   /* double, with low and high */
    OPTION_FLAG,    /* int: --name sets 1, --no-name sets 0 */
    OPTION_CHOICE,  /* int: position in the list `choices`, "a|b|c" */
    OPTION_BYTES,   /* int64_t, "64MiB" */
    OPTION_SECONDS, /* double, "50us" */
    OPTION_HEADING  /* a line in --help, no option */
} option_type_t;

typedef struct option_spec {
    const char *name; /* "seed-order"; heading: its text */
    char letter;      /* 'o' for -o, 0: none */
    option_type_t type;
    size_t offset; /* of the field in the sub-command's struct */
    const char
        *fallback;       /* default as text; NULL: unset (string NULL, choice -1, flag 0; numbers keep what is there) */
    const char *value;   /* name of the value in help: "ROWS" */
    const char *help;    /* one or two sentences */
    double low, high;    /* INT and FLOAT; both 0: no limits */
    const char *choices; /* CHOICE */
    const char *aliases; /* "num-epochs,num_epochs": names of DistDGL and of the paper that mean the same; or NULL */
} option_spec_t;

typedef struct option_command {
    const char *name;      /* "train" */
    const char *arguments; /* "PARTS" */
    const char *summary;   /* one line */
    const char *text;      /* paragraphs and examples that teach, printed by --help; may be NULL */
    int32_t min_arguments, max_arguments;
    const option_spec_t *options; /* ends with name NULL */
} option_command_t;

/*
 * Fills *values (the sub-command's struct) from defaults, environment and argv[1 ..]; positional arguments go to
 * arguments[max_arguments] (count in *n_arguments). Options may stand anywhere, "--name value" or "--name=value", dash or
 * underscore. *help is 1 when --help or -h was given (nothing else is checked then). Errors: USAGE with the nearest name.
 * Strings point into argv, the environment or the table. A repeated option counts as it stands last; an empty variable of
 * the environment counts as unset.
 */
rudder_status_t options_parse(const option_command_t *command, int argc, char **argv, void *values,
                              const char **arguments, int32_t *n_arguments, int *help, rudder_error_t *error);

/*
 * Prints the help of a sub-command: usage, text, options with defaults, environment names and aliases; wrapped at `width`
 * (0: the terminal's), at most 100. In `text`, lines that begin with a space are examples and are not wrapped.
 */
void options_help(const option_command_t *command, FILE *file, int32_t width);

/* Writes every option as "name": value into an open JSON object. */
void options_echo(const option_command_t *command, const void *values, json_t *json);

#endif
