/* The texts of the constant head. A change here asks for new thresholds in llama_embedded.c (rudder agent --selftest). */
#include <stdio.h>

#include "agent/prompt.h"

const prompt_example_t prompt_examples[PROMPT_EXAMPLES] = {
    {"A replacement is expected to save much more than it costs. Minibatches left: many. Hit rate: low, falling. "
     "Traffic: rising. Last replacements: large gain.",
     "{\"decision\": \"yes\", \"predict\": {\"hits\": \"up\", \"rows\": \"down\"}, \"explanation\": \"It saves much more "
     "than it costs.\"}"},
    {"A replacement is expected to save less than it costs. Minibatches left: some. Hit rate: low, falling. Traffic: "
     "rising. Last replacements: small gain.",
     "{\"decision\": \"no\", \"predict\": {\"hits\": \"down\", \"rows\": \"up\"}, \"explanation\": \"The hit rate falls, "
     "but a replacement costs more than it saves.\"}"},
    {"A replacement is expected to save more than it costs. Minibatches left: few. Hit rate: very high, steady. "
     "Traffic: steady. Last replacements: no gain.",
     "{\"decision\": \"yes\", \"predict\": {\"hits\": \"up\", \"rows\": \"same\"}, \"explanation\": \"The buffer does "
     "well, and replacing still pays.\"}"},
    {"A replacement is expected to save much less than it costs. Minibatches left: very few. Hit rate: high, steady. "
     "Traffic: steady. Last replacements: none.",
     "{\"decision\": \"no\", \"predict\": {\"hits\": \"same\", \"rows\": \"same\"}, \"explanation\": \"Too little is left "
     "to earn the cost.\"}"},
};

int prompt_system(const char *facts, char *text, size_t text_size)
{
    return snprintf(
        text, text_size,
        "You steer a buffer of remote feature rows while a graph neural network is trained on several machines. A "
        "replacement throws stale rows out and fetches hot ones: it costs rows now and saves rows in every minibatch "
        "that is left. Decide whether to replace now.\n"
        "Rule: answer yes if a replacement is expected to save more or much more than it costs. Answer no if it is "
        "expected to save less or much less than it costs. Hit rate, traffic, minibatches left and last replacements "
        "are counted in already: they never overrule the comparison. Only when it saves about as much as it costs, "
        "answer yes if the hit rate is falling, else no.\n"
        "Answer in JSON: {\"decision\": \"yes\" or \"no\", \"predict\": {\"hits\": \"up\", \"same\" or \"down\", "
        "\"rows\": \"up\", \"same\" or \"down\"}, \"explanation\": at most ten words}. \"hits\" is how the hit rate will "
        "move, \"rows\" how the number of fetched rows will.%s%s",
        facts[0] != '\0' ? "\nThe run: " : "", facts);
}
