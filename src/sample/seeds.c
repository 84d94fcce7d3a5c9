/*
 * Orders of seeds. All are made from draws by position and sorts of 64-bit words whose lower half is the position, so
 * every rank makes the same order on its own.
 */
#include "sample/seeds.h"

#include <assert.h>
#include <stdlib.h>

#include "base/rng.h"
#include "sample/draw.h"

enum {
    SEEDS_STREAMS = 64,
    SEEDS_BLUR = 32 /* one in so many seeds takes part at a time */
};

/* What draws of an epoch are for: the permutation, the place in the graph where the order begins, the streams' turns. */
enum { SEEDS_PERMUTE, SEEDS_BEGIN, SEEDS_TURNS, SEEDS_TIME };

static uint64_t seeds_key(const seeds_config_t *config, int64_t epoch, uint64_t what)
{
    return rng_key(RNG_SEEDS, config->seed, (uint64_t)epoch, 0, what);
}

static int seeds_compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void seeds_sort(uint64_t *word, int64_t n)
{
    if (n > 1) {
        qsort(word, (size_t)n, sizeof *word, seeds_compare);
    }
}

/* An int32_t as a word that sorts like it, with a position below. */
static uint64_t seeds_word(int32_t value, int64_t position)
{
    return (uint64_t)((uint32_t)value ^ 0x80000000u) << 32 | (uint32_t)position;
}

static void seeds_shuffle(uint64_t key, int64_t n, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = (int64_t)draw_below(draw_bits(key, 0, (uint64_t)i), (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* Sorts the positions in `order` by label; those with the same keep their order. */
static void seeds_group(const seeds_config_t *config, int64_t *order, uint64_t *scratch)
{
    for (int64_t i = 0; i < config->n; i++) {
        scratch[i] = seeds_word(config->label[order[i]], i);
    }
    seeds_sort(scratch, config->n);
    for (int64_t i = 0; i < config->n; i++) {
        scratch[i] = (uint64_t)order[(uint32_t)scratch[i]];
    }
    for (int64_t i = 0; i < config->n; i++) {
        order[i] = (int64_t)scratch[i];
    }
}

static void seeds_by_class(const seeds_config_t *config, int64_t epoch, int64_t *order, uint64_t *scratch)
{
    seeds_shuffle(seeds_key(config, epoch, SEEDS_PERMUTE), config->n, order);
    seeds_group(config, order, scratch);
}

/* The positions in breadth-first order, in the lower halves of scratch. */
static void seeds_by_rank(const seeds_config_t *config, uint64_t *scratch)
{
    for (int64_t i = 0; i < config->n; i++) {
        scratch[i] = seeds_word(config->rank[i], i);
    }
    seeds_sort(scratch, config->n);
}

/*
 * The breadth-first order, begun at another place each epoch, is cut into streams of equal length, and the streams take
 * turns: a minibatch is made of a few dozen neighbourhoods that move on from one minibatch to the next.
 */
static void seeds_by_community(const seeds_config_t *config, int64_t epoch, int64_t *order, uint64_t *scratch)
{
    const int64_t n = config->n;
    int64_t turn[SEEDS_STREAMS];
    seeds_by_rank(config, scratch);
    seeds_shuffle(seeds_key(config, epoch, SEEDS_TURNS), SEEDS_STREAMS, turn);
    const int64_t begin =
        n ? (int64_t)draw_below(draw_bits(seeds_key(config, epoch, SEEDS_BEGIN), 0, 0), (uint64_t)n) : 0;
    int64_t done = 0;
    for (int64_t step = 0; done < n; step++) {
        for (int32_t s = 0; s < SEEDS_STREAMS; s++) {
            const int64_t at = turn[s] * n / SEEDS_STREAMS + step;
            if (at < (turn[s] + 1) * n / SEEDS_STREAMS) {
                order[done++] = (uint32_t)scratch[(begin + at) % n];
            }
        }
    }
}

/*
 * The circle through all classes, each in breadth-first order: a node's place on it is blurred by a uniform draw, and the
 * run goes round it once. So that every seed has its uses near each other and not in the same step, the run is made of as
 * many passes as epochs, which take turns seed by seed, each a little behind the one before. Where an epoch has too few
 * steps for that, each epoch goes round.
 */
static void seeds_by_drift(const seeds_config_t *config, int64_t epoch, int64_t *order, uint64_t *scratch)
{
    const int64_t n = config->n;
    const int64_t step = config->step / config->epochs + 2, blur = n / (SEEDS_BLUR * config->epochs);
    const int64_t lag = step > blur ? step : blur; /* a step takes fewer seeds of a pass than that */
    const int64_t passes = lag <= n / config->epochs ? config->epochs : 1;
    const uint64_t key = seeds_key(config, passes == 1 ? epoch : 0, SEEDS_TIME);
    const uint32_t begin = (uint32_t)draw_bits(seeds_key(config, 0, SEEDS_BEGIN), 0, 0);
    seeds_by_rank(config, scratch);
    for (int64_t i = 0; i < n; i++) {
        order[i] = (uint32_t)scratch[i];
    }
    seeds_group(config, order, scratch);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t position = (uint32_t)order[i];
        const uint32_t place = (uint32_t)(((uint64_t)i << 32) / (uint64_t)n);
        const uint32_t time = begin + place + (uint32_t)draw_bits(key, position, 0) / SEEDS_BLUR;
        scratch[i] = (uint64_t)time << 32 | position;
    }
    seeds_sort(scratch, n);
    const int64_t first = passes == 1 ? 0 : (epoch + config->epochs) * n; /* once round and on: never negative */
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (first + i) / passes, pass = (first + i) % passes;
        order[i] = (uint32_t)scratch[(at - pass * lag) % n];
    }
}

void seeds_epoch(const seeds_config_t *config, int64_t epoch, int64_t *order, uint64_t *scratch)
{
    assert(config->n >= 0 && config->n <= UINT32_MAX);
    switch (config->order) {
    case SEEDS_SHUFFLED:
        seeds_shuffle(seeds_key(config, epoch, SEEDS_PERMUTE), config->n, order);
        break;
    case SEEDS_CLASS:
        seeds_by_class(config, epoch, order, scratch);
        break;
    case SEEDS_COMMUNITY:
        seeds_by_community(config, epoch, order, scratch);
        break;
    case SEEDS_DRIFT:
        seeds_by_drift(config, epoch, order, scratch);
        break;
    }
}
