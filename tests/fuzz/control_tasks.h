/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz_control.c writes into the rings of streams, made of the fuzzer's bytes. */
#pragma once

#include "proto/ring.h"
#include "tests/fuzz/control_case.h"

/* One of a batch. */
void some_item(struct input *input, const struct numbers *numbers, union stream_slot *slot);
/* Events, host functions, values, notifies, reductions: at places of any segment, some of which are events. @ret_items: two. */
void some_meeting(struct input *input, const struct numbers *numbers, struct task *task, union stream_slot *ret_items);
