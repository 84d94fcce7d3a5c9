/* Texts that people write and read: sizes, rates, times, near misses. */
#ifndef RUDDER_BASE_TEXT_H
#define RUDDER_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "rudder/status.h"

/*
 * All of these read the whole text, whatever the locale, and fail with USAGE: "WHAT: expected ..., found ...", where
 * `what` names the option. Outputs are set on success only.
 */

/* "4096", "64KiB", "64MiB", "1.5GiB", "2GB" -> bytes. */
rudder_status_t text_bytes(const char *text, const char *what, int64_t *bytes, rudder_error_t *error);
/* "1Gbit", "200Mbit", "10Kbit" (a second) -> bytes a second. */
rudder_status_t text_rate(const char *text, const char *what, double *bytes_per_second, rudder_error_t *error);
/* "50us", "2ms", "1.5s" -> seconds. */
rudder_status_t text_seconds(const char *text, const char *what, double *seconds, rudder_error_t *error);
rudder_status_t text_int(const char *text, const char *what, int64_t low, int64_t high, int64_t *value,
                         rudder_error_t *error);
rudder_status_t text_float(const char *text, const char *what, double low, double high, double *value,
                           rudder_error_t *error);

/* Formats bytes for people: "98.4 MB" (powers of 1000). Returns text. */
char *text_of_bytes(int64_t bytes, char *text, size_t text_size);
/* Formats an integer with thin grouping: "1 234 567". Returns text. */
char *text_of_count(int64_t count, char *text, size_t text_size);

/*
 * Bytes of the valid UTF-8 sequence that text begins with, 0 when it is none. The text ends with NUL, which is never a
 * continuation.
 */
size_t text_sequence(const char *text);
/* Makes a text of unknown origin one valid line of UTF-8 that steers no terminal: what is odd in it becomes '?'. */
void text_clean(char *text);

/* Columns that a UTF-8 text takes on a terminal, counted as code points. */
int32_t text_columns(const char *text);

/* The candidate nearest to `word` by edit distance, NULL when none is near (more than a third of its letters off). */
const char *text_nearest(const char *word, const char *const *candidates, int32_t n);

#endif
