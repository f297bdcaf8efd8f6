/* SPDX-License-Identifier: Apache-2.0 */
/* Sends that complete without their receivers: the executor asks for the room that they need, waits for the answer, and for nothing else. */
#include "engine/executor.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define BYTES 1000u

static struct rig *rig_with_room(void)
{
	struct rig *rig = rig_new(2, false);

	rig_have_room(rig);
	return rig;
}

static void send_one(struct rig *rig, uint32_t stream, uint64_t at, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		rig->ranks[0].memory[at + i] = (unsigned char)(at + i * 3 + 1);
	rig_submit(rig, 0, stream, (struct rig_item[]){ { ITEM_SEND, 1, at, bytes, 7 } }, 1, 0);
	rig_run(rig);
}

static void receive_one(struct rig *rig, uint64_t at, uint64_t bytes)
{
	rig_submit(rig, 1, 0, (struct rig_item[]){ { ITEM_RECEIVE, 0, 0, bytes, 7 } }, 1, 0);
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	for (uint64_t i = 0; i < bytes; i++)
		check_eq_uint(rig->ranks[1].memory[i], (unsigned char)(at + i * 3 + 1));
}

TEST(a_pool_is_asked_for_and_used)
{
	struct rig *rig = rig_with_room();

	send_one(rig, 0, 0, BYTES);
	/* nothing is offered that would have to be received */
	check(!rig_is_done(rig, 0, 0));
	check_eq_uint(rig_pair(rig, 0, 1)->tail, 0);
	check_eq_uint(rig->rooms_asked, 1);
	check_eq_uint(rig->room_source, 0);
	check_eq_uint(rig->room_destination, 0);
	check_eq_uint(rig->room_pools, 0);
	/* once */
	engine_look_at_held(rig->engine);
	rig_run(rig);
	check_eq_uint(rig->rooms_asked, 1);
	rig_answer(rig, 2);
	check(rig_is_done(rig, 0, 0));
	send_one(rig, 1, 2000, BYTES);
	check(rig_is_done(rig, 0, 1));
	check_eq_uint(rig->rooms_asked, 1);
	/* full: another one */
	send_one(rig, 0, 4000, BYTES);
	check(!rig_is_done(rig, 0, 0));
	check_eq_uint(rig->rooms_asked, 2);
	check_eq_uint(rig->room_pools, 1);
	rig_answer(rig, 4);
	check(rig_is_done(rig, 0, 0));
	for (uint64_t at = 0; at < 6000; at += 2000)
		receive_one(rig, at, BYTES);
	rig_free(rig);
}

TEST(what_is_refused_waits_for_its_receiver)
{
	struct rig *rig = rig_with_room();

	send_one(rig, 0, 0, BYTES);
	rig_answer(rig, 0);
	check(!rig_is_done(rig, 0, 0));
	check_eq_uint(rig_pair(rig, 0, 1)->tail, 1);
	receive_one(rig, 0, BYTES);
	check(rig_is_done(rig, 0, 0));
	send_one(rig, 0, 0, BYTES);
	check_eq_uint(rig->rooms_asked, 1);
	receive_one(rig, 0, BYTES);
	check(rig_is_done(rig, 0, 0));
	rig_free(rig);
}

TEST(what_nobody_heard_is_asked_again)
{
	struct rig *rig = rig_with_room();

	rig->is_deaf = true;
	send_one(rig, 0, 0, BYTES);
	check_eq_uint(rig_pair(rig, 0, 1)->tail, 0);
	check_eq_uint(rig->rooms_asked, 0);
	rig->is_deaf = false;
	check(engine_has_held(rig->engine));
	engine_look_at_held(rig->engine);
	rig_run(rig);
	check_eq_uint(rig->rooms_asked, 1);
	rig_answer(rig, 2);
	check(rig_is_done(rig, 0, 0));
	rig_free(rig);
}

TEST(a_receive_that_is_posted_needs_no_room)
{
	struct rig *rig = rig_with_room();

	rig_submit(rig, 1, 0, (struct rig_item[]){ { ITEM_RECEIVE, 0, 0, BYTES, 7 } }, 1, 0);
	rig_run(rig);
	send_one(rig, 0, 0, BYTES);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(rig->rooms_asked, 0);
	/* also when it comes while an answer is waited for */
	send_one(rig, 0, 2000, BYTES);
	check(!rig_is_done(rig, 0, 0));
	check_eq_uint(rig->rooms_asked, 1);
	receive_one(rig, 2000, BYTES);
	check(rig_is_done(rig, 0, 0));
	rig_free(rig);
}

TEST(a_full_ring_is_widened)
{
	struct rig *rig = rig_with_room();

	for (uint32_t i = 0; i < HCCLD_PAIR_SLOTS; i++)
		send_one(rig, 0, i * 64, 8);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(rig->rooms_asked, 0);
	send_one(rig, 0, HCCLD_PAIR_SLOTS * 64, 8);
	check(!rig_is_done(rig, 0, 0));
	check_eq_uint(rig->rooms_asked, 1);
	check_eq_uint(rig->room_source, 0);
	check_eq_uint(rig->room_destination, 1);
	rig_answer(rig, 1);
	check(rig_is_done(rig, 0, 0));
	check_eq_uint(rig_pair(rig, 0, 1)->wide_from, HCCLD_PAIR_SLOTS + 1);
	check_eq_uint(rig_pair(rig, 0, 1)->wide, view_pair_of(&rig->comm, 0, 1)->wide_index + 1);
	for (uint32_t i = 0; i <= HCCLD_PAIR_SLOTS; i++)
		receive_one(rig, i * 64, 8);
	rig_free(rig);
}

/* What is too large for a slot, and rings of an older release, ask for nothing. */
TEST(nothing_is_asked_for_in_vain)
{
	struct rig *rig = rig_with_room();

	for (uint32_t i = 0; i <= HCCLD_PAIR_SLOTS; i++)
		send_one(rig, i % RIG_STREAMS, 0, HCCLD_EAGER_MAX + 1);
	check_eq_uint(rig_pair(rig, 0, 1)->tail, 2);
	check_eq_uint(rig->rooms_asked, 0);
	rig_free(rig);

	rig = rig_with_room();
	rig_make_first(rig);
	for (uint32_t i = 0; i <= HCCLD_PAIR_SLOTS_FIRST; i++)
		send_one(rig, 0, i * 64, 8);
	check(!rig_is_done(rig, 0, 0));
	check_eq_uint(rig->rooms_asked, 0);
	for (uint32_t i = 0; i <= HCCLD_PAIR_SLOTS_FIRST; i++)
		receive_one(rig, i * 64, 8);
	check(rig_is_done(rig, 0, 0));
	rig_free(rig);
}
