/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events, values, notifies and host functions with the engine thread, client threads and a host thread for each of them on one mapping of one
 * process, so that ThreadSanitizer sees both sides of every word. A lost wake-up hangs: nobody sleeps for a limited time.
 *   meetings [ROUNDS] [RANKS]
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/handover.h"
#include "proto/event.h"
#include "proto/notify.h"
#include "scheduler/scheduler.h"
#include "tests/support/rig.h"

#define EVENT 2000000u
#define WORD 2001000u
#define NOTIFY 2002048u /* a multiple of 64 */
#define SIZE 100u

static uint32_t rounds = 2000, ranks = 3;
static struct rig *rig;
static uint64_t imports[RIG_RANKS_MAX];
static struct beacon beacon;
static int event_fd;
static _Atomic uint32_t failures;

/* A process: what it keeps of its host functions, in stream 1. */
static struct process {
	pthread_mutex_t mutex;
	struct hccld_handover handover;
	uint64_t position, end; /* of the one that is queued; 0: none */
	uint32_t round, runs;
	bool stop;
} processes[RIG_RANKS_MAX];

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

static struct stream_ring *stream(uint32_t rank, uint32_t index)
{
	return rig->ranks[rank].streams[index];
}

static bool is_over(const void *arg)
{
	uint32_t rank = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < 2; i++)
		if (atomic_load_explicit(&stream(rank, i)->completed, memory_order_acquire) != atomic_load(&stream(rank, i)->tail))
			return false;
	return true;
}

static bool is_due(void *arg)
{
	struct process *process = arg;
	uint32_t rank = (uint32_t)(process - processes);
	bool due;

	pthread_mutex_lock(&process->mutex);
	due = process->stop || (process->end && atomic_load_explicit(&stream(rank, 1)->completed, memory_order_acquire) >= process->position);
	pthread_mutex_unlock(&process->mutex);
	return due;
}

/* Looks at what the tasks before it have written, and writes for those behind it. */
static void *host_main(void *arg)
{
	struct process *process = arg;
	uint32_t rank = (uint32_t)(process - processes);
	struct session_host *host = session_host(rig->ranks[rank].region);
	unsigned char *memory = rig->ranks[rank].memory;

	for (;;) {
		uint64_t end;

		while (!is_due(process))
			hccld_host_news_sleep(host, is_due, process, UINT64_MAX);
		pthread_mutex_lock(&process->mutex);
		end = process->end;
		process->end = 0;
		pthread_mutex_unlock(&process->mutex);
		if (!end)
			return NULL;
		for (uint32_t i = 0; i < SIZE; i++)
			failures += memory[1000 + i] != (unsigned char)process->round;
		memset(memory + 2000, (int)process->round + 1, SIZE);
		process->runs++;
		atomic_store_explicit(&stream(rank, 1)->host_done, end, memory_order_release);
		hccld_handover_tell(&process->handover);
	}
}

/* To the next rank, whose memory this one has imported, and from the one before; counted, for who records may be ahead. */
static void put_notifies(uint32_t rank, uint32_t round)
{
	struct rig_notify record = { .kind = TASK_NOTIFY_RECORD, .mode = NOTIFY_ADD, .segment = imports[rank], .offset = NOTIFY, .number = 1 };
	struct rig_notify wait = { .kind = TASK_NOTIFY_WAIT, .mode = NOTIFY_BIGGER_OR_EQUAL, .offset = NOTIFY, .number = round };

	rig_put_notify(rig, rank, 0, &record);
	rig_put_notify(rig, rank, 0, &wait);
}

/*
 * Stream 0 fills, records an event, and waits for a word that stream 1 writes at its end; stream 1 waits for the event, copies what was
 * filled, lets a host function look at it, and copies what that has written. At its end stream 0 meets its neighbours.
 */
static void *client_main(void *arg)
{
	struct process *process = arg;
	uint32_t rank = (uint32_t)(process - processes);
	const unsigned char *memory = rig->ranks[rank].memory;

	for (uint32_t round = 1; round <= rounds; round++) {
		struct rig_item fill = { ITEM_FILL, round & 0xff, 0, SIZE, 7 }, copy = { ITEM_COPY, 0, 1000, SIZE, 7 };

		rig_put_meeting(rig, rank, 1, TASK_WAIT_EVENT, EVENT, round);
		rig_put(rig, rank, 1, &copy, 1, 0);
		pthread_mutex_lock(&process->mutex);
		process->round = round;
		process->position = atomic_load(&stream(rank, 1)->tail);
		process->end = process->position + 1;
		pthread_mutex_unlock(&process->mutex);
		rig_put_meeting(rig, rank, 1, TASK_HOST, 0, 0);
		copy = (struct rig_item){ ITEM_COPY, 2000, 3000, SIZE, 7 };
		rig_put(rig, rank, 1, &copy, 1, 0);
		rig_put_meeting(rig, rank, 1, TASK_WRITE, WORD, round);
		hccld_handover_tell(&process->handover);
		if (round % 4 == 0)
			sched_yield();
		rig_put(rig, rank, 0, &fill, 1, 0);
		rig_put_meeting(rig, rank, 0, TASK_RECORD, EVENT, round);
		rig_put_meeting(rig, rank, 0, TASK_WAIT_VALUE, WORD, round);
		put_notifies(rank, round);
		hccld_handover_tell(&process->handover);
		while (!is_over((void *)(uintptr_t)rank))
			hccld_handover_sleep(&process->handover, is_over, (void *)(uintptr_t)rank, 100000000000ull);
		failures += memory[3000] != (unsigned char)(round + 1) || memory[3000 + SIZE - 1] != (unsigned char)(round + 1);
	}
	pthread_mutex_lock(&process->mutex);
	process->stop = true;
	pthread_mutex_unlock(&process->mutex);
	hccld_host_news_tell(session_host(rig->ranks[rank].region));
	return NULL;
}

int main(int argc, char **argv)
{
	struct scheduler_options options = { .beacon = &beacon, .notify = notify, .liar = liar, .type_mismatch = type_mismatch };
	pthread_t clients[RIG_RANKS_MAX], hosts[RIG_RANKS_MAX];
	struct scheduler *scheduler;

	if (argc > 1)
		rounds = (uint32_t)atoi(argv[1]);
	if (argc > 2)
		ranks = (uint32_t)atoi(argv[2]);
	if (ranks < 1 || ranks > RIG_RANKS_MAX)
		return 2;
	rig = rig_new(ranks, false);
	for (uint32_t i = 0; i < ranks; i++)
		imports[i] = rig_import_notifies(rig, i, (i + 1) % ranks);
	event_fd = options.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (event_fd < 0 || scheduler_new(&options, &scheduler) < 0)
		return 2;
	scheduler_yard_add(scheduler, &rig->view);
	if (scheduler_start(scheduler) < 0)
		return 2;
	for (uint32_t i = 0; i < ranks; i++) {
		struct view_context *context = rig->ranks[i].context;

		pthread_mutex_init(&processes[i].mutex, NULL);
		processes[i].handover = (struct hccld_handover){ context->words, context->bit_word, context->bit, &beacon, event_fd };
		pthread_create(&hosts[i], NULL, host_main, &processes[i]);
		pthread_create(&clients[i], NULL, client_main, &processes[i]);
	}
	for (uint32_t i = 0; i < ranks; i++) {
		pthread_join(clients[i], NULL);
		pthread_join(hosts[i], NULL);
		failures += processes[i].runs != rounds;
	}
	scheduler_free(scheduler);
	printf("%u rounds of %u ranks, %u failures\n", rounds, ranks, failures);
	rig_free(rig);
	close(event_fd);
	return failures != 0;
}
