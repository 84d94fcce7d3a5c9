/*
 * Any bytes as a .csv or .csv.gz file, and as one number: floats agree with strtod wherever both take the text, reading ends,
 * and nothing is read outside.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_number(const uint8_t *data, size_t size)
{
    float found;
    int64_t whole;
    char text[72], *end;
    if (size > 64 || memchr(data, '\0', size) != NULL) {
        return;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    if (csv_scan_float((const char *)data, size, &found) && size > 0) {
        const float expected = (float)strtod(text, &end);
        if (*end != '\0' || (isnan(expected) ? !isnan(found) : memcmp(&found, &expected, sizeof found) != 0)) {
            abort();
        }
    }
    if (csv_scan_int((const char *)data, size, &whole) && (whole != strtoll(text, &end, 10) || *end != '\0')) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1; /* one for all inputs */
    char path[64];
    csv_t *csv = NULL;
    int more = 0, last = 0;
    size_t fields = 0;
    fuzz_number(data, size);
    if (file < 0 && (file = memfd_create("fuzz", 0)) < 0) {
        abort();
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (csv_open(path, &csv, NULL) != RUDDER_OK) {
        abort();
    }
    while (csv_more(csv, &more, NULL) == RUDDER_OK && more) {
        rudder_status_t status = RUDDER_OK;
        for (last = 0; status == RUDDER_OK && !last; fields++) {
            float value;
            int64_t whole;
            status = fields % 2 == 0 ? csv_float(csv, &value, &last, NULL) : csv_int(csv, &whole, &last, NULL);
        }
        if (status != RUDDER_OK) {
            break;
        }
    }
    if (fields > 2000 * (size + 1)) { /* deflate grows at most a thousandfold */
        abort();
    }
    csv_close(csv);
    return 0;
}
