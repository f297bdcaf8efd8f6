/* SPDX-License-Identifier: Apache-2.0 */
/* Pair rings that clients map to drive their contexts themselves, and room for offers beside them. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/feature.h"
#include "proto/status.h"
#include "tests/daemon/scene.h"
#include "tests/support/test.h"

#define EXTENTS_MAX 16u

/* The extents that a rank has mapped. */
struct rings {
	uint32_t count, first[EXTENTS_MAX], pairs[EXTENTS_MAX];
	struct pair_ring *bases[EXTENTS_MAX];
};

/* A number that no extent of these tests has. */
#define NOWHERE UINT32_MAX

static void rings_take(struct rings *rings, const Hccld__Control__OpenPairsReply__Extent *extent, int fd)
{
	struct stat st;
	void *base;

	check_eq_int(fstat(fd, &st), 0);
	check_eq_uint((uint64_t)st.st_size, extent->bytes);
	check_gt_uint(extent->count, 0);
	check_ge_uint(extent->bytes, extent->count * sizeof(struct pair_ring));
	base = mmap(NULL, extent->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(base != MAP_FAILED && rings->count < EXTENTS_MAX);
	if (rings->count)
		check_ge_uint(extent->first, rings->first[rings->count - 1] + rings->pairs[rings->count - 1]);
	rings->first[rings->count] = extent->first;
	rings->pairs[rings->count] = extent->count;
	rings->bases[rings->count++] = base;
}

static void rings_free(struct rings *rings)
{
	for (uint32_t i = 0; i < rings->count; i++)
		munmap(rings->bases[i], rings->pairs[i] * sizeof(struct pair_ring));
	rings->count = 0;
}

/* The ring that the directory names; NULL: none, or not mapped. */
static struct pair_ring *rings_find(const struct rings *rings, const struct scene *scene, uint32_t source, uint32_t destination)
{
	uint32_t word = atomic_load(&comm_region_directory(scene->region, scene->size)[source * scene->size + destination]);

	for (uint32_t i = 0; word && i < rings->count; i++)
		if (word - 1 >= rings->first[i] && word - 1 - rings->first[i] < rings->pairs[i])
			return rings->bases[i] + (word - 1 - rings->first[i]);
	return NULL;
}

/* Opens pairs to the ranks from 0 to @count - 1. What came is added to @rings, unless that is NULL; true: there is more. */
static bool open_pairs(struct scene *scene, uint32_t rank, uint32_t count, uint32_t mapped, struct rings *rings)
{
	Hccld__Control__OpenPairs open = HCCLD__CONTROL__OPEN_PAIRS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	const Hccld__Control__OpenPairsReply *body;
	struct raw_reply reply;
	uint32_t peers[RANKS_MAX];
	bool more;

	for (uint32_t i = 0; i < count; i++)
		peers[i] = i;
	open.rank = scene->ranks[rank];
	open.n_send_to = count;
	open.send_to = peers;
	open.map = rings != NULL;
	open.mapped_pairs = mapped;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
	request.open_pairs = &open;
	raw_call(&scene->clients[rank > 0], &request, &reply);
	check_msg(reply.message->cause == 0, "OpenPairs: %s", reply.message->text);
	if (!rings) {
		raw_reply_free(&reply);
		return false;
	}
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_OPEN_PAIRS);
	body = reply.message->open_pairs;
	check_eq_uint(reply.packet.fd_count, body->n_extents);
	for (size_t i = 0; i < body->n_extents; i++)
		rings_take(rings, body->extents[i], reply.packet.fds[i]);
	more = body->more;
	raw_reply_free(&reply);
	return more;
}

/* Each rank's extents have the rings that the directory names, the same for both ends, and nothing moves by a restart. */
TEST_TIMEOUT(extents_have_the_rings_of_the_directory, 60)
{
	struct rings rings[2] = { 0 }, again = { 0 };
	struct scene scene;
	uint32_t size = 12;

	scene_start(&scene, size, HCCLD_FEATURE_DIRECT);
	for (uint32_t i = 0; i < size; i++) {
		struct rings all = { 0 };

		check(!open_pairs(&scene, i, size, 0, &all));
		rings_free(&all);
	}
	check(!open_pairs(&scene, 0, 0, 0, &rings[0]));
	check(!open_pairs(&scene, 5, 0, 0, &rings[1]));
	check_eq_uint(rings[0].count, 3);
	for (uint32_t i = 0; i < size; i++) {
		check_ptr(rings_find(&rings[0], &scene, 0, i));
		check_ptr(rings_find(&rings[0], &scene, i, 0));
	}
	atomic_store(&rings_find(&rings[0], &scene, 0, 5)->landed, 1234);
	atomic_store(&rings_find(&rings[0], &scene, 5, 0)->landed, 5678);
	check_eq_uint(atomic_load(&rings_find(&rings[1], &scene, 0, 5)->landed), 1234);
	check_eq_uint(atomic_load(&rings_find(&rings[1], &scene, 5, 0)->landed), 5678);
	/* what it has already is not given again */
	check(!open_pairs(&scene, 0, 0, rings[0].first[0] + rings[0].pairs[0], &again));
	check_eq_uint(again.count, 2);
	check_eq_uint(again.first[0], rings[0].first[1]);
	rings_free(&again);
	check(!open_pairs(&scene, 0, 0, rings[0].first[2] + rings[0].pairs[2], &again));
	check_eq_uint(again.count, 0);
	scene_kill_worker();
	check(!open_pairs(&scene, 0, size, 0, &again));
	check_eq_uint(again.count, rings[0].count);
	check_eq_mem(again.first, rings[0].first, sizeof(again.first));
	check_eq_mem(again.pairs, rings[0].pairs, sizeof(again.pairs));
	check_eq_uint(atomic_load(&rings_find(&again, &scene, 0, 5)->landed), 1234);
	check_eq_uint(atomic_load(&rings_find(&again, &scene, 5, 0)->landed), 5678);
	rings_free(&again);
	rings_free(&rings[0]);
	rings_free(&rings[1]);
	scene_stop(&scene);
}

/* More extents than descriptors fit into a packet come by several requests. */
TEST_TIMEOUT(extents_come_by_packets, 60)
{
	struct rings all = { 0 }, rings = { 0 };
	struct scene scene;
	uint32_t size = 96;

	scene_start(&scene, size, HCCLD_FEATURE_DIRECT);
	for (uint32_t i = 0; i < size; i++) {
		open_pairs(&scene, i, size, UINT32_MAX, &all);
		check_eq_uint(all.count, 0);
	}
	check(open_pairs(&scene, 0, size, 0, &rings));
	check_eq_uint(rings.count, HCCLD_PACKET_FDS_MAX);
	check_null(rings_find(&rings, &scene, 95, 0));
	check(!open_pairs(&scene, 0, size, rings.first[7] + rings.pairs[7], &rings));
	check_eq_uint(rings.count, HCCLD_PACKET_FDS_MAX + 1);
	for (uint32_t i = 0; i < size; i++) {
		check_ptr(rings_find(&rings, &scene, 0, i));
		check_ptr(rings_find(&rings, &scene, i, 0));
	}
	rings_free(&rings);
	scene_stop(&scene);
}

/* A rank maps no rings of others only, and finds those that a peer has made. */
TEST_TIMEOUT(extents_of_others_are_left_out, 60)
{
	struct rings others = { 0 }, rings = { 0 };
	struct scene scene;

	scene_start(&scene, 80, HCCLD_FEATURE_DIRECT);
	check(!open_pairs(&scene, 0, 64, 0, &others));
	check_eq_uint(others.count, 1);
	check(!open_pairs(&scene, 79, 0, 0, &rings));
	check_eq_uint(rings.count, 0);
	check(!open_pairs(&scene, 79, 1, 0, &rings));
	check_eq_uint(rings.count, 1);
	check_eq_uint(rings.first[0], others.pairs[0]);
	check_ptr(rings_find(&rings, &scene, 79, 0));
	check_null(rings_find(&others, &scene, 79, 0));
	check(!open_pairs(&scene, 0, 0, others.pairs[0], &others));
	check_eq_uint(others.count, 2);
	check_ptr(rings_find(&others, &scene, 79, 0));
	rings_free(&others);
	rings_free(&rings);
	scene_stop(&scene);
}

/* Bytes that are sent and not received, as tools see them, and whose most of them are. */
static uint64_t listed_pending(uint32_t *ret_pid)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	const Hccld__Control__Tenant *tenant;
	struct raw_client tool;
	struct raw_reply reply;
	uint64_t used = UINT64_MAX;

	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	list.kind = HCCLD__CONTROL__LIST__KIND__TENANTS;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	raw_call(&tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	check_eq_uint(reply.message->list->n_tenants, 1);
	tenant = reply.message->list->tenants[0];
	for (size_t i = 0; i < tenant->n_limits; i++) {
		if (strcmp(tenant->limits[i]->name, "pending bytes") != 0)
			continue;
		used = tenant->limits[i]->used;
		*ret_pid = tenant->limits[i]->top_pid;
	}
	raw_reply_free(&reply);
	raw_client_stop(&tool);
	return used;
}

/* Whoever has offered them, and whoever receives them. */
TEST_TIMEOUT(pending_bytes_are_those_in_the_rings, 60)
{
	struct rings rings = { 0 };
	struct pair_ring *ring;
	struct scene scene;
	uint32_t pid;

	scene_start(&scene, 2, HCCLD_FEATURE_DIRECT);
	check(!open_pairs(&scene, 0, 2, 0, &rings));
	check_eq_uint(listed_pending(&pid), 0);
	check_eq_uint(pid, 0);
	ring = rings_find(&rings, &scene, 0, 1);
	for (uint64_t i = 0; i < 2; i++)
		ring->slots[i] = (struct pair_offer){ .number = i + 1, .bytes = 1000 * (i + 1), .where = OFFER_SEGMENT };
	atomic_store(&ring->sent, 2);
	atomic_store(&ring->tail, 2);
	check_eq_uint(listed_pending(&pid), 3000);
	check_eq_uint(pid, (uint32_t)getpid());
	atomic_store(&ring->received, 1);
	check_eq_uint(listed_pending(&pid), 2000);
	atomic_store(&ring->received, 2);
	check_eq_uint(listed_pending(&pid), 0);
	rings_free(&rings);
	scene_stop(&scene);
}

/* Who has not said that it can do something with them gets none, nor who does not ask. */
TEST(rings_are_for_those_who_ask)
{
	Hccld__Control__OpenPairs open = HCCLD__CONTROL__OPEN_PAIRS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct private_daemon daemon;
	struct raw_client old, new;
	struct raw_root root;
	struct raw_reply reply;
	uint32_t peer = 0;

	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	raw_client_start(&old, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start_with(&new, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
	request.open_pairs = &open;
	open.n_send_to = 1;
	open.send_to = &peer;
	for (uint32_t i = 0; i < 2; i++) {
		struct raw_client *client = i ? &new : &old;

		raw_root_info(client, &root);
		raw_join_send(client, &root, 0, 1, raw_open_context(client, 0), 10000);
		check_eq_int(raw_receive(client, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		open.rank = reply.message->join_comm->rank;
		raw_reply_free(&reply);
		open.map = client == &old;
		raw_call(client, &request, &reply);
		check_eq_uint(reply.message->cause, 0);
		check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY__NOT_SET);
		check_eq_uint(reply.packet.fd_count, 0);
		raw_reply_free(&reply);
	}
	raw_client_stop(&old);
	raw_client_stop(&new);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

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

/* As many pair rings as would be in place of @bytes. */
static uint32_t numbers_of(uint64_t bytes)
{
	return (uint32_t)((bytes + sizeof(struct pair_ring) - 1) / sizeof(struct pair_ring));
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
	check_eq_uint(pools[0], 64);
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
		check_eq_uint(atomic_fetch_add(&out->landed, 1), 0);
		check_eq_uint(atomic_load(&out->tail), 0);
		if (i)
			check_eq_uint(atomic_fetch_add(&in->landed, 1), 0);
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

/* What clients find in the beacon, at the latest soon after the daemon serves. */
static void check_path(const char *config, enum beacon_path path)
{
	static const char *const options[] = { "--keeper", NULL };
	struct private_daemon daemon;
	struct raw_client client;

	check_eq_int(private_daemon_start(&daemon, options, config), 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	for (int i = 0; i < 2; i++) {
		for (unsigned tries = 0; tries < 500 * test_timeout_scale() && atomic_load(&client.beacon->local_path) != path; tries++)
			usleep(10000);
		check_eq_uint(atomic_load(&client.beacon->local_path), path);
		scene_kill_worker();
	}
	check_eq_uint(atomic_load(&client.beacon->local_path), path);
	raw_client_stop(&client);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

TEST_TIMEOUT(the_beacon_says_who_moves_bytes, 60)
{
	check_path("", PATH_DIRECT);
	check_path("[daemon]\nlocal_path = engine\n", PATH_ENGINE);
	check_path("[limits]\npending_per_tenant = 1G\n", PATH_ENGINE);
}
