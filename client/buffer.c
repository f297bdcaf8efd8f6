/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the engine can reach. Every allocation lies in a segment of the daemon: small ones share a slab, large ones have a segment
 * of their own.
 *
 * Lookup is for the hot path of all threads, so it takes no lock: the segments stand in an index sorted by address, which is read under a
 * version count (odd: being changed) and read again if that moved. Nothing that a reader can reach is ever given back to malloc: records
 * are an array, slabs go to a list of spare ones. Stores to it are releases and loads are acquires, so a reader that meets a store of a
 * later change also meets its version.
 *
 * `mutex` is for those who change. It is never held during a request to the daemon.
 */
#include "client/buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/device.h"
#include "client/error.h"
#include "client/segment.h"
#include "client/slab.h"
#include "proto/limits.h"

#define SIZE_LIMIT (UINT64_C(1) << 45) /* below what the daemon takes for nonsense */

struct record {
	_Atomic uint64_t start, size;
	_Atomic uint64_t id;	/* 0: ordinary memory by now, the engine cannot reach it */
	_Atomic uint64_t bytes; /* of the one allocation in it, if it is no slab */
	_Atomic(struct slab *) slab;
	_Atomic uint8_t memory;
	int32_t device;	     /* number of its context's device; -1: the context is gone */
	struct record *next; /* spare */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct record records[HCCLD_SEGMENTS_PER_SESSION];
static uint32_t record_count; /* that were ever used */
static struct record *spare_records;
static struct slab *spare_slabs;
static struct slab *slabs[HCCLD_DEVICES_MAX][2]; /* by device and enum hccld_memory */

static _Atomic uint32_t version;
static _Atomic uint32_t order_count;
static _Atomic uint16_t order[HCCLD_SEGMENTS_PER_SESSION]; /* records by address */
static_assert(HCCLD_SEGMENTS_PER_SESSION <= 65536, "a record number fits");

/* ---- the index; all with `mutex` but the lookup ---- */

static void index_change_begin(void)
{
	atomic_store_explicit(&version, atomic_load_explicit(&version, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static void index_change_end(void)
{
	atomic_store_explicit(&version, atomic_load_explicit(&version, memory_order_relaxed) + 1,
			      memory_order_release);
}

static struct record *record_at(uint32_t position)
{
	return &records[atomic_load_explicit(&order[position], memory_order_acquire)];
}

/* How many records start at or below @address. */
static uint32_t index_position(uint64_t address)
{
	uint32_t low = 0, high = atomic_load_explicit(&order_count, memory_order_acquire);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (atomic_load_explicit(&record_at(middle)->start, memory_order_acquire) <=
		    address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void index_insert(struct record *record)
{
	uint32_t count = atomic_load_explicit(&order_count, memory_order_relaxed);
	uint32_t position =
		index_position(atomic_load_explicit(&record->start, memory_order_relaxed));

	index_change_begin();
	for (uint32_t i = count; i > position; i--)
		atomic_store_explicit(&order[i],
				      atomic_load_explicit(&order[i - 1], memory_order_relaxed),
				      memory_order_release);
	atomic_store_explicit(&order[position], (uint16_t)(record - records), memory_order_release);
	atomic_store_explicit(&order_count, count + 1, memory_order_release);
	index_change_end();
}

static void index_remove(struct record *record)
{
	uint32_t count = atomic_load_explicit(&order_count, memory_order_relaxed);
	uint32_t position =
		index_position(atomic_load_explicit(&record->start, memory_order_relaxed)) - 1;

	index_change_begin();
	for (uint32_t i = position; i + 1 < count; i++)
		atomic_store_explicit(&order[i],
				      atomic_load_explicit(&order[i + 1], memory_order_relaxed),
				      memory_order_release);
	atomic_store_explicit(&order_count, count - 1, memory_order_release);
	index_change_end();
}

static struct record *index_find(uint64_t address)
{
	uint32_t position = index_position(address);
	struct record *record;

	if (position == 0)
		return NULL;
	record = record_at(position - 1);
	if (address - atomic_load_explicit(&record->start, memory_order_acquire) >=
	    atomic_load_explicit(&record->size, memory_order_acquire))
		return NULL;
	return record;
}

/* What the index says at one moment, which may be no moment: the caller looks at the version. */
static int find_once(uint64_t address, struct hccld_place *ret_place)
{
	struct record *record = index_find(address);
	uint64_t start, bytes, offset;
	struct slab *slab;

	if (!record || !atomic_load_explicit(&record->id, memory_order_acquire))
		return -ENOENT;
	start = atomic_load_explicit(&record->start, memory_order_acquire);
	bytes = atomic_load_explicit(&record->bytes, memory_order_acquire);
	offset = address - start;
	slab = atomic_load_explicit(&record->slab, memory_order_acquire);
	if (slab) {
		uint64_t first;
		int r = hccld_slab_find(slab, offset, &first, &bytes);

		if (r < 0)
			return r;
		offset -= first;
	}
	if (offset >= bytes)
		return -ENOENT;
	ret_place->segment = atomic_load_explicit(&record->id, memory_order_acquire);
	ret_place->offset = address - start;
	ret_place->memory =
		(enum hccld_memory)atomic_load_explicit(&record->memory, memory_order_acquire);
	ret_place->available = bytes - offset;
	return 0;
}

int hccld_buffer_find(const void *address, struct hccld_place *ret_place)
{
	for (;;) {
		uint32_t before = atomic_load_explicit(&version, memory_order_acquire);
		struct hccld_place place;
		int r;

		if (before & 1)
			continue;
		r = find_once((uint64_t)(uintptr_t)address, &place);
		/* all loads above are acquires: none of them can come after this one */
		if (atomic_load_explicit(&version, memory_order_relaxed) != before)
			continue;
		if (r == 0)
			*ret_place = place;
		return r;
	}
}

/* ---- records and slabs, with `mutex` ---- */

static struct record *record_take(const struct hccld_segment *segment, enum hccld_memory memory,
				  int32_t device)
{
	struct record *record = spare_records;

	if (record)
		spare_records = record->next;
	else if (record_count < HCCLD_SEGMENTS_PER_SESSION)
		record = &records[record_count++];
	else
		return NULL;
	record->device = device;
	/* a reader that still holds the number of an earlier use meets the version of its removal */
	atomic_store_explicit(&record->start, (uint64_t)(uintptr_t)segment->base,
			      memory_order_release);
	atomic_store_explicit(&record->size, segment->size, memory_order_release);
	atomic_store_explicit(&record->id, segment->id, memory_order_release);
	atomic_store_explicit(&record->memory, (uint8_t)memory, memory_order_release);
	atomic_store_explicit(&record->bytes, 0, memory_order_release);
	atomic_store_explicit(&record->slab, NULL, memory_order_release);
	return record;
}

/* Takes the record out of the index; the caller unmaps or frees the segment. */
static struct hccld_segment record_drop(struct record *record)
{
	struct hccld_segment segment = {
		.id = atomic_load(&record->id),
		.base = (void *)(uintptr_t)atomic_load(&record->start),
		.size = atomic_load(&record->size),
	};

	index_remove(record);
	record->next = spare_records;
	spare_records = record;
	return segment;
}

static struct slab *slab_take(uint64_t size)
{
	struct slab *slab = spare_slabs;

	if (slab)
		spare_slabs = slab->next;
	else
		slab = malloc(sizeof(*slab));
	if (slab)
		hccld_slab_init(slab, size);
	return slab;
}

static void slab_spare(struct slab *slab)
{
	slab->next = spare_slabs;
	spare_slabs = slab;
}

static void slab_unlink(struct slab **list, struct slab *slab)
{
	while (*list && *list != slab)
		list = &(*list)->next;
	if (*list)
		*list = slab->next;
}

/* The address of a new allocation in @slab, or NULL. */
static void *slab_allocate(struct slab *slab, uint32_t bytes)
{
	uint32_t first = hccld_slab_allocate(slab, bytes);

	if (first == SLAB_UNUSED)
		return NULL;
	return (char *)(uintptr_t)atomic_load(&slab->record->start) + (size_t)first * SLAB_GRANULE;
}

static bool has_other_empty(const struct slab *list, const struct slab *slab)
{
	for (; list; list = list->next)
		if (list != slab && list->free == list->granules)
			return true;
	return false;
}

/* ---- allocating ---- */

static int too_many_error(void)
{
	return hccld_error(
		CAUSE_LIMIT,
		"this process holds %u segments of memory, the most it can have; allocate fewer, larger buffers",
		HCCLD_SEGMENTS_PER_SESSION);
}

static uint32_t segment_kind(enum hccld_memory memory)
{
	return memory == HCCLD_MEMORY_DEVICE ? HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE
					     : HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__HOST;
}

/* Gives one slab that nothing lives in back to the daemon. False: there is none. */
static bool trim(struct hccld_context *context, enum hccld_memory memory)
{
	struct slab **list = &slabs[context->logical][memory];
	struct hccld_segment segment;
	struct slab *slab;

	pthread_mutex_lock(&mutex);
	for (slab = *list; slab && slab->free < slab->granules;)
		slab = slab->next;
	if (slab) {
		slab_unlink(list, slab);
		segment = record_drop(slab->record);
		slab_spare(slab);
	}
	pthread_mutex_unlock(&mutex);
	if (slab)
		hccld_segment_free(&segment);
	return slab != NULL;
}

/* A device that another thread resets is closed before its memory is forgotten: that has what we have just got, or we see it closed. */
static int reset_error(const struct hccld_context *context)
{
	return hccld_error(CAUSE_NO_CONTEXT, "device %d was reset while memory was allocated on it", context->logical);
}

static int allocate_large(struct hccld_context *context, enum hccld_memory memory, uint64_t size,
			  void **ret_pointer)
{
	const uint64_t id = context->id;
	struct hccld_segment segment;
	struct record *record;
	bool is_open, trimmed = false;
	int r;

	for (;;) {
		r = hccld_segment_new(context, segment_kind(memory), size, &segment);
		if ((r != -ENOMEM && r != -ENOBUFS) || !trim(context, memory))
			break;
		trimmed = true;
	}
	if (r < 0)
		return r;
	pthread_mutex_lock(&mutex);
	is_open = hccld_context_is_open(context, id);
	record = is_open ? record_take(&segment, memory, context->logical) : NULL;
	if (record) {
		atomic_store_explicit(&record->bytes, size, memory_order_release);
		index_insert(record);
	}
	pthread_mutex_unlock(&mutex);
	if (!record) {
		hccld_segment_free(&segment);
		return is_open ? too_many_error() : reset_error(context);
	}
	if (trimmed)
		hccld_error_forget();
	*ret_pointer = segment.base;
	return 0;
}

static void *allocate_in_slabs(struct hccld_context *context, enum hccld_memory memory,
			       uint32_t size)
{
	void *pointer = NULL;

	for (struct slab *slab = slabs[context->logical][memory]; slab && !pointer;
	     slab = slab->next)
		pointer = slab_allocate(slab, size);
	return pointer;
}

/* With `mutex`: puts a fresh segment to use as a slab. */
static int slab_add(struct hccld_context *context, uint64_t id, enum hccld_memory memory,
		    const struct hccld_segment *segment)
{
	struct slab **list = &slabs[context->logical][memory];
	struct slab *slab;
	struct record *record;

	if (!hccld_context_is_open(context, id))
		return reset_error(context);
	slab = slab_take(segment->size);
	if (!slab)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to manage small allocations");
	record = record_take(segment, memory, context->logical);
	if (!record) {
		slab_spare(slab);
		return too_many_error();
	}
	slab->record = record;
	atomic_store_explicit(&record->slab, slab, memory_order_release);
	index_insert(record);
	slab->next = *list;
	*list = slab;
	return 0;
}

static int allocate_small(struct hccld_context *context, enum hccld_memory memory, uint32_t size,
			  void **ret_pointer)
{
	const uint64_t id = context->id;
	struct hccld_segment segment;
	bool is_first;
	int r;

	pthread_mutex_lock(&mutex);
	*ret_pointer = allocate_in_slabs(context, memory, size);
	is_first = !slabs[context->logical][memory];
	pthread_mutex_unlock(&mutex);
	if (*ret_pointer)
		return 0;

	r = hccld_segment_new(context, segment_kind(memory),
			      is_first && size <= SLAB_FIRST_ALLOCATION_MAX ? SLAB_SIZE_FIRST : SLAB_SIZE,
			      &segment);
	if (r == -ENOMEM || r == -ENOBUFS) {
		/* less than a slab is left */
		r = allocate_large(context, memory, size, ret_pointer);
		if (r == 0)
			hccld_error_forget();
		return r;
	}
	if (r < 0)
		return r;
	pthread_mutex_lock(&mutex);
	r = slab_add(context, id, memory, &segment);
	if (r == 0)
		*ret_pointer = slab_allocate(slabs[context->logical][memory], size);
	pthread_mutex_unlock(&mutex);
	if (r < 0)
		hccld_segment_free(&segment);
	return r;
}

int hccld_buffer_allocate(struct hccld_context *context, enum hccld_memory memory, size_t size,
			  void **ret_pointer)
{
	void *pointer = NULL;
	int r;

	if (size > SIZE_LIMIT)
		return hccld_error(memory == HCCLD_MEMORY_DEVICE ? CAUSE_MEMORY : CAUSE_HOST_MEMORY,
				   "%zu bytes are more than any device has", size);
	if (size < SLAB_ALLOCATION_MAX)
		r = allocate_small(context, memory, (uint32_t)size, &pointer);
	else
		r = allocate_large(context, memory, size, &pointer);
	if (r == 0)
		*ret_pointer = pointer;
	return r;
}

/* With `mutex`: undoes one allocation. Returns true if its segment is to be freed. */
static bool release(struct record *record, uint64_t offset, struct hccld_segment *ret_segment)
{
	struct slab *slab = atomic_load(&record->slab);
	struct slab **list;

	if (slab) {
		hccld_slab_free(slab, (uint32_t)(offset / SLAB_GRANULE));
		list = record->device >= 0 ? &slabs[record->device][atomic_load(&record->memory)]
					   : NULL;
		if (slab->free < slab->granules || (list && !has_other_empty(*list, slab)))
			return false;
		if (list)
			slab_unlink(list, slab);
	}
	*ret_segment = record_drop(record);
	if (slab)
		slab_spare(slab);
	return true;
}

/* With `mutex`. */
static bool is_start(struct record *record, enum hccld_memory memory, uint64_t address)
{
	uint64_t offset;
	struct slab *slab;

	if (!record || atomic_load(&record->memory) != memory)
		return false;
	offset = address - atomic_load(&record->start);
	slab = atomic_load(&record->slab);
	return slab ? hccld_slab_is_start(slab, offset) : offset == 0;
}

int hccld_buffer_free(enum hccld_memory memory, void *pointer)
{
	uint64_t address = (uint64_t)(uintptr_t)pointer;
	struct hccld_segment segment;
	struct record *record;
	bool drop = false;

	pthread_mutex_lock(&mutex);
	record = index_find(address);
	if (!is_start(record, memory, address)) {
		pthread_mutex_unlock(&mutex);
		return hccld_error(
			CAUSE_ARGUMENT,
			"%p is not the start of memory that %s returned, or it was freed, or its device was reset",
			pointer, memory == HCCLD_MEMORY_DEVICE ? "aclrtMalloc" : "aclrtMallocHost");
	}
	drop = release(record, address - atomic_load(&record->start), &segment);
	pthread_mutex_unlock(&mutex);
	if (drop && segment.id)
		hccld_segment_free(&segment);
	else if (drop)
		hccld_segment_unmap(&segment);
	return 0;
}

/* Puts anonymous memory with the same contents in the place of a segment's. Without memory for it the segment's stays, and loses its contents. */
static void make_ordinary(struct record *record)
{
	void *base = (void *)(uintptr_t)atomic_load(&record->start);
	size_t size = atomic_load(&record->size);
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return;
	memcpy(copy, base, size);
	if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, base) == MAP_FAILED)
		munmap(copy, size);
}

void hccld_buffer_keep_host(struct hccld_context *context)
{
	pthread_mutex_lock(&mutex);
	for (uint32_t i = atomic_load(&order_count); i-- > 0;) {
		struct record *record = record_at(i);
		struct slab *slab = atomic_load(&record->slab);

		if (record->device != context->logical ||
		    atomic_load(&record->memory) != HCCLD_MEMORY_HOST ||
		    (slab && slab->free == slab->granules))
			continue;
		make_ordinary(record);
		atomic_store_explicit(&record->id, 0, memory_order_release);
	}
	pthread_mutex_unlock(&mutex);
}

void hccld_buffer_forget(struct hccld_context *context)
{
	int32_t device = context->logical;

	pthread_mutex_lock(&mutex);
	for (uint32_t i = atomic_load(&order_count); i-- > 0;) {
		struct record *record = record_at(i);
		struct slab *slab = atomic_load(&record->slab);
		struct hccld_segment segment;

		if (record->device != device)
			continue;
		if (atomic_load(&record->memory) == HCCLD_MEMORY_DEVICE ||
		    (slab && slab->free == slab->granules)) {
			segment = record_drop(record);
			hccld_segment_unmap(&segment);
			if (slab)
				slab_spare(slab);
		} else {
			record->device = -1;
		}
	}
	slabs[device][HCCLD_MEMORY_DEVICE] = NULL;
	slabs[device][HCCLD_MEMORY_HOST] = NULL;
	pthread_mutex_unlock(&mutex);
}

uint64_t hccld_buffer_idle(struct hccld_context *context)
{
	uint64_t idle = 0;

	pthread_mutex_lock(&mutex);
	for (struct slab *slab = slabs[context->logical][HCCLD_MEMORY_DEVICE]; slab;
	     slab = slab->next)
		idle += (uint64_t)slab->free * SLAB_GRANULE;
	pthread_mutex_unlock(&mutex);
	return idle;
}
