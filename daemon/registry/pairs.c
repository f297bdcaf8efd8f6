/* SPDX-License-Identifier: Apache-2.0 */
/* Extents and pair rings. */
#include "registry/pairs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/memfd.h"
#include "proto/cleanup.h"
#include "proto/region.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/tenant.h"

#define EXTENT_PAIRS_MIN 69u /* 64 rings, and the records behind them */
#define EXTENT_PAIRS_MAX 4096u

struct extent *extent_free(struct extent *extent)
{
	if (!extent)
		return NULL;
	list_remove(&extent->link);
	memfd_unmap(extent->base, extent->bytes);
	close_fdp(&extent->fd);
	free(extent->given);
	free(extent);
	return NULL;
}

static void extent_freep(struct extent **extent)
{
	extent_free(*extent);
}

static struct extent *extent_make(const struct extent_use *use, uint64_t serial, uint32_t first, uint32_t count, uint64_t bytes)
{
	struct extent *extent = calloc(1, sizeof(*extent));

	if (!extent)
		return NULL;
	list_init(&extent->link);
	extent->serial = serial;
	extent->fd = -1;
	extent->use = *use;
	extent->first = first;
	extent->count = count;
	extent->bytes = bytes;
	return extent;
}

static bool is_growth(const struct extent_use *use)
{
	return use->kind == EXTENT_POOL || use->kind == EXTENT_WIDE;
}

static enum record_kind record_kind_of(const struct extent_use *use)
{
	return use->kind == EXTENT_REGION || use->kind == EXTENT_PAIRS_FIRST ? RECORD_EXTENT : RECORD_GROWTH;
}

/* Places for rings in it. */
static uint32_t extent_rings(const struct extent *extent)
{
	switch (extent->use.kind) {
	case EXTENT_PAIRS: return pair_extent_rings(extent->count);
	case EXTENT_PAIRS_FIRST: return extent->count;
	default: return 0;
	}
}

static int extent_record(struct comm *comm, struct extent *extent)
{
	struct record_extent record = { .comm = comm->id,
					.serial = extent->serial,
					.bytes = extent->bytes,
					.first = extent->first,
					.count = extent->count };
	struct record_growth growth = { .comm = comm->id,
					.serial = extent->serial,
					.bytes = extent->bytes,
					.first = extent->first,
					.count = extent->count,
					.kind = extent->use.kind,
					.source = extent->use.source,
					.peer = extent->use.peer,
					.slots = extent->use.slots };

	if (record_kind_of(&extent->use) == RECORD_GROWTH)
		return records_add(comm->registry->records, RECORD_GROWTH, &growth, &extent->record);
	return records_add(comm->registry->records, RECORD_EXTENT, &record, &extent->record);
}

/* Descriptor first, then the record that needs it. */
static int extent_store(struct comm *comm, struct extent *extent)
{
	struct registry *registry = comm->registry;
	int r;

	r = store_add(registry->store, STORE_EXTENT, extent->serial, extent->fd);
	if (r < 0)
		return r;
	r = extent_record(comm, extent);
	if (r < 0)
		store_remove(registry->store, STORE_EXTENT, extent->serial);
	return r;
}

static void extent_refund(struct comm *comm, uint64_t bytes)
{
	account_refund(&comm->registry->host, &comm->registry->comm_holder, bytes);
	if (!comm->quota)
		return;
	quota_refund(comm->quota, QUOTA_MEMORY, bytes);
	quota_refund(comm->quota, QUOTA_DESCRIPTORS, 1);
}

/* -EUSERS, -ENOBUFS */
static int extent_charge(struct comm *comm, uint64_t bytes)
{
	struct registry *registry = comm->registry;

	if (comm->quota && quota_charge(comm->quota, QUOTA_MEMORY, bytes) < 0)
		return -EUSERS;
	if (comm->quota && quota_charge(comm->quota, QUOTA_DESCRIPTORS, 1) < 0) {
		quota_refund(comm->quota, QUOTA_MEMORY, bytes);
		return -EUSERS;
	}
	if (account_charge(&registry->host, &registry->comm_holder, bytes) == 0)
		return 0;
	if (comm->quota) {
		quota_refund(comm->quota, QUOTA_MEMORY, bytes);
		quota_refund(comm->quota, QUOTA_DESCRIPTORS, 1);
	}
	return -ENOBUFS;
}

/* In the communicator's books, which its tenant and the host pay already. */
static void extent_enter(struct comm *comm, struct extent *extent)
{
	comm->memory += extent->bytes;
	comm->memory_of[extent->use.kind] += extent->bytes;
	if (extent->first + extent->count > comm->pair_room)
		comm->pair_room = extent->first + extent->count;
	if (extent->use.kind == EXTENT_PAIRS && (!comm->newest_pairs || extent->first > comm->newest_pairs->first))
		comm->newest_pairs = extent;
	list_append(&comm->extents, &extent->link);
}

static int extent_back(struct comm *comm, struct extent *extent)
{
	static const char *const names[] = { "hccld-comm", "hccld-pairs", "hccld-pool", "hccld-wide" };
	/* of the others most pages are never touched here, as long as clients drive */
	const bool is_populated = extent->use.kind == EXTENT_REGION;
	int r;

	r = memfd_new(names[extent->use.kind], extent->bytes, true, &extent->fd);
	if (r < 0)
		return r;
	r = memfd_map(extent->fd, extent->bytes, is_populated, &extent->base);
	return r < 0 ? r : extent_store(comm, extent);
}

int extent_new(struct comm *comm, const struct extent_use *use, uint64_t bytes, struct extent **ret_extent)
{
	struct registry *registry = comm->registry;
	CLEANUP(extent_freep) struct extent *extent = NULL;
	uint64_t count = use->kind == EXTENT_REGION ? 0 : (bytes + PAIR_PLACE - 1) / PAIR_PLACE;
	int r;

	if (count > UINT32_MAX - 1 - comm->pair_room)
		return -EDQUOT;
	if (count)
		bytes = count * PAIR_PLACE;
	bytes = (bytes + 4095) & ~4095ull;
	extent = extent_make(use, records_next_id(registry->records), comm->pair_room, (uint32_t)count, bytes);
	if (!extent)
		return -ENOMEM;
	r = extent_charge(comm, bytes);
	if (r < 0)
		return r;
	r = extent_back(comm, extent);
	if (r < 0) {
		extent_refund(comm, bytes);
		return r;
	}
	extent_enter(comm, extent);
	*ret_extent = take_ptr(&extent);
	return 0;
}

void comm_set_tenant(struct comm *comm, const struct session *session)
{
	if (comm->quota)
		return;
	comm->tenant = session->tenant->id;
	comm->quota = quota_ref(session->quota);
	comm->view.share = &comm->quota->share;
	quota_force(comm->quota, QUOTA_COMMS, 1);
	quota_force(comm->quota, QUOTA_MEMORY, comm->memory);
	list_for_each(struct extent, extent, &comm->extents, link)
		quota_force(comm->quota, QUOTA_DESCRIPTORS, 1);
}

/* -EPROTO: there is no such record, or it is not sane. */
static int extent_read(struct comm *comm, enum record_kind kind, uint32_t index, struct extent **ret_extent)
{
	struct records *records = comm->registry->records;
	struct extent_use use = { 0 };
	uint64_t ring_bytes;

	if (kind == RECORD_EXTENT) {
		const struct record_extent *record = records_get(records, kind, index);

		use.kind = record->count ? EXTENT_PAIRS_FIRST : EXTENT_REGION;
		*ret_extent = extent_make(&use, record->serial, record->first, record->count, record->bytes);
	} else {
		const struct record_growth *record = records_get(records, kind, index);

		if (record->kind != EXTENT_POOL && record->kind != EXTENT_WIDE &&
		    (record->kind != EXTENT_PAIRS || record->slots != HCCLD_PAIR_SLOTS))
			return -EPROTO;
		use = (struct extent_use){ record->kind, record->source, record->peer, record->slots };
		*ret_extent = extent_make(&use, record->serial, record->first, record->count, record->bytes);
	}
	if (!*ret_extent)
		return -ENOMEM;
	(*ret_extent)->record = index;
	ring_bytes = use.kind == EXTENT_PAIRS_FIRST ? sizeof(struct pair_ring_first) : PAIR_PLACE;
	return (*ret_extent)->bytes < (*ret_extent)->count * ring_bytes ? -EPROTO : 0;
}

/* From its record of @kind. Takes @fd. */
static int extent_restore(struct comm *comm, enum record_kind kind, uint32_t index, int fd)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	CLEANUP(extent_freep) struct extent *extent = NULL;
	struct registry *registry = comm->registry;
	struct stat st;
	int r;

	r = extent_read(comm, kind, index, &extent);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != extent->bytes)
		return -EPROTO;
	extent->fd = take_fd(&owned_fd);
	r = memfd_map(extent->fd, extent->bytes, true, &extent->base);
	if (r < 0)
		return r;
	account_force(&registry->host, &registry->comm_holder, extent->bytes);
	extent_enter(comm, take_ptr(&extent));
	return 0;
}

static int extent_take(struct comm *comm, enum record_kind kind, uint32_t index, uint64_t serial)
{
	int fd = store_take(comm->registry->store, STORE_EXTENT, serial);

	return fd < 0 ? -EPROTO : extent_restore(comm, kind, index, fd);
}

int extents_restore(struct comm *comm)
{
	struct records *records = comm->registry->records;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < records_limit(records, RECORD_EXTENT); i++) {
		const struct record_extent *record = records_get(records, RECORD_EXTENT, i);

		if (record && record->comm == comm->id)
			r = extent_take(comm, RECORD_EXTENT, i, record->serial);
	}
	for (uint32_t i = 0; r == 0 && i < records_limit(records, RECORD_GROWTH); i++) {
		const struct record_growth *record = records_get(records, RECORD_GROWTH, i);

		if (record && record->comm == comm->id)
			r = extent_take(comm, RECORD_GROWTH, i, record->serial);
	}
	return r;
}

void extent_remove(struct comm *comm, struct extent *extent)
{
	struct registry *registry = comm->registry;

	records_remove(registry->records, record_kind_of(&extent->use), extent->record);
	store_remove(registry->store, STORE_EXTENT, extent->serial);
	extent_refund(comm, extent->bytes);
	comm->memory -= extent->bytes;
	comm->memory_of[extent->use.kind] -= extent->bytes;
	/* a client may keep its mapping: the pages go all the same */
	memfd_punch(extent->fd, 0, extent->bytes);
	extent_free(extent);
}

/* The extent that has the ring with number @index, or NULL. The newest is the likeliest. */
static struct extent *pairs_extent(const struct comm *comm, uint32_t index)
{
	for (struct list *node = comm->extents.previous; node != &comm->extents;
	     node = node->previous) {
		struct extent *extent = list_entry(node, struct extent, link);

		if (index >= extent->first && index - extent->first < extent_rings(extent))
			return extent;
	}
	return NULL;
}

/* The ring with number @index is @pair's, and in @extent. */
static void pair_publish(struct view_pair *pair, const struct extent *extent, uint32_t index)
{
	const uint32_t at = index - extent->first;
	struct pair_ring_first *first = (struct pair_ring_first *)extent->base + at;
	struct pair_ring *ring = (struct pair_ring *)extent->base + at;

	pair->is_first = extent->use.kind == EXTENT_PAIRS_FIRST;
	pair->rest = pair->is_first ? NULL : pair_extent_rest(extent->base, extent->count, at);
	pair->fault = pair->is_first ? &first->fault : pair_extent_fault(extent->base, extent->count, at);
	/* last: the engine uses it from here on */
	atomic_store_explicit(&pair->ring, pair->is_first ? (struct pair_ring *)first : ring, memory_order_release);
}

/* The extent with the ring of the lowest number from @from on that is from or to @rank; NULL: there is no such ring. */
static struct extent *pairs_next_of_rank(const struct comm *comm, uint32_t rank, uint32_t from)
{
	uint32_t size = comm->view.size, lowest = UINT32_MAX;
	const _Atomic uint32_t *directory = comm_region_directory(comm->view.region, size);

	for (uint32_t peer = 0; peer < size; peer++) {
		/* 1 + number; this thread alone writes them */
		uint32_t words[] = { atomic_load_explicit(&directory[(uint64_t)rank * size + peer], memory_order_relaxed),
				     atomic_load_explicit(&directory[(uint64_t)peer * size + rank], memory_order_relaxed) };

		for (size_t i = 0; i < 2; i++)
			if (words[i] > from && words[i] - 1 < lowest)
				lowest = words[i] - 1;
	}
	return lowest == UINT32_MAX ? NULL : pairs_extent(comm, lowest);
}

/* The extent that the next ring comes into; NULL: there is no room. */
static struct extent *pairs_open_extent(const struct comm *comm)
{
	struct extent *extent = comm->newest_pairs;

	return extent && comm->pair_next < extent->first + extent_rings(extent) ? extent : NULL;
}

static bool extent_was_given(const struct extent *extent, uint32_t rank)
{
	return extent->given && extent->given[rank / 64] >> (rank % 64) & 1;
}

int extent_give(struct extent *extent, const struct comm *comm, uint32_t rank)
{
	if (extent->use.kind != EXTENT_POOL)
		return 0;
	if (!extent->given)
		extent->given = calloc((comm->view.size + 63) / 64, sizeof(*extent->given));
	if (!extent->given)
		return -ENOMEM;
	extent->given[rank / 64] |= 1ull << (rank % 64);
	return 0;
}

/* Has a pool or a wide ring to do with @rank? */
static bool growth_is_of(const struct comm *comm, const struct extent *extent, uint32_t rank)
{
	const struct view_pair *pair;

	if (extent->use.source == rank)
		return true;
	if (extent->use.kind == EXTENT_WIDE)
		return extent->use.peer == rank;
	pair = view_pair_of((struct view_comm *)&comm->view, extent->use.source, rank);
	return atomic_load_explicit(&pair->ring, memory_order_relaxed);
}

struct extent *pairs_next_extent(const struct comm *comm, uint32_t rank, uint32_t from, uint32_t given)
{
	uint32_t behind = from > given ? from : given;
	struct extent *lowest = pairs_next_of_rank(comm, rank, behind), *open = pairs_open_extent(comm);

	/* what is made there later has a lower number than what is there by now */
	if (open && open->first + open->count > behind && (!lowest || open->first < lowest->first))
		lowest = open;
	list_for_each(struct extent, extent, &comm->extents, link) {
		bool is_late = extent->use.kind == EXTENT_POOL && !extent_was_given(extent, rank);

		if (is_growth(&extent->use) && extent->first + extent->count > (is_late ? from : behind) &&
		    (!lowest || extent->first < lowest->first) && growth_is_of(comm, extent, rank))
			lowest = extent;
	}
	return lowest;
}

static uint32_t pairs_next_count(const struct comm *comm)
{
	uint32_t count = (uint32_t)(comm->memory_of[EXTENT_PAIRS] / PAIR_PLACE);

	if (count < EXTENT_PAIRS_MIN)
		count = EXTENT_PAIRS_MIN;
	return count > EXTENT_PAIRS_MAX ? EXTENT_PAIRS_MAX : count;
}

uint64_t pairs_next_bytes(const struct comm *comm)
{
	return pairs_next_count(comm) * (uint64_t)PAIR_PLACE;
}

int pairs_open(struct comm *comm, uint32_t source, uint32_t destination)
{
	struct view_pair *pair = view_pair_of(&comm->view, source, destination);
	uint32_t size = comm->view.size;
	_Atomic uint32_t *directory = comm_region_directory(comm->view.region, size);
	struct extent *extent = pairs_open_extent(comm);
	uint32_t index;
	int r;

	assert(source < size && destination < size);
	if (atomic_load_explicit(&pair->ring, memory_order_relaxed))
		return 0;
	if (!extent) {
		r = extent_new(comm, &(struct extent_use){ .kind = EXTENT_PAIRS, .slots = HCCLD_PAIR_SLOTS }, pairs_next_bytes(comm), &extent);
		if (r < 0)
			return r;
	}
	index = comm->pair_next > extent->first ? comm->pair_next : extent->first;
	comm->pair_count++;
	comm->pair_next = index + 1;
	/* the next process finds the ring by this word: its extent is recorded already */
	atomic_store_explicit(&directory[(uint64_t)source * size + destination], index + 1,
			      memory_order_release);
	pair_publish(pair, extent, index);
	return 0;
}

int pairs_restore(struct comm *comm)
{
	uint32_t size = comm->view.size;
	_Atomic uint32_t *directory = comm_region_directory(comm->view.region, size);

	for (uint64_t i = 0; i < (uint64_t)size * size; i++) {
		uint32_t word = atomic_load_explicit(&directory[i], memory_order_acquire);
		const struct extent *extent;

		if (!word)
			continue;
		extent = pairs_extent(comm, word - 1);
		if (!extent)
			return -EPROTO;
		comm->pair_count++;
		if (word > comm->pair_next)
			comm->pair_next = word;
		pair_publish(&comm->view.pairs[i], extent, word - 1);
	}
	return 0;
}

uint64_t pairs_pending(const struct comm *comm, uint32_t source)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; comm->pair_count && i < comm->view.size; i++) {
		const struct view_pair *pair = view_pair_of((struct view_comm *)&comm->view, source, i);
		struct pair_ring *ring = atomic_load_explicit(&pair->ring, memory_order_relaxed);
		uint64_t received, tail;

		if (!ring || atomic_load_explicit(view_pair_failed(pair, ring), memory_order_relaxed))
			continue;
		received = atomic_load_explicit(&ring->received, memory_order_relaxed);
		tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
		if (tail - received > view_pair_slots(pair, ring, tail))
			continue;
		for (uint64_t number = received + 1; number <= tail; number++)
			bytes += view_pair_bytes(pair, ring, number);
	}
	return bytes;
}

static void member_write(struct comm_region *region, const struct joiner *joiner)
{
	struct comm_member *member = &region->members[joiner->rank];

	member->incarnation = 1;
	member->pid = joiner->pid;
	member->exit = -1;
	member->context = joiner->context->view.index;
	member->device = joiner->device;
	atomic_store_explicit(&member->word, MEMBER_ALIVE, memory_order_release);
}

void comm_region_write(struct comm *comm, struct comm_region *region)
{
	uint32_t size = comm->rendezvous.size;

	region->magic = COMM_REGION_MAGIC;
	region->version = COMM_REGION_VERSION;
	region->size = size;
	region->comm = comm->id;
	region->directory_offset =
		(uint64_t)((char *)comm_region_directory(region, size) - (char *)region);
	region->parent = comm->parent;
	region->settings = comm->settings;
	for (uint32_t i = 0; i < size; i++)
		member_write(region, comm->rendezvous.joiners[i]);
}
