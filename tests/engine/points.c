/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For builds with the points and rules of engine/point.h: a thread that comes by a point is held up now and then, for up to 200 us. The
 * environment: BROKEN_RULE, the rule to leave out; TEST_SEED. A watchdog ends the process with status 3 when nothing has come by any point
 * for seconds: somebody was not woken, for the engine has no heartbeat here (HEARTBEAT_MS), and clients sleep without end.
 */
#include "engine/point.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STILL_S 4u
#define LONGEST_US 200u

enum rule broken_rule;
static _Atomic uint64_t passages;
static _Atomic uint64_t seed;

/* Each thread has its own dice, so that they order nothing. */
static uint32_t dice(void)
{
	static _Thread_local uint64_t state;

	if (!state)
		state = (atomic_fetch_add(&seed, 1) + 1) * UINT64_C(0x9e3779b97f4a7c15);
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

void engine_crash_point(int point)
{
	static _Thread_local uint32_t unseen;
	uint32_t number = dice();

	(void)point;
	if (++unseen == 16) {
		unseen = 0;
		atomic_fetch_add_explicit(&passages, 1, memory_order_relaxed);
	}
	if (number % 128 == 0)
		usleep(number / 128 % LONGEST_US);
	else if (number % 32 == 0)
		sched_yield();
}

static void *watchdog_main(void *arg)
{
	const char *scale = getenv("TEST_TIMEOUT_SCALE");
	const uint32_t limit_s = STILL_S * (scale ? (uint32_t)atoi(scale) : 1);
	uint64_t seen = 0;

	for (uint32_t still_s = 0; still_s < limit_s; still_s++) {
		uint64_t now = atomic_load(&passages);

		if (now != seen)
			still_s = 0;
		seen = now;
		sleep(1);
	}
	fprintf(stderr, "nothing moves\n");
	_exit(3);
	return arg;
}

__attribute__((constructor)) static void points_init(void)
{
	static const char *const names[] = { "NONE",
#define NAME_OF(name) #name,
					     BREAKABLE_RULES(NAME_OF) };
	const char *rule = getenv("BROKEN_RULE"), *text = getenv("TEST_SEED");
	pthread_t watchdog;

	atomic_store(&seed, text ? strtoull(text, NULL, 0) : (uint64_t)getpid());
	for (uint32_t i = 1; rule && i < RULE_COUNT; i++)
		if (strcmp(names[i], rule) == 0)
			broken_rule = (enum rule)i;
	if (rule && broken_rule == RULE_NONE) {
		fprintf(stderr, "BROKEN_RULE: no rule %s\n", rule);
		exit(2);
	}
	pthread_create(&watchdog, NULL, watchdog_main, NULL);
}
