/*
 * What a row of each owner costs, in classes: class c costs 2^(c/2) times the cheapest. Few classes make policies simple (a
 * list for each), and a class is left only when the cost has clearly moved (hysteresis), so that noise changes nothing.
 *
 * Reports say how long all rows of an owner took together, and part of that is fixed (latency, a message). Seconds per row
 * would make an owner dear because few of its rows are asked for, a policy would keep those, and fewer would be asked for:
 * so seconds are fitted as fixed + cost x rows. Where rows hardly vary, the fit cannot tell the two apart; then it gives
 * a range, from "as much is fixed as the quickest owner takes in all" to "nothing is fixed", widened by what chance can do;
 * and a class changes only when the whole range says so.
 */
#ifndef RUDDER_BUFFER_COSTS_H
#define RUDDER_BUFFER_COSTS_H

#include <stdint.h>

#include "buffer/arena.h"
#include "rudder/rudder.h"

enum { COSTS_CLASSES = 16 }; /* up to 181 times the cheapest */

/* Sums over the reports of an owner, fading: half is forgotten in 32 of them. */
typedef struct costs_owner {
    double reports, rows, seconds, rows_rows, rows_seconds, seconds_seconds;
    int32_t class;
    int32_t strange; /* reports in a row that were far above (or below, negative) what was expected */
    int32_t silent;  /* updates since the last report */
    int32_t doubted; /* updates in a row in which it might have been cheap, although its class says dear */
} costs_owner_t;

/* Of a handle, shared by its types. Zeroed: every row costs the same. */
typedef struct costs {
    rudder_owner_cost_t mode;
    int32_t n_owners;
    uint32_t version;      /* grows when a class has changed */
    costs_owner_t *owners; /* [n_owners] */
} costs_t;

void costs_layout(arena_t *arena, int32_t n_owners, costs_t *costs);
/* given: [n_owners] for RUDDER_OWNER_COST_GIVEN. */
void costs_open(costs_t *costs, rudder_owner_cost_t mode, const double *given);
void costs_report(costs_t *costs, int32_t owner, int64_t rows, double seconds);
/* Takes what was reported into account: sets classes. Called once a minibatch, before anything is decided in it. O(owners). */
void costs_update(costs_t *costs);

/* 2^(class / 2). */
double costs_of_class(int32_t class);

/* The owner of an id; ids outside all ranges belong to the nearest. offset: [n_owners + 1]. */
static inline int32_t costs_find_owner(const int64_t *offset, int32_t n_owners, int64_t id)
{
    int32_t low = 0, high = n_owners - 1;
    while (low < high) {
        const int32_t middle = (low + high + 1) / 2;
        if (id >= offset[middle]) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* 0 without owners. */
static inline int32_t costs_class(const costs_t *costs, const int64_t *offset, int64_t id)
{
    return costs == NULL || costs->n_owners == 0 ? 0
                                                 : costs->owners[costs_find_owner(offset, costs->n_owners, id)].class;
}

#endif
