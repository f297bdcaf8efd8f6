/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about communicators that need no waiting; joining is in join.c. */
#include <errno.h>
#include <inttypes.h>

#include "control/control.h"
#include "control/dispatch.h"
#include "control/meeting.h"
#include "control/query.h"
#include "control/request.h"
#include "control/teardown.h"
#include "control/tenants.h"
#include "registry/comm.h"
#include "registry/pairs.h"
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

int handle_leave_comm(struct request *request)
{
	struct session *session = request_session(request);
	uint64_t handle = request->message->leave_comm->rank;
	struct rank *rank = session_rank(session, handle);

	if (rank) {
		meetings_leave(request->control, session, rank->comm->id);
		return teardown_rank(request, rank);
	}
	/* it may have left before the daemon was restarted, and the client has not heard of it */
	if (session->is_restored && session_gave_id(session, handle))
		return teardown_again(request);
	return request_fail(request, CAUSE_BAD_HANDLE,
			    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
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

static int pairs_fail(struct request *request, const struct comm *comm, int r)
{
	if (r == -EUSERS)
		return tenants_refuse_region(request, comm->quota, pairs_next_bytes(comm));
	if (r == -ENOBUFS)
		return tenants_refuse_host(request, pairs_next_bytes(comm));
	return r;
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
			return pairs_fail(request, comm, r);
	}
	return 0;
}
