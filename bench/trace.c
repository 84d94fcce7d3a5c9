/*
 * What recording and reading traces cost: bench_trace TRACE... writes each anew as .rtr, repeated to at least 30 million ids, and
 * reads it back. CPU time of one thread; bytes an id in the file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report/table.h"
#include "trace/recorder.h"
#include "trace/trace.h"

enum { BENCH_IDS = 30000000 };

static double bench_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static rudder_status_t bench_write(const char *path, const trace_t *trace, int64_t *n_ids, rudder_error_t *error)
{
    recorder_t *recorder;
    rudder_status_t status = recorder_open(path, &(trace_info_t){.kind = ""}, &recorder, error);
    if (status != RUDDER_OK) {
        return status;
    }
    for (int64_t i = 0; *n_ids < BENCH_IDS && status == RUDDER_OK && trace->n_ids > 0; i++) {
        const int64_t t = i % trace->n_minibatches;
        const trace_minibatch_t m = {.ids = trace->ids + trace->offsets[t],
                                     .n = trace->offsets[t + 1] - trace->offsets[t],
                                     .announced = -1,
                                     .miss = -1,
                                     .fill = -1};
        status = recorder_add(recorder, &m, error);
        status = status == RUDDER_OK ? recorder_times(recorder, i, &m.times, error) : status;
        *n_ids += m.n;
    }
    const rudder_status_t closed = recorder_close(recorder, status == RUDDER_OK ? error : NULL);
    return status == RUDDER_OK ? closed : status;
}

static rudder_status_t bench_read(const char *path, int64_t *memory, rudder_error_t *error)
{
    trace_reader_t *reader;
    const trace_info_t *info;
    trace_minibatch_t m;
    int end = 0;
    rudder_status_t status = trace_reader_open(path, &reader, &info, error);
    if (status != RUDDER_OK) {
        return status;
    }
    while (!end && status == RUDDER_OK) {
        status = trace_reader_next(reader, &m, &end, error);
    }
    *memory = trace_reader_memory(reader);
    trace_reader_close(reader);
    return status;
}

static rudder_status_t bench_one(const char *path, const char *work, table_t *table, rudder_error_t *error)
{
    trace_t trace;
    struct stat about = {0};
    int64_t n_ids = 0, memory = 0;
    rudder_status_t status = trace_load(path, &trace, error);
    if (status != RUDDER_OK) {
        return status;
    }
    const double start = bench_seconds();
    status = bench_write(work, &trace, &n_ids, error);
    const double wrote = bench_seconds();
    status = status == RUDDER_OK ? bench_read(work, &memory, error) : status;
    const double done = bench_seconds(), millions = (double)n_ids / 1e6;
    if (status == RUDDER_OK && stat(work, &about) == 0) {
        table_cell(table, "%s", path);
        table_cell(table, "%.1f", (double)trace.n_ids / (double)(trace.n_minibatches > 0 ? trace.n_minibatches : 1));
        table_cell(table, "%.2f", (double)about.st_size / (double)(n_ids > 0 ? n_ids : 1));
        table_cell(table, "%.0f", millions / (wrote - start));
        table_cell(table, "%.0f", millions / (done - wrote));
        table_cell(table, "%.1f", (double)memory / 1e6);
    }
    trace_free(&trace);
    unlink(work);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const head[] = {"trace",           "ids a minibatch", "bytes an id",
                                       "written M ids/s", "read M ids/s",    "reader MB"};
    rudder_error_t error = {0};
    char folder[] = "/tmp/rudder-bench-XXXXXX", work[64];
    table_t *table = table_open("lr|rrrr");
    rudder_status_t status = table != NULL && mkdtemp(folder) != NULL ? RUDDER_OK : RUDDER_E_MEMORY;
    snprintf(work, sizeof work, "%s/trace.rtr", folder);
    for (size_t i = 0; i < sizeof head / sizeof head[0] && status == RUDDER_OK; i++) {
        table_cell(table, "%s", head[i]);
    }
    for (int i = 1; i < argc && status == RUDDER_OK; i++) {
        status = bench_one(argv[i], work, table, &error);
    }
    status = status == RUDDER_OK ? table_print(table, stdout, &error) : status;
    if (status != RUDDER_OK) {
        fprintf(stderr, "%s\n", error.text);
    }
    table_close(table);
    rmdir(folder);
    return status == RUDDER_OK ? 0 : 1;
}
