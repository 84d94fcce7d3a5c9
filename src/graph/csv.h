/*
 * Numbers from .csv and .csv.gz files without a header line: a stream of fields, one number each. Gzip files may have
 * several members. Scanning does not depend on the locale.
 */
#ifndef RUDDER_GRAPH_CSV_H
#define RUDDER_GRAPH_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "rudder/status.h"

typedef struct csv csv_t;

/* Opens `path`, or `path`.gz where that exists. Errors: IO, MEMORY. */
rudder_status_t csv_open(const char *path, csv_t **csv, rudder_error_t *error);
void csv_close(csv_t *csv); /* NULL is allowed */

/* Whether there is another line; to be asked at the start of one only. Errors: DATA (damaged or cut-off gzip), IO. */
rudder_status_t csv_more(csv_t *csv, int *more, rudder_error_t *error);

/*
 * The next field of the line as a whole number. *last is 1 when the line ends behind it. Errors: DATA with file, line,
 * column, what was expected and found.
 */
rudder_status_t csv_int(csv_t *csv, int64_t *value, int *last, rudder_error_t *error);
/* The same as a float; an empty field and "nan" are NaN. */
rudder_status_t csv_float(csv_t *csv, float *value, int *last, rudder_error_t *error);

/* "file:line" of the field read last, for messages of the caller. */
const char *csv_where(csv_t *csv);
/* How far reading is, for progress: bytes of the file read, and its size. */
void csv_progress(const csv_t *csv, int64_t *done, int64_t *total);

/* Scans all n letters of text as a number; 0: it is none. Whole numbers must fit. text needs no NUL. */
int csv_scan_int(const char *text, size_t n, int64_t *value);
/* Rounds to double, then to float, as NumPy reads such files. Empty text is NaN. */
int csv_scan_float(const char *text, size_t n, float *value);

#endif
