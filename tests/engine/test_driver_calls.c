/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the control thread while threads of clients advance contexts, and what is pending then. */
#include "engine/executor.h"
#include "proto/clock.h"
#include "tests/engine/drivers.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

/* ---- calls ---- */

static bool suspend(struct rig *rig, uint32_t rank)
{
	return engine_rank_suspend(rig->engine, &rig->ranks[rank].session.ranks[rank]);
}

/* As registry/suspend.c. */
static void suspend_words(struct rig *rig, uint32_t rank)
{
	struct comm_member *member = &rig->comm.region->members[rank];

	atomic_store(&member->suspended_at, atomic_fetch_add(&rig->comm.region->suspensions, 1) + 1);
	atomic_fetch_add(&member->epoch, 1);
}

TEST(a_suspension_waits_for_peers_that_are_driven)
{
	struct rig *rig = rig_shared(3);
	struct pair_ring *ring = rig_pair(rig, 0, 1);

	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_run(rig);
	client_stores(rig, 1, CONTEXT_CLIENT);
	suspend_words(rig, 0);
	check(!suspend(rig, 0) && !suspend(rig, 0));
	check_eq_uint(ring->received, 0);
	check_eq_int(kind_of(rig, 1), CONTEXT_CLIENT);
	/* it is in the middle of its commit, and then finds out */
	ring->sent = ring->tail = 1;
	atomic_store(&ring->received, 1);
	client_stores(rig, 1, CONTEXT_LEFT);
	check(suspend(rig, 0));
	check(rig_is_done(rig, 1, 0));
	check_eq_uint(rig->ranks[1].streams[0]->fault_count, 0);
	check_eq_uint(ring->received, 1);
	check_eq_uint(ring->failed, 0);
	/* the next one begins anew */
	client_stores(rig, 2, CONTEXT_CLIENT);
	suspend_words(rig, 1);
	check(!suspend(rig, 1));
	client_stores(rig, 2, CONTEXT_IDLE);
	check(suspend(rig, 1));
	rig_free(rig);
}

/* Stopped, say. Better an error for its pairs than calls of everybody that wait. */
TEST(a_suspension_does_not_wait_for_ever)
{
	struct rig *rig = rig_shared(3);
	uint64_t since = clock_now_ns();

	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_run(rig);
	client_stores(rig, 1, CONTEXT_CLIENT);
	suspend_words(rig, 0);
	while (!suspend(rig, 0))
		check_lt_uint(clock_now_ns() - since, 20000000000u);
	check_gt_uint(clock_now_ns() - since, 900000000u);
	check_eq_uint(rig_pair(rig, 0, 1)->failed, 1);
	check_eq_uint(rig_pair(rig, 0, 2)->failed, 0);
	/* nobody waits for the dead */
	atomic_store(&rig->comm.region->members[1].word, MEMBER_DEAD);
	suspend_words(rig, 2);
	check(suspend(rig, 2));
	rig_free(rig);
}

TEST(tasks_are_taken_out_when_no_client_is_at_them)
{
	struct rig *rig = rig_shared(3);
	struct stream_ring *ring = rig->ranks[1].streams[0];

	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 100) }, 1, 0);
	rig_submit(rig, 1, 1, (struct rig_item[]){ RECEIVE(2, 0, 100) }, 1, 0);
	rig_run(rig);
	client_stores(rig, 1, CONTEXT_CLIENT);
	check(!engine_stream_drop(rig->engine, &rig->contexts[1], ring, false, CAUSE_STREAM_ABORTED));
	check(!rig_is_done(rig, 1, 0));
	check_eq_uint(ring->dropped, 0);
	client_stores(rig, 1, CONTEXT_SLEEP);
	check(engine_stream_drop(rig->engine, &rig->contexts[1], ring, false, CAUSE_STREAM_ABORTED));
	check(rig_is_done(rig, 1, 0));
	check_eq_int(ring->fault.cause, CAUSE_STREAM_ABORTED);
	/* the other stream's is the engine's now */
	check(has_bit(rig, 1) && kind_of(rig, 1) == CONTEXT_LEFT);
	rig_run(rig);
	check_eq_int(kind_of(rig, 1), CONTEXT_PARKED);
	rig_free(rig);
}

/* ---- what is pending ---- */

TEST(pending_bytes_are_counted_anew_when_clients_may_drive_no_more)
{
	static struct view_share share;
	struct rig *rig = rig_new(2, false);

	rig->comm.share = rig->contexts[0].share = rig->contexts[1].share = &share;
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 1000) }, 1, 0);
	rig_run(rig);
	check_eq_uint(atomic_load(&share.pending), 1000);
	engine_set_direct(rig->engine, true);
	engine_recount(rig->engine, &rig->contexts[0]);
	check_eq_uint(atomic_load(&share.pending), 0);
	/* the engine offers, a client receives, and offers itself */
	rig_submit(rig, 0, 1, (struct rig_item[]){ SEND(1, 0, 2000) }, 1, 0);
	rig_run(rig);
	check_eq_uint(atomic_load(&share.pending), 0);
	atomic_store(&rig_pair(rig, 0, 1)->received, 1);
	engine_set_direct(rig->engine, false);
	engine_recount(rig->engine, &rig->contexts[0]);
	check_eq_uint(atomic_load(&share.pending), 2000);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 4000, 2000) }, 1, 0);
	rig_pair(rig, 0, 1)->posted = 1;
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	check_eq_uint(atomic_load(&share.pending), 0);
	rig_free(rig);
}
