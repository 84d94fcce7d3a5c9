/*
 * Aggregation over edges, bias, ReLU and dropout. Loops are plain and run along the columns, so that the compiler
 * vectorises them without changing the order of any sum.
 */
#include <string.h>

#include "base/rng.h"
#include "nn/kernels.h"

enum {
    KERNEL_AHEAD = 8,      /* edges by which rows are prefetched */
    KERNEL_LINE = 16,      /* floats in a cache line */
    KERNEL_LANES = 16,     /* Philox blocks computed side by side */
    KERNEL_MAX_LINES = 32, /* of a row that are prefetched: the hardware follows from there */
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
 * The rounds of rng_philox() on KERNEL_LANES counters side by side, word by word. A function of its own, with arrays that
 * do not overlap, since compilers vectorise it only so: 3 times faster than block after block.
 */
static __attribute__((noinline)) void kernel_philox(uint64_t key, uint32_t *restrict c0, uint32_t *restrict c1,
                                                    uint32_t *restrict c2, uint32_t *restrict c3)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        for (int lane = 0; lane < KERNEL_LANES; lane++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0[lane];
            const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2[lane];
            const uint32_t word1 = c1[lane], word3 = c3[lane];
            c0[lane] = (uint32_t)(p1 >> 32) ^ word1 ^ k0;
            c1[lane] = (uint32_t)p1;
            c2[lane] = (uint32_t)(p0 >> 32) ^ word3 ^ k1;
            c3[lane] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* random[c] is word c % 4 of the block (key; id, first / 4 + c / 4), for 4 x KERNEL_LANES columns. */
static void kernel_random(uint64_t key, uint64_t id, int32_t first, uint32_t *restrict random)
{
    uint32_t word[4][KERNEL_LANES];
    for (int lane = 0; lane < KERNEL_LANES; lane++) {
        word[0][lane] = (uint32_t)id;
        word[1][lane] = (uint32_t)(id >> 32);
        word[2][lane] = (uint32_t)(first / 4 + lane);
        word[3][lane] = 0;
    }
    kernel_philox(key, word[0], word[1], word[2], word[3]);
    for (int lane = 0; lane < KERNEL_LANES; lane++) {
        for (int k = 0; k < 4; k++) {
            random[4 * lane + k] = word[k][lane];
        }
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
            kernel_random(key, id[i], first, random);
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
