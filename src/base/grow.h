/*
 * Arrays that grow to the largest size ever needed and are kept, so that a steady state allocates nothing.
 */
#ifndef RUDDER_BASE_GROW_H
#define RUDDER_BASE_GROW_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rudder/status.h"

/*
 * Makes the array that the pointer at `array` points to hold at least n items; what it holds stays. It grows by at least
 * half, so that growing bit by bit costs linear time. Errors: MEMORY, then nothing has changed.
 */
static inline rudder_status_t grow_array(void *array, int64_t *capacity, int64_t n, size_t item_bytes)
{
    if (n <= *capacity) {
        return RUDDER_OK;
    }
    const int64_t half_more = *capacity + *capacity / 2, wanted = n > half_more ? n : half_more;
    void *data;
    memcpy(&data, array, sizeof data);
    if ((uint64_t)wanted > SIZE_MAX / 2 / item_bytes || !(data = realloc(data, (size_t)wanted * item_bytes))) {
        return RUDDER_E_MEMORY;
    }
    memcpy(array, &data, sizeof data);
    *capacity = wanted;
    return RUDDER_OK;
}

#endif
