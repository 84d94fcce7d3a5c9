/*
 * Powers and logarithms of two with the same bits on every machine, which libm does not promise: made of multiplications and
 * square roots, which IEEE 754 rounds in one way only, and of no sum that a compiler could fuse with a product.
 */
#ifndef RUDDER_GRAPH_EXACT_H
#define RUDDER_GRAPH_EXACT_H

#include <math.h>

enum { EXACT_BITS = 44 };

/* 2^-x for x >= 0; 0 where it is too small for a double. */
static inline double exact_halved(double x)
{
    double whole, rest = modf(x, &whole), power = 1, root = 0.5;
    for (int i = 0; i < EXACT_BITS; i++) {
        root = sqrt(root); /* 2^-(1/2), 2^-(1/4), ... */
        rest *= 2;
        if (rest >= 1) {
            rest -= 1;
            power *= root;
        }
    }
    return whole > 1100 ? 0 : ldexp(power, -(int)whole);
}

/* log2 of x >= 1. */
static inline double exact_log2(double x)
{
    int exponent;
    double bits = 0, weight = 0.5, rest = 2 * frexp(x, &exponent);
    for (int i = 0; i < EXACT_BITS; i++, weight *= 0.5) {
        rest *= rest;
        if (rest >= 2) {
            rest *= 0.5;
            bits += weight; /* exact */
        }
    }
    return exponent - 1 + bits;
}

#endif
