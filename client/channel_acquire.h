/* SPDX-License-Identifier: Apache-2.0 */
/* HcclChannelAcquire and its kin, after their NULL checks. Handles are those of the API; any thread. Negative errno, text set. */
#pragma once

#include <stdint.h>

#include "hccl/hccl_channel.h"

/*
 * Checks all descriptors, offers the ends that are not there yet, and waits up to HCCL_CONNECT_TIMEOUT for the other ends. @ret_channels is
 * written on success only. What was offered and not completed is taken back when it fails; what was completed stays, and is found by the
 * next call. Threads may wait at a time.
 */
int hccld_channel_acquire(const char *function, void *comm, int32_t engine, const HcclChannelDesc *descs, uint32_t count, void *config,
			  ChannelHandle *ret_channels);
/* Those that are there, or 0. */
int hccld_channel_query(const char *function, void *comm, int32_t engine, const HcclChannelDesc *descs, uint32_t count,
			ChannelHandle *ret_channels);
/* All that can be destroyed; the first error. */
int hccld_channels_destroy(void *comm, const ChannelHandle *channels, uint32_t count);

/* ---- channel_config.c ---- */

struct hccld_channel_config {
	bool is_shared;
	char tag[HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN + 1]; /* empty: none */
};

int hccld_channel_config_new(void **ret_config);
/* -ENOENT: unknown, or destroyed. */
int hccld_channel_config_end(void *config);
int hccld_channel_config_set_int(void *config, int32_t type, uint32_t value);
int hccld_channel_config_set_text(void *config, int32_t type, const char *value);
/* @config NULL: the defaults. */
int hccld_channel_config_read(void *config, struct hccld_channel_config *ret_config);
