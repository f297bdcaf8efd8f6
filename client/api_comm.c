/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators, as libhcomm.so exports them: arguments are checked in HCCL's order, then the core is called. Behaviour and codes are those
 * of CANN 9.0 unless a comment says otherwise.
 */
#include <stddef.h>
#include <string.h>

#include "client/argument.h"
#include "client/comm.h"
#include "client/comm_settings.h"
#include "client/device.h"
#include "client/environment.h"
#include "client/error.h"
#include "client/group.h"
#include "hccl/hccl_comm.h"
#include "proto/cleanup.h"

#define API(call) ((HcclResult)hccld_hccl_result(call))

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

HcclResult HcclCommGetHandleWithName(const char *commName, HcclComm *comm)
{
	if (!commName)
		return null_argument(__func__, "commName");
	if (!comm)
		return null_argument(__func__, "comm");
	return API(hccld_comm_by_name(commName, comm));
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
	if (hccld_group_is_open())
		return API(hccld_error(CAUSE_NOT_SUPPORTED, "%s: not between HcclGroupStart and HcclGroupEnd, which take sends and receives",
				       __func__));
	return API(hccld_comm_barrier(comm, stream));
}

/* HCCL_E_SUSPENDING while the rank is suspended, else the code of the first fault that hit it, which stays until HcclCommResume. */
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

/* ---- of the process ---- */

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue)
{
	uint8_t of_environment;
	const char *soc_name;
	bool known = true;
	int r;

	if (config != HCCL_DETERMINISTIC)
		return HCCL_SUCCESS;
	r = hccld_environment_check();
	if (r < 0)
		return API(r);
	if (hccld_environment_deterministic(&of_environment))
		return HCCL_SUCCESS;
	if (configValue.value < 0 || configValue.value > 2)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: HCCL_DETERMINISTIC is %d, expected 0 (off) or 1 (on)", __func__,
				       configValue.value));
	if (configValue.value == 2) {
		r = hccld_strict_is_known(&known, &soc_name);
		if (r < 0)
			return API(r);
	}
	if (!known)
		return API(hccld_error(CAUSE_NOT_SUPPORTED, "%s: HCCL_DETERMINISTIC is 2 (strict), which %s does not have; expected 0 or 1",
				       __func__, soc_name));
	hccld_deterministic_set((uint8_t)configValue.value);
	return HCCL_SUCCESS;
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue)
{
	if (!configValue)
		return null_argument(__func__, "configValue");
	if (config == HCCL_DETERMINISTIC)
		configValue->value = hccld_deterministic();
	return HCCL_SUCCESS;
}

/* ---- fault recovery ---- */

static HcclResult set_suspended(const char *function, HcclComm comm, bool suspended)
{
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(function, "comm");
	r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	r = hccld_comm_set_suspended(found, suspended);
	hccld_comm_put(found);
	return API(r);
}

HcclResult HcclCommSuspend(HcclComm comm)
{
	return set_suspended(__func__, comm, true);
}

HcclResult HcclCommResume(HcclComm comm)
{
	return set_suspended(__func__, comm, false);
}

HcclResult HcclCommGetStatus(const char *commId, HcclCommStatus *status)
{
	struct hccld_comm *found;
	HcclComm comm = NULL;
	uint32_t epoch;
	int r;

	if (!commId)
		return null_argument(__func__, "commId");
	if (!status)
		return null_argument(__func__, "status");
	r = hccld_comm_by_name(commId, &comm);
	if (r < 0)
		return API(hccld_error(CAUSE_NULL, "%s: this process has no communicator \"%.128s\"", __func__, commId));
	r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	if (hccld_comm_check_running(found, &epoch) < 0)
		hccld_error_forget();
	*status = epoch & 1 ? HCCL_COMM_STATUS_SUSPENDING : HCCL_COMM_STATUS_READY;
	hccld_comm_put(found);
	return HCCL_SUCCESS;
}

/* ---- groups ---- */

HcclResult HcclGroupStart(void)
{
	hccld_group_start();
	return HCCL_SUCCESS;
}

/* The first error of what was done; HCCL 9.0 answers HCCL_SUCCESS and leaves it to the stream. */
HcclResult HcclGroupEnd(void)
{
	return API(hccld_group_end());
}

HcclResult HcclGroupStatusGet(bool *isGroupEnabled)
{
	if (!isGroupEnabled)
		return null_argument(__func__, "isGroupEnabled");
	*isGroupEnabled = hccld_group_is_open();
	return HCCL_SUCCESS;
}

/* ---- queries of settings ---- */

HcclResult HcclConfigGetInfo(HcclComm comm, HcclConfigType cfgType, uint32_t infoLen, void *info)
{
	/* by hcclOpExpansionMode, which numbers differently; 0, the default, is that of the product */
	static const HcclOpExpansionMode modes[] = {
		HCCL_OP_EXPANSION_MODE_AI_CPU, HCCL_OP_EXPANSION_MODE_HOST,   HCCL_OP_EXPANSION_MODE_AI_CPU,	HCCL_OP_EXPANSION_MODE_AIV,
		HCCL_OP_EXPANSION_AIV_ONLY,    HCCL_OP_EXPANSION_MODE_CCU_MS, HCCL_OP_EXPANSION_MODE_CCU_SCHED,
	};
	struct hccld_comm *found;
	HcclOpExpansionMode mode;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!info)
		return null_argument(__func__, "info");
	if (cfgType != HCCL_CONFIG_TYPE_OP_EXPANSION_MODE)
		return API(hccld_error(CAUSE_NOT_SUPPORTED, "%s: cfgType is %d, expected 0 (expansion mode)", __func__, (int)cfgType));
	if (infoLen != sizeof(mode))
		return API(hccld_error(CAUSE_ARGUMENT, "%s: infoLen is %u, expected %zu", __func__, infoLen, sizeof(mode)));
	r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	mode = modes[found->settings.op_expansion_mode % (sizeof(modes) / sizeof(modes[0]))];
	memcpy(info, &mode, sizeof(mode));
	hccld_comm_put(found);
	return HCCL_SUCCESS;
}
