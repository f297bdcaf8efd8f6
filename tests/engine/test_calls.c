/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the control thread on the engine thread: their order, and who waits for whom. */
#include <stdlib.h>

#include "engine/executor.h"
#include "proto/clock.h"
#include "scheduler/calls.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define MANY 1000

struct work {
	struct scheduler_call call;
	uint32_t runs, number;	/* of its first run */
	uint32_t more;		/* times that it says it has more */
	bool held, waits;	/* nobody lets it go on; as long as engine_may_wait() says so */
};

static uint32_t begun;

static bool run(struct engine *engine, void *arg)
{
	struct work *work = arg;

	if (!work->runs++)
		work->number = ++begun;
	work->call.has_more = work->more > 0;
	if (work->more && work->more--)
		return false;
	return !work->held && !(work->waits && engine_may_wait(engine, work));
}

static void work_add(struct calls *calls, struct work *work, struct line *line)
{
	work->call = (struct scheduler_call){ .run = run, .arg = work, .line = line };
	calls_add(calls, &work->call);
}

static bool is_over(struct calls *calls, const struct work *work, uint32_t *ret_count)
{
	bool found = false;

	*ret_count = 0;
	for (struct scheduler_call *call = calls_collect(calls); call; call = call->next, ++*ret_count)
		found |= call == &work->call;
	return found;
}

TEST(others_do_not_wait_and_the_own_do)
{
	struct rig *rig = rig_new(2, false);
	struct calls calls = { .incoming = NULL };
	struct line hostile = { 0 }, good = { 0 };
	struct work first = { .held = true }, second = { 0 }, third = { 0 }, other = { 0 }, lone = { 0 };
	bool has_finished;
	uint32_t count;

	begun = 0;
	work_add(&calls, &first, &hostile);
	work_add(&calls, &second, &hostile);
	work_add(&calls, &third, &hostile);
	work_add(&calls, &other, &good);
	work_add(&calls, &lone, NULL);
	check(calls_are_new(&calls));
	check(calls_run(&calls, rig->engine, &has_finished));
	check(has_finished);
	check(is_over(&calls, &other, &count));
	check_eq_uint(count, 2);
	check_eq_uint(lone.runs, 1);
	check_eq_uint(second.runs + third.runs, 0);
	check(!calls_are_done(&calls) && !calls_are_new(&calls));
	first.held = false;
	while (!calls_are_done(&calls))
		calls_run(&calls, rig->engine, &has_finished);
	check(is_over(&calls, &third, &count));
	check_eq_uint(count, 3);
	check(first.number == 1 && second.number == 4 && third.number == 5);
	/* nothing is left of it in the line */
	check(!hostile.waits && !hostile.first && !hostile.last);
	work_add(&calls, &lone, &hostile);
	calls_run(&calls, rig->engine, &has_finished);
	check(calls_are_done(&calls));
	rig_free(rig);
}

/* Each has its own second, though they are run in turns. */
TEST(those_that_wait_give_up_in_time)
{
	struct rig *rig = rig_new(2, false);
	struct calls calls = { .incoming = NULL };
	struct line lines[3] = { 0 };
	struct work works[3] = { 0 };
	uint64_t since_ns = clock_now_ns();
	bool has_finished;

	for (int i = 0; i < 3; i++) {
		works[i].waits = true;
		work_add(&calls, &works[i], &lines[i]);
	}
	while (!calls_are_done(&calls)) {
		calls_run(&calls, rig->engine, &has_finished);
		check_lt_uint(clock_now_ns() - since_ns, 20000000000u);
	}
	check_gt_uint(clock_now_ns() - since_ns, 900000000u);
	rig_free(rig);
}

/* Of one process: they have no more than their part of a pass. */
TEST(one_that_has_more_to_do_lets_others_pass)
{
	struct rig *rig = rig_new(2, false);
	struct calls calls = { .incoming = NULL };
	struct work *works = calloc(MANY, sizeof(*works));
	struct work late = { 0 };
	bool has_finished;
	uint32_t count;

	check_ptr(works);
	for (int i = 0; i < MANY; i++) {
		works[i].more = 3;
		work_add(&calls, &works[i], NULL);
	}
	calls_run(&calls, rig->engine, &has_finished);
	work_add(&calls, &late, NULL);
	for (int i = 0; i < 3 && !late.runs; i++)
		calls_run(&calls, rig->engine, &has_finished);
	check_eq_uint(late.runs, 1);
	while (!calls_are_done(&calls))
		calls_run(&calls, rig->engine, &has_finished);
	check(is_over(&calls, &late, &count));
	check_eq_uint(count, MANY + 1);
	for (int i = 0; i < MANY; i++)
		check_eq_uint(works[i].runs, 4);
	free(works);
	rig_free(rig);
}
