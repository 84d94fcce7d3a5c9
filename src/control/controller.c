/*
 * The decision maker. The caller's thread counts, asks and applies; a worker asks deciders that take time. Whatever a
 * decider does, each question ends: it is applied, or counted as invalid, late or failed and decided by the fall-back
 * rule. After failures the decider is left alone for a while, so that one that is gone costs nothing.
 */
#include "control/controller.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/board.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mailbox.h"
#include "control/context.h"
#include "control/history.h"
#include "control/latencies.h"

enum {
    CONTROLLER_MAX_REST = 64, /* questions left out after many failures in a row */
    CONTROLLER_STACK = 256 * 1024
};

/* To the worker. */
typedef struct controller_question {
    int stop;
    double asked; /* clock_seconds() */
    rudder_context_t context;
} controller_question_t;

/* From the worker. */
typedef struct controller_reply {
    rudder_status_t status;
    rudder_answer_t answer;
} controller_reply_t;

typedef enum controller_flight {
    FLIGHT_NONE,     /* the worker rests */
    FLIGHT_ASKED,    /* a question is on its way, or waits for the worker */
    FLIGHT_ABANDONED /* it was given up; the worker still works on it */
} controller_flight_t;

/* What other threads may read; fields of 8 bytes only. */
typedef struct controller_figures {
    int64_t window_remote, window_hit;
    int64_t asked, answered, replaced, kept, nothing_stale, invalid, late, failed, fallback;
    double latency_mean, latency_p50, latency_p99; /* ms */
    double age_mean;
} controller_figures_t;

struct controller {
    controller_config_t config;
    int64_t interval; /* minibatches between questions */
    int inline_decider;
    metrics_t metrics;
    history_t history;

    controller_outlook_t outlook; /* of the minibatch under way */
    void *outlook_context;
    int64_t decided; /* minibatch of the last question that was due: one planned anew finds its decision made */
    uint64_t due;    /* bit i: minibatch + 1 + i, planned anew, must replace as it did before */
    int unsettled;   /* a replacement was ordered; controller_replaced() will say what came of it */
    int failures;    /* in a row */
    int64_t rest;    /* questions to leave out */
    int told_failed, told_recovered;

    controller_flight_t flight;
    double asked;   /* controller_now() of the question in flight */
    double arrives; /* simulated time: when its answer, which is made already, arrives */
    int prepared;   /* simulated time: the decider had its time to prepare */
    mailbox_t questions, replies;
    pthread_t worker;
    int has_worker;

    latencies_t latencies;
    double age_sum; /* of the applied decisions, minibatches */
    controller_figures_t figures;
    _Atomic uint64_t published;
    _Atomic uint64_t published_figures[sizeof(controller_figures_t) / sizeof(uint64_t)];
};

/* ---- the worker ---- */

static void controller_prepare_answer(rudder_answer_t *answer)
{
    memset(answer, 0, sizeof *answer);
    answer->size = sizeof *answer;
    answer->verdict = RUDDER_NO_VERDICT;
    answer->predict_hits = answer->predict_rows = RUDDER_NO_PREDICTION;
}

/* asked: clock_seconds() */
static rudder_status_t controller_consult(const rudder_decider_t *decider, const rudder_context_t *context,
                                          double asked, rudder_answer_t *answer)
{
    controller_prepare_answer(answer);
    const rudder_status_t status = decider->decide(decider->self, context, answer);
    answer->latency_ms = 1e3 * (clock_seconds() - asked);
    return status;
}

/* Likewise in simulated time: a latency that the decider tells is taken for true. */
static rudder_status_t controller_consult_simulated(const rudder_decider_t *decider, const rudder_context_t *context,
                                                    rudder_answer_t *answer)
{
    const double asked = clock_seconds();
    controller_prepare_answer(answer);
    const rudder_status_t status = decider->decide(decider->self, context, answer);
    if (!(answer->latency_ms > 0)) {
        answer->latency_ms = 1e3 * (clock_seconds() - asked);
    }
    return status;
}

static void *controller_work(void *argument)
{
    controller_t *controller = argument;
    const rudder_decider_t *decider = controller->config.decider;
    controller_question_t question;
    controller_reply_t reply;
    memset(&reply, 0, sizeof reply);
    if (decider->prepare != NULL) {
        decider->prepare(decider->self); /* questions wait, and newer ones replace them */
    }
    for (;;) {
        mailbox_wait(&controller->questions, -1);
        if (!mailbox_take(&controller->questions, &question)) {
            continue;
        }
        if (question.stop) {
            return NULL;
        }
        reply.status = controller_consult(decider, &question.context, question.asked, &reply.answer);
        mailbox_put(&controller->replies, &reply);
    }
}

static rudder_status_t controller_start_worker(controller_t *controller, rudder_error_t *error)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, CONTROLLER_STACK);
    sigfillset(&all); /* signals are the host's: its own threads take them */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&controller->worker, &attributes, controller_work, controller);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (code != 0) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "decider %s: expected a thread, found error %d (%s)",
                           controller->config.decider->name, code, strerror(code));
    }
    controller->has_worker = 1;
    return RUDDER_OK;
}

/* ---- opening ---- */

static int64_t controller_round(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t controller_interval(const controller_config_t *config)
{
    return config->decider != NULL && config->decider->interval > 0 ? config->decider->interval : config->period;
}

static int64_t controller_history_bytes(const controller_config_t *config)
{
    return controller_round(history_capacity(config->period, controller_interval(config)) *
                            (int64_t)sizeof(history_entry_t));
}

int64_t controller_memory(const controller_config_t *config)
{
    return controller_round((int64_t)sizeof(controller_t)) + controller_history_bytes(config) +
           (int64_t)mailbox_memory(sizeof(controller_question_t)) + (int64_t)mailbox_memory(sizeof(controller_reply_t));
}

rudder_status_t controller_open(const controller_config_t *config, void *memory, controller_t **out,
                                rudder_error_t *error)
{
    unsigned char *place = memory;
    controller_t *controller = memory;
    controller->config = *config;
    controller->interval = controller_interval(config);
    controller->inline_decider = config->decider != NULL && (config->decider->flags & RUDDER_DECIDER_INLINE) != 0;
    metrics_open(&controller->metrics, config->period);
    place += controller_round((int64_t)sizeof *controller);
    controller->history = (history_t){.entries = (history_entry_t *)(void *)place,
                                      .capacity = history_capacity(config->period, controller->interval),
                                      .on_decision = config->on_decision,
                                      .callback_context = config->callback_context};
    place += controller_history_bytes(config);
    mailbox_open(&controller->questions, sizeof(controller_question_t), place);
    place += mailbox_memory(sizeof(controller_question_t));
    mailbox_open(&controller->replies, sizeof(controller_reply_t), place);
    if (config->replaces && !controller->inline_decider && config->clock == NULL) {
        RUDDER_TRY(controller_start_worker(controller, error));
    }
    *out = controller;
    return RUDDER_OK;
}

/* ---- figures ---- */

static void controller_publish(controller_t *controller)
{
    controller_figures_t *figures = &controller->figures;
    const int64_t applied = figures->replaced + figures->kept + figures->nothing_stale;
    figures->latency_mean = controller->latencies.mean;
    figures->latency_p50 = latencies_quantile(&controller->latencies, 50);
    figures->latency_p99 = latencies_quantile(&controller->latencies, 99);
    figures->age_mean = applied > 0 ? controller->age_sum / (double)applied : 0;
    figures->window_remote = controller->metrics.past[0].remote;
    figures->window_hit = controller->metrics.past[0].hit;
    board_publish(&controller->published, controller->published_figures, figures, sizeof *figures);
}

/* Which count a decision belongs to; NULL for one that the fall-back made because nobody was asked. */
static int64_t *controller_count(controller_t *controller, const rudder_decision_t *decision)
{
    controller_figures_t *figures = &controller->figures;
    switch (decision->outcome.status) {
    case RUDDER_INVALID:
        return &figures->invalid;
    case RUDDER_LATE:
        return &figures->late;
    case RUDDER_FAILED:
        return &figures->failed;
    default:
        break;
    }
    if (decision->from_fallback) {
        return NULL;
    }
    return decision->outcome.status == RUDDER_REPLACED ? &figures->replaced
           : decision->outcome.status == RUDDER_KEPT   ? &figures->kept
                                                       : &figures->nothing_stale;
}

static void controller_change_count(controller_t *controller, const rudder_decision_t *decision, int64_t change)
{
    int64_t *count = controller_count(controller, decision);
    if (count != NULL) {
        *count += change;
    }
}

static void controller_say(controller_t *controller, const char *text)
{
    if (controller->config.on_message != NULL) {
        controller->config.on_message(controller->config.callback_context, text);
    }
}

/* ---- from an answer to a verdict that is applied; each returns 1 when the policy must replace now ---- */

static void controller_context(controller_t *controller, rudder_context_t *context)
{
    rudder_outlook_t outlook = {0};
    if (controller->outlook != NULL) {
        controller->outlook(controller->outlook_context, &outlook);
    }
    context_build(&controller->config, &controller->metrics, &controller->history, &outlook, context);
}

/* The decision being made has its verdict, which takes effect in this minibatch. */
static int controller_apply(controller_t *controller, rudder_verdict_t verdict)
{
    rudder_decision_t *decision = history_current(&controller->history);
    const int replaces = verdict == RUDDER_REPLACE;
    decision->applied_minibatch = decision->outcome.minibatch = controller->metrics.minibatches;
    if (decision->outcome.status < RUDDER_INVALID) {
        decision->outcome.status = replaces ? RUDDER_REPLACED : RUDDER_KEPT;
    }
    if (replaces) {
        controller->unsettled = 1; /* counted by controller_replaced() */
    } else {
        controller_change_count(controller, decision, 1);
    }
    if (!decision->from_fallback) {
        const int64_t age = decision->applied_minibatch - decision->asked_minibatch;
        controller->age_sum += (double)(age > 0 ? age : 0); /* a plan may have been undone since */
    }
    history_finish(&controller->history, &controller->metrics, replaces);
    return replaces;
}

/* The fall-back rule decides, on what is known now. */
static int controller_fall_back(controller_t *controller)
{
    rudder_decision_t *decision = history_current(&controller->history);
    const rudder_context_t *context = &decision->context;
    rudder_context_t fresh;
    rudder_answer_t answer;
    if (context->minibatch != controller->metrics.minibatches) {
        controller_context(controller, &fresh);
        context = &fresh;
    }
    decision->from_fallback = 1;
    controller->figures.fallback++;
    const rudder_status_t status = controller_consult(controller->config.fallback, context, clock_seconds(), &answer);
    return controller_apply(controller, status == RUDDER_OK ? answer.verdict : RUDDER_KEEP);
}

/* The decider could not be used: says so once, leaves it alone for longer each time, and lets the fall-back decide. */
static int controller_give_up(controller_t *controller, rudder_outcome_status_t status)
{
    rudder_decision_t *decision = history_current(&controller->history);
    decision->outcome.status = status;
    controller->failures++;
    controller->rest = controller->failures < 7 ? (1 << (controller->failures - 1)) - 1 : CONTROLLER_MAX_REST - 1;
    if (!controller->told_failed) {
        char text[512];
        const char *why = decision->answer.explanation;
        snprintf(text, sizeof text, "decider %s: %s answer%s%s%s; the rule %s decides until it answers",
                 controller->config.decider->name, status == RUDDER_FAILED ? "no" : rudder_outcome_name(status),
                 why[0] != '\0' ? " (" : "", why, why[0] != '\0' ? ")" : "", controller->config.fallback->name);
        controller->told_failed = 1;
        controller_say(controller, text);
    }
    return controller_fall_back(controller);
}

static rudder_outcome_status_t controller_judge(const controller_t *controller, rudder_status_t status,
                                                const rudder_decision_t *decision)
{
    const int64_t age = controller->metrics.minibatches - decision->asked_minibatch;
    if (status == RUDDER_E_DEADLINE) {
        return RUDDER_LATE;
    }
    if (status != RUDDER_OK) {
        return RUDDER_FAILED;
    }
    if (!controller->inline_decider &&
        (decision->answer.latency_ms > controller->config.deadline_ms || age > controller->config.late_after)) {
        return RUDDER_LATE;
    }
    if (decision->answer.verdict != RUDDER_KEEP && decision->answer.verdict != RUDDER_REPLACE) {
        return RUDDER_INVALID;
    }
    return RUDDER_KEPT; /* or replaced: usable */
}

static void controller_answered(controller_t *controller, rudder_status_t status, const rudder_answer_t *answer)
{
    if (status == RUDDER_OK) {
        controller->figures.answered++;
        latencies_add(&controller->latencies, answer->latency_ms);
    }
}

static int32_t controller_prediction(int32_t predicted)
{
    return predicted >= RUDDER_DOWN && predicted <= RUDDER_UP ? predicted : RUDDER_NO_PREDICTION;
}

/* Keeps an answer with the decision being made; nothing in it is trusted. */
static void controller_note(controller_t *controller, rudder_status_t status, const rudder_answer_t *answer)
{
    rudder_answer_t *kept = &history_current(&controller->history)->answer;
    *kept = *answer;
    kept->prompt[sizeof kept->prompt - 1] = '\0';
    kept->explanation[sizeof kept->explanation - 1] = '\0';
    kept->predict_hits = controller_prediction(answer->predict_hits);
    kept->predict_rows = controller_prediction(answer->predict_rows);
    controller_answered(controller, status, answer);
}

/* An answer came to the decision being made. */
static int controller_conclude(controller_t *controller, rudder_status_t status, const rudder_answer_t *answer)
{
    rudder_decision_t *decision = history_current(&controller->history);
    controller_note(controller, status, answer);
    if (status == RUDDER_OK) {
        decision->answered_minibatch = controller->metrics.minibatches;
    }
    const rudder_outcome_status_t judged = controller_judge(controller, status, decision);
    if (judged >= RUDDER_INVALID) {
        return controller_give_up(controller, judged);
    }
    controller->failures = 0;
    if (controller->told_failed && !controller->told_recovered) {
        char text[128];
        snprintf(text, sizeof text, "decider %s: answers again", controller->config.decider->name);
        controller->told_recovered = 1;
        controller_say(controller, text);
    }
    return controller_apply(controller, decision->answer.verdict);
}

/* ---- asking ---- */

/* The time that latencies and deadlines are measured in. */
static double controller_now(const controller_t *controller)
{
    const controller_config_t *config = &controller->config;
    return config->clock != NULL ? config->clock(config->callback_context) : clock_seconds();
}

/* In simulated time the answer is made now, and waits in its mailbox until the clock has gone on by its latency. */
static void controller_simulate(controller_t *controller, const rudder_context_t *context)
{
    const rudder_decider_t *decider = controller->config.decider;
    controller_reply_t reply;
    memset(&reply, 0, sizeof reply);
    if (!controller->prepared && decider->prepare != NULL) {
        decider->prepare(decider->self);
    }
    controller->prepared = 1;
    reply.status = controller_consult_simulated(decider, context, &reply.answer);
    controller->arrives = controller->asked + 1e-3 * reply.answer.latency_ms;
    mailbox_put(&controller->replies, &reply);
}

/* An answer that has arrived. */
static int controller_take_reply(controller_t *controller, controller_reply_t *reply)
{
    const int arrived = controller->config.clock == NULL || controller_now(controller) >= controller->arrives;
    return arrived && mailbox_take(&controller->replies, reply);
}

/* A question has been posted: the sync mode waits for its answer, in simulated time without letting time pass. */
static int controller_await(controller_t *controller)
{
    controller_reply_t reply;
    const double until = controller->asked + 1e-3 * controller->config.deadline_ms;
    const int came =
        controller->config.clock != NULL ? controller->arrives <= until : mailbox_wait(&controller->replies, until);
    if (came && mailbox_take(&controller->replies, &reply)) {
        controller->flight = FLIGHT_NONE;
        return controller_conclude(controller, reply.status, &reply.answer);
    }
    controller->flight = FLIGHT_ABANDONED;
    return controller_give_up(controller, RUDDER_LATE);
}

static int controller_ask(controller_t *controller)
{
    rudder_decision_t *decision = history_begin(&controller->history);
    controller_context(controller, &decision->context);
    if (controller->flight == FLIGHT_ABANDONED) {
        return controller_fall_back(controller);
    }
    if (controller->rest > 0) {
        controller->rest--;
        return controller_fall_back(controller);
    }
    decision->asked_minibatch = controller->metrics.minibatches;
    controller->figures.asked++;
    controller->asked = controller_now(controller);
    if (controller->inline_decider) {
        rudder_answer_t answer;
        const rudder_status_t status =
            controller_consult(controller->config.decider, &decision->context, clock_seconds(), &answer);
        return controller_conclude(controller, status, &answer);
    }
    controller->flight = FLIGHT_ASKED;
    if (controller->config.clock != NULL) {
        controller_simulate(controller, &decision->context);
    } else {
        const controller_question_t question = {.asked = controller->asked, .context = decision->context};
        mailbox_put(&controller->questions, &question);
    }
    return controller->config.mode == RUDDER_SYNC ? controller_await(controller) : 0;
}

/* A window is complete while a question is in flight: if the worker has not begun with it, it gets the newer context. */
static void controller_renew(controller_t *controller)
{
    controller_question_t question = {.asked = clock_seconds()};
    if (!mailbox_waits(&controller->questions)) {
        return;
    }
    controller_context(controller, &question.context);
    if (mailbox_replace(&controller->questions, &question)) {
        rudder_decision_t *decision = history_current(&controller->history);
        decision->context = question.context;
        decision->asked_minibatch = controller->metrics.minibatches;
        controller->asked = question.asked;
    }
}

/* Takes an answer that has arrived; gives a question up whose answer would be too late. */
static int controller_collect(controller_t *controller)
{
    controller_reply_t reply;
    if (controller_take_reply(controller, &reply)) {
        const controller_flight_t flight = controller->flight;
        controller->flight = FLIGHT_NONE;
        if (flight == FLIGHT_ASKED) {
            return controller_conclude(controller, reply.status, &reply.answer);
        }
        controller_answered(controller, reply.status, &reply.answer);
    } else if (controller->flight == FLIGHT_ASKED) {
        const int64_t age = controller->metrics.minibatches - history_current(&controller->history)->asked_minibatch;
        if (age > controller->config.late_after ||
            controller_now(controller) > controller->asked + 1e-3 * controller->config.deadline_ms) {
            controller->flight = FLIGHT_ABANDONED;
            return controller_give_up(controller, RUDDER_LATE);
        }
    }
    return 0;
}

/* A question is due. */
static int controller_question_due(controller_t *controller)
{
    if (controller->flight == FLIGHT_ASKED) {
        controller_renew(controller);
        return 0;
    }
    return controller_ask(controller);
}

int controller_minibatch(controller_t *controller, int64_t remote, int64_t hit, int64_t miss,
                         controller_outlook_t outlook, void *outlook_context)
{
    metrics_t *metrics = &controller->metrics;
    controller->outlook = outlook;
    controller->outlook_context = outlook_context;
    if (metrics_minibatch(metrics, remote, hit, miss)) {
        history_window(&controller->history, metrics);
    }
    int replace = (int)(controller->due & 1);
    controller->due >>= 1;
    if (controller->config.replaces && !replace) {
        const int64_t finished = controller->history.finished;
        if (controller->flight != FLIGHT_NONE) {
            replace = controller_collect(controller);
        }
        /* What was just applied or failed is worth a new question only after a window. */
        const int rests = controller->history.finished > finished && (replace || controller->failures > 0);
        if (metrics->minibatches % controller->interval == 0 && metrics->minibatches > controller->decided) {
            controller->decided = metrics->minibatches;
            if (!rests) {
                replace = controller_question_due(controller);
            }
        }
    }
    controller_publish(controller);
    return replace;
}

void controller_replaced(controller_t *controller, int64_t entered, int64_t fill)
{
    const int64_t capacity = controller->config.capacity;
    rudder_decision_t *decision = history_replaces_at(&controller->history, controller->metrics.minibatches);
    metrics_fill(&controller->metrics, fill);
    if (decision != NULL) { /* otherwise it was handed out before its plan was undone */
        if (!controller->unsettled) {
            controller_change_count(controller, decision, -1);
        }
        decision->outcome.replaced_rows = entered;
        decision->outcome.replaced_share = capacity > 0 ? (double)entered / (double)capacity : 0;
        if (decision->outcome.status < RUDDER_INVALID) {
            decision->outcome.status = entered > 0 ? RUDDER_REPLACED : RUDDER_NOTHING_STALE;
        }
        controller_change_count(controller, decision, 1);
    }
    controller->unsettled = 0;
    controller_publish(controller);
}

void controller_started(controller_t *controller, int64_t fill)
{
    metrics_fill(&controller->metrics, fill);
}

void controller_times(controller_t *controller, const rudder_times_t *times)
{
    metrics_times(&controller->metrics, times);
}

void controller_mark(const controller_t *controller, controller_mark_t *mark)
{
    mark->metrics = controller->metrics;
}

void controller_rewind(controller_t *controller, const controller_mark_t *mark, int replaced)
{
    const int64_t undone = controller->metrics.minibatches - mark->metrics.minibatches;
    controller->metrics = mark->metrics;
    controller->due = undone < 64 ? controller->due << undone : 0;
    controller->due |= replaced != 0;
    controller_publish(controller);
}

void controller_stats(const controller_t *controller, rudder_stats_t *stats)
{
    controller_figures_t figures;
    board_read(&controller->published, controller->published_figures, &figures, sizeof figures);
    stats->window_remote_rows = figures.window_remote;
    stats->window_hit_rows = figures.window_hit;
    stats->asked = figures.asked;
    stats->answered = figures.answered;
    stats->applied = figures.replaced + figures.kept + figures.nothing_stale;
    stats->replaced = figures.replaced;
    stats->kept = figures.kept;
    stats->nothing_stale = figures.nothing_stale;
    stats->invalid = figures.invalid;
    stats->late = figures.late;
    stats->failed = figures.failed;
    stats->fallback = figures.fallback;
    stats->latency_mean_ms = figures.latency_mean;
    stats->latency_p50_ms = figures.latency_p50;
    stats->latency_p99_ms = figures.latency_p99;
    stats->age_mean_minibatches = figures.age_mean;
}

/* ---- closing ---- */

/* The run is over before the decision in flight was applied. */
static void controller_end_flight(controller_t *controller)
{
    rudder_decision_t *decision = history_current(&controller->history);
    controller_reply_t reply;
    if (mailbox_take(&controller->replies, &reply)) { /* in simulated time also one that is on its way */
        controller_note(controller, reply.status, &reply.answer);
    }
    decision->outcome.status = RUDDER_LATE;
    controller_change_count(controller, decision, 1);
    history_finish(&controller->history, &controller->metrics, 0);
}

void controller_close(controller_t *controller, int32_t timeout_ms)
{
    if (controller->has_worker) {
        const rudder_decider_t *decider = controller->config.decider;
        const controller_question_t stop = {.stop = 1};
        if (controller->flight != FLIGHT_NONE && !mailbox_waits(&controller->questions)) {
            mailbox_wait(&controller->replies, clock_seconds() + 1e-3 * (timeout_ms > 0 ? timeout_ms : 0));
        }
        mailbox_put(&controller->questions, &stop); /* before the cancel: a question that waits is not begun any more */
        if (decider->cancel != NULL) {
            decider->cancel(decider->self);
        }
        pthread_join(controller->worker, NULL);
    }
    if (controller->flight == FLIGHT_ASKED) {
        controller_end_flight(controller);
    }
    history_flush(&controller->history);
}
