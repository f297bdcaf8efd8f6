/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions and callbacks, through the public functions. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/job.h"

#define ROUNDS 300

struct log {
	_Atomic uint32_t count;
	uint32_t entries[4 * ROUNDS];
	unsigned char *memory, seen[4 * ROUNDS];
	pthread_t thread;
};

struct entry {
	struct log *log;
	uint32_t number;
};

/* Functions of one stream run one after the other: no lock is needed. */
static void note(void *arg)
{
	struct entry *entry = arg;
	uint32_t at = atomic_load_explicit(&entry->log->count, memory_order_relaxed);

	entry->log->entries[at] = entry->number;
	if (entry->log->memory)
		entry->log->seen[at] = entry->log->memory[0];
	entry->log->thread = pthread_self();
	atomic_store(&entry->log->count, at + 1);
}

static void count(void *arg)
{
	atomic_fetch_add((_Atomic uint32_t *)arg, 1);
}

static void codes(void)
{
	_Atomic uint32_t runs = 0;
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_fails(aclrtLaunchHostFunc(stream, NULL, NULL), ACL_ERROR_INVALID_PARAM, "fn");
	check_fails(aclrtLaunchCallback(NULL, NULL, ACL_CALLBACK_BLOCK, stream), ACL_ERROR_INVALID_PARAM, "fn");
	check_fails(aclrtLaunchCallback(count, &runs, (aclrtCallbackBlockType)2, stream), ACL_ERROR_RT_PARAM_INVALID, "blockType");
	check_fails(aclrtLaunchHostFunc(&runs, count, &runs), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_fails(aclrtProcessReport(-2), ACL_ERROR_RT_PARAM_INVALID, "-2");
	check_fails(aclrtProcessReport(0), ACL_ERROR_RT_THREAD_SUBSCRIBE, "aclrtSubscribeReport");
	check_fails(aclrtSubscribeReport(0, stream), ACL_ERROR_RT_PARAM_INVALID, "threadId");
	check_fails(aclrtUnSubscribeReport((uint64_t)pthread_self(), stream), ACL_ERROR_RT_STREAM_SUBSCRIBE, NULL);
	check_ok(aclrtSubscribeReport((uint64_t)pthread_self(), stream));
	check_fails(aclrtSubscribeReport((uint64_t)pthread_self(), stream), ACL_ERROR_RT_STREAM_SUBSCRIBE, "already");
	check_fails(aclrtProcessReport(10), ACL_ERROR_RT_REPORT_TIMEOUT, "10 ms");
	check_ok(aclrtUnSubscribeReport((uint64_t)pthread_self(), stream));
	check_ok(aclrtLaunchHostFunc(NULL, count, &runs));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_uint(runs, 1);
}

TEST(acl_host_functions_have_codes)
{
	job_run(codes);
}

/* Functions between fills: each sees what the fill before it has written, and the copy to ordinary memory. */
static void order(void)
{
	static struct entry entries[2 * ROUNDS];
	static struct log log;
	unsigned char *memory;
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	memory = job_memory(64, 0);
	log.memory = malloc(64);
	for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
		entries[i] = (struct entry){ &log, i };
		check_ok(aclrtMemsetAsync(memory, 64, (int)i, 64, stream));
		check_ok(aclrtMemcpyAsync(log.memory, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream));
		if (i % 2)
			check_ok(aclrtLaunchHostFunc(stream, note, &entries[i]));
		else
			check_ok(aclrtLaunchCallback(note, &entries[i], ACL_CALLBACK_BLOCK, stream));
	}
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_uint(log.count, 2 * ROUNDS);
	for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
		check_eq_uint(log.entries[i], i);
		check_eq_uint(log.seen[i], (unsigned char)i);
	}
	check(log.thread != pthread_self());
	free(log.memory);
}

TEST_TIMEOUT(acl_host_functions_run_in_stream_order, 60)
{
	job_run(order);
}

static _Atomic int gate;

static void wait_for_gate(void *arg)
{
	while (!atomic_load(&gate))
		usleep(1000);
}

/* A callback that does not block: the stream goes on, and destroying it waits for the function. */
static void no_block(void)
{
	aclrtStreamStatus status;
	_Atomic uint32_t runs = 0;
	unsigned char *memory;
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	memory = job_memory(64, 0);
	check_ok(aclrtLaunchCallback(wait_for_gate, NULL, ACL_CALLBACK_NO_BLOCK, stream));
	check_ok(aclrtLaunchCallback(count, &runs, ACL_CALLBACK_NO_BLOCK, stream));
	check_ok(aclrtMemsetAsync(memory, 64, 5, 64, stream));
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_int(memory[0], 5);
	check_eq_uint(runs, 0);
	/* one that blocks, behind them: in order */
	check_ok(aclrtLaunchHostFunc(stream, count, &runs));
	check_fails(aclrtSynchronizeStreamWithTimeout(stream, 50), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, NULL);
	check_ok(aclrtStreamQuery(stream, &status));
	check_eq_int(status, ACL_STREAM_STATUS_NOT_READY);
	atomic_store(&gate, 1);
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_uint(runs, 2);
	check_ok(aclrtLaunchCallback(count, &runs, ACL_CALLBACK_NO_BLOCK, stream));
	check_ok(aclrtDestroyStream(stream));
	check_eq_uint(runs, 3);
}

TEST_TIMEOUT(acl_callbacks_need_not_block, 60)
{
	job_run(no_block);
}

static _Atomic int stop, ready;

static void *process_reports(void *arg)
{
	check_ok(aclrtSetDevice(0));
	atomic_store(&ready, 1);
	while (!atomic_load(&stop)) {
		aclError r = aclrtProcessReport(100);

		check(r == 0 || r == ACL_ERROR_RT_REPORT_TIMEOUT || r == ACL_ERROR_RT_THREAD_SUBSCRIBE);
	}
	return NULL;
}

/* The classical use: a thread that processes the reports of two streams; host functions stay with the library's thread. */
static void reports(void)
{
	static struct entry entries[2][ROUNDS];
	static struct log logs[2], library;
	static struct entry beside = { &library, 0 };
	aclrtStream streams[2];
	pthread_t thread;

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 2; i++)
		check_ok(aclrtCreateStream(&streams[i]));
	check_eq_int(pthread_create(&thread, NULL, process_reports, NULL), 0);
	while (!atomic_load(&ready))
		usleep(1000);
	for (int i = 0; i < 2; i++)
		check_ok(aclrtSubscribeReport((uint64_t)thread, streams[i]));
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (int i = 0; i < 2; i++) {
			entries[i][round] = (struct entry){ &logs[i], round };
			check_ok(aclrtLaunchCallback(note, &entries[i][round], round % 3 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK,
						     streams[i]));
		}
	check_ok(aclrtLaunchHostFunc(streams[0], note, &beside));
	check_ok(aclrtSynchronizeDevice());
	check_ok(aclrtLaunchCallback(note, &beside, ACL_CALLBACK_BLOCK, streams[1]));
	check_ok(aclrtSynchronizeDevice());
	for (int i = 0; i < 2; i++) {
		check_eq_uint(logs[i].count, ROUNDS);
		for (uint32_t round = 0; round < ROUNDS; round++)
			check_eq_uint(logs[i].entries[round], round);
		check(logs[i].thread == thread);
	}
	check_eq_uint(library.count, 2);
	/* nobody processes reports any more: what is queued goes to the library's thread */
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	check_ok(aclrtLaunchCallback(note, &beside, ACL_CALLBACK_BLOCK, streams[0]));
	check_fails(aclrtSynchronizeStreamWithTimeout(streams[0], 50), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, NULL);
	check_ok(aclrtUnSubscribeReport((uint64_t)thread, streams[0]));
	check_ok(aclrtSynchronizeStream(streams[0]));
	check_eq_uint(library.count, 3);
}

TEST_TIMEOUT(acl_reports_are_processed_by_their_thread, 60)
{
	job_run(reports);
}

struct inside {
	aclrtStream own, other;
	aclrtEvent event;
	unsigned char *memory;
	_Atomic int results[6];
};

static void call_inside(void *arg)
{
	struct inside *inside = arg;

	wait_for_gate(NULL);
	inside->results[0] = aclrtSynchronizeStream(inside->own);
	inside->results[1] = aclrtSynchronizeEvent(inside->event);
	inside->results[2] = aclrtSynchronizeStream(inside->other);
	/* work for another stream, and for the own one, is welcome */
	check_ok(aclrtSetDevice(0));
	inside->results[3] = aclrtMemsetAsync(inside->memory, 8, 9, 8, inside->other);
	inside->results[4] = aclrtSynchronizeStream(inside->other);
	inside->results[5] = aclrtMemsetAsync(inside->memory + 8, 8, 8, 8, inside->own);
}

/* Waits that can never end are refused at once, with a text; others work. */
static void deadlocks(void)
{
	static struct inside inside;
	_Atomic uint32_t runs = 0;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&inside.own));
	check_ok(aclrtCreateStream(&inside.other));
	check_ok(aclrtCreateEvent(&inside.event));
	inside.memory = job_memory(64, 0);
	check_ok(aclrtLaunchHostFunc(inside.own, call_inside, &inside));
	check_ok(aclrtRecordEvent(inside.event, inside.own));
	atomic_store(&gate, 1);
	check_ok(aclrtSynchronizeStream(inside.own));
	check_eq_int(inside.results[0], ACL_ERROR_RT_STREAM_CONTEXT);
	check_eq_int(inside.results[1], ACL_ERROR_RT_STREAM_CONTEXT);
	for (int i = 2; i < 6; i++)
		check_eq_int(inside.results[i], 0);
	check_ok(aclrtSynchronizeStream(inside.own));
	check_eq_int(inside.memory[0], 9);
	check_eq_int(inside.memory[8], 8);
	/* the other stream has a host function that the same thread would have to run */
	atomic_store(&gate, 0);
	check_ok(aclrtLaunchHostFunc(inside.own, wait_for_gate, NULL));
	check_ok(aclrtLaunchHostFunc(inside.own, call_inside, &inside));
	check_ok(aclrtLaunchHostFunc(inside.other, count, &runs));
	atomic_store(&gate, 1);
	check_ok(aclrtSynchronizeDevice());
	check_eq_uint(runs, 1);
}

TEST_TIMEOUT(acl_host_functions_cannot_wait_for_themselves, 60)
{
	job_run(deadlocks);
}

static void submit_inside(void *arg)
{
	struct inside *inside = arg;

	/* the other thread has filled the ring by then, and waits for room */
	usleep(300000);
	for (int i = 0; i < 6; i++)
		inside->results[i] = aclrtMemsetAsync(inside->memory, 8, 9, 8, i % 2 ? inside->other : inside->own);
}

static void full_ring(void)
{
	static struct inside inside;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&inside.own));
	check_ok(aclrtCreateStream(&inside.other));
	inside.memory = job_memory(64, 0);
	check_ok(aclrtLaunchHostFunc(inside.own, submit_inside, &inside));
	for (int i = 0; i < 1500; i++)
		check_ok(aclrtMemsetAsync(inside.memory, 8, i, 8, inside.own));
	check_ok(aclrtSynchronizeStream(inside.own));
	for (int i = 0; i < 6; i++)
		check_eq_int(inside.results[i], i % 2 ? 0 : ACL_ERROR_RT_STREAM_CONTEXT);
	check_ok(aclrtSynchronizeStream(inside.other));
}

TEST_TIMEOUT(acl_host_functions_do_not_wait_for_room_of_their_own_stream, 60)
{
	job_run(full_ring);
}

/* What has not begun when its stream ends, is aborted or stops does not run; what runs is let run. */
static void ends(void)
{
	_Atomic uint32_t runs = 0;
	aclrtEvent never;
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateEvent(&never));
	atomic_store(&gate, 0);
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtLaunchHostFunc(stream, wait_for_gate, NULL));
	check_ok(aclrtLaunchHostFunc(stream, count, &runs));
	usleep(20000);
	check_ok(aclrtDestroyStreamForce(stream));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtStreamWaitEvent(stream, never));
	check_ok(aclrtLaunchHostFunc(stream, count, &runs));
	check_ok(aclrtDeviceTaskAbort(0, 0));
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DEVICE_TASK_ABORT, NULL);
	check_ok(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
	check_ok(aclrtStreamWaitEventWithTimeout(stream, never, 100));
	check_ok(aclrtLaunchHostFunc(stream, count, &runs));
	check_ok(aclrtLaunchCallback(count, &runs, ACL_CALLBACK_NO_BLOCK, stream));
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, NULL);
	check_ok(aclrtDestroyStream(stream));
	atomic_store(&gate, 1);
	/* the thread is free again */
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtLaunchHostFunc(stream, count, &runs));
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_uint(runs, 1);
	/* a device that is reset with functions queued */
	check_ok(aclrtStreamWaitEvent(stream, never));
	check_ok(aclrtLaunchHostFunc(stream, count, &runs));
	check_ok(aclrtResetDeviceForce(0));
	usleep(20000);
	check_eq_uint(runs, 1);
}

TEST_TIMEOUT(acl_host_functions_end_with_their_stream, 60)
{
	job_run(ends);
}

static void *launch_many(void *arg)
{
	_Atomic uint32_t *runs = arg;
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	for (int round = 0; round < 10; round++) {
		uint32_t before = atomic_load(runs);

		check_ok(aclrtCreateStream(&stream));
		for (int i = 0; i < 100; i++)
			check_ok(aclrtLaunchHostFunc(stream, count, runs));
		check_ok(aclrtSynchronizeStream(stream));
		check_eq_uint(atomic_load(runs), before + 100);
		check_ok(aclrtDestroyStream(stream));
	}
	return NULL;
}

static void threads(void)
{
	static _Atomic uint32_t runs[6];
	pthread_t ids[6];

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 6; i++)
		check_eq_int(pthread_create(&ids[i], NULL, launch_many, &runs[i]), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(ids[i], NULL);
}

TEST_TIMEOUT(acl_host_functions_of_many_threads, 60)
{
	job_run(threads);
}

static _Atomic bool destroyed;

static void destroy_own(void *stream)
{
	check_ok(aclrtDestroyStream(stream));
	check_null(aclGetRecentErrMsg());
	atomic_store(&destroyed, true);
}

/* It cannot wait for itself; that is no error, and leaves no text. */
static void destroyed_from_inside(void)
{
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtLaunchHostFunc(stream, destroy_own, stream));
	(void)aclrtSynchronizeStream(stream);
	while (aclrtStreamQuery(stream, &(aclrtStreamStatus){ 0 }) == 0)
		usleep(1000);
	/* nobody knows the stream any more, but its end is not over; with the device it would be gone before that */
	while (!atomic_load(&destroyed))
		usleep(1000);
	check_ok(aclrtResetDevice(0));
}

TEST_TIMEOUT(acl_host_function_destroys_its_stream, 60)
{
	job_run(destroyed_from_inside);
}

/* ---- copies from memory of the program's own come after what writes it ---- */

enum { COPIED = 100000 };

static void write_seven(void *memory)
{
	usleep(20000);
	memset(memory, 7, COPIED);
}

static void copies(void)
{
	unsigned char *device, *host = calloc(1, COPIED);
	aclrtStream first, second;
	uint64_t *flag;
	aclrtEvent event;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&first));
	check_ok(aclrtCreateStream(&second));
	check_ok(aclrtCreateEvent(&event));
	device = job_memory(2 * COPIED, 1);
	flag = job_memory(sizeof(*flag), 0);
	/* a host function of the stream */
	check_ok(aclrtLaunchHostFunc(first, write_seven, host));
	check_ok(aclrtMemcpyAsync(device, COPIED, host, COPIED, ACL_MEMCPY_HOST_TO_DEVICE, first));
	check_ok(aclrtSynchronizeStream(first));
	check_eq_int(device[0], 7);
	check_eq_int(device[COPIED - 1], 7);
	/* a copy of another stream, before an event and behind it */
	for (int round = 0; round < 20; round++) {
		*flag = 0;
		memset(host, 0, COPIED);
		memset(device, round + 10, COPIED);
		if (round % 2)
			check_ok(aclrtValueWait(flag, 1, ACL_STREAM_WAIT_VALUE_EQ, first));
		check_ok(aclrtMemcpyAsync(host, COPIED, device, COPIED, ACL_MEMCPY_DEVICE_TO_HOST, first));
		check_ok(aclrtRecordEvent(event, first));
		usleep(round % 3 * 1000u);
		check_ok(aclrtStreamWaitEvent(second, event));
		check_ok(aclrtMemcpyAsync(device + COPIED, COPIED, host, COPIED, ACL_MEMCPY_HOST_TO_DEVICE, second));
		*flag = 1;
		check_ok(aclrtSynchronizeStream(second));
		check_eq_int(device[COPIED], round + 10);
		check_eq_int(device[2 * COPIED - 1], round + 10);
	}
	free(host);
}

/* One that does not come to run leaves nothing behind, and its memory alone. */
static void copies_taken_out(void)
{
	unsigned char *device, *host = calloc(1, COPIED);
	aclrtStream stream;
	uint64_t *flag;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	device = job_memory(COPIED, 1);
	flag = job_memory(sizeof(*flag), 0);
	for (int round = 0; round < 20; round++) {
		*flag = 0;
		check_ok(aclrtValueWait(flag, 1, ACL_STREAM_WAIT_VALUE_EQ, stream));
		check_ok(aclrtMemcpyAsync(device, COPIED, host, COPIED, ACL_MEMCPY_HOST_TO_DEVICE, stream));
		if (round % 2)
			*flag = 1;
		if (round % 4 < 2) {
			check_ok(aclrtStreamAbort(stream));
		} else {
			check_ok(aclrtDestroyStreamForce(stream));
			check_ok(aclrtCreateStream(&stream));
		}
		free(host);
		host = calloc(1, COPIED);
		aclrtSynchronizeStream(stream);
		aclGetRecentErrMsg();
	}
	free(host);
}

TEST_TIMEOUT(acl_copies_come_after_what_writes_their_source, 60)
{
	job_run(copies);
}

TEST_TIMEOUT(acl_copies_that_wait_are_taken_out, 60)
{
	job_run(copies_taken_out);
}
