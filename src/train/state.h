/* The state of a rank, shared by the files of src/train: open.c fills it, epochs.c trains, train.c runs the whole. */
#ifndef RUDDER_TRAIN_STATE_H
#define RUDDER_TRAIN_STATE_H

#include <pthread.h>
#include <stdint.h>

#include "base/team.h"
#include "comm/exchange.h"
#include "nn/adam.h"
#include "nn/sage.h"
#include "train/evaluate.h"
#include "train/loader.h"
#include "train/record.h"
#include "train/run_log.h"
#include "train/start.h"
#include "train/train.h"

typedef struct train {
    const train_config_t *config;
    parts_t parts;
    part_t part;
    comm_t compute, loading, evaluating; /* communicators: each is used by one thread at a time */
    links_t links;
    exchange_t *exchange, *evaluate_exchange;
    team_t *team;
    sage_t *sage;
    adam_t adam;
    sampler_t *sampler;
    rudder_t *handle;
    loader_t *loader;
    evaluate_t *evaluate;
    double *start_weight; /* of the halo, while the buffer is opened; or NULL */
    float *scratch;       /* of comm_sum() */
    float *d_logits;
    int64_t d_logits_capacity; /* rows */
    run_log_t log;
    record_t record;
    int threads_multiple, speaks; /* speaks: the first rank of its host tells messages */
    char job[24], program[4096];
    double begin, mark;
    train_rank_t mine;

    pthread_mutex_t lock; /* of what the watch for signals reads: result and finished */
    train_result_t result;
    int finished;
} train_t;

/* Loads the part and opens everything, the run directory last. Failures are agreed on unless *agreed is 0. Collective. */
rudder_status_t train_open(train_t *train, int *agreed, rudder_error_t *error);
/* Tells what will run, before it runs. */
void train_tell(const train_t *train);
/* Trains all epochs. Collective. Failures are this rank's own. */
rudder_status_t train_epochs(train_t *train, rudder_error_t *error);

#endif
