/*
 * Files of lines that people write: lists of numbers and words. Blank lines say nothing, nor does what follows a '#'. A line
 * is at most LINES_MOST bytes long, so a file of anything else ends at its first line.
 */
#ifndef RUDDER_BASE_LINES_H
#define RUDDER_BASE_LINES_H

#include <stdint.h>
#include <stdio.h>

#include "rudder/status.h"

enum { LINES_MOST = 1000 };

typedef struct lines {
    const char *path;
    FILE *file;
    int64_t number;            /* of the last line, from 1 */
    char where[256];           /* "PATH: line N", for errors */
    char text[LINES_MOST + 3]; /* and "\r\n" */
} lines_t;

/* `path` outlives the lines. Errors: IO; DATA (a directory). Then there is nothing to close. */
rudder_status_t lines_open(const char *path, lines_t *lines, rudder_error_t *error);
/*
 * The next line that says something, without its remark and the blanks around it: *line, which may be written to, lasts until
 * the next call; NULL at the end. Errors: IO; DATA (a longer line, a zero byte).
 */
rudder_status_t lines_next(lines_t *lines, char **line, rudder_error_t *error);
void lines_close(lines_t *lines);

#endif
