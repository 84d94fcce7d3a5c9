/* Names and paths of models; fetching is the embedded script's work, run by the system's Python. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/embed.h"
#include "agent/models.h"
#include "base/error.h"

EMBED(models_script, "agent/fetch_model.py")

static const struct {
    const char *name, *file;
} models[] = {
    {"default", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"},
    {"small", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"},
    {"tiny", "smollm2-135m-instruct-q4_1.gguf"},
};

/* "$XDG_CACHE_HOME/rudder/FOLDER/FILE" or the same under ~/.cache. */
static rudder_status_t models_locate(const char *folder, const char *file, char *path, size_t size,
                                     rudder_error_t *error)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (cache != NULL && cache[0] == '/') {
        snprintf(path, size, "%s/rudder/%s/%s", cache, folder, file);
    } else if (home != NULL && home[0] != '\0') {
        snprintf(path, size, "%s/.cache/rudder/%s/%s", home, folder, file);
    } else {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "no cache folder: neither XDG_CACHE_HOME nor HOME is set");
    }
    return RUDDER_OK;
}

rudder_status_t models_path(const char *model, char *path, size_t size, rudder_error_t *error)
{
    const char *name = model == NULL || model[0] == '\0' ? "default" : model;
    const char *file = NULL;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        file = strcmp(name, models[i].name) == 0 ? models[i].file : file;
    }
    if (file == NULL) {
        snprintf(path, size, "%s", name);
        return RUDDER_OK;
    }
    RUDDER_TRY(models_locate("models", file, path, size, error));
    if (access(path, R_OK) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "model \"%s\": %s: %s; \"rudder agent --fetch --model %s\" fetches it",
                           name, path, strerror(errno), name);
    }
    return RUDDER_OK;
}

rudder_status_t models_cache(const char *folder, const char *file, char *path, size_t size, rudder_error_t *error)
{
    RUDDER_TRY(models_locate(folder, file, path, size, error));
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const int made = mkdir(path, 0700) == 0 || errno == EEXIST;
        const int code = errno;
        if (!made) {
            return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "%s cannot be made: %s", path, strerror(code));
        }
        *slash = '/';
    }
    return RUDDER_OK;
}

rudder_status_t models_fetch(const char *name, rudder_error_t *error)
{
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        execlp("python3", "python3", "-c", (const char *)models_script, name, (char *)NULL);
        _exit(127);
    }
    if (pid < 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "python3 cannot be started: %s", strerror(errno));
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "%s",
                           WIFEXITED(status) && WEXITSTATUS(status) == 127
                               ? "python3 is needed to fetch a model and was not found"
                               : "the model could not be fetched");
    }
    return RUDDER_OK;
}
