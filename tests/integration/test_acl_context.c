/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of threads, what is asked about devices, and copies beyond the plain ones. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl_prof.h"
#include "tests/support/job.h"

/* ---- contexts ---- */

static void *other_thread(void *context)
{
	aclrtContext current;
	aclrtStream stream, same;
	int32_t device;
	void *memory;

	check_fails(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetCurrentContext(context));
	check_ok(aclrtGetCurrentContext(&current));
	check_eq_ptr(current, context);
	check_ok(aclrtGetDevice(&device));
	check_eq_int(device, 1);
	memory = job_memory(100, 3);
	check_ok(aclrtCtxGetCurrentDefaultStream(&stream));
	check_ok(aclrtMemsetAsync(memory, 100, 4, 100, NULL));
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_int(((char *)memory)[99], 4);
	check_ok(aclrtCtxGetCurrentDefaultStream(&same));
	check_eq_ptr(stream, same);
	return stream;
}

static void contexts(void)
{
	aclrtContext first, second, current, standard;
	aclrtStream of_default, of_first, made;
	pthread_t thread;
	void *stream;
	int32_t device;

	check_fails(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice");
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtGetCurrentContext(&standard));
	check_ok(aclrtGetCurrentContext(&current));
	check_eq_ptr(standard, current);
	check_ok(aclrtCtxGetCurrentDefaultStream(&of_default));
	/* the one made last is the current one */
	check_ok(aclrtCreateContext(&first, 0));
	check_ok(aclrtCreateContext(&second, 1));
	check_ok(aclrtGetCurrentContext(&current));
	check_eq_ptr(current, second);
	check_ok(aclrtGetDevice(&device));
	check_eq_int(device, 1);
	/* each has a default stream of its own; other threads share it */
	check_eq_int(pthread_create(&thread, NULL, other_thread, second), 0);
	pthread_join(thread, &stream);
	check_ok(aclrtCtxGetCurrentDefaultStream(&made));
	check_eq_ptr(made, stream);
	check_ok(aclrtSetCurrentContext(first));
	check_ok(aclrtCtxGetCurrentDefaultStream(&of_first));
	check_ne_uint((uintptr_t)of_first, (uintptr_t)of_default);
	check_ok(aclrtCreateStream(&made));
	check_ok(aclrtSetCurrentContext(standard));
	check_ok(aclrtCtxGetCurrentDefaultStream(&current));
	check_eq_ptr(current, of_default);
	/* its streams go with it; the thread has its device as before */
	check_ok(aclrtSetCurrentContext(first));
	check_ok(aclrtDestroyContext(first));
	check_fails(aclrtSynchronizeStream(made), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_fails(aclrtSynchronizeStream(of_first), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_ok(aclrtSynchronizeStream(of_default));
	check_ok(aclrtGetCurrentContext(&current));
	check_eq_ptr(current, standard);
	check_fails(aclrtDestroyContext(first), ACL_ERROR_RT_CONTEXT_NULL, "no context of this process");
	check_fails(aclrtSetCurrentContext(first), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtDestroyContext(standard), ACL_ERROR_RT_PARAM_INVALID, "aclrtResetDevice");
	check_fails(aclrtSetCurrentContext(&device), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtSetCurrentContext(NULL), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtCreateContext(NULL, 0), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtCreateContext(&current, 99), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
	/* no device was set for 1: the context alone keeps it */
	check_ok(aclrtSetCurrentContext(second));
	check_ok(aclrtDestroyContext(second));
	check_fails(aclrtResetDevice(1), ACL_ERROR_RT_CONTEXT_NULL, "not in use");
	check_ok(aclrtResetDevice(0));
	check_fails(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_fails(aclrtSetCurrentContext(standard), ACL_ERROR_RT_CONTEXT_NULL, NULL);
}

TEST(contexts_of_threads)
{
	job_run(contexts);
}

static void forced_reset(void)
{
	aclrtContext context, current;
	void *memory;

	check_ok(aclrtCreateContext(&context, 0));
	job_memory(100, 0);
	check_ok(aclrtResetDeviceForce(0));
	check_fails(aclrtMalloc(&memory, 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL, "was reset");
	check_fails(aclrtSetCurrentContext(context), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtDestroyContext(context));
	check_fails(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	/* many come and go */
	for (int i = 0; i < 5000; i++) {
		check_ok(aclrtCreateContext(&context, i % 2));
		if (i % 50 == 0)
			check_ok(aclrtSynchronizeStream(NULL));
		check_ok(aclrtDestroyContext(context));
	}
}

TEST(contexts_of_a_device_that_is_reset)
{
	job_run(forced_reset);
}

/* ---- queries ---- */

static void attributes(void)
{
	static const aclrtDevAttr cores[] = { ACL_DEV_ATTR_AICPU_CORE_NUM, ACL_DEV_ATTR_AICORE_CORE_NUM,
					      ACL_DEV_ATTR_CUBE_CORE_NUM, ACL_DEV_ATTR_VECTOR_CORE_NUM };
	size_t free, total;
	int64_t value;
	int32_t answer;

	for (int i = 0; i < 4; i++) {
		check_ok(aclrtGetDeviceInfo(0, cores[i], &value));
		check_eq_int(value, sysconf(_SC_NPROCESSORS_ONLN));
	}
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
	check_ok(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value));
	check_eq_uint((size_t)value, total);
	check_ok(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_IS_VIRTUAL, &value));
	check_eq_int(value, 1);
	check_ok(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_PHY_CHIP_ID, &value));
	check_eq_int(value, 1);
	check_fails(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_SUPER_POD_ID, &value), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, NULL);
	check_fails(aclrtGetDeviceInfo(0, (aclrtDevAttr)7, &value), ACL_ERROR_RT_PARAM_INVALID, "attr is 7");
	check_fails(aclrtGetDeviceInfo(8, ACL_DEV_ATTR_IS_VIRTUAL, &value), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
	check_fails(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_IS_VIRTUAL, NULL), ACL_ERROR_INVALID_PARAM, NULL);
	check_ok(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &answer));
	check_eq_int(answer, ACL_DEV_FEATURE_NOT_SUPPORT);
	check_fails(aclrtGetDeviceCapability(0, (aclrtDevFeatureType)2, &answer), ACL_ERROR_RT_PARAM_INVALID, NULL);
}

static void states(void)
{
	aclrtUtilizationInfo utilization;
	aclrtDeviceStatus status;
	aclrtMemUceInfo errors[2];
	aclrtUuid uuids[3];
	size_t free, total, count;
	uint32_t limit;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtQueryDeviceStatus(0, &status));
	check_eq_int(status, ACL_RT_DEVICE_STATUS_NORMAL);
	check_fails(aclrtQueryDeviceStatus(-1, &status), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
	check_ok(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
	job_memory(total / 10, 0);
	check_ok(aclrtGetDeviceUtilizationRate(0, &utilization));
	check_ge_int(utilization.memoryUtilization, 9);
	check_le_int(utilization.memoryUtilization, 11);
	check_eq_int(utilization.cubeUtilization, 0);
	check_ok(aclrtGetDeviceUtilizationRate(1, &utilization));
	check_eq_int(utilization.memoryUtilization, 0);
	check_ok(aclrtDeviceGetUuid(0, &uuids[0]));
	check_ok(aclrtDeviceGetUuid(0, &uuids[1]));
	check_ok(aclrtDeviceGetUuid(1, &uuids[2]));
	check_eq_mem(&uuids[0], &uuids[1], 16);
	check(memcmp(&uuids[0], &uuids[2], 16) != 0);
	check_eq_int(uuids[0].bytes[6] & 0xf0, 0x80);
	check_ok(aclrtGetMemUceInfo(0, errors, 2, &count));
	check_eq_uint(count, 0);
	check_fails(aclrtGetMemUceInfo(0, errors, 0, &count), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_ok(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &limit));
	check_eq_int(limit, sysconf(_SC_NPROCESSORS_ONLN));
	check_ok(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 1));
	check_ok(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &limit));
	check_eq_uint(limit, 1);
	check_fails(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 0), ACL_ERROR_RT_PARAM_INVALID, "value");
	check_fails(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 100000), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtSetDeviceResLimit(0, (aclrtDevResLimitType)2, 1), ACL_ERROR_RT_PARAM_INVALID, "type");
	check_ok(aclrtResetDeviceResLimit(0));
	check_ok(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &limit));
	check_eq_int(limit, sysconf(_SC_NPROCESSORS_ONLN));
	check_ok(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
	check_fails(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), ACL_ERROR_RT_PARAM_INVALID, "mode");
	check_ok(aclrtSetTsDevice(ACL_TS_ID_AIVECTOR));
	check_fails(aclrtSetTsDevice(ACL_TS_ID_RESERVED), ACL_ERROR_RT_PARAM_INVALID, NULL);
}

static void versions(void)
{
	aclCANNPackageVersion version;
	char runtime[] = "runtime", unknown[] = "nothing", text[ACL_PKG_VERSION_MAX_SIZE];
	int32_t number;

	check_ok(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version));
	check_eq_str(version.version, "9.0.0");
	check_eq_str(version.majorVersion, "9");
	check_ok(aclsysGetVersionNum(runtime, &number));
	check_eq_int(number, 90000000);
	check_ok(aclsysGetVersionStr(runtime, text));
	check_eq_str(text, "9.0.0");
	check_fails(aclsysGetVersionStr(unknown, text), ACL_ERROR_RT_PARAM_INVALID, "nothing");
	check_fails(aclsysGetCANNVersion((aclCANNPackageName)8, &version), ACL_ERROR_RT_PARAM_INVALID, NULL);
}

TEST(queries_of_devices)
{
	job_run(attributes);
	job_run(states);
	job_run(versions);
}

static void numbers(void)
{
	int32_t number;

	check_ok(aclrtGetLogicDevIdByUserDevId(0, &number));
	check_eq_int(number, 5);
	check_ok(aclrtGetUserDevIdByLogicDevId(2, &number));
	check_eq_int(number, 1);
	check_fails(aclrtGetUserDevIdByLogicDevId(0, &number), ACL_ERROR_RT_INVALID_DEVICEID, "ASCEND_RT_VISIBLE_DEVICES");
	check_fails(aclrtGetLogicDevIdByUserDevId(2, &number), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
	check_ok(aclrtGetPhyDevIdByLogicDevId(5, &number));
	check_eq_int(number, 5);
	check_ok(aclrtGetLogicDevIdByPhyDevId(7, &number));
	check_eq_int(number, 7);
	check_fails(aclrtGetLogicDevIdByPhyDevId(8, &number), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
}

TEST(queries_of_device_numbers)
{
	job_run_with("ASCEND_RT_VISIBLE_DEVICES", "5,2", numbers);
}

static void peers(void)
{
	unsigned char *here, *there;
	int32_t answer;

	check_ok(aclrtDeviceCanAccessPeer(&answer, 0, 1));
	check_eq_int(answer, 1);
	check_ok(aclrtDeviceCanAccessPeer(&answer, 1, 1));
	check_eq_int(answer, 0);
	check_fails(aclrtDeviceCanAccessPeer(&answer, 0, 8), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
	check_fails(aclrtDeviceEnablePeerAccess(1, 0), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetDevice(1));
	there = job_memory(100000, 7);
	check_ok(aclrtSetDevice(0));
	here = job_memory(100000, 1);
	check_fails(aclrtDeviceEnablePeerAccess(0, 0), ACL_ERROR_RT_PARAM_INVALID, "itself");
	check_fails(aclrtDeviceEnablePeerAccess(1, 1), ACL_ERROR_RT_PARAM_INVALID, "flags");
	check_fails(aclrtDeviceDisablePeerAccess(1), ACL_ERROR_RT_PARAM_INVALID, "not enabled");
	check_ok(aclrtDeviceEnablePeerAccess(1, 0));
	check_ok(aclrtDeviceEnablePeerAccess(1, 0));
	check_ok(aclrtDevicePeerAccessStatus(0, 1, &answer));
	check_eq_int(answer, 1);
	check_ok(aclrtDevicePeerAccessStatus(1, 0, &answer));
	check_eq_int(answer, 0);
	check_ok(aclrtMemcpy(here, 100000, there, 100000, ACL_MEMCPY_DEVICE_TO_DEVICE));
	check_eq_int(here[99999], 7);
	there[99999] = 8;
	check_ok(aclrtMemcpyAsync(here, 100000, there, 100000, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_int(here[99999], 8);
	check_ok(aclrtDeviceDisablePeerAccess(1));
	check_ok(aclrtDevicePeerAccessStatus(0, 1, &answer));
	check_eq_int(answer, 0);
}

TEST(peers_reach_each_other)
{
	job_run(peers);
}

/* ---- copies ---- */

static void rows(void)
{
	enum { WIDTH = 100, HEIGHT = 50, PITCH = 160 };
	unsigned char host[HEIGHT * 120], back[HEIGHT * 120], *device;

	check_ok(aclrtSetDevice(0));
	device = job_memory(HEIGHT * PITCH, 0xee);
	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = (unsigned char)i;
	for (int round = 0; round < 2; round++) {
		memset(back, 0, sizeof(back));
		memset(device, 0xee, HEIGHT * PITCH);
		if (round == 0) {
			check_ok(aclrtMemcpy2d(device, PITCH, host, 120, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE));
			check_ok(aclrtMemcpy2d(back, 120, device, PITCH, WIDTH, HEIGHT, ACL_MEMCPY_DEVICE_TO_HOST));
		} else {
			check_ok(aclrtMemcpy2dAsync(device, PITCH, host, 120, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE, NULL));
			check_ok(aclrtMemcpy2dAsync(back, 120, device, PITCH, WIDTH, HEIGHT, ACL_MEMCPY_DEVICE_TO_HOST, NULL));
			check_ok(aclrtSynchronizeStream(NULL));
		}
		for (int y = 0; y < HEIGHT; y++) {
			check_eq_mem(&device[y * PITCH], &host[y * 120], WIDTH);
			check_eq_mem(&back[y * 120], &host[y * 120], WIDTH);
			check_eq_int(device[y * PITCH + WIDTH], 0xee);
			check_eq_int(back[y * 120 + WIDTH], 0);
		}
	}
	check_fails(aclrtMemcpy2d(NULL, PITCH, host, 120, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtMemcpy2d(device, 90, host, 120, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM, "dpitch 90");
	check_fails(aclrtMemcpy2d(device, PITCH, host, 120, WIDTH, 0, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM, "height 0");
	check_fails(aclrtMemcpy2d(device, PITCH, host, 120, WIDTH, HEIGHT + 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID, "ends after");
	check_fails(aclrtMemcpy2d(device, PITCH, host, 120, WIDTH, SIZE_MAX / 4, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID, "height");
	check_fails(aclrtMemcpy2d(device, PITCH, host, 120, WIDTH, HEIGHT, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID, "kind");
	/* equal addresses are copied row by row all the same */
	check_ok(aclrtMemcpy2d(device, PITCH, device, PITCH, WIDTH, HEIGHT, ACL_MEMCPY_DEVICE_TO_DEVICE));
	check_fails(aclrtMemcpy2d(device, PITCH, device, PITCH, WIDTH, HEIGHT + 1, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID,
		    "ends after");
	check_fails(aclrtMemcpy2d(device, PITCH, device, PITCH, WIDTH, 1 << 20, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "ends after");
	/* all or nothing */
	memset(device, 0xee, HEIGHT * PITCH);
	check_fails(aclrtMemcpy2dAsync(device, PITCH, host, 100, WIDTH, HEIGHT + 1, ACL_MEMCPY_HOST_TO_DEVICE, NULL), ACL_ERROR_RT_PARAM_INVALID,
		    "aclrtMemcpy2dAsync: dst");
	check_fails(aclrtMemcpy2dAsync(device, 120, device + 100, 110, WIDTH, 20, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL),
		    ACL_ERROR_RT_PARAM_INVALID, "overlap");
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_int(device[0], 0xee);
	check_ok(aclrtMemcpyAsyncWithCondition(device, 100, host, 100, ACL_MEMCPY_HOST_TO_DEVICE, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_mem(device, host, 100);
}

static void batches(void)
{
	unsigned char host[4][1000], *device[4];
	void *to[4], *from[4];
	size_t sizes[4] = { 1, 10, 100, 1000 }, indexes[2] = { 0, 2 }, failed = 0;
	aclrtMemcpyBatchAttr attrs[2] = {
		{ .dstLoc = { 0, ACL_MEM_LOCATION_TYPE_DEVICE }, .srcLoc = { 0, ACL_MEM_LOCATION_TYPE_HOST } },
		{ .dstLoc = { 0, ACL_MEM_LOCATION_TYPE_DEVICE }, .srcLoc = { 0, ACL_MEM_LOCATION_TYPE_DEVICE } },
	};

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 4; i++) {
		device[i] = job_memory(1000, 0);
		memset(host[i], i + 1, 1000);
		to[i] = device[i];
		from[i] = i < 2 ? (void *)host[i] : job_memory(1000, i + 1);
	}
	for (int round = 0; round < 2; round++) {
		if (round == 0) {
			check_ok(aclrtMemcpyBatch(to, sizes, from, sizes, 4, attrs, indexes, 2, &failed));
		} else {
			for (int i = 0; i < 4; i++)
				check_ok(aclrtMemset(device[i], 1000, 0, 1000));
			check_ok(aclrtMemcpyBatchAsync(to, sizes, from, sizes, 4, attrs, indexes, 2, &failed, NULL));
			check_ok(aclrtSynchronizeStream(NULL));
		}
		check_eq_uint(failed, SIZE_MAX);
		for (int i = 0; i < 4; i++) {
			check_eq_int(device[i][sizes[i] - 1], i + 1);
			if (sizes[i] < 1000)
				check_eq_int(device[i][sizes[i]], 0);
		}
	}
	sizes[2] = 0;
	check_fails(aclrtMemcpyBatch(to, sizes, from, sizes, 4, attrs, indexes, 2, &failed), ACL_ERROR_RT_PARAM_INVALID, "count is 0");
	check_eq_uint(failed, 2);
	sizes[2] = 1;
	indexes[1] = 4;
	check_fails(aclrtMemcpyBatch(to, sizes, from, sizes, 4, attrs, indexes, 2, &failed), ACL_ERROR_RT_PARAM_INVALID, "attrsIndexes");
	check_eq_uint(failed, SIZE_MAX);
	check_fails(aclrtMemcpyBatch(to, sizes, from, sizes, 0, attrs, indexes, 2, &failed), ACL_ERROR_RT_PARAM_INVALID, "numBatches");
	check_fails(aclrtMemcpyBatch(to, sizes, from, sizes, 4, attrs, indexes, 2, NULL), ACL_ERROR_INVALID_PARAM, NULL);
}

static void host_memory(void)
{
	aclrtPtrAttributes attributes;
	static char memory[10000];
	void *device, *pinned, *same;

	check_ok(aclrtSetDevice(1));
	device = job_memory(5000, 0);
	check_ok(aclrtMallocHost(&pinned, 5000));
	check_ok(aclrtPointerGetAttributes((char *)device + 4999, &attributes));
	check_eq_int(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
	check_eq_uint(attributes.location.id, 1);
	check_ok(aclrtPointerGetAttributes(pinned, &attributes));
	check_eq_int(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
	check_ok(aclrtPointerGetAttributes(memory, &attributes));
	check_eq_int(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	check_null(aclGetRecentErrMsg());
	check_ok(aclrtHostRegister(memory, 5000, ACL_HOST_REGISTER_MAPPED, &same));
	check_eq_ptr(same, memory);
	check_ok(aclrtPointerGetAttributes(memory + 4999, &attributes));
	check_eq_int(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
	check_fails(aclrtHostRegister(memory + 4999, 5000, ACL_HOST_REGISTER_MAPPED, &same), ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "already");
	check_fails(aclrtHostRegisterV2(memory, 5, ACL_HOST_REG_PINNED), ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, NULL);
	check_fails(aclrtHostRegister(memory, 5000, ACL_HOST_REGISTER_IOMEMORY, &same), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, NULL);
	check_fails(aclrtHostRegister(device, 5000, ACL_HOST_REGISTER_MAPPED, &same), ACL_ERROR_RT_PARAM_INVALID, "memory of acl");
	check_fails(aclrtHostRegister(memory, 0, ACL_HOST_REGISTER_MAPPED, &same), ACL_ERROR_RT_PARAM_INVALID, NULL);
	same = NULL;
	check_ok(aclrtHostGetDevicePointer(memory + 10, &same, 0));
	check_eq_ptr(same, memory + 10);
	check_ok(aclrtHostGetDevicePointer(pinned, &same, 0));
	check_fails(aclrtHostGetDevicePointer(memory + 6000, &same, 0), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, NULL);
	check_ok(aclrtHostRegisterV2(memory + 5000, 5000, ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED));
	check_fails(aclrtHostUnregister(memory + 10), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, NULL);
	check_ok(aclrtHostUnregister(memory));
	check_fails(aclrtHostUnregister(memory), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, NULL);
	check_ok(aclrtHostUnregister(memory + 5000));
	check_ok(aclrtMemFlush(device, 5000));
	check_ok(aclrtMemInvalidate(device, 1));
	check_fails(aclrtMemFlush(device, 6000), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtMemFlush(memory, 1), ACL_ERROR_RT_PARAM_INVALID, "not device");
	check_ok(aclrtMallocForTaskScheduler(&same, 100, ACL_MEM_MALLOC_HUGE_FIRST, NULL));
	check_ok(aclrtFree(same));
}

TEST(copies_of_rows)
{
	job_run(rows);
}

TEST(copies_in_batches)
{
	job_run(batches);
}

TEST(host_memory_is_registered)
{
	job_run(host_memory);
}

/* ---- profiling, as hccl_test does it ---- */

static void profiling(void)
{
	uint32_t devices[] = { 0, 1 }, twice[] = { 1, 1 }, none[] = { 99 };
	aclprofConfig *config;

	check_ok(aclrtSetDevice(0));
	check_fails(aclprofInit(NULL, 1), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclprofInit("/tmp", 3), ACL_ERROR_INVALID_PARAM, "length");
	check_fails(aclprofInit("/nowhere", 8), ACL_ERROR_INVALID_FILE, "/nowhere");
	check_fails(aclprofFinalize(), ACL_ERROR_PROF_NOT_RUN, NULL);
	config = aclprofCreateConfig(devices, 2, ACL_AICORE_PIPE_UTILIZATION, NULL,
				     ACL_PROF_ACL_API | ACL_PROF_TASK_TIME | ACL_PROF_HCCL_TRACE);
	check_ptr(config);
	check_fails(aclprofStart(config), ACL_ERROR_PROF_NOT_RUN, "aclprofInit");
	check_ok(aclprofInit("/tmp", 4));
	check_fails(aclprofInit("/tmp", 4), ACL_ERROR_REPEAT_INITIALIZE, NULL);
	check_fails(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN, "aclprofStart");
	check_ok(aclprofStart(config));
	check_fails(aclprofStart(config), ACL_ERROR_PROF_ALREADY_RUN, NULL);
	check_fails(aclprofDestroyConfig(config), ACL_ERROR_PROF_ALREADY_RUN, "aclprofStop");
	check_ok(aclprofStop(config));
	check_ok(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "200MB", 5));
	check_fails(aclprofSetConfig(ACL_PROF_ARGS_MAX, "1", 1), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_ok(aclprofDestroyConfig(config));
	check_fails(aclprofDestroyConfig(config), ACL_ERROR_INVALID_PARAM, "destroyed");
	check_fails(aclprofStart(config), ACL_ERROR_INVALID_PARAM, "destroyed");
	check_fails(aclprofStop((const aclprofConfig *)8), ACL_ERROR_INVALID_PARAM, "aclprofCreateConfig");
	check_ok(aclprofFinalize());
	check_null(aclprofCreateConfig(twice, 2, ACL_AICORE_NONE, NULL, ACL_PROF_ACL_API));
	check_str_contains(aclGetRecentErrMsg(), "twice");
	check_null(aclprofCreateConfig(none, 1, ACL_AICORE_NONE, NULL, ACL_PROF_ACL_API));
	check_null(aclprofCreateConfig(devices, 2, (aclprofAicoreMetrics)77, NULL, ACL_PROF_ACL_API));
	check_null(aclprofCreateConfig(devices, 2, ACL_AICORE_NONE, NULL, 0x4000));
}

TEST(profiling_calls_are_checked)
{
	job_run(profiling);
}

static void *push_in_thread(void *stamp)
{
	check_ok(aclprofPush(stamp));
	check_ok(aclprofPop());
	check_fails(aclprofPop(), ACL_ERROR_PROFILING_FAILURE, "aclprofPush");
	return NULL;
}

/* Stamps are there between start and stop; spans of threads nest, ranges are those of the process. */
static void stamps(void)
{
	uint32_t device = 0, range = 0, other = 0;
	aclprofConfig *config;
	void *stamp, *second;
	aclrtStream stream;
	pthread_t thread;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_null(aclprofCreateStamp());
	check_str_contains(aclGetRecentErrMsg(), "aclprofStart");
	check_fails(aclprofPop(), ACL_ERROR_PROF_NOT_RUN, NULL);
	check_ok(aclprofInit("/tmp", 4));
	config = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, NULL, ACL_PROF_MSPROFTX);
	check_ok(aclprofStart(config));
	stamp = aclprofCreateStamp();
	second = aclprofCreateStamp();
	check(stamp && second && stamp != second);
	check_ok(aclprofSetStampTraceMessage(stamp, "step", 4));
	check_fails(aclprofSetStampTraceMessage(stamp, NULL, 4), ACL_ERROR_INVALID_PARAM, "msg");
	check_fails(aclprofMark(&device), ACL_ERROR_INVALID_PARAM, "aclprofCreateStamp");
	check_ok(aclprofMark(stamp));
	check_ok(aclprofMarkEx("step", 4, stream));
	check_fails(aclprofMarkEx("step", 128, stream), ACL_ERROR_INVALID_PARAM, "127");
	check_fails(aclprofMarkEx("step", 4, (aclrtStream)&device), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_ok(aclprofPush(stamp));
	check_eq_int(pthread_create(&thread, NULL, push_in_thread, second), 0);
	check_eq_int(pthread_join(thread, NULL), 0);
	check_ok(aclprofPop());
	check_ok(aclprofRangeStart(stamp, &range));
	check_fails(aclprofRangeStart(stamp, &other), ACL_ERROR_PROFILING_FAILURE, "aclprofRangeStop");
	check_ok(aclprofRangeStart(second, &other));
	check(range != other);
	check_ok(aclprofRangeStop(range));
	check_fails(aclprofRangeStop(range), ACL_ERROR_PROFILING_FAILURE, "rangeId");
	aclprofDestroyStamp(stamp);
	check_fails(aclprofMark(stamp), ACL_ERROR_INVALID_PARAM, NULL);
	check_ok(aclprofStop(config));
	check_fails(aclprofMark(second), ACL_ERROR_PROF_NOT_RUN, NULL);
	aclprofDestroyStamp(second);
	aclprofDestroyStamp(NULL);
	check_ok(aclprofDestroyConfig(config));
	check_ok(aclprofFinalize());
	check_ok(aclrtDestroyStream(stream));
}

TEST(stamps_between_start_and_stop)
{
	job_run(stamps);
}
