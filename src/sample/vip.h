/*
 * How likely a node is to be in a minibatch: vertex inclusion probabilities by the analysis of T. Kaler, A. Iliopoulos,
 * P. Murzynowski, T. Schardl, C. Leiserson, J. Chen, "Communication-Efficient Graph Neural Networks with Probabilistic
 * Neighborhood Expansion Analysis and Caching" (SALIENT++), MLSys 2023:
 *
 *     p_0(v) = probability that v is a seed,
 *     p_h(u) = 1 - product over the nodes v that u points to of (1 - min(1, fanout_h / indegree(v)) p_{h-1}(v)),
 *     p(u)   = 1 - product over the hops h >= 1 of (1 - p_h(u)),
 *
 * with hops counted from the seeds. Hops and edges are taken as independent, so it is an estimate; its order is what counts.
 */
#ifndef RUDDER_SAMPLE_VIP_H
#define RUDDER_SAMPLE_VIP_H

#include <stdint.h>

#include "comm/comm.h"
#include "partition/partition.h"

typedef struct vip_config {
    const parts_t *parts;
    const part_t *part;
    comm_t *comm;
    int32_t n_layers;
    const int32_t *fanout;  /* [n_layers], the first next to the input */
    int64_t seeds_per_step; /* of all ranks together */
} vip_config_t;

/*
 * weight[part->n_halo]: p of each halo node for the minibatches of this rank, whose seeds are those that it owns, each equally
 * likely. Every rank works on the edges that it owns, for one rank's minibatches after the other's; O(edges of the graph x
 * hops) in each. Collective. Errors: MEMORY on all ranks alike, PEER.
 */
rudder_status_t vip_halo(const vip_config_t *config, double *weight, rudder_error_t *error);

#endif
