/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions and notifies through acl, with a daemon of its own: bench_resource [MIB]
 * Prints, for each type, the bytes of the destination per second that are reduced in 64 KiB and in MIB (64), and how long a signal takes
 * from one stream to another and back. Each figure is the best of five.
 */
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "measure.h"
#include "tests/support/private_daemon.h"

#define SMALL (64u << 10)
#define TRIPS 1000

#define MUST(call)                                                                                               \
	do {                                                                                                     \
		int result_ = (int)(call);                                                                       \
		if (result_) {                                                                                   \
			const char *text_ = aclGetRecentErrMsg();                                                \
			fprintf(stderr, "bench_resource: %s: %d %s\n", #call, result_, text_ ? text_ : "");      \
			exit(1);                                                                                 \
		}                                                                                                \
	} while (0)

static const struct {
	aclDataType type;
	const char *name;
} types[] = {
	{ ACL_FLOAT, "fp32" }, { ACL_FLOAT16, "fp16" }, { ACL_BF16, "bf16" }, { ACL_DOUBLE, "fp64" },
	{ ACL_INT8, "int8" },  { ACL_INT16, "int16" },	{ ACL_INT32, "int32" }, { ACL_INT64, "int64" },
};

/* GB/s. The values are small: no type has subnormal ones, which some processors are slow at. */
static double reduce(void *to, void *from, uint64_t bytes, uint32_t count, aclDataType type, aclrtReduceKind kind, aclrtStream stream)
{
	uint64_t best = UINT64_MAX;

	for (int repeat = 0; repeat < 5; repeat++) {
		uint64_t start_ns, ns;

		MUST(aclrtMemset(to, bytes, 0x3c, bytes));
		MUST(aclrtMemset(from, bytes, 0x3c, bytes));
		start_ns = measure_now_ns();
		for (uint32_t i = 0; i < count; i++)
			MUST(aclrtReduceAsync(to, from, bytes, kind, type, stream, NULL));
		MUST(aclrtSynchronizeStream(stream));
		ns = measure_now_ns() - start_ns;
		best = ns < best ? ns : best;
	}
	return (double)bytes * count / (double)best;
}

/* There and back, in microseconds: all of it is queued before it begins. */
static double signal_trip(aclrtStream stream)
{
	uint64_t best = UINT64_MAX;
	aclrtNotify there, back;
	aclrtStream other;

	MUST(aclrtCreateStream(&other));
	MUST(aclrtCreateNotify(&there, 0));
	MUST(aclrtCreateNotify(&back, 0));
	for (int repeat = 0; repeat < 5 * TRIPS / 100; repeat++) {
		uint64_t start_ns = measure_now_ns(), ns;

		for (int i = 0; i < 100; i++) {
			MUST(aclrtRecordNotify(there, stream));
			MUST(aclrtWaitAndResetNotify(back, stream, 0));
			MUST(aclrtWaitAndResetNotify(there, other, 0));
			MUST(aclrtRecordNotify(back, other));
		}
		MUST(aclrtSynchronizeStream(stream));
		MUST(aclrtSynchronizeStream(other));
		ns = measure_now_ns() - start_ns;
		best = ns < best ? ns : best;
	}
	MUST(aclrtDestroyNotify(there));
	MUST(aclrtDestroyNotify(back));
	MUST(aclrtDestroyStream(other));
	return (double)best / 100 / 1000;
}

int main(int argc, char **argv)
{
	uint64_t large = (argc > 1 ? strtoull(argv[1], NULL, 10) : 64) << 20;
	struct private_daemon daemon;
	aclrtStream stream;
	void *to, *from;

	if (!large || private_daemon_start(&daemon, NULL, NULL) < 0)
		return 2;
	MUST(aclrtSetDevice(0));
	MUST(aclrtCreateStream(&stream));
	MUST(aclrtMalloc(&to, large, ACL_MEM_MALLOC_HUGE_FIRST));
	MUST(aclrtMalloc(&from, large, ACL_MEM_MALLOC_HUGE_FIRST));
	printf("GB/s      64 KiB: sum   max    %4llu MiB: sum   max\n", (unsigned long long)(large >> 20));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		printf("%-8s %12.1f %5.1f %15.1f %5.1f\n", types[i].name,
		       reduce(to, from, SMALL, 100, types[i].type, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, stream),
		       reduce(to, from, SMALL, 100, types[i].type, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, stream),
		       reduce(to, from, large, 1, types[i].type, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, stream),
		       reduce(to, from, large, 1, types[i].type, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, stream));
	printf("a signal there and back: %.2f us\n", signal_trip(stream));
	return private_daemon_stop(&daemon) != 0;
}
