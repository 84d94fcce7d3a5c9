/* What the files of the report on runs share. */
#ifndef RUDDER_REPORT_RUNS_PARTS_H
#define RUDDER_REPORT_RUNS_PARTS_H

#include "report/runs.h"

enum { RUNS_OVERLAY = HTML_STYLES }; /* runs in one chart, so that no two look alike */

/* Points of one line. */
typedef struct runs_line {
    double x[SERIES_BINS], y[SERIES_BINS], low[SERIES_BINS], high[SERIES_BINS], other[SERIES_BINS];
} runs_line_t;

typedef struct runs {
    const run_t *run;
    int n;
    char name[RUNS_MAX][80];       /* "B (lfu)" */
    char short_name[RUNS_MAX][96]; /* "B lfu", cut for charts */
    double epoch_mean[RUNS_MAX], epoch_low[RUNS_MAX], epoch_high[RUNS_MAX];
    runs_line_t *line; /* [RUNS_OVERLAY], for the chart that is drawn */
} runs_t;

typedef int (*runs_has_t)(const run_t *run);
int runs_any(const runs_t *runs, runs_has_t has);
int runs_has_bound(const run_t *run);
int runs_is_emulated(const run_t *run);
int runs_has_decisions(const run_t *run);
int runs_same_losses(const runs_t *runs);
const char *runs_how(const run_t *run, char *text, size_t size);

void runs_courses(page_t *page, const runs_t *runs);   /* over the minibatches */
void runs_times(page_t *page, const runs_t *runs);     /* per thread and rank */
void runs_traffic(page_t *page, const runs_t *runs);   /* rank by rank */
void runs_decisions(page_t *page, const runs_t *runs); /* and what followed */

#endif
