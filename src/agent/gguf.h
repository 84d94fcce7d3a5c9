/*
 * A look at a GGUF file before llama.cpp sees it, so that a file that is missing, truncated or something else is told as
 * such. The header is walked, the tensors' places are checked against the file's size; no weight is read.
 */
#ifndef RUDDER_AGENT_GGUF_H
#define RUDDER_AGENT_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include "rudder/status.h"

typedef struct gguf_info {
    int64_t file_bytes, tensors;
    int64_t modified;      /* of the file, ns; 0 from gguf_parse() */
    char architecture[64]; /* general.architecture, "" when not given */
    char name[128];        /* general.name, "" when not given */
} gguf_info_t;

/* Errors: IO (cannot be read), DATA (not GGUF, a version we do not know, truncated, inconsistent). */
rudder_status_t gguf_check(const char *path, gguf_info_t *info, rudder_error_t *error);

/* The same on bytes in memory; `bytes` may be less than the file when file_bytes says so. `name` is for messages. */
rudder_status_t gguf_parse(const void *data, size_t bytes, int64_t file_bytes, const char *name, gguf_info_t *info,
                           rudder_error_t *error);

#endif
