/* METIS, at arm's length: its input is cleaned, it runs in a child process, and its answer is checked. */
#ifndef RUDDER_PARTITION_METIS_H
#define RUDDER_PARTITION_METIS_H

#include <stdint.h>

#include "graph/csr.h"
#include "rudder/status.h"

/*
 * Whether the METIS that is linked can count this graph. Errors: UNSUPPORTED with number and remedy.
 */
rudder_status_t metis_fits(int64_t n, int64_t arcs, rudder_error_t *error);

/*
 * k-way partition of a simple undirected graph (csr_undirected()) into n_parts >= 2 parts: balances nodes, and nodes with
 * weight[v] != 0 as a second constraint. Fills part[n]; every part has a node. Deterministic in seed. Errors: UNSUPPORTED,
 * MEMORY; ENVIRONMENT (it crashed, or its answer was not valid).
 */
rudder_status_t metis_partition(const csr_t *csr, const uint8_t *weight, int32_t n_parts, uint64_t seed, int32_t *part,
                                rudder_error_t *error);

#endif
