/* Any bytes as the head of a GGUF file, also one that claims to be longer than the bytes that are there. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf_info_t info;
    rudder_error_t error;
    const rudder_status_t exact = gguf_parse(data, size, (int64_t)size, "input", &info, &error);
    const rudder_status_t longer = gguf_parse(data, size, INT64_MAX, "input", &info, &error);
    /* A longer file can only be better. */
    if (exact == RUDDER_OK && longer != RUDDER_OK) {
        abort();
    }
    if (memchr(info.architecture, '\0', sizeof info.architecture) == NULL ||
        memchr(info.name, '\0', sizeof info.name) == NULL) {
        abort();
    }
    return 0;
}
