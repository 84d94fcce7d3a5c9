/*
 * What the steps of a run add up to, over time: sums in at most SERIES_BINS bins of equally many minibatches. A run may be
 * of any length: when it outgrows the bins, pairs of them are added up and a bin covers twice as many minibatches. So a
 * chart has 200 to 400 points of a long run, every one the exact mean of its minibatches.
 */
#ifndef RUDDER_REPORT_SERIES_H
#define RUDDER_REPORT_SERIES_H

#include <stdint.h>

enum { SERIES_BINS = 400 };

typedef enum series_field {
    SERIES_REMOTE,
    SERIES_HIT,
    SERIES_MISS,
    SERIES_FILL,
    SERIES_BOUND,
    SERIES_LOSS,
    SERIES_WINDOW,
    SERIES_FIELDS
} series_field_t;

/* Zeroed: empty, but for the width, which series_init() sets. */
typedef struct series {
    int64_t width; /* minibatches of a bin, a power of two */
    int64_t end;   /* one more than the highest minibatch */
    double sum[SERIES_FIELDS][SERIES_BINS];
    int64_t count[SERIES_FIELDS][SERIES_BINS];
} series_t;

void series_init(series_t *series);
/* NAN is not counted. 0 <= minibatch < 2^62. */
void series_add(series_t *series, int64_t minibatch, series_field_t field, double value);
/* Makes bins of `width` minibatches; a width that is smaller than theirs changes nothing. */
void series_coarsen(series_t *series, int64_t width);
/* Adds all of `other`; both have bins of the wider width afterwards. */
void series_merge(series_t *series, series_t *other);

/* Bins in use. */
int32_t series_bins(const series_t *series);
/* The middle of a bin, in minibatches. */
double series_middle(const series_t *series, int32_t bin);
/* Mean of a field over the minibatches of a bin; NAN: it has none. */
double series_mean(const series_t *series, series_field_t field, int32_t bin);

#endif
