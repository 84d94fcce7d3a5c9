/* Replays: read with every number checked, then one block a trace: matrices for the eye, all columns for the rest. */
#include "report/replays.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum { REPLAY_MAX_BYTES = 32 << 20, REPLAY_MAX_ROWS = 20000, REPLAY_MAX_CAPACITIES = 64, REPLAY_MAX_WAYS = 256 };

/* ---- reading ---- */

static rudder_status_t replay_read_rank(const cJSON *item, const char *where, char *text, size_t size,
                                        rudder_error_t *error)
{
    int64_t number;
    if (!cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(item, "rank"))) {
        return read_text(item, "rank", where, text, size, error);
    }
    RUDDER_TRY(read_count(item, "rank", where, &number, error));
    snprintf(text, size, "%" PRId64, number);
    return RUDDER_OK;
}

static rudder_status_t replay_read_row(const cJSON *item, const char *where, replays_row_t *row, rudder_error_t *error)
{
    *row = (replays_row_t){0};
    RUDDER_TRY(read_text(item, "trace", where, row->trace, sizeof row->trace, error));
    RUDDER_TRY(read_text(item, "policy", where, row->policy, sizeof row->policy, error));
    RUDDER_TRY(read_text(item, "start", where, row->start, sizeof row->start, error));
    RUDDER_TRY(read_text(item, "decider", where, row->decider, sizeof row->decider, error));
    RUDDER_TRY(replay_read_rank(item, where, row->rank, sizeof row->rank, error));
    RUDDER_TRY(read_count(item, "capacity_rows", where, &row->capacity_rows, error));
    RUDDER_TRY(read_count(item, "remote_rows", where, &row->remote_rows, error));
    RUDDER_TRY(read_number(item, "hit_rows", where, &row->hit_rows, error));
    RUDDER_TRY(read_count(item, "fetched_rows", where, &row->fetched_rows, error));
    RUDDER_TRY(read_number(item, "fill_rows", where, &row->fill_rows, error));
    RUDDER_TRY(read_number(item, "bound_rows", where, &row->bound_rows, error));
    RUDDER_TRY(read_number(item, "epoch_seconds", where, &row->epoch_seconds, error));
    RUDDER_TRY(read_number(item, "bytes", where, &row->bytes, error));
    RUDDER_TRY(read_number(item, "asked", where, &row->asked, error));
    RUDDER_TRY(read_number(item, "replaced", where, &row->replaced, error));
    RUDDER_TRY(read_number(item, "memory_bytes", where, &row->memory_bytes, error));
    return read_number(item, "window_mean", where, &row->window_mean, error);
}

static rudder_status_t replay_read_rows(replays_t *replay, rudder_error_t *error)
{
    char where[FILES_MAX_PATH + 32];
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(replay->file, "rows"), *item;
    const int n = cJSON_IsArray(rows) ? cJSON_GetArraySize(rows) : -1;
    if (n < 0 || n > REPLAY_MAX_ROWS) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected an array \"rows\" of at most %d, found %s", replay->path,
                           REPLAY_MAX_ROWS, n < 0 ? "none" : "more");
    }
    replay->row = malloc((size_t)(n + 1) * sizeof *replay->row);
    if (replay->row == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for %d rows", replay->path, n);
    }
    cJSON_ArrayForEach(item, rows)
    {
        snprintf(where, sizeof where, "%s: row %" PRId64, replay->path, replay->n_rows);
        RUDDER_TRY(replay_read_row(item, where, &replay->row[replay->n_rows], error));
        replay->n_rows++;
    }
    return RUDDER_OK;
}

static rudder_status_t replay_read_all(const char *path, replays_t *replay, rudder_error_t *error)
{
    char format[32];
    int64_t version;
    *replay = (replays_t){0};
    if (snprintf(replay->path, sizeof replay->path, "%s", path) >= (int)sizeof replay->path) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "expected a path of less than %d bytes", FILES_MAX_PATH);
    }
    RUDDER_TRY(read_json(path, REPLAY_MAX_BYTES, &replay->file, error));
    RUDDER_TRY(read_text(replay->file, "format", path, format, sizeof format, error));
    if (strcmp(format, "rudder-replay") != 0) {
        return RUDDER_FAIL(
            error, RUDDER_E_DATA,
            "%s: expected the folder of a run, or a file with \"format\": \"rudder-replay\", found \"%s\"", path,
            format);
    }
    RUDDER_TRY(read_count(replay->file, "version", path, &version, error));
    if (version != 1) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected \"version\" 1, found %" PRId64, path, version);
    }
    return replay_read_rows(replay, error);
}

rudder_status_t replays_read(const char *path, replays_t *replay, rudder_error_t *error)
{
    const rudder_status_t status = replay_read_all(path, replay, error);
    if (status != RUDDER_OK) {
        replays_free(replay);
    }
    return status;
}

void replays_free(replays_t *replay)
{
    cJSON_Delete(replay->file);
    free(replay->row);
    *replay = (replays_t){0};
}

/* ---- one block: the rows of a trace ---- */

/* Rows that are compared: of one trace and rank. Ways are what is called a policy in the tables. */
typedef struct replay_block {
    const replays_row_t **row; /* [n] */
    int64_t n;
    int32_t n_capacities, n_ways;
    int64_t capacity[REPLAY_MAX_CAPACITIES];
    const replays_row_t *way[REPLAY_MAX_WAYS]; /* the first row of each */
    double halo;                               /* NAN: not known */
    int starts;                                /* they differ: their names are shown */
} replay_block_t;

/* The row of the bound itself; the others tell it, too. */
static int replay_is_bound(const replays_row_t *row)
{
    return strcmp(row->policy, "bound") == 0;
}

static int replay_same_way(const replays_row_t *a, const replays_row_t *b)
{
    return strcmp(a->policy, b->policy) == 0 && strcmp(a->start, b->start) == 0 && strcmp(a->decider, b->decider) == 0;
}

static int replay_same_block(const replays_row_t *a, const replays_row_t *b)
{
    return strcmp(a->trace, b->trace) == 0 && strcmp(a->rank, b->rank) == 0;
}

/* "score, gain" and where starts differ "score (empty), gain". */
static const char *replay_way_name(const replay_block_t *block, const replays_row_t *row, char *text, size_t size)
{
    const int start = block->starts && row->start[0] != '\0',
              decider = row->decider[0] != '\0' && strcmp(row->decider, "never") != 0;
    snprintf(text, size, "%s%s%s%s%s%s", row->policy, start ? " (" : "", start ? row->start : "", start ? ")" : "",
             decider ? ", " : "", decider ? row->decider : "");
    return text;
}

static const replays_row_t *replay_find(const replay_block_t *block, const replays_row_t *way, int64_t capacity)
{
    for (int64_t i = 0; i < block->n; i++) {
        if (block->row[i]->capacity_rows == capacity && (way == NULL || replay_same_way(block->row[i], way))) {
            return block->row[i];
        }
    }
    return NULL;
}

static double replay_saved(double fetched, int64_t remote)
{
    return remote > 0 ? 100 * (1 - fetched / (double)remote) : NAN;
}

/* Whether a row is of a trace: sums are of all traces in the folder that they are named after, or of one file. */
static int replay_is_of(const replays_row_t *row, const cJSON *trace)
{
    const cJSON *path = cJSON_GetObjectItemCaseSensitive(trace, "path"),
                *rank = cJSON_GetObjectItemCaseSensitive(trace, "rank");
    const size_t n = strlen(row->trace);
    char number[32] = "";
    if (!cJSON_IsString(path) || strncmp(path->valuestring, row->trace, n) != 0 ||
        (path->valuestring[n] != '/' && path->valuestring[n] != '\0')) {
        return 0;
    }
    if (cJSON_IsNumber(rank)) {
        snprintf(number, sizeof number, "%.0f", rank->valuedouble);
    }
    return strcmp(row->rank, "all") == 0 || row->rank[0] == '\0' || strcmp(row->rank, number) == 0;
}

/* Nodes of the halo over the traces that the block is of. */
static double replay_halo(const replays_t *replay, const replays_row_t *row)
{
    const cJSON *traces = cJSON_GetObjectItemCaseSensitive(replay->file, "traces"), *trace;
    double sum = 0;
    cJSON_ArrayForEach(trace, traces)
    {
        const cJSON *halo = cJSON_GetObjectItemCaseSensitive(trace, "halo");
        if (cJSON_IsNumber(halo) && isfinite(halo->valuedouble) && replay_is_of(row, trace)) {
            sum += halo->valuedouble;
        }
    }
    return sum > 0 ? sum : NAN;
}

static int replay_compare_counts(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void replay_sort_out(const replays_t *replay, replay_block_t *block)
{
    block->n_capacities = block->n_ways = block->starts = 0;
    for (int64_t i = 0; i < block->n; i++) {
        const replays_row_t *row = block->row[i];
        int32_t c = 0, w = replay_is_bound(row) ? block->n_ways : 0;
        while (c < block->n_capacities && block->capacity[c] != row->capacity_rows) {
            c++;
        }
        if (c == block->n_capacities && c < REPLAY_MAX_CAPACITIES) {
            block->capacity[block->n_capacities++] = row->capacity_rows;
        }
        while (w < block->n_ways && !replay_same_way(block->way[w], row)) {
            block->starts |=
                strcmp(block->way[w]->policy, row->policy) == 0 && strcmp(block->way[w]->start, row->start) != 0;
            w++;
        }
        if (w == block->n_ways && w < REPLAY_MAX_WAYS && !replay_is_bound(row)) {
            block->way[block->n_ways++] = row;
        }
    }
    qsort(block->capacity, (size_t)block->n_capacities, sizeof *block->capacity, replay_compare_counts);
    block->halo = replay_halo(replay, block->row[0]);
}

/* ---- tables ---- */

typedef double (*replay_value_t)(const replays_row_t *row);

static double replay_saved_of(const replays_row_t *row)
{
    return replay_saved((double)row->fetched_rows, row->remote_rows);
}

static double replay_bound_of(const replays_row_t *row)
{
    if (replay_is_bound(row)) {
        return replay_saved((double)row->fetched_rows, row->remote_rows);
    }
    return replay_saved(row->bound_rows, row->remote_rows);
}

static double replay_seconds_of(const replays_row_t *row)
{
    return row->epoch_seconds;
}

static int replay_any(const replay_block_t *block, replay_value_t value)
{
    for (int64_t i = 0; i < block->n; i++) {
        if (!isnan(value(block->row[i]))) {
            return 1;
        }
    }
    return 0;
}

static void replay_capacity_text(const replay_block_t *block, int64_t capacity, char *text, size_t size)
{
    char count[32];
    text_of_count(capacity, count, sizeof count);
    if (isnan(block->halo)) {
        snprintf(text, size, "%s rows", count);
    } else {
        snprintf(text, size, "%s (%.3g %%)", count, 100 * (double)capacity / block->halo);
    }
}

/* A line a policy, a column a capacity; the bound last. */
static void replay_matrix(page_t *page, const replay_block_t *block, const char *head, replay_value_t value,
                          int decimals, const char *unit, int bound)
{
    char columns[REPLAY_MAX_CAPACITIES + 2] = "l", text[256];
    memset(columns + 1, 'r', (size_t)block->n_capacities);
    table_t *table = table_open(columns);
    if (table == NULL) {
        page_table(page, NULL, PAGE_PLAIN);
        return;
    }
    table_cell(table, "%s", head);
    for (int32_t c = 0; c < block->n_capacities; c++) {
        replay_capacity_text(block, block->capacity[c], text, sizeof text);
        table_cell(table, "%s", text);
    }
    table_line(table);
    for (int32_t w = 0; w < block->n_ways; w++) {
        table_cell(table, "%s", replay_way_name(block, block->way[w], text, sizeof text));
        for (int32_t c = 0; c < block->n_capacities; c++) {
            const replays_row_t *row = replay_find(block, block->way[w], block->capacity[c]);
            table_number(table, row != NULL ? value(row) : NAN, decimals, unit);
        }
    }
    if (bound && replay_any(block, replay_bound_of)) {
        table_line(table);
        table_cell(table, "bound: the best possible buffer");
        for (int32_t c = 0; c < block->n_capacities; c++) {
            const replays_row_t *row = replay_find(block, NULL, block->capacity[c]);
            table_number(table, row != NULL ? replay_bound_of(row) : NAN, decimals, unit);
        }
    }
    page_table(page, table, block->n_capacities > 6 ? PAGE_WIDE : PAGE_PLAIN);
}

static void replay_all_columns(page_t *page, const replay_block_t *block)
{
    static const char *const head[] = {"capacity rows", "policy",   "start",  "decider",  "rows fetched",
                                       "of them fill",  "hits",     "saved",  "of bound", "epoch s",
                                       "asked",         "replaced", "window", "data MB",  "memory MB"};
    table_t *table = table_open("rlll|rrrrr|r|rrr|rr");
    for (size_t i = 0; table != NULL && i < sizeof head / sizeof *head; i++) {
        table_cell(table, "%s", head[i]);
    }
    if (table != NULL) {
        table_line(table);
    }
    for (int64_t i = 0; table != NULL && i < block->n; i++) {
        const replays_row_t *row = block->row[i];
        const double saved = replay_saved_of(row), bound = replay_bound_of(row);
        table_count(table, row->capacity_rows);
        table_cell(table, "%s", row->policy);
        table_cell(table, "%s", row->start);
        table_cell(table, "%s", row->decider);
        table_count(table, row->fetched_rows);
        table_number(table, row->fill_rows, 0, "");
        table_number(table, row->remote_rows > 0 ? 100 * row->hit_rows / (double)row->remote_rows : NAN, 2, " %");
        table_number(table, saved, 2, " %");
        table_number(table, bound > 0 ? 100 * saved / bound : NAN, 2, " %");
        table_number(table, row->epoch_seconds, 3, "");
        table_number(table, row->asked, 0, "");
        table_number(table, row->replaced, 0, "");
        table_number(table, row->window_mean, 1, "");
        table_number(table, row->bytes * 1e-6, 1, "");
        table_number(table, row->memory_bytes * 1e-6, 1, "");
    }
    page_table(page, table, PAGE_WIDE);
}

/* ---- charts ---- */

typedef struct replay_points {
    double x[REPLAY_MAX_CAPACITIES], y[HTML_STYLES + 1][REPLAY_MAX_CAPACITIES];
    char name[HTML_STYLES][256];
} replay_points_t;

static double replay_x(const replay_block_t *block, int32_t c)
{
    return isnan(block->halo) ? (double)block->capacity[c] : 100 * (double)block->capacity[c] / block->halo;
}

typedef struct replay_chart {
    const char *title, *note, *y_label;
    replay_value_t value;
    int rows; /* the bound is drawn; otherwise what would be without a buffer */
} replay_chart_t;

static const replay_chart_t replay_chart_rows = {"Rows saved by capacity",
                                                 "Of the remote rows, fill rows and start content counted.",
                                                 "saved (% of remote rows)", replay_saved_of, 1};
static const replay_chart_t replay_chart_times = {"Simulated epoch time by capacity",
                                                  "By the clock model of the replay, not measured.",
                                                  "seconds an epoch (s), simulated", replay_seconds_of, 0};

/* The line of one way; NULL: of the bound. */
static svg_line_t replay_line(const replay_block_t *block, const replays_row_t *way, int style, const char *name,
                              replay_value_t value, replay_points_t *points, int32_t n)
{
    for (int32_t c = 0; c < block->n_capacities; c++) {
        const replays_row_t *row = replay_find(block, way, block->capacity[c]);
        points->x[c] = replay_x(block, c);
        points->y[n][c] = row != NULL ? value(row) : NAN;
    }
    return (svg_line_t){.name = name, .style = style, .n = block->n_capacities, .x = points->x, .y = points->y[n]};
}

/* Belady's line is the bound's, that without a buffer is no way to keep rows: neither takes a colour. */
static int replay_is_plain(const replays_row_t *way)
{
    return strcmp(way->policy, "belady") == 0 || strcmp(way->policy, "none") == 0;
}

/* At most HTML_STYLES of the ways from *next on, so that no two lines look alike; *next is the first one left. */
static void replay_draw(page_t *page, const replay_block_t *block, int32_t *next, const replay_chart_t *chart,
                        replay_points_t *points)
{
    svg_line_t line[HTML_STYLES + 1];
    int32_t n = 0, w = *next;
    for (; w < block->n_ways && n < HTML_STYLES; w++) {
        if (!replay_is_plain(block->way[w])) {
            replay_way_name(block, block->way[w], points->name[n], sizeof points->name[n]);
            line[n] = replay_line(block, block->way[w], n, points->name[n], chart->value, points, n);
            n++;
        }
    }
    while (w < block->n_ways && replay_is_plain(block->way[w])) {
        w++;
    }
    *next = w;
    if (chart->rows && replay_any(block, replay_bound_of)) {
        line[n] = replay_line(block, NULL, SVG_BOUND, "bound: the best possible buffer", replay_bound_of, points, n);
        n++;
    }
    for (int32_t i = 0; i < block->n_ways && !chart->rows; i++) {
        if (strcmp(block->way[i]->policy, "none") == 0) {
            line[n] = replay_line(block, block->way[i], SVG_LIMIT, "without a buffer", chart->value, points, n);
            n++;
            break;
        }
    }
    if (page_figure(page, -1, chart->title, chart->note)) {
        const svg_plot_t plot = {.title = chart->title,
                                 .x_label = isnan(block->halo) ? "capacity (rows)" : "capacity (% of the halo)",
                                 .y_label = chart->y_label,
                                 .from_zero = 1,
                                 .y_least = -20,
                                 .y_most = NAN,
                                 .n_lines = n,
                                 .lines = line};
        svg_plot_legend(&plot, page->file);
        svg_plot(&plot, page->file);
        page_end_figure(page);
    }
}

static void replay_charts(page_t *page, const replay_block_t *block)
{
    replay_points_t *points = malloc(sizeof *points);
    const int times = replay_any(block, replay_seconds_of);
    if (points == NULL) {
        page->failed = 1;
        return;
    }
    for (int32_t next = 0, after = 0; next < block->n_ways; next = after) {
        after = next;
        replay_draw(page, block, &after, &replay_chart_rows, points);
        if (times) {
            after = next;
            replay_draw(page, block, &after, &replay_chart_times, points);
        }
    }
    free(points);
}

/* ---- all ---- */

/* Belady's choice needs the whole future, look-ahead the next minibatches; the others know nothing of it. */
static int replay_knows_future(const replays_row_t *row)
{
    return replay_is_bound(row) || strncmp(row->policy, "belady", 6) == 0 ? 2
                                                                          : strncmp(row->policy, "lookahead", 9) == 0;
}

/* The row that fetches least of those that know at most so much of the future; NULL: there is none. */
static const replays_row_t *replay_best(const replay_block_t *block, int64_t capacity, int knowing)
{
    const replays_row_t *best = NULL;
    for (int64_t i = 0; i < block->n; i++) {
        const replays_row_t *row = block->row[i];
        if (row->capacity_rows == capacity && replay_knows_future(row) <= knowing &&
            (best == NULL || row->fetched_rows < best->fetched_rows)) {
            best = row;
        }
    }
    return best;
}

static void replay_best_table(page_t *page, const replay_block_t *block)
{
    static const char *const head[] = {
        "capacity", "bound", "best policy", "saves", "of bound", "best without look-ahead", "saves", "of bound"};
    table_t *table = table_open("rr|lrr|lrr");
    char text[256];
    for (size_t i = 0; table != NULL && i < sizeof head / sizeof *head; i++) {
        table_cell(table, "%s", head[i]);
    }
    if (table != NULL) {
        table_line(table);
    }
    for (int32_t c = 0; table != NULL && c < block->n_capacities; c++) {
        const replays_row_t *any = replay_find(block, NULL, block->capacity[c]);
        const double bound = any != NULL ? replay_bound_of(any) : NAN;
        replay_capacity_text(block, block->capacity[c], text, sizeof text);
        table_cell(table, "%s", text);
        table_number(table, bound, 2, " %");
        for (int knowing = 1; knowing >= 0; knowing--) {
            const replays_row_t *best = replay_best(block, block->capacity[c], knowing);
            const double saved = best != NULL ? replay_saved_of(best) : NAN;
            table_cell(table, "%s", best != NULL ? replay_way_name(block, best, text, sizeof text) : "-");
            table_number(table, saved, 2, " %");
            table_number(table, bound > 0 ? 100 * saved / bound : NAN, 1, " %");
        }
    }
    page_table(page, table, PAGE_PLAIN);
}

static void replay_settings(page_t *page, const replays_t *replay)
{
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(replay->file, "settings"), *item;
    table_t *table = table_open("ll");
    if (!cJSON_IsObject(settings) || table == NULL) {
        table_close(table);
        return;
    }
    table_cell(table, "setting");
    table_cell(table, "value");
    table_line(table);
    cJSON_ArrayForEach(item, settings)
    {
        char *value = read_value_text(item);
        table_cell(table, "%s", item->string != NULL ? item->string : "");
        table_cell(table, "%s", value != NULL ? value : "?");
        free(value);
    }
    page_fold(page, "Settings of the replay");
    page_table(page, table, PAGE_PLAIN);
    page_end_fold(page);
}

static void replay_show(page_t *page, const replays_t *replay, replay_block_t *block)
{
    const replays_row_t *row = block->row[0];
    char remote[32];
    replay_sort_out(replay, block);
    page_heading(page, "%s%s%s: %s remote rows", row->trace, row->rank[0] != '\0' ? ", rank " : "", row->rank,
                 text_of_count(row->remote_rows, remote, sizeof remote));
    replay_best_table(page, block);
    replay_matrix(page, block, "saved, by capacity", replay_saved_of, 2, " %", 1);
    if (replay_any(block, replay_seconds_of)) {
        replay_matrix(page, block, "simulated epoch, by capacity", replay_seconds_of, 3, " s", 0);
    }
    replay_charts(page, block);
    page_fold(page, "All columns");
    replay_all_columns(page, block);
    page_end_fold(page);
}

/* Sums over a run say more than its ranks: where there are sums, ranks are folded away. */
static int replay_has_sums(const replays_t *replay)
{
    for (int64_t i = 0; i < replay->n_rows; i++) {
        if (strcmp(replay->row[i].rank, "all") == 0) {
            return 1;
        }
    }
    return 0;
}

static void replay_blocks(page_t *page, const replays_t *replay, replay_block_t *block, uint8_t *done, int sums)
{
    for (int64_t i = 0; i < replay->n_rows; i++) {
        if (done[i] || (sums && strcmp(replay->row[i].rank, "all") != 0)) {
            continue;
        }
        block->n = 0;
        for (int64_t j = i; j < replay->n_rows; j++) {
            if (!done[j] && replay_same_block(&replay->row[i], &replay->row[j])) {
                done[j] = 1;
                block->row[block->n++] = &replay->row[j];
            }
        }
        replay_show(page, replay, block);
    }
}

rudder_status_t replays_report(page_t *page, const replays_t *replay, rudder_error_t *error)
{
    replay_block_t block;
    char title[FILES_MAX_PATH + 16];
    const int sums = replay_has_sums(replay);
    uint8_t *done = calloc((size_t)replay->n_rows + 1, 1);
    block.row = malloc((size_t)(replay->n_rows + 1) * sizeof(const replays_row_t *));
    if (done == NULL || block.row == NULL) {
        free(done);
        free(block.row);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory for its rows", replay->path);
    }
    snprintf(title, sizeof title, "Replay: %s", replay->path);
    text_clean(title);
    page_section(page, title);
    page_text(page, "Recorded traces, replayed with other policies and buffers. Saved: remote rows that are not "
                    "fetched, everything counted. "
                    "Bound: Belady's choice with the whole future known, from an empty buffer. Times are simulated.");
    replay_blocks(page, replay, &block, done, sums);
    if (sums) {
        page_fold(page, "Each rank by itself");
        replay_blocks(page, replay, &block, done, 0);
        page_end_fold(page);
    }
    replay_settings(page, replay);
    if (replay->n_rows == 0) {
        page_text(page, "The replay has no rows.");
    }
    free(done);
    free(block.row);
    return RUDDER_OK;
}
