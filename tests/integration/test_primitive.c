/* SPDX-License-Identifier: Apache-2.0 */
/* Primitives of the data plane without channels: copies, reductions, notifies of threads, defaults, locks. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "hccl/hccl_res.h"
#include "hcomm/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "tests/support/job.h"
#include "tests/support/thread.h"

#define SIZE ((uint64_t)3 << 20)

static ThreadHandle thread_new(uint32_t notifies)
{
	ThreadHandle thread;

	check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 1, &notifies, &thread));
	return thread;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- copies ---- */

static void copies(void)
{
	static const uint64_t sizes[] = { 1, 7, 40, 4096, 32768, 32769, 300000, SIZE };
	unsigned char *from, *to, *host, *pattern, plain[16] = { 0 };
	ThreadHandle thread;

	check_ok(aclrtSetDevice(0));
	thread = thread_new(0);
	from = job_memory(SIZE, 0);
	to = job_memory(SIZE, 0);
	check_ok(aclrtMallocHost((void **)&host, SIZE));
	pattern = malloc(SIZE);
	check_ptr(pattern);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint64_t b = 0; b < sizes[i]; b++)
			pattern[b] = (unsigned char)(b * 7 + b / 251 + i);
		check_ok(aclrtMemcpy(from, SIZE, pattern, sizes[i], ACL_MEMCPY_HOST_TO_DEVICE));
		check_ok(HcommLocalCopyOnThread(thread, host, from, sizes[i]));
		check_ok(HcommLocalCopyOnThread(thread, to, host, sizes[i]));
		thread_finish(thread);
		check_eq_mem(to, pattern, sizes[i]);
	}
	check_fails(HcommLocalCopyOnThread(0, to, from, 8), HCCL_E_PTR, "thread");
	check_fails(HcommLocalCopyOnThread(thread, NULL, from, 8), HCCL_E_PTR, "dst");
	check_fails(HcommLocalCopyOnThread(thread, to, NULL, 8), HCCL_E_PTR, "src");
	check_fails(HcommLocalCopyOnThread(thread, to, NULL, 0), HCCL_E_PTR, "src");
	check_fails(HcommLocalCopyOnThread(thread + 1, to, from, 8), HCCL_E_PARA, "no thread");
	check_fails(HcommLocalCopyOnThread(thread, plain, from, 8), HCCL_E_PARA, "dst is");
	check_fails(HcommLocalCopyOnThread(thread, to, plain, 8), HCCL_E_PARA, "src is");
	check_fails(HcommLocalCopyOnThread(thread, to + SIZE - 8, from, 8192), HCCL_E_PARA, "ends after");
	check_fails(HcommLocalCopyOnThread(thread, to, from + SIZE - 8, 8192), HCCL_E_PARA, "ends after");
	check_fails(HcommLocalCopyOnThread(thread, to, from, UINT64_MAX), HCCL_E_PARA, NULL);
	check_fails(HcommLocalCopyOnThread(thread, to + 4, to, 8), HCCL_E_PARA, "overlap");
	check_fails(HcommLocalCopyOnThread(thread, to, to + 7, 8), HCCL_E_PARA, "overlap");
	/* nothing to be done */
	check_ok(HcommLocalCopyOnThread(thread, plain, from, 0));
	check_ok(HcommLocalCopyOnThread(thread, to, to, 8));
	check_ok(HcommFenceOnThread(thread));
	check_fails(HcommFenceOnThread(0), HCCL_E_PTR, "thread");
	check_fails(HcommFenceOnThread(1), HCCL_E_PARA, "no thread");
	thread_finish(thread);
	check_eq_mem(to, pattern, SIZE);
	check_ok(HcommThreadFree(&thread, 1));
}

TEST(local_copies)
{
	job_run(copies);
}

/* ---- reductions ---- */

static void reductions(void)
{
	int32_t *a, *b;
	float *c, *d;
	int8_t *e;
	ThreadHandle thread;

	check_ok(aclrtSetDevice(0));
	thread = thread_new(0);
	a = job_memory(SIZE, 0);
	b = job_memory(SIZE, 0);
	c = job_memory(SIZE, 0);
	d = job_memory(SIZE, 0);
	e = job_memory(64, 100);
	for (uint32_t i = 0; i < SIZE / 4; i++) {
		a[i] = (int32_t)i;
		b[i] = 1000 - (int32_t)i;
		c[i] = (float)i;
		d[i] = 0.5f;
	}
	check_ok(HcommLocalReduceOnThread(thread, a, b, SIZE / 4, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM));
	check_ok(HcommLocalReduceOnThread(thread, c, d, SIZE / 4, HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_SUM));
	check_ok(HcommLocalReduceOnThread(thread, b, a, 500, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_MIN));
	check_ok(HcommLocalReduceOnThread(thread, b + 500, a + 500, 501, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_MAX));
	check_ok(HcommLocalReduceOnThread(thread, e, e + 32, 1, HCOMM_DATA_TYPE_INT8, HCOMM_REDUCE_MAX));
	thread_finish(thread);
	for (uint32_t i = 0; i < SIZE / 4; i++) {
		check_eq_int(a[i], 1000);
		check_msg(c[i] == (float)i + 0.5f, "element %u is %f", i, (double)c[i]);
		check_eq_int(b[i], i < 500 ? (1000 - (int32_t)i < 1000 ? 1000 - (int32_t)i : 1000)
				   : i < 1001 ? 1000 : 1000 - (int32_t)i);
	}
	check_fails(HcommLocalReduceOnThread(0, a, b, 1, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PTR, "thread");
	check_fails(HcommLocalReduceOnThread(thread, NULL, b, 1, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PTR, "dst");
	check_fails(HcommLocalReduceOnThread(thread, a, NULL, 1, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PTR, "src");
	check_fails(HcommLocalReduceOnThread(7, a, b, 1, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA, "no thread");
	for (int type = 0; type < 20; type++) {
		bool good = type == HCOMM_DATA_TYPE_INT8 || type == HCOMM_DATA_TYPE_INT16 || type == HCOMM_DATA_TYPE_INT32 ||
			    type == HCOMM_DATA_TYPE_FP16 || type == HCOMM_DATA_TYPE_FP32 || type == HCOMM_DATA_TYPE_BFP16;

		if (good)
			check_ok(HcommLocalReduceOnThread(thread, a, b, 8, (HcommDataType)type, HCOMM_REDUCE_SUM));
		else
			check_fails(HcommLocalReduceOnThread(thread, a, b, 8, (HcommDataType)type, HCOMM_REDUCE_SUM), HCCL_E_PARA,
				    "dataType is");
	}
	check_fails(HcommLocalReduceOnThread(thread, a, b, 8, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_PROD), HCCL_E_PARA, "reduceOp is 1");
	check_fails(HcommLocalReduceOnThread(thread, a, b, 8, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_RESERVED), HCCL_E_PARA, "reduceOp");
	check_fails(HcommLocalReduceOnThread(thread, a, b, SIZE / 4 + 4096, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA, "ends after");
	check_fails(HcommLocalReduceOnThread(thread, a, b, UINT64_MAX, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA, "count");
	check_fails(HcommLocalReduceOnThread(thread, a, &thread, 1, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA,
		    "HcommLocalReduceOnThread: src is");
	check_fails(HcommLocalReduceOnThread(thread, (char *)a + 1, b, 1, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA, "multiple of 4");
	check_fails(HcommLocalReduceOnThread(thread, a + 1, a, 8, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA, "overlap");
	check_ok(HcommLocalReduceOnThread(thread, a, b, 0, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM));
	thread_finish(thread);
}

TEST(local_reductions)
{
	job_run(reductions);
}

/* ---- notifies of threads ---- */

static void notifies(void)
{
	ThreadHandle a, b, on_other_device;
	unsigned char *memory;

	check_ok(aclrtSetDevice(1));
	on_other_device = thread_new(1);
	check_ok(aclrtSetDevice(0));
	memory = job_memory(64, 1);
	a = thread_new(3);
	b = thread_new(2);
	/* a copy that comes after another thread's */
	check_ok(HcommThreadNotifyWaitOnThread(b, 1, 0));
	check_ok(HcommLocalCopyOnThread(b, memory + 16, memory, 8));
	check_eq_int(memory[16], 1);
	check_ok(HcommThreadNotifyWaitOnThread(a, 2, UINT32_MAX));
	check_ok(aclrtMemsetAsync(memory, 64, 9, 8, thread_stream(a)));
	check_ok(HcommThreadNotifyRecordOnThread(a, b, 1));
	check_eq_int(aclrtSynchronizeStreamWithTimeout(thread_stream(b), 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	check_ok(HcommThreadNotifyRecordOnThread(on_other_device, a, 2));
	thread_finish(b);
	check_eq_int(memory[16], 9);
	/* it is 0 again: a second wait needs a second record */
	check_ok(HcommThreadNotifyWaitOnThread(a, 2, 1));
	check_fails(aclrtSynchronizeStream(thread_stream(a)), 507048, "EI0002");
	/* records do not add up */
	for (int i = 0; i < 5; i++)
		check_ok(HcommThreadNotifyRecordOnThread(b, a, 0));
	check_ok(HcommThreadNotifyRecordOnThread(b, on_other_device, 0));
	/* all of them before the first wait, which takes what has come by then */
	thread_finish(b);
	check_ok(HcommThreadNotifyWaitOnThread(a, 0, 5));
	thread_finish(a);
	check_ok(HcommThreadNotifyWaitOnThread(on_other_device, 0, 5));
	thread_finish(on_other_device);
	check_ok(HcommThreadNotifyWaitOnThread(a, 0, 1));
	check_eq_int(aclrtSynchronizeStream(thread_stream(a)), 507048);
	check_fails(HcommThreadNotifyRecordOnThread(0, a, 0), HCCL_E_PTR, "thread");
	check_fails(HcommThreadNotifyRecordOnThread(a, 0, 0), HCCL_E_PTR, "dstThread");
	check_fails(HcommThreadNotifyRecordOnThread(a, b, 2), HCCL_E_PTR, "index is 2");
	check_fails(HcommThreadNotifyRecordOnThread(a, b, UINT32_MAX), HCCL_E_PTR, "notify index");
	check_fails(HcommThreadNotifyRecordOnThread(5, b, 0), HCCL_E_PARA, "no thread");
	check_fails(HcommThreadNotifyRecordOnThread(a, 5, 0), HCCL_E_PARA, "no thread");
	check_fails(HcommThreadNotifyWaitOnThread(0, 0, 1), HCCL_E_PTR, "thread");
	check_fails(HcommThreadNotifyWaitOnThread(a, 3, 1), HCCL_E_PTR, "3 notifies");
	check_fails(HcommThreadNotifyWaitOnThread(5, 0, 1), HCCL_E_PARA, "no thread");
	check_fails(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(0, 0), HCCL_E_PTR, "thread");
	check_fails(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(5, 0), HCCL_E_PARA, "no thread");
	check_fails(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(a, 3), HCCL_E_PTR, "3 notifies");
}

TEST(notifies_of_threads)
{
	job_run(notifies);
}

/* ---- notifies by their ids ---- */

static void ids(void)
{
	aclrtNotify own, on_other_device;
	aclrtCntNotify counting;
	uint32_t id, other_id, counting_id;
	ThreadHandle a, b;
	aclrtStream stream;

	check_ok(aclrtSetDevice(1));
	/* ids are numbers of a device: one that device 0 does not have */
	for (int i = 0; i < 9; i++)
		check_ok(aclrtCreateNotify(&on_other_device, 0));
	check_ok(aclrtGetNotifyId(on_other_device, &other_id));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateNotify(&own, 0));
	check_ok(aclrtGetNotifyId(own, &id));
	check_ok(aclrtCntNotifyCreate(&counting, 0));
	check_ok(aclrtCntNotifyGetId(counting, &counting_id));
	check_ok(aclrtCreateStream(&stream));
	a = thread_new(1);
	b = thread_new(0);
	check_ok(HcommAclrtNotifyWaitOnThread(a, id, 10));
	check_ok(HcommThreadNotifyRecordOnThread(a, a, 0));
	check_eq_int(aclrtSynchronizeStreamWithTimeout(thread_stream(a), 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	check_ok(HcommAclrtNotifyRecordOnThread(b, id));
	thread_finish(a);
	/* and with what acl does with it */
	check_ok(HcommAclrtNotifyRecordOnThread(b, id));
	check_ok(aclrtWaitAndResetNotify(own, stream, 10));
	check_ok(aclrtSynchronizeStream(stream));
	check_ok(aclrtRecordNotify(own, stream));
	check_ok(HcommAclrtNotifyWaitOnThread(b, id, 10));
	thread_finish(b);
	check_ok(HcommAclrtNotifyWaitOnThread(a, id, 1));
	check_fails(aclrtSynchronizeStream(thread_stream(a)), 507048, "EI0002");
	check_fails(HcommAclrtNotifyRecordOnThread(0, id), HCCL_E_PTR, "thread");
	check_fails(HcommAclrtNotifyRecordOnThread(9, id), HCCL_E_PARA, "no thread");
	check_fails(HcommAclrtNotifyRecordOnThread(a, 60000), HCCL_E_PARA, "no notify 60000");
	check_fails(HcommAclrtNotifyRecordOnThread(a, UINT64_MAX), HCCL_E_PARA, "no notify");
	check_fails(HcommAclrtNotifyRecordOnThread(a, other_id), HCCL_E_PARA, "on device 0");
	check_fails(HcommAclrtNotifyRecordOnThread(a, counting_id), HCCL_E_PARA, "no notify");
	check_fails(HcommAclrtNotifyWaitOnThread(0, id, 1), HCCL_E_PTR, "thread");
	check_fails(HcommAclrtNotifyWaitOnThread(9, id, 1), HCCL_E_PARA, "no thread");
	check_fails(HcommAclrtNotifyWaitOnThread(a, UINT32_MAX, 1), HCCL_E_PARA, "no notify");
	check_ok(aclrtDestroyNotify(own));
	check_fails(HcommAclrtNotifyWaitOnThread(a, id, 1), HCCL_E_PARA, "no notify");
	check_fails(HcommAclrtNotifyRecordOnThread(a, id), HCCL_E_PARA, "no notify");
}

TEST(notifies_of_acl_by_their_ids)
{
	job_run(ids);
}

/* ---- time-outs ---- */

static void timeouts(void)
{
	ThreadHandle thread, dedicated, wrapped;
	HcclResult async = HCCL_SUCCESS;
	aclrtNotify notify;
	aclrtStream stream;
	HcclComm comm;
	const char *text;
	char name[COMM_NAME_MAX_LENGTH];
	double start;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	check_ok(HcclGetCommName(comm, name));
	check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 2, &thread));
	check_ok(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 1, &dedicated));
	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_SUCCESS);
	start = now();
	check_ok(HcommThreadNotifyWaitOnThread(thread, 1, 1));
	check_eq_int(aclrtSynchronizeStreamWithTimeout(thread_stream(thread), 20000), 507048);
	check_msg(now() - start >= 0.99 && now() - start < 5, "it took %f s", now() - start);
	/* who, what, for how long */
	text = aclGetRecentErrMsg();
	check_str_contains(text, "EI0002");
	check_str_contains(text, "stream ");
	check_str_contains(text, "notify 1 of a thread");
	check_str_contains(text, name);
	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_E_TIMEOUT);
	/* the others work; what was wrong is over when the program says so */
	check_ok(HcommThreadNotifyRecordOnThread(thread, dedicated, 0));
	check_ok(HcommThreadNotifyWaitOnThread(dedicated, 0, 5));
	thread_finish(dedicated);
	check_ok(HcclCommSuspend(comm));
	check_ok(HcclCommResume(comm));
	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_SUCCESS);
	/* on a stream of the program: what is its own is not the communicator's */
	check_ok(aclrtCreateNotify(&notify, 0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, &wrapped));
	check_ok(aclrtWaitAndResetNotify(notify, stream, 1));
	check_eq_int(aclrtSynchronizeStream(stream), 507048);
	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_SUCCESS);
	check_ok(HcommThreadNotifyWaitOnThread(wrapped, 0, 1));
	check_eq_int(aclrtSynchronizeStream(stream), 507048);
	check_ok(HcclGetCommAsyncError(comm, &async));
	check_eq_int(async, HCCL_E_TIMEOUT);
	check_ok(HcclCommDestroy(comm));
}

/* Of all waits that say nothing else. */
static void defaults(void)
{
	ThreadHandle thread, other;
	double start;

	check_ok(aclrtSetDevice(0));
	thread = thread_new(1);
	other = thread_new(0);
	check_fails(HcommSetNotifyWaitTimeOut(-1), HCCL_E_PARA, "-1");
	check_fails(HcommSetNotifyWaitTimeOut(NAN), HCCL_E_PARA, "nan");
	check_fails(HcommSetNotifyWaitTimeOut(INFINITY), HCCL_E_PARA, "inf");
	check_fails(HcommSetNotifyWaitTimeOut(4294967296.0f), HCCL_E_PARA, "timeOut");
	check_fails(HcommSetNotifyWaitTimeOut(0.5f), HCCL_E_PARA, "whole seconds");
	check_ok(HcommSetNotifyWaitTimeOut(4294967040.0f));
	check_ok(HcommSetNotifyWaitTimeOut(1));
	start = now();
	check_ok(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(thread, 0));
	check_fails(aclrtSynchronizeStreamWithTimeout(thread_stream(thread), 20000), 507048, "EI0002");
	check_msg(now() - start >= 0.99 && now() - start < 5, "it took %f s", now() - start);
	check_ok(HcommSetNotifyWaitTimeOut(0));
	check_ok(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(thread, 0));
	check_eq_int(aclrtSynchronizeStreamWithTimeout(thread_stream(thread), 1500), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	check_ok(HcommThreadNotifyRecordOnThread(other, thread, 0));
	thread_finish(thread);
	check_fails(HcommThreadResAcquireTimeOut(-1), HCCL_E_PARA, "-1");
	check_fails(HcommThreadResAcquireTimeOut(NAN), HCCL_E_PARA, "nan");
	check_ok(HcommThreadResAcquireTimeOut(1856));
	check_ok(HcommThreadResAcquireTimeOut(0));
}

TEST(waits_end_in_time)
{
	job_run(timeouts);
}

TEST(waits_have_a_default)
{
	job_run(defaults);
}

/* ---- batches, locks ---- */

static void batches(void)
{
	char name[COMM_NAME_MAX_LENGTH];
	unsigned char *memory;
	ThreadHandle thread;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	check_ok(HcclGetCommName(comm, name));
	memory = job_memory(64, 4);
	thread = thread_new(1);
	check_ok(HcommBatchModeStart("tag"));
	check_ok(HcommLocalCopyOnThread(thread, memory + 32, memory, 8));
	check_ok(HcommBatchModeEnd("tag"));
	thread_finish(thread);
	check_eq_int(memory[39], 4);
	check_ok(HcommBatchModeStart(NULL));
	check_ok(HcommBatchModeStart(""));
	check_ok(HcommBatchModeEnd(NULL));

	check_fails(HcommAcquireComm(NULL), HCCL_E_PTR, "commId");
	check_fails(HcommReleaseComm(NULL), HCCL_E_PTR, "commId");
	check_fails(HcommAcquireComm("nobody"), HCCL_E_PTR, "nobody");
	check_fails(HcommReleaseComm("nobody"), HCCL_E_PTR, "nobody");
	check_fails(HcommReleaseComm(name), HCCL_E_PARA, "not acquired");
	check_ok(HcommAcquireComm(name));
	check_fails(HcommAcquireComm(name), HCCL_E_AGAIN, "acquired before");
	check_ok(HcommReleaseComm(name));
	check_ok(HcommAcquireComm(name));
	check_ok(HcclCommDestroy(comm));
	check_fails(HcommReleaseComm(name), HCCL_E_PTR, NULL);
}

TEST(batches_and_locks)
{
	job_run(batches);
}
