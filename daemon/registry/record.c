/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of records in two memfds. The files are sparse; a table is backed in steps before it is
 * written to.
 */
#include "registry/record.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memfd.h"
#include "base/slots.h"
#include "proto/cleanup.h"

#define REGISTRY_MAGIC 0x48434c4452454749ull
#define REGISTRY_LAYOUT 1u
#define RECORD_VALID 0x56414c4944524543ull
#define STEP 65536u
#define MORE_MAGIC 0x48434c444d4f5245ull
#define MORE_SIZE (1ull << 30) /* sparse */
#define MORE_KINDS_MAX 64u

static const struct {
	uint32_t size, count;
} kinds[RECORD_KINDS] = {
	[RECORD_TENANT] = { sizeof(struct record_tenant), 1024 },
	[RECORD_SESSION] = { sizeof(struct record_session), HCCLD_SESSIONS_MAX },
	[RECORD_CONTEXT] = { sizeof(struct record_context), 1u << 16 },
	[RECORD_STREAM] = { sizeof(struct record_stream), 1u << 18 },
	[RECORD_SEGMENT] = { sizeof(struct record_segment), 1u << 18 },
	[RECORD_COMM] = { sizeof(struct record_comm), 1u << 16 },
	[RECORD_RANK] = { sizeof(struct record_rank), 1u << 18 },
	[RECORD_EXTENT] = { sizeof(struct record_extent), 1u << 18 },
	[RECORD_DRAIN] = { sizeof(struct record_drain), 1 },
	[RECORD_TENANT_KEY] = { sizeof(struct record_tenant_key), 1024 },
	[RECORD_EXPORT] = { sizeof(struct record_export), 1u << 16 },
	[RECORD_IMPORT] = { sizeof(struct record_import), 1u << 18 },
	[RECORD_NOTIFIES] = { sizeof(struct record_notifies), 1u << 18 },
	[RECORD_THREAD] = { sizeof(struct record_thread), 1u << 18 },
	[RECORD_REGISTRATION] = { sizeof(struct record_registration), HCCLD_REGISTRATIONS_MAX },
	[RECORD_CHANNEL] = { sizeof(struct record_channel), HCCLD_CHANNELS_MAX },
	[RECORD_CORES] = { sizeof(struct record_cores), 1u << 16 },
	[RECORD_LAZY] = { sizeof(struct record_lazy), 1u << 18 },
	[RECORD_GROWTH] = { sizeof(struct record_growth), 1u << 18 },
	[RECORD_NODE] = { sizeof(struct record_node), 1 },
};

static_assert(offsetof(struct record_tenant, valid) + 8 == sizeof(struct record_tenant), "last");
static_assert(offsetof(struct record_session, valid) + 8 == sizeof(struct record_session), "last");
static_assert(offsetof(struct record_context, valid) + 8 == sizeof(struct record_context), "last");
static_assert(offsetof(struct record_stream, valid) + 8 == sizeof(struct record_stream), "last");
static_assert(offsetof(struct record_segment, valid) + 8 == sizeof(struct record_segment), "last");
static_assert(offsetof(struct record_comm, valid) + 8 == sizeof(struct record_comm), "last");
static_assert(offsetof(struct record_rank, valid) + 8 == sizeof(struct record_rank), "last");
static_assert(offsetof(struct record_extent, valid) + 8 == sizeof(struct record_extent), "last");
static_assert(offsetof(struct record_drain, valid) + 8 == sizeof(struct record_drain), "last");
static_assert(offsetof(struct record_tenant_key, valid) + 8 == sizeof(struct record_tenant_key),
	      "last");
static_assert(offsetof(struct record_export, valid) + 8 == sizeof(struct record_export), "last");
static_assert(offsetof(struct record_import, valid) + 8 == sizeof(struct record_import), "last");
static_assert(offsetof(struct record_notifies, valid) + 8 == sizeof(struct record_notifies),
	      "last");
static_assert(offsetof(struct record_thread, valid) + 8 == sizeof(struct record_thread), "last");
static_assert(offsetof(struct record_registration, valid) + 8 == sizeof(struct record_registration),
	      "last");
static_assert(offsetof(struct record_channel, valid) + 8 == sizeof(struct record_channel), "last");
static_assert(offsetof(struct record_cores, valid) + 8 == sizeof(struct record_cores), "last");
static_assert(offsetof(struct record_lazy, valid) + 8 == sizeof(struct record_lazy), "last");
static_assert(offsetof(struct record_growth, valid) + 8 == sizeof(struct record_growth), "last");
static_assert(offsetof(struct record_node, valid) + 8 == sizeof(struct record_node), "last");

struct registry_header {
	uint64_t magic;
	uint32_t layout, kinds;
	uint32_t sizes[RECORD_FIRST_KINDS]; /* another build's structs are told by them */
	_Atomic uint64_t next_id;
	_Atomic uint32_t quick_starts;
	uint32_t reserved;
	/* places below have been written; grows before the write */
	_Atomic uint32_t used[RECORD_FIRST_KINDS];
};

/* Of a kind after the first ones: how it was made by the release that brought it. */
struct more_table {
	uint32_t size, count;
	_Atomic uint32_t used;
	uint32_t reserved;
	uint64_t offset;
};

struct more_header {
	uint64_t magic;
	uint32_t layout, reserved;
	_Atomic uint64_t kinds; /* grows when a table has been described */
	struct more_table tables[MORE_KINDS_MAX];
};
static_assert(sizeof(struct more_header) <= STEP, "the first table follows");
static_assert(RECORD_KINDS - RECORD_FIRST_KINDS <= MORE_KINDS_MAX, "described in the header");

struct records {
	int fd, more_fd;
	struct registry_header *header;
	struct more_header *more;
	unsigned char *tables[RECORD_KINDS];
	uint64_t offsets[RECORD_KINDS]; /* in its file */
	uint64_t backed[RECORD_KINDS]; /* bytes of each table */
	struct slots slots[RECORD_KINDS];
};

static uint64_t step_up(uint64_t bytes)
{
	return (bytes + STEP - 1) / STEP * STEP;
}

static bool is_first(int kind)
{
	return kind < RECORD_FIRST_KINDS;
}

static uint64_t registry_size(uint64_t offsets[RECORD_KINDS])
{
	uint64_t offset = STEP;

	for (int kind = 0; kind < RECORD_FIRST_KINDS; kind++) {
		if (offsets)
			offsets[kind] = offset;
		offset += step_up((uint64_t)kinds[kind].size * kinds[kind].count);
	}
	return offset;
}

static _Atomic uint32_t *records_used(const struct records *records, int kind)
{
	return is_first(kind) ? &records->header->used[kind]
			      : &records->more->tables[kind - RECORD_FIRST_KINDS].used;
}

static _Atomic uint64_t *record_valid(const struct records *records, enum record_kind kind,
				      uint32_t index)
{
	return (_Atomic uint64_t *)(records->tables[kind] +
				    (uint64_t)(index + 1) * kinds[kind].size - sizeof(uint64_t));
}

struct records *records_free(struct records *records)
{
	if (!records)
		return NULL;
	for (int kind = 0; kind < RECORD_KINDS; kind++)
		slots_deinit(&records->slots[kind]);
	memfd_unmap(records->header, registry_size(NULL));
	memfd_unmap(records->more, MORE_SIZE);
	close_fdp(&records->fd);
	close_fdp(&records->more_fd);
	free(records);
	return NULL;
}

static void records_freep(struct records **records)
{
	records_free(*records);
}

static void registry_format(struct registry_header *header)
{
	header->layout = REGISTRY_LAYOUT;
	header->kinds = RECORD_FIRST_KINDS;
	for (int kind = 0; kind < RECORD_FIRST_KINDS; kind++)
		header->sizes[kind] = kinds[kind].size;
	header->next_id = 1;
	atomic_thread_fence(memory_order_release);
	header->magic = REGISTRY_MAGIC;
}

/* -EPROTO: another layout. */
static int registry_check(const struct registry_header *header)
{
	if (header->magic != REGISTRY_MAGIC || header->layout != REGISTRY_LAYOUT ||
	    header->kinds != RECORD_FIRST_KINDS)
		return -EPROTO;
	for (int kind = 0; kind < RECORD_FIRST_KINDS; kind++)
		if (header->sizes[kind] != kinds[kind].size)
			return -EPROTO;
	return 0;
}

/* Describes the tables that the release which made the file did not have. */
static int more_extend(struct more_header *more)
{
	for (uint64_t i = more->kinds; i < RECORD_KINDS - RECORD_FIRST_KINDS; i++) {
		const struct more_table *last = i ? &more->tables[i - 1] : NULL;
		struct more_table *table = &more->tables[i];
		uint32_t kind = RECORD_FIRST_KINDS + (uint32_t)i;

		table->size = kinds[kind].size;
		table->count = kinds[kind].count;
		table->used = 0;
		table->offset =
			last ? last->offset + step_up((uint64_t)last->size * last->count) : STEP;
		if (table->offset + step_up((uint64_t)table->size * table->count) > MORE_SIZE)
			return -EPROTO;
		atomic_store_explicit(&more->kinds, i + 1, memory_order_release);
	}
	return 0;
}

/* -EPROTO: another layout. Kinds of later releases are left alone. */
static int more_check(const struct more_header *more)
{
	if (more->magic != MORE_MAGIC || more->layout != REGISTRY_LAYOUT ||
	    more->kinds > MORE_KINDS_MAX)
		return -EPROTO;
	for (uint32_t kind = RECORD_FIRST_KINDS; kind < RECORD_KINDS; kind++) {
		const struct more_table *table = &more->tables[kind - RECORD_FIRST_KINDS];

		if (kind - RECORD_FIRST_KINDS < more->kinds &&
		    (table->size != kinds[kind].size || table->count != kinds[kind].count ||
		     table->offset + (uint64_t)table->size * table->count > MORE_SIZE))
			return -EPROTO;
	}
	return 0;
}

/* Maps @fd, or a new file with room for a header. *@is_new: to be formatted. Takes @fd. */
static int file_open(int fd, const char *name, uint64_t bytes, bool *is_new, int *ret_fd,
		     void **ret_base)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	struct stat st;
	int r;

	*is_new = fd < 0;
	if (*is_new) {
		r = memfd_new(name, bytes, false, &owned_fd);
		if (r < 0)
			return r;
		r = memfd_back(owned_fd, 0, STEP);
		if (r < 0)
			return r;
	} else if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != bytes) {
		return -EPROTO;
	}
	r = memfd_map(owned_fd, bytes, false, ret_base);
	if (r < 0)
		return r;
	*ret_fd = take_fd(&owned_fd);
	return 0;
}

static int records_open_first(struct records *records, int fd)
{
	void *base;
	bool is_new;
	int r;

	r = file_open(fd, "hccld-registry", registry_size(records->offsets), &is_new, &records->fd,
		      &base);
	if (r < 0)
		return r;
	records->header = base;
	for (int kind = 0; kind < RECORD_FIRST_KINDS; kind++)
		records->tables[kind] = (unsigned char *)base + records->offsets[kind];
	if (is_new)
		registry_format(records->header);
	return registry_check(records->header);
}

static int records_open_more(struct records *records, int fd)
{
	void *base;
	bool is_new;
	int r;

	r = file_open(fd, "hccld-registry-more", MORE_SIZE, &is_new, &records->more_fd, &base);
	if (r < 0)
		return r;
	records->more = base;
	if (is_new) {
		records->more->layout = REGISTRY_LAYOUT;
		records->more->magic = MORE_MAGIC;
	}
	r = more_check(records->more);
	if (r < 0)
		return r;
	r = more_extend(records->more);
	if (r < 0)
		return r;
	for (int kind = RECORD_FIRST_KINDS; kind < RECORD_KINDS; kind++) {
		records->offsets[kind] = records->more->tables[kind - RECORD_FIRST_KINDS].offset;
		records->tables[kind] = (unsigned char *)base + records->offsets[kind];
	}
	return 0;
}

/* The places that are in use. */
static int records_load(struct records *records)
{
	for (int kind = 0; kind < RECORD_KINDS; kind++) {
		uint32_t used = *records_used(records, kind);
		int r;

		if (used > kinds[kind].count)
			return -EPROTO;
		r = slots_init(&records->slots[kind], kinds[kind].count);
		if (r < 0)
			return r;
		for (uint32_t i = 0; r == 0 && i < used; i++)
			if (*record_valid(records, kind, i) == RECORD_VALID)
				r = slots_take_at(&records->slots[kind], i);
		if (r < 0)
			return r;
		records->backed[kind] = step_up((uint64_t)used * kinds[kind].size);
	}
	return 0;
}

int records_new(int fd, int more_fd, struct records **ret_records)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	CLEANUP(close_fdp) int owned_more_fd = more_fd;
	CLEANUP(records_freep) struct records *records = NULL;
	int r;

	records = calloc(1, sizeof(*records));
	if (!records)
		return -ENOMEM;
	records->fd = records->more_fd = -1;
	r = records_open_first(records, take_fd(&owned_fd));
	if (r < 0)
		return r;
	r = records_open_more(records, take_fd(&owned_more_fd));
	if (r < 0)
		return r;
	r = records_load(records);
	if (r < 0)
		return r;
	*ret_records = take_ptr(&records);
	return 0;
}

int records_fd(const struct records *records)
{
	return records->fd;
}

int records_more_fd(const struct records *records)
{
	return records->more_fd;
}

uint64_t records_next_id(struct records *records)
{
	return atomic_fetch_add_explicit(&records->header->next_id, 1, memory_order_relaxed);
}

/* Backs the table up to and with place @index. */
static int records_reserve(struct records *records, enum record_kind kind, uint32_t index)
{
	uint64_t wanted = step_up((uint64_t)(index + 1) * kinds[kind].size);
	int r;

	if (wanted > records->backed[kind]) {
		r = memfd_back(is_first(kind) ? records->fd : records->more_fd,
			       records->offsets[kind] + records->backed[kind],
			       wanted - records->backed[kind]);
		if (r < 0)
			return r;
		records->backed[kind] = wanted;
	}
	if (index >= *records_used(records, kind))
		atomic_store_explicit(records_used(records, kind), index + 1, memory_order_release);
	return 0;
}

int records_add(struct records *records, enum record_kind kind, const void *content,
		uint32_t *ret_index)
{
	uint32_t index;
	int r;

	r = slots_take_lowest(&records->slots[kind], &index);
	if (r < 0)
		return -EDQUOT;
	r = records_reserve(records, kind, index);
	if (r < 0) {
		slots_give(&records->slots[kind], index);
		return r;
	}
	memcpy(records->tables[kind] + (uint64_t)index * kinds[kind].size, content,
	       kinds[kind].size - sizeof(uint64_t));
	/* the next process must find the content once it finds the word: release */
	atomic_store_explicit(record_valid(records, kind, index), RECORD_VALID,
			      memory_order_release);
	*ret_index = index;
	return 0;
}

void records_remove(struct records *records, enum record_kind kind, uint32_t index)
{
	/* before the place is written again: the fence keeps a later record's content behind it */
	atomic_store_explicit(record_valid(records, kind, index), 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	slots_give(&records->slots[kind], index);
}

void *records_get(struct records *records, enum record_kind kind, uint32_t index)
{
	if (index >= records_limit(records, kind) ||
	    atomic_load_explicit(record_valid(records, kind, index), memory_order_acquire) !=
		    RECORD_VALID)
		return NULL;
	return records->tables[kind] + (uint64_t)index * kinds[kind].size;
}

uint32_t records_limit(const struct records *records, enum record_kind kind)
{
	return *records_used(records, kind);
}

uint64_t records_bytes(const struct records *records)
{
	uint64_t bytes = 2 * STEP;

	for (int kind = 0; kind < RECORD_KINDS; kind++)
		bytes += records->backed[kind];
	return bytes;
}

uint32_t records_count_start(struct records *records)
{
	return atomic_fetch_add_explicit(&records->header->quick_starts, 1, memory_order_relaxed) +
	       1;
}

void records_settled(struct records *records)
{
	atomic_store_explicit(&records->header->quick_starts, 0, memory_order_relaxed);
}
