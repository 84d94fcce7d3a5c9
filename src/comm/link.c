/*
 * The clock of an emulated link: when would this have arrived?
 */
#include "comm/link.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

rudder_status_t link_parse(const char *text, link_t *link, rudder_error_t *error)
{
    char rate[64];
    *link = (link_t){0};
    if (!strcmp(text, "off")) {
        return RUDDER_OK;
    }
    const char *comma = strchr(text, ',');
    const size_t length = comma ? (size_t)(comma - text) : strlen(text);
    if (length == 0 || length >= sizeof rate) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "--link: expected \"off\", a rate or RATE,LATENCY (1Gbit,50us), found \"%s\"", text);
    }
    memcpy(rate, text, length);
    rate[length] = 0;
    link_t parsed = {0};
    RUDDER_TRY(text_rate(rate, "--link", &parsed.bytes_per_second, error));
    if (comma) {
        RUDDER_TRY(text_seconds(comma + 1, "--link", &parsed.latency, error));
    }
    *link = parsed;
    return RUDDER_OK;
}

double link_arrival(link_t *link, double start, int64_t bytes_in, int64_t bytes_out)
{
    const int64_t bytes = bytes_in > bytes_out ? bytes_in : bytes_out;
    if (bytes == 0) {
        return start;
    }
    double arrival = start;
    if (link->bytes_per_second > 0) {
        arrival = (link->free_at > start ? link->free_at : start) + (double)bytes / link->bytes_per_second;
        link->free_at = arrival;
    }
    return arrival + 2 * link->latency;
}
