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
#include "proto/status.h"
#include "tests/fuzz/input.h"
#include "tests/support/rig.h"

#define SIDE_INDEX 100u
#define SIDE_ID VIEW_ID(1, SIDE_INDEX)
#define SIDE_ITEMS 64u
#define IMPORT_INDEX 101u	/* memory of rank 1, from a byte on that is no word's first */
#define IMPORT_ID VIEW_ID(1, IMPORT_INDEX)
#define IMPORT_OFFSET ((3u << 20) + 4)
#define CHANGES_MAX 32u
#define TASKS_MAX 6u
#define ROUNDS_MAX 100000u

/* A word that is written when the executor has passed @delay further points. */
struct change {
	uint16_t delay;
	uint64_t value;
	uint8_t bytes;	/* how much of the word */
	unsigned char *at;
};

static struct rig *rig;
static struct view_share share;
static struct item side[SIDE_ITEMS];
static struct change changes[CHANGES_MAX];
static uint32_t change_count, change_next;
static enum engine_target target;
static bool is_truncated;	/* the liar's memory, whose pages are gone */

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

uint64_t liar_segment_id(struct input *input)
{
	switch (input_byte(input) % 8) {
	case 0:
		return SIDE_ID;
	case 1:
		return rig->ranks[1].segment; /* an id of somebody else's session */
	case 2:
		return input_word(input, 8);
	case 3:
		return rig->ranks[0].notifies;
	case 4:
		return IMPORT_ID;
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
			     .segment = liar_segment_id(input),
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

/* Of the rank as it is, or as it was, or as it will be. */
static uint32_t some_epoch(struct input *input)
{
	uint8_t mode = input_byte(input);
	uint32_t epoch = atomic_load(&rig->comm.region->members[0].epoch);

	return mode < 192 ? epoch : mode < 240 ? epoch - mode % 4 : (uint32_t)input_size(input);
}

/* An event, a host function, a word: as an honest client writes it, or with lies. */
static void put_meeting(struct input *input, struct stream_ring *ring)
{
	uint64_t tail = atomic_load(&ring->tail);
	uint8_t mode = input_byte(input), place = input_byte(input);
	struct item item = { .kind = ITEM_PLACE,
			     .data_type = place / 16 % 4,
			     .segment = mode & 0x40 ? liar_segment_id(input) : rig->ranks[0].segment,
			     .offset = place & 0x40 ? input_size(input) : place % 16 * 8 };
	struct task task = { .kind = TASK_RECORD + mode % 5,
			     .flags = mode & 8 ? TASK_NO_BLOCK : 0,
			     .timeout_ms = mode & 16,
			     .first_lane = LANE_END };

	atomic_init(&item.number, place & 0x80 ? input_size(input) : place % 8);
	task.item_count = task.kind != TASK_HOST;
	task.slot_count = (uint16_t)(1 + task.item_count);
	if (mode & 0x80) {
		uint8_t lies = input_byte(input);

		item.kind = lies & 1 ? input_byte(input) % 8 : ITEM_PLACE;
		item.data_type = lies & 2 ? input_byte(input) : item.data_type;
		task.item_count = lies & 4 ? (uint32_t)input_size(input) : task.item_count;
		task.slot_count = (uint16_t)(lies & 8 ? input_size(input) : task.item_count + 1);
		task.rank = lies & 16 ? rig->ranks[0].handle : 0;
		task.side = lies & 32 ? liar_segment_id(input) : 0;
		task.number = lies & 64 ? input_size(input) : 0;
		task.outcome = lies & 128;
	}
	if (task.side == SIDE_ID)
		memcpy(&side[0], &item, sizeof(item));
	memcpy(&ring->slots[(tail + 1) % HCCLD_STREAM_SLOTS].item, &item, sizeof(item));
	memcpy(&ring->slots[tail % HCCLD_STREAM_SLOTS].task, &task, sizeof(task));
	atomic_store(&ring->tail, tail + task.slot_count % HCCLD_STREAM_SLOTS);
}

/* A notify's record or wait, or a reduction: as an honest client writes it, or with lies. */
static void put_resource(struct input *input, struct stream_ring *ring)
{
	uint64_t tail = atomic_load(&ring->tail);
	uint8_t mode = input_byte(input), place = input_byte(input);
	struct task task = { .kind = TASK_NOTIFY_RECORD + mode % 3, .timeout_ms = mode & 16, .first_lane = LANE_END };
	bool reduces = task.kind == TASK_REDUCE;
	struct item items[2] = { { .kind = reduces ? ITEM_REDUCE : ITEM_PLACE, .peer = reduces ? place % 4 : mode & 8 ? 1 : 0 },
				 { .kind = ITEM_SOURCE } };

	items[0].data_type = reduces ? place / 4 % 12 : place / 16 % 5;
	items[0].segment = mode & 0x40 ? liar_segment_id(input) : reduces ? rig->ranks[0].segment : rig->ranks[0].notifies;
	items[0].offset = place & 0x80 ? input_size(input) : place % 8 * 64;
	atomic_init(&items[0].number, mode & 0x20 ? input_word(input, 8) : place % 4);
	if (reduces) {
		items[0].bytes = mode & 8 ? input_size(input) : 64u * input_byte(input);
		items[1].segment = mode & 0x20 ? liar_segment_id(input) : rig->ranks[0].segment;
		items[1].offset = input_size(input);
	}
	task.item_count = reduces ? 2 : 1;
	task.slot_count = (uint16_t)(1 + task.item_count);
	if (mode & 0x80) {
		uint8_t lies = input_byte(input);

		items[0].kind = lies & 1 ? input_byte(input) % 9 : items[0].kind;
		items[0].data_type = lies & 2 ? input_byte(input) : items[0].data_type;
		items[0].peer = lies & 4 ? (uint32_t)input_size(input) : items[0].peer;
		items[1].kind = lies & 8 ? input_byte(input) % 9 : items[1].kind;
		task.item_count = lies & 16 ? input_byte(input) % 4 : task.item_count;
		task.slot_count = (uint16_t)(lies & 32 ? input_byte(input) % 4 : task.item_count + 1);
		task.number = lies & 64 ? input_word(input, 8) : 0;
		task.outcome = lies & 128;
	}
	memcpy(&ring->slots[(tail + 1) % HCCLD_STREAM_SLOTS].item, &items[0], sizeof(items[0]));
	memcpy(&ring->slots[(tail + 2) % HCCLD_STREAM_SLOTS].item, &items[1], sizeof(items[1]));
	memcpy(&ring->slots[tail % HCCLD_STREAM_SLOTS].task, &task, sizeof(task));
	atomic_store(&ring->tail, tail + task.slot_count);
}

/* What its process says of host functions, and what it wants after a failure. */
static void put_words(struct input *input, struct stream_ring *ring)
{
	uint8_t mode = input_byte(input);
	uint64_t completed = atomic_load(&ring->completed);

	if (mode & 1)
		atomic_store(&ring->host_done, mode & 2 ? input_size(input) : completed + 1);
	if (mode & 4)
		atomic_store(&ring->stop_on_failure, mode & 8 ? input_byte(input) : 1);
	if (mode & 16)
		atomic_store(&ring->fault_seen, atomic_load(&ring->fault_count));
	if (mode & 32)
		atomic_store(&ring->stopped, 0);
	if (mode & 64)
		atomic_store(&session_host(rig->ranks[0].session.region)->sleepers, mode & 128);
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
			     .timeout_ms = mode & 4 ? 1 : 0,
			     .epoch = some_epoch(input) };

	if (mode & 8) {
		task.slot_count = (uint16_t)input_size(input);
		task.item_count = (uint32_t)input_size(input);
		task.rank = input_byte(input) % 2 ? 0 : input_word(input, 8);
		task.side = liar_segment_id(input);
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
		size_t offset;

		if (which & 0x40)
			return room_place(rig, which, word);
		offset = which & 0x80 ? word % 32 : offsetof(struct pair_ring, slots) + word % (4 * sizeof(struct pair_offer));

		return (unsigned char *)pair + offset / 4 * 4;
	}
	if (which % 8 == 0)
		return (unsigned char *)side + word % (sizeof(side) - 8);
	if (which % 8 == 1) /* magic, tail, the executor's own words */
		return (unsigned char *)rig->ranks[0].streams[which / 8 % RIG_STREAMS] +
		       word % offsetof(struct stream_ring, slots) / 4 * 4;
	if (which % 8 == 4) /* what a reduction has come to, and its result */
		return (unsigned char *)stream_scratch(rig->ranks[0].streams[which / 8 % RIG_STREAMS]) + word % 128 / 4 * 4;
	if (which % 8 == 3) /* events, values, notifies */
		return rig->ranks[0].memory + word % 512;
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

/* ---- the run ---- */

static bool is_of_liar(const void *address)
{
	return (uintptr_t)address - (uintptr_t)rig->ranks[0].memory < RIG_MEMORY;
}

static bool slice_run(void)
{
	struct engine_slice slice;

	if (!engine_slice_next(rig->engine, &slice))
		return false;
	if (slice.source)
		memmove(slice.destination, slice.source, slice.bytes);
	else
		memset(slice.destination, slice.value, slice.bytes);
	slice.lost = !is_truncated	      ? NULL :
		     is_of_liar(slice.source) ? slice.source :
		     is_of_liar(slice.destination) ? slice.destination :
						     NULL;
	engine_slice_done(rig->engine, &slice);
	return true;
}

static void beat(void)
{
	for (uint32_t i = 0; i < rig->size; i++) {
		engine_mend(rig->engine, &rig->contexts[i]);
		engine_wake_forgotten(&rig->contexts[i]);
	}
	engine_look_at_held(rig->engine);
	(void)engine_poll(rig->engine);
	(void)rig_host(rig);
}

/* Until nothing moves; the liar's context may have something for ever. A heartbeat now and then. */
static void run(uint32_t rounds)
{
	bool worked = true;

	for (uint32_t round = 0; (worked || round % 16) && round < rounds; round++) {
		if (round % 16 == 0)
			beat();
		worked = slice_run();
		for (uint32_t i = 0; i < rig->size; i++)
			if (atomic_load(rig->contexts[i].bit_word) & rig->contexts[i].bit)
				worked |= engine_look(rig->engine, &rig->contexts[i]);
	}
}

/* As registry/suspend.c: the words first. */
static void liar_suspends(bool is_suspended)
{
	struct comm_region *region = rig->comm.region;
	struct comm_member *member = &region->members[0];
	uint32_t epoch = atomic_load(&member->epoch);

	if ((epoch & 1) == is_suspended)
		return;
	if (is_suspended)
		atomic_store(&member->suspended_at, atomic_fetch_add(&region->suspensions, 1) + 1);
	else
		atomic_store(&member->resumed_at, atomic_load(&region->suspensions));
	atomic_store(&member->epoch, epoch + 1);
	if (is_suspended)
		insist(engine_rank_suspend(rig->engine, &rig->ranks[0].session.ranks[0]));
	else
		engine_rank_resume(rig->engine, &rig->ranks[0].session.ranks[0]);
}

static void liar_frees(uint32_t index)
{
	struct view_segment *segment = &rig->ranks[0].session.segments[index];

	atomic_store(&segment->retired, 1);
	insist(engine_segment_detach(rig->engine, &rig->ranks[0].session, atomic_load(&segment->id)));
}

/* What its process asks the daemon for, or does to its memory. */
static void liar_asks(struct input *input)
{
	uint8_t what = input_byte(input);

	switch (what % 8) {
	case 0:
	case 1:
		liar_suspends(what % 8);
		break;
	case 2:
		liar_frees(what & 0x80 ? SIDE_INDEX : 0);
		break;
	case 3:
		atomic_store(&share.pending_limit, input_size(input));
		break;
	case 4: /* an export of rank 1 ends */
		atomic_store(&rig->ranks[0].session.segments[IMPORT_INDEX].retired, 1);
		insist(engine_memory_detach(rig->engine, rig->ranks[1].memory + IMPORT_OFFSET, RIG_MEMORY - IMPORT_OFFSET));
		break;
	case 5:
		is_truncated = true;
		break;
	case 7:
		room_grow(rig, what / 8);
		break;
	default:
		insist(engine_stream_drop(rig->engine, &rig->contexts[0], rig->ranks[0].streams[what / 8 % RIG_STREAMS], what & 0x20,
					  CAUSE_STREAM_ABORTED));
	}
}

static void restart(void)
{
	/* private to the executor, which counts them again */
	memset(&share, 0, sizeof(share));
	for (uint32_t i = 0; i < rig->size * rig->size; i++)
		rig->comm.pairs[i].pending = 0;
	room_restart();
	rig_restart(rig);
}

static void step(struct input *input)
{
	uint8_t what = input_byte(input);

	switch (what % 16) {
	case 2:
		put_resource(input, rig->ranks[0].streams[what / 16 % RIG_STREAMS]);
		rig_notify(rig, &rig->contexts[0]);
		break;
	case 0:
	case 1:
		put_task(input, rig->ranks[0].streams[what / 16 % RIG_STREAMS]);
		rig_notify(rig, &rig->contexts[0]);
		break;
	case 3:
		read_changes(input);
		break;
	case 4:
	case 5:
		honest_with_liar(rig, input);
		break;
	case 6:
		engine_check_timeouts(rig->engine, &rig->contexts[what / 16 % 3], clock_now_ns() + 2000000000ull);
		break;
	case 7:
		engine_mend(rig->engine, &rig->contexts[0]);
		break;
	case 8:
		if (target == TARGET_OFFERS)
			room_put_offer(rig, input);
		else
			honest_barrier(rig);
		break;
	case 9:
		restart();
		break;
	case 10:
	case 11:
		put_meeting(input, rig->ranks[0].streams[what / 16 % RIG_STREAMS]);
		rig_notify(rig, &rig->contexts[0]);
		break;
	case 12:
		put_words(input, rig->ranks[0].streams[what / 16 % RIG_STREAMS]);
		rig_notify(rig, &rig->contexts[0]);
		break;
	case 13:
		liar_asks(input);
		break;
	case 14:
		honest_meeting(rig);
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
	liar_frees(0);
	liar_frees(SIDE_INDEX);
	liar_frees(IMPORT_INDEX);
}

static void clear_rank(uint32_t index)
{
	struct rig_rank *rank = &rig->ranks[index];

	for (uint32_t s = 0; s < RIG_STREAMS; s++) {
		memset(rank->streams[s], 0, SESSION_STREAM_STRIDE);
		atomic_store(&rank->context->streams[s], rank->streams[s]);
	}
	memset(rank->context->words, 0, sizeof(*rank->context->words));
	rank->context->dirty = rank->context->broken = rank->context->starved = rank->context->unrung = false;
	rank->context->watches = rank->context->polls = rank->context->awaits = false;
	rank->context->cut_ring = rank->context->late_ring = NULL;
	rank->context->share = &share;
	atomic_store(&rank->session.segments[index].retired, 0);
	atomic_store(&rank->session.ranks[index].handle, rank->handle);
	atomic_store(&rig->comm.contexts[index], rank->context);
	memset(&rig->comm.region->members[index], 0, sizeof(rig->comm.region->members[index]));
	atomic_store(&rig->comm.region->members[index].word, MEMBER_ALIVE);
}

static struct view_segment *liar_segment(uint32_t index, void *base, uint64_t size)
{
	struct view_segment *segment = &rig->ranks[0].session.segments[index];

	segment->base = base;
	segment->size = size;
	atomic_store(&segment->retired, 0);
	atomic_store(&segment->id, VIEW_ID(1, index));
	return segment;
}

static void start(void)
{
	if (!rig)
		rig = rig_new(3, false);
	for (uint32_t i = 0; i < rig->size * rig->size; i++) {
		struct pair_ring *ring = atomic_load(&rig->comm.pairs[i].ring);

		if (ring)
			memset(ring, 0, sizeof(*ring));
		insist(!rig->comm.pairs[i].transfer);
		rig->comm.pairs[i].pending = 0;
	}
	rig->comm.share = &share;
	atomic_store(&share.pending, 0);
	atomic_store(&share.pending_limit, 0);
	memset(rig->ranks[0].memory, 0, 4096);
	atomic_store(&rig->comm.region->suspensions, 0);
	atomic_store(&rig->comm.region->barriers_done, 0);
	memset(rig->yard->bits, 0, sizeof(rig->yard->bits));
	for (uint32_t i = 0; i < rig->size; i++)
		clear_rank(i);
	memset(side, 0, sizeof(side));
	liar_segment(SIDE_INDEX, side, sizeof(side))->kind = 2;
	liar_segment(IMPORT_INDEX, rig->ranks[1].memory + IMPORT_OFFSET, RIG_MEMORY - IMPORT_OFFSET)->is_import = true;
	is_truncated = false;
	change_count = 0;
}

void engine_case(const uint8_t *data, size_t size, enum engine_target which)
{
	struct input input = { data, size };

	target = which;
	start();
	room_start(rig, input_byte(&input));
	honest_exchange(rig);
	while (!input_is_empty(&input))
		step(&input);
	atomic_store(&share.pending_limit, 0);
	honest_receive(rig);
	/* with the liar still there, which may have something to do for ever */
	for (uint32_t i = 0; i < ROUNDS_MAX && !(rig_is_done(rig, 1, 0) && rig_is_done(rig, 2, 0)); i += 32)
		run(32);
	honest_check(rig);
	liar_ends();
	run(ROUNDS_MAX);
	insist(!rig->contexts[1].broken && !rig->contexts[2].broken);
	insist(engine_backlog(rig->engine) == 0 && !rig->engine->all && !rig->engine->held);
	/* whatever the honest ranks had with the liar has ended */
	while (honest_waits(rig)) {
		for (uint32_t i = 1; i < 3; i++)
			engine_check_timeouts(rig->engine, &rig->contexts[i], clock_now_ns() + 2000000000ull);
		run(ROUNDS_MAX);
	}
}
