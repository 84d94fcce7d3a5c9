/* Any bytes as an .npz archive: members are refused or read whole, within the size that was allowed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const dtypes[] = {"<u4", "<i8"};
    char path[64];
    npz_t *npz = NULL;
    rudder_error_t error = {0};
    const int fd = memfd_create("fuzz.npz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (npz_open(path, &npz, &error) == RUDDER_OK) {
        for (int i = 0; i < 2; i++) {
            npy_t array = {0};
            if (npz_read(npz, i == 0 ? "ids" : "offsets", dtypes[i], 1, MOST_BYTES, &array, &error) == RUDDER_OK) {
                volatile uint8_t sum = 0;
                for (size_t b = 0; b < (size_t)array.count * array.item_bytes; b++) {
                    sum = (uint8_t)(sum + ((const uint8_t *)array.data)[b]);
                }
                if (array.count * (int64_t)array.item_bytes > MOST_BYTES) {
                    abort();
                }
                npy_close(&array);
            }
        }
        npz_close(npz);
    }
    close(fd);
    return 0;
}
