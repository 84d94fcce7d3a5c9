/*
 * The one exchange of Rudder: ids go to their owners, rows come back. Features, labels and sampled neighbour lists all
 * travel this way. Collective: every rank calls exchange_rows() equally often, with n = 0 if it needs nothing.
 */
#ifndef RUDDER_COMM_EXCHANGE_H
#define RUDDER_COMM_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "comm/comm.h"
#include "comm/link.h"
#include "rudder/status.h"

/*
 * Owner's side: writes rows[n][row_bytes] for n owned global ids, in any order, with repeats. May be called several times
 * in an exchange, by the thread that exchanges. `rows` is aligned as the
 * caller's rows are.
 */
typedef void (*exchange_serve_t)(void *context, const int64_t *ids, int64_t n, void *rows);

typedef struct exchange exchange_t;

/*
 * offset[size + 1]: rank p owns the ids [offset[p], offset[p + 1]); copied. max_message_bytes bounds what one rank sends
 * to one peer in a round (larger transfers take several rounds, decided together); 0: 256 MiB, always below INT_MAX.
 * links: NULL or emulated links that outlive the exchange. Uses `comm` exclusively.
 */
rudder_status_t exchange_open(comm_t *comm, const int64_t *offset, int64_t max_message_bytes, links_t *links,
                              exchange_t **exchange, rudder_error_t *error);
void exchange_close(exchange_t *exchange);

/*
 * rows[n][row_bytes] in the order of ids[n]. Ids may repeat (sent as they are) and may be owned (served locally, not
 * counted). Collective; all ranks use the same row_bytes. Buffers grow to the largest exchange seen and are kept.
 * Errors: DATA (id out of range), MEMORY: the rank takes part without ids of its own, so that others go on, and fails
 * afterwards. PEER, and MEMORY for the buffers of what others ask: the communicator is of no use any more.
 */
rudder_status_t exchange_rows(exchange_t *exchange, const int64_t *ids, int64_t n, size_t row_bytes,
                              exchange_serve_t serve, void *context, void *rows, rudder_error_t *error);

/* As exchange_rows(), but 1 is returned in *again when any rank passed more = 1: all ranks then call once more. */
rudder_status_t exchange_rows_more(exchange_t *exchange, const int64_t *ids, int64_t n, size_t row_bytes,
                                   exchange_serve_t serve, void *context, void *rows, int more, int *again,
                                   rudder_error_t *error);

/* Emulation on (1, the default) or off (0): evaluation is not delayed. */
void exchange_emulate(exchange_t *exchange, int on);

/* Bytes of rows and ids received from and sent to each peer since the start: in[size], out[size]; to oneself: 0. */
void exchange_traffic(const exchange_t *exchange, int64_t *in, int64_t *out);
/*
 * Seconds, summed over the exchanges since the last call of this function, that the rows of each rank took to arrive after
 * the ranks had met in the exchange; seconds[size]. As booked for owners behind an emulated link, else as seen. 0 for owners
 * that were not asked, and for this rank itself.
 */
void exchange_seconds(exchange_t *exchange, double *seconds);
/* Bytes held by the buffers. */
int64_t exchange_memory(const exchange_t *exchange);

#endif
