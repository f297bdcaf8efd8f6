/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/awaited.h"

#include "proto/clock.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/session.h"
#include "registry/waiting.h"

struct waiting awaited_of(const struct channel *channel)
{
	const struct rank *rank = channel->rank;
	uint64_t now = clock_now_ns();

	return (struct waiting){ .session = rank->session,
				 .kind = WAITING_CHANNEL,
				 .comm = rank->comm,
				 .related = rank->comm,
				 .stream = UINT32_MAX,
				 .rank = rank->rank,
				 .peer = channel->peer,
				 .peer_pid = waiting_member_pid(rank->comm, channel->peer),
				 .age_ms = now > channel->awaited_ns ? (now - channel->awaited_ns) / 1000000 : 0,
				 .channel = channel };
}

void awaited_walk(const struct context *context, bool (*found)(void *data, const struct waiting *waiting), void *data)
{
	/* most ranks have many channels, and wait for none */
	if (!context->session->channel_waiters)
		return;
	list_for_each(struct rank, rank, &context->ranks, link) {
		list_for_each(struct channel, channel, &rank->channels, link) {
			struct waiting waiting;

			if (list_is_empty(&channel->waiters))
				continue;
			waiting = awaited_of(channel);
			if (!found(data, &waiting))
				return;
		}
	}
}
