/* The grammar of --owner-cost, and its files of numbers. */
#include "cli/owner_cost.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/lines.h"
#include "base/text.h"

static rudder_status_t owner_cost_lines(lines_t *lines, double **numbers, int64_t *n, rudder_error_t *error)
{
    int64_t capacity = 0;
    for (char *text;;) {
        RUDDER_TRY(lines_next(lines, &text, error));
        if (text == NULL) {
            return RUDDER_OK;
        }
        if (grow_array(numbers, &capacity, *n + 1, sizeof **numbers) != RUDDER_OK) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory", lines->where);
        }
        if (text_float(text, lines->where, 0, 1e300, &(*numbers)[*n], error) != RUDDER_OK) {
            return error->status = RUDDER_E_DATA; /* not the command line's fault */
        }
        ++*n;
    }
}

static rudder_status_t owner_cost_file(const char *path, double **numbers, int64_t *n, rudder_error_t *error)
{
    lines_t lines;
    RUDDER_TRY(lines_open(path, &lines, error));
    const rudder_status_t status = owner_cost_lines(&lines, numbers, n, error);
    lines_close(&lines);
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
