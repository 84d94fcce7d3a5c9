/*
 * Reading .rtr, one block at a time. A file may come from anywhere: sizes are bounded before memory is taken, checksums come
 * before their contents, and every number is checked although its checksum was right.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "base/error.h"
#include "base/grow.h"
#include "graph/files.h"
#include "trace/format.h"
#include "trace/rtr.h"

enum { RTR_MAX_FACTS = 1 << 16, RTR_MAX_RANKS = 1 << 20, RTR_PIPE_STEP = 1 << 20 };

typedef struct rtr {
    source_t *source;
    trace_info_t *info;
    unsigned char *raw, *packed;
    int64_t raw_size, packed_size;
    int64_t block_at;              /* where the block begins in the file */
    const unsigned char *at, *end; /* what is left of its payload */
    int64_t left;                  /* minibatches in it that were not given yet */
    int64_t n_minibatches, n_ids;  /* given, and those of the block */
    int64_t *ids, ids_size;        /* of one minibatch */
    int64_t *owner_offset, *halo, halo_size;
    uint32_t *halo_degree;
    int64_t degree_size;
    int64_t n_halo; /* read so far */
    int ended, torn;
    ZSTD_DCtx *zstd;
} rtr_t;

static rudder_status_t rtr_no_memory(const rtr_t *r, rudder_error_t *error)
{
    return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for the block at byte %lld", r->source->path,
                       (long long)r->block_at);
}

/* The block that is being read has a right checksum and a wrong content. */
#define RTR_BAD(r, error, ...) rtr_bad(__func__, (r), (error), __VA_ARGS__)

static rudder_status_t rtr_bad(const char *where, const rtr_t *r, rudder_error_t *error, const char *expected,
                               long long found)
{
    return error_set(error, RUDDER_E_DATA, where, "%s: block at byte %lld: expected %s, found %lld", r->source->path,
                     (long long)r->block_at, expected, found);
}

/* ---- Blocks ----------------------------------------------------------------------------------------------------- */

/* Reads the head of the next block. *torn: the file ends before or inside it. */
static rudder_status_t rtr_next_head(rtr_t *r, rtr_block_t *block, int *torn, rudder_error_t *error)
{
    static const char *const kinds[] = {RTR_HEAD, RTR_OWNERS, RTR_HALO, RTR_DATA, RTR_DONE};
    unsigned char head[RTR_BLOCK_BYTES] = {0};
    int64_t got;
    int known = 0;
    r->block_at = r->source->position;
    RUDDER_TRY(source_read(r->source, head, sizeof head, &got, error));
    for (int i = 0; i < 5; i++) {
        known |= memcmp(head, kinds[i], got < 4 ? (size_t)got : 4) == 0;
    }
    *torn = known && got < RTR_BLOCK_BYTES;
    if (*torn) {
        return RUDDER_OK;
    }
    if (!known || !rtr_get_block(head, block)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: byte %lld: expected a block, found %s", r->source->path,
                           (long long)r->block_at,
                           known ? "one whose head has the wrong checksum" : "bytes that begin none");
    }
    if (block->raw > RTR_MAX_RAW || block->packed > block->raw) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: byte %lld: expected a block of at most %d bytes, found %u, packed %u", r->source->path,
                           (long long)r->block_at, RTR_MAX_RAW, block->raw, block->packed);
    }
    return RUDDER_OK;
}

/* Reads n bytes; of a pipe step by step, so that memory is taken for what came only. */
static rudder_status_t rtr_fetch(rtr_t *r, unsigned char **bytes, int64_t *size, int64_t n, int *torn,
                                 rudder_error_t *error)
{
    const int64_t left = r->source->size - r->source->position;
    const int64_t step = r->source->size >= 0 ? n : RTR_PIPE_STEP;
    *torn = r->source->size >= 0 && n > left;
    for (int64_t done = 0; done < n && !*torn;) {
        const int64_t some = n - done < step ? n - done : step;
        int64_t got;
        if (grow_array(bytes, size, done + some + RTR_PAD, 1) != RUDDER_OK) {
            return rtr_no_memory(r, error);
        }
        RUDDER_TRY(source_read(r->source, *bytes + done, some, &got, error));
        *torn = got < some;
        done += got;
    }
    return RUDDER_OK;
}

/* The payload of a block into raw, checked and unpacked. */
static rudder_status_t rtr_payload(rtr_t *r, const rtr_block_t *block, int *torn, rudder_error_t *error)
{
    const int stored = block->packed == block->raw;
    unsigned char **bytes = stored ? &r->raw : &r->packed;
    RUDDER_TRY(rtr_fetch(r, bytes, stored ? &r->raw_size : &r->packed_size, block->packed, torn, error));
    if (*torn) {
        return RUDDER_OK;
    }
    const uint32_t crc = block->packed > 0 ? rtr_crc(*bytes, block->packed) : 0;
    if (crc != block->crc) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: block at byte %lld: expected the checksum %08x of its %u bytes, found %08x",
                           r->source->path, (long long)r->block_at, block->crc, block->packed, crc);
    }
    if (grow_array(&r->raw, &r->raw_size, (int64_t)block->raw + RTR_PAD, 1) != RUDDER_OK) {
        return rtr_no_memory(r, error);
    }
    if (!stored) {
        const size_t got = ZSTD_decompressDCtx(r->zstd, r->raw, block->raw, r->packed, block->packed);
        if (ZSTD_isError(got) || got != block->raw) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: block at byte %lld: expected %u bytes under zstd, found %s",
                               r->source->path, (long long)r->block_at, block->raw,
                               ZSTD_isError(got) ? ZSTD_getErrorName(got) : "fewer");
        }
    }
    memset(r->raw + block->raw, 0, RTR_PAD);
    r->at = r->raw;
    r->end = r->raw + block->raw;
    return RUDDER_OK;
}

/* Behind the start, before the minibatches: nothing may be missing. */
static rudder_status_t rtr_needed(rtr_t *r, const char *kind, rtr_block_t *block, rudder_error_t *error)
{
    int torn;
    RUDDER_TRY(rtr_next_head(r, block, &torn, error));
    if (!torn && !rtr_is(block, kind)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: byte %lld: expected a block %s, found %.4s", r->source->path,
                           (long long)r->block_at, kind, block->kind);
    }
    if (!torn && block->raw != block->packed) {
        return RTR_BAD(r, error, "it not to be compressed", block->packed);
    }
    if (!torn) {
        RUDDER_TRY(rtr_payload(r, block, &torn, error));
    }
    return torn ? RUDDER_FAIL(error, RUDDER_E_DATA, "%s: byte %lld: expected a block %s, found the end of the file",
                              r->source->path, (long long)r->source->position, kind)
                : RUDDER_OK;
}

/* ---- Before the minibatches ------------------------------------------------------------------------------------- */

static rudder_status_t rtr_start(rtr_t *r, rudder_error_t *error)
{
    unsigned char start[RTR_START_BYTES];
    int64_t got;
    RUDDER_TRY(source_read(r->source, start, sizeof start, &got, error));
    if (got < RTR_START_BYTES || memcmp(start, RTR_MARK, 8) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: byte 4: expected the mark of a .rtr file, found %s",
                           r->source->path,
                           got < RTR_START_BYTES ? "the end of the file" : "it changed, as by a transfer as text");
    }
    if (rtr_get32(start + 12) != rtr_crc(start, 12)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: byte 12: expected the checksum %08x of its start, found %08x",
                           r->source->path, rtr_crc(start, 12), rtr_get32(start + 12));
    }
    if (rtr_get32(start + 8) != RTR_VERSION) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: byte 8: expected version %d of the format, found %u: another Rudder wrote it",
                           r->source->path, RTR_VERSION, rtr_get32(start + 8));
    }
    return RUDDER_OK;
}

/* A member that may be absent: *value stays then. */
static rudder_status_t rtr_int(const files_json_t *facts, const char *key, int64_t high, int64_t *value,
                               rudder_error_t *error)
{
    return cJSON_HasObjectItem(facts->object, key) ? files_json_int(facts, facts->object, key, 0, high, value, error)
                                                   : RUDDER_OK;
}

static rudder_status_t rtr_int32(const files_json_t *facts, const char *key, int64_t high, int32_t *value,
                                 rudder_error_t *error)
{
    int64_t wide = 0;
    RUDDER_TRY(rtr_int(facts, key, high, &wide, error));
    *value = (int32_t)wide;
    return RUDDER_OK;
}

static rudder_status_t rtr_double(const files_json_t *facts, const char *key, double *value, rudder_error_t *error)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(facts->object, key);
    if (item != NULL && !(cJSON_IsNumber(item) && isfinite(item->valuedouble) && item->valuedouble >= 0)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: %s: expected a number of at least 0, found another value",
                           facts->path, key);
    }
    *value = item != NULL ? item->valuedouble : 0;
    return RUDDER_OK;
}

/* Texts are shown on terminals: what would steer one becomes '?'. */
static rudder_status_t rtr_string(const files_json_t *facts, const char *key, char *text, size_t size,
                                  rudder_error_t *error)
{
    if (cJSON_HasObjectItem(facts->object, key)) {
        RUDDER_TRY(files_json_string(facts, facts->object, key, text, size, error));
    }
    for (char *c = text; *c != '\0'; c++) {
        *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
    }
    return RUDDER_OK;
}

/* A text of digits, since a number of JSON may lose some. */
static rudder_status_t rtr_seed(const files_json_t *facts, uint64_t *seed, rudder_error_t *error)
{
    char text[32] = "0", *end;
    RUDDER_TRY(rtr_string(facts, "seed", text, sizeof text, error));
    errno = 0;
    *seed = strtoull(text, &end, 10);
    return *end == '\0' && text[0] >= '0' && text[0] <= '9' && errno == 0
               ? RUDDER_OK
               : RUDDER_FAIL(error, RUDDER_E_DATA, "%s: seed: expected digits, found \"%s\"", facts->path, text);
}

static rudder_status_t rtr_fanouts(const files_json_t *facts, trace_info_t *info, rudder_error_t *error)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(facts->object, "fanouts"), *item;
    const int n = cJSON_GetArraySize(array);
    if (array != NULL && (!cJSON_IsArray(array) || n > TRACE_MAX_LAYERS)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: fanouts: expected an array of at most %d numbers, found %d",
                           facts->path, TRACE_MAX_LAYERS, n);
    }
    cJSON_ArrayForEach(item, array)
    {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= -1 && item->valuedouble <= INT32_MAX)) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s: fanouts: expected numbers of at least -1, found another value", facts->path);
        }
        info->fanout[info->n_layers++] = (int32_t)item->valuedouble;
    }
    return RUDDER_OK;
}

/* A number of a link of an owner; -1: it is none. */
static double rtr_link_number(const cJSON *of, int i)
{
    const cJSON *item = cJSON_GetArrayItem(of, i);
    return cJSON_IsNumber(item) && item->valuedouble >= 0 && isfinite(item->valuedouble) ? item->valuedouble : -1;
}

static rudder_status_t rtr_owner_links(const files_json_t *facts, trace_info_t *info, int64_t n_owners,
                                       rudder_error_t *error)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(facts->object, "owner_links"), *item;
    links_t *links = &info->links;
    if (array != NULL && (!cJSON_IsArray(array) || cJSON_GetArraySize(array) > LINKS_OWN)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: owner_links: expected an array of at most %d links, found %d",
                           facts->path, LINKS_OWN, cJSON_GetArraySize(array));
    }
    cJSON_ArrayForEach(item, array)
    {
        const double owner = rtr_link_number(item, 0), rate = rtr_link_number(item, 1),
                     latency = rtr_link_number(item, 2);
        if (cJSON_GetArraySize(item) != 3 || rate < 0 || latency < 0 || owner < 0 || !(owner < (double)n_owners - 1) ||
            owner != floor(owner) || links_own(links, (int32_t)owner) != NULL) {
            return RUDDER_FAIL(
                error, RUDDER_E_DATA,
                "%s: owner_links: expected [owner, rate, latency], each owner of %lld once, found another value",
                facts->path, (long long)(n_owners > 0 ? n_owners - 1 : 0));
        }
        *links_add(links, (int32_t)owner) = (link_t){.bytes_per_second = rate, .latency = latency};
    }
    return RUDDER_OK;
}

static rudder_status_t rtr_all_facts(const files_json_t *facts, trace_info_t *info, int64_t *n_owners, int *degrees,
                                     rudder_error_t *error)
{
    const int64_t most = (int64_t)1 << 53;
    RUDDER_TRY(rtr_string(facts, "graph", info->graph, sizeof info->graph, error));
    RUDDER_TRY(rtr_string(facts, "partition", info->partition, sizeof info->partition, error));
    RUDDER_TRY(rtr_string(facts, "order", info->order, sizeof info->order, error));
    RUDDER_TRY(rtr_string(facts, "policy", info->policy, sizeof info->policy, error));
    RUDDER_TRY(rtr_string(facts, "run", info->run, sizeof info->run, error));
    RUDDER_TRY(rtr_int32(facts, "ranks", RTR_MAX_RANKS, &info->ranks, error));
    RUDDER_TRY(rtr_int32(facts, "rank", info->ranks > 0 ? info->ranks - 1 : 0, &info->rank, error));
    RUDDER_TRY(rtr_seed(facts, &info->seed, error));
    RUDDER_TRY(rtr_int(facts, "batch", most, &info->batch, error));
    RUDDER_TRY(rtr_int(facts, "steps_per_epoch", most, &info->steps_per_epoch, error));
    RUDDER_TRY(rtr_int(facts, "epochs", most, &info->epochs, error));
    RUDDER_TRY(rtr_int(facts, "nodes", most, &info->n_nodes, error));
    RUDDER_TRY(rtr_int(facts, "row_bytes", most, &info->row_bytes, error));
    RUDDER_TRY(rtr_int(facts, "capacity_rows", most, &info->capacity_rows, error));
    RUDDER_TRY(rtr_int(facts, "max_tracked", most, &info->max_tracked, error));
    RUDDER_TRY(rtr_int32(facts, "depth", INT32_MAX, &info->depth, error));
    RUDDER_TRY(rtr_fanouts(facts, info, error));
    RUDDER_TRY(rtr_double(facts, "link_rate", &info->links.common.bytes_per_second, error));
    RUDDER_TRY(rtr_double(facts, "link_latency", &info->links.common.latency, error));
    RUDDER_TRY(rtr_int(facts, "halo", most, &info->n_halo, error));
    RUDDER_TRY(rtr_int(facts, "owners", info->ranks + 1, n_owners, error));
    *degrees = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(facts->object, "halo_degree"));
    RUDDER_TRY(rtr_owner_links(facts, info, *n_owners, error));
    return *n_owners == 0 || (*n_owners == info->ranks + 1 && info->ranks > 0)
               ? RUDDER_OK
               : RUDDER_FAIL(error, RUDDER_E_DATA,
                             "%s: owners: expected none or one more than the %d ranks, found %lld", facts->path,
                             info->ranks, (long long)*n_owners);
}

static rudder_status_t rtr_head(rtr_t *r, int64_t *n_owners, int *degrees, rudder_error_t *error)
{
    rtr_block_t block;
    files_json_t facts = {0};
    RUDDER_TRY(rtr_needed(r, RTR_HEAD, &block, error));
    if (block.raw > RTR_MAX_FACTS) {
        return RTR_BAD(r, error, "at most 65536 bytes of JSON", block.raw);
    }
    facts.object = cJSON_ParseWithLength((const char *)r->raw, block.raw);
    if (!cJSON_IsObject(facts.object)) {
        files_json_close(&facts);
        return RTR_BAD(r, error, "a JSON object", block.raw);
    }
    snprintf(facts.path, sizeof facts.path, "%s: byte %d", r->source->path, RTR_START_BYTES + RTR_BLOCK_BYTES);
    const rudder_status_t status = rtr_all_facts(&facts, r->info, n_owners, degrees, error);
    files_json_close(&facts);
    return status;
}

static rudder_status_t rtr_owners(rtr_t *r, int64_t n, rudder_error_t *error)
{
    rtr_block_t block;
    RUDDER_TRY(rtr_needed(r, RTR_OWNERS, &block, error));
    if (block.count != n || block.raw < n) {
        return RTR_BAD(r, error, "an offset for each rank and one more", block.count);
    }
    if ((r->owner_offset = malloc((size_t)n * sizeof *r->owner_offset)) == NULL) {
        return rtr_no_memory(r, error);
    }
    if (rtr_get_ids(r->at, r->end, r->owner_offset, n) != r->end) {
        return RTR_BAD(r, error, "as many varints as it counts", block.count);
    }
    for (int64_t p = 1; p < n; p++) {
        if (r->owner_offset[p] < r->owner_offset[p - 1]) {
            return RTR_BAD(r, error, "offsets of owners that do not fall", r->owner_offset[p]);
        }
    }
    r->info->owner_offset = r->owner_offset;
    return RUDDER_OK;
}

static rudder_status_t rtr_halo_block(rtr_t *r, int degrees, rudder_error_t *error)
{
    rtr_block_t block;
    RUDDER_TRY(rtr_needed(r, RTR_HALO, &block, error));
    const int64_t n = block.count;
    if (n == 0 || n > r->info->n_halo - r->n_halo || block.first != (uint64_t)r->n_halo || n > block.raw) {
        return RTR_BAD(r, error, "the next ids of the halo and no more than all of it", n);
    }
    if (grow_array(&r->halo, &r->halo_size, r->n_halo + n, sizeof *r->halo) != RUDDER_OK ||
        (degrees && grow_array(&r->halo_degree, &r->degree_size, r->n_halo + n, sizeof *r->halo_degree) != RUDDER_OK)) {
        return rtr_no_memory(r, error);
    }
    const unsigned char *at = rtr_get_ids(r->at, r->end, r->halo + r->n_halo, n);
    for (int64_t i = 0; i < n && degrees && at != NULL; i++) {
        uint64_t degree;
        at = rtr_get_varint(at, r->end, &degree);
        if (at != NULL) {
            r->halo_degree[r->n_halo + i] = (uint32_t)degree;
            at = degree <= UINT32_MAX ? at : NULL;
        }
    }
    if (at != r->end) {
        return RTR_BAD(r, error, "as many ids and degrees as it counts", n);
    }
    r->n_halo += n;
    return RUDDER_OK;
}

/* What the last block says of the whole trace, if the file has one: worth knowing before all is read. */
static void rtr_totals(const rtr_t *r, trace_info_t *info)
{
    unsigned char last[RTR_BLOCK_BYTES + RTR_DONE_BYTES];
    rtr_block_t block;
    if (r->source->size >= (int64_t)sizeof last &&
        pread(r->source->file, last, sizeof last, r->source->size - (int64_t)sizeof last) == (ssize_t)sizeof last &&
        rtr_get_block(last, &block) && rtr_is(&block, RTR_DONE) && block.packed == RTR_DONE_BYTES &&
        block.crc == rtr_crc(last + RTR_BLOCK_BYTES, RTR_DONE_BYTES)) {
        info->n_minibatches = (int64_t)block.first;
        info->n_ids = (int64_t)rtr_get64(last + RTR_BLOCK_BYTES);
    }
}

static void rtr_close(void *self)
{
    rtr_t *r = self;
    ZSTD_freeDCtx(r->zstd);
    free(r->raw);
    free(r->packed);
    free(r->ids);
    free(r->owner_offset);
    free(r->halo);
    free(r->halo_degree);
    free(r);
}

static rudder_status_t rtr_open(source_t *source, trace_info_t *info, void **self, rudder_error_t *error)
{
    rtr_t *r = calloc(1, sizeof *r);
    int64_t n_owners = 0;
    int degrees = 0;
    if (r == NULL || (r->zstd = ZSTD_createDCtx()) == NULL) {
        free(r);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory to open it", source->path);
    }
    r->source = source;
    r->info = info;
    rudder_status_t status = rtr_start(r, error);
    status = status == RUDDER_OK ? rtr_head(r, &n_owners, &degrees, error) : status;
    if (status == RUDDER_OK && n_owners > 0) {
        status = rtr_owners(r, n_owners, error);
    }
    while (status == RUDDER_OK && r->n_halo < info->n_halo) {
        status = rtr_halo_block(r, degrees, error);
    }
    if (status != RUDDER_OK) {
        rtr_close(r);
        return status;
    }
    info->halo = r->halo;
    info->halo_degree = r->halo_degree;
    rtr_totals(r, info);
    *self = r;
    return RUDDER_OK;
}

/* ---- Minibatches ------------------------------------------------------------------------------------------------ */

/* The groups of seven bits of a varint of up to 8 bytes side by side; bytes behind it are 0. */
static uint64_t rtr_join(uint64_t value)
{
    value = (value & 0x007f007f007f007fu) | (value & 0x7f007f007f007f00u) >> 1;
    value = (value & 0x00003fff00003fffu) | (value & 0x3fff00003fff0000u) >> 2;
    return (value & 0x000000000fffffffu) | (value & 0x0fffffff00000000u) >> 4;
}

/*
 * Lengths of varints cannot be foreseen, so there is no branch on them: 8 bytes are looked at together, and where two varints
 * end inside them (they nearly always do) both are taken, since finding where the next one begins is what takes the time.
 */
const unsigned char *rtr_get_ids(const unsigned char *from, const unsigned char *end, int64_t *ids, int64_t n)
{
    const uint64_t high = 0x8080808080808080u;
    uint64_t id = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t value = from < end ? rtr_get64(from) : high; /* the pad is read, too */
        const uint64_t stops = ~value & high, more = stops & (stops - 1);
        if (more != 0 && i + 1 < n) {
            const uint64_t second = (value & (more ^ (more - 1))) >> (__builtin_ctzll(stops) + 1);
            id += rtr_unzigzag(rtr_join(value & (stops ^ (stops - 1))));
            all |= id;
            ids[i++] = (int64_t)id;
            from += ((unsigned)__builtin_ctzll(more) + 1) / 8;
            value = rtr_join(second);
        } else if (stops != 0) {
            from += ((unsigned)__builtin_ctzll(stops) + 1) / 8;
            value = rtr_join(value & (stops ^ (stops - 1)));
        } else if ((from = rtr_get_varint(from, end, &value)) == NULL) {
            return NULL;
        }
        id += rtr_unzigzag(value);
        all |= id;
        ids[i] = (int64_t)id;
    }
    return from <= end && (int64_t)all >= 0 ? from : NULL;
}

/* Nothing follows the last block, and it counts what came. */
static rudder_status_t rtr_done(rtr_t *r, const rtr_block_t *block, rudder_error_t *error)
{
    unsigned char more;
    int64_t got;
    if (block->raw != RTR_DONE_BYTES || block->count != 0 || block->first != (uint64_t)r->n_minibatches ||
        rtr_get64(r->raw) != (uint64_t)r->n_ids) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: block at byte %lld: expected the end after %lld minibatches and %lld ids, found it "
                           "after %llu and %llu",
                           r->source->path, (long long)r->block_at, (long long)r->n_minibatches, (long long)r->n_ids,
                           (unsigned long long)block->first,
                           (unsigned long long)(block->raw == RTR_DONE_BYTES ? rtr_get64(r->raw) : 0));
    }
    const int64_t position = r->source->position;
    RUDDER_TRY(source_read(r->source, &more, 1, &got, error));
    if (got > 0) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: byte %lld: expected the end of the file, found more",
                           r->source->path, (long long)position);
    }
    r->ended = 1;
    return RUDDER_OK;
}

static rudder_status_t rtr_next_block(rtr_t *r, rudder_error_t *error)
{
    rtr_block_t block;
    RUDDER_TRY(rtr_next_head(r, &block, &r->torn, error));
    if (!r->torn && !rtr_is(&block, RTR_DATA) && !rtr_is(&block, RTR_DONE)) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: byte %lld: expected a block DATA or DONE, found %.4s",
                           r->source->path, (long long)r->block_at, block.kind);
    }
    if (!r->torn) {
        RUDDER_TRY(rtr_payload(r, &block, &r->torn, error));
    }
    if (r->torn) {
        r->ended = 1;
        return RUDDER_OK;
    }
    if (rtr_is(&block, RTR_DONE)) {
        return rtr_done(r, &block, error);
    }
    if (block.count == 0 || block.first != (uint64_t)r->n_minibatches) {
        return RUDDER_FAIL(error, RUDDER_E_DATA,
                           "%s: block at byte %lld: expected minibatches from number %lld on, found %u from %llu on",
                           r->source->path, (long long)r->block_at, (long long)r->n_minibatches, block.count,
                           (unsigned long long)block.first);
    }
    r->left = block.count;
    return RUDDER_OK;
}

static rudder_status_t rtr_times(const rtr_t *r, const unsigned char *from, trace_times_t *times, rudder_error_t *error)
{
    float *const all[RTR_TIMES] = {&times->sample, &times->plan, &times->exchange, &times->complete,
                                   &times->gather, &times->wait, &times->compute};
    for (int i = 0; i < RTR_TIMES; i++) {
        const uint32_t bits = rtr_get32(from + 4 * i);
        memcpy(all[i], &bits, sizeof bits);
        if (!isnan(*all[i]) && !(isfinite(*all[i]) && *all[i] >= 0)) {
            return RTR_BAD(r, error, "seconds of at least 0 in each minibatch, not known or finite, this one",
                           (long long)r->n_minibatches);
        }
    }
    return RUDDER_OK;
}

static rudder_status_t rtr_minibatch(rtr_t *r, trace_minibatch_t *m, rudder_error_t *error)
{
    uint64_t counts[4] = {0}; /* ids; announced, misses, fill rows, each and 1 */
    if (r->end - r->at < RTR_TIMES_BYTES) {
        return RTR_BAD(r, error, "as many minibatches as it counts; it ends before number", r->n_minibatches);
    }
    RUDDER_TRY(rtr_times(r, r->at, &m->times, error));
    r->at += RTR_TIMES_BYTES;
    for (int i = 0; i < 4; i++) {
        if ((r->at = rtr_get_varint(r->at, r->end, &counts[i])) == NULL) {
            return RTR_BAD(r, error, "four counts in each minibatch, whole varints; not so in number",
                           r->n_minibatches);
        }
    }
    if (counts[0] > TRACE_MAX_IDS || counts[0] > (uint64_t)(r->end - r->at) || counts[1] > (uint64_t)INT32_MAX + 1 ||
        counts[2] > counts[0] + 1 || counts[3] > (uint64_t)1 << 53) {
        return RTR_BAD(r, error,
                       "possible counts of ids, announced minibatches, misses and fill rows; not so in number",
                       r->n_minibatches);
    }
    m->n = (int64_t)counts[0];
    m->announced = (int32_t)((int64_t)counts[1] - 1);
    m->miss = (int64_t)counts[2] - 1;
    m->fill = (int64_t)counts[3] - 1;
    if (grow_array(&r->ids, &r->ids_size, m->n + 1, sizeof *r->ids) != RUDDER_OK) {
        return rtr_no_memory(r, error);
    }
    if ((r->at = rtr_get_ids(r->at, r->end, r->ids, m->n)) == NULL) {
        return RTR_BAD(r, error, "ids of at least 0, as many as counted; not so in minibatch", r->n_minibatches);
    }
    m->ids = r->ids;
    r->n_minibatches++;
    r->n_ids += m->n;
    if (--r->left == 0 && r->at != r->end) {
        return RTR_BAD(r, error, "its end after its last minibatch, left bytes", r->end - r->at);
    }
    return RUDDER_OK;
}

static rudder_status_t rtr_next(void *self, trace_minibatch_t *minibatch, int *end, rudder_error_t *error)
{
    rtr_t *r = self;
    if (r->left == 0 && !r->ended) {
        RUDDER_TRY(rtr_next_block(r, error));
    }
    *end = r->ended;
    return r->ended ? RUDDER_OK : rtr_minibatch(r, minibatch, error);
}

static int rtr_torn(const void *self)
{
    return ((const rtr_t *)self)->torn;
}

static int64_t rtr_memory(const void *self)
{
    const rtr_t *r = self;
    return (int64_t)sizeof *r + r->raw_size + r->packed_size + (int64_t)ZSTD_sizeof_DCtx(r->zstd) +
           (r->ids_size + r->halo_size) * (int64_t)sizeof(int64_t) + r->degree_size * (int64_t)sizeof(uint32_t) +
           (r->owner_offset != NULL ? (int64_t)(r->info->ranks + 1) * (int64_t)sizeof(int64_t) : 0);
}

const trace_format_t trace_format_rtr = {
    .kind = "rtr", .open = rtr_open, .next = rtr_next, .torn = rtr_torn, .memory = rtr_memory, .close = rtr_close};
