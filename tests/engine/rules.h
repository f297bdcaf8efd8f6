/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rig with two clients, and cases that are run with their rule and without (engine/point.h). The includer has `rule_cases`, and includes
 * this in one file.
 */
#pragma once

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "engine/executor.h"
#include "tests/engine/direct_client.h"
#include "tests/engine/drivers.h"
#include "tests/support/test.h"

#define RANKS 2u
#define SHARED 400000u	/* a copy that clients help with, in this many chunks */
#define CHUNKS 4u

struct rule_case {
	enum rule rule;
	const char *name;
	bool (*holds)(void);
};
#define CASE(rule_, holds_) { RULE_##rule_, #holds_, holds_ }

extern const struct rule_case rule_cases[];
extern const size_t rule_case_count;

enum rule broken_rule;

static struct rig *rig;
static struct client *clients[RANKS];
static struct beacon beacon;
static int event_fd;
static int hook_point;
static uint32_t hook_count;
static void (*hook)(void);

void engine_crash_point(int point)
{
	void (*run)(void) = hook;

	if (point != hook_point || !run || --hook_count)
		return;
	hook = NULL;
	run();
}

/* @run at the @count-th passage of @point, once. */
static void at(int point, uint32_t count, void (*run)(void))
{
	hook_point = point;
	hook_count = count;
	hook = run;
}

/* ---- what the threads do ---- */

static void put(uint32_t rank, struct rig_item item)
{
	rig_put(rig, rank, 0, &item, 1, 0);
}

static void put_send(uint32_t bytes)
{
	put(0, (struct rig_item)SEND(1, 0, bytes));
}

static void put_receive(uint32_t bytes)
{
	put(1, (struct rig_item)RECEIVE(0, 0, bytes));
}

static enum direct_left drive(uint32_t rank)
{
	enum direct_left left;

	check(direct_take(&clients[rank]->direct));
	left = direct_pass(&clients[rank]->direct, DIRECT_BUDGET_ALL, true);
	direct_leave(&clients[rank]->direct, left);
	return left;
}

static bool engine_is_told(void)
{
	uint64_t count;

	return read(event_fd, &count, sizeof(count)) == sizeof(count);
}

/* Rank @rank is left to the engine, which looks. */
static void engine_drives(uint32_t rank)
{
	client_drives(rig, rank, CONTEXT_LEFT);
	engine_look(rig->engine, &rig->contexts[rank]);
}

/* ---- all cases ---- */

/* @which: of `cases`, which is the includer's. */
static bool case_holds(size_t which, enum rule broken)
{
	bool holds;

	rig = rig_shared(RANKS);
	rig_share_copies(rig, SHARED - 1, SHARED / CHUNKS);
	event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	check_ge_int(event_fd, 0);
	beacon = (struct beacon){ .awake = BEACON_ASLEEP, .local_path = PATH_DIRECT };
	for (uint32_t i = 0; i < RANKS; i++)
		clients[i] = client_new(rig, i, &beacon, event_fd);
	hook = NULL;
	broken_rule = broken;
	holds = rule_cases[which].holds();
	broken_rule = RULE_NONE;
	check_msg(!hook, "%s: the point was not reached", rule_cases[which].name);
	for (uint32_t i = 0; i < RANKS; i++)
		free(clients[i]);
	close(event_fd);
	rig_free(rig);
	return holds;
}

TEST(rules_hold)
{
	for (size_t i = 0; i < rule_case_count; i++)
		check_msg(case_holds(i, RULE_NONE), "%s does not hold", rule_cases[i].name);
}

TEST(rules_that_are_left_out_are_missed)
{
	for (size_t i = 0; i < rule_case_count; i++)
		check_msg(!case_holds(i, rule_cases[i].rule), "%s holds without its rule", rule_cases[i].name);
}
