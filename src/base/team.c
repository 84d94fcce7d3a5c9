/*
 * A team of threads for loops over tiles. Tiles are handed out by a counter, members sleep on a condition between loops.
 * The caller works too and waits only for members that have begun: on crowded cores a member that wakes too late to help
 * costs nothing.
 */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/team.h"

typedef struct team_member {
    team_t *team;
    pthread_t id;
    int32_t thread;
} team_member_t;

struct team {
    int32_t threads;
    team_member_t *members; /* [threads]; the first one is the caller */
    pthread_mutex_t lock;   /* guards all but `next` */
    pthread_cond_t begin, end;
    int32_t started; /* members whose thread runs */
    int32_t working; /* members inside the current loop */
    uint64_t loop;   /* number of the current loop */
    int open;        /* the current loop takes members in */
    int stop;
    team_fn_t fn;
    void *context;
    int64_t tiles;
    _Atomic int64_t next; /* tile */
};

static void team_work(team_t *team, int32_t thread)
{
    for (;;) {
        const int64_t tile = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
        if (tile >= team->tiles) {
            return;
        }
        team->fn(team->context, tile, thread);
    }
}

static void *team_main(void *argument)
{
    team_member_t *member = argument;
    team_t *team = member->team;
    uint64_t seen = 0;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (!team->stop && !(team->open && team->loop != seen)) {
            pthread_cond_wait(&team->begin, &team->lock);
        }
        if (team->stop) {
            break;
        }
        seen = team->loop;
        team->working++;
        pthread_mutex_unlock(&team->lock);
        team_work(team, member->thread);
        pthread_mutex_lock(&team->lock);
        if (--team->working == 0) {
            pthread_cond_signal(&team->end);
        }
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* Signals are the main thread's business: members are born with all of them blocked. */
static rudder_status_t team_start(team_t *team, rudder_error_t *error)
{
    sigset_t all, before;
    int code = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (team->started < team->threads && code == 0) {
        team_member_t *member = &team->members[team->started];
        *member = (team_member_t){.team = team, .thread = team->started};
        code = pthread_create(&member->id, NULL, team_main, member);
        team->started += code == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "team of threads: expected %d threads, could start %d: %s",
                           team->threads, team->started, strerror(code));
    }
    return RUDDER_OK;
}

rudder_status_t team_open(int32_t threads, team_t **team, rudder_error_t *error)
{
    assert(threads >= 1);
    team_t *t = calloc(1, sizeof *t);
    team_member_t *members = calloc((size_t)threads, sizeof *members);
    if (t == NULL || members == NULL) {
        free(members);
        free(t);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "team of %d threads: out of memory", threads);
    }
    t->threads = threads;
    t->members = members;
    t->started = 1;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->begin, NULL);
    pthread_cond_init(&t->end, NULL);
    const rudder_status_t status = team_start(t, error);
    if (status != RUDDER_OK) {
        team_close(t);
        return status;
    }
    *team = t;
    return RUDDER_OK;
}

int32_t team_threads(const team_t *team)
{
    return team->threads;
}

void team_run(team_t *team, int64_t tiles, team_fn_t fn, void *context)
{
    if (team->threads == 1 || tiles <= 1) {
        for (int64_t tile = 0; tile < tiles; tile++) {
            fn(context, tile, 0);
        }
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->fn = fn;
    team->context = context;
    team->tiles = tiles;
    atomic_store_explicit(&team->next, 0, memory_order_relaxed);
    team->loop++;
    team->open = 1;
    pthread_cond_broadcast(&team->begin);
    pthread_mutex_unlock(&team->lock);
    team_work(team, 0);
    pthread_mutex_lock(&team->lock);
    team->open = 0;
    while (team->working > 0) {
        pthread_cond_wait(&team->end, &team->lock);
    }
    pthread_mutex_unlock(&team->lock);
}

void team_close(team_t *team)
{
    if (team == NULL) {
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->stop = 1;
    pthread_cond_broadcast(&team->begin);
    pthread_mutex_unlock(&team->lock);
    for (int32_t i = 1; i < team->started; i++) {
        pthread_join(team->members[i].id, NULL);
    }
    pthread_cond_destroy(&team->end);
    pthread_cond_destroy(&team->begin);
    pthread_mutex_destroy(&team->lock);
    free(team->members);
    free(team);
}
