/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of records in a memfd. The file is sparse; a table is backed in steps before it is written
 * to.
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
};

static_assert(offsetof(struct record_tenant, valid) + 8 == sizeof(struct record_tenant), "last");
static_assert(offsetof(struct record_session, valid) + 8 == sizeof(struct record_session), "last");
static_assert(offsetof(struct record_context, valid) + 8 == sizeof(struct record_context), "last");
static_assert(offsetof(struct record_stream, valid) + 8 == sizeof(struct record_stream), "last");
static_assert(offsetof(struct record_segment, valid) + 8 == sizeof(struct record_segment), "last");
static_assert(offsetof(struct record_comm, valid) + 8 == sizeof(struct record_comm), "last");
static_assert(offsetof(struct record_rank, valid) + 8 == sizeof(struct record_rank), "last");
static_assert(offsetof(struct record_extent, valid) + 8 == sizeof(struct record_extent), "last");

struct registry_header {
	uint64_t magic;
	uint32_t layout, kinds;
	uint32_t sizes[RECORD_KINDS]; /* another build's structs are told by them */
	_Atomic uint64_t next_id;
	_Atomic uint32_t quick_starts;
	uint32_t reserved;
	_Atomic uint32_t
		used[RECORD_KINDS]; /* places below have been written; grows before the write */
};

struct records {
	int fd;
	struct registry_header *header;
	unsigned char *tables[RECORD_KINDS];
	uint64_t offsets[RECORD_KINDS];
	uint64_t backed[RECORD_KINDS]; /* bytes of each table */
	struct slots slots[RECORD_KINDS];
};

static uint64_t step_up(uint64_t bytes)
{
	return (bytes + STEP - 1) / STEP * STEP;
}

static uint64_t registry_size(uint64_t offsets[RECORD_KINDS])
{
	uint64_t offset = STEP;

	for (int kind = 0; kind < RECORD_KINDS; kind++) {
		if (offsets)
			offsets[kind] = offset;
		offset += step_up((uint64_t)kinds[kind].size * kinds[kind].count);
	}
	return offset;
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
	close_fdp(&records->fd);
	free(records);
	return NULL;
}

static void records_freep(struct records **records)
{
	records_free(*records);
}

static void records_format(struct records *records)
{
	struct registry_header *header = records->header;

	header->layout = REGISTRY_LAYOUT;
	header->kinds = RECORD_KINDS;
	for (int kind = 0; kind < RECORD_KINDS; kind++)
		header->sizes[kind] = kinds[kind].size;
	header->next_id = 1;
	atomic_thread_fence(memory_order_release);
	header->magic = REGISTRY_MAGIC;
}

/* -EPROTO: another layout. */
static int records_load(struct records *records)
{
	const struct registry_header *header = records->header;

	if (header->magic != REGISTRY_MAGIC || header->layout != REGISTRY_LAYOUT ||
	    header->kinds != RECORD_KINDS)
		return -EPROTO;
	for (int kind = 0; kind < RECORD_KINDS; kind++) {
		if (header->sizes[kind] != kinds[kind].size ||
		    header->used[kind] > kinds[kind].count)
			return -EPROTO;
		for (uint32_t i = 0; i < header->used[kind]; i++)
			if (*record_valid(records, kind, i) == RECORD_VALID)
				slots_take_at(&records->slots[kind], i);
		records->backed[kind] = step_up((uint64_t)header->used[kind] * kinds[kind].size);
	}
	return 0;
}

int records_new(int fd, struct records **ret_records)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	CLEANUP(records_freep) struct records *records = NULL;
	uint64_t bytes = registry_size(NULL);
	struct stat st;
	void *base;
	int r;

	records = calloc(1, sizeof(*records));
	if (!records)
		return -ENOMEM;
	records->fd = -1;
	if (fd < 0) {
		r = memfd_new("hccld-registry", bytes, false, &owned_fd);
		if (r < 0)
			return r;
		r = memfd_back(owned_fd, 0, STEP);
		if (r < 0)
			return r;
	} else if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != bytes) {
		return -EPROTO;
	}
	r = memfd_map(owned_fd, bytes, false, &base);
	if (r < 0)
		return r;
	records->header = base;
	records->fd = take_fd(&owned_fd);
	registry_size(records->offsets);
	for (int kind = 0; kind < RECORD_KINDS; kind++) {
		records->tables[kind] = (unsigned char *)base + records->offsets[kind];
		r = slots_init(&records->slots[kind], kinds[kind].count);
		if (r < 0)
			return r;
	}
	if (fd < 0)
		records_format(records);
	else
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
		r = memfd_back(records->fd, records->offsets[kind] + records->backed[kind],
			       wanted - records->backed[kind]);
		if (r < 0)
			return r;
		records->backed[kind] = wanted;
	}
	if (index >= records->header->used[kind])
		atomic_store_explicit(&records->header->used[kind], index + 1,
				      memory_order_release);
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
	return records->header->used[kind];
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
