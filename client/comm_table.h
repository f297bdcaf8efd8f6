/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the table of communicators: for comm.c and comm_join.c alone. */
#pragma once

#include "client/comm.h"

/*
 * A place for a communicator with @name ("": not known yet) on @device. @meeting: equal for ranks of one communicator, which may share the
 * name. -EINVAL: another communicator of this process has the name there; -EDQUOT: the table is full. Text set.
 */
int hccld_comm_place_take(const char *name, int32_t device, const unsigned char meeting[DIGEST_BYTES], bool is_table,
			  struct hccld_comm **ret_comm);
/* Request @request of this thread waits for the other ranks: comm->handle is good for HcclCommDestroy. */
void hccld_comm_place_joining(struct hccld_comm *comm, uint64_t request);
/* The name that it has in the end. */
void hccld_comm_place_name(struct hccld_comm *comm, const char *name);
/* The rank is in, all fields are filled in: the handle is good. */
void hccld_comm_place_alive(struct hccld_comm *comm);
/* It is not alive and has no pins: nobody else touches it. */
void hccld_comm_place_free(struct hccld_comm *comm);

/* Gives the daemon's rank back, as far as there is a daemon. */
void hccld_comm_leave_request(uint64_t rank);
/* Ends the join of request @join. -ENOENT: it has its answer already. */
int hccld_comm_cancel_request(uint64_t join);
