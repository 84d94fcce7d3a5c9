/* Losses. */
#ifndef RUDDER_NN_LOSS_H
#define RUDDER_NN_LOSS_H

#include <stdint.h>

/*
 * Softmax cross-entropy of logits[n][classes] with label[n]; label -1 is ignored. Returns the *sum* of the losses (a
 * double, added up in order). d_logits[n][classes] = scale x (softmax - one-hot), 0 for ignored rows; may be NULL.
 * *counted: rows with a label; *right: rows whose largest logit (the first one on ties) is the label. Either may be NULL.
 */
double loss_cross_entropy(const float *logits, const int32_t *label, int64_t n, int32_t classes, float scale,
                          float *d_logits, int64_t *counted, int64_t *right);

#endif
