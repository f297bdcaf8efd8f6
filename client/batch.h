/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a list of sends and receives to the items of one task. Hot path: no allocation in the steady state (scratch of the calling thread),
 * constant work per item.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hccl/hccl_types.h"
#include "proto/ring.h"

/* What building needs to know of the communicator, and whom texts name. */
struct hccld_batch_terms {
	const char *operator_name;
	const char *comm_name;
	uint32_t rank, size;
	bool allow_duplicate_items;
};

/* The result, in the thread's scratch: valid until the thread builds again. */
struct hccld_batch {
	struct item *items;		/* lanes linked, cursors set, numbers zero */
	uint32_t item_count;		/* 0: nothing is left to do */
	uint32_t first_lane;
};

/*
 * Checks in the order of HCCL (first round over all items: data type, count, peer; second round: buffer, direction; then items to oneself;
 * then what is ours: duplicates, memory) and builds. Negative errno with the text of the first violation.
 */
int hccld_batch_build(const struct hccld_batch_terms *terms, const HcclSendRecvItem *list, uint32_t count,
		      struct hccld_batch *ret_batch);

/* The checks of HcclSend and HcclRecv that come before building, in HCCL's order: count, data type, peer, not oneself. */
int hccld_batch_check_one(const struct hccld_batch_terms *terms, const HcclSendRecvItem *item);
