/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/rig.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *zeroed(size_t size)
{
	void *memory = NULL;
	int r = posix_memalign(&memory, 4096, size);

	assert(r == 0);
	memset(memory, 0, size);
	return memory;
}

static void rig_guard_begin(void)
{
}

static const void *rig_guard_end(void)
{
	return NULL;
}

static void rig_liar(void *data, struct view_session *session, const char *what)
{
	((struct rig *)data)->liars++;
}

static void rig_type_mismatch(void *data, struct view_comm *comm, uint32_t source, uint32_t destination, uint8_t source_type,
			      uint8_t destination_type)
{
	((struct rig *)data)->type_mismatches++;
}

static bool rig_no_room(void *data, struct view_comm *comm, uint32_t source, uint32_t destination, uint32_t pools)
{
	struct rig *rig = data;

	if (rig->is_deaf)
		return false;
	rig->rooms_asked++;
	rig->room_source = source;
	rig->room_destination = destination;
	rig->room_pools = pools;
	return true;
}

static bool rig_has_ended(void *data, const struct view_session *session)
{
	return !((struct rig *)data)->lives_on;
}

static void rig_engine(struct rig *rig)
{
	struct engine_host host = { .data = rig, .guard_begin = rig_guard_begin, .guard_end = rig_guard_end, .liar = rig_liar,
				    .type_mismatch = rig_type_mismatch, .no_room = rig->comm.pools ? rig_no_room : NULL,
				    .has_ended = rig_has_ended };
	int r = engine_new(&host, 64, &rig->engine);

	assert(r == 0);
	if (rig->shared_min)
		rig_share_copies(rig, rig->shared_min, rig->shared_chunk);
}

void rig_share_copies(struct rig *rig, uint64_t min, uint64_t chunk)
{
	rig->shared_min = min;
	rig->shared_chunk = chunk;
	engine_set_direct(rig->engine, true);
	engine_share_copies(rig->engine, min, chunk, false);
}

static void rig_context(struct rig *rig, uint32_t index, struct view_session *session)
{
	struct view_context *context = &rig->contexts[index];

	context->session = session;
	context->yard = &rig->view;
	context->words = &rig->yard->contexts[index];
	context->bit_word = &rig->yard->bits[index / 64];
	context->bit = 1ull << (index % 64);
	context->index = index;
	atomic_store(&rig->view.contexts[index], context);
}

/*
 * Memory of ranks is used again: tests make thousands of rigs, and pages that are new each time take longer than all else. The same for what the
 * allocator would map, and unmap.
 */
static void *spare[2 * RIG_RANKS_MAX];
static uint32_t spare_count;

static void *memory_take(void)
{
	if (!spare_count)
		return zeroed(RIG_MEMORY);
	return memset(spare[--spare_count], 0, RIG_MEMORY);
}

static void memory_give(void *memory)
{
	if (spare_count < sizeof(spare) / sizeof(spare[0]))
		spare[spare_count++] = memory;
	else
		free(memory);
}

__attribute__((constructor)) static void keep_pages(void)
{
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

static uint64_t rig_segment(struct view_session *session, uint32_t index, void *memory, uint8_t kind, bool is_import)
{
	struct view_segment *segment = &session->segments[index];

	segment->base = memory;
	segment->size = RIG_MEMORY;
	segment->kind = kind;
	segment->is_import = is_import;
	atomic_store(&segment->id, VIEW_ID(1, index));
	return VIEW_ID(1, index);
}

static void rig_rank(struct rig *rig, uint32_t index, bool shared)
{
	struct rig_rank *rank = &rig->ranks[index];
	struct view_session *session = shared ? &rig->ranks[0].session : &rank->session;
	struct view_rank *handle;

	if (!session->segments) {
		session->id = index + 1;
		session->region = rank->region = zeroed(SESSION_STREAM_OFFSET);
		session->segments = calloc(HCCLD_SEGMENTS_PER_SESSION, sizeof(*session->segments));
		session->ranks = calloc(HCCLD_RANKS_PER_SESSION, sizeof(*session->ranks));
		rig_context(rig, index, session);
	}
	rank->context = shared ? &rig->contexts[0] : &rig->contexts[index];
	rank->memory = memory_take();
	rank->segment = rig_segment(session, index, rank->memory, 0, false);
	rank->notifies = rig_segment(session, RIG_NOTIFIES + index, rank->memory, NOTIFY_SEGMENT_KIND, false);
	rank->handle = VIEW_ID(1, index);
	handle = &session->ranks[index];
	handle->comm = &rig->comm;
	handle->context = rank->context;
	handle->rank = index;
	atomic_store(&handle->handle, rank->handle);
	for (uint32_t s = 0; s < RIG_STREAMS; s++) {
		uint32_t limit = atomic_load(&rank->context->stream_limit);

		rank->streams[s] = zeroed(SESSION_STREAM_STRIDE);
		atomic_store(&rank->context->streams[limit], rank->streams[s]);
		atomic_store(&rank->context->stream_limit, limit + 1);
	}
	atomic_store(&rig->comm.contexts[index], rank->context);
	rig->comm.region->members[index].word = MEMBER_ALIVE;
	rig->comm.region->members[index].context = rank->context->index;
	rig->comm.region->members[index].pid = 1000 + (int)index;
}

static void rig_make_pair(struct view_pair *pair)
{
	struct pair_ring *ring = zeroed(PAIR_PLACE + sizeof(struct fault));

	pair->rest = (struct pair_rest *)(ring + 1);
	pair->fault = (struct fault *)(pair->rest + 1);
	atomic_store(&pair->ring, ring);
}

struct rig *rig_new(uint32_t size, bool shared)
{
	struct rig *rig = zeroed(sizeof(*rig));

	assert(size <= RIG_RANKS_MAX);
	rig->size = size;
	rig->yard = zeroed(sizeof(struct yard_region));
	rig->copies = &((struct yard_region *)rig->yard)->copies;
	rig->view.yard = rig->yard;
	rig->view.copies = rig->copies;
	rig->view.word_limit = 1;
	rig->view.contexts = calloc(HCCLD_YARD_CONTEXTS, sizeof(*rig->view.contexts));
	rig->comm.id = 7;
	rig->comm.size = size;
	rig->comm.region = zeroed(comm_region_size(size));
	rig->comm.region->comm = rig->comm.id;
	rig->comm.contexts = calloc(size, sizeof(*rig->comm.contexts));
	rig->comm.pairs = calloc((size_t)size * size, sizeof(*rig->comm.pairs));
	for (uint32_t i = 0; i < size * size; i++)
		if (i / size != i % size)
			rig_make_pair(&rig->comm.pairs[i]);
	for (uint32_t i = 0; i < size; i++)
		rig_rank(rig, i, shared);
	rig_engine(rig);
	return rig;
}

void rig_make_first(struct rig *rig)
{
	for (uint32_t i = 0; i < rig->size * rig->size; i++) {
		struct view_pair *pair = &rig->comm.pairs[i];
		struct pair_ring_first *ring;

		if (!atomic_load(&pair->ring))
			continue;
		free(atomic_load(&pair->ring));
		ring = zeroed(sizeof(*ring));
		pair->rest = NULL;
		pair->fault = &ring->fault;
		pair->is_first = true;
		atomic_store(&pair->ring, (struct pair_ring *)ring);
	}
}

void rig_have_room(struct rig *rig)
{
	rig->comm.pools = calloc(rig->size, sizeof(*rig->comm.pools));
	rig->comm.pool_rooms = calloc(rig->size, sizeof(*rig->comm.pool_rooms));
	engine_free(rig->engine);
	rig_engine(rig);
}

static _Atomic uint8_t *rig_room(struct rig *rig, uint32_t source, uint32_t destination)
{
	return source == destination ? &rig->comm.pool_rooms[source] : &view_pair_of(&rig->comm, source, destination)->wide_room;
}

void rig_give(struct rig *rig, uint32_t source, uint32_t destination, uint32_t slots)
{
	struct view_pools *pools = atomic_load(&rig->comm.pools[source]);
	uint32_t count;

	if (source != destination) {
		struct view_pair *pair = view_pair_of(&rig->comm, source, destination);

		pair->wide_index = 1000 + source * rig->size + destination;
		atomic_store(&pair->wide, zeroed(sizeof(struct pair_wide)));
		return;
	}
	if (!pools) {
		pools = calloc(1, sizeof(*pools));
		atomic_store(&rig->comm.pools[source], pools);
	}
	count = atomic_load(&pools->count);
	assert(count < HCCLD_EAGER_POOLS);
	pools->pools[count] = (struct eager_place){ .place = (uint64_t)(source * HCCLD_EAGER_POOLS + count + 1) << 24,
						  .pool = zeroed(eager_pool_size(slots)), .slot_count = slots };
	atomic_store(&pools->count, count + 1);
}

void rig_answer(struct rig *rig, uint32_t slots)
{
	if (slots)
		rig_give(rig, rig->room_source, rig->room_destination, slots);
	atomic_store(&rig->comm.room_again_ns, UINT64_MAX);
	atomic_store(rig_room(rig, rig->room_source, rig->room_destination), slots ? ROOM_UNASKED : ROOM_REFUSED);
	engine_look_at_held(rig->engine);
	rig_run(rig);
}

static void rig_free_room(struct rig *rig)
{
	for (uint32_t i = 0; rig->comm.pools && i < rig->size; i++) {
		struct view_pools *pools = atomic_load(&rig->comm.pools[i]);

		for (uint32_t k = 0; pools && k < atomic_load(&pools->count); k++)
			free(pools->pools[k].pool);
		free(pools);
	}
	free(rig->comm.pools);
	free(rig->comm.pool_rooms);
	for (uint32_t i = 0; i < rig->size * rig->size; i++)
		free(atomic_load(&rig->comm.pairs[i].wide));
}

struct rig *rig_free(struct rig *rig)
{
	engine_free(rig->engine);
	rig_free_room(rig);
	for (uint32_t i = 0; i < rig->size * rig->size; i++)
		free(atomic_load(&rig->comm.pairs[i].ring));
	for (uint32_t i = 0; i < rig->size; i++) {
		for (uint32_t s = 0; s < RIG_STREAMS; s++)
			free(rig->ranks[i].streams[s]);
		memory_give(rig->ranks[i].memory);
		free(rig->ranks[i].region);
		free(rig->ranks[i].session.segments);
		free(rig->ranks[i].session.ranks);
	}
	free(rig->comm.pairs);
	free(rig->comm.contexts);
	free(rig->comm.region);
	free(rig->view.contexts);
	free(rig->yard);
	free(rig);
	return NULL;
}

/* What the executor keeps in a view of a context. */
static void rig_forget_context(struct view_context *context)
{
	context->dirty = context->starved = context->watches = context->polls = false;
	context->in_watchers = context->in_pollers = context->held = false;
	context->awaits = context->in_awaiting = context->declined = false;
	context->transfers = 0;
	context->cut_ring = context->late_ring = NULL;
	if (context->session)
		context->session->watchers = NULL;
}

void rig_restart(struct rig *rig)
{
	engine_free(rig->engine);
	rig->view.copies_used = 0;
	rig->view.copies_known = false;
	memset(&rig->comm.flow, 0, sizeof(rig->comm.flow));
	for (uint32_t i = 0; i < rig->size * rig->size; i++) {
		rig->comm.pairs[i].transfer = NULL;
		atomic_store(&rig->comm.pairs[i].wide_room, ROOM_UNASKED);
	}
	for (uint32_t i = 0; i < rig->size; i++) {
		rig_forget_context(&rig->contexts[i]);
		if (rig->comm.pool_rooms)
			atomic_store(&rig->comm.pool_rooms[i], ROOM_UNASKED);
	}
	rig_engine(rig);
	for (uint32_t i = 0; i < rig->size; i++)
		if (rig->contexts[i].session)
			engine_recover(rig->engine, &rig->contexts[i]);
}

void rig_forget_counters(struct rig *rig)
{
	for (uint32_t i = 0; i < rig->size * rig->size; i++) {
		struct pair_ring *ring = atomic_load(&rig->comm.pairs[i].ring);

		if (ring)
			ring->sent = ring->posted = 0;
	}
	for (uint32_t i = 0; i < rig->size; i++) {
		for (uint32_t s = 0; s < RIG_STREAMS; s++) {
			struct stream_ring *ring = rig->ranks[i].streams[s];

			const struct task *task = &ring->slots[ring->completed % HCCLD_STREAM_SLOTS].task;

			/* only the head has cursors that moved */
			if (ring->completed == ring->tail || task->kind != TASK_BATCH)
				continue;
			for (uint32_t index = 0; index < task->item_count; index++) {
				struct item *item = &ring->slots[(ring->completed + 1 + index) % HCCLD_STREAM_SLOTS].item;

				if (item->kind == ITEM_SEND || item->kind == ITEM_RECEIVE)
					item->issue = item->done = index;
			}
		}
	}
}

void rig_notify(struct rig *rig, struct view_context *context)
{
	uint64_t state;

	atomic_thread_fence(memory_order_seq_cst);
	state = atomic_load(&context->words->state);
	if (yard_kind(state) == CONTEXT_HELD) {
		atomic_fetch_or(context->bit_word, context->bit);
		return;
	}
	while (yard_kind(state) != CONTEXT_LEFT && yard_kind(state) != CONTEXT_ENGINE)
		if (atomic_compare_exchange_strong(&context->words->state, &state, yard_next(state, CONTEXT_LEFT))) {
			atomic_fetch_or(context->bit_word, context->bit);
			break;
		}
}

/* Links items into lanes as a client does. Returns the first lane. */
static uint32_t rig_link(struct item *items, uint32_t count)
{
	uint32_t first = LANE_END, last_head = LANE_END;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t before = LANE_END;

		items[i].next = items[i].next_lane = LANE_END;
		if (items[i].kind == ITEM_SOURCE)
			continue;
		for (uint32_t j = 0; j < i && (items[i].kind == ITEM_SEND || items[i].kind == ITEM_RECEIVE); j++)
			if (items[j].kind == items[i].kind && items[j].peer == items[i].peer)
				before = j;
		if (before != LANE_END) {
			items[before].next = i;
			continue;
		}
		items[i].issue = items[i].done = i;
		if (last_head == LANE_END)
			first = i;
		else
			items[last_head].next_lane = i;
		last_head = i;
	}
	return first;
}

static void rig_task(struct rig *rig, uint32_t rank, uint32_t stream, struct task task, const struct item *items, uint32_t count)
{
	struct stream_ring *ring = rig->ranks[rank].streams[stream];
	uint64_t tail = atomic_load(&ring->tail);

	assert(tail + 1 + count - atomic_load(&ring->completed) <= HCCLD_STREAM_SLOTS);
	task.slot_count = (uint16_t)(count + 1);
	task.item_count = count;
	if (task.kind == TASK_BATCH || task.kind == TASK_BARRIER)
		task.rank = rig->ranks[rank].handle;
	memcpy(&ring->slots[tail % HCCLD_STREAM_SLOTS].task, &task, sizeof(task));
	for (uint32_t i = 0; i < count; i++)
		memcpy(&ring->slots[(tail + 1 + i) % HCCLD_STREAM_SLOTS].item, &items[i], sizeof(items[i]));
	atomic_store_explicit(&ring->tail, tail + 1 + count, memory_order_release);
}

void rig_put(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_item *items, uint32_t count, uint32_t timeout_ms)
{
	struct item slots[64];
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		assert(n + 2 <= 64);
		memset(&slots[n], 0, sizeof(slots[n]));
		slots[n].kind = (uint8_t)items[i].kind;
		slots[n].peer = items[i].peer;
		slots[n].bytes = items[i].bytes;
		slots[n].data_type = items[i].type;
		slots[n].segment = rig->ranks[rank].segment;
		slots[n].offset = items[i].offset;
		n++;
		if (items[i].kind == ITEM_COPY) {
			slots[n] = slots[n - 1];
			slots[n].kind = ITEM_SOURCE;
			slots[n].offset = items[i].peer;
			n++;
		}
	}
	rig_task(rig, rank, stream, (struct task){ .kind = TASK_BATCH, .timeout_ms = timeout_ms, .first_lane = rig_link(slots, n) },
		 slots, n);
}

void rig_submit(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_item *items, uint32_t count, uint32_t timeout_ms)
{
	rig_put(rig, rank, stream, items, count, timeout_ms);
	rig_notify(rig, rig->ranks[rank].context);
}

void rig_put_barrier(struct rig *rig, uint32_t rank, uint32_t stream)
{
	rig_task(rig, rank, stream, (struct task){ .kind = TASK_BARRIER, .first_lane = LANE_END }, NULL, 0);
}

void rig_submit_barrier(struct rig *rig, uint32_t rank, uint32_t stream)
{
	rig_put_barrier(rig, rank, stream);
	rig_notify(rig, rig->ranks[rank].context);
}

void rig_put_meeting(struct rig *rig, uint32_t rank, uint32_t stream, enum task_kind kind, uint64_t offset, uint64_t number)
{
	struct item item = { .kind = ITEM_PLACE, .segment = rig->ranks[rank].segment, .offset = offset };

	atomic_init(&item.number, number);
	rig_task(rig, rank, stream, (struct task){ .kind = (uint8_t)kind, .first_lane = LANE_END }, &item, kind != TASK_HOST);
}

void rig_submit_meeting(struct rig *rig, uint32_t rank, uint32_t stream, enum task_kind kind, uint64_t offset, uint64_t number)
{
	rig_put_meeting(rig, rank, stream, kind, offset, number);
	rig_notify(rig, rig->ranks[rank].context);
}

uint64_t rig_import(struct rig *rig, uint32_t rank, uint32_t owner)
{
	return rig_segment(&rig->ranks[rank].session, RIG_IMPORTS + owner, rig->ranks[owner].memory, 0, true);
}

uint64_t rig_import_notifies(struct rig *rig, uint32_t rank, uint32_t owner)
{
	return rig_segment(&rig->ranks[rank].session, RIG_IMPORTED_NOTIFIES + owner, rig->ranks[owner].memory, NOTIFY_SEGMENT_KIND, true);
}

void rig_put_notify(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_notify *notify)
{
	struct item item = { .kind = ITEM_PLACE,
			     .data_type = notify->mode,
			     .peer = notify->clears,
			     .segment = notify->segment ? notify->segment : rig->ranks[rank].notifies,
			     .offset = notify->offset };

	atomic_init(&item.number, notify->number);
	rig_task(rig, rank, stream, (struct task){ .kind = (uint8_t)notify->kind, .timeout_ms = notify->timeout_ms, .first_lane = LANE_END },
		 &item, 1);
}

void rig_submit_notify(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_notify *notify)
{
	rig_put_notify(rig, rank, stream, notify);
	rig_notify(rig, rig->ranks[rank].context);
}

void rig_submit_reduce(struct rig *rig, uint32_t rank, uint32_t stream, const struct rig_reduce *reduce)
{
	struct item items[2] = { { .kind = ITEM_REDUCE, .data_type = reduce->type, .peer = reduce->op },
				 { .kind = ITEM_SOURCE, .data_type = reduce->type } };

	items[0].bytes = items[1].bytes = reduce->bytes;
	items[0].segment = reduce->to_segment ? reduce->to_segment : rig->ranks[rank].segment;
	items[1].segment = reduce->segment ? reduce->segment : rig->ranks[rank].segment;
	items[0].offset = reduce->to;
	items[1].offset = reduce->from;
	rig_task(rig, rank, stream, (struct task){ .kind = TASK_REDUCE, .first_lane = LANE_END }, items, 2);
	rig_notify(rig, rig->ranks[rank].context);
}

bool rig_host(struct rig *rig)
{
	for (uint32_t i = 0; i < rig->size * RIG_STREAMS; i++) {
		struct stream_ring *ring = rig->ranks[i / RIG_STREAMS].streams[i % RIG_STREAMS];
		uint64_t position = atomic_load(&ring->completed);

		if (position == atomic_load(&ring->tail) || ring->slots[position % HCCLD_STREAM_SLOTS].task.kind != TASK_HOST ||
		    atomic_load(&ring->host_done) > position)
			continue;
		rig->host_runs++;
		atomic_store(&ring->host_done, position + 1);
		rig_notify(rig, rig->ranks[i / RIG_STREAMS].context);
		return true;
	}
	return false;
}

uint32_t rig_run(struct rig *rig)
{
	uint32_t rounds = 0;
	bool worked = true;

	while (worked) {
		struct engine_slice slice;

		worked = engine_collect_chunks(rig->engine);
		assert(++rounds < HCCLD_BATCH_ITEMS_MAX / 2);
		for (uint32_t i = 0; i < rig->size; i++)
			if (rig->contexts[i].session && (atomic_load(rig->contexts[i].bit_word) & rig->contexts[i].bit))
				worked |= engine_look(rig->engine, &rig->contexts[i]);
		if (engine_slice_next(rig->engine, &slice)) {
			if (slice.source)
				memcpy(slice.destination, slice.source, slice.bytes);
			else
				memset(slice.destination, slice.value, slice.bytes);
			slice.lost = NULL;
			engine_slice_done(rig->engine, &slice);
			worked = true;
		}
	}
	return rounds;
}

bool rig_is_done(const struct rig *rig, uint32_t rank, uint32_t stream)
{
	const struct stream_ring *ring = rig->ranks[rank].streams[stream];

	return atomic_load(&ring->completed) == atomic_load(&ring->tail);
}

struct pair_ring *rig_pair(struct rig *rig, uint32_t source, uint32_t destination)
{
	return atomic_load(&view_pair_of(&rig->comm, source, destination)->ring);
}
