/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of tests/model/README.md in the code, one by one: at a numbered point between two steps of one thread the other ones do what hurts
 * most, and the outcome must be right. Then the rule is left out (engine/point.h), and the same must go wrong: a case that does not
 * notice that would not notice a mistake either. Rules about store buffers are the explorer's.
 */
#include "tests/engine/rules.h"

#define LARGE 9000u	/* neither inline nor eager */
#define SLEEP_NS 2000000000u

static void rank_0_drives(void)
{
	drive(0);
}

/* Rank 1 waits for a message; @kind: how its context was left, @sleepers: threads in it that sleep. */
static void receiver_waits(enum context_state kind, uint32_t sleepers)
{
	put_receive(8);
	client_drives(rig, 1, kind);
	atomic_store(&rig->contexts[1].words->asleep, kind == CONTEXT_SLEEP || kind == CONTEXT_HELD);
	atomic_store(&rig->contexts[1].words->sleepers, sleepers);
	atomic_fetch_and(rig->contexts[1].bit_word, ~rig->contexts[1].bit);
}

/* ---- R1, R2 ---- */

static bool ring_sets_the_bit(void)
{
	receiver_waits(CONTEXT_SLEEP, 1);
	put_send(8);
	drive(0);
	return kind_of(rig, 1) == CONTEXT_PATIENT && has_bit(rig, 1);
}

static bool ring_tells_of_who_is_held(void)
{
	receiver_waits(CONTEXT_HELD, 0);
	put_send(8);
	drive(0);
	return kind_of(rig, 1) == CONTEXT_HELD && has_bit(rig, 1);
}

static bool ring_of_who_sleeps_no_more_tells_the_engine(void)
{
	receiver_waits(CONTEXT_SLEEP, 0);
	put_send(8);
	drive(0);
	return engine_is_told();
}

static void rank_1_takes(void)
{
	check(direct_take(&clients[1]->direct));
}

static bool ring_leaves_owners_alone(void)
{
	receiver_waits(CONTEXT_SLEEP, 1);
	put_send(8);
	at(102, 1, rank_1_takes);
	drive(0);
	return kind_of(rig, 1) == CONTEXT_CLIENT;
}

/* ---- R3 ---- */

static bool take_leaves_held_to_the_engine(void)
{
	client_drives(rig, 0, CONTEXT_HELD);
	return !direct_take(&clients[0]->direct);
}

static void intrude(void)
{
	atomic_fetch_add(&clients[0]->direct.intruders, 1);
}

static bool take_gives_way_to_who_changes_tables(void)
{
	at(108, 1, intrude);
	return !direct_take(&clients[0]->direct) && kind_of(rig, 0) != CONTEXT_CLIENT;
}

/* ---- R4, R6, R7 ---- */

static bool leave_sets_the_bit(void)
{
	put_receive(8);
	return drive(1) == DIRECT_WAITS && kind_of(rig, 1) == CONTEXT_PATIENT && has_bit(rig, 1);
}

static bool leave_wakes_the_engine(void)
{
	put_receive(8);
	drive(1);
	return engine_is_told();
}

/* Who has set it told a sleeper, not the engine. */
static bool leave_with_its_bit_set_wakes_the_engine(void)
{
	put_receive(8);
	atomic_fetch_or(rig->contexts[1].bit_word, rig->contexts[1].bit);
	drive(1);
	return engine_is_told();
}

static bool leave_to_sleepers_says_asleep(void)
{
	put_receive(8);
	atomic_store(&rig->contexts[1].words->sleepers, 1);
	drive(1);
	return kind_of(rig, 1) == CONTEXT_SLEEP && atomic_load(&rig->contexts[1].words->asleep);
}

static uint64_t word_of_other;

static void other_thread_takes(void)
{
	put_send(8);
	drive(0);
	check(direct_take(&clients[1]->direct));
	word_of_other = atomic_load(&rig->contexts[1].words->state);
}

static bool who_has_left_leaves_the_next_one_alone(void)
{
	put_receive(8);
	atomic_store(&rig->contexts[1].words->sleepers, 1);
	at(113, 1, other_thread_takes);
	drive(1);
	return atomic_load(&rig->contexts[1].words->state) == word_of_other;
}

static void put_another(void)
{
	put_send(8);
}

static bool leave_looks_for_new_tasks(void)
{
	put_send(8);
	at(112, 1, put_another);
	drive(0);
	return kind_of(rig, 0) == CONTEXT_PATIENT;
}

static bool leave_to_sleepers_looks_at_pairs(void)
{
	put_receive(8);
	put_send(8);
	atomic_store(&rig->contexts[1].words->sleepers, 1);
	at(112, 1, rank_0_drives);
	drive(1);
	return kind_of(rig, 1) != CONTEXT_SLEEP;
}

static bool never(const void *arg)
{
	return false;
}

static bool sleep_hears_what_came_before_it(void)
{
	enum direct_left left;
	struct timespec start, end;

	put_receive(8);
	put_send(8);
	check(direct_take(&clients[1]->direct));
	at(114, 1, rank_0_drives);
	clock_gettime(CLOCK_MONOTONIC, &start);
	check(direct_sleep(&clients[1]->direct, never, NULL, SLEEP_NS, &left));
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (end.tv_sec - start.tv_sec) * 1000000000ll + end.tv_nsec - start.tv_nsec < SLEEP_NS;
}

static bool who_is_woken_takes_what_was_left(void)
{
	receiver_waits(CONTEXT_SLEEP, 1);
	put_send(8);
	drive(0);
	check_eq_int(kind_of(rig, 1), CONTEXT_PATIENT);
	direct_wake_up(&clients[1]->direct);
	return rig_is_done(rig, 1, 0);
}

/* Who is woken cannot take it, for tables are being changed. */
static bool who_changes_tables_tells_of_what_was_rung(void)
{
	receiver_waits(CONTEXT_SLEEP, 1);
	direct_intrude(&clients[1]->direct);
	put_send(8);
	drive(0);
	direct_wake_up(&clients[1]->direct);
	check_eq_int(kind_of(rig, 1), CONTEXT_PATIENT);
	check(!engine_is_told());
	direct_retreat(&clients[1]->direct);
	return engine_is_told();
}

/* ---- P2, P4 ---- */

static uint64_t tail_seen;

static void look_at_tail(void)
{
	tail_seen = atomic_load(&rig_pair(rig, 0, 1)->tail);
}

static bool offer_is_whole_when_it_can_be_seen(void)
{
	put_send(8);
	at(117, 1, look_at_tail);
	drive(0);
	return tail_seen == 0;
}

static void pair_fails(void)
{
	atomic_store(&rig_pair(rig, 0, 1)->failed, 1);
}

static void pair_is_revoked(void)
{
	atomic_store(&rig_pair(rig, 0, 1)->revoked, 1);
}

static void comm_aborts(void)
{
	atomic_store(&rig->comm.region->abort, 1);
}

static void source_dies(void)
{
	atomic_store(&rig->comm.region->members[0].word, MEMBER_DEAD);
}

static void source_frees(void)
{
	atomic_fetch_add(&rig->comm.region->members[0].retired, 1);
}

/* What happens to the source while it is copied: the copy does not count, and the engine says why. */
static bool is_not_committed(void (*spoil)(void))
{
	enum direct_left left;

	put_send(LARGE);
	drive(0);
	put_receive(LARGE);
	at(127, 1, spoil);
	left = drive(1);
	return left == DIRECT_DECLINED && kind_of(rig, 1) == CONTEXT_HELD && atomic_load(&rig_pair(rig, 0, 1)->received) == 0;
}

static bool commit_finds_failed_pairs(void)
{
	return is_not_committed(pair_fails);
}

static bool commit_finds_revoked_offers(void)
{
	return is_not_committed(pair_is_revoked);
}

static bool commit_finds_aborts(void)
{
	return is_not_committed(comm_aborts);
}

static bool commit_finds_the_dead(void)
{
	return is_not_committed(source_dies);
}

static bool commit_finds_freed_memory(void)
{
	return is_not_committed(source_frees);
}

/* ---- the engine ---- */

static bool engine_sets_bits_of_whom_it_rings(void)
{
	receiver_waits(CONTEXT_SLEEP, 1);
	put_send(8);
	engine_drives(0);
	return kind_of(rig, 1) == CONTEXT_LEFT && has_bit(rig, 1);
}

static bool engine_looks_again_before_it_leaves(void)
{
	put_receive(8);
	put_send(8);
	at(44, 1, rank_0_drives);
	engine_drives(1);
	return rig_is_done(rig, 1, 0);
}

static bool engine_looks_for_new_tasks(void)
{
	put_send(8);
	at(42, 1, put_another);
	engine_drives(0);
	return rig_is_done(rig, 0, 0);
}

/* The second leave: at the first it is HELD. */
static bool engine_clears_bits_before_it_leaves(void)
{
	put_receive(8);
	put_send(8);
	at(43, 2, rank_0_drives);
	engine_drives(1);
	return rig_is_done(rig, 1, 0) || has_bit(rig, 1);
}

/* By a thread that has found the bit set. */
static void rank_0_is_left(void)
{
	struct yard_context *words = rig->contexts[0].words;

	atomic_store(&words->state, yard_next(atomic_load(&words->state), CONTEXT_PATIENT));
}

static bool engine_looks_at_states_behind_bits(void)
{
	put_send(8);
	client_drives(rig, 0, CONTEXT_IDLE);
	atomic_fetch_or(rig->contexts[0].bit_word, rig->contexts[0].bit);
	at(45, 1, rank_0_is_left);
	check(!engine_look(rig->engine, &rig->contexts[0]));
	return has_bit(rig, 0);
}

static bool engine_wakes_sleepers(void)
{
	put_send(8);
	atomic_store(&rig->contexts[0].words->sleepers, 1);
	engine_drives(0);
	return atomic_load(&rig->contexts[0].words->news) != 0;
}

static bool engine_keeps_what_was_declined(void)
{
	receiver_waits(CONTEXT_HELD, 0);
	atomic_fetch_or(rig->contexts[1].bit_word, rig->contexts[1].bit);
	check(engine_look(rig->engine, &rig->contexts[1]));
	return kind_of(rig, 1) == CONTEXT_HELD;
}

/* ---- all of them ---- */

const struct rule_case rule_cases[] = {
	CASE(RING_BIT, ring_sets_the_bit),
	CASE(RING_HELD, ring_tells_of_who_is_held),
	CASE(RING_TRUSTS_SLEEP, ring_of_who_sleeps_no_more_tells_the_engine),
	CASE(RING_CAS, ring_leaves_owners_alone),
	CASE(TAKE_HELD, take_leaves_held_to_the_engine),
	CASE(TAKE_INTRUDED, take_gives_way_to_who_changes_tables),
	CASE(TELL_BIT, leave_sets_the_bit),
	CASE(TELL_AWAKE, leave_wakes_the_engine),
	CASE(TELL_AWAKE, leave_with_its_bit_set_wakes_the_engine),
	CASE(ASLEEP, leave_to_sleepers_says_asleep),
	CASE(OWN_WORD, who_has_left_leaves_the_next_one_alone),
	CASE(LEAVE_RESCAN, leave_looks_for_new_tasks),
	CASE(SLEEP_RESCAN, leave_to_sleepers_looks_at_pairs),
	CASE(NEWS_FIRST, sleep_hears_what_came_before_it),
	CASE(LEFT_BEHIND, who_is_woken_takes_what_was_left),
	CASE(RETREAT_TELLS, who_changes_tables_tells_of_what_was_rung),
	CASE(OFFER_FIRST, offer_is_whole_when_it_can_be_seen),
	CASE(COMMIT_FAILED, commit_finds_failed_pairs),
	CASE(COMMIT_REVOKED, commit_finds_revoked_offers),
	CASE(COMMIT_ABORT, commit_finds_aborts),
	CASE(COMMIT_MEMBER, commit_finds_the_dead),
	CASE(COMMIT_RETIRED, commit_finds_freed_memory),
	CASE(ENGINE_RING_BIT, engine_sets_bits_of_whom_it_rings),
	CASE(ENGINE_LOOK_AGAIN, engine_looks_again_before_it_leaves),
	CASE(ENGINE_RESCAN, engine_looks_for_new_tasks),
	CASE(ENGINE_BIT_EARLY, engine_clears_bits_before_it_leaves),
	CASE(BIT_RECHECK, engine_looks_at_states_behind_bits),
	CASE(ENGINE_WAKE, engine_wakes_sleepers),
	CASE(DECLINED, engine_keeps_what_was_declined),
};
const size_t rule_case_count = sizeof(rule_cases) / sizeof(rule_cases[0]);

/* Each rule is here, is one of chunks (test_chunk_rules.c), or has to do with store buffers. */
TEST(rules_are_all_looked_at)
{
	const enum rule first_of_chunks = RULE_CHUNK_FIELDS;
	static const enum rule explored[] = { RULE_RING_FENCE, RULE_TELL_FENCE, RULE_LEAVE_FENCE, RULE_ENGINE_RING_FENCE, RULE_ENGINE_FENCE };

	for (int rule = RULE_NONE + 1; rule < RULE_COUNT; rule++) {
		uint32_t found = rule >= (int)first_of_chunks;

		for (size_t i = 0; i < rule_case_count; i++)
			found += rule_cases[i].rule == (enum rule)rule;
		for (size_t i = 0; i < sizeof(explored) / sizeof(explored[0]); i++)
			found += explored[i] == (enum rule)rule;
		check_msg(found, "rule %d is looked at by nobody", rule);
	}
}
