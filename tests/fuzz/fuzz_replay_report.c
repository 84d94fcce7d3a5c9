/* Any bytes as a file of `rudder replay --json`: it is refused with a reason, or becomes a page. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "page_check.h"
#include "report/replays.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    replays_t replay;
    rudder_error_t error = {0};
    const int fd = memfd_create("fuzz.json", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (replays_read(path, &replay, &error) == RUDDER_OK) {
        char *text = NULL;
        size_t length = 0;
        page_t page;
        FILE *file = open_memstream(&text, &length);
        page_begin(&page, 1, file, "fuzz", "fuzz");
        if (replays_report(&page, &replay, &error) != RUDDER_OK || page_end(&page, &error) != RUDDER_OK) {
            abort();
        }
        fclose(file);
        page_check(text);
        free(text);
        replays_free(&replay);
    } else if (error.status != RUDDER_E_DATA && error.status != RUDDER_E_IO) {
        abort();
    }
    close(fd);
    return 0;
}
