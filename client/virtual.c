/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserved ranges, physical memory, mappings. Every piece of physical memory is mapped once for as long as it lives, where nobody looks:
 * mappings of the program are further ones of the same pages (mremap() with an old size of 0), so that no descriptor is kept.
 *
 * `mutex` guards everything; requests to the daemon are made without it.
 */
#include "client/virtual.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/device.h"
#include "client/error.h"
#include "client/kernel.h"
#include "client/mapping.h"
#include "client/registration.h"
#include "client/revoke.h"
#include "client/strict.h"
#include "client/table.h"

#define PAGE 4096u
#define ALIGNMENT (UINT64_C(2) << 20)
#define ALIGNMENT_MAX (UINT64_C(1) << 30)
#define RESERVE_MAX (UINT64_C(1) << 46)
#define HANDLES HCCLD_SEGMENTS_PER_SESSION

struct physical {
	uint32_t references; /* handles given out; 0 and no mapping: the entry is free */
	uint32_t mappings;
	struct hccld_segment segment;
	enum hccld_memory memory;
	struct hccld_context *context;
	bool is_import;
	bool is_lost; /* an import whose memory is gone */
	bool is_dead; /* the device was reset */
	uint32_t pid; /* of an import: where it came from */
	struct hccld_loss loss;
};

struct mapping {
	struct mapping *next;
	char *base;
	uint64_t bytes;
	struct physical *physical;
};

struct range {
	struct range *next;
	char *base;
	uint64_t bytes;
	uint64_t guard; /* before and behind it, reserved as well */
	struct mapping *mappings;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;
static _Atomic uint32_t range_count; /* changes with `mutex`; read without it: none is the usual case */
static struct physical physicals[HANDLES] HCCLD_TABLE;
static uint32_t next_handle, handle_limit; /* below: may be in use */

/* ---- ranges ---- */

/* Nothing there, and nothing that counts as memory. */
static void *map_nothing(void *address, uint64_t bytes, int flags)
{
	void *base;

	if (flags & MAP_FIXED)
		hccld_strict_forget(address, bytes);
	base = mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
	if (base != MAP_FAILED)
		(void)madvise(base, bytes, MADV_DONTFORK);
	return base;
}

int hccld_virtual_reserve(uint64_t bytes, uint64_t alignment, void *expected, void **ret_base)
{
	const uint64_t align = alignment ? alignment : ALIGNMENT;
	struct range *range;
	/* a program that says where may want the range to end where another one begins */
	const uint64_t guard = expected ? 0 : HCCLD_GUARD;
	uint64_t slack, lead;
	char *base;

	if (bytes == 0 || bytes > RESERVE_MAX || (align & (align - 1)) || align > ALIGNMENT_MAX)
		return hccld_error(
			CAUSE_ARGUMENT,
			"cannot reserve %" PRIu64 " bytes aligned to %" PRIu64
			"; expected at most 64 TiB, and 0 or a power of two up to 1 GiB",
			bytes, alignment);
	bytes = (bytes + PAGE - 1) / PAGE * PAGE;
	slack = align > PAGE ? align : 0;
	range = calloc(1, sizeof(*range));
	if (!range)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to reserve addresses");
	base = map_nothing(expected, bytes + slack + 2 * guard, 0);
	if (base == MAP_FAILED) {
		free(range);
		return hccld_error(CAUSE_HOST_MEMORY,
				   "cannot reserve %" PRIu64
				   " bytes of addresses: %s (address space: ulimit -v)",
				   bytes, strerror(errno));
	}
	lead = (align - ((uint64_t)(uintptr_t)base + guard) % align) % align;
	if (lead)
		munmap(base, lead);
	if (slack > lead)
		munmap(base + lead + bytes + 2 * guard, slack - lead);
	range->base = base + lead + guard;
	range->bytes = bytes;
	range->guard = guard;
	pthread_mutex_lock(&mutex);
	range->next = ranges;
	ranges = range;
	atomic_fetch_add(&range_count, 1);
	pthread_mutex_unlock(&mutex);
	*ret_base = range->base;
	return 0;
}

int hccld_virtual_release(void *base)
{
	struct range **at, *range = NULL;
	bool is_mapped = false;

	pthread_mutex_lock(&mutex);
	for (at = &ranges; *at && (*at)->base != base;)
		at = &(*at)->next;
	if (*at) {
		is_mapped = (*at)->mappings != NULL;
		if (!is_mapped) {
			range = *at;
			*at = range->next;
			atomic_fetch_sub(&range_count, 1);
		}
	}
	pthread_mutex_unlock(&mutex);
	if (is_mapped)
		return hccld_error(
			CAUSE_ARGUMENT,
			"aclrtReleaseMemAddress: memory is mapped in the range at %p; call aclrtUnmapMem first",
			base);
	if (!range)
		return hccld_error(
			CAUSE_ARGUMENT,
			"aclrtReleaseMemAddress: %p is not the start of a range that aclrtReserveMemAddress returned",
			base);
	munmap(range->base - range->guard, range->bytes + 2 * range->guard);
	free(range);
	return 0;
}

/* With `mutex`: the range that holds [@address, + @bytes), or NULL. */
static struct range *range_find(const char *address, uint64_t bytes)
{
	for (struct range *range = ranges; range; range = range->next)
		if (address >= range->base && (uint64_t)(address - range->base) <= range->bytes &&
		    bytes <= range->bytes - (uint64_t)(address - range->base))
			return range;
	return NULL;
}

/* With `mutex`: where the mapping that shares something with [@address, + @bytes) hangs, or NULL. */
static struct mapping **mapping_find(struct range *range, const char *address, uint64_t bytes)
{
	for (struct mapping **at = &range->mappings; *at; at = &(*at)->next)
		if (address < (*at)->base + (*at)->bytes && (*at)->base < address + bytes)
			return at;
	return NULL;
}

/* ---- physical memory ---- */

/* With `mutex`. NULL: no such handle. */
static struct physical *physical_find(void *handle)
{
	uintptr_t distance = (uintptr_t)handle - (uintptr_t)physicals;
	struct physical *physical = NULL;

	if (distance < sizeof(physicals) && distance % sizeof(physicals[0]) == 0)
		physical = &physicals[distance / sizeof(physicals[0])];
	return physical && physical->references ? physical : NULL;
}

static int handle_error(const char *function, void *handle)
{
	return hccld_error(CAUSE_BAD_HANDLE,
			   "%s: handle is %p: that is no physical memory of this process, or it was freed",
			   function, handle);
}

static int physical_add(const struct physical *content, void **ret_handle)
{
	struct physical *physical = NULL;

	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < HANDLES && !physical; i++) {
		struct physical *entry = &physicals[next_handle];

		next_handle = (next_handle + 1) % HANDLES;
		if (!entry->references && !entry->mappings)
			physical = entry;
	}
	if (physical) {
		*physical = *content;
		physical->references = 1;
		if ((uint32_t)(physical - physicals) >= handle_limit)
			handle_limit = (uint32_t)(physical - physicals) + 1;
	}
	pthread_mutex_unlock(&mutex);
	if (!physical)
		return hccld_error(CAUSE_LIMIT,
				   "this process has %u handles of physical memory, the most it can have",
				   HANDLES);
	*ret_handle = physical;
	return 0;
}

int hccld_physical_new(struct hccld_context *context, enum hccld_memory memory, uint64_t bytes,
		       void **ret_handle)
{
	struct physical physical = { .memory = memory, .context = context };
	int r;

	r = hccld_segment_new(context,
			      memory == HCCLD_MEMORY_DEVICE ?
				      HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE :
				      HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__HOST,
			      bytes, 0, &physical.segment);
	if (r < 0)
		return r;
	r = physical_add(&physical, ret_handle);
	if (r < 0)
		hccld_segment_free(&physical.segment);
	return r;
}

int hccld_physical_import(struct hccld_context *context, enum hccld_memory memory,
			  struct hccld_segment *segment, uint32_t pid, void **ret_handle)
{
	struct physical physical = { .memory = memory,
				     .context = context,
				     .segment = *segment,
				     .is_import = true,
				     .pid = pid };
	int r = physical_add(&physical, ret_handle);

	if (r < 0)
		hccld_segment_free(segment);
	return r;
}

/* With `mutex`: the last handle or mapping may be gone. True: the memory goes, by physical_end() without `mutex`. */
static bool physical_is_over(struct physical *physical, struct physical *ret_over)
{
	if (physical->references || physical->mappings)
		return false;
	*ret_over = *physical;
	return !physical->is_dead;
}

static void physical_end(struct physical *over)
{
	if (over->is_import)
		hccld_segment_free(&over->segment);
	else
		hccld_segment_free_after_imports(&over->segment);
}

int hccld_physical_free(void *handle)
{
	struct physical *physical, over;
	bool ends = false;

	pthread_mutex_lock(&mutex);
	physical = physical_find(handle);
	if (physical) {
		physical->references--;
		ends = physical_is_over(physical, &over);
	}
	pthread_mutex_unlock(&mutex);
	if (!physical)
		return handle_error("aclrtFreePhysical", handle);
	if (ends)
		physical_end(&over);
	return 0;
}

int hccld_physical_retain(const void *address, void **ret_handle)
{
	struct mapping **at = NULL;
	struct range *range;

	pthread_mutex_lock(&mutex);
	range = range_find(address, 1);
	if (range)
		at = mapping_find(range, address, 1);
	if (at) {
		(*at)->physical->references++;
		*ret_handle = (*at)->physical;
	}
	pthread_mutex_unlock(&mutex);
	if (at)
		return 0;
	return hccld_error(CAUSE_ARGUMENT,
			   "aclrtMemRetainAllocationHandle: nothing was mapped at %p by aclrtMapMem",
			   address);
}

int hccld_physical_segment(void *handle, struct hccld_segment *ret_segment,
			   struct hccld_context **ret_context)
{
	struct physical *physical, copy = { 0 };

	pthread_mutex_lock(&mutex);
	physical = physical_find(handle);
	if (physical)
		copy = *physical;
	pthread_mutex_unlock(&mutex);
	if (!physical || copy.is_dead)
		return handle_error("aclrtMemExportToShareableHandle", handle);
	if (copy.is_import)
		return hccld_error(
			CAUSE_PERMISSION,
			"aclrtMemExportToShareableHandle: the memory was imported from pid %u, which alone can export it",
			copy.pid);
	*ret_segment = copy.segment;
	*ret_context = copy.context;
	return 0;
}

/* ---- mappings ---- */

static int map_check(const struct range *range, const struct physical *physical, void *address,
		     uint64_t bytes, uint64_t offset)
{
	char how[96];

	if (physical->is_dead)
		return hccld_error(CAUSE_BAD_HANDLE, "aclrtMapMem: the device of the physical memory was reset");
	if (physical->is_lost) {
		loss_text(physical->loss.kind, physical->loss.exit, "freed", how, sizeof(how));
		return hccld_error(CAUSE_BAD_HANDLE,
				   "aclrtMapMem: the physical memory was imported from pid %u, which %s",
				   physical->pid, how);
	}
	if (!bytes || bytes % PAGE || offset % PAGE || (uint64_t)(uintptr_t)address % PAGE ||
	    bytes > physical->segment.size || offset > physical->segment.size - bytes)
		return hccld_error(CAUSE_ARGUMENT,
				   "aclrtMapMem: %" PRIu64 " bytes at %" PRIu64
				   " of physical memory of %" PRIu64
				   " bytes at %p; expected whole pages inside of it",
				   bytes, offset, physical->segment.size, address);
	if (!range)
		return hccld_error(CAUSE_ARGUMENT,
				   "aclrtMapMem: %" PRIu64
				   " bytes at %p are not within one range of aclrtReserveMemAddress",
				   bytes, address);
	if (mapping_find((struct range *)(uintptr_t)range, address, bytes))
		return hccld_error(CAUSE_ARGUMENT, "aclrtMapMem: memory is mapped at %p or behind it; call aclrtUnmapMem first", address);
	return 0;
}

/* With `mutex`. */
static int mapping_make(struct range *range, struct physical *physical, char *address,
			uint64_t bytes, uint64_t offset)
{
	const struct hccld_mapping place = { address, bytes, physical->segment.id, offset,
					     physical->memory, physical->context, true };
	struct mapping *mapping = calloc(1, sizeof(*mapping));
	int r = 0;

	if (!mapping)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to map memory");
	if (mremap((char *)physical->segment.base + offset, 0, bytes,
		   MREMAP_MAYMOVE | MREMAP_FIXED, address) == MAP_FAILED)
		r = hccld_error(
			CAUSE_HOST_MEMORY,
			"aclrtMapMem: cannot map %" PRIu64
			" bytes: %s (number of mappings: vm.max_map_count)",
			bytes, strerror(errno));
	else if (physical->memory == HCCLD_MEMORY_DEVICE)
		r = hccld_strict_protect(address, bytes);
	if (r == 0)
		r = hccld_buffer_add(&place);
	if (r < 0) {
		map_nothing(address, bytes, MAP_FIXED);
		free(mapping);
		return r;
	}
	/* advice does not always come along with the pages */
	(void)madvise(address, bytes, MADV_DONTFORK);
	(void)madvise(address, bytes, MADV_DONTDUMP);
	*mapping = (struct mapping){ range->mappings, address, bytes, physical };
	range->mappings = mapping;
	physical->mappings++;
	return 0;
}

int hccld_virtual_map(void *address, uint64_t bytes, uint64_t offset, void *handle)
{
	struct physical *physical;
	struct range *range;
	int r = 0;

	pthread_mutex_lock(&mutex);
	physical = physical_find(handle);
	if (physical) {
		range = range_find(address, bytes);
		r = map_check(range, physical, address, bytes, offset);
		if (r == 0)
			r = mapping_make(range, physical, address, bytes, offset);
	}
	pthread_mutex_unlock(&mutex);
	return physical ? r : handle_error("aclrtMapMem", handle);
}

/* Of the mapping that starts at @address; 0: there is none. */
static uint64_t mapping_bytes(const char *address)
{
	struct mapping **at = NULL;
	struct range *range;
	uint64_t bytes = 0;

	pthread_mutex_lock(&mutex);
	range = range_find(address, 1);
	if (range)
		at = mapping_find(range, address, 1);
	if (at && (*at)->base == address)
		bytes = (*at)->bytes;
	pthread_mutex_unlock(&mutex);
	return bytes;
}

int hccld_virtual_unmap(void *address)
{
	struct mapping **at = NULL, *mapping = NULL;
	struct physical over;
	struct range *range;
	bool ends = false;

	/* as memory that is freed: peers must not go on with it, nor keep it */
	hccld_registration_withdraw(address, mapping_bytes(address));
	pthread_mutex_lock(&mutex);
	range = range_find(address, 1);
	if (range)
		at = mapping_find(range, address, 1);
	if (at && (*at)->base == address) {
		mapping = *at;
		*at = mapping->next;
		hccld_buffer_remove(mapping->base);
		map_nothing(mapping->base, mapping->bytes, MAP_FIXED);
		mapping->physical->mappings--;
		ends = physical_is_over(mapping->physical, &over);
	}
	pthread_mutex_unlock(&mutex);
	free(mapping);
	if (!mapping)
		return hccld_error(CAUSE_ARGUMENT, "aclrtUnmapMem: nothing was mapped at %p by aclrtMapMem", address);
	if (ends)
		physical_end(&over);
	return 0;
}

int hccld_virtual_check(const void *address, uint64_t bytes)
{
	if (bytes && mapping_bytes(address) == bytes)
		return 0;
	return hccld_error(CAUSE_ARGUMENT,
			   "aclrtMemSetAccess: %" PRIu64
			   " bytes at %p are not what aclrtMapMem has mapped",
			   bytes, address);
}

/* ---- the end of memory from outside ---- */

/* With `mutex`. */
static void mappings_of(const struct physical *physical, void (*call)(struct mapping *mapping))
{
	for (struct range *range = ranges; range; range = range->next)
		for (struct mapping *mapping = range->mappings; mapping; mapping = mapping->next)
			if (mapping->physical == physical)
				call(mapping);
}

static void mapping_lose(struct mapping *mapping)
{
	hccld_buffer_remove(mapping->base);
}

static void mapping_empty(struct mapping *mapping)
{
	hccld_buffer_remove(mapping->base);
	/* for good: when the kernels are over the program may have something else there */
	if (hccld_kernels_run())
		hccld_revoke(mapping->base, mapping->bytes, mapping->physical->memory == HCCLD_MEMORY_DEVICE);
	else
		map_nothing(mapping->base, mapping->bytes, MAP_FIXED);
}

void hccld_virtual_lose(uint64_t segment, struct hccld_loss loss)
{
	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < handle_limit; i++) {
		struct physical *physical = &physicals[i];

		if ((!physical->references && !physical->mappings) || !physical->is_import || physical->is_dead || physical->is_lost ||
		    physical->segment.id != segment)
			continue;
		physical->is_lost = true;
		physical->loss = loss;
		mappings_of(physical, mapping_lose);
	}
	pthread_mutex_unlock(&mutex);
}

/* With `mutex`. */
static bool find_lost(const void *address, struct hccld_lost *ret_lost)
{
	struct range *range = range_find(address, 1);
	struct mapping **at = range ? mapping_find(range, address, 1) : NULL;

	if (!at || !(*at)->physical->is_lost)
		return false;
	*ret_lost = (struct hccld_lost){ (*at)->base, (*at)->bytes, (*at)->physical->pid,
					 (*at)->physical->loss };
	return true;
}

bool hccld_virtual_is_lost(const void *address, struct hccld_lost *ret_lost)
{
	bool is_lost;

	pthread_mutex_lock(&mutex);
	is_lost = find_lost(address, ret_lost);
	pthread_mutex_unlock(&mutex);
	return is_lost;
}

bool hccld_virtual_look(const void *address, struct hccld_lost *ret_lost)
{
	bool is_lost;

	if (pthread_mutex_trylock(&mutex))
		return false;
	is_lost = find_lost(address, ret_lost);
	pthread_mutex_unlock(&mutex);
	return is_lost;
}

bool hccld_virtual_overlaps(const void *address, uint64_t bytes)
{
	const char *start = address;
	bool found = false;

	if (!atomic_load_explicit(&range_count, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&mutex);
	for (const struct range *range = ranges; range && !found; range = range->next)
		found = start < range->base ? bytes > (uint64_t)(range->base - start)
					    : (uint64_t)(start - range->base) < range->bytes;
	pthread_mutex_unlock(&mutex);
	return found;
}

static void physicals_end(const struct hccld_context *context, bool has_gone)
{
	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < handle_limit; i++) {
		struct physical *physical = &physicals[i];

		if ((!physical->references && !physical->mappings) || physical->is_dead || physical->context != context)
			continue;
		mappings_of(physical, mapping_empty);
		if (has_gone) {
			physical->is_dead = true;
			hccld_segment_unmap(&physical->segment);
		}
	}
	pthread_mutex_unlock(&mutex);
}

void hccld_virtual_revoke(const struct hccld_context *context)
{
	physicals_end(context, false);
}

void hccld_virtual_forget(const struct hccld_context *context)
{
	physicals_end(context, true);
}
