/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a fixed number of places are taken. Places are given out round robin, so that a place
 * comes back as late as possible: a request that arrives twice (restart of the daemon) does not
 * meet the place's next owner.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct slots {
	uint64_t *words;
	uint32_t room; /* bits that there are in `words`: those behind them are 0. Grows */
	uint32_t count, used, next;
};

int slots_init(struct slots *slots, uint32_t count); /* -ENOMEM, as all that take */
void slots_deinit(struct slots *slots);
/* -ENOSPC: all taken. */
int slots_take(struct slots *slots, uint32_t *ret_index);
/* The first free place: keeps tables short. -ENOSPC. */
int slots_take_lowest(struct slots *slots, uint32_t *ret_index);
/* A particular place. -EBUSY: taken; -EINVAL: there is no such place. */
int slots_take_at(struct slots *slots, uint32_t index);
void slots_give(struct slots *slots, uint32_t index);
bool slots_is_taken(const struct slots *slots, uint32_t index);
