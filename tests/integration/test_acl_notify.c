/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies of one process, through the public functions. Between processes: test_acl_notify_share.c. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/job.h"

#define LARGE (4u << 20)
#define NEVER UINT32_MAX

/* ---- what each function answers ---- */

static void wrong_plain(void)
{
	aclrtNotify notify, other, few[3];
	aclrtCntNotify counting;
	aclrtStream stream;
	char key[65];
	uint32_t id;
	int32_t pid = getpid(), nobody = -1;

	check_fails(aclrtCreateNotify(NULL, 0), ACL_ERROR_INVALID_PARAM, "notify is NULL");
	check_fails(aclrtCreateNotify(&notify, 0), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_fails(aclrtCreateNotify(&notify, 2), ACL_ERROR_RT_PARAM_INVALID, "flag is 2");
	check_ok(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
	check_ok(aclrtCreateNotify(&other, ACL_NOTIFY_DEVICE_USE_ONLY));
	check_ok(aclrtCntNotifyCreate(&counting, ACL_NOTIFY_DEFAULT));
	check_fails(aclrtGetNotifyId(notify, NULL), ACL_ERROR_INVALID_PARAM, "notifyId is NULL");
	check_fails(aclrtGetNotifyId(NULL, &id), ACL_ERROR_INVALID_PARAM, "notify is NULL");
	check_fails(aclrtGetNotifyId((char *)notify + 1, &id), ACL_ERROR_RT_INVALID_HANDLE, "no notify of this process");
	check_fails(aclrtGetNotifyId(counting, &id), ACL_ERROR_RT_INVALID_HANDLE, "other kind");
	check_fails(aclrtRecordNotify(NULL, stream), ACL_ERROR_INVALID_PARAM, "notify is NULL");
	check_fails(aclrtRecordNotify(stream, stream), ACL_ERROR_RT_INVALID_HANDLE, "no notify");
	check_fails(aclrtRecordNotify(counting, stream), ACL_ERROR_RT_INVALID_HANDLE, "other kind");
	check_fails(aclrtRecordNotify(notify, notify), ACL_ERROR_RT_INVALID_HANDLE, "no stream");
	check_fails(aclrtWaitAndResetNotify(NULL, stream, 0), ACL_ERROR_INVALID_PARAM, "notify is NULL");
	check_fails(aclrtWaitAndResetNotify(stream, stream, 0), ACL_ERROR_RT_INVALID_HANDLE, "no notify");
	check_fails(aclrtWaitAndResetNotify(notify, notify, 0), ACL_ERROR_RT_INVALID_HANDLE, "no stream");
	few[0] = notify;
	few[1] = counting;
	few[2] = NULL;
	check_fails(aclrtNotifyBatchReset(NULL, 1), ACL_ERROR_INVALID_PARAM, "notifies is NULL");
	check_fails(aclrtNotifyBatchReset(few, 0), ACL_ERROR_RT_PARAM_INVALID, "num is 0");
	check_fails(aclrtNotifyBatchReset(few, 65537), ACL_ERROR_RT_PARAM_INVALID, "num is 65537");
	check_fails(aclrtNotifyBatchReset(few, 3), ACL_ERROR_INVALID_PARAM, "notifies[2] is NULL");
	check_fails(aclrtNotifyBatchReset(few, 2), ACL_ERROR_RT_INVALID_HANDLE, "other kind");
	check_fails(aclrtNotifyGetExportKey(NULL, key, 65, 0), ACL_ERROR_INVALID_PARAM, "notify is NULL");
	check_fails(aclrtNotifyGetExportKey(notify, NULL, 65, 0), ACL_ERROR_INVALID_PARAM, "key is NULL");
	check_fails(aclrtNotifyGetExportKey(notify, key, 64, 0), ACL_ERROR_RT_PARAM_INVALID, "len is 64");
	check_fails(aclrtNotifyGetExportKey(notify, key, 65, 1), ACL_ERROR_RT_PARAM_INVALID, "flags is 1");
	check_fails(aclrtNotifySetImportPid(NULL, &pid, 1), ACL_ERROR_INVALID_PARAM, "notify is NULL");
	check_fails(aclrtNotifySetImportPid(notify, NULL, 1), ACL_ERROR_INVALID_PARAM, "pid is NULL");
	check_fails(aclrtNotifySetImportPid(notify, &pid, 0), ACL_ERROR_RT_PARAM_INVALID, "num is 0");
	check_fails(aclrtNotifySetImportPid(notify, &pid, 1), ACL_ERROR_RT_PARAM_INVALID, "aclrtNotifyGetExportKey");
	check_ok(aclrtNotifyGetExportKey(notify, key, 65, 0));
	check_fails(aclrtNotifySetImportPid(notify, &nobody, 1), ACL_ERROR_RT_PARAM_INVALID, "pid[0] is -1");
	check_fails(aclrtDestroyNotify(NULL), ACL_ERROR_INVALID_PARAM, "notify is NULL");
	check_fails(aclrtDestroyNotify(counting), ACL_ERROR_RT_INVALID_HANDLE, "other kind");
	check_ok(aclrtDestroyNotify(notify));
	check_fails(aclrtDestroyNotify(notify), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
	check_fails(aclrtRecordNotify(notify, stream), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
	/* those of a device that is reset end with it */
	check_ok(aclrtResetDevice(0));
	check_fails(aclrtRecordNotify(other, NULL), ACL_ERROR_RT_INVALID_HANDLE, "reset");
	check_ok(aclrtGetNotifyId(other, &id));
	check_ok(aclrtDestroyNotify(other));
	check_ok(aclrtCntNotifyDestroy(counting));
}

TEST(acl_notifies_have_the_codes_of_cann)
{
	job_run(wrong_plain);
}

static void wrong_imports(void)
{
	static const char unknown[] = "00000000000000000000000000000000000000000000000000000000000000ff";
	aclrtNotify notify, import;
	char key[65], again[65], memory_key[65];
	void *memory;

	check_fails(aclrtNotifyImportByKey(&import, unknown, 0), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetDevice(0));
	memory = job_memory(4096, 0);
	check_ok(aclrtCreateNotify(&notify, 0));
	check_ok(aclrtNotifyGetExportKey(notify, key, 65, 0));
	check_eq_uint(strlen(key), 64);
	check_ok(aclrtNotifyGetExportKey(notify, again, 65, 0));
	check_eq_str(key, again);
	check_ok(aclrtNotifyGetExportKey(notify, again, 65, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
	check_ne_str(key, again);
	check_fails(aclrtNotifyImportByKey(NULL, key, 0), ACL_ERROR_INVALID_PARAM, "notify is NULL");
	check_fails(aclrtNotifyImportByKey(&import, NULL, 0), ACL_ERROR_INVALID_PARAM, "key is NULL");
	check_fails(aclrtNotifyImportByKey(&import, key, 1), ACL_ERROR_RT_PARAM_INVALID, "flags is 1");
	check_fails(aclrtNotifyImportByKey(&import, "abc", 0), ACL_ERROR_RT_PARAM_INVALID, "aclrtNotifyGetExportKey");
	check_fails(aclrtNotifyImportByKey(&import, unknown, 0), ACL_ERROR_RT_INVALID_HANDLE, "nothing is exported under this key: it is mistyped, or the exporter has");
	/* keys of the one are none of the other */
	check_ok(aclrtIpcMemGetExportKey(memory, 4096, memory_key, 65, 0));
	check_fails(aclrtNotifyImportByKey(&import, memory_key, 0), ACL_ERROR_RT_PARAM_INVALID, "aclrtIpcMemImportByKey");
	check_fails(aclrtIpcMemImportByKey(&memory, key, 0), ACL_ERROR_RT_PARAM_INVALID, "aclrtNotifyImportByKey");
	check_ok(aclrtNotifyImportByKey(&import, key, ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS));
	/* what was imported is its owner's to share and to reset */
	check_fails(aclrtNotifyGetExportKey(import, again, 65, 0), ACL_ERROR_RT_PARAM_INVALID, "imported");
	check_fails(aclrtNotifyBatchReset(&import, 1), ACL_ERROR_RT_PARAM_INVALID, "imported");
	check_ok(aclrtDestroyNotify(notify));
	check_fails(aclrtRecordNotify(import, NULL), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, ", which has destroyed it");
	check_fails(aclrtWaitAndResetNotify(import, NULL, 0), ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, ", which has destroyed it");
	check_fails(aclrtNotifyImportByKey(&notify, key, 0), ACL_ERROR_RT_INVALID_HANDLE, "key");
	check_ok(aclrtDestroyNotify(import));
}

TEST(acl_imports_of_notifies_have_the_codes_of_cann)
{
	job_run(wrong_imports);
}

static void wrong_counting(void)
{
	aclrtCntNotifyRecordInfo record = { ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1 };
	aclrtCntNotifyWaitInfo wait = { .mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE };
	aclrtCntNotify counting;
	aclrtNotify plain;
	aclrtStream stream;
	uint32_t id;

	check_fails(aclrtCntNotifyCreate(NULL, 0), ACL_ERROR_INVALID_PARAM, "cntNotify is NULL");
	check_fails(aclrtCntNotifyCreate(&counting, 0), ACL_ERROR_RT_CONTEXT_NULL, NULL);
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_fails(aclrtCntNotifyCreate(&counting, 7), ACL_ERROR_RT_PARAM_INVALID, "flag is 7");
	check_ok(aclrtCntNotifyCreate(&counting, 0));
	check_ok(aclrtCreateNotify(&plain, 0));
	check_fails(aclrtCntNotifyRecord(NULL, stream, &record), ACL_ERROR_INVALID_PARAM, "cntNotify is NULL");
	check_fails(aclrtCntNotifyRecord(counting, stream, NULL), ACL_ERROR_INVALID_PARAM, "info is NULL");
	check_fails(aclrtCntNotifyRecord(plain, stream, &record), ACL_ERROR_RT_INVALID_HANDLE, "other kind");
	check_fails(aclrtCntNotifyRecord(counting, plain, &record), ACL_ERROR_RT_INVALID_HANDLE, "no stream");
	record.mode = (aclrtCntNotifyRecordMode)3;
	check_fails(aclrtCntNotifyRecord(counting, stream, &record), ACL_ERROR_RT_PARAM_INVALID, "info->mode is 3");
	check_fails(aclrtCntNotifyWaitWithTimeout(NULL, stream, &wait), ACL_ERROR_INVALID_PARAM, "cntNotify is NULL");
	check_fails(aclrtCntNotifyWaitWithTimeout(counting, stream, NULL), ACL_ERROR_INVALID_PARAM, "info is NULL");
	check_fails(aclrtCntNotifyWaitWithTimeout(plain, stream, &wait), ACL_ERROR_RT_INVALID_HANDLE, "other kind");
	wait.isClear = 2;
	check_fails(aclrtCntNotifyWaitWithTimeout(counting, stream, &wait), ACL_ERROR_RT_PARAM_INVALID, "isClear is 2");
	wait.isClear = 0;
	wait.mode = (aclrtCntNotifyWaitMode)5;
	check_fails(aclrtCntNotifyWaitWithTimeout(counting, stream, &wait), ACL_ERROR_RT_PARAM_INVALID, "info->mode is 5");
	check_fails(aclrtCntNotifyReset(NULL, stream), ACL_ERROR_INVALID_PARAM, "cntNotify is NULL");
	check_fails(aclrtCntNotifyReset(plain, stream), ACL_ERROR_RT_INVALID_HANDLE, "other kind");
	check_fails(aclrtCntNotifyGetId(NULL, &id), ACL_ERROR_INVALID_PARAM, "cntNotify is NULL");
	check_fails(aclrtCntNotifyGetId(counting, NULL), ACL_ERROR_INVALID_PARAM, "notifyId is NULL");
	check_ok(aclrtCntNotifyGetId(counting, &id));
	check_fails(aclrtCntNotifyDestroy(NULL), ACL_ERROR_INVALID_PARAM, "cntNotify is NULL");
	check_fails(aclrtCntNotifyDestroy(plain), ACL_ERROR_RT_INVALID_HANDLE, "other kind");
	check_ok(aclrtCntNotifyDestroy(counting));
	check_fails(aclrtCntNotifyDestroy(counting), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
	check_ok(aclrtDestroyNotify(plain));
}

TEST(acl_counting_notifies_have_the_codes_of_cann)
{
	job_run(wrong_counting);
}

/* ---- what they do ---- */

/* Two streams of two devices hand a block of memory to each other. */
static void hand_over(void)
{
	aclrtStream first, second;
	aclrtNotify there, back;
	unsigned char *memory;

	check_ok(aclrtSetDevice(1));
	check_ok(aclrtCreateStream(&second));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&first));
	memory = job_memory(2 * LARGE, 0);
	check_ok(aclrtCreateNotify(&there, 0));
	check_ok(aclrtCreateNotify(&back, 0));
	for (int round = 1; round <= 100; round++) {
		size_t size = round % 10 ? 100 : LARGE;

		if (round > 1)
			check_ok(aclrtWaitAndResetNotify(back, first, 0));
		check_ok(aclrtMemsetAsync(memory, LARGE, round, size, first));
		check_ok(aclrtRecordNotify(there, first));
		check_ok(aclrtWaitAndResetNotify(there, second, NEVER));
		check_ok(aclrtMemcpyAsync(memory + LARGE, LARGE, memory, size, ACL_MEMCPY_DEVICE_TO_DEVICE, second));
		check_ok(aclrtRecordNotify(back, second));
		if (round % 20)
			continue;
		check_ok(aclrtSynchronizeStream(second));
		check_eq_int(memory[LARGE], round);
		check_eq_int(memory[LARGE + size - 1], round);
	}
	check_ok(aclrtSynchronizeStream(first));
	check_ok(aclrtDestroyNotify(there));
	check_ok(aclrtDestroyNotify(back));
}

TEST(acl_streams_hand_memory_over_by_notifies)
{
	job_run(hand_over);
}

static void times_out(aclrtNotify notify, aclrtStream stream)
{
	check_ok(aclrtWaitAndResetNotify(notify, stream, 1));
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, "notify");
}

static void one_record_one_wait(void)
{
	aclrtNotify notify, more[2];
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtCreateNotify(&notify, 0));
	/* recorded twice before anybody waits: once */
	check_ok(aclrtRecordNotify(notify, stream));
	check_ok(aclrtRecordNotify(notify, stream));
	check_ok(aclrtWaitAndResetNotify(notify, stream, 1));
	check_ok(aclrtSynchronizeStream(stream));
	times_out(notify, stream);
	/* the stream goes on afterwards */
	check_ok(aclrtRecordNotify(notify, stream));
	check_ok(aclrtSynchronizeStream(stream));
	for (int i = 0; i < 2; i++) {
		check_ok(aclrtCreateNotify(&more[i], 0));
		check_ok(aclrtRecordNotify(more[i], stream));
	}
	check_ok(aclrtSynchronizeStream(stream));
	check_ok(aclrtNotifyBatchReset(more, 2));
	times_out(more[1], stream);
	check_ok(aclrtWaitAndResetNotify(notify, stream, 1));
	check_ok(aclrtSynchronizeStream(stream));
	check_ok(aclrtDestroyNotify(notify));
	check_ok(aclrtDestroyNotify(more[0]));
	check_ok(aclrtDestroyNotify(more[1]));
}

TEST(acl_a_wait_takes_a_record_and_times_out_in_seconds)
{
	job_run(one_record_one_wait);
}

/* Destroyed with its tasks queued: they are done, and the number's next owner is not touched. */
static _Atomic int may_go;

static void hold(void *arg)
{
	while (!atomic_load(&may_go))
		usleep(1000);
}

static void destroy_queued(void)
{
	aclrtNotify notify, next[4];
	aclrtStream stream, other;
	uint32_t id, ids[4];

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtCreateStream(&other));
	check_ok(aclrtCreateNotify(&notify, 0));
	check_ok(aclrtGetNotifyId(notify, &id));
	check_ok(aclrtLaunchHostFunc(stream, hold, NULL));
	check_ok(aclrtRecordNotify(notify, stream));
	check_ok(aclrtWaitAndResetNotify(notify, other, 0));
	check_ok(aclrtDestroyNotify(notify));
	for (int i = 0; i < 4; i++) {
		check_ok(aclrtCreateNotify(&next[i], 0));
		check_ok(aclrtGetNotifyId(next[i], &ids[i]));
		check_ne_uint(ids[i], id);
	}
	atomic_store(&may_go, 1);
	check_ok(aclrtSynchronizeStream(other));
	check_ok(aclrtSynchronizeStream(stream));
	check_ok(aclrtCreateNotify(&notify, 0));
	check_ok(aclrtGetNotifyId(notify, ids));
	check_eq_uint(ids[0], id);
	times_out(notify, stream);
	times_out(next[0], stream);
}

TEST(acl_queued_tasks_of_a_destroyed_notify_are_done)
{
	job_run(destroy_queued);
}

/* No record is queued that a wait could be for: it ends, whether the stream has come to it already or not. */
static void destroy_awaited(void)
{
	aclrtNotify notify, other;
	aclrtStream stream;
	char text[64];
	uint32_t id;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtCreateNotify(&other, 0));
	for (int i = 0; i < 20; i++) {
		check_ok(aclrtCreateNotify(&notify, 0));
		check_ok(aclrtGetNotifyId(notify, &id));
		snprintf(text, sizeof(text), "notify %u was freed", id);
		check_ok(aclrtWaitAndResetNotify(notify, stream, 0));
		check_ok(aclrtRecordNotify(other, stream));
		usleep(i % 2 ? 5000 : 0);
		check_ok(aclrtDestroyNotify(notify));
		check_fails(aclrtSynchronizeStreamWithTimeout(stream, 20000), 107022, text);
		/* the stream has gone on */
		check_ok(aclrtWaitAndResetNotify(other, stream, 10));
		check_ok(aclrtSynchronizeStream(stream));
	}
}

TEST(acl_a_wait_for_a_destroyed_notify_ends)
{
	job_run(destroy_awaited);
}

/* 10,000 come and go: the number is always the same, so nothing is left of them. */
static void many(void)
{
	aclrtNotify notify;
	uint32_t id, first;

	check_ok(aclrtSetDevice(0));
	for (uint32_t i = 0; i < 10000; i++) {
		check_ok(aclrtCreateNotify(&notify, 0));
		check_ok(aclrtGetNotifyId(notify, &id));
		if (!i)
			first = id;
		check_eq_uint(id, first);
		if (i % 16 == 0) {
			check_ok(aclrtRecordNotify(notify, NULL));
			check_ok(aclrtSynchronizeStream(NULL));
		}
		check_ok(aclrtDestroyNotify(notify));
	}
}

TEST(acl_notifies_come_and_go)
{
	job_run(many);
}

/* ---- counting ---- */

static aclrtCntNotify counter;
static aclrtStream recorder, waiter;

static void record(aclrtCntNotifyRecordMode mode, uint32_t value)
{
	aclrtCntNotifyRecordInfo info = { mode, value };

	check_ok(aclrtCntNotifyRecord(counter, recorder, &info));
}

static void await(aclrtCntNotifyWaitMode mode, uint32_t value, bool clears)
{
	aclrtCntNotifyWaitInfo info = { .mode = mode, .value = value, .timeout = 20, .isClear = clears };

	check_ok(aclrtCntNotifyWaitWithTimeout(counter, waiter, &info));
	check_ok(aclrtSynchronizeStream(waiter));
}

static void await_in_vain(aclrtCntNotifyWaitMode mode, uint32_t value)
{
	aclrtCntNotifyWaitInfo info = { .mode = mode, .value = value, .timeout = 1 };

	check_ok(aclrtCntNotifyWaitWithTimeout(counter, waiter, &info));
	check_fails(aclrtSynchronizeStream(waiter), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, NULL);
}

static void modes(void)
{
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&recorder));
	check_ok(aclrtCreateStream(&waiter));
	check_ok(aclrtCntNotifyCreate(&counter, 0));
	await(ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE, 1, false);
	record(ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 0x10);
	await(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 0x10, false);
	record(ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 0xfffffff8);
	await(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 0x8, false);
	record(ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE, 0x30);
	await(ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE, 0x37, false);
	await(ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE, 0x38, false);
	await(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE, 0x28, false);
	record(ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE, 0xf0);
	await(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 0x30, false);
	await_in_vain(ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE, 0x30);
	await_in_vain(ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE, 0x30);
	await_in_vain(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE, 0x31);
	/* taken, hence 0 */
	await(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 0x30, true);
	await(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 0, false);
	record(ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 7);
	check_ok(aclrtCntNotifyReset(counter, recorder));
	check_ok(aclrtSynchronizeStream(recorder));
	await(ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE, 1, false);
	check_ok(aclrtCntNotifyDestroy(counter));
}

TEST(acl_counting_notifies_know_all_modes)
{
	job_run(modes);
}

/* Many threads add, each in its stream; one waits for all of it, before and after. */
static void *add(void *arg)
{
	aclrtCntNotifyRecordInfo info = { ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 3 };
	aclrtStream stream;

	check_ok(aclrtSetDevice((int32_t)(intptr_t)arg % 2));
	check_ok(aclrtCreateStream(&stream));
	for (int i = 0; i < 500; i++)
		check_ok(aclrtCntNotifyRecord(counter, stream, &info));
	check_ok(aclrtSynchronizeStream(stream));
	return NULL;
}

static void threads(void)
{
	aclrtCntNotifyWaitInfo info = { .mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, .value = 6 * 500 * 3, .timeout = 60 };
	pthread_t ids[6];

	check_ok(aclrtSetDevice(1));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&waiter));
	check_ok(aclrtCntNotifyCreate(&counter, 0));
	check_ok(aclrtCntNotifyWaitWithTimeout(counter, waiter, &info));
	for (intptr_t i = 0; i < 6; i++)
		check_eq_int(pthread_create(&ids[i], NULL, add, (void *)i), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(ids[i], NULL);
	check_ok(aclrtSynchronizeStream(waiter));
	await(ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 6 * 500 * 3, true);
	check_ok(aclrtCntNotifyDestroy(counter));
}

TEST(acl_no_record_of_many_threads_is_lost)
{
	job_run(threads);
}

/*
 * Threads that hand bytes from one stream to another by a notify which is destroyed at once: a number that came back while a task still
 * names it would let a copy run before its byte is there.
 */
#define HANDS 40
#define HAND_SIZE (40u << 10)

static void hold_hand(void *arg)
{
	while (!atomic_load((_Atomic int *)arg))
		usleep(100);
}

static void *hand_on(void *arg)
{
	_Atomic int is_queued;
	unsigned char *from, *to;
	aclrtNotify notify;
	aclrtStream streams[2];

	check_ok(aclrtSetDevice(0));
	from = job_memory(HANDS * HAND_SIZE, 0);
	to = job_memory(HANDS, 0);
	for (int i = 0; i < 2; i++)
		check_ok(aclrtCreateStream(&streams[i]));
	for (int round = 1; round <= 12; round++) {
		atomic_store(&is_queued, 0);
		check_ok(aclrtLaunchHostFunc(streams[0], hold_hand, &is_queued));
		for (int i = 0; i < HANDS; i++) {
			unsigned char *byte = from + (size_t)i * HAND_SIZE + HAND_SIZE - 1;

			check_ok(aclrtCreateNotify(&notify, 0));
			check_ok(aclrtWaitAndResetNotify(notify, streams[1], 20));
			check_ok(aclrtMemcpyAsync(to + i, 1, byte, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, streams[1]));
			check_ok(aclrtMemsetAsync(byte + 1 - HAND_SIZE, HAND_SIZE, round + i, HAND_SIZE, streams[0]));
			check_ok(aclrtRecordNotify(notify, streams[0]));
			check_ok(aclrtDestroyNotify(notify));
		}
		atomic_store(&is_queued, 1);
		check_ok(aclrtSynchronizeStream(streams[1]));
		for (int i = 0; i < HANDS; i++)
			check_eq_uint(to[i], (unsigned char)(round + i));
	}
	return NULL;
}

static void hands(void)
{
	pthread_t ids[5];

	check_ok(aclrtSetDevice(0));
	for (intptr_t i = 0; i < 5; i++)
		check_eq_int(pthread_create(&ids[i], NULL, hand_on, (void *)i), 0);
	for (int i = 0; i < 5; i++)
		pthread_join(ids[i], NULL);
}

TEST(acl_a_number_does_not_come_back_too_early)
{
	job_run(hands);
}
