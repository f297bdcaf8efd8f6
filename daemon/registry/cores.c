/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vector cores of devices. A record for each stream that holds some: the record first, then the counts, which are made again from it. When
 * the stream goes and a kernel of it runs on, the record becomes the kernel's by one store: nothing that could fail, or be cut in two.
 */
#include "registry/cores.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "proto/cleanup.h"
#include "proto/clock.h"
#include "registry/context.h"
#include "registry/record.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/thread.h"

#define TOP 3
#define LOOKED_AT_MAX 64u /* tasks of a stream */

static struct registry *registry_of(const struct stream *stream)
{
	return stream->context->session->registry;
}

static struct device *device_of(const struct cores *cores)
{
	return &cores->session->registry->devices[cores->device];
}

static struct record_cores *record_of(const struct cores *cores)
{
	return records_get(cores->session->registry->records, RECORD_CORES, cores->record);
}

uint32_t cores_count(const struct stream *stream)
{
	return stream->cores ? stream->cores->count : 0;
}

static void set_count(struct cores *cores, uint32_t count)
{
	device_of(cores)->cores += count - cores->count;
	cores->count = count;
}

/* With the record at @index. */
static struct cores *cores_make(struct session *session, const struct record_cores *record, uint32_t index)
{
	struct cores *cores = calloc(1, sizeof(*cores));

	if (!cores)
		return NULL;
	list_init(&cores->link);
	cores->session = session;
	cores->device = record->device;
	cores->record = index;
	return cores;
}

static void cores_publish(struct cores *cores, struct stream *stream, uint32_t count)
{
	list_append(&cores->session->cores, &cores->link);
	cores->stream = stream;
	if (stream)
		stream->cores = cores;
	set_count(cores, count);
}

static int cores_add(struct stream *stream, uint32_t count)
{
	const struct record_cores record = { .session = stream->context->session->view.id,
					     .context = stream->context->id,
					     .stream = stream->index,
					     .device = stream->context->device,
					     .count = count };
	CLEANUP(freep) struct cores *cores = cores_make(stream->context->session, &record, 0);
	int r;

	if (!cores)
		return -ENOMEM;
	r = records_add(registry_of(stream)->records, RECORD_CORES, &record, &cores->record);
	if (r < 0)
		return r;
	cores_publish(take_ptr(&cores), stream, count);
	return 0;
}

bool cores_have_room(const struct stream *stream, uint32_t count)
{
	const struct registry *registry = registry_of(stream);
	uint64_t others = registry->devices[stream->context->device].cores - cores_count(stream);

	/* after a restart with a smaller budget more may be in use than there is */
	return others + count <= registry->cores_per_device;
}

int cores_take(struct stream *stream, uint32_t count)
{
	uint32_t held = cores_count(stream);

	if (count <= held)
		return 0;
	if (count > registry_of(stream)->cores_per_device)
		return -ERANGE;
	if (!cores_have_room(stream, count))
		return -EXFULL;
	if (!held)
		return cores_add(stream, count);
	atomic_store_explicit(&record_of(stream->cores)->count, count, memory_order_release);
	set_count(stream->cores, count);
	return 0;
}

void cores_free(struct cores *cores)
{
	records_remove(cores->session->registry->records, RECORD_CORES, cores->record);
	set_count(cores, 0);
	if (cores->stream)
		cores->stream->cores = NULL;
	list_remove(&cores->link);
	free(cores);
}

void cores_give(struct stream *stream)
{
	if (stream->cores)
		cores_free(stream->cores);
}

void cores_free_all(struct session *session)
{
	list_for_each(struct cores, cores, &session->cores, link)
		cores_free(cores);
}

void cores_forget(struct session *session)
{
	list_for_each(struct cores, cores, &session->cores, link)
		free(cores);
}

int cores_keep(struct stream *stream, uint32_t count, uint64_t holder)
{
	struct cores *cores = stream->cores;
	struct record_cores *record;

	assert(holder);
	if (!count || count > cores_count(stream))
		return -ERANGE;
	record = record_of(cores);
	cores->holder = holder;
	cores->rank = thread_stream_rank(stream);
	cores->since_ns = clock_now_ns();
	/* cut off here, the stream holds what the request is granted when it comes again */
	atomic_store_explicit(&record->count, count, memory_order_release);
	atomic_store_explicit(&record->rank, cores->rank, memory_order_relaxed);
	atomic_store_explicit(&record->since_ns, cores->since_ns, memory_order_relaxed);
	/* release: the next process finds whose, and since when */
	atomic_store_explicit(&record->holder, holder, memory_order_release);
	cores->stream = NULL;
	stream->cores = NULL;
	set_count(cores, count);
	return 0;
}

struct cores *cores_find(const struct session *session, uint64_t holder)
{
	list_for_each(struct cores, cores, &session->cores, link)
		if (!cores->stream && cores->holder == holder)
			return cores;
	return NULL;
}

int cores_restore(struct registry *registry, uint32_t index)
{
	const struct record_cores *record = records_get(registry->records, RECORD_CORES, index);
	uint32_t count = atomic_load_explicit(&record->count, memory_order_relaxed);
	uint64_t holder = atomic_load_explicit(&record->holder, memory_order_acquire);
	struct session *session = idmap_get(&registry->session_ids, record->session);
	struct stream *stream = session && !holder ? session_stream_at(session, record->stream) : NULL;
	struct cores *cores;

	if (!session || !count || record->device >= registry->device_count)
		return -EPROTO;
	/* a daemon may have ended between the stream's record and this one */
	if (!holder && (!stream || stream->context->id != record->context || stream->context->device != record->device || stream->cores))
		return -EPROTO;
	cores = cores_make(session, record, index);
	if (!cores)
		return -ENOMEM;
	cores->holder = holder;
	cores->rank = atomic_load_explicit(&record->rank, memory_order_relaxed);
	cores->since_ns = atomic_load_explicit(&record->since_ns, memory_order_relaxed);
	cores_publish(cores, stream, count);
	return 0;
}

/*
 * As far as we look: one with more in its queue is not about to give anything back. A client can lie about that: then others wait in vain for
 * as long as such a request is held.
 */
static bool may_have_kernel(const struct stream_ring *ring)
{
	uint64_t position = atomic_load_explicit(&ring->completed, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	for (uint32_t i = 0; position < tail; i++) {
		struct task task;

		if (i == LOOKED_AT_MAX)
			return true;
		memcpy(&task, &ring->slots[position % HCCLD_STREAM_SLOTS].task, sizeof(task));
		if (task.kind == TASK_HOST && task.flags & TASK_KERNEL)
			return true;
		position += task.slot_count ? task.slot_count : 1;
	}
	return false;
}

static bool is_idle(const struct cores *cores)
{
	return cores->stream && !cores->stream->is_closing && !may_have_kernel(cores->stream->ring);
}

bool cores_will_come(const struct stream *stream, uint32_t count)
{
	const struct registry *registry = registry_of(stream);
	uint32_t device = stream->context->device;
	uint64_t idle = 0;

	list_for_each(struct session, session, &registry->sessions, link)
		list_for_each(struct cores, cores, &session->cores, link)
			if (cores->device == device && is_idle(cores))
				idle += cores->count;
	return registry->devices[device].cores - idle + count <= registry->cores_per_device;
}

/* What a session holds of a device. */
struct share {
	const struct session *session;
	uint32_t count, orphans; /* orphans: of kernels whose stream has gone */
};

static struct share share_of(const struct session *session, uint32_t device)
{
	struct share share = { .session = session };

	list_for_each(struct cores, cores, &session->cores, link) {
		if (cores->device != device)
			continue;
		share.count += cores->count;
		share.orphans += cores->stream ? 0 : cores->count;
	}
	return share;
}

static void top_add(struct share top[TOP], struct share mine)
{
	for (int i = 0; i < TOP && mine.count; i++) {
		struct share other = top[i];

		if (other.count >= mine.count)
			continue;
		top[i] = mine;
		mine = other;
	}
}

void cores_describe(const struct registry *registry, uint32_t device, struct text *text)
{
	struct share top[TOP] = { 0 };

	list_for_each(struct session, session, &registry->sessions, link)
		top_add(top, share_of(session, device));
	text_add(text, "has %" PRIu32 " vector cores, of which %" PRIu32 " are in use", registry->cores_per_device,
		 registry->devices[device].cores);
	for (int i = 0; i < TOP && top[i].count; i++) {
		text_add(text, "%s pid %d (%s): %" PRIu32, i ? "," : ";", top[i].session->view.pid, top[i].session->process, top[i].count);
		if (top[i].orphans)
			text_add(text, " (%" PRIu32 " by kernels that still run, their stream has gone)", top[i].orphans);
	}
}
