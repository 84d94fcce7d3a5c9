/* Any bytes as a file of lines - a halo, a link schedule: refused, or what was asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/clock.h"
#include "trace/halo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds) {
        abort();
    }
}

/* 1: read. Else it is refused as data, with what was expected. */
static int was_read(rudder_status_t status, const rudder_error_t *error)
{
    check(status == RUDDER_OK || (status == RUDDER_E_DATA && strstr(error->text, "expected") != NULL));
    return status == RUDDER_OK;
}

static void read_halo(const char *path)
{
    int64_t *halo = NULL, n = 0;
    uint32_t *degree = NULL;
    rudder_error_t error = {0};
    if (was_read(halo_read(path, &halo, &degree, &n, &error), &error)) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t k = 0; k < i && i < 100; k++) {
                check(halo[i] != halo[k]);
            }
            check(halo[i] >= 0);
        }
        free(halo);
        free(degree);
    }
}

static void read_schedule(const char *path)
{
    const links_t none = {0};
    links_t links = {0};
    clock_change_t *changes = NULL;
    int64_t n = 0;
    rudder_error_t error = {0};
    if (was_read(clock_read_schedule(path, &none, &changes, &n, &error), &error)) {
        for (int64_t i = 0; i < n; i++) {
            check(changes[i].from >= (i > 0 ? changes[i - 1].from : 0) && changes[i].owner >= -1);
            check(changes[i].link.bytes_per_second >= 0 && changes[i].link.latency >= 0);
            check(changes[i].owner < 0 || links_add(&links, changes[i].owner) != NULL);
        }
        free(changes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const int fd = memfd_create("fuzz.lines", MFD_CLOEXEC);
    check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_halo(path);
    read_schedule(path);
    close(fd);
    return 0;
}
