/* SPDX-License-Identifier: Apache-2.0 */
/* The HCCL buffer of a communicator: made once, backed where it is touched, counted, gone with the communicator. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "hccl/hccl_res.h"
#include "tests/support/private_daemon.h"
#include "tests/support/worker.h"

#define MIB ((size_t)1 << 20)
#define MANY 200u
#define ROUNDS 10000u

static HcclComm alone_with(HcclCommConfig *config)
{
	HcclRootInfo root;
	HcclComm comm;

	check_ok(HcclGetRootInfo(&root));
	check_ok(HcclCommInitRootInfoConfig(1, &root, 0, config, &comm));
	return comm;
}

static unsigned char *buffer_of(HcclComm comm, uint64_t *ret_size)
{
	void *buffer = NULL;

	check_ok(HcclGetHcclBuffer(comm, &buffer, ret_size));
	check_ptr(buffer);
	return buffer;
}

static bool is_zero(const unsigned char *memory, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i])
			return false;
	return true;
}

static void is_one_piece(void)
{
	unsigned char *buffer, *memory, host[4096];
	HcclComm comm, other;
	void *again = NULL;
	uint64_t size = 0;
	size_t before;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	other = job_alone();
	memory = job_memory(4096, 3);
	before = job_free_memory();
	buffer = buffer_of(comm, &size);
	check_eq_uint(size, 400 * MIB);
	check_eq_uint((uintptr_t)buffer % 4096, 0);
	check_eq_uint(job_free_memory(), before);
	check_ok(HcclGetHcclBufferCleared(comm, &again, &size));
	check_eq_ptr(again, buffer);
	check_eq_uint(size, 400 * MIB);
	check(buffer_of(other, &size) != buffer);
	/* it is device memory to everybody, and what is touched is counted */
	check(is_zero(buffer, MIB));
	check_eq_uint(job_free_memory(), before - MIB);
	check_ok(aclrtMemcpy(buffer + size - 4096, 4096, memory, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE));
	check_ok(aclrtMemcpy(host, 4096, buffer + size - 4096, 4096, ACL_MEMCPY_DEVICE_TO_HOST));
	check_eq_mem(host, memory, 4096);
	check_ok(aclrtMemset(buffer + 10 * MIB, MIB, 7, MIB));
	check_eq_uint(job_free_memory(), before - 2 * MIB - 4096);
	check_fails(aclrtFree(buffer), 107000, "is not the start of memory");
	check_ok(HcclCommDestroy(comm));
	check_eq_uint(job_free_memory(), before);
	check_fails(HcclGetHcclBuffer(comm, &again, &size), HCCL_E_PARA, "was destroyed");
	check_fails(aclrtMemcpy(buffer, 4096, memory, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE), 107000, "is not device memory");
	check_ok(HcclCommDestroy(other));
}

TEST(the_buffer_is_one_piece_of_device_memory)
{
	job_run(is_one_piece);
}

static void refuses(void)
{
	HcclComm comm;
	void *buffer = &comm;
	uint64_t size = 77;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	check_fails(HcclGetHcclBuffer(NULL, &buffer, &size), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclGetHcclBuffer(comm, NULL, &size), HCCL_E_PTR, "buffer is NULL");
	check_fails(HcclGetHcclBuffer(comm, &buffer, NULL), HCCL_E_PTR, "size is NULL");
	check_fails(HcclGetHcclBufferCleared(NULL, &buffer, &size), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclGetHcclBufferCleared(comm, NULL, &size), HCCL_E_PTR, "buffer is NULL");
	check_fails(HcclGetHcclBufferCleared(comm, &buffer, NULL), HCCL_E_PTR, "size is NULL");
	check_fails(HcclGetHcclBuffer(&size, &buffer, &size), HCCL_E_PARA, "no communicator");
	/* before it was made, and after */
	check_ok(aclrtResetDevice(0));
	check_fails(HcclGetHcclBuffer(comm, &buffer, &size), HCCL_E_PARA, "ended when device 0 was reset");
	check_ok(HcclCommDestroy(comm));
	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	check_ok(HcclGetHcclBuffer(comm, &buffer, &size));
	check_ok(aclrtResetDevice(0));
	buffer = &comm;
	size = 77;
	check_fails(HcclGetHcclBuffer(comm, &buffer, &size), HCCL_E_PARA, "ended when device 0 was reset");
	check_eq_ptr(buffer, &comm);
	check_eq_uint(size, 77);
	check_ok(HcclCommDestroy(comm));
}

TEST(bad_arguments_and_lost_devices_are_refused)
{
	job_run(refuses);
}

static void has_size(void)
{
	HcclCommConfig config;
	HcclComm comm;
	uint64_t size;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	buffer_of(comm, &size)[2 * MIB - 1] = 1;
	check_eq_uint(size, 2 * MIB);
	HcclCommConfigInit(&config);
	config.hcclBufferSize = 3;
	check_ok(HcclCommDestroy(comm));
	comm = alone_with(&config);
	buffer_of(comm, &size);
	check_eq_uint(size, 6 * MIB);
	check_ok(HcclCommDestroy(comm));
	config.hcclBufferSize = 0xfffffffe;
	comm = alone_with(&config);
	check_fails(HcclGetHcclBuffer(comm, (void **)&size, &size), HCCL_E_OOM, "hcclBufferSize");
	check_ok(HcclCommDestroy(comm));
}

TEST(its_size_is_that_of_the_variable_or_the_configuration)
{
	job_run_with("HCCL_BUFFSIZE", "1", has_size);
}

static void travels(struct job_rank *rank)
{
	uint32_t peer = rank->rank ^ 1;
	uint64_t size;
	unsigned char *buffer = buffer_of(rank->comm, &size);
	HcclSendRecvItem items[] = { job_send(peer, buffer, 8 * MIB), job_receive(peer, buffer + 8 * MIB, 8 * MIB),
				     job_send(peer, buffer + 5, 16), job_receive(peer, buffer + size - 16, 16) };

	memset(buffer, (int)rank->rank + 1, 8 * MIB);
	check_ok(HcclBatchSendRecv(items, 2, rank->comm, rank->stream));
	check_ok(HcclBatchSendRecv(items + 2, 2, rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
	for (size_t i = 8 * MIB; i < 16 * MIB; i++)
		check_eq_uint(buffer[i], peer + 1);
	check_eq_uint(buffer[size - 1], peer + 1);
	check_eq_uint(buffer[size - 17], 0);
}

static void travels_all(void)
{
	job_ranks(4, 2, travels, NULL);
}

TEST(sends_and_receives_use_it)
{
	job_run(travels_all);
}

static void costs_nothing(void)
{
	HcclComm comms[MANY];
	uint64_t size;
	size_t before;

	check_ok(aclrtSetDevice(0));
	for (uint32_t i = 0; i < MANY; i++)
		comms[i] = job_alone();
	before = job_free_memory();
	for (uint32_t i = 0; i < MANY; i++) {
		buffer_of(comms[i], &size);
		check_eq_uint(size, 400 * MIB);
	}
	check_eq_uint(job_free_memory(), before);
	for (uint32_t i = 0; i < MANY; i++)
		buffer_of(comms[i], &size)[i * MIB] = 1;
	check_eq_uint(job_free_memory(), before - MANY * 4096);
	for (uint32_t i = 0; i < MANY; i++)
		check_ok(HcclCommDestroy(comms[i]));
	check_ge_uint(job_free_memory(), before);
}

TEST(hundreds_cost_only_what_is_touched)
{
	job_run(costs_nothing);
}

static void run_small(const char *option, const char *value, void (*body)(void))
{
	const char *const options[] = { option, value, NULL };

	job_set_options(options);
	job_run(body);
}

/* More is touched than there is: nobody ends, and nothing new is had until it is given back. */
static void overdraws(void)
{
	HcclComm comm, other;
	unsigned char *buffer;
	void *memory = NULL;
	uint64_t size;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	other = job_alone();
	buffer = buffer_of(comm, &size);
	memset(buffer, 1, 80 * MIB);
	check_eq_uint(job_free_memory(), 0);
	check_fails(aclrtMalloc(&memory, MIB, ACL_MEM_MALLOC_HUGE_FIRST), 207001, "80 MiB");
	check_fails(HcclGetHcclBuffer(other, &memory, &size), HCCL_E_OOM, "4 KiB more were asked for");
	memset(buffer + 80 * MIB, 1, 16 * MIB);
	check_eq_uint(buffer[96 * MIB - 1], 1);
	check_ok(HcclCommDestroy(comm));
	check_ok(aclrtMalloc(&memory, 32 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	buffer_of(other, &size)[0] = 1;
	check_ok(aclrtFree(memory));
	check_ok(HcclCommDestroy(other));
	check_eq_uint(job_free_memory(), 64 * MIB);
}

TEST(touching_more_than_there_is_ends_nobody)
{
	run_small("--device-memory", "64M", overdraws);
}

static void overdraws_tenant(void)
{
	HcclComm comm, other;
	void *memory = NULL;
	uint64_t size;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	other = job_alone();
	memset(buffer_of(comm, &size), 1, 80 * MIB);
	check_eq_uint(job_free_memory(), 0);
	check_fails(aclrtMalloc(&memory, MIB, ACL_MEM_MALLOC_HUGE_FIRST), 207001, "memory_per_tenant");
	check_fails(HcclGetHcclBuffer(other, &memory, &size), HCCL_E_OOM, "memory_per_tenant");
	check_ok(HcclCommDestroy(comm));
	check_ok(aclrtMalloc(&memory, 32 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	buffer_of(other, &size)[0] = 1;
}

TEST(a_tenant_that_has_touched_too_much_gets_nothing_new)
{
	run_small("--memory-per-tenant", "64M", overdraws_tenant);
}

static void dies(uint32_t index, HcclRootInfo *shared)
{
	struct job_rank rank;
	unsigned char *buffer;
	uint64_t size;
	size_t before;

	if (index == 1)
		job_expect_kill();
	check_ok(aclrtSetDevice(0));
	before = job_free_memory();
	if (index == 0)
		check_ok(HcclGetRootInfo(shared));
	job_meet();
	rank = job_join(shared, index, 2, 0);
	buffer = buffer_of(rank.comm, &size);
	job_meet();
	if (index == 1) {
		memset(buffer, 1, 20 * MIB);
		check_le_uint(job_free_memory(), before - 20 * MIB);
		kill(getpid(), SIGKILL);
	}
	for (int i = 0; job_free_memory() < before - 19 * MIB || i == 0; i++) {
		check_lt_int(i, 5000);
		usleep(1000);
	}
	/* the other's is as it was */
	buffer[0] = 9;
	check_eq_uint(buffer[0], 9);
	check_ok(HcclCommDestroy(rank.comm));
}

TEST(it_goes_with_its_process)
{
	job_run_processes(2, dies);
}

static void goes_round(void)
{
	uint64_t size;
	size_t before = 0;

	check_ok(aclrtSetDevice(0));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		HcclComm comm = job_alone();
		unsigned char *buffer = buffer_of(comm, &size);

		check_eq_uint(buffer[i % 100 * MIB], 0);
		buffer[i % 100 * MIB] = 1;
		check_ok(HcclCommDestroy(comm));
		if (i == 0)
			before = job_free_memory();
	}
	check_eq_uint(job_free_memory(), before);
}

TEST_TIMEOUT(ten_thousand_rounds_leave_nothing, 120)
{
	job_run(goes_round);
}

static pid_t keeper;

/* Until another one serves: it answers after this. */
static void kill_daemon(void)
{
	worker_replace(keeper);
	(void)job_free_memory();
}

static void survives(void)
{
	unsigned char *buffer;
	HcclComm comm, second;
	void *again = NULL;
	uint64_t size;
	size_t before;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	before = job_free_memory();
	buffer = buffer_of(comm, &size);
	memset(buffer, 5, 3 * MIB);
	kill_daemon();
	check_eq_uint(job_free_memory(), before - 3 * MIB);
	check_eq_uint(buffer[3 * MIB - 1], 5);
	check_ok(HcclGetHcclBuffer(comm, &again, &size));
	check_eq_ptr(again, buffer);
	check_ok(aclrtMemset(buffer + 300 * MIB, MIB, 7, MIB));
	check_eq_uint(job_free_memory(), before - 4 * MIB);
	/* one that is asked for first after the kill */
	second = job_alone();
	buffer_of(second, &size)[0] = 1;
	kill_daemon();
	check_ok(HcclCommDestroy(comm));
	check_eq_uint(job_free_memory(), before - 4096);
	check_ok(HcclCommDestroy(second));
	check_eq_uint(job_free_memory(), before);
}

TEST_TIMEOUT(it_survives_restarts_of_the_daemon, 60)
{
	const char *options[] = { "--keeper", NULL };
	struct private_daemon daemon;
	int status;
	pid_t pid;

	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	keeper = daemon.pid;
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		survives();
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

static _Atomic int *is_over;

/* Buffers come and go all the time: two at a time, one of which outlives the other. */
static void comes_and_goes(void)
{
	HcclComm comm, last = NULL;
	unsigned char *buffer;
	uint64_t size;
	size_t before = 0;

	check_ok(aclrtSetDevice(0));
	for (uint32_t i = 0; !before || !atomic_load(is_over); i++) {
		comm = job_alone();
		buffer = buffer_of(comm, &size);
		for (uint32_t page = 0; page < 20; page++)
			check_eq_uint(buffer[page * MIB], 0);
		check_ok(aclrtMemset(buffer + i % 20 * MIB, MIB, 1, MIB));
		if (last) {
			buffer = buffer_of(last, &size);
			check_eq_uint(buffer[(i - 1) % 20 * MIB + 5], 1);
			check_ok(HcclCommDestroy(last));
			if (!before)
				before = job_free_memory();
		}
		last = comm;
	}
	check_eq_uint(job_free_memory(), before);
	check_ok(HcclCommDestroy(last));
	/* what was written, and the pages that were only read */
	check_eq_uint(job_free_memory(), before + MIB + (size_t)19 * 4096);
}

static void kill_twice(uint64_t *seed)
{
	const char *options[] = { "--keeper", NULL };
	struct private_daemon daemon;
	int status;
	pid_t pid;

	*is_over = 0;
	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	keeper = daemon.pid;
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		comes_and_goes();
		_exit(0);
	}
	for (int i = 0; i < 2; i++) {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		usleep(50000 + (useconds_t)(*seed >> 33) % 300000);
		worker_replace(keeper);
	}
	usleep(100000);
	*is_over = 1;
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

TEST_TIMEOUT(kills_at_any_moment_lose_and_double_nothing, 60)
{
	uint64_t seed = test_seed();

	is_over = mmap(NULL, sizeof(*is_over), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(is_over != MAP_FAILED);
	/* a daemon of its own each time: one that ends three times within 10 s has its registry dropped */
	for (int turn = 0; turn < 8; turn++)
		kill_twice(&seed);
}
