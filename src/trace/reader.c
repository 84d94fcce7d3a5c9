/* Opens a trace, tells its kind by the first bytes, and hands over to the file of that kind. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "trace/valid.h"
#include "trace/format.h"
#include "trace/rtr.h"

struct trace_reader {
    const trace_format_t *format;
    void *self;
    source_t source;
    trace_info_t info;
    valid_range_t range;
    int64_t given; /* minibatches */
};

rudder_status_t source_read(source_t *source, void *bytes, int64_t n, int64_t *got, rudder_error_t *error)
{
    int64_t done = 0;
    if (source->position < source->n_head) {
        const int64_t left = source->n_head - source->position;
        done = n < left ? n : left;
        memcpy(bytes, source->head + source->position, (size_t)done);
    }
    while (done < n) {
        const ssize_t some = read(source->file, (char *)bytes + done, (size_t)(n - done));
        if (some == 0) {
            break;
        }
        if (some < 0 && errno != EINTR) {
            return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be read at byte %lld: %s", source->path,
                               (long long)(source->position + done), strerror(errno));
        }
        done += some > 0 ? some : 0;
    }
    source->position += done;
    *got = done;
    return RUDDER_OK;
}

static rudder_status_t reader_source(source_t *source, rudder_error_t *error)
{
    struct stat about;
    source->file = open(source->path, O_RDONLY | O_CLOEXEC);
    if (source->file < 0 || fstat(source->file, &about) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", source->path, strerror(errno));
    }
    if (S_ISDIR(about.st_mode)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a trace, found a directory", source->path);
    }
    source->size = S_ISREG(about.st_mode) ? about.st_size : -1;
    int64_t got = 0;
    RUDDER_TRY(source_read(source, source->head, SOURCE_HEAD_BYTES, &got, error));
    source->n_head = (int32_t)got;
    source->position = 0;
    return RUDDER_OK;
}

static rudder_status_t reader_recognise(const source_t *source, const trace_format_t **format, rudder_error_t *error)
{
    const unsigned char *head = source->head;
    const int32_t n = source->n_head;
    char found[3 * SOURCE_HEAD_BYTES + 1] = "nothing";
    if (n >= 4 && memcmp(head, RTR_MARK, 4) == 0) {
        *format = &trace_format_rtr;
        return RUDDER_OK;
    }
    if (n >= 4 && memcmp(head, "PK\3\4", 4) == 0) {
        *format = &trace_format_npz;
        return RUDDER_OK;
    }
    if (n > 0 && (strchr("#-0123456789 \t\r\n", head[0]) != NULL && head[0] != '\0')) {
        *format = &trace_format_text;
        return RUDDER_OK;
    }
    for (int32_t i = 0; i < n && i < 8; i++) {
        snprintf(found + 3 * i, sizeof found - 3 * (size_t)i, "%02x%s", head[i], i + 1 < n && i < 7 ? " " : "");
    }
    return RUDDER_FAIL(error, RUDDER_E_DATA,
                       "%s: byte 0: expected a trace (.rtr, .npz, or text with an id a line), found %s", source->path,
                       found);
}

rudder_status_t trace_reader_open(const char *path, trace_reader_t **reader, const trace_info_t **info,
                                  rudder_error_t *error)
{
    trace_reader_t *r = calloc(1, sizeof *r);
    if (r == NULL || (r->source.path = strdup(path)) == NULL) {
        free(r);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory to open it", path);
    }
    r->info.n_minibatches = r->info.n_ids = -1;
    rudder_status_t status = reader_source(&r->source, error);
    status = status == RUDDER_OK ? reader_recognise(&r->source, &r->format, error) : status;
    if (status == RUDDER_OK) {
        snprintf(r->info.kind, sizeof r->info.kind, "%s", r->format->kind);
        status = r->format->open(&r->source, &r->info, &r->self, error);
    }
    status = status == RUDDER_OK ? valid_halo(path, r->info.halo, r->info.n_halo, error) : status;
    if (status != RUDDER_OK) {
        trace_reader_close(r);
        return status;
    }
    r->range = valid_range_of(&r->info);
    *reader = r;
    *info = &r->info;
    return RUDDER_OK;
}

/* Owners that are known own all ids, and none of the reader's rank is remote to it. */
static rudder_status_t reader_check(const trace_reader_t *r, const trace_minibatch_t *m, rudder_error_t *error)
{
    const int64_t at = valid_ids(&r->range, m->ids, m->n);
    return at < 0
               ? RUDDER_OK
               : RUDDER_FAIL(error, RUDDER_E_DATA,
                             "%s: minibatch %lld: expected ids from %lld to %lld that are not of rank %d, found %lld",
                             r->source.path, (long long)r->given, (long long)r->range.first, (long long)r->range.last,
                             r->info.rank, (long long)m->ids[at]);
}

rudder_status_t trace_reader_next(trace_reader_t *reader, trace_minibatch_t *minibatch, int *end, rudder_error_t *error)
{
    *end = 0;
    *minibatch =
        (trace_minibatch_t){.announced = -1, .miss = -1, .fill = -1, .times = {NAN, NAN, NAN, NAN, NAN, NAN, NAN}};
    RUDDER_TRY(reader->format->next(reader->self, minibatch, end, error));
    if (!*end && reader->info.owner_offset != NULL) {
        RUDDER_TRY(reader_check(reader, minibatch, error));
    }
    reader->given += !*end;
    return RUDDER_OK;
}

int trace_reader_torn(const trace_reader_t *reader)
{
    return reader->format->torn != NULL && reader->format->torn(reader->self);
}

int64_t trace_reader_memory(const trace_reader_t *reader)
{
    return (int64_t)sizeof *reader + reader->format->memory(reader->self);
}

void trace_reader_close(trace_reader_t *reader)
{
    if (reader == NULL) {
        return;
    }
    if (reader->self != NULL) {
        reader->format->close(reader->self);
    }
    if (reader->source.file >= 0) {
        close(reader->source.file);
    }
    free(reader->source.path);
    free(reader);
}
