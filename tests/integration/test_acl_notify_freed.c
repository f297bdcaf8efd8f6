/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies that are destroyed while records of them and waits for them are queued: what can still be recorded is, and no wait stays for ever. */
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

#define FREED 107022
#define LONG_MS 30000
#define SHORT_MS 300 /* the daemon looks every 50 */

/* Each case is a process of its own. */
static aclrtNotify notify;
static aclrtCntNotify counter;
static aclrtStream recorder, first, second;
static char freed[64]; /* the text of an error */
static _Atomic int may_go;

static void hold(void *arg)
{
	while (!atomic_load(&may_go))
		usleep(1000);
}

static void begin(void)
{
	uint32_t id;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&recorder));
	check_ok(aclrtCreateStream(&first));
	check_ok(aclrtCreateStream(&second));
	check_ok(aclrtCreateNotify(&notify, 0));
	check_ok(aclrtCntNotifyCreate(&counter, 0));
	check_ok(aclrtGetNotifyId(notify, &id));
	snprintf(freed, sizeof(freed), "notify %u was freed", id);
}

static void add(aclrtStream stream, uint32_t value)
{
	aclrtCntNotifyRecordInfo info = { ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, value };

	check_ok(aclrtCntNotifyRecord(counter, stream, &info));
}

static void await_count(aclrtStream stream, uint32_t value, bool clears)
{
	aclrtCntNotifyWaitInfo info = { .mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, .value = value, .isClear = clears };

	check_ok(aclrtCntNotifyWaitWithTimeout(counter, stream, &info));
}

static void still_waits(aclrtStream stream)
{
	check_fails(aclrtSynchronizeStreamWithTimeout(stream, SHORT_MS), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, NULL);
}

static void check_freed(aclrtStream stream)
{
	check_fails(aclrtSynchronizeStreamWithTimeout(stream, LONG_MS), FREED, freed);
}

/* ---- one record, two waits ---- */

static void two_waits(void)
{
	aclError r[2];

	begin();
	check_ok(aclrtLaunchHostFunc(recorder, hold, NULL));
	check_ok(aclrtRecordNotify(notify, recorder));
	check_ok(aclrtWaitAndResetNotify(notify, first, 0));
	check_ok(aclrtWaitAndResetNotify(notify, second, 0));
	check_ok(aclrtDestroyNotify(notify));
	still_waits(first);
	still_waits(second);
	atomic_store(&may_go, 1);
	r[0] = aclrtSynchronizeStreamWithTimeout(first, LONG_MS);
	r[1] = aclrtSynchronizeStreamWithTimeout(second, LONG_MS);
	check_eq_int(r[0] + r[1], FREED);
	check(r[0] == ACL_SUCCESS || r[1] == ACL_SUCCESS);
	check_ok(aclrtSynchronizeStream(recorder));
}

TEST(a_wait_that_the_last_record_of_a_destroyed_notify_is_not_for_ends)
{
	job_run(two_waits);
}

static void two_counts(void)
{
	uint32_t id;

	begin();
	check_ok(aclrtCntNotifyGetId(counter, &id));
	snprintf(freed, sizeof(freed), "notify %u was freed", id);
	check_ok(aclrtLaunchHostFunc(recorder, hold, NULL));
	add(recorder, 1);
	await_count(first, 1, false);
	await_count(second, 2, false);
	check_ok(aclrtCntNotifyDestroy(counter));
	still_waits(first);
	still_waits(second);
	atomic_store(&may_go, 1);
	check_ok(aclrtSynchronizeStreamWithTimeout(first, LONG_MS));
	check_freed(second);
}

TEST(a_wait_for_a_count_that_a_destroyed_notify_never_gets_ends)
{
	job_run(two_counts);
}

/* A wait that clears it changes it, too. */
static void cleared_later(void)
{
	begin();
	add(recorder, 1);
	check_ok(aclrtSynchronizeStream(recorder));
	check_ok(aclrtLaunchHostFunc(recorder, hold, NULL));
	await_count(recorder, 1, true);
	await_count(first, 0, false);
	check_ok(aclrtCntNotifyDestroy(counter));
	still_waits(first);
	atomic_store(&may_go, 1);
	check_ok(aclrtSynchronizeStreamWithTimeout(first, LONG_MS));
	check_ok(aclrtSynchronizeStreamWithTimeout(recorder, LONG_MS));
}

TEST(a_wait_that_clears_a_destroyed_counting_notify_is_waited_for)
{
	job_run(cleared_later);
}

/* ---- records that cannot come ---- */

static void behind_the_wait(void)
{
	begin();
	check_ok(aclrtWaitAndResetNotify(notify, first, 0));
	check_ok(aclrtRecordNotify(notify, first));
	check_ok(aclrtDestroyNotify(notify));
	check_freed(first);
	/* the stream has gone on */
	check_ok(aclrtSynchronizeStream(first));
}

TEST(a_record_behind_the_wait_does_not_keep_it)
{
	job_run(behind_the_wait);
}

static void abort_it(void)
{
	check_ok(aclrtStreamAbort(recorder));
}

static void destroy_it(void)
{
	check_ok(aclrtDestroyStreamForce(recorder));
}

static void taken_away(void (*end)(void))
{
	aclrtEvent never;

	begin();
	check_ok(aclrtCreateEvent(&never));
	check_ok(aclrtStreamWaitEvent(recorder, never));
	check_ok(aclrtRecordNotify(notify, recorder));
	check_ok(aclrtWaitAndResetNotify(notify, first, 0));
	check_ok(aclrtDestroyNotify(notify));
	still_waits(first);
	end();
	check_freed(first);
}

static void aborted(void)
{
	taken_away(abort_it);
}

static void destroyed(void)
{
	taken_away(destroy_it);
}

TEST(a_record_of_a_destroyed_notify_that_is_aborted_ends_the_wait)
{
	job_run(aborted);
}

TEST(a_record_of_a_destroyed_notify_whose_stream_ends_ends_the_wait)
{
	job_run(destroyed);
}

/* ---- in memory that processes share ---- */

static struct shared {
	char key[65];
	_Atomic int step;
} *shared;

static void shared_make(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED);
}

static void await(int step)
{
	while (atomic_load(&shared->step) < step)
		usleep(500);
}

/* Who would record it is another process: its record goes with the notify. */
static void recorded_by_another(uint32_t index, HcclRootInfo *unused)
{
	if (index == 0) {
		begin();
		check_ok(aclrtNotifyGetExportKey(notify, shared->key, 65, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
		job_meet();
		await(1);
		check_ok(aclrtWaitAndResetNotify(notify, first, 0));
		check_ok(aclrtWaitAndResetNotify(notify, second, 0));
		check_ok(aclrtDestroyNotify(notify));
		check_freed(first);
		check_freed(second);
		atomic_store(&shared->step, 2);
		job_meet();
		return;
	}
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&recorder));
	job_meet();
	check_ok(aclrtNotifyImportByKey(&notify, shared->key, 0));
	check_ok(aclrtLaunchHostFunc(recorder, hold, NULL));
	check_ok(aclrtRecordNotify(notify, recorder));
	atomic_store(&shared->step, 1);
	await(2);
	atomic_store(&may_go, 1);
	check_fails(aclrtSynchronizeStreamWithTimeout(recorder, LONG_MS), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, "notify");
	job_meet();
}

TEST(a_record_by_another_process_goes_with_a_destroyed_notify)
{
	shared_make();
	job_run_processes(2, recorded_by_another);
}

/* ---- on two devices: the streams of both are looked at for the notifies of both ---- */

static void of_two_devices(void)
{
	aclrtStream others;
	aclrtNotify other;

	begin();
	check_ok(aclrtSetDevice(1));
	check_ok(aclrtCreateStream(&others));
	check_ok(aclrtCreateNotify(&other, 0));
	check_ok(aclrtWaitAndResetNotify(other, others, 0));
	check_ok(aclrtLaunchHostFunc(recorder, hold, NULL));
	check_ok(aclrtRecordNotify(notify, recorder));
	check_ok(aclrtWaitAndResetNotify(notify, first, 0));
	check_ok(aclrtDestroyNotify(other));
	check_ok(aclrtDestroyNotify(notify));
	/* one look decides both */
	check_fails(aclrtSynchronizeStreamWithTimeout(others, LONG_MS), FREED, " was freed");
	still_waits(first);
	atomic_store(&may_go, 1);
	check_ok(aclrtSynchronizeStreamWithTimeout(first, LONG_MS));
	check_ok(aclrtSynchronizeStream(recorder));
}

TEST(destroyed_notifies_of_two_devices_are_told_apart)
{
	job_run(of_two_devices);
}

/* ---- the daemon is killed in between ---- */

static void survivor(void)
{
	begin();
	check_ok(aclrtLaunchHostFunc(recorder, hold, NULL));
	check_ok(aclrtRecordNotify(notify, recorder));
	check_ok(aclrtWaitAndResetNotify(notify, first, 0));
	check_ok(aclrtWaitAndResetNotify(notify, first, 0));
	check_ok(aclrtDestroyNotify(notify));
	atomic_store(&shared->step, 1);
	await(2);
	still_waits(first);
	atomic_store(&may_go, 1);
	check_freed(first);
	check_ok(aclrtSynchronizeStream(recorder));
}

TEST_TIMEOUT(waits_for_a_destroyed_notify_end_after_a_restart, 60)
{
	const char *options[] = { "--keeper", "--log-level", "error", NULL };
	struct private_daemon daemon;
	int status;
	pid_t pid;

	shared_make();
	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	fflush(NULL);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		survivor();
		_exit(0);
	}
	await(1);
	worker_kill(daemon.pid);
	atomic_store(&shared->step, 2);
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	check_eq_int(private_daemon_stop(&daemon), 0);
}
