/*
 * How often a node is used: the learned mixture that `mix` keeps rows by, and `lookahead` beyond its window. Each node has
 * three decayed use counts, with half-lives of 4, 64 and infinitely many minibatches, and a prior made from its degree; the
 * rate is their weighted sum. The weights are the nonnegative least-squares fit of "used in this minibatch" on a sample of
 * the nodes, so they follow what the run does: a stationary one trusts the long memory, a drifting one the short.
 *
 * A minibatch is rates_hits() and then rates_misses(), each exactly once, also with no nodes.
 */
#ifndef RUDDER_POLICY_RATES_H
#define RUDDER_POLICY_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "rudder/policy.h"

/* First in the policy's bytes of a node, so that undoing a plan puts it back. Decayed counts are as of the last use. */
typedef struct rates_state {
    uint16_t count[2]; /* half-lives 4 and 64, in units of 1 / RATES_UNIT_4 and 1 / RATES_UNIT_64 */
    uint32_t last;     /* time of the minibatch that used it last, low bits */
    uint32_t uses;     /* all of them */
    uint16_t degree;   /* in classes, 0: none known */
    uint16_t unused;
} rates_state_t;

enum {
    RATES_UNIT_4 = 8192, /* the most that a count can be, with a use in every minibatch, fits 16 bits */
    RATES_UNIT_64 = 512,
    RATES_AGES = 1024,      /* no count is felt longer */
    RATES_DEGREES = 33 * 64 /* classes: 64 to a factor of two */
};

typedef struct rates_decay {
    float of_4, of_64; /* what is left after that many minibatches */
} rates_decay_t;

typedef struct rates rates_t;

/* What rates_of() reads. */
typedef struct rates_now {
    uint32_t time; /* minibatches that used any nodes, low bits */
    float per_4, per_64, per_use, per_prior;
    rates_decay_t decay[RATES_AGES];
    float prior[RATES_DEGREES]; /* by class of degree */
} rates_now_t;

/* Bytes for one instance, aligned to 64. */
size_t rates_memory(const rudder_policy_setup_t *setup);
/* memory: rates_memory() bytes, zeroed. Returns it as rates_t. */
rates_t *rates_open(void *memory, const rudder_policy_setup_t *setup);
/* May be called for portions. */
void rates_known(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, const uint32_t *degree, int64_t n);

/*
 * One minibatch: first what was hit, then what was missed; each node once. The fit sees the rates as they were before the
 * minibatch. O(n), and a sample of the tracked nodes.
 */
void rates_hits(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, int64_t n);
void rates_misses(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, int64_t n);
/* The plan was aborted: the fit is as it was before it, exactly. Call from the policy's `restored`; may be called repeatedly. */
void rates_restored(rates_t *rates, const rudder_nodes_t *nodes);

/* First in rates_t. */
static inline const rates_now_t *rates_now(const rates_t *rates)
{
    return (const rates_now_t *)(const void *)rates;
}

/* Expected uses of the node in a minibatch to come, times a factor common to all nodes. */
static inline float rates_of(const rates_t *rates, const rates_state_t *state)
{
    const rates_now_t *now = rates_now(rates);
    const uint32_t age = now->time - state->last;
    const rates_decay_t decay = now->decay[age < RATES_AGES ? age : RATES_AGES - 1];
    return now->per_4 * (float)state->count[0] * decay.of_4 + now->per_64 * (float)state->count[1] * decay.of_64 +
           now->per_use * (float)state->uses + now->per_prior * now->prior[state->degree];
}

#endif
