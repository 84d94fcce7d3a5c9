/* The texts of the constant head. A change here asks for new thresholds in llama_embedded.c (rudder agent --selftest). */
#include <stdio.h>

#include "agent/prompt.h"

const prompt_example_t prompt_examples[PROMPT_EXAMPLES] = {
    {"A replacement is expected to save less than it costs. Minibatches left: some. Hit rate: low, falling. Traffic: "
     "rising. Last replacements: large gain.",
     "{\"decision\": \"no\", \"predict\": {\"hits\": \"down\", \"rows\": \"up\"}, \"explanation\": \"The hit rate "
     "falls, "
     "but a replacement costs more than it saves.\"}"},
    {"A replacement is expected to save more than it costs. Minibatches left: few. Hit rate: high, rising. Traffic: "
     "falling. Last replacements: harm.",
     "{\"decision\": \"yes\", \"predict\": {\"hits\": \"up\", \"rows\": \"same\"}, \"explanation\": \"The buffer does "
     "well, and replacing still pays.\"}"},
    {"A replacement is expected to save about as much as it costs. Minibatches left: some. Hit rate: medium, steady. "
     "Traffic: steady. Last replacements: small gain.",
     "{\"decision\": \"no\", \"predict\": {\"hits\": \"same\", \"rows\": \"same\"}, \"explanation\": \"Nothing is won "
     "and the hit rate does not fall.\"}"},
};

const char prompt_system[] =
    "You steer a buffer of remote feature rows in distributed GNN training. A replacement fetches hot rows for stale "
    "ones. "
    "Decide whether to replace now.\n"
    "Rule: yes if a replacement is expected to save more or much more than it costs; no if it is expected to save less "
    "or "
    "much less. The other facts never overrule this comparison. Only if it saves about as much as it costs: yes if the "
    "hit rate is falling, else no.\n"
    "Answer in JSON: decision yes or no; predict up, same or down for the hit rate (hits) and the fetched rows (rows) "
    "that "
    "follow; explanation in at most ten words.";

int prompt_facts(const char *facts, char *text, size_t text_size)
{
    return snprintf(text, text_size, facts[0] != '\0' ? "The run: %s.\n" : "%s", facts);
}
