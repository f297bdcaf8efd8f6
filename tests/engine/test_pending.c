/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are offered and not received: counted, held back beyond the limit, and let go when there is room. */
#include <string.h>

#include "engine/executor.h"
#include "proto/status.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define SEND(to, at, size) { .kind = ITEM_SEND, .peer = (to), .offset = (at), .bytes = (size) }
#define RECEIVE(from, at, size) { .kind = ITEM_RECEIVE, .peer = (from), .offset = (at), .bytes = (size) }

static struct view_share share;

static struct rig *rig_of(uint32_t ranks, uint64_t limit)
{
	struct rig *rig = rig_new(ranks, false);

	memset(&share, 0, sizeof(share));
	atomic_store(&share.pending_limit, limit);
	rig->comm.share = &share;
	for (uint32_t i = 0; i < ranks; i++)
		rig->contexts[i].share = &share;
	rig->view.share = &share;
	return rig;
}

static struct rig *rig_with_limit(uint64_t limit)
{
	return rig_of(2, limit);
}

/* Rank 0 sends @count times @bytes, each in a task of its own. */
static void send_some(struct rig *rig, uint32_t count, uint64_t bytes)
{
	for (uint32_t i = 0; i < count; i++)
		rig_submit(rig, 0, i % 2, (struct rig_item[]){ SEND(1, i * bytes, bytes) }, 1, 0);
	rig_run(rig);
}

static void receive_one(struct rig *rig, uint64_t bytes)
{
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 1 << 20, bytes) }, 1, 0);
	rig_run(rig);
}

TEST(pending_bytes_are_counted)
{
	struct rig *rig = rig_with_limit(0);

	send_some(rig, 2, 1000);
	check_eq_uint(atomic_load(&share.pending), 2000);
	receive_one(rig, 1000);
	check_eq_uint(atomic_load(&share.pending), 1000);
	receive_one(rig, 1000);
	check_eq_uint(atomic_load(&share.pending), 0);
	/* large ones go in slices */
	send_some(rig, 1, 1 << 20);
	check_eq_uint(atomic_load(&share.pending), 1 << 20);
	receive_one(rig, 1 << 20);
	check_eq_uint(atomic_load(&share.pending), 0);
	rig_free(rig);
}

TEST(sends_beyond_the_limit_wait)
{
	struct rig *rig = rig_with_limit(1500);
	struct pair_ring *ring = rig_pair(rig, 0, 1);

	for (uint32_t i = 0; i < RIG_STREAMS; i++)
		rig_submit(rig, 0, i, (struct rig_item[]){ SEND(1, i * 1000, 1000) }, 1, 0);
	rig_run(rig);
	check_eq_uint(atomic_load(&ring->tail), 1);
	check(rig->contexts[0].held);
	check(!view_share_allows(&share, 1000) && view_share_allows(&share, 500));
	check(!rig_is_done(rig, 0, 1));
	receive_one(rig, 1000);
	check_eq_uint(atomic_load(&ring->tail), 2);
	check(!rig->contexts[0].held);
	receive_one(rig, 1000);
	check(view_share_allows(&share, 5000));
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 0, 1) && rig_is_done(rig, 1, 0));
	check_eq_uint(atomic_load(&share.pending), 0);
	rig_free(rig);
}

/* Rank 1 takes what is pending only when rank 2 has got what is held back. */
TEST(what_is_waited_for_is_not_held_back)
{
	for (int is_late = 0; is_late < 2; is_late++) {
		struct rig *rig = rig_of(3, 1000);

		if (!is_late)
			rig_submit(rig, 2, 0, (struct rig_item[]){ RECEIVE(0, 0, 1000) }, 1, 0);
		rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 1000) }, 1, 0);
		rig_run(rig);
		rig_submit(rig, 0, 1, (struct rig_item[]){ SEND(2, 0, 1000) }, 1, 0);
		rig_run(rig);
		if (is_late) {
			check(!rig_is_done(rig, 0, 1));
			rig_submit(rig, 2, 0, (struct rig_item[]){ RECEIVE(0, 0, 1000) }, 1, 0);
			rig_run(rig);
		}
		check(rig_is_done(rig, 0, 1) && rig_is_done(rig, 2, 0));
		check_eq_uint(atomic_load(&share.pending), 1000);
		receive_one(rig, 1000);
		check(rig_is_done(rig, 0, 0));
		check_eq_uint(atomic_load(&share.pending), 0);
		rig_free(rig);
	}
}

TEST(one_send_larger_than_the_limit_goes_alone)
{
	struct rig *rig = rig_with_limit(100);

	send_some(rig, 1, 5000);
	check_eq_uint(atomic_load(&share.pending), 5000);
	receive_one(rig, 5000);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	rig_free(rig);
}

TEST(a_raised_limit_counts_at_the_next_beat)
{
	struct rig *rig = rig_with_limit(1500);
	struct pair_ring *ring = rig_pair(rig, 0, 1);

	for (uint32_t i = 0; i < RIG_STREAMS; i++)
		rig_submit(rig, 0, i, (struct rig_item[]){ SEND(1, i * 1000, 1000) }, 1, 0);
	rig_run(rig);
	check_eq_uint(atomic_load(&ring->tail), 1);
	engine_look_at_held(rig->engine);
	check(!view_share_allows(&share, 1000)); /* who asks during a beat is told the same */
	rig_run(rig);
	check_eq_uint(atomic_load(&ring->tail), 1);
	atomic_store(&share.pending_limit, 5000);
	engine_look_at_held(rig->engine);
	rig_run(rig);
	check_eq_uint(atomic_load(&ring->tail), 2);
	rig_free(rig);
}

TEST(what_fails_or_leaves_is_pending_no_more)
{
	struct rig *rig = rig_with_limit(1500);

	send_some(rig, 1, 1000);
	receive_one(rig, 999); /* of another size: the pair fails */
	check_eq_uint(atomic_load(&share.pending), 0);
	rig_free(rig);
	rig = rig_with_limit(1500);
	send_some(rig, 1, 1000);
	atomic_store(&rig->comm.region->members[1].word, MEMBER_DEAD);
	check(engine_rank_detach(rig->engine, &rig->ranks[1].session.ranks[1]));
	check_eq_uint(atomic_load(&share.pending), 0);
	rig_free(rig);
}

/* Numbers wrap one day, and a liar's do at once: what is counted is never more than there are slots. */
TEST(numbers_that_wrap_are_counted)
{
	struct pair_ring ring = { 0 };
	struct pair_rest rest;
	struct view_pair pair = { .rest = &rest };

	for (uint64_t number = 1; number <= HCCLD_PAIR_SLOTS; number++)
		pair_ring_slot(&ring, &rest, number)->bytes = 1;
	check_eq_uint(pending_bytes(&pair, &ring, UINT64_MAX - 2, UINT64_MAX), 3);
	check_eq_uint(pending_bytes(&pair, &ring, UINT64_MAX, 1), 3);
	check_eq_uint(pending_bytes(&pair, &ring, 0, UINT64_MAX), 0);
	check_eq_uint(pending_bytes(&pair, &ring, 1, UINT64_MAX - 1), HCCLD_PAIR_SLOTS);
}

/* Offers from `wide_from` on are in the wide ring, as many as that has slots; before the view has it, a liar's word changes nothing. */
TEST(offers_in_a_wide_ring_are_counted)
{
	static struct pair_wide wide;
	struct pair_ring ring = { 0 };
	struct pair_rest rest;
	struct view_pair pair = { .rest = &rest };

	for (uint64_t number = 1; number <= HCCLD_PAIR_SLOTS; number++)
		pair_ring_slot(&ring, &rest, number)->bytes = 1;
	for (uint32_t i = 0; i < HCCLD_PAIR_WIDE_SLOTS; i++)
		wide.slots[i].bytes = 100;
	atomic_store(&ring.wide_from, 11);
	check_eq_uint(pending_bytes(&pair, &ring, 6, 1000), HCCLD_PAIR_SLOTS);
	atomic_store(&pair.wide, &wide);
	check_eq_uint(pending_bytes(&pair, &ring, 6, 10), 5);
	check_eq_uint(pending_bytes(&pair, &ring, 6, 12), 5 + 2 * 100);
	check_eq_uint(pending_bytes(&pair, &ring, 11, 1010), 1000 * 100);
	check_eq_uint(pending_bytes(&pair, &ring, 11, UINT64_MAX - 1), HCCLD_PAIR_WIDE_SLOTS * 100ull);
}

/* A place that a client has written is one of the source's payloads, or nowhere. */
TEST(places_are_within_payloads_of_their_source)
{
	static unsigned char memory[2][1 << 20];
	_Atomic(struct view_pools *) tables[2] = { NULL };
	struct view_comm comm = { .size = 2 };
	struct view_pools pools = { 0 };
	uint64_t payload, end;

	check_null(view_eager_find(&comm, 0, 0, 1));
	comm.pools = tables;
	check_null(view_eager_find(&comm, 0, 0, 1));
	for (uint32_t i = 0; i < 2; i++)
		pools.pools[i] = (struct eager_place){ .place = (i + 1) << 20,
						     .pool = (struct eager_pool *)memory[i], .slot_count = HCCLD_EAGER_SLOTS << i };
	atomic_store(&pools.count, 1);
	atomic_store(&tables[0], &pools);
	payload = (1 << 20) + eager_payload_offset(HCCLD_EAGER_SLOTS, 0);
	end = (1 << 20) + eager_pool_size(HCCLD_EAGER_SLOTS);
	check(view_eager_find(&comm, 0, payload, HCCLD_EAGER_MAX) == memory[0] + eager_payload_offset(HCCLD_EAGER_SLOTS, 0));
	check(view_eager_find(&comm, 0, end - 5, 5) == memory[0] + eager_pool_size(HCCLD_EAGER_SLOTS) - 5);
	check_null(view_eager_find(&comm, 0, end - 5, 6));
	check_null(view_eager_find(&comm, 0, end - 5, UINT64_MAX));
	check_null(view_eager_find(&comm, 0, end, 0));
	check_null(view_eager_find(&comm, 0, payload - 1, 1));
	check_null(view_eager_find(&comm, 0, 1 << 20, 1));
	check_null(view_eager_find(&comm, 0, 0, 1));
	check_null(view_eager_find(&comm, 0, UINT64_MAX, 1));
	check_null(view_eager_find(&comm, 1, payload, 1));
	payload = (2 << 20) + eager_payload_offset(2 * HCCLD_EAGER_SLOTS, 7);
	check_null(view_eager_find(&comm, 0, payload, 1));
	atomic_store(&pools.count, 2);
	check(view_eager_find(&comm, 0, payload, 8) == memory[1] + eager_payload_offset(2 * HCCLD_EAGER_SLOTS, 7));
}

TEST(the_count_comes_again_after_a_restart)
{
	struct rig *rig = rig_with_limit(1500);

	for (uint32_t i = 0; i < RIG_STREAMS; i++)
		rig_submit(rig, 0, i, (struct rig_item[]){ SEND(1, i * 1000, 1000) }, 1, 0);
	rig_run(rig);
	/* private to the executor that is gone */
	atomic_store(&share.pending, 0);
	for (uint32_t i = 0; i < 4; i++)
		rig->comm.pairs[i].pending = 0;
	for (uint32_t i = 0; i < 2; i++)
		rig->contexts[i].held = false;
	rig_restart(rig);
	rig_run(rig);
	check_eq_uint(atomic_load(&share.pending), 1000);
	receive_one(rig, 1000);
	receive_one(rig, 1000);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 0, 1) && rig_is_done(rig, 1, 0));
	check_eq_uint(atomic_load(&share.pending), 0);
	rig_free(rig);
}
