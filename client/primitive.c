/* SPDX-License-Identifier: Apache-2.0 */
/* Primitives without a channel: memory of this process, notifies of threads, notifies by their ids. */
#include "client/primitive.h"

#include <errno.h>
#include <stdatomic.h>

#include "client/comm.h"
#include "client/error.h"
#include "client/memory.h"
#include "client/notify.h"
#include "client/notify_task.h"
#include "client/reduce.h"
#include "client/thread.h"
#include "hcomm/hcomm_primitives.h"
#include "proto/cleanup.h"

#define WAIT_DEFAULT_S 1836u   /* of HCCL: NOTIFY_DEFAULT_WAIT_TIME */
#define WAIT_CPU_MORE_S 50u    /* so that a host's wait does not end before the device's */
#define SECONDS_UNSET UINT64_MAX

static _Atomic uint64_t wait_seconds = SECONDS_UNSET;

/* ---- memory ---- */

int hccld_primitive_copy(const char *function, uint64_t handle, void *to, const void *from, uint64_t bytes)
{
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	int r = hccld_thread_get(function, handle, &thread);

	if (r < 0 || bytes == 0 || to == from)
		return r;
	return hccld_memory_copy_on(function, to, NULL, from, NULL, bytes, thread->stream);
}

int hccld_primitive_check_reduction(const char *function, uint32_t type, uint32_t op)
{
	switch (type) {
	case HCOMM_DATA_TYPE_INT8:
	case HCOMM_DATA_TYPE_INT16:
	case HCOMM_DATA_TYPE_INT32:
	case HCOMM_DATA_TYPE_FP16:
	case HCOMM_DATA_TYPE_FP32:
	case HCOMM_DATA_TYPE_BFP16:
		break;
	default:
		return hccld_error(CAUSE_ARGUMENT, "%s: dataType is %u (%s); expected int8, int16, int32, fp16, fp32 or bfp16", function, type,
				   data_type_name(type));
	}
	if (op == HCOMM_REDUCE_SUM || op == HCOMM_REDUCE_MAX || op == HCOMM_REDUCE_MIN)
		return 0;
	return hccld_error(CAUSE_ARGUMENT, "%s: reduceOp is %u; expected 0 (sum), 2 (max) or 3 (min)", function, op);
}

int hccld_primitive_reduce(const char *function, uint64_t handle, void *to, const void *from, uint64_t count, uint32_t type, uint32_t op)
{
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	int r = hccld_thread_get(function, handle, &thread);

	if (r == 0)
		r = hccld_primitive_check_reduction(function, type, op);
	return r < 0 ? r : hccld_reduce_submit(function, thread->stream, to, from, count, type, op);
}

int hccld_primitive_fence(const char *function, uint64_t handle)
{
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;

	return hccld_thread_get(function, handle, &thread);
}

/* ---- notifies ---- */

uint32_t hccld_primitive_timeout_ms(uint32_t seconds)
{
	if (seconds == UINT32_MAX)
		return 0;
	return seconds > UINT32_MAX / 1000 ? UINT32_MAX : seconds * 1000;
}

static int record(struct hccld_thread *thread, const struct hccld_notify_place *place)
{
	return hccld_notify_submit_record(thread->stream, place, NOTIFY_SET, 1);
}

static int await(struct hccld_thread *thread, const struct hccld_notify_place *place, uint32_t timeout_s)
{
	return hccld_notify_submit_wait(thread->stream, place, NOTIFY_EQUAL, 1, 0, true, hccld_primitive_timeout_ms(timeout_s));
}

int hccld_primitive_record_thread(const char *function, uint64_t handle, uint64_t other_handle, uint32_t index)
{
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	CLEANUP(hccld_thread_putp) struct hccld_thread *other = NULL;
	struct hccld_notify_place place;
	int r = hccld_thread_get(function, handle, &thread);

	if (r == 0)
		r = hccld_thread_get(function, other_handle, &other);
	if (r == 0)
		r = hccld_thread_notify(other, function, index, &place);
	return r < 0 ? r : record(thread, &place);
}

int hccld_primitive_wait_thread(const char *function, uint64_t handle, uint32_t index, uint32_t timeout_s)
{
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	struct hccld_notify_place place;
	int r = hccld_thread_get(function, handle, &thread);

	if (r == 0)
		r = hccld_thread_notify(thread, function, index, &place);
	return r < 0 ? r : await(thread, &place, timeout_s);
}

/* Of the thread's device: ids are numbers of a device. */
static int place_by_id(const char *function, const struct hccld_thread *thread, uint64_t id, struct hccld_notify_place *ret_place)
{
	int r = id > UINT32_MAX ? -ENOENT : hccld_notify_place_by_id(thread->context, (uint32_t)id, ret_place);

	if (r == -ENOENT)
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: there is no notify %llu on device %d; expected an id that aclrtGetNotifyId has given, of a notify of the thread's device",
				   function, (unsigned long long)id, thread->context->logical);
	return r;
}

int hccld_primitive_record_id(const char *function, uint64_t handle, uint64_t id)
{
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	struct hccld_notify_place place;
	int r = hccld_thread_get(function, handle, &thread);

	if (r == 0)
		r = place_by_id(function, thread, id, &place);
	return r < 0 ? r : record(thread, &place);
}

int hccld_primitive_wait_id(const char *function, uint64_t handle, uint64_t id, uint32_t timeout_s)
{
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	struct hccld_notify_place place;
	int r = hccld_thread_get(function, handle, &thread);

	if (r == 0)
		r = place_by_id(function, thread, id, &place);
	return r < 0 ? r : await(thread, &place, timeout_s);
}

/* ---- default time-outs ---- */

static int seconds_check(const char *function, float seconds, uint32_t *ret_seconds)
{
	/* the comparison is false for what is not a number; as a float UINT32_MAX is 2^32 */
	if (!(seconds >= 0 && seconds < 4294967296.0f) || seconds != (float)(uint32_t)seconds)
		return hccld_error(CAUSE_ARGUMENT, "%s: timeOut is %g; expected whole seconds from 0 (never) to %u", function, (double)seconds,
				   UINT32_MAX);
	*ret_seconds = (uint32_t)seconds;
	return 0;
}

int hccld_primitive_set_wait_timeout(const char *function, float seconds)
{
	uint32_t whole;
	int r = seconds_check(function, seconds, &whole);

	if (r == 0)
		atomic_store_explicit(&wait_seconds, whole, memory_order_relaxed);
	return r;
}

int hccld_primitive_set_acquire_timeout(const char *function, float seconds)
{
	uint32_t whole;

	return seconds_check(function, seconds, &whole);
}

int hccld_primitive_wait_timeout(const char *function, uint64_t handle, uint32_t *ret_seconds)
{
	CLEANUP(hccld_thread_putp) struct hccld_thread *thread = NULL;
	uint64_t seconds = atomic_load_explicit(&wait_seconds, memory_order_relaxed);
	int r = hccld_thread_get(function, handle, &thread);

	if (r < 0)
		return r;
	if (seconds == SECONDS_UNSET)
		seconds = thread->engine == COMM_ENGINE_AICPU || thread->engine == COMM_ENGINE_AICPU_TS ? WAIT_DEFAULT_S :
													  WAIT_DEFAULT_S + WAIT_CPU_MORE_S;
	*ret_seconds = (uint32_t)seconds;
	return 0;
}

/* ---- locks of communicators ---- */

static int lock_find(const char *function, const char *name, struct hccld_comm **ret_comm)
{
	void *handle;
	int r = hccld_comm_by_name(name, &handle);

	if (r == 0)
		r = hccld_comm_get(handle, ret_comm);
	if (r == -EINVAL || r == -EBADF)
		return hccld_error(CAUSE_NULL, "%s: this process has no communicator \"%.128s\"", function, name);
	return r;
}

int hccld_primitive_lock_comm(const char *function, const char *name)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *comm = NULL;
	int r = lock_find(function, name, &comm);

	if (r == 0 && atomic_exchange_explicit(&comm->is_acquired, true, memory_order_acquire))
		r = hccld_error(CAUSE_BUSY, "%s: communicator %s was acquired before and not released (HcommReleaseComm)", function, comm->name);
	return r;
}

int hccld_primitive_unlock_comm(const char *function, const char *name)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *comm = NULL;
	int r = lock_find(function, name, &comm);

	if (r == 0 && !atomic_exchange_explicit(&comm->is_acquired, false, memory_order_release))
		r = hccld_error(CAUSE_ARGUMENT, "%s: communicator %s is not acquired (HcommAcquireComm)", function, comm->name);
	return r;
}
