/* The watch for signals: handlers post a semaphore, the only thing they may do. */
#include "train/stop.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"

/* Handlers have no context, so this must be global. */
static struct {
    sem_t told;
    volatile sig_atomic_t signal;
    struct sigaction before_int, before_term;
    pthread_t thread;
    void (*fn)(void *context, int signal);
    void *context;
    int watching;
} stop;

static void stop_handler(int signal)
{
    const int saved = errno;
    stop.signal = signal;
    sem_post(&stop.told);
    errno = saved;
}

static void *stop_thread(void *unused)
{
    (void)unused;
    while (sem_wait(&stop.told) != 0) {
    }
    if (stop.signal != 0) {
        stop.fn(stop.context, stop.signal);
    }
    return NULL;
}

/* A signal that whoever started us has switched off stays off (nohup, a shell's background). */
static void stop_handle(int signal, struct sigaction *before)
{
    struct sigaction action = {.sa_handler = stop_handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, before);
    if (before->sa_handler == SIG_IGN) {
        sigaction(signal, before, NULL);
    }
}

rudder_status_t stop_watch(void (*fn)(void *context, int signal), void *context, rudder_error_t *error)
{
    stop.fn = fn;
    stop.context = context;
    stop.signal = 0;
    if (sem_init(&stop.told, 0, 0) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "the watch for signals: %s", strerror(errno));
    }
    const int status = pthread_create(&stop.thread, NULL, stop_thread, NULL);
    if (status != 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "the thread that watches for signals: %s", strerror(status));
    }
    stop_handle(SIGINT, &stop.before_int);
    stop_handle(SIGTERM, &stop.before_term);
    stop.watching = 1;
    return RUDDER_OK;
}

void stop_unwatch(void)
{
    if (!stop.watching) {
        return;
    }
    sigaction(SIGINT, &stop.before_int, NULL);
    sigaction(SIGTERM, &stop.before_term, NULL);
    sem_post(&stop.told);
    pthread_join(stop.thread, NULL);
    sem_destroy(&stop.told);
    stop.watching = 0;
}
