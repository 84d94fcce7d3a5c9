/* rudder partition: splits a graph into one part per rank and shows what came out. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/parts_table.h"
#include "graph/graph.h"
#include "partition/make.h"

typedef struct cli_partition_values {
    const char *output;
    int64_t parts, seed;
    int method, force, dry_run;
} cli_partition_values_t;

#define AT(field) offsetof(cli_partition_values_t, field)

static const option_spec_t cli_partition_options[] = {
    {.name = "output",
     .letter = 'o',
     .type = OPTION_STRING,
     .offset = AT(output),
     .value = "PARTS",
     .help = "The partition directory to write. One written earlier is replaced."},
    {.name = "parts",
     .type = OPTION_INT,
     .offset = AT(parts),
     .fallback = "4",
     .value = "N",
     .low = 1,
     .high = 1 << 20,
     .help = "Number of parts: one for each rank.",
     .aliases = "num-parts,num_parts"},
    {.name = "method",
     .type = OPTION_CHOICE,
     .offset = AT(method),
     .fallback = "metis",
     .choices = "metis|random",
     .help = "Metis: few edges between parts, nodes and training nodes balanced. Random: balanced, every edge cut by "
             "chance.",
     .aliases = "part-method,part_method"},
    {.name = "seed",
     .type = OPTION_INT,
     .offset = AT(seed),
     .fallback = "1",
     .value = "N",
     .low = 0,
     .high = 0x1p53,
     .help = "Seed of the method: the same seed gives the same parts."},
    {.name = "dry-run",
     .type = OPTION_FLAG,
     .offset = AT(dry_run),
     .fallback = "0",
     .help = "Only tell how much memory and disk it would take."},
    CLI_OUTPUT_FORCE,
    {.name = NULL}};

static const option_command_t cli_partition_command = {.name = "partition",
                                                       .arguments = "GRAPH",
                                                       .summary = "split a graph into one part per rank",
                                                       .text =
                                                           "Every node belongs to one part; its rank owns the node's "
                                                           "in-edges and features. Where METIS fails, random does "
                                                           "the work, and that is told.\n\n"
                                                           "  rudder partition wordnet -o wordnet-4 --parts 4",
                                                       .min_arguments = 1,
                                                       .max_arguments = 1,
                                                       .options = cli_partition_options};

static int cli_partition_dry_run(const graph_t *graph, const make_options_t *options)
{
    int64_t memory, disk;
    char a[32], b[32];
    make_needs(graph->n_nodes, graph->n_edges, graph->n_feat, options, &memory, &disk);
    printf("%s: %" PRId64 " nodes, %" PRId64 " edges, %" PRId32 " features into %" PRId32 " parts\n", graph->name,
           graph->n_nodes, graph->n_edges, graph->n_feat, options->n_parts);
    printf("memory: about %s at the peak, beside the page cache of the graph\n", text_of_bytes(memory, a, sizeof a));
    printf("disk:   at most %s\n", text_of_bytes(disk, b, sizeof b));
    return 0;
}

static void cli_partition_tell(const make_report_t *report, const graph_t *graph)
{
    char a[32], b[32], c[32], d[32];
    log_line(LOG_INFO, "%s edges are %s undirected ones (%s repeated, %s self-loops left out for cutting only)",
             text_of_count(graph->n_edges, a, sizeof a), text_of_count(report->undirected, b, sizeof b),
             text_of_count(report->duplicates, c, sizeof c), text_of_count(report->loops, d, sizeof d));
    if (report->fallback[0] != '\0') {
        log_line(LOG_WARN, "%s; random parts were made instead", report->fallback);
    }
}

static int cli_partition_run(const graph_t *graph, const make_options_t *options, const cli_partition_values_t *values)
{
    files_folder_t folder = {0};
    rudder_error_t error;
    make_report_t report = {0};
    char path[FILES_MAX_PATH];
    const double start = clock_seconds();
    log_setup(LOG_INFO, -1, 1);
    if (files_folder_open(values->output, "parts.json", values->force, &folder, &error) != RUDDER_OK) {
        return cli_fail(&error);
    }
    snprintf(path, sizeof path, "%s", folder.path);
    if (make_parts(graph, folder.work, options, &report, &error) != RUDDER_OK ||
        output_close(&folder, &error) != RUDDER_OK) {
        files_folder_abandon(&folder);
        make_report_free(&report);
        return cli_fail(&error);
    }
    cli_partition_tell(&report, graph);
    const rudder_status_t status = parts_table_print(report.part, report.n_parts, &error);
    if (status == RUDDER_OK) {
        log_line(LOG_INFO, "wrote %s (%s, seed %" PRId64 ") in %.1f s", path, report.method, values->seed,
                 clock_seconds() - start);
    }
    make_report_free(&report);
    return status == RUDDER_OK ? 0 : cli_fail(&error);
}

int cli_partition(int argc, char **argv)
{
    cli_partition_values_t values = {0};
    const char *directory = NULL;
    int32_t n = 0;
    int exit_code = 0;
    rudder_error_t error;
    graph_t graph;
    if (!cli_options(&cli_partition_command, argc, argv, &values, &directory, &n, &exit_code)) {
        return exit_code;
    }
    if (values.output == NULL && !values.dry_run) {
        log_line(LOG_ERROR, "partition: expected -o PARTS, the directory to write");
        return cli_exit_code(RUDDER_E_USAGE);
    }
    if (graph_open(directory, &graph, &error) != RUDDER_OK) {
        return cli_fail(&error);
    }
    const make_options_t options = {.method = values.method == 0 ? MAKE_METIS : MAKE_RANDOM,
                                    .n_parts = (int32_t)values.parts,
                                    .seed = (uint64_t)values.seed};
    if (make_check(&graph, &options, &error) != RUDDER_OK) {
        exit_code = cli_fail(&error);
    } else {
        exit_code =
            values.dry_run ? cli_partition_dry_run(&graph, &options) : cli_partition_run(&graph, &options, &values);
    }
    graph_close(&graph);
    return exit_code;
}
