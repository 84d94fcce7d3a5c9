/*
 * The client of the agent against real processes that answer, lie, freeze and die. This program is its own fake agent: run
 * as `test agent --serve JOB --model BEHAVIOUR ...` it serves in the way that the "model" names.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "control/controller.h"
#include "decide/agent_client.h"
#include "decide/decide.h"

/* ---- the fake agent ---- */

static int is(const char *behaviour, const char *name)
{
    return strcmp(behaviour, name) == 0;
}

static int count_fds(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int n = 0;
    while (directory != NULL && readdir(directory) != NULL) {
        n++;
    }
    closedir(directory);
    return n - 3; /* ".", ".." and the directory itself */
}

static void fake_send(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        const ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        at += sent;
        n -= (size_t)sent;
    }
}

/* What the process was born with, for the test to check. */
static void describe_self(char *text, size_t size)
{
    sigset_t blocked;
    struct rlimit limit;
    struct sigaction pipe_action;
    char target[64] = "";
    int death = 0, n_blocked = 0;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < NSIG; number++) {
        n_blocked += sigismember(&blocked, number) == 1;
    }
    getrlimit(RLIMIT_AS, &limit);
    sigaction(SIGPIPE, NULL, &pipe_action);
    prctl(PR_GET_PDEATHSIG, &death);
    if (readlink("/proc/self/fd/0", target, sizeof target - 1) < 0) {
        target[0] = '\0';
    }
    /* Open are 0, 1, 2, the listening socket and one connection. */
    snprintf(text, size, "fds %d blocked %d limit %lld nice %d pipe %s death %d stdin %s", count_fds(), n_blocked,
             (long long)limit.rlim_cur, getpriority(PRIO_PROCESS, 0),
             pipe_action.sa_handler == SIG_DFL ? "default" : "other", death, target);
}

/* Answers one question; 0 closes the connection. `served` questions came before. */
static int fake_answer(int fd, const char *behaviour, const agent_question_t *question, const char *question_text,
                       int served)
{
    char text[AGENT_MAX_TEXT + 1] = "because";
    agent_answer_t answer = {.magic = AGENT_ANSWER_MAGIC,
                             .version = AGENT_PROTOCOL_VERSION,
                             .number = question->number,
                             .verdict = is(behaviour, "no") ? RUDDER_KEEP : RUDDER_REPLACE,
                             .margin = 1.5,
                             .tokens = 47,
                             .predict_hits = RUDDER_UP,
                             .predict_rows = RUDDER_DOWN,
                             .prompt_hash = 0xfeedfacecafebeefu};
    if (is(behaviour, "die") || (is(behaviour, "die-third") && served == 2)) {
        raise(SIGKILL);
    } else if (is(behaviour, "stop") || (is(behaviour, "stop-second") && served == 1)) {
        raise(SIGSTOP);
    } else if (is(behaviour, "hang")) {
        pause();
    } else if (is(behaviour, "late") && served == 0) {
        clock_sleep(.6);
    } else if (is(behaviour, "close-question")) {
        return 0;
    } else if (is(behaviour, "magic")) {
        answer.magic ^= 1;
    } else if (is(behaviour, "version")) {
        answer.version++;
    } else if (is(behaviour, "number")) {
        answer.number++;
    } else if (is(behaviour, "old-number")) {
        answer.number--;
    } else if (is(behaviour, "verdict")) {
        answer.verdict = -5;
    } else if (is(behaviour, "predict")) {
        answer.predict_hits = 99;
        answer.predict_rows = INT32_MIN;
    } else if (is(behaviour, "no-model")) {
        answer.status = RUDDER_E_AGENT;
        snprintf(text, sizeof text, "model.gguf: not a GGUF file");
    } else if (is(behaviour, "dropped")) {
        answer.status = RUDDER_E_DEADLINE;
    } else if (is(behaviour, "status")) {
        answer.status = 12345;
    } else if (is(behaviour, "lines")) {
        int lines = 0;
        for (uint32_t i = 0; i < question->text_bytes; i++) {
            lines += i > 0 && question_text[i - 1] == '\n' && question_text[i] >= '1' && question_text[i] <= '9';
        }
        snprintf(text, sizeof text, "%d lines about decisions", lines);
    } else if (is(behaviour, "self")) {
        describe_self(text, sizeof text);
    } else if (is(behaviour, "long")) {
        memset(text, '\x1b', AGENT_MAX_TEXT);
        text[AGENT_MAX_TEXT] = '\0';
    } else if (is(behaviour, "garbage")) {
        memset(text, 0xa5, sizeof text);
        fake_send(fd, text, sizeof text);
        return 1;
    } else if (is(behaviour, "huge")) {
        answer.text_bytes = UINT32_MAX;
        fake_send(fd, &answer, sizeof answer);
        for (int i = 0; i < 1000; i++) {
            fake_send(fd, text, sizeof text); /* 4 MB of it */
        }
        return 1;
    } else if (is(behaviour, "half")) {
        fake_send(fd, &answer, sizeof answer / 2);
        return 1;
    }
    answer.text_bytes = (uint32_t)strlen(text);
    if (is(behaviour, "half-text")) {
        answer.text_bytes += 10;
    }
    if (is(behaviour, "drip")) {
        for (size_t i = 0; i < sizeof answer; i++) {
            fake_send(fd, (char *)&answer + i, 1);
            clock_sleep(.05); /* the whole takes 3 seconds */
        }
    } else {
        fake_send(fd, &answer, sizeof answer);
    }
    fake_send(fd, text, strlen(text));
    return 1;
}

static int read_question(int fd, agent_question_t *question, char *text)
{
    return recv(fd, question, sizeof *question, MSG_WAITALL) == sizeof *question &&
           question->magic == AGENT_QUESTION_MAGIC && question->version == AGENT_PROTOCOL_VERSION &&
           question->text_bytes <= AGENT_MAX_TEXT &&
           recv(fd, text, question->text_bytes, MSG_WAITALL) == (ssize_t)question->text_bytes;
}

/* Serves until the last client is gone; 10 seconds without a first one are the end, too. */
static int fake_agent(const char *job, const char *behaviour)
{
    struct pollfd fds[17] = {{.events = POLLIN}};
    struct sockaddr_un address;
    int n = 1, served = 0;
    if (is(behaviour, "exit3") || is(behaviour, "exit0")) {
        return is(behaviour, "exit3") ? 3 : 0;
    }
    if (is(behaviour, "slow-start")) {
        clock_sleep(.3);
    }
    if (is(behaviour, "never-listens")) {
        pause();
    }
    const socklen_t size = agent_address(job, &address);
    fds[0].fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fds[0].fd, (struct sockaddr *)&address, size) != 0) {
        return errno == EADDRINUSE ? 0 : 1;
    }
    listen(fds[0].fd, 16);
    while (poll(fds, (nfds_t)n, 10000) > 0) {
        if (fds[0].revents != 0 && n < 17) {
            fds[n++] = (struct pollfd){.fd = accept(fds[0].fd, NULL, NULL), .events = POLLIN};
            if (is(behaviour, "close")) {
                close(fds[--n].fd);
            }
            continue;
        }
        for (int i = 1; i < n; i++) {
            agent_question_t question;
            char text[AGENT_MAX_TEXT];
            if (fds[i].revents != 0 && (!read_question(fds[i].fd, &question, text) ||
                                        !fake_answer(fds[i].fd, behaviour, &question, text, served++))) {
                close(fds[i].fd);
                fds[i] = fds[--n];
                if (n == 1 && !is(behaviour, "close-question")) {
                    return is(behaviour, "stubborn") ? pause() : 0;
                }
            }
        }
    }
    return 0;
}

/* ---- the tests ---- */

static char self_path[4096];

/* A job that no other test and no other run of the tests uses. */
static char *new_job(void)
{
    static char job[64];
    static int n;
    snprintf(job, sizeof job, "test-%d-%d", (int)getpid(), n++);
    return job;
}

static rudder_agent_config_t config_of(const char *job, const char *behaviour)
{
    return (rudder_agent_config_t){.program = self_path, .model = behaviour, .job = job};
}

static void open_client(agent_client_t *client, const rudder_agent_config_t *config)
{
    rudder_error_t error = {0};
    assert_int_equal(agent_client_open(config, "graph test, 3 nodes", client, &error), RUDDER_OK);
}

static rudder_status_t ask(agent_client_t *client, double seconds, rudder_answer_t *answer, rudder_error_t *error)
{
    memset(answer, 0, sizeof *answer);
    memset(error, 0, sizeof *error);
    const double start = clock_seconds();
    const rudder_status_t status = agent_client_ask(client, "a question", start + seconds, answer, error);
    assert_true(clock_seconds() - start < seconds + 2.5); /* ending a frozen child may take some time more */
    assert_int_equal(error->status, status);
    return status;
}

/* As a program would, goes on asking until the pause between starts is over. */
static rudder_status_t ask_until_started(agent_client_t *client, rudder_answer_t *answer, rudder_error_t *error)
{
    rudder_status_t status;
    const double end = clock_seconds() + 20;
    while ((status = ask(client, 10, answer, error)) == RUDDER_E_AGENT && strstr(error->text, "starts in") != NULL &&
           clock_seconds() < end) {
        clock_sleep(.02);
    }
    return status;
}

static int has_children(void)
{
    return waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD;
}

/* Somebody holds the name of the job. */
static int is_served(const char *job)
{
    struct sockaddr_un address;
    const socklen_t size = agent_address(job, &address);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int served = connect(fd, (struct sockaddr *)&address, size) == 0;
    close(fd);
    return served;
}

static void test_answers(void **state)
{
    (void)state;
    static const char *const behaviours[] = {"yes", "no", "slow-start"};
    for (size_t i = 0; i < sizeof behaviours / sizeof behaviours[0]; i++) {
        const char *job = new_job();
        const rudder_agent_config_t config = config_of(job, behaviours[i]);
        const int fds = count_fds();
        agent_client_t client;
        open_client(&client, &config);
        for (int k = 0; k < 20; k++) {
            rudder_answer_t answer;
            rudder_error_t error;
            assert_int_equal(ask(&client, 30, &answer, &error), RUDDER_OK);
            assert_int_equal(answer.verdict, is(behaviours[i], "no") ? RUDDER_KEEP : RUDDER_REPLACE);
            assert_true(answer.margin == 1.5);
            assert_int_equal(answer.tokens, 47);
            assert_int_equal(answer.predict_hits, RUDDER_UP);
            assert_int_equal(answer.predict_rows, RUDDER_DOWN);
            assert_true(answer.prompt_hash == 0xfeedfacecafebeefu);
            assert_string_equal(answer.explanation, "because");
        }
        const double start = clock_seconds();
        agent_client_close(&client);
        assert_true(clock_seconds() - start < 5);
        assert_false(has_children());
        assert_false(is_served(job));
        assert_int_equal(count_fds(), fds);
    }
}

/* Whatever comes over the socket: a status, in time, and nothing left behind. */
static void test_liars(void **state)
{
    (void)state;
    static const struct {
        const char *behaviour;
        rudder_status_t status;
        const char *part; /* of the message */
    } cases[] = {
        {"garbage", RUDDER_E_AGENT, "expected an answer"},
        {"magic", RUDDER_E_AGENT, "expected an answer"},
        {"version", RUDDER_E_AGENT, "version 2"},
        {"huge", RUDDER_E_AGENT, "4294967295"},
        {"number", RUDDER_E_AGENT, "question 1, found 2"},
        {"old-number", RUDDER_E_AGENT, "question 1, found 0"},
        {"half", RUDDER_E_DEADLINE, "deadline"},
        {"half-text", RUDDER_E_DEADLINE, "deadline"},
        {"drip", RUDDER_E_DEADLINE, "deadline"},
        {"close", RUDDER_E_AGENT, "gone"},
        {"close-question", RUDDER_E_AGENT, "gone"},
        {"die", RUDDER_E_AGENT, "gone"},
        {"stop", RUDDER_E_DEADLINE, "deadline"},
        {"hang", RUDDER_E_DEADLINE, "deadline"},
        {"never-listens", RUDDER_E_DEADLINE, "in time"},
        {"exit3", RUDDER_E_AGENT, "exit code 3"},
        {"no-model", RUDDER_E_AGENT, "not a GGUF file"},
        {"dropped", RUDDER_E_DEADLINE, ""},
        {"status", RUDDER_E_AGENT, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *job = new_job();
        const rudder_agent_config_t config = config_of(job, cases[i].behaviour);
        const int fds = count_fds();
        agent_client_t client;
        rudder_answer_t answer;
        rudder_error_t error;
        open_client(&client, &config);
        /* Enough for a process to start on a busy machine, little enough to wait for. */
        const double seconds = cases[i].status == RUDDER_E_DEADLINE ? 1 : 20;
        assert_int_equal(ask(&client, seconds, &answer, &error), cases[i].status);
        if (strstr(error.text, cases[i].part) == NULL) {
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].behaviour, error.text, cases[i].part);
        }
        ask(&client, .05, &answer, &error); /* and once more, whatever comes of it */
        agent_client_close(&client);
        assert_false(has_children());
        assert_int_equal(count_fds(), fds);
    }
}

/* Answers that are honest in form and strange in content are told as such, not trusted. */
static void test_strange_answers(void **state)
{
    (void)state;
    static const char *const behaviours[] = {"verdict", "predict", "long"};
    for (size_t i = 0; i < sizeof behaviours / sizeof behaviours[0]; i++) {
        const rudder_agent_config_t config = config_of(new_job(), behaviours[i]);
        agent_client_t client;
        rudder_answer_t answer;
        rudder_error_t error;
        open_client(&client, &config);
        assert_int_equal(ask(&client, 30, &answer, &error), RUDDER_OK);
        assert_int_equal(answer.verdict, is(behaviours[i], "verdict") ? RUDDER_NO_VERDICT : RUDDER_REPLACE);
        if (is(behaviours[i], "predict")) {
            assert_int_equal(answer.predict_hits, RUDDER_NO_PREDICTION);
            assert_int_equal(answer.predict_rows, RUDDER_NO_PREDICTION);
        }
        if (is(behaviours[i], "long")) {
            assert_int_equal(strlen(answer.explanation), sizeof answer.explanation - 1);
            assert_null(strchr(answer.explanation, '\x1b'));
        }
        agent_client_close(&client);
    }
    assert_false(has_children());
}

/* An answer that comes after its deadline is not taken for the next question's, and a slow agent is not killed for it. */
static void test_late_answer(void **state)
{
    (void)state;
    const rudder_agent_config_t config = config_of(new_job(), "late");
    agent_client_t client;
    rudder_answer_t answer;
    rudder_error_t error;
    open_client(&client, &config);
    rudder_status_t status = ask(&client, .3, &answer, &error);
    assert_int_equal(status, RUDDER_E_DEADLINE);
    const pid_t pid = client.process.pid;
    for (int k = 0; k < 3; k++) {
        assert_int_equal(ask(&client, 20, &answer, &error), RUDDER_OK);
        assert_int_equal(client.next_answer, client.number + 1);
    }
    assert_int_equal(client.process.pid, pid);
    agent_client_close(&client);
    assert_false(has_children());
}

/* A child that is stopped is replaced after one deadline, one that is silent after three. */
static void test_frozen_agent(void **state)
{
    (void)state;
    const rudder_agent_config_t config = config_of(new_job(), "stop-second");
    const int fds = count_fds();
    agent_client_t client;
    rudder_answer_t answer;
    rudder_error_t error;
    open_client(&client, &config);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(ask_until_started(&client, &answer, &error), RUDDER_OK);
        const pid_t pid = client.process.pid;
        assert_true(pid > 0);
        assert_int_equal(ask(&client, .3, &answer, &error), RUDDER_E_DEADLINE);
        assert_int_equal(kill(pid, 0), -1); /* killed and reaped */
        assert_false(has_children());
    }
    agent_client_close(&client);
    assert_int_equal(count_fds(), fds);
}

static void test_silent_agent(void **state)
{
    (void)state;
    const rudder_agent_config_t config = config_of(new_job(), "hang");
    agent_client_t client;
    rudder_answer_t answer;
    rudder_error_t error;
    open_client(&client, &config);
    for (int k = 1; k <= 3; k++) {
        assert_int_equal(ask(&client, 1, &answer, &error), RUDDER_E_DEADLINE);
        assert_int_equal(has_children(), k < 3);
    }
    agent_client_close(&client);
    assert_false(has_children());
}

/* Killed between two questions: one question fails, a later one is answered by a new agent. */
static void test_killed_agent(void **state)
{
    (void)state;
    const rudder_agent_config_t config = config_of(new_job(), "yes");
    const int fds = count_fds();
    agent_client_t client;
    rudder_answer_t answer;
    rudder_error_t error;
    open_client(&client, &config);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(ask_until_started(&client, &answer, &error), RUDDER_OK);
        kill(client.process.pid, SIGKILL);
        rudder_status_t status;
        while ((status = ask(&client, 20, &answer, &error)) == RUDDER_OK) {
            sched_yield(); /* the signal is on its way */
        }
        assert_int_equal(status, RUDDER_E_AGENT);
        assert_non_null(strstr(error.text, "gone"));
    }
    agent_client_close(&client);
    assert_false(has_children());
    assert_int_equal(count_fds(), fds);
}

/* A program that cannot serve is started ever more rarely, and asking in between costs nothing. */
static void test_start_back_off(void **state)
{
    (void)state;
    static const char *const behaviours[] = {"exit3", "exit0"};
    for (size_t i = 0; i < 2; i++) {
        const rudder_agent_config_t config = config_of(new_job(), behaviours[i]);
        agent_client_t client;
        rudder_answer_t answer;
        rudder_error_t error;
        int asked = 0;
        open_client(&client, &config);
        const double start = clock_seconds();
        while (clock_seconds() - start < 1.5) {
            assert_int_equal(ask(&client, 20, &answer, &error), RUDDER_E_AGENT);
            asked++;
        }
        assert_true(asked > 100);
        assert_true(client.start_delay <= 2); /* it doubles with every start: .25 .5 1 2 */
        agent_client_close(&client);
        assert_false(has_children());
    }
}

static void test_cannot_start(void **state)
{
    (void)state;
    agent_client_t client;
    rudder_answer_t answer;
    rudder_error_t error = {0};
    rudder_agent_config_t config = config_of(new_job(), "yes");
    config.program = "/no/such/program";
    open_client(&client, &config);
    assert_int_equal(ask(&client, 20, &answer, &error), RUDDER_E_AGENT);
    assert_non_null(strstr(error.text, "/no/such/program"));
    agent_client_close(&client);
    config.program = NULL; /* only looked for */
    open_client(&client, &config);
    assert_int_equal(ask(&client, 20, &answer, &error), RUDDER_E_AGENT);
    agent_client_close(&client);
    config.program = self_path;
    config.model = NULL;
    assert_int_equal(agent_client_open(&config, "", &client, &error), RUDDER_E_ARGUMENT);
    assert_false(has_children());
}

/* One holds the name, all are served, and with the last one the agent is gone. */
static void test_election(void **state)
{
    (void)state;
    enum { RANKS = 6 };
    const char *job = new_job();
    pid_t rank[RANKS];
    for (int r = 0; r < RANKS; r++) {
        rank[r] = fork();
        if (rank[r] == 0) {
            const rudder_agent_config_t config = config_of(job, "yes");
            agent_client_t client;
            rudder_answer_t answer;
            rudder_error_t error;
            int answered = 0;
            if (agent_client_open(&config, "", &client, &error) != RUDDER_OK) {
                _exit(1);
            }
            /* The rank that holds the agent may end first: then the others find a new one. */
            for (int k = 0; k < 200 && answered < 20; k++) {
                answered += agent_client_ask(&client, "?", clock_seconds() + 20, &answer, &error) == RUDDER_OK ? 1 : 0;
                clock_sleep(answered > 0 ? 1e-3 : 20e-3);
            }
            agent_client_close(&client);
            _exit(answered == 20 && !has_children() ? 0 : 2);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        int status = -1;
        assert_int_equal(waitpid(rank[r], &status, 0), rank[r]);
        assert_int_equal(status, 0);
    }
    assert_false(is_served(job));
}

static void *cancel_soon(void *argument)
{
    clock_sleep(.1);
    agent_client_cancel(argument);
    return NULL;
}

static void test_cancel(void **state)
{
    (void)state;
    static const char *const behaviours[] = {"hang", "never-listens"};
    for (size_t i = 0; i < 2; i++) {
        const rudder_agent_config_t config = config_of(new_job(), behaviours[i]);
        agent_client_t client;
        rudder_answer_t answer;
        rudder_error_t error;
        pthread_t thread;
        open_client(&client, &config);
        const double start = clock_seconds();
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &client), 0);
        assert_int_equal(ask(&client, 60, &answer, &error), RUDDER_E_AGENT);
        assert_true(clock_seconds() - start < 20);
        assert_non_null(strstr(error.text, "cancelled"));
        assert_int_equal(ask(&client, 60, &answer, &error), RUDDER_E_AGENT); /* it stays so */
        assert_true(clock_seconds() - start < 20);
        pthread_join(thread, NULL);
        agent_client_close(&client);
        assert_false(has_children());
    }
}

/* An agent that ignores its clients' end is ended. */
static void test_stubborn_agent(void **state)
{
    (void)state;
    const char *job = new_job();
    const rudder_agent_config_t config = config_of(job, "stubborn");
    agent_client_t client;
    rudder_answer_t answer;
    rudder_error_t error;
    open_client(&client, &config);
    assert_int_equal(ask(&client, 30, &answer, &error), RUDDER_OK);
    const double start = clock_seconds();
    agent_client_close(&client);
    assert_true(clock_seconds() - start < 4);
    assert_false(has_children());
    assert_false(is_served(job));
}

static void *ask_and_vanish(void *argument)
{
    agent_client_t *client = argument;
    rudder_answer_t answer;
    rudder_error_t error;
    const rudder_status_t status = ask(client, 30, &answer, &error);
    return status == RUDDER_OK ? client : NULL;
}

/* The thread that started the agent ends without a word: so does the agent. */
static void test_dies_with_its_thread(void **state)
{
    (void)state;
    const char *job = new_job();
    const rudder_agent_config_t config = config_of(job, "yes");
    agent_client_t client;
    pthread_t thread;
    void *result = NULL;
    open_client(&client, &config);
    assert_int_equal(pthread_create(&thread, NULL, ask_and_vanish, &client), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &client);
    const double start = clock_seconds();
    while (is_served(job) && clock_seconds() - start < 10) {
        clock_sleep(1e-3);
    }
    assert_false(is_served(job));
    agent_client_close(&client);
    assert_false(has_children());
    assert_true(WIFSIGNALED(client.process.status) && WTERMSIG(client.process.status) == SIGKILL);
}

/* ThreadSanitizer does not run in a limited address space. */
#if defined(__SANITIZE_THREAD__)
static const int64_t birth_limit = 0;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
static const int64_t birth_limit = 0;
#else
static const int64_t birth_limit = 1ll << 47;
#endif
#else
static const int64_t birth_limit = 1ll << 47; /* more than there is: AddressSanitizer needs much */
#endif

static void test_birth(void **state)
{
    (void)state;
    rudder_agent_config_t config = config_of(new_job(), "self");
    agent_client_t client;
    rudder_answer_t answer;
    rudder_error_t error;
    char expected[256];
    sigset_t blocked, before;
    const int nice_here = getpriority(PRIO_PROCESS, 0);
    config.memory_bytes = birth_limit;
    config.nice = 3;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    void (*pipe_before)(int) = signal(SIGPIPE, SIG_IGN);
    const int extra = dup(1); /* without close-on-exec: must not be inherited */
    open_client(&client, &config);
    const rudder_status_t status = ask(&client, 30, &answer, &error);
    sigset_t after;
    sigprocmask(SIG_SETMASK, &before, &after);
    signal(SIGPIPE, pipe_before);
    close(extra);
    assert_int_equal(status, RUDDER_OK);
    assert_true(sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGINT) == 0); /* ours is as it was */
    snprintf(expected, sizeof expected, "fds 5 blocked 0 limit %lld nice %d pipe default death %d stdin /dev/null",
             birth_limit > 0 ? (long long)birth_limit : -1, nice_here + 3 < 19 ? nice_here + 3 : 19, SIGKILL);
    assert_string_equal(answer.explanation, expected);
    agent_client_close(&client);
}

/* Another user may take the name of the job first: nothing is told to him. */
static void test_other_user(void **state)
{
    (void)state;
    if (getuid() != 0) {
        skip(); /* only root can act as two users */
    }
    char job[64];
    int ready[2];
    snprintf(job, sizeof job, "%s", new_job());
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_un address;
        const socklen_t size = agent_address(job, &address); /* root's name for the job */
        char byte;
        if (setuid(65534) != 0) {
            _exit(1);
        }
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 4) != 0 || write(ready[1], "x", 1) != 1) {
            _exit(1);
        }
        const int client = accept(fd, NULL, NULL);
        _exit(recv(client, &byte, 1, 0) == 0 ? 0 : 2); /* not one byte */
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    const rudder_agent_config_t config = config_of(job, "yes");
    agent_client_t client;
    rudder_answer_t answer;
    rudder_error_t error;
    open_client(&client, &config);
    assert_int_equal(ask(&client, 20, &answer, &error), RUDDER_E_AGENT);
    assert_non_null(strstr(error.text, "65534"));
    agent_client_close(&client);
    int status = -1;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
}

/* ---- the decider `llm`, under the controller ---- */

typedef struct run {
    rudder_config_t config;
    rudder_decider_t decider, fallback;
    controller_config_t control;
    controller_t *controller;
    void *decider_memory, *memory;
    rudder_decision_t last;
    int decisions, messages;
} run_t;

static void note_decision(void *context, const rudder_decision_t *decision)
{
    run_t *run = context;
    run->last = *decision;
    run->decisions++;
}

static void note_message(void *context, const char *text)
{
    run_t *run = context;
    assert_non_null(strstr(text, "llm"));
    run->messages++;
}

static void *zeroed(int64_t bytes)
{
    const size_t rounded = ((size_t)bytes + 64) / 64 * 64;
    void *memory = aligned_alloc(64, rounded);
    assert_non_null(memory);
    memset(memory, 0, rounded);
    return memory;
}

static void open_run(run_t *run, const char *job, const char *behaviour, rudder_mode_t mode, int32_t deadline_ms,
                     rudder_answer_mode_t answer_mode)
{
    static const rudder_type_config_t type = {.row_bytes = 1024, .capacity_rows = 9876};
    rudder_error_t error = {0};
    memset(run, 0, sizeof *run);
    run->config = (rudder_config_t){.n_types = 1,
                                    .types = &type,
                                    .period = 2,
                                    .deadline_ms = deadline_ms,
                                    .facts = {.graph = "test", .nodes = 117659, .ranks = 4}};
    run->config.agent = config_of(job, behaviour);
    run->config.agent.answer_mode = answer_mode;
    run->decider_memory = zeroed(decide_memory("llm"));
    assert_int_equal(decide_open("llm", &run->config, run->decider_memory, &run->decider, &error), RUDDER_OK);
    assert_int_equal(decide_open("gain", &run->config, NULL, &run->fallback, &error), RUDDER_OK);
    run->control = (controller_config_t){.mode = mode,
                                         .period = 2,
                                         .deadline_ms = deadline_ms,
                                         .late_after = 1000,
                                         .replaces = 1,
                                         .decider = &run->decider,
                                         .fallback = &run->fallback,
                                         .capacity = 9876,
                                         .on_decision = note_decision,
                                         .on_message = note_message,
                                         .callback_context = run};
    run->memory = zeroed(controller_memory(&run->control));
    assert_int_equal(controller_open(&run->control, run->memory, &run->controller, &error), RUDDER_OK);
}

static void close_run(run_t *run)
{
    controller_close(run->controller, 1000);
    run->decider.close(run->decider.self);
    free(run->memory);
    free(run->decider_memory);
}

static rudder_stats_t feed(run_t *run)
{
    rudder_stats_t stats = {0};
    if (controller_minibatch(run->controller, 10, 5, 5, NULL, NULL)) {
        controller_replaced(run->controller, 3, 2);
    }
    controller_stats(run->controller, &stats);
    assert_int_equal(stats.applied, stats.replaced + stats.kept + stats.nothing_stale);
    const int64_t in_flight = stats.asked - stats.applied - stats.invalid - stats.late - stats.failed;
    assert_true(in_flight == 0 || (in_flight == 1 && run->control.mode == RUDDER_ASYNC));
    return stats;
}

static void test_llm_sync(void **state)
{
    (void)state;
    const char *job = new_job();
    const int fds = count_fds();
    run_t run;
    open_run(&run, job, "yes", RUDDER_SYNC, 30000, RUDDER_ANSWER_SCORE);
    rudder_stats_t stats = {0};
    for (int t = 0; t < 40; t++) {
        stats = feed(&run);
    }
    assert_int_equal(stats.asked, 20);
    assert_int_equal(stats.replaced, 20);
    close_run(&run);
    assert_int_equal(run.messages, 0);
    assert_int_equal(run.decisions, 20);
    assert_true(run.last.answer.prompt[0] != '\0');
    assert_false(has_children());
    assert_false(is_served(job));
    assert_int_equal(count_fds(), fds);
}

/* The agent dies at each third question, again and again: training goes on, and every question is accounted for. */
static void test_llm_dies_mid_question(void **state)
{
    (void)state;
    for (int mode = RUDDER_ASYNC; mode <= RUDDER_SYNC; mode++) {
        const char *job = new_job();
        const int fds = count_fds();
        run_t run;
        open_run(&run, job, "die-third", (rudder_mode_t)mode, 30000, RUDDER_ANSWER_SCORE);
        rudder_stats_t stats = {0};
        const double end = clock_seconds() + 60;
        int steps = 0;
        while ((stats.replaced < 6 || stats.failed < 3) && clock_seconds() < end) {
            stats = feed(&run);
            clock_sleep(1e-3);
            steps++;
        }
        assert_true(stats.replaced >= 6); /* by three agents at least */
        assert_true(stats.failed >= 3);
        assert_true(stats.fallback >= stats.failed);
        assert_true(steps >= 12);
        close_run(&run);
        assert_int_equal(run.messages, 2); /* lost, and back: once each */
        assert_false(has_children());
        assert_false(is_served(job));
        assert_int_equal(count_fds(), fds);
    }
}

static void test_llm_frozen(void **state)
{
    (void)state;
    const char *job = new_job();
    run_t run;
    open_run(&run, job, "stop", RUDDER_ASYNC, 1000, RUDDER_ANSWER_SCORE);
    rudder_stats_t stats = {0};
    const double end = clock_seconds() + 60;
    while (stats.late + stats.failed < 2 && clock_seconds() < end) {
        const double start = clock_seconds();
        stats = feed(&run);
        assert_true(clock_seconds() - start < .9); /* the trainer does not wait */
        clock_sleep(1e-3);
    }
    assert_true(stats.late + stats.failed >= 2);
    assert_true(stats.late >= 1);
    assert_int_equal(stats.applied, 0);
    const double start = clock_seconds();
    close_run(&run);
    assert_true(clock_seconds() - start < 10);
    assert_int_equal(run.messages, 1);
    assert_false(has_children());
    assert_false(is_served(job));
}

static void test_llm_json_words(void **state)
{
    (void)state;
    run_t run;
    open_run(&run, new_job(), "lines", RUDDER_SYNC, 30000, RUDDER_ANSWER_JSON);
    for (int t = 0; t < 20; t++) {
        feed(&run);
    }
    close_run(&run);
    /* The last question carried the words of its context and a line for each of the five decisions before. */
    const char *prompt = run.last.answer.prompt;
    char words[512];
    rudder_context_words(&run.last.context, words, sizeof words);
    assert_int_equal(strncmp(prompt, words, strlen(words)), 0);
    assert_non_null(strstr(prompt, "\n1 decision ago: replaced"));
    assert_string_equal(run.last.answer.explanation, "5 lines about decisions");
    assert_int_equal(run.last.answer.predict_hits, RUDDER_UP);
}

int main(int argc, char **argv)
{
    if (argc > 5 && is(argv[1], "agent") && is(argv[2], "--serve") && is(argv[4], "--model")) {
        return fake_agent(argv[3], argv[5]);
    }
    const ssize_t length = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    if (length <= 0) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_liars),
        cmocka_unit_test(test_strange_answers),
        cmocka_unit_test(test_late_answer),
        cmocka_unit_test(test_frozen_agent),
        cmocka_unit_test(test_silent_agent),
        cmocka_unit_test(test_killed_agent),
        cmocka_unit_test(test_start_back_off),
        cmocka_unit_test(test_cannot_start),
        cmocka_unit_test(test_election),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_stubborn_agent),
        cmocka_unit_test(test_dies_with_its_thread),
        cmocka_unit_test(test_birth),
        cmocka_unit_test(test_other_user),
        cmocka_unit_test(test_llm_sync),
        cmocka_unit_test(test_llm_dies_mid_question),
        cmocka_unit_test(test_llm_frozen),
        cmocka_unit_test(test_llm_json_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
