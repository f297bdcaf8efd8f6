/* SPDX-License-Identifier: Apache-2.0 */
/* Primitives over channels: transfers between memory of this rank and of a peer, and the notifies of both ends. */
#include "client/primitive.h"

#include <errno.h>

#include "client/channel.h"
#include "client/comm.h"
#include "client/error.h"
#include "client/memory.h"
#include "client/notify_task.h"
#include "client/reduce.h"
#include "client/stream.h"
#include "client/thread.h"
#include "proto/cleanup.h"

/* The thread of a handle, or, for handle 0, the one that the communicator has for what is queued without. Pinned. */
static int thread_get(const char *function, const struct hccld_channel *channel, uint64_t handle, struct hccld_thread **ret_thread)
{
	if (handle)
		return hccld_thread_get(function, handle, ret_thread);
	return hccld_thread_take_own(channel->comm, HCCLD_THREAD_ISSUE, ret_thread);
}

static uint64_t bytes_of(const struct hccld_transfer *transfer)
{
	return transfer->reduces ? transfer->amount * data_type_size(transfer->type) : transfer->amount;
}

/* The peer's side, as a place of this process's; it has to be memory that the channel has brought, and that is still there. */
static int remote_find(const char *function, const struct hccld_channel *channel, const struct hccld_transfer *transfer,
		       struct hccld_place *ret_place)
{
	const void *remote = transfer->kind == HCCLD_TRANSFER_WRITE ? transfer->to : transfer->from;
	const uint64_t bytes = bytes_of(transfer);
	struct hccld_channel_place place;
	int r;

	r = hccld_channel_remote(channel, function, remote, bytes, &place);
	if (r < 0)
		return r;
	*ret_place = (struct hccld_place){ .segment = place.segment, .offset = place.offset, .available = bytes };
	return 0;
}

/* @stream NULL: looks whether it can be done. */
static int move(const char *function, const struct hccld_channel *channel, const struct hccld_transfer *transfer,
		struct hccld_stream *stream)
{
	const bool writes = transfer->kind == HCCLD_TRANSFER_WRITE;
	struct hccld_place remote;
	int r = 0;

	if (transfer->reduces)
		r = hccld_primitive_check_reduction(function, transfer->type, transfer->op);
	if (r == 0 && transfer->reduces && transfer->amount > HCCLD_COUNT_MAX)
		r = hccld_error(CAUSE_ARGUMENT, "%s: count is %llu; expected at most %llu", function, (unsigned long long)transfer->amount,
				(unsigned long long)HCCLD_COUNT_MAX);
	if (r < 0 || transfer->kind == HCCLD_TRANSFER_NONE || transfer->amount == 0)
		return r;
	r = remote_find(function, channel, transfer, &remote);
	if (r < 0)
		return r;
	if (transfer->reduces)
		return hccld_reduce_submit_at(function, stream, transfer->to, writes ? &remote : NULL, transfer->from, writes ? NULL : &remote,
					      transfer->amount, transfer->type, transfer->op);
	return hccld_memory_copy_on(function, transfer->to, writes ? &remote : NULL, transfer->from, writes ? NULL : &remote,
				    transfer->amount, stream);
}

static int notify(const char *function, const struct hccld_channel *channel, const struct hccld_transfer *transfer,
		  struct hccld_stream *stream)
{
	struct hccld_channel_place found;
	struct hccld_notify_place place;
	int r;

	if (!transfer->notifies)
		return 0;
	r = hccld_channel_peer_notify(channel, function, transfer->notify, &found);
	if (r < 0 || !stream)
		return r;
	place = (struct hccld_notify_place){ found.segment, found.offset };
	return hccld_notify_submit_record(stream, &place, NOTIFY_SET, 1);
}

static int transfer_do(const char *function, const struct hccld_channel *channel, const struct hccld_transfer *transfer,
		       struct hccld_stream *stream)
{
	int r = move(function, channel, transfer, stream);

	/* a later task of the same stream: when it is done the bytes are there */
	return r < 0 ? r : notify(function, channel, transfer, stream);
}

int hccld_primitive_transfer(const char *function, uint64_t thread_handle, uint64_t channel_handle,
			     const struct hccld_transfer *transfers, uint32_t count)
{
	CLEANUP(hccld_channel_putp) struct hccld_channel *channel = NULL;
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	uint32_t epoch;
	int r;

	r = hccld_channel_get(function, channel_handle, &channel);
	if (r == 0)
		r = thread_get(function, channel, thread_handle, &thread);
	if (r == 0)
		r = hccld_comm_check_running(channel->comm, &epoch);
	if (r == 0) {
		r = hccld_channel_check(channel, function);
		/* for HcclGetCommAsyncError: a watchdog is told, too */
		if (r < 0)
			atomic_store_explicit(&channel->comm->call_failed, status_cause(r), memory_order_relaxed);
	}
	for (uint32_t i = 0; i < count && r == 0; i++)
		r = transfer_do(function, channel, &transfers[i], NULL);
	for (uint32_t i = 0; i < count && r == 0; i++)
		r = transfer_do(function, channel, &transfers[i], thread->stream);
	return r;
}

/*
 * Also of a channel whose peer has gone: what it has recorded before is there. If it has not, the daemon ends the wait with the cause.
 */
static int wait_submit(const char *function, const struct hccld_channel *channel, struct hccld_thread *thread, uint32_t index,
		       uint32_t timeout_s)
{
	struct hccld_channel_place found;
	struct hccld_notify_place place;
	uint32_t epoch;
	int r = hccld_channel_own_notify(channel, function, index, &found);

	if (r == 0)
		r = hccld_comm_check_running(channel->comm, &epoch);
	if (r < 0)
		return r;
	place = (struct hccld_notify_place){ found.segment, found.offset };
	return hccld_notify_submit_wait(thread->stream, &place, NOTIFY_EQUAL, 1, 0, true, hccld_primitive_timeout_ms(timeout_s));
}

int hccld_primitive_wait_channel(const char *function, uint64_t thread_handle, uint64_t channel_handle, uint32_t index,
				 uint32_t timeout_s)
{
	CLEANUP(hccld_channel_putp) struct hccld_channel *channel = NULL;
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	int r = hccld_channel_get(function, channel_handle, &channel);

	if (r == 0)
		r = hccld_thread_get(function, thread_handle, &thread);
	return r < 0 ? r : wait_submit(function, channel, thread, index, timeout_s);
}

int hccld_primitive_await_channel(const char *function, uint64_t channel_handle, uint32_t index, uint32_t timeout_s)
{
	CLEANUP(hccld_channel_putp) struct hccld_channel *channel = NULL;
	struct hccld_thread *thread;
	int r;

	r = hccld_channel_get(function, channel_handle, &channel);
	/* one for each OS thread that waits: they do not wait for one another */
	if (r == 0)
		r = hccld_thread_take_own(channel->comm, HCCLD_THREAD_AWAIT, &thread);
	if (r < 0)
		return r;
	r = wait_submit(function, channel, thread, index, timeout_s);
	if (r == 0)
		r = hccld_stream_wait(thread->stream, -1);
	hccld_thread_release(thread);
	return r;
}

int hccld_primitive_fence_channel(const char *function, uint64_t thread_handle, uint64_t channel_handle)
{
	CLEANUP(hccld_channel_putp) struct hccld_channel *channel = NULL;
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	int r = hccld_channel_get(function, channel_handle, &channel);

	return r < 0 ? r : hccld_thread_get(function, thread_handle, &thread);
}

int hccld_primitive_drain(const char *function, uint64_t channel_handle)
{
	CLEANUP(hccld_channel_putp) struct hccld_channel *channel = NULL;
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	int r;

	r = hccld_channel_get(function, channel_handle, &channel);
	if (r == 0)
		r = thread_get(function, channel, 0, &thread);
	return r < 0 ? r : hccld_stream_wait(thread->stream, -1);
}
