/* Rows of `rudder replay` as a table, as JSON and as CSV. */
#include "cli/replay_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "report/table.h"

static double replay_percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : NAN;
}

double replay_row_saved(const replay_row_t *row)
{
    return replay_percent(row->remote - row->fetched, row->remote);
}

double replay_row_hits(const replay_row_t *row)
{
    return replay_percent(row->hit, row->remote);
}

double replay_row_of_bound(const replay_row_t *row)
{
    return row->bound >= 0 ? replay_percent(row->remote - row->fetched, row->remote - row->bound) : NAN;
}

static int replay_is_bound(const replay_row_t *row)
{
    return strcmp(row->policy, "bound") == 0;
}

/* ---- Order ------------------------------------------------------------------------------------------------------ */

static int replay_order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Rows of one replay carry its rows over all ranks while they are sorted. */
typedef struct replay_sorted {
    replay_row_t row;
    int64_t fetched;
} replay_sorted_t;

static int replay_compare(const void *x, const void *y)
{
    const replay_sorted_t *a = x, *b = y;
    const int by[] = {replay_order(a->row.group, b->row.group),
                      replay_order(a->row.capacity, b->row.capacity),
                      replay_order(!replay_is_bound(&a->row), !replay_is_bound(&b->row)),
                      replay_order(a->fetched, b->fetched),
                      replay_order(a->row.number, b->row.number),
                      replay_order(a->row.rank, b->row.rank)};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        if (by[i] != 0) {
            return by[i];
        }
    }
    return 0;
}

rudder_status_t replay_rows_sort(replay_row_t *rows, int64_t n, rudder_error_t *error)
{
    replay_sorted_t *sorted = malloc((size_t)(n + 1) * sizeof *sorted);
    if (sorted == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId64 " rows", n);
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum = rows[i].rank < 0 ? rows[i].fetched : sum; /* the sum comes before its ranks */
        sorted[i] = (replay_sorted_t){.row = rows[i], .fetched = sum};
    }
    qsort(sorted, (size_t)n, sizeof *sorted, replay_compare);
    for (int64_t i = 0; i < n; i++) {
        rows[i] = sorted[i].row;
    }
    free(sorted);
    return RUDDER_OK;
}

/* ---- Table ------------------------------------------------------------------------------------------------------ */

/* Columns that are not always there. */
typedef struct replay_columns {
    int rank, start, decider, bytes, bound, window, fetch, epoch;
} replay_columns_t;

static replay_columns_t replay_columns(const replay_row_t *rows, int64_t n)
{
    replay_columns_t c = {0};
    for (int64_t i = 0; i < n; i++) {
        c.rank |= rows[i].rank >= 0;
        c.start |= rows[i].start != NULL;
        c.decider |= rows[i].decider != NULL;
        c.bytes |= rows[i].bytes >= 0;
        c.bound |= rows[i].bound >= 0;
        c.window |= !isnan(rows[i].window_mean);
        c.fetch |= rows[i].fetch_seconds > 0;
        c.epoch |= !isnan(rows[i].epoch_seconds);
    }
    return c;
}

static void replay_cell(table_t *table, int shown, double number, const char *unit)
{
    if (shown && isnan(number)) {
        table_cell(table, "-");
    } else if (shown) {
        table_cell(table, "%.2f%s", number, unit);
    }
}

static void replay_word(table_t *table, int shown, const char *word)
{
    if (shown) {
        table_cell(table, "%s", word != NULL ? word : "-");
    }
}

static void replay_header(table_t *table, const replay_columns_t *c)
{
    table_cell(table, "capacity");
    table_cell(table, "policy");
    replay_word(table, c->start, "start");
    replay_word(table, c->decider, "decider");
    replay_word(table, c->rank, "rank");
    table_cell(table, "rows fetched");
    table_cell(table, "of them fill");
    table_cell(table, "saved");
    replay_word(table, c->bound, "of the bound");
    table_cell(table, "hits");
    replay_word(table, c->bytes, "fetched");
    replay_word(table, c->window, "window");
    replay_word(table, c->fetch, "fetching");
    replay_word(table, c->epoch, "epoch");
}

static void replay_line(table_t *table, const replay_columns_t *c, const replay_row_t *row, int first)
{
    char text[32];
    const int bound = replay_is_bound(row);
    if (first) {
        table_cell(table, "%s: %s", row->capacity_text, text_of_count(row->capacity_rows, text, sizeof text));
    } else {
        table_cell(table, "%s", row->rank >= 0 ? text_of_count(row->capacity_rows, text, sizeof text) : "");
    }
    table_cell(table, "%s", row->rank >= 0 ? "" : row->policy);
    replay_word(table, c->start, row->rank >= 0 ? "" : row->start);
    replay_word(table, c->decider, row->rank >= 0 ? "" : row->decider);
    if (c->rank && row->rank >= 0) {
        table_cell(table, "%" PRId32, row->rank);
    } else {
        replay_word(table, c->rank, "all");
    }
    table_cell(table, "%s", text_of_count(row->fetched, text, sizeof text));
    table_cell(table, "%s", bound ? "-" : text_of_count(row->fill, text, sizeof text));
    replay_cell(table, 1, replay_row_saved(row), " %");
    replay_cell(table, c->bound, replay_row_of_bound(row), " %");
    replay_cell(table, 1, replay_row_hits(row), " %");
    replay_word(table, c->bytes, row->bytes >= 0 ? text_of_bytes(row->bytes, text, sizeof text) : NULL);
    replay_cell(table, c->window, row->window_mean, "");
    replay_cell(table, c->fetch, row->fetch_seconds, " s");
    replay_cell(table, c->epoch, row->epoch_seconds, " s");
}

rudder_status_t replay_rows_print(const replay_row_t *rows, int64_t n, FILE *file, rudder_error_t *error)
{
    const replay_columns_t c = replay_columns(rows, n);
    char columns[32];
    snprintf(columns, sizeof columns, "rl%s%s%s|rrr%sr%s%s%s%s", c.start ? "l" : "", c.decider ? "l" : "",
             c.rank ? "r" : "", c.bound ? "r" : "", c.bytes ? "r" : "", c.window ? "|r" : "", c.fetch ? "|r" : "",
             c.epoch ? "r" : "");
    table_t *table = table_open(columns);
    if (table == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a table");
    }
    replay_header(table, &c);
    for (int64_t i = 0; i < n; i++) {
        const int first = i == 0 || rows[i].capacity != rows[i - 1].capacity;
        if (first) {
            table_line(table);
        }
        replay_line(table, &c, &rows[i], first);
    }
    const rudder_status_t status = table_print(table, file, error);
    table_close(table);
    return status;
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

/* One table of the members of a row: what JSON and CSV hold, in the same order. Numbers come as double: NAN is null. */
typedef enum replay_kind { REPLAY_TEXT, REPLAY_COUNT, REPLAY_NUMBER } replay_kind_t;

typedef struct replay_member {
    const char *name;
    replay_kind_t kind;
    const char *text; /* NULL: null */
    int64_t count;    /* -1: null */
    double number;
} replay_member_t;

enum { REPLAY_MEMBERS = 26 };

static void replay_members(const replay_row_t *row, char *rank, size_t rank_size, replay_member_t *member)
{
    snprintf(rank, rank_size, "%" PRId32, row->rank);
    const replay_member_t all[REPLAY_MEMBERS] = {
        {"trace", REPLAY_TEXT, row->trace, 0, 0},
        {"policy", REPLAY_TEXT, row->policy, 0, 0},
        {"start", REPLAY_TEXT, row->start, 0, 0},
        {"decider", REPLAY_TEXT, row->decider, 0, 0},
        {"rank", REPLAY_TEXT, row->rank < 0 ? "all" : rank, 0, 0},
        {"capacity", REPLAY_TEXT, row->capacity_text, 0, 0},
        {"capacity_rows", REPLAY_COUNT, NULL, row->capacity_rows, 0},
        {"minibatches", REPLAY_COUNT, NULL, row->minibatches, 0},
        {"remote_rows", REPLAY_COUNT, NULL, row->remote, 0},
        {"hit_rows", REPLAY_COUNT, NULL, row->hit, 0},
        {"fetched_rows", REPLAY_COUNT, NULL, row->fetched, 0},
        {"fill_rows", REPLAY_COUNT, NULL, row->fill, 0},
        {"bound_rows", REPLAY_COUNT, NULL, row->bound, 0},
        {"saved_percent", REPLAY_NUMBER, NULL, 0, replay_row_saved(row)},
        {"bound_percent", REPLAY_NUMBER, NULL, 0, replay_row_of_bound(row)},
        {"hit_percent", REPLAY_NUMBER, NULL, 0, replay_row_hits(row)},
        {"bytes", REPLAY_COUNT, NULL, row->bytes, 0},
        {"epoch_seconds", REPLAY_NUMBER, NULL, 0, row->epoch_seconds},
        {"fetch_seconds", REPLAY_NUMBER, NULL, 0, row->fetch_seconds},
        {"wait_seconds", REPLAY_NUMBER, NULL, 0, row->wait_seconds},
        {"window_mean", REPLAY_NUMBER, NULL, 0, row->window_mean},
        {"asked", REPLAY_COUNT, NULL, row->asked, 0},
        {"replaced", REPLAY_COUNT, NULL, row->replaced, 0},
        {"late", REPLAY_COUNT, NULL, row->late, 0},
        {"memory_bytes", REPLAY_COUNT, NULL, row->memory, 0},
        {"number", REPLAY_COUNT, NULL, row->number, 0},
    };
    memcpy(member, all, sizeof all);
}

void replay_rows_json(json_t *json, const replay_row_t *rows, int64_t n)
{
    char rank[16];
    replay_member_t member[REPLAY_MEMBERS];
    json_array(json, "rows");
    for (int64_t i = 0; i < n; i++) {
        if (replay_is_bound(&rows[i])) {
            continue;
        }
        replay_members(&rows[i], rank, sizeof rank, member);
        json_object(json, NULL);
        for (int m = 0; m < REPLAY_MEMBERS; m++) {
            if (strcmp(member[m].name, "rank") == 0 && rows[i].rank >= 0) {
                json_int(json, "rank", rows[i].rank);
            } else if (member[m].kind == REPLAY_TEXT) {
                json_string(json, member[m].name, member[m].text);
            } else if (member[m].kind == REPLAY_NUMBER) {
                json_double(json, member[m].name, member[m].number);
            } else if (member[m].count < 0) {
                json_null(json, member[m].name);
            } else {
                json_int(json, member[m].name, member[m].count);
            }
        }
        json_end_object(json);
    }
    json_end_array(json);
}

/* A field of CSV: in quotes when it holds what would end it. */
static void replay_csv_text(FILE *file, const char *text)
{
    if (strpbrk(text, "\",\r\n") == NULL) {
        fputs(text, file);
        return;
    }
    putc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            putc('"', file);
        }
        putc(*text, file);
    }
    putc('"', file);
}

static void replay_csv_member(FILE *file, const replay_member_t *member)
{
    if (member->kind == REPLAY_TEXT && member->text != NULL) {
        replay_csv_text(file, member->text);
    } else if (member->kind == REPLAY_COUNT && member->count >= 0) {
        fprintf(file, "%" PRId64, member->count);
    } else if (member->kind == REPLAY_NUMBER && !isnan(member->number)) {
        fprintf(file, "%.17g", member->number);
    }
}

rudder_status_t replay_rows_csv(const char *path, const replay_row_t *rows, int64_t n, rudder_error_t *error)
{
    static const replay_row_t none;
    char rank[16];
    replay_member_t member[REPLAY_MEMBERS];
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    replay_members(&none, rank, sizeof rank, member);
    for (int m = 0; m < REPLAY_MEMBERS; m++) {
        fprintf(file, "%s%s", m > 0 ? "," : "", member[m].name);
    }
    putc('\n', file);
    for (int64_t i = 0; i < n; i++) {
        if (replay_is_bound(&rows[i])) {
            continue;
        }
        replay_members(&rows[i], rank, sizeof rank, member);
        for (int m = 0; m < REPLAY_MEMBERS; m++) {
            if (m > 0) {
                putc(',', file);
            }
            replay_csv_member(file, &member[m]);
        }
        putc('\n', file);
    }
    const int failed = ferror(file);
    if (fclose(file) != 0 || failed) {
        return RUDDER_FAIL(error, RUDDER_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    return RUDDER_OK;
}
