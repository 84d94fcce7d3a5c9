/*
 * Reading traces, minibatch by minibatch, in bounded memory: what `rudder train --record` writes (.rtr), NumPy archives
 * (.npz, layout in docs/formats.md), and plain text (an id a line, a blank line between minibatches). The kind is told by
 * the first bytes, not by the name.
 */
#ifndef RUDDER_TRACE_READER_H
#define RUDDER_TRACE_READER_H

#include <stdint.h>

#include "comm/link.h"
#include "rudder/status.h"

enum { TRACE_MAX_LAYERS = 8, TRACE_MAX_IDS = 1 << 22 /* of one minibatch, in .rtr and text */ };

/* What is known of a trace as a whole. Numbers that a kind of file does not have are 0, arrays NULL, strings "". */
typedef struct trace_info {
    char kind[8]; /* "rtr", "npz", "text" */
    char graph[64], partition[16], order[16], policy[64],
        run[32]; /* run: the same for all ranks of a run; partition: method */
    int32_t rank, ranks;
    uint64_t seed;
    int64_t batch, steps_per_epoch, epochs, n_nodes, row_bytes, capacity_rows;
    int64_t max_tracked; /* ids outside the buffer that its policy remembered */
    int32_t depth;       /* minibatches that the loader was ahead of the training */
    int32_t n_layers, fanout[TRACE_MAX_LAYERS];
    links_t links; /* emulated in the run */
    int64_t n_minibatches,
        n_ids; /* of the whole trace; -1: known only when all is read (text, a run that was cut off) */
    int64_t n_halo;
    const int64_t *halo;         /* [n_halo], distinct */
    const uint32_t *halo_degree; /* [n_halo], or NULL */
    const int64_t *owner_offset; /* [ranks + 1]: rank p owns [owner_offset[p], owner_offset[p + 1]); NULL: not known */
} trace_info_t;

/* Seconds that one minibatch took; NAN: not known. */
typedef struct trace_times {
    float sample, plan, exchange, complete, gather; /* loader */
    float wait, compute;                            /* trainer; compute: forward, backward, allreduce and step */
} trace_times_t;

typedef struct trace_minibatch {
    const int64_t *ids; /* [n] remote ids in the order in which they were planned; until the next call */
    int64_t n;
    int32_t announced;  /* later minibatches that were announced when it was planned; -1: not known */
    int64_t miss, fill; /* rows fetched in the run; -1: not known */
    trace_times_t times;
} trace_minibatch_t;

typedef struct trace_reader trace_reader_t;

/*
 * Opens a trace. *info: valid until trace_reader_close(). Errors: IO (no such file), DATA (with the position in the file and
 * what was expected and found), MEMORY.
 */
rudder_status_t trace_reader_open(const char *path, trace_reader_t **reader, const trace_info_t **info,
                                  rudder_error_t *error);
/*
 * The next minibatch; its ids are owned by other ranks where owners are known. *end is 1 and nothing else set after the last one. A .rtr that a crash cut off ends after its last
 * whole block: *end, and trace_reader_torn() is 1. Errors: DATA, MEMORY.
 */
rudder_status_t trace_reader_next(trace_reader_t *reader, trace_minibatch_t *minibatch, int *end,
                                  rudder_error_t *error);
int trace_reader_torn(const trace_reader_t *reader);
/* Bytes that the reader holds, whatever the length of the trace (of a .npz: the whole). */
int64_t trace_reader_memory(const trace_reader_t *reader);
void trace_reader_close(trace_reader_t *reader);

#endif
