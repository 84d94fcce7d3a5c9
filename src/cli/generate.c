/* rudder generate: graphs of known shape and any size, with features and labels that a GNN can learn. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "graph/generate.h"

typedef struct cli_generate_values {
    const char *output, *name, *probabilities;
    int64_t nodes, edges, features, classes, seed, threads;
    double homophily, noise, train, valid, test, exponent;
    int scramble, force, dry_run;
} cli_generate_values_t;

#define AT(field) offsetof(cli_generate_values_t, field)
#define CLI_GENERATE_COMMON                                                                                            \
    CLI_OUTPUT_GRAPH,                                                                                                  \
        {.name = "nodes",                                                                                              \
         .type = OPTION_INT,                                                                                           \
         .offset = AT(nodes),                                                                                          \
         .fallback = "200000",                                                                                         \
         .value = "N",                                                                                                 \
         .low = 1,                                                                                                     \
         .high = 0x1p40,                                                                                               \
         .help = "Nodes."},                                                                                            \
        {.name = "edges",                                                                                              \
         .type = OPTION_INT,                                                                                           \
         .offset = AT(edges),                                                                                          \
         .fallback = "-1",                                                                                             \
         .value = "N",                                                                                                 \
         .low = -1,                                                                                                    \
         .high = 0x1p53,                                                                                               \
         .help =                                                                                                       \
             "Edges, in the mean. -1: 20 a node. None twice, no self-loops: those are drawn anew, and where a node "   \
             "has no other neighbours left there are fewer."},                                                         \
        {.name = "features",                                                                                           \
         .type = OPTION_INT,                                                                                           \
         .offset = AT(features),                                                                                       \
         .fallback = "100",                                                                                            \
         .value = "N",                                                                                                 \
         .low = 1,                                                                                                     \
         .high = 65536,                                                                                                \
         .help = "Columns of the features: the mean of the node's class and noise, scaled to variance 1."},            \
        {.name = "classes",                                                                                            \
         .type = OPTION_INT,                                                                                           \
         .offset = AT(classes),                                                                                        \
         .fallback = "16",                                                                                             \
         .value = "N",                                                                                                 \
         .low = 1,                                                                                                     \
         .high = 0x1p26,                                                                                               \
         .help = "Classes, of equal size."},                                                                           \
        {.name = "noise",                                                                                              \
         .type = OPTION_FLOAT,                                                                                         \
         .offset = AT(noise),                                                                                          \
         .fallback = "1",                                                                                              \
         .value = "X",                                                                                                 \
         .low = 0,                                                                                                     \
         .high = 1000,                                                                                                 \
         .help = "Standard deviation of the features' noise, where the means of two classes are 1 apart. 0: features " \
                 "tell the class; the more, the more a GNN gains by looking at neighbours."},                          \
        {.name = "train",                                                                                              \
         .type = OPTION_FLOAT,                                                                                         \
         .offset = AT(train),                                                                                          \
         .fallback = "0.6",                                                                                            \
         .value = "SHARE",                                                                                             \
         .low = 0,                                                                                                     \
         .high = 1,                                                                                                    \
         .help = "Share of the nodes that are trained on."},                                                           \
        {.name = "valid",                                                                                              \
         .type = OPTION_FLOAT,                                                                                         \
         .offset = AT(valid),                                                                                          \
         .fallback = "0.2",                                                                                            \
         .value = "SHARE",                                                                                             \
         .low = 0,                                                                                                     \
         .high = 1,                                                                                                    \
         .help = "Share for validation."},                                                                             \
        {.name = "test",                                                                                               \
         .type = OPTION_FLOAT,                                                                                         \
         .offset = AT(test),                                                                                           \
         .fallback = "0.2",                                                                                            \
         .value = "SHARE",                                                                                             \
         .low = 0,                                                                                                     \
         .high = 1,                                                                                                    \
         .help = "Share for the test. What the three leave over is in no split."},                                     \
        {.name = "seed",                                                                                               \
         .type = OPTION_INT,                                                                                           \
         .offset = AT(seed),                                                                                           \
         .fallback = "1",                                                                                              \
         .value = "N",                                                                                                 \
         .low = 0,                                                                                                     \
         .high = 0x1p53,                                                                                               \
         .help = "The same seed gives the same bytes, on any machine and with any number of threads."},                \
        {.name = "threads",                                                                                            \
         .type = OPTION_INT,                                                                                           \
         .offset = AT(threads),                                                                                        \
         .fallback = "0",                                                                                              \
         .value = "N",                                                                                                 \
         .low = 0,                                                                                                     \
         .high = 1024,                                                                                                 \
         .help = "Threads. 0: one a core."},                                                                           \
        CLI_OUTPUT_NAME,                                                                                               \
        {.name = "dry-run",                                                                                            \
         .type = OPTION_FLAG,                                                                                          \
         .offset = AT(dry_run),                                                                                        \
         .fallback = "0",                                                                                              \
         .help = "Only tell how much memory and disk it would take."},                                                 \
        CLI_OUTPUT_FORCE

static const option_spec_t cli_generate_sbm_options[] = {
    CLI_GENERATE_COMMON,
    {.name = "homophily",
     .type = OPTION_FLOAT,
     .offset = AT(homophily),
     .fallback = "0.72",
     .value = "SHARE",
     .low = 0,
     .high = 1,
     .help = "Share of the edges between nodes of one class; the others go to any other class. 1 / classes: chance."},
    {.name = "exponent",
     .type = OPTION_FLOAT,
     .offset = AT(exponent),
     .fallback = "2.8",
     .value = "X",
     .low = 2,
     .high = 100,
     .help = "Of the power law of degrees, above 2: the smaller, the more edges a few nodes have."},
    {.name = NULL}};

static const option_spec_t cli_generate_rmat_options[] = {
    CLI_GENERATE_COMMON,
    {.name = "probabilities",
     .type = OPTION_STRING,
     .offset = AT(probabilities),
     .fallback = "0.57,0.19,0.19,0.05",
     .value = "A,B,C,D",
     .help =
         "Of the quarters of the adjacency matrix, at each level: low to low, low to high, high to low, high to high "
         "(source to destination). The default is that of the Graph500 benchmark."},
    {.name = "homophily",
     .type = OPTION_FLOAT,
     .offset = AT(homophily),
     .fallback = "0.5",
     .value = "SHARE",
     .low = 0,
     .high = 1,
     .help =
         "Share of the edges that are drawn into the class of their destination. 0: plain R-MAT, whose neighbours know "
         "next to nothing of each other's class."},
    {.name = "scramble",
     .type = OPTION_FLAG,
     .offset = AT(scramble),
     .fallback = "1",
     .help = "Ids in random order. Otherwise low ids have the most edges, and their lowest bits tell the class."},
    {.name = NULL}};

static const option_command_t cli_generate_commands[] = {
    {.name = "generate sbm",
     .arguments = "",
     .summary = "a block model: classes that keep to themselves, degrees of a power law",
     .text =
         "Degree-corrected stochastic block model (Karrer and Newman, 2011). Every class is a block of equal size; a "
         "node's "
         "in-edges come from its own class with a fixed probability, and from nodes in proportion to their weight. A "
         "partitioner finds the classes, so parts have few edges between them. Memory does not grow with the graph.\n\n"
         "  rudder generate sbm -o sbm\n"
         "  rudder generate sbm -o big --nodes 10000000 --edges 200000000",
     .min_arguments = 0,
     .max_arguments = 0,
     .options = cli_generate_sbm_options},
    {.name = "generate rmat",
     .arguments = "",
     .summary = "a recursive graph: a few nodes have very many edges",
     .text =
         "R-MAT (Chakrabarti, Zhan and Faloutsos, 2004): an edge falls into one of the four quarters of the adjacency "
         "matrix, then into a quarter of that, and so on. Partitioners find little to cut along, so parts have many "
         "edges "
         "between them. Memory does not grow with the graph.\n\n"
         "  rudder generate rmat -o rmat\n"
         "  rudder generate rmat -o flat --probabilities 0.25,0.25,0.25,0.25 --homophily 0",
     .min_arguments = 0,
     .max_arguments = 0,
     .options = cli_generate_rmat_options},
};

static rudder_status_t cli_generate_probabilities(const char *text, double probability[4], rudder_error_t *error)
{
    const char *at = text;
    for (int i = 0; i < 4; i++) {
        char number[32];
        const size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof number || (at[n] == ',') != (i < 3)) {
            return RUDDER_FAIL(error, RUDDER_E_USAGE, "--probabilities: expected four numbers A,B,C,D, found \"%s\"",
                               text);
        }
        snprintf(number, sizeof number, "%.*s", (int)n, at);
        RUDDER_TRY(text_float(number, "--probabilities", 0, 1, &probability[i], error));
        at += n + 1;
    }
    return RUDDER_OK;
}

static void cli_generate_tell(const char *path, const generate_options_t *options, const generate_report_t *r,
                              double seconds)
{
    char a[32], b[32], c[32];
    log_line(LOG_INFO, "stored %s nodes, %s in-edges: at most %s a node, %" PRId64 " nodes without",
             text_of_count(options->n_nodes, a, sizeof a), text_of_count(r->n_edges, b, sizeof b),
             text_of_count(r->most, c, sizeof c), r->isolated);
    if (r->missing > 0) {
        log_line(LOG_INFO, "%s in-edges are missing: their nodes have (next to) no other neighbours to draw",
                 text_of_count(r->missing, a, sizeof a));
    }
    if (r->checked > 0) {
        log_line(LOG_INFO, "%.1f %% of the edges are inside a class", 100.0 * (double)r->inside / (double)r->checked);
    }
    log_line(LOG_INFO, "split: %s train, %s valid, %s test", text_of_count(r->train, a, sizeof a),
             text_of_count(r->valid, b, sizeof b), text_of_count(r->test, c, sizeof c));
    log_line(LOG_INFO, "wrote %s in %.1f s", path, seconds);
}

static void cli_generate_tell_needs(const generate_options_t *options)
{
    int64_t memory, disk;
    char a[32], b[32];
    generate_needs(options, &memory, &disk);
    log_line(LOG_INFO, "takes about %s of memory and %s of disk", text_of_bytes(memory, a, sizeof a),
             text_of_bytes(disk, b, sizeof b));
}

static int cli_generate_run(int rmat, const cli_generate_values_t *values, const generate_options_t *options)
{
    files_folder_t folder = {0};
    rudder_error_t error;
    generate_report_t report;
    char path[FILES_MAX_PATH];
    const double start = clock_seconds();
    if (files_folder_open(values->output, "graph.json", values->force, &folder, &error) != RUDDER_OK) {
        return cli_fail(&error);
    }
    snprintf(path, sizeof path, "%s", folder.path);
    if ((rmat ? generate_rmat : generate_sbm)(folder.work, options, &report, &error) != RUDDER_OK ||
        output_close(&folder, &error) != RUDDER_OK) {
        files_folder_abandon(&folder);
        return cli_fail(&error);
    }
    cli_generate_tell(path, options, &report, clock_seconds() - start);
    return 0;
}

static int cli_generate_model(int rmat, int argc, char **argv)
{
    cli_generate_values_t values = {0};
    generate_options_t options;
    rudder_error_t error;
    char name[64];
    int32_t n = 0;
    int exit_code = 0;
    if (!cli_options(&cli_generate_commands[rmat], argc, argv, &values, NULL, &n, &exit_code)) {
        return exit_code;
    }
    log_setup(LOG_INFO, -1, 1);
    if (values.output == NULL) {
        log_line(LOG_ERROR, "%s: expected -o GRAPH, the directory to write", cli_generate_commands[rmat].name);
        return cli_exit_code(RUDDER_E_USAGE);
    }
    files_name(values.output, name, sizeof name);
    options =
        (generate_options_t){.name = values.name != NULL ? values.name : name,
                             .seed = (uint64_t)values.seed,
                             .n_nodes = values.nodes,
                             .n_edges = values.edges >= 0 ? values.edges : 20 * values.nodes,
                             .n_feat = (int32_t)values.features,
                             .n_classes = (int32_t)values.classes,
                             .homophily = values.homophily,
                             .noise = values.noise,
                             .train = values.train,
                             .valid = values.valid,
                             .test = values.test,
                             .threads = (int32_t)(values.threads > 0 ? values.threads : sysconf(_SC_NPROCESSORS_ONLN)),
                             .exponent = values.exponent,
                             .scramble = values.scramble};
    if (rmat && cli_generate_probabilities(values.probabilities, options.probability, &error) != RUDDER_OK) {
        return cli_fail(&error);
    }
    if ((rmat ? generate_rmat_check : generate_sbm_check)(&options, &error) != RUDDER_OK) {
        return cli_fail(&error); /* before anything is written */
    }
    cli_generate_tell_needs(&options);
    return values.dry_run ? 0 : cli_generate_run(rmat, &values, &options);
}

int cli_generate(int argc, char **argv)
{
    const char *const names[] = {"sbm", "rmat"};
    int exit_code;
    const int model = cli_word(cli_generate_commands, names, 2, "model", argc, argv, &exit_code);
    return model < 0 ? exit_code : cli_generate_model(model, argc - 1, argv + 1);
}
