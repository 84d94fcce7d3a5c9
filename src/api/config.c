/* Defaults, and everything that can be wrong with a configuration. Messages name the field, what was expected and found. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/config.h"
#include "base/error.h"
#include "base/text.h"
#include "buffer/nodes.h"
#include "decide/decide.h"
#include "policy/policy.h"

enum { CONFIG_MAX_PLANS = 1024, CONFIG_MAX_IDS = 1 << 30, CONFIG_MAX_OWNERS = 1 << 24 };

void rudder_config_init(rudder_config_t *config, size_t config_size)
{
    const rudder_config_t defaults = {.size = config_size,
                                      .type_size = sizeof(rudder_type_config_t),
                                      .n_types = 1,
                                      .max_plans = 4,
                                      .policy = "mix",
                                      .alpha = .005,
                                      .period = 16,
                                      .fallback = "gain",
                                      .deadline_ms = 30000};
    memset(config, 0, config_size);
    memcpy(config, &defaults, config_size < sizeof defaults ? config_size : sizeof defaults);
}

/*
 * Copies a struct of a caller who may be older than this library (fields at the end keep their defaults) or newer (fields
 * that are not known here must be zero).
 */
static rudder_status_t config_copy(const char *what, const void *from, size_t from_size, void *to, size_t size,
                                   rudder_error_t *error)
{
    memcpy(to, from, from_size < size ? from_size : size);
    for (size_t i = size; i < from_size; i++) {
        if (((const unsigned char *)from)[i] != 0) {
            return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                               "%s: expected nothing beyond byte %zu, found a field of a newer library", what, size);
        }
    }
    return RUDDER_OK;
}

static rudder_status_t config_range(const char *what, int64_t value, int64_t low, int64_t high, rudder_error_t *error)
{
    if (value < low || value > high) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "%s: expected %lld to %lld, found %lld", what, (long long)low,
                           (long long)high, (long long)value);
    }
    return RUDDER_OK;
}

static rudder_status_t config_read_type(config_t *config, int32_t i, rudder_error_t *error)
{
    const rudder_config_t *given = &config->given;
    const unsigned char *from = (const unsigned char *)given->types + (size_t)i * given->type_size;
    rudder_type_config_t *type = &config->types[i];
    RUDDER_TRY(config_copy("types", from, given->type_size, type, sizeof *type, error));
    if (type->max_tracked == 0) {
        type->max_tracked = type->n_halo;
    }
    if (config->policy == &policy_none) {
        type->capacity_rows = type->max_tracked = 0;
    }
    RUDDER_TRY(config_range("row_bytes", (int64_t)type->row_bytes, 1, INT32_MAX, error));
    RUDDER_TRY(config_range("capacity_rows", type->capacity_rows, 0, NODES_MAX_SLOTS - 1, error));
    RUDDER_TRY(config_range("max_ids", type->max_ids, 1, CONFIG_MAX_IDS - 1, error));
    RUDDER_TRY(config_range("max_tracked", type->max_tracked, 0, NODES_MAX_NODES - 1 - type->capacity_rows, error));
    RUDDER_TRY(config_range("n_halo", type->n_halo, 0, INT64_MAX, error));
    if (type->owned_begin > type->owned_end) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "owned ids: expected begin <= end, found %lld and %lld",
                           (long long)type->owned_begin, (long long)type->owned_end);
    }
    RUDDER_TRY(config_range("max_announced", type->max_announced, 0, ANNOUNCED_MOST_IDS - 1, error));
    if (type->max_announced == 0) {
        const int64_t announced = 16 * type->capacity_rows + 2 * type->max_ids;
        type->max_announced = announced < ANNOUNCED_MOST_IDS ? announced : ANNOUNCED_MOST_IDS - 1;
    }
    if (type->n_halo > 0 && type->halo == NULL && config->start != BUFFER_START_EMPTY) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "halo: expected %lld ids for the start content, found NULL",
                           (long long)type->n_halo);
    }
    if (type->n_halo > 0 && type->start_weight == NULL && config->start == BUFFER_START_WEIGHTS) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                           "start_weight: expected %lld weights for the start \"weights\", "
                           "found NULL",
                           (long long)type->n_halo);
    }
    for (int32_t o = 0; o < given->n_owners; o++) {
        if (type->owner_offset == NULL || type->owner_offset[o] > type->owner_offset[o + 1]) {
            return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "owner_offset of type %d: expected %d ascending ids, found %s",
                               i, given->n_owners + 1, type->owner_offset == NULL ? "NULL" : "a descent");
        }
    }
    RUDDER_TRY(config_range("id_end", type->id_end, 0, INT64_MAX, error));
    if (type->id_end == 0) {
        type->id_end = given->n_owners > 0 ? type->owner_offset[given->n_owners] : INT64_MAX;
    }
    return RUDDER_OK;
}

static rudder_status_t config_check_owners(const rudder_config_t *given, rudder_error_t *error)
{
    RUDDER_TRY(config_range("n_owners", given->n_owners, 0, CONFIG_MAX_OWNERS, error));
    RUDDER_TRY(config_range("owner_cost", given->owner_cost, RUDDER_OWNER_COST_OFF, RUDDER_OWNER_COST_GIVEN, error));
    if (given->owner_cost != RUDDER_OWNER_COST_OFF && given->n_owners == 0) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "owner_cost: expected n_owners of 1 or more with it, found 0");
    }
    if (given->owner_cost != RUDDER_OWNER_COST_GIVEN) {
        return RUDDER_OK;
    }
    for (int32_t o = 0; o < given->n_owners; o++) {
        const double cost = given->owner_row_cost == NULL ? 0 : given->owner_row_cost[o];
        if (!(cost > 0) || isinf(cost)) {
            return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "owner_row_cost[%d]: expected a cost above 0, found %s%g", o,
                               given->owner_row_cost == NULL ? "NULL, " : "", cost);
        }
    }
    return RUDDER_OK;
}

/* The end of a message about a name. */
static const char *config_hint(const char *nearest, char *text, size_t size)
{
    text[0] = '\0';
    if (nearest != NULL) {
        snprintf(text, size, "; did you mean \"%s\"?", nearest);
    }
    return text;
}

static rudder_status_t config_check_policy(const rudder_policy_t *policy, rudder_error_t *error)
{
    if (policy->size < sizeof *policy || policy->name == NULL || policy->name[0] == '\0') {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "policy_table: expected a name and a size of %zu, found %zu",
                           sizeof *policy, policy->size);
    }
    if (policy->state_bytes % 8 != 0 || policy->state_bytes > NODES_MAX_STATE) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                           "policy %s: expected state_bytes a multiple of 8 up to %d, found %zu", policy->name,
                           NODES_MAX_STATE, policy->state_bytes);
    }
    if (((policy->flags & RUDDER_POLICY_REPLACES) != 0) != (policy->replace != NULL)) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                           "policy %s: expected a function `replace` with RUDDER_POLICY_REPLACES and only then",
                           policy->name);
    }
    return RUDDER_OK;
}

static rudder_status_t config_read_policy(config_t *config, rudder_error_t *error)
{
    static const char *const starts[] = {[BUFFER_START_EMPTY] = "empty",
                                         [BUFFER_START_DEGREE] = "degree",
                                         [BUFFER_START_RANDOM] = "random",
                                         [BUFFER_START_WEIGHTS] = "weights"};
    enum { STARTS = sizeof starts / sizeof starts[0] };
    const rudder_config_t *given = &config->given;
    char hint[96];
    config->policy = given->policy_table;
    if (config->policy == NULL) {
        RUDDER_TRY(policy_find(given->policy != NULL ? given->policy : "mix", &config->policy, &config->window, error));
    }
    RUDDER_TRY(config_check_policy(config->policy, error));
    const char *start = given->start != NULL ? given->start : policy_start(config->policy);
    for (int i = 0; i < STARTS; i++) {
        if (strcmp(start, starts[i]) == 0) {
            config->start = (buffer_start_t)i;
            return RUDDER_OK;
        }
    }
    return RUDDER_FAIL(error, RUDDER_E_NAME, "start \"%s\": expected empty, degree, random or weights%s", start,
                       config_hint(text_nearest(start, starts, STARTS), hint, sizeof hint));
}

/* What is known of a decider before it has memory: all of one that keeps nothing, only the name of another. */
static rudder_status_t config_probe(const config_t *config, const char *name, rudder_decider_t *decider,
                                    rudder_error_t *error)
{
    if (decide_memory(name) == 0) {
        return decide_open(name, &config->given, NULL, decider, error);
    }
    *decider = (rudder_decider_t){.size = sizeof *decider, .name = name};
    return RUDDER_OK;
}

static rudder_status_t config_read_decider(config_t *config, rudder_error_t *error)
{
    const rudder_config_t *given = &config->given;
    const rudder_decider_t *table = given->decider_table;
    const char *name = given->decider != NULL ? given->decider : "never";
    rudder_decider_t fallback;
    if (table != NULL && (table->size < sizeof *table || table->name == NULL || table->decide == NULL)) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                           "decider_table: expected a name, `decide` and a size of %zu, found %zu", sizeof *table,
                           table->size);
    }
    if (config->given.fallback == NULL) {
        config->given.fallback = "gain";
    }
    RUDDER_TRY(config_probe(config, config->given.fallback, &fallback, error));
    if (decide_memory(config->given.fallback) != 0 || !(fallback.flags & RUDDER_DECIDER_INLINE)) {
        return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED, "fallback \"%s\": expected a rule: never, fixed:N or gain",
                           config->given.fallback);
    }
    config->decider_name = table == NULL ? name : NULL;
    if (table != NULL) {
        config->decider = *table;
    } else {
        RUDDER_TRY(config_probe(config, name, &config->decider, error));
    }
    if (!(config->policy->flags & RUDDER_POLICY_REPLACES) && (table != NULL || strcmp(name, "never") != 0)) {
        return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED, "decider %s: policy %s %s; --decider works with score",
                           table != NULL ? table->name : name, config->policy->name, policy_refusal(config->policy));
    }
    return RUDDER_OK;
}

rudder_status_t config_read(const rudder_config_t *given, config_t *config, rudder_error_t *error)
{
    memset(config, 0, sizeof *config);
    rudder_config_init(&config->given, sizeof config->given);
    if (given->size < offsetof(rudder_config_t, policy)) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                           "config: expected rudder_config_init() to have been called, found size %zu", given->size);
    }
    RUDDER_TRY(config_copy("config", given, given->size, &config->given, sizeof config->given, error));
    const rudder_config_t *c = &config->given;
    RUDDER_TRY(config_range("n_types", c->n_types, 1, RUDDER_MAX_TYPES, error));
    RUDDER_TRY(config_range("max_plans", c->max_plans, 1, CONFIG_MAX_PLANS, error));
    RUDDER_TRY(config_range("period", c->period, 1, INT32_MAX / 4, error));
    RUDDER_TRY(config_range("minibatches", c->minibatches, 0, INT64_MAX, error));
    RUDDER_TRY(config_range("deadline_ms", c->deadline_ms, 1, INT32_MAX, error));
    RUDDER_TRY(config_range("late_after", c->late_after, 0, INT32_MAX, error));
    RUDDER_TRY(config_range("mode", c->mode, RUDDER_ASYNC, RUDDER_SYNC, error));
    if (!(c->alpha > 0 && c->alpha < 1)) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "alpha: expected a number between 0 and 1, found %g", c->alpha);
    }
    if (c->types == NULL || c->type_size < offsetof(rudder_type_config_t, owned_begin)) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "types: expected %d of them, found %s", c->n_types,
                           c->types == NULL ? "NULL" : "a size that is too small");
    }
    if ((c->memory.alloc == NULL) != (c->memory.free == NULL) ||
        (c->row_memory.alloc == NULL) != (c->row_memory.free == NULL)) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "memory: expected alloc and free, or neither; found one of them");
    }
    RUDDER_TRY(config_read_policy(config, error));
    RUDDER_TRY(config_check_owners(c, error));
    for (int32_t i = 0; i < c->n_types; i++) {
        RUDDER_TRY(config_read_type(config, i, error));
    }
    if (config->given.late_after == 0) {
        config->given.late_after = 4 * config->given.period;
    }
    config->given.types = config->types; /* resolved: what deciders are told */
    config->given.type_size = sizeof config->types[0];
    return config_read_decider(config, error);
}
