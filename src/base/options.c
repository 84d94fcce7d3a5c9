/*
 * The command line from one table. Names are compared with '_' read as '-', so that DistDGL's habits work; whatever is
 * not understood is an error that names the nearest thing that is: an option without effect is worse than a stop.
 */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "base/text.h"

enum { OPTION_NAME_MAX = 63, OPTION_CANDIDATES_MAX = 256, OPTION_WIDTH_MAX = 100, OPTION_COLUMN = 30 };

/* ---- names ---- */

static char option_fold(char c)
{
    return c == '_' ? '-' : c;
}

/* Whether the n bytes at a are the name b, '-' and '_' alike. */
static int option_same(const char *a, size_t n, const char *b, size_t m)
{
    if (n != m) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (option_fold(a[i]) != option_fold(b[i])) {
            return 0;
        }
    }
    return 1;
}

/* Steps through a list with separators: returns the next item and its length, NULL at the end. */
static const char *option_item(const char **list, char separator, size_t *length)
{
    const char *item = *list;
    if (item == NULL) {
        return NULL;
    }
    const char *end = strchr(item, separator);
    *length = end != NULL ? (size_t)(end - item) : strlen(item);
    *list = end != NULL ? end + 1 : NULL;
    return item;
}

static int option_named(const option_spec_t *spec, const char *name, size_t n)
{
    const char *aliases = spec->aliases, *alias;
    size_t length;
    if (option_same(name, n, spec->name, strlen(spec->name))) {
        return 1;
    }
    while ((alias = option_item(&aliases, ',', &length)) != NULL) {
        if (option_same(name, n, alias, length)) {
            return 1;
        }
    }
    return 0;
}

/* Finds "name", or "no-name" of a flag (then *negated is 1). */
static const option_spec_t *option_find(const option_command_t *command, const char *name, size_t n, int *negated)
{
    *negated = 0;
    for (const option_spec_t *spec = command->options; spec->name != NULL; spec++) {
        if (spec->type != OPTION_HEADING && option_named(spec, name, n)) {
            return spec;
        }
    }
    for (const option_spec_t *spec = command->options; spec->name != NULL && n > 3; spec++) {
        if (spec->type == OPTION_FLAG && option_same(name, 3, "no-", 3) && option_named(spec, name + 3, n - 3)) {
            *negated = 1;
            return spec;
        }
    }
    return NULL;
}

static const option_spec_t *option_find_letter(const option_command_t *command, char letter)
{
    for (const option_spec_t *spec = command->options; spec->name != NULL; spec++) {
        if (spec->type != OPTION_HEADING && spec->letter == letter && letter != '\0') {
            return spec;
        }
    }
    return NULL;
}

static rudder_status_t option_unknown(const option_command_t *command, const char *name, size_t n,
                                      rudder_error_t *error)
{
    char names[OPTION_CANDIDATES_MAX][OPTION_NAME_MAX + 1];
    const char *candidates[OPTION_CANDIDATES_MAX];
    char word[OPTION_NAME_MAX + 1];
    int32_t count = 0;
    for (const option_spec_t *spec = command->options; spec->name != NULL; spec++) {
        const char *aliases = spec->aliases, *item = spec->name;
        size_t length = strlen(item);
        for (; spec->type != OPTION_HEADING && item != NULL; item = option_item(&aliases, ',', &length)) {
            for (int negated = 0; negated <= (spec->type == OPTION_FLAG) && count < OPTION_CANDIDATES_MAX; negated++) {
                snprintf(names[count], sizeof names[count], "%s%.*s", negated ? "no-" : "", (int)length, item);
                candidates[count] = names[count];
                count++;
            }
        }
    }
    if (count < OPTION_CANDIDATES_MAX) {
        candidates[count++] = "help";
    }
    snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), name);
    for (char *c = word; *c != '\0'; c++) {
        *c = option_fold(*c);
    }
    const char *nearest = n <= OPTION_NAME_MAX ? text_nearest(word, candidates, count) : NULL;
    if (nearest != NULL) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "unknown option --%.*s; did you mean --%s?", (int)n, name, nearest);
    }
    return RUDDER_FAIL(error, RUDDER_E_USAGE, "unknown option --%.100s; \"rudder %s --help\" lists them", word,
                       command->name);
}

/* ---- values ---- */

static void *option_field(const option_spec_t *spec, void *values)
{
    return (char *)values + spec->offset;
}

static int64_t option_limit(double limit)
{
    return limit >= 0x1p63 ? INT64_MAX : limit <= -0x1p63 ? INT64_MIN : (int64_t)limit;
}

static rudder_status_t option_set_choice(const option_spec_t *spec, const char *text, const char *what, int *choice,
                                         rudder_error_t *error)
{
    const char *list = spec->choices, *item;
    size_t length;
    for (int i = 0; (item = option_item(&list, '|', &length)) != NULL; i++) {
        if (option_same(text, strlen(text), item, length)) {
            *choice = i;
            return RUDDER_OK;
        }
    }
    return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected one of %s, found \"%s\"", what, spec->choices, text);
}

static rudder_status_t option_set_flag(const char *text, const char *what, int *flag, rudder_error_t *error)
{
    static const char *const words[] = {"0", "1", "no", "yes", "false", "true", "off", "on"};
    for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *flag = i % 2;
            return RUDDER_OK;
        }
    }
    return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected yes or no, found \"%s\"", what, text);
}

/* Reads text into the field; `what` is how the option was named ("--epochs", "RUDDER_EPOCHS"). */
static rudder_status_t option_set(const option_spec_t *spec, const char *text, const char *what, void *values,
                                  rudder_error_t *error)
{
    void *field = option_field(spec, values);
    const int limited = spec->low < spec->high;
    switch (spec->type) {
    case OPTION_STRING:
        *(const char **)field = text;
        return RUDDER_OK;
    case OPTION_INT:
        return text_int(text, what, limited ? option_limit(spec->low) : INT64_MIN,
                        limited ? option_limit(spec->high) : INT64_MAX, field, error);
    case OPTION_FLOAT:
        return text_float(text, what, limited ? spec->low : -__DBL_MAX__, limited ? spec->high : __DBL_MAX__, field,
                          error);
    case OPTION_FLAG:
        return option_set_flag(text, what, field, error);
    case OPTION_CHOICE:
        return option_set_choice(spec, text, what, field, error);
    case OPTION_BYTES:
        return text_bytes(text, what, field, error);
    case OPTION_SECONDS:
        return text_seconds(text, what, field, error);
    case OPTION_HEADING:
        break;
    }
    return RUDDER_FAIL(error, RUDDER_E_INTERNAL, "%s: a heading has no value", what);
}

static void option_environment_name(const option_spec_t *spec, char name[OPTION_NAME_MAX + 8])
{
    int n = snprintf(name, OPTION_NAME_MAX + 8, "RUDDER_%.*s", OPTION_NAME_MAX, spec->name);
    for (int i = 0; i < n; i++) {
        name[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
    }
}

/* Defaults, then environment. An empty variable counts as unset. */
static rudder_status_t options_preset(const option_command_t *command, void *values, rudder_error_t *error)
{
    for (const option_spec_t *spec = command->options; spec->name != NULL; spec++) {
        char name[OPTION_NAME_MAX + 8];
        if (spec->type == OPTION_HEADING) {
            continue;
        }
        if (spec->fallback != NULL) {
            RUDDER_TRY(option_set(spec, spec->fallback, spec->name, values, error));
        } else if (spec->type == OPTION_STRING) {
            *(const char **)option_field(spec, values) = NULL;
        } else if (spec->type == OPTION_FLAG || spec->type == OPTION_CHOICE) {
            *(int *)option_field(spec, values) = spec->type == OPTION_FLAG ? 0 : -1;
        }
        option_environment_name(spec, name);
        const char *text = getenv(name);
        if (text != NULL && text[0] != '\0') {
            RUDDER_TRY(option_set(spec, text, name, values, error));
        }
    }
    return RUDDER_OK;
}

/* ---- the command line ---- */

typedef struct option_reader {
    const option_command_t *command;
    int argc;
    char **argv;
    int next; /* the argument to look at */
    void *values;
} option_reader_t;

/* A following argument is a value unless it looks like an option; "-" and numbers below 0 do not. */
static int option_is_value(const char *text)
{
    return text != NULL && (text[0] != '-' || text[1] == '\0' || text[1] == '.' || isdigit((unsigned char)text[1]));
}

static rudder_status_t option_take_value(option_reader_t *reader, const option_spec_t *spec, const char *what,
                                         rudder_error_t *error)
{
    const char *text = reader->next < reader->argc ? reader->argv[reader->next] : NULL;
    if (!option_is_value(text)) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected a value (%s), found %s%s", what,
                           spec->value != NULL     ? spec->value
                           : spec->choices != NULL ? spec->choices
                                                   : "VALUE",
                           text != NULL ? text : "nothing",
                           text != NULL ? "; a value that begins with a dash is written with =" : "");
    }
    reader->next++;
    return option_set(spec, text, what, reader->values, error);
}

static rudder_status_t option_read_long(option_reader_t *reader, const char *argument, rudder_error_t *error)
{
    char what[OPTION_NAME_MAX + 8];
    const char *name = argument + 2;
    const size_t n = strcspn(name, "=");
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    int negated;
    const option_spec_t *spec = option_find(reader->command, name, n, &negated);
    if (spec == NULL) {
        return option_unknown(reader->command, name, n, error);
    }
    snprintf(what, sizeof what, "--%.*s", (int)n, name);
    if (value != NULL) {
        return negated ? RUDDER_FAIL(error, RUDDER_E_USAGE, "%s: expected no value, found \"%s\"", what, value)
                       : option_set(spec, value, what, reader->values, error);
    }
    if (spec->type == OPTION_FLAG) {
        *(int *)option_field(spec, reader->values) = !negated;
        return RUDDER_OK;
    }
    return option_take_value(reader, spec, what, error);
}

/* "-o value", "-ovalue", "-v", "-vo value". */
static rudder_status_t option_read_letters(option_reader_t *reader, const char *argument, rudder_error_t *error)
{
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        const char what[3] = {'-', *letter, '\0'};
        const option_spec_t *spec = option_find_letter(reader->command, *letter);
        if (spec == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_USAGE, "unknown option %s; \"rudder %s --help\" lists them", argument,
                               reader->command->name);
        }
        if (spec->type != OPTION_FLAG) {
            return letter[1] != '\0' ? option_set(spec, letter + 1, what, reader->values, error)
                                     : option_take_value(reader, spec, what, error);
        }
        *(int *)option_field(spec, reader->values) = 1;
    }
    return RUDDER_OK;
}

static int option_asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return 1;
        }
    }
    return 0;
}

/* "rudder train [options] PARTS" */
static void option_usage(const option_command_t *command, char *text, size_t size)
{
    const int has_arguments = command->arguments != NULL && command->arguments[0] != '\0';
    snprintf(text, size, "rudder %s%s%s%s", command->name, has_arguments ? " " : "",
             has_arguments ? command->arguments : "", command->options->name != NULL ? " [options]" : "");
}

rudder_status_t options_parse(const option_command_t *command, int argc, char **argv, void *values,
                              const char **arguments, int32_t *n_arguments, int *help, rudder_error_t *error)
{
    option_reader_t reader = {.command = command, .argc = argc, .argv = argv, .next = 1, .values = values};
    char usage[200];
    int32_t count = 0;
    int only_arguments = 0;

    *n_arguments = 0;
    *help = option_asks_help(argc, argv);
    if (*help) {
        return RUDDER_OK;
    }
    option_usage(command, usage, sizeof usage);
    RUDDER_TRY(options_preset(command, values, error));
    while (reader.next < argc) {
        const char *argument = argv[reader.next++];
        if (!only_arguments && strcmp(argument, "--") == 0) {
            only_arguments = 1;
        } else if (!only_arguments && argument[0] == '-' && argument[1] == '-') {
            RUDDER_TRY(option_read_long(&reader, argument, error));
        } else if (!only_arguments && argument[0] == '-' && argument[1] != '\0') {
            RUDDER_TRY(option_read_letters(&reader, argument, error));
        } else if (count == command->max_arguments) {
            return RUDDER_FAIL(error, RUDDER_E_USAGE, "unexpected argument \"%s\"; usage: %s", argument, usage);
        } else {
            arguments[count++] = argument;
        }
    }
    if (count < command->min_arguments) {
        return RUDDER_FAIL(error, RUDDER_E_USAGE, "expected %s, found %s; usage: %s", command->arguments,
                           count == 0 ? "nothing" : arguments[count - 1], usage);
    }
    *n_arguments = count;
    return RUDDER_OK;
}

/* ---- help ---- */

/* Where the next line of text ends so that it fits in so many columns; *next is where the line after it begins. */
static size_t help_break(const char *text, int32_t columns, const char **next)
{
    size_t n = 0, fits = 0;
    int32_t used = 0;
    for (; text[n] != '\0' && text[n] != '\n'; n++) {
        if (text[n] == ' ' && n > 0) {
            fits = n;
        }
        used += ((unsigned char)text[n] & 0xC0) != 0x80;
        if (used > columns && fits > 0) {
            *next = text + fits + strspn(text + fits, " ");
            return fits;
        }
    }
    *next = text[n] == '\n' ? text + n + 1 : text + n;
    return n;
}

/* Prints text from `column` on, wrapped at width, with following lines indented as well. The first line's indent is there. */
static void help_wrap(FILE *file, const char *text, int32_t column, int32_t width)
{
    const char *next = text;
    while (*text != '\0') {
        const size_t n = help_break(text, width - column, &next);
        fprintf(file, "%.*s\n", (int)n, text);
        text = next;
        if (*text != '\0') {
            fprintf(file, "%*s", (int)column, "");
        }
    }
}

/* Paragraphs: lines that begin with a space are examples and stay as they are. */
static void help_text(FILE *file, const char *text, int32_t width)
{
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        if (n == 0 || text[0] == ' ') {
            fprintf(file, "%.*s\n", (int)n, text);
        } else {
            char *line = strndup(text, n);
            if (line != NULL) {
                help_wrap(file, line, 0, width);
                free(line);
            }
        }
        text += text[n] == '\n' ? n + 1 : n;
    }
}

/* "25%; environment RUDDER_CAPACITY; also --buffer" */
static void help_facts(FILE *file, const option_spec_t *spec)
{
    char name[OPTION_NAME_MAX + 8];
    const char *aliases = spec->aliases, *alias;
    size_t length;
    if (spec->help != NULL && spec->help[0] != '\0') {
        fprintf(file, "%s ", spec->help);
    }
    fputc('[', file);
    if (spec->type == OPTION_CHOICE && spec->value != NULL) {
        fprintf(file, "one of %s; ", spec->choices);
    }
    if (spec->type == OPTION_FLAG) {
        int on = 0;
        (void)option_set_flag(spec->fallback != NULL ? spec->fallback : "no", "", &on, NULL);
        fprintf(file, "default %s; ", on ? "yes" : "no");
    } else if (spec->fallback != NULL) {
        fprintf(file, "default %s; ", spec->fallback[0] != '\0' ? spec->fallback : "\"\"");
    }
    option_environment_name(spec, name);
    fputs(name, file);
    for (const char *before = NULL; (alias = option_item(&aliases, ',', &length)) != NULL; before = alias) {
        if (before == NULL || !option_same(alias, length, before, strcspn(before, ","))) {
            fprintf(file, "%s--%.*s", before == NULL ? "; also " : ", ", (int)length, alias);
        }
    }
    fputc(']', file);
}

static void help_option(FILE *file, const option_spec_t *spec, int32_t width)
{
    char left[256], letter[8] = "    ";
    char *facts = NULL;
    size_t facts_size = 0;
    const char *value = spec->value != NULL        ? spec->value
                        : spec->choices != NULL    ? spec->choices
                        : spec->type == OPTION_INT ? "N"
                                                   : "VALUE";
    if (spec->letter != '\0') {
        snprintf(letter, sizeof letter, "-%c, ", spec->letter);
    }
    if (spec->type == OPTION_FLAG) {
        snprintf(left, sizeof left, "  %s--[no-]%s", letter, spec->name);
    } else {
        snprintf(left, sizeof left, "  %s--%s %s", letter, spec->name, value);
    }
    FILE *memory = open_memstream(&facts, &facts_size);
    if (memory == NULL) {
        return;
    }
    help_facts(memory, spec);
    fclose(memory);
    const int32_t used = text_columns(left);
    const int apart = used > OPTION_COLUMN - 2;
    fprintf(file, "%s%s%*s", left, apart ? "\n" : "", (int)(apart ? OPTION_COLUMN : OPTION_COLUMN - used), "");
    help_wrap(file, facts, OPTION_COLUMN, width);
    free(facts);
}

void options_help(const option_command_t *command, FILE *file, int32_t width)
{
    char usage[200];
    if (width <= 0) {
        width = log_terminal_columns(fileno(file));
        width = width > 0 ? width : 80;
    }
    width = width > OPTION_WIDTH_MAX ? OPTION_WIDTH_MAX : width < OPTION_COLUMN * 2 ? OPTION_COLUMN * 2 : width;
    option_usage(command, usage, sizeof usage);
    fprintf(file, "usage: %s\n\n", usage);
    help_wrap(file, command->summary, 0, width);
    if (command->text != NULL) {
        fputc('\n', file);
        help_text(file, command->text, width);
    }
    if (command->options->name != NULL && command->options->type != OPTION_HEADING) {
        fprintf(file, "\nOptions:\n");
    }
    for (const option_spec_t *spec = command->options; spec->name != NULL; spec++) {
        if (spec->type == OPTION_HEADING) {
            fprintf(file, "\n%s:\n", spec->name);
        } else {
            help_option(file, spec, width);
        }
    }
}

void options_echo(const option_command_t *command, const void *values, json_t *json)
{
    for (const option_spec_t *spec = command->options; spec->name != NULL; spec++) {
        const void *field = (const char *)values + spec->offset;
        const char *list = spec->choices, *item = NULL;
        char choice[OPTION_NAME_MAX + 1];
        size_t length = 0;
        switch (spec->type) {
        case OPTION_STRING:
            json_string(json, spec->name, *(const char *const *)field);
            break;
        case OPTION_INT:
        case OPTION_BYTES:
            json_int(json, spec->name, *(const int64_t *)field);
            break;
        case OPTION_FLOAT:
        case OPTION_SECONDS:
            json_double(json, spec->name, *(const double *)field);
            break;
        case OPTION_FLAG:
            json_bool(json, spec->name, *(const int *)field);
            break;
        case OPTION_CHOICE:
            for (int i = 0; i <= *(const int *)field; i++) {
                item = option_item(&list, '|', &length);
            }
            snprintf(choice, sizeof choice, "%.*s", (int)length, item != NULL ? item : "");
            json_string(json, spec->name, item != NULL ? choice : NULL);
            break;
        case OPTION_HEADING:
            break;
        }
    }
}
