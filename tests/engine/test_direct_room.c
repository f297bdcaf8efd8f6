/* SPDX-License-Identifier: Apache-2.0 */
/* Sends that complete without their receivers, by the executor in clients: what it wishes for, and what it leaves to the engine. */
#include <stdlib.h>

#include "engine/executor.h"
#include "tests/engine/direct_client.h"
#include "tests/engine/drivers.h"
#include "tests/support/test.h"

#define BYTES 1000u

static struct beacon beacon;

struct direct_case {
	struct rig *rig;
	struct client *client;
};

/* Rank 0 drives; there is room for it as long as somebody gives it. */
static struct direct_case case_new(void)
{
	struct direct_case it = { .rig = rig_new(2, false) };

	atomic_store(&beacon.awake, BEACON_AWAKE);
	atomic_store(&beacon.local_path, PATH_DIRECT);
	rig_have_room(it.rig);
	engine_set_direct(it.rig->engine, true);
	it.client = client_new(it.rig, 0, &beacon, -1);
	it.client->rank.full_until_ns = 0;
	return it;
}

static void case_free(struct direct_case *it)
{
	rig_free(it->rig);
	free(it->client);
}

/* One more send; how the pass of its client has left it, with what wish. */
static enum direct_left send_direct(struct direct_case *it, uint64_t bytes)
{
	struct direct_context *direct = &it->client->direct;
	enum direct_left left;

	rig_put(it->rig, 0, 0, &(struct rig_item)SEND(1, 0, bytes), 1, 0);
	check(direct_take(direct));
	direct->wish.need = NEED_NOTHING;
	left = direct_pass(direct, DIRECT_BUDGET_ALL, false);
	direct_leave(direct, left);
	return left;
}

static enum direct_left pass_again(struct direct_case *it)
{
	struct direct_context *direct = &it->client->direct;
	enum direct_left left;

	check(direct_take(direct));
	direct->wish.need = NEED_NOTHING;
	left = direct_pass(direct, DIRECT_BUDGET_ALL, false);
	direct_leave(direct, left);
	return left;
}

static void map_wide(struct direct_case *it)
{
	struct view_pair *pair = view_pair_of(&it->rig->comm, 0, 1);

	it->client->peers[1].wide_out = atomic_load(&pair->wide);
	it->client->peers[1].wide_index = pair->wide_index;
}

TEST(a_full_ring_is_a_wish)
{
	struct direct_case it = case_new();

	for (uint32_t i = 0; i < HCCLD_PAIR_SLOTS; i++)
		check_eq_int(send_direct(&it, 8), DIRECT_DONE);
	check_eq_int(send_direct(&it, 8), DIRECT_WAITS);
	check_eq_int(it.client->direct.wish.need, NEED_WIDE);
	rig_give(it.rig, 0, 1, 1);
	map_wide(&it);
	check_eq_int(pass_again(&it), DIRECT_DONE);
	check_eq_uint(rig_pair(it.rig, 0, 1)->wide_from, HCCLD_PAIR_SLOTS + 1);
	case_free(&it);
}

/* Else it would leave all it sends to this peer to the engine from then on. */
TEST(so_is_a_ring_that_the_engine_has_widened)
{
	struct direct_case it = case_new();

	rig_give(it.rig, 0, 1, 1);
	for (uint32_t i = 0; i <= HCCLD_PAIR_SLOTS; i++) {
		rig_submit(it.rig, 0, 0, &(struct rig_item)SEND(1, 0, 8), 1, 0);
		rig_run(it.rig);
		check(rig_is_done(it.rig, 0, 0));
	}
	check_eq_uint(rig_pair(it.rig, 0, 1)->wide_from, HCCLD_PAIR_SLOTS + 1);
	check_eq_int(send_direct(&it, 8), DIRECT_WAITS);
	check_eq_int(it.client->direct.wish.need, NEED_WIDE);
	map_wide(&it);
	check_eq_int(pass_again(&it), DIRECT_DONE);
	check_eq_uint(rig_pair(it.rig, 0, 1)->tail, HCCLD_PAIR_SLOTS + 2);
	case_free(&it);
}

TEST(what_is_refused_is_offered_in_place)
{
	struct direct_case it = case_new();

	check_eq_int(send_direct(&it, BYTES), DIRECT_WAITS);
	check_eq_int(it.client->direct.wish.need, NEED_POOL);
	check_eq_uint(rig_pair(it.rig, 0, 1)->tail, 0);
	it.client->rank.full_until_ns = UINT64_MAX;
	check_eq_int(pass_again(&it), DIRECT_WAITS);
	check_eq_int(it.client->direct.wish.need, NEED_NOTHING);
	check_eq_uint(rig_pair(it.rig, 0, 1)->tail, 1);
	case_free(&it);
}

TEST(what_cannot_be_mapped_is_left_to_the_engine)
{
	struct direct_case it = case_new();

	it.client->rank.is_unmapped = true;
	check_eq_int(send_direct(&it, BYTES), DIRECT_DECLINED);
	check_eq_int(it.client->direct.wish.need, NEED_NOTHING);
	check_eq_uint(rig_pair(it.rig, 0, 1)->tail, 0);
	rig_run(it.rig);
	check_eq_uint(it.rig->rooms_asked, 1);
	rig_answer(it.rig, 2);
	check(rig_is_done(it.rig, 0, 0));
	/* small ones need none, until the ring is full */
	for (uint32_t i = 1; i < HCCLD_PAIR_SLOTS; i++)
		check_eq_int(send_direct(&it, 8), DIRECT_DONE);
	check_eq_int(send_direct(&it, 8), DIRECT_DECLINED);
	rig_run(it.rig);
	check_eq_uint(it.rig->rooms_asked, 2);
	rig_answer(it.rig, 1);
	check(rig_is_done(it.rig, 0, 0));
	case_free(&it);
}

/* ---- copies for who has asked ---- */

/* With a pool, and a receive posted. @copies: the sender shares its processor. */
static struct direct_case case_posted(struct client_pools *pools, bool copies)
{
	struct direct_case it = case_new();
	struct client *other = client_new(it.rig, 1, &beacon, -1);

	free(it.rig->comm.pools);
	client_pools_init(pools, it.rig, (struct client *[]){ it.client, other });
	free(other);
	rig_submit(it.rig, 1, 0, &(struct rig_item)RECEIVE(0, 0, BYTES), 1, 0);
	rig_run(it.rig);
	check_eq_uint(rig_pair(it.rig, 0, 1)->posted, 1);
	it.client->direct.copies_sends = copies;
	return it;
}

static void case_posted_free(struct direct_case *it, struct client_pools *pools)
{
	client_pools_deinit(pools, it->rig);
	case_free(it);
}

static void check_sent(struct direct_case *it, enum direct_left left, enum offer_where where)
{
	check_eq_int(send_direct(it, BYTES), left);
	check_eq_uint(rig_pair(it->rig, 0, 1)->slots[0].where, where);
}

static void check_received(struct direct_case *it)
{
	rig_run(it->rig);
	check(rig_is_done(it->rig, 1, 0));
}

TEST(who_has_asked_copies_himself)
{
	struct client_pools pools;
	struct direct_case it = case_posted(&pools, false);

	check_sent(&it, DIRECT_WAITS, OFFER_SEGMENT);
	check_received(&it);
	case_posted_free(&it, &pools);
}

TEST(unless_the_sender_would_have_to_wait_for_his_turn)
{
	struct client_pools pools;
	struct direct_case it = case_posted(&pools, true);

	memset(it.rig->ranks[0].memory, 0x5a, BYTES);
	check_sent(&it, DIRECT_DONE, OFFER_EAGER);
	memset(it.rig->ranks[0].memory, 0, BYTES);
	check_received(&it);
	for (uint32_t i = 0; i < BYTES; i++)
		check_eq_uint(it.rig->ranks[1].memory[i], 0x5a);
	case_posted_free(&it, &pools);
}

/* It would not be received. */
TEST(or_who_has_asked_has_gone)
{
	struct client_pools pools;
	struct direct_case it = case_posted(&pools, true);

	atomic_store(&it.rig->comm.region->members[1].word, MEMBER_DEAD);
	check_sent(&it, DIRECT_WAITS, OFFER_SEGMENT);
	case_posted_free(&it, &pools);
}

/* It makes nobody ask for more room: the receiver is there. */
TEST(or_there_is_no_room_for_it)
{
	struct client_pools pools;
	struct direct_case it = case_posted(&pools, true);

	for (uint32_t i = 0; i < CLIENT_POOL_SLOTS; i++) {
		it.client->rank.pools[0].pool->heads[i].number = 1;
		it.client->rank.pools[0].pool->heads[i].peer = 1;
	}
	check_sent(&it, DIRECT_WAITS, OFFER_SEGMENT);
	check_eq_int(it.client->direct.wish.need, NEED_NOTHING);
	check_received(&it);
	case_posted_free(&it, &pools);
}

TEST(the_first_pool_is_asked_for)
{
	struct client_pools pools;
	struct direct_case it = case_posted(&pools, true);

	it.client->rank.pool_count = 0;
	check_eq_int(send_direct(&it, BYTES), DIRECT_WAITS);
	check_eq_int(it.client->direct.wish.need, NEED_POOL);
	case_posted_free(&it, &pools);
}
