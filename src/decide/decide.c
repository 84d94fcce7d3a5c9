/* The registry of deciders. A decider with a number in its name is written as "fixed:16". */
#include "decide/decide.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "decide/deciders.h"

typedef struct decide_entry {
    const char *name;
    int takes_number;
    size_t (*memory)(void); /* NULL: it keeps nothing */
    rudder_status_t (*open)(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error);
} decide_entry_t;

static const decide_entry_t decide_table[] = {
    {"never", 0, NULL, never_open}, {"once", 0, once_memory, once_open}, {"fixed", 1, NULL, fixed_open},
    {"gain", 0, NULL, gain_open},   {"llm", 0, llm_memory, llm_open},
};
enum { DECIDE_COUNT = sizeof decide_table / sizeof decide_table[0] };

/* The entry that `name`, up to a colon, stands for; NULL when there is none. */
static const decide_entry_t *decide_find(const char *name)
{
    const size_t length = strcspn(name, ":");
    for (int i = 0; i < DECIDE_COUNT; i++) {
        const decide_entry_t *entry = &decide_table[i];
        if (strlen(entry->name) == length && strncmp(entry->name, name, length) == 0 &&
            (name[length] == ':') == (entry->takes_number != 0)) {
            return entry;
        }
    }
    return NULL;
}

static rudder_status_t decide_unknown(const char *name, rudder_error_t *error)
{
    static const char *const candidates[] = {"never", "once", "fixed:16", "gain", "llm"};
    const char *nearest = text_nearest(name, candidates, sizeof candidates / sizeof candidates[0]);
    if (strcmp(name, "fixed") == 0) {
        nearest = "fixed:16";
    }
    return RUDDER_FAIL(error, RUDDER_E_NAME, "decider \"%s\": expected never, once, fixed:N, gain or llm%s%s%s", name,
                       nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "\"?" : "");
}

static rudder_status_t decide_number(const char *name, int64_t *number, rudder_error_t *error)
{
    const char *text = strchr(name, ':') + 1;
    char *end = NULL;
    errno = 0;
    *number = isdigit((unsigned char)text[0]) ? strtoll(text, &end, 10) : 0;
    if (end == NULL || *end != '\0' || errno != 0 || *number < 1) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                           "decider \"%s\": expected a whole number of minibatches, 1 or more, found \"%s\"", name,
                           text);
    }
    return RUDDER_OK;
}

int64_t decide_memory(const char *name)
{
    const decide_entry_t *entry = decide_find(name);
    return entry != NULL && entry->memory != NULL ? (int64_t)entry->memory() : 0;
}

rudder_status_t decide_open(const char *name, const rudder_config_t *config, void *memory, rudder_decider_t *decider,
                            rudder_error_t *error)
{
    const decide_entry_t *entry = decide_find(name);
    decide_request_t request = {.config = config, .memory = memory};
    rudder_decider_t made = {.size = sizeof made};
    if (entry == NULL) {
        return decide_unknown(name, error);
    }
    made.name = entry->name;
    if (entry->takes_number) {
        RUDDER_TRY(decide_number(name, &request.number, error));
    }
    RUDDER_TRY(entry->open(&request, &made, error));
    *decider = made;
    return RUDDER_OK;
}
