/* Threads take the next job each; the caller's thread draws the progress line until all have ended. */
#include "trace/jobs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

enum { JOBS_MOST_THREADS = 256 };

typedef struct jobs_state {
    const jobs_t *jobs;
    atomic_int next, stop, running;
    pthread_mutex_t lock;
    int32_t failed; /* job, -1: none */
    rudder_error_t error;
} jobs_state_t;

static void *jobs_work(void *argument)
{
    jobs_state_t *state = argument;
    const jobs_t *jobs = state->jobs;
    int32_t i;
    while (!atomic_load(&state->stop) && (i = atomic_fetch_add(&state->next, 1)) < jobs->n) {
        rudder_error_t error = {0};
        const rudder_status_t status = jobs->run(jobs->context, i, &state->stop, &error);
        if (status == RUDDER_OK) {
            continue;
        }
        pthread_mutex_lock(&state->lock);
        /* One that ended because of another's failure says nothing. */
        if (status != RUDDER_E_INTERRUPTED && (state->failed < 0 || i < state->failed)) {
            state->failed = i;
            state->error = error;
            state->error.status = status;
        }
        pthread_mutex_unlock(&state->lock);
        atomic_store(&state->stop, 1);
    }
    atomic_fetch_sub(&state->running, 1);
    return NULL;
}

static void jobs_watch(const jobs_state_t *state)
{
    const jobs_t *jobs = state->jobs;
    while (atomic_load(&state->running) > 0) {
        const int64_t done = atomic_load(jobs->done);
        if (jobs->total > 0) {
            log_progress(done < jobs->total ? done : jobs->total, jobs->total, "%s", jobs->what);
        } else {
            log_progress(done, 0, "%s: %lld million ids", jobs->what, (long long)(done / 1000000));
        }
        clock_sleep(0.02);
    }
    log_progress_end();
}

rudder_status_t jobs_run(const jobs_t *jobs, rudder_error_t *error)
{
    pthread_t thread[JOBS_MOST_THREADS];
    jobs_state_t state = {.jobs = jobs, .failed = -1};
    int32_t n = jobs->threads < jobs->n ? jobs->threads : jobs->n, started = 0;
    int code = 0;
    n = n < JOBS_MOST_THREADS ? n : JOBS_MOST_THREADS;
    pthread_mutex_init(&state.lock, NULL);
    while (started < n && code == 0) {
        atomic_fetch_add(&state.running, 1);
        code = pthread_create(&thread[started], NULL, jobs_work, &state);
        if (code == 0) {
            started++;
        } else {
            atomic_fetch_sub(&state.running, 1);
        }
    }
    jobs_watch(&state);
    for (int32_t i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
    }
    pthread_mutex_destroy(&state.lock);
    if (started == 0 && n > 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "expected a thread, found: %s", strerror(code));
    }
    if (state.failed >= 0 && error != NULL) {
        *error = state.error;
    }
    return state.failed >= 0 ? state.error.status : RUDDER_OK;
}
