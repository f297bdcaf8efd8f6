/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of programs' own operators. */
#include "registry/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "registry/comm.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/quota.h"
#include "registry/registry.h"
#include "registry/session.h"

static struct thread *thread_make(struct context *context, const struct record_thread *record)
{
	struct thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	list_init(&thread->link);
	thread->context = context;
	thread->id = record->id;
	thread->rank = record->rank;
	thread->request = record->request;
	thread->engine = record->engine;
	thread->is_own_stream = record->is_own_stream;
	return thread;
}

static void thread_publish(struct thread *thread)
{
	struct session *session = thread->context->session;

	session->thread_count++;
	session->quota->threads++;
	thread->stream->thread_count++;
	list_append(&thread->context->threads, &thread->link);
}

/* The record of the thread, then the stream that it names. */
static int thread_record(struct context *context, const struct thread_wish *wish, struct record_thread *record, struct thread *thread)
{
	struct records *records = context->session->registry->records;
	int r = 0;

	if (wish->stream)
		record->stream = wish->stream->index;
	else
		r = stream_reserve(context, &record->stream);
	if (r < 0)
		return r;
	r = records_add(records, RECORD_THREAD, record, &thread->record);
	if (r == 0 && !wish->stream) {
		r = stream_open(context, record->stream, &thread->stream);
		if (r < 0)
			records_remove(records, RECORD_THREAD, thread->record);
	}
	if (r < 0 && !wish->stream)
		stream_unreserve(context, record->stream);
	return r;
}

int thread_new(struct context *context, const struct thread_wish *wish, struct thread **ret_thread)
{
	struct session *session = context->session;
	const struct notifies *notifies = wish->notifies;
	struct record_thread record = { .session = session->view.id,
					.context = context->id,
					.rank = wish->rank,
					.request = wish->request,
					.engine = wish->engine,
					.first_notify = notifies ? notifies->first : 0,
					.notify_count = notifies ? notifies->count : 0,
					.is_own_stream = !wish->stream };
	struct thread *thread;
	int r;

	if (session->thread_count >= HCCLD_THREADS_PER_SESSION)
		return -ENFILE;
	if (session->quota->threads >= HCCLD_THREADS_PER_USER)
		return -EMFILE;
	/* threads are found by looking at them all */
	record.id = session_next_id(session, 0);
	thread = thread_make(context, &record);
	if (!thread)
		return -ENOMEM;
	thread->stream = wish->stream;
	thread->notifies = wish->notifies;
	r = thread_record(context, wish, &record, thread);
	if (r < 0) {
		free(thread);
		return r;
	}
	thread_publish(thread);
	*ret_thread = thread;
	return 0;
}

struct thread *thread_find(struct session *session, uint64_t id)
{
	for (uint32_t i = 0; i < session->registry->device_count; i++) {
		if (!session->contexts[i])
			continue;
		list_for_each(struct thread, thread, &session->contexts[i]->threads, link)
			if (thread->id == id)
				return thread;
	}
	return NULL;
}

struct thread *thread_again(struct context *context, uint64_t request)
{
	if (!context->session->is_restored)
		return NULL;
	list_for_each(struct thread, thread, &context->threads, link)
		if (thread->request == request)
			return thread;
	return NULL;
}

struct thread *thread_first(const struct context *context, uint64_t rank, const struct stream *stream)
{
	list_for_each(struct thread, thread, &context->threads, link)
		if ((rank && thread->rank == rank) || (stream && thread->stream == stream))
			return thread;
	return NULL;
}

uint64_t thread_stream_rank(const struct stream *stream)
{
	const struct thread *thread = stream->thread_count ? thread_first(stream->context, 0, stream) : NULL;

	return thread ? thread->rank : 0;
}

struct thread *thread_first_lost(const struct context *context)
{
	list_for_each(struct thread, thread, &context->threads, link)
		if (thread->rank && !session_rank(context->session, thread->rank))
			return thread;
	return NULL;
}

void thread_remove(struct thread *thread)
{
	struct session *session = thread->context->session;

	records_remove(session->registry->records, RECORD_THREAD, thread->record);
	if (thread->notifies)
		notifies_free(thread->notifies);
	session->thread_count--;
	session->quota->threads--;
	list_remove(&thread->link);
	free(thread);
}

int thread_restore(struct context *context, uint32_t index)
{
	struct session *session = context->session;
	struct record_thread *record = records_get(session->registry->records, RECORD_THREAD, index);
	struct stream *stream;
	struct notifies *notifies;
	struct thread *thread;

	assert(record);
	stream = session_stream_at(session, record->stream);
	if (!stream)
		return -ENOENT;
	/* with its context, whose memory goes first */
	if (record->notify_count && !context->notifies.segment)
		return -ENOENT;
	notifies = record->notify_count ? notifies_find(context, record->first_notify) : NULL;
	if (stream->context != context || (record->notify_count && (!notifies || notifies->count != record->notify_count)))
		return -EPROTO;
	thread = thread_make(context, record);
	if (!thread)
		return -ENOMEM;
	thread->record = index;
	thread->stream = stream;
	thread->notifies = notifies;
	/* it was being destroyed, and they go by themselves: the next process may find it without them */
	if (notifies && notifies->is_closing) {
		thread->notifies = NULL;
		record->notify_count = 0;
	}
	thread_publish(thread);
	return 0;
}
