/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of large copies that the engine has opened (proto/copies.h), taken by a thread of the receiver's or of the sender's process while it
 * waits: C2 and C3 of tests/model/README.md. The thread need not have the context: that is the engine's (HELD) where the copy is a receive.
 *
 * A record is a word of others. What it names is judged against what this process has mapped: its own memory, and that of the rank at the other
 * end. Between the claim and DONE that memory stays: whoever takes it away has closed the record, and waits for the claim (C6), and tables
 * of this process are not changed while a thread is among `scanners`.
 */
#include "engine/copy.h"
#include "engine/direct_lane.h"

/* One end of a record, as this process sees it. */
struct end {
	struct direct_rank *rank;
	uint32_t peer;
	enum copy_claim me;
};

static struct direct_rank *rank_of(const struct direct_process *process, uint64_t comm, uint32_t number)
{
	const uint32_t limit = atomic_load_explicit(&process->rank_limit, memory_order_acquire);

	for (uint32_t i = 0; i < limit; i++) {
		struct direct_rank *rank = atomic_load_explicit(&process->places[i].rank, memory_order_acquire);

		if (rank && rank->rank == number && rank->region->comm == comm)
			return rank;
	}
	return NULL;
}

static uint32_t load32(const _Atomic uint32_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

static uint64_t load64(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

/* Has this context to do with it? */
static bool end_find(const struct direct_context *context, const struct copy_record *record, struct end *ret_end)
{
	const bool receives = load32(&record->destination_context) == context->index;
	const uint32_t source = load32(&record->source), destination = load32(&record->destination);

	if (!receives && load32(&record->source_context) != context->index)
		return false;
	ret_end->rank = rank_of(context->process, load64(&record->comm), receives ? destination : source);
	ret_end->peer = receives ? source : destination;
	ret_end->me = receives ? CLAIM_RECEIVER : CLAIM_SENDER;
	/* the daemon's word: what is mapped for ranks of other contexts may be changed while we look */
	return ret_end->rank && ret_end->peer < ret_end->rank->size &&
	       ret_end->rank->region->members[ret_end->rank->rank].context == context->index;
}

/* Where the bytes of the record are in this process. False: not all of it is mapped; what is missing is wished for. */
static bool places_find(struct direct_context *context, const struct copy_record *record, const struct end *end, uint64_t bytes,
			unsigned char **ret_to, const unsigned char **ret_from, struct direct_wish *wish)
{
	const bool receives = end->me == CLAIM_RECEIVER;
	const uint64_t own_id = load64(receives ? &record->destination_segment : &record->source_segment);
	const uint64_t own_offset = load64(receives ? &record->destination_offset : &record->source_offset);
	const uint64_t peer_id = load64(receives ? &record->source_segment : &record->destination_segment);
	const uint64_t peer_offset = load64(receives ? &record->source_offset : &record->destination_offset);
	struct work work = { .context = context };
	unsigned char *own = own_memory(&work, own_id, own_offset, bytes), *theirs = NULL;
	const struct direct_segment *segment;

	if (!own)
		return false;
	segment = direct_peer_segment(end->rank, end->peer, peer_id);
	if (!segment || (!receives && !segment->is_writable && !segment->is_refused)) {
		*wish = (struct direct_wish){ receives ? NEED_SEGMENT : NEED_WRITABLE, end->peer, end->rank->handle, peer_id };
		return false;
	}
	if (segment->base && peer_offset <= segment->size && bytes <= segment->size - peer_offset && (receives || segment->is_writable))
		theirs = segment->base + peer_offset;
	*ret_to = receives ? own : theirs;
	*ret_from = receives ? theirs : own;
	return theirs != NULL;
}

/* C3, and whether this was the last one: then the engine is told to end it. */
static void chunk_finish(struct direct_context *context, struct copy_record *record, uint32_t chunk, uint64_t claim, enum copy_claim me)
{
	const uint64_t generation = copy_claim_generation(claim), chunk_bytes = load64(&record->chunk_bytes), bytes = load64(&record->bytes);
	const uint32_t place = load32(&record->destination_context);
	uint64_t mine = copy_claim_word(generation, me);

	CRASH_POINT(139);
	/* by comparison: after nonsense in this word the chunk is another's. Release: the bytes are before it */
	(void)atomic_compare_exchange_strong_explicit(&record->claims[chunk], &mine, copy_claim_word(generation, CLAIM_DONE), memory_order_release,
						      memory_order_relaxed);
	CRASH_POINT(140);
	/* of two that end at once one sees both */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; copy_chunk_size(bytes, chunk_bytes, i); i++) {
		uint64_t word = load64(&record->claims[i]);

		if (copy_claim_generation(word) == generation && copy_claim_kind(word) != CLAIM_DONE && copy_claim_kind(word) != CLAIM_CLOSED)
			return;
	}
	if (place < HCCLD_YARD_CONTEXTS && KEEPS(CHUNK_TELLS))
		direct_tell_engine(context, place);
}

/* What a claim of a chunk allows. */
struct piece {
	unsigned char *to;
	const unsigned char *from;
	uint64_t bytes;
	bool is_past_cache;
	enum copy_claim me;
};

/* Behind the load of the word: what the fields say. */
static bool piece_find(struct direct_context *context, const struct copy_record *record, uint32_t chunk, struct piece *ret_piece,
		       struct direct_wish *wish)
{
	const uint64_t chunk_bytes = load64(&record->chunk_bytes), bytes = load64(&record->bytes);
	const uint64_t size = copy_chunk_size(bytes, chunk_bytes, chunk);
	struct end end;

	if (!size || !end_find(context, record, &end) || !places_find(context, record, &end, bytes, &ret_piece->to, &ret_piece->from, wish))
		return false;
	ret_piece->to += chunk_bytes * chunk;
	ret_piece->from += chunk_bytes * chunk;
	ret_piece->bytes = size;
	ret_piece->is_past_cache = load32(&record->past_cache) != 0;
	ret_piece->me = end.me;
	return true;
}

static bool claim(_Atomic uint64_t *word, uint64_t free_word, enum copy_claim me)
{
	const uint64_t mine = copy_claim_word(copy_claim_generation(free_word), me);

	if (!KEEPS(CHUNK_CLAIM)) {
		atomic_store(word, mine);
		return true;
	}
	/* it is still what was loaded before the fields, so they are of its generation */
	return atomic_compare_exchange_strong_explicit(word, &free_word, mine, memory_order_acq_rel, memory_order_relaxed);
}

static uint32_t chunk_count(const struct copy_record *record)
{
	const uint64_t chunk_bytes = load64(&record->chunk_bytes), bytes = load64(&record->bytes);

	if (!chunk_bytes || !bytes)
		return 0;
	return (bytes - 1) / chunk_bytes < HCCLD_COPY_CHUNKS ? (uint32_t)((bytes - 1) / chunk_bytes) + 1 : HCCLD_COPY_CHUNKS;
}

/* C2. True: a chunk is copied. */
static bool record_help(struct direct_context *context, struct copy_record *record, struct direct_wish *wish)
{
	const bool from_above = load32(&record->destination_context) != context->index;
	const uint32_t count = chunk_count(record);

	for (uint32_t n = 0; n < count; n++) {
		/* the two ends meet in the middle */
		const uint32_t chunk = from_above ? count - 1 - n : n;
		const uint64_t word = atomic_load_explicit(&record->claims[chunk], memory_order_acquire);
		struct piece piece;

		if (copy_claim_kind(word) != CLAIM_FREE)
			continue;
		CRASH_POINT(135);
		if (!piece_find(context, record, chunk, &piece, wish))
			return false;
		CRASH_POINT(136);
		if (!claim(&record->claims[chunk], word, piece.me))
			continue;
		CRASH_POINT(137);
		if (piece.is_past_cache)
			copy_non_temporal(piece.to, piece.from, piece.bytes);
		else
			memcpy(piece.to, piece.from, piece.bytes);
		CRASH_POINT(138);
		chunk_finish(context, record, chunk, word, piece.me);
		return true;
	}
	return false;
}

bool direct_help(struct direct_context *context, struct direct_wish *wish)
{
	bool has_helped = false;
	uint64_t active = context->copies ? atomic_load_explicit(&context->copies->active, memory_order_acquire) : 0;

	if (__builtin_expect(!active, 1) || atomic_load_explicit(&context->beacon->local_path, memory_order_relaxed) != PATH_DIRECT)
		return false;
	/* with the intruder's count: he sees us, or we see him. Both are seq_cst */
	atomic_fetch_add(&context->scanners, 1);
	for (; active && !has_helped && (!atomic_load(&context->intruders) || !KEEPS(HELP_INTRUDED)); active &= active - 1) {
		struct copy_record *record = &context->copies->records[__builtin_ctzll(active) % HCCLD_COPIES];
		struct end end;

		if (end_find(context, record, &end))
			has_helped = record_help(context, record, wish);
	}
	atomic_fetch_sub(&context->scanners, 1);
	return has_helped;
}
