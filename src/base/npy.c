/*
 * .npy files: a header that is a Python literal, then the numbers. The parser takes exactly what NumPy writes for plain
 * number arrays; whatever else it meets it names. A file's length is compared with its header before anything is mapped,
 * so that reading an array never runs past the end of its file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/npy.h"

enum {
    NPY_MAX_HEADER = 65536,
    NPY_ALIGNMENT = 64,
    NPY_MAX_NAME = 240 /* letters of a path in a message */
};

static const char npy_magic[6] = "\x93NUMPY";

/* The end of a long path: messages are short, and the end tells files apart. */
static const char *npy_name(const char *path)
{
    const size_t length = strlen(path);
    return length > NPY_MAX_NAME ? path + (length - NPY_MAX_NAME) : path;
}

/* ---- the header ---------------------------------------------------------------------------------------------------- */

typedef struct npy_scanner {
    const char *at, *end;
    const char *name;
    rudder_error_t *error;
} npy_scanner_t;

static void npy_skip_space(npy_scanner_t *scanner)
{
    while (scanner->at < scanner->end && (*scanner->at == ' ' || *scanner->at == '\t' || *scanner->at == '\n')) {
        scanner->at++;
    }
}

static int npy_take(npy_scanner_t *scanner, char c)
{
    npy_skip_space(scanner);
    if (scanner->at < scanner->end && *scanner->at == c) {
        scanner->at++;
        return 1;
    }
    return 0;
}

/* What stands at the scanner, for messages: at most 16 printable letters. */
static const char *npy_found(const npy_scanner_t *scanner, char text[24])
{
    int n = 0;
    for (const char *p = scanner->at; p < scanner->end && n < 16; p++) {
        text[n++] = *p >= ' ' && *p < 127 ? *p : '?';
    }
    text[n] = '\0';
    return n > 0 ? text : "the end of the header";
}

static rudder_status_t npy_unexpected(const npy_scanner_t *scanner, const char *expected)
{
    char text[24];
    return RUDDER_FAIL(scanner->error, RUDDER_E_DATA, "%s: header: expected %s, found %s", scanner->name, expected,
                       npy_found(scanner, text));
}

/* A quoted word of less than `size` letters, no escapes. */
static rudder_status_t npy_scan_string(npy_scanner_t *scanner, const char *what, char *text, size_t size)
{
    npy_skip_space(scanner);
    const char *start = scanner->at;
    if (start < scanner->end && (*start == '\'' || *start == '"')) {
        for (const char *p = start + 1; p < scanner->end && (size_t)(p - start) <= size; p++) {
            if (*p == *start) {
                memcpy(text, start + 1, (size_t)(p - start - 1));
                text[p - start - 1] = '\0';
                scanner->at = p + 1;
                return RUDDER_OK;
            }
            if (*p < ' ' || *p >= 127) {
                break;
            }
        }
    }
    return npy_unexpected(scanner, what);
}

static rudder_status_t npy_scan_dtype(npy_scanner_t *scanner, npy_t *npy)
{
    char text[24];
    if (npy_take(scanner, '[')) {
        return RUDDER_FAIL(scanner->error, RUDDER_E_DATA, "%s: dtype: expected a number type, found a structured one",
                           scanner->name);
    }
    RUDDER_TRY(npy_scan_string(scanner, "a number type", text, sizeof text));
    const char order = text[0], kind = order != '\0' ? text[1] : '\0';
    if (kind == 'O') {
        return RUDDER_FAIL(scanner->error, RUDDER_E_DATA,
                           "%s: dtype: expected a number type, found pickled objects (%s)", scanner->name, text);
    }
    const int width = kind != '\0' && text[2] >= '1' && text[2] <= '8' && text[3] == '\0' ? text[2] - '0' : 0;
    const int known = (kind == 'b' && width == 1) || (kind == 'f' && (width == 2 || width == 4 || width == 8)) ||
                      ((kind == 'i' || kind == 'u') && (width == 1 || width == 2 || width == 4 || width == 8));
    if (!known || (order != '<' && order != '>' && order != '|' && order != '=')) {
        return RUDDER_FAIL(scanner->error, RUDDER_E_DATA,
                           "%s: dtype: expected a number type such as <f4 or <i8, found %s", scanner->name, text);
    }
    if (order == '>' && width > 1) {
        return RUDDER_FAIL(scanner->error, RUDDER_E_DATA,
                           "%s: dtype: expected little-endian numbers, found big-endian %s", scanner->name, text);
    }
    snprintf(npy->dtype, sizeof npy->dtype, "%c%c%d", width == 1 ? '|' : '<', kind, width);
    npy->item_bytes = (size_t)width;
    return RUDDER_OK;
}

static rudder_status_t npy_scan_order(npy_scanner_t *scanner)
{
    npy_skip_space(scanner);
    if (scanner->end - scanner->at >= 5 && memcmp(scanner->at, "False", 5) == 0) {
        scanner->at += 5;
        return RUDDER_OK;
    }
    if (scanner->end - scanner->at >= 4 && memcmp(scanner->at, "True", 4) == 0) {
        return RUDDER_FAIL(scanner->error, RUDDER_E_DATA, "%s: expected C order, found Fortran order", scanner->name);
    }
    return npy_unexpected(scanner, "fortran_order to be False or True");
}

static rudder_status_t npy_scan_dimension(npy_scanner_t *scanner, int64_t *dimension)
{
    npy_skip_space(scanner);
    const char *start = scanner->at;
    if (start < scanner->end && *start == '-') {
        return npy_unexpected(scanner, "a shape of no negative numbers");
    }
    int64_t value = 0;
    while (scanner->at < scanner->end && *scanner->at >= '0' && *scanner->at <= '9') {
        if (value > (INT64_MAX - 9) / 10) {
            scanner->at = start;
            return npy_unexpected(scanner, "a shape below 2^63");
        }
        value = 10 * value + (*scanner->at++ - '0');
    }
    if (scanner->at == start) {
        return npy_unexpected(scanner, "a number in the shape");
    }
    if (scanner->at < scanner->end && *scanner->at == 'L') { /* Python 2 wrote long numbers so */
        scanner->at++;
    }
    *dimension = value;
    return RUDDER_OK;
}

static rudder_status_t npy_scan_shape(npy_scanner_t *scanner, npy_t *npy)
{
    if (!npy_take(scanner, '(')) {
        return npy_unexpected(scanner, "a shape in parentheses");
    }
    npy->n_dimensions = 0;
    while (!npy_take(scanner, ')')) {
        if (npy->n_dimensions == NPY_MAX_DIMENSIONS) {
            return RUDDER_FAIL(scanner->error, RUDDER_E_DATA, "%s: expected at most %d dimensions, found more",
                               scanner->name, NPY_MAX_DIMENSIONS);
        }
        RUDDER_TRY(npy_scan_dimension(scanner, &npy->shape[npy->n_dimensions++]));
        if (!npy_take(scanner, ',')) {
            if (!npy_take(scanner, ')')) {
                return npy_unexpected(scanner, "a comma or the end of the shape");
            }
            break;
        }
    }
    return RUDDER_OK;
}

static rudder_status_t npy_scan_header(npy_scanner_t *scanner, npy_t *npy)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    unsigned seen = 0;
    if (!npy_take(scanner, '{')) {
        return npy_unexpected(scanner, "a Python dictionary");
    }
    while (!npy_take(scanner, '}')) {
        char key[24];
        RUDDER_TRY(npy_scan_string(scanner, "a key", key, sizeof key));
        if (!npy_take(scanner, ':')) {
            return npy_unexpected(scanner, "a colon after a key");
        }
        const unsigned bit = strcmp(key, "descr") == 0           ? DESCR
                             : strcmp(key, "fortran_order") == 0 ? ORDER
                             : strcmp(key, "shape") == 0         ? SHAPE
                                                                 : 0;
        if (bit == 0 || (seen & bit) != 0) {
            return RUDDER_FAIL(scanner->error, RUDDER_E_DATA,
                               "%s: header: expected descr, fortran_order and shape once each, found %s%s",
                               scanner->name, bit != 0 ? "again " : "", key);
        }
        seen |= bit;
        RUDDER_TRY(bit == DESCR   ? npy_scan_dtype(scanner, npy)
                   : bit == ORDER ? npy_scan_order(scanner)
                                  : npy_scan_shape(scanner, npy));
        if (!npy_take(scanner, ',')) {
            if (!npy_take(scanner, '}')) {
                return npy_unexpected(scanner, "a comma or the end of the dictionary");
            }
            break;
        }
    }
    if (seen != (DESCR | ORDER | SHAPE)) {
        return RUDDER_FAIL(scanner->error, RUDDER_E_DATA,
                           "%s: header: expected descr, fortran_order and shape, found no %s", scanner->name,
                           (seen & DESCR) == 0   ? "descr"
                           : (seen & ORDER) == 0 ? "fortran_order"
                                                 : "shape");
    }
    npy_skip_space(scanner);
    return scanner->at == scanner->end ? RUDDER_OK : npy_unexpected(scanner, "nothing after the dictionary");
}

/* Writes "<f4 [10][3]"; -1 in a shape is written as "any". */
static const char *npy_describe(const char *dtype, int32_t n_dimensions, const int64_t *shape, char *text, size_t size)
{
    int n = snprintf(text, size, "%s%s", dtype, n_dimensions == 0 ? " of no dimensions" : " ");
    for (int32_t i = 0; i < n_dimensions && n >= 0 && (size_t)n < size; i++) {
        n += shape[i] < 0 ? snprintf(text + n, size - (size_t)n, "[any]")
                          : snprintf(text + n, size - (size_t)n, "[%" PRId64 "]", shape[i]);
    }
    return text;
}

/* Elements of an array, and whether its bytes can be counted in 63 bits. */
static int npy_count(int32_t n_dimensions, const int64_t *shape, size_t item_bytes, int64_t *count)
{
    int zero = 0;
    int64_t bytes = (int64_t)item_bytes;
    for (int32_t i = 0; i < n_dimensions; i++) {
        if (shape[i] == 0) {
            zero = 1;
        } else if (shape[i] < 0 || __builtin_mul_overflow(bytes, shape[i], &bytes)) {
            return 0;
        }
    }
    *count = zero ? 0 : bytes / (int64_t)item_bytes;
    return 1;
}

rudder_status_t npy_parse_header(const void *bytes, size_t n, int64_t file_bytes, const char *name, npy_t *npy,
                                 size_t *data_offset, rudder_error_t *error)
{
    const unsigned char *b = bytes;
    npy_t parsed = {0};
    name = npy_name(name);
    if (n < 10) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected an .npy file, found %zu bytes", name, n);
    }
    if (memcmp(b, npy_magic, sizeof npy_magic) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: expected an .npy file that starts with \\x93NUMPY, found \\x%02x\\x%02x\\x%02x\\x%02x",
                           name, b[0], b[1], b[2], b[3]);
    }
    const int major = b[6];
    if (major < 1 || major > 3) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected format version 1, 2 or 3, found %d", name, major);
    }
    const size_t start = major == 1 ? 10 : 12;
    if (n < start) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a header of at least %zu bytes, found %zu", name, start,
                           n);
    }
    size_t header = (size_t)b[8] | (size_t)b[9] << 8;
    if (major > 1) {
        header |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    }
    if (header > NPY_MAX_HEADER) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a header of at most %d bytes, found %zu", name,
                           NPY_MAX_HEADER, header);
    }
    if (header > n - start) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: truncated: expected a header of %zu bytes, found %zu", name,
                           header, n - start);
    }
    npy_scanner_t scanner = {
        .at = (const char *)b + start, .end = (const char *)b + start + header, .name = name, .error = error};
    RUDDER_TRY(npy_scan_header(&scanner, &parsed));

    char text[256];
    npy_describe(parsed.dtype, parsed.n_dimensions, parsed.shape, text, sizeof text);
    if (!npy_count(parsed.n_dimensions, parsed.shape, parsed.item_bytes, &parsed.count)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a shape of less than 2^63 bytes, found %s", name, text);
    }
    const int64_t offset = (int64_t)(start + header), expected = parsed.count * (int64_t)parsed.item_bytes;
    const int64_t found = file_bytes - offset;
    if (found != expected) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: %s: expected %" PRId64 " bytes of data (%s), found %" PRId64,
                           name, found < expected ? "truncated" : "too long", expected, text, found);
    }
    if (offset % (int64_t)parsed.item_bytes != 0) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected data at a multiple of %zu bytes, found it at %" PRId64,
                           name, parsed.item_bytes, offset);
    }
    *npy = parsed;
    *data_offset = (size_t)offset;
    return RUDDER_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

rudder_status_t npy_open(const char *path, npy_t *npy, rudder_error_t *error)
{
    rudder_status_t status = RUDDER_OK;
    struct stat info;
    void *map = MAP_FAILED;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", npy_name(path), strerror(errno));
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "%s: expected a file, found something else", npy_name(path));
        goto end;
    }
    if (info.st_size == 0) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected an .npy file, found 0 bytes", npy_name(path));
        goto end;
    }
    const size_t bytes = (size_t)info.st_size;
    map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        status = RUDDER_FAIL(error, errno == ENOMEM ? RUDDER_E_MEMORY : RUDDER_E_IO,
                             "%s: %zu bytes cannot be mapped: %s", npy_name(path), bytes, strerror(errno));
        goto end;
    }
    npy_t opened;
    size_t offset;
    status = npy_parse_header(map, bytes, info.st_size, path, &opened, &offset, error);
    if (status == RUDDER_OK) {
        opened.data = opened.count > 0 ? (const char *)map + offset : NULL;
        opened.map = map;
        opened.map_bytes = bytes;
        *npy = opened;
        map = MAP_FAILED;
    }
end:
    if (map != MAP_FAILED) {
        munmap(map, (size_t)info.st_size);
    }
    close(fd);
    return status;
}

void npy_close(npy_t *npy)
{
    if (npy->map != NULL) {
        munmap(npy->map, npy->map_bytes);
    }
    *npy = (npy_t){0};
}

rudder_status_t npy_open_as(const char *path, const char *dtype, int32_t n_dimensions, const int64_t *shape, npy_t *npy,
                            rudder_error_t *error)
{
    npy_t opened;
    RUDDER_TRY(npy_open(path, &opened, error));
    int equal = strcmp(opened.dtype, dtype) == 0 && opened.n_dimensions == n_dimensions;
    for (int32_t i = 0; equal && i < n_dimensions; i++) {
        equal = shape[i] == -1 || shape[i] == opened.shape[i];
    }
    if (!equal) {
        char expected[96], found[96];
        npy_describe(dtype, n_dimensions, shape, expected, sizeof expected);
        npy_describe(opened.dtype, opened.n_dimensions, opened.shape, found, sizeof found);
        npy_close(&opened);
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected %s, found %s", npy_name(path), expected, found);
    }
    *npy = opened;
    return RUDDER_OK;
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

struct npy_writer {
    FILE *file;
    char *path, *temporary;
    char dtype[8];
    size_t item_bytes, header_bytes;
    int32_t n_dimensions;
    int64_t count, written; /* elements */
};

/* The header takes `least` bytes or more. */
static size_t npy_write_header(const char *dtype, int32_t n_dimensions, const int64_t *shape, size_t least, char *bytes,
                               size_t size)
{
    size_t n = 10;
    n += (size_t)snprintf(bytes + n, size - n, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
    for (int32_t i = 0; i < n_dimensions; i++) {
        n += (size_t)snprintf(bytes + n, size - n,
                              n_dimensions == 1 ? "%" PRId64 ","
                              : i == 0          ? "%" PRId64
                                                : ", %" PRId64,
                              shape[i]);
    }
    n += (size_t)snprintf(bytes + n, size - n, "), }");
    while ((n + 1) % NPY_ALIGNMENT != 0 || n + 1 < least) {
        bytes[n++] = ' ';
    }
    bytes[n++] = '\n';
    memcpy(bytes, npy_magic, sizeof npy_magic);
    bytes[6] = 1;
    bytes[7] = 0;
    bytes[8] = (char)((n - 10) & 255);
    bytes[9] = (char)((n - 10) >> 8);
    return n;
}

static rudder_status_t npy_write_failed(const npy_writer_t *writer, rudder_error_t *error)
{
    return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", npy_name(writer->path), strerror(errno));
}

rudder_status_t npy_writer_open(const char *path, const char *dtype, int32_t n_dimensions, const int64_t *shape,
                                npy_writer_t **writer, rudder_error_t *error)
{
    char header[512];
    rudder_status_t status;
    npy_writer_t *w = calloc(1, sizeof *w);
    const size_t length = strlen(path);
    if (w == NULL || (w->path = malloc(2 * length + 32)) == NULL) {
        free(w);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for a writer", npy_name(path));
    }
    memcpy(w->path, path, length + 1);
    w->temporary = w->path + length + 1;
    snprintf(w->temporary, length + 31, "%s.%ld.tmp", path, (long)getpid());
    snprintf(w->dtype, sizeof w->dtype, "%s", dtype);
    w->n_dimensions = n_dimensions;
    w->item_bytes = (size_t)strtoul(dtype + 2, NULL, 10);
    if (!npy_count(n_dimensions, shape, w->item_bytes, &w->count) || n_dimensions > NPY_MAX_DIMENSIONS) {
        status = RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "%s: expected a shape of at most %d dimensions and 2^63 bytes",
                             npy_name(path), NPY_MAX_DIMENSIONS);
        goto fail;
    }
    w->file = fopen(w->temporary, "wbe");
    const size_t n = npy_write_header(dtype, n_dimensions, shape, 0, header, sizeof header);
    if (w->file == NULL || fwrite(header, 1, n, w->file) != n) {
        status = npy_write_failed(w, error);
        goto fail;
    }
    w->header_bytes = n;
    *writer = w;
    return RUDDER_OK;
fail:
    npy_writer_abandon(w);
    return status;
}

rudder_status_t npy_writer_append(npy_writer_t *writer, const void *data, int64_t elements, rudder_error_t *error)
{
    if (elements < 0 || elements > writer->count - writer->written) {
        return RUDDER_FAIL(error, RUDDER_E_INTERNAL,
                           "%s: expected at most %" PRId64 " elements, found %" PRId64 " more", npy_name(writer->path),
                           writer->count, elements);
    }
    if (elements > 0 && fwrite(data, writer->item_bytes, (size_t)elements, writer->file) != (size_t)elements) {
        return npy_write_failed(writer, error);
    }
    writer->written += elements;
    return RUDDER_OK;
}

rudder_status_t npy_writer_end(npy_writer_t *writer, rudder_error_t *error)
{
    char header[512];
    if (writer->n_dimensions != 1) {
        return RUDDER_FAIL(error, RUDDER_E_INTERNAL, "%s: expected one dimension, found %d", npy_name(writer->path),
                           writer->n_dimensions);
    }
    const size_t n = npy_write_header(writer->dtype, 1, &writer->written, writer->header_bytes, header, sizeof header);
    if (n != writer->header_bytes) {
        return RUDDER_FAIL(error, RUDDER_E_INTERNAL, "%s: expected a header of %zu bytes, found %zu",
                           npy_name(writer->path), writer->header_bytes, n);
    }
    writer->count = writer->written;
    return fseek(writer->file, 0, SEEK_SET) == 0 && fwrite(header, 1, n, writer->file) == n
               ? RUDDER_OK
               : npy_write_failed(writer, error);
}

rudder_status_t npy_writer_close(npy_writer_t *writer, rudder_error_t *error)
{
    rudder_status_t status = RUDDER_OK;
    if (writer == NULL) {
        return RUDDER_OK;
    }
    if (writer->written != writer->count) {
        status = RUDDER_FAIL(error, RUDDER_E_INTERNAL, "%s: expected %" PRId64 " elements, found %" PRId64,
                             npy_name(writer->path), writer->count, writer->written);
        goto end;
    }
    const int closed = fclose(writer->file);
    writer->file = NULL;
    if (closed != 0 || rename(writer->temporary, writer->path) != 0) {
        status = npy_write_failed(writer, error);
    }
end:
    if (status == RUDDER_OK) {
        free(writer->path);
        free(writer);
    } else {
        npy_writer_abandon(writer);
    }
    return status;
}

void npy_writer_abandon(npy_writer_t *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->file != NULL) {
        fclose(writer->file);
    }
    unlink(writer->temporary);
    free(writer->path);
    free(writer);
}

rudder_status_t npy_write(const char *path, const char *dtype, int32_t n_dimensions, const int64_t *shape,
                          const void *data, rudder_error_t *error)
{
    npy_writer_t *writer = NULL;
    RUDDER_TRY(npy_writer_open(path, dtype, n_dimensions, shape, &writer, error));
    const rudder_status_t status = npy_writer_append(writer, data, writer->count, error);
    if (status != RUDDER_OK) {
        npy_writer_abandon(writer);
        return status;
    }
    return npy_writer_close(writer, error);
}
