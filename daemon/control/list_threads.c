/* SPDX-License-Identifier: Apache-2.0 */
/* The list of threads of programs' own operators, with what their streams are at. */
#include "control/connection.h"
#include "control/control.h"
#include "control/page.h"
#include "control/query.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/thread.h"
#include "registry/waiting.h"

/* Of a thread within its session: grows from one to the next that is made. */
static uint64_t thread_ordinal(const struct thread *thread)
{
	return thread->id >> 16 & UINT32_MAX;
}

static uint64_t thread_cursor(const struct session *session, uint64_t ordinal)
{
	return session->view.id << 32 | ordinal;
}

/* The thread made next after the one with @ordinal, on whatever device; NULL: there is none. */
static struct thread *thread_next(const struct session *session, uint64_t ordinal)
{
	struct thread *next = NULL;

	for (uint32_t i = 0; i < session->registry->device_count; i++) {
		if (!session->contexts[i])
			continue;
		list_for_each(struct thread, thread, &session->contexts[i]->threads, link)
			if (thread_ordinal(thread) > ordinal && (!next || thread_ordinal(thread) < thread_ordinal(next)))
				next = thread;
	}
	return next;
}

static int describe_head(struct request *request, const struct thread *thread, Hccld__Control__Thread *message)
{
	struct session *session = thread->context->session;
	Hccld__Control__Waiting *waiting = NULL;
	struct stream_head head;

	waiting_head(session, thread->stream, &head);
	if (head.is_waiting) {
		waiting = query_waiting(request, &head.waiting);
		if (!waiting)
			return -1;
		message->is_moving = waiting->peer_posted;
		message->reason = waiting->reason;
	}
	message->queued_tasks = head.queued_tasks;
	message->head = (char *)(head.kind ? head.kind : "");
	message->age_ms = head.age_ms;
	return 0;
}

static Hccld__Control__Thread *list_thread(struct request *request, const struct thread *thread)
{
	Hccld__Control__Thread *message = request_alloc(request, sizeof(*message));
	struct session *session = thread->context->session;
	const struct rank *rank = thread->rank ? session_rank(session, thread->rank) : NULL;

	if (!message)
		return NULL;
	hccld__control__thread__init(message);
	message->session = session->view.id;
	message->pid = (uint32_t)session->view.pid;
	message->uid = session->uid;
	message->process = session->process;
	message->device = thread->context->device;
	message->thread = thread->id;
	message->engine = thread->engine;
	message->stream = thread->stream->index;
	message->is_own_stream = thread->is_own_stream;
	if (rank) {
		message->comm = rank->comm->id;
		message->comm_name = rank->comm->name;
		message->rank = rank->rank;
	}
	if (thread->notifies) {
		message->notify_count = thread->notifies->count;
		message->first_notify = thread->notifies->first;
	}
	return describe_head(request, thread, message) < 0 ? NULL : message;
}

void list_threads(struct page *page)
{
	struct request *request = page->request;
	const Hccld__Control__List *list = request->message->list;

	list_for_each(struct session, session, &request->control->registry->sessions, link) {
		uint64_t ordinal = session->view.id == page->after >> 32 ? page->after & UINT32_MAX : 0;
		const struct thread *thread;

		if (session->view.id < page->after >> 32 || (list->session && session->view.id != list->session) ||
		    (list->pid && (uint32_t)session->view.pid != list->pid) || !query_sees(request, session->uid))
			continue;
		while ((thread = thread_next(session, ordinal))) {
			Hccld__Control__Thread *message = list_thread(request, thread);

			ordinal = thread_ordinal(thread);
			if (!page_add(page, message ? &message->base : NULL, thread_cursor(session, ordinal)))
				return;
		}
	}
}
