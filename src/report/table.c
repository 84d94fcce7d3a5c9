/* Tables: cells are kept as texts in one growing array; a cell that is NULL begins a line across. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "report/html.h"
#include "report/table.h"

struct table {
    char *columns;     /* 'l' and 'r' */
    char *gaps;        /* 1: a gap stands before this column */
    int32_t n_columns; /* at least 1 */
    char **cells;      /* texts; NULL: a line across instead of a row */
    int64_t n_cells, capacity;
    int32_t column; /* of the next cell */
    int failed;
};

table_t *table_open(const char *columns)
{
    table_t *table = calloc(1, sizeof *table);
    if (table == NULL) {
        return NULL;
    }
    table->columns = calloc(1, strlen(columns) + 1);
    table->gaps = calloc(1, strlen(columns) + 1);
    if (table->columns == NULL || table->gaps == NULL) {
        table_close(table);
        return NULL;
    }
    for (; *columns != '\0'; columns++) {
        if (*columns == '|') {
            table->gaps[table->n_columns] = 1;
        } else {
            table->columns[table->n_columns++] = *columns;
        }
    }
    return table;
}

static void table_append(table_t *table, char *cell)
{
    if (table->n_cells == table->capacity) {
        const int64_t capacity = table->capacity > 0 ? table->capacity * 2 : 64;
        char **cells = realloc(table->cells, (size_t)capacity * sizeof *cells);
        if (cells == NULL) {
            table->failed = 1;
            free(cell);
            return;
        }
        table->cells = cells;
        table->capacity = capacity;
    }
    table->cells[table->n_cells++] = cell;
}

void table_cell(table_t *table, const char *format, ...)
{
    va_list arguments;
    char *text;
    va_start(arguments, format);
    const int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (n < 0) {
        table->failed = 1;
        return;
    }
    table_append(table, text);
    table->column = (table->column + 1) % table->n_columns;
}

void table_count(table_t *table, int64_t count)
{
    char text[32];
    table_cell(table, "%s", count < 0 ? "-" : text_of_count(count, text, sizeof text));
}

void table_number(table_t *table, double value, int decimals, const char *unit)
{
    if (isnan(value)) {
        table_cell(table, "-");
    } else {
        table_cell(table, "%.*f%s", decimals, value, unit);
    }
}

void table_line(table_t *table)
{
    while (table->column != 0) {
        table_cell(table, "%s", "");
    }
    table_append(table, NULL);
}

static void table_fill(FILE *file, char c, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        fputc(c, file);
    }
}

/* Spaces to the left of column c. */
static int32_t table_gap(const table_t *table, int32_t c)
{
    return c == 0 ? 0 : table->gaps[c] ? 5 : 2;
}

/* One row; cells beyond the last are empty. Nothing is written behind the last text of the row. */
static void table_print_row(const table_t *table, int64_t first, const int32_t *widths, FILE *file)
{
    int32_t owed = 0;
    for (int32_t c = 0; c < table->n_columns; c++) {
        const char *text = first + c < table->n_cells ? table->cells[first + c] : "";
        const int32_t pad = widths[c] - text_columns(text);
        const int right = table->columns[c] == 'r';
        owed += table_gap(table, c) + (right ? pad : 0);
        if (text[0] != '\0') {
            table_fill(file, ' ', owed);
            fputs(text, file);
            owed = 0;
        }
        owed += right ? 0 : pad;
    }
    fputc('\n', file);
}

rudder_status_t table_print(const table_t *table, FILE *file, rudder_error_t *error)
{
    int32_t *widths = calloc((size_t)table->n_columns, sizeof *widths), total = 0;
    if (table->failed || widths == NULL) {
        free(widths);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "out of memory for a table of %lld cells",
                           (long long)table->n_cells);
    }
    for (int64_t i = 0, c = 0; i < table->n_cells; i++) {
        if (table->cells[i] != NULL) {
            const int32_t width = text_columns(table->cells[i]);
            widths[c] = width > widths[c] ? width : widths[c];
            c = (c + 1) % table->n_columns;
        }
    }
    for (int32_t c = 0; c < table->n_columns; c++) {
        total += widths[c] + table_gap(table, c);
    }
    for (int64_t i = 0; i < table->n_cells;) {
        if (table->cells[i] == NULL) {
            table_fill(file, '-', total);
            fputc('\n', file);
            i++;
        } else {
            table_print_row(table, i, widths, file);
            i += table->n_columns;
        }
    }
    free(widths);
    return ferror(file) ? RUDDER_FAIL(error, RUDDER_E_IO, "a table cannot be written") : RUDDER_OK;
}

/* Numbers break before what stands in parentheses behind them, nowhere else. */
static void table_html_number(const char *text, FILE *file)
{
    for (; *text != '\0'; text++) {
        const char one[2] = {*text, '\0'};
        if (*text == ' ' && text[1] != '(') {
            fputs("&nbsp;", file);
        } else {
            html_escape(one, file);
        }
    }
}

static void table_html_cell(const table_t *table, int32_t c, const char *text, int head, int keyed, FILE *file)
{
    const char *tag = head ? "th" : "td";
    fprintf(file, "<%s class=\"%c%s\">", tag, table->columns[c], table->gaps[c] ? " gap" : "");
    if (keyed && !head && c == 0 && text[0] >= 'A' && text[0] <= 'Z' && (text[1] == '\0' || text[1] == ' ')) {
        html_key(text[0] - 'A', file);
        text++;
    }
    if (table->columns[c] == 'r' && !head) {
        table_html_number(text, file);
    } else {
        html_escape(text, file);
    }
    fprintf(file, "</%s>", tag);
}

void table_html(const table_t *table, int keyed, FILE *file)
{
    int64_t head = 0; /* cells before the first line, 0: no head */
    for (int64_t i = 0; i < table->n_cells && head == 0; i++) {
        head = table->cells[i] == NULL ? i : 0;
    }
    fputs(head > 0 ? "<table>\n<thead>\n" : "<table>\n<tbody>\n", file);
    for (int64_t i = 0; i < table->n_cells;) {
        if (table->cells[i] == NULL) {
            fputs(i == head ? "</thead>\n<tbody>\n" : "</tbody>\n<tbody>\n", file);
            i++;
            continue;
        }
        fputs("<tr>", file);
        for (int32_t c = 0; c < table->n_columns; c++) {
            table_html_cell(table, c, i + c < table->n_cells ? table->cells[i + c] : "", i < head, keyed, file);
        }
        fputs("</tr>\n", file);
        i += table->n_columns;
    }
    fputs("</tbody>\n</table>\n", file);
}

void table_close(table_t *table)
{
    if (table != NULL) {
        for (int64_t i = 0; i < table->n_cells; i++) {
            free(table->cells[i]);
        }
        free(table->cells);
        free(table->columns);
        free(table->gaps);
        free(table);
    }
}
