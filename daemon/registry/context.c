/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts and streams. */
#include "registry/context.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/memfd.h"
#include "proto/cleanup.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/cores.h"
#include "registry/notify.h"
#include "registry/quota.h"
#include "registry/registration.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/tenant.h"
#include "registry/thread.h"

static struct context *context_make(struct session *session, uint64_t id, uint32_t device,
				    uint32_t yard_index)
{
	struct context *context = calloc(1, sizeof(*context));
	struct yard *yard = session->tenant->view.yard;

	if (!context)
		return NULL;
	list_init(&context->link);
	list_init(&context->streams);
	list_init(&context->segments);
	list_init(&context->ranks);
	list_init(&context->notifies.ranges);
	list_init(&context->threads);
	context->session = session;
	context->id = id;
	context->device = device;
	context->view.session = &session->view;
	context->view.share = &session->quota->share;
	context->view.yard = &session->tenant->view;
	context->view.index = yard_index;
	context->view.words = &yard->contexts[yard_index];
	context->view.bit_word = &yard->bits[yard_index / 64];
	context->view.bit = 1ull << (yard_index % 64);
	return context;
}

static void context_publish(struct context *context)
{
	struct session *session = context->session;
	struct view_yard *yard = &session->tenant->view;
	uint32_t words = context->view.index / 64 + 1;

	session->contexts[context->device] = context;
	session->quota->contexts++;
	session->registry->devices[context->device].contexts++;
	atomic_fetch_add_explicit(&session->registry->beacon->contexts, 1, memory_order_relaxed);
	/* the engine finds the view's content once it finds the pointer */
	atomic_store_explicit(&yard->contexts[context->view.index], &context->view,
			      memory_order_release);
	if (words > atomic_load_explicit(&yard->word_limit, memory_order_relaxed))
		atomic_store_explicit(&yard->word_limit, words, memory_order_release);
}

/*
 * The place may have been another context's. Its version goes on growing: an old compare-and-swap
 * must fail.
 */
static void yard_reset(struct view_context *view)
{
	struct yard_context *words = view->words;

	atomic_fetch_and_explicit(view->bit_word, ~view->bit, memory_order_relaxed);
	atomic_store_explicit(&words->asleep, 0, memory_order_relaxed);
	atomic_store_explicit(&words->sleepers, 0, memory_order_relaxed);
	atomic_store_explicit(&words->state, yard_next(words->state, CONTEXT_IDLE),
			      memory_order_release);
}

int context_new(struct session *session, uint32_t device, struct context **ret_context)
{
	struct record_context record = { .session = session->view.id, .device = device };
	struct slots *slots = &session->tenant->contexts;
	struct context *context;
	int r;

	assert(device < session->registry->device_count && !session->contexts[device]);
	if (session->quota->contexts >= HCCLD_CONTEXTS_PER_USER)
		return -EUSERS;
	r = slots_take_lowest(slots, &record.yard_index);
	if (r < 0)
		return -EDQUOT;
	record.id = session_next_id(session, device);
	context = context_make(session, record.id, device, record.yard_index);
	if (!context) {
		slots_give(slots, record.yard_index);
		return -ENOMEM;
	}
	yard_reset(&context->view);
	r = records_add(session->registry->records, RECORD_CONTEXT, &record, &context->record);
	if (r < 0) {
		slots_give(slots, record.yard_index);
		free(context);
		return r;
	}
	context_publish(context);
	*ret_context = context;
	return 0;
}

int context_restore(struct session *session, uint32_t index, struct context **ret_context)
{
	const struct record_context *record =
		records_get(session->registry->records, RECORD_CONTEXT, index);
	struct context *context;
	int r;

	assert(record);
	if (record->device >= session->registry->device_count || session->contexts[record->device])
		return -EPROTO;
	r = slots_take_at(&session->tenant->contexts, record->yard_index);
	if (r < 0)
		return -EPROTO;
	context = context_make(session, record->id, record->device, record->yard_index);
	if (!context) {
		slots_give(&session->tenant->contexts, record->yard_index);
		return -ENOMEM;
	}
	context->record = index;
	context_publish(context);
	*ret_context = context;
	return 0;
}

void context_close(struct context *context)
{
	context->session->contexts[context->device] = NULL;
}

bool context_is_driven(const struct context *context)
{
	return yard_kind(atomic_load_explicit(&context->view.words->state, memory_order_relaxed)) == CONTEXT_CLIENT;
}

void context_unpublish(struct context *context)
{
	struct view_yard *yard = &context->session->tenant->view;

	atomic_fetch_and_explicit(context->view.bit_word, ~context->view.bit, memory_order_relaxed);
	atomic_store_explicit(&yard->contexts[context->view.index], NULL, memory_order_release);
}

void context_remove(struct context *context)
{
	struct session *session = context->session;

	assert(list_is_empty(&context->streams) && list_is_empty(&context->segments) &&
	       list_is_empty(&context->ranks) && list_is_empty(&context->threads));
	notifies_drop_all(context);
	if (!session->leaves_remnant) {
		records_remove(session->registry->records, RECORD_CONTEXT, context->record);
		slots_give(&session->tenant->contexts, context->view.index);
	}
	session->registry->devices[context->device].contexts--;
	atomic_fetch_sub_explicit(&session->registry->beacon->contexts, 1, memory_order_relaxed);
	session->quota->contexts--;
	list_remove(&context->link);
	free(context);
}

struct context *context_free(struct context *context)
{

	if (!context)
		return NULL;
	list_for_each(struct thread, thread, &context->threads, link)
		free(thread);
	list_for_each(struct stream, stream, &context->streams, link)
		free(stream);
	list_for_each(struct segment, segment, &context->segments, link)
		segment_free(segment);
	list_for_each(struct rank, rank, &context->ranks, link) {
		channels_free(rank);
		registrations_free(rank);
		free(rank);
	}
	notifies_forget(context);
	free(context);
	return NULL;
}

static uint64_t stream_offset(uint32_t index)
{
	return SESSION_STREAM_OFFSET + (uint64_t)index * SESSION_STREAM_STRIDE;
}

/* Into the tables and the view. */
static int stream_publish(struct context *context, uint32_t index, uint32_t record,
			  struct stream **ret_stream)
{
	struct view_context *view = &context->view;
	struct stream *stream = calloc(1, sizeof(*stream));
	uint32_t place = 0;

	if (!stream)
		return -ENOMEM;
	stream->context = context;
	stream->index = index;
	stream->record = record;
	stream->ring = session_stream(context->session->view.region, index);
	list_append(&context->streams, &stream->link);
	context->session->places[index].stream = stream;
	context->session->registry->stream_count++;
	context->session->registry->devices[context->device].streams++;
	/* the lowest place: the engine looks at all below the limit */
	while (atomic_load_explicit(&view->streams[place], memory_order_acquire))
		place++;
	atomic_store_explicit(&view->streams[place], stream->ring, memory_order_release);
	if (place >= view->stream_limit)
		atomic_store_explicit(&view->stream_limit, place + 1, memory_order_release);
	if (ret_stream)
		*ret_stream = stream;
	return 0;
}

static int stream_prepare(struct context *context, uint32_t index)
{
	struct session *session = context->session;
	struct stream_ring *ring = session_stream(session->view.region, index);
	int r;

	r = memfd_back(session->region_fd, stream_offset(index), SESSION_STREAM_STRIDE);
	if (r < 0)
		return r;
	ring->magic = STREAM_MAGIC;
	ring->version = STREAM_VERSION;
	ring->slot_count = HCCLD_STREAM_SLOTS;
	ring->context = context->view.index;
	return 0;
}

static void stream_refund(struct session *session)
{
	session_give(session, QUOTA_STREAMS, 1);
	session_give(session, QUOTA_MEMORY, SESSION_STREAM_STRIDE);
}

/* -EDQUOT */
static int stream_charge(struct session *session)
{
	if (session_take(session, QUOTA_STREAMS, 1) < 0)
		return -EDQUOT;
	if (session_take(session, QUOTA_MEMORY, SESSION_STREAM_STRIDE) < 0) {
		session_give(session, QUOTA_STREAMS, 1);
		return -EDQUOT;
	}
	return 0;
}

int stream_reserve(struct context *context, uint32_t *ret_index)
{
	struct session *session = context->session;
	uint32_t index;
	int r;

	if (stream_charge(session) < 0)
		return -EUSERS;
	if (slots_take(&session->stream_slots, &index) < 0) {
		stream_refund(session);
		return -ENOSR;
	}
	r = stream_prepare(context, index);
	if (r < 0) {
		stream_unreserve(context, index);
		return r;
	}
	*ret_index = index;
	return 0;
}

void stream_unreserve(struct context *context, uint32_t index)
{
	struct session *session = context->session;

	memfd_punch(session->region_fd, stream_offset(index), SESSION_STREAM_STRIDE);
	slots_give(&session->stream_slots, index);
	stream_refund(session);
}

int stream_open(struct context *context, uint32_t index, struct stream **ret_stream)
{
	struct record_stream record = { .session = context->session->view.id,
					.context = context->id,
					.index = index };
	struct records *records = context->session->registry->records;
	uint32_t place;
	int r;

	r = records_add(records, RECORD_STREAM, &record, &place);
	if (r < 0)
		return r;
	r = stream_publish(context, index, place, ret_stream);
	if (r < 0)
		records_remove(records, RECORD_STREAM, place);
	return r;
}

int stream_new(struct context *context, struct stream **ret_stream)
{
	uint32_t index;
	int r;

	r = stream_reserve(context, &index);
	if (r < 0)
		return r;
	r = stream_open(context, index, ret_stream);
	if (r < 0)
		stream_unreserve(context, index);
	return r;
}

int stream_restore(struct context *context, uint32_t index)
{
	const struct record_stream *record =
		records_get(context->session->registry->records, RECORD_STREAM, index);

	assert(record);
	if (slots_take_at(&context->session->stream_slots, record->index) < 0)
		return -EPROTO;
	session_take_back(context->session, QUOTA_STREAMS, 1);
	session_take_back(context->session, QUOTA_MEMORY, SESSION_STREAM_STRIDE);
	return stream_publish(context, record->index, index, NULL);
}

void stream_punch(struct stream *stream)
{
	memfd_punch(stream->context->session->region_fd, stream_offset(stream->index),
		    SESSION_STREAM_STRIDE);
}

void stream_remove(struct stream *stream)
{
	struct session *session = stream->context->session;

	cores_give(stream);
	records_remove(session->registry->records, RECORD_STREAM, stream->record);
	session->places[stream->index].stream = NULL;
	slots_give(&session->stream_slots, stream->index);
	stream_refund(session);
	session->registry->stream_count--;
	session->registry->devices[stream->context->device].streams--;
	list_remove(&stream->link);
	free(stream);
}
