/* `gain`: replaces when the rows it is expected to save over the minibatches left are more than the rows it costs. */
#include "decide/deciders.h"

static rudder_status_t gain_decide(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    (void)self;
    answer->verdict = context->saving_rows > context->cost_rows ? RUDDER_REPLACE : RUDDER_KEEP;
    return RUDDER_OK;
}

rudder_status_t gain_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error)
{
    (void)request;
    (void)error;
    decider->flags = RUDDER_DECIDER_INLINE;
    decider->decide = gain_decide;
    return RUDDER_OK;
}
