/* SPDX-License-Identifier: Apache-2.0 */
/* The executor on plain memory: matching, failures, liars, order between streams. */
#include <string.h>

#include "engine/executor.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define SEND(peer_, offset_, bytes_) { ITEM_SEND, peer_, offset_, bytes_, 7 }
#define RECEIVE(peer_, offset_, bytes_) { ITEM_RECEIVE, peer_, offset_, bytes_, 7 }

static void submit_one(struct rig *rig, uint32_t rank, struct rig_item item)
{
	rig_submit(rig, rank, 0, &item, 1, 0);
}

static const struct fault *fault_of(struct rig *rig, uint32_t rank)
{
	check_eq_uint(rig->ranks[rank].streams[0]->fault_count, 1);
	return &rig->ranks[rank].streams[0]->fault;
}

static void die(struct rig *rig, uint32_t rank, enum member_word word)
{
	struct view_rank *handle = &rig->ranks[rank].session.ranks[rank];

	rig->comm.region->members[rank].exit = word == MEMBER_DEAD ? 9 : -1;
	atomic_store(&rig->comm.region->members[rank].word, word);
	check(engine_rank_detach(rig->engine, handle));
}

TEST(lone_receive_waits_and_lone_inline_send_completes)
{
	struct rig *rig = rig_new(2, false);

	submit_one(rig, 0, (struct rig_item)SEND(1, 0, 8));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	submit_one(rig, 0, (struct rig_item)RECEIVE(1, 100, 5000));
	rig_run(rig);
	check(!rig_is_done(rig, 0, 0));
	memset(rig->ranks[1].memory, 3, 5000);
	submit_one(rig, 1, (struct rig_item)SEND(0, 0, 5000));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	check_eq_mem(rig->ranks[0].memory + 100, rig->ranks[1].memory, 5000);
	rig_free(rig);
}

TEST(batch_passes_absent_peers)
{
	struct rig *rig = rig_new(4, false);
	struct rig_item items[] = { RECEIVE(1, 0, 100), SEND(2, 200, 100), RECEIVE(3, 400, 100), SEND(3, 600, 100) };

	memset(rig->ranks[3].memory, 0x5a, 100);
	rig_submit(rig, 0, 0, items, 4, 0);
	rig_submit(rig, 3, 0, (struct rig_item[]){ SEND(0, 0, 100), RECEIVE(0, 1000, 100) }, 2, 0);
	rig_run(rig);
	check(rig_is_done(rig, 3, 0));
	check_eq_int(rig->ranks[0].memory[400], 0x5a);
	check(!rig_is_done(rig, 0, 0));
	submit_one(rig, 1, (struct rig_item)SEND(0, 0, 100));
	submit_one(rig, 2, (struct rig_item)RECEIVE(0, 0, 100));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0) && rig_is_done(rig, 2, 0));
	rig_free(rig);
}

TEST(more_sends_than_slots_wait_for_room)
{
	struct rig *rig = rig_new(2, false);
	struct rig_item sends[40], receives[40];

	for (uint32_t i = 0; i < 40; i++) {
		sends[i] = (struct rig_item)SEND(1, i * 64, 4);
		receives[i] = (struct rig_item)RECEIVE(0, i * 64, 4);
		memcpy(rig->ranks[0].memory + i * 64, &i, 4);
	}
	rig_submit(rig, 0, 0, sends, 40, 0);
	rig_run(rig);
	check_eq_uint(rig_pair(rig, 0, 1)->tail, HCCLD_PAIR_SLOTS);
	rig_submit(rig, 1, 0, receives, 40, 0);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t got;

		memcpy(&got, rig->ranks[1].memory + i * 64, 4);
		check_eq_uint(got, i);
	}
	rig_free(rig);
}

/* Receives 1 and 2 of a pair on two streams: number 2 was issued on the stream that is looked at first. */
TEST(receives_commit_in_number_order_across_streams)
{
	struct rig *rig = rig_new(2, false);

	rig_submit(rig, 1, 1, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_run(rig);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 200, 100) }, 1, 0);
	rig_run(rig);
	memset(rig->ranks[0].memory, 1, 100);
	memset(rig->ranks[0].memory + 100, 2, 100);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100), SEND(1, 100, 100) }, 2, 0);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 1, 1) && rig_is_done(rig, 0, 0));
	check_eq_int(rig->ranks[1].memory[0], 1);
	check_eq_int(rig->ranks[1].memory[200], 2);
	rig_free(rig);
}

TEST(ranks_that_share_a_context)
{
	struct rig *rig = rig_new(4, true);

	for (uint32_t rank = 0; rank < 4; rank++) {
		memset(rig->ranks[rank].memory, (int)rank + 1, 70000);
		rig_submit(rig, rank, 0,
			   (struct rig_item[]){ SEND((rank + 1) % 4, 0, 70000), RECEIVE((rank + 3) % 4, 100000, 70000) }, 2, 0);
		rig_submit_barrier(rig, rank, 0);
		rig_submit(rig, rank, 1, (struct rig_item[]){ SEND((rank + 3) % 4, 0, 8), RECEIVE((rank + 1) % 4, 200000, 8) }, 2, 0);
	}
	rig_run(rig);
	for (uint32_t rank = 0; rank < 4; rank++) {
		check(rig_is_done(rig, rank, 0) && rig_is_done(rig, rank, 1));
		check_eq_int(rig->ranks[rank].memory[169999], (int)((rank + 3) % 4) + 1);
		check_eq_int(rig->ranks[rank].memory[200000], (int)((rank + 1) % 4) + 1);
	}
	rig_free(rig);
}

TEST(death_fails_both_directions_and_nobody_else)
{
	struct rig *rig = rig_new(3, false);

	rig_submit(rig, 0, 0, (struct rig_item[]){ RECEIVE(1, 0, 100) }, 1, 0);
	rig_submit(rig, 2, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_run(rig);
	die(rig, 1, MEMBER_DEAD);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 2, 0));
	check_eq_int(fault_of(rig, 0)->cause, CAUSE_PEER_DEAD);
	check_eq_uint(fault_of(rig, 0)->peer, 1);
	check_eq_int(fault_of(rig, 0)->peer_pid, 1001);
	check_eq_int(fault_of(rig, 2)->cause, CAUSE_PEER_DEAD);
	check_eq_uint(rig->comm.region->members[0].async, 2);
	check_eq_int(rig->comm.region->members[0].fault.cause, CAUSE_PEER_DEAD);
	rig_submit(rig, 0, 1, (struct rig_item[]){ SEND(2, 0, 100000) }, 1, 0);
	rig_submit(rig, 2, 1, (struct rig_item[]){ RECEIVE(0, 0, 100000) }, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 0, 1) && rig_is_done(rig, 2, 1));
	check_eq_uint(rig->ranks[2].streams[1]->fault_count, 0);
	rig_submit_barrier(rig, 2, 1);
	rig_run(rig);
	check(rig_is_done(rig, 2, 1));
	check_eq_int(rig->ranks[2].streams[1]->fault.cause, CAUSE_PEER_DEAD);
	rig_free(rig);
}

TEST(what_was_sent_inline_outlives_its_sender)
{
	struct rig *rig = rig_new(2, false);

	memset(rig->ranks[0].memory, 7, 40);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 40), SEND(1, 0, 41) }, 2, 0);
	rig_run(rig);
	die(rig, 0, MEMBER_LEFT);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 40) }, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_uint(rig->ranks[1].streams[0]->fault_count, 0);
	check_eq_int(rig->ranks[1].memory[39], 7);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 41) }, 1, 0);
	rig_run(rig);
	check_eq_int(fault_of(rig, 1)->cause, CAUSE_PEER_LEFT);
	rig_free(rig);
}

TEST(death_in_the_middle_of_a_large_copy)
{
	struct rig *rig = rig_new(2, false);
	struct engine_slice slice;

	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 1000000) }, 1, 0);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 1000000) }, 1, 0);
	engine_look(rig->engine, &rig->contexts[0]);
	engine_look(rig->engine, &rig->contexts[1]);
	check_eq_uint(engine_backlog(rig->engine), 1000000);
	check(engine_slice_next(rig->engine, &slice));
	rig->comm.region->members[0].exit = 9;
	atomic_store(&rig->comm.region->members[0].word, MEMBER_DEAD);
	check(!engine_rank_detach(rig->engine, &rig->ranks[0].session.ranks[0]));	/* a slice is out */
	engine_slice_done(rig->engine, &slice);
	check(engine_rank_detach(rig->engine, &rig->ranks[0].session.ranks[0]));
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_int(fault_of(rig, 1)->cause, CAUSE_PEER_DEAD);
	check_eq_uint(engine_backlog(rig->engine), 0);
	check_eq_uint(rig_pair(rig, 0, 1)->received, 0);
	rig_free(rig);
}

TEST(freed_source_fails_the_receive)
{
	struct rig *rig = rig_new(2, false);
	struct view_segment *segment = &rig->ranks[0].session.segments[0];

	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 5000) }, 1, 0);
	rig_run(rig);
	atomic_store(&segment->retired, 1);
	check(engine_segment_detach(rig->engine, &rig->ranks[0].session, rig->ranks[0].segment));
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 5000) }, 1, 0);
	rig_run(rig);
	check_eq_int(fault_of(rig, 1)->cause, CAUSE_PEER_MEMORY);
	check_eq_int(fault_of(rig, 0)->cause, CAUSE_PEER_GAVE_UP);
	rig_free(rig);
}

TEST(freed_segment_in_the_middle_of_a_copy_never_commits)
{
	struct rig *rig = rig_new(2, false);
	struct view_segment *segment = &rig->ranks[0].session.segments[0];
	struct engine_slice slice;

	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100000) }, 1, 0);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100000) }, 1, 0);
	engine_look(rig->engine, &rig->contexts[0]);
	engine_look(rig->engine, &rig->contexts[1]);
	check(engine_slice_next(rig->engine, &slice));
	atomic_store(&segment->retired, 1);
	engine_slice_done(rig->engine, &slice);	/* all bytes copied, but the word is there first */
	rig_run(rig);
	check_eq_uint(rig_pair(rig, 0, 1)->received, 0);
	check_eq_int(fault_of(rig, 1)->cause, CAUSE_PEER_MEMORY);
	rig_free(rig);
}

TEST(exec_timeout_names_the_peer_and_ends_both_sides)
{
	struct rig *rig = rig_new(2, false);
	struct stream_ring *ring = rig->ranks[1].streams[0];

	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 5000) }, 1, 200);
	rig_run(rig);
	engine_check_timeouts(rig->engine, &rig->contexts[1], ring->head_since_ns + 199000000);
	rig_run(rig);
	check(!rig_is_done(rig, 1, 0));
	engine_check_timeouts(rig->engine, &rig->contexts[1], ring->head_since_ns + 201000000);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_int(fault_of(rig, 1)->cause, CAUSE_EXEC_TIMEOUT);
	check_eq_uint(fault_of(rig, 1)->waited_ms, 201);
	check_eq_uint(fault_of(rig, 1)->peer, 0);
	submit_one(rig, 0, (struct rig_item)SEND(1, 0, 5000));
	rig_run(rig);
	check_eq_int(fault_of(rig, 0)->cause, CAUSE_PEER_GAVE_UP);
	rig_free(rig);
}

TEST(barrier_times_out)
{
	struct rig *rig = rig_new(3, false);
	struct stream_ring *ring = rig->ranks[1].streams[0];
	struct task *task = &ring->slots[0].task;

	rig_submit_barrier(rig, 1, 0);
	task->timeout_ms = 100;
	rig_submit_barrier(rig, 0, 0);
	rig_run(rig);
	engine_check_timeouts(rig->engine, &rig->contexts[1], ring->head_since_ns + 101000000);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_int(fault_of(rig, 1)->cause, CAUSE_EXEC_TIMEOUT);
	check_eq_uint(fault_of(rig, 1)->peer, 2);
	check(!rig_is_done(rig, 0, 0));
	rig_submit_barrier(rig, 2, 0);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 2, 0));
	rig_free(rig);
}

TEST(mismatch_reaches_a_sender_that_has_completed)
{
	struct rig *rig = rig_new(2, false);

	submit_one(rig, 0, (struct rig_item)SEND(1, 0, 8));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	submit_one(rig, 1, (struct rig_item)RECEIVE(0, 0, 16));
	rig_run(rig);
	check_eq_int(fault_of(rig, 1)->cause, CAUSE_MISMATCH);
	check_eq_uint(rig->ranks[0].streams[0]->fault_count, 0);
	check_eq_uint(rig->comm.region->members[0].async, 2);
	check_eq_int(rig->comm.region->members[0].fault.cause, CAUSE_MISMATCH);
	check_eq_uint(rig->comm.region->members[0].fault.local_bytes, 8);
	check_eq_uint(rig->comm.region->members[0].fault.remote_bytes, 16);
	/* a failed pair stays failed */
	rig_submit(rig, 0, 1, (struct rig_item[]){ SEND(1, 0, 8) }, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 0, 1));
	check_eq_int(rig->ranks[0].streams[1]->fault.cause, CAUSE_MISMATCH);
	rig_free(rig);
}

TEST(types_of_equal_size_complete_with_one_warning)
{
	struct rig *rig = rig_new(2, false);

	for (int i = 0; i < 3; i++) {
		rig_submit(rig, 0, 0, (struct rig_item[]){ { ITEM_SEND, 1, 0, 400, 4 } }, 1, 0);
		rig_submit(rig, 1, 0, (struct rig_item[]){ { ITEM_RECEIVE, 0, 0, 400, 2 } }, 1, 0);
		rig_run(rig);
	}
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	check_eq_uint(rig->type_mismatches, 1);
	check_eq_uint(rig->ranks[1].streams[0]->fault_count, 0);
	rig_free(rig);
}

/* What a client may write into its own ring: the executor must refuse it, and go on for the others. */
static void lie(void (*spoil)(struct stream_ring *ring, struct item *item, struct task *task), bool expect_liar)
{
	struct rig *rig = rig_new(3, false);
	struct stream_ring *ring = rig->ranks[0].streams[0];

	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100), SEND(1, 0, 100) }, 2, 0);
	spoil(ring, &ring->slots[1].item, &ring->slots[0].task);
	rig_submit(rig, 2, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(2, 0, 100) }, 1, 0);
	rig_run(rig);
	check_eq_uint(rig->liars, expect_liar);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 2, 0));
	rig_free(rig);
}

static void spoil_slot_count(struct stream_ring *ring, struct item *item, struct task *task) { task->slot_count = 0; }
static void spoil_slot_count_large(struct stream_ring *ring, struct item *item, struct task *task) { task->slot_count = 60000; }
static void spoil_item_count(struct stream_ring *ring, struct item *item, struct task *task) { task->item_count = 1u << 31; }
static void spoil_tail(struct stream_ring *ring, struct item *item, struct task *task) { ring->tail = 1ull << 40; }
static void spoil_tail_back(struct stream_ring *ring, struct item *item, struct task *task) { ring->tail = -5ull; }
static void spoil_kind(struct stream_ring *ring, struct item *item, struct task *task) { task->kind = 77; }
static void spoil_item_kind(struct stream_ring *ring, struct item *item, struct task *task) { item->kind = 77; }
static void spoil_lane_loop(struct stream_ring *ring, struct item *item, struct task *task) { item->next_lane = 0; }
static void spoil_next_loop(struct stream_ring *ring, struct item *item, struct task *task) { item->next = 0; }
static void spoil_next_far(struct stream_ring *ring, struct item *item, struct task *task) { item->next = 5000; }
static void spoil_peer(struct stream_ring *ring, struct item *item, struct task *task) { item->peer = 3; }
static void spoil_peer_self(struct stream_ring *ring, struct item *item, struct task *task) { item->peer = 0; }
static void spoil_lane_far(struct stream_ring *ring, struct item *item, struct task *task) { task->first_lane = 900; }
static void spoil_side(struct stream_ring *ring, struct item *item, struct task *task) { task->side = 99; }
static void spoil_number(struct stream_ring *ring, struct item *item, struct task *task) { item->number = 1000; }

TEST(liars_are_caught)
{
	lie(spoil_slot_count, true);
	lie(spoil_slot_count_large, true);
	lie(spoil_item_count, true);
	lie(spoil_tail, true);
	lie(spoil_tail_back, true);
	lie(spoil_kind, true);
	lie(spoil_item_kind, true);
	lie(spoil_lane_loop, true);
	lie(spoil_next_loop, true);
	lie(spoil_next_far, true);
	lie(spoil_peer, true);
	lie(spoil_peer_self, true);
	lie(spoil_lane_far, true);
	lie(spoil_side, true);
	lie(spoil_number, true);
}

static void spoil_segment(struct stream_ring *ring, struct item *item, struct task *task) { item->segment = 12345; }
static void spoil_offset(struct stream_ring *ring, struct item *item, struct task *task) { item->offset = -50ull; }
static void spoil_rank(struct stream_ring *ring, struct item *item, struct task *task) { task->rank = VIEW_ID(9, 9); }

TEST(places_outside_a_segment_are_never_touched)
{
	/* no lie that endangers anybody: the receiver finds nothing there, or the task is aborted */
	lie(spoil_segment, false);
	lie(spoil_offset, false);
	lie(spoil_rank, false);
}

TEST(large_copies_of_two_communicators_share)
{
	struct rig *rig = rig_new(2, false);
	struct view_flow *current = NULL, a = { .weight = 6 }, b = { .weight = 2 };
	uint32_t served_a = 0;

	fair_add(&current, &a);
	fair_add(&current, &b);
	for (int i = 0; i < 400; i++)
		served_a += fair_next(&current, HCCLD_SLICE) == &a;
	check_eq_uint(served_a, 300);
	/* short pieces, too, and never more than two rounds of the heavy one at a time */
	for (int i = 0, run = 0; i < 3200; i++) {
		bool is_a = fair_next(&current, HCCLD_SLICE / 8) == &a;

		served_a += is_a;
		run = is_a ? run + 1 : 0;
		check_lt_uint(run, 13);
	}
	check_eq_uint(served_a, 300 + 2400);
	fair_remove(&current, &a);
	check_eq_ptr(fair_next(&current, HCCLD_SLICE), &b);
	fair_remove(&current, &b);
	check_null(fair_next(&current, HCCLD_SLICE));
	rig_free(rig);
}

/* Tenants take turns whatever the number of their communicators. */
TEST(large_copies_of_two_tenants_share_by_weight)
{
	struct view_share *current = NULL, a = { .weight = 4 }, b = { .weight = 0 };
	uint32_t served_a = 0;

	fair_share_add(&current, &a);
	fair_share_add(&current, &b);
	for (int i = 0; i < 500; i++)
		served_a += fair_share_next(&current, HCCLD_SLICE) == &a;
	check_eq_uint(served_a, 400);
}

TEST(large_copies_of_two_tenants_share)
{
	struct view_share *current = NULL, a = { .weight = 1 }, b = { .weight = 1 };
	uint64_t bytes_a = 0;

	fair_share_add(&current, &a);
	fair_share_add(&current, &b);
	/* pieces of different sizes: what counts is bytes */
	for (int i = 0; i < 800; i++) {
		uint64_t bytes = i % 3 ? HCCLD_SLICE : HCCLD_SLICE / 8;

		if (fair_share_next(&current, bytes) == &a)
			bytes_a += bytes;
		else
			bytes_a -= bytes;
	}
	check_lt_uint(bytes_a + 4 * HCCLD_SLICE, 8 * HCCLD_SLICE);
	fair_share_remove(&current, &a);
	check_eq_ptr(fair_share_next(&current, 1), &b);
	fair_share_remove(&current, &b);
	check_null(fair_share_next(&current, 1));
}

/* A few steps at a time: what is left is left with its bit set, nothing is done twice or forgotten. */
static void run_in_steps(struct rig *rig, int64_t steps)
{
	for (uint32_t rounds = 0, idle = 0; idle < 2; rounds++) {
		uint32_t i = rounds % 2;
		int64_t used;

		check_lt_uint(rounds, 1000000);
		if (!(atomic_load(rig->contexts[i].bit_word) & rig->contexts[i].bit)) {
			idle++;
			continue;
		}
		idle = 0;
		engine_look_for(rig->engine, &rig->contexts[i], steps, &used);
		check_gt_int(used, 0);
	}
}

TEST(a_visit_ends_with_its_steps)
{
	enum { ITEMS = 28 };

	for (int64_t steps = 1; steps < 300; steps += 7) {
		struct rig *rig = rig_new(2, false);
		struct rig_item items[2][ITEMS];

		/* copies have a lane each; sends and receives one lane; on two streams of each rank */
		for (uint32_t i = 0; i < ITEMS; i++) {
			items[0][i] = (struct rig_item){ ITEM_COPY, 100000 + i * 16, 300000 + i * 16, 16, 0 };
			items[1][i] = (struct rig_item){ ITEM_COPY, 100000 + i * 16, 400000 + i * 16, 16, 0 };
		}
		for (uint32_t rank = 0; rank < 2; rank++) {
			memset(rig->ranks[rank].memory + 100000, 'x', ITEMS * 16);
			rig_submit(rig, rank, 0, items[rank], ITEMS, 0);
			rig_submit(rig, rank, 1, (struct rig_item[]){ SEND(1 - rank, 0, 100), RECEIVE(1 - rank, 200, 100) }, 2, 0);
			rig_submit(rig, rank, 0, (struct rig_item[]){ SEND(1 - rank, 0, 30), RECEIVE(1 - rank, 400, 30) }, 2, 0);
		}
		run_in_steps(rig, steps);
		for (uint32_t rank = 0; rank < 2; rank++) {
			check(rig_is_done(rig, rank, 0) && rig_is_done(rig, rank, 1));
			check_eq_mem(rig->ranks[rank].memory + (rank ? 400000 : 300000), rig->ranks[rank].memory + 100000,
				     ITEMS * 16);
		}
		check_eq_uint(rig->liars, 0);
		rig_free(rig);
	}
}

TEST(a_stream_that_goes_fails_what_it_has_issued)
{
	struct rig *rig = rig_new(2, false);

	rig_submit(rig, 0, 0, (struct rig_item[]){ RECEIVE(1, 0, 100) }, 1, 0);
	rig_run(rig);
	check(engine_stream_detach(rig->engine, &rig->contexts[0], rig->ranks[0].streams[0]));
	rig_submit(rig, 1, 0, (struct rig_item[]){ SEND(0, 0, 100) }, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_int(fault_of(rig, 1)->cause, CAUSE_PEER_GAVE_UP);
	rig_free(rig);
}

/* Its streams are taken away before its ranks; its peers hear of the death all the same. */
TEST(death_is_the_cause_also_for_what_the_dead_had_posted)
{
	struct rig *rig = rig_new(2, false);

	rig_submit(rig, 1, 0, (struct rig_item[]){ SEND(0, 0, 4000) }, 1, 0);
	rig_run(rig);
	rig->comm.region->members[1].exit = 9;
	atomic_store(&rig->comm.region->members[1].word, MEMBER_DEAD);
	check(engine_stream_detach(rig->engine, &rig->contexts[1], rig->ranks[1].streams[0]));
	check(engine_rank_detach(rig->engine, &rig->ranks[1].session.ranks[1]));
	rig_submit(rig, 0, 0, (struct rig_item[]){ RECEIVE(1, 0, 4000) }, 1, 0);
	rig_run(rig);
	check_eq_int(fault_of(rig, 0)->cause, CAUSE_PEER_DEAD);
	check_eq_int(fault_of(rig, 0)->peer_exit, 9);
	rig_free(rig);
}

/* Words are stored before memory goes, and memory before streams: a look in between must not find a reason of its own. */
TEST(who_is_going_is_not_told_that_its_memory_is_none)
{
	struct rig *rig = rig_new(2, false);

	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 20) }, 1, 0);
	rig_run(rig);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 20) }, 1, 0);
	engine_look(rig->engine, &rig->contexts[0]);
	/* arrived; rank 1 ends before it is looked at */
	atomic_store(&rig->comm.region->members[1].word, MEMBER_DEAD);
	atomic_store(&rig->ranks[1].session.segments[VIEW_INDEX(rig->ranks[1].segment)].retired, 1);
	rig_run(rig);
	check_eq_uint(rig->ranks[1].streams[0]->fault_count, 0);
	check_eq_uint(rig_pair(rig, 0, 1)->failed, 0);
	check(!rig_is_done(rig, 1, 0));
	check(engine_stream_detach(rig->engine, &rig->contexts[1], rig->ranks[1].streams[0]));
	check(engine_rank_detach(rig->engine, &rig->ranks[1].session.ranks[1]));
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 20) }, 1, 0);
	rig_run(rig);
	check_eq_int(fault_of(rig, 0)->cause, CAUSE_PEER_DEAD);
	rig_free(rig);
}

/* Any process of the tenant can write the yard: a neighbour's context must not stay where a liar has put it. */
TEST(lies_in_the_yard_are_mended)
{
	static const enum context_state lies[] = { CONTEXT_IDLE, CONTEXT_LEFT, CONTEXT_CLIENT, CONTEXT_ENGINE, CONTEXT_SLEEP };
	struct rig *rig = rig_new(2, false);
	struct yard_context *words = rig->contexts[1].words;

	for (uint32_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
		rig_run(rig);
		rig_put(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
		atomic_store(&words->state, yard_next(atomic_load(&words->state), lies[i]));
		rig_run(rig);
		check(!rig_is_done(rig, 1, 0));
		engine_mend(rig->engine, &rig->contexts[1]);
		rig_run(rig);
		check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 0, 0));
	}
	/* parked, but its peers are told not to ring */
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_run(rig);
	check_eq_int(yard_kind(atomic_load(&words->state)), CONTEXT_PARKED);
	engine_mend(rig->engine, &rig->contexts[1]);
	check_eq_int(yard_kind(atomic_load(&words->state)), CONTEXT_PARKED);	/* an honest one is left alone */
	atomic_store(&words->asleep, 0);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_run(rig);
	check(!rig_is_done(rig, 1, 0));
	engine_mend(rig->engine, &rig->contexts[1]);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 0, 0));
	/* the same, but the lie has been taken back by the time somebody looks */
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_run(rig);
	atomic_store(&words->asleep, 0);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_run(rig);
	atomic_store(&words->asleep, 1);
	check(!rig_is_done(rig, 1, 0));
	engine_mend(rig->engine, &rig->contexts[1]);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 0, 0));
	rig_free(rig);
}
