/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of communicators for programs' own operators, in libhcomm.so: the HCCL buffer, engine contexts. */
#include <string.h>

#include "client/argument.h"
#include "client/comm.h"
#include "client/comm_buffer.h"
#include "client/engine_context.h"
#include "client/error.h"
#include "hccl/hccl_res.h"
#include "proto/limits.h"

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

/* ---- engine contexts ---- */

static_assert(HCCLD_TAG_MAX == HCCL_RES_TAG_MAX_LEN + 1, "with the NUL");

/* Of no tag: the name "". */
static int key_read(const char *function, const char *tag, CommEngine engine, struct hccld_engine_key *ret_key)
{
	if (engine < COMM_ENGINE_CPU || engine > COMM_ENGINE_CCU)
		return hccld_error(CAUSE_ARGUMENT, "%s: engine is %d, expected 0 to %d (CommEngine)", function, (int)engine, COMM_ENGINE_CCU);
	if (tag && strnlen(tag, HCCLD_TAG_MAX) == HCCLD_TAG_MAX)
		return hccld_error(CAUSE_ARGUMENT, "%s: ctxTag is \"%.32s...\", which has more than %u bytes", function, tag,
				   HCCL_RES_TAG_MAX_LEN);
	*ret_key = (struct hccld_engine_key){ (int)engine, tag ? tag : "" };
	return 0;
}

HcclResult HcclEngineCtxCreate(HcclComm comm, const char *ctxTag, CommEngine engine, uint64_t size, void **ctx)
{
	struct hccld_engine_key key;
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!ctx)
		return null_argument(__func__, "ctx, where the address goes,");
	r = key_read(__func__, ctxTag, engine, &key);
	if (r == 0 && size == 0)
		r = hccld_error(CAUSE_ARGUMENT, "%s: size is 0, expected at least 1", __func__);
	if (r == 0)
		r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	r = hccld_engine_context_new(found, &key, size, ctx);
	hccld_comm_put(found);
	return API(r);
}

HcclResult HcclEngineCtxGet(HcclComm comm, const char *ctxTag, CommEngine engine, void **ctx, uint64_t *size)
{
	struct hccld_engine_key key;
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!ctx)
		return null_argument(__func__, "ctx");
	if (!size)
		return null_argument(__func__, "size");
	r = key_read(__func__, ctxTag, engine, &key);
	if (r == 0)
		r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	r = hccld_engine_context_get(found, &key, ctx, size);
	hccld_comm_put(found);
	return API(r);
}

/* 9.0 writes beyond the end of a context. */
HcclResult HcclEngineCtxCopy(HcclComm comm, CommEngine engine, const char *ctxTag, const void *srcCtx, uint64_t size,
			     uint64_t dstCtxOffset)
{
	struct hccld_engine_key key;
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	if (!srcCtx)
		return null_argument(__func__, "srcCtx");
	r = key_read(__func__, ctxTag, engine, &key);
	if (r == 0)
		r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	r = hccld_engine_context_write(found, &key, dstCtxOffset, srcCtx, size);
	hccld_comm_put(found);
	return API(r);
}

HcclResult HcclEngineCtxDestroy(HcclComm comm, const char *ctxTag, CommEngine engine)
{
	struct hccld_engine_key key;
	struct hccld_comm *found;
	int r;

	if (!comm)
		return null_argument(__func__, "comm");
	r = key_read(__func__, ctxTag, engine, &key);
	if (r == 0)
		r = hccld_comm_get(comm, &found);
	if (r < 0)
		return API(r);
	r = hccld_engine_context_free(found, &key);
	hccld_comm_put(found);
	return API(r);
}
