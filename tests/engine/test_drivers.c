/* SPDX-License-Identifier: Apache-2.0 */
/* The executor beside threads of clients that advance contexts, too: what it takes, what it leaves alone, what it forgets. */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/handover.h"
#include "engine/executor.h"
#include "tests/engine/drivers.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define LARGE 1000000u

static struct beacon beacon = { .awake = BEACON_AWAKE };

static bool look(struct rig *rig, uint32_t rank)
{
	return engine_look(rig->engine, &rig->contexts[rank]);
}

TEST(patient_is_taken_at_the_second_tick)
{
	struct rig *rig = rig_shared(2);

	rig_put(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 8) }, 1, 0);
	client_drives(rig, 0, CONTEXT_PATIENT);
	check(!engine_met_patient(rig->engine));
	check(!look(rig, 0) && !look(rig, 0));
	check(engine_met_patient(rig->engine));
	check(has_bit(rig, 0) && kind_of(rig, 0) == CONTEXT_PATIENT);
	/* its client was back in between: it is another one's patience */
	client_drives(rig, 0, CONTEXT_PATIENT);
	engine_tick(rig->engine);
	check(!look(rig, 0) && !rig_is_done(rig, 0, 0));
	engine_tick(rig->engine);
	check(look(rig, 0));
	check(rig_is_done(rig, 0, 0));
	check_eq_int(kind_of(rig, 0), CONTEXT_IDLE);
	check(!has_bit(rig, 0));
	rig_free(rig);
}

/* It submits again and again and never waits. */
TEST(patience_has_an_end)
{
	struct rig *rig = rig_shared(2);
	uint32_t ticks = 0;

	rig_put(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 8) }, 1, 0);
	for (client_drives(rig, 0, CONTEXT_PATIENT); !look(rig, 0); client_drives(rig, 0, CONTEXT_PATIENT)) {
		check(!look(rig, 0));
		check_lt_uint(ticks++, 100);
		engine_tick(rig->engine);
	}
	check_gt_uint(ticks, 10);
	check(rig_is_done(rig, 0, 0));
	/* one that waits now and then keeps it */
	for (uint32_t i = 0; i < 100; i++) {
		client_drives(rig, 0, CONTEXT_PATIENT);
		engine_tick(rig->engine);
		check(!look(rig, 0));
		if (i % 10 == 9) {
			client_stores(rig, 0, CONTEXT_CLIENT);
			engine_tick(rig->engine);
			check(!look(rig, 0));
			client_stores(rig, 0, CONTEXT_LEFT);
			atomic_fetch_and(rig->contexts[0].bit_word, ~rig->contexts[0].bit);
		}
	}
	rig_free(rig);
}

TEST(bits_of_contexts_that_others_advance_are_cleared)
{
	static const enum context_state kinds[] = { CONTEXT_CLIENT, CONTEXT_SLEEP, CONTEXT_IDLE };
	struct rig *rig = rig_shared(2);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		rig_put(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 8) }, 1, 0);
		client_stores(rig, 0, CONTEXT_CLIENT);
		if (kinds[i] != CONTEXT_CLIENT)
			client_stores(rig, 0, kinds[i]);
		atomic_fetch_or(rig->contexts[0].bit_word, rig->contexts[0].bit);
		check(!look(rig, 0));
		check(!has_bit(rig, 0) && kind_of(rig, 0) == kinds[i]);
		client_stores(rig, 0, CONTEXT_LEFT);
		check(look(rig, 0) && rig_is_done(rig, 0, 0));
	}
	rig_free(rig);
}

/* Two ranks; the second receives what is too large for one go. */
static void start_large(struct rig *rig)
{
	memset(rig->ranks[0].memory, 3, LARGE);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, LARGE) }, 1, 0);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, LARGE) }, 1, 0);
	check(look(rig, 0) && look(rig, 1));
	check_eq_uint(engine_backlog(rig->engine), LARGE);
}

TEST(a_context_with_copies_under_way_is_held)
{
	struct rig *rig = rig_shared(2);
	struct view_context *context = &rig->contexts[1];
	struct hccld_handover handover = { context->words, context->bit_word, context->bit, &beacon, -1 };
	struct engine_slice slice;

	start_large(rig);
	check_eq_int(kind_of(rig, 1), CONTEXT_HELD);
	check(!yard_is_free(atomic_load(&context->words->state)));
	check_eq_uint(atomic_load(&context->words->asleep), 1);
	check(engine_slice_next(rig->engine, &slice));
	/* a submission is seen, and leaves it HELD */
	check(!has_bit(rig, 1));
	rig_put(rig, 1, 1, (struct rig_item[]){ { ITEM_FILL, 9, LARGE, 50, 7 } }, 1, 0);
	hccld_handover_tell(&handover);
	check(has_bit(rig, 1) && kind_of(rig, 1) == CONTEXT_HELD);
	check(look(rig, 1));
	check(rig_is_done(rig, 1, 1) && kind_of(rig, 1) == CONTEXT_HELD);
	/* so is what a peer of the engine's publishes */
	rig_submit(rig, 0, 1, (struct rig_item[]){ SEND(1, 0, 8) }, 1, 0);
	check(look(rig, 0) && has_bit(rig, 1) && kind_of(rig, 1) == CONTEXT_HELD);
	memcpy(slice.destination, slice.source, slice.bytes);
	engine_slice_done(rig->engine, &slice);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 0, 0));
	check_eq_int(kind_of(rig, 1), CONTEXT_IDLE);
	check_eq_mem(rig->ranks[1].memory, rig->ranks[0].memory, LARGE);
	rig_free(rig);
}

TEST(a_copy_that_ends_otherwise_gives_the_context_back)
{
	struct rig *rig = rig_shared(2);
	struct engine_slice slice;

	/* one that nobody else hears of */
	rig_submit(rig, 1, 0, (struct rig_item[]){ { ITEM_FILL, 9, 0, 50000, 7 } }, 1, 0);
	rig_submit(rig, 1, 1, (struct rig_item[]){ RECEIVE(0, LARGE, 8) }, 1, 0);
	check(look(rig, 1) && kind_of(rig, 1) == CONTEXT_HELD);
	check(engine_slice_next(rig->engine, &slice));
	check(!engine_stream_detach(rig->engine, &rig->contexts[1], rig->ranks[1].streams[0]));
	check(kind_of(rig, 1) == CONTEXT_HELD);
	engine_slice_done(rig->engine, &slice);
	check(engine_stream_detach(rig->engine, &rig->contexts[1], rig->ranks[1].streams[0]));
	rig_run(rig);
	check_eq_uint(rig->contexts[1].transfers, 0);
	check_eq_int(kind_of(rig, 1), CONTEXT_PARKED);
	rig_free(rig);
}

/* A bit that is set is seen without the eventfd only by an engine that looks all the time. */
TEST(who_tells_wakes_an_engine_that_is_not_busy)
{
	static const struct {
		enum beacon_awake awake;
		int result;
	} cases[] = { { BEACON_ASLEEP, 0 }, { BEACON_PATROL, 0 }, { BEACON_AWAKE, -1 } };
	static const enum context_state kinds[] = { CONTEXT_IDLE, CONTEXT_PARKED, CONTEXT_SLEEP, CONTEXT_PATIENT, CONTEXT_HELD };
	struct rig *rig = rig_shared(2);
	struct view_context *context = &rig->contexts[0];
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct hccld_handover handover = { context->words, context->bit_word, context->bit, &beacon, fd };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			eventfd_t count;

			beacon.awake = cases[i].awake;
			atomic_store(context->bit_word, 0);
			atomic_store(&context->words->state, yard_next(atomic_load(&context->words->state), kinds[k]));
			hccld_handover_tell(&handover);
			check_eq_int(eventfd_read(fd, &count), cases[i].result);
			check(has_bit(rig, 0));
			check_eq_int(kind_of(rig, 0), kinds[k] == CONTEXT_HELD ? CONTEXT_HELD : CONTEXT_LEFT);
		}
	close(fd);
	rig_free(rig);
}

/* Before clients may drive it is PARKED, which those of older releases know; it must be HELD before the first may. */
TEST(a_context_with_copies_is_held_from_when_clients_may_drive)
{
	struct rig *rig = rig_new(2, false);

	start_large(rig);
	check_eq_int(kind_of(rig, 1), CONTEXT_PARKED);
	engine_set_direct(rig->engine, true);
	for (uint32_t i = 0; i < 2; i++)
		engine_share(rig->engine, &rig->contexts[i]);
	check_eq_int(kind_of(rig, 1), CONTEXT_HELD);
	check_eq_int(kind_of(rig, 0), CONTEXT_PARKED);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 0, 0));
	rig->ranks[1].session.never_drives = true;
	start_large(rig);
	check_eq_int(kind_of(rig, 1), CONTEXT_PARKED);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 0, 0));
	rig_free(rig);
}

TEST(what_a_client_declines_is_the_engines_until_a_task_is_completed)
{
	struct rig *rig = rig_shared(2);

	rig_put(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_put(rig, 1, 1, (struct rig_item[]){ RECEIVE(0, 200, 100) }, 1, 0);
	client_drives(rig, 1, CONTEXT_HELD);
	check(look(rig, 1));
	check(!has_bit(rig, 1) && kind_of(rig, 1) == CONTEXT_HELD);
	engine_mend(rig->engine, &rig->contexts[1]);
	check(has_bit(rig, 1) && look(rig, 1) && kind_of(rig, 1) == CONTEXT_HELD);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_run(rig);
	check_eq_int(kind_of(rig, 1), CONTEXT_PARKED);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 1, 1));
	rig_free(rig);
}

TEST(who_sleeps_is_left_asleep)
{
	struct rig *rig = rig_shared(2);
	struct yard_context *words = rig->contexts[1].words;

	rig_put(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	atomic_store(&words->sleepers, 1);
	client_drives(rig, 1, CONTEXT_LEFT);
	check(look(rig, 1) && kind_of(rig, 1) == CONTEXT_SLEEP);
	check_eq_uint(atomic_load(&words->asleep), 1);
	engine_mend(rig->engine, &rig->contexts[1]);
	check_eq_int(kind_of(rig, 1), CONTEXT_SLEEP);
	/* the engine drives what it rings itself; the sleeper hears of its task */
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_uint(atomic_load(&words->news), 1);
	/* nobody sleeps: it is a lie, or he has gone */
	rig_put(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	atomic_store(&words->sleepers, 0);
	client_drives(rig, 1, CONTEXT_SLEEP);
	engine_mend(rig->engine, &rig->contexts[1]);
	check_eq_int(kind_of(rig, 1), CONTEXT_LEFT);
	/* it may not know what SLEEP is */
	rig->ranks[1].session.never_drives = true;
	atomic_store(&words->sleepers, 1);
	check(look(rig, 1) && kind_of(rig, 1) == CONTEXT_PARKED);
	rig_free(rig);
}

TEST(mending_and_ages_leave_a_client_alone)
{
	struct rig *rig = rig_shared(2);
	struct stream_ring *ring = rig->ranks[1].streams[0];
	uint64_t state;

	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 5000) }, 1, 200);
	rig_run(rig);
	client_stores(rig, 1, CONTEXT_CLIENT);
	state = atomic_load(&rig->contexts[1].words->state);
	engine_mend(rig->engine, &rig->contexts[1]);
	engine_check_timeouts(rig->engine, &rig->contexts[1], ring->head_since_ns + 10000000000u);
	check_eq_uint(atomic_load(&rig->contexts[1].words->state), state);
	check(!has_bit(rig, 1));
	check_eq_uint(rig_pair(rig, 0, 1)->failed, 0);
	/* when it has gone to sleep its time is over */
	client_stores(rig, 1, CONTEXT_SLEEP);
	engine_check_timeouts(rig->engine, &rig->contexts[1], ring->head_since_ns + 199000000u);
	check_eq_int(kind_of(rig, 1), CONTEXT_SLEEP);
	engine_check_timeouts(rig->engine, &rig->contexts[1], ring->head_since_ns + 201000000u);
	check(has_bit(rig, 1) && kind_of(rig, 1) == CONTEXT_LEFT);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_int(ring->fault.cause, CAUSE_EXEC_TIMEOUT);
	rig_free(rig);
}

TEST(a_new_executor_leaves_a_client_alone)
{
	struct rig *rig = rig_new(3, false);
	struct pair_ring *ring = rig_pair(rig, 0, 1), *other = rig_pair(rig, 0, 2);
	uint64_t state;

	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_submit(rig, 2, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_run(rig);
	check_eq_uint(ring->posted + other->posted, 2);
	/* what its owner is about to write */
	client_stores(rig, 1, CONTEXT_CLIENT);
	ring->posted = 0;
	other->posted = 0;
	state = atomic_load(&rig->contexts[1].words->state);
	rig_restart(rig);
	check_eq_uint(atomic_load(&rig->contexts[1].words->state), state);
	check(!has_bit(rig, 1));
	check_eq_uint(ring->posted, 0);
	check_eq_uint(other->posted, 1);
	check(has_bit(rig, 2) && kind_of(rig, 2) == CONTEXT_LEFT);
	check_eq_uint(atomic_load(&rig->contexts[1].words->news), 1);
	/* it knows from that that there are such clients */
	engine_mend(rig->engine, &rig->contexts[1]);
	check_eq_uint(atomic_load(&rig->contexts[1].words->state), state);
	ring->posted = 1;
	client_stores(rig, 1, CONTEXT_LEFT);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100), SEND(2, 0, 100) }, 2, 0);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0) && rig_is_done(rig, 2, 0));
	rig_free(rig);
}

/* An old executor may have been killed in the middle of its second look (R4). */
TEST(what_was_held_is_recovered)
{
	struct rig *rig = rig_new(2, false);
	struct pair_ring *ring = rig_pair(rig, 0, 1);

	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_run(rig);
	atomic_store(&rig->contexts[1].words->state, yard_next(atomic_load(&rig->contexts[1].words->state), CONTEXT_HELD));
	ring->posted = 0;
	rig_restart(rig);
	check_eq_uint(ring->posted, 1);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	rig_free(rig);
}

/* Lanes that were looked at before the cut may be others by now. */
TEST(a_cut_is_forgotten_when_a_client_has_driven)
{
	struct rig *rig = rig_shared(2);
	struct view_context *context = &rig->contexts[0];
	unsigned char *memory = rig->ranks[0].memory;
	struct rig_item fills[20];
	struct item *first = &rig->ranks[0].streams[0]->slots[1].item;
	int64_t steps;

	for (uint32_t i = 0; i < 20; i++)
		fills[i] = (struct rig_item){ ITEM_FILL, 1 + i, i * 16, 16, 7 };
	rig_submit(rig, 0, 0, fills, 20, 0);
	engine_look_for(rig->engine, context, 10, &steps);
	check_eq_ptr(context->cut_ring, rig->ranks[0].streams[0]);
	check(context->cut_lane > 1);
	check_eq_int(memory[0], 1);
	/* from here on it goes on in the middle */
	memset(memory, 0, 16);
	atomic_store(&first->done, 0);
	engine_look_for(rig->engine, context, 10, &steps);
	check_eq_int(memory[0], 0);
	check_eq_int(kind_of(rig, 0), CONTEXT_LEFT);
	client_drives(rig, 0, CONTEXT_LEFT);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_int(memory[0], 1);
	rig_free(rig);
}

/* ---- a peer that publishes between the last look at a pair and the store of the state ---- */

static struct rig *hooked;
static uint32_t hook_calls, hook_asleep;

static void publish(void)
{
	struct pair_ring *ring = rig_pair(hooked, 0, 1);
	struct pair_offer *slot = &ring->slots[0];

	if (hook_calls++)
		return;
	*slot = (struct pair_offer){ .number = 1, .bytes = 8, .data_type = 7, .where = OFFER_INLINE };
	memset(slot->payload, 5, 8);
	atomic_store(&ring->sent, 1);
	atomic_store(&ring->tail, 1);
	atomic_thread_fence(memory_order_seq_cst);
	hook_asleep = atomic_load(&hooked->contexts[1].words->asleep);
}

static const void *nothing_lost(void)
{
	return NULL;
}

TEST(what_a_peer_publishes_at_the_last_moment_is_seen)
{
	struct engine_host host = { .guard_begin = publish, .guard_end = nothing_lost };
	struct rig *rig = rig_new(2, false);

	hooked = rig;
	engine_free(rig->engine);
	check_eq_int(engine_new(&host, 8, &rig->engine), 0);
	engine_set_direct(rig->engine, true);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 8) }, 1, 0);
	/* the receive has found no offer when the hook is called */
	check(look(rig, 1));
	check_gt_uint(hook_calls, 1);
	check_eq_uint(hook_asleep, 0);
	check(rig_is_done(rig, 1, 0));
	check_eq_int(rig->ranks[1].memory[7], 5);
	rig_free(rig);
}

/* ... and its bit, if it came a little later, counts whatever the context has become. */
TEST(a_bit_that_was_meant_for_a_held_context_is_honoured)
{
	struct rig *rig = rig_shared(2);
	struct pair_ring *ring = rig_pair(rig, 0, 1);

	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 8) }, 1, 0);
	rig_run(rig);
	check_eq_int(kind_of(rig, 1), CONTEXT_PARKED);
	ring->slots[0] = (struct pair_offer){ .number = 1, .bytes = 8, .data_type = 7, .where = OFFER_INLINE };
	ring->sent = ring->tail = 1;
	atomic_fetch_or(rig->contexts[1].bit_word, rig->contexts[1].bit);
	check(look(rig, 1) && rig_is_done(rig, 1, 0));
	rig_free(rig);
}

/* Too many lanes for a second look in one go: they are looked at now and then, not all the time. */
TEST(a_batch_that_is_too_long_for_a_second_look_is_polled)
{
	enum { LANES = 6000 };
	struct rig *rig = rig_shared(2);
	struct view_segment *segment = &rig->ranks[1].session.segments[100];
	struct item *items = calloc(LANES, sizeof(*items));
	struct stream_ring *ring = rig->ranks[1].streams[0];
	int64_t steps;

	segment->base = (unsigned char *)items;
	segment->size = LANES * sizeof(*items);
	segment->kind = 2;
	atomic_store(&segment->id, VIEW_ID(1, 100));
	/* no client links them so, but it may */
	for (uint32_t i = 0; i < LANES; i++) {
		items[i] = (struct item){ .kind = ITEM_RECEIVE, .peer = 0, .bytes = 8, .segment = rig->ranks[1].segment, .next = LANE_END,
					  .next_lane = i + 1 == LANES ? LANE_END : i + 1 };
		items[i].issue = items[i].done = i;
	}
	ring->slots[0].task = (struct task){ .kind = TASK_BATCH, .slot_count = 1, .item_count = LANES, .rank = rig->ranks[1].handle,
					     .side = VIEW_ID(1, 100) };
	atomic_store(&ring->tail, 1);
	rig_notify(rig, &rig->contexts[1]);
	for (uint32_t looks = 0; has_bit(rig, 1); looks++) {
		check_lt_uint(looks, 1000);
		engine_look_for(rig->engine, &rig->contexts[1], 64, &steps);
	}
	check_eq_int(kind_of(rig, 1), CONTEXT_PARKED);
	check(engine_poll(rig->engine) && has_bit(rig, 1));
	rig_free(rig);
	free(items);
}
