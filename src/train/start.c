/* Weights for the start content. */
#include "train/start.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/lines.h"
#include "base/text.h"
#include "sample/vip.h"

enum { START_SAMPLES = 256 }; /* most minibatches that "presample" samples */
static const char start_file_prefix[] = "file:";

static int start_is_file(const char *start)
{
    return strncmp(start, start_file_prefix, sizeof start_file_prefix - 1) == 0;
}

int start_has_weights(const char *start)
{
    return start != NULL && (strcmp(start, "presample") == 0 || strcmp(start, "vip") == 0 || start_is_file(start));
}

rudder_status_t start_check(const char *start, rudder_error_t *error)
{
    static const char *const names[] = {"empty", "degree", "random", "presample", "vip"};
    enum { NAMES = sizeof names / sizeof *names };
    for (int i = 0; i < NAMES; i++) {
        if (strcmp(start, names[i]) == 0) {
            return RUDDER_OK;
        }
    }
    const char *nearest = text_nearest(start, names, NAMES);
    return start_is_file(start)
               ? RUDDER_OK
               : RUDDER_FAIL(error, RUDDER_E_USAGE,
                             "--start: expected empty, degree, random, presample, vip or file:PATH, found "
                             "\"%s\"%s%s%s",
                             start, nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                             nearest != NULL ? "\"?" : "");
}

/* ---- presample ---- */

/* Counts uses in minibatches of an epoch before the first, spread evenly over it. */
static rudder_status_t start_presample(const start_config_t *config, double *weight, rudder_error_t *error)
{
    const part_t *part = config->ahead.part;
    ahead_config_t sampling = config->ahead;
    const int64_t steps = (config->ahead.parts->n_train + sampling.seeds.step - 1) / sampling.seeds.step;
    sampling.looks = 0;
    sampling.first_epoch = -1;
    sampling.stride = (steps + START_SAMPLES - 1) / START_SAMPLES;
    sampling.minibatches = (steps + sampling.stride - 1) / sampling.stride;
    ahead_t *ahead = NULL;
    sampled_t sampled = {0};
    train_times_t times = {0};
    double mark = clock_seconds();
    rudder_status_t status = ahead_open(&sampling, &ahead, error);
    for (int64_t i = 0; i < sampling.minibatches && status == RUDDER_OK; i++) {
        status = ahead_next(ahead, &sampled, &mark, &times, error);
        for (int64_t r = 0; r < sampled.n_remote && status == RUDDER_OK; r++) {
            const int64_t place = part_halo_find(part, sampled.remote[r]);
            if (place >= 0) {
                weight[place]++;
            }
        }
    }
    sampled_free(&sampled);
    ahead_close(ahead);
    return status;
}

/* ---- file ---- */

/* A halo node by the id that it has in the graph directory. */
typedef struct start_node {
    int64_t original, place;
} start_node_t;

static int start_compare(const void *a, const void *b)
{
    const int64_t x = ((const start_node_t *)a)->original, y = ((const start_node_t *)b)->original;
    return (x > y) - (x < y);
}

static void start_serve_original(void *context, const int64_t *ids, int64_t n, void *rows)
{
    const part_t *part = context;
    int64_t *original = rows;
    for (int64_t i = 0; i < n; i++) {
        original[i] = part->orig_id[ids[i] - part->begin];
    }
}

/* "id" or "id weight" */
static int start_read_line(const char *line, int64_t *id, double *weight)
{
    char *end;
    *weight = 1;
    errno = 0;
    *id = strtoll(line, &end, 10);
    if (end == line || errno != 0) {
        return 0;
    }
    const size_t gap = strspn(end, " \t");
    line = end + gap;
    if (*line == '\0') {
        return 1;
    }
    *weight = strtod(line, &end);
    return gap > 0 && end > line && *end == '\0' && isfinite(*weight) && *weight >= 0;
}

static rudder_status_t start_read_lines(const start_config_t *config, lines_t *lines, const start_node_t *node,
                                        double *weight, rudder_error_t *error)
{
    const int64_t n_nodes = config->ahead.parts->n_nodes, n_halo = config->ahead.part->n_halo;
    for (char *line;;) {
        int64_t id;
        double heavy;
        RUDDER_TRY(lines_next(lines, &line, error));
        if (line == NULL) {
            return RUDDER_OK;
        }
        if (!start_read_line(line, &id, &heavy) || id < 0 || id >= n_nodes) {
            return RUDDER_FAIL(error, RUDDER_E_DATA,
                               "%s: expected an id from 0 to %lld and, if any, a weight of 0 or more, found \"%.60s\"",
                               lines->where, (long long)n_nodes - 1, line);
        }
        const start_node_t key = {.original = id};
        const start_node_t *found = n_halo > 0 ? bsearch(&key, node, (size_t)n_halo, sizeof key, start_compare) : NULL;
        if (found != NULL) {
            weight[found->place] = heavy;
        }
    }
}

static rudder_status_t start_read_file(const start_config_t *config, const start_node_t *node, double *weight,
                                       rudder_error_t *error)
{
    lines_t lines;
    RUDDER_TRY(lines_open(config->start + sizeof start_file_prefix - 1, &lines, error));
    const rudder_status_t status = start_read_lines(config, &lines, node, weight, error);
    lines_close(&lines);
    return status;
}

/* The file speaks of ids in the graph directory, so that it fits any partition; their owners know them. Collective. */
static rudder_status_t start_from_file(const start_config_t *config, double *weight, int *agreed, rudder_error_t *error)
{
    const part_t *part = config->ahead.part;
    int64_t *original = malloc((size_t)(part->n_halo + 1) * sizeof *original);
    start_node_t *node = malloc((size_t)(part->n_halo + 1) * sizeof *node);
    rudder_status_t status = original != NULL && node != NULL
                                 ? RUDDER_OK
                                 : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the original ids of %lld nodes",
                                               (long long)part->n_halo);
    status = comm_agree(config->ahead.comm, status, error);
    if (status == RUDDER_OK) {
        *agreed = 0;
        status = exchange_rows(config->exchange, part->halo, part->n_halo, sizeof *original, start_serve_original,
                               (void *)part, original, error);
        *agreed = status == RUDDER_OK;
    }
    if (status == RUDDER_OK) {
        for (int64_t i = 0; i < part->n_halo; i++) {
            node[i] = (start_node_t){original[i], i};
        }
        qsort(node, (size_t)part->n_halo, sizeof *node, start_compare);
        status = comm_agree(config->ahead.comm, start_read_file(config, node, weight, error), error);
    }
    if (*agreed) {
        free(original); /* or messages may still be under way */
        free(node);
    }
    return status;
}

rudder_status_t start_weights(const start_config_t *config, double *weight, int *agreed, rudder_error_t *error)
{
    rudder_status_t status;
    *agreed = 1;
    memset(weight, 0, (size_t)config->ahead.part->n_halo * sizeof *weight);
    exchange_emulate(config->exchange, 0);
    if (start_is_file(config->start)) {
        status = start_from_file(config, weight, agreed, error);
    } else if (strcmp(config->start, "vip") == 0) {
        const vip_config_t vip = {.parts = config->ahead.parts,
                                  .part = config->ahead.part,
                                  .comm = config->ahead.comm,
                                  .n_layers = config->n_layers,
                                  .fanout = config->fanout,
                                  .seeds_per_step = config->ahead.seeds.step};
        status = vip_halo(&vip, weight, error);
        *agreed = status != RUDDER_E_PEER;
    } else {
        status = start_presample(config, weight, error);
        *agreed = status == RUDDER_OK;
    }
    exchange_emulate(config->exchange, 1);
    return status;
}
