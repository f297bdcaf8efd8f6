/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about communicators that need no waiting; joining is in join.c. */
#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/memfd.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/last_look.h"
#include "control/meeting.h"
#include "control/query.h"
#include "control/request.h"
#include "control/teardown.h"
#include "control/tenants.h"
#include "proto/cleanup.h"
#include "proto/feature.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/growth.h"
#include "registry/pairs.h"
#include "registry/segment.h"
#include "registry/session.h"

int handle_get_root_info(struct request *request)
{
	Hccld__Control__GetRootInfoReply *reply = &request->body.get_root_info;
	struct session *session = request_session(request);
	struct comm *comm;
	int r;

	r = query_check_draining(request, "new communicators");
	if (r < 0)
		return r;
	r = comm_new(session, &comm);
	if (r == -EUSERS)
		return tenants_refuse(request, CAUSE_LIMIT, session->quota, QUOTA_COMMS, 1);
	if (r == -EDQUOT)
		return request_fail(
			request, CAUSE_LIMIT,
			"this process has %" PRIu32
			" root infos that no communicator was made of; there is no room for more",
			session->root_infos);
	if (r < 0)
		return r;
	hccld__control__get_root_info_reply__init(reply);
	reply->key = comm->key;
	reply->secret.data = comm->secret;
	reply->secret.len = sizeof(comm->secret);
	reply->name = comm->name;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_GET_ROOT_INFO;
	request->reply.get_root_info = reply;
	return 0;
}

/* It may have left before the daemon was restarted, and the client has not heard of it. */
static int leave_again(struct request *request)
{
	struct session *session = request_session(request);

	if (session->is_restored && session_gave_id(session, request->message->leave_comm->rank))
		return teardown_again(request);
	return request_fail(request, CAUSE_BAD_HANDLE,
			    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
}

/* What it has sent is sent. */
static void leave_now(void *arg)
{
	struct request *request = arg;
	struct rank *rank;
	int r;

	/* its process has ended meanwhile, and all that it has goes */
	if (!request->connection) {
		request_free(request);
		return;
	}
	rank = session_rank(request_session(request), request->message->leave_comm->rank);
	r = rank ? teardown_rank(request, rank) : leave_again(request);
	if (r != REQUEST_LATER)
		request_finish(request, r);
}

int handle_leave_comm(struct request *request)
{
	struct session *session = request_session(request);
	struct rank *rank = session_rank(session, request->message->leave_comm->rank);

	if (!rank)
		return leave_again(request);
	meetings_leave(request->control, session, rank->comm->id);
	last_look(request->control, session, rank->context, leave_now, request);
	return REQUEST_LATER;
}

int handle_suspend_comm(struct request *request)
{
	struct rank *rank = session_rank(request_session(request),
					 request->message->suspend_comm->rank);

	if (!rank)
		return request_fail(request, CAUSE_BAD_HANDLE,
				    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
	rank_suspend(rank);
	return teardown_suspended(request, rank);
}

int handle_resume_comm(struct request *request)
{
	struct rank *rank = session_rank(request_session(request),
					 request->message->resume_comm->rank);

	if (!rank)
		return request_fail(request, CAUSE_BAD_HANDLE,
				    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
	rank_resume(rank);
	return teardown_resumed(request, rank);
}

/* An extent of @bytes was not made. */
static int extent_fail(struct request *request, const struct comm *comm, uint64_t bytes, int r)
{
	if (r == -EUSERS)
		return tenants_refuse_region(request, comm->quota, bytes);
	if (r == -ENOBUFS)
		return tenants_refuse_host(request, bytes);
	return r;
}

/* What is of @rank and its client does not have yet, as far as descriptors fit into a packet. */
static int pairs_reply(struct request *request, const struct rank *rank)
{
	Hccld__Control__OpenPairsReply *reply = &request->body.open_pairs;
	uint32_t mapped = request->message->open_pairs->mapped_pairs, from = 0;
	struct extent *extent;
	int r;

	hccld__control__open_pairs_reply__init(reply);
	reply->extents = request_alloc(request, HCCLD_PACKET_FDS_MAX * sizeof(*reply->extents));
	if (!reply->extents)
		return -ENOMEM;
	while ((extent = pairs_next_extent(rank->comm, rank->rank, from, mapped)) && reply->n_extents < HCCLD_PACKET_FDS_MAX) {
		Hccld__Control__OpenPairsReply__Extent *entry = request_alloc(request, sizeof(*entry));

		if (!entry)
			return -ENOMEM;
		hccld__control__open_pairs_reply__extent__init(entry);
		entry->first = extent->first;
		entry->count = extent->count;
		entry->bytes = extent->bytes;
		r = request_add_fd(request, extent->fd);
		if (r == 0)
			r = extent_give(extent, rank->comm, rank->rank);
		if (r < 0)
			return r;
		reply->extents[reply->n_extents++] = entry;
		from = extent->first + extent->count;
	}
	reply->more = extent != NULL;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_OPEN_PAIRS;
	request->reply.open_pairs = reply;
	return 0;
}

int handle_open_pairs(struct request *request)
{
	const Hccld__Control__OpenPairs *open = request->message->open_pairs;
	struct rank *rank = session_rank(request_session(request), open->rank);
	struct comm *comm;
	int r;

	if (!rank)
		return request_fail(request, CAUSE_BAD_HANDLE,
				    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
	comm = rank->comm;
	for (size_t i = 0; i < open->n_send_to + open->n_receive_from; i++) {
		bool is_send = i < open->n_send_to;
		uint32_t peer =
			is_send ? open->send_to[i] : open->receive_from[i - open->n_send_to];

		if (peer >= comm->view.size)
			return request_fail(request, CAUSE_ARGUMENT,
					    "communicator %s has no rank %" PRIu32, comm->name,
					    peer);
		r = pairs_open(comm, is_send ? rank->rank : peer, is_send ? peer : rank->rank);
		if (r < 0)
			return extent_fail(request, comm, pairs_next_bytes(comm), r);
	}
	if (!open->map || !(rank->session->features & HCCLD_FEATURE_DIRECT))
		return 0;
	return pairs_reply(request, rank);
}

int handle_grow_comm(struct request *request)
{
	const Hccld__Control__GrowComm *grow = request->message->grow_comm;
	struct rank *rank = session_rank(request_session(request), grow->rank);
	Hccld__Control__GrowCommReply *reply = &request->body.grow_comm;
	struct extent *extent;
	struct comm *comm;
	int r;

	if (!rank)
		return request_fail(request, CAUSE_BAD_HANDLE,
				    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
	comm = rank->comm;
	r = grow->pool ? growth_pool(comm, rank->rank, grow->pools, &extent) : growth_wide(comm, rank->rank, grow->peer, &extent);
	if (r == -ENOENT)
		return request_fail(request, CAUSE_NOT_FOUND, "rank %" PRIu32 " of communicator %s has all %u eager pools that a rank may have",
				    rank->rank, comm->name, HCCLD_EAGER_POOLS);
	if (r == -EINVAL && grow->pool)
		return request_fail(request, CAUSE_ARGUMENT, "rank %" PRIu32 " of communicator %s has less than %" PRIu32 " eager pools",
				    rank->rank, comm->name, grow->pools);
	if (r == -EINVAL)
		return request_fail(request, CAUSE_ARGUMENT,
				    grow->peer < comm->view.size ? "communicator %s has no pair ring to rank %" PRIu32 " yet"
								 : "communicator %s has no rank %" PRIu32,
				    comm->name, grow->peer);
	if (r < 0)
		return extent_fail(request, comm, grow->pool ? growth_pool_bytes(grow->pools) : growth_wide_bytes(), r);
	hccld__control__grow_comm_reply__init(reply);
	reply->index = extent->first;
	reply->slots = extent->use.slots;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_GROW_COMM;
	request->reply.grow_comm = reply;
	return 0;
}

/* The segment of a peer of @rank that its process may map, or NULL. */
static struct segment *peer_segment(const struct rank *rank, const Hccld__Control__MapPeer *map)
{
	const struct rank *peer = rank->comm->ranks[map->peer];

	if (!peer || peer->is_closing || peer->session->tenant != rank->session->tenant)
		return NULL;
	return segment_of_rank(peer, map->segment);
}

int handle_map_peer(struct request *request)
{
	const Hccld__Control__MapPeer *map = request->message->map_peer;
	Hccld__Control__MapPeerReply *reply = &request->body.map_peer;
	const struct rank *rank = session_rank(request_session(request), map->rank);
	CLEANUP(close_fdp) int fd = -1;
	struct segment *segment;
	int r;

	if (!rank)
		return request_fail(request, CAUSE_BAD_HANDLE,
				    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
	if (map->peer >= rank->comm->view.size)
		return request_fail(request, CAUSE_ARGUMENT, "communicator %s has no rank %" PRIu32, rank->comm->name, map->peer);
	segment = peer_segment(rank, map);
	if (!segment)
		return request_fail(request, CAUSE_NOT_FOUND, "rank %" PRIu32 " of communicator %s has no such memory that its peers may map",
				    map->peer, rank->comm->name);
	r = map->writable ? 0 : memfd_read_only(segment->memory.fd, &fd);
	if (r == 0)
		r = request_add_fd(request, map->writable ? segment->memory.fd : fd);
	if (r < 0)
		return r;
	segment->is_mapped = true;
	log_debug("pid %d maps %" PRIu64 " KiB of pid %d to %s, for communicator %s", rank->session->view.pid, segment->memory.bytes >> 10,
		  segment->context->session->view.pid, map->writable ? "write" : "read", rank->comm->name);
	hccld__control__map_peer_reply__init(reply);
	reply->bytes = segment->memory.bytes;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_MAP_PEER;
	request->reply.map_peer = reply;
	return 0;
}
