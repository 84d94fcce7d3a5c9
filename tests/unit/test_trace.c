/*
 * Traces: what is recorded is read back, in order and to the bit; files cut at every byte and changed in every byte end
 * early or are refused, and never give other ids; a killed writer leaves what it wrote; text and archives say the same.
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "trace/reader.h"
#include "trace/recorder.h"
#include "trace/rtr.h"
#include "trace/trace.h"

static char folder[] = "/tmp/rudder-trace-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/trace", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* ---- Traces of known content ------------------------------------------------------------------------------------ */

static uint64_t state_of_random;

static uint64_t random64(void)
{
    return rng_mix(state_of_random++);
}

/* What minibatch t of a made trace holds: a pure function of (kind, t). */
typedef enum kind { SMALL, ASCENDING, WIDE, HUGE_IDS, MIXED, KINDS } kind_t;

static int64_t make_id(kind_t kind, int64_t before)
{
    const uint64_t random = random64();
    switch (kind) {
    case SMALL:
        return (int64_t)(random % 50);
    case ASCENDING:
        return before + (int64_t)(random % 200);
    case WIDE:
        return (int64_t)(random >> 28);
    case HUGE_IDS:
        return INT64_MAX - (int64_t)(random % 3 == 0 ? random >> 1 : random % 5);
    default:
        return (int64_t)(random >> (1 + random % 63));
    }
}

static void make_minibatch(kind_t kind, int64_t t, int64_t n, int64_t *ids, trace_minibatch_t *m)
{
    state_of_random = rng_mix((uint64_t)t * 100 + (uint64_t)kind);
    for (int64_t i = 0; i < n; i++) {
        ids[i] = make_id(kind, i > 0 ? ids[i - 1] : (int64_t)1 << 40);
    }
    *m = (trace_minibatch_t){.ids = ids,
                             .n = n,
                             .announced = (int32_t)(random64() % 5) - 1,
                             .miss = (int64_t)(random64() % (uint64_t)(n + 2)) - 1,
                             .fill = (int64_t)(random64() % 100) - 1,
                             .times = {.sample = (float)(random64() % 1000) * 1e-3f,
                                       .plan = 0,
                                       .exchange = 1e-20f,
                                       .complete = NAN,
                                       .gather = 3,
                                       .wait = NAN,
                                       .compute = NAN}};
}

static int same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void check_times(const trace_times_t *a, const trace_times_t *b)
{
    assert_true(same_float(a->sample, b->sample) && same_float(a->plan, b->plan));
    assert_true(same_float(a->exchange, b->exchange) && same_float(a->complete, b->complete));
    assert_true(same_float(a->gather, b->gather) && same_float(a->wait, b->wait));
    assert_true(same_float(a->compute, b->compute));
}

static void check_minibatch(const trace_minibatch_t *found, const trace_minibatch_t *expected)
{
    assert_int_equal(found->n, expected->n);
    assert_int_equal(found->announced, expected->announced);
    assert_int_equal(found->miss, expected->miss);
    assert_int_equal(found->fill, expected->fill);
    check_times(&found->times, &expected->times);
    if (found->n > 0) {
        assert_memory_equal(found->ids, expected->ids, (size_t)found->n * sizeof *found->ids);
    }
}

static const int64_t some_halo[] = {5, 7, (int64_t)1 << 40, INT64_MAX, 0};
static const uint32_t some_degree[] = {1, 0, UINT32_MAX, 300, 128};
static const int64_t some_owners[] = {0, 10, 10, (int64_t)1 << 41}; /* rank 1 owns nothing */

static trace_info_t some_info(void)
{
    return (trace_info_t){.graph = "graph \"of\" \xc3\xa4",
                          .partition = "metis",
                          .order = "shuffled",
                          .policy = "mix",
                          .run = "run-1",
                          .rank = 2,
                          .ranks = 3,
                          .seed = UINT64_MAX,
                          .batch = 1000,
                          .steps_per_epoch = 12,
                          .epochs = 3,
                          .n_nodes = (int64_t)1 << 41,
                          .row_bytes = 1024,
                          .capacity_rows = 99,
                          .depth = 2,
                          .n_layers = 3,
                          .fanout = {15, 10, -1},
                          .max_tracked = 12345,
                          .links = {.common = {.bytes_per_second = 1.25e8, .latency = 0.1 + 0.2}},
                          .n_halo = 5,
                          .halo = some_halo,
                          .halo_degree = some_degree};
}

static recorder_t *start_recorder(const trace_info_t *info)
{
    recorder_t *recorder = NULL;
    rudder_error_t error = {0};
    unlink(path);
    if (recorder_open(path, info, &recorder, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    return recorder;
}

/* Sizes of minibatches that go round: nothing, one, two, and around the lengths of varints. */
static int64_t size_of(int64_t t)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 127, 0, 128, 1000};
    return sizes[t % 8];
}

static void record(kind_t kind, int64_t n_minibatches, const trace_info_t *info)
{
    recorder_t *recorder = start_recorder(info);
    int64_t ids[1000];
    for (int64_t t = 0; t < n_minibatches; t++) {
        trace_minibatch_t m;
        make_minibatch(kind, t, size_of(t), ids, &m);
        assert_int_equal(recorder_add(recorder, &m, NULL), RUDDER_OK);
    }
    assert_int_equal(recorder_close(recorder, NULL), RUDDER_OK);
}

/* Reads to the end and checks every minibatch. Returns how many came; *status is how it ended. */
static int64_t read_and_check(kind_t kind, rudder_status_t *status, int *torn, rudder_error_t *error)
{
    trace_reader_t *reader;
    const trace_info_t *info;
    int64_t ids[1000], t = 0;
    *torn = 0;
    *status = trace_reader_open(path, &reader, &info, error);
    if (*status != RUDDER_OK) {
        return 0;
    }
    for (;; t++) {
        trace_minibatch_t found, expected;
        int end;
        *status = trace_reader_next(reader, &found, &end, error);
        if (*status != RUDDER_OK || end) {
            break;
        }
        make_minibatch(kind, t, size_of(t), ids, &expected);
        check_minibatch(&found, &expected);
    }
    *torn = trace_reader_torn(reader);
    trace_reader_close(reader);
    return t;
}

/* ---- Round trips ------------------------------------------------------------------------------------------------ */

static void test_round_trip(void **state)
{
    static const int64_t ladder[] = {0, 1, 2, 3, 8, 100, 3000};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < sizeof ladder / sizeof *ladder; i++) {
            const trace_info_t info = some_info();
            rudder_status_t status;
            rudder_error_t error = {0};
            int torn;
            record((kind_t)kind, ladder[i], &info);
            assert_int_equal(read_and_check((kind_t)kind, &status, &torn, &error), ladder[i]);
            assert_int_equal(status, RUDDER_OK);
            assert_false(torn);
        }
    }
}

static void test_facts(void **state)
{
    trace_info_t in = some_info();
    const trace_info_t *out;
    trace_reader_t *reader;
    (void)state;
    in.rank = 1;
    in.owner_offset = some_owners;
    *links_add(&in.links, 2) = (link_t){.bytes_per_second = 1e6 / 3};
    *links_add(&in.links, 0) = (link_t){.latency = 1e-7};
    record(SMALL, 17, &in);
    assert_int_equal(trace_reader_open(path, &reader, &out, NULL), RUDDER_OK);
    assert_string_equal(out->kind, "rtr");
    assert_string_equal(out->graph, in.graph);
    assert_string_equal(out->partition, in.partition);
    assert_string_equal(out->order, in.order);
    assert_string_equal(out->policy, in.policy);
    assert_string_equal(out->run, in.run);
    assert_true(out->rank == in.rank && out->ranks == in.ranks && out->seed == in.seed && out->batch == in.batch);
    assert_true(out->steps_per_epoch == in.steps_per_epoch && out->epochs == in.epochs && out->n_nodes == in.n_nodes);
    assert_true(out->row_bytes == in.row_bytes && out->capacity_rows == in.capacity_rows && out->depth == in.depth);
    assert_int_equal(out->n_layers, 3);
    assert_memory_equal(out->fanout, in.fanout, sizeof in.fanout);
    assert_int_equal(out->max_tracked, in.max_tracked);
    assert_memory_equal(&out->links.common, &in.links.common, sizeof in.links.common);
    assert_int_equal(out->links.n_own, 2);
    for (int32_t i = 0; i < 2; i++) {
        assert_int_equal(out->links.own[i].owner, in.links.own[i].owner);
        assert_memory_equal(&out->links.own[i].link, &in.links.own[i].link, sizeof(link_t));
    }
    assert_int_equal(out->n_halo, 5);
    assert_memory_equal(out->halo, some_halo, sizeof some_halo);
    assert_memory_equal(out->halo_degree, some_degree, sizeof some_degree);
    assert_memory_equal(out->owner_offset, some_owners, sizeof some_owners);
    assert_int_equal(out->n_minibatches, 17);
    assert_int_equal(out->n_ids, 2 * 1261 + 0);
    trace_reader_close(reader);
    record(SMALL, 3, &(trace_info_t){.kind = ""});
    assert_int_equal(trace_reader_open(path, &reader, &out, NULL), RUDDER_OK);
    assert_true(out->n_halo == 0 && out->halo_degree == NULL && out->owner_offset == NULL && out->graph[0] == '\0');
    trace_reader_close(reader);
}

static unsigned char *read_file(size_t *n)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(1 << 20);
    *n = fread(bytes, 1, 1 << 20, file);
    assert_true(*n < 1 << 20);
    fclose(file);
    return bytes;
}

static void write_file(const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Puts other offsets of two owners into the file, each less than 64 from the next; checksums are right. */
static void replace_owners(const int64_t *owners)
{
    size_t n, at = 0;
    rtr_block_t block;
    unsigned char *bytes = read_file(&n);
    while (memcmp(bytes + at, RTR_OWNERS, 4) != 0) {
        at++;
    }
    assert_true(rtr_get_block(bytes + at, &block));
    assert_ptr_equal(rtr_put_ids(bytes + at + RTR_BLOCK_BYTES, owners, 3), bytes + at + RTR_BLOCK_BYTES + 3);
    block.crc = rtr_crc(bytes + at + RTR_BLOCK_BYTES, 3);
    rtr_put_block(bytes + at, &block);
    write_file(bytes, n);
    free(bytes);
}

/* Ids that no rank owns, ids of the rank itself, and a halo with an id twice are no trace. */
static void test_contradictions(void **state)
{
    static const int64_t ids[] = {5, 50}, twice[] = {9, 3, 9};
    static const struct {
        int64_t n;
        int32_t rank;
        int64_t owners[3];
        int good;
    } cases[] = {{2, 0, {0, 6, 51}, 0},  {2, 0, {0, 5, 51}, 1},  {2, 0, {0, 4, 51}, 1},
                 {2, 1, {0, 51, 60}, 1}, {2, 1, {0, 50, 60}, 0}, {2, 0, {0, 3, 50}, 0},
                 {1, 0, {0, 3, 50}, 1},  {2, 0, {6, 6, 51}, 0},  {2, 1, {0, 51, 51}, 1}};
    trace_info_t info = {.ranks = 2};
    trace_t trace;
    rudder_error_t error = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const trace_minibatch_t m = {.ids = ids, .n = cases[i].n, .announced = -1, .miss = -1, .fill = -1};
        const int64_t harmless[] = {0, cases[i].rank == 0 ? 0 : 60, 60};
        info.rank = cases[i].rank;
        info.owner_offset = cases[i].owners;
        recorder_t *recorder = start_recorder(&info);
        assert_int_equal(recorder_add(recorder, &m, NULL), cases[i].good ? RUDDER_OK : RUDDER_E_ARGUMENT);
        assert_int_equal(recorder_close(recorder, NULL), RUDDER_OK);
        info.owner_offset = harmless;
        recorder = start_recorder(&info);
        assert_int_equal(recorder_add(recorder, &m, NULL), RUDDER_OK);
        assert_int_equal(recorder_close(recorder, NULL), RUDDER_OK);
        replace_owners(cases[i].owners);
        assert_int_equal(trace_load(path, &trace, &error), cases[i].good ? RUDDER_OK : RUDDER_E_DATA);
        if (cases[i].good) {
            trace_free(&trace);
        } else {
            assert_non_null(strstr(error.text, "minibatch 0"));
        }
    }
    record(SMALL, 1, &(trace_info_t){.n_halo = 3, .halo = twice});
    assert_int_equal(trace_load(path, &trace, &error), RUDDER_E_DATA);
    assert_non_null(strstr(error.text, "found 9 twice"));
}

/* A halo of several blocks, in any order. */
static void test_large_halo(void **state)
{
    enum { HALO = 200001 };
    int64_t *halo = malloc(HALO * sizeof *halo);
    uint32_t *degree = malloc(HALO * sizeof *degree);
    trace_t trace;
    (void)state;
    for (int64_t i = 0; i < HALO; i++) {
        halo[i] = (int64_t)(rng_mix((uint64_t)i) >> 20);
        degree[i] = (uint32_t)rng_mix(~(uint64_t)i);
    }
    record(SMALL, 9, &(trace_info_t){.n_halo = HALO, .halo = halo, .halo_degree = degree});
    assert_int_equal(trace_load(path, &trace, NULL), RUDDER_OK);
    assert_int_equal(trace.n_halo, HALO);
    assert_memory_equal(trace.halo, halo, HALO * sizeof *halo);
    assert_memory_equal(trace.halo_degree, degree, HALO * sizeof *degree);
    assert_int_equal(trace.n_minibatches, 9);
    trace_free(&trace);
    record(SMALL, 1, &(trace_info_t){.n_halo = HALO, .halo = halo});
    assert_int_equal(trace_load(path, &trace, NULL), RUDDER_OK);
    assert_int_equal(trace.n_halo, HALO);
    assert_null(trace.halo_degree);
    trace_free(&trace);
    free(halo);
    free(degree);
}

/* The largest minibatch, of ids that take the most bytes, beside small ones; one more id is refused. */
static void test_large_minibatches(void **state)
{
    static const int64_t sizes[] = {1, TRACE_MAX_IDS, 0, TRACE_MAX_IDS / 7, 2};
    const trace_info_t info = {.kind = ""};
    int64_t *ids = malloc((TRACE_MAX_IDS + 1) * sizeof *ids);
    trace_minibatch_t m = {.announced = -1, .miss = -1, .fill = -1, .ids = ids};
    trace_t trace;
    int64_t at = 0;
    (void)state;
    recorder_t *recorder = start_recorder(&info);
    for (int64_t i = 0; i <= TRACE_MAX_IDS; i++) {
        ids[i] = i % 2 == 0 ? INT64_MAX - i : i;
    }
    for (int i = 0; i < 5; i++) {
        m.n = sizes[i];
        assert_int_equal(recorder_add(recorder, &m, NULL), RUDDER_OK);
    }
    m.n = TRACE_MAX_IDS + 1;
    assert_int_equal(recorder_add(recorder, &m, NULL), RUDDER_E_UNSUPPORTED);
    assert_int_equal(recorder_close(recorder, NULL), RUDDER_OK);
    assert_int_equal(trace_load(path, &trace, NULL), RUDDER_OK);
    assert_int_equal(trace.n_minibatches, 5);
    assert_int_equal(trace.most_ids, TRACE_MAX_IDS);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(trace.offsets[i], at);
        assert_int_equal(trace.offsets[i + 1] - at, sizes[i]);
        assert_memory_equal(trace.ids + at, ids, (size_t)sizes[i] * sizeof *ids);
        at += sizes[i];
    }
    trace_free(&trace);
    free(ids);
}

/* What is not known when a minibatch is added may come later, and minibatches without it are written all the same. */
static void test_times_come_later(void **state)
{
    enum { MINIBATCHES = 4000, LATE = 3 };
    const trace_info_t info = {.kind = ""};
    static int64_t ids[1000];
    trace_minibatch_t m, found;
    trace_reader_t *reader;
    const trace_info_t *about;
    int end;
    (void)state;
    for (int told = 0; told < 2; told++) {
        recorder_t *recorder = start_recorder(&info);
        for (int64_t t = 0; t < MINIBATCHES + LATE; t++) {
            if (t < MINIBATCHES) {
                make_minibatch(WIDE, t, 1000, ids, &m);
                assert_int_equal(recorder_add(recorder, &m, NULL), RUDDER_OK);
            }
            if (t >= LATE && told) {
                const trace_times_t times = {NAN, NAN, NAN, NAN, 9, (float)(t - LATE), 0.5f};
                assert_int_equal(recorder_times(recorder, t - LATE, &times, NULL), RUDDER_OK);
            }
        }
        assert_int_equal(recorder_times(recorder, MINIBATCHES, &m.times, NULL), RUDDER_E_STATE);
        assert_int_equal(recorder_close(recorder, NULL), RUDDER_OK);
        assert_int_equal(trace_reader_open(path, &reader, &about, NULL), RUDDER_OK);
        for (int64_t t = 0; t < MINIBATCHES; t++) {
            assert_int_equal(trace_reader_next(reader, &found, &end, NULL), RUDDER_OK);
            assert_false(end);
            make_minibatch(WIDE, t, 1000, ids, &m);
            if (told) {
                m.times.gather = 9;
                m.times.wait = (float)t;
                m.times.compute = 0.5f;
            }
            check_minibatch(&found, &m);
        }
        trace_reader_close(reader);
    }
}

static void test_recorder_refuses(void **state)
{
    const trace_info_t info = {.kind = ""};
    const int64_t ids[] = {3, -1};
    recorder_t *recorder = start_recorder(&info), *other = NULL;
    rudder_error_t error = {0};
    (void)state;
    assert_int_equal(recorder_open(path, &info, &other, &error), RUDDER_E_IO); /* nothing is overwritten */
    assert_int_equal(recorder_open("/nowhere/trace", &info, &other, &error), RUDDER_E_IO);
    trace_minibatch_t m = {.ids = ids, .n = 2, .announced = -1, .miss = -1, .fill = -1};
    assert_int_equal(recorder_add(recorder, &m, &error), RUDDER_E_ARGUMENT);
    m.n = 1;
    m.miss = 2;
    assert_int_equal(recorder_add(recorder, &m, &error), RUDDER_E_ARGUMENT);
    m.miss = 1;
    assert_int_equal(recorder_add(recorder, &m, &error), RUDDER_OK);
    assert_int_equal(recorder_close(recorder, &error), RUDDER_OK);
    assert_int_equal(recorder_close(NULL, &error), RUDDER_OK);
}

/* ---- Damage ----------------------------------------------------------------------------------------------------- */

/* A small file of several blocks. */
static unsigned char *record_blocks(size_t *n, int64_t borders[4])
{
    const trace_info_t info = some_info();
    int64_t ids[1000];
    recorder_t *recorder = start_recorder(&info);
    for (int64_t t = 0; t < 15; t++) {
        trace_minibatch_t m;
        if (t % 5 == 0) {
            assert_int_equal(recorder_flush(recorder, NULL), RUDDER_OK);
            free(read_file(n));
            borders[t / 5] = (int64_t)*n;
        }
        make_minibatch(MIXED, t, size_of(t), ids, &m);
        assert_int_equal(recorder_add(recorder, &m, NULL), RUDDER_OK);
    }
    assert_int_equal(recorder_flush(recorder, NULL), RUDDER_OK);
    free(read_file(n));
    borders[3] = (int64_t)*n;
    assert_int_equal(recorder_close(recorder, NULL), RUDDER_OK);
    return read_file(n);
}

static void test_cut_at_every_byte(void **state)
{
    size_t n;
    int64_t borders[4];
    rudder_status_t status;
    rudder_error_t error = {0};
    int torn;
    (void)state;
    unsigned char *bytes = record_blocks(&n, borders);
    for (size_t cut = 0; cut < n; cut++) {
        write_file(bytes, cut);
        const int64_t found = read_and_check(MIXED, &status, &torn, &error);
        if ((int64_t)cut < borders[0]) {
            assert_int_equal(status, RUDDER_E_DATA);
            assert_non_null(strstr(error.text, path));
            assert_non_null(strstr(error.text, "expected"));
        } else {
            assert_int_equal(status, RUDDER_OK);
            assert_true(torn);
            assert_int_equal(found, 5 * (((int64_t)cut >= borders[1]) + ((int64_t)cut >= borders[2]) +
                                         ((int64_t)cut >= borders[3])));
        }
    }
    free(bytes);
}

static void test_every_byte_changed(void **state)
{
    static const unsigned char flips[] = {0x01, 0x80, 0xff, 0x20};
    size_t n;
    int64_t borders[4];
    rudder_status_t status;
    rudder_error_t error = {0};
    int torn;
    (void)state;
    unsigned char *bytes = record_blocks(&n, borders);
    for (size_t i = 0; i < n; i++) {
        for (int f = 0; f < 4; f++) {
            bytes[i] ^= flips[f];
            write_file(bytes, n);
            (void)read_and_check(MIXED, &status, &torn, &error);
            assert_int_equal(status, RUDDER_E_DATA);
            assert_non_null(strstr(error.text, path));
            bytes[i] ^= flips[f];
        }
    }
    for (size_t more = 1; more < 50; more += 7) {
        write_file(bytes, n + more); /* what stands behind the file in memory: anything */
        (void)read_and_check(MIXED, &status, &torn, &error);
        assert_int_equal(status, RUDDER_E_DATA);
        assert_non_null(strstr(error.text, "expected the end of the file"));
    }
    free(bytes);
}

/* A block that is missing, twice there, or from another place. */
static void test_blocks_in_order(void **state)
{
    size_t n;
    int64_t b[4];
    rudder_status_t status;
    int torn;
    (void)state;
    unsigned char *bytes = record_blocks(&n, b), *other = malloc(2 * n);
    memcpy(other, bytes, n);
    memmove(other + b[1], other + b[2], n - (size_t)b[2]);
    write_file(other, n - (size_t)(b[2] - b[1]));
    assert_int_equal(read_and_check(MIXED, &status, &torn, NULL), 5);
    assert_int_equal(status, RUDDER_E_DATA);
    memcpy(other, bytes, (size_t)b[2]);
    memcpy(other + b[2], bytes + b[1], n - (size_t)b[1]);
    write_file(other, n + (size_t)(b[2] - b[1]));
    assert_int_equal(read_and_check(MIXED, &status, &torn, NULL), 10);
    assert_int_equal(status, RUDDER_E_DATA);
    free(other);
    free(bytes);
}

/* A process that records and is killed: what it had written can be read. */
static void test_killed_writer(void **state)
{
    rudder_error_t error = {0};
    (void)state;
    for (int round = 0; round < 5; round++) {
        const trace_info_t info = some_info();
        rudder_status_t status;
        int torn, told[2];
        unlink(path);
        assert_int_equal(pipe(told), 0);
        const pid_t child = fork();
        if (child == 0) {
            int64_t ids[1000];
            recorder_t *recorder;
            if (recorder_open(path, &info, &recorder, NULL) != RUDDER_OK) {
                _exit(1);
            }
            for (int64_t t = 0;; t++) {
                trace_minibatch_t m;
                make_minibatch(MIXED, t, size_of(t), ids, &m);
                if (recorder_add(recorder, &m, NULL) != RUDDER_OK ||
                    recorder_times(recorder, t, &m.times, NULL) != RUDDER_OK) {
                    _exit(1);
                }
                if (t == 10000 && write(told[1], "x", 1) != 1) {
                    _exit(1);
                }
            }
        }
        char byte;
        close(told[1]);
        assert_int_equal(read(told[0], &byte, 1), 1);
        close(told[0]);
        usleep((useconds_t)(1000 * round));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        const int64_t found = read_and_check(MIXED, &status, &torn, &error);
        assert_int_equal(status, RUDDER_OK);
        assert_true(torn);
        assert_true(found > 5000); /* all but a block of 1 MiB */
    }
}

/* A limit on the size of files stands for a full disk. */
static void test_full_disk(void **state)
{
    const trace_info_t info = some_info();
    struct rlimit before, limit;
    static int64_t ids[1000];
    rudder_status_t status = RUDDER_OK;
    rudder_error_t error = {0}, again = {0};
    trace_minibatch_t m;
    int torn;
    (void)state;
    recorder_t *recorder = start_recorder(&info);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 3000000;
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int64_t t = 0; status == RUDDER_OK && t < 100000; t++) {
        make_minibatch(MIXED, t, size_of(t), ids, &m);
        status = recorder_add(recorder, &m, &error);
    }
    assert_int_equal(status, RUDDER_E_IO);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, "cannot be written"));
    assert_int_equal(recorder_add(recorder, &m, &again), RUDDER_E_IO);
    assert_string_equal(again.text, error.text);
    assert_int_equal(recorder_close(recorder, &again), RUDDER_E_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    (void)read_and_check(MIXED, &status, &torn, &error);
    assert_int_equal(status, RUDDER_OK);
    assert_true(torn);
}

/* The reader holds no more for a long trace than for a short one. */
static void test_memory_is_bounded(void **state)
{
    const trace_info_t info = {.kind = ""};
    static int64_t ids[1000];
    int64_t short_memory = 0;
    (void)state;
    for (int64_t n = 4000; n <= 40000; n += 36000) {
        trace_reader_t *reader;
        const trace_info_t *about;
        trace_minibatch_t m;
        int64_t most = 0;
        int end = 0;
        recorder_t *recorder = start_recorder(&info);
        for (int64_t t = 0; t < n; t++) {
            make_minibatch(ASCENDING, t, 1000, ids, &m);
            assert_int_equal(recorder_add(recorder, &m, NULL), RUDDER_OK);
            assert_int_equal(recorder_times(recorder, t, &m.times, NULL), RUDDER_OK);
        }
        assert_int_equal(recorder_close(recorder, NULL), RUDDER_OK);
        assert_int_equal(trace_reader_open(path, &reader, &about, NULL), RUDDER_OK);
        while (!end) {
            assert_int_equal(trace_reader_next(reader, &m, &end, NULL), RUDDER_OK);
            most = trace_reader_memory(reader) > most ? trace_reader_memory(reader) : most;
        }
        trace_reader_close(reader);
        assert_true(most < 4 << 20);
        assert_true(n == 4000 || most <= short_memory + 8192);
        short_memory = most;
    }
}

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* Reads a text as minibatches, written back as "1 2|3||": ids by spaces, a bar behind each minibatch. */
static rudder_status_t text_as(const char *text, char *out, rudder_error_t *error)
{
    trace_t trace;
    write_file(text, strlen(text));
    const rudder_status_t status = trace_load(path, &trace, error);
    *out = '\0';
    if (status == RUDDER_OK) {
        for (int64_t t = 0; t < trace.n_minibatches; t++) {
            for (int64_t i = trace.offsets[t]; i < trace.offsets[t + 1]; i++) {
                out += sprintf(out, "%s%lld", i > trace.offsets[t] ? " " : "", (long long)trace.ids[i]);
            }
            out += sprintf(out, "|");
        }
        trace_free(&trace);
    }
    return status;
}

static void test_text(void **state)
{
    static const struct {
        const char *text, *means;
    } cases[] = {
        {"1\n2\n\n3\n", "1 2|3|"},
        {"1", "1|"},
        {"1\n", "1|"},
        {"1\n\n\n\n2", "1|2|"},
        {"\n\n1\n\n", "1|"},
        {" 1 \r\n\t2\r\n\r\n3\r\n", "1 2|3|"},
        {"# a comment\n1\n# in the middle\n2 # behind an id\n\n3\n", "1 2|3|"},
        {"# alone\n", ""},
        {"\n", ""},
        {"-\n\n-\n\n1\n", "||1|"},
        {"1\n\n - # nothing\n\n2", "1||2|"},
        {"9223372036854775807\n0\n007\n4294967296\n", "9223372036854775807 0 7 4294967296|"},
        {"5\n5\n3\n", "5 5 3|"},
    };
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"1\n2 3\n", "line 2, byte 4: expected nothing but one id in a line, found \"3\""},
        {"9223372036854775808\n", "line 1, byte 18: expected an id of at most 9223372036854775807, found \"8\""},
        {"1\n-5\n", "line 2, byte 3: expected nothing but one id in a line, found \"5\""},
        {"1\n-\n", "line 2: expected \"-\" alone"},
        {"-\n1\n", "line 2: expected \"-\" alone"},
        {"1.5\n", "byte 1: expected nothing but one id in a line, found \".\""},
        {"1\n\x01\n", "byte 2: expected an id, \"-\", or a comment, found the byte 01"},
        {"abc\n", "byte 0: expected a trace (.rtr, .npz, or text with an id a line), found 61 62 63 0a"},
        {"", "found nothing"},
    };
    char out[256];
    rudder_error_t error = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(text_as(cases[i].text, out, &error), RUDDER_OK);
        assert_string_equal(out, cases[i].means);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(text_as(wrong[i].text, out, &error), RUDDER_E_DATA);
        if (strstr(error.text, wrong[i].says) == NULL || strstr(error.text, path) == NULL) {
            fail_msg("expected \"%s\", found \"%s\"", wrong[i].says, error.text);
        }
    }
}

/* Long texts cross the buffer's end at every place of a line. */
static void test_long_text(void **state)
{
    trace_t trace;
    int64_t at = 0;
    (void)state;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int64_t t = 0; t < 3000; t++) {
        for (int64_t i = 0; i < t % 40; i++) {
            fprintf(file, "%lld\n", (long long)(rng_mix((uint64_t)(t * 100 + i)) >> (1 + i)));
        }
        fprintf(file, t % 40 == 0 ? "-\n\n" : "\n");
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(trace_load(path, &trace, NULL), RUDDER_OK);
    assert_int_equal(trace.n_minibatches, 3000);
    assert_int_equal(trace.most_ids, 39);
    for (int64_t t = 0; t < 3000; t++) {
        assert_int_equal(trace.offsets[t], at);
        for (int64_t i = 0; i < t % 40; i++) {
            assert_int_equal(trace.ids[at++], rng_mix((uint64_t)(t * 100 + i)) >> (1 + i));
        }
    }
    trace_free(&trace);
}

/* ---- Archives --------------------------------------------------------------------------------------------------- */

/* A trace that NumPy wrote, recorded anew, is the same. */
static void test_archive_recorded(void **state)
{
    char name[512];
    trace_t archive, recorded;
    trace_reader_t *reader;
    const trace_info_t *info;
    rudder_error_t error = {0};
    int end = 0;
    const char *shared = getenv("RUDDER_SHARED_DIR");
    (void)state;
    snprintf(name, sizeof name, "%s/data/traces/rmat_b100.rank0.npz", shared != NULL ? shared : "../shared");
    if (trace_reader_open(name, &reader, &info, &error) != RUDDER_OK) {
        fail_msg("%s", error.text);
    }
    assert_true(info->epochs == 3 && info->steps_per_epoch == 200 && info->n_minibatches == 600);
    recorder_t *recorder = start_recorder(info);
    while (!end) {
        trace_minibatch_t m;
        assert_int_equal(trace_reader_next(reader, &m, &end, &error), RUDDER_OK);
        if (!end) {
            assert_int_equal(recorder_add(recorder, &m, &error), RUDDER_OK);
        }
    }
    trace_reader_close(reader);
    assert_int_equal(recorder_close(recorder, &error), RUDDER_OK);
    assert_int_equal(trace_load(name, &archive, &error), RUDDER_OK);
    assert_int_equal(trace_load(path, &recorded, &error), RUDDER_OK);
    assert_int_equal(recorded.n_ids, archive.n_ids);
    assert_int_equal(recorded.n_minibatches, archive.n_minibatches);
    assert_int_equal(recorded.most_ids, archive.most_ids);
    assert_int_equal(recorded.n_halo, archive.n_halo);
    assert_memory_equal(recorded.ids, archive.ids, (size_t)archive.n_ids * sizeof *archive.ids);
    assert_memory_equal(recorded.offsets, archive.offsets, (size_t)archive.n_minibatches * sizeof *archive.offsets);
    assert_memory_equal(recorded.halo, archive.halo, (size_t)archive.n_halo * sizeof *archive.halo);
    assert_memory_equal(recorded.halo_degree, archive.halo_degree, (size_t)archive.n_halo * sizeof(uint32_t));
    trace_free(&archive);
    trace_free(&recorded);
}

/* What is no trace. */
static void test_foreign(void **state)
{
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", zip[] = "PK\3\4 and then nothing";
    static const char changed[] = "\x89RTR\n\x1a\n\1\0\0\0\0\0\0\0\0\0";
    trace_t trace;
    rudder_error_t error = {0};
    (void)state;
    assert_int_equal(trace_load("/nowhere/trace", &trace, &error), RUDDER_E_IO);
    assert_int_equal(trace_load(folder, &trace, &error), RUDDER_E_DATA);
    assert_non_null(strstr(error.text, "found a directory"));
    write_file(png, sizeof png - 1);
    assert_int_equal(trace_load(path, &trace, &error), RUDDER_E_DATA);
    assert_non_null(strstr(error.text, "found 89 50 4e 47"));
    write_file(zip, sizeof zip - 1);
    assert_int_equal(trace_load(path, &trace, &error), RUDDER_E_DATA);
    write_file(changed, sizeof changed - 1);
    assert_int_equal(trace_load(path, &trace, &error), RUDDER_E_DATA);
    assert_non_null(strstr(error.text, "transfer as text"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_large_halo),
        cmocka_unit_test(test_large_minibatches),
        cmocka_unit_test(test_times_come_later),
        cmocka_unit_test(test_recorder_refuses),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_blocks_in_order),
        cmocka_unit_test(test_killed_writer),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_archive_recorded),
        cmocka_unit_test(test_foreign),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
