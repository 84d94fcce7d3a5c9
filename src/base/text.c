/*
 * Reading and writing of quantities. Reading is strict: the whole text must be a number with a known unit, so that a
 * slip ("64MB " or "1e3x") is an error that names the option and never a silently different run.
 */
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/text.h"

typedef struct text_unit {
    const char *name;
    int64_t multiply, divide; /* apart, so that 50us is exactly the double nearest to 0.00005 */
} text_unit_t;

static int text_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Length of the decimal number that text begins with (0: none); *whole is 1 when it has neither point nor exponent. */
static size_t text_number_length(const char *text, int *whole)
{
    const char *c = text;
    size_t digits = 0;
    *whole = 1;
    if (*c == '+' || *c == '-') {
        c++;
    }
    for (; text_is_digit(*c); c++) {
        digits++;
    }
    if (*c == '.') {
        *whole = 0;
        for (c++; text_is_digit(*c); c++) {
            digits++;
        }
    }
    if (digits == 0) {
        return 0;
    }
    if (*c == 'e' || *c == 'E') {
        const char *exponent = c + 1;
        if (*exponent == '+' || *exponent == '-') {
            exponent++;
        }
        if (text_is_digit(*exponent)) {
            *whole = 0;
            while (text_is_digit(*exponent)) {
                exponent++;
            }
            c = exponent;
        }
    }
    return (size_t)(c - text);
}

/* strtod() in the C locale: a host program may have set another one, with another decimal point. */
static double text_to_double(const char *text)
{
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double value = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    return value;
}

static const text_unit_t *text_find_unit(const char *name, const text_unit_t *units)
{
    for (; units->name != NULL; units++) {
        if (strcasecmp(name, units->name) == 0) {
            return units;
        }
    }
    return NULL;
}

static rudder_status_t text_refuse(const char *what, const char *expected, const char *found, rudder_error_t *error)
{
    return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected %s, found \"%s\"", what, expected, found);
}

rudder_status_t text_bytes(const char *text, const char *what, int64_t *bytes, rudder_error_t *error)
{
    static const char *const expected = "a number of bytes such as 4096, 64KiB, 1.5GiB or 2GB";
    static const text_unit_t units[] = {
        {"", 1, 1},
        {"B", 1, 1},
        {"KB", 1000, 1},
        {"MB", 1000 * 1000, 1},
        {"GB", 1000 * 1000 * 1000, 1},
        {"TB", INT64_C(1000) * 1000 * 1000 * 1000, 1},
        {"KiB", 1 << 10, 1},
        {"MiB", 1 << 20, 1},
        {"GiB", 1 << 30, 1},
        {"TiB", INT64_C(1) << 40, 1},
        {NULL, 0, 0},
    };
    int whole;
    const size_t length = text_number_length(text, &whole);
    const text_unit_t *unit = length > 0 ? text_find_unit(text + length, units) : NULL;
    if (unit == NULL || text[0] == '-') {
        return text_refuse(what, expected, text, error);
    }
    if (whole) {
        errno = 0;
        int64_t count = strtoll(text, NULL, 10);
        if (errno == ERANGE || __builtin_mul_overflow(count, unit->multiply, &count)) {
            return text_refuse(what, "fewer than 2^63 bytes", text, error);
        }
        *bytes = count;
        return RUDDER_OK;
    }
    const double count = round(text_to_double(text) * (double)unit->multiply);
    if (!(count < 0x1p63)) {
        return text_refuse(what, "fewer than 2^63 bytes", text, error);
    }
    *bytes = (int64_t)count;
    return RUDDER_OK;
}

/* A number above or equal to 0 with a unit that must be there. */
static rudder_status_t text_quantity(const char *text, const char *what, const char *expected, const text_unit_t *units,
                                     double *value, rudder_error_t *error)
{
    int whole;
    const size_t length = text_number_length(text, &whole);
    const text_unit_t *unit = length > 0 ? text_find_unit(text + length, units) : NULL;
    const double quantity = unit != NULL ? text_to_double(text) * (double)unit->multiply / (double)unit->divide : -1;
    if (!(quantity >= 0) || !isfinite(quantity) || text[0] == '-') {
        return text_refuse(what, expected, text, error);
    }
    *value = quantity;
    return RUDDER_OK;
}

rudder_status_t text_rate(const char *text, const char *what, double *bytes_per_second, rudder_error_t *error)
{
    static const char *const expected = "a rate above 0 such as 1Gbit, 200Mbit or 10Kbit (a second)";
    static const text_unit_t units[] = {
        {"bit", 1, 8},
        {"Kbit", 125, 1},
        {"Mbit", 125 * 1000, 1},
        {"Gbit", 125 * 1000 * 1000, 1},
        {"Tbit", INT64_C(125) * 1000 * 1000 * 1000, 1},
        {NULL, 0, 0},
    };
    double rate;
    RUDDER_TRY(text_quantity(text, what, expected, units, &rate, error));
    if (rate < DBL_MIN) {
        return text_refuse(what, expected, text, error);
    }
    *bytes_per_second = rate;
    return RUDDER_OK;
}

rudder_status_t text_seconds(const char *text, const char *what, double *seconds, rudder_error_t *error)
{
    static const text_unit_t units[] = {
        {"ns", 1, 1000 * 1000 * 1000},
        {"us", 1, 1000 * 1000},
        {"ms", 1, 1000},
        {"s", 1, 1},
        {"min", 60, 1},
        {"h", 3600, 1},
        {NULL, 0, 0},
    };
    if (strcmp(text, "0") == 0) {
        *seconds = 0;
        return RUDDER_OK;
    }
    return text_quantity(text, what, "a time such as 50us, 2ms, 1.5s or 10min", units, seconds, error);
}

rudder_status_t text_int(const char *text, const char *what, int64_t low, int64_t high, int64_t *value,
                         rudder_error_t *error)
{
    char expected[128];
    int whole;
    const size_t length = text_number_length(text, &whole);
    if (low == INT64_MIN && high == INT64_MAX) {
        snprintf(expected, sizeof expected, "an integer");
    } else if (high == INT64_MAX) {
        snprintf(expected, sizeof expected, "an integer of at least %lld", (long long)low);
    } else {
        snprintf(expected, sizeof expected, "an integer from %lld to %lld", (long long)low, (long long)high);
    }
    if (length == 0 || !whole || text[length] != '\0') {
        return text_refuse(what, expected, text, error);
    }
    errno = 0;
    const int64_t number = strtoll(text, NULL, 10);
    if (errno == ERANGE || number < low || number > high) {
        return text_refuse(what, expected, text, error);
    }
    *value = number;
    return RUDDER_OK;
}

rudder_status_t text_float(const char *text, const char *what, double low, double high, double *value,
                           rudder_error_t *error)
{
    char expected[128];
    int whole;
    const size_t length = text_number_length(text, &whole);
    const double number = length > 0 && text[length] == '\0' ? text_to_double(text) : NAN;
    if (!isfinite(number) || number < low || number > high) {
        if (low <= -DBL_MAX && high >= DBL_MAX) {
            snprintf(expected, sizeof expected, "a number");
        } else if (high >= DBL_MAX) {
            snprintf(expected, sizeof expected, "a number of at least %g", low);
        } else {
            snprintf(expected, sizeof expected, "a number from %g to %g", low, high);
        }
        return text_refuse(what, expected, text, error);
    }
    *value = number;
    return RUDDER_OK;
}

char *text_of_bytes(int64_t bytes, char *text, size_t text_size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double amount = (double)bytes;
    size_t unit = 0;
    /* 999 950 is "1.0 MB", not "1000.0 kB": the limit is where one decimal would round up. */
    while (fabs(amount) >= (unit == 0 ? 1000 : 999.95) && unit + 1 < sizeof units / sizeof units[0]) {
        amount /= 1000;
        unit++;
    }
    snprintf(text, text_size, "%.*f %s", unit == 0 ? 0 : 1, amount, units[unit]);
    return text;
}

char *text_of_count(int64_t count, char *text, size_t text_size)
{
    char digits[32], grouped[40];
    const char *sign = count < 0 ? "-" : "";
    const uint64_t magnitude = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
    const int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)magnitude);
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            grouped[used++] = ' ';
        }
        grouped[used++] = digits[i];
    }
    grouped[used] = '\0';
    snprintf(text, text_size, "%s%s", sign, grouped);
    return text;
}

size_t text_sequence(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    const size_t n = c[0] < 0x80                   ? 1
                     : c[0] >= 0xC2 && c[0] < 0xE0 ? 2
                     : c[0] >= 0xE0 && c[0] < 0xF0 ? 3
                     : c[0] >= 0xF0 && c[0] < 0xF5 ? 4
                                                   : 0;
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    const int overlong = (c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xF0 && c[1] < 0x90);
    const int surrogate = c[0] == 0xED && c[1] >= 0xA0;
    const int beyond = c[0] == 0xF4 && c[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

/* Controls of ASCII and of Latin-1, and the marks that turn the direction of writing. */
static int text_is_control(const unsigned char *c)
{
    const int bidi = c[0] == 0xE2 &&
                     ((c[1] == 0x80 && c[2] >= 0xAA && c[2] <= 0xAE) || (c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9));
    return c[0] < 0x20 || c[0] == 0x7F || (c[0] == 0xC2 && c[1] < 0xA0) || bidi;
}

void text_clean(char *text)
{
    while (*text != '\0') {
        const size_t n = text_sequence(text);
        if (n == 0 || text_is_control((const unsigned char *)text)) {
            const int space = *text == '\t' || *text == '\n' || *text == '\r';
            memset(text, space ? ' ' : '?', n > 0 ? n : 1);
        }
        text += n > 0 ? n : 1;
    }
}

int32_t text_columns(const char *text)
{
    int32_t columns = 0;
    for (; *text != '\0'; text++) {
        columns += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return columns;
}

enum { TEXT_WORD_MAX = 63 };

static int text_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static int text_min(int a, int b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap of neighbours) that turn a into b; both at most TEXT_WORD_MAX long. */
static int text_distance(const char *a, int n, const char *b, int m)
{
    int rows[3][TEXT_WORD_MAX + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= m; j++) {
        before[j] = last[j] = j;
    }
    for (int i = 1; i <= n; i++) {
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            const int same = text_lower(a[i - 1]) == text_lower(b[j - 1]);
            now[j] = text_min(text_min(last[j], now[j - 1]) + 1, last[j - 1] + !same);
            if (i > 1 && j > 1 && text_lower(a[i - 1]) == text_lower(b[j - 2]) &&
                text_lower(a[i - 2]) == text_lower(b[j - 1])) {
                now[j] = text_min(now[j], before[j - 2] + 1);
            }
        }
        int *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[m];
}

const char *text_nearest(const char *word, const char *const *candidates, int32_t n)
{
    const size_t length = strlen(word);
    const char *nearest = NULL;
    int least = TEXT_WORD_MAX + 1;
    for (int32_t i = 0; i < n && length > 0 && length <= TEXT_WORD_MAX; i++) {
        const size_t other = strlen(candidates[i]);
        if (other > TEXT_WORD_MAX) {
            continue;
        }
        const int longer = (int)(length > other ? length : other);
        const int distance = text_distance(word, (int)length, candidates[i], (int)other);
        if (distance * 3 <= longer && distance < least) {
            least = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}
