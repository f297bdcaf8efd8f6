/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait until channels are complete, and why a channel is not. */
#pragma once

#include <stdint.h>

#include "proto/status.h"

struct channel;
struct control;
struct page;
struct rank;
struct request;
struct session;
struct text;

/* handle_await_channels() in dispatch.h starts one. */

/* It is complete, dead, or being closed: those who wait for it hear of it. */
void channel_settled(struct channel *channel);
/* @rank has died or left, its word says how: ends that other ranks have offered to it will not be completed. */
void channels_forsake(struct control *control, const struct rank *rank);
/* The session ends: nobody waits for its answers. */
void channel_waits_abort(struct session *session);
/* The callback of control->channel_timer. */
void channel_waits_expire(void *control);

/* For how many ms the request waits that has waited longest, of those that who asks may see; 0: none. @text, which may be NULL: for what. */
uint64_t channel_waits_oldest(const struct request *request, struct text *text);

/* Adds those that who asks may see to the list of what waits; their cursors come after all others. */
void channel_waits_list(struct page *page);

/*
 * CAUSE_NONE: it is complete. CAUSE_BUSY: the peer has yet to offer its end. Else why it will never be, or is no longer; @text, which may
 * be NULL, names ranks, engine and protocol, and what has happened.
 */
enum cause channel_verdict(const struct channel *channel, struct text *text);
/* Of one that waits for its peer: "rank 3 (pid 4711) lives and has offered engine CPU with ROCE only". */
void channel_describe_absent(const struct channel *channel, struct text *text);
