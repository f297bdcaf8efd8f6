/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/lazy.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hole.h"
#include "base/log.h"
#include "base/memfd.h"
#include "proto/clock.h"
#include "proto/limits.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/quota.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"

static struct session *owner_of(const struct segment *segment)
{
	return segment->context->session;
}

/* The rank of a buffer, also one that is closing; NULL: it is gone. */
static struct rank *rank_of(const struct segment *segment)
{
	struct rank *rank = owner_of(segment)->places[VIEW_INDEX(segment->rank)].rank;

	return rank && rank->handle == segment->rank ? rank : NULL;
}

static void lazy_link(struct segment *segment)
{
	static bool was_told;
	int r = hole_watch(segment->memory.base, segment->memory.bytes);

	if (r < 0 && !was_told) {
		was_told = true;
		log_notice("no userfaultfd (%s): our own copies into HCCL buffers are not refused where memory has no room", strerror(-r));
	}
	owner_of(segment)->quota->buffer_bytes += segment->memory.bytes;
	list_append(&owner_of(segment)->registry->lazy, &segment->lazy_link);
}

int lazy_new(struct rank *rank, uint64_t bytes, struct segment **ret_segment)
{
	struct segment_memory memory = { .fd = -1, .bytes = bytes };
	struct segment *segment;
	uint64_t used = rank->session->quota->buffer_bytes;
	int r;

	if (bytes > HCCLD_BUFFER_BYTES_PER_USER || used > HCCLD_BUFFER_BYTES_PER_USER - bytes)
		return -EFBIG;
	r = memfd_new("hccld-buffer", bytes, false, &memory.fd);
	if (r == 0)
		r = memfd_map(memory.fd, bytes, false, &memory.base);
	if (r == 0)
		r = segment_new_lazy(rank, &memory, &segment);
	if (r < 0) {
		segment_memory_release(&memory);
		return r;
	}
	lazy_link(segment);
	rank->buffer = segment;
	*ret_segment = segment;
	return 0;
}

static void lazy_charge(struct segment *segment)
{
	uint32_t device = segment_device(segment->context, segment->kind);
	uint64_t bytes;
	struct stat st;

	if (fstat(segment->memory.fd, &st) < 0)
		return;
	bytes = (uint64_t)st.st_blocks * 512;
	if (bytes > segment->charged)
		session_force(owner_of(segment), device, bytes - segment->charged);
	else if (bytes < segment->charged)
		session_refund(owner_of(segment), device, segment->charged - bytes);
	segment->charged = bytes;
}

void lazy_look(struct registry *registry)
{
	uint64_t begin_ns;

	if (list_is_empty(&registry->lazy) || !look_is_due(&registry->lazy_look))
		return;
	begin_ns = look_begin();
	list_for_each(struct segment, segment, &registry->lazy, lazy_link)
		lazy_charge(segment);
	look_end(&registry->lazy_look, begin_ns);
}

static void room_measure(void)
{
	uint64_t taken = hole_taken();

	hole_set_room(memfd_room(), taken);
}

void lazy_measure(struct registry *registry)
{
	if (!list_is_empty(&registry->lazy))
		room_measure();
}

/* The segment that a record is about, or NULL: it is gone. */
static struct segment *segment_of(struct registry *registry, const struct record_lazy *record)
{
	struct session *session = idmap_get(&registry->session_ids, record->session);
	struct segment *segment = session ? session_segment(session, record->segment) : NULL;

	if (!segment || segment->is_import || segment->kind != SEGMENT_DEVICE || segment->rank ||
	    VIEW_INDEX(record->rank) >= HCCLD_RANKS_PER_SESSION)
		return NULL;
	return segment;
}

void lazy_restore(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_LAZY); i++) {
		const struct record_lazy *record = records_get(registry->records, RECORD_LAZY, i);
		struct segment *segment = record ? segment_of(registry, record) : NULL;
		struct rank *rank;

		if (!segment) {
			if (record)
				records_remove(registry->records, RECORD_LAZY, i);
			continue;
		}
		segment->rank = record->rank;
		segment->is_mapped = false;
		segment->lazy_record = i;
		lazy_link(segment);
		rank = rank_of(segment);
		if (rank && rank->context == segment->context && !rank->buffer)
			rank->buffer = segment;
	}
	lazy_look(registry);
}

bool lazy_is_stray(const struct segment *segment)
{
	const struct rank *rank;

	if (!segment->rank)
		return false;
	rank = rank_of(segment);
	return !rank || rank->buffer != segment;
}

int lazy_record(struct segment *segment)
{
	const struct record_lazy record = { .session = owner_of(segment)->view.id, .segment = segment->id, .rank = segment->rank };

	return records_add(owner_of(segment)->registry->records, RECORD_LAZY, &record, &segment->lazy_record);
}

/* From here on its memory may go in another thread. */
void lazy_close(struct segment *segment)
{
	struct rank *rank;

	if (!segment->rank)
		return;
	list_remove(&segment->lazy_link);
	rank = rank_of(segment);
	if (rank && rank->buffer == segment)
		rank->buffer = NULL;
}

void lazy_forget(struct segment *segment)
{
	records_remove(owner_of(segment)->registry->records, RECORD_LAZY, segment->lazy_record);
	owner_of(segment)->quota->buffer_bytes -= segment->memory.bytes;
	/* its pages are free; who else has pages of it, whose they were, and what was measured meanwhile, the kernel knows */
	if (segment->charged)
		room_measure();
}
