/* SPDX-License-Identifier: Apache-2.0 */
/* Address ranges, physical memory, and memory that processes share, in libascendcl.so and libacl_rt.so. */
#include <string.h>

#include "acl/acl.h"
#include "client/argument.h"
#include "client/device.h"
#include "client/error.h"
#include "client/share.h"
#include "client/virtual.h"

#define FABRIC_MAGIC "hccld 1" /* in front of the key in an aclrtMemFabricHandle */
#define RESERVE_FLAGS_MAX 2u   /* 0, huge pages, pages of 1 GiB */

/* ---- address ranges ---- */

static aclError reserve(const char *function, void **virPtr, size_t size, size_t alignment,
			void *expectPtr, uint64_t flags)
{
	struct hccld_context *context;
	int r;

	if (!virPtr)
		return null_error(function, "virPtr");
	if (flags > RESERVE_FLAGS_MAX)
		return value_error(function, "flags", flags, "0 to 2");
	r = hccld_context_current(&context);
	if (r == 0)
		r = hccld_virtual_reserve(size, alignment, expectPtr, virPtr);
	return hccld_acl_result(r);
}

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr,
				uint64_t flags)
{
	return reserve(__func__, virPtr, size, alignment, expectPtr, flags);
}

aclError aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size, size_t alignment,
					  void *expectPtr, uint64_t flags)
{
	return reserve(__func__, virPtr, size, alignment, expectPtr, flags);
}

aclError aclrtReleaseMemAddress(void *virPtr)
{
	int r;

	if (!virPtr)
		return null_error(__func__, "virPtr");
	r = hccld_session_check_fork();
	return hccld_acl_result(r < 0 ? r : hccld_virtual_release(virPtr));
}

/* ---- physical memory ---- */

static size_t granularity_of(aclrtMemAttr attr)
{
	switch (attr) {
	case ACL_DDR_MEM_NORMAL:
	case ACL_HBM_MEM_NORMAL:
	case ACL_DDR_MEM_P2P_NORMAL:
	case ACL_HBM_MEM_P2P_NORMAL:
	case ACL_MEM_NORMAL:
	case ACL_MEM_P2P_NORMAL:
		return 4096;
	case ACL_HBM_MEM_HUGE1G:
	case ACL_HBM_MEM_P2P_HUGE1G:
	case ACL_MEM_HUGE1G:
	case ACL_MEM_P2P_HUGE1G:
		return (size_t)1 << 30;
	default:
		return (size_t)2 << 20;
	}
}

static int prop_check(const char *function, const aclrtPhysicalMemProp *prop)
{
	if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE)
		return value_error(function, "prop->handleType",
				   (unsigned long long)prop->handleType, "0");
	if (prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED)
		return value_error(function, "prop->allocationType",
				   (unsigned long long)prop->allocationType, "0");
	if ((unsigned int)prop->memAttr > ACL_MEM_P2P_HUGE1G)
		return value_error(function, "prop->memAttr", (unsigned long long)prop->memAttr,
				   "a value of aclrtMemAttr");
	if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE &&
	    prop->location.type != ACL_MEM_LOCATION_TYPE_HOST &&
	    prop->location.type != ACL_MEM_LOCATION_TYPE_HOST_NUMA)
		return value_error(function, "prop->location.type",
				   (unsigned long long)prop->location.type,
				   "0 (host), 1 (device) or 4 (a host's NUMA node)");
	return 0;
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
					  aclrtMemGranularityOptions option, size_t *granularity)
{
	int r;

	if (!prop || !granularity)
		return null_error(__func__, prop ? "granularity" : "prop");
	if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM &&
	    option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return value_error(__func__, "option", (unsigned long long)option, "0 or 1");
	r = prop_check(__func__, prop);
	if (r == 0)
		*granularity = granularity_of(prop->memAttr);
	return r;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
			     const aclrtPhysicalMemProp *prop, uint64_t flags)
{
	struct hccld_context *context;
	int r;

	if (!handle || !prop)
		return null_error(__func__, handle ? "prop" : "handle");
	if (flags)
		return value_error(__func__, "flags", flags, "0");
	r = prop_check(__func__, prop);
	if (r)
		return r;
	if (size == 0 || size % granularity_of(prop->memAttr))
		return value_error(__func__, "size", size,
				   "a multiple of what aclrtMemGetAllocationGranularity gives");
	if (prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE) {
		r = hccld_context_open_on(__func__, (int32_t)prop->location.id, &context);
		if (r == 0)
			r = hccld_physical_new(context, HCCLD_MEMORY_DEVICE, size, handle);
	} else {
		r = hccld_context_current(&context);
		if (r == 0)
			r = hccld_physical_new(context, HCCLD_MEMORY_HOST, size, handle);
	}
	return hccld_acl_result(r);
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle)
{
	int r;

	if (!handle)
		return null_error(__func__, "handle");
	r = hccld_session_check_fork();
	return hccld_acl_result(r < 0 ? r : hccld_physical_free(handle));
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
		     uint64_t flags)
{
	int r;

	if (!virPtr || !handle)
		return null_error(__func__, virPtr ? "handle" : "virPtr");
	if (flags)
		return value_error(__func__, "flags", flags, "0");
	r = hccld_session_check_fork();
	return hccld_acl_result(r < 0 ? r : hccld_virtual_map(virPtr, size, offset, handle));
}

aclError aclrtUnmapMem(void *virPtr)
{
	int r;

	if (!virPtr)
		return null_error(__func__, "virPtr");
	r = hccld_session_check_fork();
	return hccld_acl_result(r < 0 ? r : hccld_virtual_unmap(virPtr));
}

aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
	int r;

	if (!virPtr || !handle)
		return null_error(__func__, virPtr ? "handle" : "virPtr");
	r = hccld_session_check_fork();
	return hccld_acl_result(r < 0 ? r : hccld_physical_retain(virPtr, handle));
}

static int access_check(const char *function, const aclrtMemAccessDesc *desc)
{
	uint32_t number;

	if (desc->flags != ACL_RT_MEM_ACCESS_FLAGS_READWRITE)
		return hccld_error(
			CAUSE_NOT_SUPPORTED,
			"%s: flags are %d; expected ACL_RT_MEM_ACCESS_FLAGS_READWRITE: what is mapped is open to all devices of the process",
			function, (int)desc->flags);
	if (desc->location.type == ACL_MEM_LOCATION_TYPE_DEVICE)
		return hccld_device_number((int32_t)desc->location.id, &number);
	if (desc->location.type == ACL_MEM_LOCATION_TYPE_HOST ||
	    desc->location.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA)
		return 0;
	return hccld_error(CAUSE_ARGUMENT, "%s: location.type is %d; expected host or device",
			   function, (int)desc->location.type);
}

aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count)
{
	int r;

	if (!virPtr || !desc)
		return null_error(__func__, virPtr ? "desc" : "virPtr");
	if (size == 0 || count == 0)
		return value_error(__func__, size ? "count" : "size", 0, "at least 1");
	r = hccld_session_check_fork();
	if (r == 0)
		r = hccld_virtual_check(virPtr, size);
	for (size_t i = 0; i < count && r == 0; i++)
		r = access_check(__func__, &desc[i]);
	return hccld_acl_result(r);
}

/* ---- handles of physical memory for other processes ---- */

/* The bytes that stand for the memory in a handle. False: no such handle. */
static bool handle_key(const void *handle, aclrtMemSharedHandleType type, const uint8_t **ret_key,
		       uint32_t *ret_bytes)
{
	const aclrtMemFabricHandle *fabric = handle;

	if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) {
		*ret_key = handle;
		*ret_bytes = sizeof(uint64_t);
		return true;
	}
	if (memcmp(fabric->data, FABRIC_MAGIC, sizeof(FABRIC_MAGIC)) != 0)
		return false;
	*ret_key = fabric->data + sizeof(FABRIC_MAGIC);
	*ret_bytes = HCCLD_KEY_BYTES_MAX;
	return true;
}

static int type_check(const char *function, aclrtMemSharedHandleType type)
{
	if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT || type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
		return 0;
	return value_error(function, "shareType", (unsigned long long)type, "1 or 2");
}

static int export_flags_check(const char *function, uint64_t flags)
{
	if (flags & ~(uint64_t)ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		return value_error(function, "flags", flags, "0 or 1");
	return 0;
}

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
					 uint64_t flags, uint64_t *shareableHandle)
{
	if (handleType != ACL_MEM_HANDLE_TYPE_NONE)
		return value_error(__func__, "handleType", (unsigned long long)handleType, "0");
	return aclrtMemExportToShareableHandleV2(handle, flags, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT,
						 shareableHandle);
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
					   aclrtMemSharedHandleType shareType,
					   void *shareableHandle)
{
	const bool any = flags & ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
	aclrtMemFabricHandle fabric = { .data = FABRIC_MAGIC };
	uint8_t key[HCCLD_KEY_BYTES_MAX];
	uint32_t bytes;
	int r;

	if (!handle || !shareableHandle)
		return null_error(__func__, handle ? "shareableHandle" : "handle");
	r = type_check(__func__, shareType);
	if (r == 0)
		r = export_flags_check(__func__, flags);
	if (r)
		return r;
	bytes = shareType == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT ? sizeof(uint64_t) : sizeof(key);
	r = hccld_share_export_physical(handle, any, key, bytes);
	if (r < 0)
		return hccld_acl_result(r);
	if (shareType == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) {
		memcpy(shareableHandle, key, sizeof(uint64_t));
	} else {
		memcpy(fabric.data + sizeof(FABRIC_MAGIC), key, sizeof(key));
		memcpy(shareableHandle, &fabric, sizeof(fabric));
	}
	return ACL_SUCCESS;
}

static int foreign_error(const char *function)
{
	return hccld_acl_result(hccld_error(
		CAUSE_ARGUMENT, "%s: the handle is not one of aclrtMemExportToShareableHandleV2",
		function));
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
					   aclrtDrvMemHandle *handle)
{
	struct hccld_context *context;
	int r;

	if (!handle)
		return null_error(__func__, "handle");
	r = hccld_context_open_on(__func__, deviceId, &context);
	if (r == 0)
		r = hccld_share_import_physical((const uint8_t *)&shareableHandle,
						sizeof(shareableHandle), context, handle);
	return hccld_acl_result(r);
}

aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle,
					     aclrtMemSharedHandleType shareType, uint64_t flags,
					     aclrtDrvMemHandle *handle)
{
	struct hccld_context *context;
	const uint8_t *key;
	uint32_t bytes;
	int r;

	if (!shareableHandle || !handle)
		return null_error(__func__, shareableHandle ? "handle" : "shareableHandle");
	r = type_check(__func__, shareType);
	if (r)
		return r;
	if (flags)
		return value_error(__func__, "flags", flags, "0");
	r = hccld_context_current(&context);
	if (r < 0)
		return hccld_acl_result(r);
	if (!handle_key(shareableHandle, shareType, &key, &bytes))
		return foreign_error(__func__);
	return hccld_acl_result(hccld_share_import_physical(key, bytes, context, handle));
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum)
{
	if (!pid)
		return null_error(__func__, "pid");
	if (pidNum == 0)
		return value_error(__func__, "pidNum", 0, "at least 1");
	return hccld_acl_result(hccld_share_allow_key((const uint8_t *)&shareableHandle,
						      sizeof(shareableHandle), pid, pidNum));
}

aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle,
					   aclrtMemSharedHandleType shareType, int32_t *pid,
					   size_t pidNum)
{
	const uint8_t *key;
	uint32_t bytes;
	int r;

	if (!shareableHandle || !pid)
		return null_error(__func__, pid ? "shareableHandle" : "pid");
	if (pidNum == 0)
		return value_error(__func__, "pidNum", 0, "at least 1");
	r = type_check(__func__, shareType);
	if (r)
		return r;
	if (!handle_key(shareableHandle, shareType, &key, &bytes))
		return foreign_error(__func__);
	return hccld_acl_result(hccld_share_allow_key(key, bytes, pid, pidNum));
}

/* ---- memory by a text key ---- */

aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flags)
{
	if (!devPtr || !key)
		return null_error(__func__, devPtr ? "key" : "devPtr");
	if (len < HCCLD_KEY_TEXT)
		return value_error(__func__, "len", len, "at least 65");
	if (flags & ~(uint64_t)ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		return value_error(__func__, "flags", flags, "0 or 1");
	return hccld_acl_result(hccld_share_export(
		devPtr, size, flags & ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION, key));
}

aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags)
{
	if (!devPtr || !key)
		return null_error(__func__, devPtr ? "key" : "devPtr");
	if (flags & ~(uint64_t)ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS)
		return value_error(__func__, "flags", flags, "0 or 1");
	return hccld_acl_result(hccld_share_import(key, devPtr));
}

aclError aclrtIpcMemClose(const char *key)
{
	if (!key)
		return null_error(__func__, "key");
	return hccld_acl_result(hccld_share_close(key));
}

aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num)
{
	if (!key || !pid)
		return null_error(__func__, key ? "pid" : "key");
	if (num == 0)
		return value_error(__func__, "num", 0, "at least 1");
	return hccld_acl_result(hccld_share_allow(key, pid, num));
}

aclError aclrtIpcMemSetAttr(const char *key, aclrtIpcMemAttrType type, uint64_t attr)
{
	if (!key)
		return null_error(__func__, "key");
	if (type != ACL_RT_IPC_MEM_ATTR_ACCESS_LINK)
		return value_error(__func__, "type", (unsigned long long)type, "0");
	if (attr != ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_SIO &&
	    attr != ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS)
		return value_error(__func__, "attr", attr, "0 or 1");
	/* memory of one machine has no links to choose from */
	return hccld_acl_result(hccld_share_check_key(key));
}
