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

const link_t *links_own(const links_t *links, int32_t owner)
{
    for (int32_t i = 0; i < links->n_own; i++) {
        if (links->own[i].owner == owner) {
            return &links->own[i].link;
        }
    }
    return NULL;
}

link_t *links_add(links_t *links, int32_t owner)
{
    int32_t i = 0;
    while (i < links->n_own && links->own[i].owner != owner) {
        i++;
    }
    if (i == LINKS_OWN) {
        return NULL;
    }
    if (i == links->n_own) {
        links->own[links->n_own++].owner = owner;
    }
    return &links->own[i].link;
}

/* "2=100Mbit,1ms" */
static rudder_status_t links_parse_own(const char *text, links_t *links, rudder_error_t *error)
{
    char owner[16];
    const char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : 0;
    if (length == 0 || length >= sizeof owner) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE,
                           "--link: after \";\" expected OWNER=RATE[,LATENCY] (2=100Mbit), found \"%s\"", text);
    }
    memcpy(owner, text, length);
    owner[length] = 0;
    int64_t number;
    link_t link;
    RUDDER_TRY(text_int(owner, "--link: owner", 0, INT32_MAX, &number, error));
    RUDDER_TRY(link_parse(equals + 1, &link, error));
    if (links_own(links, (int32_t)number) != NULL) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--link: owner %d has two links", (int)number);
    }
    link_t *own = links_add(links, (int32_t)number);
    if (own == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "--link: at most %d owners with a link of their own", LINKS_OWN);
    }
    *own = link;
    return RUDDER_OK;
}

rudder_status_t links_parse(const char *text, links_t *links, rudder_error_t *error)
{
    char part[128];
    links_t parsed = {0};
    *links = (links_t){0};
    for (int first = 1; text != NULL; first = 0) {
        const char *end = strchr(text, ';');
        const size_t length = end ? (size_t)(end - text) : strlen(text);
        if (length >= sizeof part) {
            return RUDDER_FAIL(error, RUDDER_E_USAGE,
                               "--link: expected RATE[,LATENCY][;OWNER=RATE[,LATENCY]...], "
                               "found \"%.40s...\"",
                               text);
        }
        memcpy(part, text, length);
        part[length] = 0;
        RUDDER_TRY(first ? link_parse(part, &parsed.common, error) : links_parse_own(part, &parsed, error));
        text = end ? end + 1 : NULL;
    }
    *links = parsed;
    return RUDDER_OK;
}

static int link_delays(const link_t *link)
{
    return link->bytes_per_second > 0 || link->latency > 0;
}

int links_delay(const links_t *links)
{
    int any = link_delays(&links->common);
    for (int32_t i = 0; i < links->n_own; i++) {
        any |= link_delays(&links->own[i].link);
    }
    return any;
}

int links_delay_owner(const links_t *links, int32_t owner)
{
    const link_t *own = links_own(links, owner);
    return link_delays(own ? own : &links->common);
}

int32_t links_last_owner(const links_t *links)
{
    int32_t last = -1;
    for (int32_t i = 0; i < links->n_own; i++) {
        last = links->own[i].owner > last ? links->own[i].owner : last;
    }
    return last;
}

double links_arrival(links_t *links, double start, const int64_t *in, const int64_t *out, int32_t n_owners,
                     double *arrival)
{
    link_t *common = &links->common;
    const double begin = common->bytes_per_second > 0 && common->free_at > start ? common->free_at : start;
    int64_t sum_in = 0, sum_out = 0;
    for (int32_t p = 0; p < n_owners; p++) {
        sum_in += links_own(links, p) ? 0 : in[p];
        sum_out += out[p];
    }
    for (int32_t p = 0; p < n_owners; p++) {
        arrival[p] = start;
        if (in[p] > 0 && !links_own(links, p)) {
            int64_t passed = 0; /* when its last byte has: equal shares, those with less to send end sooner */
            for (int32_t q = 0; q < n_owners; q++) {
                passed += links_own(links, q) ? 0 : in[q] < in[p] ? in[q] : in[p];
            }
            arrival[p] = begin + 2 * common->latency +
                         (common->bytes_per_second > 0 ? (double)passed / common->bytes_per_second : 0);
        }
    }
    double latest = link_arrival(common, start, sum_in, sum_out);
    for (int32_t i = 0; i < links->n_own; i++) {
        const int32_t owner = links->own[i].owner;
        if (owner < n_owners && in[owner] > 0) {
            arrival[owner] = link_arrival(&links->own[i].link, start, in[owner], 0);
            latest = arrival[owner] > latest ? arrival[owner] : latest;
        }
    }
    return latest;
}
