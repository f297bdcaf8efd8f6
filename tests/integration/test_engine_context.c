/* SPDX-License-Identifier: Apache-2.0 */
/* Engine contexts: memory of operators under a communicator, an engine and a tag. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "hccl/hccl_res.h"

#define MIB ((size_t)1 << 20)
#define ROUNDS 10000u
#define EATERS 20u
#define THREADS 8u
#define SIZE 5000u

static bool is_all(const unsigned char *memory, int value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i] != value)
			return false;
	return true;
}

static bool is_device(CommEngine engine)
{
	return engine == COMM_ENGINE_AICPU || engine == COMM_ENGINE_AICPU_TS || engine == COMM_ENGINE_AIV;
}

static void keeps(void)
{
	unsigned char source[SIZE], *memory[COMM_ENGINE_CCU + 1], copy[SIZE];
	HcclComm comm;
	void *found;
	uint64_t size;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	for (int engine = COMM_ENGINE_CPU; engine <= COMM_ENGINE_CCU; engine++) {
		void *made = NULL;

		check_ok(HcclEngineCtxCreate(comm, "tag", (CommEngine)engine, SIZE, &made));
		memory[engine] = made;
		check(is_all(made, 0, SIZE));
		memset(source, engine + 1, SIZE);
		if (is_device((CommEngine)engine))
			check_ok(aclrtMemcpy(made, SIZE, source, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
		else
			check_fails(aclrtMemcpy(made, SIZE, source, SIZE, ACL_MEMCPY_HOST_TO_DEVICE), 107000, "not device memory");
		memcpy(made, source, SIZE);
	}
	for (int engine = COMM_ENGINE_CPU; engine <= COMM_ENGINE_CCU; engine++) {
		found = NULL;
		size = 0;
		check_ok(HcclEngineCtxGet(comm, "tag", (CommEngine)engine, &found, &size));
		check_eq_ptr(found, memory[engine]);
		check_eq_uint(size, SIZE);
		check(is_all(found, engine + 1, SIZE));
		/* the middle, both ends, nothing at the end */
		memset(source, 0x77, SIZE);
		check_ok(HcclEngineCtxCopy(comm, (CommEngine)engine, "tag", source, 100, 50));
		check_ok(HcclEngineCtxCopy(comm, (CommEngine)engine, "tag", source, 1, SIZE - 1));
		check_ok(HcclEngineCtxCopy(comm, (CommEngine)engine, "tag", source, 0, SIZE));
		memset(copy, engine + 1, SIZE);
		memset(copy + 50, 0x77, 100);
		copy[SIZE - 1] = 0x77;
		check_eq_mem(found, copy, SIZE);
		check_ok(HcclEngineCtxCopy(comm, (CommEngine)engine, "tag", source, SIZE, 0));
		check(is_all(found, 0x77, SIZE));
		check_ok(HcclEngineCtxDestroy(comm, "tag", (CommEngine)engine));
		check_fails(HcclEngineCtxGet(comm, "tag", (CommEngine)engine, &found, &size), HCCL_E_PARA, "has no context \"tag\"");
		/* what is made of memory that was used is zero, too */
		check_ok(HcclEngineCtxCreate(comm, "tag", (CommEngine)engine, SIZE, &found));
		check(is_all(found, 0, SIZE));
	}
	check_ok(HcclCommDestroy(comm));
}

TEST(contexts_keep_what_is_written_until_they_are_destroyed)
{
	job_run(keeps);
}

/* As the guide to own operators does it. */
static void *obtain(HcclComm comm, const char *tag, CommEngine engine, uint64_t wanted, bool *ret_is_new)
{
	uint64_t size = wanted;
	void *ctx = NULL;

	*ret_is_new = HcclEngineCtxGet(comm, tag, engine, &ctx, &size) != HCCL_SUCCESS;
	if (*ret_is_new)
		check_ok(HcclEngineCtxCreate(comm, tag, engine, wanted, &ctx));
	else
		check_eq_uint(size, wanted);
	return ctx;
}

static void are_separate(void)
{
	char longest[256], tag[16] = "one";
	HcclComm comm, other;
	void *first, *second;
	bool is_new;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	other = job_alone();
	memset(longest, 'x', 255);
	longest[255] = '\0';
	first = obtain(comm, tag, COMM_ENGINE_CPU_TS, 64, &is_new);
	check(is_new);
	strcpy(tag, "two"); /* tags are copied */
	second = obtain(comm, tag, COMM_ENGINE_CPU_TS, 64, &is_new);
	check(is_new && second != first);
	check(obtain(comm, "one", COMM_ENGINE_CPU_TS, 64, &is_new) == first && !is_new);
	check(obtain(other, "one", COMM_ENGINE_CPU_TS, 64, &is_new) != first && is_new);
	check(obtain(comm, "one", COMM_ENGINE_CPU, 64, &is_new) != first && is_new);
	first = obtain(comm, NULL, COMM_ENGINE_AIV, 32, &is_new);
	check(is_new);
	check(obtain(comm, "", COMM_ENGINE_AIV, 32, &is_new) == first && !is_new);
	first = obtain(comm, longest, COMM_ENGINE_AIV, 1, &is_new);
	check(is_new);
	check(obtain(comm, longest, COMM_ENGINE_AIV, 1, &is_new) == first && !is_new);
	/* as one sample has it: the pointer where its address is meant */
	first = NULL;
	check_fails(HcclEngineCtxCreate(comm, "x", COMM_ENGINE_CPU_TS, 64, (void **)first), HCCL_E_PTR, "where the address goes");
	check_ok(HcclEngineCtxDestroy(comm, NULL, COMM_ENGINE_AIV));
	check_fails(HcclEngineCtxDestroy(comm, "", COMM_ENGINE_AIV), HCCL_E_PARA, "has no context \"\"");
	check_ok(HcclCommDestroy(comm));
	check(obtain(other, "one", COMM_ENGINE_CPU_TS, 64, &is_new) && !is_new);
	check_ok(HcclCommDestroy(other));
}

TEST(contexts_are_told_by_communicator_engine_and_tag)
{
	job_run(are_separate);
}

static void refuses(void)
{
	HcclComm comm, gone;
	char too_long[257];
	void *ctx = &comm;
	uint64_t size = 77;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	gone = job_alone();
	check_ok(HcclCommDestroy(gone));
	memset(too_long, 'x', 256);
	too_long[256] = '\0';

	check_fails(HcclEngineCtxCreate(NULL, "t", COMM_ENGINE_CPU, 1, &ctx), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclEngineCtxCreate(comm, "t", COMM_ENGINE_CPU, 1, NULL), HCCL_E_PTR, "ctx");
	check_fails(HcclEngineCtxCreate(comm, "t", COMM_ENGINE_RESERVED, 1, &ctx), HCCL_E_PARA, "engine is -1");
	check_fails(HcclEngineCtxCreate(comm, "t", (CommEngine)6, 1, &ctx), HCCL_E_PARA, "engine is 6, expected 0 to 5");
	check_fails(HcclEngineCtxCreate(comm, too_long, COMM_ENGINE_CPU, 1, &ctx), HCCL_E_PARA, "more than 255 bytes");
	check_fails(HcclEngineCtxCreate(comm, "t", COMM_ENGINE_CPU, 0, &ctx), HCCL_E_PARA, "size is 0");
	check_fails(HcclEngineCtxCreate(gone, "t", COMM_ENGINE_CPU, 1, &ctx), HCCL_E_PARA, "was destroyed");
	check_fails(HcclEngineCtxCreate(comm, "t", COMM_ENGINE_AIV, UINT64_MAX, &ctx), HCCL_E_OOM, "more than any device has");
	check_fails(HcclEngineCtxCreate(comm, "t", COMM_ENGINE_CPU, UINT64_MAX, &ctx), HCCL_E_MEMORY, "no memory for a context");
	check_fails(HcclEngineCtxGet(comm, "t", COMM_ENGINE_AIV, &ctx, &size), HCCL_E_PARA, "has no context");
	check_eq_ptr(ctx, &comm);
	check_eq_uint(size, 77);

	check_ok(HcclEngineCtxCreate(comm, "t", COMM_ENGINE_CPU, 100, &ctx));
	check_fails(HcclEngineCtxCreate(comm, "t", COMM_ENGINE_CPU, 200, &ctx), HCCL_E_PARA, "already, of 100 bytes");
	check_fails(HcclEngineCtxGet(NULL, "t", COMM_ENGINE_CPU, &ctx, &size), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclEngineCtxGet(comm, "t", COMM_ENGINE_CPU, NULL, &size), HCCL_E_PTR, "ctx is NULL");
	check_fails(HcclEngineCtxGet(comm, "t", COMM_ENGINE_CPU, &ctx, NULL), HCCL_E_PTR, "size is NULL");
	check_fails(HcclEngineCtxGet(comm, "t", (CommEngine)7, &ctx, &size), HCCL_E_PARA, "engine is 7");
	check_fails(HcclEngineCtxGet(comm, too_long, COMM_ENGINE_CPU, &ctx, &size), HCCL_E_PARA, "more than 255 bytes");
	check_fails(HcclEngineCtxGet(gone, "t", COMM_ENGINE_CPU, &ctx, &size), HCCL_E_PARA, "was destroyed");
	check_fails(HcclEngineCtxGet(comm, "u", COMM_ENGINE_CPU, &ctx, &size), HCCL_E_PARA, "has no context \"u\"");

	check_fails(HcclEngineCtxCopy(NULL, COMM_ENGINE_CPU, "t", &size, 8, 0), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, "t", NULL, 8, 0), HCCL_E_PTR, "srcCtx is NULL");
	check_fails(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, NULL, &size, 8, 0), HCCL_E_PARA, "has no context \"\"");
	check_fails(HcclEngineCtxCopy(comm, (CommEngine)-5, "t", &size, 8, 0), HCCL_E_PARA, "engine is -5");
	check_fails(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, too_long, &size, 8, 0), HCCL_E_PARA, "more than 255 bytes");
	check_fails(HcclEngineCtxCopy(gone, COMM_ENGINE_CPU, "t", &size, 8, 0), HCCL_E_PARA, "was destroyed");
	check_fails(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, "t", &size, 8, 93), HCCL_E_PARA, "8 bytes at 93 are not in it");
	check_fails(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, "t", &size, 8, UINT64_MAX - 3), HCCL_E_PARA, "are not in it");
	check_fails(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, "t", &size, UINT64_MAX, 8), HCCL_E_PARA, "are not in it");
	check_fails(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, "t", &size, 0, 101), HCCL_E_PARA, "are not in it");

	check_fails(HcclEngineCtxDestroy(NULL, "t", COMM_ENGINE_CPU), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclEngineCtxDestroy(comm, "t", COMM_ENGINE_AIV), HCCL_E_PARA, "has no context \"t\" of engine AIV: it was destroyed");
	check_fails(HcclEngineCtxDestroy(comm, "t", (CommEngine)6), HCCL_E_PARA, "engine is 6");
	check_fails(HcclEngineCtxDestroy(comm, too_long, COMM_ENGINE_CPU), HCCL_E_PARA, "more than 255 bytes");
	check_fails(HcclEngineCtxDestroy(gone, "t", COMM_ENGINE_CPU), HCCL_E_PARA, "was destroyed");
	check_ok(HcclEngineCtxDestroy(comm, "t", COMM_ENGINE_CPU));
	check_ok(HcclCommDestroy(comm));
}

TEST(bad_arguments_are_refused_by_name)
{
	job_run(refuses);
}

/* The library frees it later, when its place may be another allocation's. */
static void is_not_freed(void)
{
	static const uint64_t sizes[] = { 1, SIZE, MIB };
	void *ctx, *again;
	HcclComm comm;
	uint64_t size;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_ok(HcclEngineCtxCreate(comm, "flags", COMM_ENGINE_AIV, sizes[i], &ctx));
		check_fails(aclrtFree(ctx), ACL_ERROR_RT_PARAM_INVALID, "is the context \"flags\" of engine AIV of a communicator");
		check_ok(HcclEngineCtxGet(comm, "flags", COMM_ENGINE_AIV, &again, &size));
		check_eq_ptr(again, ctx);
		check_ok(HcclEngineCtxDestroy(comm, "flags", COMM_ENGINE_AIV));
		check_fails(aclrtFree(ctx), ACL_ERROR_RT_PARAM_INVALID, "was freed");
		/* another one's there is its own */
		check_ok(aclrtMalloc(&again, sizes[i], ACL_MEM_MALLOC_HUGE_FIRST));
		check_ok(aclrtFree(again));
	}
	/* what takes the address of a context that went with its device can be freed */
	check_ok(HcclEngineCtxCreate(comm, "flags", COMM_ENGINE_AIV, MIB, &ctx));
	check_ok(aclrtResetDevice(0));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtMalloc(&again, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtFree(again));
	check_ok(HcclCommDestroy(comm));
}

TEST(the_program_does_not_free_contexts)
{
	job_run(is_not_freed);
}

static void loses_its_device(void)
{
	void *ctx, *host, *memory[64];
	HcclComm comm;
	uint64_t size;
	int word = 9;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	check_ok(HcclEngineCtxCreate(comm, "t", COMM_ENGINE_AIV, 300000, &ctx));
	check_ok(HcclEngineCtxCreate(comm, "t", COMM_ENGINE_CPU, 100, &host));
	check_ok(aclrtResetDevice(0));
	check_fails(HcclEngineCtxCopy(comm, COMM_ENGINE_AIV, "t", &word, 4, 0), HCCL_E_PARA, "ended when device 0 was reset");
	check_fails(HcclEngineCtxCreate(comm, "u", COMM_ENGINE_AIV, 100, &ctx), HCCL_E_PARA, "ended when device 0 was reset");
	host = &word;
	check_fails(HcclEngineCtxGet(comm, "t", COMM_ENGINE_AIV, &host, &size), HCCL_E_PARA, "ended when device 0 was reset");
	check_eq_ptr(host, &word);
	check_ok(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, "t", &word, 4, 0));
	check_ok(HcclEngineCtxGet(comm, "t", COMM_ENGINE_CPU, &host, &size));
	check_eq_int(*(int *)host, 9);
	/* others may have got its address by now: it is not freed once more */
	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 64; i++) {
		check_ok(aclrtMalloc(&memory[i], 300000, ACL_MEM_MALLOC_HUGE_FIRST));
		*(int *)memory[i] = i;
	}
	check_ok(HcclEngineCtxDestroy(comm, "t", COMM_ENGINE_AIV));
	check_ok(HcclCommDestroy(comm));
	for (int i = 0; i < 64; i++) {
		check_eq_int(*(int *)memory[i], i);
		check_ok(aclrtFree(memory[i]));
	}
}

TEST(a_reset_of_the_device_takes_its_contexts)
{
	job_run(loses_its_device);
}

static void goes_round(void)
{
	size_t before = 0;
	HcclComm comm;
	void *ctx;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	for (uint32_t i = 0; i < ROUNDS; i++) {
		char tag[16];

		snprintf(tag, sizeof(tag), "%u", i % 7);
		check_ok(HcclEngineCtxCreate(comm, tag, COMM_ENGINE_AIV, i % 100 ? 4096 : 300000, &ctx));
		check_ok(HcclEngineCtxCreate(comm, tag, COMM_ENGINE_CPU, 4096, &ctx));
		check_ok(HcclEngineCtxDestroy(comm, tag, COMM_ENGINE_AIV));
		check_ok(HcclEngineCtxDestroy(comm, tag, COMM_ENGINE_CPU));
		if (i == 0)
			before = job_free_memory();
	}
	check_eq_uint(job_free_memory(), before);
	check_ok(HcclCommDestroy(comm));
	/* what a communicator leaves goes with it */
	for (uint32_t i = 0; i < ROUNDS / 10; i++) {
		comm = job_alone();
		check_ok(HcclEngineCtxCreate(comm, "small", COMM_ENGINE_AIV, 4096, &ctx));
		check_ok(HcclEngineCtxCreate(comm, "large", COMM_ENGINE_AIV, 300000, &ctx));
		check_ok(HcclEngineCtxCreate(comm, "host", COMM_ENGINE_CCU, 4096, &ctx));
		check_ok(HcclCommDestroy(comm));
	}
	check_eq_uint(job_free_memory(), before);
}

TEST_TIMEOUT(ten_thousand_rounds_leave_nothing, 120)
{
	job_run(goes_round);
}

static struct {
	HcclComm comm;
	_Atomic uint32_t made, destroyed;
} shared;

static void *race(void *arg)
{
	uint64_t size;
	char tag[16];
	void *ctx;

	for (uint32_t i = 0; i < 2000; i++) {
		HcclResult r;

		snprintf(tag, sizeof(tag), "%u", i % 5);
		r = HcclEngineCtxCreate(shared.comm, tag, i % 2 ? COMM_ENGINE_AIV : COMM_ENGINE_CPU, 700, &ctx);
		check(r == HCCL_SUCCESS || r == HCCL_E_PARA);
		shared.made += r == HCCL_SUCCESS;
		r = HcclEngineCtxGet(shared.comm, tag, i % 2 ? COMM_ENGINE_AIV : COMM_ENGINE_CPU, &ctx, &size);
		check(r == HCCL_SUCCESS || r == HCCL_E_PARA);
		r = HcclEngineCtxCopy(shared.comm, i % 2 ? COMM_ENGINE_AIV : COMM_ENGINE_CPU, tag, tag, 16, 600);
		check(r == HCCL_SUCCESS || r == HCCL_E_PARA);
		r = HcclEngineCtxDestroy(shared.comm, tag, i % 2 ? COMM_ENGINE_AIV : COMM_ENGINE_CPU);
		check(r == HCCL_SUCCESS || r == HCCL_E_PARA);
		shared.destroyed += r == HCCL_SUCCESS;
		r = HcclGetHcclBuffer(shared.comm, &ctx, &size);
		check_eq_int(r, HCCL_SUCCESS);
	}
	return NULL;
}

static void races(void)
{
	pthread_t threads[THREADS];

	check_ok(aclrtSetDevice(0));
	shared.comm = job_alone();
	for (uint32_t i = 0; i < THREADS; i++)
		check_eq_int(pthread_create(&threads[i], NULL, race, NULL), 0);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check_gt_uint(shared.made, 0u);
	check_eq_uint(shared.made, shared.destroyed);
	check_ok(HcclCommDestroy(shared.comm));
}

TEST(threads_may_do_all_of_it_at_once)
{
	job_run(races);
}

/* Together they get what there is, to the last MiB; who is refused is told who has it. */
static void eats(uint32_t index, HcclRootInfo *root)
{
	static _Atomic uint32_t *eaten;
	char tag[16];
	HcclComm comm;
	HcclResult r;
	void *ctx;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	job_meet();
	eaten = (_Atomic uint32_t *)root;
	for (uint32_t i = 0;; i++) {
		snprintf(tag, sizeof(tag), "%u", i);
		r = HcclEngineCtxCreate(comm, tag, COMM_ENGINE_AIV, MIB, &ctx);
		if (r != HCCL_SUCCESS)
			break;
		check(is_all(ctx, 0, MIB));
		memset(ctx, (int)index + 1, MIB);
		atomic_fetch_add(eaten, 1);
	}
	job_check(__FILE__, __LINE__, "HcclEngineCtxCreate", (int)r, HCCL_E_OOM, "device 0 has 64 MiB, of which ");
	job_meet();
	check_eq_uint(*eaten, 64u);
	check_eq_uint(job_free_memory(), 0u);
	job_meet();
	check_ok(HcclCommDestroy(comm));
	job_meet();
	check_eq_uint(job_free_memory(), 64 * MIB);
}

TEST_TIMEOUT(twenty_processes_share_what_there_is, 60)
{
	static const char *const options[] = { "--device-memory", "64M", NULL };

	job_set_options(options);
	job_run_processes(EATERS, eats);
}
