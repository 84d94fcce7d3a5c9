/*
 * The main thread owns the socket, the clients and the queue; the worker thread owns the model. They share one round of
 * questions and a state behind a mutex: the main thread fills a round while it is IDLE, the worker answers it while it is
 * ASKED and hands it back as ANSWERED, telling so through an eventfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/backend.h"
#include "agent/memo.h"
#include "agent/serve.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "decide/agent_protocol.h"

enum {
    SERVE_MAX_CLIENTS = 1024,
    SERVE_PATIENCE_S = 30,         /* without a first client */
    SERVE_MAX_BACKLOG = 64 * 1024, /* bytes of answers that a client may leave unread */
    SERVE_WORKER_STACK = 4 * 1024 * 1024
};

typedef struct serve_client {
    int fd;
    uint64_t serial; /* never used twice, so that an answer cannot reach the wrong client */
    struct {
        agent_question_t head;
        char text[AGENT_MAX_TEXT];
    } in; /* being read */
    size_t in_used;
    int waiting; /* `question` and `text` are to be answered */
    agent_question_t question;
    char text[AGENT_MAX_TEXT];
    double deadline;  /* on clock_seconds() */
    uint64_t arrival; /* order among all questions */
    char *out;        /* not yet taken by the socket */
    size_t out_used, out_capacity;
} serve_client_t;

typedef enum serve_state { SERVE_LOADING, SERVE_IDLE, SERVE_ASKED, SERVE_ANSWERED } serve_state_t;

typedef struct serve_round {
    int32_t n;
    uint64_t client[BACKEND_MAX_QUESTIONS], number[BACKEND_MAX_QUESTIONS];
    char text[BACKEND_MAX_QUESTIONS][AGENT_MAX_TEXT];
    backend_question_t questions[BACKEND_MAX_QUESTIONS];
    rudder_answer_t answers[BACKEND_MAX_QUESTIONS];
    rudder_status_t statuses[BACKEND_MAX_QUESTIONS];
} serve_round_t;

typedef struct serve {
    const serve_config_t *config;
    int listener, wake; /* wake: eventfd, written by the worker */
    serve_client_t *clients[SERVE_MAX_CLIENTS];
    int32_t n_clients;
    int had_client;
    uint64_t serials, arrivals;
    double started;
    pthread_mutex_t lock; /* guards state; the round belongs to whom the state says */
    pthread_cond_t asked;
    serve_state_t state;
    int failed; /* the model could not be loaded: `error` says why. Set before the state leaves LOADING. */
    rudder_error_t error;
    serve_round_t round;
    memo_t memo; /* the worker's */
} serve_t;

/* ---- The worker ------------------------------------------------------------------------------------------------- */

static void serve_set_state(serve_t *serve, serve_state_t state)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&serve->lock);
    serve->state = state;
    pthread_cond_signal(&serve->asked);
    pthread_mutex_unlock(&serve->lock);
    if (state != SERVE_ASKED && write(serve->wake, &one, sizeof one) != sizeof one) {
        _exit(1); /* cannot be: the counter of an eventfd does not fill up by ones */
    }
}

static serve_state_t serve_get_state(serve_t *serve)
{
    pthread_mutex_lock(&serve->lock);
    const serve_state_t state = serve->state;
    pthread_mutex_unlock(&serve->lock);
    return state;
}

static void *serve_worker(void *context)
{
    serve_t *serve = context;
    backend_config_t config = {NULL, serve->config->facts != NULL ? serve->config->facts : "",
                               serve->config->answer_mode, serve->config->debug};
    const backend_t *backend;
    void *self = NULL;
    /* Not before this thread is there: a process that could not even say why would be started over and over. */
    if (serve->config->memory_bytes > 0) {
        const struct rlimit memory = {(rlim_t)serve->config->memory_bytes, (rlim_t)serve->config->memory_bytes};
        setrlimit(RLIMIT_AS, &memory);
    }
    serve->failed = backend_find(serve->config->model, &backend, &config.model, &serve->error) != RUDDER_OK ||
                    backend->open(&config, &self, &serve->error) != RUDDER_OK;
    if (serve->failed) {
        log_error(&serve->error);
    }
    serve_set_state(serve, SERVE_IDLE);
    while (!serve->failed) {
        serve_round_t *round = &serve->round;
        pthread_mutex_lock(&serve->lock);
        while (serve->state != SERVE_ASKED) {
            pthread_cond_wait(&serve->asked, &serve->lock);
        }
        pthread_mutex_unlock(&serve->lock);
        memo_ask(&serve->memo, backend, self, round->questions, round->n, round->answers, round->statuses);
        serve_set_state(serve, SERVE_ANSWERED);
    }
    return NULL;
}

/* ---- Clients ---------------------------------------------------------------------------------------------------- */

static void serve_drop(serve_t *serve, int32_t i)
{
    serve_client_t *client = serve->clients[i];
    close(client->fd);
    free(client->out);
    free(client);
    serve->clients[i] = serve->clients[--serve->n_clients];
}

static void serve_accept(serve_t *serve)
{
    for (;;) {
        struct ucred peer;
        socklen_t size = sizeof peer;
        const int fd = accept4(serve->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            return;
        }
        serve_client_t *client = NULL;
        if (serve->n_clients < SERVE_MAX_CLIENTS && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
            peer.uid == getuid()) {
            client = calloc(1, sizeof *client);
        }
        if (client == NULL) {
            close(fd);
            continue;
        }
        client->fd = fd;
        client->serial = ++serve->serials;
        serve->clients[serve->n_clients++] = client;
        serve->had_client = 1;
    }
}

/* Sends what the socket takes; returns 0 when the client is lost. */
static int serve_flush(serve_client_t *client)
{
    size_t sent = 0;
    while (sent < client->out_used) {
        const ssize_t n = send(client->fd, client->out + sent, client->out_used - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            if (errno != EAGAIN) {
                return 0;
            }
            break;
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    memmove(client->out, client->out + sent, client->out_used - sent);
    client->out_used -= sent;
    return 1;
}

/* Queues an answer; returns 0 when the client is lost or does not read. */
static int serve_answer(serve_client_t *client, const agent_answer_t *answer, const char *text)
{
    const size_t n = sizeof *answer + answer->text_bytes;
    if (client->out_used + n > client->out_capacity) {
        const size_t capacity = 2 * (client->out_used + n);
        char *more = capacity <= SERVE_MAX_BACKLOG ? realloc(client->out, capacity) : NULL;
        if (more == NULL) {
            return 0;
        }
        client->out = more;
        client->out_capacity = capacity;
    }
    memcpy(client->out + client->out_used, answer, sizeof *answer);
    memcpy(client->out + client->out_used + sizeof *answer, text, answer->text_bytes);
    client->out_used += n;
    return serve_flush(client);
}

static int serve_refuse(serve_client_t *client, uint64_t number, rudder_status_t status, const char *why)
{
    agent_answer_t answer = {.magic = AGENT_ANSWER_MAGIC,
                             .version = AGENT_PROTOCOL_VERSION,
                             .number = number,
                             .status = status,
                             .verdict = RUDDER_NO_VERDICT,
                             .predict_hits = RUDDER_NO_PREDICTION,
                             .predict_rows = RUDDER_NO_PREDICTION,
                             .text_bytes = (uint32_t)strlen(why)};
    return serve_answer(client, &answer, why);
}

/* A whole question has come in: it waits, and one that waited before is told so. Returns 0 when the client is lost. */
static int serve_question(serve_t *serve, serve_client_t *client)
{
    int kept = 1;
    if (client->waiting) {
        kept = serve_refuse(client, client->question.number, RUDDER_E_DEADLINE, "a newer question came");
    }
    client->waiting = 1;
    client->question = client->in.head;
    memcpy(client->text, client->in.text, client->question.text_bytes);
    client->deadline = clock_seconds() + 1e-3 * client->question.deadline_ms;
    client->arrival = ++serve->arrivals;
    return kept;
}

/* Reads what is there; returns 0 when the client has gone or talks nonsense. */
static int serve_read(serve_t *serve, serve_client_t *client)
{
    const agent_question_t *head = &client->in.head;
    for (;;) {
        size_t needed = sizeof *head;
        if (client->in_used >= needed) {
            if (head->magic != AGENT_QUESTION_MAGIC || head->version != AGENT_PROTOCOL_VERSION ||
                head->text_bytes > AGENT_MAX_TEXT ||
                (head->answer_mode != RUDDER_ANSWER_SCORE && head->answer_mode != RUDDER_ANSWER_JSON)) {
                return 0;
            }
            needed += head->text_bytes;
            if (client->in_used == needed) {
                client->in_used = 0;
                if (!serve_question(serve, client)) {
                    return 0;
                }
                continue;
            }
        }
        const ssize_t n = recv(client->fd, (char *)&client->in + client->in_used, needed - client->in_used, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return 1;
        }
        if (n <= 0) {
            return 0;
        }
        client->in_used += (size_t)n;
    }
}

/* ---- The queue -------------------------------------------------------------------------------------------------- */

/* Answers waiting questions that nobody wants any more, or all of them when there is no model. */
static void serve_expire(serve_t *serve)
{
    const int failed = serve_get_state(serve) != SERVE_LOADING && serve->failed;
    const double now = clock_seconds();
    for (int32_t i = serve->n_clients - 1; i >= 0; i--) {
        serve_client_t *client = serve->clients[i];
        if (client->waiting && (failed || client->deadline <= now)) {
            client->waiting = 0;
            if (!serve_refuse(client, client->question.number, failed ? RUDDER_E_AGENT : RUDDER_E_DEADLINE,
                              failed ? serve->error.text : "the deadline passed before its turn came")) {
                serve_drop(serve, i);
            }
        }
    }
}

/* Gives the worker what has waited longest, one question a client, as many as it takes at once. */
static void serve_ask(serve_t *serve)
{
    serve_round_t *round = &serve->round;
    if (serve_get_state(serve) != SERVE_IDLE || serve->failed) {
        return;
    }
    for (round->n = 0; round->n < BACKEND_MAX_QUESTIONS; round->n++) {
        serve_client_t *next = NULL;
        for (int32_t i = 0; i < serve->n_clients; i++) {
            serve_client_t *client = serve->clients[i];
            if (client->waiting && (next == NULL || client->arrival < next->arrival)) {
                next = client;
            }
        }
        if (next == NULL) {
            break;
        }
        next->waiting = 0;
        round->client[round->n] = next->serial;
        round->number[round->n] = next->question.number;
        memcpy(round->text[round->n], next->text, next->question.text_bytes);
        round->questions[round->n] = (backend_question_t){(rudder_answer_mode_t)next->question.answer_mode,
                                                          round->text[round->n], (int32_t)next->question.text_bytes};
    }
    if (round->n > 0) {
        serve_set_state(serve, SERVE_ASKED);
    }
}

/* Takes the answers of a finished round to those who asked and are still there. */
static void serve_deliver(serve_t *serve)
{
    const serve_round_t *round = &serve->round;
    if (serve_get_state(serve) != SERVE_ANSWERED) {
        return;
    }
    for (int32_t q = 0; q < round->n; q++) {
        const rudder_answer_t *from = &round->answers[q];
        const int answered = round->statuses[q] == RUDDER_OK;
        const char *text = answered ? from->explanation : rudder_status_text(round->statuses[q]);
        const agent_answer_t answer = {.magic = AGENT_ANSWER_MAGIC,
                                       .version = AGENT_PROTOCOL_VERSION,
                                       .number = round->number[q],
                                       .status = round->statuses[q],
                                       .verdict = answered ? (int32_t)from->verdict : RUDDER_NO_VERDICT,
                                       .margin = from->margin,
                                       .tokens = from->tokens,
                                       .predict_hits = from->predict_hits,
                                       .predict_rows = from->predict_rows,
                                       .text_bytes = (uint32_t)strlen(text),
                                       .prompt_hash = from->prompt_hash};
        for (int32_t i = 0; i < serve->n_clients; i++) {
            if (serve->clients[i]->serial == round->client[q]) {
                if (!serve_answer(serve->clients[i], &answer, text)) {
                    serve_drop(serve, i);
                }
                break;
            }
        }
    }
    serve_set_state(serve, SERVE_IDLE);
}

/* Milliseconds until the nearest deadline or the end of patience; -1: none. */
static int serve_timeout(const serve_t *serve)
{
    double until = serve->had_client ? -1 : serve->started + SERVE_PATIENCE_S;
    for (int32_t i = 0; i < serve->n_clients; i++) {
        const serve_client_t *client = serve->clients[i];
        if (client->waiting && (until < 0 || client->deadline < until)) {
            until = client->deadline;
        }
    }
    if (until < 0) {
        return -1;
    }
    const double left = until - clock_seconds();
    return left <= 0 ? 0 : left > 60 ? 60000 : (int)(1e3 * left) + 1;
}

/* ---- The process ------------------------------------------------------------------------------------------------ */

static rudder_status_t serve_loop(serve_t *serve, rudder_error_t *error)
{
    static struct pollfd polled[SERVE_MAX_CLIENTS + 2];
    while (serve->had_client ? serve->n_clients > 0 : clock_seconds() < serve->started + SERVE_PATIENCE_S) {
        uint64_t count;
        const int32_t n = serve->n_clients;
        polled[0] = (struct pollfd){.fd = serve->listener, .events = POLLIN};
        polled[1] = (struct pollfd){.fd = serve->wake, .events = POLLIN};
        for (int32_t i = 0; i < n; i++) {
            polled[i + 2] = (struct pollfd){.fd = serve->clients[i]->fd,
                                            .events = serve->clients[i]->out_used > 0 ? POLLIN | POLLOUT : POLLIN};
        }
        if (poll(polled, (nfds_t)n + 2, serve_timeout(serve)) < 0 && errno != EINTR) {
            return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "poll: %s", strerror(errno));
        }
        if (polled[1].revents != 0 && read(serve->wake, &count, sizeof count) < 0 && errno != EAGAIN) {
            return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "eventfd: %s", strerror(errno));
        }
        /* From the last: dropping one moves the last into its place, which has been looked at already. */
        for (int32_t i = n - 1; i >= 0; i--) {
            serve_client_t *client = serve->clients[i];
            const int readable = polled[i + 2].revents & (POLLIN | POLLHUP | POLLERR);
            if ((readable && !serve_read(serve, client)) ||
                ((polled[i + 2].revents & POLLOUT) && !serve_flush(client))) {
                serve_drop(serve, i);
            }
        }
        if (polled[0].revents != 0) {
            serve_accept(serve);
        }
        serve_deliver(serve);
        serve_expire(serve);
        serve_ask(serve);
    }
    return RUDDER_OK;
}

/* What was inherited from the rank that started us: files, signal handling, priority. */
static void serve_become(const serve_config_t *config)
{
    static const int defaults[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD};
    const struct rlimit no_core = {0, 0};
    sigset_t none;
    close_range(3, ~0u, 0); /* a socket of MPI that we held open would hide the death of its rank */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        signal(defaults[i], SIG_DFL);
    }
    signal(SIGPIPE, SIG_IGN);
    setrlimit(RLIMIT_CORE, &no_core);
    if (config->nice > 0) {
        errno = 0;
        if (nice(config->nice) == -1 && errno != 0) {
            log_line(LOG_WARN, "the agent's priority could not be lowered: %s", strerror(errno));
        }
    }
    /* When memory runs out, the agent is to go before a trainer does. */
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, "900", 3) != 3) {
            log_line(LOG_DEBUG, "oom_score_adj could not be set");
        }
        close(fd);
    }
}

rudder_status_t serve_run(const serve_config_t *config, rudder_error_t *error)
{
    static serve_t serve; /* one process, one agent; its size would burden a stack */
    struct sockaddr_un address;
    const socklen_t address_bytes = agent_address(config->job, &address);
    pthread_attr_t attributes;
    pthread_t worker;
    serve_become(config);
    serve.config = config;
    serve.started = clock_seconds();
    serve.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    serve.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (serve.listener < 0 || serve.wake < 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "the agent cannot make a socket: %s", strerror(errno));
    }
    if (bind(serve.listener, (const struct sockaddr *)&address, address_bytes) != 0) {
        return errno == EADDRINUSE
                   ? RUDDER_OK
                   : RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "the agent cannot take the name of job %s: %s",
                                 config->job, strerror(errno));
    }
    if (listen(serve.listener, SERVE_MAX_CLIENTS) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "the agent cannot listen: %s", strerror(errno));
    }
    pthread_mutex_init(&serve.lock, NULL);
    pthread_cond_init(&serve.asked, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SERVE_WORKER_STACK);
    const int code = pthread_create(&worker, &attributes, serve_worker, &serve);
    if (code != 0) {
        return RUDDER_FAIL(error, RUDDER_E_ENVIRONMENT, "the agent cannot start a thread: %s", strerror(code));
    }
    RUDDER_TRY(serve_loop(&serve, error));
    _exit(0); /* the worker may be in the middle of a matrix: nobody waits for it */
}
