/* The clock model: nothing but sums and maxima over the times of loaders, links and training. */
#include "trace/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/lines.h"
#include "base/text.h"

enum { CLOCK_ID_BYTES = 8 };

/* A place for a minibatch between loader and training. */
typedef struct clock_place {
    double released, wait, compute;
} clock_place_t;

typedef struct clock_rank {
    double loader;        /* when its loader is free */
    double handed;        /* when the minibatch was handed over */
    clock_place_t *place; /* [n_places] */
    links_t links;
    clock_sums_t sums;
} clock_rank_t;

struct clock_model {
    const clock_setup_t *setup;
    int32_t n_places;
    int64_t t, change; /* minibatch; first change that is still to come */
    double step_end;
    int64_t *in, *out; /* [n_owners]: bytes */
    double *arrival;   /* [n_owners] */
    clock_rank_t rank[];
};

rudder_status_t clock_model_open(const clock_setup_t *setup, clock_model_t **out, rudder_error_t *error)
{
    const size_t owners = (size_t)setup->n_owners;
    clock_model_t *model = calloc(1, sizeof *model + (size_t)setup->n_ranks * sizeof *model->rank);
    if (model == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the clock of %d ranks", (int)setup->n_ranks);
    }
    model->setup = setup;
    model->n_places = setup->depth + 1;
    model->in = calloc(owners, sizeof *model->in);
    model->out = calloc(owners, sizeof *model->out);
    model->arrival = calloc(owners, sizeof *model->arrival);
    int failed = model->in == NULL || model->out == NULL || model->arrival == NULL;
    for (int32_t r = 0; r < setup->n_ranks; r++) {
        model->rank[r].links = setup->links;
        model->rank[r].place = calloc((size_t)model->n_places, sizeof *model->rank[r].place);
        failed |= model->rank[r].place == NULL;
    }
    if (failed) {
        clock_model_close(model);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the clock of %d ranks", (int)setup->n_ranks);
    }
    *out = model;
    return RUDDER_OK;
}

void clock_model_close(clock_model_t *model)
{
    if (model == NULL) {
        return;
    }
    for (int32_t r = 0; r < model->setup->n_ranks; r++) {
        free(model->rank[r].place);
    }
    free(model->in);
    free(model->out);
    free(model->arrival);
    free(model);
}

/* A link of these links becomes another; what it carries already stays booked. */
static void clock_change(links_t *links, const clock_change_t *change)
{
    link_t *link =
        change->owner < 0 ? &links->common : links_add(links, change->owner); /* room: clock_read_schedule() */
    link->bytes_per_second = change->link.bytes_per_second;
    link->latency = change->link.latency;
}

void clock_model_begin(clock_model_t *model, int64_t t)
{
    const clock_setup_t *setup = model->setup;
    model->t = t;
    for (; model->change < setup->n_changes && setup->changes[model->change].from <= t; model->change++) {
        for (int32_t r = 0; r < setup->n_ranks; r++) {
            clock_change(&model->rank[r].links, &setup->changes[model->change]);
        }
    }
    for (int32_t r = 0; r < setup->n_ranks; r++) {
        clock_rank_t *rank = &model->rank[r];
        const double released = rank->place[t % model->n_places].released;
        rank->loader = rank->loader > released ? rank->loader : released;
    }
}

double clock_model_now(const clock_model_t *model, int32_t rank)
{
    return model->rank[rank].loader;
}

void clock_model_spend(clock_model_t *model, int32_t rank, double seconds)
{
    model->rank[rank].loader += seconds;
}

/* Bytes on the links of a rank in a round: rows that come and ids that others send, ids that go and rows for others. */
static void clock_book(clock_model_t *model, int32_t rank, const int64_t *rows)
{
    const clock_setup_t *setup = model->setup;
    const int32_t owners = setup->n_owners;
    for (int32_t o = 0; o < owners; o++) {
        const int64_t asks = rows[(int64_t)rank * owners + o];
        model->in[o] = asks * setup->row_bytes;
        model->out[o] = asks * CLOCK_ID_BYTES;
    }
    for (int32_t other = 0; other < setup->n_ranks; other++) {
        const int64_t asked = other == rank ? 0 : rows[(int64_t)other * owners + setup->owner[rank]];
        model->in[setup->owner[other]] += asked * CLOCK_ID_BYTES;
        model->out[setup->owner[other]] += asked * setup->row_bytes;
    }
}

void clock_model_exchange(clock_model_t *model, const int64_t *rows, double *seconds)
{
    const clock_setup_t *setup = model->setup;
    double start = 0;
    for (int32_t r = 0; r < setup->n_ranks; r++) {
        start = model->rank[r].loader > start ? model->rank[r].loader : start;
    }
    for (int32_t r = 0; r < setup->n_ranks; r++) {
        clock_rank_t *rank = &model->rank[r];
        clock_book(model, r, rows);
        const double end = links_arrival(&rank->links, start, model->in, model->out, setup->n_owners, model->arrival);
        rank->sums.fetch += end - rank->loader;
        rank->loader = end;
        for (int32_t o = 0; o < setup->n_owners; o++) {
            const int64_t at = (int64_t)r * setup->n_owners + o;
            seconds[at] += rows[at] > 0 ? model->arrival[o] - start : 0;
        }
    }
}

void clock_model_hand_over(clock_model_t *model, int32_t rank)
{
    model->rank[rank].handed = model->rank[rank].loader;
}

void clock_model_compute(clock_model_t *model, const double *compute)
{
    const clock_setup_t *setup = model->setup;
    const double before = model->step_end;
    for (int32_t r = 0; r < setup->n_ranks; r++) {
        clock_rank_t *rank = &model->rank[r];
        clock_place_t *place = &rank->place[model->t % model->n_places];
        const double ready = setup->depth > 0 ? rank->handed : rank->loader;
        place->wait = ready > before ? ready - before : 0;
        rank->sums.wait += place->wait;
        const double end = before + place->wait + compute[r];
        model->step_end = end > model->step_end ? end : model->step_end;
    }
    for (int32_t r = 0; r < setup->n_ranks; r++) {
        clock_place_t *place = &model->rank[r].place[model->t % model->n_places];
        place->released = model->step_end;
        place->compute = model->step_end - before - place->wait;
    }
}

void clock_model_before(const clock_model_t *model, int32_t rank, double *wait, double *compute)
{
    const clock_place_t *place = &model->rank[rank].place[model->t % model->n_places];
    *wait = place->wait;
    *compute = place->compute;
}

clock_sums_t clock_model_sums(const clock_model_t *model, int32_t rank)
{
    return model->rank[rank].sums;
}

double clock_model_end(const clock_model_t *model)
{
    return model->step_end;
}

/* ---- Schedules -------------------------------------------------------------------------------------------------- */

/* "100 2 100Mbit,1ms" */
static rudder_status_t clock_read_line(char *line, const char *what, clock_change_t *change, rudder_error_t *error)
{
    int64_t owner = -1;
    char *rest = NULL, *word[4];
    for (int i = 0; i < 4; i++) {
        word[i] = strtok_r(i == 0 ? line : NULL, " \t\r\n", &rest);
    }
    if (word[2] == NULL || word[3] != NULL) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected FROM_MINIBATCH OWNER|* RATE[,LATENCY], found %s", what,
                           word[3] != NULL ? "a fourth word" : "fewer words");
    }
    if (text_int(word[0], what, 0, INT64_MAX, &change->from, error) != RUDDER_OK ||
        (strcmp(word[1], "*") != 0 && text_int(word[1], what, 0, INT32_MAX, &owner, error) != RUDDER_OK)) {
        if (error != NULL) {
            error->status = RUDDER_E_DATA; /* not the command line's fault */
        }
        return RUDDER_E_DATA;
    }
    if (link_parse(word[2], &change->link, NULL) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected RATE[,LATENCY] (1Gbit,50us) or off, found \"%s\"", what,
                           word[2]);
    }
    change->owner = (int32_t)owner;
    return RUDDER_OK;
}

static rudder_status_t clock_read_lines(lines_t *lines, links_t links, clock_change_t **changes, int64_t *n,
                                        rudder_error_t *error)
{
    int64_t size = 0;
    for (char *line;; ++*n) {
        RUDDER_TRY(lines_next(lines, &line, error));
        if (line == NULL) {
            return RUDDER_OK;
        }
        if (grow_array(changes, &size, *n + 1, sizeof **changes) != RUDDER_OK) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "%s: no memory", lines->where);
        }
        clock_change_t *change = &(*changes)[*n];
        *change = (clock_change_t){0};
        RUDDER_TRY(clock_read_line(line, lines->where, change, error));
        if (*n > 0 && change->from < change[-1].from) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected minibatch %" PRId64 " or later, found %" PRId64,
                               lines->where, change[-1].from, change->from);
        }
        if (change->owner >= 0 && links_add(&links, change->owner) == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected links of at most %d owners, found one more",
                               lines->where, LINKS_OWN);
        }
    }
}

rudder_status_t clock_read_schedule(const char *path, const links_t *links, clock_change_t **changes, int64_t *n,
                                    rudder_error_t *error)
{
    lines_t lines;
    *changes = NULL;
    *n = 0;
    RUDDER_TRY(lines_open(path, &lines, error));
    const rudder_status_t status = clock_read_lines(&lines, *links, changes, n, error);
    lines_close(&lines);
    if (status != RUDDER_OK) {
        free(*changes);
        *changes = NULL;
        *n = 0;
    }
    return status;
}
