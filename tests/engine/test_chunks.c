/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies that clients help with: who copies which chunk, and what waits for whom. Every byte of what has ended well is checked. */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/executor.h"
#include "proto/clock.h"
#include "tests/engine/direct_client.h"
#include "tests/engine/drivers.h"
#include "tests/support/test.h"

#define MIN 100000u
#define CHUNK 65536u
#define BYTES 1000000u
#define CHUNKS ((BYTES + CHUNK - 1) / CHUNK)

static struct beacon beacon;
static int event_fd;
static struct rig *rig;
static struct client *clients[2];

static bool look(uint32_t rank)
{
	return engine_look(rig->engine, &rig->contexts[rank]);
}

static struct copy_record *record(void)
{
	return &rig->copies->records[0];
}

static uint64_t claim_of(uint32_t chunk)
{
	return atomic_load(&record()->claims[chunk]);
}

static enum copy_claim kind_of_claim(uint32_t chunk)
{
	return copy_claim_kind(claim_of(chunk));
}

/* A helper that is not this test's thread: it owns @chunk, and may be stopped there. */
static void helper_claims(uint32_t chunk, enum copy_claim me)
{
	check_eq_int(kind_of_claim(chunk), CLAIM_FREE);
	atomic_store(&record()->claims[chunk], copy_claim_word(copy_claim_generation(claim_of(chunk)), me));
}

static void helper_writes(uint32_t chunk)
{
	memcpy(rig->ranks[1].memory + chunk * (uint64_t)CHUNK, rig->ranks[0].memory + chunk * (uint64_t)CHUNK,
	       copy_chunk_size(BYTES, CHUNK, chunk));
}

static void helper_ends(uint32_t chunk)
{
	helper_writes(chunk);
	atomic_store(&record()->claims[chunk], copy_claim_word(copy_claim_generation(claim_of(chunk)), CLAIM_DONE));
}

static void fill(unsigned int seed)
{
	for (uint64_t i = 0; i < BYTES; i++)
		rig->ranks[0].memory[i] = (unsigned char)(i * 7 + i / 4096 + seed);
	memset(rig->ranks[1].memory, 0, BYTES);
}

static void submit(uint32_t timeout_ms)
{
	fill(3);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, BYTES) }, 1, timeout_ms);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, BYTES) }, 1, timeout_ms);
	check(look(0) && look(1));
}

static void begin(void)
{
	rig = rig_new(2, false);
	rig_share_copies(rig, MIN, CHUNK);
	beacon = (struct beacon){ .awake = BEACON_ASLEEP, .local_path = PATH_DIRECT };
	event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	for (uint32_t i = 0; i < 2; i++)
		clients[i] = client_new(rig, i, &beacon, event_fd);
}

static void end(void)
{
	for (uint32_t i = 0; i < 2; i++)
		free(clients[i]);
	close(event_fd);
	rig_free(rig);
}

static void check_right(void)
{
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	check_eq_mem(rig->ranks[1].memory, rig->ranks[0].memory, BYTES);
	check_eq_uint(rig->ranks[0].streams[0]->fault_count + rig->ranks[1].streams[0]->fault_count, 0);
	check_eq_uint(atomic_load(&rig->copies->active), 0);
	check_eq_uint(rig->contexts[1].transfers, 0);
	check_eq_uint(rig->liars, 0);
}

static uint32_t help(uint32_t rank)
{
	struct direct_wish wish = { .need = NEED_NOTHING };
	uint32_t count = 0;

	while (direct_help(&clients[rank]->direct, &wish))
		count++;
	check_eq_int(wish.need, NEED_NOTHING);
	return count;
}

TEST(the_engine_copies_alone_when_nobody_waits)
{
	begin();
	submit(0);
	check_eq_uint(atomic_load(&rig->copies->active), 1);
	for (uint32_t i = 0; i < CHUNKS; i++)
		check_eq_int(kind_of_claim(i), CLAIM_FREE);
	check_eq_uint(engine_backlog(rig->engine), BYTES);
	rig_run(rig);
	check_eq_uint(engine_backlog(rig->engine), 0);
	check_right();
	end();
}

TEST(either_end_copies_alone)
{
	for (uint32_t rank = 0; rank < 2; rank++) {
		uint64_t count;

		begin();
		submit(0);
		check_eq_int(eventfd_read(event_fd, &count), -1);
		check_eq_uint(help(rank), CHUNKS);
		/* and the engine is told, of the receiver's context, which is its */
		check_eq_int(eventfd_read(event_fd, &count), 0);
		check(has_bit(rig, 1) && kind_of(rig, 1) == CONTEXT_HELD);
		check(!rig_is_done(rig, 1, 0));
		rig_run(rig);
		check_right();
		end();
	}
}

/* Twice, so that a record is used again. */
TEST(all_copy_together)
{
	begin();
	for (uint32_t turn = 0; turn < 3; turn++) {
		struct engine_slice slices[4];
		struct direct_wish wish;

		submit(0);
		for (uint32_t i = 0; i < 4; i++)
			check(engine_slice_next_of(rig->engine, i % 2 ? HCCLD_SLICE : 32768, &slices[i]));
		check(direct_help(&clients[0]->direct, &wish) && direct_help(&clients[1]->direct, &wish));
		for (uint32_t i = 0; i < 4; i++) {
			memcpy(slices[i].destination, slices[i].source, slices[i].bytes);
			engine_slice_done(rig->engine, &slices[i]);
		}
		check(!rig_is_done(rig, 1, 0));
		rig_run(rig);
		check_right();
		check_eq_uint(atomic_load(&record()->generation), turn + 1);
	}
	end();
}

static bool is_shared(void)
{
	submit(0);
	return atomic_load(&rig->copies->active) != 0;
}

TEST(some_are_not_shared)
{
	begin();
	engine_set_direct(rig->engine, false);
	check(!is_shared());
	rig_run(rig);
	engine_set_direct(rig->engine, true);
	/* a yard of an older daemon */
	rig->view.copies = NULL;
	check(!is_shared());
	rig_run(rig);
	rig->view.copies = rig->copies;
	/* a client of an older release */
	rig->ranks[1].session.never_drives = true;
	check(!is_shared());
	rig_run(rig);
	rig->ranks[1].session.never_drives = false;
	rig->view.copies_used = (UINT64_C(1) << HCCLD_COPIES) - 1;
	check(!is_shared());
	rig_run(rig);
	rig->view.copies_used = 0;
	check(is_shared());
	rig_run(rig);
	check_right();
	engine_share_copies(rig->engine, BYTES, CHUNK, false);
	check(!is_shared());
	rig_run(rig);
	check_right();
	end();
}

/* Of clients that may not drive any more, or whose tables are being changed. */
TEST(some_do_not_help)
{
	struct direct_wish wish = { .need = NEED_NOTHING };

	begin();
	submit(0);
	beacon.local_path = PATH_ENGINE;
	check(!direct_help(&clients[0]->direct, &wish));
	beacon.local_path = PATH_DIRECT;
	direct_intrude(&clients[0]->direct);
	check(!direct_help(&clients[0]->direct, &wish));
	direct_retreat(&clients[0]->direct);
	/* what is missing is asked for, once */
	clients[0]->mapped[1].is_writable = false;
	check(!direct_help(&clients[0]->direct, &wish));
	check_eq_int(wish.need, NEED_WRITABLE);
	check(wish.peer == 1 && wish.segment == rig->ranks[1].segment);
	clients[0]->mapped[1].is_refused = true;
	check_eq_uint(help(0), 0);
	clients[1]->peers[0].mapped_count = 0;
	check(!direct_help(&clients[1]->direct, &wish));
	check_eq_int(wish.need, NEED_SEGMENT);
	rig_run(rig);
	check_right();
	end();
}

/* Also when nonsense is written there: the memory of this process that is named has to be there, and of the peer's what is mapped. */
TEST(who_helps_judges_what_he_reads)
{
	struct direct_wish wish;

	begin();
	submit(0);
	record()->bytes = UINT64_MAX;
	check(!direct_help(&clients[1]->direct, &wish));
	record()->bytes = BYTES;
	record()->destination_offset = RIG_MEMORY - BYTES + 1;
	check(!direct_help(&clients[1]->direct, &wish) && !direct_help(&clients[0]->direct, &wish));
	record()->destination_offset = UINT64_MAX - 1000;
	check(!direct_help(&clients[1]->direct, &wish) && !direct_help(&clients[0]->direct, &wish));
	record()->destination_offset = 0;
	record()->source = RIG_RANKS_MAX;
	check(!direct_help(&clients[1]->direct, &wish) && !direct_help(&clients[0]->direct, &wish));
	record()->source = 0;
	/* a rank of another context of this process */
	rig->comm.region->members[1].context = 7;
	check(!direct_help(&clients[1]->direct, &wish));
	rig->comm.region->members[1].context = 1;
	record()->chunk_bytes = UINT64_MAX / 2;
	check(!direct_help(&clients[1]->direct, &wish));
	record()->chunk_bytes = 0;
	check(!direct_help(&clients[1]->direct, &wish));
	record()->chunk_bytes = CHUNK;
	rig_run(rig);
	check_right();
	end();
}

/* C5: a chunk that somebody owns is waited for. */
TEST(a_stopped_helper_holds_up_the_receive)
{
	static const enum copy_claim owners[] = { CLAIM_RECEIVER, CLAIM_SENDER };

	for (size_t i = 0; i < 2; i++) {
		begin();
		submit(0);
		helper_claims(5, owners[i]);
		rig_run(rig);
		check(!rig_is_done(rig, 1, 0) && kind_of(rig, 1) == CONTEXT_HELD);
		for (uint32_t c = 0; c < CHUNKS; c++)
			check_eq_int(kind_of_claim(c), c == 5 ? owners[i] : CLAIM_DONE);
		helper_ends(5);
		rig_run(rig);
		check_right();
		end();
	}
}

/* Takes away what it takes; false: a helper owns a chunk, or a slice is out. */
static bool stream_goes(void)
{
	return engine_stream_detach(rig->engine, &rig->contexts[1], rig->ranks[1].streams[0]);
}

static bool tasks_go(void)
{
	return engine_stream_drop(rig->engine, &rig->contexts[1], rig->ranks[1].streams[0], false, CAUSE_ABORTED);
}

static bool rank_goes(void)
{
	struct view_rank *rank = &rig->ranks[1].session.ranks[VIEW_INDEX(rig->ranks[1].handle)];

	atomic_store(&rig->comm.region->members[1].word, MEMBER_LEFT);
	return engine_rank_detach(rig->engine, rank);
}

static bool source_goes(void)
{
	struct view_rank *rank = &rig->ranks[0].session.ranks[VIEW_INDEX(rig->ranks[0].handle)];

	atomic_store(&rig->comm.region->members[0].word, MEMBER_DEAD);
	return engine_rank_detach(rig->engine, rank);
}

static bool rank_is_suspended(void)
{
	struct comm_member *member = &rig->comm.region->members[0];

	atomic_store(&rig->comm.region->suspensions, 1);
	atomic_store(&member->epoch, 1);
	return engine_rank_suspend(rig->engine, &rig->ranks[0].session.ranks[VIEW_INDEX(rig->ranks[0].handle)]);
}

static bool memory_goes(void)
{
	atomic_store(&rig->ranks[1].session.segments[VIEW_INDEX(rig->ranks[1].segment)].retired, 1);
	return engine_segment_detach(rig->engine, &rig->ranks[1].session, rig->ranks[1].segment);
}

static bool context_goes(void)
{
	return engine_context_detach(rig->engine, &rig->contexts[1]);
}

static bool (*const takings[])(void) = { stream_goes, tasks_go, rank_goes, source_goes, rank_is_suspended, memory_goes, context_goes };

/* C6, C7: before it is taken away nobody writes any more, and nobody begins to. */
TEST(what_is_taken_away_waits_for_helpers)
{
	for (size_t i = 0; i < sizeof(takings) / sizeof(takings[0]); i++) {
		struct engine_slice slice;

		begin();
		rig->lives_on = true;
		submit(0);
		helper_claims(CHUNKS - 1, CLAIM_SENDER);
		check(engine_slice_next_of(rig->engine, 32768, &slice));
		check(!takings[i]());
		check_eq_uint(help(0) + help(1), 0);
		check(!engine_collect_chunks(rig->engine));
		memcpy(slice.destination, slice.source, slice.bytes);
		engine_slice_done(rig->engine, &slice);
		check(!takings[i]() && !rig_is_done(rig, 1, 0));
		helper_ends(CHUNKS - 1);
		check(takings[i]());
		check_eq_uint(atomic_load(&rig->copies->active), 0);
		check_eq_uint(rig->contexts[1].transfers, 0);
		check_eq_uint(engine_backlog(rig->engine), 0);
		end();
	}
}

/* C4: of the dead nothing is waited for; of who may only have lost his session it is. The end of the daemon waits for nobody. */
TEST(the_dead_are_not_waited_for)
{
	for (uint32_t i = 0; i < 3; i++) {
		begin();
		submit(0);
		helper_claims(2, CLAIM_SENDER);
		rig->lives_on = true;
		check(!source_goes());
		check(!source_goes());
		if (i == 0)
			rig->lives_on = false;
		else if (i == 1)
			engine_abandon_helpers(rig->engine);
		else
			helper_ends(2);
		check(source_goes());
		rig_run(rig);
		check(rig_is_done(rig, 1, 0));
		check_eq_int(rig->ranks[1].streams[0]->fault.cause, CAUSE_PEER_DEAD);
		end();
	}
}

/* C6: somebody else has failed the pair. The sender's task ends, the receiver's when nobody writes. */
TEST(a_receive_that_has_failed_ends_when_nobody_writes)
{
	struct fault fault = { .cause = CAUSE_EXEC_TIMEOUT, .number = 1, .rank = 0, .peer = 1 };

	begin();
	submit(0);
	helper_claims(0, CLAIM_RECEIVER);
	pair_fail(rig->engine, &rig->comm, 0, 1, &fault);
	engine_ring_dirty(rig->engine);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && !rig_is_done(rig, 1, 0));
	check_eq_uint(help(0) + help(1), 0);
	helper_ends(0);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_int(rig->ranks[1].streams[0]->fault.cause, CAUSE_PEER_GAVE_UP);
	check_eq_uint(rig_pair(rig, 0, 1)->received, 0);
	end();
}

/* Time-outs count while it is held up, not while it moves. */
TEST(who_waits_for_a_stopped_helper_has_a_time_out)
{
	uint64_t later;

	begin();
	submit(200);
	later = clock_now_ns() + 400000000u;
	helper_claims(0, CLAIM_RECEIVER);
	engine_check_timeouts(rig->engine, &rig->contexts[0], later);
	rig_run(rig);
	check(!rig_is_done(rig, 0, 0));
	usleep(1200000);
	engine_check_timeouts(rig->engine, &rig->contexts[0], later);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && !rig_is_done(rig, 1, 0));
	check_eq_int(rig->ranks[0].streams[0]->fault.cause, CAUSE_EXEC_TIMEOUT);
	helper_ends(0);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	end();
}

/* A new executor: who helped the old one is waited for before anything of the receive goes on. */
TEST(a_restart_waits_for_helpers)
{
	for (uint32_t i = 0; i < 3; i++) {
		begin();
		rig->lives_on = true;
		submit(0);
		helper_claims(3, i == 1 ? CLAIM_RECEIVER : CLAIM_SENDER);
		helper_claims(4, CLAIM_SENDER);
		helper_ends(4);
		rig_restart(rig);
		check_eq_int(kind_of_claim(4), CLAIM_DONE);
		check_eq_int(kind_of_claim(5), CLAIM_CLOSED);
		check_eq_uint(help(0) + help(1), 0);
		rig_run(rig);
		check(!rig_is_done(rig, 1, 0));
		check_eq_uint(rig_pair(rig, 0, 1)->received, 0);
		/* and again */
		rig_restart(rig);
		rig_run(rig);
		check(!rig_is_done(rig, 1, 0));
		if (i == 2) {
			check(!stream_goes() && !memory_goes() && !rank_goes());
			helper_ends(3);
			check(stream_goes() && memory_goes() && rank_goes());
			check_eq_uint(rig->contexts[1].transfers, 0);
		} else {
			/* what it wrote is not missed */
			memset(rig->ranks[1].memory, 0, BYTES);
			helper_ends(3);
			rig_run(rig);
			check_right();
		}
		end();
	}
}

/* It was stopped between its look at the word and the claim. */
TEST(a_record_that_is_used_again_is_another_one)
{
	uint64_t old;

	begin();
	submit(0);
	old = claim_of(0);
	rig_run(rig);
	submit(0);
	check_eq_int(copy_claim_kind(claim_of(0)), CLAIM_FREE);
	check(claim_of(0) != old);
	rig_run(rig);
	check_right();
	end();
}

/* Spoils its own tenant's data, and holds up nobody for ever. */
TEST(nonsense_in_claims_is_mended)
{
	static const uint64_t kinds[] = { CLAIM_NONE, CLAIM_CLOSED, CLAIM_ENGINE, 77 };

	begin();
	for (uint32_t turn = 0; turn < 2; turn++) {
		uint64_t generation;

		submit(0);
		generation = copy_claim_generation(claim_of(0));
		for (uint32_t i = 0; i < 4; i++)
			atomic_store(&record()->claims[i], copy_claim_word(generation + turn, kinds[i]));
		atomic_store(&record()->claims[9], copy_claim_word(generation + 5, CLAIM_DONE));
		rig_run(rig);
		check_right();
	}
	/* while it is ours */
	submit(0);
	{
		struct engine_slice slice;

		check(engine_slice_next_of(rig->engine, 1000, &slice));
		atomic_store(&record()->claims[slice.chunk], copy_claim_word(copy_claim_generation(claim_of(slice.chunk)), CLAIM_DONE));
		check(!tasks_go());
		memcpy(slice.destination, slice.source, slice.bytes);
		engine_slice_done(rig->engine, &slice);
		check(tasks_go());
	}
	end();
}

/* After a crash the table is nonsense. */
TEST(nonsense_after_a_restart_is_left)
{
	begin();
	submit(0);
	for (uint32_t i = 0; i < HCCLD_COPIES; i++) {
		struct copy_record *at = &rig->copies->records[i];

		at->generation = i;
		at->destination_context = i % 3 ? i * 1000 : 1;
		at->source = i;
		at->destination = 1;
		at->comm = rig->comm.id;
		at->destination_segment = at->source_segment = UINT64_MAX - i;
		at->bytes = UINT64_MAX / 2;
		for (uint32_t c = 0; c < HCCLD_COPY_CHUNKS; c++)
			at->claims[c] = copy_claim_word(i, c % 8);
	}
	atomic_store(&rig->copies->active, UINT64_MAX);
	rig_restart(rig);
	/* it seems that somebody owns a chunk: until he is dead */
	rig_run(rig);
	check(!rig_is_done(rig, 1, 0));
	/* others are not held up by that */
	check(engine_memory_detach(rig->engine, rig->ranks[0].region, 4096));
	for (uint32_t i = 0; i < HCCLD_COPIES; i++)
		for (uint32_t c = 0; c < HCCLD_COPY_CHUNKS; c++)
			atomic_store(&rig->copies->records[i].claims[c], 0);
	rig_run(rig);
	check_right();
	end();
}

TEST(lost_memory_fails_the_receive_when_nobody_writes)
{
	struct engine_slice slice;

	begin();
	submit(0);
	helper_claims(CHUNKS - 1, CLAIM_SENDER);
	check(engine_slice_next_of(rig->engine, HCCLD_SLICE, &slice));
	slice.lost = slice.destination;
	engine_slice_done(rig->engine, &slice);
	rig_run(rig);
	check(!rig_is_done(rig, 1, 0));
	helper_ends(CHUNKS - 1);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0) && rig_is_done(rig, 0, 0));
	check_eq_int(rig->ranks[1].streams[0]->fault.cause, CAUSE_MEMORY_FAULT);
	end();
}
