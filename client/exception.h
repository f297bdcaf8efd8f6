/* SPDX-License-Identifier: Apache-2.0 */
/* The program's function for errors in flight (aclrtSetExceptionInfoCallback). Any thread. */
#pragma once

#include <stdint.h>

struct hccld_stream;

/* What an aclrtExceptionInfo points to. */
struct hccld_exception {
	uint32_t task, stream, thread, device, code;
};

/* NULL: none. */
void hccld_exception_set(void (*callback)(void *exception));
/* The thread that is told of an error in flight calls the program's function first. */
void hccld_exception_report(const struct hccld_stream *stream, int code);
