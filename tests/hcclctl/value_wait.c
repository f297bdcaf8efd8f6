/* SPDX-License-Identifier: Apache-2.0 */
/* value_wait FILE: a stream waits for a value that nobody writes. Says "waiting", and ends with status 0 when that ends with an error. */
#include "tests/hcclctl/program.h"

int main(void)
{
	aclrtStream stream;
	void *word;

	TRY(aclrtSetDevice(0));
	TRY(aclrtCreateStream(&stream));
	TRY(aclrtMalloc(&word, 64, ACL_MEM_MALLOC_HUGE_FIRST));
	TRY(aclrtMemset(word, 64, 0, 64));
	TRY(aclrtValueWait(word, 7, ACL_STREAM_WAIT_VALUE_EQ, stream));
	printf("waiting\n");
	fflush(stdout);
	return aclrtSynchronizeStream(stream) == 0;
}
