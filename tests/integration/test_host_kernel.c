/* SPDX-License-Identifier: Apache-2.0 */
/* Host kernels: blocks that wait for each other, order in the stream, and what ends them. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hccld/host_kernel.h"
#include "tests/support/job.h"

#define CORES 48 /* of a device, by default */

/* All who come to it leave together. */
struct barrier {
	_Atomic uint32_t came, round;
};

static void barrier_wait(struct barrier *barrier, uint32_t count)
{
	uint32_t round = atomic_load(&barrier->round);

	if (atomic_fetch_add(&barrier->came, 1) + 1 == count) {
		atomic_store(&barrier->came, 0);
		atomic_fetch_add(&barrier->round, 1);
		return;
	}
	while (atomic_load(&barrier->round) == round)
		sched_yield();
}

static aclrtStream stream_make(void)
{
	aclrtStream stream;

	check_ok(aclrtCreateStream(&stream));
	return stream;
}

static void add_one(uint32_t block, uint32_t blocks, void *args)
{
	atomic_fetch_add(*(_Atomic uint32_t **)args, 1);
}

static _Atomic int gate;

static void wait_for_gate(uint32_t block, uint32_t blocks, void *args)
{
	while (!atomic_load(&gate))
		usleep(1000);
}

static void spin_for_ever(uint32_t block, uint32_t blocks, void *args)
{
	for (;;)
		sched_yield();
}

static long own_pages(bool resident)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, in_memory;

	check_ptr(file);
	check_eq_int(fscanf(file, "%ld %ld", &size, &in_memory), 2);
	fclose(file);
	return resident ? in_memory : size;
}

/* ---- answers ---- */

static void codes(void)
{
	_Atomic uint32_t count = 0, *at = &count;
	aclrtStream stream, gone;

	check_fails(HccldLaunchHostKernel(add_one, 1, &at, sizeof(at), NULL), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetDevice(0));
	stream = stream_make();
	gone = stream_make();
	check_ok(aclrtDestroyStream(gone));
	check_fails(HccldLaunchHostKernel(NULL, 1, NULL, 0, stream), ACL_ERROR_INVALID_PARAM, "kernel is NULL");
	check_fails(HccldLaunchHostKernel(add_one, 0, NULL, 0, stream), ACL_ERROR_INVALID_PARAM, "block_count is 0");
	check_fails(HccldLaunchHostKernel(add_one, 1, NULL, 8, stream), ACL_ERROR_INVALID_PARAM, "args is NULL");
	check_fails(HccldLaunchHostKernel(add_one, 1, &at, sizeof(at), gone), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_fails(HccldLaunchHostKernel(add_one, CORES + 1, &at, sizeof(at), stream), ACL_ERROR_RT_PARAM_INVALID,
		    "a host kernel of 49 blocks: device 0 has 48 vector cores, and can never run it");
	check_fails(HccldLaunchHostKernel(add_one, 1, &at, SIZE_MAX, stream), ACL_ERROR_RT_MEMORY_ALLOCATION, "arguments");
	check_ok(aclrtSynchronizeDevice());
	check_eq_uint(count, 0);
	check_ok(HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), stream));
	check_ok(aclrtSynchronizeDevice());
	check_ok(HccldLaunchHostKernel(add_one, 1, &at, sizeof(at), NULL));
	check_ok(aclrtSynchronizeDevice());
	check_eq_uint(count, CORES + 1);
	check_ok(aclrtDestroyStream(stream));
	check_ok(aclrtResetDevice(0));
}

/* Each block of a large kernel, and then of others, in whichever threads. */
static void look_at_name(uint32_t block, uint32_t blocks, void *args)
{
	char name[16], wanted[32];

	barrier_wait(*(struct barrier **)args, blocks);
	check_eq_int(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
	snprintf(wanted, sizeof(wanted), block < 100 ? "hccld-kernel-%u" : "hccld-k-%u", block);
	check_eq_str(name, wanted);
}

static void names(void)
{
	struct barrier barrier = { 0 }, *at = &barrier;

	check_ok(aclrtSetDevice(0));
	for (uint32_t blocks = CORES; blocks; blocks /= 2)
		check_ok(HccldLaunchHostKernel(look_at_name, blocks, &at, sizeof(at), NULL));
	check_ok(aclrtSynchronizeDevice());
	check_ok(aclrtResetDevice(0));
}

TEST(threads_have_the_names_of_their_blocks)
{
	job_run(names);
}

TEST(host_kernels_have_codes)
{
	job_run(codes);
}

/* What is in use cannot be had: the text names who holds it, also another process. */
static void used_up(void)
{
	_Atomic uint32_t count = 0, *at = &count;
	char text[100];

	check_ok(aclrtSetDevice(1));
	aclrtStream busy = stream_make(), other = stream_make();
	check_ok(HccldLaunchHostKernel(wait_for_gate, 40, NULL, 0, busy));
	/* a stream holds what its largest kernel needs */
	check_ok(HccldLaunchHostKernel(add_one, 40, &at, sizeof(at), busy));
	check_ok(HccldLaunchHostKernel(wait_for_gate, 8, NULL, 0, other));
	snprintf(text, sizeof(text), "device 1 has 48 vector cores, of which 48 are in use; pid %d (", (int)getpid());
	check_fails(HccldLaunchHostKernel(add_one, 41, &at, sizeof(at), busy), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, text);
	check_fails(HccldLaunchHostKernel(add_one, 1, &at, sizeof(at), NULL), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, text);
	check_fails(HccldLaunchHostKernel(add_one, 9, &at, sizeof(at), other), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
		    "vector_cores_per_device");
	/* another device has its own */
	check_ok(aclrtSetDevice(2));
	check_ok(HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), NULL));
	check_ok(aclrtSynchronizeDevice());
	check_ok(aclrtSetDevice(1));
	atomic_store(&gate, 1);
	check_ok(aclrtSynchronizeDevice());
	check_eq_uint(count, CORES + 40);
	/* what has ended is free at once, though another stream had it */
	for (int i = 0; i < 50; i++) {
		check_ok(HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), i % 2 ? busy : other));
		check_ok(aclrtSynchronizeDevice());
	}
}

TEST(host_kernels_are_refused_when_the_cores_are_in_use)
{
	job_run(used_up);
}

#ifndef __SANITIZE_ADDRESS__ /* which takes addresses of its own */

/* A kernel that would not have all its threads is refused; the next one finds what it needs. */
static void without_threads(void)
{
	_Atomic uint32_t count = 0, *at = &count;
	struct rlimit limit, low;

	check_ok(aclrtSetDevice(0));
	check_ok(HccldLaunchHostKernel(add_one, 1, &at, sizeof(at), NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_int(getrlimit(RLIMIT_AS, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)own_pages(false) * 4096 + (40u << 20);
	check_eq_int(setrlimit(RLIMIT_AS, &low), 0);
	check_fails(HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), NULL), ACL_ERROR_RT_MEMORY_ALLOCATION,
		    "no threads for the blocks of a host kernel");
	check_eq_int(setrlimit(RLIMIT_AS, &limit), 0);
	check_ok(HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_uint(count, 1 + CORES);
}

TEST(host_kernels_are_refused_without_threads)
{
	job_run(without_threads);
}

#endif

/* ---- blocks ---- */

enum { BLOCKS = 24, LAUNCHES = 200 };

struct shift {
	uint32_t *memory; /* BLOCKS words */
	struct barrier *barrier;
	uint32_t number;
	unsigned char filler[1000];
};

/* Each block takes its neighbour's word, when all have come, and adds the launch's number when all have read. */
static void shift(uint32_t block, uint32_t blocks, void *args)
{
	const struct shift *shift = args;
	uint32_t word;

	check_eq_uint(blocks, BLOCKS);
	for (size_t i = 0; i < sizeof(shift->filler); i++)
		check_eq_uint(shift->filler[i], (unsigned char)shift->number);
	barrier_wait(shift->barrier, blocks);
	word = shift->memory[(block + 1) % blocks];
	barrier_wait(shift->barrier, blocks);
	shift->memory[block] = word + shift->number;
}

static void on_one_cpu(void)
{
	static struct barrier barrier;
	uint32_t *device, *copy = calloc(BLOCKS, sizeof(*copy)), expected[BLOCKS];
	struct shift args = { .barrier = &barrier };
	aclrtStream stream;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	check_eq_int(sched_setaffinity(0, sizeof(set), &set), 0);
	check_ok(aclrtSetDevice(0));
	stream = stream_make();
	device = job_memory(2 * sizeof(expected), 0);
	args.memory = device;
	for (uint32_t i = 0; i < BLOCKS; i++)
		copy[i] = expected[i] = i * 1000;
	check_ok(aclrtMemcpyAsync(device, sizeof(expected), copy, sizeof(expected), ACL_MEMCPY_HOST_TO_DEVICE, stream));
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		uint32_t first = expected[0];

		args.number = i;
		memset(args.filler, (int)i, sizeof(args.filler));
		check_ok(HccldLaunchHostKernel(shift, BLOCKS, &args, sizeof(args), stream));
		/* other tasks between them, in order */
		check_ok(aclrtMemcpyAsync(device + BLOCKS, sizeof(expected), device, sizeof(expected), ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
		check_ok(aclrtMemsetAsync(device, sizeof(expected), 0, sizeof(expected), stream));
		check_ok(aclrtMemcpyAsync(device, sizeof(expected), device + BLOCKS, sizeof(expected), ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
		for (uint32_t b = 0; b + 1 < BLOCKS; b++)
			expected[b] = expected[b + 1] + i;
		expected[BLOCKS - 1] = first + i;
	}
	check_ok(aclrtMemcpyAsync(copy, sizeof(expected), device, sizeof(expected), ACL_MEMCPY_DEVICE_TO_HOST, stream));
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_mem(copy, expected, sizeof(expected));
	free(copy);
}

TEST_TIMEOUT(host_kernels_of_blocks_that_wait_for_each_other_on_one_cpu, 60)
{
	job_run(on_one_cpu);
}

enum { STREAMS = 8, ROUNDS = 30 };

struct everybody {
	struct barrier *barrier;
	_Atomic uint32_t *runs;
};

static void meet_everybody(uint32_t block, uint32_t blocks, void *args)
{
	const struct everybody *everybody = args;

	barrier_wait(everybody->barrier, 2 * STREAMS * blocks);
	atomic_fetch_add(everybody->runs, 1);
}

/* Kernels on eight streams of each of two devices: none can end before all run. */
static void streams_that_wait(void)
{
	static struct barrier barrier;
	static _Atomic uint32_t runs;
	const struct everybody args = { &barrier, &runs };
	aclrtStream streams[2 * STREAMS];

	for (int i = 0; i < 2 * STREAMS; i++) {
		check_ok(aclrtSetDevice(i / STREAMS));
		streams[i] = stream_make();
	}
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (int i = 0; i < 2 * STREAMS; i++)
			check_ok(HccldLaunchHostKernel(meet_everybody, CORES / STREAMS, &args, sizeof(args), streams[i]));
	for (int i = 0; i < 2 * STREAMS; i++)
		check_ok(aclrtSynchronizeStream(streams[i]));
	check_eq_uint(runs, ROUNDS * 2 * CORES);
}

TEST_TIMEOUT(host_kernels_of_streams_that_wait_for_each_other, 60)
{
	job_run(streams_that_wait);
}

/* ---- beside host functions ---- */

static _Atomic int step;

static void function_of_steps(void *arg)
{
	atomic_store(&step, 1);
	while (atomic_load(&step) != 2)
		usleep(100);
	atomic_store(&step, 3);
}

static void kernel_of_steps(uint32_t block, uint32_t blocks, void *args)
{
	while (atomic_load(&step) == 0)
		usleep(100);
	if (block == 0)
		atomic_store(&step, 2);
	while (atomic_load(&step) != 3)
		usleep(100);
}

static void wait_inside(uint32_t block, uint32_t blocks, void *args)
{
	aclrtStream stream = *(aclrtStream *)args;
	aclrtStream own;

	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CONTEXT, "cannot get there");
	check_fails(aclrtProcessReport(1), ACL_ERROR_RT_STREAM_CONTEXT, NULL);
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&own));
	check_ok(aclrtSynchronizeStream(own));
	check_ok(aclrtDestroyStream(own));
	atomic_fetch_add(&step, 1);
}

static void beside_functions(void)
{
	aclrtStream one, two;

	check_ok(aclrtSetDevice(0));
	one = stream_make();
	two = stream_make();
	/* neither holds the other up */
	for (int i = 0; i < 20; i++) {
		atomic_store(&step, 0);
		check_ok(aclrtLaunchHostFunc(one, function_of_steps, NULL));
		check_ok(HccldLaunchHostKernel(kernel_of_steps, 3, NULL, 0, two));
		check_ok(aclrtSynchronizeStream(two));
		check_ok(aclrtSynchronizeStream(one));
	}
	/* in one stream, too, in order */
	atomic_store(&step, 0);
	check_ok(HccldLaunchHostKernel(wait_inside, 2, &one, sizeof(one), one));
	check_ok(aclrtSynchronizeStream(one));
	check_eq_int(step, 2);
}

TEST_TIMEOUT(host_kernels_run_beside_host_functions, 60)
{
	job_run(beside_functions);
}

/* ---- ends ---- */

static _Atomic uint32_t arrived;

static void come_to_gate(uint32_t block, uint32_t blocks, void *args)
{
	atomic_fetch_add(&arrived, 1);
	wait_for_gate(block, blocks, args);
}

static void ends(void)
{
	_Atomic uint32_t runs = 0, *at = &runs;
	aclrtEvent never;
	aclrtStream stream;
	aclError r;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateEvent(&never));
	stream = stream_make();
	check_ok(HccldLaunchHostKernel(come_to_gate, 30, NULL, 0, stream));
	check_ok(HccldLaunchHostKernel(add_one, 30, &at, sizeof(at), stream));
	while (atomic_load(&arrived) < 30)
		usleep(1000);
	check_ok(aclrtDestroyStreamForce(stream));
	/* it has its cores, and there are threads for the rest; it ends, and all are there again some ms later */
	stream = stream_make();
	check_fails(HccldLaunchHostKernel(add_one, CORES - 29, &at, sizeof(at), stream), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
		    "30 by kernels that still run, their stream has gone");
	check_ok(HccldLaunchHostKernel(add_one, CORES - 30, &at, sizeof(at), stream));
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_uint(runs, CORES - 30);
	atomic_store(&gate, 1);
	while ((r = HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), stream)) == ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)
		usleep(1000);
	check_ok(r);
	check_ok(aclrtSynchronizeStream(stream));
	check_eq_uint(runs, 2 * CORES - 30);
	atomic_store(&runs, CORES);
	check_ok(aclrtStreamWaitEvent(stream, never));
	check_ok(HccldLaunchHostKernel(add_one, 30, &at, sizeof(at), stream));
	check_ok(aclrtDeviceTaskAbort(0, 0));
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DEVICE_TASK_ABORT, NULL);
	check_ok(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
	check_ok(aclrtStreamWaitEventWithTimeout(stream, never, 100));
	check_ok(HccldLaunchHostKernel(add_one, 30, &at, sizeof(at), stream));
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, NULL);
	check_fails(HccldLaunchHostKernel(add_one, 30, &at, sizeof(at), stream), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, NULL);
	/* what is passed over holds nothing */
	check_ok(HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_uint(runs, 2 * CORES);
	check_ok(aclrtDestroyStream(stream));
	stream = stream_make();
	check_ok(aclrtStreamWaitEvent(stream, never));
	check_ok(HccldLaunchHostKernel(add_one, 30, &at, sizeof(at), stream));
	check_ok(aclrtResetDeviceForce(0));
	check_ok(aclrtSetDevice(0));
	check_ok(HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_uint(runs, 3 * CORES);
}

TEST_TIMEOUT(host_kernels_end_with_their_stream, 60)
{
	job_run(ends);
}

static void leave_spinning(void)
{
	check_ok(aclrtSetDevice(0));
	check_ok(HccldLaunchHostKernel(spin_for_ever, CORES, NULL, 0, NULL));
	usleep(20000);
	exit(0);
}

TEST(host_kernels_do_not_hold_up_exit)
{
	job_run(leave_spinning);
}

static void fork_while_running(void)
{
	_Atomic uint32_t count = 0, *at = &count;
	int status;
	pid_t pid;

	check_ok(aclrtSetDevice(0));
	check_ok(HccldLaunchHostKernel(wait_for_gate, 4, NULL, 0, NULL));
	pid = fork();
	if (pid == 0) {
		check_fails(HccldLaunchHostKernel(add_one, 1, &at, sizeof(at), NULL), ACL_ERROR_RT_CONTEXT_NULL, "fork");
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	atomic_store(&gate, 1);
	check_ok(aclrtSynchronizeStream(NULL));
}

TEST(host_kernels_are_refused_to_the_child_of_a_fork)
{
	job_run(fork_while_running);
}

/* ---- many ---- */

static int own_threads(void)
{
	DIR *directory = opendir("/proc/self/task");
	int count = 0;

	check_ptr(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2;
}

static void launch_many(aclrtStream stream, uint32_t count, _Atomic uint32_t *runs)
{
	unsigned char args[500];

	memcpy(args, &runs, sizeof(runs));
	for (uint32_t i = 0; i < count; i++)
		check_ok(HccldLaunchHostKernel(add_one, 1 + i % 4, args, sizeof(args), stream));
	check_ok(aclrtSynchronizeStream(stream));
}

static void without_growth(void)
{
	_Atomic uint32_t runs = 0;
	aclrtStream stream;
	long pages;
	int threads;

	check_ok(aclrtSetDevice(0));
	stream = stream_make();
	launch_many(stream, 2000, &runs);
	pages = own_pages(true);
	threads = own_threads();
	launch_many(stream, 10000, &runs);
	check_eq_uint(runs, 12000 / 4 * (1 + 2 + 3 + 4));
	check_eq_int(own_threads(), threads);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed for a while */
	check_lt_int(own_pages(true) - pages, 500);
#else
	check_gt_int(pages, 0);
#endif
}

TEST_TIMEOUT(host_kernels_by_the_thousand, 120)
{
	job_run(without_growth);
}

static void *launch_and_end(void *arg)
{
	_Atomic uint32_t runs = 0, *at = &runs;
	int32_t device = (int32_t)(intptr_t)arg % 2;

	check_ok(aclrtSetDevice(device));
	for (uint32_t i = 0; i < 60; i++) {
		aclrtStream stream = stream_make();
		uint32_t before = runs;

		for (uint32_t k = 1; k <= 12; k++)
			check_ok(HccldLaunchHostKernel(add_one, k, &at, sizeof(at), stream));
		if (i % 3)
			check_ok(aclrtSynchronizeStream(stream));
		check_ok(aclrtDestroyStream(stream));
		check_eq_uint(runs - before, 78);
	}
	return NULL;
}

/* Threads that make, use and end streams with kernels: 4 of each device hold 12 cores each. */
static void threads_of_streams(void)
{
	pthread_t threads[8];

	for (intptr_t i = 0; i < 8; i++)
		check_eq_int(pthread_create(&threads[i], NULL, launch_and_end, (void *)i), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

TEST_TIMEOUT(host_kernels_of_many_threads, 120)
{
	job_run(threads_of_streams);
}
