/* SPDX-License-Identifier: Apache-2.0 */
/* The rules C1 to C8 of tests/model/README.md in the code, as test_rules.c has those of contexts. */
#include "tests/engine/rules.h"

static _Atomic uint64_t *claim_of(uint32_t chunk)
{
	return &rig->copies->records[0].claims[chunk];
}

static bool help(uint32_t rank)
{
	struct direct_wish wish;

	return direct_help(&clients[rank]->direct, &wish);
}

/* A message from rank 0 to rank 1 that the engine has opened. */
static void open_shared(void)
{
	put_send(SHARED);
	drive(0);
	put_receive(SHARED);
	engine_drives(1);
}

/* Somebody who helps is stopped in the middle of a chunk. */
static void helper_claims(uint32_t chunk)
{
	atomic_store(claim_of(chunk), copy_claim_word(copy_claim_generation(atomic_load(claim_of(chunk))), CLAIM_SENDER));
}

static bool rank_0_goes(void)
{
	atomic_store(&rig->comm.region->members[0].word, MEMBER_DEAD);
	return engine_rank_detach(rig->engine, &rig->ranks[0].session.ranks[VIEW_INDEX(rig->ranks[0].handle)]);
}

static bool early_help;

static void rank_0_helps_early(void)
{
	atomic_store(&rig->copies->active, 1);
	early_help = help(0);
}

static bool fields_are_there_before_claims(void)
{
	early_help = false;
	/* the fields of another one are there */
	open_shared();
	rig_run(rig);
	at(48, 1, rank_0_helps_early);
	open_shared();
	return !early_help;
}

static void the_engine_ends_it(void)
{
	rig_run(rig);
	check(rig_is_done(rig, 1, 0));
	rig->ranks[1].memory[SHARED - 1] = 77;
}

static bool claim_is_lost_to_who_was_first(void)
{
	open_shared();
	at(136, 1, the_engine_ends_it);
	help(0);
	return rig->ranks[1].memory[SHARED - 1] == 77;
}

static bool the_last_tells_the_engine(void)
{
	open_shared();
	engine_is_told();
	atomic_store(rig->contexts[1].bit_word, 0);
	for (uint32_t i = 0; i < CHUNKS; i++)
		check(help(1));
	return engine_is_told() && has_bit(rig, 1);
}

static bool who_helps_gives_way_to_who_changes_tables(void)
{
	bool helps;

	open_shared();
	direct_intrude(&clients[1]->direct);
	helps = help(1);
	direct_retreat(&clients[1]->direct);
	return !helps;
}

static bool owned_chunks_are_not_done(void)
{
	open_shared();
	helper_claims(1);
	rig_run(rig);
	return !rig_is_done(rig, 1, 0);
}

static bool nobody_helps_with_what_ends(void)
{
	rig->lives_on = true;
	open_shared();
	helper_claims(1);
	rank_0_goes();
	return !help(1);
}

static bool owners_are_waited_for(void)
{
	rig->lives_on = true;
	open_shared();
	helper_claims(1);
	return !rank_0_goes();
}

static bool a_failed_receive_waits_for_owners(void)
{
	struct fault fault = { .cause = CAUSE_EXEC_TIMEOUT, .number = 1, .peer = 1 };

	open_shared();
	helper_claims(1);
	pair_fail(rig->engine, &rig->comm, 0, 1, &fault);
	engine_ring_dirty(rig->engine);
	rig_run(rig);
	return !rig_is_done(rig, 1, 0);
}

static bool a_restart_waits_for_owners(void)
{
	open_shared();
	helper_claims(1);
	rig_restart(rig);
	rig_run(rig);
	return !rig_is_done(rig, 1, 0);
}

const struct rule_case rule_cases[] = {
	CASE(CHUNK_FIELDS, fields_are_there_before_claims),
	CASE(CHUNK_CLAIM, claim_is_lost_to_who_was_first),
	CASE(CHUNK_TELLS, the_last_tells_the_engine),
	CASE(HELP_INTRUDED, who_helps_gives_way_to_who_changes_tables),
	CASE(CHUNKS_OWNED, owned_chunks_are_not_done),
	CASE(CHUNKS_CLOSE, nobody_helps_with_what_ends),
	CASE(CHUNKS_WAIT, owners_are_waited_for),
	CASE(CHUNKS_ONLY_DEAD, owners_are_waited_for),
	CASE(CHUNKS_FAILED, a_failed_receive_waits_for_owners),
	CASE(CHUNKS_REMAIN, a_restart_waits_for_owners),
};
const size_t rule_case_count = sizeof(rule_cases) / sizeof(rule_cases[0]);

/* All of them are here. */
TEST(rules_are_all_looked_at)
{
	for (int rule = RULE_CHUNK_FIELDS; rule < RULE_COUNT; rule++) {
		uint32_t found = 0;

		for (size_t i = 0; i < rule_case_count; i++)
			found += rule_cases[i].rule == (enum rule)rule;
		check_msg(found, "rule %d is looked at by nobody", rule);
	}
}
