/* What a caller configured, checked, with names resolved: the one reading that rudder_memory_needed() and rudder_open() share. */
#ifndef RUDDER_API_CONFIG_H
#define RUDDER_API_CONFIG_H

#include "buffer/buffer.h"
#include "rudder/rudder.h"

typedef struct config {
    rudder_config_t given; /* as given, fields that the caller does not know at their defaults */
    rudder_type_config_t
        types[RUDDER_MAX_TYPES]; /* max_tracked, max_announced, id_end resolved; policy "none": nothing kept */
    const rudder_policy_t *policy;
    int64_t window; /* of the policy's name */
    buffer_start_t start;
    rudder_decider_t decider; /* interval and flags as opened; not to be asked */
    const char *decider_name; /* NULL: the caller's own table */
} config_t;

/* The largest id that the type may have. */
static inline int64_t config_last_id(int64_t id_end)
{
    return id_end == INT64_MAX ? INT64_MAX : id_end - 1;
}

rudder_status_t config_read(const rudder_config_t *given, config_t *config, rudder_error_t *error);

#endif
