/* Quickselect and quicksort over one partition step. Pivots are drawn from a fixed sequence: no input is a bad one twice. */
#include <string.h>

#include "base/rng.h"
#include "buffer/rank.h"

enum { RANK_SMALL = 16 };

static inline void rank_swap(rank_item_t *a, rank_item_t *b)
{
    const rank_item_t t = *a;
    *a = *b;
    *b = t;
}

static void rank_insertion_sort(rank_item_t *items, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const rank_item_t item = items[i];
        int64_t j = i;
        for (; j > 0 && rank_before(&item, &items[j - 1]); j--) {
            items[j] = items[j - 1];
        }
        items[j] = item;
    }
}

/* Splits n > 2 items at a random one; returns where it stands: all before it are before it in the order. */
static int64_t rank_partition(rank_item_t *items, int64_t n, uint64_t *random)
{
    *random = rng_mix(*random);
    rank_swap(&items[0], &items[*random % (uint64_t)n]);
    const rank_item_t pivot = items[0];
    int64_t i = 0, j = n;
    for (;;) {
        do {
            i++;
        } while (i < n && rank_before(&items[i], &pivot));
        do {
            j--;
        } while (rank_before(&pivot, &items[j]));
        if (i >= j) {
            break;
        }
        rank_swap(&items[i], &items[j]);
    }
    items[0] = items[j];
    items[j] = pivot;
    return j;
}

void rank_select(rank_item_t *items, int64_t n, int64_t k)
{
    uint64_t random = (uint64_t)n;
    while (n > RANK_SMALL) {
        const int64_t at = rank_partition(items, n, &random);
        if (at == k - 1) {
            return;
        }
        if (at >= k) {
            n = at;
        } else {
            items += at + 1;
            n -= at + 1;
            k -= at + 1;
        }
    }
    rank_insertion_sort(items, n);
}

static void rank_quicksort(rank_item_t *items, int64_t n, uint64_t *random)
{
    while (n > RANK_SMALL) {
        const int64_t at = rank_partition(items, n, random);
        if (at < n - at - 1) { /* the smaller side by recursion: the stack stays below 64 frames */
            rank_quicksort(items, at, random);
            items += at + 1;
            n -= at + 1;
        } else {
            rank_quicksort(items + at + 1, n - at - 1, random);
            n = at;
        }
    }
    rank_insertion_sort(items, n);
}

void rank_sort(rank_item_t *items, int64_t n)
{
    uint64_t random = (uint64_t)n;
    rank_quicksort(items, n, &random);
}

int64_t rank_top_end(rank_top_t *top)
{
    if (top->n > top->k) {
        rank_select(top->items, top->n, top->k);
        top->n = top->k;
    }
    return top->n;
}
