/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies, as handlers ask for them. */
#pragma once

#include <stdint.h>

#include "registry/notify.h"

struct context;
struct request;

/*
 * @count notifies of @context's device for @request, which is its @part-th range. Refuses in words that name the limit and its
 * holders: returns what request_fail() does. A request that comes again after a restart finds what it has got.
 */
int notifies_get(struct request *request, struct context *context, uint32_t count, enum notify_purpose purpose, uint32_t part,
		 struct notifies **ret_notifies);
/* What notifies_new() said, in words. */
int notifies_refuse(struct request *request, const struct context *context, uint32_t count, int r);
