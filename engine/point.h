/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests put into the executors; nothing in ordinary builds.
 *
 * CRASH_POINT(n), with -DHCCLD_CRASH_POINTS: stands between two stores that matter, or between a store and a look. A test ends the executor
 * there as if it had been killed, or holds it up. Numbers are of the daemon's executor, and, from DIRECT_POINT_FIRST on, of that of clients.
 *
 * KEEPS(rule), with -DHCCLD_BREAKS: false for the one rule that the test has chosen to leave out. tests/model/README.md, "Left out of the
 * code", says who must notice.
 */
#pragma once

#ifdef HCCLD_CRASH_POINTS
void engine_crash_point(int point);
#define CRASH_POINT(n) engine_crash_point(n)
#else
#define CRASH_POINT(n) ((void)0)
#endif
#define CRASH_POINT_COUNT 57
#define DIRECT_POINT_FIRST 101
#define DIRECT_POINT_END 141

#define BREAKABLE_RULES(X)                                                                                                               \
	/* engine/direct.c */                                                                                                            \
	X(RING_FENCE) X(RING_CAS) X(RING_BIT) X(RING_HELD) X(RING_TRUSTS_SLEEP) X(TELL_BIT) X(TELL_FENCE) X(TELL_AWAKE)                  \
	X(TAKE_HELD) X(TAKE_INTRUDED) X(RETREAT_TELLS) X(ASLEEP) X(LEAVE_FENCE) X(OWN_WORD) X(LEAVE_RESCAN) X(SLEEP_RESCAN) X(NEWS_FIRST) X(LEFT_BEHIND) \
	/* engine/direct_send.c, direct_receive.c */                                                                                      \
	X(COMMIT_FAILED) X(COMMIT_REVOKED) X(COMMIT_ABORT) X(COMMIT_MEMBER) X(COMMIT_RETIRED) X(OFFER_FIRST)                             \
	/* engine/context.c */                                                                                                           \
	X(ENGINE_RING_FENCE) X(ENGINE_RING_BIT) X(ENGINE_LOOK_AGAIN) X(ENGINE_RESCAN) X(ENGINE_FENCE) X(ENGINE_BIT_EARLY) X(BIT_RECHECK) \
	X(ENGINE_WAKE) X(DECLINED)                                                                                                        \
	/* engine/direct_help.c, chunk.c */                                                                                               \
	X(CHUNK_FIELDS) X(CHUNK_CLAIM) X(CHUNK_TELLS) X(HELP_INTRUDED) X(CHUNKS_OWNED) X(CHUNKS_CLOSE) X(CHUNKS_WAIT) X(CHUNKS_FAILED)   \
	X(CHUNKS_ONLY_DEAD) X(CHUNKS_REMAIN)

#ifdef HCCLD_BREAKS
#define RULE_OF(name) RULE_##name,
enum rule { RULE_NONE, BREAKABLE_RULES(RULE_OF) RULE_COUNT };
extern enum rule broken_rule;
#define KEEPS(rule) (broken_rule != RULE_##rule)
#else
#define KEEPS(rule) 1
#endif
