/* The policies of the library, by name. One file each. */
#ifndef RUDDER_POLICY_POLICY_H
#define RUDDER_POLICY_POLICY_H

#include "rudder/policy.h"

extern const rudder_policy_t policy_none, policy_static, policy_lru, policy_lfu, policy_sieve, policy_score, policy_mix,
    policy_lookahead;

enum { POLICY_MOST_WINDOW = 1 << 24 };

/*
 * The policy of a name. A policy that looks ahead takes a number, "lookahead:16": *window, 0 without. Errors: NAME (with the
 * nearest name), ARGUMENT (not a number of minibatches).
 */
rudder_status_t policy_find(const char *name, const rudder_policy_t **policy, int64_t *window, rudder_error_t *error);
/* Whether a name, with a number or without, is that of a policy that looks ahead. */
int policy_looks_ahead(const char *name);
/* Name of the start content that suits a policy: "degree" or "empty". */
const char *policy_start(const rudder_policy_t *policy);
/* Why a policy without replacements refuses a decider: the end of the sentence "policy NAME ...". */
const char *policy_refusal(const rudder_policy_t *policy);

#endif
