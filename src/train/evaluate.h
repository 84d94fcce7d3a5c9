/*
 * Evaluation with all neighbours, layer by layer over the owned nodes of every rank: exact, and each node is computed
 * once. Rows of halo nodes come over an exchange of its own, past the buffer and its statistics and past any emulated
 * link.
 */
#ifndef RUDDER_TRAIN_EVALUATE_H
#define RUDDER_TRAIN_EVALUATE_H

#include <stdint.h>

#include "base/team.h"
#include "comm/exchange.h"
#include "nn/sage.h"
#include "partition/partition.h"

typedef struct evaluate evaluate_t;

typedef struct evaluate_config {
    const parts_t *parts;
    const part_t *part;
    comm_t *comm;         /* for the sums */
    exchange_t *exchange; /* without a link */
    sage_t *sage;
    team_t *team;
    int32_t n_layers;
    const int32_t *fanout; /* [n_layers]; a layer with 0 has no neighbours here either */
} evaluate_config_t;

/* Bytes that evaluate_open() allocates. */
int64_t evaluate_memory(const evaluate_config_t *config);
/* What *config points to outlives the evaluation. Errors: MEMORY, DATA (a halo that lacks neighbours). */
rudder_status_t evaluate_open(const evaluate_config_t *config, evaluate_t **evaluate, rudder_error_t *error);
/* Accuracies over all ranks' validation and test nodes with labels; NaN where there are none. Collective. */
rudder_status_t evaluate_run(evaluate_t *evaluate, double *valid, double *test, rudder_error_t *error);
void evaluate_close(evaluate_t *evaluate);

#endif
