/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program asks about devices: attributes, limits of cores, peer access, versions. Host memory stands in for devices, so numbers of
 * cores are those of the machine's processors, and whatever has no counterpart here says so. Settings are this process's. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The release of CANN whose interface this is. */
#define HCCLD_CANN_VERSION "9.0.0"
#define HCCLD_CANN_VERSION_NUMBER 90000000 /* major * 10^7 + minor * 10^5 + patch * 10^3 */

/* A value of aclrtDevAttr. -ENODEV; -EINVAL: there is none; -EPROTOTYPE: nothing here has it. */
int hccld_query_attribute(int32_t logical, int attribute, int64_t *ret_value);

/* @type: aclrtDevResLimitType, checked by the caller. Without a limit: what there is. */
int hccld_query_limit(int32_t logical, uint32_t type, uint32_t *ret_value);
/* -EINVAL: 0, or more than there is. */
int hccld_query_set_limit(int32_t logical, uint32_t type, uint32_t value);
int hccld_query_reset_limits(int32_t logical);

/* 1 for two different devices: all are memory of one machine. */
int hccld_peer_check(int32_t logical, int32_t peer, int32_t *ret_can);
/* From the current device. Once enabled, enabling is no error; -EINVAL: disabling what is not enabled, or the device itself. */
int hccld_peer_enable(int32_t peer, bool enable);
int hccld_peer_status(int32_t logical, int32_t peer, int32_t *ret_enabled);

/* A name of a package of CANN, as directories of an installation have it. */
bool hccld_query_is_package(const char *name);
