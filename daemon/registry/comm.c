/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators. */
#include "registry/comm.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/memfd.h"
#include "proto/cleanup.h"
#include "registry/context.h"
#include "registry/growth.h"
#include "registry/pairs.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/tenant.h"

#define FAILED_MEETINGS_MAX 256u

static struct record_comm *comm_record(const struct comm *comm)
{
	return records_get(comm->registry->records, RECORD_COMM, comm->record);
}

/* The views of a formed communicator. */
static void comm_free_view(struct comm *comm)
{
	uint32_t size = comm->view.size;

	sparse_free(comm->view.pairs, (uint64_t)size * size * sizeof(*comm->view.pairs));
	sparse_free(comm->view.contexts, size * sizeof(*comm->view.contexts));
	growths_free(comm);
	free(comm->ranks);
	comm->ranks = NULL;
	comm->view = (struct view_comm){ 0 };
}

struct comm *comm_free(struct comm *comm)
{
	if (!comm)
		return NULL;
	comm_free_view(comm);
	list_for_each(struct extent, extent, &comm->extents, link)
		extent_free(extent);
	rendezvous_deinit(&comm->rendezvous);
	quota_unref(comm->quota);
	list_remove(&comm->link);
	free(comm->failure_text);
	free(comm->part_members);
	free(comm->told);
	free(comm);
	return NULL;
}

static void comm_freep(struct comm **comm)
{
	comm_free(*comm);
}

static struct comm *comm_make(struct registry *registry, const struct record_comm *record)
{
	struct comm *comm = calloc(1, sizeof(*comm));

	if (!comm)
		return NULL;
	list_init(&comm->link);
	list_init(&comm->extents);
	comm->registry = registry;
	comm->id = record->id;
	comm->origin = record->origin;
	comm->key = record->ready && record->origin != COMM_ROOT_INFO ? 0 : record->key;
	comm->owner = record->owner;
	comm->started_ns = record->started_ns;
	comm->uid = record->uid;
	memcpy(comm->secret, record->secret, sizeof(comm->secret));
	memcpy(comm->name, record->name, sizeof(comm->name));
	memcpy(comm->udi, record->udi, sizeof(comm->udi));
	comm->name[sizeof(comm->name) - 1] = 0;
	comm->udi[sizeof(comm->udi) - 1] = 0;
	return comm;
}

static int comm_publish(struct comm *comm)
{
	struct registry *registry = comm->registry;
	int r;

	r = idmap_set(&registry->comm_ids, comm->id, comm);
	if (r < 0)
		return r;
	r = comm->key ? idmap_set(&registry->comm_keys, comm->key, comm) : 0;
	if (r < 0) {
		idmap_remove(&registry->comm_ids, comm->id);
		return r;
	}
	list_append(&registry->comms, &comm->link);
	registry->comm_count++;
	return 0;
}

static int random_fill(void *buffer, size_t size)
{
	if (getrandom(buffer, size, 0) == (ssize_t)size)
		return 0;
	log_error("getrandom failed: %s", strerror(errno));
	return -ENOTRECOVERABLE;
}

/* @record is complete but for id and name; @name NULL: a name of our own. */
static int comm_make_and_record(struct session *session, struct record_comm *record,
				const char *name, struct comm **ret_comm)
{
	struct registry *registry = session->registry;
	CLEANUP(comm_freep) struct comm *comm = NULL;
	int r;

	record->owner = session->view.id;
	record->started_ns = clock_now_ns();
	record->uid = session->uid;
	record->id = records_next_id(registry->records);
	if (name)
		snprintf(record->name, sizeof(record->name), "%s", name);
	else
		snprintf(record->name, sizeof(record->name), "hccl-%s-%d-%" PRIu64, registry->node,
			 session->view.pid, record->id);
	comm = comm_make(registry, record);
	if (!comm)
		return -ENOMEM;
	comm->tenant = session->tenant->id;
	comm->quota = quota_ref(session->quota);
	r = comm_publish(comm);
	if (r < 0)
		return r;
	r = records_add(registry->records, RECORD_COMM, record, &comm->record);
	if (r < 0) {
		idmap_remove(&registry->comm_ids, comm->id);
		idmap_remove(&registry->comm_keys, comm->key);
		registry->comm_count--;
		return r;
	}
	session->root_infos++;
	*ret_comm = take_ptr(&comm);
	return 0;
}

/* The same, with its place in the tenant's limit. -EUSERS. */
static int comm_add(struct session *session, struct record_comm *record, const char *name,
		    struct comm **ret_comm)
{
	int r;

	if (quota_charge(session->quota, QUOTA_COMMS, 1) < 0)
		return -EUSERS;
	r = comm_make_and_record(session, record, name, ret_comm);
	if (r < 0)
		quota_refund(session->quota, QUOTA_COMMS, 1);
	return r;
}

int comm_new(struct session *session, struct comm **ret_comm)
{
	struct record_comm record = { .origin = COMM_ROOT_INFO };
	int r;

	if (session->root_infos >= HCCLD_RANKS_PER_SESSION)
		return -EDQUOT;
	do {
		r = random_fill(&record.key, sizeof(record.key));
		if (r < 0)
			return r;
	} while (!record.key || comm_find(session->registry, record.key));
	r = random_fill(record.secret, sizeof(record.secret));
	if (r < 0)
		return r;
	return comm_add(session, &record, NULL, ret_comm);
}

struct comm *comm_find(struct registry *registry, uint64_t key)
{
	return idmap_get(&registry->comm_keys, key);
}

/* One without a root info that has failed: nobody owns it, and it has no record. */
static bool comm_is_kept(const struct comm *comm)
{
	return comm->state == COMM_FAILED && comm->origin != COMM_ROOT_INFO;
}

/* Out of registry, store and records. */
static void comm_remove(struct comm *comm)
{
	struct registry *registry = comm->registry;

	if (registry->comm_gone && comm->state == COMM_READY)
		registry->comm_gone(registry->data, comm);
	if (comm_is_kept(comm))
		registry->failed_meetings--;
	else
		records_remove(registry->records, RECORD_COMM, comm->record);
	list_for_each(struct extent, extent, &comm->extents, link)
		extent_remove(comm, extent);
	idmap_remove(&registry->comm_ids, comm->id);
	if (comm->key)
		idmap_remove(&registry->comm_keys, comm->key);
	registry->comm_count--;
	if (comm->quota)
		quota_refund(comm->quota, QUOTA_COMMS, 1);
	comm_free(comm);
}

/* The root info has served: it counts no more against its session. */
static void comm_release_owner(struct comm *comm)
{
	struct session *owner = idmap_get(&comm->registry->session_ids, comm->owner);

	if (owner && owner->root_infos)
		owner->root_infos--;
	comm->owner = 0;
}

bool comm_collect(struct comm *comm)
{
	bool kept = comm->state == COMM_READY ? comm->rank_count > 0
					      : comm->owner || comm->rendezvous.joined || comm_is_kept(comm);

	if (!kept)
		comm_remove(comm);
	return !kept;
}

void comm_owner_ends(struct comm *comm)
{
	comm->owner = 0;
	comm_collect(comm);
}

void comm_fail(struct comm *comm, enum cause cause, const char *text)
{
	if (comm->state != COMM_FAILED && comm->origin != COMM_ROOT_INFO) {
		comm_release_owner(comm);
		comm->registry->failed_meetings++;
		/* the next process need not know of it */
		records_remove(comm->registry->records, RECORD_COMM, comm->record);
	}
	comm->state = COMM_FAILED;
	comm->failure = cause;
	free(comm->failure_text);
	comm->failure_text = strdup(text); /* NULL: the cause's own text has to do */
	comm->failed_ns = clock_now_ns();
}

void comm_forget(struct comm *comm)
{
	comm_remove(comm);
}

/* Failed ones that are kept have a limit: the oldest goes. */
static void comm_forget_oldest(struct registry *registry)
{
	list_for_each(struct comm, comm, &registry->comms, link) {
		if (!comm_is_kept(comm))
			continue;
		comm_forget(comm);
		return;
	}
}

/* Only processes that were there before it failed have to hear of it; sessions are listed by age. */
static bool comm_has_audience(const struct comm *comm)
{
	list_for_each(struct session, session, &comm->registry->sessions, link)
		if (session->uid == comm->uid && !session->is_ending)
			return session->started_ns < comm->failed_ns;
	return false;
}

void comms_forget_failed(struct registry *registry)
{
	if (!registry->failed_meetings)
		return;
	list_for_each(struct comm, comm, &registry->comms, link)
		if (comm_is_kept(comm) && !comm_has_audience(comm))
			comm_forget(comm);
}

int comm_new_meeting(struct session *session, enum comm_origin origin, uint64_t key,
		     const unsigned char *secret, const char *name, struct comm **ret_comm)
{
	struct record_comm record = { .origin = origin, .key = key };

	if (session->root_infos >= HCCLD_RANKS_PER_SESSION)
		return -EDQUOT;
	if (session->registry->failed_meetings > FAILED_MEETINGS_MAX)
		comm_forget_oldest(session->registry);
	memcpy(record.secret, secret, sizeof(record.secret));
	return comm_add(session, &record, name, ret_comm);
}

/* Tables for @size ranks. */
static int comm_make_view(struct comm *comm, uint32_t size, struct comm_region *region)
{
	void *pairs, *contexts;
	int r;

	r = sparse_new((uint64_t)size * size * sizeof(*comm->view.pairs), &pairs);
	if (r < 0)
		return r;
	r = sparse_new(size * sizeof(*comm->view.contexts), &contexts);
	if (r < 0) {
		sparse_free(pairs, (uint64_t)size * size * sizeof(*comm->view.pairs));
		return r;
	}
	comm->view = (struct view_comm){ .id = comm->id,
					 .size = size,
					 .weight = comm_settings_weight(&comm->settings),
					 .share = comm->quota ? &comm->quota->share : NULL,
					 .region = region,
					 .contexts = contexts,
					 .pairs = pairs,
					 .pools = calloc(size, sizeof(*comm->view.pools)),
					 .pool_rooms = calloc(size, sizeof(*comm->view.pool_rooms)) };
	comm->ranks = calloc(size, sizeof(*comm->ranks));
	if (!comm->ranks || !comm->view.pools || !comm->view.pool_rooms) {
		comm_free_view(comm);
		return -ENOMEM;
	}
	return 0;
}

/* Into the tables and the engine's view. */
static void rank_publish(struct rank *rank)
{
	struct comm *comm = rank->comm;
	struct view_rank *view = &rank->session->view.ranks[VIEW_INDEX(rank->handle)];

	rank->session->places[VIEW_INDEX(rank->handle)].rank = rank;
	list_append(&rank->context->ranks, &rank->link);
	comm->ranks[rank->rank] = rank;
	comm->rank_count++;
	view->comm = &comm->view;
	view->context = &rank->context->view;
	view->rank = rank->rank;
	atomic_store_explicit(&comm->view.contexts[rank->rank], view->context,
			      memory_order_release);
	/* last */
	atomic_store_explicit(&view->handle, rank->handle, memory_order_release);
}

/* Record only; not in any table yet. */
static int rank_new(struct comm *comm, const struct joiner *joiner, struct rank **ret_rank)
{
	struct session *session = joiner->session;
	CLEANUP(freep) struct rank *rank = calloc(1, sizeof(*rank));
	struct record_rank record = { .comm = comm->id,
				      .session = session->view.id,
				      .context = joiner->context->id,
				      .request = joiner->request,
				      .rank = joiner->rank };
	uint32_t index;
	int r;

	if (!rank)
		return -ENOMEM;
	r = slots_take(&session->rank_slots, &index);
	if (r < 0)
		return -EDQUOT;
	list_init(&rank->link);
	list_init(&rank->registrations);
	list_init(&rank->channels);
	rank->comm = comm;
	rank->session = session;
	rank->context = joiner->context;
	rank->rank = joiner->rank;
	rank->request = joiner->request;
	rank->handle = record.handle = session_next_id(session, index);
	snprintf(rank->name, sizeof(rank->name), "%s", *joiner->name ? joiner->name : comm->name);
	memcpy(record.name, rank->name, sizeof(record.name));
	r = records_add(comm->registry->records, RECORD_RANK, &record, &rank->record);
	if (r < 0) {
		slots_give(&session->rank_slots, index);
		return r;
	}
	session->quota->ranks++;
	*ret_rank = take_ptr(&rank);
	return 0;
}

/* Out of the tables that rank_new() has used; not published, or detached from the engine. */
static void rank_discard(struct rank *rank)
{
	struct session *session = rank->session;

	assert(list_is_empty(&rank->registrations) && list_is_empty(&rank->channels));
	session->quota->ranks--;
	records_remove(rank->comm->registry->records, RECORD_RANK, rank->record);
	session->places[VIEW_INDEX(rank->handle)].rank = NULL;
	slots_give(&session->rank_slots, VIEW_INDEX(rank->handle));
	list_remove(&rank->link);
	free(rank);
}

static int comm_make_ranks(struct comm *comm)
{
	uint32_t size = comm->rendezvous.size;
	uint32_t made;
	int r = 0;

	for (made = 0; made < size; made++) {
		r = rank_new(comm, comm->rendezvous.joiners[made], &comm->ranks[made]);
		if (r < 0)
			break;
	}
	while (r < 0 && made--)
		rank_discard(comm->ranks[made]);
	return r;
}

int comm_form(struct comm *comm)
{
	uint32_t size = comm->rendezvous.size;
	struct record_comm *record = comm_record(comm);
	struct extent *extent;
	int r;

	r = extent_new(comm, &(struct extent_use){ .kind = EXTENT_REGION }, comm_region_size(size), &extent);
	if (r < 0)
		return r;
	r = comm_make_view(comm, size, extent->base);
	if (r < 0) {
		extent_remove(comm, extent);
		return r;
	}
	comm_region_write(comm, extent->base);
	r = comm_make_ranks(comm);
	if (r < 0) {
		comm_free_view(comm);
		extent_remove(comm, extent);
		return r;
	}
	memcpy(record->name, comm->name, sizeof(record->name));
	memcpy(record->udi, comm->udi, sizeof(record->udi));
	atomic_store_explicit(&record->size, size, memory_order_relaxed);
	/* commits: the next process takes region and ranks for whole once it finds this word */
	atomic_store_explicit(&record->ready, 1, memory_order_release);
	for (uint32_t i = 0; i < size; i++)
		rank_publish(comm->ranks[i]);
	comm_release_owner(comm);
	comm->state = COMM_READY;
	if (comm->origin != COMM_ROOT_INFO) {
		idmap_remove(&comm->registry->comm_keys, comm->key);
		comm->key = 0;
	}
	return 0;
}

void rank_announce(struct rank *rank, enum member_word word, int32_t exit)
{
	struct comm_member *member = &rank->comm->view.region->members[rank->rank];

	atomic_store_explicit(&member->exit, exit, memory_order_relaxed);
	/*
	 * whoever reads the word finds the status; seq_cst: a receive from this rank that still
	 * finds it alive after its copy has copied before the memory goes (P4)
	 */
	atomic_store_explicit(&member->word, word, memory_order_seq_cst);
}

void rank_remove(struct rank *rank)
{
	struct comm *comm = rank->comm;

	comm->ranks[rank->rank] = NULL;
	comm->rank_count--;
	growths_linger(comm);
	rank_discard(rank);
	comm_collect(comm);
}

static int comm_restore_ready(struct comm *comm, uint32_t size)
{
	struct extent *first = NULL;
	struct comm_region *region;
	int r;

	r = extents_restore(comm);
	if (r < 0)
		return r;
	list_for_each(struct extent, extent, &comm->extents, link)
		if (!extent->count)
			first = extent;
	if (!first || !size || size > HCCLD_RANKS_MAX || first->bytes < comm_region_size(size))
		return -EPROTO;
	region = first->base;
	if (region->magic != COMM_REGION_MAGIC || region->size != size)
		return -EPROTO;
	comm->settings = region->settings;
	r = comm_make_view(comm, size, region);
	if (r < 0)
		return r;
	r = pairs_restore(comm);
	if (r == 0)
		r = growths_restore(comm);
	if (r < 0)
		return r;
	comm->parent = region->parent;
	comm->state = COMM_READY;
	return 0;
}

int comm_restore(struct registry *registry, uint32_t index, struct comm **ret_comm)
{
	const struct record_comm *record = records_get(registry->records, RECORD_COMM, index);
	CLEANUP(comm_freep) struct comm *comm = NULL;
	int r;

	assert(record);
	comm = comm_make(registry, record);
	if (!comm)
		return -ENOMEM;
	comm->record = index;
	r = 0;
	if (record->ready) {
		comm->owner = 0;
		r = comm_restore_ready(comm, record->size);
	}
	if (r == 0)
		r = comm_publish(comm);
	if (r < 0) {
		account_refund(&registry->host, &registry->comm_holder, comm->memory);
		return r;
	}
	*ret_comm = take_ptr(&comm);
	return 0;
}

int rank_restore(struct context *context, uint32_t index, struct comm *comm)
{
	struct session *session = context->session;
	const struct record_rank *record = records_get(comm->registry->records, RECORD_RANK, index);
	struct rank *rank;

	assert(record);
	if (comm->state != COMM_READY || record->rank >= comm->view.size ||
	    comm->ranks[record->rank] ||
	    comm->view.region->members[record->rank].word != MEMBER_ALIVE)
		return -EPROTO;
	rank = calloc(1, sizeof(*rank));
	if (!rank)
		return -ENOMEM;
	if (slots_take_at(&session->rank_slots, VIEW_INDEX(record->handle)) < 0) {
		free(rank);
		return -EPROTO;
	}
	list_init(&rank->link);
	list_init(&rank->registrations);
	list_init(&rank->channels);
	rank->comm = comm;
	rank->session = session;
	rank->context = context;
	rank->rank = record->rank;
	rank->handle = record->handle;
	rank->request = record->request;
	rank->record = index;
	memcpy(rank->name, record->name, sizeof(rank->name));
	rank->name[sizeof(rank->name) - 1] = 0;
	session->quota->ranks++;
	rank_publish(rank);
	comm_set_tenant(comm, session);
	return 0;
}
