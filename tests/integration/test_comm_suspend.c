/* SPDX-License-Identifier: Apache-2.0 */
/* HcclCommSuspend and HcclCommResume: what is in flight ends, later calls are refused, afterwards all works. HcclGetCommAsyncError. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/job.h"

#define SUSPENDED 107023
#define LARGE (8u << 20)

static pthread_barrier_t barrier;

static void meet(void)
{
	pthread_barrier_wait(&barrier);
}

static void run(uint32_t size, void (*body)(struct job_rank *rank))
{
	check_eq_int(pthread_barrier_init(&barrier, NULL, size), 0);
	job_ranks(size, size, body, NULL);
}

static int async_of(HcclComm comm)
{
	HcclResult async = HCCL_E_RESERVED;

	check_ok(HcclGetCommAsyncError(comm, &async));
	return async;
}

static void ring(struct job_rank *rank, uint32_t bytes, int value)
{
	uint32_t next = (rank->rank + 1) % rank->size, previous = (rank->rank + rank->size - 1) % rank->size;
	unsigned char *out = job_memory(bytes, value + (int)rank->rank), *in = job_memory(bytes, 0);
	HcclSendRecvItem items[] = { job_send(next, out, bytes), job_receive(previous, in, bytes) };

	check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
	check_ok(HcclBarrier(rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_eq_uint(in[0], (unsigned char)(value + (int)previous));
	check_eq_uint(in[bytes - 1], (unsigned char)(value + (int)previous));
	check_ok(aclrtFree(out));
	check_ok(aclrtFree(in));
}

/* Rank 0 waits for rank 1, is suspended, and resumed; rank 1 notices by what it has with rank 0. */
static void in_flight_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(4096, (int)rank->rank + 1);
	HcclCommStatus status;
	char name[COMM_NAME_MAX_LENGTH];

	check_ok(HcclGetCommName(rank->comm, name));
	if (rank->rank == 0) {
		check_ok(HcclRecv(memory, 4096, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
		check_ok(HcclRecv(memory, 8, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
		usleep(20000);
		check_ok(HcclCommSuspend(rank->comm));
		check_ok(HcclCommSuspend(rank->comm));
		check_fails(aclrtSynchronizeStream(rank->stream), SUSPENDED, "HcclCommResume makes the communicator usable again");
		check_eq_int(async_of(rank->comm), HCCL_E_SUSPENDING);
		check_ok(HcclCommGetStatus(name, &status));
		check_eq_int(status, HCCL_COMM_STATUS_SUSPENDING);
		check_fails(HcclSend(memory, 8, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream), HCCL_E_SUSPENDING, "is suspended");
		check_fails(HcclRecv(memory, 8, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream), HCCL_E_SUSPENDING, "is suspended");
		check_fails(HcclBarrier(rank->comm, rank->stream), HCCL_E_SUSPENDING, "is suspended");
	}
	meet();
	if (rank->rank == 1) {
		/* never suspended: its operations with rank 0 fail as long as that is */
		check_ok(HcclSend(memory, 4096, HCCL_DATA_TYPE_INT8, 0, rank->comm, rank->stream));
		check_fails(aclrtSynchronizeStream(rank->stream), SUSPENDED, "HcclCommSuspend was called at one of them");
		check_ok(HcclBarrier(rank->comm, rank->stream));
		check_fails(aclrtSynchronizeStream(rank->stream), SUSPENDED, "leave a barrier");
		check_eq_int(async_of(rank->comm), HCCL_SUCCESS);
	}
	meet();
	if (rank->rank == 0) {
		check_ok(HcclCommResume(rank->comm));
		check_ok(HcclCommResume(rank->comm));
		check_ok(HcclCommGetStatus(name, &status));
		check_eq_int(status, HCCL_COMM_STATUS_READY);
	}
	meet();
	check_eq_int(async_of(rank->comm), HCCL_SUCCESS);
	for (int i = 0; i < 10; i++)
		ring(rank, 1000, i);
}

static void in_flight(void)
{
	run(2, in_flight_rank);
}

TEST(operations_in_flight_end_and_later_ones_are_refused)
{
	job_run(in_flight);
}

/* Every rank is suspended and resumed at a time of its own, and goes on at once: it waits for those that are not back yet. */
static void any_order_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(LARGE, 1);

	for (int round = 0; round < 12; round++) {
		uint32_t peer = (rank->rank + 1 + (uint32_t)round) % rank->size;
		int r;

		/* something that cannot end, something that is under way, and something that is queued */
		if (peer != rank->rank) {
			check_ok(HcclRecv(memory, LARGE / 2, HCCL_DATA_TYPE_INT8, peer, rank->comm, rank->stream));
			check_ok(HcclSend(memory, 1000, HCCL_DATA_TYPE_INT8, peer, rank->comm, rank->stream));
		}
		check_ok(HcclBarrier(rank->comm, rank->stream));
		meet();
		usleep((rank->rank * 7919u + (uint32_t)round * 104729u) % 3000);
		check_ok(HcclCommSuspend(rank->comm));
		meet();	/* all are suspended, as HCCL wants it */
		r = aclrtSynchronizeStream(rank->stream);
		check_msg(r == SUSPENDED || r == 0, "rank %u, round %d: %d", rank->rank, round, r);
		aclGetRecentErrMsg();
		usleep((rank->rank * 15485863u + (uint32_t)round * 32452843u) % 3000);
		check_ok(HcclCommResume(rank->comm));
		ring(rank, 5000, round);
		ring(rank, 8, round);
	}
}

static void any_order(void)
{
	run(5, any_order_rank);
}

TEST(ranks_are_resumed_in_any_order)
{
	job_run(any_order);
}

/* Large copies in both directions while a rank is suspended; the others have nothing to do with it. */
static void large_rank(struct job_rank *rank)
{
	unsigned char *out = job_memory(LARGE, (int)rank->rank + 1), *in = job_memory(LARGE, 0);
	uint32_t peer = rank->rank ^ 1;
	HcclSendRecvItem items[] = { job_send(peer, out, LARGE), job_receive(peer, in, LARGE) };
	int suspended = 0, done = 0;

	for (int round = 0; round < 10; round++) {
		int r;

		meet();
		for (int i = 0; i < 4; i++)
			check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
		if (rank->rank == 0) {
			usleep((uint32_t)round * 400);
			check_ok(HcclCommSuspend(rank->comm));
		}
		r = aclrtSynchronizeStream(rank->stream);
		check_msg(r == 0 || (r == SUSPENDED && rank->rank < 2), "rank %u: %d", rank->rank, r);
		suspended += r != 0;
		done += r == 0;
		aclGetRecentErrMsg();
		if (rank->rank >= 2)
			check_eq_uint(in[LARGE - 1], peer + 1);
		meet();
		if (rank->rank == 0)
			check_ok(HcclCommResume(rank->comm));
		meet();
		/* at once again, and right */
		memset(in, 0, LARGE);
		check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		check_eq_uint(in[0], peer + 1);
		check_eq_uint(in[LARGE - 1], peer + 1);
	}
	check_eq_int(suspended + done, 10);
}

static void large(void)
{
	run(4, large_rank);
}

TEST(large_copies_are_cut_off)
{
	job_run(large);
}

/* A pair that has failed stays failed; after a recovery of both ends it is usable. */
static void failed_pair_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(30000, 3);

	if (rank->rank == 0) {
		check_ok(HcclRecv(memory, 20000, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
		check_fails(aclrtSynchronizeStream(rank->stream), 107000, "both ends must name the same number of bytes");
		check_eq_int(async_of(rank->comm), HCCL_E_PARA);
	} else {
		check_ok(HcclSend(memory, 10000, HCCL_DATA_TYPE_INT8, 0, rank->comm, rank->stream));
		check_fails(aclrtSynchronizeStream(rank->stream), 107000, "both ends must name the same number of bytes");
	}
	meet();
	check_ok(HcclCommSuspend(rank->comm));
	check_eq_int(async_of(rank->comm), HCCL_E_SUSPENDING);
	/* who is resumed before the other is suspended has not been through it */
	meet();
	check_ok(HcclCommResume(rank->comm));
	check_eq_int(async_of(rank->comm), HCCL_SUCCESS);
	ring(rank, 1000, 5);
}

static void failed_pair(void)
{
	run(2, failed_pair_rank);
}

TEST(a_failed_pair_recovers)
{
	job_run(failed_pair);
}

/* A rank that leaves while others wait for it to be resumed; suspending what is gone. */
static void leave_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(4096, 3);

	check_fails(HcclCommSuspend(NULL), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclCommResume(NULL), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclCommSuspend((HcclComm)3), HCCL_E_PARA, "no communicator of this process");
	check_ok(HcclCommSuspend(rank->comm));
	meet();
	if (rank->rank == 0) {
		check_ok(HcclCommResume(rank->comm));
		/* held until rank 1 is back, which it never is */
		check_ok(HcclRecv(memory, 4096, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
		check_ok(HcclBarrier(rank->comm, rank->stream));
		usleep(50000);
		check_eq_int(aclrtSynchronizeStreamWithTimeout(rank->stream, 50), 507046);
		aclGetRecentErrMsg();
		meet();
		check_fails(aclrtSynchronizeStream(rank->stream), 507057, "has destroyed the communicator");
		check_eq_int(async_of(rank->comm), HCCL_E_REMOTE);
	} else {
		meet();
		check_ok(HcclCommDestroy(rank->comm));
		rank->comm = NULL;
	}
}

static void leaving(void)
{
	run(2, leave_rank);
}

TEST(a_suspended_rank_leaves)
{
	job_run(leaving);
}

/* What waits for a suspended peer to come back has its time-out, too. */
static void held_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(4096, 3);

	check_ok(HcclCommSuspend(rank->comm));
	meet();
	if (rank->rank == 0) {
		check_ok(HcclCommResume(rank->comm));
		check_ok(HcclSend(memory, 4096, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
		check_fails(aclrtSynchronizeStream(rank->stream), 507048, "EI0002");
		check_ok(HcclBarrier(rank->comm, rank->stream));
		check_fails(aclrtSynchronizeStream(rank->stream), 507048, "it has not entered");
		check_eq_int(async_of(rank->comm), HCCL_E_TIMEOUT);
	}
	meet();
	/* and all is well again after the next recovery; what is sent to a rank before it is suspended would end with that */
	check_ok(HcclCommSuspend(rank->comm));
	meet();
	check_ok(HcclCommResume(rank->comm));
	ring(rank, 3000, 7);
}

static void held(void)
{
	run(2, held_rank);
}

TEST(waiting_for_a_suspended_peer_times_out)
{
	job_run_with("HCCL_EXEC_TIMEOUT", "1", held);
}

/* As frameworks recover from a fault: tasks of the device are aborted, then the communicator is suspended and resumed. */
static void recover_rank(struct job_rank *rank)
{
	uint32_t next = (rank->rank + 1) % rank->size, previous = (rank->rank + rank->size - 1) % rank->size;
	unsigned char *memory = job_memory(LARGE, 1);
	HcclSendRecvItem large[] = { job_send(next, memory, LARGE / 2), job_receive(previous, memory + LARGE / 2, LARGE / 2) };

	for (int round = 0; round < 5; round++) {
		int r;

		check_ok(HcclBatchSendRecv(large, 2, rank->comm, rank->stream));
		check_ok(HcclRecv(memory, 1000, HCCL_DATA_TYPE_INT8, next, rank->comm, rank->stream));
		check_ok(HcclBarrier(rank->comm, rank->stream));
		usleep((rank->rank * 7919u) % 2000);
		check_ok(aclrtDeviceTaskAbort(rank->device, 10000));
		check_ok(HcclCommSuspend(rank->comm));
		r = aclrtSynchronizeStream(rank->stream);
		check_msg(r == 0 || r == SUSPENDED || r == 107022 || r == 507057, "rank %u: %d", rank->rank, r);
		aclGetRecentErrMsg();
		meet();
		check_ok(HcclCommResume(rank->comm));
		ring(rank, 1000, round);
		ring(rank, 500000, round);
		check_eq_int(async_of(rank->comm), HCCL_SUCCESS);
		meet();
	}
}

static void recover(void)
{
	run(4, recover_rank);
}

TEST(recovery_after_the_tasks_of_the_device_were_aborted)
{
	job_run(recover);
}
