/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two executors on one mapping of one process: client threads that drive their own contexts while they submit and wait, and the engine
 * thread, which drives what they leave; so that ThreadSanitizer sees both sides of every word. A context changes hands at each submit, each
 * wait, each sleep, each head that the clients decline (barriers, large messages). There are no time-outs that could hide a lost wake-up:
 * one hangs, and the test's time limit says so.
 *   direct [ROUNDS] [RANKS] [ITEMS] [BYTES] [HELPERS] [CHANGES]   HELPERS: threads per rank which copy on another stream of the same context
 * CHANGES: so often at least contexts must have changed hands. Now and then a thread submits and makes no further call until its task is
 * done, and all take a nap, so that the engine goes to sleep. Prints rounds, how often contexts were taken, and failures; every byte is
 * checked, and that a context has one owner.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/handover.h"
#include "engine/direct.h"
#include "scheduler/scheduler.h"
#include "tests/engine/direct_client.h"
#include "tests/support/rig.h"

#define SLEEP_NS 100000000000ull
#define COPY_BYTES 256u
#define NAP_US 12000	/* what the engine's patience for clients is less than */
#define NAP_ROUNDS 256u

static uint32_t rounds = 2000, ranks = 4, items = 3, bytes = 8, helpers, changes;
static struct rig *rig;
static struct beacon beacon;
static int event_fd;
static _Atomic uint32_t failures;
static _Atomic uint64_t taken, declined, slept, helped;

static struct client *clients[RIG_RANKS_MAX];

static void notify(void *data)
{
}

static void liar(void *data, uint64_t session, const char *what)
{
	fprintf(stderr, "session %llu: %s\n", (unsigned long long)session, what);
	failures++;
}

static void type_mismatch(void *data, uint64_t comm, uint32_t source, uint32_t destination, uint8_t source_type, uint8_t destination_type)
{
}

/* ---- what client/drive.c and client/wait.c do ---- */

static bool help(struct client *client)
{
	struct direct_wish wish;

	if (!direct_help(&client->direct, &wish))
		return false;
	helped++;
	return true;
}

struct aim {
	struct client *client;
	struct stream_ring *ring;
	uint64_t target;
};

static bool is_over(const void *arg)
{
	const struct aim *aim = arg;

	return atomic_load_explicit(&aim->ring->completed, memory_order_acquire) >= aim->target;
}

static bool is_over_or_free(const void *arg)
{
	return is_over(arg) || direct_may_take(&((const struct aim *)arg)->client->direct);
}

static void own(struct client *client)
{
	if (atomic_exchange(&client->owned, true) || atomic_load(&client->intruded)) {
		fprintf(stderr, "a context has two owners, or one while its tables are changed\n");
		failures++;
	}
}

static bool take(struct client *client)
{
	if (!direct_take(&client->direct))
		return false;
	own(client);
	client->direct.copies_sends = taken++ % 3 == 0;
	return true;
}

static void leave(struct client *client, enum direct_left left)
{
	atomic_store(&client->owned, false);
	direct_leave(&client->direct, left);
}

static void submitted(struct client *client, const struct hccld_handover *handover, uint32_t dice)
{
	if (dice % 5 && take(client)) {
		leave(client, direct_pass(&client->direct, dice % 3 ? 65536 : 0, false));
	} else {
		hccld_handover_tell(handover);
	}
}

static void drive(struct aim *aim, uint32_t spins)
{
	struct direct_context *direct = &aim->client->direct;
	enum direct_left left;

	for (;;) {
		left = direct_pass(direct, DIRECT_BUDGET_ALL, spins % 2);
		if (is_over(aim) || left == DIRECT_DECLINED || atomic_load(&direct->intruders))
			break;
		direct_publish(direct);
		if (help(aim->client))
			continue;
		if (spins--) {
			sched_yield();
			continue;
		}
		slept++;
		atomic_store(&aim->client->owned, false);
		if (direct_sleep(direct, is_over, aim, SLEEP_NS, &left)) {
			direct_wake_up(direct);
			return;
		}
		own(aim->client);
		if (left == DIRECT_DECLINED || is_over(aim))
			break;
		spins = 3;
	}
	declined += left == DIRECT_DECLINED;
	leave(aim->client, left);
}

static void wait_for(struct aim *aim, const struct hccld_handover *handover, unsigned int *seed)
{
	/* what is submitted is done without a call */
	for (bool is_lazy = rand_r(seed) % 32 == 0; is_lazy && !is_over(aim);)
		usleep(100);
	while (!is_over(aim)) {
		if (rand_r(seed) % 8 && take(aim->client)) {
			drive(aim, rand_r(seed) % 4 ? (uint32_t)rand_r(seed) % 32 : 0);
			continue;
		}
		for (int spins = rand_r(seed) % 8; spins && !is_over(aim); spins -= !help(aim->client))
			sched_yield();
		if (!is_over_or_free(aim))
			hccld_handover_sleep(handover, is_over_or_free, aim, SLEEP_NS);
	}
}

/* ---- threads ---- */

static unsigned char value_of(uint32_t source, uint32_t destination, uint32_t round, uint32_t item)
{
	return (unsigned char)(source * 31 + destination * 7 + round * 3 + item + 1);
}

static struct hccld_handover handover_of(const struct client *client)
{
	return (struct hccld_handover){ client->direct.bell.words, client->direct.bell.bit_word, client->direct.bell.bit, &beacon, event_fd };
}

/* Mesh: everyone to everyone. Places: [peer][item]; now and then a barrier, which clients decline. */
static void *rank_main(void *arg)
{
	uint32_t rank = (uint32_t)(uintptr_t)arg, stride = (bytes + 63u) & ~63u;
	struct rig_rank *me = &rig->ranks[rank];
	const struct hccld_handover handover = handover_of(clients[rank]);
	unsigned char *out = me->memory, *in = me->memory + RIG_MEMORY / 2;
	unsigned int seed = rank + 1;

	for (uint32_t round = 0; round < rounds; round++) {
		struct rig_item list[64];
		uint32_t n = 0;
		struct aim aim = { clients[rank], me->streams[0], 0 };

		for (uint32_t d = 1; d < ranks; d++) {
			uint32_t to = (rank + d) % ranks, from = (rank + ranks - d) % ranks;

			for (uint32_t i = 0; i < items; i++) {
				uint64_t send = (uint64_t)(to * items + i) * stride, receive = (uint64_t)(from * items + i) * stride;

				memset(out + send, value_of(rank, to, round, i), bytes);
				list[n++] = (struct rig_item){ ITEM_SEND, to, send, bytes, 7 };
				list[n++] = (struct rig_item){ ITEM_RECEIVE, from, RIG_MEMORY / 2 + receive, bytes, 7 };
			}
		}
		rig_put(rig, rank, 0, list, n, 0);
		submitted(clients[rank], &handover, (uint32_t)rand_r(&seed));
		if (round % 16 == 5) {
			rig_put_barrier(rig, rank, 0);
			submitted(clients[rank], &handover, (uint32_t)rand_r(&seed));
		}
		aim.target = atomic_load(&me->streams[0]->tail);
		wait_for(&aim, &handover, &seed);
		if (round % NAP_ROUNDS == 0)
			usleep(NAP_US);
		for (uint32_t from = 0; from < ranks; from++)
			for (uint32_t i = 0; from != rank && i < items; i++)
				for (uint32_t b = 0; b < bytes; b += bytes <= 64 || b == bytes - 1 ? 1 : b + 4096 < bytes ? 4096 : bytes - 1 - b)
					if (in[(uint64_t)(from * items + i) * stride + b] != value_of(from, rank, round, i))
						failures++;
	}
	return NULL;
}

/* Copies within the rank, on the other stream: at the ends of its memory, which the mesh leaves alone. */
static void *helper_main(void *arg)
{
	uint32_t rank = (uint32_t)(uintptr_t)arg;
	struct rig_rank *me = &rig->ranks[rank];
	const struct hccld_handover handover = handover_of(clients[rank]);
	unsigned char *from = me->memory + RIG_MEMORY / 2 - COPY_BYTES, *to = me->memory + RIG_MEMORY - COPY_BYTES;
	const struct rig_item copy = { ITEM_COPY, RIG_MEMORY / 2 - COPY_BYTES, RIG_MEMORY - COPY_BYTES, COPY_BYTES, 0 };
	unsigned int seed = 100 + rank;

	for (uint32_t round = 0; round < rounds; round++) {
		struct aim aim = { clients[rank], me->streams[1], 0 };

		memset(from, (int)round, COPY_BYTES);
		rig_put(rig, rank, 1, &copy, 1, 0);
		submitted(clients[rank], &handover, (uint32_t)rand_r(&seed));
		aim.target = atomic_load(&me->streams[1]->tail);
		wait_for(&aim, &handover, &seed);
		if (to[0] != (unsigned char)round || to[COPY_BYTES - 1] != (unsigned char)round)
			failures++;
	}
	return NULL;
}

/* Somebody who changes tables: until both threads of a rank are done. */
static void *intruder_main(void *arg)
{
	_Atomic bool *stop = arg;

	for (uint32_t i = 0; !atomic_load(stop); i++) {
		direct_intrude(&clients[i % ranks]->direct);
		atomic_store(&clients[i % ranks]->intruded, true);
		direct_remove_ring(&clients[i % ranks]->direct, rig->ranks[i % ranks].streams[1]);
		direct_add_ring(&clients[i % ranks]->direct, rig->ranks[i % ranks].streams[1]);
		atomic_store(&clients[i % ranks]->intruded, false);
		direct_retreat(&clients[i % ranks]->direct);
		usleep(200);
	}
	return NULL;
}

static int run(struct scheduler *scheduler)
{
	pthread_t threads[2 * RIG_RANKS_MAX], intruder;
	_Atomic bool stop = false;
	struct client_pools pools;

	for (uint32_t i = 0; i < ranks; i++)
		clients[i] = client_new(rig, i, &beacon, event_fd);
	client_pools_init(&pools, rig, clients);
	scheduler_yard_add(scheduler, &rig->view);
	if (scheduler_start(scheduler) < 0)
		return 2;
	for (uint32_t i = 0; i < ranks; i++) {
		pthread_create(&threads[i], NULL, rank_main, (void *)(uintptr_t)i);
		if (helpers)
			pthread_create(&threads[ranks + i], NULL, helper_main, (void *)(uintptr_t)i);
	}
	pthread_create(&intruder, NULL, intruder_main, &stop);
	for (uint32_t i = 0; i < ranks * (helpers ? 2 : 1); i++)
		pthread_join(threads[i], NULL);
	atomic_store(&stop, true);
	pthread_join(intruder, NULL);
	scheduler_free(scheduler);
	client_pools_deinit(&pools, rig);
	for (uint32_t i = 0; i < ranks; i++)
		free(clients[i]);
	return 0;
}

int main(int argc, char **argv)
{
	struct scheduler_options options = { .beacon = &beacon, .notify = notify, .liar = liar, .type_mismatch = type_mismatch,
					     .copy_threads = 1 };
	uint32_t *numbers[] = { &rounds, &ranks, &items, &bytes, &helpers, &changes };
	struct scheduler *scheduler;
	uint64_t changed = 0;

	for (int i = 1; i < argc && i <= 6; i++)
		*numbers[i - 1] = (uint32_t)atoi(argv[i]);
	if (ranks < 2 || ranks > RIG_RANKS_MAX || 2 * items * (ranks - 1) > 62 ||
	    (uint64_t)ranks * items * ((bytes + 63u) & ~63u) > RIG_MEMORY / 2 - COPY_BYTES)
		return 2;
	rig = rig_new(ranks, false);
	event_fd = options.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	atomic_store(&beacon.local_path, PATH_DIRECT);
	if (event_fd < 0 || scheduler_new(&options, &scheduler) < 0 || run(scheduler))
		return 2;
	for (uint32_t i = 0; i < ranks; i++)
		changed += atomic_load(&rig->contexts[i].words->state) >> 8;
	printf("%u rounds of %u ranks, %u items of %u bytes: %llu changes of hands, taken %llu times, declined %llu, slept %llu, %llu chunks helped with, %u failures\n", rounds, ranks, items,
	       bytes, (unsigned long long)changed, (unsigned long long)taken, (unsigned long long)declined, (unsigned long long)slept, (unsigned long long)helped, failures);
	rig_free(rig);
	close(event_fd);
	return failures != 0 || taken == 0 || changed < changes || (bytes > 2 * DIRECT_COPY_MAX && helped == 0);
}
