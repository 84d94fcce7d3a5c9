/*
 * Figures that one thread writes and any other copies whole, without locks. A sequence number, odd while a write is under
 * way, tells a reader to copy again; the writer never waits. Each word is stored with release order and loaded with
 * acquire order: a reader that sees a word of a newer write also sees the odd number that was stored before it.
 */
#ifndef RUDDER_BASE_BOARD_H
#define RUDDER_BASE_BOARD_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* bytes: of the figures, a multiple of 8 and the same in every call; words: room for them, zeroed at first. */
static inline void board_publish(_Atomic uint64_t *sequence, _Atomic uint64_t *words, const void *figures, size_t bytes)
{
    const uint64_t number = atomic_load_explicit(sequence, memory_order_relaxed);
    atomic_store_explicit(sequence, number + 1, memory_order_relaxed);
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
        uint64_t word;
        memcpy(&word, (const unsigned char *)figures + i * sizeof word, sizeof word);
        atomic_store_explicit(&words[i], word, memory_order_release);
    }
    atomic_store_explicit(sequence, number + 2, memory_order_release);
}

static inline void board_read(const _Atomic uint64_t *sequence, const _Atomic uint64_t *words, void *figures,
                              size_t bytes)
{
    uint64_t before, after;
    for (;;) {
        before = atomic_load_explicit(sequence, memory_order_acquire);
        for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
            const uint64_t word = atomic_load_explicit(&words[i], memory_order_acquire);
            memcpy((unsigned char *)figures + i * sizeof word, &word, sizeof word);
        }
        after = atomic_load_explicit(sequence, memory_order_relaxed);
        if (before == after && before % 2 == 0) {
            return;
        }
        sched_yield(); /* the writer was stopped in the middle of a few stores: let it run */
    }
}

#endif
