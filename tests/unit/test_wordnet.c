/*
 * WordNet from its real files: counts that are known of WordNet 3.0, agreement with another program's derivation of the same
 * graph (where it is at hand; the rules of mentions were chosen to match it, so this guards them and proves no more), and
 * damaged dictionaries.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "graph/import.h"
#include "small_graph.h"

#define DICTIONARY "/usr/share/wordnet"

/* Of the WordNet 3.0 database statistics, and of the derivation in the shared data. */
enum { SYNSETS = 117659, NOUNS = 82115, VERBS = 13767, POINTERS = 361638, MENTIONS = 730642, UNDIRECTED = 913191 };

static rudder_status_t import(const char *source, const char *name, int pointers_only, int32_t width, uint64_t seed,
                              import_report_t *report, rudder_error_t *error)
{
    const char *path = small_path(name);
    mkdir(path, 0777);
    return import_wordnet(
        source, path,
        &(import_wordnet_t){.name = "wordnet", .pointers_only = pointers_only, .width = width, .seed = seed}, report,
        error);
}

static int row_has(const graph_t *g, int64_t v, int64_t u)
{
    int64_t low = g->indptr[v], high = g->indptr[v + 1];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (g->indices[middle] < u) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < g->indptr[v + 1] && g->indices[low] == u;
}

static void check_structure(const graph_t *g)
{
    for (int64_t v = 0; v < g->n_nodes; v++) {
        for (int64_t e = g->indptr[v]; e < g->indptr[v + 1]; e++) {
            assert_true(g->indices[e] != v);
            assert_true(e == g->indptr[v] || g->indices[e - 1] < g->indices[e]);
            assert_true(row_has(g, g->indices[e], v)); /* both ways */
        }
    }
}

static void check_features(const graph_t *g)
{
    for (int32_t i = 0; i < g->n_feat; i++) {
        double sum = 0, square = 0;
        for (int64_t v = 0; v < g->n_nodes; v++) {
            const double x = (double)g->feat[v * g->n_feat + i];
            sum += x;
            square += x * x;
        }
        assert_true(fabs(sum / (double)g->n_nodes) < 1e-5);
        assert_true(fabs(square / (double)g->n_nodes - 1) < 1e-4);
    }
}

static void test_all_edges(void **state)
{
    (void)state;
    import_report_t report;
    rudder_error_t error = {0};
    graph_t g;
    int64_t split[4] = {0};
    if (import(DICTIONARY, "all", 0, 32, 1, &report, &error) != RUDDER_OK) {
        fail_msg("%s (Debian's package wordnet-base brings the files)", error.text);
    }
    assert_int_equal(SYNSETS, report.n_nodes);
    assert_int_equal(POINTERS, report.pointers);
    assert_true(llabs(report.mentions - MENTIONS) < MENTIONS / 500);
    assert_true(llabs(report.n_edges / 2 - UNDIRECTED) < UNDIRECTED / 500);
    assert_int_equal(RUDDER_OK, graph_open(small_path("all"), &g, &error));
    assert_int_equal(45, g.n_classes);
    assert_int_equal(SYNSETS, g.n_nodes);
    assert_int_equal(report.n_edges, g.n_edges);
    check_structure(&g);
    check_features(&g);
    for (int64_t v = 0; v < g.n_nodes; v++) {
        split[g.split[v]]++;
        /* noun.* are the lexicographer files 3 to 28, verb.* 29 to 43, adj.* 0, 1 and 44, adv.all 2 */
        const int32_t label = g.label[v];
        const int noun = label >= 3 && label <= 28, verb = label >= 29 && label <= 43;
        assert_true(v < NOUNS ? noun : v < NOUNS + VERBS ? verb : !noun && !verb);
    }
    assert_int_equal(SYNSETS / 5, split[SPLIT_VALID]);
    assert_int_equal(SYNSETS / 5, split[SPLIT_TEST]);
    assert_int_equal(SYNSETS - 2 * (SYNSETS / 5), split[SPLIT_TRAIN]);
    /* "entity" (the first synset) is above "physical entity" and "abstraction" (the next two) */
    assert_true(row_has(&g, 0, 1) && row_has(&g, 0, 2));
    graph_close(&g);
}

static void test_pointers_only(void **state)
{
    (void)state;
    import_report_t report;
    rudder_error_t error;
    graph_t all, pointers;
    assert_int_equal(RUDDER_OK, import(DICTIONARY, "pointers", 1, 32, 1, &report, &error));
    assert_int_equal(POINTERS, report.pointers);
    assert_int_equal(0, report.mentions);
    assert_int_equal(RUDDER_OK, graph_open(small_path("all"), &all, &error));
    assert_int_equal(RUDDER_OK, graph_open(small_path("pointers"), &pointers, &error));
    check_structure(&pointers);
    for (int64_t v = 0; v < pointers.n_nodes;
         v++) { /* they are among all edges; nodes, labels and features are the same */
        for (int64_t e = pointers.indptr[v]; e < pointers.indptr[v + 1]; e++) {
            assert_true(row_has(&all, v, pointers.indices[e]));
        }
    }
    assert_memory_equal(all.label, pointers.label, SYNSETS * sizeof(int32_t));
    assert_memory_equal(all.split, pointers.split, SYNSETS);
    assert_memory_equal(all.feat, pointers.feat, SYNSETS * 32 * sizeof(float));
    graph_close(&all);
    graph_close(&pointers);
}

static void test_seed_and_width(void **state)
{
    (void)state;
    import_report_t report;
    rudder_error_t error;
    char command[256];
    graph_t a, b;
    assert_int_equal(RUDDER_OK, import(DICTIONARY, "again", 0, 32, 1, &report, &error));
    snprintf(command, sizeof command, "diff -r %s/all %s/again", small_folder, small_folder);
    assert_int_equal(0, system(command)); /* the same input and options: the same bytes */
    assert_int_equal(RUDDER_OK, import(DICTIONARY, "other", 0, 1, 2, &report, &error));
    assert_int_equal(RUDDER_OK, graph_open(small_path("all"), &a, &error));
    assert_int_equal(RUDDER_OK, graph_open(small_path("other"), &b, &error));
    assert_int_equal(1, b.n_feat);
    assert_memory_equal(a.indices, b.indices, (size_t)a.n_edges * sizeof(int64_t));
    assert_true(memcmp(a.split, b.split, SYNSETS) != 0);
    graph_close(&a);
    graph_close(&b);
}

/* The same graph derived by another program, in OGB's layout. */
static void test_other_derivation(void **state)
{
    (void)state;
    import_report_t report;
    rudder_error_t error = {0};
    graph_t ours, theirs;
    int64_t common = 0;
    char source[512];
    snprintf(source, sizeof source, "%s/data/wordnet", small_env("RUDDER_SHARED_DIR", "../shared"));
    if (access(source, F_OK) != 0) {
        print_message("not run: comparison with another derivation (needs shared/data/wordnet)\n");
        skip();
    }
    mkdir(small_path("theirs"), 0777);
    if (import_ogb(source, small_path("theirs"), &(import_ogb_t){.name = "theirs", .both = 1}, &report, &error) !=
        RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(RUDDER_OK, graph_open(small_path("all"), &ours, &error));
    assert_int_equal(RUDDER_OK, graph_open(small_path("theirs"), &theirs, &error));
    assert_int_equal(2 * UNDIRECTED, theirs.n_edges);
    assert_memory_equal(theirs.label, ours.label, SYNSETS * sizeof(int32_t));
    for (int64_t v = 0; v < ours.n_nodes; v++) {
        for (int64_t e = ours.indptr[v]; e < ours.indptr[v + 1]; e++) {
            common += row_has(&theirs, v, ours.indices[e]);
        }
    }
    assert_true((double)common > 0.999 * (double)ours.n_edges);
    assert_true((double)common > 0.999 * (double)theirs.n_edges);
    graph_close(&ours);
    graph_close(&theirs);
}

/* ---- damaged dictionaries ------------------------------------------------------------------------------------------ */

#define LICENCE "  1 This is where the licence stands.  \n"

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(small_path(name), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(0, fclose(file));
}

/* Two nouns ("dog", "cat" above it) and one verb, in WordNet's form; offsets are where the lines start. */
static void write_dictionary(const char *data_noun, const char *index_noun)
{
    mkdir(small_path("dictionary"), 0777);
    write_text("dictionary/data.noun", data_noun);
    write_text("dictionary/data.verb",
               "00000000 29 v 01 bark 0 000 01 + 02 00 | make a sound, as of dogs or a running cat\n");
    write_text("dictionary/data.adj", LICENCE);
    write_text("dictionary/data.adv", LICENCE);
    write_text("dictionary/index.noun", index_noun);
    write_text("dictionary/index.verb", LICENCE "bark v 1 0 1 0 00000000  \n");
    write_text("dictionary/index.adj", LICENCE);
    write_text("dictionary/index.adv", LICENCE);
}

#define DOG LICENCE "00000040 05 n 02 dog 0 Canis_familiaris 0 001 @ 00000117 n 0000 | an animal that barks  \n"
#define CAT "00000127 05 n 01 cat 0 001 ~ 00000040 n 0000 | an animal  \n"
#define INDEX LICENCE "cat n 1 1 ~ 1 0 00000127  \ndog n 1 1 @ 1 0 00000040  \n"

static void test_small_dictionary(void **state)
{
    (void)state;
    import_report_t report;
    rudder_error_t error = {0};
    graph_t g;
    char good[512];
    snprintf(good, sizeof good, "%s", DOG CAT);
    const long cat = strstr(good, CAT) - good;
    char offset[16];
    snprintf(offset, sizeof offset, "%08ld", cat);
    memcpy(strstr(good, "00000117"), offset, 8); /* the pointer to it */
    memcpy(strstr(good, "00000127"), offset, 8); /* and itself */
    char index[512];
    snprintf(index, sizeof index, "%s", INDEX);
    memcpy(strstr(index, "00000127"), offset, 8);
    write_dictionary(good, index);
    if (import(small_path("dictionary"), "tiny", 0, 4, 1, &report, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(RUDDER_OK, graph_open(small_path("tiny"), &g, &error));
    assert_int_equal(3, g.n_nodes);
    /* dog - cat by pointers; dog - bark ("barks", "dogs") and bark - cat by mentions */
    assert_memory_equal(((const int64_t[]){1, 2, 0, 2, 0, 1}), g.indices, 6 * sizeof(int64_t));
    assert_int_equal(2, report.pointers);
    assert_int_equal(3, report.mentions);
    assert_memory_equal(((const int32_t[]){5, 5, 29}), g.label, 3 * sizeof(int32_t));
    graph_close(&g);

    static const struct {
        const char *find, *put, *told;
    } damages[] = {
        {"00000040 05", "00000041 05", "data.noun:2: expected a synset that starts with its own offset"},
        {"00000040 05", "00000040 45", "data.noun:2: expected a lexicographer file in 00..44"},
        {"00000040 05", "00000040 xx", "data.noun:2: expected a lexicographer file in 00..44"},
        {"n 02 dog", "n 99 dog", "data.noun:2: expected words, then pointers"},
        {"001 ~ ", "009 ~ ", "data.noun:3: expected words, then pointers"},
        {"~ 00000040 n", "~ 00000040 v", "data.noun:3: expected words, then pointers"},
        {"~ 00000040 n", "~ 00000040 q", "data.noun:3: expected words, then pointers"},
        {"| an animal  \n", "\n", NULL}, /* no gloss: fine */
        {"an animal  \n", "an anim", "data.noun: expected lines of text"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char bad[512];
        const char *at = strstr(good, damages[i].find);
        assert_non_null(at);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, damages[i].put, at + strlen(damages[i].find));
        write_dictionary(bad, index);
        const rudder_status_t status = import(small_path("dictionary"), "tiny", 0, 4, 1, &report, &error);
        assert_int_equal(damages[i].told == NULL ? RUDDER_OK : RUDDER_E_DATA, status);
        if (damages[i].told != NULL && strstr(error.text, damages[i].told) == NULL) {
            fail_msg("should tell \"%s\", says: %s", damages[i].told, error.text);
        }
    }
    write_dictionary(good, LICENCE "cat n 1 1 ~ 1 0 00000001  \n");
    assert_int_equal(RUDDER_E_DATA, import(small_path("dictionary"), "tiny", 0, 4, 1, &report, &error));
    assert_non_null(strstr(error.text, "index.noun:2: expected a word with the offset of a synset"));
    write_dictionary(good, "cat n\n");
    assert_int_equal(RUDDER_E_DATA, import(small_path("dictionary"), "tiny", 0, 4, 1, &report, &error));
    write_dictionary("", index);
    assert_int_equal(RUDDER_E_DATA, import(small_path("dictionary"), "tiny", 0, 4, 1, &report, &error));
    assert_non_null(strstr(error.text, "data.noun: expected lines of text, found an empty file"));
    assert_int_equal(RUDDER_E_IO, import(small_path("nowhere"), "tiny", 0, 4, 1, &report, &error));
    assert_non_null(strstr(error.text, "nowhere/data.noun"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_edges),        cmocka_unit_test(test_pointers_only),
        cmocka_unit_test(test_seed_and_width),   cmocka_unit_test(test_other_derivation),
        cmocka_unit_test(test_small_dictionary),
    };
    return cmocka_run_group_tests(tests, small_make_folder, small_remove_folder);
}
