/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call waits for is mostly a thread of a client that has a context, or copies that are under way: microseconds, but a client can make
 * it a second, again and again. So nobody waits behind it but who has to: the same process.
 */
#include "scheduler/calls.h"

#include "proto/clock.h"
#include "scheduler/mail.h"

#define CALLS_NS 500000u	/* after which streams have their turn, though more calls wait */
#define AGAIN_NS 20000u		/* between two rounds over those that wait for somebody */
#define ROUND_NS 100000u	/* of such a round, about */

void calls_add(struct calls *calls, struct scheduler_call *call)
{
	call_push(&calls->incoming, call);
}

static void calls_take_in(struct calls *calls)
{
	struct scheduler_call *call;

	if (!atomic_load_explicit(&calls->incoming, memory_order_relaxed))
		return;
	call = call_take_all(&calls->incoming);
	if (calls->last)
		calls->last->next = call;
	else
		calls->first = call;
	while (call->next)
		call = call->next;
	calls->last = call;
}

static void aside_append(struct calls *calls, struct scheduler_call *call)
{
	call->next = NULL;
	if (calls->aside_last)
		calls->aside_last->next = call;
	else
		calls->aside = call;
	calls->aside_last = call;
}

static struct scheduler_call *aside_take(struct calls *calls)
{
	struct scheduler_call *call = calls->aside;

	calls->aside = call->next;
	if (!calls->aside)
		calls->aside_last = NULL;
	return call;
}

/* Behind the one of its line that is aside, if one is. */
static bool line_append(struct line *line, struct scheduler_call *call)
{
	if (!line || !line->waits)
		return false;
	call->next = NULL;
	if (line->last)
		line->last->next = call;
	else
		line->first = call;
	line->last = call;
	return true;
}

/* The one that was aside is over: the next of its line, which steps into its place, or NULL. */
static struct scheduler_call *line_next(struct line *line)
{
	struct scheduler_call *call = line ? line->first : NULL;

	if (call) {
		line->first = call->next;
		if (!line->first)
			line->last = NULL;
	} else if (line) {
		line->waits = false;
	}
	return call;
}

static bool call_run(struct engine *engine, struct scheduler_call *call)
{
	bool is_over;

	call->has_more = false;
	engine_set_wait(engine, &call->wait);
	is_over = call->run(engine, call->arg);
	engine_set_wait(engine, NULL);
	return is_over;
}

/* Those aside, each once, or until the time is over. */
static bool calls_run_aside(struct calls *calls, struct engine *engine, bool *ret_finished)
{
	uint64_t since_ns = clock_now_ns(), now_ns = since_ns;
	const struct scheduler_call *last = calls->aside_last, *call = NULL;
	bool is_due = since_ns >= calls->again_ns, worked = false;

	while (call != last && now_ns - since_ns < ROUND_NS) {
		struct scheduler_call *taken = aside_take(calls), *next;

		call = taken;
		if (!is_due && !taken->has_more) {
			aside_append(calls, taken);
			continue;
		}
		if (call_run(engine, taken)) {
			next = line_next(taken->line);
			if (next) {
				next->has_more = true;	/* it waits for nobody yet */
				aside_append(calls, next);
			}
			call_push(&calls->finished, taken);
			*ret_finished = worked = true;
		} else {
			worked |= taken->has_more;
			aside_append(calls, taken);
		}
		now_ns = clock_now_ns();
	}
	/* whoever makes many calls wait has an eighth of the engine's time for it */
	if (is_due)
		calls->again_ns = now_ns + (AGAIN_NS > 7 * (now_ns - since_ns) ? AGAIN_NS : 7 * (now_ns - since_ns));
	return worked;
}

/* The new ones, in order. */
static bool calls_run_new(struct calls *calls, struct engine *engine, bool *ret_finished)
{
	bool worked = false;
	uint64_t since_ns = 0;	/* the clock is not read for a call that comes alone */
	struct scheduler_call *call;

	while ((call = calls->first)) {
		struct line *line = call->line;

		calls->first = call->next;
		if (!calls->first)
			calls->last = NULL;
		worked = true;
		if (!line_append(line, call)) {
			if (call_run(engine, call)) {
				call_push(&calls->finished, call);
				*ret_finished = true;
			} else {
				if (line)
					line->waits = true;
				aside_append(calls, call);
			}
		}
		/* one client may ask for thousands at a time */
		if (calls->first && !since_ns)
			since_ns = clock_now_ns();
		else if (calls->first && clock_now_ns() - since_ns > CALLS_NS)
			break;
	}
	return worked;
}

bool calls_run(struct calls *calls, struct engine *engine, bool *ret_finished)
{
	bool worked = false;

	*ret_finished = false;
	calls_take_in(calls);
	if (calls->aside)
		worked |= calls_run_aside(calls, engine, ret_finished);
	if (calls->first)
		worked |= calls_run_new(calls, engine, ret_finished);
	return worked;
}

bool calls_are_new(const struct calls *calls)
{
	return calls->first || atomic_load_explicit(&calls->incoming, memory_order_acquire);
}

bool calls_are_done(const struct calls *calls)
{
	return !calls->aside && !calls_are_new(calls);
}

struct scheduler_call *calls_collect(struct calls *calls)
{
	return call_take_all(&calls->finished);
}
