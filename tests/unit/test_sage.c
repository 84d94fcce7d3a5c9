/*
 * GraphSAGE against a stored reference, against a model in plain loops and doubles (values, and gradients by differences),
 * and against itself: the same bits for any number of threads.
 */
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nn/adam.h"
#include "nn/kernels.h"
#include "nn/loss.h"
#include "nn/sage.h"
#include "numerics/random_minibatch.h"
#include "numerics/references.h"

static team_t *open_team(int32_t threads)
{
    team_t *team = NULL;
    assert_int_equal(team_open(threads, &team, NULL), RUDDER_OK);
    return team;
}

static sage_t *open_sage(const sage_config_t *config, team_t *team)
{
    sage_t *sage = NULL;
    assert_int_equal(sage_open(config, team, &sage, NULL), RUDDER_OK);
    return sage;
}

static float *random_rows(uint64_t key, int64_t n)
{
    random_stream_t stream = {.key = key};
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    random_floats(&stream, x, n);
    return x;
}

/* ---- The model in plain loops ----------------------------------------------------------------------------------- */

/* Logits [n_seeds][n_out] of the formula, in double. train: masks from the random numbers that the header promises. */
static void plain_logits(const sage_config_t *config, const double *w, const minibatch_t *minibatch, const float *x,
                         int train, double *logits)
{
    double *h = malloc((size_t)(minibatch->n_input * config->n_in + 1) * sizeof *h);
    for (int64_t i = 0; i < minibatch->n_input * config->n_in; i++) {
        h[i] = (double)x[i];
    }
    for (int32_t l = 0; l < config->n_layers; l++) {
        const block_t *block = &minibatch->block[l];
        const int last = l == config->n_layers - 1;
        const int32_t in = l == 0 ? config->n_in : config->n_hidden, out = last ? config->n_out : config->n_hidden;
        const double *w_self = w, *w_neigh = w + in * out, *bias = w + 2 * in * out;
        const uint64_t key =
            rng_key(RNG_DROPOUT, config->seed, (uint64_t)minibatch->epoch, (uint64_t)minibatch->step, (uint64_t)l);
        double *next = malloc((size_t)(block->n_dst * out + 1) * sizeof *next);
        for (int64_t i = 0; i < block->n_dst; i++) {
            const int64_t degree = block->indptr[i + 1] - block->indptr[i];
            for (int32_t o = 0; o < out; o++) {
                double z = bias[o];
                for (int32_t c = 0; c < in; c++) {
                    double sum = 0;
                    for (int64_t e = block->indptr[i]; e < block->indptr[i + 1]; e++) {
                        sum += h[block->index[e] * in + c];
                    }
                    z += w_self[o * in + c] * h[i * in + c];
                    z += w_neigh[o * in + c] * (degree == 0 ? 0 : sum / (double)degree);
                }
                if (!last) {
                    const uint32_t random = rng_philox(key, block->dst_orig[i], (uint64_t)o / 4).v[o % 4];
                    const double p = train ? (double)config->dropout : 0;
                    z = z < 0 || (double)random < floor(p * 4294967296.0) ? 0 : z / (1 - p);
                }
                next[i * out + o] = z;
            }
        }
        free(h);
        h = next;
        w += 2 * in * out + out;
    }
    memcpy(logits, h, (size_t)(minibatch->n_seeds * config->n_out) * sizeof *logits);
    free(h);
}

/* sum of direction x logits: a scalar whose gradient in the logits is `direction`. */
static double plain_along(const sage_config_t *config, const double *w, const minibatch_t *minibatch, const float *x,
                          int train, const float *direction, double *logits)
{
    double sum = 0;
    plain_logits(config, w, minibatch, x, train, logits);
    for (int64_t i = 0; i < minibatch->n_seeds * config->n_out; i++) {
        sum += (double)direction[i] * logits[i];
    }
    return sum;
}

/* All gradients by central differences, against sage_backward(). */
static void check_against_plain(const sage_config_t *config, const minibatch_t *minibatch, int train, int32_t threads)
{
    team_t *team = open_team(threads);
    sage_t *sage = open_sage(config, team);
    float *x = random_rows(11, minibatch->n_input * config->n_in);
    float *direction = random_rows(12, minibatch->n_seeds * config->n_out);
    double *logits = malloc((size_t)(minibatch->n_seeds * config->n_out + 1) * sizeof *logits);
    const float *found;
    int64_t n;
    float *parameters = sage_parameters(sage, &n);
    double *w = malloc((size_t)n * sizeof *w);
    for (int64_t i = 0; i < n; i++) { /* biases too shall matter */
        parameters[i] += 0.1f * rng_float((uint32_t)rng_mix((uint64_t)i)) - 0.05f;
        w[i] = (double)parameters[i];
    }
    memset(sage_gradients(sage), 0xff, (size_t)n * sizeof(float)); /* NaN: all of it must be overwritten */
    assert_int_equal(sage_forward(sage, minibatch, x, train, &found, NULL), RUDDER_OK);
    plain_logits(config, w, minibatch, x, train, logits);
    for (int64_t i = 0; i < minibatch->n_seeds * config->n_out; i++) {
        assert_true(fabs((double)found[i] - logits[i]) < 1e-5 * (1 + fabs(logits[i])));
    }
    assert_int_equal(sage_backward(sage, minibatch, x, direction, NULL), RUDDER_OK);
    const float *gradients = sage_gradients(sage);
    for (int64_t i = 0; i < n; i++) {
        const double at = w[i], step = 1e-6;
        w[i] = at + step;
        const double up = plain_along(config, w, minibatch, x, train, direction, logits);
        w[i] = at - step;
        const double down = plain_along(config, w, minibatch, x, train, direction, logits);
        w[i] = at;
        const double slope = (up - down) / (2 * step);
        if (fabs((double)gradients[i] - slope) > 2e-5 * (1 + fabs(slope))) {
            fail_msg("%d layers, train %d, gradient %lld of %lld: %.9g, by differences %.9g", config->n_layers, train,
                     (long long)i, (long long)n, (double)gradients[i], slope);
        }
    }
    free(w);
    free(logits);
    free(direction);
    free(x);
    sage_close(sage);
    team_close(team);
}

static void gradients_agree_with_differences(void **state)
{
    static const int32_t fanout[SAMPLER_MAX_LAYERS] = {3, 2, 2, 1, 1, 1, 1, 1};
    static const int32_t layers[] = {1, 2, 3, 8};
    (void)state;
    for (int k = 0; k < 4; k++) {
        for (int train = 0; train <= 1; train++) {
            sage_config_t config = {
                .n_layers = layers[k], .n_in = 5, .n_hidden = 6, .n_out = 3, .dropout = 0.4f, .seed = 3};
            minibatch_t minibatch;
            random_minibatch(20 + (uint64_t)k, layers[k], fanout, 6, 40, 5, 3, &minibatch);
            check_against_plain(&config, &minibatch, train, 1 + k % 2);
            random_minibatch_free(&minibatch);
        }
    }
}

static void edge_ladder(void **state)
{
    static const int32_t fanouts[][SAMPLER_MAX_LAYERS] = {{0, 0}, {0, 3}, {3, 0}, {4, 4}};
    static const int32_t seeds[] = {0, 1, 2, 5};
    static const int32_t all[][3] = {{1, 1, 1}, {1, 4, 2}, {7, 1, 1}, {3, 5, 17}};
    (void)state;
    for (int k = 0; k < 4 * 4 * 4; k++) {
        const int32_t *width = all[k % 4];
        sage_config_t config = {
            .n_layers = 2, .n_in = width[0], .n_hidden = width[1], .n_out = width[2], .dropout = 0.5f};
        minibatch_t minibatch;
        random_minibatch((uint64_t)k, 2, fanouts[k / 4 % 4], seeds[k / 16], 6, k % 3 == 0 ? 1 : 0, 2, &minibatch);
        check_against_plain(&config, &minibatch, k % 2, 2);
        random_minibatch_free(&minibatch);
    }
}

/* Rows on both sides of the boundaries of tiles. */
static void many_tiles(void **state)
{
    static const int32_t fanout[2] = {3, 2};
    static const int32_t seeds[] = {255, 256, 257, 511, 513, 1200};
    (void)state;
    for (int k = 0; k < 6; k++) {
        const sage_config_t config = {.n_layers = 2, .n_in = 4, .n_hidden = 3, .n_out = 2, .dropout = 0.25f, .seed = 5};
        minibatch_t minibatch;
        random_minibatch((uint64_t)k, 2, fanout, seeds[k], 9000, 7, 2, &minibatch);
        check_against_plain(&config, &minibatch, 1, 2);
        random_minibatch_free(&minibatch);
    }
}

/* ---- The stored reference --------------------------------------------------------------------------------------- */

/* A minibatch from the reference's blocks. Freed by random_minibatch_free(). */
static void read_minibatch(const cJSON *reference, minibatch_t *minibatch)
{
    const cJSON *blocks = cJSON_GetObjectItem(reference, "blocks");
    int64_t n;
    *minibatch = (minibatch_t){.n_layers = cJSON_GetArraySize(blocks)};
    for (int32_t l = 0; l < minibatch->n_layers; l++) {
        const cJSON *item = cJSON_GetArrayItem(blocks, l);
        block_t *block = &minibatch->block[l];
        double *indptr = references_doubles(item, "indptr", &n);
        block->n_dst = (int64_t)references_number(item, "n_dst");
        block->n_src = (int64_t)references_number(item, "n_src");
        assert_int_equal(n, block->n_dst + 1);
        block->indptr = calloc((size_t)n, sizeof *block->indptr);
        for (int64_t i = 0; i < n; i++) {
            block->indptr[i] = (int64_t)indptr[i];
        }
        double *index = references_doubles(item, "index", &block->n_edges);
        block->index = calloc((size_t)block->n_edges + 1, sizeof *block->index);
        for (int64_t e = 0; e < block->n_edges; e++) {
            block->index[e] = (int32_t)index[e];
        }
        block->dst_orig = calloc((size_t)n, sizeof *block->dst_orig);
        free(index);
        free(indptr);
    }
    double *label = references_doubles(reference, "labels", &minibatch->n_seeds);
    minibatch->label = calloc((size_t)minibatch->n_seeds + 1, sizeof *minibatch->label);
    for (int64_t i = 0; i < minibatch->n_seeds; i++) {
        minibatch->label[i] = (int32_t)label[i];
    }
    free(label);
    minibatch->n_input = minibatch->block[0].n_src;
}

static void assert_near(const cJSON *reference, const char *name, const float *found, int64_t n, double tolerance)
{
    int64_t n_expected;
    double *expected = references_doubles(reference, name, &n_expected);
    assert_int_equal(n_expected, n);
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs((double)found[i] - expected[i]) <= tolerance * (1 + fabs(expected[i])))) {
            fail_msg("%s %lld: %.9g, expected %.9g", name, (long long)i, (double)found[i], expected[i]);
        }
    }
    free(expected);
}

/* Mean loss of the labelled rows; the gradients are left in the model. */
static double train_step(sage_t *sage, const minibatch_t *minibatch, const float *x, int32_t classes, int train)
{
    float *d_logits = calloc((size_t)(minibatch->n_seeds * classes) + 1, sizeof *d_logits);
    int64_t labelled = 0;
    const float *logits;
    assert_int_equal(sage_forward(sage, minibatch, x, train, &logits, NULL), RUDDER_OK);
    for (int64_t i = 0; i < minibatch->n_seeds; i++) {
        labelled += minibatch->label[i] >= 0;
    }
    const double loss = loss_cross_entropy(logits, minibatch->label, minibatch->n_seeds, classes,
                                           1.0f / (float)labelled, d_logits, NULL, NULL);
    assert_int_equal(sage_backward(sage, minibatch, x, d_logits, NULL), RUDDER_OK);
    free(d_logits);
    return loss / (double)labelled;
}

static void check_reference(const cJSON *reference)
{
    minibatch_t minibatch;
    int64_t n_widths, n_x, n, n_stored;
    double *width = references_doubles(reference, "widths", &n_widths);
    float *x = references_floats(reference, "x", &n_x);
    float *stored = references_floats(reference, "parameters", &n_stored);
    read_minibatch(reference, &minibatch);
    const int32_t classes = (int32_t)width[n_widths - 1];
    const sage_config_t config = {
        .n_layers = minibatch.n_layers, .n_in = (int32_t)width[0], .n_hidden = (int32_t)width[1], .n_out = classes};
    team_t *team = open_team(2);
    sage_t *sage = open_sage(&config, team);
    float *parameters = sage_parameters(sage, &n);
    const float *logits;
    adam_t adam;
    assert_int_equal(n, n_stored);
    assert_int_equal(n_x, minibatch.n_input * config.n_in);
    memcpy(parameters, stored, (size_t)n * sizeof *parameters);
    assert_int_equal(sage_forward(sage, &minibatch, x, 1, &logits, NULL), RUDDER_OK);
    assert_near(reference, "logits", logits, minibatch.n_seeds * classes, 1e-6);
    const double loss = train_step(sage, &minibatch, x, classes, 1);
    assert_true(fabs(loss - references_number(reference, "loss")) < 1e-6);
    assert_near(reference, "gradients", sage_gradients(sage), n, 1e-6);
    assert_int_equal(adam_open(n, (float)references_number(reference, "adam_rate"), &adam, NULL), RUDDER_OK);
    for (int step = 0; step < (int)references_number(reference, "adam_steps"); step++) {
        train_step(sage, &minibatch, x, classes, 1);
        adam_step(&adam, parameters, sage_gradients(sage));
    }
    assert_near(reference, "adam_parameters", parameters, n, 1e-5);
    assert_true(fabs(train_step(sage, &minibatch, x, classes, 1) - references_number(reference, "adam_loss")) < 1e-5);
    adam_close(&adam);
    sage_close(sage);
    team_close(team);
    random_minibatch_free(&minibatch);
    free(stored);
    free(x);
    free(width);
}

static void the_reference_is_met(void **state)
{
    cJSON *root = references_read();
    const cJSON *cases = cJSON_GetObjectItem(root, "sage"), *item;
    (void)state;
    assert_int_equal(cJSON_GetArraySize(cases), 2);
    cJSON_ArrayForEach(item, cases)
    {
        check_reference(item);
    }
    cJSON_Delete(root);
}

/* ---- Bits ------------------------------------------------------------------------------------------------------- */

/* A few steps of training over minibatches that grow and shrink; everything that comes out goes into out[*n]. */
static void train_some(int32_t threads, const sage_config_t *config, float **out, int64_t *n)
{
    static const int32_t fanout[3] = {4, 3, 3};
    static const int32_t seeds[] = {700, 3, 0, 1300, 257};
    team_t *team = open_team(threads);
    sage_t *sage = open_sage(config, team);
    int64_t n_parameters;
    float *parameters = sage_parameters(sage, &n_parameters);
    adam_t adam;
    *n = 0;
    *out = malloc((size_t)(5 * 2 * n_parameters + 3000 * config->n_out) * sizeof **out);
    assert_int_equal(adam_open(n_parameters, 0.01f, &adam, NULL), RUDDER_OK);
    for (int step = 0; step < 5; step++) {
        minibatch_t minibatch;
        const float *logits;
        random_minibatch(50 + (uint64_t)step, config->n_layers, fanout, seeds[step], 20000, 9, config->n_out,
                         &minibatch);
        minibatch.step = step;
        float *x = random_rows((uint64_t)step, minibatch.n_input * config->n_in);
        float *d_logits = random_rows(90, minibatch.n_seeds * config->n_out);
        assert_int_equal(sage_forward(sage, &minibatch, x, 1, &logits, NULL), RUDDER_OK);
        memcpy(*out + *n, logits, (size_t)(minibatch.n_seeds * config->n_out) * sizeof *logits);
        *n += minibatch.n_seeds * config->n_out;
        assert_int_equal(sage_backward(sage, &minibatch, x, d_logits, NULL), RUDDER_OK);
        memcpy(*out + *n, sage_gradients(sage), (size_t)n_parameters * sizeof *logits);
        *n += n_parameters;
        adam_step(&adam, parameters, sage_gradients(sage));
        memcpy(*out + *n, parameters, (size_t)n_parameters * sizeof *parameters);
        *n += n_parameters;
        free(d_logits);
        free(x);
        random_minibatch_free(&minibatch);
    }
    adam_close(&adam);
    sage_close(sage);
    team_close(team);
}

static void bits_do_not_depend_on_threads(void **state)
{
    static const int32_t threads[] = {1, 2, 3, 5};
    static const sage_config_t configs[] = {
        {.n_layers = 2, .n_in = 33, .n_hidden = 20, .n_out = 7, .dropout = 0.2f, .seed = 1},
        {.n_layers = 3, .n_in = 16, .n_hidden = 64, .n_out = 45, .dropout = 0.5f, .seed = 2},
    };
    (void)state;
    for (int c = 0; c < 2; c++) {
        float *expected = NULL;
        int64_t n_expected = 0;
        for (int k = 0; k < 4; k++) {
            float *found;
            int64_t n;
            train_some(threads[k], &configs[c], &found, &n);
            if (k == 0) {
                expected = found;
                n_expected = n;
                continue;
            }
            assert_int_equal(n, n_expected);
            assert_memory_equal(found, expected, (size_t)n * sizeof *found);
            free(found);
        }
        free(expected);
    }
}

static void no_seeds_give_zero_gradients(void **state)
{
    static const int32_t fanout[2] = {2, 2};
    const sage_config_t config = {.n_layers = 2, .n_in = 3, .n_hidden = 4, .n_out = 2, .dropout = 0.5f};
    team_t *team = open_team(2);
    sage_t *sage = open_sage(&config, team);
    minibatch_t minibatch;
    const float *logits;
    int64_t n;
    (void)state;
    random_minibatch(1, 2, fanout, 0, 5, 0, 2, &minibatch);
    sage_parameters(sage, &n);
    memset(sage_gradients(sage), 0xff, (size_t)n * sizeof(float));
    assert_int_equal(sage_forward(sage, &minibatch, NULL, 1, &logits, NULL), RUDDER_OK);
    assert_int_equal(sage_backward(sage, &minibatch, NULL, NULL, NULL), RUDDER_OK);
    for (int64_t i = 0; i < n; i++) {
        assert_true(sage_gradients(sage)[i] == 0);
    }
    random_minibatch_free(&minibatch);
    sage_close(sage);
    team_close(team);
}

static void steps_and_ids_draw_their_own_masks(void **state)
{
    static const int32_t fanout[2] = {3, 3};
    const sage_config_t config = {.n_layers = 2, .n_in = 8, .n_hidden = 16, .n_out = 4, .dropout = 0.5f, .seed = 1};
    team_t *team = open_team(1);
    sage_t *sage = open_sage(&config, team);
    minibatch_t minibatch;
    const float *logits;
    float kept[4][80];
    (void)state;
    random_minibatch(1, 2, fanout, 20, 200, 0, 4, &minibatch);
    float *x = random_rows(1, minibatch.n_input * config.n_in);
    for (int k = 0; k < 4; k++) {
        minibatch.step = k == 1 ? 8 : 7;
        minibatch.epoch = k == 2 ? 2 : 1;
        assert_int_equal(sage_forward(sage, &minibatch, x, 1, &logits, NULL), RUDDER_OK);
        memcpy(kept[k], logits, sizeof kept[k]);
    }
    assert_memory_equal(kept[0], kept[3], sizeof kept[0]);
    assert_memory_not_equal(kept[0], kept[1], sizeof kept[0]);
    assert_memory_not_equal(kept[0], kept[2], sizeof kept[0]);
    assert_memory_not_equal(kept[1], kept[2], sizeof kept[0]);
    free(x);
    random_minibatch_free(&minibatch);
    sage_close(sage);
    team_close(team);
}

static void layer_by_layer_is_the_forward_pass(void **state)
{
    static const int32_t fanout[3] = {3, 3, 2};
    const sage_config_t config = {.n_layers = 3, .n_in = 9, .n_hidden = 17, .n_out = 5, .dropout = 0.5f, .seed = 1};
    team_t *team = open_team(2);
    sage_t *sage = open_sage(&config, team);
    minibatch_t minibatch;
    const float *logits;
    (void)state;
    random_minibatch(1, 3, fanout, 300, 9000, 11, 4, &minibatch);
    float *h = random_rows(1, minibatch.n_input * config.n_in), *x = h;
    assert_int_equal(sage_forward(sage, &minibatch, x, 0, &logits, NULL), RUDDER_OK);
    for (int32_t l = 0; l < 3; l++) {
        const block_t *block = &minibatch.block[l];
        float *mean = malloc((size_t)(block->n_dst * sage_width_in(sage, l)) * sizeof *mean);
        float *out = malloc((size_t)(block->n_dst * sage_width_out(sage, l)) * sizeof *out);
        kernel_mean_rows(block->indptr, block->index, 0, block->n_dst, h, sage_width_in(sage, l), mean);
        assert_int_equal(sage_layer(sage, l, h, mean, block->n_dst, out, NULL), RUDDER_OK);
        free(mean);
        free(h);
        h = out;
    }
    assert_memory_equal(h, logits, (size_t)(minibatch.n_seeds * config.n_out) * sizeof *h);
    free(h);
    random_minibatch_free(&minibatch);
    sage_close(sage);
    team_close(team);
}

static void weights_are_glorot_uniform(void **state)
{
    const sage_config_t config = {.n_layers = 2, .n_in = 256, .n_hidden = 64, .n_out = 45, .seed = 9};
    sage_config_t other = config;
    team_t *team = open_team(1);
    sage_t *sage = open_sage(&config, team), *same = open_sage(&config, team);
    int64_t n, at = 0;
    const float *w = sage_parameters(sage, &n);
    (void)state;
    assert_int_equal(n, 2 * 256 * 64 + 64 + 2 * 64 * 45 + 45);
    assert_memory_equal(w, sage_parameters(same, &n), (size_t)n * sizeof *w);
    other.seed = 10;
    sage_t *different = open_sage(&other, team);
    assert_memory_not_equal(w, sage_parameters(different, &n), (size_t)n * sizeof *w);
    for (int32_t l = 0; l < 2; l++) {
        const int64_t in = sage_width_in(sage, l), out = sage_width_out(sage, l);
        const double bound = sqrt(2) * sqrt(6.0 / (double)(in + out)), count = (double)(in * out);
        for (int matrix = 0; matrix < 2; matrix++, at += in * out) {
            double sum = 0, squares = 0;
            for (int64_t i = at; i < at + in * out; i++) {
                assert_true(fabs((double)w[i]) <= bound * 1.000001);
                sum += (double)w[i];
                squares += (double)w[i] * (double)w[i];
            }
            assert_true(fabs(sum / count) < 5 * bound / sqrt(3 * count));
            assert_true(fabs(squares / count / (bound * bound / 3) - 1) < 5 * sqrt(0.8 / count)); /* var of 3u^2: 4/5 */
        }
        assert_memory_not_equal(w + at - in * out, w + at - 2 * in * out, (size_t)(in * out) * sizeof *w);
        for (int64_t i = 0; i < out; i++, at++) {
            assert_true(w[at] == 0);
        }
    }
    sage_close(different);
    sage_close(same);
    sage_close(sage);
    sage_close(NULL);
    team_close(team);
}

/* Memory grows to the largest minibatch and stays. (Allocators that do not count give zeros: nothing is shown then.) */
static void memory_stays_once_it_has_grown(void **state)
{
    static const int32_t fanout[3] = {5, 4, 3};
    const sage_config_t config = {.n_layers = 3, .n_in = 20, .n_hidden = 12, .n_out = 5, .dropout = 0.5f};
    team_t *team = open_team(2);
    sage_t *sage = open_sage(&config, team);
    minibatch_t large, small;
    size_t held = 0;
    const float *first = NULL;
    (void)state;
    random_minibatch(1, 3, fanout, 400, 9000, 0, 4, &large);
    random_minibatch(2, 3, fanout, 20, 9000, 0, 4, &small);
    float *x = random_rows(1, large.n_input * config.n_in);
    float *d_logits = random_rows(1, large.n_seeds * config.n_out);
    for (int step = 0; step < 10; step++) {
        const minibatch_t *minibatch = step % 2 == 0 ? &large : &small;
        const float *logits;
        assert_int_equal(sage_forward(sage, minibatch, x, 1, &logits, NULL), RUDDER_OK);
        assert_int_equal(sage_backward(sage, minibatch, x, d_logits, NULL), RUDDER_OK);
        const struct mallinfo2 info = mallinfo2();
        if (step == 0) {
            first = logits;
            held = info.uordblks + info.hblkhd;
        }
        assert_ptr_equal(logits, first);
        assert_int_equal(info.uordblks + info.hblkhd, held);
    }
    free(d_logits);
    free(x);
    random_minibatch_free(&small);
    random_minibatch_free(&large);
    sage_close(sage);
    team_close(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree_with_differences),
        cmocka_unit_test(edge_ladder),
        cmocka_unit_test(many_tiles),
        cmocka_unit_test(the_reference_is_met),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(no_seeds_give_zero_gradients),
        cmocka_unit_test(steps_and_ids_draw_their_own_masks),
        cmocka_unit_test(layer_by_layer_is_the_forward_pass),
        cmocka_unit_test(weights_are_glorot_uniform),
        cmocka_unit_test(memory_stays_once_it_has_grown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
