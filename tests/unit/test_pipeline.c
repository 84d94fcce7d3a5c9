/* The hand-over between loader and trainer: everything arrives, in order, and no slot is used by both sides at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "train/ring.h"

enum { ITEMS = 20000, SLOTS_MAX = 8 };

typedef struct side {
    ring_t ring;
    int64_t items;
    int64_t slot[SLOTS_MAX]; /* plain memory: the thread sanitizer sees any use by both sides */
    double producer_pause;
} side_t;

static void *produce(void *context)
{
    side_t *side = context;
    for (int64_t i = 0; i < side->items; i++) {
        side->slot[ring_free_slot(&side->ring)] = i;
        clock_sleep(side->producer_pause);
        ring_fill(&side->ring);
    }
    ring_end(&side->ring);
    return NULL;
}

static void run(int32_t slots, int64_t items, double producer_pause, double consumer_pause)
{
    side_t side = {.items = items, .producer_pause = producer_pause};
    pthread_t thread;
    assert_int_equal(ring_open(slots, &side.ring, NULL), RUDDER_OK);
    assert_int_equal(pthread_create(&thread, NULL, produce, &side), 0);
    int64_t seen = 0;
    for (int32_t slot; (slot = ring_take(&side.ring)) >= 0; seen++) {
        assert_int_equal(slot, seen % slots);
        assert_int_equal(side.slot[slot], seen);
        clock_sleep(consumer_pause);
        assert_int_equal(side.slot[slot], seen); /* nobody has written it meanwhile */
        side.slot[slot] = -1;
        ring_release(&side.ring);
    }
    assert_int_equal(seen, items);
    assert_int_equal(ring_take(&side.ring), -1); /* and stays so */
    pthread_join(thread, NULL);
    ring_close(&side.ring);
}

static void test_everything_arrives_in_order(void **state)
{
    (void)state;
    for (int32_t slots = 1; slots <= SLOTS_MAX; slots++) {
        run(slots, ITEMS, 0, 0);
    }
}

static void test_slow_sides(void **state)
{
    (void)state;
    run(1, 50, 1e-3, 0);
    run(3, 50, 1e-3, 0);
    run(1, 50, 0, 1e-3);
    run(3, 50, 0, 1e-3);
}

static void test_nothing_comes(void **state)
{
    (void)state;
    run(2, 0, 0, 0);
    run(1, 1, 0, 0);
}

/* The producer fills all slots and no more while nothing is taken. */
static void test_bounded(void **state)
{
    (void)state;
    side_t side = {.items = 100};
    pthread_t thread;
    assert_int_equal(ring_open(3, &side.ring, NULL), RUDDER_OK);
    assert_int_equal(pthread_create(&thread, NULL, produce, &side), 0);
    int64_t filled = 0;
    for (int i = 0; i < 200 && filled < 3; i++) {
        clock_sleep(1e-3);
        pthread_mutex_lock(&side.ring.lock);
        filled = side.ring.filled;
        pthread_mutex_unlock(&side.ring.lock);
    }
    clock_sleep(20e-3);
    pthread_mutex_lock(&side.ring.lock);
    assert_int_equal(side.ring.filled, 3);
    pthread_mutex_unlock(&side.ring.lock);
    while (ring_take(&side.ring) >= 0) {
        ring_release(&side.ring);
    }
    pthread_join(thread, NULL);
    ring_close(&side.ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_arrives_in_order),
        cmocka_unit_test(test_slow_sides),
        cmocka_unit_test(test_nothing_comes),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
