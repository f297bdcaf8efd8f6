/* SPDX-License-Identifier: Apache-2.0 */
/* What channels and registered memory ask the daemon. Stateless; any thread. All set the text of an error. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/channel.h"

int hccld_channel_request_register(uint64_t rank, const char *tag, uint64_t segment, uint64_t offset, uint64_t bytes,
				   uint64_t *ret_registration);
int hccld_channel_request_unregister(uint64_t registration);

/* One end that is wanted. */
struct hccld_channel_offer {
	uint32_t peer, protocol, notify_count;
	const uint64_t *registrations;
	uint32_t registration_count;
};

/* @ret_ids: one for each offer. On failure none of those that were not there before is there. */
int hccld_channel_request_offer(uint64_t rank, uint32_t engine, uint64_t buffer, const struct hccld_channel_offer *offers, uint32_t count,
				uint64_t *ret_ids);
/* Until all are complete. -ENOLINK: @timeout_ms are over. */
int hccld_channel_request_await(const uint64_t *ids, uint32_t count, uint32_t timeout_ms);
/*
 * Fills in what the channel with the id channel->id has: numbers, memories and tags, mapped. What was made when it fails is with the channel.
 */
int hccld_channel_request_describe(struct hccld_channel *channel);
/* @unless_complete: those that are so stay, and no error is set. */
int hccld_channel_request_close(const uint64_t *ids, uint32_t count, bool unless_complete);
