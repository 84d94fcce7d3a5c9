/*
 * How fast traces are replayed: ids per second of one core, through the same code as `rudder replay`: reading, planning,
 * completing, the clock. Traces: Zipf-distributed ids over a million, and a recorded one, both as .rtr. And whether a trace
 * that is far longer than memory is replayed in little of it.
 *
 *     bench_replay [--json FILE] [--repeat N] [--stream MILLIONS] [TRACE_DIRECTORY]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/rng.h"
#include "report/table.h"
#include "trace/recorder.h"
#include "trace/replay.h"

enum {
    ZIPF_NODES = 1 << 20,
    ZIPF_IDS = 10000, /* distinct, of a minibatch */
    ZIPF_MILLIONS = 20,
    CAPACITY = 100000,
    PERIOD = 16
};

/* What is replayed, and the ids per second that are wanted. */
typedef struct bench_way {
    const char *name, *policy, *start, *decider;
    replay_ahead_t ahead;
    double target;
    int streams; /* looks at one minibatch at a time */
} bench_way_t;

static const bench_way_t bench_ways[] = {
    {"lru", "lru", "empty", NULL, REPLAY_WANTED, 20e6, 1},
    {"lfu", "lfu", "empty", NULL, REPLAY_WANTED, 20e6, 1},
    {"score", "score", "degree", "fixed:16", REPLAY_WANTED, 20e6, 1},
    {"mix", "mix", "empty", NULL, REPLAY_WANTED, 10e6, 1},
    {"lookahead", "lookahead", "empty", NULL, REPLAY_WANTED, 5e6, 0},
    {"belady", "lookahead", "empty", NULL, REPLAY_ALL, 5e6, 0},
};
enum { BENCH_WAYS = sizeof bench_ways / sizeof *bench_ways };

static double bench_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double bench_peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* ---- A trace of any length -------------------------------------------------------------------------------------- */

/* Minibatches of distinct ids, the k-th hottest with probability near 1 / k; hot ids are spread over the id space. */
static void bench_draw(int64_t t, int32_t *last, int64_t *ids)
{
    const uint64_t key = rng_mix((uint64_t)t + 1);
    uint64_t draw = 0;
    for (int n = 0; n < ZIPF_IDS;) {
        const double uniform = (double)(rng_mix(key ^ rng_mix(draw++)) >> 11) * 0x1p-53;
        const int64_t k = (int64_t)exp2(20 * uniform) - 1; /* log-uniform over 2^20 */
        if (last[k] != (int32_t)t + 1) {
            last[k] = (int32_t)t + 1;
            ids[n++] = k * 7919 % ZIPF_NODES;
        }
    }
}

static rudder_status_t bench_write(const char *path, int64_t n_ids, rudder_error_t *error)
{
    static int64_t halo[ZIPF_NODES], ids[ZIPF_IDS];
    static uint32_t degree[ZIPF_NODES];
    static int32_t last[ZIPF_NODES];
    recorder_t *recorder;
    for (int64_t k = 0; k < ZIPF_NODES; k++) {
        halo[k] = k;
        degree[k * 7919 % ZIPF_NODES] = (uint32_t)(ZIPF_NODES / (k + 1));
    }
    memset(last, 0, sizeof last);
    const trace_info_t info = {.graph = "zipf", .n_halo = ZIPF_NODES, .halo = halo, .halo_degree = degree};
    rudder_status_t status = recorder_open(path, &info, &recorder, error);
    if (status != RUDDER_OK) {
        return status;
    }
    for (int64_t t = 0; t < n_ids / ZIPF_IDS && status == RUDDER_OK; t++) {
        bench_draw(t, last, ids);
        const trace_minibatch_t m = {.ids = ids,
                                     .n = ZIPF_IDS,
                                     .announced = -1,
                                     .miss = -1,
                                     .fill = -1,
                                     .times = {NAN, NAN, NAN, NAN, NAN, NAN, NAN}};
        status = recorder_add(recorder, &m, error);
        status = status == RUDDER_OK ? recorder_times(recorder, t, &m.times, error) : status;
    }
    const rudder_status_t closed = recorder_close(recorder, status == RUDDER_OK ? error : NULL);
    return status == RUDDER_OK ? closed : status;
}

/* A recorded trace as .rtr, as training records it. */
static rudder_status_t bench_convert(const char *from, const char *path, rudder_error_t *error)
{
    trace_reader_t *reader;
    const trace_info_t *info;
    recorder_t *recorder = NULL;
    rudder_status_t status = trace_reader_open(from, &reader, &info, error);
    if (status != RUDDER_OK) {
        return status;
    }
    status = recorder_open(path, info, &recorder, error);
    for (int64_t t = 0; status == RUDDER_OK; t++) {
        trace_minibatch_t minibatch;
        int end;
        status = trace_reader_next(reader, &minibatch, &end, error);
        if (status != RUDDER_OK || end) {
            break;
        }
        status = recorder_add(recorder, &minibatch, error);
        status = status == RUDDER_OK ? recorder_times(recorder, t, &minibatch.times, error) : status;
    }
    const rudder_status_t closed = recorder_close(recorder, status == RUDDER_OK ? error : NULL);
    trace_reader_close(reader);
    return status == RUDDER_OK ? closed : status;
}

/* ---- Measuring -------------------------------------------------------------------------------------------------- */

typedef struct bench_result {
    double seconds; /* CPU, the best of `repeat` */
    int64_t memory; /* stated */
    replay_result_t rows;
} bench_result_t;

static rudder_status_t bench_run(const scan_t *scan, const bench_way_t *way, int repeat, bench_result_t *result,
                                 rudder_error_t *error)
{
    const scan_group_t group = {.trace = &scan, .n = 1, .minibatches = scan->minibatches};
    const int64_t capacity = scan->known < CAPACITY ? scan->known : CAPACITY;
    static atomic_int stop;
    _Atomic int64_t progress = 0;
    replay_settings_t settings = {.sample = -1, .compute = -1, .depth = -1};
    rudder_config_init(&settings.library, sizeof settings.library);
    settings.library.period = PERIOD;
    replay_job_t job = {.settings = &settings,
                        .group = &group,
                        .policy = way->policy,
                        .start = way->start,
                        .decider = way->decider,
                        .ahead = way->ahead,
                        .latency = {.given = -1},
                        .capacity = &capacity,
                        .max_tracked = &scan->known,
                        .result = &result->rows,
                        .progress = &progress};
    rudder_status_t status = replay_prepare(&job, error);
    result->memory = job.memory;
    result->seconds = INFINITY;
    for (int i = 0; i < repeat && status == RUDDER_OK; i++) {
        const double begin = bench_seconds();
        status = replay_run(&job, &stop, error);
        result->seconds = fmin(result->seconds, bench_seconds() - begin);
    }
    return status;
}

/* Reading alone, for comparison. */
static rudder_status_t bench_read(const char *path, double *seconds, rudder_error_t *error)
{
    trace_reader_t *reader;
    const trace_info_t *info;
    const double begin = bench_seconds();
    rudder_status_t status = trace_reader_open(path, &reader, &info, error);
    if (status != RUDDER_OK) {
        return status;
    }
    for (int end = 0; !end && status == RUDDER_OK;) {
        trace_minibatch_t minibatch;
        status = trace_reader_next(reader, &minibatch, &end, error);
    }
    trace_reader_close(reader);
    *seconds = bench_seconds() - begin;
    return status;
}

static void bench_tell(const scan_t *scan, const char *name, double seconds, double target,
                       const bench_result_t *result, table_t *table, json_t *json)
{
    const double rate = (double)scan->ids / seconds;
    table_cell(table, "%s", name);
    table_cell(table, "%.1f", rate * 1e-6);
    table_cell(table, "%.1f", 1e9 / rate);
    if (result == NULL) {
        table_cell(table, "-");
        table_cell(table, "-");
        table_cell(table, "-");
        table_cell(table, "%.1f", (double)scan->reader_bytes * 1e-6);
    } else {
        table_cell(table, "%.0f", target * 1e-6);
        table_cell(table, "%s", rate >= target ? "yes" : "no");
        table_cell(table, "%.2f %%", 100 * (1 - (double)result->rows.fetched / (double)result->rows.remote));
        table_cell(table, "%.1f", (double)result->memory * 1e-6);
    }
    json_object(json, NULL);
    json_string(json, "trace", scan->info.graph);
    json_string(json, "policy", name);
    json_double(json, "ids_per_second", rate);
    json_double(json, "target", target);
    json_int(json, "ids", scan->ids);
    json_int(json, "minibatches", scan->minibatches);
    if (result != NULL) {
        json_int(json, "fetched_rows", result->rows.fetched);
        json_int(json, "remote_rows", result->rows.remote);
        json_int(json, "memory_bytes", result->memory);
    }
    json_double(json, "peak_rss_mb", bench_peak_mb());
    json_end_object(json);
}

/* All policies, or those that stream, over one trace. */
static rudder_status_t bench_trace(const char *path, const char *name, int repeat, int streams, json_t *json,
                                   rudder_error_t *error)
{
    scan_t scan;
    _Atomic int64_t progress = 0;
    double seconds = 0;
    const double begin = bench_seconds();
    rudder_status_t status = scan_trace(path, &scan, &progress, error);
    if (status != RUDDER_OK) {
        return status;
    }
    const double scanned = bench_seconds() - begin;
    snprintf(scan.info.graph, sizeof scan.info.graph, "%s", name);
    printf("\n%s: %lld ids in %lld minibatches, %lld distinct; capacity %d rows\n", name, (long long)scan.ids,
           (long long)scan.minibatches, (long long)scan.distinct,
           scan.known < CAPACITY ? (int)scan.known : (int)CAPACITY);
    table_t *table = table_open("lrrrlrr");
    static const char *const head[] = {"policy", "M ids/s", "ns/id", "target", "met", "saved", "memory MB"};
    for (size_t i = 0; table != NULL && i < sizeof head / sizeof *head; i++) {
        table_cell(table, "%s", head[i]);
    }
    if (table == NULL) {
        return RUDDER_E_MEMORY;
    }
    table_line(table);
    status = bench_read(path, &seconds, error);
    bench_tell(&scan, "(reading alone)", seconds, 0, NULL, table, json);
    bench_tell(&scan, "(first reading)", scanned, 0, NULL, table, json);
    for (int i = 0; i < BENCH_WAYS && status == RUDDER_OK; i++) {
        bench_result_t result;
        if (bench_ways[i].streams || !streams) {
            status = bench_run(&scan, &bench_ways[i], repeat, &result, error);
        }
        if (status == RUDDER_OK && (bench_ways[i].streams || !streams)) {
            bench_tell(&scan, bench_ways[i].name, result.seconds, bench_ways[i].target, &result, table, json);
        }
    }
    if (status == RUDDER_OK) {
        status = table_print(table, stdout, error);
    }
    table_close(table);
    scan_free(&scan);
    return status;
}

/* A long trace, written and replayed where it lies; the most memory that all of it took stands below. */
static rudder_status_t bench_stream(const char *path, int64_t millions, json_t *json, rudder_error_t *error)
{
    struct stat about;
    rudder_status_t status = bench_write(path, millions * 1000000, error);
    const double before = bench_peak_mb();
    if (status == RUDDER_OK) {
        status = bench_trace(path, "zipf, streamed", 1, 1, json, error);
    }
    if (status == RUDDER_OK && stat(path, &about) == 0) {
        printf("file %.1f MB; peak memory of the process %.1f MB before, %.1f MB after\n", (double)about.st_size * 1e-6,
               before, bench_peak_mb());
    }
    unlink(path);
    return status;
}

int main(int argc, char **argv)
{
    const char *directory = "../shared/data/traces", *json_path = NULL;
    const char *temporary = getenv("TMPDIR");
    int repeat = 3;
    int64_t millions = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            json_path = argv[++i];
        } else if (strcmp(argv[i], "--repeat") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
            repeat = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--stream") == 0 && i + 1 < argc && atoll(argv[i + 1]) > 0) {
            millions = atoll(argv[++i]);
        } else if (argv[i][0] == '-') {
            fprintf(stderr, "usage: bench_replay [--json FILE] [--repeat N] [--stream MILLIONS] [TRACE_DIRECTORY]\n");
            return 2;
        } else {
            directory = argv[i];
        }
    }
    char path[4096], recorded[4096];
    rudder_error_t error = {0};
    json_t json = {.pretty = 1};
    snprintf(path, sizeof path, "%s/rudder-bench-%ld.rtr", temporary != NULL ? temporary : "/tmp", (long)getpid());
    snprintf(recorded, sizeof recorded, "%s/sbm200k_b100.rank0.npz", directory);
    json_object(&json, NULL);
    json_string(&json, "version", rudder_version());
    json_string(&json, "compiler", __VERSION__);
    json_int(&json, "period", PERIOD);
    json_int(&json, "capacity_rows", CAPACITY);
    json_int(&json, "repeat", repeat);
    json_array(&json, "runs");
    printf("rudder %s, compiler %s, period %d; CPU time of one thread, best of %d\n", rudder_version(), __VERSION__,
           PERIOD, repeat);
    rudder_status_t status =
        millions > 0 ? bench_stream(path, millions, &json, &error) : bench_write(path, ZIPF_MILLIONS * 1000000, &error);
    if (status == RUDDER_OK && millions == 0) {
        status = bench_trace(path, "zipf", repeat, 0, &json, &error);
        unlink(path);
        if (status == RUDDER_OK && access(recorded, R_OK) == 0) {
            status = bench_convert(recorded, path, &error);
            status = status == RUDDER_OK ? bench_trace(path, "sbm200k_b100.rank0", repeat, 0, &json, &error) : status;
            unlink(path);
        }
    }
    json_end_array(&json);
    json_end_object(&json);
    if (status == RUDDER_OK && json_path != NULL) {
        FILE *file = fopen(json_path, "w");
        const int failed = file == NULL || json.failed || fputs(json.text, file) < 0 || fputs("\n", file) < 0;
        if ((file != NULL && fclose(file) != 0) || failed) {
            fprintf(stderr, "bench_replay: cannot write %s\n", json_path);
            status = RUDDER_E_IO;
        }
    }
    json_free(&json);
    if (status != RUDDER_OK) {
        fprintf(stderr, "bench_replay: %s\n", error.text);
    }
    return status == RUDDER_OK ? 0 : 1;
}
