/*
 * A report as a page or as plain text: who writes one says what stands in it once; sections, sentences and tables come out
 * in either form, charts on the page alone. The page is one HTML file without script and without anything from elsewhere
 * (its own policy forbids both); light and dark follow the reader's browser.
 */
#ifndef RUDDER_REPORT_PAGE_H
#define RUDDER_REPORT_PAGE_H

#include <stdio.h>

#include "report/svg.h"
#include "report/table.h"

typedef struct page {
    FILE *file;
    int html;
    int failed; /* out of memory */
    int grid, figure, list;
    int narrow; /* set by the caller: figures of the next grid need half of the usual width */
    int folded; /* folds around what is written; the text prints nothing inside of them */
} page_t;

void page_begin(page_t *page, int html, FILE *file, const char *title, const char *subtitle);
/* Errors: IO, MEMORY. */
rudder_status_t page_end(page_t *page, rudder_error_t *error);

void page_section(page_t *page, const char *title);
void page_heading(page_t *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A sentence or some. */
void page_text(page_t *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A point of a list; the list ends with whatever is no point. */
void page_point(page_t *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* PAGE_KEYED: first cells name runs (table_html()); PAGE_WIDE: on a narrow window it may be scrolled sideways. */
enum { PAGE_PLAIN = 0, PAGE_KEYED = 1, PAGE_WIDE = 2 };

/* Takes the table; NULL: there was no memory. flags: of those above. */
void page_table(page_t *page, table_t *table, int flags);

/* What is folded away until it is asked for; the text leaves it out. */
void page_fold(page_t *page, const char *summary);
void page_end_fold(page_t *page);

/*
 * A figure in a grid that has one or two columns. Returns 1 when the charts are to be drawn into page->file; the text has
 * none. key: a run's number, or -1.
 */
int page_figure(page_t *page, int key, const char *title, const char *note);
void page_end_figure(page_t *page);

#endif
