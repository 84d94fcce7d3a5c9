/*
 * A mailbox for one message between two threads: one puts, one takes, nobody locks. A newer message replaces one that
 * still waits. Three slots of fixed size, the producer's, the consumer's and the one between, change hands by one atomic
 * exchange. The consumer may sleep until a message waits (futex); nothing here spins.
 */
#ifndef RUDDER_BASE_MAILBOX_H
#define RUDDER_BASE_MAILBOX_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mailbox {
    size_t bytes; /* of a slot */
    unsigned char *slots;
    uint32_t back;            /* the producer's slot */
    uint32_t front;           /* the consumer's slot */
    _Atomic uint32_t between; /* number of the slot in between; MAILBOX_WAITS is set while it holds a message */
} mailbox_t;

/* Bytes of the three slots for messages of message_bytes. */
size_t mailbox_memory(size_t message_bytes);
/* memory: mailbox_memory() bytes, 8-byte aligned; belongs to the caller. */
void mailbox_open(mailbox_t *mailbox, size_t message_bytes, void *memory);

/* Producer: puts a message; one that still waits is gone. Wakes the consumer. */
void mailbox_put(mailbox_t *mailbox, const void *message);
/* Producer: as mailbox_put(), but only while a message still waits; 0, and nothing has changed, when it was taken. */
int mailbox_replace(mailbox_t *mailbox, const void *message);
/* Any thread: 1 while a message waits. */
int mailbox_waits(const mailbox_t *mailbox);

/* Consumer: takes the message that waits; 0 when there is none. */
int mailbox_take(mailbox_t *mailbox, void *message);
/* Consumer: sleeps until a message waits (1) or clock_seconds() has reached `until` (0). until < 0: without limit. */
int mailbox_wait(mailbox_t *mailbox, double until);

#endif
