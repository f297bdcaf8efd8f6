/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that writes whatever it likes into all memory it shares with the daemon, also while the engine runs: stream rings, its
 * lines of the yard, side buffers, device memory with holes; and frees under the engine what its tasks use. Two honest processes
 * exchange data all the time. They must be right and on time, the daemon must live and have nothing left in the end; what becomes
 * of the liar is its own business.
 *
 * Everything but timing follows from TEST_SEED.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/fuzz/bystander.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define SECONDS 8
#define STREAMS 3u
#define SEGMENTS 3u		/* of device memory; one more holds items */
#define BYTES (2u << 20)
#define SIDE_ITEMS 4096u
#define ROUND_LIMIT_MS 4000

struct memory {
	uint64_t id;
	int fd;
	void *base;
	uint64_t bytes;
};

struct liar {
	struct raw_client client;
	uint64_t context, rank;
	uint32_t yard_index;
	uint32_t streams[STREAMS];
	struct memory segments[SEGMENTS + 1];
	bool is_ended; /* the daemon has hung up */
};

struct random {
	uint64_t state;
};

static uint64_t next(struct random *random)
{
	random->state ^= random->state << 13;
	random->state ^= random->state >> 7;
	random->state ^= random->state << 17;
	return random->state;
}

static uint32_t below(struct random *random, uint32_t limit)
{
	return (uint32_t)(next(random) >> 32) % limit;
}

static bool one_in(struct random *random, uint32_t n)
{
	return below(random, n) == 0;
}

/* ---- requests that may meet a daemon that has had enough ---- */

static bool ask(struct liar *liar, Hccld__Control__Request *request, struct raw_reply *ret_reply)
{
	request->id = ++liar->client.next_id;
	if (liar->is_ended || packet_send(liar->client.fd, &request->base, NULL, 0, 0) < 0 ||
	    raw_receive(&liar->client, ret_reply) < 0) {
		liar->is_ended = true;
		return false;
	}
	if (ret_reply->message->cause == 0)
		return true;
	raw_reply_free(ret_reply);
	return false;
}

static void memory_allocate(struct liar *liar, struct memory *memory, Hccld__Control__AllocateSegment__Kind kind, uint64_t bytes)
{
	Hccld__Control__AllocateSegment allocate = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	allocate.context = liar->context;
	allocate.kind = kind;
	allocate.bytes = bytes;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request.allocate_segment = &allocate;
	memory->fd = -1;
	memory->base = NULL;
	if (!ask(liar, &request, &reply))
		return;
	memory->id = reply.message->allocate_segment->segment;
	memory->bytes = reply.message->allocate_segment->bytes;
	memory->fd = reply.packet.fds[0];
	reply.packet.fds[0] = -1;
	raw_reply_free(&reply);
	memory->base = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	check(memory->base != MAP_FAILED);
}

static void memory_forget(struct memory *memory)
{
	if (memory->base)
		munmap(memory->base, memory->bytes);
	if (memory->fd >= 0)
		close(memory->fd);
	memory->base = NULL;
	memory->fd = -1;
}

static void memory_free(struct liar *liar, struct memory *memory)
{
	Hccld__Control__FreeSegment free_segment = HCCLD__CONTROL__FREE_SEGMENT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	free_segment.segment = memory->id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_FREE_SEGMENT;
	request.free_segment = &free_segment;
	if (ask(liar, &request, &reply))
		raw_reply_free(&reply);
	memory_forget(memory);
}

static void stream_destroy(struct liar *liar, uint32_t stream)
{
	Hccld__Control__DestroyStream destroy = HCCLD__CONTROL__DESTROY_STREAM__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	destroy.stream = stream;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESTROY_STREAM;
	request.destroy_stream = &destroy;
	if (ask(liar, &request, &reply))
		raw_reply_free(&reply);
}

static void stream_create(struct liar *liar, uint32_t *stream)
{
	Hccld__Control__CreateStream create = HCCLD__CONTROL__CREATE_STREAM__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	create.context = liar->context;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM;
	request.create_stream = &create;
	if (!ask(liar, &request, &reply))
		return;
	*stream = reply.message->create_stream->stream;
	raw_reply_free(&reply);
}

static void liar_start(struct liar *liar)
{
	*liar = (struct liar){ 0 };
	raw_client_start(&liar->client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	liar->context = raw_open_context(&liar->client, 0);
	for (uint32_t i = 0; i < STREAMS; i++)
		liar->streams[i] = raw_create_stream(&liar->client, liar->context);
	liar->yard_index = session_stream(liar->client.region, liar->streams[0])->context;
	for (uint32_t i = 0; i < SEGMENTS; i++)
		memory_allocate(liar, &liar->segments[i], HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE, BYTES);
	memory_allocate(liar, &liar->segments[SEGMENTS], HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__SIDE,
			SIDE_ITEMS * sizeof(struct item));
}

static void liars_join(struct liar *liars)
{
	struct raw_reply reply;
	struct raw_root root;

	raw_root_info(&liars[0].client, &root);
	for (uint32_t i = 0; i < 2; i++)
		raw_join_send(&liars[i].client, &root, i, 2, liars[i].context, 10000);
	for (uint32_t i = 0; i < 2; i++) {
		check_eq_int(raw_receive(&liars[i].client, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		liars[i].rank = reply.message->join_comm->rank;
		raw_reply_free(&reply);
		raw_open_pair(&liars[i].client, liars[i].rank, 1 - i);
	}
}

static void liar_stop(struct liar *liar)
{
	for (uint32_t i = 0; i <= SEGMENTS; i++)
		memory_forget(&liar->segments[i]);
	raw_client_stop(&liar->client);
}

/* ---- lies ---- */

/* A number that is somehow related to something. */
static uint64_t number(struct random *random)
{
	switch (below(random, 8)) {
	case 0:
		return next(random);
	case 1:
		return UINT64_MAX - below(random, 64);
	case 2:
		return 1ull << below(random, 64);
	default:
		return below(random, 64);
	}
}

static struct item item_make(struct random *random, const struct liar *liar, uint32_t index, uint32_t count)
{
	const struct memory *memory = &liar->segments[below(random, SEGMENTS)];
	static const uint64_t sizes[] = { 1, 8, 40, 41, 4096, 65536, 65537, 300000, 1 << 20 };
	struct item item = {
		.kind = (uint8_t)(1 + below(random, 5)),
		.data_type = (uint8_t)below(random, 16),
		.peer = below(random, 2),
		.bytes = sizes[below(random, sizeof(sizes) / sizeof(sizes[0]))],
		.segment = memory->id,
		.offset = below(random, BYTES / 2),
		.next = LANE_END,
		.next_lane = index + 1 < count ? index + 1 : LANE_END,
		.issue = index,
		.done = index,
		.list_index = index,
	};

	if (one_in(random, 3) && index + 1 < count)
		item.next = index + 1;
	switch (below(random, 40)) {
	case 0:
		item.peer = (uint32_t)number(random);
		break;
	case 1:
		item.bytes = number(random);
		break;
	case 2:
		item.segment = one_in(random, 2) ? liar->segments[SEGMENTS].id : number(random);
		break;
	case 3:
		item.offset = number(random);
		break;
	case 4:
		item.next = (uint32_t)number(random);
		break;
	case 5:
		item.next_lane = (uint32_t)number(random);
		break;
	case 6:
		item.number = number(random);
		break;
	case 7:
		item.issue = (uint32_t)number(random);
		break;
	case 8:
		item.done = (uint32_t)number(random);
		break;
	default:
		break;
	}
	return item;
}

static struct task task_make(struct random *random, const struct liar *liar, uint32_t count, bool side)
{
	struct task task = {
		.kind = one_in(random, 16) ? TASK_BARRIER : TASK_BATCH,
		.slot_count = (uint16_t)(side ? 1 : 1 + count),
		.item_count = count,
		.rank = one_in(random, 8) ? 0 : liar->rank,
		.side = side ? liar->segments[SEGMENTS].id : 0,
		.timeout_ms = one_in(random, 4) ? 1 + below(random, 200) : 0,
	};

	switch (below(random, 60)) {
	case 0:
		task.kind = (uint8_t)number(random);
		break;
	case 1:
		task.slot_count = (uint16_t)number(random);
		break;
	case 2:
		task.item_count = (uint32_t)number(random);
		break;
	case 3:
		task.rank = number(random);
		break;
	case 4:
		task.side = number(random);
		break;
	case 5:
		task.first_lane = (uint32_t)number(random);
		break;
	case 6:
		task.number = number(random);
		break;
	default:
		break;
	}
	return task;
}

/* As a client tells the engine. */
static void liar_tell(struct liar *liar)
{
	struct yard *yard = liar->client.yard;
	struct yard_context *words = &yard->contexts[liar->yard_index];

	atomic_store(&words->state, yard_next(atomic_load(&words->state), CONTEXT_LEFT));
	atomic_fetch_or(&yard->bits[liar->yard_index / 64], 1ull << liar->yard_index % 64);
	(void)!write(liar->client.event_fd, &(uint64_t){ 1 }, 8);
}

static void liar_submit(struct random *random, struct liar *liar)
{
	struct stream_ring *ring = session_stream(liar->client.region, liar->streams[below(random, STREAMS)]);
	bool side = one_in(random, 3) && liar->segments[SEGMENTS].base;
	uint32_t count = 1 + below(random, side ? 200 : 12);
	uint64_t tail = atomic_load(&ring->tail);

	if (tail - atomic_load(&ring->completed) > HCCLD_STREAM_SLOTS - 20) {
		/* full, or nonsense: start anew */
		atomic_store(&ring->completed, tail);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct item item = item_make(random, liar, i, count);

		if (side)
			memcpy((struct item *)liar->segments[SEGMENTS].base + i, &item, sizeof(item));
		else
			memcpy(&ring->slots[(tail + 1 + i) % HCCLD_STREAM_SLOTS], &item, sizeof(item));
	}
	{
		struct task task = task_make(random, liar, count, side);

		memcpy(&ring->slots[tail % HCCLD_STREAM_SLOTS], &task, sizeof(task));
	}
	atomic_store(&ring->tail, tail + (side ? 1 : 1 + count));
	liar_tell(liar);
}

/* Some words of a ring or of a side buffer, whatever they are. */
static void liar_scribble(struct random *random, struct liar *liar)
{
	struct stream_ring *ring = session_stream(liar->client.region, liar->streams[below(random, STREAMS)]);
	uint64_t *words = (uint64_t *)ring;
	uint64_t count = sizeof(*ring) / 8;

	if (one_in(random, 2) && liar->segments[SEGMENTS].base) {
		words = liar->segments[SEGMENTS].base;
		count = SIDE_ITEMS * sizeof(struct item) / 8;
	}
	for (uint32_t i = below(random, 64); i; i--)
		words[below(random, (uint32_t)count)] = number(random);
	if (one_in(random, 4))
		atomic_store(&ring->tail, atomic_load(&ring->completed) + below(random, 40));
	liar_tell(liar);
}

static void liar_punch(struct random *random, struct liar *liar)
{
	const struct memory *memory = &liar->segments[below(random, SEGMENTS + 1)];
	uint64_t offset = below(random, (uint32_t)memory->bytes) & ~4095ull;

	if (memory->fd >= 0)
		(void)fallocate(memory->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
				(off_t)(memory->bytes - offset));
}

static void liar_yard(struct random *random, struct liar *liar)
{
	struct yard *yard = liar->client.yard;
	struct yard_context *words = &yard->contexts[liar->yard_index];

	switch (below(random, 4)) {
	case 0:
		atomic_store(&words->state, number(random));
		break;
	case 1:
		atomic_store(&words->asleep, (uint32_t)number(random));
		break;
	case 2:
		atomic_store(&words->sleepers, (uint32_t)number(random));
		break;
	default:
		/* bits say "look": to set those of others is only noise */
		yard->bits[below(random, HCCLD_YARD_CONTEXTS / 64)] |= next(random);
	}
}

/* The eventfd is one for all: what a client does to it, it does to the engine's. */
static void liar_event(struct random *random, struct liar *liar)
{
	int fd = liar->client.event_fd;
	uint64_t value;

	if (one_in(random, 2)) {
		fcntl(fd, F_SETFL, 0);
	} else {
		fcntl(fd, F_SETFL, O_NONBLOCK);
		(void)!read(fd, &value, sizeof(value));
	}
}

static void liar_step(struct random *random, struct liar *liar)
{
	uint32_t i = below(random, SEGMENTS + 1);

	switch (below(random, 16)) {
	case 0:
		memory_free(liar, &liar->segments[i]);
		memory_allocate(liar, &liar->segments[i],
				i == SEGMENTS ? HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__SIDE :
						HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE,
				i == SEGMENTS ? SIDE_ITEMS * sizeof(struct item) : BYTES);
		break;
	case 1:
		stream_destroy(liar, liar->streams[0]);
		stream_create(liar, &liar->streams[0]);
		break;
	case 2:
		liar_punch(random, liar);
		break;
	case 3:
		liar_yard(random, liar);
		break;
	case 4:
		liar_event(random, liar);
		break;
	case 5:
		liar_scribble(random, liar);
		break;
	default:
		liar_submit(random, liar);
	}
}

/* Changes words under the engine while the other thread submits. */
struct scribbler {
	struct liar *liar;
	struct random random;
	_Atomic bool stop;
};

static void *scribble(void *arg)
{
	struct scribbler *scribbler = arg;
	struct random *random = &scribbler->random;

	while (!atomic_load(&scribbler->stop)) {
		struct stream_ring *ring = session_stream(scribbler->liar->client.region, below(random, STREAMS));
		struct item *item = &ring->slots[below(random, HCCLD_STREAM_SLOTS)].item;

		if (ring->magic != STREAM_MAGIC)
			continue;
		/* many times: the engine looks at this or that slot only now and then */
		for (int i = 0; i < 200; i++) {
			struct item was = *item;

			switch (below(random, 6)) {
			case 0:
				*(volatile uint64_t *)&item->offset = 1ull << 45;
				break;
			case 1:
				*(volatile uint64_t *)&item->bytes = 1ull << 45;
				break;
			case 2:
				*(volatile uint8_t *)&item->kind = (uint8_t)(1 + below(random, 5));
				break;
			case 3:
				*(volatile uint32_t *)&item->next = below(random, 16);
				break;
			case 4:
				*(volatile uint32_t *)&item->peer = below(random, 3);
				break;
			default:
				*(volatile uint64_t *)&item->segment = number(random);
			}
			atomic_signal_fence(memory_order_seq_cst);
			memcpy(item, &was, 24);
		}
	}
	return NULL;
}

static void report(const struct raw_client *tool)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	list.kind = HCCLD__CONTROL__LIST__KIND__WAITING;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	raw_call((struct raw_client *)tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
}

/* One communicator of two liars, until it is enough or both are thrown out. */
static void liars_run(uint64_t seed, uint32_t steps)
{
	struct random random = { seed * 2 + 1 };
	struct liar liars[2];
	struct scribbler scribbler = { .liar = &liars[0], .random = { seed * 2 + 3 } };
	struct raw_client tool;
	pthread_t thread;

	for (uint32_t i = 0; i < 2; i++)
		liar_start(&liars[i]);
	liars_join(liars);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	check_eq_int(pthread_create(&thread, NULL, scribble, &scribbler), 0);
	for (uint32_t i = 0; i < steps && !(liars[0].is_ended && liars[1].is_ended); i++) {
		liar_step(&random, &liars[below(&random, 2)]);
		if (one_in(&random, 64))
			report(&tool);
		if (one_in(&random, 8))
			usleep(below(&random, 300));
	}
	atomic_store(&scribbler.stop, true);
	pthread_join(thread, NULL);
	raw_client_stop(&tool);
	for (uint32_t i = 0; i < 2; i++)
		liar_stop(&liars[i]);
}

static struct private_daemon private_daemon;

static const char *const options[] = { "--device-memory", "256M", "--copy-threads", "2", "--log-level", "error", NULL };

TEST_TIMEOUT(liars_hurt_nobody_else, 60)
{
	uint64_t seed = test_seed();
	struct bystander bystander;
	struct holdings before;
	time_t end;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	liars_run(seed, 100); /* what is made once is there now */
	usleep(500000);
	before = holdings_of(private_daemon.pid);
	bystander_start(&bystander, ROUND_LIMIT_MS);
	end = time(NULL) + SECONDS;
	for (uint64_t round = 1; time(NULL) < end; round++)
		liars_run(seed + round, 3000);
	bystander_stop(&bystander);
	holdings_settle(private_daemon.pid, &before);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* Each client has a descriptor of the engine's eventfd, and with it a hand on its flags and its count. */
TEST_TIMEOUT(the_eventfd_is_no_handle_on_the_engine, 60)
{
	struct bystander bystander;
	struct raw_client client;
	time_t end;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	bystander_start(&bystander, ROUND_LIMIT_MS);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	check_eq_int(fcntl(client.event_fd, F_SETFL, 0), 0);
	end = time(NULL) + 2;
	while (time(NULL) < end) {
		uint64_t count;

		/* wakes it, and takes the count away before it looks */
		check_eq_int(fcntl(client.event_fd, F_SETFL, O_NONBLOCK), 0);
		(void)!write(client.event_fd, &(uint64_t){ 1 }, 8);
		(void)!read(client.event_fd, &count, 8);
		check_eq_int(fcntl(client.event_fd, F_SETFL, 0), 0);
		usleep(100);
	}
	bystander_stop(&bystander);
	raw_client_stop(&client);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}
