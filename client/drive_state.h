/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What drive.c and drive_map.c share; not for others. Locks: comm->opening, then hccld_drive_mutex, then a context is intruded; none is taken
 * the other way round. With the mutex a rank that is in the table stays.
 */
#pragma once

#include <pthread.h>

#include "client/drive.h"

struct hccld_drive_rank {
	struct direct_rank direct;
	struct hccld_context *on;
	uint32_t pair_count;	/* of the communicator, in `direct.extents` */
};

extern __attribute__((visibility("hidden"))) struct direct_process hccld_drive_process;
extern __attribute__((visibility("hidden"))) pthread_mutex_t hccld_drive_mutex;

void hccld_drive_unmap_peer(struct direct_peer *peer);
