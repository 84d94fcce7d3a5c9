/*
 * rudder/status.h - status codes and error texts.
 *
 * Every function of the library that can fail returns a rudder_status_t: 0 is success, a negative value says what is
 * wrong. Functions that take a rudder_error_t fill it on failure only; NULL is allowed wherever it is taken.
 */
#ifndef RUDDER_STATUS_H
#define RUDDER_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RUDDER_API __attribute__((visibility("default")))
#else
#define RUDDER_API
#endif

/*
 * The one table of status codes: name, value, general text. Values are part of the ABI and never reused.
 * -1 .. -19 concern calls of the library, -20 .. -39 what surrounds a run (used by the rudder program as well).
 */
#define RUDDER_STATUS_TABLE(X)                                                                                         \
    X(RUDDER_OK, 0, "success")                                                                                         \
    X(RUDDER_E_ARGUMENT, -1, "an argument is not valid")                                                               \
    X(RUDDER_E_MEMORY, -2, "out of memory")                                                                            \
    X(RUDDER_E_STATE, -3, "the call is out of order")                                                                  \
    X(RUDDER_E_AGAIN, -4, "rows of an earlier plan must be delivered first")                                           \
    X(RUDDER_E_OWNED, -5, "an id is owned by this rank")                                                               \
    X(RUDDER_E_PLANS, -6, "too many plans are open")                                                                   \
    X(RUDDER_E_FORKED, -7, "the handle belongs to the parent process")                                                 \
    X(RUDDER_E_NAME, -8, "no policy, decider or start has this name")                                                  \
    X(RUDDER_E_UNSUPPORTED, -9, "the combination of options has no meaning")                                           \
    X(RUDDER_E_DEADLINE, -10, "the deadline has passed")                                                               \
    X(RUDDER_E_AGENT, -11, "the agent is not available")                                                               \
    X(RUDDER_E_DATA, -20, "input data is not valid")                                                                   \
    X(RUDDER_E_IO, -21, "a file cannot be read or written")                                                            \
    X(RUDDER_E_ENVIRONMENT, -22, "the machine or its libraries do not fit")                                            \
    X(RUDDER_E_PEER, -23, "another rank is lost")                                                                      \
    X(RUDDER_E_USAGE, -24, "the command line is not valid")                                                            \
    X(RUDDER_E_INTERRUPTED, -25, "stopped by a signal")                                                                \
    X(RUDDER_E_INTERNAL, -39, "a defect in Rudder")

typedef enum rudder_status {
#define RUDDER_STATUS_ENUM(name, value, text) name = value,
    RUDDER_STATUS_TABLE(RUDDER_STATUS_ENUM)
#undef RUDDER_STATUS_ENUM
} rudder_status_t;

/* What went wrong: the code, one line that names the thing, what was expected and what was found, and the function. */
typedef struct rudder_error {
    rudder_status_t status;
    char text[512];
    char where[64];
} rudder_error_t;

/* Name of a code, as in the table ("RUDDER_E_MEMORY"); "RUDDER_E_UNKNOWN" for any other value. Static, never NULL. */
RUDDER_API const char *rudder_status_name(rudder_status_t status);

/* General text of a code. Static, never NULL. */
RUDDER_API const char *rudder_status_text(rudder_status_t status);

#ifdef __cplusplus
}
#endif
#endif
