/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs in the manner of hccl_test (measures an operation with events) and of FlagCX (an adaptor that maps streams, events and host
 * functions of its own to those of acl): the calls they make, in the order they make them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/job.h"

#define RANKS 3
#define COUNT 20000u
#define WARM_UP 3
#define ITERATIONS 10

/* ---- hccl_test ---- */

struct measured {
	unsigned char *out, *in, *check;
	aclrtEvent start, end;
};

static void measured_start(struct job_rank *rank, struct measured *measured)
{
	size_t free, total;
	int32_t device;

	check_ok(aclrtGetDevice(&device));
	check_eq_int(device, rank->device);
	check_ptr(aclrtGetSocName());
	check_ok(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
	check_gt_uint(free, 2 * COUNT);
	check_ok(aclrtSetStreamFailureMode(rank->stream, ACL_STOP_ON_FAILURE));
	check_ok(aclrtCreateEvent(&measured->start));
	check_ok(aclrtCreateEventWithFlag(&measured->end, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
	check_ok(aclrtMalloc((void **)&measured->out, COUNT, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtMalloc((void **)&measured->in, COUNT, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtMallocHost((void **)&measured->check, COUNT));
}

static void measured_end(struct measured *measured)
{
	check_ok(aclrtFree(measured->out));
	check_ok(aclrtFree(measured->in));
	check_ok(aclrtFreeHost(measured->check));
	check_ok(aclrtDestroyEvent(measured->start));
	check_ok(aclrtDestroyEvent(measured->end));
}

static void operation(struct job_rank *rank, const struct measured *measured)
{
	uint32_t next = (rank->rank + 1) % rank->size, previous = (rank->rank + rank->size - 1) % rank->size;
	HcclSendRecvItem items[] = { job_send(next, measured->out, COUNT), job_receive(previous, measured->in, COUNT) };

	check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
}

static void measure(struct job_rank *rank)
{
	uint32_t previous = (rank->rank + rank->size - 1) % rank->size;
	struct measured measured;
	float ms;

	measured_start(rank, &measured);
	check_ok(aclrtMemset(measured.out, COUNT, (int)rank->rank + 1, COUNT));
	for (int i = 0; i < WARM_UP; i++)
		operation(rank, &measured);
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_ok(aclrtRecordEvent(measured.start, rank->stream));
	for (int i = 0; i < ITERATIONS; i++)
		operation(rank, &measured);
	check_ok(aclrtRecordEvent(measured.end, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_ok(aclrtEventElapsedTime(&ms, measured.start, measured.end));
	check(ms > 0 && ms < 60000);
	check_ok(aclrtMemcpy(measured.check, COUNT, measured.in, COUNT, ACL_MEMCPY_DEVICE_TO_HOST));
	for (uint32_t i = 0; i < COUNT; i += 499)
		check_eq_int(measured.check[i], (int)previous + 1);
	check_ok(aclrtResetEvent(measured.start, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	measured_end(&measured);
}

static void hccl_test(void)
{
	check_ok(aclInit(NULL));
	job_ranks(RANKS, RANKS, measure, NULL);
	check_ok(aclFinalize());
}

TEST_TIMEOUT(acl_program_measures_with_events, 60)
{
	job_run(hccl_test);
}

/* ---- FlagCX ---- */

struct adaptor {
	_Atomic uint32_t started, ended;
};

static void adaptor_call(void *arg)
{
	atomic_fetch_add((_Atomic uint32_t *)arg, 1);
}

static bool adaptor_event_is_done(aclrtEvent event)
{
	aclrtEventWaitStatus status;

	check_ok(aclrtQueryEventWaitStatus(event, &status));
	return status == ACL_EVENT_WAIT_STATUS_COMPLETE;
}

/* A group: copies on one stream, the operation on another, ordered by events; host functions tell of start and end. */
static void adapt(struct job_rank *rank)
{
	uint32_t next = (rank->rank + 1) % rank->size, previous = (rank->rank + rank->size - 1) % rank->size;
	struct adaptor adaptor = { 0 };
	aclrtEvent copied, received;
	aclrtStreamStatus status;
	unsigned char *out, *in, host[COUNT];
	aclrtStream copies;

	check_ok(aclrtCreateStream(&copies));
	check_ok(aclrtCreateEventWithFlag(&copied, ACL_EVENT_SYNC));
	check_ok(aclrtCreateEventWithFlag(&received, ACL_EVENT_SYNC));
	check_ok(aclrtMalloc((void **)&out, COUNT, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtMalloc((void **)&in, COUNT, ACL_MEM_MALLOC_HUGE_FIRST));
	for (int round = 1; round <= ITERATIONS; round++) {
		HcclSendRecvItem items[] = { job_send(next, out, COUNT), job_receive(previous, in, COUNT) };

		memset(host, round * 16 + (int)rank->rank, COUNT);
		if (round > 1)
			check_ok(aclrtStreamWaitEvent(copies, received));
		check_ok(aclrtMemsetAsync(in, COUNT, 0, COUNT, copies));
		check_ok(aclrtMemcpyAsync(out, COUNT, host, COUNT, ACL_MEMCPY_HOST_TO_DEVICE, copies));
		check_ok(aclrtRecordEvent(copied, copies));
		check_ok(aclrtStreamWaitEvent(rank->stream, copied));
		check_ok(aclrtLaunchCallback(adaptor_call, &adaptor.started, ACL_CALLBACK_NO_BLOCK, rank->stream));
		check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
		check_ok(aclrtLaunchCallback(adaptor_call, &adaptor.ended, ACL_CALLBACK_BLOCK, rank->stream));
		check_ok(aclrtRecordEvent(received, rank->stream));
		check_ok(aclrtStreamWaitEvent(copies, received));
		check_ok(aclrtMemcpyAsync(host, COUNT, in, COUNT, ACL_MEMCPY_DEVICE_TO_HOST, copies));
		while (!adaptor_event_is_done(received))
			usleep(100);
		check_eq_uint(adaptor.ended, (uint32_t)round);
		check_ok(aclrtSynchronizeEvent(received));
		check_ok(aclrtSynchronizeStream(copies));
		check_eq_int(host[0], (unsigned char)(round * 16 + (int)previous));
		check_eq_int(host[COUNT - 1], (unsigned char)(round * 16 + (int)previous));
	}
	check_ok(aclrtSynchronizeDevice());
	check_ok(aclrtStreamQuery(copies, &status));
	check_eq_int(status, ACL_STREAM_STATUS_COMPLETE);
	check_ok(aclrtDestroyEvent(copied));
	check_ok(aclrtDestroyEvent(received));
	check_ok(aclrtDestroyStream(copies));
	check_ok(aclrtFree(out));
	check_ok(aclrtFree(in));
	while (adaptor.started < ITERATIONS)
		usleep(100);
}

static void flagcx(void)
{
	check_ok(aclInit(NULL));
	job_ranks(RANKS, RANKS, adapt, NULL);
	check_ok(aclFinalize());
}

TEST_TIMEOUT(acl_program_orders_streams_with_events_and_callbacks, 60)
{
	job_run(flagcx);
}

/* ---- recovery, as torch_npu does it ---- */

static pthread_barrier_t all;

/* What a rank has queued ends with the device's work; after HcclCommResume the communicator, the streams and the events work. */
static void recover(struct job_rank *rank)
{
	uint32_t next = (rank->rank + 1) % rank->size, previous = (rank->rank + rank->size - 1) % rank->size;
	unsigned char *out = job_memory(COUNT, (int)rank->rank + 1), *in = job_memory(COUNT, 0);
	HcclSendRecvItem items[] = { job_send(next, out, COUNT), job_receive(previous, in, COUNT) };
	_Atomic uint32_t calls = 0;
	aclrtStream other;
	aclrtEvent event;
	int r;

	check_ok(aclrtCreateStream(&other));
	check_ok(aclrtCreateEvent(&event));
	for (int round = 0; round < 5; round++) {
		/* nobody sends, so nothing behind it ever comes */
		check_ok(HcclRecv(in, COUNT, HCCL_DATA_TYPE_INT8, previous, rank->comm, rank->stream));
		check_ok(aclrtLaunchHostFunc(rank->stream, adaptor_call, &calls));
		check_ok(aclrtRecordEvent(event, rank->stream));
		check_ok(aclrtStreamWaitEvent(other, event));
		if (round % 2)
			check_ok(HcclCommSuspend(rank->comm));
		check_ok(aclrtDeviceTaskAbort(rank->device, 10000));
		if (round % 2 == 0)
			check_ok(HcclCommSuspend(rank->comm));
		r = aclrtSynchronizeStream(rank->stream);
		check_msg(r == ACL_ERROR_RT_DEVICE_TASK_ABORT || r == ACL_ERROR_RT_STREAM_ABORT, "synchronize: %d", r);
		(void)aclrtSynchronizeStream(other);
		pthread_barrier_wait(&all);
		check_ok(HcclCommResume(rank->comm));
		pthread_barrier_wait(&all);
		(void)aclGetRecentErrMsg();
		check_ok(aclrtMemset(in, COUNT, 0, COUNT));
		check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
		check_ok(aclrtRecordEvent(event, rank->stream));
		check_ok(aclrtStreamWaitEvent(other, event));
		check_ok(aclrtSynchronizeStream(other));
		check_ok(aclrtSynchronizeStream(rank->stream));
		check_eq_int(in[COUNT - 1], (int)previous + 1);
	}
	check_lt_uint(calls, 6);
	check_ok(aclrtDestroyEvent(event));
	check_ok(aclrtDestroyStream(other));
}

static void recovery(void)
{
	check_eq_int(pthread_barrier_init(&all, NULL, RANKS), 0);
	job_ranks(RANKS, RANKS, recover, NULL);
}

TEST_TIMEOUT(acl_program_recovers_with_abort_and_resume, 60)
{
	job_run(recovery);
}
