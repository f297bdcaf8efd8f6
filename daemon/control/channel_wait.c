/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait until channels are complete. */
#include "control/channel_wait.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/loop.h"
#include "base/process.h"
#include "base/text.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/obituary.h"
#include "control/page.h"
#include "control/query.h"
#include "control/request.h"
#include "proto/channel.h"
#include "proto/clock.h"
#include "proto/region.h"
#include "registry/awaited.h"
#include "registry/cause.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/cycle.h"
#include "registry/reason.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/waiting.h"
#include "registry/whose.h"

#define WAIT_CURSOR (1ull << 63) /* with since_ns: after those of streams */
#define TOLD_MAX 4u /* peers that a text names one by one */
#define CIRCLES_MAX 64u /* peers from which one is looked for */
#define EXPIRED_MAX 16u /* requests that end in one turn of the loop: what their texts say is looked for in /proc */

/* One channel that a request waits for. */
struct waiter {
	struct list link; /* channel->waiters */
	struct wait *wait;
	struct channel *channel;
};

struct wait {
	struct list link; /* control->channel_waits */
	struct request *request;
	struct session *session;
	uint64_t since_ns, deadline_ns;
	uint32_t count, missing; /* waiters; those still in a list */
	struct waiter waiters[];
};

/* ---- why ---- */

static void add_channel(const struct channel *channel, struct text *text)
{
	text_add(text, "communicator %s: rank %" PRIu32 "'s channel to rank %" PRIu32 " (engine %s, protocol %s): ",
		 channel->rank->comm->name, channel->rank->rank, channel->peer, channel_engine_name(channel->engine),
		 channel_protocol_name(channel->protocol));
}

enum cause channel_verdict(const struct channel *channel, struct text *text)
{
	const struct comm_member *member = &channel->rank->comm->view.region->members[channel->peer];
	uint32_t word = atomic_load_explicit(&member->word, memory_order_acquire);
	char buffer[8];
	struct text none;

	if (!text) {
		text_init(&none, buffer, sizeof(buffer));
		text = &none;
	}
	if (channel->state == CHANNEL_COMPLETE)
		return CAUSE_NONE;
	if (channel->failure) {
		text_add(text, "%s", channel->failure_text ? channel->failure_text : status_of(channel->failure)->text);
		return channel->failure;
	}
	if (channel->state == CHANNEL_CLOSING) {
		add_channel(channel, text);
		text_add(text, "this process has closed it (HcclChannelDestroy, HcclCommDestroy, or its device was reset)");
		return CAUSE_ABORTED;
	}
	if (word == MEMBER_ALIVE && channel->state == CHANNEL_OFFERED)
		return CAUSE_BUSY;
	add_channel(channel, text);
	text_add(text, "rank %" PRIu32 ", pid %d, ", channel->peer, member->pid);
	if (word == MEMBER_DEAD) {
		exit_describe(member->exit, text);
		return CAUSE_PEER_DEAD;
	}
	if (word == MEMBER_ALIVE)
		text_add(text, "has closed its end; end this one with HcclChannelDestroy before another is acquired");
	else
		text_add(text, "has destroyed the communicator");
	return CAUSE_PEER_LEFT;
}

/* What the peer has offered to @channel's rank instead. False: nothing. */
static bool add_other_offers(const struct channel *channel, const struct rank *peer, struct text *text)
{
	uint32_t told = 0;

	list_for_each(struct channel, other, &peer->channels, link) {
		if (other->peer != channel->rank->rank || other->state == CHANNEL_CLOSING)
			continue;
		if (told++ == TOLD_MAX) {
			text_add(text, " and more");
			break;
		}
		text_add(text, "%s%s with %s%s", told == 1 ? " and has offered only engine " : ", engine ",
			 channel_engine_name(other->engine), channel_protocol_name(other->protocol),
			 other->state == CHANNEL_DEAD ? " (an end of a channel that was closed here, which it has yet to close)" : "");
	}
	return told;
}

void channel_describe_absent(const struct channel *channel, struct text *text)
{
	const struct comm *comm = channel->rank->comm;
	const struct comm_member *member = &comm->view.region->members[channel->peer];
	const struct rank *peer = comm->ranks[channel->peer];
	int32_t pid = member->pid;

	text_add(text, "rank %" PRIu32 " (pid %d) ", channel->peer, pid);
	if (process_is_stopped(pid)) {
		text_add_stopped(text, pid);
		return;
	}
	text_add(text, "lives");
	if (!peer || !add_other_offers(channel, peer, text))
		text_add(text, " and has offered nothing to rank %" PRIu32, channel->rank->rank);
}

/* ---- waiting ---- */

static void waits_arm(struct control *control)
{
	uint64_t earliest = UINT64_MAX, now = clock_now_ns();

	list_for_each(struct wait, wait, &control->channel_waits, link)
		if (wait->deadline_ns < earliest)
			earliest = wait->deadline_ns;
	if (earliest == UINT64_MAX)
		loop_timer_stop(control->channel_timer);
	else
		/* rounded up: never before the time */
		loop_timer_start(control->channel_timer, earliest > now ? (earliest - now) / 1000000 + 1 : 0, 0);
}

/* @r with words in the request, or 0. */
static void wait_finish(struct wait *wait, int r)
{
	for (uint32_t i = 0; i < wait->count; i++)
		list_remove(&wait->waiters[i].link);
	wait->session->channel_waiters -= wait->count;
	list_remove(&wait->link);
	request_finish(wait->request, r);
	free(wait);
}

static void wait_fail(struct wait *wait, const struct channel *channel)
{
	enum cause cause;
	struct text text;

	text_init(&text, wait->request->text, sizeof(wait->request->text));
	cause = channel_verdict(channel, &text);
	wait_finish(wait, status_error(cause));
}

void channel_settled(struct channel *channel)
{
	enum cause cause = channel_verdict(channel, NULL);

	if (cause == CAUSE_BUSY)
		return;
	while (!list_is_empty(&channel->waiters)) {
		struct waiter *waiter = list_entry(channel->waiters.next, struct waiter, link);
		struct wait *wait = waiter->wait;

		if (cause) {
			wait_fail(wait, channel);
			continue;
		}
		list_remove(&waiter->link);
		if (--wait->missing == 0)
			wait_finish(wait, 0);
	}
}

void channels_forsake(struct control *control, const struct rank *rank)
{
	const struct comm *comm = rank->comm;

	if (list_is_empty(&control->channel_waits))
		return;
	for (uint32_t i = 0; i < comm->view.size; i++) {
		const struct rank *other = comm->ranks[i];

		if (!other || other == rank)
			continue;
		list_for_each(struct channel, channel, &other->channels, link)
			if (channel->peer == rank->rank)
				channel_settled(channel);
	}
}

void channel_waits_abort(struct session *session)
{
	struct control *control = session->registry->data;

	list_for_each(struct wait, wait, &control->channel_waits, link)
		if (wait->session == session)
			wait_finish(wait, -ECANCELED);
	waits_arm(control);
}

/* What the peer is at instead. */
static void add_cause(const struct channel *channel, struct text *text)
{
	const struct target target = target_rank(channel->rank->comm->ranks[channel->peer]);
	const struct waiting waiting = awaited_of(channel);
	struct waiting other;

	if (!target.session || process_is_stopped(target.session->view.pid) || !cause_find(&waiting, &target, &other))
		return;
	text_add(text, ": ");
	waiting_describe(&other, true, text);
}

/* "2 of 3 channels were not completed within 120000 ms: rank 1 (pid 4711) is stopped ...; rank 2 ..." */
static void wait_describe(const struct wait *wait, struct text *text)
{
	uint32_t told = 0;

	for (uint32_t i = 0; i < wait->count; i++) {
		const struct channel *channel = wait->waiters[i].channel;

		if (list_is_empty(&wait->waiters[i].link))
			continue;
		if (!told)
			text_add(text,
				 "communicator %s: rank %" PRIu32 " has waited %" PRIu64 " ms; %" PRIu32 " of %" PRIu32
				 " channels (engine %s, protocol %s) lack the other end: ",
				 channel->rank->comm->name, channel->rank->rank, (clock_now_ns() - wait->since_ns) / 1000000, wait->missing,
				 wait->count, channel_engine_name(channel->engine), channel_protocol_name(channel->protocol));
		if (told == TOLD_MAX) {
			text_add(text, "; and %" PRIu32 " more", wait->missing - told);
			break;
		}
		text_add(text, "%s", told++ ? "; " : "");
		channel_describe_absent(channel, text);
		add_cause(channel, text);
	}
}

static void wait_expire(struct wait *wait)
{
	struct text text;

	text_init(&text, wait->request->text, sizeof(wait->request->text));
	wait_describe(wait, &text);
	wait_finish(wait, status_error(CAUSE_CHANNEL_TIMEOUT));
}

static const struct channel *first_missing(const struct wait *wait)
{
	for (uint32_t i = 0; i < wait->count; i++)
		if (!list_is_empty(&wait->waiters[i].link))
			return wait->waiters[i].channel;
	return NULL;
}

static Hccld__Control__Waiting *wait_message(struct request *request, const struct wait *wait, const struct channel *channel)
{
	const struct comm *comm = channel->rank->comm;
	Hccld__Control__Waiting *message =
		query_waiting_new(request, wait->session, comm, channel->rank->rank, (clock_now_ns() - wait->since_ns) / 1000000);
	char buffer[HCCLD_TEXT_MAX];
	struct text text;

	if (!message)
		return NULL;
	message->peer = channel->peer;
	message->peer_pid = (uint32_t)atomic_load_explicit(&comm->view.region->members[channel->peer].pid, memory_order_relaxed);
	message->channels = wait->missing;
	text_init(&text, buffer, sizeof(buffer));
	text_add(&text, "HcclChannelAcquire: ");
	wait_describe(wait, &text);
	message->reason = request_string(request, buffer);
	return message->reason ? message : NULL;
}

void channel_waits_walk(const struct request *request, bool (*found)(void *data, const struct waiting *waiting), void *data)
{
	list_for_each(struct wait, wait, &request->control->channel_waits, link) {
		const struct channel *channel = first_missing(wait);
		struct waiting waiting;

		if (!channel || !query_sees(request, wait->session->uid))
			continue;
		waiting = awaited_of(channel);
		waiting.age_ms = (clock_now_ns() - wait->since_ns) / 1000000;
		if (!found(data, &waiting))
			return;
	}
}

/* The first request for it. */
static const struct wait *wait_for(const struct channel *channel)
{
	return list_entry(channel->waiters.next, struct waiter, link)->wait;
}

Hccld__Control__Waiting *channel_wait_message(struct request *request, const struct channel *channel)
{
	return wait_message(request, wait_for(channel), channel);
}

void channel_wait_describe(const struct channel *channel, struct text *text)
{
	wait_describe(wait_for(channel), text);
}

bool channel_wait_add_cycle(const struct channel *channel, struct text *text)
{
	const struct wait *wait = wait_for(channel);

	for (uint32_t i = 0, looked = 0; i < wait->count && looked < CIRCLES_MAX; i++) {
		struct waiting waiting;

		if (list_is_empty(&wait->waiters[i].link))
			continue;
		waiting = awaited_of(wait->waiters[i].channel);
		if (cycle_describe(&waiting, text))
			return true;
		looked++;
	}
	return false;
}

/* Waits come in the order in which they have begun. */
void channel_waits_list(struct page *page)
{
	struct request *request = page->request;

	list_for_each(struct wait, wait, &request->control->channel_waits, link) {
		uint64_t cursor = WAIT_CURSOR | wait->since_ns;
		const struct channel *channel = first_missing(wait);
		Hccld__Control__Waiting *message;

		if (cursor <= page->after || !channel || !query_sees(request, wait->session->uid))
			continue;
		message = wait_message(request, wait, channel);
		if (!page_add(page, message ? &message->base : NULL, cursor))
			return;
	}
}

void channel_waits_expire(void *data)
{
	struct control *control = data;
	uint64_t now = clock_now_ns();
	uint32_t expired = 0;

	/* a client can have thousands: the rest has its turn after others */
	list_for_each(struct wait, wait, &control->channel_waits, link)
		if (wait->deadline_ns <= now && expired++ < EXPIRED_MAX)
			wait_expire(wait);
	waits_arm(control);
}

static bool is_waited_for(const struct wait *wait, const struct channel *channel)
{
	list_for_each(struct waiter, waiter, &channel->waiters, link)
		if (waiter->wait == wait)
			return true;
	return false;
}

static int wait_start(struct request *request, struct wait *wait)
{
	struct control *control = request->control;
	uint32_t deadline_ms = request->message->deadline_ms;

	wait->request = request;
	wait->session = request_session(request);
	wait->since_ns = clock_now_ns();
	wait->deadline_ns = wait->since_ns + (deadline_ms ? deadline_ms : HCCLD_REQUEST_DEADLINE_MS) * UINT64_C(1000000);
	wait->session->channel_waiters += wait->count;
	list_append(&control->channel_waits, &wait->link);
	waits_arm(control);
	return REQUEST_LATER;
}

/* Into the lists of those that are not complete. -ENOENT and others, with words: one of them will never be. */
static int wait_fill(struct request *request, struct wait *wait)
{
	const Hccld__Control__AwaitChannels *message = request->message->await_channels;

	for (size_t i = 0; i < message->n_channels; i++) {
		struct channel *channel = channel_find(request_session(request), message->channels[i]);
		struct waiter *waiter = &wait->waiters[wait->count];
		enum cause cause;
		struct text text;

		if (!channel)
			return request_fail(request, CAUSE_NOT_FOUND, "this process has no channel %" PRIu64 ": it was closed",
					    message->channels[i]);
		text_init(&text, request->text, sizeof(request->text));
		cause = channel_was_complete(channel) ? CAUSE_NONE : channel_verdict(channel, &text);
		if (cause && cause != CAUSE_BUSY)
			return status_error(cause);
		if (!cause || is_waited_for(wait, channel))
			continue;
		waiter->wait = wait;
		waiter->channel = channel;
		if (list_is_empty(&channel->waiters))
			channel->awaited_ns = clock_now_ns();
		list_append(&channel->waiters, &waiter->link);
		wait->count++;
	}
	wait->missing = wait->count;
	return 0;
}

int handle_await_channels(struct request *request)
{
	size_t count = request->message->await_channels->n_channels;
	struct session *session = request_session(request);
	struct wait *wait;
	int r;

	if (count > HCCLD_AWAITED_MAX)
		return request_fail(request, CAUSE_ARGUMENT, "%zu channels in one request, at most %u", count, HCCLD_AWAITED_MAX);
	if (session->channel_waiters + count > HCCLD_WAITERS_PER_SESSION)
		return request_fail(request, CAUSE_LIMIT,
				    "requests of this process wait for %" PRIu32 " channels, and for %zu more with this one; at most for %u at a time",
				    session->channel_waiters, count, HCCLD_WAITERS_PER_SESSION);
	wait = calloc(1, sizeof(*wait) + count * sizeof(wait->waiters[0]));
	if (!wait)
		return -ENOMEM;
	r = wait_fill(request, wait);
	if (r == 0 && wait->missing)
		return wait_start(request, wait);
	for (uint32_t i = 0; i < wait->count; i++)
		list_remove(&wait->waiters[i].link);
	free(wait);
	return r;
}
