/* Mean and quantiles of the last 1024 latencies, kept sorted so that reading costs nothing. */
#ifndef RUDDER_CONTROL_LATENCIES_H
#define RUDDER_CONTROL_LATENCIES_H

#include <stdint.h>

enum { LATENCIES = 1024 };

typedef struct latencies {
    int64_t n;   /* ever added */
    double mean; /* 0 when there are none */
    double in_time[LATENCIES];
    double sorted[LATENCIES];
} latencies_t;

/* Cost: O(LATENCIES), once a decision. NaN is not allowed. */
void latencies_add(latencies_t *latencies, double latency);
/* The smallest latency that `percent` of 100 latencies do not exceed; 0 when there are none. */
double latencies_quantile(const latencies_t *latencies, int64_t percent);

#endif
