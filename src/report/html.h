/* The smallest pieces of HTML that tables, charts and pages share. */
#ifndef RUDDER_REPORT_HTML_H
#define RUDDER_REPORT_HTML_H

#include <stdio.h>

/* Colours, dashes and markers that tell runs apart; run 8 looks like run 0 again but for its letter. */
enum { HTML_STYLES = 8 };

/* Text as text, wherever it stands: in an element or in a quoted attribute. */
void html_escape(const char *text, FILE *file);
/* The letter of run i on its colour. */
void html_key(int i, FILE *file);

#endif
