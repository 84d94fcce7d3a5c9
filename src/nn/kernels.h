/*
 * Kernels on rows. Shapes are [rows][width], row-major; all loops are over tiles of rows that a team shares.
 */
#ifndef RUDDER_NN_KERNELS_H
#define RUDDER_NN_KERNELS_H

#include <stdint.h>

#include "base/team.h"
#include "rudder/status.h"

/*
 * mean[i] = mean over e in [indptr[i], indptr[i+1]) of x[index[e]], 0 where there is none. Sums in the order of e.
 * x [n_src][width], mean [n][width]. Cost: O(edges x width).
 */
void kernel_mean(team_t *team, const int64_t *indptr, const int32_t *index, int64_t n, const float *x, int32_t width,
                 float *mean);

/*
 * OpenBLAS gives wrong results on some processors (0.3.21 on several newer ones). Compares sgemm with a plain loop on odd
 * shapes; on a mismatch sets OPENBLAS_CORETYPE to a kernel that is right and re-executes the program (argv), once; with
 * no right kernel: ENVIRONMENT. To be called at the very start of main(), before threads and MPI. *note is one line for
 * the user, "" when all is well.
 */
rudder_status_t kernel_check_blas(char **argv, const char **note, rudder_error_t *error);
/* OpenBLAS's own description ("OpenBLAS 0.3.21 ... Haswell"). Static. */
const char *kernel_blas_name(void);

#endif
