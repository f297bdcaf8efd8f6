/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookup is for the hot path of all threads, so it takes no lock: the segments stand in an index sorted by address, which is read under a
 * version count (odd: being changed) and read again if that moved. Nothing that a reader can reach is ever given back to malloc: records
 * are an array, slabs go to a list of spare ones. Stores to it are releases and loads are acquires, so a reader that meets a store of a
 * later change also meets its version.
 */
#include "client/buffer_index.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "client/buffer.h"
#include "client/error.h"
#include "client/mapping.h"
#include "client/slab.h"
#include "client/table.h"
#include "proto/limits.h"

#define LOOKS_MAX 10000 /* of a signal handler: the thread that changes the index may be the one that it has interrupted */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct record records[RECORDS_MAX] HCCLD_TABLE;
static uint32_t record_count; /* that were ever used */
static struct record *spare_records;

static _Atomic uint32_t version;
static _Atomic uint32_t order_count;
static _Atomic uint16_t order[RECORDS_MAX] HCCLD_TABLE; /* records by address */
static_assert(RECORDS_MAX <= 65536, "a record number fits");

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

void hccld_index_insert(struct record *record)
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

struct record *hccld_index_find(uint64_t address)
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
	struct record *record = hccld_index_find(address);
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
	ret_place->offset =
		address - start + atomic_load_explicit(&record->shift, memory_order_acquire);
	ret_place->is_mapping = atomic_load_explicit(&record->is_mapping, memory_order_acquire);
	ret_place->joins = atomic_load_explicit(&record->joins, memory_order_acquire);
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

/* ---- for those who change ---- */

void hccld_index_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void hccld_index_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

uint32_t hccld_index_count(void)
{
	return atomic_load(&order_count);
}

struct record *hccld_index_at(uint32_t position)
{
	return record_at(position);
}

struct record *hccld_record_take(const struct hccld_segment *segment, enum hccld_memory memory,
				  int32_t device)
{
	struct record *record = spare_records;

	if (record)
		spare_records = record->next;
	else if (record_count < RECORDS_MAX)
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
	atomic_store_explicit(&record->extra, 0, memory_order_release);
	atomic_store_explicit(&record->slab, NULL, memory_order_release);
	atomic_store_explicit(&record->shift, 0, memory_order_release);
	atomic_store_explicit(&record->is_mapping, false, memory_order_release);
	atomic_store_explicit(&record->joins, false, memory_order_release);
	return record;
}

struct hccld_segment hccld_record_drop(struct record *record)
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

/* ---- mappings of others ---- */

int hccld_buffer_add(const struct hccld_mapping *mapping)
{
	const struct hccld_segment segment = { mapping->segment, mapping->base, mapping->bytes };
	struct record *record;

	hccld_index_lock();
	record = hccld_record_take(&segment, mapping->memory, mapping->context->logical);
	if (record) {
		atomic_store_explicit(&record->bytes, mapping->bytes, memory_order_release);
		atomic_store_explicit(&record->shift, mapping->offset, memory_order_release);
		atomic_store_explicit(&record->is_mapping, true, memory_order_release);
		atomic_store_explicit(&record->joins, mapping->joins, memory_order_release);
		hccld_index_insert(record);
	}
	hccld_index_unlock();
	if (record)
		return 0;
	return hccld_error(CAUSE_LIMIT,
			   "this process has %u allocations and mappings, the most it can have",
			   RECORDS_MAX);
}

void hccld_buffer_remove(void *base)
{
	uint64_t address = (uint64_t)(uintptr_t)base;
	struct record *record;

	hccld_index_lock();
	record = hccld_index_find(address);
	if (record && atomic_load(&record->is_mapping) && atomic_load(&record->start) == address)
		(void)hccld_record_drop(record);
	hccld_index_unlock();
}

int hccld_buffer_range(const void *address, void **ret_start, uint64_t *ret_bytes,
		       int32_t *ret_device)
{
	uint64_t offset, first = 0, bytes, value = (uint64_t)(uintptr_t)address;
	struct record *record;
	struct slab *slab;
	int r = -ENOENT;

	hccld_index_lock();
	record = hccld_index_find(value);
	if (record) {
		offset = value - atomic_load(&record->start);
		slab = atomic_load(&record->slab);
		bytes = atomic_load(&record->bytes);
		r = slab ? hccld_slab_find(slab, offset, &first, &bytes) :
			   offset < bytes ? 0 :
					    -ENOENT;
	}
	if (r == 0) {
		*ret_start = (void *)(uintptr_t)(atomic_load(&record->start) + first);
		*ret_bytes = bytes;
		*ret_device = record->device;
	}
	hccld_index_unlock();
	return r;
}

static bool look_in(uint64_t address, const struct record *record, struct hccld_allocation *ret_allocation)
{
	uint64_t start, first = 0, bytes;
	struct slab *slab;
	uint8_t extra;

	if (!record || !atomic_load_explicit(&record->id, memory_order_acquire))
		return false;
	start = atomic_load_explicit(&record->start, memory_order_acquire);
	bytes = atomic_load_explicit(&record->bytes, memory_order_acquire);
	slab = atomic_load_explicit(&record->slab, memory_order_acquire);
	if (slab ? hccld_slab_find(slab, address - start, &first, &bytes) < 0 : address - start >= bytes)
		bytes = 0;
	extra = atomic_load_explicit(slab ? &slab->granule[first / SLAB_GRANULE].extra : &record->extra, memory_order_acquire);
	*ret_allocation = (struct hccld_allocation){ (void *)(uintptr_t)(start + first), bytes, extra, record->device,
						     (enum hccld_memory)atomic_load_explicit(&record->memory, memory_order_acquire),
						     atomic_load_explicit(&record->is_mapping, memory_order_acquire) };
	return true;
}

static bool look_once(uint64_t address, struct hccld_allocation *ret_allocation)
{
	return look_in(address, hccld_index_find(address), ret_allocation);
}

static bool look_beside_once(uint64_t address, struct hccld_allocation *ret_allocation)
{
	const uint32_t position = index_position(address);
	struct record *before = position ? record_at(position - 1) : NULL;
	struct record *after = position < atomic_load_explicit(&order_count, memory_order_acquire) ? record_at(position) : NULL;
	uint64_t start, size;

	if (before) {
		start = atomic_load_explicit(&before->start, memory_order_acquire);
		size = atomic_load_explicit(&before->size, memory_order_acquire);
		if (address - start >= size && address - start - size < HCCLD_GUARD)
			return look_in(atomic_load_explicit(&before->slab, memory_order_acquire) ? start + size - 1 : start, before,
				       ret_allocation);
	}
	if (after) {
		start = atomic_load_explicit(&after->start, memory_order_acquire);
		if (start > address && start - address <= HCCLD_GUARD)
			return look_in(start, after, ret_allocation);
	}
	return false;
}

static bool look(bool (*once)(uint64_t, struct hccld_allocation *), const void *address, struct hccld_allocation *ret_allocation)
{
	for (int i = 0; i < LOOKS_MAX; i++) {
		uint32_t before = atomic_load_explicit(&version, memory_order_acquire);
		bool found;

		if (before & 1)
			continue;
		found = once((uint64_t)(uintptr_t)address, ret_allocation);
		if (atomic_load_explicit(&version, memory_order_relaxed) == before)
			return found;
	}
	return false;
}

bool hccld_buffer_look(const void *address, struct hccld_allocation *ret_allocation)
{
	return look(look_once, address, ret_allocation);
}

bool hccld_buffer_look_beside(const void *address, struct hccld_allocation *ret_allocation)
{
	return look(look_beside_once, address, ret_allocation);
}

const char *hccld_buffer_extra_text(const void *address, char buffer[HCCLD_EXTRA_TEXT])
{
	struct hccld_allocation allocation;

	buffer[0] = '\0';
	if (hccld_buffer_look(address, &allocation) && allocation.bytes && allocation.extra)
		snprintf(buffer, HCCLD_EXTRA_TEXT, " (with %u more than the %" PRIu64 " that were asked for)", allocation.extra,
			 allocation.bytes - allocation.extra);
	return buffer;
}

uint64_t hccld_buffer_span(const void *address, uint64_t bytes)
{
	const char *at = address;
	uint64_t done = 0;
	struct hccld_place place;

	while (done < bytes && hccld_buffer_find(at + done, &place) == 0) {
		if (done && !place.joins)
			break;
		done += place.available;
		if (!place.joins)
			break;
	}
	return done;
}
