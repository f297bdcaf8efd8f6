/* SPDX-License-Identifier: Apache-2.0 */
/* Events, words and host functions at the executor: what they wait for, time-outs, and what a client may write in their place. */
#include <string.h>

#include "engine/executor.h"
#include "proto/clock.h"
#include "proto/event.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define EVENT 2000000u
#define WORD 2001000u

static struct event_slot *event_of(struct rig *rig)
{
	return (struct event_slot *)(rig->ranks[0].memory + EVENT);
}

TEST(a_wait_ends_with_its_version)
{
	struct rig *rig = rig_new(2, false);

	rig_submit_meeting(rig, 0, 1, TASK_WAIT_EVENT, EVENT, 3);
	for (uint64_t version = 1; version <= 3; version++) {
		rig_run(rig);
		check(!rig_is_done(rig, 0, 1));
		rig_submit_meeting(rig, 0, 0, TASK_RECORD, EVENT, version);
	}
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 0, 1));
	check_eq_uint(event_of(rig)->recorded, 3);
	/* an earlier version, late: it changes nothing */
	event_of(rig)->recorded_ns = 1;
	rig_submit_meeting(rig, 0, 0, TASK_RECORD, EVENT, 2);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(event_of(rig)->recorded, 3);
	check_eq_uint(event_of(rig)->recorded_ns, 1);
	rig_free(rig);
}

/* Two contexts of one session, as a process with two devices has them; the other session is left alone. */
TEST(a_record_rings_the_contexts_of_its_session)
{
	struct rig *rig = rig_new(3, false);
	struct view_context *second = &rig->contexts[1];

	second->session = &rig->ranks[0].session;
	rig->ranks[1].segment = rig->ranks[0].segment;
	rig_submit_meeting(rig, 1, 0, TASK_WAIT_EVENT, EVENT, 1);
	rig_submit_meeting(rig, 2, 0, TASK_WAIT_EVENT, EVENT, 1);
	rig_run(rig);
	check_eq_uint(yard_kind(second->words->state), CONTEXT_PARKED);
	rig_submit_meeting(rig, 0, 0, TASK_RECORD, EVENT, 1);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && !rig_is_done(rig, 2, 0));
	check_eq_uint(yard_kind(second->words->state), CONTEXT_IDLE);
	check_eq_uint(rig->liars, 0);
	/* taken down in any order */
	check(engine_context_detach(rig->engine, &rig->contexts[0]));
	check(engine_context_detach(rig->engine, second));
	check_null(rig->ranks[0].session.watchers);
	second->session = &rig->ranks[1].session;
	rig_free(rig);
}

TEST(a_word_is_looked_at_again_only_while_somebody_waits)
{
	struct rig *rig = rig_new(1, false);

	rig_submit_meeting(rig, 0, 0, TASK_WAIT_VALUE, WORD, 5);
	rig_run(rig);
	check(engine_polls(rig->engine) && engine_poll(rig->engine));
	rig_run(rig);
	check(!rig_is_done(rig, 0, 0));
	/* the process itself writes it: nobody is told */
	rig->ranks[0].memory[WORD] = 7;
	check(engine_poll(rig->engine));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check(!engine_poll(rig->engine) && !engine_polls(rig->engine));
	rig_free(rig);
}

TEST(a_wait_times_out_and_the_stream_goes_on)
{
	struct rig *rig = rig_new(1, false);
	struct rig_item fill = { ITEM_FILL, 9, 100, 50, 7 };
	struct stream_ring *ring = rig->ranks[0].streams[0];

	rig_put_meeting(rig, 0, 0, TASK_WAIT_EVENT, EVENT, 1);
	ring->slots[0].task.timeout_ms = 200;
	rig_submit(rig, 0, 0, &fill, 1, 0);
	rig_run(rig);
	engine_check_timeouts(rig->engine, &rig->contexts[0], clock_now_ns() + 100000000u);
	rig_run(rig);
	check_eq_uint(ring->fault_count, 0);
	engine_check_timeouts(rig->engine, &rig->contexts[0], clock_now_ns() + 300000000u);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(ring->fault.cause, CAUSE_EVENT_TIMEOUT);
	check_eq_int(rig->ranks[0].memory[100], 9);
	rig_free(rig);
}

TEST(a_host_function_is_told_of_once_and_waited_for)
{
	struct rig *rig = rig_new(1, false);
	struct session_host *host = session_host(rig->ranks[0].region);

	rig_submit_meeting(rig, 0, 0, TASK_HOST, 0, 0);
	rig_run(rig);
	rig_notify(rig, &rig->contexts[0]);
	rig_run(rig);
	check_eq_uint(host->news, 1);
	check(!rig_is_done(rig, 0, 0));
	check(rig_host(rig));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	rig_put_meeting(rig, 0, 0, TASK_HOST, 0, 0);
	rig->ranks[0].streams[0]->slots[1].task.flags = TASK_NO_BLOCK;
	rig_notify(rig, &rig->contexts[0]);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(host->news, 2);
	rig_free(rig);
}

/* The head alone is taken out; what is behind it runs. */
TEST(the_head_is_dropped)
{
	struct rig *rig = rig_new(1, false);
	struct rig_item fill = { ITEM_FILL, 9, 100, 50, 7 };
	struct stream_ring *ring = rig->ranks[0].streams[0];

	rig_submit_meeting(rig, 0, 0, TASK_WAIT_EVENT, EVENT, 1);
	rig_submit(rig, 0, 0, &fill, 1, 0);
	rig_run(rig);
	check(engine_stream_drop(rig->engine, &rig->contexts[0], ring, true, CAUSE_STREAM_ABORTED));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(ring->fault.cause, CAUSE_STREAM_ABORTED);
	check_eq_uint(ring->dropped, 2);
	check_eq_int(rig->ranks[0].memory[100], 9);
	/* nothing is there any more */
	check(engine_stream_drop(rig->engine, &rig->contexts[0], ring, true, CAUSE_STREAM_ABORTED));
	check_eq_uint(ring->dropped, 2);
	rig_free(rig);
}

/* One spoilt task; the other session's must be done all the same. */
static void lie(enum task_kind kind, void (*spoil)(struct task *task, struct item *item), uint32_t liars, bool done)
{
	struct rig *rig = rig_new(2, false);
	struct stream_ring *ring = rig->ranks[0].streams[0];

	rig_put_meeting(rig, 0, 0, kind, EVENT, 1);
	spoil(&ring->slots[0].task, &ring->slots[1].item);
	rig_notify(rig, &rig->contexts[0]);
	rig_submit_meeting(rig, 1, 0, TASK_RECORD, EVENT, 1);
	rig_run(rig);
	check_eq_uint(rig->liars, liars);
	check(rig_is_done(rig, 1, 0));
	check(rig_is_done(rig, 0, 0) == done);
	/* and nobody is hurt when its session ends */
	check(engine_stream_detach(rig->engine, &rig->contexts[0], ring));
	check(engine_context_detach(rig->engine, &rig->contexts[0]));
	rig_free(rig);
}

static void spoil_kind(struct task *task, struct item *item) { item->kind = ITEM_FILL; }
static void spoil_count(struct task *task, struct item *item) { task->item_count = 0; task->slot_count = 1; }
static void spoil_offset(struct task *task, struct item *item) { item->offset++; }
static void spoil_segment(struct task *task, struct item *item) { item->segment = 12345; }
static void spoil_end(struct task *task, struct item *item) { item->offset = RIG_MEMORY - 32; }
static void spoil_wrap(struct task *task, struct item *item) { item->offset = -8ull; }
static void spoil_comparison(struct task *task, struct item *item) { item->data_type = 9; }
static void spoil_side(struct task *task, struct item *item) { task->side = 99; }

/* Memory that was imported begins where the exporter's part does: what must be aligned is the address. */
TEST(the_address_is_aligned_not_the_offset)
{
	for (unsigned int odd = 0; odd < 8; odd += 3) {
		struct rig *rig = rig_new(2, false);
		struct view_segment *segment = &rig->ranks[0].session.segments[VIEW_INDEX(rig->ranks[0].segment)];

		segment->base += odd;
		segment->size -= odd;
		rig_submit_meeting(rig, 0, 0, TASK_WRITE, WORD - odd, 0x55);
		rig_run(rig);
		check(rig_is_done(rig, 0, 0));
		check_eq_int(rig->ranks[0].memory[WORD], 0x55);
		check_eq_uint(rig->liars, 0);
		rig_submit_meeting(rig, 0, 0, TASK_WRITE, WORD, 0x66);
		rig_run(rig);
		check_eq_uint(rig->liars, odd ? 1 : 0);
		check_eq_int(rig->ranks[0].memory[WORD + odd], odd ? 0 : 0x66);
		rig_free(rig);
	}
}

TEST(nonsense_ends_its_session_alone)
{
	static const enum task_kind kinds[] = { TASK_RECORD, TASK_WAIT_EVENT, TASK_WRITE, TASK_WAIT_VALUE };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		lie(kinds[i], spoil_kind, 1, false);
		lie(kinds[i], spoil_count, 1, false);
		lie(kinds[i], spoil_offset, 1, false);
		lie(kinds[i], spoil_side, 1, false);
		/* memory that is not there: an error of the stream, or nothing to be done */
		lie(kinds[i], spoil_segment, 0, true);
		lie(kinds[i], spoil_wrap, 0, true);
	}
	lie(TASK_RECORD, spoil_end, 0, true);
	lie(TASK_WAIT_EVENT, spoil_end, 0, true);
	lie(TASK_WAIT_VALUE, spoil_comparison, 1, false);
}
