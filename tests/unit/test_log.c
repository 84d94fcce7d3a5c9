/* Messages and progress as they arrive at a pipe and at a terminal, written by a child and read byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define ERASE "\r\033[K"

/* What work() writes to standard error. columns 0: it is a pipe, otherwise a terminal of that width. */
static char *written(void (*work)(void), unsigned short columns)
{
    static char text[1 << 20];
    int ends[2];
    size_t used = 0;
    ssize_t n;
    if (columns > 0) {
        const struct winsize window = {.ws_row = 24, .ws_col = columns};
        assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, &window), 0);
    } else {
        assert_int_equal(pipe(ends), 0);
    }
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        work();
        _exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], text + used, sizeof text - 1 - used)) > 0) {
        used += (size_t)n;
    }
    text[used] = '\0';
    close(ends[0]);
    waitpid(child, NULL, 0);
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what)) {
        n++;
    }
    return n;
}

static void talk(void)
{
    const rudder_error_t error = {.status = RUDDER_E_DATA, .text = "x.npy: expected <f4, found <f8"};
    const rudder_error_t silent = {.status = RUDDER_E_MEMORY};
    log_line(LOG_INFO, "epoch %d", 1);
    log_line(LOG_WARN, "slow");
    log_line(LOG_DEBUG, "not asked for");
    log_error(&error);
    log_error(&silent);
    log_progress(1, 2, "half");
    log_progress_end();
}

static void one_process(void)
{
    log_setup(LOG_INFO, -1, 1);
    talk();
}

static void first_rank(void)
{
    log_setup(LOG_INFO, 0, 1);
    talk();
}

static void another_rank(void)
{
    log_setup(LOG_INFO, 2, 1);
    talk();
}

static void a_pipe_gets_plain_lines(void **state)
{
    static const char lines[] = "rudder: epoch 1\n"
                                "rudder: warning: slow\n"
                                "rudder: x.npy: expected <f4, found <f8 (RUDDER_E_DATA)\n"
                                "rudder: out of memory (RUDDER_E_MEMORY)\n";
    (void)state;
    unsetenv("RUDDER_TERMINAL_COLUMNS");
    assert_string_equal(written(one_process, 0), lines);
    assert_string_equal(written(first_rank, 0), lines);
}

static void other_ranks_speak_in_need_only(void **state)
{
    (void)state;
    assert_string_equal(written(another_rank, 0), "rudder: [rank 2] warning: slow\n"
                                                  "rudder: [rank 2] x.npy: expected <f4, found <f8 (RUDDER_E_DATA)\n"
                                                  "rudder: [rank 2] out of memory (RUDDER_E_MEMORY)\n");
}

static void a_terminal_gets_colour_unless_refused(void **state)
{
    (void)state;
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    assert_non_null(strstr(written(one_process, 80), "\033[33mwarning: slow\033[0m"));
    setenv("NO_COLOR", "1", 1);
    assert_null(strstr(written(one_process, 80), "\033[33m"));
    assert_non_null(strstr(written(one_process, 80), ERASE "rudder: warning: slow"));
    setenv("TERM", "dumb", 1);
    assert_null(strchr(written(one_process, 80), '\033'));
    setenv("TERM", "xterm", 1);
}

static void busy(void)
{
    log_setup(LOG_INFO, -1, 1);
    const double end = clock_seconds() + 0.55;
    for (int64_t i = 0; clock_seconds() < end; i++) {
        log_progress(50, 100, "a text that is longer than a narrow terminal, µ");
    }
    log_line(LOG_INFO, "done");
    log_progress_end();
}

static void progress_is_calm_and_fits(void **state)
{
    (void)state;
    char *text = written(busy, 50);
    const int draws = count(text, ERASE "[");
    assert_in_range(draws, 4, 7); /* every 0.1 s in 0.55 s */
    assert_non_null(strstr(text, " 50% "));
    assert_non_null(strstr(text, ERASE "rudder: done"));
    for (char *line = strtok(text, "\r\n"); line != NULL; line = strtok(NULL, "\r\n")) {
        assert_true(strlen(line) <= 50 + strlen("\033[K")); /* else it would wrap and leave a trail */
    }
    assert_string_equal(written(busy, 0), "rudder: done\n");
}

static void under_a_launcher(void **state)
{
    (void)state;
    setenv("RUDDER_TERMINAL_COLUMNS", "60", 1);
    assert_non_null(strstr(written(first_rank, 0), ERASE "[============............]  50% half"));
    assert_null(strstr(written(another_rank, 0), "50%"));
    unsetenv("RUDDER_TERMINAL_COLUMNS");
}

enum { THREADS = 4, LINES = 200 };

static void *chatter(void *name)
{
    for (int i = 0; i < LINES; i++) {
        log_line(LOG_INFO, "%s %d %0*d", (const char *)name, i, 300, 0);
    }
    return NULL;
}

static void many_threads(void)
{
    static char names[THREADS][16];
    pthread_t threads[THREADS];
    log_setup(LOG_INFO, -1, 1);
    for (int t = 0; t < THREADS; t++) {
        snprintf(names[t], sizeof names[t], "t%d", t);
        pthread_create(&threads[t], NULL, chatter, names[t]);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
}

static void lines_of_threads_do_not_mix(void **state)
{
    int lines = 0, next[THREADS] = {0};
    (void)state;
    for (char *line = strtok(written(many_threads, 0), "\n"); line != NULL; line = strtok(NULL, "\n")) {
        int thread, number, used = 0;
        assert_int_equal(sscanf(line, "rudder: t%d %d %n", &thread, &number, &used), 2);
        assert_int_equal(strlen(line + used), 300);
        assert_int_equal(number, next[thread]++);
        lines++;
    }
    assert_int_equal(lines, THREADS * LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_gets_plain_lines),
        cmocka_unit_test(other_ranks_speak_in_need_only),
        cmocka_unit_test(a_terminal_gets_colour_unless_refused),
        cmocka_unit_test(progress_is_calm_and_fits),
        cmocka_unit_test(under_a_launcher),
        cmocka_unit_test(lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
