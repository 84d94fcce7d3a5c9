/* The sections of a report on runs, from what is asked first to what is looked up. */
#include "report/runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "report/runs_parts.h"

int runs_any(const runs_t *runs, runs_has_t has)
{
    for (int i = 0; i < runs->n; i++) {
        if (has(&runs->run[i])) {
            return 1;
        }
    }
    return 0;
}

int runs_has_bound(const run_t *run)
{
    return run->bound >= 0;
}

int runs_is_emulated(const run_t *run)
{
    return run->emulated;
}

int runs_has_decisions(const run_t *run)
{
    return run->verdicts.asked > 0 || run->n_decisions > 0;
}

/* "score, gain": how rows were kept, and who decided. */
const char *runs_how(const run_t *run, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", strcmp(run->policy, "none") == 0 ? "no buffer" : run->policy,
             run->decider[0] != '\0' ? ", " : "", run->decider);
    return text;
}

/* 100 x what the run saved of what could be saved; NAN: nothing could. */
static double runs_reached(const run_t *run)
{
    const int64_t saved = run->rows.remote - run_fetched(&run->rows), most = run->rows.remote - run->bound;
    return run->bound >= 0 && most > 0 && run->rows.remote > 0 ? 100 * (double)saved / (double)most : NAN;
}

static double runs_bound_percent(const run_t *run)
{
    return run->bound >= 0 ? run_saved_percent(run->bound, run->rows.remote) : NAN;
}

static double runs_hit_percent(const run_t *run)
{
    return run->rows.remote > 0 ? 100 * (double)run->rows.hit / (double)run->rows.remote : NAN;
}

/* ---- what it shows ---- */

/* Runs on the same minibatches: their rows can be compared, with equal links their times as well. */
static int runs_same_work(const run_t *a, const run_t *b)
{
    return a->rows.remote == b->rows.remote && a->n_ranks == b->n_ranks && strcmp(a->graph, b->graph) == 0;
}

static int runs_same_link(const run_t *a, const run_t *b)
{
    return a->emulated == b->emulated && (!a->emulated || strcmp(a->link, b->link) == 0);
}

static void runs_tell_states(page_t *page, const runs_t *runs)
{
    for (int i = 0; i < runs->n; i++) {
        const run_t *run = &runs->run[i];
        if (strcmp(run->status, "ok") != 0) {
            page_point(page, "%s did not end as planned: %s%s%s. What it left is shown.", runs->name[i], run->status,
                       run->error_text[0] != '\0' ? ", " : "", run->error_text);
        }
        if (run->note[0] != '\0') {
            page_point(page, "%s: %s", runs->name[i], run->note);
        }
    }
}

/* The runs that the one at `leader` is compared with: by rows, or when `links` by times; 0: an earlier run leads them. */
static int runs_group(const runs_t *runs, int leader, int links, int *member)
{
    int n = 0;
    for (int i = 0; i < runs->n; i++) {
        if (runs_same_work(&runs->run[i], &runs->run[leader]) &&
            (!links || runs_same_link(&runs->run[i], &runs->run[leader]))) {
            if (i < leader) {
                return 0;
            }
            member[n++] = i;
        }
    }
    return n;
}

/* "Of A, C, D: " where there are others beside them. */
static const char *runs_group_name(const runs_t *runs, const int *member, int n, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int m = 0; m < n && n < runs->n; m++) {
        used += (size_t)snprintf(text + used, size - used, "%s%c%s", m == 0 ? "Of " : "", 'A' + member[m],
                                 m + 1 < n ? ", " : ": ");
    }
    return text;
}

static void runs_tell_group_rows(page_t *page, const runs_t *runs, const int *member, int n)
{
    int best = member[0], worst = member[0];
    char a[32], group[4 * RUNS_MAX + 8], bound[160] = "";
    for (int m = 1; m < n; m++) {
        const int64_t fetched = run_fetched(&runs->run[member[m]].rows);
        best = fetched < run_fetched(&runs->run[best].rows) ? member[m] : best;
        worst = fetched > run_fetched(&runs->run[worst].rows) ? member[m] : worst;
    }
    const run_t *run = &runs->run[best];
    if (run->rows.remote == 0) {
        return;
    }
    if (!isnan(runs_reached(run))) {
        snprintf(bound, sizeof bound,
                 "; no buffer of its size could save more than %.1f %%, of which it reached %.1f %%",
                 runs_bound_percent(run), runs_reached(run));
    }
    page_point(page, "%s%s fetched %s%s rows, %.1f %% less than its minibatches asked for%s.",
               n > 1 ? runs_group_name(runs, member, n, group, sizeof group) : "", runs->name[best],
               n > 1 ? "fewest: " : "", text_of_count(run_fetched(&run->rows), a, sizeof a),
               run_saved_percent(run_fetched(&run->rows), run->rows.remote), bound);
    if (best != worst) {
        const int64_t few = run_fetched(&run->rows), many = run_fetched(&runs->run[worst].rows);
        page_point(page, "%s fetched most: %s rows, %.1f %% more.", runs->name[worst], text_of_count(many, a, sizeof a),
                   few > 0 ? 100.0 * (double)(many - few) / (double)few : 0);
    }
}

static void runs_tell_rows(page_t *page, const runs_t *runs)
{
    int member[RUNS_MAX];
    for (int i = 0; i < runs->n; i++) {
        const int n = runs_group(runs, i, 0, member);
        if (n > 0) {
            runs_tell_group_rows(page, runs, member, n);
        }
    }
}

/* What speaks against a buffer that changes: the plain ones beside it. */
static void runs_tell_against(page_t *page, const runs_t *runs)
{
    for (int i = 0; i < runs->n; i++) {
        const run_t *run = &runs->run[i];
        for (int j = 0; j < runs->n; j++) {
            const run_t *plain = &runs->run[j];
            if (i == j || !runs_same_work(run, plain) || strcmp(run->policy, "none") == 0) {
                continue;
            }
            if (strcmp(plain->policy, "static") == 0 && strcmp(run->policy, "static") != 0 &&
                run->capacity == plain->capacity && runs_same_link(run, plain) &&
                run_fetched(&run->rows) > run_fetched(&plain->rows)) {
                page_point(page, "%s fetched %.1f %% more rows than %s, whose buffer of the same size never changes.",
                           runs->name[i],
                           100.0 * ((double)run_fetched(&run->rows) / (double)run_fetched(&plain->rows) - 1),
                           runs->name[j]);
            }
            if (strcmp(plain->policy, "none") == 0 && runs_same_link(run, plain) &&
                runs->epoch_low[i] > runs->epoch_high[j]) {
                page_point(page,
                           "Every epoch of %s was longer than every epoch of %s, which has no buffer: here the buffer "
                           "cost more time than it saved, or the machine was busy with other work.",
                           runs->name[i], runs->name[j]);
            }
        }
    }
}

static void runs_tell_group_times(page_t *page, const runs_t *runs, const int *member, int n)
{
    int best = -1, next = -1;
    char group[4 * RUNS_MAX + 8];
    for (int m = 0; m < n; m++) {
        const int i = member[m];
        if (isnan(runs->epoch_mean[i])) {
            continue;
        }
        if (best < 0 || runs->epoch_mean[i] < runs->epoch_mean[best]) {
            next = best;
            best = i;
        } else if (next < 0 || runs->epoch_mean[i] < runs->epoch_mean[next]) {
            next = i;
        }
    }
    if (next >= 0) {
        page_point(page, "%s%s had the shortest epochs%s: %.3g s on average, then %s with %.3g s%s.",
                   runs_group_name(runs, member, n, group, sizeof group), runs->name[best],
                   runs->run[best].emulated ? " (emulated links)" : "", runs->epoch_mean[best], runs->name[next],
                   runs->epoch_mean[next],
                   runs->epoch_high[best] >= runs->epoch_low[next]
                       ? "; their epochs overlap, so the difference may be chance"
                       : "");
    }
}

static void runs_tell_times(page_t *page, const runs_t *runs)
{
    int member[RUNS_MAX];
    for (int i = 0; i < runs->n; i++) {
        const int n = runs_group(runs, i, 1, member);
        if (n > 1) {
            runs_tell_group_times(page, runs, member, n);
        }
    }
}

/* The losses of all epochs: whether they are the same numbers to the last bit in all runs. */
int runs_same_losses(const runs_t *runs)
{
    for (int i = 0; i < runs->n; i++) {
        const run_t *run = &runs->run[i];
        if (run->loss == NULL || run->n_epochs != runs->run[0].n_epochs ||
            (run->n_epochs > 0 &&
             memcmp(run->loss, runs->run[0].loss, (size_t)run->n_epochs * sizeof *run->loss) != 0)) {
            return 0;
        }
    }
    return runs->n > 0 && runs->run[0].n_epochs > 0;
}

static void runs_tell_deciders(page_t *page, const runs_t *runs)
{
    for (int i = 0; i < runs->n; i++) {
        const run_verdicts_t *v = &runs->run[i].verdicts;
        if (v->asked > 0 && v->applied < v->asked) {
            page_point(page,
                       "%s: %" PRId64 " of %" PRId64 " decisions asked for were applied (%" PRId64 " late, %" PRId64
                       " invalid, %" PRId64 " failed, the rest under way at the end).",
                       runs->name[i], v->applied, v->asked, v->late, v->invalid, v->failed);
        }
    }
}

static void runs_findings(page_t *page, const runs_t *runs)
{
    int different = 0;
    page_section(page, "What it shows");
    runs_tell_states(page, runs);
    runs_tell_rows(page, runs);
    runs_tell_against(page, runs);
    runs_tell_times(page, runs);
    runs_tell_deciders(page, runs);
    if (runs->n > 1 && runs_same_losses(runs)) {
        page_point(page,
                   "The losses of all epochs are the same in all runs, to the last bit: the buffer changed what was "
                   "fetched and nothing that was learned.");
    }
    for (int i = 1; i < runs->n; i++) {
        different |= !runs_same_work(&runs->run[i], &runs->run[0]);
    }
    if (different) {
        page_point(page, "Not all runs trained on the same minibatches: only those that did are compared.");
    }
    if (runs_any(runs, runs_is_emulated)) {
        page_point(
            page,
            "Times of runs with a link other than \"off\" are emulated: rows were delayed as a network of that rate "
            "would delay them.");
    }
}

/* ---- headline ---- */

static void runs_name_cell(table_t *table, const runs_t *runs, int i)
{
    table_cell(table, "%c %s", 'A' + i, runs->run[i].label);
}

static void runs_head(table_t *table, const char *const *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        table_cell(table, "%s", cells[i]);
    }
    table_line(table);
}

static void runs_rows_table(page_t *page, const runs_t *runs)
{
    static const char *const head[] = {"run",  "policy", "rows fetched", "of them fill",
                                       "hits", "saved",  "bound",        "reached"};
    const int bound = runs_any(runs, runs_has_bound);
    char text[192];
    table_t *table = table_open(bound ? "llrrrrrr" : "llrrrr");
    if (table == NULL) {
        page_table(page, NULL, PAGE_PLAIN);
        return;
    }
    runs_head(table, head, bound ? 8 : 6);
    for (int i = 0; i < runs->n; i++) {
        const run_t *run = &runs->run[i];
        runs_name_cell(table, runs, i);
        table_cell(table, "%s", runs_how(run, text, sizeof text));
        table_count(table, run_fetched(&run->rows));
        table_count(table, run->rows.fill);
        table_number(table, runs_hit_percent(run), 1, " %");
        table_number(table, run_saved_percent(run_fetched(&run->rows), run->rows.remote), 1, " %");
        if (bound) {
            table_number(table, runs_bound_percent(run), 1, " %");
            table_number(table, runs_reached(run), 1, " %");
        }
    }
    page_table(page, table, PAGE_KEYED);
    page_text(page,
              "rows fetched: misses and fill rows of all ranks, the start content included. hits: remote rows found in "
              "the buffer. saved: "
              "remote rows that were not fetched.%s",
              bound ? " bound: what the best possible buffer of that size would save; reached: saved of that."
                    : " The bound is known where one of the runs on the same minibatches recorded its trace (rudder "
                      "train --record).");
}

static void runs_results_table(page_t *page, const runs_t *runs)
{
    static const char *const head[] = {"run",   "link", "epochs", "epoch s", "range s", "loss",
                                       "valid", "test", "asked",  "applied", "replaced"};
    const int decisions = runs_any(runs, runs_has_decisions);
    table_t *table = table_open(decisions ? "llr|rr|rrr|rrr" : "llr|rr|rrr");
    if (table == NULL) {
        page_table(page, NULL, PAGE_PLAIN);
        return;
    }
    runs_head(table, head, decisions ? 11 : 8);
    for (int i = 0; i < runs->n; i++) {
        const run_t *run = &runs->run[i];
        const int64_t last = run->n_epochs - 1;
        const int decimals = runs->epoch_mean[i] < 10 ? 3 : 2;
        runs_name_cell(table, runs, i);
        table_cell(table, "%s%s", run->link, run->emulated ? " (emulated)" : "");
        table_count(table, run->n_epochs);
        table_number(table, runs->epoch_mean[i], decimals, "");
        if (last < 0) {
            table_cell(table, "-");
        } else {
            table_cell(table, "%.*f to %.*f", decimals, runs->epoch_low[i], decimals, runs->epoch_high[i]);
        }
        table_number(table, last >= 0 && run->loss != NULL ? run->loss[last] : NAN, 4, "");
        table_number(table, last >= 0 && run->valid != NULL ? run->valid[last] : NAN, 3, "");
        table_number(table, run->test, 3, "");
        if (decisions) {
            table_count(table, run->verdicts.asked);
            table_count(table, run->verdicts.applied);
            table_count(table, run->verdicts.replaced);
        }
    }
    page_table(page, table, PAGE_KEYED);
    page_text(page,
              "epoch s: mean seconds of an epoch without evaluation, and the range over the epochs. loss, valid and "
              "test: mean "
              "training loss and accuracies after the last epoch. Times are of one run each: other work on the machine "
              "shows in "
              "them.%s",
              decisions ? " asked, applied, replaced: decisions." : "");
}

static void runs_headline_rows(page_t *page, const runs_t *runs)
{
    static const char *const names[] = {"misses", "fill rows"}, *const css[] = {"miss", "fill"};
    svg_bar_t bar[RUNS_MAX];
    double value[RUNS_MAX][2];
    char text[RUNS_MAX][32];
    if (!page_figure(page, -1, "Rows fetched", "Over the whole run and all ranks.")) {
        return;
    }
    for (int i = 0; i < runs->n; i++) {
        const run_t *run = &runs->run[i];
        value[i][0] = (double)run->rows.miss;
        value[i][1] = (double)run->rows.fill;
        bar[i] = (svg_bar_t){.label = runs->short_name[i],
                             .value = value[i],
                             .low = NAN,
                             .high = NAN,
                             .text = text[i],
                             .mark = run->bound >= 0 ? (double)run->bound : NAN};
        text_of_count(run_fetched(&run->rows), text[i], sizeof text[i]);
    }
    const svg_bars_t bars = {.title = "Rows fetched by each run, misses and fill rows",
                             .x_label = "rows",
                             .mark_name = runs_any(runs, runs_has_bound) ? "bound: fewest possible" : NULL,
                             .n_parts = 2,
                             .names = names,
                             .css = css,
                             .n = runs->n,
                             .bars = bar};
    svg_bars_legend(&bars, page->file);
    svg_bars(&bars, page->file);
    page_end_figure(page);
}

static void runs_headline_times(page_t *page, const runs_t *runs)
{
    static const char *const names[] = {"mean of the epochs, and their range"}, *const css[] = {"one"};
    svg_bar_t bar[RUNS_MAX];
    char text[RUNS_MAX][32];
    if (!page_figure(page, -1, "Time of an epoch",
                     runs_any(runs, runs_is_emulated)
                         ? "Seconds on the first rank, without evaluation; links emulated where the table says so."
                         : "Seconds on the first rank, without evaluation.")) {
        return;
    }
    for (int i = 0; i < runs->n; i++) {
        const int one = runs->run[i].n_epochs < 2;
        bar[i] = (svg_bar_t){.label = runs->short_name[i],
                             .value = &runs->epoch_mean[i],
                             .mark = NAN,
                             .low = one ? NAN : runs->epoch_low[i],
                             .high = one ? NAN : runs->epoch_high[i],
                             .text = text[i]};
        snprintf(text[i], sizeof text[i], isnan(runs->epoch_mean[i]) ? "not known" : "%.3g s%s", runs->epoch_mean[i],
                 runs->run[i].emulated ? " emulated" : "");
    }
    const svg_bars_t bars = {.title = "Seconds of an epoch in each run",
                             .x_label = "seconds an epoch (s)",
                             .n_parts = 1,
                             .names = names,
                             .css = css,
                             .n = runs->n,
                             .bars = bar};
    svg_bars_legend(&bars, page->file);
    svg_bars(&bars, page->file);
    page_end_figure(page);
}

/* ---- policies ---- */

static double runs_sum(const run_t *run, size_t offset)
{
    double sum = 0;
    int32_t n = 0;
    for (int32_t r = 0; r < run->n_ranks; r++) {
        const double value = *(const double *)((const char *)&run->rank[r] + offset);
        if (!isnan(value)) {
            sum += value;
            n++;
        }
    }
    return n > 0 ? sum : NAN;
}

static int64_t runs_as_count(double value)
{
    return isnan(value) || fabs(value) > 0x1p62 ? -1 : (int64_t)value;
}

/* "12.4, at most 16" */
static void runs_window_cell(table_t *table, const run_t *run)
{
    double mean = 0, most = NAN;
    int32_t n = 0;
    for (int32_t r = 0; r < run->n_ranks; r++) {
        mean += isnan(run->rank[r].window_mean) ? 0 : run->rank[r].window_mean;
        n += !isnan(run->rank[r].window_mean);
        most = fmax(most, run->rank[r].window_max);
    }
    if (n == 0 || most == 0) {
        table_cell(table, "-");
    } else if (isnan(most)) {
        table_cell(table, "%.1f", mean / n);
    } else {
        table_cell(table, "%.1f (%.0f)", mean / n, most);
    }
}

static void runs_policies(page_t *page, const runs_t *runs)
{
    static const char *const head[] = {"run",     "policy",  "start",     "decider",   "capacity rows",
                                       "of halo", "entered", "untracked", "memory MB", "window (most)"};
    char text[96];
    page_section(page, "Policies");
    table_t *table = table_open("llllrrrrrr");
    if (table == NULL) {
        page_table(page, NULL, PAGE_PLAIN);
        return;
    }
    runs_head(table, head, sizeof head / sizeof *head);
    for (int i = 0; i < runs->n; i++) {
        const run_t *run = &runs->run[i];
        const double halo = runs_sum(run, offsetof(run_rank_t, halo));
        runs_name_cell(table, runs, i);
        table_cell(table, "%s", run->policy);
        table_cell(table, "%s", run->start[0] != '\0' ? run->start : "default");
        snprintf(text, sizeof text, "%s, %s", run->decider, run->mode);
        table_cell(table, "%s", run->decider[0] != '\0' ? text : "-");
        table_count(table, runs_as_count(run->capacity));
        table_number(table, halo > 0 ? 100 * run->capacity / halo : NAN, 1, " %");
        table_count(table, runs_as_count(runs_sum(run, offsetof(run_rank_t, entered))));
        table_count(table, runs_as_count(runs_sum(run, offsetof(run_rank_t, untracked))));
        table_number(table, runs_sum(run, offsetof(run_rank_t, library_bytes)) * 1e-6, 1, "");
        runs_window_cell(table, run);
    }
    page_table(page, table, PAGE_KEYED);
    page_text(page, "Sums over the ranks. entered: rows that entered the buffer. untracked: misses of nodes that the "
                    "library does not "
                    "remember. memory: stated and allocated by the library. window: minibatches that were announced "
                    "ahead, mean and most.");
}

/* ---- configuration ---- */

/* Every "group.key" of a configuration in the order of the files. */
typedef struct runs_key {
    const char *group, *key;
} runs_key_t;

static const cJSON *runs_setting(const run_t *run, const runs_key_t *key)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(run->config, key->group), key->key);
}

/* Where the run was written and what the job was called differs always and means nothing. */
static int runs_is_name(const runs_key_t *key)
{
    return strcmp(key->key, "run-dir") == 0 || strcmp(key->key, "job") == 0;
}

static int64_t runs_collect_keys(const runs_t *runs, runs_key_t *keys, int64_t most)
{
    static const char *const groups[] = {"options", "effective", "versions", "host"};
    int64_t n = 0;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (int i = 0; i < runs->n; i++) {
            const cJSON *item, *group = cJSON_GetObjectItemCaseSensitive(runs->run[i].config, groups[g]);
            cJSON_ArrayForEach(item, group)
            {
                int64_t at = 0;
                while (at < n && (strcmp(keys[at].group, groups[g]) != 0 || strcmp(keys[at].key, item->string) != 0)) {
                    at++;
                }
                if (at == n && n < most && item->string != NULL) {
                    keys[n++] = (runs_key_t){groups[g], item->string};
                }
            }
        }
    }
    return n;
}

static void runs_value_cell(table_t *table, const cJSON *item)
{
    char *text = read_value_text(item);
    table_cell(table, "%s", text != NULL ? text : "?");
    free(text);
}

static int runs_key_differs(const runs_t *runs, const runs_key_t *key)
{
    for (int i = 1; i < runs->n; i++) {
        const cJSON *a = runs_setting(&runs->run[0], key), *b = runs_setting(&runs->run[i], key);
        if ((a == NULL) != (b == NULL) || (a != NULL && !cJSON_Compare(a, b, 1))) {
            return 1;
        }
    }
    return 0;
}

static void runs_key_cell(table_t *table, const runs_key_t *key)
{
    if (strcmp(key->group, "options") == 0) {
        table_cell(table, "--%s", key->key);
    } else {
        table_cell(table, "%s: %s", key->group, key->key);
    }
}

static void runs_configuration(page_t *page, const runs_t *runs)
{
    enum { MOST = 512 };
    runs_key_t *keys = malloc(MOST * sizeof *keys);
    char columns[2 * RUNS_MAX + 2] = "l";
    int64_t different = 0;
    page_section(page, "Configuration");
    if (keys == NULL) {
        page->failed = 1;
        return;
    }
    const int64_t n = runs_collect_keys(runs, keys, MOST);
    memset(columns + 1, 'l', (size_t)runs->n);
    table_t *table = table_open(columns);
    table_t *same = table_open("ll");
    if (table != NULL && same != NULL) {
        table_cell(table, "differs");
        for (int i = 0; i < runs->n; i++) {
            table_cell(table, "%c", 'A' + i);
        }
        table_line(table);
        table_cell(same, "setting");
        table_cell(same, "value");
        table_line(same);
        for (int64_t k = 0; k < n; k++) {
            if (runs_is_name(&keys[k])) {
                continue;
            }
            const int differs = runs_key_differs(runs, &keys[k]);
            different += differs;
            runs_key_cell(differs ? table : same, &keys[k]);
            for (int i = 0; i < (differs ? runs->n : 1); i++) {
                runs_value_cell(differs ? table : same, runs_setting(&runs->run[i], &keys[k]));
            }
        }
    }
    if (different > 0) {
        page_table(page, table, runs->n > 6 ? PAGE_WIDE : PAGE_PLAIN);
    } else {
        page_text(page, runs->n > 1 ? "The runs were configured alike." : "");
        table_close(table);
    }
    page_fold(page, runs->n > 1 ? "Settings that are the same in all runs" : "All settings");
    page_table(page, same, PAGE_PLAIN);
    page_end_fold(page);
    free(keys);
}

/* ---- all ---- */

static void runs_measure_epochs(runs_t *runs, int i)
{
    const run_t *run = &runs->run[i];
    double sum = 0;
    int64_t n = 0;
    runs->epoch_low[i] = runs->epoch_high[i] = NAN;
    for (int64_t e = 0; e < run->n_epochs && run->epoch_seconds != NULL; e++) {
        const double seconds = run->epoch_seconds[e];
        sum += isnan(seconds) ? 0 : seconds;
        n += !isnan(seconds);
        runs->epoch_low[i] = fmin(runs->epoch_low[i], seconds);
        runs->epoch_high[i] = fmax(runs->epoch_high[i], seconds);
    }
    runs->epoch_mean[i] = n > 0 ? sum / (double)n : NAN;
}

/* At most `columns` code points; what is left out is an ellipsis. */
static void runs_shorten(const char *text, int32_t columns, char *result, size_t size)
{
    snprintf(result, size, "%s", text);
    if (text_columns(result) <= columns) {
        return;
    }
    char *c = result;
    for (int32_t i = 0; i < columns - 1; i++) {
        c += text_sequence(c);
    }
    snprintf(c, size - (size_t)(c - result), "\u2026");
}

rudder_status_t runs_report(page_t *page, const run_t *run, int n, rudder_error_t *error)
{
    runs_t runs = {.run = run, .n = n};
    runs.line = malloc((size_t)RUNS_OVERLAY * sizeof *runs.line);
    if (runs.line == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the charts of a report");
    }
    for (int i = 0; i < n; i++) {
        snprintf(runs.name[i], sizeof runs.name[i], "%c (%s)", 'A' + i, run[i].label);
        runs.short_name[i][0] = (char)('A' + i);
        runs.short_name[i][1] = ' ';
        runs_shorten(run[i].label, 20, runs.short_name[i] + 2, sizeof runs.short_name[i] - 2);
        runs_measure_epochs(&runs, i);
    }
    runs_findings(page, &runs);
    page_section(page, "The runs");
    runs_rows_table(page, &runs);
    runs_results_table(page, &runs);
    runs_headline_rows(page, &runs);
    runs_headline_times(page, &runs);
    runs_courses(page, &runs);
    runs_times(page, &runs);
    runs_traffic(page, &runs);
    runs_decisions(page, &runs);
    runs_policies(page, &runs);
    runs_configuration(page, &runs);
    free(runs.line);
    return RUDDER_OK;
}
