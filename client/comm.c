/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of communicators, and leaving them.
 *
 * A place of the table is never given back, so looking at it is always safe; its word says whether a handle is still good:
 *   generation << 32 | ALIVE | JOINING | pins
 * hccld_comm_get() adds a pin while the generation fits and ALIVE is set; leaving clears ALIVE; whoever takes the last pin of a place
 * that is not ALIVE frees what it holds, raises the generation and puts it on the list of free places. All fields but the word, the
 * bitmaps and `async_reported` are written before ALIVE is set. While JOINING is set a thread waits in the creation of the communicator:
 * the handle is good for HcclCommDestroy only, which makes that thread return.
 */
#include "client/comm_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/channel.h"
#include "client/comm_buffer.h"
#include "client/connection.h"
#include "client/device.h"
#include "client/drive.h"
#include "client/engine_context.h"
#include "client/environment.h"
#include "client/error.h"
#include "client/mapping.h"
#include "client/rank_graph.h"
#include "client/registration.h"
#include "client/stream.h"
#include "client/table.h"
#include "client/thread.h"
#include "proto/cleanup.h"
#include "proto/control.pb-c.h"
#include "proto/feature.h"

#define ALIVE (1ull << 31)
#define JOINING (1ull << 30)
#define PINS (JOINING - 1)
#define HANDLE_MARK 0x4843ull		/* top 16 bits: no address of a program looks like this */
#define GENERATION_MASK 0xffffffffull
#define NO_PLACE 0xffffffffu
#define LEAVE_ATTEMPTS 1000	/* of a ms each: a thread that has its answer has seen it by then */

static struct hccld_comm comms[HCCLD_RANKS_PER_SESSION] HCCLD_TABLE;
static uint32_t next_free[HCCLD_RANKS_PER_SESSION] HCCLD_TABLE;
static uint32_t first_free = NO_PLACE, used_count;	/* places from used_count on were never used */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- handles ---- */

static void *handle_of(uint32_t index, uint64_t generation)
{
	return (void *)(uintptr_t)(HANDLE_MARK << 48 | (generation & GENERATION_MASK) << 16 | index);
}

/* Also refuses what cannot be a handle at all. */
static struct hccld_comm *place_of(void *handle, uint64_t *ret_generation)
{
	uint64_t value = (uintptr_t)handle;
	uint32_t index = value & 0xffff;

	if (value >> 48 != HANDLE_MARK || index >= HCCLD_RANKS_PER_SESSION)
		return NULL;
	*ret_generation = value >> 16 & GENERATION_MASK;
	return &comms[index];
}

/* With `table_lock`: another communicator of this process that has @name on @device. */
static bool name_is_taken(const char *name, int32_t device, const unsigned char *meeting)
{
	for (uint32_t i = 0; i < used_count; i++)
		if (comms[i].is_taken && comms[i].device == device && strcmp(comms[i].name, name) == 0 &&
		    memcmp(comms[i].meeting, meeting, sizeof(comms[i].meeting)) != 0)
			return true;
	return false;
}

int hccld_comm_place_take(const char *name, int32_t device, const unsigned char meeting[DIGEST_BYTES], bool is_table,
			  struct hccld_comm **ret_comm)
{
	struct hccld_comm *comm = NULL;

	pthread_mutex_lock(&table_lock);
	if (*name && name_is_taken(name, device, meeting)) {
		pthread_mutex_unlock(&table_lock);
		return hccld_error(CAUSE_ARGUMENT,
				   "the name \"%s\" is in use: another communicator of this process has it on device %d; choose another hcclCommName, or destroy that one first",
				   name, device);
	}
	if (first_free != NO_PLACE) {
		comm = &comms[first_free];
		first_free = next_free[first_free];
	} else if (used_count < HCCLD_RANKS_PER_SESSION) {
		comm = &comms[used_count++];
	}
	if (comm) {
		comm->is_taken = true;
		comm->is_table = is_table;
		comm->device = device;
		snprintf(comm->name, sizeof(comm->name), "%s", name);
		memcpy(comm->meeting, meeting, sizeof(comm->meeting));
	}
	pthread_mutex_unlock(&table_lock);
	if (!comm)
		return hccld_error(CAUSE_LIMIT, "this process has %u communicators, the most it can have; destroy some with HcclCommDestroy",
				   HCCLD_RANKS_PER_SESSION);
	*ret_comm = comm;
	return 0;
}

void hccld_comm_place_joining(struct hccld_comm *comm, uint64_t request)
{
	uint64_t generation = atomic_load_explicit(&comm->word, memory_order_relaxed) >> 32;

	comm->handle = handle_of((uint32_t)(comm - comms), generation);
	atomic_store_explicit(&comm->request, request, memory_order_relaxed);
	/* release: whoever destroys it finds the request */
	atomic_store_explicit(&comm->word, generation << 32 | JOINING, memory_order_release);
}

void hccld_comm_place_name(struct hccld_comm *comm, const char *name)
{
	pthread_mutex_lock(&table_lock);
	snprintf(comm->name, sizeof(comm->name), "%s", name);
	pthread_mutex_unlock(&table_lock);
}

void hccld_comm_place_alive(struct hccld_comm *comm)
{
	uint64_t generation = atomic_load_explicit(&comm->word, memory_order_relaxed) >> 32;

	/* release: whoever gets the handle sees the fields */
	atomic_store_explicit(&comm->word, generation << 32 | ALIVE, memory_order_release);
}

void hccld_comm_place_free(struct hccld_comm *comm)
{
	uint32_t index = (uint32_t)(comm - comms);
	uint64_t generation = (atomic_load_explicit(&comm->word, memory_order_relaxed) >> 32) + 1;

	hccld_rank_graph_end(comm);
	hccld_engine_contexts_end(comm);
	hccld_comm_buffer_end(comm);
	hccld_drive_free_rank(comm);
	if (comm->region)
		hccld_mapping_free(comm->region, comm->region_size);
	free(comm->open[0]);
	free(comm->open[1]);
	free(comm->dead_known);
	comm->region = NULL;
	comm->open[0] = comm->open[1] = comm->dead_known = NULL;
	atomic_store_explicit(&comm->word, (generation & GENERATION_MASK) << 32, memory_order_release);
	pthread_mutex_lock(&table_lock);
	comm->is_taken = false;
	next_free[index] = first_free;
	first_free = index;
	pthread_mutex_unlock(&table_lock);
}

static int bad_handle(const void *handle)
{
	return hccld_error(CAUSE_BAD_HANDLE, "comm is %p: that is no communicator of this process, or it was destroyed", handle);
}

int hccld_comm_get(void *handle, struct hccld_comm **ret_comm)
{
	uint64_t generation, word;
	struct hccld_comm *comm;
	int r = hccld_session_check_fork();

	if (r < 0)
		return r;
	comm = place_of(handle, &generation);
	if (!comm)
		return bad_handle(handle);
	word = atomic_load_explicit(&comm->word, memory_order_relaxed);
	do {
		if (word >> 32 == generation && (word & JOINING))
			return hccld_error(CAUSE_BAD_HANDLE, "comm is %p: that communicator is being created; wait until the call that creates it has returned",
					   handle);
		if (word >> 32 != generation || !(word & ALIVE))
			return bad_handle(handle);
		/* acquire: the fields are as they were when ALIVE was set */
	} while (!atomic_compare_exchange_weak_explicit(&comm->word, &word, word + 1, memory_order_acquire, memory_order_relaxed));
	*ret_comm = comm;
	return 0;
}

void hccld_comm_put(struct hccld_comm *comm)
{
	/* release: our reads of the fields come before the place is freed; acquire: whoever frees sees all others done */
	uint64_t word = atomic_fetch_sub_explicit(&comm->word, 1, memory_order_acq_rel);

	if (!(word & ALIVE) && (word & PINS) == 1)
		hccld_comm_place_free(comm);
}

bool hccld_comm_is_alive(const struct hccld_comm *comm)
{
	return atomic_load_explicit(&comm->word, memory_order_relaxed) & ALIVE;
}

/* ---- leaving ---- */

void hccld_comm_leave_request(uint64_t rank)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__LeaveComm body = HCCLD__CONTROL__LEAVE_COMM__INIT;
	struct hccld_session *session;

	if (hccld_session_get(&session) < 0)
		return;
	body.rank = rank;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LEAVE_COMM;
	request.leave_comm = &body;
	/* without a daemon, or after it has dropped the rank, there is nothing left to give back: no error, and no text of one */
	if (hccld_call_simple(session->connection, &request) < 0)
		hccld_error_forget();
}

int hccld_comm_cancel_request(uint64_t join)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CancelJoin body = HCCLD__CONTROL__CANCEL_JOIN__INIT;
	struct hccld_session *session;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	if (!(session->features & HCCLD_FEATURE_COMM))
		return hccld_error(CAUSE_BUSY, "a thread waits in the creation of this communicator, and hccld %s cannot end that; update hccld",
				   session->daemon_version);
	body.request = join;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CANCEL_JOIN;
	request.cancel_join = &body;
	r = hccld_call_simple(session->connection, &request);
	if (status_cause(r) != CAUSE_NOT_FOUND)
		return r;
	/* it has its answer: its thread is about to see it */
	hccld_error_forget();
	return -ENOENT;
}

/* Takes the place out of use. 0; 1: it is being created, by *@ret_request; -EBADF. */
static int leave_begin(void *handle, struct hccld_comm **ret_comm, uint64_t *ret_request)
{
	uint64_t generation, word;
	struct hccld_comm *comm = place_of(handle, &generation);

	if (!comm)
		return bad_handle(handle);
	for (;;) {
		word = atomic_load_explicit(&comm->word, memory_order_acquire);
		if (word >> 32 == generation && (word & JOINING)) {
			*ret_request = atomic_load_explicit(&comm->request, memory_order_acquire);
			/* as before: the number is of this communicator, not of the next one in this place */
			if (atomic_load_explicit(&comm->word, memory_order_relaxed) == word)
				return 1;
			continue;
		}
		if (word >> 32 != generation || !(word & ALIVE))
			return bad_handle(handle);
		/* no longer ALIVE and pinned by us, in one step: only one thread leaves */
		if (atomic_compare_exchange_weak_explicit(&comm->word, &word, (word & ~ALIVE) + 1, memory_order_acq_rel,
							  memory_order_relaxed))
			break;
	}
	*ret_comm = comm;
	return 0;
}

int hccld_comm_leave(void *handle)
{
	struct hccld_comm *comm = NULL;
	struct hccld_context *held;
	uint64_t context, request = 0;
	int r = hccld_session_check_fork();

	if (r < 0)
		return r;
	for (int i = 0; (r = leave_begin(handle, &comm, &request)) == 1; i++) {
		r = hccld_comm_cancel_request(request);
		if (r != -ENOENT)
			return r;
		if (i == LEAVE_ATTEMPTS)
			return hccld_error(CAUSE_BUSY, "comm is %p: its thread creates other communicators in the same call and waits for those; try again",
					   handle);
		usleep(1000);
	}
	if (r < 0)
		return r;
	held = comm->held;
	context = comm->context;
	hccld_threads_close(comm->task_rank);
	hccld_channels_revoke(comm);
	hccld_comm_buffer_leaving(comm);
	hccld_drive_remove_rank(comm);
	hccld_comm_leave_request(comm->task_rank);
	hccld_channels_forget(comm);
	hccld_registrations_forget(comm);
	hccld_threads_closed(comm->task_rank);
	hccld_comm_name_drop(comm->comm);
	hccld_comm_put(comm);
	if (held)
		hccld_context_release(held, context);
	return 0;
}

/* ---- by name ---- */

int hccld_comm_by_name(const char *name, void **ret_handle)
{
	struct hccld_context *context = NULL;
	void *found = NULL;
	int r = hccld_session_check_fork();

	if (r < 0)
		return r;
	/* the current device's first: the table of names is per device */
	if (hccld_context_current(&context) < 0)
		hccld_error_forget();
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < used_count; i++) {
		uint64_t word = atomic_load_explicit(&comms[i].word, memory_order_acquire);

		if (!comms[i].is_taken || !(word & ALIVE) || strcmp(comms[i].name, name) != 0)
			continue;
		if (!found || (context && comms[i].device == context->logical))
			found = comms[i].handle;
		if (context && comms[i].device == context->logical)
			break;
	}
	pthread_mutex_unlock(&table_lock);
	if (!found)
		return hccld_error(CAUSE_ARGUMENT, "commName is \"%.128s\": this process has no communicator of that name", name);
	*ret_handle = found;
	return 0;
}

bool hccld_comm_has_table(int32_t device)
{
	bool found = false;

	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < used_count && !found; i++)
		found = comms[i].is_taken && comms[i].is_table && comms[i].device == device;
	pthread_mutex_unlock(&table_lock);
	return found;
}

/* ---- pairs ---- */

static size_t open_missing(const struct hccld_comm *comm, unsigned int direction, const uint32_t *peers, uint32_t count,
			   uint32_t *missing)
{
	size_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!hccld_comm_is_open(comm, direction, peers[i]))
			missing[n++] = peers[i];
	return n;
}

static void open_mark(struct hccld_comm *comm, unsigned int direction, const uint32_t *peers, size_t count)
{
	/* release: who sees the bit submits items of a pair that exists */
	for (size_t i = 0; i < count; i++)
		atomic_fetch_or_explicit(&comm->open[direction][peers[i] / 64], 1ull << peers[i] % 64, memory_order_release);
}

#define MAP_ROUNDS 32	/* each with some extents; what cannot be mapped is no reason to go on for ever */

/* The rings are made, and mapped as far as that is possible. */
static int open_request(struct hccld_comm *comm, struct hccld_session *session, Hccld__Control__Request *request)
{
	Hccld__Control__OpenPairs *body = request->open_pairs;
	bool more = true;
	int r = 0;

	body->map = hccld_drive_maps(comm, &body->mapped_pairs);
	if (!body->map)
		return hccld_call_simple(session->connection, request);
	for (int i = 0; r == 0 && more && i < MAP_ROUNDS; i++) {
		struct hccld_call call;

		r = hccld_call_make(session->connection, request, &call);
		more = r == 0 && call.reply->body_case == HCCLD__CONTROL__REPLY__BODY_OPEN_PAIRS;
		if (more) {
			hccld_drive_map_pairs(comm, &call);
			more = call.reply->open_pairs->more && hccld_drive_maps(comm, &body->mapped_pairs);
		}
		hccld_call_end(&call);
	}
	return r;
}

int hccld_comm_open_pairs(struct hccld_comm *comm, const uint32_t *send_to, uint32_t send_count, const uint32_t *receive_from,
			  uint32_t receive_count)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__OpenPairs body = HCCLD__CONTROL__OPEN_PAIRS__INIT;
	CLEANUP(freep) uint32_t *missing = malloc((send_count + receive_count) * sizeof(*missing));
	struct hccld_session *session;
	int r;

	if (!missing)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to connect %u peers", send_count + receive_count);
	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	pthread_mutex_lock(&comm->opening);
	body.rank = comm->task_rank;
	body.send_to = missing;
	body.n_send_to = open_missing(comm, 0, send_to, send_count, missing);
	body.receive_from = missing + body.n_send_to;
	body.n_receive_from = open_missing(comm, 1, receive_from, receive_count, body.receive_from);
	if (body.n_send_to + body.n_receive_from > 0) {
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
		request.open_pairs = &body;
		r = open_request(comm, session, &request);
		if (r == 0) {
			hccld_drive_use_pairs(comm, missing, body.n_send_to + body.n_receive_from);
			open_mark(comm, 0, body.send_to, body.n_send_to);
			open_mark(comm, 1, body.receive_from, body.n_receive_from);
		}
	}
	pthread_mutex_unlock(&comm->opening);
	return r;
}

int hccld_comm_check_context(const struct hccld_comm *comm)
{
	if (hccld_context_is_open(comm->on, comm->context))
		return 0;
	return hccld_error(CAUSE_BAD_HANDLE, "rank %u: communicator %s ended when device %d was reset; create a new one", comm->rank,
			   comm->name, comm->device);
}

/* ---- streams ---- */

int hccld_comm_stream(const struct hccld_comm *comm, const char *operator_name, void *handle, struct hccld_stream **ret_stream)
{
	const struct hccld_context *context;
	struct hccld_stream *stream;
	int r = hccld_stream_get(handle, &stream);

	if (r < 0)
		return r;
	context = hccld_stream_context(stream);
	if (context->id != comm->context && context->logical == comm->device)
		return hccld_error(CAUSE_BAD_HANDLE, "%s: rank %u: communicator %s ended when device %d was reset; create a new one",
				   operator_name, comm->rank, comm->name, comm->device);
	if (context->id != comm->context)
		return hccld_error(CAUSE_ARGUMENT, "%s: rank %u: stream is %p, a stream of device %d; expected one of device %d, on which communicator %s was created",
				   operator_name, comm->rank, handle, context->logical, comm->device, comm->name);
	*ret_stream = stream;
	return 0;
}

int hccld_comm_barrier(void *handle, void *stream_handle)
{
	struct task task = { .kind = TASK_BARRIER, .first_lane = LANE_END };
	struct hccld_stream *stream;
	struct hccld_comm *comm = NULL;
	int r;

	r = hccld_comm_get(handle, &comm);
	if (r < 0)
		return r;
	r = hccld_comm_stream(comm, "HcclBarrier", stream_handle, &stream);
	if (r == 0)
		r = hccld_comm_check_async(comm);
	if (r == 0)
		r = hccld_comm_check_running(comm, &task.epoch);
	if (r == 0) {
		hccld_environment_log_entry("HcclBarrier: comm %s, rank %u of %u, stream %p", comm->name, comm->rank, comm->size,
					    stream_handle);
		task.rank = comm->task_rank;
		task.timeout_ms = comm->timeout_ms;
		r = hccld_stream_submit(stream, &task, NULL, 0);
	}
	hccld_comm_put(comm);
	return r;
}
