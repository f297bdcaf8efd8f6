/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Point-to-point operators, as libhccl.so exports them: the checks that need no communicator, in HCCL's order (A2, A3), then the core.
 */
#include <stddef.h>

#include "client/argument.h"
#include "client/error.h"
#include "client/exchange.h"
#include "client/group.h"
#include "hccl/hccl.h"

#define API(call) ((HcclResult)hccld_hccl_result(call))

HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm, aclrtStream stream)
{
	const HcclSendRecvItem item = { HCCL_SEND, sendBuf, count, dataType, destRank };

	/* no check here, not even of the count: the end of the group makes them */
	if (hccld_group_is_open())
		return API(hccld_group_add(&item, 1, comm, stream));
	if (count == 0)
		return HCCL_SUCCESS;
	if (!comm)
		return null_argument(__func__, "comm");
	if (!sendBuf)
		return null_argument(__func__, "sendBuf");
	if (!stream)
		return null_argument(__func__, "stream");
	return API(hccld_exchange_one(&item, comm, stream));
}

HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm, aclrtStream stream)
{
	const HcclSendRecvItem item = { HCCL_RECV, recvBuf, count, dataType, srcRank };

	if (hccld_group_is_open())
		return API(hccld_group_add(&item, 1, comm, stream));
	if (count == 0)
		return HCCL_SUCCESS;
	if (!comm)
		return null_argument(__func__, "comm");
	if (!recvBuf)
		return null_argument(__func__, "recvBuf");
	if (!stream)
		return null_argument(__func__, "stream");
	return API(hccld_exchange_one(&item, comm, stream));
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem *sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream)
{
	if (!comm)
		return null_argument(__func__, "comm");
	if (!stream)
		return null_argument(__func__, "stream");
	if (!sendRecvInfo)
		return null_argument(__func__, "sendRecvInfo");
	if (itemNum == 0)
		return HCCL_SUCCESS;
	/* HCCL does not allow it there; here its items go with the others of the group */
	if (hccld_group_is_open())
		return API(hccld_group_add(sendRecvInfo, itemNum, comm, stream));
	return API(hccld_exchange(sendRecvInfo, itemNum, comm, stream));
}
