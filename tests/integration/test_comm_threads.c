/* SPDX-License-Identifier: Apache-2.0 */
/* Threads on one communicator: handles that are destroyed under others, pairs that several want to make, streams that share pairs. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/job.h"

#define USERS 3

static _Atomic(HcclComm) current;
static _Atomic int finished;

static void *use_handles(void *data)
{
	unsigned char *memory = data;
	HcclSendRecvItem items[] = { job_send(0, memory, 8), job_receive(0, memory + 8, 8) };
	aclrtStream stream;
	uint32_t value;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	while (!atomic_load(&finished)) {
		HcclComm comm = atomic_load(&current);
		int r = HcclGetRankSize(comm, &value);

		check(r == HCCL_SUCCESS || r == HCCL_E_PARA);
		r = HcclBatchSendRecv(items, 2, comm, stream);
		check(r == HCCL_SUCCESS || r == HCCL_E_PARA);
		r = HcclBarrier(comm, stream);
		check(r == HCCL_SUCCESS || r == HCCL_E_PARA);
		/* a task whose communicator went before its turn is aborted */
		r = aclrtSynchronizeStreamWithTimeout(stream, 10000);
		check(r == 0 || r == ACL_ERROR_RT_DEVICE_TASK_ABORT);
	}
	check_ok(aclrtDestroyStream(stream));
	return NULL;
}

static void recycle(void)
{
	pthread_t threads[USERS];
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 200; i++) {
		comm = job_alone();
		atomic_store(&current, comm);
		for (int k = 0; i == 0 && k < USERS; k++)
			check_eq_int(pthread_create(&threads[k], NULL, use_handles, job_memory(16, 1)), 0);
		usleep(500);
		check_ok(HcclCommDestroy(comm));
	}
	atomic_store(&finished, 1);
	for (int k = 0; k < USERS; k++)
		pthread_join(threads[k], NULL);
}

TEST(destroyed_handles_under_use)
{
	job_run(recycle);
}

/* ---- several threads of one rank ---- */

struct worker {
	pthread_t id;
	struct job_rank rank;
	uint32_t index;
};

static void *exchange_thread(void *data)
{
	struct worker *worker = data;
	struct job_rank *rank = &worker->rank;
	uint32_t peers[2] = { (rank->rank + 1) % rank->size, (rank->rank + 2) % rank->size };
	unsigned char *memory;
	aclrtStream stream;

	check_ok(aclrtSetDevice(rank->device));
	check_ok(aclrtCreateStream(&stream));
	memory = job_memory(4000, (int)rank->rank + 1);
	for (int round = 0; round < 100; round++) {
		HcclSendRecvItem items[4];

		for (uint32_t i = 0; i < 2; i++) {
			items[2 * i] = job_receive(peers[i], memory + 1000 + 1000 * i, 1000);
			items[2 * i + 1] = job_send(peers[i], memory, 1000);
		}
		memset(memory + 1000, 0, 2000);
		check_ok(HcclBatchSendRecv(items, 4, rank->comm, stream));
		check_ok(aclrtSynchronizeStream(stream));
		for (uint32_t i = 0; i < 2; i++) {
			check_eq_uint(memory[1000 + 1000 * i], peers[i] + 1);
			check_eq_uint(memory[1999 + 1000 * i], peers[i] + 1);
		}
	}
	check_ok(aclrtDestroyStream(stream));
	return NULL;
}

static void workers_rank(struct job_rank *rank)
{
	struct worker workers[4];

	for (uint32_t i = 0; i < 4; i++) {
		workers[i] = (struct worker){ .rank = *rank, .index = i };
		check_eq_int(pthread_create(&workers[i].id, NULL, exchange_thread, &workers[i]), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		pthread_join(workers[i].id, NULL);
}

static void workers(void)
{
	job_ranks(3, 2, workers_rank, NULL);
}

/* All make their first use of the same pairs at the same time. */
TEST(threads_share_a_communicator)
{
	job_run(workers);
}

static void *post_thread(void *data)
{
	struct worker *worker = data;
	struct job_rank *rank = &worker->rank;
	unsigned char *memory = rank->data;

	check_ok(aclrtSetDevice(rank->device));
	for (uint32_t i = 0; i < 500; i++) {
		if (rank->rank)
			check_ok(HcclRecv(memory + 8 * (500 * worker->index + i), 8, HCCL_DATA_TYPE_INT8, 0, rank->comm, rank->stream));
		else
			check_ok(HcclSend(memory, 8, HCCL_DATA_TYPE_INT8, 1, rank->comm, rank->stream));
	}
	return NULL;
}

static void one_stream_rank(struct job_rank *rank)
{
	unsigned char *memory = job_memory(16000, rank->rank ? 0 : 9);
	struct worker posters[4];

	rank->data = memory;
	for (uint32_t i = 0; i < 4; i++) {
		posters[i] = (struct worker){ .rank = *rank, .index = i };
		check_eq_int(pthread_create(&posters[i].id, NULL, post_thread, &posters[i]), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		pthread_join(posters[i].id, NULL);
	check_ok(aclrtSynchronizeStream(rank->stream));
	for (uint32_t i = 0; rank->rank && i < 16000; i++)
		check_eq_uint(memory[i], 9u);
}

static void one_stream(void)
{
	job_ranks(2, 2, one_stream_rank, NULL);
}

TEST(threads_share_a_stream)
{
	job_run(one_stream);
}
