/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills the executor at each of its numbered crash points, at each time it comes by, and lets a new executor go on from what is in
 * shared memory. Before that the counters of pairs and the cursors of lanes are overwritten: they must be rebuilt from `completed`, the
 * items' numbers and the commit words. Then every byte, every error and every counter must be what an undisturbed run gives.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/executor.h"
#include "proto/event.h"
#include "proto/notify.h"
#include "tests/support/rig.h"

static jmp_buf killed;
static int armed_point;
static uint32_t armed_count;

void engine_crash_point(int point);
void engine_crash_point(int point)
{
	if (armed_point == point && armed_count && --armed_count == 0)
		longjmp(killed, 1);
}

#define RANKS 3u
#define LARGE 300000u

static uint32_t failures;

static void expect(bool truth, const char *what, int point, uint32_t count)
{
	if (truth)
		return;
	failures++;
	fprintf(stderr, "point %d, time %u: %s\n", point, count, what);
}

/* sizes of the messages that each pair exchanges, in order */
static const uint32_t sizes[] = { 8, 40, 41, 3000, HCCLD_SMALL_COPY, LARGE, 17 };
#define MESSAGES (sizeof(sizes) / sizeof(sizes[0]))

static uint64_t message_offset(uint32_t message)
{
	uint64_t offset = 0;

	for (uint32_t i = 0; i < message; i++)
		offset += (sizes[i] + 63u) & ~63u;
	return offset;
}

static unsigned char pattern(uint32_t source, uint32_t destination, uint32_t message, uint64_t at)
{
	return (unsigned char)(source * 31 + destination * 17 + message * 7 + at * 13 + at / 251 + 1);
}

/* Places in a rank's memory. */
static uint64_t send_place(uint32_t message)
{
	return message_offset(message);
}

static uint64_t receive_place(uint32_t message)
{
	return 1000000 + message_offset(message);
}

/* Three ranks, everyone exchanges all messages with the next one; two streams; copies, a fill and barriers in between. */
static void submit(struct rig *rig)
{
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		uint32_t next = (rank + 1) % RANKS, previous = (rank + RANKS - 1) % RANKS;
		struct rig_item items[2 * MESSAGES];

		for (uint32_t m = 0; m < MESSAGES; m++)
			for (uint64_t i = 0, at = send_place(m); i < sizes[m]; i++)
				rig->ranks[rank].memory[at + i] = pattern(rank, next, m, i);
		/* the first messages one by one, on stream 0; the rest as one batch with duplicates */
		items[0] = (struct rig_item){ ITEM_SEND, next, send_place(0), sizes[0], 7 };
		items[1] = (struct rig_item){ ITEM_RECEIVE, previous, receive_place(0), sizes[0], 7 };
		rig_submit(rig, rank, 0, items, 2, 0);
		for (uint32_t m = 1; m < MESSAGES; m++) {
			items[2 * (m - 1)] = (struct rig_item){ ITEM_RECEIVE, previous, receive_place(m), sizes[m], 7 };
			items[2 * (m - 1) + 1] = (struct rig_item){ ITEM_SEND, next, send_place(m), sizes[m], 7 };
		}
		rig_submit(rig, rank, 0, items, 2 * (MESSAGES - 1), 0);
		rig_submit_barrier(rig, rank, 0);
		/* stream 1: a small and a large copy, a fill */
		items[0] = (struct rig_item){ ITEM_COPY, 0, 3300000, 100, 7 };
		items[1] = (struct rig_item){ ITEM_FILL, 0xa5, 3300200, 300, 7 };
		items[2] = (struct rig_item){ ITEM_COPY, 0, 3400000, 200000, 7 };
		rig_submit(rig, rank, 1, items, 3, 0);
		rig_submit_barrier(rig, rank, 0);
	}
}

static void check(struct rig *rig, int point, uint32_t count)
{
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		uint32_t previous = (rank + RANKS - 1) % RANKS;
		const unsigned char *memory = rig->ranks[rank].memory;
		struct pair_ring *in = rig_pair(rig, previous, rank);
		uint32_t bad = 0;

		expect(rig_is_done(rig, rank, 0) && rig_is_done(rig, rank, 1), "a stream is not done", point, count);
		for (uint32_t m = 0; m < MESSAGES; m++)
			for (uint64_t i = 0, at = receive_place(m); i < sizes[m]; i++)
				bad += memory[at + i] != pattern(previous, rank, m, i);
		expect(bad == 0, "wrong bytes were received", point, count);
		expect(!memcmp(memory + 3300000, memory, 100) && !memcmp(memory + 3400000, memory, 200000), "a copy is wrong", point,
		       count);
		for (uint32_t i = 0; i < 300; i++)
			bad += memory[3300200 + i] != 0xa5;
		expect(bad == 0, "a fill is wrong", point, count);
		expect(in->tail == MESSAGES && in->received == MESSAGES && in->sent == MESSAGES && in->posted == MESSAGES,
		       "a counter is not the number of messages", point, count);
		expect(!in->failed && !rig->ranks[rank].streams[0]->fault_count, "an error without a cause", point, count);
		expect(rig->comm.region->members[rank].barriers == 2, "barriers entered is not 2", point, count);
	}
	expect(rig->liars == 0, "the executor takes its own words for nonsense", point, count);
}

/* A mismatch: both ends fail, once, with the right cause, whatever happens in between. */
static void submit_mismatch(struct rig *rig)
{
	struct rig_item send = { ITEM_SEND, 1, 0, 5000, 7 }, receive = { ITEM_RECEIVE, 0, 0, 5001, 7 };

	rig_submit(rig, 0, 0, &send, 1, 0);
	rig_submit(rig, 1, 0, &receive, 1, 0);
	/* a bit that says nothing */
	atomic_fetch_or(rig->ranks[2].context->bit_word, rig->ranks[2].context->bit);
}

static void check_mismatch(struct rig *rig, int point, uint32_t count)
{
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct stream_ring *ring = rig->ranks[rank].streams[0];

		expect(rig_is_done(rig, rank, 0), "a stream is not done", point, count);
		expect(ring->fault_count == 1 && ring->fault.cause == CAUSE_MISMATCH, "the mismatch was not recorded", point, count);
		expect(ring->fault.rank == rank && ring->fault.local_bytes == (rank ? 5001 : 5000), "the record is not this end's", point,
		       count);
	}
	expect(rig_pair(rig, 0, 1)->failed == 1 && rig_pair(rig, 0, 1)->received == 0, "the pair's words are wrong", point, count);
}

/* Events, words and a host function: two streams that cannot get on without each other, and the next rank's beside them. */
#define EVENT 2000000u
#define WORD 2001000u

static struct event_slot *event_of(struct rig *rig, uint32_t index)
{
	return (struct event_slot *)(rig->ranks[0].memory + EVENT) + index;
}

static void submit_meetings(struct rig *rig)
{
	struct rig_item fill = { ITEM_FILL, 1, 100, 50, 7 }, copy = { ITEM_COPY, 100, 400, 50, 7 };

	rig_submit_meeting(rig, 0, 0, TASK_WAIT_EVENT, EVENT, 1);
	rig_submit(rig, 0, 0, &fill, 1, 0);
	rig_submit_meeting(rig, 0, 0, TASK_WRITE, WORD, 7);
	rig_submit_meeting(rig, 0, 0, TASK_RECORD, EVENT + 64, 3);
	rig_submit_meeting(rig, 0, 1, TASK_RECORD, EVENT, 1);
	rig_submit_meeting(rig, 0, 1, TASK_WAIT_VALUE, WORD, 7);
	rig_submit_meeting(rig, 0, 1, TASK_HOST, 0, 0);
	rig_submit_meeting(rig, 0, 1, TASK_WAIT_EVENT, EVENT + 64, 3);
	rig_submit(rig, 0, 1, &copy, 1, 0);
	rig_submit_barrier(rig, 0, 1);
	for (uint32_t rank = 1; rank < RANKS; rank++)
		rig_submit_barrier(rig, rank, 0);
}

static void check_meetings(struct rig *rig, int point, uint32_t count)
{
	const unsigned char *memory = rig->ranks[0].memory;

	for (uint32_t rank = 0; rank < RANKS; rank++)
		expect(rig_is_done(rig, rank, 0) && rig_is_done(rig, rank, 1), "a stream is not done", point, count);
	expect(event_of(rig, 0)->recorded == 1 && event_of(rig, 0)->recorded_ns, "the first event is not recorded", point, count);
	expect(event_of(rig, 1)->recorded == 3 && event_of(rig, 1)->recorded_ns, "the second event is not recorded", point, count);
	expect(memory[WORD] == 7 && memory[100] == 1 && memory[449] == 1, "memory is not what the tasks make it", point, count);
	expect(rig->host_runs == 1, "the host function has not run once", point, count);
	expect(session_host(rig->ranks[0].region)->news >= 1, "the process was not told", point, count);
	expect(rig->liars == 0, "the executor takes its own words for nonsense", point, count);
}

/* What waits for ever is taken out; a stream that waits for what it was to record goes on. */
static void submit_dropped(struct rig *rig)
{
	struct rig_item fill = { ITEM_FILL, 1, 100, 50, 7 }, receive = { ITEM_RECEIVE, 1, 200, 50, 7 };

	rig_submit(rig, 0, 0, &receive, 1, 0);
	rig_submit(rig, 0, 0, &fill, 1, 0);
	rig_submit_meeting(rig, 0, 0, TASK_RECORD, EVENT, 1);
	rig_submit_meeting(rig, 0, 0, TASK_RECORD, EVENT + 64, 1);
	rig_submit_meeting(rig, 0, 1, TASK_WAIT_EVENT, EVENT + 64, 1);
	fill.offset = 300;
	rig_submit(rig, 0, 1, &fill, 1, 0);
}

static void act_drop(struct rig *rig)
{
	expect(engine_stream_drop(rig->engine, rig->ranks[0].context, rig->ranks[0].streams[0], false, CAUSE_TASK_ABORTED),
	       "nothing is copied, but the stream is busy", 0, 0);
}

static void check_dropped(struct rig *rig, int point, uint32_t count)
{
	const struct stream_ring *ring = rig->ranks[0].streams[0];

	expect(rig_is_done(rig, 0, 0) && rig_is_done(rig, 0, 1), "a stream is not done", point, count);
	expect(ring->fault_count == 1 && ring->fault.cause == CAUSE_TASK_ABORTED, "the end was not recorded", point, count);
	expect(ring->dropped == ring->tail, "what was taken out is not marked", point, count);
	expect(event_of(rig, 0)->recorded == 1 && event_of(rig, 1)->recorded == 1, "an event is not recorded", point, count);
	expect(rig->ranks[0].memory[100] == 0 && rig->ranks[0].memory[300] == 1, "the wrong tasks were run", point, count);
	expect(rig_pair(rig, 1, 0)->failed == 1, "the pair has not failed", point, count);
}

/* With stop_on_failure: nothing after the error but records. */
static void submit_stopped(struct rig *rig)
{
	struct rig_item fill = { ITEM_FILL, 1, RIG_MEMORY - 1, 2, 7 };

	rig->ranks[0].streams[0]->stop_on_failure = 1;
	rig_submit(rig, 0, 0, &fill, 1, 0);
	fill.offset = 100;
	rig_submit(rig, 0, 0, &fill, 1, 0);
	rig_submit_meeting(rig, 0, 0, TASK_HOST, 0, 0);
	rig_submit_meeting(rig, 0, 0, TASK_RECORD, EVENT, 1);
}

static void check_stopped(struct rig *rig, int point, uint32_t count)
{
	const struct stream_ring *ring = rig->ranks[0].streams[0];

	expect(rig_is_done(rig, 0, 0), "a stream is not done", point, count);
	expect(ring->fault_count == 1 && ring->stopped == 1 && ring->fault_position == 0, "the error was not recorded", point, count);
	expect(rig->ranks[0].memory[100] == 0 && rig->host_runs == 0, "a task was run after the error", point, count);
	expect(event_of(rig, 0)->recorded == 1, "the event is not recorded", point, count);
}

/* Two streams that signal to each other, and one of another session that has imported the notify: every change once. */
#define NOTIFY 2100032u	/* a multiple of 64 */

static struct notify_slot *notify_of(struct rig *rig, uint32_t index)
{
	return (struct notify_slot *)(rig->ranks[0].memory + NOTIFY) + index;
}

static void submit_notifies(struct rig *rig)
{
	struct rig_notify record = { .kind = TASK_NOTIFY_RECORD, .mode = NOTIFY_SET, .number = 1 };
	struct rig_notify wait = { .kind = TASK_NOTIFY_WAIT, .mode = NOTIFY_EQUAL, .clears = true, .number = 1 };
	struct rig_notify add = { .kind = TASK_NOTIFY_RECORD, .mode = NOTIFY_ADD, .offset = NOTIFY + 128, .number = 5 };
	uint64_t import = rig_import_notifies(rig, 1, 0);

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t stream = 0; stream < 2; stream++) {
			add.segment = 0;
			rig_submit_notify(rig, 0, stream, &add);
			record.offset = NOTIFY + 64 * stream;
			wait.offset = NOTIFY + 64 * !stream;
			rig_submit_notify(rig, 0, stream, stream ? &wait : &record);
			rig_submit_notify(rig, 0, stream, stream ? &record : &wait);
		}
		add.segment = import;
		rig_submit_notify(rig, 1, 0, &add);
	}
	wait = (struct rig_notify){ .kind = TASK_NOTIFY_WAIT, .mode = NOTIFY_EQUAL, .segment = import, .offset = NOTIFY + 128, .number = 30 };
	rig_submit_notify(rig, 1, 0, &wait);
}

static void check_notifies(struct rig *rig, int point, uint32_t count)
{
	expect(rig_is_done(rig, 0, 0) && rig_is_done(rig, 0, 1) && rig_is_done(rig, 1, 0), "a stream is not done", point, count);
	for (uint32_t i = 0; i < 2; i++)
		expect(notify_of(rig, i)->word == 4ull << 32, "a notify was not recorded twice and taken twice", point, count);
	expect(notify_of(rig, 2)->word == (6ull << 32 | 30), "six additions are not six", point, count);
	expect(rig->liars == 0, "the executor takes its own words for nonsense", point, count);
}

/* Of several slices, one of them with itself, and a short one behind. */
#define SUMS 900u
#define SUM_OF(rig) ((uint32_t *)(rig)->ranks[0].memory)
#define TERM_OF(rig) ((uint32_t *)((rig)->ranks[1].memory + 8192))

static void submit_reductions(struct rig *rig)
{
	struct rig_reduce sum = { .to = 0, .from = 8192, .bytes = SUMS * 4, .segment = rig_import(rig, 0, 1), .type = 2, .op = 0 };
	struct rig_reduce twice = { .to = 0, .from = 0, .bytes = SUMS * 4, .type = 2, .op = 0 };

	for (uint32_t i = 0; i < SUMS; i++) {
		SUM_OF(rig)[i] = i;
		TERM_OF(rig)[i] = 1000 * i + 1;
	}
	rig_submit_reduce(rig, 0, 0, &sum);
	rig_submit_reduce(rig, 0, 0, &twice);
	sum.bytes = 8;
	rig_submit_reduce(rig, 0, 0, &sum);
}

static void check_reductions(struct rig *rig, int point, uint32_t count)
{
	expect(rig_is_done(rig, 0, 0), "a stream is not done", point, count);
	expect(rig->ranks[0].streams[0]->fault_count == 0 && rig->liars == 0, "a reduction failed", point, count);
	for (uint32_t i = 0; i < SUMS; i++) {
		uint32_t sum = 2 * (1001 * i + 1) + (i < 2 ? 1000 * i + 1 : 0);

		expect(SUM_OF(rig)[i] == sum, "a sum is wrong", point, count);
		expect(TERM_OF(rig)[i] == 1000 * i + 1, "a source was changed", point, count);
	}
}

/*
 * Streams of two ranks add to one place. Rank 1 lets rank 0 go on before it adds: an executor that is killed while it does has a successor
 * that looks at rank 0 first.
 */
#define ADDERS 2u
#define ADDITIONS 3u

static void submit_adders(struct rig *rig)
{
	uint64_t theirs = rig_import(rig, 0, 1), ours = rig_import(rig, 1, 0), notifies = rig_import_notifies(rig, 1, 0);
	struct rig_reduce reads = { .to = 0, .from = 8192, .bytes = SUMS * 4, .segment = theirs, .type = 2, .op = 0 };
	struct rig_reduce writes = { .to = 0, .from = 8192, .bytes = SUMS * 4, .to_segment = ours, .type = 2, .op = 0 };

	for (uint32_t i = 0; i < SUMS; i++) {
		SUM_OF(rig)[i] = 7;
		TERM_OF(rig)[i] = i + 1;
	}
	for (uint32_t i = 0; i < ADDITIONS; i++) {
		struct rig_notify go = { .kind = TASK_NOTIFY_RECORD, .mode = NOTIFY_SET, .segment = notifies, .offset = NOTIFY + 64 * i, .number = 1 };
		struct rig_notify wait = { .kind = TASK_NOTIFY_WAIT, .mode = NOTIFY_EQUAL, .offset = NOTIFY + 64 * i, .number = 1 };

		rig_submit_notify(rig, 0, 0, &wait);
		rig_submit_reduce(rig, 0, 0, &reads);
		rig_submit_notify(rig, 1, 0, &go);
		rig_submit_reduce(rig, 1, 0, &writes);
	}
}

static void check_adders(struct rig *rig, int point, uint32_t count)
{
	expect(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0), "a stream is not done", point, count);
	for (uint32_t i = 0; i < SUMS; i++)
		expect(SUM_OF(rig)[i] == 7 + ADDERS * ADDITIONS * (i + 1), "an addition of several streams is lost or doubled", point, count);
	expect(rig->liars == 0, "the executor takes its own words for nonsense", point, count);
}

/*
 * A copy that a process helps with, which lives on when the executor is killed: it has a chunk for some steps, and writes it at last. There is a
 * restart without any crash, too, in the middle; or the task is dropped there.
 */
#define SHARED_CHUNK 32768u
#define SHARED_STEPS 2000u
#define STEPS_OWNED 3u

static struct {
	bool owns, drops, has_dropped;
	struct copy_record *record;
	uint64_t word;			/* as claimed */
	uint32_t chunk, steps;
} helper;

static void start_helped(struct rig *rig)
{
	struct rig_item send = { ITEM_SEND, 1, 0, LARGE, 7 }, receive = { ITEM_RECEIVE, 0, 0, LARGE, 7 };

	memset(&helper, 0, sizeof(helper));
	rig_share_copies(rig, LARGE - 1, SHARED_CHUNK);
	rig->lives_on = true;
	for (uint32_t i = 0; i < LARGE; i++)
		rig->ranks[0].memory[i] = pattern(0, 1, 0, i);
	rig_submit(rig, 0, 0, &send, 1, 0);
	rig_submit(rig, 1, 0, &receive, 1, 0);
}

static void start_helped_and_dropped(struct rig *rig)
{
	start_helped(rig);
	helper.drops = true;
}

static void helper_claims(struct rig *rig)
{
	struct copy_record *record = &rig->copies->records[0];

	for (uint32_t i = 0; (atomic_load(&rig->copies->active) & 1) && i < HCCLD_COPY_CHUNKS; i++) {
		uint64_t word = atomic_load(&record->claims[i]);
		uint64_t mine = copy_claim_word(copy_claim_generation(word), CLAIM_SENDER);

		if (copy_claim_kind(word) != CLAIM_FREE || !atomic_compare_exchange_strong(&record->claims[i], &word, mine))
			continue;
		helper.owns = true;
		helper.record = record;
		helper.word = mine;
		helper.chunk = i;
		helper.steps = 0;
		return;
	}
}

static void helper_step(struct rig *rig)
{
	const uint64_t at = helper.chunk * (uint64_t)SHARED_CHUNK, done = copy_claim_word(copy_claim_generation(helper.word), CLAIM_DONE);

	if (!helper.owns) {
		helper_claims(rig);
		return;
	}
	if (++helper.steps < STEPS_OWNED)
		return;
	expect(!rig_is_done(rig, 1, 0), "the receive has ended while somebody owned a chunk", armed_point, 0);
	memcpy(rig->ranks[1].memory + at, rig->ranks[0].memory + at, copy_chunk_size(LARGE, SHARED_CHUNK, helper.chunk));
	atomic_compare_exchange_strong(&helper.record->claims[helper.chunk], &helper.word, done);
	helper.owns = false;
}

/* One slice, or what there is to do without. */
static void engine_step(struct rig *rig)
{
	struct engine_slice slice;

	engine_collect_chunks(rig->engine);
	for (uint32_t i = 0; i < rig->size; i++)
		engine_look(rig->engine, &rig->contexts[i]);
	if (engine_slice_next_of(rig->engine, SHARED_CHUNK / 2, &slice)) {
		memcpy(slice.destination, slice.source, slice.bytes);
		slice.lost = NULL;
		engine_slice_done(rig->engine, &slice);
	}
}

static void drive_helped(struct rig *rig)
{
	for (uint32_t step = 0; step < SHARED_STEPS && !(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0)); step++) {
		helper_step(rig);
		engine_step(rig);
		if (step == 5 && !helper.drops)
			rig_restart(rig);
		if (step >= 5 && helper.drops && !helper.has_dropped)
			helper.has_dropped = engine_stream_drop(rig->engine, rig->ranks[1].context, rig->ranks[1].streams[0], false,
								CAUSE_TASK_ABORTED);
	}
	rig_run(rig);
}

static void check_helped(struct rig *rig, int point, uint32_t count)
{
	uint32_t bad = 0;

	expect(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0), "a stream is not done", point, count);
	for (uint32_t i = 0; !helper.drops && i < LARGE; i++)
		bad += rig->ranks[1].memory[i] != pattern(0, 1, 0, i);
	expect(bad == 0, "wrong bytes were received", point, count);
	expect((rig->ranks[1].streams[0]->fault_count != 0) == helper.drops, "an error without a cause, or none", point, count);
	expect(rig->contexts[1].transfers == 0 && rig->copies->active == 0, "the copy is left behind", point, count);
	expect(rig->liars == 0, "the executor takes its own words for nonsense", point, count);
}

struct scenario {
	void (*start)(struct rig *rig);
	void (*act)(struct rig *rig);	/* again after a crash, as a request is sent again */
	void (*verify)(struct rig *rig, int point, uint32_t count);
	void (*drive)(struct rig *rig);	/* instead of what follows */
};

static void drive(struct rig *rig, const struct scenario *scenario)
{
	if (scenario->drive) {
		scenario->drive(rig);
		return;
	}
	do
		rig_run(rig);
	while (rig_host(rig));
	if (!scenario->act)
		return;
	scenario->act(rig);
	rig_run(rig);
}

/* More sends than the ring has places, complete before anybody receives: into a pool and a wide ring. */
#define AHEAD 20u
#define AHEAD_BYTES 100u

static void submit_ahead(struct rig *rig)
{
	struct rig_item items[AHEAD];

	rig_have_room(rig);
	/* those that an executor has filled and not offered stay taken until that number is received */
	rig_give(rig, 0, 0, 2 * AHEAD);
	rig_give(rig, 0, 1, 1);
	for (uint32_t m = 0; m < AHEAD; m++) {
		for (uint32_t i = 0; i < AHEAD_BYTES; i++)
			rig->ranks[0].memory[m * AHEAD_BYTES + i] = pattern(0, 1, m, i);
		items[m] = (struct rig_item){ ITEM_SEND, 1, m * AHEAD_BYTES, AHEAD_BYTES, 7 };
	}
	rig_submit(rig, 0, 0, items, AHEAD, 0);
}

static void act_ahead(struct rig *rig)
{
	struct rig_item items[AHEAD];

	if (rig->ranks[1].streams[0]->tail)
		return;	/* before the crash */
	if (!rig_is_done(rig, 0, 0)) {
		failures++;
		fprintf(stderr, "sends wait for their receiver\n");
	}
	memset(rig->ranks[0].memory, 0, AHEAD * AHEAD_BYTES);
	for (uint32_t m = 0; m < AHEAD; m++)
		items[m] = (struct rig_item){ ITEM_RECEIVE, 0, m * AHEAD_BYTES, AHEAD_BYTES, 7 };
	rig_submit(rig, 1, 0, items, AHEAD, 0);
}

static void check_ahead(struct rig *rig, int point, uint32_t count)
{
	uint32_t bad = 0;

	expect(rig_is_done(rig, 1, 0), "the receives are not done", point, count);
	for (uint32_t m = 0; m < AHEAD; m++)
		for (uint32_t i = 0; i < AHEAD_BYTES; i++)
			bad += rig->ranks[1].memory[m * AHEAD_BYTES + i] != pattern(0, 1, m, i);
	expect(!bad, "bytes differ", point, count);
	expect(rig_pair(rig, 0, 1)->wide_from == HCCLD_PAIR_SLOTS + 1, "the ring was not widened when it was full", point, count);
}

/* True if the point was reached @count times. */
static bool crash_at(int point, uint32_t count, const struct scenario *scenario)
{
	struct rig *volatile rig = rig_new(RANKS, false);
	volatile bool reached = false;

	scenario->start(rig);
	armed_point = point;
	armed_count = count;
	if (setjmp(killed) == 0) {
		drive(rig, scenario);
		armed_count = 0;
	} else {
		reached = true;
		rig_forget_counters(rig);
		rig_restart(rig);
		drive(rig, scenario);
	}
	scenario->verify(rig, point, count);
	rig_free(rig);
	return reached;
}

#define COUNTS_ALL 200u

/* Beyond some hundred times it is the same step for yet another record: some of these. */
static uint32_t next_count(uint32_t count)
{
	return count < COUNTS_ALL ? count + 1 : count + count / 8;
}

int main(void)
{
	static const struct scenario scenarios[] = {
		{ submit, NULL, check, NULL },
		{ submit_mismatch, NULL, check_mismatch, NULL },
		{ submit_meetings, NULL, check_meetings, NULL },
		{ submit_dropped, act_drop, check_dropped, NULL },
		{ submit_stopped, NULL, check_stopped, NULL },
		{ submit_notifies, NULL, check_notifies, NULL },
		{ submit_reductions, NULL, check_reductions, NULL },
		{ submit_adders, NULL, check_adders, NULL },
		{ submit_ahead, act_ahead, check_ahead, NULL },
		{ start_helped, NULL, check_helped, drive_helped },
		{ start_helped_and_dropped, NULL, check_helped, drive_helped },
	};
	uint32_t crashes = 0;

	for (int point = 1; point < CRASH_POINT_COUNT; point++) {
		uint32_t before = crashes;

		for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
			for (uint32_t count = 1; crash_at(point, count, &scenarios[i]); count = next_count(count))
				crashes++;
		if (crashes == before) {
			failures++;
			fprintf(stderr, "point %d was never reached\n", point);
		}
	}
	printf("%u crashes at %d points, %u failures\n", crashes, CRASH_POINT_COUNT - 1, failures);
	return failures != 0;
}
