/* SPDX-License-Identifier: Apache-2.0 */
/* What hcclctl says of streams that wait for events, notifies, values and host functions. */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/hcclctl.h"
#include "tests/support/job.h"

static _Atomic int gate;

static void wait_for_gate(void *arg)
{
	while (!atomic_load(&gate))
		usleep(1000);
}

/* A notify that counts: what it is, and what it is to become. */
static void counts(aclrtStream held, aclrtStream records)
{
	static const struct {
		aclrtCntNotifyWaitMode mode;
		uint32_t value, then;	/* that ends the wait */
		const char *text;
	} cases[] = {
		{ ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE, 2, 1, "to become less than 2 (it is 3): no stream" },
		{ ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 2, 2, "to become 2 (it is 3): no stream" },
		{ ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE, 7, 8, "to become more than 7 (it is 3): no stream" },
		{ ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE, 4, 4, "to become 4 or more (it is 3): no stream" },
	};
	aclrtCntNotify notify;

	check_ok(aclrtCntNotifyCreate(&notify, 0));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		aclrtCntNotifyRecordInfo record = { ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 3 };
		aclrtCntNotifyWaitInfo info = { .mode = cases[i].mode, .value = cases[i].value };

		check_ok(aclrtCntNotifyRecord(notify, records, &record));
		check_ok(aclrtSynchronizeStream(records));
		check_ok(aclrtCntNotifyWaitWithTimeout(notify, held, &info));
		hcclctl_expect("waiting --json", cases[i].text);
		record.value = cases[i].then;
		check_ok(aclrtCntNotifyRecord(notify, records, &record));
		check_ok(aclrtSynchronizeStream(held));
	}
	check_ok(aclrtCntNotifyDestroy(notify));
}

/* Who has a record queued, and what keeps it from that; nobody; and the waiting stream itself. */
static void notifies(aclrtStream held, aclrtStream records, aclrtStream waits)
{
	int32_t held_id, records_id, waits_id;
	uint64_t *word = job_memory(64, 0);
	aclrtNotify notify;
	uint32_t id;
	char text[200];

	check_ok(aclrtStreamGetId(held, &held_id));
	check_ok(aclrtStreamGetId(records, &records_id));
	check_ok(aclrtStreamGetId(waits, &waits_id));
	check_ok(aclrtCreateNotify(&notify, 0));
	check_ok(aclrtGetNotifyId(notify, &id));
	check_ok(aclrtWaitAndResetNotify(notify, waits, 0));
	snprintf(text, sizeof(text), "stream %d of pid %d waits for notify %u of device 0: no stream has a task queued that records it", waits_id,
		 (int)getpid(), id);
	hcclctl_expect("waiting --json", text);
	hcclctl_expect("waiting --json", "\"operation\":\t\"wait-notify\"");
	snprintf(text, sizeof(text), "\"notify\":\t%u", id);
	hcclctl_expect("waiting --json", text);
	hcclctl_expect("streams --json", "\"head\":\t\"notify-wait\"");
	check_ok(aclrtValueWait(word, 77, ACL_STREAM_WAIT_VALUE_EQ, records));
	check_ok(aclrtRecordNotify(notify, records));
	snprintf(text, sizeof(text), "notify %u of device 0: stream %d of pid %d has not recorded it yet; stream %d of pid %d waits", id, records_id,
		 (int)getpid(), records_id, (int)getpid());
	hcclctl_expect("waiting --json", text);
	check_ok(aclrtValueWrite(word, 77, 0, held));
	check_ok(aclrtSynchronizeDevice());
	check_ok(aclrtWaitAndResetNotify(notify, held, 0));
	check_ok(aclrtRecordNotify(notify, held));
	hcclctl_expect("waiting --json", "what records it is queued in the same stream, behind this wait");
	hcclctl_expect("status", "waiting: stream");
	check_ok(aclrtRecordNotify(notify, records));
	check_ok(aclrtSynchronizeDevice());
	check_ok(aclrtDestroyNotify(notify));
	counts(held, records);
}

#define SUM (32u << 20)

/* Until it is seen: one is over before hcclctl has asked. */
static void reductions(aclrtStream stream)
{
	unsigned char *to = job_memory(SUM, 1), *from = job_memory(SUM, 1);
	char text[64];

	for (int i = 0; i < 100; i++)
		check_ok(aclrtReduceAsync(to, from, SUM, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_BF16, stream, NULL));
	snprintf(text, sizeof(text), "pid %d reduces 32 MiB", (int)getpid());
	hcclctl_expect("waiting --json", text);
	hcclctl_expect("waiting --json", "\"operation\":\t\"reduce\"");
	check_ok(aclrtStreamAbort(stream));
	(void)aclrtSynchronizeStream(stream);
	check_ok(aclrtFree(to));
	check_ok(aclrtFree(from));
}

static void waiting(void)
{
	aclrtStream held, records, waits;
	int32_t held_id, records_id, waits_id;
	aclrtEvent event, never;
	uint32_t event_id, never_id;
	uint64_t *word;
	char text[200];

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&held));
	check_ok(aclrtCreateStream(&records));
	check_ok(aclrtCreateStream(&waits));
	check_ok(aclrtStreamGetId(held, &held_id));
	check_ok(aclrtStreamGetId(records, &records_id));
	check_ok(aclrtStreamGetId(waits, &waits_id));
	check_ok(aclrtCreateEvent(&event));
	check_ok(aclrtCreateEvent(&never));
	check_ok(aclrtGetEventId(event, &event_id));
	check_ok(aclrtGetEventId(never, &never_id));
	word = job_memory(64, 0);

	check_ok(aclrtStreamWaitEvent(held, never));
	snprintf(text, sizeof(text), "stream %d of pid %d waits for event %u: no stream is to record it", held_id, (int)getpid(), never_id);
	hcclctl_expect("waiting --json", text);
	hcclctl_expect("waiting --json", "\"operation\":\t\"wait-event\"");
	check_ok(aclrtStreamAbort(held));
	(void)aclrtSynchronizeStream(held);

	/* a chain: one waits for what another has yet to record, and that for a value */
	check_ok(aclrtValueWait(word, 77, ACL_STREAM_WAIT_VALUE_EQ, records));
	check_ok(aclrtRecordEvent(event, records));
	check_ok(aclrtStreamWaitEvent(waits, event));
	snprintf(text, sizeof(text), "stream %d of pid %d waits for event %u: stream %d has not recorded it yet; stream %d of pid %d waits",
		 waits_id, (int)getpid(), event_id, records_id, records_id, (int)getpid());
	hcclctl_expect("waiting --json", text);
	hcclctl_expect("waiting --json", "for a value in memory (0x4d): nobody has written it");
	hcclctl_expect("status", "waiting: stream");
	check_ok(aclrtValueWrite(word, 77, 0, held));
	check_ok(aclrtSynchronizeDevice());

	notifies(held, records, waits);
	reductions(held);

	/* a host function that runs, and one that its thread does not run */
	check_ok(aclrtLaunchHostFunc(held, wait_for_gate, NULL));
	snprintf(text, sizeof(text), "stream %d of pid %d waits for a host function: it has run for", held_id, (int)getpid());
	hcclctl_expect("waiting --json", text);
	hcclctl_expect("status", "a host function has been running for");
	check_ok(aclrtSubscribeReport(4711, waits));
	check_ok(aclrtLaunchCallback(wait_for_gate, NULL, ACL_CALLBACK_BLOCK, waits));
	hcclctl_expect("waiting --json", "a host function: it was not called yet: its thread does not call aclrtProcessReport");
	check_ok(aclrtUnSubscribeReport(4711, waits));
	atomic_store(&gate, 1);
	check_ok(aclrtSynchronizeDevice());
	hcclctl_expect("status", "healthy");
}

TEST_TIMEOUT(hcclctl_says_what_a_stream_waits_for, 60)
{
	job_run(waiting);
}
