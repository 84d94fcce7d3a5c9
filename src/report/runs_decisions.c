/* What deciders saw, said and predicted, and what followed. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/runs_parts.h"

enum { DECISIONS_PAGE = 200, DECISIONS_TEXT = 16, DECISIONS_OPEN = 24, DECISIONS_WORDS = 64 };

/* A column a run that has decisions. */
static void decisions_counts(page_t *page, const runs_t *runs)
{
    static const char *const names[] = {"asked",         "answered", "applied", "replaced", "kept",
                                        "nothing stale", "late",     "invalid", "failed",   "by the fall-back rule"};
    char columns[RUNS_MAX + 2] = "l";
    int n = 0;
    for (int i = 0; i < runs->n; i++) {
        n += runs_has_decisions(&runs->run[i]);
    }
    memset(columns + 1, 'r', (size_t)n);
    table_t *table = table_open(columns);
    if (table == NULL) {
        page_table(page, NULL, PAGE_PLAIN);
        return;
    }
    table_cell(table, "decisions");
    for (int i = 0; i < runs->n; i++) {
        if (runs_has_decisions(&runs->run[i])) {
            table_cell(table, "%c %s", 'A' + i, runs->run[i].label);
        }
    }
    table_line(table);
    for (size_t c = 0; c < sizeof names / sizeof *names; c++) {
        table_cell(table, "%s", names[c]);
        for (int i = 0; i < runs->n; i++) {
            const run_verdicts_t *v = &runs->run[i].verdicts;
            const int64_t counts[] = {v->asked,         v->answered, v->applied, v->replaced, v->kept,
                                      v->nothing_stale, v->late,     v->invalid, v->failed,   v->fallback};
            if (runs_has_decisions(&runs->run[i])) {
                table_count(table, counts[c]);
            }
        }
    }
    table_line(table);
    for (int kind = 0; kind < 4; kind++) {
        static const char *const means[] = {"age, minibatches", "latency, ms, mean", "latency, ms, p99",
                                            "agent, CPU s"};
        table_cell(table, "%s", means[kind]);
        for (int i = 0; i < runs->n; i++) {
            const run_verdicts_t *v = &runs->run[i].verdicts;
            const double values[] = {v->applied > 0 ? v->age : NAN, v->answered > 0 ? v->latency_mean : NAN,
                                     v->answered > 0 ? v->latency_p99 : NAN, v->agent_cpu_seconds};
            if (runs_has_decisions(&runs->run[i])) {
                table_number(table, values[kind], 1, "");
            }
        }
    }
    page_table(page, table, n > 6 ? PAGE_WIDE : PAGE_PLAIN);
    page_text(page, "age: from question to use, mean. latency: from question to answer, over the last 1024 answers of "
                    "each rank. Verdicts of the "
                    "fall-back rule are in none of the counts before.");
}

/* What followed each kind of outcome, on average. */
static void decisions_effects(page_t *page, const run_t *run)
{
    table_t *table = table_open("lrrrr");
    if (table != NULL) {
        table_cell(table, "what followed");
        table_cell(table, "decisions");
        table_cell(table, "rows replaced");
        table_cell(table, "change of hits");
        table_cell(table, "change of rows a minibatch");
        table_line(table);
    }
    for (int s = RUDDER_REPLACED; table != NULL && s <= RUDDER_FAILED; s++) {
        double hits = 0, rows = 0, replaced = 0;
        int64_t n = 0, known = 0;
        for (int64_t d = 0; d < run->n_decisions; d++) {
            const read_decision_t *decision = &run->decision[d];
            if ((int)decision->status == s) {
                n++;
                replaced += (double)decision->replaced_rows;
                if (!isnan(decision->hit_rate_change) && !isnan(decision->fetched_change)) {
                    known++;
                    hits += decision->hit_rate_change;
                    rows += decision->fetched_change;
                }
            }
        }
        if (n > 0) {
            table_cell(table, "%s", rudder_outcome_name((rudder_outcome_status_t)s));
            table_count(table, n);
            table_number(table, replaced / (double)n, 0, "");
            if (known > 0) {
                table_cell(table, "%+.2f points", 100 * hits / (double)known);
                table_cell(table, "%+.1f", rows / (double)known);
            } else {
                table_cell(table, "not known");
                table_cell(table, "not known");
            }
        }
    }
    page_table(page, table, PAGE_PLAIN);
}

/* The sentences that an agent was shown are few: each once. */
typedef struct decisions_words {
    int32_t n;
    const char *text[DECISIONS_WORDS];
} decisions_words_t;

/* Number of a sentence, from 0; the next free one when it is new. */
static int32_t decisions_find(const decisions_words_t *words, const char *text)
{
    int32_t w = 0;
    while (w < words->n && strcmp(words->text[w], text) != 0) {
        w++;
    }
    return w;
}

static void decisions_collect(const run_t *run, decisions_words_t *words)
{
    words->n = 0;
    for (int64_t d = 0; d < run->n_decisions; d++) {
        const char *text = run->decision[d].prompt;
        const int32_t w = text[0] != '\0' ? decisions_find(words, text) : -1;
        if (w == words->n && w < DECISIONS_WORDS) {
            words->text[words->n++] = text;
        }
    }
}

/* What the agent saw, and what it said to it. */
static void decisions_words_table(page_t *page, const run_t *run, const decisions_words_t *words)
{
    table_t *table = table_open("lrrrrl");
    if (table != NULL) {
        table_cell(table, "saw");
        table_cell(table, "times");
        table_cell(table, "replace");
        table_cell(table, "keep");
        table_cell(table, "margin");
        table_cell(table, "the words");
        table_line(table);
    }
    for (int32_t w = 0; table != NULL && w < words->n; w++) {
        int64_t times = 0, replace = 0, keep = 0, margins = 0;
        double margin = 0;
        for (int64_t d = 0; d < run->n_decisions; d++) {
            const read_decision_t *decision = &run->decision[d];
            if (strcmp(decision->prompt, words->text[w]) == 0) {
                times++;
                replace += strcmp(decision->verdict, "replace") == 0;
                keep += strcmp(decision->verdict, "keep") == 0;
                margins += !isnan(decision->margin);
                margin += isnan(decision->margin) ? 0 : decision->margin;
            }
        }
        table_cell(table, "w%d", (int)w + 1);
        table_count(table, times);
        table_count(table, replace);
        table_count(table, keep);
        table_number(table, margins > 0 ? margin / (double)margins : NAN, 2, "");
        table_cell(table, "%s", words->text[w]);
    }
    if (words->n > 0) {
        page_table(page, table, PAGE_PLAIN);
    } else {
        table_close(table);
    }
}

static int decisions_any_explanation(const run_t *run)
{
    for (int64_t d = 0; d < run->n_decisions; d++) {
        if (run->decision[d].explanation[0] != '\0') {
            return 1;
        }
    }
    return 0;
}

static int decisions_any_prediction(const run_t *run)
{
    for (int64_t d = 0; d < run->n_decisions; d++) {
        if (run->decision[d].said[0][0] != '\0' || run->decision[d].said[1][0] != '\0') {
            return 1;
        }
    }
    return 0;
}

static void decisions_minibatch(table_t *table, int64_t minibatch)
{
    if (minibatch < 0) {
        table_cell(table, "-");
    } else {
        table_cell(table, "%" PRId64, minibatch);
    }
}

static void decisions_predicted(table_t *table, const read_decision_t *decision)
{
    for (int i = 0; i < 2; i++) {
        const int came_true = decision->came_true[i];
        table_cell(table, "%s%s", decision->said[i][0] != '\0' ? decision->said[i] : "-",
                   decision->said[i][0] == '\0' || came_true < 0 ? ""
                   : came_true                                   ? ", true"
                                                                 : ", wrong");
    }
}

static void decisions_signed(table_t *table, double value, int decimals)
{
    if (isnan(value)) {
        table_cell(table, "-");
    } else {
        table_cell(table, "%+.*f", decimals, value);
    }
}

/* Which columns there are. */
typedef struct decisions_columns {
    int predictions, explained;
    const decisions_words_t *words;
} decisions_columns_t;

static void decisions_row(table_t *table, const read_decision_t *d, const decisions_columns_t *columns)
{
    table_cell(table, "%d", (int)d->rank);
    decisions_minibatch(table, d->asked);
    decisions_minibatch(table, d->applied);
    table_number(table, 100 * d->hit_rate, 1, " %");
    table_number(table, d->saving_rows, 0, "");
    table_number(table, d->cost_rows, 0, "");
    if (columns->words->n > 0) {
        const int32_t w = decisions_find(columns->words, d->prompt);
        table_cell(table, w < columns->words->n ? "w%d" : "-", (int)w + 1);
    }
    table_cell(table, "%s", d->verdict);
    table_number(table, d->margin, 2, "");
    if (columns->predictions) {
        decisions_predicted(table, d);
    }
    table_number(table, d->latency_ms, d->latency_ms < 10 ? 2 : 0, "");
    table_cell(table, "%s%s", rudder_outcome_name(d->status), d->from_fallback ? " (fall-back)" : "");
    table_count(table, d->replaced_rows);
    decisions_signed(table, 100 * d->hit_rate_change, 1);
    decisions_signed(table, d->fetched_change, 0);
    if (columns->explained) {
        table_cell(table, "%s", d->explanation);
    }
}

static table_t *decisions_head(const decisions_columns_t *columns)
{
    static const char *const before[] = {"rank", "asked at", "applied at", "hits", "would save", "would cost"};
    static const char *const after[] = {"ms", "outcome", "rows replaced", "hits, points", "rows a minibatch"};
    char letters[40];
    snprintf(letters, sizeof letters, "rrr|rrr|%slr%sr|lrrr%s", columns->words->n > 0 ? "l" : "",
             columns->predictions ? "ll" : "", columns->explained ? "|l" : "");
    table_t *table = table_open(letters);
    if (table == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        table_cell(table, "%s", before[i]);
    }
    if (columns->words->n > 0) {
        table_cell(table, "saw");
    }
    table_cell(table, "said");
    table_cell(table, "margin");
    if (columns->predictions) {
        table_cell(table, "hits predicted");
        table_cell(table, "rows predicted");
    }
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        table_cell(table, "%s", after[i]);
    }
    if (columns->explained) {
        table_cell(table, "explained");
    }
    table_line(table);
    return table;
}

/* Minibatch by minibatch. */
static void decisions_list(page_t *page, const run_t *run, const decisions_words_t *words)
{
    const decisions_columns_t columns = {decisions_any_prediction(run), decisions_any_explanation(run), words};
    const int64_t most = page->html ? DECISIONS_PAGE : DECISIONS_TEXT,
                  n = run->n_decisions < most ? run->n_decisions : most;
    table_t *table = decisions_head(&columns);
    for (int64_t d = 0; table != NULL && d < n; d++) {
        decisions_row(table, &run->decision[d], &columns);
    }
    page_table(page, table, columns.explained || columns.predictions ? PAGE_WIDE : PAGE_PLAIN);
    if (n < run->n_decisions || run->decisions_left_out > 0) {
        page_text(page, "The first %" PRId64 " of %" PRId64 " decisions; decisions.rankN.jsonl has all.", n,
                  run->n_decisions + run->decisions_left_out);
    }
}

void runs_decisions(page_t *page, const runs_t *runs)
{
    decisions_words_t words;
    page_section(page, "Decisions");
    if (!runs_any(runs, runs_has_decisions)) {
        page_text(page, "No decider was asked: the policies of these runs need none.");
        return;
    }
    decisions_counts(page, runs);
    for (int i = 0; i < runs->n; i++) {
        const run_t *run = &runs->run[i];
        if (run->n_decisions == 0) {
            continue;
        }
        page_heading(page, "%s", runs->name[i]);
        if (run->verdicts.predictions > 0) {
            page_text(page, "Predictions: %" PRId64 " made; %" PRId64 " of hits and %" PRId64 " of rows came true.",
                      run->verdicts.predictions, run->verdicts.predictions_hits_true,
                      run->verdicts.predictions_rows_true);
        }
        decisions_effects(page, run);
        decisions_collect(run, &words);
        decisions_words_table(page, run, &words);
        const int fold = page->html && run->n_decisions > DECISIONS_OPEN;
        if (fold) {
            page_fold(page, "Every decision");
        }
        decisions_list(page, run, &words);
        if (fold) {
            page_end_fold(page);
        }
    }
    page_text(page, "would save, would cost: rows that a replacement is expected to save over the minibatches left, "
                    "and to cost. What followed is "
                    "the window after the decision against the window before it; it is not only the decision's doing.");
}
