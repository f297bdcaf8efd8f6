/* SPDX-License-Identifier: Apache-2.0 */
/* GrowComm: eager pools and wide rings, in place of pair rings. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/feature.h"
#include "proto/status.h"
#include "tests/daemon/rings.h"
#include "tests/support/test.h"

/* Of the first extent of pairs: 64 rings, and the records behind them. */
#define FIRST_PAIRS 69u

/* A number that no extent of these tests has. */
#define NOWHERE UINT32_MAX

/* What GrowComm answers: the cause, and in *@ret_text what it says if not NULL. */
static uint32_t grow(struct raw_client *client, uint64_t rank, bool pool, uint32_t which, uint32_t *ret_index, uint32_t *ret_slots, char *ret_text)
{
	Hccld__Control__GrowComm body = HCCLD__CONTROL__GROW_COMM__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint32_t cause;

	body.rank = rank;
	body.pool = pool;
	if (pool)
		body.pools = which;
	else
		body.peer = which;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GROW_COMM;
	request.grow_comm = &body;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	check_eq_int(reply.message->body_case, cause ? HCCLD__CONTROL__REPLY__BODY__NOT_SET : HCCLD__CONTROL__REPLY__BODY_GROW_COMM);
	if (cause == 0) {
		*ret_index = reply.message->grow_comm->index;
		*ret_slots = reply.message->grow_comm->slots;
	} else if (ret_text) {
		snprintf(ret_text, HCCLD_TEXT_MAX, "%s", reply.message->text);
	}
	raw_reply_free(&reply);
	return cause;
}

/* The number at which it begins. */
static uint32_t grow_pool(struct scene *scene, uint32_t rank, uint32_t which)
{
	uint32_t index = NOWHERE, slots = 0;

	check_eq_uint(grow(&scene->clients[rank > 0], scene->ranks[rank], true, which, &index, &slots, NULL), 0);
	check_eq_uint(slots, HCCLD_EAGER_SLOTS << which);
	return index;
}

static uint32_t grow_wide(struct scene *scene, uint32_t rank, uint32_t peer)
{
	uint32_t index = NOWHERE, slots = 0;

	check_eq_uint(grow(&scene->clients[rank > 0], scene->ranks[rank], false, peer, &index, &slots, NULL), 0);
	check_eq_uint(slots, HCCLD_PAIR_WIDE_SLOTS);
	return index;
}

/* As many places as @bytes take. */
static uint32_t numbers_of(uint64_t bytes)
{
	return (uint32_t)((bytes + PAIR_PLACE - 1) / PAIR_PLACE);
}

/* What begins at number @index; NULL: not mapped. */
static void *rings_at(const struct rings *rings, uint32_t index, uint32_t numbers)
{
	for (uint32_t i = 0; i < rings->count; i++)
		if (rings->first[i] == index) {
			check_eq_uint(rings->pairs[i], numbers);
			return rings->bases[i];
		}
	return NULL;
}

static struct eager_pool *pool_at(const struct rings *rings, uint32_t index, uint32_t which)
{
	return rings_at(rings, index, numbers_of(eager_pool_size(HCCLD_EAGER_SLOTS << which)));
}

static struct pair_wide *wide_at(const struct rings *rings, uint32_t index)
{
	return rings_at(rings, index, numbers_of(sizeof(struct pair_wide)));
}

/* All that @rank may map. */
static void map_all(struct scene *scene, uint32_t rank, struct rings *ret_rings)
{
	*ret_rings = (struct rings){ 0 };
	check(!open_pairs(scene, rank, 0, 0, ret_rings));
}

/* They are made once, are where their numbers say, and both ends see them; also after a restart. */
TEST_TIMEOUT(pools_and_wide_rings_are_mapped, 60)
{
	struct rings of[3];
	struct eager_pool *pool;
	uint32_t pools[2], wide;
	struct scene scene;

	scene_start(&scene, 3, HCCLD_FEATURE_DIRECT);
	check(!open_pairs(&scene, 0, 2, 0, NULL));
	pools[0] = grow_pool(&scene, 0, 0);
	check_eq_uint(pools[0], FIRST_PAIRS);
	wide = grow_wide(&scene, 0, 1);
	check_eq_uint(wide, pools[0] + numbers_of(eager_pool_size(HCCLD_EAGER_SLOTS)));
	pools[1] = grow_pool(&scene, 0, 1);
	check_eq_uint(pools[1], wide + numbers_of(sizeof(struct pair_wide)));
	for (uint32_t restarts = 0; restarts < 2; restarts++) {
		check_eq_uint(grow_pool(&scene, 0, 0), pools[0]);
		check_eq_uint(grow_pool(&scene, 0, 1), pools[1]);
		check_eq_uint(grow_wide(&scene, 0, 1), wide);
		for (uint32_t i = 0; i < 3; i++)
			map_all(&scene, i, &of[i]);
		check_eq_uint(of[0].count, 4);
		check_eq_uint(of[1].count, 4);
		check_null(pool_at(&of[2], pools[0], 0)); /* nothing comes to it from rank 0 */
		for (uint32_t i = 0; i < 2; i++) {
			pool = pool_at(&of[0], pools[i], i);
			check_eq_uint(pool->magic, EAGER_MAGIC);
			check_eq_uint(pool->rank, 0);
			check_eq_uint(pool->slot_count, HCCLD_EAGER_SLOTS << i);
			check_eq_uint(atomic_load(&pool->heads[pool->slot_count - 1].number), restarts * 77);
			atomic_store(&pool->heads[pool->slot_count - 1].number, 77);
			check_eq_uint(atomic_load(&pool_at(&of[1], pools[i], i)->heads[pool->slot_count - 1].number), 77);
			*((unsigned char *)pool + eager_pool_size(pool->slot_count) - 1) = 5;
		}
		check_eq_uint(wide_at(&of[0], wide)->slots[HCCLD_PAIR_WIDE_SLOTS - 1].number, restarts * 88);
		wide_at(&of[0], wide)->slots[HCCLD_PAIR_WIDE_SLOTS - 1].number = 88;
		check_eq_uint(wide_at(&of[1], wide)->slots[HCCLD_PAIR_WIDE_SLOTS - 1].number, 88);
		for (uint32_t i = 0; i < 3; i++)
			rings_free(&of[i]);
		scene_kill_worker();
	}
	scene_stop(&scene);
}

/* Pair rings and pools do not come into each other's places, whichever was first, and a restart between. */
TEST_TIMEOUT(rings_are_beside_pools, 60)
{
	uint32_t size = 12, pools[2], wide;
	struct rings rings;
	struct scene scene;

	scene_start(&scene, size, HCCLD_FEATURE_DIRECT);
	check(!open_pairs(&scene, 0, size, 0, NULL));
	pools[0] = grow_pool(&scene, 0, 0);
	for (uint32_t i = 1; i < size; i++) {
		check(!open_pairs(&scene, i, size, 0, NULL));
		if (i == 7)
			scene_kill_worker();
	}
	pools[1] = grow_pool(&scene, 0, 1);
	wide = grow_wide(&scene, 0, 11);
	map_all(&scene, 0, &rings);
	check_eq_uint(rings.count, 3 + 3);
	for (uint32_t i = 0; i < size; i++) {
		struct pair_ring *out = rings_find(&rings, &scene, 0, i), *in = rings_find(&rings, &scene, i, 0);

		check_ptr(out);
		check_ptr(in);
		/* a pool's header or a ring that was given twice would be seen */
		check_eq_uint(atomic_fetch_add(&out->wants, 1), 0);
		check_eq_uint(atomic_load(&out->tail), 0);
		if (i)
			check_eq_uint(atomic_fetch_add(&in->wants, 1), 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		check_eq_uint(pool_at(&rings, pools[i], i)->magic, EAGER_MAGIC);
	check_eq_uint(wide_at(&rings, wide)->slots[0].number, 0);
	for (uint32_t i = 0; i < size * size; i++) {
		uint32_t word = atomic_load(&comm_region_directory(scene.region, size)[i]);

		check_gt_uint(word, 0);
		for (uint32_t j = 0; j < i; j++)
			check_ne_uint(atomic_load(&comm_region_directory(scene.region, size)[j]), word);
	}
	rings_free(&rings);
	scene_stop(&scene);
}

/* A pool of a rank that becomes a peer later comes then, however much has been mapped. */
TEST_TIMEOUT(pools_of_later_peers_come_later, 60)
{
	struct rings rings, later = { 0 };
	uint32_t pool, own, mapped;
	struct scene scene;

	scene_start(&scene, 3, HCCLD_FEATURE_DIRECT);
	check(!open_pairs(&scene, 0, 2, 0, NULL));
	pool = grow_pool(&scene, 0, 0);
	own = grow_pool(&scene, 2, 0);
	map_all(&scene, 2, &rings);
	check_eq_uint(rings.count, 2); /* there may be rings of it in the first extent some day */
	check_eq_uint(rings.first[0], 0);
	check_eq_uint(rings.first[1], own);
	mapped = own + rings.pairs[1];
	check(!open_pairs(&scene, 2, 0, mapped, &later));
	check_eq_uint(later.count, 0);
	check(!open_pairs(&scene, 0, 3, 0, NULL));
	check(!open_pairs(&scene, 2, 0, mapped, &later));
	check_ptr(rings_find(&rings, &scene, 0, 2));
	check_eq_uint(later.count, 1);
	check_eq_uint(pool_at(&later, pool, 0)->rank, 0);
	rings_free(&later);
	check(!open_pairs(&scene, 2, 0, mapped, &later));
	check_eq_uint(later.count, 0);
	rings_free(&rings);
	scene_stop(&scene);
}

/* What is offered in a wide ring is pending like what is in the ring before it. */
TEST_TIMEOUT(offers_in_wide_rings_are_pending, 60)
{
	struct pair_wide *wide;
	struct pair_ring *ring;
	struct rings rings;
	struct scene scene;
	uint32_t index, pid;

	scene_start(&scene, 2, HCCLD_FEATURE_DIRECT);
	check(!open_pairs(&scene, 0, 2, 0, NULL));
	index = grow_wide(&scene, 0, 1);
	map_all(&scene, 0, &rings);
	ring = rings_find(&rings, &scene, 0, 1);
	wide = wide_at(&rings, index);
	for (uint64_t number = 1; number <= 1000; number++) {
		struct pair_offer *slot = number < 11 ? rings_slot(&rings, &scene, 0, 1, number) : &wide->slots[number - 1];

		*slot = (struct pair_offer){ .number = number, .bytes = number < 11 ? 1 : 1000, .where = OFFER_SEGMENT };
	}
	atomic_store(&ring->wide, index + 1);
	atomic_store(&ring->wide_from, 11);
	atomic_store(&ring->sent, 1000);
	atomic_store(&ring->tail, 1000);
	check_eq_uint(listed_pending(&pid), 10 + 990 * 1000);
	check_eq_uint(pid, (uint32_t)getpid());
	atomic_store(&ring->received, 5);
	check_eq_uint(listed_pending(&pid), 5 + 990 * 1000);
	atomic_store(&ring->received, 998);
	check_eq_uint(listed_pending(&pid), 2 * 1000);
	scene_kill_worker();
	check_eq_uint(listed_pending(&pid), 2 * 1000);
	atomic_store(&ring->received, 1000);
	check_eq_uint(listed_pending(&pid), 0);
	rings_free(&rings);
	scene_stop(&scene);
}

TEST_TIMEOUT(growth_is_refused, 60)
{
	char text[HCCLD_TEXT_MAX];
	uint32_t index, slots;
	struct raw_client stranger;
	struct scene scene;

	scene_start(&scene, 3, HCCLD_FEATURE_DIRECT);
	check(!open_pairs(&scene, 0, 2, 0, NULL));
	check_eq_uint(grow(&scene.clients[0], scene.ranks[0], false, 3, &index, &slots, text), CAUSE_ARGUMENT);
	check_str_contains(text, "has no rank 3");
	check_eq_uint(grow(&scene.clients[0], scene.ranks[0], false, UINT32_MAX, &index, &slots, text), CAUSE_ARGUMENT);
	check_eq_uint(grow(&scene.clients[0], scene.ranks[0], false, 2, &index, &slots, text), CAUSE_ARGUMENT);
	check_str_contains(text, "no pair ring to rank 2");
	check_eq_uint(grow(&scene.clients[1], scene.ranks[1], false, 0, &index, &slots, text), CAUSE_ARGUMENT);
	check_eq_uint(grow(&scene.clients[0], scene.ranks[0], true, 1, &index, &slots, text), CAUSE_ARGUMENT);
	for (uint32_t i = 0; i < HCCLD_EAGER_POOLS; i++)
		grow_pool(&scene, 0, i);
	check_eq_uint(grow(&scene.clients[0], scene.ranks[0], true, HCCLD_EAGER_POOLS, &index, &slots, text), CAUSE_NOT_FOUND);
	check_str_contains(text, "all 7 eager pools");
	check_eq_uint(grow(&scene.clients[0], scene.ranks[0], true, UINT32_MAX, &index, &slots, text), CAUSE_NOT_FOUND);
	/* handles of nobody, of another rank's process, and of one that has left */
	check_eq_uint(grow(&scene.clients[0], 0, true, 0, &index, &slots, text), CAUSE_BAD_HANDLE);
	raw_client_start_with(&stranger, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	check_eq_uint(grow(&stranger, scene.ranks[0], true, 0, &index, &slots, text), CAUSE_BAD_HANDLE);
	check_eq_uint(grow(&stranger, scene.ranks[1], false, 0, &index, &slots, text), CAUSE_BAD_HANDLE);
	raw_client_stop(&stranger);
	raw_leave(&scene.clients[0], scene.ranks[0]);
	check_eq_uint(grow(&scene.clients[0], scene.ranks[0], true, 0, &index, &slots, text), CAUSE_BAD_HANDLE);
	scene_stop(&scene);
}

/* A communicator of one rank with a ring to itself. Its handle. */
static uint64_t join_alone(struct raw_client *client, uint64_t context)
{
	Hccld__Control__OpenPairs open = HCCLD__CONTROL__OPEN_PAIRS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	struct raw_root root;
	uint32_t peer = 0;

	raw_root_info(client, &root);
	raw_join_send(client, &root, 0, 1, context, 10000);
	check_eq_int(raw_receive(client, &reply), 0);
	check_eq_uint(reply.message->cause, 0);
	open.rank = reply.message->join_comm->rank;
	raw_reply_free(&reply);
	open.n_send_to = 1;
	open.send_to = &peer;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
	request.open_pairs = &open;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	return open.rank;
}

static uint64_t in_pages(uint64_t bytes)
{
	return (bytes + 4095) / 4096 * 4096;
}

static void list_comms(struct raw_client *tool, struct raw_reply *ret_reply)
{
	Hccld__Control__List body = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	body.kind = HCCLD__CONTROL__LIST__KIND__COMMS;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &body;
	raw_call(tool, &request, ret_reply);
}

/* What hcclctl comms shows of the only communicator, which has one rank. */
static void check_comm_memory(struct raw_client *tool, uint64_t wide, uint64_t eager)
{
	const Hccld__Control__Comm *comm;
	struct raw_reply reply;

	list_comms(tool, &reply);
	check_eq_uint(reply.message->list->n_comms, 1);
	comm = reply.message->list->comms[0];
	check_eq_uint(comm->pair_memory, in_pages(FIRST_PAIRS * PAIR_PLACE));
	check_eq_uint(comm->wide_memory, wide);
	check_eq_uint(comm->eager_memory, eager);
	check_eq_uint(comm->memory, in_pages(comm_region_size(1)) + comm->pair_memory + wide + eager);
	raw_reply_free(&reply);
}

/* It is the tenant's memory, is shown, and goes with the communicator. */
TEST_TIMEOUT(growth_is_charged, 60)
{
	uint64_t context, rank, eager = 0, wide = in_pages(numbers_of(sizeof(struct pair_wide)) * PAIR_PLACE);
	char text[HCCLD_TEXT_MAX], begin[64];
	struct private_daemon daemon;
	struct raw_client client, tool;
	uint32_t index, slots, count = 0;

	check_eq_int(private_daemon_start(&daemon, NULL, "[limits]\nmemory_per_tenant = 8M\n"), 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	context = raw_open_context(&client, 0);
	rank = join_alone(&client, context);
	check_eq_uint(grow(&client, rank, false, 0, &index, &slots, text), 0);
	while (grow(&client, rank, true, count, &index, &slots, text) == 0) {
		eager += in_pages(numbers_of(eager_pool_size(slots)) * PAIR_PLACE);
		check_lt_uint(++count, HCCLD_EAGER_POOLS);
	}
	check_gt_uint(count, 0);
	snprintf(begin, sizeof(begin), "memory of uid %u: ", geteuid());
	check_msg(strncmp(text, begin, strlen(begin)) == 0, "%s", text);
	snprintf(begin, sizeof(begin), "held by pid %d raw-client (", getpid());
	check_str_contains(text, begin);
	check_str_contains(text, "; raise [limits] memory_per_tenant");
	/* what is there is answered, the next one is refused again, and nothing has come of it */
	check_eq_uint(grow(&client, rank, true, count - 1, &index, &slots, text), 0);
	check_eq_uint(grow(&client, rank, false, 0, &index, &slots, text), 0);
	check_eq_uint(grow(&client, rank, true, count, &index, &slots, text), CAUSE_HOST_MEMORY);
	check_comm_memory(&tool, wide, eager);
	raw_leave(&client, rank);
	rank = join_alone(&client, context);
	check_comm_memory(&tool, 0, 0);
	for (uint32_t i = 0; i < count; i++)
		check_eq_uint(grow(&client, rank, true, i, &index, &slots, text), 0);
	check_comm_memory(&tool, 0, eager);
	raw_client_stop(&client);
	raw_client_stop(&tool);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

/* Waits until the only communicator has this much; false: it does not come to that. */
static bool comm_memory_becomes(uint64_t wide, uint64_t eager)
{
	bool is_so = false;

	for (unsigned tries = 0; tries < 500 * test_timeout_scale() && !is_so; tries++) {
		struct raw_client tool;
		struct raw_reply reply;

		raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
		list_comms(&tool, &reply);
		check_eq_uint(reply.message->list->n_comms, 1);
		is_so = reply.message->list->comms[0]->wide_memory == wide && reply.message->list->comms[0]->eager_memory == eager;
		raw_reply_free(&reply);
		raw_client_stop(&tool);
		if (!is_so)
			usleep(10000);
	}
	return is_so;
}

/* What a rank that is gone had is kept while anybody may still receive from it, also by the next process, and not longer. */
TEST_TIMEOUT(what_the_gone_leave_is_given_back, 60)
{
	uint64_t wide = in_pages(numbers_of(sizeof(struct pair_wide)) * PAIR_PLACE), eager = 0;
	struct pair_ring *ring;
	struct rings rings;
	struct scene scene;
	uint32_t index, last;

	scene_start(&scene, 3, HCCLD_FEATURE_DIRECT);
	check(!open_pairs(&scene, 0, 3, 0, NULL));
	check(!open_pairs(&scene, 1, 3, 0, NULL));
	for (uint32_t i = 0; i < 2; i++) {
		grow_pool(&scene, 0, i);
		eager += in_pages(numbers_of(eager_pool_size(HCCLD_EAGER_SLOTS << i)) * PAIR_PLACE);
	}
	index = grow_wide(&scene, 1, 0);
	last = grow_wide(&scene, 0, 1) + numbers_of(sizeof(struct pair_wide));
	map_all(&scene, 1, &rings);
	ring = rings_find(&rings, &scene, 0, 1);
	atomic_store(&ring->sent, 5);
	atomic_store(&ring->tail, 5);
	atomic_store(&ring->received, 3);
	raw_leave(&scene.clients[0], scene.ranks[0]);
	check(comm_memory_becomes(2 * wide, eager));
	usleep(500000);
	check(comm_memory_becomes(2 * wide, eager));
	scene_kill_worker();
	usleep(500000);
	check(comm_memory_becomes(2 * wide, eager));
	/* what fails is not received */
	atomic_store(&ring->received, 4);
	atomic_store(&ring->failed, 6);
	usleep(500000);
	check(comm_memory_becomes(2 * wide, eager));
	atomic_store(&ring->failed, 5);
	check(comm_memory_becomes(wide, 0));
	/* those of others stay, and there may be more, behind all that ever was */
	check_eq_uint(grow_wide(&scene, 1, 0), index);
	scene_kill_worker();
	check_ge_uint(grow_pool(&scene, 1, 0), last);
	check_eq_uint(grow_wide(&scene, 1, 0), index);
	check(comm_memory_becomes(wide, in_pages(numbers_of(eager_pool_size(HCCLD_EAGER_SLOTS)) * PAIR_PLACE)));
	rings_free(&rings);
	scene_stop(&scene);
}
