/* SPDX-License-Identifier: Apache-2.0 */
/* All public functions and what their parameters are; the table is made by api_calls.py. */
#pragma once

#define API_PARAMETERS_MAX 16

enum api_kind {
	KIND_POINTER = 1,	/* to something the function reads or writes */
	KIND_BUFFER,		/* void * */
	KIND_STREAM,
	KIND_COMM,
	KIND_EVENT,
	KIND_CONTEXT,
	KIND_NOTIFY,
	KIND_HANDLE,		/* of another sort; also a function */
	KIND_NUMBER,
	KIND_SIZE,		/* of 64 bits */
	KIND_OTHER,		/* a floating number, a struct */
};

/* Of a type that has no star in its name. gcc: 5 is a pointer, 1 to 4 are integers and enumerators. */
#define KIND_OF(type)                                                            \
	(__builtin_classify_type(*(type *)8) == 5  ? KIND_HANDLE                 \
	 : __builtin_classify_type(*(type *)8) <= 4 ? KIND_NUMBER : KIND_OTHER)

struct api_call {
	const char *name;
	void (*function)(void);
	int gives_code;		/* aclError, HcclResult */
	unsigned int count;
	int kinds[API_PARAMETERS_MAX];
};

extern const struct api_call api_calls[];
extern const unsigned int api_call_count;
