/*
 * An emulated link: rows arrive no sooner than over a network of the given rate and latency. On one machine ranks talk
 * through shared memory; figures with a link are always labelled *emulated*.
 */
#ifndef RUDDER_COMM_LINK_H
#define RUDDER_COMM_LINK_H

#include <stdint.h>

#include "rudder/status.h"

/* Zeroed: no link. One per rank: what enters and what leaves share the duplex link of the host. */
typedef struct link {
    double bytes_per_second; /* 0: not limited */
    double latency;          /* seconds, one way */
    double free_at;          /* clock_seconds() when the last byte has passed */
} link_t;

/* Reads "1Gbit", "200Mbit,50us", "off". Errors: USAGE with what was expected. */
rudder_status_t link_parse(const char *text, link_t *link, rudder_error_t *error);
/* Books a transfer that started at `start` (in- and outgoing bytes overlap) and returns when it has arrived. */
double link_arrival(link_t *link, double start, int64_t bytes_in, int64_t bytes_out);

#endif
