/* SPDX-License-Identifier: Apache-2.0 */
#include "control/retry.h"

#include <errno.h>

#include "base/loop.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/request.h"
#include "control/user.h"
#include "proto/clock.h"
#include "proto/status.h"

#define LOOK_MS 1	    /* a turn of the loop: in it we hear of every process that had ended when the request came */
#define AGAIN_MS 50	    /* if nothing tells us before */
#define HOLD_NS 5000000000u /* what ends is gone long before */
#define HOLD_CORES_NS 500000000u /* a process that has no kernel left gives its cores back within some ms */
#define HELD_PER_USER 64u   /* whoever has more is not waiting for the end of a process */

static bool is_want(int r)
{
	enum cause cause = status_cause(r);

	return r < 0 && (cause == CAUSE_LIMIT || cause == CAUSE_MEMORY || cause == CAUSE_HOST_MEMORY || cause == CAUSE_STREAMS ||
			 cause == CAUSE_NOTIFIES || cause == CAUSE_CORES);
}

/* Is what @request wants about to be free? */
static bool is_coming(const struct request *request)
{
	uint64_t now = clock_now_ns();

	if (request->control->ending_count)
		return now <= request->held_until_ns;
	return now <= request->held_until_ns - HOLD_NS + HOLD_CORES_NS && cores_are_coming(request);
}

/* Nothing was done before the refusal. */
static bool may_be_repeated(const struct request *request)
{
	const struct connection *connection = request->connection;

	switch (request->message->body_case) {
	case HCCLD__CONTROL__REQUEST__BODY_HELLO: /* those on the reserve are to be closed; with a session the reply is what failed */
		return connection && connection->state == CONNECTION_NEW && !connection->is_reserved && !connection->is_surplus;
	case HCCLD__CONTROL__REQUEST__BODY_JOIN_COMM: /* the communicator has failed */
		return false;
	default:
		return connection;
	}
}

bool retry_hold(struct request *request, int r)
{
	struct control *control = request->control;
	bool is_first = !request->held_until_ns;

	if (!is_want(r) || control->is_leaving || !dispatch_begins(request) || !may_be_repeated(request))
		return false;
	if (is_first ? request->user->held >= HELD_PER_USER : !is_coming(request))
		return false;
	if (is_first)
		request->held_until_ns = clock_now_ns() + HOLD_NS;
	request->user->held++;
	if (list_is_empty(&control->held) || is_first)
		loop_timer_start(control->retry_timer, is_first ? LOOK_MS : AGAIN_MS, 0);
	list_append(&control->held, &request->held);
	return true;
}

void retry_soon(struct control *control)
{
	if (!list_is_empty(&control->held))
		loop_timer_start(control->retry_timer, 0, 0);
}

static struct request *held_take(struct list *held)
{
	struct request *request = list_entry(held->next, struct request, held);

	list_remove(&request->held);
	request->user->held--;
	request_forget(request);
	return request;
}

void retry_held(void *data)
{
	struct control *control = data;
	struct list held;

	list_init(&held);
	list_splice(&held, &control->held);
	while (!list_is_empty(&held)) {
		struct request *request = held_take(&held);

		if (request->connection)
			dispatch_again(request);
		else
			request_finish(request, -ECANCELED);
	}
}

void retry_drop(struct control *control)
{
	while (!list_is_empty(&control->held))
		request_finish(held_take(&control->held), -ECANCELED);
}
