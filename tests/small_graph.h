/* Small graphs for tests: built from edge lists, written as graph directories, in a folder of their own. */
#ifndef TESTS_SMALL_GRAPH_H
#define TESTS_SMALL_GRAPH_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/npy.h"
#include "base/rng.h"
#include "graph/csr.h"
#include "graph/graph.h"
#include "graph/write.h"

enum { SMALL_FEAT = 3, SMALL_CLASSES = 5 };

static char small_folder[64];

static inline int small_make_folder(void **state)
{
    (void)state;
    strcpy(small_folder, "/tmp/rudder-test-XXXXXX");
    return mkdtemp(small_folder) == NULL;
}

static inline int small_remove_folder(void **state)
{
    (void)state;
    char command[400];
    snprintf(command, sizeof command, "rm -r '%s'", small_folder);
    return system(command);
}

/* A path in the test's folder; four may be in use at once. */
static inline const char *small_path(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", small_folder, name);
    return path;
}

static inline const char *small_env(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value != NULL ? value : fallback;
}

/* Any number that is a function of a few others. */
static inline uint64_t small_random(uint64_t a, uint64_t b)
{
    return rng_mix(rng_mix(a) ^ b);
}

/*
 * Writes a graph of n nodes whose rows are destinations: pair i says that from[i] is an in-neighbour of to[i]; the order of
 * neighbours is that of the pairs. Features tell the node, labels are v mod 5, about train_of 5 nodes in 5 are for training,
 * at least node 0. Returns 0.
 */
static inline int small_write(const char *directory, int64_t n, int64_t m, const int64_t *from, const int64_t *to,
                              int train_of_5)
{
    csr_t csr;
    json_t json;
    rudder_error_t error;
    char path[600];
    int32_t *label = calloc((size_t)n, sizeof *label);
    uint8_t *split = calloc((size_t)n, 1);
    float *feat = calloc((size_t)n * SMALL_FEAT, sizeof *feat);
    mkdir(directory, 0777);
    int bad =
        label == NULL || split == NULL || feat == NULL || csr_from_pairs(n, m, to, from, &csr, &error) != RUDDER_OK;
    for (int64_t v = 0; !bad && v < n; v++) {
        label[v] = (int32_t)(v % SMALL_CLASSES);
        split[v] = v == 0 || small_random(7, (uint64_t)v) % 5 < (uint64_t)train_of_5 ? SPLIT_TRAIN
                   : v % 2 != 0                                                      ? SPLIT_VALID
                                                                                     : SPLIT_TEST;
        for (int64_t i = 0; i < SMALL_FEAT; i++) {
            feat[v * SMALL_FEAT + i] = (float)(v * SMALL_FEAT + i);
        }
    }
    snprintf(path, sizeof path, "%s/feat.npy", directory);
    bad = bad || write_structure(directory, &csr, &error) != RUDDER_OK ||
          write_label(directory, label, n, &error) != RUDDER_OK ||
          write_split(directory, split, n, &error) != RUDDER_OK ||
          npy_write(path, "<f4", 2, (const int64_t[]){n, SMALL_FEAT}, feat, &error) != RUDDER_OK;
    if (!bad) {
        write_json_begin(&(write_facts_t){"small", n, m, SMALL_FEAT, SMALL_CLASSES}, &json);
        bad = write_json_end(directory, &json, &error) != RUDDER_OK;
        csr_free(&csr);
    }
    free(label);
    free(split);
    free(feat);
    return bad;
}

#endif
