/* rudder diff: two runs, in words. */
#include "base/error.h"
#include "base/log.h"
#include "cli/cli.h"
#include "report/differences.h"

static const option_spec_t diff_specs[] = {{0}};

static const option_command_t diff_command = {.name = "diff",
                                              .arguments = "RUN_A RUN_B",
                                              .summary = "say in words where two runs differ",
                                              .text =
                                                  "Compares two folders that \"rudder train\" left: settings, versions "
                                                  "and host; the result, losses bit for bit and minibatch by "
                                                  "minibatch; rows; decisions; and times, with their range over the "
                                                  "epochs, since times differ between any two runs.\n"
                                                  "\n"
                                                  "  rudder diff runs/lfu runs/score\n"
                                                  "  rudder diff monday friday && echo \"reproduced\"\n"
                                                  "\n"
                                                  "Exit code, as diff has it: 0 when nothing but names (folder, "
                                                  "--name) and times differs, 1 when something else does; 2 usage, 3 "
                                                  "what is no run, or damaged.",
                                              .min_arguments = 2,
                                              .max_arguments = 2,
                                              .options = diff_specs};

static rudder_status_t diff_tell(const run_t *a, const run_t *b, int *same, rudder_error_t *error)
{
    char subtitle[2 * sizeof a->path + 16];
    page_t page;
    snprintf(subtitle, sizeof subtitle, "A %s, B %s", a->path, b->path);
    page_begin(&page, 0, stdout, "Differences", subtitle);
    RUDDER_TRY(differences_tell(&page, a, b, same, error));
    return page_end(&page, error);
}

int cli_diff(int argc, char **argv)
{
    int values = 0, exit_code = 0, same = 0; /* there are no options */
    const char *path[2];
    int32_t n = 0;
    run_t a, b;
    rudder_error_t error;
    if (!cli_options(&diff_command, argc, argv, &values, path, &n, &exit_code)) {
        return exit_code;
    }
    log_setup(LOG_INFO, -1, 1);
    if (run_load(path[0], &a, &error) != RUDDER_OK) {
        return cli_fail(&error);
    }
    rudder_status_t status = run_load(path[1], &b, &error);
    if (status == RUDDER_OK) {
        status = diff_tell(&a, &b, &same, &error);
        run_free(&b);
    }
    run_free(&a);
    return status != RUDDER_OK ? cli_fail(&error) : same ? 0 : 1;
}
