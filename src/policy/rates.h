/*
 * How often a node is used: the learned mixture that `mix` keeps rows by, and `lookahead` beyond its window. Each node has
 * three decayed use counts, with half-lives of 4, 64 and infinitely many minibatches, and a prior made from its degree; the
 * rate is their weighted sum. The weights are the nonnegative least-squares fit of "used in this minibatch" on a sample of
 * the nodes, so they follow what the run does: a stationary one trusts the long memory, a drifting one the short.
 */
#ifndef RUDDER_POLICY_RATES_H
#define RUDDER_POLICY_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "rudder/policy.h"

/* First in the policy's bytes of a node, so that undoing a plan puts it back. */
typedef struct rates_state {
    float count[3]; /* half-lives 4, 64, infinite; in units that grow, see rates.c */
    float prior;
} rates_state_t;

typedef struct rates rates_t;

/* Bytes for one instance, aligned to 64. */
size_t rates_memory(const rudder_policy_setup_t *setup);
/* memory: rates_memory() bytes, zeroed. Returns it as rates_t. */
rates_t *rates_open(void *memory, const rudder_policy_setup_t *setup);
void rates_known(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, const uint32_t *degree, int64_t n);

/*
 * One minibatch: first what was hit, then what was missed; each node once. The fit sees the rates as they were before the
 * minibatch. O(n), and a sample of the tracked nodes now and then.
 */
void rates_hits(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, int64_t n);
void rates_misses(rates_t *rates, rudder_nodes_t *nodes, const int32_t *node, int64_t n);
/* The plan was aborted: the fit is as it was before it, exactly. Call from the policy's `restored`; may be called repeatedly. */
void rates_restored(rates_t *rates, const rudder_nodes_t *nodes);

/* Expected uses of the node in a minibatch to come, times a factor common to all nodes. */
float rates_of(const rates_t *rates, const rates_state_t *state);

#endif
