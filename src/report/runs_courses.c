/* How runs went, minibatch by minibatch: rows against the bound with decision marks, hits, savings, window, loss. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/runs_parts.h"

enum { COURSE_MARKS = 4, COURSE_MAX_RULES = 30 };

/* A vertical line at every epoch, unless there are too many. */
static double courses_rules(const run_t *run)
{
    const int64_t steps = run->steps_per_epoch;
    return steps > 0 && run->mean->end / steps <= COURSE_MAX_RULES && run->mean->end > steps ? (double)steps : 0;
}

static void courses_point_text(const run_t *run, char *text, size_t size)
{
    if (run->mean->width > 1) {
        snprintf(text, size, " Each point is the mean of %" PRId64 " minibatches.", run->mean->width);
    } else {
        text[0] = '\0';
    }
}

/* ---- one run: rows ---- */

static int courses_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* When decisions of each kind took effect. Returns the kinds that there are; x[] is one array for all of them. */
static int32_t courses_marks(const run_t *run, double *x, svg_marks_t *marks)
{
    static const char *const names[COURSE_MARKS] = {"replaced", "kept", "nothing stale", "late or failed"};
    int32_t n = 0;
    for (int kind = 0; kind < COURSE_MARKS; kind++) {
        int64_t count = 0;
        for (int64_t d = 0; d < run->n_decisions; d++) {
            const read_decision_t *decision = &run->decision[d];
            const int status = decision->status < 3 ? (int)decision->status : 3;
            const int64_t when = decision->applied >= 0    ? decision->applied
                                 : decision->answered >= 0 ? decision->answered
                                                           : decision->asked;
            if (status == kind && when >= 0) {
                x[count++] = (double)when;
            }
        }
        if (count > 0) {
            qsort(x, (size_t)count, sizeof *x, courses_compare);
            marks[n++] = (svg_marks_t){.name = names[kind], .n = count, .x = x};
            x += count;
        }
    }
    return n;
}

static void courses_rows_of(page_t *page, const runs_t *runs, int i)
{
    const run_t *run = &runs->run[i];
    const int32_t n = series_bins(run->mean);
    runs_line_t *l = runs->line;
    svg_marks_t marks[COURSE_MARKS];
    char note[256], points[96];
    double *x = malloc((size_t)(run->n_decisions + 1) * sizeof *x);
    if (x == NULL) {
        page->failed = 1;
        return;
    }
    courses_point_text(run, points, sizeof points);
    snprintf(note, sizeof note, "Rows a minibatch on each rank, mean of %d rank%s; marks of all ranks.%s",
             (int)run->n_ranks, run->n_ranks == 1 ? "" : "s", points);
    if (!page_figure(page, i, run->label, note)) {
        free(x);
        return;
    }
    for (int32_t b = 0; b < n; b++) {
        l->x[b] = series_middle(run->mean, b);
        l->y[b] = series_mean(run->mean, SERIES_MISS, b);
        l->low[b] = series_mean(run->mean, SERIES_FILL, b);
        l->high[b] = series_mean(run->mean, SERIES_REMOTE, b);
        l->other[b] = series_mean(run->mean, SERIES_BOUND, b);
    }
    const svg_area_t areas[] = {{"misses", "miss", l->y}, {"fill rows", "fill", l->low}};
    const svg_line_t lines[] = {
        {.name = "asked for (fetched without a buffer)", .style = SVG_LIMIT, .n = n, .x = l->x, .y = l->high},
        {.name = "bound: the best possible buffer of this size", .style = SVG_BOUND, .n = n, .x = l->x, .y = l->other}};
    const svg_plot_t plot = {.title = "Rows fetched in each minibatch",
                             .x_label = "minibatch",
                             .y_label = "rows a minibatch",
                             .x_whole = 1,
                             .from_zero = 1,
                             .y_least = NAN,
                             .y_most = NAN,
                             .n_areas = 2,
                             .areas = areas,
                             .area_x = l->x,
                             .n_area_x = n,
                             .n_lines = run->bound >= 0 ? 2 : 1,
                             .lines = lines,
                             .n_marks = courses_marks(run, x, marks),
                             .marks = marks,
                             .rule_every = courses_rules(run)};
    svg_plot_legend(&plot, page->file);
    svg_plot(&plot, page->file);
    page_end_figure(page);
    free(x);
}

/* ---- several runs in one chart ---- */

typedef enum courses_kind {
    COURSES_FETCHED,
    COURSES_HITS,
    COURSES_SAVED,
    COURSES_WINDOW,
    COURSES_LOSS,
    COURSES_VALID
} courses_kind_t;

static double courses_fetched(const series_t *series, int32_t bin)
{
    return series_mean(series, SERIES_MISS, bin) + series_mean(series, SERIES_FILL, bin);
}

static double courses_sum(const series_t *series, series_field_t field, int32_t bin)
{
    return series->sum[field][bin];
}

/* Share of rows saved from the start to each bin: of the run, or of the bound. */
static void courses_fill_saved(const run_t *run, int bound, runs_line_t *line)
{
    double remote = 0, fetched = bound || isnan(run->start_rows) ? 0 : run->start_rows;
    for (int32_t b = 0; b < series_bins(run->mean); b++) {
        remote += courses_sum(run->mean, SERIES_REMOTE, b);
        fetched += bound ? courses_sum(run->mean, SERIES_BOUND, b)
                         : courses_sum(run->mean, SERIES_MISS, b) + courses_sum(run->mean, SERIES_FILL, b);
        line->x[b] = series_middle(run->mean, b);
        line->y[b] = remote > 0 ? 100 * (1 - fetched / remote) : NAN;
    }
}

static void courses_fill_fetched(const run_t *run, runs_line_t *line)
{
    for (int32_t b = 0; b < series_bins(run->mean); b++) {
        line->x[b] = series_middle(run->mean, b);
        line->y[b] = courses_fetched(run->mean, b);
        line->low[b] = line->high[b] = NAN;
        for (int32_t r = 0; r < run->n_ranks; r++) {
            if (run->rank[r].series != NULL && b < series_bins(run->rank[r].series)) {
                const double fetched = courses_fetched(run->rank[r].series, b);
                line->low[b] = fmin(line->low[b], fetched);
                line->high[b] = fmax(line->high[b], fetched);
            }
        }
    }
}

/* The points of a run; returns how many. */
static int64_t courses_fill(const run_t *run, courses_kind_t kind, runs_line_t *line)
{
    const int32_t n = series_bins(run->mean);
    if (kind == COURSES_VALID) {
        const int64_t epochs = run->n_epochs < SERIES_BINS ? run->n_epochs : SERIES_BINS;
        for (int64_t e = 0; e < epochs; e++) {
            line->x[e] = (double)(run->n_epochs - epochs + e + 1);
            line->y[e] = run->valid != NULL ? run->valid[run->n_epochs - epochs + e] : NAN;
        }
        return epochs;
    }
    if (kind == COURSES_FETCHED) {
        courses_fill_fetched(run, line);
    } else if (kind == COURSES_SAVED) {
        courses_fill_saved(run, 0, line);
    } else {
        for (int32_t b = 0; b < n; b++) {
            const double remote = courses_sum(run->mean, SERIES_REMOTE, b);
            line->x[b] = series_middle(run->mean, b);
            line->y[b] = kind == COURSES_HITS
                             ? (remote > 0 ? 100 * courses_sum(run->mean, SERIES_HIT, b) / remote : NAN)
                         : kind == COURSES_WINDOW ? series_mean(run->mean, SERIES_WINDOW, b)
                                                  : series_mean(run->mean, SERIES_LOSS, b);
        }
    }
    return n;
}

/* Whether there is something to draw; a window that is never open is nothing. */
static int courses_known(const runs_line_t *line, int64_t n, courses_kind_t kind)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isnan(line->y[i]) && (kind != COURSES_WINDOW || line->y[i] > 0)) {
            return 1;
        }
    }
    return 0;
}

typedef struct courses_chart {
    courses_kind_t kind;
    const char *title, *note, *x_label, *y_label;
    int from_zero;
    double y_least, y_most;
} courses_chart_t;

static const courses_chart_t courses_charts[] = {
    {COURSES_FETCHED, "Rows fetched in each minibatch",
     "Misses and fill rows, mean of the ranks. With up to three runs the shade is "
     "the range of the ranks.",
     "minibatch", "rows a minibatch", 1, NAN, NAN},
    {COURSES_HITS, "Hit rate", "Remote rows found in the buffer, of all ranks.", "minibatch", "hits (% of remote rows)",
     1, 0, 100},
    {COURSES_SAVED, "Saved since the start",
     "Remote rows that were not fetched, everything counted, the start content too; what "
     "lies below -20 % is drawn at -20 %.",
     "minibatch", "saved (% of remote rows)", 1, -20, 100},
    {COURSES_WINDOW, "Window of look-ahead",
     "Minibatches that were announced when each one was planned, mean of the ranks.", "minibatch", "minibatches ahead",
     1, NAN, NAN},
    {COURSES_LOSS, "Loss", "Training loss.", "minibatch", "loss (mean over seeds)", 0, NAN, NAN},
    {COURSES_VALID, "Validation accuracy", "After each epoch.", "epoch", "accuracy (share of nodes)", 0, NAN, NAN}};

/* The bound in the chart of savings: one line for all runs that have the same. */
static int32_t courses_add_bounds(const runs_t *runs, int first, int last, runs_line_t *store, svg_line_t *lines,
                                  char (*names)[96])
{
    int32_t n = 0;
    for (int i = first; i < last; i++) {
        const run_t *run = &runs->run[i];
        int known = run->bound < 0;
        for (int j = first; j < i; j++) {
            known |= runs->run[j].bound == run->bound && runs->run[j].rows.remote == run->rows.remote;
        }
        if (known) {
            continue;
        }
        courses_fill_saved(run, 1, &store[n]);
        snprintf(names[n], sizeof names[n], "bound of %c%s", 'A' + i,
                 n == 0 && last - first > 1 ? " and those of equal size" : "");
        lines[n] = (svg_line_t){
            .name = names[n], .style = SVG_BOUND, .n = series_bins(run->mean), .x = store[n].x, .y = store[n].y};
        n++;
    }
    return n;
}

static void courses_draw(page_t *page, const runs_t *runs, const courses_chart_t *chart, int first, int last,
                         runs_line_t *bounds)
{
    const int learning = chart->kind == COURSES_LOSS || chart->kind == COURSES_VALID;
    const int same = learning && runs->n > 1 && runs_same_losses(runs);
    svg_line_t lines[2 * RUNS_OVERLAY];
    char names[RUNS_OVERLAY][96], note[320], points[96], title[96];
    int32_t n = 0;
    for (int i = first; i < (same ? first + 1 : last); i++) {
        runs_line_t *line = &runs->line[i - first];
        const int64_t n_points = courses_fill(&runs->run[i], chart->kind, line);
        if (courses_known(line, n_points, chart->kind)) {
            lines[n] = (svg_line_t){.name = same ? "all runs: the same numbers" : runs->short_name[i],
                                    .style = i,
                                    .n = n_points,
                                    .x = line->x,
                                    .y = line->y};
            if (chart->kind == COURSES_FETCHED && last - first <= 3 && runs->run[i].n_ranks > 1) {
                lines[n].low = line->low;
                lines[n].high = line->high;
            }
            n++;
        }
    }
    if (n == 0) {
        return;
    }
    n += chart->kind == COURSES_SAVED ? courses_add_bounds(runs, first, last, bounds, lines + n, names) : 0;
    courses_point_text(&runs->run[first], points, sizeof points);
    snprintf(note, sizeof note, "%s%s", chart->note, chart->kind == COURSES_VALID ? "" : points);
    snprintf(title, sizeof title, last - first < runs->n ? "%s, runs %c to %c" : "%s", chart->title, 'A' + first,
             'A' + last - 1);
    if (page_figure(page, -1, title, note)) {
        const svg_plot_t plot = {.title = title,
                                 .x_label = chart->x_label,
                                 .y_label = chart->y_label,
                                 .x_whole = 1,
                                 .from_zero = chart->from_zero,
                                 .y_least = chart->y_least,
                                 .y_most = chart->y_most,
                                 .n_lines = n,
                                 .lines = lines,
                                 .rule_every = chart->kind == COURSES_VALID ? 0 : courses_rules(&runs->run[first])};
        svg_plot_legend(&plot, page->file);
        svg_plot(&plot, page->file);
        page_end_figure(page);
    }
}

void runs_courses(page_t *page, const runs_t *runs)
{
    if (!page->html) {
        return;
    }
    runs_line_t *bounds = malloc(RUNS_OVERLAY * sizeof *bounds);
    if (bounds == NULL) {
        page->failed = 1;
        return;
    }
    page_section(page, "Over the minibatches");
    page_text(page,
              "A run of more than %d minibatches is drawn in 200 to %d points, each the mean of as many minibatches as "
              "are named. "
              "Faint vertical lines part the epochs.",
              SERIES_BINS, SERIES_BINS);
    for (size_t c = 0; c < sizeof courses_charts / sizeof *courses_charts; c++) {
        for (int first = 0; first < runs->n; first += RUNS_OVERLAY) {
            if (c > 0 || runs->n > 1) { /* one run's rows are drawn in full below */
                const int last = first + RUNS_OVERLAY < runs->n ? first + RUNS_OVERLAY : runs->n;
                courses_draw(page, runs, &courses_charts[c], first, last, bounds);
            }
        }
    }
    page_heading(page, "Misses, fill rows and decisions of each run");
    for (int i = 0; i < runs->n; i++) {
        if (runs->run[i].mean->end > 0) {
            courses_rows_of(page, runs, i);
        }
    }
    free(bounds);
}
