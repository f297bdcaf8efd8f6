/* SPDX-License-Identifier: Apache-2.0 */
/* Channels and registered memory: what the other end has is reached by load and store, in order and under its tags, until the end. */
#include <pthread.h>
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

/* ---- the same channel again, and its end ---- */

/* May this process read there? */
static bool is_readable(const void *address)
{
	int pipes[2];
	bool readable;

	check_eq_int(pipe(pipes), 0);
	readable = write(pipes[1], address, 1) == 1;
	close(pipes[0]);
	close(pipes[1]);
	return readable;
}

static void settle(const struct job_rank *rank)
{
	check_ok(HcclBarrier(rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
}

static void comes_again(struct job_rank *rank)
{
	struct area area = area_new(rank->comm, "area", AREA);
	HcclChannelDesc descs[3];
	ChannelHandle made[3], found[3], old;
	char *remote;

	descs[0] = descs[1] = desc_of(rank->rank ^ 1, COMM_PROTOCOL_UB_MEM, &area.handle, 1);
	descs[2] = desc_of(rank->rank ^ 1, COMM_PROTOCOL_SIO, NULL, 0);
	check_ok(HcclChannelQuery(rank->comm, COMM_ENGINE_AIV, descs, 3, found));
	for (int i = 0; i < 3; i++)
		check_eq_uint(found[i], 0);
	/* one twice in a list is one */
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, descs, 3, made));
	check_eq_uint(made[0], made[1]);
	check(made[0] != made[2]);
	/* the other end need not come again; what it has stays */
	descs[0].memHandleNum = 0;
	descs[0].notifyNum = 1000;
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, descs, 1, found));
	check_eq_uint(found[0], made[0]);
	remote = remote_area(rank, found[0], "area", AREA);
	check_ok(HcclChannelQuery(rank->comm, COMM_ENGINE_AIV, descs, 3, found));
	check_eq_uint(found[2], made[2]);
	check_ok(HcclChannelQuery(rank->comm, COMM_ENGINE_CPU, descs, 3, found));
	check_eq_uint(found[0], 0);
	settle(rank);
	/* from the end on nothing of the peer is reached */
	check(is_readable(remote));
	check_ok(HcclChannelDestroy(rank->comm, made, 1));
	check(!is_readable(remote));
	check_fails(aclrtMemcpy(area.base, 1, remote, 1, ACL_MEMCPY_DEVICE_TO_DEVICE), 107000, "is not device memory");
	old = made[0];
	check_fails(HcclChannelDestroy(rank->comm, made, 3), HCCL_E_NOT_FOUND, "was destroyed");
	check_ok(HcclChannelQuery(rank->comm, COMM_ENGINE_AIV, descs, 3, found));
	for (int i = 0; i < 3; i++)
		check_eq_uint(found[i], 0);
	settle(rank);
	descs[0].memHandleNum = 1;
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, descs, 1, made));
	check(made[0] != old);
	remote = remote_area(rank, made[0], "area", AREA);
	settle(rank);
}

static void comes_again_in_threads(void)
{
	job_ranks(2, 2, comes_again, NULL);
}

TEST(a_channel_is_one_until_it_is_destroyed)
{
	job_run(comes_again_in_threads);
}

/* ---- network protocols ---- */

static void is_for_tasks(struct job_rank *rank)
{
	static const CommProtocol protocols[] = { COMM_PROTOCOL_ROCE, COMM_PROTOCOL_UBC_CTP, COMM_PROTOCOL_UBC_TP, COMM_PROTOCOL_UBOE };
	struct area area = area_new(rank->comm, "area", AREA);

	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		HcclChannelDesc desc = desc_of(rank->rank ^ 1, protocols[i], &area.handle, 1);
		ChannelHandle channel;
		void *buffer;
		uint64_t size;
		char *remote;

		check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AICPU_TS, &desc, 1, &channel));
		remote = remote_area(rank, channel, "area", AREA);
		check_ok(HcclChannelGetHcclBuffer(rank->comm, channel, &buffer, &size));
		check(!is_readable(remote) && !is_readable(buffer));
		check_fails(aclrtMemcpy(area.base, 1, remote, 1, ACL_MEMCPY_DEVICE_TO_DEVICE), 107000, "is not device memory");
		check_fails(aclrtMemcpy(buffer, 1, area.base, 1, ACL_MEMCPY_DEFAULT), 107000, "a network");
		check_fails(aclrtMemcpy(buffer, 1, area.base, 1, ACL_MEMCPY_DEVICE_TO_HOST), 107000, "a network");
		check_fails(aclrtMemcpyAsync(buffer, 1, area.base, 1, ACL_MEMCPY_DEVICE_TO_HOST, NULL), 107000, "a network");
		check_fails(aclrtMemcpy(area.base, 64, remote - 1, 64, ACL_MEMCPY_DEFAULT), 107000, "a network");
		check_fails(aclrtMemsetAsync(remote, 1, 0, 1, NULL), 107000, "a network");
	}
	settle(rank);
}

static void is_for_tasks_in_threads(void)
{
	job_ranks(2, 2, is_for_tasks, NULL);
}

TEST(addresses_of_a_network_are_no_memory)
{
	job_run(is_for_tasks_in_threads);
}

static void uses_roce(struct job_rank *rank)
{
	HcclChannelDesc desc = desc_of(rank->rank ^ 1, COMM_PROTOCOL_PCIE, NULL, 0);
	ChannelHandle channel = 77;

	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel), HCCL_E_PARA, "EI0010");
	check_eq_uint(channel, 77);
	desc.channelProtocol = COMM_PROTOCOL_UB_MEM;
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1, &channel), HCCL_E_PARA, "use COMM_PROTOCOL_ROCE, or set");
	desc.channelProtocol = COMM_PROTOCOL_ROCE;
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
	settle(rank);
}

static void uses_roce_in_threads(void)
{
	setenv("HCCL_INTRA_PCIE_ENABLE", "0", 1);
	job_ranks(2, 2, uses_roce, NULL);
}

TEST(roce_between_ranks_of_a_server_excludes_memory)
{
	job_run_with("HCCL_INTRA_ROCE_ENABLE", "1", uses_roce_in_threads);
}

/* ---- other ends of access ---- */

static void ends_with_the_communicator(struct job_rank *rank)
{
	struct area area = area_new(rank->comm, "area", AREA);
	HcclChannelDesc desc = desc_of(rank->rank ^ 1, COMM_PROTOCOL_HCCS, &area.handle, 1);
	ChannelHandle channel;
	uint32_t count;
	CommMem *mems;
	char **tags, *remote;

	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
	remote = remote_area(rank, channel, "area", AREA);
	settle(rank);
	if (rank->rank == 0) {
		check_ok(aclrtResetDevice(rank->device));
		check(!is_readable(remote));
		check_fails(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, &tags), HCCL_E_NOT_FOUND, "was destroyed");
		check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel), HCCL_E_PARA, "ended when device 0 was reset");
		check_fails(HcclChannelQuery(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel), HCCL_E_PARA, "ended when device 0 was reset");
		check_fails(HcclCommMemReg(rank->comm, "tag", &(CommMem){ 0, area.base, 1 }, &area.handle), HCCL_E_PARA, "was reset");
		check_ok(aclrtSetDevice(rank->device));
		check_ok(aclrtCreateStream(&rank->stream));
		check_ok(HcclCommDestroy(rank->comm));
		rank->comm = NULL;
		return;
	}
	/* the peer has gone: what is mapped stays, and calls tell */
	for (int i = 0; aclrtMemcpy(area.base, 1, remote, 1, ACL_MEMCPY_DEVICE_TO_DEVICE) == 0; i++) {
		check_lt_int(i, 10000);
		usleep(1000);
	}
	check_str_contains(aclGetRecentErrMsg(), ", has destroyed the communicator; it reads as zeros");
	check(is_readable(remote));
	check_eq_int(*remote, 0);
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel), HCCL_E_REMOTE, "has destroyed the communicator");
	check_ok(HcclCommDestroy(rank->comm));
	rank->comm = NULL;
	check(!is_readable(remote));
}

static void ends_in_threads(void)
{
	job_ranks(2, 2, ends_with_the_communicator, NULL);
}

TEST(access_ends_with_communicator_and_device)
{
	job_run(ends_in_threads);
}

/* ---- a peer that goes on ---- */

static _Atomic int step;

static void await(int value)
{
	while (atomic_load(&step) < value)
		usleep(500);
}

static void one_end_closes(struct job_rank *rank)
{
	struct area area = area_new(rank->comm, "area", 1 << 20);
	struct area other = area_new(rank->comm, "other", 1 << 20);
	HcclMemHandle handles[] = { area.handle, other.handle };
	HcclChannelDesc desc = desc_of(rank->rank ^ 1, COMM_PROTOCOL_HCCS, handles, 2);
	ChannelHandle channel;
	uint32_t count;
	CommMem *mems;
	char **tags;

	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, &tags));
	settle(rank);
	if (rank->rank == 0) {
		/* registered memory that is freed is no longer shown; the rest is */
		check_ok(aclrtFree(other.base));
		atomic_store(&step, 1);
		await(2);
		check_ok(HcclChannelDestroy(rank->comm, &channel, 1));
		atomic_store(&step, 3);
		await(4);
	} else {
		await(1);
		check_fails(aclrtMemcpy(area.base, 1, mems[1].addr, 1, ACL_MEMCPY_DEVICE_TO_DEVICE), 507057, ", has freed it; it reads as zeros");
		check_ok(aclrtMemcpy(area.base, 1, mems[0].addr, 1, ACL_MEMCPY_DEVICE_TO_DEVICE));
		check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
		atomic_store(&step, 2);
		await(3);
		check_fails(aclrtMemcpyAsync(area.base, 1, mems[0].addr, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, rank->stream), 507057, "closed its end of");
		check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel), HCCL_E_REMOTE,
			    "has closed its end; end this one with HcclChannelDestroy");
		check_ok(HcclChannelDestroy(rank->comm, &channel, 1));
		atomic_store(&step, 4);
	}
	desc.memHandleNum = 1;
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, &tags));
	check_eq_uint(count, 1);
	settle(rank);
}

static void one_end_closes_in_threads(void)
{
	job_ranks(2, 2, one_end_closes, NULL);
}

TEST(an_end_that_is_closed_is_told_of_at_the_other)
{
	job_run(one_end_closes_in_threads);
}

/* ---- threads ---- */

struct twin {
	HcclComm comm;
	int32_t device;
	uint32_t peer;
	HcclMemHandle handle;
	ChannelHandle channel;
};

static void *twin_acquires(void *data)
{
	struct twin *twin = data;
	HcclChannelDesc desc = desc_of(twin->peer, COMM_PROTOCOL_UB_MEM, &twin->handle, 1);

	check_ok(aclrtSetDevice(twin->device));
	check_ok(HcclChannelAcquire(twin->comm, COMM_ENGINE_AIV, &desc, 1, &twin->channel));
	return NULL;
}

/* Threads that want the same get the same; those that wait for different peers do not wait for each other. */
static void threads_acquire(struct job_rank *rank)
{
	struct area area = area_new(rank->comm, "area", AREA);
	struct twin twins[12];
	pthread_t threads[12];
	uint32_t count = 0;

	for (int i = 0; i < 4; i++)
		for (uint32_t peer = 0; peer < rank->size; peer++)
			if (peer != rank->rank)
				twins[count++] = (struct twin){ rank->comm, rank->device, peer, area.handle, 0 };
	check_eq_uint(count, 12);
	for (uint32_t i = 0; i < count; i++)
		check_eq_int(pthread_create(&threads[i], NULL, twin_acquires, &twins[i]), 0);
	for (uint32_t i = 0; i < count; i++)
		check_eq_int(pthread_join(threads[i], NULL), 0);
	for (uint32_t i = 3; i < count; i++)
		check_eq_uint(twins[i].channel, twins[i % 3].channel);
	settle(rank);
}

static void threads_in_threads(void)
{
	job_ranks(SIZE, 4, threads_acquire, NULL);
}

TEST(threads_share_what_they_acquire)
{
	job_run(threads_in_threads);
}

/* ---- given up ---- */

static void *acquires_in_vain(void *data)
{
	struct twin *twin = data;
	HcclChannelDesc desc = desc_of(twin->peer, COMM_PROTOCOL_UB_MEM, NULL, 0);
	const char *text;

	check_ok(aclrtSetDevice(twin->device));
	check_eq_int(HcclChannelAcquire(twin->comm, COMM_ENGINE_AIV, &desc, 1, &twin->channel), HCCL_E_UNAVAIL);
	text = aclGetRecentErrMsg();
	check_str_contains(text, "this process has closed it");
	return NULL;
}

/* A thread that waits for a peer hears at once that its own rank has gone: destroyed by rank 0, with its device by rank 1. */
static void is_given_up(struct job_rank *rank)
{
	struct twin twin = { .comm = rank->comm, .device = rank->device, .peer = 2 };
	pthread_t thread;

	if (rank->rank == 2) {
		await(2);
		return;
	}
	check_eq_int(pthread_create(&thread, NULL, acquires_in_vain, &twin), 0);
	usleep(200000);
	if (rank->rank == 0) {
		check_ok(HcclCommDestroy(rank->comm));
		rank->comm = NULL;
	} else {
		check_ok(aclrtResetDeviceForce(rank->device));
	}
	check_eq_int(pthread_join(thread, NULL), 0);
	check_eq_uint(twin.channel, 0);
	if (rank->rank == 1) {
		check_ok(HcclCommDestroy(rank->comm));
		rank->comm = NULL;
		check_ok(aclrtSetDevice(rank->device));
		check_ok(aclrtCreateStream(&rank->stream));
	}
	atomic_fetch_add(&step, 1);
}

static void given_up_in_threads(void)
{
	job_ranks(3, 3, is_given_up, NULL);
}

TEST(a_thread_that_waits_hears_that_its_rank_has_gone)
{
	job_run(given_up_in_threads);
}

/* ---- threads that give up ---- */

static void *gives_up(void *data)
{
	struct twin *twin = data;
	HcclChannelDesc desc = desc_of(twin->peer, COMM_PROTOCOL_UB_MEM, NULL, 0);

	check_ok(aclrtSetDevice(twin->device));
	usleep((unsigned int)twin->channel);
	for (int i = 0; i < 6; i++)
		check_fails(HcclChannelAcquire(twin->comm, COMM_ENGINE_AIV, &desc, 1, &twin->channel), HCCL_E_TIMEOUT, "has offered nothing");
	return NULL;
}

/* Each takes the end back when its time is over, while others are about to wait for it. */
static void threads_give_up(struct job_rank *rank)
{
	struct twin twins[16];
	pthread_t threads[16];

	if (rank->rank == 0) {
		for (uint32_t i = 0; i < 16; i++) {
			twins[i] = (struct twin){ .comm = rank->comm, .device = rank->device, .peer = 1, .channel = i * 17000 };
			check_eq_int(pthread_create(&threads[i], NULL, gives_up, &twins[i]), 0);
		}
		for (uint32_t i = 0; i < 16; i++)
			check_eq_int(pthread_join(threads[i], NULL), 0);
	}
	atomic_fetch_add(&step, 1);
	await(2);
}

static void give_up_in_threads(void)
{
	job_ranks(2, 2, threads_give_up, NULL);
}

TEST(threads_that_give_up_leave_the_others_alone)
{
	job_run_with("HCCLD_CONNECT_TIMEOUT_MS", "300", give_up_in_threads);
}
