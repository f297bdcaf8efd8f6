/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submitting tasks: slots, tail, and telling the engine. Items of large batches go to side buffers, which are kept for the next one. Any thread.
 */
#include "client/stream_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/drive.h"
#include "client/error.h"
#include "client/hostfunc.h"
#include "client/order.h"
#include "client/segment.h"

#define SIDE_MIN (64u << 10)
#define SIDES_KEPT 4u /* per device */
#define SIDE_KEPT_MAX (1u << 20)	/* bytes: larger ones are rare, and would stay charged */

/* A segment for the items of one large batch. */
struct side {
	struct side *next;
	struct hccld_segment segment;
	int32_t device;
	uint64_t context;
};

static _Thread_local uint64_t last_task; /* 1 + position of the task that this thread submitted last */

static pthread_mutex_t side_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct side *sides[HCCLD_DEVICES_MAX];
static uint32_t side_count[HCCLD_DEVICES_MAX];

/* With `submitting`: until @count slots are free at @tail. */
static int wait_room(struct hccld_stream *stream, uint64_t tail, uint32_t count)
{
	uint64_t completed = stream_completed(stream);
	int r;

	if (completed > tail || tail - completed > HCCLD_STREAM_SLOTS)
		return stream_is_alive(stream)
			       ? hccld_error(CAUSE_PROTOCOL, "the ring of a stream is malformed")
			       : hccld_stream_handle_error(stream);
	if (tail - completed + count <= HCCLD_STREAM_SLOTS)
		return 0;
	atomic_store(&stream->is_full, true);
	r = hccld_stream_wait_completed(stream, tail + count - HCCLD_STREAM_SLOTS, STREAM_NEVER);
	atomic_store(&stream->is_full, false);
	return r;
}

static void write_slots(struct stream_ring *ring, uint64_t position, const void *slots,
			uint32_t count)
{
	uint32_t index = position & (HCCLD_STREAM_SLOTS - 1);
	uint32_t first = count < HCCLD_STREAM_SLOTS - index ? count : HCCLD_STREAM_SLOTS - index;

	memcpy(&ring->slots[index], slots, first * sizeof(union stream_slot));
	memcpy(&ring->slots[0], (const union stream_slot *)slots + first,
	       (count - first) * sizeof(union stream_slot));
}

static uint32_t thread_id(void)
{
	static _Thread_local uint32_t known;

	if (!known)
		known = (uint32_t)syscall(SYS_gettid);
	return known;
}

/* With stop_on_failure: the stream has stopped. */
static int stopped_error(const struct hccld_stream *stream)
{
	struct fault fault;

	memcpy(&fault, &stream->ring->fault, sizeof(fault));
	return hccld_error(fault.cause ? fault.cause : CAUSE_ABORTED,
			   "the stream has stopped at an error (ACL_STOP_ON_FAILURE), and takes no more work: destroy it, and make another one");
}

/* With `submitting`. @deferred and @making may be NULL. */
static int put(struct hccld_stream *stream, struct task *task, const struct item *items,
	       struct deferred *deferred, const struct hccld_making *making)
{
	uint64_t tail = atomic_load_explicit(&stream->tail, memory_order_relaxed);
	int r;

	if (!stream_is_alive(stream))
		return hccld_stream_handle_error(stream);
	r = wait_room(stream, tail, task->slot_count);
	if (r < 0)
		return r;
	if (__builtin_expect(atomic_load_explicit(&stream->ring->stopped, memory_order_relaxed) != 0, 0))
		return stopped_error(stream);
	task->submitted_ns = clock_coarse_ns();
	task->thread = thread_id();
	last_task = tail + 1;
	if (making)
		making->make(making->arg, tail, tail + task->slot_count);
	write_slots(stream->ring, tail, task, 1);
	if (task->slot_count > 1)
		write_slots(stream->ring, tail + 1, items, task->slot_count - 1u);
	tail += task->slot_count;
	if (task->kind == TASK_HOST || task->kind == TASK_WAIT_EVENT || task->kind == TASK_WAIT_VALUE || task->kind == TASK_NOTIFY_WAIT)
		atomic_store_explicit(&stream->held, tail, memory_order_relaxed);
	if (deferred) {
		deferred->position = tail;
		hccld_deferred_push(stream, deferred);
	}
	order_release(stream);
	/* our copy second, for waiters of this process: they must find the deferred action; the engine must find the slots */
	atomic_store_explicit(&stream->ring->tail, tail, memory_order_release);
	atomic_store_explicit(&stream->tail, tail, memory_order_release);
	return 0;
}

/*
 * A host function must not wait for the lock of a thread that waits for room which comes only when the function has returned.
 */
static int submitting_lock(struct hccld_stream *stream)
{
	int r = 0;

	if (__builtin_expect(!hccld_host_is_inside(), 1)) {
		pthread_mutex_lock(&stream->submitting);
		return 0;
	}
	while (pthread_mutex_trylock(&stream->submitting) != 0) {
		if (atomic_load(&stream->is_full))
			r = hccld_host_check_wait(stream, STREAM_NEVER);
		if (r < 0)
			return r;
		usleep(50);
	}
	return 0;
}

static int put_and_tell(struct hccld_stream *stream, struct task *task, const struct item *items,
			struct deferred *deferred, const struct hccld_making *making)
{
	struct hccld_session *session;
	int cancel, r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	if (__builtin_expect(beacon_is_stopping(session->beacon), 0))
		return hccld_error(
			CAUSE_DAEMON_GONE,
			"hccld is being stopped by SIGTERM (systemctl stop, say) and takes no new work; start hccld, then the program again");
	hccld_deferred_run(stream, stream_completed(stream));
	atomic_store_explicit(&task->number, 0, memory_order_relaxed);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	r = submitting_lock(stream);
	if (r == 0) {
		r = put(stream, task, items, deferred, making);
		pthread_mutex_unlock(&stream->submitting);
	}
	pthread_setcancelstate(cancel, NULL);
	if (r < 0)
		return r;
	hccld_drive_submitted(stream->context, session);
	return 0;
}

int hccld_stream_submit_after(struct hccld_stream *stream, struct task *task,
			      const struct item *items, uint32_t item_count,
			      const struct hccld_after *after)
{
	struct deferred *deferred = hccld_deferred_new(after);
	int r;

	if (!deferred)
		return status_error(CAUSE_HOST_MEMORY);
	assert(item_count < HCCLD_BATCH_SLOTS_MAX);
	task->slot_count = (uint16_t)(1 + item_count);
	task->item_count = item_count;
	task->side = 0;
	r = put_and_tell(stream, task, items, deferred, NULL);
	if (r < 0)
		free(deferred);
	return r;
}

int hccld_stream_submit_made(struct hccld_stream *stream, struct task *task,
			     const struct item *items, uint32_t item_count,
			     const struct hccld_making *making)
{
	assert(item_count < HCCLD_BATCH_SLOTS_MAX);
	task->slot_count = (uint16_t)(1 + item_count);
	task->item_count = item_count;
	return put_and_tell(stream, task, items, NULL, making);
}

bool hccld_thread_last_task(uint32_t *ret_task)
{
	*ret_task = (uint32_t)(last_task - 1);
	return last_task != 0;
}

/* ---- side buffers ---- */

static int side_take(struct hccld_context *context, uint64_t size, struct side **ret_side)
{
	struct side **slot, *side;
	uint64_t rounded = SIDE_MIN;
	int r;

	pthread_mutex_lock(&side_mutex);
	for (slot = &sides[context->logical];
	     *slot && ((*slot)->segment.size < size || (*slot)->context != context->id);)
		slot = &(*slot)->next;
	side = *slot;
	if (side) {
		*slot = side->next;
		side_count[context->logical]--;
	}
	pthread_mutex_unlock(&side_mutex);
	if (side) {
		*ret_side = side;
		return 0;
	}
	while (rounded < size)
		rounded *= 2;
	side = calloc(1, sizeof(*side));
	if (!side)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to queue a large batch");
	side->device = context->logical;
	side->context = context->id;
	r = hccld_segment_new(context, HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__SIDE, rounded, 0,
			      &side->segment);
	if (r < 0) {
		free(side);
		return r;
	}
	*ret_side = side;
	return 0;
}

static void side_drop(void *arg)
{
	struct side *side = arg;

	hccld_segment_free(&side->segment);
	free(side);
}

/* Its task is done: the segment serves the next large batch. */
static void side_done(void *arg)
{
	struct side *side = arg;
	bool kept = false;

	pthread_mutex_lock(&side_mutex);
	if (side_count[side->device] < SIDES_KEPT && side->segment.size <= SIDE_KEPT_MAX) {
		side->next = sides[side->device];
		sides[side->device] = side;
		side_count[side->device]++;
		kept = true;
	}
	pthread_mutex_unlock(&side_mutex);
	if (!kept)
		side_drop(side);
}

static int submit_beside(struct hccld_stream *stream, struct task *task, const struct item *items,
			 uint32_t item_count)
{
	struct hccld_after after = { .action = side_done, .cancel = side_drop };
	struct deferred *deferred;
	struct side *side = NULL;
	int r;

	r = side_take(stream->context, (uint64_t)item_count * sizeof(*items), &side);
	if (r < 0)
		return r;
	memcpy(side->segment.base, items, item_count * sizeof(*items));
	after.arg = side;
	deferred = hccld_deferred_new(&after);
	if (!deferred) {
		side_done(side);
		return status_error(CAUSE_HOST_MEMORY);
	}
	task->slot_count = 1;
	task->item_count = item_count;
	task->side = side->segment.id;
	r = put_and_tell(stream, task, NULL, deferred, NULL);
	if (r < 0) {
		free(deferred);
		side_done(side);
	}
	return r;
}

int hccld_stream_submit(struct hccld_stream *stream, struct task *task, const struct item *items,
			uint32_t item_count)
{
	if (item_count >= HCCLD_BATCH_SLOTS_MAX)
		return submit_beside(stream, task, items, item_count);
	task->slot_count = (uint16_t)(1 + item_count);
	task->item_count = item_count;
	task->side = 0;
	return put_and_tell(stream, task, items, NULL, NULL);
}

int hccld_stream_defer(struct hccld_stream *stream, void (*action)(void *arg), void *arg)
{
	struct hccld_after after = { .action = action, .cancel = action, .arg = arg };
	struct deferred *deferred = hccld_deferred_new(&after);
	int cancel;

	if (!deferred)
		return status_error(CAUSE_HOST_MEMORY);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&stream->submitting); /* positions must not go back in the list */
	deferred->position = atomic_load_explicit(&stream->tail, memory_order_relaxed);
	hccld_deferred_push(stream, deferred);
	pthread_mutex_unlock(&stream->submitting);
	pthread_setcancelstate(cancel, NULL);
	return 0;
}

int hccld_stream_settle(struct hccld_stream *stream, const void *address, size_t size)
{
	uintptr_t start = (uintptr_t)address;
	uint64_t target = 0;
	int r;

	if (atomic_load_explicit(&stream->deferred_position, memory_order_acquire) == STREAM_NEVER)
		return 0;
	pthread_mutex_lock(&stream->deferring);
	for (struct deferred *deferred = stream->first; deferred; deferred = deferred->next) {
		uintptr_t other = (uintptr_t)deferred->after.writes;

		if (other && other < start + size && start < other + deferred->after.size)
			target = deferred->position;
	}
	pthread_mutex_unlock(&stream->deferring);
	if (!target)
		return 0;
	r = hccld_stream_wait_completed(stream, target, STREAM_NEVER);
	if (r == 0)
		hccld_deferred_run(stream, target);
	return r;
}

void hccld_stream_forget_sides(struct hccld_context *context)
{
	struct side *side;

	pthread_mutex_lock(&side_mutex);
	side = sides[context->logical];
	sides[context->logical] = NULL;
	side_count[context->logical] = 0;
	pthread_mutex_unlock(&side_mutex);
	while (side) {
		struct side *next = side->next;

		hccld_segment_unmap(&side->segment);
		free(side);
		side = next;
	}
}
