/*
 * Starting and ending the agent. vfork() and not fork(): a fork would run the handlers that BLAS libraries register, and
 * make every page of the trainer copy-on-write while it trains. Between vfork() and exec only system calls are made.
 */
#include "decide/agent_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

static const double agent_process_patience = .5; /* seconds between the steps of agent_process_end() */

enum { AGENT_MAX_ENVIRONMENT = 1024 };

/*
 * The environment, but with one thread for OpenBLAS, which the program links and the agent does not use: under a limit of
 * memory its idle threads fail to start and then spin.
 */
static char **agent_process_environment(char *copy[AGENT_MAX_ENVIRONMENT])
{
    static char one_thread[] = "OPENBLAS_NUM_THREADS=1";
    int n = 0;
    for (char **variable = environ; *variable != NULL && n < AGENT_MAX_ENVIRONMENT - 2; variable++) {
        if (strncmp(*variable, one_thread, sizeof one_thread - 2) != 0) {
            copy[n++] = *variable;
        }
    }
    copy[n++] = one_thread;
    copy[n] = NULL;
    return copy;
}

/* In the child, which shares the parent's memory until exec. */
static void __attribute__((noreturn)) agent_process_become(const agent_process_setup_t *setup, pid_t parent)
{
    sigset_t none;
    char *environment[AGENT_MAX_ENVIRONMENT];
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL); /* no handler of the parent may run here, and exec keeps what is ignored */
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(0); /* it had died before */
    }
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (setup->quiet) {
        dup2(null, STDERR_FILENO);
    }
    if (close_range(STDERR_FILENO + 1, ~0u, 0) != 0) {
        for (int fd = STDERR_FILENO + 1; fd < 4096; fd++) {
            close(fd);
        }
    }
    if (setup->memory_bytes > 0) {
        const struct rlimit limit = {(rlim_t)setup->memory_bytes, (rlim_t)setup->memory_bytes};
        setrlimit(RLIMIT_AS, &limit);
    }
    if (setup->nice > 0) {
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + setup->nice);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(setup->argv[0], setup->argv, agent_process_environment(environment));
    _exit(127);
}

rudder_status_t agent_process_start(agent_process_t *process, const agent_process_setup_t *setup, rudder_error_t *error)
{
    sigset_t all, before;
    const pid_t parent = getpid();
    if (access(setup->argv[0], X_OK) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: expected a program at %s, found: %s", setup->argv[0],
                           strerror(errno));
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = vfork();
    if (pid == 0) {
        agent_process_become(setup, parent);
    }
    const int fork_error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: expected a new process, found: %s", strerror(fork_error));
    }
    process->pid = pid;
    return RUDDER_OK;
}

int agent_process_gone(agent_process_t *process)
{
    if (process->pid != 0) {
        const pid_t pid = waitpid(process->pid, &process->status, WNOHANG);
        if (pid == process->pid || (pid < 0 && errno == ECHILD)) { /* ECHILD: the host reaps all its children itself */
            process->pid = 0;
        }
    }
    return process->pid == 0;
}

int agent_process_wait(agent_process_t *process, double seconds)
{
    const double until = clock_seconds() + seconds;
    double pause = 500e-6;
    while (!agent_process_gone(process)) {
        if (clock_seconds() >= until) {
            return 0;
        }
        clock_sleep(pause);
        pause = pause < 20e-3 ? 2 * pause : pause;
    }
    return 1;
}

int agent_process_stopped(const agent_process_t *process)
{
    char path[64], state = '\0';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process->pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
            state = '\0';
        }
        fclose(file);
    }
    return state == 'T';
}

void agent_process_kill(agent_process_t *process)
{
    if (!agent_process_gone(process)) { /* so the number is still our child's */
        kill(process->pid, SIGKILL);
        agent_process_wait(process, 4 * agent_process_patience);
    }
}

void agent_process_end(agent_process_t *process)
{
    if (!agent_process_wait(process, agent_process_patience)) {
        kill(process->pid, SIGTERM);
        if (!agent_process_wait(process, agent_process_patience)) {
            agent_process_kill(process);
        }
    }
}

char *agent_process_epitaph(const agent_process_t *process, char *text, size_t text_size)
{
    if (WIFSIGNALED(process->status)) {
        snprintf(text, text_size, "signal %d", WTERMSIG(process->status));
    } else {
        snprintf(text, text_size, "exit code %d", WEXITSTATUS(process->status));
    }
    return text;
}
