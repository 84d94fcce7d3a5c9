/* The texts of status codes, and the one function that fills an error. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

const char *rudder_status_name(rudder_status_t status)
{
    switch (status) {
#define STATUS_NAME(name, value, text)                                                                                 \
    case name:                                                                                                         \
        return #name;
        RUDDER_STATUS_TABLE(STATUS_NAME)
#undef STATUS_NAME
    }
    return "RUDDER_E_UNKNOWN";
}

const char *rudder_status_text(rudder_status_t status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                                                 \
    case name:                                                                                                         \
        return text;
        RUDDER_STATUS_TABLE(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

rudder_status_t error_set(rudder_error_t *error, rudder_status_t status, const char *where, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        error->status = status;
        snprintf(error->where, sizeof error->where, "%s", where);
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return status;
}
