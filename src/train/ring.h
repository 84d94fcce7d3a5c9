/*
 * A bounded hand-over of slots from one producer to one consumer, in order: how minibatches go from the loader thread
 * to the compute thread. Whoever must wait sleeps. The slots themselves belong to the caller; the ring speaks of
 * numbers.
 */
#ifndef RUDDER_TRAIN_RING_H
#define RUDDER_TRAIN_RING_H

#include <pthread.h>
#include <stdint.h>

#include "rudder/status.h"

typedef struct ring {
    pthread_mutex_t lock;
    pthread_cond_t filled_one, freed_one;
    int32_t slots;
    int64_t filled, freed; /* since the start */
    int ended;             /* nothing more comes */
} ring_t;

rudder_status_t ring_open(int32_t slots, ring_t *ring, rudder_error_t *error);
void ring_close(ring_t *ring);

/* Producer: waits for a free slot and returns its number; to be filled before ring_fill(). */
int32_t ring_free_slot(ring_t *ring);
void ring_fill(ring_t *ring);
/* Producer: nothing more comes; what was filled can still be taken. */
void ring_end(ring_t *ring);

/* Consumer: waits for the oldest filled slot and returns its number, -1 when all were taken and nothing more comes. */
int32_t ring_take(ring_t *ring);
/* Consumer: the slot last taken is free again. One slot is taken at a time. */
void ring_release(ring_t *ring);

#endif
