/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved addresses and physical memory, as allocators of frameworks use them. */
#include <pthread.h>
#include <string.h>

#include "tests/support/job.h"

#define MIB ((size_t)1 << 20)
#define PIECE (2 * MIB)

static aclrtPhysicalMemProp prop_of(uint32_t device)
{
	return (aclrtPhysicalMemProp){ .memAttr = ACL_HBM_MEM_HUGE,
				       .location = { device, ACL_MEM_LOCATION_TYPE_DEVICE } };
}

static void *piece(uint32_t device)
{
	const aclrtPhysicalMemProp prop = prop_of(device);
	void *handle;

	check_ok(aclrtMallocPhysical(&handle, PIECE, &prop, 0));
	return handle;
}

/* The order of hccl_test: granularity, reserve, physical, map, use, and back. */
static void as_hccl_test(struct job_rank *rank)
{
	aclrtPhysicalMemProp prop = prop_of((uint32_t)rank->device);
	size_t granularity, size = 3 * MIB + 5;
	unsigned char *sent, *received;
	void *handle[2];

	check_ok(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
						  &granularity));
	check_eq_uint(granularity, 2 * MIB);
	size = (size + granularity - 1) / granularity * granularity;
	check_ok(aclrtReserveMemAddress((void **)&sent, size, 0, NULL, 1));
	check_ok(aclrtReserveMemAddress((void **)&received, size, 0, NULL, 1));
	check_eq_uint((uintptr_t)sent % granularity, 0);
	for (int i = 0; i < 2; i++)
		check_ok(aclrtMallocPhysical(&handle[i], size, &prop, 0));
	check_ok(aclrtMapMem(sent, size, 0, handle[0], 0));
	check_ok(aclrtMapMem(received, size, 0, handle[1], 0));
	memset(sent, (int)rank->rank + 1, size);
	for (int round = 0; round < 3; round++) {
		uint32_t next = (rank->rank + 1) % rank->size;
		uint32_t previous = (rank->rank + rank->size - 1) % rank->size;
		HcclSendRecvItem items[] = { job_send(next, sent, size),
					     job_receive(previous, received, size) };

		check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
		check_ok(aclrtSynchronizeStream(rank->stream));
		check_eq_int(received[0], (int)previous + 1);
		check_eq_int(received[size - 1], (int)previous + 1);
	}
	check_ok(HcclBarrier(rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	check_ok(aclrtUnmapMem(sent));
	check_ok(aclrtUnmapMem(received));
	for (int i = 0; i < 2; i++)
		check_ok(aclrtFreePhysical(handle[i]));
	check_ok(aclrtReleaseMemAddress(sent));
	check_ok(aclrtReleaseMemAddress(received));
}

static void ranks_as_hccl_test(void)
{
	job_ranks(3, 2, as_hccl_test, NULL);
}

TEST(virtual_memory_is_sent_and_received)
{
	job_run(ranks_as_hccl_test);
}

static void mapped_twice(void)
{
	unsigned char *a, *b, *mine;
	void *handle, *again, *base;
	size_t had, size;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtSynchronizeStream(NULL));
	mine = job_memory(PIECE, 3);
	had = job_free_memory();
	handle = piece(0);
	check_eq_uint(job_free_memory(), had - PIECE);
	check_ok(aclrtReserveMemAddress((void **)&a, 8 * PIECE, 0, NULL, 0));
	b = a + 4 * PIECE;
	check_ok(aclrtMapMem(a, PIECE, 0, handle, 0));
	/* another time, and a part of it */
	check_ok(aclrtMapMem(b, PIECE / 2, PIECE / 2, handle, 0));
	check_eq_uint(job_free_memory(), had - PIECE);
	a[PIECE - 1] = 77;
	check_eq_int(b[PIECE / 2 - 1], 77);
	check_ok(aclrtMemcpyAsync(b, PIECE / 2, mine, PIECE / 2, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
	check_ok(aclrtMemsetAsync(a, 100, 9, 100, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_int(a[PIECE / 2], 3);
	check_eq_int(a[PIECE - 1], 3);
	check_eq_int(a[99], 9);
	check_eq_int(a[100], 0);
	check_ok(aclrtMemGetAddressRange(b + 5, &base, &size));
	check_eq_ptr(base, b);
	check_eq_uint(size, PIECE / 2);
	/* a handle may go before its mappings, and come back from them */
	check_ok(aclrtFreePhysical(handle));
	check_fails(aclrtFreePhysical(handle), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_ok(aclrtMemRetainAllocationHandle(b + 10, &again));
	check_ok(aclrtMapMem(a + PIECE, PIECE, 0, again, 0));
	check_eq_int(a[PIECE + 99], 9);
	check_ok(aclrtUnmapMem(a));
	check_ok(aclrtUnmapMem(b));
	check_fails(aclrtReleaseMemAddress(a), ACL_ERROR_RT_PARAM_INVALID, "aclrtUnmapMem first");
	check_ok(aclrtFreePhysical(again));
	check_eq_uint(job_free_memory(), had - PIECE);
	check_eq_int(a[PIECE + 99], 9);
	check_ok(aclrtUnmapMem(a + PIECE));
	check_eq_uint(job_free_memory(), had);
	check_ok(aclrtReleaseMemAddress(a));
}

TEST(virtual_one_piece_is_mapped_several_times)
{
	job_run(mapped_twice);
}

/* A segment that grows, as in PyTorch's allocator: pieces one behind the other. */
static void grows(void)
{
	enum { COUNT = 20 };
	HcclSendRecvItem items[2];
	unsigned char *base, *other, *host;
	void *handles[COUNT];
	aclrtStream stream;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtReserveMemAddress((void **)&base, COUNT * PIECE, 0, NULL, 0));
	other = job_memory(COUNT * PIECE, 1);
	check_ok(aclrtMallocHost((void **)&host, COUNT * PIECE));
	for (int i = 0; i < COUNT; i++) {
		handles[i] = piece(0);
		check_ok(aclrtMapMem(base + i * PIECE, PIECE, 0, handles[i], 0));
	}
	/* copies go over their borders */
	for (size_t i = 0; i < COUNT * PIECE; i++)
		other[i] = (unsigned char)(i / 1001);
	check_ok(aclrtMemcpyAsync(base + 100, COUNT * PIECE - 100, other, COUNT * PIECE - 100,
				  ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
	check_ok(aclrtMemcpyAsync(host, COUNT * PIECE, base + 100, COUNT * PIECE - 100,
				  ACL_MEMCPY_DEVICE_TO_HOST, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_mem(host, other, COUNT * PIECE - 100);
	check_ok(aclrtMemsetAsync(base, COUNT * PIECE, 8, COUNT * PIECE, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_ok(aclrtMemcpy(host, COUNT * PIECE, base, COUNT * PIECE, ACL_MEMCPY_DEVICE_TO_HOST));
	check_eq_int(host[COUNT * PIECE - 1], 8);
	check_eq_int(host[0], 8);
	check_fails(aclrtMemcpy(host, COUNT * PIECE, base + 1, COUNT * PIECE, ACL_MEMCPY_DEVICE_TO_HOST),
		    ACL_ERROR_RT_PARAM_INVALID, "ends after");
	/* an item must be within one */
	comm = job_alone();
	items[0] = job_send(0, base + PIECE - 50, 100);
	items[1] = job_receive(0, other, 100);
	check_ok(aclrtCreateStream(&stream));
	check_fails(HcclBatchSendRecv(items, 2, comm, stream), HCCL_E_NOT_SUPPORT, "one piece of physical memory");
	items[0].buf = base + PIECE;
	check_ok(HcclBatchSendRecv(items, 2, comm, stream));
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_int(other[99], 8);
	check_ok(HcclCommDestroy(comm));
	for (int i = 0; i < COUNT; i++) {
		check_ok(aclrtUnmapMem(base + i * PIECE));
		check_ok(aclrtFreePhysical(handles[i]));
	}
	check_ok(aclrtReleaseMemAddress(base));
}

TEST(virtual_segment_grows)
{
	job_run(grows);
}

static void in_flight(void)
{
	unsigned char *base, *other;
	void *handle, *big;
	aclrtPhysicalMemProp prop = prop_of(0);

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtReserveMemAddress((void **)&base, 64 * MIB, 0, NULL, 0));
	check_ok(aclrtMallocPhysical(&big, 64 * MIB, &prop, 0));
	check_ok(aclrtMapMem(base, 64 * MIB, 0, big, 0));
	other = job_memory(64 * MIB, 6);
	/* unmapped: it goes on in the physical memory */
	for (int i = 0; i < 10; i++)
		check_ok(aclrtMemcpyAsync(base, 64 * MIB, other, 64 * MIB,
					  ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
	check_ok(aclrtUnmapMem(base));
	handle = piece(0);
	check_ok(aclrtMapMem(base, PIECE, 0, handle, 0));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_int(base[0], 0);
	check_ok(aclrtMapMem(base + PIECE, 62 * MIB, 0, big, 0));
	check_eq_int(base[PIECE + 1], 6);
	check_eq_int(base[64 * MIB - 1], 6);
	/* freed: it fails, or was quick enough */
	check_ok(aclrtUnmapMem(base + PIECE));
	for (int i = 0; i < 30; i++)
		check_ok(aclrtMemcpyAsync(base, PIECE, other, PIECE, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
	check_ok(aclrtUnmapMem(base));
	check_ok(aclrtFreePhysical(handle));
	(void)aclrtSynchronizeStream(NULL);
	aclGetRecentErrMsg();
	check_ok(aclrtMemsetAsync(other, 64 * MIB, 5, 64 * MIB, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_int(other[64 * MIB - 1], 5);
	check_ok(aclrtFreePhysical(big));
	check_ok(aclrtReleaseMemAddress(base));
}

TEST(virtual_memory_goes_with_operations_in_flight)
{
	job_run(in_flight);
}

static void device_reset(void)
{
	unsigned char *base, *again;
	void *handle, *other;

	check_ok(aclrtSetDevice(1));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtReserveMemAddress((void **)&base, 2 * PIECE, 0, NULL, 0));
	handle = piece(0);
	other = piece(1);
	check_ok(aclrtMapMem(base, PIECE, 0, handle, 0));
	check_ok(aclrtMapMem(base + PIECE, PIECE, 0, other, 0));
	base[PIECE] = 4;
	check_ok(aclrtResetDevice(0));
	/* the other device's is there */
	check_eq_int(base[PIECE], 4);
	check_ok(aclrtSetDevice(0));
	check_fails(aclrtMemcpy(&again, 8, base, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID, "not device memory");
	check_ok(aclrtReserveMemAddress((void **)&again, PIECE, 0, NULL, 0));
	check_fails(aclrtMapMem(again, PIECE, 0, handle, 0), ACL_ERROR_RT_INVALID_HANDLE, "was reset");
	check_ok(aclrtUnmapMem(base));
	check_ok(aclrtMapMem(base, PIECE, 0, other, 0));
	check_eq_int(base[0], 4);
	check_ok(aclrtFreePhysical(handle));
	check_ok(aclrtUnmapMem(base));
	check_ok(aclrtUnmapMem(base + PIECE));
	check_ok(aclrtFreePhysical(other));
	check_ok(aclrtReleaseMemAddress(base));
}

TEST(virtual_memory_ends_with_its_device)
{
	job_run(device_reset);
}

static void check_props(void)
{
	aclrtPhysicalMemProp prop = prop_of(0);
	size_t granularity;
	void *handle;

	prop.memAttr = ACL_HBM_MEM_NORMAL;
	check_ok(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity));
	check_eq_uint(granularity, 4096);
	check_fails(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF, &granularity),
		    ACL_ERROR_RT_PARAM_INVALID, "option");
	check_ok(aclrtMallocPhysical(&handle, 4096, &prop, 0));
	check_ok(aclrtFreePhysical(handle));
	check_fails(aclrtMallocPhysical(&handle, 4097, &prop, 0), ACL_ERROR_RT_PARAM_INVALID, "multiple");
	check_fails(aclrtMallocPhysical(&handle, 0, &prop, 0), ACL_ERROR_RT_PARAM_INVALID, "multiple");
	check_fails(aclrtMallocPhysical(&handle, 4096, &prop, 1), ACL_ERROR_RT_PARAM_INVALID, "flags");
	check_fails(aclrtMallocPhysical(NULL, 4096, &prop, 0), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtMallocPhysical(&handle, 4096, NULL, 0), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtMallocPhysical(&handle, (size_t)1 << 45, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION, "device 0");
	prop.location.id = 1;
	check_fails(aclrtMallocPhysical(&handle, 4096, &prop, 0), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice(1)");
	prop.location.id = 99;
	check_fails(aclrtMallocPhysical(&handle, 4096, &prop, 0), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
	prop.location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
	check_fails(aclrtMallocPhysical(&handle, 4096, &prop, 0), ACL_ERROR_RT_PARAM_INVALID, "location");
	prop = prop_of(0);
	prop.memAttr = (aclrtMemAttr)18;
	check_fails(aclrtMallocPhysical(&handle, PIECE, &prop, 0), ACL_ERROR_RT_PARAM_INVALID, "memAttr");
}

/* Reserved addresses are no memory before something is mapped there, nor afterwards: calls say so, and the process lives on. */
static void not_mapped(void)
{
	unsigned char *base, host[100] = { 1 };
	void *handle;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtReserveMemAddress((void **)&base, 2 * PIECE, 0, NULL, 0));
	handle = piece(0);
	for (int round = 0; round < 2; round++) {
		check_fails(aclrtMemset(base, 100, 1, 100), ACL_ERROR_RT_PARAM_INVALID, "aclrtMapMem first");
		check_fails(aclrtMemsetAsync(base, 100, 1, 100, NULL), ACL_ERROR_RT_PARAM_INVALID, "aclrtMapMem first");
		check_fails(aclrtMemcpy(base, 100, host, 100, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "dst");
		check_fails(aclrtMemcpy(host, 100, base + PIECE, 100, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_PARAM_INVALID, "src");
		check_fails(aclrtMemcpyAsync(base, 100, host, 100, ACL_MEMCPY_DEFAULT, NULL), ACL_ERROR_RT_PARAM_INVALID, "dst");
		check_fails(aclrtMemcpy2d(base - 50, 100, host, 100, 100, 1, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, "dst");
		check_ok(aclrtMapMem(base, PIECE, 0, handle, 0));
		check_ok(aclrtMemcpy(base, 100, host, 100, ACL_MEMCPY_DEFAULT));
		check_fails(aclrtMemset(base + PIECE - 50, 100, 1, 100), ACL_ERROR_RT_PARAM_INVALID, "ends after");
		check_ok(aclrtUnmapMem(base));
	}
	check_ok(aclrtMapMem(base, PIECE, 0, handle, 0));
	check_ok(aclrtResetDevice(0));
	check_ok(aclrtSetDevice(0));
	check_fails(aclrtMemset(base, 100, 1, 100), ACL_ERROR_RT_PARAM_INVALID, "if the device was reset");
}

TEST(virtual_addresses_without_memory)
{
	job_run(not_mapped);
}

static void bad_arguments(void)
{
	aclrtMemAccessDesc access = { .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
				      .location = { 1, ACL_MEM_LOCATION_TYPE_DEVICE } };
	unsigned char *base;
	void *handle, *again;
	char key[65];
	size_t size;

	check_fails(aclrtReserveMemAddress((void **)&base, PIECE, 0, NULL, 0), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetDevice(0));
	check_props();
	check_fails(aclrtReserveMemAddress(NULL, PIECE, 0, NULL, 0), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtReserveMemAddress((void **)&base, 0, 0, NULL, 0), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtReserveMemAddress((void **)&base, SIZE_MAX, 0, NULL, 0), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtReserveMemAddress((void **)&base, PIECE, 3, NULL, 0), ACL_ERROR_RT_PARAM_INVALID, "power");
	check_fails(aclrtReserveMemAddress((void **)&base, PIECE, 0, NULL, 9), ACL_ERROR_RT_PARAM_INVALID, "flags");
	check_ok(aclrtReserveMemAddress((void **)&base, 2 * PIECE, 0, NULL, 0));
	handle = piece(0);
	check_fails(aclrtMapMem(NULL, PIECE, 0, handle, 0), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtMapMem(base, PIECE, 0, NULL, 0), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtMapMem(base, PIECE, 0, handle, 7), ACL_ERROR_RT_PARAM_INVALID, "flags");
	check_fails(aclrtMapMem(base, PIECE, 0, base, 0), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_fails(aclrtMapMem(base, 2 * PIECE, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtMapMem(base, PIECE, 4096, handle, 0), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtMapMem(base, 100, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID, "pages");
	check_fails(aclrtMapMem(base + 3 * MIB, PIECE, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID, "aclrtReserveMemAddress");
	check_ok(aclrtMapMem(base, PIECE, 0, handle, 0));
	check_fails(aclrtMapMem(base + MIB, PIECE, 0, handle, 0), ACL_ERROR_RT_PARAM_INVALID, "aclrtUnmapMem first");
	check_fails(aclrtUnmapMem(base + 4096), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtUnmapMem(base + PIECE), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_ok(aclrtIpcMemGetExportKey(base, 100, key, sizeof(key), ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	base[0] = 7;
	check_fails(aclrtFree(base), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_eq_int(base[0], 7);
	check_ok(aclrtIpcMemImportByKey(&again, key, 0));
	check_eq_int(*(unsigned char *)again, 7);
	check_ok(aclrtIpcMemClose(key));
	check_ok(aclrtMemSetAccess(base, PIECE, &access, 1));
	check_fails(aclrtMemSetAccess(base, MIB, &access, 1), ACL_ERROR_RT_PARAM_INVALID, "aclrtMapMem");
	access.flags = ACL_RT_MEM_ACCESS_FLAGS_READ;
	check_fails(aclrtMemSetAccess(base, PIECE, &access, 1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "READWRITE");
	access = (aclrtMemAccessDesc){ .flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
				       .location = { 99, ACL_MEM_LOCATION_TYPE_DEVICE } };
	check_fails(aclrtMemSetAccess(base, PIECE, &access, 1), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
	check_fails(aclrtMemRetainAllocationHandle(base + PIECE, &again), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_fails(aclrtMemGetAddressRange(base + PIECE, &again, &size), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_ok(aclrtUnmapMem(base));
	check_fails(aclrtReleaseMemAddress(base + PIECE), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_ok(aclrtReleaseMemAddress(base));
	check_fails(aclrtReleaseMemAddress(base), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_ok(aclrtFreePhysical(handle));
}

TEST(virtual_bad_arguments)
{
	job_run(bad_arguments);
}

static void *maps(void *arg)
{
	unsigned char *base;

	check_ok(aclrtSetDevice((int32_t)(intptr_t)arg % 2));
	check_ok(aclrtReserveMemAddress((void **)&base, 4 * PIECE, 0, NULL, 0));
	for (int i = 0; i < 200; i++) {
		void *handle = piece((uint32_t)(intptr_t)arg % 2);

		for (int k = 0; k < 4; k++)
			check_ok(aclrtMapMem(base + k * PIECE, PIECE, 0, handle, 0));
		check_ok(aclrtMemsetAsync(base + PIECE, 100, i, 100, NULL));
		check_ok(aclrtSynchronizeStream(NULL));
		check_eq_int(base[3 * PIECE + 99], (unsigned char)i);
		for (int k = 0; k < 4; k++)
			check_ok(aclrtUnmapMem(base + k * PIECE));
		check_ok(aclrtFreePhysical(handle));
	}
	check_ok(aclrtReleaseMemAddress(base));
	return NULL;
}

static void many_threads(void)
{
	pthread_t threads[4];
	size_t had;

	check_ok(aclrtSetDevice(0));
	had = job_free_memory();
	for (intptr_t i = 0; i < 4; i++)
		check_eq_int(pthread_create(&threads[i], NULL, maps, (void *)i), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check_eq_uint(job_free_memory(), had);
}

TEST(virtual_memory_of_several_threads)
{
	job_run(many_threads);
}

static void reset_with_shares(void)
{
	char key[2][65];
	void *memory, *address;
	size_t had;

	for (int i = 0; i < 3; i++) {
		check_ok(aclrtSetDevice(0));
		had = job_free_memory();
		memory = job_memory(MIB, 1);
		check_ok(aclrtIpcMemGetExportKey(memory, 100, key[0], 65, 0));
		check_ok(aclrtIpcMemImportByKey(&address, key[0], 0));
		check_ok(aclrtResetDevice(0));
		check_fails(aclrtIpcMemClose(key[0]), ACL_ERROR_RT_INVALID_HANDLE, NULL);
		check_ok(aclrtSetDevice(0));
		check_eq_uint(job_free_memory(), had);
		check_fails(aclrtIpcMemImportByKey(&address, key[0], 0), ACL_ERROR_RT_INVALID_HANDLE, NULL);
		check_ok(aclrtResetDevice(0));
	}
}

TEST(share_ends_with_its_device)
{
	job_run(reset_with_shares);
}
