/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmap of places. */
#include "base/slots.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"

int slots_init(struct slots *slots, uint32_t count)
{
	*slots = (struct slots){ .count = count };
	slots->words = calloc((count + 63) / 64, sizeof(uint64_t));
	return slots->words ? 0 : -ENOMEM;
}

void slots_deinit(struct slots *slots)
{
	free(slots->words);
	slots->words = NULL;
}

bool slots_is_taken(const struct slots *slots, uint32_t index)
{
	return bits_get(slots->words, index);
}

static int slots_take_from(struct slots *slots, uint32_t i, uint32_t *ret_index)
{
	if (slots->used == slots->count)
		return -ENOSPC;
	/* at least one is free: ends */
	while (slots_is_taken(slots, i)) {
		if (i % 64 == 0 && slots->words[i / 64] == UINT64_MAX)
			i += 64;
		else
			i++;
		if (i >= slots->count)
			i = 0;
	}
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
	if (index >= slots->count)
		return -EINVAL;
	if (slots_is_taken(slots, index))
		return -EBUSY;
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
