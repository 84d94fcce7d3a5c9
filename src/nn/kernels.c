/*
 * Aggregation over edges, bias, ReLU and dropout. Loops are plain and run along the columns, so that the compiler
 * vectorises them without changing the order of any sum.
 */
#include <string.h>

#include "base/rng.h"
#include "nn/kernels.h"

enum {
    KERNEL_TILE = 128,     /* rows of a tile of kernel_mean() */
    KERNEL_AHEAD = 4,      /* edges by which rows are prefetched */
    KERNEL_LINE = 16,      /* floats in a cache line */
    KERNEL_LANES = 16,     /* Philox blocks computed side by side */
    KERNEL_MAX_LINES = 64, /* of a row that are prefetched: the hardware follows from there */
};

static inline void kernel_prefetch(const float *row, int32_t width)
{
    const int32_t end = width < KERNEL_MAX_LINES * KERNEL_LINE ? width : KERNEL_MAX_LINES * KERNEL_LINE;
    for (int32_t c = 0; c < end; c += KERNEL_LINE) {
        __builtin_prefetch(row + c);
    }
}

/* sum += the rows of edges [begin, end) in their order; rows are prefetched up to the edge `last`. */
static inline void kernel_add_edges(const int32_t *index, int64_t begin, int64_t end, int64_t last, const float *x,
                                    int32_t width, float *restrict sum)
{
    for (int64_t e = begin; e < end; e++) {
        const float *restrict row = x + (int64_t)index[e] * width;
        if (e + KERNEL_AHEAD < last) {
            kernel_prefetch(x + (int64_t)index[e + KERNEL_AHEAD] * width, width);
        }
        for (int32_t c = 0; c < width; c++) {
            sum[c] += row[c];
        }
    }
}

void kernel_mean_rows(const int64_t *indptr, const int32_t *index, int64_t begin, int64_t end, const float *x,
                      int32_t width, float *mean)
{
    for (int64_t i = begin; i < end; i++) {
        float *restrict out = mean + i * width;
        const int64_t degree = indptr[i + 1] - indptr[i];
        memset(out, 0, (size_t)width * sizeof *out);
        if (degree == 0) {
            continue;
        }
        kernel_add_edges(index, indptr[i], indptr[i + 1], indptr[end], x, width, out);
        const float factor = 1.0f / (float)degree;
        for (int32_t c = 0; c < width; c++) {
            out[c] *= factor;
        }
    }
}

void kernel_add_rows(const int64_t *indptr, const int32_t *index, int64_t begin, int64_t end, const float *x,
                     int32_t width, float *sum)
{
    for (int64_t i = begin; i < end; i++) {
        kernel_add_edges(index, indptr[i], indptr[i + 1], indptr[end], x, width, sum + i * width);
    }
}

typedef struct kernel_mean_job {
    const int64_t *indptr;
    const int32_t *index;
    int64_t n;
    const float *x;
    int32_t width;
    float *mean;
} kernel_mean_job_t;

static void kernel_mean_tile(void *context, int64_t tile, int32_t thread)
{
    const kernel_mean_job_t *job = context;
    const int64_t begin = tile * KERNEL_TILE;
    const int64_t end = begin + KERNEL_TILE < job->n ? begin + KERNEL_TILE : job->n;
    (void)thread;
    kernel_mean_rows(job->indptr, job->index, begin, end, job->x, job->width, job->mean);
}

void kernel_mean(team_t *team, const int64_t *indptr, const int32_t *index, int64_t n, const float *x, int32_t width,
                 float *mean)
{
    kernel_mean_job_t job = {.indptr = indptr, .index = index, .n = n, .x = x, .width = width, .mean = mean};
    team_run(team, (n + KERNEL_TILE - 1) / KERNEL_TILE, kernel_mean_tile, &job);
}

void kernel_transpose(const int64_t *indptr, const int32_t *index, int64_t n, int64_t n_src, int64_t *indptr_t,
                      int32_t *row)
{
    memset(indptr_t, 0, (size_t)(n_src + 1) * sizeof *indptr_t);
    const int64_t n_edges = n == 0 ? 0 : indptr[n];
    for (int64_t e = 0; e < n_edges; e++) {
        indptr_t[index[e]]++;
    }
    int64_t sum = 0;
    for (int64_t j = 0; j <= n_src; j++) {
        sum += indptr_t[j];
        indptr_t[j] = sum; /* the end of j; filling from behind makes it the begin */
    }
    for (int64_t i = n; i-- > 0;) {
        for (int64_t e = indptr[i + 1]; e-- > indptr[i];) {
            row[--indptr_t[index[e]]] = (int32_t)i;
        }
    }
}

void kernel_bias(float *z, int64_t n, int32_t width, const float *bias, int relu)
{
    for (int64_t i = 0; i < n; i++) {
        float *restrict row = z + i * width;
        if (relu) {
            for (int32_t c = 0; c < width; c++) {
                const float value = row[c] + bias[c];
                row[c] = value < 0 ? 0 : value;
            }
        } else {
            for (int32_t c = 0; c < width; c++) {
                row[c] += bias[c];
            }
        }
    }
}

/*
 * KERNEL_LANES blocks of rng_philox(), (key; id, first) .. (key; id, first + KERNEL_LANES - 1), side by side so that the
 * compiler vectorises over them. random[4 x lane + word].
 */
static inline void kernel_philox(uint64_t key, uint64_t id, uint32_t first, uint32_t *restrict random)
{
    uint32_t c0[KERNEL_LANES], c1[KERNEL_LANES], c2[KERNEL_LANES], c3[KERNEL_LANES];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int lane = 0; lane < KERNEL_LANES; lane++) {
        c0[lane] = (uint32_t)id;
        c1[lane] = (uint32_t)(id >> 32);
        c2[lane] = first + (uint32_t)lane;
        c3[lane] = 0;
    }
    for (int round = 0; round < 10; round++) {
        for (int lane = 0; lane < KERNEL_LANES; lane++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0[lane];
            const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2[lane];
            c0[lane] = (uint32_t)(p1 >> 32) ^ c1[lane] ^ k0;
            c2[lane] = (uint32_t)(p0 >> 32) ^ c3[lane] ^ k1;
            c1[lane] = (uint32_t)p1;
            c3[lane] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int lane = 0; lane < KERNEL_LANES; lane++) {
        random[4 * lane] = c0[lane];
        random[4 * lane + 1] = c1[lane];
        random[4 * lane + 2] = c2[lane];
        random[4 * lane + 3] = c3[lane];
    }
}

void kernel_dropout(float *h, int64_t n, int32_t width, const uint64_t *id, uint64_t key, float p)
{
    enum { COLUMNS = 4 * KERNEL_LANES };
    const uint32_t threshold = (uint32_t)((double)p * 0x1p32);
    const float scale = 1 / (1 - p);
    uint32_t random[COLUMNS];
    for (int64_t i = 0; i < n; i++) {
        for (int32_t first = 0; first < width; first += COLUMNS) {
            float *restrict row = h + i * width + first;
            const int32_t columns = width - first < COLUMNS ? width - first : COLUMNS;
            kernel_philox(key, id[i], (uint32_t)first / 4, random);
            for (int32_t c = 0; c < columns; c++) {
                row[c] = random[c] < threshold ? 0 : scale * row[c];
            }
        }
    }
}

void kernel_back_relu(float *d, const float *h, int64_t n, int32_t width, float scale)
{
    for (int64_t i = 0; i < n * width; i++) {
        d[i] = h[i] > 0 ? scale * d[i] : 0;
    }
}
