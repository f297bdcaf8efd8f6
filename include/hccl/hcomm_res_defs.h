/* SPDX-License-Identifier: Apache-2.0 */
/* The place where older programs look for hcomm/hcomm_res_defs.h. */
#pragma once

#include "../hcomm/hcomm_res_defs.h"
