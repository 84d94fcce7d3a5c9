/* Adam. Bias corrections are computed in double, the rest in float, one pass over the parameters. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "nn/adam.h"

rudder_status_t adam_open(int64_t n, float rate, adam_t *adam, rudder_error_t *error)
{
    float *m = calloc((size_t)n + 1, sizeof *m);
    float *v = calloc((size_t)n + 1, sizeof *v);
    if (m == NULL || v == NULL) {
        free(v);
        free(m);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "optimiser of %lld parameters: out of memory", (long long)n);
    }
    *adam = (adam_t){.rate = rate, .beta1 = .9f, .beta2 = .999f, .epsilon = 1e-8f, .n = n, .m = m, .v = v};
    return RUDDER_OK;
}

void adam_step(adam_t *adam, float *restrict parameters, const float *restrict gradients)
{
    const float beta1 = adam->beta1, beta2 = adam->beta2, epsilon = adam->epsilon;
    float *restrict m = adam->m;
    float *restrict v = adam->v;
    adam->step++;
    const double correction1 = 1 - pow((double)beta1, (double)adam->step);
    const double correction2 = 1 - pow((double)beta2, (double)adam->step);
    const float rate = (float)((double)adam->rate / correction1);
    const float scale = (float)(1 / sqrt(correction2));
    for (int64_t i = 0; i < adam->n; i++) {
        const float g = gradients[i];
        m[i] = beta1 * m[i] + (1 - beta1) * g;
        v[i] = beta2 * v[i] + (1 - beta2) * g * g;
        parameters[i] -= rate * m[i] / (sqrtf(v[i]) * scale + epsilon);
    }
}

void adam_close(adam_t *adam)
{
    free(adam->v);
    free(adam->m);
    *adam = (adam_t){0};
}
