/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator of tasks: every rank adds its numbers to those of all others (an all-reduce), on a thread, by primitives of channels.
 *
 * A notify is binary: one that is recorded twice before anybody waits for it is recorded once. So each is recorded again only after
 * an answer: READY of a turn comes after the peer has had all of the turn before, DONE after READY.
 *
 *   cc notifies.c -o notifies -I$ASCEND_HOME_PATH/include -L$ASCEND_HOME_PATH/lib64 -Wl,--no-as-needed -lhccl -lascendcl -lhcomm
 *   hcclctl run -n 4 -- ./notifies $(mktemp -u)
 */
#include "example.h"
#include "hcomm/hcomm_primitives.h"

#define COUNT 1000
#define BYTES (COUNT * sizeof(int32_t))

enum { READY, DONE, NOTIFIES }; /* of a channel: the sums may be written; the peer's numbers are in */

/* The first half of an area is for sums, the second has the own numbers. */
static void all_reduce(struct job *job, ThreadHandle thread)
{
	int32_t *sums = job->areas[job->rank], *numbers = sums + COUNT;

	/* the thread does one after the other: the sums are set before a peer is told */
	TRY(HcommLocalCopyOnThread(thread, sums, numbers, BYTES));
	for (uint32_t peer = 0; peer < job->size; peer++)
		if (peer != job->rank)
			TRY(HcommChannelNotifyRecordOnThread(thread, job->channels[peer], READY));
	for (uint32_t peer = 0; peer < job->size; peer++) {
		if (peer == job->rank)
			continue;
		TRY(HcommChannelNotifyWaitOnThread(thread, job->channels[peer], READY, SECONDS_MAX));
		TRY(HcommWriteReduceWithNotifyOnThread(thread, job->channels[peer], job->areas[peer], numbers, COUNT, HCOMM_DATA_TYPE_INT32,
						       HCOMM_REDUCE_SUM, DONE));
	}
	for (uint32_t peer = 0; peer < job->size; peer++)
		if (peer != job->rank)
			TRY(HcommChannelNotifyWaitOnThread(thread, job->channels[peer], DONE, SECONDS_MAX));
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	ThreadHandle thread;
	aclrtStream stream;
	int32_t numbers[COUNT], sums[COUNT];
	int wrong = 0;

	TRY(argc != 2);
	job_begin(&job, argv[1]);
	job_connect(&job, COMM_ENGINE_CPU, 2 * BYTES, NOTIFIES);
	TRY(HcclThreadAcquire(job.comm, COMM_ENGINE_CPU, 1, 0, &thread));
	TRY(HcclThreadResGetInfo(job.comm, thread, THREAD_RES_TYPE_STREAM, sizeof(stream), (void **)&stream));
	for (int i = 0; i < COUNT; i++)
		numbers[i] = i + (int)job.rank;
	TRY(aclrtMemcpy((char *)job.areas[job.rank] + BYTES, BYTES, numbers, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
	for (int turn = 0; turn < 3; turn++)
		all_reduce(&job, thread);
	TRY(aclrtSynchronizeStream(stream));
	TRY(aclrtMemcpy(sums, BYTES, job.areas[job.rank], BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
	for (int i = 0; i < COUNT; i++)
		wrong += sums[i] != (int)job.size * i + (int)(job.size * (job.size - 1) / 2);
	printf("rank %u of %u: the last sum is %d\n", job.rank, job.size, sums[COUNT - 1]);
	job_end(&job);
	return wrong != 0;
}
