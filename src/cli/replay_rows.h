/*
 * What `rudder replay` tells: one row for each replay, summed over the ranks of a run, and for each rank if asked. The same
 * rows become a table, JSON and CSV.
 */
#ifndef RUDDER_CLI_REPLAY_ROWS_H
#define RUDDER_CLI_REPLAY_ROWS_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "rudder/status.h"

/* Numbers that are not known: -1, or NAN. */
typedef struct replay_row {
    int32_t group, capacity, number; /* order of traces and capacities on the command line; of the replay */
    const char *trace;               /* path; of a run: its folder */
    const char *policy;              /* "bound": what no policy can beat */
    const char *start, *decider;     /* NULL: none */
    const char *capacity_text;
    int32_t rank; /* -1: all */
    int64_t capacity_rows, minibatches;
    int64_t remote, hit, fetched, fill, bytes, bound;
    int64_t asked, replaced, late, memory;
    double epoch_seconds, fetch_seconds, wait_seconds, window_mean;
} replay_row_t;

/* 100 x rows not fetched / remote rows; NAN without any. */
double replay_row_saved(const replay_row_t *row);
double replay_row_hits(const replay_row_t *row);
/* 100 x what is saved / what the bound saves; NAN where that is nothing. */
double replay_row_of_bound(const replay_row_t *row);

/*
 * By trace, capacity, rows fetched over all ranks; the bound first, ranks under their sum (behind which they must stand).
 * Errors: MEMORY.
 */
rudder_status_t replay_rows_sort(replay_row_t *rows, int64_t n, rudder_error_t *error);

/* Rows of one trace, sorted. Columns of which nothing is known are left out. Errors: MEMORY, IO. */
rudder_status_t replay_rows_print(const replay_row_t *rows, int64_t n, FILE *file, rudder_error_t *error);
/* An array "rows" of an open object. Files have the bound as a column, not as rows. */
void replay_rows_json(json_t *json, const replay_row_t *rows, int64_t n);
/* Errors: IO. */
rudder_status_t replay_rows_csv(const char *path, const replay_row_t *rows, int64_t n, rudder_error_t *error);

#endif
