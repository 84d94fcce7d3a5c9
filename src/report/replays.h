/* What `rudder replay --json` wrote, for reports: policies by capacity, against the bound. */
#ifndef RUDDER_REPORT_REPLAYS_H
#define RUDDER_REPORT_REPLAYS_H

#include "report/page.h"
#include "report/read.h"

/* One policy with one decider and capacity, on one trace or summed over the ranks of a run. */
typedef struct replays_row {
    char trace[256], policy[64], start[64], decider[64], rank[16];
    int64_t capacity_rows, remote_rows, fetched_rows;
    double hit_rows, fill_rows, bound_rows, epoch_seconds, bytes, asked, replaced, memory_bytes,
        window_mean; /* NAN: not known */
} replays_row_t;

typedef struct replays {
    char path[FILES_MAX_PATH];
    cJSON *file;
    int64_t n_rows;
    replays_row_t *row;
} replays_t;

/* Reads a file. Errors: IO, DATA (with file, row and reason), MEMORY. */
rudder_status_t replays_read(const char *path, replays_t *replay, rudder_error_t *error);
void replays_free(replays_t *replay);
/* Errors: MEMORY. */
rudder_status_t replays_report(page_t *page, const replays_t *replay, rudder_error_t *error);

#endif
