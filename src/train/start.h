/*
 * Start contents that the trainer works out and the library does not know: a weight for each halo node, and the library loads
 * the heaviest (its start "weights").
 *
 *     presample    how often the node is in sampled minibatches of an epoch that training never comes to
 *     vip          its inclusion probability (sample/vip.h)
 *     file:PATH    what a file says
 */
#ifndef RUDDER_TRAIN_START_H
#define RUDDER_TRAIN_START_H

#include <stdint.h>

#include "comm/exchange.h"
#include "train/ahead.h"

/* Whether it is a start that the trainer has: one of these, or of the library's. Errors: USAGE, with the nearest name. */
rudder_status_t start_check(const char *start, rudder_error_t *error);
/* Whether a start is one of these. */
int start_has_weights(const char *start);

typedef struct start_config {
    const char *start;
    ahead_config_t ahead; /* as the loader will have it; handle is not used */
    exchange_t *exchange; /* of the sampler */
    int32_t n_layers;
    const int32_t *fanout;
} start_config_t;

/*
 * weight[n_halo]. Collective. Errors: of the file (USAGE, IO, DATA) and MEMORY, on all ranks alike unless *agreed is 0: then this
 * rank failed alone, or PEER.
 */
rudder_status_t start_weights(const start_config_t *config, double *weight, int *agreed, rudder_error_t *error);

#endif
