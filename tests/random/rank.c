/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a world: follows the plan and checks what arrives. Device memory is read and written directly, without copies: that is what
 * a kernel would do.
 */
#include "rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

#define GUARD 16u
#define GUARD_BYTE 0xa5
#define SYNC_TIMEOUT_MS 120000

/* A message this rank has a part in. */
struct part {
	const struct plan_message *message;
	uint32_t round;
	bool sends;
	bool own_allocation;
	unsigned char *buffer;
};

struct rank {
	const struct plan_world *world;
	struct rank_shared *shared;
	uint32_t rank;
	struct plan_random random;
	HcclComm comms[PLAN_COMMS];
	aclrtStream streams[PLAN_STREAMS];
	unsigned char *arena[2];		/* [0] sends, [1] receives */
	uint64_t used[2];
	struct plan_window window;
	uint32_t window_index;
	uint32_t part_count;
	struct part parts[PLAN_ROUNDS * PLAN_MESSAGES * 2];
};

static void die(const struct rank *rank, const char *what, int result)
{
	const char *text = aclGetRecentErrMsg();

	if (!atomic_exchange(&rank->shared->failed, 1))
		fprintf(stderr, "seed %lu, world %u, window %u, rank %u of %u: %s: %d %s\n", (unsigned long)rank->world->seed,
			rank->world->index, rank->window_index, rank->rank, rank->world->rank_count, what, result, text ? text : "");
	_exit(1);
}

#define MUST(call) do { int result_ = (int)(call); if (result_) die(rank, #call, result_); } while (0)

/* ---- contents ---- */

static uint64_t word_of(uint64_t key, uint64_t index)
{
	return (key + index) * 0x9e3779b97f4a7c15ull;
}

static void fill(unsigned char *buffer, uint64_t bytes, uint64_t key)
{
	uint64_t words = bytes / 8, last = word_of(key, words);

	for (uint64_t i = 0; i < words; i++) {
		uint64_t word = word_of(key, i);

		memcpy(buffer + i * 8, &word, 8);
	}
	memcpy(buffer + words * 8, &last, bytes % 8);
}

/* Offset of the first wrong byte, or @bytes. */
static uint64_t compare(const unsigned char *buffer, uint64_t bytes, uint64_t key)
{
	uint64_t words = bytes / 8, word, wrong = 0;

	for (uint64_t i = 0; i < words; i++) {
		memcpy(&word, buffer + i * 8, 8);
		wrong |= word ^ word_of(key, i);
	}
	word = word_of(key, words);
	if (!wrong && memcmp(buffer + words * 8, &word, bytes % 8) == 0)
		return bytes;
	for (uint64_t i = 0; i < bytes; i++) {
		word = word_of(key, i / 8);
		if (buffer[i] != ((const unsigned char *)&word)[i % 8])
			return i;
	}
	return bytes;
}

static void check_guard(const struct rank *rank, const unsigned char *guard, const char *where)
{
	for (uint32_t i = 0; i < GUARD; i++)
		if (guard[i] != GUARD_BYTE)
			die(rank, where, (int)i);
}

static void check_part(struct rank *rank, const struct part *part)
{
	const struct plan_message *message = part->message;
	uint64_t wrong;

	if (!part->buffer)
		return;
	wrong = compare(part->buffer, message->bytes, message->key);
	if (wrong != message->bytes) {
		char text[200];

		snprintf(text, sizeof(text), "round %u, comm %u: %s %u -> %u of %lu bytes is wrong at byte", part->round,
			 rank->window.rounds[part->round].comm, part->sends ? "the source of" : "message", message->source,
			 message->destination, (unsigned long)message->bytes);
		die(rank, text, (int)wrong);
	}
	check_guard(rank, part->buffer - GUARD, "bytes before a buffer were written");
	check_guard(rank, part->buffer + message->bytes, "bytes after a buffer were written");
	if (!part->sends)
		atomic_fetch_add_explicit(&rank->shared->bytes_checked, message->bytes, memory_order_relaxed);
}

/* ---- one window ---- */

/* A place for a message, with guards, aligned to its element and mostly no more than that. */
static void part_place(struct rank *rank, struct part *part)
{
	const uint64_t bytes = part->message->bytes;
	const uint32_t width = plan_type_size(part->sends ? part->message->send_type : part->message->receive_type);
	unsigned char *base;

	part->own_allocation = bytes <= 1 << 18 && plan_chance(&rank->random, 5);
	if (part->own_allocation) {
		void *memory = NULL;

		MUST(aclrtMalloc(&memory, bytes + 2 * GUARD, ACL_MEM_MALLOC_HUGE_FIRST));
		base = memory;
	} else {
		uint64_t *used = &rank->used[!part->sends];
		uint64_t slack = width * (uint64_t)plan_below(&rank->random, 64 / width);

		base = rank->arena[!part->sends] + *used + slack;
		*used += bytes + 2 * GUARD + (64 + 31);
		*used -= *used % 16;
		if (*used > rank->world->arena + (1 << 20))
			die(rank, "the plan asks for more than an arena", 0);
	}
	part->buffer = base + GUARD;
	memset(base, GUARD_BYTE, GUARD);
	memset(part->buffer + bytes, GUARD_BYTE, GUARD);
	if (part->sends)
		fill(part->buffer, bytes, part->message->key);
	else if (bytes < 65536)
		fill(part->buffer, bytes, ~part->message->key);
}

static void window_place(struct rank *rank)
{
	rank->part_count = 0;
	rank->used[0] = rank->used[1] = 0;
	for (uint32_t i = 0; i < rank->window.round_count; i++) {
		const struct plan_round *round = &rank->window.rounds[i];
		int32_t own = rank->world->comms[round->comm].rank[rank->rank];

		for (uint32_t m = 0; own >= 0 && m < round->message_count; m++) {
			const struct plan_message *message = &round->messages[m];

			for (int sends = 1; sends >= 0; sends--) {
				struct part *part = &rank->parts[rank->part_count];

				if ((sends ? message->source : message->destination) != (uint32_t)own ||
				    !(sends ? message->sends : message->receives))
					continue;
				*part = (struct part){ .message = message, .round = i, .sends = sends };
				part_place(rank, part);
				rank->part_count++;
			}
		}
	}
}

static HcclSendRecvItem item_of(const struct part *part)
{
	const struct plan_message *message = part->message;
	uint8_t type = part->sends ? message->send_type : message->receive_type;

	return (HcclSendRecvItem){
		.sendRecvType = part->sends ? HCCL_SEND : HCCL_RECV,
		.buf = part->buffer,
		.count = message->bytes / plan_type_size(type),
		.dataType = (HcclDataType)type,
		.remoteRank = part->sends ? message->destination : message->source,
	};
}

/* Any order, but items of one peer and direction keep theirs: that is the order they match in. */
static void shuffle_items(struct rank *rank, HcclSendRecvItem *items, uint32_t count)
{
	HcclSendRecvItem copy[PLAN_MESSAGES * 2];
	uint32_t lanes[PLAN_MESSAGES * 2];

	memcpy(copy, items, count * sizeof(*items));
	for (uint32_t i = 0; i < count; i++)
		lanes[i] = i;
	for (uint32_t i = count; i > 1; i--) {
		uint32_t k = plan_below(&rank->random, i), value = lanes[i - 1];

		lanes[i - 1] = lanes[k];
		lanes[k] = value;
	}
	/* each place draws an item and takes the first one that is left of its peer and direction */
	for (uint32_t i = 0; i < count; i++) {
		uint32_t drawn = lanes[i], k = 0;

		while (!copy[k].buf || copy[k].remoteRank != copy[drawn].remoteRank || copy[k].sendRecvType != copy[drawn].sendRecvType)
			k++;
		items[i] = copy[k];
		copy[k].buf = NULL;
	}
}

static void post_round(struct rank *rank, uint32_t index)
{
	const struct plan_round *round = &rank->window.rounds[index];
	const struct plan_comm *plan = &rank->world->comms[round->comm];
	aclrtStream stream = rank->streams[plan->stream[rank->rank]];
	HcclComm comm = rank->comms[round->comm];
	HcclSendRecvItem items[PLAN_MESSAGES * 2];
	uint32_t count = 0;

	if (plan->rank[rank->rank] < 0)
		return;
	if (round->kind == PLAN_BARRIER) {
		MUST(HcclBarrier(comm, stream));
		return;
	}
	for (uint32_t i = 0; i < rank->part_count; i++)
		if (rank->parts[i].round == index)
			items[count++] = item_of(&rank->parts[i]);
	if (count == 0)
		return;
	atomic_fetch_add_explicit(&rank->shared->calls, 1, memory_order_relaxed);
	if (round->kind == PLAN_SINGLE && items[0].sendRecvType == HCCL_SEND) {
		MUST(HcclSend(items[0].buf, items[0].count, items[0].dataType, items[0].remoteRank, comm, stream));
	} else if (round->kind == PLAN_SINGLE) {
		MUST(HcclRecv(items[0].buf, items[0].count, items[0].dataType, items[0].remoteRank, comm, stream));
	} else {
		shuffle_items(rank, items, count);
		MUST(HcclBatchSendRecv(items, count, comm, stream));
		memset(items, 0xff, sizeof(items[0]) * count);	/* the call has copied them */
	}
}

static uint32_t stream_of(const struct rank *rank, uint32_t round)
{
	return rank->world->comms[rank->window.rounds[round].comm].stream[rank->rank];
}

/* Rounds of a stream in their order, streams in any. */
static void window_post(struct rank *rank)
{
	uint32_t next[PLAN_STREAMS] = { 0 }, left = rank->window.round_count;

	while (left > 0) {
		uint32_t stream = plan_below(&rank->random, PLAN_STREAMS);

		while (next[stream] < rank->window.round_count && stream_of(rank, next[stream]) != stream)
			next[stream]++;
		if (next[stream] == rank->window.round_count)
			continue;
		if (plan_chance(&rank->random, 6))
			usleep(plan_below(&rank->random, 400));
		post_round(rank, next[stream]++);
		left--;
	}
}

static void window_run(struct rank *rank, uint32_t index)
{
	uint32_t first = plan_below(&rank->random, PLAN_STREAMS);

	rank->window_index = index;
	plan_window(rank->world, index, &rank->window);
	window_place(rank);
	window_post(rank);
	for (uint32_t i = 0; i < PLAN_STREAMS; i++)
		MUST(aclrtSynchronizeStreamWithTimeout(rank->streams[(first + i) % PLAN_STREAMS], SYNC_TIMEOUT_MS));
	for (uint32_t i = 0; i < rank->part_count; i++)
		check_part(rank, &rank->parts[i]);
	for (uint32_t i = 0; i < rank->part_count; i++)
		if (rank->parts[i].own_allocation)
			MUST(aclrtFree(rank->parts[i].buffer - GUARD));
}

/* ---- life of a rank ---- */

static void join(struct rank *rank, uint32_t index)
{
	const struct plan_comm *plan = &rank->world->comms[index];
	struct rank_shared *shared = rank->shared;
	uint32_t size = 0, own = 0;

	if (plan->rank[rank->rank] < 0)
		return;
	if (plan->rank[rank->rank] == 0) {
		MUST(HcclGetRootInfo(&shared->roots[index]));
		atomic_store(&shared->root_ready[index], 1);
	}
	while (!atomic_load(&shared->root_ready[index])) {
		if (atomic_load(&shared->failed))
			_exit(1);
		usleep(200);
	}
	MUST(HcclCommInitRootInfo(plan->size, &shared->roots[index], (uint32_t)plan->rank[rank->rank], &rank->comms[index]));
	MUST(HcclGetRankSize(rank->comms[index], &size));
	MUST(HcclGetRankId(rank->comms[index], &own));
	if (size != plan->size || own != (uint32_t)plan->rank[rank->rank])
		die(rank, "rank or size of the communicator", (int)own);
}

void rank_run(const struct plan_world *world, uint32_t index, uint32_t window_count, struct rank_shared *shared)
{
	struct rank *rank = calloc(1, sizeof(*rank));
	int32_t device = (int32_t)world->device[index];

	if (!rank)
		_exit(1);
	rank->world = world;
	rank->rank = index;
	rank->shared = shared;
	rank->random = plan_random_of(world->seed, 3, world->index, index);
	MUST(aclrtSetDevice(device));
	for (uint32_t i = 0; i < PLAN_STREAMS; i++)
		MUST(aclrtCreateStream(&rank->streams[i]));
	for (uint32_t i = 0; i < 2; i++)
		MUST(aclrtMalloc((void **)&rank->arena[i], world->arena + (2 << 20), ACL_MEM_MALLOC_HUGE_FIRST));
	for (uint32_t i = 0; i < world->comm_count; i++)
		join(rank, i);
	for (uint32_t i = 0; i < window_count; i++)
		window_run(rank, i);
	for (uint32_t i = 0; i < world->comm_count; i++)
		MUST(HcclCommDestroy(rank->comms[i]));
	for (uint32_t i = 0; i < PLAN_STREAMS; i++)
		MUST(aclrtDestroyStream(rank->streams[i]));
	MUST(aclrtFree(rank->arena[0]));
	MUST(aclrtFree(rank->arena[1]));
	MUST(aclrtResetDevice(device));
	free(rank);
}
