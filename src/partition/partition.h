/*
 * A partition directory (docs/formats.md): parts.json, arrays of the whole (training nodes), and one folder per part with
 * the arrays of its owned nodes. Nodes are renumbered so that part p owns the global ids [offset[p], offset[p + 1]).
 * Neighbours keep the order they have in the graph, so that sampling by position does not depend on the partition.
 */
#ifndef RUDDER_PARTITION_PARTITION_H
#define RUDDER_PARTITION_PARTITION_H

#include <stdint.h>

#include "base/npy.h"
#include "rudder/status.h"

/* What every rank knows of the whole. */
typedef struct parts {
    char name[64];   /* of the graph */
    char method[16]; /* "metis", "random" */
    int32_t n_parts;
    int64_t n_nodes, n_edges;
    int32_t n_feat, n_classes;
    int64_t *offset; /* [n_parts + 1] */
    int64_t n_train;
    const int64_t *train_id;    /* [n_train] global ids of the training nodes, in the graph's original order */
    const int32_t *train_label; /* [n_train] */
    const int32_t *train_rank;  /* [n_train] position among them in a breadth-first order: neighbours are close */
    npy_t map[3];
} parts_t;

/* One part: what its rank owns. Local row of global id v: v - begin. */
typedef struct part {
    int32_t number;
    int64_t begin, end;
    int64_t n_owned, n_edges, n_halo;
    const int64_t *indptr;       /* [n_owned + 1] */
    const int64_t *indices;      /* [n_edges] global ids of in-neighbours */
    const float *feat;           /* [n_owned][n_feat] */
    const int32_t *label;        /* [n_owned] */
    const uint8_t *split;        /* [n_owned] */
    const int64_t *orig_id;      /* [n_owned] id in the graph directory */
    const int64_t *halo;         /* [n_halo] global ids of remote in-neighbours, ascending */
    const uint32_t *halo_degree; /* [n_halo] their in-degree in the whole graph */
    npy_t map[8];
} part_t;

/* 1 if the part owns the global id. */
static inline int part_owns(const part_t *part, int64_t id)
{
    return id >= part->begin && id < part->end;
}

/* Both check what they map, as graph_open() does. Not collective. Errors: IO, DATA. */
rudder_status_t parts_open(const char *directory, parts_t *parts, rudder_error_t *error);
void parts_close(parts_t *parts);
rudder_status_t part_open(const char *directory, const parts_t *parts, int32_t number, part_t *part,
                          rudder_error_t *error);
void part_close(part_t *part);

/* The part that owns a global id in [0, n_nodes), -1 for any other id. Cost: O(log parts). */
int32_t parts_owner(const parts_t *parts, int64_t id);
/* How many halo nodes of a part have lower ids: the place of an id in `halo`, if it is there. Cost: O(log n_halo). */
int64_t part_halo_place(const part_t *part, int64_t id);
/* The place of an id in `halo`, -1: it is not there. */
int64_t part_halo_find(const part_t *part, int64_t id);

#endif
