/*
 * A writer of JSON: into memory, no allocation but the buffer's growth, commas and escapes by itself. NaN and infinities
 * become null. (Reading is cJSON's work, in the program.)
 */
#ifndef RUDDER_BASE_JSON_H
#define RUDDER_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Zeroed: empty. */
typedef struct json {
    char *text; /* always NUL-terminated once something was written; owned, free() it or json_free() */
    size_t length, capacity;
    int depth;
    int comma;  /* the next item needs one */
    int failed; /* out of memory: everything after is ignored */
    int pretty; /* set to 1 before the first item: two spaces a level, for files that people read */
} json_t;

/* key: NULL inside arrays and at the top. */
void json_object(json_t *json, const char *key);
void json_end_object(json_t *json);
void json_array(json_t *json, const char *key);
void json_end_array(json_t *json);
void json_string(json_t *json, const char *key, const char *value); /* value NULL: null. Invalid UTF-8 is replaced. */
void json_int(json_t *json, const char *key, int64_t value);
void json_double(json_t *json, const char *key, double value);    /* shortest text that reads back equal */
void json_seconds(json_t *json, const char *key, double seconds); /* to the microsecond: shorter, nothing lost */
void json_bool(json_t *json, const char *key, int value);
void json_null(json_t *json, const char *key);
void json_reset(json_t *json); /* keeps the memory */
void json_free(json_t *json);

#endif
