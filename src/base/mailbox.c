/* The mailbox: who holds which of the three slots changes by one atomic operation, so neither side ever waits to write. */
#include "base/mailbox.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define MAILBOX_WAITS 4u /* flag beside the slot number in `between` */
#define MAILBOX_SLOT 3u

static size_t mailbox_slot_bytes(size_t message_bytes)
{
    return (message_bytes + 63) / 64 * 64;
}

static unsigned char *mailbox_slot(const mailbox_t *mailbox, uint32_t number)
{
    return mailbox->slots + number * mailbox_slot_bytes(mailbox->bytes);
}

size_t mailbox_memory(size_t message_bytes)
{
    return 3 * mailbox_slot_bytes(message_bytes);
}

void mailbox_open(mailbox_t *mailbox, size_t message_bytes, void *memory)
{
    mailbox->bytes = message_bytes;
    mailbox->slots = memory;
    mailbox->back = 0;
    mailbox->front = 1;
    atomic_init(&mailbox->between, 2);
}

static void mailbox_wake(mailbox_t *mailbox)
{
    syscall(SYS_futex, &mailbox->between, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void mailbox_put(mailbox_t *mailbox, const void *message)
{
    memcpy(mailbox_slot(mailbox, mailbox->back), message, mailbox->bytes);
    const uint32_t old =
        atomic_exchange_explicit(&mailbox->between, mailbox->back | MAILBOX_WAITS, memory_order_acq_rel);
    mailbox->back = old & MAILBOX_SLOT;
    mailbox_wake(mailbox);
}

int mailbox_replace(mailbox_t *mailbox, const void *message)
{
    uint32_t old = atomic_load_explicit(&mailbox->between, memory_order_relaxed);
    if ((old & MAILBOX_WAITS) == 0) {
        return 0;
    }
    memcpy(mailbox_slot(mailbox, mailbox->back), message, mailbox->bytes);
    /* Only the producer sets the flag, so a failure means that the consumer has taken the message. */
    if (!atomic_compare_exchange_strong_explicit(&mailbox->between, &old, mailbox->back | MAILBOX_WAITS,
                                                 memory_order_acq_rel, memory_order_relaxed)) {
        return 0;
    }
    mailbox->back = old & MAILBOX_SLOT;
    mailbox_wake(mailbox);
    return 1;
}

int mailbox_waits(const mailbox_t *mailbox)
{
    return (atomic_load_explicit(&mailbox->between, memory_order_acquire) & MAILBOX_WAITS) != 0;
}

int mailbox_take(mailbox_t *mailbox, void *message)
{
    if (!mailbox_waits(mailbox)) {
        return 0;
    }
    const uint32_t old = atomic_exchange_explicit(&mailbox->between, mailbox->front, memory_order_acq_rel);
    mailbox->front = old & MAILBOX_SLOT;
    memcpy(message, mailbox_slot(mailbox, mailbox->front), mailbox->bytes);
    return 1;
}

int mailbox_wait(mailbox_t *mailbox, double until)
{
    for (;;) {
        const uint32_t seen = atomic_load_explicit(&mailbox->between, memory_order_acquire);
        if (seen & MAILBOX_WAITS) {
            return 1;
        }
        if (until >= 0 && clock_seconds() >= until) {
            return 0;
        }
        const struct timespec at = {.tv_sec = (time_t)until, .tv_nsec = (long)((until - (double)(time_t)until) * 1e9)};
        /* An absolute time of the monotonic clock; returns at once when `between` is no longer as seen. */
        syscall(SYS_futex, &mailbox->between, FUTEX_WAIT_BITSET_PRIVATE, seen, until < 0 ? NULL : &at, NULL,
                FUTEX_BITSET_MATCH_ANY);
    }
}
