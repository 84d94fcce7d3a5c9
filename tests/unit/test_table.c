/* Tables: alignment, widths in code points, groups and lines, and the ladder of 0, 1 and many rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "report/table.h"

/* What a table prints, to be freed. */
static char *printed(const table_t *table)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(table_print(table, file, NULL), RUDDER_OK);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* Prints and compares; what is expected is written out so that a reader sees the table. */
static void expect(table_t *table, const char *expected)
{
    char *text = printed(table);
    assert_string_equal(text, expected);
    free(text);
    table_close(table);
}

static void no_rows_print_nothing(void **state)
{
    (void)state;
    expect(table_open("lr"), "");
}

static void one_column(void **state)
{
    (void)state;
    table_t *table = table_open("r");
    table_cell(table, "n");
    table_cell(table, "%d", 12345);
    expect(table, "    n\n12345\n");
}

static void columns_align_and_groups_stand_apart(void **state)
{
    (void)state;
    table_t *table = table_open("lr|r");
    table_cell(table, "policy");
    table_cell(table, "rows");
    table_cell(table, "MB");
    table_line(table);
    table_cell(table, "score");
    table_cell(table, "%d", 7);
    table_cell(table, "%.1f", 123.25);
    expect(table, "policy  rows        MB\n"
                  "----------------------\n"
                  "score      7     123.2\n");
}

static void widths_count_code_points(void **state)
{
    (void)state;
    table_t *table = table_open("lr");
    table_cell(table, "é€");
    table_cell(table, "x");
    table_cell(table, "abc");
    table_cell(table, "µs");
    expect(table, "é€    x\nabc  µs\n");
}

static void rows_that_are_not_full_are_filled(void **state)
{
    (void)state;
    table_t *table = table_open("lll");
    table_cell(table, "a");
    table_line(table);
    table_cell(table, "b");
    expect(table, "a\n-----\nb\n");
}

static void nothing_is_cut_off(void **state)
{
    (void)state;
    char *word = malloc(100001);
    table_t *table = table_open("lr");
    memset(word, 'w', 100000);
    word[100000] = '\0';
    for (int row = 0; row < 200; row++) {
        table_cell(table, "%s", row == 137 ? word : "w");
        table_cell(table, "%d", row);
    }
    char *text = printed(table);
    assert_non_null(strstr(text, word));
    /* Every line is as long as the longest: the last column is right aligned. */
    int lines = 0;
    for (char *line = text; *line != '\0'; lines++) {
        char *end = strchr(line, '\n');
        *end = '\0';
        assert_int_equal(text_columns(line), 100000 + 2 + 3);
        line = end + 1;
    }
    assert_int_equal(lines, 200);
    free(text);
    free(word);
    table_close(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rows_print_nothing),
        cmocka_unit_test(one_column),
        cmocka_unit_test(columns_align_and_groups_stand_apart),
        cmocka_unit_test(widths_count_code_points),
        cmocka_unit_test(rows_that_are_not_full_are_filled),
        cmocka_unit_test(nothing_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
