/* The table of back ends. */
#include <string.h>

#include "agent/backend.h"
#include "agent/llama.h"
#include "base/error.h"

static const backend_t *const backends[] = {&llama_backend};

rudder_status_t backend_find(const char *model, const backend_t **backend, const char **rest, rudder_error_t *error)
{
    const char *colon = strchr(model, ':');
    const char *slash = strchr(model, '/');
    if (colon == NULL || (slash != NULL && slash < colon)) {
        *backend = backends[0];
        *rest = model;
        return RUDDER_OK;
    }
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        if (strncmp(backends[i]->name, model, (size_t)(colon - model)) == 0 &&
            backends[i]->name[colon - model] == '\0') {
            *backend = backends[i];
            *rest = colon + 1;
            return RUDDER_OK;
        }
    }
    return RUDDER_FAIL(error, RUDDER_E_NAME, "model %s: expected FILE.gguf or llama:FILE.gguf, found back end \"%.*s\"",
                       model, (int)(colon - model), model);
}
