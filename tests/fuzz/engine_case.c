/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor between a liar (rank 0) and two honest ranks, on plain memory (support/rig.h). The executor is built with its crash
 * points: at each of them the liar may change a word, as if it ran at the same time.
 */
#include "tests/fuzz/engine_case.h"

#include <stdatomic.h>
#include <string.h>

#include "engine/executor.h"
#include "proto/clock.h"
#include "tests/fuzz/input.h"
#include "tests/support/rig.h"

#define SIDE_INDEX 100u
#define SIDE_ID VIEW_ID(1, SIDE_INDEX)
#define SIDE_ITEMS 64u
#define CHANGES_MAX 32u
#define TASKS_MAX 6u
#define ROUNDS_MAX 100000u
#define HONEST_SMALL 100u
#define HONEST_LARGE 300000u

/* A word that is written when the executor has passed @delay further points. */
struct change {
	uint16_t delay;
	uint64_t value;
	uint8_t bytes;	/* how much of the word */
	unsigned char *at;
};

static struct rig *rig;
static struct item side[SIDE_ITEMS];
static struct change changes[CHANGES_MAX];
static uint32_t change_count, change_next;
static enum engine_target target;

void engine_crash_point(int point)
{
	while (change_next < change_count) {
		struct change *change = &changes[change_next];

		if (change->delay) {
			change->delay--;
			return;
		}
		for (unsigned int i = 0; i < change->bytes; i++)
			((volatile unsigned char *)change->at)[i] = (unsigned char)(change->value >> (8 * i));
		change_next++;
	}
}

/* ---- what the liar writes ---- */

static uint64_t some_segment(struct input *input)
{
	switch (input_byte(input) % 8) {
	case 0:
		return SIDE_ID;
	case 1:
		return rig->ranks[1].segment; /* an id of somebody else's session */
	case 2:
		return input_word(input, 8);
	case 3:
		return 0;
	default:
		return rig->ranks[0].segment;
	}
}

static void some_item(struct input *input, struct item *ret_item)
{
	static const uint8_t kinds[] = { ITEM_SEND, ITEM_RECEIVE, ITEM_SEND, ITEM_RECEIVE, ITEM_COPY, ITEM_SOURCE, ITEM_FILL };
	uint8_t kind = input_byte(input), peer = input_byte(input);
	struct item item = { .kind = kind < 240 ? kinds[kind % sizeof(kinds)] : kind,
			     .data_type = input_byte(input),
			     .peer = peer < 250 ? peer % 4 : (uint32_t)input_size(input),
			     .bytes = input_size(input),
			     .segment = some_segment(input),
			     .offset = input_size(input) };

	memcpy(ret_item, &item, sizeof(item));
}

/* Lanes as an honest client links them, or whatever the input says. */
static uint32_t link_items(struct input *input, struct item *items, uint32_t count)
{
	bool is_honest = input_byte(input) % 4;
	uint32_t first = LANE_END, last_head = LANE_END;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t before = LANE_END;

		items[i].next = items[i].next_lane = LANE_END;
		items[i].issue = items[i].done = i;
		if (!is_honest) {
			items[i].next = input_byte(input) % 2 ? i + 1 : (uint32_t)input_size(input);
			items[i].next_lane = input_byte(input) % 2 ? i + 1 : (uint32_t)input_size(input);
			items[i].issue = input_byte(input) % 2 ? i : (uint32_t)input_size(input);
			items[i].done = input_byte(input) % 2 ? i : (uint32_t)input_size(input);
			items[i].number = input_byte(input) % 2 ? 0 : input_size(input);
			items[i].state = (uint16_t)input_byte(input);
		}
		if (items[i].kind == ITEM_SOURCE)
			continue;
		for (uint32_t j = 0; j < i && (items[i].kind == ITEM_SEND || items[i].kind == ITEM_RECEIVE); j++)
			if (items[j].kind == items[i].kind && items[j].peer == items[i].peer)
				before = j;
		if (before != LANE_END) {
			items[before].next = is_honest ? i : items[before].next;
			continue;
		}
		if (last_head == LANE_END)
			first = i;
		else if (is_honest)
			items[last_head].next_lane = i;
		last_head = i;
	}
	return is_honest ? first : (uint32_t)input_byte(input) - 1;
}

static void put_task(struct input *input, struct stream_ring *ring)
{
	uint64_t tail = atomic_load(&ring->tail);
	uint8_t mode = input_byte(input);
	uint32_t count = input_byte(input) % 16;
	bool in_side = mode & 1;
	struct item items[16] = { 0 };
	struct task task = { .kind = mode & 2 ? TASK_BATCH : (uint8_t)(mode >> 6),
			     .slot_count = (uint16_t)(in_side ? 1 : count + 1),
			     .item_count = count,
			     .rank = rig->ranks[0].handle,
			     .side = in_side ? SIDE_ID : 0,
			     .timeout_ms = mode & 4 ? 1 : 0 };

	if (mode & 8) {
		task.slot_count = (uint16_t)input_size(input);
		task.item_count = (uint32_t)input_size(input);
		task.rank = input_byte(input) % 2 ? 0 : input_word(input, 8);
		task.side = some_segment(input);
		task.number = input_size(input);
		task.outcome = input_byte(input);
	}
	for (uint32_t i = 0; i < count; i++)
		some_item(input, &items[i]);
	task.first_lane = link_items(input, items, count);
	if (mode & 16)
		task.first_lane = (uint32_t)input_size(input);
	for (uint32_t i = 0; i < count; i++)
		memcpy(in_side ? &side[i] : &ring->slots[(tail + 1 + i) % HCCLD_STREAM_SLOTS].item, &items[i], sizeof(items[i]));
	memcpy(&ring->slots[tail % HCCLD_STREAM_SLOTS].task, &task, sizeof(task));
	atomic_store(&ring->tail, tail + task.slot_count % HCCLD_STREAM_SLOTS);
}

/* A word the liar can reach. */
static unsigned char *some_place(struct input *input)
{
	uint8_t which = input_byte(input);
	uint32_t word = (uint32_t)input_word(input, 2);

	if (target == TARGET_OFFERS) {
		struct pair_ring *pair = rig_pair(rig, 0, 1 + which % 2);
		/* the source's line, then the slots */
		size_t offset = which & 0x80 ? word % 32 : offsetof(struct pair_ring, slots) + word % (4 * sizeof(struct pair_offer));

		return (unsigned char *)pair + offset / 4 * 4;
	}
	if (which % 8 == 0)
		return (unsigned char *)side + word % (sizeof(side) - 8);
	if (which % 8 == 1) /* magic, tail, the executor's own words */
		return (unsigned char *)rig->ranks[0].streams[which / 8 % RIG_STREAMS] + word % 256 / 4 * 4;
	if (which % 8 == 2) /* the yard is everybody's */
		return (unsigned char *)rig->contexts[which / 8 % 3].words + word % sizeof(struct yard_context) / 4 * 4;
	return (unsigned char *)rig->ranks[0].streams[which / 8 % RIG_STREAMS]->slots + word % (32 * sizeof(union stream_slot));
}

static void read_changes(struct input *input)
{
	change_count = input_byte(input) % CHANGES_MAX;
	change_next = 0;
	for (uint32_t i = 0; i < change_count; i++) {
		uint8_t delay = input_byte(input);

		changes[i].at = some_place(input);
		changes[i].delay = delay < 200 ? delay % 16 : delay;
		changes[i].bytes = (uint8_t)(1u << delay % 4);
		changes[i].value = input_size(input);
	}
}

/* An offer that the executor did not make: @slot of the pair from rank 0 to rank 1 or 2. */
static void put_offer(struct input *input)
{
	struct pair_ring *pair = rig_pair(rig, 0, 1 + input_byte(input) % 2);
	uint64_t tail = atomic_load(&pair->tail);
	struct pair_offer offer = { .number = input_byte(input) % 8 ? tail + 1 : input_size(input),
				    .bytes = input_size(input),
				    .data_type = input_byte(input),
				    .where = input_byte(input) % 4 };

	if (offer.where == OFFER_SEGMENT) {
		offer.segment = some_segment(input);
		offer.offset = input_size(input);
	} else {
		for (unsigned int i = 0; i < HCCLD_INLINE_MAX; i++)
			offer.payload[i] = input_byte(input);
	}
	memcpy(&pair->slots[tail % HCCLD_PAIR_SLOTS], &offer, sizeof(offer));
	atomic_store(&pair->sent, tail + 1);
	atomic_store(&pair->tail, tail + 1);
}

/* ---- what honest ranks do ---- */

static bool honest_has_room(uint32_t rank)
{
	const struct stream_ring *ring = rig->ranks[rank].streams[1];

	return atomic_load(&ring->tail) - atomic_load(&ring->completed) < 64;
}

static void honest_with_liar(struct input *input)
{
	static const uint64_t sizes[] = { 0, 1, 8, 40, 41, 100, 4096, 32768, 32769, 300000 };
	uint32_t rank = 1 + input_byte(input) % 2;
	uint8_t size = input_byte(input);
	struct rig_item item = { size & 0x80 ? ITEM_SEND : ITEM_RECEIVE, 0, 2 << 20,
				 size & 0x40 ? input_size(input) % RIG_MEMORY / 2 : sizes[size % 10], 7 };

	if (honest_has_room(rank))
		rig_submit(rig, rank, 1, &item, 1, input_byte(input) % 2);
}

static void honest_barrier(void)
{
	if (!honest_has_room(1) || !honest_has_room(2))
		return;
	rig_submit_barrier(rig, 1, 1);
	rig_submit_barrier(rig, 2, 1);
}

static void honest_exchange(void)
{
	memset(rig->ranks[1].memory, 0x5a, HONEST_SMALL);
	memset(rig->ranks[1].memory + (1 << 20), 0xa5, HONEST_LARGE);
	memset(rig->ranks[2].memory, 0, HONEST_SMALL);
	memset(rig->ranks[2].memory + (1 << 20), 0, HONEST_LARGE);
	rig_submit(rig, 1, 0, (struct rig_item[]){ { ITEM_SEND, 2, 0, HONEST_SMALL, 7 }, { ITEM_SEND, 2, 1 << 20, HONEST_LARGE, 7 } }, 2, 0);
	rig_submit(rig, 2, 0, (struct rig_item[]){ { ITEM_RECEIVE, 1, 0, HONEST_SMALL, 7 }, { ITEM_RECEIVE, 1, 1 << 20, HONEST_LARGE, 7 } }, 2, 0);
}

static void honest_check(void)
{
	insist(rig_is_done(rig, 1, 0) && rig_is_done(rig, 2, 0));
	insist(atomic_load(&rig->ranks[1].streams[0]->fault_count) == 0 && atomic_load(&rig->ranks[2].streams[0]->fault_count) == 0);
	for (uint32_t i = 0; i < HONEST_SMALL; i++)
		insist(rig->ranks[2].memory[i] == 0x5a);
	for (uint32_t i = 0; i < HONEST_LARGE; i += 997)
		insist(rig->ranks[2].memory[(1 << 20) + i] == 0xa5);
}

/* ---- the run ---- */

static bool slice_run(void)
{
	struct engine_slice slice;

	if (!engine_slice_next(rig->engine, &slice))
		return false;
	if (slice.source)
		memmove(slice.destination, slice.source, slice.bytes);
	else
		memset(slice.destination, slice.value, slice.bytes);
	slice.lost = NULL;
	engine_slice_done(rig->engine, &slice);
	return true;
}

/* Until nothing moves; the liar's context may have something for ever. A heartbeat now and then. */
static void run(uint32_t rounds)
{
	bool worked = true;

	for (uint32_t round = 0; (worked || round % 16) && round < rounds; round++) {
		if (round % 16 == 0)
			for (uint32_t i = 0; i < rig->size; i++)
				engine_mend(&rig->contexts[i]);
		worked = slice_run();
		for (uint32_t i = 0; i < rig->size; i++)
			if (atomic_load(rig->contexts[i].bit_word) & rig->contexts[i].bit)
				worked |= engine_look(rig->engine, &rig->contexts[i]);
	}
}

static void step(struct input *input)
{
	uint8_t what = input_byte(input);

	switch (what % 12) {
	case 0:
	case 1:
	case 2:
		put_task(input, rig->ranks[0].streams[what / 16 % RIG_STREAMS]);
		rig_notify(rig, &rig->contexts[0]);
		break;
	case 3:
		read_changes(input);
		break;
	case 4:
	case 5:
		honest_with_liar(input);
		break;
	case 6:
		engine_check_timeouts(rig->engine, &rig->contexts[what / 16 % 3], clock_now_ns() + 2000000000ull);
		break;
	case 7:
		engine_mend(&rig->contexts[0]);
		break;
	case 8:
		if (target == TARGET_OFFERS)
			put_offer(input);
		else
			honest_barrier();
		break;
	case 9:
		rig_restart(rig);
		break;
	default:
		run(1 + what % 32);
	}
}

/* As the daemon takes a session away: words first, then the engine lets go. */
static void liar_ends(void)
{
	struct view_context *context = &rig->contexts[0];

	change_count = 0;
	atomic_store(&rig->comm.region->members[0].word, MEMBER_DEAD);
	for (uint32_t s = 0; s < RIG_STREAMS; s++)
		insist(engine_stream_detach(rig->engine, context, rig->ranks[0].streams[s]));
	insist(engine_rank_detach(rig->engine, &rig->ranks[0].session.ranks[0]));
	insist(engine_context_detach(rig->engine, context));
	for (uint32_t i = 0; i < 2; i++) {
		struct view_segment *segment = &rig->ranks[0].session.segments[i ? SIDE_INDEX : 0];

		atomic_store(&segment->retired, 1);
		insist(engine_segment_detach(rig->engine, &rig->ranks[0].session, atomic_load(&segment->id)));
	}
}

static void clear_rank(uint32_t index)
{
	struct rig_rank *rank = &rig->ranks[index];

	for (uint32_t s = 0; s < RIG_STREAMS; s++) {
		memset(rank->streams[s], 0, sizeof(*rank->streams[s]));
		atomic_store(&rank->context->streams[s], rank->streams[s]);
	}
	memset(rank->context->words, 0, sizeof(*rank->context->words));
	rank->context->dirty = rank->context->broken = rank->context->starved = false;
	atomic_store(&rank->session.segments[index].retired, 0);
	atomic_store(&rank->session.ranks[index].handle, rank->handle);
	atomic_store(&rig->comm.contexts[index], rank->context);
	memset(&rig->comm.region->members[index], 0, sizeof(rig->comm.region->members[index]));
	atomic_store(&rig->comm.region->members[index].word, MEMBER_ALIVE);
}

static void start(void)
{
	struct view_segment *segment;

	if (!rig)
		rig = rig_new(3, false);
	for (uint32_t i = 0; i < rig->size * rig->size; i++) {
		struct pair_ring *ring = atomic_load(&rig->comm.pairs[i].ring);

		if (ring)
			memset(ring, 0, sizeof(*ring));
		insist(!rig->comm.pairs[i].transfer);
	}
	atomic_store(&rig->comm.region->barriers_done, 0);
	memset(rig->yard->bits, 0, sizeof(rig->yard->bits));
	for (uint32_t i = 0; i < rig->size; i++)
		clear_rank(i);
	memset(side, 0, sizeof(side));
	segment = &rig->ranks[0].session.segments[SIDE_INDEX];
	segment->base = (unsigned char *)side;
	segment->size = sizeof(side);
	segment->kind = 2;
	atomic_store(&segment->retired, 0);
	atomic_store(&segment->id, SIDE_ID);
	change_count = 0;
}

void engine_case(const uint8_t *data, size_t size, enum engine_target which)
{
	struct input input = { data, size };

	target = which;
	start();
	honest_exchange();
	while (!input_is_empty(&input))
		step(&input);
	/* with the liar still there, which may have something to do for ever */
	for (uint32_t i = 0; i < ROUNDS_MAX && !(rig_is_done(rig, 1, 0) && rig_is_done(rig, 2, 0)); i += 32)
		run(32);
	honest_check();
	liar_ends();
	run(ROUNDS_MAX);
	insist(!rig->contexts[1].broken && !rig->contexts[2].broken);
	insist(engine_backlog(rig->engine) == 0 && !rig->engine->all);
	/* whatever the honest ranks had with the liar has ended */
	for (uint32_t rank = 1; rank < 3; rank++)
		for (uint32_t s = 0; s < RIG_STREAMS; s++)
			insist(rig_is_done(rig, rank, s));
}
