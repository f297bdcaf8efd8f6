/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How shared memory is mapped into this process: what the executor works on. Views hold pointers and are private to a process; everything
 * that matters is in shared memory, so views can be rebuilt at any time.
 *
 * Threads. The owner (in the daemon: the control thread) makes views and publishes them: it fills an entry and stores the word marked
 * (last) with release. The executor loads that word with acquire and never writes to the tables. To take something back the owner lets
 * the executor run the matching engine_*_detach() (in the daemon: scheduler_call()) and frees only when that has run. Fields marked
 * [engine] belong to the executor alone; the owner zeroes them when it makes the view.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/eager.h"
#include "proto/limits.h"
#include "proto/notify.h"
#include "proto/pair.h"
#include "proto/region.h"
#include "proto/ring.h"
#include "proto/yard.h"

/* Ids of segments and handles of ranks: generation << 16 | index in the session's table. Never reused: the generation grows. */
#define VIEW_INDEX(id) ((uint32_t)((id) & 0xffff))
#define VIEW_ID(generation, index) ((uint64_t)(generation) << 16 | (index))

struct transfer;
struct view_comm;
struct view_session;
struct view_yard;

struct view_segment {
	_Atomic uint64_t id;		/* (last) 0: no segment here */
	unsigned char *base;		/* mapped rw in this process */
	uint64_t size;
	_Atomic uint32_t retired;	/* the owner stores 1 before engine_segment_detach() */
	uint8_t kind;			/* AllocateSegment.Kind: NOTIFY is for tasks about notifies, which know no other */
	bool is_import;			/* memory of another session's segment, which has an entry of its own */
	/* of an import that came with a channel: whose it is. Not read before it is retired */
	struct view_comm *comm;		/* NULL: it came by a key */
	uint32_t rank, peer;
	/* of an import that is lost. Not read before it is retired */
	uint8_t loss;			/* enum loss */
	int32_t loss_pid, loss_exit;	/* whose it was */
	/* of NOTIFY: a bit for each page that is there, set (release) when it is; NULL: all are. The others are on nobody's account */
	const _Atomic uint64_t *pages;
};

/* Large copies of one communicator that wait for the engine: what weighted deficit round robin chooses among. */
struct view_flow {
	struct transfer *first, *last;
	struct view_flow *next, *previous;	/* circular list of the flows that have something */
	int64_t deficit;		/* bytes */
	uint32_t weight;		/* eighths of a slice in a round; 0 counts as 1 */
};

#define VIEW_WEIGHT_NORMAL 7u	/* of a flow: a communicator whose program does not say, copies without one */

/*
 * What one tenant gets of the engine, with all its yards and communicators: a turn of steps in each pass, and a turn of slices among large
 * copies. A step is about as long as looking at one item.
 */
struct view_share {
	_Atomic uint32_t weight;	/* the owner's, any time; 0 counts as 1 */
	/* [engine] */
	int64_t steps;			/* left of the turn; below 0: a debt */
	uint64_t pass;			/* of the last turn */
	uint32_t transfers;		/* in the pool */
	struct view_flow copies;	/* transfers without communicator */
	struct view_flow *current;	/* round robin position among its flows */
	struct view_share *next, *previous;	/* circular list of those that have something to copy */
	int64_t deficit;		/* bytes */
	uint64_t late_ns;		/* of the newest look at ages, and how many lanes more may be ended in it */
	uint32_t late_left;
	_Atomic uint64_t pending;	/* bytes that are offered and not received */
	/* the owner's */
	_Atomic uint64_t pending_limit;	/* 0: none. One send at a time may always be pending, however large */
};

struct view_context {
	struct view_session *session;	/* NULL: is_far */
	bool is_far;			/* of all ranks on other nodes: who rings them rings it; it has no streams */
	struct view_share *share;	/* NULL: the engine's own, of all that have none */
	struct view_yard *yard;		/* that it is in */
	struct yard_context *words;
	_Atomic uint64_t *bit_word;
	uint64_t bit;			/* mask within *bit_word */
	uint32_t index;			/* in the yard */
	_Atomic uint32_t stream_limit;	/* streams[] below this may be set; only grows */
	_Atomic(struct stream_ring *) streams[HCCLD_STREAMS_PER_SESSION];	/* (last) */
	/* [engine] */
	bool dirty, broken, starved;
	uint64_t left_state;		/* the state word that the executor has left it with: another one, and clients have driven it since */
	uint64_t seen_state;		/* the PATIENT word of the last look at it, in which tick that was, and in how many before it was PATIENT */
	uint32_t seen_tick, seen_ticks;
	uint32_t transfers;		/* large copies under way: no client may take it (HELD) */
	bool helped;			/* clients helped with the newest of them that was shared */
	bool declined;			/* a client has met what it does not do: the executor keeps it until a task is completed */
	bool meets;			/* a lane waits for its peer; as of the last look */
	bool unrung;			/* something came while `asleep` was 0, and it has not been looked at since */
	bool unannounced;		/* tasks were completed while nobody said that he sleeps */
	struct view_context *dirty_next;
	bool watches, polls;		/* a head waits for an event or a word, for a word; as of the last look */
	bool in_watchers, in_pollers;
	struct view_context *watchers_next, *pollers_next;
	bool awaits;			/* a head waits for a notify; as of the last look */
	bool in_awaiting;
	struct view_context *awaiting_next;
	bool held;			/* has sends that wait for the tenant's limit, or for room; in the engine's list of these */
	struct view_context *held_next;
	uint32_t next_stream;		/* where the next visit begins */
	/* the batch that was left in the middle of its lanes, and what is known of those before */
	struct stream_ring *cut_ring;
	uint64_t cut_position, cut_steps;
	uint32_t cut_lane;
	bool cut_waits, cut_news;
	uint8_t looked_at;		/* engine_rank_suspend(): enum look */
	/* where the next look at ages begins, and the batch that the last one has left in the middle of its lanes */
	uint32_t late_stream, late_lane;
	struct stream_ring *late_ring;
	uint64_t late_position;
};

struct view_rank {
	_Atomic uint64_t handle;	/* (last) 0: none */
	struct view_comm *comm;
	struct view_context *context;
	uint32_t rank;
};

struct view_session {
	uint64_t id;
	int32_t pid;
	void *region;			/* struct session_region */
	struct view_segment *segments;	/* [HCCLD_SEGMENTS_PER_SESSION] */
	struct view_rank *ranks;	/* [HCCLD_RANKS_PER_SESSION] */
	struct view_context *watchers;	/* [engine] contexts that have watched */
	int pidfd;			/* of its process, the owner's as long as the view is there; 0: nobody knows */
	bool never_drives;		/* its client is of a release whose threads take no contexts: it knows neither SLEEP nor HELD */
};

/* Of what lets sends complete without their receivers: an eager pool more, a wide ring. */
enum view_room {
	ROOM_UNASKED,
	ROOM_ASKED,			/* by the executor; the answer is one of the others, and the pool or ring before it */
	ROOM_REFUSED,			/* there is no more, until room_again_ns: such sends wait for their receivers */
};

struct view_pair {
	_Atomic(struct pair_ring *) ring;	/* (last) */
	struct pair_rest *rest;
	struct fault *fault;			/* the record of its failure */
	bool is_first;				/* `ring` is a struct pair_ring_first, and there is no `rest` */
	bool type_warned;			/* [engine] */
	struct transfer *transfer;		/* [engine] the receive that is being copied */
	uint64_t pending;			/* [engine] bytes of its offers that count as pending */
	uint32_t wide_index;			/* number of the place where it begins */
	_Atomic uint8_t wide_room;		/* enum view_room */
	_Atomic(struct pair_wide *) wide;	/* (last) NULL: it has none */
};

struct view_pools {
	_Atomic uint32_t count;		/* (last) 0 again when the rank is gone and they are needed no more */
	struct eager_place pools[HCCLD_EAGER_POOLS]; /* `cursor`: [engine]. What clients can write in a pool is not looked at */
};

struct view_comm {
	uint64_t id;
	struct view_far *far;		/* NULL: all its ranks are on this node */
	_Atomic uint64_t room_again_ns;	/* when room that was refused may be asked for again */
	uint32_t size;
	uint32_t weight;		/* of its flow: 1 to 8 */
	struct view_share *share;	/* whose offers they are; NULL: nobody counts */
	struct comm_region *region;
	_Atomic(struct view_context *) *contexts;	/* [size] (last); on this node; engine_rank_detach() clears it */
	struct view_pair *pairs;	/* [size * size], source * size + destination */
	_Atomic(struct view_pools *) *pools;	/* [size] (last) of each rank; NULL: nobody has any */
	_Atomic uint8_t *pool_rooms;	/* [size] enum view_room of each rank; NULL: nobody gets any */
	struct view_flow flow;		/* [engine] */
};

struct view_yard {
	struct yard *yard;
	_Atomic(struct view_context *) *contexts;	/* [HCCLD_YARD_CONTEXTS] (last) */
	struct view_share *share;	/* NULL: as for a context */
	_Atomic uint32_t word_limit;	/* words of bits below this may be set; only grows */
	struct view_yard *next;		/* [engine] */
	uint32_t next_bit;		/* [engine] where the next pass begins */
	struct view_far *fars;		/* [engine] communicators of its ranks that have others on other nodes */
	struct copy_table *copies;	/* in `yard`; NULL: it has none */
	uint64_t copies_used;		/* [engine] records of ours */
	bool copies_known;		/* [engine] what was there before is looked at */
};

/* May a send of @bytes be pending, too? Any thread. */
static inline bool view_share_allows(const struct view_share *share, uint64_t bytes)
{
	uint64_t limit = atomic_load_explicit(&share->pending_limit, memory_order_relaxed);
	uint64_t pending = limit ? atomic_load_explicit(&share->pending, memory_order_relaxed) : 0;

	return !pending || (pending <= limit && bytes <= limit - pending);
}

static inline struct view_segment *view_segment_of(struct view_session *session, uint64_t id, uint64_t offset, uint64_t bytes)
{
	struct view_segment *segment;

	if (VIEW_INDEX(id) >= HCCLD_SEGMENTS_PER_SESSION)
		return NULL;
	segment = &session->segments[VIEW_INDEX(id)];
	if (!id || atomic_load_explicit(&segment->id, memory_order_acquire) != id)
		return NULL;
	if (atomic_load_explicit(&segment->retired, memory_order_acquire))
		return NULL;
	if (offset > segment->size || bytes > segment->size - offset)
		return NULL;
	return segment;
}

/*
 * The segment @id of @session that holds [offset, offset + bytes), or NULL: memory of programs, never that of notifies, which nothing but
 * changes of notifies may change (proto/notify.h, N1, N2). Any thread that may use the view.
 */
static inline struct view_segment *view_segment_find(struct view_session *session, uint64_t id, uint64_t offset, uint64_t bytes)
{
	struct view_segment *segment = view_segment_of(session, id, offset, bytes);

	return segment && segment->kind != NOTIFY_SEGMENT_KIND ? segment : NULL;
}

/* The same for the place of a notify: of memory of that kind, and where it is backed. */
static inline struct view_segment *view_notify_find(struct view_session *session, uint64_t id, uint64_t offset)
{
	struct view_segment *segment = view_segment_of(session, id, offset, sizeof(struct notify_slot));
	uint64_t page = offset / NOTIFY_PAGE;

	if (!segment || segment->kind != NOTIFY_SEGMENT_KIND)
		return NULL;
	if (segment->pages && !(atomic_load_explicit(&segment->pages[page / 64], memory_order_acquire) >> (page % 64) & 1))
		return NULL;
	return segment;
}

static inline struct view_rank *view_rank_find(struct view_session *session, uint64_t handle)
{
	struct view_rank *rank;

	if (!handle || VIEW_INDEX(handle) >= HCCLD_RANKS_PER_SESSION)
		return NULL;
	rank = &session->ranks[VIEW_INDEX(handle)];
	return atomic_load_explicit(&rank->handle, memory_order_acquire) == handle ? rank : NULL;
}

static inline struct view_pair *view_pair_of(struct view_comm *comm, uint32_t source, uint32_t destination)
{
	return &comm->pairs[(uint64_t)source * comm->size + destination];
}

/* The words of @pair, whose ring is @ring, that are not in the same place in all rings. */
static inline _Atomic uint64_t *view_pair_failed(const struct view_pair *pair, struct pair_ring *ring)
{
	return __builtin_expect(pair->is_first, 0) ? &((struct pair_ring_first *)ring)->failed : &ring->failed;
}

static inline struct pair_offer *view_pair_slot(const struct view_pair *pair, struct pair_ring *ring, uint64_t number)
{
	if (__builtin_expect(pair->is_first, 0))
		return &((struct pair_ring_first *)ring)->slots[(number - 1) % HCCLD_PAIR_SLOTS_FIRST];
	return pair_ring_slot(ring, pair->rest, number);
}

/* Where offer @number of @pair is, whose ring is @ring (P6). */
static inline struct pair_offer *view_pair_offer(const struct view_pair *pair, struct pair_ring *ring, uint64_t number)
{
	uint64_t wide_from = atomic_load_explicit(&ring->wide_from, memory_order_relaxed);
	struct pair_wide *wide = wide_from && number >= wide_from ? atomic_load_explicit(&pair->wide, memory_order_acquire) : NULL;

	return wide ? &wide->slots[(number - 1) % HCCLD_PAIR_WIDE_SLOTS] : view_pair_slot(pair, ring, number);
}

/* A copy of offer @number as if it had a slot of its own (P8). Its number is another one if it is not there. It is to be judged. */
static inline void view_offer_read(const struct view_pair *pair, struct pair_ring *ring, uint64_t number, struct pair_offer *ret_offer)
{
	memcpy(ret_offer, view_pair_offer(pair, ring, number), sizeof(*ret_offer));
	if (ret_offer->number == number && ret_offer->where != OFFER_PACKED)
		return;
	for (uint64_t k = 0; k < HCCLD_PACK_MAX && k < number; k++)
		if (offer_unpack(view_pair_offer(pair, ring, number - k), number - k, k, ret_offer))
			return;
	ret_offer->number = 0;
}

/* Bytes of offer @number, also if it shares a slot. */
static inline uint64_t view_pair_bytes(const struct view_pair *pair, struct pair_ring *ring, uint64_t number)
{
	struct pair_offer offer;

	view_offer_read(pair, ring, number, &offer);
	return number && offer.number == number ? offer.bytes : view_pair_offer(pair, ring, number)->bytes;
}

/* How many offers may be in flight when the newest is @tail. */
static inline uint64_t view_pair_slots(const struct view_pair *pair, const struct pair_ring *ring, uint64_t tail)
{
	uint64_t wide_from = atomic_load_explicit(&ring->wide_from, memory_order_relaxed);

	if (wide_from && tail >= wide_from && atomic_load_explicit(&pair->wide, memory_order_acquire))
		return HCCLD_PAIR_WIDE_SLOTS;
	return pair->is_first ? HCCLD_PAIR_SLOTS_FIRST : HCCLD_PAIR_SLOTS;
}

/* The payload of an offer that says OFFER_EAGER, or NULL: [place, place + bytes) is not all payload of one pool of @source. Any thread. */
static inline const unsigned char *view_eager_find(const struct view_comm *comm, uint32_t source, uint64_t place, uint64_t bytes)
{
	const struct view_pools *pools = comm->pools ? atomic_load_explicit(&comm->pools[source], memory_order_acquire) : NULL;
	uint32_t count = pools ? atomic_load_explicit(&pools->count, memory_order_acquire) : 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct eager_place *pool = &pools->pools[i];
		const uint64_t size = eager_pool_size(pool->slot_count);
		uint64_t offset = place - pool->place;

		if (place < pool->place || offset >= size)
			continue;
		if (offset < eager_payload_offset(pool->slot_count, 0) || bytes > size - offset)
			return NULL;
		return (const unsigned char *)pool->pool + offset;
	}
	return NULL;
}
