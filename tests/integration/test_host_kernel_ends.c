/* SPDX-License-Identifier: Apache-2.0 */
/* Host kernels when processes, or the daemon, are killed; what hcclctl says of them. */
#include <dirent.h>
#include <sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hccld/host_kernel.h"
#include "tests/support/hcclctl.h"
#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "tests/support/worker.h"

#define CORES 48 /* of a device, by default */

/* In memory that processes share. */
struct shared {
	_Atomic uint32_t ready, refused, gate;
};

static struct shared *shared;

static void shared_make(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
}

static void wait_for_gate(uint32_t block, uint32_t blocks, void *args)
{
	while (!atomic_load(&shared->gate))
		usleep(1000);
}

static void spin_for_ever(uint32_t block, uint32_t blocks, void *args)
{
	for (;;)
		sched_yield();
}

static void add_one(uint32_t block, uint32_t blocks, void *args)
{
	atomic_fetch_add(*(_Atomic uint32_t **)args, 1);
}

static void await(_Atomic uint32_t *count, uint32_t wanted)
{
	for (int i = 0; atomic_load(count) < wanted; i++) {
		check_lt_int(i, 20000);
		usleep(1000);
	}
}

static pid_t process_start(void (*body)(void))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		body();
		exit(0);
	}
	return pid;
}

static void process_end(pid_t pid, int expected)
{
	int status;

	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, expected);
}

/* ---- a loop that goes on behind its memory ---- */

#define LARGE (4u << 20)

struct span {
	char *memory;
	uint64_t bytes;
};

static void fill(uint32_t block, uint32_t blocks, void *args)
{
	const struct span *span = args;

	for (uint64_t i = block; i < span->bytes; i += blocks)
		span->memory[i] = 0x55;
}

static const char *memory_end;

/* Stores are in order: the first address that is not there is the only one that was wrong. */
static void fault(int number, siginfo_t *info, void *context)
{
	const char *address = info->si_addr;

	_exit(address >= memory_end && address <= memory_end + 4096 ? 17 : 18);
}

static void fill_and_more(void)
{
	const struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
	struct span spans[3];

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 3; i++) {
		spans[i].bytes = LARGE;
		check_ok(aclrtMalloc((void **)&spans[i].memory, LARGE, ACL_MEM_MALLOC_HUGE_FIRST));
	}
	for (int i = 0; i < 3; i++)
		check_ok(HccldLaunchHostKernel(fill, 2, &spans[i], sizeof(spans[i]), NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_int(sigaction(SIGSEGV, &action, NULL), 0);
	memory_end = spans[1].memory + LARGE + 1; /* aclrtMalloc() adds 32 bytes */
	spans[1].bytes += 65536;
	check_ok(HccldLaunchHostKernel(fill, 1, &spans[1], sizeof(spans[1]), NULL));
	(void)aclrtSynchronizeStream(NULL);
}

TEST(a_kernel_that_runs_beyond_the_end_of_memory_ends_the_program)
{
	struct private_daemon daemon;

	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	process_end(process_start(fill_and_more), 17 << 8);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

static void take_all(void)
{
	_Atomic uint32_t runs = 0, *at = &runs;

	check_ok(aclrtSetDevice(0));
	check_ok(HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_uint(runs, CORES);
}

/* ---- twenty processes, nine of which have room ---- */

enum { PROCESSES = 20, BLOCKS = 5 };

static void take_some(void)
{
	aclError r;

	check_ok(aclrtSetDevice(0));
	r = HccldLaunchHostKernel(wait_for_gate, BLOCKS, NULL, 0, NULL);
	if (r != ACL_SUCCESS) {
		job_check(__FILE__, __LINE__, "HccldLaunchHostKernel", r, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "of which 45 are in use; pid ");
		atomic_fetch_add(&shared->refused, 1);
	}
	atomic_fetch_add(&shared->ready, 1);
	while (!atomic_load(&shared->gate))
		usleep(1000);
	check_ok(aclrtSynchronizeStream(NULL));
}

static void exhaust(void (*end)(const pid_t pids[PROCESSES]))
{
	struct private_daemon daemon;
	pid_t pids[PROCESSES];

	shared_make();
	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = process_start(take_some);
	await(&shared->ready, PROCESSES);
	check_eq_uint(shared->refused, PROCESSES - CORES / BLOCKS);
	end(pids);
	process_end(process_start(take_all), 0);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

static void end_all(const pid_t pids[PROCESSES])
{
	atomic_store(&shared->gate, 1);
	for (int i = 0; i < PROCESSES; i++)
		process_end(pids[i], 0);
}

TEST_TIMEOUT(vector_cores_used_up_by_many_processes_come_back, 60)
{
	exhaust(end_all);
}

static void kill_all(const pid_t pids[PROCESSES])
{
	for (int i = 0; i < PROCESSES; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < PROCESSES; i++)
		process_end(pids[i], SIGKILL);
}

TEST_TIMEOUT(vector_cores_of_processes_that_are_killed_come_back, 60)
{
	exhaust(kill_all);
}

/* ---- one that spins ---- */

static void spin(void)
{
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(HccldLaunchHostKernel(spin_for_ever, 4, NULL, 0, stream));
	check_ok(HccldLaunchHostKernel(wait_for_gate, CORES, NULL, 0, stream));
	atomic_store(&shared->ready, 1);
	pause();
}

TEST_TIMEOUT(hcclctl_shows_a_host_kernel_that_spins, 60)
{
	struct private_daemon daemon;
	char text[100];
	pid_t pid;

	shared_make();
	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	pid = process_start(spin);
	await(&shared->ready, 1);
	snprintf(text, sizeof(text), "of pid %d waits for a host kernel of 4 blocks: it has run for", (int)pid);
	hcclctl_expect("waiting --json", text);
	hcclctl_expect("waiting --json", "\"operation\":\t\"host-kernel\"");
	hcclctl_expect("waiting --json", "\"blocks\":\t4");
	hcclctl_expect("streams --json", text);
	hcclctl_expect("streams --json", "\"head\":\t\"host-kernel\"");
	hcclctl_expect("status", "a host kernel of 4 blocks has been running for");
	/* the largest that is queued */
	hcclctl_expect("--json resources", "\"vector_cores\":\t48,\n\t\t\t\"vector_cores_total\":\t48");
	snprintf(text, sizeof(text), "\"processes\":\t[{\n\t\t\t\"pid\":\t%d", (int)pid);
	hcclctl_expect("--json resources", text);
	kill(pid, SIGSTOP);
	snprintf(text, sizeof(text), "process %d is stopped", (int)pid);
	hcclctl_expect("waiting --json", text);
	kill(pid, SIGKILL);
	process_end(pid, SIGKILL);
	process_end(process_start(take_all), 0);
	hcclctl_expect("--json resources", "\"processes\":\t[]");
	check_eq_int(private_daemon_stop(&daemon), 0);
}

/* ---- the daemon is killed ---- */

static struct private_daemon keeper;

struct tick {
	_Atomic uint32_t *ticks;
	uint32_t number;
};

/* Each block adds one, and waits until all have: who would run twice, or out of order, is seen. */
static void tick(uint32_t block, uint32_t blocks, void *args)
{
	const struct tick *tick = args;
	uint32_t before = tick->number * blocks;

	check_ge_uint(atomic_fetch_add(tick->ticks, 1), before);
	while (atomic_load(tick->ticks) < before + blocks)
		sched_yield();
	check_eq_uint(atomic_load(tick->ticks), before + blocks);
	usleep(1000);
}

static void tick_on(void)
{
	_Atomic uint32_t ticks = 0;
	aclrtStream held, stream;
	uint32_t number = 0;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&held));
	check_ok(aclrtCreateStream(&stream));
	check_ok(HccldLaunchHostKernel(wait_for_gate, 40, NULL, 0, held));
	atomic_store(&shared->ready, 1);
	while (!atomic_load(&shared->refused)) {
		for (int i = 0; i < 50; i++) {
			struct tick args = { &ticks, number++ };

			check_ok(HccldLaunchHostKernel(tick, 8, &args, sizeof(args), stream));
		}
		check_ok(aclrtSynchronizeStream(stream));
		check_eq_uint(ticks, number * 8);
		/* what was held before is held now */
		check_fails(HccldLaunchHostKernel(tick, 9, NULL, 0, stream), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, NULL);
	}
	atomic_store(&shared->gate, 1);
	check_ok(aclrtSynchronizeDevice());
}

TEST_TIMEOUT(host_kernels_survive_restarts_of_the_daemon, 60)
{
	const char *options[] = { "--keeper", NULL };
	pid_t pid;

	shared_make();
	check_eq_int(private_daemon_start(&keeper, options, NULL), 0);
	pid = process_start(tick_on);
	await(&shared->ready, 1);
	for (int i = 0; i < 2; i++) {
		usleep(600000);
		worker_kill(keeper.pid);
	}
	usleep(500000);
	atomic_store(&shared->refused, 1);
	process_end(pid, 0);
	process_end(process_start(take_all), 0);
	check_eq_int(private_daemon_stop(&keeper), 0);
}

/* ---- its stream goes while it runs ---- */

enum { ORPHANS = 3 };

static void end_by_force(aclrtStream stream)
{
	check_ok(aclrtDestroyStreamForce(stream));
}

static void end_with_device(aclrtStream stream)
{
	check_ok(aclrtResetDeviceForce(0));
}

static void end_own_stream(uint32_t block, uint32_t blocks, void *args)
{
	if (block == 0)
		check_ok(aclrtDestroyStreamForce(*(aclrtStream *)args));
	atomic_fetch_add(&shared->ready, 1);
	wait_for_gate(block, blocks, NULL);
}

static void come_and_wait(uint32_t block, uint32_t blocks, void *args)
{
	atomic_fetch_add(&shared->ready, 1);
	wait_for_gate(block, blocks, NULL);
}

/* How the stream ends; NULL: by its own kernel. */
static void (*end_stream)(aclrtStream stream);

/* The process has all of the device queued, and of that a kernel of three blocks that runs. */
static void leave_orphan(void)
{
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(HccldLaunchHostKernel(end_stream ? come_and_wait : end_own_stream, ORPHANS, &stream, sizeof(stream), stream));
	if (end_stream)
		check_ok(HccldLaunchHostKernel(wait_for_gate, CORES, NULL, 0, stream));
	await(&shared->ready, ORPHANS);
	if (end_stream)
		end_stream(stream);
	atomic_fetch_add(&shared->ready, 1);
	await(&shared->gate, 2);
}

/* Until it is granted: what is given back comes some ms later. */
static void launch_all(void)
{
	_Atomic uint32_t runs = 0, *at = &runs;
	aclError r = ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 1000 && r == ACL_ERROR_RT_RESOURCE_ALLOC_FAIL; i++) {
		r = HccldLaunchHostKernel(add_one, CORES, &at, sizeof(at), NULL);
		usleep(10000);
	}
	check_ok(r);
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_uint(runs, CORES);
}

static void launch_the_rest(void)
{
	_Atomic uint32_t runs = 0, *at = &runs;

	check_ok(aclrtSetDevice(0));
	check_fails(HccldLaunchHostKernel(add_one, CORES - ORPHANS + 1, &at, sizeof(at), NULL), ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
		    ": 3 (3 by kernels that still run, their stream has gone)");
	check_ok(HccldLaunchHostKernel(add_one, CORES - ORPHANS, &at, sizeof(at), NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_uint(runs, CORES - ORPHANS);
}

static void check_orphan(pid_t pid)
{
	char text[160];

	process_end(process_start(launch_the_rest), 0);
	hcclctl_expect("resources", "3 (3: stream gone)");
	hcclctl_expect("--json resources", "\"vector_cores\":\t3,\n\t\t\t\"vector_cores_total\":\t48");
	hcclctl_expect("--json resources", "\"vector_cores\":\t3,\n\t\t\t\"vector_cores_stream_gone\":\t3");
	snprintf(text, sizeof(text), "a host kernel of pid %d still runs on 3 vector cores of device 0: its stream has gone", (int)pid);
	hcclctl_expect("waiting --json", text);
}

enum then { ENDS, ENDS_AFTER_RESTART, IS_KILLED };

static void orphan(void (*end)(aclrtStream stream), enum then then)
{
	const char *options[] = { "--keeper", NULL };
	pid_t pid;

	shared_make();
	end_stream = end;
	check_eq_int(private_daemon_start(&keeper, options, NULL), 0);
	pid = process_start(leave_orphan);
	await(&shared->ready, ORPHANS + 1);
	check_orphan(pid);
	if (then == ENDS_AFTER_RESTART) {
		worker_kill(keeper.pid);
		check_orphan(pid);
	}
	if (then == IS_KILLED) {
		kill(pid, SIGKILL);
		process_end(pid, SIGKILL);
	} else {
		atomic_store(&shared->gate, 1);
	}
	process_end(process_start(launch_all), 0);
	hcclctl_expect("--json resources", "\"processes\":\t[]");
	hcclctl_expect("waiting --json", "\"waiting\":\t[]");
	if (then != IS_KILLED) {
		atomic_store(&shared->gate, 2);
		process_end(pid, 0);
	}
	check_eq_int(private_daemon_stop(&keeper), 0);
}

TEST_TIMEOUT(a_kernel_keeps_its_vector_cores_when_its_stream_is_destroyed, 60)
{
	orphan(end_by_force, ENDS);
}

TEST_TIMEOUT(a_kernel_keeps_its_vector_cores_when_its_device_is_reset, 60)
{
	orphan(end_with_device, ENDS);
}

TEST_TIMEOUT(a_kernel_keeps_its_vector_cores_when_it_destroys_its_stream, 60)
{
	orphan(NULL, ENDS);
}

TEST_TIMEOUT(vector_cores_of_a_kernel_without_a_stream_survive_a_restart, 60)
{
	orphan(end_by_force, ENDS_AFTER_RESTART);
}

TEST_TIMEOUT(vector_cores_of_a_kernel_without_a_stream_go_with_its_process, 60)
{
	orphan(end_with_device, IS_KILLED);
}

/* ---- what ends its thread ---- */

static void leave_thread(uint32_t block, uint32_t blocks, void *args)
{
	atomic_fetch_add(*(_Atomic uint32_t **)args, 1);
	if (block % 3 == 0)
		pthread_exit(NULL);
}

static void leave_function(void *args)
{
	atomic_fetch_add((_Atomic uint32_t *)args, 1);
	pthread_exit(NULL);
}

/* Its kernel, or function, has returned then, and others find threads. */
static void leave_and_go_on(void)
{
	_Atomic uint32_t count = 0, *at = &count;
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	for (uint32_t i = 0; i < 20; i++) {
		check_ok(HccldLaunchHostKernel(leave_thread, 48, &at, sizeof(at), stream));
		check_ok(aclrtLaunchHostFunc(stream, leave_function, &count));
	}
	check_ok(aclrtSynchronizeStreamWithTimeout(stream, 20000));
	check_eq_uint(count, 20 * 49);
	check_ok(aclrtResetDevice(0));
}

TEST_TIMEOUT(host_kernels_may_end_their_threads, 60)
{
	job_run(leave_and_go_on);
}
