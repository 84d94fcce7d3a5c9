/* What must hold of a page whatever it was made of. */
#ifndef TESTS_FUZZ_PAGE_CHECK_H
#define TESTS_FUZZ_PAGE_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * No markup comes from a text, nothing steers a terminal, and numbers in attributes are numbers: texts have their quotes
 * escaped, so an attribute that is found is one of the page's own.
 */
static inline void page_check(const char *text)
{
    static const char *const attributes[] = {" d=\"",      " x=\"",       " y=\"",           " width=\"",
                                             " height=\"", " viewBox=\"", " fill-opacity=\""};
    if (strstr(text, "<script") != NULL || strchr(text, '\x1b') != NULL) {
        abort();
    }
    for (size_t a = 0; a < sizeof attributes / sizeof *attributes; a++) {
        for (const char *at = text; (at = strstr(at, attributes[a])) != NULL;) {
            at += strlen(attributes[a]);
            const size_t n = strcspn(at, "\"");
            if (memchr(at, 'n', n) != NULL) { /* nan, inf */
                fprintf(stderr, "%s%.*s\n", attributes[a], (int)(n < 200 ? n : 200), at);
                abort();
            }
            at += n;
        }
    }
}

#endif
