/*
 * Inclusion probabilities over a partitioned graph. Products are sums of logarithms: a rank adds what its nodes contribute to
 * their in-neighbours, and what belongs to other ranks' nodes is sent to their owners, a number for each halo node. The halo
 * ascends, so what goes to one owner lies together.
 */
#include "sample/vip.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct vip {
    const vip_config_t *config;
    const part_t *part;
    int32_t size;
    int64_t *n_halo;   /* [size] halo nodes that rank p owns */
    int64_t *n_wanted; /* [size] nodes of ours in the halo of rank p */
    int64_t n_rows;
    int64_t *row;      /* [n_rows] which those are, rank after rank; several ranks may want the same */
    uint32_t *at;      /* [edges] where the in-neighbour's number is: its row, or n_owned + its place in the halo */
    double *chance;    /* [n_owned] p of the last hop */
    double *missed;    /* [n_owned + n_halo] logarithm of 1 - p of the hop under way */
    double *all;       /* [n_owned] logarithm of the product over hops of 1 - p */
    double *travelled; /* [n_rows] numbers for, or of, `row` */
    comm_span_t *ours, *theirs; /* [size] */
} vip_t;

static void vip_close(vip_t *vip)
{
    free(vip->n_halo);
    free(vip->n_wanted);
    free(vip->row);
    free(vip->at);
    free(vip->chance);
    free(vip->missed);
    free(vip->all);
    free(vip->travelled);
    free(vip->ours);
    free(vip->theirs);
}

static rudder_status_t vip_open(const vip_config_t *config, vip_t *vip, rudder_error_t *error)
{
    const part_t *part = config->part;
    const size_t size = (size_t)config->comm->size;
    const int64_t nodes = part->n_owned + part->n_halo;
    *vip = (vip_t){.config = config, .part = part, .size = config->comm->size};
    vip->n_halo = calloc(size, sizeof *vip->n_halo);
    vip->n_wanted = calloc(size, sizeof *vip->n_wanted);
    vip->ours = calloc(size, sizeof *vip->ours);
    vip->theirs = calloc(size, sizeof *vip->theirs);
    vip->at = malloc((size_t)(part->n_edges + 1) * sizeof *vip->at);
    vip->chance = malloc((size_t)(part->n_owned + 1) * sizeof *vip->chance);
    vip->missed = malloc((size_t)(nodes + 1) * sizeof *vip->missed);
    vip->all = malloc((size_t)(part->n_owned + 1) * sizeof *vip->all);
    if (vip->n_halo == NULL || vip->n_wanted == NULL || vip->ours == NULL || vip->theirs == NULL || vip->at == NULL ||
        vip->chance == NULL || vip->missed == NULL || vip->all == NULL || nodes > UINT32_MAX) {
        return RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for the inclusion probabilities of %lld nodes",
                           (long long)nodes);
    }
    for (int64_t e = 0; e < part->n_edges; e++) {
        const int64_t id = part->indices[e];
        vip->at[e] =
            part_owns(part, id) ? (uint32_t)(id - part->begin) : (uint32_t)(part->n_owned + part_halo_place(part, id));
    }
    for (int32_t p = 0; p < vip->size; p++) {
        vip->n_halo[p] =
            part_halo_place(part, config->parts->offset[p + 1]) - part_halo_place(part, config->parts->offset[p]);
    }
    return RUDDER_OK;
}

/* Swaps numbers of halo nodes[n_halo] and of wanted rows[n_rows], 8 bytes each: up to the owners, or down. Collective. */
static rudder_status_t vip_swap(vip_t *vip, const void *halo, const void *rows, int up, rudder_error_t *error)
{
    char *next_halo = (char *)halo, *next_row = (char *)rows;
    for (int32_t p = 0; p < vip->size; p++) {
        vip->ours[p] = (comm_span_t){next_halo, vip->n_halo[p] * 8};
        vip->theirs[p] = (comm_span_t){next_row, vip->n_wanted[p] * 8};
        next_halo += vip->ours[p].bytes;
        next_row += vip->theirs[p].bytes;
    }
    return up ? comm_swap(vip->config->comm, vip->ours, vip->theirs, error)
              : comm_swap(vip->config->comm, vip->theirs, vip->ours, error);
}

/* Every rank learns which of its nodes the others have in their halos. Collective. */
static rudder_status_t vip_meet(vip_t *vip, rudder_error_t *error)
{
    for (int32_t p = 0; p < vip->size; p++) {
        vip->ours[p] = (comm_span_t){&vip->n_halo[p], sizeof *vip->n_halo};
        vip->theirs[p] = (comm_span_t){&vip->n_wanted[p], sizeof *vip->n_wanted};
    }
    RUDDER_TRY(comm_swap(vip->config->comm, vip->ours, vip->theirs, error));
    for (int32_t p = 0; p < vip->size; p++) {
        vip->n_rows += vip->n_wanted[p];
    }
    vip->row = malloc((size_t)(vip->n_rows + 1) * sizeof *vip->row);
    vip->travelled = malloc((size_t)(vip->n_rows + 1) * sizeof *vip->travelled);
    const rudder_status_t status =
        vip->row != NULL && vip->travelled != NULL
            ? RUDDER_OK
            : RUDDER_FAIL(error, RUDDER_E_MEMORY, "no memory for %lld nodes in the halos of others",
                          (long long)vip->n_rows);
    RUDDER_TRY(comm_agree(vip->config->comm, status, error));
    RUDDER_TRY(vip_swap(vip, vip->part->halo, vip->row, 1, error));
    for (int64_t i = 0; i < vip->n_rows; i++) {
        vip->row[i] -= vip->part->begin;
    }
    return RUDDER_OK;
}

/* p_0 of the owned nodes, for the minibatches of rank `whose`: its own training nodes are seeds. */
static void vip_seeds(vip_t *vip, int32_t whose)
{
    const parts_t *parts = vip->config->parts;
    const double chance = (double)vip->config->seeds_per_step / (double)parts->n_train;
    memset(vip->chance, 0, (size_t)vip->part->n_owned * sizeof *vip->chance);
    memset(vip->all, 0, (size_t)vip->part->n_owned * sizeof *vip->all);
    if (whose == vip->part->number) {
        for (int64_t i = 0; i < parts->n_train; i++) {
            if (part_owns(vip->part, parts->train_id[i])) {
                vip->chance[parts->train_id[i] - vip->part->begin] = fmin(1, chance);
            }
        }
    }
}

/* p of one hop from p of the hop before. Collective. */
static rudder_status_t vip_hop(vip_t *vip, int32_t fanout, rudder_error_t *error)
{
    const part_t *part = vip->part;
    memset(vip->missed, 0, (size_t)(part->n_owned + part->n_halo) * sizeof *vip->missed);
    for (int64_t v = 0; v < part->n_owned; v++) {
        const int64_t begin = part->indptr[v], end = part->indptr[v + 1];
        if (vip->chance[v] > 0 && end > begin) {
            const double contribution = log1p(-fmin(1, (double)fanout / (double)(end - begin)) * vip->chance[v]);
            for (int64_t e = begin; e < end; e++) {
                vip->missed[vip->at[e]] += contribution;
            }
        }
    }
    RUDDER_TRY(vip_swap(vip, vip->missed + part->n_owned, vip->travelled, 1, error));
    for (int64_t i = 0; i < vip->n_rows; i++) {
        vip->missed[vip->row[i]] += vip->travelled[i];
    }
    for (int64_t v = 0; v < part->n_owned; v++) {
        vip->chance[v] = -expm1(vip->missed[v]);
        vip->all[v] += vip->missed[v];
    }
    return RUDDER_OK;
}

rudder_status_t vip_halo(const vip_config_t *config, double *weight, rudder_error_t *error)
{
    vip_t vip;
    rudder_status_t status = comm_agree(config->comm, vip_open(config, &vip, error), error);
    if (status == RUDDER_OK) {
        status = vip_meet(&vip, error);
    }
    for (int32_t p = 0; p < vip.size && status == RUDDER_OK; p++) {
        vip_seeds(&vip, p);
        for (int32_t l = config->n_layers - 1; l >= 0 && status == RUDDER_OK; l--) {
            status = vip_hop(&vip, config->fanout[l], error);
        }
        if (status == RUDDER_OK) {
            /* All ranks get numbers for their halos; those that this turn is for keep them. */
            for (int64_t i = 0; i < vip.n_rows; i++) {
                vip.travelled[i] = -expm1(vip.all[vip.row[i]]);
            }
            double *halo = p == vip.part->number ? weight : vip.missed + vip.part->n_owned;
            status = vip_swap(&vip, halo, vip.travelled, 0, error);
        }
    }
    if (status != RUDDER_E_PEER) {
        vip_close(&vip); /* or messages may still be under way */
    }
    return status;
}
