/*
 * The .rtr format as its writer (recorder.c) and its reader (format_rtr.c) share it: docs/formats.md, "Trace". Little-endian
 * numbers, varints, and blocks: a head of 32 bytes, then a payload; each with its checksum.
 */
#ifndef RUDDER_TRACE_RTR_H
#define RUDDER_TRACE_RTR_H

#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "trace/reader.h"

enum {
    RTR_VERSION = 1,
    RTR_START_BYTES = 16, /* mark, version, checksum */
    RTR_BLOCK_BYTES = 32, /* head of a block */
    RTR_DONE_BYTES = 8,   /* payload of the last block */
    RTR_MAX_RAW = 64 << 20,
    RTR_MAX_VARINT = 10, /* bytes */
    RTR_TIMES = 7,       /* of a minibatch, float32 */
    RTR_TIMES_BYTES = 4 * RTR_TIMES,
    RTR_HALO_IDS = 1 << 16 /* a block, at most */
};

#define RTR_MARK "\x89RTR\r\n\x1a\n" /* a transfer as text changes it */

/* Kinds of blocks, in the order in which they stand in the file. */
#define RTR_HEAD "HEAD"
#define RTR_OWNERS "OWNS"
#define RTR_HALO "HALO"
#define RTR_DATA "DATA"
#define RTR_DONE "DONE"

typedef struct rtr_block {
    char kind[4];
    uint32_t count;       /* items in it: offsets, halo ids, minibatches */
    uint64_t first;       /* number of the first of them; DONE: of all minibatches */
    uint32_t raw, packed; /* bytes of the payload; equal: it is not compressed */
    uint32_t crc;         /* of the payload as it stands in the file */
} rtr_block_t;

static inline void rtr_put32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        to[i] = (unsigned char)(value >> 8 * i);
    }
}

static inline void rtr_put64(unsigned char *to, uint64_t value)
{
    rtr_put32(to, (uint32_t)value);
    rtr_put32(to + 4, (uint32_t)(value >> 32));
}

static inline uint32_t rtr_get32(const unsigned char *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static inline uint64_t rtr_get64(const unsigned char *from)
{
    return rtr_get32(from) | (uint64_t)rtr_get32(from + 4) << 32;
}

static inline uint32_t rtr_crc(const void *bytes, size_t n)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), bytes, n);
}

/* to[RTR_BLOCK_BYTES] */
static inline void rtr_put_block(unsigned char *to, const rtr_block_t *block)
{
    memcpy(to, block->kind, 4);
    rtr_put32(to + 4, block->count);
    rtr_put64(to + 8, block->first);
    rtr_put32(to + 16, block->raw);
    rtr_put32(to + 20, block->packed);
    rtr_put32(to + 24, block->crc);
    rtr_put32(to + 28, rtr_crc(to, 28));
}

/* 0: its checksum is another. */
static inline int rtr_get_block(const unsigned char *from, rtr_block_t *block)
{
    memcpy(block->kind, from, 4);
    block->count = rtr_get32(from + 4);
    block->first = rtr_get64(from + 8);
    block->raw = rtr_get32(from + 16);
    block->packed = rtr_get32(from + 20);
    block->crc = rtr_get32(from + 24);
    return rtr_get32(from + 28) == rtr_crc(from, 28);
}

static inline int rtr_is(const rtr_block_t *block, const char *kind)
{
    return memcmp(block->kind, kind, 4) == 0;
}

/* Seven bits a byte, lowest first; the last byte has no high bit. Returns what follows. */
static inline unsigned char *rtr_put_varint(unsigned char *to, uint64_t value)
{
    while (value >= 0x80) {
        *to++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *to++ = (unsigned char)value;
    return to;
}

/* Returns what follows; NULL: it does not end before `end` or does not fit 64 bits. */
static inline const unsigned char *rtr_get_varint(const unsigned char *from, const unsigned char *end, uint64_t *value)
{
    uint64_t sum = 0;
    for (int shift = 0; from < end && shift < 64; shift += 7) {
        const uint64_t byte = *from++;
        if (shift == 63 && byte > 1) {
            return NULL;
        }
        sum |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = sum;
            return from;
        }
    }
    return NULL;
}

/* Small numbers of either sign become small numbers: 0, -1, 1, -2, ... */
static inline uint64_t rtr_zigzag(uint64_t difference)
{
    return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t rtr_unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

/* Ids as zigzag differences from the one before, the first from 0: at most RTR_MAX_VARINT bytes each. */
static inline unsigned char *rtr_put_ids(unsigned char *to, const int64_t *ids, int64_t n)
{
    uint64_t before = 0;
    for (int64_t i = 0; i < n; i++) {
        to = rtr_put_varint(to, rtr_zigzag((uint64_t)ids[i] - before));
        before = (uint64_t)ids[i];
    }
    return to;
}

/*
 * n ids at `from`; RTR_PAD bytes behind `end` can be read. Returns what follows; NULL: an id does not end before `end`, does
 * not fit 64 bits, or is below 0.
 */
enum { RTR_PAD = 8 };
const unsigned char *rtr_get_ids(const unsigned char *from, const unsigned char *end, int64_t *ids, int64_t n);

#endif
