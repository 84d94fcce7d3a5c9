/*
 * GraphSAGE with mean aggregation, L layers (Hamilton, Ying, Leskovec, "Inductive representation learning on large
 * graphs", NeurIPS 2017; the formula of DGL's SAGEConv("mean")):
 *
 *     h'[i] = W_self h[i] + W_neigh mean(h[j], j in neighbours of i) + b,   ReLU and dropout after all layers but the last
 *
 * A node without neighbours has mean 0. float32; GEMM by OpenBLAS, one thread per call over fixed tiles, so that bits do
 * not depend on the number of threads. Fan-out 0 in every layer makes it an MLP on the features.
 */
#ifndef RUDDER_NN_SAGE_H
#define RUDDER_NN_SAGE_H

#include <stdint.h>

#include "base/team.h"
#include "rudder/status.h"
#include "sample/sampler.h"

typedef struct sage_config {
    int32_t n_layers;
    int32_t n_in, n_hidden, n_out; /* widths */
    float dropout;                 /* 0 <= p < 1 */
    uint64_t seed;                 /* of the weights and of dropout */
} sage_config_t;

typedef struct sage sage_t;

/* Weights: Glorot uniform with ReLU gain, bias 0, from the seed. team outlives the model. Errors: MEMORY. */
rudder_status_t sage_open(const sage_config_t *config, team_t *team, sage_t **sage, rudder_error_t *error);
void sage_close(sage_t *sage);

/*
 * All parameters and all gradients, each one array of *n floats, in the order: per layer W_self [out][in],
 * W_neigh [out][in], b [out]. Owned by the model.
 */
float *sage_parameters(sage_t *sage, int64_t *n);
float *sage_gradients(sage_t *sage);

/*
 * Forward pass of a minibatch: x[n_input][n_in] -> logits[n_seeds][n_out] (owned by the model, valid until the next call).
 * train = 1: dropout, keyed by (seed, epoch, step, layer, original id, column). Activations are kept for sage_backward().
 * Buffers grow to the largest minibatch seen. Errors: MEMORY.
 */
rudder_status_t sage_forward(sage_t *sage, const minibatch_t *minibatch, const float *x, int train,
                             const float **logits, rudder_error_t *error);

/* Gradients of all parameters from d_logits[n_seeds][n_out]; overwrites the gradients (zero when n_seeds is 0). */
rudder_status_t sage_backward(sage_t *sage, const minibatch_t *minibatch, const float *x, const float *d_logits,
                              rudder_error_t *error);

/*
 * One layer in inference, for evaluation over whole partitions: h_dst[n][in] are the destinations' own rows, mean[n][in]
 * their neighbours' means -> out[n][width of the layer], with ReLU but after the last layer. Not for two threads at once.
 */
rudder_status_t sage_layer(sage_t *sage, int32_t layer, const float *h_dst, const float *mean, int64_t n, float *out,
                           rudder_error_t *error);

/* Width of a layer's input and output. */
int32_t sage_width_in(const sage_t *sage, int32_t layer);
int32_t sage_width_out(const sage_t *sage, int32_t layer);

#endif
