/*
 * Two runs side by side. Everything but times and names counts as a difference. Times differ between any two runs, so they
 * are told with the range over the epochs, which says how much to believe.
 */
#include "report/differences.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

typedef struct differences {
    page_t *page;
    const run_t *a, *b;
    int64_t n; /* told so far */
} differences_t;

/* ---- settings ---- */

static int differences_is_name(const char *key)
{
    return strcmp(key, "run-dir") == 0 || strcmp(key, "job") == 0 || strcmp(key, "name") == 0;
}

static void differences_setting(differences_t *d, const char *group, const char *key, const cJSON *a, const cJSON *b)
{
    if (differences_is_name(key) || (a == NULL && b == NULL) || (a != NULL && b != NULL && cJSON_Compare(a, b, 1))) {
        return;
    }
    char *text_a = read_value_text(a), *text_b = read_value_text(b);
    page_point(d->page, "%s%s%s: A %s, B %s", strcmp(group, "options") == 0 ? "--" : group,
               strcmp(group, "options") == 0 ? "" : ": ", key, text_a != NULL ? text_a : "?",
               text_b != NULL ? text_b : "?");
    d->n++;
    free(text_a);
    free(text_b);
}

static void differences_group(differences_t *d, const char *group)
{
    const cJSON *a = cJSON_GetObjectItemCaseSensitive(d->a->config, group),
                *b = cJSON_GetObjectItemCaseSensitive(d->b->config, group), *item;
    cJSON_ArrayForEach(item, a)
    {
        differences_setting(d, group, item->string != NULL ? item->string : "", item,
                            cJSON_GetObjectItemCaseSensitive(b, item->string));
    }
    cJSON_ArrayForEach(item, b)
    {
        if (cJSON_GetObjectItemCaseSensitive(a, item->string) == NULL) {
            differences_setting(d, group, item->string != NULL ? item->string : "", NULL, item);
        }
    }
}

static void differences_settings(differences_t *d)
{
    static const char *const groups[] = {"options", "effective", "versions", "host"};
    const int64_t before = d->n;
    page_section(d->page, "Settings, versions and host");
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        differences_group(d, groups[g]);
    }
    if (strcmp(d->a->graph, d->b->graph) != 0 || strcmp(d->a->partition, d->b->partition) != 0) {
        page_point(d->page, "graph and partition: A %s by %s, B %s by %s", d->a->graph, d->a->partition, d->b->graph,
                   d->b->partition);
        d->n++;
    }
    if (d->n == before) {
        page_text(d->page, "The same.");
    }
}

/* ---- steps ---- */

/* The first minibatch of a rank in which something differs; -1: none. */
typedef struct differences_steps {
    int64_t common;                /* minibatches that both have */
    int64_t more_a, more_b;        /* that only one has */
    int64_t loss, remote, fetched; /* first that differs */
    double loss_a, loss_b;
    int64_t fetched_a, fetched_b;
    int32_t rank; /* of fetched */
} differences_steps_t;

static void differences_step(differences_steps_t *found, int32_t rank, const read_step_t *a, const read_step_t *b)
{
    if (rank == 0 && found->loss < 0 && memcmp(&a->loss, &b->loss, sizeof a->loss) != 0 &&
        !(isnan(a->loss) && isnan(b->loss))) {
        found->loss = a->step;
        found->loss_a = a->loss;
        found->loss_b = b->loss;
    }
    if (a->remote != b->remote && (found->remote < 0 || a->step < found->remote)) {
        found->remote = a->step;
    }
    if (a->miss + a->fill != b->miss + b->fill && (found->fetched < 0 || a->step < found->fetched)) {
        found->fetched = a->step;
        found->fetched_a = a->miss + a->fill;
        found->fetched_b = b->miss + b->fill;
        found->rank = rank;
    }
}

static rudder_status_t differences_read_rank(int32_t rank, read_lines_t *a, read_lines_t *b, differences_steps_t *found,
                                             rudder_error_t *error)
{
    read_step_t step_a, step_b;
    int end_a = 0, end_b = 0;
    for (;;) {
        rudder_status_t status = end_a ? RUDDER_OK : read_next_step(a, &step_a, &end_a, error);
        if (status == RUDDER_OK && !end_b) {
            status = read_next_step(b, &step_b, &end_b, error);
        }
        if (status != RUDDER_OK || (end_a && end_b)) {
            return status;
        }
        if (!end_a && !end_b) {
            differences_step(found, rank, &step_a, &step_b);
        }
        found->common += rank == 0 && !end_a && !end_b;
        found->more_a += rank == 0 && end_b;
        found->more_b += rank == 0 && end_a;
    }
}

static rudder_status_t differences_read_steps(const run_t *a, const run_t *b, differences_steps_t *found,
                                              rudder_error_t *error)
{
    *found = (differences_steps_t){.loss = -1, .remote = -1, .fetched = -1};
    for (int32_t r = 0; r < a->n_ranks && r < b->n_ranks; r++) {
        read_lines_t lines_a = {0}, lines_b = {0};
        int found_a = 0, found_b = 0;
        rudder_status_t status = read_lines_open(a->path, "steps", r, &lines_a, &found_a, error);
        if (status == RUDDER_OK) {
            status = read_lines_open(b->path, "steps", r, &lines_b, &found_b, error);
        }
        if (status == RUDDER_OK && found_a && found_b) {
            status = differences_read_rank(r, &lines_a, &lines_b, found, error);
        }
        read_lines_close(&lines_a);
        read_lines_close(&lines_b);
        if (status != RUDDER_OK) {
            return status;
        }
    }
    return RUDDER_OK;
}

/* ---- result ---- */

static void differences_number(differences_t *d, const char *name, double a, double b)
{
    if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b))) {
        page_point(d->page, "%s: A %.6g, B %.6g", name, a, b);
        d->n++;
    }
}

static void differences_result(differences_t *d, const differences_steps_t *steps)
{
    const run_t *a = d->a, *b = d->b;
    page_section(d->page, "Result");
    if (strcmp(a->status, b->status) != 0) {
        page_point(d->page, "A ended as \"%s\", B as \"%s\".", a->status, b->status);
        d->n++;
    }
    if (steps->more_a + steps->more_b > 0) {
        page_point(d->page, "%s went on for %" PRId64 " minibatches more.", steps->more_a > 0 ? "A" : "B",
                   steps->more_a + steps->more_b);
        d->n++;
    }
    if (steps->common == 0) {
        page_point(d->page, "No minibatch of both is there to compare losses.");
    } else if (steps->loss < 0) {
        page_point(d->page, "The losses of all %" PRId64 " minibatches that both did are equal bit for bit.",
                   steps->common);
    } else {
        page_point(d->page, "The losses differ from minibatch %" PRId64 " on: A %.17g, B %.17g%s", steps->loss,
                   steps->loss_a, steps->loss_b, steps->loss > 0 ? "; before it they are equal bit for bit." : ".");
        d->n++;
    }
    for (int64_t e = 0; e < a->n_epochs && e < b->n_epochs && a->valid != NULL && b->valid != NULL; e++) {
        char name[64];
        snprintf(name, sizeof name, "validation accuracy after epoch %" PRId64, e + 1);
        differences_number(d, name, a->valid[e], b->valid[e]);
    }
    if (a->n_epochs == b->n_epochs) {
        differences_number(d, "test accuracy", a->test, b->test);
    }
}

/* ---- rows ---- */

static void differences_count(differences_t *d, const char *name, int64_t a, int64_t b)
{
    char text_a[32], text_b[32], percent[48] = "";
    if (a != b) {
        if (a > 0) {
            snprintf(percent, sizeof percent, " (%+.2f %%)", 100 * ((double)b / (double)a - 1));
        }
        page_point(d->page, "%s: A %s, B %s%s", name, text_of_count(a, text_a, sizeof text_a),
                   text_of_count(b, text_b, sizeof text_b), percent);
        d->n++;
    }
}

static void differences_rows(differences_t *d, const differences_steps_t *steps)
{
    const run_rows_t *a = &d->a->rows, *b = &d->b->rows;
    const int64_t before = d->n;
    page_section(d->page, "Rows");
    differences_count(d, "remote rows", a->remote, b->remote);
    differences_count(d, "rows fetched", run_fetched(a), run_fetched(b));
    differences_count(d, "misses", a->miss, b->miss);
    differences_count(d, "fill rows", a->fill, b->fill);
    if (steps->remote >= 0) {
        page_point(d->page,
                   "The minibatches are not the same: from minibatch %" PRId64
                   " on they ask for other numbers of remote rows.",
                   steps->remote);
        d->n++;
    } else if (steps->common > 0 && steps->more_a + steps->more_b == 0 && d->a->n_ranks == d->b->n_ranks) {
        page_point(d->page, "Both asked for as many remote rows in every minibatch.");
    }
    if (steps->fetched >= 0) {
        page_point(d->page,
                   "The first minibatch that fetched another number of rows is %" PRId64 ", on rank %" PRId32
                   ": A %" PRId64 ", B %" PRId64 ".",
                   steps->fetched, steps->rank, steps->fetched_a, steps->fetched_b);
        d->n++;
    }
    if (d->a->bound >= 0 && d->b->bound >= 0) {
        differences_count(d, "bound (fewest rows possible)", d->a->bound, d->b->bound);
    }
    if (d->n == before) {
        page_text(d->page, "The same in every minibatch of every rank.");
    }
}

/* ---- decisions ---- */

static int differences_same_decision(const read_decision_t *a, const read_decision_t *b)
{
    return a->rank == b->rank && a->number == b->number && a->asked == b->asked && a->applied == b->applied &&
           a->status == b->status && a->from_fallback == b->from_fallback && a->replaced_rows == b->replaced_rows &&
           strcmp(a->verdict, b->verdict) == 0 && strcmp(a->prompt, b->prompt) == 0;
}

static void differences_describe(const read_decision_t *decision, char *text, size_t size)
{
    snprintf(text, size, "rank %" PRId32 ", asked at %" PRId64 ", said %s, %s at %" PRId64 ", %" PRId64 " rows",
             decision->rank, decision->asked, decision->verdict, rudder_outcome_name(decision->status),
             decision->applied, decision->replaced_rows);
}

static void differences_decisions(differences_t *d)
{
    const run_verdicts_t *a = &d->a->verdicts, *b = &d->b->verdicts;
    const int64_t before = d->n;
    char text_a[160], text_b[160];
    if (a->asked + b->asked + d->a->n_decisions + d->b->n_decisions == 0) {
        return;
    }
    page_section(d->page, "Decisions");
    differences_count(d, "asked", a->asked, b->asked);
    differences_count(d, "applied", a->applied, b->applied);
    differences_count(d, "replaced", a->replaced, b->replaced);
    differences_count(d, "kept", a->kept, b->kept);
    differences_count(d, "nothing stale", a->nothing_stale, b->nothing_stale);
    differences_count(d, "late", a->late, b->late);
    differences_count(d, "invalid", a->invalid, b->invalid);
    differences_count(d, "failed", a->failed, b->failed);
    differences_count(d, "by the fall-back rule", a->fallback, b->fallback);
    for (int64_t i = 0; i < d->a->n_decisions && i < d->b->n_decisions; i++) {
        if (!differences_same_decision(&d->a->decision[i], &d->b->decision[i])) {
            differences_describe(&d->a->decision[i], text_a, sizeof text_a);
            differences_describe(&d->b->decision[i], text_b, sizeof text_b);
            page_point(d->page, "the first that differs: A %s; B %s", text_a, text_b);
            d->n++;
            break;
        }
    }
    if (d->n == before) {
        page_text(d->page, "The same.");
    }
}

/* ---- times ---- */

static int64_t differences_epochs(const run_t *run, double *mean, double *low, double *high)
{
    int64_t n = 0;
    double sum = 0;
    *low = *high = NAN;
    for (int64_t e = 0; e < run->n_epochs && run->epoch_seconds != NULL; e++) {
        const double seconds = run->epoch_seconds[e];
        sum += isnan(seconds) ? 0 : seconds;
        n += !isnan(seconds);
        *low = fmin(*low, seconds);
        *high = fmax(*high, seconds);
    }
    *mean = n > 0 ? sum / (double)n : NAN;
    return n;
}

/* The part of a thread that differs most, in seconds. */
static void differences_part(differences_t *d, const char *thread, const char *const *names, const double *a,
                             const double *b)
{
    int most = -1;
    for (int p = 0; p < READ_PARTS; p++) {
        if (!isnan(a[p]) && !isnan(b[p]) && (most < 0 || fabs(b[p] - a[p]) > fabs(b[most] - a[most]))) {
            most = p;
        }
    }
    if (most >= 0) {
        page_point(d->page, "the part of the %s thread that differs most: %s, A %.3g s, B %.3g s (mean of the ranks)",
                   thread, names[most], a[most], b[most]);
    }
}

static void differences_times(differences_t *d)
{
    double mean_a, low_a, high_a, mean_b, low_b, high_b;
    page_section(d->page, "Times");
    if (differences_epochs(d->a, &mean_a, &low_a, &high_a) == 0 ||
        differences_epochs(d->b, &mean_b, &low_b, &high_b) == 0) {
        page_text(d->page, "One of the runs finished no epoch.");
        return;
    }
    page_point(d->page, "epochs: A %.3g s (%.3g to %.3g), B %.3g s (%.3g to %.3g), %+.1f %%%s", mean_a, low_a, high_a,
               mean_b, low_b, high_b, 100 * (mean_b / mean_a - 1),
               d->a->emulated || d->b->emulated ? "; links are emulated" : "");
    differences_part(d, "loader", read_loader_parts, d->a->loader, d->b->loader);
    differences_part(d, "compute", read_compute_parts, d->a->compute, d->b->compute);
    if (low_a > high_b || low_b > high_a) {
        page_text(d->page, "No epoch of the one was as long as any of the other. That is more than the noise within "
                           "the runs, but not more than "
                           "another load on the machine: run both again, in turn, before believing it.");
    } else {
        page_text(d->page, "The epochs of both overlap: this difference is within the noise.");
    }
}

rudder_status_t differences_tell(page_t *page, const run_t *a, const run_t *b, int *same, rudder_error_t *error)
{
    differences_t d = {page, a, b, 0};
    differences_steps_t steps;
    const rudder_status_t status = differences_read_steps(a, b, &steps, error);
    if (status != RUDDER_OK) {
        return status;
    }
    differences_settings(&d);
    differences_result(&d, &steps);
    differences_rows(&d, &steps);
    differences_decisions(&d);
    differences_times(&d);
    *same = d.n == 0;
    page_section(page, "In short");
    page_text(page,
              *same ? "Nothing but names and times differs." : "The runs differ, as told above; times do not count.");
    return RUDDER_OK;
}
