/* SPDX-License-Identifier: Apache-2.0 */
/* Errors in flight: mismatch, time-out, death, destruction; what each side is told. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void check_async(HcclComm comm, HcclResult expected)
{
	HcclResult async = HCCL_E_RESERVED;

	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, expected);
}

/* The stream ends with @result and a text that has all of the three parts. */
static void check_stream(struct job_rank *rank, int result, const char *a, const char *b, const char *c)
{
	int got = aclrtSynchronizeStreamWithTimeout(rank->stream, 10000 * (int)test_timeout_scale());
	const char *text = aclGetRecentErrMsg();

	check_msg(got == result, "the stream gives %d, expected %d: %s", got, result, text ? text : "(no text)");
	check_str_contains(text, a);
	check_str_contains(text, b);
	check_str_contains(text, c);
	/* told once */
	check_ok(aclrtSynchronizeStream(rank->stream));
}

/* ---- mismatch ---- */

static void mismatch_rank(struct job_rank *rank)
{
	void *memory = job_memory(40000, 0);

	if (rank->rank == 0) {
		check_ok(HcclSend(memory, 3000, HCCL_DATA_TYPE_FP32, 1, rank->comm, rank->stream));
		check_stream(rank, 107000, "EI0005", "rank 0 sends to rank 1", "12000 bytes (3000 x fp32), rank 1 has 20000 bytes (10000 x fp16)");
	} else {
		check_ok(HcclRecv(memory, 10000, HCCL_DATA_TYPE_FP16, 0, rank->comm, rank->stream));
		check_stream(rank, 107000, "EI0005", "rank 1 receives from rank 0", "20000 bytes (10000 x fp16), rank 0 has 12000 bytes (3000 x fp32)");
	}
	check_async(rank->comm, HCCL_E_PARA);
	/* the pair stays failed, at once, and says for what */
	if (rank->rank == 0) {
		check_ok(HcclSend(memory, 8, HCCL_DATA_TYPE_FP32, 1, rank->comm, rank->stream));
		check_stream(rank, 107000, "EI0005", "rank 0 cannot send to rank 1 since an earlier operation", "rank 0 had 12000 bytes (3000 x fp32)");
	} else {
		check_ok(HcclRecv(memory, 8, HCCL_DATA_TYPE_FP32, 0, rank->comm, rank->stream));
		check_stream(rank, 107000, "EI0005", "rank 1 cannot receive from rank 0 since an earlier operation", "rank 0 had 12000 bytes (3000 x fp32)");
	}
}

static void mismatch(void)
{
	job_ranks(2, 2, mismatch_rank, NULL);
}

TEST(mismatch_is_told_to_both)
{
	job_run(mismatch);
}

/* A send of up to 8 KiB is complete before anybody can know: the next call says it, once. */
static void early_rank(struct job_rank *rank)
{
	void *memory = job_memory(4096, 0);
	HcclResult async = HCCL_SUCCESS;

	if (rank->rank == 0) {
		check_ok(HcclSend(memory, 2, HCCL_DATA_TYPE_FP32, 1, rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		for (int i = 0; i < 5000 && async == HCCL_SUCCESS; i++) {
			usleep(1000);
			check_ok(HcclGetCommAsyncError(rank->comm, &async));
		}
		check_eq_int(async, HCCL_E_PARA);
		check_fails(HcclSend(memory, 2, HCCL_DATA_TYPE_FP32, 2, rank->comm, rank->stream), HCCL_E_PARA,
			    "rank 0 sends to rank 1: item 0 has 8 bytes (2 x fp32), rank 1 has 4 bytes (1 x fp32)");
		check_async(rank->comm, HCCL_E_PARA);
		/* other pairs are not touched */
		check_ok(HcclSend(memory, 2, HCCL_DATA_TYPE_FP32, 2, rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
	} else if (rank->rank == 1) {
		check_ok(HcclRecv(memory, 1, HCCL_DATA_TYPE_FP32, 0, rank->comm, rank->stream));
		check_stream(rank, 107000, "EI0005", "rank 1 receives from rank 0", "4 bytes (1 x fp32), rank 0 has 8 bytes (2 x fp32)");
	} else {
		check_ok(HcclRecv(memory, 2, HCCL_DATA_TYPE_FP32, 0, rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		check_async(rank->comm, HCCL_SUCCESS);
	}
}

static void early(void)
{
	job_ranks(3, 3, early_rank, NULL);
}

TEST(mismatch_of_a_completed_send_is_told_by_the_next_call)
{
	job_run(early);
}

/* ---- time-out ---- */

static void timeout_rank(struct job_rank *rank)
{
	void *memory = job_memory(10000, 0);
	_Atomic int *done = rank->data;
	uint64_t start = now_ms();

	if (rank->rank == 0) {
		check_ok(HcclSend(memory, 10000, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
		check_stream(rank, 507048, "EI0002", "rank 0 waited", "send to rank 1");
	} else if (rank->rank == 1) {
		check_ok(HcclRecv(memory, 1000, HCCL_DATA_TYPE_INT8, 2, rank->comm, rank->stream));
		check_stream(rank, 507048, "EI0002", "rank 1 waited", "receive from rank 2");
	} else {
		check_ok(HcclBarrier(rank->comm, rank->stream));
		check_stream(rank, 507048, "EI0002", "rank 2 waited", "HCCL_EXEC_TIMEOUT");
	}
	check_ge_uint(now_ms() - start, 950u);
	check_lt_uint(now_ms() - start, 4000u * test_timeout_scale());
	check_async(rank->comm, HCCL_E_TIMEOUT);
	/* whoever leaves first would be another reason */
	++*done;
	while (*done < 3)
		usleep(1000);
}

static void timeout(void)
{
	_Atomic int done = 0;

	job_ranks(3, 3, timeout_rank, &done);
}

TEST(lone_operations_time_out)
{
	job_run_with("HCCL_EXEC_TIMEOUT", "1", timeout);
}

static void patient_rank(struct job_rank *rank)
{
	void *memory = job_memory(4096, 0);
	HcclCommConfig config;
	HcclComm comm;

	HcclCommConfigInit(&config);
	config.hcclExecTimeOut = 0;
	check_ok(HcclCommInitRootInfoConfig(2, rank->data, rank->rank, &config, &comm));
	if (rank->rank)
		usleep(2500000);
	if (rank->rank == 0)
		check_ok(HcclSend(memory, 1000, HCCL_DATA_TYPE_INT8, 1, comm, rank->stream));
	else
		check_ok(HcclRecv(memory, 1000, HCCL_DATA_TYPE_INT8, 0, comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_ok(HcclCommDestroy(comm));
}

static void patient(void)
{
	HcclRootInfo root;

	check_ok(HcclGetRootInfo(&root));
	job_ranks(2, 2, patient_rank, &root);
}

TEST(config_time_out_0_is_never)
{
	job_run_with("HCCL_EXEC_TIMEOUT", "1", patient);
}

/* ---- death ---- */

static void death(uint32_t index, HcclRootInfo *root)
{
	const uint64_t bytes = 1 << 20;
	struct job_rank rank;
	unsigned char *memory;
	uint64_t start;

	if (index == 0)
		check_ok(HcclGetRootInfo(root));
	job_meet();
	rank = job_join(root, index, 4, (int32_t)index);
	memory = job_memory(3 * bytes, (int)index);
	check_ok(HcclBarrier(rank.comm, rank.stream));
	check_ok(aclrtSynchronizeStream(rank.stream));
	if (index == 1) {
		job_expect_kill();
		usleep(200000);
		raise(SIGKILL);
	}
	start = now_ms();
	if (index == 0)
		check_ok(HcclRecv(memory, bytes, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
	else
		check_ok(HcclSend(memory, bytes, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
	check_stream(&rank, 507057, "EI0009", "rank 1", "killed by signal 9");
	check_lt_uint(now_ms() - start, 2000u * test_timeout_scale());
	check_async(rank.comm, HCCL_E_REMOTE);
	/* later operations with the dead fail as well, a barrier too */
	check_ok(HcclBarrier(rank.comm, rank.stream));
	check_stream(&rank, 507057, "EI0009", "rank 1", "killed by signal 9");
	/* the living go on */
	if (index == 0)
		check_ok(HcclSend(memory, bytes, HCCL_DATA_TYPE_INT8, 2, rank.comm, rank.stream));
	else if (index == 2)
		check_ok(HcclRecv(memory + bytes, bytes, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
	check_ok(aclrtSynchronizeStream(rank.stream));
	check_eq_uint(memory[bytes], index == 2 ? 0 : index);
	job_leave(&rank);
}

TEST(peers_of_the_dead_learn_it)
{
	job_run_processes(4, death);
}

/* What was small and on its way when the sender died still arrives. */
static void legacy(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank;
	unsigned char *memory;

	if (index == 0)
		check_ok(HcclGetRootInfo(root));
	job_meet();
	rank = job_join(root, index, 2, 0);
	memory = job_memory(16, (int)index);
	if (index == 1) {
		check_ok(HcclSend(memory, 16, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
		check_ok(aclrtSynchronizeStream(rank.stream));
		job_expect_kill();
		job_meet();
		raise(SIGKILL);
	}
	job_meet();
	usleep(200000);
	check_ok(HcclRecv(memory, 16, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
	check_ok(aclrtSynchronizeStream(rank.stream));
	check_eq_uint(memory[15], 1u);
	job_leave(&rank);
}

TEST(completed_small_sends_outlive_their_sender)
{
	job_run_processes(2, legacy);
}

static void death_in_join(uint32_t index, HcclRootInfo *root)
{
	HcclComm comm = NULL;

	if (index == 0)
		check_ok(HcclGetRootInfo(root));
	job_meet();
	check_ok(aclrtSetDevice(0));
	if (index == 1) {
		job_expect_kill();
		alarm(0);
		signal(SIGALRM, SIG_DFL);
		if (fork() == 0) {
			usleep(300000);
			kill(getppid(), SIGKILL);
			_exit(0);
		}
	}
	check_ne_int(HcclCommInitRootInfo(3, root, index, &comm), 0);
	check_str_contains(aclGetRecentErrMsg(), "rank 1");
	check_null(comm);
}

TEST(death_before_all_have_joined)
{
	job_run_processes(2, death_in_join);
}

/* ---- destruction ---- */

static void *destroy_thread(void *data)
{
	usleep(200000);
	check_ok(HcclCommDestroy(data));
	return NULL;
}

/* Rank 0 destroys its communicator with a receive pending, from another thread, while it waits. */
static void destroy(uint32_t index, HcclRootInfo *root)
{
	struct job_rank rank;
	pthread_t thread;
	void *memory;

	if (index == 0)
		check_ok(HcclGetRootInfo(root));
	job_meet();
	rank = job_join(root, index, 2, 0);
	memory = job_memory(4096, 0);
	check_ok(HcclBarrier(rank.comm, rank.stream));
	check_ok(aclrtSynchronizeStream(rank.stream));
	if (index == 0) {
		check_ok(HcclRecv(memory, 4096, HCCL_DATA_TYPE_INT8, 1, rank.comm, rank.stream));
		check_eq_int(pthread_create(&thread, NULL, destroy_thread, rank.comm), 0);
		check_ne_int(aclrtSynchronizeStreamWithTimeout(rank.stream, 10000), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
		pthread_join(thread, NULL);
		check_fails(HcclBarrier(rank.comm, rank.stream), HCCL_E_PARA, "destroyed");
		check_ok(aclrtDestroyStream(rank.stream));
		job_meet();
		return;
	}
	job_meet();
	check_ok(HcclSend(memory, 4096, HCCL_DATA_TYPE_INT8, 0, rank.comm, rank.stream));
	check_stream(&rank, 507057, "EI0009", "send to rank 0", "has destroyed the communicator before this was received\n        Solution: rank 0's list lacks the receive");
	check_async(rank.comm, HCCL_E_REMOTE);
	job_leave(&rank);
}

TEST(destroy_with_pending_work)
{
	job_run_processes(2, destroy);
}
