/*
 * Charts as inline SVG: lines over stacked areas with rows of event marks, horizontal stacked bars, heat maps. Texts are
 * placed by a cautious estimate of their width, so that none meets another in any common font; legends are HTML, which
 * wraps by itself. Colours are CSS classes of page.c, so that one chart serves light and dark; series differ by lightness,
 * dash and marker too.
 */
#ifndef RUDDER_REPORT_SVG_H
#define RUDDER_REPORT_SVG_H

#include <stdint.h>
#include <stdio.h>

#include "report/html.h"

enum { SVG_WIDTH = 700, SVG_MAX_RANKS = 48 };

typedef enum svg_style { SVG_BOUND = -1, SVG_LIMIT = -2 /* faint: what would be without a buffer */ } svg_style_t;

/* A line, and the band around it when `low` is not NULL. y NAN: a gap. */
typedef struct svg_line {
    const char *name;
    int style; /* number of a run, or svg_style_t */
    int64_t n;
    const double *x, *y, *low, *high;
} svg_line_t;

/* One of the areas that are stacked on each other; all have the same x. */
typedef struct svg_area {
    const char *name, *css; /* a class */
    const double *y;
} svg_area_t;

/* A row of ticks above the chart. */
typedef struct svg_marks {
    const char *name;
    int64_t n;
    const double *x;
} svg_marks_t;

typedef struct svg_plot {
    const char *title;             /* for those who do not see it */
    const char *x_label, *y_label; /* with units */
    int x_whole;                   /* x counts things: ticks are whole numbers */
    int from_zero;                 /* the y axis begins at 0 */
    double y_least, y_most;        /* the y axis goes no farther; NAN: where values are */
    int32_t n_areas, n_lines, n_marks;
    int64_t n_area_x;
    const double *area_x;
    const svg_area_t *areas;
    const svg_line_t *lines;
    const svg_marks_t *marks;
    double rule_every; /* faint vertical lines (epochs); 0: none */
} svg_plot_t;

void svg_plot(const svg_plot_t *plot, FILE *file);
/* What the areas and lines of a plot mean. */
void svg_plot_legend(const svg_plot_t *plot, FILE *file);

typedef struct svg_bar {
    const char *label;
    const double *value;    /* [n_parts] */
    double mark, low, high; /* a mark across the bar, a range; NAN: none */
    const char *text;       /* behind the bar */
    int gap;                /* some room before it */
} svg_bar_t;

typedef struct svg_bars {
    const char *title, *x_label, *mark_name; /* mark_name: NULL without marks */
    int32_t n_parts;
    const char *const *names, *const *css; /* [n_parts] */
    int percent;                           /* the share of a part is written into it where it fits */
    int64_t n;
    const svg_bar_t *bars;
} svg_bars_t;

void svg_bars(const svg_bars_t *bars, FILE *file);
void svg_bars_legend(const svg_bars_t *bars, FILE *file);

/*
 * value[n * n], most: the value of the strongest colour. To rank (down) from rank (across), at most SVG_MAX_RANKS ranks. Numbers with `decimals` stand in the cells
 * where there is room for all.
 */
void svg_heat(const char *title, const double *value, int32_t n, double most, int decimals, FILE *file);
/* Its width in pixels. */
double svg_heat_width(const double *value, int32_t n, int decimals);

#endif
