/* The grammar of --owner-cost, and its files of numbers. */
#include "cli/owner_cost.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/text.h"

/* The line without its remark and the blanks around; "" when nothing is left. */
static char *owner_cost_trim(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    for (size_t n = strlen(line); n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'); n--) {
        line[n - 1] = '\0';
    }
    return line;
}

static rudder_status_t owner_cost_file(const char *path, double **numbers, int64_t *n, rudder_error_t *error)
{
    char line[256], what[300];
    int64_t capacity = 0;
    rudder_status_t status = RUDDER_OK;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    for (int64_t number = 1; status == RUDDER_OK && fgets(line, sizeof line, file) != NULL; number++) {
        const char *text = owner_cost_trim(line);
        if (*text == '\0') {
            continue;
        }
        snprintf(what, sizeof what, "%.200s, line %" PRId64, path, number);
        if (grow_array(numbers, &capacity, *n + 1, sizeof **numbers) != RUDDER_OK) {
            status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory", what);
        } else if (text_float(text, what, 0, 1e300, &(*numbers)[*n], error) != RUDDER_OK) {
            status = error->status = RUDDER_E_DATA;
        } else {
            ++*n;
        }
    }
    if (status == RUDDER_OK && ferror(file)) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    fclose(file);
    if (status != RUDDER_OK) {
        free(*numbers);
        *numbers = NULL;
    }
    return status;
}

rudder_status_t owner_cost_read(const char *text, rudder_owner_cost_t *mode, double **costs, int64_t *n,
                                rudder_error_t *error)
{
    *costs = NULL;
    *n = 0;
    if (strcmp(text, "off") == 0 || strcmp(text, "measured") == 0) {
        *mode = text[0] == 'm' ? RUDDER_OWNER_COST_MEASURED : RUDDER_OWNER_COST_OFF;
        return RUDDER_OK;
    }
    *mode = RUDDER_OWNER_COST_GIVEN;
    return owner_cost_file(text, costs, n, error);
}
