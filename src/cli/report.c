/* rudder report: runs side by side, as one HTML page or as text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "report/replays.h"
#include "report/runs.h"

enum { REPORT_MAX = 64 };

typedef struct report_options {
    const char *output, *title;
} report_options_t;

static const option_spec_t report_specs[] = {
    {"output", 'o', OPTION_STRING, offsetof(report_options_t, output), NULL, "FILE.html",
     "The page to write; an earlier one is replaced. Unset: tables in plain text on standard output.", 0, 0, NULL,
     NULL},
    {"title", 0, OPTION_STRING, offsetof(report_options_t, title), "Rudder report", "TEXT", "Heading of the report.", 0,
     0, NULL, NULL},
    {0}};

static const option_command_t report_command = {
    .name = "report",
    .arguments = "RUN|REPLAY.json...",
    .summary = "what runs and replays did, side by side: a page with charts, or tables",
    .text = "Reads the folders that \"rudder train\" leaves and the files of \"rudder replay --json\". The page is one "
            "HTML file without "
            "script and without anything from elsewhere: it can be mailed, archived and read anywhere, light or dark "
            "as the browser likes "
            "it. Runs are named A, B, C ... in the order of the command line, at most 26. A run that was interrupted "
            "or killed is shown as "
            "far as it got.\n"
            "\n"
            "Examples:\n"
            "  rudder report runs/a                              tables on the terminal\n"
            "  rudder report runs/none runs/lfu -o report.html   a page that compares two runs\n"
            "  rudder report runs/lfu replay.json -o all.html    a run, and what other policies would have done\n"
            "\n"
            "Rows fetched are misses and fill rows of all ranks, as in summary.json. Where runs recorded their traces "
            "(rudder train "
            "--record), rows are shown against the bound: what the best possible buffer of the same size would have "
            "fetched. Colours differ "
            "in lightness and lines in dashes and markers, so that a print in grey can be read.\n"
            "\n"
            "\"rudder diff RUN_A RUN_B\" says in words where two runs differ.",
    .min_arguments = 1,
    .max_arguments = REPORT_MAX,
    .options = report_specs};

/* What was read, in the order of the command line. */
typedef struct report_input {
    int32_t n_runs, n_replays;
    run_t run[RUNS_MAX];
    replays_t replay[REPORT_MAX];
} report_input_t;

static rudder_status_t report_read(const char *path, report_input_t *input, rudder_error_t *error)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        RUDDER_TRY(replays_read(path, &input->replay[input->n_replays], error));
        input->n_replays++;
        return RUDDER_OK;
    }
    if (input->n_runs == RUNS_MAX) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "expected at most %d runs, found more", RUNS_MAX);
    }
    RUDDER_TRY(run_load(path, &input->run[input->n_runs], error));
    input->n_runs++;
    return RUDDER_OK;
}

/* One recorded run is enough for all that trained on the same minibatches. */
static rudder_status_t report_share_bounds(report_input_t *input, rudder_error_t *error)
{
    for (int32_t i = 0; i < input->n_runs; i++) {
        for (int32_t j = 0; j < input->n_runs; j++) {
            if (i != j) {
                RUDDER_TRY(run_find_bound(&input->run[i], &input->run[j], error));
            }
        }
    }
    return RUDDER_OK;
}

static void report_free(report_input_t *input)
{
    while (input->n_runs > 0) {
        run_free(&input->run[--input->n_runs]);
    }
    while (input->n_replays > 0) {
        replays_free(&input->replay[--input->n_replays]);
    }
    free(input);
}

static void report_subtitle(const report_input_t *input, char *text, size_t size)
{
    const run_t *run = &input->run[0];
    int n = 0;
    text[0] = '\0';
    if (input->n_runs > 0) {
        n = snprintf(text, size, "%d run%s%s%s, %d rank%s", (int)input->n_runs, input->n_runs == 1 ? "" : "s",
                     run->graph[0] != '\0' ? " on " : "", run->graph, (int)run->n_ranks, run->n_ranks == 1 ? "" : "s");
    }
    if (input->n_replays > 0) {
        snprintf(text + n, size - (size_t)n, "%s%d replay%s", n > 0 ? "; " : "", (int)input->n_replays,
                 input->n_replays == 1 ? "" : "s");
    }
}

static rudder_status_t report_print(const report_options_t *options, const report_input_t *input, FILE *file,
                                    rudder_error_t *error)
{
    char title[256], subtitle[256];
    page_t page;
    snprintf(title, sizeof title, "%s", options->title);
    text_clean(title);
    report_subtitle(input, subtitle, sizeof subtitle);
    page_begin(&page, options->output != NULL, file, title, subtitle);
    if (input->n_runs > 0) {
        RUDDER_TRY(runs_report(&page, input->run, input->n_runs, error));
    }
    for (int32_t i = 0; i < input->n_replays; i++) {
        RUDDER_TRY(replays_report(&page, &input->replay[i], error));
    }
    return page_end(&page, error);
}

/* All or nothing: a page that could not be written to its end does not take the place of an earlier one. */
static rudder_status_t report_write(const report_options_t *options, const report_input_t *input, rudder_error_t *error)
{
    char part[FILES_MAX_PATH];
    if (snprintf(part, sizeof part, "%s.part", options->output) >= (int)sizeof part) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--output: expected a path of less than %d bytes",
                           FILES_MAX_PATH - 5);
    }
    FILE *file = fopen(part, "we");
    if (file == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be made: %s", part, strerror(errno));
    }
    rudder_status_t status = report_print(options, input, file, error);
    if ((fclose(file) != 0 || (status == RUDDER_OK && rename(part, options->output) != 0)) && status == RUDDER_OK) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", options->output, strerror(errno));
    }
    if (status != RUDDER_OK) {
        unlink(part);
    }
    return status;
}

int cli_report(int argc, char **argv)
{
    report_options_t options;
    const char *path[REPORT_MAX];
    int32_t n = 0;
    int exit_code = 0;
    rudder_error_t error;
    if (!cli_options(&report_command, argc, argv, &options, path, &n, &exit_code)) {
        return exit_code;
    }
    log_setup(LOG_INFO, -1, 1);
    report_input_t *input = calloc(1, sizeof *input);
    if (input == NULL) {
        RUDDER_FAIL(&error, RUDDER_E_MEMORY, "no memory for a report");
        return cli_fail(&error);
    }
    rudder_status_t status = RUDDER_OK;
    for (int32_t i = 0; i < n && status == RUDDER_OK; i++) {
        status = report_read(path[i], input, &error);
    }
    if (status == RUDDER_OK) {
        status = report_share_bounds(input, &error);
    }
    if (status == RUDDER_OK) {
        status = options.output != NULL ? report_write(&options, input, &error)
                                        : report_print(&options, input, stdout, &error);
    }
    report_free(input);
    return status == RUDDER_OK ? 0 : cli_fail(&error);
}
