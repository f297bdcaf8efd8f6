/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of four ranks dies. What the others have with it, pending or later, in whatever form, fails at once with the cause; what they have
 * with each other goes on.
 */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"

#define DEAD 3u
#define LARGE (4u << 20)
#define REMOTE 507057
#define AT_ONCE_S 10	/* nothing here takes a second on a quiet machine; the time-outs that it could be mistaken for take 1836 s */

enum form {
	RECEIVE,
	SEND_LARGE,
	BATCH,		/* a living peer and the dead one */
	BARRIER,
	GROUP,
	FORMS,
};

static unsigned char *memory;

static void issue(enum form form, struct job_rank *rank)
{
	uint32_t living = rank->rank ^ 1;
	HcclSendRecvItem items[] = { job_send(living, memory, 1000), job_receive(living, memory + 1000, 1000),
				     job_receive(DEAD, memory + 2000, 1000) };

	switch (form) {
	case RECEIVE:
		check_ok(HcclRecv(memory, 1000, HCCL_DATA_TYPE_INT8, DEAD, rank->comm, rank->stream));
		break;
	case SEND_LARGE:
		check_ok(HcclSend(memory, LARGE, HCCL_DATA_TYPE_INT8, DEAD, rank->comm, rank->stream));
		break;
	case BATCH:
		memset(memory + 1000, 0, 1000);
		check_ok(HcclBatchSendRecv(items, 3, rank->comm, rank->stream));
		break;
	case BARRIER:
		check_ok(HcclBarrier(rank->comm, rank->stream));
		break;
	default:
		check_ok(HcclGroupStart());
		check_ok(HcclRecv(memory + 2000, 1000, HCCL_DATA_TYPE_INT8, DEAD, rank->comm, rank->stream));
		check_ok(HcclSend(memory, LARGE, HCCL_DATA_TYPE_INT8, DEAD, rank->comm, rank->stream));
		check_ok(HcclGroupEnd());
	}
}

static void fails(struct job_rank *rank)
{
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	check_fails(aclrtSynchronizeStream(rank->stream), REMOTE, "killed by signal 9");
	clock_gettime(CLOCK_MONOTONIC, &end);
	check_lt_int(end.tv_sec - start.tv_sec, AT_ONCE_S);
}

/* The two living ranks of a pair, with small and large messages. */
static void lives(struct job_rank *rank)
{
	uint32_t living = rank->rank ^ 1;
	HcclSendRecvItem items[] = { job_send(living, memory, LARGE / 2), job_receive(living, memory + LARGE / 2, LARGE / 2) };

	memset(memory, (int)rank->rank + 1, LARGE / 2);
	for (int i = 0; i < 3; i++) {
		memset(memory + LARGE / 2, 0, LARGE / 2);
		check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		check_eq_uint(memory[LARGE - 1], living + 1);
	}
}

static void body(uint32_t index, HcclRootInfo *shared, enum form form)
{
	HcclResult async = HCCL_E_RESERVED;
	struct job_rank rank;

	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, 4, (int32_t)index);
	memory = job_memory(LARGE, (int)index + 1);
	job_meet();
	if (index == DEAD) {
		usleep(100000);
		job_expect_kill();
		kill(getpid(), SIGKILL);
	}
	/* pending when it dies */
	if (index != 2) {
		issue(form, &rank);
		fails(&rank);
		if (form == BATCH)
			check_eq_uint(memory[1999], (index ^ 1) + 1);
	} else {
		/* rank 2 has nothing to do with the dead one, and no error; who asks for the communicator's is told of it */
		for (async = HCCL_SUCCESS; async == HCCL_SUCCESS; usleep(10000))
			check_ok(HcclGetCommAsyncError(rank.comm, &async));
		check_eq_int(async, HCCL_E_REMOTE);
		check_str_contains(aclGetRecentErrMsg(), "rank 3, pid");
		check_ok(HcclGetCommAsyncError(rank.comm, &async));
		check_str_contains(aclGetRecentErrMsg(), "killed by signal 9 (dead ranks: 1 of 4)");
		check_ok(aclrtSynchronizeStream(rank.stream));
	}
	/* later ones, in all forms */
	for (int later = 0; later < FORMS; later++) {
		if (index == 2 && later == BATCH)
			continue;	/* its living partner would be the dead one */
		issue((enum form)later, &rank);
		fails(&rank);
		if (index != 2)
			lives(&rank);
	}
	check_ok(HcclGetCommAsyncError(rank.comm, &async));
	check_eq_int(async, HCCL_E_REMOTE);
	job_leave(&rank);
}

static void body_receive(uint32_t index, HcclRootInfo *shared)
{
	body(index, shared, RECEIVE);
}

static void body_send(uint32_t index, HcclRootInfo *shared)
{
	body(index, shared, SEND_LARGE);
}

static void body_batch(uint32_t index, HcclRootInfo *shared)
{
	body(index, shared, BATCH);
}

static void body_barrier(uint32_t index, HcclRootInfo *shared)
{
	body(index, shared, BARRIER);
}

static void body_group(uint32_t index, HcclRootInfo *shared)
{
	body(index, shared, GROUP);
}

TEST(pending_receive)
{
	job_run_processes(4, body_receive);
}

TEST(pending_large_send)
{
	job_run_processes(4, body_send);
}

TEST(pending_batch_with_a_living_and_a_dead_peer)
{
	job_run_processes(4, body_batch);
}

TEST(pending_barrier)
{
	job_run_processes(4, body_barrier);
}

TEST(pending_group)
{
	job_run_processes(4, body_group);
}

/* Destroying is always possible, also with operations in flight that wait for the dead, before anybody has noticed. */
static void destroy_body(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank;

	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, 2, (int32_t)index);
	memory = job_memory(LARGE, 1);
	job_meet();
	if (index == 1) {
		job_expect_kill();
		kill(getpid(), SIGKILL);
	}
	check_ok(HcclRecv(memory, 1000, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
	check_ok(HcclBarrier(rank.comm, rank.stream));
	check_ok(HcclCommDestroy(rank.comm));
	check_ne_int(aclrtSynchronizeStream(rank.stream), 0);
	aclGetRecentErrMsg();
	check_ok(aclrtDestroyStream(rank.stream));
}

TEST(destroying_with_a_dead_peer)
{
	job_run_processes(2, destroy_body);
}

/* A rank dies while all suspend and resume the communicator over and over: the others hear of it, and nobody hangs. */
static void suspending_body(uint32_t index, HcclRootInfo *shared)
{
	uint32_t next = (index + 1) % 4, previous = (index + 3) % 4;
	HcclSendRecvItem items[] = { job_send(next, NULL, 50000), job_receive(previous, NULL, 50000) };
	HcclResult async = HCCL_SUCCESS;
	struct job_rank rank;
	bool was_told = false;

	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, 4, (int32_t)index);
	memory = job_memory(LARGE, (int)index + 1);
	items[0].buf = memory;
	items[1].buf = memory + 50000;
	job_meet();
	for (uint32_t i = 0; !was_told; i++) {
		int r;

		if (index == DEAD && i == 30 + test_seed() % 40) {
			job_expect_kill();
			kill(getpid(), SIGKILL);
		}
		check_lt_uint(i, 100000u);
		check_ok(HcclBatchSendRecv(items, 2, rank.comm, rank.stream));
		check_ok(HcclBarrier(rank.comm, rank.stream));
		usleep((index * 31 + i * 17) % 700);
		check_ok(HcclCommSuspend(rank.comm));
		r = aclrtSynchronizeStream(rank.stream);
		check_msg(r == 0 || r == 107023 || r == REMOTE, "rank %u: %d", index, r);
		aclGetRecentErrMsg();
		was_told = r == REMOTE;
		usleep((index * 13 + i * 7) % 300);
		check_ok(HcclCommResume(rank.comm));
		/* clean, unless it has died since HcclCommResume was called */
		check_ok(HcclGetCommAsyncError(rank.comm, &async));
		check_msg(async == HCCL_SUCCESS || (async == HCCL_E_REMOTE && !was_told), "rank %u: %d, told: %d", index, async, was_told);
		was_told |= async == HCCL_E_REMOTE;
		aclGetRecentErrMsg();
	}
	/* what is left of it is of no use any more, and says so */
	check_ok(HcclBarrier(rank.comm, rank.stream));
	fails(&rank);
	job_leave(&rank);
}

TEST(death_while_all_are_suspended_and_resumed)
{
	job_run_processes(4, suspending_body);
}

/* ---- after HcclCommResume ---- */

static struct {
	_Atomic bool next_dies;
} *flags;

static void check_told(HcclComm comm, const char *part)
{
	HcclResult async;

	for (async = HCCL_SUCCESS; async == HCCL_SUCCESS; usleep(1000))
		check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_E_REMOTE);
	check_str_contains(aclGetRecentErrMsg(), part);
	/* this text is left */
	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_E_REMOTE);
}

static void check_clean(HcclComm comm)
{
	HcclResult async;

	check_ok(HcclCommSuspend(comm));
	check_ok(HcclCommResume(comm));
	check_eq_ptr(aclGetRecentErrMsg(), NULL);
	for (int i = 0; i < 3; i++) {
		check_ok(HcclGetCommAsyncError(comm, &async));
		check_eq_int(async, HCCL_SUCCESS);
		check_eq_ptr(aclGetRecentErrMsg(), NULL);
	}
}

/* Ranks 1 and 2 die one after the other. */
static void resuming_body(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank;

	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, 3, (int32_t)index);
	job_meet();
	if (index != 0) {
		while (index == 2 && !atomic_load(&flags->next_dies))
			usleep(500);
		job_expect_kill();
		kill(getpid(), SIGKILL);
	}
	check_told(rank.comm, "rank 1, pid");
	check_clean(rank.comm);
	atomic_store(&flags->next_dies, true);
	check_told(rank.comm, "rank 2, pid");
	check_clean(rank.comm);
	job_leave(&rank);
}

TEST(after_a_resume_the_next_one_that_dies_is_named)
{
	flags = mmap(NULL, sizeof(*flags), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(flags != MAP_FAILED);
	job_run_processes(3, resuming_body);
}
