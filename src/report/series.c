/* Bins that double: the sum and the number of values of each field. */
#include "report/series.h"

#include <math.h>
#include <string.h>

void series_init(series_t *series)
{
    memset(series, 0, sizeof *series);
    series->width = 1;
}

static void series_halve(series_t *series)
{
    for (int f = 0; f < SERIES_FIELDS; f++) {
        double *sum = series->sum[f];
        int64_t *count = series->count[f];
        for (int b = 0; b < SERIES_BINS / 2; b++) {
            sum[b] = sum[2 * b] + sum[2 * b + 1];
            count[b] = count[2 * b] + count[2 * b + 1];
        }
        memset(sum + SERIES_BINS / 2, 0, SERIES_BINS / 2 * sizeof *sum);
        memset(count + SERIES_BINS / 2, 0, SERIES_BINS / 2 * sizeof *count);
    }
    series->width *= 2;
}

void series_add(series_t *series, int64_t minibatch, series_field_t field, double value)
{
    while (minibatch / series->width >= SERIES_BINS) {
        series_halve(series);
    }
    series->end = minibatch >= series->end ? minibatch + 1 : series->end;
    if (!isnan(value)) {
        series->sum[field][minibatch / series->width] += value;
        series->count[field][minibatch / series->width]++;
    }
}

void series_coarsen(series_t *series, int64_t width)
{
    while (series->width < width) {
        series_halve(series);
    }
}

void series_merge(series_t *series, series_t *other)
{
    series_coarsen(series, other->width);
    series_coarsen(other, series->width);
    for (int f = 0; f < SERIES_FIELDS; f++) {
        for (int b = 0; b < SERIES_BINS; b++) {
            series->sum[f][b] += other->sum[f][b];
            series->count[f][b] += other->count[f][b];
        }
    }
    series->end = other->end > series->end ? other->end : series->end;
}

int32_t series_bins(const series_t *series)
{
    return (int32_t)((series->end + series->width - 1) / series->width);
}

double series_middle(const series_t *series, int32_t bin)
{
    const int64_t first = bin * series->width,
                  last = first + series->width < series->end ? first + series->width : series->end;
    return (double)(first + last - 1) / 2;
}

double series_mean(const series_t *series, series_field_t field, int32_t bin)
{
    const int64_t count = series->count[field][bin];
    return count > 0 ? series->sum[field][bin] / (double)count : NAN;
}
