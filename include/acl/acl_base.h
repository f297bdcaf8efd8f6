/* SPDX-License-Identifier: Apache-2.0 */
/* The place where older programs look for acl/acl_base_rt.h. */
#pragma once

#include "acl_base_rt.h"
