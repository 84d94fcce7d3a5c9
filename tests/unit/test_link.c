/* The clock of an emulated link, and how a link is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/link.h"

static int near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fmax(1, fabs(b));
}

static void test_written_links(void **state)
{
    (void)state;
    link_t link;
    assert_int_equal(link_parse("1Gbit", &link, NULL), RUDDER_OK);
    assert_true(near(link.bytes_per_second, 125e6) && link.latency == 0 && link.free_at == 0);
    assert_int_equal(link_parse("200Mbit,50us", &link, NULL), RUDDER_OK);
    assert_true(near(link.bytes_per_second, 25e6) && near(link.latency, 50e-6));
    assert_int_equal(link_parse("off", &link, NULL), RUDDER_OK);
    assert_true(link.bytes_per_second == 0 && link.latency == 0);
}

static void test_links_that_are_refused(void **state)
{
    (void)state;
    char long_text[200];
    memset(long_text, '1', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    const char *texts[] = {"",       ",",          ",50us",  "1Gbit,", "1Gbit,50", "fast", "1Gbit,50us,2",
                           "-1Gbit", "1Gbit,-5us", long_text};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        link_t link;
        rudder_error_t error = {0};
        if (link_parse(texts[i], &link, &error) != RUDDER_E_USAGE) {
            print_error("\"%s\" was not refused\n", texts[i]);
            fail();
        }
        assert_non_null(strstr(error.text, "--link"));
        assert_true(link.bytes_per_second == 0 && link.latency == 0);
    }
}

static void test_no_link_delays_nothing(void **state)
{
    (void)state;
    link_t link = {0};
    assert_true(link_arrival(&link, 7.5, 1 << 30, 1 << 30) == 7.5);
}

static void test_longer_direction_and_both_latencies_count(void **state)
{
    (void)state;
    link_t link = {.bytes_per_second = 1000, .latency = 0.25};
    assert_true(near(link_arrival(&link, 100, 500, 2000), 100 + 2 + 0.5));
    link.free_at = 0;
    assert_true(near(link_arrival(&link, 100, 3000, 2000), 100 + 3 + 0.5));
    link.free_at = 0;
    assert_true(link_arrival(&link, 100, 0, 0) == 100);
    assert_true(link.free_at == 0);
    link.bytes_per_second = 0;
    assert_true(near(link_arrival(&link, 100, 1, 0), 100.5));
}

static void test_transfers_queue_but_latencies_overlap(void **state)
{
    (void)state;
    link_t link = {.bytes_per_second = 1000, .latency = 1};
    assert_true(near(link_arrival(&link, 10, 1000, 0), 13));
    assert_true(near(link_arrival(&link, 10, 1000, 0), 14));
    assert_true(near(link_arrival(&link, 10.5, 0, 500), 14.5));
    assert_true(near(link_arrival(&link, 50, 1000, 0), 53)); /* idle time is not saved up */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_links),
        cmocka_unit_test(test_links_that_are_refused),
        cmocka_unit_test(test_no_link_delays_nothing),
        cmocka_unit_test(test_longer_direction_and_both_latencies_count),
        cmocka_unit_test(test_transfers_queue_but_latencies_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
