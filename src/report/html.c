/* Escaping, and the mark of a run. */
#include "report/html.h"

void html_escape(const char *text, FILE *file)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        case '\'':
            fputs("&#39;", file);
            break;
        default:
            fputc(*text, file);
        }
    }
}

void html_key(int i, FILE *file)
{
    fprintf(file, "<span class=\"key k%d\">%c</span>", i % HTML_STYLES, 'A' + i);
}
