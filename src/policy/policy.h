/* The policies of the library, by name. One file each. */
#ifndef RUDDER_POLICY_POLICY_H
#define RUDDER_POLICY_POLICY_H

#include "rudder/policy.h"

extern const rudder_policy_t policy_none, policy_score, policy_static, policy_lfu, policy_mix;

/* NULL: no policy has this name; *nearest is then the nearest name, or NULL. */
const rudder_policy_t *policy_find(const char *name, const char **nearest);
/* Name of the start content that suits a policy: "degree" or "empty". */
const char *policy_start(const rudder_policy_t *policy);
/* Why a policy without replacements refuses a decider: the end of the sentence "policy NAME ...". */
const char *policy_refusal(const rudder_policy_t *policy);

#endif
