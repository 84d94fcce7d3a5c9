/* Writing a graph directory: what all importers share. */
#ifndef RUDDER_GRAPH_WRITE_H
#define RUDDER_GRAPH_WRITE_H

#include <stdint.h>

#include "base/json.h"
#include "graph/csr.h"
#include "rudder/status.h"

/* What graph.json says. */
typedef struct write_facts {
    const char *name;
    int64_t n_nodes, n_edges;
    int32_t n_feat, n_classes;
} write_facts_t;

rudder_status_t write_structure(const char *directory, const csr_t *csr, rudder_error_t *error);
rudder_status_t write_label(const char *directory, const int32_t *label, int64_t n, rudder_error_t *error);
rudder_status_t write_split(const char *directory, const uint8_t *split, int64_t n, rudder_error_t *error);

/*
 * Starts graph.json in *json: the facts, then an open object "source" that the importer fills with where the graph came
 * from and how; write_json_end() closes both and writes the file.
 */
void write_json_begin(const write_facts_t *facts, json_t *json);
rudder_status_t write_json_end(const char *directory, json_t *json, rudder_error_t *error);

/*
 * Draws a split of the nodes that have a label: 60 % train, 20 % valid, 20 % test (train gets what rounding leaves).
 * split[n]. Errors: MEMORY.
 */
rudder_status_t write_draw_split(const int32_t *label, int64_t n, uint64_t seed, uint8_t *split, rudder_error_t *error);

#endif
