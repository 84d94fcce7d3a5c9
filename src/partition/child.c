/* fork, wait, and say how it ended. The child dies with its parent, so that a killed command leaves nothing behind. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "partition/child.h"

rudder_status_t child_memory(size_t bytes, void **shared, rudder_error_t *error)
{
    void *memory = mmap(NULL, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no shared memory of %zu bytes: %s", bytes, strerror(errno));
    }
    *shared = memory;
    return RUDDER_OK;
}

void child_memory_free(void *shared, size_t bytes)
{
    if (shared != NULL) {
        munmap(shared, bytes > 0 ? bytes : 1);
    }
}

static void child_main(pid_t parent, child_fn_t fn, void *context, void *shared)
{
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        signal(signals[i], SIG_DFL); /* the parent's handlers know nothing of this process */
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
    const int null = open("/dev/null", O_WRONLY);
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    _exit(fn(context, shared) & 127);
}

rudder_status_t child_run(const char *what, child_fn_t fn, void *context, void *shared, int *code,
                          rudder_error_t *error)
{
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "%s: no process could be started: %s", what, strerror(errno));
    }
    if (pid == 0) {
        child_main(parent, fn, context, shared);
    }
    const double start = clock_seconds();
    int status;
    pid_t done;
    clock_backoff_t backoff = {0};
    while ((done = waitpid(pid, &status, WNOHANG)) == 0 || (done < 0 && errno == EINTR)) {
        log_progress(0, 0, "%s, %.0f s", what, clock_seconds() - start);
        backoff.polls < 96 ? clock_back_off(&backoff) : clock_sleep(0.01);
    }
    log_progress_end();
    if (done != pid) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "%s: its process is lost: %s", what, strerror(errno));
    }
    if (WIFSIGNALED(status)) {
        const int sig = WTERMSIG(status);
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "%s: expected it to return, found it ended by signal %d (%s)%s",
                           what, sig, strsignal(sig), sig == SIGKILL ? ", as when memory runs out" : "");
    }
    *code = WEXITSTATUS(status);
    return RUDDER_OK;
}
