/* Cost classes of owners, from reports that fade or as they were given. */
#include "buffer/costs.h"

#include <math.h>

static const double costs_fading = 0.9785720620877; /* 2^(-1/32) */
static const double costs_hysteresis = .75;         /* classes that a cost must be away from its own to leave it */
static const double costs_dear = 2;                 /* the first class used: less is not worth it */
static const double costs_evidence = 4;             /* reports, faded, before an owner is judged */
static const double costs_prior = .5;               /* reports that the guess of the fixed part counts as */
static const double costs_sure = 3;                 /* standard errors that chance is allowed */
static const double costs_far = 2;                  /* times more or less than expected is strange ... */

enum {
    COSTS_STRANGE = 3,   /* ... and so many in a row are news: what was known is forgotten */
    COSTS_SILENT = 1024, /* updates after which nothing is known of an owner any more */
    COSTS_DOUBTED = 128  /* updates after which a class that is not certain gives way, to see more rows */
};

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
    const double place = cost > least ? 2 * log2(cost / least) : 0;
    return place < COSTS_CLASSES - 1 ? place : COSTS_CLASSES - 1;
}

void costs_open(costs_t *costs, rudder_owner_cost_t mode, const double *given)
{
    double least = INFINITY;
    costs->mode = mode;
    for (int32_t o = 0; o < costs->n_owners; o++) {
        costs->owners[o] = (costs_owner_t){0};
        least = mode == RUDDER_OWNER_COST_GIVEN ? fmin(least, given[o]) : least;
    }
    for (int32_t o = 0; mode == RUDDER_OWNER_COST_GIVEN && o < costs->n_owners; o++) {
        costs->owners[o].class = (int32_t)lround(costs_place(given[o], least));
    }
}

/* ---- the fit ---------------------------------------------------------------------------------------------------- */

/* Seconds = fixed + slope x rows; the slope is uncertain by `doubt`. */
typedef struct costs_fit {
    double fixed, slope, doubt;
} costs_fit_t;

/*
 * Least squares, with a guess of the fixed part that counts as costs_prior reports. No part is below 0: the slope is at most
 * seconds per row. The doubt is the standard error of the slope.
 */
static costs_fit_t costs_fit(const costs_owner_t *o, double guess)
{
    const double n = o->reports + costs_prior;
    const double determinant = n * o->rows_rows - o->rows * o->rows; /* above 0: n > reports */
    const double slope =
        (n * (o->rows_seconds - guess * o->rows) - o->rows * (o->seconds - o->reports * guess)) / determinant;
    costs_fit_t fit = {.slope = fmax(0, fmin(slope, o->seconds / o->rows))};
    fit.fixed = fmax(0, (o->seconds - fit.slope * o->rows) / o->reports);
    const double squares = o->seconds_seconds - 2 * (fit.fixed * o->seconds + fit.slope * o->rows_seconds) +
                           fit.fixed * fit.fixed * o->reports + 2 * fit.fixed * fit.slope * o->rows +
                           fit.slope * fit.slope * o->rows_rows;
    fit.doubt = sqrt(fmax(0, squares) / determinant);
    return fit;
}

static void costs_add(costs_owner_t *o, double rows, double seconds)
{
    o->reports = o->reports * costs_fading + 1;
    o->rows = o->rows * costs_fading + rows;
    o->seconds = o->seconds * costs_fading + seconds;
    o->rows_rows = o->rows_rows * costs_fading + rows * rows;
    o->rows_seconds = o->rows_seconds * costs_fading + rows * seconds;
    o->seconds_seconds = o->seconds_seconds * costs_fading + seconds * seconds;
}

void costs_report(costs_t *costs, int32_t owner, int64_t rows, double seconds)
{
    costs_owner_t *o = &costs->owners[owner];
    if (rows <= 0) {
        return;
    }
    o->silent = 0;
    if (o->reports > 0) {
        const costs_fit_t fit = costs_fit(o, 0);
        const double expected = fit.fixed + fit.slope * (double)rows;
        const int way = seconds > costs_far * expected ? 1 : seconds < expected / costs_far ? -1 : 0;
        o->strange = way == 0 ? 0 : way * o->strange > 0 ? o->strange + way : way;
        if (o->strange != 0 && o->strange < COSTS_STRANGE && o->strange > -COSTS_STRANGE) {
            return; /* an accident: a busy machine, a lost packet */
        }
        if (o->strange != 0) {
            *o = (costs_owner_t){.class = o->class};
        }
    }
    costs_add(o, (double)rows, seconds);
}

/* ---- classes ---------------------------------------------------------------------------------------------------- */

static int costs_known(const costs_owner_t *o)
{
    return o->reports >= costs_evidence && o->seconds > 0;
}

/*
 * The class of a cost that lies between two places, best guess `likely`: the old one as long as it is possible. Rows of a
 * dear owner are kept, so few of them come and little is learned; what is only possible therefore gives way, slowly.
 */
static int32_t costs_choose(costs_owner_t *o, double least, double most, double likely)
{
    int32_t class = o->class;
    o->doubted = class > 0 && least < costs_dear ? o->doubted + 1 : 0;
    if (class == 0 ? least >= costs_dear : class < least - costs_hysteresis || class > most + costs_hysteresis) {
        class = (int32_t)lround(likely);
    } else if (o->doubted == COSTS_DOUBTED) {
        o->doubted = 0;
        class --;
    }
    return class < costs_dear ? 0 : class;
}

void costs_update(costs_t *costs)
{
    double quickest = INFINITY, cheapest = INFINITY;
    if (costs->mode != RUDDER_OWNER_COST_MEASURED) {
        return;
    }
    for (int32_t i = 0; i < costs->n_owners; i++) {
        costs_owner_t *o = &costs->owners[i];
        if (o->silent++ >= COSTS_SILENT && o->reports > 0) {
            costs->version += o->class != 0;
            *o = (costs_owner_t){0};
        }
        if (costs_known(o)) {
            /* A fit to noise can say that rows cost next to nothing; nobody is compared with that. */
            const double floor = o->seconds / o->rows / 8;
            quickest = fmin(quickest, o->seconds / o->reports);
            cheapest = fmin(cheapest, fmax(costs_fit(o, 0).slope, floor));
        }
    }
    for (int32_t i = 0; i < costs->n_owners; i++) {
        costs_owner_t *o = &costs->owners[i];
        if (costs_known(o)) {
            /* Between "as much is fixed as the quickest takes in all" and "nothing is fixed". */
            const costs_fit_t low = costs_fit(o, quickest), high = costs_fit(o, 0);
            const double least = costs_place(low.slope - costs_sure * low.doubt, cheapest),
                         most = costs_place(high.slope + costs_sure * high.doubt, cheapest);
            const int32_t class = costs_choose(o, least, most, costs_place((low.slope + high.slope) / 2, cheapest));
            costs->version += class != o->class;
            o->class = class;
        }
    }
}

double costs_of_class(int32_t class)
{
    return exp2(class / 2.0);
}
