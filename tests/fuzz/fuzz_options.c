/*
 * Arbitrary command lines and variables of the environment against a table with every type of option. The bytes are cut
 * at NUL into arguments; those that begin with 'E' go into the environment. What is accepted must be within its limits.
 */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

typedef struct values {
    const char *text;
    int64_t number, bytes;
    double share, seconds;
    int flag, choice;
} values_t;

static const option_spec_t specs[] = {
    {.name = "Heading", .type = OPTION_HEADING},
    {"text", 't', OPTION_STRING, offsetof(values_t, text), NULL, "T", "t", 0, 0, NULL, "string"},
    {"number", 'n', OPTION_INT, offsetof(values_t, number), "3", "N", "n", -5, 5, NULL, "num-ber,num_ber"},
    {"share", 's', OPTION_FLOAT, offsetof(values_t, share), "0.5", "S", "s", 0, 1, NULL, NULL},
    {"flag", 'f', OPTION_FLAG, offsetof(values_t, flag), "yes", NULL, "f", 0, 0, NULL, "flagged"},
    {"choice", 'c', OPTION_CHOICE, offsetof(values_t, choice), "a", NULL, "c", 0, 0, "a|bb|ccc", NULL},
    {"bytes", 'b', OPTION_BYTES, offsetof(values_t, bytes), "1KiB", "B", "b", 0, 0, NULL, NULL},
    {"seconds", 'd', OPTION_SECONDS, offsetof(values_t, seconds), "1ms", "D", "d", 0, 0, NULL, NULL},
    {.name = NULL},
};
static const option_command_t command = {"fuzz", "A B", "Fuzzes.", NULL, 0, 2, specs};
static const char *const variables[] = {"RUDDER_TEXT",   "RUDDER_NUMBER", "RUDDER_SHARE",  "RUDDER_FLAG",
                                        "RUDDER_CHOICE", "RUDDER_BYTES",  "RUDDER_SECONDS"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { WORDS = 16, VARIABLES = sizeof variables / sizeof variables[0] };
    char *text = malloc(size + 1), *argv[WORDS + 1] = {(char *)"fuzz"};
    const char *arguments[2];
    values_t values = {0};
    rudder_error_t error = {0};
    int argc = 1, help, n_variables = 0;
    int32_t n_arguments;
    memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; i < VARIABLES; i++) {
        unsetenv(variables[i]);
    }
    for (size_t at = 0; at < size && argc < WORDS; at += strlen(text + at) + 1) {
        if (text[at] == 'E' && n_variables < VARIABLES) {
            setenv(variables[n_variables++], text + at + 1, 1);
        } else {
            argv[argc++] = text + at;
        }
    }
    const rudder_status_t status = options_parse(&command, argc, argv, &values, arguments, &n_arguments, &help, &error);
    if (status != RUDDER_OK) {
        assert(status == RUDDER_E_USAGE && error.status == status && error.text[0] != '\0');
    } else if (!help) {
        json_t json = {0};
        assert(n_arguments >= 0 && n_arguments <= 2);
        assert(values.number >= -5 && values.number <= 5 && values.bytes >= 0);
        assert(values.share >= 0 && values.share <= 1 && values.seconds >= 0 && isfinite(values.seconds));
        assert((values.flag == 0 || values.flag == 1) && values.choice >= 0 && values.choice <= 2);
        json_object(&json, NULL);
        options_echo(&command, &values, &json);
        json_end_object(&json);
        assert(!json.failed && json.depth == 0);
        json_free(&json);
    }
    free(text);
    return 0;
}
