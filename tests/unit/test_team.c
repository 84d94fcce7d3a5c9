/* Teams: every tile once, any number of threads and tiles, no spinning, clean starts and ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/team.h"

typedef struct job {
    int32_t *count;  /* [tiles]: how often each tile ran; tiles write apart */
    int32_t *thread; /* [tiles]: who ran it */
    double seconds;  /* of a tile */
} job_t;

static void count_tile(void *context, int64_t tile, int32_t thread)
{
    job_t *job = context;
    clock_sleep(thread == 0 ? job->seconds : 10 * job->seconds); /* the caller is done first */
    job->count[tile]++;
    job->thread[tile] = thread;
}

static void every_tile_runs_once(void **state)
{
    static const int64_t tiles[] = {0, 1, 2, 3, 7, 100, 5000};
    (void)state;
    for (int32_t threads = 1; threads <= 8; threads++) {
        team_t *team = NULL;
        assert_int_equal(team_open(threads, &team, NULL), RUDDER_OK);
        assert_int_equal(team_threads(team), threads);
        for (size_t k = 0; k < sizeof tiles / sizeof tiles[0]; k++) {
            const int64_t n = tiles[k];
            job_t job = {.count = calloc((size_t)n + 1, sizeof(int32_t)),
                         .thread = calloc((size_t)n + 1, sizeof(int32_t))};
            team_run(team, n, count_tile, &job);
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(job.count[i], 1);
                assert_in_range(job.thread[i], 0, threads - 1);
            }
            assert_int_equal(job.count[n], 0);
            free(job.count);
            free(job.thread);
        }
        team_close(team);
    }
}

/* What tiles write is seen by the caller and by the tiles of the next loop, over many short loops. */
static void add_tile(void *context, int64_t tile, int32_t thread)
{
    int64_t *x = context; /* [2][8] */
    const int64_t step = x[16];
    (void)thread;
    x[(step + 1) % 2 * 8 + tile] = x[step % 2 * 8 + (tile + 1) % 8] + 1;
}

static void loops_see_what_was_before(void **state)
{
    team_t *team = NULL;
    int64_t x[17] = {0};
    (void)state;
    assert_int_equal(team_open(3, &team, NULL), RUDDER_OK);
    for (int64_t step = 0; step < 20000; step++) {
        x[16] = step;
        team_run(team, 8, add_tile, x);
        assert_int_equal(x[(step + 1) % 2 * 8 + step % 8], step + 1);
    }
    team_close(team);
}

static void several_threads_work(void **state)
{
    int32_t count[30] = {0}, thread[30] = {0};
    int32_t seen[4] = {0};
    job_t job = {.count = count, .thread = thread, .seconds = 2e-3};
    team_t *team = NULL;
    (void)state;
    assert_int_equal(team_open(4, &team, NULL), RUDDER_OK);
    team_run(team, 30, count_tile, &job);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(count[i], 1); /* also of those that finish last */
        seen[thread[i]]++;
    }
    for (int i = 0; i < 4; i++) {
        assert_true(seen[i] > 0); /* sleeping tiles leave room even on one core */
    }
    team_close(team);
}

static void members_sleep_between_loops(void **state)
{
    int32_t count[8] = {0}, thread[8] = {0};
    job_t job = {.count = count, .thread = thread};
    team_t *team = NULL;
    (void)state;
    assert_int_equal(team_open(4, &team, NULL), RUDDER_OK);
    team_run(team, 8, count_tile, &job);
    clock_sleep(0.2);               /* libraries that are linked in may spin when they are loaded */
    const clock_t before = clock(); /* CPU time of all threads */
    clock_sleep(0.3);
    assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 0.05);
    team_close(team);
}

static void teams_open_and_close(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        int32_t count[4] = {0}, thread[4] = {0};
        job_t job = {.count = count, .thread = thread};
        team_t *team = NULL;
        assert_int_equal(team_open(1 + i % 5, &team, NULL), RUDDER_OK);
        if (i % 2 == 0) {
            team_run(team, 4, count_tile, &job);
            assert_int_equal(count[3], 1);
        }
        team_close(team);
    }
    team_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_runs_once), cmocka_unit_test(loops_see_what_was_before),
        cmocka_unit_test(several_threads_work), cmocka_unit_test(members_sleep_between_loops),
        cmocka_unit_test(teams_open_and_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
