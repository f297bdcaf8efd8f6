/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, as libhcomm.so exports them: execution queues with notifies. Whatever engine a thread is acquired for, the daemon's executor
 * runs it; the engine is kept for tools. Limits and codes are those of HCCL 9.0 where it has the function.
 */
#include <stddef.h>

#include "client/argument.h"
#include "client/comm.h"
#include "client/error.h"
#include "client/thread.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hcomm/hcomm_res.h"
#include "proto/cleanup.h"

#define API(call) ((HcclResult)hccld_hccl_result(call))
#define THREAD_NOTIFIES_MAX HCCLD_THREAD_NOTIFIES_PER_COMM

static int argument_error(const char *function, const char *name, unsigned long long value, const char *expected)
{
	return hccld_error(CAUSE_ARGUMENT, "%s: %s is %llu; expected %s", function, name, value, expected);
}

static int engine_check(const char *function, const char *name, CommEngine engine)
{
	if ((unsigned int)engine < HCCLD_THREAD_ENGINES)
		return 0;
	return hccld_error(CAUSE_ARGUMENT, "%s: %s is %d; expected a value of CommEngine", function, name, (int)engine);
}

/* An engine that there is, but not for this function. */
static int engine_refuse(const char *function, CommEngine engine, const char *expected)
{
	return hccld_error(CAUSE_NOT_SUPPORTED, "%s: engine is %s (%d); expected %s", function,
			   hccld_engine_name((uint32_t)engine), (int)engine, expected);
}

HcclResult HcclThreadAcquire(HcclComm comm, CommEngine engine, uint32_t threadNum,
			     uint32_t notifyNumPerThread, ThreadHandle *threads)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *found = NULL;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!threads)
		return null_argument(__func__, "threads");
	r = engine_check(__func__, "engine", engine);
	if (r == 0 && threadNum == 0)
		r = argument_error(__func__, "threadNum", 0, "1 to 40");
	if (r == 0)
		r = hccld_comm_get(comm, &found);
	if (r == 0)
		r = hccld_threads_acquire(found, __func__, (uint32_t)engine, threadNum, notifyNumPerThread, threads);
	return API(r);
}

HcclResult HcclThreadAcquireWithStream(HcclComm comm, CommEngine engine, aclrtStream stream,
				       uint32_t notifyNum, ThreadHandle *thread)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *found = NULL;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!stream)
		return null_argument(__func__, "stream");
	if (!thread)
		return null_argument(__func__, "thread");
	r = engine_check(__func__, "engine", engine);
	if (r == 0 && engine != COMM_ENGINE_CPU_TS)
		r = engine_refuse(__func__, engine, "COMM_ENGINE_CPU_TS (1)");
	if (r == 0)
		r = hccld_comm_get(comm, &found);
	if (r == 0)
		r = hccld_thread_acquire_stream(found, __func__, (uint32_t)engine, stream, notifyNum, thread);
	return API(r);
}

static int config_check(const char *function, const ThreadConfig *config)
{
	if (config->header.magicWord != HCOMM_THREAD_CONFIG_MAGIC_WORD)
		return hccld_error(CAUSE_ARGUMENT, "%s: the magic word of config is %#x; call ThreadConfigInit before it is filled in", function,
				   config->header.magicWord);
	if (config->header.version == 0 || config->header.size < sizeof(*config))
		return hccld_error(CAUSE_ARGUMENT, "%s: config has version %u and %u bytes; expected version 1 and at least %zu bytes", function,
				   config->header.version, config->header.size, sizeof(*config));
	return 0;
}

HcclResult HcclThreadAcquireWithConfig(HcclComm comm, CommEngine engine, uint32_t threadNum,
				       ThreadType type, const ThreadConfig *config,
				       ThreadHandle *threads)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *found = NULL;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!config)
		return null_argument(__func__, "config");
	if (!threads)
		return null_argument(__func__, "threads");
	r = engine_check(__func__, "engine", engine);
	if (r == 0 && engine != COMM_ENGINE_CPU && engine != COMM_ENGINE_AICPU)
		r = engine_refuse(__func__, engine, "COMM_ENGINE_CPU (0) or COMM_ENGINE_AICPU (2)");
	if (r == 0 && threadNum == 0)
		r = argument_error(__func__, "threadNum", 0, "1 to 40");
	if (r == 0 && type != THREAD_TYPE_TS)
		r = hccld_error(CAUSE_ARGUMENT, "%s: type is %d; expected THREAD_TYPE_TS (0)", __func__, (int)type);
	if (r == 0)
		r = config_check(__func__, config);
	if (r == 0)
		r = hccld_comm_get(comm, &found);
	if (r == 0)
		r = hccld_threads_acquire(found, __func__, (uint32_t)engine, threadNum, config->notifyNumPerThread, threads);
	return API(r);
}

HcclResult HcclDedicatedThreadAcquire(HcclComm comm, HcclDedicatedThreadType useType,
				      uint32_t notifyNumPerThread, ThreadHandle *thread)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *found = NULL;
	int r = 0;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!thread)
		return null_argument(__func__, "thread");
	if ((unsigned int)useType > HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_DEVICE)
		r = hccld_error(CAUSE_ARGUMENT, "%s: useType is %d; expected a value of HcclDedicatedThreadType", __func__, (int)useType);
	if (r == 0)
		r = hccld_comm_get(comm, &found);
	if (r == 0)
		r = hccld_thread_acquire_dedicated(found, __func__, COMM_ENGINE_AICPU, useType, notifyNumPerThread, thread);
	return API(r);
}

/* ---- what a thread has ---- */

static int get_info(const char *function, ThreadHandle handle, ThreadResType resType, uint32_t infoLen, void **info,
		    const struct hccld_comm *comm)
{
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	int r;

	if (resType != THREAD_RES_TYPE_STREAM)
		return hccld_error(CAUSE_ARGUMENT, "%s: resType is %d; expected THREAD_RES_TYPE_STREAM (0)", function, (int)resType);
	if (infoLen != sizeof(aclrtStream))
		return argument_error(function, "infoLen", infoLen, "the size of aclrtStream");
	r = hccld_thread_get(function, handle, &thread);
	if (r == 0 && comm && thread->rank != comm->task_rank)
		r = hccld_error(CAUSE_BAD_HANDLE, "%s: thread is %#llx, which is not of rank %u of communicator %s", function,
				(unsigned long long)handle, comm->rank, comm->name);
	if (r == 0)
		*info = thread->stream;
	return r;
}

HcclResult HcclThreadResGetInfo(HcclComm comm, ThreadHandle thread, ThreadResType resType,
				uint32_t infoLen, void **info)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *found = NULL;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!thread)
		return null_argument(__func__, "thread");
	if (!info)
		return null_argument(__func__, "info");
	r = hccld_comm_get(comm, &found);
	if (r == 0)
		r = get_info(__func__, thread, resType, infoLen, info, found);
	return API(r);
}

HcommResult HcommThreadResGetInfo(ThreadHandle thread, ThreadResType resType, uint32_t infoLen,
				  void **info)
{
	if (!thread)
		return null_argument(__func__, "thread");
	if (!info)
		return null_argument(__func__, "info");
	return API(get_info(__func__, thread, resType, infoLen, info, NULL));
}

/* There is one executor for all engines: a thread that one of them may use all may use, under the same handle. */
HcclResult HcclThreadExportToCommEngine(HcclComm comm, uint32_t threadNum,
					const ThreadHandle *threads, CommEngine dstCommEngine,
					ThreadHandle *exportedThreads)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *found = NULL;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!threads)
		return null_argument(__func__, "threads");
	if (!exportedThreads)
		return null_argument(__func__, "exportedThreads");
	r = engine_check(__func__, "dstCommEngine", dstCommEngine);
	if (r == 0 && threadNum == 0)
		r = argument_error(__func__, "threadNum", 0, "at least 1");
	if (r == 0)
		r = hccld_comm_get(comm, &found);
	for (uint32_t i = 0; i < threadNum && r == 0; i++) {
		void *stream;

		r = threads[i] ? get_info(__func__, threads[i], THREAD_RES_TYPE_STREAM, sizeof(stream), &stream, found)
			       : hccld_error(CAUSE_NULL, "%s: threads[%u] is 0", __func__, i);
	}
	for (uint32_t i = 0; i < threadNum && r == 0; i++)
		exportedThreads[i] = threads[i];
	return API(r);
}

/* ---- without a communicator ---- */

HcommResult HcommThreadAlloc(CommEngine engine, uint32_t threadNum,
			     const uint32_t *notifyNumPerThread, ThreadHandle *threads)
{
	int r;

	if (!notifyNumPerThread)
		return null_argument(__func__, "notifyNumPerThread");
	if (!threads)
		return null_argument(__func__, "threads");
	r = engine_check(__func__, "engine", engine);
	if (r == 0 && (threadNum == 0 || threadNum > HCCLD_THREADS_PER_CALL))
		r = argument_error(__func__, "threadNum", threadNum, "1 to 1000");
	/* one number for all, as in CANN 9.0: programs pass the address of a variable */
	if (r == 0 && *notifyNumPerThread > THREAD_NOTIFIES_MAX)
		r = hccld_error(CAUSE_ARGUMENT, "%s: *notifyNumPerThread is %u; expected at most %u", __func__, *notifyNumPerThread,
				THREAD_NOTIFIES_MAX);
	if (r == 0)
		r = hccld_threads_allocate((uint32_t)engine, threadNum, *notifyNumPerThread, threads);
	return API(r);
}

HcommResult HcommThreadFree(const ThreadHandle *threads, uint32_t threadNum)
{
	int r;

	/* the code of HCCL for this NULL is that of a wrong value */
	if (!threads || threadNum == 0)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: %s; expected threads and how many they are", __func__,
				       threads ? "threadNum is 0" : "threads is NULL"));
	r = hccld_session_check_fork();
	return API(r < 0 ? r : hccld_threads_free(threads, threadNum));
}
