/* The table of policies, and the two that do nothing. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "policy/policy.h"

/* No buffer at all: every remote row is fetched. */
const rudder_policy_t policy_none = {.size = sizeof(rudder_policy_t), .name = "none"};

/* Keeps the start content for ever. */
const rudder_policy_t policy_static = {.size = sizeof(rudder_policy_t), .name = "static"};

static const rudder_policy_t *const policy_table[] = {&policy_none,  &policy_static, &policy_lru, &policy_lfu,
                                                      &policy_sieve, &policy_score,  &policy_mix, &policy_lookahead};

enum { POLICY_COUNT = sizeof policy_table / sizeof policy_table[0] };

/* "none, score, ... or mix" */
static const char *policy_list(char *text, size_t size)
{
    size_t length = 0;
    for (int i = 0; i < POLICY_COUNT && length < size; i++) {
        const char *between = i == 0 ? "" : i + 1 < POLICY_COUNT ? ", " : " or ";
        length += (size_t)snprintf(text + length, size - length, "%s%s", between, policy_table[i]->name);
    }
    return text;
}

rudder_status_t policy_find(const char *name, const rudder_policy_t **policy, int64_t *window, rudder_error_t *error)
{
    const char *names[POLICY_COUNT];
    const size_t length = strcspn(name, ":");
    char list[256];
    *window = 0;
    for (int i = 0; i < POLICY_COUNT; i++) {
        *policy = policy_table[i];
        names[i] = (*policy)->name;
        if (strcmp(name, names[i]) == 0) {
            return RUDDER_OK;
        }
        if ((*policy)->announced != NULL && strlen(names[i]) == length && strncmp(name, names[i], length) == 0) {
            rudder_error_t wrong;
            if (text_int(name + length + 1, "minibatches to look ahead", 1, POLICY_MOST_WINDOW, window, &wrong) ==
                RUDDER_OK) {
                return RUDDER_OK;
            }
            return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "policy \"%s\": %s", name, wrong.text);
        }
    }
    const char *nearest = text_nearest(name, names, POLICY_COUNT);
    return RUDDER_FAIL(error, RUDDER_E_NAME, "policy \"%s\": expected %s%s%s%s", name, policy_list(list, sizeof list),
                       nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "\"?" : "");
}

int policy_looks_ahead(const char *name)
{
    const size_t length = strcspn(name, ":");
    for (int i = 0; i < POLICY_COUNT; i++) {
        if (strlen(policy_table[i]->name) == length && strncmp(name, policy_table[i]->name, length) == 0) {
            return policy_table[i]->announced != NULL;
        }
    }
    return 0;
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
