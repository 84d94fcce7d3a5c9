/* The command line: every way to say an option, and every slip with the message it gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/text.h"

typedef struct values {
    const char *run_dir;
    int64_t epochs, capacity, untouched;
    double lr, latency;
    int overlap, quiet, order;
} values_t;

static const option_spec_t specs[] = {
    {.name = "Training", .type = OPTION_HEADING},
    {"epochs", 'e', OPTION_INT, offsetof(values_t, epochs), "5", "N", "Passes over the training nodes.", 1, 1000, NULL,
     "num-epochs,n_epochs"},
    {"lr", 0, OPTION_FLOAT, offsetof(values_t, lr), "0.01", "RATE",
     "Learning rate of Adam. A long text that has to be broken into several lines, each of which begins at the same "
     "column, so that the eye finds it.",
     0, 10, NULL, NULL},
    {"seed-order", 0, OPTION_CHOICE, offsetof(values_t, order), "shuffled", NULL, "Order of seeds.", 0, 0,
     "shuffled|community|class", NULL},
    {"overlap", 0, OPTION_FLAG, offsetof(values_t, overlap), "yes", NULL, "Load while training.", 0, 0, NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, offsetof(values_t, quiet), NULL, NULL, "Say less.", 0, 0, NULL, NULL},
    {.name = "Files", .type = OPTION_HEADING},
    {"run-dir", 'o', OPTION_STRING, offsetof(values_t, run_dir), NULL, "DIR", "Where results go.", 0, 0, NULL, NULL},
    {"capacity", 0, OPTION_BYTES, offsetof(values_t, capacity), "64MiB", "BYTES", "Size of the buffer.", 0, 0, NULL,
     NULL},
    {"latency", 0, OPTION_SECONDS, offsetof(values_t, latency), "50us", "TIME", "Of the link.", 0, 0, NULL, NULL},
    {"untouched", 0, OPTION_INT, offsetof(values_t, untouched), NULL, "N", "Has no default.", 0, 0, NULL, NULL},
    {.name = NULL},
};
static const option_command_t command = {
    "train", "PARTS [MORE]", "Trains.", "A paragraph.\n\n  rudder train parts\n", 1, 2, specs};

typedef struct outcome {
    rudder_status_t status;
    rudder_error_t error;
    values_t values;
    const char *arguments[2];
    int32_t n_arguments;
    int help;
} outcome_t;

/* Parses "train" and a line that is split at spaces. */
static outcome_t parse(const char *line)
{
    static char words[512];
    char *argv[32] = {(char *)"train"};
    int argc = 1;
    outcome_t outcome = {.values = {.untouched = 123}};
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    outcome.status = options_parse(&command, argc, argv, &outcome.values, outcome.arguments, &outcome.n_arguments,
                                   &outcome.help, &outcome.error);
    return outcome;
}

static void expect_error(const char *line, const char *text)
{
    const outcome_t outcome = parse(line);
    assert_int_equal(outcome.status, RUDDER_E_USAGE);
    assert_string_equal(outcome.error.text, text);
}

static void defaults(void **state)
{
    (void)state;
    const outcome_t outcome = parse("parts");
    assert_int_equal(outcome.status, RUDDER_OK);
    assert_int_equal(outcome.n_arguments, 1);
    assert_string_equal(outcome.arguments[0], "parts");
    assert_int_equal(outcome.values.epochs, 5);
    assert_true(outcome.values.lr == 0.01);
    assert_int_equal(outcome.values.order, 0);
    assert_int_equal(outcome.values.overlap, 1);
    assert_int_equal(outcome.values.quiet, 0);
    assert_null(outcome.values.run_dir);
    assert_int_equal(outcome.values.capacity, 64 << 20);
    assert_true(outcome.values.latency == 50e-6);
    assert_int_equal(outcome.values.untouched, 123);
    assert_int_equal(outcome.help, 0);
}

static void every_way_to_say_an_option(void **state)
{
    static const char *const sevens[] = {
        "parts --epochs 7",   "--epochs=7 parts",           "parts --num-epochs 7", "parts --num_epochs=7",
        "parts --n-epochs 7", "parts --n_epochs 7",         "parts -e 7",           "parts -e7",
        "-qe7 parts",         "parts --epochs 3 --epochs 7"};
    (void)state;
    for (size_t i = 0; i < sizeof sevens / sizeof sevens[0]; i++) {
        const outcome_t outcome = parse(sevens[i]);
        assert_int_equal(outcome.status, RUDDER_OK);
        assert_int_equal(outcome.values.epochs, 7);
        assert_int_equal(outcome.n_arguments, 1);
    }
    outcome_t outcome = parse("a --no-overlap -q --seed_order community --run_dir=x=y b");
    assert_int_equal(outcome.status, RUDDER_OK);
    assert_int_equal(outcome.values.overlap, 0);
    assert_int_equal(outcome.values.quiet, 1);
    assert_int_equal(outcome.values.order, 1);
    assert_string_equal(outcome.values.run_dir, "x=y");
    assert_int_equal(outcome.n_arguments, 2);
    assert_string_equal(outcome.arguments[1], "b");
    assert_int_equal(parse("a --overlap=off").values.overlap, 0);
    assert_int_equal(parse("a --no-overlap --overlap").values.overlap, 1);
    outcome = parse("--run-dir - -- --epochs");
    assert_int_equal(outcome.status, RUDDER_OK);
    assert_string_equal(outcome.values.run_dir, "-");
    assert_string_equal(outcome.arguments[0], "--epochs");
    assert_int_equal(parse("a --untouched -4294967297").values.untouched, INT64_C(-4294967297));
}

static void slips_name_what_was_meant(void **state)
{
    (void)state;
    expect_error("parts --epoch 5", "unknown option --epoch; did you mean --epochs?");
    expect_error("parts --epoch=5", "unknown option --epoch; did you mean --epochs?");
    expect_error("parts --run_dri x", "unknown option --run_dri; did you mean --run-dir?");
    expect_error("parts --num-epoch 5", "unknown option --num-epoch; did you mean --num-epochs?");
    expect_error("parts --no-overlp", "unknown option --no-overlp; did you mean --no-overlap?");
    expect_error("parts --hlep", "unknown option --hlep; did you mean --help?");
    expect_error("parts --momentum 1", "unknown option --momentum; \"rudder train --help\" lists them");
    expect_error("parts --no-epochs", "unknown option --no-epochs; did you mean --num-epochs?");
    expect_error("parts -x", "unknown option -x; \"rudder train --help\" lists them");
    expect_error("parts --Training 1", "unknown option --Training; \"rudder train --help\" lists them");
    expect_error("parts --=1", "unknown option --; \"rudder train --help\" lists them");
}

static void values_are_checked(void **state)
{
    (void)state;
    expect_error("parts --epochs 0", "--epochs: expected an integer from 1 to 1000, found \"0\"");
    expect_error("parts --n_epochs 1001", "--n_epochs: expected an integer from 1 to 1000, found \"1001\"");
    expect_error("parts -e five", "-e: expected an integer from 1 to 1000, found \"five\"");
    expect_error("parts --epochs=", "--epochs: expected an integer from 1 to 1000, found \"\"");
    expect_error("parts --lr -1", "--lr: expected a number from 0 to 10, found \"-1\"");
    expect_error("parts --lr nan", "--lr: expected a number from 0 to 10, found \"nan\"");
    expect_error("parts --seed-order random",
                 "--seed-order: expected one of shuffled|community|class, found \"random\"");
    expect_error("parts --seed-order shuffle",
                 "--seed-order: expected one of shuffled|community|class, found \"shuffle\"");
    expect_error("parts --quiet=maybe", "--quiet: expected yes or no, found \"maybe\"");
    expect_error("parts --no-quiet=yes", "--no-quiet: expected no value, found \"yes\"");
    expect_error("parts --epochs", "--epochs: expected a value (N), found nothing");
    expect_error("parts --run-dir --quiet",
                 "--run-dir: expected a value (DIR), found --quiet; a value that begins with "
                 "a dash is written with =");
    expect_error("parts -o", "-o: expected a value (DIR), found nothing");
}

static void arguments_are_counted(void **state)
{
    (void)state;
    expect_error("", "expected PARTS [MORE], found nothing; usage: rudder train PARTS [MORE] [options]");
    expect_error("a b c", "unexpected argument \"c\"; usage: rudder train PARTS [MORE] [options]");
    expect_error("a b -- --c", "unexpected argument \"--c\"; usage: rudder train PARTS [MORE] [options]");
}

static void the_environment_is_as_strict(void **state)
{
    (void)state;
    setenv("RUDDER_EPOCHS", "9", 1);
    setenv("RUDDER_SEED_ORDER", "class", 1);
    setenv("RUDDER_OVERLAP", "no", 1);
    setenv("RUDDER_RUN_DIR", "", 1);
    assert_int_equal(parse("parts").values.epochs, 9);
    assert_int_equal(parse("parts").values.order, 2);
    assert_int_equal(parse("parts").values.overlap, 0);
    assert_null(parse("parts").values.run_dir);
    assert_int_equal(parse("parts --epochs 2").values.epochs, 2);
    setenv("RUDDER_EPOCHS", "many", 1);
    expect_error("parts", "RUDDER_EPOCHS: expected an integer from 1 to 1000, found \"many\"");
    unsetenv("RUDDER_EPOCHS");
    unsetenv("RUDDER_SEED_ORDER");
    unsetenv("RUDDER_OVERLAP");
    unsetenv("RUDDER_RUN_DIR");
}

static void help_wins_over_all_slips(void **state)
{
    (void)state;
    assert_int_equal(parse("--help").help, 1);
    assert_int_equal(parse("--epochs nonsense -h --unknown").help, 1);
    assert_int_equal(parse("--epochs nonsense -h --unknown").status, RUDDER_OK);
    assert_int_equal(parse("a -- --help").help, 0);
}

static void help_fits_and_says_all(void **state)
{
    static const int32_t widths[] = {60, 80, 100, 500};
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&text, &size);
        options_help(&command, file, widths[i]);
        fclose(file);
        for (const option_spec_t *spec = specs; spec->name != NULL; spec++) {
            assert_non_null(strstr(text, spec->name));
        }
        assert_non_null(strstr(text, "usage: rudder train PARTS [MORE] [options]\n"));
        assert_non_null(strstr(text, "\n  rudder train parts\n"));
        assert_non_null(strstr(text, "--num-epochs"));
        assert_non_null(strstr(text, "RUDDER_SEED_ORDER"));
        assert_non_null(strstr(text, "--[no-]overlap"));
        assert_non_null(strstr(text, "64MiB"));
        for (char *line = text; *line != '\0';) {
            char *end = strchr(line, '\n');
            *end = '\0';
            assert_true(text_columns(line) <= (widths[i] < 100 ? widths[i] : 100));
            line = end + 1;
        }
        free(text);
    }
}

static void the_echo_can_be_read_back(void **state)
{
    json_t json = {0};
    (void)state;
    outcome_t outcome = parse("parts --epochs 7 --no-overlap --seed-order class -o x");
    json_object(&json, NULL);
    options_echo(&command, &outcome.values, &json);
    json_end_object(&json);
    assert_string_equal(json.text,
                        "{\"epochs\":7,\"lr\":0.01,\"seed-order\":\"class\",\"overlap\":false,\"quiet\":false,"
                        "\"run-dir\":\"x\",\"capacity\":67108864,\"latency\":5e-05,\"untouched\":123}");
    json_free(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_way_to_say_an_option),
        cmocka_unit_test(slips_name_what_was_meant),
        cmocka_unit_test(values_are_checked),
        cmocka_unit_test(arguments_are_counted),
        cmocka_unit_test(the_environment_is_as_strict),
        cmocka_unit_test(help_wins_over_all_slips),
        cmocka_unit_test(help_fits_and_says_all),
        cmocka_unit_test(the_echo_can_be_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
