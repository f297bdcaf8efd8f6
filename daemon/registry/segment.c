/* SPDX-License-Identifier: Apache-2.0 */
/* Segments. */
#include "registry/segment.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/memfd.h"
#include "proto/cleanup.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/lazy.h"
#include "registry/notify.h"
#include "registry/quota.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/share.h"

#define POPULATED_MIN (128u << 10) /* of less a few faults map all pages, and often nobody but the client's threads ever looks at them */

static int memory_new(uint64_t bytes, bool is_backed, struct segment_memory *ret_memory)
{
	CLEANUP(close_fdp) int fd = -1;
	void *base;
	int r;

	r = memfd_new("hccld-segment", bytes, is_backed, &fd);
	if (r < 0)
		return r;
	r = memfd_map(fd, bytes, is_backed && bytes >= POPULATED_MIN, &base);
	if (r < 0)
		return r;
	*ret_memory = (struct segment_memory){ .fd = take_fd(&fd), .base = base, .bytes = bytes };
	return 0;
}

int segment_memory_new(uint64_t bytes, struct segment_memory *ret_memory)
{
	return memory_new(bytes, true, ret_memory);
}

int segment_memory_new_sparse(uint64_t bytes, struct segment_memory *ret_memory)
{
	return memory_new(bytes, false, ret_memory);
}

void segment_memory_release(struct segment_memory *memory)
{
	memfd_unmap(memory->base, memory->bytes);
	memory->base = NULL;
	if (memory->fd >= 0)
		memfd_punch(memory->fd, 0, memory->bytes);
	close_fdp(&memory->fd);
}

void segment_release(struct segment *segment)
{
	struct segment_memory *memory = &segment->memory;

	if (segment->kind != SEGMENT_SIDE || !segment->context->session->leaves_remnant) {
		segment_memory_release(memory);
		return;
	}
	memfd_unmap(memory->base, memory->bytes);
	memory->base = NULL;
	close_fdp(&memory->fd);
}

bool segment_kind_is_known(uint32_t kind)
{
	return kind <= SEGMENT_SIDE || kind == SEGMENT_EVENT;
}

uint32_t segment_device(const struct context *context, enum segment_kind kind)
{
	return kind == SEGMENT_DEVICE ? context->device : HCCLD_DEVICES_MAX;
}

struct segment *segment_alloc(void)
{
	struct segment *segment = calloc(1, sizeof(*segment));

	if (!segment)
		return NULL;
	list_init(&segment->link);
	list_init(&segment->imports);
	list_init(&segment->exports);
	list_init(&segment->import_link);
	list_init(&segment->lazy_link);
	list_init(&segment->channel_link);
	segment->memory.fd = -1;
	return segment;
}

struct segment *segment_free(struct segment *segment)
{
	if (!segment)
		return NULL;
	list_for_each(struct export, export, &segment->exports, link)
		free(export);
	list_remove(&segment->lazy_link);
	free(segment->tag);
	memfd_unmap(segment->memory.base, segment->memory.bytes);
	close_fdp(&segment->memory.fd);
	free(segment);
	return NULL;
}

void segment_publish(struct segment *segment)
{
	struct session *session = segment->context->session;
	uint32_t index = VIEW_INDEX(segment->id);
	struct view_segment *view = &session->view.segments[index];
	unsigned char *base = segment->memory.base;

	if (segment->is_import)
		base = segment->origin ? (unsigned char *)segment->origin->memory.base +
						 segment->offset :
					 NULL;

	session->places[index].segment = segment;
	list_append(&segment->context->segments, &segment->link);
	view->base = base;
	view->size = segment->memory.bytes;
	view->is_import = segment->is_import;
	view->comm = NULL;
	view->kind = (uint8_t)segment->kind;
	/* what is handed out to importers is backed */
	view->pages = segment->kind == SEGMENT_NOTIFY && !segment->is_import ? segment->context->notifies.pages : NULL;
	atomic_store_explicit(&view->retired, 0, memory_order_relaxed);
	/* last: whoever finds the id finds the rest */
	atomic_store_explicit(&view->id, segment->id, memory_order_release);
}

/* Descriptor and records. */
static int segment_store(struct segment *segment, const struct segment_memory *memory)
{
	struct session *session = segment->context->session;
	struct registry *registry = session->registry;
	const struct record_segment record = { .session = session->view.id,
					       .context = segment->context->id,
					       .id = segment->id,
					       .serial = segment->serial,
					       .bytes = memory->bytes,
					       .kind = segment->kind };
	int r;

	r = segment->rank ? lazy_record(segment) : 0;
	if (r < 0)
		return r;
	r = store_add(registry->store, STORE_SEGMENT, segment->serial, memory->fd);
	if (r == 0) {
		r = records_add(registry->records, RECORD_SEGMENT, &record, &segment->record);
		if (r < 0)
			store_remove(registry->store, STORE_SEGMENT, segment->serial);
	}
	if (r < 0 && segment->rank)
		records_remove(registry->records, RECORD_LAZY, segment->lazy_record);
	return r;
}

/* @rank: 0, or the handle of the rank whose HCCL buffer it is. */
static int segment_make(struct context *context, enum segment_kind kind, uint64_t rank, struct segment_memory *memory,
			struct segment **ret_segment)
{
	struct session *session = context->session;
	CLEANUP(freep) struct segment *segment = segment_alloc();
	uint32_t index;
	int r;

	if (!segment)
		return -ENOMEM;
	if (session_take(session, QUOTA_DESCRIPTORS, 1) < 0)
		return -EUSERS;
	r = slots_take(&session->segment_slots, &index);
	if (r < 0) {
		session_give(session, QUOTA_DESCRIPTORS, 1);
		return -EDQUOT;
	}
	segment->context = context;
	segment->kind = kind;
	segment->rank = rank;
	segment->id = session_next_id(session, index);
	segment->serial = records_next_id(session->registry->records);
	r = segment_store(segment, memory);
	if (r < 0) {
		slots_give(&session->segment_slots, index);
		session_give(session, QUOTA_DESCRIPTORS, 1);
		return r;
	}
	segment->memory = *memory;
	segment->charged = rank || kind == SEGMENT_NOTIFY ? 0 : memory->bytes;
	*memory = (struct segment_memory){ .fd = -1 };
	segment_publish(segment);
	*ret_segment = take_ptr(&segment);
	return 0;
}

int segment_new(struct context *context, enum segment_kind kind, struct segment_memory *memory,
		struct segment **ret_segment)
{
	return segment_make(context, kind, 0, memory, ret_segment);
}

int segment_new_lazy(struct rank *rank, struct segment_memory *memory, struct segment **ret_segment)
{
	return segment_make(rank->context, SEGMENT_DEVICE, rank->handle, memory, ret_segment);
}

static bool record_fits(const struct context *context, const struct record_segment *record)
{
	bool is_known = record->kind == SEGMENT_NOTIFY ? !context->notifies.segment
						       : segment_kind_is_known(record->kind);

	return is_known && VIEW_INDEX(record->id) < HCCLD_SEGMENTS_PER_SESSION;
}

int segment_restore(struct context *context, uint32_t index, int fd)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	CLEANUP(freep) struct segment *segment = NULL;
	struct session *session = context->session;
	const struct record_segment *record =
		records_get(session->registry->records, RECORD_SEGMENT, index);
	struct stat st;
	void *base;
	int r;

	assert(record);
	if (!record_fits(context, record) || fstat(fd, &st) < 0 || (uint64_t)st.st_size != record->bytes)
		return -EPROTO;
	segment = segment_alloc();
	if (!segment)
		return -ENOMEM;
	segment->is_orphan = record->retired == SEGMENT_ORPHAN;
	r = memfd_map(fd, record->bytes, false, &base);
	if (r < 0)
		return r;
	if (slots_take_at(&session->segment_slots, VIEW_INDEX(record->id)) < 0) {
		memfd_unmap(base, record->bytes);
		return -EPROTO;
	}
	segment->context = context;
	segment->id = record->id;
	segment->serial = record->serial;
	segment->kind = (enum segment_kind)record->kind;
	segment->record = index;
	segment->memory = (struct segment_memory){ take_fd(&owned_fd), base, record->bytes };
	segment->charged = record->bytes;
	/* who has asked the process before is not known */
	segment->is_mapped = segment->kind == SEGMENT_DEVICE || segment->kind == SEGMENT_HOST;
	r = segment->kind == SEGMENT_NOTIFY ? notifies_adopt(context, segment, &segment->charged) : 0;
	if (r < 0) {
		memfd_unmap(base, record->bytes);
		close_fdp(&segment->memory.fd);
		slots_give(&session->segment_slots, VIEW_INDEX(record->id));
		return r;
	}
	session_force(session, segment_device(context, segment->kind), segment->charged);
	session_take_back(session, QUOTA_DESCRIPTORS, 1);
	segment_publish(take_ptr(&segment));
	return 0;
}

void segment_drop(struct registry *registry, uint32_t index, int fd)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	const struct record_segment *record = records_get(registry->records, RECORD_SEGMENT, index);

	if (owned_fd >= 0)
		memfd_punch(owned_fd, 0, record->bytes);
	store_remove(registry->store, STORE_SEGMENT, record->serial);
	records_remove(registry->records, RECORD_SEGMENT, index);
}

static void segment_record_retired(struct segment *segment)
{
	struct records *records = segment->context->session->registry->records;

	if (segment->is_import) {
		struct record_import *record =
			records_get(records, RECORD_IMPORT, segment->record);

		atomic_store_explicit(&record->state,
				      segment->is_closing ? IMPORT_CLOSING : IMPORT_LOST,
				      memory_order_release);
	} else {
		struct record_segment *record =
			records_get(records, RECORD_SEGMENT, segment->record);

		atomic_store_explicit(&record->retired, SEGMENT_RETIRED, memory_order_release);
	}
}

struct segment *segment_of_rank(const struct rank *rank, uint64_t id)
{
	struct segment *segment = session_segment(rank->session, id);
	bool is_plain = segment && !segment->is_import && !segment->rank && (segment->kind == SEGMENT_DEVICE || segment->kind == SEGMENT_HOST);

	return is_plain && segment->context == rank->context ? segment : NULL;
}

void segment_orphan(struct segment *segment)
{
	struct record_segment *record = records_get(segment->context->session->registry->records,
						    RECORD_SEGMENT, segment->record);

	segment->is_orphan = true;
	atomic_store_explicit(&record->retired, SEGMENT_ORPHAN, memory_order_release);
}

/* Ranks that are not alive say so themselves. */
static void peers_lose(const struct segment *segment)
{
	list_for_each(struct rank, rank, &segment->context->ranks, link)
		/*
		 * seq_cst: a peer that still finds the old number after a copy of its own has copied before the memory goes (P4)
		 */
		atomic_fetch_add_explicit(&rank->comm->view.region->members[rank->rank].retired, 1, memory_order_seq_cst);
}

void segment_retire_words(struct segment *segment)
{
	struct session *session = segment->context->session;

	/* first: the next process would not do it for what it finds retired */
	if (segment->is_mapped)
		peers_lose(segment);
	/* the next process must not find it whole: offers in it fail then as they do now */
	segment_record_retired(segment);
	/*
	 * seq_cst: a receive that still finds 0 here after its copy has copied before the memory
	 * goes (P4)
	 */
	atomic_store_explicit(&session->view.segments[VIEW_INDEX(segment->id)].retired, 1,
			      memory_order_seq_cst);
}

void segment_retire(struct segment *segment)
{
	lazy_close(segment);
	segment_retire_words(segment);
	share_end(segment);
}

void segment_unpublish(struct segment *segment)
{
	struct session *session = segment->context->session;

	atomic_store_explicit(&session->view.segments[VIEW_INDEX(segment->id)].id, 0,
			      memory_order_release);
}

void segment_remove(struct segment *segment)
{
	struct session *session = segment->context->session;
	struct registry *registry = session->registry;
	uint32_t index = VIEW_INDEX(segment->id);

	if (segment->is_import) {
		records_remove(registry->records, RECORD_IMPORT, segment->record);
		import_unlink(segment);
		list_remove(&segment->channel_link);
		session->quota->imports--;
	} else {
		records_remove(registry->records, RECORD_SEGMENT, segment->record);
		store_remove(registry->store, STORE_SEGMENT, segment->serial);
		/* after the segment's own: a record without a segment is dropped by the next process */
		if (segment->rank)
			lazy_forget(segment);
		session_refund(session, segment_device(segment->context, segment->kind), segment->charged);
		session_give(session, QUOTA_DESCRIPTORS, 1);
	}
	session->places[index].segment = NULL;
	slots_give(&session->segment_slots, index);
	list_remove(&segment->link);
	free(segment->tag);
	free(segment);
}
