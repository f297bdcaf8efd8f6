/* SPDX-License-Identifier: Apache-2.0 */
/* notifies FILE: has notifies of all kinds, of two devices, and a stream that waits for one. Says "waiting", and waits to be ended. */
#include "tests/hcclctl/program.h"

int main(void)
{
	aclrtCntNotifyRecordInfo five = { ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 5 };
	aclrtNotify waited_for, set, other;
	aclrtCntNotify counting;
	aclrtStream stream, waiter;

	TRY(aclrtSetDevice(1));
	TRY(aclrtCreateNotify(&other, 0));
	TRY(aclrtSetDevice(0));
	TRY(aclrtCreateStream(&stream));
	TRY(aclrtCreateStream(&waiter));
	TRY(aclrtCreateNotify(&waited_for, 0));
	TRY(aclrtCntNotifyCreate(&counting, 0));
	TRY(aclrtCreateNotify(&set, 0));
	TRY(aclrtCntNotifyRecord(counting, stream, &five));
	TRY(aclrtRecordNotify(set, stream));
	TRY(aclrtSynchronizeStream(stream));
	TRY(aclrtWaitAndResetNotify(waited_for, waiter, 0));
	printf("waiting\n");
	fflush(stdout);
	return aclrtSynchronizeStream(waiter) == 0;
}
