/* rudder import: a data set in its own format becomes a graph directory. Each format has its own options. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "graph/import.h"

typedef struct cli_import_values {
    const char *output, *name;
    int force, edges, direction, duplicates, loops;
    int64_t width, seed;
    const char *split;
} cli_import_values_t;

#define AT(field) offsetof(cli_import_values_t, field)
#define CLI_IMPORT_COMMON                                                                                              \
    CLI_OUTPUT_GRAPH, CLI_OUTPUT_NAME,                                                                                 \
        {.name = "seed",                                                                                               \
         .type = OPTION_INT,                                                                                           \
         .offset = AT(seed),                                                                                           \
         .fallback = "1",                                                                                              \
         .value = "N",                                                                                                 \
         .low = 0,                                                                                                     \
         .high = 0x1p53,                                                                                               \
         .help = "Seed of a split that is drawn."},                                                                    \
        CLI_OUTPUT_FORCE

static const option_spec_t cli_import_wordnet_options[] = {
    CLI_IMPORT_COMMON,
    {.name = "width",
     .type = OPTION_INT,
     .offset = AT(width),
     .fallback = "256",
     .value = "N",
     .low = 1,
     .high = 65536,
     .help = "Columns of the features: words of gloss and lemmas are counted by hash, then standardised."},
    {.name = "edges",
     .type = OPTION_CHOICE,
     .offset = AT(edges),
     .fallback = "all",
     .choices = "all|pointers",
     .help = "All: pointers, and words that a gloss mentions. Pointers: WordNet's own relations only."},
    {.name = NULL}};

static const option_spec_t cli_import_ogb_options[] = {
    CLI_IMPORT_COMMON,
    {.name = "direction",
     .type = OPTION_CHOICE,
     .offset = AT(direction),
     .fallback = "both",
     .choices = "both|forward",
     .help =
         "Both: every edge is also stored reversed. Forward: as given; messages go from the first id to the second."},
    {.name = "duplicates",
     .type = OPTION_CHOICE,
     .offset = AT(duplicates),
     .fallback = "drop",
     .choices = "drop|keep",
     .help = "What becomes of an edge that is there twice (with both directions: reciprocal edges are such)."},
    {.name = "loops",
     .type = OPTION_CHOICE,
     .offset = AT(loops),
     .fallback = "keep",
     .choices = "keep|drop",
     .help = "What becomes of edges from a node to itself."},
    {.name = "split",
     .type = OPTION_STRING,
     .offset = AT(split),
     .value = "NAME",
     .help = "The folder below split/ to use. Not needed when there is one. \"random\", where there is no such folder: "
             "60 % train, 20 % valid, 20 % test are drawn."},
    {.name = NULL}};

static const option_command_t cli_import_commands[] = {
    {.name = "import wordnet",
     .arguments = "[SOURCE]",
     .summary = "WordNet 3.0 as a graph of synsets",
     .text = "SOURCE is the folder with data.noun, index.noun and so on; default /usr/share/wordnet, where Debian's "
             "package "
             "wordnet-base puts them. Nodes are synsets, labels the 45 lexicographer files, edges go both ways.\n\n"
             "  rudder import wordnet -o wordnet",
     .min_arguments = 0,
     .max_arguments = 1,
     .options = cli_import_wordnet_options},
    {.name = "import ogb",
     .arguments = "SOURCE",
     .summary = "an OGB node property data set in its raw layout",
     .text = "SOURCE is the folder that holds raw/ and split/ with .csv.gz files, as OGB's archives unpack.\n\n"
             "  rudder import ogb ogbn_arxiv -o arxiv",
     .min_arguments = 1,
     .max_arguments = 1,
     .options = cli_import_ogb_options},
};

static void cli_import_tell(const char *path, const import_report_t *r, double seconds)
{
    char a[32], b[32], c[32], d[32];
    log_line(LOG_INFO, "read %s edges: %s repeated, %s self-loops", text_of_count(r->given, a, sizeof a),
             text_of_count(r->duplicates, b, sizeof b), text_of_count(r->loops, c, sizeof c));
    if (r->pointers > 0) {
        log_line(LOG_INFO, "of them %s pointers and %s mentions in glosses", text_of_count(r->pointers, a, sizeof a),
                 text_of_count(r->mentions, b, sizeof b));
    }
    log_line(LOG_INFO, "stored %s nodes, %s in-edges, %s features, %s classes", text_of_count(r->n_nodes, a, sizeof a),
             text_of_count(r->n_edges, b, sizeof b), text_of_count(r->n_feat, c, sizeof c),
             text_of_count(r->n_classes, d, sizeof d));
    log_line(LOG_INFO, "split: %s train, %s valid, %s test; %s nodes without a label",
             text_of_count(r->train, a, sizeof a), text_of_count(r->valid, b, sizeof b),
             text_of_count(r->test, c, sizeof c), text_of_count(r->unlabelled, d, sizeof d));
    log_line(LOG_INFO, "wrote %s in %.1f s", path, seconds);
    if (r->train == 0) {
        log_line(LOG_WARN, "%s has no training nodes: nothing can be trained on it", path);
    }
}

static int cli_import_run(int ogb, const char *source, const cli_import_values_t *values)
{
    files_folder_t folder = {0};
    rudder_error_t error;
    import_report_t report;
    char name[64], path[FILES_MAX_PATH];
    const double start = clock_seconds();
    log_setup(LOG_INFO, -1, 1);
    if (files_folder_open(values->output, "graph.json", values->force, &folder, &error) != RUDDER_OK) {
        return cli_fail(&error);
    }
    snprintf(path, sizeof path, "%s", folder.path);
    if (values->name != NULL) {
        snprintf(name, sizeof name, "%.63s", values->name);
    } else {
        files_name(values->output, name, sizeof name);
    }
    const rudder_status_t status = ogb ? import_ogb(source, folder.work,
                                                    &(import_ogb_t){.name = name,
                                                                    .both = values->direction == 0,
                                                                    .keep_duplicates = values->duplicates == 1,
                                                                    .keep_loops = values->loops == 0,
                                                                    .split = values->split,
                                                                    .seed = (uint64_t)values->seed},
                                                    &report, &error)
                                       : import_wordnet(source, folder.work,
                                                        &(import_wordnet_t){.name = name,
                                                                            .pointers_only = values->edges == 1,
                                                                            .width = (int32_t)values->width,
                                                                            .seed = (uint64_t)values->seed},
                                                        &report, &error);
    if (status != RUDDER_OK || output_close(&folder, &error) != RUDDER_OK) {
        files_folder_abandon(&folder);
        return cli_fail(&error);
    }
    cli_import_tell(path, &report, clock_seconds() - start);
    return 0;
}

int cli_import(int argc, char **argv)
{
    const char *const names[] = {"wordnet", "ogb"};
    cli_import_values_t values = {0};
    const char *source = NULL;
    int32_t n = 0;
    int exit_code;
    const int format = cli_word(cli_import_commands, names, 2, "format", argc, argv, &exit_code);
    if (format < 0 ||
        !cli_options(&cli_import_commands[format], argc - 1, argv + 1, &values, &source, &n, &exit_code)) {
        return exit_code;
    }
    if (values.output == NULL) {
        log_line(LOG_ERROR, "import %s: expected -o GRAPH, the directory to write", names[format]);
        return cli_exit_code(RUDDER_E_USAGE);
    }
    return cli_import_run(format == 1, n > 0 ? source : "/usr/share/wordnet", &values);
}
