/*
 * The figures of a controller that other threads may read: written by the caller's thread, copied whole by any other.
 * A sequence number, odd while a write is under way, tells a reader to copy again; the writer never waits.
 */
#ifndef RUDDER_CONTROL_FIGURES_H
#define RUDDER_CONTROL_FIGURES_H

#include <stdatomic.h>
#include <stdint.h>

/* Fields of 8 bytes only. */
typedef struct figures {
    int64_t window_remote, window_hit;
    int64_t asked, answered, replaced, kept, nothing_stale, invalid, late, failed, fallback;
    double latency_mean, latency_p50, latency_p99; /* ms */
    double age_mean;
} figures_t;

enum { FIGURES_WORDS = sizeof(figures_t) / sizeof(uint64_t) };

typedef struct figures_board {
    _Atomic uint64_t sequence;
    _Atomic uint64_t word[FIGURES_WORDS];
} figures_board_t;

void figures_publish(figures_board_t *board, const figures_t *figures);
void figures_read(const figures_board_t *board, figures_t *figures);

#endif
