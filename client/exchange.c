/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives on their way to a stream: handles, the batch, pairs that do not exist yet, the ring. Hot path, except for the first
 * use of a pair.
 */
#include "client/exchange.h"

#include <inttypes.h>
#include <stdlib.h>

#include "client/batch.h"
#include "client/comm.h"
#include "client/environment.h"
#include "client/error.h"
#include "client/stream.h"
#include "proto/cleanup.h"
#include "proto/status.h"

static bool lane_needs_pair(const struct item *head)
{
	return head->kind == ITEM_SEND || head->kind == ITEM_RECEIVE;
}

/* The first use of some pair: all that are missing in one request. */
static int exchange_open_pairs(struct hccld_comm *comm, const struct hccld_batch *batch)
{
	CLEANUP(freep) uint32_t *peers = malloc(comm->size * 2 * sizeof(*peers));
	uint32_t counts[2] = { 0, 0 };

	if (!peers)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for the peers of a batch of %u items", batch->item_count);
	for (uint32_t i = batch->first_lane; i != LANE_END; i = batch->items[i].next_lane) {
		unsigned int direction = batch->items[i].kind - ITEM_SEND;

		if (lane_needs_pair(&batch->items[i]))
			peers[direction * comm->size + counts[direction]++] = batch->items[i].peer;
	}
	return hccld_comm_open_pairs(comm, peers, counts[0], peers + comm->size, counts[1]);
}

static bool exchange_has_new_pairs(const struct hccld_comm *comm, const struct hccld_batch *batch)
{
	for (uint32_t i = batch->first_lane; i != LANE_END; i = batch->items[i].next_lane) {
		const struct item *head = &batch->items[i];

		if (lane_needs_pair(head) && !hccld_comm_is_open(comm, head->kind - ITEM_SEND, head->peer))
			return true;
	}
	return false;
}

static int exchange_submit(struct hccld_comm *comm, struct hccld_stream *stream, const struct hccld_batch_terms *terms,
			   const HcclSendRecvItem *list, uint32_t count)
{
	struct task task = { .kind = TASK_BATCH, .rank = comm->task_rank, .timeout_ms = comm->timeout_ms };
	struct hccld_batch batch;
	int r;

	r = hccld_batch_build(terms, list, count, &batch);
	if (r == 0)
		r = hccld_comm_check_async(comm);
	if (r == 0)
		r = hccld_comm_check_running(comm, &task.epoch);
	if (r < 0 || batch.item_count == 0)
		return r;
	if (exchange_has_new_pairs(comm, &batch)) {
		r = exchange_open_pairs(comm, &batch);
		if (r < 0)
			return r;
	}
	task.first_lane = batch.first_lane;
	return hccld_stream_submit(stream, &task, batch.items, batch.item_count);
}

static struct hccld_batch_terms terms_of(const struct hccld_comm *comm, const char *operator_name)
{
	return (struct hccld_batch_terms){ operator_name, comm->name, comm->rank, comm->size, comm->allow_duplicate_items };
}

/* @operator_name: who asks; the duplicates of a group are separate calls. */
static int exchange_list(const char *operator_name, const HcclSendRecvItem *list, uint32_t count, void *comm_handle,
			 void *stream_handle, bool allow_duplicates)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *comm = NULL;
	struct hccld_batch_terms terms;
	struct hccld_stream *stream;
	int r;

	r = hccld_comm_get(comm_handle, &comm);
	if (r < 0)
		return r;
	terms = terms_of(comm, operator_name);
	terms.allow_duplicate_items |= allow_duplicates;
	r = hccld_comm_stream(comm, terms.operator_name, stream_handle, &stream);
	if (r < 0)
		return r;
	hccld_environment_log_entry("%s: comm %s, rank %u of %u, itemNum %u, stream %p", operator_name, comm->name, comm->rank,
				    comm->size, count, stream_handle);
	return exchange_submit(comm, stream, &terms, list, count);
}

int hccld_exchange(const HcclSendRecvItem *list, uint32_t count, void *comm, void *stream)
{
	return exchange_list("HcclBatchSendRecv", list, count, comm, stream, false);
}

int hccld_exchange_group(const HcclSendRecvItem *list, uint32_t count, void *comm, void *stream)
{
	if (!comm || !stream)
		return hccld_error(CAUSE_NULL, "HcclGroupEnd: %s of an operation of the group is NULL", comm ? "stream" : "comm");
	return exchange_list("HcclGroupEnd", list, count, comm, stream, true);
}

int hccld_exchange_one(const HcclSendRecvItem *item, void *comm_handle, void *stream_handle)
{
	const bool sends = item->sendRecvType == HCCL_SEND;
	CLEANUP(hccld_comm_putp) struct hccld_comm *comm = NULL;
	struct hccld_batch_terms terms;
	struct hccld_stream *stream;
	int r;

	r = hccld_comm_get(comm_handle, &comm);
	if (r < 0)
		return r;
	terms = terms_of(comm, sends ? "HcclSend" : "HcclRecv");
	r = hccld_comm_stream(comm, terms.operator_name, stream_handle, &stream);
	if (r < 0)
		return r;
	hccld_environment_log_entry("%s: comm %s, rank %u of %u, count %" PRIu64 ", dataType %s, %s %u, stream %p", terms.operator_name,
				    comm->name, comm->rank, comm->size, item->count, data_type_name((uint32_t)item->dataType),
				    sends ? "destRank" : "srcRank", item->remoteRank, stream_handle);
	r = hccld_batch_check_one(&terms, item);
	if (r < 0)
		return r;
	return exchange_submit(comm, stream, &terms, item, 1);
}
