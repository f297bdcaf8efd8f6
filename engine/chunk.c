/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that clients help with (proto/copies.h, C1 to C8 of tests/model/README.md). A transfer is the executor's alone, as without helpers;
 * only which chunks are still to be copied is in shared memory. From there claims are taken and nothing else, and they are judged: a claim of
 * ours counts by what is here, and what nobody honest can have written is FREE again.
 *
 * Nobody is taken over from: the helpers are the two processes of the receive, and the death of either ends it anyway. A chunk that a living
 * process owns is waited for, however long it takes: who is stopped in the middle of one holds up that receive, and what is taken away
 * from under it (a stream, a rank, memory of the two processes). Nothing of others waits for it, and the end of the daemon does not.
 */
#include <stdlib.h>

#include "engine/executor.h"
#include "proto/clock.h"

#define CHUNKS_FEW 64u		/* shared copies at a time, of all tenants */
#define HELP_NS 100000u		/* after a helper was in the middle of a chunk he may take the next */
#define EXPECTED_NS 30000u	/* the first one by those who have helped with the copy before; the engine thread spins for longer */
#define WOKEN_NS 50000u		/* for a thread to wake up */
#define HELD_UP_NS 1000000000u

struct chunks {
	struct chunks *next, *previous;	/* used ones; free ones by next */
	struct transfer *transfer;
	struct view_yard *yard;
	struct copy_record *record;
	uint32_t index;			/* of the record */
	uint64_t generation, chunk_bytes;
	uint32_t count;
	uint32_t done;			/* all below are done */
	uint32_t cursor;		/* where the search for a free one begins */
	/* ours that is being cut into slices */
	uint32_t part;
	uint64_t part_at, part_end;	/* within the transfer */
	uint32_t theirs;		/* chunks that helpers have taken, as of the last look */
	uint32_t ours_done;
	bool has_free;			/* as of the last look */
	uint64_t received_ns, sent_ns;	/* when the one end or the other was last seen to help */
	bool has_woken;			/* who sleeps at the sender's end */
	uint64_t woken_ns;		/* when somebody was woken to help; 0: nobody */
	uint64_t moved_ns;		/* when anything has been done last */
	uint64_t left[HCCLD_COPY_CHUNKS]; /* bytes of ours that are not copied yet; 0: it is not ours */
	bool is_closed;
};

void engine_share_copies(struct engine *engine, uint64_t min, uint64_t chunk, bool is_narrow)
{
	engine->shared_min = min;
	engine->chunk_min = chunk;
	engine->is_narrow = is_narrow;
	while (min && !engine->chunks_used && !engine->chunks_free)
		for (uint32_t i = 0; i < CHUNKS_FEW; i++) {
			struct chunks *chunks = calloc(1, sizeof(*chunks));

			/* with fewer, or none, fewer are shared */
			if (!chunks)
				return;
			chunks->next = engine->chunks_free;
			engine->chunks_free = chunks;
		}
}

static void list_free(struct chunks *chunks)
{
	while (chunks) {
		struct chunks *next = chunks->next;

		free(chunks);
		chunks = next;
	}
}

void chunks_free_all(struct engine *engine)
{
	list_free(engine->chunks_free);
	list_free(engine->chunks_used);
}

void engine_abandon_helpers(struct engine *engine)
{
	engine->abandons = true;
}

static struct chunks *chunks_take(struct engine *engine, struct transfer *transfer, struct view_yard *yard, uint32_t index)
{
	struct chunks *chunks = engine->chunks_free;

	engine->chunks_free = chunks->next;
	*chunks = (struct chunks){ .next = engine->chunks_used, .transfer = transfer, .yard = yard, .record = &yard->copies->records[index],
				   .index = index };
	if (engine->chunks_used)
		engine->chunks_used->previous = chunks;
	engine->chunks_used = chunks;
	yard->copies_used |= UINT64_C(1) << index;
	transfer->chunks = chunks;
	return chunks;
}

void chunks_release(struct engine *engine, struct chunks *chunks)
{
	/* no claim is FREE or owned any more: whoever looks finds nothing to do */
	atomic_fetch_and_explicit(&chunks->yard->copies->active, ~(UINT64_C(1) << chunks->index), memory_order_relaxed);
	chunks->yard->copies_used &= ~(UINT64_C(1) << chunks->index);
	if (chunks->previous)
		chunks->previous->next = chunks->next;
	else
		engine->chunks_used = chunks->next;
	if (chunks->next)
		chunks->next->previous = chunks->previous;
	chunks->next = engine->chunks_free;
	engine->chunks_free = chunks;
}

struct transfer *chunks_next_used(const struct chunks *chunks, struct chunks **ret_next)
{
	*ret_next = chunks->next;
	return chunks->transfer;
}

static void store(_Atomic uint64_t *field, uint64_t value)
{
	atomic_store_explicit(field, value, memory_order_relaxed);
}

/* What is copied at a time, with its source, is more than stays in the cache. Who has begun a chunk goes on as he likes. */
static void past_cache_store(const struct engine *engine)
{
	uint64_t bytes = 0;

	for (const struct chunks *chunks = engine->chunks_used; chunks; chunks = chunks->next)
		bytes += chunks->transfer->bytes;
	for (const struct chunks *chunks = engine->chunks_used; chunks; chunks = chunks->next)
		atomic_store_explicit(&chunks->record->past_cache, bytes > engine->cache / 2, memory_order_relaxed);
}

static void fields_store(struct chunks *chunks, const struct transfer *transfer, uint32_t source_context, const struct pair_offer *offer)
{
	struct copy_record *record = chunks->record;

	/* whoever goes on with a claim of an earlier generation finds that it is not FREE (C2); with ours he has read these */
	store(&record->comm, transfer->comm->id);
	store(&record->number, transfer->number);
	atomic_store_explicit(&record->source, transfer->source, memory_order_relaxed);
	atomic_store_explicit(&record->destination, transfer->destination, memory_order_relaxed);
	atomic_store_explicit(&record->source_context, source_context, memory_order_relaxed);
	atomic_store_explicit(&record->destination_context, transfer->context->index, memory_order_relaxed);
	store(&record->bytes, transfer->bytes);
	store(&record->chunk_bytes, chunks->chunk_bytes);
	store(&record->source_segment, offer->segment);
	store(&record->source_offset, offer->offset);
	store(&record->destination_segment, atomic_load_explicit(&transfer->destination_segment->id, memory_order_relaxed));
	store(&record->destination_offset, (uint64_t)(transfer->to - transfer->destination_segment->base));
	CRASH_POINT(47);
	store(&record->generation, chunks->generation);
}

/* Release: the fields are before them. */
static void claims_store(struct chunks *chunks)
{
	for (uint32_t i = 0; i < chunks->count; i++)
		atomic_store_explicit(&chunks->record->claims[i], copy_claim_word(chunks->generation, CLAIM_FREE), memory_order_release);
}

static bool sleepers_wake(struct view_context *context)
{
	if (!context || !atomic_load_explicit(&context->words->sleepers, memory_order_relaxed))
		return false;
	context_wake(context);
	return true;
}

/* The receiver's process waits for it: who sleeps at the other end may as well help. If it does something else nobody is to be in its way. */
static void sender_wake(struct chunks *chunks, uint64_t now_ns)
{
	const struct transfer *transfer = chunks->transfer;

	chunks->has_woken = true;
	if (sleepers_wake(atomic_load_explicit(&transfer->comm->contexts[transfer->source], memory_order_acquire)))
		chunks->woken_ns = now_ns;
}

void chunks_open(struct engine *engine, struct transfer *transfer, const struct pair_offer *offer)
{
	struct view_yard *yard = transfer->context->yard;
	const struct view_context *source = atomic_load_explicit(&transfer->comm->contexts[transfer->source], memory_order_acquire);
	const uint32_t index = yard ? (uint32_t)__builtin_ctzll(~yard->copies_used) : 0;
	const uint64_t now_ns = clock_now_ns();
	struct chunks *chunks;
	uint64_t chunk_bytes;

	if (!engine->direct || !engine->shared_min || transfer->bytes <= engine->shared_min || !context_is_shared(engine, transfer->context) ||
	    !yard || !yard->copies || index >= HCCLD_COPIES || !engine->chunks_free || !source || source->yard != yard)
		return;
	chunk_bytes = (transfer->bytes + HCCLD_COPY_CHUNKS - 1) / HCCLD_COPY_CHUNKS;
	if (chunk_bytes < engine->chunk_min)
		chunk_bytes = engine->chunk_min;
	/* whole pages for each */
	chunk_bytes = (chunk_bytes + 4095) & ~UINT64_C(4095);
	chunks = chunks_take(engine, transfer, yard, index);
	chunks->generation = atomic_load_explicit(&chunks->record->generation, memory_order_relaxed) + 1;
	chunks->generation = copy_claim_generation(copy_claim_word(chunks->generation, CLAIM_NONE));
	chunks->generation += chunks->generation == 0;
	chunks->chunk_bytes = chunk_bytes;
	chunks->count = (uint32_t)((transfer->bytes + chunk_bytes - 1) / chunk_bytes);
	chunks->moved_ns = now_ns;
	chunks->has_free = true;
	/* those who have helped lately are likely to again */
	if (transfer->context->helped)
		chunks->received_ns = chunks->sent_ns = now_ns - HELP_NS + EXPECTED_NS;
	past_cache_store(engine);
	if (!KEEPS(CHUNK_FIELDS))
		claims_store(chunks);
	CRASH_POINT(48);
	fields_store(chunks, transfer, source->index, offer);
	claims_store(chunks);
	CRASH_POINT(49);
	atomic_fetch_or_explicit(&yard->copies->active, UINT64_C(1) << index, memory_order_release);
	CRASH_POINT(50);
	if (sleepers_wake(transfer->context)) {
		chunks->woken_ns = now_ns;
		sender_wake(chunks, now_ns);
	}
}

/* What becomes of a chunk, as far as it is not ours. */
static enum copy_claim chunk_judge(struct chunks *chunks, uint32_t chunk)
{
	_Atomic uint64_t *word = &chunks->record->claims[chunk];
	uint64_t claim = atomic_load_explicit(word, memory_order_acquire);

	if (copy_claim_generation(claim) == chunks->generation) {
		switch (copy_claim_kind(claim)) {
		case CLAIM_FREE:
		case CLAIM_DONE:
		case CLAIM_RECEIVER:
		case CLAIM_SENDER:
			return copy_claim_kind(claim);
		default:
			break;
		}
	}
	if (chunks->is_closed)
		return CLAIM_CLOSED;
	/* nonsense: it is to be copied */
	(void)atomic_compare_exchange_strong_explicit(word, &claim, copy_claim_word(chunks->generation, CLAIM_FREE), memory_order_relaxed,
						      memory_order_relaxed);
	return CLAIM_FREE;
}

static uint64_t chunk_size(const struct chunks *chunks, uint32_t chunk)
{
	return copy_chunk_size(chunks->transfer->bytes, chunks->chunk_bytes, chunk);
}

/* C2. False: somebody else has it. */
static bool chunk_claim(struct chunks *chunks, uint32_t chunk)
{
	uint64_t claim = copy_claim_word(chunks->generation, CLAIM_FREE);

	if (chunks->left[chunk] || chunk_judge(chunks, chunk) != CLAIM_FREE ||
	    !atomic_compare_exchange_strong_explicit(&chunks->record->claims[chunk], &claim, copy_claim_word(chunks->generation, CLAIM_ENGINE),
						     memory_order_acquire, memory_order_relaxed))
		return false;
	CRASH_POINT(51);
	chunks->left[chunk] = chunk_size(chunks, chunk);
	return true;
}

bool chunks_next(struct transfer *transfer, uint64_t most, uint64_t *ret_at, uint64_t *ret_bytes, uint32_t *ret_chunk)
{
	struct chunks *chunks = transfer->chunks;

	for (; chunks->part_at == chunks->part_end; chunks->cursor++) {
		if (chunks->is_closed || chunks->cursor >= chunks->count)
			return false;
		if (!chunk_claim(chunks, chunks->cursor))
			continue;
		chunks->part = chunks->cursor;
		chunks->part_at = chunks->cursor * chunks->chunk_bytes;
		chunks->part_end = chunks->part_at + chunks->left[chunks->part];
	}
	*ret_at = chunks->part_at;
	*ret_bytes = chunks->part_end - chunks->part_at < most ? chunks->part_end - chunks->part_at : most;
	*ret_chunk = chunks->part;
	chunks->part_at += *ret_bytes;
	return true;
}

void chunks_done(struct chunks *chunks, uint32_t chunk, uint64_t bytes)
{
	chunks->left[chunk] -= bytes;
	if (chunks->left[chunk])
		return;
	CRASH_POINT(52);
	chunks->ours_done++;
	/* C3. Release, though nobody but us looks: the next executor takes it for what it is */
	atomic_store_explicit(&chunks->record->claims[chunk],
			      copy_claim_word(chunks->generation, chunks->is_closed ? CLAIM_CLOSED : CLAIM_DONE), memory_order_release);
	CRASH_POINT(53);
}

void chunks_close(struct chunks *chunks)
{
	const uint64_t unsliced = chunks->part_end - chunks->part_at;

	if (chunks->is_closed)
		return;
	chunks->is_closed = true;
	for (uint32_t i = 0; i < chunks->count && KEEPS(CHUNKS_CLOSE); i++) {
		uint64_t claim = copy_claim_word(chunks->generation, CLAIM_FREE);

		(void)atomic_compare_exchange_strong_explicit(&chunks->record->claims[i], &claim,
							      copy_claim_word(chunks->generation, CLAIM_CLOSED), memory_order_relaxed,
							      memory_order_relaxed);
		CRASH_POINT(54);
	}
	chunks->part_at = chunks->part_end;
	if (unsliced)
		chunks_done(chunks, chunks->part, unsliced);
}

static bool session_has_ended(const struct engine *engine, const struct view_session *session)
{
	return !session || !engine->host.has_ended || engine->host.has_ended(engine->host.data, session);
}

/* C4, as far as it is needed: the process of the one end or the other is proven gone. */
static bool owner_is_dead(const struct engine *engine, const struct transfer *transfer, enum copy_claim owner)
{
	const bool is_receiver = owner == CLAIM_RECEIVER;
	const struct comm_member *member = &transfer->comm->region->members[is_receiver ? transfer->destination : transfer->source];

	if (!KEEPS(CHUNKS_ONLY_DEAD))
		return true;
	return atomic_load_explicit(&member->word, memory_order_acquire) == MEMBER_DEAD &&
	       session_has_ended(engine, is_receiver ? transfer->context->session : transfer->source_session);
}

/* What there is of chunks, in one look. */
struct tally {
	uint32_t owned, theirs, done;
	bool receives, sends;
	uint64_t free_bytes;
};

static void chunks_count(struct engine *engine, struct chunks *chunks, struct tally *ret_tally)
{
	*ret_tally = (struct tally){ .theirs = 0 };
	while (chunks->done < chunks->count && !chunks->left[chunks->done] && chunk_judge(chunks, chunks->done) == CLAIM_DONE)
		chunks->done++;
	ret_tally->done = chunks->done;
	for (uint32_t i = chunks->done; i < chunks->count; i++) {
		enum copy_claim claim = chunks->left[i] ? CLAIM_ENGINE : chunk_judge(chunks, i);

		ret_tally->done += claim == CLAIM_DONE;
		ret_tally->owned += claim == CLAIM_ENGINE;
		if (claim == CLAIM_FREE) {
			ret_tally->free_bytes += chunk_size(chunks, i);
			if (i < chunks->cursor)
				chunks->cursor = i;
		} else if ((claim == CLAIM_RECEIVER || claim == CLAIM_SENDER) && !engine->abandons &&
			   !(chunks->is_closed && owner_is_dead(engine, chunks->transfer, claim))) {
			ret_tally->owned++;
			ret_tally->theirs++;
			ret_tally->receives |= claim == CLAIM_RECEIVER;
			ret_tally->sends |= claim == CLAIM_SENDER;
		}
	}
	ret_tally->theirs += ret_tally->done > chunks->ours_done ? ret_tally->done - chunks->ours_done : 0;
}

bool chunks_are_over(struct engine *engine, struct transfer *transfer)
{
	struct chunks *chunks = transfer->chunks;
	const uint64_t now_ns = clock_now_ns();
	struct tally tally;
	bool is_theirs;

	chunks_count(engine, chunks, &tally);
	if (chunks->is_closed)
		return tally.owned == 0 || !KEEPS(CHUNKS_WAIT);
	if (tally.theirs > chunks->theirs || transfer->out)
		chunks->moved_ns = now_ns;
	if (tally.receives && !chunks->has_woken)
		sender_wake(chunks, now_ns);
	chunks->theirs = tally.theirs;
	chunks->received_ns = tally.receives ? now_ns : chunks->received_ns;
	chunks->sent_ns = tally.sends ? now_ns : chunks->sent_ns;
	chunks->has_free = tally.free_bytes != 0;
	transfer->context->helped = now_ns - chunks->received_ns < HELP_NS && now_ns - chunks->sent_ns < HELP_NS;
	/* those who help have the cores, as long as both do, and come there first; but a chunk that we have begun we copy */
	is_theirs = engine->is_narrow && (transfer->context->helped || now_ns - chunks->woken_ns < WOKEN_NS);
	transfer_offer(engine, transfer, transfer->bytes - tally.free_bytes - (chunks->part_end - chunks->part_at),
		       chunks->part_at != chunks->part_end || !is_theirs);
	return tally.done + (KEEPS(CHUNKS_OWNED) ? 0 : tally.owned) == chunks->count;
}

bool chunks_are_held_up(const struct chunks *chunks, uint64_t now_ns)
{
	return !chunks->transfer->out && !chunks->has_free && now_ns - chunks->moved_ns > HELD_UP_NS;
}

bool engine_has_free_chunks(const struct engine *engine)
{
	for (const struct chunks *chunks = engine->chunks_used; chunks; chunks = chunks->next)
		if (chunks->has_free && !chunks->is_closed && !chunks->transfer->queued)
			return true;
	return false;
}

/* ---- after a restart ---- */

/* Whose receive is the record's? As it says, and as far as there is such a one. */
static bool record_find(const struct copy_record *record, struct view_yard *yard, struct transfer *ret_what)
{
	const uint32_t place = atomic_load_explicit(&record->destination_context, memory_order_relaxed);
	const uint32_t source = atomic_load_explicit(&record->source, memory_order_relaxed);
	const uint32_t destination = atomic_load_explicit(&record->destination, memory_order_relaxed);
	struct view_context *context = place < HCCLD_YARD_CONTEXTS ? atomic_load_explicit(&yard->contexts[place], memory_order_acquire) : NULL;

	for (uint32_t i = 0; context && i < HCCLD_RANKS_PER_SESSION; i++) {
		struct view_rank *rank = &context->session->ranks[i];
		struct view_context *from;

		if (!atomic_load_explicit(&rank->handle, memory_order_acquire) || rank->context != context || rank->rank != destination ||
		    rank->comm->id != atomic_load_explicit(&record->comm, memory_order_relaxed) || source >= rank->comm->size)
			continue;
		from = atomic_load_explicit(&rank->comm->contexts[source], memory_order_acquire);
		ret_what->context = context;
		ret_what->comm = rank->comm;
		ret_what->pair = view_pair_of(rank->comm, source, destination);
		ret_what->source = source;
		ret_what->destination = destination;
		ret_what->number = atomic_load_explicit(&record->number, memory_order_relaxed);
		ret_what->bytes = atomic_load_explicit(&record->bytes, memory_order_relaxed);
		ret_what->source_session = from ? from->session : NULL;
		return true;
	}
	return false;
}

static void remains_find_memory(const struct copy_record *record, struct transfer *transfer)
{
	uint64_t to = atomic_load_explicit(&record->destination_offset, memory_order_relaxed);
	uint64_t from = atomic_load_explicit(&record->source_offset, memory_order_relaxed);
	struct view_segment *segment =
		view_segment_find(transfer->context->session, atomic_load_explicit(&record->destination_segment, memory_order_relaxed), to, transfer->bytes);

	transfer->destination_segment = segment;
	transfer->to = segment ? segment->base + to : NULL;
	segment = transfer->source_session ? view_segment_find(transfer->source_session,
							       atomic_load_explicit(&record->source_segment, memory_order_relaxed), from, transfer->bytes)
					   : NULL;
	transfer->source_segment = segment;
	transfer->from = segment ? segment->base + from : NULL;
	/* a number that nobody has checked would reach into memory of others */
	if (!transfer->to && !transfer->from)
		transfer->bytes = 0;
}

/* A helper of the old executor's is in the middle of a chunk: the receive, and what is taken away of it, waits as for slices that are out. */
static void record_remain(struct engine *engine, struct view_yard *yard, uint32_t index, const struct transfer *what)
{
	struct chunks *room = engine->chunks_free ? NULL : calloc(1, sizeof(*room));
	struct transfer *transfer;
	struct chunks *chunks;

	if (room)
		engine->chunks_free = room;
	transfer = KEEPS(CHUNKS_REMAIN) && engine->chunks_free && !what->pair->transfer ? transfer_remain(engine, what->context) : NULL;
	if (!transfer)
		return;
	transfer->comm = what->comm;
	transfer->pair = what->pair;
	transfer->source = what->source;
	transfer->destination = what->destination;
	transfer->number = what->number;
	transfer->bytes = what->bytes;
	transfer->source_session = what->source_session;
	remains_find_memory(&yard->copies->records[index], transfer);
	transfer->pair->transfer = transfer;
	chunks = chunks_take(engine, transfer, yard, index);
	chunks->generation = atomic_load_explicit(&chunks->record->generation, memory_order_relaxed);
	chunks->count = HCCLD_COPY_CHUNKS;
	chunks->is_closed = true;
}

static bool record_close(struct copy_record *record)
{
	const uint64_t generation = atomic_load_explicit(&record->generation, memory_order_relaxed);
	bool is_owned = false;

	for (uint32_t i = 0; i < HCCLD_COPY_CHUNKS; i++) {
		uint64_t claim = copy_claim_word(generation, CLAIM_FREE);

		if (!atomic_compare_exchange_strong_explicit(&record->claims[i], &claim, copy_claim_word(generation, CLAIM_CLOSED),
							     memory_order_acq_rel, memory_order_acquire))
			is_owned |= claim == copy_claim_word(generation, CLAIM_RECEIVER) || claim == copy_claim_word(generation, CLAIM_SENDER);
		CRASH_POINT(55);
	}
	return is_owned;
}

void chunks_recover(struct engine *engine, struct view_yard *yard)
{
	uint64_t active;

	if (yard->copies_known || !yard->copies)
		return;
	yard->copies_known = true;
	active = atomic_load_explicit(&yard->copies->active, memory_order_acquire);
	for (uint32_t index = 0; index < HCCLD_COPIES; index++) {
		struct transfer what = { .context = NULL };

		/* also one that was being opened */
		if (record_close(&yard->copies->records[index]) && record_find(&yard->copies->records[index], yard, &what))
			record_remain(engine, yard, index, &what);
	}
	CRASH_POINT(56);
	atomic_fetch_and_explicit(&yard->copies->active, ~active | yard->copies_used, memory_order_relaxed);
}
