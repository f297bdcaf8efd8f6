/* SPDX-License-Identifier: Apache-2.0 */
/* Events, through the public functions. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/job.h"

#define LARGE (8u << 20)

static bool is_recorded(aclrtEvent event)
{
	aclrtEventRecordedStatus recorded;
	aclrtEventStatus status;

	check_ok(aclrtQueryEventStatus(event, &recorded));
	check_ok(aclrtQueryEvent(event, &status));
	/* "complete" is 1 in the one and 0 in the other; between the two questions it may become so */
	if (recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE)
		check_eq_int(status, ACL_EVENT_STATUS_COMPLETE);
	return recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE;
}

static void codes(void)
{
	aclrtEventRecordedStatus recorded;
	aclrtEvent event, other, timeless, extended;
	aclrtStream stream;
	uint64_t time;
	uint32_t id, room, more;
	float ms;

	check_fails(aclrtCreateEvent(NULL), ACL_ERROR_INVALID_PARAM, "event");
	check_fails(aclrtCreateEvent(&event), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_fails(aclrtCreateEventWithFlag(&event, 0), ACL_ERROR_RT_PARAM_INVALID, "flag");
	check_fails(aclrtCreateEventWithFlag(&event, 0x1000), ACL_ERROR_RT_PARAM_INVALID, "0x1000");
	check_ok(aclrtGetEventAvailNum(&room));
	check_ok(aclrtCreateEvent(&event));
	check_ok(aclrtCreateEventWithFlag(&other, ACL_EVENT_TIME_LINE));
	check_ok(aclrtCreateEventWithFlag(&timeless, ACL_EVENT_SYNC));
	check_ok(aclrtCreateEventExWithFlag(&extended, ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS));
	check_ok(aclrtGetEventAvailNum(&more));
	check_eq_uint(more, room - 4);
	check_ok(aclrtGetEventId(event, &id));
	check_fails(aclrtGetEventId(event, NULL), ACL_ERROR_INVALID_PARAM, "eventId");
	/* never recorded */
	check(!is_recorded(event));
	check(is_recorded(extended));
	check_fails(aclrtSynchronizeEvent(event), ACL_ERROR_RT_PARAM_INVALID, "not recorded");
	check_ok(aclrtSynchronizeEvent(extended));
	check_fails(aclrtEventElapsedTime(&ms, event, other), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "not recorded");
	check_fails(aclrtEventElapsedTime(NULL, event, other), ACL_ERROR_INVALID_PARAM, "ms");
	check_fails(aclrtEventGetTimestamp(event, &time), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, NULL);
	check_ok(aclrtRecordEvent(timeless, stream));
	check_ok(aclrtSynchronizeEvent(timeless));
	check_fails(aclrtEventGetTimestamp(timeless, &time), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "TIME_LINE");
	/* bad handles */
	check_fails(aclrtRecordEvent(NULL, stream), ACL_ERROR_INVALID_PARAM, "event");
	check_fails(aclrtRecordEvent(stream, stream), ACL_ERROR_RT_INVALID_HANDLE, "no event");
	check_fails(aclrtRecordEvent(event, event), ACL_ERROR_RT_INVALID_HANDLE, "no stream");
	check_fails(aclrtStreamWaitEvent(stream, NULL), ACL_ERROR_INVALID_PARAM, "event");
	check_fails(aclrtStreamWaitEvent(event, event), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_fails(aclrtQueryEventStatus(event, NULL), ACL_ERROR_INVALID_PARAM, "status");
	check_fails(aclrtQueryEventStatus((char *)event + 1, &recorded), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_fails(aclrtSynchronizeEventWithTimeout(event, -2), ACL_ERROR_RT_PARAM_INVALID, "-2");
	check_fails(aclrtStreamWaitEventWithTimeout(stream, event, -2), ACL_ERROR_RT_PARAM_INVALID, "-2");
	check_ok(aclrtDestroyEvent(event));
	check_fails(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
	check_fails(aclrtRecordEvent(event, stream), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	/* those of a device that is reset */
	check_ok(aclrtRecordEvent(other, NULL));
	check_ok(aclrtResetDevice(0));
	check_fails(aclrtQueryEventStatus(other, &recorded), ACL_ERROR_RT_INVALID_HANDLE, "reset");
	check_ok(aclrtDestroyEvent(other));
}

TEST(acl_events_have_the_codes_of_cann)
{
	job_run(codes);
}

/* A chain over streams of two devices: each adds to what the one before has written. */
static void order(void)
{
	enum { STREAMS = 6, ROUNDS = 200 };
	aclrtStream streams[STREAMS];
	aclrtEvent events[STREAMS];
	unsigned char *memory;

	check_ok(aclrtSetDevice(1));
	check_ok(aclrtSetDevice(0));
	memory = job_memory(LARGE * 2, 0);
	for (int i = 0; i < STREAMS; i++) {
		check_ok(aclrtSetDevice(i % 2));
		check_ok(aclrtCreateStream(&streams[i]));
		check_ok(aclrtCreateEventWithFlag(&events[i], ACL_EVENT_SYNC));
	}
	for (int round = 0; round < ROUNDS; round++) {
		size_t size = round % 20 ? 64 : 300000;

		for (int i = 0; i < STREAMS; i++) {
			if (round || i)
				check_ok(aclrtStreamWaitEvent(streams[i], events[(i + STREAMS - 1) % STREAMS]));
			if (i == 0)
				check_ok(aclrtMemsetAsync(memory, size, round, size, streams[i]));
			else
				check_ok(aclrtMemcpyAsync(memory + (size_t)i * 400000, size, memory + (size_t)(i - 1) * 400000, size,
							  ACL_MEMCPY_DEVICE_TO_DEVICE, streams[i]));
			check_ok(aclrtRecordEvent(events[i], streams[i]));
		}
		if (round % 10)
			continue;
		check_ok(aclrtSynchronizeEvent(events[STREAMS - 1]));
		check_eq_int(memory[(STREAMS - 1) * 400000], (unsigned char)round);
		check_eq_int(memory[(STREAMS - 1) * 400000 + size - 1], (unsigned char)round);
	}
	check_ok(aclrtSynchronizeDevice());
	for (int i = 0; i < STREAMS; i++) {
		check_ok(aclrtDestroyEvent(events[i]));
		check_ok(aclrtDestroyStream(streams[i]));
	}
}

TEST_TIMEOUT(acl_events_order_streams_of_two_devices, 60)
{
	job_run(order);
}

struct recorder {
	aclrtEvent event;
	aclrtStream stream;
	unsigned char *memory;
};

static void *record_later(void *arg)
{
	const struct recorder *recorder = arg;

	check_ok(aclrtSetDevice(1));
	usleep(200000);
	check_ok(aclrtMemsetAsync(recorder->memory, LARGE, 7, LARGE, recorder->stream));
	check_ok(aclrtRecordEvent(recorder->event, recorder->stream));
	return NULL;
}

/* The wait comes first; the copy behind it must see what the other thread's stream has written. */
static void wait_first(void)
{
	aclrtEventWaitStatus waits;
	aclrtStreamStatus status;
	struct recorder recorder;
	unsigned char *copy, host[16] = { 0 };
	aclrtStream stream;
	pthread_t thread;

	check_ok(aclrtSetDevice(1));
	check_ok(aclrtCreateStream(&recorder.stream));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	recorder.memory = job_memory(LARGE, 1);
	copy = job_memory(LARGE, 2);
	check_ok(aclrtCreateEvent(&recorder.event));
	check_ok(aclrtStreamWaitEvent(stream, recorder.event));
	check_ok(aclrtMemcpyAsync(copy, LARGE, recorder.memory, LARGE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
	/* and to memory that this process has to write itself */
	check_ok(aclrtMemcpyAsync(host, sizeof(host), copy + LARGE - 16, 16, ACL_MEMCPY_DEVICE_TO_HOST, stream));
	check_eq_int(pthread_create(&thread, NULL, record_later, &recorder), 0);
	check_ok(aclrtStreamQuery(stream, &status));
	check_eq_int(status, ACL_STREAM_STATUS_NOT_READY);
	check_ok(aclrtQueryEventWaitStatus(recorder.event, &waits));
	check_eq_int(waits, ACL_EVENT_WAIT_STATUS_NOT_READY);
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_int(copy[0], 7);
	check_eq_int(copy[LARGE - 1], 7);
	check_eq_int(host[15], 7);
	check_ok(aclrtQueryEventWaitStatus(recorder.event, &waits));
	check_eq_int(waits, ACL_EVENT_WAIT_STATUS_COMPLETE);
	pthread_join(thread, NULL);
}

TEST_TIMEOUT(acl_event_waits_for_a_record_to_come, 60)
{
	job_run(wait_first);
}

/* What was copied to ordinary memory by another stream is there when the event that came after it is. */
static void other_streams_copies(void)
{
	unsigned char *memory, host[100];
	aclrtStream first, second;
	aclrtEvent event, last;

	check_ok(aclrtSetDevice(0));
	memory = job_memory(100, 0);
	check_ok(aclrtCreateStream(&first));
	check_ok(aclrtCreateStream(&second));
	check_ok(aclrtCreateEvent(&event));
	check_ok(aclrtCreateEvent(&last));
	for (int i = 1; i < 300; i++) {
		memset(host, 0, sizeof(host));
		check_ok(aclrtMemsetAsync(memory, 100, i, 100, first));
		check_ok(aclrtMemcpyAsync(host, 100, memory, 100, ACL_MEMCPY_DEVICE_TO_HOST, first));
		check_ok(aclrtRecordEvent(event, first));
		check_ok(aclrtStreamWaitEvent(second, event));
		check_ok(aclrtRecordEvent(last, second));
		if (i % 3 == 0)
			check_ok(aclrtSynchronizeEvent(last));
		else if (i % 3 == 1)
			check_ok(aclrtSynchronizeStream(second));
		else
			while (!is_recorded(last))
				;
		check_eq_int(host[0], (unsigned char)i);
		check_eq_int(host[99], (unsigned char)i);
	}
}

TEST_TIMEOUT(acl_events_bring_what_other_streams_have_copied, 60)
{
	job_run(other_streams_copies);
}

static void times(void)
{
	uint64_t *word, from, to;
	aclrtEvent start, end;
	aclrtStream stream;
	float ms;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtCreateEvent(&start));
	check_ok(aclrtCreateEvent(&end));
	word = job_memory(64, 0);
	/* the stream is held for 150 ms between the two */
	check_ok(aclrtRecordEvent(start, stream));
	check_ok(aclrtValueWait(word, 5, ACL_STREAM_WAIT_VALUE_EQ, stream));
	check_ok(aclrtRecordEvent(end, stream));
	check_ok(aclrtSynchronizeEvent(start));
	check_fails(aclrtEventElapsedTime(&ms, start, end), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "not complete");
	check_fails(aclrtSynchronizeEventWithTimeout(end, 20), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "20 ms");
	usleep(150000);
	atomic_store((_Atomic uint64_t *)word, 5);
	check_ok(aclrtSynchronizeEventWithTimeout(end, 100000));
	check_ok(aclrtEventElapsedTime(&ms, start, end));
	check_gt_int((int)ms, 149);
	check_lt_int((int)ms, 20 * 150);
	check_ok(aclrtEventGetTimestamp(start, &from));
	check_ok(aclrtEventGetTimestamp(end, &to));
	check_gt_uint(to - from, 149000);
	check_fails(aclrtEventElapsedTime(&ms, end, start), ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, NULL);
	/* reset: not complete until it is recorded again */
	check(is_recorded(end));
	check_ok(aclrtResetEvent(end, stream));
	check(!is_recorded(end));
	check_fails(aclrtEventElapsedTime(&ms, start, end), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, NULL);
	check_ok(aclrtRecordEvent(end, stream));
	check_ok(aclrtSynchronizeStream(stream));
	check(is_recorded(end));
}

TEST_TIMEOUT(acl_events_tell_the_time, 60)
{
	job_run(times);
}

/* An event that is recorded in a second stream while the first record is still to come: waits get the record they were made for. */
static void recorded_twice(void)
{
	aclrtStream held, quick, waits_first, waits_second;
	aclrtStreamStatus status;
	aclrtEvent event;
	uint64_t *words;

	check_ok(aclrtSetDevice(0));
	words = job_memory(64, 0);
	check_ok(aclrtCreateStream(&held));
	check_ok(aclrtCreateStream(&quick));
	check_ok(aclrtCreateStream(&waits_first));
	check_ok(aclrtCreateStream(&waits_second));
	check_ok(aclrtCreateEvent(&event));
	check_ok(aclrtValueWait(&words[0], 1, ACL_STREAM_WAIT_VALUE_GEQ, held));
	check_ok(aclrtRecordEvent(event, held));
	check_ok(aclrtStreamWaitEvent(waits_first, event));
	check_ok(aclrtRecordEvent(event, quick));
	check_ok(aclrtStreamWaitEvent(waits_second, event));
	check_ok(aclrtSynchronizeEvent(event));
	check_ok(aclrtSynchronizeStream(waits_second));
	check_ok(aclrtStreamQuery(waits_first, &status));
	check_eq_int(status, ACL_STREAM_STATUS_NOT_READY);
	/* destroyed while a record and a wait are queued; another event takes its place in memory or not, as it likes */
	check_ok(aclrtDestroyEvent(event));
	for (int i = 0; i < 2000; i++) {
		check_ok(aclrtCreateEvent(&event));
		check_ok(aclrtRecordEvent(event, quick));
		check_ok(aclrtSynchronizeEvent(event));
		check_ok(aclrtDestroyEvent(event));
	}
	check_ok(aclrtStreamQuery(waits_first, &status));
	check_eq_int(status, ACL_STREAM_STATUS_NOT_READY);
	check_ok(aclrtValueWrite(&words[0], 1, 0, quick));
	check_ok(aclrtSynchronizeStream(waits_first));
	check_eq_uint(words[0], 1);
}

TEST_TIMEOUT(acl_waits_get_the_record_they_were_made_for, 60)
{
	job_run(recorded_twice);
}

static uint64_t resident_kib(void)
{
	unsigned long pages, resident;
	FILE *file = fopen("/proc/self/statm", "r");

	check_ptr(file);
	check_eq_int(fscanf(file, "%lu %lu", &pages, &resident), 2);
	fclose(file);
	return resident * 4;
}

#ifdef __SANITIZE_ADDRESS__
#define GROWTH_KIB 16384u /* it keeps what is freed for a while */
#else
#define GROWTH_KIB 512u
#endif

static void many(void)
{
	uint32_t room, after;
	aclrtEvent events[100];
	aclrtStream streams[2];
	uint64_t before = 0;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&streams[0]));
	check_ok(aclrtCreateStream(&streams[1]));
	check_ok(aclrtGetEventAvailNum(&room));
	for (int round = 0; round < 120; round++) {
		if (round == 20)
			before = resident_kib();
		for (int i = 0; i < 100; i++) {
			check_ok(aclrtCreateEvent(&events[i]));
			check_ok(aclrtRecordEvent(events[i], streams[i % 2]));
			check_ok(aclrtStreamWaitEvent(streams[1 - i % 2], events[i]));
		}
		for (int i = 0; i < 100; i++)
			check_ok(aclrtDestroyEvent(events[i]));
	}
	check_ok(aclrtSynchronizeDevice());
	check_ok(aclrtGetEventAvailNum(&after));
	check_eq_uint(after, room);
	check_lt_uint(resident_kib(), before + GROWTH_KIB);
}

TEST_TIMEOUT(acl_events_come_and_go, 60)
{
	job_run(many);
}

/* Copies of several streams to the same memory of the program's own, in the order of an event: the later one stays. */
static void overwritten(void)
{
	unsigned char *device, *host = calloc(1, 1000);
	aclrtStream streams[2];
	aclrtEvent event;
	uint64_t *gate;

	check_ok(aclrtSetDevice(0));
	device = job_memory(2000, 1);
	memset(device + 1000, 2, 1000);
	gate = job_memory(sizeof(*gate), 0);
	check_ok(aclrtCreateEvent(&event));
	for (int i = 0; i < 2; i++)
		check_ok(aclrtCreateStream(&streams[i]));
	for (int round = 0; round < 40; round++) {
		aclrtStream first = streams[round % 2], second = streams[(round + 1) % 2];

		*gate = 0;
		memset(host, 0, 1000);
		check_ok(aclrtValueWait(gate, 1, ACL_STREAM_WAIT_VALUE_EQ, first));
		check_ok(aclrtMemcpyAsync(host, 1000, device, 1000, ACL_MEMCPY_DEVICE_TO_HOST, first));
		check_ok(aclrtRecordEvent(event, first));
		check_ok(aclrtStreamWaitEvent(second, event));
		check_ok(aclrtMemcpyAsync(host, 1000, device + 1000, 1000, ACL_MEMCPY_DEVICE_TO_HOST, second));
		*gate = 1;
		check_ok(aclrtSynchronizeStream(second));
		check_eq_int(host[0], 2);
		check_ok(aclrtSynchronizeStream(first));
		check_eq_int(host[999], 2);
	}
	free(host);
}

TEST_TIMEOUT(acl_events_order_copies_to_one_place, 60)
{
	job_run(overwritten);
}
