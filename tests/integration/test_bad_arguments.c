/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every public function with every argument wrong in every way there is, one at a time: no call may crash or hang, each that fails
 * leaves a text, and whatever was said, streams, memory and communicators work afterwards. Which code is the right one is for
 * test_bad_codes.c and the tests of the functions.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/api_calls.h"
#include "tests/support/job.h"

#define SCRATCH 65536u
#define HANG_S 20u
#define VARIANTS_MAX 16

static struct objects {
	aclrtStream stream, gone_stream;
	aclrtEvent event, gone_event;
	aclrtNotify notify, gone_notify;
	aclrtContext context;
	HcclComm comm, gone_comm;
	void *memory;
	unsigned char *scratch[API_PARAMETERS_MAX];
	bool has_events, has_contexts;
} objects;

/* Where it is, for whoever looks at a crash. */
static struct {
	unsigned int function, argument, variant;
	unsigned int tried, calls; /* functions that this release has, calls of them */
	bool is_calling;
} *place;

static void no_function(void)
{
}

/* ---- what is right ---- */

static void objects_new(void)
{
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&objects.stream));
	check_ok(aclrtCreateStream(&objects.gone_stream));
	check_ok(aclrtDestroyStream(objects.gone_stream));
	objects.has_events = aclrtCreateEvent(&objects.event) == 0 && aclrtCreateEvent(&objects.gone_event) == 0;
	if (objects.has_events)
		check_ok(aclrtDestroyEvent(objects.gone_event));
	check_ok(aclrtCreateNotify(&objects.notify, 0));
	check_ok(aclrtCreateNotify(&objects.gone_notify, 0));
	check_ok(aclrtDestroyNotify(objects.gone_notify));
	objects.has_contexts = aclrtGetCurrentContext(&objects.context) == 0;
	objects.comm = job_alone();
	objects.gone_comm = job_alone();
	check_ok(HcclCommDestroy(objects.gone_comm));
	objects.memory = job_memory(4096, 0);
	(void)aclGetRecentErrMsg();
}

/* True: what we have still does its work. */
static bool objects_work(void)
{
	unsigned char byte = 0;
	int r = aclrtSetDevice(0);

	if (r == 0)
		r = aclrtMemsetAsync(objects.memory, 4096, 7, 1, objects.stream);
	if (r == 0)
		r = HcclBarrier(objects.comm, objects.stream);
	if (r == 0)
		r = aclrtSynchronizeStreamWithTimeout(objects.stream, 10000);
	if (r == 0)
		r = aclrtMemcpy(&byte, 1, objects.memory, 1, ACL_MEMCPY_DEVICE_TO_HOST);
	return r == 0 && byte == 7;
}

/* A call that was given good handles may have ended them: new ones can be had, and work. */
static void objects_check(const char *name)
{
	uint32_t id;

	(void)HcclGroupEnd();
	if (!objects_work()) {
		(void)aclrtResetDeviceForce(0);
		objects_new();
		check_msg(objects_work(), "after %s nothing works any more: %s", name, aclGetRecentErrMsg());
	}
	if (aclrtGetNotifyId(objects.notify, &id) != 0)
		check_ok(aclrtCreateNotify(&objects.notify, 0));
	(void)aclGetRecentErrMsg();
}

static uint64_t good(const struct api_call *call, unsigned int i)
{
	switch (call->kinds[i]) {
	case KIND_BUFFER:
		return (uintptr_t)objects.memory;
	case KIND_STREAM:
		return (uintptr_t)objects.stream;
	case KIND_COMM:
		return (uintptr_t)objects.comm;
	case KIND_EVENT:
		return (uintptr_t)(objects.has_events ? objects.event : NULL);
	case KIND_NOTIFY:
		return (uintptr_t)objects.notify;
	case KIND_CONTEXT:
		return (uintptr_t)(objects.has_contexts ? objects.context : NULL);
	case KIND_HANDLE:
		return (uintptr_t)no_function;
	case KIND_NUMBER:
		return 0;
	case KIND_SIZE:
		return 64;
	case KIND_POINTER:
		return (uintptr_t)objects.scratch[i];
	default:
		return 0;
	}
}

/* ---- what is wrong ---- */

/* Fills @ret_values with what argument @i can be beside what is good. */
static unsigned int wrong(const struct api_call *call, unsigned int i, uint64_t ret_values[VARIANTS_MAX])
{
	static unsigned char host[4096];
	static const uint64_t numbers[] = { 0, 1, 2, 7, 64, 0x7fffffff, 0x80000000, UINT32_MAX, UINT64_MAX };
	/* none that this machine might have */
	static const uint64_t sizes[] = { 0, 1, 2, 7, 65, 1ull << 46, 1ull << 63, UINT64_MAX - 31, UINT64_MAX };
	const uint64_t handles[] = { 0, 1, UINT64_MAX, (uintptr_t)host, (uintptr_t)objects.gone_stream,
				     (uintptr_t)objects.stream, (uintptr_t)objects.stream + 8, (uintptr_t)objects.comm,
				     (uintptr_t)objects.gone_comm, (uintptr_t)objects.comm + 1, (uintptr_t)objects.memory,
				     (uintptr_t)(objects.has_events ? objects.gone_event : NULL),
				     (uintptr_t)(objects.has_events ? objects.event : NULL),
				     (uintptr_t)objects.gone_notify, (uintptr_t)objects.notify };

	switch (call->kinds[i]) {
	case KIND_POINTER:
		ret_values[0] = 0;
		return 1;
	case KIND_BUFFER:
		ret_values[0] = 0;
		ret_values[1] = (uintptr_t)host;
		ret_values[2] = (uintptr_t)objects.memory + 1;
		return 3;
	case KIND_NUMBER:
		memcpy(ret_values, numbers, sizeof(numbers));
		return sizeof(numbers) / sizeof(numbers[0]);
	case KIND_SIZE:
		memcpy(ret_values, sizes, sizeof(sizes));
		return sizeof(sizes) / sizeof(sizes[0]);
	case KIND_HANDLE:
		ret_values[0] = 0;
		return 1;
	case KIND_OTHER:
		return 0;
	default:
		memcpy(ret_values, handles, sizeof(handles));
		return sizeof(handles) / sizeof(handles[0]);
	}
}

static int invoke(const struct api_call *call, const uint64_t *a)
{
	typedef int (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
				uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	int r;

	for (unsigned int i = 0; i < call->count; i++)
		memset(objects.scratch[i], 0, SCRATCH);
	(void)aclGetRecentErrMsg();
	place->calls++;
	place->is_calling = true;
	alarm(HANG_S * test_timeout_scale());
	r = ((function)(void *)call->function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
					       a[14], a[15]);
	alarm(0);
	place->is_calling = false;
	return r;
}

/* Streams that were given something to wait for that nobody brings: it is taken out. */
static void settle(const char *name)
{
	static const char *const names[] = { "aclrtStreamWaitEvent", "aclrtStreamWaitEventWithTimeout", "aclrtValueWait", "aclrtLaunchCallback",
					     "aclrtWaitAndResetNotify" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		(void)aclrtStreamAbort(objects.stream);
		(void)aclrtSynchronizeStream(objects.stream);
		(void)aclrtStreamAbort(NULL);
		(void)aclrtSynchronizeStream(NULL);
	}
}

/* True: this release does not have the function; it says so. */
static bool try(const struct api_call *call, unsigned int i, uint64_t value)
{
	uint64_t arguments[API_PARAMETERS_MAX] = { 0 };
	const char *text;
	int r;

	settle(call->name);
	if (!objects_work())
		objects_check(call->name);
	for (unsigned int k = 0; k < call->count; k++)
		arguments[k] = good(call, k);
	if (i < call->count)
		arguments[i] = value;
	r = invoke(call, arguments);
	/* aclrtGetLastError, aclrtPeekAtLastError: what they give is the code of another call */
	if (!call->gives_code || r == 0 || strstr(call->name, "LastError"))
		return false;
	text = aclGetRecentErrMsg();
	check_msg(text && *text, "%s, argument %u = %#llx: %d without a text", call->name, i + 1, (unsigned long long)value, r);
	if (strncmp(call->name, "Hccl", 4) == 0 && call->name[4] != 'd')
		check_msg(strstr(text, "(EI00"), "%s, argument %u = %#llx: no code in %s", call->name, i + 1, (unsigned long long)value, text);
	return strstr(text, "is not supported by this release") != NULL;
}

/*
 * What ends the library, or waits by its nature; and securec.h, CANN's library of bounded strings, which is not ours to judge.
 */
static bool is_excluded(const char *name)
{
	static const char *const names[] = { "aclInit", "aclFinalize", "aclFinalizeReference", "aclGetRecentErrMsg", "aclrtProcessReport" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strstr(name, "_s") && name[strlen(name) - 2] == '_';
}

static void function_run(const struct api_call *call)
{
	uint64_t values[VARIANTS_MAX];

	if (!call->function || is_excluded(call->name))
		return;
	place->argument = API_PARAMETERS_MAX;
	if (try(call, API_PARAMETERS_MAX, 0))
		return;
	place->tried++;
	for (unsigned int i = 0; i < call->count; i++) {
		unsigned int count = wrong(call, i, values);

		for (unsigned int v = 0; v < count; v++) {
			place->argument = i;
			place->variant = v;
			/* handles may be others by now */
			(void)wrong(call, i, values);
			(void)try(call, i, values[v]);
		}
	}
	settle(call->name);
	objects_check(call->name);
}

static void all_functions(void)
{
	for (unsigned int i = 0; i < API_PARAMETERS_MAX; i++)
		objects.scratch[i] = calloc(1, SCRATCH);
	check_ok(aclInit(NULL));
	objects_new();
	for (; place->function < api_call_count; place->function++)
		function_run(&api_calls[place->function]);
}

/* In a process of its own; the next one goes on behind the call that ended it. */
static void all_functions_told(void)
{
	unsigned int bad = 0;

	while (place->function < api_call_count) {
		const struct api_call *call;
		int status;
		pid_t pid = fork();

		check_ge_int(pid, 0);
		if (pid == 0) {
			all_functions();
			_exit(0);
		}
		check_eq_int(waitpid(pid, &status, 0), pid);
		if (status == 0)
			break;
		call = &api_calls[place->function++];
		bad++;
		fprintf(stderr, "%s %s, argument %u, value %u of its kind: wait status %#x\n", call->name,
			place->is_calling ? "did not come back" : "failed", place->argument + 1, place->variant, (unsigned int)status);
	}
	fprintf(stderr, "%u of %u functions, %u calls\n", place->tried, api_call_count, place->calls);
	check_eq_uint(bad, 0);
	check_gt_uint(place->tried, 50u);
}

TEST_TIMEOUT(every_function_bears_every_wrong_argument, 120)
{
	setenv("HCCLD_CONNECT_TIMEOUT_MS", "50", 1);
	place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(place != MAP_FAILED);
	job_run(all_functions_told);
	munmap(place, 4096);
}
