/*
 * Asking the agent. The agent may be slow, frozen, gone, or not an agent at all; a question then fails within its
 * deadline. A new agent is started when none answers, each time after a longer pause until one has answered.
 */
#include "decide/agent_client.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/error.h"

enum { CLIENT_MAX_MISSES = 3 };
static const double client_first_delay = .25, client_last_delay = 60; /* seconds between starts */
static const double client_first_pause = 1e-3, client_last_pause = 50e-3;

/* ---- waiting ---- */

/* Sleeps until the socket is ready for `events`; with events 0 until `until`, which is then no failure. */
static rudder_status_t client_wait(agent_client_t *client, short events, double until, rudder_error_t *error)
{
    struct pollfd fds[2] = {{.fd = client->wake, .events = POLLIN},
                            {.fd = events != 0 ? client->socket : -1, .events = events}};
    for (;;) {
        const double left = until - clock_seconds();
        const int n = poll(fds, 2, left > 0 ? (int)ceil(fmin(left, 3600) * 1e3) : 0);
        if (n < 0 && errno != EINTR) {
            return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: poll: %s", strerror(errno));
        }
        if (n > 0 && fds[0].revents != 0) {
            return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: the question was cancelled");
        }
        if (n > 0) {
            return RUDDER_OK;
        }
        if (left <= 0) {
            return events == 0 ? RUDDER_OK
                               : RUDDER_FAIL(error, RUDDER_E_DEADLINE, "agent: no answer within the deadline");
        }
    }
}

/* ---- connecting ---- */

static void client_drop(agent_client_t *client)
{
    if (client->socket >= 0) {
        close(client->socket);
        client->socket = -1;
    }
}

/* Whoever holds the name must be the same user. */
static rudder_status_t client_check_peer(int fd, rudder_error_t *error)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: the socket's owner is not known: %s", strerror(errno));
    }
    if (peer.uid != getuid()) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: expected a socket of user %u, found one of user %u",
                           (unsigned)getuid(), (unsigned)peer.uid);
    }
    return RUDDER_OK;
}

/* *found: somebody holds the name. client->socket stays -1 when it cannot take us now. */
static rudder_status_t client_try(agent_client_t *client, int *found, rudder_error_t *error)
{
    struct sockaddr_un address;
    const socklen_t size = agent_address(client->job, &address);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: expected a socket, found: %s", strerror(errno));
    }
    rudder_status_t status = RUDDER_OK;
    *found = 1;
    if (connect(fd, (const struct sockaddr *)&address, size) == 0) {
        status = client_check_peer(fd, error);
        if (status == RUDDER_OK) {
            client->socket = fd;
            client->next_answer = client->number + 1;
            return RUDDER_OK;
        }
    } else if (errno == ECONNREFUSED) {
        *found = 0;
    } else if (errno != EAGAIN && errno != EINTR) { /* EAGAIN: its queue is full */
        status = RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: connect: %s", strerror(errno));
    }
    close(fd);
    return status;
}

static rudder_status_t client_start(agent_client_t *client, rudder_error_t *error)
{
    const agent_process_setup_t setup = {.argv = client->argv,
                                         .memory_bytes = client->config.memory_bytes,
                                         .nice = client->config.nice,
                                         .quiet = client->start_delay > 0}; /* it has told its trouble once */
    client->start_delay =
        client->start_delay > 0 ? fmin(2 * client->start_delay, client_last_delay) : client_first_delay;
    client->start_after = clock_seconds() + client->start_delay;
    client->misses = 0;
    return agent_process_start(&client->process, &setup, error);
}

/*
 * Nobody holds the name. Starts an agent, once a question and not too soon after the last one; *started is the time of it,
 * 0 before. One that ends with success has lost the election: the winner is about to listen.
 */
static rudder_status_t client_provide(agent_client_t *client, double *started, rudder_error_t *error)
{
    const int had_process = client->process.pid != 0;
    const double now = clock_seconds();
    char text[64];
    if (!agent_process_gone(&client->process)) {
        return RUDDER_OK;
    }
    if (had_process && client->process.status != 0) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: it ended with %s",
                           agent_process_epitaph(&client->process, text, sizeof text));
    }
    if (client->config.program == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: job %s has none, and none is to be started", client->job);
    }
    if (*started == 0 && now >= client->start_after) {
        *started = now;
        return client_start(client, error);
    }
    if (*started > 0 && now < *started + client_first_delay) {
        return RUDDER_OK;
    }
    return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: it ended with %s; the next one starts in %.1f s",
                       agent_process_epitaph(&client->process, text, sizeof text), fmax(0, client->start_after - now));
}

static rudder_status_t client_connect(agent_client_t *client, double until, rudder_error_t *error)
{
    double pause = client_first_pause;
    double started = 0;
    while (client->socket < 0) {
        int found = 1;
        RUDDER_TRY(client_try(client, &found, error));
        if (client->socket >= 0) {
            break;
        }
        if (!found) {
            RUDDER_TRY(client_provide(client, &started, error));
        }
        const double now = clock_seconds();
        if (now >= until) {
            return RUDDER_FAIL(error, RUDDER_E_DEADLINE, "agent: job %s: nobody took the question in time",
                               client->job);
        }
        RUDDER_TRY(client_wait(client, 0, fmin(now + pause, until), error));
        pause = fmin(2 * pause, client_last_pause);
    }
    return RUDDER_OK;
}

/* ---- talking ---- */

static rudder_status_t client_lost(int code, rudder_error_t *error)
{
    return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: it has gone (%s)",
                       code == 0 ? "connection closed" : strerror(code));
}

static rudder_status_t client_send(agent_client_t *client, size_t n, double until, rudder_error_t *error)
{
    const char *bytes = (const char *)&client->question;
    while (n > 0) {
        const ssize_t sent = send(client->socket, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            bytes += sent;
            n -= (size_t)sent;
        } else if (errno == EAGAIN) {
            RUDDER_TRY(client_wait(client, POLLOUT, until, error));
        } else if (errno != EINTR) {
            return client_lost(errno, error);
        }
    }
    return RUDDER_OK;
}

/* *done counts the bytes that came, also when the call fails. */
static rudder_status_t client_receive(agent_client_t *client, void *memory, size_t n, size_t *done, double until,
                                      rudder_error_t *error)
{
    *done = 0;
    while (*done < n) {
        const ssize_t got = recv(client->socket, (char *)memory + *done, n - *done, MSG_DONTWAIT);
        if (got > 0) {
            *done += (size_t)got;
        } else if (got == 0) {
            return client_lost(0, error);
        } else if (errno == EAGAIN) {
            RUDDER_TRY(client_wait(client, POLLIN, until, error));
        } else if (errno != EINTR) {
            return client_lost(errno, error);
        }
    }
    return RUDDER_OK;
}

/* Everything that an honest agent keeps to; answers to questions that were given up may still come. */
static rudder_status_t client_check_head(agent_client_t *client, const agent_answer_t *head, rudder_error_t *error)
{
    if (head->magic != AGENT_ANSWER_MAGIC || head->version != AGENT_PROTOCOL_VERSION) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: expected an answer of version %d, found %08x version %u",
                           AGENT_PROTOCOL_VERSION, (unsigned)head->magic, (unsigned)head->version);
    }
    if (head->text_bytes > AGENT_MAX_TEXT) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: expected at most %d bytes of text, found %u", AGENT_MAX_TEXT,
                           (unsigned)head->text_bytes);
    }
    if (head->number < client->next_answer || head->number > client->number) {
        return RUDDER_FAIL(error, RUDDER_E_AGENT, "agent: expected the answer to question %llu, found %llu",
                           (unsigned long long)client->number, (unsigned long long)head->number);
    }
    return RUDDER_OK;
}

/* No use any more: a child of ours that has closed the connection, does not answer or lies makes room for a new one. */
static void client_break(agent_client_t *client)
{
    client_drop(client);
    agent_process_kill(&client->process);
}

/* Reads the answer to the last question. The connection stays usable when nothing but time was lost. */
static rudder_status_t client_read_answer(agent_client_t *client, agent_answer_t *head, char *text, double until,
                                          rudder_error_t *error)
{
    do {
        size_t done;
        rudder_status_t status = client_receive(client, head, sizeof *head, &done, until, error);
        if (status == RUDDER_E_DEADLINE && done == 0) {
            return status;
        }
        if (status == RUDDER_OK) {
            status = client_check_head(client, head, error);
        }
        if (status == RUDDER_OK) {
            status = client_receive(client, text, head->text_bytes, &done, until, error);
        }
        if (status != RUDDER_OK) {
            client_break(client);
            return status;
        }
        text[head->text_bytes] = '\0';
        client->next_answer = head->number + 1;
        client->misses = 0;
    } while (head->number != client->number);
    return RUDDER_OK;
}

/* The deadline has passed without an answer. An agent that is slow is left alone, one that is frozen is not. */
static void client_missed(agent_client_t *client)
{
    client->misses++;
    if (client->misses >= CLIENT_MAX_MISSES ||
        (!agent_process_gone(&client->process) && agent_process_stopped(&client->process))) {
        client_break(client);
    }
}

static int32_t client_prediction(int32_t value)
{
    return value >= RUDDER_DOWN && value <= RUDDER_UP ? value : RUDDER_NO_PREDICTION;
}

/* Cut to fit; without control characters, since it is shown on terminals. */
static void client_copy_text(const char *text, char *copy, size_t copy_size)
{
    size_t n = 0;
    for (; n + 1 < copy_size && text[n] != '\0'; n++) {
        copy[n] = (unsigned char)text[n] < ' ' || text[n] == 0x7f ? ' ' : text[n];
    }
    copy[n] = '\0';
}

static rudder_status_t client_translate(const agent_answer_t *head, const char *text, rudder_answer_t *answer,
                                        rudder_error_t *error)
{
    client_copy_text(text, answer->explanation, sizeof answer->explanation);
    answer->verdict = head->verdict == RUDDER_KEEP || head->verdict == RUDDER_REPLACE ? (rudder_verdict_t)head->verdict
                                                                                      : RUDDER_NO_VERDICT;
    answer->margin = head->margin;
    answer->tokens = head->tokens;
    answer->predict_hits = client_prediction(head->predict_hits);
    answer->predict_rows = client_prediction(head->predict_rows);
    answer->prompt_hash = head->prompt_hash;
    if (head->status == RUDDER_OK) {
        return RUDDER_OK;
    }
    return RUDDER_FAIL(error, head->status == RUDDER_E_DEADLINE ? RUDDER_E_DEADLINE : RUDDER_E_AGENT, "agent: %s",
                       answer->explanation[0] != '\0' ? answer->explanation : "it cannot answer");
}

void agent_client_prepare(agent_client_t *client, double until)
{
    client_connect(client, until, NULL);
}

rudder_status_t agent_client_ask(agent_client_t *client, const char *text, double until, rudder_answer_t *answer,
                                 rudder_error_t *error)
{
    agent_answer_t head;
    char reply[AGENT_MAX_TEXT + 1];
    rudder_status_t status = client_connect(client, until, error);
    if (status == RUDDER_E_DEADLINE) {
        client_missed(client);
    }
    RUDDER_TRY(status);
    const size_t length = strnlen(text, AGENT_MAX_TEXT);
    client->question.head = (agent_question_t){.magic = AGENT_QUESTION_MAGIC,
                                               .version = AGENT_PROTOCOL_VERSION,
                                               .number = ++client->number,
                                               .answer_mode = (uint32_t)client->config.answer_mode,
                                               .deadline_ms = (uint32_t)fmax(0, 1e3 * (until - clock_seconds())),
                                               .text_bytes = (uint32_t)length};
    memcpy(client->question.text, text, length);
    status = client_send(client, sizeof client->question.head + length, until, error);
    if (status != RUDDER_OK) {
        client_break(client);
        return status;
    }
    status = client_read_answer(client, &head, reply, until, error);
    if (status == RUDDER_E_DEADLINE) {
        client_missed(client);
    }
    RUDDER_TRY(status);
    status = client_translate(&head, reply, answer, error);
    if (status == RUDDER_OK) {
        client->start_delay = 0;
    }
    return status;
}

/* ---- opening and closing ---- */

static void client_make_argv(agent_client_t *client)
{
    static char agent[] = "agent", serve[] = "--serve", model[] = "--model", mode[] = "--answer", score[] = "score",
                json[] = "json", facts[] = "--facts";
    char *argv[] = {
        client->program, agent,         serve, client->job,
        model,           client->model, mode,  client->config.answer_mode == RUDDER_ANSWER_JSON ? json : score,
        facts,           client->facts, NULL};
    memcpy(client->argv, argv, sizeof argv);
}

/* *path (may be NULL) is copied, and then points to the copy. */
static rudder_status_t client_copy_path(const char *what, char *copy, const char **path, rudder_error_t *error)
{
    if (*path != NULL) {
        if (snprintf(copy, PATH_MAX, "%s", *path) >= PATH_MAX) {
            return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "%s: expected a path of at most %d bytes, found %zu", what,
                               PATH_MAX - 1, strlen(*path));
        }
        *path = copy;
    }
    return RUDDER_OK;
}

rudder_status_t agent_client_open(const rudder_agent_config_t *config, const char *facts, agent_client_t *client,
                                  rudder_error_t *error)
{
    if (config->program != NULL && config->model == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_ARGUMENT, "agent.model: expected the path of a GGUF file, found none");
    }
    memset(client, 0, sizeof *client);
    client->config = *config;
    client->socket = -1;
    RUDDER_TRY(client_copy_path("agent.program", client->program, &client->config.program, error));
    RUDDER_TRY(client_copy_path("agent.model", client->model, &client->config.model, error));
    if (config->job != NULL) {
        snprintf(client->job, sizeof client->job, "%s", config->job);
    } else {
        snprintf(client->job, sizeof client->job, "process-%d", (int)getpid());
    }
    snprintf(client->facts, sizeof client->facts, "%s", facts);
    client->config.job = client->job;
    client_make_argv(client);
    client->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (client->wake < 0) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "agent: expected a file descriptor, found: %s", strerror(errno));
    }
    return RUDDER_OK;
}

void agent_client_cancel(agent_client_t *client)
{
    eventfd_write(client->wake, 1);
}

void agent_client_close(agent_client_t *client)
{
    client_drop(client);
    agent_process_end(&client->process);
    close(client->wake);
}
