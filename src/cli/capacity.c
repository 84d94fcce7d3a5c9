/* The grammar of capacities. */
#include "cli/capacity.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

rudder_status_t capacity_read(const char *text, const char *what, train_capacity_t *capacity, rudder_error_t *error)
{
    char number[64];
    const size_t n = strlen(text);
    *capacity = (train_capacity_t){.share = -1, .rows = -1, .bytes = -1};
    if (n > 0 && n < sizeof number && text[n - 1] == '%') {
        snprintf(number, sizeof number, "%.*s", (int)(n - 1), text);
        RUDDER_TRY(text_float(number, what, 0, 1e6, &capacity->share, error));
        capacity->share /= 100;
        return RUDDER_OK;
    }
    if (strspn(text, "0123456789") == n) {
        return text_int(text, what, 0, INT64_MAX, &capacity->rows, error);
    }
    if (strspn(text, "0123456789.") == n) {
        return text_float(text, what, 0, 1e4, &capacity->share, error);
    }
    return text_bytes(text, what, &capacity->bytes, error);
}
