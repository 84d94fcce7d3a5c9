/*
 * The writer of .rtr. Minibatches are encoded as they come; their times are put in later, at a fixed place of each record.
 * Records whose times are known leave as a block when there is enough of them, and every block is one write.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "trace/valid.h"
#include "trace/recorder.h"
#include "trace/rtr.h"

enum {
    RECORDER_LEVEL = 1,       /* of zstd: higher ones cost more than they save on ids in random order */
    RECORDER_BLOCK = 1 << 20, /* bytes of records that make a block */
    RECORDER_HELD = 4 << 20   /* the most that waits for times; then it goes without */
};

struct recorder {
    char *path;
    int file;
    rudder_error_t failed;       /* the first write that failed: nothing is written after it */
    unsigned char *raw, *packed; /* records held; a block as it is written */
    int64_t raw_bytes, raw_size, packed_size;
    int64_t *starts, held, held_size; /* where each record that is held begins */
    int64_t known;                    /* of those, how many have their times */
    valid_range_t range;
    int64_t first, n_ids; /* minibatches written; ids of all */
    ZSTD_CCtx *zstd;
};

static rudder_status_t recorder_no_memory(const recorder_t *r, rudder_error_t *error)
{
    return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory to record minibatch %lld", r->path,
                       (long long)(r->first + r->held));
}

static rudder_status_t recorder_room(recorder_t *r, int64_t bytes, rudder_error_t *error)
{
    return grow_array(&r->raw, &r->raw_size, r->raw_bytes + bytes, 1) == RUDDER_OK ? RUDDER_OK
                                                                                   : recorder_no_memory(r, error);
}

/* ---- Blocks ----------------------------------------------------------------------------------------------------- */

static rudder_status_t recorder_write(recorder_t *r, const unsigned char *bytes, int64_t n, rudder_error_t *error)
{
    for (int64_t done = 0; done < n;) {
        const ssize_t some = write(r->file, bytes + done, (size_t)(n - done));
        if (some < 0 && errno != EINTR) {
            (void)RUDDER_FAIL(&r->failed, RUDDER_E_IO, "%s: cannot be written: %s", r->path, strerror(errno));
            if (error != NULL) {
                *error = r->failed;
            }
            return RUDDER_E_IO;
        }
        done += some > 0 ? some : 0;
    }
    return RUDDER_OK;
}

/* Writes the first `raw` bytes held as the payload of a block, compressed when that is wanted and saves something. */
static rudder_status_t recorder_block(recorder_t *r, const char *kind, int64_t count, int64_t first, int64_t raw,
                                      int compress, rudder_error_t *error)
{
    rtr_block_t block = {
        .count = (uint32_t)count, .first = (uint64_t)first, .raw = (uint32_t)raw, .packed = (uint32_t)raw};
    const size_t bound = compress ? ZSTD_compressBound((size_t)raw) : (size_t)raw;
    if (grow_array(&r->packed, &r->packed_size, RTR_BLOCK_BYTES + (int64_t)bound, 1) != RUDDER_OK) {
        return recorder_no_memory(r, error);
    }
    unsigned char *payload = r->packed + RTR_BLOCK_BYTES;
    size_t packed = (size_t)raw;
    if (compress) {
        packed = ZSTD_compressCCtx(r->zstd, payload, bound, r->raw, (size_t)raw, RECORDER_LEVEL);
        if (ZSTD_isError(packed)) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: cannot be compressed: %s", r->path,
                               ZSTD_getErrorName(packed));
        }
        block.packed = (uint32_t)packed;
    }
    if (packed >= (size_t)raw) {
        block.packed = (uint32_t)raw;
        memcpy(payload, r->raw, (size_t)raw);
    }
    memcpy(block.kind, kind, 4);
    block.crc = rtr_crc(payload, block.packed);
    rtr_put_block(r->packed, &block);
    return recorder_write(r, r->packed, RTR_BLOCK_BYTES + (int64_t)block.packed, error);
}

/* ---- Before the minibatches ------------------------------------------------------------------------------------- */

static rudder_status_t recorder_start(recorder_t *r, rudder_error_t *error)
{
    unsigned char start[RTR_START_BYTES];
    memcpy(start, RTR_MARK, 8);
    rtr_put32(start + 8, RTR_VERSION);
    rtr_put32(start + 12, rtr_crc(start, 12));
    return recorder_write(r, start, sizeof start, error);
}

static void recorder_facts(json_t *json, const trace_info_t *info)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)info->seed);
    json_object(json, NULL);
    json_string(json, "graph", info->graph);
    json_string(json, "partition", info->partition);
    json_string(json, "order", info->order);
    json_string(json, "policy", info->policy);
    json_string(json, "run", info->run);
    json_int(json, "rank", info->rank);
    json_int(json, "ranks", info->ranks);
    json_string(json, "seed", seed); /* as text: a number of JSON is exact to 2^53 only */
    json_int(json, "batch", info->batch);
    json_int(json, "steps_per_epoch", info->steps_per_epoch);
    json_int(json, "epochs", info->epochs);
    json_int(json, "nodes", info->n_nodes);
    json_int(json, "row_bytes", info->row_bytes);
    json_int(json, "capacity_rows", info->capacity_rows);
    json_int(json, "max_tracked", info->max_tracked);
    json_int(json, "depth", info->depth);
    json_array(json, "fanouts");
    for (int32_t i = 0; i < info->n_layers; i++) {
        json_int(json, NULL, info->fanout[i]);
    }
    json_end_array(json);
    json_double(json, "link_rate", info->links.common.bytes_per_second);
    json_double(json, "link_latency", info->links.common.latency);
    json_array(json, "owner_links");
    for (int32_t i = 0; i < info->links.n_own; i++) {
        json_array(json, NULL);
        json_int(json, NULL, info->links.own[i].owner);
        json_double(json, NULL, info->links.own[i].link.bytes_per_second);
        json_double(json, NULL, info->links.own[i].link.latency);
        json_end_array(json);
    }
    json_end_array(json);
    json_int(json, "owners", info->owner_offset != NULL ? info->ranks + 1 : 0);
    json_int(json, "halo", info->n_halo);
    json_bool(json, "halo_degree", info->halo_degree != NULL);
    json_end_object(json);
}

static rudder_status_t recorder_head(recorder_t *r, const trace_info_t *info, rudder_error_t *error)
{
    json_t json = {0};
    recorder_facts(&json, info);
    rudder_status_t status = json.failed ? recorder_no_memory(r, error) : recorder_room(r, (int64_t)json.length, error);
    if (status == RUDDER_OK) {
        memcpy(r->raw, json.text, json.length);
        status = recorder_block(r, RTR_HEAD, 1, 0, (int64_t)json.length, 0, error);
    }
    json_free(&json);
    return status;
}

static rudder_status_t recorder_owners(recorder_t *r, const trace_info_t *info, rudder_error_t *error)
{
    RUDDER_TRY(recorder_room(r, (int64_t)(info->ranks + 1) * RTR_MAX_VARINT, error));
    unsigned char *end = rtr_put_ids(r->raw, info->owner_offset, info->ranks + 1);
    return recorder_block(r, RTR_OWNERS, info->ranks + 1, 0, end - r->raw, 0, error);
}

static rudder_status_t recorder_halo(recorder_t *r, const trace_info_t *info, rudder_error_t *error)
{
    RUDDER_TRY(recorder_room(r, 2 * RTR_HALO_IDS * RTR_MAX_VARINT, error));
    for (int64_t i = 0; i < info->n_halo; i += RTR_HALO_IDS) {
        const int64_t n = info->n_halo - i < RTR_HALO_IDS ? info->n_halo - i : RTR_HALO_IDS;
        unsigned char *end = rtr_put_ids(r->raw, info->halo + i, n);
        for (int64_t k = 0; info->halo_degree != NULL && k < n; k++) {
            end = rtr_put_varint(end, info->halo_degree[i + k]);
        }
        RUDDER_TRY(recorder_block(r, RTR_HALO, n, i, end - r->raw, 0, error));
    }
    return RUDDER_OK;
}

rudder_status_t recorder_open(const char *path, const trace_info_t *info, recorder_t **recorder, rudder_error_t *error)
{
    recorder_t *r = calloc(1, sizeof *r);
    rudder_status_t status = RUDDER_OK;
    if (r == NULL || (r->path = strdup(path)) == NULL || (r->zstd = ZSTD_createCCtx()) == NULL) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory to record a trace", path);
        goto failed;
    }
    r->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (r->file < 0) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be created: %s", path, strerror(errno));
        goto failed;
    }
    r->range = valid_range_of(info);
    status = recorder_start(r, error);
    status = status == RUDDER_OK ? recorder_head(r, info, error) : status;
    if (status == RUDDER_OK && info->owner_offset != NULL) {
        status = recorder_owners(r, info, error);
    }
    status = status == RUDDER_OK ? recorder_halo(r, info, error) : status;
    if (status == RUDDER_OK) {
        *recorder = r;
        return RUDDER_OK;
    }
    close(r->file);
failed:
    if (r != NULL) {
        ZSTD_freeCCtx(r->zstd);
        free(r->raw);
        free(r->packed);
        free(r->path);
        free(r);
    }
    return status;
}

/* ---- Minibatches ------------------------------------------------------------------------------------------------ */

static void recorder_put_times(unsigned char *to, const trace_times_t *times)
{
    const float all[RTR_TIMES] = {times->sample, times->plan, times->exchange, times->complete,
                                  times->gather, times->wait, times->compute};
    for (int i = 0; i < RTR_TIMES; i++) {
        if (isfinite(all[i]) && all[i] >= 0) {
            uint32_t bits;
            memcpy(&bits, &all[i], sizeof bits);
            rtr_put32(to + 4 * i, bits);
        }
    }
}

static rudder_status_t recorder_check(const recorder_t *r, const trace_minibatch_t *m, rudder_error_t *error)
{
    const long long number = (long long)(r->first + r->held);
    if (m->n < 0 || m->n > TRACE_MAX_IDS) {
        return RUDDER_FAIL(error, RUDDER_E_UNSUPPORTED,
                           "%s: minibatch %lld: expected at most %d remote ids, found %lld", r->path, number,
                           TRACE_MAX_IDS, (long long)m->n);
    }
    if (m->announced < -1 || m->miss < -1 || m->miss > m->n || m->fill < -1) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT,
                           "%s: minibatch %lld: expected counts of at least -1 and no more misses than its %lld ids, "
                           "found %d announced, %lld misses, %lld fill rows",
                           r->path, number, (long long)m->n, m->announced, (long long)m->miss, (long long)m->fill);
    }
    const int64_t bad = valid_ids(&r->range, m->ids, m->n);
    if (bad >= 0) {
        return RUDDER_FAIL(
            error, RUDDER_E_ARGUMENT,
            "%s: minibatch %lld: expected ids from %lld to %lld but for %lld of its own from %lld on, found %lld",
            r->path, number, (long long)r->range.first, (long long)r->range.last, (long long)r->range.n_own,
            (long long)r->range.own, (long long)m->ids[bad]);
    }
    return RUDDER_OK;
}

/* Writes the first n records that are held. */
static rudder_status_t recorder_send(recorder_t *r, int64_t n, rudder_error_t *error)
{
    const int64_t bytes = n < r->held ? r->starts[n] : r->raw_bytes;
    if (n == 0) {
        return RUDDER_OK;
    }
    RUDDER_TRY(recorder_block(r, RTR_DATA, n, r->first, bytes, 1, error));
    memmove(r->raw, r->raw + bytes, (size_t)(r->raw_bytes - bytes));
    for (int64_t i = n; i < r->held; i++) {
        r->starts[i - n] = r->starts[i] - bytes;
    }
    r->raw_bytes -= bytes;
    r->first += n;
    r->held -= n;
    r->known -= n < r->known ? n : r->known;
    return RUDDER_OK;
}

static rudder_status_t recorder_send_known(recorder_t *r, rudder_error_t *error)
{
    const int64_t bytes = r->known < r->held ? r->starts[r->known] : r->raw_bytes;
    return recorder_send(r, bytes >= RECORDER_BLOCK ? r->known : 0, error);
}

static rudder_status_t recorder_usable(const recorder_t *r, rudder_error_t *error)
{
    if (r->failed.status != RUDDER_OK && error != NULL) {
        *error = r->failed;
    }
    return r->failed.status;
}

rudder_status_t recorder_add(recorder_t *r, const trace_minibatch_t *m, rudder_error_t *error)
{
    RUDDER_TRY(recorder_usable(r, error));
    RUDDER_TRY(recorder_check(r, m, error));
    RUDDER_TRY(recorder_room(r, RTR_TIMES_BYTES + (4 + m->n) * RTR_MAX_VARINT, error));
    if (grow_array(&r->starts, &r->held_size, r->held + 1, sizeof *r->starts) != RUDDER_OK) {
        return recorder_no_memory(r, error);
    }
    unsigned char *at = r->raw + r->raw_bytes;
    for (int i = 0; i < RTR_TIMES; i++, at += 4) {
        rtr_put32(at, 0x7fc00000); /* NAN */
    }
    recorder_put_times(at - RTR_TIMES_BYTES, &m->times);
    at = rtr_put_varint(at, (uint64_t)m->n);
    at = rtr_put_varint(at, (uint64_t)m->announced + 1);
    at = rtr_put_varint(at, (uint64_t)m->miss + 1);
    at = rtr_put_varint(at, (uint64_t)m->fill + 1);
    at = rtr_put_ids(at, m->ids, m->n);
    r->starts[r->held++] = r->raw_bytes;
    r->raw_bytes = at - r->raw;
    r->n_ids += m->n;
    return r->raw_bytes < RECORDER_HELD ? RUDDER_OK : recorder_send(r, r->held, error);
}

rudder_status_t recorder_times(recorder_t *r, int64_t number, const trace_times_t *times, rudder_error_t *error)
{
    RUDDER_TRY(recorder_usable(r, error));
    if (number >= r->first + r->held) {
        return RUDDER_FAIL(error, RUDDER_E_STATE, "%s: expected times of one of %lld minibatches, found number %lld",
                           r->path, (long long)(r->first + r->held), (long long)number);
    }
    if (number < r->first) {
        return RUDDER_OK; /* it had to leave without */
    }
    recorder_put_times(r->raw + r->starts[number - r->first], times);
    r->known = number - r->first + 1;
    return recorder_send_known(r, error);
}

rudder_status_t recorder_flush(recorder_t *r, rudder_error_t *error)
{
    RUDDER_TRY(recorder_usable(r, error));
    return recorder_send(r, r->held, error);
}

rudder_status_t recorder_close(recorder_t *r, rudder_error_t *error)
{
    if (r == NULL) {
        return RUDDER_OK;
    }
    rudder_status_t status = recorder_flush(r, error);
    if (status == RUDDER_OK && (status = recorder_room(r, RTR_DONE_BYTES, error)) == RUDDER_OK) {
        rtr_put64(r->raw, (uint64_t)r->n_ids);
        status = recorder_block(r, RTR_DONE, 0, r->first, RTR_DONE_BYTES, 0, error);
    }
    if (close(r->file) != 0 && status == RUDDER_OK) {
        status = RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", r->path, strerror(errno));
    }
    ZSTD_freeCCtx(r->zstd);
    free(r->raw);
    free(r->packed);
    free(r->starts);
    free(r->path);
    free(r);
    return status;
}
