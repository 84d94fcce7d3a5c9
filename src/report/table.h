/*
 * Tables for people: cells are added row by row, widths are computed when all are known, so nothing is ever cut off.
 * Widths are counted in code points of UTF-8. Out of memory is remembered and told once, by table_print().
 */
#ifndef RUDDER_REPORT_TABLE_H
#define RUDDER_REPORT_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "rudder/status.h"

typedef struct table table_t;

/*
 * columns: one letter per column, 'l' left or 'r' right aligned, a '|' between two for a gap between groups:
 * "lrr|rr". The first row is the header. NULL: out of memory.
 */
table_t *table_open(const char *columns);
/* The next cell of the row; after the last column comes the next row. */
void table_cell(table_t *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A count with grouped digits; -1: "-". */
void table_count(table_t *table, int64_t count);
/* NAN: "-". unit stands behind the number: "", " %". */
void table_number(table_t *table, double value, int decimals, const char *unit);
/* A line across, before the next row. A row that has begun is filled with empty cells. */
void table_line(table_t *table);
/* Errors: MEMORY, IO. */
rudder_status_t table_print(const table_t *table, FILE *file, rudder_error_t *error);
/*
 * The same as an HTML table: the rows before the first line are its head. keyed: first cells that are a capital letter, or
 * begin with one and a space, name a run by its colour.
 */
void table_html(const table_t *table, int keyed, FILE *file);
void table_close(table_t *table); /* NULL is allowed */

#endif
