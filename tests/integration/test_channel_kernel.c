/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host kernel that goes on writing to a peer's memory when its own rank ends the channel, the communicator or the device, or the peer ends
 * the channel; or to memory that its process has imported by a key or handle, when it closes the key or resets the device: nothing of it
 * reaches the owner's memory once that may be used for something else, and the kernel does not notice.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hccl/hccl_res.h"
#include "hccld/host_kernel.h"
#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

#define AREA 8192u
#define PHYSICAL (UINT64_C(2) << 20)
#define PATTERN 0x55
#define WRITER 0u /* rank of the kernel; the other one owns the memory */

enum step { BEGUN = 1, RUNS, IS_STOPPED, HAS_ENDED, IS_CHECKED };

static struct shared {
	HcclRootInfo root;
	char key[65];
	uint64_t handle;
	_Atomic int step;
	_Atomic bool is_over;
	_Atomic uint64_t rounds; /* of the kernel over all of the memory */
	pid_t daemon;
} *shared;

struct end {
	struct job_rank rank;
	bool is_reserved; /* its addresses stay when the kernel has ended */
	char *area, *remote;
	HcclChannelDesc desc;
	HcclMemHandle handle;
	ChannelHandle channel;
};

static void await(int step)
{
	while (atomic_load(&shared->step) < step)
		usleep(500);
}

static void go(int step)
{
	atomic_store(&shared->step, step);
}

static void write_for_ever(uint32_t block, uint32_t blocks, void *args)
{
	volatile char *memory = *(volatile char **)args;

	while (!atomic_load(&shared->is_over)) {
		for (uint32_t i = 0; i < AREA; i++)
			memory[i] = 1;
		atomic_fetch_add(&shared->rounds, 1);
	}
}

static struct end end_of_channel(uint32_t index)
{
	struct end end = { 0 };
	uint32_t count;
	CommMem mem, *mems;
	char **tags;

	if (index == 0) {
		check_ok(aclrtSetDevice(0));
		check_ok(HcclGetRootInfo(&shared->root));
		go(BEGUN);
	}
	await(BEGUN);
	end.rank = job_join(&shared->root, index, 2, 0);
	end.area = job_memory(AREA, 0);
	mem = (CommMem){ COMM_MEM_TYPE_DEVICE, end.area, AREA };
	check_ok(HcclCommMemReg(end.rank.comm, "area", &mem, &end.handle));
	check_ok(HcclChannelDescInit(&end.desc, 1));
	end.desc.remoteRank = index ^ 1;
	end.desc.channelProtocol = COMM_PROTOCOL_UB_MEM;
	end.desc.memHandles = &end.handle;
	end.desc.memHandleNum = 1;
	check_ok(HcclChannelAcquire(end.rank.comm, COMM_ENGINE_AIV, &end.desc, 1, &end.channel));
	check_ok(HcclChannelGetRemoteMems(end.rank.comm, end.channel, &count, &mems, &tags));
	end.remote = mems[0].addr;
	return end;
}

/* Without a communicator: the owner exports its memory. */
static struct end end_alone(uint32_t index)
{
	struct end end = { 0 };

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&end.rank.stream));
	if (index == WRITER)
		await(BEGUN);
	return end;
}

static struct end end_of_key(uint32_t index)
{
	struct end end = end_alone(index);

	if (index == WRITER) {
		check_ok(aclrtIpcMemImportByKey((void **)&end.remote, shared->key, 0));
		return end;
	}
	end.area = job_memory(AREA, 0);
	check_ok(aclrtIpcMemGetExportKey(end.area, AREA, shared->key, sizeof(shared->key), ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	go(BEGUN);
	return end;
}

/* Physical memory, which both map. */
static struct end end_of_handle(uint32_t index)
{
	aclrtPhysicalMemProp prop = { .handleType = ACL_MEM_HANDLE_TYPE_NONE,
				      .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
				      .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { 0, ACL_MEM_LOCATION_TYPE_DEVICE } };
	struct end end = end_alone(index);
	char **address = index == WRITER ? &end.remote : &end.area;
	void *handle;

	if (index == WRITER)
		check_ok(aclrtMemImportFromShareableHandle(shared->handle, 0, &handle));
	else
		check_ok(aclrtMallocPhysical(&handle, PHYSICAL, &prop, 0));
	check_ok(aclrtReserveMemAddress((void **)address, PHYSICAL, 0, NULL, 0));
	check_ok(aclrtMapMem(*address, PHYSICAL, 0, handle, 0));
	end.is_reserved = true;
	if (index == WRITER)
		return end;
	check_ok(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
						 &shared->handle));
	go(BEGUN);
	return end;
}

/* The kernel goes over its addresses at least once, from the first to the last; does the memory stay as it is filled here? */
static bool stays(char *area)
{
	uint64_t begin;

	memset(area, PATTERN, AREA);
	begin = atomic_load(&shared->rounds);
	for (int i = 0; atomic_load(&shared->rounds) < begin + 2; i++) {
		check_lt_int(i, 40000);
		usleep(500);
	}
	for (uint32_t i = 0; i < AREA; i++)
		if (((volatile char *)area)[i] != PATTERN)
			return false;
	return true;
}

static void check_stays(char *area)
{
	for (int i = 0; i < 5; i++)
		check(stays(area));
}

static bool is_mapped(const char *address)
{
	const uintptr_t page = (uintptr_t)address & ~(uintptr_t)4095;

	return msync((void *)page, 4096, MS_ASYNC) == 0;
}

static void run(void (*body)(uint32_t index))
{
	struct private_daemon daemon;
	pid_t pids[2];
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	shared->daemon = daemon.pid;
	fflush(NULL);
	for (uint32_t i = 0; i < 2; i++) {
		pids[i] = fork();
		check_ge_int(pids[i], 0);
		if (pids[i] == 0) {
			/* the owner is host code, which may not touch device memory then */
			if (i != WRITER)
				unsetenv("HCCLD_STRICT_DEVICE");
			body(i);
			_exit(0);
		}
	}
	for (uint32_t i = 0; i < 2; i++) {
		pid_t pid = wait(&status);

		/* the other one may wait for it */
		if (status)
			kill(pids[pid == pids[0]], SIGKILL);
		check_eq_int(status, 0);
	}
	check_eq_int(private_daemon_stop(&daemon), 0);
}

/* ---- its own rank ends what it uses ---- */

static struct end (*end_new)(uint32_t index) = end_of_channel;
static void (*end_it)(struct end *end);

/*
 * The daemon is stopped, so the call that ends the channel waits for its answer as long as this takes: by then the kernel must not reach the
 * memory any more, whenever the daemon ends the import.
 */
static void writer_ends(uint32_t index)
{
	struct end end = end_new(index);

	if (index == WRITER) {
		check_ok(HccldLaunchHostKernel(write_for_ever, 1, &end.remote, sizeof(end.remote), end.rank.stream));
		go(RUNS);
		await(IS_STOPPED);
		end_it(&end);
		go(HAS_ENDED);
		await(IS_CHECKED);
		/* its addresses stay until it has ended */
		check(is_mapped(end.remote));
		atomic_store(&shared->is_over, true);
		for (int i = 0; !end.is_reserved && is_mapped(end.remote); i++) {
			check_lt_int(i, 40000);
			usleep(500);
		}
	} else {
		await(RUNS);
		check(!stays(end.area));
		check_eq_int(kill(shared->daemon, SIGSTOP), 0);
		go(IS_STOPPED);
		for (int i = 0; !stays(end.area); i++) {
			check_lt_int(i, 10000);
			usleep(1000);
		}
		check_stays(end.area);
		check_eq_int(atomic_load(&shared->step), IS_STOPPED);
		check_eq_int(kill(shared->daemon, SIGCONT), 0);
		await(HAS_ENDED);
		check_stays(end.area);
		go(IS_CHECKED);
	}
	if (end.rank.comm && end.rank.stream)
		job_leave(&end.rank);
}

static void end_channel(struct end *end)
{
	check_ok(HcclChannelDestroy(end->rank.comm, &end->channel, 1));
}

static void end_communicator(struct end *end)
{
	check_ok(HcclCommDestroy(end->rank.comm));
	end->rank.comm = NULL;
}

static void end_device(struct end *end)
{
	check_ok(aclrtResetDeviceForce(0));
	end->rank.stream = NULL;
}

TEST_TIMEOUT(a_kernel_that_writes_when_its_channel_is_destroyed, 60)
{
	end_it = end_channel;
	run(writer_ends);
}

TEST_TIMEOUT(a_kernel_that_writes_when_its_communicator_is_destroyed, 60)
{
	end_it = end_communicator;
	run(writer_ends);
}

TEST_TIMEOUT(a_kernel_that_writes_when_its_device_is_reset, 60)
{
	end_it = end_device;
	run(writer_ends);
}

static void close_key(struct end *end)
{
	check_ok(aclrtIpcMemClose(shared->key));
}

TEST_TIMEOUT(a_kernel_that_writes_when_its_key_is_closed, 60)
{
	end_new = end_of_key;
	end_it = close_key;
	run(writer_ends);
}

TEST_TIMEOUT(a_kernel_that_writes_by_a_key_when_its_device_is_reset, 60)
{
	end_new = end_of_key;
	end_it = end_device;
	run(writer_ends);
}

TEST_TIMEOUT(a_kernel_that_writes_to_mapped_memory_when_its_device_is_reset, 60)
{
	end_new = end_of_handle;
	end_it = end_device;
	run(writer_ends);
}

/* ---- the peer ends it, and keeps the memory ---- */

static const char *owner_does;

static void owner_ends(uint32_t index)
{
	struct end end = end_new(index);
	char byte;

	if (index == WRITER) {
		check_ok(HccldLaunchHostKernel(write_for_ever, 1, &end.remote, sizeof(end.remote), end.rank.stream));
		go(RUNS);
		await(HAS_ENDED);
		/* the first call that hears of it */
		check_fails(aclrtMemcpy(&byte, 1, end.remote, 1, ACL_MEMCPY_DEVICE_TO_HOST), 507057, owner_does);
		go(IS_CHECKED);
		await(IS_CHECKED + 1);
		atomic_store(&shared->is_over, true);
		check_ok(aclrtSynchronizeStream(end.rank.stream));
		check_ok(HcclChannelDestroy(end.rank.comm, &end.channel, 1));
	} else {
		await(RUNS);
		check(!stays(end.area));
		end_it(&end);
		go(HAS_ENDED);
		await(IS_CHECKED);
		check_stays(end.area);
		go(IS_CHECKED + 1);
	}
	job_leave(&end.rank);
}

TEST_TIMEOUT(a_kernel_that_writes_when_its_peer_destroys_the_channel, 60)
{
	end_it = end_channel;
	owner_does = ", has closed its end of the channel; it reads as zeros";
	run(owner_ends);
}

TEST_TIMEOUT(a_kernel_that_writes_when_its_peer_destroys_the_communicator, 60)
{
	end_it = end_communicator;
	owner_does = ", has destroyed the communicator; it reads as zeros";
	run(owner_ends);
}
