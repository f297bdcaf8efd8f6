/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory and channels, as libhcomm.so exports them: arguments are checked in HCCL's order, then the core is called.
 *
 * Where CANN leaves it open: a channel that is there is returned as it is, whatever notifies and memory the new descriptor asks for; a
 * further one needs HcclChannelDestroy at both ends first. Endpoints in descriptors are not looked at: ranks of a node have one path for
 * each protocol. HcclChannelDestroy takes channels of every engine.
 */
#include <stddef.h>
#include <string.h>

#include "client/argument.h"
#include "client/channel.h"
#include "client/channel_acquire.h"
#include "client/comm.h"
#include "client/error.h"
#include "client/registration.h"
#include "hccl/hccl_res.h"
#include "proto/cleanup.h"
#include "proto/limits.h"

#define API(call) ((HcclResult)hccld_hccl_result(call))

/* CANN answers E_PARA to each of these, also to NULL. */
static int register_check(HcclComm comm, const char *tag, const CommMem *mem, const HcclMemHandle *handle)
{
	const char *null = !comm ? "comm" : !tag ? "memTag" : !mem ? "mem" : !handle ? "memHandle" : !mem->addr ? "mem->addr" : NULL;

	if (null)
		return hccld_error(CAUSE_ARGUMENT, "HcclCommMemReg: %s is NULL", null);
	if (!*tag || strnlen(tag, HCCLD_TAG_MAX) == HCCLD_TAG_MAX)
		return hccld_error(CAUSE_ARGUMENT, "HcclCommMemReg: memTag has %s bytes; expected 1 to %u", *tag ? "too many" : "no",
				   HCCL_RES_TAG_MAX_LEN);
	if (mem->type != COMM_MEM_TYPE_DEVICE && mem->type != COMM_MEM_TYPE_HOST)
		return hccld_error(CAUSE_ARGUMENT, "HcclCommMemReg: mem->type is %d; expected COMM_MEM_TYPE_DEVICE (0) or COMM_MEM_TYPE_HOST (1)",
				   (int)mem->type);
	if (!mem->size)
		return hccld_error(CAUSE_ARGUMENT, "HcclCommMemReg: mem->size is 0; expected at least 1");
	return 0;
}

HcclResult HcclCommMemReg(HcclComm comm, const char *memTag, const CommMem *mem, HcclMemHandle *memHandle)
{
	CLEANUP(hccld_comm_putp) struct hccld_comm *found = NULL;
	int r = register_check(comm, memTag, mem, memHandle);

	if (r == 0)
		r = hccld_comm_get(comm, &found);
	if (r == 0)
		r = hccld_registration_add(found, memTag, mem, memHandle);
	return API(r);
}

/* The name of the argument that is NULL, or NULL. */
static const char *null_of(const void *comm, const void *descs, const void *channels)
{
	return !comm ? "comm" : !descs ? "channelDescs" : !channels ? "channels" : NULL;
}

HcclResult HcclChannelAcquire(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs, uint32_t channelNum,
			      ChannelHandle *channels)
{
	const char *null = null_of(comm, channelDescs, channels);

	if (null)
		return null_argument(__func__, null);
	return API(hccld_channel_acquire(__func__, comm, (int32_t)engine, channelDescs, channelNum, NULL, channels));
}

HcclResult HcclChannelAcquireWithConfig(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs, uint32_t channelNum,
					HcclChannelConfig config, ChannelHandle *channels)
{
	const char *null = null_of(comm, channelDescs, channels);

	if (null)
		return null_argument(__func__, null);
	return API(hccld_channel_acquire(__func__, comm, (int32_t)engine, channelDescs, channelNum, config, channels));
}

HcclResult HcclChannelQuery(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs, uint32_t channelNum,
			    ChannelHandle *channels)
{
	const char *null = null_of(comm, channelDescs, channels);

	if (null)
		return null_argument(__func__, null);
	return API(hccld_channel_query(__func__, comm, (int32_t)engine, channelDescs, channelNum, channels));
}

HcclResult HcclChannelDestroy(HcclComm comm, const ChannelHandle *channels, uint32_t channelNum)
{
	if (!comm || !channels)
		return null_argument(__func__, comm ? "channels" : "comm");
	if (!channelNum || channelNum > HCCLD_CHANNELS_PER_SESSION)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: channelNum is %u; expected 1 to %u, the most that a process has", __func__, channelNum,
				       HCCLD_CHANNELS_PER_SESSION));
	return API(hccld_channels_destroy(comm, channels, channelNum));
}

/* The channel, if it is of that communicator. */
static int channel_of(const char *function, HcclComm comm, ChannelHandle handle, struct hccld_channel **ret_channel)
{
	CLEANUP(hccld_channel_putp) struct hccld_channel *channel = NULL;
	CLEANUP(hccld_comm_putp) struct hccld_comm *found = NULL;
	int r = hccld_comm_get(comm, &found);

	if (r == 0)
		r = hccld_channel_get(function, handle, &channel);
	if (r < 0)
		return r;
	if (channel->comm != found)
		return hccld_error(CAUSE_NOT_FOUND, "%s: channel is %#llx, a channel of rank %u of communicator %s; expected one of rank %u of communicator %s",
				   function, (unsigned long long)handle, channel->comm->rank, channel->comm->name, found->rank, found->name);
	*ret_channel = take_ptr(&channel);
	return 0;
}

HcclResult HcclChannelGetHcclBuffer(HcclComm comm, ChannelHandle channel, void **buffer, uint64_t *size)
{
	CLEANUP(hccld_channel_putp) struct hccld_channel *found = NULL;
	int r;

	if (!comm || !buffer || !size)
		return null_argument(__func__, !comm ? "comm" : !buffer ? "buffer" : "size");
	r = channel_of(__func__, comm, channel, &found);
	if (r == 0 && !found->memories[0].base)
		r = hccld_error(CAUSE_NOT_FOUND, "%s: rank %u has offered no HCCL buffer", __func__, found->peer);
	if (r < 0)
		return API(r);
	*buffer = found->memories[0].start;
	*size = found->memories[0].bytes;
	return HCCL_SUCCESS;
}

/* *memNum is written only: programs leave it as it is. */
HcclResult HcclChannelGetRemoteMems(HcclComm comm, ChannelHandle channel, uint32_t *memNum, CommMem **remoteMems, char ***memTags)
{
	CLEANUP(hccld_channel_putp) struct hccld_channel *found = NULL;
	int r;

	if (!comm || !memNum || !remoteMems || !memTags)
		return null_argument(__func__, !comm ? "comm" : !memNum ? "memNum" : !remoteMems ? "remoteMems" : "memTags");
	r = channel_of(__func__, comm, channel, &found);
	if (r < 0)
		return API(r);
	*memNum = found->memory_count - 1;
	*remoteMems = found->mems;
	*memTags = found->tags;
	return HCCL_SUCCESS;
}

HcclResult HcclChannelConfigCreate(HcclChannelConfig *config)
{
	if (!config)
		return null_argument(__func__, "config");
	return API(hccld_channel_config_new(config));
}

HcclResult HcclChannelConfigDestroy(HcclChannelConfig config)
{
	if (!config)
		return null_argument(__func__, "config");
	return API(hccld_channel_config_end(config));
}

HcclResult HcclChannelConfigSetInt(HcclChannelConfig config, HcclChannelConfigType type, uint32_t value)
{
	if (!config)
		return null_argument(__func__, "config");
	return API(hccld_channel_config_set_int(config, (int32_t)type, value));
}

HcclResult HcclChannelConfigSetStr(HcclChannelConfig config, HcclChannelConfigType type, const char *value)
{
	if (!config || !value)
		return null_argument(__func__, config ? "value" : "config");
	return API(hccld_channel_config_set_text(config, (int32_t)type, value));
}
