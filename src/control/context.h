/* The context builder: everything a decider is told, from metrics, history, outlook and the facts of the run. */
#ifndef RUDDER_CONTROL_CONTEXT_H
#define RUDDER_CONTROL_CONTEXT_H

#include "base/json.h"
#include "control/controller.h"
#include "control/history.h"
#include "control/metrics.h"

void context_build(const controller_config_t *config, const metrics_t *metrics, const history_t *history,
                   const rudder_outlook_t *outlook, rudder_context_t *context);

/* Members of an open object: the context as it is logged (docs/formats.md). The facts of the run are not repeated. */
void context_json(json_t *json, const rudder_context_t *context);

#endif
