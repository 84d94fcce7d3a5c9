/*
 * GraphSAGE, forward and backward. A layer is one loop over tiles of destination rows: aggregate, multiply, bias, ReLU,
 * dropout while the tile is in cache. Gradients of weights are products over fixed tiles of rows, added up in the order of
 * tiles; gradients of rows are gathered over the transposed block. Tiles depend on the minibatch alone, never on the team.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "nn/kernels.h"
#include "nn/sage.h"

enum {
    SAGE_TILE = 256,          /* rows of a tile */
    SAGE_GRADIENT_ROWS = 512, /* gradients of weights: a tile has at least so many rows, ... */
    SAGE_GRADIENT_TILES = 32, /* ... and there are at most so many, since each holds a copy of the gradients */
    SAGE_REDUCE_TILE = 4096   /* parameters of a tile when the copies are added up */
};

/* Rows that begin on a cache line, as vector loads want it; they grow to what was needed most and are not kept then. */
typedef struct sage_buffer {
    void *data;
    size_t bytes;
} sage_buffer_t;

typedef struct sage_layer {
    int32_t in, out;
    int64_t self, neigh, bias, end; /* where its parameters begin and end */
    sage_buffer_t mean;             /* [n_dst][in] */
    sage_buffer_t h;                /* [n_dst][out], the layer's output */
} sage_layer_t;

struct sage {
    sage_config_t config;
    team_t *team;
    int64_t n_parameters;
    float *parameters, *gradients;
    float dropped;                 /* dropout of the last forward pass */
    sage_buffer_t partial;         /* [tiles][parameters of a layer] */
    sage_buffer_t d_mean;          /* [n_dst][in], gradient of the means times 1/degree */
    sage_buffer_t d_h[2];          /* [n_src][in], gradient of a layer's input; two layers take turns */
    sage_buffer_t indptr_t, row_t; /* transposed block */
    sage_layer_t layer[SAMPLER_MAX_LAYERS];
};

/* One loop over the tiles of a layer, forward or backward. */
typedef struct sage_job {
    const sage_t *sage;
    const sage_layer_t *layer;
    const block_t *block;
    int64_t n, tile; /* rows in all and in a tile */
    const float *h;  /* [n_src][in], the layer's input */
    float *mean;     /* [n][in] */
    float *out;      /* [n][out] */
    int relu;
    float dropout;
    uint64_t key;
    const float *d_out; /* [n][out], gradient of the output before ReLU and dropout */
    float *partial;     /* [tiles][parameters of the layer] */
    int64_t n_partials;
    float *d_mean, *d_h; /* NULL in the first layer */
    float *gradients;    /* of the layer */
    const int64_t *indptr_t;
    const int32_t *row_t;
} sage_job_t;

static rudder_status_t sage_reserve(sage_buffer_t *buffer, int64_t count, size_t item_bytes, rudder_error_t *error)
{
    const size_t needed = (size_t)count * item_bytes;
    if (needed <= buffer->bytes && buffer->data != NULL) {
        return RUDDER_OK;
    }
    const size_t bytes = (needed + needed / 8 + 64) & ~(size_t)63; /* a little more, as minibatches vary */
    free(buffer->data);
    buffer->data = aligned_alloc(64, bytes);
    buffer->bytes = buffer->data == NULL ? 0 : bytes;
    if (buffer->data == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "model: out of memory (%zu bytes for a minibatch)", bytes);
    }
    return RUDDER_OK;
}

/* Uniform in [-bound, bound), bound = gain sqrt(6 / (in + out)) with the gain of ReLU, sqrt(2). */
static void sage_init_matrix(uint64_t key, uint64_t matrix, int32_t in, int32_t out, float *w)
{
    const float bound = (float)sqrt(2.0 * 6.0 / ((double)in + (double)out));
    for (int64_t i = 0; i < (int64_t)in * out; i++) {
        const rng_block_t block = rng_philox(key, (uint64_t)i / 4, matrix);
        w[i] = bound * (2 * rng_float(block.v[i % 4]) - 1);
    }
}

rudder_status_t sage_open(const sage_config_t *config, team_t *team, sage_t **sage, rudder_error_t *error)
{
    assert(config->n_layers >= 1 && config->n_layers <= SAMPLER_MAX_LAYERS);
    assert(config->dropout >= 0 && config->dropout < 1);
    kernel_blas_single();
    sage_t *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "model: out of memory");
    }
    s->config = *config;
    s->team = team;
    for (int32_t l = 0; l < config->n_layers; l++) {
        sage_layer_t *layer = &s->layer[l];
        layer->in = l == 0 ? config->n_in : config->n_hidden;
        layer->out = l == config->n_layers - 1 ? config->n_out : config->n_hidden;
        layer->self = s->n_parameters;
        layer->neigh = layer->self + (int64_t)layer->in * layer->out;
        layer->bias = layer->neigh + (int64_t)layer->in * layer->out;
        layer->end = layer->bias + layer->out;
        s->n_parameters = layer->end;
    }
    s->parameters = calloc((size_t)s->n_parameters + 1, sizeof *s->parameters);
    s->gradients = calloc((size_t)s->n_parameters + 1, sizeof *s->gradients);
    if (s->parameters == NULL || s->gradients == NULL) {
        const int64_t n = s->n_parameters;
        sage_close(s);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "model of %lld parameters: out of memory", (long long)n);
    }
    for (int32_t l = 0; l < config->n_layers; l++) {
        const sage_layer_t *layer = &s->layer[l];
        const uint64_t key = rng_key(RNG_INIT, config->seed, 0, 0, (uint64_t)l);
        sage_init_matrix(key, 0, layer->in, layer->out, s->parameters + layer->self);
        sage_init_matrix(key, 1, layer->in, layer->out, s->parameters + layer->neigh);
    }
    *sage = s;
    return RUDDER_OK;
}

void sage_close(sage_t *sage)
{
    if (sage == NULL) {
        return;
    }
    for (int32_t l = 0; l < sage->config.n_layers; l++) {
        free(sage->layer[l].mean.data);
        free(sage->layer[l].h.data);
    }
    free(sage->row_t.data);
    free(sage->indptr_t.data);
    free(sage->d_h[1].data);
    free(sage->d_h[0].data);
    free(sage->d_mean.data);
    free(sage->partial.data);
    free(sage->gradients);
    free(sage->parameters);
    free(sage);
}

float *sage_parameters(sage_t *sage, int64_t *n)
{
    *n = sage->n_parameters;
    return sage->parameters;
}

float *sage_gradients(sage_t *sage)
{
    return sage->gradients;
}

int32_t sage_width_in(const sage_t *sage, int32_t layer)
{
    return sage->layer[layer].in;
}

int32_t sage_width_out(const sage_t *sage, int32_t layer)
{
    return sage->layer[layer].out;
}

/* ---- Forward ---------------------------------------------------------------------------------------------------- */

static int64_t sage_tiles(const sage_job_t *job)
{
    return (job->n + job->tile - 1) / job->tile;
}

static int64_t sage_tile_rows(const sage_job_t *job, int64_t begin)
{
    return begin + job->tile < job->n ? job->tile : job->n - begin;
}

/* out = h W_self^T + mean W_neigh^T + b, then ReLU. */
static void sage_dense_tile(void *context, int64_t tile, int32_t thread)
{
    const sage_job_t *job = context;
    const sage_layer_t *layer = job->layer;
    const float *parameters = job->sage->parameters;
    const int64_t begin = tile * job->tile, rows = sage_tile_rows(job, begin);
    float *out = job->out + begin * layer->out;
    (void)thread;
    kernel_gemm_nt(rows, layer->out, layer->in, job->h + begin * layer->in, parameters + layer->self, 0, out);
    kernel_gemm_nt(rows, layer->out, layer->in, job->mean + begin * layer->in, parameters + layer->neigh, 1, out);
    kernel_bias(out, rows, layer->out, parameters + layer->bias, job->relu);
}

static void sage_forward_tile(void *context, int64_t tile, int32_t thread)
{
    const sage_job_t *job = context;
    const block_t *block = job->block;
    const int64_t begin = tile * job->tile, rows = sage_tile_rows(job, begin);
    const int32_t width = job->layer->out;
    kernel_mean_rows(block->indptr, block->index, begin, begin + rows, job->h, job->layer->in, job->mean);
    sage_dense_tile(context, tile, thread);
    if (job->dropout > 0) {
        kernel_dropout(job->out + begin * width, rows, width, block->dst_orig + begin, job->key, job->dropout);
    }
}

rudder_status_t sage_forward(sage_t *sage, const minibatch_t *minibatch, const float *x, int train,
                             const float **logits, rudder_error_t *error)
{
    const sage_config_t *config = &sage->config;
    const float *h = x;
    assert(minibatch->n_layers == config->n_layers);
    sage->dropped = train ? config->dropout : 0;
    for (int32_t l = 0; l < config->n_layers; l++) {
        sage_layer_t *layer = &sage->layer[l];
        const block_t *block = &minibatch->block[l];
        const int last = l == config->n_layers - 1;
        RUDDER_TRY(sage_reserve(&layer->mean, block->n_dst * layer->in, sizeof(float), error));
        RUDDER_TRY(sage_reserve(&layer->h, block->n_dst * layer->out, sizeof(float), error));
        sage_job_t job = {.sage = sage,
                          .layer = layer,
                          .block = block,
                          .n = block->n_dst,
                          .tile = SAGE_TILE,
                          .h = h,
                          .mean = layer->mean.data,
                          .out = layer->h.data,
                          .relu = !last,
                          .dropout = last ? 0 : sage->dropped,
                          .key = rng_key(RNG_DROPOUT, config->seed, (uint64_t)minibatch->epoch,
                                         (uint64_t)minibatch->step, (uint64_t)l)};
        team_run(sage->team, sage_tiles(&job), sage_forward_tile, &job);
        h = layer->h.data;
    }
    *logits = h;
    return RUDDER_OK;
}

rudder_status_t sage_layer(sage_t *sage, int32_t layer, const float *h_dst, const float *mean, int64_t n, float *out,
                           rudder_error_t *error)
{
    sage_job_t job = {.sage = sage,
                      .layer = &sage->layer[layer],
                      .n = n,
                      .tile = SAGE_TILE,
                      .h = h_dst,
                      .mean = (float *)mean, /* only read by this tile function */
                      .out = out,
                      .relu = layer < sage->config.n_layers - 1};
    (void)error;
    team_run(sage->team, sage_tiles(&job), sage_dense_tile, &job);
    return RUDDER_OK;
}

/* ---- Backward --------------------------------------------------------------------------------------------------- */

/* A tile's share of the gradients of the layer's parameters and, but in the first layer, the gradients of its inputs. */
static void sage_backward_tile(void *context, int64_t tile, int32_t thread)
{
    const sage_job_t *job = context;
    const sage_layer_t *layer = job->layer;
    const int32_t in = layer->in, out = layer->out;
    const float *parameters = job->sage->parameters;
    const int64_t begin = tile * job->tile, rows = sage_tile_rows(job, begin);
    const float *d_out = job->d_out + begin * out;
    float *partial = job->partial + tile * (layer->end - layer->self);
    float *d_bias = partial + (layer->bias - layer->self);
    (void)thread;
    kernel_gemm_tn(out, in, rows, d_out, job->h + begin * in, 0, partial);
    kernel_gemm_tn(out, in, rows, d_out, job->mean + begin * in, 0, partial + (layer->neigh - layer->self));
    memset(d_bias, 0, (size_t)out * sizeof *d_bias);
    for (int64_t i = 0; i < rows; i++) {
        for (int32_t c = 0; c < out; c++) {
            d_bias[c] += d_out[i * out + c];
        }
    }
    if (job->d_h == NULL) {
        return;
    }
    kernel_gemm_nn(rows, in, out, d_out, parameters + layer->self, 0, job->d_h + begin * in);
    kernel_gemm_nn(rows, in, out, d_out, parameters + layer->neigh, 0, job->d_mean + begin * in);
    for (int64_t i = begin; i < begin + rows; i++) {
        const int64_t degree = job->block->indptr[i + 1] - job->block->indptr[i];
        const float factor = degree == 0 ? 0 : 1.0f / (float)degree;
        for (int32_t c = 0; c < in; c++) {
            job->d_mean[i * in + c] *= factor;
        }
    }
}

/* The sum of the tiles' shares, in their order. */
static void sage_reduce_tile(void *context, int64_t tile, int32_t thread)
{
    const sage_job_t *job = context;
    const int64_t n = job->layer->end - job->layer->self;
    const int64_t begin = tile * SAGE_REDUCE_TILE;
    const int64_t count = begin + SAGE_REDUCE_TILE < n ? SAGE_REDUCE_TILE : n - begin;
    float *restrict sum = job->gradients + begin;
    (void)thread;
    memset(sum, 0, (size_t)count * sizeof *sum);
    for (int64_t t = 0; t < job->n_partials; t++) {
        const float *restrict partial = job->partial + t * n + begin;
        for (int64_t i = 0; i < count; i++) {
            sum[i] += partial[i];
        }
    }
}

/* Gradients of the rows of the layer before: their own share plus what came through the means, back through ReLU. */
static void sage_gather_tile(void *context, int64_t tile, int32_t thread)
{
    const sage_job_t *job = context;
    const int32_t width = job->layer->in;
    const int64_t begin = tile * job->tile, rows = sage_tile_rows(job, begin);
    const int64_t own = job->block->n_dst > begin ? job->block->n_dst - begin : 0; /* rows that are destinations too */
    float *d_h = job->d_h + begin * width;
    (void)thread;
    if (own < rows) {
        memset(d_h + own * width, 0, (size_t)((rows - own) * width) * sizeof *d_h);
    }
    kernel_add_rows(job->indptr_t, job->row_t, begin, begin + rows, job->d_mean, width, job->d_h);
    kernel_back_relu(d_h, job->h + begin * width, rows, width, 1 / (1 - job->dropout));
}

/* One layer: from the gradient of its output to those of its parameters and, in job->d_h, of its input. */
static rudder_status_t sage_backward_layer(sage_t *sage, sage_job_t *job, rudder_error_t *error)
{
    const sage_layer_t *layer = job->layer;
    const block_t *block = job->block;
    const int64_t n_layer = layer->end - layer->self;
    const int64_t fair = (block->n_dst + SAGE_GRADIENT_TILES - 1) / SAGE_GRADIENT_TILES;
    job->n = block->n_dst;
    job->tile = fair > SAGE_GRADIENT_ROWS ? fair : SAGE_GRADIENT_ROWS;
    job->n_partials = sage_tiles(job);
    RUDDER_TRY(sage_reserve(&sage->partial, job->n_partials * n_layer, sizeof(float), error));
    job->partial = sage->partial.data;
    job->gradients = sage->gradients + layer->self;
    team_run(sage->team, job->n_partials, sage_backward_tile, job);
    team_run(sage->team, (n_layer + SAGE_REDUCE_TILE - 1) / SAGE_REDUCE_TILE, sage_reduce_tile, job);
    if (job->d_h != NULL) {
        RUDDER_TRY(sage_reserve(&sage->indptr_t, block->n_src + 1, sizeof(int64_t), error));
        RUDDER_TRY(sage_reserve(&sage->row_t, block->n_edges, sizeof(int32_t), error));
        kernel_transpose(block->indptr, block->index, block->n_dst, block->n_src, sage->indptr_t.data,
                         sage->row_t.data);
        job->indptr_t = sage->indptr_t.data;
        job->row_t = sage->row_t.data;
        job->n = block->n_src;
        job->tile = SAGE_TILE;
        team_run(sage->team, sage_tiles(job), sage_gather_tile, job);
    }
    return RUDDER_OK;
}

rudder_status_t sage_backward(sage_t *sage, const minibatch_t *minibatch, const float *x, const float *d_logits,
                              rudder_error_t *error)
{
    const float *d_out = d_logits;
    for (int32_t l = sage->config.n_layers - 1; l >= 0; l--) {
        sage_layer_t *layer = &sage->layer[l];
        const block_t *block = &minibatch->block[l];
        sage_job_t job = {.sage = sage,
                          .layer = layer,
                          .block = block,
                          .h = l == 0 ? x : sage->layer[l - 1].h.data,
                          .mean = layer->mean.data,
                          .dropout = sage->dropped,
                          .d_out = d_out};
        if (l > 0) {
            RUDDER_TRY(sage_reserve(&sage->d_mean, block->n_dst * layer->in, sizeof(float), error));
            RUDDER_TRY(sage_reserve(&sage->d_h[l % 2], block->n_src * layer->in, sizeof(float), error));
            job.d_mean = sage->d_mean.data;
            job.d_h = sage->d_h[l % 2].data;
        }
        RUDDER_TRY(sage_backward_layer(sage, &job, error));
        d_out = job.d_h;
    }
    return RUDDER_OK;
}
