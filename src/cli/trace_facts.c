/* Counting over the minibatches of a trace, and telling it with what its head says. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "cli/trace_facts.h"
#include "report/table.h"

enum { FACTS_FIRST_SIZE = 1 << 12 };

/* ---- Distinct ids ----------------------------------------------------------------------------------------------- */

static int64_t *facts_place(int64_t *seen, int64_t size, int64_t id)
{
    uint64_t at = rng_mix((uint64_t)id) & (uint64_t)(size - 1);
    while (seen[at] >= 0 && seen[at] != id) {
        at = (at + 1) & (uint64_t)(size - 1);
    }
    return &seen[at];
}

static rudder_status_t facts_grow(trace_facts_t *facts, rudder_error_t *error)
{
    const int64_t size = facts->seen_size > 0 ? 2 * facts->seen_size : FACTS_FIRST_SIZE;
    int64_t *seen = malloc((size_t)size * sizeof *seen);
    if (seen == NULL) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory to count %" PRId64 " distinct ids", facts->distinct);
    }
    for (int64_t i = 0; i < size; i++) {
        seen[i] = -1;
    }
    for (int64_t i = 0; i < facts->seen_size; i++) {
        if (facts->seen[i] >= 0) {
            *facts_place(seen, size, facts->seen[i]) = facts->seen[i];
        }
    }
    free(facts->seen);
    facts->seen = seen;
    facts->seen_size = size;
    return RUDDER_OK;
}

static rudder_status_t facts_see(trace_facts_t *facts, int64_t id, rudder_error_t *error)
{
    if (3 * facts->distinct >= 2 * facts->seen_size) {
        RUDDER_TRY(facts_grow(facts, error));
    }
    int64_t *place = facts_place(facts->seen, facts->seen_size, id);
    facts->distinct += *place < 0;
    *place = id;
    return RUDDER_OK;
}

/* ---- Sums ------------------------------------------------------------------------------------------------------- */

rudder_status_t trace_facts_add(trace_facts_t *facts, const trace_minibatch_t *m, rudder_error_t *error)
{
    const trace_times_t *t = &m->times;
    const double loader =
        (double)t->sample + (double)t->plan + (double)t->exchange + (double)t->complete + (double)t->gather;
    const double trainer = (double)t->wait + (double)t->compute;
    facts->minibatches++;
    facts->ids += m->n;
    facts->most_ids = m->n > facts->most_ids ? m->n : facts->most_ids;
    facts->empty += m->n == 0;
    if (m->miss >= 0 && m->fill >= 0) {
        facts->known++;
        facts->miss += m->miss;
        facts->fill += m->fill;
    }
    if (m->announced >= 0) {
        facts->windows++;
        facts->announced += m->announced;
    }
    if (!isnan(loader)) {
        facts->timed[0]++;
        facts->loader += loader;
    }
    if (!isnan(trainer)) {
        facts->timed[1]++;
        facts->trainer += trainer;
    }
    for (int64_t i = 0; i < m->n; i++) {
        RUDDER_TRY(facts_see(facts, m->ids[i], error));
    }
    return RUDDER_OK;
}

void trace_facts_free(trace_facts_t *facts)
{
    free(facts->seen);
    *facts = (trace_facts_t){0};
}

/* ---- Telling ---------------------------------------------------------------------------------------------------- */

static void facts_count(table_t *table, const char *what, int64_t count)
{
    char text[32];
    table_cell(table, "%s", what);
    table_cell(table, "%s", text_of_count(count, text, sizeof text));
}

/* ", fan-outs 15,10", or nothing. Returns text. */
static char *facts_fanouts(const trace_info_t *info, char *text, size_t size)
{
    size_t n = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < info->n_layers && n < size; i++) {
        n += (size_t)snprintf(text + n, size - n, "%s%" PRId32, i == 0 ? ", fan-outs " : ",", info->fanout[i]);
    }
    return text;
}

static void facts_head(table_t *table, const trace_info_t *info)
{
    char text[128];
    if (info->graph[0] != '\0') {
        table_cell(table, "graph");
        table_cell(table, "%s%s%s", info->graph, info->partition[0] != '\0' ? ", parts by " : "", info->partition);
    }
    if (info->ranks > 0) {
        table_cell(table, "rank");
        table_cell(table, "%" PRId32 " of %" PRId32 "%s", info->rank, info->ranks,
                   info->owner_offset != NULL ? ", owners known" : "");
    }
    if (info->run[0] != '\0') {
        table_cell(table, "run");
        table_cell(table, "%s, seed %" PRIu64 "%s%s", info->run, info->seed, info->order[0] != '\0' ? ", order " : "",
                   info->order);
    }
    if (info->batch > 0) {
        table_cell(table, "sampling");
        table_cell(table, "batch %" PRId64 "%s", info->batch, facts_fanouts(info, text, sizeof text));
    }
    if (info->policy[0] != '\0') {
        table_cell(table, "policy");
        table_cell(table, "%s, %s rows", info->policy, text_of_count(info->capacity_rows, text, sizeof text));
    }
    if (info->row_bytes > 0) {
        facts_count(table, "row bytes", info->row_bytes);
    }
}

static void facts_body(table_t *table, const trace_facts_t *facts, const trace_info_t *info)
{
    char a[32], b[32];
    table_cell(table, "halo");
    table_cell(table, "%s", info->n_halo > 0 ? text_of_count(info->n_halo, a, sizeof a) : "not known");
    table_cell(table, "minibatches");
    table_cell(table, "%s", text_of_count(facts->minibatches, a, sizeof a));
    if (facts->empty > 0) {
        facts_count(table, "of them empty", facts->empty);
    }
    table_cell(table, "remote ids");
    table_cell(table, "%s, at most %s in a minibatch", text_of_count(facts->ids, a, sizeof a),
               text_of_count(facts->most_ids, b, sizeof b));
    facts_count(table, "distinct ids", facts->distinct);
    if (facts->known > 0) {
        table_cell(table, "fetched rows");
        table_cell(table, "%s, of them %s fill", text_of_count(facts->miss + facts->fill, a, sizeof a),
                   text_of_count(facts->fill, b, sizeof b));
    }
    if (facts->windows > 0) {
        table_cell(table, "announced");
        table_cell(table, "%.1f minibatches ahead", (double)facts->announced / (double)facts->windows);
    }
    if (facts->timed[0] > 0) {
        table_cell(table, "loader");
        table_cell(table, "%.4g s a minibatch", facts->loader / (double)facts->timed[0]);
    }
    if (facts->timed[1] > 0) {
        table_cell(table, "trainer");
        table_cell(table, "%.4g s a minibatch", facts->trainer / (double)facts->timed[1]);
    }
}

rudder_status_t trace_facts_print(const trace_facts_t *facts, const trace_info_t *info, rudder_error_t *error)
{
    table_t *table = table_open("ll");
    if (table != NULL) {
        facts_head(table, info);
        facts_body(table, facts, info);
    }
    const rudder_status_t status = table != NULL ? table_print(table, stdout, error)
                                                 : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for a table");
    table_close(table);
    return status;
}
