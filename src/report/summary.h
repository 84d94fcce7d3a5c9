/* What a run tells at its end: summary.json for programs (docs/formats.md), a table for people. */
#ifndef RUDDER_REPORT_SUMMARY_H
#define RUDDER_REPORT_SUMMARY_H

#include <stdio.h>

#include "rudder/status.h"
#include "train/train.h"

/* What the options said; NULL where the library chose. */
typedef struct summary_choice {
    const char *policy, *start, *decider, *mode, *link, *name;
} summary_choice_t;

/* Writes DIR/summary.json: all or nothing. Errors: IO, MEMORY. */
rudder_status_t summary_write(const train_result_t *result, const summary_choice_t *choice, rudder_error_t *error);
/* Prints the tables per rank and in total. Errors: IO, MEMORY. */
rudder_status_t summary_print(const train_result_t *result, FILE *file, rudder_error_t *error);

#endif
