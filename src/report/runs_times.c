/* Where time and bytes went: the parts of each thread, and the traffic from rank to rank. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/runs_parts.h"

enum { TIMES_MOST_RANKS = 16, TIMES_TABLE_RANKS = 16 };

static const char *const times_loader_css[READ_PARTS] = {"p1", "p2", "net", "p3", "p4", "wait"};
static const char *const times_compute_css[READ_PARTS] = {"wait", "p1", "p4", "net", "p2", "p5"};

static double times_sum(const double *seconds)
{
    double sum = 0;
    for (int p = 0; p < READ_PARTS; p++) {
        sum += isnan(seconds[p]) ? 0 : seconds[p];
    }
    return sum;
}

static void times_bar(svg_bar_t *bar, const char *label, const double *seconds, int gap, char *text, size_t size)
{
    snprintf(text, size, "%.3g s", times_sum(seconds));
    *bar =
        (svg_bar_t){.label = label, .value = seconds, .mark = NAN, .low = NAN, .high = NAN, .text = text, .gap = gap};
}

static void times_draw(page_t *page, const char *title, int compute, const svg_bar_t *bar, int64_t n)
{
    const svg_bars_t bars = {.title = title,
                             .x_label = "seconds (s)",
                             .n_parts = READ_PARTS,
                             .percent = 1,
                             .n = n,
                             .bars = bar,
                             .names = compute ? read_compute_parts : read_loader_parts,
                             .css = compute ? times_compute_css : times_loader_css};
    svg_bars_legend(&bars, page->file);
    svg_bars(&bars, page->file);
}

/* The means of all runs, one thread. */
static void times_means(page_t *page, const runs_t *runs, int compute)
{
    svg_bar_t bar[RUNS_MAX];
    char text[RUNS_MAX][32];
    const char *title = compute ? "Compute thread, whole run" : "Loader thread, whole run";
    const char *note =
        compute
            ? "Mean of the ranks. wait: for the loader's minibatch. allreduce: gradients, and ranks that come later."
            : "Mean of the ranks. exchange: asking owners for neighbours and rows. idle: the trainer has enough.";
    if (page_figure(page, -1, title, note)) {
        for (int i = 0; i < runs->n; i++) {
            times_bar(&bar[i], runs->short_name[i], compute ? runs->run[i].compute : runs->run[i].loader, 0, text[i],
                      sizeof text[i]);
        }
        times_draw(page, title, compute, bar, runs->n);
        page_end_figure(page);
    }
}

/* Ranks of one run, both threads. Of many ranks those that waited least and most for rows. */
static void times_ranks(page_t *page, const runs_t *runs, int i, int compute)
{
    const run_t *run = &runs->run[i];
    svg_bar_t bar[TIMES_MOST_RANKS];
    char text[TIMES_MOST_RANKS][32], label[TIMES_MOST_RANKS][32], note[160] = "";
    int32_t n = 0;
    for (int32_t r = 0; r < run->n_ranks && n < TIMES_MOST_RANKS; r++) {
        if (run->rank[r].has_detail || run->rank[r].has_steps) {
            snprintf(label[n], sizeof label[n], "rank %d", (int)r);
            times_bar(&bar[n], label[n], compute ? run->rank[r].compute : run->rank[r].loader, 0, text[n],
                      sizeof text[n]);
            n++;
        }
    }
    if (run->n_ranks > TIMES_MOST_RANKS) {
        snprintf(note, sizeof note, "The first %d of %d ranks.", TIMES_MOST_RANKS, (int)run->n_ranks);
    }
    if (n > 0 && page_figure(page, i, compute ? "Compute thread of each rank" : "Loader thread of each rank", note)) {
        times_draw(page, compute ? "Compute thread of each rank" : "Loader thread of each rank", compute, bar, n);
        page_end_figure(page);
    }
}

static void times_row(table_t *table, const char *name, const double *seconds, double wall)
{
    const double sum = times_sum(seconds);
    table_cell(table, "%s", name);
    for (int p = 0; p < READ_PARTS; p++) {
        if (isnan(seconds[p])) {
            table_cell(table, "-");
        } else {
            table_cell(table, "%.*f (%.0f %%)", sum < 10 ? 3 : 2, seconds[p], sum > 0 ? 100 * seconds[p] / sum : 0);
        }
    }
    table_number(table, isnan(wall) ? sum : wall, sum < 10 ? 3 : 2, "");
}

static table_t *times_table(const char *first, int compute)
{
    table_t *table = table_open("lrrrrrr|r");
    if (table != NULL) {
        table_cell(table, "%s", first);
        for (int p = 0; p < READ_PARTS; p++) {
            table_cell(table, "%s", compute ? read_compute_parts[p] : read_loader_parts[p]);
        }
        table_cell(table, "wall s");
        table_line(table);
    }
    return table;
}

static void times_mean_table(page_t *page, const runs_t *runs, int compute)
{
    table_t *table = times_table(compute ? "compute thread" : "loader thread", compute);
    for (int i = 0; table != NULL && i < runs->n; i++) {
        char name[80];
        snprintf(name, sizeof name, "%c %s", 'A' + i, runs->run[i].label);
        times_row(table, name, compute ? runs->run[i].compute : runs->run[i].loader, runs->run[i].wall);
    }
    page_table(page, table, PAGE_KEYED);
}

static void times_rank_table(page_t *page, const run_t *run, int compute)
{
    table_t *table = times_table(compute ? "compute thread" : "loader thread", compute);
    int32_t shown = 0;
    for (int32_t r = 0; table != NULL && r < run->n_ranks && shown < TIMES_TABLE_RANKS; r++) {
        char name[96];
        if (run->rank[r].has_detail || run->rank[r].has_steps) {
            snprintf(name, sizeof name, "rank %d%s%s", (int)r, run->rank[r].host[0] != '\0' ? " on " : "",
                     run->rank[r].host);
            times_row(table, name, compute ? run->rank[r].compute : run->rank[r].loader, run->rank[r].wall);
            shown++;
        }
    }
    page_table(page, table, PAGE_PLAIN);
}

void runs_times(page_t *page, const runs_t *runs)
{
    page_section(page, "Where the time went");
    page_text(page,
              "Each rank has a loader thread, which samples, plans and fetches the minibatches ahead, and a compute "
              "thread. The parts of "
              "either add up to the wall time.%s",
              runs_any(runs, runs_is_emulated)
                  ? " Links other than \"off\" are emulated, and so is the time of exchange over them."
                  : "");
    times_means(page, runs, 0);
    times_means(page, runs, 1);
    times_mean_table(page, runs, 0);
    times_mean_table(page, runs, 1);
    page_fold(page, runs->n > 1 ? "The ranks of each run" : "The ranks");
    for (int i = 0; i < runs->n; i++) {
        if (runs->n > 1) {
            page_heading(page, "%s", runs->name[i]);
        }
        times_ranks(page, runs, i, 0);
        times_ranks(page, runs, i, 1);
        times_rank_table(page, &runs->run[i], 0);
        times_rank_table(page, &runs->run[i], 1);
    }
    page_end_fold(page);
}

/* ---- traffic ---- */

/* value[n * n]: row is the receiver. 0: the run does not tell. */
static int traffic_matrix(const run_t *run, double *value)
{
    for (int32_t r = 0; r < run->n_ranks; r++) {
        if (run->rank[r].traffic_in_by_rank == NULL) {
            return 0;
        }
        memcpy(value + (int64_t)r * run->n_ranks, run->rank[r].traffic_in_by_rank,
               (size_t)run->n_ranks * sizeof *value);
    }
    return 1;
}

/* One unit and one scale of colours for the matrices of all runs. */
typedef struct traffic_scale {
    const char *unit;
    double divide, most; /* most: of a cell, in units */
    int decimals;
} traffic_scale_t;

static traffic_scale_t traffic_scale(const runs_t *runs)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    traffic_scale_t scale = {units[0], 1, 0, 0};
    size_t unit = 0;
    for (int i = 0; i < runs->n; i++) {
        for (int32_t r = 0; r < runs->run[i].n_ranks; r++) {
            const double *row = runs->run[i].rank[r].traffic_in_by_rank;
            for (int32_t c = 0; row != NULL && c < runs->run[i].n_ranks; c++) {
                scale.most = fmax(scale.most, row[c]);
            }
        }
    }
    while (scale.most / scale.divide >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        scale.divide *= 1000;
        unit++;
    }
    scale.unit = units[unit];
    scale.most /= scale.divide;
    scale.decimals = unit == 0 || scale.most >= 100 ? 0 : 1;
    return scale;
}

static void traffic_text(page_t *page, const run_t *run, const char *title, const double *value, int decimals)
{
    char columns[TIMES_TABLE_RANKS + 2] = "l";
    if (run->n_ranks > TIMES_TABLE_RANKS) {
        return;
    }
    memset(columns + 1, 'r', (size_t)run->n_ranks);
    table_t *table = table_open(columns);
    page_heading(page, "%s", title);
    if (table != NULL) {
        table_cell(table, "to \\ from");
        for (int32_t r = 0; r < run->n_ranks; r++) {
            table_cell(table, "%d", (int)r);
        }
        table_line(table);
        for (int64_t c = 0; c < (int64_t)run->n_ranks * run->n_ranks; c++) {
            if (c % run->n_ranks == 0) {
                table_cell(table, "%d", (int)(c / run->n_ranks));
            }
            table_number(table, value[c], decimals, "");
        }
    }
    page_table(page, table, PAGE_PLAIN);
}

static void traffic_of(page_t *page, const runs_t *runs, int i, const traffic_scale_t *scale, double *value)
{
    const run_t *run = &runs->run[i];
    const int32_t n = run->n_ranks;
    char title[160];
    for (int64_t c = 0; c < (int64_t)n * n; c++) {
        value[c] /= scale->divide;
    }
    if (!page->html) {
        snprintf(title, sizeof title, "%s, %s", runs->name[i], scale->unit);
        traffic_text(page, run, title, value, scale->decimals);
        return;
    }
    snprintf(title, sizeof title, "%s (%s)", run->label, scale->unit);
    if (n > SVG_MAX_RANKS) {
        page_text(page, "%s: a matrix of %d ranks is too large to be drawn; summary.json has it.", runs->name[i],
                  (int)n);
        return;
    }
    page->narrow = svg_heat_width(value, n, scale->decimals) <= 300;
    if (page_figure(page, i, title, "Received by each rank from each rank.")) {
        svg_heat(title, value, n, scale->most, scale->decimals, page->file);
        page_end_figure(page);
    }
    page->narrow = 0;
}

static void traffic_totals(page_t *page, const runs_t *runs)
{
    table_t *table = table_open("lrrrr");
    char text[32];
    if (table != NULL) {
        table_cell(table, "run");
        table_cell(table, "received by all ranks");
        table_cell(table, "least of a rank");
        table_cell(table, "most of a rank");
        table_cell(table, "rows fetched");
        table_line(table);
    }
    for (int i = 0; table != NULL && i < runs->n; i++) {
        const run_t *run = &runs->run[i];
        double sum = NAN, least = NAN, most = NAN;
        for (int32_t r = 0; r < run->n_ranks; r++) {
            const double in = run->rank[r].traffic_in;
            sum = isnan(in) ? sum : (isnan(sum) ? 0 : sum) + in;
            least = fmin(least, in);
            most = fmax(most, in);
        }
        const double values[] = {sum, least, most, (double)run->rows.bytes};
        table_cell(table, "%c %s", 'A' + i, run->label);
        for (int v = 0; v < 4; v++) {
            table_cell(table, "%s",
                       isnan(values[v]) || fabs(values[v]) > 0x1p62
                           ? "-"
                           : text_of_bytes((int64_t)values[v], text, sizeof text));
        }
    }
    page_table(page, table, PAGE_KEYED);
}

void runs_traffic(page_t *page, const runs_t *runs)
{
    const traffic_scale_t scale = traffic_scale(runs);
    page_section(page, "Traffic");
    traffic_totals(page, runs);
    page_text(
        page,
        "Received: ids, neighbours and rows in the loader's exchange. Rows fetched: bytes of feature rows alone.");
    for (int i = 0; i < runs->n; i++) {
        const int64_t n = runs->run[i].n_ranks;
        double *value = malloc((size_t)(n * n) * sizeof *value);
        if (value == NULL) {
            page->failed = 1;
            return;
        }
        if (n > 1 && traffic_matrix(&runs->run[i], value)) {
            traffic_of(page, runs, i, &scale, value);
        }
        free(value);
    }
}
