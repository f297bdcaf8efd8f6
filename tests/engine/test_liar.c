/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor and clients that write into shared memory what no library would: tasks that cost without end, words that
 * change while they are read, memory that goes away under an operation. Nobody else may be hurt, and nothing may take long.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/executor.h"
#include "proto/clock.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define SEND(peer_, offset_, bytes_) { ITEM_SEND, peer_, offset_, bytes_, 7 }
#define RECEIVE(peer_, offset_, bytes_) { ITEM_RECEIVE, peer_, offset_, bytes_, 7 }
#define SIDE_INDEX 100u
#define SIDE_ID VIEW_ID(1, SIDE_INDEX)

/* A side buffer of @count items in the session of @rank. */
static struct item *side_new(struct rig *rig, uint32_t rank, uint32_t count)
{
	struct view_segment *segment = &rig->ranks[rank].session.segments[SIDE_INDEX];
	struct item *items = calloc(count, sizeof(*items));

	check_ptr(items);
	segment->base = (unsigned char *)items;
	segment->size = count * sizeof(*items);
	segment->kind = 2;
	atomic_store(&segment->id, SIDE_ID);
	return items;
}

/* A batch whose items are in the side buffer. */
static void side_submit(struct rig *rig, uint32_t rank, uint32_t count)
{
	struct stream_ring *ring = rig->ranks[rank].streams[0];
	uint64_t tail = atomic_load(&ring->tail);

	ring->slots[tail % HCCLD_STREAM_SLOTS].task = (struct task){ .kind = TASK_BATCH,
								      .slot_count = 1,
								      .item_count = count,
								      .rank = rig->ranks[rank].handle,
								      .side = SIDE_ID };
	atomic_store(&ring->tail, tail + 1);
	rig_notify(rig, rig->ranks[rank].context);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* However many lanes are too old: a look at ages ends some, the next one goes on there. Without a limit a million of them took 100 ms. */
TEST(time_outs_of_many_lanes_take_several_looks)
{
	const uint32_t count = 100000;
	struct rig *rig = rig_new(3, false);
	struct item *items = side_new(rig, 0, count);
	uint32_t looks = 0;

	for (uint32_t i = 0; i < count; i++) {
		bool is_last = i + 1 == count;

		items[i] = (struct item){ .kind = ITEM_RECEIVE, .peer = is_last ? 2 : 1, .bytes = 8, .segment = rig->ranks[0].segment,
					  .next = LANE_END, .next_lane = is_last ? LANE_END : i + 1 };
		items[i].issue = items[i].done = i;
	}
	side_submit(rig, 0, count);
	rig->ranks[0].streams[0]->slots[0].task.timeout_ms = 1;
	rig_run(rig);
	while (!rig_pair(rig, 2, 0)->failed && looks < 100)
		engine_check_timeouts(rig->engine, &rig->contexts[0], clock_now_ns() + 1000000000u + looks++);
	check(looks > 3 && looks < 10);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && !rig->contexts[0].broken);
	rig_free(rig);
	free(items);
}

/* As registry/suspend.c. */
static void suspend(struct rig *rig, uint32_t rank)
{
	struct comm_region *region = rig->comm.region;

	atomic_store(&region->members[rank].suspended_at, atomic_fetch_add(&region->suspensions, 1) + 1);
	atomic_fetch_add(&region->members[rank].epoch, 1);
	check(engine_rank_suspend(rig->engine, &rig->ranks[rank].session.ranks[rank]));
}

/* Rank 1 waits for what rank 0 has never sent. */
static void check_receive_failed(struct rig *rig)
{
	const struct stream_ring *ring = rig->ranks[1].streams[1];

	rig_run(rig);
	check(rig_is_done(rig, 1, 1));
	check_eq_uint(ring->fault_count, 1);
	check_eq_uint(ring->fault.cause, CAUSE_SUSPENDED);
}

/* Many items before it in the same look: the receive was left with its number, and found itself done when the pair was empty. */
TEST(a_receive_behind_a_million_items_fails_when_its_peer_is_suspended)
{
	const uint32_t count = (1 << 20) + 1000;
	struct rig *rig = rig_new(2, false);
	struct item *items = side_new(rig, 1, count);

	rig_submit(rig, 1, 1, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_run(rig);
	for (uint32_t i = 0; i < count; i++) {
		items[i] = (struct item){ .kind = ITEM_FILL, .bytes = 1, .segment = rig->ranks[1].segment, .offset = 4096,
					  .next = LANE_END, .next_lane = i + 1 == count ? LANE_END : i + 1 };
		items[i].issue = items[i].done = i;
	}
	side_submit(rig, 1, count);
	suspend(rig, 0);
	check_receive_failed(rig);
	rig_free(rig);
	free(items);
}

TEST(a_receive_fails_when_its_peer_is_suspended_whatever_the_yard_says)
{
	static const enum context_state states[] = { CONTEXT_IDLE, CONTEXT_CLIENT, CONTEXT_ENGINE, CONTEXT_PARKED, 99 };

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct rig *rig = rig_new(2, false);

		rig_submit(rig, 1, 1, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
		rig_run(rig);
		atomic_store(&rig->contexts[1].words->state, yard_next(0, states[i]));
		suspend(rig, 0);
		check_receive_failed(rig);
		rig_free(rig);
	}
}

/*
 * Two streams send to one peer; the second is destroyed, and its send fails. The receive that meets the first one fails too,
 * although it has the smaller number.
 */
TEST(an_earlier_number_fails_after_a_later_one)
{
	struct rig *rig = rig_new(2, false);

	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_run(rig);
	rig_submit(rig, 0, 1, (struct rig_item[]){ SEND(1, 200, 100) }, 1, 0);
	rig_run(rig);
	check(engine_stream_detach(rig->engine, rig->ranks[0].context, rig->ranks[0].streams[1]));
	check_eq_uint(rig_pair(rig, 0, 1)->failed, 2);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 50) }, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	check_eq_uint(rig_pair(rig, 0, 1)->failed, 1);
	check_eq_uint(rig->ranks[1].streams[0]->fault.cause, CAUSE_MISMATCH);
	check_eq_uint(rig->ranks[0].streams[0]->fault.cause, CAUSE_MISMATCH);
	rig_free(rig);
}

/* A stream is destroyed with several peers in its batch: each of them hears of it. */
TEST(all_lanes_of_a_destroyed_stream_fail)
{
	struct rig *rig = rig_new(4, false);

	rig_submit(rig, 0, 0, (struct rig_item[]){ RECEIVE(1, 0, 100), RECEIVE(2, 200, 100), SEND(3, 400, 100) }, 3, 0);
	rig_run(rig);
	check(engine_stream_detach(rig->engine, rig->ranks[0].context, rig->ranks[0].streams[0]));
	rig_submit(rig, 1, 0, (struct rig_item[]){ SEND(0, 0, 100) }, 1, 0);
	rig_submit(rig, 2, 0, (struct rig_item[]){ SEND(0, 0, 100) }, 1, 0);
	rig_submit(rig, 3, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_run(rig);
	for (uint32_t rank = 1; rank < 4; rank++) {
		check(rig_is_done(rig, rank, 0));
		check_eq_uint(rig->ranks[rank].streams[0]->fault.cause, CAUSE_PEER_GAVE_UP);
	}
	rig_free(rig);
}

/* Memory that was imported may begin at any byte: it holds no items. */
TEST(imported_memory_is_no_side_buffer)
{
	struct rig *rig = rig_new(2, false);
	struct view_segment *segment = &rig->ranks[0].session.segments[SIDE_INDEX];
	struct item *items = side_new(rig, 0, 2);

	segment->base++;
	segment->size--;
	segment->is_import = true;
	side_submit(rig, 0, 1);
	rig_run(rig);
	check_eq_uint(rig->liars, 1);
	check(!rig_is_done(rig, 0, 0));
	atomic_store(&segment->id, 0);
	free(items);
	rig_free(rig);
}

/* A program frees the side buffer of a copy that is under way. */
TEST(a_side_buffer_goes_under_a_copy)
{
	struct rig *rig = rig_new(2, false);
	struct view_segment *segment = &rig->ranks[0].session.segments[SIDE_INDEX];
	struct item *items = side_new(rig, 0, 2);
	struct engine_slice slice;

	items[0] = (struct item){ .kind = ITEM_FILL,
				  .peer = 3,
				  .bytes = 1 << 20,
				  .segment = rig->ranks[0].segment,
				  .next = LANE_END,
				  .next_lane = LANE_END };
	side_submit(rig, 0, 1);
	check(engine_look(rig->engine, rig->ranks[0].context));
	check(engine_slice_next(rig->engine, &slice));
	atomic_store(&segment->retired, 1);
	check(!engine_segment_detach(rig->engine, &rig->ranks[0].session, SIDE_ID));
	slice.lost = NULL;
	engine_slice_done(rig->engine, &slice);
	check(engine_segment_detach(rig->engine, &rig->ranks[0].session, SIDE_ID));
	/* nothing is left that would write to it */
	atomic_store(&segment->id, 0);
	free(items);
	check(!engine_slice_next(rig->engine, &slice));
	check_eq_uint(engine_backlog(rig->engine), 0);
	rig_free(rig);
}

/* Every item is the head of a lane, and every lane has all items behind it: half a million million steps. */
static void side_tangle(struct item *items, uint32_t count, enum item_kind kind)
{
	for (uint32_t i = 0; i < count; i++) {
		items[i] = (struct item){ .kind = (uint8_t)kind,
					  .peer = 1,
					  .bytes = 8,
					  .number = 1,
					  .next = i + 1 < count ? i + 1 : LANE_END,
					  .next_lane = i + 1 < count ? i + 1 : LANE_END };
		items[i].issue = items[i].done = i;
	}
}

static void tangle(enum item_kind kind)
{
	struct rig *rig = rig_new(3, false);
	struct item *items = side_new(rig, 0, HCCLD_BATCH_ITEMS_MAX);
	double since;

	/* number 1 of both directions has gone by */
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 8), RECEIVE(1, 8, 8) }, 2, 0);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 8), SEND(0, 8, 8) }, 2, 0);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	side_tangle(items, HCCLD_BATCH_ITEMS_MAX, kind);
	side_submit(rig, 0, HCCLD_BATCH_ITEMS_MAX);
	rig_submit(rig, 2, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(2, 0, 100) }, 1, 0);
	since = seconds();
	/* a new executor looks at it, too */
	rig_restart(rig);
	check_msg(seconds() - since < 2 * test_timeout_scale(), "recovery took %.1f s", seconds() - since);
	since = seconds();
	rig_run(rig);
	check_msg(seconds() - since < 2 * test_timeout_scale(), "it took %.1f s", seconds() - since);
	check_eq_uint(rig->liars, 1);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 2, 0));
	free(items);
	rig_free(rig);
}

TEST(tangled_sends_end_soon)
{
	tangle(ITEM_SEND);
}

TEST(tangled_receives_end_soon)
{
	tangle(ITEM_RECEIVE);
}

/* An honest batch as large as there can be is not taken for a lie. */
TEST(a_batch_of_many_items_is_honest)
{
	struct rig *rig = rig_new(2, false);
	uint32_t count = HCCLD_BATCH_ITEMS_MAX;

	for (uint32_t rank = 0; rank < 2; rank++) {
		struct item *items = side_new(rig, rank, count);

		for (uint32_t i = 0; i < count; i++)
			items[i] = (struct item){ .kind = rank ? ITEM_RECEIVE : ITEM_SEND,
						  .peer = 1 - rank,
						  .bytes = 8,
						  .segment = rig->ranks[rank].segment,
						  .offset = i % 1000 * 8,
						  .next = i + 1 < count ? i + 1 : LANE_END,
						  .next_lane = LANE_END };
		side_submit(rig, rank, count);
	}
	rig_run(rig);
	check_eq_uint(rig->liars, 0);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	for (uint32_t rank = 0; rank < 2; rank++)
		free(rig->ranks[rank].session.segments[SIDE_INDEX].base);
	rig_free(rig);
}

/* What another thread does to the words of one stream while the executor reads them. */
struct flip {
	struct rig *rig;
	struct stream_ring *ring;
	_Atomic bool stop;
};

static void *flip_offset(void *arg)
{
	struct flip *flip = arg;

	while (!atomic_load(&flip->stop)) {
		for (uint32_t i = 0; i < HCCLD_STREAM_SLOTS; i++) {
			struct item *item = &flip->ring->slots[i].item;

			if (item->kind == ITEM_RECEIVE)
				*(volatile uint64_t *)&item->offset = 1ull << 44;
		}
		for (uint32_t i = 0; i < HCCLD_STREAM_SLOTS; i++) {
			struct item *item = &flip->ring->slots[i].item;

			if (item->kind == ITEM_RECEIVE)
				*(volatile uint64_t *)&item->offset = 0;
		}
	}
	return NULL;
}

static void *flip_kind(void *arg)
{
	struct flip *flip = arg;

	for (uint8_t kind = 0; !atomic_load(&flip->stop); kind ^= 1)
		for (uint32_t i = 0; i < HCCLD_STREAM_SLOTS; i++) {
			struct item *item = &flip->ring->slots[i].item;

			if (item->kind == ITEM_SEND || item->kind == ITEM_RECEIVE)
				*(volatile uint8_t *)&item->kind = kind ? ITEM_SEND : ITEM_RECEIVE;
		}
	return NULL;
}

/* Rank 1 lies; what ranks 0 and 2 do with each other must be right, and rank 0 must not be taken for a liar. */
static void flip_run(void *(*flipper)(void *arg), uint64_t bytes, int rounds)
{
	struct rig *rig = rig_new(3, false);
	struct flip flip = { .rig = rig, .ring = rig->ranks[1].streams[0] };
	pthread_t thread;

	check_eq_int(pthread_create(&thread, NULL, flipper, &flip), 0);
	for (int i = 0; i < rounds && !rig->contexts[0].broken && !rig->contexts[2].broken; i++) {
		if (rig->contexts[1].broken) {
			/* it goes on lying under another name */
			rig->contexts[1].broken = false;
			atomic_store(&flip.ring->completed, atomic_load(&flip.ring->tail));
		}
		rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, bytes) }, 1, 0);
		if (rig_is_done(rig, 0, 0))
			rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, bytes) }, 1, 0);
		rig->ranks[0].memory[1 << 20] = (unsigned char)i;
		rig_submit(rig, 0, 1, (struct rig_item[]){ SEND(2, 1 << 20, 1) }, 1, 0);
		rig_submit(rig, 2, 0, (struct rig_item[]){ RECEIVE(0, 0, 1) }, 1, 0);
		rig_run(rig);
		check(rig_is_done(rig, 2, 0));
		check_eq_uint(rig->ranks[2].memory[0], (unsigned char)i);
		if (rig_pair(rig, 0, 1)->failed) {
			/* a new communicator */
			memset(rig_pair(rig, 0, 1), 0, PAIR_PLACE);
			atomic_store(&rig->ranks[0].streams[0]->completed, atomic_load(&rig->ranks[0].streams[0]->tail));
		}
		if (!rig_is_done(rig, 1, 0))
			atomic_store(&flip.ring->completed, atomic_load(&flip.ring->tail));
	}
	atomic_store(&flip.stop, true);
	pthread_join(thread, NULL);
	check(!rig->contexts[0].broken && !rig->contexts[2].broken);
	rig_free(rig);
}

TEST(an_offset_changes_under_a_large_receive)
{
	flip_run(flip_offset, 100000, 20000);
}

TEST(an_offset_changes_under_a_small_receive)
{
	flip_run(flip_offset, 8, 100000);
}

TEST(a_kind_changes_under_the_executor)
{
	flip_run(flip_kind, 8, 300000);
}
