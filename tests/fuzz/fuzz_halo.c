/* Any bytes as a halo in text: refused, or distinct ids of at least 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/halo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int64_t *halo = NULL, n = 0;
    uint32_t *degree = NULL;
    rudder_error_t error = {0};
    const int fd = memfd_create("fuzz.halo", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const rudder_status_t status = halo_read(path, &halo, &degree, &n, &error);
    if (status == RUDDER_OK) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t k = 0; k < i && i < 100; k++) {
                if (halo[i] == halo[k]) {
                    abort();
                }
            }
            if (halo[i] < 0) {
                abort();
            }
        }
        free(halo);
        free(degree);
    } else if (status != RUDDER_E_DATA || strstr(error.text, "expected") == NULL) {
        abort();
    }
    close(fd);
    return 0;
}
