/* SPDX-License-Identifier: Apache-2.0 */
#include "client/crowd.h"

#include <sched.h>

#include "tests/support/test.h"

static long switches, asked;

static long count_switches(void)
{
	asked++;
	return switches;
}

/* @of_each: of so many yields one was somebody else's; 0: none. */
static void yields(struct crowd *crowd, uint32_t count, uint32_t of_each)
{
	for (uint32_t i = 0; i < count; i++) {
		if (of_each && i % of_each == of_each - 1)
			switches++;
		crowd_yielded(crowd, count_switches);
	}
}

/* It is one until a whole look says otherwise. */
static void check_ends_with_a_look(struct crowd *crowd)
{
	check(crowd->is_crowded);
	yields(crowd, CROWD_LOOK_CROWDED - 1, 0);
	check(crowd->is_crowded);
	yields(crowd, 1, 0);
	check(!crowd->is_crowded);
}

TEST(yields_that_others_use_make_a_crowd)
{
	struct crowd crowd = { 0 };

	switches = 1000; /* of before */
	yields(&crowd, CROWD_LOOK, 0);
	check(!crowd.is_crowded);
	yields(&crowd, CROWD_LOOK - 1, 1);
	check(!crowd.is_crowded);
	yields(&crowd, 1, 1);
	check(crowd.is_crowded);
	/* one of them has others to wait for, too */
	yields(&crowd, CROWD_LOOK_CROWDED, 2);
	check_ends_with_a_look(&crowd);
}

TEST(a_tick_now_and_then_is_no_crowd)
{
	struct crowd crowd = { 0 };

	yields(&crowd, 100 * CROWD_LOOK, 5);
	check(!crowd.is_crowded);
}

TEST(who_does_not_yield_any_more_is_in_a_crowd)
{
	struct crowd crowd = { 0 };

	yields(&crowd, CROWD_LOOK - 1, 0);
	crowd_is_certain(&crowd);
	check_ends_with_a_look(&crowd);
}

TEST(a_look_is_rare)
{
	struct crowd crowd = { 0 };

	asked = 0;
	yields(&crowd, CROWD_LOOK, 1);
	yields(&crowd, 100 * CROWD_LOOK_CROWDED, 1);
	check_eq_int(asked, 2 + 2 * 100);
}

TEST(the_kernel_counts_switches)
{
	long before = crowd_switches();

	check(before >= 0);
	/* nobody can be sure that others want the processor, but the count never falls */
	for (int i = 0; i < 100; i++)
		sched_yield();
	check(crowd_switches() >= before);
}

TEST(short_sleeps_make_longer_waits)
{
	struct crowd crowd = { 0 };

	check_eq_uint(crowd_yield_ns(&crowd), CROWD_YIELD_MIN_NS);
	crowd_slept(&crowd, CROWD_YIELD_MIN_NS + 1);
	check_eq_uint(crowd_yield_ns(&crowd), 2 * CROWD_YIELD_MIN_NS);
	for (int i = 0; i < 10; i++)
		crowd_slept(&crowd, CROWD_YIELD_MAX_NS - 1);
	check_eq_uint(crowd_yield_ns(&crowd), CROWD_YIELD_MAX_NS);
	/* neither short nor long */
	crowd_slept(&crowd, CROWD_YIELD_MAX_NS);
	crowd_slept(&crowd, CROWD_LONG_NS);
	check_eq_uint(crowd_yield_ns(&crowd), CROWD_YIELD_MAX_NS);
	crowd_slept(&crowd, CROWD_LONG_NS + 1);
	check_eq_uint(crowd_yield_ns(&crowd), CROWD_YIELD_MAX_NS / 2);
	for (int i = 0; i < 10; i++)
		crowd_slept(&crowd, UINT64_MAX);
	check_eq_uint(crowd_yield_ns(&crowd), CROWD_YIELD_MIN_NS);
}
