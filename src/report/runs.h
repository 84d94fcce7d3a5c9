/* What a report says of training runs, side by side: tables for both forms of a page, charts for the HTML one. */
#ifndef RUDDER_REPORT_RUNS_H
#define RUDDER_REPORT_RUNS_H

#include "report/page.h"
#include "report/run.h"

enum { RUNS_MAX = 26 }; /* a letter each */

/* Runs are called by letter and label: "B lfu". Errors: MEMORY. */
rudder_status_t runs_report(page_t *page, const run_t *run, int n, rudder_error_t *error);

#endif
