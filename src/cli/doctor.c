/*
 * rudder doctor: what a run needs of this machine, tried out rather than looked up, one line a check with the remedy. Each
 * line stands for a report that took somebody a day: the launcher of another MPI, one core for all threads, a full
 * /dev/shm, a BLAS that computes nonsense.
 */
#include <metis.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gguf.h"
#include "agent/models.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "comm/comm.h"
#include "comm/launch.h"
#include "decide/agent_client.h"
#include "nn/kernels.h"
#include "partition/partition.h"

/* Tells the ranks that the doctor starts what they are for. */
#define DOCTOR_RANK "RUDDER_DOCTOR_RANK"

typedef struct doctor_options {
    const char *model;
} doctor_options_t;

static const option_spec_t doctor_specs[] = {
    {"model", 'm', OPTION_STRING, offsetof(doctor_options_t, model), NULL, "FILE",
     "Start the agent with this model (a GGUF file, or default, small, tiny) and ask it one question.", 0, 0, NULL,
     "decision-model"},
    {.name = NULL},
};

static const option_command_t doctor_command = {
    .name = "doctor",
    .arguments = "[PARTS]",
    .summary = "check this machine: cores, memory, MPI, BLAS, METIS, model",
    .text =
        "Tries out what a training run needs and prints one line a check: ok, warning or FAIL, with what to do. With a "
        "partition directory all its parts are opened and checked as well. The exit code is 0 when nothing failed and "
        "4 otherwise.\n"
        "\n"
        "  rudder doctor parts/\n"
        "  rudder doctor --model default\n",
    .max_arguments = 1,
    .options = doctor_specs,
};

typedef enum doctor_verdict { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAIL } doctor_verdict_t;

static int doctor_failures;

__attribute__((format(printf, 3, 4))) static void doctor_say(doctor_verdict_t verdict, const char *subject,
                                                             const char *format, ...)
{
    static const char *const words[] = {"ok", "warning", "FAIL"};
    va_list arguments;
    printf("%-9s%-10s", words[verdict], subject);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout); /* checks take seconds; and what is buffered must not be printed by a child once more */
    doctor_failures += verdict == DOCTOR_FAIL;
}

/* ---- the machine ---- */

/* A file of our control group (version 2): first in our group, then at the root, which is ours in a container. */
static FILE *doctor_open_cgroup(const char *name)
{
    char line[512] = "", path[1024];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL && strncmp(line, "0::", 3) != 0) {
    }
    if (file != NULL) {
        fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", strncmp(line, "0::", 3) == 0 ? line + 3 : "", name);
    file = fopen(path, "re");
    if (file == NULL) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s", name);
        file = fopen(path, "re");
    }
    return file;
}

static void doctor_check_cores(void)
{
    cpu_set_t set;
    long long quota = 0, period = 0;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)online;
    FILE *file = doctor_open_cgroup("cpu.max");
    const int limited = file != NULL && fscanf(file, "%lld %lld", &quota, &period) == 2 && period > 0;
    if (file != NULL) {
        fclose(file);
    }
    const double share = limited ? (double)quota / (double)period : (double)cores;
    if (cores < 2 || share < 1.5) {
        doctor_say(DOCTOR_WARNING, "cores",
                   "%d of %ld in our cpuset, quota %.1f; loading and training will share one: ask for more", cores,
                   online, share);
    } else if (limited && share < cores) {
        doctor_say(DOCTOR_WARNING, "cores",
                   "%d of %ld in our cpuset, but the control group allows %.1f; set --threads accordingly", cores,
                   online, share);
    } else {
        doctor_say(DOCTOR_OK, "cores", "%d of %ld in our cpuset", cores, online);
    }
}

static void doctor_check_memory(void)
{
    char line[256], free_text[32], limit_text[64] = "";
    long long available = -1, limit;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL &&
           sscanf(line, "MemAvailable: %lld", &available) != 1) {
    }
    if (file != NULL) {
        fclose(file);
    }
    available *= 1024;
    file = doctor_open_cgroup("memory.max");
    if (file != NULL && fscanf(file, "%lld", &limit) == 1) {
        text_of_bytes(limit, line, sizeof line);
        snprintf(limit_text, sizeof limit_text, ", limit of the control group %.32s", line);
        available = limit < available ? limit : available;
    }
    if (file != NULL) {
        fclose(file);
    }
    text_of_bytes(available, free_text, sizeof free_text);
    if (available < 1000 * 1000 * 1000) {
        doctor_say(DOCTOR_WARNING, "memory", "%s available%s; the agent's default model alone wants 1.5 GB", free_text,
                   limit_text);
    } else {
        doctor_say(DOCTOR_OK, "memory", "%s available%s", free_text, limit_text);
    }
}

static void doctor_check_shared_memory(void)
{
    struct statvfs status;
    char text[32];
    if (statvfs("/dev/shm", &status) != 0 || access("/dev/shm", W_OK) != 0) {
        doctor_say(DOCTOR_FAIL, "/dev/shm",
                   "missing or not writable; ranks talk through it: mount -t tmpfs tmpfs /dev/shm");
        return;
    }
    const int64_t bytes = (int64_t)(status.f_bavail * status.f_frsize);
    text_of_bytes(bytes, text, sizeof text);
    if (bytes < 64 * 1000 * 1000) {
        doctor_say(DOCTOR_WARNING, "/dev/shm", "%s free; MPI wants about 8 MB a rank: docker run --shm-size=1g", text);
    } else {
        doctor_say(DOCTOR_OK, "/dev/shm", "%s free", text);
    }
}

static void doctor_check_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 256) {
        doctor_say(DOCTOR_WARNING, "files", "%llu open files allowed; ulimit -n 1024",
                   (unsigned long long)limit.rlim_cur);
    } else {
        doctor_say(DOCTOR_OK, "files", "%llu open files allowed", (unsigned long long)limit.rlim_cur);
    }
}

/* ---- things to try out, in a child ---- */

/*
 * Runs work() in a child and catches what it prints; SIGTERM after some seconds, SIGKILL when that does not help. Returns
 * its exit code, 128 + signal, -1 when there is no child or it took too long.
 */
static int doctor_try(int (*work)(void), double seconds, char *text, size_t size)
{
    int ends[2], status = 0;
    size_t used = 0;
    text[0] = '\0';
    if (pipe(ends) != 0) {
        return -1;
    }
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        log_setup(LOG_INFO, -1, 0); /* standard error is no terminal any more */
        const int code = work();
        fflush(stdout);
        _exit(code);
    }
    close(ends[1]);
    const double until = clock_seconds() + seconds;
    double left = seconds;
    struct pollfd poll_entry = {.fd = ends[0], .events = POLLIN};
    while (child > 0 && left > 0 && poll(&poll_entry, 1, (int)(left * 1000) + 1) > 0) {
        char rest[256];
        const int full = used >= size - 1;
        const ssize_t n = read(ends[0], full ? rest : text + used, full ? sizeof rest : size - 1 - used);
        if (n <= 0) {
            break;
        }
        used += full ? 0 : (size_t)n;
        left = until - clock_seconds();
    }
    text[used] = '\0';
    close(ends[0]);
    if (child < 0) {
        return -1;
    }
    const int late = clock_seconds() >= until;
    if (late) {
        kill(child, SIGTERM);
        for (int i = 0; i < 100 && waitpid(child, &status, WNOHANG) == 0; i++) {
            clock_sleep(0.1);
        }
        kill(child, SIGKILL);
    }
    if (waitpid(child, &status, 0) < 0 || late) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* All ranks add up their numbers. *multiple: whether threads may communicate side by side. Collective. */
static rudder_status_t doctor_meet(int32_t *rank, int32_t *ranks, int *multiple, rudder_error_t *error)
{
    comm_t comm;
    RUDDER_TRY(comm_start(multiple, error));
    RUDDER_TRY(comm_open(20, &comm, error));
    const double expected = comm.size * (comm.size + 1) / 2.0;
    double sum = comm.rank + 1;
    RUDDER_TRY(comm_sum_f64(&comm, &sum, 1, error));
    if (sum != expected) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "MPI adds up wrong: expected %g, found %g", expected, sum);
    }
    *rank = comm.rank;
    *ranks = comm.size;
    comm_close(&comm);
    comm_stop();
    return RUDDER_OK;
}

/* A rank that the doctor has started. */
static int doctor_rank(void)
{
    rudder_error_t error;
    int32_t rank = 0, ranks = 0;
    int multiple = 0;
    const rudder_status_t status = doctor_meet(&rank, &ranks, &multiple, &error);
    if (status != RUDDER_OK) {
        log_error(&error);
        comm_abort(cli_exit_code(status));
    }
    if (rank == 0) {
        printf("ranks %d threads %d\n", (int)ranks, multiple);
    }
    return 0;
}

/* "srun -n 4 rudder doctor": every rank tells what it sees. */
static void doctor_check_as_rank(void)
{
    rudder_error_t error;
    int32_t rank = 0, ranks = 0;
    int multiple = 0;
    if (doctor_meet(&rank, &ranks, &multiple, &error) != RUDDER_OK) {
        doctor_say(DOCTOR_FAIL, "ranks", "%s", error.text);
    } else {
        doctor_say(multiple ? DOCTOR_OK : DOCTOR_WARNING, "ranks", "rank %d of %d, %s THREAD_MULTIPLE", (int)rank,
                   (int)ranks, multiple ? "with" : "loading will not overlap training without");
    }
}

static int doctor_launch(void)
{
    char name[] = "doctor";
    char *argv[] = {name, NULL};
    setenv(DOCTOR_RANK, "1", 1);
    return launch_ranks(2, 1, argv);
}

static void doctor_check_ranks(void)
{
    char text[2000];
    int ranks = 0, threads = 0;
    const double begin = clock_seconds();
    const int code = doctor_try(doctor_launch, 60, text, sizeof text);
    const char *found = strstr(text, "ranks ");
    text[strcspn(text, "\n")] = found == text ? '\n' : '\0';
    if (code != 0 || found == NULL || sscanf(found, "ranks %d threads %d", &ranks, &threads) != 2) {
        doctor_say(DOCTOR_FAIL, "ranks", "2 ranks did not come to an end (code %d): %s", code, text);
    } else if (ranks != 2) {
        doctor_say(DOCTOR_FAIL, "ranks", "expected 2 ranks, found runs of %d: %s belongs to another MPI library", ranks,
                   launch_mpiexec());
    } else if (!threads) {
        doctor_say(DOCTOR_WARNING, "ranks",
                   "2 ranks work together, but without THREAD_MULTIPLE: loading will not overlap training");
    } else {
        doctor_say(DOCTOR_OK, "ranks", "2 ranks work together with THREAD_MULTIPLE, started and ended in %.1f s",
                   clock_seconds() - begin);
    }
}

static void doctor_check_mpi(void)
{
    char version[128], library[128];
    rudder_error_t error;
    if (launch_check(version, sizeof version, &error) != RUDDER_OK) {
        doctor_say(DOCTOR_FAIL, "MPI", "%s", error.text);
        return;
    }
    cli_mpi_version(library, sizeof library);
    doctor_say(DOCTOR_OK, "MPI", "%s, launcher %s: %s", library, launch_mpiexec(), version);
    doctor_check_ranks();
}

/* METIS crashes rather than says what is wrong, a library with another width of integers above all. */
static int doctor_metis(void)
{
    enum { NODES = 16 };
    idx_t n = NODES, constraints = 1, parts = 2, cut = 0, begin[NODES + 1], neighbours[2 * NODES], part[NODES];
    int count[2] = {0, 0};
    for (idx_t v = 0; v < NODES; v++) {
        begin[v] = 2 * v;
        neighbours[2 * v] = (v + NODES - 1) % NODES;
        neighbours[2 * v + 1] = (v + 1) % NODES;
    }
    begin[NODES] = 2 * NODES;
    if (METIS_PartGraphKway(&n, &constraints, begin, neighbours, NULL, NULL, NULL, &parts, NULL, NULL, NULL, &cut,
                            part) != METIS_OK) {
        return 1;
    }
    for (idx_t v = 0; v < NODES; v++) {
        if (part[v] != 0 && part[v] != 1) {
            return 2;
        }
        count[part[v]]++;
    }
    return count[0] > 0 && count[1] > 0 && cut >= 2 && cut < NODES ? 0 : 3;
}

static void doctor_check_metis(void)
{
    char text[256];
    const int code = doctor_try(doctor_metis, 20, text, sizeof text);
    if (code != 0) {
        doctor_say(DOCTOR_FAIL, "METIS",
                   "did not split a ring of 16 nodes (code %d); install libmetis5, or partition --method random", code);
    } else {
        doctor_say(DOCTOR_OK, "METIS", "%d.%d.%d, a ring of 16 nodes is split", METIS_VER_MAJOR, METIS_VER_MINOR,
                   METIS_VER_SUBMINOR);
    }
}

static void doctor_check_blas(char **argv)
{
    const char *note;
    rudder_error_t error;
    if (kernel_check_blas(argv, &note, &error) != RUDDER_OK) {
        doctor_say(DOCTOR_FAIL, "BLAS", "%s", error.text);
    } else {
        doctor_say(note[0] != '\0' ? DOCTOR_WARNING : DOCTOR_OK, "BLAS", "%s%s%s", kernel_blas_name(),
                   note[0] != '\0' ? "; " : "", note);
    }
}

/* ---- model and agent ---- */

static void doctor_check_models(void)
{
    static const char *const names[] = {"default", "small", "tiny"};
    int found = 0;
    if (!cli_has_llama()) {
        doctor_say(DOCTOR_WARNING, "llama.cpp",
                   "not in this program: every decider but llm works; see scripts/build_llama.sh");
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4096], size[32];
        rudder_error_t error;
        gguf_info_t info;
        if (models_path(names[i], path, sizeof path, NULL) != RUDDER_OK) {
            continue;
        }
        found++;
        if (gguf_check(path, &info, &error) != RUDDER_OK) {
            doctor_say(DOCTOR_FAIL, "model", "%s; remove it, then rudder agent --fetch", error.text);
        } else {
            text_of_bytes(info.file_bytes, size, sizeof size);
            doctor_say(DOCTOR_OK, "model", "%s: %s, %s", names[i], path, size);
        }
    }
    if (found == 0) {
        doctor_say(DOCTOR_WARNING, "model", "none fetched; every decider but llm works: rudder agent --fetch");
    }
}

static void doctor_check_agent(const char *model)
{
    char program[4096], path[4096], job[64], words[AGENT_MAX_TEXT];
    rudder_error_t error;
    rudder_answer_t answer = {.size = sizeof answer};
    const rudder_context_t context = {.size = sizeof context,
                                      .minibatch = 64,
                                      .minibatches_left = 400,
                                      .period = 16,
                                      .window_minibatches = 16,
                                      .remote_rows = 16000,
                                      .hit_rows = 4000,
                                      .miss_rows = 12000,
                                      .hit_rate = 0.25,
                                      .hit_rate_total = 0.3,
                                      .fetched_per_minibatch = 750,
                                      .row_bytes = 1024,
                                      .capacity = 5000,
                                      .stale_share = 0.4,
                                      .stale = 2000,
                                      .candidates = 3000,
                                      .swaps = 2000,
                                      .saving_per_minibatch = 200,
                                      .saving_rows = 80000,
                                      .cost_rows = 2000};
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    if (models_path(model, path, sizeof path, &error) != RUDDER_OK) {
        doctor_say(DOCTOR_FAIL, "agent", "%s", error.text);
        return;
    }
    snprintf(job, sizeof job, "doctor-%d", (int)getpid());
    const rudder_agent_config_t config = {.program = program, .model = path, .job = job};
    agent_client_t *client = calloc(1, sizeof *client);
    if (client == NULL || agent_client_open(&config, "", client, &error) != RUDDER_OK) {
        doctor_say(DOCTOR_FAIL, "agent", "%s", client == NULL ? "out of memory" : error.text);
        free(client);
        return;
    }
    const double begin = clock_seconds();
    rudder_context_words(&context, words, sizeof words);
    if (agent_client_ask(client, words, begin + 120, &answer, &error) != RUDDER_OK) {
        doctor_say(DOCTOR_FAIL, "agent", "%s", error.text);
    } else if (answer.verdict == RUDDER_NO_VERDICT) {
        doctor_say(DOCTOR_WARNING, "agent", "the answer said neither yes nor no; take another model");
    } else {
        doctor_say(DOCTOR_OK, "agent",
                   "answered \"%s\" after %.1f s, start included; rudder agent --selftest tells how good it is",
                   answer.verdict == RUDDER_REPLACE ? "replace" : "keep", clock_seconds() - begin);
    }
    agent_client_close(client);
    free(client);
}

/* ---- a partition directory ---- */

static rudder_status_t doctor_open_parts(const char *directory, parts_t *parts, rudder_error_t *error)
{
    rudder_status_t status = RUDDER_OK;
    RUDDER_TRY(parts_open(directory, parts, error));
    for (int32_t p = 0; p < parts->n_parts && status == RUDDER_OK; p++) {
        part_t part;
        status = part_open(directory, parts, p, &part, error);
        if (status == RUDDER_OK) {
            part_close(&part);
        }
    }
    return status;
}

static void doctor_check_parts(const char *directory)
{
    parts_t parts = {0};
    rudder_error_t error;
    char nodes[32], edges[32];
    if (doctor_open_parts(directory, &parts, &error) != RUDDER_OK) {
        doctor_say(DOCTOR_FAIL, "parts", "%s", error.text);
    } else {
        doctor_say(DOCTOR_OK, "parts", "%s: %d parts, %s nodes, %s edges, all arrays are right", parts.name,
                   (int)parts.n_parts, text_of_count(parts.n_nodes, nodes, sizeof nodes),
                   text_of_count(parts.n_edges, edges, sizeof edges));
    }
    parts_close(&parts);
}

int cli_doctor(int argc, char **argv)
{
    doctor_options_t options;
    const char *parts = NULL;
    int32_t n_arguments;
    int exit_code;
    if (!cli_options(&doctor_command, argc, argv, &options, &parts, &n_arguments, &exit_code)) {
        return exit_code;
    }
    if (getenv(DOCTOR_RANK) != NULL && launch_is_rank()) {
        return doctor_rank();
    }
    doctor_check_blas(argv - 1); /* first: it may start the program anew */
    doctor_check_cores();
    doctor_check_memory();
    doctor_check_shared_memory();
    doctor_check_files();
    if (!launch_is_rank()) {
        doctor_check_mpi();
    }
    doctor_check_metis();
    doctor_check_models();
    if (options.model != NULL) {
        doctor_check_agent(options.model);
    }
    if (n_arguments > 0) {
        doctor_check_parts(parts);
    }
    if (launch_is_rank()) {
        doctor_check_as_rank(); /* last: nothing is forked beside MPI */
    }
    return doctor_failures == 0 ? 0 : cli_exit_code(RUDDER_E_ENVIRONMENT);
}
