/* SPDX-License-Identifier: Apache-2.0 */
/* Channels that a HcclChannelAcquire waits for, as something that waits: who is in that call may be unable to do anything else. Control thread. */
#pragma once

#include <stdbool.h>

struct channel;
struct context;
struct waiting;

/* Of a channel that a request waits for. */
struct waiting awaited_of(const struct channel *channel);
/* Of all ranks of @context, until @found returns false. */
void awaited_walk(const struct context *context, bool (*found)(void *data, const struct waiting *waiting), void *data);
