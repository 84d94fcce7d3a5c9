/* `fixed:N`: a replacement every N minibatches. */
#include "decide/deciders.h"

static rudder_status_t fixed_decide(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    (void)self;
    (void)context;
    answer->verdict = RUDDER_REPLACE;
    return RUDDER_OK;
}

rudder_status_t fixed_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error)
{
    (void)error;
    decider->flags = RUDDER_DECIDER_INLINE;
    decider->interval = request->number;
    decider->decide = fixed_decide;
    return RUDDER_OK;
}
