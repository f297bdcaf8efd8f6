/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions of functions that are declared and exported but not built yet. The compiler compares
 * each parameter list with the header's.
 */
#pragma once

#include <stddef.h>

#include "client/error.h"

/* @parameters in parentheses, as in the declaration. Results are those of the API the name is in. */
#define UNBUILT_HCCL(name, parameters) \
	HcclResult name parameters { return (HcclResult)hccld_unbuilt_hccl(__func__); }
#define UNBUILT_HCOMM(name, parameters) \
	int32_t name parameters { return hccld_unbuilt_hccl(__func__); }
#define UNBUILT_ACL(name, parameters) \
	aclError name parameters { return hccld_unbuilt_acl(__func__); }
/* The answer is 0 or NULL; only the text tells. */
#define UNBUILT_ACL_NUMBER(name, parameters) \
	uint32_t name parameters { hccld_unbuilt_acl(__func__); return 0; }
#define UNBUILT_ACL_POINTER(type, name, parameters) \
	type name parameters { hccld_unbuilt_acl(__func__); return NULL; }
