/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon is killed under its keeper: keys, imports and orphans are there afterwards, and end as they do without that. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "tests/support/worker.h"

#define MIB ((size_t)1 << 20)

static struct shared {
	char key[65], secret_key[65];
	uint64_t handle;
	_Atomic int32_t importer;
	_Atomic int step;
	pid_t keeper;
} *shared;

static void await(int step)
{
	while (atomic_load(&shared->step) < step)
		usleep(500);
}

/* Until another one serves: it answers after this. */
static void kill_daemon(void)
{
	worker_replace(shared->keeper);
	(void)job_free_memory();
}

static const aclrtPhysicalMemProp prop = { .memAttr = ACL_HBM_MEM_HUGE,
					   .location = { 0, ACL_MEM_LOCATION_TYPE_DEVICE } };

static void exporter(void)
{
	unsigned char *memory, *secret;
	int32_t pid;
	void *handle;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtMalloc((void **)&memory, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtMalloc((void **)&secret, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
	memset(memory, 1, MIB);
	memset(secret, 2, MIB);
	check_ok(aclrtIpcMemGetExportKey(memory, MIB, shared->key, 65,
					 ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	check_ok(aclrtIpcMemGetExportKey(secret, MIB, shared->secret_key, 65, 0));
	check_ok(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
	check_ok(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_NONE,
						 ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION,
						 &shared->handle));
	await(1);
	pid = atomic_load(&shared->importer);
	check_ok(aclrtIpcMemSetImportPid(shared->secret_key, &pid, 1));
	/* an orphan from now on: it lives for its import */
	check_ok(aclrtFreePhysical(handle));
	atomic_store(&shared->step, 2);
	await(3);
	/* killed and back: the memory was written meanwhile, by the engine too */
	check_eq_int(memory[0], 9);
	check_eq_int(memory[MIB - 1], 9);
	check_ok(aclrtFree(memory));
	atomic_store(&shared->step, 4);
	await(5);
	raise(SIGKILL);
}

static void importer(void)
{
	unsigned char *memory, *secret, *mapped, *mine;
	void *handle;
	size_t had;

	check_ok(aclrtSetDevice(0));
	atomic_store(&shared->importer, (int32_t)getpid());
	while (!shared->handle)
		usleep(500);
	mine = job_memory(MIB, 9);
	check_ok(aclrtIpcMemImportByKey((void **)&memory, shared->key, 0));
	check_ok(aclrtMemImportFromShareableHandle(shared->handle, 0, &handle));
	check_ok(aclrtReserveMemAddress((void **)&mapped, 2 * MIB, 0, NULL, 0));
	check_ok(aclrtMapMem(mapped, 2 * MIB, 0, handle, 0));
	mapped[2 * MIB - 1] = 4;
	atomic_store(&shared->step, 1);
	await(2);
	kill_daemon();
	check_eq_int(memory[MIB - 1], 1);
	check_eq_int(mapped[2 * MIB - 1], 4);
	check_ok(aclrtMemcpyAsync(memory, MIB, mine, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
	check_ok(aclrtMemcpyAsync(mapped, MIB, mine, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_int(mapped[MIB - 1], 9);
	/* keys and the pids that may use them are there */
	check_ok(aclrtIpcMemImportByKey((void **)&secret, shared->secret_key, 0));
	check_eq_int(secret[MIB - 1], 2);
	atomic_store(&shared->step, 3);
	await(4);
	check_fails(aclrtMemcpy(mine, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE),
		    ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, ", which has freed it; it reads as zeros");
	kill_daemon();
	/* what was lost stays lost, what is there stays there */
	check_fails(aclrtMemcpy(mine, MIB, memory, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE),
		    ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, ", which has freed it; it reads as zeros");
	check_ok(aclrtMemcpyAsync(mine, MIB, secret, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	check_eq_int(mine[MIB - 1], 2);
	had = job_free_memory();
	check_ok(aclrtUnmapMem(mapped));
	check_ok(aclrtFreePhysical(handle));
	/* the orphan went with its last import */
	for (int i = 0; job_free_memory() != had + 2 * MIB; i++) {
		check_lt_int(i, 10000);
		usleep(1000);
	}
	atomic_store(&shared->step, 5);
	for (int i = 0; aclrtMemcpy(mine, MIB, secret, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE) == 0; i++) {
		check_lt_int(i, 20000);
		usleep(1000);
	}
	check_str_contains(aclGetRecentErrMsg(), ", which has ended");
	check_ok(aclrtIpcMemClose(shared->key));
	check_ok(aclrtIpcMemClose(shared->secret_key));
	/* the dead process's memory is back as soon as nothing uses it */
	for (int i = 0; job_free_memory() < had + 3 * MIB; i++) {
		check_lt_int(i, 10000);
		usleep(1000);
	}
}

TEST_TIMEOUT(share_survives_restarts_of_the_daemon, 60)
{
	const char *options[] = { "--keeper", NULL };
	struct private_daemon daemon;
	pid_t pids[2];
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	check(shared != MAP_FAILED);
	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	shared->keeper = daemon.pid;
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		check_ge_int(pids[i], 0);
		if (pids[i] == 0) {
			i ? importer() : exporter();
			_exit(0);
		}
	}
	check_eq_int(waitpid(pids[1], &status, 0), pids[1]);
	if (status)
		kill(pids[0], SIGKILL);
	check_eq_int(status, 0);
	check_eq_int(waitpid(pids[0], &status, 0), pids[0]);
	check(WIFSIGNALED(status));
	check_eq_int(private_daemon_stop(&daemon), 0);
}
