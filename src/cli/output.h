/*
 * Directories that sub-commands write: the options that they share, and putting a finished one in its place. AT(name): offset
 * in the command's struct, which has `output`, `name` and `force`.
 */
#ifndef RUDDER_CLI_OUTPUT_H
#define RUDDER_CLI_OUTPUT_H

#include "base/options.h"
#include "graph/files.h"

#define CLI_OUTPUT_GRAPH                                                                                               \
    {                                                                                                                  \
        .name = "output", .letter = 'o', .type = OPTION_STRING, .offset = AT(output), .value = "GRAPH",                \
        .help = "The graph directory to write. One written earlier is replaced."                                       \
    }

#define CLI_OUTPUT_NAME                                                                                                \
    {                                                                                                                  \
        .name = "name", .type = OPTION_STRING, .offset = AT(name), .value = "NAME",                                    \
        .help = "Name of the graph. Default: the last part of the output's path."                                      \
    }

#define CLI_OUTPUT_FORCE                                                                                               \
    {                                                                                                                  \
        .name = "force", .type = OPTION_FLAG, .offset = AT(force), .fallback = "0",                                    \
        .help = "Write even where something else stands; that is moved aside, not deleted."                            \
    }

/* files_folder_close(), and a word on what was moved aside. */
rudder_status_t output_close(files_folder_t *folder, rudder_error_t *error);

#endif
