/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HCCL buffer of a communicator: device memory of 2 x HCCL_BUFFSIZE (or hcclBufferSize), made by the first call that asks for it, whose
 * pages exist once they are touched. It stays at its address until the communicator is destroyed. Any thread.
 */
#pragma once

#include <stdint.h>

struct hccld_comm;

/*
 * @comm is pinned. @ret_segment: the daemon's id, NULL if it is of no interest; the buffer begins at its offset 0. It is zeroed, and known
 * to hccld_buffer_find() as device memory. -ENOMEM, -EBADF (its device was reset), -EOPNOTSUPP; text set.
 */
int hccld_comm_buffer_get(struct hccld_comm *comm, void **ret_base, uint64_t *ret_bytes, uint64_t *ret_segment);
/* Its rank is about to leave: what is registered of the buffer, also by other communicators, is so no longer. */
void hccld_comm_buffer_leaving(const struct hccld_comm *comm);
/* The communicator has no pins and is no longer alive: the daemon has freed the memory, or does. */
void hccld_comm_buffer_end(struct hccld_comm *comm);
