/* SPDX-License-Identifier: Apache-2.0 */
/* Pair rings that clients map to drive their contexts themselves. */
#include <string.h>
#include <unistd.h>

#include "proto/feature.h"
#include "tests/daemon/rings.h"
#include "tests/support/test.h"

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
	atomic_store(&rings_find(&rings[0], &scene, 0, 5)->wants, 1234);
	atomic_store(&rings_find(&rings[0], &scene, 5, 0)->wants, 5678);
	check_eq_uint(atomic_load(&rings_find(&rings[1], &scene, 0, 5)->wants), 1234);
	check_eq_uint(atomic_load(&rings_find(&rings[1], &scene, 5, 0)->wants), 5678);
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
	check_eq_uint(atomic_load(&rings_find(&again, &scene, 0, 5)->wants), 1234);
	check_eq_uint(atomic_load(&rings_find(&again, &scene, 5, 0)->wants), 5678);
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
	for (uint64_t number = 1; number <= 2; number++)
		*rings_slot(&rings, &scene, 0, 1, number) =
			(struct pair_offer){ .number = number, .bytes = 1000 * number, .where = OFFER_SEGMENT };
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

/* How the engine leaves the context of a client with @features, in which a task waits and a thread sleeps. */
static enum context_state left_kind(uint64_t features)
{
	struct raw_client client;
	struct stream_ring *ring;
	struct yard_context *words;
	enum context_state kind = CONTEXT_LEFT;
	uint64_t one = 1;

	raw_client_start_with(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, features);
	for (unsigned tries = 0; tries < 500 * test_timeout_scale() && !atomic_load(&client.beacon->local_path); tries++)
		usleep(10000);
	ring = session_stream(client.region, raw_create_stream(&client, raw_open_context(&client, 0)));
	words = &client.yard->contexts[ring->context];
	ring->slots[0].task = (struct task){ .kind = TASK_HOST, .slot_count = 1 };
	atomic_store(&words->sleepers, 1);
	atomic_store(&ring->tail, 1);
	atomic_store(&words->state, yard_next(atomic_load(&words->state), CONTEXT_LEFT));
	atomic_fetch_or(&client.yard->bits[ring->context / 64], 1ull << (ring->context % 64));
	check_eq_int(write(client.event_fd, &one, sizeof(one)), sizeof(one));
	for (unsigned tries = 0; tries < 500 * test_timeout_scale() && (kind == CONTEXT_LEFT || kind == CONTEXT_ENGINE); tries++) {
		usleep(10000);
		kind = yard_kind(atomic_load(&words->state));
	}
	raw_client_stop(&client);
	return kind;
}

/* One of an older release would be woken to drive, and not know it. */
TEST_TIMEOUT(only_who_drives_is_left_asleep, 60)
{
	static const char *const options[] = { "--keeper", NULL };
	struct private_daemon daemon;

	check_eq_int(private_daemon_start(&daemon, options, ""), 0);
	check_eq_int(left_kind(HCCLD_FEATURE_TASKS | HCCLD_FEATURE_DIRECT), CONTEXT_SLEEP);
	check_eq_int(left_kind(HCCLD_FEATURE_TASKS), CONTEXT_PARKED);
	check_eq_int(private_daemon_stop(&daemon), 0);
}
