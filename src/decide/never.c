/* `never`: the start content stays. */
#include "decide/deciders.h"

static rudder_status_t never_decide(void *self, const rudder_context_t *context, rudder_answer_t *answer)
{
    (void)self;
    (void)context;
    answer->verdict = RUDDER_KEEP;
    return RUDDER_OK;
}

rudder_status_t never_open(const decide_request_t *request, rudder_decider_t *decider, rudder_error_t *error)
{
    (void)request;
    (void)error;
    decider->flags = RUDDER_DECIDER_INLINE;
    decider->decide = never_decide;
    return RUDDER_OK;
}
