/* The lists of `rudder replay`: which policies, deciders and capacities are tried. */
#ifndef RUDDER_CLI_REPLAY_CHOICES_H
#define RUDDER_CLI_REPLAY_CHOICES_H

#include "trace/replay.h"
#include "train/train.h"

enum { CHOICES_MOST = 64, CHOICES_TEXT = 64 };

/* "score/empty": a policy and what it starts from. */
typedef struct policy_choice {
    char label[CHOICES_TEXT]; /* without the start */
    char name[CHOICES_TEXT];  /* as the library takes it */
    char start[CHOICES_TEXT]; /* what it starts from, told or suiting */
    replay_ahead_t ahead;
    int replaces; /* a decider has a meaning */
} policy_choice_t;

/* "gain@2s": a decider and how long its answers take. */
typedef struct decider_choice {
    char label[CHOICES_TEXT], name[CHOICES_TEXT];
    double latency; /* negative: not told */
} decider_choice_t;

typedef struct capacity_choice {
    char label[CHOICES_TEXT];
    train_capacity_t size;
} capacity_choice_t;

/* All read "A,B,C" into choices[CHOICES_MOST]. Errors: USAGE, NAME, ARGUMENT. */
/* starts: the list for policies without "/START"; NULL: what suits each. */
rudder_status_t choices_policies(const char *text, const char *starts, policy_choice_t *choices, int32_t *n,
                                 rudder_error_t *error);
rudder_status_t choices_deciders(const char *text, decider_choice_t *choices, int32_t *n, rudder_error_t *error);
rudder_status_t choices_capacities(const char *text, capacity_choice_t *choices, int32_t *n, rudder_error_t *error);

#endif
