/* Answers of models, well-formed and odd, against verdicts that were fixed by hand in answers.tsv. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/answer.h"

enum { MOST_BYTES = 1 << 18, LINE_BYTES = 1 << 12 };

static unsigned hex_digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
}

/* One byte of the escaped text; *at moves behind it. */
static char unescape_byte(const char **at)
{
    const char *text = *at;
    *at += 1;
    if (text[0] != '\\') {
        return text[0];
    }
    *at += 1;
    switch (text[1]) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'x':
        *at += 2;
        return (char)(hex_digit(text[2]) << 4 | hex_digit(text[3]));
    default:
        assert_int_equal(text[1], '\\');
        return '\\';
    }
}

static size_t unescape(const char *text, char *bytes)
{
    size_t n = 0;
    while (*text != '\0') {
        size_t repeat = 1;
        int closed = 0;
        if (text[0] == '\\' && text[1] == '*') {
            char *end;
            repeat = strtoul(text + 2, &end, 10);
            assert_int_equal(*end, ',');
            text = end + 1;
            closed = 1;
        }
        const char byte = unescape_byte(&text);
        assert_true(n + repeat <= MOST_BYTES);
        memset(bytes + n, byte, repeat);
        n += repeat;
        if (closed) {
            assert_int_equal(*text, ';');
            text++;
        }
    }
    return n;
}

static int32_t direction(const char *word)
{
    return strcmp(word, "up") == 0     ? RUDDER_UP
           : strcmp(word, "same") == 0 ? RUDDER_SAME
           : strcmp(word, "down") == 0 ? RUDDER_DOWN
                                       : RUDDER_NO_PREDICTION;
}

static void answers_open(FILE **file)
{
    const char *source = getenv("RUDDER_SOURCE_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/unit/answers.tsv", source != NULL ? source : ".");
    *file = fopen(path, "r");
    assert_non_null(*file);
}

static void test_corpus(void **state)
{
    static char line[LINE_BYTES], escaped[MOST_BYTES];
    FILE *file;
    int n = 0, wrong = 0, number = 0;
    (void)state;
    answers_open(&file);
    while (fgets(line, sizeof line, file) != NULL) {
        number++;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#') {
            continue;
        }
        char *rest = line;
        const char *verdict = strsep(&rest, "\t"), *hits = strsep(&rest, "\t"), *rows = strsep(&rest, "\t");
        assert_non_null(rest);
        const size_t length = unescape(rest, escaped);
        /* Exactly as long as it is: one byte read too far is seen by the sanitizer. */
        char *text = malloc(length + 1);
        assert_non_null(text);
        memcpy(text, escaped, length);
        text = realloc(text, length > 0 ? length : 1);
        rudder_answer_t answer;
        memset(&answer, 0x5A, sizeof answer);
        answer_parse(text, length, &answer);
        free(text);
        const rudder_verdict_t expected = strcmp(verdict, "yes") == 0  ? RUDDER_REPLACE
                                          : strcmp(verdict, "no") == 0 ? RUDDER_KEEP
                                                                       : RUDDER_NO_VERDICT;
        if (answer.verdict != expected || answer.predict_hits != direction(hits) ||
            answer.predict_rows != direction(rows)) {
            print_error("line %d: expected %s %s %s, found %d %d %d: %.80s\n", number, verdict, hits, rows,
                        (int)answer.verdict, (int)answer.predict_hits, (int)answer.predict_rows, rest);
            wrong++;
        }
        assert_non_null(memchr(answer.explanation, '\0', sizeof answer.explanation));
        for (const char *c = answer.explanation; *c != '\0'; c++) {
            assert_true((unsigned char)*c >= 0x20);
        }
        if (answer.verdict == RUDDER_NO_VERDICT) {
            assert_string_equal(answer.explanation, "");
        }
        n++;
    }
    fclose(file);
    print_message("%d answers\n", n);
    assert_true(n >= 200);
    assert_int_equal(wrong, 0);
}

/* Whatever is cut off a good answer leaves no answer. */
static void test_every_cut(void **state)
{
    static const char whole[] = "<think>hm</think>```json\n{\"decision\": \"no\", \"predict\": {\"hits\": \"same\", "
                                "\"rows\": \"up\"}, \"explanation\": \"It costs more.\"}\n```";
    rudder_answer_t answer;
    (void)state;
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        answer_parse(whole, n, &answer);
        assert_int_equal(answer.verdict, RUDDER_NO_VERDICT);
    }
    answer_parse(whole, sizeof whole - 1, &answer);
    assert_int_equal(answer.verdict, RUDDER_KEEP);
    assert_int_equal(answer.predict_rows, RUDDER_UP);
    assert_string_equal(answer.explanation, "It costs more.");
}

/* Text is cut between characters, whatever the size. */
static void test_copy_text(void **state)
{
    static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\n\x7F"
                               "b";
    char copy[32];
    (void)state;
    for (size_t size = 1; size <= sizeof copy; size++) {
        memset(copy, '#', sizeof copy);
        const size_t n = answer_copy_text(copy, size, text, sizeof text - 1);
        assert_int_equal(n, strlen(copy));
        assert_true(n < size);
        assert_true(n == 0 || n == 1 || n == 3 || n == 6 || n >= 10);
    }
    assert_int_equal(answer_copy_text(copy, sizeof copy, text, sizeof text - 1), sizeof text - 1);
    assert_string_equal(copy + 10, "  b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_copy_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
