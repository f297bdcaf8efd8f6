/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of communicators for programs' own operators, in libhcomm.so: the HCCL buffer. */
#include "client/argument.h"
#include "client/comm.h"
#include "client/comm_buffer.h"
#include "hccl/hccl_res.h"

#define API(call) ((HcclResult)hccld_hccl_result(call))

static HcclResult get_buffer(const char *function, HcclComm comm, void **buffer, uint64_t *size)
{
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(function, "comm");
	if (!buffer)
		return null_argument(function, "buffer");
	if (!size)
		return null_argument(function, "size");
	r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	r = hccld_comm_buffer_get(found, buffer, size, NULL);
	hccld_comm_put(found);
	return API(r);
}

HcclResult HcclGetHcclBuffer(HcclComm comm, void **buffer, uint64_t *size)
{
	return get_buffer(__func__, comm, buffer, size);
}

/* All of it is zero when it is made, by either call. */
HcclResult HcclGetHcclBufferCleared(HcclComm comm, void **buffer, uint64_t *size)
{
	return get_buffer(__func__, comm, buffer, size);
}
