/*
 * The models that Rudder fetches by name. What they consist of is said in fetch_model.py alone, which is part of the
 * program; here are the names and where the files lie.
 */
#ifndef RUDDER_AGENT_MODELS_H
#define RUDDER_AGENT_MODELS_H

#include <stddef.h>

#include "rudder/status.h"

/*
 * The path of a model: NULL or "" is "default"; "default", "small" and "tiny" lie in the user's cache folder
 * ($XDG_CACHE_HOME or ~/.cache, then rudder/models); anything else is taken for a path or back end as it is.
 * Errors: ENVIRONMENT (no home folder), IO (a named model has not been fetched).
 */
rudder_status_t models_path(const char *model, char *path, size_t size, rudder_error_t *error);

/*
 * A path in the user's cache folder, which is made: `folder` under rudder/, then `file`. Errors: ENVIRONMENT.
 */
rudder_status_t models_cache(const char *folder, const char *file, char *path, size_t size, rudder_error_t *error);

/* Fetches a named model with the embedded script; progress goes to standard error, the path to standard output.
 * Errors: ENVIRONMENT (no Python 3, or it failed and has said why). */
rudder_status_t models_fetch(const char *name, rudder_error_t *error);

#endif
