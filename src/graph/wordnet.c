/*
 * WordNet as a graph. The dictionary files are read whole (28 MB) and parsed in place: data.* gives synsets, pointers and
 * glosses, index.* says which synset is the first sense of a word. Formats: the manual pages wndb(5WN), senseidx(5WN).
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/npy.h"
#include "base/rng.h"
#include "graph/csr.h"
#include "graph/files.h"
#include "graph/import.h"
#include "graph/write.h"

enum {
    WORDNET_FILES = 4,
    WORDNET_CLASSES = 45,
    WORDNET_MAX_FILE = 256 << 20,
    WORDNET_MAX_WORD = 64,
    WORDNET_MIN_WORD = 3 /* letters; shorter words are articles, prepositions and chemical elements */
};

static const char *const wordnet_names[WORDNET_FILES] = {"noun", "verb", "adj", "adv"};

/* A word of the index files -> its first sense; open addressing, keys point into the files. */
typedef struct wordnet_map {
    const char **word;
    int32_t *length, *node;
    uint64_t mask;
} wordnet_map_t;

typedef struct wordnet {
    char path[WORDNET_FILES][FILES_MAX_PATH]; /* of data.* */
    char *data[WORDNET_FILES], *index[WORDNET_FILES];
    int64_t first[WORDNET_FILES + 1]; /* node numbers by file */
    int64_t n;
    int64_t *offset;    /* [n] of a synset in its file, ascending there: how pointers name it */
    const char **line;  /* [n] */
    const char **gloss; /* [n] */
    int32_t *label;     /* [n] */
    wordnet_map_t map;
    csr_pairs_t edges;
} wordnet_t;

/* ---- fields -------------------------------------------------------------------------------------------------------- */

/* The next field of a line, NULL at its end. Fields stand between spaces. */
static const char *wordnet_field(const char **at, int32_t *length)
{
    while (**at == ' ') {
        ++*at;
    }
    const char *start = *at;
    while (**at != ' ' && **at != '\n' && **at != '\0') {
        ++*at;
    }
    *length = (int32_t)(*at - start);
    return *length > 0 ? start : NULL;
}

static int wordnet_number(const char **at, int base, int64_t *value)
{
    int32_t length;
    const char *field = wordnet_field(at, &length);
    char *end;
    if (field == NULL || length > 8) {
        return 0;
    }
    *value = strtol(field, &end, base);
    return end == field + length && *value >= 0;
}

static rudder_status_t wordnet_bad(const char *path, const char *text, const char *line, const char *expected,
                                   rudder_error_t *error)
{
    int64_t number = 1;
    for (const char *p = text; p < line; p++) {
        number += *p == '\n';
    }
    return RUDDER_FAIL(error, RUDDER_E_DATA, "%s:%" PRId64 ": expected %s, found \"%.*s\"", path, number, expected,
                       (int)(strcspn(line, "\n") < 60 ? strcspn(line, "\n") : 60), line);
}

static const char *wordnet_next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end != NULL ? end + 1 : line + strlen(line);
}

/* ---- synsets ------------------------------------------------------------------------------------------------------- */

static rudder_status_t wordnet_read_file(const char *source, const char *kind, int f, char **text, char *path,
                                         rudder_error_t *error)
{
    char name[16];
    int64_t n;
    snprintf(name, sizeof name, "%s.%s", kind, wordnet_names[f]);
    RUDDER_TRY(files_join(source, name, path, error));
    RUDDER_TRY(files_read(path, WORDNET_MAX_FILE, text, &n, error));
    if (n == 0 || strlen(*text) != (size_t)n || (*text)[n - 1] != '\n') {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected lines of text, found %s", path,
                           n == 0 ? "an empty file" : "a file that is cut off or binary");
    }
    return RUDDER_OK;
}

static rudder_status_t wordnet_read_synset(const wordnet_t *w, int f, int64_t v, const char *line,
                                           rudder_error_t *error)
{
    const char *at = line, *end = wordnet_next_line(line), *bar;
    int64_t offset, label;
    if (!wordnet_number(&at, 10, &offset) || offset != line - w->data[f]) {
        return wordnet_bad(w->path[f], w->data[f], line, "a synset that starts with its own offset", error);
    }
    if (!wordnet_number(&at, 10, &label) || label >= WORDNET_CLASSES) {
        return wordnet_bad(w->path[f], w->data[f], line, "a lexicographer file in 00..44", error);
    }
    bar = memchr(line, '|', (size_t)(end - line));
    w->offset[v] = offset;
    w->label[v] = (int32_t)label;
    w->line[v] = line;
    w->gloss[v] = bar != NULL ? bar + 1 : end - 1;
    return RUDDER_OK;
}

static int wordnet_is_licence(const char *line)
{
    return line[0] == ' ';
}

static rudder_status_t wordnet_read_data(wordnet_t *w, const char *source, rudder_error_t *error)
{
    for (int f = 0; f < WORDNET_FILES; f++) {
        RUDDER_TRY(wordnet_read_file(source, "data", f, &w->data[f], w->path[f], error));
        for (const char *line = w->data[f]; *line != '\0'; line = wordnet_next_line(line)) {
            w->n += !wordnet_is_licence(line);
        }
        w->first[f + 1] = w->n;
    }
    const size_t n = (size_t)w->n + 1;
    w->offset = malloc(n * sizeof *w->offset);
    w->line = malloc(n * sizeof *w->line);
    w->gloss = malloc(n * sizeof *w->gloss);
    w->label = malloc(n * sizeof *w->label);
    if (w->offset == NULL || w->line == NULL || w->gloss == NULL || w->label == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId64 " synsets", w->n);
    }
    int64_t v = 0;
    for (int f = 0; f < WORDNET_FILES; f++) {
        for (const char *line = w->data[f]; *line != '\0'; line = wordnet_next_line(line)) {
            if (!wordnet_is_licence(line)) {
                RUDDER_TRY(wordnet_read_synset(w, f, v++, line, error));
            }
        }
    }
    if (w->n == 0) {
        return RUDDER_FAIL(error, RUDDER_E_DATA, "%s: expected synsets, found none", source);
    }
    return RUDDER_OK;
}

/* The node at an offset of a part of speech; -1: none. */
static int64_t wordnet_node(const wordnet_t *w, char part_of_speech, int64_t offset)
{
    const int f = part_of_speech == 'n'                            ? 0
                  : part_of_speech == 'v'                          ? 1
                  : part_of_speech == 'a' || part_of_speech == 's' ? 2
                  : part_of_speech == 'r'                          ? 3
                                                                   : -1;
    int64_t low = f < 0 ? 0 : w->first[f], high = f < 0 ? 0 : w->first[f + 1];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (w->offset[middle] < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return f >= 0 && low < w->first[f + 1] && w->offset[low] == offset ? low : -1;
}

/* ---- words --------------------------------------------------------------------------------------------------------- */

static uint64_t wordnet_hash(const char *word, int32_t length)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (int32_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3u;
    }
    return rng_mix(hash);
}

/* The slot of a word, or the free one where it would stand. */
static uint64_t wordnet_slot(const wordnet_map_t *map, const char *word, int32_t length)
{
    uint64_t slot = wordnet_hash(word, length) & map->mask;
    while (map->word[slot] != NULL &&
           (map->length[slot] != length || memcmp(map->word[slot], word, (size_t)length) != 0)) {
        slot = (slot + 1) & map->mask;
    }
    return slot;
}

/* A line of index.*: lemma pos synsets p_cnt symbol... senses tagged offset...; the first offset is the first sense. */
static int wordnet_read_index_line(wordnet_t *w, const char *line)
{
    const char *at = line;
    int32_t length, skipped;
    int64_t synsets, symbols, offset;
    const char *lemma = wordnet_field(&at, &length), *pos = wordnet_field(&at, &skipped);
    if (lemma == NULL || pos == NULL || !wordnet_number(&at, 10, &synsets) || !wordnet_number(&at, 10, &symbols)) {
        return 0;
    }
    for (int64_t i = 0; i < symbols + 2; i++) {
        if (wordnet_field(&at, &skipped) == NULL) {
            return 0;
        }
    }
    if (!wordnet_number(&at, 10, &offset)) {
        return 0;
    }
    const int64_t node = wordnet_node(w, *pos, offset);
    const uint64_t slot = wordnet_slot(&w->map, lemma, length);
    if (w->map.word[slot] == NULL) { /* else a noun of that name came first */
        w->map.word[slot] = lemma;
        w->map.length[slot] = length;
        w->map.node[slot] = (int32_t)node;
    }
    return node >= 0;
}

static rudder_status_t wordnet_read_index(wordnet_t *w, const char *source, rudder_error_t *error)
{
    char path[WORDNET_FILES][FILES_MAX_PATH];
    uint64_t words = 0, slots = 1024;
    for (int f = 0; f < WORDNET_FILES; f++) {
        RUDDER_TRY(wordnet_read_file(source, "index", f, &w->index[f], path[f], error));
        for (const char *line = w->index[f]; *line != '\0'; line = wordnet_next_line(line)) {
            words++;
        }
    }
    while (slots < 2 * words) {
        slots *= 2;
    }
    w->map = (wordnet_map_t){.word = calloc(slots, sizeof *w->map.word),
                             .length = calloc(slots, sizeof *w->map.length),
                             .node = calloc(slots, sizeof *w->map.node),
                             .mask = slots - 1};
    if (w->map.word == NULL || w->map.length == NULL || w->map.node == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRIu64 " words", words);
    }
    for (int f = 0; f < WORDNET_FILES; f++) {
        for (const char *line = w->index[f]; *line != '\0'; line = wordnet_next_line(line)) {
            if (!wordnet_is_licence(line) && !wordnet_read_index_line(w, line)) {
                return wordnet_bad(path[f], w->index[f], line, "a word with the offset of a synset", error);
            }
        }
    }
    return RUDDER_OK;
}

/*
 * The next word of a text up to its line's end, in lower case: a letter, then letters, hyphens and apostrophes, the last two
 * not at the end. Returns its length, 0 when there is none left; longer words are cut.
 */
static int32_t wordnet_word(const char **at, char word[WORDNET_MAX_WORD])
{
    int32_t n = 0;
    const char *p = *at;
    while (*p != '\n' && *p != '\0' && !((*p | 32) >= 'a' && (*p | 32) <= 'z')) {
        p++;
    }
    for (; ((*p | 32) >= 'a' && (*p | 32) <= 'z') || *p == '-' || *p == '\''; p++) {
        if (n < WORDNET_MAX_WORD) {
            word[n++] = *p >= 'A' && *p <= 'Z' ? (char)(*p | 32) : *p;
        }
    }
    while (n > 0 && (word[n - 1] == '-' || word[n - 1] == '\'')) {
        n--;
    }
    *at = p;
    return n;
}

static int64_t wordnet_lookup(const wordnet_t *w, const char *word, int32_t length)
{
    const uint64_t slot = wordnet_slot(&w->map, word, length);
    return w->map.word[slot] != NULL ? w->map.node[slot] : -1;
}

/* Words that tell how a gloss is built and not what it is about: no mention, no feature. */
static int wordnet_is_stop(const char *word, int32_t length)
{
    static const char *const stops[] = {"and",  "any",    "are", "being", "but",  "can",   "does", "for",   "from",
                                        "have", "having", "its", "more",  "most", "not",   "one",  "other", "some",
                                        "such", "that",   "the", "used",  "very", "which", "who",  "with"};
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        if (strlen(stops[i]) == (size_t)length && memcmp(stops[i], word, (size_t)length) == 0) {
            return 1;
        }
    }
    return length < WORDNET_MIN_WORD;
}

/* The first sense of a word as it stands, or of what plural, past and participle endings leave of it; -1: none. */
static int64_t wordnet_sense(const wordnet_t *w, char word[WORDNET_MAX_WORD], int32_t length)
{
    static const struct {
        const char *ending, *instead;
        int32_t least; /* letters of the word */
    } rules[] = {{"", "", 0},   {"s", "", 4},   {"es", "", 4},  {"ies", "y", 5},
                 {"ed", "", 4}, {"ed", "e", 4}, {"ing", "", 5}, {"ing", "e", 5}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        char form[WORDNET_MAX_WORD + 2];
        const int32_t cut = (int32_t)strlen(rules[i].ending), stem = length - cut;
        if (length < rules[i].least || memcmp(word + stem, rules[i].ending, (size_t)cut) != 0) {
            continue;
        }
        memcpy(form, word, (size_t)stem);
        strcpy(form + stem, rules[i].instead);
        const int64_t node = wordnet_lookup(w, form, stem + (int32_t)strlen(rules[i].instead));
        if (node >= 0) {
            return node;
        }
    }
    return -1;
}

/* ---- edges --------------------------------------------------------------------------------------------------------- */

/* Distinct targets of one synset; small, reused. */
typedef struct wordnet_targets {
    int64_t *id;
    int64_t n, capacity;
} wordnet_targets_t;

static rudder_status_t wordnet_target(wordnet_targets_t *targets, int64_t id, rudder_error_t *error)
{
    for (int64_t i = 0; i < targets->n; i++) {
        if (targets->id[i] == id) {
            return RUDDER_OK;
        }
    }
    if (targets->n == targets->capacity) {
        const int64_t capacity = 2 * targets->capacity + 256;
        int64_t *grown = realloc(targets->id, (size_t)capacity * sizeof *grown);
        if (grown == NULL) {
            return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %" PRId64 " edges of a synset", capacity);
        }
        targets->id = grown;
        targets->capacity = capacity;
    }
    targets->id[targets->n++] = id;
    return RUDDER_OK;
}

/* offset lexfile type w_cnt (word lex_id)... p_cnt (symbol offset pos source/target)... */
static rudder_status_t wordnet_read_pointers(const wordnet_t *w, int f, int64_t v, wordnet_targets_t *targets,
                                             rudder_error_t *error)
{
    const char *at = w->line[v];
    int64_t words, pointers = 0, offset;
    int32_t length;
    wordnet_field(&at, &length);
    wordnet_field(&at, &length);
    wordnet_field(&at, &length);
    int good = wordnet_number(&at, 16, &words);
    for (int64_t i = 0; good && i < 2 * words; i++) {
        good = wordnet_field(&at, &length) != NULL;
    }
    good = good && wordnet_number(&at, 10, &pointers);
    for (int64_t i = 0; good && i < pointers; i++) {
        const char *symbol = wordnet_field(&at, &length);
        good = symbol != NULL && wordnet_number(&at, 10, &offset);
        const char *pos = good ? wordnet_field(&at, &length) : NULL;
        const char *ends = pos != NULL ? wordnet_field(&at, &length) : NULL;
        const int64_t target = ends != NULL ? wordnet_node(w, *pos, offset) : -1;
        good = target >= 0;
        if (good && target != v) {
            RUDDER_TRY(wordnet_target(targets, target, error));
        }
    }
    return good ? RUDDER_OK
                : wordnet_bad(w->path[f], w->data[f], w->line[v], "words, then pointers to synsets that exist", error);
}

static rudder_status_t wordnet_read_mentions(const wordnet_t *w, int64_t v, wordnet_targets_t *targets,
                                             rudder_error_t *error)
{
    const char *at = w->gloss[v];
    char word[WORDNET_MAX_WORD];
    for (int32_t n; (n = wordnet_word(&at, word)) > 0;) {
        if (!wordnet_is_stop(word, n)) {
            const int64_t target = wordnet_sense(w, word, n);
            if (target >= 0 && target != v) {
                RUDDER_TRY(wordnet_target(targets, target, error));
            }
        }
    }
    return RUDDER_OK;
}

/* Pointers first, then mentions that are no pointers already. */
static rudder_status_t wordnet_read_edges(wordnet_t *w, int pointers_only, import_report_t *report,
                                          rudder_error_t *error)
{
    wordnet_targets_t targets = {0};
    rudder_status_t status = RUDDER_OK;
    for (int f = 0; f < WORDNET_FILES; f++) {
        for (int64_t v = w->first[f]; v < w->first[f + 1] && status == RUDDER_OK; v++) {
            targets.n = 0;
            status = wordnet_read_pointers(w, f, v, &targets, error);
            report->pointers += targets.n;
            report->mentions -= targets.n;
            if (status == RUDDER_OK && !pointers_only) {
                status = wordnet_read_mentions(w, v, &targets, error);
            }
            report->mentions += targets.n;
            for (int64_t i = 0; i < targets.n && status == RUDDER_OK; i++) {
                status = csr_pairs_add(&w->edges, v, targets.id[i], error);
            }
            if (v % 1024 == 0) {
                log_progress(v, w->n, "edges");
            }
        }
    }
    free(targets.id);
    return status;
}

static rudder_status_t wordnet_write_edges(const wordnet_t *w, const char *directory, import_report_t *report,
                                           rudder_error_t *error)
{
    csr_t out = {0}, undirected = {0};
    int64_t duplicates, loops;
    rudder_status_t status = csr_from_pairs(w->n, w->edges.n, w->edges.from, w->edges.to, &out, error);
    if (status == RUDDER_OK) {
        status = csr_undirected(w->n, out.indptr, out.indices, &undirected, &duplicates, &loops, error);
    }
    if (status == RUDDER_OK) {
        report->given = w->edges.n;
        report->duplicates = duplicates;
        report->loops = loops;
        report->n_edges = undirected.m;
        status = write_structure(directory, &undirected, error);
    }
    csr_free(&out);
    csr_free(&undirected);
    return status;
}

/* ---- features ------------------------------------------------------------------------------------------------------ */

static void wordnet_count_word(const char *word, int32_t length, int32_t width, float *row)
{
    if (!wordnet_is_stop(word, length)) {
        row[wordnet_hash(word, length) % (uint64_t)width] += 1.0f;
    }
}

/* One row: counts of the words of lemmas ("living_thing" has two) and gloss. */
static void wordnet_count_words(const wordnet_t *w, int64_t v, int32_t width, float *row)
{
    const char *at = w->line[v];
    char word[WORDNET_MAX_WORD];
    int64_t words = 0;
    int32_t n, length;
    wordnet_field(&at, &length);
    wordnet_field(&at, &length);
    wordnet_field(&at, &length);
    wordnet_number(&at, 16, &words);
    for (int64_t i = 0; i < words; i++) {
        const char *lemma = wordnet_field(&at, &length);
        while (lemma < at && (n = wordnet_word(&lemma, word)) > 0 && lemma <= at) {
            wordnet_count_word(word, n, width, row);
        }
        wordnet_field(&at, &length); /* lex_id */
    }
    at = w->gloss[v];
    while ((n = wordnet_word(&at, word)) > 0) {
        wordnet_count_word(word, n, width, row);
    }
}

/* Every column to mean 0 and variance 1; a constant one becomes 0. */
static void wordnet_standardise(float *feat, int64_t n, int32_t width, double *mean, double *square)
{
    memset(mean, 0, (size_t)width * sizeof *mean);
    memset(square, 0, (size_t)width * sizeof *square);
    for (int64_t v = 0; v < n; v++) {
        for (int32_t i = 0; i < width; i++) {
            mean[i] += (double)feat[v * width + i];
        }
    }
    for (int32_t i = 0; i < width; i++) {
        mean[i] /= (double)n;
    }
    for (int64_t v = 0; v < n; v++) {
        for (int32_t i = 0; i < width; i++) {
            const double difference = (double)feat[v * width + i] - mean[i];
            square[i] += difference * difference;
        }
    }
    for (int32_t i = 0; i < width; i++) {
        square[i] = square[i] > 0 ? 1.0 / sqrt(square[i] / (double)n) : 0.0;
    }
    for (int64_t v = 0; v < n; v++) {
        for (int32_t i = 0; i < width; i++) {
            feat[v * width + i] = (float)(((double)feat[v * width + i] - mean[i]) * square[i]);
        }
    }
}

static rudder_status_t wordnet_write_features(const wordnet_t *w, const char *directory, int32_t width,
                                              rudder_error_t *error)
{
    char path[FILES_MAX_PATH];
    rudder_status_t status = files_join(directory, "feat.npy", path, error);
    float *feat = calloc((size_t)w->n * (size_t)width, sizeof *feat);
    double *sums = malloc(2 * (size_t)width * sizeof *sums);
    if (feat == NULL || sums == NULL) {
        status = RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for features: %" PRId64 " bytes",
                             w->n * width * (int64_t)sizeof *feat);
    }
    if (status == RUDDER_OK) {
        for (int64_t v = 0; v < w->n; v++) {
            wordnet_count_words(w, v, width, feat + v * width);
        }
        wordnet_standardise(feat, w->n, width, sums, sums + width);
        status = npy_write(path, "<f4", 2, (const int64_t[]){w->n, width}, feat, error);
    }
    free(feat);
    free(sums);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------- */

static rudder_status_t wordnet_write_nodes(const wordnet_t *w, const char *directory, const import_wordnet_t *options,
                                           import_report_t *report, rudder_error_t *error)
{
    uint8_t *split = malloc((size_t)w->n);
    if (split == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a split of %" PRId64 " nodes", w->n);
    }
    rudder_status_t status = write_draw_split(w->label, w->n, options->seed, split, error);
    if (status == RUDDER_OK) {
        status = write_split(directory, split, w->n, error);
    }
    if (status == RUDDER_OK) {
        status = write_label(directory, w->label, w->n, error);
    }
    if (status == RUDDER_OK) {
        import_count(w->label, split, w->n, report);
    }
    free(split);
    return status;
}

static rudder_status_t wordnet_write_json(const char *directory, const import_wordnet_t *options,
                                          const import_report_t *report, rudder_error_t *error)
{
    json_t json;
    write_json_begin(&(write_facts_t){options->name, report->n_nodes, report->n_edges, options->width, WORDNET_CLASSES},
                     &json);
    json_string(&json, "importer", "wordnet");
    json_string(&json, "edges", options->pointers_only ? "pointers" : "all");
    json_int(&json, "pointers", report->pointers);
    json_int(&json, "mentions", report->mentions);
    json_int(&json, "seed", (int64_t)options->seed);
    return write_json_end(directory, &json, error);
}

static void wordnet_free(wordnet_t *w)
{
    for (int f = 0; f < WORDNET_FILES; f++) {
        free(w->data[f]);
        free(w->index[f]);
    }
    free(w->offset);
    free(w->line);
    free(w->gloss);
    free(w->label);
    free(w->map.word);
    free(w->map.length);
    free(w->map.node);
    csr_pairs_free(&w->edges);
    free(w);
}

rudder_status_t import_wordnet(const char *source, const char *directory, const import_wordnet_t *options,
                               import_report_t *report, rudder_error_t *error)
{
    wordnet_t *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to read %s", source);
    }
    *report = (import_report_t){.n_feat = options->width, .n_classes = WORDNET_CLASSES};
    rudder_status_t status = wordnet_read_data(w, source, error);
    if (status == RUDDER_OK && !options->pointers_only) {
        status = wordnet_read_index(w, source, error);
    }
    if (status == RUDDER_OK) {
        report->n_nodes = w->n;
        status = wordnet_read_edges(w, options->pointers_only, report, error);
    }
    if (status == RUDDER_OK) {
        status = wordnet_write_edges(w, directory, report, error);
    }
    if (status == RUDDER_OK) {
        status = wordnet_write_features(w, directory, options->width, error);
    }
    if (status == RUDDER_OK) {
        status = wordnet_write_nodes(w, directory, options, report, error);
    }
    if (status == RUDDER_OK) {
        status = wordnet_write_json(directory, options, report, error);
    }
    log_progress_end();
    wordnet_free(w);
    return status;
}
