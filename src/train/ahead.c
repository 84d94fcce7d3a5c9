/*
 * The queue of sampled minibatches. What a minibatch holds is swapped in and out of the queue, never copied; entries that
 * are not in use are kept, so a steady state allocates nothing, and count as memory held.
 */
#include "train/ahead.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "train/lap.h"

typedef struct ahead_entry {
    sampled_t sampled;
    struct ahead_entry *next;
} ahead_entry_t;

struct ahead {
    ahead_config_t config;
    int64_t steps_per_epoch;
    int64_t sampled, announced, taken; /* minibatches so far; announced: at least those taken */
    ahead_entry_t *oldest, *newest;    /* sampled and not taken */
    ahead_entry_t *spare;              /* not in use */
    ahead_entry_t *unannounced;        /* the oldest entry that is not announced */
    int64_t held, most_held, largest;  /* bytes: of all entries, the most ever, of the largest minibatch */
    int64_t *order;
    uint64_t *scratch;
    int64_t *seeds;
};

static int64_t sampled_bytes(const sampled_t *sampled)
{
    const minibatch_t *m = &sampled->minibatch;
    int64_t bytes = m->input_capacity * (int64_t)sizeof *m->input + m->label_capacity * (int64_t)sizeof *m->label +
                    sampled->remote_capacity * (int64_t)sizeof *sampled->remote;
    for (int32_t l = 0; l < m->n_layers; l++) {
        bytes += m->capacity[l][0] * (int64_t)sizeof *m->block[l].indptr +
                 m->capacity[l][1] * (int64_t)sizeof *m->block[l].index +
                 m->capacity[l][2] * (int64_t)sizeof *m->block[l].dst_orig;
    }
    return bytes;
}

void sampled_free(sampled_t *sampled)
{
    minibatch_free(&sampled->minibatch);
    free(sampled->remote);
    *sampled = (sampled_t){0};
}

rudder_status_t ahead_open(const ahead_config_t *config, ahead_t **out, rudder_error_t *error)
{
    const int64_t n_train = config->parts->n_train;
    ahead_t *ahead = calloc(1, sizeof *ahead);
    if (ahead != NULL) {
        ahead->config = *config;
        ahead->steps_per_epoch = (n_train + config->seeds.step - 1) / config->seeds.step;
        ahead->order = malloc((size_t)n_train * sizeof *ahead->order);
        ahead->scratch = malloc((size_t)n_train * sizeof *ahead->scratch);
        ahead->seeds = malloc((size_t)n_train * sizeof *ahead->seeds);
    }
    if (ahead == NULL || ahead->order == NULL || ahead->scratch == NULL || ahead->seeds == NULL) {
        ahead_close(ahead);
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the order of %lld training nodes",
                           (long long)n_train);
    }
    *out = ahead;
    return RUDDER_OK;
}

static void ahead_free_entries(ahead_entry_t *entry)
{
    while (entry != NULL) {
        ahead_entry_t *next = entry->next;
        sampled_free(&entry->sampled);
        free(entry);
        entry = next;
    }
}

void ahead_close(ahead_t *ahead)
{
    if (ahead == NULL) {
        return;
    }
    ahead_free_entries(ahead->oldest);
    ahead_free_entries(ahead->spare);
    free(ahead->order);
    free(ahead->scratch);
    free(ahead->seeds);
    free(ahead);
}

int64_t ahead_most_bytes(const ahead_t *ahead)
{
    return ahead->most_held;
}

/* ---- one minibatch ---- */

/* This rank's seeds of a step, the number of labelled seeds of all ranks, and how many seeds there are in all. */
static int64_t ahead_seeds(ahead_t *ahead, int64_t step, int64_t *labelled, int64_t *all)
{
    const parts_t *parts = ahead->config.parts;
    const part_t *part = ahead->config.part;
    const int64_t begin = step * ahead->config.seeds.step;
    const int64_t most = begin + ahead->config.seeds.step;
    const int64_t end = most < parts->n_train ? most : parts->n_train;
    int64_t n = 0;
    *labelled = 0;
    for (int64_t i = begin; i < end; i++) {
        const int64_t id = parts->train_id[ahead->order[i]];
        *labelled += parts->train_label[ahead->order[i]] != -1;
        if (part_owns(part, id)) {
            ahead->seeds[n++] = id;
        }
    }
    *all = end - begin;
    return n;
}

/* Lists the minibatch's remote ids. */
static rudder_status_t ahead_list_remote(const part_t *part, sampled_t *sampled, rudder_error_t *error)
{
    const minibatch_t *minibatch = &sampled->minibatch;
    const int64_t *input = minibatch->input;
    int64_t n = 0;
    for (int64_t i = 0; i < minibatch->n_input; i++) {
        n += !part_owns(part, input[i]);
    }
    if (grow_array(&sampled->remote, &sampled->remote_capacity, n, sizeof *sampled->remote) != RUDDER_OK) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the list of %lld remote nodes", (long long)n);
    }
    n = 0;
    for (int64_t i = 0; i < minibatch->n_input; i++) {
        if (!part_owns(part, input[i])) {
            sampled->remote[n++] = input[i];
        }
    }
    sampled->n_remote = n;
    return RUDDER_OK;
}

/* Samples the next minibatch of the run. Collective. */
static rudder_status_t ahead_sample(ahead_t *ahead, sampled_t *sampled, rudder_error_t *error)
{
    const double begin = clock_seconds();
    const int64_t number = ahead->sampled * ahead->config.stride;
    const int64_t epoch = ahead->config.first_epoch + number / ahead->steps_per_epoch;
    const int64_t step = number % ahead->steps_per_epoch;
    if (step == 0) {
        seeds_epoch(&ahead->config.seeds, epoch, ahead->order, ahead->scratch);
    }
    int64_t all;
    const int64_t n = ahead_seeds(ahead, step, &sampled->labelled, &all);
    RUDDER_TRY(
        sampler_sample(ahead->config.sampler, epoch, ahead->sampled, ahead->seeds, n, &sampled->minibatch, error));
    sampled->minibatch.n_seeds_total = all;
    RUDDER_TRY(ahead_list_remote(ahead->config.part, sampled, error));
    sampled->seconds = clock_seconds() - begin;
    ahead->sampled++;
    return RUDDER_OK;
}

/* ---- the queue ---- */

static rudder_status_t ahead_add(ahead_t *ahead, rudder_error_t *error)
{
    ahead_entry_t *entry = ahead->spare;
    if (entry != NULL) {
        ahead->spare = entry->next;
    } else if ((entry = calloc(1, sizeof *entry)) == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for one more minibatch");
    }
    entry->next = NULL;
    *(ahead->oldest == NULL ? &ahead->oldest : &ahead->newest->next) = entry;
    ahead->newest = entry;
    if (ahead->unannounced == NULL) {
        ahead->unannounced = entry;
    }
    const int64_t before = sampled_bytes(&entry->sampled);
    const rudder_status_t status = ahead_sample(ahead, &entry->sampled, error);
    const int64_t bytes = sampled_bytes(&entry->sampled);
    ahead->held += bytes - before;
    ahead->most_held = ahead->held > ahead->most_held ? ahead->held : ahead->most_held;
    ahead->largest = bytes > ahead->largest ? bytes : ahead->largest;
    return status;
}

/* Announces what the library has room for. */
static rudder_status_t ahead_announce(ahead_t *ahead, rudder_error_t *error)
{
    while (ahead->unannounced != NULL) {
        const sampled_t *sampled = &ahead->unannounced->sampled;
        const rudder_status_t status =
            rudder_announce(ahead->config.handle, ahead->announced, 0, sampled->remote, sampled->n_remote, error);
        if (status != RUDDER_OK) {
            return status == RUDDER_E_AGAIN ? RUDDER_OK : status;
        }
        ahead->announced++;
        ahead->unannounced = ahead->unannounced->next;
    }
    return RUDDER_OK;
}

static void ahead_give_up(ahead_t *ahead, ahead_entry_t **spare)
{
    ahead_entry_t *entry = *spare;
    *spare = entry->next;
    entry->next = NULL;
    ahead->held -= sampled_bytes(&entry->sampled);
    ahead_free_entries(entry);
}

/* Whether one minibatch more may be held. Entries grow: spare ones that are not needed for it are given up to make room. */
static int ahead_has_room(ahead_t *ahead)
{
    const int64_t memory = ahead->config.memory;
    const int64_t kept = ahead->spare != NULL ? sampled_bytes(&ahead->spare->sampled) : 0;
    const int64_t more = ahead->largest > kept ? ahead->largest - kept : 0;
    while (ahead->spare != NULL && ahead->spare->next != NULL && ahead->held + more > memory) {
        ahead_give_up(ahead, &ahead->spare->next);
    }
    const int room = ahead->held + more <= memory;
    if (ahead->spare != NULL && ahead->held > memory) {
        ahead_give_up(ahead, &ahead->spare);
    }
    return room;
}

/* Whether all ranks sample one more. Collective. */
static rudder_status_t ahead_agree(ahead_t *ahead, int *more, int *cut, rudder_error_t *error)
{
    const int full = ahead->unannounced != NULL || !ahead_has_room(ahead);
    int64_t say[] = {rudder_announce_wanted(ahead->config.handle, 0), full};
    RUDDER_TRY(comm_max_i64(ahead->config.comm, say, 2, error));
    *more = say[0] && !say[1];
    *cut = say[0] && say[1];
    return RUDDER_OK;
}

/* At least the minibatch whose turn it is, and as many more as are wanted. Collective. */
static rudder_status_t ahead_fill(ahead_t *ahead, int *cut, double *mark, train_times_t *times, rudder_error_t *error)
{
    int more = ahead->oldest == NULL;
    *cut = 0;
    for (;;) {
        if (more) {
            RUDDER_TRY(ahead_add(ahead, error));
            lap(mark, &times->sample);
        }
        if (!ahead->config.looks) {
            return RUDDER_OK;
        }
        RUDDER_TRY(ahead_announce(ahead, error));
        lap(mark, &times->plan);
        if (ahead->sampled == ahead->config.minibatches) {
            return RUDDER_OK;
        }
        RUDDER_TRY(ahead_agree(ahead, &more, cut, error));
        lap(mark, &times->sample);
        if (!more) {
            return RUDDER_OK;
        }
    }
}

rudder_status_t ahead_next(ahead_t *ahead, sampled_t *sampled, double *mark, train_times_t *times,
                           rudder_error_t *error)
{
    int cut;
    RUDDER_TRY(ahead_fill(ahead, &cut, mark, times, error));
    ahead_entry_t *entry = ahead->oldest;
    const sampled_t other = *sampled;
    ahead->held += sampled_bytes(&other) - sampled_bytes(&entry->sampled);
    *sampled = entry->sampled;
    entry->sampled = other;
    ahead->oldest = entry->next;
    if (ahead->unannounced == entry) {
        ahead->unannounced = entry->next;
    }
    entry->next = ahead->spare;
    ahead->spare = entry;
    ahead->taken++;
    ahead->announced = ahead->announced > ahead->taken ? ahead->announced : ahead->taken;
    sampled->window = ahead->announced - ahead->taken;
    sampled->cut = cut;
    return RUDDER_OK;
}
