/*
 * What the program tells people: messages on standard error, and a progress line on a terminal. Rank 0 speaks; other
 * ranks speak only in errors and warnings, with their number in front. Respects NO_COLOR.
 */
#ifndef RUDDER_BASE_LOG_H
#define RUDDER_BASE_LOG_H

#include <stdint.h>

#include "rudder/status.h"

typedef enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level_t;

/* rank -1: one process, no rank in front. Not thread-safe; call at start. */
void log_setup(log_level_t level, int32_t rank, int progress);
void log_line(log_level_t level, const char *format, ...) __attribute__((format(printf, 2, 3))); /* thread-safe */
/* "rudder: file.npy: expected ..., found ... (RUDDER_E_DATA)" */
void log_error(const rudder_error_t *error);

/*
 * Progress of long work: on a terminal a bar that is redrawn at most 10 times a second, otherwise nothing (log_line()
 * tells the milestones). done of total; text is what stands behind the bar. total 0: no bar, only the text.
 */
void log_progress(int64_t done, int64_t total, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Erases the progress line. */
void log_progress_end(void);

/* Columns of the terminal behind a file descriptor, 0: none. Standard error of a rank counts as the launcher's. */
int32_t log_terminal_columns(int fd);

#endif
