/*
 * The clock of a replay: when would the steps of a run have happened? It follows the trainer (src/train): each rank has a
 * loader, which samples, plans, fetches, completes and gathers, up to `depth` minibatches ahead of its training; ranks meet
 * in every exchange, since owners serve rows in it, and in the allreduce that ends every step.
 *
 *   loader    waits for a free one of depth + 1 places, spends sample and plan, then exchanges: misses, in rounds of a
 *             bounded number of rows; spends complete and gather and hands the minibatch over; fill rows come in further
 *             rounds while the training goes on. A round begins when all ranks are there, and each rank leaves it when its
 *             rows have passed its links, in the same book-keeping as the emulated links of the trainer (comm/link.h):
 *             requests and rows of others travel on them, too.
 *   training  begins a step when the one before has ended and its minibatch was handed over, computes, and ends it with all
 *             other ranks.
 *
 * Without overlap there is one place and the minibatch is handed over after its fill rows: loading and training take turns.
 */
#ifndef RUDDER_TRACE_CLOCK_H
#define RUDDER_TRACE_CLOCK_H

#include <stdint.h>

#include "comm/link.h"
#include "rudder/status.h"

/* From a minibatch on, a link is another one. */
typedef struct clock_change {
    int64_t from;
    int32_t owner; /* -1: the link that all owners share */
    link_t link;
} clock_change_t;

typedef struct clock_setup {
    int32_t n_ranks, n_owners;
    const int32_t *owner; /* [n_ranks]: which owner each rank is */
    int32_t depth;        /* 1 or more; 0: no overlap */
    int64_t row_bytes;
    links_t links;                 /* at the start; each rank has its own of them */
    const clock_change_t *changes; /* [n_changes], ascending */
    int64_t n_changes;
} clock_setup_t;

/* Seconds of one rank: its loader in exchanges, its training waiting for minibatches. */
typedef struct clock_sums {
    double fetch, wait;
} clock_sums_t;

/* Not shared between threads. Ranks are numbered 0 .. n_ranks - 1 here, whatever their number in the run. */
typedef struct clock_model clock_model_t;

/* setup is kept, and must outlive the model. Errors: MEMORY. */
rudder_status_t clock_model_open(const clock_setup_t *setup, clock_model_t **model, rudder_error_t *error);
void clock_model_close(clock_model_t *model); /* NULL is allowed */

/* Minibatch `t` is about to be loaded: links change, loaders wait for a free place. */
void clock_model_begin(clock_model_t *model, int64_t t);
/* A rank's loader: its time; it works for so long. */
double clock_model_now(const clock_model_t *model, int32_t rank);
void clock_model_spend(clock_model_t *model, int32_t rank, double seconds);
/*
 * One round: rows[n_ranks][n_owners] is what each rank asks of each owner. seconds[n_ranks][n_owners] grows by the time that
 * it took to arrive.
 */
void clock_model_exchange(clock_model_t *model, const int64_t *rows, double *seconds);
/* The minibatch of this rank is handed over. */
void clock_model_hand_over(clock_model_t *model, int32_t rank);
/* All rounds of the minibatch are over: the step is trained on. compute[n_ranks]: seconds, the allreduce included. */
void clock_model_compute(clock_model_t *model, const double *compute);
/* What the trainer waited for the minibatch whose place the current one has taken, and computed on it. */
void clock_model_before(const clock_model_t *model, int32_t rank, double *wait, double *compute);
clock_sums_t clock_model_sums(const clock_model_t *model, int32_t rank);
/* When the last step ended; the run began at 0. */
double clock_model_end(const clock_model_t *model);

/*
 * Reads a schedule: lines "FROM_MINIBATCH OWNER|* RATE[,LATENCY]", "off" for no limit, '#' and what follows is ignored,
 * FROM_MINIBATCH never falls. links: those at the start. *changes is to be freed. Errors: IO, DATA (with the line; more
 * owners with a link of their own than links_t has room for), MEMORY.
 */
rudder_status_t clock_read_schedule(const char *path, const links_t *links, clock_change_t **changes, int64_t *n,
                                    rudder_error_t *error);

#endif
