/* SPDX-License-Identifier: Apache-2.0 */
/* aclrtReduceAsync: results in stream order, each wrong argument. That none is done twice over a restart: test_acl_restart.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/job.h"

#define SUM ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM
#define MAX ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX
#define MIN ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN

static aclrtStream stream;

static void start(void)
{
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
}

/* One element of @width bytes, a op b. */
static uint64_t reduce(aclDataType type, size_t width, aclrtReduceKind kind, uint64_t a, uint64_t b)
{
	uint64_t *to = job_memory(64, 0), *from = job_memory(64, 0), result = 0;

	memcpy(to, &a, width);
	memcpy(from, &b, width);
	check_ok(aclrtReduceAsync(to, from, width, kind, type, stream, NULL));
	check_ok(aclrtSynchronizeStream(stream));
	memcpy(&result, to, width);
	check_ok(aclrtFree(to));
	check_ok(aclrtFree(from));
	return result;
}

static void each_type(void)
{
	start();
	/* 1.5 and 2.25; for integers 100 and 200 of the lowest bits: -56 of 8 signed ones */
	check_eq_uint(reduce(ACL_FLOAT, 4, SUM, 0x3fc00000, 0x40100000), 0x40700000);
	check_eq_uint(reduce(ACL_FLOAT, 4, MAX, 0x3fc00000, 0x40100000), 0x40100000);
	check_eq_uint(reduce(ACL_FLOAT, 4, MIN, 0x3fc00000, 0x40100000), 0x3fc00000);
	check_eq_uint(reduce(ACL_FLOAT, 4, MIN, 0x00000000, 0x80000000), 0x80000000);
	check_eq_uint(reduce(ACL_FLOAT, 4, MAX, 0xffc00001, 0x3f800000), 0x7fc00000);
	check_eq_uint(reduce(ACL_FLOAT16, 2, SUM, 0x3e00, 0x4080), 0x4380);
	check_eq_uint(reduce(ACL_BF16, 2, SUM, 0x3fc0, 0x4010), 0x4070);
	check_eq_uint(reduce(ACL_DOUBLE, 8, SUM, 0x3ff8000000000000, 0x4002000000000000), 0x400e000000000000);
	check_eq_uint(reduce(ACL_INT8, 1, SUM, 100, 200), 44);
	check_eq_uint(reduce(ACL_INT8, 1, MAX, 100, 200), 100);
	check_eq_uint(reduce(ACL_UINT8, 1, MAX, 100, 200), 200);
	check_eq_uint(reduce(ACL_INT16, 2, MIN, 100, 0x8000), 0x8000);
	check_eq_uint(reduce(ACL_UINT16, 2, MIN, 100, 0x8000), 100);
	check_eq_uint(reduce(ACL_INT32, 4, SUM, 0x7fffffff, 1), 0x80000000);
	check_eq_uint(reduce(ACL_UINT32, 4, SUM, UINT32_MAX, 2), 1);
	check_eq_uint(reduce(ACL_INT64, 8, MIN, 5, (uint64_t)-3), (uint64_t)-3);
	check_eq_uint(reduce(ACL_UINT64, 8, MAX, 5, (uint64_t)-3), (uint64_t)-3);
	check_ok(aclrtDestroyStream(stream));
}

TEST(each_type_and_kind)
{
	job_run(each_type);
}

#define LARGE (5u << 20)

static void in_order(void)
{
	uint32_t *to, *from, *host;

	start();
	to = job_memory(LARGE, 0);
	from = job_memory(LARGE, 0);
	check_ok(aclrtMallocHost((void **)&host, LARGE));
	for (uint32_t i = 0; i < LARGE / 4; i++)
		host[i] = i;
	/* 0x01010101, + i, doubled, + i */
	check_ok(aclrtMemsetAsync(to, LARGE, 1, LARGE, stream));
	check_ok(aclrtMemcpyAsync(from, LARGE, host, LARGE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
	check_ok(aclrtReduceAsync(to, from, LARGE, SUM, ACL_INT32, stream, NULL));
	check_ok(aclrtReduceAsync(to, to, LARGE, SUM, ACL_INT32, stream, NULL));
	check_ok(aclrtReduceAsync(to, host, LARGE, SUM, ACL_INT32, stream, NULL));
	check_ok(aclrtMemcpyAsync(host, LARGE, to, LARGE, ACL_MEMCPY_DEVICE_TO_HOST, stream));
	check_ok(aclrtSynchronizeStream(stream));
	for (uint32_t i = 0; i < LARGE / 4; i++)
		check_eq_uint(host[i], 2 * (0x01010101 + i) + i);
	check_ok(aclrtFreeHost(host));
	check_ok(aclrtFree(to));
	check_ok(aclrtFree(from));
	check_ok(aclrtDestroyStream(stream));
}

TEST(in_the_order_of_the_stream)
{
	job_run(in_order);
}

static void refuse(void *to, const void *from, uint64_t bytes, int kind, int type, void *reserve, aclError code, const char *text)
{
	check_eq_int(aclrtReduceAsync(to, from, bytes, (aclrtReduceKind)kind, (aclDataType)type, stream, reserve), code);
	check_str_contains(aclGetRecentErrMsg(), text);
}

static void wrong_arguments(void)
{
	unsigned char *memory, *own = malloc(256);

	check_ptr(own);
	start();
	memory = job_memory(4096, 7);
	refuse(NULL, memory, 64, SUM, ACL_FLOAT, NULL, 100000, "aclrtReduceAsync: dst is NULL");
	refuse(memory, NULL, 64, SUM, ACL_FLOAT, NULL, 100000, "aclrtReduceAsync: src is NULL");
	refuse(memory, memory + 64, 64, SUM, ACL_FLOAT, memory, 107000, "expected NULL");
	refuse(memory, memory + 64, 64, 9, ACL_FLOAT, NULL, 107000, "kind is 9; expected a value of aclrtReduceKind (10 to 13)");
	refuse(memory, memory + 64, 64, 13, ACL_FLOAT, NULL, 207000, "ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL, which is not supported");
	refuse(memory, memory + 64, 64, SUM, ACL_BOOL, NULL, 207000, "type is 12, which cannot be reduced");
	refuse(memory, memory + 64, 64, SUM, -1, NULL, 207000, "type is -1, which cannot be reduced");
	refuse(memory, memory + 64, 0, SUM, ACL_FLOAT, NULL, 107000, "count is 0 bytes; expected a multiple of 4");
	refuse(memory, memory + 64, 66, SUM, ACL_FLOAT, NULL, 107000, "count is 66 bytes; expected a multiple of 4");
	refuse(memory + 2, memory + 128, 64, SUM, ACL_FLOAT, NULL, 107000, "expected a multiple of 4, the size of an element of type fp32");
	refuse(memory, memory + 129, 64, SUM, ACL_INT16, NULL, 107000, "aclrtReduceAsync: src is ");
	refuse(memory, memory + 32, 64, SUM, ACL_FLOAT, NULL, 107000, "they may be the same memory, or not overlap");
	refuse(memory + 32, memory, 64, SUM, ACL_FLOAT, NULL, 107000, "they may be the same memory, or not overlap");
	refuse(own, memory, 64, SUM, ACL_INT8, NULL, 107000, "which is not memory of aclrtMalloc or aclrtMallocHost");
	refuse(memory, own, 64, SUM, ACL_INT8, NULL, 107000, "which is not memory of aclrtMalloc or aclrtMallocHost");
	refuse(memory, memory + 4000, 1u << 20, SUM, ACL_INT8, NULL, 107000,
	       "whose allocation ends after 4128 bytes (with 32 more than the 4096 that were asked for); the reduction has 1048576 bytes");
	check_eq_int(aclrtReduceAsync(memory, memory + 64, 64, SUM, ACL_FLOAT, own, NULL), 107017);
	/* nothing of it was done */
	check_ok(aclrtSynchronizeStream(stream));
	for (uint32_t i = 0; i < 4096; i++)
		check_eq_int(memory[i], 7);
	check_ok(aclrtFree(memory));
	check_ok(aclrtDestroyStream(stream));
	free(own);
}

TEST(each_wrong_argument)
{
	job_run(wrong_arguments);
}
