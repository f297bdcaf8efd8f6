/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices as the program numbers them (ASCEND_RT_VISIBLE_DEVICES renumbers from 0), the current device of a thread, and the contexts
 * behind them, with their reference counts per process. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/session.h"
#include "proto/limits.h"

/*
 * "4,5,7": the daemon's numbers of the devices that the process sees, in this order. An entry that is no number, no device or a
 * repetition ends the list, as in CANN. @list NULL: all. Returns how many.
 */
uint32_t hccld_visible_devices(const char *list, uint32_t device_count,
			       uint32_t ret_devices[HCCLD_DEVICES_MAX]);

int hccld_device_count(uint32_t *ret_count);
/* Of the daemon; lives as long as the process. NULL without a daemon, text set. */
const char *hccld_device_soc_name(void);

/* aclrtSetDevice: one reference more, and the current device of this thread. -ENODEV. */
int hccld_device_set(int32_t logical);
/* -ENXIO: this thread has none. set and get are in current.c. */
int hccld_device_get(int32_t *ret_logical);
/* One reference less, with @force all. The last one waits for the device's streams (not with @force) and ends them and its memory. */
int hccld_device_reset(int32_t logical, bool force);
/* All streams of the current device. @timeout_ms as in hccld_stream_wait(). */
int hccld_device_synchronize(int64_t timeout_ms);
/* The daemon's number of a device of the program, and the reverse. -ENODEV; text set. */
int hccld_device_number(int32_t logical, uint32_t *ret_number);
int hccld_device_logical(int32_t number, int32_t *ret_logical);
/* 0 if the daemon has a device of that number, whether or not this process sees it. -ENODEV. */
int hccld_device_exists(int32_t number);
/* The context of a device that this process uses. -ENXIO: it does not, @function is named in the text. */
int hccld_context_open_on(const char *function, int32_t logical, struct hccld_context **ret_context);

/* What the daemon knows of a device. */
struct hccld_device_state {
	uint8_t uuid[16];
	uint64_t memory_used, memory_total;
	int32_t pid;		/* of this process, as the daemon sees it; 0: it does not */
};
int hccld_device_describe(int32_t logical, struct hccld_device_state *ret_state);

/* Device memory of the current device. */
int hccld_device_memory_info(uint64_t *ret_free, uint64_t *ret_total);

/* A reference to a device's context that is not the current device of a thread (HcclCommInitAll). -ENODEV. */
int hccld_context_acquire(int32_t logical, struct hccld_context **ret_context);
/*
 * Gives back a reference to the context that had @id. The last one ends it as hccld_device_reset() does. Nothing if it is closed or has
 * another id by now: aclrtResetDeviceForce() has taken all references.
 */
int hccld_context_release(struct hccld_context *context, uint64_t id);
/* The context of a device that the process uses. -ENODEV, -ENXIO. */
int hccld_device_context(int32_t logical, struct hccld_context **ret_context);
/* The default context of a device of the program, open or not. @logical is not checked. */
struct hccld_context *hccld_device_slot(int32_t logical);
/* Is the address one that hccld_device_slot() gives for some device? */
bool hccld_device_is_context(const void *pointer);
/* Is @id still the context that it was? */
bool hccld_context_is_open(const struct hccld_context *context, uint64_t id);

/* aclInit and its kin: a count of its own, nothing depends on it. Returns the count before. */
uint64_t hccld_init_add(void);
/* aclFinalize (@all) takes the count to 0, aclFinalizeReference takes one away. Returns the count before. */
uint64_t hccld_init_remove(bool all);
