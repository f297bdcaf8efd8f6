/* SPDX-License-Identifier: Apache-2.0 */
/* Vector cores of devices. A record per stream that holds some: the record first, then the counts, which are made again from it. */
#include "registry/cores.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "registry/context.h"
#include "registry/record.h"
#include "registry/registry.h"
#include "registry/session.h"

#define TOP 3

static struct registry *registry_of(const struct stream *stream)
{
	return stream->context->session->registry;
}

static void cores_count(struct stream *stream, uint32_t count)
{
	struct device *device = &registry_of(stream)->devices[stream->context->device];

	device->cores = device->cores - stream->cores + count;
	stream->cores = count;
}

int cores_take(struct stream *stream, uint32_t count)
{
	struct registry *registry = registry_of(stream);
	const struct device *device = &registry->devices[stream->context->device];
	struct record_cores *held;
	int r;

	if (count <= stream->cores)
		return 0;
	if (count > registry->cores_per_device)
		return -ERANGE;
	/* after a restart with a smaller budget more may be in use than there is */
	if (device->cores - stream->cores + count > registry->cores_per_device)
		return -EXFULL;
	if (stream->cores) {
		held = records_get(registry->records, RECORD_CORES, stream->cores_record);
		atomic_store_explicit(&held->count, count, memory_order_release);
	} else {
		const struct record_cores record = { .session = stream->context->session->view.id,
						     .context = stream->context->id,
						     .stream = stream->index,
						     .count = count };

		r = records_add(registry->records, RECORD_CORES, &record, &stream->cores_record);
		if (r < 0)
			return r;
	}
	cores_count(stream, count);
	return 0;
}

void cores_give(struct stream *stream)
{
	if (!stream->cores)
		return;
	records_remove(registry_of(stream)->records, RECORD_CORES, stream->cores_record);
	cores_count(stream, 0);
}

int cores_restore(struct registry *registry, uint32_t index)
{
	const struct record_cores *record = records_get(registry->records, RECORD_CORES, index);
	uint32_t count = atomic_load_explicit(&record->count, memory_order_relaxed);
	struct session *session = idmap_get(&registry->session_ids, record->session);
	struct stream *stream = session ? session_stream_at(session, record->stream) : NULL;

	/* a daemon may have ended between the stream's record and this one */
	if (!stream || stream->context->id != record->context || stream->cores || !count)
		return -EPROTO;
	stream->cores_record = index;
	cores_count(stream, count);
	return 0;
}

/* A client can lie about that: then others wait in vain for as long as such a request is held. */
static bool has_kernel(const struct stream_ring *ring)
{
	uint64_t position = atomic_load_explicit(&ring->completed, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	for (uint32_t i = 0; position < tail && i < HCCLD_STREAM_SLOTS; i++) {
		struct task task;

		memcpy(&task, &ring->slots[position % HCCLD_STREAM_SLOTS].task, sizeof(task));
		if (task.kind == TASK_HOST && task.flags & TASK_KERNEL)
			return true;
		position += task.slot_count ? task.slot_count : 1;
	}
	return false;
}

/* Calls @found for each stream that holds some of @device. */
static void each_holder(const struct registry *registry, uint32_t device,
			void (*found)(void *data, const struct stream *stream), void *data)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_CORES); i++) {
		const struct record_cores *record = records_get(registry->records, RECORD_CORES, i);
		const struct session *session =
			record ? idmap_get(&registry->session_ids, record->session) : NULL;
		const struct stream *stream = session ? session->streams[record->stream] : NULL;

		if (stream && stream->context->device == device)
			found(data, stream);
	}
}

static void add_idle(void *data, const struct stream *stream)
{
	if (!stream->is_closing && !has_kernel(stream->ring))
		*(uint64_t *)data += stream->cores;
}

bool cores_will_come(const struct stream *stream, uint32_t count)
{
	const struct registry *registry = registry_of(stream);
	uint32_t number = stream->context->device;
	uint64_t idle = 0;

	each_holder(registry, number, add_idle, &idle);
	return registry->devices[number].cores - idle + count <= registry->cores_per_device;
}

struct top {
	const struct session *sessions[TOP];
	uint32_t device;
};

static uint32_t cores_of(const struct session *session, uint32_t device)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < HCCLD_STREAMS_PER_SESSION; i++)
		if (session->streams[i] && session->streams[i]->context->device == device)
			count += session->streams[i]->cores;
	return count;
}

static void add_top(void *data, const struct stream *stream)
{
	const struct session *mine = stream->context->session;
	struct top *top = data;

	for (int i = 0; i < TOP; i++)
		if (top->sessions[i] == mine)
			return;
	for (int i = 0; i < TOP && mine; i++) {
		const struct session *other = top->sessions[i];

		if (other && cores_of(other, top->device) >= cores_of(mine, top->device))
			continue;
		top->sessions[i] = mine;
		mine = other;
	}
}

void cores_describe(const struct registry *registry, uint32_t device, struct text *text)
{
	struct top top = { .device = device };

	text_add(text, "has %" PRIu32 " vector cores, of which %" PRIu32 " are in use", registry->cores_per_device,
		 registry->devices[device].cores);
	each_holder(registry, device, add_top, &top);
	for (int i = 0; i < TOP && top.sessions[i]; i++)
		text_add(text, "%s pid %d (%s): %" PRIu32, i ? "," : ";", top.sessions[i]->view.pid, top.sessions[i]->process,
			 cores_of(top.sessions[i], device));
}
