/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of the random test. Pure. */
#include "plan.h"

#include <string.h>

#include "hccl/hccl_types.h"

#define SPACE 128u	/* alignment and guards around a message in an arena */

static const struct {
	uint8_t type, size;
} types[] = {
	{ HCCL_DATA_TYPE_INT8, 1 }, { HCCL_DATA_TYPE_UINT8, 1 }, { HCCL_DATA_TYPE_INT16, 2 }, { HCCL_DATA_TYPE_UINT16, 2 },
	{ HCCL_DATA_TYPE_FP16, 2 }, { HCCL_DATA_TYPE_BFP16, 2 }, { HCCL_DATA_TYPE_INT32, 4 }, { HCCL_DATA_TYPE_UINT32, 4 },
	{ HCCL_DATA_TYPE_FP32, 4 }, { HCCL_DATA_TYPE_INT64, 8 }, { HCCL_DATA_TYPE_UINT64, 8 }, { HCCL_DATA_TYPE_FP64, 8 },
	{ HCCL_DATA_TYPE_INT128, 16 },
};
#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))

uint64_t plan_next(struct plan_random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

struct plan_random plan_random_of(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	struct plan_random random = { seed };

	random.state = plan_next(&random) ^ a;
	random.state = plan_next(&random) ^ b;
	random.state = plan_next(&random) ^ c;
	plan_next(&random);
	return random;
}

uint32_t plan_below(struct plan_random *random, uint32_t limit)
{
	return (uint32_t)((plan_next(random) >> 32) * limit >> 32);
}

bool plan_chance(struct plan_random *random, uint32_t percent)
{
	return plan_below(random, 100) < percent;
}

uint32_t plan_type_size(uint8_t type)
{
	for (uint32_t i = 0; i < TYPE_COUNT; i++)
		if (types[i].type == type)
			return types[i].size;
	return 1;
}

static void shuffle(struct plan_random *random, uint32_t *values, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t k = plan_below(random, i), value = values[i - 1];

		values[i - 1] = values[k];
		values[k] = value;
	}
}

/* Some ranks of the world, in any order; the first communicator has all of them. */
static void plan_comm(struct plan_random *random, const struct plan_world *world, bool all, struct plan_comm *comm)
{
	for (uint32_t i = 0; i < world->rank_count; i++)
		comm->member[i] = i;
	shuffle(random, comm->member, world->rank_count);
	comm->size = all ? world->rank_count : 1 + plan_below(random, world->rank_count);
	for (uint32_t i = 0; i < PLAN_RANKS; i++) {
		comm->rank[i] = -1;
		comm->stream[i] = plan_below(random, PLAN_STREAMS);
	}
	for (uint32_t i = 0; i < comm->size; i++)
		comm->rank[comm->member[i]] = (int32_t)i;
}

void plan_world(uint64_t seed, uint32_t index, uint32_t rank_count, uint32_t device_count, struct plan_world *ret_world)
{
	struct plan_random random = plan_random_of(seed, 1, index, 0);
	struct plan_world *world = ret_world;

	memset(world, 0, sizeof(*world));
	world->seed = seed;
	world->index = index;
	world->rank_count = rank_count ? rank_count : 2 + plan_below(&random, PLAN_RANKS - 1);
	world->device_count = device_count ? device_count : 1 + plan_below(&random, PLAN_DEVICES);
	world->comm_count = 1 + plan_below(&random, PLAN_COMMS);
	world->window_count = 10 + plan_below(&random, 40);
	world->arena = (320u << 20) / world->rank_count;
	if (world->arena > 80u << 20)
		world->arena = 80u << 20;
	for (uint32_t i = 0; i < world->rank_count; i++)
		world->device[i] = plan_below(&random, world->device_count);
	for (uint32_t i = 0; i < world->comm_count; i++)
		plan_comm(&random, world, i == 0, &world->comms[i]);
}

/* Mostly small, now and then up to 64 MiB. */
static uint64_t random_bytes(struct plan_random *random)
{
	uint32_t luck = plan_below(random, 1000);
	uint32_t limit = luck < 300 ? 64 : luck < 600 ? 1024 : luck < 850 ? 8192 : luck < 960 ? 65536 : luck < 990 ? 1u << 20
		       : luck < 999 ? 8u << 20 : 64u << 20;

	return plan_chance(random, 4) ? 0 : plan_below(random, limit + 1);
}

/* What is left of each rank's arenas in this window. */
struct budget {
	uint64_t sends[PLAN_RANKS], receives[PLAN_RANKS];
};

static void add_message(struct plan_random *random, const struct plan_comm *comm, struct budget *budget, struct plan_round *round,
			uint32_t source, uint32_t destination, uint64_t bytes)
{
	struct plan_message *message = &round->messages[round->message_count];
	uint64_t *from = &budget->sends[comm->member[source]], *to = &budget->receives[comm->member[destination]];
	uint32_t type = plan_below(random, TYPE_COUNT), other = type;
	uint64_t limit = *from < *to ? *from : *to;

	if (round->message_count == PLAN_MESSAGES || limit < SPACE)
		return;
	limit -= SPACE;
	if (bytes > limit)
		bytes = limit;
	bytes -= bytes % types[type].size;
	/* types of equal bytes are no error; to oneself they must agree */
	if (source != destination && plan_chance(random, 1)) {
		other = plan_below(random, TYPE_COUNT);
		if (bytes % types[other].size)
			other = type;
	}
	*message = (struct plan_message){
		.source = source, .destination = destination, .bytes = bytes, .key = plan_next(random),
		.send_type = types[type].type, .receive_type = types[other].type, .sends = true, .receives = true,
	};
	if (bytes == 0 && source != destination) {
		message->sends = plan_chance(random, 70);
		message->receives = plan_chance(random, 70);
	}
	*from -= bytes + SPACE;
	*to -= bytes + SPACE;
	round->message_count++;
}

static void round_sparse(struct plan_random *random, const struct plan_comm *comm, struct budget *budget, struct plan_round *round)
{
	uint32_t percent = 1 + plan_below(random, 100), repeat = plan_chance(random, 20) ? 4 : 1;

	if (comm->size > 8)
		repeat = 1;
	for (uint32_t source = 0; source < comm->size; source++)
		for (uint32_t destination = 0; destination < comm->size; destination++)
			for (uint32_t k = 0; k < repeat; k++)
				if (plan_chance(random, percent))
					add_message(random, comm, budget, round, source, destination, random_bytes(random));
}

static void round_ring(struct plan_random *random, const struct plan_comm *comm, struct budget *budget, struct plan_round *round)
{
	uint64_t bytes = random_bytes(random);
	uint32_t step = 1 + plan_below(random, comm->size);

	for (uint32_t source = 0; source < comm->size; source++)
		add_message(random, comm, budget, round, source, (source + step) % comm->size, bytes);
}

static void round_all(struct plan_random *random, const struct plan_comm *comm, struct budget *budget, struct plan_round *round)
{
	uint64_t bytes = random_bytes(random);

	for (uint32_t source = 0; source < comm->size; source++)
		for (uint32_t destination = 0; destination < comm->size; destination++)
			add_message(random, comm, budget, round, source, destination, bytes);
}

/* Many messages of one pair, or of a rank with itself: more than a ring of offers, sometimes more than a quarter of a stream. */
static void round_many(struct plan_random *random, const struct plan_comm *comm, struct budget *budget, struct plan_round *round)
{
	uint32_t source = plan_below(random, comm->size), destination = plan_below(random, comm->size);
	uint32_t count = plan_chance(random, 20) ? 300 + plan_below(random, 150) : 1 + plan_below(random, 60);

	for (uint32_t i = 0; i < count; i++)
		add_message(random, comm, budget, round, source, destination, plan_below(random, plan_chance(random, 80) ? 64 : 4096));
}

static void plan_round(struct plan_random *random, const struct plan_world *world, struct budget *budget, struct plan_round *round)
{
	const struct plan_comm *comm;
	uint32_t luck = plan_below(random, 100);

	round->kind = PLAN_BATCH;
	round->message_count = 0;
	round->comm = plan_below(random, world->comm_count);
	comm = &world->comms[round->comm];
	if (luck < 50) {
		round_sparse(random, comm, budget, round);
	} else if (luck < 65) {
		round_ring(random, comm, budget, round);
	} else if (luck < 75) {
		round_all(random, comm, budget, round);
	} else if (luck < 88) {
		round_many(random, comm, budget, round);
	} else if (luck < 95 && comm->size > 1) {
		uint32_t source = plan_below(random, comm->size);

		round->kind = PLAN_SINGLE;
		add_message(random, comm, budget, round, source, (source + 1 + plan_below(random, comm->size - 1)) % comm->size,
			    random_bytes(random));
	} else {
		round->kind = PLAN_BARRIER;
	}
}

void plan_window(const struct plan_world *world, uint32_t index, struct plan_window *ret_window)
{
	struct plan_random random = plan_random_of(world->seed, 2, world->index, index);
	struct budget budget;

	for (uint32_t i = 0; i < PLAN_RANKS; i++)
		budget.sends[i] = budget.receives[i] = world->arena;
	ret_window->round_count = 1 + plan_below(&random, PLAN_ROUNDS);
	for (uint32_t i = 0; i < ret_window->round_count; i++)
		plan_round(&random, world, &budget, &ret_window->rounds[i]);
}
