/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables and parts of communicators: from what a rank says to the communicator it means. */
#include "control/meeting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/text.h"
#include "control/control.h"
#include "control/join.h"
#include "control/obituary.h"
#include "control/query.h"
#include "control/request.h"
#include "control/tenants.h"
#include "proto/cleanup.h"
#include "proto/digest.h"
#include "proto/region.h"
#include "registry/comm.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/tenant.h"

#define FAILURE_KEPT_NS (600u * UINT64_C(1000000000))

struct meeting {
	enum comm_origin origin;
	unsigned char secret[HCCLD_SECRET_BYTES]; /* digest, then zero */
	uint64_t key;
	const Hccld__Control__JoinSub *sub;
	struct rank *parent;
	char name[HCCLD_COMM_NAME_MAX]; /* if the program gives none */
};

bool meeting_is(const Hccld__Control__JoinComm *join)
{
	return join->table || join->sub;
}

/* Only ranks of one tenant meet. */
static void meeting_set(struct meeting *meeting, struct digest *digest,
			const struct session *session)
{
	digest_add_number(digest, session->tenant->id);
	digest_write(digest, meeting->secret);
	memcpy(&meeting->key, meeting->secret, sizeof(meeting->key));
	meeting->key |= !meeting->key;
}

static int member_check(struct request *request, const struct comm *comm, uint32_t position,
			uint32_t rank, bool *seen)
{
	const struct comm_member *member;
	uint32_t word;

	if (rank >= comm->view.size)
		return request_fail(request, CAUSE_ARGUMENT,
				    "rankIds[%" PRIu32 "] is %" PRIu32
				    ", communicator %s has %" PRIu32 " ranks",
				    position, rank, comm->name, comm->view.size);
	if (seen[rank])
		return request_fail(request, CAUSE_ARGUMENT,
				    "rankIds[%" PRIu32 "] is %" PRIu32
				    ", as an entry before; expected each rank once",
				    position, rank);
	seen[rank] = true;
	member = &comm->view.region->members[rank];
	word = atomic_load_explicit(&member->word, memory_order_acquire);
	if (word == MEMBER_ALIVE)
		return 0;
	return request_fail(request, word == MEMBER_DEAD ? CAUSE_PEER_DEAD : CAUSE_PEER_LEFT,
			    "rankIds[%" PRIu32 "] is %" PRIu32
			    ", which has %s communicator %s (pid %d): make the part without it",
			    position, rank, word == MEMBER_DEAD ? "died in" : "left", comm->name,
			    member->pid);
}

static int part_check(struct request *request, const Hccld__Control__JoinComm *join,
		      const struct rank *parent)
{
	const Hccld__Control__JoinSub *sub = join->sub;
	const struct comm *comm = parent->comm;
	CLEANUP(freep) bool *seen = calloc(comm->view.size, sizeof(*seen));
	int r;

	if (!seen)
		return -ENOMEM;
	if (sub->n_members != join->size)
		return request_fail(request, CAUSE_ARGUMENT,
				    "a part of %" PRIu32 " ranks names %zu members", join->size,
				    sub->n_members);
	for (uint32_t i = 0; i < join->size; i++) {
		r = member_check(request, comm, i, sub->members[i], seen);
		if (r < 0)
			return r;
	}
	if (sub->members[join->rank] == parent->rank)
		return 0;
	return request_fail(request, CAUSE_ARGUMENT,
			    "rankIds[%" PRIu32 "] is %" PRIu32
			    ", but this is rank %" PRIu32
			    " of communicator %s; subCommRankId is the rank's own place in rankIds",
			    join->rank, sub->members[join->rank], parent->rank, comm->name);
}

static int part_describe(struct request *request, const Hccld__Control__JoinComm *join,
			 struct meeting *meeting)
{
	struct session *session = request_session(request);
	const Hccld__Control__JoinSub *sub = join->sub;
	struct digest digest = digest_new();
	struct rank *parent = session_rank(session, sub->parent);
	int r;

	if (!parent || parent->is_closing)
		return request_fail(request, CAUSE_BAD_HANDLE,
				    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
	r = part_check(request, join, parent);
	if (r < 0)
		return r;
	meeting->origin = COMM_PART;
	meeting->sub = sub;
	meeting->parent = parent;
	digest_add_text(&digest, "part");
	digest_add_number(&digest, parent->comm->id);
	digest_add_number(&digest, sub->id);
	digest_add(&digest, sub->members, sub->n_members * sizeof(*sub->members));
	meeting_set(meeting, &digest, session);
	snprintf(meeting->name, sizeof(meeting->name), "%.100s_sub_%" PRIu64, parent->name,
		 sub->id);
	return 0;
}

static int meeting_describe(struct request *request, const Hccld__Control__JoinComm *join,
			    struct meeting *meeting)
{
	struct digest digest = digest_new();

	if (join->sub)
		return part_describe(request, join, meeting);
	if (join->table->digest.len != DIGEST_BYTES)
		return request_fail(request, CAUSE_ARGUMENT, "the digest of a rank table has %u bytes",
				    DIGEST_BYTES);
	meeting->origin = COMM_TABLE;
	digest_add_text(&digest, "table");
	digest_add(&digest, join->table->digest.data, join->table->digest.len);
	meeting_set(meeting, &digest, request_session(request));
	snprintf(meeting->name, sizeof(meeting->name), "hccl_world_group");
	return 0;
}

/*
 * Ranks that make parts with one id and lists that share a rank mean one part: one list is wrong.
 * @is_member: by rank of the whole. True: *@ret_rank is in the other list, too.
 */
static bool lists_overlap(const struct comm *comm, const bool *is_member, uint32_t *ret_rank)
{
	/* as many as the first rank has named, also if another with this digest counts otherwise */
	for (uint32_t i = 0; i < comm->part_count && i < comm->rendezvous.size; i++) {
		*ret_rank = comm->part_members[i];
		if (is_member[*ret_rank])
			return true;
	}
	return false;
}

/* Where the communicator will be found; a random number if that is taken. */
static int meeting_choose_key(const struct meeting *meeting, struct registry *registry,
			      uint64_t *ret_key)
{
	*ret_key = meeting->key;
	while (!*ret_key || comm_find(registry, *ret_key))
		if (getrandom(ret_key, sizeof(*ret_key), 0) != (ssize_t)sizeof(*ret_key))
			return -ENOTRECOVERABLE;
	return 0;
}

/* What is not in the records: the first rank brings it, also after a restart. */
static void meeting_complete(struct comm *comm, const struct meeting *meeting)
{
	if (!meeting->sub || comm->part_members)
		return;
	comm->parent = meeting->parent->comm->id;
	comm->part = meeting->sub->id;
	comm->part_members = malloc(meeting->sub->n_members * sizeof(*comm->part_members));
	if (!comm->part_members)
		return;
	comm->part_count = (uint32_t)meeting->sub->n_members;
	memcpy(comm->part_members, meeting->sub->members,
	       comm->part_count * sizeof(*comm->part_members));
}

/*
 * Ranks that pass the asker's list may come later, too: they find a communicator that has failed. All that hear of it now will not
 * hear of it again when they come with another list.
 */
static void lists_fail_both(struct request *request, const struct meeting *meeting, struct comm *other, uint32_t rank,
			    const char *text)
{
	struct session *session = request_session(request);
	struct comm *own;
	uint64_t key;

	comm_tell(other, session, rank);
	if (meeting_choose_key(meeting, session->registry, &key) == 0 &&
	    comm_new_meeting(session, meeting->origin, key, meeting->secret, meeting->name, &own) == 0) {
		meeting_complete(own, meeting);
		comm_tell(own, session, rank);
		for (uint32_t i = 0; i < other->rendezvous.size; i++)
			if (other->rendezvous.joiners[i])
				comm_tell(own, other->rendezvous.joiners[i]->session, i);
		comm_fail(own, CAUSE_ARGUMENT, text);
	}
	join_fail(other, CAUSE_ARGUMENT, text);
}

static int lists_fail(struct request *request, const struct meeting *meeting, struct comm *comm,
		      uint32_t rank, uint32_t shared)
{
	char buffer[HCCLD_TEXT_MAX];
	struct text text;

	text_init(&text, buffer, sizeof(buffer));
	text_add(&text,
		 "communicator %s: ranks pass different lists for subCommId %" PRIu64
		 ": rank %" PRIu32 " of the whole (pid %d) names %zu ranks, others named %" PRIu32
		 ", and rank %" PRIu32
		 " is in both; pass the same rankIds in all ranks of a part",
		 comm->name, meeting->sub->id, meeting->parent->rank,
		 request_session(request)->view.pid, meeting->sub->n_members, comm->rendezvous.size,
		 shared);
	lists_fail_both(request, meeting, comm, rank, buffer);
	return request_fail(request, CAUSE_ARGUMENT, "%s", buffer);
}

static int part_check_lists(struct request *request, const struct meeting *meeting, uint32_t rank)
{
	CLEANUP(freep) bool *is_member = calloc(meeting->parent->comm->view.size, sizeof(*is_member));
	uint32_t shared = 0;

	if (!is_member)
		return -ENOMEM;
	for (size_t i = 0; i < meeting->sub->n_members; i++)
		is_member[meeting->sub->members[i]] = true;
	list_for_each(struct comm, comm, &request->control->registry->comms, link) {
		if (comm->origin == COMM_PART && comm->state == COMM_JOINING &&
		    comm->parent == meeting->parent->comm->id && comm->part == meeting->sub->id &&
		    lists_overlap(comm, is_member, &shared))
			return lists_fail(request, meeting, comm, rank, shared);
	}
	return 0;
}

/*
 * The communicator that the rank means, or NULL. The digest can be forged: one of another tenant may
 * have the same key, and even the same secret.
 */
static bool meeting_means(const struct meeting *meeting, const struct session *session,
			  const struct comm *comm)
{
	return comm->key && comm->origin == meeting->origin &&
	       comm->tenant == session->tenant->id &&
	       memcmp(comm->secret, meeting->secret, sizeof(comm->secret)) == 0;
}

static struct comm *meeting_comm(const struct meeting *meeting, const struct session *session)
{
	struct comm *found = comm_find(session->registry, meeting->key);

	if (found && meeting_means(meeting, session, found))
		return found;
	/* only the first rank gets here, or somebody's forgery is in the way */
	list_for_each(struct comm, comm, &session->registry->comms, link)
		if (meeting_means(meeting, session, comm))
			return comm;
	return NULL;
}

/* Does the rank still have to hear of a failure? Processes that came later belong to another try. */
static bool failure_is_news(struct comm *comm, const struct session *session, uint32_t rank)
{
	if (comm_was_told(comm, session, rank) || session->started_ns >= comm->failed_ns ||
	    clock_now_ns() - comm->failed_ns > FAILURE_KEPT_NS)
		return false;
	comm_tell(comm, session, rank);
	return true;
}

static int meeting_make(struct request *request, const struct meeting *meeting, uint32_t rank,
			struct comm **ret_comm)
{
	struct session *session = request_session(request);
	int r = query_check_draining(request, "new communicators");
	uint64_t key;

	if (r < 0)
		return r;
	if (meeting->sub) {
		r = part_check_lists(request, meeting, rank);
		if (r < 0)
			return r;
	}
	r = meeting_choose_key(meeting, session->registry, &key);
	if (r < 0)
		return r;
	r = comm_new_meeting(session, meeting->origin, key, meeting->secret, meeting->name,
			     ret_comm);
	if (r == -EUSERS)
		return tenants_refuse(request, CAUSE_LIMIT, session->quota, QUOTA_COMMS, 1);
	if (r == -EDQUOT)
		return request_fail(request, CAUSE_LIMIT,
				    "this process has %" PRIu32
				    " communicators that are not complete; there is no room for more",
				    session->root_infos);
	return r;
}

int meeting_find(struct request *request, const Hccld__Control__JoinComm *join,
		 struct comm **ret_comm)
{
	struct session *session = request_session(request);
	struct meeting meeting = { 0 };
	struct comm *comm;
	int r = meeting_describe(request, join, &meeting);

	if (r < 0)
		return r;
	comm = meeting_comm(&meeting, session);
	if (comm && comm->state == COMM_FAILED) {
		if (failure_is_news(comm, session, join->rank))
			return request_fail(request, comm->failure, "%s",
					    comm->failure_text ? comm->failure_text
							       : status_of(comm->failure)->text);
		comm_forget(comm);
		comm = NULL;
	}
	if (!comm) {
		r = meeting_make(request, &meeting, join->rank, &comm);
		if (r < 0)
			return r;
	}
	meeting_complete(comm, &meeting);
	*ret_comm = comm;
	return 0;
}

struct rank *meeting_again(struct request *request)
{
	struct session *session = request_session(request);

	if (!session->is_restored)
		return NULL;
	for (uint32_t i = 0; i < HCCLD_RANKS_PER_SESSION; i++) {
		struct rank *rank = session->places[i].rank;

		if (rank && !rank->is_closing && rank->request == request->message->id)
			return rank;
	}
	return NULL;
}

/* A member of the part that is no rank of the whole any more, or -1. */
static int64_t part_lost_member(const struct registry *registry, const struct comm *comm)
{
	const struct comm *whole = idmap_get(&registry->comm_ids, comm->parent);

	for (uint32_t i = 0; whole && i < comm->part_count && i < comm->rendezvous.size; i++) {
		uint32_t rank = comm->part_members[i];

		/* one that has joined answers for itself */
		if (!comm->rendezvous.joiners[i] &&
		    atomic_load_explicit(&whole->view.region->members[rank].word,
					 memory_order_acquire) != MEMBER_ALIVE)
			return rank;
	}
	return -1;
}

void meetings_check(struct control *control)
{
	struct registry *registry = control->registry;

	list_for_each(struct comm, comm, &registry->comms, link) {
		const struct comm_member *member;
		char buffer[HCCLD_TEXT_MAX];
		const struct comm *whole;
		struct text text;
		int64_t lost;

		if (comm->origin != COMM_PART || comm->state != COMM_JOINING)
			continue;
		lost = part_lost_member(registry, comm);
		if (lost < 0)
			continue;
		whole = idmap_get(&registry->comm_ids, comm->parent);
		member = &whole->view.region->members[lost];
		text_init(&text, buffer, sizeof(buffer));
		text_add(&text, "communicator %s: rank %" PRId64 " of communicator %s (pid %d) ",
			 comm->name, lost, whole->name, member->pid);
		if (atomic_load_explicit(&member->word, memory_order_acquire) == MEMBER_DEAD) {
			exit_describe(member->exit, &text);
			text_add(&text, " before it had joined the part");
			join_fail(comm, CAUSE_PEER_DEAD, buffer);
		} else {
			text_add(&text, "has left it before it had joined the part");
			join_fail(comm, CAUSE_PEER_LEFT, buffer);
		}
	}
}

void meetings_leave(struct control *control, struct session *session, uint64_t parent_comm)
{
	list_for_each(struct comm, comm, &control->registry->comms, link) {
		struct joiner *own = NULL;

		if (comm->origin != COMM_PART || comm->state != COMM_JOINING ||
		    comm->parent != parent_comm)
			continue;
		list_for_each(struct joiner, joiner, &session->joiners, link)
			if (joiner->comm == comm)
				own = joiner;
		if (own)
			join_cancel(own, "destroyed the communicator it is a part of");
	}
}
