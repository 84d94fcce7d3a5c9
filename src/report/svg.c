/* Charts: where things stand is computed here, what they look like stands in the style sheet of page.c. */
#include "report/svg.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

enum {
    SVG_TEXT = 12, /* pixels */
    SVG_PLOT_HEIGHT = 190,
    SVG_MARK_ROW = 15,
    SVG_BAR = 17,
    SVG_BAR_GAP = 5,
    SVG_GROUP_GAP = 10,
    SVG_MOST_TICKS = 100,
    SVG_MARKERS = 7 /* of a long line */
};

/* The widest of common fonts has digits and letters of .64 of its size. */
static double svg_text_width(const char *text)
{
    return 0.64 * SVG_TEXT * text_columns(text);
}

/* ---- axes ---- */

typedef struct svg_axis {
    double low, high, step; /* step: between ticks, 1, 2 or 5 times a power of ten */
    double from, to;        /* pixels of low and high */
} svg_axis_t;

static double svg_round_step(double wanted, int whole)
{
    const double power = pow(10, floor(log10(wanted)));
    const double times = wanted / power;
    const double step = (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10) * power;
    return whole && step < 1 ? 1 : step;
}

/*
 * An axis over [low, high] with about n ticks; `round`: it ends at ticks. What is too narrow for ticks that differ as
 * doubles is widened.
 */
static svg_axis_t svg_axis(double low, double high, int n, int whole, int round)
{
    const double size = fmax(fabs(low), fabs(high)), least = fmax(size * 1e-9, 1e-200);
    if (!(high - low > least)) {
        const double room = round ? (size > 0 ? size * 0.5 : 1) : fmax(0.5, least);
        high += room;
        low -= round && low >= 0 ? 0 : room;
    }
    svg_axis_t axis = {.low = low, .high = high, .step = svg_round_step((high - low) / n, whole)};
    if (round) {
        axis.low = floor(low / axis.step + 1e-9) * axis.step;
        axis.high = ceil(high / axis.step - 1e-9) * axis.step;
    }
    return axis;
}

static double svg_at(const svg_axis_t *axis, double value)
{
    const double clamped = value < axis->low ? axis->low : value > axis->high ? axis->high : value;
    return axis->from + (clamped - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

static const char *svg_tick_text(const svg_axis_t *axis, double value, char *text, size_t size)
{
    if (axis->step >= 1 && fabs(value) < 1e15) {
        return text_of_count((int64_t)llround(value), text, size);
    }
    const int decimals = axis->step < 1 ? (int)ceil(-log10(axis->step) - 1e-9) : 0;
    if (decimals > 6 || fabs(value) >= 1e15) {
        snprintf(text, size, "%.2e", value);
    } else {
        snprintf(text, size, "%.*f", decimals, fabs(value) < axis->step / 2 ? 0 : value);
    }
    return text;
}

/* Ticks of an axis: the first is number 0. */
static int svg_tick(const svg_axis_t *axis, int i, double *value)
{
    *value = (ceil(axis->low / axis->step - 0.02) + i) * axis->step;
    return *value <= axis->high + axis->step * 0.02 && i < SVG_MOST_TICKS;
}

static double svg_widest_tick(const svg_axis_t *axis)
{
    char text[48];
    double value, widest = 0;
    for (int i = 0; svg_tick(axis, i, &value); i++) {
        widest = fmax(widest, svg_text_width(svg_tick_text(axis, value, text, sizeof text)));
    }
    return widest;
}

/* Fewer ticks on an x axis until their texts stand apart. */
static void svg_thin_ticks(svg_axis_t *axis)
{
    for (int i = 0; i < 40; i++) {
        const double distance = axis->step / (axis->high - axis->low) * (axis->to - axis->from);
        if (distance >= svg_widest_tick(axis) + 14) {
            return;
        }
        axis->step = svg_round_step(axis->step * 1.5, 0);
    }
}

/* ---- pieces ---- */

static void svg_begin(const char *title, double width, double height, FILE *file)
{
    fprintf(
        file,
        "<svg class=\"chart%s\" role=\"img\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" aria-label=\"",
        width >= SVG_WIDTH ? " full" : "", width, height, width, height);
    html_escape(title, file);
    fputs("\">\n", file);
}

static void svg_text(double x, double y, const char *css, const char *text, FILE *file)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, css);
    html_escape(text, file);
    fputs("</text>\n", file);
}

static void svg_segment(double x1, double y1, double x2, double y2, const char *css, FILE *file)
{
    fprintf(file, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", css, x1, y1, x2, y2);
}

/* Outlines of 9 pixels; crosses and pluses are lines. */
static void svg_marker(int style, double x, double y, FILE *file)
{
    switch (style % HTML_STYLES) {
    case 0:
        fprintf(file, "M%.1f %.1fm-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", x, y);
        break;
    case 1:
        fprintf(file, "M%.1f %.1fm-3.5-3.5h7v7h-7z", x, y);
        break;
    case 2:
        fprintf(file, "M%.1f %.1fm0-5l4.5 8h-9z", x, y);
        break;
    case 3:
        fprintf(file, "M%.1f %.1fm0-5l5 5l-5 5l-5-5z", x, y);
        break;
    case 4:
        fprintf(file, "M%.1f %.1fm0 5l4.5-8h-9z", x, y);
        break;
    case 5:
        fprintf(file, "M%.1f %.1fm-4-4l8 8m0-8l-8 8", x, y);
        break;
    case 6:
        fprintf(file, "M%.1f %.1fm-5 0h10m-5-5v10", x, y);
        break;
    default:
        fprintf(file, "M%.1f %.1fm-4-4h8l-8 8h8z", x, y);
    }
}

static const char *svg_line_class(int style, char *text, size_t size)
{
    if (style == SVG_BOUND || style == SVG_LIMIT) {
        return style == SVG_BOUND ? "bound" : "limit";
    }
    snprintf(text, size, "k%d d%d", style % HTML_STYLES, style % HTML_STYLES);
    return text;
}

static void svg_sample(int style, FILE *file)
{
    char css[16];
    fprintf(
        file,
        "<svg class=\"sample\" width=\"34\" height=\"12\" viewBox=\"0 0 34 12\" aria-hidden=\"true\"><g class=\"%s\">"
        "<path class=\"ln\" d=\"M1 6H33\"/>",
        svg_line_class(style, css, sizeof css));
    if (style >= 0) {
        fputs("<path class=\"mk\" d=\"", file);
        svg_marker(style, 17, 6, file);
        fputs("\"/>", file);
    }
    fputs("</g></svg>", file);
}

static void svg_swatch(const char *css, FILE *file)
{
    fprintf(file,
            "<svg class=\"sample\" width=\"16\" height=\"12\" viewBox=\"0 0 16 12\" aria-hidden=\"true\">"
            "<rect class=\"%s\" x=\"1\" y=\"1\" width=\"14\" height=\"10\"/></svg>",
            css);
}

/* ---- plots ---- */

typedef struct svg_frame {
    svg_axis_t x, y;
    double left, right, top, bottom;
} svg_frame_t;

static void svg_widen(double value, double *low, double *high)
{
    if (!isnan(value)) {
        *low = fmin(*low, value);
        *high = fmax(*high, value);
    }
}

static double svg_stacked(const svg_plot_t *plot, int32_t n_areas, int64_t i)
{
    double sum = 0;
    for (int32_t a = 0; a < n_areas; a++) {
        sum += isnan(plot->areas[a].y[i]) ? 0 : plot->areas[a].y[i];
    }
    return sum;
}

static void svg_ranges(const svg_plot_t *plot, double *x_low, double *x_high, double *y_low, double *y_high)
{
    *x_low = *y_low = INFINITY;
    *x_high = *y_high = -INFINITY;
    for (int64_t i = 0; i < plot->n_area_x; i++) {
        svg_widen(plot->area_x[i], x_low, x_high);
        svg_widen(svg_stacked(plot, plot->n_areas, i), y_low, y_high);
    }
    for (int32_t s = 0; s < plot->n_lines; s++) {
        const svg_line_t *line = &plot->lines[s];
        for (int64_t i = 0; i < line->n; i++) {
            svg_widen(line->x[i], x_low, x_high);
            svg_widen(line->y[i], y_low, y_high);
            if (line->low != NULL) {
                svg_widen(line->low[i], y_low, y_high);
                svg_widen(line->high[i], y_low, y_high);
            }
        }
    }
    if (*x_high < *x_low) {
        *x_low = *x_high = 0;
    }
    if (*y_high < *y_low) {
        *y_low = *y_high = 0;
    }
    *y_low = plot->from_zero ? fmin(0, *y_low) : *y_low;
    *y_low = *y_low < plot->y_least ? plot->y_least : *y_low;
    *y_high = *y_high > plot->y_most ? plot->y_most : *y_high;
}

static svg_frame_t svg_fit(const svg_plot_t *plot)
{
    svg_frame_t frame;
    double x_low, x_high, y_low, y_high;
    char text[48];
    svg_ranges(plot, &x_low, &x_high, &y_low, &y_high);
    frame.y = svg_axis(y_low, y_high, 5, 0, 1);
    frame.x = svg_axis(x_low, x_high, 10, plot->x_whole, 0);
    frame.left = svg_widest_tick(&frame.y);
    for (int32_t m = 0; m < plot->n_marks; m++) {
        frame.left = fmax(frame.left, svg_text_width(plot->marks[m].name));
    }
    frame.left += 12;
    frame.right =
        SVG_WIDTH - fmax(12, svg_text_width(svg_tick_text(&frame.x, frame.x.high, text, sizeof text)) / 2 + 2);
    frame.top = 26 + plot->n_marks * SVG_MARK_ROW + (plot->n_marks > 0 ? 8 : 0);
    frame.bottom = frame.top + SVG_PLOT_HEIGHT;
    frame.x.from = frame.left;
    frame.x.to = frame.right;
    frame.y.from = frame.bottom;
    frame.y.to = frame.top;
    svg_thin_ticks(&frame.x);
    return frame;
}

static void svg_draw_axes(const svg_plot_t *plot, const svg_frame_t *frame, FILE *file)
{
    char text[48];
    double value;
    svg_text(2, frame->top - 11, "t label", plot->y_label, file);
    for (int i = 0; svg_tick(&frame->y, i, &value); i++) {
        const double y = svg_at(&frame->y, value);
        svg_segment(frame->left, y, frame->right, y, "gl", file);
        svg_text(frame->left - 6, y + 4, "t e", svg_tick_text(&frame->y, value, text, sizeof text), file);
    }
    const double every = plot->rule_every, first = every > 0 ? floor(frame->x.low / every) + 1 : 0;
    for (int i = 0; every > 0 && i < SVG_MOST_TICKS && (first + i) * every < frame->x.high; i++) {
        const double x = svg_at(&frame->x, (first + i) * every - 0.5);
        svg_segment(x, frame->top, x, frame->bottom, "rule", file);
    }
    svg_segment(frame->left, frame->bottom, frame->right, frame->bottom, "axis", file);
    for (int i = 0; svg_tick(&frame->x, i, &value); i++) {
        const double x = svg_at(&frame->x, value);
        svg_segment(x, frame->bottom, x, frame->bottom + 4, "axis", file);
        svg_text(x, frame->bottom + 17, "t m", svg_tick_text(&frame->x, value, text, sizeof text), file);
    }
    svg_text((frame->left + frame->right) / 2, frame->bottom + 34, "t m label", plot->x_label, file);
}

/* An area reaches to both ends of the axis, so that one point is seen, too. */
static void svg_draw_area(const svg_plot_t *plot, const svg_frame_t *frame, int32_t a, FILE *file)
{
    const int64_t n = plot->n_area_x;
    fprintf(file, "<path class=\"%s\" d=\"M%.1f %.1f", plot->areas[a].css, frame->left,
            svg_at(&frame->y, svg_stacked(plot, a + 1, 0)));
    for (int64_t i = 0; i < n; i++) {
        fprintf(file, "L%.1f %.1f", svg_at(&frame->x, plot->area_x[i]), svg_at(&frame->y, svg_stacked(plot, a + 1, i)));
    }
    fprintf(file, "L%.1f %.1f", frame->right, svg_at(&frame->y, svg_stacked(plot, a + 1, n - 1)));
    fprintf(file, "L%.1f %.1f", frame->right, svg_at(&frame->y, svg_stacked(plot, a, n - 1)));
    for (int64_t i = n - 1; i >= 0 && a > 0; i--) {
        fprintf(file, "L%.1f %.1f", svg_at(&frame->x, plot->area_x[i]), svg_at(&frame->y, svg_stacked(plot, a, i)));
    }
    fprintf(file, "L%.1f %.1fz\"/>\n", frame->left, svg_at(&frame->y, svg_stacked(plot, a, 0)));
}

static void svg_draw_band(const svg_line_t *line, const svg_frame_t *frame, FILE *file)
{
    int64_t points = 0;
    fputs("<path class=\"band\" d=\"", file);
    for (int side = 0; side < 2; side++) {
        const double *y = side == 0 ? line->low : line->high;
        for (int64_t j = 0; j < line->n; j++) {
            const int64_t i = side == 0 ? j : line->n - 1 - j;
            if (!isnan(line->low[i])) {
                fprintf(file, "%c%.1f %.1f", points++ == 0 ? 'M' : 'L', svg_at(&frame->x, line->x[i]),
                        svg_at(&frame->y, y[i]));
            }
        }
    }
    fputs(points > 0 ? "z\"/>\n" : "\"/>\n", file);
}

static void svg_draw_line(const svg_line_t *line, const svg_frame_t *frame, FILE *file)
{
    char css[16];
    fprintf(file, "<g class=\"%s\">\n", svg_line_class(line->style, css, sizeof css));
    if (line->low != NULL) {
        svg_draw_band(line, frame, file);
    }
    fputs("<path class=\"ln\" d=\"", file);
    for (int64_t i = 0; i < line->n; i++) {
        if (!isnan(line->y[i])) {
            fprintf(file, "%c%.1f %.1f", i == 0 || isnan(line->y[i - 1]) ? 'M' : 'L', svg_at(&frame->x, line->x[i]),
                    svg_at(&frame->y, line->y[i]));
        }
    }
    fputs("\"/>\n", file);
    if (line->style >= 0) {
        /* Lines that lie on each other show their markers at different places. */
        const int64_t every = line->n <= 3 * SVG_MARKERS ? 1 : line->n / SVG_MARKERS;
        fputs("<path class=\"mk\" d=\"", file);
        for (int64_t i = every > 1 ? (line->style % HTML_STYLES) * every / HTML_STYLES + every / 16 : 0; i < line->n;
             i += every) {
            if (!isnan(line->y[i])) {
                svg_marker(line->style, svg_at(&frame->x, line->x[i]), svg_at(&frame->y, line->y[i]), file);
            }
        }
        fputs("\"/>\n", file);
    }
    fputs("</g>\n", file);
}

/* Ticks that fall on the same half pixel are drawn once: a long run does not make a large file. */
static void svg_draw_marks(const svg_marks_t *marks, const svg_frame_t *frame, double y, FILE *file)
{
    double last = -1;
    svg_text(frame->left - 6, y + 11, "t e", marks->name, file);
    svg_segment(frame->left, y + SVG_MARK_ROW - 1, frame->right, y + SVG_MARK_ROW - 1, "gl", file);
    fputs("<path class=\"event\" d=\"", file);
    for (int64_t i = 0; i < marks->n; i++) {
        const double x = svg_at(&frame->x, marks->x[i]);
        if (x - last >= 0.5) {
            fprintf(file, "M%.1f %.1fv%d", x, y + 2, SVG_MARK_ROW - 4);
            last = x;
        }
    }
    fputs("\"/>\n", file);
}

void svg_plot(const svg_plot_t *plot, FILE *file)
{
    const svg_frame_t frame = svg_fit(plot);
    svg_begin(plot->title, SVG_WIDTH, frame.bottom + 42, file);
    svg_draw_axes(plot, &frame, file);
    for (int32_t a = 0; a < plot->n_areas && plot->n_area_x > 0; a++) {
        svg_draw_area(plot, &frame, a, file);
    }
    for (int32_t s = 0; s < plot->n_lines; s++) {
        svg_draw_line(&plot->lines[s], &frame, file);
    }
    for (int32_t m = 0; m < plot->n_marks; m++) {
        svg_draw_marks(&plot->marks[m], &frame, 2 + m * SVG_MARK_ROW, file);
    }
    fputs("</svg>\n", file);
}

static void svg_legend_text(const char *text, FILE *file)
{
    html_escape(text, file);
    fputs("</li>\n", file);
}

void svg_plot_legend(const svg_plot_t *plot, FILE *file)
{
    fputs("<ul class=\"legend\">\n", file);
    for (int32_t a = 0; a < plot->n_areas; a++) {
        fputs("<li>", file);
        svg_swatch(plot->areas[a].css, file);
        svg_legend_text(plot->areas[a].name, file);
    }
    for (int32_t s = 0; s < plot->n_lines; s++) {
        fputs("<li>", file);
        svg_sample(plot->lines[s].style, file);
        svg_legend_text(plot->lines[s].name, file);
    }
    fputs("</ul>\n", file);
}

/* ---- bars ---- */

/* The longest bar or range, and the room that labels and texts take. */
static void svg_measure_bars(const svg_bars_t *bars, double *most, double *left, double *right, double *height)
{
    *most = *left = *right = 0;
    *height = 0;
    for (int64_t i = 0; i < bars->n; i++) {
        const svg_bar_t *bar = &bars->bars[i];
        double sum = 0;
        for (int32_t p = 0; p < bars->n_parts; p++) {
            sum += isnan(bar->value[p]) ? 0 : bar->value[p];
        }
        *most = fmax(*most, fmax(sum, fmax(bar->mark, bar->high))); /* fmax() skips NAN */
        *left = fmax(*left, svg_text_width(bar->label));
        *right = fmax(*right, svg_text_width(bar->text));
        *height += SVG_BAR + SVG_BAR_GAP + (bar->gap ? SVG_GROUP_GAP : 0);
    }
}

static void svg_draw_bar(const svg_bars_t *bars, const svg_bar_t *bar, const svg_axis_t *axis, double y, FILE *file)
{
    double sum = 0, end = 0, total = 0;
    char text[16];
    for (int32_t p = 0; p < bars->n_parts; p++) {
        total += isnan(bar->value[p]) ? 0 : bar->value[p];
    }
    svg_text(axis->from - 8, y + 13, "t e", bar->label, file);
    for (int32_t p = 0; p < bars->n_parts; p++) {
        const double value = isnan(bar->value[p]) ? 0 : bar->value[p];
        const double from = svg_at(axis, sum), to = svg_at(axis, sum + value);
        sum += value;
        if (to - from < 0.1) {
            continue;
        }
        fprintf(file, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n", bars->css[p], from,
                y, to - from, SVG_BAR);
        snprintf(text, sizeof text, "%.0f %%", total > 0 ? 100 * value / total : 0);
        if (bars->percent && to - from > svg_text_width(text) + 8) {
            char css[48];
            snprintf(css, sizeof css, "t m on-%s", bars->css[p]);
            svg_text((from + to) / 2, y + 13, css, text, file);
        }
    }
    end = svg_at(axis, sum);
    if (!isnan(bar->low) && !isnan(bar->high)) {
        svg_segment(svg_at(axis, bar->low), y + SVG_BAR / 2.0, svg_at(axis, bar->high), y + SVG_BAR / 2.0, "range",
                    file);
        svg_segment(svg_at(axis, bar->low), y + 4, svg_at(axis, bar->low), y + SVG_BAR - 4, "range", file);
        svg_segment(svg_at(axis, bar->high), y + 4, svg_at(axis, bar->high), y + SVG_BAR - 4, "range", file);
        end = fmax(end, svg_at(axis, bar->high));
    }
    if (!isnan(bar->mark)) {
        svg_segment(svg_at(axis, bar->mark), y - 2, svg_at(axis, bar->mark), y + SVG_BAR + 2, "halo", file);
        svg_segment(svg_at(axis, bar->mark), y - 2, svg_at(axis, bar->mark), y + SVG_BAR + 2, "mark", file);
        end = fmax(end, svg_at(axis, bar->mark));
    }
    svg_text(end + 7, y + 13, "t", bar->text, file);
}

void svg_bars(const svg_bars_t *bars, FILE *file)
{
    double most, left, right, height, value, y = 6;
    char text[48];
    svg_measure_bars(bars, &most, &left, &right, &height);
    svg_axis_t axis = svg_axis(0, most, 6, 0, 0);
    axis.low = 0;
    axis.from = left + 12;
    axis.to = SVG_WIDTH - fmax(right + 14, svg_widest_tick(&axis) / 2 + 2);
    axis.to = fmax(axis.to, axis.from + 80);
    svg_thin_ticks(&axis);
    svg_begin(bars->title, SVG_WIDTH, height + 46, file);
    for (int i = 0; svg_tick(&axis, i, &value); i++) {
        const double x = svg_at(&axis, value);
        svg_segment(x, 2, x, height + 8, "gl", file);
        svg_text(x, height + 22, "t m", svg_tick_text(&axis, value, text, sizeof text), file);
    }
    for (int64_t i = 0; i < bars->n; i++) {
        y += bars->bars[i].gap ? SVG_GROUP_GAP : 0;
        svg_draw_bar(bars, &bars->bars[i], &axis, y, file);
        y += SVG_BAR + SVG_BAR_GAP;
    }
    svg_text((axis.from + axis.to) / 2, height + 39, "t m label", bars->x_label, file);
    fputs("</svg>\n", file);
}

void svg_bars_legend(const svg_bars_t *bars, FILE *file)
{
    fputs("<ul class=\"legend\">\n", file);
    for (int32_t p = 0; p < bars->n_parts; p++) {
        fputs("<li>", file);
        svg_swatch(bars->css[p], file);
        svg_legend_text(bars->names[p], file);
    }
    if (bars->mark_name != NULL) {
        fputs("<li><svg class=\"sample\" width=\"16\" height=\"12\" viewBox=\"0 0 16 12\" aria-hidden=\"true\">"
              "<path class=\"mark\" d=\"M8 0V12\"/></svg>",
              file);
        svg_legend_text(bars->mark_name, file);
    }
    fputs("</ul>\n", file);
}

/* ---- heat maps ---- */

/* Width of a cell: what the longest number needs, or without numbers what is there. */
static double svg_heat_cell(const double *value, int32_t n, int decimals, double left, int *numbers)
{
    char text[48];
    double cell = 30;
    for (int32_t i = 0; i < n * n; i++) {
        snprintf(text, sizeof text, "%.*f", decimals, value[i]);
        cell = fmax(cell, svg_text_width(text) + 10);
    }
    *numbers = left + n * cell + 4 <= SVG_WIDTH;
    return *numbers ? cell : fmin(26, (SVG_WIDTH - left - 4) / n);
}

static void svg_heat_row(const double *value, int32_t n, double most, int decimals, int numbers, double left, double y,
                         double cell, double height, FILE *file)
{
    char text[48];
    for (int32_t j = 0; j < n; j++) {
        const double share = most > 0 && value[j] > 0 ? value[j] / most : 0, x = left + j * cell;
        fprintf(file,
                "<rect class=\"heat\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill-opacity=\"%.2f\"/>\n",
                x, y, cell - 1, height - 1, share * 0.6 + 0.04);
        if (numbers && !isnan(value[j])) {
            snprintf(text, sizeof text, "%.*f", decimals, value[j]);
            svg_text(x + cell / 2, y + height / 2 + 4, "t m", text, file);
        }
    }
}

/* "to 3 from 0", in the corner. */
static const char svg_corner[] = "to ↓  from →";

static double svg_heat_left(void)
{
    return svg_text_width(svg_corner) + 8;
}

double svg_heat_width(const double *value, int32_t n, int decimals)
{
    int numbers;
    return svg_heat_left() + n * svg_heat_cell(value, n, decimals, svg_heat_left(), &numbers) + 12;
}

void svg_heat(const char *title, const double *value, int32_t n, double most, int decimals, FILE *file)
{
    char text[16];
    int numbers;
    const double left = svg_heat_left(), top = 22;
    const double cell = svg_heat_cell(value, n, decimals, left, &numbers), height = numbers ? 26 : cell;
    const int32_t every = (int32_t)ceil(26 / cell); /* ranks that are named, so that the numbers stand apart */
    svg_begin(title, svg_heat_width(value, n, decimals), top + n * height + 8, file);
    svg_text(2, 14, "t label", svg_corner, file);
    for (int32_t i = 0; i < n; i++) {
        if (i % every == 0) {
            snprintf(text, sizeof text, "%d", (int)i);
            svg_text(left + i * cell + cell / 2, 14, "t m", text, file);
            svg_text(left - 8, top + i * height + height / 2 + 4, "t e", text, file);
        }
        svg_heat_row(value + (int64_t)i * n, n, most, decimals, numbers, left, top + i * height, cell, height, file);
    }
    fputs("</svg>\n", file);
}
