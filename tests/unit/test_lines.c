/* Lines of text files: what says nothing is passed over, what is no text is refused where it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/lines.h"

static char path[] = "/tmp/rudder-lines-XXXXXX";

static void put(const char *content, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* The lines are these, and then there is no more, or what is said. */
static void reads(const char *content, size_t n, const char *const *expected, const char *says)
{
    lines_t lines;
    char *line;
    rudder_error_t error = {0};
    put(content, n);
    assert_int_equal(lines_open(path, &lines, &error), RUDDER_OK);
    for (; *expected != NULL; expected++) {
        assert_int_equal(lines_next(&lines, &line, &error), RUDDER_OK);
        assert_non_null(line);
        assert_string_equal(line, *expected);
    }
    assert_int_equal(lines_next(&lines, &line, &error), says == NULL ? RUDDER_OK : RUDDER_E_DATA);
    assert_null(line);
    if (says != NULL) {
        assert_non_null(strstr(error.text, says));
        assert_ptr_equal(strstr(error.text, path), error.text);
    }
    lines_close(&lines);
}

static void test_what_says_nothing_is_passed_over(void **state)
{
    static const char text[] = "one\n\n  two words \t # a remark\n#\n \t\r\nthree\r\n# the end";
    (void)state;
    reads(text, strlen(text), (const char *const[]){"one", "two words", "three", NULL}, NULL);
    reads("", 0, (const char *const[]){NULL}, NULL);
    reads("\n\n\n", 3, (const char *const[]){NULL}, NULL);
    reads("last", 4, (const char *const[]){"last", NULL}, NULL);
}

static void test_what_is_no_text_is_refused(void **state)
{
    char content[3 * LINES_MOST], longest[LINES_MOST + 1] = {0};
    (void)state;
    memset(content, 'x', sizeof content);
    memset(longest, 'x', LINES_MOST);
    for (int ended = 0; ended < 3; ended++) { /* by the file, by \n, by \r\n */
        memcpy(content + LINES_MOST, "\r\nx", 3);
        content[LINES_MOST] = ended == 1 ? '\n' : '\r';
        const size_t n = LINES_MOST + (size_t)ended;
        reads(content, n, (const char *const[]){longest, NULL}, NULL);
        memmove(content + LINES_MOST + 1, content + LINES_MOST, 2);
        content[LINES_MOST] = 'x';
        reads(content, n + 1, (const char *const[]){NULL}, "line 1: expected a line of text of at most");
    }
    memset(content, 'x', sizeof content);
    memcpy(content, "a\n#\n", 4);
    reads(content, sizeof content, (const char *const[]){"a", NULL}, "line 3: expected a line of text");
    reads("a\nb\0c\n", 6, (const char *const[]){"a", NULL}, "line 2: expected a line of text");
    reads("a\n\0", 3, (const char *const[]){"a", NULL}, "line 2: expected a line of text");
    reads("a\nb\0c", 5, (const char *const[]){"a", NULL}, "line 2: expected a line of text");
    reads("a\nb\0\1", 5, (const char *const[]){"a", NULL}, "line 2: expected a line of text");
    reads("a\n# \0\n", 6, (const char *const[]){"a", NULL}, "line 2: expected a line of text");
}

static void test_what_cannot_be_read(void **state)
{
    lines_t lines;
    (void)state;
    assert_int_equal(lines_open("/nonexistent/file", &lines, NULL), RUDDER_E_IO);
    assert_int_equal(lines_open("/tmp", &lines, NULL), RUDDER_E_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_says_nothing_is_passed_over),
        cmocka_unit_test(test_what_is_no_text_is_refused),
        cmocka_unit_test(test_what_cannot_be_read),
    };
    const int file = mkstemp(path);
    if (file < 0) {
        return 1;
    }
    close(file);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
