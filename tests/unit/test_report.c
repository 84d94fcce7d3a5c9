/*
 * The pieces of a report: bins keep every sum whatever the length, charts keep every point and text inside of their frame,
 * texts come out as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/rng.h"
#include "report/html.h"
#include "report/run.h"
#include "report/series.h"
#include "report/svg.h"
#include "report/table.h"

static uint64_t draw(uint64_t *state)
{
    return *state = rng_mix(*state);
}

/* ---- series ---- */

/* Against plain sums: bins hold whole groups of minibatches, nothing is lost, and there are never more than fit. */
static void bins_hold_every_minibatch(void **state)
{
    static const int64_t lengths[] = {0, 1, 2, 399, 400, 401, 800, 801, 5000, 123456};
    (void)state;
    series_t *series = malloc(sizeof *series);
    assert_non_null(series);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const int64_t n = lengths[l];
        double all = 0;
        series_init(series);
        for (int64_t t = 0; t < n; t++) {
            series_add(series, t, SERIES_MISS, (double)(t * t % 1009));
            series_add(series, t, SERIES_LOSS, t % 3 == 0 ? NAN : 2);
        }
        assert_in_range(series_bins(series), n > 0, SERIES_BINS);
        assert_true(n <= SERIES_BINS ? series->width == 1 : series_bins(series) > SERIES_BINS / 2);
        for (int32_t b = 0; b < series_bins(series); b++) {
            double sum = 0;
            int64_t count = 0;
            for (int64_t t = b * series->width; t < (b + 1) * series->width && t < n; t++) {
                sum += (double)(t * t % 1009);
                count++;
            }
            assert_int_equal(series->count[SERIES_MISS][b], count);
            assert_true(fabs(series_mean(series, SERIES_MISS, b) - sum / (double)count) < 1e-9);
            assert_true(series_mean(series, SERIES_LOSS, b) == 2 || (series->width == 1 && b % 3 == 0));
            assert_true(isnan(series_mean(series, SERIES_BOUND, b)));
            assert_true(series_middle(series, b) >= (double)(b * series->width) &&
                        series_middle(series, b) <= (double)(n - 1));
            all += sum;
        }
        double total = 0;
        for (int64_t t = 0; t < n; t++) {
            total += (double)(t * t % 1009);
        }
        assert_true(all == total);
    }
    free(series);
}

static void series_of_two_lengths_add_up(void **state)
{
    (void)state;
    series_t *a = malloc(sizeof *a), *b = malloc(sizeof *b);
    assert_true(a != NULL && b != NULL);
    series_init(a);
    series_init(b);
    for (int64_t t = 0; t < 1000; t++) {
        series_add(a, t, SERIES_HIT, 1);
        if (t < 300) {
            series_add(b, t, SERIES_HIT, 3);
        }
    }
    series_merge(a, b);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->end, 1000);
    assert_true(series_mean(a, SERIES_HIT, 0) == 2);
    assert_true(series_mean(a, SERIES_HIT, series_bins(a) - 1) == 1);
    free(a);
    free(b);
}

/* A minibatch far away, as a damaged file may have it, neither hangs nor overflows. */
static void minibatches_far_away_fit(void **state)
{
    (void)state;
    series_t *series = malloc(sizeof *series);
    assert_non_null(series);
    series_init(series);
    series_add(series, 0, SERIES_MISS, 1);
    series_add(series, (int64_t)1 << 53, SERIES_MISS, 5);
    assert_in_range(series_bins(series), 2, SERIES_BINS);
    assert_true(series_mean(series, SERIES_MISS, 0) == 1);
    assert_true(series_mean(series, SERIES_MISS, series_bins(series) - 1) == 5);
    free(series);
}

/* ---- charts ---- */

typedef struct drawn {
    char *text;
    size_t size;
    FILE *file;
} drawn_t;

static void draw_begin(drawn_t *drawn)
{
    *drawn = (drawn_t){0};
    drawn->file = open_memstream(&drawn->text, &drawn->size);
    assert_non_null(drawn->file);
}

static double attribute(const char *element, const char *name)
{
    const char *at = strstr(element, name);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

/* Every text and rectangle stands inside of the frame; paths have numbers only. */
static void check_frame(drawn_t *drawn)
{
    assert_int_equal(fclose(drawn->file), 0);
    const double width = attribute(drawn->text, " width=\""), height = attribute(drawn->text, " height=\"");
    for (const char *at = drawn->text; (at = strchr(at, '<')) != NULL; at++) {
        if (strncmp(at, "<text", 5) == 0 || strncmp(at, "<rect", 5) == 0) {
            const double x = attribute(at, " x=\""), y = attribute(at, " y=\"");
            assert_true(x >= 0 && x <= width && y >= 0 && y <= height);
        }
        if (strncmp(at, "<rect", 5) == 0) {
            assert_true(attribute(at, " x=\"") + attribute(at, " width=\"") <= width + 0.1);
        }
        if (strncmp(at, "<path", 5) == 0) {
            const char *d = strstr(at, " d=\"") + 4;
            const size_t n = strcspn(d, "\"");
            assert_true(memchr(d, 'n', n) == NULL);
        }
    }
    free(drawn->text);
}

static void plots_of_any_numbers_stay_in_their_frame(void **state)
{
    enum { N = 50 };
    double x[N], y[N], low[N], high[N], marks[N];
    (void)state;
    uint64_t random = 7;
    for (int round = 0; round < 500; round++) {
        const double scale = pow(10, (double)(draw(&random) % 40) - 20);
        const int64_t n = (int64_t)(draw(&random) % (N + 1));
        for (int64_t i = 0; i < n; i++) {
            x[i] = (double)i * (round % 5 == 0 ? 0 : 1) + (round % 7 == 0 ? 1e15 : 0);
            y[i] = draw(&random) % 9 == 0 ? NAN : ((double)(draw(&random) % 2001) - (round % 2 ? 0 : 1000)) * scale;
            low[i] = y[i] - scale;
            high[i] = y[i] + scale;
            marks[i] = (double)i;
        }
        const svg_line_t lines[] = {
            {.name = "a", .style = round % 10, .n = n, .x = x, .y = y, .low = low, .high = high},
            {.name = "b", .style = SVG_BOUND, .n = n, .x = x, .y = low}};
        const svg_area_t areas[] = {{"c", "miss", high}, {"d", "fill", high}};
        const svg_marks_t rows[] = {{"replaced", n, marks}, {"nothing stale", n, marks}};
        const svg_plot_t plot = {.title = "t",
                                 .x_label = "x",
                                 .y_label = "y",
                                 .x_whole = round % 2,
                                 .from_zero = round % 3 == 0,
                                 .y_least = NAN,
                                 .y_most = NAN,
                                 .n_areas = round % 4 ? 0 : 2,
                                 .areas = areas,
                                 .area_x = x,
                                 .n_area_x = n,
                                 .n_lines = 2,
                                 .lines = lines,
                                 .n_marks = round % 3,
                                 .marks = rows,
                                 .rule_every = round % 6};
        drawn_t drawn;
        draw_begin(&drawn);
        svg_plot(&plot, drawn.file);
        check_frame(&drawn);
    }
}

static void bars_and_heat_of_any_numbers_stay_in_their_frame(void **state)
{
    static const char *const names[] = {"one", "two", "three"}, *const css[] = {"p1", "p2", "net"};
    (void)state;
    uint64_t random = 9;
    for (int round = 0; round < 100; round++) {
        const double scale = pow(10, (double)(draw(&random) % 30) - 12);
        double value[12][3], matrix[SVG_MAX_RANKS * SVG_MAX_RANKS];
        svg_bar_t bar[12];
        drawn_t drawn;
        for (int i = 0; i < 12; i++) {
            for (int p = 0; p < 3; p++) {
                value[i][p] = draw(&random) % 7 == 0 ? (p ? NAN : 0) : (double)(draw(&random) % 1000) * scale;
            }
            bar[i] = (svg_bar_t){.label = i % 2 ? "a" : "a label that is longer than others",
                                 .value = value[i],
                                 .mark = i % 3 ? NAN : 500 * scale,
                                 .low = i % 4 ? NAN : scale,
                                 .high = i % 4 ? NAN : 3000 * scale,
                                 .text = "12 345 678 rows",
                                 .gap = i % 5 == 0};
        }
        const svg_bars_t bars = {.title = "t",
                                 .x_label = "seconds (s)",
                                 .n_parts = 3,
                                 .names = names,
                                 .css = css,
                                 .percent = round % 2,
                                 .n = round % 13,
                                 .bars = bar};
        draw_begin(&drawn);
        svg_bars(&bars, drawn.file);
        check_frame(&drawn);
        const int32_t n = 1 + round % SVG_MAX_RANKS;
        for (int32_t i = 0; i < n * n; i++) {
            matrix[i] = i == 3 ? NAN : (double)(draw(&random) % 1000);
        }
        draw_begin(&drawn);
        svg_heat("t", matrix, n, 999, round % 3, drawn.file);
        check_frame(&drawn);
    }
}

/* ---- texts ---- */

static void texts_are_escaped(void **state)
{
    drawn_t drawn;
    (void)state;
    draw_begin(&drawn);
    html_escape("<a href='x'>\"&amp;", drawn.file);
    assert_int_equal(fclose(drawn.file), 0);
    assert_string_equal(drawn.text, "&lt;a href=&#39;x&#39;&gt;&quot;&amp;amp;");
    free(drawn.text);
}

static void tables_become_html(void **state)
{
    drawn_t drawn;
    (void)state;
    table_t *table = table_open("l|r");
    table_cell(table, "run");
    table_cell(table, "rows");
    table_line(table);
    table_cell(table, "B <b>");
    table_count(table, 1234);
    table_cell(table, "Bc");
    table_number(table, NAN, 1, " %");
    draw_begin(&drawn);
    table_html(table, 1, drawn.file);
    assert_int_equal(fclose(drawn.file), 0);
    assert_string_equal(
        drawn.text,
        "<table>\n<thead>\n<tr><th class=\"l\">run</th><th class=\"r gap\">rows</th></tr>\n</thead>\n<tbody>\n"
        "<tr><td class=\"l\"><span class=\"key k1\">B</span> &lt;b&gt;</td><td class=\"r gap\">1&nbsp;234</td></tr>\n"
        "<tr><td class=\"l\">Bc</td><td class=\"r gap\">-</td></tr>\n</tbody>\n</table>\n");
    free(drawn.text);
    table_close(table);
}

static void savings_have_edges(void **state)
{
    (void)state;
    assert_true(isnan(run_saved_percent(0, 0)));
    assert_true(run_saved_percent(0, 5) == 100);
    assert_true(run_saved_percent(10, 5) == -100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_hold_every_minibatch),
        cmocka_unit_test(series_of_two_lengths_add_up),
        cmocka_unit_test(minibatches_far_away_fit),
        cmocka_unit_test(plots_of_any_numbers_stay_in_their_frame),
        cmocka_unit_test(bars_and_heat_of_any_numbers_stay_in_their_frame),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(tables_become_html),
        cmocka_unit_test(savings_have_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
