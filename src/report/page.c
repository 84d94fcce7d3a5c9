/* The page: structure and style sheet. */
#include "report/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum { PAGE_TEXT_WIDTH = 100 };

/*
 * Runs' colours alternate between dark and light (light and dark on the dark page), so that neighbours differ in grey as
 * well. Every part of a chart takes its colour from here.
 */
static const char *const page_style[] = {
    ":root{color-scheme:light dark;--bg:#f5f6f8;--card:#fff;--ink:#1b2027;--dim:#5a6470;--line:#dfe3e8;--grid:#e8ebef;"
    "--accent:#1f4e9e;--s0:#1f4e9e;--s1:#e07b1a;--s2:#12664f;--s3:#cc5aa2;--s4:#7a2020;--s5:#2f9fd0;--s6:#5b3f9c;"
    "--s7:#93931f;--onkey:#fff;--onkey2:#14181d;--miss:#33608f;--fill:#f0b04a;--net:#1f4e9e;--p1:#6da3d8;--p2:#efc25e;"
    "--p3:#bd5b45;--p4:#9acb86;--p5:#6c4a9a;--wait:#e9ecf0;--waitline:#aab3bd;--ondark:#fff;--onlight:#1b2027;--heat:#"
    "1f4e9e;"
    "--event:#1b2027}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#0e1116;--card:#171c23;--ink:#e7eaee;--dim:#9ca7b3;--line:#2d353f;"
    "--grid:#262d36;--accent:#86b4ff;--s0:#86b4ff;--s1:#cf6f1c;--s2:#74dfb8;--s3:#c9589f;--s4:#ffb9ae;--s5:#2b8fc2;"
    "--s6:#c9b6ff;--s7:#96962a;--onkey:#14181d;--onkey2:#fff;--miss:#5c93cf;--fill:#f6cd85;--net:#3f6fc4;--p1:#9cc6f2;"
    "--p2:#f3d58a;--p3:#c8674f;--p4:#a9dc93;--p5:#8d6bc0;--wait:#232a33;--waitline:#5a6572;--ondark:#fff;--onlight:#"
    "14181d;"
    "--heat:#5b93e6;--event:#e7eaee}}\n",
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:1560px;padding:28px 20px 60px;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,\"DejaVu Sans\",sans-serif}\n"
    "h1{font-size:26px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}\n"
    "header p{margin:0;color:var(--dim)}\n"
    "section{margin-top:36px}\n"
    "h2{font-size:19px;margin:0 0 10px;letter-spacing:-.005em}\n"
    "h3{font-size:15px;margin:18px 0 6px}\n"
    "p{margin:0 0 10px;max-width:110ch}\n"
    "ul.points{margin:0 0 10px;padding-left:20px;max-width:110ch}\n"
    "ul.points li{margin:3px 0}\n"
    ".scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px;margin:0 0 14px}\n"
    "table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:5px 9px;text-align:left;vertical-align:top}\n"
    "th{font-weight:600;color:var(--dim);vertical-align:bottom;border-bottom:1px solid var(--line)}\n"
    "tbody tr+tr td{border-top:1px solid var(--grid)}\n"
    "tbody+tbody tr:first-child td{border-top:2px solid var(--line)}\n"
    "td.r,th.r{text-align:right}\n"
    "td.l:first-child{min-width:8.5em}\n"
    "td.l{overflow-wrap:anywhere}\n"
    "td.gap,th.gap{padding-left:20px}\n"
    "details{margin:0 0 14px}\n"
    "summary{cursor:pointer;color:var(--accent);margin-bottom:8px}\n",
    ".grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,640px),1fr));gap:16px;margin-bottom:14px}"
    "\n"
    "figure{margin:0;padding:14px 14px 10px;background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "overflow-x:auto}\n"
    "figcaption{font-weight:600;margin-bottom:2px}\n"
    "figure p{font-size:13px;color:var(--dim);margin:0 0 8px}\n"
    "svg.chart{display:block;max-width:100%;height:auto;min-width:min(560px,var(--w,560px))}\n"
    "ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:0 0 8px;padding:0;font-size:13px}\n"
    ".sample{vertical-align:-1px;margin-right:6px}\n"
    ".key{display:inline-block;min-width:19px;padding:0 "
    "4px;margin-right:3px;border-radius:4px;text-align:center;font-weight:600;"
    "font-size:12px;line-height:18px;background:var(--c);color:var(--onkey)}\n"
    ".key.k1,.key.k3,.key.k5,.key.k7{color:var(--onkey2)}\n"
    ".k0{--c:var(--s0)}.k1{--c:var(--s1)}.k2{--c:var(--s2)}.k3{--c:var(--s3)}.k4{--c:var(--s4)}.k5{--c:var(--s5)}"
    ".k6{--c:var(--s6)}.k7{--c:var(--s7)}\n",
    ".t{font-size:12px;fill:var(--ink);font-variant-numeric:tabular-nums}.e{text-anchor:end}.m{text-anchor:middle}"
    ".label{fill:var(--dim)}\n"
    ".gl{stroke:var(--grid)}.axis{stroke:var(--dim)}.rule{stroke:var(--waitline);stroke-dasharray:1 4}\n"
    ".ln{fill:none;stroke:var(--c);stroke-width:1.8;stroke-linejoin:round}.band{fill:var(--c);fill-opacity:.16;stroke:"
    "none}\n"
    ".mk{fill:var(--c);stroke:var(--c);stroke-width:1.4}.d1 .mk,.d3 .mk,.d4 .mk,.d7 .mk{fill:var(--card)}"
    ".d5 .mk,.d6 .mk{fill:none;stroke-width:2}\n"
    ".d1 .ln{stroke-dasharray:9 3}.d3 .ln{stroke-dasharray:9 3 2 3}.d5 .ln{stroke-dasharray:4 3}.d7 "
    ".ln{stroke-dasharray:12 3 2 3 2 3}\n"
    ".bound .ln{stroke:var(--ink);stroke-width:1.6;stroke-dasharray:2 3}.limit .ln{stroke:var(--dim);stroke-width:1}\n"
    ".event,.mark{stroke:var(--event);fill:none}.event{stroke-width:1.2}.mark{stroke-width:2.6}.range{stroke:var(--ink)"
    ";fill:none;stroke-width:1.3}\n"
    "rect,.miss,.fill{stroke:var(--card);stroke-width:.7}\n"
    ".miss{fill:var(--miss)}.fill{fill:var(--fill)}.net{fill:var(--net)}.p1{fill:var(--p1)}.p2{fill:var(--p2)}.p3{fill:"
    "var(--p3)}"
    ".p4{fill:var(--p4)}.p5{fill:var(--p5)}.wait{fill:var(--wait);stroke:var(--waitline)}.one{fill:var(--accent)}\n"
    ".on-net,.on-miss,.on-p3,.on-p5{fill:var(--ondark)}.on-p1,.on-p2,.on-p4,.on-fill{fill:var(--onlight)}\n"
    ".heat{fill:var(--heat);stroke:none}.on-heat{fill:#fff}\n"
    "footer{margin-top:40px;color:var(--dim);font-size:13px}\n"
    "@media print{body{background:#fff}.scroll,figure{break-inside:avoid}}\n"};

/* ---- sentences ---- */

static char *page_format(page_t *page, const char *format, va_list arguments)
{
    char *text;
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
    if (text == NULL || text[0] == '\0' || (!page->html && page->folded)) {
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
    if (text == NULL || (!page->html && page->folded)) {
        free(text);
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
    if (text == NULL || (!page->html && page->folded)) {
        free(text);
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
    fprintf(page->file, "\n%s\n", title);
    for (int i = text_columns(title); i > 0; i--) {
        fputc('=', page->file);
    }
    fputc('\n', page->file);
}

void page_table(page_t *page, table_t *table, int keyed)
{
    if (table == NULL) {
        page->failed = 1;
        return;
    }
    page_settle(page);
    if (page->html) {
        fputs("<div class=\"scroll\">\n", page->file);
        table_html(table, keyed, page->file);
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
    page->folded = 1;
    if (page->html) {
        fputs("<details>\n<summary>", page->file);
        html_escape(summary, page->file);
        fputs("</summary>\n", page->file);
    }
}

void page_end_fold(page_t *page)
{
    page_settle(page);
    page->folded = 0;
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
        fputs("<div class=\"grid\">\n", page->file);
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
