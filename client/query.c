/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about devices. Settings are words of their own: who reads while another writes gets the one or the other. */
#include "client/query.h"

#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "acl/acl_rt.h"
#include "client/device.h"
#include "client/error.h"
#include "client/table.h"

#define LIMIT_TYPES 2u

static _Atomic uint32_t limits[HCCLD_DEVICES_MAX][LIMIT_TYPES];	   /* 0: none */
static _Atomic bool peers[HCCLD_DEVICES_MAX][HCCLD_DEVICES_MAX] HCCLD_TABLE; /* by the program's numbers */

static uint32_t processors(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count > 0 ? (uint32_t)count : 1;
}

static int64_t last_cache(void)
{
	long size = sysconf(_SC_LEVEL3_CACHE_SIZE);

	if (size <= 0)
		size = sysconf(_SC_LEVEL2_CACHE_SIZE);
	return size > 0 ? size : 0;
}

static int total_memory(int32_t logical, int64_t *ret_value)
{
	struct hccld_device_state state;
	int r = hccld_device_describe(logical, &state);

	if (r == 0)
		*ret_value = (int64_t)state.memory_total;
	return r;
}

int hccld_query_attribute(int32_t logical, int attribute, int64_t *ret_value)
{
	uint32_t number;
	int r;

	r = hccld_device_number(logical, &number);
	if (r < 0)
		return r;
	switch ((aclrtDevAttr)attribute) {
	case ACL_DEV_ATTR_AICPU_CORE_NUM:
	case ACL_DEV_ATTR_AICORE_CORE_NUM:
	case ACL_DEV_ATTR_CUBE_CORE_NUM:
	case ACL_DEV_ATTR_VECTOR_CORE_NUM:
		*ret_value = processors();
		return 0;
	case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
		return total_memory(logical, ret_value);
	case ACL_DEV_ATTR_L2_CACHE_SIZE:
		*ret_value = last_cache();
		return 0;
	case ACL_DEV_ATTR_PHY_CHIP_ID:
		*ret_value = number;
		return 0;
	case ACL_DEV_ATTR_SMP_ID:
	case ACL_DEV_ATTR_CUST_OP_PRIVILEGE:
		*ret_value = 0;
		return 0;
	case ACL_DEV_ATTR_IS_VIRTUAL:
		*ret_value = 1;
		return 0;
	case ACL_DEV_ATTR_WARP_SIZE:
	case ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE:
	case ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE:
	case ACL_DEV_ATTR_SUPER_POD_DEVICE_ID:
	case ACL_DEV_ATTR_SUPER_POD_SERVER_ID:
	case ACL_DEV_ATTR_SUPER_POD_ID:
	case ACL_DEV_ATTR_MAINBOARD_ID:
		return hccld_error(
			CAUSE_NOT_SUPPORTED,
			"aclrtGetDeviceInfo: attribute %d is of hardware that a device of host memory does not have",
			attribute);
	}
	return hccld_error(CAUSE_ARGUMENT,
			   "aclrtGetDeviceInfo: attr is %d, which aclrtDevAttr does not have",
			   attribute);
}

/* ---- limits ---- */

int hccld_query_limit(int32_t logical, uint32_t type, uint32_t *ret_value)
{
	uint32_t number, limit;
	int r;

	r = hccld_device_number(logical, &number);
	if (r < 0)
		return r;
	limit = atomic_load(&limits[logical][type]);
	*ret_value = limit ? limit : processors();
	return 0;
}

int hccld_query_set_limit(int32_t logical, uint32_t type, uint32_t value)
{
	uint32_t number;
	int r;

	r = hccld_device_number(logical, &number);
	if (r < 0)
		return r;
	if (value == 0 || value > processors())
		return hccld_error(CAUSE_ARGUMENT,
				   "aclrtSetDeviceResLimit: value is %u; expected 1 to %u", value,
				   processors());
	atomic_store(&limits[logical][type], value);
	return 0;
}

int hccld_query_reset_limits(int32_t logical)
{
	uint32_t number;
	int r;

	r = hccld_device_number(logical, &number);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < LIMIT_TYPES; i++)
		atomic_store(&limits[logical][i], 0);
	return 0;
}

/* ---- peers ---- */

static int peers_exist(int32_t logical, int32_t peer)
{
	uint32_t number;
	int r;

	r = hccld_device_number(logical, &number);
	return r < 0 ? r : hccld_device_number(peer, &number);
}

int hccld_peer_check(int32_t logical, int32_t peer, int32_t *ret_can)
{
	int r = peers_exist(logical, peer);

	if (r == 0)
		*ret_can = logical != peer;
	return r;
}

int hccld_peer_enable(int32_t peer, bool enable)
{
	int32_t logical;
	int r;

	r = hccld_device_get(&logical);
	if (r == 0)
		r = peers_exist(logical, peer);
	if (r < 0)
		return r;
	if (logical == peer)
		return hccld_error(CAUSE_ARGUMENT,
				   "peerDeviceId is %d, which is the current device itself", peer);
	if (!atomic_exchange(&peers[logical][peer], enable) && !enable)
		return hccld_error(
			CAUSE_ARGUMENT,
			"aclrtDeviceDisablePeerAccess: access from device %d to %d was not enabled",
			logical, peer);
	return 0;
}

int hccld_peer_status(int32_t logical, int32_t peer, int32_t *ret_enabled)
{
	int r = peers_exist(logical, peer);

	if (r == 0)
		*ret_enabled = atomic_load(&peers[logical][peer]);
	return r;
}

bool hccld_query_is_package(const char *name)
{
	static const char *const names[] = { "cann",	"runtime", "compiler",	 "hccl",
					     "toolkit", "opp",	   "opp_kernel", "driver" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}
