/* `once`: one replacement after the first window, then never again (prefetching that does not change). */
#include "decide/deciders.h"

typedef struct once {
    int done;
} once_t;

static rudder_status_t once_decide(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    once_t *once = self;
    (void)context;
    answer->verdict = once->done ? RUDDER_KEEP : RUDDER_REPLACE;
    once->done = 1;
    return RUDDER_OK;
}

size_t once_memory(void)
{
    return sizeof(once_t);
}

rudder_status_t once_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error)
{
    (void)error;
    decider->flags = RUDDER_DECIDER_INLINE;
    decider->self = request->memory;
    decider->decide = once_decide;
    return RUDDER_OK;
}
