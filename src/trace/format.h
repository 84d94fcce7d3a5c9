/*
 * What reader.c and the kinds of trace files share: a file that is read from front to back, and the table of functions of a
 * kind. Each kind is a file of its own (format_rtr.c, format_npz.c, format_text.c).
 */
#ifndef RUDDER_TRACE_FORMAT_H
#define RUDDER_TRACE_FORMAT_H

#include "trace/reader.h"

enum { SOURCE_HEAD_BYTES = 16 };

/* An open file. Pipes work, too: its first bytes were read to tell its kind and are handed out again. */
typedef struct source {
    char *path;
    int file;
    int64_t size;     /* -1: not known (a pipe) */
    int64_t position; /* of the next byte that source_read() gives */
    unsigned char head[SOURCE_HEAD_BYTES];
    int32_t n_head;
} source_t;

/* Reads up to n bytes; *got is less than n at the end of the file only. Errors: IO. */
rudder_status_t source_read(source_t *source, void *bytes, int64_t n, int64_t *got, rudder_error_t *error);

/* A kind of trace. `self` is what open() made; what *info points to lives until close(). */
typedef struct trace_format {
    const char *kind;
    /* Fills what it knows of *info (zeroed, n_minibatches and n_ids -1). Cleans up after itself when it fails. */
    rudder_status_t (*open)(source_t *source, trace_info_t *info, void **self, rudder_error_t *error);
    /* *minibatch comes with nothing known. */
    rudder_status_t (*next)(void *self, trace_minibatch_t *minibatch, int *end, rudder_error_t *error);
    int (*torn)(const void *self); /* NULL: never */
    int64_t (*memory)(const void *self);
    void (*close)(void *self);
} trace_format_t;

extern const trace_format_t trace_format_rtr, trace_format_npz, trace_format_text;

#endif
