/* The page and the text: structure, sentences, tables. */
#include "report/page.h"
#include "report/style.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum { PAGE_TEXT_WIDTH = 100 };

/* ---- sentences ---- */

/* To be freed. NULL: nothing is to be written, since a text has no folded parts (or there is no memory: page->failed). */
static char *page_format(page_t *page, const char *format, va_list arguments)
{
    char *text;
    if (!page->html && page->folded) {
        return NULL;
    }
    if (vasprintf(&text, format, arguments) < 0) {
        page->failed = 1;
        return NULL;
    }
    return text;
}

/* Text wrapped at words; what follows a line break is indented by `indent`. */
static void page_wrap(FILE *file, const char *text, const char *first, int indent)
{
    int column = text_columns(first), at_start = 1;
    fputs(first, file);
    while (*text != '\0') {
        const size_t n = strcspn(text, " ");
        char word[512];
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        const int width = text_columns(word);
        if (!at_start && column + 1 + width > PAGE_TEXT_WIDTH) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        } else if (!at_start) {
            fputc(' ', file);
            column++;
        }
        fwrite(text, 1, n, file);
        column += width;
        at_start = 0;
        text += n + (text[n] == ' ');
    }
    fputc('\n', file);
}

/* Ends what only like follows like in. */
static void page_settle(page_t *page)
{
    if (page->list) {
        fputs(page->html ? "</ul>\n" : "\n", page->file);
        page->list = 0;
    }
    if (page->grid && !page->figure) {
        fputs("</div>\n", page->file);
        page->grid = 0;
    }
}

void page_text(page_t *page, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = page_format(page, format, arguments);
    va_end(arguments);
    if (text == NULL || text[0] == '\0') {
        free(text);
        return;
    }
    page_settle(page);
    if (page->html) {
        fputs("<p>", page->file);
        html_escape(text, page->file);
        fputs("</p>\n", page->file);
    } else {
        page_wrap(page->file, text, "", 0);
        fputc('\n', page->file);
    }
    free(text);
}

void page_point(page_t *page, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = page_format(page, format, arguments);
    va_end(arguments);
    if (text == NULL) {
        return;
    }
    if (!page->list) {
        page_settle(page);
        fputs(page->html ? "<ul class=\"points\">\n" : "", page->file);
        page->list = 1;
    }
    if (page->html) {
        fputs("<li>", page->file);
        html_escape(text, page->file);
        fputs("</li>\n", page->file);
    } else {
        page_wrap(page->file, text, "- ", 2);
    }
    free(text);
}

void page_heading(page_t *page, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = page_format(page, format, arguments);
    va_end(arguments);
    if (text == NULL) {
        return;
    }
    page_settle(page);
    if (page->html) {
        fputs("<h3>", page->file);
        html_escape(text, page->file);
        fputs("</h3>\n", page->file);
    } else {
        fprintf(page->file, "%s\n", text);
    }
    free(text);
}

/* ---- structure ---- */

void page_begin(page_t *page, int html, FILE *file, const char *title, const char *subtitle)
{
    *page = (page_t){.html = html, .file = file};
    if (!html) {
        fprintf(file, "%s\n", title);
        page_wrap(file, subtitle, "", 0);
        return;
    }
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
          "content=\"light dark\">\n"
          "<title>",
          file);
    html_escape(title, file);
    fputs("</title>\n<style>\n", file);
    for (size_t i = 0; i < sizeof page_style / sizeof *page_style; i++) {
        fputs(page_style[i], file);
        fputc('\n', file);
    }
    fputs("</style>\n</head>\n<body>\n<header>\n<h1>", file);
    html_escape(title, file);
    fputs("</h1>\n<p>", file);
    html_escape(subtitle, file);
    fputs("</p>\n</header>\n<main>\n<section>\n", file);
}

void page_section(page_t *page, const char *title)
{
    page_settle(page);
    if (page->html) {
        fputs("</section>\n<section>\n<h2>", page->file);
        html_escape(title, page->file);
        fputs("</h2>\n", page->file);
        return;
    }
    if (page->folded > 0) {
        return;
    }
    fprintf(page->file, "\n%s\n", title);
    for (int i = text_columns(title); i > 0; i--) {
        fputc('=', page->file);
    }
    fputc('\n', page->file);
}

void page_table(page_t *page, table_t *table, int flags)
{
    if (table == NULL) {
        page->failed = 1;
        return;
    }
    page_settle(page);
    if (page->html) {
        fputs(flags & PAGE_WIDE ? "<div class=\"scroll wide\">\n" : "<div class=\"scroll\">\n", page->file);
        table_html(table, flags & PAGE_KEYED, page->file);
        fputs("</div>\n", page->file);
    } else if (!page->folded) {
        page->failed |= table_print(table, page->file, NULL) == RUDDER_E_MEMORY;
        fputc('\n', page->file);
    }
    table_close(table);
}

void page_fold(page_t *page, const char *summary)
{
    page_settle(page);
    page->folded++;
    if (page->html) {
        fputs("<details>\n<summary>", page->file);
        html_escape(summary, page->file);
        fputs("</summary>\n", page->file);
    }
}

void page_end_fold(page_t *page)
{
    page_settle(page);
    page->folded--;
    if (page->html) {
        fputs("</details>\n", page->file);
    }
}

int page_figure(page_t *page, int key, const char *title, const char *note)
{
    if (!page->html) {
        return 0;
    }
    if (!page->grid) {
        page_settle(page);
        fputs(page->narrow ? "<div class=\"grid narrow\">\n" : "<div class=\"grid\">\n", page->file);
        page->grid = 1;
    }
    page->figure = 1;
    fputs("<figure>\n<figcaption>", page->file);
    if (key >= 0) {
        html_key(key, page->file);
        fputc(' ', page->file);
    }
    html_escape(title, page->file);
    fputs("</figcaption>\n", page->file);
    if (note != NULL && note[0] != '\0') {
        fputs("<p>", page->file);
        html_escape(note, page->file);
        fputs("</p>\n", page->file);
    }
    return 1;
}

void page_end_figure(page_t *page)
{
    fputs("</figure>\n", page->file);
    page->figure = 0;
}

rudder_status_t page_end(page_t *page, rudder_error_t *error)
{
    page_settle(page);
    if (page->html) {
        fputs("</section>\n</main>\n</body>\n</html>\n", page->file);
    }
    if (page->failed) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the report");
    }
    if (fflush(page->file) != 0 || ferror(page->file)) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "the report cannot be written");
    }
    return RUDDER_OK;
}
