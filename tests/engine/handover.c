/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine thread and client threads on one mapping of one process, so that ThreadSanitizer sees both sides of every word: rings of
 * streams, yard, pair rings, wake-ups. Clients exchange batches and sleep for real (short time-outs would hide a lost wake-up: there
 * are none here, a lost one hangs and the test's time limit says so).
 *   handover [ROUNDS] [RANKS] [ITEMS] [BYTES]   prints the time per round; every byte is checked
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "client/handover.h"
#include "scheduler/scheduler.h"
#include "tests/support/rig.h"

static uint32_t rounds = 2000, ranks = 4, items = 3, bytes = 8;
static struct rig *rig;
static struct beacon beacon;
static int event_fd;
static _Atomic uint32_t failures, calls_done;

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

struct wait {
	struct stream_ring *ring;
	uint64_t target;
};

static bool is_over(const void *arg)
{
	const struct wait *wait = arg;

	return atomic_load_explicit(&wait->ring->completed, memory_order_acquire) >= wait->target;
}

static unsigned char value_of(uint32_t source, uint32_t destination, uint32_t round, uint32_t item)
{
	return (unsigned char)(source * 31 + destination * 7 + round * 3 + item + 1);
}

/* Mesh: everyone to everyone. Places: [peer][item]. */
static void *client_main(void *arg)
{
	uint32_t rank = (uint32_t)(uintptr_t)arg, stride = (bytes + 63u) & ~63u;
	struct rig_rank *me = &rig->ranks[rank];
	struct hccld_handover handover = { me->context->words, me->context->bit_word, me->context->bit, &beacon, event_fd };
	unsigned char *out = me->memory, *in = me->memory + RIG_MEMORY / 2;

	for (uint32_t round = 0; round < rounds; round++) {
		struct rig_item list[64];
		uint32_t n = 0;
		struct wait wait;

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
		hccld_handover_tell(&handover);
		wait = (struct wait){ me->streams[0], atomic_load(&me->streams[0]->tail) };
		for (uint32_t spins = round % 3 ? 100 : 0; spins && !is_over(&wait); spins--)
			sched_yield();
		while (!is_over(&wait))
			hccld_handover_sleep(&handover, is_over, &wait, 100000000000ull);
		for (uint32_t from = 0; from < ranks; from++)
			for (uint32_t i = 0; from != rank && i < items; i++)
				for (uint32_t b = 0; b < bytes; b += bytes > 64 ? bytes - 1 : 1)
					if (in[(uint64_t)(from * items + i) * stride + b] != value_of(from, rank, round, i))
						failures++;
	}
	return NULL;
}

static bool call_run(struct engine *engine, void *arg)
{
	return true;
}

static void call_done(void *arg)
{
	calls_done++;
}

int main(int argc, char **argv)
{
	struct scheduler_options options = { .beacon = &beacon, .notify = notify, .liar = liar, .type_mismatch = type_mismatch,
					     .copy_threads = 1 };
	struct scheduler_call calls[50] = { 0 };
	struct scheduler *scheduler;
	struct timespec start, end;
	pthread_t threads[RIG_RANKS_MAX];

	if (argc > 1)
		rounds = (uint32_t)atoi(argv[1]);
	if (argc > 2)
		ranks = (uint32_t)atoi(argv[2]);
	if (argc > 3)
		items = (uint32_t)atoi(argv[3]);
	if (argc > 4)
		bytes = (uint32_t)atoi(argv[4]);
	if (ranks < 2 || ranks > RIG_RANKS_MAX || 2 * items * (ranks - 1) > 62 || (uint64_t)ranks * items * ((bytes + 63u) & ~63u) > RIG_MEMORY / 2)
		return 2;
	rig = rig_new(ranks, false);
	event_fd = options.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (event_fd < 0 || scheduler_new(&options, &scheduler) < 0)
		return 2;
	scheduler_yard_add(scheduler, &rig->view);
	if (scheduler_start(scheduler) < 0)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (uint32_t i = 0; i < ranks; i++)
		pthread_create(&threads[i], NULL, client_main, (void *)(uintptr_t)i);
	for (uint32_t i = 0; i < 50; i++) {
		calls[i] = (struct scheduler_call){ .run = call_run, .done = call_done };
		scheduler_call(scheduler, &calls[i]);
		if (i % 8 == 0)
			usleep(1000);
		scheduler_collect(scheduler);
	}
	for (uint32_t i = 0; i < ranks; i++)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	scheduler_free(scheduler);
	if (calls_done != 50)
		failures++;
	printf("%u rounds of %u ranks, %u items of %u bytes: %.2f us a round, %u failures\n", rounds, ranks, items, bytes,
	       ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / 1e3 / rounds, failures);
	rig_free(rig);
	close(event_fd);
	return failures != 0;
}
