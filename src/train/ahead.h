/*
 * Sampling ahead: minibatches are sampled before their turn and their remote ids announced to the buffer, for policies that
 * look ahead. Sampling is collective, so all ranks sample equally often: another minibatch is sampled while any rank's
 * policy would do better with it and every rank has room for it.
 */
#ifndef RUDDER_TRAIN_AHEAD_H
#define RUDDER_TRAIN_AHEAD_H

#include <stdint.h>

#include "comm/comm.h"
#include "partition/partition.h"
#include "rudder/rudder.h"
#include "sample/sampler.h"
#include "sample/seeds.h"
#include "train/train.h"

/* A minibatch that waits for its turn. Zeroed: empty; its arrays grow and stay. */
typedef struct sampled {
    minibatch_t minibatch;
    int64_t *remote; /* [n_remote] its remote input nodes, in order of appearance */
    int64_t n_remote, remote_capacity;
    int64_t labelled; /* seeds of all ranks that have a label */
    double seconds;   /* that sampling took */
    /* When its turn came: */
    int64_t window; /* later minibatches that were announced */
    int cut;        /* more were wanted, but some rank had no room */
} sampled_t;

void sampled_free(sampled_t *sampled);

typedef struct ahead_config {
    const parts_t *parts;
    const part_t *part;
    comm_t *comm; /* the one that the sampler's exchange uses */
    sampler_t *sampler;
    rudder_t *handle;
    seeds_config_t seeds;
    int64_t first_epoch; /* 0, but for samples that training never sees */
    int64_t stride;      /* 1: every step of an epoch; more: some of them */
    int64_t minibatches; /* of the run */
    int looks;           /* the policy looks ahead: the same on all ranks */
    int64_t memory;      /* bytes that what was sampled ahead may hold; one minibatch always may */
} ahead_config_t;

typedef struct ahead ahead_t;

/* What *config points to outlives it. Errors: MEMORY. */
rudder_status_t ahead_open(const ahead_config_t *config, ahead_t **ahead, rudder_error_t *error);
void ahead_close(ahead_t *ahead);

/*
 * The next minibatch, to be planned before the next call. Samples as many as are wanted first. What *sampled held is kept
 * for minibatches to come, so that nothing is copied. mark, times: the stop-watch of the thread. Collective.
 */
rudder_status_t ahead_next(ahead_t *ahead, sampled_t *sampled, double *mark, train_times_t *times,
                           rudder_error_t *error);

/* The most bytes that what was sampled ahead has held. */
int64_t ahead_most_bytes(const ahead_t *ahead);

#endif
