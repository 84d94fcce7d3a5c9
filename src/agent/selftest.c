/* Runs the situations through a model, one by one, then some of them together and some in json mode. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/backend.h"
#include "agent/selftest.h"
#include "agent/situations.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "report/table.h"

enum { SELFTEST_TOGETHER = 4, SELFTEST_TOGETHER_ROUNDS = 4, SELFTEST_JSON = 10, SELFTEST_WORDS = 512 };

typedef struct selftest {
    const selftest_config_t *config;
    FILE *file;
    const backend_t *backend;
    void *self;
    situation_t *situations;
    int32_t n;
    rudder_answer_t *answers; /* [n], score mode; latency_ms is CPU time */
    double *wall;             /* [n] ms */
    int32_t tail_mean, tail_most;
} selftest_t;

static double selftest_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int selftest_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Asks `count` situations, `step` apart, at once. Times are those of the whole round. */
static rudder_status_t selftest_ask(selftest_t *test, int32_t first, int32_t step, int32_t count,
                                    rudder_answer_mode_t mode, rudder_answer_t *answers, double *wall_ms,
                                    double *cpu_ms, rudder_error_t *error)
{
    char words[SELFTEST_TOGETHER][SELFTEST_WORDS];
    backend_question_t questions[SELFTEST_TOGETHER];
    rudder_status_t statuses[SELFTEST_TOGETHER];
    for (int32_t i = 0; i < count; i++) {
        const situation_t *situation = &test->situations[first + i * step];
        const int length = rudder_context_words(&situation->context, words[i], sizeof words[i]);
        questions[i] = (backend_question_t){mode, words[i], length};
    }
    const double wall = clock_seconds(), cpu = selftest_cpu();
    test->backend->ask(test->self, questions, count, answers, statuses);
    *wall_ms = 1e3 * (clock_seconds() - wall);
    *cpu_ms = 1e3 * (selftest_cpu() - cpu);
    for (int32_t i = 0; i < count; i++) {
        if (statuses[i] != RUDDER_OK) {
            return RUDDER_FAIL(error, statuses[i], "situation %s was not answered",
                               test->situations[first + i * step].name);
        }
    }
    return RUDDER_OK;
}

static rudder_status_t selftest_score(selftest_t *test, rudder_error_t *error)
{
    for (int32_t i = 0; i < test->n; i++) {
        const situation_t *situation = &test->situations[i];
        rudder_answer_t *answer = &test->answers[i];
        RUDDER_TRY(
            selftest_ask(test, i, 1, 1, RUDDER_ANSWER_SCORE, answer, &test->wall[i], &answer->latency_ms, error));
        log_progress(i + 1, test->n, "situations");
        if (test->config->verbose || answer->verdict != situation->expect) {
            fprintf(test->file, "%s %-24s margin %+6.2f, saving / cost %8.3f: %s\n",
                    answer->verdict == situation->expect ? "right" : "WRONG", situation->name, answer->margin,
                    situation->context.saving_rows / situation->context.cost_rows, answer->prompt);
        }
    }
    log_progress_end();
    return RUDDER_OK;
}

/* One row of the table: the situations of a kind (all: SITUATION_KINDS) that expect `expect` (both: NO_VERDICT). */
static int32_t selftest_row(const selftest_t *test, table_t *table, const char *name, situation_kind_t kind,
                            rudder_verdict_t expect)
{
    int32_t total = 0, right = 0, gain = 0;
    for (int32_t i = 0; i < test->n; i++) {
        const situation_t *situation = &test->situations[i];
        if ((kind == SITUATION_KINDS || situation->kind == kind) &&
            (expect == RUDDER_NO_VERDICT || situation->expect == expect)) {
            const rudder_verdict_t rule =
                situation->context.saving_rows > situation->context.cost_rows ? RUDDER_REPLACE : RUDDER_KEEP;
            total++;
            right += test->answers[i].verdict == situation->expect;
            gain += rule == situation->expect;
        }
    }
    if (total > 0) {
        table_cell(table, "%s", name);
        table_cell(table, "%d", (int)total);
        table_cell(table, "%d", (int)right);
        table_cell(table, "%.1f %%", 100. * right / total);
        table_cell(table, "%.1f %%", 100. * gain / total);
        table_cell(table, "50.0 %%");
    }
    return right;
}

static rudder_status_t selftest_quality(const selftest_t *test, int32_t *right, rudder_error_t *error)
{
    table_t *table = table_open("lrrr|rr");
    if (table == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a table");
    }
    static const char *const header[] = {"situations", "number", "right", "model", "gain", "chance"};
    for (size_t i = 0; i < sizeof header / sizeof header[0]; i++) {
        table_cell(table, "%s", header[i]);
    }
    table_line(table);
    selftest_row(test, table, "clear, replace", SITUATION_CLEAR, RUDDER_REPLACE);
    selftest_row(test, table, "clear, keep", SITUATION_CLEAR, RUDDER_KEEP);
    selftest_row(test, table, "conflicting, replace", SITUATION_CONFLICTING, RUDDER_REPLACE);
    selftest_row(test, table, "conflicting, keep", SITUATION_CONFLICTING, RUDDER_KEEP);
    selftest_row(test, table, "close, replace", SITUATION_CLOSE, RUDDER_REPLACE);
    selftest_row(test, table, "close, keep", SITUATION_CLOSE, RUDDER_KEEP);
    table_line(table);
    *right = selftest_row(test, table, "all", SITUATION_KINDS, RUDDER_NO_VERDICT);
    const rudder_status_t status = table_print(table, test->file, error);
    table_close(table);
    return status;
}

/* How far apart the margins of both answers lie, and the threshold that would split them best: what a new prompt needs. */
static void selftest_margins(const selftest_t *test)
{
    double low[2] = {1e9, 1e9}, high[2] = {-1e9, -1e9}, best_threshold = 0;
    int64_t ordered = 0, pairs = 0;
    int32_t best = -1;
    for (int32_t i = 0; i < test->n; i++) {
        const rudder_verdict_t expect = test->situations[i].expect;
        const double margin = test->answers[i].margin;
        int32_t right = 0;
        low[expect] = margin < low[expect] ? margin : low[expect];
        high[expect] = margin > high[expect] ? margin : high[expect];
        for (int32_t j = 0; j < test->n; j++) {
            right += (test->answers[j].margin > margin) == (test->situations[j].expect == RUDDER_REPLACE);
            if (expect == RUDDER_REPLACE && test->situations[j].expect == RUDDER_KEEP) {
                pairs += 2;
                ordered += 2 * (margin > test->answers[j].margin) + (margin == test->answers[j].margin);
            }
        }
        if (right > best) {
            best = right;
            best_threshold = margin;
        }
    }
    fprintf(test->file,
            "margins: replace %+.2f .. %+.2f, keep %+.2f .. %+.2f; AUC %.3f; best cut just above %+.2f (%d right)\n",
            low[RUDDER_REPLACE], high[RUDDER_REPLACE], low[RUDDER_KEEP], high[RUDDER_KEEP],
            pairs > 0 ? (double)ordered / (double)pairs : 0, best_threshold, (int)best);
}

/* One row of the table of times: n rounds of `together` questions. */
static void selftest_times(table_t *table, const char *name, double *wall, double *cpu, int32_t n, int32_t together,
                           double tokens)
{
    double wall_sum = 0, cpu_sum = 0;
    for (int32_t i = 0; i < n; i++) {
        wall_sum += wall[i];
        cpu_sum += cpu[i];
    }
    qsort(wall, (size_t)n, sizeof *wall, selftest_by_value);
    table_cell(table, "%s", name);
    table_cell(table, "%.1f", tokens);
    table_cell(table, "%.0f", cpu_sum / n / together);
    table_cell(table, "%.0f", wall_sum / n);
    table_cell(table, "%.0f", wall[n / 2]);
    table_cell(table, "%.0f", wall[(int32_t)(.99 * (n - 1) + .5)]);
}

static rudder_status_t selftest_speed(selftest_t *test, int32_t *read, rudder_error_t *error)
{
    rudder_answer_t answers[SELFTEST_TOGETHER];
    double wall[SELFTEST_JSON], cpu[SELFTEST_JSON], tokens = 0;
    double *all_cpu = malloc((size_t)test->n * sizeof *all_cpu);
    table_t *table = table_open("lr|rrrr");
    rudder_status_t status = RUDDER_OK;
    if (table == NULL || all_cpu == NULL) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a table");
        goto done;
    }
    static const char *const header[] = {"mode", "tokens", "CPU ms", "mean ms", "p50 ms", "p99 ms"};
    for (size_t i = 0; i < sizeof header / sizeof header[0]; i++) {
        table_cell(table, "%s", header[i]);
    }
    table_line(table);
    for (int32_t i = 0; i < test->n; i++) {
        all_cpu[i] = test->answers[i].latency_ms;
        tokens += test->answers[i].tokens;
    }
    selftest_times(table, "score, one at a time", test->wall, all_cpu, test->n, 1, tokens / test->n);
    tokens = 0;
    const int32_t rounds =
        test->n / SELFTEST_TOGETHER < SELFTEST_TOGETHER_ROUNDS ? test->n / SELFTEST_TOGETHER : SELFTEST_TOGETHER_ROUNDS;
    for (int32_t i = 0; i < rounds && status == RUDDER_OK; i++) {
        status =
            selftest_ask(test, i, rounds, SELFTEST_TOGETHER, RUDDER_ANSWER_SCORE, answers, &wall[i], &cpu[i], error);
        for (int32_t j = 0; j < SELFTEST_TOGETHER && status == RUDDER_OK; j++) {
            tokens += answers[j].tokens;
        }
    }
    if (status == RUDDER_OK && rounds > 0) {
        selftest_times(table, "score, four together", wall, cpu, rounds, SELFTEST_TOGETHER,
                       tokens / rounds / SELFTEST_TOGETHER);
    }
    tokens = 0;
    const int32_t json = test->n < SELFTEST_JSON ? test->n : SELFTEST_JSON;
    for (int32_t i = 0; i < json && status == RUDDER_OK; i++) {
        status = selftest_ask(test, i * (test->n / json), 1, 1, RUDDER_ANSWER_JSON, answers, &wall[i], &cpu[i], error);
        if (status == RUDDER_OK) {
            tokens += answers[0].tokens;
            *read += answers[0].verdict != RUDDER_NO_VERDICT && answers[0].predict_hits != RUDDER_NO_PREDICTION &&
                     answers[0].predict_rows != RUDDER_NO_PREDICTION && answers[0].explanation[0] != '\0';
            if (test->config->verbose) {
                fprintf(test->file, "json  %-24s %s, hits %+d, rows %+d: %s\n",
                        test->situations[i * (test->n / json)].name,
                        answers[0].verdict == RUDDER_REPLACE ? "yes" : "no", (int)answers[0].predict_hits,
                        (int)answers[0].predict_rows, answers[0].explanation);
            }
        }
    }
    if (status == RUDDER_OK) {
        selftest_times(table, "json, one at a time", wall, cpu, json, 1, tokens / json);
        fputc('\n', test->file);
        status = table_print(table, test->file, error);
    }
    if (status == RUDDER_OK) {
        fprintf(test->file, "json: %d of %d answers read, with both predictions and an explanation\n", (int)*read,
                (int)json);
        *read = *read == json;
    }
done:
    table_close(table);
    free(all_cpu);
    return status;
}

rudder_status_t selftest_run(const selftest_config_t *config, FILE *file, int *passed, rudder_error_t *error)
{
    selftest_t test = {.config = config, .file = file};
    /* With facts in the head as a run has them: they are part of what the model was judged with. */
    backend_config_t backend = {NULL, "graph wordnet, 117659 nodes, 4 ranks, buffer 8900 rows of 1024 bytes",
                                RUDDER_ANSWER_JSON, config->debug};
    int32_t right = 0, read = 0;
    rudder_status_t status;
    *passed = 0;
    RUDDER_TRY(situations_read(config->situations, &test.situations, &test.n, error));
    test.answers = calloc((size_t)test.n + 1, sizeof *test.answers);
    test.wall = calloc((size_t)test.n + 1, sizeof *test.wall);
    if (test.answers == NULL || test.wall == NULL || test.n == 0) {
        status = test.n == 0 ? RUDDER_FAIL(error, RUDDER_E_DATA, "%s has no situations", config->situations)
                             : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the answers");
        goto done;
    }
    status = backend_find(config->model, &test.backend, &backend.model, error);
    const double start = clock_seconds();
    if (status == RUDDER_OK) {
        status = test.backend->open(&backend, &test.self, error);
    }
    if (status == RUDDER_OK) {
        fprintf(file, "model %s: ready in %.1f s\n", backend.model, clock_seconds() - start);
        status = selftest_score(&test, error);
    }
    if (status == RUDDER_OK) {
        status = selftest_quality(&test, &right, error);
    }
    if (status == RUDDER_OK) {
        selftest_margins(&test);
        status = selftest_speed(&test, &read, error);
    }
    if (status == RUDDER_OK) {
        *passed = read && 100 * right >= 95 * test.n;
        fprintf(file, "%s: %d of %d right (95 %% asked for); the rule gain is right by construction\n",
                *passed ? "passed" : "FAILED", (int)right, (int)test.n);
    }
done:
    if (test.self != NULL) {
        test.backend->close(test.self);
    }
    free(test.wall);
    free(test.answers);
    free(test.situations);
    return status;
}
