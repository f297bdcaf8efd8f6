/* SPDX-License-Identifier: Apache-2.0 */
/* Values, time-outs, failure modes and what ends tasks, through the public functions. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"

#define LARGE (8u << 20)

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void values(void)
{
	aclrtStreamStatus status;
	aclrtStream stream, other;
	uint64_t *words, host;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtCreateStream(&other));
	words = job_memory(64, 0);
	check_fails(aclrtValueWrite(NULL, 1, 0, stream), ACL_ERROR_INVALID_PARAM, "devAddr");
	check_fails(aclrtValueWrite(&host, 1, 0, stream), ACL_ERROR_RT_PARAM_INVALID, "not 8 bytes");
	check_fails(aclrtValueWrite((char *)words + 4, 1, 0, stream), ACL_ERROR_RT_PARAM_INVALID, "multiple of 8");
	check_fails(aclrtValueWrite(words, 1, 1, stream), ACL_ERROR_RT_PARAM_INVALID, "flag");
	check_fails(aclrtValueWait(words, 1, 4, stream), ACL_ERROR_RT_PARAM_INVALID, "flag");
	/* each comparison: not yet, then met by another stream's write */
	check_ok(aclrtValueWait(&words[0], 3, ACL_STREAM_WAIT_VALUE_GEQ, stream));
	check_ok(aclrtValueWait(&words[1], 3, ACL_STREAM_WAIT_VALUE_EQ, stream));
	check_ok(aclrtValueWait(&words[2], 6, ACL_STREAM_WAIT_VALUE_AND, stream));
	check_ok(aclrtMemsetAsync(&words[3], 8, 0xff, 8, stream));
	check_ok(aclrtValueWait(&words[3], 1, ACL_STREAM_WAIT_VALUE_NOR, stream));
	for (int i = 0; i < 4; i++) {
		check_ok(aclrtStreamQuery(stream, &status));
		check_eq_int(status, ACL_STREAM_STATUS_NOT_READY);
		if (i == 0)
			check_ok(aclrtValueWrite(&words[0], 2, 0, other));
		check_ok(aclrtValueWrite(&words[i], i == 0 ? 4 : i == 1 ? 3 : i == 2 ? 2 : ~1ull - 2, 0, other));
		check_ok(aclrtSynchronizeStream(other));
	}
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_uint(words[0], 4);
	/* a copy meets it, too */
	check_ok(aclrtValueWait(&words[4], 4, ACL_STREAM_WAIT_VALUE_EQ, stream));
	check_ok(aclrtMemcpyAsync(&words[4], 8, &words[0], 8, ACL_MEMCPY_DEVICE_TO_DEVICE, other));
	check_ok(aclrtSynchronizeStream(stream));
}

TEST_TIMEOUT(acl_streams_write_and_wait_for_values, 60)
{
	job_run(values);
}

static void time_outs(void)
{
	aclrtStream stream;
	aclrtEvent event;
	unsigned char *memory;
	uint64_t start;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtCreateEvent(&event));
	memory = job_memory(100, 0);
	start = now_ms();
	check_ok(aclrtStreamWaitEventWithTimeout(stream, event, 300));
	check_ok(aclrtMemsetAsync(memory, 100, 3, 100, stream));
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "did not come");
	check_ge_uint(now_ms() - start, 300);
	check_eq_int(memory[99], 3);
	check_ok(aclrtSynchronizeStream(stream));
	/* the default of aclrtStreamWaitEvent */
	check_ok(aclrtSetOpWaitTimeout(1));
	check_ok(aclrtStreamWaitEvent(stream, event));
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, NULL);
	check_ok(aclrtSetOpWaitTimeout(0));
}

TEST_TIMEOUT(acl_waits_for_events_time_out, 60)
{
	job_run(time_outs);
}

static _Atomic uint32_t exceptions, exception_code, exception_stream, exception_task, exception_thread;

static void on_exception(aclrtExceptionInfo *info)
{
	atomic_fetch_add(&exceptions, 1);
	exception_code = aclrtGetErrorCodeFromExceptionInfo(info);
	exception_stream = aclrtGetStreamIdFromExceptionInfo(info);
	exception_task = aclrtGetTaskIdFromExceptionInfo(info);
	exception_thread = aclrtGetThreadIdFromExceptionInfo(info);
	check_eq_uint(aclrtGetDeviceIdFromExceptionInfo(info), 0);
}

static void failure_modes(void)
{
	aclrtStreamAttrValue value = { .failureMode = 9 };
	aclrtStream stops, goes_on;
	unsigned char *memory;
	aclrtEvent never, after;
	uint32_t task;
	int32_t id;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stops));
	check_ok(aclrtCreateStream(&goes_on));
	check_ok(aclrtCreateEvent(&never));
	check_ok(aclrtCreateEvent(&after));
	memory = job_memory(100, 0);
	check_ok(aclrtSetExceptionInfoCallback(on_exception));
	check_fails(aclrtSetStreamFailureMode(stops, 2), ACL_ERROR_RT_PARAM_INVALID, "mode");
	check_fails(aclrtSetStreamAttribute(stops, ACL_STREAM_ATTR_FAILURE_MODE, &value), ACL_ERROR_RT_PARAM_INVALID, "mode");
	check_ok(aclrtSetStreamFailureMode(stops, ACL_STOP_ON_FAILURE));
	check_ok(aclrtGetStreamAttribute(stops, ACL_STREAM_ATTR_FAILURE_MODE, &value));
	check_eq_uint(value.failureMode, ACL_STOP_ON_FAILURE);
	for (int i = 0; i < 2; i++) {
		aclrtStream stream = i ? stops : goes_on;

		check_ok(aclrtStreamWaitEventWithTimeout(stream, never, 100));
		check_ok(aclrtGetThreadLastTaskId(&task));
		check_ok(aclrtMemsetAsync(memory + i, 1, 1, 1, stream));
		check_ok(aclrtRecordEvent(after, stream));
		check_ok(aclrtSynchronizeEvent(after));
		check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, NULL);
		check_eq_uint(exceptions, (unsigned int)i + 1);
		check_eq_uint(exception_code, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
		check_eq_uint(exception_task, task);
		check_eq_uint(exception_thread, (uint32_t)gettid());
		check_ok(aclrtStreamGetId(stream, &id));
		check_eq_uint(exception_stream, (uint32_t)id);
	}
	check_eq_int(memory[0], 1);
	check_eq_int(memory[1], 0);
	check_ok(aclrtMemsetAsync(memory, 1, 2, 1, goes_on));
	check_fails(aclrtMemsetAsync(memory, 1, 3, 1, stops), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "STOP_ON_FAILURE");
	check_ok(aclrtDestroyStream(stops));
	check_ok(aclrtSynchronizeStream(goes_on));
	check_eq_int(memory[0], 2);
	check_ok(aclrtSetExceptionInfoCallback(NULL));
	check_eq_uint(aclrtGetTaskIdFromExceptionInfo(NULL), UINT32_MAX);
}

TEST_TIMEOUT(acl_streams_stop_on_failure_or_go_on, 60)
{
	job_run(failure_modes);
}

static void *wait_for_stream(void *arg)
{
	check_fails(aclrtSynchronizeStream(arg), ACL_ERROR_RT_DEVICE_TASK_ABORT, "aclrtDeviceTaskAbort");
	return NULL;
}

static void aborts(void)
{
	aclrtStream streams[3], waits;
	unsigned char *memory;
	aclrtEvent never, recorded;
	pthread_t thread;

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 3; i++)
		check_ok(aclrtCreateStream(&streams[i]));
	check_ok(aclrtSetDevice(1));
	check_ok(aclrtCreateStream(&waits));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateEvent(&never));
	check_ok(aclrtCreateEvent(&recorded));
	memory = job_memory(LARGE, 0);
	check_fails(aclrtDeviceTaskAbort(77, 0), ACL_ERROR_RT_INVALID_DEVICEID, "77");
	check_fails(aclrtDeviceTaskAbort(2, 0), ACL_ERROR_RT_CONTEXT_NULL, "device 2");
	check_ok(aclrtStreamWaitEvent(streams[0], never));
	check_ok(aclrtMemsetAsync(memory, 1, 1, 1, streams[0]));
	check_ok(aclrtRecordEvent(recorded, streams[0]));
	check_ok(aclrtStreamWaitEvent(waits, recorded));
	check_ok(aclrtMemsetAsync(memory + 8, LARGE / 2, 1, LARGE / 2, streams[1]));
	check_eq_int(pthread_create(&thread, NULL, wait_for_stream, streams[0]), 0);
	usleep(50000);
	check_ok(aclrtDeviceTaskAbort(0, 10000));
	pthread_join(thread, NULL);
	(void)aclrtSynchronizeStream(streams[1]);
	check_ok(aclrtSynchronizeStream(streams[2]));
	/* a stream of another device waited for what was to come: it goes on */
	check_ok(aclrtSynchronizeStream(waits));
	check_eq_int(memory[0], 0);
	/* all can be used */
	for (int i = 0; i < 3; i++) {
		check_ok(aclrtMemsetAsync(memory, 1, 10 + i, 1, streams[i]));
		check_ok(aclrtSynchronizeStream(streams[i]));
		check_eq_int(memory[0], 10 + i);
	}
	/* one stream; then one task */
	check_ok(aclrtStreamWaitEvent(streams[0], never));
	check_ok(aclrtMemsetAsync(memory, 1, 1, 1, streams[0]));
	check_ok(aclrtStreamAbort(streams[0]));
	check_fails(aclrtSynchronizeStream(streams[0]), ACL_ERROR_RT_STREAM_ABORT, "aclrtStreamAbort");
	check_eq_int(memory[0], 12);
	check_ok(aclrtStreamWaitEvent(streams[0], never));
	check_ok(aclrtMemsetAsync(memory, 1, 1, 1, streams[0]));
	check_ok(aclrtStreamStop(streams[0]));
	check_fails(aclrtSynchronizeStream(streams[0]), ACL_ERROR_RT_STREAM_ABORT, NULL);
	check_eq_int(memory[0], 1);
}

TEST_TIMEOUT(acl_tasks_are_aborted, 60)
{
	job_run(aborts);
}

/* A stream that goes by force, or with its device, leaves nobody waiting. */
static void forced(void)
{
	aclrtStream held, waits;
	aclrtEvent never, recorded;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&waits));
	check_ok(aclrtSetDevice(1));
	check_ok(aclrtCreateStream(&held));
	check_ok(aclrtCreateEvent(&never));
	check_ok(aclrtCreateEvent(&recorded));
	check_ok(aclrtStreamWaitEvent(held, never));
	check_ok(aclrtRecordEvent(recorded, held));
	check_ok(aclrtStreamWaitEvent(waits, recorded));
	check_ok(aclrtDestroyStreamForce(held));
	check_ok(aclrtSynchronizeStream(waits));
	check_ok(aclrtSynchronizeEvent(recorded));
	check_ok(aclrtStreamWaitEvent(waits, never));
	check_ok(aclrtResetDeviceForce(1));
	check_fails(aclrtSynchronizeStream(waits), ACL_ERROR_RT_DEVICE_TASK_ABORT, NULL);
}

TEST_TIMEOUT(acl_waits_end_with_what_they_wait_for, 60)
{
	job_run(forced);
}

static void attributes(void)
{
	aclrtStreamAttrValue value;
	int32_t least, greatest, first_id, second_id;
	uint32_t priority, flags, room, after;
	aclrtStream stream, other;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
	check_eq_int(least, 7);
	check_eq_int(greatest, 0);
	check_ok(aclrtGetStreamAvailableNum(&room));
	check_fails(aclrtCreateStreamWithConfig(&stream, 8, 0), ACL_ERROR_RT_PARAM_INVALID, "priority");
	check_fails(aclrtCreateStreamWithConfig(&stream, 0, 0x100), ACL_ERROR_RT_PARAM_INVALID, "flag");
	check_ok(aclrtCreateStreamWithConfig(&stream, 3, ACL_STREAM_FAST_SYNC));
	check_ok(aclrtCreateStream(&other));
	check_ok(aclrtGetStreamAvailableNum(&after));
	check_eq_uint(after, room - 2);
	check_ok(aclrtStreamGetPriority(stream, &priority));
	check_eq_uint(priority, 3);
	check_ok(aclrtStreamGetFlags(stream, &flags));
	check_eq_uint(flags, ACL_STREAM_FAST_SYNC);
	check_ok(aclrtStreamGetPriority(other, &priority));
	check_eq_uint(priority, 0);
	check_ok(aclrtStreamGetId(stream, &first_id));
	check_ok(aclrtStreamGetId(other, &second_id));
	check_ne_int(first_id, second_id);
	value.userCustomTag = 4711;
	check_ok(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
	value.userCustomTag = 0;
	check_ok(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
	check_eq_uint(value.userCustomTag, 4711);
	check_fails(aclrtGetStreamAttribute(stream, (aclrtStreamAttr)77, &value), ACL_ERROR_RT_PARAM_INVALID, "77");
	check_fails(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, NULL), ACL_ERROR_INVALID_PARAM, "value");
}

TEST(acl_streams_have_attributes)
{
	job_run(attributes);
}

/* ---- the last error, and what else is the thread's or the process's ---- */

static void *other_thread(void *arg)
{
	check_ok(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
	return NULL;
}

static void last_error(void)
{
	pthread_t thread;
	void *memory;

	check_ok(aclrtGetLastError(ACL_RT_THREAD_LEVEL));
	check_fails(aclrtSetDevice(64), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
	check_fails(aclrtMalloc(NULL, 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM, NULL);
	/* what succeeds changes nothing */
	check_ok(aclrtSetDevice(0));
	check_eq_int(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
	check_eq_int(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
	check_eq_int(pthread_create(&thread, NULL, other_thread, NULL), 0);
	pthread_join(thread, NULL);
	check_eq_int(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
	check_ok(aclrtGetLastError(ACL_RT_THREAD_LEVEL));
	/* also errors in flight, when they are reported */
	memory = job_memory(64, 0);
	check_ok(aclrtValueWait(memory, 7, ACL_STREAM_WAIT_VALUE_EQ, NULL));
	check_ok(aclrtStreamAbort(NULL));
	check_fails(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_STREAM_ABORT, NULL);
	check_eq_int(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_STREAM_ABORT);
	check_fails(aclrtGetLastError((aclrtLastErrLevel)1), ACL_ERROR_RT_PARAM_INVALID, "level is 1");
	check_fails(aclrtPeekAtLastError((aclrtLastErrLevel)7), ACL_ERROR_RT_PARAM_INVALID, "level is 7");
}

TEST(acl_a_thread_has_a_last_error)
{
	job_run(last_error);
}

static void kernel_limits(void)
{
	uint64_t step = 0, actual = 0;

	check_ok(aclrtGetOpTimeOutInterval(&step));
	check_eq_uint(step, 1000);
	check_fails(aclrtGetOpTimeOutInterval(NULL), ACL_ERROR_INVALID_PARAM, "interval");
	check_ok(aclrtSetOpExecuteTimeOut(5));
	check_ok(aclrtSetOpExecuteTimeOutWithMs(5));
	check_ok(aclrtSetOpExecuteTimeOutV2(5001, &actual));
	check_eq_uint(actual, 6000);
	check_ok(aclrtSetOpExecuteTimeOutV2(3 * step, &actual));
	check_eq_uint(actual, 3000);
	check_fails(aclrtSetOpExecuteTimeOutV2(5, NULL), ACL_ERROR_INVALID_PARAM, "actualTimeout");
	check_fails(aclrtSetOpExecuteTimeOutV2(UINT64_MAX, &actual), ACL_ERROR_RT_PARAM_INVALID, "timeout");
}

TEST(acl_limits_of_kernels_have_steps)
{
	job_run(kernel_limits);
}

static void streams_by_handle(void)
{
	aclrtStreamConfigHandle config = { .flag = ACL_STREAM_FAST_SYNC, .priority = 3 };
	aclrtStream stream;
	uint32_t value;

	check_fails(aclrtCreateStreamV2(NULL, &config), ACL_ERROR_INVALID_PARAM, "stream is NULL");
	check_fails(aclrtCreateStreamV2(&stream, NULL), ACL_ERROR_INVALID_PARAM, "handle is NULL");
	check_fails(aclrtCreateStreamV2(&stream, &config), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetDevice(0));
	config.priority = 8;
	check_fails(aclrtCreateStreamV2(&stream, &config), ACL_ERROR_RT_PARAM_INVALID, "priority is 8");
	config.priority = 3;
	config.flag = (size_t)1 << 40;
	check_fails(aclrtCreateStreamV2(&stream, &config), ACL_ERROR_RT_PARAM_INVALID, "flag is 0x10000000000");
	config.flag = ACL_STREAM_FAST_SYNC;
	check_ok(aclrtCreateStreamV2(&stream, &config));
	check_ok(aclrtStreamGetPriority(stream, &value));
	check_eq_uint(value, 3);
	check_ok(aclrtStreamGetFlags(stream, &value));
	check_eq_uint(value, ACL_STREAM_FAST_SYNC);
	check_ok(aclrtSynchronizeStream(stream));
	check_ok(aclrtDestroyStream(stream));
}

TEST(acl_streams_are_made_by_a_handle)
{
	job_run(streams_by_handle);
}
