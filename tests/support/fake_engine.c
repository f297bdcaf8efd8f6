/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/fake_engine.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/channel.h"
#include "client/current.h"
#include "client/share.h"
#include "client/virtual.h"
#include "client/device.h"
#include "client/drive.h"
#include "client/error.h"
#include "client/handover.h"
#include "client/segment.h"
#include "client/thread.h"
#include "tests/support/test.h"

#define SEGMENTS_MAX 4096u

static struct hccld_session session;
static struct yard yard;
static struct beacon beacon;
static struct hccld_context context;
static _Atomic bool held, stop, gone;
static _Atomic uint64_t tasks;
static pthread_t thread;
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER; /* a step of the engine */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static bool place_used[HCCLD_STREAMS_PER_SESSION];	  /* `running` */
static struct hccld_segment segments[SEGMENTS_MAX];
static uint32_t kinds[SEGMENTS_MAX];
static uint32_t segment_count;
static uint64_t device_bytes, device_limit = UINT64_MAX;
static struct fault next_fault;
static bool has_fault;

/* ---- session ---- */

static void session_make(void)
{
	session.region = mmap(NULL, SESSION_REGION_SIZE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(session.region != MAP_FAILED);
	session.yard = &yard;
	session.beacon = &beacon;
	session.event_fd = -1;
	context.words = &yard.contexts[5];
	context.bit_word = &yard.bits[0];
	context.bit = 1 << 5;
	context.id = 77;
	atomic_store(&context.open, true);
}

int hccld_session_need(uint64_t feature, const char *what, struct hccld_session **ret_session)
{
	(void)feature;
	(void)what;
	return hccld_session_get(ret_session);
}

void hccld_thread_describe_wait(struct hccld_stream *stream, const struct fault *fault, char *buffer, size_t size)
{
	(void)stream;
	(void)fault;
	*buffer = size ? 0 : *buffer;
}

/* Nobody but the engine drives. */
void hccld_drive_add_stream(struct hccld_context *on, struct stream_ring *ring)
{
	(void)on;
	(void)ring;
}

void hccld_drive_remove_stream(struct hccld_context *on, struct stream_ring *ring)
{
	(void)on;
	(void)ring;
}

bool hccld_drive_fulfil(const struct direct_wish *wish)
{
	(void)wish;
	return false;
}

void hccld_drive_submitted(struct hccld_context *on, const struct hccld_session *of)
{
	hccld_handover_tell(&(struct hccld_handover){ on->words, on->bit_word, on->bit, of->beacon, of->event_fd });
}

int hccld_session_get(struct hccld_session **ret_session)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, session_make);
	*ret_session = &session;
	return 0;
}

int hccld_session_check_fork(void)
{
	return 0;
}

struct hccld_context *fake_context(void)
{
	struct hccld_session *unused;

	hccld_session_get(&unused);
	return &context;
}

int hccld_context_current(struct hccld_context **ret_context)
{
	*ret_context = fake_context();
	return 0;
}

bool hccld_context_is_open(const struct hccld_context *asked, uint64_t id)
{
	return atomic_load(&asked->open) && asked->id == id;
}

int hccld_connection_gone_error(struct hccld_connection *connection, const char *when)
{
	(void)connection;
	return hccld_error(CAUSE_DAEMON_GONE, "hccld has ended%s", when);
}

_Atomic(struct hccld_stream *) *hccld_context_stream_slot(struct hccld_context *of)
{
	return &of->default_stream;
}

uint64_t hccld_context_owner(const struct hccld_context *of)
{
	return 0;
}

int hccld_share_find(const void *address, struct hccld_place *ret_place)
{
	return hccld_buffer_find(address, ret_place);
}

bool hccld_channel_look(const void *address, struct hccld_channel_owner *ret_owner)
{
	return false;
}

bool hccld_share_look(const void *address, struct hccld_lost *ret_lost)
{
	return false;
}

bool hccld_virtual_overlaps(const void *address, uint64_t bytes)
{
	return false;
}

bool hccld_channels_network_at(const void *address, uint64_t bytes)
{
	return false;
}

int hccld_share_lost_error(const char *function, const void *address)
{
	return 0;
}

bool hccld_connection_is_gone(struct hccld_connection *connection)
{
	return atomic_load(&gone);
}

void fake_hang_up(void)
{
	atomic_store(&gone, true);
}

/* ---- requests ---- */

static uint32_t place_take(void)
{
	uint32_t place = 0;
	struct stream_ring *ring;

	pthread_mutex_lock(&running);
	while (place_used[place])
		place++;
	ring = session_stream(session.region, place);
	memset(ring, 0, sizeof(*ring));
	ring->magic = STREAM_MAGIC;
	ring->version = STREAM_VERSION;
	ring->slot_count = HCCLD_STREAM_SLOTS;
	place_used[place] = true;
	pthread_mutex_unlock(&running);
	return place;
}

int hccld_call_start(struct hccld_connection *connection, Hccld__Control__Request *request,
		     struct hccld_call *call)
{
	memset(call, 0, sizeof(*call));
	call->reply = malloc(sizeof(*call->reply));
	check_ptr(call->reply);
	hccld__control__reply__init(call->reply);
	if (request->body_case == HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM) {
		call->reply->body_case = HCCLD__CONTROL__REPLY__BODY_CREATE_STREAM;
		call->reply->create_stream = malloc(sizeof(*call->reply->create_stream));
		check_ptr(call->reply->create_stream);
		hccld__control__create_stream_reply__init(call->reply->create_stream);
		call->reply->create_stream->stream = place_take();
	} else if (request->body_case == HCCLD__CONTROL__REQUEST__BODY_DESTROY_STREAM) {
		uint32_t place = request->destroy_stream->stream;

		pthread_mutex_lock(&running);
		check(place_used[place]);
		place_used[place] = false;
		memset(session_stream(session.region, place), 0, sizeof(struct stream_ring));
		pthread_mutex_unlock(&running);
	}
	return 0;
}

int hccld_call_wait(struct hccld_connection *connection, struct hccld_call *call)
{
	return 0;
}

void hccld_call_end(struct hccld_call *call)
{
	if (call->reply)
		hccld__control__reply__free_unpacked(call->reply, NULL);
	call->reply = NULL;
}

int hccld_call_simple(struct hccld_connection *connection, Hccld__Control__Request *request)
{
	struct hccld_call call;

	hccld_call_start(connection, request, &call);
	hccld_call_end(&call);
	return 0;
}

/* ---- segments ---- */

int hccld_segment_new(struct hccld_context *owner, uint32_t kind, uint64_t size, uint64_t asked,
		      struct hccld_segment *ret_segment)
{
	struct hccld_segment segment = { .size = (size + 4095) / 4096 * 4096 };
	uint32_t i = 0;

	pthread_mutex_lock(&mutex);
	if (kind == HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE &&
	    segment.size > device_limit - device_bytes) {
		pthread_mutex_unlock(&mutex);
		return hccld_error(CAUSE_MEMORY, "device memory is exhausted");
	}
	while (i < SEGMENTS_MAX && segments[i].base)
		i++;
	check(i < SEGMENTS_MAX);
	segment.id = i + 1;
	segment.base = mmap(NULL, segment.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	check(segment.base != MAP_FAILED);
	segments[i] = segment;
	kinds[i] = kind;
	segment_count++;
	if (kind == HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE)
		device_bytes += segment.size;
	pthread_mutex_unlock(&mutex);
	*ret_segment = segment;
	return 0;
}

void hccld_segment_unmap(struct hccld_segment *segment)
{
	if (segment->base)
		munmap(segment->base, segment->size);
	segment->base = NULL;
}

void hccld_segment_free(struct hccld_segment *segment)
{
	pthread_mutex_lock(&mutex);
	check(segment->id && segment->id <= SEGMENTS_MAX);
	check_eq_ptr(segments[segment->id - 1].base, segment->base);
	if (kinds[segment->id - 1] == HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE)
		device_bytes -= segment->size;
	segments[segment->id - 1].base = NULL;
	segment_count--;
	hccld_segment_unmap(segment);
	pthread_mutex_unlock(&mutex);
}

uint32_t fake_segments(void)
{
	return segment_count;
}

uint64_t fake_device_bytes(void)
{
	return device_bytes;
}

void fake_device_limit(uint64_t bytes)
{
	device_limit = bytes;
}

static char *address_of(uint64_t id, uint64_t offset, uint64_t bytes)
{
	check(id && id <= SEGMENTS_MAX && segments[id - 1].base);
	check(offset <= segments[id - 1].size && bytes <= segments[id - 1].size - offset);
	return (char *)segments[id - 1].base + offset;
}

/* ---- the engine thread ---- */

static const struct item *item_at(struct stream_ring *ring, const struct task *task, uint64_t head,
				  uint32_t index)
{
	if (task->side)
		return (const struct item *)address_of(task->side, 0, task->item_count * 64ull) +
		       index;
	return &ring->slots[(head + 1 + index) % HCCLD_STREAM_SLOTS].item;
}

static void task_run(struct stream_ring *ring, const struct task *task, uint64_t head)
{
	for (uint32_t i = 0; i < task->item_count; i++) {
		const struct item *item = item_at(ring, task, head, i);
		char *to = address_of(item->segment, item->offset, item->bytes);

		if (item->kind == ITEM_FILL) {
			memset(to, (int)item->peer, item->bytes);
		} else {
			const struct item *source = item_at(ring, task, head, ++i);

			check_eq_int(item->kind, ITEM_COPY);
			check_eq_int(source->kind, ITEM_SOURCE);
			memcpy(to, address_of(source->segment, source->offset, item->bytes),
			       item->bytes);
		}
	}
}

/* Says that it is due, if it is not over. */
static bool host_is_over(struct stream_ring *ring, uint64_t head)
{
	struct task *task = &ring->slots[head % HCCLD_STREAM_SLOTS].task;
	struct session_host *host = session_host(session.region);

	if (atomic_load_explicit(&ring->host_done, memory_order_acquire) > head)
		return true;
	if (atomic_exchange(&task->number, 1))
		return false;
	atomic_fetch_add(&host->news, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&host->sleepers))
		syscall(SYS_futex, &host->news, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return false;
}

static bool ring_step(struct stream_ring *ring)
{
	uint64_t head = atomic_load(&ring->completed);
	struct task task;

	if (head == atomic_load_explicit(&ring->tail, memory_order_acquire))
		return false;
	memcpy(&task, &ring->slots[head % HCCLD_STREAM_SLOTS], sizeof(task));
	if (task.kind == TASK_HOST && !host_is_over(ring, head))
		return false;
	check_eq_int(task.kind, task.item_count ? TASK_BATCH : TASK_HOST);
	check_eq_uint(task.slot_count, task.side ? 1 : 1 + task.item_count);
	pthread_mutex_lock(&mutex);
	task_run(ring, &task, head);
	if (has_fault) {
		has_fault = false;
		ring->fault = next_fault;
		atomic_fetch_add_explicit(&ring->fault_count, 1, memory_order_release);
	}
	pthread_mutex_unlock(&mutex);
	atomic_fetch_add(&tasks, 1);
	atomic_store_explicit(&ring->completed, head + task.slot_count, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&context.words->sleepers)) {
		atomic_fetch_add(&context.words->news, 1);
		syscall(SYS_futex, &context.words->news, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	return true;
}

static bool rings_step(void)
{
	bool moved = false;

	pthread_mutex_lock(&running);
	for (uint32_t i = 0; i < HCCLD_STREAMS_PER_SESSION && !atomic_load(&held); i++)
		if (place_used[i])
			moved = ring_step(session_stream(session.region, i)) || moved;
	pthread_mutex_unlock(&running);
	return moved;
}

/* Rules R3, R4 and R10, as far as one context goes. */
static void look(void)
{
	uint64_t state = atomic_load(&context.words->state);

	while (yard_kind(state) == CONTEXT_LEFT) {
		if (!atomic_compare_exchange_strong(&context.words->state, &state,
						    yard_next(state, CONTEXT_ENGINE)))
			continue;
		while (rings_step())
			;
		atomic_fetch_and(context.bit_word, ~context.bit);
		atomic_store(&context.words->state,
			     yard_next(atomic_load(&context.words->state), CONTEXT_PARKED));
		atomic_thread_fence(memory_order_seq_cst);
		state = atomic_load(&context.words->state);
		if (rings_step())
			atomic_compare_exchange_strong(&context.words->state, &state,
						       yard_next(state, CONTEXT_LEFT));
		state = atomic_load(&context.words->state);
	}
}

static void *engine(void *arg)
{
	struct pollfd pollfd = { .fd = session.event_fd, .events = POLLIN };
	uint64_t value;

	while (!atomic_load(&stop)) {
		if (atomic_load(&held)) {
			usleep(100);
			continue;
		}
		look();
		atomic_store(&beacon.awake, 0);
		atomic_thread_fence(memory_order_seq_cst);
		if (!atomic_load(context.bit_word))
			poll(&pollfd, 1, 20);
		atomic_store(&beacon.awake, 1);
		if (read(session.event_fd, &value, sizeof(value)) < 0)
			check_eq_int(errno, EAGAIN);
		/* a task that was left while the thread was held */
		if (!atomic_load(&held) && rings_step())
			look();
	}
	return arg;
}

void fake_engine_start(bool start_held)
{
	fake_context();
	atomic_store(&held, start_held);
	atomic_store(&stop, false);
	session.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	check(session.event_fd >= 0);
	check_eq_int(pthread_create(&thread, NULL, engine, NULL), 0);
}

void fake_engine_stop(void)
{
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	close(session.event_fd);
}

void fake_engine_hold(bool hold)
{
	atomic_store(&held, hold);
}

void fake_engine_fail(const struct fault *fault)
{
	pthread_mutex_lock(&mutex);
	next_fault = *fault;
	has_fault = true;
	pthread_mutex_unlock(&mutex);
}

uint64_t fake_engine_tasks(void)
{
	return atomic_load(&tasks);
}
