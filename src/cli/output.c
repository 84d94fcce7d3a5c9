/* Putting a finished directory in its place. */
#include "cli/output.h"

#include <stdio.h>

#include "base/error.h"
#include "base/log.h"

rudder_status_t output_close(files_folder_t *folder, rudder_error_t *error)
{
    char aside[FILES_MAX_PATH], path[FILES_MAX_PATH];
    snprintf(path, sizeof path, "%s", folder->path);
    RUDDER_TRY(files_folder_close(folder, aside, error));
    if (aside[0] != '\0') {
        log_line(LOG_WARN, "what stood at %s is now at %s", path, aside);
    }
    return RUDDER_OK;
}
