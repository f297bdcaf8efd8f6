/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon is killed under its keeper while two processes take turns by notifies, count, and make new ones: nothing is lost or doubled. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "tests/support/worker.h"

#define SIZE (64u << 10)
#define ANY ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION
#define BATCH 16

/* Of the two processes, and of who kills. */
static struct shared {
	char key[2][65], memory_key[65];
	_Atomic uint32_t met, rounds, stop, was_last;
} *shared;

static void meet(void)
{
	static uint32_t wanted;

	wanted += 2;
	atomic_fetch_add(&shared->met, 1);
	while (atomic_load(&shared->met) < wanted)
		usleep(200);
}

static void check_counter(aclrtCntNotify counter, uint32_t value)
{
	aclrtCntNotifyWaitInfo info = { .mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, .value = value, .timeout = 60 };

	check_ok(aclrtCntNotifyWaitWithTimeout(counter, NULL, &info));
	check_ok(aclrtSynchronizeStream(NULL));
}

/* A round of BATCH turns: process 0 writes, process 1 looks and answers; both count their turns by a notify that counts. */
static void turns(uint32_t index, aclrtNotify own, aclrtNotify other, unsigned char *memory, unsigned char *seen, aclrtCntNotify counter)
{
	aclrtCntNotifyRecordInfo one = { ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1 };

	for (int i = 0; i < BATCH; i++) {
		if (index == 0) {
			check_ok(aclrtMemsetAsync(memory, SIZE, i + 1, i % 4 ? 100 : SIZE, NULL));
			check_ok(aclrtRecordNotify(other, NULL));
			check_ok(aclrtWaitAndResetNotify(own, NULL, 60));
		} else {
			check_ok(aclrtWaitAndResetNotify(own, NULL, 60));
		}
		check_ok(aclrtMemcpyAsync(seen + i, 1, memory + 99, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
		check_ok(aclrtCntNotifyRecord(counter, NULL, &one));
		if (index == 1) {
			check_ok(aclrtMemsetAsync(memory, SIZE, i + 101, 100, NULL));
			check_ok(aclrtRecordNotify(other, NULL));
		}
	}
	check_ok(aclrtSynchronizeStream(NULL));
	for (int i = 0; i < BATCH; i++)
		check_eq_uint(seen[i], i + (index ? 1u : 101u));
}

/* Ids of a device go on over a restart: nobody gets one that is in use. */
static void come_and_go(uint32_t own_id)
{
	aclrtNotify few[3];
	uint32_t ids[3];

	for (int i = 0; i < 3; i++) {
		check_ok(aclrtCreateNotify(&few[i], 0));
		check_ok(aclrtGetNotifyId(few[i], &ids[i]));
		check_ne_uint(ids[i], own_id);
		check(i == 0 || ids[i] != ids[i - 1]);
		/* a new one is 0 */
		check_ok(aclrtRecordNotify(few[i], NULL));
		check_ok(aclrtWaitAndResetNotify(few[i], NULL, 60));
	}
	check_ok(aclrtSynchronizeStream(NULL));
	for (int i = 0; i < 3; i++)
		check_ok(aclrtDestroyNotify(few[i]));
}

static void process(uint32_t index)
{
	aclrtNotify own, other;
	aclrtCntNotify counter;
	unsigned char *memory, *seen;
	uint32_t id, rounds = 0;
	bool stops = false;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateNotify(&own, 0));
	check_ok(aclrtGetNotifyId(own, &id));
	check_ok(aclrtCntNotifyCreate(&counter, 0));
	check_ok(aclrtNotifyGetExportKey(own, shared->key[index], 65, ANY));
	if (index == 0) {
		memory = job_memory(SIZE, 0);
		check_ok(aclrtIpcMemGetExportKey(memory, SIZE, shared->memory_key, 65, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	}
	meet();
	check_ok(aclrtNotifyImportByKey(&other, shared->key[1 - index], 0));
	if (index == 1)
		check_ok(aclrtIpcMemImportByKey((void **)&memory, shared->memory_key, 0));
	seen = job_memory(BATCH, 0);
	while (!stops) {
		turns(index, own, other, memory, seen, counter);
		rounds++;
		check_counter(counter, rounds * BATCH);
		come_and_go(id);
		/* one decides for both whether this was the last round */
		if (index == 0) {
			atomic_store(&shared->was_last, atomic_load(&shared->stop));
			atomic_store(&shared->rounds, rounds);
		}
		meet();
		stops = atomic_load(&shared->was_last);
		meet();
	}
	check_ok(aclrtDestroyNotify(other));
	meet();
	check_ok(aclrtDestroyNotify(own));
	check_ok(aclrtCntNotifyDestroy(counter));
}

static void await_rounds(uint32_t more)
{
	uint32_t wanted = atomic_load(&shared->rounds) + more;

	for (unsigned int tries = 0; atomic_load(&shared->rounds) < wanted; tries++) {
		check_lt_uint(tries, 30000 * test_timeout_scale());
		usleep(1000);
	}
}

TEST_TIMEOUT(acl_notifies_survive_restarts, 120)
{
	const char *options[] = { "--keeper", "--log-level", "error", NULL };
	struct private_daemon daemon;
	int status;
	pid_t pids[2];

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	fflush(NULL);
	for (uint32_t i = 0; i < 2; i++) {
		pids[i] = fork();
		check_ge_int(pids[i], 0);
		if (pids[i] == 0) {
			process(i);
			_exit(0);
		}
	}
	/* a registry that ends a daemon three times within 10 s counts as the cause */
	for (int i = 0; i < 2; i++) {
		await_rounds(40);
		worker_kill(daemon.pid);
	}
	await_rounds(20);
	atomic_store(&shared->stop, 1);
	for (int i = 0; i < 2; i++) {
		check_eq_int(waitpid(pids[i], &status, 0), pids[i]);
		check_eq_int(status, 0);
	}
	check_eq_int(private_daemon_stop(&daemon), 0);
}
