/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions. The tables are large and sparse: they cost only what is used of them. */
#include "registry/session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memfd.h"
#include "base/text.h"
#include "proto/cleanup.h"
#include "proto/feature.h"
#include "registry/context.h"
#include "registry/comm.h"
#include "registry/cores.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/tenant.h"

#define SESSION_DESCRIPTORS 3u /* region, socket, pidfd */

struct session_tables {
	struct view_segment view_segments[HCCLD_SEGMENTS_PER_SESSION];
	struct view_rank view_ranks[HCCLD_RANKS_PER_SESSION];
	struct session_place places[HCCLD_SEGMENTS_PER_SESSION];
};
static_assert(HCCLD_SEGMENTS_PER_SESSION >= HCCLD_RANKS_PER_SESSION && HCCLD_SEGMENTS_PER_SESSION >= HCCLD_STREAMS_PER_SESSION, "enough places");

static void session_give_all(struct session *session)
{
	for (int kind = 0; kind < QUOTA_KINDS; kind++)
		session_give(session, (enum quota_kind)kind, session->held[kind]);
}

struct session *session_free(struct session *session)
{
	if (!session)
		return NULL;
	list_remove(&session->link);
	for (uint32_t i = 0; i < HCCLD_DEVICES_MAX; i++)
		context_free(session->contexts[i]);
	/* view.segments is the first table */
	sparse_free(session->view.segments, sizeof(struct session_tables));
	memfd_unmap(session->view.region, SESSION_REGION_SIZE);
	close_fdp(&session->region_fd);
	close_fdp(&session->restored_socket_fd);
	close_fdp(&session->restored_pidfd);
	close_fdp(&session->pidfd);
	slots_deinit(&session->stream_slots);
	slots_deinit(&session->segment_slots);
	slots_deinit(&session->rank_slots);
	cores_forget(session);
	free(session->holders);
	session_give_all(session);
	quota_unref(session->quota);
	free(session);
	return NULL;
}

static void session_freep(struct session **session)
{
	session_free(*session);
}

static int session_make_tables(struct session *session)
{
	struct session_tables *tables;
	uint32_t device_count = session->registry->device_count;
	void *base;
	int r;

	r = sparse_new(sizeof(*tables), &base);
	if (r < 0)
		return r;
	tables = base;
	session->view.segments = tables->view_segments;
	session->view.ranks = tables->view_ranks;
	session->places = tables->places;
	r = slots_init(&session->stream_slots, HCCLD_STREAMS_PER_SESSION);
	if (r < 0)
		return r;
	r = slots_init(&session->segment_slots, HCCLD_SEGMENTS_PER_SESSION);
	if (r < 0)
		return r;
	r = slots_init(&session->rank_slots, HCCLD_RANKS_PER_SESSION);
	if (r < 0)
		return r;
	session->holders = calloc(device_count + 1, sizeof(*session->holders));
	if (!session->holders)
		return -ENOMEM;
	for (uint32_t i = 0; i <= device_count; i++)
		holder_init(&session->holders[i], session->view.pid);
	return 0;
}

/* Memory of this process; takes @region_fd. */
static int session_open(struct registry *registry, struct tenant *tenant,
			const struct record_session *record, int region_fd,
			struct session **ret_session)
{
	CLEANUP(close_fdp) int fd = region_fd;
	CLEANUP(session_freep) struct session *session = calloc(1, sizeof(*session));
	void *base;
	int r;

	if (!session)
		return -ENOMEM;
	list_init(&session->link);
	list_init(&session->joiners);
	list_init(&session->teardowns);
	list_init(&session->cores);
	session->references = 1;
	session->restored_socket_fd = session->restored_pidfd = session->pidfd = -1;
	session->exit = -1;
	session->registry = registry;
	session->tenant = tenant;
	session->quota = quota_ref(tenant->quota);
	session->view.id = record->id;
	session->view.pid = record->pid;
	session->uid = record->uid;
	session->version = record->version;
	session->features = record->features;
	session->view.never_drives = !(record->features & HCCLD_FEATURE_DIRECT);
	session->started_ns = record->started_ns;
	memcpy(session->process, record->process, sizeof(session->process));
	memcpy(session->library, record->library, sizeof(session->library));
	session->process[sizeof(session->process) - 1] = 0;
	session->library[sizeof(session->library) - 1] = 0;
	session->region_fd = take_fd(&fd);
	r = session_make_tables(session);
	if (r < 0)
		return r;
	r = memfd_map(session->region_fd, SESSION_REGION_SIZE, false, &base);
	if (r < 0)
		return r;
	session->view.region = base;
	*ret_session = take_ptr(&session);
	return 0;
}

static int session_publish(struct session *session)
{
	struct registry *registry = session->registry;
	int r;

	r = idmap_set(&registry->session_ids, session->view.id, session);
	if (r < 0)
		return r;
	list_append(&registry->sessions, &session->link);
	registry->session_count++;
	session->tenant->session_count++;
	return 0;
}

void session_unstore_socket(struct session *session)
{
	if (session->is_socket_stored)
		store_remove(session->registry->store, STORE_SOCKET, session->view.id);
	session->is_socket_stored = false;
}

static void session_unstore(struct session *session)
{
	const struct descriptor_store *store = session->registry->store;

	session_unstore_socket(session);
	if (!session->leaves_remnant)
		store_remove(store, STORE_PIDFD, session->view.id);
	store_remove(store, STORE_REGION, session->view.id);
}

/* Descriptors first, then the record that needs them, all before anyone is told. */
static int session_store(struct session *session, const struct record_session *record,
			 int socket_fd, int pidfd)
{
	const struct descriptor_store *store = session->registry->store;
	int r;

	r = store_add(store, STORE_REGION, record->id, session->region_fd);
	if (r < 0)
		return r;
	r = store_add(store, STORE_PIDFD, record->id, pidfd);
	if (r < 0)
		return r;
	r = store_add(store, STORE_SOCKET, record->id, socket_fd);
	if (r < 0)
		return r;
	session->is_socket_stored = true;
	return records_add(session->registry->records, RECORD_SESSION, record, &session->record);
}

/* -EUSERS, -EDQUOT. session_free() gives back. */
static int session_take_place(struct session *session)
{
	const struct registry *registry = session->registry;
	bool is_special = session->uid == 0 || session->uid == geteuid();

	if (session_take(session, QUOTA_SESSIONS, 1) < 0)
		return -EUSERS;
	/* the last places are for those who mend things */
	if (!is_special && registry->session_count + registry->remnant_count >= HCCLD_SESSIONS_MAX - HCCLD_RESERVE)
		return -EDQUOT;
	if (session_take(session, QUOTA_DESCRIPTORS, SESSION_DESCRIPTORS) < 0)
		return -EUSERS;
	if (session_take(session, QUOTA_MEMORY, SESSION_STREAM_OFFSET) < 0)
		return -EUSERS;
	return 0;
}

int session_new(struct registry *registry, struct tenant *tenant,
		const struct session_identity *identity, int socket_fd, int pidfd,
		struct session **ret_session)
{
	CLEANUP(session_freep) struct session *session = NULL;
	struct record_session record = {
		.tenant = tenant->id,
		.started_ns = clock_now_ns(),
		.pid = identity->pid,
		.uid = identity->uid,
		.version = identity->version,
		.features = identity->features,
	};
	struct session_region *header;
	int fd, r;

	text_clean(record.process, sizeof(record.process), identity->process);
	text_clean(record.library, sizeof(record.library), identity->library);
	r = memfd_new("hccld-session", SESSION_REGION_SIZE, false, &fd);
	if (r < 0)
		return r;
	r = memfd_back(fd, 0, SESSION_STREAM_OFFSET);
	if (r < 0) {
		close(fd);
		return r;
	}
	record.id = records_next_id(registry->records);
	r = session_open(registry, tenant, &record, fd, &session);
	if (r < 0)
		return r;
	r = session_take_place(session);
	if (r < 0)
		return r;
	header = session->view.region;
	header->magic = SESSION_MAGIC;
	header->version = SESSION_VERSION;
	header->stream_count = HCCLD_STREAMS_PER_SESSION;
	r = session_store(session, &record, socket_fd, pidfd);
	if (r < 0) {
		session_unstore(session);
		return r;
	}
	r = session_publish(session);
	if (r < 0) {
		records_remove(registry->records, RECORD_SESSION, session->record);
		session_unstore(session);
		return r;
	}
	*ret_session = take_ptr(&session);
	return 0;
}

int session_restore(struct registry *registry, struct tenant *tenant, uint32_t index,
		    struct session **ret_session, int *ret_pidfd)
{
	CLEANUP(session_freep) struct session *session = NULL;
	CLEANUP(close_fdp) int region_fd = -1, socket_fd = -1, pidfd = -1;
	const struct record_session *record = records_get(registry->records, RECORD_SESSION, index);
	struct stat st;
	int r;

	assert(record);
	region_fd = store_take(registry->store, STORE_REGION, record->id);
	socket_fd = store_take(registry->store, STORE_SOCKET, record->id);
	pidfd = store_take(registry->store, STORE_PIDFD, record->id);
	*ret_pidfd = socket_fd < 0 ? take_fd(&pidfd) : -1;
	if (region_fd < 0 || socket_fd < 0 || pidfd < 0)
		return -ENOENT;
	if (fstat(region_fd, &st) < 0 || (uint64_t)st.st_size != SESSION_REGION_SIZE)
		return -EPROTO;
	r = session_open(registry, tenant, record, take_fd(&region_fd), &session);
	if (r < 0)
		return r;
	session->restored_socket_fd = take_fd(&socket_fd);
	session->view.pidfd = session->restored_pidfd = take_fd(&pidfd);
	session->record = index;
	session->is_socket_stored = true;
	session->is_restored = true;
	session_take_back(session, QUOTA_SESSIONS, 1);
	session_take_back(session, QUOTA_DESCRIPTORS, SESSION_DESCRIPTORS);
	session_take_back(session, QUOTA_MEMORY, SESSION_STREAM_OFFSET);
	r = session_publish(session);
	if (r < 0)
		return r;
	*ret_session = take_ptr(&session);
	return 0;
}

void session_remove(struct session *session)
{
	struct registry *registry = session->registry;

	/*
	 * the record first: a record without descriptors would be an error to the next process, the
	 * reverse is not
	 */
	if (!session->leaves_remnant)
		records_remove(registry->records, RECORD_SESSION, session->record);
	session_unstore(session);
	cores_free_all(session);
	idmap_remove(&registry->session_ids, session->view.id);
	list_remove(&session->link);
	registry->session_count--;
	session->tenant->session_count--;
	/* its place is free, though somebody may still hold a reference */
	session_give(session, QUOTA_SESSIONS, session->held[QUOTA_SESSIONS]);
	session_unref(session);
}

struct session *session_ref(struct session *session)
{
	session->references++;
	return session;
}

void session_unref(struct session *session)
{
	if (--session->references == 0)
		session_free(session);
}

static struct record_session *session_record(const struct session *session)
{
	return records_get(session->registry->records, RECORD_SESSION, session->record);
}

uint64_t session_next_id(struct session *session, uint32_t index)
{
	/* stored before the id is known to anyone: the next process never gives it again */
	uint64_t generation = atomic_fetch_add_explicit(&session_record(session)->generation, 1,
							memory_order_release);

	return VIEW_ID(generation + 1, index);
}

bool session_gave_id(const struct session *session, uint64_t id)
{
	uint64_t generation = id >> 16;

	return generation && generation <= session_record(session)->generation;
}

struct context *session_context(struct session *session, uint64_t id)
{
	struct context *context;

	if (VIEW_INDEX(id) >= HCCLD_DEVICES_MAX)
		return NULL;
	context = session->contexts[VIEW_INDEX(id)];
	return context && context->id == id ? context : NULL;
}

struct segment *session_segment(struct session *session, uint64_t id)
{
	struct segment *segment;

	if (VIEW_INDEX(id) >= HCCLD_SEGMENTS_PER_SESSION)
		return NULL;
	segment = session->places[VIEW_INDEX(id)].segment;
	return segment && segment->id == id && !segment->is_closing ? segment : NULL;
}

struct rank *session_rank(struct session *session, uint64_t handle)
{
	struct rank *rank;

	if (VIEW_INDEX(handle) >= HCCLD_RANKS_PER_SESSION)
		return NULL;
	rank = session->places[VIEW_INDEX(handle)].rank;
	return rank && rank->handle == handle && !rank->is_closing ? rank : NULL;
}

struct stream *session_stream_at(struct session *session, uint32_t index)
{
	struct stream *stream;

	if (index >= HCCLD_STREAMS_PER_SESSION)
		return NULL;
	stream = session->places[index].stream;
	return stream && !stream->is_closing ? stream : NULL;
}

struct account *session_account(struct session *session, uint32_t device,
				struct holder **ret_holder)
{
	struct registry *registry = session->registry;

	if (device == HCCLD_DEVICES_MAX) {
		*ret_holder = &session->holders[registry->device_count];
		return &registry->host;
	}
	assert(device < registry->device_count);
	*ret_holder = &session->holders[device];
	return &registry->devices[device].memory;
}

int session_charge(struct session *session, uint32_t device, uint64_t bytes)
{
	struct holder *holder;
	struct account *account = session_account(session, device, &holder);
	int r;

	if (session_take(session, QUOTA_MEMORY, bytes) < 0)
		return -EUSERS;
	r = account_charge(account, holder, bytes);
	if (r < 0)
		session_give(session, QUOTA_MEMORY, bytes);
	return r;
}

void session_force(struct session *session, uint32_t device, uint64_t bytes)
{
	struct holder *holder;
	struct account *account = session_account(session, device, &holder);

	session_take_back(session, QUOTA_MEMORY, bytes);
	account_force(account, holder, bytes);
}

void session_refund(struct session *session, uint32_t device, uint64_t bytes)
{
	struct holder *holder;
	struct account *account = session_account(session, device, &holder);

	account_refund(account, holder, bytes);
	session_give(session, QUOTA_MEMORY, bytes);
}

int session_take(struct session *session, enum quota_kind kind, uint64_t amount)
{
	int r = quota_charge(session->quota, kind, amount);

	if (r == 0)
		session->held[kind] += amount;
	return r;
}

void session_take_back(struct session *session, enum quota_kind kind, uint64_t amount)
{
	quota_force(session->quota, kind, amount);
	session->held[kind] += amount;
}

void session_give(struct session *session, enum quota_kind kind, uint64_t amount)
{
	assert(session->held[kind] >= amount);
	session->held[kind] -= amount;
	quota_refund(session->quota, kind, amount);
}

uint64_t session_memory(const struct session *session)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i <= session->registry->device_count; i++)
		bytes += session->holders[i].used;
	return bytes;
}
