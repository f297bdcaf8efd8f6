/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that make, use and end streams, events and host functions of each other at random: nothing hangs, nothing runs twice, and what
 * was launched either runs or went with its stream.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/job.h"

#define THREADS 4
#define SLOTS 6
#define STEPS 1500

struct call {
	_Atomic uint32_t runs;
};

/* Shared by all threads: handles may be destroyed under the feet of who uses them. */
static _Atomic(aclrtStream) streams[SLOTS];
static _Atomic(aclrtEvent) events[SLOTS];
static unsigned char *memory;
static struct call calls[THREADS][STEPS];
static _Atomic uint64_t launched;
static uint64_t seed;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void call_run(void *arg)
{
	atomic_fetch_add(&((struct call *)arg)->runs, 1);
}

/* Known results of calls whose handles another thread may have ended, or whose stream it may have aborted. */
static void check_known(const char *what, int r)
{
	switch (r) {
	case ACL_SUCCESS:
	case ACL_ERROR_RT_INVALID_HANDLE:
	case ACL_ERROR_RT_PARAM_INVALID:	/* an event that was not recorded */
	case ACL_ERROR_RT_DEVICE_TASK_ABORT:
	case ACL_ERROR_RT_STREAM_ABORT:
	case ACL_ERROR_RT_EVENT_SYNC_TIMEOUT:
	case ACL_ERROR_RT_STREAM_SYNC_TIMEOUT:
	case ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID:
	case ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL:
		return;
	default:
		check_msg(false, "%s: %d %s", what, r, aclGetRecentErrMsg());
	}
}

static void replace_stream(uint32_t slot, bool force)
{
	aclrtStream made, old;

	check_ok(aclrtCreateStream(&made));
	old = atomic_exchange(&streams[slot], made);
	check_known("destroy", force ? aclrtDestroyStreamForce(old) : aclrtDestroyStream(old));
}

static void replace_event(uint32_t slot, bool extended)
{
	aclrtEvent made, old;

	check_ok(extended ? aclrtCreateEventExWithFlag(&made, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC) : aclrtCreateEvent(&made));
	old = atomic_exchange(&events[slot], made);
	check_ok(aclrtDestroyEvent(old));
}

static void step(uint64_t random, struct call *call)
{
	aclrtStream stream = atomic_load(&streams[random / 64 % SLOTS]);
	uint32_t slot = random / 1024 % SLOTS;
	aclrtEvent event = atomic_load(&events[slot]);
	aclrtEventRecordedStatus status;
	float ms;
	int r;

	switch (random % 16) {
	case 0:
		replace_stream(random / 64 % SLOTS, random & 16);
		break;
	case 1:
		replace_event(slot, random & 16);
		break;
	case 2:
		check_known("abort", aclrtStreamAbort(stream));
		break;
	case 3:
	case 4:
		check_known("record", aclrtRecordEvent(event, stream));
		break;
	case 5:
	case 6:
		check_known("wait", aclrtStreamWaitEventWithTimeout(stream, event, 50));
		break;
	case 7:
		check_known("synchronize event", aclrtSynchronizeEventWithTimeout(event, 20));
		break;
	case 8:
		check_known("synchronize", aclrtSynchronizeStreamWithTimeout(stream, 20));
		break;
	case 9:
		check_known("query", aclrtQueryEventStatus(event, &status));
		break;
	case 10:
		check_known("elapsed", aclrtEventElapsedTime(&ms, event, atomic_load(&events[0])));
		break;
	case 11:
	case 12:
		check_known("fill", aclrtMemsetAsync(memory, 4096, 1, 4096, stream));
		break;
	default:
		r = random & 16 ? aclrtLaunchHostFunc(stream, call_run, call)
				: aclrtLaunchCallback(call_run, call, ACL_CALLBACK_NO_BLOCK, stream);
		check_known("launch", r);
		atomic_fetch_add(&launched, r == 0);
	}
}

static void *work(void *arg)
{
	uint32_t index = (uint32_t)(uintptr_t)arg;
	uint64_t state = seed + index * 7919 + 1;

	check_ok(aclrtSetDevice(0));
	for (uint32_t i = 0; i < STEPS; i++)
		step(next(&state), &calls[index][i]);
	return NULL;
}

static void stress(void)
{
	pthread_t threads[THREADS];
	uint64_t runs = 0;
	aclrtStream last;

	seed = test_seed();
	check_ok(aclrtSetDevice(0));
	memory = job_memory(4096, 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		aclrtStream stream;
		aclrtEvent event;

		check_ok(aclrtCreateStream(&stream));
		check_ok(aclrtCreateEvent(&event));
		streams[i] = stream;
		events[i] = event;
	}
	for (uint32_t i = 0; i < THREADS; i++)
		check_eq_int(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check_ok(aclrtDeviceTaskAbort(0, 0));
	for (uint32_t i = 0; i < SLOTS; i++) {
		(void)aclrtSynchronizeStream(streams[i]);
		check_ok(aclrtDestroyStream(streams[i]));
		check_ok(aclrtDestroyEvent(events[i]));
	}
	for (uint32_t t = 0; t < THREADS; t++)
		for (uint32_t i = 0; i < STEPS; i++) {
			check_lt_uint(calls[t][i].runs, 2);
			runs += calls[t][i].runs;
		}
	check_gt_uint(runs, 0);
	check_le_uint(runs, launched);
	/* all of it works */
	check_ok(aclrtCreateStream(&last));
	calls[0][0].runs = 0;
	check_ok(aclrtLaunchHostFunc(last, call_run, &calls[0][0]));
	check_ok(aclrtSynchronizeStream(last));
	check_eq_uint(calls[0][0].runs, 1);
}

TEST_TIMEOUT(acl_streams_events_and_host_functions_at_random, 60)
{
	job_run(stress);
}
