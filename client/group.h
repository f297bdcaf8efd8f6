/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HcclGroupStart and HcclGroupEnd: between them, sends, receives and the creation of communicators of the calling thread are only noted
 * down; the outermost end does them. What is noted for one communicator and stream becomes one batch, whose items for one peer keep their
 * order. Each thread has a group of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hccl/hccl_types.h"

struct hccld_comm_join;

void hccld_group_start(void);
/*
 * Does what was noted when it is the outermost end. The first error, whose text is set; what has nothing to do with it is done all the
 * same. -EPROTOTYPE: no group is open.
 */
int hccld_group_end(void);
bool hccld_group_is_open(void);

/* Notes items down, unchecked; the list is copied. -ENOBUFS. */
int hccld_group_add(const HcclSendRecvItem *list, uint32_t count, void *comm, void *stream);
/* Joins, or notes that down; everything is copied but *ret_handle, which is written at the end of the group. */
int hccld_group_join(struct hccld_comm_join *join);
