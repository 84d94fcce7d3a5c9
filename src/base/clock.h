/* Monotonic time, and the one way in which anything in Rudder waits for something it must poll. */
#ifndef RUDDER_BASE_CLOCK_H
#define RUDDER_BASE_CLOCK_H

#include <sched.h>
#include <time.h>

static inline double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void clock_sleep(double seconds)
{
    if (seconds > 0) {
        struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
        nanosleep(&t, NULL);
    }
}

/*
 * Back-off between polls: spin a little, yield, then sleep 50 us. Spinning longer steals the cores that compute when
 * ranks outnumber them; sleeping at once costs latency when the answer is near. Start from zero.
 */
typedef struct clock_backoff {
    unsigned polls;
} clock_backoff_t;

static inline void clock_back_off(clock_backoff_t *backoff)
{
    if (backoff->polls < 64) {
        backoff->polls++;
    } else if (backoff->polls < 96) {
        backoff->polls++;
        sched_yield();
    } else {
        clock_sleep(50e-6);
    }
}

#endif
