/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the engine can reach. Every allocation lies in a segment of the daemon: small ones share a slab, large ones have a segment
 * of their own. Where they are is in the index (buffer_index.h), whose lock guards the lists of slabs, too. It is never held during a
 * request to the daemon.
 */
#include "client/buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/buffer_index.h"
#include "client/device.h"
#include "client/error.h"
#include "client/segment.h"
#include "client/slab.h"
#include "client/strict.h"
#include "client/table.h"
#include "proto/limits.h"

#define SIZE_LIMIT (UINT64_C(1) << 45) /* below what the daemon takes for nonsense */

/* The device memory that was freed last, for texts; with `mutex`. */
#define FREED_MAX 256u
static struct freed {
	uint64_t start, bytes;
	uint8_t extra; /* of `bytes`: nobody had asked for them */
} last_freed[FREED_MAX] HCCLD_TABLE;
static uint32_t freed_count;

static _Atomic bool any_is_shared; /* has hccld_buffer_share() ever marked something? */
static struct slab *spare_slabs;
static struct slab *slabs[HCCLD_DEVICES_MAX][2]; /* by device and enum hccld_memory */

/* ---- slabs, with `mutex` ---- */

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
static void *slab_allocate(struct slab *slab, uint32_t bytes, uint8_t extra)
{
	uint32_t first = hccld_slab_allocate(slab, bytes, extra);

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

	hccld_index_lock();
	for (slab = *list; slab && slab->free < slab->granules;)
		slab = slab->next;
	if (slab) {
		slab_unlink(list, slab);
		segment = hccld_record_drop(slab->record);
		slab_spare(slab);
	}
	hccld_index_unlock();
	if (slab)
		hccld_segment_free(&segment);
	return slab != NULL;
}

/* A device that another thread resets is closed before its memory is forgotten: that has what we have just got, or we see it closed. */
static int reset_error(const struct hccld_context *context)
{
	return hccld_error(CAUSE_NO_CONTEXT, "device %d was reset while memory was allocated on it", context->logical);
}

static int allocate_large(struct hccld_context *context, enum hccld_memory memory, uint64_t size, uint8_t extra,
			  void **ret_pointer)
{
	const uint64_t id = context->id;
	struct hccld_segment segment;
	struct record *record;
	bool is_open, trimmed = false;
	int r;

	for (;;) {
		r = hccld_segment_new(context, segment_kind(memory), size, size - extra, &segment);
		if ((r != -ENOMEM && r != -ENOBUFS) || !trim(context, memory))
			break;
		trimmed = true;
	}
	if (r < 0)
		return r;
	hccld_index_lock();
	is_open = hccld_context_is_open(context, id);
	record = is_open ? hccld_record_take(&segment, memory, context->logical) : NULL;
	if (record) {
		atomic_store_explicit(&record->bytes, size, memory_order_release);
		atomic_store_explicit(&record->extra, extra, memory_order_release);
		hccld_index_insert(record);
	}
	hccld_index_unlock();
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
			       uint32_t size, uint8_t extra)
{
	void *pointer = NULL;

	for (struct slab *slab = slabs[context->logical][memory]; slab && !pointer;
	     slab = slab->next)
		pointer = slab_allocate(slab, size, extra);
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
	record = hccld_record_take(segment, memory, context->logical);
	if (!record) {
		slab_spare(slab);
		return too_many_error();
	}
	slab->record = record;
	atomic_store_explicit(&record->slab, slab, memory_order_release);
	hccld_index_insert(record);
	slab->next = *list;
	*list = slab;
	return 0;
}

static uint64_t next_slab_size(const struct slab *list, uint32_t size)
{
	if (!list && size <= SLAB_SIZE_FIRST / 4)
		return SLAB_SIZE_FIRST;
	return (!list || !list->next) && size <= SLAB_SIZE_SECOND / 4 ? SLAB_SIZE_SECOND : SLAB_SIZE;
}

static int allocate_small(struct hccld_context *context, enum hccld_memory memory, uint32_t size, uint8_t extra,
			  void **ret_pointer)
{
	const uint64_t id = context->id;
	struct hccld_segment segment;
	uint64_t slab_size;
	int r;

	hccld_index_lock();
	*ret_pointer = allocate_in_slabs(context, memory, size, extra);
	slab_size = next_slab_size(slabs[context->logical][memory], size);
	hccld_index_unlock();
	if (*ret_pointer)
		return 0;

	r = hccld_segment_new(context, segment_kind(memory), slab_size, 0, &segment);
	if (r == -ENOMEM || r == -ENOBUFS) {
		/* less than a slab is left */
		r = allocate_large(context, memory, size, extra, ret_pointer);
		if (r == 0)
			hccld_error_forget();
		return r;
	}
	if (r < 0)
		return r;
	hccld_index_lock();
	r = slab_add(context, id, memory, &segment);
	if (r == 0)
		*ret_pointer = slab_allocate(slabs[context->logical][memory], size, extra);
	hccld_index_unlock();
	if (r < 0)
		hccld_segment_free(&segment);
	return r;
}

int hccld_buffer_allocate(struct hccld_context *context, enum hccld_memory memory, size_t size, uint8_t extra,
			  void **ret_pointer)
{
	void *pointer = NULL;
	int r;

	if (size > SIZE_LIMIT)
		return hccld_error(memory == HCCLD_MEMORY_DEVICE ? CAUSE_MEMORY : CAUSE_HOST_MEMORY,
				   "%zu bytes are more than any device has", size - extra);
	if (size < SLAB_ALLOCATION_MAX)
		r = allocate_small(context, memory, (uint32_t)size, extra, &pointer);
	else
		r = allocate_large(context, memory, size, extra, &pointer);
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
		const uint32_t first = (uint32_t)(offset / SLAB_GRANULE);

		if (slab->granule[first].shared)
			hccld_slab_hold(slab, first);
		else
			hccld_slab_free(slab, first);
		list = record->device >= 0 ? &slabs[record->device][atomic_load(&record->memory)]
					   : NULL;
		if (!hccld_slab_is_empty(slab) || (list && !slab->held && !has_other_empty(*list, slab)))
			return false;
		if (list)
			slab_unlink(list, slab);
	}
	*ret_segment = hccld_record_drop(record);
	if (slab)
		slab_spare(slab);
	return true;
}

/* With `mutex`. */
static bool is_start(struct record *record, enum hccld_memory memory, uint64_t address)
{
	uint64_t offset;
	struct slab *slab;

	if (!record || atomic_load(&record->memory) != memory || atomic_load(&record->is_mapping))
		return false;
	offset = address - atomic_load(&record->start);
	slab = atomic_load(&record->slab);
	return slab ? hccld_slab_is_start(slab, offset) : offset == 0;
}

void hccld_buffer_share(const void *address)
{
	const uint64_t at = (uint64_t)(uintptr_t)address;
	uint64_t first, bytes;
	struct record *record;
	struct slab *slab;

	hccld_index_lock();
	record = hccld_index_find(at);
	slab = record && !atomic_load(&record->is_mapping) ? atomic_load(&record->slab) : NULL;
	if (slab && hccld_slab_find(slab, at - atomic_load(&record->start), &first, &bytes) == 0) {
		slab->granule[first / SLAB_GRANULE].shared = true;
		atomic_store(&any_is_shared, true);
	}
	hccld_index_unlock();
}

/* Others still see the pages of what is about to be freed here: they find zeros, as if it had had a segment of its own. */
static void clear_shared(enum hccld_memory memory, void *pointer)
{
	const uint64_t address = (uint64_t)(uintptr_t)pointer;
	uint64_t first, bytes = 0;
	struct record *record;
	struct slab *slab;

	if (!atomic_load(&any_is_shared))
		return;
	hccld_index_lock();
	record = hccld_index_find(address);
	slab = is_start(record, memory, address) ? atomic_load(&record->slab) : NULL;
	if (slab && (hccld_slab_find(slab, address - atomic_load(&record->start), &first, &bytes) < 0 || !slab->granule[first / SLAB_GRANULE].shared))
		bytes = 0;
	hccld_index_unlock();
	if (!bytes)
		return;
	hccld_strict_open();
	memset(pointer, 0, bytes);
	hccld_strict_close();
}

/* ---- what was freed ---- */

/* With `mutex`, before the allocation that starts at @address is undone. */
static void freed_add(const struct record *record, uint64_t address)
{
	const uint64_t offset = address - atomic_load(&record->start);
	struct freed *freed = &last_freed[freed_count++ % FREED_MAX];
	uint64_t first, bytes = atomic_load(&record->bytes);
	struct slab *slab = atomic_load(&record->slab);

	if (slab && hccld_slab_find(slab, offset, &first, &bytes) < 0)
		bytes = 0;
	*freed = (struct freed){ address, bytes, atomic_load(slab ? &slab->granule[offset / SLAB_GRANULE].extra : &record->extra) };
}

/* With `mutex`: the last one that @address was in. */
static bool freed_find(uint64_t address, struct freed *ret_freed)
{
	for (uint32_t i = 1; i <= FREED_MAX && i <= freed_count; i++) {
		const struct freed *freed = &last_freed[(freed_count - i) % FREED_MAX];

		if (address - freed->start < freed->bytes) {
			*ret_freed = *freed;
			return true;
		}
	}
	return false;
}

/* Somebody else may have mapped memory there since; that of slabs stays ours. */
static bool is_mapped(const void *address)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char resident;

	return mincore((void *)((uintptr_t)address / page * page), page, &resident) == 0;
}

int hccld_buffer_freed_error(enum cause cause, const char *function, const void *address)
{
	const uint64_t at = (uint64_t)(uintptr_t)address;
	struct record *record;
	struct freed freed;
	uint64_t first, bytes;
	struct slab *slab;
	bool was_freed;

	hccld_index_lock();
	was_freed = freed_find(at, &freed);
	record = was_freed ? hccld_index_find(at) : NULL;
	slab = record ? atomic_load(&record->slab) : NULL;
	if (record)
		was_freed = slab && hccld_slab_find(slab, at - atomic_load(&record->start), &first, &bytes) < 0;
	hccld_index_unlock();
	if (!was_freed || (!record && is_mapped(address)))
		return 0;
	return hccld_error(cause, "%s: the memory at %p was freed: it is byte %" PRIu64 " of %" PRIu64 " that were allocated at %#" PRIx64,
			   function, address, at - freed.start, freed.bytes - freed.extra, freed.start);
}

static int no_start(enum hccld_memory memory, const void *pointer)
{
	int r = memory == HCCLD_MEMORY_DEVICE ? hccld_buffer_freed_error(CAUSE_ARGUMENT, "aclrtFree", pointer) : 0;

	return r < 0 ? r : hccld_error(CAUSE_ARGUMENT,
			   "%p is not the start of memory that %s returned, or it was freed, or its device was reset",
			   pointer, memory == HCCLD_MEMORY_DEVICE ? "aclrtMalloc" : "aclrtMallocHost");
}

int hccld_buffer_check(enum hccld_memory memory, const void *pointer)
{
	const uint64_t address = (uint64_t)(uintptr_t)pointer;
	bool is_good;

	hccld_index_lock();
	is_good = is_start(hccld_index_find(address), memory, address);
	hccld_index_unlock();
	return is_good ? 0 : no_start(memory, pointer);
}

int hccld_buffer_free(enum hccld_memory memory, void *pointer)
{
	uint64_t address = (uint64_t)(uintptr_t)pointer;
	struct hccld_segment segment;
	struct record *record;
	bool drop = false;

	clear_shared(memory, pointer);
	hccld_index_lock();
	record = hccld_index_find(address);
	if (!is_start(record, memory, address)) {
		hccld_index_unlock();
		return no_start(memory, pointer);
	}
	if (memory == HCCLD_MEMORY_DEVICE)
		freed_add(record, address);
	drop = release(record, address - atomic_load(&record->start), &segment);
	hccld_index_unlock();
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
	hccld_index_lock();
	for (uint32_t i = hccld_index_count(); i-- > 0;) {
		struct record *record = hccld_index_at(i);
		struct slab *slab = atomic_load(&record->slab);

		if (record->device != context->logical || atomic_load(&record->is_mapping) ||
		    atomic_load(&record->memory) != HCCLD_MEMORY_HOST ||
		    (slab && hccld_slab_is_empty(slab)))
			continue;
		make_ordinary(record);
		atomic_store_explicit(&record->id, 0, memory_order_release);
	}
	hccld_index_unlock();
}

void hccld_buffer_forget(struct hccld_context *context)
{
	int32_t device = context->logical;

	hccld_index_lock();
	for (uint32_t i = hccld_index_count(); i-- > 0;) {
		struct record *record = hccld_index_at(i);
		struct slab *slab = atomic_load(&record->slab);
		struct hccld_segment segment;

		if (record->device != device)
			continue;
		if (atomic_load(&record->is_mapping)) {
			(void)hccld_record_drop(record);
			continue;
		}
		if (atomic_load(&record->memory) == HCCLD_MEMORY_DEVICE ||
		    (slab && hccld_slab_is_empty(slab))) {
			segment = hccld_record_drop(record);
			hccld_segment_unmap(&segment);
			if (slab)
				slab_spare(slab);
		} else {
			record->device = -1;
		}
	}
	slabs[device][HCCLD_MEMORY_DEVICE] = NULL;
	slabs[device][HCCLD_MEMORY_HOST] = NULL;
	hccld_index_unlock();
}

uint64_t hccld_buffer_idle(struct hccld_context *context)
{
	uint64_t idle = 0;

	hccld_index_lock();
	for (struct slab *slab = slabs[context->logical][HCCLD_MEMORY_DEVICE]; slab;
	     slab = slab->next)
		idle += (uint64_t)slab->free * SLAB_GRANULE;
	hccld_index_unlock();
	return idle;
}
