/* SPDX-License-Identifier: Apache-2.0 */
/* Channels and registered memory: what the other end has is reached by load and store, in order and under its tags, until the end. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "hccl/hccl_res.h"

#define SIZE 4u
#define ROUNDS 200u
#define AREA 8192u

struct area {
	char *base;
	HcclMemHandle handle;
};

/* Registered memory of this rank under @tag. */
static struct area area_new(HcclComm comm, const char *tag, uint64_t bytes)
{
	struct area area = { .base = job_memory(bytes, 0) };
	CommMem mem = { COMM_MEM_TYPE_DEVICE, area.base, bytes };

	check_ok(HcclCommMemReg(comm, tag, &mem, &area.handle));
	check_ptr(area.handle);
	return area;
}

static HcclChannelDesc desc_of(uint32_t peer, CommProtocol protocol, HcclMemHandle *handles, uint32_t count)
{
	HcclChannelDesc desc;

	check_ok(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = peer;
	desc.channelProtocol = protocol;
	desc.memHandles = handles;
	desc.memHandleNum = count;
	return desc;
}

/* A channel to every other rank, whose only memory is the area. */
static void connect_all(const struct job_rank *rank, struct area *area, CommEngine engine, CommProtocol protocol, ChannelHandle *channels)
{
	ChannelHandle made[SIZE];
	HcclChannelDesc descs[SIZE];
	uint32_t count = 0;

	for (uint32_t peer = 0; peer < rank->size; peer++)
		if (peer != rank->rank)
			descs[count++] = desc_of(peer, protocol, &area->handle, 1);
	check_ok(HcclChannelAcquire(rank->comm, engine, descs, count, made));
	count = 0;
	for (uint32_t peer = 0; peer < rank->size; peer++)
		channels[peer] = peer == rank->rank ? 0 : made[count++];
}

static char *remote_area(const struct job_rank *rank, ChannelHandle channel, const char *tag, uint64_t bytes)
{
	uint32_t count = 12345; /* output only */
	CommMem *mems = NULL;
	char **tags = NULL;

	check_ok(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, &tags));
	check_eq_uint(count, 1);
	check_eq_str(tags[0], tag);
	check_eq_uint(mems[0].size, bytes);
	check_eq_int(mems[0].type, COMM_MEM_TYPE_DEVICE);
	return mems[0].addr;
}

/* ---- a ring of flags ---- */

static void pass_flags(const struct job_rank *rank, char *own, char *next_area, char *next_buffer, char *own_buffer)
{
	_Atomic uint64_t *mine = (_Atomic uint64_t *)own, *next = (_Atomic uint64_t *)next_area;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		if (rank->rank == 0) {
			memset(next_buffer, (int)round, 100);
			atomic_store_explicit(next, round, memory_order_release);
		}
		while (atomic_load_explicit(mine, memory_order_acquire) != round)
			usleep(0);
		check_eq_int(own_buffer[99], (char)round);
		if (rank->rank != 0) {
			memcpy(next_buffer, own_buffer, 100);
			atomic_store_explicit(next, round, memory_order_release);
		}
	}
}

static void ring(struct job_rank *rank)
{
	uint32_t next = (rank->rank + 1) % rank->size;
	struct area area = area_new(rank->comm, "flags", AREA);
	ChannelHandle channels[SIZE];
	void *buffer = NULL, *own = NULL;
	uint64_t size = 0, own_size = 0;

	connect_all(rank, &area, COMM_ENGINE_AIV, COMM_PROTOCOL_UB_MEM, channels);
	check_ok(HcclGetHcclBuffer(rank->comm, &own, &own_size));
	check_ok(HcclChannelGetHcclBuffer(rank->comm, channels[next], &buffer, &size));
	check_eq_uint(size, own_size);
	pass_flags(rank, area.base, remote_area(rank, channels[next], "flags", AREA), buffer, own);
}

static void ring_of_threads(void)
{
	job_ranks(SIZE, 4, ring, NULL);
}

TEST(a_ring_of_threads_passes_flags)
{
	job_run(ring_of_threads);
}

static void ring_of_processes(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank;

	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, SIZE, (int32_t)index);
	ring(&rank);
	job_meet();
	job_leave(&rank);
}

TEST(a_ring_of_processes_passes_flags)
{
	job_run_processes(SIZE, ring_of_processes);
}

/* ---- what is exchanged ---- */

#define REGIONS 200u

/* In an order that is neither that of registration nor of addresses, of both kinds of memory, more than fit into one answer. */
static void exchanges(struct job_rank *rank)
{
	uint32_t peer = rank->rank ^ 1, count = 0;
	HcclMemHandle handles[REGIONS], again;
	HcclChannelDesc desc;
	ChannelHandle channel;
	CommMem own[REGIONS], *mems;
	char **tags, tag[256];
	void *host;

	check_ok(aclrtMallocHost(&host, 4096));
	for (uint32_t i = 0; i < REGIONS; i++) {
		uint32_t at = (i * 7 + rank->rank) % REGIONS;
		bool is_host = at == 5;

		own[at] = (CommMem){ is_host ? COMM_MEM_TYPE_HOST : COMM_MEM_TYPE_DEVICE, is_host ? host : job_memory(600, 0), 512 + at % 64 };
		memset(own[at].addr, (int)(at + rank->rank), own[at].size);
		snprintf(tag, sizeof(tag), "%0200u of rank %u", at, rank->rank);
		check_ok(HcclCommMemReg(rank->comm, tag, &own[at], &handles[at]));
		check_ok(HcclCommMemReg(rank->comm, tag, &own[at], &again));
		check_eq_ptr(handles[at], again);
	}
	desc = desc_of(peer, COMM_PROTOCOL_HCCS, handles, REGIONS);
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, &tags));
	check_eq_uint(count, REGIONS);
	for (uint32_t i = 0; i < REGIONS; i++) {
		const unsigned char *bytes = mems[i].addr;

		snprintf(tag, sizeof(tag), "%0200u of rank %u", i, peer);
		check_eq_str(tags[i], tag);
		check_eq_uint(mems[i].size, 512 + i % 64);
		check_eq_int(mems[i].type, i == 5 ? COMM_MEM_TYPE_HOST : COMM_MEM_TYPE_DEVICE);
		check_eq_int(bytes[0], (unsigned char)(i + peer));
		check_eq_int(bytes[mems[i].size - 1], (unsigned char)(i + peer));
	}
	/* tasks and copies know the addresses; the peer has seen all before it changes */
	check_ok(HcclBarrier(rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_ok(aclrtMemcpy(own[0].addr, 512, mems[1].addr, 512, ACL_MEMCPY_DEVICE_TO_DEVICE));
	check_eq_int(*(unsigned char *)own[0].addr, (unsigned char)(1 + peer));
	check_ok(aclrtMemcpyAsync(own[2].addr, 512, mems[3].addr, 512, ACL_MEMCPY_DEVICE_TO_DEVICE, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_int(((unsigned char *)own[2].addr)[511], (unsigned char)(3 + peer));
	check_ok(HcclBarrier(rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
}

static void exchanges_in_threads(void)
{
	job_ranks(2, 2, exchanges, NULL);
}

TEST(memory_comes_in_the_order_of_the_offer_with_its_tags)
{
	job_run(exchanges_in_threads);
}
