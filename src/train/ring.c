/* The bounded hand-over: two counters under one lock. */
#include "train/ring.h"

#include "base/error.h"

rudder_status_t ring_open(int32_t slots, ring_t *ring, rudder_error_t *error)
{
    *ring = (ring_t){.slots = slots};
    if (pthread_mutex_init(&ring->lock, NULL) != 0 || pthread_cond_init(&ring->filled_one, NULL) != 0 ||
        pthread_cond_init(&ring->freed_one, NULL) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "the pipeline's lock cannot be made");
    }
    return RUDDER_OK;
}

void ring_close(ring_t *ring)
{
    pthread_cond_destroy(&ring->freed_one);
    pthread_cond_destroy(&ring->filled_one);
    pthread_mutex_destroy(&ring->lock);
}

int32_t ring_free_slot(ring_t *ring)
{
    pthread_mutex_lock(&ring->lock);
    while (ring->filled - ring->freed == ring->slots) {
        pthread_cond_wait(&ring->freed_one, &ring->lock);
    }
    const int32_t slot = (int32_t)(ring->filled % ring->slots);
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

void ring_fill(ring_t *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->filled++;
    pthread_cond_signal(&ring->filled_one);
    pthread_mutex_unlock(&ring->lock);
}

void ring_end(ring_t *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->ended = 1;
    pthread_cond_signal(&ring->filled_one);
    pthread_mutex_unlock(&ring->lock);
}

int32_t ring_take(ring_t *ring)
{
    pthread_mutex_lock(&ring->lock);
    while (ring->filled == ring->freed && !ring->ended) {
        pthread_cond_wait(&ring->filled_one, &ring->lock);
    }
    const int32_t slot = ring->filled == ring->freed ? -1 : (int32_t)(ring->freed % ring->slots);
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

void ring_release(ring_t *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->freed++;
    pthread_cond_signal(&ring->freed_one);
    pthread_mutex_unlock(&ring->lock);
}
