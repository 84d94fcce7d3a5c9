/*
 * The check of OpenBLAS at start. This program has its own cblas_sgemm() before OpenBLAS's: it passes on what OpenBLAS
 * computes, or spoils it as TEST_BLAS_FAULT says unless OPENBLAS_CORETYPE names the kernel TEST_BLAS_RIGHT. The tests run
 * the program itself as a user would start it and read what became of it.
 */
#include <cblas.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "nn/kernels.h"

typedef void (*sgemm_t)(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, blasint, blasint, blasint, float, const float *,
                        blasint, const float *, blasint, float, float *, blasint);

static int faulty(void)
{
    const char *right = getenv("TEST_BLAS_RIGHT"), *core = getenv("OPENBLAS_CORETYPE");
    return getenv("TEST_BLAS_FAULT") != NULL && (right == NULL || strcmp(right, core == NULL ? "" : core) != 0);
}

/* The first 8 bits of a float's digits: what a product in bfloat16 uses. */
static void shorten(const float *x, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0xffff0000u;
        memcpy(&y[i], &bits, sizeof bits);
    }
}

void cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k,
                 float alpha, const float *a, blasint lda, const float *b, blasint ldb, float beta, float *c,
                 blasint ldc)
{
    void *symbol = dlsym(RTLD_NEXT, "cblas_sgemm");
    sgemm_t real;
    memcpy(&real, &symbol, sizeof real);
    const char *fault = faulty() ? getenv("TEST_BLAS_FAULT") : "";
    if (strcmp(fault, "crash") == 0) {
        raise(SIGKILL); /* no handler, no report, whatever the program is built with */
    }
    if (strcmp(fault, "nothing") == 0) {
        return;
    }
    if (strcmp(fault, "short") == 0) {
        float *a_short = malloc((size_t)(m * k) * sizeof *a), *b_short = malloc((size_t)(k * n) * sizeof *b);
        shorten(a, (int64_t)m * k, a_short);
        shorten(b, (int64_t)k * n, b_short);
        real(order, ta, tb, m, n, k, alpha, a_short, lda, b_short, ldb, beta, c, ldc);
        free(b_short);
        free(a_short);
        return;
    }
    real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (strcmp(fault, "one") == 0 && ta == CblasTrans && k >= 500) { /* one value of one kind of shape */
        c[m * n - 1] += 0.01f;
    } else if (strcmp(fault, "nan") == 0 && n % 2 == 1) {
        c[0] = NAN;
    } else if (strcmp(fault, "beta") == 0 && beta != 0) {
        c[(m - 1) * n] -= 1;
    } else if (strcmp(fault, "behind") == 0 && m > 100) {
        c[m * n] = 0;
    }
}

/* What a program does that has just been started. */
static int main_of_program(char **argv)
{
    const char *note = NULL, *core = getenv("OPENBLAS_CORETYPE");
    rudder_error_t error = {.text = ""};
    const rudder_status_t status = kernel_check_blas(argv + 1, &note, &error); /* as a sub-command sees it */
    printf("status %s, core %s, threads %d, argument %s, note %s, error %s\n", rudder_status_name(status),
           core == NULL ? "none" : core, openblas_get_num_threads(), argv[2], note[0] == '\0' ? "none" : note,
           error.text[0] == '\0' ? "none" : error.text);
    return 0;
}

/* Runs this program with a fault, the kernel that is right and the user's choice of kernel (NULL: unset). */
static void run(const char *fault, const char *right, const char *core, char *output, size_t output_size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        const char *const values[][2] = {
            {"TEST_BLAS_FAULT", fault}, {"TEST_BLAS_RIGHT", right}, {"OPENBLAS_CORETYPE", core}};
        for (int i = 0; i < 3; i++) {
            unsetenv(values[i][0]);
            if (values[i][1] != NULL) {
                setenv(values[i][0], values[i][1], 1);
            }
        }
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO); /* nothing else may be printed */
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "test_blas", "--program", "as given", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t n;
    while ((n = read(ends[0], output + length, output_size - 1 - length)) > 0) {
        length += (size_t)n;
    }
    output[length] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void all_is_well(void **state)
{
    char output[1024];
    (void)state;
    run(NULL, NULL, NULL, output, sizeof output);
    assert_string_equal(output, "status RUDDER_OK, core none, threads 1, argument as given, note none, error none\n");
}

static void a_right_kernel_is_found(void **state)
{
    static const char *const faults[] = {"crash", "nothing", "short", "one", "nan", "beta", "behind"};
    char output[1024];
    (void)state;
    for (int i = 0; i < 7; i++) {
        run(faults[i], "SANDYBRIDGE", NULL, output, sizeof output);
        if (strstr(output, "status RUDDER_OK, core SANDYBRIDGE, threads 1, argument as given, note OpenBLAS") !=
            output) {
            fail_msg("fault '%s': %s", faults[i], output);
        }
        assert_non_null(strstr(output, "error none"));
    }
}

static void the_choice_of_the_user_counts_if_right(void **state)
{
    char output[1024];
    (void)state;
    run(NULL, NULL, "SANDYBRIDGE", output, sizeof output);
    assert_string_equal(output,
                        "status RUDDER_OK, core SANDYBRIDGE, threads 1, argument as given, note none, error none\n");
    run("one", "", "SANDYBRIDGE", output, sizeof output); /* OpenBLAS's own choice is right */
    assert_ptr_equal(strstr(output, "status RUDDER_OK, core none, threads 1, argument as given, note OpenBLAS"),
                     output);
}

static void no_right_kernel_is_an_error(void **state)
{
    static const char *const faults[] = {"crash", "one"};
    char output[1024];
    (void)state;
    for (int i = 0; i < 2; i++) {
        run(faults[i], "no such kernel", NULL, output, sizeof output);
        assert_ptr_equal(strstr(output, "status RUDDER_E_ENVIRONMENT"), output);
        assert_non_null(strstr(output, "OPENBLAS_CORETYPE"));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well),
        cmocka_unit_test(a_right_kernel_is_found),
        cmocka_unit_test(the_choice_of_the_user_counts_if_right),
        cmocka_unit_test(no_right_kernel_is_an_error),
    };
    if (argc > 2 && strcmp(argv[1], "--program") == 0) {
        return main_of_program(argv);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
