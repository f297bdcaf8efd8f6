/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies of channels, recorded and waited for by tasks of streams: signals between processes, and what becomes of a wait when the peer
 * dies or leaves.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "client/channel.h"
#include "client/notify_task.h"
#include "client/stream.h"
#include "hccl/hccl_channel.h"
#include "hccl/hccl_res.h"
#include "proto/clock.h"
#include "tests/support/job.h"

#define SIZE 4u
#define ROUNDS 200u

/* The channel to @peer, with @count notifies at either end. */
static struct hccld_channel *channel_to(const struct job_rank *rank, uint32_t peer, uint32_t count)
{
	struct hccld_channel *channel;
	ChannelHandle handle = 0;
	HcclChannelDesc desc;

	check_eq_int(HcclChannelDescInit(&desc, 1), 0);
	desc.remoteRank = peer;
	desc.channelProtocol = COMM_PROTOCOL_HCCS;
	desc.notifyNum = count;
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &handle));
	check_eq_int(hccld_channel_get("test", handle, &channel), 0);
	return channel;
}

static struct hccld_stream *stream_of(aclrtStream handle)
{
	struct hccld_stream *stream;

	check_eq_int(hccld_stream_get(handle, &stream), 0);
	return stream;
}

static void signal_peer(const struct hccld_channel *channel, uint32_t index, aclrtStream stream)
{
	struct hccld_channel_place place;
	struct hccld_notify_place at;

	check_eq_int(hccld_channel_peer_notify(channel, "test", index, &place), 0);
	at = (struct hccld_notify_place){ place.segment, place.offset };
	check_eq_int(hccld_notify_submit_record(stream_of(stream), &at, NOTIFY_SET, 1), 0);
}

static void wait_for_peer(const struct hccld_channel *channel, uint32_t index, aclrtStream stream, uint32_t timeout_ms)
{
	struct hccld_channel_place place;
	struct hccld_notify_place at;

	check_eq_int(hccld_channel_own_notify(channel, "test", index, &place), 0);
	at = (struct hccld_notify_place){ place.segment, place.offset };
	check_eq_int(hccld_notify_submit_wait(stream_of(stream), &at, NOTIFY_EQUAL, 1, 0, true, timeout_ms), 0);
}

static struct job_rank join(uint32_t index, uint32_t size, HcclRootInfo *shared)
{
	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	return job_join(shared, index, size, (int32_t)index);
}

/* A token goes round: the next rank answers on another notify before it comes again, so that no two signals become one. */
static void ring(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank = join(index, SIZE, shared);
	struct hccld_channel *next, *previous;

	/* both ends at a time, in an order in which nobody waits for a circle */
	if (index == 0) {
		next = channel_to(&rank, 1, 2);
		previous = channel_to(&rank, SIZE - 1, 2);
	} else {
		previous = channel_to(&rank, index - 1, 2);
		next = channel_to(&rank, (index + 1) % SIZE, 2);
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (index)
			wait_for_peer(previous, 0, rank.stream, 0);
		signal_peer(next, 0, rank.stream);
		if (!index)
			wait_for_peer(previous, 0, rank.stream, 0);
		signal_peer(previous, 1, rank.stream);
		wait_for_peer(next, 1, rank.stream, 0);
	}
	check_ok(aclrtSynchronizeStream(rank.stream));
	job_meet();
	hccld_channel_put(next);
	hccld_channel_put(previous);
	job_leave(&rank);
}

TEST(signals_go_round)
{
	job_run_processes(SIZE, ring);
}

/* What came before the peer went is taken; then the wait ends at once, not by its time-out. */
static void check_end(const struct job_rank *rank, const struct hccld_channel *channel, const char *text)
{
	uint64_t start_ns = clock_now_ns();

	check_fails(aclrtSynchronizeStream(rank->stream), 507057, text);
	check_lt_int((int)((clock_now_ns() - start_ns) / 1000000000u), 20);
	/* and one that is queued later */
	wait_for_peer(channel, 0, rank->stream, 0);
	check_fails(aclrtSynchronizeStream(rank->stream), 507057, text);
}

static void survive(uint32_t index, HcclRootInfo *shared, bool dies)
{
	struct job_rank rank = join(index, 2, shared);
	struct hccld_channel *channel = channel_to(&rank, !index, 1);

	if (index == 0) {
		wait_for_peer(channel, 0, rank.stream, 0);
		wait_for_peer(channel, 0, rank.stream, 100000);
		job_meet();
		check_end(&rank, channel, dies ? "will not be recorded: the process at the other end of the channel that it belongs to has ended"
					       : "will not be recorded: the other end of the channel that it belongs to has been closed\n        Solution: Let the rank at the other end record it before it closes the channel");
		hccld_channel_put(channel);
		job_leave(&rank);
		return;
	}
	signal_peer(channel, 0, rank.stream);
	check_ok(aclrtSynchronizeStream(rank.stream));
	job_meet();
	usleep(100000);
	if (dies) {
		job_expect_kill();
		raise(SIGKILL);
	}
	hccld_channel_put(channel);
	job_leave(&rank);
}

static void peer_dies(uint32_t index, HcclRootInfo *shared)
{
	survive(index, shared, true);
}

static void peer_leaves(uint32_t index, HcclRootInfo *shared)
{
	survive(index, shared, false);
}

TEST(a_wait_ends_when_the_peer_dies)
{
	job_run_processes(2, peer_dies);
}

TEST(a_wait_ends_when_the_peer_leaves)
{
	job_run_processes(2, peer_leaves);
}

/* Nobody could record what goes with the own end. Also not in a stream that stays, when the communicator ends. */
static void close_own_end(uint32_t index, HcclRootInfo *shared)
{
	for (uint32_t round = 0; round < 2; round++) {
		struct job_rank rank = join(index, 2, shared);
		struct hccld_channel *channel = channel_to(&rank, !index, 2);
		ChannelHandle handle = channel->handle;
		aclrtStream stream;

		check_ok(aclrtCreateStream(&stream));
		job_meet();
		if (index == 0) {
			/* this one was recorded before */
			wait_for_peer(channel, 1, stream, 0);
			check_ok(aclrtSynchronizeStreamWithTimeout(stream, 20000));
			wait_for_peer(channel, 0, stream, 0);
			hccld_channel_put(channel);
			check_ok(round == 0 ? HcclChannelDestroy(rank.comm, &handle, 1) : HcclCommDestroy(rank.comm));
			check_fails(aclrtSynchronizeStreamWithTimeout(stream, 20000), 107022, "was freed (by aclrtDestroyNotify, or with its thread, channel");
		} else {
			signal_peer(channel, 1, stream);
			check_ok(aclrtSynchronizeStream(stream));
			hccld_channel_put(channel);
		}
		job_meet();
		check_ok(aclrtDestroyStream(stream));
		if (index != 0 || round == 0)
			check_ok(HcclCommDestroy(rank.comm));
		check_ok(aclrtResetDevice((int32_t)index));
	}
}

TEST(a_wait_ends_when_its_own_end_is_closed)
{
	job_run_processes(2, close_own_end);
}

/* ---- a call for several channels of which one fails ---- */

static HcclChannelDesc desc_of(uint32_t peer)
{
	HcclChannelDesc desc;

	check_eq_int(HcclChannelDescInit(&desc, 1), 0);
	desc.remoteRank = peer;
	desc.channelProtocol = COMM_PROTOCOL_HCCS;
	desc.notifyNum = 1;
	return desc;
}

/* What the program has no handle of it need not end before it acquires another one. */
static void half_done(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank = join(index, 3, shared);
	HcclChannelDesc descs[2] = { desc_of(!index), desc_of(2) };
	ChannelHandle handles[2];

	if (index == 0)
		check_fails(HcclChannelAcquire(rank.comm, COMM_ENGINE_CPU, descs, 2, handles), HCCL_E_TIMEOUT, "has offered nothing to rank 0");
	else if (index == 1)
		check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_CPU, descs, 1, handles));
	job_meet();
	if (index == 1)
		check_ok(HcclChannelDestroy(rank.comm, handles, 1));
	job_meet();
	/* a second time: it is the same one then, and told of */
	for (int i = 0; i < 2 && index < 2; i++)
		check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_CPU, descs, 1, &handles[i]));
	if (index < 2)
		check_eq_uint(handles[0], handles[1]);
	job_meet();
	if (index == 1)
		check_ok(HcclChannelDestroy(rank.comm, handles, 1));
	job_meet();
	if (index == 0)
		check_fails(HcclChannelAcquire(rank.comm, COMM_ENGINE_CPU, descs, 1, handles), HCCL_E_REMOTE, "end this one with HcclChannelDestroy");
	job_meet();
	job_leave(&rank);
}

TEST(a_channel_that_nobody_was_told_of_is_made_again)
{
	setenv("HCCLD_CONNECT_TIMEOUT_MS", "1000", 1);
	job_run_processes(3, half_done);
}
