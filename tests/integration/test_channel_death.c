/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that does not come, is stopped, leaves or dies, at each step of acquiring a channel and after it: the others are told who it is and
 * what it does, or go on; nothing stays behind.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "hccl/hccl_res.h"

#define MIB ((size_t)1 << 20)
#define TIMEOUT_MS "1500"
#define VICTIM 1u

/* Of all processes of a case. */
static struct shared {
	_Atomic int step;
	pid_t victim, sleeper;
} *shared;

static void await(int step)
{
	while (atomic_load(&shared->step) < step)
		usleep(500);
}

static void go(int step)
{
	atomic_store(&shared->step, step);
}

static HcclChannelDesc desc_of(uint32_t peer, HcclMemHandle *handle)
{
	HcclChannelDesc desc;

	check_ok(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = peer;
	desc.channelProtocol = COMM_PROTOCOL_UB_MEM;
	desc.memHandles = handle;
	desc.memHandleNum = handle != NULL;
	desc.notifyNum = 3;
	return desc;
}

static void *area_new(HcclComm comm, HcclMemHandle *ret_handle)
{
	void *base = job_memory(MIB, 5);
	CommMem mem = { COMM_MEM_TYPE_DEVICE, base, MIB };

	check_ok(HcclCommMemReg(comm, "area", &mem, ret_handle));
	return base;
}

static struct job_rank begin(uint32_t index, HcclRootInfo *root, uint32_t size)
{
	struct job_rank rank;

	if (index == 0)
		check_ok(HcclGetRootInfo(root));
	job_meet();
	rank = job_join(root, index, size, (int32_t)index % 4);
	if (index == VICTIM)
		shared->victim = getpid();
	job_meet();
	return rank;
}

static void run(uint32_t count, void (*body)(uint32_t index, HcclRootInfo *root))
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	setenv("HCCLD_CONNECT_TIMEOUT_MS", TIMEOUT_MS, 1);
	job_run_processes(count, body);
}

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

static _Noreturn void die(void)
{
	job_expect_kill();
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/* ---- those who do not come ---- */

/* Rank 1 offers another engine, rank 2 nothing, rank 3 is stopped: rank 0 hears of each. */
static void does_not_come(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, 4);
	HcclChannelDesc descs[3], desc = desc_of(0, NULL);
	ChannelHandle channels[3] = { 1, 2, 3 };
	char text[2048];

	if (index == 3)
		raise(SIGSTOP);
	if (index == 1) {
		usleep(500000);
		check_fails(HcclChannelAcquire(rank.comm, COMM_ENGINE_CPU, &desc, 1, channels), HCCL_E_TIMEOUT, "lives and has offered nothing to rank 1");
	}
	if (index == 0) {
		for (uint32_t i = 0; i < 3; i++)
			descs[i] = desc_of(i + 1, NULL);
		check_eq_int(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, descs, 3, channels), HCCL_E_TIMEOUT);
		snprintf(text, sizeof(text), "%s", aclGetRecentErrMsg());
		check_str_contains(text, "EI0006");
		check_str_contains(text, "3 of 3 channels");
		check_str_contains(text, "lives and has offered only engine CPU with UB_MEM");
		check_str_contains(text, "lives and has offered nothing to rank 0");
		check_str_contains(text, "is stopped");
		check_str_contains(text, "HCCLD_CONNECT_TIMEOUT_MS sets the limit");
		check_eq_uint(channels[0], 1);
		check_ok(HcclChannelQuery(rank.comm, COMM_ENGINE_AIV, descs, 3, channels));
		check_eq_uint(channels[0] + channels[1] + channels[2], 0);
	}
	job_meet();
	/* what was offered in vain is offered anew, and found by both */
	check_ok(HcclBarrier(rank.comm, rank.stream));
	check_ok(aclrtSynchronizeStream(rank.stream));
	if (index < 2) {
		desc = desc_of(index ^ 1, NULL);
		check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, channels));
	}
	job_meet();
	job_leave(&rank);
}

static void stopped_goes_on(uint32_t index, HcclRootInfo *root)
{
	if (index == 4) {
		/* wakes the one that is stopped, when the time is over */
		job_meet();
		job_meet();
		usleep(3000000);
		kill(shared->sleeper, SIGCONT);
		job_meet();
		job_meet();
		return;
	}
	if (index == 3)
		shared->sleeper = getpid();
	does_not_come(index, root);
}

TEST_TIMEOUT(peers_that_do_not_come_are_named, 60)
{
	run(5, stopped_goes_on);
}

/* ---- killed before it has offered, and while others wait ---- */

static void dies_before_offer(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, 3);
	HcclChannelDesc descs[] = { desc_of(VICTIM, NULL), desc_of(index == 0 ? 2 : 0, NULL) };
	ChannelHandle channels[2];
	HcclMemHandle handle;
	struct timespec start, end;

	if (index == VICTIM) {
		usleep(300000);
		die();
	}
	area_new(rank.comm, &handle);
	descs[0].memHandles = descs[1].memHandles = &handle;
	descs[0].memHandleNum = descs[1].memHandleNum = 1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	check_fails(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, descs, 2, channels), HCCL_E_REMOTE, "killed by signal 9");
	clock_gettime(CLOCK_MONOTONIC, &end);
	check_lt_int((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000, 1400);
	/* afterwards at once; and the two that live have each other */
	check_fails(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, descs, 1, channels), HCCL_E_REMOTE, "rank 1, pid");
	check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, descs + 1, 1, channels));
	go((int)index + 1);
	while (atomic_load(&shared->step) == 0)
		usleep(500);
	usleep(200000);
	job_leave(&rank);
}

TEST(a_peer_that_dies_before_it_offers_is_named_at_once)
{
	run(3, dies_before_offer);
}

/* ---- killed after its offer ---- */

static void *acquires(void *data)
{
	struct job_rank *rank = data;
	HcclChannelDesc desc = desc_of(0, NULL);
	ChannelHandle channel;

	check_ok(aclrtSetDevice(rank->device));
	go(1);
	(void)HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1, &channel);
	return NULL;
}

/* It dies with its offer made and nobody there; then the other one comes. */
static void dies_after_offer(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, 2);
	HcclChannelDesc desc = desc_of(VICTIM, NULL);
	ChannelHandle channel;
	pthread_t thread;

	if (index == VICTIM) {
		check_eq_int(pthread_create(&thread, NULL, acquires, &rank), 0);
		await(1);
		usleep(200000);
		die();
	}
	await(1);
	usleep(500000);
	check_fails(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel), HCCL_E_REMOTE, "killed by signal 9");
	job_leave(&rank);
}

TEST(a_peer_that_dies_after_its_offer_is_named)
{
	run(2, dies_after_offer);
}

/* It is stopped with its offer made: the channel is complete all the same, and it goes on with it later. */
static void stops_after_offer(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, 2);
	HcclChannelDesc desc = desc_of(index ^ 1, NULL);
	ChannelHandle channel;
	void *buffer;
	uint64_t size;

	if (index == VICTIM) {
		go(1);
		check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel));
		check_ok(HcclChannelGetHcclBuffer(rank.comm, channel, &buffer, &size));
		check_eq_int(*(char *)buffer, 77);
	} else {
		await(1);
		usleep(200000);
		check_eq_int(kill(shared->victim, SIGSTOP), 0);
		check_ok(HcclGetHcclBuffer(rank.comm, &buffer, &size));
		*(char *)buffer = 77;
		check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel));
		usleep(100000);
		check_eq_int(kill(shared->victim, SIGCONT), 0);
	}
	job_meet();
	job_leave(&rank);
}

TEST(a_peer_that_is_stopped_after_its_offer_goes_on_later)
{
	run(2, stops_after_offer);
}

/* Killed while it is stopped, with the channel complete: between that and its next question. */
static void dies_when_complete(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, 2);
	HcclChannelDesc desc = desc_of(VICTIM, NULL);
	ChannelHandle channel;
	pthread_t thread;
	void *buffer;
	uint64_t size;

	if (index == VICTIM) {
		job_expect_kill();
		check_eq_int(pthread_create(&thread, NULL, acquires, &rank), 0);
		for (;;)
			pause();
	}
	await(1);
	usleep(200000);
	check_eq_int(kill(shared->victim, SIGSTOP), 0);
	check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	check_ok(HcclChannelGetHcclBuffer(rank.comm, channel, &buffer, &size));
	*(volatile char *)buffer = 1;
	check_eq_int(kill(shared->victim, SIGKILL), 0);
	for (int i = 0; HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel) == HCCL_SUCCESS; i++) {
		check_lt_int(i, 10000);
		usleep(1000);
	}
	check_str_contains(aclGetRecentErrMsg(), "killed by signal 9");
	check_ok(HcclChannelDestroy(rank.comm, &channel, 1));
	job_leave(&rank);
}

TEST(a_peer_that_dies_when_the_channel_is_complete)
{
	run(2, dies_when_complete);
}

/* ---- after a death ---- */

static void survives(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, 2);
	HcclMemHandle handle;
	char *area = area_new(rank.comm, &handle), *remote, *own;
	HcclChannelDesc desc = desc_of(index ^ 1, &handle);
	ChannelHandle channel;
	uint32_t count;
	CommMem *mems;
	char **tags;

	check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(rank.comm, channel, &count, &mems, &tags));
	remote = mems[0].addr;
	check_eq_int(remote[MIB - 1], 5);
	remote[0] = 1;
	job_meet();
	if (index == VICTIM)
		die();
	own = job_memory(MIB, 9);
	/* loads and stores go on, and never end in a signal: it reads as zeros */
	for (int i = 0; ((volatile char *)remote)[MIB - 1] == 5; i++) {
		check_lt_int(i, 10000);
		remote[0]++;
		usleep(1000);
	}
	/* pages go from the first to the last: the last store may have come between */
	remote[0] = 0;
	for (size_t i = 0; i < MIB; i++)
		check_eq_int(((volatile char *)remote)[i], 0);
	memset(remote, 3, MIB);
	/* calls and tasks with it tell the cause */
	check_fails(aclrtMemcpy(own, MIB, remote, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE), 507057, ", killed by signal 9; it reads as zeros");
	check_fails(aclrtMemcpyAsync(remote, MIB, own, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, rank.stream), 507057, ", killed by signal 9; it reads as zeros");
	check_fails(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel), HCCL_E_REMOTE, "killed by signal 9");
	check_eq_int(own[0], 9);
	check_eq_int(area[MIB - 1], 5);
	/* until it lets go */
	check_ok(HcclChannelDestroy(rank.comm, &channel, 1));
	check(!is_readable(remote));
	check_ok(HcclCommDestroy(rank.comm));
	rank.comm = NULL;
	job_leave(&rank);
}

TEST(memory_of_a_dead_peer_reads_as_zeros)
{
	run(2, survives);
}

/* Once a channel is complete both ends have it, though the peer has heard of it first and has left since. */
static void leaves_at_once(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, 2);
	HcclMemHandle handle;
	char *area = area_new(rank.comm, &handle), *own = job_memory(8, 9), last;
	HcclChannelDesc desc = desc_of(index ^ 1, &handle);
	ChannelHandle channel;
	uint32_t count;
	uint64_t size;
	CommMem *mems;
	void *buffer;
	char **tags;

	check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	if (index == VICTIM) {
		check_ok(aclrtFree(area));
		check_ok(HcclCommDestroy(rank.comm));
		rank.comm = NULL;
		go(1);
		job_leave(&rank);
		return;
	}
	check_ok(HcclChannelGetRemoteMems(rank.comm, channel, &count, &mems, &tags));
	check_eq_uint(count, 1);
	check_eq_str(tags[0], "area");
	check_eq_uint(mems[0].size, MIB);
	last = ((volatile char *)mems[0].addr)[MIB - 1];
	check(last == 0 || last == 5);
	memset(mems[0].addr, 1, MIB);
	check_ok(HcclChannelGetHcclBuffer(rank.comm, channel, &buffer, &size));
	((volatile char *)buffer)[size - 1] = 1;
	await(1);
	check_fails(aclrtMemcpy(own, 8, mems[0].addr, 8, ACL_MEMCPY_DEVICE_TO_DEVICE), 507057, ", has destroyed the communicator; it reads as zeros");
	check_fails(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel), HCCL_E_REMOTE, "has destroyed the communicator");
	check_ok(HcclChannelDestroy(rank.comm, &channel, 1));
	job_leave(&rank);
}

TEST_TIMEOUT(a_peer_that_leaves_when_the_channel_is_complete, 60)
{
	for (int i = 0; i < 8; i++)
		run(2, leaves_at_once);
}

static bool destroys_first;

/* A small allocation shares pages with others: what the peer still has mapped of it is never a part of its owner's next ones. */
static void frees_small(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, 2);
	char *area = job_memory(4096, 5), *next[8], *remote;
	CommMem mem = { COMM_MEM_TYPE_DEVICE, area, 4096 }, *mems;
	HcclMemHandle handle;
	HcclChannelDesc desc = desc_of(index ^ 1, &handle);
	ChannelHandle channel;
	uint32_t count;
	char **tags;

	check_ok(HcclCommMemReg(rank.comm, "area", &mem, &handle));
	check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(rank.comm, channel, &count, &mems, &tags));
	remote = mems[0].addr;
	check_eq_int(remote[4095], 5);
	job_meet();
	if (index == VICTIM && destroys_first) {
		check_ok(HcclCommDestroy(rank.comm));
		rank.comm = NULL;
	}
	if (index == VICTIM) {
		check_ok(aclrtFree(area));
		for (uint32_t i = 0; i < 8; i++)
			next[i] = job_memory(4096, 9);
		go(1);
		await(2);
		for (uint32_t i = 0; i < 8 * 4096; i++)
			check_eq_int(next[i / 4096][i % 4096], 9);
	} else {
		await(1);
		for (uint32_t i = 0; i < 4096; i++)
			check_eq_int(((volatile char *)remote)[i], 0);
		memset(remote, 3, 4096);
		go(2);
		check_fails(aclrtMemcpy(area, 4096, remote, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE), 507057,
			    destroys_first ? ", has destroyed the communicator; it reads as zeros" : ", has freed it; it reads as zeros");
	}
	job_meet();
	job_leave(&rank);
}

TEST(small_memory_that_its_owner_frees_is_not_used_again)
{
	run(2, frees_small);
}

TEST(nor_is_that_of_a_communicator_that_was_destroyed)
{
	destroys_first = true;
	run(2, frees_small);
}

/* A copy that is queued when the peer dies, or closes its end, fails with the cause, wherever it stands in its stream. */
static void has_tasks(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, 2);
	HcclMemHandle handle;
	char *area = area_new(rank.comm, &handle), *gate = job_memory(8, 0);
	HcclChannelDesc desc = desc_of(index ^ 1, &handle);
	ChannelHandle channel;
	uint32_t count;
	CommMem *mems;
	char **tags, text[128];

	check_ok(HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(rank.comm, channel, &count, &mems, &tags));
	job_meet();
	if (index == VICTIM) {
		await(1);
		if (!destroys_first)
			die();
		check_ok(HcclChannelDestroy(rank.comm, &channel, 1));
		go(2);
		job_meet();
		job_leave(&rank);
		return;
	}
	check_ok(aclrtValueWait(gate, 1, 0, rank.stream));
	check_ok(aclrtMemcpyAsync(area, MIB, mems[0].addr, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, rank.stream));
	check_ok(aclrtMemcpyAsync(mems[0].addr, 100, area, 100, ACL_MEMCPY_DEVICE_TO_DEVICE, rank.stream));
	go(1);
	for (int i = 0; destroys_first ? atomic_load(&shared->step) < 2 : ((volatile char *)mems[0].addr)[MIB - 1] == 5; i++) {
		check_lt_int(i, 10000);
		usleep(1000);
	}
	*(volatile uint64_t *)gate = 1;
	snprintf(text, sizeof(text), "cannot reach memory of rank 1: rank 1, pid %d, %s", (int)shared->victim,
		 destroys_first ? "has closed its end of the channel" : "killed by signal 9");
	check_fails(aclrtSynchronizeStream(rank.stream), 507057, text);
	if (destroys_first)
		job_meet();
	job_leave(&rank);
}

TEST(queued_tasks_fail_with_the_cause)
{
	run(2, has_tasks);
}

TEST(queued_tasks_say_that_the_other_end_was_closed)
{
	destroys_first = true;
	run(2, has_tasks);
}

/* ---- nothing stays behind ---- */

#define ROUNDS 40u

/* Peers that are killed at any time: the one that stays has what it had, and can acquire again. */
static void is_left(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank = begin(index, root, ROUNDS + 1);
	HcclMemHandle handle;
	ChannelHandle channel;
	size_t had;

	if (index != 0) {
		HcclChannelDesc desc = desc_of(0, NULL);

		while (atomic_load(&shared->step) < (int)index)
			usleep(200);
		job_expect_kill();
		if (fork() == 0) {
			usleep(index * 97 % 3000);
			kill(getppid(), SIGKILL);
			_exit(0);
		}
		(void)HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel);
		for (;;)
			pause();
	}
	area_new(rank.comm, &handle);
	/* the device's own account: what channels bring costs nothing, and what they took is back */
	had = job_free_memory();
	for (uint32_t peer = 1; peer <= ROUNDS; peer++) {
		HcclChannelDesc desc = desc_of(peer, &handle);
		int r;

		go((int)peer);
		r = HcclChannelAcquire(rank.comm, COMM_ENGINE_AIV, &desc, 1, &channel);
		check_msg(r == HCCL_SUCCESS || r == HCCL_E_REMOTE, "peer %u: %d %s", peer, r, aclGetRecentErrMsg());
		if (r == HCCL_SUCCESS)
			check_ok(HcclChannelDestroy(rank.comm, &channel, 1));
	}
	check_eq_uint(job_free_memory(), had);
	job_leave(&rank);
}

TEST_TIMEOUT(peers_that_are_killed_at_any_time_leave_nothing, 100)
{
	run(ROUNDS + 1, is_left);
}
