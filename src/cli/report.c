/* rudder report: runs side by side, as one HTML page or as text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "report/runs.h"

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
    .arguments = "RUN...",
    .summary = "what runs did, side by side: a page with charts, or tables in plain text",
    .text = "Reads the folders that \"rudder train\" leaves. The page is one HTML file without script and without "
            "anything from "
            "elsewhere: it can be mailed, archived and read anywhere, light or dark as the browser likes it. Runs are "
            "named A, B, C "
            "... in the order of the command line. A run that was interrupted or killed is shown as far as it got.\n"
            "\n"
            "Examples:\n"
            "  rudder report runs/a                              tables on the terminal\n"
            "  rudder report runs/none runs/lfu -o report.html   a page that compares two runs\n"
            "  rudder report build/quickstart/runs/*/* -o quickstart.html\n"
            "\n"
            "Rows fetched are misses and fill rows of all ranks, as in summary.json. Where runs recorded their traces "
            "(rudder train "
            "--record), rows are shown against the bound: what the best possible buffer of the same size would have "
            "fetched.",
    .min_arguments = 1,
    .max_arguments = RUNS_MAX,
    .options = report_specs};

static rudder_status_t report_print(const report_options_t *options, const run_t *run, int n, FILE *file,
                                    rudder_error_t *error)
{
    char title[256], subtitle[256];
    page_t page;
    snprintf(title, sizeof title, "%s", options->title);
    text_clean(title);
    snprintf(subtitle, sizeof subtitle, "%d run%s%s%s, %d rank%s", n, n == 1 ? "" : "s",
             run->graph[0] != '\0' ? " on " : "", run->graph, (int)run->n_ranks, run->n_ranks == 1 ? "" : "s");
    page_begin(&page, options->output != NULL, file, title, subtitle);
    RUDDER_TRY(runs_report(&page, run, n, error));
    return page_end(&page, error);
}

/* All or nothing: a page that could not be written to its end does not take the place of an earlier one. */
static rudder_status_t report_write(const report_options_t *options, const run_t *run, int n, rudder_error_t *error)
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
    rudder_status_t status = report_print(options, run, n, file, error);
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
    const char *path[RUNS_MAX];
    run_t *run;
    int32_t n = 0, loaded = 0;
    int exit_code = 0;
    rudder_error_t error;
    if (!cli_options(&report_command, argc, argv, &options, path, &n, &exit_code)) {
        return exit_code;
    }
    log_setup(LOG_INFO, -1, 1);
    run = calloc((size_t)n, sizeof *run);
    rudder_status_t status =
        run != NULL ? RUDDER_OK : RUDDER_FAIL(&error, RUDDER_E_MEMORY, "no memory for %d runs", (int)n);
    while (status == RUDDER_OK && loaded < n) {
        status = run_load(path[loaded], &run[loaded], &error);
        loaded += status == RUDDER_OK;
    }
    if (status == RUDDER_OK) {
        status = options.output != NULL ? report_write(&options, run, n, &error)
                                        : report_print(&options, run, n, stdout, &error);
    }
    if (status == RUDDER_OK && options.output != NULL) {
        log_line(LOG_INFO, "%s: %d run%s", options.output, (int)n, n == 1 ? "" : "s");
    }
    while (loaded > 0) {
        run_free(&run[--loaded]);
    }
    free(run);
    return status == RUDDER_OK ? 0 : cli_fail(&error);
}
