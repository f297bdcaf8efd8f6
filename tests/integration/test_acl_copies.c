/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of copy and fill, looked at in host memory only: the same with device memory that host code may touch and, as entries of
 * their own (HCCLD_STRICT_DEVICE), with such that it may not.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/job.h"

static unsigned char *device_make(size_t size)
{
	void *memory = NULL;

	check_ok(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
	return memory;
}

static unsigned char *host_make(size_t size, int pinned)
{
	void *memory = NULL;

	if (pinned)
		check_ok(aclrtMallocHost(&memory, size));
	else
		memory = malloc(size);
	check_ptr(memory);
	return memory;
}

static void host_drop(unsigned char *memory, int pinned)
{
	if (pinned)
		check_ok(aclrtFreeHost(memory));
	else
		free(memory);
}

static void fill(unsigned char *memory, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		memory[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

/* In both directions, at an odd offset, from and to memory of both kinds; @stream NULL: by aclrtMemcpy. */
static void there_and_back(size_t size, int pinned, aclrtStream stream)
{
	unsigned char *source = host_make(size, pinned), *back = host_make(size, pinned);
	unsigned char *one = device_make(size + 3), *two = device_make(size + 7);

	fill(source, size, (unsigned int)size);
	memset(back, 0, size);
	if (stream) {
		check_ok(aclrtMemcpyAsync(one + 3, size, source, size, ACL_MEMCPY_HOST_TO_DEVICE, stream));
		check_ok(aclrtMemcpyAsync(two + 7, size, one + 3, size, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
		check_ok(aclrtMemcpyAsync(back, size, two + 7, size, ACL_MEMCPY_DEVICE_TO_HOST, stream));
		check_ok(aclrtSynchronizeStream(stream));
	} else {
		check_ok(aclrtMemcpy(one + 3, size, source, size, ACL_MEMCPY_HOST_TO_DEVICE));
		check_ok(aclrtMemcpy(two + 7, size, one + 3, size, ACL_MEMCPY_DEVICE_TO_DEVICE));
		check_ok(aclrtMemcpy(back, size, two + 7, size, ACL_MEMCPY_DEFAULT));
	}
	check_eq_mem(back, source, size);
	check_ok(aclrtFree(one));
	check_ok(aclrtFree(two));
	host_drop(source, pinned);
	host_drop(back, pinned);
}

static void copies(void)
{
	static const size_t sizes[] = { 1, 40, 4097, 300000, (20u << 20) + 5 };
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int pinned = 0; pinned < 2; pinned++) {
			there_and_back(sizes[i], pinned, NULL);
			there_and_back(sizes[i], pinned, stream);
		}
	check_ok(aclrtResetDevice(0));
}

TEST_TIMEOUT(copies_of_all_directions, 60)
{
	job_run(copies);
}

enum { SIZE = 100000 };

/* Parts of one allocation that overlap: as by memmove(). */
static void overlapping(void)
{
	unsigned char *device, *expected = malloc(SIZE), *host = malloc(SIZE);

	check_ok(aclrtSetDevice(0));
	device = device_make(SIZE);
	for (int down = 0; down < 2; down++) {
		size_t from = down ? 1000 : 0, to = down ? 0 : 1000;

		fill(expected, SIZE, (unsigned int)down);
		check_ok(aclrtMemcpy(device, SIZE, expected, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
		memmove(expected + to, expected + from, SIZE - 1000);
		check_ok(aclrtMemcpy(device + to, SIZE - to, device + from, SIZE - 1000, ACL_MEMCPY_DEVICE_TO_DEVICE));
		check_ok(aclrtMemcpy(host, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
		check_eq_mem(host, expected, SIZE);
	}
	free(expected);
	free(host);
}

TEST(copies_that_overlap)
{
	job_run(overlapping);
}

enum { ROWS = 20, WIDTH = 300, PITCH = 512, DEVICE_PITCH = 400 };

static void rows(void)
{
	unsigned char *device, *host = calloc(ROWS, PITCH), *back = calloc(ROWS, PITCH);
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	device = device_make(ROWS * DEVICE_PITCH);
	for (int async = 0; async < 2; async++) {
		memset(back, 0, ROWS * PITCH);
		fill(host, ROWS * PITCH, (unsigned int)async);
		if (async) {
			check_ok(aclrtMemcpy2dAsync(device, DEVICE_PITCH, host, PITCH, WIDTH, ROWS, ACL_MEMCPY_HOST_TO_DEVICE, stream));
			check_ok(aclrtMemcpy2dAsync(back, PITCH, device, DEVICE_PITCH, WIDTH, ROWS, ACL_MEMCPY_DEVICE_TO_HOST, stream));
			check_ok(aclrtSynchronizeStream(stream));
		} else {
			check_ok(aclrtMemcpy2d(device, DEVICE_PITCH, host, PITCH, WIDTH, ROWS, ACL_MEMCPY_HOST_TO_DEVICE));
			check_ok(aclrtMemcpy2d(back, PITCH, device, DEVICE_PITCH, WIDTH, ROWS, ACL_MEMCPY_DEVICE_TO_HOST));
		}
		for (int row = 0; row < ROWS; row++) {
			check_eq_mem(back + row * PITCH, host + row * PITCH, WIDTH);
			check_eq_int(back[row * PITCH + WIDTH], 0);
		}
	}
	free(host);
	free(back);
}

TEST(copies_of_rows)
{
	job_run(rows);
}

static void fills(void)
{
	unsigned char *device, *host = malloc(SIZE), *expected = malloc(SIZE);
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	device = device_make(SIZE);
	memset(expected, 7, SIZE);
	check_ok(aclrtMemset(device, SIZE, 7, SIZE));
	memset(expected + 5, 9, 1000);
	check_ok(aclrtMemsetAsync(device + 5, 1000, 9, 1000, stream));
	check_ok(aclrtSynchronizeStream(stream));
	check_ok(aclrtMemcpy(host, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
	check_eq_mem(host, expected, SIZE);
	memset(host, 1, SIZE);
	check_ok(aclrtMemset(host, SIZE, 2, SIZE));
	check_eq_int(host[SIZE - 1], 2);
	free(host);
	free(expected);
}

TEST(fills_of_both_kinds)
{
	job_run(fills);
}

/* Memory of aclrtMapMem, which lies at several addresses; small allocations that are freed and made again. */
static void mapped(void)
{
	aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE, .location = { 0, ACL_MEM_LOCATION_TYPE_DEVICE } };
	const size_t size = 4u << 20;
	unsigned char *host = malloc(size), *back = malloc(size);
	aclrtDrvMemHandle handle;
	void *address = NULL;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtReserveMemAddress(&address, 2 * size, 0, NULL, 0));
	check_ok(aclrtMallocPhysical(&handle, size, &prop, 0));
	check_ok(aclrtMapMem(address, size, 0, handle, 0));
	check_ok(aclrtMapMem((char *)address + size, size, 0, handle, 0));
	fill(host, size, 3);
	check_ok(aclrtMemcpy(address, size, host, size, ACL_MEMCPY_HOST_TO_DEVICE));
	check_ok(aclrtMemcpy(back, size, (char *)address + size, size, ACL_MEMCPY_DEVICE_TO_HOST));
	check_eq_mem(back, host, size);
	check_ok(aclrtUnmapMem(address));
	check_ok(aclrtUnmapMem((char *)address + size));
	check_ok(aclrtFreePhysical(handle));
	check_ok(aclrtReleaseMemAddress(address));
	for (int i = 0; i < 100; i++) {
		unsigned char *small = device_make(100 + (size_t)i);

		check_ok(aclrtMemset(small, 100, i, 100));
		check_ok(aclrtMemcpy(back, 100, small, 100, ACL_MEMCPY_DEVICE_TO_HOST));
		check_eq_int(back[99], i);
		check_ok(aclrtFree(small));
	}
	free(host);
	free(back);
}

TEST(copies_of_memory_that_is_mapped)
{
	job_run(mapped);
}
