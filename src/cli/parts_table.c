/* Users cannot know whether a bad partition is their fault unless they see it: sizes, halo, cut, and what it will cost. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/parts_table.h"
#include "report/table.h"

static void parts_table_row(table_t *table, const make_part_t *p)
{
    char text[32];
    table_cell(table, "%s", text_of_count(p->nodes, text, sizeof text));
    table_cell(table, "%s", text_of_count(p->edges, text, sizeof text));
    table_cell(table, "%s", text_of_count(p->train, text, sizeof text));
    table_cell(table, "%s", text_of_count(p->halo, text, sizeof text));
    table_cell(table, "%.2f", p->nodes > 0 ? (double)p->halo / (double)p->nodes : 0);
    table_cell(table, "%.1f %%", p->edges > 0 ? 100 * (double)p->cut / (double)p->edges : 0);
    table_cell(table, "%.1f %%", 100 * p->remote_share);
}

static void parts_table_warn(const char *what, int64_t most, int64_t total, int32_t n_parts)
{
    if (total > 0 && 100.0 * (double)most * n_parts > PARTS_TABLE_IMBALANCE * (double)total) {
        log_line(LOG_WARN, "%s are out of balance: the largest part has %.2f times the mean", what,
                 (double)most * n_parts / (double)total);
    }
}

rudder_status_t parts_table_print(const make_part_t *part, int32_t n_parts, rudder_error_t *error)
{
    static const char *const head[] = {"part", "nodes",      "edges",     "training",
                                       "halo", "halo/owned", "cut edges", "remote input"};
    make_part_t sum = {0};
    int64_t most_nodes = 0, most_train = 0;
    int32_t without = 0;
    table_t *table = table_open("r|rrr|rr|rr");
    for (size_t i = 0; table != NULL && i < sizeof head / sizeof head[0]; i++) {
        table_cell(table, "%s", head[i]);
    }
    for (int32_t p = 0; table != NULL && p < n_parts; p++) {
        table_cell(table, "%" PRId32, p);
        parts_table_row(table, &part[p]);
        sum.nodes += part[p].nodes;
        sum.edges += part[p].edges;
        sum.train += part[p].train;
        sum.halo += part[p].halo;
        sum.cut += part[p].cut;
        sum.remote_share += part[p].remote_share / n_parts;
        most_nodes = part[p].nodes > most_nodes ? part[p].nodes : most_nodes;
        most_train = part[p].train > most_train ? part[p].train : most_train;
        without += part[p].train == 0;
    }
    if (table == NULL) {
        rudder_error_t none = {RUDDER_E_MEMORY, "no memory for a table", ""};
        *error = none;
        return RUDDER_E_MEMORY;
    }
    table_line(table);
    table_cell(table, "all");
    parts_table_row(table, &sum);
    const rudder_status_t status = table_print(table, stdout, error);
    table_close(table);
    if (status != RUDDER_OK) {
        return status;
    }
    printf(
        "edges: in-edges of owned nodes; cut: those from other parts; remote input: of the input nodes of a minibatch\n"
        "(1000 seeds, fan-out 10,10), the share that other parts own\n");
    fflush(stdout);
    parts_table_warn("nodes", most_nodes, sum.nodes, n_parts);
    parts_table_warn("training nodes", most_train, sum.train, n_parts);
    if (without > 0) {
        log_line(LOG_WARN, "%" PRId32 " of %" PRId32 " parts have no training nodes: their ranks train on nothing",
                 without, n_parts);
    }
    return RUDDER_OK;
}
