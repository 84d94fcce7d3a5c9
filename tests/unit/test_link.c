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

/* ---- links of several owners ---- */

static void test_written_links_of_owners(void **state)
{
    (void)state;
    links_t links;
    assert_int_equal(links_parse("1Gbit,50us;2=100Mbit,1ms;0=off", &links, NULL), RUDDER_OK);
    assert_true(near(links.common.bytes_per_second, 125e6) && near(links.common.latency, 50e-6));
    assert_int_equal(links.n_own, 2);
    assert_int_equal(links.own[0].owner, 2);
    assert_true(near(links.own[0].link.bytes_per_second, 12.5e6) && near(links.own[0].link.latency, 1e-3));
    assert_int_equal(links.own[1].owner, 0);
    assert_true(links_delay(&links) && links_delay_owner(&links, 2) && links_delay_owner(&links, 1));
    assert_false(links_delay_owner(&links, 0));
    assert_int_equal(links_last_owner(&links), 2);
    assert_int_equal(links_parse("off;5=1Mbit", &links, NULL), RUDDER_OK);
    assert_true(links_delay(&links) && links_delay_owner(&links, 5) && !links_delay_owner(&links, 4));
    assert_int_equal(links_parse("off", &links, NULL), RUDDER_OK);
    assert_true(!links_delay(&links) && links_last_owner(&links) == -1);
    char text[16 * LINKS_OWN] = "off";
    for (int i = 0; i < LINKS_OWN; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), ";%d=1Mbit", i);
    }
    assert_int_equal(links_parse(text, &links, NULL), RUDDER_OK);
    assert_int_equal(links.n_own, LINKS_OWN);
    strcat(text, ";77=1Mbit");
    assert_int_equal(links_parse(text, &links, NULL), RUDDER_E_USAGE);
}

static void test_links_of_owners_that_are_refused(void **state)
{
    (void)state;
    const char *texts[] = {"",
                           ";",
                           "1Gbit;",
                           "1Gbit;2",
                           "1Gbit;=1Gbit",
                           "1Gbit;-1=1Gbit",
                           "1Gbit;2=",
                           "1Gbit;a=1Gbit",
                           "1Gbit;1=1Gbit;",
                           "2=1Gbit",
                           "1Gbit;2=fast",
                           "1Gbit;2=1Gbit;2=1Gbit",
                           "1Gbit;99999999999=1Gbit",
                           "1Gbit;99999999999999999999=1Gbit",
                           "1Gbit,50us,2;1=1Gbit"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        links_t links;
        rudder_error_t error = {0};
        if (links_parse(texts[i], &links, &error) != RUDDER_E_USAGE) {
            print_error("\"%s\" was not refused\n", texts[i]);
            fail();
        }
        assert_non_null(strstr(error.text, "--link"));
        assert_true(!links_delay(&links) && links.n_own == 0);
    }
}

/* Equal shares: an owner is done when everyone has got as much as it has, or all it wanted. */
static void test_owners_share_the_common_link_equally(void **state)
{
    (void)state;
    links_t links = {.common = {.bytes_per_second = 1000, .latency = 0.25}};
    const int64_t in[4] = {1000, 0, 3000, 2000}, out[4] = {0, 0, 0, 0};
    double arrival[4];
    assert_true(near(links_arrival(&links, 10, in, out, 4, arrival), 10 + 6 + 0.5));
    assert_true(near(arrival[0], 10 + 3 + 0.5));
    assert_true(arrival[1] == 10);
    assert_true(near(arrival[3], 10 + 5 + 0.5));
    assert_true(near(arrival[2], 10 + 6 + 0.5));
    /* What comes next waits for it. */
    const int64_t next[4] = {500, 0, 0, 0};
    assert_true(near(links_arrival(&links, 12, next, out, 4, arrival), 16.5 + 0.5));
    assert_true(near(arrival[0], 16.5 + 0.5));
}

static void test_one_owner_is_as_one_link(void **state)
{
    (void)state;
    const int64_t bytes[][2] = {{500, 2000}, {3000, 2000}, {0, 0}, {1, 0}};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        links_t links = {.common = {.bytes_per_second = 1000, .latency = 0.125}};
        link_t link = links.common;
        double arrival;
        for (int call = 0; call < 3; call++) {
            const double end = links_arrival(&links, 5, &bytes[i][0], &bytes[i][1], 1, &arrival);
            assert_true(near(end, link_arrival(&link, 5, bytes[i][0], bytes[i][1])));
            assert_true(arrival <= end);
        }
    }
}

/* A slow owner is late by itself: the others neither wait for it nor pass its link; what goes out passes the common one. */
static void test_an_own_link_carries_what_comes_from_its_owner(void **state)
{
    (void)state;
    links_t links = {.common = {.bytes_per_second = 1000}, .n_own = 1};
    links.own[0].owner = 2;
    links.own[0].link = (link_t){.bytes_per_second = 100, .latency = 1};
    const int64_t in[3] = {1000, 1000, 1000}, out[3] = {0, 0, 5000};
    double arrival[3];
    assert_true(near(links_arrival(&links, 0, in, out, 3, arrival), 12));
    assert_true(near(arrival[0], 2) && near(arrival[1], 2) && near(arrival[2], 12));
    assert_true(near(links.common.free_at, 5) && near(links.own[0].link.free_at, 10));
    /* An owner that is not among the ranks books nothing. */
    links.own[0].owner = 3;
    links.own[0].link.free_at = links.common.free_at = 0;
    assert_true(near(links_arrival(&links, 0, in, out, 3, arrival), 5));
    assert_true(near(arrival[2], 3) && links.own[0].link.free_at == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_links),
        cmocka_unit_test(test_links_that_are_refused),
        cmocka_unit_test(test_no_link_delays_nothing),
        cmocka_unit_test(test_longer_direction_and_both_latencies_count),
        cmocka_unit_test(test_transfers_queue_but_latencies_overlap),
        cmocka_unit_test(test_written_links_of_owners),
        cmocka_unit_test(test_links_of_owners_that_are_refused),
        cmocka_unit_test(test_owners_share_the_common_link_equally),
        cmocka_unit_test(test_one_owner_is_as_one_link),
        cmocka_unit_test(test_an_own_link_carries_what_comes_from_its_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
