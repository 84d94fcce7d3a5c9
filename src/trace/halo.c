/* Lines of one or two numbers. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/lines.h"
#include "trace/valid.h"
#include "trace/halo.h"

typedef struct halo_file {
    lines_t lines;
    int64_t *ids, n, ids_size, degrees_size;
    uint32_t *degrees;
    int columns; /* of all lines; 0: none yet */
} halo_file_t;

static rudder_status_t halo_bad(const halo_file_t *h, const char *expected, const char *found, rudder_error_t *error)
{
    return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected %s, found %s", h->lines.where, expected, found);
}

/* A number up to `most`, with what surrounds it; 0: there is none at *text. */
static int halo_number(const char **text, uint64_t most, uint64_t *value)
{
    const char *c = *text + strspn(*text, " \t\r\n");
    const char *begin = c;
    *value = 0;
    for (; *c >= '0' && *c <= '9'; c++) {
        const uint64_t digit = (uint64_t)(*c - '0');
        if (*value > (most - digit) / 10) {
            return 0;
        }
        *value = *value * 10 + digit;
    }
    *text = c + strspn(c, " \t\r\n");
    return c > begin && (*c == '\0' || *text > c);
}

static rudder_status_t halo_line(halo_file_t *h, const char *at, rudder_error_t *error)
{
    uint64_t id, degree = 0;
    if (!halo_number(&at, INT64_MAX, &id)) {
        return halo_bad(h, "an id from 0 to 9223372036854775807", "something else", error);
    }
    const int columns = *at == '\0' ? 1 : 2;
    if (columns == 2 && (!halo_number(&at, UINT32_MAX, &degree) || *at != '\0')) {
        return halo_bad(h, "an id and at most a degree, up to 4294967295", "something else", error);
    }
    if (h->columns != 0 && h->columns != columns) {
        return halo_bad(h, "degrees in all lines or in none", columns == 1 ? "none" : "one", error);
    }
    h->columns = columns;
    if (grow_array(&h->ids, &h->ids_size, h->n + 1, sizeof *h->ids) != RUDDER_OK ||
        grow_array(&h->degrees, &h->degrees_size, h->n + 1, sizeof *h->degrees) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for %lld ids", h->lines.path, (long long)h->n);
    }
    h->ids[h->n] = (int64_t)id;
    h->degrees[h->n++] = (uint32_t)degree;
    return RUDDER_OK;
}

static rudder_status_t halo_lines(halo_file_t *h, rudder_error_t *error)
{
    for (char *line;;) {
        RUDDER_TRY(lines_next(&h->lines, &line, error));
        if (line == NULL) {
            return RUDDER_OK;
        }
        RUDDER_TRY(halo_line(h, line, error));
    }
}

rudder_status_t halo_read(const char *path, int64_t **halo, uint32_t **degree, int64_t *n, rudder_error_t *error)
{
    halo_file_t h = {0};
    RUDDER_TRY(lines_open(path, &h.lines, error));
    rudder_status_t status = halo_lines(&h, error);
    lines_close(&h.lines);
    status = status == RUDDER_OK ? valid_halo(path, h.ids, h.n, error) : status;
    if (status != RUDDER_OK || h.columns != 2) {
        free(h.degrees);
        h.degrees = NULL;
    }
    if (status != RUDDER_OK) {
        free(h.ids);
        return status;
    }
    *halo = h.ids;
    *degree = h.degrees;
    *n = h.n;
    return RUDDER_OK;
}
