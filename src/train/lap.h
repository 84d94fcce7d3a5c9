/* Stop-watch of a thread: every second since `mark` goes to exactly one part, so that parts sum to the whole. */
#ifndef RUDDER_TRAIN_LAP_H
#define RUDDER_TRAIN_LAP_H

#include "base/clock.h"

static inline void lap(double *mark, double *part)
{
    const double now = clock_seconds();
    *part += now - *mark;
    *mark = now;
}

#endif
