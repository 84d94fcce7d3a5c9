/*
 * The first k of many items, and sorting. Start content, victims and candidates are all chosen by "higher key first, then
 * lower id": one order, one selection. Ids are distinct, so the order is strict and the outcome unique.
 */
#ifndef RUDDER_BUFFER_RANK_H
#define RUDDER_BUFFER_RANK_H

#include <stdint.h>

typedef struct rank_item {
    uint64_t key;
    int64_t id;
    int64_t node; /* carried along */
} rank_item_t;

static inline int rank_before(const rank_item_t *a, const rank_item_t *b)
{
    return a->key > b->key || (a->key == b->key && a->id < b->id);
}

/* Brings the first k of the order to the front, in any order but for the k-th, which is in its place. 0 < k <= n. */
void rank_select(rank_item_t *items, int64_t n, int64_t k);
void rank_sort(rank_item_t *items, int64_t n);

/* The first k of a stream of items, in memory for `capacity` > k of them. Amortised O(1) an item. */
typedef struct rank_top {
    rank_item_t *items; /* [capacity] */
    int64_t capacity, k, n;
    rank_item_t limit; /* once capacity was reached: what comes after it is not among the first k */
    int limited;
} rank_top_t;

static inline void rank_top_add(rank_top_t *top, rank_item_t item)
{
    if (top->k == 0 || (top->limited && !rank_before(&item, &top->limit))) {
        return;
    }
    if (top->n == top->capacity) {
        rank_select(top->items, top->n, top->k);
        top->n = top->k;
        top->limit = top->items[top->k - 1];
        top->limited = 1;
        if (!rank_before(&item, &top->limit)) {
            return;
        }
    }
    top->items[top->n++] = item;
}

/* Ends the stream: items[0 .. n) are the first of the order, at most k, in any order. Returns their number. */
int64_t rank_top_end(rank_top_t *top);

#endif
