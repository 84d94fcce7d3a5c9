/*
 * A context in words. Small language models compare words faultlessly and numbers hardly at all, so the arithmetic is done
 * here: what a replacement saves against what it costs, how far the run is, where the hit rate stands and moves. Every
 * word costs the agent time; the sentences are short for that reason.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "rudder/decider.h"

typedef struct words {
    char *text;
    size_t size;
    int length;
} words_t;

__attribute__((format(printf, 2, 3))) static void words_add(words_t *words, const char *format, ...)
{
    va_list arguments;
    const size_t used = (size_t)words->length < words->size ? (size_t)words->length : words->size;
    va_start(arguments, format);
    const int n = vsnprintf(words->size > 0 ? words->text + used : NULL, words->size - used, format, arguments);
    va_end(arguments);
    if (n > 0) {
        words->length += n;
    }
}

/* "About as much" is within 10 %, "much" means twice. Nothing to save is always much less; what is free, much more. */
static const char *words_comparison(double saving, double cost)
{
    if (!(saving > 0)) {
        return "much less than";
    }
    const double ratio = saving / fmax(cost, 1e-9);
    if (ratio >= 2) {
        return "much more than";
    }
    if (ratio > 1.1) {
        return "more than";
    }
    if (ratio >= 1 / 1.1) {
        return "about as much as";
    }
    return ratio > .5 ? "less than" : "much less than";
}

static const char *words_share(int64_t done, int64_t left)
{
    const double share = (double)left / fmax((double)done + (double)left, 1);
    return share < .05 ? "very few" : share < .2 ? "few" : share < .5 ? "some" : "many";
}

static const char *words_level(double rate)
{
    return rate < .25 ? "very low" : rate < .5 ? "low" : rate < .75 ? "medium" : rate < .9 ? "high" : "very high";
}

static const char *words_trend(double change, double step, const char *up, const char *down)
{
    return change > step ? up : change < -step ? down : "steady";
}

/* What replacements brought: the mean change of the hit rate over those whose effect is known. */
static const char *words_brought(const rudder_context_t *context)
{
    double sum = 0;
    int32_t n = 0, replaced = 0;
    for (int32_t i = 0; i < context->n_history && i < RUDDER_HISTORY; i++) {
        const rudder_outcome_t *outcome = &context->history[i];
        if (outcome->status == RUDDER_REPLACED) {
            replaced++;
            if (outcome->known) {
                sum += outcome->hit_rate_change;
                n++;
            }
        }
    }
    if (n == 0) {
        return replaced > 0 ? "unknown effect" : "none";
    }
    const double mean = sum / n;
    return mean >= .05 ? "large gain" : mean >= .01 ? "small gain" : mean > -.01 ? "no gain" : "harm";
}

int rudder_context_words(const rudder_context_t *context, char *text, size_t text_size)
{
    words_t words = {text, text_size, 0};
    if (text_size > 0) {
        text[0] = '\0';
    }
    words_add(&words, "A replacement is expected to save %s it costs.",
              words_comparison(context->saving_rows, context->cost_rows));
    if (context->minibatches_left >= 0) {
        words_add(&words, " Minibatches left: %s.", words_share(context->minibatch, context->minibatches_left));
    }
    words_add(&words, " Hit rate: %s, %s.", words_level(context->hit_rate),
              words_trend(context->hit_rate_trend, .015, "rising", "falling"));
    words_add(&words, " Traffic: %s.", words_trend(context->fetched_trend, .05, "rising", "falling"));
    words_add(&words, " Last replacements: %s.", words_brought(context));
    return words.length;
}
