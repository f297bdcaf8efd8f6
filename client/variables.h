/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that programs read through this library, for tools that show them. */
#pragma once

#include <stdbool.h>

struct hccld_variable {
	const char *name;
	const char *value;   /* in effect; of a bad one what is set */
	const char *meaning; /* one line */
	bool is_set;	     /* else the value is the default */
	const char *error;   /* NULL: it is well. Else what the program would be told; every communicator call fails then */
};

/* Calls @tell for each, with what this process's environment has. What it gets is valid during the call. */
void hccld_variables_list(void (*tell)(void *data, const struct hccld_variable *variable), void *data);
