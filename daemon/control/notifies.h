/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies, as handlers ask for them. */
#pragma once

#include <stdint.h>

#include "registry/notify.h"

struct context;
struct control;
struct request;

/*
 * @count notifies of @context's device for @request, which is its @part-th range. Refuses in words that name the limit and its
 * holders: returns what request_fail() does. A request that comes again after a restart finds what it has got.
 */
int notifies_get(struct request *request, struct context *context, uint32_t count, enum notify_purpose purpose, uint32_t part,
		 struct notifies **ret_notifies);
/*
 * Notifies that were given back and that queued tasks name: waits for which no record can come end. At once for what is known to have such
 * waits; the rest is looked at again, as long as there is any.
 */
void notifies_watch(struct control *control);
/* The timer of control. */
void notifies_watch_again(void *data);
/* What notifies_new() said, in words. */
int notifies_refuse(struct request *request, const struct context *context, uint32_t count, int r);
