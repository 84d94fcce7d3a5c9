/*
 * Reading the files that others wrote for reports: JSON, and the lines of steps.rankN.jsonl and decisions.rankN.jsonl. They
 * may be damaged or hostile: sizes, depths and numbers are checked, and texts are freed of control characters, so that
 * nothing in them steers a terminal. Every error names file, line, what was expected and what was found.
 */
#ifndef RUDDER_REPORT_READ_H
#define RUDDER_REPORT_READ_H

#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "graph/files.h"
#include "rudder/decider.h"
#include "rudder/status.h"

enum { READ_PARTS = 6 };

/* The parts that each thread's time is split into; of the first list the last, of the second the first is waiting. */
extern const char *const read_loader_parts[READ_PARTS];  /* sample, plan, exchange, complete, gather, idle */
extern const char *const read_compute_parts[READ_PARTS]; /* wait, forward, backward, allreduce, step, evaluate */

/* A line of steps.rankN.jsonl. What it does not say is NAN. */
typedef struct read_step {
    int64_t epoch, step, remote, hit, miss, fill, bytes;
    double loss, window;
    double loader[READ_PARTS], compute[READ_PARTS];
} read_step_t;

/* A line of decisions.rankN.jsonl. Numbers that are not known are NAN, texts "". */
typedef struct read_decision {
    int32_t rank;
    int64_t number, asked, answered, applied, replaced_rows;
    rudder_outcome_status_t status;
    int from_fallback;
    char verdict[8];                   /* "replace", "keep", "none" */
    char said[2][8];                   /* predicted of hits and rows: "up", "same", "down" or "" */
    int came_true[2];                  /* 1, 0; -1: not known */
    double margin, latency_ms, tokens; /* of the answer */
    double hit_rate_change, fetched_change;
    double hit_rate, saving_rows, cost_rows; /* of the window that was decided on */
    char prompt[512], explanation[256];
} read_decision_t;

/* ---- lines of the .jsonl files, one after the other ---- */

typedef struct read_lines {
    char path[FILES_MAX_PATH + 64]; /* "FILE:LINE" of the last line, for messages */
    size_t path_length;
    FILE *file;
    int64_t line;
    char *text;
} read_lines_t;

/* Errors: IO. *found is 0 when there is no such file. */
rudder_status_t read_lines_open(const char *directory, const char *kind, int32_t rank, read_lines_t *lines, int *found,
                                rudder_error_t *error);
/* A file of one's own, for tests. */
void read_lines_attach(FILE *file, const char *name, read_lines_t *lines);
/* The next line; *end is 1 after the last whole one. Errors: DATA. */
rudder_status_t read_next_step(read_lines_t *lines, read_step_t *step, int *end, rudder_error_t *error);
rudder_status_t read_next_decision(read_lines_t *lines, read_decision_t *decision, int *end, rudder_error_t *error);
void read_lines_close(read_lines_t *lines);

/* ---- JSON ---- */

/* Reads a JSON object of at most `most` bytes; its texts are valid UTF-8 without control characters. */
rudder_status_t read_json(const char *path, int64_t most, cJSON **object, rudder_error_t *error);
/* NAN when the member is missing or null. Errors: DATA (it is something else). */
rudder_status_t read_number(const cJSON *object, const char *key, const char *where, double *value,
                            rudder_error_t *error);
/* "" when the member is missing or null; cut to size - 1 bytes. Errors: DATA. */
rudder_status_t read_text(const cJSON *object, const char *key, const char *where, char *text, size_t size,
                          rudder_error_t *error);
/* Any value as people write it, "-" for none, to be freed; NULL: out of memory. */
char *read_value_text(const cJSON *item);
/* A whole number in 0 .. 2^53. Errors: DATA (also when it is missing). */
rudder_status_t read_count(const cJSON *object, const char *key, const char *where, int64_t *value,
                           rudder_error_t *error);

#endif
