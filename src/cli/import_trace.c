/* rudder import-trace: a trace of any system becomes a .rtr, with the facts that its own form cannot hold. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/trace_facts.h"
#include "graph/files.h"
#include "trace/halo.h"
#include "trace/recorder.h"

enum { IMPORT_MAX_RANKS = 1 << 16, IMPORT_PROGRESS = 64 };

typedef struct cli_import_trace_values {
    const char *output, *halo, *owners, *graph;
    int64_t rank, row_bytes, steps_per_epoch;
    int force;
} cli_import_trace_values_t;

#define AT(field) offsetof(cli_import_trace_values_t, field)

static const option_spec_t cli_import_trace_options[] = {
    {.name = "output",
     .letter = 'o',
     .type = OPTION_STRING,
     .offset = AT(output),
     .value = "OUT.rtr",
     .help = "The file to write."},
    {.name = "halo",
     .type = OPTION_STRING,
     .offset = AT(halo),
     .value = "FILE",
     .help = "Remote nodes one hop away, a line \"ID\" or \"ID DEGREE\" each: capacities given as shares of the halo, "
             "starts and policies by degree need them."},
    {.name = "owners",
     .type = OPTION_STRING,
     .offset = AT(owners),
     .value = "OFFSETS",
     .help = "\"0,5000,9000\": rank 0 owns the ids 0 to 4999, rank 1 those to 8999. Links of their own per owner need "
             "it."},
    {.name = "rank",
     .type = OPTION_INT,
     .offset = AT(rank),
     .fallback = "-1",
     .value = "N",
     .low = -1,
     .high = IMPORT_MAX_RANKS - 1,
     .help = "Whose trace it is, when owners are given. -1: as the file says, or 0."},
    {.name = "graph", .type = OPTION_STRING, .offset = AT(graph), .value = "NAME", .help = "Name of the graph."},
    {.name = "row-bytes",
     .type = OPTION_BYTES,
     .offset = AT(row_bytes),
     .value = "BYTES",
     .help = "Bytes of a row of features: tables then tell bytes, and links take their time."},
    {.name = "steps-per-epoch",
     .type = OPTION_INT,
     .offset = AT(steps_per_epoch),
     .fallback = "0",
     .value = "N",
     .low = 0,
     .high = 0x1p53,
     .help = "Minibatches of an epoch. 0: as the file says, or not known."},
    {.name = "force",
     .type = OPTION_FLAG,
     .offset = AT(force),
     .fallback = "0",
     .help = "Replace a file that stands at the output."},
    {.name = NULL}};

static const option_command_t cli_import_trace_command = {
    .name = "import-trace",
    .arguments = "TRACE",
    .summary = "convert a trace of remote ids (text, .npz) into Rudder's .rtr",
    .text =
        "A trace lists the remote ids of every minibatch. As text: one id a line, a blank line between minibatches, a "
        "line \"-\" for a minibatch without any, comments behind \"#\". As NumPy archive: \"ids\" (all, one behind "
        "the other) and \"offsets\" (where each minibatch begins, and the end), and if you have them \"halo\", "
        "\"halo_degree\", \"minibatches_per_epoch\". rudder replay reads both as well; a .rtr is smaller, faster, "
        "and holds what the options below add. A .rtr that was cut off becomes a whole one.\n\n"
        "  rudder import-trace ids.txt -o mine.rtr --halo halo.txt --row-bytes 400\n"
        "  zcat ids.txt.gz | rudder import-trace /dev/stdin -o mine.rtr",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = cli_import_trace_options};

/* What the options add; freed by import_trace_forget(). */
typedef struct import_trace_extra {
    int64_t *halo, *owners;
    uint32_t *degree;
} import_trace_extra_t;

static void import_trace_forget(import_trace_extra_t *extra)
{
    free(extra->halo);
    free(extra->degree);
    free(extra->owners);
}

/* "0,5000,9000" */
static rudder_status_t import_trace_owners(const char *text, int64_t **owners, int32_t *ranks, rudder_error_t *error)
{
    int64_t *offset = malloc((strlen(text) / 2 + 2) * sizeof *offset);
    int64_t n = 0;
    const char *at = text;
    if (offset == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "--owners: no memory for its numbers");
    }
    int whole = 0;
    while (!whole && *at >= '0' && *at <= '9') {
        char *end;
        errno = 0;
        offset[n] = strtoll(at, &end, 10);
        if (errno != 0 || (n > 0 && offset[n] < offset[n - 1])) {
            break;
        }
        n++;
        whole = *end == '\0';
        at = *end == ',' ? end + 1 : end;
    }
    if (!whole || n < 2 || n > IMPORT_MAX_RANKS + 1) {
        free(offset);
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "--owners: expected two numbers or more that never fall, as \"0,5000,9000\", found \"%s\"",
                           text);
    }
    *owners = offset;
    *ranks = (int32_t)(n - 1);
    return RUDDER_OK;
}

static rudder_status_t import_trace_options(const cli_import_trace_values_t *values, trace_info_t *info,
                                            import_trace_extra_t *extra, rudder_error_t *error)
{
    if (values->graph != NULL) {
        snprintf(info->graph, sizeof info->graph, "%s", values->graph);
    }
    if (values->halo != NULL) {
        RUDDER_TRY(halo_read(values->halo, &extra->halo, &extra->degree, &info->n_halo, error));
        info->halo = extra->halo;
        info->halo_degree = extra->degree;
    }
    if (values->owners != NULL) {
        RUDDER_TRY(import_trace_owners(values->owners, &extra->owners, &info->ranks, error));
        info->owner_offset = extra->owners;
    }
    info->rank = values->rank >= 0 ? (int32_t)values->rank : info->rank;
    if (info->rank >= info->ranks && (info->rank > 0 || info->ranks > 0)) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--rank: expected one of %d ranks (--owners tells them), found %d",
                           info->ranks, info->rank);
    }
    info->row_bytes = values->row_bytes > 0 ? values->row_bytes : info->row_bytes;
    info->steps_per_epoch = values->steps_per_epoch > 0 ? values->steps_per_epoch : info->steps_per_epoch;
    return RUDDER_OK;
}

static rudder_status_t import_trace_copy(trace_reader_t *reader, const trace_info_t *info, recorder_t *recorder,
                                         trace_facts_t *facts, rudder_error_t *error)
{
    for (;;) {
        trace_minibatch_t minibatch;
        int end;
        RUDDER_TRY(trace_reader_next(reader, &minibatch, &end, error));
        if (end) {
            return RUDDER_OK;
        }
        RUDDER_TRY(recorder_add(recorder, &minibatch, error));
        RUDDER_TRY(recorder_times(recorder, facts->minibatches, &minibatch.times, error));
        RUDDER_TRY(trace_facts_add(facts, &minibatch, error));
        if (facts->minibatches % IMPORT_PROGRESS == 0) {
            log_progress(facts->minibatches, info->n_minibatches > 0 ? info->n_minibatches : 0, "minibatches");
        }
    }
}

static void import_trace_tell(const char *path, const char *output, const trace_reader_t *reader, int64_t n_ids)
{
    struct stat before, after;
    char a[32], b[32];
    if (trace_reader_torn(reader)) {
        log_line(LOG_WARN, "%s was cut off; what it had up to there was taken", path);
    }
    if (stat(output, &after) == 0) {
        const int file = stat(path, &before) == 0 && S_ISREG(before.st_mode);
        printf("\n%s: %s%s%s", output, text_of_bytes(after.st_size, a, sizeof a), file ? ", was " : "",
               file ? text_of_bytes(before.st_size, b, sizeof b) : "");
        printf(n_ids > 0 ? "; %.2f bytes an id\n" : "\n", (double)after.st_size / (double)(n_ids > 0 ? n_ids : 1));
    }
}

/* Writes to `work` first, so that the output is whole or absent. */
static rudder_status_t import_trace_run(const char *path, const cli_import_trace_values_t *values, const char *work,
                                        rudder_error_t *error)
{
    trace_reader_t *reader;
    const trace_info_t *read;
    recorder_t *recorder = NULL;
    import_trace_extra_t extra = {0};
    trace_facts_t facts = {0};
    RUDDER_TRY(trace_reader_open(path, &reader, &read, error));
    trace_info_t info = *read;
    rudder_status_t status = import_trace_options(values, &info, &extra, error);
    if (status != RUDDER_OK) {
        goto end;
    }
    unlink(work); /* of one that was killed */
    status = recorder_open(work, &info, &recorder, error);
    if (status != RUDDER_OK) {
        goto end;
    }
    status = import_trace_copy(reader, read, recorder, &facts, error);
    log_progress_end();
    const rudder_status_t closed = recorder_close(recorder, status == RUDDER_OK ? error : NULL);
    status = status == RUDDER_OK ? closed : status;
    if (status == RUDDER_OK && rename(work, values->output) != 0) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", values->output, strerror(errno));
    }
    if (status != RUDDER_OK) {
        unlink(work);
        goto end;
    }
    status = trace_facts_print(&facts, &info, error);
    import_trace_tell(path, values->output, reader, facts.ids);
end:
    trace_facts_free(&facts);
    import_trace_forget(&extra);
    trace_reader_close(reader);
    return status;
}

int cli_import_trace(int argc, char **argv)
{
    cli_import_trace_values_t values = {0};
    const char *path = NULL;
    char work[FILES_MAX_PATH];
    int32_t n = 0;
    int exit_code = 0;
    rudder_error_t error;
    if (!cli_options(&cli_import_trace_command, argc, argv, &values, &path, &n, &exit_code)) {
        return exit_code;
    }
    if (values.output == NULL) {
        log_line(LOG_ERROR, "import-trace: expected -o OUT.rtr, the file to write");
        return cli_exit_code(RUDDER_E_USAGE);
    }
    if (!values.force && access(values.output, F_OK) == 0) {
        log_line(LOG_ERROR, "%s: expected nothing there, found a file; --force replaces it", values.output);
        return cli_exit_code(RUDDER_E_USAGE);
    }
    if (snprintf(work, sizeof work, "%s.tmp", values.output) >= (int)sizeof work) {
        log_line(LOG_ERROR, "--output: expected a path shorter than %d bytes", FILES_MAX_PATH - 4);
        return cli_exit_code(RUDDER_E_USAGE);
    }
    log_setup(LOG_INFO, -1, 1);
    return import_trace_run(path, &values, work, &error) == RUDDER_OK ? 0 : cli_fail(&error);
}
