/* SPDX-License-Identifier: Apache-2.0 */
/* What the heads of all streams wait for. */
#include "registry/waiting.h"

#include <stddef.h>
#include <string.h>

#include "base/process.h"
#include "engine/engine.h"
#include "proto/event.h"
#include "proto/notify.h"
#include "proto/region.h"
#include "registry/awaited.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/whose.h"

/* a cursor lags behind by no more than the offers in flight, if its owner is honest */
#define ITEMS_PER_LANE_MAX 64
#define LANES_WALKED_MAX 4096
#define STEPS_PER_SESSION_MAX 65536 /* items looked at in one walk, in all streams of a session */
#define SLOW_KERNEL_MS 1000 /* that runs so long may wait for somebody */
#define SLOW_COPY_MS 1000 /* the same of a receiver that copies */
#define STOP_LOOKS_MAX 256 /* at processes, whether they are stopped, in one walk */
#define NONE UINT32_MAX

/* The task at the head of a stream: a copy, and where its items are. */
struct head {
	struct session *session;
	const struct stream *stream;
	struct task task;
	const struct item *items; /* item i is items[(first + i) & mask] */
	uint64_t first, mask, position;
	uint64_t age_ms;
	const struct rank *rank; /* NULL: no communicator */
};

struct walk {
	const struct waiting_filter *filter;
	bool (*found)(void *data, const struct waiting *waiting);
	void *data;
	uint64_t now_ns;
	uint32_t steps; /* of the session at hand */
	uint32_t stop_looks;
};

static void head_set_age(struct head *head, uint64_t position, uint64_t now_ns)
{
	const struct stream_ring *ring = head->stream->ring;
	uint64_t since = atomic_load_explicit(&ring->head_since_ns, memory_order_relaxed);

	/* the engine stores one more: 0 is no head */
	if (atomic_load_explicit(&ring->head_position, memory_order_relaxed) != position + 1 || !since)
		since = head->task.submitted_ns;
	head->age_ms = since && since < now_ns ? (now_ns - since) / 1000000 : 0;
}

static bool head_find_items(struct head *head, uint64_t position)
{
	const struct stream_ring *ring = head->stream->ring;
	struct view_segment *segment;
	uint32_t count = head->task.item_count;

	if (!head->task.side) {
		head->items = &ring->slots[0].item;
		head->first = position + 1;
		head->mask = HCCLD_STREAM_SLOTS - 1;
		return count < HCCLD_STREAM_SLOTS;
	}
	if (count > HCCLD_BATCH_ITEMS_MAX)
		return false;
	segment = view_segment_find(&head->session->view, head->task.side, 0,
				    (uint64_t)count * sizeof(struct item));
	/* the executor takes none of these, either: they begin anywhere */
	if (!segment || segment->is_import)
		return false;
	head->items = (const struct item *)segment->base;
	head->first = 0;
	head->mask = UINT64_MAX;
	return true;
}

/* False: nothing is queued, or it is nonsense. */
static bool head_open(struct session *session, const struct stream *stream, uint64_t now_ns,
		      struct head *ret_head)
{
	const struct stream_ring *ring = stream->ring;
	uint64_t position = atomic_load_explicit(&ring->completed, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	if (position >= tail || tail - position > HCCLD_STREAM_SLOTS)
		return false;
	*ret_head = (struct head){ .session = session, .stream = stream, .position = position };
	memcpy(&ret_head->task, &ring->slots[position & (HCCLD_STREAM_SLOTS - 1)].task,
	       sizeof(struct task));
	if (ret_head->task.rank)
		ret_head->rank = session_rank(session, ret_head->task.rank);
	head_set_age(ret_head, position, now_ns);
	return head_find_items(ret_head, position);
}

/* Copies item @index. */
static void head_item(const struct head *head, uint32_t index, struct item *ret_item)
{
	memcpy(ret_item, &head->items[(head->first + index) & head->mask], sizeof(*ret_item));
}

/* Between @head's rank and @peer, for items of @kind; NULL: its ring is not made yet, or there is no such peer. */
static const struct view_pair *head_pair(const struct head *head, uint8_t kind, uint32_t peer)
{
	const struct view_pair *pair;
	struct comm *comm;
	uint32_t rank;

	if (!head->rank || peer >= head->rank->comm->view.size)
		return NULL;
	comm = head->rank->comm;
	rank = head->rank->rank;
	pair = view_pair_of(&comm->view, kind == ITEM_SEND ? rank : peer, kind == ITEM_SEND ? peer : rank);
	return atomic_load_explicit(&pair->ring, memory_order_acquire) ? pair : NULL;
}

static struct pair_ring *pair_ring_of(const struct view_pair *pair)
{
	return atomic_load_explicit(&pair->ring, memory_order_acquire);
}

/* The sender's memory is not needed any more. */
static bool offer_is_copy(const struct view_pair *pair, uint64_t number)
{
	struct pair_offer offer;

	view_offer_read(pair, pair_ring_of(pair), number, &offer);
	return offer.number == number && (offer.where == OFFER_INLINE || offer.where == OFFER_EAGER);
}

/* P4: what the pair's words say about an item. */
static bool item_is_done(const struct item *item, const struct view_pair *pair)
{
	uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);

	if (atomic_load_explicit(&item->state, memory_order_relaxed) & ITEM_FAILED)
		return true;
	if (!number || !pair)
		return false;
	if (atomic_load_explicit(&pair_ring_of(pair)->received, memory_order_acquire) >= number)
		return true;
	return item->kind == ITEM_SEND &&
	       atomic_load_explicit(&pair_ring_of(pair)->tail, memory_order_acquire) >= number && offer_is_copy(pair, number);
}

/* Has the other side of an item come? */
static bool item_is_posted(const struct item *item, const struct view_pair *pair)
{
	uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);

	if (!number || !pair)
		return false;
	if (item->kind == ITEM_RECEIVE)
		return atomic_load_explicit(&pair_ring_of(pair)->tail, memory_order_acquire) >= number;
	return atomic_load_explicit(&pair_ring_of(pair)->posted, memory_order_acquire) >= number;
}

/* A send that waits for the limit of its tenant: the ring has room for it, and its receive is not posted. */
static bool item_is_held(const struct item *item, const struct head *head)
{
	const struct view_pair *pair = head_pair(head, item->kind, item->peer);
	const struct pair_ring *ring;
	uint64_t tail;

	if (item->kind != ITEM_SEND || item->number || !pair || !quota_holds_back(head->session->quota, item->bytes))
		return false;
	ring = pair_ring_of(pair);
	tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	return tail - atomic_load_explicit(&ring->received, memory_order_acquire) < view_pair_slots(pair, ring, tail + 1) &&
	       atomic_load_explicit(&ring->posted, memory_order_acquire) <= tail;
}

/* The first unfinished item of the lane that starts at @lane. False: the lane is done. */
static bool lane_find(struct walk *walk, const struct head *head, const struct item *lane,
		      struct item *ret_item)
{
	const struct view_pair *pair = head_pair(head, lane->kind, lane->peer);
	uint32_t index = atomic_load_explicit(&lane->done, memory_order_relaxed);

	for (int i = 0; i < ITEMS_PER_LANE_MAX && index < head->task.item_count; i++) {
		uint32_t next;

		walk->steps++;
		head_item(head, index, ret_item);
		if (ret_item->kind != lane->kind)
			return false;
		if (!item_is_done(ret_item, pair))
			return true;
		next = ret_item->next;
		if (next <= index)
			return false;
		index = next;
	}
	return false;
}

static struct waiting head_waiting(const struct head *head, uint64_t lane)
{
	return (struct waiting){ .session = head->session,
				 .kind = head->task.kind,
				 .comm = head->rank ? head->rank->comm : NULL,
				 .related = head->rank ? head->rank->comm : NULL,
				 .rank = head->rank ? head->rank->rank : 0,
				 .stream = head->stream->index,
				 .peer = NONE,
				 .age_ms = head->age_ms,
				 .cursor = head->session->view.id << 32 |
					   (uint64_t)head->stream->index << 22 |
					   (lane & 0x3fffff) };
}

int32_t waiting_member_pid(const struct comm *comm, uint32_t rank)
{
	return atomic_load_explicit(&comm->view.region->members[rank].pid, memory_order_relaxed);
}

bool waiting_has_entered(const struct comm *comm, uint32_t rank, uint64_t number)
{
	return atomic_load_explicit(&comm->view.region->members[rank].barriers, memory_order_acquire) >= number;
}

/*
 * The engine numbers a barrier when it first looks at it: until then it is the one after those that its rank has entered. The rank's
 * count is read first: it grows after the task has its number.
 */
static void set_barrier_number(const struct head *head, struct waiting *waiting)
{
	const struct comm_member *member = &waiting->comm->view.region->members[waiting->rank];
	const struct task *task = &head->stream->ring->slots[head->position & (HCCLD_STREAM_SLOTS - 1)].task;
	uint64_t entered = atomic_load_explicit(&member->barriers, memory_order_acquire);

	waiting->number = atomic_load_explicit(&head->task.number, memory_order_relaxed);
	if (!waiting->number)
		waiting->number = atomic_load_explicit(&task->number, memory_order_relaxed);
	waiting->is_entering = !waiting->number;
	if (waiting->is_entering)
		waiting->number = entered + 1;
}

static bool walk_barrier(struct walk *walk, const struct head *head)
{
	struct waiting waiting = head_waiting(head, 1);

	uint32_t size;

	if (!head->rank || waiting.cursor <= walk->filter->after)
		return true;
	size = waiting.comm->view.size;
	set_barrier_number(head, &waiting);
	waiting.is_posted = true;
	/* its own rank is last, and not looked at: it may have the number, and not have entered yet */
	for (uint32_t i = 0; waiting.is_posted && i + 1 < size; i++) {
		uint32_t member = i < waiting.rank ? i : i + 1;

		if (waiting_has_entered(waiting.comm, member, waiting.number))
			continue;
		waiting.is_posted = false;
		waiting.peer = member;
	}
	if (waiting.is_posted)
		waiting.peer = (waiting.rank + 1) % size;
	waiting.peer_pid = waiting_member_pid(waiting.comm, waiting.peer);
	return walk->found(walk->data, &waiting);
}

/* The event that the head waits for; NULL: gone. */
static const struct event_slot *head_event(const struct head *head, struct item *ret_item)
{
	const struct view_segment *segment;

	head_item(head, 0, ret_item);
	segment = view_segment_find(&head->session->view, ret_item->segment, ret_item->offset,
				    sizeof(struct event_slot));
	if (!segment || (uintptr_t)(segment->base + ret_item->offset) % sizeof(uint64_t))
		return NULL;
	return (const struct event_slot *)(segment->base + ret_item->offset);
}

/* The notify that the head waits for. False: gone. */
static bool head_notify(const struct head *head, struct waiting *waiting)
{
	const struct view_segment *segment;
	const struct segment *owner;
	struct item item;

	head_item(head, 0, &item);
	segment = view_notify_find(&head->session->view, item.segment, item.offset);
	if (!segment)
		return false;
	if (engine_notify_value(&head->session->view, item.segment, item.offset, &waiting->value) < 0)
		return false;
	waiting->place = segment->base + item.offset;
	waiting->number = atomic_load_explicit(&item.number, memory_order_relaxed);
	waiting->compare = item.data_type;
	waiting->device = head->stream->context->device;
	waiting->notify = segment->is_import ? 0 : 1 + item.offset / sizeof(struct notify_slot);
	owner = session_segment(head->session, item.segment);
	if (owner)
		whose_notify(waiting, owner);
	return true;
}

static bool walk_reduction(struct walk *walk, const struct head *head)
{
	struct waiting waiting = head_waiting(head, 1);
	struct item item;

	if (waiting.cursor <= walk->filter->after || head->task.item_count != 2)
		return true;
	head_item(head, 0, &item);
	waiting.direction = ITEM_REDUCE;
	waiting.bytes = item.bytes;
	waiting.is_posted = true;
	return walk->found(walk->data, &waiting);
}

/* A rank that has ended, or UINT32_MAX. */
static uint32_t comm_lost_rank(const struct comm *comm)
{
	uint32_t size = comm->state == COMM_READY ? comm->view.size : 0;

	for (uint32_t i = 0; comm->rank_count < size && i < size; i++)
		if (atomic_load_explicit(&comm->view.region->members[i].word, memory_order_acquire) == MEMBER_DEAD)
			return i;
	return NONE;
}

/* One whose process is stopped, or UINT32_MAX. Looks at /proc. */
static uint32_t comm_stopped_rank(struct walk *walk, const struct rank *own)
{
	const struct comm *comm = own->comm;
	uint32_t size = comm->state == COMM_READY ? comm->view.size : 0;

	for (uint32_t i = 0; i < size && walk->stop_looks < STOP_LOOKS_MAX; i++) {
		const struct rank *rank = comm->ranks[i];

		if (!rank || rank->session == own->session)
			continue;
		walk->stop_looks++;
		if (process_is_stopped(rank->session->view.pid))
			return i;
	}
	return NONE;
}

static void set_kernel(struct walk *walk, const struct head *head, struct waiting *waiting)
{
	const struct list *ranks = &head->stream->context->ranks;

	waiting->blocks = head->task.epoch;
	if (!list_is_empty(ranks) && ranks->next == ranks->previous) {
		const struct rank *only = list_entry(ranks->next, struct rank, link);

		waiting->related = only->comm;
		waiting->rank = only->rank;
	}
	list_for_each(struct rank, rank, &head->stream->context->ranks, link) {
		uint32_t lost = waiting->is_begun ? comm_lost_rank(rank->comm) : NONE;
		bool is_stopped = false;

		if (lost == NONE && waiting->is_begun && !waiting->lost_comm && waiting->age_ms >= SLOW_KERNEL_MS) {
			lost = comm_stopped_rank(walk, rank);
			is_stopped = lost != NONE;
		}
		if (lost == NONE)
			continue;
		waiting->lost_is_stopped = is_stopped;
		waiting->lost_comm = rank->comm;
		waiting->lost_rank = lost;
		waiting->is_posted = false;
	}
}

/* Tasks that wait for something outside of their stream; records and writes are over before anybody sees them. */
static bool walk_meeting(struct walk *walk, const struct head *head)
{
	struct waiting waiting = head_waiting(head, 1);
	const struct event_slot *event;
	struct item item;

	if (waiting.cursor <= walk->filter->after)
		return true;
	if (head->task.kind == TASK_HOST) {
		/* the client stores its end before it calls the function */
		uint64_t begun = atomic_load_explicit(&head->stream->ring->host_begun, memory_order_relaxed);

		waiting.is_begun = begun > head->position;
		waiting.is_behind = begun && !waiting.is_begun;
		waiting.is_posted = waiting.is_begun;
		if (head->task.flags & TASK_KERNEL)
			set_kernel(walk, head, &waiting);
	} else if (head->task.item_count != 1) {
		return true;
	} else if (head->task.kind == TASK_WAIT_EVENT) {
		event = head_event(head, &item);
		if (!event)
			return true;
		waiting.event = atomic_load_explicit(&event->id, memory_order_relaxed);
		if (atomic_load_explicit(&event->submitted, memory_order_relaxed) >=
		    atomic_load_explicit(&item.number, memory_order_relaxed))
			waiting.recorder = atomic_load_explicit(&event->stream, memory_order_relaxed);
	} else if (head->task.kind == TASK_WAIT_VALUE) {
		head_item(head, 0, &item);
		waiting.number = atomic_load_explicit(&item.number, memory_order_relaxed);
		waiting.bytes = sizeof(uint64_t);
	} else if (head->task.kind == TASK_NOTIFY_WAIT) {
		if (!head_notify(head, &waiting))
			return true;
	} else {
		return true;
	}
	return walk->found(walk->data, &waiting);
}

/* Both sides are there, but the receiver's process copies itself, and is stopped meanwhile. Looks at /proc. */
static bool receiver_is_stopped(struct walk *walk, const struct waiting *waiting)
{
	const struct rank *peer = waiting->comm->ranks[waiting->peer];

	if (!peer || waiting->age_ms < SLOW_COPY_MS || walk->stop_looks == STOP_LOOKS_MAX || !context_is_driven(peer->context))
		return false;
	walk->stop_looks++;
	return process_is_stopped(waiting->peer_pid);
}

static bool walk_lane(struct walk *walk, const struct head *head, const struct item *lane,
		      uint32_t ordinal)
{
	struct waiting waiting = head_waiting(head, ordinal);
	struct item item;

	if (waiting.cursor <= walk->filter->after || !lane_find(walk, head, lane, &item))
		return true;
	waiting.direction = item.kind;
	waiting.bytes = item.bytes;
	if (item.kind == ITEM_COPY || item.kind == ITEM_FILL) {
		waiting.is_posted = true;
		if (waiting.comm) {
			waiting.peer = waiting.rank;
			waiting.peer_pid = head->session->view.pid;
		}
	} else if (waiting.comm && item.peer < waiting.comm->view.size) {
		waiting.peer = item.peer;
		waiting.peer_pid = waiting_member_pid(waiting.comm, item.peer);
		waiting.is_posted = item_is_posted(&item, head_pair(head, item.kind, item.peer)) &&
				    !(item.kind == ITEM_SEND && receiver_is_stopped(walk, &waiting));
		waiting.is_held = item_is_held(&item, head);
	} else {
		return true; /* nonsense: the engine deals with it */
	}
	return walk->found(walk->data, &waiting);
}

static bool walk_stream(struct walk *walk, struct session *session,
			const struct stream *stream)
{
	struct head head;
	uint32_t index, lanes = 0;

	if (!head_open(session, stream, walk->now_ns, &head))
		return true;
	if (head.task.kind == TASK_BARRIER)
		return walk_barrier(walk, &head);
	if (head.task.kind == TASK_REDUCE)
		return walk_reduction(walk, &head);
	if (head.task.kind != TASK_BATCH)
		return walk_meeting(walk, &head);
	index = head.task.first_lane;
	while (index < head.task.item_count && lanes < LANES_WALKED_MAX &&
	       lanes < walk->filter->lanes_per_stream && walk->steps < STEPS_PER_SESSION_MAX) {
		struct item lane;

		walk->steps++;
		head_item(&head, index, &lane);
		if (!walk_lane(walk, &head, &lane, ++lanes))
			return false;
		if (lane.next_lane <= index)
			break;
		index = lane.next_lane;
	}
	return true;
}

void waiting_walk(struct registry *registry, const struct waiting_filter *filter,
		  bool (*found)(void *data, const struct waiting *waiting), void *data)
{
	struct walk walk = { filter, found, data, clock_now_ns(), 0, 0 };

	list_for_each(struct session, session, &registry->sessions, link) {
		if ((!filter->all_users && session->uid != filter->uid) ||
		    session->view.id << 32 < (filter->after & ~0xffffffffull))
			continue;
		walk.steps = 0;
		for (uint32_t i = 0; session->stream_slots.used && i < HCCLD_STREAMS_PER_SESSION;
		     i++) {
			const struct stream *stream = session_stream_at(session, i);

			if (stream && !walk_stream(&walk, session, stream))
				return;
		}
	}
}

static const struct waiting_filter whole_stream = { .all_users = true, .lanes_per_stream = 256 };

void waiting_walk_context(const struct context *context, struct session *session,
			  bool (*found)(void *data, const struct waiting *waiting), void *data)
{
	struct walk walk = { &whole_stream, found, data, clock_now_ns(), 0, 0 };

	list_for_each(struct stream, stream, &context->streams, link) {
		if (!walk_stream(&walk, session, stream))
			return;
	}
	awaited_walk(context, found, data);
}

void waiting_walk_stream(struct session *session, const struct stream *stream,
			 bool (*found)(void *data, const struct waiting *waiting), void *data)
{
	struct walk walk = { &whole_stream, found, data, clock_now_ns(), 0, 0 };

	(void)walk_stream(&walk, session, stream);
}

static const char *const task_names[] = {
	[TASK_BATCH] = "batch",		   [TASK_BARRIER] = "barrier",
	[TASK_RECORD] = "event-record",	   [TASK_WAIT_EVENT] = "event-wait",
	[TASK_HOST] = "host-function",	   [TASK_WRITE] = "value-write",
	[TASK_WAIT_VALUE] = "value-wait",  [TASK_NOTIFY_RECORD] = "notify-record",
	[TASK_NOTIFY_WAIT] = "notify-wait", [TASK_REDUCE] = "reduce",
};

static const char *task_name(const struct task *task)
{
	uint8_t kind = task->kind;

	if (kind == TASK_HOST && task->flags & TASK_KERNEL)
		return "host-kernel";
	return kind < sizeof(task_names) / sizeof(*task_names) && task_names[kind] ? task_names[kind] : "task";
}

static uint32_t count_tasks(const struct stream_ring *ring)
{
	uint64_t position = atomic_load_explicit(&ring->completed, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	uint32_t count = 0;

	/* who lies about the length of his tasks is told a wrong number */
	while (position < tail && count < HCCLD_STREAM_SLOTS) {
		struct task task;

		memcpy(&task, &ring->slots[position & (HCCLD_STREAM_SLOTS - 1)].task, sizeof(task));
		position += task.slot_count ? task.slot_count : 1;
		count++;
	}
	return count;
}

static bool head_found(void *data, const struct waiting *waiting)
{
	struct stream_head *head = data;

	if (head->is_waiting && waiting->is_posted)
		return true;
	head->waiting = *waiting;
	head->is_waiting = true;
	return waiting->is_posted; /* go on for something that is missing */
}

void waiting_head(struct session *session, const struct stream *stream,
		  struct stream_head *ret_head)
{
	struct walk walk = { &whole_stream, head_found, ret_head, clock_now_ns(), 0, 0 };
	struct head head;

	*ret_head = (struct stream_head){ 0 };
	if (!head_open(session, stream, walk.now_ns, &head))
		return;
	ret_head->kind = task_name(&head.task);
	ret_head->age_ms = head.age_ms;
	ret_head->queued_tasks = count_tasks(stream->ring);
	walk_stream(&walk, session, stream);
}
