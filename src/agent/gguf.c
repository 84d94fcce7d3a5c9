/* Walks a GGUF header (versions 2 and 3, little-endian). Every length is checked before it is used. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gguf.h"
#include "base/error.h"

enum { GGUF_STRING = 8, GGUF_ARRAY = 9, GGUF_TYPES = 13, GGUF_MAX_DIMENSIONS = 8 };

/* Bytes of a value by its type; 0: a string or an array. */
static const uint8_t gguf_value_bytes[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* Elements and bytes of a block by tensor type; types that are not listed are only checked for where they begin. */
typedef struct gguf_block {
    int32_t type, elements, bytes;
} gguf_block_t;
static const gguf_block_t gguf_blocks[] = {
    {0, 1, 4},      {1, 1, 2},      {2, 32, 18},    {3, 32, 20},    {6, 32, 22},    {7, 32, 24},    {8, 32, 34},
    {10, 256, 84},  {11, 256, 110}, {12, 256, 144}, {13, 256, 176}, {14, 256, 210}, {15, 256, 292}, {20, 32, 18},
    {23, 256, 136}, {24, 1, 1},     {25, 1, 2},     {26, 1, 4},     {27, 1, 8},     {28, 1, 8},     {30, 1, 2},
};

typedef struct gguf_reader {
    const uint8_t *at, *end;
    int failed; /* the data ended too early; everything after is 0 */
} gguf_reader_t;

static void gguf_skip(gguf_reader_t *reader, uint64_t n)
{
    if (n > (uint64_t)(reader->end - reader->at)) {
        reader->failed = 1;
        reader->at = reader->end;
    } else {
        reader->at += n;
    }
}

static uint64_t gguf_read(gguf_reader_t *reader, int bytes)
{
    uint64_t value = 0;
    const uint8_t *at = reader->at;
    gguf_skip(reader, (uint64_t)bytes);
    if (!reader->failed) {
        memcpy(&value, at, (size_t)bytes);
    }
    return value;
}

/* A string: at *text, not terminated. */
static uint64_t gguf_string(gguf_reader_t *reader, const char **text)
{
    const uint64_t n = gguf_read(reader, 8);
    *text = (const char *)reader->at;
    gguf_skip(reader, n);
    return reader->failed ? 0 : n;
}

static void gguf_skip_value(gguf_reader_t *reader, uint64_t type)
{
    const char *text;
    uint64_t count = 1;
    if (type == GGUF_ARRAY) {
        type = gguf_read(reader, 4);
        count = gguf_read(reader, 8);
    }
    if (type >= GGUF_TYPES || type == GGUF_ARRAY) {
        reader->failed = 1;
    } else if (type == GGUF_STRING) {
        for (uint64_t i = 0; i < count && !reader->failed; i++) {
            gguf_string(reader, &text);
        }
    } else if (count > UINT64_MAX / 8) {
        reader->failed = 1;
    } else {
        gguf_skip(reader, count * gguf_value_bytes[type]);
    }
}

static int gguf_is(const char *text, uint64_t n, const char *name)
{
    return n == strlen(name) && memcmp(text, name, (size_t)n) == 0;
}

static void gguf_pairs(gguf_reader_t *reader, uint64_t n, gguf_info_t *info, uint64_t *alignment)
{
    for (uint64_t i = 0; i < n && !reader->failed; i++) {
        const char *key, *value;
        const uint64_t key_bytes = gguf_string(reader, &key);
        const uint64_t type = gguf_read(reader, 4);
        const int architecture = gguf_is(key, key_bytes, "general.architecture");
        if (type == GGUF_STRING && (architecture || gguf_is(key, key_bytes, "general.name"))) {
            const uint64_t bytes = gguf_string(reader, &value);
            char *to = architecture ? info->architecture : info->name;
            const size_t size = architecture ? sizeof info->architecture : sizeof info->name;
            snprintf(to, size, "%.*s", bytes < size ? (int)bytes : (int)size - 1, value);
        } else if (type == 4 && gguf_is(key, key_bytes, "general.alignment")) {
            *alignment = gguf_read(reader, 4);
        } else {
            gguf_skip_value(reader, type);
        }
    }
}

/* Bytes of a tensor, at least; UINT64_MAX when that is out of all bounds. */
static uint64_t gguf_tensor_bytes(uint64_t elements, uint64_t type)
{
    for (size_t i = 0; i < sizeof gguf_blocks / sizeof gguf_blocks[0]; i++) {
        if ((uint64_t)gguf_blocks[i].type == type) {
            const uint64_t blocks = elements / (uint64_t)gguf_blocks[i].elements;
            return blocks > UINT64_MAX / 512 ? UINT64_MAX : blocks * (uint64_t)gguf_blocks[i].bytes;
        }
    }
    return 0;
}

/* Where the data of all tensors ends, counted from where data starts; UINT64_MAX when a tensor is absurd. */
static uint64_t gguf_tensors(gguf_reader_t *reader, uint64_t n)
{
    uint64_t end = 0;
    for (uint64_t i = 0; i < n && !reader->failed; i++) {
        const char *name;
        uint64_t elements = 1;
        gguf_string(reader, &name);
        const uint64_t dimensions = gguf_read(reader, 4);
        if (dimensions > GGUF_MAX_DIMENSIONS) {
            return UINT64_MAX;
        }
        for (uint64_t d = 0; d < dimensions; d++) {
            const uint64_t size = gguf_read(reader, 8);
            if (size != 0 && elements > UINT64_MAX / size) {
                return UINT64_MAX;
            }
            elements *= size;
        }
        const uint64_t type = gguf_read(reader, 4);
        const uint64_t offset = gguf_read(reader, 8);
        const uint64_t bytes = gguf_tensor_bytes(elements, type);
        if (bytes > UINT64_MAX / 2 || offset > UINT64_MAX / 4) {
            return UINT64_MAX;
        }
        end = offset + bytes > end ? offset + bytes : end;
    }
    return end;
}

rudder_status_t gguf_parse(const void *data, size_t bytes, int64_t file_bytes, const char *name, gguf_info_t *info,
                           rudder_error_t *error)
{
    gguf_reader_t reader = {data, (const uint8_t *)data + bytes, 0};
    uint64_t alignment = 32;
    memset(info, 0, sizeof *info);
    info->file_bytes = file_bytes;
    if (bytes < 4 || memcmp(data, "GGUF", 4) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: expected a GGUF model, found a file that does not start with GGUF", name);
    }
    gguf_skip(&reader, 4);
    const uint64_t version = gguf_read(&reader, 4);
    const uint64_t tensors = gguf_read(&reader, 8);
    const uint64_t pairs = gguf_read(&reader, 8);
    if (!reader.failed && version != 2 && version != 3) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected GGUF version 2 or 3 (little-endian), found %u", name,
                           (unsigned)version);
    }
    gguf_pairs(&reader, pairs, info, &alignment);
    const uint64_t data_bytes = gguf_tensors(&reader, tensors);
    const uint64_t header_bytes = (uint64_t)(reader.at - (const uint8_t *)data);
    if (reader.failed || data_bytes == UINT64_MAX || alignment == 0 || alignment > (1u << 20)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: the GGUF header is cut off or damaged (%lld bytes in the file)",
                           name, (long long)file_bytes);
    }
    const uint64_t needed = (header_bytes + alignment - 1) / alignment * alignment + data_bytes;
    if (needed > (uint64_t)file_bytes) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: truncated: expected at least %llu bytes, found %lld", name,
                           (unsigned long long)needed, (long long)file_bytes);
    }
    info->tensors = (int64_t)tensors;
    return RUDDER_OK;
}

rudder_status_t gguf_check(const char *path, gguf_info_t *info, rudder_error_t *error)
{
    struct stat at;
    void *map = MAP_FAILED;
    rudder_status_t status = RUDDER_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &at) != 0) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "model %s: %s", path, strerror(errno));
        goto done;
    }
    if (!S_ISREG(at.st_mode) || at.st_size == 0) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a GGUF model, found %s", path,
                             S_ISREG(at.st_mode) ? "an empty file" : "no regular file");
        goto done;
    }
    map = mmap(NULL, (size_t)at.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "model %s: %.1f GB cannot be mapped: %s", path,
                             (double)at.st_size / 1e9, strerror(errno));
        goto done;
    }
    status = gguf_parse(map, (size_t)at.st_size, at.st_size, path, info, error);
    info->modified = (int64_t)at.st_mtim.tv_sec * 1000000000 + at.st_mtim.tv_nsec;
done:
    if (map != MAP_FAILED) {
        munmap(map, (size_t)at.st_size);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}
