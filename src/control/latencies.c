/* A ring in order of time says which latency leaves; a sorted copy answers. */
#include "control/latencies.h"

#include <string.h>

static int64_t latencies_count(const latencies_t *latencies)
{
    return latencies->n < LATENCIES ? latencies->n : LATENCIES;
}

/* The first place in sorted[n] whose value is not below `latency`. */
static int64_t latencies_place(const double *sorted, int64_t n, double latency)
{
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (sorted[middle] < latency) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void latencies_add(latencies_t *latencies, double latency)
{
    double *sorted = latencies->sorted;
    double *newest = &latencies->in_time[latencies->n % LATENCIES];
    int64_t n = latencies_count(latencies);
    if (n == LATENCIES) {
        const int64_t gone = latencies_place(sorted, n, *newest);
        memmove(sorted + gone, sorted + gone + 1, (size_t)(n - gone - 1) * sizeof *sorted);
        n--;
    }
    const int64_t place = latencies_place(sorted, n, latency);
    memmove(sorted + place + 1, sorted + place, (size_t)(n - place) * sizeof *sorted);
    sorted[place] = *newest = latency;
    latencies->n++;
    double sum = 0;
    for (int64_t i = 0; i <= n; i++) {
        sum += sorted[i];
    }
    latencies->mean = sum / (double)(n + 1);
}

double latencies_quantile(const latencies_t *latencies, int64_t percent)
{
    const int64_t n = latencies_count(latencies);
    return n > 0 ? latencies->sorted[(percent * n + 99) / 100 - 1] : 0;
}
