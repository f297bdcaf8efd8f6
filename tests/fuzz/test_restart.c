/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of all kinds by processes that are killed at any time, over a daemon that is killed at any time, too: it ends by no other way,
 * takes over what it finds, and nothing is left when they have gone. TEST_SEED replays their requests.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/clock.h"
#include "proto/feature.h"
#include "proto/notify.h"
#include "tests/fuzz/bystander.h"
#include "tests/fuzz/control_case.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define LIARS 3u
#define CONNECTIONS 3u
#define ROUNDS 5u
#define KILLS 2u /* a registry that ends the daemon more often within 10 s of its start is dropped */
#define KEPT 4u
#define ANSWER_MS 5000u /* with the restarts that are in between */

static struct private_daemon private_daemon;

/* ---- a process that lies ---- */

/* What replies have named last, of each kind. */
struct owned {
	uint64_t context, rank;
	uint64_t segments[KEPT], registrations[KEPT], channels[KEPT], threads[KEPT], streams[KEPT], notifies[KEPT];
	uint32_t count;
};

struct liar {
	struct raw_client clients[CONNECTIONS];
	struct owned owned[CONNECTIONS];
	struct numbers numbers;
	uint64_t random;
};

static uint64_t next(struct liar *liar)
{
	liar->random = liar->random * 6364136223846793005u + 1442695040888963407u;
	return liar->random >> 17;
}

static void keep(struct owned *owned, const Hccld__Control__Reply *reply)
{
	uint32_t at = owned->count++ % KEPT;

	switch (reply->body_case) {
	case HCCLD__CONTROL__REPLY__BODY_JOIN_COMM:
		owned->rank = reply->join_comm->rank;
		break;
	case HCCLD__CONTROL__REPLY__BODY_CREATE_STREAM:
		owned->streams[at] = reply->create_stream->stream;
		break;
	case HCCLD__CONTROL__REPLY__BODY_ALLOCATE_SEGMENT:
		owned->segments[at] = reply->allocate_segment->segment;
		break;
	case HCCLD__CONTROL__REPLY__BODY_CREATE_NOTIFIES:
		owned->notifies[at] = reply->create_notifies->first;
		break;
	case HCCLD__CONTROL__REPLY__BODY_CREATE_THREAD:
		owned->threads[at] = reply->create_thread->thread;
		break;
	case HCCLD__CONTROL__REPLY__BODY_REGISTER_MEMORY:
		owned->registrations[at] = reply->register_memory->registration;
		break;
	case HCCLD__CONTROL__REPLY__BODY_OFFER_CHANNELS:
		owned->channels[at] = reply->offer_channels->n_channels ? reply->offer_channels->channels[0] : 0;
		break;
	default:
		break;
	}
}

/* False: its session has ended. */
static bool take_replies(struct liar *liar, struct raw_client *client, int wait_ms)
{
	struct pollfd fd = { .fd = client->fd, .events = POLLIN };

	while (poll(&fd, 1, wait_ms) > 0) {
		struct raw_reply reply;

		if (raw_receive(client, &reply) < 0)
			return false;
		numbers_learn(&liar->numbers, reply.message);
		keep(&liar->owned[client - liar->clients], reply.message);
		raw_reply_free(&reply);
		wait_ms = 0;
	}
	return true;
}

static void join(struct liar *liar, uint32_t device)
{
	struct raw_root root;
	uint64_t contexts[CONNECTIONS];

	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		raw_client_start_with(&liar->clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
		contexts[i] = raw_open_context(&liar->clients[i], device);
		liar->owned[i] = (struct owned){ .context = contexts[i] };
		numbers_add(&liar->numbers, contexts[i]);
	}
	raw_root_info(&liar->clients[0], &root);
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		raw_join_send(&liar->clients[i], &root, i, CONNECTIONS, contexts[i], 0);
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		take_replies(liar, &liar->clients[i], 1000);
}

/* ---- requests that are right, or nearly so ---- */

#define PICK(liar, list) (list)[next(liar) % KEPT]
#define PACK_AS(Name, NAME, field)                                                      \
	Hccld__Control__##Name message = HCCLD__CONTROL__##NAME##__INIT;                \
	request->body_case = HCCLD__CONTROL__REQUEST__BODY_##NAME;                      \
	request->field = &message

#define PACK_END return hccld__control__request__pack(request, data)

static size_t pack_offer(struct liar *liar, const struct owned *owned, Hccld__Control__Request *request, unsigned char *data)
{
	Hccld__Control__ChannelOffer offer = HCCLD__CONTROL__CHANNEL_OFFER__INIT, *offers[] = { &offer };
	uint64_t registrations[] = { PICK(liar, owned->registrations) };
	PACK_AS(OfferChannels, OFFER_CHANNELS, offer_channels);

	message.rank = owned->rank;
	message.engine = next(liar) % 2;
	message.buffer = next(liar) % 2 ? PICK(liar, owned->segments) : 0;
	message.n_offers = 1;
	message.offers = offers;
	offer.peer = next(liar) % CONNECTIONS;
	offer.protocol = next(liar) % 2;
	offer.notify_count = next(liar) % 3;
	offer.n_registrations = next(liar) % 2;
	offer.registrations = registrations;
	PACK_END;
}

static size_t pack_channels(struct liar *liar, const struct owned *owned, Hccld__Control__Request *request, unsigned char *data)
{
	uint64_t channels[] = { PICK(liar, owned->channels) };

	if (next(liar) % 2) {
		PACK_AS(AwaitChannels, AWAIT_CHANNELS, await_channels);
		message.n_channels = 1;
		message.channels = channels;
		request->deadline_ms = 20;
		PACK_END;
	}
	PACK_AS(CloseChannels, CLOSE_CHANNELS, close_channels);
	message.n_channels = 1;
	message.channels = channels;
	PACK_END;
}

static size_t pack_memory(struct liar *liar, const struct owned *owned, Hccld__Control__Request *request, unsigned char *data)
{
	if (next(liar) % 2) {
		PACK_AS(AllocateSegment, ALLOCATE_SEGMENT, allocate_segment);
		message.context = owned->context;
		message.bytes = 65536;
		message.lazy_rank = next(liar) % 2 ? owned->rank : 0;
		PACK_END;
	}
	PACK_AS(RegisterMemory, REGISTER_MEMORY, register_memory);
	message.rank = owned->rank;
	message.segment = PICK(liar, owned->segments);
	message.offset = next(liar) % 8 * 4096;
	message.bytes = 4096;
	message.tag = (char *)"part";
	PACK_END;
}

static size_t pack_notifies(struct liar *liar, const struct owned *owned, Hccld__Control__Request *request, unsigned char *data)
{
	if (next(liar) % 2) {
		PACK_AS(CreateNotifies, CREATE_NOTIFIES, create_notifies);
		message.context = owned->context;
		message.count = 1 + next(liar) % 3;
		PACK_END;
	}
	PACK_AS(FreeNotifies, FREE_NOTIFIES, free_notifies);
	message.context = owned->context;
	message.first = (uint32_t)PICK(liar, owned->notifies);
	PACK_END;
}

static size_t pack_thread(struct liar *liar, const struct owned *owned, Hccld__Control__Request *request, unsigned char *data)
{
	if (next(liar) % 2) {
		PACK_AS(CreateThread, CREATE_THREAD, create_thread);
		message.context = owned->context;
		message.rank = next(liar) % 2 ? owned->rank : 0;
		message.notify_count = next(liar) % 3;
		message.stream = next(liar) % 2 ? 1 + (uint32_t)PICK(liar, owned->streams) : 0;
		PACK_END;
	}
	PACK_AS(DestroyThread, DESTROY_THREAD, destroy_thread);
	message.thread = PICK(liar, owned->threads);
	PACK_END;
}

static size_t pack_stream(struct liar *liar, const struct owned *owned, Hccld__Control__Request *request, unsigned char *data)
{
	switch (next(liar) % 5) {
	case 0: {
		PACK_AS(TakeCores, TAKE_CORES, take_cores);
		message.context = owned->context;
		message.stream = (uint32_t)PICK(liar, owned->streams);
		message.count = next(liar) % 8;
		PACK_END;
	}
	case 1: {
		PACK_AS(KeepCores, KEEP_CORES, keep_cores);
		message.context = owned->context;
		message.stream = (uint32_t)PICK(liar, owned->streams);
		message.count = next(liar) % 4;
		message.holder = next(liar) % 8;
		PACK_END;
	}
	case 2: {
		PACK_AS(DestroyStream, DESTROY_STREAM, destroy_stream);
		message.stream = (uint32_t)PICK(liar, owned->streams);
		PACK_END;
	}
	default: {
		PACK_AS(CreateStream, CREATE_STREAM, create_stream);
		message.context = owned->context;
		PACK_END;
	}
	}
}

static size_t pack_end(struct liar *liar, const struct owned *owned, Hccld__Control__Request *request, unsigned char *data)
{
	switch (next(liar) % 64) {
	case 0: {
		PACK_AS(LeaveComm, LEAVE_COMM, leave_comm);
		message.rank = owned->rank;
		PACK_END;
	}
	case 1: {
		PACK_AS(CloseContext, CLOSE_CONTEXT, close_context);
		message.context = owned->context;
		PACK_END;
	}
	default: {
		PACK_AS(UnregisterMemory, UNREGISTER_MEMORY, unregister_memory);
		message.registration = PICK(liar, owned->registrations);
		PACK_END;
	}
	}
}

/* Or what the fuzzer sends. */
static size_t some_request(struct liar *liar, const struct owned *owned, uint64_t id, unsigned char *data)
{
	static size_t (*const packs[])(struct liar *, const struct owned *, Hccld__Control__Request *, unsigned char *) = {
		pack_offer, pack_offer, pack_channels, pack_memory, pack_notifies, pack_thread, pack_stream, pack_end,
	};
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	uint8_t bytes[96];
	struct input input = { bytes, sizeof(bytes) };

	request.id = id;
	if (next(liar) % 8)
		return packs[next(liar) % 8](liar, owned, &request, data);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)next(liar);
	return message_make(&input, &liar->numbers, id, data);
}

/* Tasks of all kinds about what was named last. */
static void scribble(struct liar *liar, struct raw_client *client)
{
	struct stream_ring *ring = session_stream(client->region, (uint32_t)next(liar) % 4);
	uint64_t tail = atomic_load(&ring->tail), one = 1;
	uint32_t context = ring->context % HCCLD_YARD_CONTEXTS;
	struct task task = { .kind = (uint8_t)(TASK_RECORD + next(liar) % 8), .timeout_ms = 1, .first_lane = LANE_END };

	if (ring->magic != STREAM_MAGIC || tail - atomic_load(&ring->completed) > HCCLD_STREAM_SLOTS - 8)
		return;
	task.item_count = task.kind == TASK_REDUCE ? 2 : task.kind != TASK_HOST;
	task.slot_count = (uint16_t)(1 + task.item_count);
	for (uint32_t i = 0; i < task.item_count; i++) {
		struct item *item = &ring->slots[(tail + 1 + i) % HCCLD_STREAM_SLOTS].item;

		*item = (struct item){ .kind = i ? ITEM_SOURCE : task.kind == TASK_REDUCE ? ITEM_REDUCE : ITEM_PLACE, .data_type = next(liar) % 64 ? next(liar) % 3 : 77, .bytes = 64 };
		item->segment = liar->numbers.values[next(liar) % NUMBERS];
		item->offset = next(liar) % 32 * 64;
	}
	memcpy(&ring->slots[tail % HCCLD_STREAM_SLOTS].task, &task, sizeof(task));
	atomic_store(&ring->tail, tail + task.slot_count);
	atomic_store(&client->yard->contexts[context].state, yard_next(atomic_load(&client->yard->contexts[context].state), CONTEXT_LEFT));
	atomic_fetch_or(&client->yard->bits[context / 64], 1ull << (context % 64));
	(void)!write(client->event_fd, &one, sizeof(one));
}

/* Of root they would be granted; a second HELLO ends a session. */
static bool is_left_out(const unsigned char *data, size_t size)
{
	Hccld__Control__Request *request = hccld__control__request__unpack(NULL, size, data);
	Hccld__Control__Request__BodyCase body = request ? request->body_case : HCCLD__CONTROL__REQUEST__BODY__NOT_SET;

	if (request)
		hccld__control__request__free_unpacked(request, NULL);
	return body == HCCLD__CONTROL__REQUEST__BODY_HELLO || body == HCCLD__CONTROL__REQUEST__BODY_DRAIN || body == HCCLD__CONTROL__REQUEST__BODY_KILL_SESSION ||
	       body == HCCLD__CONTROL__REQUEST__BODY_SET_LOG_LEVEL;
}

/* Until one of its sessions ends. */
static void ask(struct liar *liar)
{
	static unsigned char data[HCCLD_PACKET_MAX];

	for (uint64_t id = 1000;; id++) {
		uint32_t i = next(liar) % CONNECTIONS;
		struct raw_client *client = &liar->clients[i];
		size_t size = some_request(liar, &liar->owned[i], id, data);

		if (is_left_out(data, size))
			continue;
		if (send(client->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
			return;
		if (next(liar) % 4 == 0)
			scribble(liar, client);
		if (!take_replies(liar, client, next(liar) % 8 ? 0 : 1))
			return;
	}
}

static void lie(uint64_t seed)
{
	struct liar liar = { .random = seed };

	for (;;) {
		join(&liar, (uint32_t)next(&liar) % 2);
		ask(&liar);
		for (uint32_t i = 0; i < CONNECTIONS; i++)
			raw_client_stop(&liar.clients[i]);
	}
}

static pid_t liar_start(uint64_t seed)
{
	pid_t pid = fork();

	check(pid >= 0);
	if (pid == 0)
		lie(seed);
	return pid;
}

/* ---- */

static pid_t worker(uint32_t *ret_incarnation)
{
	uint64_t since = clock_now_ns();
	struct raw_reply reply;
	pid_t pid;

	raw_status(&reply);
	pid = (pid_t)reply.message->status->pid;
	*ret_incarnation = reply.message->status->incarnation;
	raw_reply_free(&reply);
	check_lt_uint((clock_now_ns() - since) / 1000000, ANSWER_MS * (uint64_t)test_timeout_scale());
	return pid;
}

/* The name of a limit of which something is used, or NULL. */
static const char *used_limit(void)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	static char name[64];
	struct raw_client tool;
	struct raw_reply reply;

	name[0] = 0;
	list.kind = HCCLD__CONTROL__LIST__KIND__TENANTS;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	raw_client_start_with(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL, HCCLD_FEATURES);
	raw_call(&tool, &request, &reply);
	for (size_t i = 0; i < reply.message->list->n_tenants; i++)
		for (size_t j = 0; j < reply.message->list->tenants[i]->n_limits; j++) {
			const Hccld__Control__Limit *limit = reply.message->list->tenants[i]->limits[j];

			if (limit->used && strcmp(limit->name, "connections") != 0)
				snprintf(name, sizeof(name), "%s: %llu", limit->name, (unsigned long long)limit->used);
		}
	raw_reply_free(&reply);
	raw_client_stop(&tool);
	return *name ? name : NULL;
}

static void limits_settle(void)
{
	const char *used = used_limit();

	for (unsigned tries = 0; used && tries < 100 * test_timeout_scale(); tries++) {
		usleep(50000);
		used = used_limit();
	}
	check_msg(!used, "used of a limit: %s", used);
}

static void end(pid_t pid)
{
	check_eq_int(kill(pid, SIGKILL), 0);
	check_eq_int(waitpid(pid, NULL, 0), pid);
}

static void kill_all(uint64_t seed)
{
	static const char *const options[] = { "--devices", "2", "--device-memory", "256M", "--keeper", "--log-level", "error", NULL };
	struct holdings most = { .fds = 64, .maps = 64 };
	pid_t liars[LIARS], pid;
	uint32_t incarnation;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	for (uint32_t i = 0; i < LIARS; i++)
		liars[i] = liar_start(seed * LIARS + i);
	for (uint32_t kills = 0; kills < KILLS; kills++) {
		usleep((useconds_t)(100000 + (seed + kills) * 2654435761u % 300000));
		pid = worker(&incarnation);
		check_eq_uint(incarnation, kills + 1);
		check_eq_int(kill(pid, SIGKILL), 0);
		usleep((useconds_t)((seed + kills) * 2654435761u % 3000));
		end(liars[kills]);
		liars[kills] = liar_start(seed * LIARS + kills + 1000);
	}
	usleep(100000);
	for (uint32_t i = 0; i < LIARS; i++)
		end(liars[i]);
	pid = worker(&incarnation);
	holdings_settle(pid, &most);
	limits_settle();
	/* nobody but us has ended it */
	check_eq_uint(incarnation, KILLS + 1);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

TEST(nothing_is_left_of_what_kills_have_met)
{
	uint64_t seed = test_seed();

	for (uint32_t round = 0; round < ROUNDS; round++)
		kill_all(seed % 1000000007 + round);
}
