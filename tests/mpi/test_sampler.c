/*
 * Sampled minibatches. The same seeds give the same minibatch on any number of ranks and for any numbering of the nodes:
 * each rank compares its own with one that a sampler alone on the whole graph makes, and both with the graph.
 */
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "mpi/mpi_test.h"
#include "sample/sampler.h"

/* In original ids. */
typedef struct graph {
    int64_t n;
    int64_t *indptr, *indices;
} graph_t;

/* Ways to spread the nodes over ranks and to number them within. */
typedef enum spread { SPREAD_IN_ORDER, SPREAD_HASHED, SPREAD_LAST_RANK_EMPTY, SPREADS } spread_t;

/* A graph spread over ranks, and a sampler on it. */
typedef struct world {
    comm_t comm;
    int alone; /* the whole graph on this rank */
    parts_t parts;
    part_t part;
    int64_t *offset, *global, *original; /* original[global[v]] = v */
    int64_t *indptr, *indices;           /* of the part */
    int32_t *label;
    exchange_t *exchange;
    sampler_t *sampler;
} world_t;

static int32_t owner_of(spread_t spread, int size, int64_t n, int64_t v)
{
    switch (spread) {
    case SPREAD_HASHED:
        return (int32_t)(rng_mix((uint64_t)v) % (uint64_t)size);
    case SPREAD_LAST_RANK_EMPTY:
        return size == 1 ? 0 : (int32_t)(v % (size - 1));
    default:
        return (int32_t)(v * size / n);
    }
}

static int32_t label_of(int64_t v)
{
    return (int32_t)(v * 7 % 11) - 1;
}

static void number_nodes(world_t *w, spread_t spread, int64_t n)
{
    const int size = w->comm.size;
    w->offset = calloc((size_t)size + 1, sizeof *w->offset);
    w->global = malloc((size_t)n * sizeof *w->global);
    w->original = malloc((size_t)n * sizeof *w->original);
    int64_t next = 0;
    for (int32_t p = 0; p < size; p++) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t v = spread == SPREAD_IN_ORDER ? i : n - 1 - i; /* another order within the part */
            if (owner_of(spread, size, n, v) == p) {
                w->global[v] = next;
                w->original[next++] = v;
            }
        }
        w->offset[p + 1] = next;
    }
}

static void open_world(const graph_t *g, spread_t spread, int alone, const sampler_config_t *config, world_t *w)
{
    rudder_error_t error;
    memset(w, 0, sizeof *w);
    w->alone = alone;
    if (alone) {
        w->comm = (comm_t){.mpi = MPI_COMM_SELF, .size = 1, .phase = "alone", .message_limit = 1 << 30};
    } else {
        CHECK_OK(comm_open(60, &w->comm, &error), &error);
    }
    number_nodes(w, spread, g->n);
    const int64_t begin = w->offset[w->comm.rank], end = w->offset[w->comm.rank + 1];
    w->indptr = calloc((size_t)(end - begin) + 1, sizeof *w->indptr);
    w->label = malloc((size_t)(end - begin + 1) * sizeof *w->label);
    w->indices = malloc((size_t)(g->indptr[g->n] + 1) * sizeof *w->indices);
    for (int64_t row = 0; row < end - begin; row++) {
        const int64_t v = w->original[begin + row];
        w->label[row] = label_of(v);
        w->indptr[row + 1] = w->indptr[row];
        for (int64_t e = g->indptr[v]; e < g->indptr[v + 1]; e++) {
            w->indices[w->indptr[row + 1]++] = w->global[g->indices[e]];
        }
    }
    w->parts = (parts_t){.n_parts = w->comm.size, .n_nodes = g->n, .offset = w->offset};
    w->part = (part_t){.number = w->comm.rank,
                       .begin = begin,
                       .end = end,
                       .n_owned = end - begin,
                       .n_edges = w->indptr[end - begin],
                       .indptr = w->indptr,
                       .indices = w->indices,
                       .label = w->label,
                       .orig_id = w->original + begin};
    CHECK_OK(exchange_open(&w->comm, w->offset, 0, NULL, &w->exchange, &error), &error);
    CHECK_OK(sampler_open(config, &w->parts, &w->part, w->exchange, &w->sampler, &error), &error);
}

static void close_world(world_t *w)
{
    sampler_close(w->sampler);
    exchange_close(w->exchange);
    if (!w->alone) {
        comm_close(&w->comm);
    }
    free(w->offset);
    free(w->global);
    free(w->original);
    free(w->indptr);
    free(w->indices);
    free(w->label);
}

/* Degrees from 0 to about 60, self-loops, repeated edges, and nodes that nothing points to. */
static graph_t random_graph(int64_t n)
{
    graph_t g = {n, calloc((size_t)n + 1, sizeof *g.indptr), malloc((size_t)n * 64 * sizeof *g.indices)};
    for (int64_t v = 0; v < n; v++) {
        const rng_block_t r = rng_philox(11, (uint64_t)v, 0);
        const int64_t degree = r.v[0] % 7 == 0 ? 0 : r.v[1] % (r.v[2] % 5 == 0 ? 60 : 12);
        g.indptr[v + 1] = g.indptr[v];
        for (int64_t i = 0; i < degree; i++) {
            const rng_block_t u = rng_philox(12, (uint64_t)v, (uint64_t)i);
            const int64_t other = u.v[1] % 16 == 0 ? v : rng_below(u.v[0], (uint32_t)n);
            const int repeat = i > 0 && u.v[2] % 8 == 0;
            g.indices[g.indptr[v + 1]] = repeat ? g.indices[g.indptr[v + 1] - 1] : other;
            g.indptr[v + 1]++;
        }
    }
    return g;
}

static void free_graph(graph_t *g)
{
    free(g->indptr);
    free(g->indices);
}

/* Seeds of this rank: owned nodes of a pseudo-random list of `wanted`, as global ids. */
static int64_t pick_seeds(const world_t *w, int64_t n_nodes, int64_t wanted, uint64_t step, int64_t *seeds)
{
    int64_t n = 0;
    const int64_t start = (int64_t)(rng_mix(step) % (uint64_t)n_nodes);
    for (int64_t i = 0; i < wanted && i < n_nodes; i++) {
        const int64_t global = w->global[(start + i * 17) % n_nodes]; /* 17 divides no n_nodes here: distinct */
        if (global >= w->part.begin && global < w->part.end) {
            seeds[n++] = global;
        }
    }
    return n;
}

/* What must hold of any minibatch, whatever the graph. */
static void check_shape(const world_t *w, const minibatch_t *m, const int64_t *seeds, int64_t n_seeds)
{
    const int32_t top = m->n_layers - 1;
    CHECK(m->n_seeds == n_seeds && m->block[top].n_dst == n_seeds && m->n_input == m->block[0].n_src);
    for (int32_t l = 0; l <= top; l++) {
        const block_t *b = &m->block[l];
        CHECK(l == top || b->n_dst == m->block[l + 1].n_src);
        CHECK(b->n_dst <= b->n_src && b->indptr[0] == 0 && b->indptr[b->n_dst] == b->n_edges);
        int wrong = 0;
        int64_t named = b->n_dst; /* sources named so far */
        for (int64_t i = 0; i < b->n_dst; i++) {
            wrong += b->indptr[i] > b->indptr[i + 1];
            wrong += b->dst_orig[i] != (uint64_t)w->original[m->input[i]];
            for (int64_t e = b->indptr[i]; e < b->indptr[i + 1]; e++) {
                wrong += b->index[e] < 0 || b->index[e] > named; /* new ones come one after the other */
                named += b->index[e] == named;
            }
        }
        CHECK(wrong == 0 && named == b->n_src);
    }
    char *seen = calloc((size_t)w->parts.n_nodes, 1);
    int wrong = 0;
    for (int64_t i = 0; i < m->n_input; i++) {
        wrong += m->input[i] < 0 || m->input[i] >= w->parts.n_nodes || seen[m->input[i]]++;
    }
    for (int64_t i = 0; i < n_seeds; i++) {
        wrong += m->input[i] != seeds[i] || m->label[i] != label_of(w->original[seeds[i]]);
    }
    CHECK(wrong == 0);
    free(seen);
}

/* Neighbours are distinct positions of the graph's list, in its order, as many as there can be. */
static void check_edges(const graph_t *g, const world_t *w, const minibatch_t *m, const sampler_config_t *config)
{
    int wrong = 0;
    for (int32_t l = 0; l < m->n_layers; l++) {
        const block_t *b = &m->block[l];
        for (int64_t i = 0; i < b->n_dst; i++) {
            const int64_t v = (int64_t)b->dst_orig[i], degree = g->indptr[v + 1] - g->indptr[v];
            int64_t at = g->indptr[v];
            wrong += b->indptr[i + 1] - b->indptr[i] != (degree < config->fanout[l] ? degree : config->fanout[l]);
            for (int64_t e = b->indptr[i]; e < b->indptr[i + 1]; e++) {
                const int64_t u = w->original[m->input[b->index[e]]];
                while (at < g->indptr[v + 1] && g->indices[at] != u) {
                    at++;
                }
                wrong += at++ >= g->indptr[v + 1];
            }
        }
    }
    CHECK(wrong == 0);
}

/* Equal in all but the names of the nodes. */
static void check_same(const world_t *a, const minibatch_t *x, const world_t *b, const minibatch_t *y)
{
    CHECK(x->n_layers == y->n_layers && x->n_seeds == y->n_seeds && x->n_input == y->n_input);
    for (int32_t l = 0; l < x->n_layers; l++) {
        const block_t *p = &x->block[l], *q = &y->block[l];
        if (CHECK(p->n_dst == q->n_dst && p->n_src == q->n_src && p->n_edges == q->n_edges)) {
            CHECK(memcmp(p->indptr, q->indptr, (size_t)(p->n_dst + 1) * sizeof *p->indptr) == 0);
            CHECK(p->n_edges == 0 || memcmp(p->index, q->index, (size_t)p->n_edges * sizeof *p->index) == 0);
            CHECK(p->n_dst == 0 || memcmp(p->dst_orig, q->dst_orig, (size_t)p->n_dst * sizeof *p->dst_orig) == 0);
        }
    }
    int wrong = 0;
    for (int64_t i = 0; i < x->n_input && x->n_input == y->n_input; i++) {
        wrong += a->original[x->input[i]] != b->original[y->input[i]];
    }
    for (int64_t i = 0; i < x->n_seeds && x->n_seeds == y->n_seeds; i++) {
        wrong += x->label[i] != y->label[i];
    }
    CHECK(wrong == 0);
}

/* Samples `steps` minibatches of `batch` seeds over all ranks and checks each in every way. */
static void run(const graph_t *g, spread_t spread, const sampler_config_t *config, int64_t batch, int steps)
{
    rudder_error_t error;
    world_t spread_world, whole;
    minibatch_t m = {0}, reference = {0};
    int64_t *seeds = malloc((size_t)(batch + 1) * sizeof *seeds), *same = malloc((size_t)(batch + 1) * sizeof *same);
    open_world(g, spread, 0, config, &spread_world);
    open_world(g, SPREAD_IN_ORDER, 1, config, &whole);
    for (int step = 0; step < steps; step++) {
        const int64_t n = pick_seeds(&spread_world, g->n, batch, (uint64_t)step, seeds);
        CHECK_OK(sampler_sample(spread_world.sampler, step / 2, step, seeds, n, &m, &error), &error);
        for (int64_t i = 0; i < n; i++) {
            same[i] = whole.global[spread_world.original[seeds[i]]];
        }
        CHECK_OK(sampler_sample(whole.sampler, step / 2, step, same, n, &reference, &error), &error);
        check_shape(&spread_world, &m, seeds, n);
        check_edges(g, &spread_world, &m, config);
        check_same(&spread_world, &m, &whole, &reference);
    }
    minibatch_free(&m);
    minibatch_free(&reference);
    close_world(&spread_world);
    close_world(&whole);
    free(seeds);
    free(same);
}

static void minibatches_do_not_depend_on_ranks_or_numbering(void)
{
    graph_t g = random_graph(3000);
    const sampler_config_t configs[] = {{1, 1, {10}}, {1, 2, {5, 10}}, {2, 3, {4, 3, 2}}, {3, 3, {64, 2, 5}}};
    for (spread_t spread = SPREAD_IN_ORDER; spread < SPREADS; spread++) {
        for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
            run(&g, spread, &configs[c], 100, 4);
        }
    }
    free_graph(&g);
}

static void odd_fanouts_and_batches(void)
{
    graph_t g = random_graph(500);
    const sampler_config_t configs[] = {{1, 2, {0, 3}}, {1, 2, {3, 0}}, {1, 3, {0, 0, 0}}, {1, 3, {1, 1, 1}}};
    for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
        run(&g, SPREAD_HASHED, &configs[c], 1, 3); /* all ranks but one have no seeds */
        run(&g, SPREAD_HASHED, &configs[c], 0, 2); /* none has */
        run(&g, SPREAD_HASHED, &configs[c], 500, 1);
        run(&g, SPREAD_LAST_RANK_EMPTY, &configs[c], 3, 2);
    }
    free_graph(&g);
}

static void tiny_graphs(void)
{
    const sampler_config_t config = {1, 2, {2, 2}};
    int64_t none[] = {0, 0, 0, 0}, loop[] = {0, 1, 3}, ends[] = {0, 1, 0};
    graph_t one = {1, none, none}, one_loop = {1, loop, ends}, two = {2, loop, ends}, apart = {3, none, none};
    for (spread_t spread = SPREAD_IN_ORDER; spread < SPREADS; spread++) {
        run(&one, spread, &config, 1, 2);
        run(&one_loop, spread, &config, 1, 2);
        run(&two, spread, &config, 2, 2);
        run(&apart, spread, &config, 3, 2);
    }
}

/* Node 0 has 100 000 neighbours, which each have node 0. */
static void a_star(void)
{
    const int64_t n = 100001;
    graph_t g = {n, malloc((size_t)(n + 1) * sizeof *g.indptr), malloc((size_t)(2 * n) * sizeof *g.indices)};
    g.indptr[0] = 0;
    g.indptr[1] = n - 1;
    for (int64_t v = 1; v < n; v++) {
        g.indices[v - 1] = v;
        g.indptr[v + 1] = g.indptr[v] + 1;
        g.indices[g.indptr[v]] = 0;
    }
    const sampler_config_t config = {1, 2, {25, 10}};
    run(&g, SPREAD_HASHED, &config, 50, 3);
    free_graph(&g);
}

/*
 * One node of degree 20 and fan-out 5, many steps, its neighbours asked for over the network where there is one: all
 * come equally often. Chi-square with 19 degrees of freedom is above 43.8 once in 1000.
 */
static void neighbours_are_uniform(void)
{
    enum { DEGREE = 20, FANOUT = 5, STEPS = 4000 };
    rudder_error_t error;
    int64_t indptr[DEGREE + 3], indices[DEGREE + 1];
    graph_t g = {DEGREE + 2, indptr, indices};
    /* Node 0 -> node 1 (the seed's only neighbour), node 1 -> nodes 2 .. 21. */
    indptr[0] = 0;
    indptr[1] = 1;
    indices[0] = 1;
    for (int64_t v = 1; v <= DEGREE + 1; v++) {
        indptr[v + 1] = DEGREE + 1;
    }
    for (int64_t i = 0; i < DEGREE; i++) {
        indices[1 + i] = 2 + i;
    }
    const sampler_config_t config = {4, 2, {FANOUT, 1}};
    world_t w;
    minibatch_t m = {0};
    open_world(&g, SPREAD_HASHED, 0, &config, &w);
    const int owner = w.global[0] >= w.part.begin && w.global[0] < w.part.end;
    int64_t count[DEGREE] = {0}, repeats = 0, before = 0;
    for (int step = 0; step < STEPS; step++) {
        CHECK_OK(sampler_sample(w.sampler, step / 100, step, &w.global[0], owner, &m, &error), &error);
        int64_t mask = 0;
        for (int64_t e = 0; e < m.block[0].n_edges; e++) {
            const int64_t v = w.original[m.input[m.block[0].index[e]]];
            if (v >= 2) {
                count[v - 2]++;
                mask |= (int64_t)1 << v;
            }
        }
        repeats += owner && mask == before;
        before = mask;
    }
    if (owner) {
        double chi2 = 0;
        const double expected = (double)STEPS * FANOUT / DEGREE;
        for (int i = 0; i < DEGREE; i++) {
            chi2 += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
        }
        chi2 /= 1 - (double)(FANOUT - 1) / (DEGREE - 1); /* without replacement counts vary less */
        CHECK(chi2 < 43.8);
        CHECK(repeats < 5); /* steps draw anew: 15504 subsets */
    }
    minibatch_free(&m);
    close_world(&w);
}

/* A node's draw does not depend on who else is in the minibatch; it does on seed, epoch, step and layer. */
static void draws_belong_to_the_node(void)
{
    enum { NODES = 40 };
    rudder_error_t error;
    int64_t indptr[NODES + 1], indices[NODES * NODES];
    graph_t g = {NODES, indptr, indices};
    for (int64_t v = 0; v <= NODES; v++) {
        indptr[v] = v * NODES;
    }
    for (int64_t e = 0; e < NODES * NODES; e++) {
        indices[e] = e % NODES;
    }
    const sampler_config_t config = {1, 1, {10}}, reseeded = {2, 1, {10}}, deeper = {1, 2, {10, 10}};
    const sampler_config_t *configs[] = {&config, &config, &config, &config, &reseeded, &deeper};
    const int64_t epoch[] = {3, 3, 4, 3, 3, 3}, step[] = {5, 5, 5, 6, 5, 5};
    int64_t all[NODES], drawn[6][10];
    for (int64_t v = 0; v < NODES; v++) {
        all[v] = NODES - 1 - v;
    }
    for (int c = 0; c < 6; c++) {
        world_t w;
        minibatch_t m = {0};
        open_world(&g, SPREAD_IN_ORDER, 1, configs[c], &w);
        /* Once with all nodes, where node 7 is the 33rd, once alone. */
        CHECK_OK(sampler_sample(w.sampler, epoch[c], step[c], c == 0 ? all : all + 32, c == 0 ? NODES : 1, &m, &error),
                 &error);
        const block_t *b = &m.block[m.n_layers - 1];
        const int64_t row = c == 0 ? 32 : 0;
        CHECK(b->dst_orig[row] == 7 && b->indptr[row + 1] - b->indptr[row] == 10);
        for (int i = 0; i < 10; i++) {
            drawn[c][i] = w.original[m.input[b->index[b->indptr[row] + i]]];
        }
        CHECK((memcmp(drawn[0], drawn[c], sizeof drawn[c]) == 0) == (c <= 1));
        minibatch_free(&m);
        close_world(&w);
    }
}

static void bad_configurations_are_refused(void)
{
    graph_t g = random_graph(20);
    const sampler_config_t good = {1, 1, {2}},
                           bad[] = {{1, 0, {2}}, {1, 9, {2}}, {1, 1, {-1}}, {1, 1, {SAMPLER_MAX_FANOUT + 1}}};
    world_t w;
    open_world(&g, SPREAD_IN_ORDER, 0, &good, &w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rudder_error_t error = {0};
        sampler_t *sampler;
        CHECK(sampler_open(&bad[i], &w.parts, &w.part, w.exchange, &sampler, &error) == RUDDER_E_ARGUMENT);
        CHECK(sampler == NULL && strstr(error.text, "expected"));
    }
    close_world(&w);
    free_graph(&g);
}

int main(void)
{
    mpi_test_start();
    MPI_TEST(minibatches_do_not_depend_on_ranks_or_numbering);
    MPI_TEST(odd_fanouts_and_batches);
    MPI_TEST(tiny_graphs);
    MPI_TEST(a_star);
    MPI_TEST(neighbours_are_uniform);
    MPI_TEST(draws_belong_to_the_node);
    MPI_TEST(bad_configurations_are_refused);
    return mpi_test_finish();
}
