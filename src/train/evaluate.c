/* Evaluation: for each layer the halo's rows are fetched once, then chunks of owned nodes pass through it. */
#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "nn/loss.h"

enum {
    EVALUATE_CHUNK = 4096,           /* owned nodes that pass through a layer at once */
    EVALUATE_TILE = 64,              /* of them, by one thread */
    EVALUATE_ROUND_BYTES = 16 << 20, /* halo rows of one round */
    EVALUATE_ALIGNMENT = 64
};

struct evaluate {
    evaluate_config_t config;
    float *h[2]; /* [n_owned][width]: a layer's input and output, in turns; NULL where not needed */
    float *halo; /* [n_halo][width] */
    float *mean; /* [EVALUATE_CHUNK][width] */
    float *logits;
    int32_t *label;
};

/* What a layer is computed from. */
typedef struct evaluate_layer {
    const evaluate_t *evaluate;
    const float *h; /* [n_owned][width] */
    int32_t width;
    int64_t first, n; /* owned nodes of the chunk */
} evaluate_layer_t;

static int32_t evaluate_max(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* Floats of the arrays: hidden rows (twice with three layers or more), halo, means, logits. */
static void evaluate_sizes(const evaluate_config_t *config, size_t size[5])
{
    const int32_t last = config->n_layers - 1;
    int32_t width = 0, halo = 0, hidden = 0;
    for (int32_t l = 0; l <= last; l++) {
        width = evaluate_max(width, sage_width_in(config->sage, l));
        halo = config->fanout[l] > 0 ? evaluate_max(halo, sage_width_in(config->sage, l)) : halo;
        hidden = l < last ? evaluate_max(hidden, sage_width_out(config->sage, l)) : hidden;
    }
    size[0] = last > 0 ? (size_t)config->part->n_owned * (size_t)hidden : 0;
    size[1] = last > 1 ? size[0] : 0;
    size[2] = (size_t)config->part->n_halo * (size_t)halo;
    size[3] = (size_t)EVALUATE_CHUNK * (size_t)width;
    size[4] = (size_t)EVALUATE_CHUNK * (size_t)sage_width_out(config->sage, last);
}

int64_t evaluate_memory(const evaluate_config_t *config)
{
    size_t size[5];
    evaluate_sizes(config, size);
    return (int64_t)((size[0] + size[1] + size[2] + size[3] + size[4]) * sizeof(float) +
                     EVALUATE_CHUNK * sizeof(int32_t));
}

/* Position of a remote node in the halo, -1 when it is not there. */
static int64_t evaluate_find(const part_t *part, int64_t id)
{
    int64_t low = 0, high = part->n_halo;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (part->halo[middle] <= id) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return part->n_halo > 0 && part->halo[low] == id ? low : -1;
}

/* Every remote neighbour is in the halo, so that no row is looked for in vain later. */
static rudder_status_t evaluate_check(const part_t *part, rudder_error_t *error)
{
    for (int64_t e = 0; e < part->n_edges; e++) {
        const int64_t id = part->indices[e];
        if (!part_owns(part, id) && evaluate_find(part, id) < 0) {
            return RUDDER_FAIL(
                error, RUDDER_E_DATA,
                "part%d/halo.npy: expected all in-neighbours that other parts own, node %lld is not there",
                (int)part->number, (long long)id);
        }
    }
    return RUDDER_OK;
}

rudder_status_t evaluate_open(const evaluate_config_t *config, evaluate_t **out, rudder_error_t *error)
{
    RUDDER_TRY(evaluate_check(config->part, error));
    evaluate_t *evaluate = calloc(1, sizeof *evaluate);
    if (evaluate == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the evaluation");
    }
    evaluate->config = *config;
    size_t size[5];
    evaluate_sizes(config, size);
    float **array[5] = {&evaluate->h[0], &evaluate->h[1], &evaluate->halo, &evaluate->mean, &evaluate->logits};
    int failed = 0;
    for (int i = 0; i < 5 && !failed; i++) {
        void *memory = NULL;
        failed = size[i] > 0 && posix_memalign(&memory, EVALUATE_ALIGNMENT, size[i] * sizeof(float)) != 0;
        *array[i] = memory;
    }
    evaluate->label = malloc(EVALUATE_CHUNK * sizeof *evaluate->label);
    if (failed || evaluate->label == NULL) {
        evaluate_close(evaluate);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "the evaluation needs %lld bytes",
                           (long long)evaluate_memory(config));
    }
    *out = evaluate;
    return RUDDER_OK;
}

void evaluate_close(evaluate_t *evaluate)
{
    if (evaluate == NULL) {
        return;
    }
    free(evaluate->h[0]);
    free(evaluate->h[1]);
    free(evaluate->halo);
    free(evaluate->mean);
    free(evaluate->logits);
    free(evaluate->label);
    free(evaluate);
}

static void evaluate_serve(void *context, const int64_t *ids, int64_t n, void *rows)
{
    const evaluate_layer_t *layer = context;
    const size_t width = (size_t)layer->width;
    for (int64_t i = 0; i < n; i++) {
        memcpy((float *)rows + (size_t)i * width,
               layer->h + (size_t)(ids[i] - layer->evaluate->config.part->begin) * width, width * sizeof(float));
    }
}

/* Fetches the layer's input rows of all halo nodes. */
static rudder_status_t evaluate_halo(const evaluate_layer_t *layer, rudder_error_t *error)
{
    const evaluate_t *evaluate = layer->evaluate;
    const part_t *part = evaluate->config.part;
    const int64_t round = EVALUATE_ROUND_BYTES / ((int64_t)sizeof(float) * layer->width) + 1;
    int64_t done = 0;
    int again = 1;
    while (again) {
        const int64_t n = part->n_halo - done < round ? part->n_halo - done : round;
        float *rows = n > 0 ? evaluate->halo + (size_t)done * (size_t)layer->width : NULL;
        RUDDER_TRY(exchange_rows_more(evaluate->config.exchange, n > 0 ? part->halo + done : NULL, n,
                                      (size_t)layer->width * sizeof(float), evaluate_serve, (void *)layer, rows,
                                      done + n < part->n_halo, &again, error));
        done += n;
    }
    return RUDDER_OK;
}

static const float *evaluate_row(const evaluate_layer_t *layer, int64_t id)
{
    const part_t *part = layer->evaluate->config.part;
    const size_t width = (size_t)layer->width;
    return part_owns(part, id) ? layer->h + (size_t)(id - part->begin) * width
                               : layer->evaluate->halo + (size_t)evaluate_find(part, id) * width;
}

/* mean[i][width] over all in-neighbours of the chunk's nodes, in their order; 0 where there is none. */
static void evaluate_mean(void *context, int64_t tile, int32_t thread)
{
    (void)thread;
    const evaluate_layer_t *layer = context;
    const part_t *part = layer->evaluate->config.part;
    const int64_t end = (tile + 1) * EVALUATE_TILE < layer->n ? (tile + 1) * EVALUATE_TILE : layer->n;
    for (int64_t i = tile * EVALUATE_TILE; i < end; i++) {
        float *mean = layer->evaluate->mean + (size_t)i * (size_t)layer->width;
        const int64_t from = part->indptr[layer->first + i], to = part->indptr[layer->first + i + 1];
        memset(mean, 0, (size_t)layer->width * sizeof *mean);
        for (int64_t e = from; e < to; e++) {
            const float *row = evaluate_row(layer, part->indices[e]);
            for (int32_t c = 0; c < layer->width; c++) {
                mean[c] += row[c];
            }
        }
        if (to > from) {
            const float share = 1.0F / (float)(to - from);
            for (int32_t c = 0; c < layer->width; c++) {
                mean[c] *= share;
            }
        }
    }
}

/* Counts the chunk's nodes of one split: labelled ones, and those whose largest logit is the label. */
static void evaluate_count(const evaluate_layer_t *layer, uint8_t split, double *counted, double *right)
{
    const evaluate_t *evaluate = layer->evaluate;
    const part_t *part = evaluate->config.part;
    int64_t n_counted, n_right;
    for (int64_t i = 0; i < layer->n; i++) {
        const int64_t node = layer->first + i;
        evaluate->label[i] = part->split[node] == split ? part->label[node] : -1;
    }
    loss_cross_entropy(evaluate->logits, evaluate->label, layer->n, evaluate->config.parts->n_classes, 0, NULL,
                       &n_counted, &n_right);
    *counted += (double)n_counted;
    *right += (double)n_right;
}

rudder_status_t evaluate_run(evaluate_t *evaluate, double *valid, double *test, rudder_error_t *error)
{
    const evaluate_config_t *config = &evaluate->config;
    double sums[4] = {0}; /* validation: counted, right; test: counted, right */
    const float *in = config->part->feat;
    for (int32_t l = 0; l < config->n_layers; l++) {
        const int last = l == config->n_layers - 1;
        const int32_t width_out = sage_width_out(config->sage, l);
        float *out = last ? NULL : evaluate->h[l % 2];
        evaluate_layer_t layer = {.evaluate = evaluate, .h = in, .width = sage_width_in(config->sage, l)};
        if (config->fanout[l] > 0) {
            RUDDER_TRY(evaluate_halo(&layer, error));
        } else {
            memset(evaluate->mean, 0, (size_t)EVALUATE_CHUNK * (size_t)layer.width * sizeof(float));
        }
        for (layer.first = 0; layer.first < config->part->n_owned; layer.first += EVALUATE_CHUNK) {
            const int64_t left = config->part->n_owned - layer.first;
            layer.n = left < EVALUATE_CHUNK ? left : EVALUATE_CHUNK;
            if (config->fanout[l] > 0) {
                team_run(config->team, (layer.n + EVALUATE_TILE - 1) / EVALUATE_TILE, evaluate_mean, &layer);
            }
            float *to = last ? evaluate->logits : out + (size_t)layer.first * (size_t)width_out;
            RUDDER_TRY(sage_layer(config->sage, l, in + (size_t)layer.first * (size_t)layer.width, evaluate->mean,
                                  layer.n, to, error));
            if (last) {
                evaluate_count(&layer, SPLIT_VALID, &sums[0], &sums[1]);
                evaluate_count(&layer, SPLIT_TEST, &sums[2], &sums[3]);
            }
        }
        in = out;
    }
    RUDDER_TRY(comm_sum_f64(config->comm, sums, 4, error));
    *valid = sums[0] > 0 ? sums[1] / sums[0] : NAN;
    *test = sums[2] > 0 ? sums[3] / sums[2] : NAN;
    return RUDDER_OK;
}
