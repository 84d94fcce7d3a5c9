/* A context in words: what the sentences must say, whatever the numbers, and how long they may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "agent/llama.h"
#include "agent/models.h"
#include "agent/situations.h"
#include "rudder/decider.h"

enum { WORDS = 512, MOST_TOKENS = 60 };

static const char *words_of(const rudder_context_t *context)
{
    static char text[WORDS];
    const int length = rudder_context_words(context, text, sizeof text);
    assert_int_equal(length, strlen(text));
    return text;
}

static rudder_context_t context_of(double saving, double cost)
{
    rudder_context_t context = {.size = sizeof context, .minibatch = 100, .minibatches_left = 100, .hit_rate = .5};
    context.saving_rows = saving;
    context.cost_rows = cost;
    return context;
}

/* The comparison against its definition, over twelve orders of magnitude. */
static void test_comparison(void **state)
{
    static const struct {
        double ratio;
        const char *word;
    } bands[] = {
        {0, " much less than "},    {.01, " much less than "},    {.5, " much less than "},
        {.51, " save less than "},  {.9, " save less than "},     {.92, " about as much as "},
        {1, " about as much as "},  {1.09, " about as much as "}, {1.11, " save more than "},
        {1.99, " save more than "}, {2.01, " much more than "},   {1e6, " much more than "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bands / sizeof bands[0]; i++) {
        for (double cost = 1; cost < 1e12; cost *= 10) {
            const rudder_context_t context = context_of(bands[i].ratio * cost, cost);
            assert_non_null(strstr(words_of(&context), bands[i].word));
        }
    }
}

static void test_edges(void **state)
{
    static const double odd[] = {0, -1, 1, 1e300, -1e300, INFINITY, -INFINITY, NAN};
    (void)state;
    /* What is free to make and saves something is much more; nothing to save is much less, even for free. */
    rudder_context_t context = context_of(10, 0);
    assert_non_null(strstr(words_of(&context), "much more than"));
    context = context_of(0, 0);
    assert_non_null(strstr(words_of(&context), "much less than"));
    context = context_of(-5, 3);
    assert_non_null(strstr(words_of(&context), "much less than"));
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        for (size_t j = 0; j < sizeof odd / sizeof odd[0]; j++) {
            context = context_of(odd[i], odd[j]);
            context.hit_rate = odd[j];
            context.hit_rate_trend = context.fetched_trend = odd[i];
            context.n_history = RUDDER_HISTORY;
            context.history[0] = (rudder_outcome_t){.status = RUDDER_REPLACED, .known = 1, .hit_rate_change = odd[i]};
            assert_in_range(strlen(words_of(&context)), 60, 250);
        }
    }
}

static void test_minibatches_left(void **state)
{
    static const struct {
        int64_t done, left;
        const char *words;
    } cases[] = {
        {100, 0, "left: very few"}, {960, 40, "left: very few"},
        {900, 100, "left: few"},    {600, 400, "left: some"},
        {500, 500, "left: many"},   {0, 1, "left: many"},
        {0, 0, "left: very few"},   {INT64_MAX / 2, INT64_MAX / 2, "left: many"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rudder_context_t context = context_of(1, 1);
        context.minibatch = cases[i].done;
        context.minibatches_left = cases[i].left;
        assert_non_null(strstr(words_of(&context), cases[i].words));
    }
    rudder_context_t unknown = context_of(1, 1);
    unknown.minibatches_left = -1;
    assert_null(strstr(words_of(&unknown), "left"));
}

static void test_history(void **state)
{
    (void)state;
    rudder_context_t context = context_of(1, 1);
    assert_non_null(strstr(words_of(&context), "replacements: none"));
    context.n_history = 1;
    context.history[0].status = RUDDER_KEPT;
    context.history[0].known = 1;
    context.history[0].hit_rate_change = .3; /* of a buffer that was kept: not a replacement's doing */
    assert_non_null(strstr(words_of(&context), "replacements: none"));
    context.history[0].status = RUDDER_REPLACED;
    assert_non_null(strstr(words_of(&context), "large gain"));
    context.history[0].hit_rate_change = .02;
    assert_non_null(strstr(words_of(&context), "small gain"));
    context.history[0].hit_rate_change = -.001;
    assert_non_null(strstr(words_of(&context), "no gain"));
    context.history[0].hit_rate_change = -.1;
    assert_non_null(strstr(words_of(&context), "harm"));
    context.history[0].known = 0;
    assert_non_null(strstr(words_of(&context), "unknown effect"));
}

/* As snprintf: the length that would be needed, never a byte too many. */
static void test_small_buffers(void **state)
{
    const rudder_context_t context = context_of(3, 1);
    char whole[WORDS], cut[WORDS];
    (void)state;
    const int length = rudder_context_words(&context, whole, sizeof whole);
    assert_int_equal(rudder_context_words(&context, NULL, 0), length);
    for (size_t size = 1; size <= (size_t)length + 2; size++) {
        memset(cut, '#', sizeof cut);
        assert_int_equal(rudder_context_words(&context, cut, size), length);
        const size_t kept = size - 1 < (size_t)length ? size - 1 : (size_t)length;
        assert_memory_equal(cut, whole, kept);
        assert_int_equal(cut[kept], '\0');
        assert_int_equal(cut[size], '#');
    }
}

/* No situation gets a tail above the limit, counted by the default model's own tokenizer. */
static void test_tokens(void **state)
{
    char path[4096];
    situation_t *situations;
    int32_t n, most = 0;
    void *self = NULL;
    rudder_error_t error;
    (void)state;
    if (models_path("default", path, sizeof path, &error) != RUDDER_OK) {
        print_message("not run: tokens of a tail (the default model is not in the cache)\n");
        return;
    }
    const backend_config_t config = {path, "", RUDDER_ANSWER_SCORE, 0};
    const rudder_status_t status = llama_backend.open(&config, &self, &error);
    if (status == RUDDER_E_UNSUPPORTED) {
        print_message("not run: tokens of a tail (built without llama.cpp)\n");
        return;
    }
    assert_int_equal(status, RUDDER_OK);
    assert_int_equal(situations_read(NULL, &situations, &n, &error), RUDDER_OK);
    assert_true(n >= 100);
    for (int32_t i = 0; i < n; i++) {
        const char *words = words_of(&situations[i].context);
        const int32_t tokens = llama_backend.tokens(self, words, (int32_t)strlen(words));
        most = tokens > most ? tokens : most;
        assert_in_range(tokens, 20, MOST_TOKENS);
    }
    print_message("tail: at most %d tokens in %d situations\n", (int)most, (int)n);
    free(situations);
    llama_backend.close(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comparison),       cmocka_unit_test(test_edges),
        cmocka_unit_test(test_minibatches_left), cmocka_unit_test(test_history),
        cmocka_unit_test(test_small_buffers),    cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
