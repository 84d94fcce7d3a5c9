/*
 * Errors inside Rudder: one line each, said where the fault is first seen. Code returns RUDDER_FAIL(...) and passes a
 * failure on with RUDDER_TRY(...); clean-up goes through a label at the end of the function.
 */
#ifndef RUDDER_BASE_ERROR_H
#define RUDDER_BASE_ERROR_H

#include "rudder/status.h"

/* Fills *error (may be NULL) and returns status. The text: the thing, what was expected, what was found. */
rudder_status_t error_set(rudder_error_t *error, rudder_status_t status, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define RUDDER_FAIL(error, status, ...) error_set((error), (status), __func__, __VA_ARGS__)

#define RUDDER_TRY(call)                                                                                               \
    do {                                                                                                               \
        const rudder_status_t try_status_ = (call);                                                                    \
        if (try_status_ != RUDDER_OK) {                                                                                \
            return try_status_;                                                                                        \
        }                                                                                                              \
    } while (0)

#endif
