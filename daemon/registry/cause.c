/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/cause.h"

#include "proto/ring.h"
#include "registry/waiting.h"
#include "registry/whose.h"

/* Among what the process of a rank is at: what says most about why another one waits for that rank. */
struct cause_of {
	const struct waiting *of;
	const struct target *target;
	struct waiting waiting;
	uint32_t grade; /* 0: nothing found */
};

static uint32_t cause_grade(const struct waiting *of, const struct waiting *other)
{
	bool is_same = other->related && other->related == of->related && other->rank == of->peer;

	if (is_same && other->kind == TASK_BARRIER)
		return 6;
	/* who is in HcclChannelAcquire does nothing else meanwhile */
	if (is_same && (other->peer == of->rank || other->kind == WAITING_CHANNEL))
		return 5;
	if (other->kind == TASK_HOST)
		return 4;
	if (other->related && !other->is_posted)
		return 3;
	return other->is_posted ? 1 : 2;
}

static bool cause_found(void *data, const struct waiting *waiting)
{
	struct cause_of *cause = data;
	uint32_t grade = target_may_be_at(cause->target, waiting) ? cause_grade(cause->of, waiting) : 0;

	if (grade > cause->grade) {
		cause->waiting = *waiting;
		cause->grade = grade;
	}
	return true;
}

bool cause_find(const struct waiting *of, const struct target *target, struct waiting *ret_cause)
{
	struct cause_of cause = { .of = of, .target = target };

	if (target->stream)
		waiting_walk_stream(target->session, target->stream, cause_found, &cause);
	else
		waiting_walk_context(target->context, target->session, cause_found, &cause);
	*ret_cause = cause.waiting;
	return cause.grade;
}
