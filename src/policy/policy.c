/* The table of policies, and the two that do nothing. */
#include <string.h>

#include "base/text.h"
#include "policy/policy.h"

/* No buffer at all: every remote row is fetched. */
const rudder_policy_t policy_none = {.size = sizeof(rudder_policy_t), .name = "none"};

/* Keeps the start content for ever. */
const rudder_policy_t policy_static = {.size = sizeof(rudder_policy_t), .name = "static"};

static const rudder_policy_t *const policy_table[] = {&policy_none, &policy_score, &policy_static, &policy_lfu,
                                                      &policy_mix};

enum { POLICY_COUNT = sizeof policy_table / sizeof policy_table[0] };

const rudder_policy_t *policy_find(const char *name, const char **nearest)
{
    const char *names[POLICY_COUNT];
    for (int i = 0; i < POLICY_COUNT; i++) {
        names[i] = policy_table[i]->name;
        if (strcmp(name, names[i]) == 0) {
            return policy_table[i];
        }
    }
    *nearest = text_nearest(name, names, POLICY_COUNT);
    return NULL;
}

const char *policy_start(const rudder_policy_t *policy)
{
    return policy == &policy_score || policy == &policy_static ? "degree" : "empty";
}

const char *policy_refusal(const rudder_policy_t *policy)
{
    if (policy == &policy_none) {
        return "keeps no rows and has no replacement to decide";
    }
    return policy->flags & RUDDER_POLICY_ADMITS ? "admits rows when they are missed and has no replacement to decide"
                                                : "never changes its content and has no replacement to decide";
}
