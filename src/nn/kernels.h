/*
 * Kernels on rows. Shapes are [rows][width], row-major. They work on the rows they are given, as the bodies of tiles. Each
 * value is computed by one thread in a fixed order, so bits do not depend on how rows are cut into tiles.
 */
#ifndef RUDDER_NN_KERNELS_H
#define RUDDER_NN_KERNELS_H

#include <stdint.h>

#include "rudder/status.h"

/*
 * mean[i] = mean over e in [indptr[i], indptr[i+1]) of x[index[e]], 0 where there is none, for the rows i in [begin, end).
 * Sums in the order of e, then times 1/degree. x [n_src][width], mean [n][width]. Cost: O(edges x width).
 */
void kernel_mean_rows(const int64_t *indptr, const int32_t *index, int64_t begin, int64_t end, const float *x,
                      int32_t width, float *mean);
/* sum[i] += x[index[e]] over the edges of i, in their order, for the rows i in [begin, end). */
void kernel_add_rows(const int64_t *indptr, const int32_t *index, int64_t begin, int64_t end, const float *x,
                     int32_t width, float *sum);
/*
 * The edges seen from the other side: for the source j, row[indptr_t[j] .. indptr_t[j + 1]) are the i whose edges lead to
 * j, ascending. indptr_t [n_src + 1], row [edges]. Cost: O(edges + n_src), one thread.
 */
void kernel_transpose(const int64_t *indptr, const int32_t *index, int64_t n, int64_t n_src, int64_t *indptr_t,
                      int32_t *row);

/* z[i] += bias; then, with relu = 1, negative values become 0 (NaN stays). z [n][width]. */
void kernel_bias(float *z, int64_t n, int32_t width, const float *bias, int relu);
/*
 * Inverted dropout: h[i][c] becomes 0 with probability p and h[i][c] / (1 - p) otherwise. The random number of (i, c) is
 * word c % 4 of the Philox block (key; id[i], c / 4).
 */
void kernel_dropout(float *h, int64_t n, int32_t width, const uint64_t *id, uint64_t key, float p);
/* Back through ReLU and dropout: d[i] = h[i] > 0 ? scale x d[i] : 0, where h came out of them. */
void kernel_back_relu(float *d, const float *h, int64_t n, int32_t width, float scale);

/*
 * Products by OpenBLAS, in the caller's thread alone. c [m][n] is overwritten, with add = 1 added to.
 * nt: a [m][k] times b [n][k] transposed. nn: a [m][k] times b [k][n]. tn: a [k][m] transposed times b [k][n].
 */
void kernel_gemm_nt(int64_t m, int32_t n, int32_t k, const float *a, const float *b, int add, float *c);
void kernel_gemm_nn(int64_t m, int32_t n, int32_t k, const float *a, const float *b, int add, float *c);
void kernel_gemm_tn(int32_t m, int32_t n, int64_t k, const float *a, const float *b, int add, float *c);

/* From now on OpenBLAS computes in the thread that calls it. To be called before the first product; cheap. */
void kernel_blas_single(void);
/*
 * OpenBLAS gives wrong results on some processors (0.3.21 on several newer ones). Compares sgemm with a plain loop on odd
 * shapes, in a forked child since it may crash; on a fault sets OPENBLAS_CORETYPE to a kernel that is right and re-executes
 * the program with its whole command line, once; with no right kernel: ENVIRONMENT. To be called before output, threads
 * and MPI. argv: main()'s. *note is one line for the user, "" when all is well. Calls kernel_blas_single().
 */
rudder_status_t kernel_check_blas(char **argv, const char **note, rudder_error_t *error);
/* OpenBLAS's own description ("OpenBLAS 0.3.21 ... Haswell"). Static. */
const char *kernel_blas_name(void);

#endif
