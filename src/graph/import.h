/* Importers: each reads one format from a folder and writes a graph directory's files into another. */
#ifndef RUDDER_GRAPH_IMPORT_H
#define RUDDER_GRAPH_IMPORT_H

#include <stdint.h>

#include "rudder/status.h"

/* What an import read and what it stored. */
typedef struct import_report {
    int64_t n_nodes, n_feat, n_classes;
    int64_t given;      /* edges of the source, as they stand there */
    int64_t duplicates; /* those among them that repeat another */
    int64_t loops;      /* those from a node to itself */
    int64_t n_edges;    /* stored: in-edges of all nodes */
    int64_t unlabelled;
    int64_t train, valid, test;
    /* WordNet only: distinct edges by kind */
    int64_t pointers, mentions;
} import_report_t;

typedef struct import_wordnet {
    const char *name;
    int pointers_only; /* no edges to words of the gloss */
    int32_t width;     /* of the features */
    uint64_t seed;     /* of the split */
} import_wordnet_t;

/*
 * WordNet 3.0 from the dictionary files data.* and index.*: nodes are synsets, in the order noun, verb, adjective, adverb
 * and by file; edges are pointers and mentions (a synset's gloss uses a word: an edge to that word's first sense), both
 * ways, none twice, no loops; label is the lexicographer file; features count hashed words of gloss and lemmas,
 * standardised per column. Errors: IO, DATA, MEMORY.
 */
rudder_status_t import_wordnet(const char *source, const char *directory, const import_wordnet_t *options,
                               import_report_t *report, rudder_error_t *error);

typedef struct import_ogb {
    const char *name;
    int both;            /* 1: every edge both ways; 0: as given, from the first id to the second */
    int keep_duplicates; /* an edge that is there twice stays twice */
    int keep_loops;
    const char
        *split;    /* folder below split/; "random" where there is no such folder: drawn; NULL: the only one there is */
    uint64_t seed; /* of a drawn split */
} import_ogb_t;

/* OGB's node property data sets in their raw layout (folders raw/ and split/ of .csv.gz). Errors: IO, DATA, MEMORY. */
rudder_status_t import_ogb(const char *source, const char *directory, const import_ogb_t *options,
                           import_report_t *report, rudder_error_t *error);

/* Counts labels and splits into the report. */
void import_count(const int32_t *label, const uint8_t *split, int64_t n, import_report_t *report);

#endif
