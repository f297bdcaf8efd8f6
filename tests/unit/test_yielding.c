/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/yielding.h"

#include "tests/support/test.h"

#define MS 1000000u

static uint64_t pause_after(struct yielding *yielding, uint64_t now_ns)
{
	yielding_was_long(yielding, now_ns);
	return atomic_load(&yielding->not_before_ns) - now_ns;
}

TEST(a_long_yield_is_followed_by_a_spin_and_sleep)
{
	struct yielding yielding = { 0 };
	const uint64_t now = clock_now_ns();

	check(yielding_step(&yielding, now - 1000 * MS, now));
	atomic_store(&yielding.not_before_ns, 0); /* whatever this yield was like */
	check_eq_uint(pause_after(&yielding, now), YIELDING_PAUSE_NS);
	check(yielding_step(&yielding, now, now));
	check(yielding_step(&yielding, now, now + YIELDING_SPIN_NS - 1));
	check(!yielding_step(&yielding, now, now + YIELDING_SPIN_NS));
	/* that was in vain: half as long, and half as long again */
	check(!yielding_step(&yielding, now, now + YIELDING_SPIN_NS - 1));
	check(yielding_step(&yielding, now, now + YIELDING_SPIN_NS / 4));
	check(!yielding_step(&yielding, now, now + YIELDING_PAUSE_NS - 1));
	for (int i = 0; i < 20; i++)
		check(!yielding_step(&yielding, now, now + YIELDING_SPIN_NS - 1));
	check(!yielding_step(&yielding, now, now + YIELDING_SPIN_MIN_NS));
	check(yielding_step(&yielding, now, now + YIELDING_SPIN_MIN_NS - 1));
	/* the pause is over: the next step yields, however long the wait is by then */
	check(yielding_step(&yielding, now, now + YIELDING_PAUSE_NS));
	/* the next pause begins as the first */
	pause_after(&yielding, now);
	check(yielding_step(&yielding, now, now + YIELDING_SPIN_NS - 1));
}

TEST(pauses_grow_while_it_comes_again_soon)
{
	struct yielding yielding = { 0 };
	uint64_t now = 1000ull * MS, pause = YIELDING_PAUSE_NS;

	check_eq_uint(pause_after(&yielding, now), pause);
	while (pause < YIELDING_PAUSE_MAX_NS) {
		now += pause + YIELDING_SOON * pause;
		pause *= 2;
		check_eq_uint(pause_after(&yielding, now), pause);
	}
	now += pause;
	check_eq_uint(pause_after(&yielding, now), YIELDING_PAUSE_MAX_NS);
	now += pause + YIELDING_SOON * pause + 1;
	check_eq_uint(pause_after(&yielding, now), YIELDING_PAUSE_NS);
}
