/*
 * Any bytes as a trace, their kind told by content. Checksums of a .rtr are made right first, as a hostile writer would: else
 * nothing behind them would ever be reached. What is read must be as the reader promises.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/reader.h"
#include "trace/rtr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_IDS = 1 << 24 }; /* of one input: blocks can unpack to much */

static void fix_checksums(unsigned char *bytes, size_t n)
{
    if (n < RTR_START_BYTES || memcmp(bytes, RTR_MARK, 8) != 0) {
        return;
    }
    rtr_put32(bytes + 12, rtr_crc(bytes, 12));
    for (size_t at = RTR_START_BYTES; at + RTR_BLOCK_BYTES <= n;) {
        rtr_block_t block;
        (void)rtr_get_block(bytes + at, &block);
        const size_t end = at + RTR_BLOCK_BYTES + (size_t)block.packed;
        if (end <= n) {
            block.crc = rtr_crc(bytes + at + RTR_BLOCK_BYTES, block.packed);
        }
        rtr_put_block(bytes + at, &block);
        at = end;
    }
}

static void require(int good)
{
    if (!good) {
        abort();
    }
}

static void check_info(const trace_info_t *info)
{
    volatile int64_t sum = 0;
    require(info->rank >= 0 && info->n_halo >= 0 && info->n_layers >= 0 && info->n_layers <= TRACE_MAX_LAYERS);
    for (int64_t i = 0; i < info->n_halo; i++) {
        require(info->halo[i] >= 0);
        sum = sum + (info->halo_degree != NULL ? info->halo_degree[i] : 0);
    }
    for (int32_t p = 0; info->owner_offset != NULL && p < info->ranks; p++) {
        require(info->owner_offset[p] >= 0 && info->owner_offset[p] <= info->owner_offset[p + 1]);
    }
    require(info->owner_offset == NULL || info->rank < info->ranks);
}

static void check_minibatch(const trace_info_t *info, const trace_minibatch_t *m)
{
    require(m->n >= 0 && m->announced >= -1 && m->miss >= -1 && m->miss <= m->n && m->fill >= -1);
    require(!(m->times.sample < 0) && !(m->times.compute < 0) && !isinf(m->times.compute));
    for (int64_t i = 0; i < m->n; i++) {
        require(m->ids[i] >= 0);
        require(info->owner_offset == NULL ||
                (m->ids[i] >= info->owner_offset[0] && m->ids[i] < info->owner_offset[info->ranks]));
    }
}

static void read_all(const char *path)
{
    trace_reader_t *reader;
    const trace_info_t *info;
    trace_minibatch_t m;
    rudder_error_t error = {0};
    int64_t ids = 0, minibatches = 0;
    int end = 0;
    rudder_status_t status = trace_reader_open(path, &reader, &info, &error);
    if (status == RUDDER_OK) {
        check_info(info);
        while (!end && status == RUDDER_OK && ids < MOST_IDS && minibatches < MOST_IDS) {
            status = trace_reader_next(reader, &m, &end, &error);
            if (status == RUDDER_OK && !end) {
                check_minibatch(info, &m);
                ids += m.n;
                minibatches++;
            }
        }
        require(!end || trace_reader_torn(reader) || info->n_ids < 0 || info->n_ids == ids);
        require(trace_reader_memory(reader) > 0);
        trace_reader_close(reader);
    }
    require(status == RUDDER_OK ||
            (status == RUDDER_E_DATA && strstr(error.text, "expected") != NULL && strstr(error.text, path) != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const int fd = memfd_create("fuzz.trace", MFD_CLOEXEC);
    unsigned char *bytes = malloc(size + 1);
    require(fd >= 0 && bytes != NULL);
    if (size > 0) {
        memcpy(bytes, data, size);
    }
    fix_checksums(bytes, size);
    require(write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_all(path);
    free(bytes);
    close(fd);
    return 0;
}
