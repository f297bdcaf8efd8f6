/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmap of places. */
#include "base/slots.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

#define ROOM_MIN 1024u

/* So that @index has a bit. */
static int slots_grow(struct slots *slots, uint32_t index)
{
	uint32_t room = slots->room < ROOM_MIN / 2 ? ROOM_MIN : slots->room * 2;
	uint64_t *words;

	if (index < slots->room)
		return 0;
	room = room > index ? (room + 63) / 64 * 64 : (index / 64 + 1) * 64;
	words = realloc(slots->words, room / 8);
	if (!words)
		return -ENOMEM;
	memset(words + slots->room / 64, 0, (room - slots->room) / 8);
	slots->words = words;
	slots->room = room;
	return 0;
}

int slots_init(struct slots *slots, uint32_t count)
{
	*slots = (struct slots){ .count = count };
	return slots_grow(slots, 0);
}

void slots_deinit(struct slots *slots)
{
	free(slots->words);
	slots->words = NULL;
}

bool slots_is_taken(const struct slots *slots, uint32_t index)
{
	return index < slots->room && bits_get(slots->words, index);
}

static int slots_take_from(struct slots *slots, uint32_t i, uint32_t *ret_index)
{
	int r;

	if (slots->used == slots->count)
		return -ENOSPC;
	/* at least one is free: ends */
	while (slots_is_taken(slots, i)) {
		/* it is taken, so there is a word */
		if (i % 64 == 0 && slots->words[i / 64] == UINT64_MAX)
			i += 64;
		else
			i++;
		if (i >= slots->count)
			i = 0;
	}
	r = slots_grow(slots, i);
	if (r < 0)
		return r;
	bits_set(slots->words, i);
	slots->used++;
	*ret_index = i;
	return 0;
}

int slots_take(struct slots *slots, uint32_t *ret_index)
{
	int r;

	r = slots_take_from(slots, slots->next, ret_index);
	if (r < 0)
		return r;
	slots->next = *ret_index + 1 < slots->count ? *ret_index + 1 : 0;
	return 0;
}

int slots_take_lowest(struct slots *slots, uint32_t *ret_index)
{
	return slots_take_from(slots, 0, ret_index);
}

int slots_take_at(struct slots *slots, uint32_t index)
{
	int r;

	if (index >= slots->count)
		return -EINVAL;
	if (slots_is_taken(slots, index))
		return -EBUSY;
	r = slots_grow(slots, index);
	if (r < 0)
		return r;
	bits_set(slots->words, index);
	slots->used++;
	if (index >= slots->next)
		slots->next = index + 1 < slots->count ? index + 1 : 0;
	return 0;
}

void slots_give(struct slots *slots, uint32_t index)
{
	assert(slots_is_taken(slots, index));
	bits_clear(slots->words, index);
	slots->used--;
}
