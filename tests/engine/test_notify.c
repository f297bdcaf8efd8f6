/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies at the executor: what each change and comparison does, who is rung, time-outs, memory that goes, and lies. */
#include <errno.h>
#include <string.h>

#include "engine/executor.h"
#include "proto/clock.h"
#include "proto/notify.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define NOTIFY 2000000u		/* a multiple of 64 */

static const struct rig_notify record = { .kind = TASK_NOTIFY_RECORD, .mode = NOTIFY_SET, .offset = NOTIFY, .number = 1 };
static const struct rig_notify wait = { .kind = TASK_NOTIFY_WAIT, .mode = NOTIFY_EQUAL, .clears = true, .offset = NOTIFY, .number = 1 };

static struct notify_slot *slot_of(struct rig *rig, uint32_t rank)
{
	return (struct notify_slot *)(rig->ranks[rank].memory + NOTIFY);
}

static uint32_t value_of(struct rig *rig)
{
	uint32_t value = 0;

	check_eq_int(engine_notify_value(&rig->ranks[0].session, rig->ranks[0].notifies, NOTIFY, &value), 0);
	return value;
}

static uint32_t count_of(struct rig *rig)
{
	return (uint32_t)(slot_of(rig, 0)->word >> 32);
}

TEST(a_record_ends_one_wait)
{
	struct rig *rig = rig_new(1, false);

	rig_submit_notify(rig, 0, 1, &wait);
	rig_submit_notify(rig, 0, 1, &wait);
	rig_run(rig);
	check_eq_uint(rig->ranks[0].streams[1]->completed, 0);
	rig_submit_notify(rig, 0, 0, &record);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(rig->ranks[0].streams[1]->completed, 2);
	check_eq_uint(value_of(rig), 0);
	check_eq_uint(count_of(rig), 2);
	/* records before the wait are one */
	rig_submit_notify(rig, 0, 0, &record);
	rig_run(rig);
	check(rig_is_done(rig, 0, 1));
	rig_submit_notify(rig, 0, 0, &record);
	rig_submit_notify(rig, 0, 0, &record);
	rig_run(rig);
	check_eq_uint(value_of(rig), 1);
	rig_submit_notify(rig, 0, 1, &wait);
	rig_run(rig);
	check(rig_is_done(rig, 0, 1));
	check_eq_uint(value_of(rig), 0);
	check(!engine_polls(rig->engine));
	rig_free(rig);
}

TEST(each_change_changes_as_it_says)
{
	static const struct {
		uint8_t change;
		uint32_t before, operand, after;
	} cases[] = {
		{ NOTIFY_SET, 7, 3, 3 },	    { NOTIFY_SET, 7, 0, 0 },
		{ NOTIFY_ADD, 7, 3, 10 },	    { NOTIFY_ADD, UINT32_MAX, 2, 1 },
		{ NOTIFY_OR, 0x50, 0x0f, 0x5f },    { NOTIFY_OR, 0x50, 0x80000000u, 0x80000050u },
		{ NOTIFY_AND, 0x5f, 0x0f, 0x0f },   { NOTIFY_AND, 0x50, 0x0f, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *rig = rig_new(1, false);
		struct rig_notify change = record;

		slot_of(rig, 0)->word = notify_next(0, cases[i].before);
		change.mode = cases[i].change;
		change.number = cases[i].operand;
		rig_submit_notify(rig, 0, 0, &change);
		rig_run(rig);
		check(rig_is_done(rig, 0, 0));
		check_eq_uint(value_of(rig), cases[i].after);
		check_eq_uint(count_of(rig), 2);
		rig_free(rig);
	}
}

TEST(each_comparison_compares_as_it_says)
{
	static const struct {
		uint8_t compare;
		uint32_t value, operand, mask;
		bool is_over;
	} cases[] = {
		{ NOTIFY_LESS, 4, 5, 0, true },		   { NOTIFY_LESS, 5, 5, 0, false },
		{ NOTIFY_LESS, 0x80000000u, 5, 0, false }, { NOTIFY_EQUAL, 5, 5, 0, true },
		{ NOTIFY_EQUAL, 4, 5, 0, false },	   { NOTIFY_BIGGER, 6, 5, 0, true },
		{ NOTIFY_BIGGER, 5, 5, 0, false },	   { NOTIFY_BIGGER, UINT32_MAX, 5, 0, true },
		{ NOTIFY_BIGGER_OR_EQUAL, 5, 5, 0, true }, { NOTIFY_BIGGER_OR_EQUAL, 4, 5, 0, false },
		{ NOTIFY_EQUAL_MASKED, 0xa5, 0x05, 0x0f, true },
		{ NOTIFY_EQUAL_MASKED, 0xa5, 0xf5, 0x0f, true },
		{ NOTIFY_EQUAL_MASKED, 0xa5, 0x04, 0x0f, false },
	};

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *rig = rig_new(1, false);
		struct rig_notify compare = wait;
		bool clears = i % 2;

		slot_of(rig, 0)->word = notify_next(0, cases[i / 2].value);
		compare.mode = cases[i / 2].compare;
		compare.number = (uint64_t)cases[i / 2].mask << 32 | cases[i / 2].operand;
		compare.clears = clears;
		rig_submit_notify(rig, 0, 0, &compare);
		rig_run(rig);
		check(rig_is_done(rig, 0, 0) == cases[i / 2].is_over);
		check_eq_uint(value_of(rig), cases[i / 2].is_over && clears ? 0 : cases[i / 2].value);
		check_eq_uint(count_of(rig), cases[i / 2].is_over && clears ? 2 : 1);
		rig_free(rig);
	}
}

/* Both ways between the contexts of two sessions, without a look at words. */
TEST(a_record_rings_another_session)
{
	struct rig *rig = rig_new(2, false);
	struct rig_notify there = record, back = wait;

	there.segment = rig_import_notifies(rig, 1, 0);
	back.segment = there.segment;
	rig_submit_notify(rig, 0, 0, &wait);
	rig_run(rig);
	check_eq_uint(yard_kind(rig->contexts[0].words->state), CONTEXT_PARKED);
	check(!engine_polls(rig->engine));
	rig_submit_notify(rig, 1, 0, &there);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	check_eq_uint(yard_kind(rig->contexts[0].words->state), CONTEXT_IDLE);
	/* the one that has imported it waits */
	rig_submit_notify(rig, 1, 0, &back);
	rig_run(rig);
	check(!rig_is_done(rig, 1, 0));
	rig_submit_notify(rig, 0, 0, &record);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	rig_free(rig);
}

/* No program should, but it must not hang: the one that is not rung is polled, and only as long as it waits. */
TEST(two_contexts_wait_for_one_notify)
{
	struct rig *rig = rig_new(3, false);
	struct rig_notify first = wait, second = wait, change = record;

	first.clears = second.clears = false;
	second.segment = rig_import_notifies(rig, 1, 0);
	change.segment = rig_import_notifies(rig, 2, 0);
	rig_submit_notify(rig, 0, 0, &first);
	rig_run(rig);
	rig_submit_notify(rig, 1, 0, &second);
	rig_run(rig);
	check(engine_polls(rig->engine));
	for (int i = 0; i < 5; i++) {
		check(engine_poll(rig->engine));
		rig_run(rig);
	}
	check(!rig_is_done(rig, 0, 0) && !rig_is_done(rig, 1, 0));
	rig_submit_notify(rig, 2, 0, &change);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) || rig_is_done(rig, 1, 0));
	(void)engine_poll(rig->engine);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	(void)engine_poll(rig->engine);
	rig_run(rig);
	check(!engine_poll(rig->engine) && !engine_polls(rig->engine));
	rig_free(rig);
}

TEST(a_wait_times_out)
{
	struct rig *rig = rig_new(2, false);
	struct rig_item fill = { ITEM_FILL, 9, 100, 50, 7 };
	struct stream_ring *ring = rig->ranks[0].streams[0];
	struct rig_notify late = wait;
	char text[256];

	late.timeout_ms = 200;
	rig_put_notify(rig, 0, 0, &late);
	rig_submit(rig, 0, 0, &fill, 1, 0);
	rig_run(rig);
	engine_check_timeouts(rig->engine, &rig->contexts[0], clock_now_ns() + 100000000u);
	rig_run(rig);
	check_eq_uint(ring->fault_count, 0);
	engine_check_timeouts(rig->engine, &rig->contexts[0], clock_now_ns() + 300000000u);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(ring->fault.cause, CAUSE_EXEC_TIMEOUT);
	check_eq_uint(ring->fault.number, 1 + NOTIFY / sizeof(struct notify_slot));
	check_eq_uint(ring->fault.waited_ms, 200);
	check_eq_int(rig->ranks[0].memory[100], 9);
	fault_text(&ring->fault, NULL, text, sizeof(text));
	check_eq_str(text, "notify 31250 was not recorded within 200 ms; the call that waits for it sets the limit, 0 means never");
	/* too late: it stays for the next wait */
	rig_submit_notify(rig, 0, 1, &record);
	rig_run(rig);
	check_eq_uint(value_of(rig), 1);
	rig_free(rig);
}

/* What a notify that counts was to become, and what it is. */
TEST(a_count_times_out)
{
	struct rig *rig = rig_new(2, false);
	struct stream_ring *ring = rig->ranks[0].streams[0];
	struct rig_notify late = wait, six = record;
	char text[256];

	six.number = 6;
	late.number = 99;
	late.timeout_ms = 2000;
	rig_submit_notify(rig, 0, 1, &six);
	rig_run(rig);
	rig_submit_notify(rig, 0, 0, &late);
	rig_run(rig);
	engine_check_timeouts(rig->engine, &rig->contexts[0], clock_now_ns() + 2102000000u);
	rig_run(rig);
	check_eq_uint(ring->fault.cause, CAUSE_EXEC_TIMEOUT);
	fault_text(&ring->fault, NULL, text, sizeof(text));
	check_eq_str(text, "notify 31250 did not become 99 (it is 6) within 2 s; the call that waits for it sets the limit, 0 means never");
	check_eq_uint(value_of(rig), 6);
	rig_free(rig);
}

/* As on the hardware: what is taken out of a stream, or passed over after an error, does not happen. */
TEST(a_dropped_record_is_none)
{
	struct rig *rig = rig_new(2, false);
	struct rig_item receive = { ITEM_RECEIVE, 1, 200, 50, 7 }, wrong = { ITEM_FILL, 1, RIG_MEMORY - 1, 2, 7 };
	struct stream_ring *ring = rig->ranks[0].streams[0];

	rig_submit(rig, 0, 0, &receive, 1, 0);
	rig_submit_notify(rig, 0, 0, &record);
	rig_run(rig);
	check(engine_stream_drop(rig->engine, &rig->contexts[0], ring, false, CAUSE_TASK_ABORTED));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(slot_of(rig, 0)->word, 0);
	ring->stop_on_failure = 1;
	rig_submit(rig, 0, 0, &wrong, 1, 0);
	rig_submit_notify(rig, 0, 0, &record);
	rig_submit_notify(rig, 0, 0, &wait);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(slot_of(rig, 0)->word, 0);
	rig_free(rig);
}

static void go(struct rig *rig, uint32_t rank, uint64_t id)
{
	struct view_session *session = &rig->ranks[rank].session;

	atomic_store(&session->segments[VIEW_INDEX(id)].retired, 1);
	check(engine_segment_detach(rig->engine, session, id));
}

/* By its owner, which the importer hears of by address: its own entry is retired only. */
TEST(memory_that_goes_ends_waits_and_records)
{
	struct rig *rig = rig_new(3, false);
	struct rig_notify there = wait, set = record;
	char text[256];

	there.segment = set.segment = rig_import_notifies(rig, 1, 0);
	rig_submit_notify(rig, 1, 0, &there);
	rig_submit_notify(rig, 2, 0, &wait);
	rig_run(rig);
	atomic_store(&rig->ranks[1].session.segments[VIEW_INDEX(there.segment)].retired, 1);
	check(engine_memory_detach(rig->engine, rig->ranks[0].memory, RIG_MEMORY));
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && !rig_is_done(rig, 2, 0));
	check_eq_uint(rig->ranks[1].streams[0]->fault.cause, CAUSE_PEER_MEMORY);
	fault_text(&rig->ranks[1].streams[0]->fault, NULL, text, sizeof(text));
	check_eq_str(text, "the notify of another process is gone: that process has destroyed it or ended");
	rig_submit_notify(rig, 1, 1, &set);
	rig_run(rig);
	check(rig_is_done(rig, 1, 1));
	check_eq_uint(rig->ranks[1].streams[1]->fault.cause, CAUSE_PEER_MEMORY);
	check_eq_uint(slot_of(rig, 0)->word, 0);
	/* and with its context */
	go(rig, 2, rig->ranks[2].notifies);
	rig_run(rig);
	check(rig_is_done(rig, 2, 0));
	check_eq_uint(rig->ranks[2].streams[0]->fault.cause, CAUSE_ABORTED);
	check_eq_uint(rig->liars, 0);
	rig_free(rig);
}

/* The peer of a channel has gone: what it has recorded is taken, and the next wait ends. */
TEST(a_failed_notify_ends_waits)
{
	struct rig *rig = rig_new(1, false);
	struct stream_ring *ring = rig->ranks[0].streams[0];
	char text[256];

	rig_submit_notify(rig, 0, 0, &record);
	rig_run(rig);
	rig_submit_notify(rig, 0, 1, &wait);
	rig_submit_notify(rig, 0, 1, &wait);
	slot_of(rig, 0)->failed = CAUSE_PEER_DEAD;
	rig_run(rig);
	check(rig_is_done(rig, 0, 1));
	check_eq_uint(rig->ranks[0].streams[1]->fault_count, 1);
	check_eq_uint(rig->ranks[0].streams[1]->fault_position, 2);
	check_eq_uint(rig->ranks[0].streams[1]->fault.cause, CAUSE_PEER_DEAD);
	fault_text(&rig->ranks[0].streams[1]->fault, NULL, text, sizeof(text));
	check_eq_str(text, "notify 31250 will not be recorded: the process at the other end of the channel that it belongs to has ended");
	/* one that waits already is rung when the daemon has said so */
	slot_of(rig, 0)->failed = 0;
	rig_submit_notify(rig, 0, 0, &wait);
	rig_run(rig);
	check(!rig_is_done(rig, 0, 0));
	slot_of(rig, 0)->failed = CAUSE_PEER_LEFT;
	check(engine_retired_detach(rig->engine));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(ring->fault.cause, CAUSE_PEER_LEFT);
	fault_text(&ring->fault, NULL, text, sizeof(text));
	check_eq_str(text, "notify 31250 will not be recorded: the other end of the channel that it belongs to has been closed");
	rig_free(rig);
}

TEST(the_owner_resets)
{
	struct rig *rig = rig_new(2, false);
	struct rig_notify below = wait;
	uint32_t value;

	rig_submit_notify(rig, 0, 0, &record);
	rig_run(rig);
	below.segment = rig_import_notifies(rig, 1, 0);
	below.mode = NOTIFY_LESS;
	rig_submit_notify(rig, 1, 0, &below);
	rig_run(rig);
	check(!rig_is_done(rig, 1, 0));
	check_eq_int(engine_notify_reset(rig->engine, &rig->contexts[0], rig->ranks[0].notifies, NOTIFY), 0);
	check_eq_uint(value_of(rig), 0);
	check_eq_uint(count_of(rig), 2);
	/* who waited for less is rung */
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_int(engine_notify_reset(rig->engine, &rig->contexts[0], 12345, NOTIFY), -ENOENT);
	check_eq_int(engine_notify_reset(rig->engine, &rig->contexts[0], rig->ranks[0].notifies, RIG_MEMORY), -ENOENT);
	check_eq_int(engine_notify_reset(rig->engine, &rig->contexts[0], rig->ranks[0].notifies, 4), -EINVAL);
	check_eq_int(engine_notify_value(&rig->ranks[0].session, 12345, NOTIFY, &value), -ENOENT);
	rig_free(rig);
}

TEST(counts_wrap_around)
{
	struct rig *rig = rig_new(1, false);

	slot_of(rig, 0)->word = (uint64_t)UINT32_MAX << 32;
	for (uint32_t round = 0; round < 3; round++) {
		rig_submit_notify(rig, 0, 0, &record);
		rig_submit_notify(rig, 0, 0, &wait);
		rig_run(rig);
		check(rig_is_done(rig, 0, 0));
		check_eq_uint(value_of(rig), 0);
		check_eq_uint(count_of(rig), 2 * round + 2);
	}
	rig_free(rig);
}

/* What is announced is made first: otherwise the other stream's change would count for it. */
TEST(an_announced_change_is_made_before_others)
{
	for (uint32_t order = 0; order < 2; order++) {
		struct rig *rig = rig_new(1, false);
		struct rig_notify add = record;

		add.mode = NOTIFY_ADD;
		rig_put_notify(rig, 0, order, &add);
		rig->ranks[0].streams[order]->slots[0].task.number = notify_next(0, 1);
		rig_put_notify(rig, 0, !order, &add);
		rig_restart(rig);
		rig_run(rig);
		check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 0, 1));
		check_eq_uint(value_of(rig), 2);
		rig_free(rig);
	}
}

/* A waiter that is nobody, or nobody's any more. */
TEST(a_wrong_waiter_is_ignored)
{
	static const uint32_t waiters[] = { 2, 7, HCCLD_YARD_CONTEXTS, HCCLD_YARD_CONTEXTS + 1, UINT32_MAX };

	for (size_t i = 0; i < sizeof(waiters) / sizeof(waiters[0]); i++) {
		struct rig *rig = rig_new(2, false);

		slot_of(rig, 0)->waiter = waiters[i];
		rig_submit_notify(rig, 0, 0, &record);
		rig_run(rig);
		slot_of(rig, 0)->waiter = waiters[i];
		rig_submit_notify(rig, 0, 1, &wait);
		rig_submit_notify(rig, 0, 1, &wait);
		rig_run(rig);
		check_eq_uint(slot_of(rig, 0)->waiter, 1);
		rig_submit_notify(rig, 0, 0, &record);
		rig_run(rig);
		check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 0, 1));
		check(!engine_poll(rig->engine));
		rig_free(rig);
	}
}

static void spoil_kind(struct task *task, struct item *item) { item->kind = ITEM_FILL; }
static void spoil_count(struct task *task, struct item *item) { task->item_count = 0; task->slot_count = 1; }
static void spoil_offset(struct task *task, struct item *item) { item->offset++; }
static void spoil_mode(struct task *task, struct item *item) { item->data_type = 9; }
static void spoil_and(struct task *task, struct item *item) { item->data_type = 3; }
static void spoil_segment(struct task *task, struct item *item) { item->segment = 12345; }
static void spoil_index(struct task *task, struct item *item) { item->segment = UINT64_MAX; }
static void spoil_end(struct task *task, struct item *item) { item->offset = RIG_MEMORY - 32; }
static void spoil_wrap(struct task *task, struct item *item) { item->offset = -64ull; }
static void spoil_number(struct task *task, struct item *item) { task->number = (uint64_t)77 << 32; }
static void spoil_outcome(struct task *task, struct item *item) { task->outcome = 1; }

/* One spoilt task; the other session's are done all the same. */
static void lie(const struct rig_notify *notify, void (*spoil)(struct task *task, struct item *item), uint32_t liars, bool done)
{
	struct rig *rig = rig_new(2, false);
	struct stream_ring *ring = rig->ranks[0].streams[0];

	rig_put_notify(rig, 0, 0, notify);
	spoil(&ring->slots[0].task, &ring->slots[1].item);
	rig_notify(rig, &rig->contexts[0]);
	rig_submit_notify(rig, 1, 0, &record);
	rig_submit_notify(rig, 1, 0, &wait);
	rig_run(rig);
	check_eq_uint(rig->liars, liars);
	check(rig_is_done(rig, 1, 0));
	check(rig_is_done(rig, 0, 0) == done);
	check(engine_stream_detach(rig->engine, &rig->contexts[0], ring));
	check(engine_context_detach(rig->engine, &rig->contexts[0]));
	rig_free(rig);
}

TEST(nonsense_ends_its_session_alone)
{
	for (int i = 0; i < 2; i++) {
		const struct rig_notify *notify = i ? &wait : &record;

		lie(notify, spoil_kind, 1, false);
		lie(notify, spoil_count, 1, false);
		lie(notify, spoil_offset, 1, false);
		lie(notify, spoil_mode, 1, false);
		lie(notify, spoil_segment, 0, true);
		lie(notify, spoil_index, 0, true);
		lie(notify, spoil_end, 0, true);
		lie(notify, spoil_wrap, 0, true);
		/* who says that it was done has it as done or not done, alone */
		lie(notify, spoil_number, 0, !i);
		lie(notify, spoil_outcome, 0, true);
	}
	lie(&record, spoil_and, 1, false);
}

/* What changes memory that is no notify, or takes what is in one, finds nothing there: only changes of notifies change them. */
TEST(notifies_are_no_memory)
{
	const struct item place = { .kind = ITEM_PLACE, .offset = NOTIFY };
	const struct item fill = { .kind = ITEM_FILL, .peer = 0x55, .bytes = 64, .offset = NOTIFY, .next = LANE_END, .next_lane = LANE_END };
	static const uint8_t kinds[] = { TASK_RECORD, TASK_WAIT_EVENT, TASK_WRITE, TASK_WAIT_VALUE, TASK_BATCH };

	for (uint32_t i = 0; i < 2 * sizeof(kinds); i++) {
		struct rig *rig = rig_new(2, false);
		struct stream_ring *ring = rig->ranks[0].streams[0];
		uint8_t kind = kinds[i / 2];

		slot_of(rig, 0)->word = slot_of(rig, 1)->word = 7;
		if (kind == TASK_BATCH)
			rig_put(rig, 0, 0, &(struct rig_item){ ITEM_FILL, .offset = NOTIFY, .bytes = 64 }, 1, 0);
		else
			rig_put_meeting(rig, 0, 0, kind, NOTIFY, 9);
		ring->slots[1].item = kind == TASK_BATCH ? fill : place;
		ring->slots[1].item.number = kind == TASK_BATCH ? 0 : 9;
		ring->slots[1].item.segment = i % 2 ? rig_import_notifies(rig, 0, 1) : rig->ranks[0].notifies;
		rig_notify(rig, &rig->contexts[0]);
		rig_run(rig);
		check_eq_uint(rig->liars, 0);
		check(rig_is_done(rig, 0, 0));
		check_eq_uint(ring->fault_count, kind != TASK_RECORD);
		check_eq_uint(slot_of(rig, i % 2)->word, 7);
		rig_free(rig);
	}
}

static void check_copy(bool from_notify, uint64_t bytes)
{
	struct rig *rig = rig_new(1, false);
	struct stream_ring *ring = rig->ranks[0].streams[0];

	memset(rig->ranks[0].memory, 3, RIG_MEMORY);
	rig_put(rig, 0, 0, &(struct rig_item){ ITEM_COPY, .offset = 0, .bytes = bytes, .peer = (uint32_t)bytes }, 1, 0);
	memset(rig->ranks[0].memory + bytes, 4, bytes);
	ring->slots[from_notify ? 2 : 1].item.segment = rig->ranks[0].notifies;
	rig_notify(rig, &rig->contexts[0]);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(ring->fault.cause, CAUSE_NOT_DEVICE_MEMORY);
	check_eq_uint(rig->ranks[0].memory[0], 3);
	rig_free(rig);
}

static void check_reduction(bool from_notify)
{
	struct rig *rig = rig_new(1, false);
	struct rig_reduce sum = { .to = 0, .from = 4096, .bytes = 1024, .type = 2 };

	*(from_notify ? &sum.segment : &sum.to_segment) = rig->ranks[0].notifies;
	memset(rig->ranks[0].memory + 4096, 4, 4096);
	rig_submit_reduce(rig, 0, 0, &sum);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(rig->ranks[0].streams[0]->fault.cause, CAUSE_NOT_DEVICE_MEMORY);
	check_eq_uint(rig->ranks[0].memory[0], 0);
	rig_free(rig);
}

TEST(notifies_are_not_copied_or_reduced)
{
	for (int i = 0; i < 2; i++) {
		check_copy(i, 64);
		check_copy(i, 1 << 20);
		check_reduction(i);
	}
}

/* The reverse: a place in memory that the program writes itself, and one of a page that is on no account. */
TEST(memory_is_no_notify)
{
	static _Atomic uint64_t pages[RIG_MEMORY / 4096 / 64];

	for (int i = 0; i < 4; i++) {
		struct rig_notify notify = i % 2 ? wait : record;
		struct rig *rig = rig_new(1, false);

		slot_of(rig, 0)->word = 1;
		if (i < 2)
			notify.segment = rig->ranks[0].segment;
		else
			rig->ranks[0].session.segments[VIEW_INDEX(rig->ranks[0].notifies)].pages = pages;
		rig_submit_notify(rig, 0, 0, &notify);
		rig_run(rig);
		check(rig_is_done(rig, 0, 0));
		check_eq_uint(rig->ranks[0].streams[0]->fault.cause, CAUSE_ABORTED);
		check_eq_uint(slot_of(rig, 0)->word, 1);
		pages[NOTIFY / 4096 / 64] = 1ull << (NOTIFY / 4096 % 64);
		notify.segment = rig->ranks[0].notifies;
		rig_submit_notify(rig, 0, 1, &notify);
		rig_run(rig);
		check_eq_uint(count_of(rig), 1);
		pages[NOTIFY / 4096 / 64] = 0;
		rig_free(rig);
	}
}

/* In a context that is taken down while it waits, and while others are. */
TEST(a_waiting_context_is_taken_down)
{
	struct rig *rig = rig_new(3, false);

	for (uint32_t rank = 0; rank < 3; rank++)
		rig_submit_notify(rig, rank, 0, &wait);
	rig_run(rig);
	for (uint32_t n = 0; n < 3; n++) {
		uint32_t rank = (n + 1) % 3;

		check(engine_stream_detach(rig->engine, &rig->contexts[rank], rig->ranks[rank].streams[0]));
		check(engine_context_detach(rig->engine, &rig->contexts[rank]));
		atomic_store(&rig->view.contexts[rank], NULL);
		notify_ring_all(rig->engine);
		engine_ring_dirty(rig->engine);
		rig_run(rig);
	}
	check_null(rig->engine->awaiting);
	rig_free(rig);
}
