/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators, as libhcomm.so exports them: arguments are checked in HCCL's order, then the core is called. Behaviour and codes are those
 * of CANN 9.0 unless a comment says otherwise.
 */
#include <stddef.h>
#include <string.h>

#include "client/comm.h"
#include "client/device.h"
#include "client/environment.h"
#include "client/error.h"
#include "hccl/hccl_comm.h"
#include "proto/cleanup.h"

#define API(call) ((HcclResult)hccld_hccl_result(call))

static HcclResult null_argument(const char *function, const char *parameter)
{
	return API(hccld_error(CAUSE_NULL, "%s: %s is NULL", function, parameter));
}

HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo)
{
	if (!rootInfo)
		return null_argument(__func__, "rootInfo");
	return API(hccld_root_info_new(rootInfo));
}

/* One rank, on the current device. @config NULL: the environment's settings. */
static HcclResult init_rank(const char *function, uint32_t size, const HcclRootInfo *root, uint32_t rank,
			    const HcclCommConfig *config, bool wants_config, HcclComm *ret_comm)
{
	struct hccld_comm_join join = { .root = root, .rank = rank, .size = size };
	struct hccld_comm_config settings;
	int r;

	r = hccld_context_current(&join.context);
	if (r < 0)
		return API(r);
	join.context_id = join.context->id;
	if (size == 0 || size > HCCLD_RANKS_MAX)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: nRanks is %u, expected 1 to %u", function, size, HCCLD_RANKS_MAX));
	if (rank >= size)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: rank is %u, expected less than nRanks, which is %u", function, rank, size));
	if (!ret_comm)
		return null_argument(function, "comm");
	if (!root)
		return null_argument(function, "rootInfo");
	if (wants_config && !config)
		return null_argument(function, "config");
	r = config ? hccld_comm_config_read(config, &settings) : hccld_comm_config_default(&settings);
	if (r == 0)
		r = hccld_comm_join(&join, 1, &settings);
	if (r == 0)
		*ret_comm = join.ret_handle;
	return API(r);
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm)
{
	return init_rank(__func__, nRanks, rootInfo, rank, NULL, false, comm);
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, const HcclCommConfig *config,
				      HcclComm *comm)
{
	return init_rank(__func__, nRanks, rootInfo, rank, config, true, comm);
}

/* Every device that exists, once. */
static int check_devices(const char *function, uint32_t count, const int32_t *devices)
{
	uint32_t device_count;
	int r = hccld_device_count(&device_count);

	if (r < 0)
		return r;
	if (device_count == 0)
		return hccld_error(CAUSE_ARGUMENT, "%s: this process sees no device; ASCEND_RT_VISIBLE_DEVICES names none that exists", function);
	for (uint32_t i = 0; i < count; i++) {
		if (devices[i] < 0 || (uint32_t)devices[i] >= device_count)
			return hccld_error(CAUSE_ARGUMENT, "%s: devices[%u] is %d, expected 0 to %u", function, i, devices[i],
					   device_count - 1);
		for (uint32_t k = 0; k < i; k++)
			if (devices[k] == devices[i])
				return hccld_error(CAUSE_ARGUMENT, "%s: devices[%u] is %d, as devices[%u]; expected each device once",
						   function, i, devices[i], k);
	}
	return 0;
}

/* Contexts first, then all joins at once: they complete one another. The current device of the thread stays as it is. */
static int init_all(uint32_t count, const int32_t *devices, struct hccld_comm_join *joins)
{
	struct hccld_comm_config settings;
	HcclRootInfo root;
	int r;

	r = hccld_comm_config_default(&settings);
	if (r == 0)
		r = hccld_root_info_new(&root);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		joins[i] = (struct hccld_comm_join){ .root = &root, .rank = i, .size = count, .hold_context = true };
		r = hccld_context_acquire(devices[i], &joins[i].context);
		if (r == 0)
			joins[i].context_id = joins[i].context->id;
	}
	if (r == 0)
		r = hccld_comm_join(joins, count, &settings);
	for (uint32_t i = 0; r < 0 && i < count; i++)
		if (joins[i].context)
			hccld_context_release(joins[i].context, joins[i].context_id);
	return r;
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t *devices, HcclComm *comms)
{
	CLEANUP(freep) struct hccld_comm_join *joins = NULL;
	int r;

	if (ndev == 0)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: ndev is 0, expected at least 1", __func__));
	if (!devices)
		return null_argument(__func__, "devices");
	if (!comms)
		return null_argument(__func__, "comms");
	r = check_devices(__func__, ndev, devices);
	if (r < 0)
		return API(r);
	joins = calloc(ndev, sizeof(*joins));
	if (!joins)
		return API(hccld_error(CAUSE_HOST_MEMORY, "%s: no memory for %u ranks", __func__, ndev));
	r = init_all(ndev, devices, joins);
	for (uint32_t i = 0; r == 0 && i < ndev; i++)
		comms[i] = joins[i].ret_handle;
	return API(r);
}

HcclResult HcclCommDestroy(HcclComm comm)
{
	if (!comm)
		return HCCL_SUCCESS;
	return API(hccld_comm_leave(comm));
}

HcclResult HcclGetCommName(HcclComm comm, char *commName)
{
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!commName)
		return null_argument(__func__, "commName");
	r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	memcpy(commName, found->name, strlen(found->name) + 1);
	hccld_comm_put(found);
	return HCCL_SUCCESS;
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize)
{
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!rankSize)
		return null_argument(__func__, "rankSize");
	r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	*rankSize = found->size;
	hccld_comm_put(found);
	return HCCL_SUCCESS;
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank)
{
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!rank)
		return null_argument(__func__, "rank");
	r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	*rank = found->rank;
	hccld_comm_put(found);
	return HCCL_SUCCESS;
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream)
{
	if (!comm)
		return null_argument(__func__, "comm");
	if (!stream)
		return null_argument(__func__, "stream");
	return API(hccld_comm_barrier(comm, stream));
}

/* The code of the first fault that hit this rank; it stays. */
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError)
{
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!asyncError)
		return null_argument(__func__, "asyncError");
	r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	*asyncError = (HcclResult)hccld_comm_async_result(found);
	hccld_comm_put(found);
	return HCCL_SUCCESS;
}

const char *HcclGetErrorString(HcclResult code)
{
	static const char *const texts[] = {
		"no error", "parameter error", "empty pointer", "memory error", "internal error", "not support feature",
		"not found specific resource", "resource unavailable", "call system interface error", "timeout", "open file fail",
		"tcp connect fail", "roce connect fail", "tcp transfer fail", "roce transfer fail", "call runtime api fail",
		"call driver api fail", "call profiling api fail", "call cce api fail", "call network api fail", "try again",
		"error cqe", "error communicator suspending", "retry constraint", "out of memory",
	};

	if ((int)code < 0 || code >= HCCL_E_RESERVED)
		return "unknown error";
	return (size_t)code < sizeof(texts) / sizeof(texts[0]) ? texts[code] : "unknown err";
}

uint32_t HcclGetCommConfigCapability(void)
{
	return HCCL_COMM_CONFIG_RESERVED;
}
