/*
 * What one call of `rudder replay` works with: the traces, read once; every replay that was asked for, with its size; the
 * results of the replays and of the bound beside them.
 */
#ifndef RUDDER_CLI_LABORATORY_H
#define RUDDER_CLI_LABORATORY_H

#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "cli/capacity.h"
#include "cli/replay_choices.h"
#include "cli/replay_oracle.h"
#include "trace/replay.h"
#include "trace/scan.h"

enum { LABORATORY_MOST_TRACES = 4096, LABORATORY_PATH = 4096 };

typedef struct replay_options {
    const char *policy, *decider, *capacity, *start, *max_tracked, *link, *link_schedule, *owner_cost, *fallback,
        *latencies, *model, *oracle, *json, *csv;
    int64_t horizon, period, seed, window_memory, depth, row_bytes, deadline_ms, late_after, agent_memory, agent_nice,
        threads;
    double alpha, sample, compute, decision_latency;
    int overlap, mode, answer, per_rank;
} replay_options_t;

/* A replay and where it stands in the lists. */
typedef struct laboratory_job {
    replay_job_t replay;
    int32_t group, policy, decider, capacity; /* decider -1: none */
} laboratory_job_t;

/* Everything of one call. Zeroed: nothing. */
typedef struct laboratory {
    const option_command_t *command; /* whose options these are */
    replay_options_t options;
    policy_choice_t policy[CHOICES_MOST];
    decider_choice_t decider[CHOICES_MOST];
    capacity_choice_t capacity[CHOICES_MOST];
    int32_t n_policies, n_deciders, n_capacities;
    train_capacity_t max_tracked; /* all below 0: all */
    replay_settings_t settings;
    clock_change_t *changes;
    double *owner_cost, *latency;
    int64_t n_latency;
    char model[LABORATORY_PATH], program[LABORATORY_PATH], job[32];

    char **path; /* [n_traces] */
    int32_t n_traces, n_groups;
    scan_t *scan;
    const scan_t **by;   /* [n_traces], groups together */
    scan_group_t *group; /* [n_groups] */
    _Atomic int64_t progress;

    int64_t *rows;    /* [n_traces][n_capacities], traces as in `by` */
    int64_t *tracked; /* likewise */
    int64_t *bound;   /* likewise: rows fetched */
    int32_t n_jobs;
    laboratory_job_t *jobs;
    replay_result_t *results;
    int32_t threads;

    FILE *oracle_lines;
    oracle_case_t *cases;
    char (*case_name)[LABORATORY_PATH];
    oracle_report_t *oracle;
} laboratory_t;

/* Reads what the arguments name: files, and folders of runs with all their ranks. Errors: IO, DATA, USAGE, MEMORY. */
rudder_status_t laboratory_open(laboratory_t *lab, const char **arguments, int32_t n, rudder_error_t *error);
/* The rows of every trace and capacity, and then the replays. Errors: USAGE, MEMORY. */
rudder_status_t laboratory_list(laboratory_t *lab, rudder_error_t *error);
/* States the memory and runs everything over threads. Errors: those of replay_run(). */
rudder_status_t laboratory_run(laboratory_t *lab, rudder_error_t *error);
/* What a group of traces is called: its file, or the folder of a run. text[size]. Returns the name. */
const char *laboratory_name(const scan_group_t *group, char *text, size_t size);
/* Prints the tables and writes the files that were asked for. Errors: IO, MEMORY. */
rudder_status_t laboratory_tell(const laboratory_t *lab, int argc, char **argv, rudder_error_t *error);
/* Frees everything, the laboratory itself too. NULL is allowed. */
void laboratory_close(laboratory_t *lab);

#endif
