/*
 * The rudder program: finds the sub-command and hands over. What the program is made of (--version) is said here because
 * MPI, BLAS and METIS are chosen when it is built, and a mismatch with what a cluster loads is a common trap.
 */
#include <metis.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "agent/llama.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "comm/launch.h"
#include "nn/kernels.h"
#include "rudder/rudder.h"

typedef struct cli_entry {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} cli_entry_t;

static const cli_entry_t cli_commands[] = {
    {"import", cli_import, "read a data set (OGB, WordNet) into a graph directory"},
    {"generate", cli_generate, "make a graph of known shape and any size (block model, R-MAT)"},
    {"import-trace", cli_import_trace, "convert a trace of remote ids (text, .npz) into Rudder's .rtr"},
    {"partition", cli_partition, "split a graph into one part per rank"},
    {"inspect", cli_inspect, "describe a graph or partition directory, or a trace"},
    {"train", cli_train, "train a GNN over MPI with a steered buffer of remote features"},
    {"replay", cli_replay, "what a run would have fetched with other policies, deciders, capacities, networks"},
    {"report", cli_report, "what runs and replays did, side by side: a page with charts, or tables"},
    {"diff", cli_diff, "say in words where two runs differ"},
    {"agent", cli_agent, "the LLM agent: fetch its model, test it, run it"},
    {"doctor", cli_doctor, "check this machine: cores, memory, MPI, BLAS, METIS, model"},
};
enum { CLI_COMMANDS = sizeof cli_commands / sizeof cli_commands[0] };

int cli_exit_code(rudder_status_t status)
{
    switch (status) {
    case RUDDER_OK:
        return 0;
    case RUDDER_E_USAGE:
    case RUDDER_E_ARGUMENT:
    case RUDDER_E_NAME:
    case RUDDER_E_UNSUPPORTED:
        return 2;
    case RUDDER_E_DATA:
    case RUDDER_E_IO:
        return 3;
    case RUDDER_E_ENVIRONMENT:
        return 4;
    case RUDDER_E_PEER:
        return 5;
    case RUDDER_E_INTERRUPTED:
        return 130;
    default:
        return 1;
    }
}

int cli_fail(const rudder_error_t *error)
{
    log_error(error);
    return cli_exit_code(error->status);
}

int cli_options(const option_command_t *command, int argc, char **argv, void *values, const char **arguments,
                int32_t *n_arguments, int *exit_code)
{
    rudder_error_t error;
    int help;
    if (options_parse(command, argc, argv, values, arguments, n_arguments, &help, &error) != RUDDER_OK) {
        *exit_code = cli_fail(&error);
        return 0;
    }
    if (help) {
        options_help(command, stdout, 0);
        *exit_code = 0;
        return 0;
    }
    return 1;
}

int cli_word(const option_command_t *commands, const char *const *names, int n, const char *noun, int argc, char **argv,
             int *exit_code)
{
    const char *word = argc > 1 ? argv[1] : "";
    char list[128] = "";
    *exit_code = 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        for (int i = 0; i < n; i++) {
            options_help(&commands[i], stdout, 0);
            printf("%s", i + 1 < n ? "\n" : "");
        }
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (strcmp(word, names[i]) == 0) {
            return i;
        }
        const size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", names[i]);
    }
    const char *nearest = text_nearest(word, names, n);
    log_line(LOG_ERROR, "%s: expected a %s first, %s, found \"%s\"%s%s%s", argv[0], noun, list, word,
             nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
    *exit_code = cli_exit_code(RUDDER_E_USAGE);
    return -1;
}

static void cli_help(FILE *file)
{
    fprintf(file,
            "usage: rudder COMMAND [options]\n\n"
            "Trains graph neural networks over MPI; a buffer of remote features is steered while training runs.\n\n"
            "Commands:\n");
    for (int i = 0; i < CLI_COMMANDS; i++) {
        fprintf(file, "  %-14s%s\n", cli_commands[i].name, cli_commands[i].summary);
    }
    fprintf(
        file,
        "\n\"rudder COMMAND --help\" tells all about one of them; \"rudder --version\" what this program is made of.\n"
        "Exit codes: 0 done, 1 run failed, 2 usage, 3 input data, 4 environment, 5 a peer was lost, 130 and 143 "
        "signals.\n");
}

char *cli_mpi_version(char *text, size_t text_size)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "unknown";
    int n;
    (void)MPI_Get_library_version(library, &n);
    library[strcspn(library, ",\n")] = '\0';
    for (char *c = library; *c != '\0'; c++) {
        *c = *c == '\t' ? ' ' : *c;
    }
    snprintf(text, text_size, "%s", library);
    return text;
}

int cli_has_llama(void)
{
    const backend_config_t nothing = {.model = "", .facts = ""};
    void *self;
    return llama_backend.open(&nothing, &self, NULL) != RUDDER_E_UNSUPPORTED;
}

static int cli_version(void)
{
    char mpi[128];
    printf("rudder %s\n", RUDDER_VERSION);
    printf("  MPI    %s (started by %s)\n", cli_mpi_version(mpi, sizeof mpi), launch_mpiexec());
    printf("  BLAS   %s\n", kernel_blas_name());
    printf("  METIS  %d.%d.%d\n", METIS_VER_MAJOR, METIS_VER_MINOR, METIS_VER_SUBMINOR);
    printf("  LLM    %s\n", cli_has_llama() ? "llama.cpp, embedded" : "none embedded");
    return 0;
}

static const cli_entry_t *cli_find(const char *name)
{
    for (int i = 0; i < CLI_COMMANDS; i++) {
        if (strcmp(name, cli_commands[i].name) == 0) {
            return &cli_commands[i];
        }
    }
    return NULL;
}

static int cli_unknown(const char *name)
{
    const char *names[CLI_COMMANDS];
    for (int i = 0; i < CLI_COMMANDS; i++) {
        names[i] = cli_commands[i].name;
    }
    const char *nearest = text_nearest(name, names, CLI_COMMANDS);
    log_line(LOG_ERROR, "unknown command \"%s\"; %s%s%s", name, nearest != NULL ? "did you mean \"" : "",
             nearest != NULL ? nearest : "\"rudder --help\" lists them", nearest != NULL ? "\"?" : "");
    return cli_exit_code(RUDDER_E_USAGE);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const cli_entry_t *entry;
    log_setup(LOG_INFO, -1, 0);
    if (argc < 2) {
        cli_help(stderr);
        return cli_exit_code(RUDDER_E_USAGE);
    }
    if (strcmp(name, "--version") == 0) {
        return cli_version();
    }
    if (strcmp(name, "help") == 0 && argc > 2) {
        char help[] = "--help";
        char *arguments[] = {argv[0], argv[2], help, NULL};
        entry = cli_find(argv[2]);
        return entry != NULL ? entry->run(2, arguments + 1) : cli_unknown(argv[2]);
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        cli_help(stdout);
        return 0;
    }
    entry = cli_find(name);
    return entry != NULL ? entry->run(argc - 1, argv + 1) : cli_unknown(name);
}
