/* Cost classes of owners, from reports that fade or as they were given. */
#include <math.h>
#include <string.h>

#include "buffer/costs.h"

static const double costs_fading = .917;    /* half is forgotten in 8 reports */
static const double costs_hysteresis = .75; /* classes that a cost must be away from its own to leave it */

void costs_layout(arena_t *arena, int32_t n_owners, costs_t *costs)
{
    costs_owner_t *owners = arena_take(arena, (size_t)n_owners, sizeof *owners);
    if (costs != NULL) {
        *costs = (costs_t){.n_owners = n_owners, .owners = owners};
    }
}

/* Where a cost lies on the scale of classes. */
static double costs_place(double cost, double least)
{
    const double place = 2 * log2(cost / least);
    return place < COSTS_CLASSES - 1 ? place : COSTS_CLASSES - 1;
}

void costs_open(costs_t *costs, rudder_owner_cost_t mode, const double *given)
{
    double least = INFINITY;
    costs->mode = mode;
    memset(costs->owners, 0, (size_t)costs->n_owners * sizeof *costs->owners);
    for (int32_t o = 0; mode == RUDDER_OWNER_COST_GIVEN && o < costs->n_owners; o++) {
        least = fmin(least, given[o]);
    }
    for (int32_t o = 0; mode == RUDDER_OWNER_COST_GIVEN && o < costs->n_owners; o++) {
        costs->owners[o].class = (int32_t)lround(costs_place(given[o], least));
    }
}

void costs_report(costs_t *costs, int32_t owner, int64_t rows, double seconds)
{
    costs_owner_t *o = &costs->owners[owner];
    o->rows = o->rows * costs_fading + (double)rows;
    o->seconds = o->seconds * costs_fading + seconds;
}

void costs_update(costs_t *costs)
{
    double least = INFINITY;
    if (costs->mode != RUDDER_OWNER_COST_MEASURED) {
        return;
    }
    for (int32_t o = 0; o < costs->n_owners; o++) {
        const costs_owner_t *owner = &costs->owners[o];
        least = owner->rows > 0 && owner->seconds > 0 ? fmin(least, owner->seconds / owner->rows) : least;
    }
    for (int32_t o = 0; o < costs->n_owners; o++) {
        costs_owner_t *owner = &costs->owners[o];
        if (owner->rows > 0 && owner->seconds > 0) {
            const double place = costs_place(owner->seconds / owner->rows, least);
            if (fabs(place - owner->class) > costs_hysteresis) {
                owner->class = (int32_t)lround(place);
                costs->version++;
            }
        }
    }
}

double costs_of_class(int32_t class)
{
    return exp2(class / 2.0);
}
