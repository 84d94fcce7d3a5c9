/* The memory of answers: equal words are evaluated once, different ones never share an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/memo.h"

/* A back end whose margin is a function of mode and text, and which counts what it is asked. */
typedef struct oracle {
    int32_t questions, rounds;
    int failing;
} oracle_t;

static double oracle_margin(const backend_question_t *question)
{
    double sum = question->answer_mode == RUDDER_ANSWER_JSON ? 1e6 : 0;
    for (int32_t i = 0; i < question->text_bytes; i++) {
        sum += (i + 1) * (double)(unsigned char)question->text[i];
    }
    return sum;
}

static void oracle_ask(void *self, const backend_question_t *questions, int32_t n, rudder_answer_t *answers,
                       rudder_status_t *statuses)
{
    oracle_t *oracle = self;
    oracle->rounds++;
    for (int32_t i = 0; i < n; i++) {
        oracle->questions++;
        answers[i] = (rudder_answer_t){
            .verdict = RUDDER_REPLACE, .margin = oracle_margin(&questions[i]), .tokens = questions[i].text_bytes};
        statuses[i] = oracle->failing ? RUDDER_E_AGENT : RUDDER_OK;
    }
}

static const backend_t oracle_backend = {.name = "oracle", .ask = oracle_ask};

static backend_question_t question_of(const char *text, rudder_answer_mode_t mode)
{
    return (backend_question_t){mode, text, (int32_t)strlen(text)};
}

static void test_same_words_once(void **state)
{
    memo_t *memo = calloc(1, sizeof *memo);
    oracle_t oracle = {0};
    (void)state;
    assert_non_null(memo);
    for (int round = 0; round < 3; round++) {
        const backend_question_t questions[4] = {
            question_of("hits fall", RUDDER_ANSWER_SCORE), question_of("hits fall", RUDDER_ANSWER_SCORE),
            question_of("hits rise", RUDDER_ANSWER_SCORE), question_of("hits fall", RUDDER_ANSWER_JSON)};
        rudder_answer_t answers[4];
        rudder_status_t statuses[4];
        memo_ask(memo, &oracle_backend, &oracle, questions, 4, answers, statuses);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(statuses[i], RUDDER_OK);
            assert_true(answers[i].margin == oracle_margin(&questions[i]));
            assert_int_equal(answers[i].tokens, round == 0 ? questions[i].text_bytes : 0);
        }
        assert_int_equal(oracle.questions, 3);
        assert_int_equal(oracle.rounds, 1);
    }
    free(memo);
}

/* More questions than places: whatever was pushed out, answers stay those of the question. */
static void test_never_mixed_up(void **state)
{
    memo_t *memo = calloc(1, sizeof *memo);
    oracle_t oracle = {0};
    (void)state;
    assert_non_null(memo);
    for (int i = 0; i < 20000; i++) {
        char text[700];
        const int n = snprintf(text, sizeof text, "%0*d", 1 + rand() % 600, rand() % 500);
        const backend_question_t question = {i % 2 ? RUDDER_ANSWER_JSON : RUDDER_ANSWER_SCORE, text, n};
        rudder_answer_t answer;
        rudder_status_t status;
        memo_ask(memo, &oracle_backend, &oracle, &question, 1, &answer, &status);
        assert_int_equal(status, RUDDER_OK);
        assert_true(answer.margin == oracle_margin(&question));
    }
    free(memo);
}

static void test_failures_are_not_kept(void **state)
{
    memo_t *memo = calloc(1, sizeof *memo);
    oracle_t oracle = {.failing = 1};
    const backend_question_t question = question_of("hits fall", RUDDER_ANSWER_SCORE);
    rudder_answer_t answer;
    rudder_status_t status;
    (void)state;
    assert_non_null(memo);
    memo_ask(memo, &oracle_backend, &oracle, &question, 1, &answer, &status);
    assert_int_equal(status, RUDDER_E_AGENT);
    oracle.failing = 0;
    memo_ask(memo, &oracle_backend, &oracle, &question, 1, &answer, &status);
    assert_int_equal(status, RUDDER_OK);
    assert_int_equal(oracle.questions, 2);
    free(memo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_words_once),
        cmocka_unit_test(test_never_mixed_up),
        cmocka_unit_test(test_failures_are_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
