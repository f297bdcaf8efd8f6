/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks 1 and 2 of engine_case.c: what they do with each other must come out right, and what they do with the liar must end. */
#include <stdatomic.h>
#include <string.h>

#include "proto/event.h"
#include "proto/notify.h"
#include "tests/fuzz/engine_case.h"
#include "tests/fuzz/input.h"
#include "tests/support/rig.h"

#define HONEST_SMALL 100u
#define HONEST_LARGE 300000u
#define HONEST_EVENT (1u << 19)	/* in the memory of rank 1, where nobody receives */
#define HONEST_WORD (HONEST_EVENT + (uint32_t)sizeof(struct event_slot))
#define HONEST_NOTIFY (HONEST_EVENT + 128u)
#define HONEST_SUM (HONEST_EVENT + 192u)
#define HONEST_TERM (HONEST_EVENT + 200u)
#define HONEST_LETTERS (3u << 19) /* in the memory of both: what one sends before the other asks for it */
#define LETTERS 64u
#define LETTERS_LATE 24u /* at most; more than a pair ring takes */

static uint64_t version;
static uint32_t letters_sent, letters_asked;

static bool honest_has_room(const struct rig *rig, uint32_t rank)
{
	const struct stream_ring *ring = rig->ranks[rank].streams[1];

	return atomic_load(&ring->tail) - atomic_load(&ring->completed) < 64;
}

void honest_with_liar(struct rig *rig, struct input *input)
{
	static const uint64_t sizes[] = { 0, 1, 8, 40, 41, 100, 4096, 32768, 32769, 300000 };
	uint32_t rank = 1 + input_byte(input) % 2;
	uint8_t size = input_byte(input);
	struct rig_item item = { size & 0x80 ? ITEM_SEND : ITEM_RECEIVE, 0, 2 << 20,
				 size & 0x40 ? input_size(input) % RIG_MEMORY / 2 : sizes[size % 10], 7 };

	if (honest_has_room(rig, rank))
		rig_submit(rig, rank, 1, &item, 1, input_byte(input) % 2);
}

void honest_barrier(struct rig *rig)
{
	if (!honest_has_room(rig, 1) || !honest_has_room(rig, 2))
		return;
	for (uint32_t rank = 1; rank < 3; rank++) {
		struct stream_ring *ring = rig->ranks[rank].streams[1];

		rig_submit_barrier(rig, rank, 1);
		ring->slots[(atomic_load(&ring->tail) - 1) % HCCLD_STREAM_SLOTS].task.timeout_ms = 1;
	}
}

/* Inside an offer, and in a pool if there is one. */
static struct rig_item letter(uint32_t index, enum item_kind kind, uint32_t peer)
{
	return (struct rig_item){ kind, peer, HONEST_LETTERS + index * HCCLD_EAGER_MAX,
				  index % 2 ? 1 + index % HCCLD_INLINE_MAX : 41 + index * 129 % (HCCLD_EAGER_MAX - 40), 7 };
}

void honest_receive(struct rig *rig)
{
	while (letters_asked < letters_sent) {
		struct rig_item item = letter(letters_asked++, ITEM_RECEIVE, 1);

		rig_submit(rig, 2, 0, &item, 1, 0);
	}
}

static void honest_send(struct rig *rig)
{
	struct rig_item item = letter(letters_sent, ITEM_SEND, 2);

	if (letters_sent == LETTERS)
		return;
	letters_sent++;
	memset(rig->ranks[1].memory + item.offset, (int)letters_sent, item.bytes);
	rig_submit(rig, 1, 0, &item, 1, 0);
	/* without a pool the stream would stand still */
	if (letters_sent % LETTERS_LATE == 0 || !atomic_load(&atomic_load(&rig->comm.pools[1])->count))
		honest_receive(rig);
}

/* Each waits on one stream for what it does on the other, where the liar is waited for by nobody. */
void honest_meeting(struct rig *rig)
{
	if (!honest_has_room(rig, 1) || atomic_load(&rig->ranks[1].streams[0]->tail) - atomic_load(&rig->ranks[1].streams[0]->completed) > 64)
		return;
	version++;
	honest_send(rig);
	rig_submit_meeting(rig, 1, 1, TASK_WAIT_EVENT, HONEST_EVENT, version);
	rig_submit_meeting(rig, 1, 1, TASK_WAIT_VALUE, HONEST_WORD, version);
	rig_submit_meeting(rig, 1, 0, TASK_RECORD, HONEST_EVENT, version);
	rig_submit_meeting(rig, 1, 0, TASK_WRITE, HONEST_WORD, version);
	rig_submit_meeting(rig, 1, 0, TASK_HOST, 0, 0);
	rig_submit_notify(rig, 1, 1, &(struct rig_notify){ TASK_NOTIFY_WAIT, NOTIFY_BIGGER_OR_EQUAL, .offset = HONEST_NOTIFY, .number = version });
	rig_submit_notify(rig, 1, 0, &(struct rig_notify){ TASK_NOTIFY_RECORD, NOTIFY_ADD, .offset = HONEST_NOTIFY, .number = 1 });
	rig_submit_reduce(rig, 1, 0, &(struct rig_reduce){ .to = HONEST_SUM, .from = HONEST_TERM, .bytes = 8, .type = 6 });
}

void honest_exchange(struct rig *rig)
{
	memset(rig->ranks[2].memory + HONEST_LETTERS, 0, letters_sent * (size_t)HCCLD_EAGER_MAX); /* of the last run */
	version = letters_sent = letters_asked = 0;
	memset(rig->ranks[1].memory + HONEST_EVENT, 0, 4096);
	*(uint64_t *)(rig->ranks[1].memory + HONEST_TERM) = 3;
	memset(rig->ranks[1].memory, 0x5a, HONEST_SMALL);
	memset(rig->ranks[1].memory + (1 << 20), 0xa5, HONEST_LARGE);
	memset(rig->ranks[2].memory, 0, HONEST_SMALL);
	memset(rig->ranks[2].memory + (1 << 20), 0, HONEST_LARGE);
	rig_submit(rig, 1, 0, (struct rig_item[]){ { ITEM_SEND, 2, 0, HONEST_SMALL, 7 }, { ITEM_SEND, 2, 1 << 20, HONEST_LARGE, 7 } }, 2, 0);
	rig_submit(rig, 2, 0, (struct rig_item[]){ { ITEM_RECEIVE, 1, 0, HONEST_SMALL, 7 }, { ITEM_RECEIVE, 1, 1 << 20, HONEST_LARGE, 7 } }, 2, 0);
}

void honest_check(struct rig *rig)
{
	insist(rig_is_done(rig, 1, 0) && rig_is_done(rig, 2, 0));
	insist(atomic_load(&rig->ranks[1].streams[0]->fault_count) == 0 && atomic_load(&rig->ranks[2].streams[0]->fault_count) == 0);
	insist(atomic_load(&((struct event_slot *)(rig->ranks[1].memory + HONEST_EVENT))->recorded) == version);
	insist(*(uint64_t *)(rig->ranks[1].memory + HONEST_WORD) == version);
	insist(notify_value(atomic_load(&((struct notify_slot *)(rig->ranks[1].memory + HONEST_NOTIFY))->word)) == version);
	insist(*(uint64_t *)(rig->ranks[1].memory + HONEST_SUM) == 3 * version);
	for (uint32_t i = 0; i < letters_sent; i++) {
		struct rig_item item = letter(i, ITEM_RECEIVE, 1);

		for (uint64_t byte = 0; byte < item.bytes; byte++)
			insist(rig->ranks[2].memory[item.offset + byte] == (unsigned char)(i + 1));
	}
	for (uint32_t i = 0; i < HONEST_SMALL; i++)
		insist(rig->ranks[2].memory[i] == 0x5a);
	for (uint32_t i = 0; i < HONEST_LARGE; i += 997)
		insist(rig->ranks[2].memory[(1 << 20) + i] == 0xa5);
}

bool honest_waits(struct rig *rig)
{
	bool waits = false;

	for (uint32_t rank = 1; rank < 3; rank++)
		for (uint32_t s = 0; s < RIG_STREAMS; s++) {
			struct stream_ring *ring = rig->ranks[rank].streams[s];

			if (rig_is_done(rig, rank, s))
				continue;
			insist(ring->slots[atomic_load(&ring->completed) % HCCLD_STREAM_SLOTS].task.kind == TASK_BARRIER);
			waits = true;
		}
	return waits;
}
