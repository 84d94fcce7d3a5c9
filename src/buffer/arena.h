/*
 * One block of memory, cut into pieces: the same code that cuts it also measures it, so what is stated before anything is
 * allocated is what is allocated. Zeroed arena: measures. Overflows stick and are asked for once, at the end.
 */
#ifndef RUDDER_BUFFER_ARENA_H
#define RUDDER_BUFFER_ARENA_H

#include <stddef.h>
#include <stdint.h>

enum { ARENA_ALIGNMENT = 64 };

typedef struct arena {
    unsigned char *base; /* NULL: only measures */
    size_t used;
    int overflow;
} arena_t;

/* n items of `bytes` bytes, aligned to a cache line; NULL while measuring. Not zeroed. */
static inline void *arena_take(arena_t *arena, size_t n, size_t bytes)
{
    void *piece = arena->base == NULL ? NULL : arena->base + arena->used;
    size_t all;
    arena->overflow |= __builtin_mul_overflow(n, bytes, &all) ||
                       __builtin_add_overflow(all, (size_t)ARENA_ALIGNMENT - 1, &all) ||
                       __builtin_add_overflow(arena->used, all & ~((size_t)ARENA_ALIGNMENT - 1), &arena->used);
    return piece;
}

#endif
