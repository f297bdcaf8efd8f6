/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the executor over words that somebody else can write (engine_case.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;
struct rig;

enum engine_target {
	TARGET_SLOTS,	/* the ring of a client, and a side buffer of items */
	TARGET_OFFERS,	/* the source's line and the slots of its pair rings */
};

/*
 * Rank 0 does what @data says: its words are nonsense, and change between any two stores of the executor. Ranks 1 and 2 exchange data
 * meanwhile: their bytes must be right, and nobody may take them for liars. Stops the fuzzer if not.
 */
void engine_case(const uint8_t *data, size_t size, enum engine_target target);

/* Some segment's id, as the liar could name one. */
uint64_t liar_segment_id(struct input *input);

/* engine_room.c. @which: a bit for each that is there from the start, as room_grow() numbers them */
void room_start(struct rig *rig, uint8_t which);
/* The pool of rank @which % 8, or another one; from 3 on wide rings. */
void room_grow(struct rig *rig, uint8_t which);
/* There is a new executor. */
void room_restart(void);
/* An offer that the executor did not make: the next one of the pair from rank 0 to rank 1 or 2. */
void room_put_offer(struct rig *rig, struct input *input);
/* A word that rank 0 can write. */
unsigned char *room_place(struct rig *rig, uint8_t which, uint32_t word);

/* engine_honest.c. All at any time, but the exchange first and the check when ranks 1 and 2 are done with each other. */
void honest_exchange(struct rig *rig);
void honest_meeting(struct rig *rig);
/* What one has sent and the other has not asked for yet. */
void honest_receive(struct rig *rig);
void honest_barrier(struct rig *rig);
void honest_with_liar(struct rig *rig, struct input *input);
void honest_check(struct rig *rig);
/* The liar has ended. True: one of them is in a barrier that the other was not, because of a suspension: that has a time-out. */
bool honest_waits(struct rig *rig);
