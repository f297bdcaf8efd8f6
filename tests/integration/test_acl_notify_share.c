/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies that processes share, and what is left of them when one ends; and twenty processes that want all that a device has. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"

#define SIZE (300u << 10)
#define ROUNDS 400
#define TAKERS 20u
#define BUDGET 300u
#define ANY ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION

/* What the processes of a case tell each other. */
static struct shared {
	char key[2][65], memory_key[65];
	_Atomic int32_t pid[2];
	_Atomic int step;
	_Atomic uint64_t recorded_ns;
	_Atomic uint32_t taken[TAKERS + 1];
} *shared;

static void run(uint32_t count, void (*body)(uint32_t index, HcclRootInfo *unused))
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
	job_run_processes(count, body);
}

static void await(int step)
{
	while (atomic_load(&shared->step) < step)
		usleep(500);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Process @index has a notify of its own, and imports the other's. */
static void exchange(uint32_t index, aclrtNotify *ret_own, aclrtNotify *ret_other)
{
	check_ok(aclrtSetDevice((int32_t)index));
	check_ok(aclrtCreateNotify(ret_own, 0));
	check_ok(aclrtNotifyGetExportKey(*ret_own, shared->key[index], 65, ANY));
	job_meet();
	check_ok(aclrtNotifyImportByKey(ret_other, shared->key[1 - index], 0));
}

/* ---- data in turns ---- */

/* Process 0 fills memory, process 1 adds to it what it finds. Whole rounds are queued without waiting for them. */
static void in_turns(uint32_t index, HcclRootInfo *unused)
{
	aclrtNotify own, other;
	unsigned char *memory, *seen;
	uint32_t id, other_id;

	exchange(index, &own, &other);
	check_ok(aclrtGetNotifyId(own, &id));
	check_ok(aclrtGetNotifyId(other, &other_id));
	if (index == 0) {
		memory = job_memory(SIZE, 0);
		check_ok(aclrtIpcMemGetExportKey(memory, SIZE, shared->memory_key, 65, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
		job_meet();
	} else {
		job_meet();
		check_ok(aclrtIpcMemImportByKey((void **)&memory, shared->memory_key, 0));
	}
	seen = job_memory(ROUNDS, 0);
	for (int round = 0; round < ROUNDS; round++) {
		size_t size = round % 8 ? 64 : SIZE;

		if (index == 0) {
			check_ok(aclrtMemsetAsync(memory, SIZE, round, size, NULL));
			check_ok(aclrtRecordNotify(other, NULL));
			check_ok(aclrtWaitAndResetNotify(own, NULL, 60));
			check_ok(aclrtMemcpyAsync(seen + round, 1, memory + size - 1, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
		} else {
			check_ok(aclrtWaitAndResetNotify(own, NULL, 60));
			check_ok(aclrtMemcpyAsync(seen + round, 1, memory + size - 1, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
			check_ok(aclrtMemsetAsync(memory, SIZE, round + 100, size, NULL));
			check_ok(aclrtRecordNotify(other, NULL));
		}
	}
	check_ok(aclrtSynchronizeStream(NULL));
	for (int round = 0; round < ROUNDS; round++)
		check_eq_uint(seen[round], (unsigned char)(index ? round : round + 100));
	check_ok(aclrtDestroyNotify(other));
	job_meet();
	check_ok(aclrtDestroyNotify(own));
}

TEST(acl_two_processes_take_turns_by_notifies)
{
	run(2, in_turns);
}

/* An import that is destroyed with its tasks queued: they are done. */
static _Atomic int may_go;

static void hold(void *arg)
{
	while (!atomic_load(&may_go))
		usleep(1000);
}

static void destroyed_import(uint32_t index, HcclRootInfo *unused)
{
	aclrtNotify own, other;

	exchange(index, &own, &other);
	if (index == 0) {
		check_ok(aclrtLaunchHostFunc(NULL, hold, NULL));
		check_ok(aclrtRecordNotify(other, NULL));
		check_ok(aclrtDestroyNotify(other));
		check_fails(aclrtRecordNotify(other, NULL), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
		atomic_store(&may_go, 1);
		check_ok(aclrtSynchronizeStream(NULL));
		/* given back by now */
		check_ok(aclrtNotifyImportByKey(&other, shared->key[1], 0));
		check_ok(aclrtDestroyNotify(other));
	} else {
		check_ok(aclrtWaitAndResetNotify(own, NULL, 60));
		check_ok(aclrtSynchronizeStream(NULL));
	}
	job_meet();
}

TEST(acl_queued_tasks_of_a_destroyed_import_are_done)
{
	run(2, destroyed_import);
}

/* ---- who may ---- */

static void white_list(uint32_t index, HcclRootInfo *unused)
{
	aclrtNotify notify;
	int32_t pid;

	check_ok(aclrtSetDevice(0));
	atomic_store(&shared->pid[index], getpid());
	if (index == 0) {
		check_ok(aclrtCreateNotify(&notify, 0));
		check_ok(aclrtNotifyGetExportKey(notify, shared->key[0], 65, ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT));
		job_meet();
		job_meet();
		pid = atomic_load(&shared->pid[1]);
		check_ok(aclrtNotifySetImportPid(notify, &pid, 1));
		job_meet();
		check_ok(aclrtWaitAndResetNotify(notify, NULL, 60));
		check_ok(aclrtSynchronizeStream(NULL));
		job_meet();
		return;
	}
	job_meet();
	check_fails(aclrtNotifyImportByKey(&notify, shared->key[0], 0), ACL_ERROR_RT_NO_PERMISSION, "aclrtNotifySetImportPid");
	job_meet();
	job_meet();
	check_ok(aclrtNotifyImportByKey(&notify, shared->key[0], 0));
	check_ok(aclrtRecordNotify(notify, NULL));
	check_ok(aclrtSynchronizeStream(NULL));
	job_meet();
}

TEST(acl_a_notify_is_for_the_processes_that_are_named)
{
	run(2, white_list);
}

/* ---- at once ---- */

static void wakes(uint32_t index, HcclRootInfo *unused)
{
	aclrtNotify own, other;
	uint64_t late_ns = 0;

	exchange(index, &own, &other);
	for (int i = 0; i < 10; i++) {
		if (index == 0) {
			/* the other sleeps by now, and so does the engine */
			usleep(150000);
			atomic_store(&shared->recorded_ns, now_ns());
			check_ok(aclrtRecordNotify(other, NULL));
			check_ok(aclrtWaitAndResetNotify(own, NULL, 60));
			check_ok(aclrtSynchronizeStream(NULL));
		} else {
			check_ok(aclrtWaitAndResetNotify(own, NULL, 60));
			check_ok(aclrtSynchronizeStream(NULL));
			late_ns += now_ns() - atomic_load(&shared->recorded_ns);
			check_ok(aclrtRecordNotify(other, NULL));
			check_ok(aclrtSynchronizeStream(NULL));
		}
	}
	/* a heartbeat of the engine would be 50 ms each in the mean */
	check_lt_uint(late_ns / 10, 25000000 * test_timeout_scale());
	job_meet();
}

TEST(acl_a_record_wakes_the_other_process_at_once)
{
	run(2, wakes);
}

/* ---- one ends ---- */

static void owner_dies(uint32_t index, HcclRootInfo *unused)
{
	aclrtNotify own, other;
	aclrtStream stream;

	exchange(index, &own, &other);
	job_meet();
	if (index == 0) {
		job_expect_kill();
		await(1);
		usleep(100000);
		raise(SIGKILL);
	}
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtWaitAndResetNotify(other, stream, 0));
	atomic_store(&shared->step, 1);
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, "has ended (killed by signal 9)");
	check_fails(aclrtRecordNotify(other, stream), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, ", which has ended (killed by signal 9)");
	check_fails(aclrtWaitAndResetNotify(other, stream, 0), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, ", which has ended (killed by signal 9)");
	check_ok(aclrtDestroyNotify(other));
	/* what this process has goes on */
	check_ok(aclrtRecordNotify(own, stream));
	check_ok(aclrtWaitAndResetNotify(own, stream, 60));
	check_ok(aclrtSynchronizeStream(stream));
}

TEST(acl_who_waits_for_a_dead_process_is_told)
{
	run(2, owner_dies);
}

static void owner_destroys(uint32_t index, HcclRootInfo *unused)
{
	aclrtNotify own, other;

	exchange(index, &own, &other);
	job_meet();
	if (index == 0) {
		await(1);
		usleep(100000);
		check_ok(aclrtDestroyNotify(own));
		await(2);
		check_ok(aclrtResetDevice(0));
		job_meet();
		return;
	}
	check_ok(aclrtWaitAndResetNotify(other, NULL, 0));
	atomic_store(&shared->step, 1);
	check_fails(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, "has destroyed it");
	check_fails(aclrtRecordNotify(other, NULL), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, ", which has destroyed it");
	atomic_store(&shared->step, 2);
	job_meet();
}

TEST(acl_who_waits_for_a_destroyed_notify_is_told)
{
	run(2, owner_destroys);
}

/* ---- all of them ---- */

static void check_refused(int r)
{
	const char *text = aclGetRecentErrMsg();
	char limit[64];

	check_eq_int(r, ACL_ERROR_RT_NO_NOTIFY_RESOURCE);
	check_ptr(text);
	snprintf(limit, sizeof(limit), "device 3: %u of %u notifies used, 1 asked", BUDGET, BUDGET);
	check_str_contains(text, limit);
	check_str_contains(text, "(EI0007)");
	check_str_contains(text, "held by pid ");
	check_str_contains(text, "raise [devices] notifies_per_device");
}

/* Until the device has no more. */
static void take(uint32_t index)
{
	aclrtNotify notify;
	int r;

	while ((r = aclrtCreateNotify(&notify, 0)) == 0)
		atomic_fetch_add(&shared->taken[index], 1);
	check_refused(r);
}

/* When they have ended all is there again. */
static void take_all_back(void)
{
	aclrtNotify notify;
	uint32_t count = 0;

	for (unsigned int tries = 0; count < BUDGET; tries++) {
		check_lt_uint(tries, 20000 * test_timeout_scale());
		if (aclrtCreateNotify(&notify, 0) == 0)
			count++;
		else
			usleep(1000);
	}
	check_refused(aclrtCreateNotify(&notify, 0));
}

static void taker(uint32_t index, HcclRootInfo *unused)
{
	uint32_t sum = 0;

	check_ok(aclrtSetDevice(3));
	job_meet();
	if (index) {
		take(index);
		atomic_fetch_add(&shared->step, 1);
		await(TAKERS + 1);
		/* half of them end well */
		if (index % 2 == 0)
			return;
		job_expect_kill();
		raise(SIGKILL);
	}
	await(TAKERS);
	for (uint32_t i = 1; i <= TAKERS; i++)
		sum += atomic_load(&shared->taken[i]);
	check_eq_uint(sum, BUDGET);
	atomic_store(&shared->step, TAKERS + 1);
	take_all_back();
}

TEST_TIMEOUT(acl_twenty_processes_share_what_a_device_has, 60)
{
	static const char *const options[] = { "--notifies-per-device", "300", "--log-level", "error", NULL };

	job_set_options(options);
	run(TAKERS + 1, taker);
}
