/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/control_tasks.h"

#include <string.h>

void some_item(struct input *input, const struct numbers *numbers, union stream_slot *slot)
{
	uint8_t mode = input_byte(input);
	struct item item = { .kind = mode % 7,
			     .peer = mode / 16 % 4,
			     .bytes = input_size(input),
			     .segment = numbers_take(numbers, input),
			     .offset = input_byte(input) % 2 ? 0 : input_size(input),
			     .next = LANE_END,
			     .next_lane = mode & 8 ? LANE_END : input_byte(input) % 8 };

	item.done = item.issue = input_byte(input) % 8;
	if (mode == 255) {
		item.number = input_size(input);
		item.state = ITEM_FAILED;
		item.next = input_byte(input);
	}
	memcpy(slot, &item, sizeof(item));
}

void some_meeting(struct input *input, const struct numbers *numbers, struct task *task, union stream_slot *ret_items)
{
	uint8_t mode = input_byte(input);
	struct item item = { .kind = mode < 248 ? ITEM_PLACE : mode % 8,
			     .data_type = mode / 8 % 8 < 6 ? mode / 8 % 4 : input_byte(input),
			     .segment = numbers_take(numbers, input),
			     .offset = mode & 4 ? input_size(input) : mode / 64 * 8 };

	item.number = input_size(input);
	*task = (struct task){ .kind = TASK_RECORD + mode % 8,
			       .flags = (mode & 8 ? TASK_NO_BLOCK : 0) | (mode & 0x40 ? TASK_KERNEL : 0),
			       .timeout_ms = mode & 0x20,
			       .first_lane = LANE_END };
	task->item_count = task->kind == TASK_REDUCE ? 2 : task->kind != TASK_HOST;
	task->slot_count = (uint16_t)(task->item_count + 1);
	if (task->kind == TASK_REDUCE) {
		item.kind = mode < 248 ? ITEM_REDUCE : mode % 8;
		item.bytes = mode / 16 % 8 * 8;
	}
	memcpy(&ret_items[0], &item, sizeof(item));
	memcpy(&ret_items[1], &(struct item){ .kind = ITEM_SOURCE, .segment = item.segment }, sizeof(item));
}
