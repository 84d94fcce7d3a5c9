/*
 * The loader: seeds of a step -> sampled minibatch -> its remote ids through the buffer -> rows, handed to the compute
 * thread through a ring. Runs in a thread of its own, `depth` minibatches ahead, or inline where MPI allows one thread.
 */
#ifndef RUDDER_TRAIN_LOADER_H
#define RUDDER_TRAIN_LOADER_H

#include <stdint.h>

#include "comm/exchange.h"
#include "partition/partition.h"
#include "train/ahead.h"
#include "train/record.h"
#include "train/train.h"

/* A minibatch ready to train on; valid until it is released. */
typedef struct loaded {
    sampled_t sampled;
    float *x;           /* [n_input][n_feat] */
    int64_t x_capacity; /* in floats */
    train_counts_t counts;
    train_times_t times;  /* the loader's parts; fill rows are fetched after the hand-over, so they count in the next */
    double wait, compute; /* seconds, set by the compute thread before it releases the minibatch */
} loaded_t;

/* All pointers outlive the loader, which alone uses the handle, the sampler and the exchange while it runs. */
typedef struct loader_config {
    ahead_config_t ahead; /* parts, handle, sampler, what is sampled */
    exchange_t *exchange;
    record_t *record;
    int measure; /* what fetching from each owner takes is told to the library */
    int32_t depth;
    int threaded;
} loader_config_t;

typedef struct loader loader_t;

/* What is known at the end. */
typedef struct loader_sums {
    int64_t bytes, window_bytes; /* memory it held, and what minibatches sampled ahead held of it */
    int64_t start_rows;          /* rows of the start content */
} loader_sums_t;

/* Most input nodes that a minibatch of a rank can have: seeds x (1 + fan-out) a layer, never more than all nodes. */
int64_t loader_most_inputs(const parts_t *parts, int64_t seeds, int32_t n_layers, const int32_t *fanout);
/* Bytes that the rows of a loader take at most; minibatches sampled ahead and the exchange apart. */
int64_t loader_most_memory(int32_t slots, int64_t inputs, int64_t capacity_rows, int64_t row_bytes);
/* Minibatches that exist at once. */
int32_t loader_slots(const loader_config_t *config);

rudder_status_t loader_open(const loader_config_t *config, loader_t **loader, rudder_error_t *error);
/* Loads the start content of the buffer, then starts the thread. Collective. */
rudder_status_t loader_start(loader_t *loader, rudder_error_t *error);
/* Waits for the next minibatch. NULL after the last one. Errors: what the loader met; then nothing more comes. */
rudder_status_t loader_next(loader_t *loader, loaded_t **loaded, rudder_error_t *error);
void loader_release(loader_t *loader);

/*
 * After the last minibatch: joins the thread. *times: the loader's parts, their sum in `wall`. Errors: of the trace that is
 * recorded.
 */
rudder_status_t loader_finish(loader_t *loader, train_times_t *times, loader_sums_t *sums, rudder_error_t *error);
/* Only before loader_start() or after loader_finish(). */
void loader_close(loader_t *loader);

#endif
