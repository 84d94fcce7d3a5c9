/*
 * What the buffer costs: CPU time of plan + complete (+ fill) per id, beside a plain gather of the same rows in the same
 * run, and per minibatch beside what was measured of the reference implementation. Traces: two that were recorded, and a
 * synthetic one with Zipf-distributed ids. The transport is left out: miss and fill rows lie ready, as after a receive.
 *
 *     bench_buffer [--json FILE] [--repeat N] [TRACE_DIRECTORY]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/rng.h"
#include "rudder/rudder.h"
#include "trace/trace.h"

/*
 * CPU ms a minibatch of the reference implementation's buffer code (numba, one thread, warm, 1-wide rows, no transport;
 * buffer 25 %, period 16, alpha .005; look-up, counting hits, scores, eviction, sorting), measured on a quiet machine of
 * this kind. Its minibatch holds all input ids; the remote ones among them are what a plan is given here, after the split.
 */
static const double reference_sbm = 2.26, reference_zipf = 23.8;
enum { REFERENCE_SBM_IDS = 13600, ZIPF_IDS = 50000, ZIPF_NODES = 1000000, ZIPF_MINIBATCHES = 192, PERIOD = 16 };

typedef struct workload {
    const char *name;
    trace_t trace;
    int64_t inputs;   /* ids of a minibatch before the split, owned ones included; 0: all are remote */
    double reference; /* CPU ms a minibatch, 0: not measured */
    int64_t n_rows;   /* distinct ids */
    int32_t *row;     /* [n_ids]: row of each id in a table of all distinct ids */
    int64_t id_end;   /* all remote ids are below */
} workload_t;

/* ns, of this thread */
static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void *must(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "bench_buffer: out of memory\n");
        exit(1);
    }
    return memory;
}

/* ---- Workloads -------------------------------------------------------------------------------------------------- */

/* Numbers the distinct ids in the order of first appearance; the halo too, since start content is fetched from it. */
static void number_rows(workload_t *w)
{
    const trace_t *t = &w->trace;
    int64_t most = 0;
    for (int64_t i = 0; i < t->n_ids; i++) {
        most = t->ids[i] > most ? t->ids[i] : most;
    }
    for (int64_t i = 0; i < t->n_halo; i++) {
        most = t->halo[i] > most ? t->halo[i] : most;
    }
    w->id_end = most + 1;
    int32_t *number = must(malloc((size_t)(most + 1) * sizeof *number));
    memset(number, 0xff, (size_t)(most + 1) * sizeof *number);
    w->row = must(malloc((size_t)t->n_ids * sizeof *w->row));
    for (int64_t i = 0; i < t->n_ids; i++) {
        if (number[t->ids[i]] < 0) {
            number[t->ids[i]] = (int32_t)w->n_rows++;
        }
        w->row[i] = number[t->ids[i]];
    }
    free(number);
}

/* Distinct Zipf-distributed ids (exponent 1) in every minibatch; hot ids are spread over the id space. */
static void make_zipf(workload_t *w)
{
    trace_t *t = &w->trace;
    double *sum = must(malloc(ZIPF_NODES * sizeof *sum));
    int32_t *last = must(calloc(ZIPF_NODES, sizeof *last));
    t->n_minibatches = ZIPF_MINIBATCHES;
    t->most_ids = ZIPF_IDS;
    t->n_ids = (int64_t)ZIPF_IDS * ZIPF_MINIBATCHES;
    t->n_halo = ZIPF_NODES;
    t->ids = must(malloc((size_t)t->n_ids * sizeof *t->ids));
    t->offsets = must(malloc((ZIPF_MINIBATCHES + 1) * sizeof *t->offsets));
    t->halo = must(malloc(ZIPF_NODES * sizeof *t->halo));
    t->halo_degree = must(malloc(ZIPF_NODES * sizeof *t->halo_degree));
    for (int i = 0; i < ZIPF_NODES; i++) {
        sum[i] = (i > 0 ? sum[i - 1] : 0) + 1.0 / (i + 1);
        t->halo[i] = (int64_t)i * 7919 % ZIPF_NODES * 3; /* 7919 has no factor in common with the number of nodes */
        t->halo_degree[i] = (uint32_t)(ZIPF_NODES / (i + 1));
    }
    for (int m = 0; m < ZIPF_MINIBATCHES; m++) {
        t->offsets[m] = (int64_t)m * ZIPF_IDS;
        for (uint64_t n = 0, draw = 0; n < ZIPF_IDS; draw++) {
            const rng_block_t r = rng_philox(rng_key(RNG_SEEDS, 1, 0, (uint64_t)m, 0), draw, 0);
            const double x = ((double)r.v[0] + (double)r.v[1] * 0x1p-32) * 0x1p-32 * sum[ZIPF_NODES - 1];
            int low = 0, high = ZIPF_NODES - 1;
            while (low < high) {
                const int middle = (low + high) / 2;
                if (sum[middle] < x) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            if (last[low] != m + 1) {
                last[low] = m + 1;
                t->ids[t->offsets[m] + (int64_t)n++] = t->halo[low];
            }
        }
    }
    t->offsets[ZIPF_MINIBATCHES] = t->n_ids;
    free(sum);
    free(last);
}

static int read_workload(workload_t *w, const char *directory, const char *name, int64_t inputs, double reference)
{
    char path[1024];
    rudder_error_t error;
    *w = (workload_t){.name = name, .inputs = inputs, .reference = reference};
    if (directory == NULL) {
        make_zipf(w);
    } else {
        snprintf(path, sizeof path, "%s/%s.npz", directory, name);
        if (trace_load(path, &w->trace, &error) != RUDDER_OK) {
            fprintf(stderr, "bench_buffer: %s\n", error.text);
            return 0;
        }
    }
    number_rows(w);
    return 1;
}

static void free_workload(workload_t *w)
{
    trace_free(&w->trace);
    free(w->row);
}

/* ---- One run ---------------------------------------------------------------------------------------------------- */

typedef struct run {
    const char *policy, *decider;
    int width; /* floats a row */
    /* found: ns summed over the run, least of the repeats */
    double split, announce, plan, complete, fill, gather;
    rudder_stats_t stats;
} run_t;

/* What a host does before it plans: remote ids apart from owned ones. Owned ids are made up, two runs of a minibatch. */
static int64_t split(const int64_t *input, int64_t n, int64_t owned_begin, int64_t owned_end, int64_t *remote)
{
    int64_t n_remote = 0;
    for (int64_t i = 0; i < n; i++) {
        remote[n_remote] = input[i];
        n_remote += input[i] < owned_begin || input[i] >= owned_end;
    }
    return n_remote;
}

/* A row that is copied whole, for the gather; inlined for one float. */
static void gather(const float *table, const int32_t *row, int64_t n, int width, float *out)
{
    if (width == 1) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = table[row[i]];
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            memcpy(out + i * width, table + (int64_t)row[i] * width, (size_t)width * sizeof *out);
        }
    }
}

static const int64_t owned_begin = (int64_t)1 << 40, owned_end = (int64_t)1 << 41;

static int run_once(const workload_t *w, run_t *run)
{
    const trace_t *t = &w->trace;
    const size_t row_bytes = (size_t)run->width * sizeof(float);
    const int64_t capacity = t->n_halo / 4;
    const rudder_type_config_t type = {.row_bytes = row_bytes,
                                       .capacity_rows = capacity,
                                       .max_ids = t->most_ids,
                                       .max_tracked = w->n_rows,
                                       .id_end = w->id_end, /* as a host does that knows its graph */
                                       .owned_begin = owned_begin,
                                       .owned_end = owned_end,
                                       .halo = t->halo,
                                       .halo_degree = t->halo_degree,
                                       .n_halo = t->n_halo};
    rudder_config_t config;
    rudder_t *handle;
    rudder_plan_t *plan;
    rudder_error_t error;
    const int64_t *fetch;
    int64_t n_miss, n_fill;
    const int64_t most_inputs = w->inputs > t->most_ids ? w->inputs : t->most_ids;
    const int64_t most_rows = t->most_ids > capacity ? t->most_ids : capacity;
    float *table = must(aligned_alloc(64, ((size_t)w->n_rows * row_bytes + 63) / 64 * 64));
    float *rows = must(calloc((size_t)most_rows, row_bytes)), *out = must(calloc((size_t)t->most_ids, row_bytes));
    int64_t *input = must(malloc((size_t)most_inputs * sizeof *input)),
            *remote = must(malloc((size_t)most_inputs * sizeof *remote));
    memset(table, 0, (size_t)w->n_rows * row_bytes);
    rudder_config_init(&config, sizeof config);
    config.types = &type;
    config.policy = run->policy;
    config.decider = run->decider;
    config.period = PERIOD;
    if (rudder_open(&config, &handle, &error) != RUDDER_OK) {
        fprintf(stderr, "bench_buffer: %s\n", error.text);
        return 0;
    }
    run_t found = {0};
    rudder_plan_start(handle, 0, &plan, NULL);
    rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
    rudder_fill(handle, plan, rows, row_bytes, n_fill, NULL);
    for (int64_t m = 0, next = 0; m < t->n_minibatches; m++) {
        const int64_t *ids = t->ids + t->offsets[m];
        const int64_t n = t->offsets[m + 1] - t->offsets[m], n_input = w->inputs > n ? w->inputs : n;
        for (int64_t i = 0; i < n_input; i++) { /* remote ids evenly between owned ones */
            const int64_t before = i * n / n_input, here = (i + 1) * n / n_input;
            input[i] = here > before ? ids[before] : owned_begin + i;
        }
        const double t0 = cpu_ns();
        const int64_t n_remote = split(input, n_input, owned_begin, owned_end, remote);
        const double t1 = cpu_ns();
        next = next > m ? next : m;
        while (next < t->n_minibatches && rudder_announce_wanted(handle, 0) &&
               rudder_announce(handle, next, 0, t->ids + t->offsets[next], t->offsets[next + 1] - t->offsets[next],
                               &error) == RUDDER_OK) {
            next++;
        }
        const double t2 = cpu_ns();
        if (rudder_plan_begin(handle, 0, remote, n_remote, &plan, &error) != RUDDER_OK) {
            fprintf(stderr, "bench_buffer: %s\n", error.text);
            return 0;
        }
        const double t3 = cpu_ns();
        rudder_plan_fetch(plan, &fetch, &n_miss, &n_fill);
        memset(rows, (int)m, (size_t)(n_miss > n_fill ? n_miss : n_fill) * row_bytes); /* as if received just now */
        const double t4 = cpu_ns();
        rudder_complete(handle, plan, rows, row_bytes, out, NULL);
        const double t5 = cpu_ns();
        if (n_fill > 0) {
            rudder_fill(handle, plan, rows, row_bytes, n_fill, NULL);
        }
        const double t6 = cpu_ns();
        gather(table, w->row + t->offsets[m], n, run->width, out);
        const double t7 = cpu_ns();
        found.split += t1 - t0;
        found.announce += t2 - t1;
        found.plan += t3 - t2;
        found.complete += t5 - t4;
        found.fill += t6 - t5;
        found.gather += t7 - t6;
    }
    rudder_stats_get(handle, &found.stats, sizeof found.stats);
    rudder_close(handle, 0);
    free(table);
    free(rows);
    free(out);
    free(input);
    free(remote);
    const double sum = run->announce + run->plan + run->complete + run->fill;
    const double now = found.announce + found.plan + found.complete + found.fill;
    if (run->stats.minibatches == 0 || now < sum) {
        run->split = found.split;
        run->announce = found.announce;
        run->plan = found.plan;
        run->complete = found.complete;
        run->fill = found.fill;
        run->gather = run->stats.minibatches == 0 || found.gather < run->gather ? found.gather : run->gather;
        run->stats = found.stats;
    }
    return 1;
}

/* ---- Table ------------------------------------------------------------------------------------------------------ */

static void report(const workload_t *w, const run_t *run, json_t *json)
{
    const double ids = (double)w->trace.n_ids, minibatches = (double)w->trace.n_minibatches;
    const double sum = run->announce + run->plan + run->complete;
    const double ms = (run->split + sum + run->fill) / minibatches * 1e-6;
    const double reference = run->width == 1 ? w->reference : 0;
    printf("%-18s %-9s %4d  %5.1f  %6.1f %6.1f %6.1f %6.1f  %6.1f  %5.2f  %8.3f", w->name, run->policy, run->width,
           100 * (double)run->stats.hit_rows / (double)run->stats.remote_rows, run->announce / ids, run->plan / ids,
           run->complete / ids, sum / ids, run->gather / ids, sum / run->gather, ms);
    if (reference > 0) {
        printf("  %8.2f  %5.1f", reference, reference / ms);
    }
    printf("\n");
    json_object(json, NULL);
    json_string(json, "trace", w->name);
    json_string(json, "policy", run->policy);
    json_string(json, "decider", run->decider);
    json_int(json, "row_bytes", run->width * (int64_t)sizeof(float));
    json_int(json, "capacity_rows", run->stats.capacity_rows);
    json_int(json, "memory_bytes", run->stats.memory_bytes);
    json_int(json, "minibatches", w->trace.n_minibatches);
    json_double(json, "ids_per_minibatch", ids / minibatches);
    json_double(json, "hit_rate", (double)run->stats.hit_rows / (double)run->stats.remote_rows);
    json_int(json, "fill_rows", run->stats.fill_rows);
    json_double(json, "announce_ns_per_id", run->announce / ids);
    json_double(json, "plan_ns_per_id", run->plan / ids);
    json_double(json, "complete_ns_per_id", run->complete / ids);
    json_double(json, "gather_ns_per_id", run->gather / ids);
    json_double(json, "cpu_ms_per_minibatch", ms);
    json_double(json, "reference_cpu_ms_per_minibatch", reference > 0 ? reference : 0);
    json_end_object(json);
}

static int run_workload(const workload_t *w, int repeat, json_t *json)
{
    static const struct {
        const char *policy, *decider;
    } policies[] = {{"static", NULL},      {"lru", NULL}, {"lfu", NULL},      {"sieve", NULL},
                    {"score", "fixed:16"}, {"mix", NULL}, {"lookahead", NULL}};
    static const int widths[] = {1, 100};
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        for (int v = 0; v < 2; v++) {
            run_t run = {.policy = policies[p].policy, .decider = policies[p].decider, .width = widths[v]};
            for (int i = 0; i < repeat; i++) {
                if (!run_once(w, &run)) {
                    return 0;
                }
            }
            report(w, &run, json);
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    const char *directory = "../shared/data/traces", *json_path = NULL;
    int repeat = 3;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            json_path = argv[++i];
        } else if (strcmp(argv[i], "--repeat") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
            repeat = atoi(argv[++i]);
        } else if (argv[i][0] == '-') {
            fprintf(stderr, "usage: bench_buffer [--json FILE] [--repeat N] [TRACE_DIRECTORY]\n");
            return 2;
        } else {
            directory = argv[i];
        }
    }
    json_t json = {.pretty = 1};
    json_object(&json, NULL);
    json_string(&json, "version", rudder_version());
    json_string(&json, "compiler", __VERSION__);
    json_int(&json, "period", PERIOD);
    json_double(&json, "capacity_share", .25);
    json_array(&json, "runs");
    printf("Rudder %s, compiler %s; buffer 25 %% of the halo, period %d, alpha .005, one thread, least of %d runs.\n",
           rudder_version(), __VERSION__, PERIOD, repeat);
    printf(
        "score: fixed:16. Starts: the policies' own. CPU time of the thread, no transport.\n"
        "ms a minibatch: split off the owned ids, announce, plan, complete, fill. Reference: CPU ms of the reference\n"
        "implementation's buffer code (numba, one thread, warm, 1-wide rows, same settings) on a quiet machine of "
        "this\n"
        "kind, for the whole minibatch: sbm %d input ids, of which the plan gets the remote ones after the split;\n"
        "zipf %d ids of %d (here: distinct, exponent 1).\n\n",
        REFERENCE_SBM_IDS, ZIPF_IDS, ZIPF_NODES);
    printf("%-18s %-9s %4s  %5s  %6s %6s %6s %6s  %6s  %5s  %8s  %8s  %5s\n", "trace", "policy", "row", "hit %", "ann.",
           "plan", "compl.", "sum", "gather", "ratio", "ms/mb", "ref. ms", "times");
    printf("%-18s %-9s %4s  %5s  %6s %6s %6s %6s  %6s  %5s  %8s  %8s  %5s\n", "", "", "f32", "", "ns/id", "ns/id",
           "ns/id", "ns/id", "ns/id", "", "CPU", "CPU", "less");
    for (int i = 0; i < 3; i++) {
        workload_t w;
        const int good = i == 0   ? read_workload(&w, directory, "sbm200k_b100.rank0", REFERENCE_SBM_IDS, reference_sbm)
                         : i == 1 ? read_workload(&w, directory, "rmat_b100.rank0", 0, 0)
                                  : read_workload(&w, NULL, "zipf", 0, reference_zipf);
        if (!good || !run_workload(&w, repeat, &json)) {
            return 1;
        }
        free_workload(&w);
    }
    json_end_array(&json);
    json_end_object(&json);
    if (json_path != NULL) {
        FILE *file = fopen(json_path, "w");
        const int failed = file == NULL || json.failed || fputs(json.text, file) < 0 || fputs("\n", file) < 0;
        if ((file != NULL && fclose(file) != 0) || failed) {
            fprintf(stderr, "bench_buffer: %s cannot be written\n", json_path);
            return 1;
        }
    }
    json_free(&json);
    return 0;
}
