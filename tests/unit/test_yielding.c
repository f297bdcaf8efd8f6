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

	check(yielding_step(&yielding, 0, now - 1000 * MS, now));
	atomic_store(&yielding.not_before_ns, 0); /* whatever this yield was like */
	check_eq_uint(pause_after(&yielding, now), YIELDING_PAUSE_NS);
	check(yielding_step(&yielding, 0, now, now));
	check(yielding_step(&yielding, 0, now, now + YIELDING_SPIN_NS - 1));
	check(!yielding_step(&yielding, 0, now, now + YIELDING_SPIN_NS));
	/* that was in vain: half as long, and half as long again */
	check(!yielding_step(&yielding, 0, now, now + YIELDING_SPIN_NS - 1));
	check(yielding_step(&yielding, 0, now, now + YIELDING_SPIN_NS / 4));
	check(!yielding_step(&yielding, 0, now, now + YIELDING_PAUSE_NS - 1));
	for (int i = 0; i < 20; i++)
		check(!yielding_step(&yielding, 0, now, now + YIELDING_SPIN_NS - 1));
	check(!yielding_step(&yielding, 0, now, now + YIELDING_SPIN_MIN_NS));
	check(yielding_step(&yielding, 0, now, now + YIELDING_SPIN_MIN_NS - 1));
	/* the pause is over: the next step yields, however long the wait is by then */
	check(yielding_step(&yielding, 0, now, now + YIELDING_PAUSE_NS));
	/* the next pause begins as the first */
	pause_after(&yielding, now);
	check(yielding_step(&yielding, 0, now, now + YIELDING_SPIN_NS - 1));
}

TEST(pauses_grow_while_it_comes_again_soon)
{
	struct yielding yielding = { 0 };
	const uint64_t began = 1000ull * MS;
	uint64_t now = began, pause = pause_after(&yielding, now), before;

	check_eq_uint(pause, YIELDING_PAUSE_NS);
	while (pause < YIELDING_PAUSE_MAX_NS) {
		before = pause;
		now += pause + 3 * MS;
		pause = pause_after(&yielding, now);
		check(pause >= before);
		check(pause == (now - began) / YIELDING_PAUSE_PART || (pause == YIELDING_PAUSE_NS && (now - began) / YIELDING_PAUSE_PART < pause) ||
		      (pause == YIELDING_PAUSE_MAX_NS && (now - began) / YIELDING_PAUSE_PART > pause));
	}
	/* a program that starts costs no more than half of its time afterwards */
	check(now - began >= (uint64_t)YIELDING_PAUSE_MAX_NS * YIELDING_PAUSE_PART);
	now += pause + YIELDING_SOON * pause;
	check_eq_uint(pause_after(&yielding, now), YIELDING_PAUSE_MAX_NS);
	now += (1ull + YIELDING_SOON) * YIELDING_PAUSE_MAX_NS + 1;
	check_eq_uint(pause_after(&yielding, now), YIELDING_PAUSE_NS);
}

TEST(others_who_run_as_long_explain_a_long_yield)
{
	struct yielding yielding = { 0 };
	const uint32_t others = 16, turn = 200000;
	uint64_t now = 1000ull * MS;

	atomic_store(&yielding.after_ns, now - turn);
	check_eq_uint(yielding_bound(&yielding, others, now), YIELDING_TURNS * others * turn);
	check_eq_uint(yielding_bound(&yielding, 1, now), YIELDING_LONG_NS);
	/* the longest lately counts, and is forgotten */
	atomic_store(&yielding.after_ns, now - 1);
	check_eq_uint(yielding_bound(&yielding, others, now), YIELDING_TURNS * others * (uint64_t)(turn - turn / 8));
	for (int i = 0; i < 50; i++)
		yielding_bound(&yielding, others, now);
	check_eq_uint(yielding_bound(&yielding, others, now), YIELDING_LONG_NS);
	/* but not how long the program has done something else */
	atomic_store(&yielding.after_ns, now - 500ull * MS);
	check_eq_uint(yielding_bound(&yielding, others, now), (uint64_t)YIELDING_TURNS * others * YIELDING_TURN_MAX_NS);
}
