/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of threads of the resource interface. */
#pragma once

#include "hcomm/hcomm_res.h"
#include "tests/support/job.h"

static inline aclrtStream thread_stream(ThreadHandle thread)
{
	void *stream = NULL;

	check_ok(HcommThreadResGetInfo(thread, THREAD_RES_TYPE_STREAM, sizeof(stream), &stream));
	check_ptr(stream);
	return stream;
}

/* Waits until all that is queued on it is done. */
static inline void thread_finish(ThreadHandle thread)
{
	check_ok(aclrtSynchronizeStreamWithTimeout(thread_stream(thread), 60000));
}
