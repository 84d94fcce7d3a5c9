/* Any bytes as an answer: nothing is read outside of them, and what comes out is always a valid answer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rudder_answer_t answer;
    memset(&answer, 0x5A, sizeof answer);
    answer_parse((const char *)data, size, &answer);
    if (answer.verdict != RUDDER_KEEP && answer.verdict != RUDDER_REPLACE && answer.verdict != RUDDER_NO_VERDICT) {
        abort();
    }
    if (memchr(answer.explanation, '\0', sizeof answer.explanation) == NULL || answer.predict_hits < RUDDER_DOWN ||
        answer.predict_hits > RUDDER_NO_PREDICTION || answer.predict_rows < RUDDER_DOWN ||
        answer.predict_rows > RUDDER_NO_PREDICTION) {
        abort();
    }
    /* A verdict needs the word in the text, as it is or with an escape in it. */
    if (answer.verdict != RUDDER_NO_VERDICT && memchr(data, '{', size) == NULL) {
        abort();
    }
    return 0;
}
