/* SPDX-License-Identifier: Apache-2.0 */
/* What hcclctl says of streams that wait for events, notifies, values and host functions. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/job.h"

/* The output of `hcclctl @arguments`, until @part is in it. */
static void expect(const char *arguments, const char *part)
{
	char command[512], text[16384];
	const char *hcclctl = getenv("HCCLCTL_BINARY");

	check_ptr(hcclctl);
	snprintf(command, sizeof(command), "%s %s", hcclctl, arguments);
	for (int i = 0; i < 500; i++) {
		FILE *pipe = popen(command, "r");
		size_t size;

		check_ptr(pipe);
		size = fread(text, 1, sizeof(text) - 1, pipe);
		text[size] = '\0';
		pclose(pipe);
		if (strstr(text, part))
			return;
		usleep(20000);
	}
	check_str_contains(text, part);
}

static _Atomic int gate;

static void wait_for_gate(void *arg)
{
	while (!atomic_load(&gate))
		usleep(1000);
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
	expect("waiting --json", text);
	expect("waiting --json", "\"operation\":\t\"wait-notify\"");
	snprintf(text, sizeof(text), "\"notify\":\t%u", id);
	expect("waiting --json", text);
	expect("streams --json", "\"head\":\t\"notify-wait\"");
	check_ok(aclrtValueWait(word, 77, ACL_STREAM_WAIT_VALUE_EQ, records));
	check_ok(aclrtRecordNotify(notify, records));
	snprintf(text, sizeof(text), "notify %u of device 0: stream %d of pid %d has not recorded it yet; stream %d of pid %d waits", id, records_id,
		 (int)getpid(), records_id, (int)getpid());
	expect("waiting --json", text);
	check_ok(aclrtValueWrite(word, 77, 0, held));
	check_ok(aclrtSynchronizeDevice());
	check_ok(aclrtWaitAndResetNotify(notify, held, 0));
	check_ok(aclrtRecordNotify(notify, held));
	expect("waiting --json", "what records it is queued in the same stream, behind this wait");
	expect("status", "waiting: stream");
	check_ok(aclrtRecordNotify(notify, records));
	check_ok(aclrtSynchronizeDevice());
	check_ok(aclrtDestroyNotify(notify));
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
	expect("waiting --json", text);
	expect("waiting --json", "\"operation\":\t\"wait-event\"");
	check_ok(aclrtStreamAbort(held));
	(void)aclrtSynchronizeStream(held);

	/* a chain: one waits for what another has yet to record, and that for a value */
	check_ok(aclrtValueWait(word, 77, ACL_STREAM_WAIT_VALUE_EQ, records));
	check_ok(aclrtRecordEvent(event, records));
	check_ok(aclrtStreamWaitEvent(waits, event));
	snprintf(text, sizeof(text), "stream %d of pid %d waits for event %u: stream %d has not recorded it yet; stream %d of pid %d waits",
		 waits_id, (int)getpid(), event_id, records_id, records_id, (int)getpid());
	expect("waiting --json", text);
	expect("waiting --json", "for a value in memory (0x4d): nobody has written it");
	expect("status", "waiting: stream");
	check_ok(aclrtValueWrite(word, 77, 0, held));
	check_ok(aclrtSynchronizeDevice());

	notifies(held, records, waits);

	/* a host function that runs, and one that its thread does not run */
	check_ok(aclrtLaunchHostFunc(held, wait_for_gate, NULL));
	snprintf(text, sizeof(text), "stream %d of pid %d waits for a host function: it has run for", held_id, (int)getpid());
	expect("waiting --json", text);
	expect("status", "a host function has been running for");
	check_ok(aclrtSubscribeReport(4711, waits));
	check_ok(aclrtLaunchCallback(wait_for_gate, NULL, ACL_CALLBACK_BLOCK, waits));
	expect("waiting --json", "a host function: it was not called yet: its thread does not call aclrtProcessReport");
	check_ok(aclrtUnSubscribeReport(4711, waits));
	atomic_store(&gate, 1);
	check_ok(aclrtSynchronizeDevice());
	expect("status", "healthy");
}

TEST_TIMEOUT(hcclctl_says_what_a_stream_waits_for, 60)
{
	job_run(waiting);
}
