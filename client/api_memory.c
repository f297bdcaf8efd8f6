/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory beyond allocation and plain copies, in libascendcl.so and libacl_rt.so: rows, batches, registered host memory, address ranges and
 * physical memory.
 */
#include <stdbool.h>

#include "acl/acl.h"
#include "client/argument.h"
#include "client/buffer.h"
#include "client/device.h"
#include "client/error.h"
#include "client/memory.h"
#include "client/pinned.h"
#include "client/share.h"
#include "client/stream.h"
#include "client/virtual.h"

#define PAGE 4096u
#define EXTENT_MAX ((size_t)1 << 46) /* of rows with what is between them: more than any memory */

aclError aclrtMallocForTaskScheduler(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
				     aclrtMallocConfig *cfg)
{
	return aclrtMallocWithCfg(devPtr, size, policy, cfg);
}

aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize)
{
	int32_t device;
	uint64_t bytes;
	void *start;
	int r;

	if (!ptr || !pbase || !psize)
		return null_error(__func__, !ptr ? "ptr" : !pbase ? "pbase" : "psize");
	r = hccld_session_check_fork();
	if (r < 0)
		return hccld_acl_result(r);
	if (hccld_buffer_range(ptr, &start, &bytes, &device) < 0)
		return hccld_acl_result(hccld_error(CAUSE_ARGUMENT,
						    "%s: %p is in no allocation of this process",
						    __func__, ptr));
	*pbase = start;
	*psize = bytes;
	return ACL_SUCCESS;
}

/* ---- copies ---- */

aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count,
				       aclrtMemcpyKind kind, aclrtStream stream)
{
	/* its condition, pinned host memory, is none here: other memory goes through staging */
	return aclrtMemcpyAsync(dst, destMax, src, count, kind, stream);
}

static int rows_check(const char *function, const void *dst, size_t dpitch, const void *src,
		      size_t spitch, size_t width, size_t height)
{
	if (!dst || !src)
		return null_error(function, dst ? "src" : "dst");
	if (width == 0 || height == 0 || width > dpitch || width > spitch)
		return hccld_acl_result(hccld_error(
			CAUSE_NULL,
			"%s: width is %zu, height %zu, dpitch %zu, spitch %zu; expected 0 < width <= both pitches and height > 0",
			function, width, height, dpitch, spitch));
	if (width > EXTENT_MAX || height - 1 > (EXTENT_MAX - width) / (dpitch > spitch ? dpitch : spitch))
		return value_error(function, "height", height, "rows that fit into memory");
	return 0;
}

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
		       size_t height, aclrtMemcpyKind kind)
{
	int r = rows_check(__func__, dst, dpitch, src, spitch, width, height);

	if (r == 0)
		r = hccld_acl_result(hccld_memory_copy_rows(__func__, dst, dpitch, src, spitch,
							    width, height, (int)kind));
	return r;
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			    size_t height, aclrtMemcpyKind kind, aclrtStream stream)
{
	int r = rows_check(__func__, dst, dpitch, src, spitch, width, height);

	if (r == 0)
		r = hccld_acl_result(hccld_memory_copy_rows_async(
			__func__, dst, dpitch, src, spitch, width, height, (int)kind, stream));
	return r;
}

/* Of the attributes that belong to region @index: the kind of the copy. */
static int batch_kind(const char *function, const aclrtMemcpyBatchAttr *attr)
{
	const bool to_device = attr->dstLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE;
	const bool from_device = attr->srcLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE;

	if ((!to_device && attr->dstLoc.type != ACL_MEM_LOCATION_TYPE_HOST) ||
	    (!from_device && attr->srcLoc.type != ACL_MEM_LOCATION_TYPE_HOST))
		return value_error(function, "a location's type",
				   (unsigned long long)(to_device ? attr->srcLoc.type :
								    attr->dstLoc.type),
				   "0 (host) or 1 (device)");
	return 0;
}

static int batch_check(const char *function, void **dsts, size_t *destMaxs, void **srcs,
		       size_t *sizes, size_t numBatches, aclrtMemcpyBatchAttr *attrs,
		       size_t *attrsIndexes, size_t numAttrs, size_t *failIndex)
{
	int r = 0;

	if (!dsts || !destMaxs || !srcs || !sizes || !attrs || !attrsIndexes || !failIndex)
		return null_error(function, "an array or failIndex");
	*failIndex = SIZE_MAX;
	if (numBatches == 0)
		return value_error(function, "numBatches", 0, "at least 1");
	if (numAttrs == 0 || numAttrs > numBatches)
		return value_error(function, "numAttrs", numAttrs, "1 to numBatches");
	if (attrsIndexes[0] != 0)
		return value_error(function, "attrsIndexes[0]", attrsIndexes[0], "0");
	for (size_t i = 0; i < numAttrs && r == 0; i++) {
		if (i && (attrsIndexes[i] <= attrsIndexes[i - 1] || attrsIndexes[i] >= numBatches))
			return value_error(function, "an element of attrsIndexes",
					   attrsIndexes[i], "growing numbers below numBatches");
		r = batch_kind(function, &attrs[i]);
	}
	return r;
}

static aclrtMemcpyKind kind_of(const aclrtMemcpyBatchAttr *attr)
{
	if (attr->dstLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE)
		return attr->srcLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE ?
			       ACL_MEMCPY_DEVICE_TO_DEVICE :
			       ACL_MEMCPY_HOST_TO_DEVICE;
	return attr->srcLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE ? ACL_MEMCPY_DEVICE_TO_HOST :
								   ACL_MEMCPY_HOST_TO_HOST;
}

aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
			  size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
			  size_t numAttrs, size_t *failIndex)
{
	size_t attr = 0;
	int r;

	r = batch_check(__func__, dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes,
			numAttrs, failIndex);
	for (size_t i = 0; i < numBatches && r == 0; i++) {
		if (attr + 1 < numAttrs && attrsIndexes[attr + 1] == i)
			attr++;
		r = aclrtMemcpy(dsts[i], destMaxs[i], srcs[i], sizes[i], kind_of(&attrs[attr]));
		if (r)
			*failIndex = i;
	}
	return r;
}

aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
			       size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
			       size_t numAttrs, size_t *failIndex, aclrtStream stream)
{
	size_t attr = 0;
	int r;

	r = batch_check(__func__, dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes,
			numAttrs, failIndex);
	for (size_t i = 0; i < numBatches && r == 0; i++) {
		if (attr + 1 < numAttrs && attrsIndexes[attr + 1] == i)
			attr++;
		r = aclrtMemcpyAsync(dsts[i], destMaxs[i], srcs[i], sizes[i],
				     kind_of(&attrs[attr]), stream);
		if (r)
			*failIndex = i;
	}
	return r;
}

/* ---- what an address is ---- */

aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes)
{
	struct hccld_place place;
	int32_t device;
	uint64_t bytes;
	void *start;
	int r;

	if (!ptr || !attributes)
		return null_error(__func__, ptr ? "attributes" : "ptr");
	r = hccld_session_check_fork();
	if (r < 0)
		return hccld_acl_result(r);
	*attributes = (aclrtPtrAttributes){ .location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED };
	if (hccld_buffer_find(ptr, &place) == 0) {
		attributes->location.type = place.memory == HCCLD_MEMORY_DEVICE ?
						    ACL_MEM_LOCATION_TYPE_DEVICE :
						    ACL_MEM_LOCATION_TYPE_HOST;
		attributes->pageSize = PAGE;
		if (place.memory == HCCLD_MEMORY_DEVICE &&
		    hccld_buffer_range(ptr, &start, &bytes, &device) == 0)
			attributes->location.id = (uint32_t)device;
	} else if (hccld_pinned_find(ptr) == 0) {
		attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
		attributes->pageSize = PAGE;
	} else {
		hccld_error_forget();
	}
	return ACL_SUCCESS;
}

static aclError host_register(const char *function, void *ptr, uint64_t size)
{
	struct hccld_context *context;
	struct hccld_place place;
	int r;

	if (!ptr)
		return null_error(function, "ptr");
	if (size == 0 || size > UINTPTR_MAX - (uintptr_t)ptr)
		return value_error(function, "size", size, "what there is from ptr on");
	r = hccld_context_current(&context);
	if (r < 0)
		return hccld_acl_result(r);
	if (hccld_buffer_find(ptr, &place) == 0)
		return hccld_acl_result(hccld_error(
			CAUSE_ARGUMENT,
			"%s: ptr is %p, which is memory of acl, and needs no registration",
			function, ptr));
	return hccld_acl_result(hccld_pinned_add(ptr, size));
}

aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr)
{
	aclError r;

	if (!devPtr)
		return null_error(__func__, "devPtr");
	if (type != ACL_HOST_REGISTER_MAPPED)
		return hccld_acl_result(hccld_error(
			CAUSE_NOT_SUPPORTED, "%s: type is %d; expected ACL_HOST_REGISTER_MAPPED",
			__func__, (int)type));
	r = host_register(__func__, ptr, size);
	if (r == ACL_SUCCESS)
		*devPtr = ptr;
	return r;
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
	if (!flag || flag & ~(uint32_t)(ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED))
		return value_error(__func__, "flag", flag,
				   "ACL_HOST_REG_MAPPED, ACL_HOST_REG_PINNED or both");
	return host_register(__func__, ptr, size);
}

aclError aclrtHostUnregister(void *ptr)
{
	int r;

	if (!ptr)
		return null_error(__func__, "ptr");
	r = hccld_session_check_fork();
	return hccld_acl_result(r < 0 ? r : hccld_pinned_remove(ptr));
}

aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag)
{
	struct hccld_place place;
	int r;

	if (!pHost || !pDevice)
		return null_error(__func__, pHost ? "pDevice" : "pHost");
	if (flag)
		return value_error(__func__, "flag", flag, "0");
	r = hccld_session_check_fork();
	/* of aclrtMallocHost, or registered */
	if (r == 0 &&
	    (hccld_buffer_find(pHost, &place) < 0 || place.memory != HCCLD_MEMORY_HOST))
		r = hccld_pinned_find(pHost);
	if (r == 0)
		*pDevice = pHost;
	return hccld_acl_result(r);
}

/* Every access is coherent; only the arguments are looked at. */
static aclError cache_check(const char *function, const void *address, size_t size)
{
	struct hccld_place place;
	int r;

	if (!address)
		return null_error(function, "devPtr");
	r = hccld_session_check_fork();
	if (r < 0)
		return hccld_acl_result(r);
	if (hccld_buffer_find(address, &place) < 0 || place.memory != HCCLD_MEMORY_DEVICE) {
		r = hccld_buffer_freed_error(CAUSE_NOT_DEVICE_MEMORY, function, address);
		return hccld_acl_result(r < 0 ? r : hccld_error(CAUSE_NOT_DEVICE_MEMORY, "%s: devPtr is %p, which is not device memory", function, address));
	}
	if (size == 0 || size > hccld_buffer_span(address, size))
		return value_error(function, "size", size, "what the allocation has from devPtr on");
	return ACL_SUCCESS;
}

aclError aclrtMemFlush(void *devPtr, size_t size)
{
	return cache_check(__func__, devPtr, size);
}

aclError aclrtMemInvalidate(void *devPtr, size_t size)
{
	return cache_check(__func__, devPtr, size);
}
