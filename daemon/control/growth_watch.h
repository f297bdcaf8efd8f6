/* SPDX-License-Identifier: Apache-2.0 */
/* Eager pools and wide rings of ranks that are gone are given back once all that was offered in them is received. Control thread. */
#pragma once

struct control;

/* A rank is gone, or a previous process has left communicators: looks now and then while anything is left. */
void growth_watch(struct control *control);
/* The timer. @data: control */
void growth_watch_again(void *data);
