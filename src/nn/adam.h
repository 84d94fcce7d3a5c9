/*
 * Adam (Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015), as PyTorch's torch.optim.Adam:
 * bias-corrected, no decay of weights.
 */
#ifndef RUDDER_NN_ADAM_H
#define RUDDER_NN_ADAM_H

#include <stdint.h>

#include "rudder/status.h"

typedef struct adam {
    float rate, beta1, beta2, epsilon;
    int64_t n, step;
    float *m, *v; /* [n] */
} adam_t;

/* beta1 .9, beta2 .999, epsilon 1e-8. Errors: MEMORY. */
rudder_status_t adam_open(int64_t n, float rate, adam_t *adam, rudder_error_t *error);
void adam_step(adam_t *adam, float *parameters, const float *gradients);
void adam_close(adam_t *adam);

#endif
