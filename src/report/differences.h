/* Where two runs differ, in words. */
#ifndef RUDDER_REPORT_DIFFERENCES_H
#define RUDDER_REPORT_DIFFERENCES_H

#include "report/page.h"
#include "report/run.h"

/*
 * Compares settings, results (losses bit for bit, minibatch by minibatch), rows, decisions and times of A and B; reads
 * their steps once more, side by side. *same: 1 when nothing but names and times differs. Errors: IO, DATA, MEMORY.
 */
rudder_status_t differences_tell(page_t *page, const run_t *a, const run_t *b, int *same, rudder_error_t *error);

#endif
