/*
 * The largest OGB sets have 2.5e8 numbers in text, and strtod is slow and depends on the locale: most numbers are short
 * enough to be scanned exactly with integer arithmetic and one division; the rest goes to strtod in the C locale.
 */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "graph/csv.h"
#include "graph/files.h"

enum { CSV_BUFFER = 1 << 18, CSV_MAX_FIELD = 64 };

struct csv {
    gzFile file;
    char path[FILES_MAX_PATH], where[FILES_MAX_PATH + 32];
    int64_t line, column, bytes;
    size_t at, end;
    int at_end; /* no more bytes to come */
    char buffer[CSV_BUFFER];
};

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

int csv_scan_int(const char *text, size_t n, int64_t *value)
{
    const int negative = n > 0 && text[0] == '-';
    size_t i = n > 0 && (text[0] == '-' || text[0] == '+');
    uint64_t magnitude = 0;
    if (i == n) {
        return 0;
    }
    for (; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || magnitude > (INT64_MAX - (uint64_t)(text[i] - '0')) / 10) {
            return 0;
        }
        magnitude = 10 * magnitude + (uint64_t)(text[i] - '0');
    }
    *value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return 1;
}

static int csv_is_word(const char *text, size_t n, const char *word)
{
    size_t i = 0;
    while (i < n && word[i] != '\0' && (text[i] | 32) == word[i]) {
        i++;
    }
    return i == n && word[i] == '\0';
}

/* Digits, a point, an exponent: mantissa x 10^exponent. 0: not a number, or too many digits to be exact. */
static int csv_scan_decimal(const char *text, size_t n, uint64_t *mantissa, int32_t *exponent)
{
    size_t i = 0, digits = 0;
    *mantissa = 0;
    *exponent = 0;
    for (int fraction = 0; i < n; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            if (*mantissa > (UINT64_MAX - 9) / 10) {
                return 0;
            }
            *mantissa = 10 * *mantissa + (uint64_t)(text[i] - '0');
            *exponent -= fraction;
            digits++;
        } else if (text[i] == '.' && !fraction) {
            fraction = 1;
        } else {
            break;
        }
    }
    if (digits > 0 && i < n && (text[i] | 32) == 'e') {
        int64_t power;
        if (n - i > 6 || !csv_scan_int(text + i + 1, n - i - 1, &power)) {
            return 0;
        }
        *exponent += (int32_t)power;
        i = n;
    }
    return digits > 0 && i == n;
}

/* What the fast way leaves: many digits, large exponents, and text that is no number at all. */
static int csv_scan_slow(const char *text, size_t n, double *value)
{
    static locale_t c_locale; /* made once; importing is done by one thread */
    char copy[CSV_MAX_FIELD + 1], *end;
    if (n > CSV_MAX_FIELD || memchr(text, 'x', n) != NULL || memchr(text, 'X', n) != NULL) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if ((text[i] < '0' || text[i] > '9') && strchr("+-.eE", text[i]) == NULL) {
            return 0;
        }
    }
    if (c_locale == (locale_t)0) {
        c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    }
    memcpy(copy, text, n);
    copy[n] = '\0';
    *value = strtod_l(copy, &end, c_locale);
    return end == copy + n;
}

int csv_scan_float(const char *text, size_t n, float *value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const size_t sign = n > 0 && (text[0] == '-' || text[0] == '+');
    uint64_t mantissa;
    int32_t exponent;
    double number;
    if (n == 0 || csv_is_word(text + sign, n - sign, "nan")) {
        *value = NAN;
        return 1;
    }
    if (csv_scan_decimal(text + sign, n - sign, &mantissa, &exponent) && mantissa <= (uint64_t)1 << 53 &&
        exponent >= -22 && exponent <= 22) {
        number = exponent < 0 ? (double)mantissa / powers[-exponent] : (double)mantissa * powers[exponent];
        number = text[0] == '-' ? -number : number;
    } else if (csv_is_word(text + sign, n - sign, "inf") || csv_is_word(text + sign, n - sign, "infinity")) {
        number = text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    } else if (!csv_scan_slow(text, n, &number)) {
        return 0;
    }
    *value = (float)number;
    return 1;
}

/* ---- the stream ---------------------------------------------------------------------------------------------------- */

rudder_status_t csv_open(const char *path, csv_t **csv, rudder_error_t *error)
{
    struct stat info;
    csv_t *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory to read it", path);
    }
    snprintf(c->path, sizeof c->path, "%s.gz", path);
    if (access(c->path, F_OK) != 0) {
        snprintf(c->path, sizeof c->path, "%s", path);
    }
    c->bytes = stat(c->path, &info) == 0 ? (int64_t)info.st_size : 0;
    c->file = gzopen(c->path, "rbe");
    if (c->file == NULL) {
        free(c);
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s.gz: cannot be opened: %s", path, strerror(errno));
    }
    gzbuffer(c->file, CSV_BUFFER);
    *csv = c;
    return RUDDER_OK;
}

void csv_close(csv_t *csv)
{
    if (csv != NULL) {
        gzclose(csv->file);
        free(csv);
    }
}

const char *csv_where(csv_t *csv)
{
    snprintf(csv->where, sizeof csv->where, "%s:%" PRId64, csv->path, csv->line);
    return csv->where;
}

void csv_progress(const csv_t *csv, int64_t *done, int64_t *total)
{
    *done = (int64_t)gzoffset(csv->file);
    *total = csv->bytes;
}

/* Keeps what is not yet read and reads on until a longest field fits or the file ends. */
static rudder_status_t csv_refill(csv_t *csv, rudder_error_t *error)
{
    memmove(csv->buffer, csv->buffer + csv->at, csv->end - csv->at);
    csv->end -= csv->at;
    csv->at = 0;
    while (!csv->at_end && csv->end <= CSV_MAX_FIELD) {
        const int n = gzread(csv->file, csv->buffer + csv->end, (unsigned)(CSV_BUFFER - csv->end));
        int code = Z_OK;
        const char *text = gzerror(csv->file, &code);
        if (n < 0 || (code != Z_OK && code != Z_STREAM_END)) {
            return RUDDER_FAIL(error, code == Z_ERRNO ? RUDDER_E_IO : RUDDER_E_DATA,
                               "%s: expected a whole gzip or text file, found damage after line %" PRId64 ": %s",
                               csv->path, csv->line, text);
        }
        csv->at_end = n == 0;
        csv->end += (size_t)n;
    }
    return RUDDER_OK;
}

rudder_status_t csv_more(csv_t *csv, int *more, rudder_error_t *error)
{
    if (csv->at == csv->end) {
        RUDDER_TRY(csv_refill(csv, error));
    }
    *more = csv->at < csv->end;
    csv->line += *more;
    csv->column = 0;
    return RUDDER_OK;
}

/* The next field without the spaces around it; it stays valid until the next call. */
static rudder_status_t csv_field(csv_t *csv, const char **text, size_t *n, int *last, rudder_error_t *error)
{
    csv->column++;
    if (csv->end - csv->at <= CSV_MAX_FIELD) {
        RUDDER_TRY(csv_refill(csv, error));
    }
    const char *start = csv->buffer + csv->at, *p = start, *end = csv->buffer + csv->end;
    while (p < end && *p != ',' && *p != '\n') {
        p++;
    }
    if ((size_t)(p - start) > CSV_MAX_FIELD || (p == end && !csv->at_end)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s, field %" PRId64 ": expected a number, found more than %d letters",
                           csv_where(csv), csv->column, CSV_MAX_FIELD);
    }
    *last = p == end || *p == '\n';
    csv->at += (size_t)(p - start) + (p < end);
    while (start < p && (*start == ' ' || *start == '\t')) {
        start++;
    }
    while (start < p && (p[-1] == ' ' || p[-1] == '\t' || p[-1] == '\r')) {
        p--;
    }
    *text = start;
    *n = (size_t)(p - start);
    return RUDDER_OK;
}

static rudder_status_t csv_bad(csv_t *csv, const char *expected, const char *text, size_t n, rudder_error_t *error)
{
    char shown[CSV_MAX_FIELD + 1];
    for (size_t i = 0; i < n; i++) {
        shown[i] = text[i] >= ' ' && text[i] < 127 ? text[i] : '?';
    }
    shown[n] = '\0';
    return RUDDER_FAIL(error, RUDDER_E_DATA, "%s, field %" PRId64 ": expected %s, found \"%s\"", csv_where(csv),
                       csv->column, expected, shown);
}

rudder_status_t csv_int(csv_t *csv, int64_t *value, int *last, rudder_error_t *error)
{
    const char *text;
    size_t n;
    RUDDER_TRY(csv_field(csv, &text, &n, last, error));
    return csv_scan_int(text, n, value) ? RUDDER_OK : csv_bad(csv, "a whole number", text, n, error);
}

rudder_status_t csv_float(csv_t *csv, float *value, int *last, rudder_error_t *error)
{
    const char *text;
    size_t n;
    RUDDER_TRY(csv_field(csv, &text, &n, last, error));
    return csv_scan_float(text, n, value) ? RUDDER_OK : csv_bad(csv, "a number", text, n, error);
}
