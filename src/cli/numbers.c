/* Files of numbers. */
#include "cli/numbers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/text.h"

/* The line without its remark and the blanks around; "" when nothing is left. */
static char *numbers_trim(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    for (size_t n = strlen(line); n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'); n--) {
        line[n - 1] = '\0';
    }
    return line;
}

rudder_status_t numbers_read(const char *path, double **numbers, int64_t *n, rudder_error_t *error)
{
    char line[256], what[300];
    int64_t capacity = 0;
    rudder_status_t status = RUDDER_OK;
    *numbers = NULL;
    *n = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    for (int64_t number = 1; status == RUDDER_OK && fgets(line, sizeof line, file) != NULL; number++) {
        const char *text = numbers_trim(line);
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
