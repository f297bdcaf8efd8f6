/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of pairs as an earlier release has made them. */
#include "proto/status.h"
#include "tests/support/rig.h"
#include "tests/support/test.h"

#define SEND(to, at, size) { .kind = ITEM_SEND, .peer = (to), .offset = (at), .bytes = (size) }
#define RECEIVE(from, at, size) { .kind = ITEM_RECEIVE, .peer = (from), .offset = (at), .bytes = (size) }

TEST(rings_of_release_0_3)
{
	struct rig *rig = rig_new(2, false);
	struct rig_item sends[40], receives[40];

	rig_make_first(rig);
	for (uint32_t i = 0; i < 40; i++) {
		sends[i] = (struct rig_item)SEND(1, i * 64, i % 2 ? 4 : 60);
		receives[i] = (struct rig_item)RECEIVE(0, i * 64, i % 2 ? 4 : 60);
		rig->ranks[0].memory[i * 64] = (unsigned char)i;
	}
	rig_submit(rig, 0, 0, sends, 40, 0);
	rig_run(rig);
	check_eq_uint(rig_pair(rig, 0, 1)->tail, HCCLD_PAIR_SLOTS_FIRST);
	rig_restart(rig);
	rig_submit(rig, 1, 0, receives, 40, 0);
	rig_run(rig);
	check(rig_is_done(rig, 0, 0) && rig_is_done(rig, 1, 0));
	for (uint32_t i = 0; i < 40; i++)
		check_eq_uint(rig->ranks[1].memory[i * 64], i);
	rig_submit(rig, 0, 0, (struct rig_item[]){ SEND(1, 0, 100) }, 1, 0);
	rig_submit(rig, 1, 0, (struct rig_item[]){ RECEIVE(0, 0, 101) }, 1, 0);
	rig_run(rig);
	check_eq_uint(rig->ranks[0].streams[0]->fault_count, 1);
	check_eq_uint(rig->ranks[1].streams[0]->fault_count, 1);
	check_eq_uint(((struct pair_ring_first *)rig_pair(rig, 0, 1))->failed, 41);
	check_eq_int(rig->ranks[0].streams[0]->fault.cause, CAUSE_MISMATCH);
	check_eq_int(rig->ranks[1].streams[0]->fault.cause, CAUSE_MISMATCH);
	check_eq_uint(rig->ranks[0].streams[0]->fault.remote_bytes, 101);
	rig_free(rig);
}
