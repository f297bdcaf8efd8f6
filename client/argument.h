/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the faces answer to a wrong argument, in the same words everywhere: the text is set, the code of the API returned. @function and
 * @name as the program knows them.
 */
#pragma once

#include "client/error.h"

/* acl */
static inline int null_error(const char *function, const char *name)
{
	return hccld_acl_result(hccld_error(CAUSE_NULL, "%s: %s is NULL", function, name));
}

static inline int value_error(const char *function, const char *name, unsigned long long value, const char *expected)
{
	return hccld_acl_result(hccld_error(CAUSE_ARGUMENT, "%s: %s is %llu; expected %s", function, name, value, expected));
}

/* HCCL */
static inline int null_argument(const char *function, const char *name)
{
	return hccld_hccl_result(hccld_error(CAUSE_NULL, "%s: %s is NULL", function, name));
}
