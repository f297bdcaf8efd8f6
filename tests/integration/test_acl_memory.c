/* SPDX-License-Identifier: Apache-2.0 */
/* Device and host memory, synchronous copies, accounting, through the public functions. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

static void run_with_memory(const char *size, void (*body)(void))
{
	const char *options[] = { "--devices", "2", "--device-memory", size, NULL };
	struct private_daemon daemon;
	int status;
	pid_t pid;

	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	fflush(NULL);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(private_daemon_stop(&daemon), 0);
	check_eq_int(status, 0);
}

static void allocation_codes(void)
{
	aclrtMallocConfig config = { 0 };
	void *memory = NULL, *zero;
	char byte;

	check_ok(aclrtSetDevice(0));
	check_fails(aclrtMalloc(NULL, 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM,
		    "NULL");
	check_fails(aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM,
		    "size is 0");
	check_fails(aclrtMallocHost(NULL, 1), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtMallocHost(&memory, 0), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtMalloc(&memory, 1, (aclrtMemMallocPolicy)8), ACL_ERROR_RT_PARAM_INVALID,
		    "policy");
	check_fails(aclrtMalloc(&memory, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST),
		    ACL_ERROR_RT_MEMORY_ALLOCATION, NULL);
	check_fails(aclrtMalloc(&memory, SIZE_MAX / 2, ACL_MEM_MALLOC_HUGE_FIRST),
		    ACL_ERROR_RT_MEMORY_ALLOCATION, NULL);
	check_null(memory);
	for (int policy = ACL_MEM_MALLOC_HUGE_FIRST; policy <= ACL_MEM_MALLOC_HUGE1G_ONLY_P2P;
	     policy++) {
		check_ok(
			aclrtMalloc(&memory, 100,
				    (aclrtMemMallocPolicy)(policy | ACL_MEM_TYPE_HIGH_BAND_WIDTH)));
		check_eq_uint((uintptr_t)memory % 512, 0);
		check_ok(aclrtFree(memory));
	}
	check_ok(aclrtMallocAlign32(&memory, 100, ACL_MEM_MALLOC_NORMAL_ONLY));
	check_ok(aclrtFree(memory));
	check_ok(aclrtMallocCached(&memory, 100, ACL_MEM_MALLOC_NORMAL_ONLY));
	check_ok(aclrtFree(memory));
	check_ok(aclrtMallocWithCfg(&memory, 100, ACL_MEM_MALLOC_NORMAL_ONLY, &config));
	check_fails(aclrtFreeHost(memory), ACL_ERROR_RT_PARAM_INVALID, "aclrtMallocHost");
	check_ok(aclrtFree(memory));
	check_fails(aclrtFree(memory), ACL_ERROR_RT_PARAM_INVALID, "was freed");
	check_fails(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtFreeHost(NULL), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtFree(&byte), ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_ok(aclrtMallocHostWithCfg(&zero, 5000000, NULL));
	check_ok(aclrtFreeHost(zero));
	/* a fresh device allocation is padded by 32 bytes */
	check_ok(aclrtMalloc(&memory, 100, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtMemset(memory, 160, 0, 160));
	check_fails(aclrtMemset(memory, 161, 0, 161), ACL_ERROR_RT_PARAM_INVALID, "160");
}

static void use_freed(size_t size)
{
	unsigned char *freed, *good, own[64];
	char wanted[100], key[65];
	aclrtStream stream;

	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtMalloc((void **)&good, size, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtMalloc((void **)&freed, size, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtFree(freed));
	snprintf(wanted, sizeof(wanted), "was freed: it is byte 8 of %zu that were allocated at %p", size, (void *)freed);
	check_fails(aclrtMemcpy(freed + 8, 64, own, 64, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtMemcpy(good, 64, freed + 8, 64, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtMemcpy(freed + 8, 64, own, 64, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtMemcpyAsync(good, 64, freed + 8, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtMemset(freed + 8, 64, 0, 64), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtMemsetAsync(freed + 8, 64, 0, 64, stream), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtReduceAsync(good, freed + 8, 64, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT8, stream, NULL), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtValueWrite(freed + 8, 1, 0, stream), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtIpcMemGetExportKey(freed + 8, 64, key, 65, 0), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtMemFlush(freed + 8, 64), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_fails(aclrtFree(freed + 8), ACL_ERROR_RT_PARAM_INVALID, wanted);
	check_ok(aclrtSynchronizeStream(stream));
	/* in use again */
	check_ok(aclrtMalloc((void **)&freed, size, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtMemset(freed, size, 0, size));
	check_ok(aclrtFree(freed));
	check_ok(aclrtFree(good));
}

static void freed_is_told(void)
{
	check_ok(aclrtSetDevice(0));
	use_freed(100);
	use_freed(4 << 20);
}

TEST(acl_memory_that_was_freed_is_told)
{
	job_run(freed_is_told);
}

static void sizes_beyond_any(void)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 31, SIZE_MAX / 2, 1ull << 47, 1ull << 46, 1ull << 45, 1ull << 44 };
	void *memory;

	check_ok(aclrtSetDevice(0));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_fails(aclrtMalloc(&memory, sizes[i], ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION, NULL);
		check_fails(aclrtMallocHost(&memory, sizes[i]), ACL_ERROR_RT_MEMORY_ALLOCATION, NULL);
	}
}

TEST(acl_sizes_beyond_any_device_are_out_of_memory)
{
	job_run(sizes_beyond_any);
}

TEST(acl_allocation_has_the_codes_of_cann)
{
	job_run(allocation_codes);
}

static void accounting(void)
{
	size_t before, total, free;
	void *memory[64];

	check_ok(aclrtSetDevice(1));
	check_fails(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &total), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtGetMemInfo(ACL_HBM_MEM, &free, NULL), ACL_ERROR_INVALID_PARAM, NULL);
	for (int attr = ACL_DDR_MEM; attr <= ACL_MEM_P2P_HUGE1G; attr++) {
		check_ok(aclrtGetMemInfo((aclrtMemAttr)attr, &free, &total));
		check_eq_uint(total, 64 << 20);
		check_eq_uint(free, 64 << 20);
	}
	check_fails(aclrtGetMemInfo((aclrtMemAttr)18, &free, &total), ACL_ERROR_RT_PARAM_INVALID,
		    NULL);
	before = job_free_memory();
	for (int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 64; i++) {
			const size_t size = i % 2 ? 1 + i * 1000 : 400000 + i, had = job_free_memory();

			check_ok(aclrtMalloc(&memory[i], size, ACL_MEM_MALLOC_HUGE_FIRST));
			check_le_uint(job_free_memory() + size, had);
		}
		for (unsigned int i = 0; i < 64; i++)
			check_ok(aclrtFree(memory[i * 29 % 64]));
		check_eq_uint(job_free_memory(), before);
	}
	/* host memory is another matter */
	check_ok(aclrtMallocHost(&memory[0], 10 << 20));
	check_eq_uint(job_free_memory(), before);
	/* the size that was asked for, not the one with the room that aclrtMalloc() adds */
	check_fails(aclrtMalloc(&memory[1], 65 << 20, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION, "; 65 MiB more were asked for by pid ");
}

TEST(acl_memory_info_shows_every_allocation)
{
	run_with_memory("64M", accounting);
}

static void exhaustion(void)
{
	unsigned char *large, *small;
	void *pointers[64];
	unsigned int count = 0;
	int r;

	check_ok(aclrtSetDevice(0));
	while ((r = aclrtMalloc(&pointers[count], 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST)) == 0)
		count++;
	check_eq_int(r, ACL_ERROR_RT_MEMORY_ALLOCATION);
	check_str_contains(aclGetRecentErrMsg(), "EI0011");
	check_ge_uint(count, 14);
	/* the last pages go to small ones, and what is freed can be had again as one piece */
	for (unsigned int i = 0; i < count; i++)
		check_ok(aclrtFree(pointers[i]));
	check_ok(aclrtMalloc((void **)&small, 1, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtFree(small));
	check_ok(aclrtMalloc((void **)&large, (16 << 20) - 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	check_fails(aclrtMalloc((void **)&small, 8192, ACL_MEM_MALLOC_HUGE_FIRST),
		    ACL_ERROR_RT_MEMORY_ALLOCATION, NULL);
	/* the other device has its own */
	check_ok(aclrtSetDevice(1));
	check_ok(aclrtMalloc((void **)&small, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
}

TEST(acl_device_memory_ends_with_a_named_error)
{
	run_with_memory("16M", exhaustion);
}

static void copies(void)
{
	enum { SIZE = 3 << 20 };
	unsigned char *a = malloc(SIZE), *b = malloc(SIZE), *host, *device, *other;

	check(a && b);
	check_ok(aclrtSetDevice(0));
	device = job_memory(SIZE, 0);
	check_ok(aclrtSetDevice(1));
	other = job_memory(SIZE, 0);
	check_ok(aclrtMallocHost((void **)&host, SIZE));
	for (int i = 0; i < SIZE; i++)
		a[i] = (unsigned char)(i * 31 + i / 255);
	check_ok(aclrtMemcpy(device, SIZE, a, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
	check_ok(aclrtMemcpy(other, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE));
	check_ok(aclrtMemcpy(host, SIZE, other, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
	check_ok(aclrtMemcpy(b, SIZE, host, SIZE, ACL_MEMCPY_HOST_TO_HOST));
	check_eq_mem(a, b, SIZE);
	memset(b, 0, SIZE);
	check_ok(aclrtMemcpy(b, SIZE, device, SIZE, ACL_MEMCPY_DEFAULT));
	check_eq_mem(a, b, SIZE);
	check_fails(aclrtMemcpy(NULL, 1, a, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM,
		    "dst");
	check_fails(aclrtMemcpy(device, 1, NULL, 1, ACL_MEMCPY_HOST_TO_DEVICE),
		    ACL_ERROR_INVALID_PARAM, "src");
	check_fails(aclrtMemcpy(device, 1, a, 0, ACL_MEMCPY_HOST_TO_DEVICE),
		    ACL_ERROR_RT_PARAM_INVALID, "count");
	check_fails(aclrtMemcpy(device, 0, a, 1, ACL_MEMCPY_HOST_TO_DEVICE),
		    ACL_ERROR_RT_PARAM_INVALID, "destMax");
	check_fails(aclrtMemcpy(device, 1, a, 2, ACL_MEMCPY_HOST_TO_DEVICE),
		    ACL_ERROR_RT_PARAM_INVALID, NULL);
	check_ok(aclrtMemcpy(device, 1, device, 1, (aclrtMemcpyKind)77));
	check_fails(aclrtMemcpy(device, 1, a, 1, (aclrtMemcpyKind)77), ACL_ERROR_INVALID_PARAM,
		    "kind");
	check_fails(aclrtMemcpy(a, 1, b, 1, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID,
		    "not device memory");
	check_fails(aclrtMemcpy(device, 2 * SIZE, a, SIZE + 64, ACL_MEMCPY_HOST_TO_DEVICE),
		    ACL_ERROR_RT_PARAM_INVALID, "ends after");
	free(a);
	free(b);
}

TEST(acl_copies_in_every_direction)
{
	job_run(copies);
}

static void *churn(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	unsigned char *pointers[16] = { NULL };
	size_t sizes[16] = { 0 };

	check_ok(aclrtSetDevice((int32_t)seed % 2));
	for (int i = 0; i < 400; i++) {
		unsigned int k = rand_r(&seed) % 16;

		if (pointers[k]) {
			check_eq_int(pointers[k][0], (unsigned char)(sizes[k] % 251));
			check_eq_int(pointers[k][sizes[k] - 1], (unsigned char)(sizes[k] % 251));
			check_ok(aclrtFree(pointers[k]));
		}
		sizes[k] = 1 + rand_r(&seed) % (rand_r(&seed) % 8 ? 5000 : 600000);
		check_ok(aclrtMalloc((void **)&pointers[k], sizes[k], ACL_MEM_MALLOC_HUGE_FIRST));
		check_ok(aclrtMemset(pointers[k], sizes[k], (int)(sizes[k] % 251), sizes[k]));
	}
	for (int k = 0; k < 16; k++)
		if (pointers[k])
			check_ok(aclrtFree(pointers[k]));
	return NULL;
}

static void churn_in_threads(void)
{
	pthread_t threads[4];
	size_t before;

	check_ok(aclrtSetDevice(0));
	before = job_free_memory();
	for (uintptr_t i = 0; i < 4; i++)
		check_eq_int(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check_eq_uint(job_free_memory(), before);
}

TEST(acl_allocations_of_threads_do_not_mix)
{
	job_run(churn_in_threads);
}

static void die_with_memory(void)
{
	size_t before;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		check_ok(aclrtSetDevice(0));
		job_memory(30 << 20, 1);
		raise(SIGKILL);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_ok(aclrtSetDevice(0));
	for (int i = 0; job_free_memory() < 64 << 20; i++) {
		check_lt_int(i, 5000);
		usleep(1000);
	}
	before = job_free_memory();
	check_eq_uint(before, 64 << 20);
}

TEST(acl_memory_goes_with_the_process)
{
	run_with_memory("64M", die_with_memory);
}
