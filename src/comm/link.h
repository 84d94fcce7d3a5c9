/*
 * An emulated link: rows arrive no sooner than over a network of the given rate and latency. On one machine ranks talk
 * through shared memory; figures with a link are always labelled *emulated*.
 */
#ifndef RUDDER_COMM_LINK_H
#define RUDDER_COMM_LINK_H

#include <stdint.h>

#include "rudder/status.h"

/* Zeroed: no link. One per rank, used by one thread: all exchanges of the rank share its duplex link. */
typedef struct link {
    double bytes_per_second; /* 0: not limited */
    double latency;          /* seconds, one way */
    double free_at;          /* clock_seconds() when the last byte has passed */
} link_t;

/* Reads "1Gbit", "200Mbit,50us", "off". Errors: USAGE with what was expected. */
rudder_status_t link_parse(const char *text, link_t *link, rudder_error_t *error);
/*
 * Books a request and its reply, started at `start`, and returns when the reply has arrived: after what was booked before,
 * the longer of in- and outgoing bytes (the link is duplex), and the latency of both ways. Nothing to carry arrives at once.
 */
double link_arrival(link_t *link, double start, int64_t bytes_in, int64_t bytes_out);

/*
 * The links of a rank. One carries all that goes out and what comes from the owners that share it; what comes from an owner
 * behind a link of its own passes that instead. Zeroed: no link.
 */
enum { LINKS_OWN = 16 };
typedef struct links {
    link_t common;
    int32_t n_own;
    struct {
        int32_t owner;
        link_t link;
    } own[LINKS_OWN];
} links_t;

/*
 * Reads "1Gbit,50us" and "1Gbit,50us;2=100Mbit,1ms" (rows of owner 2 pass a slower link). Whether there is an owner 2 is
 * for the caller to check: links_last_owner(). Errors: USAGE.
 */
rudder_status_t links_parse(const char *text, links_t *links, rudder_error_t *error);
/* The owner's own link, NULL when it shares the common one. */
const link_t *links_own(const links_t *links, int32_t owner);
/* The same to write to: where it has none it gets one, without limit. NULL: LINKS_OWN owners have one already. */
link_t *links_add(links_t *links, int32_t owner);
/* 1 when anything is delayed at all. */
int links_delay(const links_t *links);
/* 1 when what comes from this owner is. */
int links_delay_owner(const links_t *links, int32_t owner);
/* The highest owner with a link of its own, -1: none. */
int32_t links_last_owner(const links_t *links);
/*
 * Books a request to every owner and the replies, started at `start`: in[n_owners], out[n_owners] bytes. arrival[n_owners]:
 * when each owner's reply has arrived; those who share a link get equal shares of it while they send, as TCP's do. Returns
 * when all has come and gone. Nothing to carry arrives at once.
 */
double links_arrival(links_t *links, double start, const int64_t *in, const int64_t *out, int32_t n_owners,
                     double *arrival);

#endif
