/* Lists on the command line of `rudder replay`. Names are checked here, so that a slip of the pen costs no time. */
#include "cli/replay_choices.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/capacity.h"
#include "decide/decide.h"
#include "policy/policy.h"

/* Copies the next item of a list; *list becomes what is behind it, NULL at the end. */
static rudder_status_t choices_item(const char **list, const char *what, int32_t n, char *item, rudder_error_t *error)
{
    const size_t length = strcspn(*list, ",");
    if (length == 0 || length >= CHOICES_TEXT) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected names of 1 to %d letters between commas, found \"%s\"",
                           what, CHOICES_TEXT - 1, *list);
    }
    if (n == CHOICES_MOST) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected at most %d items, found more", what, CHOICES_MOST);
    }
    snprintf(item, CHOICES_TEXT, "%.*s", (int)length, *list);
    *list = (*list)[length] == ',' ? *list + length + 1 : NULL;
    return RUDDER_OK;
}

/* ---- Policies --------------------------------------------------------------------------------------------------- */

static rudder_status_t choices_policy(const char *item, policy_choice_t *choice, rudder_error_t *error)
{
    const rudder_policy_t *policy;
    int64_t window;
    *choice = (policy_choice_t){.ahead = REPLAY_WANTED};
    const char *slash = strchr(item, '/');
    const int length = slash != NULL ? (int)(slash - item) : (int)strlen(item);
    snprintf(choice->label, sizeof choice->label, "%.*s", length, item);
    snprintf(choice->name, sizeof choice->name, "%s", choice->label);
    if (strcmp(choice->label, "belady") == 0 || strcmp(choice->label, "lookahead:recorded") == 0) {
        choice->ahead = choice->label[0] == 'b' ? REPLAY_ALL : REPLAY_RECORDED;
        snprintf(choice->name, sizeof choice->name, "lookahead");
    }
    if (strcmp(choice->label, "bound") == 0) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "--policy: \"bound\" is no policy: it is always computed; belady is "
                           "the policy that knows everything");
    }
    RUDDER_TRY(policy_find(choice->name, &policy, &window, error));
    choice->replaces = (policy->flags & RUDDER_POLICY_REPLACES) != 0;
    snprintf(choice->start, sizeof choice->start, "%s", slash != NULL ? slash + 1 : policy_start(policy));
    return RUDDER_OK;
}

rudder_status_t choices_policies(const char *text, const char *starts, policy_choice_t *choices, int32_t *n,
                                 rudder_error_t *error)
{
    char item[CHOICES_TEXT], start[CHOICES_TEXT];
    *n = 0;
    while (text != NULL) {
        RUDDER_TRY(choices_item(&text, "--policy", *n, item, error));
        policy_choice_t choice;
        RUDDER_TRY(choices_policy(item, &choice, error));
        const char *rest = strchr(item, '/') == NULL && strcmp(choice.name, "none") != 0 ? starts : NULL;
        do {
            if (*n == CHOICES_MOST) {
                return RUDDER_FAIL(error, RUDDER_E_USAGE, "--policy, --start: expected at most %d of both, found more",
                                   CHOICES_MOST);
            }
            choices[*n] = choice;
            if (rest != NULL) {
                RUDDER_TRY(choices_item(&rest, "--start", *n, start, error));
                snprintf(choices[*n].start, sizeof choices[*n].start, "%s", start);
            }
            ++*n;
        } while (rest != NULL);
    }
    return RUDDER_OK;
}

/* ---- Deciders --------------------------------------------------------------------------------------------------- */

/* Only the name is checked: what a decider needs is seen when it is opened. */
static rudder_status_t choices_check_decider(const char *name, rudder_error_t *error)
{
    rudder_config_t config;
    rudder_decider_t decider;
    rudder_config_init(&config, sizeof config);
    return decide_memory(name) != 0 ? RUDDER_OK : decide_open(name, &config, NULL, &decider, error);
}

rudder_status_t choices_deciders(const char *text, decider_choice_t *choices, int32_t *n, rudder_error_t *error)
{
    *n = 0;
    while (text != NULL) {
        decider_choice_t choice = {.latency = -1};
        RUDDER_TRY(choices_item(&text, "--decider", *n, choice.label, error));
        snprintf(choice.name, sizeof choice.name, "%s", choice.label);
        char *at = strchr(choice.name, '@');
        if (at != NULL) {
            RUDDER_TRY(text_seconds(at + 1, "--decider NAME@LATENCY", &choice.latency, error));
            *at = '\0';
        }
        RUDDER_TRY(choices_check_decider(choice.name, error));
        choices[(*n)++] = choice;
    }
    return RUDDER_OK;
}

/* ---- Capacities ------------------------------------------------------------------------------------------------- */

rudder_status_t choices_capacities(const char *text, capacity_choice_t *choices, int32_t *n, rudder_error_t *error)
{
    *n = 0;
    while (text != NULL) {
        capacity_choice_t choice;
        RUDDER_TRY(choices_item(&text, "--capacity", *n, choice.label, error));
        RUDDER_TRY(capacity_read(choice.label, "--capacity", &choice.size, error));
        choices[(*n)++] = choice;
    }
    return RUDDER_OK;
}
