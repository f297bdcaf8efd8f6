/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The acl runtime: events, host functions, values, and what becomes of the tasks of a stream. As in api_acl.c arguments are checked here,
 * in CANN's order, and nothing is kept.
 */
#include <inttypes.h>

#include "acl/acl.h"
#include "client/argument.h"
#include "client/device.h"
#include "client/error.h"
#include "client/event.h"
#include "client/exception.h"
#include "client/hostfunc.h"
#include "client/reduce.h"
#include "client/stream.h"
#include "client/value.h"

#define EVENT_FLAGS                                                                           \
	(ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |           \
	 ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC)
#define LEAST_PRIORITY 7u

static int timeout_error(const char *function, int32_t timeout)
{
	return hccld_acl_result(hccld_error(
		CAUSE_ARGUMENT, "%s: timeout is %d; expected -1 (no limit) or milliseconds",
		function, timeout));
}

/* ---- events ---- */

static aclError create_event(const char *function, aclrtEvent *event, uint32_t flag, bool extended)
{
	struct hccld_context *context;
	int r;

	if (!event)
		return null_error(function, "event");
	if (flag == 0 || (flag & ~EVENT_FLAGS))
		return hccld_acl_result(hccld_error(CAUSE_ARGUMENT,
						    "%s: flag is 0x%x; expected bits of ACL_EVENT_*",
						    function, flag));
	r = hccld_context_current(&context);
	if (r == 0)
		r = hccld_event_new(context, flag & ACL_EVENT_TIME_LINE, extended, event);
	return hccld_acl_result(r);
}

aclError aclrtCreateEvent(aclrtEvent *event)
{
	return create_event(__func__, event,
			    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE,
			    false);
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag)
{
	return create_event(__func__, event, flag, false);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag)
{
	return create_event(__func__, event, flag, true);
}

aclError aclrtDestroyEvent(aclrtEvent event)
{
	if (!event)
		return null_error(__func__, "event");
	return hccld_acl_result(hccld_event_destroy(event));
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
	if (!event)
		return null_error(__func__, "event");
	return hccld_acl_result(hccld_event_record(event, stream));
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
	if (!event)
		return null_error(__func__, "event");
	return hccld_acl_result(hccld_event_reset(event, stream));
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
	if (!event)
		return null_error(__func__, "event");
	return hccld_acl_result(hccld_event_wait(event, stream, hccld_event_wait_timeout()));
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
	if (!event)
		return null_error(__func__, "event");
	if (timeout < -1)
		return timeout_error(__func__, timeout);
	return hccld_acl_result(hccld_event_wait(event, stream, timeout < 0 ? 0 : (uint32_t)timeout));
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout)
{
	hccld_event_set_wait_timeout(timeout > UINT32_MAX / 1000 ? UINT32_MAX : timeout * 1000);
	return ACL_SUCCESS;
}

static aclError ask(const char *function, aclrtEvent event, const void *status, int (*query)(void *event), bool *ret_done)
{
	int r;

	*ret_done = false;
	if (!event || !status)
		return null_error(function, event ? "status" : "event");
	r = query(event);
	if (r < 0)
		return hccld_acl_result(r);
	*ret_done = r != 0;
	return ACL_SUCCESS;
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
	bool done;
	aclError result = ask(__func__, event, status, hccld_event_query, &done);

	if (result == ACL_SUCCESS)
		*status = done ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
	return result;
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
	bool done;
	aclError result = ask(__func__, event, status, hccld_event_query, &done);

	if (result == ACL_SUCCESS)
		*status = done ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
	return result;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status)
{
	bool done;
	aclError result = ask(__func__, event, status, hccld_event_query_waits, &done);

	if (result == ACL_SUCCESS)
		*status = done ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
	return result;
}

aclError aclrtSynchronizeEvent(aclrtEvent event)
{
	if (!event)
		return null_error(__func__, "event");
	return hccld_acl_result(hccld_event_synchronize(event, -1));
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
{
	if (!event)
		return null_error(__func__, "event");
	if (timeout < -1)
		return timeout_error(__func__, timeout);
	return hccld_acl_result(hccld_event_synchronize(event, timeout));
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
	uint64_t ns;
	int r;

	if (!ms || !startEvent || !endEvent)
		return null_error(__func__, !ms ? "ms" : startEvent ? "endEvent" : "startEvent");
	r = hccld_event_elapsed(startEvent, endEvent, &ns);
	if (r == 0)
		*ms = (float)((double)ns / 1e6);
	return hccld_acl_result(r);
}

/* In microseconds, of the clock of this machine's boot. */
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp)
{
	uint64_t ns;
	int r;

	if (!event || !timestamp)
		return null_error(__func__, event ? "timestamp" : "event");
	r = hccld_event_time(event, &ns);
	if (r == 0)
		*timestamp = ns / 1000;
	return hccld_acl_result(r);
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId)
{
	if (!event || !eventId)
		return null_error(__func__, event ? "eventId" : "event");
	return hccld_acl_result(hccld_event_id(event, eventId));
}

aclError aclrtGetEventAvailNum(uint32_t *eventCount)
{
	if (!eventCount)
		return null_error(__func__, "eventCount");
	*eventCount = hccld_event_room();
	return ACL_SUCCESS;
}

/* ---- host functions ---- */

static aclError launch(const char *function, void (*host)(void *arg), void *arg, bool blocks,
		       bool reports, aclrtStream handle)
{
	struct hccld_stream *stream;
	int r;

	if (!host)
		return null_error(function, "fn");
	r = hccld_stream_get(handle, &stream);
	if (r == 0)
		r = hccld_host_launch(stream, host, arg, blocks, reports);
	return hccld_acl_result(r);
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
{
	return launch(__func__, fn, args, true, false, stream);
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType,
			     aclrtStream stream)
{
	if (fn && blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK)
		return hccld_acl_result(hccld_error(
			CAUSE_ARGUMENT,
			"%s: blockType is %d; expected ACL_CALLBACK_NO_BLOCK or ACL_CALLBACK_BLOCK",
			__func__, (int)blockType));
	return launch(__func__, fn, userData, blockType == ACL_CALLBACK_BLOCK, true, stream);
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
	struct hccld_stream *found;
	int r = hccld_stream_get(stream, &found);

	return hccld_acl_result(r < 0 ? r : hccld_host_subscribe(threadId, found));
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
	struct hccld_stream *found;
	int r = hccld_stream_get(stream, &found);

	return hccld_acl_result(r < 0 ? r : hccld_host_unsubscribe(threadId, found));
}

aclError aclrtProcessReport(int32_t timeout)
{
	if (timeout < -1)
		return timeout_error(__func__, timeout);
	return hccld_acl_result(hccld_host_process(timeout));
}

/* ---- values ---- */

aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
	if (!devAddr)
		return null_error(__func__, "devAddr");
	if (flag)
		return hccld_acl_result(hccld_error(CAUSE_ARGUMENT, "%s: flag is %" PRIu32 "; expected 0", __func__, flag));
	return hccld_acl_result(hccld_value_write(devAddr, value, stream));
}

aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
	if (!devAddr)
		return null_error(__func__, "devAddr");
	if (flag > ACL_STREAM_WAIT_VALUE_NOR)
		return hccld_acl_result(hccld_error(CAUSE_ARGUMENT, "%s: flag is %" PRIu32 "; expected one of ACL_STREAM_WAIT_VALUE_*",
						    __func__, flag));
	return hccld_acl_result(hccld_value_wait(devAddr, value, flag, stream));
}

/* ---- streams ---- */

static aclError create_stream(const char *function, aclrtStream *stream, uint32_t priority, uint64_t flag)
{
	const uint32_t flags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT |
			       ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;
	struct hccld_context *context;
	struct hccld_stream *made;
	int r;

	if (!stream)
		return null_error(function, "stream");
	if (priority > LEAST_PRIORITY)
		return value_error(function, "priority", priority, "0 (greatest) to 7 (least)");
	if (flag & ~(uint64_t)flags)
		return hccld_acl_result(hccld_error(CAUSE_ARGUMENT, "%s: flag is 0x%" PRIx64 "; expected bits of ACL_STREAM_*",
						    function, flag));
	r = hccld_context_current(&context);
	if (r == 0)
		r = hccld_stream_new(context, &made);
	if (r < 0)
		return hccld_acl_result(r);
	/* streams share one executor: both are kept for the program to ask, and change nothing */
	hccld_stream_settings(made)->priority = priority;
	hccld_stream_settings(made)->flags = (uint32_t)flag;
	*stream = made;
	return ACL_SUCCESS;
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
	return create_stream(__func__, stream, priority, flag);
}

/* Its work memory is for kernels of a device, which has none here. */
aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle)
{
	if (!handle)
		return null_error(__func__, "handle");
	return create_stream(__func__, stream, handle->priority, handle->flag);
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority)
{
	if (!leastPriority || !greatestPriority)
		return null_error(__func__, leastPriority ? "greatestPriority" : "leastPriority");
	*leastPriority = LEAST_PRIORITY;
	*greatestPriority = 0;
	return ACL_SUCCESS;
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority)
{
	struct hccld_stream *found;
	int r;

	if (!priority)
		return null_error(__func__, "priority");
	r = hccld_stream_get(stream, &found);
	if (r == 0)
		*priority = hccld_stream_settings(found)->priority;
	return hccld_acl_result(r);
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags)
{
	struct hccld_stream *found;
	int r;

	if (!flags)
		return null_error(__func__, "flags");
	r = hccld_stream_get(stream, &found);
	if (r == 0)
		*flags = hccld_stream_settings(found)->flags;
	return hccld_acl_result(r);
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
	struct hccld_stream *found;
	int r;

	if (!streamId)
		return null_error(__func__, "streamId");
	r = hccld_stream_get(stream, &found);
	if (r == 0)
		*streamId = (int32_t)hccld_stream_id(found);
	return hccld_acl_result(r);
}

aclError aclrtGetStreamAvailableNum(uint32_t *streamCount)
{
	if (!streamCount)
		return null_error(__func__, "streamCount");
	*streamCount = hccld_stream_room();
	return ACL_SUCCESS;
}

static int set_failure_mode(const char *function, aclrtStream stream, uint64_t mode)
{
	struct hccld_stream *found;
	int r;

	if (mode > ACL_STOP_ON_FAILURE)
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: mode is %" PRIu64 "; expected ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE",
				   function, mode);
	r = hccld_stream_get(stream, &found);
	return r < 0 ? r : hccld_stream_set_failure_mode(found, mode);
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
	return hccld_acl_result(set_failure_mode(__func__, stream, mode));
}

static int attribute_error(const char *function, aclrtStreamAttr type)
{
	return hccld_error(CAUSE_ARGUMENT, "%s: stmAttrType is %d, which aclrtStreamAttr does not have", function, (int)type);
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
				 aclrtStreamAttrValue *value)
{
	struct hccld_stream *found;
	int r;

	if (!value)
		return null_error(__func__, "value");
	r = hccld_stream_get(stream, &found);
	if (r < 0)
		return hccld_acl_result(r);
	switch (stmAttrType) {
	case ACL_STREAM_ATTR_FAILURE_MODE:
		r = set_failure_mode(__func__, stream, value->failureMode);
		break;
	case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
		hccld_stream_settings(found)->overflow_switch = value->overflowSwitch;
		break;
	case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
		hccld_stream_settings(found)->custom_tag = value->userCustomTag;
		break;
	case ACL_STREAM_ATTR_CACHE_OP_INFO:
		hccld_stream_settings(found)->cache_op_info = value->cacheOpInfoSwitch;
		break;
	default:
		r = attribute_error(__func__, stmAttrType);
	}
	return hccld_acl_result(r);
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
				 aclrtStreamAttrValue *value)
{
	struct hccld_stream *found;
	int r;

	if (!value)
		return null_error(__func__, "value");
	r = hccld_stream_get(stream, &found);
	if (r < 0)
		return hccld_acl_result(r);
	switch (stmAttrType) {
	case ACL_STREAM_ATTR_FAILURE_MODE:
		value->failureMode = hccld_stream_failure_mode(found);
		break;
	case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
		value->overflowSwitch = hccld_stream_settings(found)->overflow_switch;
		break;
	case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
		value->userCustomTag = hccld_stream_settings(found)->custom_tag;
		break;
	case ACL_STREAM_ATTR_CACHE_OP_INFO:
		value->cacheOpInfoSwitch = hccld_stream_settings(found)->cache_op_info;
		break;
	default:
		r = attribute_error(__func__, stmAttrType);
	}
	return hccld_acl_result(r);
}

static aclError abort_stream(aclrtStream handle, bool only_head)
{
	struct hccld_stream *stream;
	int r = hccld_stream_get(handle, &stream);

	return hccld_acl_result(r < 0 ? r : hccld_stream_abort(hccld_stream_context(stream), stream, only_head, 0));
}

aclError aclrtStreamAbort(aclrtStream stream)
{
	return abort_stream(stream, false);
}

aclError aclrtStreamStop(aclrtStream stream)
{
	return abort_stream(stream, true);
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout)
{
	struct hccld_context *context;
	int r = hccld_device_context(deviceId, &context);

	return hccld_acl_result(r < 0 ? r : hccld_stream_abort(context, NULL, false, timeout));
}

/* ---- reductions ---- */

/* What can be reduced: HcclDataType, and bytes of an element. */
static const struct reduction_type {
	aclDataType acl;
	uint8_t type, width;
} reduction_types[] = {
	{ ACL_FLOAT, 4, 4 }, { ACL_FLOAT16, 3, 2 }, { ACL_INT8, 0, 1 },	   { ACL_INT32, 2, 4 }, { ACL_UINT8, 7, 1 },   { ACL_INT16, 1, 2 },
	{ ACL_UINT16, 8, 2 }, { ACL_UINT32, 9, 4 }, { ACL_INT64, 5, 8 }, { ACL_UINT64, 6, 8 }, { ACL_DOUBLE, 10, 8 }, { ACL_BF16, 11, 2 },
};

static const struct reduction_type *find_reduction_type(aclDataType type)
{
	for (size_t i = 0; i < sizeof(reduction_types) / sizeof(reduction_types[0]); i++)
		if (reduction_types[i].acl == type)
			return &reduction_types[i];
	return NULL;
}

static int reduction_op(const char *function, aclrtReduceKind kind, uint32_t *ret_op)
{
	switch (kind) {
	case ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM: *ret_op = 0; return 0;
	case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX: *ret_op = 2; return 0;
	case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN: *ret_op = 3; return 0;
	case ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL:
		return hccld_error(CAUSE_NOT_SUPPORTED, "%s: kind is ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL, which is not supported", function);
	default:
		return hccld_error(CAUSE_ARGUMENT, "%s: kind is %d; expected a value of aclrtReduceKind (10 to 13)", function, (int)kind);
	}
}

aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type, aclrtStream stream,
			  void *reserve)
{
	const struct reduction_type *element = find_reduction_type(type);
	struct hccld_stream *found;
	uint32_t op = 0;
	int r;

	if (!dst || !src)
		return null_error(__func__, dst ? "src" : "dst");
	if (reserve)
		return hccld_acl_result(hccld_error(CAUSE_ARGUMENT, "%s: reserve is %p; expected NULL", __func__, reserve));
	r = reduction_op(__func__, kind, &op);
	if (r < 0)
		return hccld_acl_result(r);
	if (!element)
		return hccld_acl_result(hccld_error(CAUSE_NOT_SUPPORTED, "%s: type is %d, which cannot be reduced", __func__, (int)type));
	if (!count || count % element->width)
		return hccld_acl_result(hccld_error(CAUSE_ARGUMENT, "%s: count is %" PRIu64 " bytes; expected a multiple of %u, an element of the type",
						    __func__, count, element->width));
	r = hccld_stream_get(stream, &found);
	if (r == 0)
		r = hccld_reduce_submit(__func__, found, dst, src, count / element->width, element->type, op);
	return hccld_acl_result(r);
}

/* ---- errors in flight ---- */

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback)
{
	hccld_exception_set((void (*)(void *))callback);
	return ACL_SUCCESS;
}

aclError aclrtGetThreadLastTaskId(uint32_t *taskId)
{
	if (!taskId)
		return null_error(__func__, "taskId");
	if (hccld_thread_last_task(taskId))
		return ACL_SUCCESS;
	return hccld_acl_result(hccld_error(CAUSE_NOT_FOUND, "%s: this thread has queued no task", __func__));
}

#define EXCEPTION_FIELD(info, field) ((info) ? ((const struct hccld_exception *)(info))->field : UINT32_MAX)

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return EXCEPTION_FIELD(info, task);
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return EXCEPTION_FIELD(info, stream);
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return EXCEPTION_FIELD(info, thread);
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return EXCEPTION_FIELD(info, device);
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info)
{
	return EXCEPTION_FIELD(info, code);
}
