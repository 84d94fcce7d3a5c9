/*
 * The sequence lock behind the figures. Each word is stored with release order and loaded with acquire order: a reader that
 * sees a word of a newer write also sees the odd number that was stored before it.
 */
#include "control/figures.h"

#include <sched.h>
#include <string.h>

void figures_publish(figures_board_t *board, const figures_t *figures)
{
    uint64_t word[FIGURES_WORDS];
    memcpy(word, figures, sizeof word);
    const uint64_t sequence = atomic_load_explicit(&board->sequence, memory_order_relaxed);
    atomic_store_explicit(&board->sequence, sequence + 1, memory_order_relaxed);
    for (int i = 0; i < FIGURES_WORDS; i++) {
        atomic_store_explicit(&board->word[i], word[i], memory_order_release);
    }
    atomic_store_explicit(&board->sequence, sequence + 2, memory_order_release);
}

void figures_read(const figures_board_t *board, figures_t *figures)
{
    uint64_t word[FIGURES_WORDS];
    for (;;) {
        const uint64_t before = atomic_load_explicit(&board->sequence, memory_order_acquire);
        for (int i = 0; i < FIGURES_WORDS; i++) {
            word[i] = atomic_load_explicit(&board->word[i], memory_order_acquire);
        }
        const uint64_t after = atomic_load_explicit(&board->sequence, memory_order_relaxed);
        if (before == after && before % 2 == 0) {
            break;
        }
        sched_yield(); /* the writer was stopped in the middle of a dozen stores: let it run */
    }
    memcpy(figures, word, sizeof word);
}
