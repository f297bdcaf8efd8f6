/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait until channels are complete, and why a channel is not. */
#pragma once

#include <stdbool.h>

#include "control/request.h"
#include "proto/status.h"

struct channel;
struct control;
struct page;
struct rank;
struct request;
struct session;
struct text;
struct waiting;

/* handle_await_channels() in dispatch.h starts one. */

/* It is complete, dead, or being closed: those who wait for it hear of it. */
void channel_settled(struct channel *channel);
/* @rank has died or left, its word says how: ends that other ranks have offered to it will not be completed. */
void channels_forsake(struct control *control, const struct rank *rank);
/* The session ends: nobody waits for its answers. */
void channel_waits_abort(struct session *session);
/* The callback of control->channel_timer. */
void channel_waits_expire(void *control);

/* Those that who asks may see: each as its first channel that lacks the other end. */
void channel_waits_walk(const struct request *request, bool (*found)(void *data, const struct waiting *waiting), void *data);
/* Of the first request that waits for @channel, as found above: the element of the list (NULL: out of memory), in words, its circle if there is one. */
Hccld__Control__Waiting *channel_wait_message(struct request *request, const struct channel *channel);
void channel_wait_describe(const struct channel *channel, struct text *text);
/* True: there is one. */
bool channel_wait_add_cycle(const struct channel *channel, struct text *text);
/* Adds those that who asks may see to the list of what waits; their cursors come after all others. */
void channel_waits_list(struct page *page);

/*
 * CAUSE_NONE: it is complete. CAUSE_BUSY: the peer has yet to offer its end. Else why it will never be, or is no longer; @text, which may
 * be NULL, names ranks, engine and protocol, and what has happened.
 */
enum cause channel_verdict(const struct channel *channel, struct text *text);
/* Of one that waits for its peer: "rank 3 (pid 4711) lives and has offered engine CPU with ROCE only". */
void channel_describe_absent(const struct channel *channel, struct text *text);
