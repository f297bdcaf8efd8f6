/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of communicators, joining and leaving.
 *
 * A place of the table is never given back, so looking at it is always safe; its word says whether a handle is still good:
 *   generation << 32 | ALIVE | pins
 * hccld_comm_get() adds a pin while the generation fits and ALIVE is set; leaving clears ALIVE; whoever takes the last pin of a place
 * that is not ALIVE frees what it holds, raises the generation and puts it on the list of free places. All fields but the word, the
 * bitmaps and `async_reported` are written before ALIVE is set.
 */
#include "client/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/connection.h"
#include "client/device.h"
#include "client/environment.h"
#include "client/error.h"
#include "client/stream.h"
#include "proto/cleanup.h"
#include "proto/control.pb-c.h"

#define ALIVE (1ull << 31)
#define PINS (ALIVE - 1)
#define HANDLE_MARK 0x4843ull		/* top 16 bits: no address of a program looks like this */
#define GENERATION_MASK 0xffffffffull
#define NO_PLACE 0xffffffffu

static struct hccld_comm comms[HCCLD_RANKS_PER_SESSION];
static uint32_t next_free[HCCLD_RANKS_PER_SESSION];
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

static int place_take(struct hccld_comm **ret_comm)
{
	struct hccld_comm *comm = NULL;

	pthread_mutex_lock(&table_lock);
	if (first_free != NO_PLACE) {
		comm = &comms[first_free];
		first_free = next_free[first_free];
	} else if (used_count < HCCLD_RANKS_PER_SESSION) {
		comm = &comms[used_count++];
	}
	pthread_mutex_unlock(&table_lock);
	if (!comm)
		return hccld_error(CAUSE_LIMIT, "this process has %u communicators, the most it can have; destroy some with HcclCommDestroy",
				   HCCLD_RANKS_PER_SESSION);
	*ret_comm = comm;
	return 0;
}

/* The place is not ALIVE and has no pins: nobody else touches it. */
static void place_free(struct hccld_comm *comm)
{
	uint32_t index = (uint32_t)(comm - comms);
	uint64_t generation = (atomic_load_explicit(&comm->word, memory_order_relaxed) >> 32) + 1;

	if (comm->region)
		munmap((void *)comm->region, comm->region_size);
	free(comm->open[0]);
	free(comm->open[1]);
	comm->region = NULL;
	comm->open[0] = comm->open[1] = NULL;
	atomic_store_explicit(&comm->word, (generation & GENERATION_MASK) << 32, memory_order_release);
	pthread_mutex_lock(&table_lock);
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
		place_free(comm);
}

/* ---- root info ---- */

int hccld_root_info_new(HcclRootInfo *ret_root)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__GetRootInfo body = HCCLD__CONTROL__GET_ROOT_INFO__INIT;
	CLEANUP(hccld_call_end) struct hccld_call call = { 0 };
	struct hccld_root_info info = { .magic = HCCLD_ROOT_INFO_MAGIC, .version = HCCLD_ROOT_INFO_VERSION, .size = sizeof(info) };
	const Hccld__Control__GetRootInfoReply *reply;
	struct hccld_session *session;
	int r;

	r = hccld_environment_check();
	if (r < 0)
		return r;
	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GET_ROOT_INFO;
	request.get_root_info = &body;
	r = hccld_call_start(session->connection, &request, &call);
	if (r == 0)
		r = hccld_call_wait(session->connection, &call);
	if (r < 0)
		return r;
	reply = call.reply->body_case == HCCLD__CONTROL__REPLY__BODY_GET_ROOT_INFO ? call.reply->get_root_info : NULL;
	if (!reply || reply->secret.len > sizeof(info.secret) || strlen(reply->name) >= sizeof(info.name))
		return hccld_error(CAUSE_PROTOCOL, "the daemon's answer to HcclGetRootInfo is malformed");
	info.key = reply->key;
	info.secret_size = (uint32_t)reply->secret.len;
	memcpy(info.secret, reply->secret.data, reply->secret.len);
	info.name_size = (uint32_t)strlen(reply->name);
	memcpy(info.name, reply->name, info.name_size);
	memset(ret_root, 0, sizeof(*ret_root));
	memcpy(ret_root, &info, sizeof(info));
	return 0;
}

static int root_info_read(const HcclRootInfo *root, struct hccld_root_info *ret_info)
{
	struct hccld_root_info info;
	bool good;

	memcpy(&info, root, sizeof(info));
	good = info.magic == HCCLD_ROOT_INFO_MAGIC && info.size >= sizeof(info) && info.size <= sizeof(*root) &&
	       info.secret_size <= sizeof(info.secret) && info.name_size < sizeof(info.name) &&
	       strnlen(info.name, sizeof(info.name)) == info.name_size;
	if (!good)
		return hccld_error(CAUSE_ARGUMENT, "rootInfo is not what HcclGetRootInfo of hccld wrote: expected all %u bytes of it, unchanged",
				   HCCL_ROOT_INFO_BYTES);
	if (info.version != HCCLD_ROOT_INFO_VERSION)
		return hccld_error(CAUSE_ARGUMENT, "rootInfo has version %u, expected %u: the root uses another release of hccld",
				   info.version, HCCLD_ROOT_INFO_VERSION);
	*ret_info = info;
	return 0;
}

/* ---- joining ---- */

struct join {
	const struct hccld_comm_join *wish;
	struct hccld_root_info info;
	struct hccld_comm *comm;	/* taken place, not ALIVE */
	struct hccld_call call;
	bool started, joined;
};

/* What can fail here must not fail between the joins of one call: those sent already would wait for the others until their deadline. */
static int join_prepare(struct join *join, const struct hccld_comm_join *wish)
{
	int r;

	join->wish = wish;
	r = root_info_read(wish->root, &join->info);
	return r < 0 ? r : place_take(&join->comm);
}

static int join_start(struct join *join, struct hccld_session *session, const struct hccld_comm_config *config, uint32_t deadline_ms)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__JoinComm body = HCCLD__CONTROL__JOIN_COMM__INIT;
	int r;

	body.key = join->info.key;
	body.secret.data = join->info.secret;
	body.secret.len = join->info.secret_size;
	body.rank = join->wish->rank;
	body.size = join->wish->size;
	body.context = join->wish->context_id;
	body.name = (char *)config->name;
	body.udi = (char *)config->udi;
	request.deadline_ms = deadline_ms;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_JOIN_COMM;
	request.join_comm = &body;
	r = hccld_call_start(session->connection, &request, &join->call);
	join->started = r == 0;
	return r;
}

/* NULL: there is none, or it is of another kind. */
static const Hccld__Control__JoinCommReply *join_reply(const struct join *join)
{
	const Hccld__Control__Reply *reply = join->call.reply;

	return reply && reply->body_case == HCCLD__CONTROL__REPLY__BODY_JOIN_COMM ? reply->join_comm : NULL;
}

static int region_map(struct hccld_comm *comm, int fd)
{
	const struct comm_region *region;
	uint64_t size = comm_region_size(comm->size);

	region = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (region == MAP_FAILED)
		return hccld_error(CAUSE_SYSTEM_CALL, "cannot map the region of communicator %s: %s", comm->name, strerror(errno));
	/* the child of a fork has nothing to do with it */
	madvise((void *)region, size, MADV_DONTFORK);
	comm->region = region;
	comm->region_size = size;
	if (region->magic != COMM_REGION_MAGIC || region->version != COMM_REGION_VERSION || region->size != comm->size)
		return hccld_error(CAUSE_PROTOCOL, "the region of communicator %s is malformed", comm->name);
	return 0;
}

static void leave_request(uint64_t rank)
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

/* Fills the place; it is not ALIVE yet. */
static int join_finish(struct join *join, struct hccld_session *session, const struct hccld_comm_config *config)
{
	struct hccld_comm *comm = join->comm;
	const Hccld__Control__JoinCommReply *reply = join_reply(join);
	size_t words = (join->wish->size + 63) / 64;

	if (!reply || join->call.fd_count != 1 || strlen(reply->name) >= sizeof(comm->name))
		return hccld_error(CAUSE_PROTOCOL, "the daemon's answer to a join is malformed");
	comm->rank = join->wish->rank;
	comm->size = join->wish->size;
	comm->timeout_ms = config->timeout_ms;
	comm->allow_duplicate_items = session->allow_duplicate_items || hccld_environment_allow_duplicate_items();
	atomic_init(&comm->async_reported, false);
	comm->task_rank = reply->rank;
	comm->context = join->wish->context_id;
	comm->device = join->wish->context->logical;
	comm->comm = reply->comm;
	comm->held = NULL;
	strcpy(comm->name, reply->name);
	pthread_mutex_init(&comm->opening, NULL);
	comm->open[0] = calloc(words, sizeof(*comm->open[0]));
	comm->open[1] = calloc(words, sizeof(*comm->open[1]));
	if (!comm->open[0] || !comm->open[1])
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for a communicator of %u ranks", comm->size);
	return region_map(comm, join->call.fds[0]);
}

static void join_undo(struct join *join)
{
	if (join->joined && join_reply(join))
		leave_request(join_reply(join)->rank);
	if (join->comm)
		place_free(join->comm);
}

/* The rank is in: the handle becomes good. */
static void join_publish(struct join *join, struct hccld_comm_join *wish)
{
	struct hccld_comm *comm = join->comm;
	uint64_t generation = atomic_load_explicit(&comm->word, memory_order_relaxed) >> 32;

	if (wish->hold_context)
		comm->held = wish->context;
	hccld_comm_name_add(comm->comm, comm->name);
	comm->handle = handle_of((uint32_t)(comm - comms), generation);
	/* release: whoever gets the handle sees the fields */
	atomic_store_explicit(&comm->word, generation << 32 | ALIVE, memory_order_release);
	wish->ret_handle = comm->handle;
}

/* A root info that the daemon does not know, or whose secret is wrong, is a bad argument like one that is garbage. */
static int join_wait(struct join *join, struct hccld_session *session)
{
	int r = hccld_call_wait(session->connection, &join->call);
	enum cause cause = status_cause(r);

	if ((cause == CAUSE_NOT_FOUND || cause == CAUSE_PERMISSION) && join->call.reply)
		return hccld_error(CAUSE_ARGUMENT, "rootInfo: %s", join->call.reply->text);
	return r;
}

int hccld_comm_join(struct hccld_comm_join *wishes, uint32_t count, const struct hccld_comm_config *config)
{
	CLEANUP(freep) struct join *joins = calloc(count, sizeof(*joins));
	struct hccld_session *session;
	int r, error = 0;

	if (!joins)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to join %u ranks", count);
	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < count && error == 0; i++)
		error = join_prepare(&joins[i], &wishes[i]);
	for (uint32_t i = 0; i < count && error == 0; i++)
		error = join_start(&joins[i], session, config, hccld_environment_connect_timeout_ms());
	for (uint32_t i = 0; i < count; i++) {
		if (!joins[i].started)
			continue;
		r = join_wait(&joins[i], session);
		joins[i].joined = join_reply(&joins[i]) != NULL;
		if (r == 0 && error == 0)
			r = join_finish(&joins[i], session, config);
		if (r < 0)
			error = r;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (error < 0)
			join_undo(&joins[i]);
		else
			join_publish(&joins[i], &wishes[i]);
		if (joins[i].started)
			hccld_call_end(&joins[i].call);
	}
	return error;
}

int hccld_comm_leave(void *handle)
{
	uint64_t generation, word;
	struct hccld_comm *comm;
	struct hccld_context *held;
	uint64_t context;
	int r = hccld_session_check_fork();

	if (r < 0)
		return r;
	comm = place_of(handle, &generation);
	if (!comm)
		return bad_handle(handle);
	word = atomic_load_explicit(&comm->word, memory_order_relaxed);
	do {
		if (word >> 32 != generation || !(word & ALIVE))
			return bad_handle(handle);
		/* no longer ALIVE and pinned by us, in one step: only one thread leaves */
	} while (!atomic_compare_exchange_weak_explicit(&comm->word, &word, (word & ~ALIVE) + 1, memory_order_acq_rel,
							memory_order_relaxed));
	held = comm->held;
	context = comm->context;
	leave_request(comm->task_rank);
	hccld_comm_name_drop(comm->comm);
	hccld_comm_put(comm);
	if (held)
		hccld_context_release(held, context);
	return 0;
}

/* ---- state ---- */

enum cause hccld_comm_async(const struct hccld_comm *comm, struct fault *ret_fault)
{
	const struct comm_member *member = &comm->region->members[comm->rank];

	/* acquire: with 2 the fault is complete and never changes again */
	if (atomic_load_explicit(&member->async, memory_order_acquire) != 2)
		return CAUSE_NONE;
	if (ret_fault)
		*ret_fault = member->fault;
	return (enum cause)member->fault.cause;
}

int hccld_comm_async_result(const struct hccld_comm *comm)
{
	struct hccld_session *session;
	enum cause cause = hccld_comm_async(comm, NULL);

	/* a watchdog that asks nothing else is to learn of a daemon that went for good, too */
	if (!cause && hccld_session_get(&session) == 0 && hccld_connection_is_gone(session->connection))
		cause = CAUSE_DAEMON_GONE;
	return status_of(cause)->hccl;
}

int hccld_comm_check_async(struct hccld_comm *comm)
{
	struct fault fault;

	/* a send whose bytes did not fit into its offer was not complete: its stream reports it */
	if (hccld_comm_async(comm, &fault) != CAUSE_MISMATCH || fault.direction != ITEM_SEND || fault.local_bytes > HCCLD_INLINE_MAX)
		return 0;
	if (atomic_exchange_explicit(&comm->async_reported, true, memory_order_relaxed))
		return 0;
	return hccld_error_fault(&fault, comm->name);
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
		r = hccld_call_simple(session->connection, &request);
		if (r == 0) {
			open_mark(comm, 0, body.send_to, body.n_send_to);
			open_mark(comm, 1, body.receive_from, body.n_receive_from);
		}
	}
	pthread_mutex_unlock(&comm->opening);
	return r;
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
	struct hccld_comm *comm;
	int r;

	r = hccld_comm_get(handle, &comm);
	if (r < 0)
		return r;
	r = hccld_comm_stream(comm, "HcclBarrier", stream_handle, &stream);
	if (r == 0)
		r = hccld_comm_check_async(comm);
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
