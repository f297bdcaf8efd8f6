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

#define LOOK_NS 1000000u     /* a turn of the loop: in it we hear of every process that had ended when the request came */
#define AGAIN_NS 50000000u  /* if nothing tells us before */
#define TURN_NS 2000000u     /* then the others have theirs */
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

/* Is it refused for want of something? Also in what is under way: a send needs rings and pools. */
static bool takes_something(const struct request *request)
{
	switch (request->message->body_case) {
	case HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS:
	case HCCLD__CONTROL__REQUEST__BODY_GROW_COMM:
		return true;
	default:
		return dispatch_begins(request);
	}
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

/* The timer comes at @at_ns, if not before. */
static void arm(struct control *control, uint64_t at_ns)
{
	uint64_t now = clock_now_ns();

	if (control->retry_ns && control->retry_ns <= at_ns)
		return;
	control->retry_ns = at_ns;
	loop_timer_start(control->retry_timer, at_ns > now ? (at_ns - now) / 1000000 + 1 : 0, 0);
}

static void hold_on(struct request *request, uint64_t until_ns)
{
	request->user->held++;
	list_append(&request->control->held, &request->held);
	arm(request->control, until_ns);
}

bool retry_hold(struct request *request, int r)
{
	struct control *control = request->control;
	bool is_first = !request->held_until_ns;
	uint64_t now = clock_now_ns();

	if (!is_want(r) || control->is_leaving || !takes_something(request) || !may_be_repeated(request))
		return false;
	if (is_first ? request->user->held >= HELD_PER_USER : !is_coming(request))
		return false;
	if (is_first)
		request->held_until_ns = now + HOLD_NS;
	request->again_ns = now + (is_first ? LOOK_NS : AGAIN_NS);
	hold_on(request, request->again_ns);
	return true;
}

void retry_soon(struct control *control)
{
	if (list_is_empty(&control->held))
		return;
	control->is_retry_of_all = true;
	arm(control, clock_now_ns());
}

void retry_cores(struct control *control)
{
	if (!list_is_empty(&control->held))
		arm(control, clock_now_ns());
}

static struct request *held_take(struct list *held)
{
	struct request *request = list_entry(held->next, struct request, held);

	list_remove(&request->held);
	request->user->held--;
	return request;
}

/* What it takes is its user's, as when it came. */
static void again(struct request *request)
{
	struct user *user = request->user;
	uint64_t since = clock_now_ns();

	user->retries++;
	request_forget(request);
	dispatch_again(request);
	user_charge(user, clock_now_ns() - since);
	user->retries--;
	user_collect(user);
}

void retry_held(void *data)
{
	struct control *control = data;
	bool is_of_all = control->is_retry_of_all;
	uint64_t now = clock_now_ns();
	struct list held;

	control->is_retry_of_all = false;
	control->retry_ns = 0;
	list_init(&held);
	list_splice(&held, &control->held);
	while (!list_is_empty(&held)) {
		struct request *request = held_take(&held);

		if (is_of_all)
			request->again_ns = now;
		if (!request->connection)
			request_finish(request, -ECANCELED);
		else if (clock_now_ns() - now > TURN_NS)
			hold_on(request, now);
		else if (now >= request->again_ns || cores_are_free(request))
			again(request);
		else
			hold_on(request, request->again_ns);
	}
}

void retry_drop(struct control *control)
{
	while (!list_is_empty(&control->held))
		request_finish(held_take(&control->held), -ECANCELED);
}
