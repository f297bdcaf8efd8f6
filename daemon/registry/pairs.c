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

#define EXTENT_PAIRS_MIN 64u
#define EXTENT_PAIRS_MAX 4096u

struct extent *extent_free(struct extent *extent)
{
	if (!extent)
		return NULL;
	list_remove(&extent->link);
	memfd_unmap(extent->base, extent->bytes);
	close_fdp(&extent->fd);
	free(extent);
	return NULL;
}

static void extent_freep(struct extent **extent)
{
	extent_free(*extent);
}

static struct extent *extent_make(uint64_t serial, uint32_t first, uint32_t count, uint64_t bytes)
{
	struct extent *extent = calloc(1, sizeof(*extent));

	if (!extent)
		return NULL;
	list_init(&extent->link);
	extent->serial = serial;
	extent->fd = -1;
	extent->first = first;
	extent->count = count;
	extent->bytes = bytes;
	return extent;
}

/* Descriptor first, then the record that needs it. */
static int extent_store(struct comm *comm, struct extent *extent)
{
	struct registry *registry = comm->registry;
	struct record_extent record = { .comm = comm->id,
					.serial = extent->serial,
					.bytes = extent->bytes,
					.first = extent->first,
					.count = extent->count };
	int r;

	r = store_add(registry->store, STORE_EXTENT, extent->serial, extent->fd);
	if (r < 0)
		return r;
	r = records_add(registry->records, RECORD_EXTENT, &record, &extent->record);
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

int extent_new(struct comm *comm, uint32_t count, uint64_t bytes, struct extent **ret_extent)
{
	struct registry *registry = comm->registry;
	CLEANUP(extent_freep) struct extent *extent = NULL;
	int r;

	bytes = (bytes + 4095) & ~4095ull;
	extent = extent_make(records_next_id(registry->records), comm->pair_room, count, bytes);
	if (!extent)
		return -ENOMEM;
	r = extent_charge(comm, bytes);
	if (r < 0)
		return r;
	r = memfd_new(count ? "hccld-pairs" : "hccld-comm", bytes, true, &extent->fd);
	if (r == 0)
		r = memfd_map(extent->fd, bytes, true, &extent->base);
	if (r == 0)
		r = extent_store(comm, extent);
	if (r < 0) {
		extent_refund(comm, bytes);
		return r;
	}
	comm->memory += bytes;
	comm->pair_room += count;
	list_append(&comm->extents, &extent->link);
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

int extent_restore(struct comm *comm, uint32_t index, int fd)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	CLEANUP(extent_freep) struct extent *extent = NULL;
	struct registry *registry = comm->registry;
	const struct record_extent *record = records_get(registry->records, RECORD_EXTENT, index);
	struct stat st;
	int r;

	assert(record);
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != record->bytes ||
	    record->bytes < record->count * (uint64_t)sizeof(struct pair_ring))
		return -EPROTO;
	extent = extent_make(record->serial, record->first, record->count, record->bytes);
	if (!extent)
		return -ENOMEM;
	extent->record = index;
	extent->fd = take_fd(&owned_fd);
	r = memfd_map(extent->fd, extent->bytes, true, &extent->base);
	if (r < 0)
		return r;
	account_force(&registry->host, &registry->comm_holder, extent->bytes);
	comm->memory += extent->bytes;
	if (extent->first + extent->count > comm->pair_room)
		comm->pair_room = extent->first + extent->count;
	list_append(&comm->extents, &take_ptr(&extent)->link);
	return 0;
}

void extent_remove(struct comm *comm, struct extent *extent)
{
	struct registry *registry = comm->registry;

	records_remove(registry->records, RECORD_EXTENT, extent->record);
	store_remove(registry->store, STORE_EXTENT, extent->serial);
	extent_refund(comm, extent->bytes);
	comm->memory -= extent->bytes;
	/* a client may keep its mapping of extent 0: the pages go all the same */
	memfd_punch(extent->fd, 0, extent->bytes);
	extent_free(extent);
}

/* The extent that has the ring with number @index, or NULL. The newest is the likeliest. */
static struct extent *pairs_extent(const struct comm *comm, uint32_t index)
{
	for (struct list *node = comm->extents.previous; node != &comm->extents;
	     node = node->previous) {
		struct extent *extent = list_entry(node, struct extent, link);

		if (index >= extent->first && index - extent->first < extent->count)
			return extent;
	}
	return NULL;
}

static struct pair_ring *pairs_ring(const struct comm *comm, uint32_t index)
{
	const struct extent *extent = pairs_extent(comm, index);

	return extent ? (struct pair_ring *)extent->base + (index - extent->first) : NULL;
}

struct extent *pairs_next_extent(const struct comm *comm, uint32_t rank, uint32_t from)
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

static uint32_t pairs_next_count(const struct comm *comm)
{
	uint32_t count = comm->pair_room;

	if (count < EXTENT_PAIRS_MIN)
		count = EXTENT_PAIRS_MIN;
	return count > EXTENT_PAIRS_MAX ? EXTENT_PAIRS_MAX : count;
}

uint64_t pairs_next_bytes(const struct comm *comm)
{
	return pairs_next_count(comm) * (uint64_t)sizeof(struct pair_ring);
}

static int pairs_grow(struct comm *comm)
{
	uint32_t count = pairs_next_count(comm);
	struct extent *extent;

	return extent_new(comm, count, count * (uint64_t)sizeof(struct pair_ring), &extent);
}

int pairs_open(struct comm *comm, uint32_t source, uint32_t destination)
{
	struct view_pair *pair = view_pair_of(&comm->view, source, destination);
	uint32_t size = comm->view.size;
	_Atomic uint32_t *directory = comm_region_directory(comm->view.region, size);
	uint32_t index = comm->pair_count;
	int r;

	assert(source < size && destination < size);
	if (atomic_load_explicit(&pair->ring, memory_order_relaxed))
		return 0;
	if (index == comm->pair_room) {
		r = pairs_grow(comm);
		if (r < 0)
			return r;
	}
	comm->pair_count++;
	/* the next process finds the ring by this word: its extent is recorded already */
	atomic_store_explicit(&directory[(uint64_t)source * size + destination], index + 1,
			      memory_order_release);
	/* last: the engine uses it from here on */
	atomic_store_explicit(&pair->ring, pairs_ring(comm, index), memory_order_release);
	return 0;
}

int pairs_restore(struct comm *comm)
{
	uint32_t size = comm->view.size;
	_Atomic uint32_t *directory = comm_region_directory(comm->view.region, size);

	for (uint64_t i = 0; i < (uint64_t)size * size; i++) {
		uint32_t word = atomic_load_explicit(&directory[i], memory_order_acquire);
		struct pair_ring *ring;

		if (!word)
			continue;
		ring = pairs_ring(comm, word - 1);
		if (!ring)
			return -EPROTO;
		if (word > comm->pair_count)
			comm->pair_count = word;
		atomic_store_explicit(&comm->view.pairs[i].ring, ring, memory_order_release);
	}
	return 0;
}

uint64_t pairs_pending(const struct comm *comm, uint32_t source)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; comm->pair_count && i < comm->view.size; i++) {
		const struct pair_ring *ring = atomic_load_explicit(&view_pair_of((struct view_comm *)&comm->view, source, i)->ring,
								    memory_order_relaxed);
		uint64_t received, tail;

		if (!ring || atomic_load_explicit(&ring->failed, memory_order_relaxed))
			continue;
		received = atomic_load_explicit(&ring->received, memory_order_relaxed);
		tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
		for (uint64_t number = received; tail - received <= HCCLD_PAIR_SLOTS && number < tail; number++)
			bytes += ring->slots[number % HCCLD_PAIR_SLOTS].bytes;
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
