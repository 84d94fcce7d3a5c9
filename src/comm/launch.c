/*
 * Starting ranks with mpiexec. mpiexec gets a process group of its own, so that Ctrl-C in the terminal reaches only us and
 * is passed on once, as SIGTERM (MPICH's answer to SIGINT is a page of text). We are the subreaper of all that descends
 * from us: ranks that lose their mpiexec come back to us and are ended here.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/launch.h"
#include "comm/leftovers.h"

#define LAUNCH_STOP_SECONDS 8.0 /* from the signal until SIGKILL */
#define LAUNCH_REST_SECONDS 3.0 /* from mpiexec's end until SIGKILL for what is still there */

typedef struct launch {
    pid_t mpiexec;
    int status; /* of mpiexec, as waitpid() tells it */
    int ended;
    int stopped_by;  /* the signal, 0: none */
    double deadline; /* of the stop */
    time_t since;
    sigset_t signals, before;
    char folder[256], shared[64];
    int folder_held, shared_held; /* file descriptors */
} launch_t;

static int launch_is_openmpi(void)
{
    return strcmp(RUDDER_MPI_NAME, "openmpi") == 0;
}

int launch_is_rank(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (getenv(marks[i]) != NULL) {
            return 1;
        }
    }
    /* srun: the batch script itself has SLURM_PROCID as well, but no way to the process manager. */
    const char *tasks = getenv("SLURM_NTASKS");
    return getenv("SLURM_PROCID") != NULL && tasks != NULL && atoi(tasks) > 1 && getenv("PMI_FD") != NULL;
}

const char *launch_mpiexec(void)
{
    const char *told = getenv("RUDDER_MPIEXEC");
    return told != NULL && told[0] != '\0' ? told : RUDDER_MPIEXEC;
}

static rudder_status_t launch_missing(int number, rudder_error_t *error)
{
    return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT,
                       "%s cannot be started: %s; install the Debian package %s or set RUDDER_MPIEXEC",
                       launch_mpiexec(), strerror(number), launch_is_openmpi() ? "openmpi-bin" : "mpich");
}

rudder_status_t launch_check(char *version, size_t version_size, rudder_error_t *error)
{
    char text[2048];
    int ends[2], status;
    size_t used = 0;
    ssize_t n;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "no pipe: %s", strerror(errno));
    }
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execlp(launch_mpiexec(), launch_mpiexec(), "--version", (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    close(ends[1]);
    while (child > 0 && used < sizeof text - 1 && (n = read(ends[0], text + used, sizeof text - 1 - used)) > 0) {
        used += (size_t)n;
    }
    close(ends[0]);
    text[used] = '\0';
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "no process: %s", strerror(errno));
    }
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126)) {
        return launch_missing(WEXITSTATUS(status) == 127 ? ENOENT : EACCES, error);
    }
    const int openmpi = strstr(text, "OpenRTE") != NULL || strstr(text, "Open MPI") != NULL;
    const int mpich = strstr(text, "HYDRA") != NULL;
    if (launch_is_openmpi() ? !openmpi : !mpich) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT,
                           "%s: expected the launcher of %s, found that of %s; set RUDDER_MPIEXEC", launch_mpiexec(),
                           launch_is_openmpi() ? "Open MPI" : "MPICH",
                           openmpi ? "Open MPI"
                           : mpich ? "MPICH"
                                   : "something else");
    }
    const char *line = mpich && strstr(text, "Version:") != NULL ? strstr(text, "Version:") + strlen("Version:") : text;
    line += strspn(line, " \t");
    snprintf(version, version_size, "%.*s", (int)strcspn(line, "\n"), line);
    return RUDDER_OK;
}

/* Folders of the job, so that what the MPI library leaves in them goes with them. */
static void launch_make_folders(launch_t *launch)
{
    const char *base = getenv("TMPDIR");
    base = base != NULL && base[0] == '/' ? base : "/tmp";
    leftovers_remove_abandoned(base);
    leftovers_remove_abandoned("/dev/shm");
    launch->folder_held = leftovers_make_folder(base, launch->folder, sizeof launch->folder);
    launch->shared_held = leftovers_make_folder("/dev/shm", launch->shared, sizeof launch->shared);
}

static void launch_remove_folders(const launch_t *launch)
{
    leftovers_remove_folder(launch->folder);
    leftovers_remove_folder(launch->shared);
    if (launch->folder_held >= 0) {
        close(launch->folder_held);
    }
    if (launch->shared_held >= 0) {
        close(launch->shared_held);
    }
}

static void launch_set(const char *name, const char *value)
{
    if (value[0] != '\0') {
        setenv(name, value, 1);
    }
}

static void launch_set_environment(const launch_t *launch)
{
    char columns[16] = "";
    if (log_terminal_columns(STDERR_FILENO) > 0) {
        snprintf(columns, sizeof columns, "%d", (int)log_terminal_columns(STDERR_FILENO));
    }
    launch_set("RUDDER_TERMINAL_COLUMNS", columns);
    if (launch_is_openmpi()) {
        launch_set("OMPI_ALLOW_RUN_AS_ROOT", "1");
        launch_set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        launch_set("OMPI_MCA_orte_tmpdir_base", launch->folder);
        launch_set("OMPI_MCA_btl_vader_backing_directory", launch->shared);
    }
    launch_set("UCX_POSIX_DIR", launch->shared);
}

/* mpiexec, its flags, the program, its arguments. NULL: out of memory. */
static char **launch_arguments(int32_t ranks, const char *program, int argc, char **argv)
{
    static const char *const openmpi[] = {"-q",     "--oversubscribe", "--bind-to", "none",
                                          "--host", "localhost",       "-n",        NULL};
    static const char *const mpich[] = {"-launcher", "fork", "-bind-to", "none", "-n", NULL};
    static char count[16];
    char **arguments = calloc((size_t)argc + 16, sizeof *arguments);
    int n = 0;
    if (arguments == NULL) {
        return NULL;
    }
    snprintf(count, sizeof count, "%d", (int)ranks);
    arguments[n++] = (char *)launch_mpiexec();
    for (const char *const *flag = launch_is_openmpi() ? openmpi : mpich; *flag != NULL; flag++) {
        arguments[n++] = (char *)*flag;
    }
    arguments[n++] = count;
    arguments[n++] = (char *)program;
    memcpy(arguments + n, argv, (size_t)argc * sizeof *arguments);
    return arguments;
}

/* In the child: becomes mpiexec. What goes wrong is written to `report` as errno. */
static _Noreturn void launch_become_mpiexec(const launch_t *launch, pid_t parent, char **arguments, int report)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(1);
    }
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
    sigprocmask(SIG_SETMASK, &launch->before, NULL);
    execvp(arguments[0], arguments);
    const int number = errno;
    (void)!write(report, &number, sizeof number);
    _exit(127);
}

static rudder_status_t launch_start(launch_t *launch, int32_t ranks, int argc, char **argv, rudder_error_t *error)
{
    char program[4096];
    int report[2], number = 0;
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0 || pipe2(report, O_CLOEXEC) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "the ranks cannot be started: %s", strerror(errno));
    }
    program[length] = '\0';
    char **arguments = launch_arguments(ranks, program, argc, argv);
    const pid_t self = getpid();
    const pid_t child = arguments != NULL ? fork() : -1;
    if (child == 0) {
        launch_become_mpiexec(launch, self, arguments, report[1]);
    }
    free(arguments);
    close(report[1]);
    const ssize_t told = child > 0 ? read(report[0], &number, sizeof number) : 0;
    close(report[0]);
    if (child < 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "no process for mpiexec: %s", strerror(errno));
    }
    if (told == (ssize_t)sizeof number) {
        waitpid(child, NULL, 0);
        return launch_missing(number, error);
    }
    launch->mpiexec = child;
    return RUDDER_OK;
}

static void launch_reap(launch_t *launch)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == launch->mpiexec) {
            launch->status = status;
            launch->ended = 1;
        }
    }
}

static void launch_kill(const launch_t *launch)
{
    if (!launch->ended) {
        kill(-launch->mpiexec, SIGKILL);
    }
    leftovers_kill_descendants();
}

/* Waits up to `seconds` for one of our signals and acts on it: the first is passed on, a second one ends all at once. */
static void launch_handle_signal(launch_t *launch, double seconds)
{
    const struct timespec wait = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    const int number = sigtimedwait(&launch->signals, NULL, &wait);
    if (number <= 0 || number == SIGCHLD) {
        return;
    }
    if (launch->stopped_by != 0) {
        launch->deadline = clock_seconds();
        return;
    }
    launch->stopped_by = number;
    launch->deadline = clock_seconds() + LAUNCH_STOP_SECONDS;
    if (!launch->ended) {
        kill(launch->mpiexec, SIGTERM);
    }
}

static void launch_wait(launch_t *launch)
{
    while (launch_reap(launch), !launch->ended) {
        if (launch->stopped_by != 0 && clock_seconds() >= launch->deadline) {
            launch_kill(launch);
        }
        launch_handle_signal(launch, launch->stopped_by != 0 ? 0.05 : 1.0);
    }
    /* What is left is given a moment to end by itself: the agent notices that its last client is gone. */
    const double rest = clock_seconds() + LAUNCH_REST_SECONDS;
    while (leftovers_count_descendants() > 0) {
        const double now = clock_seconds();
        if (now >= rest || (launch->stopped_by != 0 && now >= launch->deadline)) {
            launch_kill(launch);
        }
        launch_handle_signal(launch, 0.01);
        launch_reap(launch);
    }
    launch_reap(launch);
}

/*
 * mpiexec's own code is that of the ranks, with two exceptions: Open MPI adds 128 to the signal that killed a rank, and
 * MPICH joins the bits of all wait statuses, so that a signal's number shines through (9, 11).
 */
static int launch_exit_code(const launch_t *launch)
{
    if (launch->stopped_by != 0) {
        return 128 + launch->stopped_by;
    }
    const int code = WIFEXITED(launch->status) ? WEXITSTATUS(launch->status) : 128 + WTERMSIG(launch->status);
    if (code <= 5 || code == 128 + SIGINT || code == 128 + SIGTERM) {
        return code;
    }
    log_line(LOG_ERROR, "a rank was killed or crashed (mpiexec ended with code %d)", code);
    return 5;
}

static void launch_block_signals(launch_t *launch)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    signal(SIGCHLD, SIG_DFL); /* were it ignored, nobody could be waited for */
    sigemptyset(&launch->signals);
    sigaddset(&launch->signals, SIGCHLD);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        /* What nohup or a shell's "&" has set to be ignored stays so. */
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
            sigaddset(&launch->signals, numbers[i]);
        }
    }
    sigprocmask(SIG_BLOCK, &launch->signals, &launch->before);
}

int launch_ranks(int32_t ranks, int argc, char **argv)
{
    launch_t launch = {.since = time(NULL)};
    char version[128];
    rudder_error_t error;
    int code = 4;

    /* A launcher that was chosen by hand may be the wrong one, and would then start N runs of one rank each. */
    if (strcmp(launch_mpiexec(), RUDDER_MPIEXEC) != 0 && launch_check(version, sizeof version, &error) != RUDDER_OK) {
        log_error(&error);
        return code;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    launch_block_signals(&launch);
    launch_make_folders(&launch);
    launch_set_environment(&launch);
    if (launch_start(&launch, ranks, argc, argv, &error) == RUDDER_OK) {
        launch_wait(&launch);
        code = launch_exit_code(&launch);
    } else {
        log_error(&error);
    }
    launch_remove_folders(&launch);
    if (code != 0 && !launch_is_openmpi()) {
        leftovers_remove_shared("mpich_shar_tmp", launch.since);
    }
    sigprocmask(SIG_SETMASK, &launch.before, NULL);
    return code;
}
