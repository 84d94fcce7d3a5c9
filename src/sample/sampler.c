/*
 * A minibatch from the seeds' layer down to the input. Each layer has three passes: how many neighbours each destination
 * gets (so that the arrays have their exact size), which, and what their local numbers are. Remote destinations are answered by their
 * owners with the same draws that the owner would make for itself.
 */
#include "sample/sampler.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "sample/draw.h"

enum { SAMPLER_MIN_TABLE = 1024 };

/* A node of the minibatch in the table of local numbers; it counts if `stamp` is that of the minibatch under way. */
typedef struct sampler_entry {
    int64_t id;
    int32_t number;
    uint32_t stamp;
} sampler_entry_t;

struct sampler {
    sampler_config_t config;
    const part_t *part;
    exchange_t *exchange;

    /* The layer under way, for draws: our own and those that peers ask for. */
    uint64_t key;
    int64_t fanout;
    int64_t *drawn; /* [edges of the layer] global ids */
    int64_t drawn_capacity;

    /* id -> local number, open addressing, at most half full. */
    sampler_entry_t *table;
    int64_t table_size; /* a power of two */
    uint32_t stamp;

    /* Remote destinations and their owners' answers: { original id, count, neighbours[fanout] } each. */
    int64_t *ask, *answer;
    int64_t ask_capacity, answer_capacity;
};

rudder_status_t sampler_open(const sampler_config_t *config, const parts_t *parts, const part_t *part,
                             exchange_t *exchange, sampler_t **sampler, rudder_error_t *error)
{
    *sampler = NULL;
    (void)parts; /* without assertions */
    assert(parts->offset[part->number] == part->begin && parts->offset[part->number + 1] == part->end);
    if (config->n_layers < 1 || config->n_layers > SAMPLER_MAX_LAYERS) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "layers to sample: expected 1 to %d, found %d", SAMPLER_MAX_LAYERS,
                           config->n_layers);
    }
    for (int32_t l = 0; l < config->n_layers; l++) {
        if (config->fanout[l] < 0 || config->fanout[l] > SAMPLER_MAX_FANOUT) {
            return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "fan-out of layer %d: expected 0 to %d, found %d", l,
                               SAMPLER_MAX_FANOUT, config->fanout[l]);
        }
    }
    sampler_t *s = calloc(1, sizeof *s);
    if (s) {
        s->config = *config;
        s->part = part;
        s->exchange = exchange;
        s->table_size = SAMPLER_MIN_TABLE;
        s->table = calloc((size_t)s->table_size, sizeof *s->table);
    }
    if (!s || !s->table) {
        sampler_close(s);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to open a sampler");
    }
    *sampler = s;
    return RUDDER_OK;
}

void sampler_close(sampler_t *s)
{
    if (s) {
        free(s->drawn);
        free(s->table);
        free(s->ask);
        free(s->answer);
        free(s);
    }
}

/* ---- One node --------------------------------------------------------------------------------------------------- */

/* How many neighbours an owned node gets. */
static int64_t sampler_count(const sampler_t *s, int64_t row)
{
    const int64_t degree = s->part->indptr[row + 1] - s->part->indptr[row];
    return degree < s->fanout ? degree : s->fanout;
}

/* Which ones: writes sampler_count() global ids in the graph's order. */
static void sampler_draw(const sampler_t *s, int64_t row, int64_t *neighbour)
{
    const int64_t begin = s->part->indptr[row], degree = s->part->indptr[row + 1] - begin;
    if (degree <= s->fanout) {
        for (int64_t i = 0; i < degree; i++) {
            neighbour[i] = s->part->indices[begin + i];
        }
        return;
    }
    draw_positions(s->key, (uint64_t)s->part->orig_id[row], degree, s->fanout, neighbour);
    for (int64_t i = 0; i < s->fanout; i++) {
        neighbour[i] = s->part->indices[begin + neighbour[i]];
    }
}

/* An answer to a peer. What is behind the neighbours is never looked at; it is cleared so that no old memory travels. */
static void sampler_serve(void *context, const int64_t *ids, int64_t n, void *rows)
{
    const sampler_t *s = context;
    int64_t *answer = rows;
    for (int64_t i = 0; i < n; i++, answer += 2 + s->fanout) {
        const int64_t row = ids[i] - s->part->begin, count = sampler_count(s, row);
        answer[0] = s->part->orig_id[row];
        answer[1] = count;
        sampler_draw(s, row, answer + 2);
        memset(answer + 2 + count, 0, (size_t)(s->fanout - count) * sizeof *answer);
    }
}

/* ---- Local numbers ---------------------------------------------------------------------------------------------- */

/* Where the search for a node begins. */
static uint64_t sampler_slot(const sampler_t *s, int64_t id)
{
    return rng_mix((uint64_t)id) & ((uint64_t)s->table_size - 1);
}

static sampler_entry_t *sampler_find(const sampler_t *s, int64_t id)
{
    const uint64_t mask = (uint64_t)s->table_size - 1;
    uint64_t i = sampler_slot(s, id);
    while (s->table[i].stamp == s->stamp && s->table[i].id != id) {
        i = (i + 1) & mask;
    }
    return &s->table[i];
}

static void sampler_forget(sampler_t *s)
{
    if (++s->stamp == 0) {
        memset(s->table, 0, (size_t)s->table_size * sizeof *s->table);
        s->stamp = 1;
    }
}

/* Room for n nodes in table and list. */
static rudder_status_t sampler_reserve(sampler_t *s, minibatch_t *m, int64_t n, rudder_error_t *error)
{
    if (n > INT32_MAX) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "a minibatch may have %lld nodes: expected fewer than 2^31",
                           (long long)n);
    }
    if (grow_array(&m->input, &m->input_capacity, n, sizeof *m->input) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a minibatch of %lld nodes", (long long)n);
    }
    if (2 * n <= s->table_size) {
        return RUDDER_OK;
    }
    int64_t size = s->table_size;
    while (size < 2 * n) {
        size *= 2;
    }
    sampler_entry_t *table = calloc((size_t)size, sizeof *table);
    if (!table) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the numbers of %lld nodes", (long long)n);
    }
    free(s->table);
    s->table = table;
    s->table_size = size;
    s->stamp = 1;
    for (int64_t i = 0; i < m->n_input; i++) {
        *sampler_find(s, m->input[i]) = (sampler_entry_t){m->input[i], (int32_t)i, s->stamp};
    }
    return RUDDER_OK;
}

/* The local number of a node, a new one if it has none. There is room. */
static int32_t sampler_number(const sampler_t *s, minibatch_t *m, int64_t id)
{
    sampler_entry_t *entry = sampler_find(s, id);
    if (entry->stamp != s->stamp) {
        *entry = (sampler_entry_t){id, (int32_t)m->n_input, s->stamp};
        m->input[m->n_input++] = id;
    }
    return entry->number;
}

/* ---- One layer -------------------------------------------------------------------------------------------------- */

/* Asks the owners of the remote destinations. The seeds are owned by all ranks, so their layer needs no exchange. */
static rudder_status_t sampler_ask(sampler_t *s, const minibatch_t *m, int64_t n_dst, rudder_error_t *error)
{
    int64_t n = 0;
    if (grow_array(&s->ask, &s->ask_capacity, n_dst, sizeof *s->ask) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to ask for the neighbours of %lld nodes",
                           (long long)n_dst);
    }
    for (int64_t i = 0; i < n_dst; i++) {
        if (!part_owns(s->part, m->input[i])) {
            s->ask[n++] = m->input[i];
        }
    }
    if (grow_array(&s->answer, &s->answer_capacity, n * (2 + s->fanout), sizeof *s->answer) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the neighbours of %lld nodes", (long long)n);
    }
    return exchange_rows(s->exchange, s->ask, n, (size_t)(2 + s->fanout) * sizeof *s->answer, sampler_serve, s,
                         s->answer, error);
}

/* Original ids, and indptr from the counts. */
static void sampler_count_layer(const sampler_t *s, const minibatch_t *m, block_t *block)
{
    const int64_t *answer = s->answer;
    block->indptr[0] = 0;
    for (int64_t i = 0; i < block->n_dst; i++) {
        int64_t count;
        if (part_owns(s->part, m->input[i])) {
            const int64_t row = m->input[i] - s->part->begin;
            count = sampler_count(s, row);
            block->dst_orig[i] = (uint64_t)s->part->orig_id[row];
        } else {
            block->dst_orig[i] = (uint64_t)answer[0];
            count = answer[1];
            assert(count >= 0 && count <= s->fanout);
            answer += 2 + s->fanout;
        }
        block->indptr[i + 1] = block->indptr[i] + count;
    }
    block->n_edges = block->indptr[block->n_dst];
}

/* The drawn neighbours of all destinations, as global ids. */
static void sampler_draw_layer(sampler_t *s, const minibatch_t *m, const block_t *block)
{
    const int64_t *answer = s->answer;
    for (int64_t i = 0; i < block->n_dst && block->n_edges > 0; i++) {
        int64_t *neighbour = s->drawn + block->indptr[i];
        if (part_owns(s->part, m->input[i])) {
            sampler_draw(s, m->input[i] - s->part->begin, neighbour);
        } else {
            memcpy(neighbour, answer + 2, (size_t)(block->indptr[i + 1] - block->indptr[i]) * sizeof *neighbour);
            answer += 2 + s->fanout;
        }
    }
}

/* Their local numbers. The table is larger than the caches: what is needed soon is called for ahead. */
static void sampler_number_layer(const sampler_t *s, minibatch_t *m, block_t *block)
{
    enum { AHEAD = 16 };
    for (int64_t e = 0; e < block->n_edges; e++) {
        if (e + AHEAD < block->n_edges) {
            __builtin_prefetch(&s->table[sampler_slot(s, s->drawn[e + AHEAD])], 1);
        }
        block->index[e] = sampler_number(s, m, s->drawn[e]);
    }
    block->n_src = m->n_input;
}

static rudder_status_t sampler_layer(sampler_t *s, int32_t l, minibatch_t *m, rudder_error_t *error)
{
    block_t *block = &m->block[l];
    int64_t *capacity = m->capacity[l];
    s->fanout = s->config.fanout[l];
    s->key = rng_key(RNG_SAMPLE, s->config.seed, (uint64_t)m->epoch, (uint64_t)m->step, (uint64_t)l);
    block->n_dst = m->n_input;
    if (l < m->n_layers - 1) {
        RUDDER_TRY(sampler_ask(s, m, block->n_dst, error));
    }
    if (grow_array(&block->indptr, &capacity[0], block->n_dst + 1, sizeof *block->indptr) != RUDDER_OK ||
        grow_array(&block->dst_orig, &capacity[2], block->n_dst, sizeof *block->dst_orig) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a block of %lld nodes", (long long)block->n_dst);
    }
    sampler_count_layer(s, m, block);
    if (grow_array(&block->index, &capacity[1], block->n_edges, sizeof *block->index) != RUDDER_OK ||
        grow_array(&s->drawn, &s->drawn_capacity, block->n_edges, sizeof *s->drawn) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a block of %lld edges", (long long)block->n_edges);
    }
    RUDDER_TRY(sampler_reserve(s, m, block->n_dst + block->n_edges, error));
    sampler_draw_layer(s, m, block);
    sampler_number_layer(s, m, block);
    return RUDDER_OK;
}

rudder_status_t sampler_sample(sampler_t *s, int64_t epoch, int64_t step, const int64_t *seeds, int64_t n,
                               minibatch_t *m, rudder_error_t *error)
{
    m->epoch = epoch;
    m->step = step;
    m->n_layers = s->config.n_layers;
    m->n_seeds = n;
    m->n_input = 0;
    sampler_forget(s);
    RUDDER_TRY(sampler_reserve(s, m, n, error));
    if (grow_array(&m->label, &m->label_capacity, n, sizeof *m->label) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the labels of %lld seeds", (long long)n);
    }
    for (int64_t i = 0; i < n; i++) {
        assert(part_owns(s->part, seeds[i]));
        m->label[i] = s->part->label[seeds[i] - s->part->begin];
        const int32_t number = sampler_number(s, m, seeds[i]);
        assert(number == i); /* distinct */
        (void)number;
    }
    for (int32_t l = m->n_layers - 1; l >= 0; l--) {
        RUDDER_TRY(sampler_layer(s, l, m, error));
    }
    return RUDDER_OK;
}

void minibatch_free(minibatch_t *m)
{
    for (int32_t l = 0; l < SAMPLER_MAX_LAYERS; l++) {
        free(m->block[l].indptr);
        free(m->block[l].index);
        free(m->block[l].dst_orig);
    }
    free(m->input);
    free(m->label);
    memset(m, 0, sizeof *m);
}
