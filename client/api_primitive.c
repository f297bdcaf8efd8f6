/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data plane, as libhcomm.so exports it. Results are values of HcclResult. Where real HCCL has a function on some products only, it
 * works here: every thread is run by the daemon's executor, and all ranks are on this node.
 */
#include <stddef.h>

#include "client/argument.h"
#include "client/error.h"
#include "client/primitive.h"
#include "client/session.h"
#include "hcomm/hcomm_primitives.h"

#define API(call) hccld_hccl_result(call)

/* What is 0 or NULL among the arguments, in their order. */
#define NEED(argument)                                          \
	do {                                                    \
		if (!(argument))                                \
			return null_argument(__func__, #argument); \
	} while (0)

/* ---- memory of this process, notifies of threads ---- */

int32_t HcommLocalCopyOnThread(ThreadHandle thread, void *dst, const void *src, uint64_t len)
{
	NEED(thread);
	NEED(dst);
	NEED(src);
	return API(hccld_primitive_copy(__func__, thread, dst, src, len));
}

int32_t HcommLocalReduceOnThread(ThreadHandle thread, void *dst, const void *src, uint64_t count,
				 HcommDataType dataType, HcommReduceOp reduceOp)
{
	NEED(thread);
	NEED(dst);
	NEED(src);
	return API(hccld_primitive_reduce(__func__, thread, dst, src, count, (uint32_t)dataType, (uint32_t)reduceOp));
}

int32_t HcommThreadNotifyRecordOnThread(ThreadHandle thread, ThreadHandle dstThread,
					uint32_t dstNotifyIdx)
{
	NEED(thread);
	NEED(dstThread);
	return API(hccld_primitive_record_thread(__func__, thread, dstThread, dstNotifyIdx));
}

int32_t HcommThreadNotifyWaitOnThread(ThreadHandle thread, uint32_t notifyIdx, uint32_t timeOut)
{
	NEED(thread);
	return API(hccld_primitive_wait_thread(__func__, thread, notifyIdx, timeOut));
}

int32_t HcommThreadNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, uint32_t notifyIdx)
{
	uint32_t seconds;
	int r;

	NEED(thread);
	r = hccld_primitive_wait_timeout(__func__, thread, &seconds);
	return API(r < 0 ? r : hccld_primitive_wait_thread(__func__, thread, notifyIdx, seconds));
}

int32_t HcommAclrtNotifyRecordOnThread(ThreadHandle thread, uint64_t dstNotifyId)
{
	NEED(thread);
	return API(hccld_primitive_record_id(__func__, thread, dstNotifyId));
}

int32_t HcommAclrtNotifyWaitOnThread(ThreadHandle thread, uint64_t notifyId, uint32_t timeOut)
{
	NEED(thread);
	return API(hccld_primitive_wait_id(__func__, thread, notifyId, timeOut));
}

/*
 * What is queued between the two is queued at once, and runs as soon as it can: a batch saves nothing here. As in HCCL 9.0 they need not
 * come in pairs. The tag is of no use: nothing is recorded.
 */
int32_t HcommBatchModeStart(const char *batchTag)
{
	(void)batchTag;
	return API(hccld_session_check_fork());
}

int32_t HcommBatchModeEnd(const char *batchTag)
{
	(void)batchTag;
	return API(hccld_session_check_fork());
}

int32_t HcommAcquireComm(const char *commId)
{
	NEED(commId);
	return API(hccld_primitive_lock_comm(__func__, commId));
}

int32_t HcommReleaseComm(const char *commId)
{
	NEED(commId);
	return API(hccld_primitive_unlock_comm(__func__, commId));
}

/* ---- fences: nothing is left to be done (primitive.h) ---- */

int32_t HcommFenceOnThread(ThreadHandle thread)
{
	NEED(thread);
	return API(hccld_primitive_fence(__func__, thread));
}

/* ---- defaults ---- */

int32_t HcommSetNotifyWaitTimeOut(float timeOut)
{
	return API(hccld_primitive_set_wait_timeout(__func__, timeOut));
}

int32_t HcommThreadResAcquireTimeOut(float timeOut)
{
	return API(hccld_primitive_set_acquire_timeout(__func__, timeOut));
}
