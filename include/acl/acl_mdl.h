/* SPDX-License-Identifier: Apache-2.0 */
/* The place where older programs look for the captured models of acl/acl_rt.h. */
#pragma once

#include "acl_rt.h"
