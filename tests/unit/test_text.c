/* Quantities that people write: what is read, what is refused, and that nothing depends on the locale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void bytes_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"4096", 4096},
        {"7B", 7},
        {"64KiB", 65536},
        {"64kib", 65536},
        {"64MiB", 67108864},
        {"1.5GiB", 1610612736},
        {"2GB", 2000000000},
        {"1TiB", 1099511627776},
        {"4294967297", 4294967297},
        {"9007199254740993", 9007199254740993},       /* 2^53 + 1: no double on the way */
        {"9223372036854775807", 9223372036854775807}, /* 2^63 - 1 */
        {"0.5KiB", 512},
        {"1e3", 1000},
        {".5MB", 500000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t bytes = -1;
        assert_int_equal(text_bytes(cases[i].text, "--capacity", &bytes, NULL), RUDDER_OK);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void bytes_are_refused(void **state)
{
    static const char *const cases[] = {"",
                                        " ",
                                        "64 MiB",
                                        "64MiB ",
                                        " 64MiB",
                                        "-1",
                                        "-1KiB",
                                        "-0",
                                        "64XB",
                                        "MiB",
                                        "1.2.3",
                                        "0x10",
                                        "nan",
                                        "inf",
                                        "1e",
                                        "1e400",
                                        ".",
                                        "+",
                                        "64MiBs",
                                        "1,5GB",
                                        "25%",
                                        "8388608TiB",
                                        "9223372036854775808",
                                        "9223372036854775807KB"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t bytes = 77;
        rudder_error_t error = {0};
        assert_int_equal(text_bytes(cases[i], "--capacity", &bytes, &error), RUDDER_E_USAGE);
        assert_int_equal(bytes, 77);
        assert_int_equal(error.status, RUDDER_E_USAGE);
        assert_non_null(strstr(error.text, "--capacity"));
        assert_non_null(strstr(error.text, cases[i]));
    }
}

static void rates_are_bytes_a_second(void **state)
{
    double rate;
    (void)state;
    assert_int_equal(text_rate("1Gbit", "--link", &rate, NULL), RUDDER_OK);
    assert_true(rate == 125e6);
    assert_int_equal(text_rate("200Mbit", "--link", &rate, NULL), RUDDER_OK);
    assert_true(rate == 25e6);
    assert_int_equal(text_rate("10kbit", "--link", &rate, NULL), RUDDER_OK);
    assert_true(rate == 1250);
    assert_int_equal(text_rate("2.5Gbit", "--link", &rate, NULL), RUDDER_OK);
    assert_true(rate == 312.5e6);
    static const char *const refused[] = {"", "1", "1Gb", "0Gbit", "-1Gbit", "1e-400Gbit", "infGbit", "1Gbit,50us"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(text_rate(refused[i], "--link", &rate, NULL), RUDDER_E_USAGE);
    }
}

static void times_are_the_nearest_double(void **state)
{
    double seconds;
    (void)state;
    assert_int_equal(text_seconds("50us", "--link", &seconds, NULL), RUDDER_OK);
    assert_true(seconds == 50e-6);
    assert_int_equal(text_seconds("2ms", "--link", &seconds, NULL), RUDDER_OK);
    assert_true(seconds == 2e-3);
    assert_int_equal(text_seconds("1.5s", "--link", &seconds, NULL), RUDDER_OK);
    assert_true(seconds == 1.5);
    assert_int_equal(text_seconds("10min", "--link", &seconds, NULL), RUDDER_OK);
    assert_true(seconds == 600);
    assert_int_equal(text_seconds("0", "--link", &seconds, NULL), RUDDER_OK);
    assert_true(seconds == 0);
    static const char *const refused[] = {"", "1", "s", "-1s", "1 s", "1m", "1e999s", "nans"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(text_seconds(refused[i], "--link", &seconds, NULL), RUDDER_E_USAGE);
    }
}

static void integers_keep_their_range(void **state)
{
    int64_t value = 5;
    rudder_error_t error;
    (void)state;
    assert_int_equal(text_int("-9223372036854775808", "x", INT64_MIN, INT64_MAX, &value, NULL), RUDDER_OK);
    assert_true(value == INT64_MIN);
    assert_int_equal(text_int("9223372036854775807", "x", INT64_MIN, INT64_MAX, &value, NULL), RUDDER_OK);
    assert_true(value == INT64_MAX);
    assert_int_equal(text_int("9223372036854775808", "x", INT64_MIN, INT64_MAX, &value, NULL), RUDDER_E_USAGE);
    assert_int_equal(text_int("-9223372036854775809", "x", INT64_MIN, INT64_MAX, &value, NULL), RUDDER_E_USAGE);
    assert_int_equal(text_int("1", "x", 1, 4, &value, NULL), RUDDER_OK);
    assert_int_equal(text_int("4", "x", 1, 4, &value, NULL), RUDDER_OK);
    value = 99;
    assert_int_equal(text_int("0", "--ranks", 1, 4, &value, &error), RUDDER_E_USAGE);
    assert_string_equal(error.text, "--ranks: expected an integer from 1 to 4, found \"0\"");
    static const char *const refused[] = {"", "five", "5", "1.0", "1e0", "0x1", "1 ", " 1", "1_000", "--1"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(text_int(refused[i], "x", 1, 4, &value, NULL), RUDDER_E_USAGE);
    }
    assert_int_equal(value, 99);
}

static void numbers_keep_their_range(void **state)
{
    double value = 99;
    (void)state;
    assert_int_equal(text_float("0.01", "--lr", 0, 1, &value, NULL), RUDDER_OK);
    assert_true(value == 0.01);
    assert_int_equal(text_float("1e-300", "--lr", 0, 1, &value, NULL), RUDDER_OK);
    assert_true(value == 1e-300);
    assert_int_equal(text_float("-5", "--lr", -DBL_MAX, DBL_MAX, &value, NULL), RUDDER_OK);
    assert_true(value == -5);
    static const char *const refused[] = {"", "nan", "inf", "1e400", "-0.1", "1.1", "0x1p-1", "1f", "1,5", "infinity"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(text_float(refused[i], "--lr", 0, 1, &value, NULL), RUDDER_E_USAGE);
    }
}

static void the_locale_is_without_effect(void **state)
{
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    double value = 0;
    int64_t bytes = 0;
    (void)state;
    for (size_t i = 0; i < sizeof locales / sizeof locales[0] && setlocale(LC_ALL, locales[i]) == NULL; i++) {
    }
    assert_int_equal(text_float("0.25", "x", 0, 1, &value, NULL), RUDDER_OK);
    assert_true(value == 0.25);
    assert_int_equal(text_bytes("1.5KiB", "x", &bytes, NULL), RUDDER_OK);
    assert_int_equal(bytes, 1536);
    setlocale(LC_ALL, "C");
}

static void bytes_are_told(void **state)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},           {1, "1 B"},         {999, "999 B"},     {1000, "1.0 kB"},      {98400000, "98.4 MB"},
        {999949, "999.9 kB"}, {999950, "1.0 MB"}, {-1500, "-1.5 kB"}, {INT64_MAX, "9.2 EB"}, {INT64_MIN, "-9.2 EB"},
    };
    char text[32];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(text_of_bytes(cases[i].bytes, text, sizeof text), cases[i].text);
    }
    assert_string_equal(text_of_bytes(98400000, text, 4), "98."); /* too small a place is no overflow */
}

static void counts_are_told(void **state)
{
    char text[32];
    (void)state;
    assert_string_equal(text_of_count(0, text, sizeof text), "0");
    assert_string_equal(text_of_count(999, text, sizeof text), "999");
    assert_string_equal(text_of_count(1000, text, sizeof text), "1 000");
    assert_string_equal(text_of_count(1234567, text, sizeof text), "1 234 567");
    assert_string_equal(text_of_count(-1234567, text, sizeof text), "-1 234 567");
    assert_string_equal(text_of_count(INT64_MIN, text, sizeof text), "-9 223 372 036 854 775 808");
}

static void nearest(void **state)
{
    static const char *const names[] = {"epochs", "batch", "fanout", "hidden", "lr", "seed", "seed-order", "policy"};
    const int32_t n = (int32_t)(sizeof names / sizeof names[0]);
    char endless[1001];
    (void)state;
    assert_string_equal(text_nearest("epoch", names, n), "epochs");
    assert_string_equal(text_nearest("epcohs", names, n), "epochs"); /* a swap is one edit */
    assert_string_equal(text_nearest("EPOCHS", names, n), "epochs");
    assert_string_equal(text_nearest("fan-out", names, n), "fanout");
    assert_string_equal(text_nearest("seedorder", names, n), "seed-order");
    assert_string_equal(text_nearest("police", names, n), "policy");
    assert_string_equal(text_nearest("seed", names, n), "seed"); /* the same is nearest of all */
    assert_null(text_nearest("momentum", names, n));
    assert_null(text_nearest("", names, n));
    assert_null(text_nearest("x", names, n));
    assert_null(text_nearest("epochs", names, 0));
    memset(endless, 'e', 1000);
    endless[1000] = '\0';
    assert_null(text_nearest(endless, names, n));
}

static void columns_are_code_points(void **state)
{
    (void)state;
    assert_int_equal(text_columns(""), 0);
    assert_int_equal(text_columns("abc"), 3);
    assert_int_equal(text_columns("µs €"), 4);
}

static void texts_are_cleaned(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
        {"a\tb\nc", "a b c"},
        {"\x1b[31mred", "?[31mred"},
        {"\xC2\x9B[2J", "??[2J"}, /* the same as a control of Latin-1 */
        {"ab\xE2\x80\xAE"
         "cd\xE2\x81\xA6",
         "ab???cd???"}, /* writing from right to left */
        {"\xFF\xC3(\xE2\x82", "?\?(?\?"},
        {"\xED\xA0\x80\xC0\x80", "?????"}, /* a surrogate, an overlong NUL */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        text_clean(text);
        assert_string_equal(text, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_read),
        cmocka_unit_test(bytes_are_refused),
        cmocka_unit_test(rates_are_bytes_a_second),
        cmocka_unit_test(times_are_the_nearest_double),
        cmocka_unit_test(integers_keep_their_range),
        cmocka_unit_test(numbers_keep_their_range),
        cmocka_unit_test(the_locale_is_without_effect),
        cmocka_unit_test(bytes_are_told),
        cmocka_unit_test(counts_are_told),
        cmocka_unit_test(nearest),
        cmocka_unit_test(columns_are_code_points),
        cmocka_unit_test(texts_are_cleaned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
