/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies in libascendcl.so and libacl_rt.so. */
#include <inttypes.h>

#include "acl/acl.h"
#include "client/argument.h"
#include "client/error.h"
#include "client/notify.h"

static struct hccld_notify_handle plain(aclrtNotify notify)
{
	return (struct hccld_notify_handle){ notify, false };
}

static struct hccld_notify_handle counting(aclrtCntNotify notify)
{
	return (struct hccld_notify_handle){ notify, true };
}

static aclError create(const char *function, const char *name, void **notify, uint64_t flag, bool is_counting)
{
	struct hccld_context *context;
	int r;

	if (!notify)
		return null_error(function, name);
	/* for the device alone: nobody else maps them in any case */
	if (flag != ACL_NOTIFY_DEFAULT && flag != ACL_NOTIFY_DEVICE_USE_ONLY)
		return value_error(function, "flag", flag, "ACL_NOTIFY_DEFAULT (0) or ACL_NOTIFY_DEVICE_USE_ONLY (1)");
	r = hccld_context_current(&context);
	if (r == 0)
		r = hccld_notify_new(context, is_counting, notify);
	return hccld_acl_result(r);
}

/* ---- plain ---- */

aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag)
{
	return create(__func__, "notify", notify, flag, false);
}

aclError aclrtDestroyNotify(aclrtNotify notify)
{
	if (!notify)
		return null_error(__func__, "notify");
	return hccld_acl_result(hccld_notify_destroy(plain(notify)));
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream)
{
	if (!notify)
		return null_error(__func__, "notify");
	return hccld_acl_result(hccld_notify_record(plain(notify), stream, NOTIFY_SET, 1));
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout)
{
	const struct hccld_notify_condition condition = {
		.compare = NOTIFY_EQUAL, .operand = 1, .clears = true, .timeout_s = timeout
	};

	if (!notify)
		return null_error(__func__, "notify");
	return hccld_acl_result(hccld_notify_wait(plain(notify), stream, &condition));
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId)
{
	if (!notify || !notifyId)
		return null_error(__func__, notify ? "notifyId" : "notify");
	return hccld_acl_result(hccld_notify_id(plain(notify), notifyId));
}

aclError aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num)
{
	if (!notifies)
		return null_error(__func__, "notifies");
	if (num == 0 || num > NOTIFIES_MAX)
		return value_error(__func__, "num", num, "1 to 65536");
	for (size_t i = 0; i < num; i++)
		if (!notifies[i])
			return hccld_acl_result(hccld_error(CAUSE_NULL, "%s: notifies[%zu] is NULL", __func__, i));
	return hccld_acl_result(hccld_notify_reset(notifies, num));
}

aclError aclrtNotifyGetExportKey(aclrtNotify notify, char *key, size_t len, uint64_t flags)
{
	if (!notify || !key)
		return null_error(__func__, notify ? "key" : "notify");
	if (len < HCCLD_KEY_TEXT)
		return value_error(__func__, "len", len, "at least 65");
	if (flags & ~(uint64_t)ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		return value_error(__func__, "flags", flags, "0 or 2");
	return hccld_acl_result(hccld_notify_export(notify, flags & ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION, key));
}

aclError aclrtNotifyImportByKey(aclrtNotify *notify, const char *key, uint64_t flags)
{
	if (!notify || !key)
		return null_error(__func__, notify ? "key" : "notify");
	/* notifies of one machine need no access to a peer */
	if (flags & ~(uint64_t)ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS)
		return value_error(__func__, "flags", flags, "0 or 2");
	return hccld_acl_result(hccld_notify_import(key, notify));
}

aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num)
{
	if (!notify || !pid)
		return null_error(__func__, notify ? "pid" : "notify");
	if (num == 0)
		return value_error(__func__, "num", 0, "at least 1");
	return hccld_acl_result(hccld_notify_allow(notify, pid, num));
}

/* ---- counting ---- */

aclError aclrtCntNotifyCreate(aclrtCntNotify *cntNotify, uint64_t flag)
{
	return create(__func__, "cntNotify", cntNotify, flag, true);
}

aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify)
{
	if (!cntNotify)
		return null_error(__func__, "cntNotify");
	return hccld_acl_result(hccld_notify_destroy(counting(cntNotify)));
}

aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream, aclrtCntNotifyRecordInfo *info)
{
	if (!cntNotify || !info)
		return null_error(__func__, cntNotify ? "info" : "cntNotify");
	switch (info->mode) {
	case ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE:
	case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE:
	case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE:
	case ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE:
		return hccld_acl_result(
			hccld_notify_record(counting(cntNotify), stream, (enum notify_change)info->mode, info->value));
	default:
		return value_error(__func__, "info->mode", (unsigned long long)info->mode,
				   "0 (set), 1 (add), 2 (or) or 4 (and)");
	}
}

aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify, aclrtStream stream, aclrtCntNotifyWaitInfo *info)
{
	struct hccld_notify_condition condition;

	if (!cntNotify || !info)
		return null_error(__func__, cntNotify ? "info" : "cntNotify");
	if ((unsigned int)info->mode > ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE)
		return value_error(__func__, "info->mode", (unsigned long long)info->mode,
				   "0 (less) to 4 (equal under a mask)");
	if (info->isClear > 1)
		return value_error(__func__, "info->isClear", info->isClear, "0 or 1");
	condition = (struct hccld_notify_condition){ .compare = (enum notify_compare)info->mode,
						     .operand = info->value,
						     .mask = info->value,
						     .clears = info->isClear,
						     .timeout_s = info->timeout };
	return hccld_acl_result(hccld_notify_wait(counting(cntNotify), stream, &condition));
}

aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream)
{
	if (!cntNotify)
		return null_error(__func__, "cntNotify");
	return hccld_acl_result(hccld_notify_record(counting(cntNotify), stream, NOTIFY_SET, 0));
}

aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t *notifyId)
{
	if (!cntNotify || !notifyId)
		return null_error(__func__, cntNotify ? "notifyId" : "cntNotify");
	return hccld_acl_result(hccld_notify_id(counting(cntNotify), notifyId));
}
