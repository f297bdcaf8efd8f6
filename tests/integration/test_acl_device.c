/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of acl, devices and contexts, through the public functions. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/job.h"

/* aclInit with a file that has this in it. */
static void init_with(const char *text, int code)
{
	char path[] = "/tmp/hccld-test-init-XXXXXX";
	int fd = mkstemp(path);

	check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	if (code)
		check_fails(aclInit(path), code, "no JSON");
	else
		check_ok(aclInit(path));
	unlink(path);
}

static void init_and_finalize(void)
{
	uint64_t count = 99;

	check_fails(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, "finalized");
	check_ok(aclInit(NULL));
	check_fails(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE, "before");
	check_ok(aclFinalizeReference(&count));
	check_eq_uint(count, 1);
	check_ok(aclFinalizeReference(&count));
	check_eq_uint(count, 0);
	check_fails(aclFinalizeReference(&count), ACL_ERROR_REPEAT_FINALIZE, NULL);
	check_ok(aclInit(""));
	check_fails(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE, NULL);
	check_ok(aclFinalize());
	check_fails(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, NULL);
	check_fails(aclInit("/no/such/file.json"), ACL_ERROR_INVALID_FILE, "/no/such/file.json");
	check_null(aclGetRecentErrMsg());
	check_fails(aclInit("/"), ACL_ERROR_INVALID_FILE, "no regular file");
	init_with("{ \"dump\": ", ACL_ERROR_PARSE_FILE);
	init_with("{ \"dump\": {} }\n", 0);
	check_ok(aclFinalize());
}

TEST(acl_init_is_counted)
{
	job_run(init_and_finalize);
}

static void without_daemon(void)
{
	uint32_t count;
	int32_t device;

	check_ok(aclInit(NULL));
	check_fails(aclrtGetDeviceCount(&count), ACL_ERROR_RT_LOST_HEARTBEAT,
		    getenv("HCCLD_SOCKET"));
	check_fails(aclrtSetDevice(0), ACL_ERROR_RT_LOST_HEARTBEAT, "hcclctl run --private");
	check_fails(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice");
	check_null(aclrtGetSocName());
	check_str_contains(aclGetRecentErrMsg(), "EI0006");
	check_ok(aclFinalize());
}

TEST(acl_without_daemon_names_the_socket)
{
	setenv("HCCLD_SOCKET", test_path("nobody.sock"), 1);
	without_daemon();
}

static void devices(void)
{
	int32_t device = -1, major, minor, patch;
	aclrtRunMode mode;
	uint32_t count;

	check_ok(aclrtGetDeviceCount(&count));
	check_eq_uint(count, 8);
	check_fails(aclrtGetDeviceCount(NULL), ACL_ERROR_INVALID_PARAM, "count");
	check_eq_str(aclrtGetSocName(), "Ascend910_9391");
	check_ok(aclrtGetRunMode(&mode));
	check_eq_int(mode, ACL_HOST);
	check_ok(aclrtGetVersion(&major, &minor, &patch));
	check_eq_int(major, 1);
	check_fails(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice");
	check_fails(aclrtSetDevice(8), ACL_ERROR_RT_INVALID_DEVICEID, "8");
	check_fails(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID, "EL0002");
	check_fails(aclrtResetDevice(8), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
	check_fails(aclrtResetDevice(3), ACL_ERROR_RT_CONTEXT_NULL, "3");
	check_fails(aclrtResetDeviceForce(3), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetDevice(3));
	check_ok(aclrtGetDevice(&device));
	check_eq_int(device, 3);
	check_ok(aclrtSetDevice(7));
	check_ok(aclrtGetDevice(&device));
	check_eq_int(device, 7);
	/* the other one is still open, and current again */
	check_ok(aclrtResetDevice(3));
	check_ok(aclrtGetDevice(&device));
	check_ok(aclrtResetDevice(7));
	check_fails(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, NULL);
}

TEST(acl_devices_have_the_codes_of_cann)
{
	job_run(devices);
}

static void without_device(void)
{
	size_t free, total;
	aclrtStream stream;
	void *memory;
	char a[8] = { 0 }, b[8] = { 0 };

	check_fails(aclrtMalloc(&memory, 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL,
		    NULL);
	check_fails(aclrtMallocHost(&memory, 1), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtMemcpy(a, 8, b, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtMemset(a, 8, 0, 8), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	/* what is wrong with the arguments comes first */
	check_fails(aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM,
		    NULL);
	check_fails(aclrtMemcpy(a, 8, b, 9, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, NULL);
}

TEST(acl_calls_need_a_current_device)
{
	job_run(without_device);
}

static void references(void)
{
	int32_t device;
	void *memory;

	check_ok(aclrtSetDevice(2));
	check_ok(aclrtSetDevice(2));
	memory = job_memory(4096, 1);
	check_ok(aclrtResetDevice(2));
	check_ok(aclrtGetDevice(&device));
	check_ok(aclrtMemset(memory, 4096, 2, 4096));
	check_ok(aclrtResetDevice(2));
	check_fails(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtFree(memory), ACL_ERROR_RT_PARAM_INVALID, "reset");
	check_fails(aclrtResetDevice(2), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	/* force takes all references */
	check_ok(aclrtSetDevice(2));
	check_ok(aclrtSetDevice(2));
	check_ok(aclrtResetDeviceForce(2));
	check_fails(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	for (int i = 0; i < 50; i++) {
		check_ok(aclrtSetDevice(2));
		check_ok(aclrtResetDevice(2));
	}
}

TEST(acl_devices_are_counted)
{
	job_run(references);
}

static void *thread_with_device(void *arg)
{
	const int32_t wanted = (int32_t)(intptr_t)arg;
	int32_t device;

	check_fails(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	for (int i = 0; i < 20; i++) {
		unsigned char *memory, byte;
		aclrtStream stream;

		check_ok(aclrtSetDevice(wanted));
		check_ok(aclrtGetDevice(&device));
		check_eq_int(device, wanted);
		memory = job_memory(100000, wanted);
		check_ok(aclrtCreateStream(&stream));
		check_ok(aclrtMemsetAsync(memory, 100000, wanted + 1, 100000, stream));
		check_ok(aclrtMemcpyAsync(&byte, 1, memory + 99999, 1, ACL_MEMCPY_DEVICE_TO_HOST,
					  stream));
		check_ok(aclrtSynchronizeDevice());
		check_eq_int(byte, wanted + 1);
		check_ok(aclrtResetDevice(wanted));
	}
	return NULL;
}

static void threads_of_one_process(void)
{
	pthread_t threads[8];

	/* two threads to a device */
	for (intptr_t i = 0; i < 8; i++)
		check_eq_int(pthread_create(&threads[i], NULL, thread_with_device, (void *)(i / 2)),
			     0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void threads_with_devices(void)
{
	pthread_t threads[8];

	for (intptr_t i = 0; i < 8; i++)
		check_eq_int(pthread_create(&threads[i], NULL, thread_with_device, (void *)i), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

TEST(acl_current_device_is_the_threads)
{
	job_run(threads_with_devices);
}

TEST(acl_threads_share_a_device)
{
	job_run(threads_of_one_process);
}

static void visible(void)
{
	uint32_t count;
	int32_t device;

	check_ok(aclrtGetDeviceCount(&count));
	check_eq_uint(count, 2);
	check_ok(aclrtSetDevice(1));
	check_ok(aclrtGetDevice(&device));
	check_eq_int(device, 1);
	check_fails(aclrtSetDevice(2), ACL_ERROR_RT_INVALID_DEVICEID,
		    "ASCEND_RT_VISIBLE_DEVICES is \"5,4,9\"");
}

TEST(acl_visible_devices_are_renumbered)
{
	job_run_with("ASCEND_RT_VISIBLE_DEVICES", "5,4,9", visible);
}

static void visible_none(void)
{
	uint32_t count;

	check_ok(aclrtGetDeviceCount(&count));
	check_eq_uint(count, 0);
	check_fails(aclrtSetDevice(0), ACL_ERROR_RT_INVALID_DEVICEID, "sees 0 of them");
}

TEST(acl_list_of_visible_devices_may_name_none)
{
	job_run_with("ASCEND_RT_VISIBLE_DEVICES", "none", visible_none);
}

static void reset_waits(void)
{
	static unsigned char host[8 << 20];
	unsigned char *memory;
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	memory = job_memory(sizeof(host), 0);
	for (int i = 0; i < 20; i++)
		check_ok(aclrtMemsetAsync(memory, sizeof(host), i, sizeof(host), stream));
	check_ok(aclrtMemcpyAsync(host, sizeof(host), memory, sizeof(host),
				  ACL_MEMCPY_DEVICE_TO_HOST, stream));
	check_ok(aclrtResetDevice(0));
	check_eq_int(host[0], 19);
	check_eq_int(host[sizeof(host) - 1], 19);
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
}

TEST(acl_reset_waits_for_streams)
{
	job_run(reset_waits);
}

static void host_memory_after_reset(void)
{
	char *small, *large;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtMallocHost((void **)&small, 1000));
	check_ok(aclrtMallocHost((void **)&large, 1000000));
	memset(small, 's', 1000);
	memset(large, 'l', 1000000);
	check_ok(aclrtResetDevice(0));
	for (int i = 0; i < 1000; i++)
		check_eq_int(small[i], 's');
	for (int i = 0; i < 1000000; i++)
		check_eq_int(large[i], 'l');
	check_ok(aclrtSetDevice(1));
	check_ok(aclrtMemcpyAsync(job_memory(1000, 0), 1000, small, 1000, ACL_MEMCPY_HOST_TO_DEVICE,
				  NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_ok(aclrtFreeHost(small));
	check_ok(aclrtFreeHost(large));
}

TEST(acl_host_memory_outlives_a_reset)
{
	job_run(host_memory_after_reset);
}

static _Atomic int raced;

static void *use_device(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	static unsigned char memory_of[4][64];
	unsigned char *host = memory_of[(uintptr_t)arg];

	while (!atomic_load(&raced)) {
		(void)aclrtSetDevice(0);
		for (int i = 0; i < 10; i++) {
			aclrtStream stream;
			void *memory;

			if (aclrtMalloc(&memory, 1 + (size_t)rand_r(&seed) % 400000, ACL_MEM_MALLOC_HUGE_FIRST) == 0)
				(void)aclrtFree(memory);
			if (aclrtCreateStream(&stream) != 0)
				continue;
			(void)aclrtMemsetAsync(host, 64, 1, 64, stream);
			(void)aclrtDestroyStream(stream);
		}
		(void)aclrtResetDevice(0);
	}
	return NULL;
}

static void *reset_device(void *arg)
{
	unsigned int seed = 1;

	while (!atomic_load(&raced)) {
		(void)aclrtSetDevice(0);
		(void)(rand_r(&seed) % 2 ? aclrtResetDeviceForce(0) : aclrtResetDevice(0));
		usleep((unsigned int)rand_r(&seed) % 500);
	}
	return NULL;
}

/* The calls may fail; what they leave behind must be whole. */
static void reset_beside_others(void)
{
	pthread_t threads[4];
	size_t free_bytes, total;

	for (intptr_t i = 0; i < 4; i++)
		check_eq_int(pthread_create(&threads[i], NULL, i ? use_device : reset_device, (void *)i), 0);
	sleep(4);
	atomic_store(&raced, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	(void)aclrtResetDeviceForce(0);
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
	check_eq_uint(free_bytes, total);
	for (int i = 0; i < 200; i++) {
		unsigned char *memory = job_memory(1000, 0);
		aclrtStream stream;

		check_ok(aclrtCreateStream(&stream));
		check_ok(aclrtMemsetAsync(memory, 1000, i, 1000, stream));
		check_ok(aclrtSynchronizeStream(stream));
		check_eq_int(memory[999], i);
	}
}

TEST(acl_device_is_reset_while_threads_use_it)
{
	job_run(reset_beside_others);
}
