/*
 * OpenBLAS: the products, and the check that they are right. Kernels of some releases compute nonsense or crash on some
 * processors; the check finds out at start, in children, and moves the program to a kernel that is right.
 */
#include <cblas.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"
#include "nn/kernels.h"

/* Set in a child that shall check itself and end, see blas_answer_probe(). */
static const char blas_probe_variable[] = "RUDDER_BLAS_PROBE";
/* The process that has changed its kernel: it does so once; its children, on other machines maybe, decide anew. */
static const char blas_moved_variable[] = "RUDDER_BLAS_MOVED";
static const char blas_core_variable[] = "OPENBLAS_CORETYPE";

static void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n, int64_t k, const float *a,
                      const float *b, int add, float *c)
{
    if (m == 0 || n == 0) {
        return;
    }
    if (k == 0) { /* releases differ in what they do then */
        if (!add) {
            memset(c, 0, (size_t)(m * n) * sizeof *c);
        }
        return;
    }
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1.0f, a,
                (blasint)(ta == CblasNoTrans ? k : m), b, (blasint)(tb == CblasNoTrans ? n : k), add ? 1.0f : 0.0f, c,
                (blasint)n);
}

void kernel_gemm_nt(int64_t m, int32_t n, int32_t k, const float *a, const float *b, int add, float *c)
{
    blas_gemm(CblasNoTrans, CblasTrans, m, n, k, a, b, add, c);
}

void kernel_gemm_nn(int64_t m, int32_t n, int32_t k, const float *a, const float *b, int add, float *c)
{
    blas_gemm(CblasNoTrans, CblasNoTrans, m, n, k, a, b, add, c);
}

void kernel_gemm_tn(int32_t m, int32_t n, int64_t k, const float *a, const float *b, int add, float *c)
{
    blas_gemm(CblasTrans, CblasNoTrans, m, n, k, a, b, add, c);
}

void kernel_blas_single(void)
{
    /* Setting it anew would start OpenBLAS's threads again after a fork has ended them. */
    if (openblas_get_num_threads() != 1) {
        openblas_set_num_threads(1);
    }
}

const char *kernel_blas_name(void)
{
    return openblas_get_config();
}

/* ---- The check -------------------------------------------------------------------------------------------------- */

typedef struct blas_shape {
    int m, n, k;
    CBLAS_TRANSPOSE ta, tb;
    int add;
} blas_shape_t;

/* Small, odd, and the tall or flat ones of the model: faults are known to sit in single code paths. */
static const blas_shape_t blas_shapes[] = {
    {1, 1, 1, CblasNoTrans, CblasNoTrans, 0},     {3, 5, 7, CblasNoTrans, CblasTrans, 0},
    {17, 33, 15, CblasTrans, CblasNoTrans, 1},    {31, 45, 64, CblasNoTrans, CblasTrans, 0},
    {100, 1, 257, CblasNoTrans, CblasTrans, 0},   {1, 129, 100, CblasNoTrans, CblasNoTrans, 1},
    {97, 96, 95, CblasNoTrans, CblasNoTrans, 0},  {256, 64, 256, CblasNoTrans, CblasTrans, 0},
    {253, 64, 256, CblasNoTrans, CblasTrans, 1},  {256, 47, 100, CblasNoTrans, CblasTrans, 1},
    {256, 64, 45, CblasNoTrans, CblasNoTrans, 0}, {64, 256, 500, CblasTrans, CblasNoTrans, 0},
    {45, 64, 512, CblasTrans, CblasNoTrans, 0},
};
enum { BLAS_SHAPES = sizeof blas_shapes / sizeof blas_shapes[0], BLAS_MOST = 512 * 256, BLAS_MARGIN = 64 };

/* Numbers in [-1, 1) with all their digits, so that products in a shorter type are seen. */
static void blas_numbers(float *x, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = 2 * rng_float((uint32_t)(rng_mix(key + (uint64_t)i) >> 32)) - 1;
    }
}

/* sum[0 .. n) = row i of the product, in double. */
static void blas_plain_row(const blas_shape_t *s, int i, const float *a, const float *b, double *sum)
{
    memset(sum, 0, (size_t)s->n * sizeof *sum);
    for (int k = 0; k < s->k; k++) {
        const double factor = (double)(s->ta == CblasNoTrans ? a[i * s->k + k] : a[k * s->m + i]);
        for (int j = 0; j < s->n; j++) {
            sum[j] += factor * (double)(s->tb == CblasNoTrans ? b[k * s->n + j] : b[j * s->k + k]);
        }
    }
}

/* c is twice as large as needed: it must be right within [m][n] and untouched behind. */
static int blas_shape_right(const blas_shape_t *s, const float *a, const float *b, float *c)
{
    double sum[256];
    const int n = s->m * s->n;
    for (int i = 0; i < n + BLAS_MARGIN; i++) {
        c[i] = s->add || i >= n ? 1.0f : NAN; /* what is overwritten may be anything */
    }
    blas_gemm(s->ta, s->tb, s->m, s->n, s->k, a, b, s->add, c);
    for (int i = 0; i < s->m; i++) {
        blas_plain_row(s, i, a, b, sum);
        for (int j = 0; j < s->n; j++) {
            if (!(fabs((double)c[i * s->n + j] - sum[j] - (s->add ? 1 : 0)) <= 1e-6 * (s->k + 1))) {
                return 0;
            }
        }
    }
    for (int i = n; i < n + BLAS_MARGIN; i++) {
        if (c[i] != 1.0f) {
            return 0;
        }
    }
    return 1;
}

static int blas_right(void)
{
    float *memory = malloc((3 * (size_t)BLAS_MOST + BLAS_MARGIN) * sizeof *memory);
    int right = memory != NULL;
    if (right) {
        float *a = memory, *b = memory + BLAS_MOST, *c = memory + 2 * (size_t)BLAS_MOST;
        blas_numbers(a, BLAS_MOST, 1);
        blas_numbers(b, BLAS_MOST, 1 + (uint64_t)BLAS_MOST);
        for (int i = 0; i < BLAS_SHAPES && right; i++) {
            right = blas_shape_right(&blas_shapes[i], a, b, c);
        }
    }
    free(memory);
    return right;
}

/* In a child of blas_probe(), before main(): no part of the program runs there, wherever it calls the check. */
__attribute__((constructor)) static void blas_answer_probe(void)
{
    if (getenv(blas_probe_variable) != NULL) {
        kernel_blas_single();
        _exit(blas_right() ? 0 : 1);
    }
}

/*
 * Whether OpenBLAS is right, found out in a child that may crash or hang. core NULL: the kernel of this process; else the
 * program is executed anew with that kernel ("": the one that OpenBLAS chooses).
 */
static int blas_probe(const char *core, char *program)
{
    const pid_t child = fork();
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null, STDERR_FILENO);
        alarm(10);
        if (core == NULL) {
            _exit(blas_right() ? 0 : 1);
        }
        setenv(blas_probe_variable, "1", 1);
        if (core[0] == '\0') {
            unsetenv(blas_core_variable);
        } else {
            setenv(blas_core_variable, core, 1);
        }
        execv(program, (char *[]){program, NULL});
        _exit(1);
    }
    if (child < 0) {
        return core == NULL && blas_right(); /* no room for a child: the check itself is still possible */
    }
    int status = 1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The whole command line of this process, kept for execv(); argv when the system does not tell. */
static char **blas_command_line(char **argv)
{
    char **arguments = NULL, *argument = NULL;
    size_t n = 0, bytes = 0;
    FILE *file = fopen("/proc/self/cmdline", "rb");
    while (file != NULL && getdelim(&argument, &bytes, '\0', file) > 0) {
        char **more = realloc(arguments, (n + 2) * sizeof *more);
        if (more == NULL) {
            n = 0;
            break;
        }
        arguments = more;
        arguments[n++] = argument;
        arguments[n] = NULL;
        argument = NULL; /* getdelim() takes memory anew */
        bytes = 0;
    }
    free(argument);
    if (file != NULL) {
        fclose(file);
    }
    return n > 0 ? arguments : argv;
}

/* Executes the program anew with the first kernel that is right; returns on failure only. */
static rudder_status_t blas_move(char **argv, rudder_error_t *error)
{
    static const char *const cores[] = {"", "SKYLAKEX", "HASWELL", "SANDYBRIDGE", "NEHALEM", "ARMV8"};
    char program[PATH_MAX], moved[32];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "/proc/self/exe cannot be read: %s", strerror(errno));
    }
    program[length] = '\0';
    for (size_t i = getenv(blas_core_variable) == NULL; i < sizeof cores / sizeof cores[0]; i++) {
        if (!blas_probe(cores[i], program)) {
            continue;
        }
        snprintf(moved, sizeof moved, "%ld", (long)getpid());
        setenv(blas_moved_variable, moved, 1);
        if (cores[i][0] == '\0') {
            unsetenv(blas_core_variable);
        } else {
            setenv(blas_core_variable, cores[i], 1);
        }
        execv(program, blas_command_line(argv));
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "%s cannot be executed anew: %s", program, strerror(errno));
    }
    return RUDDER_FAIL(
        error, RUDDER_E_ENVIRONMENT,
        "%s: matrix products are wrong on this processor with every kernel tried; expected a library that "
        "computes right: install another release of OpenBLAS, or name a kernel in %s",
        kernel_blas_name(), blas_core_variable);
}

rudder_status_t kernel_check_blas(char **argv, const char **note, rudder_error_t *error)
{
    static char text[256];
    *note = "";
    kernel_blas_single();
    const char *moved = getenv(blas_moved_variable);
    const int is_moved = moved != NULL && strtol(moved, NULL, 10) == (long)getpid();
    if (blas_probe(NULL, NULL)) {
        if (is_moved) {
            snprintf(text, sizeof text, "OpenBLAS computes wrong results with its own choice of kernel here: using %s",
                     openblas_get_corename());
            *note = text;
        }
        return RUDDER_OK;
    }
    if (is_moved) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "%s: matrix products are wrong, but were right in a trial",
                           kernel_blas_name());
    }
    return blas_move(argv, error);
}
