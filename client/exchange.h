/* SPDX-License-Identifier: Apache-2.0 */
/* Queues sends and receives on a stream. Handles are those of the API; any thread. Negative errno, text set. */
#pragma once

#include <stdint.h>

#include "hccl/hccl_types.h"

/* HcclBatchSendRecv after its NULL checks. */
int hccld_exchange(const HcclSendRecvItem *list, uint32_t count, void *comm, void *stream);
/* HcclSend, HcclRecv after theirs. */
int hccld_exchange_one(const HcclSendRecvItem *item, void *comm, void *stream);
/* What was noted in a group for one communicator and stream; several items for one peer go in list order. */
int hccld_exchange_group(const HcclSendRecvItem *list, uint32_t count, void *comm, void *stream);
