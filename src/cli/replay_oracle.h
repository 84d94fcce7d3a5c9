/*
 * `rudder replay --oracle`: what each decider's answers are worth, judged by the oracle (trace/oracle.h), over all ranks of
 * a run, for every policy with replacements and every capacity; and its decision points as JSON lines, by which deciders
 * can be judged or fitted later.
 */
#ifndef RUDDER_CLI_REPLAY_ORACLE_H
#define RUDDER_CLI_REPLAY_ORACLE_H

#include <stdio.h>

#include "base/json.h"
#include "trace/replay.h"

/* One policy with one capacity over the traces of a run. Nothing of it is copied. */
typedef struct oracle_case {
    const replay_job_t *job;                       /* its decider does not count */
    const char *trace, *policy, *start, *capacity; /* as tables call them */
} oracle_case_t;

typedef struct oracle_report oracle_report_t;

/*
 * Asks the oracle along the runs of all these deciders, of the rules, and of its own answers; states the memory first.
 * lines: where the points go, NULL: nowhere. horizon: minibatches, 0: ORACLE_PERIODS periods. Errors: as oracle_run(), IO, DATA.
 */
rudder_status_t oracle_report_make(const oracle_case_t *cases, int32_t n_cases, const char *const *deciders,
                                   int32_t n_deciders, int64_t horizon, int32_t threads, FILE *lines,
                                   oracle_report_t **report, rudder_error_t *error);
/* One table a case. Errors: MEMORY, IO. */
rudder_status_t oracle_report_print(const oracle_report_t *report, FILE *file, rudder_error_t *error);
/* An array "oracle" of an open object: the sums over the ranks of each case. */
void oracle_report_json(const oracle_report_t *report, json_t *json);
void oracle_report_close(oracle_report_t *report); /* NULL is allowed */

#endif
