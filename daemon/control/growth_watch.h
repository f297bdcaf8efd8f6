/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eager pools and wide rings (registry/growth.h): made when the engine misses them (clients ask by themselves), and those of ranks that are gone given
 * back once all that was offered in them is received. Control thread.
 */
#pragma once

#include <stdint.h>

struct control;

/* no_room() of struct scheduler_options. @data: control */
void growth_make(void *data, uint64_t comm_id, uint32_t source, uint32_t destination, uint32_t pools);

/* A rank is gone, or a previous process has left communicators: looks now and then while anything is left. */
void growth_watch(struct control *control);
/* The timer. @data: control */
void growth_watch_again(void *data);
