/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include <string.h>

#include "hcomm/hcomm_primitives.h"

#define LINES (STEPS_RANKS * STEPS_LINES)
#define BATCH 4u

struct touch {
	uint32_t line, at;	/* of all ranks; the how manieth step of the line */
	struct step_place place;
	uint64_t bytes;
	bool writes;
	uint32_t adds;		/* type and op, counted from 1, of a reduction; 0: none */
};

struct planner {
	struct steps *steps;
	struct plan_random random;
	uint32_t ranks, touch_count;
	struct touch touches[2 * STEPS_MAX];
	uint32_t done[LINES];			/* steps of each line */
	uint32_t seen[LINES][LINES];		/* how many of the other's the line comes after */
	uint32_t thread_notifies[LINES], channel_notifies[STEPS_RANKS][STEPS_RANKS], events[STEPS_RANKS];
	bool is_full;
};

static uint32_t width_of(uint8_t type)
{
	return type == HCOMM_DATA_TYPE_INT8 ? 1 : type == HCOMM_DATA_TYPE_INT16 ? 2 : 4;
}

static bool is_handleless(uint32_t line)
{
	return line % STEPS_LINES == STEPS_THREADS;
}

static void add(struct planner *planner, struct step step)
{
	const uint32_t line = step.rank * STEPS_LINES + step.line;

	if (planner->steps->count == STEPS_MAX) {
		planner->is_full = true;
		return;
	}
	planner->steps->steps[planner->steps->count++] = step;
	planner->seen[line][line] = ++planner->done[line];
}

/* ---- order ---- */

static void learn(struct planner *planner, uint32_t line, uint32_t from)
{
	for (uint32_t i = 0; i < LINES; i++)
		if (planner->seen[line][i] < planner->seen[from][i])
			planner->seen[line][i] = planner->seen[from][i];
}

/* The program has waited: whatever its rank queues from now on comes later. */
static void learn_all(struct planner *planner, uint32_t rank, uint32_t from)
{
	for (uint32_t i = 0; i < STEPS_LINES; i++)
		learn(planner, rank * STEPS_LINES + i, from);
}

static void order_in_rank(struct planner *planner, uint32_t line, uint32_t before)
{
	const uint32_t rank = line / STEPS_LINES;
	struct step step = { .rank = rank,
			     .line = before % STEPS_LINES,
			     .other_rank = rank,
			     .other_line = line % STEPS_LINES };
	uint32_t way = plan_below(&planner->random, 8);

	/* a record, and what waits for it: one alone would be left over */
	if (planner->steps->count + 2 > STEPS_MAX) {
		planner->is_full = true;
		return;
	}
	if (is_handleless(line) || is_handleless(before) || way == 0) {
		step.kind = STEP_HOST;
		add(planner, step);
		learn_all(planner, rank, before);
		return;
	}
	if (way == 1 && planner->events[rank] < STEPS_EVENTS) {
		step.kind = STEP_EVENT_RECORD;
		step.index = planner->events[rank]++;
	} else if (planner->thread_notifies[line] < STEPS_NOTIFIES) {
		step.kind = STEP_RECORD;
		step.index = planner->thread_notifies[line]++;
	} else {
		planner->is_full = true;
		return;
	}
	add(planner, step);
	step.kind = step.kind == STEP_RECORD ? STEP_WAIT : STEP_EVENT_WAIT;
	step.line = line % STEPS_LINES;
	step.other_line = before % STEPS_LINES;
	learn(planner, line, before);
	add(planner, step);
}

static void await_peer(struct planner *planner, uint32_t line, uint32_t before, uint32_t index)
{
	const uint32_t rank = line / STEPS_LINES;

	if (is_handleless(line))
		learn_all(planner, rank, before);
	else
		learn(planner, line, before);
	add(planner, (struct step){ .kind = STEP_WAIT,
				    .rank = rank,
				    .line = line % STEPS_LINES,
				    .other_rank = before / STEPS_LINES,
				    .other_line = before % STEPS_LINES,
				    .index = index });
}

static void order(struct planner *planner, uint32_t line, uint32_t before)
{
	const uint32_t rank = line / STEPS_LINES, other = before / STEPS_LINES;
	uint32_t index;

	if (rank == other) {
		order_in_rank(planner, line, before);
		return;
	}
	index = planner->channel_notifies[rank][other];
	if (index == STEPS_NOTIFIES || planner->steps->count + 2 > STEPS_MAX) {
		planner->is_full = true;
		return;
	}
	planner->channel_notifies[rank][other]++;
	add(planner, (struct step){ .kind = STEP_RECORD,
				    .rank = other,
				    .line = before % STEPS_LINES,
				    .other_rank = rank,
				    .other_line = line % STEPS_LINES,
				    .index = index });
	await_peer(planner, line, before, index);
}

static bool conflicts(const struct touch *a, const struct touch *b)
{
	const bool same = a->place.rank == b->place.rank && a->place.area == b->place.area;

	if (!same || (!a->writes && !b->writes) || a->place.offset >= b->place.offset + b->bytes ||
	    b->place.offset >= a->place.offset + a->bytes)
		return false;
	return !a->adds || a->adds != b->adds;
}

static void order_touch(struct planner *planner, uint32_t line, const struct touch *touch)
{
	uint32_t needed[LINES] = { 0 };

	for (uint32_t i = 0; i < planner->touch_count; i++)
		if (conflicts(&planner->touches[i], touch) && needed[planner->touches[i].line] < planner->touches[i].at)
			needed[planner->touches[i].line] = planner->touches[i].at;
	for (uint32_t i = 0; i < LINES && !planner->is_full; i++)
		if (needed[i] > planner->seen[line][i])
			order(planner, line, i);
}

static uint32_t touches_of(const struct step *step, struct touch touches[2])
{
	touches[0] = (struct touch){ .place = step->to, .bytes = step->bytes, .writes = true };
	if (step->reduces)
		touches[0].adds = 1 + step->type * 8u + step->op;
	touches[1] = (struct touch){ .place = step->from, .bytes = step->bytes };
	return step->kind == STEP_SET || step->kind == STEP_KERNEL ? 1 : 2;
}

/* ---- steps ---- */

static uint64_t draw_bytes(struct planner *planner, uint32_t width)
{
	uint32_t way = plan_below(&planner->random, 100);
	uint32_t limit = way < 60 ? 256 : way < 88 ? 8192 : STEPS_AREA;

	return (plan_below(&planner->random, limit / width) + 1) * (uint64_t)width;
}

static struct step_place draw_place(struct planner *planner, uint32_t rank, uint32_t areas, uint64_t bytes, uint32_t width, bool is_hot)
{
	uint64_t room = STEPS_AREA - bytes;

	/* most things meet near the beginning */
	if (room > 4096 && is_hot)
		room = 4096;
	return (struct step_place){ .rank = rank,
				    .area = plan_below(&planner->random, areas),
				    .offset = plan_below(&planner->random, (uint32_t)(room / width) + 1) * (uint64_t)width };
}

static void draw_reduction(struct planner *planner, struct step *step)
{
	static const uint8_t types[] = { HCOMM_DATA_TYPE_INT8, HCOMM_DATA_TYPE_INT16, HCOMM_DATA_TYPE_INT32, HCOMM_DATA_TYPE_INT32 };
	static const uint8_t ops[] = { HCOMM_REDUCE_SUM, HCOMM_REDUCE_SUM, HCOMM_REDUCE_SUM, HCOMM_REDUCE_MAX, HCOMM_REDUCE_MIN };

	step->type = types[plan_below(&planner->random, 4)];
	step->op = ops[plan_below(&planner->random, 5)];
	step->reduces = true;
}

static bool overlaps(const struct step *step)
{
	const uint64_t a = step->to.offset, b = step->from.offset;

	return step->to.rank == step->from.rank && step->to.area == step->from.area && (a < b ? b - a : a - b) < step->bytes;
}

/* @peer: the own rank, too. */
static struct step draw_step(struct planner *planner, uint32_t line, uint32_t peer)
{
	const uint32_t rank = line / STEPS_LINES;
	struct step step = { .kind = STEP_MOVE, .rank = rank, .line = line % STEPS_LINES, .other_rank = peer };
	bool is_hot = plan_chance(&planner->random, 60), writes = plan_chance(&planner->random, 60);
	uint32_t width;

	step.value = (uint8_t)plan_next(&planner->random);
	if (!is_handleless(line) && plan_chance(&planner->random, 45))
		draw_reduction(planner, &step);
	else if (peer == rank)
		step.by_stream = plan_chance(&planner->random, 30);
	if (step.by_stream && plan_chance(&planner->random, 60))
		step.kind = plan_chance(&planner->random, 50) ? STEP_SET : STEP_KERNEL;
	if (step.kind == STEP_KERNEL)
		step.index = 1 + plan_below(&planner->random, 4);
	width = step.reduces ? width_of(step.type) : 1;
	do {
		struct step_place own, remote;

		step.bytes = draw_bytes(planner, width);
		own = draw_place(planner, rank, STEPS_AREAS, step.bytes, width, is_hot);
		remote = draw_place(planner, peer, peer == rank ? STEPS_AREAS : STEPS_SHARED_AREAS, step.bytes, width, is_hot);
		step.to = writes ? remote : own;
		step.from = writes ? own : remote;
	} while (step.kind == STEP_MOVE && overlaps(&step));
	return step;
}

static void add_touch(struct planner *planner, uint32_t line, struct touch touch)
{
	touch.line = line;
	touch.at = planner->done[line];
	planner->touches[planner->touch_count++] = touch;
}

static void add_moves(struct planner *planner, struct step *steps, uint32_t count)
{
	const uint32_t line = steps[0].rank * STEPS_LINES + steps[0].line;
	struct touch touches[2];

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0, touch_count = touches_of(&steps[i], touches); k < touch_count; k++)
			order_touch(planner, line, &touches[k]);
	if (planner->is_full || planner->steps->count + 2 * count > STEPS_MAX) {
		planner->is_full = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t touch_count = touches_of(&steps[i], touches);

		steps[i].more = i + 1 < count;
		add(planner, steps[i]);
		for (uint32_t k = 0; k < touch_count; k++)
			add_touch(planner, line, touches[k]);
	}
}

/* What a write would be, as a message. Whoever has received it comes after what the sender did before. */
static void add_message(struct planner *planner, struct step step)
{
	const uint32_t sender = step.from.rank * STEPS_LINES, receiver = step.to.rank * STEPS_LINES;
	struct touch touches[2];

	/* messages are of device memory alone */
	step.from.area -= step.from.area == STEPS_HOST_AREA;
	step.to.area -= step.to.area == STEPS_HOST_AREA;
	step.kind = STEP_SEND;
	step.reduces = false;
	touches_of(&step, touches);
	order_touch(planner, receiver, &touches[0]);
	order_touch(planner, sender, &touches[1]);
	if (planner->is_full || planner->steps->count + 2 > STEPS_MAX) {
		planner->is_full = true;
		return;
	}
	step.rank = step.from.rank;
	step.other_rank = step.to.rank;
	step.line = step.other_line = 0;
	add(planner, step);
	add_touch(planner, sender, touches[1]);
	step.kind = STEP_RECEIVE;
	step.rank = step.to.rank;
	step.other_rank = step.from.rank;
	learn(planner, receiver, sender);
	add(planner, step);
	add_touch(planner, receiver, touches[0]);
}

/* Some writes to a peer bring a notify with them, for one of its lines. */
static void draw_notifies(struct planner *planner, struct step *steps, uint32_t count)
{
	const uint32_t rank = steps[0].rank, peer = steps[0].other_rank;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t *used = &planner->channel_notifies[peer][rank];

		if (peer == rank || steps[i].to.rank == rank || *used == STEPS_NOTIFIES || !plan_chance(&planner->random, 40))
			continue;
		steps[i].notifies = true;
		steps[i].index = (*used)++;
	}
}

static void await_notifies(struct planner *planner, const struct step *steps, uint32_t count)
{
	const uint32_t from = steps[0].rank * STEPS_LINES + steps[0].line;
	uint32_t *seen = &planner->seen[from][from];

	/* the notify says nothing of what comes after it in the batch */
	*seen -= count;
	for (uint32_t i = 0; i < count; i++) {
		++*seen;
		if (steps[i].notifies)
			await_peer(planner, steps[i].other_rank * STEPS_LINES + plan_below(&planner->random, STEPS_LINES), from, steps[i].index);
	}
}

void steps_plan(uint64_t seed, uint32_t window, uint32_t ranks, struct steps *ret_steps)
{
	struct planner planner = { .steps = ret_steps, .random = plan_random_of(seed, 11, window, 0), .ranks = ranks };
	const uint32_t wanted = 1 + plan_below(&planner.random, 120);

	ret_steps->count = 0;
	for (uint32_t made = 0; made < wanted && !planner.is_full;) {
		struct step steps[BATCH] = { 0 };
		uint32_t line = plan_below(&planner.random, ranks * STEPS_LINES), rank = line / STEPS_LINES, peer = rank, count = 1;

		if (is_handleless(line) || plan_chance(&planner.random, 60))
			while (peer == rank)
				peer = plan_below(&planner.random, ranks);
		if (peer != rank && !is_handleless(line) && plan_chance(&planner.random, 30))
			count = 2 + plan_below(&planner.random, BATCH - 1);
		for (uint32_t i = 0; i < count; i++)
			steps[i] = draw_step(&planner, line, peer);
		made += count;
		if (count == 1 && peer != rank && plan_chance(&planner.random, 15)) {
			add_message(&planner, steps[0]);
			continue;
		}
		draw_notifies(&planner, steps, count);
		add_moves(&planner, steps, count);
		if (!planner.is_full)
			await_notifies(&planner, steps, count);
	}
}

/* ---- the model ---- */

static int32_t load(const unsigned char *at, uint32_t width)
{
	int8_t byte;
	int16_t half;
	int32_t word;

	memcpy(&byte, at, 1);
	memcpy(&half, at, width > 1 ? 2 : 0);
	memcpy(&word, at, width > 2 ? 4 : 0);
	return width == 1 ? byte : width == 2 ? half : word;
}

static void reduce(unsigned char *to, const unsigned char *from, const struct step *step)
{
	const uint32_t width = width_of(step->type);

	for (uint64_t i = 0; i < step->bytes; i += width) {
		int32_t a = load(to + i, width), b = load(from + i, width), result = a;

		if (step->op == HCOMM_REDUCE_SUM)
			result = (int32_t)((uint32_t)a + (uint32_t)b);
		else if (step->op == HCOMM_REDUCE_MAX ? b > a : b < a)
			result = b;
		memcpy(to + i, &result, width); /* little-endian */
	}
}

void steps_apply(const struct steps *steps, unsigned char *memory)
{
	for (uint32_t i = 0; i < steps->count; i++) {
		const struct step *step = &steps->steps[i];
		unsigned char *to = steps_at(memory, step->to.rank, step->to.area) + step->to.offset;
		unsigned char *from = steps_at(memory, step->from.rank, step->from.area) + step->from.offset;

		if (step->kind == STEP_SET)
			memset(to, step->value, step->bytes);
		else if (step->kind == STEP_MOVE && step->reduces)
			reduce(to, from, step);
		else if (step->kind == STEP_KERNEL)
			for (uint64_t k = 0; k < step->bytes; k++)
				to[k] += step->value;
		else if (step->kind == STEP_MOVE || step->kind == STEP_RECEIVE)
			memcpy(to, from, step->bytes);
	}
}
