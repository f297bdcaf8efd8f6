/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs whose ends are on two nodes: two executors, and between them frames in order, which are held up at random. */
#include <errno.h>
#include <string.h>

#include "engine/executor.h"
#include "engine/far.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define RANKS 4u /* 0 and 1 on the first node, 2 and 3 on the second */
#define HALF (RIG_MEMORY / 2)
#define FRAMES_MAX 24u

struct kept_frame {
	struct far_frame frame;
	size_t size;
	unsigned char payload[FAR_DATA_MAX];
};

struct node {
	struct rig *rig;
	struct view_far far;
	void *nodes[RANKS], *each[1];
	struct far_pair pairs[RANKS * RANKS];
	struct far_rank ranks[RANKS];
	struct kept_frame *frames; /* to the other node */
	uint32_t first, count;
	int error; /* of a frame that it was sent */
	uint64_t sent_of[FAR_GONE + 1];
	struct node *other;
};

static struct node nodes[2];
static uint64_t seed;
static bool is_narrow; /* the way between the nodes is often full */
static _Atomic uint32_t *retired_at_end; /* the memory goes right behind the last read of it; NULL: not */

static uint32_t below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % limit;
}

static bool send_frame(void *data, void *to, const struct view_comm *comm, const struct far_frame *frame, const void *payload, size_t size)
{
	struct node *node = comm == &nodes[0].rig->comm ? &nodes[0] : &nodes[1];
	struct kept_frame *kept = &node->frames[(node->first + node->count) % FRAMES_MAX];

	(void)data;
	check_eq_ptr(to, node->other);
	check_le_uint(size, FAR_DATA_MAX);
	if (node->count == FRAMES_MAX || (is_narrow && below(3) == 0))
		return false;
	kept->frame = *frame;
	kept->size = size;
	if (size)
		memcpy(kept->payload, payload, size);
	node->count++;
	node->sent_of[frame->kind]++;
	if (retired_at_end && frame->kind == FAR_DATA && frame->offset + size == 300000)
		atomic_store(retired_at_end, 1);
	return true;
}

static void forget(void *data, void *to, const void *memory, size_t size)
{
}

static void set_host(struct rig *rig)
{
	rig->engine->host.far_send = send_frame;
	rig->engine->host.far_forget = forget;
}

static bool is_of(const struct node *node, uint32_t rank)
{
	return (rank < RANKS / 2) == (node == &nodes[0]);
}

static void start(void)
{
	for (uint32_t n = 0; n < 2; n++) {
		struct node *node = &nodes[n];

		*node = (struct node){ .rig = rig_new(RANKS, false), .other = &nodes[1 - n] };
		node->frames = calloc(FRAMES_MAX, sizeof(*node->frames));
		node->each[0] = node->other;
		node->far = (struct view_far){ .comm = &node->rig->comm,
					       .nodes = node->nodes,
					       .each = node->each,
					       .node_count = 1,
					       .pairs = node->pairs,
					       .ranks = node->ranks };
		node->rig->comm.far = &node->far;
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			if (is_of(node, rank))
				continue;
			node->nodes[rank] = node->other;
			atomic_store(&node->rig->comm.contexts[rank], NULL);
		}
		set_host(node->rig);
	}
}

static void stop(void)
{
	for (uint32_t n = 0; n < 2; n++) {
		rig_free(nodes[n].rig);
		free(nodes[n].frames);
	}
}

/* One frame of what @node has sent. */
static bool deliver(struct node *node)
{
	struct kept_frame *kept = &node->frames[node->first];
	struct node *to = node->other;
	int r;

	if (!node->count)
		return false;
	r = far_take(to->rig->engine, &to->rig->comm, node, &kept->frame, kept->payload, kept->size);
	to->error = r ? r : to->error;
	node->first = (node->first + 1) % FRAMES_MAX;
	node->count--;
	return true;
}

static bool step(struct node *node)
{
	bool is_all = true, moved;

	rig_run(node->rig);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		if (is_of(node, rank))
			is_all &= far_look(node->rig->engine, &node->rig->comm, rank);
	moved = far_push(node->rig->engine, 1 + below(200000));
	for (uint32_t n = is_narrow ? below(3) : 8; n && deliver(node); n--)
		moved = true;
	return moved || !is_all || node->count || node->rig->engine->pushing;
}

/* Until nothing moves. */
static void run(void)
{
	for (uint32_t quiet = 0, turns = 0; quiet < 6; turns++) {
		bool moved = step(&nodes[0]);

		moved |= step(&nodes[1]);
		quiet = moved ? 0 : quiet + 1;
		check_lt_uint(turns, 200000);
	}
	check_eq_int(nodes[0].error, 0);
	check_eq_int(nodes[1].error, 0);
}

static struct node *node_of(uint32_t rank)
{
	return &nodes[rank >= RANKS / 2];
}

static unsigned char *memory_of(uint32_t rank)
{
	return node_of(rank)->rig->ranks[rank].memory;
}

static unsigned char value(uint32_t source, uint32_t destination, uint32_t serial, uint64_t at)
{
	return (unsigned char)(source * 31 + destination * 17 + serial * 7 + at * 3 + at / 251);
}

/* ---- all sizes, all pairs ---- */

static const uint64_t sizes[] = { 0, 1, 8, 40, 41, 1000, HCCLD_EAGER_MAX, HCCLD_EAGER_MAX + 1, 32768, 40000, FAR_DATA_MAX, FAR_DATA_MAX + 1, 200001 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define MESSAGES_MAX 64u

struct message {
	uint32_t source, destination, serial;
	uint64_t bytes, from, to;
};

struct plan {
	struct message messages[MESSAGES_MAX];
	uint32_t count;
	uint64_t used[2][RANKS]; /* of the halves: sent from, received at */
};

static void plan_add(struct plan *plan, uint32_t source, uint32_t destination, uint64_t bytes)
{
	struct message *message = &plan->messages[plan->count];

	if (plan->count == MESSAGES_MAX || plan->used[0][source] + bytes > HALF || plan->used[1][destination] + bytes > HALF)
		return;
	*message = (struct message){ source, destination, plan->count, bytes, plan->used[0][source], HALF + plan->used[1][destination] };
	plan->used[0][source] += bytes;
	plan->used[1][destination] += bytes;
	for (uint64_t i = 0; i < bytes; i++)
		memory_of(source)[message->from + i] = value(source, destination, message->serial, i);
	memset(memory_of(destination) + message->to, 0xee, bytes);
	plan->count++;
}

/* What @rank sends, or receives, in one batch on @stream. */
static void plan_submit(const struct plan *plan, uint32_t rank, bool sends, uint32_t stream)
{
	struct rig_item items[MESSAGES_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < plan->count; i++) {
		const struct message *message = &plan->messages[i];

		if (sends && message->source == rank)
			items[count++] = (struct rig_item){ ITEM_SEND, message->destination, message->from, message->bytes, 7 };
		if (!sends && message->destination == rank)
			items[count++] = (struct rig_item){ ITEM_RECEIVE, message->source, message->to, message->bytes, 7 };
	}
	if (count)
		rig_submit(node_of(rank)->rig, rank, stream, items, count, 0);
}

static void plan_check(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct message *message = &plan->messages[i];

		for (uint64_t at = 0; at < message->bytes; at++)
			if (memory_of(message->destination)[message->to + at] != value(message->source, message->destination, message->serial, at))
				check_msg(false, "message %u of %" PRIu64 " bytes from %u to %u: byte %" PRIu64, i, message->bytes, message->source,
					  message->destination, at);
	}
	for (uint32_t rank = 0; rank < RANKS; rank++)
		for (uint32_t stream = 0; stream < 2; stream++) {
			check(rig_is_done(node_of(rank)->rig, rank, stream));
			check_eq_uint(node_of(rank)->rig->ranks[rank].streams[stream]->fault_count, 0);
		}
}

static void play(uint32_t rounds, bool has_pools)
{
	start();
	for (uint32_t n = 0; has_pools && n < 2; n++) {
		rig_have_room(nodes[n].rig);
		set_host(nodes[n].rig);
		for (uint32_t rank = 0; rank < RANKS; rank++)
			rig_give(nodes[n].rig, rank, rank, 4);
	}
	for (uint32_t round = 0; round < rounds; round++) {
		struct plan plan = { .count = 0 };
		uint32_t wanted = 1 + below(MESSAGES_MAX);

		for (uint32_t i = 0; i < wanted; i++) {
			uint32_t source = below(RANKS), destination = (source + 1 + below(RANKS - 1)) % RANKS;

			plan_add(&plan, source, destination, sizes[below(SIZES)]);
		}
		for (uint32_t i = 0, first = below(2 * RANKS); i < 2 * RANKS; i++) {
			uint32_t which = (first + i * 3) % (2 * RANKS);

			plan_submit(&plan, which / 2, which % 2, which % 2);
			if (below(3) == 0)
				run();
		}
		run();
		plan_check(&plan);
	}
	stop();
}

TEST_TIMEOUT(all_sizes_between_all_ranks, 120)
{
	seed = 1;
	play(60, false);
	play(60, true);
}

TEST_TIMEOUT(the_same_where_the_way_is_often_full, 240)
{
	is_narrow = true;
	seed = 2;
	play(40, false);
	play(40, true);
}

/* Small messages are kept at the receiver's node if there is room, and pulled if not. */
TEST(what_has_room_is_not_pulled)
{
	for (uint32_t has_room = 0; has_room < 2; has_room++) {
		start();
		if (has_room) {
			rig_have_room(nodes[1].rig);
			set_host(nodes[1].rig);
			rig_give(nodes[1].rig, 0, 0, 4);
		}
		rig_have_room(nodes[0].rig);
		set_host(nodes[0].rig);
		rig_give(nodes[0].rig, 0, 0, 4);
		memset(memory_of(0), 5, 1000);
		rig_submit(nodes[0].rig, 0, 0, (struct rig_item[]){ { ITEM_SEND, 2, 0, 1000, 7 } }, 1, 0);
		run();
		/* complete without its receiver */
		check(rig_is_done(nodes[0].rig, 0, 0));
		rig_submit(nodes[1].rig, 2, 0, (struct rig_item[]){ { ITEM_RECEIVE, 0, 0, 1000, 7 } }, 1, 0);
		run();
		check(rig_is_done(nodes[1].rig, 2, 0));
		check_eq_uint(memory_of(2)[999], 5);
		check_eq_uint(nodes[1].sent_of[FAR_PULL], has_room ? 0 : 1);
		stop();
	}
}

/* ---- failures ---- */

static const struct fault *fault_of(uint32_t rank)
{
	const struct stream_ring *ring = node_of(rank)->rig->ranks[rank].streams[0];

	check_eq_uint(ring->fault_count, 1);
	return &ring->fault;
}

static void submit(uint32_t rank, enum item_kind kind, uint32_t peer, uint64_t bytes)
{
	rig_submit(node_of(rank)->rig, rank, 0, (struct rig_item[]){ { kind, peer, 0, bytes, 7 } }, 1, 0);
}

TEST(bytes_that_differ_fail_both_ends)
{
	static const uint64_t sent[] = { 8, 1000, 300000 };

	for (uint32_t i = 0; i < 3; i++) {
		start();
		submit(1, ITEM_SEND, 3, sent[i]);
		run();
		submit(3, ITEM_RECEIVE, 1, sent[i] + 1);
		run();
		check(rig_is_done(nodes[1].rig, 3, 0));
		check_eq_uint(fault_of(3)->cause, CAUSE_MISMATCH);
		check_eq_uint(fault_of(3)->remote_bytes, sent[i]);
		if (sent[i] > HCCLD_INLINE_MAX) {
			check(rig_is_done(nodes[0].rig, 1, 0));
			check_eq_uint(fault_of(1)->cause, CAUSE_MISMATCH);
			check_eq_uint(fault_of(1)->remote_bytes, sent[i] + 1);
		} else {
			/* it was complete: its rank hears of it */
			check_eq_uint(nodes[0].rig->comm.region->members[1].async, 2);
			check_eq_uint(nodes[0].rig->comm.region->members[1].fault.remote_bytes, sent[i] + 1);
		}
		/* and what follows in the pair, at both ends */
		rig_submit(nodes[0].rig, 1, 1, (struct rig_item[]){ { ITEM_SEND, 3, 0, 8, 7 } }, 1, 0);
		run();
		check(rig_is_done(nodes[0].rig, 1, 1));
		check_eq_uint(nodes[0].rig->ranks[1].streams[1]->fault_count, 1);
		stop();
	}
}

/* Steps until so many bytes of the message have been sent. */
static void run_until_sent(uint64_t frames)
{
	for (uint32_t turns = 0; nodes[0].sent_of[FAR_DATA] < frames; turns++) {
		check_lt_uint(turns, 100000);
		rig_run(nodes[0].rig);
		far_look(nodes[0].rig->engine, &nodes[0].rig->comm, 0);
		far_push(nodes[0].rig->engine, 1);
		deliver(&nodes[0]);
		rig_run(nodes[1].rig);
		far_look(nodes[1].rig->engine, &nodes[1].rig->comm, 2);
		deliver(&nodes[1]);
	}
}

TEST(memory_that_goes_in_the_middle_is_not_received)
{
	start();
	memset(memory_of(0), 5, 1 << 20);
	submit(0, ITEM_SEND, 2, 1 << 20);
	submit(2, ITEM_RECEIVE, 0, 1 << 20);
	run_until_sent(3);
	atomic_store(&nodes[0].rig->ranks[0].session.segments[0].retired, 1);
	far_retire(nodes[0].rig->engine, &nodes[0].rig->ranks[0].session);
	check_null(nodes[0].rig->engine->pushing);
	/* it is used for something else */
	memset(memory_of(0), 6, 1 << 20);
	run();
	check(rig_is_done(nodes[1].rig, 2, 0));
	check_eq_uint(fault_of(2)->cause, CAUSE_PEER_MEMORY);
	check_eq_uint(rig_pair(nodes[1].rig, 0, 2)->received, 0);
	check_eq_uint(nodes[0].sent_of[FAR_END], 0);
	stop();
}

/* The same without a word before: the last look finds it. */
TEST(memory_that_goes_unseen_is_not_received)
{
	start();
	submit(0, ITEM_SEND, 2, 1 << 20);
	submit(2, ITEM_RECEIVE, 0, 1 << 20);
	run_until_sent(16);
	atomic_store(&nodes[0].rig->ranks[0].session.segments[0].retired, 1);
	run();
	check(rig_is_done(nodes[1].rig, 2, 0));
	check_eq_uint(rig_pair(nodes[1].rig, 0, 2)->received, nodes[0].sent_of[FAR_END]);
	stop();
	start();
	submit(0, ITEM_SEND, 2, 1 << 20);
	submit(2, ITEM_RECEIVE, 0, 1 << 20);
	run_until_sent(8);
	atomic_store(&nodes[0].rig->ranks[0].session.segments[0].retired, 1);
	run();
	check_eq_uint(fault_of(2)->cause, CAUSE_PEER_MEMORY);
	stop();
}

/* F4: the last read may have been of memory in new use. */
TEST(memory_that_goes_behind_the_last_read_is_not_received)
{
	start();
	submit(0, ITEM_SEND, 2, 300000);
	submit(2, ITEM_RECEIVE, 0, 300000);
	retired_at_end = &nodes[0].rig->ranks[0].session.segments[0].retired;
	run();
	retired_at_end = NULL;
	check_eq_uint(nodes[0].sent_of[FAR_DATA], 5);
	check_eq_uint(nodes[0].sent_of[FAR_END], 0);
	check_eq_uint(fault_of(2)->cause, CAUSE_PEER_MEMORY);
	check_eq_uint(rig_pair(nodes[1].rig, 0, 2)->received, 0);
	stop();
}

TEST(a_sender_that_dies_in_the_middle)
{
	start();
	submit(0, ITEM_SEND, 2, 1 << 20);
	submit(2, ITEM_RECEIVE, 0, 1 << 20);
	run_until_sent(3);
	atomic_store(&nodes[0].rig->comm.region->members[0].word, MEMBER_DEAD);
	run();
	check_eq_uint(fault_of(2)->cause, CAUSE_PEER_DEAD);
	stop();
}

/* A stream that is taken away in the middle: what comes late is for nobody, and the sender hears of it. */
TEST(a_receiver_that_gives_up_in_the_middle)
{
	start();
	memset(memory_of(0), 5, 1 << 20);
	submit(0, ITEM_SEND, 2, 1 << 20);
	submit(2, ITEM_RECEIVE, 0, 1 << 20);
	run_until_sent(3);
	check(engine_stream_detach(nodes[1].rig->engine, nodes[1].rig->ranks[2].context, nodes[1].rig->ranks[2].streams[0]));
	memset(memory_of(2), 9, 1 << 20);
	run();
	for (uint32_t i = 0; i < 1 << 20; i++)
		check_eq_uint(memory_of(2)[i], 9);
	check(rig_is_done(nodes[0].rig, 0, 0));
	check_eq_uint(fault_of(0)->cause, CAUSE_PEER_GAVE_UP);
	stop();
}

/* ---- lies ---- */

static int lie(uint32_t to, enum far_kind kind, uint32_t source, uint32_t destination, uint64_t number, uint64_t bytes, size_t size)
{
	static unsigned char payload[FAR_DATA_MAX];
	const struct far_frame frame = { .kind = (uint8_t)kind,
					 .has_payload = kind == FAR_OFFER && size,
					 .source = source,
					 .destination = destination,
					 .number = number,
					 .bytes = bytes,
					 .data_type = 7 };

	return far_take(nodes[to].rig->engine, &nodes[to].rig->comm, &nodes[1 - to], &frame, payload, size);
}

TEST(lies_are_found)
{
	start();
	/* ranks that are not, that are both here, or both there; number 0; another node's */
	check_eq_int(lie(1, FAR_OFFER, 7, 2, 1, 8, 8), -EPROTO);
	check_eq_int(lie(1, FAR_OFFER, 0, 7, 1, 8, 8), -EPROTO);
	check_eq_int(lie(1, FAR_OFFER, 2, 3, 1, 8, 8), -EPROTO);
	check_eq_int(lie(1, FAR_OFFER, 0, 1, 1, 8, 8), -EPROTO);
	check_eq_int(lie(1, FAR_OFFER, 0, 2, 0, 8, 8), -EPROTO);
	check_eq_int(far_take(nodes[1].rig->engine, &nodes[1].rig->comm, &nodes[1], &(struct far_frame){ FAR_OFFER, .destination = 2, .number = 1 }, NULL, 0),
		     -EPROTO);
	/* offers: a gap, a payload of another size, too large a payload; what only a receiver says */
	check_eq_int(lie(1, FAR_OFFER, 0, 2, 2, 8, 8), -EPROTO);
	check_eq_int(lie(1, FAR_OFFER, 0, 2, 1, 9, 8), -EPROTO);
	check_eq_int(lie(1, FAR_OFFER, 0, 2, 1, HCCLD_EAGER_MAX + 1, HCCLD_EAGER_MAX + 1), -EPROTO);
	check_eq_int(lie(1, FAR_RECEIVED, 0, 2, 1, 0, 0), -EPROTO);
	check_eq_int(lie(1, FAR_PULL, 0, 2, 1, 0, 0), -EPROTO);
	check_eq_int(lie(1, (enum far_kind)0, 0, 2, 1, 0, 0), -EPROTO);
	check_eq_int(lie(1, (enum far_kind)77, 0, 2, 1, 0, 0), -EPROTO);
	/* more than there is room for */
	for (uint64_t number = 1; number <= HCCLD_PAIR_SLOTS; number++)
		check_eq_int(lie(1, FAR_OFFER, 0, 2, number, 8, 8), 0);
	check_eq_int(lie(1, FAR_OFFER, 0, 2, HCCLD_PAIR_SLOTS + 1, 8, 8), -EPROTO);
	/* of what was not offered; what only a sender says */
	check_eq_int(lie(0, FAR_RECEIVED, 0, 2, 1, 0, 0), -EPROTO);
	check_eq_int(lie(0, FAR_PULL, 0, 2, 1, 0, 0), -EPROTO);
	check_eq_int(lie(0, FAR_DATA, 0, 2, 1, 0, 8), -EPROTO);
	check_eq_int(lie(0, FAR_END, 0, 2, 1, 0, 0), -EPROTO);
	/* failures without a record, of ranks that are not */
	check_eq_int(lie(0, FAR_FAIL, 0, 2, 1, 0, 8), -EPROTO);
	check_eq_int(lie(0, FAR_FAIL, 0, 2, 1, 0, sizeof(struct fault)), -EPROTO);
	check_eq_uint(rig_pair(nodes[0].rig, 0, 2)->received, 0);
	stop();
}

TEST(lies_about_what_is_pulled_are_found)
{
	start();
	check_eq_int(lie(1, FAR_OFFER, 0, 2, 1, 100000, 0), 0);
	submit(2, ITEM_RECEIVE, 0, 100000);
	rig_run(nodes[1].rig);
	check_eq_uint(nodes[1].sent_of[FAR_PULL], 1);
	/* too early, too much, of another number: that is late, and nobody's */
	check_eq_int(lie(1, FAR_END, 0, 2, 1, 1, 0), -EPROTO);
	check_eq_int(lie(1, FAR_DATA, 0, 2, 1, 1, 0), -EPROTO);
	check_eq_int(lie(1, FAR_DATA, 0, 2, 2, 1, 8), 0);
	/* of another attempt, too */
	check_eq_int(lie(1, FAR_DATA, 0, 2, 1, 2, 8), 0);
	check_eq_int(lie(1, FAR_END, 0, 2, 1, 2, 0), 0);
	check_eq_int(lie(1, FAR_DATA, 0, 2, 1, 1, FAR_DATA_MAX), 0);
	check_eq_int(lie(1, FAR_DATA, 0, 2, 1, 1, 8), -EPROTO);
	check_eq_uint(rig_pair(nodes[1].rig, 0, 2)->received, 0);
	stop();
}

/* A process that can write its rings lies about an offer: its session ends, and the receiver hears of it. */
TEST(a_source_that_lies_is_told)
{
	struct pair_ring *ring;

	start();
	ring = rig_pair(nodes[0].rig, 0, 2);
	ring->slots[0] = (struct pair_offer){ .number = 1, .bytes = 5000, .where = OFFER_EAGER, .place = 12345 };
	atomic_store(&ring->sent, 1);
	atomic_store(&ring->tail, 1);
	submit(2, ITEM_RECEIVE, 0, 5000);
	run();
	check_eq_uint(nodes[0].rig->liars, 1);
	check_eq_uint(fault_of(2)->cause, CAUSE_PROTOCOL);
	stop();
}
