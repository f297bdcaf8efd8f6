/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of programs' own operators: acquiring and ending them, what they may be given, and what is told otherwise. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hcomm/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "tests/support/job.h"
#include "tests/support/thread.h"

#define MAX 41

static const CommEngine no_engine = (CommEngine)6;

/* The thread does work: by its own notifies, in order. */
static void check_works(ThreadHandle thread, uint32_t notifies)
{
	unsigned char *memory = job_memory(64, 3);

	for (uint32_t i = 0; i < notifies; i++)
		check_ok(HcommThreadNotifyRecordOnThread(thread, thread, i));
	for (uint32_t i = 0; i < notifies; i++)
		check_ok(HcommThreadNotifyWaitOnThread(thread, i, 10));
	check_ok(HcommLocalCopyOnThread(thread, memory + 32, memory, 16));
	check_ok(aclrtSynchronizeStreamWithTimeout(thread_stream(thread), 10000));
	check_eq_int(memory[47], 3);
	check_ok(aclrtFree(memory));
}

/* ---- HcclThreadAcquire ---- */

static void acquire(void)
{
	ThreadHandle threads[MAX] = { 0 };
	HcclComm comm, other;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	other = job_alone();
	check_fails(HcclThreadAcquire(NULL, COMM_ENGINE_CPU, 1, 1, threads), HCCL_E_PTR, "comm");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 1, NULL), HCCL_E_PTR, "threads");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_RESERVED, 1, 1, threads), HCCL_E_PARA, "engine is -1");
	check_fails(HcclThreadAcquire(comm, no_engine, 1, 1, threads), HCCL_E_PARA, "engine is 6");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 0, 1, threads), HCCL_E_PARA, "threadNum is 0");
	check_fails(HcclThreadAcquire(threads, COMM_ENGINE_CPU, 1, 1, threads), HCCL_E_PARA, "no communicator");
	/* before the first success what is too much is out of stock, afterwards wrong */
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 41, 0, threads), HCCL_E_UNAVAIL,
		    "at most 40: destroy it, or use them again\n        Solution: Acquire threads once, and use them again: they go with the communicator");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 65, threads), HCCL_E_UNAVAIL,
		    "at most 64\n        Solution: Acquire threads once, with no more notifies than their operators use");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 3, 22, threads), HCCL_E_UNAVAIL, "at most 64");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 2, 0x80000001u, threads), HCCL_E_UNAVAIL, "4294967298 asked");
	check_eq_uint(threads[0], 0);
	check_ok(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 4, 3, threads));
	for (int i = 0; i < 4; i++) {
		check_ne_uint(threads[i], 0);
		for (int j = 0; j < i; j++)
			check_ne_uint(threads[i], threads[j]);
		check_works(threads[i], 3);
	}
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 41, 0, threads + 4), HCCL_E_PARA, "threadNum is 41");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 65, threads + 4), HCCL_E_PARA, "notifies of each 65");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 37, 0, threads + 4), HCCL_E_UNAVAIL, ": 4, and 37 asked");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 53, threads + 4), HCCL_E_UNAVAIL, "have 12 notifies, 53 asked");
	check_eq_uint(threads[4], 0);
	check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 35, 0, threads + 4));
	check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 52, threads + 39));
	check_works(threads[39], 52);
	check_works(threads[38], 0);
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 0, threads + 40), HCCL_E_UNAVAIL, ": 40, and 1 asked");
	/* another one has its own */
	check_ok(HcclThreadAcquire(other, COMM_ENGINE_CPU_TS, 1, 64, threads + 40));
	check_works(threads[40], 64);
	check_ok(HcclCommDestroy(comm));
	check_works(threads[40], 64);
	check_fails(HcommThreadNotifyRecordOnThread(threads[0], threads[0], 0), HCCL_E_PARA, "no thread");
	check_fails(HcommThreadNotifyRecordOnThread(threads[40], threads[39], 0), HCCL_E_PARA, "no thread");
	check_ok(HcclCommDestroy(other));
	check_fails(HcommFenceOnThread(threads[40]), HCCL_E_PARA, "no thread");
}

TEST(threads_have_the_limits_and_codes_of_hccl)
{
	job_run(acquire);
}

/* ---- streams of the program ---- */

static void streams(void)
{
	ThreadHandle thread = 0, again = 0, other = 0, foreign = 0;
	aclrtStream stream, second, elsewhere;
	HcclComm comm, comm2;

	check_ok(aclrtSetDevice(1));
	check_ok(aclrtCreateStream(&elsewhere));
	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	comm2 = job_alone();
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtCreateStream(&second));
	check_fails(HcclThreadAcquireWithStream(NULL, COMM_ENGINE_CPU_TS, stream, 1, &thread), HCCL_E_PTR, "comm");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, NULL, 1, &thread), HCCL_E_PTR, "stream");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, NULL), HCCL_E_PTR, "thread");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_AICPU, stream, 1, &thread), HCCL_E_NOT_SUPPORT, "COMM_ENGINE_CPU_TS");
	check_fails(HcclThreadAcquireWithStream(comm, no_engine, stream, 1, &thread), HCCL_E_PARA, "engine is 6");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, &thread, 1, &thread), HCCL_E_PARA, "no stream");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, elsewhere, 1, &thread), HCCL_E_PARA, "device 1");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 65, &thread), HCCL_E_UNAVAIL, "at most 64");
	check_ok(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 2, &thread));
	check_ok(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 2, &again));
	check_eq_uint(thread, again);
	check_eq_ptr(thread_stream(thread), stream);
	check_works(thread, 2);
	check_fails(HcommThreadNotifyWaitOnThread(thread, 2, 1), HCCL_E_PTR, "2 notifies");
	/* for an operator that needs more it gets more */
	check_ok(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 6, &again));
	check_eq_uint(thread, again);
	check_works(thread, 6);
	check_fails(HcommThreadNotifyWaitOnThread(thread, 6, 1), HCCL_E_PTR, "6 notifies");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 65, &again), HCCL_E_UNAVAIL, "have 6 notifies, 59 asked");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, second, 59, &again), HCCL_E_UNAVAIL, "have 6 notifies, 59 asked");
	check_ok(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, second, 0, &other));
	check_ne_uint(other, thread);
	/* of another communicator it is another thread */
	check_ok(HcclThreadAcquireWithStream(comm2, COMM_ENGINE_CPU_TS, stream, 1, &foreign));
	check_ne_uint(foreign, thread);
	check_works(foreign, 1);
	check_ok(HcclCommDestroy(comm2));
	check_fails(HcommFenceOnThread(foreign), HCCL_E_PARA, "no thread");
	check_works(thread, 6);
	/* the stream is the program's: its thread goes with it, and the notifies come back */
	check_ok(aclrtDestroyStream(stream));
	check_fails(HcommFenceOnThread(thread), HCCL_E_PARA, "no thread");
	check_ok(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, second, 64, &again));
	check_eq_uint(other, again);
	check_works(other, 64);
	check_ok(HcclCommDestroy(comm));
	check_ok(aclrtSynchronizeStream(second));
	check_ok(aclrtDestroyStream(second));
}

TEST(a_stream_is_one_thread_of_a_communicator)
{
	job_run(streams);
}

/* ---- what a thread has ---- */

static void infos(void)
{
	ThreadHandle thread, other, alone, out[2] = { 0 };
	const uint32_t notifies[1] = { 1 };
	HcclComm comm, comm2;
	void *stream = NULL;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	comm2 = job_alone();
	check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 1, &thread));
	check_ok(HcclThreadAcquire(comm2, COMM_ENGINE_CPU, 1, 1, &other));
	check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 1, notifies, &alone));
	check_fails(HcclThreadResGetInfo(NULL, thread, THREAD_RES_TYPE_STREAM, 8, &stream), HCCL_E_PTR, "comm");
	check_fails(HcclThreadResGetInfo(comm, 0, THREAD_RES_TYPE_STREAM, 8, &stream), HCCL_E_PTR, "thread");
	check_fails(HcclThreadResGetInfo(comm, thread, THREAD_RES_TYPE_STREAM, 8, NULL), HCCL_E_PTR, "info");
	check_fails(HcclThreadResGetInfo(comm, thread, THREAD_RES_TYPE_INVALID, 8, &stream), HCCL_E_PARA, "resType");
	check_fails(HcclThreadResGetInfo(comm, thread, THREAD_RES_TYPE_STREAM, 4, &stream), HCCL_E_PARA, "infoLen is 4");
	check_fails(HcclThreadResGetInfo(comm, other, THREAD_RES_TYPE_STREAM, 8, &stream), HCCL_E_PARA, "not of rank 0 of communicator");
	check_fails(HcclThreadResGetInfo(comm, alone, THREAD_RES_TYPE_STREAM, 8, &stream), HCCL_E_PARA, "not of rank 0 of communicator");
	check_fails(HcclThreadResGetInfo(comm, 12345, THREAD_RES_TYPE_STREAM, 8, &stream), HCCL_E_PARA, "no thread");
	check_null(stream);
	check_ok(HcclThreadResGetInfo(comm, thread, THREAD_RES_TYPE_STREAM, 8, &stream));
	check_eq_ptr(stream, thread_stream(thread));
	check_fails(HcommThreadResGetInfo(0, THREAD_RES_TYPE_STREAM, 8, &stream), HCCL_E_PTR, "thread");
	check_fails(HcommThreadResGetInfo(thread, THREAD_RES_TYPE_STREAM, 8, NULL), HCCL_E_PTR, "info");
	check_fails(HcommThreadResGetInfo(thread, THREAD_RES_TYPE_STREAM, 16, &stream), HCCL_E_PARA, "infoLen is 16");
	check_fails(HcommThreadResGetInfo((ThreadHandle)(uintptr_t)&thread, THREAD_RES_TYPE_STREAM, 8, &stream), HCCL_E_PARA, "no thread");
	check_ok(aclrtMemsetAsync(job_memory(8, 0), 8, 1, 8, stream));
	check_ok(aclrtSynchronizeStream(stream));
	/* it ends with its thread alone */
	check_fails(aclrtDestroyStream(stream), ACL_ERROR_RT_PARAM_INVALID, "belongs to a thread");
	check_fails(aclrtDestroyStreamForce(stream), ACL_ERROR_RT_PARAM_INVALID, "belongs to a thread");
	check_works(thread, 1);

	check_fails(HcclThreadExportToCommEngine(NULL, 1, &thread, COMM_ENGINE_AICPU, out), HCCL_E_PTR, "comm");
	check_fails(HcclThreadExportToCommEngine(comm, 1, NULL, COMM_ENGINE_AICPU, out), HCCL_E_PTR, "threads");
	check_fails(HcclThreadExportToCommEngine(comm, 1, &thread, COMM_ENGINE_AICPU, NULL), HCCL_E_PTR, "exportedThreads");
	check_fails(HcclThreadExportToCommEngine(comm, 0, &thread, COMM_ENGINE_AICPU, out), HCCL_E_PARA, "threadNum is 0");
	check_fails(HcclThreadExportToCommEngine(comm, 1, &thread, no_engine, out), HCCL_E_PARA, "dstCommEngine");
	check_fails(HcclThreadExportToCommEngine(comm, 1, &other, COMM_ENGINE_AICPU, out), HCCL_E_PARA, "not of rank 0 of communicator");
	check_fails(HcclThreadExportToCommEngine(comm, 2, (ThreadHandle[]){ thread, 0 }, COMM_ENGINE_AICPU, out), HCCL_E_PTR, "threads[1]");
	check_eq_uint(out[0], 0);
	check_ok(HcclThreadExportToCommEngine(comm, 1, &thread, COMM_ENGINE_AICPU, out));
	check_works(out[0], 1);
	check_ok(HcclCommDestroy(comm));
	check_ok(HcclCommDestroy(comm2));
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE, "no stream");
	check_works(alone, 1);
	check_ok(HcommThreadFree(&alone, 1));
}

TEST(a_thread_has_a_stream_that_is_not_the_programs)
{
	job_run(infos);
}

/* ---- HcclThreadAcquireWithConfig, HcclDedicatedThreadAcquire ---- */

static void configs(void)
{
	ThreadHandle threads[2] = { 0 }, dedicated[3] = { 0 };
	ThreadConfig config;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	check_ok(ThreadConfigInit(&config, 1));
	config.notifyNumPerThread = 4;
	check_fails(HcclThreadAcquireWithConfig(NULL, COMM_ENGINE_CPU, 1, THREAD_TYPE_TS, &config, threads), HCCL_E_PTR, "comm");
	check_fails(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_CPU, 1, THREAD_TYPE_TS, NULL, threads), HCCL_E_PTR, "config");
	check_fails(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_CPU, 1, THREAD_TYPE_TS, &config, NULL), HCCL_E_PTR, "threads");
	check_fails(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_CPU_TS, 1, THREAD_TYPE_TS, &config, threads), HCCL_E_NOT_SUPPORT,
		    "engine is CPU_TS (1)");
	check_fails(HcclThreadAcquireWithConfig(comm, no_engine, 1, THREAD_TYPE_TS, &config, threads), HCCL_E_PARA, "engine is 6");
	check_fails(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_CPU, 0, THREAD_TYPE_TS, &config, threads), HCCL_E_PARA, "threadNum");
	check_fails(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_CPU, 1, THREAD_TYPE_INVALID, &config, threads), HCCL_E_PARA, "type");
	config.header.magicWord++;
	check_fails(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_CPU, 1, THREAD_TYPE_TS, &config, threads), HCCL_E_PARA, "magic");
	config.header.magicWord--;
	config.header.size = 8;
	check_fails(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_CPU, 1, THREAD_TYPE_TS, &config, threads), HCCL_E_PARA, "8 bytes");
	config.header.size = sizeof(config);
	check_ok(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_AICPU, 2, THREAD_TYPE_TS, &config, threads));
	check_works(threads[0], 4);
	check_works(threads[1], 4);
	check_fails(HcommThreadNotifyWaitOnThread(threads[1], 4, 1), HCCL_E_PTR, "4 notifies");

	check_fails(HcclDedicatedThreadAcquire(NULL, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 1, dedicated), HCCL_E_PTR, "comm");
	check_fails(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 1, NULL), HCCL_E_PTR, "thread");
	check_fails(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_INVALID, 1, dedicated), HCCL_E_PARA, "useType is -1");
	check_fails(HcclDedicatedThreadAcquire(comm, (HcclDedicatedThreadType)6, 1, dedicated), HCCL_E_PARA, "useType is 6");
	check_ok(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 2, &dedicated[0]));
	check_ok(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 1, &dedicated[1]));
	check_ok(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_DEVICE, 1, &dedicated[2]));
	check_eq_uint(dedicated[0], dedicated[1]);
	check_ne_uint(dedicated[0], dedicated[2]);
	check_works(dedicated[0], 2);
	/* for an operator that needs more it gets more */
	check_ok(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 5, &dedicated[1]));
	check_eq_uint(dedicated[0], dedicated[1]);
	check_works(dedicated[0], 5);
	check_fails(HcommThreadNotifyWaitOnThread(dedicated[0], 5, 1), HCCL_E_PTR, "5 notifies");
	check_fails(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 56, &dedicated[1]), HCCL_E_UNAVAIL, "have 14 notifies, 51 asked");
	check_works(dedicated[2], 1);
	check_ok(HcclCommDestroy(comm));
}

TEST(threads_by_config_and_by_use)
{
	job_run(configs);
}

/* ---- without a communicator ---- */

static void alone(void)
{
	const uint32_t notifies[1] = { 3 }, many[1] = { 65 };
	ThreadHandle threads[3] = { 0 }, of_comm;
	HcclComm comm;

	check_fails(HcommThreadAlloc(COMM_ENGINE_CPU, 1, notifies, threads), HCCL_E_RUNTIME, "aclrtSetDevice");
	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	check_fails(HcommThreadAlloc(COMM_ENGINE_CPU, 1, NULL, threads), HCCL_E_PTR, "notifyNumPerThread");
	check_fails(HcommThreadAlloc(COMM_ENGINE_CPU, 1, notifies, NULL), HCCL_E_PTR, "threads");
	check_fails(HcommThreadAlloc(no_engine, 1, notifies, threads), HCCL_E_PARA, "engine");
	check_fails(HcommThreadAlloc(COMM_ENGINE_CPU, 0, notifies, threads), HCCL_E_PARA, "threadNum is 0");
	check_fails(HcommThreadAlloc(COMM_ENGINE_CPU, 1001, notifies, threads), HCCL_E_PARA, "1001");
	check_fails(HcommThreadAlloc(COMM_ENGINE_CPU, 2, many, threads), HCCL_E_PARA, "notifyNumPerThread is 65");
	check_ok(HcommThreadAlloc(COMM_ENGINE_AICPU_TS, 3, notifies, threads));
	for (int i = 0; i < 3; i++)
		check_works(threads[i], 3);
	check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 0, &of_comm));
	check_fails(HcommThreadFree(NULL, 1), HCCL_E_PARA, "NULL");
	check_fails(HcommThreadFree(threads, 0), HCCL_E_PARA, "threadNum is 0");
	check_fails(HcommThreadFree(&of_comm, 1), HCCL_E_NOT_FOUND, "belongs to a communicator");
	/* all or nothing */
	check_fails(HcommThreadFree((ThreadHandle[]){ threads[0], 77 }, 2), HCCL_E_NOT_FOUND, "no thread");
	check_fails(HcommThreadFree((ThreadHandle[]){ threads[0], threads[1], threads[0] }, 3), HCCL_E_NOT_FOUND, "threads[2] is");
	check_works(threads[0], 1);
	check_ok(HcommThreadFree(threads, 2));
	check_fails(HcommThreadFree(threads, 1), HCCL_E_NOT_FOUND, "no thread");
	check_works(threads[2], 3);
	/* the device takes its threads with it */
	check_ok(aclrtResetDevice(0));
	check_fails(HcommFenceOnThread(threads[2]), HCCL_E_PARA, "no thread");
	check_fails(HcommFenceOnThread(of_comm), HCCL_E_PARA, "no thread");
	check_fails(HcommThreadFree(threads + 2, 1), HCCL_E_NOT_FOUND, "no thread");
	check_fails(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 0, &of_comm), HCCL_E_PARA, "ended when device 0 was reset");
	check_ok(aclrtSetDevice(0));
	check_fails(HcclDedicatedThreadAcquire(comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 1, &of_comm), HCCL_E_PARA, "ended when device 0 was reset");
	check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 1, notifies, threads));
	check_works(threads[0], 1);
}

TEST(threads_without_a_communicator)
{
	job_run(alone);
}

/* ---- ends ---- */

/* What waits for ever does not hold up the end of its communicator; a stream of the program goes on. */
static void leave_with_work(void)
{
	ThreadHandle own, wrapped;
	aclrtStream stream;
	unsigned char *memory;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	memory = job_memory(8, 1);
	for (int round = 0; round < 3; round++) {
		comm = job_alone();
		check_ok(aclrtCreateStream(&stream));
		check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 1, &own));
		check_ok(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 1, &wrapped));
		check_ok(HcommThreadNotifyWaitOnThread(own, 0, UINT32_MAX));
		check_ok(HcommThreadNotifyWaitOnThread(wrapped, 0, 0));
		check_ok(aclrtMemsetAsync(memory, 8, 2 + round, 8, stream));
		check_ok(HcclCommDestroy(comm));
		/* nobody can record it any more */
		check_fails(aclrtSynchronizeStreamWithTimeout(stream, 20000), 107022, "was freed");
		check_eq_int(memory[7], 2 + round);
		check_ok(aclrtDestroyStream(stream));
	}
}

TEST(a_communicator_ends_while_its_threads_wait)
{
	job_run(leave_with_work);
}

static void *destroy_soon(void *comm)
{
	usleep(100000);
	check_ok(HcclCommDestroy(comm));
	return NULL;
}

/* Who waits for it meanwhile is told what ended, not of a stream that the program has not destroyed. */
static void destroy_while_waited(void)
{
	pthread_t destroyer;
	ThreadHandle own;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 1, 1, &own));
	check_ok(HcommThreadNotifyWaitOnThread(own, 0, 0));
	check_eq_int(pthread_create(&destroyer, NULL, destroy_soon, comm), 0);
	check_fails(aclrtSynchronizeStreamWithTimeout(thread_stream(own), 20000), 107022, "communicator");
	check_eq_int(pthread_join(destroyer, NULL), 0);
}

TEST(a_communicator_ends_while_its_thread_is_waited_for)
{
	job_run(destroy_while_waited);
}

static void rounds(void)
{
	const uint32_t notifies[2] = { 3, 1 };
	ThreadHandle threads[2];
	HcclComm comm;
	size_t before = 0;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	for (int i = 0; i < 10000; i++) {
		check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 2, notifies, threads));
		if (i % 1000 == 0)
			check_works(threads[i / 1000 % 2], 1);
		check_ok(HcommThreadFree(threads, 2));
		if (i == 10)
			before = job_free_memory();
	}
	check_eq_uint(job_free_memory(), before);
	check_ok(HcclCommDestroy(comm));
	for (int i = 0; i < 200; i++) {
		comm = job_alone();
		check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 2, 32, threads));
		check_works(threads[1], 32);
		check_ok(HcclCommDestroy(comm));
	}
	check_eq_uint(job_free_memory(), before);
}

TEST_TIMEOUT(ten_thousand_threads_come_and_go, 120)
{
	job_run(rounds);
}

/* ---- 20 processes, and streams for some of what they want ---- */

#define PROCESSES 20u
#define STREAMS 30u /* of all together */

static struct shared {
	_Atomic uint32_t acquired, refused;
	_Atomic uint32_t had;
} *shared;

static void take(HcclComm comm)
{
	ThreadHandle threads[4] = { 0 };
	int r = HcclThreadAcquire(comm, COMM_ENGINE_CPU, 4, 1, threads);

	if (r == HCCL_SUCCESS) {
		atomic_fetch_add(&shared->acquired, 1);
		check_works(threads[3], 1);
	} else {
		const char *text = aclGetRecentErrMsg();

		/* all or none: what there was of it is back */
		check_eq_int(r, HCCL_E_UNAVAIL);
		check_str_contains(text, "EI0007");
		check_str_contains(text, "streams of uid");
		check_str_contains(text, "of 30 used");
		check_str_contains(text, "pid ");
		check_str_contains(text, "streams_per_tenant");
		check_eq_uint(threads[0], 0);
		atomic_fetch_add(&shared->refused, 1);
	}
}

static void taker(uint32_t index, HcclRootInfo *root)
{
	ThreadHandle threads[4] = { 0 };
	HcclComm comm;

	(void)root;
	check_ok(aclrtSetDevice((int32_t)(index % 8)));
	comm = job_alone();
	/* of those that take at once each may have some of its four when none is left */
	if (index == 0)
		take(comm);
	job_meet();
	if (index > 0)
		take(comm);
	job_meet();
	check_ok(HcclCommDestroy(comm));
	job_meet();
	/* one after the other they find all of it */
	for (uint32_t turn = 0; turn < PROCESSES; turn++) {
		while (atomic_load(&shared->had) < turn)
			usleep(200);
		if (turn != index)
			continue;
		comm = job_alone();
		check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 4, 1, threads));
		check_works(threads[0], 1);
		check_ok(HcclCommDestroy(comm));
		atomic_store(&shared->had, turn + 1);
	}
	job_meet();
}

TEST_TIMEOUT(threads_run_out_and_come_back, 60)
{
	static const char *const options[] = { "--devices", "8", "--streams-per-tenant", "30", NULL };

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	job_set_options(options);
	job_run_processes(PROCESSES, taker);
	check_eq_uint(shared->acquired + shared->refused, PROCESSES);
	check_ge_uint(shared->acquired, 1);
	check_le_uint(shared->acquired, STREAMS / 4);
}
