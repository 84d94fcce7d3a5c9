/* Reading .npz. Every number that comes from the file is checked against the mapping before it is used as a place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "trace/npz.h"

enum {
    NPZ_LOCAL = 0x04034b50,   /* before each member */
    NPZ_ENTRY = 0x02014b50,   /* of a member in the directory */
    NPZ_END = 0x06054b50,     /* of the directory */
    NPZ_END64 = 0x06064b50,   /* the same with wide fields */
    NPZ_LOCATOR = 0x07064b50, /* where that is, just before NPZ_END */
    NPZ_LOCAL_BYTES = 30,     /* fixed part of each */
    NPZ_ENTRY_BYTES = 46,
    NPZ_END_BYTES = 22,
    NPZ_END64_BYTES = 56,
    NPZ_LOCATOR_BYTES = 20,
    NPZ_MAX_COMMENT = 65535,
    NPZ_STORED = 0,
    NPZ_DEFLATED = 8,
    NPZ_MOST_DEFLATED = 1032, /* bytes that one deflated byte can stand for */
    NPZ_ENCRYPTED = 1,        /* flag */
    NPZ_WIDE = 1              /* extra field with 64-bit sizes */
};

struct npz {
    char *path;
    const unsigned char *bytes;
    uint64_t size;
    uint64_t directory, directory_end, n_members;
};

/* A member as its directory entry tells it. */
typedef struct npz_member {
    const unsigned char *name;
    uint32_t name_bytes, flags, method, crc;
    uint64_t packed, unpacked, local;
} npz_member_t;

static uint32_t npz_u16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t npz_u32(const unsigned char *p)
{
    return npz_u16(p) | npz_u16(p + 2) << 16;
}

static uint64_t npz_u64(const unsigned char *p)
{
    return npz_u32(p) | (uint64_t)npz_u32(p + 4) << 32;
}

/* n bytes at `at` lie inside [0, end). */
static int npz_inside(uint64_t at, uint64_t n, uint64_t end)
{
    return at <= end && n <= end - at;
}

static rudder_status_t npz_map(npz_t *npz, rudder_error_t *error)
{
    struct stat about;
    rudder_status_t status = RUDDER_OK;
    const int file = open(npz->path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &about) != 0) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be opened: %s", npz->path, strerror(errno));
        goto end;
    }
    if (!S_ISREG(about.st_mode) || about.st_size < NPZ_END_BYTES) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a .npz archive, found %s", npz->path,
                             S_ISREG(about.st_mode) ? "a file too short to be one" : "no regular file");
        goto end;
    }
    void *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (map == MAP_FAILED) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be mapped: %s", npz->path, strerror(errno));
        goto end;
    }
    npz->bytes = map;
    npz->size = (uint64_t)about.st_size;
end:
    if (file >= 0) {
        close(file);
    }
    return status;
}

/* The wide end record, when the locator before the narrow one points to it. Returns 0 when there is none. */
static uint64_t npz_find_wide_end(const npz_t *npz, uint64_t end)
{
    if (end < NPZ_LOCATOR_BYTES || npz_u32(npz->bytes + end - NPZ_LOCATOR_BYTES) != NPZ_LOCATOR) {
        return 0;
    }
    const uint64_t at = npz_u64(npz->bytes + end - NPZ_LOCATOR_BYTES + 8);
    return npz_inside(at, NPZ_END64_BYTES, end) && npz_u32(npz->bytes + at) == NPZ_END64 ? at : 0;
}

static rudder_status_t npz_find_directory(npz_t *npz, rudder_error_t *error)
{
    const unsigned char *bytes = npz->bytes;
    const uint64_t last = npz->size - NPZ_END_BYTES;
    const uint64_t first = last > NPZ_MAX_COMMENT ? last - NPZ_MAX_COMMENT : 0;
    uint64_t end = last;
    while (npz_u32(bytes + end) != NPZ_END || npz_u16(bytes + end + 20) != npz->size - end - NPZ_END_BYTES) {
        if (end == first) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s: expected the directory of a .npz archive at its end, found none", npz->path);
        }
        end--;
    }
    uint64_t bytes_of = npz_u32(bytes + end + 12);
    npz->n_members = npz_u16(bytes + end + 10);
    npz->directory = npz_u32(bytes + end + 16);
    const uint64_t wide = npz_find_wide_end(npz, end);
    if (wide != 0) {
        npz->n_members = npz_u64(bytes + wide + 32);
        bytes_of = npz_u64(bytes + wide + 40);
        npz->directory = npz_u64(bytes + wide + 48);
    }
    if (!npz_inside(npz->directory, bytes_of, end)) {
        return RUDDER_FAIL(
            error, RUDDER_E_DATA, "%s: expected a directory inside the file's %llu bytes, found %llu + %llu", npz->path,
            (unsigned long long)npz->size, (unsigned long long)npz->directory, (unsigned long long)bytes_of);
    }
    npz->directory_end = npz->directory + bytes_of;
    return RUDDER_OK;
}

rudder_status_t npz_open(const char *path, npz_t **out, rudder_error_t *error)
{
    npz_t *npz = calloc(1, sizeof *npz);
    if (npz == NULL || (npz->path = strdup(path)) == NULL) {
        free(npz);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory to open it", path);
    }
    rudder_status_t status = npz_map(npz, error);
    if (status == RUDDER_OK) {
        status = npz_find_directory(npz, error);
    }
    if (status != RUDDER_OK) {
        npz_close(npz);
        return status;
    }
    *out = npz;
    return RUDDER_OK;
}

void npz_close(npz_t *npz)
{
    if (npz != NULL) {
        if (npz->bytes != NULL) {
            munmap((void *)npz->bytes, npz->size);
        }
        free(npz->path);
        free(npz);
    }
}

/* ---- Members ---------------------------------------------------------------------------------------------------- */

/* Sizes that did not fit 32 bits stand in an extra field, those that did are left out of it. 0: the field is damaged. */
static int npz_widen(npz_member_t *member, const unsigned char *extra, uint64_t n)
{
    while (n >= 4) {
        const uint32_t kind = npz_u16(extra), bytes = npz_u16(extra + 2);
        if (bytes > n - 4) {
            return 0;
        }
        if (kind == NPZ_WIDE) {
            uint64_t *const wide[] = {&member->unpacked, &member->packed, &member->local};
            uint32_t at = 0;
            for (int i = 0; i < 3; i++) {
                if (*wide[i] == UINT32_MAX) {
                    if (bytes - at < 8) {
                        return 0;
                    }
                    *wide[i] = npz_u64(extra + 4 + at);
                    at += 8;
                }
            }
            return 1;
        }
        extra += 4 + bytes;
        n -= 4 + bytes;
    }
    return 1;
}

/* Reads the entry at *at and goes on to the next. 0: it does not lie inside the directory. */
static int npz_entry(const npz_t *npz, uint64_t *at, npz_member_t *member)
{
    const unsigned char *p = npz->bytes + *at;
    if (!npz_inside(*at, NPZ_ENTRY_BYTES, npz->directory_end) || npz_u32(p) != NPZ_ENTRY) {
        return 0;
    }
    *member = (npz_member_t){.flags = npz_u16(p + 8),
                             .method = npz_u16(p + 10),
                             .crc = npz_u32(p + 16),
                             .packed = npz_u32(p + 20),
                             .unpacked = npz_u32(p + 24),
                             .name_bytes = npz_u16(p + 28),
                             .local = npz_u32(p + 42),
                             .name = p + NPZ_ENTRY_BYTES};
    const uint64_t extra = npz_u16(p + 30), comment = npz_u16(p + 32);
    const uint64_t all = NPZ_ENTRY_BYTES + member->name_bytes + extra + comment;
    if (!npz_inside(*at, all, npz->directory_end) || !npz_widen(member, member->name + member->name_bytes, extra)) {
        return 0;
    }
    *at += all;
    return 1;
}

static rudder_status_t npz_find(const npz_t *npz, const char *name, npz_member_t *member, int *found,
                                rudder_error_t *error)
{
    const size_t length = strlen(name);
    uint64_t at = npz->directory;
    for (uint64_t i = 0; i < npz->n_members; i++) {
        if (!npz_entry(npz, &at, member)) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s: expected %llu entries in its directory, found entry %llu damaged", npz->path,
                               (unsigned long long)npz->n_members, (unsigned long long)i);
        }
        if (member->name_bytes == length + 4 && memcmp(member->name, name, length) == 0 &&
            memcmp(member->name + length, ".npy", 4) == 0) {
            *found = 1;
            return RUDDER_OK;
        }
    }
    *found = 0;
    return RUDDER_OK;
}

rudder_status_t npz_has(npz_t *npz, const char *name, int *found, rudder_error_t *error)
{
    npz_member_t member;
    return npz_find(npz, name, &member, found, error);
}

/* Where the bytes of a member begin; checks that they lie inside the file and are packed in a way that is known. */
static rudder_status_t npz_packed(const npz_t *npz, const char *name, const npz_member_t *member, uint64_t *at,
                                  rudder_error_t *error)
{
    if (!npz_inside(member->local, NPZ_LOCAL_BYTES, npz->size) || npz_u32(npz->bytes + member->local) != NPZ_LOCAL) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: %s: expected the member at byte %llu, found none", npz->path,
                           name, (unsigned long long)member->local);
    }
    const unsigned char *local = npz->bytes + member->local;
    *at = member->local + NPZ_LOCAL_BYTES + npz_u16(local + 26) + npz_u16(local + 28);
    if (!npz_inside(*at, member->packed, npz->size)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: %s: expected %llu bytes, found the end of the file", npz->path,
                           name, (unsigned long long)member->packed);
    }
    if ((member->flags & NPZ_ENCRYPTED) || (member->method != NPZ_STORED && member->method != NPZ_DEFLATED) ||
        (member->method == NPZ_STORED && member->packed != member->unpacked)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: %s: expected it stored or deflated, found method %u, flags %u",
                           npz->path, name, member->method, member->flags);
    }
    if (member->unpacked / NPZ_MOST_DEFLATED > member->packed) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: %s: expected at most %llu bytes in %llu deflated ones, found %llu", npz->path, name,
                           (unsigned long long)(member->packed * NPZ_MOST_DEFLATED), (unsigned long long)member->packed,
                           (unsigned long long)member->unpacked);
    }
    return RUDDER_OK;
}

/* Inflates exactly `unpacked` bytes; 0: the data are damaged, shorter or longer. */
static int npz_inflate(const unsigned char *from, uint64_t packed, unsigned char *to, uint64_t unpacked)
{
    const uint64_t step = 1u << 30; /* zlib counts in 32 bits */
    z_stream stream = {0};
    int code = Z_OK;
    unsigned char more;
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return 0;
    }
    stream.next_in = (unsigned char *)from;
    stream.next_out = to;
    while (code == Z_OK) {
        const uint64_t in = packed - (uint64_t)(stream.next_in - from);
        const uint64_t out = unpacked - (uint64_t)(stream.next_out - to);
        stream.avail_in = (uInt)(in < step ? in : step);
        stream.avail_out = (uInt)(out < step ? out : step);
        if (out == 0) { /* the end mark may still come; a byte may not */
            stream.next_out = &more;
            stream.avail_out = 1;
            code = inflate(&stream, Z_FINISH);
            inflateEnd(&stream);
            return code == Z_STREAM_END && stream.avail_out == 1;
        }
        code = inflate(&stream, Z_NO_FLUSH);
    }
    const int whole = code == Z_STREAM_END && (uint64_t)(stream.next_out - to) == unpacked;
    inflateEnd(&stream);
    return whole;
}

static uint32_t npz_crc(const unsigned char *bytes, uint64_t n)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, n);
}

/* The member as a .npy file in memory of its own (mapped, as npy_close() expects it). */
static rudder_status_t npz_unpack(const npz_t *npz, const char *name, const npz_member_t *member, void **map,
                                  rudder_error_t *error)
{
    uint64_t at = 0;
    RUDDER_TRY(npz_packed(npz, name, member, &at, error));
    void *to = mmap(NULL, member->unpacked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: %s: no %llu bytes", npz->path, name,
                           (unsigned long long)member->unpacked);
    }
    int good = 1;
    if (member->method == NPZ_STORED) {
        memcpy(to, npz->bytes + at, member->unpacked);
    } else {
        good = npz_inflate(npz->bytes + at, member->packed, to, member->unpacked);
    }
    if (!good || npz_crc(to, member->unpacked) != member->crc) {
        munmap(to, member->unpacked);
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: %s: expected %llu bytes with checksum %08x, found damaged data",
                           npz->path, name, (unsigned long long)member->unpacked, member->crc);
    }
    *map = to;
    return RUDDER_OK;
}

rudder_status_t npz_read(npz_t *npz, const char *name, const char *dtype, int32_t n_dimensions, int64_t max_bytes,
                         npy_t *array, rudder_error_t *error)
{
    npz_member_t member = {0};
    char label[512];
    void *map = NULL;
    size_t data;
    int found;
    RUDDER_TRY(npz_find(npz, name, &member, &found, error));
    if (!found) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected a member \"%s.npy\", found none among %llu", npz->path,
                           name, (unsigned long long)npz->n_members);
    }
    if (member.unpacked == 0 || member.unpacked > (uint64_t)max_bytes) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: %s: expected 1 to %lld bytes, found %llu", npz->path, name,
                           (long long)max_bytes, (unsigned long long)member.unpacked);
    }
    RUDDER_TRY(npz_unpack(npz, name, &member, &map, error));
    snprintf(label, sizeof label, "%s: %s", npz->path, name);
    rudder_status_t status =
        npy_parse_header(map, member.unpacked, (int64_t)member.unpacked, label, array, &data, error);
    if (status == RUDDER_OK &&
        ((dtype != NULL && strcmp(array->dtype, dtype) != 0) || array->n_dimensions != n_dimensions)) {
        status = RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected %s of %d dimensions, found %s of %d", label,
                             dtype != NULL ? dtype : "numbers", n_dimensions, array->dtype, array->n_dimensions);
    }
    if (status != RUDDER_OK) {
        munmap(map, member.unpacked);
        return status;
    }
    array->map = map;
    array->map_bytes = member.unpacked;
    array->data = array->count > 0 ? (const unsigned char *)map + data : NULL;
    return RUDDER_OK;
}
