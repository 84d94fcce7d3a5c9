/* Softmax cross-entropy. Rows are shifted by their largest logit, so that nothing overflows; sums are doubles. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "nn/loss.h"

/* The first of the largest logits. Comparisons with NaN are false, so a NaN is never found after position 0. */
static int32_t loss_argmax(const float *logits, int32_t classes)
{
    int32_t best = 0;
    for (int32_t c = 1; c < classes; c++) {
        best = logits[c] > logits[best] ? c : best;
    }
    return best;
}

double loss_cross_entropy(const float *logits, const int32_t *label, int64_t n, int32_t classes, float scale,
                          float *d_logits, int64_t *counted, int64_t *right)
{
    double loss = 0;
    int64_t n_counted = 0, n_right = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *row = logits + i * classes;
        float *d = d_logits == NULL ? NULL : d_logits + i * classes;
        assert(label[i] < classes);
        if (label[i] < 0) {
            if (d != NULL) {
                memset(d, 0, (size_t)classes * sizeof *d);
            }
            continue;
        }
        const int32_t best = loss_argmax(row, classes);
        const float top = row[best];
        double sum = 0;
        for (int32_t c = 0; c < classes; c++) {
            const float power = expf(row[c] - top);
            sum += (double)power;
            if (d != NULL) {
                d[c] = power;
            }
        }
        loss += log(sum) - ((double)row[label[i]] - (double)top);
        n_counted++;
        n_right += best == label[i] && !isnan(sum);
        if (d != NULL) {
            const float factor = (float)((double)scale / sum);
            for (int32_t c = 0; c < classes; c++) {
                d[c] *= factor;
            }
            d[label[i]] -= scale;
        }
    }
    if (counted != NULL) {
        *counted = n_counted;
    }
    if (right != NULL) {
        *right = n_right;
    }
    return loss;
}
