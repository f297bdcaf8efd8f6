/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes share: by keys, by handles; what is left of it when its owner frees it, or dies, or the daemon is killed. */
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define ANY ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION

/* What the processes of a case tell each other. */
static struct shared {
	char key[4][65];
	uint64_t handle;
	aclrtMemFabricHandle fabric;
	_Atomic int32_t pid[3];
	_Atomic int step;
	HcclRootInfo root;
} *shared;

static void share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	check(shared != MAP_FAILED);
}

static void run(uint32_t count, void (*body)(uint32_t index, HcclRootInfo *unused))
{
	share();
	job_run_processes(count, body);
}

static void await(int step)
{
	while (atomic_load(&shared->step) < step)
		usleep(500);
}

static void fill(unsigned char *memory, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		memory[i] = (unsigned char)(i * 7 + seed + i / 251);
}

static void check_filled(const unsigned char *memory, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i] != (unsigned char)(i * 7 + seed + i / 251))
			test_fail(__FILE__, __LINE__, "byte %zu is %u", i, memory[i]);
}

static void await_memory(size_t free)
{
	for (int i = 0; job_free_memory() < free; i++) {
		check_lt_int(i, 20000);
		usleep(1000);
	}
}

/* ---- both ways, by every kind of copy ---- */

static const size_t sizes[] = { 100, 5000, 300 * KIB, 5 * MIB };

static void both_ways(uint32_t index, HcclRootInfo *unused)
{
	unsigned char *memory[4];

	check_ok(aclrtSetDevice((int32_t)index));
	if (index == 0) {
		for (int i = 0; i < 4; i++) {
			check_ok(aclrtMalloc((void **)&memory[i], sizes[i], ACL_MEM_MALLOC_HUGE_FIRST));
			fill(memory[i], sizes[i], (unsigned int)i);
			check_ok(aclrtIpcMemGetExportKey(memory[i], sizes[i], shared->key[i], 65, ANY));
			check_eq_uint(strlen(shared->key[i]), 64);
		}
		job_meet();
		job_meet();
		for (int i = 0; i < 4; i++) {
			check_filled(memory[i], sizes[i], (unsigned int)i + 100);
			check_ok(aclrtIpcMemClose(shared->key[i]));
			check_ok(aclrtFree(memory[i]));
		}
		return;
	}
	job_meet();
	for (int i = 0; i < 4; i++) {
		unsigned char *copy = malloc(sizes[i]), *device = job_memory(sizes[i], 0), *again;
		size_t had = job_free_memory();

		check_ok(aclrtIpcMemImportByKey((void **)&memory[i], shared->key[i],
						ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
		check_ok(aclrtIpcMemImportByKey((void **)&again, shared->key[i], 0));
		check_eq_ptr(again, memory[i]);
		/* it is not charged here */
		check_eq_uint(job_free_memory(), had);
		check_filled(memory[i], sizes[i], (unsigned int)i);
		check_ok(aclrtMemcpyAsync(device, sizes[i], memory[i], sizes[i],
					  ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
		check_ok(aclrtSynchronizeStream(NULL));
		check_filled(device, sizes[i], (unsigned int)i);
		fill(copy, sizes[i], (unsigned int)i + 100);
		check_ok(aclrtMemcpyAsync(memory[i], sizes[i], copy, sizes[i],
					  ACL_MEMCPY_HOST_TO_DEVICE, NULL));
		check_ok(aclrtSynchronizeStream(NULL));
		/* one byte more is somebody else's */
		check_fails(aclrtMemset(memory[i], sizes[i] + 100, 0, sizes[i] + 100),
			    ACL_ERROR_RT_PARAM_INVALID, "ends after");
		check_fails(aclrtFree(memory[i]), ACL_ERROR_RT_PARAM_INVALID, "not the start");
		check_ok(aclrtIpcMemClose(shared->key[i]));
		check_filled(memory[i], sizes[i], (unsigned int)i + 100);
		check_ok(aclrtIpcMemClose(shared->key[i]));
		check_fails(aclrtIpcMemClose(shared->key[i]), ACL_ERROR_RT_INVALID_HANDLE, "closed");
		free(copy);
	}
	job_meet();
}

TEST(share_bytes_go_both_ways)
{
	run(2, both_ways);
}

/* ---- in communicators ---- */

static void in_batches(uint32_t index, HcclRootInfo *unused)
{
	const size_t size = 3 * MIB;
	unsigned char *memory, *mine;
	struct job_rank rank;

	check_ok(aclrtSetDevice((int32_t)index));
	mine = job_memory(size, 0);
	if (index == 0) {
		check_ok(HcclGetRootInfo(&shared->root));
		check_ok(aclrtMalloc((void **)&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
		fill(memory, size, 1);
		check_ok(aclrtIpcMemGetExportKey(memory, size, shared->key[0], 65, ANY));
	}
	job_meet();
	if (index == 1)
		check_ok(aclrtIpcMemImportByKey((void **)&memory, shared->key[0], 0));
	rank = job_join(&shared->root, index, 2, (int32_t)index);
	/* rank 1 sends rank 0's own memory to it, and receives into it */
	HcclSendRecvItem items[] = {
		job_send(1 - index, index ? memory : mine, index ? size / 2 : 1000),
		job_receive(1 - index, index ? memory + size / 2 : mine, index ? 1000 : size / 2),
	};
	if (index == 0)
		memset(mine, 9, 1000);
	items[0].buf = index ? (void *)memory : (void *)(mine + size / 2);
	if (index == 0)
		memset(mine + size / 2, 9, 1000);
	check_ok(HcclBatchSendRecv(items, 2, rank.comm, rank.stream));
	check_ok(aclrtSynchronizeStream(rank.stream));
	job_meet();
	if (index == 0) {
		check_filled(mine, size / 2, 1);
		check_eq_int(memory[size / 2], 9);
		check_eq_int(memory[size / 2 + 999], 9);
	}
	job_meet();
	job_leave(&rank);
}

TEST(share_imported_memory_is_sent_and_received)
{
	run(2, in_batches);
}

/* ---- who may ---- */

static void who_may(uint32_t index, HcclRootInfo *unused)
{
	unsigned char *memory;
	void *handle;
	int32_t pid;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtDeviceGetBareTgid(&pid));
	check_eq_int(pid, getpid());
	atomic_store(&shared->pid[index], pid);
	if (index == 0) {
		aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE,
					      .location = { 0, ACL_MEM_LOCATION_TYPE_DEVICE } };
		int32_t pids[2];

		check_ok(aclrtMalloc((void **)&memory, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		memset(memory, 5, MIB);
		check_ok(aclrtIpcMemGetExportKey(memory, MIB, shared->key[0], 65, 0));
		check_ok(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
		check_ok(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0,
							 &shared->handle));
		job_meet();
		job_meet();
		pids[0] = atomic_load(&shared->pid[2]);
		pids[1] = pid;
		check_ok(aclrtIpcMemSetImportPid(shared->key[0], pids, 2));
		check_ok(aclrtMemSetPidToShareableHandle(shared->handle, pids, 1));
		pids[1] = 0;
		check_fails(aclrtIpcMemSetImportPid(shared->key[0], pids, 2),
			    ACL_ERROR_RT_PARAM_INVALID, "pid[1]");
		/* one's own memory is one's own */
		check_ok(aclrtIpcMemImportByKey((void **)&memory, shared->key[0], 0));
		check_eq_int(memory[MIB - 1], 5);
		job_meet();
		job_meet();
		return;
	}
	job_meet();
	check_fails(aclrtIpcMemImportByKey((void **)&memory, shared->key[0], 0),
		    ACL_ERROR_RT_NO_PERMISSION, "aclrtIpcMemSetImportPid");
	check_fails(aclrtMemImportFromShareableHandle(shared->handle, 0, &handle),
		    ACL_ERROR_RT_NO_PERMISSION, "has not named pid");
	check_fails(aclrtIpcMemSetImportPid(shared->key[0], &pid, 1), ACL_ERROR_RT_INVALID_HANDLE,
		    "this process has exported nothing");
	job_meet();
	job_meet();
	if (index == 2) {
		check_ok(aclrtIpcMemImportByKey((void **)&memory, shared->key[0], 0));
		check_eq_int(memory[MIB - 1], 5);
		check_ok(aclrtMemImportFromShareableHandle(shared->handle, 0, &handle));
	} else {
		check_fails(aclrtIpcMemImportByKey((void **)&memory, shared->key[0], 0),
			    ACL_ERROR_RT_NO_PERMISSION, NULL);
		check_fails(aclrtMemImportFromShareableHandle(shared->handle, 0, &handle),
			    ACL_ERROR_RT_NO_PERMISSION, NULL);
	}
	job_meet();
}

TEST(share_only_named_processes_import)
{
	run(3, who_may);
}

static void other_user(uint32_t index, HcclRootInfo *unused)
{
	unsigned char *memory;
	char directory[96];

	if (index == 0) {
		snprintf(directory, sizeof(directory), "%s", getenv("HCCLD_SOCKET"));
		check_eq_int(chmod(directory, 0666), 0);
		*strrchr(directory, '/') = 0;
		check_eq_int(chmod(directory, 0755), 0);
		check_ok(aclrtSetDevice(0));
		check_ok(aclrtMalloc((void **)&memory, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		check_ok(aclrtIpcMemGetExportKey(memory, MIB, shared->key[0], 65, ANY));
	}
	job_meet();
	if (index == 1) {
		check_eq_int(setresuid(65500, 65500, 65500), 0);
		check_ok(aclrtSetDevice(0));
		/* as if there were no such key */
		check_fails(aclrtIpcMemImportByKey((void **)&memory, shared->key[0], 0),
			    ACL_ERROR_RT_INVALID_HANDLE, "nothing is exported under this key");
	}
	job_meet();
}

TEST(share_ends_at_the_user)
{
	if (geteuid() != 0)
		test_skip("needs root to become another user");
	run(2, other_user);
}

/* ---- lifetime ---- */

/* @how: what its process has done. */
static void check_lost(unsigned char *memory, size_t size, const char *how)
{
	unsigned char host[64], *device = job_memory(size, 1);
	HcclComm comm;
	aclrtStream made;
	char text[128];
	HcclSendRecvItem items[] = { job_send(0, memory, 64), job_receive(0, device, 64) };

	snprintf(text, sizeof(text), "was imported from pid %d, which %s; it reads as zeros", atomic_load(&shared->pid[0]), how);
	check_fails(aclrtMemcpy(host, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST),
		    ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, text);
	check_fails(aclrtMemcpyAsync(device, size, memory, size, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL),
		    ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, text);
	check_fails(aclrtMemset(memory, 64, 0, 64), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, NULL);
	comm = job_alone();
	check_ok(aclrtCreateStream(&made));
	check_fails(HcclBatchSendRecv(items, 2, comm, made), HCCL_E_REMOTE, text);
	check_ok(aclrtDestroyStream(made));
	check_ok(HcclCommDestroy(comm));
	check_ok(aclrtFree(device));
}

static void freed(uint32_t index, HcclRootInfo *unused)
{
	unsigned char *memory[2], *other;

	check_ok(aclrtSetDevice(0));
	if (index == 0) {
		size_t had = job_free_memory();

		atomic_store(&shared->pid[0], getpid());
		check_ok(aclrtMalloc((void **)&memory[0], 5000, ACL_MEM_MALLOC_HUGE_FIRST));
		check_ok(aclrtMalloc((void **)&memory[1], 3 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		for (int i = 0; i < 2; i++) {
			memset(memory[i], 7, 5000);
			check_ok(aclrtIpcMemGetExportKey(memory[i], 5000, shared->key[i], 65, ANY));
		}
		job_meet();
		job_meet();
		check_ok(aclrtFree(memory[0]));
		check_ok(aclrtFree(memory[1]));
		/* what is small shares its pages with others of this process: it was cleared, and is used again */
		check_eq_uint(job_free_memory(), had);
		job_meet();
		job_meet();
		return;
	}
	job_meet();
	for (int i = 0; i < 2; i++) {
		check_ok(aclrtIpcMemImportByKey((void **)&memory[i], shared->key[i], 0));
		check_eq_int(memory[i][4999], 7);
	}
	job_meet();
	job_meet();
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 5000; k++)
			check_eq_int(memory[i][k], 0);
		check_lost(memory[i], 5000, "has freed it");
		check_fails(aclrtIpcMemImportByKey((void **)&other, shared->key[i], 0),
			    ACL_ERROR_RT_INVALID_HANDLE, " has freed it; close the key");
		check_ok(aclrtIpcMemClose(shared->key[i]));
		check_fails(aclrtIpcMemImportByKey((void **)&other, shared->key[i], 0),
			    ACL_ERROR_RT_INVALID_HANDLE, "nothing is exported under this key");
	}
	job_meet();
}

TEST(share_exporter_frees)
{
	run(2, freed);
}

static void dies(uint32_t index, HcclRootInfo *unused)
{
	unsigned char *memory, *mapped, *mine;
	aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { 1, ACL_MEM_LOCATION_TYPE_DEVICE } };
	size_t had;
	void *handle;

	check_ok(aclrtSetDevice(1));
	if (index == 0) {
		atomic_store(&shared->pid[0], getpid());
		check_ok(aclrtMalloc((void **)&memory, 64 * MIB, ACL_MEM_MALLOC_HUGE_FIRST));
		memset(memory, 7, 64 * MIB);
		check_ok(aclrtIpcMemGetExportKey(memory, 64 * MIB, shared->key[0], 65, ANY));
		check_ok(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
		check_ok(aclrtMemExportToShareableHandleV2(
			handle, ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
			ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &shared->fabric));
		job_expect_kill();
		job_meet();
		await(1);
		raise(SIGKILL);
	}
	job_meet();
	mine = job_memory(64 * MIB, 0);
	had = job_free_memory();
	check_ok(aclrtIpcMemImportByKey((void **)&memory, shared->key[0], 0));
	check_ok(aclrtMemImportFromShareableHandleV2(&shared->fabric,
						     ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &handle));
	check_ok(aclrtReserveMemAddress((void **)&mapped, 2 * MIB, 0, NULL, 1));
	check_ok(aclrtMapMem(mapped, 2 * MIB, 0, handle, 0));
	mapped[5] = 1;
	/* copies are under way when it dies */
	for (int i = 0; i < 50; i++)
		check_ok(aclrtMemcpyAsync(mine, 64 * MIB, memory, 64 * MIB,
					  ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
	atomic_store(&shared->step, 1);
	aclrtSynchronizeStream(NULL);
	aclGetRecentErrMsg();
	await_memory(had + 66 * MIB);
	check_eq_int(memory[64 * MIB - 1], 0);
	check_lost(memory, 5000, "has ended (killed by signal 9)");
	check_lost(mapped, 5000, "has ended (killed by signal 9)");
	check_ok(aclrtIpcMemClose(shared->key[0]));
	check_ok(aclrtUnmapMem(mapped));
	check_fails(aclrtMapMem(mapped, 2 * MIB, 0, handle, 0), ACL_ERROR_RT_INVALID_HANDLE,
		    "which has ended (killed by signal 9)");
	check_ok(aclrtFreePhysical(handle));
	check_ok(aclrtReleaseMemAddress(mapped));
}

TEST(share_exporter_dies)
{
	share();
	/* the job's processes meet by themselves: the dead one does not */
	job_run_processes(2, dies);
}

/* CANN: physical memory goes when all processes have freed it. */
static void physical_outlives(uint32_t index, HcclRootInfo *unused)
{
	aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE,
				      .location = { 0, ACL_MEM_LOCATION_TYPE_DEVICE } };
	unsigned char *mapped;
	void *handle;
	size_t had;

	check_ok(aclrtSetDevice(0));
	had = job_free_memory();
	job_meet();
	check_ok(aclrtReserveMemAddress((void **)&mapped, 4 * MIB, 0, NULL, 0));
	if (index == 0) {
		check_ok(aclrtMallocPhysical(&handle, 4 * MIB, &prop, 0));
		check_eq_uint(job_free_memory(), had - 4 * MIB);
		check_ok(aclrtMapMem(mapped, 4 * MIB, 0, handle, 0));
		fill(mapped, 4 * MIB, 3);
		check_ok(aclrtMemExportToShareableHandle(
			handle, ACL_MEM_HANDLE_TYPE_NONE,
			ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, &shared->handle));
	}
	job_meet();
	if (index == 1) {
		check_ok(aclrtMemImportFromShareableHandle(shared->handle, 0, &handle));
		check_fails(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE, 0,
							    &shared->handle),
			    ACL_ERROR_RT_NO_PERMISSION, "alone can export");
		check_ok(aclrtMapMem(mapped, 4 * MIB, 0, handle, 0));
	}
	job_meet();
	if (index == 0) {
		check_ok(aclrtUnmapMem(mapped));
		check_ok(aclrtFreePhysical(handle));
		check_fails(aclrtFreePhysical(handle), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	}
	job_meet();
	if (index == 1) {
		unsigned char *copy = job_memory(4 * MIB, 0);

		check_filled(mapped, 4 * MIB, 3);
		check_ok(aclrtMemcpyAsync(copy, 4 * MIB, mapped, 4 * MIB,
					  ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
		check_ok(aclrtSynchronizeStream(NULL));
		check_filled(copy, 4 * MIB, 3);
		check_ok(aclrtFree(copy));
		check_eq_uint(job_free_memory(), had - 4 * MIB);
		check_ok(aclrtFreePhysical(handle));
		check_filled(mapped, 4 * MIB, 3);
		check_ok(aclrtUnmapMem(mapped));
		await_memory(had);
	}
	job_meet();
	check_ok(aclrtReleaseMemAddress(mapped));
}

TEST(share_physical_memory_goes_with_its_last_user)
{
	run(2, physical_outlives);
}

static int fd_count(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	check_ptr(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void cycles(uint32_t index, HcclRootInfo *unused)
{
	int fds = 0;
	size_t had = 0;

	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < 1000; i++) {
		unsigned char *memory;

		if (i == 20) {
			fds = fd_count();
			had = job_free_memory();
		}
		if (index == 0) {
			check_ok(aclrtMalloc((void **)&memory, i % 2 ? 100 : 300 * KIB,
					     ACL_MEM_MALLOC_HUGE_FIRST));
			memory[99] = (unsigned char)i;
			check_ok(aclrtIpcMemGetExportKey(memory, 100, shared->key[0], 65, ANY));
			atomic_store(&shared->step, 2 * i + 1);
			await(2 * i + 2);
			check_eq_int(memory[98], (unsigned char)(i + 1));
			if (i % 3)
				check_ok(aclrtIpcMemClose(shared->key[0]));
			check_ok(aclrtFree(memory));
		} else {
			await(2 * i + 1);
			check_ok(aclrtIpcMemImportByKey((void **)&memory, shared->key[0], 0));
			check_eq_int(memory[99], (unsigned char)i);
			memory[98] = (unsigned char)(i + 1);
			check_ok(aclrtIpcMemClose(shared->key[0]));
			atomic_store(&shared->step, 2 * i + 2);
		}
	}
	job_meet();
	check_eq_int(fd_count(), fds);
	if (index == 0)
		check_eq_uint(job_free_memory(), had);
}

TEST_TIMEOUT(share_a_thousand_cycles_leave_nothing, 120)
{
	run(2, cycles);
}

/* ---- bad arguments ---- */

static void bad_arguments(void)
{
	unsigned char *memory, *host;
	char key[65], wrong[65];
	int32_t pids[129];
	uint64_t handle;
	void *physical;

	check_ok(aclrtSetDevice(0));
	memory = job_memory(5000, 0);
	check_ok(aclrtMallocHost((void **)&host, 5000));
	check_fails(aclrtIpcMemGetExportKey(NULL, 1, key, 65, 0), ACL_ERROR_INVALID_PARAM, "devPtr");
	check_fails(aclrtIpcMemGetExportKey(memory, 1, NULL, 65, 0), ACL_ERROR_INVALID_PARAM, "key");
	check_fails(aclrtIpcMemGetExportKey(memory, 1, key, 64, 0), ACL_ERROR_RT_PARAM_INVALID, "len");
	check_fails(aclrtIpcMemGetExportKey(memory, 0, key, 65, 0), ACL_ERROR_RT_PARAM_INVALID, "size");
	check_fails(aclrtIpcMemGetExportKey(memory, 6000, key, 65, 0), ACL_ERROR_RT_PARAM_INVALID, "the allocation has");
	check_fails(aclrtIpcMemGetExportKey(memory, 1, key, 65, 2), ACL_ERROR_RT_PARAM_INVALID, "flags");
	check_fails(aclrtIpcMemGetExportKey(key, 1, key, 65, 0), ACL_ERROR_RT_PARAM_INVALID, "not device");
	check_fails(aclrtIpcMemGetExportKey(host, 1, key, 65, 0), ACL_ERROR_RT_PARAM_INVALID, "not device");
	check_ok(aclrtIpcMemGetExportKey(memory + 1, 4999, key, 65, 0));
	memcpy(wrong, key, 65);
	wrong[63] = wrong[63] == '0' ? '1' : '0';
	check_fails(aclrtIpcMemImportByKey((void **)&memory, wrong, 0), ACL_ERROR_RT_INVALID_HANDLE, "key");
	check_fails(aclrtIpcMemImportByKey((void **)&memory, "nonsense", 0), ACL_ERROR_RT_PARAM_INVALID, "64 hex");
	check_fails(aclrtIpcMemImportByKey((void **)&memory, key, 2), ACL_ERROR_RT_PARAM_INVALID, "flags");
	check_fails(aclrtIpcMemImportByKey(NULL, key, 0), ACL_ERROR_INVALID_PARAM, NULL);
	check_fails(aclrtIpcMemClose(wrong), ACL_ERROR_RT_INVALID_HANDLE, "neither");
	check_fails(aclrtIpcMemClose(NULL), ACL_ERROR_INVALID_PARAM, NULL);
	for (int i = 0; i < 129; i++)
		pids[i] = i + 2;
	check_fails(aclrtIpcMemSetImportPid(key, pids, 129), ACL_ERROR_RT_OVER_LIMIT, "128");
	check_ok(aclrtIpcMemSetImportPid(key, pids, 128));
	check_ok(aclrtIpcMemSetImportPid(key, pids, 100));
	check_fails(aclrtIpcMemSetImportPid(key, pids + 128, 1), ACL_ERROR_RT_OVER_LIMIT, "128");
	check_fails(aclrtIpcMemSetImportPid(key, pids, 0), ACL_ERROR_RT_PARAM_INVALID, "num");
	check_fails(aclrtIpcMemSetImportPid(wrong, pids, 1), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_ok(aclrtIpcMemSetAttr(key, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 1));
	check_fails(aclrtIpcMemSetAttr(key, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 2), ACL_ERROR_RT_PARAM_INVALID, "attr");
	check_fails(aclrtIpcMemSetAttr(wrong, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK, 1), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_ok(aclrtIpcMemClose(key));
	check_fails(aclrtIpcMemClose(key), ACL_ERROR_RT_INVALID_HANDLE, NULL);
	check_fails(aclrtMemExportToShareableHandle(memory, ACL_MEM_HANDLE_TYPE_NONE, 0, &handle),
		    ACL_ERROR_RT_INVALID_HANDLE, "no physical memory");
	check_fails(aclrtMemImportFromShareableHandle(0, 0, &physical), ACL_ERROR_RT_INVALID_HANDLE, "key");
	check_fails(aclrtMemImportFromShareableHandle(1, 3, &physical), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice(3)");
	check_fails(aclrtMemImportFromShareableHandle(1, 30, &physical), ACL_ERROR_RT_INVALID_DEVICEID, NULL);
}

TEST(share_bad_arguments)
{
	job_run(bad_arguments);
}
