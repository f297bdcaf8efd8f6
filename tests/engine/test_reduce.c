/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions at the executor: memory of others, overlap, turns with others, and what a client may write in their place. */
#include <string.h>

#include "engine/executor.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define INT32 2u
#define FP32 4u
#define TO 0u
#define FROM (1u << 20)

static uint32_t *words_at(struct rig *rig, uint32_t rank, uint64_t offset)
{
	return (uint32_t *)(rig->ranks[rank].memory + offset);
}

static void fill(struct rig *rig, uint64_t bytes)
{
	for (uint32_t i = 0; i < bytes / 4; i++) {
		words_at(rig, 0, TO)[i] = i;
		words_at(rig, 0, FROM)[i] = 3 * i + 1;
	}
}

/* From nothing to several slices, and what is beside it stays. */
TEST(each_length)
{
	static const uint64_t lengths[] = { 0, 4, 64, REDUCE_SLICE - 4, REDUCE_SLICE, REDUCE_SLICE + 4, 3 * REDUCE_SLICE, 5 * REDUCE_SLICE + 100 };

	for (size_t n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
		struct rig *rig = rig_new(1, false);
		struct rig_reduce sum = { .to = TO, .from = FROM, .bytes = lengths[n], .type = INT32 };

		fill(rig, 32768);
		rig_submit_reduce(rig, 0, 0, &sum);
		rig_run(rig);
		check(rig_is_done(rig, 0, 0));
		check_eq_uint(rig->ranks[0].streams[0]->fault_count, 0);
		for (uint32_t i = 0; i < 8192; i++) {
			check_eq_uint(words_at(rig, 0, TO)[i], i < lengths[n] / 4 ? 4 * i + 1 : i);
			check_eq_uint(words_at(rig, 0, FROM)[i], 3 * i + 1);
		}
		rig_free(rig);
	}
}

/* One stream's after the other, each from the start: the scratch is of the task that it names. */
TEST(one_after_the_other)
{
	struct rig *rig = rig_new(1, false);
	struct rig_reduce sum = { .to = TO, .from = FROM, .bytes = 10000, .type = INT32 };

	fill(rig, 10000);
	for (uint32_t i = 0; i < 400; i++) {
		rig_submit_reduce(rig, 0, 0, &sum);
		rig_run(rig);
	}
	check(rig_is_done(rig, 0, 0));
	for (uint32_t i = 0; i < 2500; i++)
		check_eq_uint(words_at(rig, 0, TO)[i], i + 400 * (3 * i + 1));
	rig_free(rig);
}

TEST(from_another_session)
{
	struct rig *rig = rig_new(2, false);
	struct rig_reduce sum = { .to = TO, .from = FROM, .bytes = 8000, .type = INT32, .segment = rig_import(rig, 0, 1) };

	fill(rig, 8000);
	for (uint32_t i = 0; i < 2000; i++)
		words_at(rig, 1, FROM)[i] = 7;
	rig_submit_reduce(rig, 0, 0, &sum);
	rig_run(rig);
	for (uint32_t i = 0; i < 2000; i++)
		check_eq_uint(words_at(rig, 0, TO)[i], i + 7);
	/* and when the other one has taken it away */
	atomic_store(&rig->ranks[0].session.segments[VIEW_INDEX(sum.segment)].retired, 1);
	rig_submit_reduce(rig, 0, 0, &sum);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(rig->ranks[0].streams[0]->fault.cause, CAUSE_PEER_MEMORY);
	rig_free(rig);
}

/* Nothing is done, and the stream says why and goes on. */
static void refuse(const struct rig_reduce *reduce, enum cause cause, const char *expected)
{
	struct rig *rig = rig_new(1, false);
	struct stream_ring *ring = rig->ranks[0].streams[0];
	struct rig_item mark = { ITEM_FILL, 9, RIG_MEMORY - 100, 50, 7 };
	char text[256];

	fill(rig, 8192);
	rig_submit_reduce(rig, 0, 0, reduce);
	rig_submit(rig, 0, 0, &mark, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(ring->fault.cause, cause);
	check_eq_uint(ring->fault.direction, ITEM_REDUCE);
	fault_text(&ring->fault, NULL, text, sizeof(text));
	check_eq_str(text, expected);
	check_eq_int(rig->ranks[0].memory[RIG_MEMORY - 100], 9);
	for (uint32_t i = 0; i < 2048; i++)
		check(words_at(rig, 0, TO)[i] == i && words_at(rig, 0, FROM)[i] == 3 * i + 1);
	check_eq_uint(rig->liars, 0);
	rig_free(rig);
}

TEST(what_cannot_be_done)
{
	refuse(&(struct rig_reduce){ .to = TO, .from = TO + 4, .bytes = 8, .type = INT32 }, CAUSE_ARGUMENT,
	       "a reduction of 8 bytes (2 x int32) was not done: an argument is out of range");
	refuse(&(struct rig_reduce){ .to = TO + 4092, .from = TO, .bytes = 4096, .type = INT32 }, CAUSE_ARGUMENT,
	       "a reduction of 4096 bytes (1024 x int32) was not done: an argument is out of range");
	refuse(&(struct rig_reduce){ .to = TO, .from = FROM, .bytes = 6, .type = INT32 }, CAUSE_ARGUMENT,
	       "a reduction of 6 bytes (1 x int32) was not done: an argument is out of range");
	refuse(&(struct rig_reduce){ .to = TO, .from = FROM, .bytes = 64, .type = 12 }, CAUSE_NOT_SUPPORTED,
	       "a reduction of 64 bytes (4 x int128) was not done: the operator does not support this argument");
	refuse(&(struct rig_reduce){ .to = TO, .from = FROM, .bytes = 64, .type = INT32, .op = 4 }, CAUSE_NOT_SUPPORTED,
	       "a reduction of 64 bytes (16 x int32) was not done: the operator does not support this argument");
	refuse(&(struct rig_reduce){ .to = RIG_MEMORY - 60, .from = FROM, .bytes = 64, .type = INT32 }, CAUSE_NOT_DEVICE_MEMORY,
	       "a reduction of 64 bytes (16 x int32) was not done: the buffer is no device memory, or no longer: it was freed or unmapped, or who shared it has ended");
	refuse(&(struct rig_reduce){ .to = TO, .from = FROM, .bytes = 64, .segment = 12345, .type = INT32 }, CAUSE_NOT_DEVICE_MEMORY,
	       "a reduction of 64 bytes (16 x int32) was not done: the buffer is no device memory, or no longer: it was freed or unmapped, or who shared it has ended");
}

TEST(neighbours_do_not_overlap)
{
	struct rig *rig = rig_new(1, false);
	struct rig_reduce sum = { .to = TO, .from = TO + 4096, .bytes = 4096, .type = INT32 };

	fill(rig, 8192);
	rig_submit_reduce(rig, 0, 0, &sum);
	rig_run(rig);
	check_eq_uint(rig->ranks[0].streams[0]->fault_count, 0);
	for (uint32_t i = 0; i < 1024; i++)
		check(words_at(rig, 0, TO)[i] == 2 * i + 1024 && words_at(rig, 0, TO)[i + 1024] == i + 1024);
	rig_free(rig);
}

/* A long one is cut: the executor comes back for it, and others have their turns in between. */
TEST(others_have_their_turns)
{
	struct rig *rig = rig_new(2, false);
	struct rig_reduce sum = { .to = TO, .from = FROM, .bytes = FROM, .type = FP32 };
	struct rig_item send = { ITEM_SEND, 1, 2u << 20, 8, 7 }, receive = { ITEM_RECEIVE, 0, 0, 8, 7 };
	uint32_t looks = 0;

	rig_submit_reduce(rig, 0, 0, &sum);
	check(engine_look(rig->engine, &rig->contexts[0]));
	check(!rig_is_done(rig, 0, 0));
	check_eq_uint(yard_kind(rig->contexts[0].words->state), CONTEXT_LEFT);
	/* the own context's other stream, too */
	rig_submit(rig, 0, 1, &send, 1, 0);
	rig_submit(rig, 1, 0, &receive, 1, 0);
	check(engine_look(rig->engine, &rig->contexts[0]));
	check(engine_look(rig->engine, &rig->contexts[1]));
	check(rig_is_done(rig, 1, 0) && !rig_is_done(rig, 0, 0));
	while (!rig_is_done(rig, 0, 0) && ++looks < 100)
		(void)engine_look(rig->engine, &rig->contexts[0]);
	check(looks >= 1 && looks <= FROM / HCCLD_SLICE + 1);
	rig_free(rig);
}

/* With few steps it is little at a time, and never nothing. */
TEST(steps_bound_it)
{
	struct rig *rig = rig_new(1, false);
	struct rig_reduce sum = { .to = TO, .from = FROM, .bytes = 20 * REDUCE_SLICE, .type = INT32 };
	uint32_t looks = 0;
	int64_t steps;

	rig_submit_reduce(rig, 0, 0, &sum);
	while (!rig_is_done(rig, 0, 0) && ++looks < 100) {
		check(engine_look_for(rig->engine, &rig->contexts[0], 1, &steps));
		check(steps < 32);
	}
	check(looks >= 20 && looks <= 22);
	rig_free(rig);
}

/* It is taken out in the middle, and what comes after begins anew. */
TEST(dropped_in_the_middle)
{
	struct rig *rig = rig_new(1, false);
	struct rig_reduce sum = { .to = TO, .from = FROM, .bytes = FROM, .type = INT32 };

	fill(rig, FROM);
	rig_submit_reduce(rig, 0, 0, &sum);
	check(engine_look(rig->engine, &rig->contexts[0]));
	check(engine_stream_drop(rig->engine, &rig->contexts[0], rig->ranks[0].streams[0], false, CAUSE_STREAM_ABORTED));
	rig_run(rig);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(words_at(rig, 0, TO)[FROM / 4 - 1], FROM / 4 - 1);
	fill(rig, FROM);
	sum.bytes = 8000;
	rig_submit_reduce(rig, 0, 0, &sum);
	rig_run(rig);
	for (uint32_t i = 0; i < 2000; i++)
		check_eq_uint(words_at(rig, 0, TO)[i], 4 * i + 1);
	rig_free(rig);
}

static void spoil_kind(struct task *task, struct item *items) { items[0].kind = ITEM_COPY; }
static void spoil_source(struct task *task, struct item *items) { items[1].kind = ITEM_REDUCE; }
static void spoil_count(struct task *task, struct item *items) { task->item_count = 1; task->slot_count = 2; }
static void spoil_type(struct task *task, struct item *items) { items[0].data_type = 255; }
static void spoil_op(struct task *task, struct item *items) { items[0].peer = UINT32_MAX; }
static void spoil_bytes(struct task *task, struct item *items) { items[0].bytes = UINT64_MAX & ~3ull; }
static void spoil_offset(struct task *task, struct item *items) { items[1].offset = -8ull; }
static void spoil_segment(struct task *task, struct item *items) { items[1].segment = UINT64_MAX; }

static void lie(void (*spoil)(struct task *task, struct item *items), uint64_t step, uint32_t liars)
{
	struct rig *rig = rig_new(2, false);
	struct rig_reduce sum = { .to = TO, .from = FROM, .bytes = 8000, .type = INT32 };
	struct stream_ring *ring = rig->ranks[0].streams[0];

	fill(rig, 8192);
	rig_submit_reduce(rig, 0, 0, &sum);
	if (spoil)
		spoil(&ring->slots[0].task, &ring->slots[1].item);
	stream_scratch(ring)->position = step ? 1 : 0;
	stream_scratch(ring)->step = step;
	rig_submit_reduce(rig, 1, 0, &sum);
	rig_run(rig);
	check_eq_uint(rig->liars, liars);
	check(rig_is_done(rig, 1, 0));
	check(rig_is_done(rig, 0, 0) == !liars);
	/* nothing beyond its memory was written */
	for (uint32_t i = 2000; i < 2048; i++)
		check_eq_uint(words_at(rig, 0, TO)[i], i);
	rig_free(rig);
}

TEST(nonsense_ends_its_session_alone)
{
	lie(spoil_kind, 0, 1);
	lie(spoil_source, 0, 1);
	lie(spoil_count, 0, 1);
	lie(spoil_type, 0, 0);
	lie(spoil_op, 0, 0);
	lie(spoil_bytes, 0, 0);
	lie(spoil_offset, 0, 0);
	lie(spoil_segment, 0, 0);
	/* a scratch that says anything */
	for (uint64_t step = 1; step < 10; step++)
		lie(NULL, step, 0);
	lie(NULL, UINT64_MAX, 0);
	lie(NULL, UINT64_MAX / 2, 0);
}
