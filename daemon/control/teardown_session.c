/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a session: what others are told of it, then all that it has. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "control/channel_wait.h"
#include "control/control.h"
#include "control/join.h"
#include "control/last_look.h"
#include "control/monitor.h"
#include "control/obituary.h"
#include "control/request.h"
#include "control/retry.h"
#include "control/teardown_take.h"
#include "proto/region.h"
#include "registry/comm.h"
#include "registry/registry.h"
#include "registry/session.h"

void session_going(struct control *control, struct session *session)
{
	control->ending_count += !session->is_going;
	session->is_going = true;
}

void session_gone(struct control *control, struct session *session)
{
	control->ending_count -= session->is_going;
	session->is_going = false;
	retry_soon(control);
}

/* Root infos nobody has used. */
static void session_end_comms(struct session *session)
{
	list_for_each(struct comm, comm, &session->registry->comms, link)
		if (comm->owner == session->view.id)
			comm_owner_ends(comm);
	comms_forget_failed(session->registry);
}

/* @teardown NULL: no memory for one. */
static void session_dismantle(struct control *control, struct session *session, int32_t exit,
			 struct teardown *teardown)
{
	char how[64];

	session_going(control, session);
	session->is_ending = true;
	session->exit = exit;
	exit_text(exit, how, sizeof(how));
	monitor_session(control, "session-end", session, how);
	/*
	 * clients see the hang-up when the store's copy is gone too; the next process finds a
	 * session without socket, and drops it
	 */
	session_unstore_socket(session);
	joins_abort(control, session, NULL, exit);
	channel_waits_abort(session);
	session_end_comms(session);
	obituary_log(session, exit);
	if (!teardown) {
		/* its objects stay until the daemon restarts; nothing else is harmed */
		log_error("no memory to free what pid %d has left behind", session->view.pid);
		session_gone(control, session);
		return;
	}
	last_look(control, session, NULL, teardown_take_session, teardown);
}

int teardown_session(struct request *request, struct session *session, int32_t exit)
{
	struct teardown *teardown = teardown_make(request->control, session, request);

	if (!teardown)
		return -ENOMEM;
	session_dismantle(request->control, session, exit, teardown);
	return REQUEST_LATER;
}

void session_end(struct control *control, struct session *session, int32_t exit)
{
	session_dismantle(control, session, exit, teardown_make(control, session, NULL));
}
