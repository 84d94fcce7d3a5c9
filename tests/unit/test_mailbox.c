/* The mailbox: what is taken is whole, newer than what was taken before, and the last message is never lost. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mailbox.h"

enum { WORDS = 33 /* not a multiple of a cache line */ };

typedef struct letter {
    int64_t word[WORDS];
} letter_t;

static letter_t letter(int64_t value)
{
    letter_t made;
    for (int i = 0; i < WORDS; i++) {
        made.word[i] = value;
    }
    return made;
}

/* The letter's value, INT64_MIN when its words differ. */
static int64_t value_of(const letter_t *given)
{
    for (int i = 1; i < WORDS; i++) {
        if (given->word[i] != given->word[0]) {
            return INT64_MIN;
        }
    }
    return given->word[0];
}

static void *open_mailbox(mailbox_t *mailbox, size_t bytes)
{
    void *memory = malloc(mailbox_memory(bytes));
    assert_non_null(memory);
    mailbox_open(mailbox, bytes, memory);
    return memory;
}

static void put(mailbox_t *mailbox, int64_t value)
{
    const letter_t made = letter(value);
    mailbox_put(mailbox, &made);
}

static int replace(mailbox_t *mailbox, int64_t value)
{
    const letter_t made = letter(value);
    return mailbox_replace(mailbox, &made);
}

static void test_one_thread(void **state)
{
    (void)state;
    mailbox_t mailbox;
    letter_t taken;
    void *memory = open_mailbox(&mailbox, sizeof(letter_t));
    assert_false(mailbox_take(&mailbox, &taken));
    assert_false(mailbox_waits(&mailbox));
    assert_false(mailbox_wait(&mailbox, 0));
    assert_false(replace(&mailbox, 7)); /* nothing waits: nothing is put */
    assert_false(mailbox_waits(&mailbox));
    for (int64_t value = 1; value <= 20; value++) {
        const int letters = (int)(value % 4); /* 0 to 3 newer ones replace a waiting one */
        put(&mailbox, 100 * value);
        for (int i = 1; i <= letters; i++) {
            if (i % 2 == 0) {
                assert_true(replace(&mailbox, 100 * value + i));
            } else {
                put(&mailbox, 100 * value + i);
            }
        }
        assert_true(mailbox_waits(&mailbox));
        assert_true(mailbox_wait(&mailbox, -1));
        assert_true(mailbox_take(&mailbox, &taken));
        assert_int_equal(value_of(&taken), 100 * value + letters);
        assert_false(mailbox_take(&mailbox, &taken));
        assert_false(replace(&mailbox, 5));
    }
    free(memory);
}

static void test_one_byte(void **state)
{
    (void)state;
    mailbox_t mailbox;
    void *memory = open_mailbox(&mailbox, 1);
    char taken = 0;
    for (char c = 'a'; c <= 'z'; c++) {
        mailbox_put(&mailbox, &c);
        assert_true(mailbox_take(&mailbox, &taken));
        assert_int_equal(taken, c);
    }
    free(memory);
}

enum { STRESS = 200000 };

static void *produce(void *argument)
{
    mailbox_t *mailbox = argument;
    for (int64_t value = 1; value <= STRESS; value++) {
        if (value % 3 != 0 || !replace(mailbox, value)) {
            put(mailbox, value);
        }
    }
    return NULL;
}

static void test_newest_wins(void **state)
{
    (void)state;
    mailbox_t mailbox;
    pthread_t producer;
    letter_t taken;
    int64_t last = 0;
    void *memory = open_mailbox(&mailbox, sizeof(letter_t));
    assert_int_equal(pthread_create(&producer, NULL, produce, &mailbox), 0);
    while (last < STRESS) {
        assert_true(mailbox_wait(&mailbox, -1));
        assert_true(mailbox_take(&mailbox, &taken));
        const int64_t value = value_of(&taken);
        assert_true(value > last && value <= STRESS); /* whole and newer */
        last = value;
    }
    pthread_join(producer, NULL);
    assert_false(mailbox_waits(&mailbox));
    free(memory);
}

typedef struct pair {
    mailbox_t there, back;
} pair_t;

enum { ROUNDS = 5000 };

static void *echo(void *argument)
{
    pair_t *pair = argument;
    letter_t taken;
    for (int64_t round = 0; round < ROUNDS; round++) {
        mailbox_wait(&pair->there, -1);
        if (mailbox_take(&pair->there, &taken)) {
            put(&pair->back, value_of(&taken) + 1);
        }
    }
    return NULL;
}

/* A sleeper is always woken: a lost wake-up would hang this test. */
static void test_question_and_answer(void **state)
{
    (void)state;
    pair_t pair;
    pthread_t thread;
    letter_t taken;
    void *there = open_mailbox(&pair.there, sizeof(letter_t));
    void *back = open_mailbox(&pair.back, sizeof(letter_t));
    assert_int_equal(pthread_create(&thread, NULL, echo, &pair), 0);
    for (int64_t round = 0; round < ROUNDS; round++) {
        put(&pair.there, 10 * round);
        assert_true(mailbox_wait(&pair.back, clock_seconds() + 60));
        assert_true(mailbox_take(&pair.back, &taken));
        assert_int_equal(value_of(&taken), 10 * round + 1);
    }
    pthread_join(thread, NULL);
    free(there);
    free(back);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_waiting_sleeps(void **state)
{
    (void)state;
    mailbox_t mailbox;
    void *memory = open_mailbox(&mailbox, sizeof(letter_t));
    const double cpu = cpu_seconds(), start = clock_seconds();
    assert_false(mailbox_wait(&mailbox, start + .3));
    assert_true(clock_seconds() >= start + .3);
    assert_true(cpu_seconds() - cpu < .05); /* spinning would take .3 */
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread),     cmocka_unit_test(test_one_byte),
        cmocka_unit_test(test_newest_wins),    cmocka_unit_test(test_question_and_answer),
        cmocka_unit_test(test_waiting_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
